//! The type of a joined array, and what its numbers are.

use crate::joined::instants;
use crate::joined::members::skeleton::{FLAGS, Role, SENSE, Variable};
use crate::joined::paths::{Path, Sure};
use crate::joined::recoding::has_references;
use crate::joined::variable::common_type::common;
use crate::joined::variable::compared::{Alike, Specimen};
use crate::joined::variable::{Form, Meaning, Rules};
use crate::model::Datatype;
use crate::model::datatype::{ByteOrder, Class};
use crate::view::cf::packing::Packing;
use crate::view::cf::time::TimeUnits;

impl Rules<'_, '_> {
    /// The type of the joined array, and what its numbers are.
    pub(super) fn form(&self) -> Sure<Form> {
        let alike = self.alike;
        let first = alike.first();
        if alike
            .variables()
            .any(|variable| has_references(&variable.datatype))
        {
            return Err("it holds references".to_owned());
        }
        let times = alike.times();
        if times.len() == alike.specimens.len() && !times.is_empty() {
            return self.times(&times);
        }
        self.refuse_other_sense()?;
        let packing = first.packing_marks();
        let is_packed_alike = alike
            .variables()
            .all(|variable| variable.packing_marks() == packing);
        // What a mark means depends on the type of the numbers.
        let has_marks = packing.iter().any(Option::is_some);
        let is_one_type = alike.variables().all(|own| own.datatype == first.datatype);
        if !(is_packed_alike && (is_one_type || !has_marks))
            && alike
                .variables()
                .all(|variable| variable.meaning.packing.is_some())
        {
            let types = || {
                alike
                    .variables()
                    .filter_map(|own| own.meaning.packing.as_ref())
                    .map(Packing::datatype)
            };
            // No real number holds every long integer.
            let is_long =
                |own: &Datatype| own.size > 4 && matches!(own.class, Class::Integer { .. });
            if types().any(|own| is_long(&own)) {
                return Err(
                    "numbers are packed in some files, and 64-bit integers in others".to_owned(),
                );
            }
            let is_single = |own: &Datatype| own.size == 4 && matches!(own.class, Class::Float(_));
            let is_wide = !types().all(|own| is_single(&own));
            return Ok(Form {
                datatype: Datatype::ieee(if is_wide { 8 } else { 4 }, ByteOrder::Little),
                meaning: Meaning::Unpacked,
            });
        }
        self.stored_type()
    }

    /// # Errors
    /// Fails if the attributes of files say that their numbers are something else.
    fn refuse_other_sense(&self) -> Sure<()> {
        let first = self.alike.first();
        for name in std::iter::once(&b"units"[..]).chain(FLAGS).chain(SENSE) {
            let mut others = self.alike.specimens.iter();
            let differs = |other: &&Specimen<'_>| {
                let (own, is_there) = (other.variable, other.variable.mark(name).is_some());
                let may_lack = SENSE.contains(&name) && !(is_there && first.mark(name).is_some());
                !may_lack && !own.says_the_same(first, name)
            };
            if let Some(other) = others.find(differs) {
                return Err(self.two_texts(name, *other));
            }
        }
        Ok(())
    }

    fn two_texts(&self, name: &[u8], other: Specimen<'_>) -> String {
        let text = |variable: &Variable| match (variable.text(name), variable.mark(name)) {
            (Some(text), _) => text.escape_ascii().to_string(),
            (None, Some(_)) => "numbers".to_owned(),
            (None, None) => "none".to_owned(),
        };
        let [own, others] = [self.alike.first(), other.variable].map(text);
        let (one, file) = self.alike.files(other);
        let name = name.escape_ascii();
        if own == others {
            format!("{name} differ ({one}, {file})")
        } else {
            format!("{name} differ: {own} in {one}, {others} in {file}")
        }
    }

    fn stored_type(&self) -> Sure<Form> {
        let types: Vec<&Datatype> = self
            .alike
            .variables()
            .map(|variable| &variable.datatype)
            .collect();
        let first = types[0];
        let datatype = common(&types).ok_or_else(|| {
            let mut others = self.alike.specimens.iter();
            let other = others.find(|own| own.variable.datatype != *first);
            let other = other.copied().unwrap_or(self.alike.specimens[0]);
            let (one, other) = self.alike.files(other);
            format!("its types differ ({one}, {other})")
        })?;
        Ok(Form {
            datatype,
            meaning: Meaning::Stored,
        })
    }

    fn times(&self, times: &[TimeUnits]) -> Sure<Form> {
        let lowest = || self.alike.all_instants()?.into_iter().min();
        let calendar = instants::calendar(times, lowest);
        let calendar = calendar.ok_or_else(|| {
            let calendar = |own: &Variable| own.meaning.time.map(|time| time.calendar());
            let own = calendar(self.alike.first());
            let mut others = self.alike.specimens.iter();
            let other = others.find(|other| calendar(other.variable) != own);
            let other = other.copied().unwrap_or(self.alike.specimens[0]);
            let (one, other) = self.alike.files(other);
            format!("calendars differ ({one}, {other})")
        })?;
        let bounds = self.partner();
        let partner = bounds.as_ref().map(|path| self.alike.of.alike(path));
        // A coordinate and its bounds are of one unit.
        let are_alike = has_one_unit(self.alike) && partner.as_ref().is_none_or(has_one_unit);
        if are_alike && let Ok(form) = self.stored_type() {
            return Ok(form);
        }
        let unit = self.alike.unit(partner.as_ref());
        let unit = unit.ok_or_else(|| {
            "its times are of several units, and some are missing or too many to be read".to_owned()
        })?;
        Ok(Form {
            datatype: Datatype::integer(8, true, ByteOrder::Little),
            meaning: Meaning::Times(unit, calendar),
        })
    }

    /// The bounds of a coordinate, or the coordinate of bounds: both have one unit.
    fn partner(&self) -> Option<Path> {
        let first = self.alike.specimens[0];
        let variables = &first.skeleton.variables;
        let other = match first.variable.role {
            Role::Bounds(of) => variables.get(of),
            _ => variables
                .iter()
                .find(|other| other.role == Role::Bounds(first.place)),
        };
        other.map(|other| Path::clone(&other.path))
    }
}

/// Whether the times of all members are stored in one unit and one way.
fn has_one_unit(alike: &Alike<'_>) -> bool {
    let first = alike.first();
    let packing = first.packing_marks();
    alike.variables().all(|own| {
        own.meaning.time == first.meaning.time
            && own.packing_marks() == packing
            && (own.datatype == first.datatype || packing.iter().all(Option::is_none))
    })
}

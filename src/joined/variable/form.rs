//! Chooses the datatype of a joined array, and decides what its numbers mean.

use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{ByteOrder, Class};

use crate::joined::element_recoding::has_references;
use crate::joined::members::skeleton::{FLAGS, SENSE, Variable};
use crate::joined::paths::OrReason;
use crate::joined::variable::common_type::common;
use crate::joined::variable::comparison::Specimen;
use crate::joined::variable::{JoinedForm, JoinedNumbers, Rules};
use crate::view::cf::packing::Packing;

impl Rules<'_, '_> {
    /// Returns the datatype of the joined array, and what its numbers mean.
    pub(super) fn form(&self) -> OrReason<JoinedForm> {
        let alike = self.alike;
        let first = alike.first();
        if alike
            .variables()
            .any(|variable| has_references(&variable.datatype))
        {
            return Err("it contains references".to_owned());
        }
        let times = alike.times();
        if times.len() == alike.specimens.len() && !times.is_empty() {
            return self.times();
        }
        self.refuse_other_sense()?;
        let packing = first.packing_marks();
        let is_packed_alike = alike
            .variables()
            .all(|variable| variable.packing_marks() == packing);
        // The meaning of packing attributes depends on the type of the numbers.
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
            // No float type represents every 64-bit integer.
            let is_long =
                |own: &Datatype| own.size > 4 && matches!(own.class, Class::Integer { .. });
            if types().any(|own| is_long(&own)) {
                return Err(
                    "numbers are packed in some files, and 64-bit integers in others".to_owned(),
                );
            }
            let is_single = |own: &Datatype| own.size == 4 && matches!(own.class, Class::Float(_));
            let is_wide = !types().all(|own| is_single(&own));
            return Ok(JoinedForm {
                datatype: Datatype::ieee(if is_wide { 8 } else { 4 }, ByteOrder::Little),
                meaning: JoinedNumbers::Unpacked,
            });
        }
        self.stored_type()
    }

    /// Rejects a variable whose units, flags or quantity differ between files.
    ///
    /// # Errors
    /// Fails with the reason if the attributes of two files give the numbers different meanings.
    fn refuse_other_sense(&self) -> OrReason<()> {
        let first = self.alike.first();
        for name in std::iter::once(&b"units"[..]).chain(FLAGS).chain(SENSE) {
            let mut others = self.alike.specimens.iter();
            let differs = |other: &&Specimen<'_>| {
                let (own, is_there) = (other.variable, other.variable.mark(name).is_some());
                let may_lack = SENSE.contains(&name) && !(is_there && first.mark(name).is_some());
                !may_lack && !own.is_same_attribute(first, name)
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

    fn stored_type(&self) -> OrReason<JoinedForm> {
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
        Ok(JoinedForm {
            datatype,
            meaning: JoinedNumbers::Stored,
        })
    }

    fn times(&self) -> OrReason<JoinedForm> {
        let family = self.alike.of.family(&self.alike.path);
        let calendar = family.calendar().ok_or_else(|| {
            let calendar = |own: &Variable| own.meaning.time.map(|time| time.calendar());
            let own = calendar(self.alike.first());
            let mut others = self.alike.specimens.iter();
            let other = others.find(|other| calendar(other.variable) != own);
            let other = other.copied().unwrap_or(self.alike.specimens[0]);
            let (one, other) = self.alike.files(other);
            format!("calendars differ ({one}, {other})")
        })?;
        if family.is_kept(&self.alike.of.placed.placement) {
            return self.stored_type();
        }
        if self.alike.all_instants().is_none() {
            let what = "its times, or the times of its bounds, have several units or types";
            return Err(format!(
                "{what}, and some are missing or too many to be read"
            ));
        }
        Ok(JoinedForm {
            datatype: Datatype::integer(8, true, ByteOrder::Little),
            meaning: JoinedNumbers::Times(family.unit(), calendar),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::joined::testing::{
        JoinedTest, Marks, TestElements, TestFile, f64s, i16s, i32s, joined, number, text,
    };

    /// Joins two files with a variable, one after the other.
    fn two(one: (TestElements, Marks<'_>), other: (TestElements, Marks<'_>)) -> JoinedTest {
        let file = |first: f64, (elements, marks): (TestElements, Marks<'_>)| {
            let values = f64s(&[first, first + 1.0]);
            TestFile::new()
                .with_variable("x", &[("x", 2)], values.clone(), &[])
                .with_variable("own", &[("x", 2)], values, &[])
                .with_variable("v", &[("x", 2)], elements, marks)
        };
        joined(vec![("0.nc", file(0.0, one)), ("1.nc", file(2.0, other))])
    }

    #[test]
    fn numbers_that_are_packed_alike_stay_packed() {
        let marks = [("scale_factor", number(f64s(&[0.5])))];
        let shown = two((i16s(&[1, 2]), &marks), (i16s(&[3, 4]), &marks));
        assert_eq!(shown.numbers("v"), [1.0, 2.0, 3.0, 4.0]);
        assert!(shown.has_attribute("v", "scale_factor"));
    }

    #[test]
    fn numbers_that_are_packed_otherwise_are_decoded() {
        let half = [("scale_factor", number(f64s(&[0.5])))];
        let offset = [
            ("add_offset", number(f64s(&[100.0]))),
            ("_FillValue", number(i16s(&[4]))),
        ];
        let shown = two((i16s(&[1, 2]), &half), (i16s(&[3, 4]), &offset));
        let numbers = shown.numbers("v");
        assert_eq!(numbers[..3], [0.5, 1.0, 103.0]);
        assert!(numbers[3].is_nan());
        assert!(!shown.has_attribute("v", "scale_factor"));
        let long = TestElements {
            datatype: h5fs_reader::model::Datatype::integer(8, true, super::ByteOrder::Little),
            bytes: vec![0; 16],
        };
        let shown = two((i16s(&[1, 2]), &half), (long, &[]));
        assert!(
            shown.reason("v").contains("64-bit integers"),
            "{:?}",
            shown.omissions()
        );
    }

    #[test]
    fn valid_ranges_that_differ_are_applied() {
        let [low, high] = [[2], [9]].map(|most| [("valid_max", number(i16s(&most)))]);
        let numbers = two((i16s(&[1, 3]), &low), (i16s(&[1, 3]), &high)).numbers("v");
        assert!(numbers[1].is_nan());
        assert_eq!((numbers[0], numbers[2], numbers[3]), (1.0, 1.0, 3.0));
    }

    #[test]
    fn types_that_differ_become_the_smallest_that_holds_both() {
        let shown = two((i16s(&[1, 2]), &[]), (i32s(&[3, 4]), &[]));
        assert_eq!(
            (shown.numbers("v"), shown.datatype("v").size),
            (vec![1.0, 2.0, 3.0, 4.0], 4)
        );
    }

    #[test]
    fn numbers_that_are_something_else_are_absent() {
        let marks = |name: &'static str, value: &str| [(name, text(value))];
        for (name, one, other, reason) in [
            (
                "units",
                "K",
                "degC",
                "units differ: K in 0.nc, degC in 1.nc",
            ),
            (
                "standard_name",
                "a",
                "b",
                "standard_name differ: a in 0.nc, b in 1.nc",
            ),
            (
                "positive",
                "up",
                "down",
                "positive differ: up in 0.nc, down in 1.nc",
            ),
            (
                "flag_meanings",
                "a b",
                "b a",
                "flag_meanings differ: a b in 0.nc, b a in 1.nc",
            ),
        ] {
            let (one, other) = (marks(name, one), marks(name, other));
            let shown = two((i16s(&[1, 2]), &one), (i16s(&[1, 2]), &other));
            assert_eq!(shown.reason("v"), reason);
            // A file without the attribute agrees with any other file.
            let shown = two((i16s(&[1, 2]), &one), (i16s(&[1, 2]), &[]));
            let may_lack = ["standard_name", "positive"].contains(&name);
            assert_eq!(shown.names().contains(&"v".to_owned()), may_lack, "{name}");
        }
    }
}

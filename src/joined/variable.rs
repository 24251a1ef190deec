//! What becomes of a variable of several members.

mod common_type;
pub(super) mod compared;
mod form;
mod gathered;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::joined::instants::Unit;
use crate::joined::made::{Content, Made, MadeDimension};
use crate::joined::mapped::{Mapped, Part, Recipe};
use crate::joined::members::content::{Known, one_text};
use crate::joined::members::skeleton::{Named, PACKING, Role, VALID};
use crate::joined::paths::{Path, Sure};
use crate::joined::place::coordinate::Coordinate;
use crate::joined::place::extra::is_of_times;
use crate::joined::place::placement::JoinedDimension;
use crate::joined::recoding::with_members;
use crate::joined::variable::compared::{Alike, Compared, Specimen};
use crate::limits;
use crate::model::Datatype;
use crate::model::array::Fill;
use crate::model::datatype::{ByteOrder, Class};
use crate::model::number::ieee_bytes;
use crate::model::shape::product;
use crate::wire::Count;

/// What the stored elements become.
struct Form {
    datatype: Datatype,
    meaning: Meaning,
}

/// The numbers of the joined array.
#[derive(Clone, Copy)]
enum Meaning {
    /// What is stored.
    Stored,
    /// Unpacked numbers.
    Unpacked,
    /// Times in one unit.
    Times(Unit, &'static str),
}

/// Where the variable stands in the joined file.
enum Standing {
    /// Once, as the first member has it.
    Once,
    /// Along joined dimensions; with a new one before all others.
    Along { is_new: bool },
    /// Scalars, repeated along the one joined dimension.
    Repeated,
}

/// The array that a variable becomes; `None` for one that becomes a coordinate.
///
/// # Errors
/// Fails with the reason why it is absent.
pub(super) fn make(compared: &Compared<'_>, path: &Path) -> Sure<Option<Made>> {
    let alike = compared.alike(path);
    let axes = &compared.placed.placement.axes;
    let becomes = |new| is_of_times(new, alike.first());
    if axes
        .iter()
        .filter_map(|axis| axis.new.as_ref())
        .any(becomes)
    {
        return Ok(None);
    }
    let rules = Rules::new(&alike)?;
    rules.made().map(Some)
}

/// A variable, and which of its dimensions are joined.
struct Rules<'a, 'm> {
    alike: &'a Alike<'m>,
    /// The axis of each dimension, and its place there.
    axes: Vec<Option<(usize, usize)>>,
}

impl<'a, 'm> Rules<'a, 'm> {
    fn new(alike: &'a Alike<'m>) -> Sure<Self> {
        let first = alike.specimens[0];
        let names = first.skeleton.names(first.variable);
        let has_other_names = |own: &Specimen<'_>| own.skeleton.names(own.variable) != names;
        if let Some(other) = alike.specimens.iter().find(|own| has_other_names(own)) {
            let (one, other) = alike.files(*other);
            return Err(format!("its dimensions differ ({one}, {other})"));
        }
        let has_other_role = |own: &&Specimen<'_>| own.role() != first.role();
        if let Some(other) = alike.specimens.iter().find(has_other_role) {
            let (one, other) = alike.files(*other);
            return Err(format!(
                "it is a coordinate, or bounds, in some files only ({one}, {other})"
            ));
        }
        let placement = &alike.of.placed.placement;
        if let Some(dim) = alike.dims().find(|dim| placement.apart.contains(&dim.key)) {
            let key = dim.key.escape_ascii();
            return Err(format!("its dimension {key} differs and is not joined"));
        }
        let axes: Vec<_> = alike.dims().map(|dim| placement.find(&dim.key)).collect();
        let mut met = Vec::new();
        for (axis, _) in axes.iter().flatten() {
            if met.contains(axis) {
                return Err("two of its dimensions are joined in one way".to_owned());
            }
            met.push(*axis);
        }
        let rules = Rules { alike, axes };
        rules.refuse_other_lengths()?;
        Ok(rules)
    }

    fn refuse_other_lengths(&self) -> Sure<()> {
        let mut first: Option<(&Path, Vec<u64>)> = None;
        for (member, _, own) in self.alike.each() {
            let lengths = member.lengths_of(own).into_iter().zip(&self.axes);
            let fixed = lengths.filter(|(_, axis)| axis.is_none());
            let fixed: Vec<u64> = fixed.map(|(length, _)| length).collect();
            match &first {
                Some((name, lengths)) if *lengths != fixed => {
                    let (one, other) = (name.escape_ascii(), member.name.escape_ascii());
                    return Err(format!("its lengths differ ({one}, {other})"));
                }
                Some(_) => {}
                None => first = Some((&member.name, fixed)),
            }
        }
        Ok(())
    }

    fn is_joined(&self) -> bool {
        self.axes.iter().any(Option::is_some)
    }

    fn made(&self) -> Sure<Made> {
        let mut refusals = self
            .alike
            .variables()
            .filter_map(|own| own.meaning.refusal.as_ref());
        if let Some(refusal) = refusals.next() {
            return Err(refusal.clone());
        }
        let standing = self.standing()?;
        let form = self.form()?;
        let dims = self.dims(&standing);
        if dims.len() > limits::RANK {
            return Err("it would have too many dimensions".to_owned());
        }
        let (content, datatype) = self.content(&standing, &form, &dims)?;
        let fill = self.fill(&standing, &form, &datatype)?;
        let first = self.alike.first();
        let chunk_shape = self.chunk_shape(&dims);
        Ok(Made {
            path: Path::clone(&self.alike.path),
            datatype,
            dims,
            fill,
            chunk_shape,
            is_scale: first.is_scale || first.role == Role::Coordinate,
            is_dimension: first.role == Role::Dimension,
            attributes: self.attributes(&form),
            content,
        })
    }

    /// Where it stands, by the table of the rules.
    fn standing(&self) -> Sure<Standing> {
        let first = self.alike.first();
        let placement = &self.alike.of.placed.placement;
        let axes = &placement.axes;
        let has_new = axes.iter().any(|axis| axis.new.is_some());
        if self.is_joined() {
            let is_new = has_new && first.role == Role::Data;
            return Ok(Standing::Along { is_new });
        }
        let is_shared = first.role == Role::Coordinate && placement.shared.contains(&first.path);
        if first.role == Role::Dimension || is_shared {
            return Ok(Standing::Once);
        }
        let is_equal = match self.alike.is_equal() {
            Some(false) if self.are_rounded_bounds() => Some(true),
            known => known,
        };
        let is_array = first.role == Role::Data && !first.dims.is_empty();
        if has_new && (is_equal == Some(false) || is_array) {
            return self.along_new();
        }
        match (is_equal, &axes[..]) {
            (Some(true), _) => Ok(Standing::Once),
            (None, _) if self.is_large() => Ok(Standing::Once),
            (None, _) => self.compared_now(),
            (Some(false), [axis]) if first.dims.is_empty() && axis.new.is_none() => {
                Ok(Standing::Repeated)
            }
            (Some(false), _) => Err("it differs from file to file".to_owned()),
        }
    }

    /// What may grow is compared once it is known that it does not.
    fn compared_now(&self) -> Sure<Standing> {
        match self.alike.is_equal_now() {
            Ok(Some(true)) => Ok(Standing::Once),
            Ok(Some(false)) => Err("it differs from file to file".to_owned()),
            Ok(None) => Err("it was not compared in all files".to_owned()),
            Err(error) => Err(format!("it was not compared in all files: {error}")),
        }
    }

    /// Whether it is the bounds of a coordinate that all share, and they differ as little as the values
    /// of that may.
    fn are_rounded_bounds(&self) -> bool {
        let first = self.alike.specimens[0];
        let Role::Bounds(of) = first.variable.role else {
            return false;
        };
        let shared = &self.alike.of.placed.placement.shared;
        let mut bounded = first.skeleton.variables.get(of).into_iter();
        if !bounded.any(|bounded| shared.contains(&bounded.path)) {
            return false;
        }
        let units = first.variable.mark(b"units");
        let mut known: Option<(&Known, Coordinate)> = None;
        self.alike.each().all(|(member, _, own)| {
            let lengths = member.lengths_of(own);
            let (Some(values), [cells, each]) = (member.values.get(own.place), &lengths[..]) else {
                return false;
            };
            if own.variable.mark(b"units") != units {
                return false;
            }
            match &known {
                Some((first, _)) if *first == values => true,
                Some((_, first)) => {
                    let bounds = Coordinate::of(own.variable, values, cells.saturating_mul(*each));
                    let each = usize::try_from(*each).unwrap_or(0);
                    bounds.is_ok_and(|bounds| first.are_same_bounds(&bounds, each))
                }
                None => {
                    let bounds = Coordinate::of(own.variable, values, cells.saturating_mul(*each));
                    known = bounds.ok().map(|bounds| (values, bounds));
                    known.is_some()
                }
            }
        })
    }

    /// Along the new dimension alone: the members of one value of it have the same elements.
    fn along_new(&self) -> Sure<Standing> {
        let axes = &self.alike.of.placed.placement.axes;
        if axes.len() == 1 {
            return Ok(Standing::Along { is_new: true });
        }
        let mut known = HashMap::new();
        for (member, place, own) in self.alike.each() {
            let hash = member.values.get(own.place).and_then(Known::hash);
            let block = place.first().copied();
            if hash.is_none() || *known.entry(block).or_insert(hash) != hash {
                let name = member.name.escape_ascii();
                return Err(format!(
                    "it differs in files of one place, or is too large to be compared ({name})"
                ));
            }
        }
        Ok(Standing::Along { is_new: true })
    }

    /// Whether it is too large to be compared in all members.
    fn is_large(&self) -> bool {
        let first = self.alike.each().next();
        let bytes = first.and_then(|(member, _, own)| {
            let elements = product(&member.lengths_of(own)).ok()?;
            elements.checked_mul(own.variable.datatype.size.into())
        });
        bytes.is_none_or(|bytes| bytes > limits::JOINED_COMPARED)
    }

    fn dims(&self, standing: &Standing) -> Vec<MadeDimension> {
        let placement = &self.alike.of.placed.placement;
        let first = self.alike.each().next();
        let lengths = first
            .map(|(member, _, own)| member.lengths_of(own))
            .unwrap_or_default();
        let own = self
            .alike
            .dims()
            .zip(&self.axes)
            .zip(lengths)
            .map(|((dim, axis), length)| {
                let joined = axis.and_then(|at| placement.dim(at));
                MadeDimension {
                    key: Path::clone(&dim.key),
                    has_name: dim.has_name,
                    length: joined.map_or(length, JoinedDimension::length),
                }
            });
        let added = match standing {
            Standing::Once => Vec::new(),
            Standing::Repeated => self.axis_dims(|new| !new),
            Standing::Along { is_new: true } => self.axis_dims(|new| new),
            Standing::Along { is_new: false } => Vec::new(),
        };
        added.into_iter().chain(own).collect()
    }

    /// The first dimension of each axis that is new or not.
    fn axis_dims(&self, wanted: impl Fn(bool) -> bool) -> Vec<MadeDimension> {
        let axes = self.alike.of.placed.placement.axes.iter();
        let axes = axes.filter(|axis| wanted(axis.new.is_some()));
        let dims = axes.filter_map(|axis| axis.dims.first());
        dims.map(|dim| MadeDimension {
            key: Path::clone(&dim.key),
            has_name: !dim.key.contains(&0),
            length: dim.length(),
        })
        .collect()
    }

    fn content(
        &self,
        standing: &Standing,
        form: &Form,
        dims: &[MadeDimension],
    ) -> Sure<(Content, Datatype)> {
        let first = self.alike.first();
        if first.role == Role::Dimension {
            return Ok((Content::Fill, form.datatype.clone()));
        }
        let shape: Vec<u64> = dims.iter().map(|dim| dim.length).collect();
        if let Standing::Repeated = standing {
            return self.repeated(&shape, form);
        }
        let is_small = first.role != Role::Data;
        if matches!(form.meaning, Meaning::Times(..)) || is_small && self.are_known() {
            return self.gathered(standing, form, &shape);
        }
        let (mapped, datatype) = self.mapped(standing, form)?;
        Ok((Content::Mapped(mapped), datatype))
    }

    fn laid(&self, added: usize, once: bool, parts: HashMap<usize, Part>) -> Mapped {
        let new = (0..added).map(|axis| Some((axis, 0)));
        Mapped {
            placed: Arc::clone(self.alike.of.placed),
            axes: new.chain(self.axes.iter().copied()).collect(),
            added,
            parts,
            only: once.then(|| self.first_member()).flatten(),
        }
    }

    /// The place in the list of the first member that has it.
    fn first_member(&self) -> Option<usize> {
        let number = self.alike.each().next()?.0.number;
        let members = self.alike.of.members;
        let mut all = self.alike.of.placed.members.iter();
        all.find(|&&member| members.list[member].number == number)
            .copied()
    }

    fn mapped(&self, standing: &Standing, form: &Form) -> Sure<(Mapped, Datatype)> {
        let has_pointers = form.datatype.has_pointers();
        let widened = if has_pointers {
            let own = with_members(&form.datatype);
            Some(own.ok_or_else(|| "it holds what leads elsewhere".to_owned())?)
        } else {
            None
        };
        let (datatype, spans) = match widened {
            Some((datatype, spans)) => (datatype, Some(Arc::from(spans))),
            None => (form.datatype.clone(), None),
        };
        let parts = self.alike.specimens.iter().map(|own| {
            let recipe = match (&spans, form.meaning, &own.variable.meaning.packing) {
                (Some(spans), ..) => Recipe::Pointers(Arc::clone(spans)),
                (None, Meaning::Unpacked, Some(packing)) => {
                    Recipe::Unpacked(Arc::new(packing.clone()), datatype.size as usize)
                }
                _ if is_other_text(&own.variable.datatype, &datatype) => Recipe::Padded,
                _ => Recipe::Plain,
            };
            let variable = own.place;
            (own.number, Part { variable, recipe })
        });
        let added = usize::from(matches!(standing, Standing::Along { is_new: true }));
        let once = matches!(standing, Standing::Once);
        Ok((self.laid(added, once, parts.collect()), datatype))
    }

    /// The value of places that no member has.
    fn fill(&self, standing: &Standing, form: &Form, datatype: &Datatype) -> Sure<Fill> {
        let first = self.alike.first();
        let own = || {
            let is_same = first.datatype == *datatype;
            if is_same {
                first.fill.clone()
            } else {
                Fill::Zero
            }
        };
        let is_real = matches!(datatype.class, Class::Float(_));
        let is_whole = matches!(standing, Standing::Once | Standing::Repeated);
        if is_whole || first.role == Role::Dimension {
            return Ok(own());
        }
        let none = || {
            let why = if self.alike.is_everywhere() {
                "not at all places"
            } else {
                "not in all files"
            };
            format!("{why}, and without a fill value")
        };
        if let Meaning::Unpacked = form.meaning {
            return nan(datatype).ok_or_else(none);
        }
        let is_short = self
            .alike
            .each()
            .any(|(member, _, own)| member.short(own.place).is_some());
        let has_holes = self.has_holes(standing);
        if !has_holes && !is_short {
            return Ok(own());
        }
        let marked = first
            .mark(b"_FillValue")
            .filter(|mark| mark.datatype == *datatype);
        match marked {
            Some(mark) => Ok(Fill::Value(Arc::clone(&mark.elements))),
            None if !has_holes => Ok(own()),
            None if is_real => nan(datatype).ok_or_else(none),
            None => Err(none()),
        }
    }

    /// Whether there are places along its axes at which no file has it.
    fn has_holes(&self, standing: &Standing) -> bool {
        let axes = &self.alike.of.placed.placement.axes;
        let mut own: Vec<usize> = self.axes.iter().flatten().map(|(axis, _)| *axis).collect();
        if let Standing::Along { is_new: true } = standing {
            own.extend((0..axes.len()).filter(|&axis| axes[axis].new.is_some()));
        }
        let blocks = own.iter().map(|&axis| axes[axis].blocks.max(1));
        let all = blocks.fold(1_usize, Count::times);
        let places = self.alike.each().map(|(_, place, _)| {
            let blocks = own.iter().map(|&axis| place.get(axis).copied());
            blocks.collect::<Vec<_>>()
        });
        places.collect::<HashSet<_>>().len() < all
    }

    /// The shape that the chunks of most members have, where these are stored so.
    fn chunk_shape(&self, dims: &[MadeDimension]) -> Option<Vec<u64>> {
        let mut counts: HashMap<&Vec<u64>, usize> = HashMap::new();
        for (_, _, own) in self.alike.each() {
            if let Some(chunk) = &own.variable.chunk_shape {
                *counts.entry(chunk).or_default() += 1;
            }
        }
        let (chunk, count) = counts
            .into_iter()
            .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)))?;
        if count * 2 < self.alike.count() {
            return None;
        }
        let added = dims.len().checked_sub(chunk.len())?;
        let own = std::iter::repeat_n(1, added).chain(chunk.iter().copied());
        Some(
            own.zip(dims)
                .map(|(chunk, dim)| chunk.min(dim.length.max(1)))
                .collect(),
        )
    }

    /// The attributes that all members have alike, without those that mean nothing any more.
    fn attributes(&self, form: &Form) -> Vec<Named> {
        let mut own = self.alike.of.attributes(&self.alike.path);
        let first = self.alike.first();
        match form.meaning {
            Meaning::Stored => {
                // What all members say in other words is not dropped.
                for name in [&b"units"[..], b"calendar"] {
                    let is_there = own.iter().any(|(own, _)| own == name);
                    if let (Some(mark), false) = (first.mark(name), is_there) {
                        own.push((name.to_vec(), mark.clone()));
                    }
                }
            }
            Meaning::Unpacked => own.retain(|(name, _)| !is_of_packing(name)),
            Meaning::Times(unit, calendar) => {
                let is_stale =
                    |name: &[u8]| is_of_packing(name) || matches!(name, b"units" | b"calendar");
                own.retain(|(name, _)| !is_stale(name));
                let is_bounds =
                    matches!(first.role, Role::Bounds(_)) && first.mark(b"units").is_none();
                if !is_bounds {
                    own.push((b"units".to_vec(), one_text(unit.since().as_bytes())));
                    own.push((b"calendar".to_vec(), one_text(calendar.as_bytes())));
                }
            }
        }
        let placement = &self.alike.of.placed.placement;
        let axis = placement
            .find(&self.alike.path)
            .and_then(|(axis, _)| placement.axes.get(axis));
        if axis.is_some_and(|axis| axis.overlaps) {
            own.push((b"_h5fs_overlap".to_vec(), one_text(b"files overlap here")));
        }
        own
    }
}

fn is_of_packing(name: &[u8]) -> bool {
    PACKING.iter().chain(&VALID).any(|own| *own == name)
}

/// Whether texts of one length become those of another.
fn is_other_text(own: &Datatype, datatype: &Datatype) -> bool {
    let is_text = |own: &Datatype| matches!(own.class, Class::String { .. });
    is_text(own) && is_text(datatype) && own != datatype
}

/// NaN in a type of IEEE 754.
fn nan(datatype: &Datatype) -> Option<Fill> {
    let Class::Float(format) = &datatype.class else {
        return None;
    };
    ieee_bytes(datatype.size, format)?;
    let mut bytes = match datatype.size {
        2 => 0x7E00_u16.to_le_bytes().to_vec(),
        4 => f32::NAN.to_le_bytes().to_vec(),
        8 => f64::NAN.to_le_bytes().to_vec(),
        _ => return None,
    };
    if format.order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(Fill::Value(bytes.into()))
}

//! Joins one variable of the members of a kind.

mod agreement;
mod common_type;
pub(super) mod comparison;
mod dependent;
mod form;
mod in_memory;
mod names;
mod recoded_times;
mod refusal;
mod related_times;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5fs_reader::model::Datatype;
use h5fs_reader::model::array::Fill;
use h5fs_reader::model::datatype::{ByteOrder, Class, StringPadding};
use h5fs_reader::model::number::ieee_bytes;
use h5fs_reader::wire::Count;

use crate::element_recoding::add_pointer_prefixes;
use crate::instants::JoinedTimeUnit;
use crate::joined_array::{ArrayContent, JoinedArray, OutputDimension};
use crate::limits;
use crate::member_mapping::{MappedArray, MappedPart, RecodingPlan};
use crate::members::content::text_attribute;
use crate::members::convention::ElementRelation;
use crate::members::skeleton::{
    NamedAttribute, PACKING_ATTRIBUTES, VALID_RANGE_ATTRIBUTES, VariableRole,
};
use crate::paths::{Omission, OmissionResult, Path};
use crate::placing::new_dimension::is_new_dimension_time;
use crate::placing::placement::JoinedDimension;
use crate::variable::comparison::{MemberComparison, SharedVariable, SkeletonVariable};
use crate::variable::names::MergedNames;
use crate::variable::refusal::check_convention;

/// The datatype of a joined array, and the meaning of its numbers.
struct JoinedForm {
    datatype: Datatype,
    meaning: NumberConversion,
}

/// The conversion of the stored numbers of the members to the numbers of a joined array.
#[derive(Clone, Copy)]
enum NumberConversion {
    /// The stored numbers, unchanged.
    Stored,
    /// The unpacked numbers.
    Unpacked,
    /// Times in this unit and calendar, converted from the units of each file.
    Times(JoinedTimeUnit, &'static str),
}

/// How the elements of the members are arranged in the joined array.
enum VariablePlacement {
    /// The elements of the first member only, because all members have equal elements.
    FirstMemberOnly,
    /// The elements of all members, arranged along the joined dimensions. If `is_new` is set, a new
    /// dimension is the first dimension of the array.
    AlongAxes { is_new: bool },
    /// A scalar of each member, repeated along the only joined dimension.
    RepeatedScalar,
}

/// Returns the joined array of the variable at `path`. Returns `None` if the variable becomes the
/// coordinate of a new dimension.
///
/// # Errors
/// Fails with the reason if the array must be absent.
pub(super) fn join_variable(
    compared: &MemberComparison<'_>,
    path: &Path,
    omissions: &mut Vec<Omission>,
) -> OmissionResult<Option<JoinedArray>> {
    let alike = compared.variable(path);
    let axes = &compared.placed_members.placement.axes;
    let becomes = |new| is_new_dimension_time(new, alike.first_variable());
    if axes
        .iter()
        .filter_map(|axis| axis.new_dimension.as_ref())
        .any(becomes)
    {
        return Ok(None);
    }
    check_convention(&alike)?;
    let has_names = alike.first_variable().convention.relation == ElementRelation::Names;
    if has_names && compared.placed_members.members.len() > 1 {
        let names = MergedNames::merge(&alike)?;
        if !names.are_equal {
            return names.build_array(&alike).map(Some);
        }
    }
    let rules = VariableJoin::new(&alike)?;
    let (made, remark) = rules.build_array()?;
    omissions.extend(remark.map(|reason| Omission {
        subject: format!("/{}", path.escape_ascii()),
        reason,
    }));
    Ok(Some(made))
}

/// A variable of several members, and the joined dimensions among its dimensions.
struct VariableJoin<'a, 'm> {
    shared_variable: &'a SharedVariable<'m>,
    /// For each dimension of the variable, the index of its join axis and its index in the axis.
    /// `None` if the dimension is not joined.
    dimension_axes: Vec<Option<(usize, usize)>>,
}

impl<'a, 'm> VariableJoin<'a, 'm> {
    fn new(alike: &'a SharedVariable<'m>) -> OmissionResult<Self> {
        let first = alike.skeleton_variables[0];
        let names = first.skeleton.dimension_names(first.variable);
        let has_other_names =
            |own: &SkeletonVariable<'_>| own.skeleton.dimension_names(own.variable) != names;
        if let Some(other) = alike
            .skeleton_variables
            .iter()
            .find(|own| has_other_names(own))
        {
            let (one, other) = alike.differing_file_names(*other);
            return Err(format!("its dimensions differ ({one}, {other})"));
        }
        let has_other_role =
            |own: &&SkeletonVariable<'_>| own.resolved_role() != first.resolved_role();
        if let Some(other) = alike.skeleton_variables.iter().find(has_other_role) {
            let (one, other) = alike.differing_file_names(*other);
            return Err(format!(
                "it is a coordinate, or bounds, in some files only ({one}, {other})"
            ));
        }
        let placement = &alike.comparison.placed_members.placement;
        if let Some(dim) = alike
            .dims()
            .find(|dim| placement.unjoined_dimensions.contains(&dim.key))
        {
            let key = dim.key.escape_ascii();
            return Err(format!("its dimension {key} differs and is not joined"));
        }
        let axes: Vec<_> = alike
            .dims()
            .map(|dim| placement.find_dimension(&dim.key))
            .collect();
        let mut met = Vec::new();
        for (axis, _) in axes.iter().flatten() {
            if met.contains(axis) {
                return Err("two of its dimensions are the same joined dimension".to_owned());
            }
            met.push(*axis);
        }
        let rules = VariableJoin {
            shared_variable: alike,
            dimension_axes: axes,
        };
        rules.check_lengths()?;
        Ok(rules)
    }

    fn check_lengths(&self) -> OmissionResult<()> {
        let mut first: Option<(&Path, Vec<u64>)> = None;
        for (member, _, own) in self.shared_variable.occurrences() {
            let lengths = member
                .variable_lengths(own)
                .into_iter()
                .zip(&self.dimension_axes);
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
        self.dimension_axes.iter().any(Option::is_some)
    }

    /// Returns the joined array, and a warning to report with it.
    fn build_array(&self) -> OmissionResult<(JoinedArray, Option<String>)> {
        let mut refusals = self
            .shared_variable
            .variables()
            .filter_map(|own| own.meaning.refusal.as_ref());
        if let Some(refusal) = refusals.next() {
            return Err(refusal.clone());
        }
        let arrangement = self.placement()?;
        let related = self.recoded_type(&arrangement)?;
        let form = match &related {
            Some(related) => JoinedForm {
                datatype: related.datatype.clone(),
                meaning: NumberConversion::Stored,
            },
            None => self.joined_form()?,
        };
        let remark = self.check_agreement(&arrangement)?;
        let dims = self.dims(&arrangement);
        if dims.len() > limits::RANK {
            return Err("it would have too many dimensions".to_owned());
        }
        let (content, datatype) = match related {
            Some(related) => (self.map_dependent(&related, &arrangement), related.datatype),
            None => self.build_content(&arrangement, &form, &dims)?,
        };
        let fill = self.fill_value(&arrangement, &form, &datatype)?;
        let first = self.shared_variable.first_variable();
        let chunk_shape = self.chunk_shape(&dims);
        let made = JoinedArray {
            path: Path::clone(&self.shared_variable.path),
            datatype,
            dims,
            fill,
            chunk_shape,
            is_scale: first.is_scale || first.role == VariableRole::Coordinate,
            is_scale_without_values: first.role == VariableRole::Dimension,
            attributes: self.attributes(&form),
            reference_attributes: first.convention.reference.iter().cloned().collect(),
            content,
        };
        Ok((made, remark))
    }

    /// Returns how the elements of the members are arranged, or the reason why the array must be
    /// absent.
    fn placement(&self) -> OmissionResult<VariablePlacement> {
        let first = self.shared_variable.first_variable();
        let placement = &self.shared_variable.comparison.placed_members.placement;
        let axes = &placement.axes;
        let has_new = axes.iter().any(|axis| axis.new_dimension.is_some());
        if self.is_joined() {
            let is_new = has_new && first.role == VariableRole::Data;
            return Ok(VariablePlacement::AlongAxes { is_new });
        }
        let is_shared = first.role == VariableRole::Coordinate
            && placement.shared_dimensions.contains(&first.path);
        if first.role == VariableRole::Dimension || is_shared {
            return Ok(VariablePlacement::FirstMemberOnly);
        }
        let is_equal = self.are_elements_equal();
        let is_array = first.role == VariableRole::Data && !first.dims.is_empty();
        if has_new && (is_equal == Some(false) || is_array) {
            return Ok(VariablePlacement::AlongAxes { is_new: true });
        }
        match (is_equal, &axes[..]) {
            (None | Some(true), _) => Ok(VariablePlacement::FirstMemberOnly),
            (Some(false), [axis])
                if first.dims.is_empty() && axis.new_dimension.is_none() && !axis.has_tables =>
            {
                Ok(VariablePlacement::RepeatedScalar)
            }
            (Some(false), _) => Err("it differs between files".to_owned()),
        }
    }

    fn dims(&self, arrangement: &VariablePlacement) -> Vec<OutputDimension> {
        let placement = &self.shared_variable.comparison.placed_members.placement;
        let first = self.shared_variable.occurrences().next();
        let lengths = first
            .map(|(member, _, own)| member.variable_lengths(own))
            .unwrap_or_default();
        let own = self
            .shared_variable
            .dims()
            .zip(&self.dimension_axes)
            .zip(lengths)
            .map(|((dim, axis), length)| {
                let joined = axis.and_then(|at| placement.joined_dimension(at));
                OutputDimension {
                    key: Path::clone(&dim.key),
                    has_name: dim.has_name,
                    length: joined.map_or(length, JoinedDimension::length),
                    is_joined: joined.is_some(),
                }
            });
        let added = match arrangement {
            VariablePlacement::FirstMemberOnly => Vec::new(),
            VariablePlacement::RepeatedScalar => self.axis_dims(|new| !new),
            VariablePlacement::AlongAxes { is_new: true } => self.axis_dims(|new| new),
            VariablePlacement::AlongAxes { is_new: false } => Vec::new(),
        };
        added.into_iter().chain(own).collect()
    }

    /// Returns the first dimension of each axis for which `wanted` returns true. The argument of
    /// `wanted` states whether the axis has a new dimension.
    fn axis_dims(&self, wanted: impl Fn(bool) -> bool) -> Vec<OutputDimension> {
        let axes = self
            .shared_variable
            .comparison
            .placed_members
            .placement
            .axes
            .iter();
        let axes = axes.filter(|axis| wanted(axis.new_dimension.is_some()));
        let dims = axes.filter_map(|axis| axis.dims.first());
        dims.map(|dim| OutputDimension {
            key: Path::clone(&dim.key),
            has_name: !dim.key.contains(&0),
            length: dim.length(),
            is_joined: true,
        })
        .collect()
    }

    fn build_content(
        &self,
        arrangement: &VariablePlacement,
        form: &JoinedForm,
        dims: &[OutputDimension],
    ) -> OmissionResult<(ArrayContent, Datatype)> {
        let first = self.shared_variable.first_variable();
        if first.role == VariableRole::Dimension {
            return Ok((ArrayContent::AllFill, form.datatype.clone()));
        }
        let shape: Vec<u64> = dims.iter().map(|dim| dim.length).collect();
        if let VariablePlacement::RepeatedScalar = arrangement {
            return self.repeat_scalars(&shape, form);
        }
        let is_small = first.role != VariableRole::Data;
        if matches!(form.meaning, NumberConversion::Times(..))
            || is_small && self.has_known_elements()
        {
            return self.gather_elements(arrangement, form, &shape);
        }
        let (mapped, datatype) = self.mapped_array(arrangement, form)?;
        Ok((ArrayContent::Mapped(mapped), datatype))
    }

    fn map_members(&self, added: usize, parts: HashMap<usize, MappedPart>) -> MappedArray {
        let new = (0..added).map(|axis| Some((axis, 0)));
        MappedArray {
            placed_members: Arc::clone(self.shared_variable.comparison.placed_members),
            dimension_axes: new.chain(self.dimension_axes.iter().copied()).collect(),
            new_dimension_count: added,
            parts_by_skeleton: parts,
        }
    }

    fn mapped_array(
        &self,
        arrangement: &VariablePlacement,
        form: &JoinedForm,
    ) -> OmissionResult<(MappedArray, Datatype)> {
        let has_pointers = form.datatype.has_pointers();
        let widened = if has_pointers {
            let own = add_pointer_prefixes(&form.datatype);
            Some(own.ok_or_else(|| "it contains references or links to other objects".to_owned())?)
        } else {
            None
        };
        let (datatype, spans) = match widened {
            Some((datatype, spans)) => (datatype, Some(Arc::from(spans))),
            None => (form.datatype.clone(), None),
        };
        let parts = self.shared_variable.skeleton_variables.iter().map(|own| {
            let recipe = match (&spans, form.meaning, &own.variable.meaning.packing) {
                (Some(spans), ..) => RecodingPlan::PrefixPointers(Arc::clone(spans)),
                (None, NumberConversion::Unpacked, Some(packing)) => {
                    RecodingPlan::Unpack(Arc::new(packing.clone()), datatype.size as usize)
                }
                _ if should_pad_text(&own.variable.datatype, &datatype) => {
                    RecodingPlan::PadText(padding_byte(&datatype))
                }
                _ => RecodingPlan::Unchanged,
            };
            let variable = own.variable_index;
            (
                own.skeleton_index,
                MappedPart {
                    variable_index: variable,
                    recoding_plan: recipe,
                },
            )
        });
        let added = usize::from(matches!(
            arrangement,
            VariablePlacement::AlongAxes { is_new: true }
        ));
        Ok((self.map_members(added, parts.collect()), datatype))
    }

    /// Returns the fill value of the joined array: the value of its elements that no member
    /// provides.
    fn fill_value(
        &self,
        arrangement: &VariablePlacement,
        form: &JoinedForm,
        datatype: &Datatype,
    ) -> OmissionResult<Fill> {
        let first = self.shared_variable.first_variable();
        let own = || {
            let is_same = first.datatype == *datatype;
            if is_same {
                first.fill.clone()
            } else {
                Fill::Zero
            }
        };
        let is_real = matches!(datatype.class, Class::Float(_));
        let is_whole = matches!(
            arrangement,
            VariablePlacement::FirstMemberOnly | VariablePlacement::RepeatedScalar
        );
        if is_whole || first.role == VariableRole::Dimension {
            return Ok(own());
        }
        let none = || {
            let why = if self.shared_variable.is_in_all_members() {
                "not at all places"
            } else {
                "not in all files"
            };
            format!("{why}, and without a fill value")
        };
        if let NumberConversion::Unpacked = form.meaning {
            return nan_fill(datatype).ok_or_else(none);
        }
        if !self.has_holes(arrangement) {
            return Ok(own());
        }
        let marked = first
            .attribute(b"_FillValue")
            .filter(|mark| mark.datatype == *datatype);
        match marked {
            Some(mark) => Ok(Fill::Value(Arc::clone(&mark.elements))),
            None if is_real => nan_fill(datatype).ok_or_else(none),
            None => Err(none()),
        }
    }

    /// Returns whether the joined array has elements that no file provides, because the files of
    /// some block lack the variable.
    fn has_holes(&self, arrangement: &VariablePlacement) -> bool {
        let axes = &self
            .shared_variable
            .comparison
            .placed_members
            .placement
            .axes;
        let own = self.variable_axes(arrangement);
        let blocks = own.iter().map(|&axis| axes[axis].block_count.max(1));
        let all = blocks.fold(1_usize, Count::times);
        let places = self.shared_variable.occurrences().map(|(_, place, _)| {
            let blocks = own.iter().map(|&axis| place.get(axis).copied());
            blocks.collect::<Vec<_>>()
        });
        places.collect::<HashSet<_>>().len() < all
    }

    /// Returns the indices of the axes along which the variable is joined.
    fn variable_axes(&self, arrangement: &VariablePlacement) -> Vec<usize> {
        let axes = &self
            .shared_variable
            .comparison
            .placed_members
            .placement
            .axes;
        let mut own: Vec<usize> = self
            .dimension_axes
            .iter()
            .flatten()
            .map(|(axis, _)| *axis)
            .collect();
        if let VariablePlacement::AlongAxes { is_new: true } = arrangement {
            own.extend((0..axes.len()).filter(|&axis| axes[axis].new_dimension.is_some()));
        }
        own
    }

    /// Returns the most frequent chunk shape of the variable, if at least half of the members use
    /// it.
    fn chunk_shape(&self, dims: &[OutputDimension]) -> Option<Vec<u64>> {
        let mut counts: HashMap<&Vec<u64>, usize> = HashMap::new();
        for (_, _, own) in self.shared_variable.occurrences() {
            if let Some(chunk) = &own.variable.chunk_shape {
                *counts.entry(chunk).or_default() += 1;
            }
        }
        let (chunk, count) = counts
            .into_iter()
            .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)))?;
        if count * 2 < self.shared_variable.member_count() {
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

    /// Returns the attributes that are equal in all members. Excludes attributes that do not apply
    /// to the joined numbers.
    fn attributes(&self, form: &JoinedForm) -> Vec<NamedAttribute> {
        let mut own = self
            .shared_variable
            .comparison
            .attributes(&self.shared_variable.path);
        let first = self.shared_variable.first_variable();
        match form.meaning {
            NumberConversion::Stored => {
                // If all members have equivalent attributes, one of them is kept.
                for name in [&b"units"[..], b"calendar"] {
                    let is_there = own.iter().any(|(own, _)| own == name);
                    if let (Some(mark), false) = (first.attribute(name), is_there) {
                        own.push((name.to_vec(), mark.clone()));
                    }
                }
            }
            NumberConversion::Unpacked => own.retain(|(name, _)| !is_packing_attribute(name)),
            NumberConversion::Times(unit, calendar) => {
                own.retain(|(name, _)| !is_time_attribute(name));
                let is_bounds = matches!(first.role, VariableRole::Bounds(_))
                    && first.attribute(b"units").is_none();
                if !is_bounds {
                    own.push((
                        b"units".to_vec(),
                        text_attribute(unit.units_text().as_bytes()),
                    ));
                    own.push((b"calendar".to_vec(), text_attribute(calendar.as_bytes())));
                }
            }
        }
        let placement = &self.shared_variable.comparison.placed_members.placement;
        let axis = placement
            .find_dimension(&self.shared_variable.path)
            .and_then(|(axis, _)| placement.axes.get(axis));
        if axis.is_some_and(|axis| axis.has_overlap) {
            own.push((
                b"_h5fs_overlap".to_vec(),
                text_attribute(b"files overlap here"),
            ));
        }
        own
    }
}

/// Returns whether an attribute defines how stored numbers become times.
pub(super) fn is_time_attribute(name: &[u8]) -> bool {
    is_packing_attribute(name) || matches!(name, b"units" | b"calendar" | b"dtype")
}

fn is_packing_attribute(name: &[u8]) -> bool {
    PACKING_ATTRIBUTES
        .iter()
        .chain(&VALID_RANGE_ATTRIBUTES)
        .any(|own| *own == name)
}

/// Returns whether the texts of a member must be padded to the length of `datatype`.
fn should_pad_text(own: &Datatype, datatype: &Datatype) -> bool {
    let is_text = |own: &Datatype| matches!(own.class, Class::String { .. });
    is_text(own) && is_text(datatype) && own != datatype
}

/// Returns the padding byte of a fixed-length text type.
fn padding_byte(datatype: &Datatype) -> u8 {
    match datatype.class {
        Class::String {
            padding: StringPadding::SpacePadded,
            ..
        } => b' ',
        _ => 0,
    }
}

/// Returns NaN as a fill value of an IEEE 754 type, or `None` for any other type.
fn nan_fill(datatype: &Datatype) -> Option<Fill> {
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

#[cfg(test)]
mod tests {
    use crate::testing::{
        JoinedTest, TestFile, days, f64s, i16s, i32s, join_as_named, join_files, number,
    };

    /// Joins three files of two days each. `own(file, number)` adds variables to file `number`.
    fn join_three_files(own: impl Fn(TestFile, i32) -> TestFile) -> JoinedTest {
        let files = ["0.nc", "1.nc", "2.nc"].into_iter().zip(0..);
        let files = files.map(|(name, n)| {
            let first = f64::from(n) * 2.0;
            let days_of = f64s(&[first, first + 1.0]);
            let file = TestFile::new()
                .with_variable("time", &[("time", 2)], days_of.clone(), &days(&[]))
                .with_variable("v", &[("time", 2)], days_of, &[]);
            (name, own(file, n))
        });
        join_files(files.collect())
    }

    #[test]
    fn missing_variables_are_filled() {
        let mark = [("_FillValue", number(i16s(&[-9])))];
        let shown = join_three_files(|file, n| match n {
            1 => file,
            n => file
                .with_variable("real", &[("time", 2)], f64s(&[f64::from(n); 2]), &[])
                .with_variable("marked", &[("time", 2)], i16s(&[1, 2]), &mark)
                .with_variable("whole", &[("time", 2)], i32s(&[1, 2]), &[]),
        });
        let real = shown.numbers("real");
        assert!(real[2].is_nan() && real[3].is_nan());
        assert_eq!((&real[..2], &real[4..]), (&[0.0; 2][..], &[2.0; 2][..]));
        assert_eq!(shown.numbers("marked"), [1.0, 2.0, -9.0, -9.0, 1.0, 2.0]);
        assert_eq!(
            shown.reason("whole"),
            "not in all files, and without a fill value"
        );
    }

    #[test]
    fn scalars_that_differ_are_repeated() {
        let shown = join_three_files(|file, n| {
            file.with_variable("orbit", &[], i32s(&[n]), &[])
                .with_variable("height", &[], f64s(&[2.5]), &[])
        });
        assert_eq!(shown.numbers("orbit"), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
        assert_eq!(
            (shown.dims("height"), shown.numbers("height")),
            (vec![], vec![2.5])
        );
    }

    #[test]
    fn arrays_that_differ_and_are_not_joined_are_absent() {
        let shown = join_three_files(|file, n| {
            file.with_variable("x", &[("x", 2)], f64s(&[0.0, 1.0]), &[])
                .with_variable("mask", &[("x", 2)], i32s(&[0, n]), &[])
                .with_variable("same", &[("x", 2)], i32s(&[0, 1]), &[])
        });
        assert_eq!(shown.reason("mask"), "it differs between files");
        assert_eq!(shown.numbers("same"), [0.0, 1.0]);
    }

    #[test]
    fn dimensions_and_lengths_that_differ_are_absent() {
        let shown = join_three_files(|file, n| {
            let long = vec![0; if n == 1 { 3 } else { 2 }];
            let name = if n == 1 { "b" } else { "a" };
            file.with_variable("length", &[("time", 2), ("z", 1)], i32s(&[0; 2]), &[])
                .with_variable("lengths", &[("", long.len() as u64)], i32s(&long), &[])
                .with_variable("names", &[("time", 2), (name, 1)], i32s(&[0; 2]), &[])
        });
        assert!(
            shown
                .reason("names")
                .starts_with("its dimensions differ (0.nc, 1.nc)")
        );
        assert!(
            shown.reason("lengths").starts_with("its lengths differ"),
            "{:?}",
            shown.omissions()
        );
        assert_eq!(shown.dims("length"), [6, 1]);
    }

    /// The expected values are the ones that netCDF4 reads from the first file.
    #[test]
    fn a_short_variable_is_padded_as_in_netcdf() {
        let file = |first: f64, own: &dyn Fn(TestFile) -> TestFile| {
            let times = f64s(&[first, first + 1.0]);
            own(TestFile::new()
                .with_unlimited_variable("time", &[("time", 2)], times.clone(), &days(&[]))
                .with_unlimited_variable("v", &[("time", 2)], times, &[]))
        };
        let short = file(0.0, &|file| {
            file.with_unlimited_variable("a", &[("time", 1)], i16s(&[5]), &[])
                .with_unlimited_variable("b", &[("time", 1)], f64s(&[5.0]), &[])
                .with_unlimited_variable("c", &[("time", 0)], i32s(&[]), &[])
        });
        let whole = file(2.0, &|file| {
            file.with_unlimited_variable("a", &[("time", 2)], i32s(&[6, 7]), &[])
                .with_unlimited_variable("b", &[("time", 2)], f64s(&[6.0, 7.0]), &[])
                .with_unlimited_variable("c", &[("time", 2)], i32s(&[6, 7]), &[])
        });
        let shown = join_files(vec![("0.nc", short), ("1.nc", whole)]);
        assert_eq!(shown.numbers("a"), [5.0, -32_767.0, 6.0, 7.0]);
        assert_eq!(shown.numbers("b"), [5.0, 15.0 * 2_f64.powi(119), 6.0, 7.0]);
        assert_eq!(
            shown.numbers("c"),
            [-2_147_483_647.0, -2_147_483_647.0, 6.0, 7.0]
        );
    }

    #[test]
    fn a_coordinate_of_only_some_files_is_omitted() {
        let shown = join_three_files(|file, n| {
            let dim = if n == 1 { "time" } else { "y" };
            file.with_variable("y", &[(dim, 2)], f64s(&[0.0, 1.0]), &[])
        });
        assert!(
            shown.reason("y").contains("differ"),
            "{:?}",
            shown.omissions()
        );
    }

    #[test]
    fn stacked_files_have_a_new_dimension() {
        let file = |n: i32| {
            TestFile::new()
                .with_variable("x", &[("x", 2)], f64s(&[0.0, 1.0]), &[])
                .with_variable("v", &[("x", 2)], i32s(&[n, n]), &[])
                .with_variable("run", &[], i32s(&[n]), &[])
        };
        let files = vec![("r9.nc", file(9)), ("r10.nc", file(10))];
        for shown in [
            join_files(files.clone()),
            join_as_named("joined[*,join=file]", files),
        ] {
            assert_eq!(shown.numbers("file"), [9.0, 10.0]);
            assert_eq!(shown.numbers("v"), [9.0, 9.0, 10.0, 10.0]);
            assert_eq!(shown.numbers("run"), [9.0, 10.0]);
            assert_eq!(shown.dims("x"), [2]);
        }
    }
}

//! Collects the elements of a joined array in memory. This applies to coordinates, bounds, times
//! and scalars.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::array::Fill;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::shape::product;
use h5fs_reader::wire::{Count, to_u64, to_usize};

use crate::joined_array::ArrayContent;
use crate::limits;
use crate::member_mapping::RecodingPlan;
use crate::members::content::{ElementSummary, text_type};
use crate::members::skeleton::Variable;
use crate::members::{Member, Members};
use crate::paths::OmissionResult;
use crate::variable::comparison::{SharedVariable, SkeletonVariable};
use crate::variable::{
    JoinedForm, NumberConversion, VariableJoin, VariablePlacement, nan_fill, padding_byte,
};

impl VariableJoin<'_, '_> {
    pub(super) fn has_known_elements(&self) -> bool {
        let mut all = self.shared_variable.occurrences();
        all.all(|(member, _, own)| {
            member
                .summaries
                .get(own.variable_index)
                .is_some_and(|known| known.all_elements().is_some())
        })
    }

    /// Converts the elements of a member to the form of the joined array. Each converted element
    /// has `size` bytes.
    fn convert_member(
        &self,
        (member, own): (&Member, SkeletonVariable<'_>),
        form: &JoinedForm,
        size: usize,
    ) -> OmissionResult<Vec<u8>> {
        if let NumberConversion::Times(unit, _) = form.meaning {
            let times =
                SharedVariable::member_instants(member, own).ok_or_else(unread_elements_reason)?;
            return unit.numbers(&times).map_err(|error| error.to_string());
        }
        let Some(ElementSummary::Elements(elements)) = member.summaries.get(own.variable_index)
        else {
            return Err(unread_elements_reason());
        };
        let dims = member.variable_lengths(own);
        let count = product(&dims).and_then(to_usize);
        let made =
            count.and_then(|count| convert_elements(own.variable, elements, count, form, size));
        made.map_err(|error| error.to_string())
    }

    /// Returns the size in bytes of one element of the joined array. For variable-length texts,
    /// this is the length of the longest text.
    fn element_size(&self, form: &JoinedForm) -> Option<usize> {
        if !matches!(form.datatype.class, Class::VariableString { .. }) {
            return to_usize(form.datatype.size.into()).ok();
        }
        let lengths = self.shared_variable.occurrences().map(|(member, _, own)| {
            let count = product(&member.variable_lengths(own)).ok()?;
            let bytes = member
                .summaries
                .get(own.variable_index)?
                .all_elements()?
                .len();
            Some(bytes / to_usize(count).ok()?.max(1))
        });
        lengths
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
            .map(|size| size.max(1))
    }

    /// Returns the elements of an array in which the scalar of each member is repeated throughout
    /// the member's block.
    pub(super) fn repeat_scalars(
        &self,
        shape: &[u64],
        form: &JoinedForm,
    ) -> OmissionResult<(ArrayContent, Datatype)> {
        let size = self.element_size(form).ok_or_else(unread_elements_reason)?;
        if size > 16 {
            return Err("it differs between files".to_owned());
        }
        let mut out = ElementCollector::new(self.shared_variable.comparison.members, shape, size)?;
        let axis = &self
            .shared_variable
            .comparison
            .placed_members
            .placement
            .axes[0];
        let dim = axis.dims.first();
        for (member, place, own) in self.shared_variable.occurrences() {
            let piece = self.convert_member((member, own), form, size)?;
            let block = place.first().copied().unwrap_or(0);
            let range = dim.map_or(0..0, |dim| {
                dim.block_start(block)..dim.block_start(block + 1)
            });
            for step in range {
                out.write_elements(step, &piece);
            }
        }
        let datatype = fixed_length_type(form, size);
        Ok((ArrayContent::InMemory(out.finish(&datatype)?), datatype))
    }

    /// Returns the elements of all members as one array in memory.
    pub(super) fn gather_elements(
        &self,
        arrangement: &VariablePlacement,
        form: &JoinedForm,
        shape: &[u64],
    ) -> OmissionResult<(ArrayContent, Datatype)> {
        let size = self.element_size(form).ok_or_else(unread_elements_reason)?;
        let mut out = ElementCollector::new(self.shared_variable.comparison.members, shape, size)?;
        let added = usize::from(matches!(
            arrangement,
            VariablePlacement::AlongAxes { is_new: true }
        ));
        let mapped = self.map_members(added, HashMap::new());
        let mut taken = HashSet::new();
        for (member, place, own) in self.shared_variable.occurrences() {
            // Members with the same block have equal values except for rounding, so only the first
            // one is used.
            if !taken.insert(mapped.axis_blocks(place)) {
                continue;
            }
            let piece = self.convert_member((member, own), form, size)?;
            let lengths = std::iter::repeat_n(1, added);
            let stored = member.variable_lengths(own);
            let lengths: Vec<u64> = lengths.chain(stored).collect();
            out.write_block(shape, &mapped.start_offsets(place), &lengths, &piece);
        }
        let datatype = fixed_length_type(form, size);
        Ok((ArrayContent::InMemory(out.finish(&datatype)?), datatype))
    }
}

fn unread_elements_reason() -> String {
    "its elements are unknown".to_owned()
}

/// The elements of an array in memory while they are collected from the members.
struct ElementCollector {
    elements: Vec<u8>,
    /// For each element, whether a member has provided it.
    present: Vec<bool>,
    size: usize,
}

impl ElementCollector {
    /// Allocates memory for all elements.
    fn new(members: &Members, shape: &[u64], size: usize) -> OmissionResult<Self> {
        let count = product(shape).ok();
        let bytes = count.map(|count| count.times(to_u64(size)));
        let bytes =
            bytes.filter(|&bytes| bytes <= limits::JOINED_INLINE && members.reserve_inline(bytes));
        let count = count.zip(bytes).and_then(|(count, _)| to_usize(count).ok());
        let count = count.ok_or_else(|| {
            let most = limits::JOINED_INLINE;
            format!(
                "it needs more than {most} bytes of memory, or too many together with other arrays"
            )
        })?;
        Ok(ElementCollector {
            elements: vec![0; count.saturating_mul(size)],
            present: vec![false; count],
            size,
        })
    }

    /// Writes elements of one member at the element offset `at`. Omits elements beyond the end of
    /// the array.
    fn write_elements(&mut self, at: u64, piece: &[u8]) {
        let at = to_usize(at).unwrap_or(usize::MAX);
        let count = piece.len() / self.size.max(1);
        let begin = at.saturating_mul(self.size);
        if let Some(place) = self
            .elements
            .get_mut(begin..begin.saturating_add(piece.len()))
        {
            place.copy_from_slice(piece);
        }
        if let Some(there) = self.present.get_mut(at..at.saturating_add(count)) {
            there.fill(true);
        }
    }

    /// Writes the elements of one member in C order. `start` and `lengths` are the member's block
    /// in the array, whose dimensions are `shape`.
    fn write_block(&mut self, shape: &[u64], start: &[u64], lengths: &[u64], piece: &[u8]) {
        let row = lengths.last().copied().unwrap_or(1);
        let bytes = to_usize(row).unwrap_or(0).saturating_mul(self.size);
        for (number, row) in piece.chunks_exact(bytes.max(1)).enumerate() {
            let mut rest = to_u64(number);
            let mut at = start.last().copied().unwrap_or(0);
            let mut stride = shape.last().copied().unwrap_or(1);
            let outer = shape.iter().zip(start).zip(lengths).rev().skip(1);
            for ((&dim, &start), &length) in outer {
                let step = start.plus(rest % length.max(1));
                at = at.plus(step.times(stride));
                rest /= length.max(1);
                stride = stride.times(dim);
            }
            self.write_elements(at, row);
        }
    }

    /// Returns the bytes of all elements. Elements that no member has provided become NaN.
    ///
    /// # Errors
    /// Fails if elements are missing and the type lacks NaN.
    fn finish(mut self, datatype: &Datatype) -> OmissionResult<Arc<[u8]>> {
        if self.present.iter().all(|there| *there) {
            return Ok(self.elements.into());
        }
        let Some(Fill::Value(nan)) = nan_fill(datatype) else {
            return Err("not in all files, and without a fill value".to_owned());
        };
        let elements = self.elements.chunks_exact_mut(self.size.max(1));
        for (element, _) in elements.zip(&self.present).filter(|(_, there)| !**there) {
            element.copy_from_slice(&nan);
        }
        Ok(self.elements.into())
    }
}

/// Returns the datatype of the elements in memory. Variable-length texts become fixed-length texts
/// with the length of the longest text.
fn fixed_length_type(form: &JoinedForm, size: usize) -> Datatype {
    match form.datatype.class {
        Class::VariableString { .. } => text_type(size),
        _ => form.datatype.clone(),
    }
}

/// Converts the elements of one member to the form of the joined array, without a conversion of
/// times.
fn convert_elements(
    variable: &Variable,
    elements: &[u8],
    count: usize,
    form: &JoinedForm,
    size: usize,
) -> Result<Vec<u8>> {
    let own = elements.len() / count.max(1);
    let bytes = to_u64(size.saturating_mul(count));
    Error::check_limit(
        bytes,
        limits::JOINED_INLINE,
        "joined: bytes of elements in memory",
    )?;
    let mut out = vec![padding_byte(&form.datatype); to_usize(bytes)?];
    let pairs = elements
        .chunks_exact(own.max(1))
        .zip(out.chunks_exact_mut(size.max(1)));
    match (&form.meaning, &variable.meaning.packing) {
        (NumberConversion::Unpacked, Some(packing)) => {
            let recoding = RecodingPlan::Unpack(Arc::new(packing.clone()), size).recoding(0);
            for (stored, element) in pairs {
                recoding
                    .as_ref()
                    .map_or(Ok(()), |own| own.recode(stored, element))?;
            }
        }
        _ if variable.datatype == form.datatype || own <= size && is_text(&variable.datatype) => {
            for (stored, element) in pairs {
                let place = element.get_mut(..stored.len());
                let place = place.ok_or_else(|| {
                    Error::corrupt("joined: a string of an unexpected length", None)
                })?;
                place.copy_from_slice(stored);
            }
        }
        _ => h5fs_reader::array::convert(&variable.datatype, &form.datatype, elements, &mut out)?,
    }
    Ok(out)
}

fn is_text(datatype: &Datatype) -> bool {
    matches!(
        datatype.class,
        Class::String { .. } | Class::VariableString { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::ByteOrder;

    fn block(count: usize, size: usize) -> ElementCollector {
        ElementCollector {
            elements: vec![0; count * size],
            present: vec![false; count],
            size,
        }
    }

    #[test]
    fn a_block_is_written_at_its_offset() {
        let mut out = block(12, 1);
        out.write_block(&[4, 3], &[2, 1], &[2, 2], &[1, 2, 3, 4]);
        assert_eq!(out.elements, [0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 4]);
        let byte = Datatype::integer(1, false, ByteOrder::Little);
        assert!(out.finish(&byte).is_err());
        let mut out = block(1, 2);
        out.write_block(&[], &[], &[], &[7, 8]);
        assert_eq!(out.finish(&byte).unwrap()[..], [7, 8]);
    }

    #[test]
    fn elements_without_a_member_are_nan() {
        let mut out = block(2, 4);
        out.write_elements(1, &1.5_f32.to_le_bytes());
        let single = Datatype::ieee(4, ByteOrder::Little);
        let made = out.finish(&single).unwrap();
        assert!(f32::from_le_bytes(made[..4].try_into().unwrap()).is_nan());
        assert_eq!(made[4..], 1.5_f32.to_le_bytes());
    }
}

//! The elements of a variable that stand in memory: coordinates, bounds, times and scalars.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::joined::made::Content;
use crate::joined::mapped::{Recipe, stored_dims};
use crate::joined::members::content::{Known, text_of};
use crate::joined::members::skeleton::Variable;
use crate::joined::paths::Sure;
use crate::joined::variable::compared::Alike;
use crate::joined::variable::{Form, Meaning, Rules, Standing};
use crate::limits;
use crate::model::Datatype;
use crate::model::datatype::Class;
use crate::model::shape::product;
use crate::wire::{Count, to_u64, to_usize};

impl Rules<'_, '_> {
    pub(super) fn are_known(&self) -> bool {
        let mut all = self.alike.each();
        all.all(|(member, _, own)| {
            member
                .values
                .get(own.place)
                .is_some_and(|known| known.elements().is_some())
        })
    }

    /// The elements of each member in the form of the joined array.
    pub(super) fn pieces(&self, form: &Form) -> Sure<Vec<Vec<u8>>> {
        let unknown = || "its elements are not known".to_owned();
        let size = self.text_size(form).ok_or_else(unknown)?;
        self.alike
            .each()
            .map(|(member, _, own)| {
                if let Meaning::Times(unit, _) = form.meaning {
                    let times = Alike::instants(member, own).ok_or_else(unknown)?;
                    let numbers = times.iter().map(|&time| unit.number(time));
                    let numbers = numbers
                        .collect::<Result<Vec<i64>>>()
                        .map_err(|error| error.to_string())?;
                    return Ok(numbers.into_iter().flat_map(i64::to_le_bytes).collect());
                }
                let Some(Known::Elements(elements)) = member.values.get(own.place) else {
                    return Err(unknown());
                };
                piece(own.variable, elements, &member.lengths_of(own), form, size)
                    .map_err(|error| error.to_string())
            })
            .collect()
    }

    /// Bytes of one element; of texts of any length those of the longest one.
    fn text_size(&self, form: &Form) -> Option<usize> {
        if !matches!(form.datatype.class, Class::VariableString { .. }) {
            return to_usize(form.datatype.size.into()).ok();
        }
        let lengths = self.alike.each().map(|(member, _, own)| {
            let count = product(&member.lengths_of(own)).ok()?;
            let bytes = member.values.get(own.place)?.elements()?.len();
            Some(bytes / to_usize(count).ok()?.max(1))
        });
        lengths
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
            .map(|size| size.max(1))
    }

    pub(super) fn repeated(
        &self,
        pieces: &[Vec<u8>],
        shape: &[u64],
        form: &Form,
    ) -> Sure<(Content, Datatype)> {
        let size = pieces.first().map_or(1, Vec::len);
        if size > 16 {
            return Err("it differs from file to file".to_owned());
        }
        let mut out = buffer(shape, size)?;
        let axis = &self.alike.of.placed.placement.axes[0];
        let dim = axis.dims.first();
        for ((_, place, _), piece) in self.alike.each().zip(pieces) {
            let block = place.first().copied().unwrap_or(0);
            let range = dim.map_or(0..0, |dim| dim.start(block)..dim.start(block + 1));
            for step in range {
                put(&mut out, step, size, piece);
            }
        }
        Ok((Content::Elements(out.into()), fixed(form, size)))
    }

    /// The elements of all members in memory.
    pub(super) fn gathered(
        &self,
        standing: &Standing,
        form: &Form,
        shape: &[u64],
    ) -> Sure<(Content, Datatype)> {
        let pieces = self.pieces(form)?;
        let size = self.text_size(form).unwrap_or(1);
        let mut out = buffer(shape, size)?;
        let added = usize::from(matches!(standing, Standing::Along { is_new: true }));
        let once = matches!(standing, Standing::Once);
        let mapped = self.laid(added, once, HashMap::new());
        let mut covered = 0_u64;
        let parts: Vec<_> = self.alike.each().zip(&pieces).collect();
        let taken = if once {
            &parts[..parts.len().min(1)]
        } else {
            &parts
        };
        // Where several have the same values, nearly so, those of the first are shown.
        for ((member, place, own), piece) in taken.iter().rev() {
            let start = mapped.start(place);
            let lengths = std::iter::repeat_n(1, added);
            let lengths: Vec<u64> = lengths
                .chain(stored_dims(self.alike.of.members, member, own.place))
                .collect();
            lay(&mut out, shape, &start, &lengths, piece, size);
            covered = covered.with_more(product(&lengths).unwrap_or(0));
        }
        let all = product(shape).unwrap_or(u64::MAX);
        if covered < all && matches!(form.meaning, Meaning::Times(..)) {
            return Err("times are missing at places without a file".to_owned());
        }
        Ok((Content::Elements(out.into()), fixed(form, size)))
    }
}

/// The type of elements that stand in memory: texts of any length have the one of the longest.
fn fixed(form: &Form, size: usize) -> Datatype {
    match form.datatype.class {
        Class::VariableString { .. } => text_of(size),
        _ => form.datatype.clone(),
    }
}

/// The elements of one member in the form of the joined array.
fn piece(
    variable: &Variable,
    elements: &[u8],
    lengths: &[u64],
    form: &Form,
    size: usize,
) -> Result<Vec<u8>> {
    let count = to_usize(product(lengths)?)?;
    let own = elements.len() / count.max(1);
    let mut out = vec![0; size.saturating_mul(count)];
    let pairs = elements
        .chunks_exact(own.max(1))
        .zip(out.chunks_exact_mut(size.max(1)));
    match (&form.meaning, &variable.meaning.packing) {
        (Meaning::Unpacked, Some(packing)) => {
            let recoding = Recipe::Unpacked(Arc::new(packing.clone()), size).recoding(0);
            for (stored, element) in pairs {
                recoding
                    .as_ref()
                    .map_or(Ok(()), |own| own.recode(stored, element))?;
            }
        }
        _ if variable.datatype == form.datatype || own <= size && is_text(&variable.datatype) => {
            for (stored, element) in pairs {
                let place = element.get_mut(..stored.len());
                let place = place
                    .ok_or_else(|| Error::corrupt("joined: a text of another length", None))?;
                place.copy_from_slice(stored);
            }
        }
        _ => crate::array::convert(&variable.datatype, &form.datatype, elements, &mut out)?,
    }
    Ok(out)
}

fn is_text(datatype: &Datatype) -> bool {
    matches!(
        datatype.class,
        Class::String { .. } | Class::VariableString { .. }
    )
}

/// Room for all elements.
fn buffer(shape: &[u64], size: usize) -> Sure<Vec<u8>> {
    let bytes = product(shape).map(|count| count.times(to_u64(size)));
    let bytes = bytes.ok().filter(|&bytes| bytes <= limits::JOINED_INLINE);
    let bytes = bytes.and_then(|bytes| to_usize(bytes).ok());
    let bytes = bytes.ok_or_else(|| {
        let most = limits::JOINED_INLINE;
        format!("it takes more than {most} bytes as a coordinate")
    })?;
    Ok(vec![0; bytes])
}

fn put(out: &mut [u8], step: u64, size: usize, piece: &[u8]) {
    let at = to_usize(step).unwrap_or(usize::MAX).saturating_mul(size);
    if let Some(place) = out.get_mut(at..at.saturating_add(piece.len())) {
        place.copy_from_slice(piece);
    }
}

/// Puts the elements of a block, in C order, where it lies in an array of these dimensions.
fn lay(out: &mut [u8], shape: &[u64], start: &[u64], lengths: &[u64], piece: &[u8], size: usize) {
    let row = lengths.last().copied().unwrap_or(1);
    let bytes = to_usize(row).unwrap_or(0).saturating_mul(size);
    for (number, row) in piece.chunks_exact(bytes.max(1)).enumerate() {
        let mut rest = to_u64(number);
        let mut at = start.last().copied().unwrap_or(0);
        let mut stride = shape.last().copied().unwrap_or(1);
        let outer = shape.iter().zip(start).zip(lengths).rev().skip(1);
        for ((&dim, &start), &length) in outer {
            at = at.with_more((start.with_more(rest % length.max(1))).times(stride));
            rest /= length.max(1);
            stride = stride.times(dim);
        }
        put(out, at, size, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_lies_among_others() {
        let mut out = vec![0; 4 * 3];
        lay(&mut out, &[4, 3], &[2, 1], &[2, 2], &[1, 2, 3, 4], 1);
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 4]);
        let mut out = vec![0; 2];
        lay(&mut out, &[], &[], &[], &[7, 8], 2);
        assert_eq!(out, [7, 8]);
    }
}

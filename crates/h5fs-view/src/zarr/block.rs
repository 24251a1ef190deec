//! The elements of a chunk of the store that consists of several chunks of the file, or of parts of
//! them. Elements outside of the array are zero.

use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken, Reader, SelectedElements};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::selection::{Axis, AxisPositions, Selection};
use h5fs_reader::wire::{Count, Extent, to_usize};

use crate::view::View;

/// The elements of a chunk of the store, which are selected from the array.
pub(super) struct SelectedBlock {
    /// The selected elements that are in the array.
    selected: SelectedElements,
    /// For each dimension of the chunk: the number of its elements that are in the array, and of
    /// all its elements.
    axes: Vec<(u64, u64)>,
    /// Size of an element in bytes.
    size: u64,
    is_encoded: bool,
}

impl SelectedBlock {
    /// Creates the elements of a chunk of shape `shape`. `places` has the range of elements in each
    /// dimension of the array of `reader`.
    ///
    /// # Errors
    /// `Limit` for an array that is longer than any file can be.
    pub(super) fn new(reader: Arc<Reader>, shape: &[u64], places: &[Extent]) -> Result<Self> {
        let array = reader.array();
        let size = u64::from(array.datatype.size);
        let selection = select_extents(&array.datatype, array.shape.dims(), places)?;
        let counts = places.iter().map(|place| place.length());
        Ok(SelectedBlock {
            axes: counts.zip(shape.iter().copied()).collect(),
            size,
            is_encoded: reader.is_slow_to_read(),
            selected: SelectedElements::new(reader, &selection)?,
        })
    }

    pub(super) fn is_encoded(&self) -> bool {
        self.is_encoded
    }

    /// Reads the bytes `offset..end` of the chunk, including zeros outside of the array.
    pub(super) fn read(&self, offset: u64, end: u64, cancel: &CancelToken) -> Result<Bytes> {
        let wanted = to_usize(end.minus_or_zero(offset))?;
        let inner = self.axes.get(1..).unwrap_or_default();
        if inner.iter().all(|(inside, all)| inside == all) {
            // Only rows after the last row of the array are outside.
            let inside = end.min(self.selected.length()).minus_or_zero(offset);
            let bytes = self.read_selected(offset, inside, cancel)?;
            return Ok(if bytes.len() == wanted {
                bytes
            } else {
                let mut padded = bytes.into_vec();
                padded.resize(wanted, 0);
                padded.into()
            });
        }
        let mut out = vec![0; wanted];
        self.read_scattered(offset, end, cancel, &mut out)?;
        Ok(out.into())
    }

    /// Reads those bytes of `offset..end` that are in the array, and copies them to their positions
    /// in `out`.
    fn read_scattered(
        &self,
        offset: u64,
        end: u64,
        cancel: &CancelToken,
        out: &mut [u8],
    ) -> Result<()> {
        let (inside, all) = self.axes.last().copied().unwrap_or((1, 1));
        let (inside, all) = (inside.times(self.size), all.times(self.size));
        let rows = offset / all.max(1)..end.div_ceil(all.max(1));
        let known: Vec<_> = rows
            .filter_map(|row| Some((row, self.selected_row(row)?)))
            .collect();
        let (Some(&(_, first)), Some(&(_, last))) = (known.first(), known.last()) else {
            return Ok(());
        };
        let start = first.times(inside);
        let length = last.plus_one().minus_or_zero(first).times(inside);
        let bytes = self.read_selected(start, length, cancel)?;
        for (row, number) in known {
            let from = to_usize(number.minus_or_zero(first).times(inside))?;
            let from = bytes.get(from..from.plus(to_usize(inside)?));
            let place = Extent::saturating(row.times(all), inside);
            copy_row(from.unwrap_or_default(), place, (offset, end), out)?;
        }
        Ok(())
    }

    /// Returns the index of a chunk's row among those of its rows that are in the array. Returns
    /// `None` if the row is outside of the array. A row extends over the last dimension.
    fn selected_row(&self, row: u64) -> Option<u64> {
        let mut rest = row;
        let mut number = 0_u64;
        let mut step = 1_u64;
        for &(inside, all) in self.axes.iter().rev().skip(1) {
            let place = rest % all.max(1);
            rest /= all.max(1);
            if place >= inside {
                return None;
            }
            number = number.plus(place.times(step));
            step = step.times(inside);
        }
        Some(number)
    }

    /// Reads `length` bytes of the selected elements, starting at `offset`.
    fn read_selected(&self, offset: u64, length: u64, cancel: &CancelToken) -> Result<Bytes> {
        let length = to_usize(length)?;
        if length == 0 {
            return Ok(Bytes::from(Vec::new()));
        }
        let bytes = self.selected.read_for(offset, length, cancel)?;
        if bytes.len() == length {
            Ok(bytes)
        } else {
            Err(Error::corrupt("array: fewer elements than its shape", None))
        }
    }
}

/// Copies a row of the chunk, which occupies the bytes `place` of the chunk, into `out`. `out` has
/// the chunk's bytes `offset..end`.
fn copy_row(row: &[u8], place: Extent, (offset, end): (u64, u64), out: &mut [u8]) -> Result<()> {
    let (start, stop) = (place.start().max(offset), place.end().min(end));
    if start >= stop {
        return Ok(());
    }
    let length = to_usize(stop - start)?;
    let from = to_usize(start.minus_or_zero(place.start()))?;
    let to = to_usize(start.minus_or_zero(offset))?;
    let source = row.get(from..from.plus(length));
    let target = out.get_mut(to..to.plus(length));
    let (Some(source), Some(target)) = (source, target) else {
        return Err(Error::corrupt("array: fewer elements than its shape", None));
    };
    target.copy_from_slice(source);
    Ok(())
}

/// Returns a selection of the elements at `places` in each dimension of an array.
fn select_extents(datatype: &Datatype, dims: &[u64], places: &[Extent]) -> Result<Selection> {
    let too_large = || Error::limit("size of an array", u64::MAX >> 1);
    let mut stride = u64::from(datatype.size);
    let mut offset = 0_u64;
    let mut axes = Vec::new();
    for (place, dim) in places.iter().zip(dims).rev() {
        let along = place.start().checked_mul(stride).ok_or_else(too_large)?;
        offset = offset.checked_add(along).ok_or_else(too_large)?;
        let every = i64::try_from(stride).map_err(|_| too_large())?;
        axes.push(Axis {
            count: place.length(),
            positions: AxisPositions::Strided(every),
        });
        stride = stride.checked_mul(*dim).ok_or_else(too_large)?;
    }
    axes.reverse();
    Ok(Selection {
        datatype: datatype.clone(),
        axes,
        offset,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use h5fs_reader::array::Engine;
    use h5fs_reader::model::array::{Array, Fill, Layout, Storage};
    use h5fs_reader::model::storage::Pipeline;
    use h5fs_reader::model::{Shape, shape::product};
    use h5fs_reader::testing::int;

    use super::*;

    /// Returns a reader of an array of two-byte elements, each equal to its index.
    fn reader(dims: &[u64]) -> Arc<Reader> {
        let count = u16::try_from(product(dims).unwrap()).unwrap();
        let bytes: Vec<u8> = (0..count).flat_map(u16::to_le_bytes).collect();
        let array = Array {
            datatype: int(2),
            shape: Shape::fixed(dims.to_vec()),
            fill: Fill::Zero,
            layout: Layout::Compact,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(Storage::Inline(bytes.into())),
        };
        Arc::new(Reader::new(&Engine::new(0, 1), Arc::new(array)).unwrap())
    }

    /// Computes the elements of a chunk one by one.
    fn expected(dims: &[u64], shape: &[u64], first: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in 0..product(shape).unwrap() {
            let (mut rest, mut place, mut step) = (number, Some(0), 1);
            for axis in (0..dims.len()).rev() {
                let at = first[axis] + rest % shape[axis];
                rest /= shape[axis];
                place = place.filter(|_| at < dims[axis]).map(|sum| sum + at * step);
                step *= dims[axis];
            }
            bytes.extend_from_slice(&(place.unwrap_or(0) as u16).to_le_bytes());
        }
        bytes
    }

    proptest! {
        /// Reads a random byte range of a random chunk, for random dimensions and chunk shapes.
        #[test]
        fn a_chunk_has_the_elements_of_the_array(
            axes in prop::collection::vec((1..9_u64, 1..6_u64, 0..9_u64), 1..4),
            from in 0..400_usize,
            length in 1..400_usize,
        ) {
            let dims: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let shape: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
            let place = axes.iter().map(|(dim, chunk, place)| place % dim.div_ceil(*chunk));
            let first: Vec<u64> = place.zip(&shape).map(|(place, chunk)| place * chunk).collect();
            let inside = first.iter().zip(&shape).zip(&dims);
            let inside: Vec<Extent> = inside
                .map(|((first, chunk), dim)| Extent::saturating(*first, (*chunk).min(dim - first)))
                .collect();
            let block = SelectedBlock::new(reader(&dims), &shape, &inside).unwrap();
            let all = expected(&dims, &shape, &first);
            let (start, end) = (from.min(all.len()), (from + length).min(all.len()));
            let read = block.read(start as u64, end as u64, &CancelToken::default()).unwrap();
            prop_assert_eq!(&read[..], &all[start..end]);
        }
    }
}

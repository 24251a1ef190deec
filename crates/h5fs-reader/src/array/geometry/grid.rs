//! The division of an array into chunks, and of a range of its bytes into boxes.
//!
//! The bytes of an element count as an additional, fastest dimension, so that a range may begin and
//! end inside an element. A dimension that is contained in one chunk is merged with the next slower
//! dimension. A one-dimensional array thus becomes a row of bytes, and so does a stack of images
//! that is chunked image by image. Merging does not change a chunk's number. The chunk index uses
//! grid coordinates in the array's own dimensions, and copying uses grid coordinates in merged
//! dimensions.

use crate::error::{Error, Result};
use crate::model::shape::product;
use crate::wire::Count;

/// The division of an array into chunks.
#[derive(Debug)]
pub(in crate::array) struct Grid {
    /// Number of elements of the array in each dimension, none zero.
    dims: Vec<u64>,
    /// Number of elements of a chunk in each dimension, none zero.
    chunk: Vec<u64>,
    /// The merged dimensions, slowest first. The fastest one counts bytes.
    axes: Vec<GridAxis>,
    element: u64,
    chunk_bytes: u64,
}

/// One merged dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::array) struct GridAxis {
    /// Number of indices of the array in this dimension.
    pub(in crate::array) length: u64,
    /// Number of indices of a chunk in this dimension.
    pub(in crate::array) chunk: u64,
    /// Distance in bytes from one index to the next in the array.
    pub(in crate::array) stride: u64,
    /// Distance in bytes from one index to the next in a chunk. For a strided array, the distance
    /// in the block.
    pub(in crate::array) chunk_stride: i64,
}

impl GridAxis {
    /// Returns the number of chunks in this dimension of the array.
    fn chunk_count(self) -> u64 {
        self.length.div_ceil(self.chunk)
    }
}

/// A box of the array, in merged dimensions, whose bytes are contiguous in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::array) struct Slab {
    /// First index on each axis.
    pub(in crate::array) start: Vec<u64>,
    /// Number of indices on each axis, none zero.
    pub(in crate::array) count: Vec<u64>,
    /// Offset of the box in the requested range of bytes, in bytes.
    pub(in crate::array) range_offset: u64,
}

impl Slab {
    /// Returns the number of bytes of the box.
    pub(in crate::array) fn bytes(&self) -> u64 {
        self.count.iter().product()
    }
}

impl Grid {
    /// Returns the grid of an array of `dims` elements of `element` bytes, in chunks of `chunk`
    /// elements. The caller has checked that the array's size is neither zero nor over 63 bits.
    ///
    /// # Errors
    /// `Corrupt` if the chunk has another rank or no elements, `Limit` if its size exceeds 63 bits.
    pub(in crate::array) fn new(dims: &[u64], chunk: &[u64], element: u64) -> Result<Self> {
        if chunk.len() != dims.len() || chunk.contains(&0) {
            return Err(Error::corrupt(
                format!("chunk shape {chunk:?} for an array of shape {dims:?}"),
                None,
            ));
        }
        const MOST: u64 = i64::MAX.unsigned_abs();
        let chunk_bytes = product(chunk)?
            .checked_mul(element)
            .filter(|&bytes| bytes <= MOST)
            .ok_or_else(|| Error::limit("size of a chunk", MOST))?;
        Ok(Grid {
            dims: dims.to_vec(),
            chunk: chunk.to_vec(),
            axes: merged_axes(dims, chunk, &packed_strides(chunk, element), element),
            element,
            chunk_bytes,
        })
    }

    /// Returns the grid of an array that is one "chunk" whose elements are `strides` bytes apart in
    /// each dimension. The caller has checked the array's size as for `new`.
    ///
    /// # Errors
    /// `Corrupt` if the number of strides differs from the number of dimensions.
    pub(in crate::array) fn new_strided(
        dims: &[u64],
        strides: &[i64],
        element: u64,
    ) -> Result<Self> {
        if strides.len() != dims.len() {
            return Err(Error::corrupt(
                format!("strides {strides:?} for an array of shape {dims:?}"),
                None,
            ));
        }
        Ok(Grid {
            axes: merged_axes(dims, dims, strides, element),
            ..Grid::new(dims, dims, element)?
        })
    }

    /// Returns the number of decoded bytes of a chunk. Chunks that extend beyond the array have the
    /// same number of bytes.
    pub(in crate::array) fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    pub(in crate::array) fn element_bytes(&self) -> u64 {
        self.element
    }

    /// Returns the merged dimensions, slowest first.
    pub(in crate::array) fn axes(&self) -> &[GridAxis] {
        &self.axes
    }

    /// Returns the number of elements of the array in each dimension.
    pub(in crate::array) fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Returns the number of elements of a chunk in each dimension.
    pub(in crate::array) fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    /// Returns the number of chunks that overlap the array.
    pub(in crate::array) fn chunk_count(&self) -> u64 {
        self.axes.iter().map(|axis| axis.chunk_count()).product()
    }

    /// Returns the boxes that together cover bytes `start..end` (not empty, inside the array), in
    /// the order of their bytes. Their number is at most twice the number of axes, less one.
    pub(in crate::array) fn slabs(&self, start: u64, end: u64) -> Vec<Slab> {
        let mut slabs = Vec::new();
        self.split_range(&mut Vec::new(), start, end, &mut slabs);
        let mut at = 0;
        for slab in &mut slabs {
            slab.range_offset = at;
            at += slab.bytes();
        }
        slabs
    }

    /// Divides the byte range `from..to` into the rest of a first row, whole rows, and the
    /// beginning of a last row, and appends their boxes to `slabs`. Offsets count from the first
    /// byte whose leading indices are `prefix`.
    fn split_range(&self, prefix: &mut Vec<u64>, from: u64, to: u64, slabs: &mut Vec<Slab>) {
        let stride = self.axes[prefix.len()].stride;
        let (mut first, last) = (from / stride, to / stride);
        let (head, tail) = (from % stride, to % stride);
        if head != 0 {
            let end = if first == last { tail } else { stride };
            self.split_row(prefix, first, (head, end), slabs);
            if first == last {
                return;
            }
            first += 1;
        }
        if first < last {
            slabs.push(self.whole_rows(prefix, first, last));
        }
        if tail != 0 {
            self.split_row(prefix, last, (0, tail), slabs);
        }
    }

    fn split_row(
        &self,
        prefix: &mut Vec<u64>,
        row: u64,
        (from, to): (u64, u64),
        slabs: &mut Vec<Slab>,
    ) {
        prefix.push(row);
        self.split_range(prefix, from, to, slabs);
        prefix.pop();
    }

    fn whole_rows(&self, prefix: &[u64], first: u64, last: u64) -> Slab {
        let inner = &self.axes[prefix.len() + 1..];
        let mut start = prefix.to_vec();
        start.push(first);
        start.resize(self.axes.len(), 0);
        let mut count = vec![1; prefix.len()];
        count.push(last - first);
        count.extend(inner.iter().map(|axis| axis.length));
        Slab {
            start,
            count,
            range_offset: 0,
        }
    }

    /// Returns the number, in C order of the grid, of the chunk at grid coordinates `place` in
    /// merged dimensions.
    pub(in crate::array) fn chunk_number(&self, place: &[u64]) -> u64 {
        let axes = self.axes.iter().zip(place);
        axes.fold(0, |number, (axis, &place)| {
            number * axis.chunk_count() + place
        })
    }

    /// Returns the number of chunks that a sequential reader of all bytes reads alternately, row by
    /// row, before it has finished any of them.
    pub(in crate::array) fn interleaved_chunks(&self) -> u64 {
        let mut axes = self.axes.iter();
        // Along these axes, each step is another chunk.
        let _ = axes.find(|axis| axis.chunk.min(axis.length) > 1);
        axes.map(|axis| axis.chunk_count()).product()
    }

    /// Returns the grid coordinates of chunk `number` in the array's own dimensions, as the chunk
    /// index uses them.
    pub(in crate::array) fn chunk_coordinates(&self, mut number: u64) -> Vec<u64> {
        let mut place = vec![0; self.dims.len()];
        let sizes = self.dims.iter().zip(&self.chunk);
        for (place, (&dim, &chunk)) in place.iter_mut().zip(sizes).rev() {
            let chunks = dim.div_ceil(chunk);
            *place = number % chunks;
            number /= chunks;
        }
        place
    }

    /// Returns the number of the chunk at grid coordinates `place` in the array's own dimensions.
    /// Returns `None` if the chunk does not overlap the array.
    pub(in crate::array) fn chunk_number_at(&self, place: &[u64]) -> Option<u64> {
        let sizes = self.dims.iter().zip(&self.chunk).zip(place);
        let next = |number, ((&dim, &chunk), &place): ((&u64, &u64), &u64)| {
            number * dim.div_ceil(chunk) + place
        };
        self.is_inside(place).then(|| sizes.fold(0, next))
    }

    /// Returns whether the chunk at grid coordinates `place`, in the array's own dimensions,
    /// overlaps the array.
    pub(in crate::array) fn is_inside(&self, place: &[u64]) -> bool {
        let sizes = self.dims.iter().zip(&self.chunk);
        place.len() == self.dims.len()
            && place
                .iter()
                .zip(sizes)
                .all(|(&place, (&dim, &chunk))| place < dim.div_ceil(chunk))
    }

    /// Returns whether the chunk at grid coordinates `place`, in the array's own dimensions,
    /// extends beyond the array.
    pub(in crate::array) fn is_partly_outside(&self, place: &[u64]) -> bool {
        let sizes = self.dims.iter().zip(&self.chunk);
        place
            .iter()
            .zip(sizes)
            .any(|(&place, (&dim, &chunk))| (place + 1).times(chunk) > dim)
    }
}

/// Returns the distance in bytes from one element to the next in each dimension of a chunk without
/// gaps.
fn packed_strides(chunk: &[u64], element: u64) -> Vec<i64> {
    let mut stride = element;
    let mut strides = vec![0; chunk.len()];
    for (packed, &steps) in strides.iter_mut().zip(chunk).rev() {
        *packed = stride.cast_signed();
        stride *= steps;
    }
    strides
}

fn merged_axes(dims: &[u64], chunk: &[u64], strides: &[i64], element: u64) -> Vec<GridAxis> {
    let bytes = GridAxis {
        length: element,
        chunk: element,
        stride: 1,
        chunk_stride: 1,
    };
    let mut axes = vec![bytes];
    for ((&dim, &chunk), &chunk_stride) in dims.iter().zip(chunk).zip(strides).rev() {
        let inner = axes
            .last_mut()
            .expect("the bytes of an element come before the dimensions");
        let follows = inner.chunk_stride.checked_mul(inner.chunk.cast_signed());
        if dim == 1 && chunk == 1 {
            continue;
        }
        if inner.length == inner.chunk && follows == Some(chunk_stride) {
            inner.length *= dim;
            inner.chunk *= chunk;
        } else {
            let stride = inner.stride * inner.length;
            axes.push(GridAxis {
                length: dim,
                chunk,
                stride,
                chunk_stride,
            });
        }
    }
    axes.reverse();
    axes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::array::tests::sample::{range, shapes};

    #[test]
    fn complete_inner_dimensions_are_merged() {
        let rows = Grid::new(&[10], &[3], 8).unwrap();
        assert_eq!(rows.axes.len(), 1);
        let images = Grid::new(&[100, 512, 512], &[1, 512, 512], 2).unwrap();
        assert_eq!(images.axes.len(), 1);
        assert_eq!(images.chunk_coordinates(7), [7, 0, 0]);
        // A chunk wider than the array has rows of its own length.
        let wide = Grid::new(&[4, 3], &[2, 5], 1).unwrap();
        assert_eq!(wide.axes.len(), 2);
        let scalar = Grid::new(&[], &[], 4).unwrap();
        assert_eq!(
            (
                scalar.chunk_count(),
                scalar.chunk_coordinates(0),
                scalar.axes.len()
            ),
            (1, vec![], 1)
        );
    }

    #[test]
    fn sizes_near_the_limit_do_not_overflow() {
        let dims = [1 << 60, 3];
        let grid = Grid::new(&dims, &[1 << 20, 2], 2).unwrap();
        let end = 3 * (1 << 61);
        let slabs = grid.slabs(end - 7, end);
        assert_eq!(slabs.iter().map(Slab::bytes).sum::<u64>(), 7);
        assert!(Grid::new(&[1, 1], &[1 << 62, 2], 1).is_err());
        assert!(Grid::new(&[1, 1], &[1], 1).is_err());
        assert!(Grid::new(&[1], &[0], 1).is_err());
    }

    proptest! {
        #[test]
        fn slabs_follow_each_other_and_are_few(
            (dims, chunk, element) in shapes(),
            ends in any::<(u64, u64)>(),
        ) {
            let grid = Grid::new(&dims, &chunk, element).unwrap();
            let (start, end) = range(dims.iter().product::<u64>() * element, ends);
            let slabs = grid.slabs(start, end);
            prop_assert!(slabs.len() < 2 * grid.axes.len());
            let mut next = start;
            for slab in &slabs {
                let steps = slab.start.iter().zip(&grid.axes);
                let corner: u64 = steps.map(|(&s, a)| s * a.stride).sum();
                prop_assert_eq!(corner, next);
                prop_assert_eq!(slab.range_offset, next - start);
                let bounds = slab.start.iter().zip(&slab.count);
                for (axis, (first, count)) in grid.axes.iter().zip(bounds) {
                    prop_assert!(first + count <= axis.length);
                }
                next += slab.bytes();
            }
            prop_assert_eq!(next, end);
        }
    }
}

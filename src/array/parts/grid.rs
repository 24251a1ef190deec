//! How an array is cut into chunks, and how a range of its bytes falls into boxes.
//!
//! An element's bytes count as one more, fastest dimension, so that a range may begin and end
//! inside an element. Dimensions along which one chunk holds the whole extent are then merged with
//! the next slower one: a one-dimensional array becomes a row of bytes, and so does a stack of
//! images that is chunked image by image. A chunk's number does not change by that. Its place is
//! counted in the array's own dimensions where an index is asked, in merged ones where bytes are
//! copied.

use crate::error::{Error, Result};
use crate::model::shape::product;
use crate::wire::Count;

/// How an array is cut into chunks.
#[derive(Debug)]
pub(in crate::array) struct Grid {
    /// Elements of the array along each dimension, none zero.
    dims: Vec<u64>,
    /// Elements of a chunk along each dimension, none zero.
    chunk: Vec<u64>,
    /// Merged dimensions, in bytes along the fastest.
    axes: Vec<Axis>,
    element: u64,
    chunk_bytes: u64,
}

/// One merged dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::array) struct Axis {
    /// Steps along the array.
    pub(in crate::array) length: u64,
    /// Steps along a chunk.
    pub(in crate::array) chunk: u64,
    /// Bytes of the array from one step to the next.
    pub(in crate::array) stride: u64,
    /// Bytes of a chunk from one step to the next; of a block, where the array is strided over one.
    pub(in crate::array) chunk_stride: i64,
}

impl Axis {
    /// Chunks along the array.
    fn chunks(self) -> u64 {
        self.length.div_ceil(self.chunk)
    }
}

/// A box of the array, in merged dimensions, whose bytes follow each other in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::array) struct Slab {
    /// First step along each axis.
    pub(in crate::array) start: Vec<u64>,
    /// Steps along each axis, none zero.
    pub(in crate::array) count: Vec<u64>,
    /// Bytes of the requested range that stand before this box.
    pub(in crate::array) at: u64,
}

impl Slab {
    /// Bytes of the box.
    pub(in crate::array) fn bytes(&self) -> u64 {
        self.count.iter().product()
    }
}

impl Grid {
    /// An array of `dims` elements of `element` bytes, its size checked by the caller to be neither
    /// zero nor over 63 bits, in chunks of `chunk` elements.
    ///
    /// # Errors
    /// `Corrupt` where the chunk has another rank or no elements, `Limit` where its size exceeds 63
    /// bits.
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
            axes: merged_axes(dims, chunk, &packed(chunk, element), element),
            element,
            chunk_bytes,
        })
    }

    /// An array, its size checked as for `new`, that is one "chunk" whose elements stand at
    /// `strides` bytes from each other along each dimension.
    ///
    /// # Errors
    /// `Corrupt` where there is not one stride for each dimension.
    pub(in crate::array) fn strided(dims: &[u64], strides: &[i64], element: u64) -> Result<Self> {
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

    /// Bytes of every chunk, also of those that stick out.
    pub(in crate::array) fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    pub(in crate::array) fn element(&self) -> u64 {
        self.element
    }

    /// Merged dimensions, slowest first.
    pub(in crate::array) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Elements of the array along each dimension.
    pub(in crate::array) fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Elements of a chunk along each dimension.
    pub(in crate::array) fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    /// Chunks that the extent touches.
    pub(in crate::array) fn chunks(&self) -> u64 {
        self.axes.iter().map(|axis| axis.chunks()).product()
    }

    /// The boxes that bytes `start..end` (not empty, inside the array) consist of, in order; at
    /// most twice the number of axes less one.
    pub(in crate::array) fn slabs(&self, start: u64, end: u64) -> Vec<Slab> {
        let mut slabs = Vec::new();
        self.split(&mut Vec::new(), start, end, &mut slabs);
        let mut at = 0;
        for slab in &mut slabs {
            slab.at = at;
            at += slab.bytes();
        }
        slabs
    }

    /// Cuts `from..to`, counted from the first byte under `prefix`, into the rest of a first row,
    /// whole rows, and the beginning of a last row.
    fn split(&self, prefix: &mut Vec<u64>, from: u64, to: u64, slabs: &mut Vec<Slab>) {
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
        self.split(prefix, from, to, slabs);
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
            at: 0,
        }
    }

    /// The number, in C order of the grid, of the chunk at `place` in merged dimensions.
    pub(in crate::array) fn number(&self, place: &[u64]) -> u64 {
        let axes = self.axes.iter().zip(place);
        axes.fold(0, |number, (axis, &place)| number * axis.chunks() + place)
    }

    /// Chunks that a reader of all bytes in their order comes back to before it is done with them.
    pub(in crate::array) fn band(&self) -> u64 {
        let mut axes = self.axes.iter();
        // Along these, each step is another chunk.
        let _ = axes.find(|axis| axis.chunk.min(axis.length) > 1);
        axes.map(|axis| axis.chunks()).product()
    }

    /// The place of chunk `number` in the array's own dimensions, as indices know it.
    pub(in crate::array) fn place(&self, mut number: u64) -> Vec<u64> {
        let mut place = vec![0; self.dims.len()];
        let sizes = self.dims.iter().zip(&self.chunk);
        for (place, (&dim, &chunk)) in place.iter_mut().zip(sizes).rev() {
            let chunks = dim.div_ceil(chunk);
            *place = number % chunks;
            number /= chunks;
        }
        place
    }

    /// The number of the chunk at `place` in the array's own dimensions; `None` where the extent
    /// touches no such chunk.
    pub(in crate::array) fn number_at(&self, place: &[u64]) -> Option<u64> {
        let sizes = self.dims.iter().zip(&self.chunk).zip(place);
        let next = |number, ((&dim, &chunk), &place): ((&u64, &u64), &u64)| {
            number * dim.div_ceil(chunk) + place
        };
        self.is_inside(place).then(|| sizes.fold(0, next))
    }

    /// Whether the chunk at `place`, in the array's own dimensions, touches the extent.
    pub(in crate::array) fn is_inside(&self, place: &[u64]) -> bool {
        let sizes = self.dims.iter().zip(&self.chunk);
        place.len() == self.dims.len()
            && place
                .iter()
                .zip(sizes)
                .all(|(&place, (&dim, &chunk))| place < dim.div_ceil(chunk))
    }

    /// Whether the chunk at `place`, in the array's own dimensions, reaches beyond the extent.
    pub(in crate::array) fn sticks_out(&self, place: &[u64]) -> bool {
        let sizes = self.dims.iter().zip(&self.chunk);
        place
            .iter()
            .zip(sizes)
            .any(|(&place, (&dim, &chunk))| (place + 1).times(chunk) > dim)
    }
}

/// Bytes from one element to the next along each dimension of a chunk that has no gaps.
fn packed(chunk: &[u64], element: u64) -> Vec<i64> {
    let mut stride = element;
    let mut strides = vec![0; chunk.len()];
    for (packed, &steps) in strides.iter_mut().zip(chunk).rev() {
        *packed = stride.cast_signed();
        stride *= steps;
    }
    strides
}

fn merged_axes(dims: &[u64], chunk: &[u64], strides: &[i64], element: u64) -> Vec<Axis> {
    let bytes = Axis {
        length: element,
        chunk: element,
        stride: 1,
        chunk_stride: 1,
    };
    let mut axes = vec![bytes];
    for ((&dim, &chunk), &chunk_stride) in dims.iter().zip(chunk).zip(strides).rev() {
        let inner = axes.last_mut().expect("the bytes of an element come first");
        let follows = inner.chunk_stride.checked_mul(inner.chunk.cast_signed());
        if dim == 1 && chunk == 1 {
            continue;
        }
        if inner.length == inner.chunk && follows == Some(chunk_stride) {
            inner.length *= dim;
            inner.chunk *= chunk;
        } else {
            let stride = inner.stride * inner.length;
            axes.push(Axis {
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
    fn whole_inner_dimensions_merge() {
        let rows = Grid::new(&[10], &[3], 8).unwrap();
        assert_eq!(rows.axes.len(), 1);
        let images = Grid::new(&[100, 512, 512], &[1, 512, 512], 2).unwrap();
        assert_eq!(images.axes.len(), 1);
        assert_eq!(images.place(7), [7, 0, 0]);
        // A chunk wider than the array has rows of its own length.
        let wide = Grid::new(&[4, 3], &[2, 5], 1).unwrap();
        assert_eq!(wide.axes.len(), 2);
        let scalar = Grid::new(&[], &[], 4).unwrap();
        assert_eq!(
            (scalar.chunks(), scalar.place(0), scalar.axes.len()),
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
                prop_assert_eq!(slab.at, next - start);
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

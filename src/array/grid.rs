//! The arithmetic of a chunked array: from a range of its bytes to boxes, from boxes to chunks.
//!
//! An element's bytes count as one more, fastest dimension, so that a range may begin and end inside
//! an element. Dimensions along which one chunk holds the whole extent are then merged with the next
//! slower one: a one-dimensional array becomes a row of bytes, and so does a stack of images
//! that is chunked image by image. "Place" and "number" of a chunk do not change by that.

use crate::error::{Error, Result};
use crate::model::shape::product;

/// How an array is cut into chunks.
#[derive(Debug)]
pub(super) struct Grid {
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
pub(super) struct Axis {
    /// Steps along the array.
    pub(super) length: u64,
    /// Steps along a chunk.
    pub(super) chunk: u64,
    /// Bytes of the array from one step to the next.
    pub(super) stride: u64,
    /// Bytes of a chunk from one step to the next; of a block, where the array is strided over one.
    pub(super) chunk_stride: i64,
}

impl Axis {
    /// Chunks along the array.
    fn chunks(self) -> u64 {
        self.length.div_ceil(self.chunk)
    }
}

/// A box of the array, in merged dimensions, whose bytes follow each other in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slab {
    /// First step along each axis.
    pub(super) start: Vec<u64>,
    /// Steps along each axis, none zero.
    pub(super) count: Vec<u64>,
    /// Bytes of the requested range that stand before this box.
    pub(super) at: u64,
}

impl Slab {
    /// Bytes of the box.
    fn bytes(&self) -> u64 {
        self.count.iter().product()
    }
}

impl Grid {
    /// An array of `dims` elements of `element` bytes, its size checked by the caller to be neither
    /// zero nor over 63 bits, in chunks of `chunk` elements.
    ///
    /// # Errors
    /// `Corrupt` where the chunk has another rank or no elements, `Limit` where its size exceeds 63 bits.
    pub(super) fn new(dims: &[u64], chunk: &[u64], element: u64) -> Result<Self> {
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
    pub(super) fn strided(dims: &[u64], strides: &[i64], element: u64) -> Result<Self> {
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
    pub(super) fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Bytes of an element.
    pub(super) fn element(&self) -> u64 {
        self.element
    }

    /// Merged dimensions, slowest first.
    pub(super) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Elements of the array along each dimension.
    pub(super) fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Elements of a chunk along each dimension.
    pub(super) fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    /// Chunks that the extent touches.
    pub(super) fn chunks(&self) -> u64 {
        self.axes.iter().map(|axis| axis.chunks()).product()
    }

    /// The boxes that bytes `start..end` (not empty, inside the array) consist of, in order; at
    /// most twice the number of axes less one.
    pub(super) fn slabs(&self, start: u64, end: u64) -> Vec<Slab> {
        let mut slabs = Vec::new();
        self.split(&mut Vec::new(), start, end, &mut slabs);
        let mut at = 0;
        for slab in &mut slabs {
            slab.at = at;
            at += slab.bytes();
        }
        slabs
    }

    /// Cuts `from..to`, counted from the first byte under `prefix`, into the rest of a first row, whole
    /// rows, and the beginning of a last row.
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

    /// The places, in merged dimensions, of the chunks that meet `slab`.
    pub(super) fn places(&self, slab: &Slab) -> Places {
        let first: Vec<u64> = self.corner(slab, |start, _| start);
        let last = self.corner(slab, |start, count| start + count - 1);
        Places {
            next: Some(first.clone()),
            first,
            last,
        }
    }

    fn corner(&self, slab: &Slab, step: impl Fn(u64, u64) -> u64) -> Vec<u64> {
        let steps = slab.start.iter().zip(&slab.count);
        steps
            .zip(&self.axes)
            .map(|((&start, &count), axis)| step(start, count) / axis.chunk)
            .collect()
    }

    /// Whether the chunk at `place`, in merged dimensions, meets `slab`.
    pub(super) fn meets(&self, slab: &Slab, place: &[u64]) -> bool {
        let steps = slab.start.iter().zip(&slab.count);
        steps
            .zip(self.axes.iter().zip(place))
            .all(|((&start, &count), (axis, &place))| {
                (start / axis.chunk..=(start + count - 1) / axis.chunk).contains(&place)
            })
    }

    /// The number, in C order of the grid, of the chunk at `place` in merged dimensions.
    pub(super) fn number(&self, place: &[u64]) -> u64 {
        let axes = self.axes.iter().zip(place);
        axes.fold(0, |number, (axis, &place)| number * axis.chunks() + place)
    }

    /// The highest number among the chunks that `slabs` meet.
    pub(super) fn last_number(&self, slabs: &[Slab]) -> u64 {
        let last = |slab| self.number(&self.corner(slab, |start, count| start + count - 1));
        slabs.iter().map(last).max().unwrap_or(0)
    }

    /// Chunks that a reader of all bytes in their order comes back to before it is done with them.
    pub(super) fn band(&self) -> u64 {
        let mut axes = self.axes.iter();
        // Along these, each step is another chunk.
        let _ = axes.find(|axis| axis.chunk.min(axis.length) > 1);
        axes.map(|axis| axis.chunks()).product()
    }

    /// The place of chunk `number` in the array's own dimensions, as indices know it.
    pub(super) fn place(&self, mut number: u64) -> Vec<u64> {
        let mut place = vec![0; self.dims.len()];
        let sizes = self.dims.iter().zip(&self.chunk);
        for (place, (&dim, &chunk)) in place.iter_mut().zip(sizes).rev() {
            let chunks = dim.div_ceil(chunk);
            *place = number % chunks;
            number /= chunks;
        }
        place
    }

    /// Whether the chunk at `place`, in the array's own dimensions, touches the extent.
    pub(super) fn is_inside(&self, place: &[u64]) -> bool {
        let sizes = self.dims.iter().zip(&self.chunk);
        place.len() == self.dims.len()
            && place
                .iter()
                .zip(sizes)
                .all(|(&place, (&dim, &chunk))| place < dim.div_ceil(chunk))
    }

    /// Whether the chunk at `place`, in the array's own dimensions, reaches beyond the extent.
    pub(super) fn sticks_out(&self, place: &[u64]) -> bool {
        let sizes = self.dims.iter().zip(&self.chunk);
        place
            .iter()
            .zip(sizes)
            .any(|(&place, (&dim, &chunk))| (place + 1).saturating_mul(chunk) > dim)
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

/// The places of the chunks in a box of the grid, in C order.
pub(super) struct Places {
    first: Vec<u64>,
    last: Vec<u64>,
    next: Option<Vec<u64>>,
}

impl Places {
    /// The one place, if there is only one.
    pub(super) fn only(&self) -> Option<&[u64]> {
        (self.first == self.last).then_some(&self.first)
    }
}

impl Iterator for Places {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let place = self.next.take()?;
        let mut following = place.clone();
        let bounds = self.first.iter().zip(&self.last);
        for (step, (&first, &last)) in following.iter_mut().zip(bounds).rev() {
            if *step < last {
                *step += 1;
                self.next = Some(following);
                break;
            }
            *step = first;
        }
        Some(place)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

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
        assert_eq!(grid.last_number(&slabs), grid.chunks() - 1);
        assert!(Grid::new(&[1, 1], &[1 << 62, 2], 1).is_err());
        assert!(Grid::new(&[1, 1], &[1], 1).is_err());
        assert!(Grid::new(&[1], &[0], 1).is_err());
    }

    /// A shape, its chunk shape and its element size.
    pub(in crate::array) fn shapes() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, u64)> {
        let axis = (1_u64..6, 1_u64..8);
        (prop::collection::vec(axis, 0..=5), 1_u64..5).prop_map(|(axes, element)| {
            let (dims, chunk) = axes.into_iter().unzip();
            (dims, chunk, element)
        })
    }

    /// A range of an array of `bytes` bytes, not empty, from two numbers.
    pub(in crate::array) fn range(bytes: u64, (a, b): (u64, u64)) -> (u64, u64) {
        let start = a % bytes;
        (start, start + 1 + b % (bytes - start))
    }

    proptest! {
        #[test]
        fn slabs_follow_each_other_and_are_few((dims, chunk, element) in shapes(), ends in any::<(u64, u64)>()) {
            let grid = Grid::new(&dims, &chunk, element).unwrap();
            let (start, end) = range(dims.iter().product::<u64>() * element, ends);
            let slabs = grid.slabs(start, end);
            prop_assert!(slabs.len() < 2 * grid.axes.len());
            let mut next = start;
            for slab in &slabs {
                let corner: u64 = slab.start.iter().zip(&grid.axes).map(|(&s, a)| s * a.stride).sum();
                prop_assert_eq!(corner, next);
                prop_assert_eq!(slab.at, next - start);
                for (axis, (first, count)) in grid.axes.iter().zip(slab.start.iter().zip(&slab.count)) {
                    prop_assert!(first + count <= axis.length);
                }
                next += slab.bytes();
            }
            prop_assert_eq!(next, end);
        }

        #[test]
        fn numbers_and_places_agree((dims, chunk, element) in shapes()) {
            let grid = Grid::new(&dims, &chunk, element).unwrap();
            let bytes = dims.iter().product::<u64>() * element;
            let mut seen = std::collections::BTreeSet::new();
            for slab in grid.slabs(0, bytes) {
                for place in grid.places(&slab) {
                    prop_assert!(grid.meets(&slab, &place));
                    seen.insert(grid.number(&place));
                }
            }
            let all: Vec<u64> = seen.into_iter().collect();
            prop_assert_eq!(&all, &(0..grid.chunks()).collect::<Vec<_>>());
            for number in all {
                let place = grid.place(number);
                prop_assert!(grid.is_inside(&place));
                let back = place.iter().zip(dims.iter().zip(&chunk))
                    .fold(0, |n, (&p, (&d, &c))| n * d.div_ceil(c) + p);
                prop_assert_eq!(back, number);
            }
        }
    }
}

//! The chunks that a range of an array's bytes overlaps, and the part of each chunk in the range.
//! Reading, decoding ahead and copying all use a [`ByteSpan`].

use crate::array::geometry::gather::CopyPlan;
use crate::array::geometry::grid::{Grid, Slab};

/// A range of an array's bytes, with the chunks that overlap the range.
#[derive(Debug)]
pub(in crate::array) struct ByteSpan<'a> {
    grid: &'a Grid,
    start: u64,
    end: u64,
    /// The boxes of the range, each with the chunks that overlap it.
    boxes: Vec<(Slab, ChunkBox)>,
}

/// The bytes of a span that one chunk contains.
#[derive(Debug)]
pub(in crate::array) struct ChunkPart {
    /// The chunk's number in C order of the grid.
    pub(in crate::array) number: u64,
    /// The copy plan for each box that the chunk overlaps, at least one.
    pub(in crate::array) plans: Vec<CopyPlan>,
}

/// The chunks of a box of the grid, given by the grid coordinates of the first and the last chunk
/// in merged dimensions.
#[derive(Debug, PartialEq, Eq)]
struct ChunkBox {
    first: Vec<u64>,
    last: Vec<u64>,
}

impl<'a> ByteSpan<'a> {
    /// Returns the span of bytes `start..end` (not empty, inside the array) of the array that
    /// `grid` divides.
    pub(in crate::array) fn new(grid: &'a Grid, start: u64, end: u64) -> Self {
        let boxes = grid.slabs(start, end).into_iter().map(|slab| {
            let chunks = ChunkBox::overlapping(grid, &slab);
            (slab, chunks)
        });
        ByteSpan {
            boxes: boxes.collect(),
            grid,
            start,
            end,
        }
    }

    /// Returns the offset of the span's first byte in the array.
    pub(in crate::array) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the offset after the span's last byte in the array.
    pub(in crate::array) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of bytes of the span.
    pub(in crate::array) fn length(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Returns the part of the span in each overlapping chunk, in the order of each chunk's first
    /// byte in the span.
    pub(in crate::array) fn parts(&self) -> impl Iterator<Item = ChunkPart> {
        let boxes = self.boxes.iter().enumerate();
        boxes.flat_map(|(i, (_, chunks))| {
            let (earlier, later) = self.boxes.split_at(i);
            let is_new = |place: &Vec<u64>| !earlier.iter().any(|(_, met)| met.contains(place));
            let places = chunks.chunk_coordinates().filter(is_new);
            places.map(|place| self.chunk_part(later, &place))
        })
    }

    fn chunk_part(&self, boxes: &[(Slab, ChunkBox)], place: &[u64]) -> ChunkPart {
        let met = boxes.iter().filter(|(_, chunks)| chunks.contains(place));
        ChunkPart {
            number: self.grid.chunk_number(place),
            plans: met
                .map(|(slab, _)| CopyPlan::new(self.grid, slab, place))
                .collect(),
        }
    }

    /// Returns the part of the span in the only chunk that overlaps the span. Returns `None` if
    /// several chunks overlap it.
    pub(in crate::array) fn single_part(&self) -> Option<ChunkPart> {
        let (_, first) = self.boxes.first()?;
        let is_same = |(_, chunks): &(Slab, ChunkBox)| chunks == first;
        let is_one = first.first == first.last && self.boxes.iter().all(is_same);
        is_one.then(|| self.chunk_part(&self.boxes, &first.first))
    }

    /// Returns the highest number of a chunk that overlaps the span.
    pub(in crate::array) fn last_chunk(&self) -> u64 {
        let last = self.boxes.iter();
        let last = last.map(|(_, chunks)| self.grid.chunk_number(&chunks.last));
        last.max().unwrap_or(0)
    }
}

impl ChunkPart {
    /// Returns the offset in the chunk at which the `length` bytes of a span begin. Returns `None`
    /// unless the bytes are one run in the chunk: the plans copy `length` bytes, and the first and
    /// the last byte are `length - 1` apart.
    pub(in crate::array) fn contiguous_offset(&self, length: usize) -> Option<usize> {
        let (first, last) = (
            self.plans.first()?.first_byte(),
            self.plans.last()?.last_byte(),
        );
        let brought: u64 = self.plans.iter().map(CopyPlan::byte_count).sum();
        (brought == length as u64 && last - first + 1 == brought).then_some(first as usize)
    }
}

impl ChunkBox {
    /// Returns the chunks that overlap `slab`.
    fn overlapping(grid: &Grid, slab: &Slab) -> Self {
        let corner = |step: fn(u64, u64) -> u64| {
            let steps = slab.start.iter().zip(&slab.count).zip(grid.axes());
            let places = steps.map(|((&start, &count), axis)| step(start, count) / axis.chunk);
            places.collect()
        };
        ChunkBox {
            first: corner(|start, _| start),
            last: corner(|start, count| start + count - 1),
        }
    }

    fn contains(&self, place: &[u64]) -> bool {
        let bounds = self.first.iter().zip(&self.last);
        let mut steps = bounds.zip(place);
        steps.all(|((first, last), step)| (first..=last).contains(&step))
    }

    /// Returns the grid coordinates of the chunks in C order.
    fn chunk_coordinates(&self) -> impl Iterator<Item = Vec<u64>> {
        std::iter::successors(Some(self.first.clone()), |place| {
            self.next_coordinates(place)
        })
    }

    fn next_coordinates(&self, place: &[u64]) -> Option<Vec<u64>> {
        if place == self.last {
            return None;
        }
        let mut following = place.to_vec();
        let bounds = self.first.iter().zip(&self.last);
        for (step, (&first, &last)) in following.iter_mut().zip(bounds).rev() {
            if *step < last {
                *step += 1;
                return Some(following);
            }
            *step = first;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::array::tests::sample::{range, shapes};

    #[test]
    fn the_last_bytes_of_the_largest_array_are_in_its_last_chunk() {
        let grid = Grid::new(&[1 << 60, 3], &[1 << 20, 2], 2).unwrap();
        let end = 3 * (1 << 61);
        let span = ByteSpan::new(&grid, end - 7, end);
        assert_eq!(span.last_chunk(), grid.chunk_count() - 1);
    }

    proptest! {
        #[test]
        fn each_chunk_has_one_part(
            (dims, chunk, element) in shapes(),
            ends in any::<(u64, u64)>(),
        ) {
            let grid = Grid::new(&dims, &chunk, element).unwrap();
            let bytes = dims.iter().product::<u64>() * element;
            let numbers = |start, end| {
                let span = ByteSpan::new(&grid, start, end);
                let parts: Vec<ChunkPart> = span.parts().collect();
                let brought = parts.iter().flat_map(|part| &part.plans).map(CopyPlan::byte_count);
                assert_eq!(brought.sum::<u64>(), end - start);
                let mut numbers: Vec<u64> = parts.iter().map(|part| part.number).collect();
                numbers.sort_unstable();
                assert_eq!(numbers.last(), Some(&span.last_chunk()));
                assert_eq!(span.single_part().is_some(), numbers.len() == 1);
                numbers
            };
            let (start, end) = range(bytes, ends);
            prop_assert!(numbers(start, end).windows(2).all(|pair| pair[0] < pair[1]));
            let all = numbers(0, bytes);
            prop_assert_eq!(&all, &(0..grid.chunk_count()).collect::<Vec<_>>());
            for number in all {
                let place = grid.chunk_coordinates(number);
                prop_assert!(grid.is_inside(&place));
                let back = place.iter().zip(dims.iter().zip(&chunk))
                    .fold(0, |n, (&p, (&d, &c))| n * d.div_ceil(c) + p);
                prop_assert_eq!(back, number);
            }
        }
    }
}

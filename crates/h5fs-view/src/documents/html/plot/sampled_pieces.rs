//! The pieces of an array that are read for its line plot. From an array that is too large to be
//! read as a whole, only evenly spaced pieces are read.

use std::ops::Range;

use h5fs_reader::model::Array;
use h5fs_reader::model::array::Storage;

use crate::limits;

/// Number of elements in a piece of an array whose bytes need no decoding.
const PIECE_ELEMENTS: u64 = 512;

/// The choice of the pieces of an array to read for a line plot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SampledPieces {
    /// Number of elements in a piece. The last piece may be shorter.
    length: u64,
    /// Number of pieces to read.
    pub(super) pieces_read: u64,
    /// Number of pieces in the array.
    pub(super) pieces_total: u64,
    /// Number of elements in the array.
    pub(super) count: u64,
}

impl SampledPieces {
    /// Chooses the pieces to read of an array of `count` elements. `along` is its coordinate array,
    /// which is read in the same pieces. Returns `None` if even one piece is too large.
    pub(super) fn choose(
        array: &Array,
        along: Option<&Array>,
        count: u64,
        is_remote: bool,
    ) -> Option<Self> {
        let arrays = || [array].into_iter().chain(along);
        let bytes = arrays().map(|array| count.saturating_mul(itemsize(array)));
        let is_whole = bytes.fold(0, u64::saturating_add) <= limits::HTML_DECODED;
        if arrays().any(is_sequential) && !is_whole {
            return None;
        }
        let (length, own) = match array.filtered_chunk() {
            Some((chunk, bytes)) => (chunk.first().copied().unwrap_or(1).max(1), bytes),
            None => (
                PIECE_ELEMENTS,
                PIECE_ELEMENTS.saturating_mul(itemsize(array)),
            ),
        };
        let all = count.div_ceil(length);
        let beside = along.map(|along| CoordinateCost::compute(along, count, length));
        let most = beside.map_or(limits::HTML_DECODED / own.max(1), |along| {
            along.max_pieces(own)
        });
        let is_scattered = is_remote || arrays().any(is_virtual);
        let few = if is_scattered && !is_whole {
            limits::HTML_FAR_PIECES
        } else {
            limits::HTML_PIECES
        };
        let read = if is_whole && all <= limits::HTML_WHOLE_PIECES && most > 0 {
            all
        } else {
            all.min(few).min(most)
        };
        (read > 0).then_some(SampledPieces {
            length,
            pieces_read: read,
            pieces_total: all,
            count,
        })
    }

    /// Returns whether only a part of the array is read.
    pub(super) fn is_sample(&self) -> bool {
        self.pieces_read < self.pieces_total
    }

    /// Returns the range of elements of each piece to read.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        let steps = u128::from(self.pieces_read.saturating_sub(1).max(1));
        let last = u128::from(self.pieces_total.saturating_sub(1));
        (0..self.pieces_read).map(move |number| {
            let place = u128::from(number) * last / steps;
            let first = u64::try_from(place)
                .unwrap_or(0)
                .saturating_mul(self.length);
            first..first.saturating_add(self.length).min(self.count)
        })
    }
}

/// The cost of reading the coordinates for the pieces of an array.
#[derive(Debug, Clone, Copy)]
struct CoordinateCost {
    /// Number of bytes that are decoded for all coordinates.
    all: u64,
    /// Number of bytes that are decoded for the coordinates of one piece.
    piece: u64,
}

impl CoordinateCost {
    /// Computes the cost of reading the coordinate array `along` of an array with `count` elements,
    /// in pieces of `length` elements.
    fn compute(along: &Array, count: u64, length: u64) -> Self {
        let own = along.shape.dims().first().copied().unwrap_or(count);
        let Some((chunk, bytes)) = along.filtered_chunk() else {
            let read = |count: u64| count.saturating_mul(itemsize(along));
            return CoordinateCost {
                all: read(own),
                piece: read(length),
            };
        };
        let chunk = chunk.first().copied().unwrap_or(1).max(1);
        let decoded = |elements: u64| elements.div_ceil(chunk).saturating_mul(bytes);
        let is_aligned = chunk.is_multiple_of(length) || length.is_multiple_of(chunk);
        // A piece may overlap one more chunk. Bin edges have one more element than the piece.
        let has_more = !is_aligned || own > count;
        CoordinateCost {
            all: decoded(own),
            piece: decoded(length).saturating_add(if has_more { bytes } else { 0 }),
        }
    }

    /// Returns the maximum number of pieces that a page may read together with their coordinates.
    /// `own` is the cost in bytes of reading a piece without its coordinates.
    fn max_pieces(self, own: u64) -> u64 {
        let most = limits::HTML_DECODED;
        let with_all = most.saturating_sub(self.all) / own.max(1);
        with_all.max(most / own.saturating_add(self.piece).max(1))
    }
}

fn itemsize(array: &Array) -> u64 {
    u64::from(array.datatype.size).max(1)
}

/// Returns whether the elements of the array can be read only from the beginning on, such as from a
/// compressed stream.
fn is_sequential(array: &Array) -> bool {
    matches!(array.storage, Ok(Storage::Encoded(_) | Storage::Strided(_)))
}

fn is_virtual(array: &Array) -> bool {
    matches!(array.storage, Ok(Storage::Virtual(_)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use h5fs_reader::model::array::{Fill, Layout};
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::model::storage::{Filter, Pipeline};
    use h5fs_reader::model::{Datatype, Shape};
    use h5fs_reader::wire::to_u64;

    /// Returns an array of 64-bit numbers, in compressed chunks or without chunks.
    pub(in super::super) fn array(count: u64, chunk: Option<u64>) -> Array {
        let filter = Filter {
            id: 1,
            name: None,
            parameters: Vec::new(),
        };
        Array {
            datatype: Datatype::ieee(8, ByteOrder::Little),
            shape: Shape::fixed(vec![count]),
            fill: Fill::Zero,
            layout: Layout::Chunked,
            chunk_shape: chunk.map(|chunk| vec![chunk]),
            pipeline: Pipeline(chunk.map(|_| filter).into_iter().collect()),
            storage: Ok(Storage::Fill),
        }
    }

    fn pieces(count: u64, chunk: Option<u64>) -> Option<(u64, u64)> {
        let pieces = SampledPieces::choose(&array(count, chunk), None, count, false)?;
        assert_eq!(to_u64(pieces.iter().count()), pieces.pieces_read);
        assert_eq!(pieces.iter().next().unwrap().start, 0);
        Some((pieces.pieces_read, pieces.pieces_total))
    }

    #[test]
    fn small_arrays_are_read_whole() {
        assert_eq!(pieces(1000, None), Some((2, 2)));
        assert_eq!(pieces(4 << 20, None), Some((8192, 8192)));
        assert_eq!(pieces(4 << 20, Some(1 << 10)), Some((4096, 4096)));
    }

    /// At most 4096 evenly spaced pieces are read, with at most the bytes that a page may decode.
    #[test]
    fn of_large_ones_evenly_spaced_pieces_are_read() {
        assert_eq!(pieces(1 << 40, None), Some((4096, 1 << 31)));
        assert_eq!(pieces(1 << 40, Some(1 << 10)), Some((4096, 1 << 30)));
        assert_eq!(pieces(1 << 40, Some(1 << 20)), Some((4, 1 << 20)));
        assert_eq!(pieces(1 << 40, Some(1 << 30)), None);
        // The number of chunks is limited, because many small chunks take long, too.
        assert_eq!(pieces(65_536, Some(1)), Some((65_536, 65_536)));
        assert_eq!(pieces(65_537, Some(1)), Some((4096, 65_537)));
        let far = SampledPieces::choose(&array(1 << 40, None), None, 1 << 40, true).unwrap();
        assert_eq!(far.pieces_read, limits::HTML_FAR_PIECES);
        let four =
            SampledPieces::choose(&array(1 << 40, Some(1 << 20)), None, 1 << 40, false).unwrap();
        let last = four.iter().last().unwrap();
        assert_eq!(last, (1 << 40) - (1 << 20)..1 << 40);
    }

    /// The limit of 32 MiB covers the array and its coordinates together.
    #[test]
    fn what_stands_along_an_array_takes_its_part() {
        let read = |count, own, along| {
            let along = array(count, along);
            let pieces = SampledPieces::choose(&array(count, own), Some(&along), count, false);
            pieces.map(|pieces| (pieces.pieces_read, pieces.pieces_total))
        };
        // The first case has 16 MiB for each array, the second one 32 MiB.
        assert_eq!(read(2 << 20, None, None), Some((4096, 4096)));
        assert_eq!(read(4 << 20, None, None), Some((4096, 8192)));
        // Chunks of 8 MiB allow four pieces, or two together with their coordinates.
        assert_eq!(read(1 << 40, Some(1 << 20), None), Some((2, 1 << 20)));
        assert_eq!(
            read(1 << 40, Some(1 << 20), Some(1 << 20)),
            Some((2, 1 << 20))
        );
        // The coordinates are one chunk of 16 MiB, which is decoded once.
        assert_eq!(
            read(1 << 21, Some(1 << 10), Some(1 << 21)),
            Some((2048, 2048))
        );
        assert_eq!(
            read(1 << 40, Some(1 << 10), Some(1 << 21)),
            Some((1, 1 << 30))
        );
        assert_eq!(read(1 << 40, Some(1 << 10), Some(1 << 22)), None);
        // A coordinate chunk is far larger than the piece.
        assert_eq!(read(1000, Some(1000), Some(1 << 30)), None);
    }
}

//! The numbers of an array of one dimension, as the minimum and the maximum of each of some bins.
//!
//! Of an array that is too large to be read whole, evenly spaced pieces are read.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::Array;
use crate::model::array::Storage;
use crate::view::cf::stored::Stored;
use crate::view::elements::Elements;
use crate::view::elements::missing::Missing;
use crate::wire::to_usize;

/// Bins of a line.
pub(super) const BINS: u64 = 640;

/// Elements of a piece of an array that is not decoded.
const RUN: u64 = 512;

/// What is known of the numbers in a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bin {
    /// None of them was read.
    Unread,
    /// Those that were read are not finite, or missing.
    Nothing,
    /// They are within these bounds.
    Range(f64, f64),
}

impl Bin {
    fn add(&mut self, number: f64) {
        *self = match *self {
            Bin::Range(least, most) if number.is_finite() => {
                Bin::Range(least.min(number), most.max(number))
            }
            Bin::Unread | Bin::Nothing if number.is_finite() => Bin::Range(number, number),
            Bin::Unread => Bin::Nothing,
            known => known,
        };
    }
}

/// The pieces of an array that are read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Elements of each, of the last one fewer.
    length: u64,
    /// How many are read.
    pub(super) read: u64,
    /// How many there are.
    pub(super) all: u64,
    /// Elements of the array.
    count: u64,
}

impl Pieces {
    /// The pieces of an array of `count` elements that a page reads; `None` where one alone is too
    /// much.
    pub(super) fn of(array: &Array, count: u64, is_far: bool) -> Option<Self> {
        let itemsize = u64::from(array.datatype.size).max(1);
        let bytes = count.saturating_mul(itemsize);
        let is_whole = bytes <= limits::HTML_DECODED;
        if matches!(array.storage, Ok(Storage::Encoded(_) | Storage::Strided(_))) && !is_whole {
            return None;
        }
        let (length, cost) = match array.decoded_chunk() {
            Some((chunk, bytes)) => (chunk.first().copied().unwrap_or(1).max(1), bytes),
            None => (RUN, RUN.saturating_mul(itemsize)),
        };
        let all = count.div_ceil(length);
        let is_scattered = is_far || matches!(array.storage, Ok(Storage::Virtual(_)));
        let most = if is_scattered && !is_whole {
            limits::HTML_FAR_PIECES
        } else {
            limits::HTML_PIECES
        };
        let are_few = all <= limits::HTML_WHOLE_PIECES;
        let read = if is_whole && are_few && cost <= limits::HTML_DECODED {
            all
        } else {
            all.min(most).min(limits::HTML_DECODED / cost.max(1))
        };
        (read > 0).then_some(Pieces {
            length,
            read,
            all,
            count,
        })
    }

    /// The elements of each piece that is read.
    fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        let steps = u128::from(self.read.saturating_sub(1).max(1));
        let last = u128::from(self.all.saturating_sub(1));
        (0..self.read).map(move |number| {
            let place = u128::from(number) * last / steps;
            let first = u64::try_from(place)
                .unwrap_or(0)
                .saturating_mul(self.length);
            first..first.saturating_add(self.length).min(self.count)
        })
    }
}

/// The bins of an array of numbers, and the first piece that could not be read.
pub(super) struct Binned {
    pub(super) bins: Vec<Bin>,
    pub(super) error: Option<Error>,
}

impl Binned {
    /// The bin of an element of `count`.
    fn place(&self, index: u64, count: u64) -> usize {
        let bins = self.bins.len();
        let place = u128::from(index) * bins as u128 / u128::from(count.max(1));
        usize::try_from(place).map_or(0, |place| place.min(bins.saturating_sub(1)))
    }

    fn add(&mut self, index: u64, count: u64, number: f64) {
        let place = self.place(index, count);
        if let Some(bin) = self.bins.get_mut(place) {
            bin.add(number);
        }
    }
}

/// Reads `pieces` of `elements`, which are numbers that `stored` reads.
///
/// # Errors
/// `Limit` where the machine cannot count them.
pub(super) fn read(
    elements: &Elements,
    stored: Stored,
    missing: Option<&Missing>,
    pieces: &Pieces,
) -> Result<Binned> {
    let count = pieces.count;
    let bins = count.min(BINS);
    let mut binned = Binned {
        bins: vec![Bin::Unread; to_usize(bins)?],
        error: None,
    };
    for piece in pieces.iter() {
        let mut at = piece.start;
        while at < piece.end {
            let batch = elements.batch().min(piece.end - at);
            match numbers(elements, stored, missing, at, batch) {
                Ok(numbers) => {
                    for (number, index) in numbers.into_iter().zip(at..) {
                        binned.add(index, count, number);
                    }
                }
                Err(error) => {
                    binned.error.get_or_insert(error);
                    // The line breaks off there.
                    let (first, last) = (binned.place(at, count), at + batch - 1);
                    for place in first..=binned.place(last, count) {
                        binned.bins[place].add(f64::NAN);
                    }
                }
            }
            at += batch;
        }
    }
    Ok(binned)
}

/// The numbers of `count` elements from number `first` on; those that are missing are none.
fn numbers(
    elements: &Elements,
    stored: Stored,
    missing: Option<&Missing>,
    first: u64,
    count: u64,
) -> Result<Vec<f64>> {
    let bytes = elements.read(first, count)?;
    let datatype = &elements.datatype;
    let missing = missing.map(|missing| missing.among(datatype, first, count, &bytes));
    let missing = missing.transpose()?.unwrap_or_default();
    let size = to_usize(u64::from(stored.size()))?.max(1);
    let each = bytes.chunks_exact(size).enumerate();
    Ok(each
        .map(|(place, element)| match missing.get(place) {
            Some(true) => f64::NAN,
            _ => stored.read(element).as_f64(),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Engine, Reader};
    use crate::model::array::{Fill, Layout};
    use crate::model::datatype::ByteOrder;
    use crate::model::storage::{Filter, Pipeline};
    use crate::model::{Datatype, Shape};
    use crate::wire::to_u64;
    use std::sync::Arc;

    fn array(count: u64, chunk: Option<u64>) -> Array {
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
        let pieces = Pieces::of(&array(count, chunk), count, false)?;
        assert_eq!(to_u64(pieces.iter().count()), pieces.read);
        assert_eq!(pieces.iter().next().unwrap().start, 0);
        Some((pieces.read, pieces.all))
    }

    #[test]
    fn small_arrays_are_read_whole() {
        assert_eq!(pieces(1000, None), Some((2, 2)));
        assert_eq!(pieces(4 << 20, None), Some((8192, 8192)));
        assert_eq!(pieces(4 << 20, Some(1 << 10)), Some((4096, 4096)));
    }

    /// At most 4096 evenly spaced pieces, and no more bytes than a page may decode.
    #[test]
    fn of_large_ones_evenly_spaced_pieces_are_read() {
        assert_eq!(pieces(1 << 40, None), Some((4096, 1 << 31)));
        assert_eq!(pieces(1 << 40, Some(1 << 10)), Some((4096, 1 << 30)));
        assert_eq!(pieces(1 << 40, Some(1 << 20)), Some((4, 1 << 20)));
        assert_eq!(pieces(1 << 40, Some(1 << 30)), None);
        // Few bytes in many chunks take as long.
        assert_eq!(pieces(65_536, Some(1)), Some((65_536, 65_536)));
        assert_eq!(pieces(65_537, Some(1)), Some((4096, 65_537)));
        let far = Pieces::of(&array(1 << 40, None), 1 << 40, true).unwrap();
        assert_eq!(far.read, limits::HTML_FAR_PIECES);
        let four = Pieces::of(&array(1 << 40, Some(1 << 20)), 1 << 40, false).unwrap();
        let last = four.iter().last().unwrap();
        assert_eq!(last, (1 << 40) - (1 << 20)..1 << 40);
    }

    fn binned(numbers: &[f64]) -> Vec<Bin> {
        let bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        let count = to_u64(numbers.len());
        let array = Array {
            storage: Ok(Storage::Inline(bytes.into())),
            ..array(count, None)
        };
        let stored = Stored::new(&array.datatype).unwrap();
        let pieces = Pieces::of(&array, count, false).unwrap();
        let reader = Reader::new(&Engine::new(0, 1), Arc::new(array)).unwrap();
        let elements = Elements::whole(Arc::new(reader)).unwrap();
        read(&elements, stored, None, &pieces).unwrap().bins
    }

    #[test]
    fn a_bin_has_the_least_and_the_greatest_number() {
        let few = binned(&[1.5, f64::NAN, -2.0]);
        assert_eq!(
            few,
            [Bin::Range(1.5, 1.5), Bin::Nothing, Bin::Range(-2.0, -2.0)]
        );
        let mut numbers: Vec<f64> = (0..6400).map(f64::from).collect();
        numbers[15] = 1e300;
        numbers[25] = f64::INFINITY;
        let many = binned(&numbers);
        assert_eq!(many.len(), 640);
        assert_eq!(many[0], Bin::Range(0.0, 9.0));
        assert_eq!(many[1], Bin::Range(10.0, 1e300));
        assert_eq!(many[2], Bin::Range(20.0, 29.0));
        assert_eq!(many[639], Bin::Range(6390.0, 6399.0));
    }
}

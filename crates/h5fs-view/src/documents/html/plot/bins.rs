//! The numbers of an array with one dimension, as the minimum and the maximum of each bin.
//!
//! All bins have the same number of elements. If the coordinates of the dimension only rise, or
//! only fall, there are also bins of equal width in the coordinate.

use h5fs_conventions::stored_type::StoredType;
use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_usize;

use crate::documents::html::plot::bin::{BINS, Bin};
use crate::documents::html::plot::equal_width_bins::{BinBuilder, PlacedBins, ReadCoordinates};
use crate::documents::html::plot::sampled_pieces::SampledPieces;
use crate::elements::Elements;
use crate::elements::missing::MissingValues;

/// A reader of the numbers of an array.
pub(super) struct NumberReader {
    pub(super) elements: Elements,
    pub(super) stored: StoredType,
    pub(super) missing: Option<MissingValues>,
    pub(super) cancel: CancelToken,
}

impl NumberReader {
    /// Reads `count` numbers, from number `first` on. Missing numbers become NaN.
    ///
    /// # Errors
    /// Fails if the elements cannot be read.
    pub(super) fn read(&self, first: u64, count: u64) -> Result<Vec<f64>> {
        let bytes = self.elements.read(first, count, &self.cancel)?;
        let datatype = &self.elements.datatype;
        let missing = self.missing.as_ref();
        let missing = missing
            .map(|missing| missing.find_missing(datatype, first, count, &bytes, &self.cancel));
        let missing = missing.transpose()?.unwrap_or_default();
        let size = to_usize(u64::from(self.stored.size()))?.max(1);
        let each = bytes.chunks_exact(size).enumerate();
        Ok(each
            .map(|(place, element)| match missing.get(place) {
                Some(true) => f64::NAN,
                _ => self.stored.read_number(element).as_f64(),
            })
            .collect())
    }
}

/// The numbers of an array, grouped into bins.
pub(super) struct BinnedNumbers {
    /// Bins with the same number of elements each.
    pub(super) bins: Vec<Bin>,
    /// Bins of equal width in the coordinate, if the coordinates are sorted.
    pub(super) placed_bins: Option<PlacedBins>,
    /// The first error of reading the numbers. `coordinate_error` is the first error of reading the
    /// coordinates.
    pub(super) error: Option<Error>,
    pub(super) coordinate_error: Option<Error>,
}

impl BinnedNumbers {
    /// Returns the index of the bin that contains element `index` of `count` elements.
    fn bin_index(&self, index: u64, count: u64) -> usize {
        let bins = self.bins.len();
        let place = u128::from(index) * bins as u128 / u128::from(count.max(1));
        usize::try_from(place).map_or(0, |place| place.min(bins.saturating_sub(1)))
    }

    fn add(&mut self, index: u64, count: u64, number: f64) {
        let place = self.bin_index(index, count);
        if let Some(bin) = self.bins.get_mut(place) {
            bin.add(number);
        }
    }

    /// Marks the bins of the elements from `first` to `last` as empty, so that the plotted line is
    /// interrupted there. `count` is the number of elements of the array.
    fn interrupt_line(&mut self, first: u64, last: u64, count: u64) {
        for place in self.bin_index(first, count)..=self.bin_index(last, count) {
            self.bins[place].add(f64::NAN);
        }
    }
}

/// Reads `pieces` of `numbers` and of their coordinates `along`, and groups the numbers into bins.
///
/// # Errors
/// `Limit` if the number of bins does not fit in memory. Other errors are returned in the result.
pub(super) fn read(
    numbers: &NumberReader,
    along: Option<&ReadCoordinates<'_>>,
    pieces: &SampledPieces,
) -> Result<BinnedNumbers> {
    let count = pieces.count;
    let mut binned = BinnedNumbers {
        bins: vec![Bin::Unread; to_usize(count.min(BINS))?],
        placed_bins: None,
        error: None,
        coordinate_error: None,
    };
    let mut beside = None;
    if let Some(along) = along {
        match BinBuilder::new(along, count) {
            Ok(spread) => beside = spread.map(|spread| (along, spread)),
            Err(error) => binned.coordinate_error = Some(error),
        }
    }
    let mut last_end = 0;
    for piece in pieces.iter() {
        if piece.start > last_end
            && let Some((_, spread)) = &mut beside
        {
            // Nothing was read before this piece, so the line is interrupted.
            spread.add(&[f64::NAN], &[f64::NAN]);
        }
        last_end = piece.end;
        let mut at = piece.start;
        while at < piece.end {
            let batch = numbers.elements.batch_elements().min(piece.end - at);
            let read = numbers.read(at, batch).unwrap_or_else(|error| {
                binned.error.get_or_insert(error);
                binned.interrupt_line(at, at + batch - 1, count);
                vec![f64::NAN; to_usize(batch).unwrap_or(0)]
            });
            for (&number, index) in read.iter().zip(at..) {
                binned.add(index, count, number);
            }
            if let Some((along, spread)) = &mut beside {
                match along(at, batch) {
                    Ok(places) => spread.add(&places, &read),
                    Err(error) => {
                        binned.coordinate_error = Some(error);
                        beside = None;
                    }
                }
            }
            at += batch;
        }
    }
    binned.placed_bins = beside.and_then(|(_, spread)| spread.finish());
    Ok(binned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::html::plot::sampled_pieces::tests::array;
    use crate::text_files::text::InMemoryContent;
    use h5fs_reader::wire::to_u64;

    fn bin_numbers(numbers: &[f64], along: Option<&[f64]>) -> BinnedNumbers {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        let count = to_u64(numbers.len());
        let array = array(count, None);
        let numbers = NumberReader {
            stored: StoredType::new(&array.datatype).unwrap(),
            elements: Elements {
                datatype: array.datatype.clone(),
                dims: Some(vec![count]),
                content: Box::new(InMemoryContent::new(bytes.collect())),
            },
            missing: None,
            cancel: CancelToken::default(),
        };
        let pieces = SampledPieces::choose(&array, None, count, false).unwrap();
        let along = along.map(|along| {
            |first: u64, count: u64| {
                let first = to_usize(first)?;
                let found = along.get(first..first + to_usize(count)?);
                found.map(<[f64]>::to_vec).ok_or(Error::NotFound)
            }
        });
        let along = along.as_ref().map(|along| along as &ReadCoordinates<'_>);
        read(&numbers, along, &pieces).unwrap()
    }

    #[test]
    fn a_bin_has_the_least_and_the_greatest_number() {
        let few = bin_numbers(&[1.5, f64::NAN, -2.0], None).bins;
        assert_eq!(
            few,
            [Bin::Range(1.5, 1.5), Bin::Empty, Bin::Range(-2.0, -2.0)]
        );
        let mut numbers: Vec<f64> = (0..6400).map(f64::from).collect();
        numbers[15] = 1e300;
        numbers[25] = f64::INFINITY;
        let many = bin_numbers(&numbers, None).bins;
        assert_eq!(many.len(), 640);
        assert_eq!(many[0], Bin::Range(0.0, 9.0));
        assert_eq!(many[1], Bin::Range(10.0, 1e300));
        assert_eq!(many[2], Bin::Range(20.0, 29.0));
        assert_eq!(many[639], Bin::Range(6390.0, 6399.0));
    }

    /// Calculated by hand: the squares from 0 to 999² are in bins of width 999² / 640 = 1559.4.
    #[test]
    fn bins_are_as_wide_as_each_other_where_what_stands_along_is_sorted() {
        let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
        let squares: Vec<f64> = numbers.iter().map(|number| number * number).collect();
        for squares in [squares.clone(), squares.into_iter().rev().collect()] {
            let rises = squares[0] == 0.0;
            let of_root = |root: f64| if rises { root } else { 999.0 - root };
            let placed = bin_numbers(&numbers, Some(&squares)).placed_bins.unwrap();
            assert_eq!(placed.range, (0.0, 998_001.0));
            assert_eq!(placed.positioned_bins.len(), 640);
            // 39² = 1521, 40² = 1600.
            let ends = [of_root(0.0), of_root(39.0)];
            let first = Bin::Range(ends[0].min(ends[1]), ends[0].max(ends[1]));
            assert_eq!(
                (placed.positioned_bins[0].bin, placed.positioned_bins[0].x),
                (first, 760.5)
            );
            let last = placed.positioned_bins[639];
            assert_eq!(last.bin, Bin::Range(of_root(999.0), of_root(999.0)));
            assert_eq!(last.x, 998_001.0);
        }
    }

    #[test]
    fn few_numbers_stand_where_they_are_whatever_the_order() {
        let placed = bin_numbers(&[1.0, 2.0, 3.0], Some(&[5.0, f64::NAN, -5.0])).placed_bins;
        let placed = placed.unwrap();
        assert_eq!(placed.range, (-5.0, 5.0));
        let bins = [Bin::Range(1.0, 1.0), Bin::Empty, Bin::Range(3.0, 3.0)];
        assert_eq!(
            [0, 1, 2].map(|number: usize| placed.positioned_bins[number].bin),
            bins
        );
        assert_eq!(
            (placed.positioned_bins[0].x, placed.positioned_bins[2].x),
            (5.0, -5.0)
        );
        assert!(
            bin_numbers(&[1.0, 2.0], Some(&[3.0, 3.0]))
                .placed_bins
                .is_none(),
            "no range"
        );
    }

    #[test]
    fn many_numbers_without_an_order_or_a_place_stand_over_their_index() {
        let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
        let mut along = numbers.clone();
        along.swap(500, 501);
        let swapped = bin_numbers(&numbers, Some(&along));
        assert!(swapped.placed_bins.is_none() && swapped.coordinate_error.is_none());
        let short = bin_numbers(&numbers, Some(&numbers[..900]));
        assert!(short.placed_bins.is_none() && short.coordinate_error.is_some());
        assert_eq!(short.bins, bin_numbers(&numbers, None).bins);
    }
}

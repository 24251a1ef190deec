//! Bins of an array's numbers by their coordinate, such as a time or an energy.

use h5fs_reader::error::Result;
use h5fs_reader::wire::to_usize;

use crate::documents::html::plot::bin::{BINS, Bin};

/// A function that reads coordinates. Its arguments are the index of the first element and the
/// number of elements.
pub(super) type ReadCoordinates<'a> = dyn Fn(u64, u64) -> Result<Vec<f64>> + 'a;

/// A bin, and its coordinate on the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PositionedBin {
    pub(super) bin: Bin,
    /// The coordinate of the bin. It is finite if the bin contains numbers.
    pub(super) x: f64,
}

/// Bins with their coordinates, and the range of the horizontal axis.
#[derive(Debug)]
pub(super) struct PlacedBins {
    /// The bins in the order of the line.
    pub(super) positioned_bins: Vec<PositionedBin>,
    /// The minimum and maximum of the coordinates. Their difference is finite and positive.
    pub(super) range: (f64, f64),
}

/// Bins to which numbers are being added.
pub(super) enum BinBuilder {
    /// One bin for each number, because there are few numbers.
    Points(Vec<PositionedBin>),
    /// Bins of equal width, because the coordinates are sorted.
    Sorted(SortedBins),
}

/// Bins whose ranges of coordinates have equal widths.
pub(super) struct SortedBins {
    range: (f64, f64),
    bins: Vec<EqualWidthBin>,
    last: Option<f64>,
    is_ascending: bool,
    is_descending: bool,
}

/// A bin that covers a range of coordinates. All bins cover ranges of the same width.
#[derive(Clone, Copy)]
struct EqualWidthBin {
    bin: Bin,
    /// The minimum of the coordinates of the bin's numbers. `most` is their maximum.
    least: f64,
    most: f64,
}

impl BinBuilder {
    /// Creates bins for `count` numbers. `along` reads their coordinates. Returns `None` if the
    /// first and the last coordinate are equal, or their difference is not finite, because bins of
    /// equal width then do not exist.
    ///
    /// # Errors
    /// Fails if the first or the last coordinate cannot be read.
    pub(super) fn new(along: &ReadCoordinates<'_>, count: u64) -> Result<Option<Self>> {
        if count <= BINS {
            return Ok(Some(BinBuilder::Points(Vec::new())));
        }
        let ends = [along(0, 1)?, along(count - 1, 1)?].concat();
        let Some(range) = finite_range(&ends).filter(|_| ends.iter().all(|end| end.is_finite()))
        else {
            return Ok(None);
        };
        let empty = EqualWidthBin {
            bin: Bin::Unread,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        };
        Ok(Some(BinBuilder::Sorted(SortedBins {
            range,
            bins: vec![empty; to_usize(BINS)?],
            last: None,
            is_ascending: true,
            is_descending: true,
        })))
    }

    /// Adds `numbers`. Their coordinates are `along`, in the same order.
    pub(super) fn add(&mut self, along: &[f64], numbers: &[f64]) {
        for (&x, &number) in along.iter().zip(numbers) {
            match self {
                BinBuilder::Points(places) => {
                    let mut bin = Bin::Unread;
                    bin.add(if x.is_finite() { number } else { f64::NAN });
                    places.push(PositionedBin { bin, x });
                }
                BinBuilder::Sorted(sorted) => sorted.add(x, number),
            }
        }
    }

    /// Returns the bins; `None` if the coordinates neither rise nor fall, or do not span a range.
    pub(super) fn finish(self) -> Option<PlacedBins> {
        match self {
            BinBuilder::Points(places) => {
                let along: Vec<f64> = places.iter().map(|place| place.x).collect();
                let range = finite_range(&along)?;
                Some(PlacedBins {
                    positioned_bins: places,
                    range,
                })
            }
            BinBuilder::Sorted(sorted) => sorted.finish(),
        }
    }
}

impl SortedBins {
    fn add(&mut self, x: f64, number: f64) {
        if !x.is_finite() {
            return;
        }
        self.is_ascending &= self.last.is_none_or(|last| x >= last);
        self.is_descending &= self.last.is_none_or(|last| x <= last);
        self.last = Some(x);
        let (least, most) = self.range;
        let count = self.bins.len();
        let place = (x - least) / (most - least) * count as f64;
        let place = (place.max(0.0) as usize).min(count.saturating_sub(1));
        if let Some(wide) = self.bins.get_mut(place) {
            wide.bin.add(number);
            wide.least = wide.least.min(x);
            wide.most = wide.most.max(x);
        }
    }

    fn finish(self) -> Option<PlacedBins> {
        if !self.is_ascending && !self.is_descending {
            return None;
        }
        let places = self.bins.iter().map(|wide| PositionedBin {
            bin: wide.bin,
            x: wide.least / 2.0 + wide.most / 2.0,
        });
        Some(PlacedBins {
            positioned_bins: places.collect(),
            range: self.range,
        })
    }
}

/// Returns the minimum and maximum of the finite numbers; `None` if their difference is zero or
/// overflows.
fn finite_range(numbers: &[f64]) -> Option<(f64, f64)> {
    let finite = numbers.iter().copied().filter(|number| number.is_finite());
    let ends = finite.map(|number| (number, number));
    let (least, most) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let width = most - least;
    (width > 0.0 && width.is_finite()).then_some((least, most))
}

//! The bins of an array's numbers by what stands along its dimension: a time, an energy.

use crate::error::Result;
use crate::view::texts::html::plot::bin::{BINS, Bin};
use crate::wire::to_usize;

/// Reads the numbers that stand along the dimension: the first one, and how many.
pub(super) type ReadAlong<'a> = dyn Fn(u64, u64) -> Result<Vec<f64>> + 'a;

/// A bin, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub(super) bin: Bin,
    /// Finite where the bin holds numbers.
    pub(super) x: f64,
}

/// Bins over a range.
#[derive(Debug)]
pub(super) struct Placed {
    /// In the order in which a line goes through them.
    pub(super) places: Vec<Place>,
    /// The least and the greatest number that stands along them; their difference is finite, and not
    /// 0.
    pub(super) range: (f64, f64),
}

/// Bins that are being filled.
pub(super) enum Spread {
    /// One for each of few numbers.
    Points(Vec<Place>),
    /// Bins of one width, for numbers that stand along a dimension in their order.
    Sorted(Sorted),
}

/// Bins of one width.
pub(super) struct Sorted {
    range: (f64, f64),
    bins: Vec<Wide>,
    last: Option<f64>,
    rises: bool,
    falls: bool,
}

/// One of them.
#[derive(Clone, Copy)]
struct Wide {
    bin: Bin,
    /// The least and the greatest place of a number in it.
    least: f64,
    most: f64,
}

impl Spread {
    /// Bins for `count` numbers; `None` where what stands at the ends shows that there is no order.
    ///
    /// # Errors
    /// Fails if that cannot be read.
    pub(super) fn of(along: &ReadAlong<'_>, count: u64) -> Result<Option<Self>> {
        if count <= BINS {
            return Ok(Some(Spread::Points(Vec::new())));
        }
        let ends = [along(0, 1)?, along(count - 1, 1)?].concat();
        let Some(range) = range(&ends).filter(|_| ends.iter().all(|end| end.is_finite())) else {
            return Ok(None);
        };
        let empty = Wide {
            bin: Bin::Unread,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        };
        Ok(Some(Spread::Sorted(Sorted {
            range,
            bins: vec![empty; to_usize(BINS)?],
            last: None,
            rises: true,
            falls: true,
        })))
    }

    /// Adds numbers, and what stands along each.
    pub(super) fn add(&mut self, along: &[f64], numbers: &[f64]) {
        for (&x, &number) in along.iter().zip(numbers) {
            match self {
                Spread::Points(places) => {
                    let mut bin = Bin::Unread;
                    bin.add(if x.is_finite() { number } else { f64::NAN });
                    places.push(Place { bin, x });
                }
                Spread::Sorted(sorted) => sorted.add(x, number),
            }
        }
    }

    /// The bins; `None` where what stands along them has no order, or no range.
    pub(super) fn finish(self) -> Option<Placed> {
        match self {
            Spread::Points(places) => {
                let along: Vec<f64> = places.iter().map(|place| place.x).collect();
                let range = range(&along)?;
                Some(Placed { places, range })
            }
            Spread::Sorted(sorted) => sorted.finish(),
        }
    }
}

impl Sorted {
    fn add(&mut self, x: f64, number: f64) {
        if !x.is_finite() {
            return;
        }
        self.rises &= self.last.is_none_or(|last| x >= last);
        self.falls &= self.last.is_none_or(|last| x <= last);
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

    fn finish(self) -> Option<Placed> {
        if !self.rises && !self.falls {
            return None;
        }
        let places = self.bins.iter().map(|wide| Place {
            bin: wide.bin,
            x: wide.least / 2.0 + wide.most / 2.0,
        });
        Some(Placed {
            places: places.collect(),
            range: self.range,
        })
    }
}

/// The least and the greatest finite number; `None` where their difference is none to divide by.
fn range(numbers: &[f64]) -> Option<(f64, f64)> {
    let finite = numbers.iter().copied().filter(|number| number.is_finite());
    let ends = finite.map(|number| (number, number));
    let (least, most) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let width = most - least;
    (width > 0.0 && width.is_finite()).then_some((least, most))
}

//! The numbers of the runs that the index of a sparse matrix makes.

use std::ops::Range;

use crate::array::CancelToken;
use crate::error::{Error, Result};
use crate::view::cf::stored as numbers;
use crate::view::parquet::leaf::{Values, Written};
use crate::view::parquet::stored::Place;
use crate::view::table::runs::find;
use crate::wire::to_usize;

/// Places of the index that are read at a time.
const PLACES: u64 = 16 << 10;

/// Which run each element is in, as INT64.
pub(super) struct RunNumbers {
    /// The beginning of each run, and the end of the last.
    pub(super) place: Place,
    pub(super) stored: numbers::Stored,
    /// How many runs there are.
    pub(super) count: u64,
}

impl RunNumbers {
    fn places(&self, numbers: Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>> {
        let mut places = Vec::with_capacity(to_usize(numbers.end - numbers.start)?);
        self.place.each(numbers, cancel, &mut |value| {
            let place = self.stored.read(value).as_integer();
            let place = place.and_then(|place| u64::try_from(place).ok());
            let nowhere = || Error::corrupt("table: a place below 0", None);
            places.push(place.ok_or_else(nowhere)?);
            Ok(())
        })?;
        Ok(places)
    }
}

impl Values for RunNumbers {
    fn row_bytes(&self) -> u64 {
        8
    }

    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut Written) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let place = |number: u64| {
            let places = self.places(number..number.saturating_add(1), cancel)?;
            places.first().copied().ok_or(Error::NotFound)
        };
        let mut number = find(rows.start, self.count, &place)?;
        let mut element = rows.start;
        while element < rows.end {
            if number >= self.count {
                let what = "table: an element that is in no run";
                return Err(Error::corrupt(what, None));
            }
            // The ends of this run and of those that follow.
            let most = self.count.min(number.saturating_add(PLACES));
            let ends = self.places(number + 1..most + 1, cancel)?;
            for end in ends {
                let end = end.min(rows.end);
                let count = to_usize(end.saturating_sub(element))?;
                let bytes = number.to_le_bytes();
                out.bytes
                    .extend(std::iter::repeat_n(bytes, count).flatten());
                element = element.max(end);
                number += 1;
                if element >= rows.end {
                    break;
                }
            }
        }
        Ok(())
    }

    fn own_bytes(&self) -> u64 {
        0
    }
}

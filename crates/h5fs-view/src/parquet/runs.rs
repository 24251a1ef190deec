//! A column with the row or column number of each value of a sparse matrix, computed from `indptr`.

use std::ops::Range;

use h5fs_conventions::stored_type as numbers;
use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_usize;

use crate::parquet::leaf::{EncodedValues, LeafValues};
use crate::parquet::stored::ValueLocation;
use crate::table::runs::find_run;

/// Number of entries of `indptr` to read at a time.
const BATCH_ENTRIES: u64 = 16 << 10;

/// A column of INT64: for each element of a sparse matrix, the number of the run (row or column of
/// the matrix) that contains the element.
pub(super) struct RunNumbers {
    /// The location of the numbers in `indptr`: the element with which each run begins, and the end
    /// of the last run.
    pub(super) location: ValueLocation,
    pub(super) stored: numbers::StoredType,
    /// Number of runs.
    pub(super) count: u64,
}

impl RunNumbers {
    fn read_run_starts(&self, numbers: Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>> {
        let mut places = Vec::with_capacity(to_usize(numbers.end - numbers.start)?);
        self.location.visit_rows(numbers, cancel, &mut |value| {
            let place = self.stored.read_number(value).as_integer();
            let place = place.and_then(|place| u64::try_from(place).ok());
            let nowhere = || Error::corrupt("table: a position below 0", None);
            places.push(place.ok_or_else(nowhere)?);
            Ok(())
        })?;
        Ok(places)
    }
}

impl LeafValues for RunNumbers {
    fn row_bytes(&self) -> u64 {
        8
    }

    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut EncodedValues) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let place = |number: u64| {
            let places = self.read_run_starts(number..number.saturating_add(1), cancel)?;
            places.first().copied().ok_or(Error::NotFound)
        };
        let mut element = rows.start;
        while element < rows.end {
            let first = element;
            // Empty runs before the element are skipped.
            let number = find_run(element, self.count, &place)?;
            let most = self.count.min(number.saturating_add(BATCH_ENTRIES));
            let ends =
                self.read_run_starts(number.saturating_add(1)..most.saturating_add(1), cancel)?;
            if !ends.is_sorted() || ends.last().is_none_or(|&end| end <= element) {
                let what = "table: an index that does not increase";
                return Err(Error::corrupt(what, None));
            }
            for (number, end) in (number..).zip(ends) {
                let end = end.clamp(element, rows.end);
                let count = to_usize(end - element)?;
                let bytes = number.to_le_bytes();
                out.bytes
                    .extend(std::iter::repeat_n(bytes, count).flatten());
                element = end;
            }
            cancel.next_batch(first, element)?;
        }
        Ok(())
    }

    fn own_bytes(&self) -> u64 {
        0
    }
}

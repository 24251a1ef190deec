//! Runs of elements. An index array divides the elements of another array into consecutive runs,
//! such as the rows of a sparse matrix.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use h5fs_reader::array::{CancelToken, Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;

use crate::table::column::RowField;
use crate::table::column_location::{ArrayValues, RowArray};

/// Number of entries of an index array to read at a time.
const BATCH_ENTRIES: u64 = 16 << 10;

/// Checks the index array `ends` that divides `rows` elements into runs. The first entry must be 0,
/// the entries must not decrease, and the last must be `rows`. scipy refuses any other index, and
/// so do all views of a table.
///
/// # Errors
/// `Corrupt` for an invalid index; [`Error::cancelled`] once the request is cancelled. Fails if the
/// index cannot be read.
pub fn check_run_ends(
    ends: &RowField,
    rows: u64,
    engine: &Arc<Engine>,
    cancel: &CancelToken,
) -> Result<()> {
    let reader = Reader::new(engine, Arc::clone(&ends.array))?;
    let values = ArrayValues::new(RowArray::new(reader, ends)?, ends)?;
    let (mut first, mut before) = (0, 0);
    while first < ends.rows() {
        let end = ends.rows().min(first.saturating_add(BATCH_ENTRIES));
        let bytes = values.read(first..end, cancel)?;
        for (number, value) in (first..).zip(values.row_values(&bytes, end - first)) {
            let place = values.integer(value?)?;
            let is_next = if number == 0 {
                place == 0
            } else {
                place >= before
            };
            if !is_next {
                let what =
                    format!("table: an index whose position {number} is {place} after {before}");
                return Err(Error::corrupt(what, None));
            }
            before = place;
        }
        first = cancel.next_batch(first, end)?;
    }
    if before != i128::from(rows) {
        let what = format!("table: an index that ends at {before} of {rows} values");
        return Err(Error::corrupt(what, None));
    }
    Ok(())
}

/// The runs that an index array defines. The array has the beginning of each run, and the end of
/// the last run.
pub(super) struct Runs {
    ends: ArrayValues,
    /// A cache of the run that was found last: its number, and the range of its elements.
    last: Mutex<(u64, Range<u64>)>,
}

impl Runs {
    pub(super) fn new(ends: ArrayValues) -> Self {
        Runs {
            ends,
            last: Mutex::new((0, 0..0)),
        }
    }

    /// Returns the number of the run that contains the element number `element`.
    ///
    /// # Errors
    /// `Corrupt` if the element is not in a run. Fails if the index cannot be read.
    pub(super) fn run_of_element(&self, element: u64, cancel: &CancelToken) -> Result<u64> {
        let last = lock(&self.last).clone();
        if last.1.contains(&element) {
            return Ok(last.0);
        }
        let place = |number: u64| self.run_start(number, cancel);
        let number = find_run(element, self.ends.rows().saturating_sub(1), &place)?;
        let run = place(number)?..place(number.saturating_add(1))?;
        if !run.contains(&element) {
            let what = "table: an index that does not increase";
            return Err(Error::corrupt(what, None));
        }
        *lock(&self.last) = (number, run);
        Ok(number)
    }

    fn run_start(&self, number: u64, cancel: &CancelToken) -> Result<u64> {
        let rows = self.ends.read(number..number.saturating_add(1), cancel)?;
        let value = self.ends.row_values(&rows, 1).next();
        let nothing = || Error::corrupt("table: an index that is too short", None);
        let place = self.ends.integer(value.ok_or_else(nothing)??)?;
        u64::try_from(place).map_err(|_| Error::corrupt("table: a position below 0", None))
    }
}

/// Finds the last of `count` runs that begins at or before `element`, and returns its number.
/// `place` returns the number of the first element of a run.
///
/// # Errors
/// `Corrupt` if all runs begin after the element. Fails as `place` does.
pub(crate) fn find_run(
    element: u64,
    count: u64,
    place: &dyn Fn(u64) -> Result<u64>,
) -> Result<u64> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if place(middle)? <= element {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let nowhere = || Error::corrupt("table: an element outside all runs", None);
    low.checked_sub(1).ok_or_else(nowhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs 1 and 3 are empty.
    #[test]
    fn an_element_is_in_the_last_run_that_begins_before_it() {
        let begins = [0, 2, 2, 5, 5];
        let place = |number: u64| Ok(begins[number as usize]);
        let of = |element| find_run(element, 5, &place).unwrap();
        assert_eq!([0, 1, 2, 4, 5, 9].map(of), [0, 0, 2, 2, 4, 4]);
        assert!(find_run(0, 2, &|_| Ok(1)).is_err());
    }
}

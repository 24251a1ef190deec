//! A column of lists. An index array has the end of each row's list in the values, or in another
//! index array.

use std::ops::Range;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::value::TextContext;
use h5fs_reader::wire::to_u64;

use crate::table::column_location::ArrayValues;

/// The lists of a column.
pub(super) struct ListColumn {
    /// The index arrays, outermost level first; at least one. Each has the ends of lists in the
    /// next array, and the last one has ends in `values`.
    pub(super) ends: Vec<ArrayValues>,
    /// The values in the innermost lists.
    pub(super) values: ArrayValues,
}

impl ListColumn {
    /// Returns the average number of values in the list of a row, including inner lists.
    pub(super) fn values_per_row(&self) -> u64 {
        let levels = self.ends.iter().skip(1).chain([&self.values]);
        let values = levels.map(ArrayValues::rows).fold(1, u64::saturating_add);
        let rows = self.ends.first().map_or(1, ArrayValues::rows);
        values.div_ceil(rows.max(1))
    }

    /// Appends the list of a row as JSON.
    ///
    /// # Errors
    /// `Corrupt` if an index decreases or exceeds the next array; `Limit` for a list that is too
    /// long. Fails if a part of the list cannot be read.
    pub(super) fn write(
        &self,
        row: u64,
        cancel: &CancelToken,
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.write_level(&self.ends, row, cancel, context, out)
    }

    /// Appends the list of a row. `ends` are the index arrays of the remaining levels, and `row` is
    /// a row of the first of them.
    fn write_level(
        &self,
        ends: &[ArrayValues],
        row: u64,
        cancel: &CancelToken,
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some((ends, inner)) = ends.split_first() else {
            return Ok(());
        };
        let list = list_range(ends, row, cancel)?;
        out.push(b'[');
        let mut separator: &[u8] = b"";
        if inner.is_empty() {
            // For values without a short format, the text is about as long as the values.
            check_list_bytes(self.values.bytes(list.end - list.start), context)?;
            let count = list.end - list.start;
            let rows = self.values.read(list, cancel)?;
            for value in self.values.row_values(&rows, count) {
                out.extend_from_slice(separator);
                self.values.write(value?, context, out)?;
                separator = b", ";
            }
        } else {
            for row in list {
                out.extend_from_slice(separator);
                self.write_level(inner, row, cancel, context, out)?;
                separator = b", ";
            }
        }
        out.push(b']');
        check_list_bytes(to_u64(out.len()), context)
    }
}

/// Fails if a list of `bytes` bytes is longer than the text of a cell may be.
fn check_list_bytes(bytes: u64, context: &TextContext<'_>) -> Result<()> {
    let most = to_u64(context.limit);
    if bytes <= most {
        Ok(())
    } else {
        Err(Error::limit("bytes of a list in a table", most))
    }
}

/// Returns the range of rows that the list of `row` covers in the next array. `ends` is the index
/// array with the end of each list.
fn list_range(ends: &ArrayValues, row: u64, cancel: &CancelToken) -> Result<Range<u64>> {
    let rows = ends.read(row.saturating_sub(1)..row.saturating_add(1), cancel)?;
    let mut places = [0, 0];
    for value in ends.row_values(&rows, 2) {
        let place = u64::try_from(ends.integer(value?)?);
        let place = place.map_err(|_| Error::corrupt("table: a list without an end", None))?;
        places = [places[1], place];
    }
    let [start, end] = places;
    if start <= end {
        Ok(start..end)
    } else {
        Err(Error::corrupt(
            "table: a list that ends before it begins",
            None,
        ))
    }
}

//! Columns whose values are the texts of the group's CSV.

use std::ops::Range;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::csv::fields::{CellKind, Cells, ColumnReader};
use crate::limits;
use crate::parquet::encoding::push_text;
use crate::parquet::leaf::{BATCH_BYTES, EncodedValues, LeafValues};
use crate::table::rows::TableRows;

/// Amount of row data to read at a time, in bytes.
const BATCH: u64 = 64 << 10;

/// A table with one column, whose CSV texts are the values of a Parquet column.
pub(super) struct TextColumn {
    pub(super) rows: TableRows,
}

impl LeafValues for TextColumn {
    fn row_bytes(&self) -> u64 {
        self.rows.row_bytes()
    }

    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut EncodedValues) -> Result<()> {
        self.write_until(usize::MAX, rows, cancel, out)?;
        Ok(())
    }

    fn write_limited(
        &self,
        rows: Range<u64>,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        self.write_until(BATCH_BYTES, rows, cancel, out)
    }

    fn own_bytes(&self) -> u64 {
        self.rows.own_bytes()
    }
}

impl TextColumn {
    /// Appends the texts of `rows` until `out` has `enough` bytes. Returns the number of the first
    /// row that was not written.
    fn write_until(
        &self,
        enough: usize,
        rows: Range<u64>,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        let at_a_time = (BATCH / self.rows.row_bytes().max(64)).max(1);
        let mut text = Vec::new();
        let mut first = rows.start;
        while first < rows.end {
            cancel.check_cancelled()?;
            let end = rows.end.min(first.saturating_add(at_a_time));
            let batch = self.rows.read_batch(first..end, cancel)?;
            for row in 0..to_usize(end - first)? {
                if out.bytes.len() >= enough {
                    return Ok(first.saturating_add(to_u64(row)));
                }
                text.clear();
                let cell = batch.write(row, 0, limits::PARQUET_TEXT, &mut text)?;
                out.present.push(cell != CellKind::Missing);
                if cell != CellKind::Missing {
                    push_text(&text, &mut out.bytes)?;
                }
            }
            first = cancel.next_batch(first, end)?;
        }
        Ok(rows.end)
    }
}

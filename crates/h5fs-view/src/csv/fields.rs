//! The columns of a table, independent of the source of their values.

use std::ops::Range;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;

/// Columns of a table that are read together, such as those of a compound or of one array.
pub trait ColumnReader: Send + Sync {
    /// Returns the names of the columns, at least one.
    fn names(&self) -> &[Vec<u8>];

    /// Returns the memory in bytes that the cells of one row occupy after they are read.
    fn row_bytes(&self) -> u64;

    /// Returns the number of values that are formatted for a row. A value that is costly to format
    /// counts several times.
    fn row_values(&self) -> u64;

    /// Returns the cost of locating and decoding the chunks of all rows. The unit is the cost of
    /// formatting one value.
    fn chunk_values(&self) -> u64 {
        0
    }

    /// Reads the cells of `rows`. The caller chooses so few rows that their cells fit in a small
    /// buffer.
    ///
    /// # Errors
    /// Fails if the cells cannot be read.
    fn read(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Box<dyn Cells + '_>>;

    /// Pads all cells of each column to one length if all columns are numbers. Returns the length
    /// of a row in bytes, including separators; `None` if the cells are not padded.
    fn pad_columns(&mut self) -> Option<u64> {
        None
    }

    /// Returns whether cells may be empty, even in padded columns.
    fn can_be_empty(&self) -> bool {
        false
    }

    /// Returns whether this is a single column of numbers without missing values. Zeros after the
    /// fraction of such a number can compensate for empty cells in the same row.
    fn can_stretch_numbers(&self) -> bool {
        false
    }

    /// Returns whether the length of each cell can be computed without writing the cell.
    fn can_measure_cells(&self) -> bool {
        false
    }

    /// Returns the number of items of variable-length sequences that were read while cells were
    /// written.
    fn sequence_items_read(&self) -> u64 {
        0
    }

    /// Returns the memory in bytes that the columns' descriptions occupy.
    fn own_bytes(&self) -> u64;
}

/// Columns whose first rows are skipped.
pub struct ColumnsFromRow<F> {
    /// The columns with all their rows.
    pub fields: F,
    /// The row of `fields` that becomes row 0.
    pub first: u64,
}

impl<F: ColumnReader> ColumnReader for ColumnsFromRow<F> {
    fn names(&self) -> &[Vec<u8>] {
        self.fields.names()
    }

    fn row_bytes(&self) -> u64 {
        self.fields.row_bytes()
    }

    fn row_values(&self) -> u64 {
        self.fields.row_values()
    }

    fn chunk_values(&self) -> u64 {
        self.fields.chunk_values()
    }

    fn read(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Box<dyn Cells + '_>> {
        let row = |number: u64| self.first.saturating_add(number);
        self.fields.read(row(rows.start)..row(rows.end), cancel)
    }

    fn pad_columns(&mut self) -> Option<u64> {
        self.fields.pad_columns()
    }

    fn can_be_empty(&self) -> bool {
        self.fields.can_be_empty()
    }

    fn can_stretch_numbers(&self) -> bool {
        self.fields.can_stretch_numbers()
    }

    fn can_measure_cells(&self) -> bool {
        self.fields.can_measure_cells()
    }

    fn sequence_items_read(&self) -> u64 {
        self.fields.sequence_items_read()
    }

    fn own_bytes(&self) -> u64 {
        self.fields.own_bytes()
    }
}

/// The cells of a batch of rows that were read.
pub trait Cells {
    /// Appends the text of a cell, unquoted, to `out`, whose length must not exceed `most`
    /// afterwards. `row` is relative to the first row that was read, and `column` to the first
    /// column of the `ColumnReader`.
    ///
    /// # Errors
    /// `Limit` for a longer text. Fails if the target of a pointer cannot be read.
    fn write(&self, row: usize, column: usize, most: usize, out: &mut Vec<u8>) -> Result<CellKind>;

    /// Returns the total length in bytes of the cells of a row, or `None` if
    /// [`can_measure_cells`](ColumnReader::can_measure_cells) is false for the columns. `scratch`
    /// is overwritten.
    fn length(&self, _row: usize, _scratch: &mut Vec<u8>) -> Option<usize> {
        None
    }
}

/// The kind of a cell's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// A missing value: an empty text between commas.
    Missing,
    /// A number, or a word that never needs quotes.
    Unquoted,
    /// Any text. It is quoted if readers could misinterpret it.
    Text,
}

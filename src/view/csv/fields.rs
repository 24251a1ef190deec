//! The columns of a table, wherever their values come from.

use std::ops::Range;

use crate::error::Result;

/// Columns of a table that are read together: those of a compound, of one array.
pub(crate) trait Fields: Send + Sync {
    /// The names of the columns, at least one.
    fn names(&self) -> &[Vec<u8>];

    /// Bytes of memory that the cells of a row take once they are read.
    fn row_bytes(&self) -> u64;

    /// How many values are looked at to write a row: those that cost more count more.
    fn row_values(&self) -> u64;

    /// What it costs to come by all rows beside that.
    fn chunk_values(&self) -> u64 {
        0
    }

    /// Reads the cells of `rows`, which are no more than a small buffer holds.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn read(&self, rows: Range<u64>) -> Result<Box<dyn Cells + '_>>;

    /// Has all cells of each column padded to one length, if all are numbers; gives the bytes of a
    /// row, separators included.
    fn pad(&mut self) -> Option<u64> {
        None
    }

    /// Whether cells may be empty, also of padded columns.
    fn may_be_empty(&self) -> bool {
        false
    }

    /// Whether it is one column, of numbers that are there in each row: zeros behind the fraction of
    /// such a number stand in for what empty cells lack.
    fn is_stretched(&self) -> bool {
        false
    }

    /// Whether the lengths of all cells are found without writing them.
    fn are_measured(&self) -> bool {
        false
    }

    /// Elements of sequences that were followed while cells were written.
    fn followed(&self) -> u64 {
        0
    }

    /// Bytes of memory that these take for themselves.
    fn own_bytes(&self) -> u64;
}

/// The columns of rows from one on.
pub(crate) struct Shifted<F> {
    pub(crate) fields: F,
    /// The first row.
    pub(crate) first: u64,
}

impl<F: Fields> Fields for Shifted<F> {
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

    fn read(&self, rows: Range<u64>) -> Result<Box<dyn Cells + '_>> {
        let row = |number: u64| self.first.saturating_add(number);
        self.fields.read(row(rows.start)..row(rows.end))
    }

    fn pad(&mut self) -> Option<u64> {
        self.fields.pad()
    }

    fn may_be_empty(&self) -> bool {
        self.fields.may_be_empty()
    }

    fn is_stretched(&self) -> bool {
        self.fields.is_stretched()
    }

    fn are_measured(&self) -> bool {
        self.fields.are_measured()
    }

    fn followed(&self) -> u64 {
        self.fields.followed()
    }

    fn own_bytes(&self) -> u64 {
        self.fields.own_bytes()
    }
}

/// The cells of some rows.
pub(crate) trait Cells {
    /// Appends the text of a cell, unquoted, to `out`, which is to have no more than `most` bytes
    /// then. `row` is counted from the first that was read, `column` from the first of its fields.
    ///
    /// # Errors
    /// `Limit` for a longer text; fails if what the cell points to cannot be read.
    fn write(&self, row: usize, column: usize, most: usize, out: &mut Vec<u8>) -> Result<Cell>;

    /// Bytes of the texts of all cells of a row, where they [are
    /// measured](Fields::are_measured). `scratch` is overwritten.
    fn length(&self, _row: usize, _scratch: &mut Vec<u8>) -> Option<usize> {
        None
    }
}

/// The kind of a cell's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// There is no value. Nothing stands between the commas.
    Missing,
    /// A number, or a word that never needs quotes.
    Plain,
    /// Any text. It stands in quotes where it could be taken for something else without.
    Text,
}

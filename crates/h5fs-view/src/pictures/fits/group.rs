//! The table of a group as a FITS binary table.
//!
//! Columns of numbers and of strings of fixed length are the same as the columns of records. A
//! missing float is NaN. Any other column has the same texts as the group's CSV, with the width of
//! the longest text. Examples are strings of variable length, categories, times, lists, and numbers
//! that may be missing. If a text has characters outside ASCII, the column has UTF-8 bytes, padded
//! with zeros.

use std::ops::Range;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::csv::fields::{CellKind, Cells, ColumnReader};
use crate::framed::FramedFile;
use crate::limits;
use crate::pictures::fits::BLOCK;
use crate::pictures::fits::cards::Cards;
use crate::pictures::fits::column::{self, FitsColumn, FitsColumnDescription};
use crate::pictures::fits::table_header;
use crate::table::column::{ColumnSource, GroupTable};
use crate::table::rows::{Batch, TableRows};
use crate::text_files::bounds::TextLengthLimits;
use crate::view::View;

/// Amount of row data to process at a time, in bytes: the larger of the bytes of the source and the
/// bytes of the file.
const BATCH: u64 = 64 << 10;

/// The rows of a group's table, before its FITS file is created.
pub struct GroupRows {
    rows: TableRows,
    count: u64,
    /// For each column, the FITS column of its values, and whether a value may be missing. `None`
    /// for a column of texts.
    fits_columns: Vec<Option<(FitsColumn, bool)>>,
}

/// The properties of a column of texts that are known only after all texts were read.
#[derive(Clone, Copy)]
struct TextMeasure {
    /// Length of the longest text in bytes, at least 1.
    width: usize,
    is_ascii: bool,
}

impl TextMeasure {
    const NONE: TextMeasure = TextMeasure {
        width: 1,
        is_ascii: true,
    };

    fn include(self, text: &[u8]) -> Self {
        TextMeasure {
            width: self.width.max(text.len()),
            is_ascii: self.is_ascii && text.is_ascii(),
        }
    }

    fn to_bytes(self) -> [u8; 8] {
        (to_u64(self.width) << 1 | u64::from(self.is_ascii)).to_le_bytes()
    }

    fn from_bytes(bytes: [u8; 8]) -> Result<Self> {
        let number = u64::from_le_bytes(bytes);
        Ok(TextMeasure {
            width: to_usize(number >> 1)?,
            is_ascii: number & 1 == 1,
        })
    }
}

/// The data of the binary table, which is generated row by row.
struct BinaryTableData {
    group: GroupRows,
    /// For each column of texts, its width and whether all texts are ASCII.
    texts: Vec<TextMeasure>,
    row_bytes: u64,
}

impl GroupRows {
    /// Creates the rows of `table`. `open` opens the arrays of the table.
    ///
    /// # Errors
    /// `Unsupported` for more columns than FITS allows; otherwise fails as `open` does.
    pub fn open(
        table: GroupTable,
        open: impl FnOnce(GroupTable) -> Result<TableRows>,
    ) -> Result<Self> {
        if table.columns.len() > limits::FITS_COLUMNS {
            let what = "a FITS table of more than 999 columns";
            return Err(Error::unsupported(what, None));
        }
        let stored = table.columns.iter().map(|column| match &column.source {
            ColumnSource::Values(part) | ColumnSource::BoundedIndices { values: part, .. } => {
                FitsColumn::from_datatype(&column.name, &part.datatype, 0)
                    .map(|column| (column, false))
            }
            ColumnSource::Masked { values, .. } => {
                let column = FitsColumn::from_datatype(&column.name, &values.datatype, 0);
                column
                    .filter(FitsColumn::is_float)
                    .map(|column| (column, true))
            }
            _ => None,
        });
        Ok(GroupRows {
            count: table.rows,
            fits_columns: stored.collect(),
            rows: open(table)?,
        })
    }

    /// Reads all rows to find the maximum width of each column of texts. Returns the encoded
    /// widths, which [`file`](Self::file) needs.
    ///
    /// # Errors
    /// `Limit` for too many texts. Fails if a text cannot be read.
    pub fn measure_texts(&self, bounds: &TextLengthLimits) -> Result<Vec<u8>> {
        let columns: Vec<usize> = self.text_columns().collect();
        Error::check_limit(
            self.count.saturating_mul(to_u64(columns.len())),
            limits::COUNTED_VALUES,
            "texts of a FITS table",
        )?;
        let mut texts = vec![TextMeasure::NONE; columns.len()];
        let mut text = Vec::new();
        let mut first = if columns.is_empty() { self.count } else { 0 };
        while first < self.count {
            let before = first;
            let count = self.batch_rows(0).min(self.count - first);
            let batch = self
                .rows
                .read_batch(first..first + count, bounds.cancel())?;
            for row in 0..to_usize(count)? {
                for (&column, texts) in columns.iter().zip(&mut texts) {
                    text.clear();
                    batch.write(row, column, limits::FITS_TEXT, &mut text)?;
                    *texts = texts.include(&text);
                }
            }
            first = bounds.cancel().next_batch(before, first + count)?;
            bounds.add_bytes(0)?;
        }
        Ok(texts.into_iter().flat_map(TextMeasure::to_bytes).collect())
    }

    /// Creates the FITS file. `measured` is the result of [`measure_texts`](Self::measure_texts).
    /// `attributes` are further cards of the header.
    ///
    /// # Errors
    /// `Limit` if the file is longer than any file can be.
    pub fn file(self, measured: &[u8], attributes: &Cards) -> Result<FramedFile> {
        let (measured, _) = measured.as_chunks();
        let texts = measured.iter().map(|&bytes| TextMeasure::from_bytes(bytes));
        let texts: Vec<TextMeasure> = texts.collect::<Result<_>>()?;
        let mut left = texts.iter();
        let columns = self.fits_columns.iter().zip(self.rows.names());
        let columns: Vec<FitsColumnDescription> = columns
            .map(|(stored, name)| match stored {
                Some((column, _)) => column.description(),
                None => {
                    let texts = left.next().unwrap_or(&TextMeasure::NONE);
                    FitsColumnDescription::text(name, texts.width, texts.is_ascii)
                }
            })
            .collect();
        let stored = self
            .fits_columns
            .iter()
            .flatten()
            .map(|(column, _)| column.values.size());
        let row_bytes = to_u64(stored.chain(texts.iter().map(|texts| texts.width)).sum());
        let count = self.count;
        let cards = column::cards(columns.into_iter());
        let header = table_header(&cards, row_bytes, count, attributes);
        let rows = BinaryTableData {
            group: self,
            texts,
            row_bytes,
        };
        FramedFile::new(
            header,
            Box::new(rows),
            count.saturating_mul(row_bytes),
            BLOCK,
        )
    }

    /// Returns the indices of the columns of texts.
    fn text_columns(&self) -> impl Iterator<Item = usize> {
        let columns = self.fits_columns.iter().enumerate();
        columns.filter_map(|(number, stored)| stored.is_none().then_some(number))
    }

    /// Returns the number of rows to process at a time. `row_bytes` is the length of a row of the
    /// binary table.
    fn batch_rows(&self, row_bytes: u64) -> u64 {
        (BATCH / self.rows.row_bytes().max(row_bytes).max(1)).max(1)
    }
}

impl BinaryTableData {
    fn write(&self, rows: Range<u64>, cancel: &CancelToken, out: &mut Vec<u8>) -> Result<()> {
        let count = to_usize(rows.end - rows.start)?;
        let batch = self.group.rows.read_batch(rows, cancel)?;
        for row in 0..count {
            let mut texts = self.texts.iter();
            for (number, stored) in self.group.fits_columns.iter().enumerate() {
                match stored {
                    Some((column, may_miss)) => {
                        write_stored(&batch, row, (number, column), *may_miss, out)?;
                    }
                    None => {
                        let end = out.len() + texts.next().unwrap_or(&TextMeasure::NONE).width;
                        batch.write(row, number, out.len() + limits::FITS_TEXT, out)?;
                        out.resize(end, 0);
                    }
                }
            }
        }
        Ok(())
    }
}

fn write_stored(
    batch: &Batch<'_>,
    row: usize,
    (number, column): (usize, &FitsColumn),
    may_miss: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    if may_miss {
        let cell = batch.write(row, number, limits::FITS_TEXT, &mut Vec::new())?;
        if cell == CellKind::Missing {
            match column.values.size() {
                4 => out.extend(f32::NAN.to_be_bytes()),
                _ => out.extend(f64::NAN.to_be_bytes()),
            }
            return Ok(());
        }
    }
    let stored = batch.stored_value(row, number)?.unwrap_or_default();
    column.values.write(stored, out)
}

impl View for BinaryTableData {
    fn length(&self) -> u64 {
        self.group.count.saturating_mul(self.row_bytes)
    }

    fn own_bytes(&self) -> u64 {
        self.group.rows.own_bytes()
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let end = offset.saturating_add(to_u64(length));
        let end = end.min(self.group.count.saturating_mul(self.row_bytes));
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        let (mut first, last) = (offset / self.row_bytes, end.div_ceil(self.row_bytes));
        let before = to_usize(offset - first * self.row_bytes)?;
        let mut out = Vec::new();
        while first < last {
            let count = self.group.batch_rows(self.row_bytes).min(last - first);
            self.write(first..first + count, cancel, &mut out)?;
            first = cancel.next_batch(first, first + count)?;
        }
        out.truncate(before + to_usize(end - offset)?);
        out.drain(..before);
        Ok(out.into())
    }
}

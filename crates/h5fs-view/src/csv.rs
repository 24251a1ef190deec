//! Tables as comma-separated text (RFC 4180). Rows have cells of varying length, without padding.
//!
//! A cell is quoted only if necessary: if it contains a comma, a quote or a line break, begins or
//! ends with a space, or is the empty string. A missing value is an empty cell. In a table with one
//! column it is `""`, because an empty line would not be a row. Quotes within a quoted cell are
//! doubled, so that its content cannot end the cell.
//!
//! | elements | rows |
//! |---|---|
//! | scalar, or one dimension | a row for each element |
//! | more dimensions | a row for each vector on the last dimension |
//! | compounds with any dimensions | a row for each element, after a line with the names of the columns |
//!
//! A compound has a column for each of its parts, `a`, `b.c`, `f[0]`, `f[1][2]`; a complex number
//! has two. [`mod@column`] describes the text of each datatype.
//!
//! The length of the text is counted, row by row. A table with too many values to count is padded
//! if all its columns are numbers: zeros in its cells give all rows the same length.

pub mod array;
pub mod column;
pub mod fields;
pub(crate) mod padding;

use std::ops::Range;
use std::sync::Arc;

use h5fs_conventions::csv_field::{append_quoted, needs_quotes};
use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::csv::fields::{CellKind, ColumnReader};
use crate::elements::long_elements::{LongElementLimiter, PaceTimer};
use crate::limits;
use crate::text_files::counted_text::{TextUnits, UniformUnits};

/// A CSV table: rows of cells, after an optional header line.
pub struct CsvTable {
    column_readers: Vec<Box<dyn ColumnReader>>,
    long_elements: LongElementLimiter,
    /// The line with the names of the columns; empty for a table without a header.
    header: Vec<u8>,
    rows: u64,
    /// Number of rows whose cells form one line of text. For an array of several dimensions, each
    /// element is a row, and the elements along the last dimension form one line.
    rows_per_line: u64,
    /// Length of a row in bytes, if cells are padded so that all rows have this length.
    row_width: Option<u64>,
    /// The index in `fields` of a column of numbers that keeps all rows of a padded table equally
    /// long: zeros are appended to its number if other cells of the row are empty.
    stretched_column: Option<usize>,
}

/// Amount of cell data to read at a time, in bytes.
const BATCH_BYTES: u64 = 64 << 10;

impl CsvTable {
    /// Creates a table of `rows` rows with a header.
    ///
    /// # Errors
    /// `Limit` for too many columns, or names that are too long.
    pub fn with_header(
        fields: Vec<Box<dyn ColumnReader>>,
        rows: u64,
        engine: Arc<Engine>,
    ) -> Result<Self> {
        let names = fields.iter().flat_map(|fields| fields.names());
        let header = format_header(names)?;
        Ok(CsvTable {
            header,
            ..Self::without_header(fields, rows, 1, engine)
        })
    }

    /// Pads all rows to the same length if the table has too many values to count and all columns
    /// are numbers. Returns other tables unchanged.
    pub fn pad_if_long(mut self) -> Self {
        let stretched = self
            .column_readers
            .iter()
            .position(|fields| fields.can_stretch_numbers());
        let may_be_empty = self
            .column_readers
            .iter()
            .any(|fields| fields.can_be_empty());
        let is_padded = stretched.is_some() || !may_be_empty;
        if is_padded && self.value_count() > limits::COUNTED_VALUES {
            self.stretched_column = stretched;
            let widths = self
                .column_readers
                .iter_mut()
                .map(|fields| fields.pad_columns());
            let widths: Option<Vec<u64>> = widths.collect();
            self.row_width = widths.map(|widths| widths.iter().sum());
        }
        self
    }

    /// Measures the first row, and sets its length as the length of all rows.
    ///
    /// # Errors
    /// Fails if the first row cannot be written.
    fn measure_equal_rows(self) -> Result<Self> {
        let mut row = Vec::new();
        // The rows are a hole, which is not read from the file.
        self.write_rows(0..1, 1, &CancelToken::default(), &mut row)?;
        let width = Some(to_u64(row.len()));
        Ok(CsvTable {
            row_width: width,
            ..self
        })
    }

    /// Creates a table without a header. Each line has the cells of `rows_per_line` rows.
    pub(crate) fn without_header(
        fields: Vec<Box<dyn ColumnReader>>,
        rows: u64,
        per_line: u64,
        engine: Arc<Engine>,
    ) -> Self {
        CsvTable {
            column_readers: fields,
            long_elements: LongElementLimiter::new(engine),
            header: Vec::new(),
            rows,
            rows_per_line: per_line,
            row_width: None,
            stretched_column: None,
        }
    }

    /// Returns the number of units before the first row: 1 with a header line, otherwise 0.
    fn header_unit_count(&self) -> u64 {
        u64::from(!self.header.is_empty())
    }

    /// Returns whether the table has only one column, so that a row without a value would be an
    /// empty line.
    fn has_one_column(&self) -> bool {
        self.rows_per_line == 1
            && matches!(&*self.column_readers, [fields] if fields.names().len() == 1)
    }

    /// Returns the number of rows to read at a time.
    fn batch_rows(&self) -> u64 {
        (BATCH_BYTES / self.row_bytes().max(1)).max(1)
    }

    fn row_bytes(&self) -> u64 {
        let bytes = self.column_readers.iter().map(|fields| fields.row_bytes());
        bytes.fold(0, u64::saturating_add)
    }

    /// Writes one batch of `rows` until `out` holds at least `enough` bytes. Returns the number of
    /// the first row that was not written.
    fn write_rows(
        &self,
        rows: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let is_long = LongElementLimiter::is_long(self.row_bytes());
        let room = is_long
            .then(|| self.long_elements.reserve_memory())
            .transpose()?;
        let end = rows.end.min(rows.start.saturating_add(self.batch_rows()));
        let cells = self
            .column_readers
            .iter()
            .map(|fields| fields.read(rows.start..end, cancel));
        let cells: Vec<_> = cells.collect::<Result<_>>()?;
        let columns = self
            .column_readers
            .iter()
            .map(|fields| fields.names().len());
        let all = || {
            let columns = columns.clone().zip(&cells).enumerate();
            columns.flat_map(|(fields, (count, cells))| {
                (0..count).map(move |column| (fields, column, cells))
            })
        };
        let mut pace = PaceTimer::new();
        for row in rows.start..end {
            if row > rows.start && (out.len() >= enough || pace.is_slow()) {
                return Ok(row);
            }
            let number = to_usize(row - rows.start)?;
            let start = out.len();
            self.long_elements.write(room.as_ref(), |most| {
                out.truncate(start);
                let mut stretched = None;
                for (fields, column, cells) in all() {
                    let before = out.len();
                    let cell = cells.write(number, column, start + most, out)?;
                    self.quote_cell_if_needed(cell, before, out);
                    if self.stretched_column == Some(fields) {
                        stretched = Some(before..out.len());
                    }
                    out.push(b',');
                    Error::check_limit(out.len() - start, most, "a row of a csv")?;
                }
                match (self.row_width, stretched) {
                    (Some(width), Some(cell)) => {
                        append_zeros_to_fraction(cell, start + to_usize(width)?, out)
                    }
                    _ => Ok(()),
                }
            })?;
            if (row + 1).is_multiple_of(self.rows_per_line) {
                out.pop();
                out.push(b'\n');
            }
        }
        Ok(end)
    }

    /// Adds up the text lengths of one batch of `rows`, without writing them, until the sum is at
    /// least `enough` bytes. Returns the number of the first row that was not measured, and the sum
    /// in bytes. Returns `None` if the cells cannot be measured without writing them.
    fn measure_rows(
        &self,
        rows: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<(u64, u64)>> {
        let [fields] = &*self.column_readers else {
            return Ok(None);
        };
        if !fields.can_measure_cells() {
            return Ok(None);
        }
        let end = rows.end.min(rows.start.saturating_add(self.batch_rows()));
        let cells = fields.read(rows.start..end, cancel)?;
        let mut bytes = 0;
        for row in rows.start..end {
            if row > rows.start && bytes >= enough {
                return Ok(Some((row, to_u64(bytes))));
            }
            let Some(length) = cells.length(to_usize(row - rows.start)?, scratch) else {
                return Ok(None);
            };
            // A comma or a line break follows each cell.
            bytes += length + fields.names().len();
        }
        Ok(Some((end, to_u64(bytes))))
    }

    /// Quotes the cell at the end of `out` if necessary. The cell begins at the offset `before`.
    fn quote_cell_if_needed(&self, cell: CellKind, before: usize, out: &mut Vec<u8>) {
        let is_quoted = match cell {
            CellKind::Missing => self.has_one_column(),
            CellKind::Unquoted => false,
            CellKind::Text => needs_quotes(&out[before..]),
        };
        if is_quoted {
            let text = out.split_off(before);
            append_quoted(&text, out);
        }
    }
}

/// The units of the text are the header line, if any, and the rows.
impl TextUnits for CsvTable {
    fn count(&self) -> u64 {
        self.rows + self.header_unit_count()
    }

    fn value_count(&self) -> u64 {
        let values = self.column_readers.iter().map(|fields| fields.row_values());
        let values = values.fold(0, u64::saturating_add);
        let chunks = self
            .column_readers
            .iter()
            .map(|fields| fields.chunk_values());
        chunks.fold(values.saturating_mul(self.rows), u64::saturating_add)
    }

    fn uniform_units(&self) -> Option<UniformUnits> {
        let width = self.row_width?;
        let first = match self.header_unit_count() {
            0 => width,
            _ => to_u64(self.header.len()),
        };
        Some(UniformUnits {
            first_length: first,
            unit_length: width,
        })
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let headers = self.header_unit_count();
        if units.start < headers {
            out.extend_from_slice(&self.header);
            return Ok(headers);
        }
        let rows = units.start - headers..units.end - headers;
        Ok(self.write_rows(rows, enough, cancel, out)? + headers)
    }

    fn measure(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        scratch: &mut Vec<u8>,
    ) -> Result<(u64, u64)> {
        let headers = self.header_unit_count();
        if units.start >= headers {
            let rows = units.start - headers..units.end - headers;
            if let Some((next, bytes)) = self.measure_rows(rows, enough, cancel, scratch)? {
                return Ok((next + headers, bytes));
            }
        }
        scratch.clear();
        let next = self.write(units, enough, cancel, scratch)?;
        Ok((next, to_u64(scratch.len())))
    }

    fn sequence_items_read(&self) -> u64 {
        let followed = self
            .column_readers
            .iter()
            .map(|fields| fields.sequence_items_read());
        followed.fold(0, u64::saturating_add)
    }

    fn own_bytes(&self) -> u64 {
        let fields = self.column_readers.iter().map(|fields| fields.own_bytes());
        let header = to_u64(self.header.capacity());
        fields.fold(header, u64::saturating_add)
    }
}

/// Appends zeros to the fraction of the number at `cell` in `out`, so that its row ends at the
/// offset `end`.
fn append_zeros_to_fraction(cell: Range<usize>, end: usize, out: &mut Vec<u8>) -> Result<()> {
    let Some(missing) = end.checked_sub(out.len()) else {
        let most = to_u64(end);
        return Err(Error::limit("width of a csv row", most));
    };
    let text = out.get(cell.clone()).unwrap_or_default();
    let is_fraction =
        text.contains(&b'.') && text.iter().all(|byte| b"+-.e0123456789".contains(byte));
    if missing > 0 && !is_fraction {
        return Err(Error::corrupt("csv: a missing coordinate", None));
    }
    let exponent = text.iter().position(|&byte| byte == b'e');
    let place = exponent.map_or(cell.end, |place| cell.start + place);
    out.splice(place..place, std::iter::repeat_n(b'0', missing));
    Ok(())
}

/// Formats the line with the names of the columns.
fn format_header<'a>(names: impl Iterator<Item = &'a Vec<u8>>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (number, name) in names.enumerate() {
        Error::check_room(number, limits::CSV_COLUMNS, "columns of a csv")?;
        if needs_quotes(name) {
            append_quoted(name, &mut out);
        } else {
            out.extend_from_slice(name);
        }
        out.push(b',');
        Error::check_limit(
            to_u64(out.len()),
            limits::TEXT_ELEMENT_BYTES,
            "names of the columns of a csv",
        )?;
    }
    out.pop();
    out.push(b'\n');
    Ok(out)
}

#[cfg(test)]
mod tests;

//! The location of a column's values in the rows that were read, and their conversion to text.

use std::ops::Range;

use h5fs_reader::array::{Bytes, CancelToken, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::number::{self, Integer};
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::csv::column::DatatypeColumns;
use crate::csv::fields::CellKind;
use crate::elements::formatting_cost;
use crate::elements::raw;
use crate::limits;
use crate::table::column::RowField;

/// An open array of a table. Its rows are its parts along the first dimension.
pub(super) struct RowArray {
    reader: Reader,
    rows: u64,
    row_bytes: usize,
}

/// The location of a column's values in one of the open arrays of a table.
pub(super) struct ColumnLocation {
    array: usize,
    value: RowValue,
}

/// A field of an array whose rows are not the rows of the table, such as the values of lists.
pub(super) struct ArrayValues {
    array: RowArray,
    value: RowValue,
}

/// The location of a value in a row of its array, and the format of the value's text.
struct RowValue {
    start: usize,
    datatype: Datatype,
    text: TextFormat,
}

/// The format of a value's text.
enum TextFormat {
    /// The format of CSV cells.
    Cell(DatatypeColumns),
    /// JSON.
    Json(ValueWriter),
}

impl RowArray {
    /// Returns the cost of locating all chunks of the array and reversing their filters. The unit
    /// is the cost of formatting one value.
    pub(super) fn chunk_values(&self) -> u64 {
        raw::chunk_values(self.reader.array())
    }

    /// Creates the open array of `part`. `reader` reads the array.
    ///
    /// # Errors
    /// `Limit` for a row that is too long.
    pub(super) fn new(reader: Reader, part: &RowField) -> Result<Self> {
        Ok(RowArray {
            reader,
            rows: part.rows(),
            row_bytes: to_usize(part.row_bytes()?)?,
        })
    }

    /// Returns the length of a row in bytes.
    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Reads exactly the bytes of the rows `rows`.
    ///
    /// # Errors
    /// `Corrupt` if the rows do not exist. Fails if the rows cannot be read.
    pub(super) fn read(&self, rows: &Range<u64>, cancel: &CancelToken) -> Result<Bytes> {
        if rows.start > rows.end || rows.end > self.rows {
            return Err(Error::corrupt("table: a row that does not exist", None));
        }
        let row = to_u64(self.row_bytes);
        let length = (rows.end - rows.start).saturating_mul(row);
        let length = to_usize(length)?;
        let bytes = self
            .reader
            .read_with_cancel(rows.start.saturating_mul(row), length, cancel)?;
        if bytes.len() == length {
            Ok(bytes)
        } else {
            Err(Error::corrupt("array: fewer elements than its shape", None))
        }
    }
}

impl ColumnLocation {
    /// Creates the location of `part`, whose array has the index `array` among the open arrays.
    ///
    /// # Errors
    /// Fails if the datatype does not have a text format.
    pub(super) fn new(array: usize, part: &RowField) -> Result<Self> {
        let value = RowValue::new(part)?;
        Ok(ColumnLocation { array, value })
    }

    /// Returns the index of the array that contains the values, among the open arrays of the table.
    pub(super) fn array(&self) -> usize {
        self.array
    }

    /// Appends the text of `value`, which is the stored bytes of a value.
    ///
    /// # Errors
    /// Fails if the value cannot be written.
    pub(super) fn write(
        &self,
        value: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        self.value.write(value, context, out)
    }

    /// Pads the text of each value to one length if the values are numbers. Returns that length in
    /// bytes, including the separator; `None` if the texts are not padded.
    pub(super) fn pad_values(&mut self) -> Option<u64> {
        match &mut self.value.text {
            TextFormat::Cell(columns) => columns.pad_columns(),
            TextFormat::Json(_) => None,
        }
    }

    /// Returns the cost of formatting one value of the column, which may be an array or a compound.
    /// The unit is the cost of formatting one number.
    pub(super) fn cell_cost(&self) -> u64 {
        formatting_cost(&self.value.datatype)
    }

    /// Returns the average size in bytes of the numbers in one value of the column, which may be an
    /// array or a compound; at least one.
    pub(super) fn element_bytes(&self) -> usize {
        let size = u64::from(self.value.datatype.size);
        let one = size.checked_div(self.cell_cost()).unwrap_or(size);
        usize::try_from(one).unwrap_or(usize::MAX).max(1)
    }

    /// Returns the stored bytes of the column's value in `row`, which is a row of the array.
    ///
    /// # Errors
    /// `Corrupt` if the row is too short.
    pub(super) fn value_bytes<'a>(&self, row: &'a [u8]) -> Result<&'a [u8]> {
        self.value.bytes(row)
    }

    /// Returns the integer in the stored bytes `value`.
    ///
    /// # Errors
    /// `Unsupported` if the value is not an integer.
    pub(super) fn integer(&self, value: &[u8]) -> Result<i128> {
        self.value.integer(value)
    }

    /// Checks that the stored bytes `value` are an integer from 0 to `bound` - 1.
    ///
    /// # Errors
    /// `Corrupt` if the value is out of range.
    pub(super) fn check_below(&self, value: &[u8], bound: u64) -> Result<()> {
        let number = self.integer(value)?;
        if (0..i128::from(bound)).contains(&number) {
            return Ok(());
        }
        let what = format!("table: position {number} of {bound}");
        Err(Error::corrupt(what, None))
    }
}

impl ArrayValues {
    /// Creates the values of `part`, which is a field of `array`. The text format is that of CSV
    /// cells.
    ///
    /// # Errors
    /// Fails if the datatype does not have a text format.
    pub(super) fn new(array: RowArray, part: &RowField) -> Result<Self> {
        let value = RowValue::new(part)?;
        Ok(ArrayValues { array, value })
    }

    /// Does the same as [`new`](Self::new), with JSON as the text format.
    ///
    /// # Errors
    /// Fails if the datatype does not have a text format.
    pub(super) fn new_json(array: RowArray, part: &RowField) -> Result<Self> {
        let writer = ValueWriter::new(&part.datatype)?;
        let value = RowValue::with_format(part, TextFormat::Json(writer))?;
        Ok(ArrayValues { array, value })
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.array.rows
    }

    /// Appends the text of `value`, which is the stored bytes of a value.
    ///
    /// # Errors
    /// Fails if the value cannot be written.
    pub(super) fn write(
        &self,
        value: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        self.value.write(value, context, out)
    }

    /// Returns the length of `rows` rows in bytes.
    pub(super) fn bytes(&self, rows: u64) -> u64 {
        rows.saturating_mul(to_u64(self.array.row_bytes))
    }

    /// Reads the bytes of the rows `rows`.
    ///
    /// # Errors
    /// `Corrupt` if the rows do not exist; `Limit` for more rows than are read at a time. Fails if
    /// the rows cannot be read.
    pub(super) fn read(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Bytes> {
        let most = limits::TEXT_ELEMENT_BYTES;
        Error::check_limit(
            self.bytes(rows.end.saturating_sub(rows.start)),
            most,
            "bytes of a cell of a table",
        )?;
        self.array.read(&rows, cancel)
    }

    /// Returns the stored bytes of the field's value in each of `count` rows. `rows` are the bytes
    /// of these rows, as [`read`](Self::read) returns them.
    pub(super) fn row_values<'a>(
        &'a self,
        rows: &'a [u8],
        count: u64,
    ) -> impl Iterator<Item = Result<&'a [u8]>> {
        // Rows of zero bytes also count.
        let empty = match self.array.row_bytes {
            0 => usize::try_from(count).unwrap_or(usize::MAX),
            _ => 0,
        };
        let rows = rows.chunks_exact(self.array.row_bytes.max(1));
        let rows = rows.chain(std::iter::repeat_n(&b""[..], empty));
        rows.map(|row| self.value.bytes(row))
    }

    /// Returns the integer in the stored bytes `value`.
    ///
    /// # Errors
    /// `Unsupported` if the value is not an integer.
    pub(super) fn integer(&self, value: &[u8]) -> Result<i128> {
        self.value.integer(value)
    }
}

impl RowValue {
    fn new(part: &RowField) -> Result<Self> {
        let columns = match part.datatype.class {
            Class::Array { .. } => None,
            _ => DatatypeColumns::from_datatype(&part.datatype, b"")?,
        };
        let text = match columns.filter(|columns| columns.names().len() == 1) {
            Some(columns) => TextFormat::Cell(columns),
            None => TextFormat::Json(ValueWriter::new(&part.datatype)?),
        };
        Self::with_format(part, text)
    }

    fn with_format(part: &RowField, text: TextFormat) -> Result<Self> {
        Ok(RowValue {
            start: to_usize(part.offset)?,
            datatype: part.datatype.clone(),
            text,
        })
    }

    fn bytes<'a>(&self, row: &'a [u8]) -> Result<&'a [u8]> {
        let size = to_usize(self.datatype.size.into())?;
        let value = row.get(self.start..self.start.saturating_add(size));
        value.ok_or_else(|| Error::corrupt("table: a row that is too short", None))
    }

    fn write(
        &self,
        value: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        match &self.text {
            TextFormat::Cell(columns) => columns.write(value, 0, context, out),
            TextFormat::Json(writer) => writer
                .write_json(value, context, out)
                .map(|()| CellKind::Text),
        }
    }

    fn integer(&self, value: &[u8]) -> Result<i128> {
        let Class::Integer {
            order,
            signed,
            bits,
        } = self.datatype.class
        else {
            return Err(Error::unsupported(
                "table: codes or positions that are not integers",
                None,
            ));
        };
        let number = match number::decode_integer(value, order, signed, bits) {
            Some(Integer::Signed(number)) => Some(number),
            Some(Integer::Unsigned(number)) => i128::try_from(number).ok(),
            None => None,
        };
        number.ok_or_else(|| Error::unsupported("table: an integer of more than 128 bits", None))
    }
}

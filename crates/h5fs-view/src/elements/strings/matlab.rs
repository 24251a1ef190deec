//! MATLAB's arrays of chars, in the HDF5 files that MATLAB 7.3 and later write.
//!
//! A char is a UTF-16 code unit, stored as an unsigned integer of 16 bits. Other writers also store
//! bytes of UTF-8, and characters of 32 bits (UTF-32). The attribute `MATLAB_class` of the dataset
//! says that its elements are chars.
//!
//! HDF5 has the dimensions of a MATLAB array in reverse order. The last dimension is therefore the
//! number of rows of a matrix, and the last but one the number of its columns. A row is a string.
//! An empty array is stored as its dimensions, and marked with the attribute `MATLAB_empty`.

use std::ops::Range;

use h5fs_conventions::matlab_empty;
use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{ByteOrder, Class};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::{Container, Datatype, NodeId, attribute_value};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::Elements;
use crate::limits;

/// The meaning of the elements of a dataset of MATLAB's class `char`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatlabElements {
    /// The elements are code units.
    Chars(CodeUnit),
    /// The elements are the dimensions of an empty array.
    Dimensions,
}

/// The encoding of one code unit of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeUnit {
    order: ByteOrder,
    /// Size of a code unit in bytes: 1 (UTF-8), 2 (UTF-16) or 4 (UTF-32).
    size: usize,
}

/// The strings of an array of MATLAB chars. Each row of each matrix is a string.
pub struct MatlabRows {
    unit: CodeUnit,
    /// Number of matrices in the array.
    matrices: u64,
    /// Number of rows in each matrix.
    rows: u64,
    columns: u64,
}

/// Returns the meaning of the integers of `datatype` in the array `node`. Returns `None` if its
/// `MATLAB_class` is not `char`, or if `datatype` cannot be a code unit or a dimension.
///
/// # Errors
/// Fails if an attribute cannot be read.
pub(super) fn matlab_elements(
    container: &dyn Container,
    node: NodeId,
    datatype: &Datatype,
) -> Result<Option<MatlabElements>> {
    let Class::Integer {
        order,
        signed: false,
        bits,
    } = datatype.class
    else {
        return Ok(None);
    };
    let is_whole = |bytes| bits.offset == 0 && u32::from(bits.precision) == bytes * 8;
    if !matches!(datatype.size, 1 | 2 | 4 | 8) || !is_whole(datatype.size) {
        return Ok(None);
    }
    let class = attribute_value::attribute_text(container, node, b"MATLAB_class")?;
    if class.as_deref() != Some(b"char") {
        return Ok(None);
    }
    if matlab_empty::has_matlab_empty_attribute(container, node)? {
        return Ok(Some(MatlabElements::Dimensions));
    }
    let size = to_usize(datatype.size.into())?;
    Ok((size <= 4).then_some(MatlabElements::Chars(CodeUnit::new(order, size))))
}

impl MatlabRows {
    /// Creates the strings of an array of MATLAB chars with the dimensions `dims`, in HDF5's order.
    ///
    /// # Errors
    /// `Limit` if the rows are too long or too many.
    pub(super) fn new(dims: Option<&[u64]>, unit: CodeUnit) -> Result<Self> {
        let (matrices, columns, rows) = match dims {
            None => (0, 0, 0),
            Some([]) => (1, 1, 1),
            Some([length]) => (1, *length, 1),
            Some([outer @ .., columns, rows]) => (product(outer)?, *columns, *rows),
        };
        let rows = MatlabRows {
            unit,
            matrices,
            rows,
            columns,
        };
        let most = limits::CHAR_COLUMNS;
        if !rows.is_read_whole() && columns > most {
            return Err(Error::limit("columns of a large char matrix", most));
        }
        Ok(rows)
    }

    /// Creates the strings of an empty array. `elements` are the dimensions of the array in
    /// MATLAB's order. A 0-by-0 array is one empty string.
    ///
    /// # Errors
    /// `Corrupt` if none of the dimensions is zero. Fails if the dimensions cannot be read.
    pub(super) fn from_empty_array(elements: &Elements, cancel: &CancelToken) -> Result<Self> {
        let rank = elements.dims.as_deref().map_or(Ok(0), product)?;
        let most = to_u64(limits::RANK);
        Error::check_limit(rank, most, "rank of a MATLAB array")?;
        let stored = elements.read(0, rank, cancel)?;
        let dims = matlab_empty::to_hdf5_order(&elements.datatype, &stored);
        let dims = dims.ok_or_else(|| {
            Error::corrupt(
                "MATLAB char array: not empty, although its attribute says so",
                None,
            )
        })?;
        let unit = CodeUnit::new(ByteOrder::Little, 1);
        match dims[..] {
            [0, 0] => Self::new(Some(&[0, 1]), unit),
            _ => Self::new(Some(&dims), unit),
        }
    }

    /// Returns the number of strings.
    ///
    /// # Errors
    /// `Limit` if the number of rows overflows.
    pub(super) fn count(&self) -> Result<u64> {
        product(&[self.matrices, self.rows])
    }

    /// Returns the number of code units in a row.
    pub(super) fn columns(&self) -> u64 {
        self.columns
    }

    /// Returns the length of a row in bytes, before it is converted to UTF-8.
    pub(super) fn row_bytes(&self) -> u64 {
        self.columns.saturating_mul(to_u64(self.unit.size))
    }

    fn matrix_bytes(&self) -> u64 {
        self.row_bytes().saturating_mul(self.rows)
    }

    /// Returns whether whole matrices are read at once. Otherwise a part of each column is read
    /// separately.
    fn is_read_whole(&self) -> bool {
        const NEAR: u64 = 4096;
        let column = self.rows.saturating_mul(to_u64(self.unit.size));
        let is_small = self.matrix_bytes() <= limits::TEXT_ELEMENT_BYTES;
        is_small && (column <= NEAR || self.columns > limits::CHAR_COLUMNS)
    }

    /// Returns the length of a matrix in bytes if whole matrices are read at once; otherwise 0.
    pub(super) fn whole_matrix_bytes(&self) -> u64 {
        if self.is_read_whole() {
            self.matrix_bytes()
        } else {
            0
        }
    }

    /// Writes the strings `rows` until `out` holds at least `enough` bytes. Returns the number of
    /// the first string that was not written.
    pub(super) fn write(
        &self,
        elements: &Elements,
        rows: &Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let stored = if self.is_read_whole() {
            self.read_matrices(elements, rows, cancel)?
        } else {
            self.read_row_parts(elements, rows, cancel)?
        };
        let mut row = Vec::new();
        for number in rows.start..rows.end.min(stored.end) {
            if number > rows.start && out.len() >= enough {
                return Ok(number);
            }
            row.clear();
            for element in stored.elements(number, self.columns)? {
                let start = element * self.unit.size;
                row.extend_from_slice(&stored.bytes[start..start + self.unit.size]);
            }
            self.unit.decode(&row, out);
            out.push(b'\n');
        }
        Ok(rows.end.min(stored.end))
    }

    /// Reads whole matrices, starting with the matrix that contains the first of `rows`.
    fn read_matrices(
        &self,
        elements: &Elements,
        rows: &Range<u64>,
        cancel: &CancelToken,
    ) -> Result<MatrixColumns> {
        let size = self.columns.saturating_mul(self.rows);
        let first = rows.start / self.rows;
        let count = rows.end.div_ceil(self.rows) - first;
        let count = (elements.batch_elements() / size.max(1)).max(1).min(count);
        Ok(MatrixColumns {
            bytes: elements
                .read(first * size, count * size, cancel)?
                .into_vec(),
            start: first * self.rows,
            end: (first + count) * self.rows,
            elements_per_column: self.rows,
        })
    }

    /// Reads the first of `rows`, at most to the end of their matrix. Reads one part of each
    /// column.
    fn read_row_parts(
        &self,
        elements: &Elements,
        rows: &Range<u64>,
        cancel: &CancelToken,
    ) -> Result<MatrixColumns> {
        const CHARACTERS: u64 = 32 << 10;
        let (matrix, first) = (rows.start / self.rows, rows.start % self.rows);
        let count = (self.rows - first).min(rows.end - rows.start);
        let count = (CHARACTERS / self.columns.max(1)).max(1).min(count);
        let mut bytes = Vec::new();
        for column in 0..self.columns {
            let start = (matrix * self.columns + column) * self.rows + first;
            bytes.extend_from_slice(&elements.read(start, count, cancel)?);
        }
        Ok(MatrixColumns {
            bytes,
            start: rows.start,
            end: rows.start + count,
            elements_per_column: count,
        })
    }
}

/// The elements of consecutive rows, as they were read: column after column in each matrix.
struct MatrixColumns {
    bytes: Vec<u8>,
    /// Number of the first row that was read.
    start: u64,
    /// Number of the row after the last one that was read.
    end: u64,
    /// Number of elements that were read from each column.
    elements_per_column: u64,
}

impl MatrixColumns {
    /// Returns the indices of the elements of row `number` among the elements that were read, one
    /// for each of `columns` columns.
    fn elements(&self, number: u64, columns: u64) -> Result<impl Iterator<Item = usize>> {
        let (matrix, row) = (
            (number - self.start) / self.elements_per_column,
            (number - self.start) % self.elements_per_column,
        );
        let first = to_usize(matrix * columns * self.elements_per_column + row)?;
        let step = to_usize(self.elements_per_column)?;
        Ok((0..to_usize(columns)?).map(move |column| first + column * step))
    }
}

impl CodeUnit {
    /// Creates the encoding of code units of `size` bytes: 1 (UTF-8), 2 (UTF-16) or 4 (UTF-32).
    pub(super) const fn new(order: ByteOrder, size: usize) -> Self {
        CodeUnit { order, size }
    }

    /// Converts a string to UTF-8, and appends it to `out`. Invalid code units become U+FFFD.
    /// Strings that are stored as UTF-8 are copied unchanged.
    fn decode(self, stored: &[u8], out: &mut Vec<u8>) {
        let units = stored
            .chunks_exact(self.size)
            .map(|unit| self.code_unit_value(unit));
        let mut push = |character: Option<char>| {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        };
        match self.size {
            1 => out.extend_from_slice(stored),
            2 => {
                let units = units.map(|unit| u16::try_from(unit).unwrap_or(u16::MAX));
                char::decode_utf16(units).for_each(|character| push(character.ok()));
            }
            _ => units.for_each(|unit| push(char::from_u32(unit))),
        }
    }

    fn code_unit_value(self, unit: &[u8]) -> u32 {
        let add = |number: u32, &byte: &u8| number << 8 | u32::from(byte);
        match self.order {
            ByteOrder::Big => unit.iter().fold(0, add),
            ByteOrder::Little | ByteOrder::Vax => unit.iter().rev().fold(0, add),
        }
    }
}

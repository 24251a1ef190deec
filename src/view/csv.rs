//! An array as comma-separated text in columns of fixed width, so that the size is known without
//! reading, and every byte is a step away.
//!
//! Every cell is as wide as the widest text its type can have, the text at its right end, and is
//! followed by `,` or, at the end of a row, by a line break. So every element takes the same number
//! of bytes, and byte n of the text leads to its element by a division.
//!
//! | elements | rows |
//! |---|---|
//! | of a scalar or one dimension | a row for each element |
//! | of more dimensions | a row for each vector along the last one |
//! | compounds of any dimensions | a row for each element, below a line of the columns' names |
//!
//! A compound has a column for each of its parts, `a`, `b.c`, `f[0]`, `f[1][2]`; a complex number
//! has two. [`mod@column`] says how wide columns are and which text they hold.

pub(crate) mod column;

use std::ops::Range;

use crate::array::Bytes;
use crate::error::{Error, Result};
use crate::model::shape::product;
use crate::model::{Array, Datatype, datatype::Class};
use crate::view::View;
use crate::view::csv::column::Columns;
use crate::view::elements::{Elements, complex_part, opened, overlap};
use crate::wire::{to_u64, to_usize};

/// The text of an array.
pub(crate) struct Csv {
    elements: Elements,
    table: Table,
}

/// How the text is laid out.
struct Table {
    columns: Columns,
    header: Vec<u8>,
    count: u64,
    per_row: u64,
    length: u64,
}

impl Csv {
    /// The text of `elements`; `None` for a type with variable-length or reference parts.
    ///
    /// # Errors
    /// `Limit` for too many columns, an element that is too long, or a text longer than a file can
    /// be.
    pub(crate) fn new(elements: Elements) -> Result<Option<Self>> {
        let table = Table::new(&elements.datatype, elements.dims.as_deref())?;
        Ok(table.map(|table| Csv { elements, table }))
    }
}

/// Bytes of the text of `array`, without a look at its elements; `None` where there is none.
///
/// # Errors
/// As [`Csv::new`].
pub(crate) fn length(array: &Array) -> Result<Option<u64>> {
    let (datatype, dims) = opened(&array.datatype, &array.shape)?;
    let table = Table::new(&datatype, dims.as_deref())?;
    Ok(table.map(|table| table.length))
}

impl Table {
    fn new(datatype: &Datatype, dims: Option<&[u64]>) -> Result<Option<Self>> {
        let Some(columns) = Columns::of(datatype)? else {
            return Ok(None);
        };
        let named =
            matches!(datatype.class, Class::Compound(_)) && complex_part(datatype).is_none();
        let header = match named {
            true => columns.header(),
            false => Vec::new(),
        };
        let count = dims.map_or(Ok(0), product)?;
        let per_row = match dims {
            Some([_, .., last]) if !named => *last,
            _ => 1,
        };
        const MOST: u64 = i64::MAX.unsigned_abs();
        let length = count
            .checked_mul(columns.width())
            .and_then(|body| body.checked_add(to_u64(header.len())))
            .filter(|&length| length <= MOST)
            .ok_or_else(|| Error::limit("size of a csv", MOST))?;
        Ok(Some(Table {
            columns,
            header,
            count,
            per_row,
            length,
        }))
    }

    /// The byte that follows the last cell of an element.
    fn end_of(&self, element: u64) -> u8 {
        match (element + 1).is_multiple_of(self.per_row) {
            true => b'\n',
            false => b',',
        }
    }
}

impl Csv {
    /// Appends the bytes of `range` of the text behind the header.
    fn write(&self, range: &Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let columns = &self.table.columns;
        let width = columns.width();
        let size = to_usize(self.elements.datatype.size.into())?;
        let last = range.end.div_ceil(width).min(self.table.count);
        let mut first = range.start / width;
        let mut cell = Vec::new();
        while first < last {
            let count = self.elements.batch().min(last - first);
            let bytes = self.elements.read(first, count)?;
            for number in 0..count {
                let element = first + number;
                let place = to_usize(number)? * size;
                let mut start = element * width;
                let skipped = range.start.saturating_sub(start);
                for column in columns.from(skipped) {
                    start = element * width + column.start;
                    if start >= range.end {
                        break;
                    }
                    cell.clear();
                    column.write(&bytes[place..place + size], &mut cell)?;
                    cell.push(match column.start + to_u64(cell.len()) + 1 == width {
                        true => self.table.end_of(element),
                        false => b',',
                    });
                    out.extend_from_slice(&cell[overlap(&cell, start, range)]);
                }
            }
            first += count;
        }
        Ok(())
    }
}

impl View for Csv {
    fn length(&self) -> Option<u64> {
        Some(self.table.length)
    }

    fn own_bytes(&self) -> u64 {
        let header = to_u64(self.table.header.len());
        self.elements.own_bytes_with(2).saturating_add(header)
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        let header = &self.table.header;
        let end = offset
            .saturating_add(to_u64(length))
            .min(self.table.length)
            .max(offset);
        let mut out = header[overlap(header, 0, &(offset..end))].to_vec();
        let begins = to_u64(header.len());
        let body = offset.saturating_sub(begins)..end.saturating_sub(begins);
        if !body.is_empty() {
            self.write(&body, &mut out)?;
        }
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests;

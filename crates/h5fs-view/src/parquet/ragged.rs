//! Columns of lists whose lengths vary from row to row.

use std::ops::Range;
use std::sync::Arc;

use h5fs_conventions::stored_type as numbers;
use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::value::TextContext;
use h5fs_reader::wire::{Count, to_u64, to_usize};

use crate::limits;
use crate::parquet::encoding::ValueConversion;
use crate::parquet::leaf::{BATCH_BYTES, EncodedValues, LeafValues, ListLengths};
use crate::parquet::stored::{PointerContext, ValueLocation};
use crate::text_files::bounds::TextLengthLimits;

/// Number of rows whose lists are read at a time.
const BATCH_ROWS: u64 = 16 << 10;

/// The number of list entries and of elements in a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct EntryCounts {
    /// Number of entries: all elements, and one entry for each empty list.
    pub(super) count: u64,
    pub(super) elements: u64,
}

impl EntryCounts {
    /// Counts the entries and elements of the lists in the rows `rows`.
    ///
    /// # Errors
    /// Fails if the lists cannot be read.
    pub(super) fn count(
        lists: &dyn ListLengths,
        rows: Range<u64>,
        bounds: &TextLengthLimits,
    ) -> Result<Self> {
        let mut entries = EntryCounts::default();
        let mut first = rows.start;
        while first < rows.end {
            bounds.add_bytes(0)?;
            let end = rows.end.min(first.saturating_add(BATCH_ROWS));
            for length in lists.lengths(first..end, bounds.cancel())? {
                entries.elements = entries.elements.saturating_add(length);
                entries.count = entries.count.saturating_add(length.max(1));
            }
            first = end;
        }
        Ok(entries)
    }
}

/// Returns the bytes `range` of the repetition levels of a page, or of the definition levels if
/// `are_definitions`. Each level has one bit. A repetition level of 1 means that an entry continues
/// a list. A definition level of 1 means that an entry is an element, not an empty list.
///
/// # Errors
/// Fails if the lists cannot be read.
pub(super) fn level_bits(
    lists: &dyn ListLengths,
    rows: &Range<u64>,
    range: &Range<u64>,
    are_definitions: bool,
    cancel: &CancelToken,
) -> Result<Vec<u8>> {
    let bits = range.start.saturating_mul(8)..range.end.saturating_mul(8);
    let mut out = vec![0; to_usize(range.end - range.start)?];
    let (mut first, mut entry) = (rows.start, 0_u64);
    while first < rows.end && entry < bits.end {
        let end = rows.end.min(first.saturating_add(BATCH_ROWS));
        for length in lists.lengths(first..end, cancel)? {
            let next = entry.saturating_add(length.max(1));
            let set = if are_definitions {
                entry..entry.saturating_add(length)
            } else {
                entry.saturating_add(1)..next
            };
            for bit in set.start.max(bits.start)..set.end.min(bits.end) {
                let place = bit - bits.start;
                out[to_usize(place / 8)?] |= 1 << (place % 8);
            }
            entry = next;
        }
        first = cancel.next_batch(first, end)?;
    }
    Ok(out)
}

/// Lists whose elements are in one array. For each row, an index array has the number of the
/// element at which the row's list ends.
pub(super) struct IndexedLists {
    /// The location of the list ends in the index array.
    pub(super) location: ValueLocation,
    pub(super) stored: numbers::StoredType,
    /// The number of elements in the element array.
    pub(super) elements: u64,
}

impl IndexedLists {
    /// Returns where the list of each of `rows` begins in the element array, and where the last
    /// list ends.
    fn read_list_ends(&self, rows: &Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>> {
        let before = rows.start.saturating_sub(1);
        let mut ends = Vec::with_capacity(to_usize(rows.end - before)?.plus_one());
        if rows.start == 0 {
            ends.push(0);
        }
        self.location
            .visit_rows(before..rows.end, cancel, &mut |value| {
                let end = self.stored.read_number(value).as_integer();
                let end = end.and_then(|end| u64::try_from(end).ok());
                let end = end.filter(|&end| end <= self.elements);
                let nowhere = || Error::corrupt("table: a list without an end", None);
                ends.push(end.ok_or_else(nowhere)?);
                Ok(())
            })?;
        if ends.is_sorted() {
            Ok(ends)
        } else {
            let what = "table: a list that ends before it begins";
            Err(Error::corrupt(what, None))
        }
    }
}

impl ListLengths for IndexedLists {
    fn lengths(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>> {
        let ends = self.read_list_ends(&rows, cancel)?;
        Ok(ends.windows(2).map(|ends| ends[1] - ends[0]).collect())
    }

    fn elements(&self, rows: &Range<u64>, cancel: &CancelToken) -> Result<Option<Range<u64>>> {
        if rows.is_empty() {
            return Ok(Some(0..0));
        }
        let end = |row: u64| -> Result<u64> {
            let ends = self.read_list_ends(&(row..row.saturating_add(1)), cancel)?;
            Ok(ends.first().copied().unwrap_or(0))
        };
        let last = self.read_list_ends(&(rows.end - 1..rows.end), cancel)?;
        let (start, end) = (end(rows.start)?, last.last().copied().unwrap_or(0));
        if start > end {
            let what = "table: a list that ends before it begins";
            return Err(Error::corrupt(what, None));
        }
        Ok(Some(start..end))
    }
}

/// Lists that are stored as HDF5's variable-length sequences.
#[derive(Clone)]
pub(super) struct SequenceLists {
    /// The location of the pointers to the sequences.
    pub(super) location: ValueLocation,
    /// Size of an element in bytes.
    pub(super) size: u64,
    pub(super) pointers: Arc<PointerContext>,
}

impl ListLengths for SequenceLists {
    fn lengths(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Vec<u64>> {
        let mut lengths = Vec::with_capacity(to_usize(rows.end - rows.start)?);
        self.location.visit_rows(rows, cancel, &mut |pointer| {
            let bytes = self
                .pointers
                .container
                .variable_length_bytes(pointer, self.size)?;
            lengths.push(bytes.unwrap_or(0) / self.size.max(1));
            Ok(())
        })?;
        Ok(lengths)
    }

    fn elements(&self, _: &Range<u64>, _: &CancelToken) -> Result<Option<Range<u64>>> {
        Ok(None)
    }
}

/// The elements of variable-length sequences.
pub(super) struct SequenceValues {
    pub(super) sequences: SequenceLists,
    pub(super) encoding: ValueConversion,
}

impl SequenceValues {
    /// Appends the elements of the lists of `rows` until `out` has `enough` bytes. Returns the
    /// number of the first row that was not written.
    fn write_until(
        &self,
        enough: usize,
        rows: Range<u64>,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        let mut row = rows.start;
        self.sequences
            .location
            .visit_rows(rows, cancel, &mut |pointer| {
                if out.bytes.len() < enough {
                    cancel.check_cancelled()?;
                    self.push_elements(pointer, &mut out.bytes)?;
                    row += 1;
                }
                Ok(())
            })?;
        Ok(row)
    }

    /// Appends the elements of the sequence that `pointer` leads to.
    fn push_elements(&self, pointer: &[u8], out: &mut Vec<u8>) -> Result<()> {
        const MOST: u64 = limits::TEXT_ELEMENT_BYTES;
        let SequenceLists { size, pointers, .. } = &self.sequences;
        let PointerContext { container, paths } = &**pointers;
        let context = TextContext::new(&**container, &**paths, limits::PARQUET_TEXT);
        let length = container.variable_length_bytes(pointer, *size)?;
        let length = length.unwrap_or(0);
        let before = out.len();
        let check = |bytes: u64| match bytes {
            0..=MOST => Ok(()),
            _ => Err(Error::limit("bytes of a list of a Parquet file", MOST)),
        };
        check(length)?;
        let bytes = container.read_variable_length(pointer, *size, 0..length)?;
        let each = to_usize(*size)?.max(1);
        for element in bytes.unwrap_or_default().chunks_exact(each) {
            // Several elements may lead to the same text, which is then written several times.
            check(to_u64(out.len() - before))?;
            self.encoding.push_value(element, &context, out)?;
        }
        Ok(())
    }
}

impl LeafValues for SequenceValues {
    fn row_bytes(&self) -> u64 {
        self.sequences.location.rows.row_bytes
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
        0
    }
}

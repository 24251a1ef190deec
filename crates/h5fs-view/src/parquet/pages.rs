//! The bytes of column chunks: a dictionary page and a data page.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::marks::CheckpointList;
use h5fs_reader::memory::weighted_lru::WeightedLru;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::parquet::field::LeafColumn;
use crate::parquet::headers::{dictionary_header, page_header};
use crate::parquet::layout::ChunkLayout;
use crate::parquet::leaf::{EncodedValues, Leaf, PageLayout};
use crate::parquet::levels::{ListLevels, bit_packed_bytes, bit_packed_header, pack_level_bits};
use crate::parquet::ragged;
use crate::parquet::schema::PhysicalType;

/// Maximum memory in bytes for the marks (recorded offsets of some rows) of all pages.
const MARK_MEMORY: u64 = 1 << 20;

/// The maximum number of marks (recorded row offsets) of a page, and the minimum distance between
/// two marks in bytes.
const PAGE_MARKS: (usize, u64) = (256, 64 << 10);

/// Amount of data to encode at a time if the offsets of rows in the page are unknown, in bytes.
const BATCH: u64 = 64 << 10;

/// The requested range of the file. The parts of the file (headers, pages, zeros) are added from
/// front to back, and only their bytes within the range are written.
pub(super) struct PageWindow {
    range: Range<u64>,
    /// The offset in the file at which the next part begins.
    offset: u64,
    pub(super) out: Vec<u8>,
}

impl PageWindow {
    /// Creates the window of `range`. The first part that is added begins at the offset `at` of the
    /// file.
    pub(super) fn new(range: Range<u64>, at: u64) -> Self {
        PageWindow {
            range,
            offset: at,
            out: Vec::new(),
        }
    }

    /// Returns the offset in the file of the first byte of the range that is not written yet.
    pub(super) fn next_offset(&self) -> u64 {
        self.range.start.saturating_add(to_u64(self.out.len()))
    }

    /// Sets the offset of the next part to `at`. All bytes of the range before `at` must be
    /// written.
    pub(super) fn set_offset(&mut self, at: u64) {
        self.offset = at;
    }

    /// Returns whether the next part begins after the range.
    pub(super) fn is_full(&self) -> bool {
        self.offset >= self.range.end
    }

    /// Adds a part of `length` bytes. `make` returns the bytes in a range that is relative to the
    /// part.
    pub(super) fn add_part(
        &mut self,
        length: u64,
        make: impl FnOnce(Range<u64>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let (begin, end) = (self.offset, self.offset.saturating_add(length));
        self.offset = end;
        let range = self.range.start.max(begin)..self.range.end.min(end);
        if range.is_empty() {
            return Ok(());
        }
        let bytes = make(range.start - begin..range.end - begin)?;
        if to_u64(bytes.len()) != range.end - range.start {
            return Err(Error::corrupt(
                "parquet: a page of an unexpected length",
                None,
            ));
        }
        self.out.extend(bytes);
        Ok(())
    }

    /// Adds zeros up to the offset `place` of the file.
    pub(super) fn add_zeros_to(&mut self, place: u64) -> Result<()> {
        self.add_part(place.saturating_sub(self.offset), |range| {
            Ok(vec![0; to_usize(range.end - range.start)?])
        })
    }

    pub(super) fn add_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.add_part(to_u64(bytes.len()), |range| copy_range(bytes, range))
    }
}

fn copy_range(bytes: &[u8], range: Range<u64>) -> Result<Vec<u8>> {
    let (start, end) = (to_usize(range.start)?, to_usize(range.end)?);
    Ok(bytes.get(start..end).unwrap_or_default().to_vec())
}

/// A column chunk to write.
pub(super) struct ColumnChunk<'a> {
    pub(super) column: &'a LeafColumn,
    pub(super) chunk: ChunkLayout,
    pub(super) rows: Range<u64>,
    /// The number of the row group, and the index of the column.
    pub(super) number: (u64, usize),
}

/// Marks of a page with values of varying length: the offsets at which some rows begin.
type PageMarks = Arc<Mutex<CheckpointList<u64>>>;

/// A writer of column chunks. While it writes values of varying length, it records marks (offsets
/// of some rows), from which later reads start.
pub(super) struct PageWriter {
    marks: Mutex<WeightedLru<(u64, usize), PageMarks>>,
}

impl PageWriter {
    pub(super) fn new() -> Self {
        PageWriter {
            marks: Mutex::new(WeightedLru::new(MARK_MEMORY)),
        }
    }

    /// Returns the memory in bytes that the marks occupy.
    pub(super) fn own_bytes(&self) -> u64 {
        lock(&self.marks).weight()
    }

    /// Writes those bytes of a column chunk that are in the requested range of `window`.
    ///
    /// # Errors
    /// Fails if the values cannot be read.
    pub(super) fn write(
        &self,
        own: &ColumnChunk<'_>,
        cancel: &CancelToken,
        window: &mut PageWindow,
    ) -> Result<()> {
        let (column, chunk) = (own.column, &own.chunk);
        if let PageLayout::Indices(dictionary) = &column.leaf.body {
            window.add_bytes(&dictionary_header(dictionary))?;
            window.add_bytes(&dictionary.values)?;
        }
        window.add_bytes(&page_header(column, chunk.entries, chunk.page_bytes()))?;
        write_levels(own, cancel, window)?;
        if let PageLayout::Indices(dictionary) = &column.leaf.body {
            window.add_bytes(&[8 * dictionary.index_bytes as u8])?;
            window.add_bytes(&bit_packed_header(chunk.entries))?;
        }
        window.add_part(chunk.values, |range| self.value_bytes(own, range, cancel))
    }

    /// Returns the bytes `range` of the values in the chunk's data page.
    fn value_bytes(
        &self,
        own: &ColumnChunk<'_>,
        range: Range<u64>,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>> {
        let repeats = own.column.values_per_row();
        let leaf = &own.column.leaf;
        if let Some(elements) = element_range(own, cancel)? {
            if leaf.kind.physical == PhysicalType::ByteArray {
                let own = ColumnChunk {
                    rows: elements,
                    ..*own
                };
                return self.packed_values(&own, range, cancel);
            }
            let width = leaf.kind.physical.bytes();
            if (elements.end - elements.start).saturating_mul(width) != own.chunk.values {
                let what = "parquet: the lists have another length than counted";
                return Err(Error::corrupt(what, None));
            }
            return fixed_width_values(leaf, elements, width, range, cancel);
        }
        match &leaf.body {
            PageLayout::Bits if leaf.is_optional => pack_present_booleans(own, range, cancel),
            PageLayout::Bits => pack_booleans(own, range, cancel),
            PageLayout::Plain(width) if !leaf.is_optional => {
                let width = width.saturating_mul(repeats);
                fixed_width_values(leaf, own.rows.clone(), width, range, cancel)
            }
            PageLayout::Indices(dictionary) if !leaf.is_optional => {
                let width = dictionary.index_bytes.saturating_mul(repeats);
                fixed_width_values(leaf, own.rows.clone(), width, range, cancel)
            }
            _ => self.packed_values(own, range, cancel),
        }
    }

    /// Returns the bytes `range` of values that are packed at the beginning of the data page, with
    /// zeros after the last value.
    fn packed_values(
        &self,
        own: &ColumnChunk<'_>,
        range: Range<u64>,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>> {
        let marks = self.page_marks(own.number);
        let (mut at, mut row) = match lock(&marks).last_at_or_before(range.start) {
            Some((at, &row)) => (at, row),
            None => (0, own.rows.start),
        };
        let leaf = &own.column.leaf;
        let at_a_time = batch_rows(leaf);
        let mut window = PageWindow::new(range.clone(), at);
        while !window.is_full() && row < own.rows.end {
            let end = own.rows.end.min(row.saturating_add(at_a_time));
            let mut written = EncodedValues::default();
            let next = leaf.values.write_limited(row..end, cancel, &mut written)?;
            lock(&marks).record(at, || row);
            window.add_bytes(&written.bytes)?;
            at = at.saturating_add(to_u64(written.bytes.len()));
            row = cancel.next_batch(row, next)?;
        }
        let is_short = row == own.rows.end && at < own.chunk.values;
        let is_counted = matches!(leaf.body, PageLayout::Counted);
        if at > own.chunk.values && row == own.rows.end || is_short && is_counted {
            let what = "parquet: the values have another length than counted";
            return Err(Error::corrupt(what, None));
        }
        let left = (range.end - range.start).saturating_sub(to_u64(window.out.len()));
        let all = window.out.len() + to_usize(left)?;
        window.out.resize(all, 0);
        Ok(window.out)
    }

    fn page_marks(&self, number: (u64, usize)) -> PageMarks {
        let mut all = lock(&self.marks);
        if let Some(marks) = all.get(&number) {
            return Arc::clone(marks);
        }
        let (most, apart) = PAGE_MARKS;
        let marks = Arc::new(Mutex::new(CheckpointList::new(most, apart)));
        let weight = to_u64(most * size_of::<(u64, u64)>());
        let gone = all.put(number, Arc::clone(&marks), weight);
        drop(all);
        drop(gone);
        marks
    }
}

/// Returns the number of rows to encode at a time if their offsets in the page are unknown.
pub(super) fn batch_rows(leaf: &Leaf) -> u64 {
    let width = match leaf.body {
        PageLayout::Slots(width) | PageLayout::Plain(width) => width,
        _ => 64,
    };
    (BATCH / width.max(leaf.values.row_bytes()).max(16)).max(1)
}

fn write_levels(
    own: &ColumnChunk<'_>,
    cancel: &CancelToken,
    window: &mut PageWindow,
) -> Result<()> {
    let entries = own.chunk.entries;
    if let Some(lists) = &own.column.leaf.variable_lists {
        for are_definitions in [false, true] {
            add_level_bits(entries, window, |range| {
                ragged::level_bits(&**lists, &own.rows, &range, are_definitions, cancel)
            })?;
        }
        return Ok(());
    }
    if !own.column.lists.is_empty() {
        let levels = ListLevels {
            lists: &own.column.lists,
            count: entries,
        };
        window.add_bytes(&levels.repetition_head())?;
        window.add_part(levels.repetition_run_length(), |range| {
            Ok(levels.repetition_run(range))
        })?;
        return window.add_bytes(&levels.definition_levels());
    }
    let leaf = &own.column.leaf;
    if !leaf.is_optional {
        return Ok(());
    }
    add_level_bits(entries, window, |range| {
        let first = 8 * range.start;
        let present = rows_with_value(own, first..8 * range.end, cancel)?;
        Ok(pack_level_bits(range, |number| {
            let place = usize::try_from(number - first).ok();
            place.and_then(|place| present.get(place)) == Some(&true)
        }))
    })
}

/// Adds the repetition or definition levels of `entries` entries to the window, one bit each.
/// `make` returns the bytes of the packed levels in a range.
fn add_level_bits(
    entries: u64,
    window: &mut PageWindow,
    make: impl FnOnce(Range<u64>) -> Result<Vec<u8>>,
) -> Result<()> {
    let head = bit_packed_header(entries);
    let length = to_u64(head.len()) + bit_packed_bytes(entries, 1);
    window.add_bytes(&(length as u32).to_le_bytes())?;
    window.add_bytes(&head)?;
    window.add_part(bit_packed_bytes(entries, 1), make)
}

/// Returns the encoded values of the rows `rows` of a column chunk. `rows` is relative to the
/// chunk's first row, and is cut at the chunk's last row. `all` has the rows of the whole chunk in
/// the source table.
fn encode_rows(
    leaf: &Leaf,
    all: &Range<u64>,
    rows: Range<u64>,
    cancel: &CancelToken,
) -> Result<EncodedValues> {
    let row = |number: u64| all.start.saturating_add(number).min(all.end);
    let mut written = EncodedValues::default();
    let rows = row(rows.start)..row(rows.end);
    leaf.values.write(rows, cancel, &mut written)?;
    Ok(written)
}

/// Returns, for each of `rows`, whether the row has a value. `rows` is relative to the first row of
/// the column chunk.
fn rows_with_value(
    own: &ColumnChunk<'_>,
    rows: Range<u64>,
    cancel: &CancelToken,
) -> Result<Vec<bool>> {
    let leaf = &own.column.leaf;
    let at_a_time = batch_rows(leaf);
    let end = rows.end.min(own.rows.end - own.rows.start);
    let mut present = Vec::new();
    let row = |number: u64| own.rows.start.saturating_add(number);
    let mut first = row(rows.start);
    while first < row(end) {
        let next = row(end).min(first.saturating_add(at_a_time));
        let mut written = EncodedValues::default();
        let end = leaf
            .values
            .write_limited(first..next, cancel, &mut written)?;
        first = cancel.next_batch(first, end)?;
        present.extend(written.present);
    }
    Ok(present)
}

/// Returns the range of elements that the lists of a column chunk consist of. Returns `None` if the
/// elements are not in one array, or if the column does not have lists of varying length.
fn element_range(own: &ColumnChunk<'_>, cancel: &CancelToken) -> Result<Option<Range<u64>>> {
    match &own.column.leaf.variable_lists {
        Some(lists) => lists.elements(&own.rows, cancel),
        None => Ok(None),
    }
}

/// Returns the bytes `range` of values that take `width` bytes in each row.
fn fixed_width_values(
    leaf: &Leaf,
    rows: Range<u64>,
    width: u64,
    range: Range<u64>,
    cancel: &CancelToken,
) -> Result<Vec<u8>> {
    let width = width.max(1);
    let (first, end) = (range.start / width, range.end.div_ceil(width));
    let mut bytes = encode_rows(leaf, &rows, first..end, cancel)?.bytes;
    let before = to_usize(range.start - first * width)?;
    let wanted = to_usize(range.end - range.start)?;
    // Dictionary indices are padded to a multiple of eight.
    bytes.resize(bytes.len().max(before + wanted), 0);
    bytes.truncate(before + wanted);
    bytes.drain(..before);
    Ok(bytes)
}

/// Returns the bytes `range` of booleans that are packed to bits.
fn pack_booleans(
    own: &ColumnChunk<'_>,
    range: Range<u64>,
    cancel: &CancelToken,
) -> Result<Vec<u8>> {
    let repeats = own.column.values_per_row().max(1);
    let first = 8 * range.start / repeats;
    let rows = first..(8 * range.end).div_ceil(repeats);
    let values = encode_rows(&own.column.leaf, &own.rows, rows, cancel)?.bytes;
    Ok(pack_bits(&values, range, first * repeats))
}

/// Returns the bytes `range` of packed booleans, without the missing ones. All booleans of the page
/// are read.
fn pack_present_booleans(
    own: &ColumnChunk<'_>,
    range: Range<u64>,
    cancel: &CancelToken,
) -> Result<Vec<u8>> {
    let all = own.rows.end - own.rows.start;
    let values = encode_rows(&own.column.leaf, &own.rows, 0..all, cancel)?.bytes;
    Ok(pack_bits(&values, range, 0))
}

/// Packs booleans to bits, and returns the bytes `range` of all packed booleans. `values` are the
/// booleans from number `first` on.
fn pack_bits(values: &[u8], range: Range<u64>, first: u64) -> Vec<u8> {
    pack_level_bits(range, |number| {
        let place = number.checked_sub(first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| values.get(place)) == Some(&1)
    })
}

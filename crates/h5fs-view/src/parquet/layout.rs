//! The offsets of row groups, column chunks and pages in a Parquet file.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;
use crate::parquet::field::LeafColumn;
use crate::parquet::headers::{dictionary_header, page_header};
use crate::parquet::leaf::PageLayout;
use crate::parquet::levels::{ListLevels, bit_packed_bytes, bit_packed_header};

/// The magic bytes at both ends of a Parquet file.
pub(super) const MAGIC: &[u8; 4] = b"PAR1";

/// Alignment of column chunks in bytes. It ensures that a page of the kernel's page cache never has
/// bytes of two chunks. If one chunk cannot be read, the others are still readable.
const CHUNK_ALIGNMENT: u64 = 4096;

/// Number of bytes that readers fetch from the end of a file to find the footer. If the footer is
/// shorter, zeros precede it, so that fetching this range does not decode chunks. A damaged chunk
/// then does not prevent reading the footer.
const FOOTER_FETCH_BYTES: u64 = 64 << 10;

/// Maximum length of one read-ahead request of the kernel, in bytes.
const READ_AHEAD: u64 = 1 << 20;

/// Length in bytes below which a column chunk is not followed by zeros. After reading a shorter
/// chunk, the kernel reads ahead only a little.
const SHORT_CHUNK_BYTES: u64 = 64 << 10;

/// The layout of a file: its row groups, and the offset of each.
pub(super) struct FileLayout {
    /// The rows of the source table that the file contains.
    pub(super) rows: Range<u64>,
    /// Number of rows in all groups except the last.
    pub(super) group_rows: u64,
    pub(super) groups: u64,
    full_group: Arc<RowGroup>,
    last_group: Arc<RowGroup>,
    counts: Option<GroupCounts>,
}

/// The counts of one column in one row group, which are known only after its values are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ColumnCounts {
    /// Length of the column's values in bytes.
    pub(super) bytes: u64,
    /// For a column of lists: the number of elements, plus the number of empty lists.
    pub(super) entries: u64,
}

/// The counts and the offsets of all row groups, in a file with counted columns (columns whose
/// length is known only after their values are read).
struct GroupCounts {
    /// The counts of each counted column: all columns of the first row group, then of the second,
    /// and so on.
    column_counts: Vec<ColumnCounts>,
    columns: usize,
    /// The offset of each row group in the file, and the end of the last one.
    starts: Vec<u64>,
}

/// The layout of one row group: its column chunks.
#[derive(Debug)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    /// The offset of each column chunk within the row group.
    pub(super) starts: Vec<u64>,
    pub(super) chunks: Vec<ChunkLayout>,
    pub(super) length: u64,
}

/// The lengths of the parts of a column chunk, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkLayout {
    /// Length of the dictionary page.
    pub(super) dictionary: u64,
    /// Length of the data page's header.
    pub(super) header: u64,
    /// Length of the repetition and definition levels.
    pub(super) levels: u64,
    /// Length of the bytes before dictionary indices: their bit width, and the header of their run.
    pub(super) prefix: u64,
    pub(super) values: u64,
    /// Number of values, including missing ones.
    pub(super) entries: u64,
}

impl ChunkLayout {
    fn new(column: &LeafColumn, rows: u64, counted: ColumnCounts) -> Self {
        let entries = match column.leaf.variable_lists {
            Some(_) => counted.entries,
            None => rows.saturating_mul(column.values_per_row()),
        };
        let levels = if column.leaf.variable_lists.is_some() {
            2 * level_bytes(entries)
        } else if !column.lists.is_empty() {
            let levels = ListLevels {
                lists: &column.lists,
                count: entries,
            };
            levels.length()
        } else if column.leaf.is_optional {
            level_bytes(entries)
        } else {
            0
        };
        let (dictionary, prefix) = match &column.leaf.body {
            PageLayout::Indices(dictionary) => {
                let header = to_u64(dictionary_header(dictionary).len());
                let head = 1 + to_u64(bit_packed_header(entries).len());
                (header + to_u64(dictionary.values.len()), head)
            }
            _ => (0, 0),
        };
        let values = column
            .leaf
            .body
            .bytes(rows, column.values_per_row(), counted.bytes);
        let mut chunk = ChunkLayout {
            dictionary,
            header: 0,
            levels,
            prefix,
            values,
            entries,
        };
        let header = page_header(column, entries, chunk.page_bytes());
        chunk.header = to_u64(header.len());
        chunk
    }

    /// Returns the length of the data page without its header.
    pub(super) fn page_bytes(&self) -> u64 {
        let parts = [self.levels, self.prefix, self.values];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    pub(super) fn length(&self) -> u64 {
        (self.dictionary + self.header).saturating_add(self.page_bytes())
    }
}

impl RowGroup {
    fn new(columns: &[LeafColumn], rows: u64, counted: &[ColumnCounts]) -> Self {
        let mut counted = counted.iter();
        let mut group = RowGroup {
            rows,
            starts: Vec::with_capacity(columns.len()),
            chunks: Vec::with_capacity(columns.len()),
            length: 0,
        };
        for column in columns {
            let own = column
                .leaf
                .has_counted_length()
                .then(|| counted.next().copied());
            let counted = own.flatten().unwrap_or_default();
            let chunk = ChunkLayout::new(column, rows, counted);
            group.starts.push(group.length);
            let end = group.length.saturating_add(chunk.length());
            let is_last = group.starts.len() == columns.len();
            let end = end.saturating_add(padding_after(column, chunk.length(), is_last));
            group.length = end
                .checked_next_multiple_of(CHUNK_ALIGNMENT)
                .unwrap_or(u64::MAX);
            group.chunks.push(chunk);
        }
        group
    }

    /// Returns the index of the column chunk that contains `offset`, which is relative to the row
    /// group.
    pub(super) fn chunk_at(&self, offset: u64) -> usize {
        let behind = self.starts.partition_point(|&start| start <= offset);
        behind.saturating_sub(1)
    }

    fn own_bytes(&self) -> u64 {
        let each = size_of::<u64>() + size_of::<ChunkLayout>();
        to_u64(self.chunks.capacity().saturating_mul(each))
    }
}

impl FileLayout {
    /// Computes the layout of a file with the rows `rows`. `counted` has the counts of each counted
    /// column: all columns of the first row group, then of the second, and so on.
    ///
    /// # Errors
    /// `Limit` if the file is longer than any file can be, or a page is longer than Parquet allows.
    pub(super) fn compute(
        columns: &[LeafColumn],
        rows: Range<u64>,
        group_rows: u64,
        counted: Vec<ColumnCounts>,
    ) -> Result<Self> {
        let count = rows.end.saturating_sub(rows.start);
        let groups = count.div_ceil(group_rows);
        let last_rows = count.saturating_sub(groups.saturating_sub(1).saturating_mul(group_rows));
        let is_counted = |column: &&LeafColumn| column.leaf.has_counted_length();
        let counted_columns = columns.iter().filter(is_counted).count();
        let zeros = vec![ColumnCounts::default(); counted_columns];
        let mut layout = FileLayout {
            rows,
            group_rows,
            groups,
            full_group: Arc::new(RowGroup::new(columns, group_rows, &zeros)),
            last_group: Arc::new(RowGroup::new(columns, last_rows, &zeros)),
            counts: None,
        };
        if counted_columns > 0 {
            layout.counts = Some(GroupCounts {
                column_counts: counted,
                columns: counted_columns,
                starts: Vec::new(),
            });
            layout.compute_group_starts(columns)?;
        }
        layout.check_limits()?;
        Ok(layout)
    }

    fn compute_group_starts(&mut self, columns: &[LeafColumn]) -> Result<()> {
        let mut starts = vec![CHUNK_ALIGNMENT];
        let mut end = CHUNK_ALIGNMENT;
        for number in 0..self.groups {
            let group = self.row_group(columns, number);
            let pages = group.chunks.iter().map(ChunkLayout::page_bytes);
            check_page_length(pages.max().unwrap_or(0))?;
            end = end.saturating_add(group.length);
            starts.push(end);
        }
        if let Some(counts) = &mut self.counts {
            counts.starts = starts;
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<()> {
        const MOST: u64 = i64::MAX.unsigned_abs();
        if self.groups > 1 {
            let pages = self.full_group.chunks.iter().map(ChunkLayout::page_bytes);
            check_page_length(pages.max().unwrap_or(0))?;
        }
        let pages = self.last_group.chunks.iter().map(ChunkLayout::page_bytes);
        check_page_length(pages.max().unwrap_or(0))?;
        Error::check_limit(self.footer_offset(), MOST, "size of a Parquet file")?;
        Ok(())
    }

    /// Returns the offset of row group `number` in the file.
    pub(super) fn group_start(&self, number: u64) -> u64 {
        match &self.counts {
            Some(counts) => {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                counts.starts.get(number).copied().unwrap_or(u64::MAX)
            }
            None => number
                .saturating_mul(self.full_group.length)
                .saturating_add(CHUNK_ALIGNMENT),
        }
    }

    /// Returns the offset of the footer in the file.
    pub(super) fn footer_offset(&self) -> u64 {
        match self.groups {
            0 => self.groups_end(),
            _ => self.groups_end().saturating_add(FOOTER_FETCH_BYTES),
        }
    }

    /// Returns the offset in the file where the last row group ends.
    pub(super) fn groups_end(&self) -> u64 {
        match self.groups.checked_sub(1) {
            Some(last) if self.counts.is_none() => self
                .group_start(last)
                .saturating_add(self.last_group.length),
            _ => self.group_start(self.groups),
        }
    }

    /// Returns the number of the row group that contains the offset `offset` of the file.
    pub(super) fn group_at(&self, offset: u64) -> u64 {
        match &self.counts {
            Some(counts) => {
                let behind = counts.starts.partition_point(|&start| start <= offset);
                to_u64(behind.saturating_sub(1))
            }
            None => {
                let inside = offset.saturating_sub(CHUNK_ALIGNMENT);
                inside.checked_div(self.full_group.length).unwrap_or(0)
            }
        }
    }

    /// Returns the number of rows in the file.
    pub(super) fn row_count(&self) -> u64 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// Returns the number of a row group's first row in the source.
    pub(super) fn first_row(&self, number: u64) -> u64 {
        let behind = number.saturating_mul(self.group_rows);
        self.rows.start.saturating_add(behind)
    }

    /// Returns the range of a row group's rows in the source.
    pub(super) fn group_row_range(&self, number: u64) -> Range<u64> {
        let first = self.first_row(number);
        first..first.saturating_add(self.uncounted_group(number).rows)
    }

    /// Returns the layout of a row group with the same number of rows as row group `number`, in
    /// which counted columns have a length of 0.
    fn uncounted_group(&self, number: u64) -> &Arc<RowGroup> {
        let is_last = number.saturating_add(1) >= self.groups;
        if is_last {
            &self.last_group
        } else {
            &self.full_group
        }
    }

    pub(super) fn row_group(&self, columns: &[LeafColumn], number: u64) -> Arc<RowGroup> {
        let like = self.uncounted_group(number);
        match &self.counts {
            None => Arc::clone(like),
            Some(counts) => {
                let first = to_usize(number).unwrap_or(usize::MAX);
                let first = first.saturating_mul(counts.columns);
                let end = first.saturating_add(counts.columns);
                let counted = counts.column_counts.get(first..end).unwrap_or_default();
                Arc::new(RowGroup::new(columns, like.rows, counted))
            }
        }
    }

    pub(super) fn own_bytes(&self) -> u64 {
        let counts = self.counts.as_ref().map_or(0, |counts| {
            8 * to_u64(2 * counts.column_counts.capacity() + counts.starts.capacity())
        });
        counts + self.full_group.own_bytes() + self.last_group.own_bytes()
    }
}

/// Returns the number of zero bytes after a column chunk. The kernel's read-ahead then reads these
/// zeros instead of the next chunk, which the reader may not need. Columns of the same array do not
/// need zeros between them, because they are decoded together.
fn padding_after(column: &LeafColumn, length: u64, is_last: bool) -> u64 {
    let origin = column.leaf.values.origin();
    let is_kept_apart =
        origin.is_some_and(|origin| origin.is_costly_to_read() && (origin.is_only_leaf || is_last));
    match length {
        _ if !is_kept_apart => 0,
        0..SHORT_CHUNK_BYTES => 0,
        // The kernel reads ahead twice the bytes of the last read, up to its maximum. During a long
        // read, it has already requested the part after the next one.
        _ if length <= READ_AHEAD / 4 => length,
        _ if length <= READ_AHEAD => READ_AHEAD,
        _ => 2 * READ_AHEAD,
    }
}

/// Returns the length in bytes of the repetition or definition levels of `entries` entries,
/// including their length field and run header. Each level has one bit.
fn level_bytes(entries: u64) -> u64 {
    4 + to_u64(bit_packed_header(entries).len()) + bit_packed_bytes(entries, 1)
}

fn check_page_length(bytes: u64) -> Result<()> {
    Error::check_limit(
        bytes,
        limits::PARQUET_PAGE,
        "bytes of a page of a Parquet file",
    )?;
    Ok(())
}

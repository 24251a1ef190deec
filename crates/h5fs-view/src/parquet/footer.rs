//! The footer of a Parquet file: the schema, and the offsets of the column chunks (`FileMetaData`
//! of parquet.thrift).

use std::ops::Range;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::parquet::field::LeafColumn;
use crate::parquet::headers::{PLAIN, RLE, RLE_DICTIONARY};
use crate::parquet::layout::{ChunkLayout, FileLayout, RowGroup};
use crate::parquet::leaf::PageLayout;
use crate::parquet::pages::PageWindow;
use crate::parquet::schema;
use crate::parquet::statistics::{Statistics, ValueBounds};
use crate::parquet::thrift::{FieldType, StructWriter};

/// Distance in row groups between two neighbouring offsets in `Footer::group_offsets`.
const GROUPS_PER_OFFSET: u64 = 16;

/// The footer of a file. The metadata of its row groups is generated when it is read.
pub(super) struct Footer {
    /// The encoded metadata before the list of row groups. `tail` has the metadata after the list.
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The offset, relative to the end of `head`, of the metadata of each row group whose number is
    /// a multiple of `GROUPS_PER_OFFSET`.
    group_offsets: Vec<u64>,
    /// Length in bytes of the metadata of all row groups.
    groups_length: u64,
}

impl Footer {
    /// Creates the footer of a file. `fields` is the number of fields at the top level, `elements`
    /// are the schema elements after the root, and `pairs` are the key-value pairs.
    ///
    /// # Errors
    /// `Limit` for a footer that is too long. Each group repeats the names of all columns.
    pub(super) fn new(
        (fields, elements): (usize, Vec<StructWriter>),
        columns: &[LeafColumn],
        layout: &FileLayout,
        statistics: &Statistics,
        pairs: &[(String, String)],
    ) -> Result<Self> {
        let elements = [schema::root_element(fields)].into_iter().chain(elements);
        let elements: Vec<StructWriter> = elements.collect();
        let mut head = StructWriter::default()
            .i32(1, 2)
            .structs(2, elements.into_iter())
            .i64(3, layout.row_count().cast_signed());
        let groups = usize::try_from(layout.groups).unwrap_or(usize::MAX);
        head.begin_list(4, FieldType::Struct, groups);
        let mut footer = Footer {
            head: head.unfinished_bytes(),
            tail: metadata_tail(columns.len(), pairs),
            group_offsets: Vec::new(),
            groups_length: 0,
        };
        for number in 0..layout.groups {
            if number.is_multiple_of(GROUPS_PER_OFFSET) {
                footer.group_offsets.push(footer.groups_length);
            }
            let described = row_group_metadata(columns, layout, number, statistics.placeholders());
            footer.groups_length += to_u64(described.len());
            Error::check_limit(
                footer.metadata_length(),
                limits::PARQUET_FOOTER,
                "bytes of the footer of a Parquet file",
            )?;
        }
        Ok(footer)
    }

    /// Returns the length of the footer in bytes, including the footer's length field and the final
    /// `PAR1`.
    pub(super) fn length(&self) -> u64 {
        self.metadata_length() + 8
    }

    fn metadata_length(&self) -> u64 {
        to_u64(self.head.len()) + self.groups_length + to_u64(self.tail.len())
    }

    /// Returns the bytes of the footer in `range`, which is relative to the beginning of the
    /// footer.
    ///
    /// # Errors
    /// `Corrupt` if the metadata of the row groups do not have the length that was computed before,
    /// which is a bug.
    pub(super) fn read(
        &self,
        range: Range<u64>,
        columns: &[LeafColumn],
        layout: &FileLayout,
        bounds: ValueBounds<'_>,
    ) -> Result<Vec<u8>> {
        let mut window = PageWindow::new(range.clone(), 0);
        window.add_bytes(&self.head)?;
        let inside = range.start.saturating_sub(to_u64(self.head.len()));
        window.add_part(self.groups_length, |part| {
            let behind = self.group_offsets.partition_point(|&place| place <= inside);
            let kept = behind.saturating_sub(1);
            let mut groups =
                PageWindow::new(part, self.group_offsets.get(kept).copied().unwrap_or(0));
            let mut number = to_u64(kept) * GROUPS_PER_OFFSET;
            while !groups.is_full() && number < layout.groups {
                groups.add_bytes(&row_group_metadata(columns, layout, number, bounds))?;
                number += 1;
            }
            Ok(groups.out)
        })?;
        window.add_bytes(&self.tail)?;
        let length = u32::try_from(self.metadata_length()).unwrap_or(u32::MAX);
        window.add_bytes(&length.to_le_bytes())?;
        window.add_bytes(super::layout::MAGIC)?;
        Ok(window.out)
    }

    pub(super) fn own_bytes(&self) -> u64 {
        let places = self.group_offsets.capacity() * size_of::<u64>();
        to_u64(self.head.capacity() + self.tail.capacity() + places)
    }
}

/// Returns the encoded metadata after the list of row groups.
fn metadata_tail(columns: usize, pairs: &[(String, String)]) -> Vec<u8> {
    let pairs = pairs.iter().map(|(key, value)| {
        StructWriter::default()
            .binary(1, key.as_bytes())
            .binary(2, value.as_bytes())
    });
    // Readers use the bounds of a column only if its order is specified.
    let orders =
        (0..columns).map(|_| StructWriter::default().struct_field(1, StructWriter::default()));
    let writer = concat!("h5fs version ", env!("CARGO_PKG_VERSION"));
    StructWriter::after_field(4)
        .structs(5, pairs)
        .binary(6, writer.as_bytes())
        .structs(7, orders)
        .finish()
}

/// Returns the encoded metadata of row group `number`.
fn row_group_metadata(
    columns: &[LeafColumn],
    layout: &FileLayout,
    number: u64,
    bounds: ValueBounds<'_>,
) -> Vec<u8> {
    let group = layout.row_group(columns, number);
    let start = layout.group_start(number);
    let rows = layout.group_row_range(number);
    let chunks = columns.iter().enumerate();
    let chunks = chunks.map(|(at, column)| {
        let statistics =
            bounds.add_to_statistics(known_statistics(column, &rows), (number, at), column);
        let metadata =
            column_chunk_metadata(column, &group, at, start).struct_field(12, statistics);
        StructWriter::default().i64(2, 0).struct_field(3, metadata)
    });
    let bytes = group.chunks.iter().map(ChunkLayout::length);
    let bytes = bytes.fold(0, u64::saturating_add).cast_signed();
    StructWriter::default()
        .structs(1, chunks)
        .i64(2, bytes)
        .i64(3, group.rows.cast_signed())
        .i64(5, start.cast_signed())
        .i64(6, bytes)
        .i16(7, i16::try_from(number).unwrap_or(i16::MAX))
        .finish()
}

/// Returns those statistics of a column in `rows` that are known without reading its values.
fn known_statistics(column: &LeafColumn, rows: &Range<u64>) -> StructWriter {
    let mut statistics = StructWriter::default();
    if !column.leaf.is_optional && !column.is_in_lists() {
        statistics = statistics.i64(3, 0);
    }
    if let Some([least, greatest]) = column.leaf.values.bounds(rows.clone()) {
        statistics = statistics.binary(5, &greatest).binary(6, &least);
    }
    statistics
}

/// Returns the metadata of a column chunk, without its statistics.
fn column_chunk_metadata(
    column: &LeafColumn,
    group: &RowGroup,
    at: usize,
    start: u64,
) -> StructWriter {
    let chunk = &group.chunks[at];
    let begin = start.saturating_add(group.starts[at]);
    let has_dictionary = matches!(column.leaf.body, PageLayout::Indices(_));
    let encodings: &[i32] = if has_dictionary {
        &[RLE_DICTIONARY, PLAIN, RLE]
    } else {
        &[PLAIN, RLE]
    };
    let bytes = chunk.length().cast_signed();
    let page = begin.saturating_add(chunk.dictionary).cast_signed();
    let mut metadata = StructWriter::default()
        .i32(1, column.leaf.kind.physical as i32)
        .i32s(2, encodings)
        .binaries(3, &column.path)
        .i32(4, 0)
        .i64(5, chunk.entries.cast_signed())
        .i64(6, bytes)
        .i64(7, bytes)
        .i64(9, page);
    if has_dictionary {
        metadata = metadata.i64(11, begin.cast_signed());
    }
    metadata
}

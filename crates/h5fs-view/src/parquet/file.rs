//! The Parquet file of a table: planning, counting and reading.

use std::ops::Range;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::parquet::field::{FlatFields, LeafColumn};
use crate::parquet::footer::Footer;
use crate::parquet::layout::{ColumnCounts, FileLayout, MAGIC};
use crate::parquet::leaf::EncodedValues;
use crate::parquet::pages::{ColumnChunk, PageWindow, PageWriter, batch_rows};
use crate::parquet::ragged::EntryCounts;
use crate::parquet::row_groups::RowGroupParameters;
use crate::parquet::schema::PhysicalType;
use crate::parquet::statistics::{BoundsCache, Statistics};
use crate::parquet::table::ParquetTable;
use crate::parquet::thrift::StructWriter;
use crate::text_files::bounds::TextLengthLimits;
use crate::view::View;

/// The plan of a Parquet file: its rows, columns and schema. Together with the result of
/// [`count_columns`](FilePlan::count_columns), it determines each byte.
pub struct FilePlan {
    rows: Range<u64>,
    group_rows: u64,
    columns: Vec<LeafColumn>,
    /// The number of fields at the top level, and the schema elements after the root.
    schema: (usize, Vec<StructWriter>),
    key_values: Vec<(String, String)>,
}

/// The Parquet file of a table, whose bytes are computed when they are read.
struct ParquetFile {
    columns: Vec<LeafColumn>,
    layout: FileLayout,
    footer: Footer,
    statistics: Statistics,
    pages: PageWriter,
}

impl FilePlan {
    /// Plans the file of `table`.
    ///
    /// # Errors
    /// `Limit` if the table does not fit in a Parquet file.
    pub fn new(table: ParquetTable) -> Result<Self> {
        let ParquetTable {
            rows,
            chunk_rows: unit,
            fields,
            description,
        } = table;
        let mut pairs = description.key_values;
        pairs.extend(fields.omitted_columns_pair());
        let count = fields.fields.len();
        let flat = FlatFields::flatten(fields.fields);
        let columns = flat.columns;
        let row_bytes = columns.iter().map(|column| column.leaf.values.row_bytes());
        let page_bytes = columns.iter().map(max_page_bytes_per_row);
        let demand = RowGroupParameters {
            rows: rows.end.saturating_sub(rows.start),
            chunk_rows: unit,
            row_bytes: row_bytes.max().unwrap_or(0),
            page_bytes_per_row: page_bytes.max().unwrap_or(0),
            columns: to_u64(columns.len()),
        };
        Ok(FilePlan {
            rows,
            group_rows: demand.group_rows()?,
            columns,
            schema: (count, flat.elements),
            key_values: pairs,
        })
    }

    /// Returns whether the length of some column is unknown until
    /// [`count_columns`](Self::count_columns) reads its values.
    pub fn needs_counting(&self) -> bool {
        self.counted_columns().next().is_some()
    }

    fn counted_columns(&self) -> impl Iterator<Item = &LeafColumn> {
        let columns = self.columns.iter();
        columns.filter(|column| column.leaf.has_counted_length())
    }

    fn row_count(&self) -> u64 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// Counts the bytes and list entries of each column of variable-length values, in each row
    /// group. The result is encoded for [`file`](Self::file). Reads all variable-length values.
    ///
    /// # Errors
    /// `Limit` for too many values or bytes; [`Error::cancelled`] once the request is cancelled.
    /// Fails if a value cannot be read.
    pub fn count_columns(&self, bounds: &TextLengthLimits) -> Result<Vec<u8>> {
        let columns = to_u64(self.counted_columns().count());
        if self.row_count().saturating_mul(columns) > limits::COUNTED_VALUES {
            let what = "texts of a Parquet file (a selector after the name reads fewer rows)";
            return Err(Error::limit(what, limits::COUNTED_VALUES));
        }
        if self.row_count().saturating_mul(columns) > limits::QUICK_VALUES {
            bounds.cancel().require_heavy_slot()?;
        }
        let mut counts = Vec::new();
        for group in 0..self.row_count().div_ceil(self.group_rows) {
            let first = group.saturating_mul(self.group_rows);
            let first = self.rows.start.saturating_add(first);
            let rows = first..self.rows.end.min(first.saturating_add(self.group_rows));
            for column in self.counted_columns() {
                let ColumnCounts { bytes, entries } = count_column(column, rows.clone(), bounds)?;
                counts.extend([bytes, entries].into_iter().flat_map(u64::to_le_bytes));
            }
        }
        Ok(counts)
    }

    /// Creates the file. `counted` is the result of [`count_columns`](Self::count_columns). `keep`
    /// caches the minimum and maximum values of the columns.
    ///
    /// # Errors
    /// `Limit` if the file is longer than any file can be.
    pub fn file(self, counted: &[u8], keep: BoundsCache) -> Result<impl View + use<>> {
        let (numbers, _) = counted.as_chunks();
        let (pairs, _) = numbers.as_chunks();
        let pairs = pairs.iter().map(|&pair| {
            let [bytes, entries] = pair.map(u64::from_le_bytes);
            ColumnCounts { bytes, entries }
        });
        let counts: Vec<ColumnCounts> = pairs.collect();
        let layout = FileLayout::compute(&self.columns, self.rows, self.group_rows, counts)?;
        let columns = &self.columns;
        let statistics = Statistics::new(columns, &layout, keep);
        let footer = Footer::new(self.schema, columns, &layout, &statistics, &self.key_values)?;
        Ok(ParquetFile {
            statistics,
            columns: self.columns,
            layout,
            footer,
            pages: PageWriter::new(),
        })
    }
}

/// Returns the maximum number of bytes that one row adds to a page of the column.
fn max_page_bytes_per_row(column: &LeafColumn) -> u64 {
    let values = match column.leaf.kind.physical {
        PhysicalType::Boolean => 1,
        _ => column
            .leaf
            .body
            .bytes(8, column.values_per_row(), 0)
            .div_ceil(8),
    };
    // Each level takes a few bits.
    values
        .saturating_add(column.values_per_row())
        .saturating_add(1)
}

/// Counts the bytes of a column's values in the rows `rows`, and its list entries (elements and
/// empty lists).
fn count_column(
    column: &LeafColumn,
    rows: Range<u64>,
    bounds: &TextLengthLimits,
) -> Result<ColumnCounts> {
    let Some(lists) = &column.leaf.variable_lists else {
        let bytes = count_bytes(column, rows, bounds)?;
        return Ok(ColumnCounts { bytes, entries: 0 });
    };
    let found = EntryCounts::count(&**lists, rows.clone(), bounds)?;
    let bytes = match column.leaf.kind.physical {
        PhysicalType::ByteArray => {
            if found.elements > limits::COUNTED_VALUES {
                let what = "texts of the lists of a Parquet file";
                return Err(Error::limit(what, limits::COUNTED_VALUES));
            }
            let elements = lists.elements(&rows, bounds.cancel())?;
            count_bytes(column, elements.unwrap_or(rows), bounds)?
        }
        physical => found.elements.saturating_mul(physical.bytes()),
    };
    Ok(ColumnCounts {
        bytes,
        entries: found.count,
    })
}

/// Counts the bytes of a column's values in the rows `rows`.
fn count_bytes(column: &LeafColumn, rows: Range<u64>, bounds: &TextLengthLimits) -> Result<u64> {
    let cancel = bounds.cancel();
    let at_a_time = batch_rows(&column.leaf);
    let (mut first, mut bytes) = (rows.start, 0);
    while first < rows.end {
        let end = rows.end.min(first.saturating_add(at_a_time));
        let mut written = EncodedValues::default();
        let next = column
            .leaf
            .values
            .write_limited(first..end, cancel, &mut written)?;
        first = cancel.next_batch(first, next)?;
        bytes += to_u64(written.bytes.len());
        if !bounds.add_bytes(to_u64(written.bytes.len()))? {
            let what = "bytes of the texts of a Parquet file (several values may share one text)";
            return Err(Error::limit(what, bounds.max_bytes()));
        }
    }
    Ok(bytes)
}

impl ParquetFile {
    /// Writes those bytes of the row groups that are in the requested range of `window`.
    fn write_groups(&self, cancel: &CancelToken, window: &mut PageWindow) -> Result<()> {
        while window.next_offset() < self.layout.groups_end() && !window.is_full() {
            let before = window.next_offset();
            let number = self.layout.group_at(window.next_offset());
            let start = self.layout.group_start(number);
            let group = self.layout.row_group(&self.columns, number);
            let first = self.layout.first_row(number);
            let rows = first..first.saturating_add(group.rows);
            let begin = group.chunk_at(window.next_offset() - start);
            window.set_offset(start.saturating_add(group.starts.get(begin).copied().unwrap_or(0)));
            for (place, column) in self.columns.iter().enumerate().skip(begin) {
                window.add_zeros_to(start.saturating_add(group.starts[place]))?;
                if window.is_full() {
                    return Ok(());
                }
                let own = ColumnChunk {
                    column,
                    chunk: group.chunks[place],
                    rows: rows.clone(),
                    number: (number, place),
                };
                self.pages.write(&own, cancel, window)?;
            }
            window.add_zeros_to(start.saturating_add(group.length))?;
            cancel.next_batch(before, window.next_offset())?;
        }
        Ok(())
    }
}

impl View for ParquetFile {
    fn length(&self) -> u64 {
        self.layout
            .footer_offset()
            .saturating_add(self.footer.length())
    }

    fn own_bytes(&self) -> u64 {
        let columns = self.columns.iter().map(|column| {
            let names: usize = column.path.iter().map(String::capacity).sum();
            let own = to_u64(size_of::<LeafColumn>() + names);
            own.saturating_add(column.leaf.values.own_bytes())
        });
        let columns = columns.fold(0, u64::saturating_add);
        let others = [
            self.layout.own_bytes(),
            self.footer.own_bytes(),
            self.statistics.own_bytes(),
            self.pages.own_bytes(),
        ];
        others.into_iter().fold(columns, u64::saturating_add)
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let end = offset.saturating_add(to_u64(length)).min(self.length());
        let mut window = PageWindow::new(offset..end, 0);
        window.add_bytes(MAGIC)?;
        window.add_zeros_to(self.layout.group_start(0))?;
        self.write_groups(cancel, &mut window)?;
        window.set_offset(self.layout.groups_end());
        window.add_zeros_to(self.layout.footer_offset())?;
        let (columns, layout) = (&self.columns, &self.layout);
        window.add_part(self.footer.length(), |range| {
            self.statistics
                .with_bounds(columns, layout, cancel, |bounds| {
                    self.footer.read(range, columns, layout, bounds)
                })
        })?;
        Ok(window.out.into())
    }

    fn stops_on_cancel(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parquet::encoding::{dictionary, push_text};
    use crate::parquet::field::{Field, FieldContent};
    use crate::parquet::leaf::{Leaf, LeafValues, ListLengths, PageLayout};
    use crate::parquet::schema::ColumnType;
    use crate::parquet::table::{KeyValueMetadata, ParquetFields};

    /// Values that are functions of the row number.
    #[derive(Clone, Copy)]
    enum TestValues {
        Number,
        Bit,
        Index,
        Text,
        Some,
    }

    impl LeafValues for TestValues {
        fn row_bytes(&self) -> u64 {
            8
        }

        fn write(&self, rows: Range<u64>, _: &CancelToken, out: &mut EncodedValues) -> Result<()> {
            for row in rows {
                match self {
                    TestValues::Number => out.bytes.extend(row.to_le_bytes()),
                    TestValues::Bit => out.bytes.push(u8::from(row % 3 == 0)),
                    TestValues::Index => out.bytes.push((row % 2) as u8),
                    TestValues::Text => push_text(row.to_string().as_bytes(), &mut out.bytes)?,
                    TestValues::Some => {
                        out.present.push(row % 5 > 0);
                        if row % 5 > 0 {
                            out.bytes.extend(row.to_le_bytes());
                        }
                    }
                }
            }
            Ok(())
        }

        fn own_bytes(&self) -> u64 {
            0
        }
    }

    /// Lists whose length is the last digit of the row number.
    struct Digits;

    impl ListLengths for Digits {
        fn lengths(&self, rows: Range<u64>, _: &CancelToken) -> Result<Vec<u64>> {
            Ok(rows.map(|row| row % 10).collect())
        }

        fn elements(&self, rows: &Range<u64>, _: &CancelToken) -> Result<Option<Range<u64>>> {
            let before = |row: u64| (0..row).map(|row| row % 10).sum();
            Ok(Some(before(rows.start)..before(rows.end)))
        }
    }

    fn field(name: &str, kind: PhysicalType, body: PageLayout, made: TestValues) -> Field {
        let leaf = Leaf {
            kind: ColumnType::plain(kind),
            body,
            is_optional: matches!(made, TestValues::Some),
            values: Box::new(made),
            variable_lists: None,
        };
        Field {
            name: name.to_owned(),
            content: FieldContent::Leaf(Box::new(leaf)),
        }
    }

    fn fields() -> Vec<Field> {
        let texts = [b"a", b"b"].map(|text| {
            let mut value = Vec::new();
            push_text(text, &mut value).unwrap();
            value
        });
        let indices = PageLayout::Indices(dictionary(&texts));
        let mut fields = vec![
            field(
                "number",
                PhysicalType::Int64,
                PageLayout::Plain(8),
                TestValues::Number,
            ),
            field(
                "bit",
                PhysicalType::Boolean,
                PageLayout::Bits,
                TestValues::Bit,
            ),
            field("index", PhysicalType::ByteArray, indices, TestValues::Index),
            field(
                "slot",
                PhysicalType::ByteArray,
                PageLayout::Slots(12),
                TestValues::Text,
            ),
            field(
                "text",
                PhysicalType::ByteArray,
                PageLayout::Counted,
                TestValues::Text,
            ),
            field(
                "some",
                PhysicalType::Int64,
                PageLayout::Slots(8),
                TestValues::Some,
            ),
            field(
                "list",
                PhysicalType::Int64,
                PageLayout::Counted,
                TestValues::Number,
            ),
        ];
        if let Some(Field { content, .. }) = fields.last_mut()
            && let FieldContent::Leaf(leaf) =
                std::mem::replace(content, FieldContent::Group(Vec::new()))
        {
            *content = FieldContent::VariableLengthList(Box::new(Leaf {
                variable_lists: Some(Box::new(Digits)),
                ..*leaf
            }));
        }
        let bits = field(
            "bits",
            PhysicalType::Boolean,
            PageLayout::Bits,
            TestValues::Bit,
        )
        .content;
        // The values are read by rows, with one value in each row.
        fields.push(Field {
            name: "bits".to_owned(),
            content: FieldContent::FixedLengthList(1, Box::new(bits)),
        });
        fields
    }

    fn file(rows: Range<u64>) -> impl View {
        let table = ParquetTable {
            rows,
            chunk_rows: 1,
            fields: ParquetFields {
                fields: fields(),
                columns_without_field: Vec::new(),
            },
            description: KeyValueMetadata::default(),
        };
        let mut plan = FilePlan::new(table).unwrap();
        plan.group_rows = 1000;
        let bounds = TextLengthLimits::new(CancelToken::default(), u64::MAX);
        let counted = plan.count_columns(&bounds).unwrap();
        plan.file(&counted, Box::new(|find| find())).unwrap()
    }

    #[test]
    fn a_file_begins_and_ends_with_the_magic() {
        for rows in [0..0, 0..1, 5..2500] {
            let file = file(rows);
            let whole = file.read_at(0, usize::MAX >> 1).unwrap();
            assert_eq!(to_u64(whole.len()), file.length());
            assert!(whole.starts_with(b"PAR1") && whole.ends_with(b"PAR1"));
            let footer = whole[whole.len() - 8..].first_chunk().unwrap();
            let footer = u32::from_le_bytes(*footer) as usize;
            // Field 1, an i32: version 2.
            assert_eq!(whole[whole.len() - 8 - footer..][..2], [0x15, 4]);
        }
    }

    proptest! {
        #[test]
        fn any_range_equals_its_part_of_the_whole(
            rows in 0_u64..3000,
            places in proptest::collection::vec((0.0..1.0_f64, 1_usize..9000), 20),
        ) {
            let file = file(0..rows);
            let whole = file.read_at(0, usize::MAX >> 1).unwrap();
            // The other file does not have marks from earlier reads.
            let other = self::file(0..rows);
            for (place, length) in places {
                let at = (place * whole.len() as f64) as usize;
                let end = whole.len().min(at + length);
                let part = other.read_at(at as u64, length).unwrap();
                prop_assert_eq!(&part[..], &whole[at..end]);
            }
        }
    }
}

//! The rows of a group's table, which are read in batches, and the text of each cell.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use h5fs_reader::array::{Bytes, CancelToken, Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::weighted_lru::WeightedLru;
use h5fs_reader::model::number::append_formatted;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::model::{Array, Container, NodeId};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::csv::fields::{CellKind, Cells, ColumnReader};
use crate::elements::reading_cost;
use crate::json::SharedPaths;
use crate::limits;
use crate::table::column::{ColumnSource, GroupTable, MissingRule, RowField};
use crate::table::column_location::{ArrayValues, ColumnLocation, RowArray};
use crate::table::lists::ListColumn;
use crate::table::objects::PickledTexts;
use crate::table::runs::Runs;
use crate::table::time::PandasTime;

/// Maximum memory in bytes of the category names that a table caches.
const CACHED_NAMES_BYTES: u64 = 1 << 20;

/// The objects that are needed to read a table's values.
pub struct TableContext {
    /// The engine that reads arrays.
    pub engine: Arc<Engine>,
    /// The container of the table. It reads values of variable length, whose stored bytes only point
    /// to them.
    pub container: Arc<dyn Container>,
    /// The function that finds the paths of referenced objects.
    pub paths: SharedPaths,
}

/// An open table, whose rows can be read.
pub struct TableRows {
    context: TableContext,
    /// Memory in bytes of the table's description.
    weight: u64,
    /// The open arrays, each with one row for each row of the table.
    arrays: Vec<RowArray>,
    /// Length of a table row in bytes: the sum over all open arrays.
    row_bytes: u64,
    names: Vec<Vec<u8>>,
    columns: Vec<OpenColumn>,
    /// A cache of category names that were read recently.
    categories: Mutex<WeightedLru<CategoryKey, CellText>>,
    /// Number of items of variable-length sequences that were read so far.
    sequence_items_read: AtomicU64,
}

/// The text, or the set of texts, that represents a missing value.
enum MissingText {
    Text(Arc<[u8]>),
    /// Any text that represents this number.
    Number(f64),
}

/// The identity of a category: the index of its column, the nesting level of its names, and its
/// code.
type CategoryKey = (usize, usize, u64);

/// The kind and the text of a cell.
type CellText = (CellKind, Arc<[u8]>);

/// A batch of rows that was read from the open arrays.
pub struct Batch<'a> {
    table: &'a TableRows,
    first: u64,
    own: &'a [RowArray],
    /// For each array of `own`, the bytes of the batch's rows.
    arrays: Vec<Bytes>,
    /// The token of the request that the rows are read for.
    cancel: CancelToken,
}

/// The names of a column's categories. They are themselves a column, with one row for each
/// category.
struct CategoryNames {
    /// The nesting level of the names: 0, or one more than the outer level if the categories of a
    /// column are categories themselves.
    level: usize,
    rows: u64,
    arrays: Vec<RowArray>,
    column: OpenColumn,
}

/// The location of a column's values in the open arrays. The type is kept small, because a table
/// may have many columns.
enum OpenColumn {
    Value(ColumnLocation),
    /// A stored value, which is missing where the mask (the second location) is not zero.
    Masked(ColumnLocation, Box<ColumnLocation>),
    /// A stored value, which is missing if its text is one that the second field describes.
    MissingIf(ColumnLocation, MissingText),
    /// The code of a category. The value is the name of the category.
    Category(ColumnLocation, Box<CategoryNames>),
    /// A stored integer, which must be less than this bound.
    Bounded(ColumnLocation, u64),
    List(Box<ListColumn>),
    Run(Box<Runs>),
    Time(ColumnLocation, PandasTime),
    Text(PickledTexts),
}

impl TableRows {
    /// Opens the arrays of `table`. `verify` is called with each array before it is opened.
    ///
    /// # Errors
    /// Fails as `verify` does for an array that is known to be unreadable; `Limit` if a row is too
    /// long.
    pub fn open(
        table: GroupTable,
        surroundings: TableContext,
        verify: &dyn Fn(NodeId) -> Result<()>,
    ) -> Result<Self> {
        let mut opening = ColumnArrays {
            engine: &surroundings.engine,
            verify,
            level: 0,
            arrays: Vec::new(),
            known: HashMap::new(),
        };
        let weight = table.weight();
        let mut names = Vec::with_capacity(table.columns.len());
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in table.columns {
            columns.push(opening.open_column(&column.source)?);
            names.push(column.name);
        }
        let arrays = opening.arrays;
        let row_bytes = arrays.iter().map(|array| to_u64(array.row_bytes())).sum();
        let most = limits::TEXT_ELEMENT_BYTES;
        Error::check_limit(row_bytes, most, "bytes of a row of a table")?;
        Ok(TableRows {
            context: surroundings,
            weight,
            arrays,
            row_bytes,
            names,
            columns,
            categories: Mutex::new(WeightedLru::new(CACHED_NAMES_BYTES)),
            sequence_items_read: AtomicU64::new(0),
        })
    }

    /// Reads the rows `rows`. The result gives access to stored values and to texts.
    ///
    /// # Errors
    /// Fails if the rows cannot be read.
    pub fn read_batch(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Batch<'_>> {
        self.read_batch_of(&self.arrays, rows, cancel)
    }

    fn read_batch_of<'a>(
        &'a self,
        own: &'a [RowArray],
        rows: Range<u64>,
        cancel: &CancelToken,
    ) -> Result<Batch<'a>> {
        let arrays = own.iter().map(|array| array.read(&rows, cancel));
        Ok(Batch {
            table: self,
            first: rows.start,
            own,
            arrays: arrays.collect::<Result<_>>()?,
            cancel: cancel.clone(),
        })
    }

    /// Appends the name of the category `code` of a column, from the cache or from the file.
    fn write_category(
        &self,
        (column, code): (usize, u64),
        names: &CategoryNames,
        (context, cancel): (&TextContext<'_>, &CancelToken),
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        let category = (column, names.level, code);
        if let Some((cell, name)) = lock(&self.categories).get(&category) {
            out.extend_from_slice(name);
            return Ok(*cell);
        }
        let start = out.len();
        if code >= names.rows {
            return Err(Error::corrupt(
                "table: a category that does not exist",
                None,
            ));
        }
        let batch = self.read_batch_of(&names.arrays, code..code.saturating_add(1), cancel)?;
        let cell = batch.write_value(&names.column, (column, 0), context, out)?;
        let text: Arc<[u8]> = out[start..].into();
        let weight = to_u64(text.len());
        let gone = lock(&self.categories).put(category, (cell, text), weight);
        drop(gone);
        Ok(cell)
    }
}

impl ColumnReader for TableRows {
    fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    fn pad_columns(&mut self) -> Option<u64> {
        let widths = self.columns.iter_mut().map(|column| match column {
            OpenColumn::Value(place) => place.pad_values(),
            _ => None,
        });
        widths.sum()
    }

    fn row_values(&self) -> u64 {
        let values = self.columns.iter().map(|column| match column {
            OpenColumn::List(lists) => lists.values_per_row(),
            OpenColumn::Value(value) | OpenColumn::Masked(value, _) => value.cell_cost(),
            _ => 1,
        });
        values.fold(reading_cost(self.row_bytes), u64::saturating_add)
    }

    fn sequence_items_read(&self) -> u64 {
        self.sequence_items_read.load(Ordering::Relaxed)
    }

    fn chunk_values(&self) -> u64 {
        let arrays = self.arrays.iter().map(RowArray::chunk_values);
        arrays.fold(0, u64::saturating_add)
    }

    fn read(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Box<dyn Cells + '_>> {
        Ok(Box::new(self.read_batch(rows, cancel)?))
    }

    fn own_bytes(&self) -> u64 {
        self.weight
            .saturating_mul(2)
            .saturating_add(CACHED_NAMES_BYTES)
    }
}

impl Batch<'_> {
    /// Returns the stored bytes of the value in row `row` of the batch and column `column`; `None`
    /// for a column whose values are not stored in the rows of an array.
    ///
    /// # Errors
    /// `Corrupt` if the row is too short, or if the value is out of bounds.
    pub(crate) fn stored_value(&self, row: usize, column: usize) -> Result<Option<&[u8]>> {
        match &self.table.columns[column] {
            OpenColumn::Value(value)
            | OpenColumn::Masked(value, _)
            | OpenColumn::MissingIf(value, _) => self.stored_bytes(value, row).map(Some),
            OpenColumn::Bounded(value, bound) => {
                let bytes = self.stored_bytes(value, row)?;
                value.check_below(bytes, *bound).map(|()| Some(bytes))
            }
            _ => Ok(None),
        }
    }

    /// Returns the stored bytes of the value that is at `place` in row `row` of the batch.
    fn stored_bytes(&self, place: &ColumnLocation, row: usize) -> Result<&[u8]> {
        let array = self.own.get(place.array());
        let start = array.map_or(0, RowArray::row_bytes).saturating_mul(row);
        let rows = self.arrays.get(place.array());
        let row = rows.and_then(|rows| rows.get(start..));
        place.value_bytes(row.unwrap_or_default())
    }
}

impl Cells for Batch<'_> {
    fn write(&self, row: usize, column: usize, most: usize, out: &mut Vec<u8>) -> Result<CellKind> {
        let surroundings = &self.table.context;
        // Each cell needs a new context, because the context counts the bytes that pointers led to.
        let context = TextContext::new(&*surroundings.container, &*surroundings.paths, most);
        let cell = self.write_value(&self.table.columns[column], (column, row), &context, out);
        self.table
            .sequence_items_read
            .fetch_add(context.followed_elements(), Ordering::Relaxed);
        cell
    }
}

impl Batch<'_> {
    /// Appends the text of the value in row `row` of `column`.
    fn write_value(
        &self,
        values: &OpenColumn,
        (column, row): (usize, usize),
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<CellKind> {
        let start = out.len();
        let number = self.first.saturating_add(to_u64(row));
        match values {
            OpenColumn::Value(value) => value.write(self.stored_bytes(value, row)?, context, out),
            OpenColumn::Bounded(value, bound) => {
                let bytes = self.stored_bytes(value, row)?;
                value.check_below(bytes, *bound)?;
                value.write(bytes, context, out)
            }
            OpenColumn::Masked(value, mask) => {
                let elements = self.stored_bytes(mask, row)?.chunks(mask.element_bytes());
                let (masked, count) = elements.fold((0_u64, 0_u64), |(masked, count), element| {
                    let is_masked = element.iter().any(|&byte| byte != 0);
                    (masked + u64::from(is_masked), count + 1)
                });
                match masked {
                    0 => value.write(self.stored_bytes(value, row)?, context, out),
                    _ if masked == count => Ok(CellKind::Missing),
                    _ => {
                        let what = "a list with masked elements";
                        Err(Error::unsupported(what, None))
                    }
                }
            }
            OpenColumn::MissingIf(value, missing) => {
                let cell = value.write(self.stored_bytes(value, row)?, context, out)?;
                if !missing.is_missing_text(&out[start..]) {
                    return Ok(cell);
                }
                out.truncate(start);
                Ok(CellKind::Missing)
            }
            OpenColumn::Category(code, names) => {
                match u64::try_from(code.integer(self.stored_bytes(code, row)?)?) {
                    Ok(code) => self.table.write_category(
                        (column, code),
                        names,
                        (context, &self.cancel),
                        out,
                    ),
                    Err(_) => Ok(CellKind::Missing),
                }
            }
            OpenColumn::List(lists) => {
                lists.write(number, &self.cancel, context, out)?;
                Ok(CellKind::Text)
            }
            OpenColumn::Run(runs) => {
                append_formatted(
                    out,
                    format_args!("{}", runs.run_of_element(number, &self.cancel)?),
                );
                Ok(CellKind::Unquoted)
            }
            OpenColumn::Time(value, time) => {
                let count = stored_time(value, self.stored_bytes(value, row)?)?;
                Ok(count.map_or(CellKind::Missing, |count| {
                    time.write(count, out);
                    CellKind::Unquoted
                }))
            }
            OpenColumn::Text(texts) => Ok(if texts.write(to_usize(number)?, out) {
                CellKind::Text
            } else {
                CellKind::Missing
            }),
        }
    }
}

/// The arrays that are opened for the columns of a table. Columns in the same array share it.
struct ColumnArrays<'a> {
    engine: &'a Arc<Engine>,
    verify: &'a dyn Fn(NodeId) -> Result<()>,
    /// The nesting level for the category names that are opened next.
    level: usize,
    arrays: Vec<RowArray>,
    /// The index of each open array in `arrays`, by the address of its description.
    known: HashMap<*const Array, usize>,
}

impl ColumnArrays<'_> {
    fn open_column(&mut self, source: &ColumnSource) -> Result<OpenColumn> {
        Ok(match source {
            ColumnSource::Values(values) => OpenColumn::Value(self.locate(values)?),
            ColumnSource::Masked { values, missing } => {
                let value = self.locate(values)?;
                match missing {
                    MissingRule::MaskNotZero(mask) => {
                        OpenColumn::Masked(value, Box::new(self.locate(mask)?))
                    }
                    MissingRule::Number(number) => {
                        OpenColumn::MissingIf(value, MissingText::Number(*number))
                    }
                    MissingRule::Text(text) => {
                        OpenColumn::MissingIf(value, MissingText::Text(Arc::clone(text)))
                    }
                }
            }
            ColumnSource::Categories { codes, names } => OpenColumn::Category(
                self.locate(codes)?,
                Box::new(self.open_category_names(names)?),
            ),
            ColumnSource::Lists { ends, values } => {
                let ends = ends.iter().map(|ends| self.open_values(ends));
                OpenColumn::List(Box::new(ListColumn {
                    ends: ends.collect::<Result<_>>()?,
                    values: ArrayValues::new_json(self.open_rows(values)?, values)?,
                }))
            }
            ColumnSource::BoundedIndices { values, bound } => {
                OpenColumn::Bounded(self.locate(values)?, *bound)
            }
            ColumnSource::Runs { ends, .. } => {
                OpenColumn::Run(Box::new(Runs::new(self.open_values(ends)?)))
            }
            ColumnSource::Times { values, time } => OpenColumn::Time(self.locate(values)?, *time),
            ColumnSource::Texts(texts) => OpenColumn::Text(texts.clone()),
        })
    }

    fn open_category_names(&self, names: &ColumnSource) -> Result<CategoryNames> {
        let mut opening = ColumnArrays {
            level: self.level.saturating_add(1),
            arrays: Vec::new(),
            known: HashMap::new(),
            ..*self
        };
        let column = opening.open_column(names)?;
        Ok(CategoryNames {
            level: self.level,
            rows: names.rows(),
            arrays: opening.arrays,
            column,
        })
    }

    fn locate(&mut self, part: &RowField) -> Result<ColumnLocation> {
        let description = Arc::as_ptr(&part.array);
        let array = match self.known.get(&description) {
            Some(&array) => array,
            None => {
                self.arrays.push(self.open_rows(part)?);
                let array = self.arrays.len() - 1;
                self.known.insert(description, array);
                array
            }
        };
        ColumnLocation::new(array, part)
    }

    fn open_values(&self, part: &RowField) -> Result<ArrayValues> {
        ArrayValues::new(self.open_rows(part)?, part)
    }

    fn open_rows(&self, part: &RowField) -> Result<RowArray> {
        (self.verify)(part.node)?;
        let reader = Reader::new(self.engine, Arc::clone(&part.array))?;
        RowArray::new(reader, part)
    }
}

/// Returns the stored number of a time; `None` for a missing time (`NaT`).
fn stored_time(place: &ColumnLocation, bytes: &[u8]) -> Result<Option<i64>> {
    let count = i64::try_from(place.integer(bytes)?);
    Ok(count.ok().filter(|&count| count != i64::MIN))
}

impl MissingText {
    /// Returns whether a value whose text is `text` is missing.
    fn is_missing_text(&self, text: &[u8]) -> bool {
        match self {
            MissingText::Text(absent) => **absent == *text,
            MissingText::Number(absent) => {
                let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                let is_equal = |own: f64| own == *absent || own.is_nan() && absent.is_nan();
                number.is_some_and(is_equal)
            }
        }
    }
}

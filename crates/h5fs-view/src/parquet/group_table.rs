//! The fields of a group that is a table.
//!
//! | column | field |
//! |---|---|
//! | values | the fields of their datatype, as for the elements of an array |
//! | values that may be missing | the same, optional |
//! | floating-point numbers of a pandas frame | the same, optional: NaN is missing |
//! | categories | their names or numbers, as dictionary indices, optional |
//! | run numbers of a sparse matrix | `INT64`, computed from `indptr` |
//! | lists of numbers or texts | `LIST` |
//! | instants | `TIMESTAMP`, optional |
//! | durations, days, periods | `STRING`, as in the group's CSV, optional |
//! | others: other lists, texts of a Python pickle | `STRING`, as in the group's CSV, counted |

use std::collections::HashMap;
use std::sync::Arc;

use h5fs_conventions::stored_type as numbers;
use h5fs_reader::array::{CancelToken, Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{Array, Container, NodeId};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::csv::fields::{CellKind, Cells};
use crate::elements::raw::RawElements;
use crate::json::SharedPaths;
use crate::limits;
use crate::parquet::columns::FieldBuilder;
use crate::parquet::encoding::{ValueConversion, ValueEncoding, dictionary, push_text};
use crate::parquet::field::{Field, FieldContent, utf8_name};
use crate::parquet::leaf::{Dictionary, EncodedValues, Leaf, PageLayout};
use crate::parquet::ragged::IndexedLists;
use crate::parquet::runs::RunNumbers;
use crate::parquet::schema::{ColumnType, PhysicalType, TimestampUnit};
use crate::parquet::stored::{ArrayRows, MissingValueRule, PointerContext, ValueLocation};
use crate::parquet::table::{KeyValueMetadata, ParquetFields, ParquetTable};
use crate::parquet::texts::TextColumn;
use crate::table::column::{Column, ColumnSource, GroupTable, MissingRule, RowField};
use crate::table::rows::{TableContext, TableRows};
use crate::table::time::{PandasTime, TimeUnit};

/// Maximum length in bytes of the text of a duration, a day or a period.
const MAX_TIME_TEXT_BYTES: u64 = 64;

/// The file that contains the group, and the functions that access its other objects.
pub struct TableSource<'a> {
    /// Reads the elements of arrays.
    pub engine: Arc<Engine>,
    /// The objects of the file.
    pub container: Arc<dyn Container>,
    /// Finds the path of an object.
    pub paths: SharedPaths,
    /// A function that fails if an array is known to be unreadable.
    pub verify: &'a dyn Fn(NodeId) -> Result<()>,
    /// The token of the request that opens the table.
    pub cancel: CancelToken,
}

/// Returns the Parquet table of a group's table.
///
/// # Errors
/// Fails if an array is known to be unreadable; `Limit` for too many fields.
pub fn group_table(
    table: &GroupTable,
    around: &TableSource<'_>,
    description: KeyValueMetadata,
) -> Result<ParquetTable> {
    let mut opening = FieldArrays {
        table_file: around,
        pointers: Arc::new(PointerContext {
            container: Arc::clone(&around.container),
            paths: Arc::clone(&around.paths),
        }),
        readers: HashMap::new(),
        is_nan_missing: table.is_nan_missing,
        chunk_rows: None,
        columns_without_field: Vec::new(),
    };
    let rows = table.rows;
    let mut fields = Vec::with_capacity(table.columns.len());
    Error::check_limit(
        to_u64(table.columns.len()),
        limits::PARQUET_COLUMNS,
        "columns of a Parquet file",
    )?;
    let mut columns = &table.columns[..];
    while let [column, others @ ..] = columns {
        let whole = find_split_value(columns)?;
        let (name, source, others) = match &whole {
            Some((name, source, count)) => (name, source, &columns[*count..]),
            None => (&column.name, &column.source, others),
        };
        let name = utf8_name(name);
        if let Some(content) = opening.field_content(&name, source.clone())? {
            fields.push(Field { name, content });
        }
        columns = others;
    }
    Ok(ParquetTable {
        rows: 0..rows,
        chunk_rows: opening.chunk_rows.unwrap_or(1),
        fields: ParquetFields {
            fields,
            columns_without_field: opening.columns_without_field,
        },
        description,
    })
}

/// Finds the compound or array value at the beginning of `columns` that CSV splits into several
/// columns. Returns its name, its source and the number of its columns. Returns `None` if the first
/// column is not part of such a value. In Parquet, a compound is one group, and an array one list.
fn find_split_value(columns: &[Column]) -> Result<Option<(Vec<u8>, ColumnSource, usize)>> {
    let [first, ..] = columns else {
        return Ok(None);
    };
    let ColumnSource::Values(part) = &first.source else {
        return Ok(None);
    };
    if part.offset > 0 {
        return Ok(None);
    }
    let Some(whole) = RowField::from_array(part.node, &part.array)? else {
        return Ok(None);
    };
    if !matches!(
        whole.datatype.class,
        Class::Compound(_) | Class::Array { .. } | Class::Complex(_)
    ) {
        return Ok(None);
    }
    let mut parts = GroupTable::with_row_count(whole.rows());
    parts.push_values(b"", &whole, None)?;
    // Without an outer name, the names of a compound's parts begin with their own names.
    let inner = parts.columns.first().map_or(&b""[..], |part| &part.name);
    let name = first.name.strip_suffix(inner).unwrap_or_default();
    let dotted = if inner.starts_with(b"[") {
        Some(name)
    } else {
        name.strip_suffix(b".")
    };
    let Some(name) = dotted.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let prefix = first.name.len() - inner.len();
    let prefix = &first.name[..prefix];
    let are_parts = |(column, part): (&Column, &Column)| {
        let is_of =
            matches!(&column.source, ColumnSource::Values(own) if own.has_same_array(&whole));
        is_of && column.name.strip_prefix(prefix) == Some(&*part.name)
    };
    let count = parts.columns.len();
    let is_whole = count > 1 && count <= columns.len();
    let is_whole = is_whole && columns.iter().zip(&parts.columns).all(are_parts);
    Ok(is_whole.then(|| (name.to_vec(), ColumnSource::Values(whole), count)))
}

/// The open arrays of a group's table, which are shared by its fields.
struct FieldArrays<'a> {
    table_file: &'a TableSource<'a>,
    pointers: Arc<PointerContext>,
    readers: HashMap<*const Array, Arc<Reader>>,
    is_nan_missing: bool,
    /// The smallest number of rows in a chunk, of all arrays that were opened; `None` if none of
    /// them has chunks.
    chunk_rows: Option<u64>,
    columns_without_field: Vec<(String, &'static str)>,
}

impl FieldArrays<'_> {
    fn field_content(&mut self, name: &str, source: ColumnSource) -> Result<Option<FieldContent>> {
        let content = match &source {
            ColumnSource::Values(part) => match self.real_field(part)? {
                Some(reals) => Some(reals),
                None => return self.value_field(name, part),
            },
            ColumnSource::Masked { values, missing } => self.masked_field(values, missing)?,
            ColumnSource::Times {
                values,
                time: PandasTime::Instant { unit, is_utc },
            } => self.instant_field(values, *unit, *is_utc)?,
            ColumnSource::Times { .. } => {
                let body = PageLayout::Slots(MAX_TIME_TEXT_BYTES + 4);
                return self.text_field(source, body).map(Some);
            }
            ColumnSource::Categories { codes, names } => self.category_field(codes, names)?,
            ColumnSource::Lists { ends, values } => self.list_field(ends, values)?,
            ColumnSource::BoundedIndices { values, bound } => {
                self.bounded_integer_field(values, *bound)?
            }
            ColumnSource::Runs { ends, .. } => self.run_field(ends)?,
            ColumnSource::Texts(_) => None,
        };
        match content {
            Some(content) => Ok(Some(content)),
            None => self.text_field(source, PageLayout::Counted).map(Some),
        }
    }

    /// Returns an optional field for the floating-point numbers of a pandas frame, where NaN is
    /// missing; `None` for other values.
    fn real_field(&mut self, part: &RowField) -> Result<Option<FieldContent>> {
        if !self.is_nan_missing || !matches!(part.datatype.class, Class::Float(_)) {
            return Ok(None);
        }
        match (
            numbers::StoredType::new(&part.datatype),
            ValueEncoding::from_number_type(&part.datatype),
        ) {
            (Some(stored), Some(encoded)) => {
                self.optional_field(encoded, part, MissingValueRule::Number(stored, f64::NAN))
            }
            _ => Ok(None),
        }
    }

    fn value_field(&mut self, name: &str, part: &RowField) -> Result<Option<FieldContent>> {
        let mut builder = self.field_builder(part)?;
        let content = builder.field_content(name, &part.datatype, part.offset, &[])?;
        self.columns_without_field
            .append(&mut builder.members_without_field);
        self.columns_without_field.truncate(limits::PARQUET_SAID);
        Ok(content)
    }

    /// Returns an optional field for values that may be missing; `None` if Parquet does not have a
    /// type for the values, or if `missing` does not fit their datatype.
    fn masked_field(
        &mut self,
        values: &RowField,
        missing: &MissingRule,
    ) -> Result<Option<FieldContent>> {
        let Ok(encoded) = ValueEncoding::from_datatype(&values.datatype)? else {
            return Ok(None);
        };
        let absent = match missing {
            MissingRule::MaskNotZero(mask) => {
                MissingValueRule::MaskNotZero(self.value_location(mask)?)
            }
            MissingRule::Number(number) => match numbers::StoredType::new(&values.datatype) {
                Some(stored) if !matches!(values.datatype.class, Class::Enumeration { .. }) => {
                    MissingValueRule::Number(stored, *number)
                }
                _ => return Ok(None),
            },
            MissingRule::Text(text) => match &values.datatype.class {
                Class::String { padding, .. } => MissingValueRule::Text(*padding, Arc::clone(text)),
                _ => return Ok(None),
            },
        };
        self.optional_field(encoded, values, absent)
    }

    /// Returns an optional field for instants, in microseconds or nanoseconds since 1970. Returns
    /// `None` if the values are not numbers.
    fn instant_field(
        &mut self,
        values: &RowField,
        unit: TimeUnit,
        is_utc: bool,
    ) -> Result<Option<FieldContent>> {
        const MICROSECONDS: u32 = 1_000_000;
        let Some(stored) = numbers::StoredType::new(&values.datatype) else {
            return Ok(None);
        };
        let (counted, each) = match unit.per_second {
            0 => return Ok(None),
            each if each <= MICROSECONDS => (TimestampUnit::Microsecond, MICROSECONDS / each),
            each => (TimestampUnit::Nanosecond, 1000 * MICROSECONDS / each),
        };
        let encoded = ValueEncoding {
            kind: ColumnType::timestamp(counted, is_utc),
            body: PageLayout::Plain(8),
            encoding: ValueConversion::Ticks(stored, each.into()),
        };
        let absent = MissingValueRule::Integer(stored, i64::MIN.into());
        self.optional_field(encoded, values, absent)
    }

    /// Returns an optional field for categories, as dictionary indices; `None` if a dictionary
    /// cannot have all categories, or if the codes are not numbers.
    fn category_field(
        &mut self,
        codes: &RowField,
        names: &Arc<ColumnSource>,
    ) -> Result<Option<FieldContent>> {
        let Some(stored) = numbers::StoredType::new(&codes.datatype) else {
            return Ok(None);
        };
        let Some((kind, dictionary)) = self.name_dictionary(names)? else {
            return Ok(None);
        };
        let encoded = ValueEncoding {
            kind,
            encoding: ValueConversion::Index(stored, dictionary.index_bytes, dictionary.count),
            body: PageLayout::Indices(dictionary),
        };
        self.optional_field(encoded, codes, MissingValueRule::Negative(stored))
    }

    /// Returns a dictionary of the category names; `None` if there are no names, or too many, or if
    /// a name is missing.
    fn name_dictionary(
        &mut self,
        names: &Arc<ColumnSource>,
    ) -> Result<Option<(ColumnType, Dictionary)>> {
        let count = names.rows();
        if count == 0 || count > limits::PARQUET_DICTIONARY {
            return Ok(None);
        }
        if let ColumnSource::Values(part) = &**names
            && let Some(encoded) = ValueEncoding::from_number_type(&part.datatype)
        {
            return self.number_dictionary(encoded, part, count).map(Some);
        }
        let rows = self.open_column(ColumnSource::clone(names))?;
        let mut values = Vec::new();
        let mut bytes = 0;
        for number in 0..count {
            // The names are read one at a time, because a name may be long.
            let batch = rows.read_batch(number..number + 1, &self.table_file.cancel)?;
            let mut text = Vec::new();
            let cell = batch.write(0, 0, limits::PARQUET_TEXT, &mut text)?;
            let mut value = Vec::with_capacity(text.len() + 4);
            push_text(&text, &mut value)?;
            bytes += to_u64(value.len());
            if cell == CellKind::Missing || bytes > limits::PARQUET_DICTIONARY_BYTES {
                return Ok(None);
            }
            values.push(value);
        }
        Ok(Some((ColumnType::STRING, dictionary(&values))))
    }

    /// Returns a dictionary of `count` categories that are numbers, and the type of its values.
    fn number_dictionary(
        &mut self,
        encoded: ValueEncoding,
        part: &RowField,
        count: u64,
    ) -> Result<(ColumnType, Dictionary)> {
        let kind = encoded.kind;
        let mut builder = self.field_builder(part)?;
        let content = builder.encoded_leaf(encoded, &part.datatype, part.offset, &[], None)?;
        let mut written = EncodedValues::default();
        if let Some(FieldContent::Leaf(leaf)) = content {
            let values = &leaf.values;
            values.write(0..count, &CancelToken::default(), &mut written)?;
        }
        let width = to_usize(kind.physical.bytes())?;
        let values = written.bytes.chunks_exact(width).map(<[u8]>::to_vec);
        Ok((kind, dictionary(&values.collect::<Vec<_>>())))
    }

    /// Returns a field of integers, which must all be less than `bound`. Reading a greater integer
    /// fails.
    fn bounded_integer_field(
        &mut self,
        values: &RowField,
        bound: u64,
    ) -> Result<Option<FieldContent>> {
        let Some(stored) = numbers::StoredType::new(&values.datatype) else {
            return Ok(None);
        };
        let Some(encoded) = ValueEncoding::from_number_type(&values.datatype) else {
            return Ok(None);
        };
        let width = encoded.kind.physical.bytes();
        let encoded = ValueEncoding {
            encoding: ValueConversion::Index(stored, width, bound),
            ..encoded
        };
        let (datatype, offset) = (&values.datatype, values.offset);
        let mut builder = self.field_builder(values)?;
        builder.encoded_leaf(encoded, datatype, offset, &[], None)
    }

    /// Returns a field with the number of the run (row or column of a sparse matrix) that contains
    /// each row of the table.
    fn run_field(&mut self, ends: &RowField) -> Result<Option<FieldContent>> {
        let Some(stored) = numbers::StoredType::new(&ends.datatype) else {
            return Ok(None);
        };
        let values = RunNumbers {
            location: self.value_location(ends)?,
            stored,
            count: ends.rows().saturating_sub(1),
        };
        Ok(Some(FieldContent::Leaf(Box::new(Leaf {
            kind: ColumnType::plain(PhysicalType::Int64),
            body: PageLayout::Plain(8),
            is_optional: false,
            values: Box::new(values),
            variable_lists: None,
        }))))
    }

    /// Returns a field for lists of numbers or texts; `None` for other lists, and for nested lists.
    fn list_field(&mut self, ends: &[RowField], values: &RowField) -> Result<Option<FieldContent>> {
        let ([ends], Some(encoded)) = (ends, ValueEncoding::from_item_type(&values.datatype)?)
        else {
            return Ok(None);
        };
        let Some(stored) = numbers::StoredType::new(&ends.datatype) else {
            return Ok(None);
        };
        let lists = IndexedLists {
            location: self.value_location(ends)?,
            stored,
            elements: values.rows(),
        };
        let mut builder = self.field_builder(values)?;
        let (datatype, offset) = (&values.datatype, values.offset);
        let content = builder.encoded_leaf(encoded, datatype, offset, &[], None)?;
        Ok(content.map(|content| match content {
            FieldContent::Leaf(leaf) => FieldContent::VariableLengthList(Box::new(Leaf {
                body: PageLayout::Counted,
                variable_lists: Some(Box::new(lists)),
                ..*leaf
            })),
            content => content,
        }))
    }

    fn optional_field(
        &mut self,
        encoded: ValueEncoding,
        values: &RowField,
        absent: MissingValueRule,
    ) -> Result<Option<FieldContent>> {
        let (datatype, offset) = (&values.datatype, values.offset);
        let mut builder = self.field_builder(values)?;
        builder.encoded_leaf(encoded, datatype, offset, &[], Some(absent))
    }

    /// Returns a field with the texts that the column has in the group's CSV.
    fn text_field(&mut self, source: ColumnSource, body: PageLayout) -> Result<FieldContent> {
        let rows = self.open_column(source)?;
        Ok(FieldContent::Leaf(Box::new(Leaf {
            kind: ColumnType::STRING,
            body,
            is_optional: true,
            values: Box::new(TextColumn { rows }),
            variable_lists: None,
        })))
    }

    /// Opens a table that has only this column of the group's table.
    fn open_column(&self, source: ColumnSource) -> Result<TableRows> {
        let mut table = GroupTable::with_row_count(source.rows());
        table.push(Vec::new(), source)?;
        let surroundings = TableContext {
            engine: Arc::clone(&self.table_file.engine),
            container: Arc::clone(&self.table_file.container),
            paths: Arc::clone(&self.table_file.paths),
        };
        TableRows::open(table, surroundings, self.table_file.verify)
    }

    fn field_builder(&mut self, part: &RowField) -> Result<FieldBuilder> {
        Ok(FieldBuilder::new(
            self.open_rows(part)?,
            Arc::clone(&self.pointers),
        ))
    }

    fn value_location(&mut self, part: &RowField) -> Result<ValueLocation> {
        Ok(ValueLocation {
            rows: self.open_rows(part)?,
            offset: to_usize(part.offset)?,
            size: to_usize(part.datatype.size.into())?,
        })
    }

    /// Opens the rows of an array for a single column, so that the array's prefetching follows this
    /// column alone.
    fn open_rows(&mut self, part: &RowField) -> Result<ArrayRows> {
        let reader = self.open_reader(part)?;
        Ok(ArrayRows {
            content: Arc::new(RawElements::new(reader)),
            row_bytes: part.row_bytes()?,
        })
    }

    fn open_reader(&mut self, part: &RowField) -> Result<Arc<Reader>> {
        let description = Arc::as_ptr(&part.array);
        if let Some(reader) = self.readers.get(&description) {
            return Ok(Arc::clone(reader));
        }
        (self.table_file.verify)(part.node)?;
        let reader = Reader::new(&self.table_file.engine, Arc::clone(&part.array))?;
        let reader = Arc::new(reader);
        let chunk = part.array.chunk_shape.as_deref();
        if let Some(&rows) = chunk.and_then(|chunk| chunk.first()) {
            self.chunk_rows = Some(self.chunk_rows.map_or(rows, |unit| unit.min(rows)));
        }
        self.readers.insert(description, Arc::clone(&reader));
        Ok(reader)
    }
}

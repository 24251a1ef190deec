//! The fields of a netCDF variable with its coordinates. There is one row for each value, as in the
//! CSV table of `cf::table`.
//!
//! | values | field |
//! |---|---|
//! | integers without decoding | the field of their datatype |
//! | floating-point numbers without decoding | the same, optional: NaN is missing, as in CSV |
//! | scaled numbers, and numbers with missing values | `FLOAT` or `DOUBLE`, optional |
//! | integers that are scaled by an integer | the integer type of `scale_factor` |
//! | times | `TIMESTAMP`, optional; `STRING` in calendars other than the standard one |
//! | texts | `STRING` |
//!
//! The values of a short coordinate are in a dictionary. The index of a row's value follows from
//! the row number. The bounds of the coordinate in a group are therefore known without reading the
//! data.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::cf::column::{DecodedColumn, RowNumberColumn};
use crate::cf::decoding::{DecodedKind, Decoding};
use crate::cf::row_mapping::RowMapping;
use crate::cf::table::{LongColumn, LongTable};
use crate::limits;
use crate::parquet::encoding::{ValueConversion, ValueEncoding, dictionary};
use crate::parquet::field::{Field, FieldContent, utf8_name};
use crate::parquet::leaf::{BATCH_BYTES, EncodedValues, Leaf, LeafValues, PageLayout, ValueOrigin};
use crate::parquet::schema::{ColumnType, LogicalType, PhysicalType, TimestampUnit};
use crate::parquet::stored::PointerContext;
use crate::parquet::table::{KeyValueMetadata, ParquetFields, ParquetTable};

/// Amount of element data to read at a time, in bytes.
const BATCH: u64 = 256 << 10;

/// Returns the Parquet table of a netCDF variable's long table. `unit` is the number of values in a
/// chunk of the variable.
///
/// # Errors
/// Fails if a short coordinate cannot be read.
pub fn long_table(
    long: LongTable,
    unit: u64,
    pointers: PointerContext,
    description: KeyValueMetadata,
) -> Result<ParquetTable> {
    let pointers = Arc::new(pointers);
    let mut fields = Vec::with_capacity(long.columns.len());
    let mut absent = Vec::new();
    for column in long.columns {
        let (name, leaf) = match column {
            LongColumn::RowNumbers(numbers) => {
                (utf8_name(&numbers.name[0]), Ok(row_number_leaf(numbers)))
            }
            LongColumn::Decoded(column) => {
                (utf8_name(column.name()), column_leaf(*column, &pointers)?)
            }
        };
        match leaf {
            Ok(leaf) => {
                let content = FieldContent::Leaf(Box::new(leaf));
                fields.push(Field { name, content });
            }
            Err(reason) => absent.push((name, reason)),
        }
    }
    Ok(ParquetTable {
        rows: 0..long.rows,
        chunk_rows: unit,
        fields: ParquetFields {
            fields,
            columns_without_field: absent,
        },
        description,
    })
}

/// Returns the column with the row numbers in a dimension.
fn row_number_leaf(numbers: RowNumberColumn) -> Leaf {
    Leaf {
        kind: ColumnType::plain(PhysicalType::Int64),
        body: PageLayout::Plain(8),
        is_optional: false,
        values: Box::new(RowNumberValues(numbers.row_mapping)),
        variable_lists: None,
    }
}

/// Returns the column of decoded elements. Returns the reason if Parquet does not have a type for
/// them.
fn column_leaf(
    column: DecodedColumn,
    pointers: &Arc<PointerContext>,
) -> Result<std::result::Result<Leaf, &'static str>> {
    let (elements, decoding) = column.elements();
    let encoded = match decoding.decoded_kind() {
        DecodedKind::Stored => match ValueEncoding::from_datatype(&elements.datatype)? {
            Ok(encoded) => encoded,
            Err(reason) => return Ok(Err(reason)),
        },
        DecodedKind::Number(size) => ValueEncoding {
            kind: ColumnType::plain(if size == 4 {
                PhysicalType::Float
            } else {
                PhysicalType::Double
            }),
            body: PageLayout::Plain(size.into()),
            encoding: ValueConversion::Copy,
        },
        DecodedKind::Integer(integers) => {
            match ValueEncoding::from_number_type(&integers.datatype()) {
                Some(encoded) => encoded,
                None => return Ok(Err("integers of more than 64 bits")),
            }
        }
        DecodedKind::Instant { is_nanosecond } => {
            let unit = if is_nanosecond {
                TimestampUnit::Nanosecond
            } else {
                TimestampUnit::Microsecond
            };
            ValueEncoding {
                kind: ColumnType::timestamp(unit, false),
                body: PageLayout::Plain(8),
                encoding: ValueConversion::Copy,
            }
        }
        DecodedKind::Time(bytes) => text_encoding(PageLayout::Slots(to_u64(bytes) + 4)),
        DecodedKind::Boolean => ValueEncoding {
            kind: ColumnType::plain(PhysicalType::Boolean),
            body: PageLayout::Bits,
            encoding: ValueConversion::Copy,
        },
        DecodedKind::Text => text_encoding(match elements.datatype.class {
            Class::String { .. } => PageLayout::Slots(u64::from(elements.datatype.size) + 4),
            Class::Ucs4(_) => PageLayout::Slots(u64::from(elements.datatype.size) + 4),
            _ => PageLayout::Counted,
        }),
    };
    let is_stored = matches!(decoding.decoded_kind(), DecodedKind::Stored);
    let has_encoding = is_stored || matches!(decoding.decoded_kind(), DecodedKind::Integer(_));
    let may_miss = matches!(
        decoding.decoded_kind(),
        DecodedKind::Number(_) | DecodedKind::Instant { .. } | DecodedKind::Time(_)
    );
    let (kind, body) = (encoded.kind, encoded.body);
    let may_miss = may_miss || kind.is_real();
    let is_shared = column.row_mapping().is_some();
    let count = column.element_count();
    let values = DecodedValues {
        column,
        kind,
        encoding: has_encoding.then_some(encoded.encoding),
        is_stored,
        is_text: kind.logical == LogicalType::String && !is_stored,
        pointers: Arc::clone(pointers),
    };
    if is_shared
        && count <= limits::PARQUET_DICTIONARY
        && !matches!(body, PageLayout::Bits)
        && let Some(leaf) = dictionary_leaf(&values, &body, count)?
    {
        return Ok(Ok(leaf));
    }
    Ok(Ok(Leaf {
        kind,
        body,
        // A coordinate may be shorter than the variable's dimension.
        is_optional: may_miss || is_shared,
        values: Box::new(values),
        variable_lists: None,
    }))
}

fn text_encoding(body: PageLayout) -> ValueEncoding {
    ValueEncoding {
        kind: ColumnType::STRING,
        body,
        encoding: ValueConversion::Copy,
    }
}

/// Returns a column with a dictionary of the coordinate's values; `None` if a row may have no
/// value, if a value is missing, or if the values are too long for a dictionary. `body` is the
/// layout that the values would have without a dictionary.
fn dictionary_leaf(values: &DecodedValues, body: &PageLayout, count: u64) -> Result<Option<Leaf>> {
    let kind = values.kind;
    let Some(place) = values.column.row_mapping() else {
        return Ok(None);
    };
    if count == 0 || place.upper_bound() >= count {
        return Ok(None);
    }
    let size = u64::from(values.column.elements().0.datatype.size);
    if count.saturating_mul(size) > limits::PARQUET_DICTIONARY_BYTES {
        return Ok(None);
    }
    let Some(mut all) = values.coordinate_values(count)? else {
        return Ok(None);
    };
    if let PageLayout::Indices(own) = body {
        // The values are dictionary indices themselves, in the dictionary of all one-byte values.
        all = all
            .iter()
            .map(|index| own.value(index, kind))
            .collect::<Result<_>>()?;
    }
    let dictionary = dictionary(&all);
    let indices = CoordinateIndices {
        row_mapping: place.clone(),
        index_size: to_usize(dictionary.index_bytes)?,
        values: all,
        kind,
    };
    Ok(Some(Leaf {
        kind,
        body: PageLayout::Indices(dictionary),
        is_optional: false,
        values: Box::new(indices),
        variable_lists: None,
    }))
}

/// The decoded elements of a variable or a coordinate, as values of a Parquet column.
struct DecodedValues {
    column: DecodedColumn,
    kind: ColumnType,
    /// The encoding of stored values, or of decoded integers; `None` for values that are decoded to
    /// another type.
    encoding: Option<ValueConversion>,
    is_stored: bool,
    is_text: bool,
    pointers: Arc<PointerContext>,
}

impl DecodedValues {
    /// Appends the Parquet value of an element. Returns false if the element is missing.
    fn push_element(&self, element: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let PointerContext { container, paths } = &*self.pointers;
        let most = out.len().saturating_add(limits::PARQUET_TEXT);
        let context = TextContext::new(&**container, &**paths, most);
        let decoding: &Decoding = self.column.elements().1;
        match &self.encoding {
            Some(encoding) if self.is_stored => {
                let start = out.len();
                encoding.push_value(element, &context, out)?;
                let is_there = !self.kind.is_nan(out.get(start..).unwrap_or_default());
                if !is_there {
                    out.truncate(start);
                }
                return Ok(is_there);
            }
            Some(encoding) => {
                let mut integer = Vec::new();
                let is_there = decoding.write_value(element, &context, &mut integer)?;
                encoding.push_value(&integer, &context, out)?;
                return Ok(is_there);
            }
            None => {}
        }
        if !self.is_text {
            return decoding.write_value(element, &context, out);
        }
        let mut text = Vec::new();
        let is_there = decoding.write_value(element, &context, &mut text)?;
        if is_there {
            super::encoding::push_text(&text, out)?;
        }
        Ok(is_there)
    }

    /// Appends the values of `rows` until `out` has `enough` bytes. Returns the number of the first
    /// row that was not written.
    fn write_until(
        &self,
        enough: usize,
        rows: Range<u64>,
        cancel: &CancelToken,
        out: &mut EncodedValues,
    ) -> Result<u64> {
        let at_a_time = (BATCH / self.row_bytes().max(1)).max(1);
        let mut next = rows.start;
        while next < rows.end && out.bytes.len() < enough {
            let first = next;
            let end = rows.end.min(next.saturating_add(at_a_time));
            self.column.visit_rows(next..end, cancel, &mut |element| {
                if out.bytes.len() >= enough {
                    return Ok(());
                }
                let is_there = match element {
                    Some(element) => self.push_element(element, &mut out.bytes)?,
                    None => false,
                };
                out.present.push(is_there);
                next += 1;
                Ok(())
            })?;
            cancel.next_batch(first, next)?;
        }
        Ok(next)
    }

    /// Returns the values of all elements of a coordinate, each in PLAIN encoding. Returns `None`
    /// if a value is missing, or if the values are too long for a dictionary.
    fn coordinate_values(&self, count: u64) -> Result<Option<Vec<Vec<u8>>>> {
        let (elements, _) = self.column.elements();
        let size = to_usize(elements.datatype.size.into())?.max(1);
        let bytes = elements
            .content
            .read_at(0, to_usize(count)?.saturating_mul(size))?;
        let mut all = Vec::with_capacity(to_usize(count)?);
        let mut together = 0;
        for element in bytes.chunks_exact(size) {
            let mut value = Vec::new();
            let is_there = self.push_element(element, &mut value)?;
            together += to_u64(value.len());
            if !is_there || together > limits::PARQUET_DICTIONARY_BYTES {
                return Ok(None);
            }
            all.push(value);
        }
        if to_u64(all.len()) != count {
            return Err(Error::corrupt("array: fewer elements than its shape", None));
        }
        Ok(Some(all))
    }
}

impl LeafValues for DecodedValues {
    fn row_bytes(&self) -> u64 {
        /// Estimated memory in bytes per row, in addition to the stored element, of the entries
        /// that find an element shared by several rows.
        const SHARED_ROW_BYTES: u64 = 32;
        let shared = if self.column.row_mapping().is_some() {
            SHARED_ROW_BYTES
        } else {
            0
        };
        u64::from(self.column.elements().0.datatype.size) + shared
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

    fn origin(&self) -> Option<ValueOrigin> {
        let content = &*self.column.elements().0.content;
        Some(ValueOrigin::from_view(content, true))
    }

    fn own_bytes(&self) -> u64 {
        self.column.elements().0.datatype.weight()
    }
}

/// The dictionary indices of a coordinate's values, computed from the row numbers.
struct CoordinateIndices {
    row_mapping: RowMapping,
    /// Size of one dictionary index in bytes: 1 or 2.
    index_size: usize,
    /// The values of the dictionary, each in PLAIN encoding.
    values: Vec<Vec<u8>>,
    kind: ColumnType,
}

impl LeafValues for CoordinateIndices {
    fn row_bytes(&self) -> u64 {
        to_u64(self.index_size)
    }

    fn write(&self, rows: Range<u64>, _: &CancelToken, out: &mut EncodedValues) -> Result<()> {
        for row in rows {
            let index = self.row_mapping.element_of_row(row).to_le_bytes();
            out.bytes.extend_from_slice(&index[..self.index_size]);
        }
        Ok(())
    }

    fn bounds(&self, rows: Range<u64>) -> Option<[Vec<u8>; 2]> {
        let last = rows.end.checked_sub(1).filter(|last| *last >= rows.start)?;
        let values = if self.row_mapping.is_ascending() {
            let [first, last] = [rows.start, last].map(|row| self.row_mapping.element_of_row(row));
            self.values
                .get(usize::try_from(first).ok()?..=usize::try_from(last).ok()?)?
        } else {
            &self.values
        };
        bounds(values, self.kind)
    }

    fn own_bytes(&self) -> u64 {
        let values = self.values.iter().map(|value| to_u64(value.capacity()));
        let values = values.fold(0, u64::saturating_add);
        values.saturating_add(to_u64(self.values.capacity() * size_of::<Vec<u8>>()))
    }
}

/// Returns the minimum and the maximum of `values`, which must be signed integers or floating-point
/// numbers. Returns `None` for other values, if a value is NaN or an integer that `f64` cannot
/// represent, and if a bound is a floating-point zero.
fn bounds(values: &[Vec<u8>], kind: ColumnType) -> Option<[Vec<u8>; 2]> {
    let is_plain = !matches!(
        kind.logical,
        LogicalType::String
            | LogicalType::Integer {
                is_signed: false,
                ..
            }
    );
    if !is_plain {
        return None;
    }
    let number = |value: &Vec<u8>| -> Option<f64> {
        Some(match kind.physical {
            PhysicalType::Int32 => i32::from_le_bytes(value.as_slice().try_into().ok()?).into(),
            PhysicalType::Int64 => {
                let number = i64::from_le_bytes(value.as_slice().try_into().ok()?);
                // A bound must be exact.
                let real = number as f64;
                (real as i64 == number).then_some(real)?
            }
            PhysicalType::Float => f32::from_le_bytes(value.as_slice().try_into().ok()?).into(),
            PhysicalType::Double => f64::from_le_bytes(value.as_slice().try_into().ok()?),
            _ => return None,
        })
    };
    let mut ends: Option<[(f64, &Vec<u8>); 2]> = None;
    for value in values {
        let own = number(value).filter(|number| !number.is_nan())?;
        let [least, greatest] = ends.unwrap_or([(own, value); 2]);
        ends = Some([
            if own < least.0 { (own, value) } else { least },
            if own > greatest.0 {
                (own, value)
            } else {
                greatest
            },
        ]);
    }
    // Positive and negative zero are equal, but only one of them is a valid bound.
    let is_zero = |(number, _): &(f64, &Vec<u8>)| *number == 0.0;
    let is_real = matches!(kind.physical, PhysicalType::Float | PhysicalType::Double);
    let ends = ends.filter(|ends| !(is_real && ends.iter().any(is_zero)));
    ends.map(|ends| ends.map(|(_, value)| value.clone()))
}

/// A column with the position of each row along one dimension.
struct RowNumberValues(RowMapping);

impl LeafValues for RowNumberValues {
    fn row_bytes(&self) -> u64 {
        8
    }

    fn write(&self, rows: Range<u64>, _: &CancelToken, out: &mut EncodedValues) -> Result<()> {
        for row in rows {
            out.bytes.extend(self.0.element_of_row(row).to_le_bytes());
        }
        Ok(())
    }

    fn bounds(&self, rows: Range<u64>) -> Option<[Vec<u8>; 2]> {
        let last = rows.end.checked_sub(1).filter(|last| *last >= rows.start)?;
        let ends = [rows.start, last].map(|row| self.0.element_of_row(row).to_le_bytes().to_vec());
        self.0.is_ascending().then_some(ends)
    }

    fn own_bytes(&self) -> u64 {
        0
    }
}

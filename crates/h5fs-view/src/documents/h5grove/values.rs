//! Values as JSON and as CSV, in the form of h5grove: orjson writes the JSON, and `numpy.savetxt`
//! the CSV.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{Class, ReferenceKind};
use h5fs_reader::model::number::{
    FloatValue, Integer, append_formatted, bit_field, decode_integer, float_value,
};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::text::write_json_text;
use h5fs_reader::model::walk::{ElementWalker, TextContext, Value, ValueSink};
use h5fs_reader::model::{Container, Datatype, Reference};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::documents::h5grove::byte_order::is_big_endian;
use crate::elements::{Elements, formatting_cost};
use crate::json::{NestedLists, SharedPaths};
use crate::limits;
use crate::text_files::counted_text::TextUnits;

/// A writer of values as JSON. A compound is a list, and so is a complex number.
pub struct GroveWriter {
    walk: ElementWalker,
    /// Whether numbers of single precision have the digits of double precision. Python writes them
    /// so, if orjson does not write the numbers of an array itself.
    has_wide_floats: bool,
}

impl GroveWriter {
    /// Creates a writer for elements of `datatype`. `is_array` says whether they are in an array,
    /// or a single value.
    ///
    /// # Errors
    /// `Limit` for a datatype that is nested too deeply.
    pub fn new(datatype: &Datatype, is_array: bool) -> Result<Self> {
        let is_python_value =
            matches!(datatype.class, Class::Compound(_) | Class::Complex(_)) || is_half(datatype);
        Ok(GroveWriter {
            walk: ElementWalker::new(datatype, &|_| String::new())?,
            has_wide_floats: is_array && is_big_endian(datatype)
                || is_python_value && !(is_array && is_half(datatype)),
        })
    }

    /// Appends elements in C order, in lists nested like `dims`.
    ///
    /// # Errors
    /// Fails if an element cannot be read. `Limit` if the text becomes too long.
    pub fn write_list(
        &self,
        elements: &[u8],
        dims: &[u64],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut sink = GroveSink {
            has_wide_floats: self.has_wide_floats,
            context,
            out,
        };
        self.walk.walk_list(elements, dims, &mut sink)
    }
}

fn is_half(datatype: &Datatype) -> bool {
    matches!(datatype.class, Class::Float(_)) && datatype.size < 4
}

struct GroveSink<'a> {
    has_wide_floats: bool,
    context: &'a TextContext<'a>,
    out: &'a mut Vec<u8>,
}

impl ValueSink for GroveSink<'_> {
    fn context(&self) -> &TextContext<'_> {
        self.context
    }

    fn length(&self) -> usize {
        self.out.len()
    }

    fn push_text(&mut self, text: &str) {
        self.out.extend_from_slice(match text {
            "{" => b"[",
            "}" => b"]",
            ", " => b",",
            text => text.as_bytes(),
        });
    }

    fn write_value(&mut self, value: Value<'_>, stored: &[u8]) -> Result<bool> {
        match value {
            Value::Integer(integer) => integer.write(self.out),
            Value::Real(real) => self.write_real(real),
            Value::Bits(bits, _) | Value::Time(bits, _) => Integer::Unsigned(bits).write(self.out),
            Value::Bool(set) => append_formatted(self.out, format_args!("{set}")),
            Value::Text(text) | Value::DateTime(text) => self.write_text(text)?,
            // h5py has an empty text in its place.
            Value::Null => self.out.extend_from_slice(b"\"\""),
            Value::Reference(kind, target) => self.write_reference(kind, &target),
            Value::Bytes => self.write_text(stored)?,
            Value::EnumMember {
                name,
                is_boolean: true,
            } => append_formatted(self.out, format_args!("{}", name != Some(b"FALSE"))),
            Value::EnumMember { .. } | Value::ByteStrings(_) | Value::Complex(_) => {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl GroveSink<'_> {
    fn write_text(&mut self, text: &[u8]) -> Result<()> {
        self.check_length(text.len())?;
        write_json_text(text, self.out);
        Ok(())
    }

    fn write_real(&mut self, real: FloatValue) {
        let number = match real {
            FloatValue::Single(value) if self.has_wide_floats => FloatValue::Double(value.into()),
            FloatValue::FewerBitsThanDouble { value, .. } if !self.has_wide_floats =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "it has at most 24 bits")]
                FloatValue::Single(value as f32)
            }
            FloatValue::FewerBitsThanDouble { value, .. }
            | FloatValue::MoreBitsThanDouble { value, .. } => FloatValue::Double(value),
            real => real,
        };
        let is_finite = number.as_f64().is_some_and(f64::is_finite);
        if is_finite {
            number.write_text(self.out);
        } else {
            self.out.extend_from_slice(b"null");
        }
    }

    /// Appends the text of h5py's reference objects, which do not name their target.
    fn write_reference(&mut self, kind: ReferenceKind, target: &Reference) {
        let is_region = kind == ReferenceKind::Region || matches!(target, Reference::Region(_));
        let kind = if is_region { "region" } else { "object" };
        let null = if *target == Reference::Null {
            " (null)"
        } else {
            ""
        };
        append_formatted(self.out, format_args!("\"<HDF5 {kind} reference{null}>\""));
    }
}

/// The JSON text of an array, without blanks.
pub struct GroveJson {
    elements: Elements,
    writer: GroveWriter,
    lists: NestedLists,
    container: Arc<dyn Container>,
    paths: SharedPaths,
}

impl GroveJson {
    /// Creates the JSON text of `elements`. `container` follows their pointers.
    ///
    /// # Errors
    /// `Limit` for elements that are too long or too many.
    pub fn new(
        elements: Elements,
        container: Arc<dyn Container>,
        paths: SharedPaths,
    ) -> Result<Self> {
        let size = elements.datatype.size.into();
        Error::check_limit(
            size,
            limits::TEXT_ELEMENT_BYTES,
            "size of an element as JSON",
        )?;
        let dims = elements.dims.as_deref().unwrap_or_default();
        Ok(GroveJson {
            writer: GroveWriter::new(&elements.datatype, !dims.is_empty())?,
            lists: NestedLists::new(dims)?,
            container,
            paths,
            elements,
        })
    }

    fn write_leaf(&self, number: u64, leaf: &[u8], out: &mut Vec<u8>) {
        let begins = self.lists.bracket_count(number);
        if number > 0 {
            out.push(b',');
        }
        out.extend(std::iter::repeat_n(b'[', begins));
        out.extend_from_slice(leaf);
        let ends = self.lists.bracket_count(number + 1);
        out.extend(std::iter::repeat_n(b']', ends));
    }
}

/// A unit of the text is a leaf of the nested lists: an element, or an empty list.
impl TextUnits for GroveJson {
    fn count(&self) -> u64 {
        self.lists.count
    }

    fn value_count(&self) -> u64 {
        let of_one = formatting_cost(&self.elements.datatype);
        let chunks = self.elements.content.chunk_values();
        of_one
            .saturating_mul(self.lists.count)
            .saturating_add(chunks)
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let empty: &[u8] = match self.elements.dims {
            Some(_) if self.lists.of_elements => {
                let size = to_usize(self.elements.datatype.size.into())?;
                let count = self.elements.batch_elements().min(units.end - units.start);
                let bytes = self.elements.read(units.start, count, cancel)?;
                let mut leaf = Vec::new();
                for (number, element) in (units.start..).zip(bytes.chunks_exact(size.max(1))) {
                    if number > units.start && out.len() >= enough {
                        return Ok(number);
                    }
                    leaf.clear();
                    let most = to_usize(limits::TEXT_ELEMENT_BYTES)?;
                    let context = TextContext::new(&*self.container, &*self.paths, most);
                    self.writer.write_list(element, &[], &context, &mut leaf)?;
                    self.write_leaf(number, &leaf, out);
                }
                return Ok(units.start + count);
            }
            Some(_) => b"[]",
            None => b"null",
        };
        for number in units.clone() {
            if number > units.start && out.len() >= enough {
                return Ok(number);
            }
            self.write_leaf(number, empty, out);
        }
        Ok(units.end)
    }

    fn own_bytes(&self) -> u64 {
        self.elements.estimate_memory(2)
    }
}

/// The elements of an array of one or two dimensions as CSV, with 18 digits after the point.
pub struct GroveCsv {
    elements: Elements,
    row_length: u64,
    rows: u64,
}

impl GroveCsv {
    /// Creates the text of `elements`. Returns `None` if NumPy does not write them as CSV.
    ///
    /// # Errors
    /// `Limit` for an array that is longer than any file can be.
    pub fn new(elements: Elements) -> Result<Option<Self>> {
        let (rows, row_length) = match elements.dims.as_deref() {
            Some([rows]) => (*rows, 1),
            Some([rows, columns]) => (*rows, *columns),
            _ => return Ok(None),
        };
        product(&[rows, row_length])?;
        // A row is written as a whole.
        let most = to_u64(limits::CSV_COLUMNS);
        Error::check_limit(row_length, most, "columns of a csv")?;
        Ok(Some(GroveCsv {
            elements,
            row_length,
            rows,
        }))
    }
}

/// A unit of the text is a row.
impl TextUnits for GroveCsv {
    fn count(&self) -> u64 {
        self.rows
    }

    fn value_count(&self) -> u64 {
        let chunks = self.elements.content.chunk_values();
        self.rows
            .saturating_mul(self.row_length.max(1))
            .saturating_add(chunks)
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        for row in units.clone() {
            if row > units.start && out.len() >= enough {
                return Ok(row);
            }
            let (mut at, end) = (row * self.row_length, (row + 1) * self.row_length);
            let first = at;
            while at < end {
                let count = self.elements.batch_elements().min(end - at);
                let values = number_values(&self.elements, at, count, cancel)?;
                for value in values {
                    if at > first {
                        out.push(b',');
                    }
                    write_exponent(value.as_f64(), out);
                    at += 1;
                }
            }
            out.push(b'\n');
        }
        Ok(units.end)
    }
}

/// A number of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Real(f64),
    /// An integer, a boolean or a bit field of at most 127 bits.
    Whole(i128),
}

impl Number {
    /// Returns the nearest double.
    pub(super) fn as_f64(self) -> f64 {
        match self {
            Number::Real(value) => value,
            #[expect(
                clippy::cast_precision_loss,
                reason = "NumPy also converts to a double"
            )]
            Number::Whole(value) => value as f64,
        }
    }
}

/// Reads numbers: integers, floating-point numbers and booleans.
pub(super) fn number_values(
    elements: &Elements,
    first: u64,
    count: u64,
    cancel: &CancelToken,
) -> Result<Vec<Number>> {
    let size = to_usize(elements.datatype.size.into())?.max(1);
    let bytes = elements.read(first, count, cancel)?;
    let decode = |element: &[u8]| decode_number(&elements.datatype, element);
    let values: Option<Vec<Number>> = bytes.chunks_exact(size).map(decode).collect();
    values.ok_or_else(|| Error::unsupported("a value that is not a number", None))
}

/// Decodes a number. Returns `None` for any other element.
pub(super) fn decode_number(datatype: &Datatype, element: &[u8]) -> Option<Number> {
    match &datatype.class {
        _ if datatype.is_boolean() => Some(Number::Whole(i128::from(element != [0]))),
        Class::Bool => Some(Number::Whole(i128::from(element != [0]))),
        &Class::Integer {
            order,
            signed,
            bits,
        } => match decode_integer(element, order, signed, bits)? {
            Integer::Unsigned(value) => i128::try_from(value).ok().map(Number::Whole),
            Integer::Signed(value) => Some(Number::Whole(value)),
        },
        &Class::Bitfield { order, bits } => {
            let value = bit_field(element, order, bits)?;
            i128::try_from(value).ok().map(Number::Whole)
        }
        Class::Float(format) => float_value(element, format)?.as_f64().map(Number::Real),
        Class::Enumeration { base, .. } => decode_number(base, element),
        _ => None,
    }
}

/// Appends a number like the format `%.18e` of Python.
fn write_exponent(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"nan");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else {
        let text = format!("{value:.18e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        append_formatted(
            out,
            format_args!("{digits}e{sign}{:02}", exponent.unsigned_abs()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::text::InMemoryContent;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::{Heap, int, member, type_of};

    fn json(datatype: &Datatype, dims: Option<&[u64]>, bytes: &[u8]) -> String {
        let elements = Elements {
            datatype: datatype.clone(),
            dims: dims.map(<[u64]>::to_vec),
            content: Box::new(InMemoryContent::new(bytes.to_vec())),
        };
        let text =
            GroveJson::new(elements, Arc::new(Heap(Vec::new())), Arc::new(|_| Ok(None))).unwrap();
        let (mut at, mut out) = (0, Vec::new());
        while at < text.count() {
            at = text
                .write(at..text.count(), 0, &CancelToken::default(), &mut out)
                .unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    /// Expected: `orjson.dumps(array, default=h5grove.encoders.orjson_default,
    /// option=orjson.OPT_SERIALIZE_NUMPY)`.
    #[test]
    fn arrays_as_orjson_writes_them() {
        let numbers: Vec<u8> = (0..4_i16).flat_map(i16::to_le_bytes).collect();
        assert_eq!(json(&int(2), Some(&[2, 2]), &numbers), "[[0,1],[2,3]]");
        assert_eq!(json(&int(2), Some(&[]), &numbers[2..4]), "1");
        assert_eq!(json(&int(2), Some(&[2, 0]), &[]), "[[],[]]");
        assert_eq!(json(&int(2), None, &[]), "null");
        let single = |value: f32, order| match order {
            ByteOrder::Big => value.to_be_bytes(),
            _ => value.to_le_bytes(),
        };
        for (order, expected) in [
            (ByteOrder::Little, "[0.1]"),
            (ByteOrder::Big, "[0.10000000149011612]"),
        ] {
            let kind = Datatype::ieee(4, order);
            assert_eq!(json(&kind, Some(&[1]), &single(0.1, order)), expected);
            assert_eq!(json(&kind, Some(&[1]), &single(f32::NAN, order)), "[null]");
        }
        let pair = type_of(
            4,
            Class::Compound(vec![member("a", 0, int(2)), member("b", 2, int(2))]),
        );
        assert_eq!(json(&pair, Some(&[2]), &numbers), "[[0,1],[2,3]]");
    }

    /// A row is in memory as a whole.
    #[test]
    fn a_row_of_too_many_columns_is_refused() {
        let csv = |columns: u64| {
            GroveCsv::new(Elements {
                datatype: int(2),
                dims: Some(vec![1, columns]),
                content: Box::new(InMemoryContent::new(Vec::new())),
            })
        };
        let most = to_u64(limits::CSV_COLUMNS);
        assert!(csv(most).is_ok());
        assert!(matches!(csv(most + 1), Err(Error::Limit { .. })));
    }

    /// Expected: `'%.18e' % value`.
    #[test]
    fn numbers_as_savetxt_writes_them() {
        let text = |value: f64| {
            let mut out = Vec::new();
            write_exponent(value, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0.1), "1.000000000000000056e-01");
        assert_eq!(text(-12.0), "-1.200000000000000000e+01");
        assert_eq!(text(0.0), "0.000000000000000000e+00");
        assert_eq!(text(1e300), "1.000000000000000053e+300");
        assert_eq!(
            (text(f64::NAN), text(-f64::INFINITY)),
            ("nan".to_owned(), "-inf".to_owned())
        );
    }
}

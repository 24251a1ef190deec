//! The attributes of an object in its `zarr.json` document.

use std::collections::HashSet;
use std::ops::ControlFlow;

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::attribute_value::{
    attribute_text, attribute_texts, decode_integers, with_attribute_name,
};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::number::{self, FloatValue, append_formatted};
use h5fs_reader::model::text::{JsonObject, json_text, write_json_list};
use h5fs_reader::model::walk::{ElementWalker, NodePathResolver, TextContext, Value, ValueSink};
use h5fs_reader::model::{Container, Datatype, NodeId, Reference, Shape};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;
use crate::zarr::datatype::{DataType, DataTypeKind};
use crate::zarr::json::{self, to_utf8};

/// The store's attribute that lists the objects and attributes of the file that the store does not
/// have.
pub(crate) const ABSENT_ATTRIBUTE: &[u8] = b"_h5fs_absent";

/// Attributes about the structure of the HDF5 file, which the store does not have. The document has
/// the names of dimensions in another member.
pub(crate) const HIDDEN_ATTRIBUTES: &[&[u8]] = &[
    b"CLASS",
    b"NAME",
    b"DIMENSION_LIST",
    b"REFERENCE_LIST",
    b"DIMENSION_LABELS",
    b"_Netcdf4Dimid",
    b"_Netcdf4Coordinates",
    b"_nc3_strict",
    b"_NCProperties",
    ABSENT_ATTRIBUTE,
];

/// Attributes with which readers decode the elements of an array and find its coordinates. If one
/// were missing, readers would read wrong values.
pub(crate) const DECODING_ATTRIBUTES: &[&[u8]] = &[
    b"_FillValue",
    b"missing_value",
    b"scale_factor",
    b"add_offset",
    b"valid_min",
    b"valid_max",
    b"valid_range",
    b"_Unsigned",
    b"dtype",
    b"units",
    b"calendar",
    b"coordinates",
    b"bounds",
    b"grid_mapping",
];

/// Attributes that name the dimensions of an array.
const DIMENSION_ATTRIBUTES: &[&[u8]] = &[b"CLASS", b"DIMENSION_LIST", b"DIMENSION_LABELS"];

/// Returns whether an array has attributes that name its dimensions.
///
/// # Errors
/// Fails if an attribute that readers need cannot be read.
pub fn are_dimensions_named(container: &dyn Container, node: NodeId) -> Result<bool> {
    let context = || TextContext::new(container, &|_| Ok(None), limits::ATTRIBUTE_TEXT);
    let (mut are_named, mut failure) = (false, Ok(()));
    let listed = container.attributes(node, &mut |attribute| {
        let name = &*attribute.name;
        are_named |= DIMENSION_ATTRIBUTES.contains(&name);
        if DECODING_ATTRIBUTES.contains(&name) {
            let text = attribute
                .content
                .and_then(|content| format_value(&content, context()));
            failure = text
                .map(drop)
                .map_err(|error| with_attribute_name(error, name));
        }
        match failure {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    failure.and(listed).map(|()| are_named)
}

/// The version of Zarr of a store. xarray expects `_FillValue` in another form in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZarrVersion {
    /// Version 2: the value in JSON. With `is_fill_value`, it is not an attribute, because it is the
    /// fill value in the document of the array.
    V2 {
        /// Whether `_FillValue` is the fill value in the document.
        is_fill_value: bool,
    },
    /// Version 3: the bytes of floating-point numbers in base64.
    V3,
}

/// The attributes of an object as JSON, for its document.
#[derive(Default)]
pub struct ZarrAttributes {
    members: JsonObject,
    names: HashSet<Vec<u8>>,
    omitted_names: Vec<Vec<u8>>,
}

impl ZarrAttributes {
    /// Reads the attributes of `node`, for a store of the Zarr version `version`. For an array,
    /// `data_type` is the store's type of its elements. `paths` converts the target of a reference to text.
    ///
    /// # Errors
    /// Fails with a temporary error. For an array, also fails if an attribute that readers need is
    /// damaged, or if not all attributes can be listed.
    pub fn read(
        container: &dyn Container,
        paths: &NodePathResolver<'_>,
        node: NodeId,
        data_type: Option<&DataType>,
        version: ZarrVersion,
    ) -> Result<Self> {
        let mut all = ZarrAttributes::default();
        if container.members_csv().is_some() {
            // In a joined container, attributes that differ between the files are also absent from
            // the store.
            all.omitted_names =
                attribute_texts(container, node, ABSENT_ATTRIBUTE)?.unwrap_or_default();
        }
        let mut failure = Ok(());
        let is_turned = match data_type {
            Some(data_type) => has_opposite_sign(container, node, data_type)?,
            None => false,
        };
        let listed = container.attributes(node, &mut |attribute| {
            let name = &*attribute.name;
            if HIDDEN_ATTRIBUTES.contains(&name) || is_in_document(name, version) {
                return ControlFlow::Continue(());
            }
            let room = limits::ATTRIBUTE_TEXT.saturating_sub(all.members.length());
            let content = match attribute.content {
                Ok(content) if is_without_nan(name, version) => match remove_nan(content) {
                    Some(content) => Ok(content),
                    None => return ControlFlow::Continue(()),
                },
                content => content,
            };
            let text = content.and_then(|content| match data_type {
                Some(data_type) if name == b"_FillValue" && version == ZarrVersion::V3 => {
                    format_fill_value(&content, data_type, is_turned)
                }
                _ => format_value(&content, TextContext::new(container, paths, room)).map(Some),
            });
            match text {
                Ok(Some(text)) if all.add_attribute(name, &text) => {}
                Err(error)
                    if error.is_transient()
                        || data_type.is_some() && DECODING_ATTRIBUTES.contains(&name) =>
                {
                    failure = Err(with_attribute_name(error, name));
                    return ControlFlow::Break(());
                }
                _ => all.record_omission([b"@", name].concat()),
            }
            ControlFlow::Continue(())
        });
        failure?;
        match listed {
            Err(error) if error.is_transient() || data_type.is_some() => return Err(error),
            Err(_) => all.record_omission(b"@".to_vec()),
            Ok(()) => {}
        }
        Ok(all)
    }

    /// Adds an attribute with the JSON text `value`, unless an attribute with this name exists.
    /// Returns false if the attributes would become too long.
    pub fn add_attribute(&mut self, name: &[u8], value: &[u8]) -> bool {
        let length = self.members.length() + name.len() + value.len();
        if length > limits::ATTRIBUTE_TEXT {
            return false;
        }
        if self.names.insert(name.to_vec()) {
            let value_of = self.members.add_key(&*to_utf8(name));
            value_of.extend_from_slice(value);
        }
        true
    }

    /// Records that the store omits the object or attribute called `name`.
    pub fn record_omission(&mut self, name: Vec<u8>) {
        if self.omitted_names.len() < limits::ZARR_ABSENT {
            self.omitted_names.push(name);
        }
    }

    /// Returns all attributes as a JSON object.
    pub fn finish(mut self) -> Vec<u8> {
        if !self.omitted_names.is_empty() {
            let mut list = Vec::new();
            write_json_list(&self.omitted_names, &mut list, |name, out| {
                json::write_string(name, out);
            });
            self.add_attribute(ABSENT_ATTRIBUTE, &list);
        }
        self.members.finish().into_bytes()
    }
}

/// Returns whether the document of the array has the attribute `name` in another member.
fn is_in_document(name: &[u8], version: ZarrVersion) -> bool {
    let is_fill_value = matches!(
        version,
        ZarrVersion::V2 {
            is_fill_value: true
        }
    );
    name == b"_FillValue" && is_fill_value
}

/// Returns whether NaN is left out of the attribute `name`. It cannot be written in JSON, and NaN is
/// missing anyway.
fn is_without_nan(name: &[u8], version: ZarrVersion) -> bool {
    name == b"missing_value" || name == b"_FillValue" && version != ZarrVersion::V3
}

/// Formats the value of an attribute as JSON. The value of a single element is written without
/// brackets, as netCDF readers expect.
fn format_value(content: &AttributeContent, context: TextContext<'_>) -> Result<Vec<u8>> {
    let AttributeContent {
        datatype, shape, ..
    } = content;
    let dims = shape.dims();
    if *shape == Shape::Null || dims.contains(&0) {
        let is_text = *shape == Shape::Null
            && matches!(
                datatype.class,
                Class::String { .. } | Class::VariableString { .. }
            );
        return Ok(if is_text { b"\"\"" } else { b"[]" }.to_vec());
    }
    let walk = ElementWalker::new(datatype, &|name| json_text(to_utf8(name).as_bytes()) + ": ")?;
    let mut values = AttributeWriter {
        context,
        out: Vec::new(),
    };
    let dims = if dims == [1] { &[] } else { dims };
    walk.walk_list(&content.elements, dims, &mut values)?;
    Ok(values.out)
}

/// The writer of an attribute's values.
struct AttributeWriter<'a> {
    context: TextContext<'a>,
    out: Vec<u8>,
}

impl ValueSink for AttributeWriter<'_> {
    fn context(&self) -> &TextContext<'_> {
        &self.context
    }

    fn length(&self) -> usize {
        self.out.len()
    }

    fn push_text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn write_value(&mut self, value: Value<'_>, stored: &[u8]) -> Result<bool> {
        let out = &mut self.out;
        match value {
            Value::Integer(integer) => integer.write(out),
            Value::Bits(pattern, _) => append_formatted(out, format_args!("{pattern}")),
            Value::Real(FloatValue::Single(value)) => json::write_number(value.into(), out),
            Value::Real(
                FloatValue::Double(value) | FloatValue::FewerBitsThanDouble { value, .. },
            ) => {
                json::write_number(value, out);
            }
            Value::Real(wide @ FloatValue::MoreBitsThanDouble { .. }) => wide.write_text(out),
            Value::Real(FloatValue::OutOfDoubleRange { .. }) | Value::Time(..) | Value::Bytes => {
                json::write_base64(stored, out);
            }
            Value::Bool(set) => append_formatted(out, format_args!("{set}")),
            Value::EnumMember {
                name,
                is_boolean: true,
            } => append_formatted(out, format_args!("{}", name != Some(b"FALSE"))),
            Value::EnumMember { .. } => return Ok(false),
            Value::Complex(part) => part.walk_list(stored, &[2], self)?,
            // `ByteStrings` are the characters of MATLAB's field names.
            Value::Text(text) | Value::ByteStrings(text) | Value::DateTime(text) => {
                self.write_text_value(text)?;
            }
            Value::Null => self.write_text_value(b"")?,
            Value::Reference(_, Reference::Object(node) | Reference::Region(node)) => {
                match (self.context.paths)(node)? {
                    Some(path) => json::write_string(&path, out),
                    None => self.push_text("null"),
                }
            }
            Value::Reference(..) => self.push_text("null"),
        }
        Ok(true)
    }
}

impl AttributeWriter<'_> {
    /// Writes a text, or the base64 of its bytes if it is not UTF-8.
    fn write_text_value(&mut self, text: &[u8]) -> Result<()> {
        self.check_length(text.len())?;
        match std::str::from_utf8(text) {
            Ok(_) => json::write_string(text, &mut self.out),
            Err(_) => json::write_base64(text, &mut self.out),
        }
        Ok(())
    }
}

/// Formats `_FillValue` by the data type of its array, as xarray stores it in a store of Zarr
/// version 3. Returns `None` for a value that no element can equal, and for types whose
/// `_FillValue` makes xarray reject the whole group. With `is_turned`, `_Unsigned` changes the
/// signedness of the integers. xarray then accepts only values of the signed type.
fn format_fill_value(
    content: &AttributeContent,
    data_type: &DataType,
    is_turned: bool,
) -> Result<Option<Vec<u8>>> {
    if content.shape.elements()? != 1 {
        return Ok(None);
    }
    let (mut datatype, element) = (&content.datatype, &*content.elements);
    let is_boolean = datatype.is_boolean();
    while let Class::Enumeration { base, .. } = &datatype.class {
        datatype = base;
    }
    let mut out = Vec::new();
    match data_type.kind {
        DataTypeKind::Float { .. } => {
            let Some(value) = parse_float(datatype, element) else {
                return Ok(None);
            };
            json::write_base64(&value.to_le_bytes(), &mut out);
        }
        DataTypeKind::Complex { .. } => {
            let part = datatype.complex_part();
            let size = to_usize(part.unwrap_or(datatype).size.into())?;
            let (first, second) = element.split_at(size.min(element.len()));
            let imaginary = part.map_or(Some(0.0), |part| parse_float(part, second));
            let Some((first, second)) = parse_float(part.unwrap_or(datatype), first).zip(imaginary)
            else {
                return Ok(None);
            };
            write_json_list([first, second], &mut out, |part, out| {
                json::write_base64(&part.to_le_bytes(), out);
            });
        }
        DataTypeKind::Bool => match parse_integer(datatype, element) {
            Some(number) if is_boolean || matches!(number, 0 | 1) => {
                append_formatted(&mut out, format_args!("{}", number != 0));
            }
            _ => return Ok(None),
        },
        DataTypeKind::Integer { size, signed } => {
            let end = 1_i128 << (size * 8);
            let (least, most) = match (signed, is_turned) {
                (true, false) => (-end / 2, end / 2),
                (false, false) => (0, end),
                (_, true) => (-end / 2, end),
            };
            let number =
                parse_integer(datatype, element).filter(|number| (least..most).contains(number));
            let Some(number) = number else {
                return Ok(None);
            };
            let number = if is_turned && number >= end / 2 {
                number - end
            } else {
                number
            };
            append_formatted(&mut out, format_args!("{number}"));
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

/// Returns whether the attribute `_Unsigned` says that the integers of an array have the opposite
/// signedness.
fn has_opposite_sign(
    container: &dyn Container,
    node: NodeId,
    data_type: &DataType,
) -> Result<bool> {
    let DataTypeKind::Integer { signed, .. } = data_type.kind else {
        return Ok(false);
    };
    let wanted: &[u8] = if signed { b"true" } else { b"false" };
    Ok(attribute_text(container, node, b"_Unsigned")?.is_some_and(|text| text == wanted))
}

/// Returns the stored number `element` as a float; `None` if it is not a number.
fn parse_float(datatype: &Datatype, element: &[u8]) -> Option<f64> {
    match &datatype.class {
        Class::Float(format) => number::float_value(element, format)?.as_f64(),
        _ => match decode_integers(datatype, element).as_deref() {
            Some(&[number]) => Some(number as f64),
            _ => None,
        },
    }
}

/// Returns the stored number `element` as an integer; `None` if it has a fraction or is not a
/// number.
fn parse_integer(datatype: &Datatype, element: &[u8]) -> Option<i128> {
    const BEYOND: f64 = (1_u128 << 64) as f64;
    match &datatype.class {
        Class::Float(_) => parse_float(datatype, element)
            .filter(|value| value.fract() == 0.0 && value.abs() < BEYOND)
            .map(|value| value as i128),
        Class::Bool => element.first().map(|&byte| (byte != 0).into()),
        _ => match decode_integers(datatype, element).as_deref() {
            Some(&[number]) => Some(number),
            _ => None,
        },
    }
}

/// Removes NaN from the values of the attribute `missing_value`. NaN is missing anyway, and readers
/// would interpret the JSON string "NaN" as a text. Returns `None` if no value remains.
fn remove_nan(content: AttributeContent) -> Option<AttributeContent> {
    if !matches!(content.datatype.class, Class::Float(_)) {
        return Some(content);
    }
    let size = to_usize(content.datatype.size.into()).ok()?.max(1);
    let is_nan = |element: &[u8]| parse_float(&content.datatype, element).is_some_and(f64::is_nan);
    let elements = content.elements.chunks_exact(size);
    let elements: Vec<&[u8]> = elements.filter(|element| !is_nan(element)).collect();
    if elements.len() * size == content.elements.len() {
        return Some(content);
    }
    let shape = Shape::fixed(vec![to_u64(elements.len())]);
    let elements = elements.concat();
    (!elements.is_empty()).then_some(AttributeContent {
        elements: elements.into(),
        shape,
        ..content
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::{
        BitRange, ByteOrder, Charset, ReferenceKind, StringPadding,
    };
    use h5fs_reader::testing::{Heap, int, member, type_of};

    /// h5py, and the array elements in the store, treat each byte except 0 as true.
    #[test]
    fn every_byte_but_0_is_true() {
        let base = Box::new(int(1));
        let member = |name: &[u8], number| (name.to_vec(), vec![number]);
        let members = vec![member(b"FALSE", 0), member(b"TRUE", 1)];
        let boolean = type_of(1, Class::Enumeration { base, members });
        let heap = Heap(Vec::new());
        let truth = DataType::from_datatype(&boolean).unwrap();
        for (byte, expected) in [(0, "false"), (1, "true"), (2, "true")] {
            let content = |datatype: &Datatype| AttributeContent {
                datatype: datatype.clone(),
                shape: Shape::fixed(vec![]),
                elements: vec![byte].into(),
            };
            let text = format_value(
                &content(&boolean),
                TextContext::new(&heap, &|_| Ok(None), 100),
            );
            assert_eq!(text.unwrap(), expected.as_bytes());
            let filled = format_fill_value(&content(&boolean), &truth, false).unwrap();
            assert_eq!(filled.as_deref(), Some(expected.as_bytes()));
            // Integers other than 0 and 1 equal neither boolean.
            let filled = format_fill_value(&content(&int(1)), &truth, false).unwrap();
            assert_eq!(filled.is_some(), byte < 2);
        }
    }

    #[test]
    fn values_as_readers_of_a_store_take_them() {
        let heap = Heap(vec![b"ab\0".to_vec(), vec![]]);
        let json = |datatype: Datatype, elements: &[u8]| {
            let content = AttributeContent {
                datatype,
                shape: Shape::fixed(vec![]),
                elements: elements.to_vec().into(),
            };
            let paths = |node| Ok((node == NodeId::for_test(7)).then(|| b"/x\xff".to_vec()));
            let text = format_value(&content, TextContext::new(&heap, &paths, 100)).unwrap();
            String::from_utf8(text).unwrap()
        };
        let single = || Datatype::ieee(4, ByteOrder::Little);
        let complex = vec![member("r", 0, single()), member("i", 4, single())];
        let number = [1.5_f32.to_le_bytes(), f32::INFINITY.to_le_bytes()].concat();
        let expected = r#"[1.5, "Infinity"]"#;
        assert_eq!(
            json(type_of(8, Class::Compound(complex)), &number),
            expected
        );
        let complex = Class::Complex(Box::new(single()));
        assert_eq!(json(type_of(8, complex), &number), expected);

        let (padding, charset) = (StringPadding::NullPadded, Charset::Ascii);
        let letter = type_of(1, Class::String { padding, charset });
        let letters = || type_of(1, Class::VariableLength(Box::new(letter.clone())));
        assert_eq!(json(letters(), &[0]), r#""ab\u0000""#);
        let text = type_of(1, Class::VariableString { padding, charset });
        assert_eq!(json(text.clone(), &[0]), r#""ab""#);
        assert_eq!(json(text, &[9]), r#""""#);
        assert_eq!(json(letter.clone(), b"\xff"), r#""/w==""#);
        let numbers = type_of(1, Class::VariableLength(Box::new(int(1))));
        assert_eq!(json(numbers.clone(), &[1]), "[]");
        let record = vec![member("a\u{e9}", 0, int(1)), member("n", 1, numbers)];
        let record = type_of(2, Class::Compound(record));
        assert_eq!(
            json(record, &[3, 0]),
            "{\"a\u{e9}\": 3, \"n\": [97, 98, 0]}"
        );

        let members = vec![(b"ONE".to_vec(), vec![1])];
        let base = Box::new(int(1));
        assert_eq!(
            json(type_of(1, Class::Enumeration { base, members }), &[1]),
            "1"
        );
        let (order, bits) = (
            ByteOrder::Little,
            BitRange {
                offset: 0,
                precision: 8,
            },
        );
        assert_eq!(json(type_of(1, Class::Bitfield { order, bits }), &[9]), "9");
        assert_eq!(
            json(type_of(1, Class::Time { order, bits }), &[0]),
            r#""AA==""#
        );
        let object = type_of(1, Class::Reference(ReferenceKind::Object));
        assert_eq!(json(object.clone(), &[7]), "\"/x\u{fffd}\"");
        assert_eq!(json(object.clone(), &[8]), "null");
        assert_eq!(json(object, &[0]), "null");
    }

    #[test]
    fn so_many_names_of_what_is_absent() {
        let mut attributes = ZarrAttributes::default();
        for number in 0..=limits::ZARR_ABSENT {
            attributes.record_omission(number.to_string().into_bytes());
        }
        let text = String::from_utf8(attributes.finish()).unwrap();
        assert_eq!(text.matches(',').count() + 1, limits::ZARR_ABSENT);
        let last = limits::ZARR_ABSENT - 1;
        assert!(text.starts_with("{\"_h5fs_absent\": [\"0\", \"1\","));
        assert!(text.ends_with(&format!("\"{last}\"]}}")));
    }

    #[test]
    fn the_first_of_two_attributes_of_one_name_counts() {
        let mut attributes = ZarrAttributes::default();
        attributes.add_attribute(b"a", b"1");
        attributes.add_attribute(b"a", b"2");
        attributes.add_attribute("\u{e9}\"".as_bytes(), b"null");
        assert_eq!(
            attributes.finish(),
            "{\"a\": 1, \"\u{e9}\\\"\": null}".as_bytes()
        );
    }
}

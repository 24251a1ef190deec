//! The attributes of an object as members of its document.

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::attribute::AttributeContent;
use crate::model::attribute_value::{numbers, of_attribute, text};
use crate::model::datatype::{Class, Member};
use crate::model::number::{self, Real, append};
use crate::model::text::{Object, without_padding, write_json_list};
use crate::model::value::Paths;
use crate::model::{Container, Datatype, NodeId, Reference, Shape};
use crate::view::elements::complex_part;
use crate::view::zarr::datatype::{DataType, Kind};
use crate::view::zarr::json;
use crate::wire::{to_u64, to_usize};

/// The attribute that names what a reader does not find in the store though the file has it.
const ABSENT: &[u8] = b"_h5fs_absent";

/// Attributes that only tell how the file is made; the names of dimensions are in the document.
const HIDDEN: &[&[u8]] = &[
    b"CLASS",
    b"NAME",
    b"DIMENSION_LIST",
    b"REFERENCE_LIST",
    b"DIMENSION_LABELS",
    b"_Netcdf4Dimid",
    b"_Netcdf4Coordinates",
    b"_nc3_strict",
    b"_NCProperties",
    ABSENT,
];

/// Attributes by which readers decode the elements of an array, and find its coordinates. Without
/// one of them they would take other values for those of the file.
const DECODING: &[&[u8]] = &[
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
const DIMENSIONS: &[&[u8]] = &[b"CLASS", b"DIMENSION_LIST", b"DIMENSION_LABELS"];

/// Whether an array has attributes that name its dimensions.
///
/// # Errors
/// Fails if an attribute that readers need cannot be read.
pub(crate) fn are_dimensions_named(container: &dyn Container, node: NodeId) -> Result<bool> {
    let values = Values {
        container,
        paths: &|_| Ok(None),
        limit: limits::ATTRIBUTE_TEXT,
    };
    let (mut are_named, mut failure) = (false, Ok(()));
    let listed = container.attributes(node, &mut |attribute| {
        let name = &*attribute.name;
        are_named |= DIMENSIONS.contains(&name);
        if DECODING.contains(&name) {
            let value = attribute.content.and_then(|content| values.value(&content));
            failure = value.map(drop).map_err(|error| of_attribute(error, name));
        }
        match failure {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    failure.and(listed).map(|()| are_named)
}

/// The members of a document's `attributes`.
#[derive(Default)]
pub(crate) struct Attributes {
    members: Object,
    names: HashSet<Vec<u8>>,
    absent: Vec<Vec<u8>>,
}

impl Attributes {
    /// Those of `node`, of an array whose elements are of `data_type`, if it is one. `paths` turns
    /// the target of a reference into text.
    ///
    /// # Errors
    /// Fails if one cannot be read now; for an array also if one that readers need is damaged, or if
    /// the list breaks off.
    pub(crate) fn of(
        container: &dyn Container,
        paths: &Paths<'_>,
        node: NodeId,
        data_type: Option<&DataType>,
    ) -> Result<Self> {
        let mut all = Attributes::default();
        let mut failure = Ok(());
        let is_turned = match data_type {
            Some(data_type) => is_turned(container, node, data_type)?,
            None => false,
        };
        let listed = container.attributes(node, &mut |attribute| {
            let name = &*attribute.name;
            if HIDDEN.contains(&name) {
                return ControlFlow::Continue(());
            }
            let values = Values {
                container,
                paths,
                limit: limits::ATTRIBUTE_TEXT.saturating_sub(all.members.length()),
            };
            let content = match attribute.content {
                Ok(content) if name == b"missing_value" => match without_nan(content) {
                    Some(content) => Ok(content),
                    None => return ControlFlow::Continue(()),
                },
                content => content,
            };
            let text = content.and_then(|content| match data_type {
                Some(data_type) if name == b"_FillValue" => fill(&content, data_type, is_turned),
                _ => values.value(&content).map(Some),
            });
            match text {
                Ok(Some(text)) if all.add(name, &text) => {}
                Err(error)
                    if error.is_passing() || data_type.is_some() && DECODING.contains(&name) =>
                {
                    failure = Err(of_attribute(error, name));
                    return ControlFlow::Break(());
                }
                _ => all.miss([b"@", name].concat()),
            }
            ControlFlow::Continue(())
        });
        failure?;
        match listed {
            Err(error) if error.is_passing() || data_type.is_some() => return Err(error),
            Err(_) => all.miss(b"@".to_vec()),
            Ok(()) => {}
        }
        Ok(all)
    }

    /// Adds one, `value` being JSON, unless there is one of that name; whether there was room.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> bool {
        let length = self.members.length() + name.len() + value.len();
        if length > limits::ATTRIBUTE_TEXT {
            return false;
        }
        if self.names.insert(name.to_vec()) {
            let value_of = self.members.key(&*json::readable(name));
            value_of.extend_from_slice(value);
        }
        true
    }

    /// Takes down the name of what is not in the store.
    pub(crate) fn miss(&mut self, name: Vec<u8>) {
        if self.absent.len() < limits::ZARR_ABSENT {
            self.absent.push(name);
        }
    }

    /// The JSON of all of them.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.absent.is_empty() {
            let mut list = Vec::new();
            write_json_list(&self.absent, &mut list, |name, out| json::text(name, out));
            self.add(ABSENT, &list);
        }
        self.members.finish().into_bytes()
    }
}

/// Writes the values of attributes.
struct Values<'a> {
    container: &'a dyn Container,
    paths: &'a Paths<'a>,
    /// The most bytes of one.
    limit: usize,
}

impl Values<'_> {
    /// The value as JSON: one of a single element without brackets, as readers of netCDF have it.
    fn value(&self, content: &AttributeContent) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let dims = content.shape.dims();
        if content.shape == Shape::Null || dims.contains(&0) {
            let is_text = content.shape == Shape::Null
                && matches!(
                    content.datatype.class,
                    Class::String { .. } | Class::VariableString { .. }
                );
            return Ok(if is_text { b"\"\"" } else { b"[]" }.to_vec());
        }
        let dims = if dims == [1] { &[] } else { dims };
        self.array(&content.datatype, &content.elements, dims, &mut out)?;
        Ok(out)
    }

    fn array(
        &self,
        datatype: &Datatype,
        elements: &[u8],
        dims: &[u64],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some((&count, inner)) = dims.split_first() else {
            return self.element(datatype, elements, out);
        };
        let count = to_usize(count)?;
        let length = elements.len().checked_div(count).unwrap_or(0);
        out.push(b'[');
        for index in 0..count {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            let start = index.saturating_mul(length);
            self.array(datatype, part(elements, start, length)?, inner, out)?;
            self.check(out, 0)?;
        }
        out.push(b']');
        Ok(())
    }

    fn element(&self, datatype: &Datatype, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let element = part(element, 0, to_usize(datatype.size.into())?)?;
        if datatype.is_boolean() {
            append(out, format_args!("{}", element != [0]));
            return Ok(());
        }
        if let Some(base) = complex_part(datatype) {
            let size = to_usize(base.size.into())?;
            out.push(b'[');
            self.element(base, element, out)?;
            out.extend_from_slice(b", ");
            self.element(base, part(element, size, size)?, out)?;
            out.push(b']');
            return Ok(());
        }
        match &datatype.class {
            &Class::Integer {
                order,
                signed,
                bits,
            } => match number::integer(element, order, signed, bits) {
                Some(integer) => integer.write(out),
                None => json::base64(element, out),
            },
            &Class::Bitfield { order, bits } => match number::bits(element, order, bits) {
                Some(bits) => append(out, format_args!("{bits}")),
                None => json::base64(element, out),
            },
            Class::Float(format) => match number::real(element, format) {
                Some(Real::Single(value)) => json::number(value.into(), out),
                Some(Real::Double(value) | Real::Narrow { value, .. }) => json::number(value, out),
                Some(Real::Beyond { .. }) | None => json::base64(element, out),
            },
            Class::Enumeration { base, .. } => self.element(base, element, out)?,
            Class::Bool => append(out, format_args!("{}", element != [0])),
            Class::String { padding, .. } => self.text(without_padding(element, *padding), out)?,
            Class::VariableString { padding, .. } => {
                let text = self.fetch(element, 1, out)?;
                self.text(without_padding(&text, *padding), out)?;
            }
            // MATLAB's names of fields.
            Class::VariableLength(base) if is_letter(base) => {
                let text = self.fetch(element, 1, out)?;
                self.text(&text, out)?;
            }
            Class::VariableLength(base) => {
                let size = u64::from(base.size.max(1));
                let elements = self.fetch(element, size, out)?;
                let count = to_u64(elements.len()) / size;
                match count {
                    0 => out.extend_from_slice(b"[]"),
                    _ => self.array(base, &elements, &[count], out)?,
                }
            }
            Class::Array { base, dims } => {
                let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
                self.array(base, element, &dims, out)?;
            }
            Class::Compound(members) => self.record(members, element, out)?,
            Class::Reference(kind) => match self.container.reference(*kind, element)? {
                Reference::Object(node) | Reference::Region(node) => self.path(node, out)?,
                _ => out.extend_from_slice(b"null"),
            },
            Class::Time { .. } | Class::Opaque { .. } | Class::Ucs4(_) | Class::Complex(_) => {
                json::base64(element, out);
            }
        }
        self.check(out, 0)
    }

    fn record(&self, members: &[Member], element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            json::text(&member.name, out);
            out.extend_from_slice(b": ");
            let size = to_usize(member.datatype.size.into())?;
            let field = part(element, to_usize(member.offset.into())?, size)?;
            self.element(&member.datatype, field, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn path(&self, node: NodeId, out: &mut Vec<u8>) -> Result<()> {
        match (self.paths)(node)? {
            Some(path) => json::text(&path, out),
            None => out.extend_from_slice(b"null"),
        }
        Ok(())
    }

    /// A text; one that is not UTF-8 as base64 of its bytes.
    fn text(&self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.check(out, text.len())?;
        match std::str::from_utf8(text) {
            Ok(_) => json::text(text, out),
            Err(_) => json::base64(text, out),
        }
        Ok(())
    }

    /// What an element of variable length points to; nothing for a null one.
    fn fetch(&self, element: &[u8], base_size: u64, out: &[u8]) -> Result<Vec<u8>> {
        let length = self.container.variable_length_bytes(element, base_size)?;
        let length = length.unwrap_or(0);
        self.check(out, to_usize(length)?)?;
        let bytes = self
            .container
            .variable_length(element, base_size, 0..length)?;
        Ok(bytes.unwrap_or_default())
    }

    fn check(&self, out: &[u8], more: usize) -> Result<()> {
        match out.len().saturating_add(more) > self.limit {
            true => Err(Error::limit(
                "text of attributes",
                to_u64(limits::ATTRIBUTE_TEXT),
            )),
            false => Ok(()),
        }
    }
}

/// Whether a sequence of such elements is a text.
fn is_letter(datatype: &Datatype) -> bool {
    datatype.size == 1 && matches!(datatype.class, Class::String { .. })
}

fn part(bytes: &[u8], start: usize, length: usize) -> Result<&[u8]> {
    let part = bytes.get(start..start.saturating_add(length));
    part.ok_or_else(|| Error::corrupt("attribute: fewer bytes than its shape", None))
}

/// `_FillValue` in the form in which xarray keeps it in a store of version 3, by the type of the
/// array; `None` for a value that no element can equal, and for types of which xarray reads none: it
/// refuses the whole group then. `is_turned` where `_Unsigned` has integers taken for those of the
/// other sign: xarray takes none that is beyond the signed type.
fn fill(
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
        Kind::Float { .. } => {
            let Some(value) = real(datatype, element) else {
                return Ok(None);
            };
            json::base64(&value.to_le_bytes(), &mut out);
        }
        Kind::Complex { .. } => {
            let part = complex_part(datatype);
            let size = to_usize(part.unwrap_or(datatype).size.into())?;
            let (first, second) = element.split_at(size.min(element.len()));
            let imaginary = part.map_or(Some(0.0), |part| real(part, second));
            let Some((first, second)) = real(part.unwrap_or(datatype), first).zip(imaginary) else {
                return Ok(None);
            };
            write_json_list([first, second], &mut out, |part, out| {
                json::base64(&part.to_le_bytes(), out);
            });
        }
        Kind::Bool => match integer(datatype, element) {
            Some(number) if is_boolean || matches!(number, 0 | 1) => {
                append(&mut out, format_args!("{}", number != 0));
            }
            _ => return Ok(None),
        },
        Kind::Integer { size, signed } => {
            let end = 1_i128 << (size * 8);
            let (least, most) = match (signed, is_turned) {
                (true, false) => (-end / 2, end / 2),
                (false, false) => (0, end),
                (_, true) => (-end / 2, end),
            };
            let number = integer(datatype, element).filter(|number| (least..most).contains(number));
            let Some(number) = number else {
                return Ok(None);
            };
            let number = match is_turned && number >= end / 2 {
                true => number - end,
                false => number,
            };
            append(&mut out, format_args!("{number}"));
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}

/// Whether `_Unsigned` says that the integers of an array are those of the other sign.
fn is_turned(container: &dyn Container, node: NodeId, data_type: &DataType) -> Result<bool> {
    let Kind::Integer { signed, .. } = data_type.kind else {
        return Ok(false);
    };
    let wanted: &[u8] = if signed { b"true" } else { b"false" };
    Ok(text(container, node, b"_Unsigned")?.is_some_and(|text| text == wanted))
}

/// A stored number.
fn real(datatype: &Datatype, element: &[u8]) -> Option<f64> {
    match &datatype.class {
        Class::Float(format) => match number::real(element, format)? {
            Real::Single(value) => Some(value.into()),
            Real::Double(value) | Real::Narrow { value, .. } => Some(value),
            Real::Beyond { .. } => None,
        },
        _ => match numbers(datatype, element).as_deref() {
            Some(&[number]) => Some(number as f64),
            _ => None,
        },
    }
}

/// A stored number that is whole.
fn integer(datatype: &Datatype, element: &[u8]) -> Option<i128> {
    const BEYOND: f64 = (1_u128 << 64) as f64;
    match &datatype.class {
        Class::Float(_) => real(datatype, element)
            .filter(|value| value.fract() == 0.0 && value.abs() < BEYOND)
            .map(|value| value as i128),
        Class::Bool => element.first().map(|&byte| (byte != 0).into()),
        _ => match numbers(datatype, element).as_deref() {
            Some(&[number]) => Some(number),
            _ => None,
        },
    }
}

/// `missing_value` without NaN, which is missing anyway: as a text, it would be taken for a value.
fn without_nan(content: AttributeContent) -> Option<AttributeContent> {
    if !matches!(content.datatype.class, Class::Float(_)) {
        return Some(content);
    }
    let size = to_usize(content.datatype.size.into()).ok()?.max(1);
    let is_nan = |element: &[u8]| real(&content.datatype, element).is_some_and(f64::is_nan);
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
    use crate::model::value::tests::{Heap, int, type_of};

    /// h5py, and the elements of an array here, have true for each byte but 0.
    #[test]
    fn every_byte_but_0_is_true() {
        let base = Box::new(int(1));
        let member = |name: &[u8], number| (name.to_vec(), vec![number]);
        let members = vec![member(b"FALSE", 0), member(b"TRUE", 1)];
        let boolean = type_of(1, Class::Enumeration { base, members });
        let values = Values {
            container: &Heap(Vec::new()),
            paths: &|_| Ok(None),
            limit: 100,
        };
        let truth = DataType::of(&boolean).unwrap();
        for (byte, expected) in [(0, "false"), (1, "true"), (2, "true")] {
            let mut out = Vec::new();
            values.element(&boolean, &[byte], &mut out).unwrap();
            assert_eq!(out, expected.as_bytes());
            let content = |datatype: &Datatype| AttributeContent {
                datatype: datatype.clone(),
                shape: Shape::fixed(vec![]),
                elements: vec![byte].into(),
            };
            let filled = fill(&content(&boolean), &truth, false).unwrap();
            assert_eq!(filled.as_deref(), Some(expected.as_bytes()));
            // An integer other than 0 and 1 is equal to neither.
            let filled = fill(&content(&int(1)), &truth, false).unwrap();
            assert_eq!(filled.is_some(), byte < 2);
        }
    }

    #[test]
    fn so_many_names_of_what_is_absent() {
        let mut attributes = Attributes::default();
        for number in 0..=limits::ZARR_ABSENT {
            attributes.miss(number.to_string().into_bytes());
        }
        let text = String::from_utf8(attributes.finish()).unwrap();
        assert_eq!(text.matches(',').count() + 1, limits::ZARR_ABSENT);
        let last = limits::ZARR_ABSENT - 1;
        assert!(text.starts_with("{\"_h5fs_absent\": [\"0\", \"1\","));
        assert!(text.ends_with(&format!("\"{last}\"]}}")));
    }

    #[test]
    fn the_first_of_two_attributes_of_one_name_counts() {
        let mut attributes = Attributes::default();
        attributes.add(b"a", b"1");
        attributes.add(b"a", b"2");
        attributes.add("\u{e9}\"".as_bytes(), b"null");
        assert_eq!(
            attributes.finish(),
            "{\"a\": 1, \"\u{e9}\\\"\": null}".as_bytes()
        );
    }
}

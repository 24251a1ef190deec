//! `zarr.json`: what an array or a group is (Zarr core specification 3.1, "Array metadata", "Group
//! metadata").

use crate::error::{Error, Result};
use crate::model::number::{Integer, append};
use crate::model::value::Context;
use crate::view::zarr::array::ZarrArray;
use crate::view::zarr::codecs;
use crate::view::zarr::datatype::{DataType, Kind};
use crate::view::zarr::json;

/// The document of an array whose attributes and names of dimensions are these. `context` follows
/// a fill value that is a text. The chunks are decoded, unless they `are_stored` ones.
///
/// # Errors
/// Fails if the fill value cannot be read.
pub(crate) fn of_array(
    array: &ZarrArray,
    attributes: &[u8],
    names: &[Vec<u8>],
    context: &Context<'_>,
    are_stored: bool,
) -> Result<Vec<u8>> {
    let mut out = b"{\n  \"zarr_format\": 3,\n  \"node_type\": \"array\",\n  \"shape\": ".to_vec();
    json::list(&array.dims, &mut out);
    out.extend_from_slice(b",\n  \"data_type\": ");
    name(&array.data_type, &mut out);
    out.extend_from_slice(
        b",\n  \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": ",
    );
    json::list(&array.chunk_shape, &mut out);
    out.extend_from_slice(b"}},\n  \"chunk_key_encoding\": ");
    out.extend_from_slice(b"{\"name\": \"default\", \"configuration\": {\"separator\": \"/\"}}");
    out.extend_from_slice(b",\n  \"fill_value\": ");
    fill(&array.data_type, &array.fill(context)?, &mut out)?;
    let codecs = match are_stored {
        true => codecs::stored(array).unwrap_or_default(),
        false => vec![codecs::decoded(&array.data_type)],
    };
    append(
        &mut out,
        format_args!(",\n  \"codecs\": [{}]", codecs.join(", ")),
    );
    out.extend_from_slice(b",\n  \"attributes\": ");
    out.extend_from_slice(attributes);
    out.extend_from_slice(b",\n  \"dimension_names\": [");
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        json::text(name, &mut out);
    }
    out.extend_from_slice(b"]\n}\n");
    Ok(out)
}

/// The document of a group with these attributes.
pub(crate) fn of_group(attributes: &[u8]) -> Vec<u8> {
    let mut out =
        b"{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\",\n  \"attributes\": ".to_vec();
    out.extend_from_slice(attributes);
    out.extend_from_slice(b"\n}\n");
    out
}

/// Appends the data type.
fn name(data_type: &DataType, out: &mut Vec<u8>) {
    let sized = |name: &str, size: usize, out: &mut Vec<u8>| {
        append(
            out,
            format_args!(
                "{{\"name\": \"{name}\", \"configuration\": {{\"length_bytes\": {size}}}}}"
            ),
        );
    };
    let bits = |size: usize| size * 8;
    match data_type.kind {
        Kind::Bool => out.extend_from_slice(b"\"bool\""),
        Kind::Integer { size, signed } => {
            let sign = if signed { "" } else { "u" };
            append(out, format_args!("\"{sign}int{}\"", bits(size)));
        }
        Kind::Float { size } => append(out, format_args!("\"float{}\"", bits(size))),
        Kind::Complex { size } => append(out, format_args!("\"complex{}\"", bits(size))),
        Kind::NullTerminatedBytes { size } => sized("null_terminated_bytes", size, out),
        Kind::RawBytes { size } => sized("raw_bytes", size, out),
        Kind::Utf32 { size } => sized("fixed_length_utf32", size, out),
        Kind::Text => out.extend_from_slice(b"\"string\""),
    }
}

/// Appends an element of the store as a fill value.
fn fill(data_type: &DataType, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match data_type.kind {
        Kind::Bool => {
            let is_set = element.iter().any(|&byte| byte != 0);
            append(out, format_args!("{is_set}"));
        }
        Kind::Integer { signed, .. } => integer(element, signed).write(out),
        Kind::Float { .. } => json::number(float(element)?, out),
        Kind::Complex { size } => {
            let (real, imaginary) = element.split_at(size / 2);
            out.push(b'[');
            json::number(float(real)?, out);
            out.extend_from_slice(b", ");
            json::number(float(imaginary)?, out);
            out.push(b']');
        }
        Kind::NullTerminatedBytes { .. } => {
            let end = element.iter().rposition(|&byte| byte != 0);
            json::base64(&element[..end.map_or(0, |end| end + 1)], out);
        }
        Kind::RawBytes { .. } => json::base64(element, out),
        Kind::Utf32 { .. } => {
            let words = element
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&word| u32::from_le_bytes(word));
            let text =
                words.map(|word| char::from_u32(word).unwrap_or(char::REPLACEMENT_CHARACTER));
            let text: String = text.collect();
            json::text(text.trim_end_matches('\0').as_bytes(), out);
        }
        // Its length stands before it.
        Kind::Text => json::text(element.get(4..).unwrap_or_default(), out),
    }
    Ok(())
}

/// A little-endian integer of at most eight bytes.
fn integer(element: &[u8], signed: bool) -> Integer {
    let is_negative = signed && element.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut bytes = [if is_negative { 0xff } else { 0 }; 16];
    bytes[..element.len()].copy_from_slice(element);
    match signed {
        true => Integer::Signed(i128::from_le_bytes(bytes)),
        false => Integer::Unsigned(u128::from_le_bytes(bytes)),
    }
}

/// A little-endian number of two, four or eight bytes.
fn float(element: &[u8]) -> Result<f64> {
    use crate::model::Datatype;
    use crate::model::datatype::{ByteOrder, Class};
    use crate::model::number::{Real, real};
    let size = u8::try_from(element.len()).unwrap_or(8);
    let Class::Float(format) = Datatype::ieee(size, ByteOrder::Little).class else {
        return Err(Error::NotFound);
    };
    match real(element, &format) {
        Some(Real::Single(value)) => Ok(value.into()),
        Some(Real::Double(value) | Real::Narrow { value, .. }) => Ok(value),
        Some(Real::Beyond { .. }) | None => Err(Error::corrupt("fill value", None)),
    }
}

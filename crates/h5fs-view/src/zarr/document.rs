//! `zarr.json`: the description of an array or group (Zarr core specification 3.1, "Array
//! metadata", "Group metadata").

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::number::{Integer, append_formatted};
use h5fs_reader::model::text::{JsonObject, json_text, write_json_list};
use h5fs_reader::model::value::TextContext;

use crate::limits;
use crate::zarr::array::ZarrArray;
use crate::zarr::codecs;
use crate::zarr::datatype::{DataType, DataTypeKind};
use crate::zarr::grid::ChunkGridKind;
use crate::zarr::json;

/// Creates the document of an array. `attributes` are its attributes in JSON, and `names` the names
/// of its dimensions. If the fill value is a text, `context` follows its pointer.
///
/// # Errors
/// Fails if the fill value cannot be read.
pub fn array_document(
    array: &ZarrArray,
    attributes: &[u8],
    names: &[Vec<u8>],
    context: &TextContext<'_>,
) -> Result<Vec<u8>> {
    let mut document = begin_document("array");
    document.add_json("shape", format_args!("{:?}", array.dims));
    document.add_json("data_type", data_type_name(&array.data_type));
    let mut grid = JsonObject::default();
    grid.add_json("chunk_shape", format_args!("{:?}", array.chunk_shape));
    document.add_json("chunk_grid", json::named_configuration("regular", grid));
    let mut encoding = JsonObject::default();
    encoding.add_text("separator", "/");
    document.add_json(
        "chunk_key_encoding",
        json::named_configuration("default", encoding),
    );
    let element = array.converted_fill_value(context)?;
    write_fill_value(&array.data_type, &element, document.add_key("fill_value"))?;
    let codecs = match array.grid {
        ChunkGridKind::Stored => codecs::stored_codecs(array).unwrap_or_default(),
        ChunkGridKind::Decoded | ChunkGridKind::Whole | ChunkGridKind::Referenced => {
            vec![codecs::decoded_chunk_codec(&array.data_type)]
        }
    };
    document.add_json("codecs", format_args!("[{}]", codecs.join(", ")));
    document.add_key("attributes").extend_from_slice(attributes);
    write_json_list(names, document.add_key("dimension_names"), |name, out| {
        json::write_string(name, out);
    });
    Ok(finish_document(document))
}

/// Creates the document of a group. `attributes` are its attributes in JSON. `members` has the
/// documents of all nodes below the group, by path (consolidated metadata). They are omitted if
/// they make the document too long.
pub fn group_document(attributes: &[u8], members: Option<JsonObject>) -> Vec<u8> {
    let mut document = begin_document("group");
    document.add_key("attributes").extend_from_slice(attributes);
    let length = document.length();
    let fits = |members: &JsonObject| {
        length.saturating_add(members.length()) <= limits::ZARR_CONSOLIDATED_BYTES
    };
    if let Some(members) = members.filter(fits) {
        // This is the format of zarr-python; the specification does not have this key yet.
        let mut consolidated = JsonObject::default();
        consolidated.add_text("kind", "inline");
        consolidated.add_json("must_understand", false);
        consolidated.add_json("metadata", members.finish());
        document.add_json("consolidated_metadata", consolidated.finish());
    }
    finish_document(document)
}

fn begin_document(node_type: &str) -> JsonObject {
    let mut document = JsonObject::with_line_per_member();
    document.add_json("zarr_format", 3);
    document.add_text("node_type", node_type);
    document
}

fn finish_document(document: JsonObject) -> Vec<u8> {
    (document.finish() + "\n").into_bytes()
}

/// Returns the name of the data type, as the JSON of the document has it.
fn data_type_name(data_type: &DataType) -> String {
    let sized = |name: &str, size: usize| {
        let mut configuration = JsonObject::default();
        configuration.add_json("length_bytes", size);
        json::named_configuration(name, configuration)
    };
    let bits = |size: usize| size * 8;
    match data_type.kind {
        DataTypeKind::Bool => json_text(b"bool"),
        DataTypeKind::Integer { size, signed } => {
            let sign = if signed { "" } else { "u" };
            format!("\"{sign}int{}\"", bits(size))
        }
        DataTypeKind::Float { size } => format!("\"float{}\"", bits(size)),
        DataTypeKind::Complex { size } => format!("\"complex{}\"", bits(size)),
        DataTypeKind::NullTerminatedBytes { size } => sized("null_terminated_bytes", size),
        DataTypeKind::RawBytes { size } => sized("raw_bytes", size),
        DataTypeKind::Utf32 { size } => sized("fixed_length_utf32", size),
        DataTypeKind::Text => json_text(b"string"),
    }
}

/// Appends `element`, an element in the store's data type, as a fill value in JSON.
pub(super) fn write_fill_value(
    data_type: &DataType,
    element: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    match data_type.kind {
        DataTypeKind::Bool => {
            let is_set = element.iter().any(|&byte| byte != 0);
            append_formatted(out, format_args!("{is_set}"));
        }
        DataTypeKind::Integer { signed, .. } => parse_integer(element, signed).write(out),
        DataTypeKind::Float { .. } => json::write_number(parse_float(element)?, out),
        DataTypeKind::Complex { size } => {
            let (real, imaginary) = element.split_at(size / 2);
            write_json_list(
                [parse_float(real)?, parse_float(imaginary)?],
                out,
                json::write_number,
            );
        }
        DataTypeKind::NullTerminatedBytes { .. } => {
            let end = element.iter().rposition(|&byte| byte != 0);
            json::write_base64(&element[..end.map_or(0, |end| end + 1)], out);
        }
        DataTypeKind::RawBytes { .. } => json::write_base64(element, out),
        DataTypeKind::Utf32 { .. } => {
            let words = element
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&word| u32::from_le_bytes(word));
            let text =
                words.map(|word| char::from_u32(word).unwrap_or(char::REPLACEMENT_CHARACTER));
            let text: String = text.collect();
            json::write_string(text.trim_end_matches('\0').as_bytes(), out);
        }
        // The length precedes the text.
        DataTypeKind::Text => json::write_string(element.get(4..).unwrap_or_default(), out),
    }
    Ok(())
}

/// Parses a little-endian integer of at most eight bytes.
fn parse_integer(element: &[u8], signed: bool) -> Integer {
    let is_negative = signed && element.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut bytes = [if is_negative { 0xff } else { 0 }; 16];
    bytes[..element.len()].copy_from_slice(element);
    if signed {
        Integer::Signed(i128::from_le_bytes(bytes))
    } else {
        Integer::Unsigned(u128::from_le_bytes(bytes))
    }
}

/// Parses a little-endian floating-point number of two, four or eight bytes.
fn parse_float(element: &[u8]) -> Result<f64> {
    use h5fs_reader::model::Datatype;
    use h5fs_reader::model::datatype::{ByteOrder, Class};
    use h5fs_reader::model::number::float_value;
    let size = u8::try_from(element.len()).unwrap_or(8);
    let Class::Float(format) = Datatype::ieee(size, ByteOrder::Little).class else {
        return Err(Error::NotFound);
    };
    let number = float_value(element, &format).and_then(|real| real.as_f64());
    number.ok_or_else(|| Error::unsupported("fill value: a number beyond 64 bits", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_so_many_bytes_of_others() {
        for (rest, is_there) in [(0, true), (1, false)] {
            let attributes = vec![b' '; limits::ZARR_CONSOLIDATED_BYTES / 2];
            let before = {
                let mut document = begin_document("group");
                document
                    .add_key("attributes")
                    .extend_from_slice(&attributes);
                document.length()
            };
            let mut members = JsonObject::default();
            let length = limits::ZARR_CONSOLIDATED_BYTES - before + rest;
            members.add_key("a").resize(length, b' ');
            assert_eq!(members.length(), length);
            let text = String::from_utf8(group_document(&attributes, Some(members))).unwrap();
            assert_eq!(text.contains("consolidated_metadata"), is_there);
        }
    }
}

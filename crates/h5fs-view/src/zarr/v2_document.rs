//! The documents of Zarr version 2, which kerchunk's documents contain: `.zarray` and `.zgroup`
//! (<https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html>).

use h5fs_reader::error::Result;
use h5fs_reader::model::text::{JsonObject, write_json_list};
use h5fs_reader::model::value::TextContext;

use crate::zarr::array::ZarrArray;
use crate::zarr::codecs;
use crate::zarr::datatype::DataTypeKind;
use crate::zarr::document::write_fill_value;
use crate::zarr::grid::ChunkGridKind;
use crate::zarr::json;

/// Name of the document of an array.
pub const ARRAY_DOCUMENT: &[u8] = b".zarray";

/// Name of the document of a group.
pub const GROUP_DOCUMENT: &[u8] = b".zgroup";

/// Name of the document with the attributes of an array or a group.
pub const ATTRIBUTES_DOCUMENT: &[u8] = b".zattrs";

/// Name of the attribute with the names of an array's dimensions.
pub const DIMENSIONS_ATTRIBUTE: &[u8] = b"_ARRAY_DIMENSIONS";

/// Returns the document of a group.
pub fn group_document() -> Vec<u8> {
    let mut document = JsonObject::default();
    document.add_json("zarr_format", 2);
    document.finish().into_bytes()
}

/// Returns the document of an array. `fill_value` is an element of the file. Readers use it for
/// chunks that do not exist, and xarray takes elements with this value for missing. If it is a text,
/// `context` follows its pointer.
///
/// # Errors
/// Fails if the fill value cannot be read.
pub fn array_document(
    array: &ZarrArray,
    fill_value: Option<&[u8]>,
    context: &TextContext<'_>,
) -> Result<Vec<u8>> {
    let mut document = JsonObject::default();
    document.add_json("zarr_format", 2);
    document.add_json("shape", format_args!("{:?}", array.dims));
    document.add_json("chunks", format_args!("{:?}", array.chunk_shape));
    document.add_text("dtype", data_type_name(array));
    let value = document.add_key("fill_value");
    match fill_value {
        Some(stored) => {
            let mut element = Vec::new();
            array.data_type.convert(stored, context, &mut element)?;
            write_fill_value(&array.data_type, &element, value)?;
        }
        None => value.extend_from_slice(b"null"),
    }
    document.add_text("order", "C");
    let filters = match array.grid {
        ChunkGridKind::Referenced => codecs::referenced_filters(array).unwrap_or_default(),
        _ if array.data_type.kind == DataTypeKind::Text => {
            vec![r#"{"id": "vlen-utf8"}"#.to_owned()]
        }
        _ => Vec::new(),
    };
    document.add_json(
        "filters",
        match &*filters {
            [] => "null".to_owned(),
            filters => format!("[{}]", filters.join(", ")),
        },
    );
    document.add_json("compressor", "null");
    Ok(document.finish().into_bytes())
}

/// Returns the value of [`DIMENSIONS_ATTRIBUTE`].
pub fn dimensions_attribute(names: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    write_json_list(names, &mut out, |name, out| json::write_string(name, out));
    out
}

/// Returns the name of the data type, as NumPy writes it.
fn data_type_name(array: &ZarrArray) -> String {
    let is_big = array.grid == ChunkGridKind::Referenced && array.is_big_endian() == Some(true);
    let order = if is_big { '>' } else { '<' };
    match array.data_type.kind {
        DataTypeKind::Bool => "|b1".to_owned(),
        DataTypeKind::Integer { size: 1, signed } => format!("|{}1", integer_letter(signed)),
        DataTypeKind::Integer { size, signed } => {
            format!("{order}{}{size}", integer_letter(signed))
        }
        DataTypeKind::Float { size } => format!("{order}f{size}"),
        DataTypeKind::Complex { size } => format!("{order}c{size}"),
        DataTypeKind::NullTerminatedBytes { size } => format!("|S{size}"),
        DataTypeKind::RawBytes { size } => format!("|V{size}"),
        DataTypeKind::Utf32 { size } => format!("{order}U{}", size / 4),
        DataTypeKind::Text => "|O".to_owned(),
    }
}

fn integer_letter(signed: bool) -> char {
    if signed { 'i' } else { 'u' }
}

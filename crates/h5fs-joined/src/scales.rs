//! The attributes of the joined file's dimension scales (H5DS). They connect the dimensions of
//! arrays with their scales.

use std::collections::HashMap;

use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{Charset, Class, ReferenceKind, StringPadding};
use h5fs_reader::model::{Datatype, NodeId, Shape};
use h5fs_reader::wire::to_u64;

use crate::element_recoding::{JOINED_FILE_PREFIX, PREFIX_BYTES};
use crate::joined_array::JoinedArray;
use crate::members::content::text_list_attribute;
use crate::members::skeleton::NamedAttribute;
use crate::paths::{Path, split_path};

/// Returns the H5DS attributes of an array: `CLASS` and `NAME` of a dimension scale, and
/// `DIMENSION_LIST` and `DIMENSION_LABELS` of an array with dimensions.
pub(super) fn dimension_attributes(
    made: &JoinedArray,
    scales: &HashMap<Path, u32>,
) -> Vec<NamedAttribute> {
    let mut own = Vec::new();
    if made.is_scale {
        own.push((b"CLASS".to_vec(), terminated_text(b"DIMENSION_SCALE")));
        let name = split_path(&made.path).1;
        let length = made.dims.first().map_or(0, |dim| dim.length);
        let mark = "This is a netCDF dimension but not a netCDF variable.";
        let text = if made.is_scale_without_values {
            format!("{mark}{length:10}").into_bytes()
        } else {
            name.to_vec()
        };
        own.push((b"NAME".to_vec(), terminated_text(&text)));
    }
    let found: Vec<Option<u32>> = made
        .dims
        .iter()
        .map(|dim| scales.get(&dim.key).copied())
        .collect();
    let is_own = made.is_scale && made.dims.len() == 1;
    if !is_own && found.iter().any(Option::is_some) {
        own.push((b"DIMENSION_LIST".to_vec(), scale_list(&found)));
    }
    let labels = made
        .dims
        .iter()
        .zip(&found)
        .map(|(dim, found)| match found {
            None if dim.has_name => split_path(&dim.key).1.to_vec(),
            _ => Vec::new(),
        });
    let labels: Vec<Vec<u8>> = labels.collect();
    if labels.iter().any(|label| !label.is_empty()) {
        own.push((b"DIMENSION_LABELS".to_vec(), text_list_attribute(&labels)));
    }
    own
}

/// Returns a text attribute that ends with a NUL, as the HDF5 library writes it. The library
/// recognizes a dimension scale only if `CLASS` ends with a NUL.
fn terminated_text(text: &[u8]) -> AttributeContent {
    let elements = [text, b"\0"].concat();
    AttributeContent {
        datatype: Datatype {
            size: u32::try_from(elements.len()).unwrap_or(u32::MAX),
            class: Class::String {
                padding: StringPadding::NullTerminated,
                charset: Charset::Ascii,
            },
        },
        shape: Shape::fixed(Vec::new()),
        elements: elements.into(),
    }
}

/// Returns the value of the attribute `DIMENSION_LIST`, which refers to the scales of an array. For
/// each dimension, the value contains a sequence of one reference, or an empty sequence if the
/// dimension has no scale.
fn scale_list(scales: &[Option<u32>]) -> AttributeContent {
    let element = |scale: &Option<u32>| match scale {
        Some(number) => {
            let node = NodeId::from_index(*number).number().to_le_bytes();
            [JOINED_FILE_PREFIX, node].concat()
        }
        None => vec![0; 2 * PREFIX_BYTES],
    };
    let reference = Datatype {
        size: 8,
        class: Class::Reference(ReferenceKind::Object),
    };
    AttributeContent {
        datatype: Datatype {
            size: 16,
            class: Class::VariableLength(Box::new(reference)),
        },
        shape: Shape::fixed(vec![to_u64(scales.len())]),
        elements: scales.iter().flat_map(element).collect(),
    }
}

/// Returns the value of an attribute that refers to the object of the joined file with this node
/// number.
pub(super) fn reference_attribute(number: u32) -> AttributeContent {
    AttributeContent {
        datatype: Datatype {
            size: 8,
            class: Class::Reference(ReferenceKind::Object),
        },
        shape: Shape::fixed(Vec::new()),
        elements: NodeId::from_index(number).number().to_le_bytes().into(),
    }
}

/// Returns the content of a variable-length sequence that only the joined file has, such as an
/// element of `DIMENSION_LIST`: one reference. Returns `None` for a sequence that comes from a
/// member.
pub(super) fn joined_file_sequence(element: &[u8]) -> Option<&[u8]> {
    let (prefix, own) = element.split_first_chunk::<PREFIX_BYTES>()?;
    (*prefix == JOINED_FILE_PREFIX).then_some(own)
}

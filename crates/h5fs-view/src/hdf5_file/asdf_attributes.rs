//! Attributes of the computed file for what an ASDF file has in other places: the unit of a
//! quantity, the number that marks missing elements, and the text of the tree.

use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{ByteOrder, Class};
use h5fs_reader::model::extras::Mask;
use h5fs_reader::model::link::LinkTarget;
use h5fs_reader::model::number::ieee_bytes;
use h5fs_reader::model::{
    AsdfExtras, Attribute, Container, Datatype, Node, NodeId, NodeKind, Shape,
};
use h5fs_reader::source::read_block;

use crate::elements::missing::parse_mask_number;
use crate::hdf5_file::scalar::text_datatype;

/// Name of the root attribute with the text of an ASDF tree.
const TREE: &[u8] = b"_asdf_tree";

/// Maximum bytes of an attribute's text. A message has at most 64 KiB.
const LONGEST_TEXT: u64 = 60_000;

/// Returns the attribute `_asdf_tree` of the root: the text of the ASDF tree. Returns `None` for an
/// HDF5 file, and for a text that is too long for an attribute.
///
/// # Errors
/// Fails if the text cannot be read now.
pub(super) fn tree_attribute(container: &dyn Container) -> Result<Option<Attribute>> {
    let text = container.asdf_extras().and_then(AsdfExtras::tree_text);
    let Some(text) = text.filter(|text| text.extent.length() <= LONGEST_TEXT) else {
        return Ok(None);
    };
    let (at, length) = (text.extent.start(), text.extent.length());
    let text = ignore_permanent(read_block(&*text.source, at, length, "tree"))?;
    Ok(text.map(|text| text_attribute(TREE, text)))
}

/// Returns the attribute `_FillValue` of an ndarray whose missing elements have one number. Returns
/// `None` for any other ndarray.
///
/// # Errors
/// Fails if the mask cannot be read now.
pub(super) fn fill_value_attribute(
    container: &dyn Container,
    node: &Node,
) -> Result<Option<Attribute>> {
    let (Some(extras), Some(array)) = (container.asdf_extras(), node.array()) else {
        return Ok(None);
    };
    let Some(Some(Mask::Number(text))) = ignore_permanent(extras.mask(node.id))? else {
        return Ok(None);
    };
    Ok(
        encode_number(&text, &array.datatype).map(|elements| Attribute {
            name: b"_FillValue".to_vec(),
            content: Ok(AttributeContent {
                datatype: array.datatype.clone(),
                shape: Shape::fixed(Vec::new()),
                elements: elements.into(),
            }),
        }),
    )
}

/// Returns the attribute `units` for the ndarray `value` of the quantity `group`. Returns `None` if
/// the group is no quantity with a unit.
///
/// # Errors
/// Fails if the unit cannot be read now.
pub(super) fn units_attribute(
    container: &dyn Container,
    group: NodeId,
) -> Result<Option<Attribute>> {
    if container.asdf_extras().is_none() || !is_quantity(&*container.node(group)?) {
        return Ok(None);
    }
    let unit = match container.link(group, b"unit")?.map(|link| link.target) {
        Some(LinkTarget::Hard(unit) | LinkTarget::Alias(unit)) => container.node(unit)?,
        Some(LinkTarget::Damaged(error)) => return Err(error),
        _ => return Ok(None),
    };
    Ok(match &unit.kind {
        NodeKind::Scalar(scalar) if !scalar.text.is_empty() => {
            Some(text_attribute(b"units", scalar.text.clone().into_bytes()))
        }
        _ => None,
    })
}

/// Returns whether the ASDF tag of a mapping is the tag of a quantity: a number or an ndarray with
/// a unit.
fn is_quantity(node: &Node) -> bool {
    node.tag.as_deref().is_some_and(|tag| {
        let name = tag.rsplit_once('-').map_or(tag, |(name, _)| name);
        name.ends_with("unit/quantity")
    })
}

fn text_attribute(name: &[u8], text: Vec<u8>) -> Attribute {
    Attribute {
        name: name.to_vec(),
        content: Ok(AttributeContent {
            datatype: text_datatype(text.len()),
            shape: Shape::fixed(Vec::new()),
            elements: text.into(),
        }),
    }
}

/// Returns the element of a numeric type for the number in `text`, or `None` if the type cannot
/// express it.
fn encode_number(text: &[u8], datatype: &Datatype) -> Option<Vec<u8>> {
    let size = datatype.size;
    let (mut bytes, order) = match &datatype.class {
        Class::Integer { order, signed, .. } if (1..=8).contains(&size) => {
            let number: i128 = str::from_utf8(text).ok()?.trim().parse().ok()?;
            let bits = 8 * size;
            let range = match signed {
                true => -(1_i128 << (bits - 1))..1 << (bits - 1),
                false => 0..1 << bits,
            };
            let bytes = range.contains(&number).then(|| number.to_le_bytes())?;
            (bytes.to_vec(), *order)
        }
        Class::Float(format) if ieee_bytes(size, format).is_some() => {
            let number = parse_mask_number(text).ok()?;
            let bytes = match size {
                4 => (number as f32).to_le_bytes().to_vec(),
                8 => number.to_le_bytes().to_vec(),
                _ => return None,
            };
            (bytes, format.order)
        }
        _ => return None,
    };
    bytes.truncate(usize::try_from(size).ok()?);
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_encoded_as_an_element_of_the_type() {
        let integer = |size, signed, order| Datatype::integer(size, signed, order);
        let short = integer(2, true, ByteOrder::Big);
        assert_eq!(encode_number(b"-2", &short), Some(vec![0xff, 0xfe]));
        assert_eq!(encode_number(b"40000", &short), None);
        let byte = integer(1, false, ByteOrder::Little);
        assert_eq!(encode_number(b" 255", &byte), Some(vec![255]));
        let float = Datatype::ieee(4, ByteOrder::Little);
        assert_eq!(
            encode_number(b"-1.5", &float),
            Some((-1.5_f32).to_le_bytes().to_vec())
        );
        let nan = encode_number(b".nan", &Datatype::ieee(8, ByteOrder::Big)).unwrap();
        assert!(f64::from_be_bytes(nan.try_into().unwrap()).is_nan());
    }
}

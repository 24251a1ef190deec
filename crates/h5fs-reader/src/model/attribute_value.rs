//! The values of attributes that mark objects for conventions: texts, numbers, references.
//!
//! A missing attribute, or one of another class, does not have such a value. An attribute that
//! exists but cannot be read is an error that names it, because the result without it may be wrong.
//! An attribute list that cannot be read to its end is also an error, because the list may have
//! contained the attribute.

use crate::error::{Error, Result, quote};
use crate::limits;
use crate::model::attribute::AttributeContent;
use crate::model::datatype::{Class, Datatype};
use crate::model::number::{self, Integer};
use crate::model::value::{TextContext, ValueWriter};
use crate::model::{Container, NodeId, Reference};
use crate::wire::{Count, to_u64, to_usize};

/// Returns the type, extent and elements of the attribute called `name`. Returns `None` if the
/// attribute does not exist.
///
/// # Errors
/// Fails if the attribute exists but cannot be read.
pub fn attribute_content(
    container: &dyn Container,
    node: NodeId,
    name: &[u8],
) -> Result<Option<AttributeContent>> {
    let attribute = container.attribute(node, name);
    let content = attribute.and_then(|found| found.map(|found| found.content).transpose());
    content.map_err(|error| with_attribute_name(error, name))
}

/// Returns whether an attribute called `name` exists, whatever its content.
///
/// # Errors
/// Fails if the attributes cannot be read.
pub fn attribute_exists(container: &dyn Container, node: NodeId, name: &[u8]) -> Result<bool> {
    let attribute = container.attribute(node, name);
    let attribute = attribute.map_err(|error| with_attribute_name(error, name))?;
    Ok(attribute.is_some())
}

/// Adds an attribute's name to the error of its content.
pub fn with_attribute_name(error: Error, name: &[u8]) -> Error {
    error.with_context(format_args!("attribute {}", quote(name)))
}

/// Returns the text of the attribute called `name` of `node`. Returns `None` if the attribute does
/// not exist or is not a single string.
///
/// # Errors
/// Fails as [`attribute_content`] does.
pub fn attribute_text(
    container: &dyn Container,
    node: NodeId,
    name: &[u8],
) -> Result<Option<Vec<u8>>> {
    let texts = attribute_texts(container, node, name)?.unwrap_or_default();
    Ok(<[_; 1]>::try_from(texts).ok().map(|[text]| text))
}

/// Returns the texts of the attribute called `name` of `node`. Returns `None` if the attribute does
/// not exist or does not consist of strings.
///
/// # Errors
/// Fails as [`attribute_content`] does.
pub fn attribute_texts(
    container: &dyn Container,
    node: NodeId,
    name: &[u8],
) -> Result<Option<Vec<Vec<u8>>>> {
    let Some(content) = attribute_content(container, node, name)? else {
        return Ok(None);
    };
    match content.datatype.class {
        Class::String { .. } | Class::VariableString { .. } => {
            let texts = decode_strings(container, &content.datatype, &content.elements);
            texts
                .map(Some)
                .map_err(|error| with_attribute_name(error, name))
        }
        _ => Ok(None),
    }
}

/// Returns the texts of `elements`, stored strings of `datatype`. Together, they may take at most
/// [`limits::ATTRIBUTE_TEXT`] bytes of memory.
///
/// # Errors
/// `Limit` for longer texts. The container's error for an invalid pointer.
pub fn decode_strings(
    container: &dyn Container,
    datatype: &Datatype,
    elements: &[u8],
) -> Result<Vec<Vec<u8>>> {
    let writer = ValueWriter::new(datatype)?;
    let context = TextContext::new(container, &|_| Ok(None), limits::ATTRIBUTE_TEXT);
    let mut left = limits::ATTRIBUTE_TEXT;
    let each = elements.chunks_exact(writer.size().max(1));
    each.map(|element| {
        let mut text = Vec::new();
        writer.write_text(element, &context, &mut text)?;
        // A string of one byte takes as much memory as one of fifty.
        let taken = text.len().plus(size_of::<Vec<u8>>());
        left = left.checked_sub(taken).ok_or_else(|| {
            let most = to_u64(limits::ATTRIBUTE_TEXT);
            Error::limit("texts of an attribute", most)
        })?;
        Ok(text)
    })
    .collect()
}

/// Returns the numbers of the attribute called `name` of `node`. Returns `None` if the attribute
/// does not exist or does not consist of integers.
///
/// # Errors
/// Fails as [`attribute_content`] does.
pub fn attribute_integers(
    container: &dyn Container,
    node: NodeId,
    name: &[u8],
) -> Result<Option<Vec<i128>>> {
    let Some(content) = attribute_content(container, node, name)? else {
        return Ok(None);
    };
    check_value_count(&content)?;
    Ok(decode_integers(&content.datatype, &content.elements))
}

/// Checks that an attribute that a convention defines does not have too many values.
///
/// # Errors
/// `Limit` for more than [`limits::MARKS`] values.
pub fn check_value_count(content: &AttributeContent) -> Result<()> {
    let most = to_u64(limits::MARKS);
    let size = u64::from(content.datatype.size).max(1);
    match to_u64(content.elements.len()).div_ceil(size) {
        count if count <= most => Ok(()),
        _ => Err(Error::limit("values of an attribute of a convention", most)),
    }
}

/// Returns the values of stored integers of `datatype`. Returns `None` for another class of
/// datatype, or if a value does not fit into 128 bits with a sign.
pub fn decode_integers(datatype: &Datatype, elements: &[u8]) -> Option<Vec<i128>> {
    let Class::Integer {
        order,
        signed,
        bits,
    } = datatype.class
    else {
        return None;
    };
    let size = to_usize(datatype.size.into()).ok()?;
    let each = elements.chunks_exact(size.max(1));
    each.map(
        |element| match number::decode_integer(element, order, signed, bits)? {
            Integer::Signed(number) => Some(number),
            Integer::Unsigned(number) => i128::try_from(number).ok(),
        },
    )
    .collect()
}

/// Returns the target nodes of the object references in the attribute called `name` of `node`, or
/// an empty list if the attribute does not exist. If an element is a sequence of references, its
/// first reference is used. A reference without a target is `None`.
///
/// # Errors
/// Fails as [`attribute_content`] does.
pub fn reference_targets(
    container: &dyn Container,
    node: NodeId,
    name: &[u8],
) -> Result<Vec<Option<NodeId>>> {
    let Some(content) = attribute_content(container, node, name)? else {
        return Ok(Vec::new());
    };
    check_value_count(&content)?;
    let size = to_usize(content.datatype.size.into())?;
    let elements = content.elements.chunks_exact(size.max(1));
    let targets = elements.map(|element| reference_target(container, &content.datatype, element));
    let targets: Result<_> = targets.collect();
    targets.map_err(|error| with_attribute_name(error, name))
}

/// Returns the target node of the object reference that is element `number` of an attribute.
/// Returns `None` if the attribute or the element does not exist, or if the reference lacks a valid
/// target. Reads no other element.
///
/// # Errors
/// Fails as [`attribute_content`] does.
pub fn reference_target_at(
    container: &dyn Container,
    node: NodeId,
    name: &[u8],
    number: usize,
) -> Result<Option<NodeId>> {
    let Some(content) = attribute_content(container, node, name)? else {
        return Ok(None);
    };
    let size = to_usize(content.datatype.size.into())?;
    let Some(element) = content.elements.chunks_exact(size.max(1)).nth(number) else {
        return Ok(None);
    };
    let reference = first_reference(container, &content.datatype, element);
    Ok(
        match reference.map_err(|error| with_attribute_name(error, name))? {
            Some(Reference::Object(node)) => Some(node),
            _ => None,
        },
    )
}

/// Returns the target node of a stored object reference, or of the first one of a sequence of
/// references. Returns `None` for a null reference and for an element that is not an object
/// reference. Fails with `Corrupt` for a dangling reference.
pub(crate) fn reference_target(
    container: &dyn Container,
    datatype: &Datatype,
    element: &[u8],
) -> Result<Option<NodeId>> {
    match first_reference(container, datatype, element)? {
        Some(Reference::Object(node)) => Ok(Some(node)),
        Some(Reference::Dangling(at)) => Err(Error::corrupt("a dangling reference", at)),
        _ => Ok(None),
    }
}

/// Returns the target of a stored reference, or of the first reference of a sequence. Returns
/// `None` for an empty sequence and for any other datatype.
fn first_reference(
    container: &dyn Container,
    datatype: &Datatype,
    element: &[u8],
) -> Result<Option<Reference>> {
    match &datatype.class {
        Class::Reference(kind) => container.reference(*kind, element).map(Some),
        Class::VariableLength(base) if matches!(base.class, Class::Reference(_)) => {
            let size = u64::from(base.size);
            match container.read_variable_length(element, size, 0..size)? {
                // The sequence may be empty, because a dimension may be without a scale.
                Some(first) if !first.is_empty() => first_reference(container, base, &first),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::datatype::{ByteOrder, Charset, ReferenceKind, StringPadding};
    use crate::testing::{Heap, int, type_of};

    #[test]
    fn strings_of_both_kinds() {
        let (padding, charset) = (StringPadding::NullPadded, Charset::Utf8);
        let fixed = type_of(3, Class::String { padding, charset });
        let texts = |datatype, elements: &[u8]| {
            let heap = Heap(vec![b"long text".to_vec()]);
            let texts = decode_strings(&heap, datatype, elements).unwrap();
            let texts = texts
                .into_iter()
                .map(|text| String::from_utf8(text).unwrap());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(texts(&fixed, b"a\0\0bcd"), ["a", "bcd"]);
        let variable = type_of(1, Class::VariableString { padding, charset });
        assert_eq!(texts(&variable, &[0, 9]), ["long text", ""]);
    }

    #[test]
    fn too_long_strings_together() {
        let (padding, charset) = (StringPadding::NullPadded, Charset::Ascii);
        let variable = type_of(1, Class::VariableString { padding, charset });
        let most = limits::ATTRIBUTE_TEXT - size_of::<Vec<u8>>();
        let heap = Heap(vec![vec![b'x'; most]]);
        assert!(decode_strings(&heap, &variable, &[0]).is_ok());
        assert!(matches!(
            decode_strings(&heap, &variable, &[0, 0]),
            Err(Error::Limit { .. })
        ));
    }

    #[test]
    fn many_short_strings() {
        let (padding, charset) = (StringPadding::NullPadded, Charset::Ascii);
        let fixed = type_of(1, Class::String { padding, charset });
        let texts = |count| decode_strings(&Heap(Vec::new()), &fixed, &vec![b'x'; count]);
        assert_eq!(texts(65_536).unwrap().len(), 65_536);
        assert!(matches!(
            texts(limits::ATTRIBUTE_TEXT),
            Err(Error::Limit { .. })
        ));
    }

    #[test]
    fn numbers_of_integers_only() {
        assert_eq!(decode_integers(&int(1), &[1, 0xFF]), Some(vec![1, -1]));
        let float = Datatype::ieee(4, ByteOrder::Little);
        assert_eq!(decode_integers(&float, &[0; 4]), None);
    }

    #[test]
    fn the_first_of_each_sequence_of_references() {
        let reference = type_of(1, Class::Reference(ReferenceKind::Object));
        let list = type_of(1, Class::VariableLength(Box::new(reference.clone())));
        let heap = Heap(vec![vec![7, 8], vec![0]]);
        assert_eq!(
            reference_target(&heap, &reference, &[5]),
            Ok(Some(NodeId::for_test(5)))
        );
        assert_eq!(
            reference_target(&heap, &list, &[0]),
            Ok(Some(NodeId::for_test(7)))
        );
        assert_eq!(reference_target(&heap, &list, &[1]), Ok(None));
        assert_eq!(reference_target(&heap, &list, &[2]), Ok(None));
    }
}

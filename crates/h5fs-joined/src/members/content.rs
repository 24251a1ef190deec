//! Reads values of members in a form that is independent of the member's file: for example,
//! variable-length texts are copied out of the file's heap.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use h5fs_reader::array::{Engine, Reader};
use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::attribute_value::{decode_integers, decode_strings};
use h5fs_reader::model::datatype::{ByteOrder, Charset, Class, StringPadding};
use h5fs_reader::model::{Array, Container, Datatype, NodeId, Scalar, Shape};
use h5fs_reader::wire::{Count, to_u64, to_usize};
use serde::{Deserialize, Serialize};

use crate::limits;

/// The elements of one variable of a member, or a summary of them, as far as the scan read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ElementSummary {
    /// The elements were not read.
    NotRead,
    /// Two hashes of all elements, which were read only for comparisons. The elements themselves
    /// were discarded.
    Hash([u64; 2]),
    /// The bytes of the first and the last element, and two hashes of all elements.
    EndsAndHash(Arc<[u8]>, [u64; 2]),
    /// The bytes of all elements. Variable-length texts are padded to the length of the longest
    /// one.
    Elements(Arc<[u8]>),
}

/// A scalar value of an ASDF tree. The joined file contains it if it is equal in all members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TreeScalar(pub(crate) Scalar);

impl Eq for TreeScalar {}

impl ElementSummary {
    /// Returns two hashes of all elements, or `None` if the elements were not read.
    pub(crate) fn hash(&self) -> Option<[u64; 2]> {
        match self {
            ElementSummary::NotRead => None,
            ElementSummary::Hash(hash) | ElementSummary::EndsAndHash(_, hash) => Some(*hash),
            ElementSummary::Elements(elements) => Some(hash_pair(elements)),
        }
    }

    /// Returns the bytes of all elements, or `None` if the summary does not contain them.
    pub(crate) fn all_elements(&self) -> Option<&Arc<[u8]>> {
        match self {
            ElementSummary::Elements(elements) => Some(elements),
            _ => None,
        }
    }
}

/// Verifies the checksum of the block that contains an array, if the block has one.
///
/// # Errors
/// `Corrupt` if the checksum differs. Fails if the block cannot be read.
pub(crate) fn verify(engine: &Arc<Engine>, container: &dyn Container, array: NodeId) -> Result<()> {
    container.asdf_extras().map_or(Ok(()), |extras| {
        extras.verify_array(array, &|array, visit| {
            Reader::new(engine, Arc::clone(array))?.read_all(visit)
        })
    })
}

/// Reads an array of numbers. Returns the bytes of the first and the last element, and two hashes
/// of all elements.
///
/// # Errors
/// `Limit` if the elements are not plain numbers, or there are too many. Fails if they cannot be
/// read.
pub(crate) fn summarize_ends(engine: &Arc<Engine>, array: &Arc<Array>) -> Result<ElementSummary> {
    let size = u64::from(array.datatype.size);
    let length = array.byte_length()?;
    if size > 8 || array.datatype.has_pointers() || length > limits::JOINED_LONG {
        let most = limits::JOINED_LONG;
        return Err(Error::limit("joined: bytes of a coordinate", most));
    }
    let reader = Reader::new(engine, Arc::clone(array))?;
    let mut hashers = [0_u8, 1].map(|seed| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        hasher
    });
    reader.read_all(&mut |part| hashers.iter_mut().for_each(|hasher| hasher.write(part)))?;
    let hash = hashers.map(|hasher| hasher.finish());
    let [first, last] = [0, length.minus_or_zero(size)].map(|at| reader.read(at, size as usize));
    let both = [&first?[..], &last?[..]].concat();
    Ok(ElementSummary::EndsAndHash(both.into(), hash))
}

/// Reads an index array, each element of which is the end of a list in another array of `entries`
/// elements. Returns the last end with two hashes of all elements. Returns `NotRead` if the
/// elements decrease or the last one differs from `entries`. If `begins` is set, the first element
/// must be 0.
///
/// # Errors
/// Fails if the elements cannot be read.
pub(crate) fn summarize_index(
    engine: &Arc<Engine>,
    array: &Arc<Array>,
    entries: u64,
    begins: bool,
) -> Result<ElementSummary> {
    let size = to_usize(array.datatype.size.into())?.max(1);
    let length = array.byte_length()?;
    if length > limits::JOINED_LONG {
        return Ok(ElementSummary::NotRead);
    }
    let mut check = IndexCheck {
        last: None,
        is_sound: true,
        begins,
    };
    let mut hashers = [0_u8, 1].map(|seed| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        hasher
    });
    let mut rest: Vec<u8> = Vec::new();
    if length > 0 {
        Reader::new(engine, Arc::clone(array))?.read_all(&mut |part| {
            hashers.iter_mut().for_each(|hasher| hasher.write(part));
            rest.extend_from_slice(part);
            let whole = rest.len() - rest.len() % size;
            check.add(&array.datatype, rest.get(..whole).unwrap_or_default());
            rest.drain(..whole);
        })?;
    }
    if !check.ends_at(entries) {
        return Ok(ElementSummary::NotRead);
    }
    let hash = hashers.map(|hasher| hasher.finish());
    Ok(ElementSummary::EndsAndHash(
        entries.to_le_bytes().into(),
        hash,
    ))
}

/// The check that the elements of an index array never decrease.
struct IndexCheck {
    last: Option<i128>,
    is_sound: bool,
    begins: bool,
}

impl IndexCheck {
    fn add(&mut self, datatype: &Datatype, elements: &[u8]) {
        let Some(numbers) = decode_integers(datatype, elements) else {
            self.is_sound = false;
            return;
        };
        for number in numbers {
            self.is_sound &= match self.last {
                None if self.begins => number == 0,
                None => number >= 0,
                Some(last) => number >= last,
            };
            self.last = Some(number);
        }
    }

    fn ends_at(&self, entries: u64) -> bool {
        let last = match self.last {
            None if self.begins => return false,
            last => last.unwrap_or(0),
        };
        self.is_sound && last == i128::from(entries)
    }
}

/// Returns two independent hashes of `bytes`, so that different bytes practically never have the
/// same hashes.
pub(crate) fn hash_pair(bytes: &[u8]) -> [u64; 2] {
    [0_u8, 1].map(|seed| {
        let mut hasher = DefaultHasher::new();
        (seed, bytes).hash(&mut hasher);
        hasher.finish()
    })
}

/// Returns a copy of an attribute's value that contains no pointers into the member's file. Returns
/// `None` if the value points to other objects.
///
/// # Errors
/// Fails if a text cannot be read.
pub(crate) fn copy_attribute(
    container: &dyn Container,
    content: AttributeContent,
) -> Result<Option<AttributeContent>> {
    if matches!(content.datatype.class, Class::VariableString { .. }) {
        let texts = decode_strings(container, &content.datatype, &content.elements)?;
        let (datatype, elements) = pad_texts(&texts)?;
        return Ok(Some(AttributeContent {
            datatype,
            shape: content.shape,
            elements,
        }));
    }
    Ok((!content.datatype.has_pointers()).then_some(content))
}

/// Converts the result of reading elements that are only compared. Returns `None` if the elements
/// are in a file that this mount must not show, because a later read of these elements fails
/// anyway.
///
/// # Errors
/// Fails with any other error of `read`.
pub(crate) fn ignore_hidden_elements(read: Result<Option<Arc<[u8]>>>) -> Result<Option<Arc<[u8]>>> {
    match read {
        Err(Error::Io {
            cause: Cause::Forbidden,
            ..
        }) => Ok(None),
        read => read,
    }
}

/// Returns the bytes of all elements of a member's array. Returns `None` if they contain pointers
/// to data that cannot be copied.
///
/// # Errors
/// Fails if the elements cannot be read.
pub(crate) fn read_elements(
    engine: &Arc<Engine>,
    container: &dyn Container,
    array: &Arc<Array>,
) -> Result<Option<Arc<[u8]>>> {
    let is_text = matches!(array.datatype.class, Class::VariableString { .. });
    if array.datatype.has_pointers() && !is_text {
        return Ok(None);
    }
    let length = to_usize(array.byte_length()?)?;
    let stored = if length == 0 {
        Arc::default()
    } else {
        let reader = Reader::new(engine, Arc::clone(array))?;
        reader.read(0, length)?[..].into()
    };
    if !is_text {
        return Ok(Some(stored));
    }
    let texts = decode_strings(container, &array.datatype, &stored)?;
    Ok(Some(pad_texts(&texts)?.1))
}

/// Pads texts to the length of the longest one.
///
/// # Errors
/// `Limit` if the padded texts have too many bytes.
pub(crate) fn pad_texts(texts: &[Vec<u8>]) -> Result<(Datatype, Arc<[u8]>)> {
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let bytes = longest.saturating_mul(texts.len());
    Error::check_limit(
        to_u64(bytes),
        limits::JOINED_INLINE,
        "joined: bytes of texts of one length",
    )?;
    let mut elements = Vec::with_capacity(bytes);
    for text in texts {
        elements.extend_from_slice(text);
        elements.resize(elements.len() + longest - text.len(), 0);
    }
    Ok((text_type(longest), elements.into()))
}

/// Returns the type of fixed-length texts with this length in bytes.
pub(crate) fn text_type(length: usize) -> Datatype {
    Datatype {
        size: u32::try_from(length).unwrap_or(u32::MAX),
        class: Class::String {
            padding: StringPadding::NullPadded,
            charset: Charset::Utf8,
        },
    }
}

/// Returns the value of an attribute that contains one text.
pub(crate) fn text_attribute(text: &[u8]) -> AttributeContent {
    AttributeContent {
        datatype: text_type(text.len().max(1)),
        shape: Shape::fixed(Vec::new()),
        elements: if text.is_empty() {
            [0].into()
        } else {
            text.into()
        },
    }
}

/// Returns the value of an attribute that contains a list of texts. Omits the texts beyond the size
/// limit.
pub(crate) fn text_list_attribute(texts: &[Vec<u8>]) -> AttributeContent {
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let fit = limits::ATTRIBUTE_TEXT / longest;
    let texts = texts.get(..fit).unwrap_or(texts);
    let (datatype, elements) = pad_texts(texts).unwrap_or_else(|_| (text_type(1), Arc::default()));
    let shape = Shape::fixed(vec![to_u64(elements.len() / datatype.size as usize)]);
    AttributeContent {
        datatype,
        shape,
        elements,
    }
}

/// Returns the value of an attribute that contains one number.
pub(crate) fn number_attribute(number: u64) -> AttributeContent {
    AttributeContent {
        datatype: Datatype::integer(8, true, ByteOrder::Little),
        shape: Shape::fixed(Vec::new()),
        elements: number.to_le_bytes().into(),
    }
}

/// Returns the text of a fixed-length element without its padding.
pub(crate) fn trim_padding(element: &[u8]) -> &[u8] {
    let end = element.iter().rposition(|byte| !matches!(byte, 0 | b' '));
    &element[..end.map_or(0, |end| end + 1)]
}

/// Returns the text of an attribute, if its value is one fixed-length text.
pub(crate) fn attribute_text(content: &AttributeContent) -> Option<&[u8]> {
    let is_text = matches!(content.datatype.class, Class::String { .. });
    let is_short = content.elements.len() <= limits::ATTRIBUTE_TEXT;
    let is_one = content.shape.elements() == Ok(1);
    (is_text && is_short && is_one).then(|| trim_padding(&content.elements))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index may repeat a value, but never decreases, and its last value is the number of
    /// entries.
    #[test]
    fn an_invalid_index_is_detected() {
        let byte = Datatype::integer(1, false, ByteOrder::Little);
        let is_sound = |elements: &[u8], entries, begins| {
            let mut check = IndexCheck {
                last: None,
                is_sound: true,
                begins,
            };
            elements.chunks(2).for_each(|part| check.add(&byte, part));
            check.ends_at(entries)
        };
        assert!(is_sound(&[2, 2, 5], 5, false) && is_sound(&[0, 2, 2, 5], 5, true));
        assert!(!is_sound(&[2, 1, 5], 5, false) && !is_sound(&[0, 3, 2, 5], 5, true));
        assert!(!is_sound(&[2, 4], 5, false) && !is_sound(&[1, 5], 5, true));
        assert!(is_sound(&[], 0, false) && !is_sound(&[], 3, false) && !is_sound(&[], 0, true));
    }
}

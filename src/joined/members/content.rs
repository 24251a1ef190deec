//! Values that stand by themselves: what the file keeps elsewhere, as texts of variable length, is
//! part of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::array::{Engine, Reader};
use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::model::attribute::AttributeContent;
use crate::model::attribute_value::{numbers, strings};
use crate::model::datatype::{ByteOrder, Charset, Class, StringPadding};
use crate::model::{Array, Container, Datatype, NodeId, Scalar, Shape};
use crate::wire::{Count, to_u64, to_usize};

/// What is known of the elements of a variable of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::joined) enum Known {
    /// Nothing: they were not read.
    Nothing,
    /// Two hashes of them: they were compared, and not kept.
    Hash([u64; 2]),
    /// The first and the last of many, and two hashes of all.
    Ends(Arc<[u8]>, [u64; 2]),
    /// They themselves. Texts stand one behind another in pieces of the same length.
    Elements(Arc<[u8]>),
}

/// A scalar of the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::joined) struct Same(pub(in crate::joined) Scalar);

impl Eq for Same {}

impl Known {
    /// What tells these elements from others, once they were read.
    pub(in crate::joined) fn hash(&self) -> Option<[u64; 2]> {
        match self {
            Known::Nothing => None,
            Known::Hash(hash) | Known::Ends(_, hash) => Some(*hash),
            Known::Elements(elements) => Some(hashes(elements)),
        }
    }

    /// The elements, where they were kept.
    pub(in crate::joined) fn elements(&self) -> Option<&Arc<[u8]>> {
        match self {
            Known::Elements(elements) => Some(elements),
            _ => None,
        }
    }
}

/// Compares the block that the elements of an array are in with its checksum, if it has one.
///
/// # Errors
/// `Corrupt` where it has another; fails if it cannot be read.
pub(in crate::joined) fn verify(
    engine: &Arc<Engine>,
    container: &dyn Container,
    array: NodeId,
) -> Result<()> {
    container.extras().map_or(Ok(()), |extras| {
        extras.verify_array(array, &|array, visit| {
            Reader::new(engine, Arc::clone(array))?.read_all(visit)
        })
    })
}

/// The first and the last element of an array of numbers, and hashes of all.
///
/// # Errors
/// `Limit` for elements that are no plain numbers, and for too many of them; fails if they cannot be
/// read.
pub(in crate::joined) fn ends(engine: &Arc<Engine>, array: &Arc<Array>) -> Result<Known> {
    let size = u64::from(array.datatype.size);
    let length = array.bytes()?;
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
    let [first, last] = [0, length.left_after(size)].map(|at| reader.read(at, size as usize));
    let both = [&first?[..], &last?[..]].concat();
    Ok(Known::Ends(both.into(), hash))
}

/// The ends of an index, each element of which is where a list of `entries` elements ends, and hashes of
/// all; `Nothing` where it decreases, or ends elsewhere. One that `begins` has a 0 before them.
///
/// # Errors
/// `Limit` for too many; fails if they cannot be read.
pub(in crate::joined) fn index(
    engine: &Arc<Engine>,
    array: &Arc<Array>,
    entries: u64,
    begins: bool,
) -> Result<Known> {
    let size = to_usize(array.datatype.size.into())?.max(1);
    let length = array.bytes()?;
    if length > limits::JOINED_LONG {
        return Ok(Known::Nothing);
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
            check.take(&array.datatype, rest.get(..whole).unwrap_or_default());
            rest.drain(..whole);
        })?;
    }
    if !check.ends_at(entries) {
        return Ok(Known::Nothing);
    }
    let hash = hashers.map(|hasher| hasher.finish());
    Ok(Known::Ends(entries.to_le_bytes().into(), hash))
}

/// Whether the elements of an index follow one another.
struct IndexCheck {
    last: Option<i128>,
    is_sound: bool,
    begins: bool,
}

impl IndexCheck {
    fn take(&mut self, datatype: &Datatype, elements: &[u8]) {
        let Some(numbers) = numbers(datatype, elements) else {
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

/// Two hashes of bytes, which no two pieces of data have by chance.
pub(in crate::joined) fn hashes(bytes: &[u8]) -> [u64; 2] {
    [0_u8, 1].map(|seed| {
        let mut hasher = DefaultHasher::new();
        (seed, bytes).hash(&mut hasher);
        hasher.finish()
    })
}

/// The value of an attribute by itself; `None` of one that points to other objects.
///
/// # Errors
/// Fails if a text cannot be read.
pub(in crate::joined) fn attribute(
    container: &dyn Container,
    content: AttributeContent,
) -> Result<Option<AttributeContent>> {
    if matches!(content.datatype.class, Class::VariableString { .. }) {
        let texts = strings(container, &content.datatype, &content.elements)?;
        let (datatype, elements) = padded(&texts)?;
        return Ok(Some(AttributeContent {
            datatype,
            shape: content.shape,
            elements,
        }));
    }
    Ok((!content.datatype.has_pointers()).then_some(content))
}

/// Returns elements that are compared with those of other members; `None` where they are in a file
/// that this mount may not show. Those are an error to whoever reads them.
///
/// # Errors
/// Fails with any other error of `read`.
pub(in crate::joined) fn compared(read: Result<Option<Arc<[u8]>>>) -> Result<Option<Arc<[u8]>>> {
    match read {
        Err(Error::Io {
            cause: Cause::Forbidden,
            ..
        }) => Ok(None),
        read => read,
    }
}

/// All elements of an array of a member; `None` where they point to what cannot be part of them.
///
/// # Errors
/// Fails if they cannot be read.
pub(in crate::joined) fn elements(
    engine: &Arc<Engine>,
    container: &dyn Container,
    array: &Arc<Array>,
) -> Result<Option<Arc<[u8]>>> {
    let is_text = matches!(array.datatype.class, Class::VariableString { .. });
    if array.datatype.has_pointers() && !is_text {
        return Ok(None);
    }
    let length = to_usize(array.bytes()?)?;
    let stored = if length == 0 {
        Arc::default()
    } else {
        let reader = Reader::new(engine, Arc::clone(array))?;
        reader.read(0, length)?[..].into()
    };
    if !is_text {
        return Ok(Some(stored));
    }
    let texts = strings(container, &array.datatype, &stored)?;
    Ok(Some(padded(&texts)?.1))
}

/// Texts as one type of fixed length has them.
///
/// # Errors
/// `Limit` where one of them is so long that all of its length are too many bytes.
pub(in crate::joined) fn padded(texts: &[Vec<u8>]) -> Result<(Datatype, Arc<[u8]>)> {
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let bytes = longest.saturating_mul(texts.len());
    if to_u64(bytes) > limits::JOINED_INLINE {
        let most = limits::JOINED_INLINE;
        return Err(Error::limit("joined: bytes of texts of one length", most));
    }
    let mut elements = Vec::with_capacity(bytes);
    for text in texts {
        elements.extend_from_slice(text);
        elements.resize(elements.len() + longest - text.len(), 0);
    }
    Ok((text_of(longest), elements.into()))
}

/// The type of texts of so many bytes.
pub(in crate::joined) fn text_of(length: usize) -> Datatype {
    Datatype {
        size: u32::try_from(length).unwrap_or(u32::MAX),
        class: Class::String {
            padding: StringPadding::NullPadded,
            charset: Charset::Utf8,
        },
    }
}

/// The value of an attribute that is one text.
pub(in crate::joined) fn one_text(text: &[u8]) -> AttributeContent {
    AttributeContent {
        datatype: text_of(text.len().max(1)),
        shape: Shape::fixed(Vec::new()),
        elements: if text.is_empty() {
            [0].into()
        } else {
            text.into()
        },
    }
}

/// The value of an attribute that is a list of texts; of no more than fit.
pub(in crate::joined) fn texts(texts: &[Vec<u8>]) -> AttributeContent {
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let fit = limits::ATTRIBUTE_TEXT / longest;
    let texts = texts.get(..fit).unwrap_or(texts);
    let (datatype, elements) = padded(texts).unwrap_or_else(|_| (text_of(1), Arc::default()));
    let shape = Shape::fixed(vec![to_u64(elements.len() / datatype.size as usize)]);
    AttributeContent {
        datatype,
        shape,
        elements,
    }
}

/// The value of an attribute that is one number.
pub(in crate::joined) fn one_number(number: u64) -> AttributeContent {
    AttributeContent {
        datatype: Datatype::integer(8, true, ByteOrder::Little),
        shape: Shape::fixed(Vec::new()),
        elements: number.to_le_bytes().into(),
    }
}

/// The text that one element of a type of fixed length is, without what fills it up.
pub(in crate::joined) fn trimmed(element: &[u8]) -> &[u8] {
    let end = element.iter().rposition(|byte| !matches!(byte, 0 | b' '));
    &element[..end.map_or(0, |end| end + 1)]
}

/// The text that the value of an attribute is, if it is one of fixed length.
pub(in crate::joined) fn text(content: &AttributeContent) -> Option<&[u8]> {
    let is_text = matches!(content.datatype.class, Class::String { .. });
    let is_short = content.elements.len() <= limits::ATTRIBUTE_TEXT;
    let is_one = content.shape.elements() == Ok(1);
    (is_text && is_short && is_one).then(|| trimmed(&content.elements))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index may stay where it is; it never goes back, and its end is the number of entries.
    #[test]
    fn an_index_that_decreases_or_ends_elsewhere_is_unsound() {
        let byte = Datatype::integer(1, false, ByteOrder::Little);
        let is_sound = |elements: &[u8], entries, begins| {
            let mut check = IndexCheck {
                last: None,
                is_sound: true,
                begins,
            };
            elements.chunks(2).for_each(|part| check.take(&byte, part));
            check.ends_at(entries)
        };
        assert!(is_sound(&[2, 2, 5], 5, false) && is_sound(&[0, 2, 2, 5], 5, true));
        assert!(!is_sound(&[2, 1, 5], 5, false) && !is_sound(&[0, 3, 2, 5], 5, true));
        assert!(!is_sound(&[2, 4], 5, false) && !is_sound(&[1, 5], 5, true));
        assert!(is_sound(&[], 0, false) && !is_sound(&[], 3, false) && !is_sound(&[], 0, true));
    }
}

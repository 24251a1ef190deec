//! Global heap collections, and the elements that point to their objects (HDF5 3.0, III.E).
//!
//! A collection consists of these parts:
//!
//! | part | length in bytes |
//! |---|---|
//! | [header of the collection](encode_collection_header) | [`HEADER_LENGTH`] |
//! | for each object: [header](encode_object_header), data, zeros | [`object_length`] |
//! | [free space](encode_free_space) | the rest of [`collection_length`] |
//!
//! A caller can compute any byte range of a collection from the lengths of its objects, without the
//! whole collection in memory. [`encode_collection`] is for small collections.

use crate::error::{Error, Result};
use crate::wire::{Count, to_u64, to_usize};

/// Number of bytes of the header of a collection, and also of the header of an object.
pub const HEADER_LENGTH: u64 = 16;

/// Maximum number of objects of a collection. The objects have the indices 1 to this number.
pub const MAX_OBJECTS: u16 = u16::MAX;

/// Minimum number of bytes of a collection.
const MIN_COLLECTION: u64 = 4096;

/// A variable-length element that points to no object.
pub const NULL_ELEMENT: [u8; 16] = [0; 16];

const WHAT: &str = "bytes of a global heap collection";

/// Returns the number of bytes of an object with `data_length` bytes of data: its header, its data,
/// and zeros up to a multiple of 8.
///
/// # Errors
/// `Limit` if the number exceeds 63 bits.
pub fn object_length(data_length: u64) -> Result<u64> {
    let padded = data_length.checked_next_multiple_of(8);
    checked_length(padded.and_then(|padded| padded.checked_add(HEADER_LENGTH)))
}

/// Returns the number of bytes of a collection whose objects have data of `data_lengths` bytes.
///
/// # Errors
/// `Limit` if the number exceeds 63 bits, or for more than [`MAX_OBJECTS`] objects.
pub fn collection_length(data_lengths: impl IntoIterator<Item = u64>) -> Result<u64> {
    used_length(data_lengths).map(|used| used.max(MIN_COLLECTION))
}

/// Returns the number of bytes of a collection without its free space.
fn used_length(data_lengths: impl IntoIterator<Item = u64>) -> Result<u64> {
    let mut used = HEADER_LENGTH;
    let mut count = 0_u64;
    for length in data_lengths {
        let most = u64::from(MAX_OBJECTS);
        Error::check_room(count, most, "objects of a global heap collection")?;
        count = count.plus_one();
        used = checked_length(used.checked_add(object_length(length)?))?;
    }
    Ok(used)
}

fn checked_length(length: Option<u64>) -> Result<u64> {
    const MOST: u64 = i64::MAX.unsigned_abs();
    let length = length.filter(|length| *length <= MOST);
    length.ok_or_else(|| Error::limit(WHAT, MOST))
}

/// Returns the header of a collection of `length` bytes, which is its [`collection_length`].
pub fn encode_collection_header(length: u64) -> [u8; 16] {
    const VERSION: u8 = 1;
    let [a, b, c, d, e, f, g, h] = length.to_le_bytes();
    [
        b'G', b'C', b'O', b'L', VERSION, 0, 0, 0, a, b, c, d, e, f, g, h,
    ]
}

/// Returns the header of an object with `data_length` bytes of data. The `index` is from 1 to
/// [`MAX_OBJECTS`].
pub fn encode_object_header(index: u16, data_length: u64) -> [u8; 16] {
    const REFERENCE_COUNT: u16 = 1;
    encode_header(index, REFERENCE_COUNT, data_length)
}

/// Returns the `length` bytes of the free space at the end of a collection: the header of object 0
/// if there is room for it, and zeros.
///
/// # Errors
/// `Limit` if the machine cannot address that many bytes.
pub fn encode_free_space(length: u64) -> Result<Vec<u8>> {
    let mut space = Vec::new();
    if length >= HEADER_LENGTH {
        space.extend(encode_header(0, 0, length));
    }
    space.resize(to_usize(length)?, 0);
    Ok(space)
}

fn encode_header(index: u16, reference_count: u16, size: u64) -> [u8; 16] {
    let [index_low, index_high] = index.to_le_bytes();
    let [count_low, count_high] = reference_count.to_le_bytes();
    let [a, b, c, d, e, f, g, h] = size.to_le_bytes();
    [
        index_low, index_high, count_low, count_high, 0, 0, 0, 0, a, b, c, d, e, f, g, h,
    ]
}

/// Returns the bytes of a collection of `objects`, whose indices are their positions from 1 on.
///
/// # Errors
/// Fails as [`collection_length`] does.
pub fn encode_collection(objects: &[&[u8]]) -> Result<Vec<u8>> {
    let lengths = || objects.iter().map(|object| to_u64(object.len()));
    let length = collection_length(lengths())?;
    let free = length.minus_or_zero(used_length(lengths())?);
    let mut collection = encode_collection_header(length).to_vec();
    for (index, object) in (1..=MAX_OBJECTS).zip(objects) {
        collection.extend(encode_object_header(index, to_u64(object.len())));
        collection.extend_from_slice(object);
        collection.resize(collection.len().next_multiple_of(8), 0);
    }
    collection.extend(encode_free_space(free)?);
    Ok(collection)
}

/// Returns a variable-length element of `count` base elements, or bytes of a text. They are the
/// data of object `index` of the collection at `collection`. An element without base elements is
/// [`NULL_ELEMENT`].
pub fn encode_element(count: u32, collection: u64, index: u16) -> [u8; 16] {
    let mut element = NULL_ELEMENT;
    let fields = count.to_le_bytes().into_iter();
    let fields = fields.chain(heap_id(collection, index));
    element
        .iter_mut()
        .zip(fields)
        .for_each(|(to, from)| *to = from);
    element
}

/// Returns the global heap ID of object `index` of the collection at `collection`.
fn heap_id(collection: u64, index: u16) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = collection.to_le_bytes();
    let [low, high] = index.to_le_bytes();
    [a, b, c, d, e, f, g, h, low, high, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The collection that h5py wrote for the strings "hé" and "cdé". The library leaves reference
    /// counts at 0, and the specification demands a positive count.
    #[test]
    fn the_bytes_equal_those_of_the_library() {
        let collection = encode_collection(&["hé".as_bytes(), "cdé".as_bytes()]).unwrap();
        let mut expected = b"GCOL\x01\0\0\0\0\x10\0\0\0\0\0\0".to_vec();
        expected.extend(b"\x01\0\x01\0\0\0\0\0\x03\0\0\0\0\0\0\0h\xc3\xa9\0\0\0\0\0");
        expected.extend(b"\x02\0\x01\0\0\0\0\0\x04\0\0\0\0\0\0\0cd\xc3\xa9\0\0\0\0");
        assert_eq!(collection[..expected.len()], expected);
        // Object 0 has all bytes from its own header on: 4096 - 64 = 0x0fc0.
        let free = &collection[expected.len()..];
        assert_eq!(free[..16], *b"\0\0\0\0\0\0\0\0\xc0\x0f\0\0\0\0\0\0");
        assert!(free[16..].iter().all(|byte| *byte == 0));
        assert_eq!(collection.len(), 4096);
    }

    /// The attribute value of a file that h5py wrote: a string of three bytes.
    #[test]
    fn an_element_has_a_length_and_an_object() {
        let expected = [3, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(encode_element(3, 0x800, 1), expected);
    }

    #[test]
    fn lengths_are_padded_sums() {
        let padded = [(0, 16), (1, 24), (8, 24), (9, 32)];
        for (data, length) in padded {
            assert_eq!(object_length(data), Ok(length));
        }
        assert_eq!(collection_length([]), Ok(4096));
        assert_eq!(collection_length([4064]), Ok(4096));
        assert_eq!(collection_length([4065]), Ok(4104));
        assert_eq!(collection_length([8; 200]), Ok(16 + 200 * 24));
    }

    /// Object 0 needs 16 bytes. A smaller rest is zeros, and a full collection has no rest.
    #[test]
    fn a_small_rest_has_no_header() {
        for (data, free) in [(4064, 0), (4056, 8), (4048, 16)] {
            let object = vec![7; data];
            let collection = encode_collection(&[&object]).unwrap();
            assert_eq!(collection.len(), 4096);
            let header = [0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0];
            let expected = if free < 16 {
                &[0; 8][..free]
            } else {
                &header[..]
            };
            assert_eq!(&collection[4096 - free..], expected);
        }
    }

    #[test]
    fn collections_that_no_index_covers_are_refused() {
        let many = usize::from(MAX_OBJECTS);
        assert!(collection_length(vec![1; many]).is_ok());
        let more = collection_length(vec![1; many + 1]);
        assert!(matches!(more, Err(Error::Limit { .. })));
        for lengths in [vec![u64::MAX], vec![1 << 62, 1 << 62]] {
            assert!(matches!(
                collection_length(lengths),
                Err(Error::Limit { .. })
            ));
        }
    }
}

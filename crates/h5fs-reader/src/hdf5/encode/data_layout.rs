//! The data layout message, version 3 (HDF5 3.0, IV.A.2.i).

use crate::error::{Error, Result};
use crate::hdf5::encode::{Message, address_field};
use crate::hdf5::message::kind;
use crate::limits;
use crate::wire::{Count, to_u64};

const VERSION: u8 = 3;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;

const WHAT: &str = "data layout message";

/// Encodes the layout of elements in one range of the file: `size` bytes at `address`. The address
/// of a dataset without elements is `None`.
pub fn encode_contiguous(address: Option<u64>, size: u64) -> Message {
    let mut data = vec![VERSION, CONTIGUOUS];
    data.extend(address_field(address));
    data.extend(size.to_le_bytes());
    Message {
        kind: kind::DATA_LAYOUT,
        flags: 0,
        data,
    }
}

/// Encodes the layout of chunks of `chunk_shape` elements, each of `element_size` bytes. `index` is
/// the address of the root of the version 1 B-tree, or `None` if no chunk exists.
///
/// # Errors
/// `Limit` for more than [`limits::RANK`] dimensions, or for chunks of 4 GiB or more. `Corrupt` for
/// chunks without dimensions or elements.
pub fn encode_chunked(
    index: Option<u64>,
    chunk_shape: &[u64],
    element_size: u32,
) -> Result<Message> {
    Error::check_limit(chunk_shape.len(), limits::RANK, "rank")?;
    check_chunk(chunk_shape, element_size)?;
    // The message lists the size of an element as a last dimension.
    let dimensionality = u8::try_from(chunk_shape.len().plus_one());
    let dimensionality = dimensionality.map_err(|_| Error::limit("rank", to_u64(limits::RANK)))?;
    let mut data = vec![VERSION, CHUNKED, dimensionality];
    data.extend(address_field(index));
    for &dim in chunk_shape {
        let dim = u32::try_from(dim).map_err(|_| chunk_limit())?;
        data.extend(dim.to_le_bytes());
    }
    data.extend(element_size.to_le_bytes());
    Message::new(kind::DATA_LAYOUT, 0, data, WHAT)
}

/// Checks that a chunk has elements, and that the library can state its size in four bytes.
fn check_chunk(chunk_shape: &[u64], element_size: u32) -> Result<()> {
    if chunk_shape.is_empty() || chunk_shape.contains(&0) || element_size == 0 {
        let what = format!("{WHAT}: a chunk without dimensions or elements");
        return Err(Error::corrupt(what, None));
    }
    let mut dims = chunk_shape.iter();
    let bytes = dims.try_fold(u64::from(element_size), |size, dim| size.checked_mul(*dim));
    match bytes {
        Some(bytes) if bytes <= u64::from(u32::MAX) => Ok(()),
        _ => Err(chunk_limit()),
    }
}

fn chunk_limit() -> Error {
    Error::limit("bytes of a chunk", u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of a dataset that h5py wrote with `libver="v108"`.
    #[test]
    fn contiguous_layout_equals_the_library() {
        let layout = encode_contiguous(Some(0x1800), 24);
        let expected = [3, 1, 0, 0x18, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(layout.data(), expected);
        let empty = encode_contiguous(None, 0);
        assert_eq!(empty.data()[2..10], [0xff; 8]);
        assert_eq!(empty.data().len(), expected.len());
    }

    /// The layout of a dataset that h5py wrote with `chunks=(2, 3)`, `dtype="<i2"` and
    /// `libver="v108"`.
    #[test]
    fn chunked_layout_equals_the_library() {
        let layout = encode_chunked(Some(0x2000), &[2, 3], 2).unwrap();
        let mut expected = vec![3, 2, 3, 0, 0x20, 0, 0, 0, 0, 0, 0];
        expected.extend([2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(layout.data(), expected);
    }

    #[test]
    fn impossible_chunks_are_refused() {
        let error = |shape: &[u64], size| encode_chunked(None, shape, size).unwrap_err();
        for shape in [
            &[1 << 32][..],
            &[1 << 16, 1 << 16],
            &[u64::MAX, 2],
            &[1; 33],
        ] {
            assert!(matches!(error(shape, 1), Error::Limit { .. }), "{shape:?}");
        }
        assert!(encode_chunked(None, &[(1 << 32) - 1], 1).is_ok());
        for (shape, size) in [(&[][..], 1), (&[2, 0][..], 1), (&[2][..], 0)] {
            assert!(matches!(error(shape, size), Error::Corrupt { .. }));
        }
    }
}

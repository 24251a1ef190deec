//! The data layout message, versions 1 to 5, which locates a dataset's elements (HDF5 3.0,
//! IV.A.2.i; version 5 is from HDF5 2.0).

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::limits;
use crate::wire::{Count, Cursor, to_usize};

/// The layout of a dataset's elements, with their location in the file. Addresses are absolute file
/// offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DataLayout {
    /// The bytes of the elements, which the message itself contains.
    Compact(Vec<u8>),
    /// All elements in one contiguous range of the file.
    Contiguous {
        /// The address of the elements, or `None` if no space was ever allocated.
        address: Option<Address>,
        /// The number of bytes of the elements, or `None` if the message does not contain it.
        size: Option<u64>,
    },
    /// Elements in a grid of separately stored chunks.
    Chunked(ChunkedLayout),
    /// Parts of other datasets. An object on the global heap lists them.
    Virtual {
        /// The address of the global heap collection with the list of parts, or `None` if the
        /// dataset has no parts.
        collection: Option<Address>,
        /// The index, in the collection, of the object that contains the list of parts.
        index: u32,
    },
}

/// The layout of a chunked dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkedLayout {
    /// Number of elements of a chunk in each dimension.
    pub(crate) shape: Vec<u64>,
    /// Number of bytes of an element. The message lists this number as a last dimension.
    pub(crate) element_size: u64,
    /// The kind of the chunk index.
    pub(crate) index: ChunkIndexKind,
    /// The address of the index, `None` if the index does not exist yet.
    pub(crate) address: Option<Address>,
    /// Whether chunks that extend beyond the array are stored without filters.
    pub(crate) has_unfiltered_edge_chunks: bool,
}

/// The kind of a chunk index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkIndexKind {
    /// Version 1 B-tree.
    BtreeV1,
    /// A single chunk, with its stored size and filter mask if it is filtered.
    Single(Option<(u64, u32)>),
    /// No index, because all chunks are contiguous.
    Implicit,
    FixedArray,
    ExtensibleArray,
    /// Version 2 B-tree.
    BtreeV2,
}

impl ChunkIndexKind {
    /// Returns whether the index begins with a header, which is read before chunks are searched.
    pub(crate) fn has_header(self) -> bool {
        matches!(
            self,
            ChunkIndexKind::FixedArray | ChunkIndexKind::ExtensibleArray | ChunkIndexKind::BtreeV2
        )
    }
}

/// Reads the body of a data layout message.
///
/// # Errors
/// `Corrupt` for a chunk without elements or with too many dimensions. `Unsupported` for an unknown
/// version, class, flag or index.
pub(crate) fn read(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<DataLayout> {
    match cursor.u8()? {
        1 | 2 => read_old(metadata, cursor),
        version @ 3..=5 => read_new(metadata, version, cursor),
        version => Err(cursor.unsupported(&format!("version {version}"))),
    }
}

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const VIRTUAL: u8 = 3;

fn read_old(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<DataLayout> {
    let dimensionality = cursor.u8()?;
    let class = cursor.u8()?;
    cursor.skip(5)?;
    let address = match class {
        COMPACT => None,
        _ => metadata.read_address(cursor)?,
    };
    match class {
        COMPACT => {
            cursor.skip(usize::from(dimensionality).times(4))?;
            let size = cursor.u32()?;
            Ok(DataLayout::Compact(
                cursor.read_bytes(to_usize(u64::from(size))?)?.to_vec(),
            ))
        }
        // The following dimensions have 32 bits and may be truncated, so they are ignored.
        CONTIGUOUS => Ok(DataLayout::Contiguous {
            address,
            size: None,
        }),
        CHUNKED => read_chunked_btree_v1(dimensionality, address, cursor),
        _ => Err(cursor.unsupported(&format!("layout class {class}"))),
    }
}

fn read_new(metadata: &Metadata, version: u8, cursor: &mut Cursor<'_>) -> Result<DataLayout> {
    match (cursor.u8()?, version) {
        (COMPACT, _) => {
            let size = cursor.u16()?;
            Ok(DataLayout::Compact(
                cursor.read_bytes(usize::from(size))?.to_vec(),
            ))
        }
        (CONTIGUOUS, _) => {
            let address = metadata.read_address(cursor)?;
            Ok(DataLayout::Contiguous {
                address,
                size: Some(metadata.read_length(cursor)?),
            })
        }
        (CHUNKED, 3) => {
            let dimensionality = cursor.u8()?;
            let address = metadata.read_address(cursor)?;
            read_chunked_btree_v1(dimensionality, address, cursor)
        }
        (CHUNKED, _) => read_chunked(metadata, cursor),
        (VIRTUAL, 4..) => {
            let collection = metadata.read_address(cursor)?;
            Ok(DataLayout::Virtual {
                collection,
                index: cursor.u32()?,
            })
        }
        (class, _) => Err(cursor.unsupported(&format!("layout class {class}"))),
    }
}

fn read_chunked_btree_v1(
    dimensionality: u8,
    address: Option<Address>,
    cursor: &mut Cursor<'_>,
) -> Result<DataLayout> {
    let (shape, element_size) = read_chunk_dims(dimensionality, 4, cursor)?;
    let index = ChunkIndexKind::BtreeV1;
    let chunks = ChunkedLayout {
        shape,
        element_size,
        index,
        address,
        has_unfiltered_edge_chunks: false,
    };
    Ok(DataLayout::Chunked(chunks))
}

fn read_chunked(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<DataLayout> {
    const PARTIAL_UNFILTERED: u8 = 0b01;
    const SINGLE_IS_FILTERED: u8 = 0b10;
    let flags = cursor.u8()?;
    if flags & !(PARTIAL_UNFILTERED | SINGLE_IS_FILTERED) != 0 {
        return Err(cursor.unsupported(&format!("flags {flags:#04x}")));
    }
    let dimensionality = cursor.u8()?;
    let width = usize::from(cursor.u8()?);
    let (shape, element_size) = read_chunk_dims(dimensionality, width, cursor)?;
    let index = match cursor.u8()? {
        1 if flags & SINGLE_IS_FILTERED != 0 => {
            ChunkIndexKind::Single(Some((metadata.read_length(cursor)?, cursor.u32()?)))
        }
        1 => ChunkIndexKind::Single(None),
        2 => ChunkIndexKind::Implicit,
        // The other indices repeat their parameters in the headers of their structures.
        3 => ChunkIndexKind::FixedArray.skip_parameters(1, cursor)?,
        4 => ChunkIndexKind::ExtensibleArray.skip_parameters(5, cursor)?,
        5 => ChunkIndexKind::BtreeV2.skip_parameters(4 + 1 + 1, cursor)?,
        index => return Err(cursor.unsupported(&format!("chunk index type {index}"))),
    };
    let address = metadata.read_address(cursor)?;
    let partial_unfiltered = flags & PARTIAL_UNFILTERED != 0;
    Ok(DataLayout::Chunked(ChunkedLayout {
        shape,
        element_size,
        index,
        address,
        has_unfiltered_edge_chunks: partial_unfiltered,
    }))
}

impl ChunkIndexKind {
    /// Skips the `length` bytes of the index's creation parameters and returns the index.
    fn skip_parameters(self, length: usize, cursor: &mut Cursor<'_>) -> Result<Self> {
        cursor.skip(length).map(|()| self)
    }
}

/// Reads the shape of a chunk, and the size of an element in bytes, which the message stores as an
/// additional dimension. Each number has `width` bytes.
fn read_chunk_dims(
    dimensionality: u8,
    width: usize,
    cursor: &mut Cursor<'_>,
) -> Result<(Vec<u64>, u64)> {
    if !(2..=limits::RANK.plus_one()).contains(&usize::from(dimensionality)) {
        return Err(cursor.corrupt(&format!("chunks of {dimensionality} dimensions")));
    }
    let dims = (0..dimensionality)
        .map(|_| cursor.uint(width))
        .collect::<Result<Vec<_>>>()?;
    if dims.contains(&0) {
        return Err(cursor.corrupt("a chunk without elements"));
    }
    match dims.split_last() {
        Some((&element_size, shape)) => Ok((shape.to_vec(), element_size)),
        None => Err(cursor.corrupt("a chunk without dimensions")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::hdf5::testing::{at, file};

    /// Parses the layout of a message in a file with addresses and lengths of eight bytes.
    fn parse(parts: &[&[u8]]) -> Result<DataLayout> {
        let metadata = file([]);
        let message = parts.concat();
        read(
            &metadata,
            &mut Cursor::new(&message, 0, "data layout message"),
        )
    }

    /// Returns the version, dimensions and class, and five reserved bytes (HDF5 3.0, IV.A.2.i).
    fn old_prefix(version: u8, dimensions: u8, class: u8) -> [u8; 8] {
        [version, dimensions, class, 0, 0, 0, 0, 0]
    }

    const ADDRESS: &[u8] = &2048_u64.to_le_bytes();

    #[test]
    fn old_versions_lack_the_size() {
        let contiguous = DataLayout::Contiguous {
            address: Some(at(2048)),
            size: None,
        };
        let dims = &10_u32.to_le_bytes();
        assert_eq!(
            parse(&[&old_prefix(1, 1, 1), ADDRESS, dims]),
            Ok(contiguous)
        );
        let never = DataLayout::Contiguous {
            address: None,
            size: None,
        };
        assert_eq!(parse(&[&old_prefix(2, 1, 1), &[0xff; 8], dims]), Ok(never));
        let three = &3_u32.to_le_bytes();
        let compact = parse(&[&old_prefix(2, 1, 0), three, three, b"abc"]);
        assert_eq!(compact, Ok(DataLayout::Compact(b"abc".to_vec())));
    }

    #[test]
    fn the_last_chunk_dimension_is_the_element_size() {
        let dims: Vec<u8> = [4_u32, 5, 2].iter().flat_map(|n| n.to_le_bytes()).collect();
        let chunks = ChunkedLayout {
            shape: vec![4, 5],
            element_size: 2,
            index: ChunkIndexKind::BtreeV1,
            address: Some(at(2048)),
            has_unfiltered_edge_chunks: false,
        };
        assert_eq!(
            parse(&[&old_prefix(1, 3, 2), ADDRESS, &dims]),
            Ok(DataLayout::Chunked(chunks))
        );
    }

    #[test]
    fn unknown_or_truncated_layouts_are_rejected() {
        let unknown = parse(&[&old_prefix(1, 1, 7), ADDRESS]);
        assert!(matches!(unknown, Err(Error::Unsupported { .. })));
        let cut = parse(&[&old_prefix(2, 1, 0), &[3, 0, 0, 0], &[3, 0, 0, 0], b"ab"]);
        assert!(matches!(cut, Err(Error::Corrupt { .. })));
        let no_chunk = parse(&[&old_prefix(1, 1, 2), ADDRESS, &[4, 0, 0, 0]]);
        assert!(matches!(no_chunk, Err(Error::Corrupt { .. })));
    }
}

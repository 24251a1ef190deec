//! Nodes of a version 1 B-tree that indexes chunks (HDF5 3.0, III.A.1, node type 1).

use crate::error::{Error, Result};
use crate::hdf5::encode::address_field;
use crate::wire::{Count, to_u64};

const WHAT: &str = "B-tree node (version 1)";

/// Maximum number of children of a node: twice the default K of the HDF5 library, which is 32. A
/// superblock of version 2 without an extension implies this default.
pub const MAX_CHILDREN: usize = 64;

/// Number of bytes of a node before its first key: signature, type, level, number of children, and
/// the addresses of two siblings.
const PREFIX: usize = 4 + 1 + 1 + 2 + 8 + 8;
/// Number of bytes of the address of a child.
const ADDRESS: usize = 8;

/// A node of a chunk index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkNode<'a> {
    /// The level of the node in the tree, 0 for a leaf.
    pub level: u8,
    /// The address of the node of the same level before this one.
    pub left: Option<u64>,
    /// The address of the node of the same level after this one.
    pub right: Option<u64>,
    /// The children in the row-major order of their chunks.
    pub children: &'a [ChunkNodeChild],
    /// An offset in elements that follows all chunks of the node in row-major order, such as the
    /// offset of the next chunk. The key after the last child contains this offset.
    pub end: &'a [u64],
}

/// A child of a node, with the key of the first chunk in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkNodeChild {
    /// The number of stored bytes of the first chunk.
    pub chunk_bytes: u32,
    /// A bit mask of the filters that were skipped for the first chunk.
    pub filter_mask: u32,
    /// The offset of the first chunk in elements, slowest dimension first.
    pub offset: Vec<u64>,
    /// The address of the chunk, if the node is a leaf. Otherwise the address of a node.
    pub address: u64,
}

/// Returns the number of bytes of a node of a dataset with `rank` dimensions. All nodes of a tree
/// have this length, whatever their number of children.
pub fn node_length(rank: usize) -> u64 {
    let key = key_length(rank);
    let entries = key.plus(ADDRESS).times(MAX_CHILDREN);
    to_u64(Count::sum([PREFIX, entries, key]))
}

/// Returns the number of bytes of a key: the size of a chunk, a filter mask, and an offset with an
/// additional dimension for the bytes of an element.
fn key_length(rank: usize) -> usize {
    rank.plus_one().times(8).plus(4 + 4)
}

impl ChunkNode<'_> {
    /// Returns the [`node_length`] bytes of the node. Bytes after the last key are zeros.
    ///
    /// # Errors
    /// `Limit` for more than [`MAX_CHILDREN`] children. `Corrupt` if the offsets do not all have
    /// the same number of dimensions.
    pub fn encode(&self) -> Result<Vec<u8>> {
        const CHUNKS: u8 = 1;
        Error::check_limit(
            self.children.len(),
            MAX_CHILDREN,
            "children of a B-tree node",
        )?;
        let [low, high, ..] = self.children.len().to_le_bytes();
        let mut block = b"TREE".to_vec();
        block.extend([CHUNKS, self.level, low, high]);
        block.extend(address_field(self.left));
        block.extend(address_field(self.right));
        for child in self.children {
            if child.offset.len() != self.end.len() {
                let what = format!("{WHAT}: offsets of different rank");
                return Err(Error::corrupt(what, None));
            }
            add_key(
                &mut block,
                child.chunk_bytes,
                child.filter_mask,
                &child.offset,
            );
            block.extend(child.address.to_le_bytes());
        }
        add_key(&mut block, 0, 0, self.end);
        block.resize(crate::wire::to_usize(node_length(self.end.len()))?, 0);
        Ok(block)
    }
}

fn add_key(block: &mut Vec<u8>, chunk_bytes: u32, filter_mask: u32, offset: &[u64]) {
    const IN_ELEMENT: u64 = 0;
    block.extend(chunk_bytes.to_le_bytes());
    block.extend(filter_mask.to_le_bytes());
    let dims = offset.iter().chain(&[IN_ELEMENT]);
    block.extend(dims.flat_map(|dim| dim.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(row: u64, address: u64) -> ChunkNodeChild {
        ChunkNodeChild {
            chunk_bytes: 12,
            filter_mask: 0,
            offset: vec![row, 0],
            address,
        }
    }

    fn leaf<'a>(children: &'a [ChunkNodeChild], end: &'a [u64]) -> ChunkNode<'a> {
        ChunkNode {
            level: 0,
            left: None,
            right: None,
            children,
            end,
        }
    }

    /// The leaf that h5py wrote for a dataset of shape (4, 3) in chunks of (2, 3) with
    /// `dtype="<i2"`, except for the last key. The library leaves the offset (2, 3) there.
    #[test]
    fn the_bytes_equal_those_of_the_library() {
        let children = [child(0, 0x1839), child(2, 0x1845)];
        let mut expected = b"TREE\x01\0\x02\0".to_vec();
        expected.extend([0xff; 16]);
        for (row, address) in [(0, 0x39), (2, 0x45)] {
            expected.extend([12, 0, 0, 0, 0, 0, 0, 0, row, 0, 0, 0, 0, 0, 0, 0]);
            expected.extend([0; 16]);
            expected.extend([address, 0x18, 0, 0, 0, 0, 0, 0]);
        }
        expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0; 16]);
        let node = leaf(&children, &[4, 0]).encode().unwrap();
        assert_eq!(node[..expected.len()], expected);
        // 24 + 64 * (32 + 8) + 32: the specification's node of 2K children and 2K + 1 keys.
        assert_eq!(node.len(), 2616);
        assert!(node[expected.len()..].iter().all(|byte| *byte == 0));
        assert_eq!(node_length(2), 2616);
    }

    #[test]
    fn siblings_and_level_are_stored() {
        let node = ChunkNode {
            level: 2,
            left: Some(0x100),
            right: Some(0x200),
            ..leaf(&[], &[0])
        };
        let expected = b"TREE\x01\x02\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0";
        assert_eq!(node.encode().unwrap()[..24], expected[..]);
    }

    #[test]
    fn impossible_nodes_are_refused() {
        let children: Vec<_> = (0..65).map(|row| child(row, 0)).collect();
        assert!(leaf(&children[..64], &[65, 0]).encode().is_ok());
        let wide = leaf(&children, &[65, 0]).encode();
        assert!(matches!(wide, Err(Error::Limit { .. })));
        let uneven = leaf(&children[..1], &[65]).encode();
        assert!(matches!(uneven, Err(Error::Corrupt { .. })));
    }
}

//! Trees of chunks of any number of levels, which the chunk index of this crate reads back.

use proptest::prelude::*;

use crate::hdf5::encode::btree_v1::{ChunkNode, ChunkNodeChild, MAX_CHILDREN, node_length};
use crate::hdf5::index::ChunkGeometry;
use crate::hdf5::index::btree_v1::BtreeV1Index;
use crate::hdf5::testing::{at, file, walk_chunks};
use crate::model::storage::ChunkIndex;

const FAN: u64 = MAX_CHILDREN as u64;

/// A tree over all chunks of a grid, which are stored one after another in row-major order.
pub(super) struct ChunkTree {
    /// The number of chunks in each dimension.
    pub(super) counts: Vec<u64>,
    /// The number of elements of a chunk in each dimension.
    pub(super) chunk_shape: Vec<u64>,
    /// The address of the first chunk.
    pub(super) first_chunk: u64,
    pub(super) chunk_bytes: u64,
    /// The address of the root.
    pub(super) root: u64,
}

impl ChunkTree {
    /// Returns the bytes of all nodes. The nodes of one level are consecutive, from the root's level
    /// down to the leaves.
    pub(super) fn encode(&self) -> Vec<u8> {
        let levels = self.node_counts();
        let mut tree = Vec::new();
        for level in (1..levels.len()).rev() {
            for number in 0..levels[level] {
                tree.extend(self.encode_node(&levels, level, number));
            }
        }
        tree
    }

    /// Returns the number of chunks, the number of leaves, and so on up to the root's level.
    fn node_counts(&self) -> Vec<u64> {
        let chunks: u64 = self.counts.iter().product();
        let mut levels = vec![chunks, chunks.div_ceil(FAN)];
        while let Some(highest) = levels.last().filter(|count| **count > 1) {
            levels.push(highest.div_ceil(FAN));
        }
        levels
    }

    /// Returns the address of an item of a level: of a chunk for level 0, otherwise of a node.
    fn address(&self, levels: &[u64], level: usize, number: u64) -> u64 {
        if level == 0 {
            return self.first_chunk + number * self.chunk_bytes;
        }
        let before: u64 = levels[level + 1..].iter().sum();
        self.root + (before + number) * node_length(self.counts.len())
    }

    /// Returns the offset in elements of the first chunk below an item of a level. An item after
    /// the last one has an offset after all chunks.
    fn offset(&self, level: usize, number: u64) -> Vec<u64> {
        let chunk = number * FAN.pow(level as u32);
        let place = coordinates(chunk, &self.counts);
        let dims = place.iter().zip(&self.chunk_shape);
        dims.map(|(along, size)| along * size).collect()
    }

    fn encode_node(&self, levels: &[u64], level: usize, number: u64) -> Vec<u8> {
        let below = level - 1;
        let numbers = number * FAN..((number + 1) * FAN).min(levels[below]);
        let children = numbers.clone().map(|number| ChunkNodeChild {
            chunk_bytes: self.chunk_bytes as u32,
            filter_mask: 0,
            offset: self.offset(below, number),
            address: self.address(levels, below, number),
        });
        let sibling = |number| self.address(levels, level, number);
        let node = ChunkNode {
            level: below as u8,
            left: number.checked_sub(1).map(sibling),
            right: (number + 1 < levels[level]).then(|| sibling(number + 1)),
            children: &children.collect::<Vec<_>>(),
            end: &self.offset(below, numbers.end),
        };
        node.encode().unwrap()
    }
}

/// Returns the coordinates of an item in a grid of `counts` items, in row-major order. An item
/// after the grid continues its first dimension.
fn coordinates(mut number: u64, counts: &[u64]) -> Vec<u64> {
    let mut place = vec![0; counts.len()];
    for (along, count) in place.iter_mut().zip(counts).skip(1).rev() {
        *along = number % count;
        number /= count;
    }
    place[0] = number;
    place
}

proptest! {
    #[test]
    fn trees_are_read_back(
        counts in prop::collection::vec(1..17_u64, 1..4),
        chunk_shape in prop::collection::vec(1..9_u64, 3),
    ) {
        let chunk_shape = chunk_shape[..counts.len()].to_vec();
        let chunk_bytes = chunk_shape.iter().product();
        let tree = ChunkTree {
            counts: counts.clone(),
            chunk_shape: chunk_shape.clone(),
            first_chunk: 1 << 32,
            chunk_bytes,
            root: 64,
        };
        let dims: Vec<_> = counts.iter().zip(&chunk_shape).map(|(one, other)| one * other).collect();
        let max = dims.iter().copied().map(Some).collect();
        let geometry = ChunkGeometry::new(dims, max, chunk_shape, chunk_bytes, 0).unwrap();
        let index = BtreeV1Index::new(file([(64, tree.encode())]), at(64), geometry, false);
        let total: u64 = counts.iter().product();
        for number in 0..total {
            let chunk = index.find(&coordinates(number, &counts)).unwrap().unwrap();
            prop_assert_eq!(chunk.offset, (1 << 32) + number * chunk_bytes);
        }
        if total < 300 {
            let places = (0..total).map(|number| coordinates(number, &counts));
            let offsets = (0..total).map(|number| (1 << 32) + number * chunk_bytes);
            prop_assert_eq!(walk_chunks(&index).unwrap(), places.zip(offsets).collect::<Vec<_>>());
        }
    }
}

/// A tree of three levels: more than 64 * 64 chunks.
#[test]
fn a_tree_can_have_three_levels() {
    let tree = ChunkTree {
        counts: vec![5000],
        chunk_shape: vec![2],
        first_chunk: 1 << 32,
        chunk_bytes: 2,
        root: 64,
    };
    assert_eq!(tree.node_counts(), [5000, 79, 2, 1]);
    let geometry = ChunkGeometry::new(vec![10_000], vec![None], vec![2], 2, 0).unwrap();
    let index = BtreeV1Index::new(file([(64, tree.encode())]), at(64), geometry, false);
    for number in [0, 63, 64, 4095, 4096, 4999] {
        let chunk = index.find(&[number]).unwrap().unwrap();
        assert_eq!(chunk.offset, (1 << 32) + number * 2);
    }
}

//! The chunk index of a growing dataset: a version 1 B-tree whose chunks follow one another, so that
//! all keys and addresses are computed from the number of the chunk.

use h5fs_reader::error::Result;
use h5fs_reader::hdf5::encode::btree_v1::{ChunkNode, ChunkNodeChild, MAX_CHILDREN, node_length};
use h5fs_reader::wire::to_u64;

use crate::hdf5_file::dataset::RowChunks;

/// The chunk index of a dataset with chunks of whole rows.
pub(super) struct ChunkIndex {
    /// The address of the root node. The other nodes follow it, level by level.
    pub(super) address: u64,
    pub(super) first_chunk: u64,
    pub(super) chunks: RowChunks,
    /// Number of dimensions of the dataset.
    pub(super) rank: usize,
}

/// The nodes of one level of the tree.
struct Level {
    /// The level of the nodes, 0 for leaves.
    number: u8,
    nodes: u64,
    /// The address of the first node.
    address: u64,
}

impl ChunkIndex {
    /// Returns the number of bytes of the index of `count` chunks of a dataset with `rank`
    /// dimensions.
    pub(super) fn length(count: u64, rank: usize) -> u64 {
        let nodes = node_counts(count).iter().sum::<u64>();
        nodes.saturating_mul(node_length(rank))
    }

    /// Returns the bytes of all nodes.
    ///
    /// # Errors
    /// `Limit` if a chunk is too long for the format.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let levels = self.levels();
        for (at, level) in levels.iter().enumerate() {
            let below = levels.get(at + 1);
            for node in 0..level.nodes {
                bytes.extend(self.node(level, below, node)?);
            }
        }
        Ok(bytes)
    }

    /// Returns the levels of the tree, the root first.
    fn levels(&self) -> Vec<Level> {
        let mut address = self.address;
        let counts = node_counts(self.chunks.count);
        let numbered = (0..).zip(counts).collect::<Vec<(u8, u64)>>();
        let levels = numbered.into_iter().rev().map(|(number, nodes)| {
            let level = Level {
                number,
                nodes,
                address,
            };
            address += nodes * node_length(self.rank);
            level
        });
        levels.collect()
    }

    /// Returns the node with the number `node` of a level. `below` is the next level, if the node is
    /// no leaf.
    fn node(&self, level: &Level, below: Option<&Level>, node: u64) -> Result<Vec<u8>> {
        let fan_out = to_u64(MAX_CHILDREN);
        let all = below.map_or(self.chunks.count, |below| below.nodes);
        let first = node * fan_out;
        let last = all.min(first + fan_out);
        let chunks_of_child = fan_out.pow(level.number.into());
        let children = (first..last).map(|child| {
            Ok(ChunkNodeChild {
                chunk_bytes: u32::try_from(self.chunks.bytes).unwrap_or(u32::MAX),
                filter_mask: 0,
                offset: self.chunk_offset(child * chunks_of_child),
                address: match below {
                    Some(below) => below.address + child * node_length(self.rank),
                    None => self.first_chunk + child * self.chunks.bytes,
                },
            })
        });
        let children = children.collect::<Result<Vec<_>>>()?;
        let sibling = |other: u64| level.address + other * node_length(self.rank);
        ChunkNode {
            level: level.number,
            left: node.checked_sub(1).map(sibling),
            right: (node + 1 < level.nodes).then(|| sibling(node + 1)),
            children: &children,
            end: &self.chunk_offset((last * chunks_of_child).min(self.chunks.count)),
        }
        .encode()
    }

    /// Returns the offset of a chunk in elements.
    fn chunk_offset(&self, chunk: u64) -> Vec<u64> {
        let mut offset = vec![0; self.rank];
        if let Some(first) = offset.first_mut() {
            *first = chunk * self.chunks.rows;
        }
        offset
    }
}

/// Returns the number of nodes of each level of the tree of `count` chunks, the leaves first.
fn node_counts(count: u64) -> Vec<u64> {
    let mut counts = vec![count.div_ceil(to_u64(MAX_CHILDREN)).max(1)];
    while let Some(&last) = counts.last()
        && last > 1
    {
        counts.push(last.div_ceil(to_u64(MAX_CHILDREN)));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_many_chunks_end_in_one_root() {
        assert_eq!(node_counts(1), [1]);
        assert_eq!(node_counts(64), [1]);
        assert_eq!(node_counts(65), [2, 1]);
        assert_eq!(node_counts(4097), [65, 2, 1]);
    }

    #[test]
    fn nodes_follow_the_root_and_know_their_neighbours() {
        let chunks = RowChunks {
            rows: 10,
            bytes: 80,
            count: 65,
        };
        let index = ChunkIndex {
            address: 1000,
            first_chunk: 1 << 20,
            chunks,
            rank: 1,
        };
        let bytes = index.encode().unwrap();
        assert_eq!(to_u64(bytes.len()), ChunkIndex::length(65, 1));
        let length = usize::try_from(node_length(1)).unwrap();
        let nodes: Vec<&[u8]> = bytes.chunks(length).collect();
        let number = |node: usize, at: usize| {
            u64::from_le_bytes(nodes[node][at..at + 8].try_into().unwrap())
        };
        assert_eq!(nodes[0][..8], *b"TREE\x01\x01\x02\0");
        assert_eq!(nodes[1][..8], *b"TREE\x01\0\x40\0");
        assert_eq!(nodes[2][..8], *b"TREE\x01\0\x01\0");
        let (first, second) = (1000 + node_length(1), 1000 + 2 * node_length(1));
        assert_eq!((number(1, 8), number(1, 16)), (u64::MAX, second));
        assert_eq!((number(2, 8), number(2, 16)), (first, u64::MAX));
        // A key has 24 bytes: the size and the mask, the row, the byte within the element.
        assert_eq!(number(0, 24 + 24), first);
        assert_eq!(number(0, 24 + 24 + 8 + 24), second);
        assert_eq!(
            (number(2, 24 + 8), number(2, 24 + 24)),
            (640, (1 << 20) + 64 * 80)
        );
        assert_eq!(number(2, 24 + 24 + 8 + 8), 650);
    }
}

//! The cache of nodes that were converted from a tree to the model. Its limits apply to all ASDF
//! files of a mount together.

use std::sync::Arc;

use crate::asdf::compression::chunk_table::SharedChunkTables;
use crate::asdf::ndarray::DataBlock;
use crate::memory::gate::FairLock;
use crate::memory::shared_lru::{FileLru, SharedLru};
use crate::model::{Node, NodeId, NodeKind};
use crate::wire::{Count, to_u64};

/// Capacity in bytes of the cache of nodes of at most `MAX_SMALL_NODE_BYTES` bytes, for all ASDF
/// files of a mount together.
const SMALL_CACHE_BYTES: u64 = 4 << 20;

/// Capacity in bytes of the cache of larger nodes, which are inline ndarrays and long texts, for
/// all ASDF files of a mount together.
const LARGE_CACHE_BYTES: u64 = 32 << 20;

/// Maximum number of bytes of a node in the cache of small nodes.
const MAX_SMALL_NODE_BYTES: u64 = 64 << 10;

/// Additional weight in bytes of a node whose elements are in another file. Such a node keeps that
/// file open, so few of them are cached.
const OPEN_FILE_WEIGHT: u64 = 32 << 10;

/// A node of the model, and the block that contains its elements.
#[derive(Debug, Clone)]
pub(crate) struct DescribedNode {
    pub(crate) node: Arc<Node>,
    /// The block that contains the elements of an ndarray. `None` if the elements are in the tree,
    /// if the block cannot be found, and for any other node.
    pub(crate) block: Option<DataBlock>,
}

impl DescribedNode {
    fn weight(&self) -> u64 {
        let own = to_u64(size_of::<Node>().plus(size_of::<DescribedNode>()));
        let content = match (&self.node.kind, self.node.array()) {
            (NodeKind::Scalar(scalar), _) => to_u64(scalar.text.len()),
            (_, Some(array)) => array.weight(),
            _ => 0,
        };
        let file = match self.block {
            Some(DataBlock::External(_)) => OPEN_FILE_WEIGHT,
            _ => 0,
        };
        own.plus(content).plus(file)
    }
}

/// The caches that all ASDF files of a mount share.
#[derive(Debug, Clone)]
pub struct Caches {
    small: Arc<SharedLru<NodeId, DescribedNode>>,
    large: Arc<SharedLru<NodeId, DescribedNode>>,
    /// The positions of the chunks of compressed blocks, for all files.
    pub(super) tables: SharedChunkTables,
    /// A lock that lets only one thread at a time compose a large tree.
    pub(super) compose_lock: Arc<FairLock>,
}

impl Default for Caches {
    fn default() -> Self {
        Caches {
            small: SharedLru::new(SMALL_CACHE_BYTES),
            large: SharedLru::new(LARGE_CACHE_BYTES),
            tables: SharedChunkTables::default(),
            compose_lock: Arc::default(),
        }
    }
}

/// The cached nodes of one file.
#[derive(Debug)]
pub(crate) struct NodeCache {
    small: FileLru<NodeId, DescribedNode>,
    large: FileLru<NodeId, DescribedNode>,
}

impl NodeCache {
    /// Creates an empty cache for the nodes of one file, within the limits of `caches`.
    pub(crate) fn new(caches: &Caches) -> Self {
        NodeCache {
            small: FileLru::new(&caches.small),
            large: FileLru::new(&caches.large),
        }
    }

    /// Returns the node with this number, or `None` if it is not cached.
    pub(crate) fn get(&self, id: NodeId) -> Option<DescribedNode> {
        self.small.get(id).or_else(|| self.large.get(id))
    }

    /// Caches a node. Large nodes do not evict small ones.
    pub(crate) fn put(&self, id: NodeId, known: DescribedNode) {
        let weight = known.weight();
        match weight {
            0..=MAX_SMALL_NODE_BYTES => self.small.put(id, known, weight),
            _ => self.large.put(id, known, weight),
        }
    }
}

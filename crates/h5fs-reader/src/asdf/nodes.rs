//! The cache of described nodes, with limits for all ASDF files of a mount together.

use std::sync::Arc;

use crate::asdf::compression::chunk_table::SharedChunkTables;
use crate::asdf::ndarray::DataBlock;
use crate::memory::gate::FairLock;
use crate::memory::shared_lru::{FileLru, SharedLru};
use crate::model::{Node, NodeId, NodeKind};
use crate::wire::{Count, to_u64};

/// Number of bytes of described nodes that all ASDF files of a mount cache together.
const NODE_CACHE: u64 = 4 << 20;

/// Number of bytes of large inline ndarrays and texts from the trees that all ASDF files of a mount
/// cache together.
const INLINE_KEPT: u64 = 32 << 20;

/// Maximum number of bytes of a described node that is cached with the small ones.
const SMALL: u64 = 64 << 10;

/// The weight of a node that keeps another file open, so that few of them are cached.
const OPEN_FILE: u64 = 32 << 10;

/// A node, and the block that contains its elements.
#[derive(Debug, Clone)]
pub(crate) struct DescribedNode {
    pub(crate) node: Arc<Node>,
    /// The block of an ndarray that has one.
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
            Some(DataBlock::External(_)) => OPEN_FILE,
            _ => 0,
        };
        own.plus(content).plus(file)
    }
}

/// The caches of all files of a mount.
#[derive(Debug, Clone)]
pub struct Caches {
    small: Arc<SharedLru<NodeId, DescribedNode>>,
    large: Arc<SharedLru<NodeId, DescribedNode>>,
    /// The positions of the chunks of compressed blocks.
    pub(super) tables: SharedChunkTables,
    /// The turns of threads that compose large trees, one at a time.
    pub(super) turns: Arc<FairLock>,
}

impl Default for Caches {
    fn default() -> Self {
        Caches {
            small: SharedLru::new(NODE_CACHE),
            large: SharedLru::new(INLINE_KEPT),
            tables: SharedChunkTables::default(),
            turns: Arc::default(),
        }
    }
}

/// The cached nodes of one file.
#[derive(Debug)]
pub(crate) struct Nodes {
    small: FileLru<NodeId, DescribedNode>,
    large: FileLru<NodeId, DescribedNode>,
}

impl Nodes {
    /// Returns the cache of a new file.
    pub(crate) fn new(caches: &Caches) -> Self {
        Nodes {
            small: FileLru::new(&caches.small),
            large: FileLru::new(&caches.large),
        }
    }

    /// Returns the node, if it is cached.
    pub(crate) fn get(&self, id: NodeId) -> Option<DescribedNode> {
        self.small.get(id).or_else(|| self.large.get(id))
    }

    /// Caches a node. Large nodes do not evict small ones.
    pub(crate) fn put(&self, id: NodeId, known: DescribedNode) {
        let weight = known.weight();
        match weight {
            0..=SMALL => self.small.put(id, known, weight),
            _ => self.large.put(id, known, weight),
        }
    }
}

//! The content of a file beside its graph of nodes: ASDF's tree as text, its blocks, its masks.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::storage::StoredExtent;
use crate::model::{Array, NodeId};

/// The content of a file beside its graph of nodes.
pub trait Extras: Send + Sync {
    /// The tree's text, to the end of the line of its end marker; `None` in a file without a tree.
    fn tree_text(&self) -> Option<StoredExtent>;

    /// Whether the group is a sequence, whose names are numbers.
    fn is_sequence(&self, group: NodeId) -> bool;

    /// The number of blocks.
    fn block_count(&self) -> usize;

    /// Why there may be more blocks than were found.
    fn blocks_error(&self) -> Option<&Error>;

    /// The block's header.
    ///
    /// # Errors
    /// `NotFound` past the last block, otherwise as the header is damaged.
    fn block(&self, number: usize) -> Result<BlockFacts>;

    /// The block's content, as bytes of rank 1. The same allocation for every call.
    ///
    /// # Errors
    /// Fails as [`block`](Self::block) does; what cannot be decoded is an error of the array's
    /// storage.
    fn block_content(&self, number: usize) -> Result<Arc<Array>>;

    /// The code of the compression of the block, here or in another file, that holds the elements
    /// of the ndarray, `none` for none; `None` where no block does.
    ///
    /// # Errors
    /// Fails if the ndarray cannot be described, or the block's header is damaged.
    fn compression_of(&self, id: NodeId) -> Result<Option<String>>;

    /// Like [`verify_block`](Self::verify_block), of the block, here or in another file, that holds
    /// the elements of the ndarray, if one does.
    ///
    /// # Errors
    /// Fails as `verify_block` does.
    fn verify_array(&self, id: NodeId, read_all: &ReadAll<'_>) -> Result<()>;

    /// Compares the block with its checksum, which costs reading and decoding it whole, with
    /// `read_all`; the answer is remembered. A block without a checksum is taken as it is.
    ///
    /// # Errors
    /// `Corrupt` where it has another, otherwise as it cannot be read.
    fn verify_block(&self, number: usize, read_all: &ReadAll<'_>) -> Result<()>;

    /// The mark of the ndarray's missing elements; `None` where there is none.
    fn mask(&self, id: NodeId) -> Result<Option<Mask>>;
}

/// Reads an array's bytes and hands them over in order, decoded within the bounds for that.
pub type ReadAll<'a> = dyn Fn(&Arc<Array>, &mut dyn FnMut(&[u8])) -> Result<()> + 'a;

/// The facts that a block's header states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFacts {
    /// The code of the compression, `none` for none.
    pub compression: String,
    /// Whether the block reaches to the end of the file; the sizes mean nothing then.
    pub streamed: bool,
    /// Bytes to the next block.
    pub allocated_size: u64,
    /// Stored bytes.
    pub used_size: u64,
    /// Decoded bytes.
    pub data_size: u64,
    /// MD5 of the stored or, from many writers, of the decoded bytes.
    pub checksum: Option<[u8; 16]>,
}

/// The mark of an ndarray's missing elements.
#[derive(Debug, Clone)]
pub enum Mask {
    /// Elements equal to the number of this text, or NaNs.
    Number(Vec<u8>),
    /// Elements for which this ndarray is not zero. The node need not have a name in the tree.
    Node(NodeId),
    /// Elements for which this array of bytes, of the ndarray's shape, is not zero.
    Array(Arc<Array>),
}

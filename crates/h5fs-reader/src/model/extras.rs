//! The content of a file outside of its graph of nodes: ASDF's tree as text, its blocks, its masks.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::storage::StoredExtent;
use crate::model::{Array, NodeId};

/// The content of a file outside of its graph of nodes.
pub trait AsdfExtras: Send + Sync {
    /// Returns the location of the tree's text, including the line of its end marker (`...`).
    /// Returns `None` for a file without a tree.
    fn tree_text(&self) -> Option<StoredExtent>;

    /// Returns whether the group is a YAML sequence, whose link names are numbers.
    fn is_sequence(&self, group: NodeId) -> bool;

    /// Returns the number of blocks that were found in the file.
    fn block_count(&self) -> usize;

    /// Returns the error that may have prevented finding further blocks, or `None` if all blocks
    /// were found.
    fn blocks_error(&self) -> Option<&Error>;

    /// Returns the header fields of block `number`, counted from 0.
    ///
    /// # Errors
    /// `NotFound` after the last block. Otherwise fails if the header is damaged.
    fn block_header(&self, number: usize) -> Result<BlockHeaderFields>;

    /// Returns the decoded content of block `number` as a one-dimensional array of bytes. Every
    /// call returns the same allocation.
    ///
    /// # Errors
    /// Fails as [`block_header`](Self::block_header) does. An undecodable block is an error in the
    /// array's storage.
    fn block_content(&self, number: usize) -> Result<Arc<Array>>;

    /// Returns the compression code of the block that contains the ndarray's elements, or `none`
    /// for an uncompressed block. The block may be in another file. Returns `None` if no block
    /// contains the elements.
    ///
    /// # Errors
    /// Fails if the ndarray cannot be described, or the block's header is damaged.
    fn compression_of(&self, id: NodeId) -> Result<Option<String>>;

    /// Verifies the block that contains the ndarray's elements, in this file or another, like
    /// [`verify_block`](Self::verify_block). Returns at once if no block contains the elements.
    ///
    /// # Errors
    /// Fails as `verify_block` does.
    fn verify_array(&self, id: NodeId, read_all: &ArrayBytesReader<'_>) -> Result<()>;

    /// Compares the checksum in the header of block `number` with the block's bytes, and remembers
    /// the result. The whole block is read and decoded with `read_all`. A block without a checksum
    /// is valid.
    ///
    /// # Errors
    /// `Corrupt` if the checksum differs. Otherwise fails if the block cannot be read.
    fn verify_block(&self, number: usize, read_all: &ArrayBytesReader<'_>) -> Result<()>;

    /// Returns the mask of the ndarray's missing elements. Returns `None` if the ndarray has none.
    fn mask(&self, id: NodeId) -> Result<Option<Mask>>;
}

/// A function that reads an array's bytes and passes them on in order, decoded within the limits
/// for decoding.
pub type ArrayBytesReader<'a> = dyn Fn(&Arc<Array>, &mut dyn FnMut(&[u8])) -> Result<()> + 'a;

/// The fields of a block's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHeaderFields {
    /// The compression code, or `none` for an uncompressed block.
    pub compression: String,
    /// Whether the block extends to the end of the file. The sizes are then meaningless.
    pub streamed: bool,
    /// Number of bytes from the content's start to the next block.
    pub allocated_size: u64,
    /// Number of stored bytes.
    pub used_size: u64,
    /// Number of decoded bytes.
    pub data_size: u64,
    /// The MD5 checksum of the stored bytes, or `None` if the header has no checksum. Many writers
    /// store the MD5 checksum of the decoded bytes instead.
    pub checksum: Option<[u8; 16]>,
}

/// The mask of an ndarray's missing elements.
#[derive(Debug, Clone)]
pub enum Mask {
    /// Elements equal to the number with this text, or NaNs.
    Number(Vec<u8>),
    /// Elements for which this ndarray is not zero. The node may be unnamed in the tree.
    Node(NodeId),
    /// Elements for which this array of bytes, which has the ndarray's shape, is not zero.
    Array(Arc<Array>),
}

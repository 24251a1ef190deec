//! Where an array's bytes stand.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::source::SharedSource;

/// Where an array's bytes stand, in C order of its elements.
#[derive(Debug)]
pub enum Storage {
    /// Nothing is stored and nothing is to be read: no elements.
    Empty,
    /// No space was ever allocated: every element is the fill value.
    Fill,
    /// The elements themselves. HDF5: compact. ASDF: inline.
    Inline(Arc<[u8]>),
    /// Pieces that follow each other. HDF5: contiguous (one piece), external raw files (one each).
    Extents(Vec<Extent>),
    /// A grid of chunks.
    Chunked(Chunked),
}

/// A run of the array's bytes, as they are in a source.
#[derive(Debug, Clone)]
pub struct Extent {
    /// Where they are.
    pub source: SharedSource,
    /// Offset in that source, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// A regular grid of separately stored chunks; the last ones along a dimension may stick out.
#[derive(Debug)]
pub struct Chunked {
    /// Where the chunks are.
    pub source: SharedSource,
    /// Elements of a chunk along each dimension, none zero. Same rank as the array.
    pub chunk_shape: Vec<u64>,
    /// Finds a chunk by its place in the grid.
    pub index: Arc<dyn ChunkIndex>,
    /// How stored bytes become elements.
    pub pipeline: Pipeline,
    /// Chunks that stick out of the extent are stored without the filters.
    pub partial_unfiltered: bool,
}

/// Finds stored chunks by their place in the grid, counted in chunks, slowest dimension first.
pub trait ChunkIndex: Send + Sync + fmt::Debug {
    /// The chunk at `place`, `None` where none is stored. A descent: its cost does not grow with
    /// what lies beside the way.
    ///
    /// # Errors
    /// `Corrupt` where a structure on the way is damaged.
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>>;

    /// Hands every stored chunk to `visit`, in the index's order, until it breaks off.
    fn walk(&self, visit: &mut ChunkVisitor<'_>) -> Result<()>;
}

/// Is handed each stored chunk with its place in the grid.
pub type ChunkVisitor<'a> = dyn FnMut(&[u64], StoredChunk) -> ControlFlow<()> + 'a;

/// Where one chunk's stored bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Offset in the array's source, in bytes.
    pub offset: u64,
    /// Stored length in bytes, after all filters.
    pub length: u64,
    /// Bit i set: filter i of the pipeline was not applied to this chunk.
    pub filter_mask: u32,
}

/// Filters in writing order; reading undoes them from last to first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pipeline(pub Vec<Filter>);

/// One step of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The number under which it is registered with The HDF Group.
    pub id: u16,
    /// Its name as the file gives it, if it does.
    pub name: Option<String>,
    /// "Client data": what the encoder noted for the decoder.
    pub parameters: Vec<u32>,
}

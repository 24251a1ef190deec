//! The parts of storage: extents, chunks and their index, encoded blocks.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::memory;
use crate::memory::buffer::{Buffer, BufferPool};
use crate::memory::cancel::WantedCheck;
use crate::memory::request_budget::RequestBudget;
use crate::source::SharedSource;
use crate::wire::{Count, Extent};

/// The bytes of an encoded block, divided into pieces of equal length that are decoded separately.
pub trait PieceDecoder: Send + Sync + fmt::Debug {
    /// Returns the number of decoded bytes of all pieces together.
    fn byte_length(&self) -> u64;

    /// Returns the number of decoded bytes of every piece except the last, which may be shorter.
    /// Never zero.
    ///
    /// # Errors
    /// Fails if the boundaries of the pieces cannot be read or are damaged.
    fn piece_bytes(&self) -> Result<u64>;

    /// Returns the maximum number of stored bytes that are in memory while a piece is decoded.
    ///
    /// # Errors
    /// Fails as `piece_bytes` does.
    fn max_stored_bytes(&self) -> Result<u64> {
        self.piece_bytes()
    }

    /// Returns the number of stored bytes of the whole block.
    fn stored_bytes(&self) -> u64;

    /// Returns the stored extents of the pieces with these numbers. Omits extents that are known
    /// only after decoding. For all pieces, returns the extents of the whole block.
    fn stored_extents(&self, _pieces: Range<u64>) -> Vec<StoredExtent> {
        Vec::new()
    }

    /// Returns whether a piece is best decoded after the previous one. Decoding ahead of a reader
    /// in several threads is then useless.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Returns all decoded bytes of piece number `piece`. For a sequential block, the caller must
    /// run one decode at a time.
    ///
    /// # Errors
    /// Fails if the stored bytes are damaged or of an unsupported kind. `NotFound` after the last
    /// piece.
    fn decode(&self, piece: u64, help: &mut DecodeContext<'_>) -> Result<Buffer>;
}

#[cfg(test)]
impl dyn PieceDecoder + '_ {
    /// Decodes a piece with one thread and a private buffer pool.
    pub(crate) fn decode_alone(&self, piece: u64) -> Result<Buffer> {
        let mut help = DecodeContext {
            threads: &|| 1,
            pool: &BufferPool::default(),
            is_wanted: &|| true,
            on_extra_piece: &mut |_, _| {},
        };
        self.decode(piece, &mut help)
    }
}

/// The resources for decoding a piece.
pub struct DecodeContext<'a> {
    /// Returns the number of threads that may decode now, including the caller's. The number is
    /// lower while other decodes are running.
    pub threads: &'a (dyn Fn() -> usize + Sync),
    /// The pool for the memory of decoded bytes.
    pub pool: &'a BufferPool,
    /// Returns whether the result is still wanted. Checked between parts of the work.
    pub is_wanted: &'a WantedCheck<'a>,
    /// Receives the number and the bytes of each further piece that was decoded on the way to the
    /// requested one. A reader that goes backwards needs these pieces next, so the receiver may
    /// keep them.
    pub on_extra_piece: &'a mut dyn FnMut(u64, Buffer),
}

/// A contiguous range of an array's bytes that is stored in a source.
#[derive(Debug, Clone)]
pub struct StoredExtent {
    /// The source of the bytes.
    pub source: SharedSource,
    /// The range of the bytes in the source.
    pub extent: Extent,
}

/// A regular grid of separately stored chunks. The last chunks in a dimension may extend beyond the
/// array.
#[derive(Debug, Clone)]
pub struct ChunkGrid {
    /// The source of the chunks.
    pub source: SharedSource,
    /// The lowest offset in the source that a chunk may have. The bytes before this offset belong
    /// to the superblock.
    pub min_offset: u64,
    /// Number of elements of a chunk in each dimension, none zero. The rank equals the array's
    /// rank.
    pub chunk_shape: Vec<u64>,
    /// The index that finds a chunk by its grid coordinates.
    pub index: Arc<dyn ChunkIndex>,
    /// The filters that produced the stored bytes.
    pub pipeline: Pipeline,
    /// Whether chunks that extend beyond the array are stored without filters.
    pub has_unfiltered_edge_chunks: bool,
}

/// An index of stored chunks by their grid coordinates, which are counted in chunks, slowest
/// dimension first.
pub trait ChunkIndex: Send + Sync + fmt::Debug {
    /// Returns the location of the chunk at grid coordinates `place`, or `None` if the chunk is not
    /// stored. The index is searched by descent, so the cost does not depend on the number of other
    /// chunks.
    ///
    /// # Errors
    /// `Corrupt` if a structure on the path is damaged.
    fn find(&self, place: &[u64]) -> Result<Option<StoredChunk>>;

    /// Finds a chunk like [`find`](Self::find). Bytes of the index that are read are charged to
    /// `budget`. The wait for a remote source ends once the request of `budget` is cancelled.
    ///
    /// # Errors
    /// Fails as `find` does. `BudgetExceeded` if too many bytes would have to be read.
    /// [`Error::cancelled`](crate::error::Error::cancelled) once the request is cancelled.
    fn find_with_budget(
        &self,
        place: &[u64],
        _budget: &RequestBudget,
    ) -> Result<Option<StoredChunk>> {
        self.find(place)
    }

    /// Calls `visit` with every stored chunk in the index's order until `visit` breaks. Bytes of
    /// the index that are read are charged to `budget`.
    fn walk(&self, budget: &RequestBudget, visit: &mut ChunkVisitor<'_>) -> Result<()> {
        self.walk_from(&mut IndexCursor::default(), budget, visit)
    }

    /// Calls `visit` with the stored chunks from the position `place` on, in the index's order,
    /// until `visit` breaks. Sets `place` to the position after the last visited chunk, where a
    /// later walk can continue. Bytes of the index that are read are charged to `budget`.
    ///
    /// # Errors
    /// `Corrupt` if a structure is damaged, after the chunks before it were visited. `place` then
    /// stays unchanged.
    fn walk_from(
        &self,
        place: &mut IndexCursor,
        budget: &RequestBudget,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()>;
}

/// A position in a walk over a chunk index. Only the index knows the meaning of the numbers. The
/// list of numbers is empty at the beginning of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexCursor(pub Vec<u64>);

/// A function that receives the grid coordinates and the location of each stored chunk. The walk
/// ends when the function breaks.
pub type ChunkVisitor<'a> = dyn FnMut(&[u64], StoredChunk) -> ControlFlow<()> + 'a;

/// The location of one chunk's stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Offset of the bytes in the array's source.
    pub offset: u64,
    /// Length in bytes of the stored chunk, encoded by its filters.
    pub length: u64,
    /// If bit i is set, filter i of the pipeline was not applied to this chunk.
    pub filter_mask: u32,
}

/// The filters of a chunk in writing order. Reading reverses them from last to first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pipeline(pub Vec<Filter>);

impl Pipeline {
    /// Returns the approximate memory in bytes that the filters' parameters take.
    pub fn weight(&self) -> u64 {
        let parameters =
            |filter: &Filter| memory::allocation_size(size_of_val(&*filter.parameters));
        u64::sum(self.0.iter().map(parameters))
    }
}

/// One step of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The filter's number in The HDF Group's registry.
    pub id: u16,
    /// The filter's name, if the file stores one.
    pub name: Option<String>,
    /// The "client data": parameters that the encoder stores for the decoder.
    pub parameters: Vec<u32>,
}

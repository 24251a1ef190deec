//! The parts of storage: extents, chunks and their index, encoded blocks.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::memory;
use crate::memory::buffer::{Buffer, BufferPool};
use crate::memory::cancel::IsWanted;
use crate::memory::effort::Effort;
use crate::source::SharedSource;
use crate::wire::{Count, Extent};

/// The bytes of an encoded block, cut into pieces of equal length that are decoded one by one.
pub trait Pieces: Send + Sync + fmt::Debug {
    /// Decoded bytes of all pieces together.
    fn bytes(&self) -> u64;

    /// Decoded bytes of every piece but the last, which may be shorter. Never zero.
    ///
    /// # Errors
    /// Fails if what tells the pieces apart cannot be read or is damaged.
    fn piece_bytes(&self) -> Result<u64>;

    /// Stored bytes that are in memory while a piece is decoded, at most.
    ///
    /// # Errors
    /// Fails as `piece_bytes` does.
    fn stored_at_once(&self) -> Result<u64> {
        self.piece_bytes()
    }

    /// Stored bytes of the whole block.
    fn stored_bytes(&self) -> u64;

    /// Where the stored bytes of these pieces are, as far as that is known before they are decoded:
    /// all of the block's for all of its pieces.
    fn place(&self, _pieces: Range<u64>) -> Vec<StoredExtent> {
        Vec::new()
    }

    /// Whether a piece is best decoded after the one before it, so that decoding ahead of a reader
    /// in several threads gains nothing.
    fn is_sequential(&self) -> bool {
        false
    }

    /// The decoded bytes of a piece, exactly as many as it has. Of a sequential block, the caller
    /// lets one decode take place at a time.
    ///
    /// # Errors
    /// Fails if the stored bytes are damaged or of a kind that is not built; `NotFound` past the
    /// last piece.
    fn decode(&self, piece: u64, help: &mut Help<'_>) -> Result<Buffer>;
}

#[cfg(test)]
impl dyn Pieces + '_ {
    /// Decodes a piece without help.
    pub(crate) fn decode_alone(&self, piece: u64) -> Result<Buffer> {
        let mut help = Help {
            threads: &|| 1,
            pool: &BufferPool::default(),
            is_wanted: &|| true,
            pass: &mut |_, _| {},
        };
        self.decode(piece, &mut help)
    }
}

/// The means to decode a piece.
pub struct Help<'a> {
    /// Threads that may work at it now, the caller's among them: fewer while others decode, too.
    pub threads: &'a (dyn Fn() -> usize + Sync),
    /// Where the memory of what is decoded comes from.
    pub pool: &'a BufferPool,
    /// Asked between one part of the work and the next.
    pub is_wanted: &'a IsWanted<'a>,
    /// Is handed the pieces that had to be decoded on the way, with their numbers, so that somebody
    /// keeps them: a reader that goes backwards needs them next.
    pub pass: &'a mut dyn FnMut(u64, Buffer),
}

/// A run of the array's bytes, as they are in a source.
#[derive(Debug, Clone)]
pub struct StoredExtent {
    /// Where they are.
    pub source: SharedSource,
    /// Where they are in that source.
    pub extent: Extent,
}

/// A regular grid of separately stored chunks; the last ones along a dimension may stick out.
#[derive(Debug, Clone)]
pub struct Chunked {
    /// Where the chunks are.
    pub source: SharedSource,
    /// Absolute offset of the first byte that may be a chunk's: the bytes before belong to the
    /// superblock.
    pub begin: u64,
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

    /// Like [`find`](Self::find), where `effort` pays for what is read of the index, and ends the
    /// wait for a far source.
    ///
    /// # Errors
    /// Fails as `find` does; `Effort` where too much would have to be read; [`Error::unwanted`] once
    /// the request is to end.
    fn find_within(&self, place: &[u64], _effort: &Effort) -> Result<Option<StoredChunk>> {
        self.find(place)
    }

    /// Hands every stored chunk to `visit`, in the index's order, until it breaks off. `effort`
    /// pays for what is read of the index.
    fn walk(&self, effort: &Effort, visit: &mut ChunkVisitor<'_>) -> Result<()> {
        self.walk_from(&mut IndexCursor::default(), effort, visit)
    }

    /// Hands the stored chunks from `place` on to `visit`, in the index's order, until it breaks
    /// off; `place` is then behind the last one that it was handed, and a later walk goes on there
    /// by a descent. `effort` pays for what is read of the index.
    ///
    /// # Errors
    /// `Corrupt` where a structure is damaged, after the chunks before it were handed on; `place`
    /// stays as it was.
    fn walk_from(
        &self,
        place: &mut IndexCursor,
        effort: &Effort,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<()>;
}

/// How far a walk over a chunk index has come. Only the index knows the meaning of the numbers;
/// there are none at the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexCursor(pub Vec<u64>);

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

impl Pipeline {
    /// Bytes of memory that the filters' parameters take, about.
    pub fn weight(&self) -> u64 {
        let parameters = |filter: &Filter| memory::piece(size_of_val(&*filter.parameters));
        u64::together(self.0.iter().map(parameters))
    }
}

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

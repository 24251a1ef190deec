//! The chunks of one array: how they are found and decoded. The pieces of an encoded block are
//! treated as a one-dimensional row of chunks.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use lru::LruCache;

use crate::array::cache::ChunkKey;
use crate::array::geometry::grid::Grid;
use crate::error::{Cause, Error, Result};
use crate::filter;
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{WantedCheck, check_wanted};
use crate::memory::gate::{FairLock, FairLockGuard};
use crate::memory::lock::lock;
use crate::memory::request_budget::RequestBudget;
use crate::model::Array;
use crate::model::storage::{ChunkGrid, DecodeContext, PieceDecoder, StoredChunk, StoredExtent};
use crate::source::growing::retry_while_growing;
use crate::source::{SharedSource, check_range, read_buffer};
use crate::wire::Count;

/// The chunks of one array, or the pieces of its encoded block.
#[derive(Debug)]
pub(super) struct ArrayChunks {
    /// The number that identifies the array in its engine.
    array: u64,
    pub(super) grid: Grid,
    origin: ChunkOrigin,
    /// The recently found index entries of chunks in a remote source, by chunk number. A thread
    /// that must not wait for the chunk index looks up chunks only here.
    located: Option<Mutex<LruCache<u64, Option<StoredChunk>>>>,
}

#[derive(Debug)]
enum ChunkOrigin {
    Grid(ChunkGrid),
    Block(PieceBlock),
}

#[derive(Debug)]
struct PieceBlock {
    pieces: Arc<dyn PieceDecoder>,
    /// Number of stored bytes that are in memory while one piece of the block is decoded.
    stored_at_once: u64,
    /// Whether the block's source is remote.
    is_remote: bool,
    /// Whether reads from the block's source are faster if their bytes were requested ahead.
    is_prefetch_useful: bool,
    /// The lock for decoding: one decode at a time, in order of arrival. All readers of the block
    /// share the lock.
    decode_lock: Arc<FairLock>,
}

/// The stored form of a chunk.
#[derive(Debug, Clone)]
pub(super) enum ChunkForm {
    /// The chunk is not stored: every element is the fill value.
    Absent,
    /// The chunk is stored unencoded, from this offset of the source on.
    Raw(SharedSource, u64),
    /// The chunk has to be decoded.
    Encoded(EncodedChunk),
}

/// A chunk that has to be decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncodedChunk {
    number: u64,
    /// The stored bytes in the file. `None` for a piece of a block, which the block finds itself.
    pub(super) stored: Option<StoredChunk>,
}

impl ArrayChunks {
    /// Returns the chunks of `array`, which must not be empty.
    ///
    /// # Errors
    /// `Corrupt` for an invalid chunk shape, `Unsupported` for a filter that cannot be decoded.
    pub(super) fn from_grid(number: u64, array: &Array, chunked: &ChunkGrid) -> Result<Self> {
        let element = u64::from(array.datatype.size);
        let grid = Grid::new(array.shape.dims(), &chunked.chunk_shape, element)?;
        if let Err(error) = filter::check(&chunked.pipeline) {
            check_never_applied(chunked, error)?;
        }
        Ok(ArrayChunks {
            array: number,
            grid,
            origin: ChunkOrigin::Grid(chunked.clone()),
            located: chunked.source.is_remote().then(|| {
                let places = LruCache::sparse(limits::LOCATED_CHUNKS);
                Mutex::new(places)
            }),
        })
    }

    /// Returns the pieces that cover the first `length` bytes (not zero) of an encoded block.
    ///
    /// # Errors
    /// `Corrupt` if the block is shorter or the data that separates its pieces is damaged, `Limit`
    /// for pieces of more than [`limits::CHUNK_BYTES`].
    pub(super) fn from_block(
        number: u64,
        pieces: &Arc<dyn PieceDecoder>,
        turns: Arc<FairLock>,
        length: u64,
    ) -> Result<Self> {
        if pieces.byte_length() < length {
            let what = format!(
                "array of {length} bytes in a block of {}",
                pieces.byte_length()
            );
            return Err(Error::corrupt(what, None));
        }
        let piece = pieces.piece_bytes()?;
        check_chunk_size(piece)?;
        Ok(ArrayChunks {
            array: number,
            grid: Grid::new(&[length], &[piece], 1)?,
            origin: ChunkOrigin::Block(PieceBlock {
                pieces: Arc::clone(pieces),
                stored_at_once: pieces.max_stored_bytes()?,
                is_remote: pieces
                    .stored_extents(0..1)
                    .iter()
                    .any(|part| part.source.is_remote()),
                is_prefetch_useful: pieces
                    .stored_extents(0..1)
                    .iter()
                    .any(|part| part.source.benefits_from_prefetch()),
                decode_lock: turns,
            }),
            located: None,
        })
    }

    /// Returns the cache key of chunk `number`.
    pub(super) fn cache_key(&self, number: u64) -> ChunkKey {
        (self.array, number)
    }

    /// Returns the chunk grid in the array's description. Returns `None` for an encoded block.
    pub(super) fn chunk_grid(&self) -> Option<&ChunkGrid> {
        match &self.origin {
            ChunkOrigin::Grid(chunked) => Some(chunked),
            ChunkOrigin::Block(..) => None,
        }
    }

    /// Returns the number of stored bytes, if it is known without a search of the chunk index.
    pub(super) fn stored_bytes(&self) -> Option<u64> {
        match &self.origin {
            ChunkOrigin::Grid(_) => None,
            ChunkOrigin::Block(block) => Some(block.pieces.stored_bytes()),
        }
    }

    /// Returns whether any chunk may have to be decoded.
    pub(super) fn is_encoded(&self) -> bool {
        match &self.origin {
            ChunkOrigin::Grid(chunked) => !chunked.pipeline.0.is_empty(),
            ChunkOrigin::Block(..) => true,
        }
    }

    /// Returns whether chunks are best decoded one after another, not several at a time.
    pub(super) fn is_sequential(&self) -> bool {
        match &self.origin {
            ChunkOrigin::Grid(_) => false,
            ChunkOrigin::Block(block) => block.pieces.is_sequential(),
        }
    }

    /// Waits for the caller's turn to decode, if chunks are best decoded one after another. Without
    /// this order, a thread that was overtaken would decode the same pieces again. Returns `None`
    /// at once if chunks can be decoded in any order.
    ///
    /// # Errors
    /// [`Error::cancelled`] once the decode is not wanted any longer.
    pub(super) fn wait_for_turn(
        &self,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Option<FairLockGuard>> {
        match &self.origin {
            ChunkOrigin::Block(block) if block.pieces.is_sequential() => {
                block.decode_lock.wait(|| check_wanted(is_wanted)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Finds the stored form of chunk `number`. The wait for the index of a remote source ends once
    /// the request of `budget` is cancelled.
    ///
    /// # Errors
    /// `Corrupt` if the index is damaged or points outside the source, `Limit` for an encoded chunk
    /// of more than [`limits::CHUNK_BYTES`]. [`Error::cancelled`] once the request is cancelled.
    pub(super) fn locate(&self, number: u64, budget: &RequestBudget) -> Result<ChunkForm> {
        match &self.origin {
            ChunkOrigin::Grid(chunked) => self.locate_in(chunked, number, budget),
            ChunkOrigin::Block(..) => Ok(ChunkForm::Encoded(EncodedChunk {
                number,
                stored: None,
            })),
        }
    }

    /// Returns the encoded block that contains the array, if the block is in a remote source.
    pub(super) fn remote_block(&self) -> Option<&dyn PieceDecoder> {
        match &self.origin {
            ChunkOrigin::Block(block) if block.is_remote => Some(&*block.pieces),
            _ => None,
        }
    }

    /// Returns whether a sequential reader gets chunks sooner if they are requested ahead.
    pub(super) fn benefits_from_prefetch(&self) -> bool {
        match &self.origin {
            ChunkOrigin::Block(block) => block.is_prefetch_useful,
            ChunkOrigin::Grid(chunked) => chunked.source.benefits_from_prefetch(),
        }
    }

    /// Returns the encoded block that contains the array, if there is one.
    pub(super) fn encoded_block(&self) -> Option<&dyn PieceDecoder> {
        match &self.origin {
            ChunkOrigin::Block(block) => Some(&*block.pieces),
            ChunkOrigin::Grid(_) => None,
        }
    }

    /// Returns whether finding or reading a chunk may have to wait for a remote source.
    pub(super) fn is_remote(&self) -> bool {
        self.located.is_some() || self.remote_block().is_some()
    }

    /// Returns whether chunk `number` can be decoded without waiting for a remote source.
    pub(super) fn is_available(&self, number: u64) -> bool {
        if let Some(block) = self.remote_block() {
            // Only the block's decoder knows which bytes a piece needs, so the whole block is
            // checked.
            let parts = block.stored_extents(0..self.grid.chunk_count());
            let is_here = |StoredExtent { source, extent }: &StoredExtent| {
                source.is_available(extent.start(), extent.length())
            };
            return parts.iter().all(is_here);
        }
        let (Some(located), Some(chunked)) = (&self.located, self.chunk_grid()) else {
            return true;
        };
        let found = lock(located).get(&number).copied();
        let is_here =
            |stored: StoredChunk| chunked.source.is_available(stored.offset, stored.length);
        found.is_some_and(|found| found.is_none_or(is_here))
    }

    /// Returns the index entry of chunk `number`, whose grid coordinates are `place`, or `None` if
    /// the chunk is not stored.
    fn find(
        &self,
        chunked: &ChunkGrid,
        (number, place): (u64, &[u64]),
        budget: &RequestBudget,
    ) -> Result<Option<StoredChunk>> {
        let Some(located) = &self.located else {
            return chunked.index.find(place);
        };
        if let Some(found) = lock(located).get(&number) {
            return Ok(*found);
        }
        let found = chunked.index.find_with_budget(place, budget)?;
        lock(located).put(number, found);
        Ok(found)
    }

    fn locate_in(
        &self,
        chunked: &ChunkGrid,
        number: u64,
        budget: &RequestBudget,
    ) -> Result<ChunkForm> {
        let place = self.grid.chunk_coordinates(number);
        let Some(stored) = self.find(chunked, (number, &place), budget)? else {
            return Ok(ChunkForm::Absent);
        };
        let source = &chunked.source;
        if stored.offset < chunked.min_offset {
            let what = "chunk: its address is not possible";
            return Err(Error::corrupt(what, stored.offset));
        }
        let raw = should_skip_all(stored.filter_mask, chunked.pipeline.0.len())
            || chunked.has_unfiltered_edge_chunks && self.grid.is_partly_outside(&place);
        if !raw {
            check_chunk_size(stored.length)?;
            check_chunk_size(self.grid.chunk_bytes())?;
            check_in_source(source, stored.offset, stored.length)?;
            let stored = Some(stored);
            return Ok(ChunkForm::Encoded(EncodedChunk { number, stored }));
        }
        let bytes = self.grid.chunk_bytes();
        if stored.length < bytes {
            let what = format!(
                "chunk {place:?}: {} bytes are stored, {bytes} are required",
                stored.length
            );
            return Err(Error::corrupt(what, stored.offset));
        }
        check_in_source(source, stored.offset, bytes)?;
        Ok(ChunkForm::Raw(Arc::clone(source), stored.offset))
    }

    /// Returns the memory in bytes that decoding a chunk may take: the stored bytes, and twice the
    /// decoded bytes for a filter's input and output.
    pub(super) fn decode_bytes(&self, encoded: Option<EncodedChunk>) -> u64 {
        let decoded = self.grid.chunk_bytes();
        let stored = match (&self.origin, encoded.and_then(|encoded| encoded.stored)) {
            (ChunkOrigin::Block(block), _) => block.stored_at_once,
            (_, Some(stored)) => stored.length,
            (_, None) => decoded,
        };
        stored.plus(decoded.times(2))
    }

    /// Reads and decodes a chunk. `help` provides threads, buffers and cancellation.
    ///
    /// # Errors
    /// `Corrupt` if a filter refuses the chunk or the decoded bytes are fewer than a chunk has. The
    /// error names the chunk.
    pub(super) fn decode(
        &self,
        encoded: EncodedChunk,
        help: &mut DecodeContext<'_>,
        context: &mut filter::DecoderResources,
    ) -> Result<Buffer> {
        // A panic in a codec becomes an error of this chunk and does not end the thread.
        let decoded = catch_unwind(AssertUnwindSafe(|| match (&self.origin, encoded.stored) {
            (ChunkOrigin::Grid(chunked), Some(stored)) => {
                self.decode_filters(chunked, stored, help, context)
            }
            (ChunkOrigin::Block(block), _) => block.pieces.decode(encoded.number, help),
            (ChunkOrigin::Grid(_), None) => Err(Error::NotFound),
        }));
        let broken = |_| Err(Error::from_cause(Cause::Unavailable, "a decoder stopped"));
        let mut decoded = decoded
            .unwrap_or_else(broken)
            .map_err(|error| self.with_chunk_location(encoded, error))?;
        let bytes = self.min_decoded_bytes(encoded.number) as usize;
        if decoded.len() < bytes {
            let what = format!("decodes to {} bytes, {bytes} are required", decoded.len());
            return Err(self.with_chunk_location(encoded, Error::corrupt(what, None)));
        }
        decoded.truncate(self.grid.chunk_bytes() as usize);
        Ok(decoded)
    }

    fn decode_filters(
        &self,
        chunked: &ChunkGrid,
        stored: StoredChunk,
        help: &DecodeContext<'_>,
        context: &mut filter::DecoderResources,
    ) -> Result<Buffer> {
        let StoredChunk { offset, length, .. } = stored;
        let bytes = self.grid.chunk_bytes() as usize;
        let source = &*chunked.source;
        let means = (help.pool, help.is_wanted);
        let read = || read_buffer(source, (offset, length), means, "stored chunk");
        retry_while_growing(source, || {
            let block = read()?;
            // The chunk is read twice, because not every codec detects that a writer was replacing
            // the chunk.
            if source.is_growing() && *read()? != *block {
                return Err(Error::corrupt("is being written", offset));
            }
            let (pipeline, mask) = (&chunked.pipeline, stored.filter_mask);
            filter::decode(pipeline, mask, block, bytes, context, help.is_wanted)
        })
    }

    /// Returns the minimum number of bytes that chunk `number` must decode to. For a block's last
    /// piece, only the bytes within the array count.
    fn min_decoded_bytes(&self, number: u64) -> u64 {
        let bytes = self.grid.chunk_bytes();
        match (&self.origin, self.grid.dims()) {
            (ChunkOrigin::Block(..), &[length]) => bytes.min(length - number * bytes),
            _ => bytes,
        }
    }

    /// Adds the chunk's grid coordinates and file offset to the error.
    fn with_chunk_location(&self, encoded: EncodedChunk, error: Error) -> Error {
        let Some(StoredChunk { offset: at, .. }) = encoded.stored else {
            return error;
        };
        let place = self.grid.chunk_coordinates(encoded.number);
        let name = |what| format!("chunk {place:?}: {what}").into();
        match error {
            error if error.is_cancelled() => error,
            Error::Corrupt { what, .. } => Error::Corrupt {
                what: name(what),
                at: Some(at),
            },
            Error::Unsupported { what, .. } => Error::Unsupported {
                what: name(what),
                at: Some(at),
            },
            Error::Limit { what, max } => Error::Limit {
                what: name(what),
                max,
            },
            Error::Io { cause, what } => Error::Io {
                cause,
                what: format!("{}, at byte {at}", name(what)).into(),
            },
            other => other,
        }
    }
}

/// Returns whether `filter_mask` skips every one of `filters` filters.
fn should_skip_all(filter_mask: u32, filters: usize) -> bool {
    (0..filters).all(|i| i < 32 && filter_mask >> i & 1 == 1)
}

/// Checks that no stored chunk needs the filters that failed with `error`. An optional filter that
/// could not be applied is masked out of its chunks. If it is masked out of all chunks, its decoder
/// is not needed.
///
/// # Errors
/// `error` if some chunk needs an unavailable filter, or if too many chunks would have to be
/// checked.
fn check_never_applied(chunked: &ChunkGrid, error: Error) -> Result<()> {
    let mut left = limits::ALLOCATION_WALK;
    let mut needed = false;
    let budget = RequestBudget::for_request();
    chunked.index.walk(&budget, &mut |_, stored| {
        needed = left == 0 || filter::check_masked(&chunked.pipeline, stored.filter_mask).is_err();
        left = left.minus_or_zero(1);
        if needed {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    if needed { Err(error) } else { Ok(()) }
}

/// Fails with `Corrupt` if a chunk is not inside the source. Checks again while a writer is active,
/// because a writer may publish a chunk's location before the file is long enough.
fn check_in_source(source: &SharedSource, offset: u64, length: u64) -> Result<()> {
    retry_while_growing(&**source, || {
        check_range(&**source, offset, length, "stored chunk").map(drop)
    })
}

fn check_chunk_size(bytes: u64) -> Result<()> {
    if bytes > limits::CHUNK_BYTES {
        let what = format!("a chunk of {bytes} bytes");
        return Err(Error::limit(what, limits::CHUNK_BYTES));
    }
    Ok(())
}

//! Arrays that have bytes of their own: none, in memory, in extents, in chunks.

use std::sync::Arc;

use crate::array::allocation::Allocation;
use crate::array::bytes::Bytes;
use crate::array::cancel::{CancelToken, Canceller};
use crate::array::chunks::Chunks;
use crate::array::engine::{ChunkContent, Decoder, Engine};
use crate::array::extents::{ExtentPieces, Extents};
use crate::array::fill_value::FillValue;
use crate::array::gather::Plan;
use crate::array::prefetch::Stream;
use crate::array::span::{Part, Span};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::model::Array;
use crate::model::array::Storage;
use crate::model::storage::Pieces;

/// The bytes of one array.
#[derive(Debug)]
pub(super) struct Stored {
    engine: Arc<Engine>,
    length: u64,
    fill: FillValue,
    location: Location,
}

/// Where the bytes are.
#[derive(Debug)]
enum Location {
    Nowhere,
    Memory(Arc<[u8]>),
    Extents(Extents),
    Chunks(Arc<Chunks>),
}

impl Stored {
    /// The bytes of `array`, which is made of no other unless it has no elements.
    ///
    /// # Errors
    /// Why the storage is not readable; otherwise as [`Reader::new`](crate::array::Reader::new).
    pub(super) fn new(engine: &Arc<Engine>, array: &Arc<Array>) -> Result<Self> {
        let length = array.bytes()?;
        let storage = array.storage.as_ref().map_err(Clone::clone)?;
        let location = match length {
            0 => Location::Nowhere,
            _ => Location::new(engine, array, storage, length)?,
        };
        Ok(Stored {
            engine: Arc::clone(engine),
            length,
            fill: FillValue::of(array)?,
            location,
        })
    }

    /// As `new`, but extents are read in pieces, which the cache keeps: elements that stand apart
    /// share them.
    ///
    /// # Errors
    /// As for `new`.
    pub(super) fn in_pieces(engine: &Arc<Engine>, array: &Arc<Array>) -> Result<Self> {
        let mut stored = Stored::new(engine, array)?;
        if let Location::Extents(extents) = stored.location {
            let pieces: Arc<dyn Pieces> = Arc::new(ExtentPieces::new(extents, stored.length));
            stored.location = Location::of_block(engine, array, &pieces, stored.length)?;
        }
        Ok(stored)
    }

    /// Bytes of all elements.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes `offset..end`, not empty and inside the array, for the reader of `stream`.
    pub(super) fn read(
        &self,
        offset: u64,
        end: u64,
        stream: Option<&Stream>,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        match &self.location {
            Location::Nowhere => Ok(self.fill.bytes(offset, end).into()),
            Location::Memory(bytes) => Ok(bytes[offset as usize..end as usize].to_vec().into()),
            Location::Extents(extents) => {
                Ok(extents.read(offset, end, &self.decoder().pool)?.into())
            }
            Location::Chunks(chunks) => {
                let span = Span::new(&chunks.grid, offset, end);
                if let Some(stream) = stream {
                    stream.advise(self.decoder(), chunks, &span);
                }
                self.read_chunks(chunks, &span, cancel)
            }
        }
    }

    /// As `read`, if nothing has to be decoded, waited for or sought in an index.
    pub(super) fn read_now(
        &self,
        offset: u64,
        end: u64,
        stream: Option<&Stream>,
    ) -> Result<Option<Bytes>> {
        let Location::Chunks(chunks) = &self.location else {
            return self
                .read(offset, end, stream, &CancelToken::default())
                .map(Some);
        };
        if !chunks.is_encoded() {
            return Ok(None);
        }
        let span = Span::new(&chunks.grid, offset, end);
        let bytes = self.read_decoded(chunks, &span);
        if let (Some(_), Some(stream)) = (&bytes, stream) {
            stream.advise(self.decoder(), chunks, &span);
        }
        Ok(bytes)
    }

    /// The chunk at `place` of the grid as it is decoded, also where it sticks out of the array:
    /// at most `length` bytes from `offset` on.
    ///
    /// # Errors
    /// `NotFound` where there is no such chunk; as it cannot be decoded.
    pub(super) fn read_chunk(
        &self,
        place: &[u64],
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let Location::Chunks(chunks) = &self.location else {
            return Err(Error::NotFound);
        };
        let number = chunks.grid.number_at(place).ok_or(Error::NotFound)?;
        let end = offset.saturating_add(length as u64);
        let end = end.min(chunks.grid.chunk_bytes());
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        match self.decoder().chunk(chunks, number, cancel)? {
            ChunkContent::Decoded(chunk) => Ok(Bytes::shared(chunk, offset as usize..end as usize)),
            ChunkContent::Raw(source, base) => {
                let (pool, length) = (&self.decoder().pool, end - offset);
                let bytes = pool.read(&*source, base + offset, length, "stored chunk")?;
                Ok(bytes.into())
            }
            ChunkContent::Absent => Ok(self.fill.bytes(offset, end).into()),
        }
    }

    /// As `read_chunk`, if the chunk is decoded already.
    pub(super) fn decoded_chunk(&self, place: &[u64], offset: u64, length: usize) -> Option<Bytes> {
        let Location::Chunks(chunks) = &self.location else {
            return None;
        };
        let number = chunks.grid.number_at(place)?;
        let chunk = self.decoder().ready(chunks.key(number))?;
        let end = offset.saturating_add(length as u64).min(chunk.len() as u64);
        let start = offset.min(end);
        Some(Bytes::shared(chunk, start as usize..end as usize))
    }

    /// The bytes, if they are a run in one chunk that is decoded.
    fn read_decoded(&self, chunks: &Chunks, span: &Span<'_>) -> Option<Bytes> {
        let part = span.only_part()?;
        let start = part.one_run(span.length())?;
        let chunk = self.decoder().ready(chunks.key(part.number))?;
        Some(Bytes::shared(chunk, start..start + span.length()))
    }

    fn read_chunks(
        &self,
        chunks: &Arc<Chunks>,
        span: &Span<'_>,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let mut parts = span.parts();
        let ahead = match chunks.is_encoded() {
            true => limits::PREFETCH_CHUNKS,
            false => 0,
        };
        let first: Vec<Part> = parts.by_ref().take(ahead).collect();
        let _helped = self.spread(chunks, &first);
        let mut reply = Buffer::default();
        for part in first.into_iter().chain(parts) {
            let found = self.decoder().chunk(chunks, part.number, cancel)?;
            if let (ChunkContent::Decoded(chunk), Some(start)) =
                (&found, part.one_run(span.length()))
            {
                let range = start..start + span.length();
                return Ok(Bytes::shared(Arc::clone(chunk), range));
            }
            if reply.is_empty() {
                // Not before: the usual read is answered without a buffer.
                reply = self.decoder().pool.buffer(span.length());
            }
            for plan in &part.plans {
                self.gather(&found, plan, span.start(), &mut reply)?;
            }
        }
        Ok(reply.into())
    }

    /// Puts the part of a chunk into the reply, which begins at byte `offset` of the array.
    fn gather(
        &self,
        found: &ChunkContent,
        plan: &Plan,
        offset: u64,
        reply: &mut [u8],
    ) -> Result<()> {
        match found {
            ChunkContent::Decoded(chunk) => plan.copy(chunk, reply),
            ChunkContent::Raw(source, base) => plan.read(&**source, *base, reply)?,
            ChunkContent::Absent => plan.fill(&self.fill, offset, reply),
        }
        Ok(())
    }

    /// Lets the decode threads help with a read of several chunks, until what is returned is
    /// dropped.
    fn spread(&self, chunks: &Arc<Chunks>, parts: &[Part]) -> Option<Canceller> {
        let depth = self.decoder().depth(chunks) as usize;
        if depth < 2 || parts.len() < 2 {
            return None;
        }
        let mut missing: Vec<u64> = parts.iter().map(|part| part.number).collect();
        missing.retain(|&number| !self.decoder().has(chunks, number));
        missing.truncate(depth);
        // The first is for the reader itself.
        let others = missing.get(1..).filter(|others| !others.is_empty())?;
        let canceller = Canceller::default();
        self.decoder().queue.push_urgent(chunks, others, &canceller);
        Some(canceller)
    }

    /// Whether reading it may take long for each byte: it is decoded.
    pub(super) fn is_encoded(&self) -> bool {
        matches!(&self.location, Location::Chunks(chunks) if chunks.is_encoded())
    }

    /// Bytes that are best read at a time, where there are such.
    pub(super) fn chunk_bytes(&self) -> Option<u64> {
        match &self.location {
            Location::Chunks(chunks) => Some(chunks.grid.chunk_bytes()),
            _ => None,
        }
    }

    /// Which parts of the array are stored.
    ///
    /// # Errors
    /// As the chunk index is damaged.
    pub(super) fn allocation(&self) -> Result<Allocation> {
        let zero_fill = self.fill.is_zero();
        let chunks = match &self.location {
            Location::Nowhere => return Ok(Allocation::nothing(zero_fill, self.length)),
            Location::Memory(_) | Location::Extents(_) => {
                return Ok(Allocation::dense(self.length, self.length));
            }
            Location::Chunks(chunks) => chunks,
        };
        match chunks.chunked() {
            Some(chunked) => Allocation::of_chunks(&chunks.grid, chunked, zero_fill, self.length),
            None => {
                let stored = chunks.stored_bytes().unwrap_or(0);
                Ok(Allocation::dense(stored, self.length))
            }
        }
    }

    fn decoder(&self) -> &Arc<Decoder> {
        &self.engine.decoder
    }
}

impl Location {
    /// Where the `length` bytes of `array`, not zero, are.
    fn new(
        engine: &Arc<Engine>,
        array: &Arc<Array>,
        storage: &Storage,
        length: u64,
    ) -> Result<Self> {
        match storage {
            Storage::Empty => Err(Error::corrupt("storage of an array: none", None)),
            Storage::Fill => Ok(Location::Nowhere),
            Storage::Inline(bytes) if (bytes.len() as u64) < length => Err(Error::corrupt(
                format!("array of {length} bytes in storage of {}", bytes.len()),
                None,
            )),
            Storage::Inline(bytes) => Ok(Location::Memory(Arc::clone(bytes))),
            Storage::Extents(extents) => Ok(Location::Extents(Extents::new(extents))),
            Storage::Chunked(chunked) => {
                let chunks = Chunks::of_grid(engine.number(array), array, chunked)?;
                Ok(Location::Chunks(Arc::new(chunks)))
            }
            Storage::Encoded(pieces) => Location::of_block(engine, array, pieces, length),
            Storage::Strided(_) | Storage::Virtual(_) => {
                Err(Error::corrupt("strides over an array of others", None))
            }
        }
    }

    /// The first `length` bytes of a block.
    fn of_block(
        engine: &Arc<Engine>,
        array: &Arc<Array>,
        pieces: &Arc<dyn Pieces>,
        length: u64,
    ) -> Result<Self> {
        let number = engine.number(array);
        let turns = engine.turns(number);
        let chunks = Chunks::of_block(number, pieces, turns, length)?;
        Ok(Location::Chunks(Arc::new(chunks)))
    }
}

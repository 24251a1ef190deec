//! Arrays with separate storage: unwritten, in memory, in extents, or in chunks.

use std::collections::VecDeque;
use std::iter::once;
use std::ops::Range;
use std::sync::Arc;

use crate::array::bytes::Bytes;
use crate::array::chunks::ArrayChunks;
use crate::array::engine::{ChunkContent, ChunkDecoder, Engine};
use crate::array::geometry::allocation::Allocation;
use crate::array::geometry::gather::CopyPlan;
use crate::array::geometry::span::{ByteSpan, ChunkPart};
use crate::array::kinds::extents::{ExtentPieces, Extents};
use crate::array::kinds::fill_value::FillValue;
use crate::array::read_ahead::hints::TouchedChunks;
use crate::array::read_ahead::prefetch::ReadStream;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{CancelToken, Canceller, WantedCheck};
use crate::memory::request_budget::RequestBudget;
use crate::model::Array;
use crate::model::array::Storage;
use crate::model::storage::PieceDecoder;
use crate::source::{Urgency, read_buffer};
use crate::wire::Extent;

/// An array with storage of its own: unwritten, in memory, in extents, or in chunks.
#[derive(Debug)]
pub(in crate::array) struct StoredArray {
    engine: Arc<Engine>,
    length: u64,
    fill: FillValue,
    location: StorageLocation,
    touched: TouchedChunks,
}

/// The location and the form of an array's bytes.
#[derive(Debug)]
enum StorageLocation {
    Unallocated,
    Memory(Arc<[u8]>),
    Extents(Extents),
    ArrayChunks(Arc<ArrayChunks>),
}

impl StoredArray {
    /// Returns the stored array that `array` describes. The array must not be strided or virtual,
    /// unless it is empty.
    ///
    /// # Errors
    /// Fails with the reason why the storage is not readable. Otherwise fails as
    /// [`Reader::new`](crate::array::Reader::new) does.
    pub(in crate::array) fn new(engine: &Arc<Engine>, array: &Arc<Array>) -> Result<Self> {
        let length = array.byte_length()?;
        let storage = array.storage.as_ref().map_err(Clone::clone)?;
        let location = match length {
            0 => StorageLocation::Unallocated,
            _ => StorageLocation::new(engine, array, storage, length)?,
        };
        Ok(StoredArray {
            engine: Arc::clone(engine),
            length,
            fill: FillValue::from_array(array)?,
            location,
            touched: TouchedChunks::default(),
        })
    }

    /// Returns the stored array like `new`, but reads extents in pieces, which the cache keeps.
    /// Reads of different elements in one piece then share the piece.
    ///
    /// # Errors
    /// Fails as `new` does.
    pub(in crate::array) fn new_in_pieces(
        engine: &Arc<Engine>,
        array: &Arc<Array>,
    ) -> Result<Self> {
        let mut stored = StoredArray::new(engine, array)?;
        if let StorageLocation::Extents(extents) = stored.location {
            let pieces: Arc<dyn PieceDecoder> = Arc::new(ExtentPieces::new(extents, stored.length));
            stored.location = StorageLocation::from_block(engine, array, &pieces, stored.length)?;
        }
        Ok(stored)
    }

    /// Returns the number of bytes of all elements.
    pub(in crate::array) fn length(&self) -> u64 {
        self.length
    }

    /// Reads bytes `offset..end`, which must not be empty and must lie inside the array. `stream`
    /// is the sequence of reads that the read belongs to.
    pub(in crate::array) fn read(
        &self,
        offset: u64,
        end: u64,
        stream: Option<&ReadStream>,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        match &self.location {
            StorageLocation::Unallocated => Ok(self.fill.filled_bytes(offset, end).into()),
            StorageLocation::Memory(bytes) => {
                Ok(bytes[offset as usize..end as usize].to_vec().into())
            }
            StorageLocation::Extents(extents) => {
                if extents.is_remote(offset, end) {
                    self.prefetch_extents(extents, offset, end);
                }
                if extents.benefits_from_prefetch(offset, end)
                    && let Some(stream) = stream
                    && let Some(ahead) = stream.record_byte_read(offset, end, self.length)
                {
                    extents.prefetch(once(ahead), Urgency::Expected);
                }
                let is_wanted = || !cancel.is_cancelled();
                let means: (_, &WantedCheck<'_>) = (&self.decoder().pool, &is_wanted);
                Ok(extents.read(offset, end, means)?.into())
            }
            StorageLocation::ArrayChunks(chunks) => {
                let span = ByteSpan::new(&chunks.grid, offset, end);
                if chunks.is_remote() {
                    self.prefetch_span(chunks, &span, cancel)?;
                }
                let advise =
                    |stream: &ReadStream| stream.record_chunk_read(self.decoder(), chunks, &span);
                if let Some(ahead) = stream.and_then(advise) {
                    chunks.prefetch_expected(ahead);
                }
                let bytes = self.read_chunks(chunks, &span, cancel)?;
                if chunks.is_remote() {
                    self.record_touched(chunks, span.parts().map(|part| part.number));
                }
                Ok(bytes)
            }
        }
    }

    /// Returns whether reading bytes `offset..end` may take long because they are in a remote
    /// source.
    pub(in crate::array) fn is_remote(&self, offset: u64, end: u64) -> bool {
        match &self.location {
            StorageLocation::Extents(extents) => extents.is_remote(offset, end),
            StorageLocation::ArrayChunks(chunks) => chunks.is_remote(),
            StorageLocation::Unallocated | StorageLocation::Memory(_) => false,
        }
    }

    /// Requests `ranges` of the array's bytes from its sources, because the caller is about to read
    /// them one after another.
    ///
    /// # Errors
    /// [`Error::cancelled`] once the request is cancelled.
    pub(in crate::array) fn prefetch_ranges(
        &self,
        ranges: impl Iterator<Item = Range<u64>>,
        cancel: &CancelToken,
    ) -> Result<()> {
        match &self.location {
            StorageLocation::Extents(extents) if extents.is_remote(0, 1) => {
                extents.prefetch(ranges, Urgency::Needed);
            }
            StorageLocation::ArrayChunks(chunks) if chunks.is_remote() => {
                for range in ranges.take(limits::RANGES_AT_ONCE) {
                    let span = ByteSpan::new(&chunks.grid, range.start, range.end);
                    self.prefetch_span(chunks, &span, cancel)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Requests together the stored bytes of all chunks of `span` that are neither decoded nor
    /// being decoded, because a read is about to wait for them.
    ///
    /// # Errors
    /// [`Error::cancelled`] once the request is cancelled, because the call may wait for the chunk
    /// index.
    fn prefetch_span(
        &self,
        chunks: &Arc<ArrayChunks>,
        span: &ByteSpan<'_>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
        let missing = |part: &ChunkPart| {
            !chunks.is_encoded() || !self.decoder().is_cached_or_decoding(chunks, part.number)
        };
        let mut parts = span.parts().filter(missing).peekable();
        while parts.peek().is_some() {
            let batch: Vec<ChunkPart> = parts.by_ref().take(limits::RANGES_AT_ONCE).collect();
            chunks.prefetch_needed(batch.iter(), &budget);
            cancel.check_cancelled()?;
        }
        Ok(())
    }

    /// Records that a read touched the chunks `numbers`. Requests all chunks of the array from the
    /// source once readers have touched enough chunks.
    fn record_touched(&self, chunks: &Arc<ArrayChunks>, numbers: impl Iterator<Item = u64>) {
        if self
            .touched
            .record_touches(numbers, chunks.grid.chunk_count())
        {
            chunks.prefetch_all();
        }
    }

    /// Requests bytes `offset..end` of the array, which a read is about to wait for. Requests all
    /// bytes of the array once readers have touched enough of them.
    fn prefetch_extents(&self, extents: &Extents, offset: u64, end: u64) {
        extents.prefetch(once(offset..end), Urgency::Needed);
        let parts = offset / limits::AHEAD_LEAST..end.div_ceil(limits::AHEAD_LEAST);
        let count = self.length.div_ceil(limits::AHEAD_LEAST);
        if self.length <= limits::WHOLE_BYTES && self.touched.record_touches(parts, count) {
            extents.prefetch(once(0..self.length), Urgency::Expected);
        }
    }

    /// Reads like `read`, but returns `None` if that would require decoding, waiting or searching
    /// an index.
    pub(in crate::array) fn try_read(
        &self,
        offset: u64,
        end: u64,
        stream: Option<&ReadStream>,
    ) -> Result<Option<Bytes>> {
        let StorageLocation::ArrayChunks(chunks) = &self.location else {
            if self.is_remote(offset, end) {
                return Ok(None);
            }
            return self
                .read(offset, end, stream, &CancelToken::default())
                .map(Some);
        };
        // Reading ahead in a remote source would search the index.
        if !chunks.is_encoded() || chunks.is_remote() {
            return Ok(None);
        }
        let span = ByteSpan::new(&chunks.grid, offset, end);
        let bytes = self.read_decoded(chunks, &span);
        if let (Some(_), Some(stream)) = (&bytes, stream) {
            stream.record_chunk_read(self.decoder(), chunks, &span);
        }
        Ok(bytes)
    }

    /// Reads at most `length` bytes from `offset` on of the decoded chunk at grid coordinates
    /// `place`. An edge chunk is read as a whole, including elements outside the array.
    ///
    /// # Errors
    /// `NotFound` if the chunk does not exist. Fails if the chunk cannot be decoded.
    pub(in crate::array) fn read_chunk(
        &self,
        place: &[u64],
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let StorageLocation::ArrayChunks(chunks) = &self.location else {
            return Err(Error::NotFound);
        };
        let number = chunks.grid.chunk_number_at(place).ok_or(Error::NotFound)?;
        let end = Extent::saturating(offset, length as u64).end();
        let end = end.min(chunks.grid.chunk_bytes());
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        if chunks.is_remote() {
            let (budget, _granted) = RequestBudget::unlimited_until_cancelled(cancel);
            chunks.locate(number, &budget)?;
        }
        let content = self.decoder().get_or_decode(chunks, number, cancel)?;
        if chunks.is_remote() {
            self.record_touched(chunks, once(number));
        }
        match content {
            ChunkContent::Decoded(chunk) => Ok(Bytes::shared(chunk, offset as usize..end as usize)),
            ChunkContent::Raw(source, base) => {
                let stored = (base + offset, end - offset);
                let is_wanted = || !cancel.is_cancelled();
                let means: (_, &WantedCheck<'_>) = (&self.decoder().pool, &is_wanted);
                let bytes = read_buffer(&*source, stored, means, "stored chunk")?;
                Ok(bytes.into())
            }
            ChunkContent::Absent => Ok(self.fill.filled_bytes(offset, end).into()),
        }
    }

    /// Reads like `read_chunk`, but returns `None` if the chunk is not decoded yet.
    pub(in crate::array) fn try_read_chunk(
        &self,
        place: &[u64],
        offset: u64,
        length: usize,
    ) -> Option<Bytes> {
        let StorageLocation::ArrayChunks(chunks) = &self.location else {
            return None;
        };
        let number = chunks.grid.chunk_number_at(place)?;
        let chunk = self.decoder().find_decoded(chunks.cache_key(number))?;
        let end = Extent::saturating(offset, length as u64).end();
        let end = end.min(chunk.len() as u64);
        let start = offset.min(end);
        Some(Bytes::shared(chunk, start as usize..end as usize))
    }

    /// Returns the bytes of the span if they are contiguous in one chunk that is already decoded,
    /// otherwise `None`.
    fn read_decoded(&self, chunks: &ArrayChunks, span: &ByteSpan<'_>) -> Option<Bytes> {
        let part = span.single_part()?;
        let start = part.contiguous_offset(span.length())?;
        let chunk = self.decoder().find_decoded(chunks.cache_key(part.number))?;
        Some(Bytes::shared(chunk, start..start + span.length()))
    }

    fn read_chunks(
        &self,
        chunks: &Arc<ArrayChunks>,
        span: &ByteSpan<'_>,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let mut parts = span.parts();
        let ahead = if chunks.is_encoded() {
            limits::PREFETCH_CHUNKS
        } else {
            0
        };
        let mut next: VecDeque<ChunkPart> = parts.by_ref().take(ahead).collect();
        let helped = Canceller::default();
        self.queue_chunks(chunks, &next, &helped);
        let mut reply = Buffer::default();
        while let Some(part) = next.pop_front().or_else(|| parts.next()) {
            let found = self.decoder().get_or_decode(chunks, part.number, cancel)?;
            if let (ChunkContent::Decoded(chunk), Some(start)) =
                (&found, part.contiguous_offset(span.length()))
            {
                let range = start..start + span.length();
                return Ok(Bytes::shared(Arc::clone(chunk), range));
            }
            if reply.is_empty() {
                // The buffer is allocated only here, because the usual read is answered without
                // one.
                reply = self.decoder().pool.buffer(span.length())?;
            }
            for plan in &part.plans {
                self.copy_chunk_part(&found, (plan, span.start()), &mut reply, cancel)?;
            }
            if chunks.is_remote() {
                // Other chunks may have arrived meanwhile.
                self.queue_chunks(chunks, &next, &helped);
            }
        }
        Ok(reply.into())
    }

    /// Copies the part of a chunk that `plan` describes into `reply`, which begins at byte `offset`
    /// of the array.
    fn copy_chunk_part(
        &self,
        found: &ChunkContent,
        (plan, offset): (&CopyPlan, u64),
        reply: &mut [u8],
        cancel: &CancelToken,
    ) -> Result<()> {
        match found {
            ChunkContent::Decoded(chunk) => plan.copy(chunk, reply),
            ChunkContent::Raw(source, base) => {
                plan.copy_from_source(&**source, *base, reply, &|| !cancel.is_cancelled())?;
            }
            ChunkContent::Absent => plan.fill(&self.fill, offset, reply),
        }
        Ok(())
    }

    /// Queues the chunks of `parts` for the decode threads, so that they help with a read of
    /// several chunks. Dropping `canceller` removes the chunks from the queue.
    fn queue_chunks(
        &self,
        chunks: &Arc<ArrayChunks>,
        parts: &VecDeque<ChunkPart>,
        canceller: &Canceller,
    ) {
        let depth = self.decoder().prefetch_depth(chunks) as usize;
        if depth < 2 || parts.len() < 2 {
            return;
        }
        let mut missing: Vec<u64> = parts.iter().map(|part| part.number).collect();
        missing.retain(|&number| !self.decoder().is_cached_or_decoding(chunks, number));
        missing.truncate(depth);
        // The reader decodes the first chunk itself.
        if let Some(others) = missing.get(1..).filter(|others| !others.is_empty()) {
            self.decoder().queue.push_urgent(chunks, others, canceller);
        }
    }

    /// Returns whether the array is in chunks or pieces that may have to be decoded.
    pub(in crate::array) fn is_encoded(&self) -> bool {
        matches!(&self.location, StorageLocation::ArrayChunks(chunks) if chunks.is_encoded())
    }

    /// Returns the number of decoded bytes of a chunk or piece, which are best read at a time.
    /// Returns `None` for an array that is not in chunks.
    pub(in crate::array) fn chunk_bytes(&self) -> Option<u64> {
        match &self.location {
            StorageLocation::ArrayChunks(chunks) => Some(chunks.grid.chunk_bytes()),
            _ => None,
        }
    }

    /// Returns which parts of the array are stored.
    ///
    /// # Errors
    /// Fails if the chunk index is damaged.
    pub(in crate::array) fn allocation(&self) -> Result<Allocation> {
        let zero_fill = self.fill.is_zero();
        let chunks = match &self.location {
            StorageLocation::Unallocated => {
                return Ok(Allocation::unallocated(zero_fill, self.length));
            }
            StorageLocation::Memory(_) | StorageLocation::Extents(_) => {
                return Ok(Allocation::dense(self.length, self.length));
            }
            StorageLocation::ArrayChunks(chunks) => chunks,
        };
        match chunks.chunk_grid() {
            Some(chunked) => Allocation::from_chunks(&chunks.grid, chunked, zero_fill, self.length),
            None => {
                let stored = chunks.stored_bytes().unwrap_or(0);
                Ok(Allocation::dense(stored, self.length))
            }
        }
    }

    fn decoder(&self) -> &Arc<ChunkDecoder> {
        &self.engine.decoder
    }
}

impl StorageLocation {
    /// Returns the location of the `length` bytes, not zero, of `array`.
    fn new(
        engine: &Arc<Engine>,
        array: &Arc<Array>,
        storage: &Storage,
        length: u64,
    ) -> Result<Self> {
        match storage {
            Storage::Empty => Err(Error::corrupt("array: it has no storage", None)),
            Storage::Fill => Ok(StorageLocation::Unallocated),
            Storage::Inline(bytes) if (bytes.len() as u64) < length => Err(Error::corrupt(
                format!("array of {length} bytes in storage of {}", bytes.len()),
                None,
            )),
            Storage::Inline(bytes) => Ok(StorageLocation::Memory(Arc::clone(bytes))),
            Storage::Extents(extents) => Ok(StorageLocation::Extents(Extents::new(extents))),
            Storage::Chunked(chunked) => {
                let chunks = ArrayChunks::from_grid(engine.array_id(array), array, chunked)?;
                Ok(StorageLocation::ArrayChunks(Arc::new(chunks)))
            }
            Storage::Encoded(pieces) => StorageLocation::from_block(engine, array, pieces, length),
            Storage::Strided(_) | Storage::Selected(_) | Storage::Virtual(_) => {
                Err(Error::corrupt("strides over an array of this kind", None))
            }
        }
    }

    /// Returns the location of an array that is the first `length` bytes of the block `pieces`.
    fn from_block(
        engine: &Arc<Engine>,
        array: &Arc<Array>,
        pieces: &Arc<dyn PieceDecoder>,
        length: u64,
    ) -> Result<Self> {
        let number = engine.array_id(array);
        let turns = engine.decode_lock(number);
        let chunks = ArrayChunks::from_block(number, pieces, turns, length)?;
        Ok(StorageLocation::ArrayChunks(Arc::new(chunks)))
    }
}

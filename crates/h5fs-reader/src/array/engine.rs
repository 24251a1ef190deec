//! The engine that all arrays of a mount share: the cache, the running decodes and the decode
//! threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use crate::array::cache::{CacheSize, ChunkCache, ChunkKey, DecodedChunk, entry_bytes};
use crate::array::chunks::{ArrayChunks, ChunkForm, EncodedChunk};
use crate::array::decode::decode_memory::DecodeMemory;
use crate::array::decode::flight::{DecodeLeader, DecodeRole, RunningDecodes};
use crate::array::decode::held_memory::{MemoryReservation, OpenObjectMemory};
use crate::array::decode::helpers::{FreeHelperThreads, HelperThreads};
use crate::array::decode::queue::{DecodeQueue, NextJob};
use crate::array::kinds::virtual_array::PartSource;
use crate::error::Result;
use crate::filter;
use crate::limits;
use crate::memory::buffer::{Buffer, BufferPool};
use crate::memory::cancel::{CancelToken, WantedCheck, check_wanted};
use crate::memory::gate::FairLock;
use crate::memory::lock::lock;
use crate::memory::request_budget::RequestBudget;
use crate::memory::shared_lru::SharedLru;
use crate::model::Array;
use crate::model::storage::DecodeContext;
use crate::source::SharedSource;
use crate::wire::Count;

/// Target for the total decoded bytes of the chunks that are decoded ahead of one reader. The
/// number of these chunks has its own bounds, see `target_prefetch_depth`.
const PREFETCH_BYTES: u64 = 8 << 20;

/// Number of chunks that are decoded ahead of a reader if the chunks must be decoded one after
/// another. With more chunks, decodes might overtake each other and decode the same chunks twice.
const SEQUENTIAL_DEPTH: u64 = 1;

/// The cache and the decode threads of one mount. The threads end when the engine is dropped.
pub struct Engine {
    pub(super) decoder: Arc<ChunkDecoder>,
    /// The recently used source arrays of all virtual arrays. The key is the number of the part of
    /// the virtual array that the source fills.
    pub(super) sources: Arc<SharedLru<usize, Arc<PartSource>>>,
    array_ids: Mutex<ArrayIdTable>,
    /// The decode lock of each open encoded block, by the number of the block's array.
    decode_locks: Mutex<HashMap<u64, Weak<FairLock>>>,
    open_memory: Arc<OpenObjectMemory>,
    helpers: Arc<FreeHelperThreads>,
}

/// The numbers that identify arrays in the cache. Readers of one array description share a number,
/// so that a chunk decoded for one reader serves all. For example, several ndarrays may share one
/// block.
#[derive(Default)]
struct ArrayIdTable {
    next: u64,
    /// The number of each array, by the address of its description. The address stays unique while
    /// a `Weak` holds the allocation.
    id_by_address: HashMap<usize, (Weak<Array>, u64)>,
    /// The number of entries at which the entries of dropped array descriptions are removed.
    sweep_at: usize,
}

/// The decoder of chunks. Each chunk is decoded once, however many readers wait for it. The decode
/// threads share the decoder.
pub(super) struct ChunkDecoder {
    pub(super) cache: ChunkCache,
    pub(super) queue: DecodeQueue,
    pub(super) threads: usize,
    flights: RunningDecodes<ChunkContent>,
    memory: DecodeMemory,
    pub(super) pool: BufferPool,
    /// The idle filter contexts, at most one for each thread.
    contexts: Mutex<Vec<filter::DecoderResources>>,
    decoded: AtomicU64,
}

/// The content of a chunk for a reader.
#[derive(Debug, Clone)]
pub(super) enum ChunkContent {
    /// The chunk is not stored: every element is the fill value.
    Absent,
    /// The chunk is stored unencoded, from this offset of the source on.
    Raw(SharedSource, u64),
    Decoded(DecodedChunk),
}

/// Counters of the engine's work so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Number of bytes of decoded chunks in the cache.
    pub cache_bytes: u64,
    /// The cache's current capacity in bytes.
    pub cache_capacity: u64,
    /// Number of times that a reader found a chunk already decoded.
    pub hits: u64,
    /// Number of times that a reader did not find a chunk decoded.
    pub misses: u64,
    /// Number of chunks that were evicted from the cache.
    pub evictions: u64,
    /// Number of chunks that were decoded, for a reader or ahead of one.
    pub chunks_decoded: u64,
}

impl Engine {
    /// Creates an engine with a cache of size `cache_size` and `threads` threads (at least one)
    /// that decode ahead. All running decodes together take at most `threads` times the memory for
    /// decoding the largest chunk.
    pub fn new(cache_size: impl Into<CacheSize>, threads: usize) -> Arc<Engine> {
        let threads = threads.max(1);
        let decoder = Arc::new(ChunkDecoder {
            cache: ChunkCache::new(cache_size.into()),
            queue: DecodeQueue::new(),
            threads,
            flights: RunningDecodes::new(),
            memory: DecodeMemory::new(threads),
            pool: BufferPool::default(),
            contexts: Mutex::default(),
            decoded: AtomicU64::new(0),
        });
        spawn_decoders(&decoder);
        Arc::new(Engine {
            decoder,
            sources: SharedLru::new(limits::VIRTUAL_SOURCES),
            array_ids: Mutex::default(),
            decode_locks: Mutex::default(),
            open_memory: Arc::default(),
            helpers: FreeHelperThreads::new(threads - 1),
        })
    }

    /// Reserves `bytes` bytes of the memory for open objects, until the returned value is dropped.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if all open objects together take too much memory.
    pub fn reserve_memory(&self, bytes: u64) -> Result<MemoryReservation> {
        self.open_memory.reserve_for_object(bytes)
    }

    /// Returns at most `wanted` helper threads for a request whose work can be divided. The
    /// request's own thread and all helpers together do not exceed the threads of the mount.
    pub fn take_helpers(&self, wanted: usize) -> HelperThreads {
        self.helpers.take(wanted)
    }

    /// Returns the counters of the engine's work so far.
    pub fn statistics(&self) -> Statistics {
        let counts = self.decoder.cache.counters();
        Statistics {
            cache_bytes: counts.bytes,
            cache_capacity: self.decoder.cache.capacity(),
            hits: counts.hits,
            misses: counts.misses,
            evictions: counts.evictions,
            chunks_decoded: self.decoder.decoded.load(Ordering::Relaxed),
        }
    }

    /// Returns the number that identifies the array in the cache. No other array has or ever had
    /// this number.
    pub(super) fn array_id(&self, array: &Arc<Array>) -> u64 {
        let mut numbers = lock(&self.array_ids);
        numbers.array_id(array)
    }

    /// Returns the lock that lets one thread at a time decode pieces of the block whose array has
    /// this number.
    pub(super) fn decode_lock(&self, number: u64) -> Arc<FairLock> {
        let mut all = lock(&self.decode_locks);
        if let Some(turns) = all.get(&number).and_then(Weak::upgrade) {
            return turns;
        }
        all.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::default();
        all.insert(number, Arc::downgrade(&turns));
        turns
    }
}

impl ArrayIdTable {
    const FIRST_SWEEP: usize = 256;

    fn array_id(&mut self, array: &Arc<Array>) -> u64 {
        let address = Arc::as_ptr(array).addr();
        if let Some((held, number)) = self.id_by_address.get(&address)
            && held.strong_count() > 0
        {
            return *number;
        }
        if self.id_by_address.len() >= self.sweep_at {
            self.id_by_address
                .retain(|_, (held, _)| held.strong_count() > 0);
            self.sweep_at = (2 * self.id_by_address.len()).max(Self::FIRST_SWEEP);
        }
        let number = self.next;
        self.next += 1;
        self.id_by_address
            .insert(address, (Arc::downgrade(array), number));
        number
    }
}

/// Starts the decode threads.
fn spawn_decoders(decoder: &Arc<ChunkDecoder>) {
    for _ in 0..decoder.threads {
        let decoder = Arc::clone(decoder);
        let thread = thread::Builder::new().name("decode".to_owned());
        if let Err(error) = thread.spawn(move || decoder.decode_queued()) {
            // Without decode threads, readers decode chunks themselves.
            log::warn!("no thread for read-ahead: {error}");
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The threads are not joined: a thread may be waiting for a disk that does not answer, and
        // an unmount must not wait for it.
        self.decoder.queue.close();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Engine").field(&self.statistics()).finish()
    }
}

impl ChunkDecoder {
    /// Returns the chunk if it is already decoded.
    pub(super) fn find_decoded(&self, key: ChunkKey) -> Option<DecodedChunk> {
        self.cache
            .get_without_miss(key)
            .or_else(|| self.memory.find_kept_chunk(key))
    }

    /// Returns chunk `number` for a reader. The chunk comes from the cache, from a thread that is
    /// decoding the chunk, or from a decode in this call.
    pub(super) fn get_or_decode(
        &self,
        chunks: &ArrayChunks,
        number: u64,
        cancel: &CancelToken,
    ) -> Result<ChunkContent> {
        if !chunks.is_encoded() {
            return self.load(chunks, number, &|| !cancel.is_cancelled());
        }
        let key = chunks.cache_key(number);
        if let Some(chunk) = self
            .cache
            .get(key)
            .or_else(|| self.memory.find_kept_chunk(key))
        {
            return Ok(ChunkContent::Decoded(chunk));
        }
        if chunks.is_sequential() || chunks.decode_bytes(None) > limits::SMALL_DECODE {
            cancel.require_heavy_slot()?;
        }
        self.queue.remove(key);
        loop {
            let found = match self
                .flights
                .join_or_begin(key, cancel, || self.peek_decoded(key))
            {
                DecodeRole::Ready(found) => Ok(found),
                DecodeRole::Wait(flight) => flight.wait(cancel),
                DecodeRole::Leader(lead) => self.decode_as_leader(lead, chunks, number),
            };
            match found {
                // The decode was given up just before this reader joined, so the reader tries
                // again.
                Err(error) if error.is_cancelled() && !cancel.is_cancelled() => {}
                found => return found,
            }
        }
    }

    /// Decodes queued chunks until the queue is closed.
    fn decode_queued(&self) {
        loop {
            match self.queue.next(self.memory.drop_idle_chunks()) {
                NextJob::Job(job) => self.decode_ahead(&job.chunks, job.number, &job.token),
                NextJob::Empty => {}
                NextJob::Closed => return,
            }
        }
    }

    /// Decodes chunk `number` into the cache, unless the chunk is cached or being decoded. Skips
    /// chunks whose bytes have not arrived: decode threads never wait for a remote source, only
    /// readers do.
    fn decode_ahead(&self, chunks: &ArrayChunks, number: u64, cancel: &CancelToken) {
        if !chunks.is_available(number) {
            return;
        }
        let key = chunks.cache_key(number);
        if let DecodeRole::Leader(lead) = self
            .flights
            .join_or_begin(key, cancel, || self.peek_decoded(key))
        {
            // The reader that needs the chunk will report the error.
            let _ = self.decode_as_leader(lead, chunks, number);
        }
    }

    /// Returns whether chunk `number`, which a reader needs soon, is cached or being decoded. Marks
    /// a cached chunk as used, so that it is not evicted next.
    pub(super) fn is_cached_or_decoding(&self, chunks: &ArrayChunks, number: u64) -> bool {
        let key = chunks.cache_key(number);
        self.cache.touch(key) || self.flights.contains(key)
    }

    /// Returns how many chunks may be decoded ahead of one reader. The number is small enough that
    /// these chunks do not evict chunks that the reader still needs.
    pub(super) fn prefetch_depth(&self, chunks: &ArrayChunks) -> u64 {
        if !chunks.is_encoded() || !self.memory.fits_two_decodes(chunks.decode_bytes(None)) {
            return 0;
        }
        let room = self.cache.capacity() / entry_bytes(chunks.grid.chunk_bytes());
        if chunks.is_sequential() {
            // Decoding continues while the reader copies.
            return SEQUENTIAL_DEPTH.min(room / 4);
        }
        self.target_prefetch_depth(chunks)
            .min(room / 2)
            .min(room.minus_or_zero(chunks.grid.interleaved_chunks()))
    }

    fn target_prefetch_depth(&self, chunks: &ArrayChunks) -> u64 {
        let least = (2 * self.threads as u64).clamp(4, 8);
        let most = limits::PREFETCH_CHUNKS as u64;
        (PREFETCH_BYTES / chunks.grid.chunk_bytes()).clamp(least, most)
    }

    /// Returns the cache capacity in bytes that a sequential reader needs so that each chunk is
    /// decoded only once.
    pub(super) fn sequential_cache_bytes(&self, chunks: &ArrayChunks) -> u64 {
        let entry = entry_bytes(chunks.grid.chunk_bytes());
        // The kernel sends several requests at a time, so the first request of a band overtakes the
        // last one of the previous band.
        let bands = match chunks.grid.interleaved_chunks() {
            1 => 1,
            band => band.times(2),
        };
        let kept = bands.plus(self.target_prefetch_depth(chunks));
        entry.times(kept.min(chunks.grid.chunk_count()))
    }

    /// Returns the cache capacity in bytes that a reader going backwards needs so that a block
    /// whose pieces must be decoded in order is decoded only once. The factor two exists because
    /// one decode may fill only half of the cache.
    pub(super) fn backward_cache_bytes(&self, chunks: &ArrayChunks) -> u64 {
        let entry = entry_bytes(chunks.grid.chunk_bytes());
        entry.times(chunks.grid.chunk_count()).times(2)
    }

    fn peek_decoded(&self, key: ChunkKey) -> Option<ChunkContent> {
        let kept = self
            .cache
            .peek(key)
            .or_else(|| self.memory.find_kept_chunk(key));
        kept.map(ChunkContent::Decoded)
    }

    fn decode_as_leader(
        &self,
        lead: DecodeLeader<'_, ChunkContent>,
        chunks: &ArrayChunks,
        number: u64,
    ) -> Result<ChunkContent> {
        let found = self.load(chunks, number, &|| lead.is_wanted());
        lead.finish(found.clone());
        found
    }

    fn load(
        &self,
        chunks: &ArrayChunks,
        number: u64,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<ChunkContent> {
        match chunks.locate(number, &RequestBudget::default())? {
            ChunkForm::Absent => Ok(ChunkContent::Absent),
            ChunkForm::Raw(source, offset) => Ok(ChunkContent::Raw(source, offset)),
            ChunkForm::Encoded(encoded) => {
                let turn = chunks.wait_for_turn(is_wanted)?;
                if turn.is_some()
                    && let Some(passed) = self.peek_decoded(chunks.cache_key(number))
                {
                    return Ok(passed);
                }
                let bytes = chunks.decode_bytes(Some(encoded));
                let permit = self.memory.acquire(bytes, is_wanted)?;
                check_wanted(is_wanted)?;
                let chunk = Arc::new(self.decode(chunks, number, encoded, is_wanted)?);
                let key = chunks.cache_key(number);
                if !self.cache.put(key, &chunk) {
                    drop(permit);
                    self.memory.keep_chunk(key, &chunk, bytes);
                    self.queue.wake();
                }
                Ok(ChunkContent::Decoded(chunk))
            }
        }
    }

    /// Returns the number of threads that one decode may use, at least one.
    fn threads_per_decode(&self) -> usize {
        let decodes = self.memory.running_decodes().max(1);
        (self.threads / decodes).max(1)
    }

    fn decode(
        &self,
        chunks: &ArrayChunks,
        number: u64,
        encoded: EncodedChunk,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<Buffer> {
        // Of the chunks that a long decode passes, only the last ones are cached, so that they do
        // not evict everything else.
        let most = self.cache.capacity() / 2 / chunks.grid.chunk_bytes().max(1);
        let mut pass = |passed: u64, bytes| {
            let key = chunks.cache_key(passed);
            if self.cache.peek(key).is_some() {
                return;
            }
            self.decoded.fetch_add(1, Ordering::Relaxed);
            if passed.plus(most) > number {
                self.cache.put(key, &Arc::new(bytes));
            }
        };
        let mut help = DecodeContext {
            threads: &|| self.threads_per_decode(),
            pool: &self.pool,
            is_wanted,
            on_extra_piece: &mut pass,
        };
        let spare = lock(&self.contexts).pop();
        let mut context = spare.unwrap_or_else(|| filter::DecoderResources::new(&self.pool));
        let decoded = chunks.decode(encoded, &mut help, &mut context);
        let mut contexts = lock(&self.contexts);
        contexts.push(context);
        contexts.truncate(self.threads);
        drop(contexts);
        if decoded.is_ok() {
            self.decoded.fetch_add(1, Ordering::Relaxed);
        }
        decoded
    }
}

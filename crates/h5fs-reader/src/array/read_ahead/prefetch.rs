//! Decoding ahead of sequential reads through one open file.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use crate::array::chunks::ArrayChunks;
use crate::array::engine::ChunkDecoder;
use crate::array::geometry::span::ByteSpan;
use crate::limits;
use crate::memory::cancel::Canceller;
use crate::memory::lock::lock;
use crate::wire::Count;

/// The sequence of reads of one array through one open file.
///
/// The kernel sends the requests of one sequential reader in parallel, so they may arrive slightly
/// out of order.
#[derive(Default)]
pub struct ReadStream {
    progress: Mutex<PrefetchState>,
    canceller: Canceller,
    forward_claim: OnceLock<CacheClaim>,
    /// The claim of cache capacity for reads that go backwards.
    backward_claim: OnceLock<CacheClaim>,
}

impl fmt::Debug for ReadStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

#[derive(Default)]
struct PrefetchState {
    /// The largest end offset of a read in the current run.
    end: u64,
    /// Whether one read has already arrived, so that an adjacent next read makes the run
    /// sequential.
    has_previous_read: bool,
    /// The number of the first chunk that no read of the current run has touched.
    first_untouched: u64,
    /// The number of the first chunk that was not queued for decoding.
    first_unqueued: u64,
    ahead: ReadAheadWindow,
}

/// The state of requests to a source ahead of a sequential reader.
#[derive(Default)]
struct ReadAheadWindow {
    /// Number of bytes of the array to request ahead. The number doubles as the reader continues.
    window_bytes: u64,
    /// The first unit (chunk or byte) of the array that was not requested.
    next_unrequested: u64,
}

impl ReadAheadWindow {
    /// Returns the range of units to request now, at most `most` units of `bytes` bytes each, or
    /// `None` if no request is due. A unit is a chunk, or a byte of an array that is not encoded.
    /// The reader has reached unit `next` of an array of `count` units. A batch is at least half of
    /// the window ahead, so that neighbouring units are requested together.
    fn next_range(&mut self, next: u64, bytes: u64, count: u64, most: u64) -> Option<Range<u64>> {
        self.window_bytes = self.window_bytes.max(limits::AHEAD_LEAST);
        let reach = (self.window_bytes / bytes.max(1)).clamp(1, most);
        let from = self.next_unrequested.max(next);
        let to = next.plus(reach).min(count);
        let is_due = to == count || to.minus_or_zero(from) >= reach.div_ceil(2);
        if from >= to || !is_due {
            return None;
        }
        self.window_bytes = self.window_bytes.times(2).min(limits::AHEAD_BYTES);
        self.next_unrequested = to;
        Some(from..to)
    }
}

/// A claim of cache capacity for one reader, in bytes. Dropping the value releases the claim.
struct CacheClaim {
    decoder: Arc<ChunkDecoder>,
    bytes: u64,
}

impl CacheClaim {
    fn claim(decoder: &Arc<ChunkDecoder>, bytes: u64) -> Self {
        decoder.cache.claim(bytes);
        CacheClaim {
            decoder: Arc::clone(decoder),
            bytes,
        }
    }
}

impl Drop for CacheClaim {
    fn drop(&mut self) {
        self.decoder.cache.release(self.bytes);
    }
}

/// A read belongs to the current run if its distance from the run's end is at most this many times
/// its own length.
const MAX_SEQUENTIAL_GAP: u64 = 4;

impl ReadStream {
    /// Creates the stream of reads of a file that has just been opened.
    pub fn new() -> Self {
        ReadStream::default()
    }

    /// Records a read of bytes that a source stores unencoded, in an array of `length` bytes. If
    /// the reads are sequential, returns the range of following bytes to request from the source.
    pub fn record_byte_read(&self, offset: u64, end: u64, length: u64) -> Option<Range<u64>> {
        let mut progress = lock(&self.progress);
        if !progress.is_sequential_read(offset, end) {
            *progress = PrefetchState::default();
        }
        progress.end = progress.end.max(end);
        let next = progress.end;
        let sequential = std::mem::replace(&mut progress.has_previous_read, true);
        sequential.then(|| progress.ahead.next_range(next, 1, length, u64::MAX))?
    }

    /// Records a read of `chunks`, which must be encoded, before the read starts. If the reads are
    /// sequential, queues the next chunks for decoding. A seek drops the queued chunks. Returns the
    /// numbers of the chunks to request from the source.
    pub(in crate::array) fn record_chunk_read(
        &self,
        decoder: &Arc<ChunkDecoder>,
        chunks: &Arc<ArrayChunks>,
        span: &ByteSpan<'_>,
    ) -> Option<Range<u64>> {
        let (offset, end) = (span.start(), span.end());
        let mut progress = lock(&self.progress);
        if !progress.is_sequential_read(offset, end) {
            if chunks.is_sequential() && offset < progress.end {
                // A decode on the way back passes through earlier chunks, which will be needed
                // again.
                let claim = || CacheClaim::claim(decoder, decoder.backward_cache_bytes(chunks));
                self.backward_claim.get_or_init(claim);
            }
            self.canceller.cancel();
            *progress = PrefetchState::default();
        }
        progress.end = progress.end.max(end);
        progress.first_untouched = progress.first_untouched.max(span.last_chunk() + 1);
        let sequential = std::mem::replace(&mut progress.has_previous_read, true);
        if sequential || chunks.grid.interleaved_chunks() > 1 {
            let claim = || CacheClaim::claim(decoder, decoder.sequential_cache_bytes(chunks));
            self.forward_claim.get_or_init(claim);
        }
        if !sequential {
            return None;
        }
        let depth = decoder.prefetch_depth(chunks);
        let from = progress.first_untouched.max(progress.first_unqueued);
        let mut to = (progress.first_untouched + depth).min(chunks.grid.chunk_count());
        if chunks.is_remote() {
            // Chunks that have not arrived yet are queued by a later call.
            to = (from..to)
                .find(|&number| !chunks.is_available(number))
                .unwrap_or(to);
        }
        if from < to {
            // Chunks that are still to be read must not be evicted before chunks that were read
            // meanwhile.
            for number in progress.first_untouched..from {
                decoder.cache.touch(chunks.cache_key(number));
            }
            let numbers: Vec<u64> = (from..to).collect();
            let taken = decoder
                .queue
                .push_expected(chunks, &numbers, &self.canceller);
            progress.first_unqueued = from + taken as u64;
        }
        let (next, bytes) = (progress.first_untouched, chunks.grid.chunk_bytes());
        const MOST: u64 = limits::RANGES_AT_ONCE as u64;
        let asked = chunks.benefits_from_prefetch().then(|| {
            let count = chunks.grid.chunk_count();
            progress.ahead.next_range(next, bytes, count, MOST)
        });
        asked.flatten()
    }
}

impl PrefetchState {
    /// Returns whether a read of `offset..end` belongs to the current run.
    fn is_sequential_read(&self, offset: u64, end: u64) -> bool {
        let disorder = (end - offset).times(MAX_SEQUENTIAL_GAP);
        self.end != 0 && offset.abs_diff(self.end) <= disorder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_read_ahead_window_grows() {
        const CHUNK: u64 = 64 << 10;
        let mut ahead = ReadAheadWindow::default();
        let mut batches = Vec::new();
        for next in 0..10_000 {
            if let Some(asked) = ahead.next_range(next, CHUNK, 10_000, 4096) {
                assert!(asked.start >= next && asked.end - next <= limits::AHEAD_BYTES / CHUNK);
                batches.push((next, asked));
            }
        }
        assert_eq!(batches[..3], [(0, 0..16), (1, 16..33), (2, 33..66)]);
        let asked: Vec<u64> = batches
            .iter()
            .flat_map(|(_, asked)| asked.clone())
            .collect();
        assert_eq!(asked, (0..10_000).collect::<Vec<_>>());
        // Each batch but the last is half of the window ahead.
        assert!(batches.len() < 40, "{}", batches.len());
    }

    #[test]
    fn the_number_of_units_per_request_is_limited() {
        let mut ahead = ReadAheadWindow::default();
        assert_eq!(ahead.next_range(0, 1, 1 << 30, 100), Some(0..100));
        assert_eq!(ahead.next_range(49, 1, 1 << 30, 100), None);
        assert_eq!(ahead.next_range(50, 1, 1 << 30, 100), Some(100..150));
    }

    #[test]
    fn a_chunk_larger_than_the_window_is_requested_alone() {
        let mut ahead = ReadAheadWindow::default();
        assert_eq!(ahead.next_range(3, 1 << 30, 100, 4096), Some(3..4));
        assert_eq!(ahead.next_range(3, 1 << 30, 100, 4096), None);
        assert_eq!(ahead.next_range(100, 1 << 30, 100, 4096), None);
    }
}

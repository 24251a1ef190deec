//! The memory of decoding: the bytes that all running decodes may take, and decoded chunks that are
//! too large for the cache.
//!
//! Decodes belong to one of three classes by size, and no decode waits for a decode of a larger
//! class. Within a class, decodes start in order of arrival. Small decodes have memory of their
//! own. Medium and large decodes together never take more than the number of threads times the
//! largest of them. If there are several threads, fewer large decodes than threads run at a time,
//! which leaves memory for medium decodes.
//!
//! A chunk that is larger than the cache is kept here for the next reads, so that not every read
//! decodes the chunk again. Kept chunks count as memory of decoding. They are dropped if a decode
//! needs the room, or some time after the last read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::array::cache::{ChunkKey, DecodedChunk};
use crate::error::Result;
use crate::limits;
use crate::memory::cancel::{WantedCheck, check_wanted};
use crate::memory::gate::{AdmissionGate, AdmissionQueue, AdmissionTicket, fits};
use crate::wire::Count;

/// The memory that running decodes may take.
pub(in crate::array) struct DecodeMemory {
    threads: usize,
    gate: Arc<AdmissionGate<KeptChunks>>,
}

/// Decoded chunks that are too large for the cache and are kept in memory, least recently used
/// first.
pub(in crate::array) type KeptChunks = VecDeque<KeptChunk>;

/// The permission of one decode to take a granted number of bytes of memory. Dropping the permit
/// makes these bytes available to other decodes.
pub(in crate::array) type DecodePermit = AdmissionTicket<KeptChunks>;

const SMALL: usize = 0;
const MEDIUM: usize = 1;
const LARGE: usize = 2;

/// Returns the size class of a decode that takes `bytes` bytes of memory: `SMALL`, `MEDIUM` or
/// `LARGE`.
fn decode_class(bytes: u64) -> usize {
    let ends = [limits::SMALL_DECODE, limits::MEDIUM_DECODE];
    ends.iter().filter(|&&end| bytes > end).count()
}

/// A decoded chunk that is too large for the cache.
pub(in crate::array) struct KeptChunk {
    key: ChunkKey,
    chunk: DecodedChunk,
    /// Memory in bytes that decoding the chunk took.
    decode_bytes: u64,
    used: Instant,
}

impl DecodeMemory {
    /// Creates the memory for the decodes of `threads` threads.
    pub(in crate::array) fn new(threads: usize) -> Self {
        DecodeMemory {
            threads: threads.max(1),
            gate: Arc::default(),
        }
    }

    /// Waits until `bytes` bytes of the memory for decodes are free. If `bytes` exceeds the whole
    /// budget, waits until no other large decode is running.
    ///
    /// # Errors
    /// [`Error::cancelled`](crate::error::Error::cancelled) once the decode is not wanted any
    /// longer.
    pub(in crate::array) fn acquire(
        &self,
        bytes: u64,
        is_wanted: &WantedCheck<'_>,
    ) -> Result<DecodePermit> {
        let has_room =
            |_: &mut KeptChunks, decodes: &AdmissionQueue| has_room(bytes, decodes, self.threads);
        let go_on = || check_wanted(is_wanted);
        let permit = self
            .gate
            .enter((decode_class(bytes), bytes), has_room, go_on)?;
        self.make_room(None);
        Ok(permit)
    }

    /// Returns the number of running decodes.
    pub(in crate::array) fn running_decodes(&self) -> usize {
        let classes = [SMALL, MEDIUM, LARGE];
        let many =
            |decodes: &AdmissionQueue| classes.map(|class| decodes.admitted_weights(class).count());
        self.gate
            .with_guarded(|_, decodes| many(decodes).iter().sum())
    }

    /// Returns whether the budget has room for two decodes of `bytes` bytes.
    pub(in crate::array) fn fits_two_decodes(&self, bytes: u64) -> bool {
        bytes <= limits::DECODE_BYTES / 2
    }

    /// Returns the kept chunk with this key, and marks it as used.
    pub(in crate::array) fn find_kept_chunk(&self, key: ChunkKey) -> Option<DecodedChunk> {
        self.gate.with_guarded(|kept, _| {
            let place = kept.iter().position(|kept| kept.key == key)?;
            let mut found = kept.remove(place)?;
            found.used = Instant::now();
            let chunk = DecodedChunk::clone(&found.chunk);
            kept.push_back(found);
            Some(chunk)
        })
    }

    /// Keeps a chunk for later reads if there is room. Decoding the chunk took `bytes` bytes of
    /// memory, which are free again.
    pub(in crate::array) fn keep_chunk(&self, key: ChunkKey, chunk: &DecodedChunk, bytes: u64) {
        self.make_room(Some(KeptChunk {
            key,
            chunk: DecodedChunk::clone(chunk),
            decode_bytes: bytes,
            used: Instant::now(),
        }));
    }

    /// Drops the chunks that were not read for [`limits::KEPT_TIME`]. Returns the time until the
    /// next chunk may become idle.
    pub(in crate::array) fn drop_idle_chunks(&self) -> Option<Duration> {
        let now = Instant::now();
        let idle = |kept: &KeptChunk| now.duration_since(kept.used);
        let (_gone, next) = self.gate.with_guarded(|kept, _| {
            let is_idle = |kept: &&KeptChunk| idle(kept) >= limits::KEPT_TIME;
            let many = kept.iter().take_while(is_idle).count();
            let gone: Vec<KeptChunk> = kept.drain(..many).collect();
            (gone, kept.front().map(idle))
        });
        next.map(|idle| limits::KEPT_TIME.saturating_sub(idle))
    }

    /// Adds the chunk `more`, if any, to the kept chunks. Then drops kept chunks, least recently
    /// used first, until the kept chunks and the running decodes fit into the memory for decodes.
    fn make_room(&self, more: Option<KeptChunk>) {
        let mut gone = Vec::new();
        self.gate.with_guarded(|kept, decodes| {
            kept.extend(more);
            while !kept_chunks_fit(kept, decodes, self.threads)
                && let Some(oldest) = kept.pop_front()
            {
                gone.push(oldest);
            }
        });
    }
}

/// Returns whether a decode of `bytes` bytes may begin.
fn has_room(bytes: u64, decodes: &AdmissionQueue, threads: usize) -> bool {
    let class = decode_class(bytes);
    let (sum, many) = (
        decodes.admitted_weights(class).sum(),
        decodes.admitted_weights(class).count(),
    );
    match class {
        SMALL => {
            let few = medium_and_large_decodes(decodes).next().is_none() && many < threads;
            few || fits(sum, bytes, limits::SMALL_DECODES)
        }
        MEDIUM => {
            // Leaves room for a waiting large decode, which begins when the decodes before it have
            // finished.
            let next = decodes.first_waiting_weight(LARGE);
            let left = next.map_or(u64::MAX, |next| next.times(threads as u64 - 1));
            let fits = fits(sum, bytes, limits::MEDIUM_DECODES.min(left));
            fits && fits_medium_and_large_budget(bytes, decodes, threads)
        }
        _ => {
            let may = many == 0 || many + 1 < threads && fits(sum, bytes, limits::DECODE_BYTES);
            may && fits_medium_and_large_budget(bytes, decodes, threads)
        }
    }
}

/// Returns the memory in bytes of each running medium and large decode.
fn medium_and_large_decodes(decodes: &AdmissionQueue) -> impl Iterator<Item = u64> {
    decodes
        .admitted_weights(MEDIUM)
        .chain(decodes.admitted_weights(LARGE))
}

/// Returns whether the medium and large decodes, with one more decode of `bytes` bytes, take at
/// most `threads` times the memory of the largest of them.
fn fits_medium_and_large_budget(bytes: u64, decodes: &AdmissionQueue, threads: usize) -> bool {
    let sum: u64 = medium_and_large_decodes(decodes).sum();
    let largest = medium_and_large_decodes(decodes).fold(bytes, u64::max);
    sum.plus(bytes) <= largest.times(threads as u64)
}

fn kept_chunks_fit(kept: &KeptChunks, decodes: &AdmissionQueue, threads: usize) -> bool {
    let sizes = kept.iter().map(|kept| kept.chunk.capacity() as u64);
    let bytes: u64 = sizes.sum();
    let largest = kept
        .iter()
        .map(|kept| kept.decode_bytes)
        .chain(medium_and_large_decodes(decodes));
    let promised = largest.max().unwrap_or(0).times(threads as u64);
    bytes.plus(medium_and_large_decodes(decodes).sum()) <= promised
        && (bytes <= limits::DECODE_BYTES || kept.len() == 1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    impl DecodeMemory {
        fn acquired(&self, bytes: u64) -> DecodePermit {
            self.acquire(bytes, &|| true).unwrap()
        }

        fn has_room(&self, bytes: u64) -> bool {
            self.acquire(bytes, &|| false).is_ok()
        }
    }

    const MANY: u64 = limits::DECODE_BYTES / 2;

    fn chunk(bytes: u64) -> DecodedChunk {
        Arc::new(vec![0; bytes as usize].into())
    }

    #[test]
    fn decode_memory_is_limited_and_oversized_decodes_run_alone() {
        let memory = DecodeMemory::new(8);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for i in 0..32 {
                let (memory, taken) = (&memory, &taken);
                scope.spawn(move || {
                    let bytes = if i % 8 == 0 { 10 * MANY } else { MANY - 7 };
                    let _permit = memory.acquired(bytes);
                    let sum = taken.fetch_add(bytes, Ordering::SeqCst) + bytes;
                    assert!(sum <= limits::DECODE_BYTES || sum == 10 * MANY);
                    std::thread::yield_now();
                    taken.fetch_sub(bytes, Ordering::SeqCst);
                });
            }
        });
    }

    #[test]
    fn small_decodes_do_not_wait_for_large_ones() {
        let memory = DecodeMemory::new(1);
        let large = memory.acquired(10 * MANY);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(memory.acquired(MANY)));
            memory.gate.await_waiting(1);
            let small: Vec<_> = (0..limits::SMALL_DECODES / limits::SMALL_DECODE)
                .map(|_| memory.acquired(limits::SMALL_DECODE))
                .collect();
            assert!(!memory.has_room(limits::SMALL_DECODE));
            assert_eq!(memory.gate.waiting(), 1);
            drop((small, large));
            waiting.join().unwrap();
        });
    }

    #[test]
    fn medium_decodes_stay_within_the_budget() {
        const LITTLE: u64 = limits::SMALL_DECODE + 1;
        let memory = DecodeMemory::new(2);
        let large = memory.acquired(10 * MANY);
        let medium = [memory.acquired(LITTLE), memory.acquired(LITTLE)];
        assert!(!memory.has_room(10 * MANY));
        drop(large);
        assert!(!memory.has_room(LITTLE));
        drop(medium);
        let _large = memory.acquired(limits::MEDIUM_DECODE + 1);
        assert!(memory.has_room(LITTLE));
        assert!(!memory.has_room(limits::MEDIUM_DECODE + 1));
    }

    #[test]
    fn a_cancelled_decode_stops_waiting() {
        let memory = DecodeMemory::new(1);
        let large = memory.acquired(10 * MANY);
        let looks = AtomicU64::new(0);
        let is_wanted = || looks.fetch_add(1, Ordering::Relaxed) < 2;
        let refused = memory.acquire(MANY, &is_wanted).err().unwrap();
        assert!(refused.is_cancelled() && looks.into_inner() == 3);
        assert_eq!(memory.gate.waiting(), 0);
        drop(large);
    }

    #[test]
    fn a_large_decode_is_not_starved() {
        let memory = DecodeMemory::new(2);
        let first = memory.acquired(MANY);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(memory.acquired(limits::MEDIUM_DECODE + 1)));
            memory.gate.await_waiting(1);
            let medium = memory.acquired(limits::MEDIUM_DECODE);
            drop(first);
            second.join().unwrap();
            drop(medium);
        });
    }

    #[test]
    fn kept_chunks_are_dropped_for_running_decodes() {
        const CHUNK: u64 = limits::SMALL_DECODE;
        for (threads, stays) in [(1, false), (2, true)] {
            let memory = DecodeMemory::new(threads);
            drop(memory.acquired(2 * CHUNK));
            memory.keep_chunk((0, 0), &chunk(CHUNK), 2 * CHUNK);
            assert!(
                memory.find_kept_chunk((0, 0)).is_some()
                    && memory.find_kept_chunk((0, 1)).is_none()
            );
            drop(memory.acquired(1000));
            assert!(memory.find_kept_chunk((0, 0)).is_some());
            drop(memory.acquired(2 * CHUNK));
            assert_eq!(memory.find_kept_chunk((0, 0)).is_some(), stays);
        }
    }

    #[test]
    fn kept_chunks_are_limited_and_expire() {
        let memory = DecodeMemory::new(64);
        let large = chunk(limits::DECODE_BYTES / 4);
        for number in 0..8 {
            memory.keep_chunk((0, number), &large, MANY);
        }
        let kept = |memory: &DecodeMemory| {
            let numbers = 0..8_u64;
            numbers
                .filter(|&number| memory.find_kept_chunk((0, number)).is_some())
                .count()
        };
        assert!((3..=4).contains(&kept(&memory)));
        assert!(memory.drop_idle_chunks().is_some());
        memory.gate.with_guarded(|kept, _| {
            for kept in kept {
                kept.used = Instant::now().checked_sub(limits::KEPT_TIME).unwrap();
            }
        });
        assert_eq!(memory.drop_idle_chunks(), None);
        assert_eq!(kept(&memory), 0);
    }
}

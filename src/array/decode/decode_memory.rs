//! The memory of decoding: the bytes that the decodes under way may take together, and the decoded
//! chunks that no cache can hold.
//!
//! Decodes are of three classes by their bytes, and none waits for a decode of a larger class.
//! Within a class they are let in in the order in which they came. Small ones have memory of their
//! own; medium and large ones together never take more than as many of the largest as there are
//! threads, of which large ones leave one to the medium.
//!
//! A chunk that is larger than the cache is kept here for the next reads in it, instead of being
//! decoded for each read anew. It counts as memory of decoding, and goes if another decode needs
//! the room, or some time after the last read.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::array::cache::{Decoded, Key};
use crate::error::Result;
use crate::limits;
use crate::memory::gate::{Gate, Queue, Work, fits};
use crate::model::storage::{IsWanted, still};

/// Grants the bytes of decodes.
pub(in crate::array) struct DecodeMemory {
    threads: usize,
    gate: Gate<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of each decode that is under way, by class.
    taken: [Vec<u64>; CLASSES],
    /// The chunk that was used longest ago first.
    kept: VecDeque<KeptChunk>,
}

const CLASSES: usize = 3;
const SMALL: usize = 0;
const MEDIUM: usize = 1;
const LARGE: usize = 2;

/// The class of a decode that takes so many bytes.
fn class(bytes: u64) -> usize {
    let ends = [limits::SMALL_DECODE, limits::MEDIUM_DECODE];
    ends.iter().filter(|&&end| bytes > end).count()
}

/// A chunk that no cache can hold.
struct KeptChunk {
    key: Key,
    chunk: Decoded,
    /// Bytes that decoding it took.
    decode: u64,
    used: Instant,
}

/// The granted bytes of one decode, given back when dropped.
pub(in crate::array) struct Permit<'a> {
    memory: &'a DecodeMemory,
    bytes: u64,
}

impl DecodeMemory {
    /// For the decodes of so many threads.
    pub(in crate::array) fn new(threads: usize) -> Self {
        DecodeMemory {
            threads: threads.max(1),
            gate: Gate::default(),
        }
    }

    /// Waits for `bytes` bytes; for more than there are, until no other large decode is under way.
    ///
    /// # Errors
    /// [`Error::unwanted`] once the decode is not wanted any more.
    pub(in crate::array) fn acquire(
        &self,
        bytes: u64,
        is_wanted: &IsWanted<'_>,
    ) -> Result<Permit<'_>> {
        let class = class(bytes);
        let work = Work {
            class,
            weight: bytes,
        };
        let admit = |state: &mut State, queue: &Queue| {
            let has_room = state.has_room(bytes, queue.first(LARGE), self.threads);
            has_room.then(|| {
                state.taken[class].push(bytes);
                state.make_room(self.threads)
            })
        };
        let gone = self.gate.enter(work, admit, || still(is_wanted))?;
        drop(gone);
        Ok(Permit {
            memory: self,
            bytes,
        })
    }

    /// Decodes that are under way.
    pub(in crate::array) fn under_way(&self) -> usize {
        self.gate
            .look(|state| state.taken.iter().map(Vec::len).sum())
    }

    /// Whether one decode of `bytes` bytes leaves room for another of its kind.
    pub(in crate::array) fn holds_twice(&self, bytes: u64) -> bool {
        bytes <= limits::DECODE_BYTES / 2
    }

    /// The chunk, if it is kept here; it counts as used.
    pub(in crate::array) fn find(&self, key: Key) -> Option<Decoded> {
        self.gate.look(|state| {
            let place = state.kept.iter().position(|kept| kept.key == key)?;
            let mut kept = state.kept.remove(place)?;
            kept.used = Instant::now();
            let chunk = Decoded::clone(&kept.chunk);
            state.kept.push_back(kept);
            Some(chunk)
        })
    }

    /// Drops the chunks that were not read for a while; gives the time until another may have to
    /// go.
    pub(in crate::array) fn forget_idle(&self) -> Option<Duration> {
        let now = Instant::now();
        let idle = |kept: &KeptChunk| now.duration_since(kept.used);
        let (_gone, next) = self.gate.look(|state| {
            let is_idle = |kept: &&KeptChunk| idle(kept) >= limits::KEPT_TIME;
            let many = state.kept.iter().take_while(is_idle).count();
            let gone: Vec<KeptChunk> = state.kept.drain(..many).collect();
            (gone, state.kept.front().map(idle))
        });
        next.map(|idle| limits::KEPT_TIME.saturating_sub(idle))
    }
}

impl State {
    /// Whether a decode may begin while the `next_large` one waits.
    fn has_room(&self, bytes: u64, next_large: Option<u64>, threads: usize) -> bool {
        let taken = &self.taken[class(bytes)];
        let sum = taken.iter().sum();
        match class(bytes) {
            SMALL => {
                let few = self.heavy().next().is_none() && taken.len() < threads;
                few || fits(sum, bytes, limits::SMALL_DECODES)
            }
            MEDIUM => {
                // A large one that waits will have its room when the decodes before it are done.
                let left = next_large.map(|next| next.saturating_mul(threads as u64 - 1));
                let most = limits::MEDIUM_DECODES.min(left.unwrap_or(u64::MAX));
                fits(sum, bytes, most) && self.is_promised(bytes, threads)
            }
            _ => {
                let is_left = taken.is_empty() || taken.len() + 1 < threads;
                let has_room = is_left && fits(sum, bytes, limits::DECODE_BYTES);
                has_room && self.is_promised(bytes, threads)
            }
        }
    }

    /// Bytes of the medium and large decodes that are under way.
    fn heavy(&self) -> impl Iterator<Item = u64> {
        self.taken[MEDIUM..].iter().flatten().copied()
    }

    /// Whether medium and large decodes stay within the promised bytes with one more.
    fn is_promised(&self, bytes: u64, threads: usize) -> bool {
        let sum: u64 = self.heavy().sum();
        let largest = self.heavy().fold(bytes, u64::max);
        sum.saturating_add(bytes) <= largest.saturating_mul(threads as u64)
    }

    /// Takes out kept chunks, the one that was used longest ago first, until all is within the
    /// promised bytes.
    fn make_room(&mut self, threads: usize) -> Vec<KeptChunk> {
        let mut gone = Vec::new();
        while !self.is_within(threads)
            && let Some(oldest) = self.kept.pop_front()
        {
            gone.push(oldest);
        }
        gone
    }

    fn is_within(&self, threads: usize) -> bool {
        let kept = self.kept.iter().map(|kept| kept.chunk.capacity() as u64);
        let kept: u64 = kept.sum();
        let decodes = self.kept.iter().map(|kept| kept.decode);
        let largest = decodes.chain(self.heavy()).max().unwrap_or(0);
        let promised = largest.saturating_mul(threads as u64);
        kept.saturating_add(self.heavy().sum()) <= promised
            && (kept <= limits::DECODE_BYTES || self.kept.len() == 1)
    }

    fn give_back(&mut self, bytes: u64) {
        let list = &mut self.taken[class(bytes)];
        let place = list.iter().position(|&taken| taken == bytes);
        place.map(|place| list.swap_remove(place));
    }
}

impl Permit<'_> {
    /// Keeps the decoded chunk in place of the bytes that its decode took, while there is room.
    pub(in crate::array) fn keep(self, key: Key, chunk: &Decoded) {
        let kept = KeptChunk {
            key,
            chunk: Decoded::clone(chunk),
            decode: self.bytes,
            used: Instant::now(),
        };
        let _gone = self.memory.gate.change(|state| {
            state.give_back(self.bytes);
            state.kept.push_back(kept);
            state.make_room(self.memory.threads)
        });
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.memory.gate.change(|state| state.give_back(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    impl DecodeMemory {
        fn acquired(&self, bytes: u64) -> Permit<'_> {
            self.acquire(bytes, &|| true).unwrap()
        }

        fn has_room(&self, bytes: u64) -> bool {
            self.acquire(bytes, &|| false).is_ok()
        }
    }

    const MANY: u64 = limits::DECODE_BYTES / 2;

    fn chunk(bytes: u64) -> Decoded {
        Arc::new(vec![0; bytes as usize].into())
    }

    #[test]
    fn the_sum_stays_within_and_the_oversized_is_alone() {
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
    fn a_small_one_waits_for_no_large_one() {
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
    fn a_medium_one_waits_for_no_large_one_but_is_no_more_than_promised() {
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
    fn one_that_nobody_wants_any_more_does_not_wait() {
        let memory = DecodeMemory::new(1);
        let large = memory.acquired(10 * MANY);
        let looks = AtomicU64::new(0);
        let is_wanted = || looks.fetch_add(1, Ordering::Relaxed) < 2;
        let refused = memory.acquire(MANY, &is_wanted).err().unwrap();
        assert!(refused.is_unwanted() && looks.into_inner() == 3);
        assert_eq!(memory.gate.waiting(), 0);
        drop(large);
    }

    #[test]
    fn a_large_one_is_not_passed_for_ever() {
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
    fn a_kept_chunk_goes_where_another_decode_needs_its_room() {
        const CHUNK: u64 = limits::SMALL_DECODE;
        for (threads, stays) in [(1, false), (2, true)] {
            let memory = DecodeMemory::new(threads);
            memory.acquired(2 * CHUNK).keep((0, 0), &chunk(CHUNK));
            assert!(memory.find((0, 0)).is_some() && memory.find((0, 1)).is_none());
            drop(memory.acquired(1000));
            assert!(memory.find((0, 0)).is_some());
            drop(memory.acquired(2 * CHUNK));
            assert_eq!(memory.find((0, 0)).is_some(), stays);
        }
    }

    #[test]
    fn kept_chunks_have_a_bound_and_an_end() {
        let memory = DecodeMemory::new(64);
        let large = chunk(limits::DECODE_BYTES / 4);
        for number in 0..8 {
            memory.acquired(MANY).keep((0, number), &large);
        }
        let kept = |memory: &DecodeMemory| {
            let numbers = 0..8_u64;
            numbers
                .filter(|&number| memory.find((0, number)).is_some())
                .count()
        };
        assert!((3..=4).contains(&kept(&memory)));
        assert!(memory.forget_idle().is_some());
        memory.gate.look(|state| {
            for kept in &mut state.kept {
                kept.used = Instant::now().checked_sub(limits::KEPT_TIME).unwrap();
            }
        });
        assert_eq!(memory.forget_idle(), None);
        assert_eq!(kept(&memory), 0);
    }
}

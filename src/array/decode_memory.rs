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
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::array::cache::{Decoded, Key};
use crate::error::Result;
use crate::limits;
use crate::memory::lock::{lock, wait_for};
use crate::memory::turns::LOOK;
use crate::model::storage::{IsWanted, still};

/// Grants the bytes of decodes.
pub(super) struct DecodeMemory {
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By class.
    lanes: [Lane; CLASSES],
    next_ticket: u64,
    /// The chunk that was used longest ago first.
    kept: VecDeque<KeptChunk>,
}

/// The decodes of one class.
#[derive(Default)]
struct Lane {
    /// Bytes of each that is under way.
    taken: Vec<u64>,
    /// The decodes that wait: their tickets and bytes.
    waiting: VecDeque<(u64, u64)>,
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

impl Lane {
    fn sum(&self) -> u64 {
        self.taken.iter().sum()
    }
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
pub(super) struct Permit<'a> {
    memory: &'a DecodeMemory,
    bytes: u64,
}

impl DecodeMemory {
    /// For the decodes of so many threads.
    pub(super) fn new(threads: usize) -> Self {
        DecodeMemory {
            threads: threads.max(1),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits for `bytes` bytes; for more than there are, until no other large decode is under way.
    ///
    /// # Errors
    /// [`Error::unwanted`] once the decode is not wanted any more.
    pub(super) fn acquire(&self, bytes: u64, is_wanted: &IsWanted<'_>) -> Result<Permit<'_>> {
        let class = class(bytes);
        let mut state = lock(&self.state);
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.lanes[class].waiting.push_back((ticket, bytes));
        while state.lanes[class].waiting.front() != Some(&(ticket, bytes))
            || !state.has_room(bytes, self.threads)
        {
            if let Err(error) = still(is_wanted) {
                let waiting = &mut state.lanes[class].waiting;
                waiting.retain(|(other, _)| *other != ticket);
                drop(state);
                self.changed.notify_all();
                return Err(error);
            }
            state = wait_for(&self.changed, state, LOOK);
        }
        state.lanes[class].waiting.pop_front();
        state.lanes[class].taken.push(bytes);
        let gone = state.make_room(self.threads);
        drop(state);
        drop(gone);
        self.changed.notify_all();
        Ok(Permit {
            memory: self,
            bytes,
        })
    }

    /// Decodes that are under way.
    pub(super) fn under_way(&self) -> usize {
        lock(&self.state)
            .lanes
            .iter()
            .map(|lane| lane.taken.len())
            .sum()
    }

    /// Whether one decode of `bytes` bytes leaves room for another of its kind.
    pub(super) fn holds_twice(&self, bytes: u64) -> bool {
        bytes <= limits::DECODE_BYTES / 2
    }

    /// The chunk, if it is kept here; it counts as used.
    pub(super) fn find(&self, key: Key) -> Option<Decoded> {
        let mut state = lock(&self.state);
        let place = state.kept.iter().position(|kept| kept.key == key)?;
        let mut kept = state.kept.remove(place)?;
        kept.used = Instant::now();
        let chunk = Decoded::clone(&kept.chunk);
        state.kept.push_back(kept);
        Some(chunk)
    }

    /// Drops the chunks that were not read for a while; gives the time until another may have to
    /// go.
    pub(super) fn forget_idle(&self) -> Option<Duration> {
        let now = Instant::now();
        let idle = |kept: &KeptChunk| now.duration_since(kept.used);
        let mut state = lock(&self.state);
        let mut gone = Vec::new();
        while state
            .kept
            .front()
            .map(idle)
            .is_some_and(|idle| idle >= limits::KEPT_TIME)
        {
            gone.extend(state.kept.pop_front());
        }
        let next = state.kept.front().map(idle);
        drop(state);
        next.map(|idle| limits::KEPT_TIME.saturating_sub(idle))
    }
}

impl State {
    fn has_room(&self, bytes: u64, threads: usize) -> bool {
        let lane = &self.lanes[class(bytes)];
        match class(bytes) {
            SMALL => {
                let alone = self.lanes[MEDIUM..]
                    .iter()
                    .all(|lane| lane.taken.is_empty());
                let few = alone && lane.taken.len() < threads;
                few || lane.sum().saturating_add(bytes) <= limits::SMALL_DECODES
            }
            MEDIUM => {
                let sum = lane.sum().saturating_add(bytes);
                // A large one that waits will have its room when the decodes before it are done.
                let next = self.lanes[LARGE].waiting.front();
                let left = next.map(|(_, next)| next.saturating_mul(threads as u64 - 1));
                let few = sum <= limits::MEDIUM_DECODES && left.is_none_or(|left| sum <= left);
                self.is_promised(bytes, threads) && (few || lane.taken.is_empty())
            }
            _ => {
                let fits = lane.sum().saturating_add(bytes) <= limits::DECODE_BYTES;
                let is_left = lane.taken.len() + 1 < threads;
                let may = lane.taken.is_empty() || is_left && fits;
                may && self.is_promised(bytes, threads)
            }
        }
    }

    /// Whether medium and large decodes stay within the promised bytes with one more.
    fn is_promised(&self, bytes: u64, threads: usize) -> bool {
        let taken = || self.lanes[MEDIUM..].iter().flat_map(|lane| &lane.taken);
        let sum: u64 = taken().sum();
        let largest = taken().max().copied().unwrap_or(0).max(bytes);
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
        let under_way = || self.lanes[MEDIUM..].iter().flat_map(|lane| &lane.taken);
        let decodes = self.kept.iter().map(|kept| &kept.decode);
        let largest = decodes.chain(under_way()).max().copied().unwrap_or(0);
        let promised = largest.saturating_mul(threads as u64);
        kept.saturating_add(under_way().sum()) <= promised
            && (kept <= limits::DECODE_BYTES || self.kept.len() == 1)
    }

    fn give_back(&mut self, bytes: u64) {
        let list = &mut self.lanes[class(bytes)].taken;
        let place = list.iter().position(|&taken| taken == bytes);
        place.map(|place| list.swap_remove(place));
    }
}

impl Permit<'_> {
    /// Keeps the decoded chunk in place of the bytes that its decode took, while there is room.
    pub(super) fn keep(self, key: Key, chunk: &Decoded) {
        let mut state = lock(&self.memory.state);
        state.give_back(self.bytes);
        state.kept.push_back(KeptChunk {
            key,
            chunk: Decoded::clone(chunk),
            decode: self.bytes,
            used: Instant::now(),
        });
        let gone = state.make_room(self.memory.threads);
        drop(state);
        self.memory.changed.notify_all();
        std::mem::forget(self);
        drop(gone);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        lock(&self.memory.state).give_back(self.bytes);
        self.memory.changed.notify_all();
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
            while lock(&memory.state).lanes[LARGE].waiting.is_empty() {
                std::thread::yield_now();
            }
            let small: Vec<_> = (0..limits::SMALL_DECODES / limits::SMALL_DECODE)
                .map(|_| memory.acquired(limits::SMALL_DECODE))
                .collect();
            let state = lock(&memory.state);
            assert!(!state.has_room(limits::SMALL_DECODE, 1));
            assert_eq!(state.lanes[LARGE].waiting.len(), 1);
            drop(state);
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
        assert!(!lock(&memory.state).has_room(10 * MANY, 2));
        drop(large);
        assert!(!lock(&memory.state).has_room(LITTLE, 2));
        drop(medium);
        let _large = memory.acquired(limits::MEDIUM_DECODE + 1);
        assert!(lock(&memory.state).has_room(LITTLE, 2));
        assert!(!lock(&memory.state).has_room(limits::MEDIUM_DECODE + 1, 2));
    }

    #[test]
    fn one_that_nobody_wants_any_more_does_not_wait() {
        let memory = DecodeMemory::new(1);
        let large = memory.acquired(10 * MANY);
        let looks = AtomicU64::new(0);
        let is_wanted = || looks.fetch_add(1, Ordering::Relaxed) < 2;
        let refused = memory.acquire(MANY, &is_wanted).err().unwrap();
        assert!(refused.is_unwanted() && looks.into_inner() == 3);
        assert!(lock(&memory.state).lanes[LARGE].waiting.is_empty());
        drop(large);
    }

    #[test]
    fn a_large_one_is_not_passed_for_ever() {
        let memory = DecodeMemory::new(2);
        let first = memory.acquired(MANY);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(memory.acquired(limits::MEDIUM_DECODE + 1)));
            while lock(&memory.state).lanes[LARGE].waiting.is_empty() {
                std::thread::yield_now();
            }
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
        for kept in &mut lock(&memory.state).kept {
            kept.used = Instant::now().checked_sub(limits::KEPT_TIME).unwrap();
        }
        assert_eq!(memory.forget_idle(), None);
        assert_eq!(kept(&memory), 0);
    }
}

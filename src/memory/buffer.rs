//! Buffers for the bytes of chunks, whose memory is used again.
//!
//! Fresh memory costs a page fault every 4 KiB, which for large buffers takes longer than to unshuffle
//! them: what a chunk leaves is therefore kept for the next one, whether it was an intermediate result or
//! decoded and evicted from a cache, or the answer to a read.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::limits;
use crate::source::{Source, check_range};
use crate::wire::{to_u64, to_usize};

/// Smaller ones are left to the allocator, which keeps memory of such sizes itself.
const SMALL: usize = 64 << 10;

/// Bytes of a page of memory. The kernel copies what a page of its own takes from as many pages as that lies in: one, where
/// it begins with one.
const PAGE: usize = 4096;

/// Bytes in memory that is given back for the next buffer when they are dropped. Long ones begin with a page.
#[derive(Default)]
pub struct Buffer {
    memory: Vec<u8>,
    /// Where the bytes begin in it.
    start: usize,
}

impl Buffer {
    /// `length` bytes, whatever they are: who takes them writes them all. There may be room for an eighth
    /// more.
    pub fn new(length: usize) -> Self {
        if length < SMALL {
            return vec![0; length].into();
        }
        let most = length.saturating_add(PAGE);
        let mut memory = spares().take(most).unwrap_or_else(|| vec![0; most]);
        let start = memory.as_ptr().align_offset(PAGE);
        // What is left of its last use is not zeroed again: that costs a pass over all of it.
        memory.resize(start.saturating_add(length), 0);
        let mut buffer = Buffer { memory, start };
        if cfg!(debug_assertions) {
            // So that a test sees who leaves bytes unwritten.
            buffer.fill(0xa5);
        }
        buffer
    }

    /// The `length` bytes of `source` at `at`, which are the structure `what`.
    ///
    /// # Errors
    /// `Corrupt` where they are not inside the source, `Io` as they cannot be read.
    pub fn read(source: &dyn Source, at: u64, length: u64, what: &str) -> Result<Self> {
        check_range(source, at, length, what)?;
        let length = to_usize(length)?;
        let mut bytes = Buffer::new(roomy(length));
        bytes.truncate(length);
        source.read_at(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of memory that a new one of `length` bytes takes.
    pub fn memory(length: u64) -> u64 {
        let page = if length < to_u64(SMALL) { 0 } else { PAGE };
        length.saturating_add(to_u64(page))
    }

    /// Keeps the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.memory.truncate(self.start.saturating_add(length));
    }

    /// Bytes of memory.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// The bytes as a vector, whose memory is not given back.
    pub fn into_vec(mut self) -> Vec<u8> {
        let mut memory = std::mem::take(&mut self.memory);
        memory.drain(..self.start);
        memory
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut clone = Buffer::new(self.len());
        clone.copy_from_slice(self);
        clone
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.memory));
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(memory: Vec<u8>) -> Self {
        Buffer { memory, start: 0 }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or_default()
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..).unwrap_or_default()
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

/// A little more than `length`: stored chunks have many lengths that hardly differ, and shall use each other's
/// memory.
fn roomy(length: usize) -> usize {
    let step = length.checked_ilog2().map_or(1, |log| 1 << log >> 4);
    match length {
        0..SMALL => length,
        _ => length.checked_next_multiple_of(step).unwrap_or(length),
    }
}

fn give_back(buffer: Vec<u8>) {
    if buffer.capacity() >= SMALL {
        let dropped = spares().put(buffer);
        // After the lock: returning megabytes to the system takes its time.
        drop(dropped);
    }
}

/// Memory that waits to be used again, the latest last.
struct Spares {
    buffers: Vec<Vec<u8>>,
    bytes: u64,
}

static SPARES: Mutex<Spares> = Mutex::new(Spares {
    buffers: Vec::new(),
    bytes: 0,
});

fn spares() -> MutexGuard<'static, Spares> {
    SPARES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spares {
    /// The latest that holds `length` bytes and hardly more.
    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let most = length.saturating_add(length.wrapping_shr(3));
        let fits = |buffer: &Vec<u8>| (length..=most).contains(&buffer.capacity());
        let place = self.buffers.iter().rposition(fits)?;
        let buffer = self.buffers.remove(place);
        self.bytes = self.bytes.saturating_sub(to_u64(buffer.capacity()));
        Some(buffer)
    }

    /// Keeps a buffer, and gives those that have to go for it, the longest unused first: it may itself be
    /// too large to be kept.
    fn put(&mut self, buffer: Vec<u8>) -> Vec<Vec<u8>> {
        self.bytes = self.bytes.saturating_add(to_u64(buffer.capacity()));
        self.buffers.push(buffer);
        let mut dropped = 0_usize;
        for buffer in &self.buffers {
            if self.bytes <= limits::SPARE_BYTES {
                break;
            }
            self.bytes = self.bytes.saturating_sub(to_u64(buffer.capacity()));
            dropped = dropped.saturating_add(1);
        }
        self.buffers.drain(..dropped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spares_of(capacities: &[usize]) -> Spares {
        let mut spares = Spares {
            buffers: Vec::new(),
            bytes: 0,
        };
        for &capacity in capacities {
            spares.put(Vec::with_capacity(capacity));
        }
        spares
    }

    #[test]
    fn memory_of_about_the_right_size_is_used_again() {
        let mut spares = spares_of(&[100_000, 112_500, 112_501]);
        assert_eq!(spares.take(100_000).unwrap().capacity(), 112_500);
        assert_eq!(spares.take(100_000).unwrap().capacity(), 100_000);
        assert_eq!(spares.take(100_000), None);
        assert_eq!(spares.bytes, 112_501);
    }

    #[test]
    fn a_long_one_begins_with_a_page() {
        for length in [SMALL, SMALL + 1, 1 << 20, 1_234_567] {
            let mut buffer = Buffer::new(length);
            buffer.copy_from_slice(&b"abcd".repeat(length.div_ceil(4))[..length]);
            let (first, copy) = (buffer.as_ptr().addr(), buffer.clone());
            assert_eq!((first % PAGE, copy.as_ptr().addr() % PAGE), (0, 0));
            assert!(to_u64(buffer.capacity()) >= Buffer::memory(to_u64(length)));
            assert!(copy == buffer);
            buffer.truncate(7);
            assert_eq!(buffer.into_vec(), b"abcdabc");
            assert_eq!(copy.len(), length);
        }
    }

    #[test]
    fn lengths_that_hardly_differ_have_the_same_room() {
        assert_eq!(roomy(SMALL - 1), SMALL - 1);
        assert_eq!(roomy(SMALL), SMALL);
        // A sixteenth of 2^19 is 2^15.
        assert_eq!([530_000, 540_000, 557_056].map(roomy), [557_056; 3]);
        assert_eq!(roomy(557_057), 589_824);
    }

    #[test]
    fn the_longest_unused_goes_and_bytes_stay_within() {
        let half = usize::try_from(limits::SPARE_BYTES / 2).unwrap();
        let mut spares = spares_of(&[half, half - 1]);
        let dropped = spares.put(Vec::with_capacity(half));
        assert_eq!(dropped[0].capacity(), half);
        assert_eq!(spares.bytes, limits::SPARE_BYTES - 1);

        let dropped = spares.put(Vec::with_capacity(3 * half));
        assert_eq!((dropped.len(), spares.bytes), (3, 0));
    }
}

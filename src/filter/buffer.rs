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

/// Bytes in memory that is given back for the next buffer when they are dropped.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// `length` bytes, whatever they are: who takes them writes them all. There may be room for an eighth
    /// more.
    pub fn new(length: usize) -> Self {
        Buffer(take(length))
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

    /// Keeps the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// Bytes of memory.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// The bytes as a vector, whose memory is not given back.
    pub fn into_vec(mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer(bytes)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.0.len())
    }
}

/// `length` bytes, whatever they are, as [`Buffer::new`] has them.
pub(crate) fn take(length: usize) -> Vec<u8> {
    let spare = if length < SMALL {
        None
    } else {
        spares().take(length)
    };
    let mut buffer = spare.unwrap_or_default();
    // What is left of its last use is not zeroed again: that costs a pass over all of it.
    if buffer.capacity() < length {
        buffer = vec![0; length];
    } else {
        buffer.resize(length, 0);
    }
    if cfg!(debug_assertions) {
        // So that a test sees who leaves bytes unwritten.
        buffer.fill(0xa5);
    }
    buffer
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

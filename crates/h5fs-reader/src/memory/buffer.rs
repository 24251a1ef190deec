//! Buffers for the bytes of chunks and of replies to reads.
//!
//! A long buffer starts at a page boundary, and its memory is reused. New memory is zeroed, and
//! zeroing takes as long as a fast codec takes to fill the memory.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::memory::lock::lock;
use crate::wire::{Count, to_u64};

/// Length in bytes from which a buffer starts at a page boundary.
const PAGE_ALIGNED_FROM: usize = 64 << 10;

/// Number of bytes of a memory page. The kernel copies a reply page by page. If the reply starts at
/// a page boundary, each copy reads from one page instead of two.
const PAGE: usize = 4096;

/// Length in bytes from which an allocation is first tried with a call that can fail.
const FALLIBLE_FROM: usize = 16 << 20;

/// A pool of the memory of dropped long buffers, the most recent last. New buffers of similar
/// length reuse it. Clones share the pool.
#[derive(Debug, Clone, Default)]
pub struct BufferPool(Arc<Mutex<VecDeque<Vec<u8>>>>);

impl BufferPool {
    /// Returns a buffer of `length` bytes. The caller must write the bytes before reading them.
    ///
    /// # Errors
    /// `Io` (`OutOfMemory`) if the system cannot allocate a large buffer.
    pub fn buffer(&self, length: usize) -> Result<Buffer> {
        if length < PAGE_ALIGNED_FROM {
            return Ok(vec![0; length].into());
        }
        let most = length.plus(PAGE);
        let memory = match self.take_memory(most) {
            Some(memory) => memory,
            None => allocate_zeroed(most)?,
        };
        Ok(self.wrap(memory, length))
    }

    fn wrap(&self, mut memory: Vec<u8>, length: usize) -> Buffer {
        let start = memory.as_ptr().align_offset(PAGE);
        memory.resize(start.plus(length), 0);
        let mut buffer = Buffer {
            memory,
            start,
            pool: Some(self.clone()),
        };
        if cfg!(debug_assertions) {
            // Lets tests notice bytes that are read before they are written.
            buffer.fill(0xa5);
        }
        buffer
    }

    /// Returns a buffer of `length` bytes, in memory that can later be reused for other buffers of
    /// similar length.
    ///
    /// # Errors
    /// Fails as [`buffer`](Self::buffer) does.
    pub(crate) fn rounded_buffer(&self, length: usize) -> Result<Buffer> {
        let mut bytes = self.buffer(rounded_length(length))?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Removes from the pool and returns the most recent memory with a capacity of `length` bytes
    /// or up to an eighth more. Returns `None` if the pool has none.
    fn take_memory(&self, length: usize) -> Option<Vec<u8>> {
        let most = length.plus(length.wrapping_shr(3));
        let fits = |memory: &Vec<u8>| (length..=most).contains(&memory.capacity());
        let mut pool = lock(&self.0);
        let place = pool.iter().rposition(fits)?;
        pool.remove(place)
    }

    /// Adds the memory to the pool, and frees the oldest entries that exceed the pool's bound.
    fn recycle(&self, memory: Vec<u8>) {
        let mut freed = Vec::new();
        let mut pool = lock(&self.0);
        pool.push_back(memory);
        let bytes = |pool: &VecDeque<Vec<u8>>| pool.iter().map(Vec::capacity).sum::<usize>();
        while to_u64(bytes(&pool)) > limits::POOL_BYTES {
            freed.extend(pool.pop_front());
        }
        // The lock is released first, because returning megabytes to the system takes time.
        drop(pool);
        drop(freed);
    }
}

/// Allocates `length` zeroed bytes. The standard library has no fallible call for zeroed memory, so
/// a large allocation is first tried with `try_reserve_exact` and dropped.
fn allocate_zeroed(length: usize) -> Result<Vec<u8>> {
    if length >= FALLIBLE_FROM {
        let none = |_| {
            let what = format!("{length} bytes of memory for a chunk");
            Error::from_cause(Cause::OutOfMemory, what)
        };
        Vec::<u8>::new().try_reserve_exact(length).map_err(none)?;
    }
    Ok(vec![0; length])
}

/// Rounds `length` up by at most a sixteenth, if the pool keeps buffers of this length. Stored
/// chunks have many slightly different lengths; rounding lets them share memory.
fn rounded_length(length: usize) -> usize {
    if length < PAGE_ALIGNED_FROM || to_u64(length) > limits::POOL_BYTES {
        return length;
    }
    let step = length.checked_ilog2().map_or(1, |log| 1 << log >> 4);
    length.checked_next_multiple_of(step).unwrap_or(length)
}

/// Bytes in memory. A long buffer starts at a page boundary.
#[derive(Default)]
pub struct Buffer {
    memory: Vec<u8>,
    /// Index in `memory` of the buffer's first byte.
    start: usize,
    /// The pool that receives the memory on drop. `None` if the memory is freed.
    pool: Option<BufferPool>,
}

impl Buffer {
    /// Returns the memory in bytes that a new buffer of `length` bytes occupies.
    pub(crate) fn occupied_bytes(length: u64) -> u64 {
        let page = if length < to_u64(PAGE_ALIGNED_FROM) {
            0
        } else {
            PAGE
        };
        length.plus(to_u64(page))
    }

    /// Shortens the buffer to its first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.memory.truncate(self.start.plus(length));
    }

    /// Returns the capacity in bytes of the buffer's memory.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Converts the buffer to a vector.
    pub fn into_vec(mut self) -> Vec<u8> {
        let mut memory = std::mem::take(&mut self.memory);
        memory.drain(..self.start);
        memory
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let pool = self.pool.clone().unwrap_or_default();
        let memory = pool.take_memory(self.len().plus(PAGE));
        let memory = memory.unwrap_or_else(|| vec![0; self.len().plus(PAGE)]);
        let mut clone = pool.wrap(memory, self.len());
        clone.copy_from_slice(self);
        clone
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.recycle(std::mem::take(&mut self.memory));
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(memory: Vec<u8>) -> Self {
        Buffer {
            memory,
            start: 0,
            pool: None,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::to_usize;

    #[test]
    fn a_long_buffer_starts_at_a_page_boundary() {
        for length in [PAGE_ALIGNED_FROM, PAGE_ALIGNED_FROM + 1, 1 << 20, 1_234_567] {
            let mut buffer = BufferPool::default().buffer(length).unwrap();
            buffer.copy_from_slice(&b"abcd".repeat(length.div_ceil(4))[..length]);
            let (first, copy) = (buffer.as_ptr().addr(), buffer.clone());
            assert_eq!((first % PAGE, copy.as_ptr().addr() % PAGE), (0, 0));
            assert!(to_u64(buffer.capacity()) >= Buffer::occupied_bytes(to_u64(length)));
            assert!(copy == buffer);
            buffer.truncate(7);
            assert_eq!(buffer.into_vec(), b"abcdabc");
            assert_eq!(copy.len(), length);
        }
    }

    #[test]
    fn memory_of_about_the_right_length_is_used_again() {
        let pool = BufferPool::default();
        let first = pool.buffer(1 << 20).unwrap();
        let address = first.as_ptr();
        drop(first);
        assert_ne!(pool.buffer(1 << 19).unwrap().as_ptr(), address);
        let shorter = pool.buffer((1 << 20) - 100_000).unwrap();
        assert_eq!(shorter.as_ptr(), address);
        assert_eq!(shorter.len(), (1 << 20) - 100_000);
        assert_ne!(pool.buffer(1 << 20).unwrap().as_ptr(), address);
        drop(shorter);
        let again = pool.buffer(1 << 20).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (address, 1 << 20));
    }

    #[test]
    fn similar_lengths_are_rounded_to_the_same_capacity() {
        assert_eq!(rounded_length(PAGE_ALIGNED_FROM - 1), PAGE_ALIGNED_FROM - 1);
        assert_eq!(rounded_length(PAGE_ALIGNED_FROM), PAGE_ALIGNED_FROM);
        // A sixteenth of 2^19 is 2^15.
        assert_eq!(
            [530_000, 540_000, 557_056].map(rounded_length),
            [557_056; 3]
        );
        assert_eq!(rounded_length(557_057), 589_824);
    }

    #[test]
    fn the_pool_keeps_the_latest_memory_within_its_limit() {
        let pool = BufferPool::default();
        let half = to_usize(limits::POOL_BYTES / 2).unwrap();
        let kept = || lock(&pool.0).iter().map(Vec::capacity).collect::<Vec<_>>();
        let buffers = [half, PAGE_ALIGNED_FROM, half - PAGE_ALIGNED_FROM - 2 * PAGE]
            .map(|length| pool.buffer(length).unwrap());
        drop(buffers);
        assert_eq!(
            kept(),
            [PAGE_ALIGNED_FROM + PAGE, half - PAGE_ALIGNED_FROM - PAGE]
        );
        drop(pool.buffer(3 * half).unwrap());
        drop(pool.buffer(PAGE_ALIGNED_FROM - 1).unwrap());
        assert!(kept().is_empty());
    }
}

//! Buffers for the bytes of chunks and of answers to reads. Long ones begin with a page.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::source::{Source, check_range};
use crate::wire::{to_u64, to_usize};

/// Bytes of a buffer from which on it begins with a page.
const LONG: usize = 64 << 10;

/// Bytes of a page of memory. The kernel copies a page of its own from as many pages as its bytes lie
/// in: from one, where they begin with one.
const PAGE: usize = 4096;

/// Bytes in memory. Long ones begin with a page.
#[derive(Default)]
pub struct Buffer {
    memory: Vec<u8>,
    /// Where the bytes begin in it.
    start: usize,
}

impl Buffer {
    /// `length` bytes, which are to be written before they are read.
    pub fn new(length: usize) -> Self {
        if length < LONG {
            return vec![0; length].into();
        }
        let mut memory = vec![0; length.saturating_add(PAGE)];
        let start = memory.as_ptr().align_offset(PAGE);
        memory.truncate(start.saturating_add(length));
        let mut buffer = Buffer { memory, start };
        if cfg!(debug_assertions) {
            // So that a test sees bytes that are read and were never written.
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
        let mut bytes = Buffer::new(to_usize(length)?);
        source.read_at(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Bytes of memory that a new one of `length` bytes takes.
    pub fn memory(length: u64) -> u64 {
        let page = if length < to_u64(LONG) { 0 } else { PAGE };
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

    /// The bytes as a vector.
    pub fn into_vec(mut self) -> Vec<u8> {
        self.memory.drain(..self.start);
        self.memory
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        let mut clone = Buffer::new(self.len());
        clone.copy_from_slice(self);
        clone
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_one_begins_with_a_page() {
        for length in [LONG, LONG + 1, 1 << 20, 1_234_567] {
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
}

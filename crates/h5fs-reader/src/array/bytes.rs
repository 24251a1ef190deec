//! The bytes that a read of an array returns.

use std::ops::{Deref, Range};

use crate::array::cache::DecodedChunk;
use crate::memory::buffer::Buffer;

/// Bytes read from an array: an owned buffer, or a range of a decoded chunk that is shared with the
/// cache.
#[derive(Debug, Clone)]
pub struct Bytes(BytesStorage);

#[derive(Debug, Clone)]
enum BytesStorage {
    Owned(Buffer),
    Shared {
        chunk: DecodedChunk,
        range: Range<usize>,
    },
}

impl Bytes {
    /// Returns the part `range` of `chunk` without a copy. The chunk must contain the range.
    pub(super) fn shared(chunk: DecodedChunk, range: Range<usize>) -> Self {
        Bytes(BytesStorage::Shared { chunk, range })
    }

    /// Returns the bytes as a vector. Shared bytes are copied.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            BytesStorage::Owned(bytes) => bytes.into_vec(),
            BytesStorage::Shared { chunk, range } => chunk[range].to_vec(),
        }
    }

    /// Returns whether the bytes share a cached chunk without a copy. The chunk then stays in
    /// memory until the bytes are dropped.
    pub fn is_shared(&self) -> bool {
        matches!(self.0, BytesStorage::Shared { .. })
    }
}

impl From<Buffer> for Bytes {
    fn from(bytes: Buffer) -> Self {
        Bytes(BytesStorage::Owned(bytes))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer::from(bytes).into()
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            BytesStorage::Owned(bytes) => bytes,
            BytesStorage::Shared { chunk, range } => &chunk[range.clone()],
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

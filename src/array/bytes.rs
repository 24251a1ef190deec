//! The bytes that a read returns.

use std::ops::{Deref, Range};

use crate::array::cache::Decoded;
use crate::memory::buffer::Buffer;

/// Bytes of an array: a buffer of their own, or a part of a decoded chunk that is shared with the
/// cache.
#[derive(Debug, Clone)]
pub struct Bytes(Holder);

#[derive(Debug, Clone)]
enum Holder {
    Owned(Buffer),
    Decoder { chunk: Decoded, range: Range<usize> },
}

impl Bytes {
    /// The part `range` of `chunk`, which holds it, without a copy.
    pub(super) fn shared(chunk: Decoded, range: Range<usize>) -> Self {
        Bytes(Holder::Decoder { chunk, range })
    }

    /// The bytes as a vector; copied where they are shared.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Holder::Owned(bytes) => bytes.into_vec(),
            Holder::Decoder { chunk, range } => chunk[range].to_vec(),
        }
    }

    /// Whether no copy was made of a cached chunk, which stays in memory with them.
    pub fn is_shared(&self) -> bool {
        matches!(self.0, Holder::Decoder { .. })
    }
}

impl From<Buffer> for Bytes {
    fn from(bytes: Buffer) -> Self {
        Bytes(Holder::Owned(bytes))
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
            Holder::Owned(bytes) => bytes,
            Holder::Decoder { chunk, range } => &chunk[range.clone()],
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

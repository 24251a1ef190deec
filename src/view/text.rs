//! Content that is whole in memory: short texts, pictures.

use std::sync::Arc;

use crate::array::Bytes;
use crate::error::Result;
use crate::view::View;
use crate::wire::{to_u64, to_usize};

/// A short text; its copies share the bytes.
#[derive(Clone)]
pub(crate) struct Text {
    bytes: Arc<Vec<u8>>,
    sized: bool,
}

impl Text {
    /// A text whose length `stat` tells.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let bytes = Arc::new(bytes);
        Text { bytes, sized: true }
    }

    /// A text that is made anew at each open, like those of `/proc`: its length is known to none
    /// before.
    pub(crate) fn streamed(bytes: Vec<u8>) -> Self {
        Text {
            bytes: Arc::new(bytes),
            sized: false,
        }
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl View for Text {
    fn length(&self) -> Option<u64> {
        self.sized.then_some(to_u64(self.bytes.len()))
    }

    fn own_bytes(&self) -> u64 {
        to_u64(self.bytes.capacity())
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        let start = to_usize(offset)?.min(self.bytes.len());
        let end = start.saturating_add(length).min(self.bytes.len());
        Ok(Bytes::from(self.bytes[start..end].to_vec()))
    }

    fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        self.read_at(offset, length).map(Some)
    }
}

//! The parts of a stream that are decoded alone: places from which it can be decoded without the
//! way from its beginning.

use std::sync::Arc;

use crate::limits;
use crate::wire::{Count, Extent};

/// Decoded bytes up to which neighbours are made one part.
const MERGED: u64 = 64 << 10;

/// So many parts of equal length at most.
const PARTS: u64 = 16 << 10;

/// A stretch of the stored bytes that is decoded alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The stored bytes in the source; of .xz blocks those without padding.
    pub stored: Extent,
    /// The decoded bytes in the block's content.
    pub content: Extent,
    /// Bytes that the decoder needs in front of the stored bytes.
    pub head: Arc<[u8]>,
}

/// Parts while they are found.
#[derive(Debug)]
pub struct PartList {
    list: Vec<Part>,
    /// Bytes up to which neighbours are merged.
    merged: u64,
    decoded: u64,
}

impl PartList {
    /// No parts yet of `decoded` bytes of content. Parts of long content are longer, so that their
    /// number is bounded.
    pub fn new(decoded: u64) -> Self {
        PartList {
            list: Vec::new(),
            merged: MERGED.max(decoded / PARTS),
            decoded,
        }
    }

    /// Where the content of the parts so far ends.
    pub fn end(&self) -> u64 {
        self.list.last().map_or(0, |part| part.content.end())
    }

    /// The parts, if they are all of the content.
    pub fn finish(self) -> Option<Arc<[Part]>> {
        (self.end() == self.decoded).then(|| self.list.into())
    }

    /// Adds a part at the end, unless it holds nothing; `None` for too many, or for more than the
    /// content.
    pub fn push(&mut self, stored: Extent, decoded: u64, head: &Arc<[u8]>) -> Option<()> {
        if decoded == 0 {
            return Some(());
        }
        let content = Extent::checked(self.end(), decoded)?;
        if !content.is_within(self.decoded) || self.list.len() >= limits::STREAM_PARTS {
            return None;
        }
        self.list.push(Part {
            stored,
            content,
            head: Arc::clone(head),
        });
        Some(())
    }

    /// Like `push`, for a part that may be decoded together with the one before it where it follows
    /// that.
    pub fn append(&mut self, stored: Extent, decoded: u64, head: &Arc<[u8]>) -> Option<()> {
        if let Some(last) = self.list.last_mut()
            && last.stored.end() == stored.start()
            && let both = last.content.length().with_more(decoded)
            && both <= self.merged
            && let Some(content) = Extent::checked(last.content.start(), both)
            && content.is_within(self.decoded)
        {
            last.stored = Extent::between(last.stored.start(), stored.end());
            last.content = content;
            return Some(());
        }
        self.push(stored, decoded, head)
    }
}

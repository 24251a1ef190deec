//! The independent parts of a stream. Decoding can start at each part without the preceding bytes.

use std::sync::Arc;

use crate::limits;
use crate::wire::{Count, Extent};

/// The value of `PartList::merge_limit` for short content, in bytes.
const MIN_MERGE_LIMIT: u64 = 64 << 10;

/// The value of `PartList::merge_limit` for long content is the length of the content divided by
/// this number.
const MERGE_DIVISOR: u64 = 16 << 10;

/// A range of the stored bytes that can be decoded independently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPart {
    /// The stored bytes in the source. For .xz blocks, without padding.
    pub stored: Extent,
    /// The decoded bytes as a range of the block's content.
    pub content: Extent,
    /// The bytes that the decoder needs before the stored bytes, such as a frame header.
    pub head: Arc<[u8]>,
}

/// A list of parts while it is built.
#[derive(Debug)]
pub struct PartList {
    list: Vec<StreamPart>,
    /// Maximum decoded length, in bytes, of a part that is merged from neighbouring parts.
    merge_limit: u64,
    decoded: u64,
}

impl PartList {
    /// Creates an empty list for `decoded` bytes of content. In long content, more parts are
    /// merged, so that the number of merged parts is bounded.
    pub fn new(decoded: u64) -> Self {
        PartList {
            list: Vec::new(),
            merge_limit: MIN_MERGE_LIMIT.max(decoded / MERGE_DIVISOR),
            decoded,
        }
    }

    /// Returns the offset in the content at which the parts so far end.
    pub fn end(&self) -> u64 {
        self.list.last().map_or(0, |part| part.content.end())
    }

    /// Returns the parts, or `None` if they do not cover all of the content.
    pub fn finish(self) -> Option<Arc<[StreamPart]>> {
        (self.end() == self.decoded).then(|| self.list.into())
    }

    /// Appends a part, unless it is empty. Returns `None` if there are too many parts, or if they
    /// exceed the content.
    pub fn push(&mut self, stored: Extent, decoded: u64, head: &Arc<[u8]>) -> Option<()> {
        if decoded == 0 {
            return Some(());
        }
        let content = Extent::checked(self.end(), decoded)?;
        if !content.is_within(self.decoded) || self.list.len() >= limits::STREAM_PARTS {
            return None;
        }
        self.list.push(StreamPart {
            stored,
            content,
            head: Arc::clone(head),
        });
        Some(())
    }

    /// Appends a part like `push`. Merges the part with the previous one if their stored bytes are
    /// adjacent and both together decode to at most `merge_limit` bytes.
    pub(crate) fn push_merged(
        &mut self,
        stored: Extent,
        decoded: u64,
        head: &Arc<[u8]>,
    ) -> Option<()> {
        if let Some(last) = self.list.last_mut()
            && last.stored.end() == stored.start()
            && let both = last.content.length().plus(decoded)
            && both <= self.merge_limit
            && let Some(content) = Extent::checked(last.content.start(), both)
            && content.is_within(self.decoded)
        {
            last.stored = Extent::from_range(last.stored.start(), stored.end());
            last.content = content;
            return Some(());
        }
        self.push(stored, decoded, head)
    }
}

//! The parts of a stream that are decoded alone: places from which it can be decoded without the
//! way from its beginning.

use std::sync::Arc;

use crate::limits;

/// Decoded bytes up to which neighbours are made one part.
const MERGED: u64 = 64 << 10;

/// So many parts of equal length at most.
const PARTS: u64 = 16 << 10;

/// A stretch of the stored bytes that is decoded alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Offset of the stored bytes in the source.
    pub offset: u64,
    /// Their length; of .xz blocks that without padding.
    pub stored: u64,
    /// Offset of the decoded bytes in the block's content.
    pub start: u64,
    /// Their length.
    pub decoded: u64,
    /// Bytes that the decoder needs in front of the stored bytes.
    pub head: Arc<[u8]>,
}

impl Part {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.decoded)
    }
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
        self.list.last().map_or(0, Part::end)
    }

    /// The parts, if they are all of the content.
    pub fn finish(self) -> Option<Arc<[Part]>> {
        (self.end() == self.decoded).then(|| self.list.into())
    }

    /// Adds a part at the end, unless it holds nothing; `None` for too many, or for more than the
    /// content.
    pub fn push(&mut self, offset: u64, stored: u64, decoded: u64, head: &Arc<[u8]>) -> Option<()> {
        if decoded == 0 {
            return Some(());
        }
        let start = self.end();
        let end = start.checked_add(decoded)?;
        if end > self.decoded || self.list.len() >= limits::STREAM_PARTS {
            return None;
        }
        self.list.push(Part {
            offset,
            stored,
            start,
            decoded,
            head: Arc::clone(head),
        });
        Some(())
    }

    /// As `push`, for a part that may be decoded together with the one before it where it follows
    /// that.
    pub fn append(
        &mut self,
        offset: u64,
        stored: u64,
        decoded: u64,
        head: &Arc<[u8]>,
    ) -> Option<()> {
        let (merged, most) = (self.merged, self.decoded);
        if let Some(last) = self.list.last_mut()
            && last.offset.checked_add(last.stored) == Some(offset)
            && last.decoded.saturating_add(decoded) <= merged
            && last.end().saturating_add(decoded) <= most
        {
            last.stored = last.stored.saturating_add(stored);
            last.decoded = last.decoded.saturating_add(decoded);
            return Some(());
        }
        self.push(offset, stored, decoded, head)
    }
}

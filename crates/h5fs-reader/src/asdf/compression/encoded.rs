//! A compressed block and its location.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, BufferPool};
use crate::memory::cancel::WantedCheck;
use crate::model::storage::StoredExtent;
use crate::source::{SharedSource, read_buffer};
use crate::wire::{Count, Extent};

/// A compressed block and its location.
#[derive(Debug, Clone)]
pub struct EncodedBlock {
    /// The file offset of the block.
    pub block_offset: u64,
    /// The file that contains the block.
    pub source: SharedSource,
    /// The range of the stored bytes in the file.
    pub stored: Extent,
    /// Number of decoded bytes, as the block header states it.
    pub decoded: u64,
}

impl EncodedBlock {
    /// Returns the estimated ranges of the stored bytes of `pieces`, which decode to `bytes` bytes
    /// each. The estimate assumes uniform compression and includes one more piece on each side.
    pub(super) fn estimated_extents(&self, pieces: Range<u64>, bytes: u64) -> Vec<StoredExtent> {
        let decoded = u128::from(self.decoded.max(1));
        let place = |piece: u64| {
            let piece = u128::from(piece.times(bytes)).min(decoded);
            let before = u128::from(self.stored.length()).times(piece);
            let before = before.checked_div(decoded).unwrap_or(0);
            u64::try_from(before).unwrap_or(self.stored.length())
        };
        let start = place(pieces.start.minus_or_zero(1));
        let end = place(pieces.end.plus_one());
        vec![StoredExtent {
            source: Arc::clone(&self.source),
            extent: self.stored.first(end).skip(start),
        }]
    }

    /// Fails with `Limit` if the block stores more than `needed + surplus` bytes.
    pub(super) fn limit_stored(&self, needed: u64, surplus: u64) -> Result<()> {
        let most = needed.plus(surplus);
        let (decoded, stored) = (self.decoded, self.stored.length());
        if stored > most {
            let what = format!("a block of {decoded} bytes stored as {stored}");
            return Err(Error::limit(what, most));
        }
        Ok(())
    }

    /// Reads all stored bytes.
    pub(super) fn read(&self, pool: &BufferPool, is_wanted: &WantedCheck<'_>) -> Result<Buffer> {
        let stored = (self.stored.start(), self.stored.length());
        read_buffer(&*self.source, stored, (pool, is_wanted), "block")
    }

    /// Adds the offset of the stored bytes to an error without an offset.
    pub(super) fn with_offset(&self, error: Error) -> Error {
        match error {
            Error::Corrupt { what, at: None } => Error::corrupt(what, self.stored.start()),
            other => other,
        }
    }

    pub(super) fn corrupt(&self, what: &'static str) -> Error {
        Error::corrupt(what, self.stored.start())
    }

    /// Returns the range of a piece in the block's content. Each piece has `bytes` bytes, except
    /// the last. The range is empty if the piece does not exist.
    pub(super) fn piece(&self, piece: u64, bytes: u64) -> Extent {
        Extent::from_range(piece.times(bytes), self.decoded).first(bytes)
    }

    /// Logs that the stream is truncated although all of its content is present.
    pub(super) fn warn_truncated(&self) {
        let at = self.stored.start();
        log::warn!(
            "block at byte {at}: the end of the bzip2 stream is missing; the content is complete"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    #[test]
    fn estimated_extents_assume_uniform_compression() {
        let encoded = EncodedBlock {
            block_offset: 0,
            source: Arc::new(MemorySource::new(Vec::new())),
            stored: Extent::from(1000..1500),
            decoded: 5000,
        };
        let place = |pieces| {
            let parts = encoded.estimated_extents(pieces, 100);
            let part = |part: &StoredExtent| (part.extent.start(), part.extent.length());
            parts.iter().map(part).collect::<Vec<_>>()
        };
        let bytes = |piece| encoded.piece(piece, 600).range();
        assert_eq!((bytes(0), bytes(8)), (0..600, 4800..5000));
        assert!(bytes(9).is_empty() && bytes(u64::MAX).is_empty());
        assert_eq!(place(20..30), [(1190, 120)]);
        assert_eq!(place(0..1), [(1000, 20)]);
        assert_eq!(
            (place(0..50), place(0..u64::MAX)),
            (vec![(1000, 500)], vec![(1000, 500)])
        );
    }
}

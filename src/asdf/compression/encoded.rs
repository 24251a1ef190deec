//! A compressed block and where it is.

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, BufferPool};
use crate::source::SharedSource;

/// A compressed block and where it is.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// Offset of the block.
    pub block: u64,
    /// The file.
    pub source: SharedSource,
    /// Offset of the stored bytes.
    pub offset: u64,
    /// Stored bytes.
    pub stored: u64,
    /// Decoded bytes, as the block header has it.
    pub decoded: u64,
}

impl Encoded {
    /// `Limit` where more is stored than `needed` bytes and a surplus.
    pub(super) fn limit_stored(&self, needed: u64, surplus: u64) -> Result<()> {
        let most = needed.saturating_add(surplus);
        if self.stored > most {
            let what = format!(
                "a block of {} bytes stored as {}",
                self.decoded, self.stored
            );
            return Err(Error::limit(what, most));
        }
        Ok(())
    }

    /// The stored bytes, all of them.
    pub(super) fn read(&self, pool: &BufferPool) -> Result<Buffer> {
        pool.read(&*self.source, self.offset, self.stored, "block")
    }

    /// The same error, with the place of the stored bytes where it has none.
    pub(super) fn placed(&self, error: Error) -> Error {
        match error {
            Error::Corrupt { what, at: None } => Error::corrupt(what, self.offset),
            other => other,
        }
    }

    pub(super) fn corrupt(&self, what: &'static str) -> Error {
        Error::corrupt(what, self.offset)
    }

    /// The error `NotFound` where the content has no piece of this number.
    pub(super) fn check_piece(&self, piece: u64, bytes: u64) -> Result<()> {
        let start = piece.checked_mul(bytes);
        let is_there = start.is_some_and(|start| start < self.decoded);
        is_there.then_some(()).ok_or(Error::NotFound)
    }

    /// Says that the stream lacks its end, although all of its content is there.
    pub(super) fn warn_of_cut(&self) {
        let at = self.offset;
        log::warn!("block at byte {at}: the bzip2 stream lacks its end; its content is whole");
    }
}

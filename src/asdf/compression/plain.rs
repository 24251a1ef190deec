//! Blocks that are not compressed, in pieces all the same: for elements that stand apart.

use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::model::storage::{Extent, Help, Pieces};

/// Bytes of a piece.
const PIECE: u64 = 256 << 10;

/// The content of a plain block.
#[derive(Debug)]
pub struct Plain(Extent);

impl Plain {
    /// The content that stands there.
    pub fn new(content: Extent) -> Self {
        Plain(content)
    }
}

impl Pieces for Plain {
    fn bytes(&self) -> u64 {
        self.0.length
    }

    fn piece_bytes(&self) -> Result<u64> {
        Ok(PIECE)
    }

    fn stored_bytes(&self) -> u64 {
        self.0.length
    }

    fn decode(&self, piece: u64, _: &mut Help<'_>) -> Result<Buffer> {
        let start = piece.saturating_mul(PIECE);
        let length = self.0.length.saturating_sub(start).min(PIECE);
        if length == 0 {
            return Err(Error::NotFound);
        }
        let at = self.0.offset.saturating_add(start);
        Buffer::read(&*self.0.source, at, length, "block")
    }
}

//! The framing that the LZ4 and bitshuffle filters share: u64 bytes of the whole, u32 bytes of a
//! block, then blocks, each behind its stored length as u32. All numbers are big-endian.

use crate::error::{Error, Result};
use crate::wire::Cursor;

/// Walks the blocks of one chunk.
#[derive(Debug)]
pub(crate) struct Blocks<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Blocks<'a> {
    /// `stored` is the chunk as filter `codec` left it.
    pub(crate) fn new(codec: &'static str, stored: &'a [u8]) -> Self {
        Blocks {
            cursor: Cursor::new(stored, None, codec),
        }
    }

    /// The header's bytes of the whole chunk.
    pub(crate) fn total(&mut self) -> Result<usize> {
        let total = u64::from_be_bytes(self.cursor.array()?);
        usize::try_from(total).map_err(|_| Error::corrupt("length past any memory", None))
    }

    /// The next length: in the header that of a block.
    pub(crate) fn length(&mut self) -> Result<usize> {
        let length = u32::from_be_bytes(self.cursor.array()?);
        usize::try_from(length).map_err(|_| Error::corrupt("length past any memory", None))
    }

    /// The stored bytes of the next block.
    pub(crate) fn next(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.cursor.take(length)
    }

    /// The next `length` bytes, which no length precedes.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        self.cursor.take(length)
    }
}

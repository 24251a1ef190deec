//! The framing of the LZ4 and bitshuffle filters: decoded length of the chunk as u64, decoded
//! length of a block as u32, then the blocks. Each block is preceded by its stored length as u32.
//! All numbers are big-endian.

use crate::error::{Error, Result};
use crate::wire::Cursor;

/// A reader of the blocks of one chunk.
#[derive(Debug)]
pub(crate) struct BlockReader<'a> {
    cursor: Cursor<'a>,
}

impl<'a> BlockReader<'a> {
    /// Creates a reader of `stored`, the encoded chunk. `codec` is the filter's name for error
    /// messages.
    pub(crate) fn new(codec: &'static str, stored: &'a [u8]) -> Self {
        BlockReader {
            cursor: Cursor::new(stored, None, codec),
        }
    }

    /// Reads the total decoded length of the chunk, in bytes, from the header.
    pub(crate) fn read_decoded_length(&mut self) -> Result<usize> {
        let total = u64::from_be_bytes(self.cursor.read_array()?);
        usize::try_from(total).map_err(|_| Error::corrupt("length exceeds the address space", None))
    }

    /// Reads the next length in bytes. In the header, it is the decoded length of a block.
    /// Elsewhere, it is the stored length of the next block.
    pub(crate) fn read_length(&mut self) -> Result<usize> {
        let length = u32::from_be_bytes(self.cursor.read_array()?);
        usize::try_from(length)
            .map_err(|_| Error::corrupt("length exceeds the address space", None))
    }

    /// Reads the stored bytes of the next block.
    pub(crate) fn read_block(&mut self) -> Result<&'a [u8]> {
        let length = self.read_length()?;
        self.cursor.read_bytes(length)
    }

    /// Reads the next `length` bytes, which are stored without a length prefix.
    pub(crate) fn read_bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        self.cursor.read_bytes(length)
    }
}

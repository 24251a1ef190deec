//! The decoded length of a block of an .xz stream, computed from the headers of its LZMA2 chunks. A
//! decoder uses these headers, whatever an index states.

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::scan;
use crate::error::Result;
use crate::limits;
use crate::wire::{Count, Extent};

/// A counter of the LZMA2 chunks of all .xz blocks of a stream, for the limit on their number.
#[derive(Debug, Default)]
pub struct ChunkCounter {
    count: usize,
}

/// The header of an LZMA2 chunk.
struct Header {
    /// Number of stored bytes of the chunk, including its header.
    stored: u64,
    decoded: u64,
}

impl ChunkCounter {
    /// Returns the decoded length of the .xz block in the range `block`, in bytes. Returns `None`
    /// if the block does not consist of LZMA2 chunks, or if all blocks together have too many.
    ///
    /// # Errors
    /// `Io` if the block cannot be read.
    pub(crate) fn decoded_length(
        &mut self,
        encoded: &EncodedBlock,
        block: Extent,
    ) -> Result<Option<u64>> {
        let piece = |part: Extent| scan::read_truncated(&*encoded.source, part);
        let Some(&words) = piece(block.first(1))?.first() else {
            return Ok(None);
        };
        let header = u64::from(words).plus_one().times(4);
        let (mut rest, mut decoded) = (block.skip(header), 0_u64);
        while self.count < limits::BLOCK_CHUNKS {
            self.count = self.count.plus_one();
            let bytes = piece(rest.first(6))?;
            if bytes.first() == Some(&0) {
                return Ok(Some(decoded));
            }
            let Some(header) = Header::read(&bytes) else {
                return Ok(None);
            };
            rest = rest.skip(header.stored);
            decoded = decoded.plus(header.decoded);
        }
        Ok(None)
    }
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[control, a, b, ref rest @ ..] = bytes else {
            return None;
        };
        let length = u64::from(u16::from_be_bytes([a, b])).plus_one();
        match (control, rest) {
            (1 | 2, _) => Some(Header {
                stored: length.plus(3),
                decoded: length,
            }),
            (0x80.., &[a, b, ..]) => {
                let stored = u64::from(u16::from_be_bytes([a, b])).plus_one();
                let properties = if control >= 0xc0 { 1 } else { 0 };
                let high = u64::from(control & 0x1f).wrapping_shl(16);
                Some(Header {
                    stored: stored.plus(5).plus(properties),
                    decoded: length.plus(high),
                })
            }
            _ => None,
        }
    }
}

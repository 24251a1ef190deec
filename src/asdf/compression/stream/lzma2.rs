//! The decoded length of a block of an .xz stream, by the headers of its LZMA2 chunks: they have
//! the lengths that a decoder follows, whatever an index says.

use crate::asdf::compression::encoded::Encoded;
use crate::asdf::scan;
use crate::error::Result;
use crate::limits;

/// Chunks of blocks, counted as they are gone over.
#[derive(Debug, Default)]
pub struct Chunks {
    count: usize,
}

/// A chunk's header.
struct Header {
    /// Stored bytes, with the header.
    stored: u64,
    decoded: u64,
}

impl Chunks {
    /// The length of the content of the block at offset `at`, which ends at `end`; `None` where it
    /// has not such chunks, or all blocks together have too many.
    ///
    /// # Errors
    /// `Io` as it cannot be read.
    pub fn decoded(&mut self, encoded: &Encoded, at: u64, end: u64) -> Result<Option<u64>> {
        let piece = |at: u64, length: u64| {
            let until = at.saturating_add(length).min(end);
            scan::piece(&*encoded.source, at.min(until)..until)
        };
        let Some(&words) = piece(at, 1)?.first() else {
            return Ok(None);
        };
        let header = u64::from(words).saturating_add(1).saturating_mul(4);
        let (mut at, mut decoded) = (at.saturating_add(header), 0_u64);
        while self.count < limits::BLOCK_CHUNKS {
            self.count = self.count.saturating_add(1);
            let bytes = piece(at, 6)?;
            if bytes.first() == Some(&0) {
                return Ok(Some(decoded));
            }
            let Some(header) = Header::read(&bytes) else {
                return Ok(None);
            };
            at = at.saturating_add(header.stored);
            decoded = decoded.saturating_add(header.decoded);
        }
        Ok(None)
    }
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[control, a, b, ref rest @ ..] = bytes else {
            return None;
        };
        let length = u64::from(u16::from_be_bytes([a, b])).saturating_add(1);
        match (control, rest) {
            (1 | 2, _) => Some(Header {
                stored: length.saturating_add(3),
                decoded: length,
            }),
            (0x80.., &[a, b, ..]) => {
                let stored = u64::from(u16::from_be_bytes([a, b])).saturating_add(1);
                let properties = if control >= 0xc0 { 1 } else { 0 };
                let high = u64::from(control & 0x1f).wrapping_shl(16);
                Some(Header {
                    stored: stored.saturating_add(5).saturating_add(properties),
                    decoded: length.saturating_add(high),
                })
            }
            _ => None,
        }
    }
}

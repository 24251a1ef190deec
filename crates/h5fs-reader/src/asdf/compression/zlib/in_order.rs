//! A zlib stream for a sequential reader. The decoder is the fastest one available, but its state
//! cannot be copied, so it only goes from the beginning to the end.

use zlib_rs::{Inflate, InflateFlush, Status};

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::scan;
use crate::error::Result;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::check_wanted;
use crate::model::storage::DecodeContext;
use crate::wire::{Count, Extent, to_usize};

/// Number of stored bytes that are read at once.
pub(crate) const INPUT: u64 = 128 << 10;

/// Number of bits of the largest window (RFC 1950, 2.2).
const WINDOW_BITS: u8 = 15;

/// The faster decoder of a zlib stream, with its position in the stream.
pub struct SequentialInflater {
    decoder: Inflate,
    /// The file offset of the next stored byte.
    at: u64,
    /// The number of the next piece.
    pub piece: u64,
    /// The buffer of the next piece and the number of its bytes that are already decoded, if an
    /// error or a cancelled reader interrupted the decoding.
    partial_piece: Option<(Buffer, usize)>,
}

/// The result of decoding one piece.
pub enum InflateStep {
    Decoded(Buffer),
    /// The stream is damaged, or its length differs from the block header.
    Refused,
}

impl SequentialInflater {
    /// Creates the decoder at the beginning of a block.
    pub fn new(block: &EncodedBlock) -> Self {
        SequentialInflater {
            decoder: Inflate::new(true, WINDOW_BITS),
            at: block.stored.start(),
            piece: 0,
            partial_piece: None,
        }
    }

    /// Decodes the next piece of a block whose pieces have `size` bytes. After an error, the next
    /// call continues. After [`InflateStep::Refused`], no call may follow.
    pub fn step(
        &mut self,
        block: &EncodedBlock,
        size: u64,
        help: &DecodeContext<'_>,
    ) -> Result<InflateStep> {
        let wanted = block.piece(self.piece, size);
        let (mut bytes, mut filled) = match self.partial_piece.take() {
            Some(begun) => begun,
            None => (help.pool.buffer(to_usize(wanted.length())?)?, 0),
        };
        let is_last = wanted.end() == block.decoded;
        let filling = self.fill(block, &mut bytes, &mut filled, is_last, help);
        match filling {
            Ok(true) => {
                self.piece = self.piece.plus_one();
                Ok(InflateStep::Decoded(bytes))
            }
            Ok(false) => Ok(InflateStep::Refused),
            Err(error) => {
                self.partial_piece = Some((bytes, filled));
                Err(error)
            }
        }
    }

    /// Fills `bytes` from byte `filled` on. After the last piece, checks that the stream ends.
    /// Returns whether the piece is valid.
    fn fill(
        &mut self,
        block: &EncodedBlock,
        bytes: &mut [u8],
        filled: &mut usize,
        is_last: bool,
        help: &DecodeContext<'_>,
    ) -> Result<bool> {
        let end = block.stored.end();
        loop {
            check_wanted(help.is_wanted)?;
            let rest = Extent::from_range(self.at, end);
            let input = scan::read_truncated(&*block.source, rest.first(INPUT))?;
            let (used, written) = (self.decoder.total_in(), self.decoder.total_out());
            let output = bytes.get_mut(*filled..).unwrap_or_default();
            // Without free space in the output, the decoder continues to the next byte or to the
            // checksum.
            let status = self
                .decoder
                .decompress(&input, output, InflateFlush::NoFlush);
            let used = self.decoder.total_in().minus_or_zero(used);
            let written = self.decoder.total_out().minus_or_zero(written);
            self.at = rest.skip(used).start();
            *filled = filled.plus(to_usize(written)?);
            let is_full = *filled == bytes.len();
            match status {
                Ok(Status::StreamEnd) => return Ok(is_last && is_full),
                Ok(_) if is_full && !is_last => return Ok(true),
                Ok(_) if used > 0 || written > 0 => {}
                _ => return Ok(false),
            }
        }
    }
}

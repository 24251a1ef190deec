//! A single block of a bzip2 stream, converted into a stream of its own.

use crate::asdf::compression::bzip2::bit_marks::END_MAGIC;
use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::scan;
use crate::error::Result;
use crate::wire::{Count, to_usize};

/// A stream that contains one bzip2 block of the original stream.
pub(super) struct SingleBlock {
    pub(super) stream: Vec<u8>,
    /// The checksum of the block, which is also the checksum of the stream.
    pub(super) sum: u32,
}

impl SingleBlock {
    /// Returns the bzip2 block from bit `from` to bit `to` of the stream, as a complete stream.
    pub(super) fn cut(encoded: &EncodedBlock, from: u64, to: u64) -> Result<Self> {
        let SingleBlock { mut stream, sum } = SingleBlock::cut_without_end(encoded, from, to)?;
        let over = u32::try_from(to.minus_or_zero(from) % 8).unwrap_or(0);
        let rest = match over {
            0 => 0,
            _ => stream.pop().unwrap_or(0),
        };
        let tail = u128::from(END_MAGIC) << 80 | u128::from(sum) << 48;
        let tail = tail.wrapping_shr(over) | u128::from(rest) << 120;
        stream.extend_from_slice(&tail.to_be_bytes());
        Ok(SingleBlock { stream, sum })
    }

    /// Returns the bzip2 block like `cut`, as a stream without the magic number and the checksum at
    /// its end.
    pub(super) fn cut_without_end(encoded: &EncodedBlock, from: u64, to: u64) -> Result<Self> {
        let mut stream = scan::read_truncated(&*encoded.source, encoded.stored.first(4))?;
        if !matches!(stream.as_slice(), [b'B', b'Z', b'h', b'1'..=b'9']) {
            return Err(encoded.corrupt("bzip2: the header is missing"));
        }
        let block = read_bits(encoded, from, to)?;
        let sum = block.get(6..10).and_then(|sum| sum.try_into().ok());
        let sum = u32::from_be_bytes(sum.unwrap_or_default());
        stream.extend_from_slice(&block);
        Ok(SingleBlock { stream, sum })
    }
}

/// Returns bits `from..to` of the stream. Unused bits of the last byte are zero.
pub(super) fn read_bits(encoded: &EncodedBlock, from: u64, to: u64) -> Result<Vec<u8>> {
    let part = encoded.stored.first(to.div_ceil(8)).skip(from / 8);
    let mut bytes = scan::read_truncated(&*encoded.source, part)?;
    let shift = u32::try_from(from % 8).unwrap_or(0);
    let mut before = 0_u8;
    for byte in bytes.iter_mut().rev() {
        let pair = u16::from_be_bytes([*byte, before]).wrapping_shl(shift);
        before = std::mem::replace(byte, pair.to_be_bytes()[0]);
    }
    let count = to.minus_or_zero(from);
    bytes.truncate(to_usize(count.div_ceil(8))?);
    let over = u32::try_from(count % 8).unwrap_or(0);
    if let (1.., Some(last)) = (over, bytes.last_mut()) {
        *last &= 0xff_u8.wrapping_shl(8_u32.wrapping_sub(over));
    }
    Ok(bytes)
}

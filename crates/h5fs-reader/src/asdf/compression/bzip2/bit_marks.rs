//! The magic numbers, called marks here, at which the blocks of a bzip2 stream begin. A mark has 48
//! bits and begins at any bit position.

use crate::asdf::compression::encoded::EncodedBlock;
use crate::asdf::scan;
use crate::error::{Error, Result};
use crate::limits;
use crate::wire::Count;

/// The magic number at the beginning of a bzip2 block (the digits of pi).
const BLOCK_MAGIC: u64 = 0x3141_5926_5359;

/// The magic number after the last bzip2 block (the digits of the square root of pi).
pub(super) const END_MAGIC: u64 = 0x1772_4538_5090;

const MARK_BITS: u32 = 48;
const MASK: u64 = (1 << MARK_BITS) - 1;

/// Number of stored bytes that are searched at once.
const PIECE: u64 = 256 << 10;

/// The position of a magic number, at which a bzip2 block may begin. The same bits may also occur
/// within a block, which only decoding reveals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitMark {
    /// The position of the magic number, in bits from the start of the stream.
    pub(super) bit: u64,
    /// Whether this is the magic number after the last block.
    pub(super) is_end: bool,
}

/// The magic numbers of one bzip2 stream, found up to the last one that was needed.
#[derive(Debug)]
pub(super) struct BitMarks {
    marks: Vec<BitMark>,
    /// Number of stored bytes that were searched.
    searched: u64,
    /// The last eight bytes that were searched, the most recent one lowest.
    window: u64,
    /// For each value of the fourth-last searched byte: a bit set of the distances, 0 to 7 bits, at
    /// which a magic number may end before the end of the last byte.
    shifts: Box<[u8; 256]>,
}

impl Default for BitMarks {
    fn default() -> Self {
        let mut shifts = Box::new([0; 256]);
        for shift in 0..8_u32 {
            for mark in [BLOCK_MAGIC, END_MAGIC] {
                let byte = mark.wrapping_shl(shift).to_le_bytes()[3];
                if let Some(shifts) = shifts.get_mut(usize::from(byte)) {
                    *shifts |= 1_u8.wrapping_shl(shift);
                }
            }
        }
        BitMarks {
            marks: Vec::new(),
            searched: 0,
            window: 0,
            shifts,
        }
    }
}

impl BitMarks {
    /// Returns the magic number with the index `number`, and searches the stream for it if
    /// necessary. Returns `None` if the first `until` stored bytes do not contain it.
    ///
    /// # Errors
    /// `Io` if the stream cannot be read, `Limit` for too many magic numbers.
    pub(super) fn get(
        &mut self,
        number: usize,
        encoded: &EncodedBlock,
        until: u64,
    ) -> Result<Option<BitMark>> {
        let until = until.min(encoded.stored.length());
        while self.marks.len() <= number && self.searched < until {
            Error::check_room(
                self.marks.len(),
                limits::BLOCK_CHUNKS,
                "blocks of a bzip2 stream",
            )?;
            let rest = encoded.stored.skip(self.searched);
            let bytes = scan::read_truncated(&*encoded.source, rest.first(PIECE))?;
            self.search(&bytes);
        }
        Ok(self.marks.get(number).copied())
    }

    /// Returns the magic number with the index `number`, or `None` if it was not found before.
    pub(super) fn known_mark(&self, number: usize) -> Option<BitMark> {
        self.marks.get(number).copied()
    }

    fn search(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.window = self.window.wrapping_shl(8) | u64::from(byte);
            self.searched = self.searched.wrapping_add(1);
            let third = usize::from(self.window.to_le_bytes()[3]);
            let shifts = self.shifts.get(third).copied().unwrap_or(0);
            if shifts != 0 {
                self.record_marks(shifts);
            }
        }
    }

    /// Records the magic numbers that end in the last searched byte. For each set bit i of
    /// `shifts`, a magic number may end i bits before the end of this byte.
    fn record_marks(&mut self, shifts: u8) {
        let read = self.searched.times(8);
        // A larger shift means that the mark is further forward.
        for shift in (0..8_u32).rev() {
            let bits = self.window.wrapping_shr(shift) & MASK;
            let after = u64::from(shift.wrapping_add(MARK_BITS));
            let is_mark = bits == BLOCK_MAGIC || bits == END_MAGIC;
            if shifts.wrapping_shr(shift) & 1 == 1 && is_mark && read >= after {
                self.marks.push(BitMark {
                    bit: read.wrapping_sub(after),
                    is_end: bits == END_MAGIC,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::memory::MemorySource;
    use crate::wire::Extent;

    #[test]
    fn marks_are_found_at_every_bit() {
        for shift in 0..8_u32 {
            let bits = [u128::from(BLOCK_MAGIC) << 72, u128::from(END_MAGIC) << 8];
            let bytes = (bits[0] | bits[1]) >> shift;
            let bytes = [&[0xff; 5][..], &bytes.to_be_bytes(), &[0; 3]].concat();
            let encoded = EncodedBlock {
                block_offset: 0,
                stored: Extent::from(0..24),
                decoded: 0,
                source: Arc::new(MemorySource::new(bytes)),
            };
            let mut marks = BitMarks::default();
            let mark = |bit: u64, is_end| {
                let bit = bit + u64::from(shift);
                Ok(Some(BitMark { bit, is_end }))
            };
            assert_eq!(marks.get(0, &encoded, 24), mark(48, false));
            assert_eq!(marks.get(1, &encoded, 24), mark(112, true));
            assert_eq!(marks.get(2, &encoded, 24), Ok(None));
        }
    }
}

//! ZFP's stream of bits: the lowest bit of each byte first, numbers from their lowest bit up.

use crate::filter::bits::{MIN_READY_BITS, next_word};

/// A reader of bits, which starts at the first bit of a byte slice.
#[derive(Debug)]
pub(super) struct BitStream<'a> {
    rest: &'a [u8],
    /// The next bits of the stream, the first one in the lowest bit. Only the lowest `ready` bits
    /// are valid. The higher bits are zero, or the next refill reads them again.
    window: u64,
    ready: u32,
}

impl<'a> BitStream<'a> {
    /// Creates a reader of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        BitStream {
            rest: bytes,
            window: 0,
            ready: 0,
        }
    }

    /// Fills the window with at least `MIN_READY_BITS` bits, unless the input ends.
    #[inline]
    fn refill(&mut self) {
        let filled = self.ready;
        let next = next_word(&mut self.rest, &mut self.ready);
        self.window |= u64::from_le_bytes(next).wrapping_shl(filled);
    }

    /// Reads the next `width` bits as a number, at most 56. Returns `None` if fewer bits remain.
    #[inline]
    pub(super) fn read(&mut self, width: u32) -> Option<u64> {
        if self.ready < width {
            self.refill();
            if self.ready < width || width > MIN_READY_BITS {
                return None;
            }
        }
        let mask = 1_u64.wrapping_shl(width).wrapping_sub(1);
        let number = self.window & mask;
        self.window = self.window.wrapping_shr(width);
        self.ready = self.ready.wrapping_sub(width);
        Some(number)
    }

    /// Reads the next bit. Returns `None` if no bit remains.
    #[inline]
    pub(super) fn bit(&mut self) -> Option<bool> {
        Some(self.read(1)? == 1)
    }

    /// Skips `count` bits. Returns `None` if fewer bits remain.
    pub(super) fn skip(&mut self, count: u32) -> Option<()> {
        let mut left = count;
        while left > 0 {
            let step = left.min(MIN_READY_BITS);
            self.read(step)?;
            left = left.wrapping_sub(step);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_their_lowest_bit_up() {
        let mut bits = BitStream::new(&[0b1010_0101, 0xff, 0x12, 0x34, 5, 6, 7, 8, 9, 10]);
        assert_eq!(bits.read(4), Some(0b0101));
        assert_eq!(bits.read(4), Some(0b1010));
        assert_eq!(bits.read(24), Some(0x34_12ff));
        assert_eq!(bits.bit(), Some(true));
        assert_eq!(bits.skip(7), Some(()));
        assert_eq!(bits.read(40), Some(0x0a_0908_0706));
        assert_eq!(bits.read(0), Some(0));
        assert_eq!(bits.bit(), None);
    }
}

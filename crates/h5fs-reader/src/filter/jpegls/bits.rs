//! The bits of a scan, the most significant bit of each byte first. After a byte 0xff, only seven
//! bits of the next byte are used, so that the scan's bytes contain no marker (ITU-T T.87, A.1).

use crate::wire::Count;

/// Number of bits in the window after a refill, unless the input has ended.
const MIN_READY_BITS: u32 = 56;

/// A reader of the bits of a scan, whose bytes contain no marker.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanBits<'a> {
    rest: &'a [u8],
    /// The next bits of the scan, the first one in the highest bit. Only the highest `ready` bits
    /// are valid. The lower bits are zero, or the next refill reads them again.
    window: u64,
    ready: u32,
    /// Whether the last consumed byte was 0xff.
    after_ones: bool,
}

impl<'a> ScanBits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        ScanBits {
            rest: bytes,
            window: 0,
            ready: 0,
            after_ones: false,
        }
    }

    /// Returns this reader with at least `MIN_READY_BITS` bits in the window, or with all remaining
    /// bits if they are fewer.
    #[inline(always)]
    fn refilled(mut self) -> Self {
        const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
        const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
        if let Some(bytes) = self.rest.first_chunk::<8>() {
            let word = u64::from_be_bytes(*bytes);
            let has_ones = (!word).wrapping_sub(LOW) & word & HIGH != 0;
            if !has_ones && !self.after_ones {
                let bytes = 63_u32.wrapping_sub(self.ready).wrapping_shr(3);
                self.window |= word.wrapping_shr(self.ready);
                self.ready = self.ready.wrapping_add(bytes.wrapping_shl(3));
                let bytes = usize::try_from(bytes).unwrap_or(0);
                self.rest = self.rest.get(bytes..).unwrap_or_default();
                return self;
            }
        }
        self.filled_by_bytes()
    }

    #[inline(never)]
    fn filled_by_bytes(mut self) -> Self {
        while self.ready < MIN_READY_BITS {
            let Some((&byte, rest)) = self.rest.split_first() else {
                break;
            };
            let width = if self.after_ones { 7 } else { 8 };
            let end = self.ready.wrapping_add(width);
            self.window |= u64::from(byte).wrapping_shl(64_u32.wrapping_sub(end));
            self.ready = end;
            self.after_ones = byte == 0xff;
            self.rest = rest;
        }
        self
    }

    /// Skips `count` bits of the window, at most `ready`.
    #[inline(always)]
    fn skip_ready(&mut self, count: u32) {
        self.window = self.window.unbounded_shl(count);
        self.ready = self.ready.wrapping_sub(count);
    }

    /// Reads the next `width` bits as a number, at most 32. Returns `None` if fewer bits remain.
    #[inline(always)]
    pub(super) fn read(&mut self, width: u32) -> Option<u32> {
        if self.ready < width {
            *self = self.refilled();
            if self.ready < width {
                return None;
            }
        }
        let number = self.window.unbounded_shr(64_u32.wrapping_sub(width));
        self.skip_ready(width);
        u32::try_from(number).ok()
    }

    /// Reads a number in a Golomb code of limited length (A.5.3): zeros and a one, then `k` bits.
    /// After exactly `most_zeros` zeros and a one, `escaped` bits contain the number less one.
    /// Returns `None` if the code is invalid or fewer bits remain.
    #[inline(always)]
    pub(super) fn read_golomb(&mut self, k: u32, most_zeros: u32, escaped: u32) -> Option<u32> {
        if self.ready < 32 {
            *self = self.refilled();
        }
        let zeros = self.window.leading_zeros();
        let length = zeros.wrapping_add(1).wrapping_add(k);
        if length > self.ready || zeros >= most_zeros {
            let (number, rest) = self.long_golomb(k, most_zeros, escaped)?;
            *self = rest;
            return Some(number);
        }
        self.skip_ready(zeros.wrapping_add(1));
        let low = self.window.unbounded_shr(64_u32.wrapping_sub(k));
        self.skip_ready(k);
        let high = u64::from(zeros).wrapping_shl(k);
        u32::try_from(high | low).ok()
    }

    #[inline(never)]
    fn long_golomb(mut self, k: u32, most_zeros: u32, escaped: u32) -> Option<(u32, Self)> {
        let mut zeros = 0_u32;
        while self.read(1)? == 0 {
            zeros = zeros.wrapping_add(1);
            if zeros > most_zeros {
                return None;
            }
        }
        let number = if zeros < most_zeros {
            zeros.wrapping_shl(k) | self.read(k)?
        } else {
            self.read(escaped)?.wrapping_add(1)
        };
        Some((number, self))
    }

    /// Returns whether only padding remains to be read: the padding of the last byte, and one byte
    /// that encoders add after 0xff.
    pub(super) fn has_only_padding(&self) -> bool {
        let ready = usize::try_from(self.ready).unwrap_or(usize::MAX);
        self.rest.len().times(8).plus(ready) < 16
    }
}

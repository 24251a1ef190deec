//! Repetition and definition levels, and dictionary indices: numbers of a few bits, in runs ("Run
//! Length Encoding / Bit-Packing Hybrid" of parquet-format).
//!
//! A bit-packed run begins with `groups << 1 | 1`, where a group has eight numbers. A run of one
//! repeated number begins with `count << 1`, followed by the number.

use std::ops::Range;

use crate::parquet::thrift::append_varint;

/// Returns the header of one bit-packed run of `count` numbers.
pub(super) fn bit_packed_header(count: u64) -> Vec<u8> {
    let mut head = Vec::new();
    append_varint(count.div_ceil(8) << 1 | 1, &mut head);
    head
}

/// Returns the length in bytes of one bit-packed run of `count` numbers, without its header.
pub(super) fn bit_packed_bytes(count: u64, bits: u32) -> u64 {
    count.div_ceil(8).saturating_mul(bits.into())
}

/// Returns the bytes `range` of a bit-packed run of one-bit numbers. `is_set` returns whether the
/// number at a position is 1.
pub(super) fn pack_level_bits(range: Range<u64>, is_set: impl Fn(u64) -> bool) -> Vec<u8> {
    let byte = |at: u64| {
        let bits = (0..8_u8).map(|bit| u8::from(is_set(8 * at + u64::from(bit))) << bit);
        bits.fold(0, |all, bit| all | bit)
    };
    range.map(byte).collect()
}

/// The repetition and definition levels of a page, for nested lists of fixed lengths, outermost
/// first.
pub(super) struct ListLevels<'a> {
    pub(super) lists: &'a [u32],
    /// The number of values in the page.
    pub(super) count: u64,
}

impl ListLevels<'_> {
    /// Returns the number of bits in one level, which depends on the depth of the lists.
    fn pack_level_bits(&self) -> u32 {
        usize::BITS - self.lists.len().leading_zeros()
    }

    /// Returns the length in bytes of all levels of the page.
    pub(super) fn length(&self) -> u64 {
        let repetition = bit_packed_header(self.count).len() as u64
            + bit_packed_bytes(self.count, self.pack_level_bits());
        4 + repetition + self.definition_levels().len() as u64
    }

    /// Returns the bytes before the repetition levels: their length, and the header of their run.
    pub(super) fn repetition_head(&self) -> Vec<u8> {
        let head = bit_packed_header(self.count);
        let length = head.len() as u64 + bit_packed_bytes(self.count, self.pack_level_bits());
        let mut out = (length as u32).to_le_bytes().to_vec();
        out.extend(head);
        out
    }

    /// Returns the length in bytes of the run of repetition levels.
    pub(super) fn repetition_run_length(&self) -> u64 {
        bit_packed_bytes(self.count, self.pack_level_bits())
    }

    /// Returns the bytes `range` of the run of repetition levels.
    pub(super) fn repetition_run(&self, range: Range<u64>) -> Vec<u8> {
        let bits = u64::from(self.pack_level_bits());
        // Eight levels of n bits take n bytes.
        let (first, last) = (range.start / bits, range.end.div_ceil(bits));
        let mut out = Vec::new();
        for group in first..last {
            let levels = (0..8).map(|place| 8 * group + place);
            let word = levels.enumerate().fold(0_u64, |word, (place, number)| {
                let level = if number < self.count {
                    self.repetition_level(number)
                } else {
                    0
                };
                word | level << (place as u64 * bits)
            });
            out.extend_from_slice(&word.to_le_bytes()[..bits as usize]);
        }
        let before = (range.start - first * bits) as usize;
        out.drain(..before);
        out.truncate((range.end - range.start) as usize);
        out
    }

    /// Returns the repetition level of value `number`: the number of enclosing lists that the value
    /// continues. The level is 0 for the first value of a row.
    fn repetition_level(&self, number: u64) -> u64 {
        let mut rest = number;
        for (depth, &count) in self.lists.iter().enumerate().rev() {
            let count = u64::from(count.max(1));
            if !rest.is_multiple_of(count) {
                return depth as u64 + 1;
            }
            rest /= count;
        }
        0
    }

    /// Returns the definition levels, which say that all values are present.
    pub(super) fn definition_levels(&self) -> Vec<u8> {
        let mut run = Vec::new();
        append_varint(self.count << 1, &mut run);
        run.push(self.lists.len() as u8);
        let mut out = (run.len() as u32).to_le_bytes().to_vec();
        out.extend(run);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_distinguish_new_and_continued_lists() {
        let levels = ListLevels {
            lists: &[2, 3],
            count: 12,
        };
        let of_each: Vec<u64> = (0..12)
            .map(|number| levels.repetition_level(number))
            .collect();
        assert_eq!(of_each, [0, 2, 2, 1, 2, 2, 0, 2, 2, 1, 2, 2]);
        let whole = levels.repetition_run(0..levels.repetition_run_length());
        // There are two bits for each level, the first in the lowest bits. The run has 2 + 2 bytes.
        assert_eq!(whole, [0b0110_1000, 0b1000_1010, 0b1010_0110, 0]);
        for start in 0..4 {
            for end in start..4 {
                let part = &whole[start as usize..end as usize];
                assert_eq!(levels.repetition_run(start..end), part);
            }
        }
        assert_eq!(levels.definition_levels(), [2, 0, 0, 0, 24, 2]);
        assert_eq!(levels.repetition_head(), [5, 0, 0, 0, 2 << 1 | 1]);
        assert_eq!(levels.length(), 4 + 1 + 4 + 6);
    }
}

//! Ranges of bytes, or of other numbered items, whose end fits into 64 bits.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::wire::Count;

/// A start and a length whose sum was checked for overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    start: u64,
    length: u64,
}

impl Extent {
    /// Creates the extent of `length` bytes at `start`. `what` names the structure, for the error.
    ///
    /// # Errors
    /// `Corrupt` if the extent ends after the last 64-bit address.
    pub fn new(start: u64, length: u64, what: &str) -> Result<Self> {
        let past_all = || Error::corrupt(format!("{what}: reaches past the last address"), start);
        Self::checked(start, length).ok_or_else(past_all)
    }

    /// Creates the extent of `length` bytes at `start`. Returns `None` if it ends after the last
    /// 64-bit address.
    pub fn checked(start: u64, length: u64) -> Option<Self> {
        let end = start.checked_add(length);
        end.map(|_| Extent { start, length })
    }

    /// Creates the extent of `length` bytes at `start`, shortened if it would end after the last
    /// 64-bit address.
    pub fn saturating(start: u64, length: u64) -> Self {
        let length = length.min(!start);
        Extent { start, length }
    }

    /// Creates the extent from `start` to `end`. The extent is empty if `end` is before `start`.
    pub(crate) fn from_range(start: u64, end: u64) -> Self {
        let length = end.minus_or_zero(start);
        Extent { start, length }
    }

    /// Returns the offset of the first byte.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Returns the length in bytes.
    pub fn length(self) -> u64 {
        self.length
    }

    /// Returns the offset after the last byte.
    pub fn end(self) -> u64 {
        // Each constructor has checked that the sum does not overflow.
        self.start.wrapping_add(self.length)
    }

    /// Returns the extent as a range of offsets.
    pub fn range(self) -> Range<u64> {
        self.start..self.end()
    }

    /// Returns whether the extent contains no bytes.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Returns the bytes that both extents contain. The result is empty if they do not overlap.
    pub(crate) fn intersect(self, other: Self) -> Self {
        Self::from_range(self.start.max(other.start), self.end().min(other.end()))
    }

    /// Returns the extent without its first `count` bytes. The result is empty if the extent is
    /// shorter.
    pub fn skip(self, count: u64) -> Self {
        let passed = count.min(self.length);
        Self::from_range(self.start.wrapping_add(passed), self.end())
    }

    /// Returns the extent of the first `count` bytes, or the whole extent if it is shorter.
    pub fn first(self, count: u64) -> Self {
        let length = count.min(self.length);
        Extent { length, ..self }
    }

    /// Returns the extent of the last `count` bytes, or the whole extent if it is shorter.
    pub fn last(self, count: u64) -> Self {
        self.skip(self.length.minus_or_zero(count))
    }

    /// Returns whether the extent ends at or before the offset `length`.
    pub fn is_within(self, length: u64) -> bool {
        self.end() <= length
    }
}

/// A range that ends before its start becomes an empty extent.
impl From<Range<u64>> for Extent {
    fn from(range: Range<u64>) -> Self {
        Self::from_range(range.start, range.end)
    }
}

/// Merges ranges, each given as offset and length. A range that starts within the previous range,
/// or at its end, is merged with it.
pub fn merge_ranges(ranges: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (at, length) in ranges {
        match joined.last_mut() {
            Some((start, whole)) if (*start..=start.plus(*whole)).contains(&at) => {
                *whole = at.minus_or_zero(*start).plus(length).max(*whole);
            }
            _ => joined.push((at, length)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined() {
        let ranges = [(0, 4), (4, 6), (20, 8), (22, 2), (24, 6), (5, 5)];
        assert_eq!(merge_ranges(ranges), [(0, 10), (20, 10), (5, 5)]);
        assert_eq!(merge_ranges([(1, u64::MAX), (7, 1)]), [(1, u64::MAX)]);
    }

    #[test]
    fn extents_end_within_64_bits() {
        let last = Extent::new(u64::MAX - 3, 3, "test").unwrap();
        assert_eq!((last.end(), last.range().count()), (u64::MAX, 3));
        let error = Extent::new(u64::MAX - 3, 4, "test").unwrap_err();
        let past_all = Error::corrupt("test: reaches past the last address", u64::MAX - 3);
        assert_eq!(error, past_all);
        assert_eq!(Extent::saturating(u64::MAX - 3, 100), last);
        assert_eq!(Extent::saturating(5, 100), Extent::from(5..105));
    }

    #[test]
    fn parts_are_inside() {
        let whole = Extent::from(10..20);
        let common = |range| whole.intersect(Extent::from(range)).range();
        assert_eq!((common(0..15), common(15..30)), (10..15, 15..20));
        assert!(whole.intersect(Extent::from(30..40)).is_empty());
        assert!(Extent::from_range(20, 10).is_empty());
        assert_eq!(whole.skip(4).range(), 14..20);
        assert_eq!(whole.skip(u64::MAX).range(), 20..20);
        assert_eq!(whole.skip(4).first(3).range(), 14..17);
        assert_eq!((whole.first(11), whole.last(11)), (whole, whole));
        assert_eq!(whole.last(3).range(), 17..20);
        assert!(whole.is_within(20) && !whole.is_within(19));
    }
}

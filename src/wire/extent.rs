//! Runs of bytes, or of anything else that is numbered, which end where a number can say.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::wire::Count;

/// A start and a length whose sum was checked when it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    start: u64,
    length: u64,
}

impl Extent {
    /// `length` bytes at `start`.
    ///
    /// # Errors
    /// `Corrupt` if `what` reaches past the last address of 64 bits.
    pub fn new(start: u64, length: u64, what: &str) -> Result<Self> {
        let past_all = || Error::corrupt(format!("{what}: reaches past the last address"), start);
        Self::checked(start, length).ok_or_else(past_all)
    }

    /// `length` bytes at `start`; `None` if they reach past the last address.
    pub fn checked(start: u64, length: u64) -> Option<Self> {
        let end = start.checked_add(length);
        end.map(|_| Extent { start, length })
    }

    /// What of `length` bytes at `start` is before the last address.
    pub fn cut(start: u64, length: u64) -> Self {
        let length = length.min(!start);
        Extent { start, length }
    }

    /// From `start` to `end`: nothing if that is before it.
    pub fn between(start: u64, end: u64) -> Self {
        let length = end.left_after(start);
        Extent { start, length }
    }

    /// Its first byte.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Its length in bytes.
    pub fn length(self) -> u64 {
        self.length
    }

    /// One past its last byte.
    pub fn end(self) -> u64 {
        // Each constructor has seen to it that nothing wraps.
        self.start.wrapping_add(self.length)
    }

    /// From its first byte to its end.
    pub fn range(self) -> Range<u64> {
        self.start..self.end()
    }

    /// Whether it has no bytes.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    /// What both have: nothing, where they have nothing in common.
    pub fn intersect(self, other: Self) -> Self {
        Self::between(self.start.max(other.start), self.end().min(other.end()))
    }

    /// What is left of it after its first `count` bytes.
    pub fn after(self, count: u64) -> Self {
        let passed = count.min(self.length);
        Self::between(self.start.wrapping_add(passed), self.end())
    }

    /// Its first `count` bytes, or all that there are.
    pub fn first(self, count: u64) -> Self {
        let length = count.min(self.length);
        Extent { length, ..self }
    }

    /// Its last `count` bytes, or all that there are.
    pub fn last(self, count: u64) -> Self {
        self.after(self.length.left_after(count))
    }

    /// Whether it is part of the first `length` bytes.
    pub fn is_within(self, length: u64) -> bool {
        self.end() <= length
    }
}

/// A range that ends before it begins is empty.
impl From<Range<u64>> for Extent {
    fn from(range: Range<u64>) -> Self {
        Self::between(range.start, range.end)
    }
}

/// The ranges, offset and length of each; one that begins in the one before it, or where that ends,
/// is one with it.
pub fn joined(ranges: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (at, length) in ranges {
        match joined.last_mut() {
            Some((start, whole)) if (*start..=start.with_more(*whole)).contains(&at) => {
                *whole = at.left_after(*start).with_more(length).max(*whole);
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
        assert_eq!(joined(ranges), [(0, 10), (20, 10), (5, 5)]);
        assert_eq!(joined([(1, u64::MAX), (7, 1)]), [(1, u64::MAX)]);
    }

    #[test]
    fn none_reaches_past_the_last_address() {
        let last = Extent::new(u64::MAX - 3, 3, "test").unwrap();
        assert_eq!((last.end(), last.range().count()), (u64::MAX, 3));
        let error = Extent::new(u64::MAX - 3, 4, "test").unwrap_err();
        let past_all = Error::corrupt("test: reaches past the last address", u64::MAX - 3);
        assert_eq!(error, past_all);
        assert_eq!(Extent::cut(u64::MAX - 3, 100), last);
        assert_eq!(Extent::cut(5, 100), Extent::from(5..105));
    }

    #[test]
    fn parts_are_inside() {
        let whole = Extent::from(10..20);
        let common = |range| whole.intersect(Extent::from(range)).range();
        assert_eq!((common(0..15), common(15..30)), (10..15, 15..20));
        assert!(whole.intersect(Extent::from(30..40)).is_empty());
        assert!(Extent::between(20, 10).is_empty());
        assert_eq!(whole.after(4).range(), 14..20);
        assert_eq!(whole.after(u64::MAX).range(), 20..20);
        assert_eq!(whole.after(4).first(3).range(), 14..17);
        assert_eq!((whole.first(11), whole.last(11)), (whole, whole));
        assert_eq!(whole.last(3).range(), 17..20);
        assert!(whole.is_within(20) && !whole.is_within(19));
    }
}

//! Searches of a source for a byte string, piece by piece, so that long sources do not take
//! additional memory.

use std::ops::Range;

use crate::error::Result;
use crate::source::{self, Source};
use crate::wire::{Count, Extent, to_u64};

const PIECE: u64 = 64 << 10;

/// Returns the offset of the first occurrence of `pattern` that begins within `range` and lies
/// within the source.
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn find(source: &dyn Source, range: &Range<u64>, pattern: &[u8]) -> Result<Option<u64>> {
    let mut rest = Extent::from_range(range.start, range.end.min(source.length()));
    while !rest.is_empty() {
        let bytes = read_truncated(source, extend_for_pattern(rest.first(PIECE), pattern))?;
        if let Some(place) = find_in(&bytes, pattern) {
            return Ok(Some(rest.skip(to_u64(place)).start()));
        }
        rest = rest.skip(PIECE);
    }
    Ok(None)
}

/// Returns the offset of the last occurrence of `pattern` that begins within `range` and lies
/// within the source.
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn find_last(
    source: &dyn Source,
    range: &Range<u64>,
    pattern: &[u8],
) -> Result<Option<u64>> {
    let mut rest = Extent::from_range(range.start, range.end.min(source.length()));
    while !rest.is_empty() {
        let last = rest.last(PIECE);
        let bytes = read_truncated(source, extend_for_pattern(last, pattern))?;
        let places = bytes.windows(pattern.len().max(1));
        if let Some(place) = places.into_iter().rposition(|window| window == pattern) {
            return Ok(Some(last.skip(to_u64(place)).start()));
        }
        rest = Extent::from_range(rest.start(), last.start());
    }
    Ok(None)
}

/// Extends `part` so that it contains every occurrence of `pattern` that begins within `part`.
fn extend_for_pattern(part: Extent, pattern: &[u8]) -> Extent {
    let overlap = to_u64(pattern.len()).minus_or_zero(1);
    Extent::saturating(part.start(), part.length().plus(overlap))
}

/// Returns the offset of the first nonzero byte within `range` and the source.
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn find_nonzero(source: &dyn Source, range: &Range<u64>) -> Result<Option<u64>> {
    let mut rest = Extent::from_range(range.start, range.end.min(source.length()));
    while !rest.is_empty() {
        let bytes = read_truncated(source, rest.first(PIECE))?;
        if let Some(place) = bytes.iter().position(|&byte| byte != 0) {
            return Ok(Some(rest.skip(to_u64(place)).start()));
        }
        rest = rest.skip(PIECE);
    }
    Ok(None)
}

/// Returns the index of the first occurrence of `pattern` in `bytes`.
pub(crate) fn find_in(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len().max(1))
        .position(|window| window == pattern)
}

/// Reads the bytes in the range `part` of the source, truncated at the end of the source.
///
/// # Errors
/// `Io` if the source cannot be read.
pub(crate) fn read_truncated(source: &dyn Source, part: impl Into<Extent>) -> Result<Vec<u8>> {
    let part = part.into();
    let end = part.end().min(source.length());
    let length = end.minus_or_zero(part.start());
    source::read_block(source, part.start().min(end), length, "piece of the file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    #[test]
    fn a_pattern_across_pieces_is_found() {
        let mut bytes = vec![0; 3 * 65_536];
        bytes[65_534..65_538].copy_from_slice(b"\xd3BLK");
        let source = MemorySource::new(bytes);
        let whole = 0..u64::MAX;
        assert_eq!(find(&source, &whole, b"\xd3BLK"), Ok(Some(65_534)));
        assert_eq!(find_last(&source, &whole, b"\xd3BLK"), Ok(Some(65_534)));
        assert_eq!(find(&source, &(0..65_534), b"\xd3BLK"), Ok(None));
    }
}

//! Searching a source for a byte string, piece by piece, so that its length costs no memory.

use std::ops::Range;

use crate::error::Result;
use crate::source::{self, Source};
use crate::wire::to_u64;

const PIECE: u64 = 64 << 10;

/// The offset of the first `pattern` that begins within `range` and lies within the source.
///
/// # Errors
/// `Io` as the source cannot be read.
pub(crate) fn find(source: &dyn Source, range: &Range<u64>, pattern: &[u8]) -> Result<Option<u64>> {
    let overlap = to_u64(pattern.len()).saturating_sub(1);
    let mut at = range.start;
    while at < range.end.min(source.length()) {
        let end = at.saturating_add(PIECE).min(range.end);
        let bytes = piece(source, at..end.saturating_add(overlap))?;
        if let Some(place) = first(&bytes, pattern) {
            return Ok(Some(at.saturating_add(to_u64(place))));
        }
        at = end;
    }
    Ok(None)
}

/// The offset of the last `pattern` that begins within `range` and lies within the source.
///
/// # Errors
/// `Io` as the source cannot be read.
pub(crate) fn find_last(
    source: &dyn Source,
    range: &Range<u64>,
    pattern: &[u8],
) -> Result<Option<u64>> {
    let overlap = to_u64(pattern.len()).saturating_sub(1);
    let mut end = range.end.min(source.length());
    while end > range.start {
        let at = end.saturating_sub(PIECE).max(range.start);
        let bytes = piece(source, at..end.saturating_add(overlap))?;
        let places = bytes.windows(pattern.len().max(1));
        if let Some(place) = places.into_iter().rposition(|window| window == pattern) {
            return Ok(Some(at.saturating_add(to_u64(place))));
        }
        end = at;
    }
    Ok(None)
}

/// The offset of the first byte within `range` and the source that is not zero.
///
/// # Errors
/// `Io` as the source cannot be read.
pub(crate) fn find_nonzero(source: &dyn Source, range: &Range<u64>) -> Result<Option<u64>> {
    let mut at = range.start;
    while at < range.end.min(source.length()) {
        let end = at.saturating_add(PIECE).min(range.end);
        let bytes = piece(source, at..end)?;
        if let Some(place) = bytes.iter().position(|&byte| byte != 0) {
            return Ok(Some(at.saturating_add(to_u64(place))));
        }
        at = end;
    }
    Ok(None)
}

/// The place of the first `pattern` in `bytes`.
pub(crate) fn first(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len().max(1))
        .position(|window| window == pattern)
}

/// The bytes of a range, as far as the source reaches.
///
/// # Errors
/// `Io` as the source cannot be read.
pub(crate) fn piece(source: &dyn Source, range: Range<u64>) -> Result<Vec<u8>> {
    let end = range.end.min(source.length());
    let length = end.saturating_sub(range.start);
    source::read_block(source, range.start.min(end), length, "piece of the file")
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

//! Writes a sequence of bytes of which only a range is wanted.

use std::ops::Range;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::{to_u64, to_usize};

/// A writer that keeps only the bytes whose offsets are in `range`.
pub(super) struct RangeWriter<'a> {
    /// The offsets of the wanted bytes.
    pub(super) range: Range<u64>,
    /// The offset of the next byte.
    pub(super) position: u64,
    out: &'a mut Vec<u8>,
}

impl<'a> RangeWriter<'a> {
    /// Creates a writer that appends the bytes in `range` to `out`.
    pub(super) fn new(range: Range<u64>, out: &'a mut Vec<u8>) -> Self {
        RangeWriter {
            range,
            position: 0,
            out,
        }
    }

    /// Moves over `length` bytes. Returns the part of them that is in the range, relative to the
    /// first one.
    fn advance(&mut self, length: u64) -> Range<u64> {
        let start = self.position;
        let end = start.saturating_add(length);
        self.position = end;
        let first = self.range.start.clamp(start, end);
        let last = self.range.end.clamp(first, end);
        first - start..last - start
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        let part = self.advance(to_u64(bytes.len()));
        let part = to_usize(part.start).ok().zip(to_usize(part.end).ok());
        let part = part.and_then(|(start, end)| bytes.get(start..end));
        self.out.extend_from_slice(part.unwrap_or_default());
    }

    /// Writes `length` bytes of which `read` returns a part.
    ///
    /// # Errors
    /// Fails with the error of `read`, which is called only for wanted bytes. `Corrupt` if `read`
    /// returns another number of bytes.
    pub(super) fn write_part(
        &mut self,
        length: u64,
        read: impl FnOnce(Range<u64>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let part = self.advance(length);
        if part.is_empty() {
            return Ok(());
        }
        let wanted = to_usize(part.end - part.start)?;
        let mut bytes = read(part)?;
        if bytes.len() != wanted {
            return Err(Error::corrupt("a value shorter than its length", None));
        }
        self.out.append(&mut bytes);
        Ok(())
    }

    pub(super) fn write_zeros(&mut self, length: u64) {
        let part = self.advance(length);
        let zeros = to_usize(part.end - part.start).unwrap_or(0);
        self.out.resize(self.out.len() + zeros, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_range_is_written() {
        let all = b"head\0\0body";
        for start in 0..=10 {
            for end in start..=10 {
                let mut out = Vec::new();
                let mut writer = RangeWriter::new(start..end, &mut out);
                writer.write(b"head");
                writer.write_zeros(2);
                let body = |part: Range<u64>| {
                    assert!(!part.is_empty());
                    Ok(b"body"[to_usize(part.start)?..to_usize(part.end)?].to_vec())
                };
                writer.write_part(4, body).unwrap();
                let wanted = to_usize(start).unwrap()..to_usize(end).unwrap();
                assert_eq!(out, all[wanted]);
            }
        }
    }
}

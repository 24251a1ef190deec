//! A read position in a structure whose bytes are all in memory.
//!
//! The cursor knows the structure's name and absolute offset, so that every error states its
//! position.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::wire::{Count, Extent, to_u64};

/// A reader of a byte slice. Every read is bounds-checked, and every error names the structure and
/// the absolute offset.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    start: Option<u64>,
    structure: &'static str,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over `bytes`, which are at the absolute offset `start` of the file, or at
    /// an unknown offset. `structure` is the structure's name in the specification, for errors.
    pub fn new(bytes: &'a [u8], start: impl Into<Option<u64>>, structure: &'static str) -> Self {
        Cursor {
            bytes,
            position: 0,
            start: start.into(),
            structure,
        }
    }

    /// Returns the absolute offset of the next byte. If the absolute offset is unknown, returns the
    /// offset in the structure.
    pub fn offset(&self) -> u64 {
        Extent::saturating(self.start.unwrap_or(0), to_u64(self.position)).end()
    }

    /// Returns the absolute offset of the next byte, if it is known.
    fn absolute_offset(&self) -> Option<u64> {
        self.start.map(|_| self.offset())
    }

    /// Returns the number of bytes read or skipped so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len().minus_or_zero(self.position)
    }

    /// Creates an error for corruption of this structure at the current position, with the reason
    /// `why`.
    pub fn corrupt(&self, why: &str) -> Error {
        Error::corrupt(format!("{}: {why}", self.structure), self.absolute_offset())
    }

    /// Creates an error for the unimplemented feature `what` of this structure.
    pub fn unsupported(&self, what: &str) -> Error {
        Error::unsupported(
            format!("{}: {what}", self.structure),
            self.absolute_offset(),
        )
    }

    /// Reads the next `count` bytes.
    pub fn read_bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.position.checked_add(count);
        let Some((end, taken)) =
            end.and_then(|end| Some((end, self.bytes.get(self.position..end)?)))
        else {
            return Err(self.corrupt("ends too early"));
        };
        self.position = end;
        Ok(taken)
    }

    /// Returns all bytes not yet read, without moving the cursor.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Skips `count` bytes.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        self.read_bytes(count).map(|_| ())
    }

    /// Reads the next bytes, which must equal `signature`.
    ///
    /// # Errors
    /// `Corrupt` for other bytes. The cursor then stays at its position.
    pub(crate) fn expect_signature(&mut self, signature: &[u8]) -> Result<()> {
        let start = self.position;
        if self.read_bytes(signature.len())? == signature {
            return Ok(());
        }
        self.position = start;
        Err(self.corrupt("wrong signature"))
    }

    /// Reads a version from the next byte, which must be one of `known`.
    ///
    /// # Errors
    /// `Unsupported` for another version.
    pub(crate) fn read_version(&mut self, known: RangeInclusive<u8>) -> Result<u8> {
        let version = self.u8()?;
        if known.contains(&version) {
            Ok(version)
        } else {
            Err(self.unsupported(&format!("version {version}")))
        }
    }

    /// Reads the next byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.read_array()?))
    }

    /// Reads the next two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.read_array()?))
    }

    /// Reads the next four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.read_array()?))
    }

    /// Reads the next eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.read_array()?))
    }

    /// Reads the next `N` bytes as an array.
    pub(crate) fn read_array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.read_bytes(N)?;
        taken.try_into().map_err(|_| self.corrupt("ends too early"))
    }

    /// Reads the next `width` bytes as an unsigned little-endian number.
    ///
    /// # Errors
    /// `Corrupt` if a byte after the eighth is not zero, because the number does not fit.
    pub(crate) fn uint(&mut self, width: usize) -> Result<u64> {
        let taken = self.read_bytes(width)?;
        let (low, high) = taken.split_at(width.min(8));
        if high.iter().any(|&byte| byte != 0) {
            return Err(self.corrupt("a number is wider than 64 bits"));
        }
        let mut number = [0; 8];
        number
            .iter_mut()
            .zip(low)
            .for_each(|(to, from)| *to = *from);
        Ok(u64::from_le_bytes(number))
    }

    /// Reads a number of `width` bytes like [`uint`](Self::uint). Returns `None` if all bits are
    /// one, which means an undefined value.
    pub(crate) fn optional_uint(&mut self, width: usize) -> Result<Option<u64>> {
        let mut ahead = self.clone();
        if ahead.read_bytes(width)?.iter().all(|&byte| byte == 0xff) {
            *self = ahead;
            return Ok(None);
        }
        self.uint(width).map(Some)
    }

    /// Reads the bytes before the next NUL, and skips the NUL.
    ///
    /// # Errors
    /// `Corrupt` if there is no NUL.
    pub fn read_text(&mut self) -> Result<&'a [u8]> {
        let Some(length) = self.rest().iter().position(|&byte| byte == 0) else {
            return Err(self.corrupt("text without a NUL"));
        };
        let text = self.read_bytes(length)?;
        self.skip(1)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian_and_counted() {
        let mut cursor = Cursor::new(&[1, 2, 3, 4, 5, 6, 7], 100, "test");
        assert_eq!(cursor.u8(), Ok(1));
        assert_eq!(cursor.u16(), Ok(0x0302));
        assert_eq!(cursor.uint(3), Ok(0x06_0504));
        assert_eq!((cursor.offset(), cursor.remaining()), (106, 1));
    }

    #[test]
    fn a_truncation_error_names_structure_and_offset() {
        let mut cursor = Cursor::new(&[1, 2, 3], 100, "superblock");
        cursor.skip(1).unwrap();
        let error = cursor.u32().unwrap_err();
        assert_eq!(error, Error::corrupt("superblock: ends too early", 101));
        let error = Cursor::new(&[1], None, "element").u32().unwrap_err();
        assert_eq!(error, Error::corrupt("element: ends too early", None));
    }

    #[test]
    fn versions_must_be_known() {
        let mut cursor = Cursor::new(&[1, 4], 100, "test");
        assert_eq!(cursor.read_version(1..=3), Ok(1));
        let error = cursor.read_version(1..=3);
        assert_eq!(error, Err(Error::unsupported("test: version 4", 102)));
    }

    #[test]
    fn wide_numbers_must_fit() {
        let mut bytes = [0; 16];
        bytes[0] = 7;
        assert_eq!(Cursor::new(&bytes, 0, "test").uint(16), Ok(7));
        bytes[8] = 1;
        assert!(Cursor::new(&bytes, 0, "test").uint(16).is_err());
    }

    #[test]
    fn all_bits_set_means_undefined() {
        for width in [2, 8, 16, 32] {
            let mut bytes = vec![0xff; width];
            let mut cursor = Cursor::new(&bytes, 0, "test");
            assert_eq!(cursor.optional_uint(width), Ok(None));
            assert_eq!(cursor.remaining(), 0);
            bytes[1..].fill(0);
            let number = Cursor::new(&bytes, 0, "test").optional_uint(width);
            assert_eq!(number, Ok(Some(0xff)));
        }
    }

    #[test]
    fn text_ends_at_its_nul() {
        let mut cursor = Cursor::new(b"abc\0d", 0, "test");
        assert_eq!(cursor.read_text(), Ok(&b"abc"[..]));
        assert!(cursor.read_text().is_err());
    }
}

//! Files with a header before the elements, and zeros after them: NumPy, TIFF and FITS.

use std::ops::Range;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::overlapping_bytes;
use crate::view::View;

/// The header of a file: the bytes before the elements.
pub trait FileHeader: Send + Sync {
    /// Returns the length of the header in bytes.
    fn length(&self) -> u64;

    /// Appends the bytes of the header in `range`, which must be within its length.
    fn write(&self, range: Range<u64>, out: &mut Vec<u8>);

    /// Returns the memory in bytes that the header's state occupies.
    fn own_bytes(&self) -> u64;
}

impl FileHeader for Vec<u8> {
    fn length(&self) -> u64 {
        to_u64(self.len())
    }

    fn write(&self, range: Range<u64>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self[overlapping_bytes(self, 0, &range)]);
    }

    fn own_bytes(&self) -> u64 {
        to_u64(self.len())
    }
}

/// A file with a header, elements, and zeros up to a multiple of the block size.
pub struct FramedFile {
    head: Box<dyn FileHeader>,
    content: Box<dyn View>,
    /// The offset in the file where the elements end.
    content_end: u64,
    length: u64,
}

impl FramedFile {
    /// Creates a file with the header `head`, and `bytes` bytes of elements in `content`. Zeros
    /// extend the file to a multiple of `block` bytes.
    ///
    /// # Errors
    /// `Limit` if the file is longer than any file can be.
    pub fn new(
        head: impl FileHeader + 'static,
        content: Box<dyn View>,
        bytes: u64,
        block: u64,
    ) -> Result<Self> {
        let length = length(head.length(), bytes, block)?;
        Ok(FramedFile {
            content_end: head.length().saturating_add(bytes),
            head: Box::new(head),
            content,
            length,
        })
    }
}

/// Returns the length in bytes of a file with a header of `head` bytes and `bytes` bytes of
/// elements, extended to a multiple of `block` bytes.
///
/// # Errors
/// `Limit` if the file is longer than any file can be.
pub fn length(head: u64, bytes: u64, block: u64) -> Result<u64> {
    const MOST: u64 = i64::MAX.unsigned_abs();
    let length = head.checked_add(bytes);
    let length = length.and_then(|length| length.checked_next_multiple_of(block));
    length
        .filter(|&length| length <= MOST)
        .ok_or_else(|| Error::limit("size of an array", MOST))
}

impl View for FramedFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn own_bytes(&self) -> u64 {
        self.head.own_bytes()
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let start = self.head.length();
        let end = offset.saturating_add(to_u64(length)).min(self.length);
        if offset >= start && end <= self.content_end {
            return self.content.read_for(offset - start, length, cancel);
        }
        let mut out = Vec::new();
        if offset < start {
            self.head.write(offset..end.min(start), &mut out);
        }
        let (first, last) = (offset.max(start), end.min(self.content_end));
        if first < last {
            let wanted = to_usize(last - first)?;
            let bytes = self.content.read_for(first - start, wanted, cancel)?;
            out.extend_from_slice(&bytes);
        }
        let zeros = end.saturating_sub(offset.max(self.content_end));
        out.resize(out.len() + to_usize(zeros)?, 0);
        Ok(out.into())
    }

    fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let end = offset.saturating_add(to_u64(length));
        match offset.checked_sub(self.head.length()) {
            Some(offset) if end <= self.content_end => self.content.read_now(offset, length),
            _ => Ok(None),
        }
    }

    fn stops_on_cancel(&self) -> bool {
        self.content.stops_on_cancel()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::text::InMemoryContent;

    #[test]
    fn any_range_equals_its_part_of_the_whole() {
        let content = Box::new(InMemoryContent::new(b"elements".to_vec()));
        let framed = FramedFile::new(b"head".to_vec(), content, 8, 8).unwrap();
        let whole = b"headelements\0\0\0\0";
        assert_eq!(framed.length(), 16);
        for start in 0..=17 {
            for length in 0..=17 {
                let read = framed.read_at(start, length).unwrap();
                let start = usize::try_from(start).unwrap().min(16);
                assert_eq!(&read[..], &whole[start..(start + length).min(16)]);
            }
        }
        assert_eq!(&framed.read_now(4, 8).unwrap().unwrap()[..], b"elements");
        assert!(framed.read_now(3, 2).unwrap().is_none());
        assert!(framed.read_now(4, 9).unwrap().is_none());
    }

    #[test]
    fn file_lengths_are_limited_to_63_bits() {
        assert_eq!(length(10, 0, 2880), Ok(2880));
        assert_eq!(length(2880, 1, 2880), Ok(5760));
        assert!(length(1, i64::MAX.unsigned_abs(), 1).is_err());
        assert!(length(1, u64::MAX, 1).is_err());
    }
}

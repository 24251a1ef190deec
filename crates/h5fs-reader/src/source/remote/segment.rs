//! A segment: a file of the disk cache, with a table of checksums followed by up to [`PAGES`] pages
//! of one object.
//!
//! The fetcher writes the segment and sends it to the worker, which reads it. A page is written
//! before its checksum, and verified on every read. After a crash or a flipped bit, verification
//! fails and no corrupt byte is used.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use libdeflater::{Crc, adler32};
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use crate::wire::{Count, to_u64, to_usize};

/// Number of bytes of a page, in segments and in the stage.
pub const PAGE: u64 = 64 << 10;

/// Number of pages of a segment: 64 MiB.
pub const PAGES: u64 = 1024;

/// Number of bytes of a page's checksum.
const CHECKSUM: u64 = 8;

/// Offset of the first page, after the checksums.
const FIRST_PAGE: u64 = PAGES * CHECKSUM;

/// The identity of an object in one state: a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectKey(pub [u8; 32]);

/// An open segment: a file of the disk cache with pages of one object and their checksums.
#[derive(Debug)]
pub struct Segment {
    file: File,
    key: ObjectKey,
}

impl Segment {
    /// Creates a segment from a file. `key` identifies the object.
    pub fn new(file: File, key: ObjectKey) -> Self {
        Segment { file, key }
    }

    /// Returns the key of the object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads the page `number` of the object into `page`, which must have the page's length.
    /// Returns whether the page is present and matches its checksum.
    ///
    /// # Errors
    /// Fails with the system's error; `UnexpectedEof` if the file is too short.
    pub fn read(&self, number: u64, page: &mut [u8]) -> io::Result<bool> {
        let mut stated = [0; 8];
        self.file
            .read_exact_at(&mut stated, checksum_offset(number))?;
        self.file.read_exact_at(page, page_offset(number))?;
        Ok(checksum(&self.key, number, page) == stated)
    }

    /// Returns how many of the pages `numbers`, all in this segment, are present before the first
    /// absent one. Announces to the kernel that they will be read soon.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub fn present_pages(&self, numbers: &Range<u64>) -> io::Result<u64> {
        let pages = numbers.end.minus_or_zero(numbers.start);
        let bytes = to_usize(pages.times(CHECKSUM)).unwrap_or(0);
        let mut stated = vec![0; bytes];
        self.file
            .read_exact_at(&mut stated, checksum_offset(numbers.start))?;
        let (stated, _) = stated.as_chunks::<8>();
        let written = stated.iter().take_while(|stated| **stated != ABSENT);
        let written = to_u64(written.count());
        if let Some(bytes) = NonZeroU64::new(written.times(PAGE)) {
            let first = page_offset(numbers.start);
            let _hint = fadvise(&self.file, first, Some(bytes), Advice::WillNeed);
        }
        Ok(written)
    }

    /// Writes a page of the object. A page has [`PAGE`] bytes, except the last.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn write(&self, number: u64, page: &[u8]) -> io::Result<()> {
        self.file.write_all_at(page, page_offset(number))?;
        let stated = checksum(&self.key, number, page);
        self.file.write_all_at(&stated, checksum_offset(number))
    }

    /// Marks a page as absent.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn mark_absent(&self, number: u64) -> io::Result<()> {
        self.file.write_all_at(&ABSENT, checksum_offset(number))
    }
}

/// Returns the offset of a page in its segment.
fn page_offset(number: u64) -> u64 {
    (number % PAGES).times(PAGE).plus(FIRST_PAGE)
}

/// Returns the offset of a page's checksum in its segment.
fn checksum_offset(number: u64) -> u64 {
    (number % PAGES).times(CHECKSUM)
}

/// The checksum of an absent page.
const ABSENT: [u8; 8] = [0; 8];

/// Returns the checksum of a page, over the object's key, the page's number and its bytes. The
/// result is never `ABSENT`.
pub fn checksum(key: &ObjectKey, number: u64, page: &[u8]) -> [u8; 8] {
    let mut crc = Crc::new();
    crc.update(&key.0);
    crc.update(&number.to_le_bytes());
    crc.update(page);
    let both = u64::from(crc.sum()) << 32 | u64::from(adler32(page));
    both.max(1).to_le_bytes()
}

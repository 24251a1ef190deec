//! A segment: a file of the cache on disk, with up to [`PAGES`] pages of one object behind a table
//! of their checksums.
//!
//! The fetcher writes it and hands it over; the process that parses reads it. A page is written
//! before its checksum, and is compared with it whenever it is read: after a crash, or a flipped
//! bit, the page is wrong, and no wrong byte is taken from it.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use libdeflater::{Crc, adler32};
use rustix::fs::{Advice, fadvise};

use crate::wire::{Count, to_u64, to_usize};

/// Bytes of a page, of a segment and of the stage.
pub const PAGE: u64 = 64 << 10;

/// Pages of a segment: 64 MiB.
pub const PAGES: u64 = 1024;

/// Bytes of the checksum of a page.
const CHECKSUM: u64 = 8;

/// Where the pages begin, behind their checksums.
const FIRST_PAGE: u64 = PAGES * CHECKSUM;

/// The name of an object in one state: a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

/// A segment that is open.
#[derive(Debug)]
pub struct Segment {
    file: File,
    key: Key,
}

impl Segment {
    /// The segment in a file, of the object with this key.
    pub fn new(file: File, key: Key) -> Self {
        Segment { file, key }
    }

    /// The object whose pages it has.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Its file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads the page `number` of the object into `page`, which is as long as it; whether it is
    /// there and right.
    ///
    /// # Errors
    /// Fails with the system's error; `UnexpectedEof` where the file is too short.
    pub fn read(&self, number: u64, page: &mut [u8]) -> io::Result<bool> {
        let mut stated = [0; 8];
        self.file.read_exact_at(&mut stated, stated_at(number))?;
        self.file.read_exact_at(page, place(number))?;
        Ok(checksum(&self.key, number, page) == stated)
    }

    /// How many of the pages `numbers` of the object, which are all in this segment, have been
    /// written, from the first on until one has not. They will be read soon.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub fn written(&self, numbers: &Range<u64>) -> io::Result<u64> {
        let pages = numbers.end.left_after(numbers.start);
        let bytes = to_usize(pages.times(CHECKSUM)).unwrap_or(0);
        let mut stated = vec![0; bytes];
        self.file
            .read_exact_at(&mut stated, stated_at(numbers.start))?;
        let (stated, _) = stated.as_chunks::<8>();
        let written = stated.iter().take_while(|stated| **stated != ABSENT);
        let written = to_u64(written.count());
        if let Some(bytes) = NonZeroU64::new(written.times(PAGE)) {
            let first = place(numbers.start);
            let _hint = fadvise(&self.file, first, Some(bytes), Advice::WillNeed);
        }
        Ok(written)
    }

    /// Writes a page of the object: one of [`PAGE`] bytes, or the last one.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn write(&self, number: u64, page: &[u8]) -> io::Result<()> {
        self.file.write_all_at(page, place(number))?;
        let stated = checksum(&self.key, number, page);
        self.file.write_all_at(&stated, stated_at(number))
    }

    /// Forgets a page.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub fn forget(&self, number: u64) -> io::Result<()> {
        self.file.write_all_at(&ABSENT, stated_at(number))
    }
}

/// Where a page stands in its segment.
fn place(number: u64) -> u64 {
    (number % PAGES).times(PAGE).with_more(FIRST_PAGE)
}

/// Where its checksum stands.
fn stated_at(number: u64) -> u64 {
    (number % PAGES).times(CHECKSUM)
}

/// What stands in the table where no page is.
const ABSENT: [u8; 8] = [0; 8];

/// The checksum of a page: of its bytes, its key and its number. It is never that of no page.
pub fn checksum(key: &Key, number: u64, page: &[u8]) -> [u8; 8] {
    let mut crc = Crc::new();
    crc.update(&key.0);
    crc.update(&number.to_le_bytes());
    crc.update(page);
    let both = u64::from(crc.sum()) << 32 | u64::from(adler32(page));
    both.max(1).to_le_bytes()
}

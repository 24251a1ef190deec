//! A page of the cache on disk, and its checksum.

use libdeflater::{Crc, adler32};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 64 << 10;

/// Bytes of the checksum of a page.
pub(super) const CHECKSUM: u64 = 8;

/// The checksum of a page: of its bytes, its key and its number. It is never 0, as it stands where
/// no page is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checksum(u64);

impl Checksum {
    pub(super) fn of(key: &[u8; 32], number: u64, page: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(key);
        crc.update(&number.to_le_bytes());
        crc.update(page);
        // That of no bytes is 1.
        Checksum(u64::from(crc.sum()) << 32 | u64::from(adler32(page)))
    }

    pub(super) fn bytes(&self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

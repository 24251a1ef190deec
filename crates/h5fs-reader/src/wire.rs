//! Conversion of bytes to numbers: a bounds-checked cursor, and the checksums of the formats'
//! metadata.

pub mod checksum;
mod count;
pub(crate) mod crc32;
mod cursor;
mod extent;

pub use count::Count;
pub use cursor::Cursor;
pub use extent::{Extent, merge_ranges};

use crate::error::{Error, Result};

/// Converts a length from a file to an index in memory.
///
/// # Errors
/// `Limit` if the machine cannot address that many bytes.
pub fn to_usize(length: u64) -> Result<usize> {
    usize::try_from(length).map_err(|_| Error::limit("length", u64::from(u32::MAX)))
}

/// Converts a length in memory to a length in a file.
pub fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

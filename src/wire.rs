//! Bytes to numbers: a bounded cursor, and the checksums that the formats put on their metadata.

#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::as_conversions
    )
)]

pub mod checksum;
mod count;
pub mod crc32;
mod cursor;
mod extent;

pub use count::Count;
pub use cursor::Cursor;
pub use extent::{Extent, joined};

use crate::error::{Error, Result};

/// A length from a file as an index into memory.
///
/// # Errors
/// `Limit` where the machine cannot hold that many bytes.
pub fn to_usize(length: u64) -> Result<usize> {
    usize::try_from(length).map_err(|_| Error::limit("length", u64::from(u32::MAX)))
}

/// A length in memory as a number of the file.
pub fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

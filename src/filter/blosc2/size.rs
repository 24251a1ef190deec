//! Sizes as Blosc 2 writes them: signed big-endian numbers that must not be negative.

use crate::error::Result;
use crate::wire::Cursor;

/// An i32 that is a size.
pub(super) fn int32(cursor: &mut Cursor<'_>) -> Result<usize> {
    let number = i32::from_be_bytes(cursor.array()?);
    usize::try_from(number).map_err(|_| cursor.corrupt("negative size"))
}

/// An i64 that is a size.
pub(super) fn int64(cursor: &mut Cursor<'_>) -> Result<usize> {
    let number = i64::from_be_bytes(cursor.array()?);
    usize::try_from(number).map_err(|_| cursor.corrupt("negative size"))
}

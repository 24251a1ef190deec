//! Sizes as Blosc 2 writes them: signed big-endian numbers that must not be negative.

use crate::error::Result;
use crate::wire::Cursor;

/// Reads a size stored as i32.
pub(super) fn read_size_i32(cursor: &mut Cursor<'_>) -> Result<usize> {
    let number = i32::from_be_bytes(cursor.read_array()?);
    usize::try_from(number).map_err(|_| cursor.corrupt("negative size"))
}

/// Reads a size stored as i64.
pub(super) fn read_size_i64(cursor: &mut Cursor<'_>) -> Result<usize> {
    let number = i64::from_be_bytes(cursor.read_array()?);
    usize::try_from(number).map_err(|_| cursor.corrupt("negative size"))
}

//! The object comment message, with a text about an object (HDF5 3.0, IV.A.2.n).

use crate::error::Result;
use crate::wire::Cursor;

/// Reads the body of an object comment message: the text before the first NUL, or all bytes if
/// there is no NUL.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let text = cursor.read_bytes(cursor.remaining())?;
    Ok(text
        .split(|&byte| byte == 0)
        .next()
        .unwrap_or_default()
        .to_vec())
}

//! The file space info message of the superblock extension (HDF5 3.0, IV.A.2.x).

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::wire::Cursor;

/// The file space strategy that allocates space in pages (`H5F_FSPACE_STRATEGY_PAGE`).
const PAGE: u8 = 1;

/// Reads the size of the file space pages in bytes. Returns `None` if the file does not allocate
/// its space in pages.
///
/// # Errors
/// Fails if the message is truncated, or has version 0, which did not define pages.
pub(crate) fn page_length(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<Option<u64>> {
    const LEAST: u64 = 512;
    cursor.read_version(1..=1)?;
    let strategy = cursor.u8()?;
    cursor.skip(1)?; // whether free space is persistent
    metadata.read_length(cursor)?; // smallest free space that is tracked
    let length = metadata.read_length(cursor)?;
    Ok((strategy == PAGE && length >= LEAST).then_some(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{file, words};

    #[test]
    fn only_the_strategy_page_has_pages() {
        let read = |strategy, length| {
            let message = [&[1, strategy, 0][..], &words(&[1, length])].concat();
            page_length(&file([]), &mut Cursor::new(&message, 0, "message"))
        };
        assert_eq!(read(1, 4 << 20), Ok(Some(4 << 20)));
        assert_eq!((read(0, 4096), read(1, 0)), (Ok(None), Ok(None)));
        page_length(&file([]), &mut Cursor::new(&[0, 1], 0, "message")).expect_err("no pages yet");
    }
}

//! The external data files message, which lists the raw files with a dataset's elements (HDF5 3.0,
//! IV.A.2.h).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::heap::local::LocalHeap;
use crate::limits;
use crate::wire::{Count, Cursor};

/// A range of an external raw file that contains elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExternalFileSlot {
    /// The name of the raw file, in the bytes that the HDF5 file stores.
    pub(crate) name: Vec<u8>,
    /// The offset of the range in the raw file, in bytes.
    pub(crate) offset: u64,
    /// The length of the range in bytes. The last range may be unlimited, which is stored as all
    /// bits one.
    pub(crate) size: u64,
}

/// Reads the body of an external data files message: the ranges of raw files, in the order of the
/// elements.
///
/// # Errors
/// `Limit` if all names together are longer than [`limits::RAW_FILE_NAMES`] bytes.
pub(crate) fn read(
    metadata: &Arc<Metadata>,
    cursor: &mut Cursor<'_>,
) -> Result<Vec<ExternalFileSlot>> {
    cursor.read_version(1..=1)?;
    cursor.skip(3 + 2)?; // reserved, allocated slots
    let used = cursor.u16()?;
    let heap = LocalHeap::open(metadata, metadata.read_defined_address(cursor)?)?;
    let mut names = 0_usize;
    (0..used)
        .map(|_| {
            let name = heap.read_text(metadata.read_length(cursor)?)?;
            names = names.plus(name.len());
            Error::check_limit(
                names,
                limits::RAW_FILE_NAMES,
                "names of external data files",
            )?;
            Ok(ExternalFileSlot {
                name,
                offset: metadata.read_length(cursor)?,
                size: metadata.read_length(cursor)?,
            })
        })
        .collect()
}

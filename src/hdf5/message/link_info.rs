//! The link info message: where a new-style group keeps its links when they are too many for its
//! header (HDF5 3.0, IV.A.2.c).

use crate::error::Result;
use crate::hdf5::metadata::Metadata;
use crate::wire::Cursor;

/// Where dense links are; addresses are absolute file offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkInfo {
    /// The fractal heap that holds the link messages; `None` where links are in the header.
    pub heap: Option<u64>,
    /// The version 2 B-tree over the hashes of the names.
    pub name_index: Option<u64>,
}

impl LinkInfo {
    /// Reads the message's body.
    pub fn read(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<Self> {
        match cursor.u8()? {
            0 => {}
            version => return Err(cursor.unsupported(&format!("version {version}"))),
        }
        if cursor.u8()? & 1 != 0 {
            cursor.skip(8)?; // the highest creation order so far
        }
        let heap = metadata.address(cursor)?;
        Ok(LinkInfo {
            heap,
            name_index: metadata.address(cursor)?,
        })
    }
}

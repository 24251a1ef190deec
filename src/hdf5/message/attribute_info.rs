//! The attribute info message: where an object keeps its attributes when they are too many or too big
//! for its header (HDF5 3.0, IV.A.2.v).

use crate::error::Result;
use crate::hdf5::metadata::Metadata;
use crate::wire::Cursor;

/// Where dense attributes are; addresses are absolute file offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeInfo {
    /// The fractal heap that holds the attribute messages; `None` where they are in the header.
    pub heap: Option<u64>,
    /// The version 2 B-tree over the hashes of the names.
    pub name_index: Option<u64>,
}

impl AttributeInfo {
    /// Reads the message's body.
    pub fn read(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<Self> {
        match cursor.u8()? {
            0 => {}
            version => return Err(cursor.unsupported(&format!("version {version}"))),
        }
        if cursor.u8()? & 1 != 0 {
            cursor.skip(2)?; // the highest creation index so far
        }
        let heap = metadata.address(cursor)?;
        // An index over the creation order may follow; the name index holds that order too.
        Ok(AttributeInfo {
            heap,
            name_index: metadata.address(cursor)?,
        })
    }
}

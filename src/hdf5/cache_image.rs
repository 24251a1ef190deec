//! The metadata cache image: metadata that a writer left in one block instead of writing each structure
//! home (HDF5 1.10; not in the specification, its layout is that of the HDF5 library).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::metadata::{Metadata, verify_checksum};
use crate::hdf5::object_header::RawMessage;
use crate::limits;
use crate::source::SharedSource;
use crate::source::overlay::Overlay;
use crate::wire::{Cursor, to_usize};

/// The file with the structures of the image that `message` points to in their places.
///
/// # Errors
/// `Corrupt` for a wrong checksum or a structure that is cut off; `Limit` for too many.
pub fn overlay(metadata: &Metadata, message: &RawMessage<'_>) -> Result<SharedSource> {
    let mut cursor = Cursor::new(message.data, message.at, "metadata cache image message");
    cursor.skip(1)?; // version
    let Some(at) = metadata.address(&mut cursor)? else {
        return Ok(Arc::clone(metadata.source()));
    };
    let length = metadata.length(&mut cursor)?;
    let patches = read_image(metadata, at, length)?;
    Ok(Arc::new(Overlay::new(
        Arc::clone(metadata.source()),
        patches,
    )))
}

fn read_image(metadata: &Metadata, at: u64, length: u64) -> Result<BTreeMap<u64, Arc<[u8]>>> {
    const WHAT: &str = "metadata cache image";
    let block = metadata.block(at, length, WHAT, |block| verify_checksum(block, at, WHAT))?;
    let mut cursor = Cursor::new(&block, at, WHAT);
    cursor.signature(b"MDCI")?;
    match cursor.u8()? {
        0 => cursor.skip(1)?,
        version => return Err(cursor.unsupported(&format!("version {version}"))),
    }
    metadata.length(&mut cursor)?; // the image's length once more
    let entries = cursor.u32()?;
    if entries > limits::CACHE_IMAGE_ENTRIES {
        let most = u64::from(limits::CACHE_IMAGE_ENTRIES);
        return Err(Error::limit("structures in a metadata cache image", most));
    }
    (0..entries)
        .map(|_| read_entry(metadata, &mut cursor))
        .collect()
}

fn read_entry(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<(u64, Arc<[u8]>)> {
    cursor.skip(1 + 1 + 1 + 1 + 2 + 2)?; // type, flags, ring, age, children, dirty children
    let parents = usize::from(cursor.u16()?);
    cursor.skip(4)?; // rank among the least recently used
    let address = metadata.defined_address(cursor)?;
    let size = metadata.length(cursor)?;
    cursor.skip(parents.saturating_mul(metadata.size_of_offsets()))?;
    Ok((address, cursor.take(to_usize(size)?)?.into()))
}

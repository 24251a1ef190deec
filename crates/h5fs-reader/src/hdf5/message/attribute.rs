//! The attribute message, which contains the attribute's name, type, extent and elements (HDF5 3.0,
//! IV.A.2.m).

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::message::{dataspace, datatype, kind};
use crate::hdf5::shared::SharedMessages;
use crate::limits;
use crate::model::attribute::{Attribute, AttributeContent};
use crate::wire::{Count, Cursor, to_u64, to_usize};

/// Reads an attribute message's body. If the message is damaged after the name, the error becomes
/// the attribute's `content`.
///
/// # Errors
/// `Corrupt` if the name cannot be read, `Unsupported` for an unknown version.
pub(crate) fn read(
    metadata: &Metadata,
    shared: &SharedMessages,
    cursor: &mut Cursor<'_>,
) -> Result<Attribute> {
    let version = cursor.read_version(1..=3)?;
    let flags = cursor.u8()?;
    let flags = if version == 1 { 0 } else { flags };
    let [name_size, datatype_size, dataspace_size] = [cursor.u16()?, cursor.u16()?, cursor.u16()?];
    if version == 3 {
        cursor.skip(1)?; // character set, which is often wrong for real names
    }
    let name = read_part(version, name_size, cursor)?;
    // Like the HDF5 library, this ends the name before the last byte, whatever that byte is.
    let name = name.split_last().map_or(name, |(_, name)| name);
    if name.contains(&0) {
        return Err(cursor.corrupt("the name has another length than stated"));
    }
    let parts = AttributePrefix {
        metadata,
        shared,
        version,
        flags,
        datatype_size,
        dataspace_size,
    };
    Ok(Attribute {
        name: name.to_vec(),
        content: parts.read_content(cursor),
    })
}

/// Reads a part of the message, which has `size` bytes. In version 1, also skips the padding to a
/// multiple of 8.
fn read_part<'a>(version: u8, size: u16, cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let size = usize::from(size);
    let taken = cursor.read_bytes(size)?;
    if version == 1 {
        cursor.skip(
            size.next_multiple_of(8)
                .minus_or_zero(size)
                .min(cursor.remaining()),
        )?;
    }
    Ok(taken)
}

/// The fields at the start of an attribute message that describe the parts after the name.
struct AttributePrefix<'a> {
    metadata: &'a Metadata,
    shared: &'a SharedMessages,
    version: u8,
    flags: u8,
    datatype_size: u16,
    dataspace_size: u16,
}

impl AttributePrefix<'_> {
    fn read_content(&self, cursor: &mut Cursor<'_>) -> Result<AttributeContent> {
        const SHARED_DATATYPE: u8 = 0b01;
        const SHARED_DATASPACE: u8 = 0b10;
        let at = cursor.offset();
        let body = read_part(self.version, self.datatype_size, cursor)?;
        let is_shared = self.flags & SHARED_DATATYPE != 0;
        let body = self
            .shared
            .resolve_body(kind::DATATYPE, is_shared, body, at)?;
        let mut datatype = body.cursor("datatype message");
        let datatype = datatype::read(&mut datatype, self.metadata.size_of_offsets())?;
        let at = cursor.offset();
        let body = read_part(self.version, self.dataspace_size, cursor)?;
        let is_shared = self.flags & SHARED_DATASPACE != 0;
        let body = self
            .shared
            .resolve_body(kind::DATASPACE, is_shared, body, at)?;
        let shape = dataspace::read(self.metadata, &mut body.cursor("dataspace message"))?;
        let elements = shape.elements()?;
        let bytes = elements
            .checked_mul(u64::from(datatype.size))
            .filter(|&bytes| bytes <= limits::ATTRIBUTE_BYTES)
            .ok_or_else(|| Error::limit("size of an attribute", limits::ATTRIBUTE_BYTES))?;
        if bytes > to_u64(cursor.remaining()) {
            return Err(cursor.corrupt("the value is truncated"));
        }
        let elements = cursor.read_bytes(to_usize(bytes)?)?.into();
        Ok(AttributeContent {
            datatype,
            shape,
            elements,
        })
    }
}

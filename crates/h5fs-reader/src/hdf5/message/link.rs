//! The link message: the name of a link in a group, and the link's target (HDF5 3.0, IV.A.2.g).

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::model::{Link, LinkTarget};
use crate::wire::{Count, Cursor, to_usize};

/// Reads a link message's body.
///
/// # Errors
/// `Corrupt` for an empty name or a truncated value, `Unsupported` for an unknown version.
pub(crate) fn read(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<Link> {
    cursor.read_version(1..=1)?;
    let flags = cursor.u8()?;
    let link_type = if flags & 0x08 != 0 { cursor.u8()? } else { 0 };
    let order = match flags & 0x04 {
        0 => None,
        _ => Some(cursor.u64()?),
    };
    if flags & 0x10 != 0 {
        cursor.skip(1)?; // character set, which is often wrong for real names
    }
    let length = cursor.uint(1 << (flags & 0b11))?;
    let name = cursor.read_bytes(to_usize(length)?)?.to_vec();
    if name.is_empty() {
        return Err(cursor.corrupt("an empty name"));
    }
    let target = target(metadata, link_type, cursor).unwrap_or_else(LinkTarget::Damaged);
    Ok(Link {
        name,
        target,
        order,
        is_to_group: false,
    })
}

fn target(metadata: &Metadata, link_type: u8, cursor: &mut Cursor<'_>) -> Result<LinkTarget> {
    const HARD: u8 = 0;
    const SOFT: u8 = 1;
    const EXTERNAL: u8 = 64;
    if link_type == HARD {
        let object = metadata.read_defined_address(cursor)?;
        return object.try_into().map(LinkTarget::Hard);
    }
    let length = usize::from(cursor.u16()?);
    let value = cursor.read_bytes(length)?;
    match link_type {
        SOFT if value.is_empty() => Err(cursor.corrupt("an empty soft link")),
        SOFT => Ok(LinkTarget::Soft(value.to_vec())),
        EXTERNAL => external(value, cursor),
        65.. => Ok(LinkTarget::UserDefined(link_type)),
        _ => Err(cursor.unsupported(&format!("link type {link_type}"))),
    }
}

fn external(value: &[u8], cursor: &Cursor<'_>) -> Result<LinkTarget> {
    let start = cursor
        .offset()
        .minus_or_zero(crate::wire::to_u64(value.len()));
    let mut value = Cursor::new(value, start, "external link");
    match value.u8()? {
        0 => {}
        version_and_flags => {
            return Err(value.unsupported(&format!("version and flags {version_and_flags:#04x}")));
        }
    }
    let file = value.read_text()?.to_vec();
    let path = value.read_text()?.to_vec();
    Ok(LinkTarget::External { file, path })
}

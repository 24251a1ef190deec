//! The filter pipeline message, which lists the filters that were applied to each chunk (HDF5 3.0,
//! IV.A.2.l).

use crate::error::Result;
use crate::limits;
use crate::model::storage::{Filter, Pipeline};
use crate::wire::Cursor;

/// Reads a filter pipeline message's body.
///
/// # Errors
/// `Corrupt` for more than 32 filters or a truncated list, `Unsupported` for an unknown version.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Pipeline> {
    let version = cursor.u8()?;
    let filters = usize::from(cursor.u8()?);
    if filters > limits::FILTERS {
        return Err(cursor.corrupt(&format!("{filters} filters")));
    }
    match version {
        1 => cursor.skip(6)?,
        2 => {}
        _ => return Err(cursor.unsupported(&format!("version {version}"))),
    }
    let filters = (0..filters)
        .map(|_| filter(version, cursor))
        .collect::<Result<_>>()?;
    Ok(Pipeline(filters))
}

fn filter(version: u8, cursor: &mut Cursor<'_>) -> Result<Filter> {
    const FIRST_WITH_NAME: u16 = 256;
    let id = cursor.u16()?;
    let name_length = if version == 1 || id >= FIRST_WITH_NAME {
        usize::from(cursor.u16()?)
    } else {
        0
    };
    cursor.skip(2)?; // flags: "optional" is only for writers
    let count = cursor.u16()?;
    let padded = match version {
        1 => name_length.next_multiple_of(8),
        _ => name_length,
    };
    let name = name_text(cursor.read_bytes(padded)?);
    let parameters = (0..count).map(|_| cursor.u32()).collect::<Result<_>>()?;
    if version == 1 && count % 2 == 1 {
        // Some writers omit the padding of the last filter.
        cursor.skip(cursor.remaining().min(4))?;
    }
    Ok(Filter {
        id,
        name,
        parameters,
    })
}

fn name_text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

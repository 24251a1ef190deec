//! The dataspace message: the extent of a dataset or an attribute (HDF5 3.0, IV.A.2.b).

use crate::error::Result;
use crate::hdf5::file::metadata::Metadata;
use crate::limits;
use crate::model::Shape;
use crate::wire::Cursor;

/// Reads a dataspace message's body.
///
/// # Errors
/// `Corrupt` for a rank over 32, a scalar or a null dataspace with dimensions, or a dimension over
/// its maximum. `Unsupported` for an unknown version or type.
pub(crate) fn read(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<Shape> {
    let version = cursor.u8()?;
    let rank = usize::from(cursor.u8()?);
    let flags = cursor.u8()?;
    if rank > limits::RANK {
        return Err(cursor.corrupt(&format!("rank {rank}")));
    }
    match (version, cursor.u8()?) {
        (1, _) => cursor.skip(4)?, // reserved, like the byte before
        (2, 0) if rank > 0 => return Err(cursor.corrupt("a scalar with dimensions")),
        (2, 2) if rank > 0 => return Err(cursor.corrupt("a null dataspace with dimensions")),
        (2, 0 | 1) => {}
        (2, 2) => return Ok(Shape::Null),
        (2, other) => return Err(cursor.unsupported(&format!("dataspace type {other}"))),
        _ => return Err(cursor.unsupported(&format!("version {version}"))),
    }
    let dims = (0..rank)
        .map(|_| metadata.read_length(cursor))
        .collect::<Result<Vec<_>>>()?;
    if flags & 1 == 0 {
        return Ok(Shape::fixed(dims));
    }
    let max = (0..rank)
        .map(|_| metadata.read_optional_length(cursor)) // `None` means unlimited
        .collect::<Result<Vec<_>>>()?;
    let over = |(dim, max): (&u64, &Option<u64>)| max.is_some_and(|max| *dim > max);
    if dims.iter().zip(&max).any(over) {
        return Err(cursor.corrupt("a dimension exceeds its maximum"));
    }
    Ok(Shape::Simple { dims, max })
}

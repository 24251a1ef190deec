//! Stored dataspace selections: the elements of a dataset that a virtual dataset uses, or that a
//! region reference points to (HDF5 3.0, VIII.A "Dataspace Selection").

use crate::error::{Error, Result};
use crate::limits;
use crate::model::region::{Region, RegionAxis};
use crate::wire::{Cursor, to_u64};

/// Reads one stored selection.
///
/// # Errors
/// `Corrupt` for an impossible pattern. `Unsupported` for a selection of points, which the HDF5
/// libraries do not accept in virtual datasets either, and for unknown versions.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Region> {
    const NONE: u32 = 0;
    const POINTS: u32 = 1;
    const HYPERSLAB: u32 = 2;
    const ALL: u32 = 3;
    let selection_type = cursor.u32()?;
    let version = cursor.u32()?;
    match selection_type {
        NONE | ALL if version != 1 => {
            Err(cursor.unsupported(&format!("selection version {version}")))
        }
        NONE | ALL => {
            cursor.skip(4 + 4)?; // reserved, length
            Ok(if selection_type == ALL {
                Region::All
            } else {
                Region::Nothing
            })
        }
        HYPERSLAB => read_hyperslab(version, cursor),
        POINTS => Err(cursor.unsupported("a selection of points")),
        other => Err(cursor.unsupported(&format!("selection type {other}"))),
    }
}

fn read_hyperslab(version: u32, cursor: &mut Cursor<'_>) -> Result<Region> {
    const REGULAR: u8 = 1;
    let (is_regular, width) = match version {
        1 => {
            cursor.skip(4 + 4)?; // reserved, length
            (false, 4)
        }
        2 => {
            let flags = cursor.u8()?;
            cursor.skip(4)?; // length
            (flags & REGULAR != 0, 8)
        }
        3 => (cursor.u8()? & REGULAR != 0, usize::from(cursor.u8()?)),
        version => return Err(cursor.unsupported(&format!("selection version {version}"))),
    };
    if !matches!(width, 2 | 4 | 8) {
        return Err(cursor.corrupt(&format!("a selection in numbers of {width} bytes")));
    }
    let rank = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
    if rank == 0 || rank > limits::RANK {
        return Err(cursor.corrupt(&format!("a selection of rank {rank}")));
    }
    if is_regular {
        let axes = collect_exact((0..rank).map(|_| read_axis(width, cursor)))?;
        Ok(Region::Regular(axes))
    } else {
        read_blocks(rank, width, cursor)
    }
}

/// Reads the start, stride, count and block of a regular hyperslab in one dimension.
fn read_axis(width: usize, cursor: &mut Cursor<'_>) -> Result<RegionAxis> {
    let start = cursor.uint(width)?;
    let stride = cursor.uint(width)?;
    // All bits one means unlimited.
    let count = cursor.optional_uint(width)?;
    let block = cursor.optional_uint(width)?;
    if stride == 0 || count == Some(0) || block == Some(0) {
        return Err(cursor.corrupt("a selection with a stride, count or block of 0"));
    }
    if count != Some(1) && block.is_none_or(|block| block > stride) {
        return Err(cursor.corrupt("a selection whose blocks overlap"));
    }
    let length = match (count, block) {
        (Some(count), Some(block)) => {
            let length = count.checked_mul(block);
            Some(length.ok_or_else(|| cursor.corrupt("a selection of too many elements"))?)
        }
        _ => None,
    };
    let block = block.unwrap_or(u64::MAX);
    Ok(RegionAxis {
        start,
        stride: stride.max(block),
        block,
        length,
    })
}

/// Reads the blocks of an irregular hyperslab: for each block, its first and its last corner.
fn read_blocks(rank: usize, width: usize, cursor: &mut Cursor<'_>) -> Result<Region> {
    let count = cursor.uint(width)?;
    Error::check_limit(
        count,
        to_u64(limits::REGION_RUNS),
        "blocks of an irregular selection",
    )?;
    let place = |cursor: &mut Cursor<'_>| match cursor.uint(width)? {
        u64::MAX => Err(cursor.corrupt("a selection of index 2^64 - 1, which no element has")),
        place => Ok(place),
    };
    let corner = |cursor: &mut Cursor<'_>| collect_exact((0..rank).map(|_| place(cursor)));
    let blocks = collect_exact((0..count).map(|_| Ok((corner(cursor)?, corner(cursor)?))))?;
    Ok(Region::Blocks(blocks))
}

/// Collects `items` into a list without spare capacity, because there may be very many short lists.
fn collect_exact<T>(items: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut items = items.collect::<Result<Vec<_>>>()?;
    items.shrink_to_fit();
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_64_bit_index_is_rejected() {
        let block = |last: u64| {
            let (hyperslab, rank, blocks) = (2_u32, 1_u32, 1_u64);
            let mut stored = [hyperslab.to_le_bytes(), 2_u32.to_le_bytes()].concat();
            stored.extend([0; 1 + 4]);
            stored.extend(rank.to_le_bytes());
            stored.extend([blocks, 5, last].map(u64::to_le_bytes).concat());
            read(&mut Cursor::new(&stored, 0, "test"))
        };
        let last = u64::MAX - 1;
        assert_eq!(
            block(last).unwrap(),
            Region::Blocks(vec![(vec![5], vec![last])])
        );
        block(u64::MAX).unwrap_err();
    }
}

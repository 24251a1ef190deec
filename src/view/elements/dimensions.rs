//! Dimension scales: the arrays that stand for the dimensions of other arrays.
//!
//! HDF5 (H5DS): a scale is an array whose attribute `CLASS` is `DIMENSION_SCALE`; an array's
//! `DIMENSION_LIST` holds for each dimension references to its scales, of which the first counts.
//! netCDF-4 adds numbers: `_Netcdf4Dimid` of a scale, and `_Netcdf4Coordinates`, the numbers of the
//! dimensions of a coordinate variable with several; they are sought in the variable's own group
//! first, then in those above. ASDF has none of it.

use crate::error::Result;
use crate::limits;
use crate::model::attribute_value::{integers, target_at, targets, text};
use crate::model::{Container, LinkTarget, NodeId, NodeKind};

/// Whether the array is a scale.
///
/// # Errors
/// Fails if that cannot be found out, as do all functions below.
pub(crate) fn is_scale(container: &dyn Container, node: NodeId) -> Result<bool> {
    let class = text(container, node, b"CLASS")?;
    Ok(class.is_some_and(|class| class == b"DIMENSION_SCALE"))
}

/// Whether the scale is a netCDF dimension alone, whose values mean nothing.
pub(crate) fn has_no_values(container: &dyn Container, node: NodeId) -> Result<bool> {
    const MARK: &[u8] = b"This is a netCDF dimension but not a netCDF variable";
    let name = text(container, node, b"NAME")?;
    Ok(name.is_some_and(|name| name.starts_with(MARK)))
}

/// The scale of each dimension, as `DIMENSION_LIST` says.
pub(crate) fn listed(container: &dyn Container, node: NodeId) -> Result<Vec<Option<NodeId>>> {
    targets(container, node, b"DIMENSION_LIST")
}

/// The scale of one dimension of an array, as [`listed`]; `None` also where that leads nowhere.
pub(crate) fn listed_at(
    container: &dyn Container,
    node: NodeId,
    axis: usize,
) -> Result<Option<NodeId>> {
    target_at(container, node, b"DIMENSION_LIST", axis)
}

/// The scale of each of `rank` dimensions of an array in the group at path `group`, as netCDF's
/// numbers say; `None` without such numbers.
pub(crate) fn numbered(
    container: &dyn Container,
    node: NodeId,
    rank: usize,
    group: &[u8],
) -> Result<Option<Vec<Option<NodeId>>>> {
    let numbers = integers(container, node, b"_Netcdf4Coordinates")?;
    let Some(numbers) = numbers.filter(|numbers| numbers.len() == rank) else {
        return Ok(None);
    };
    let groups = groups_down_to(container, group)?;
    let nearest = |&number| {
        let mut nearest = groups.iter().rev();
        let found = |&group| scale_of(container, group, number).transpose();
        nearest.find_map(found).transpose()
    };
    numbers.iter().map(nearest).collect::<Result<_>>().map(Some)
}

/// The groups on the way to the one at `path`, from the root on.
pub(crate) fn groups_down_to(container: &dyn Container, path: &[u8]) -> Result<Vec<NodeId>> {
    let mut groups = vec![container.root()];
    let names = path.split(|&byte| byte == b'/');
    let names = names.filter(|name| !name.is_empty());
    for name in names {
        let group = groups.last().copied().unwrap_or(container.root());
        let link = container.link(group, name)?;
        match link.map(|link| link.target) {
            Some(LinkTarget::Hard(node)) => groups.push(node),
            _ => break,
        }
    }
    Ok(groups)
}

/// The scale of that number in a group. One that cannot be read may be it, if no other is.
fn scale_of(container: &dyn Container, group: NodeId, number: i128) -> Result<Option<NodeId>> {
    let mut links = container.links(group)?;
    let mut unread = Ok(None);
    for _ in 0..limits::NDL_SCALES {
        let Some(link) = links.next()? else {
            break;
        };
        let LinkTarget::Hard(node) = link.target else {
            continue;
        };
        match has_number(container, node, number) {
            Ok(true) => return Ok(Some(node)),
            Ok(false) => {}
            Err(error) => unread = unread.and(Err(error)),
        }
    }
    unread
}

/// Whether an object is the scale of that number.
fn has_number(container: &dyn Container, node: NodeId, number: i128) -> Result<bool> {
    if !matches!(container.node(node)?.kind, NodeKind::Array(_)) {
        return Ok(false);
    }
    let own = integers(container, node, b"_Netcdf4Dimid")?;
    Ok(own.as_deref() == Some(&[number]) && is_scale(container, node)?)
}

/// Finds the path of an object, names as in the file: few objects need it.
pub(crate) type FindPath<'a> = dyn Fn() -> Result<Vec<u8>> + 'a;

/// The last name of a path.
pub(crate) fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// The path of the group that holds what is at `path`.
pub(crate) fn group_of(path: &[u8]) -> &[u8] {
    &path[..path.len() - last_name(path).len()]
}

/// The scale of each of `rank` dimensions: as its list says, or, of a scale, as that is one.
///
/// # Errors
/// Fails if they cannot be found out now.
pub(crate) fn scales(
    container: &dyn Container,
    node: NodeId,
    rank: usize,
    path: &FindPath<'_>,
    is_scale: bool,
) -> Result<Vec<Option<NodeId>>> {
    let mut scales = listed(container, node)?;
    scales.resize(rank, None);
    if scales.iter().any(Option::is_some) || !is_scale {
        return Ok(scales);
    }
    if rank == 1 {
        return Ok(vec![Some(node)]);
    }
    let numbered = numbered(container, node, rank, group_of(&path()?))?;
    Ok(numbered.unwrap_or(scales))
}

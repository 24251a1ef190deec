//! Dimension scales: arrays that describe the dimensions of other arrays.
//!
//! HDF5 (H5DS): a scale is an array whose attribute `CLASS` is `DIMENSION_SCALE`. The attribute
//! `DIMENSION_LIST` of an array has references to the scales of each dimension; only the first
//! scale of a dimension counts.
//!
//! netCDF-4 adds numbers: `_Netcdf4Dimid` of a scale, and `_Netcdf4Coordinates` of a coordinate
//! variable with several dimensions, which lists their numbers. A number is looked up in the
//! variable's own group first, then in the parent groups. ASDF does not have dimension scales.

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::{
    attribute_integers, attribute_text, reference_target_at, reference_targets,
};
use h5fs_reader::model::{Container, LinkTarget, NodeId, NodeKind};

use crate::limits;

/// The prefix that netCDF adds to the name of a variable which has the name of a dimension but is
/// not its coordinate.
pub const NON_COORDINATE_PREFIX: &[u8] = b"_nc4_non_coord_";

/// Returns whether the array is a dimension scale.
///
/// # Errors
/// Fails if the attribute `CLASS` cannot be read. The other functions of this module fail if the
/// attributes that they need cannot be read.
pub fn is_scale(container: &dyn Container, node: NodeId) -> Result<bool> {
    let class = attribute_text(container, node, b"CLASS")?;
    Ok(class.is_some_and(|class| class == b"DIMENSION_SCALE"))
}

/// Returns whether the scale is only a netCDF dimension, so that its values are meaningless.
pub fn is_only_dimension(container: &dyn Container, node: NodeId) -> Result<bool> {
    const MARK: &[u8] = b"This is a netCDF dimension but not a netCDF variable";
    let name = attribute_text(container, node, b"NAME")?;
    Ok(name.is_some_and(|name| name.starts_with(MARK)))
}

/// Returns the dimension scale of each dimension that the attribute `DIMENSION_LIST` describes;
/// `None` for a dimension without a scale.
pub fn scales_from_list(container: &dyn Container, node: NodeId) -> Result<Vec<Option<NodeId>>> {
    reference_targets(container, node, b"DIMENSION_LIST")
}

/// Returns the dimension scale of the dimension `axis` of an array, from the attribute
/// `DIMENSION_LIST`. Returns `None` if the dimension does not have a scale, or if the reference to
/// it is null or dangling.
pub fn scale_from_list(
    container: &dyn Container,
    node: NodeId,
    axis: usize,
) -> Result<Option<NodeId>> {
    reference_target_at(container, node, b"DIMENSION_LIST", axis)
}

/// Returns the scales of the `rank` dimensions of an array, found by the dimension numbers in its
/// `_Netcdf4Coordinates`. The array is in the group at path `group`. Returns `None` if the
/// attribute is absent, or does not have `rank` numbers.
pub fn scales_from_dimension_ids(
    container: &dyn Container,
    node: NodeId,
    rank: usize,
    group: &[u8],
) -> Result<Option<Vec<Option<NodeId>>>> {
    let numbers = attribute_integers(container, node, b"_Netcdf4Coordinates")?;
    let Some(numbers) = numbers.filter(|numbers| numbers.len() == rank) else {
        return Ok(None);
    };
    let groups = ancestor_groups(container, group)?;
    let nearest = |&number| {
        let mut nearest = groups.iter().rev();
        let found = |&group| find_scale_by_id(container, group, number).transpose();
        nearest.find_map(found).transpose()
    };
    numbers.iter().map(nearest).collect::<Result<_>>().map(Some)
}

/// Returns the groups from the root down to the group at `path`.
pub fn ancestor_groups(container: &dyn Container, path: &[u8]) -> Result<Vec<NodeId>> {
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

/// Finds the scale in a group whose `_Netcdf4Dimid` is `number`. If no scale matches, returns the
/// error of a member that could not be read, because that member may be the scale.
fn find_scale_by_id(
    container: &dyn Container,
    group: NodeId,
    number: i128,
) -> Result<Option<NodeId>> {
    let mut links = container.links(group)?;
    let mut unread = Ok(None);
    for _ in 0..limits::NDL_SCALES {
        let Some(link) = links.next()? else {
            break;
        };
        let LinkTarget::Hard(node) = link.target else {
            continue;
        };
        match has_dimension_id(container, node, number) {
            Ok(true) => return Ok(Some(node)),
            Ok(false) => {}
            Err(error) => unread = unread.and(Err(error)),
        }
    }
    unread
}

/// Returns whether an object is a dimension scale whose `_Netcdf4Dimid` is `number`.
fn has_dimension_id(container: &dyn Container, node: NodeId, number: i128) -> Result<bool> {
    if !matches!(container.node(node)?.kind, NodeKind::Array(_)) {
        return Ok(false);
    }
    let own = attribute_integers(container, node, b"_Netcdf4Dimid")?;
    Ok(own.as_deref() == Some(&[number]) && is_scale(container, node)?)
}

/// A function that finds the path of an object, with names as in the file. It is called only if the
/// path is needed.
pub type PathFinder<'a> = dyn Fn() -> Result<Vec<u8>> + 'a;

/// Returns the part of a path after the last `/`.
pub fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Returns the path of the group that contains the object at `path`.
pub fn parent_path(path: &[u8]) -> &[u8] {
    &path[..path.len() - last_name(path).len()]
}

/// Returns the dimension scale of each of the `rank` dimensions of an array. The scales come from
/// its `DIMENSION_LIST`. If this names none and the array is itself a scale, the array describes
/// its only dimension, or its `_Netcdf4Coordinates` lists the scales of several dimensions.
///
/// # Errors
/// Fails if the attributes cannot be read.
pub fn scales(
    container: &dyn Container,
    node: NodeId,
    rank: usize,
    path: &PathFinder<'_>,
    is_scale: bool,
) -> Result<Vec<Option<NodeId>>> {
    let mut scales = scales_from_list(container, node)?;
    scales.resize(rank, None);
    if scales.iter().any(Option::is_some) || !is_scale {
        return Ok(scales);
    }
    if rank == 1 {
        return Ok(vec![Some(node)]);
    }
    let numbered = scales_from_dimension_ids(container, node, rank, parent_path(&path()?))?;
    Ok(numbered.unwrap_or(scales))
}

//! Dimension coordinates: which arrays are some, and which stand for the dimensions of an array.
//!
//! HDF5 dimension scales (H5DS): a scale is an array of one dimension whose attribute `CLASS` is
//! `DIMENSION_SCALE`; an array's `DIMENSION_LIST` holds for each dimension references to its
//! scales, of which the first counts. netCDF-4 adds numbers: `_Netcdf4Dimid` of a scale, and
//! `_Netcdf4Coordinates`, the numbers of the dimensions of a coordinate variable with several; they
//! are sought in the variable's own group first, then in those above. ASDF has none of it.

use crate::error::{Result, if_lasting};
use crate::limits;
use crate::model::attribute_value::{integers, targets, text};
use crate::model::{Array, Container, LinkTarget, NodeId, NodeKind};
use crate::view::ndl::source::Source;

/// A dimension that has a coordinate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Coordinate {
    pub(super) node: NodeId,
    /// Its path, bytes as in the file.
    pub(super) path: Vec<u8>,
    /// Whether it has no bound: the language then says nothing of the present size.
    pub(super) is_unlimited: bool,
}

/// Whether the array is a dimension coordinate that the language can express.
///
/// # Errors
/// As that cannot be found out now; so of all that follow.
pub(super) fn is_coordinate(
    container: &dyn Container,
    node: NodeId,
    array: &Array,
) -> Result<bool> {
    let [size] = array.shape.dims() else {
        return Ok(false);
    };
    if *size == 0 && !is_unlimited(array) {
        return Ok(false);
    }
    let class = text(container, node, b"CLASS")?;
    Ok(class.is_some_and(|class| class == b"DIMENSION_SCALE"))
}

/// Whether the first dimension has no bound.
pub(super) fn is_unlimited(array: &Array) -> bool {
    array.shape.max().first() == Some(&None)
}

/// Whether the scale is a netCDF dimension alone, whose values mean nothing.
pub(super) fn has_no_values(container: &dyn Container, node: NodeId) -> Result<bool> {
    const MARK: &[u8] = b"This is a netCDF dimension but not a netCDF variable";
    let name = text(container, node, b"NAME")?;
    Ok(name.is_some_and(|name| name.starts_with(MARK)))
}

/// The coordinate of each dimension of an array in the group at path `group`, as far as there are
/// any.
pub(super) fn coordinates(
    source: &Source,
    node: NodeId,
    array: &Array,
    group: &[u8],
) -> Result<Vec<Option<Coordinate>>> {
    let dims = array.shape.dims();
    let mut found = by_list(source, node, dims)?;
    if found.iter().all(Option::is_none) {
        found = by_number(source, node, dims, group)?.unwrap_or(found);
    }
    Ok(found)
}

/// As `DIMENSION_LIST` says.
fn by_list(source: &Source, node: NodeId, dims: &[u64]) -> Result<Vec<Option<Coordinate>>> {
    let scales = targets(&*source.container, node, b"DIMENSION_LIST")?;
    let scales = scales.into_iter().zip(dims);
    scales
        .map(|(scale, &extent)| match scale {
            Some(scale) => coordinate(source, scale, extent),
            None => Ok(None),
        })
        .collect()
}

/// The array at `node`, if it can stand for a dimension of that extent.
fn coordinate(source: &Source, node: NodeId, extent: u64) -> Result<Option<Coordinate>> {
    let Some(found) = if_lasting(source.container.node(node))? else {
        return Ok(None);
    };
    let NodeKind::Array(array) = &found.kind else {
        return Ok(None);
    };
    let is_unlimited = is_unlimited(array);
    let size = array.shape.dims().first().copied();
    // In netCDF a variable may not yet have grown to its unlimited dimension.
    let fits = size == Some(extent) || is_unlimited;
    if !fits || !is_coordinate(&*source.container, node, array)? {
        return Ok(None);
    }
    let path = (source.paths)(node)?;
    Ok(path.map(|path| Coordinate {
        node,
        path,
        is_unlimited,
    }))
}

/// As netCDF's numbers say.
fn by_number(
    source: &Source,
    node: NodeId,
    dims: &[u64],
    group: &[u8],
) -> Result<Option<Vec<Option<Coordinate>>>> {
    let numbers = integers(&*source.container, node, b"_Netcdf4Coordinates")?;
    let Some(numbers) = numbers.filter(|numbers| numbers.len() == dims.len()) else {
        return Ok(None);
    };
    let groups = groups_down_to(&*source.container, group)?;
    let nearest = |(&number, &extent)| {
        let mut nearest = groups.iter().rev();
        let found = |&group| scale_of(source, group, number, extent).transpose();
        nearest.find_map(found).transpose()
    };
    numbers
        .iter()
        .zip(dims)
        .map(nearest)
        .collect::<Result<_>>()
        .map(Some)
}

/// The groups on the way to the one at `path`, from the root on.
fn groups_down_to(container: &dyn Container, path: &[u8]) -> Result<Vec<NodeId>> {
    let mut groups = vec![container.root()];
    let names = path.split(|&byte| byte == b'/');
    let names = names.filter(|name| !name.is_empty());
    for name in names {
        let group = groups.last().copied().unwrap_or(container.root());
        let link = if_lasting(container.link(group, name))?.flatten();
        match link.map(|link| link.target) {
            Some(LinkTarget::Hard(node)) => groups.push(node),
            _ => break,
        }
    }
    Ok(groups)
}

/// The scale of that number in a group.
fn scale_of(
    source: &Source,
    group: NodeId,
    number: i128,
    extent: u64,
) -> Result<Option<Coordinate>> {
    let container = &*source.container;
    let Some(mut links) = if_lasting(container.links(group))? else {
        return Ok(None);
    };
    for _ in 0..limits::NDL_SCALES {
        let Some(link) = if_lasting(links.next())?.flatten() else {
            break;
        };
        let LinkTarget::Hard(node) = link.target else {
            continue;
        };
        let Some(found) = if_lasting(container.node(node))? else {
            continue;
        };
        let is_line =
            matches!(&found.kind, NodeKind::Array(array) if array.shape.dims().len() == 1);
        if is_line && integers(container, node, b"_Netcdf4Dimid")?.as_deref() == Some(&[number]) {
            return coordinate(source, node, extent);
        }
    }
    Ok(None)
}

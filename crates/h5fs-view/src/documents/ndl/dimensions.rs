//! Dimension coordinates of NDL: which dimension scales can be coordinates, and which coordinates
//! an array's dimensions have.

use h5fs_conventions::dimensions::{is_scale, scales_from_dimension_ids, scales_from_list};
use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::{Array, Container, NodeId, NodeKind};

use crate::documents::ndl::source::NdlSource;

/// The dimension coordinate of an array's dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NdlCoordinate {
    pub(super) node: NodeId,
    /// The path of the coordinate array, with names as in the file.
    pub(super) path: Vec<u8>,
    /// Whether the dimension is unlimited. The shape in the document then does not include its
    /// current size.
    pub(super) is_unlimited: bool,
}

/// Returns whether the array is a dimension coordinate that NDL can express.
///
/// # Errors
/// Fails if an attribute or a node cannot be read. The other functions of this module fail in the
/// same way.
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
    is_scale(container, node)
}

/// Returns whether the first dimension of the array is unlimited.
pub(super) fn is_unlimited(array: &Array) -> bool {
    array.shape.max().first() == Some(&None)
}

/// Returns the coordinate of each dimension of an array; `None` for a dimension without a
/// coordinate. `group` is the path of the group that contains the array.
pub(super) fn coordinates(
    source: &NdlSource,
    node: NodeId,
    array: &Array,
    group: &[u8],
) -> Result<Vec<Option<NdlCoordinate>>> {
    let container = &*source.container;
    let dims = array.shape.dims();
    let of = |scales: Vec<Option<NodeId>>| {
        let scales = scales.into_iter().zip(dims);
        let coordinates = scales.map(|(scale, &extent)| match scale {
            Some(scale) => coordinate(source, scale, extent),
            None => Ok(None),
        });
        coordinates.collect::<Result<Vec<_>>>()
    };
    let found = of(scales_from_list(container, node)?)?;
    if found.iter().any(Option::is_some) {
        return Ok(found);
    }
    match scales_from_dimension_ids(container, node, dims.len(), group)? {
        Some(scales) => of(scales),
        None => Ok(found),
    }
}

/// Returns the array at `node` as a dimension coordinate; `None` if it cannot be the coordinate of
/// a dimension of length `extent`.
fn coordinate(source: &NdlSource, node: NodeId, extent: u64) -> Result<Option<NdlCoordinate>> {
    let Some(found) = ignore_permanent(source.container.node(node))? else {
        return Ok(None);
    };
    let NodeKind::Array(array) = &found.kind else {
        return Ok(None);
    };
    let is_unlimited = is_unlimited(array);
    let size = array.shape.dims().first().copied();
    // In netCDF, a variable may be shorter than its unlimited dimension.
    let fits = size == Some(extent) || is_unlimited;
    if !fits || !is_coordinate(&*source.container, node, array)? {
        return Ok(None);
    }
    let path = (source.paths)(node)?;
    Ok(path.map(|path| NdlCoordinate {
        node,
        path,
        is_unlimited,
    }))
}

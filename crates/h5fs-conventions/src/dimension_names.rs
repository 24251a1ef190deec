//! The `dimension_names` in the Zarr metadata document of an array. They come from dimension
//! scales, labels, or the lengths of dimensions.

use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::attribute_value::attribute_texts;
use h5fs_reader::model::{Container, NodeId};

use crate::dimensions;

/// The dimension scale of each dimension of an array, and the label of each dimension.
type ScalesAndLabels = (Vec<Option<NodeId>>, Vec<Vec<u8>>);

/// Returns the dimension scales and the labels of the dimensions of the array `node`. `path` finds
/// the path of an object.
///
/// # Errors
/// Fails if the attributes cannot be read.
pub fn dimension_scales_and_labels(
    container: &dyn Container,
    node: NodeId,
    rank: usize,
    path: &dyn Fn(NodeId) -> Result<Option<Vec<u8>>>,
) -> Result<ScalesAndLabels> {
    let own_path = || Ok(path(node)?.unwrap_or_default());
    let is_scale = dimensions::is_scale(container, node)?;
    let scales = dimensions::scales(container, node, rank, &own_path, is_scale)?;
    let labels = attribute_texts(container, node, b"DIMENSION_LABELS")?;
    Ok((scales, labels.unwrap_or_default()))
}

/// Returns the names of the dimensions of an array of shape `dims` in the Zarr store. The first
/// `rank` dimensions are those of the array `node` in the file. Further dimensions belong to its
/// elements.
///
/// # Errors
/// Fails as [`dimension_scales_and_labels`] does.
pub fn store_dimension_names(
    container: &dyn Container,
    node: NodeId,
    rank: usize,
    dims: &[u64],
    path: &dyn Fn(NodeId) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<Vec<u8>>> {
    let (scales, labels) = dimension_scales_and_labels(container, node, rank, path)?;
    let mut names: Vec<Vec<u8>> = Vec::new();
    for (axis, dim) in dims.iter().enumerate() {
        let scale = scales.get(axis).copied().flatten();
        let of_scale = scale
            .map(|scale| ignore_permanent(path(scale)))
            .transpose()?;
        let of_scale = of_scale.flatten().flatten();
        let of_scale = of_scale.map(|path| dimensions::last_name(&path).to_vec());
        let label = labels.get(axis).filter(|label| !label.is_empty());
        let name = of_scale.or_else(|| label.cloned());
        let name = name.filter(|name| !name.is_empty());
        // The name depends only on the length, so that two dimensions with the same name have the
        // same length.
        let name = name.unwrap_or_else(|| format!("phony_dim_{dim}").into_bytes());
        names.push(unique_name(&name, &names));
    }
    Ok(names)
}

/// Returns `name`, followed by a number if `others` already contains the name. Readers of Zarr
/// stores reject two dimensions of an array with the same name.
fn unique_name(name: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let numbers = (1..).map(|number: usize| [name, format!("_{number}").as_bytes()].concat());
    let mut all = std::iter::once(name.to_vec()).chain(numbers);
    all.find(|name| !others.contains(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_are_numbered() {
        let mut names = Vec::new();
        for name in ["x", "y", "x", "x_1", "x"] {
            names.push(unique_name(name.as_bytes(), &names));
        }
        let names = names.iter().map(|name| std::str::from_utf8(name).unwrap());
        assert!(names.eq(["x", "y", "x_1", "x_1_1", "x_2"]));
    }
}

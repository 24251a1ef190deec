//! The orientation of a picture on a page, where north should be at the top.

use std::sync::Arc;

use h5fs_conventions::dimensions::{PathFinder, is_scale, scales};
use h5fs_conventions::stored_type::StoredType;
use h5fs_reader::array::{Engine, Reader};
use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::{Array, Container, Node, NodeId};
use h5fs_reader::wire::to_usize;

use crate::limits;
use crate::pictures::appearance::Appearance;
use crate::pictures::picture_style::read_appearance;

/// Returns the appearance of an array on its page, as its attributes define it. If the rows are
/// ascending latitudes, the picture is flipped so that north is at the top (CF 1.11, section 4.1).
///
/// # Errors
/// Fails if the attributes or the latitudes cannot be read.
pub fn page_appearance(
    container: &dyn Container,
    engine: &Arc<Engine>,
    node: &Node,
    path: &PathFinder<'_>,
) -> Result<Appearance> {
    let mut appearance = read_appearance(container, node)?;
    let Some(array) = node.array().filter(|_| !appearance.is_image) else {
        return Ok(appearance);
    };
    let dims = array.shape.dims();
    let colours = appearance.interlace.map_or(0, |_| 1);
    let Some(rows) = dims.len().checked_sub(2 + colours) else {
        return Ok(appearance);
    };
    let own = is_scale(container, node.id)?;
    let scales = scales(container, node.id, dims.len(), path, own)?;
    if let Some(Some(scale)) = scales.get(rows)
        && *scale != node.id
        && is_latitude(container, *scale)?
    {
        appearance.origin.is_bottom = is_ascending(container, engine, *scale)?;
    }
    Ok(appearance)
}

fn is_latitude(container: &dyn Container, scale: NodeId) -> Result<bool> {
    let units: [&[u8]; 6] = [
        b"degrees_north",
        b"degree_north",
        b"degree_N",
        b"degrees_N",
        b"degreeN",
        b"degreesN",
    ];
    let unit = attribute_text(container, scale, b"units")?;
    if unit.is_some_and(|unit| units.contains(&&*unit)) {
        return Ok(true);
    }
    let name = attribute_text(container, scale, b"standard_name")?;
    Ok(name.is_some_and(|name| name == b"latitude"))
}

/// Returns whether the last value of the array `scale` is greater than its first value. Returns
/// false for values that are not numbers in one dimension, or that are costly to read.
fn is_ascending(container: &dyn Container, engine: &Arc<Engine>, scale: NodeId) -> Result<bool> {
    let scale = container.node(scale)?;
    let is_small = |array: &&Arc<Array>| {
        let decoded = array.filtered_chunk().map_or(0, |(_, bytes)| bytes);
        decoded <= limits::HTML_DECODED
    };
    let Some(array) = scale.array().filter(is_small) else {
        return Ok(false);
    };
    let (&[count], Some(stored)) = (array.shape.dims(), StoredType::new(&array.datatype)) else {
        return Ok(false);
    };
    let reader = Reader::new(engine, Arc::clone(array))?;
    let size = u64::from(stored.size());
    let at = |index: u64| -> Result<f64> {
        let bytes = reader.read(index.saturating_mul(size), to_usize(size)?)?;
        Ok(stored.read_number(&bytes).as_f64())
    };
    Ok(count > 1 && at(count - 1)? > at(0)?)
}

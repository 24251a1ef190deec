//! The labels of the axes of a plot or a picture: a name, a unit and values.

use std::sync::Arc;

use h5fs_conventions::dimensions::{
    ancestor_groups, is_only_dimension, is_scale, last_name, parent_path, scales, scales_from_list,
};
use h5fs_conventions::stored_type::StoredType;
use h5fs_reader::array::Reader;
use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::{LinkTarget, NodeId, NodeKind};
use h5fs_reader::wire::to_usize;

use crate::cf::decoded;
use crate::cf::decoding::Decoding;
use crate::csv::fields::CellKind;
use crate::documents::html::object::PageObject;
use crate::limits;

/// A dimension of an array, as the axis of a plot or a picture.
#[derive(Default)]
pub(super) struct PageAxis {
    /// The name and unit of the dimension; empty if both are unknown.
    pub(super) label: Vec<u8>,
    /// The name of the dimension; empty if it is unknown.
    pub(super) name: Vec<u8>,
    /// The unit of the coordinate values; `None` for times, whose texts are dates.
    pub(super) unit: Option<Vec<u8>>,
    /// The coordinate values of the dimension; `None` if the page shows indices instead of
    /// coordinate values.
    scale: Option<AxisCoordinates>,
}

/// The array with the coordinate values of a dimension.
struct AxisCoordinates {
    node: NodeId,
    reader: Reader,
    stored: StoredType,
    /// The decoding of packed numbers and of times by the CF conventions.
    decoding: Option<Decoding>,
}

impl AxisCoordinates {
    /// Returns the text of the coordinate value at an index.
    fn text(&self, index: u64) -> Option<Vec<u8>> {
        let size = u64::from(self.stored.size());
        let offset = index.checked_mul(size)?;
        let element = self.reader.read(offset, to_usize(size).ok()?).ok()?;
        let mut out = Vec::new();
        match &self.decoding {
            None => self.stored.write_number(&element, &mut out),
            Some(decoding) => match decoding.write_number_text(&element, &mut out).ok()? {
                CellKind::Missing => out.extend_from_slice(b"missing"),
                CellKind::Unquoted | CellKind::Text => {}
            },
        }
        Some(out)
    }
}

impl PageAxis {
    /// Returns the array with the coordinate values of the dimension, if there is one.
    pub(super) fn coordinates(&self) -> Option<NodeId> {
        self.scale.as_ref().map(|scale| scale.node)
    }

    /// Returns the text of the coordinate value at an index. Without a coordinate value, returns
    /// the text of the index.
    pub(super) fn coordinate_text(&self, index: u64) -> Vec<u8> {
        let own = self.scale.as_ref().and_then(|scale| scale.text(index));
        own.unwrap_or_else(|| index.to_string().into_bytes())
    }
}

/// Returns the axes for the dimensions of the object's array. `dims` are the lengths of the
/// dimensions.
///
/// # Errors
/// Fails if the scales cannot be read.
pub(super) fn dimension_axes(object: &PageObject<'_>, dims: &[u64]) -> Result<Vec<PageAxis>> {
    let (container, node) = (&**object.container, object.node.id);
    let own = is_scale(container, node)?;
    let path = || Ok(object.path.to_vec());
    let scales = scales(container, node, dims.len(), &path, own)?;
    let scales = scales.into_iter().zip(dims);
    scales
        .map(
            |(scale, &length)| match scale.filter(|scale| *scale != node) {
                Some(scale) => scale_axis(object, scale, length),
                None => Ok(PageAxis::default()),
            },
        )
        .collect()
}

/// Returns the dimension scale of the object's array, which has one dimension. Returns `None` if
/// the array has no scale, or is itself the scale.
///
/// # Errors
/// Fails if the attributes cannot be read.
pub(super) fn line_scale(object: &PageObject<'_>) -> Result<Option<NodeId>> {
    let container = &**object.container;
    let scales = scales_from_list(container, object.node.id)?;
    let scale = scales.first().copied().flatten();
    Ok(scale.filter(|scale| *scale != object.node.id))
}

/// Returns the name and the unit of a dimension scale, such as `time [s]`.
///
/// # Errors
/// Fails if the attributes cannot be read.
pub(super) fn scale_label(object: &PageObject<'_>, scale: NodeId) -> Result<Vec<u8>> {
    Ok(join_unit(
        scale_name(object, scale)?,
        read_unit(object, scale)?,
    ))
}

/// Returns the name of a dimension scale.
///
/// # Errors
/// Fails as [`scale_label`] does.
pub(super) fn scale_name(object: &PageObject<'_>, scale: NodeId) -> Result<Vec<u8>> {
    let path = (object.paths)(scale)?.unwrap_or_default();
    Ok(last_name(&path).to_vec())
}

/// Returns the axis for a dimension of length `length`, whose coordinate values are in `scale`.
fn scale_axis(object: &PageObject<'_>, scale: NodeId, length: u64) -> Result<PageAxis> {
    let (name, unit) = (scale_name(object, scale)?, read_unit(object, scale)?);
    if is_only_dimension(&**object.container, scale)? {
        return Ok(PageAxis {
            label: join_unit(name.clone(), unit),
            name,
            ..PageAxis::default()
        });
    }
    let node = object.container.node(scale)?;
    let array = node.array().filter(|array| {
        let decoded = array.filtered_chunk().map_or(0, |(_, bytes)| bytes);
        *array.shape.dims() == [length] && decoded <= limits::HTML_DECODED
    });
    let path = || Ok((object.paths)(scale)?.unwrap_or_default());
    // If the decoding is unknown, the stored numbers would be misleading next to the decoded unit.
    let decoding = decoded::number_decoding(&**object.container, &node, &path).ok();
    let is_time = matches!(decoding, Some(Some(Decoding::Times(..))));
    let coordinates = array.zip(decoding).and_then(|(array, decoding)| {
        Some(AxisCoordinates {
            node: scale,
            reader: Reader::new(object.engine, Arc::clone(array)).ok()?,
            stored: StoredType::new(&array.datatype)?,
            decoding,
        })
    });
    // The unit of times is in the text of each time.
    let unit = unit.filter(|_| !is_time);
    Ok(PageAxis {
        label: join_unit(name.clone(), unit.clone()),
        name,
        unit,
        scale: coordinates,
    })
}

/// Returns the name and the unit of the values of the object's array.
///
/// # Errors
/// Fails if the attributes cannot be read.
pub(super) fn values_label(object: &PageObject<'_>) -> Result<Vec<u8>> {
    let (container, node) = (&**object.container, object.node.id);
    let name = match attribute_text(container, node, b"long_name")? {
        Some(name) => name,
        None => last_name(object.path).to_vec(),
    };
    Ok(join_unit(name, values_unit(object)?))
}

/// Returns the unit of the values of the object's array, if it is known.
///
/// # Errors
/// Fails if the attributes cannot be read.
pub(super) fn values_unit(object: &PageObject<'_>) -> Result<Option<Vec<u8>>> {
    match read_unit(object, object.node.id)? {
        None => unit_of_quantity(object),
        unit => Ok(unit),
    }
}

fn read_unit(object: &PageObject<'_>, node: NodeId) -> Result<Option<Vec<u8>>> {
    attribute_text(&**object.container, node, b"units")
}

/// Returns the scalar `unit` of the ASDF mapping that contains the ndarray, as in a quantity of
/// astropy; `None` if there is no such mapping or scalar.
fn unit_of_quantity(object: &PageObject<'_>) -> Result<Option<Vec<u8>>> {
    if object.container.asdf_extras().is_none() || last_name(object.path) != b"value" {
        return Ok(None);
    }
    let container = &**object.container;
    let groups = ancestor_groups(container, parent_path(object.path))?;
    let group = groups.last().copied().unwrap_or(container.root());
    let unit = match container.link(group, b"unit")?.map(|link| link.target) {
        Some(LinkTarget::Hard(unit)) => unit,
        Some(LinkTarget::Damaged(error)) => return Err(error),
        _ => return Ok(None),
    };
    let unit = container.node(unit)?;
    Ok(match &unit.kind {
        NodeKind::Scalar(scalar) => Some(scalar.text.clone().into_bytes()),
        _ => None,
    })
}

/// Joins a name and a unit: `temperature [K]`.
fn join_unit(name: Vec<u8>, unit: Option<Vec<u8>>) -> Vec<u8> {
    match unit {
        Some(unit) if !name.ends_with(b"]") => [&name[..], b" [", &unit, b"]"].concat(),
        _ => name,
    }
}

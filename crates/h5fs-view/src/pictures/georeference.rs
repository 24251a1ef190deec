//! Where the pixels of a picture are on the earth, if its rows and columns are a regular grid.
//!
//! The coordinates of rows and columns are those of the CF conventions (sections 4.1, 4.2 and 5.6):
//! latitude and longitude, or the coordinates of a projection. The variable that `grid_mapping`
//! names has the coordinate reference system in `crs_wkt`, and GDAL's `GeoTransform` if there are no
//! coordinates.

use std::sync::Arc;

use h5fs_conventions::attributes::read_packing;
use h5fs_conventions::dimensions::{
    ancestor_groups, is_only_dimension, parent_path, scale_from_list,
};
use h5fs_conventions::packing::Packing;
use h5fs_conventions::stored_type::{ExactNumber, StoredType};
use h5fs_reader::array::{CancelToken, Engine, Reader};
use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::selection::AxisPositions;
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Container, LinkTarget, Node, NodeId};

use crate::elements::Elements;
use crate::limits;

/// Where the pixels of a picture are on the earth.
#[derive(Debug, Clone, PartialEq)]
pub struct GeoReference {
    /// The positions of the columns.
    pub columns: GridAxis,
    /// The positions of the rows.
    pub rows: GridAxis,
    /// The coordinate reference system of the positions.
    pub system: ReferenceSystem,
    /// The value of missing pixels, as text.
    pub missing: Option<Vec<u8>>,
}

/// The positions of the rows or columns of a regular grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridAxis {
    /// The position of the middle of the first row or column.
    pub first: f64,
    /// The distance from one row or column to the next.
    pub step: f64,
}

/// A coordinate reference system, by its number in the EPSG registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceSystem {
    /// Latitude and longitude in degrees.
    Geographic(u16),
    /// Coordinates of a projection in metres.
    Projected(u16),
    /// A system without a number.
    Unknown,
}

/// The number of the World Geodetic System 1984.
const WGS_84: u16 = 4326;

/// Units of latitude and of longitude (CF conventions, sections 4.1 and 4.2).
const NORTH: [&[u8]; 6] = [
    b"degrees_north",
    b"degree_north",
    b"degree_N",
    b"degrees_N",
    b"degreeN",
    b"degreesN",
];
const EAST: [&[u8]; 6] = [
    b"degrees_east",
    b"degree_east",
    b"degree_E",
    b"degrees_E",
    b"degreeE",
    b"degreesE",
];

/// Maximum distance of a coordinate from its position in the grid, as a part of the step.
const IRREGULARITY: f64 = 0.002;

/// What a coordinate measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AxisKind {
    Latitude,
    Longitude,
    /// A coordinate of a projection, in metres.
    Projection,
}

impl GeoReference {
    /// Returns whether the rows and the columns of the array `node` have dimension scales, so that
    /// they may be a grid.
    ///
    /// # Errors
    /// Fails if the attributes cannot be read.
    pub fn may_exist(container: &dyn Container, node: &Node) -> Result<bool> {
        Ok(grid_scales(container, node)?.is_some())
    }

    /// Reads the grid of the part that `selector` picks from the array `node` at `path`. An empty
    /// selector picks the whole array. Returns `None` if rows and columns are no regular grid.
    ///
    /// # Errors
    /// Fails if a coordinate or an attribute cannot be read.
    pub fn read(
        (container, engine): (&dyn Container, &Arc<Engine>),
        node: &Node,
        path: &[u8],
        selector: &[u8],
        cancel: &CancelToken,
    ) -> Result<Option<Self>> {
        let (Some(array), Some(scales)) = (node.array(), grid_scales(container, node)?) else {
            return Ok(None);
        };
        let dims = array.shape.dims();
        let parts =
            [dims.len() - 2, dims.len() - 1].map(|axis| AxisPart::new(selector, dims, axis));
        let [Some(rows), Some(columns)] = parts else {
            return Ok(None);
        };
        let mapping = grid_mapping(container, node.id, path)?;
        let axes = [
            read_axis(container, engine, scales[0], cancel)?,
            read_axis(container, engine, scales[1], cancel)?,
        ];
        let (own_rows, own_columns, kind) = match axes {
            [
                Some((rows, AxisKind::Latitude)),
                Some((columns, AxisKind::Longitude)),
            ] => (rows, columns, AxisKind::Latitude),
            [
                Some((rows, AxisKind::Projection)),
                Some((columns, AxisKind::Projection)),
            ] => (rows, columns, AxisKind::Projection),
            _ => match transform_of_mapping(container, mapping, &scales)? {
                Some((rows, columns)) => (rows, columns, AxisKind::Projection),
                None => return Ok(None),
            },
        };
        Ok(Some(GeoReference {
            columns: columns.apply(own_columns),
            rows: rows.apply(own_rows),
            system: reference_system(container, mapping, kind)?,
            missing: missing_value(container, node)?,
        }))
    }
}

/// The rows or columns that a selector picks.
struct AxisPart {
    first: f64,
    stride: f64,
}

impl AxisPart {
    /// Returns the part of dimension `axis` of an array with dimensions `dims`. Returns `None` if
    /// the picked positions are not at equal distances.
    fn new(selector: &[u8], dims: &[u64], axis: usize) -> Option<Self> {
        if selector.is_empty() {
            return Some(AxisPart {
                first: 0.0,
                stride: 1.0,
            });
        }
        let positions = Selector::parse(selector)?.positions(dims, axis).ok()?;
        let kept = positions.axis?;
        let AxisPositions::Strided(stride) = kept.positions else {
            return None;
        };
        Some(AxisPart {
            first: positions.first as f64,
            stride: if kept.count > 1 { stride as f64 } else { 1.0 },
        })
    }

    fn apply(&self, whole: GridAxis) -> GridAxis {
        GridAxis {
            first: whole.first + whole.step * self.first,
            step: whole.step * self.stride,
        }
    }
}

/// Returns the dimension scales of rows and columns, which must differ.
fn grid_scales(container: &dyn Container, node: &Node) -> Result<Option<[NodeId; 2]>> {
    let rank = node.array().map_or(0, |array| array.shape.dims().len());
    if rank < 2 {
        return Ok(None);
    }
    let rows = scale_from_list(container, node.id, rank - 2)?;
    let columns = scale_from_list(container, node.id, rank - 1)?;
    let both = rows.zip(columns).filter(|(rows, columns)| rows != columns);
    Ok(both.map(|(rows, columns)| [rows, columns]))
}

/// Reads the coordinate `scale`. Returns `None` if it is no coordinate of a grid, or if its values
/// are not at equal distances.
fn read_axis(
    container: &dyn Container,
    engine: &Arc<Engine>,
    scale: NodeId,
    cancel: &CancelToken,
) -> Result<Option<(GridAxis, AxisKind)>> {
    let Some((kind, metres)) = axis_kind(container, scale)? else {
        return Ok(None);
    };
    if is_only_dimension(container, scale)? {
        return Ok(None);
    }
    let values = read_values(container, engine, scale, cancel)?;
    let axis = values.as_deref().and_then(regular_axis);
    Ok(axis.map(|axis| {
        let axis = GridAxis {
            first: axis.first * metres,
            step: axis.step * metres,
        };
        (axis, kind)
    }))
}

/// Returns what the coordinate `scale` measures, and the factor that gives its values in degrees or
/// metres.
fn axis_kind(container: &dyn Container, scale: NodeId) -> Result<Option<(AxisKind, f64)>> {
    let units = attribute_text(container, scale, b"units")?.unwrap_or_default();
    let name = attribute_text(container, scale, b"standard_name")?;
    let kind = match name.as_deref() {
        Some(b"latitude") => AxisKind::Latitude,
        Some(b"longitude") => AxisKind::Longitude,
        Some(b"projection_x_coordinate" | b"projection_y_coordinate") => AxisKind::Projection,
        Some(_) => return Ok(None),
        None if NORTH.contains(&&*units) => AxisKind::Latitude,
        None if EAST.contains(&&*units) => AxisKind::Longitude,
        None => return Ok(None),
    };
    let factor = match (kind, &*units) {
        (AxisKind::Latitude | AxisKind::Longitude, _) => Some(1.0),
        (AxisKind::Projection, b"m" | b"meter" | b"metre" | b"meters" | b"metres") => Some(1.0),
        (AxisKind::Projection, b"km") => Some(1000.0),
        (AxisKind::Projection, _) => None,
    };
    Ok(factor.map(|factor| (kind, factor)))
}

/// Reads the values of a one-dimensional coordinate. Returns `None` for too many values, and for
/// values that are no numbers.
fn read_values(
    container: &dyn Container,
    engine: &Arc<Engine>,
    scale: NodeId,
    cancel: &CancelToken,
) -> Result<Option<Vec<f64>>> {
    let node = container.node(scale)?;
    let Some(array) = node.array() else {
        return Ok(None);
    };
    let &[count] = array.shape.dims() else {
        return Ok(None);
    };
    let Some(stored) = StoredType::new(&array.datatype).filter(|_| count <= limits::GRID_AXIS)
    else {
        return Ok(None);
    };
    array.storage.as_ref().map_err(Clone::clone)?;
    let size = usize::from(stored.size());
    let packing = Packing::new(stored, &read_packing(container, scale)?);
    let elements = Elements::from_reader(Arc::new(Reader::new(engine, Arc::clone(array))?))?;
    let bytes = elements.read(0, count, cancel)?;
    let numbers = bytes.chunks_exact(size);
    Ok(numbers
        .map(|element| packing.decode_number(element).map(ExactNumber::as_f64))
        .collect())
}

/// Returns the axis on which `values` are at equal distances.
fn regular_axis(values: &[f64]) -> Option<GridAxis> {
    let (first, last) = (*values.first()?, *values.last()?);
    let step = (last - first) / (values.len().checked_sub(1)? as f64);
    let is_regular = |(number, value): (usize, &f64)| {
        (value - (first + step * number as f64)).abs() <= IRREGULARITY * step.abs()
    };
    let is_grid = step.is_finite() && step != 0.0 && values.iter().enumerate().all(is_regular);
    is_grid.then_some(GridAxis { first, step })
}

/// Returns the variable that `grid_mapping` names. It is in the group of the variable at `path`, or
/// in a group above.
fn grid_mapping(container: &dyn Container, node: NodeId, path: &[u8]) -> Result<Option<NodeId>> {
    let Some(text) = attribute_text(container, node, b"grid_mapping")? else {
        return Ok(None);
    };
    let name = text.split(|byte| b": ".contains(byte)).next();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    for &group in ancestor_groups(container, parent_path(path))?.iter().rev() {
        let link = ignore_permanent(container.link(group, name))?.flatten();
        if let Some(LinkTarget::Hard(found)) = link.map(|link| link.target) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns rows and columns of GDAL's `GeoTransform`, if the scales have no values.
fn transform_of_mapping(
    container: &dyn Container,
    mapping: Option<NodeId>,
    scales: &[NodeId; 2],
) -> Result<Option<(GridAxis, GridAxis)>> {
    let Some(mapping) = mapping else {
        return Ok(None);
    };
    for &scale in scales {
        if !is_only_dimension(container, scale)? {
            return Ok(None);
        }
    }
    let text = attribute_text(container, mapping, b"GeoTransform")?.unwrap_or_default();
    Ok(parse_transform(&text))
}

/// Parses `X DX 0 Y 0 DY`, where X and Y are the corner of the first pixel.
fn parse_transform(text: &[u8]) -> Option<(GridAxis, GridAxis)> {
    let text = str::from_utf8(text).ok()?;
    let numbers: Vec<f64> = text
        .split_whitespace()
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()
        .ok()?;
    let &[x, dx, 0.0, y, 0.0, dy] = &*numbers else {
        return None;
    };
    let axis = |corner: f64, step: f64| GridAxis {
        first: corner + step / 2.0,
        step,
    };
    Some((axis(y, dy), axis(x, dx)))
}

fn reference_system(
    container: &dyn Container,
    mapping: Option<NodeId>,
    kind: AxisKind,
) -> Result<ReferenceSystem> {
    let is_projection = kind == AxisKind::Projection;
    let Some(mapping) = mapping else {
        return Ok(if is_projection {
            ReferenceSystem::Unknown
        } else {
            ReferenceSystem::Geographic(WGS_84)
        });
    };
    for name in [&b"crs_wkt"[..], b"spatial_ref"] {
        let text = attribute_text(container, mapping, name)?;
        if let Some(number) = text.as_deref().and_then(epsg_number) {
            let is_projected = text.is_some_and(|text| text.starts_with(b"PROJ"));
            return Ok(if is_projected {
                ReferenceSystem::Projected(number)
            } else {
                ReferenceSystem::Geographic(number)
            });
        }
    }
    Ok(ReferenceSystem::Unknown)
}

/// Returns the EPSG number of a system in well-known text, version 1 or 2: that of the last
/// authority, which closes the text.
fn epsg_number(text: &[u8]) -> Option<u16> {
    let text = str::from_utf8(text).ok()?.trim_end().strip_suffix("]]")?;
    let (_, number) = text.rsplit_once("[\"EPSG\",")?;
    number.trim().trim_matches('"').parse().ok()
}

/// Returns the attribute `_FillValue` as text.
fn missing_value(container: &dyn Container, node: &Node) -> Result<Option<Vec<u8>>> {
    let content = container.attribute(node.id, b"_FillValue")?;
    let content = content.and_then(|attribute| attribute.content.ok());
    Ok(content.and_then(|content| {
        let stored = StoredType::new(&content.datatype)?;
        let size = usize::from(stored.size());
        if content.elements.len() != size {
            return None;
        }
        let mut text = Vec::new();
        stored.write_number(&content.elements, &mut text);
        Some(text)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_equal_distances_are_a_grid() {
        let axis = |values: &[f64]| regular_axis(values).map(|axis| (axis.first, axis.step));
        assert_eq!(axis(&[60.0, 50.0, 40.0]), Some((60.0, -10.0)));
        assert_eq!(axis(&[0.0, 1.001, 2.0]), Some((0.0, 1.0)));
        for values in [
            &[0.0, 1.01, 2.0][..],
            &[1.0, 1.0],
            &[1.0],
            &[],
            &[0.0, f64::NAN],
        ] {
            assert_eq!(axis(values), None, "{values:?}");
        }
    }

    #[test]
    fn the_last_authority_is_that_of_the_system() {
        let version_1 =
            r#"PROJCS["a",GEOGCS["b",AUTHORITY["EPSG","4326"]],AUTHORITY["EPSG","32633"]]"#;
        let version_2 = r#"PROJCRS["a",BASEGEOGCRS["b",ID["EPSG",4326]],ID["EPSG",32633]]"#;
        for text in [version_1, version_2] {
            assert_eq!(epsg_number(text.as_bytes()), Some(32633), "{text}");
        }
        let unnumbered = r#"PROJCS["a",GEOGCS["b",AUTHORITY["EPSG","4326"]],UNIT["m",1]]"#;
        assert_eq!(epsg_number(unnumbered.as_bytes()), None);
        assert_eq!(epsg_number(b""), None);
    }

    #[test]
    fn a_transform_begins_at_a_corner() {
        let axes = parse_transform(b"500000 30 0 4600000 0 -30 ");
        let axis = |first, step| GridAxis { first, step };
        assert_eq!(
            axes,
            Some((axis(4_599_985.0, -30.0), axis(500_015.0, 30.0)))
        );
        for text in [&b"1 2 3 4 5 6"[..], b"1 2", b"a", b""] {
            assert_eq!(parse_transform(text), None);
        }
    }

    #[test]
    fn a_part_of_a_grid_is_a_grid() {
        let whole = GridAxis {
            first: 10.0,
            step: 2.0,
        };
        let part = |selector: &[u8]| {
            let part = AxisPart::new(selector, &[5, 8], 1)?.apply(whole);
            Some((part.first, part.step))
        };
        assert_eq!(part(b""), Some((10.0, 2.0)));
        assert_eq!(part(b"[:,3:]"), Some((16.0, 2.0)));
        assert_eq!(part(b"[:,1::3]"), Some((12.0, 6.0)));
        assert_eq!(part(b"[:,4:5]"), Some((18.0, 2.0)));
        assert_eq!(part(b"[:,3]"), None);
    }
}

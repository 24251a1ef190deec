//! The horizontal axis of a line plot: the coordinates of an array's only dimension.

use std::sync::Arc;

use h5fs_conventions::dimensions::is_only_dimension;
use h5fs_conventions::stored_type::StoredType;
use h5fs_conventions::time::TimeUnits;
use h5fs_reader::array::Reader;
use h5fs_reader::error::Result;
use h5fs_reader::model::{Array, NodeId};

use crate::cf::decoded::decode_numbers_or_times;
use crate::documents::html::axes;
use crate::documents::html::object::PageObject;
use crate::documents::html::plot::bins::NumberReader;
use crate::documents::html::plot::nexus_axis;
use crate::documents::html::script::LineCoordinates;
use crate::elements::Elements;

/// The horizontal axis: the name and the coordinates of the dimension.
#[derive(Default)]
pub(super) struct PlotAxis {
    /// The name of the dimension; empty if it is unknown.
    pub(super) name: Vec<u8>,
    /// The name and the unit of the dimension.
    pub(super) label: Vec<u8>,
    /// The array with the coordinates of the elements, if there is one.
    pub(super) coordinate: Option<PlotCoordinate>,
}

/// The array with the coordinates of a dimension.
pub(super) struct PlotCoordinate {
    pub(super) array: Arc<Array>,
    node: NodeId,
    /// The units of the coordinates, if they are times.
    pub(super) times: Option<TimeUnits>,
    numbers: NumberReader,
    /// Whether the coordinates are bin edges, one more than there are elements.
    are_edges: bool,
}

impl PlotAxis {
    /// Finds the coordinates for the object's array of `count` elements: its dimension scale, or
    /// the axis that NeXus names.
    ///
    /// # Errors
    /// Fails if the attributes or the coordinate array cannot be read.
    pub(super) fn find(object: &PageObject<'_>, count: u64) -> Result<Self> {
        let scale = match axes::line_scale(object)? {
            None => nexus_axis::find_axis(object)?,
            scale => scale,
        };
        let Some(scale) = scale else {
            return Ok(PlotAxis::default());
        };
        Ok(PlotAxis {
            name: axes::scale_name(object, scale)?,
            label: axes::scale_label(object, scale)?,
            coordinate: PlotCoordinate::from_scale(object, scale, count)?,
        })
    }
}

impl PlotCoordinate {
    /// Returns the coordinates in the array `scale`; `None` if it does not contain numbers, or does
    /// not have a length that fits `count` elements.
    fn from_scale(object: &PageObject<'_>, scale: NodeId, count: u64) -> Result<Option<Self>> {
        let container = &**object.container;
        let node = container.node(scale)?;
        let Some(array) = node.array() else {
            return Ok(None);
        };
        let are_edges = match *array.shape.dims() {
            [length] if length == count => false,
            [length] if length.checked_sub(1) == Some(count) => true,
            _ => return Ok(None),
        };
        if StoredType::new(&array.datatype).is_none() || is_only_dimension(container, scale)? {
            return Ok(None);
        }
        let reader = Reader::new(object.engine, Arc::clone(array))?;
        let elements = Elements::from_reader(Arc::new(reader))?;
        let path = || Ok((object.paths)(scale)?.unwrap_or_default());
        let (elements, times) = decode_numbers_or_times(container, &node, &path, elements)?;
        let stored = StoredType::new(&elements.datatype);
        Ok(stored.map(|stored| PlotCoordinate {
            array: Arc::clone(array),
            node: scale,
            times,
            numbers: NumberReader {
                elements,
                stored,
                missing: None,
                cancel: object.cancel.clone(),
            },
            are_edges,
        }))
    }

    /// Returns the coordinates' description for the page's script. `range` is the range of the
    /// horizontal axis.
    pub(super) fn script_description(&self, range: (f64, f64)) -> LineCoordinates {
        LineCoordinates {
            node: self.node,
            range,
            is_time: self.times.is_some(),
            are_edges: self.are_edges,
        }
    }

    /// Reads the coordinates of `count` elements, starting at element `first`. If the coordinates
    /// are bin edges, the coordinate of an element is the middle of its bin.
    ///
    /// # Errors
    /// Fails if the coordinates cannot be read.
    pub(super) fn read(&self, first: u64, count: u64) -> Result<Vec<f64>> {
        if !self.are_edges {
            return self.numbers.read(first, count);
        }
        let edges = self.numbers.read(first, count.saturating_add(1))?;
        let middles = edges
            .windows(2)
            .map(|edges| edges[0] / 2.0 + edges[1] / 2.0);
        Ok(middles.collect())
    }
}

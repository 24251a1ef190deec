//! The information about a variable in other variables of its group: the coordinate whose boundary
//! it is, and whether its last dimension is the length of texts.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::error::{Result, if_lasting};
use crate::limits;
use crate::model::attribute_value::text;
use crate::model::datatype::Class;
use crate::model::{Array, Container, LinkTarget, NodeId};
use crate::view::cf::time::TimeUnits;
use crate::view::elements::dimensions::{
    group_of, groups_down_to, has_no_values, last_name, listed,
};

/// The variables of one group, with cached results of searches.
#[derive(Default)]
pub(super) struct Siblings {
    /// The attributes of time coordinates, by the names of their boundary variables.
    boundaries: OnceCell<HashMap<Vec<u8>, TimeText>>,
    /// Whether each dimension is the length of texts, by the scale of the dimension.
    text_lengths: OnceCell<HashMap<NodeId, bool>>,
}

/// The attributes of numbers that may be times.
#[derive(Default, Clone)]
struct TimeText {
    units: Option<Vec<u8>>,
    calendar: Option<Vec<u8>>,
}

impl TimeText {
    fn read(container: &dyn Container, node: NodeId) -> Result<Self> {
        Ok(TimeText {
            units: text(container, node, b"units")?,
            calendar: text(container, node, b"calendar")?,
        })
    }

    fn parsed(&self) -> Option<TimeUnits> {
        TimeUnits::parse(self.units.as_deref()?, self.calendar.as_deref())
    }

    /// Returns whether a coordinate could add the units, or the calendar of the units.
    fn is_incomplete(&self) -> bool {
        self.units.is_none() || self.calendar.is_none() && self.parsed().is_some()
    }

    /// Returns the bytes of the texts.
    fn length(&self) -> usize {
        let texts = [&self.units, &self.calendar].into_iter().flatten();
        texts.map(Vec::len).sum()
    }
}

impl Siblings {
    /// Returns the units of the variable at `path` if its numbers are times. As in xarray, a
    /// boundary variable inherits the units and the calendar that it lacks from its time
    /// coordinate.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read.
    pub(super) fn time_units(
        &self,
        container: &dyn Container,
        node: NodeId,
        scales: &[Option<NodeId>],
        path: &dyn Fn() -> Result<Vec<u8>>,
    ) -> Result<Option<TimeUnits>> {
        let own = TimeText::read(container, node)?;
        let mut others = scales.iter().flatten().filter(|scale| **scale != node);
        if !own.is_incomplete() || others.next().is_none() {
            return Ok(own.parsed());
        }
        let Some(coordinate) = self.coordinate_of(container, scales, &path()?)? else {
            return Ok(own.parsed());
        };
        let whole = TimeText {
            units: own.units.or(coordinate.units),
            calendar: own.calendar.or(coordinate.calendar),
        };
        Ok(whole.parsed())
    }

    /// Finds the time coordinate whose boundary is the variable at `path`, and returns its
    /// attributes. The coordinate is the scale of one of the variable's dimensions, which may be in
    /// a parent group, or any variable of its group.
    fn coordinate_of(
        &self,
        container: &dyn Container,
        scales: &[Option<NodeId>],
        path: &[u8],
    ) -> Result<Option<TimeText>> {
        let name = last_name(path);
        for &scale in scales.iter().flatten() {
            if boundary_of(container, scale)?.is_some_and(|named| named == name) {
                let found = TimeText::read(container, scale)?;
                if found.parsed().is_some() {
                    return Ok(Some(found));
                }
            }
        }
        let boundaries = kept(&self.boundaries, || boundaries(container, path))?;
        Ok(boundaries.get(name).cloned())
    }

    /// Returns whether the dimension of `scale`, the last one of the variable at `path`, is the
    /// length of texts. As in xarray, this is the case under two conditions. First, the dimension
    /// does not have a coordinate variable. Second, it is the last dimension of all variables that
    /// have it, and all of these contain characters or texts.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read.
    pub(super) fn is_text_length(
        &self,
        container: &dyn Container,
        scale: NodeId,
        path: &dyn Fn() -> Result<Vec<u8>>,
    ) -> Result<bool> {
        if !has_no_values(container, scale)? {
            return Ok(false);
        }
        let lengths = kept(&self.text_lengths, || text_lengths(container, &path()?))?;
        Ok(lengths.get(&scale).copied().unwrap_or(true))
    }
}

/// Returns the cached value, or computes it with `find`.
fn kept<T>(cell: &OnceCell<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}

/// Returns the name of the boundary variable of a coordinate (CF 1.12, 7.1). As in xarray,
/// climatology boundaries do not inherit units.
fn boundary_of(container: &dyn Container, coordinate: NodeId) -> Result<Option<Vec<u8>>> {
    let named = text(container, coordinate, b"bounds")?;
    Ok(named.map(|named| named.trim_ascii().to_vec()))
}

/// Returns the attributes of the time coordinates in the group of the object at `path`, by the
/// names of their boundary variables. If several coordinates name the same variable, the first
/// counts.
fn boundaries(container: &dyn Container, path: &[u8]) -> Result<HashMap<Vec<u8>, TimeText>> {
    let mut found = HashMap::new();
    let mut bytes = 0;
    each_array(container, path, &mut |node, _| {
        let Some(name) = boundary_of(container, node)? else {
            return Ok(true);
        };
        let times = TimeText::read(container, node)?;
        if times.parsed().is_some() {
            bytes += name.len() + times.length();
            found.entry(name).or_insert(times);
        }
        Ok(bytes <= limits::COORDINATE_NAMES)
    })?;
    Ok(found)
}

/// Returns whether each dimension of the variables in that group is the length of texts, by the
/// scale of the dimension.
fn text_lengths(container: &dyn Container, path: &[u8]) -> Result<HashMap<NodeId, bool>> {
    let mut found = HashMap::new();
    each_array(container, path, &mut |node, array| {
        let scales = listed(container, node)?;
        let is_text = matches!(array.datatype.class, Class::String { .. });
        let last = scales.len().saturating_sub(1);
        for (axis, scale) in scales.into_iter().enumerate() {
            let Some(scale) = scale else {
                continue;
            };
            *found.entry(scale).or_insert(true) &= is_text && axis == last;
        }
        Ok(true)
    })?;
    Ok(found)
}

/// Passes the first arrays in the group of the object at `path` to `visit`, until it returns false.
fn each_array(
    container: &dyn Container,
    path: &[u8],
    visit: &mut dyn FnMut(NodeId, &Array) -> Result<bool>,
) -> Result<()> {
    let groups = groups_down_to(container, group_of(path))?;
    let group = groups.last().copied().unwrap_or(container.root());
    let mut links = container.links(group)?;
    for _ in 0..limits::COORDINATE_LINKS {
        let Some(link) = links.next()? else {
            break;
        };
        let LinkTarget::Hard(node) = link.target else {
            continue;
        };
        // A damaged member is skipped.
        let Some(found) = if_lasting(container.node(node))? else {
            continue;
        };
        match found.array() {
            Some(array) if !visit(node, array)? => break,
            _ => {}
        }
    }
    Ok(())
}

//! What the other variables of a group say of a variable: whose boundary it is, and whether its last
//! dimension is the length of texts.

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

/// The variables of one group, which are searched at most once for each question.
#[derive(Default)]
pub(super) struct Siblings {
    /// The attributes of coordinates of times, by the names of their boundary variables.
    boundaries: OnceCell<HashMap<Vec<u8>, TimeText>>,
    /// Whether texts lie along each dimension that variables have, by its scale.
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

    /// Whether a coordinate may say more of the numbers: which unit they have, or which calendar
    /// the unit is of.
    fn is_incomplete(&self) -> bool {
        self.units.is_none() || self.calendar.is_none() && self.parsed().is_some()
    }

    /// Bytes of the texts.
    fn length(&self) -> usize {
        let texts = [&self.units, &self.calendar].into_iter().flatten();
        texts.map(Vec::len).sum()
    }
}

impl Siblings {
    /// The units of the numbers of the variable at `path`, if they are times. As in xarray, a
    /// boundary variable takes from the coordinate of times that names it the units and the
    /// calendar that it does not have itself.
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

    /// The attributes of the coordinate of times that names the variable at `path` as its boundary:
    /// the scale of one of its dimensions, which may be in a group above, or any variable of its
    /// group.
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

    /// Whether the dimension of `scale`, the last one of the variable at `path`, is the length of
    /// texts. As in xarray, no variable is named as the dimension, and it is the last one of all
    /// variables that have it, which hold characters or texts.
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

/// What `cell` holds, or what `find` finds now.
fn kept<T>(cell: &OnceCell<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}

/// The name of the boundary variable of a coordinate (CF 1.12, 7.1). As for xarray, those of
/// climatologies are numbers unless they have units of their own.
fn boundary_of(container: &dyn Container, coordinate: NodeId) -> Result<Option<Vec<u8>>> {
    let named = text(container, coordinate, b"bounds")?;
    Ok(named.map(|named| named.trim_ascii().to_vec()))
}

/// The attributes of the coordinates of times of the group of what is at `path`, by the names of
/// their boundary variables. Of two coordinates that name the same one, the first counts.
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

/// Whether texts lie along each dimension of the variables of that group, by its scale.
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

/// Hands the first arrays of the group of what is at `path` to `visit`, until it returns false.
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
        // A damaged one says nothing.
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

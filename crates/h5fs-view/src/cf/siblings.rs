//! The information about a variable in other variables of its group: the coordinate whose boundary
//! it is, and whether its last dimension is the length of texts.

use std::cell::OnceCell;
use std::collections::HashMap;

use h5fs_conventions::dimensions::{
    ancestor_groups, is_only_dimension, is_scale, last_name, parent_path, scales_from_list,
};
use h5fs_conventions::time::TimeUnits;
use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{Array, Container, LinkTarget, NodeId};

use crate::limits;

/// The variables of one group, with the cached results of two searches: boundary variables, and
/// lengths of texts.
#[derive(Default)]
pub(super) struct GroupVariableCache {
    boundaries: OnceCell<BoundaryNames>,
    /// For each dimension scale of the group's variables: whether its dimension is the length of
    /// texts.
    text_lengths: OnceCell<HashMap<NodeId, bool>>,
}

/// The boundary variables that the coordinates of a group name in their attribute `bounds`.
#[derive(Default)]
struct BoundaryNames {
    /// By the name of a boundary variable: the units and calendar of the coordinate that names it,
    /// or the error of reading them.
    boundaries: HashMap<Vec<u8>, Result<TimeAttributes>>,
    /// The coordinates whose attribute `bounds` cannot be read. Each of them may name any variable
    /// along its dimensions.
    unreadable: Vec<NodeId>,
}

/// The texts of the attributes `units` and `calendar` of numbers that may be times.
#[derive(Default, Clone)]
struct TimeAttributes {
    units: Option<Vec<u8>>,
    calendar: Option<Vec<u8>>,
}

impl TimeAttributes {
    fn read(container: &dyn Container, node: NodeId) -> Result<Self> {
        Ok(TimeAttributes {
            units: attribute_text(container, node, b"units")?,
            calendar: attribute_text(container, node, b"calendar")?,
        })
    }

    fn to_time_units(&self) -> Option<TimeUnits> {
        TimeUnits::parse(self.units.as_deref()?, self.calendar.as_deref())
    }

    /// Returns whether `units` or `calendar` is absent. A boundary variable then inherits it from
    /// its coordinate.
    fn is_incomplete(&self) -> bool {
        self.units.is_none() || self.calendar.is_none() && self.to_time_units().is_some()
    }

    /// Returns the total length of the texts in bytes.
    fn length(&self) -> usize {
        let texts = [&self.units, &self.calendar].into_iter().flatten();
        texts.map(Vec::len).sum()
    }
}

impl GroupVariableCache {
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
        let own = TimeAttributes::read(container, node)?;
        let mut others = scales.iter().flatten().filter(|scale| **scale != node);
        if !own.is_incomplete() || others.next().is_none() {
            return Ok(own.to_time_units());
        }
        let Some(coordinate) = self.coordinate_of_boundary(container, scales, &path()?)? else {
            return Ok(own.to_time_units());
        };
        let whole = TimeAttributes {
            units: own.units.or(coordinate.units),
            calendar: own.calendar.or(coordinate.calendar),
        };
        Ok(whole.to_time_units())
    }

    /// Finds the time coordinate whose boundary is the variable at `path`, and returns its
    /// attributes. The coordinate is the scale of one of the variable's dimensions, which may be in
    /// a parent group, or any variable of its group.
    fn coordinate_of_boundary(
        &self,
        container: &dyn Container,
        scales: &[Option<NodeId>],
        path: &[u8],
    ) -> Result<Option<TimeAttributes>> {
        let name = last_name(path);
        for &scale in scales.iter().flatten() {
            if boundary_name(container, scale)?.is_some_and(|named| named == name) {
                let found = TimeAttributes::read(container, scale)?;
                if found.to_time_units().is_some() {
                    return Ok(Some(found));
                }
            }
        }
        let boundaries = get_or_compute(&self.boundaries, || BoundaryNames::read(container, path))?;
        if let Some(times) = boundaries.boundaries.get(name) {
            return times.clone().map(Some);
        }
        for &coordinate in &boundaries.unreadable {
            if is_along_scales(container, coordinate, scales)? {
                boundary_name(container, coordinate)?;
            }
        }
        Ok(None)
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
        if !is_only_dimension(container, scale)? {
            return Ok(false);
        }
        let lengths = get_or_compute(&self.text_lengths, || text_lengths(container, &path()?))?;
        Ok(lengths.get(&scale).copied().unwrap_or(true))
    }
}

/// Returns the value cached in `cell`. If `cell` is empty, computes the value with `find` first.
fn get_or_compute<T>(cell: &OnceCell<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}

/// Returns the name of the boundary variable of a coordinate, from its attribute `bounds` (CF 1.12,
/// 7.1). As in xarray, climatology boundaries do not inherit units.
fn boundary_name(container: &dyn Container, coordinate: NodeId) -> Result<Option<Vec<u8>>> {
    let named = attribute_text(container, coordinate, b"bounds")?;
    Ok(named.map(|named| named.trim_ascii().to_vec()))
}

/// Returns whether each dimension of a coordinate is one of the dimensions with `scales`. A
/// boundary variable has the dimensions of its coordinate, and one more (CF 1.12, 7.1).
fn is_along_scales(
    container: &dyn Container,
    coordinate: NodeId,
    scales: &[Option<NodeId>],
) -> Result<bool> {
    if is_scale(container, coordinate)? {
        return Ok(scales.contains(&Some(coordinate)));
    }
    let own = scales_from_list(container, coordinate)?;
    Ok(own.iter().all(|scale| scales.contains(scale)))
}

impl BoundaryNames {
    /// Reads the attributes of the arrays in the group of the variable at `path`. If two
    /// coordinates name the same boundary variable, the first coordinate counts.
    ///
    /// # Errors
    /// Fails with a temporary error of an attribute. Permanent errors become part of the result.
    fn read(container: &dyn Container, path: &[u8]) -> Result<Self> {
        let mut found = BoundaryNames::default();
        let mut bytes = 0;
        visit_arrays(container, path, &mut |node, _| {
            let name = match boundary_name(container, node) {
                Err(error) if !error.is_transient() => {
                    found.unreadable.push(node);
                    return Ok(true);
                }
                name => name?,
            };
            let Some(name) = name else {
                return Ok(true);
            };
            let times = match TimeAttributes::read(container, node) {
                Err(error) if error.is_transient() => return Err(error),
                Ok(times) if times.to_time_units().is_none() => return Ok(true),
                times => times,
            };
            bytes += name.len() + times.as_ref().map_or(0, TimeAttributes::length);
            found.boundaries.entry(name).or_insert(times);
            Ok(bytes <= limits::COORDINATE_NAMES)
        })?;
        Ok(found)
    }
}

/// Returns, for each dimension scale of the group's variables, whether its dimension is the length
/// of texts.
fn text_lengths(container: &dyn Container, path: &[u8]) -> Result<HashMap<NodeId, bool>> {
    let mut found = HashMap::new();
    visit_arrays(container, path, &mut |node, array| {
        let scales = scales_from_list(container, node)?;
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

/// Passes the arrays in the group of the object at `path` to `visit` until `visit` returns false.
/// Links after the first `limits::COORDINATE_LINKS` are ignored.
fn visit_arrays(
    container: &dyn Container,
    path: &[u8],
    visit: &mut dyn FnMut(NodeId, &Array) -> Result<bool>,
) -> Result<()> {
    let groups = ancestor_groups(container, parent_path(path))?;
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
        let Some(found) = ignore_permanent(container.node(node))? else {
            continue;
        };
        match found.array() {
            Some(array) if !visit(node, array)? => break,
            _ => {}
        }
    }
    Ok(())
}

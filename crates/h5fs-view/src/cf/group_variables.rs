//! The variables of a group that share one table: all variables whose dimensions are the chosen set
//! of axes.
//!
//! Each axis has a dimension scale. If the variables have several sets of axes, one set is chosen.
//! The following sets are preferred, the most important criterion first:
//!
//! 1. sets with a variable of numbers, not texts
//! 2. sets with a field: a variable that has `cell_methods`, `grid_mapping` or `mesh`
//! 3. sets with more axes
//!
//! If several sets are equal by these criteria, the set with the most variables is chosen, and
//! otherwise the first set. The following variables are excluded, unless the group has no others:
//! scales, variables with `cf_role`, and variables that are named in `coordinates`, `bounds`,
//! `climatology`, `formula_terms` or the attributes of a mesh.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5fs_conventions::dimensions::{is_scale, scales_from_list};
use h5fs_reader::error::{Result, quote};
use h5fs_reader::model::attribute_value::{attribute_exists, attribute_text};
use h5fs_reader::model::{Link, LinkTarget, Node, NodeId};
use h5fs_reader::wire::to_u64;

use crate::cf::coordinates::split_names;
use crate::cf::decoding::DecodedKind;
use crate::cf::siblings::GroupVariableCache;
use crate::cf::variable::Variable;
use crate::limits;
use crate::table::group::{Group, check_table_size};

/// A variable that is a member of a group, and may be a column of the group's table.
pub struct GroupVariable {
    /// The name of the member.
    pub name: Vec<u8>,
    /// The object of the variable.
    pub node: Arc<Node>,
    pub(super) variable: Variable,
    /// Whether the variable has an attribute of `FIELD_ATTRIBUTES`, which only fields have.
    has_field_attribute: bool,
}

/// The attributes whose values are names of other members, with coordinates, bounds or formula
/// terms.
const NAMING_ATTRIBUTES: [&[u8]; 4] = [b"coordinates", b"bounds", b"climatology", b"formula_terms"];

/// The attributes in which a mesh variable (UGRID 1.0) lists the names of other members.
const MESH_ATTRIBUTES: [&[u8]; 10] = [
    b"node_coordinates",
    b"edge_coordinates",
    b"face_coordinates",
    b"volume_coordinates",
    b"edge_node_connectivity",
    b"face_node_connectivity",
    b"face_edge_connectivity",
    b"face_face_connectivity",
    b"edge_face_connectivity",
    b"boundary_node_connectivity",
];

/// The attribute that marks auxiliary variables: a mesh, its connectivity arrays, and the names of
/// time series.
const ROLE_ATTRIBUTE: &[u8] = b"cf_role";

/// The attributes that mark a variable as a field (a measured or computed quantity).
const FIELD_ATTRIBUTES: [&[u8]; 3] = [b"cell_methods", b"grid_mapping", b"mesh"];

/// Returns whether a group has a variable whose dimensions all have dimension scales. The result is
/// false for a group with more links than a table may have.
///
/// # Errors
/// Fails if a member cannot be read because of a temporary error.
pub fn has_variables(group: &Group<'_>) -> Result<bool> {
    let mut is_found = false;
    let all = visit_members(group, &mut |link, node| {
        let is_variable = |node: Arc<Node>| {
            let path = || Ok(link.name.clone());
            Ok(has_axes(group, &node)?
                && Variable::from_node(group.container, &node, &path)?.is_some())
        };
        is_found = match node.and_then(is_variable) {
            Err(error) if error.is_transient() => {
                return Err(error.with_context(display_name(&link)));
            }
            found => found.unwrap_or(false),
        };
        Ok(!is_found)
    })?;
    Ok(all && is_found)
}

/// Returns the variables of the group at `path` that share one table, in the order of their links.
/// The result is empty if the group does not have variables whose dimensions all have dimension
/// scales.
///
/// # Errors
/// `Limit` for too many variables. Fails if a member cannot be read.
pub fn shared_table_variables(group: &Group<'_>, path: &[u8]) -> Result<Vec<GroupVariable>> {
    let mut all = Vec::new();
    let mut named_by_others = HashSet::new();
    let siblings = GroupVariableCache::default();
    let mut bytes = read_names(group, group.id, &mut named_by_others)?;
    let is_whole = visit_members(group, &mut |link, node| {
        let is_group = |link: &Link| matches!(link.target, LinkTarget::Hard(node) if group.container.is_likely_group(node));
        let node = match node {
            Err(_) if is_group(&link) => return Ok(true),
            node => node.map_err(|error| error.with_context(display_name(&link)))?,
        };
        if node.array().is_none() {
            return Ok(true);
        }
        bytes += read_names(group, node.id, &mut named_by_others)?;
        if !has_axes(group, &node).map_err(|error| error.with_context(display_name(&link)))? {
            return Ok(true);
        }
        let path = || Ok([path, b"/", &link.name].concat());
        let found = Variable::from_node_with_siblings(group.container, &node, &path, &siblings);
        let found = found.map_err(|error| error.with_context(display_name(&link)))?;
        if attribute_exists(group.container, node.id, ROLE_ATTRIBUTE)? {
            bytes += to_u64(link.name.len());
            named_by_others.insert(link.name.clone());
        }
        if let Some(variable) = found {
            let is_marked = has_any_attribute(group, node.id, &FIELD_ATTRIBUTES)?;
            let array = variable.array.weight();
            bytes += to_u64(size_of::<GroupVariable>() + link.name.len()).saturating_add(array);
            let order = link.order;
            let name = link.name;
            all.push((
                order,
                GroupVariable {
                    name,
                    node,
                    variable,
                    has_field_attribute: is_marked,
                },
            ));
        }
        Ok(bytes <= limits::TABLE_BYTES)
    })?;
    check_table_size(bytes, is_whole)?;
    all.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
    let all = all.into_iter().map(|(_, found)| found);
    let is_named = |found: &GroupVariable| named_by_others.contains(&found.name);
    let (named, others): (Vec<_>, Vec<_>) = all.partition(is_named);
    Ok(keep_main_axes(if others.is_empty() {
        named
    } else {
        others
    }))
}

/// Returns those of the variables that have the preferred set of axes, by the criteria in the
/// module's documentation.
fn keep_main_axes(mut all: Vec<GroupVariable>) -> Vec<GroupVariable> {
    let axes = |found: &GroupVariable| (found.variable.scales.clone(), found.variable.dims());
    let mut sets = HashMap::new();
    for found in &all {
        let has_numbers = !matches!(found.variable.decoding.decoded_kind(), DecodedKind::Text);
        let (any_numbers, any_marked, count) =
            sets.entry(axes(found)).or_insert((false, false, 0_usize));
        *any_numbers |= has_numbers;
        *any_marked |= found.has_field_attribute;
        *count += 1;
    }
    let rank = |found: &&GroupVariable| {
        let (has_numbers, is_marked, count) = sets[&axes(found)];
        (has_numbers, is_marked, found.variable.scales.len(), count)
    };
    // `max_by_key` returns the last of several maxima, so the order is reversed.
    let Some(most) = all.iter().rev().max_by_key(rank).map(axes) else {
        return all;
    };
    all.retain(|found| axes(found) == most);
    all
}

/// Passes each member of the group to `visit` until `visit` returns false. Returns false if the
/// group has more links than a table may have.
fn visit_members(
    group: &Group<'_>,
    visit: &mut dyn FnMut(Link, Result<Arc<Node>>) -> Result<bool>,
) -> Result<bool> {
    let mut links = group.container.links(group.id)?;
    let mut is_wanted = true;
    for _ in 0..=limits::TABLE_MEMBERS {
        let Some(link) = links.next()? else {
            return Ok(true);
        };
        if !is_wanted {
            continue;
        }
        match group.follow_link(&link) {
            Ok(None) => {}
            Ok(Some(node)) => is_wanted = visit(link, Ok(node))?,
            Err(error) => is_wanted = visit(link, Err(error))?,
        }
    }
    Ok(false)
}

/// Returns whether each dimension of an array has a dimension scale, and the array itself is not
/// one.
fn has_axes(group: &Group<'_>, node: &Node) -> Result<bool> {
    let Some(array) = node.array() else {
        return Ok(false);
    };
    let rank = array.shape.dims().len();
    if rank == 0 || is_scale(group.container, node.id)? {
        return Ok(false);
    }
    let scales: Vec<Option<NodeId>> = scales_from_list(group.container, node.id)?;
    Ok(scales.len() == rank && scales.iter().all(Option::is_some))
}

/// Adds the names in an object's `NAMING_ATTRIBUTES` and `MESH_ATTRIBUTES` to `found`. Returns the
/// total length of the attributes' texts in bytes.
fn read_names(group: &Group<'_>, node: NodeId, found: &mut HashSet<Vec<u8>>) -> Result<u64> {
    let mesh: &[&[u8]] = if attribute_exists(group.container, node, ROLE_ATTRIBUTE)? {
        &MESH_ATTRIBUTES
    } else {
        &[]
    };
    let mut bytes = 0;
    for attribute in NAMING_ATTRIBUTES.iter().chain(mesh) {
        let text = attribute_text(group.container, node, attribute)?.unwrap_or_default();
        if text.len() <= limits::COORDINATE_NAMES {
            // A word that ends with a colon describes the next word.
            let names = split_names(&text).filter(|name| !name.ends_with(b":"));
            found.extend(names.map(<[u8]>::to_vec));
            bytes += to_u64(text.len());
        }
    }
    Ok(bytes)
}

/// Returns whether an object has one of these attributes.
fn has_any_attribute(group: &Group<'_>, node: NodeId, attributes: &[&[u8]]) -> Result<bool> {
    for attribute in attributes {
        if attribute_exists(group.container, node, attribute)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn display_name(link: &Link) -> String {
    format!("table: {}", quote(&link.name))
}

//! The variables of a group that stand side by side in one table: those over the axes that most of
//! its variables have.
//!
//! Of several sets of axes that as many variables have, the one with more axes is taken, then the one
//! that comes first. Each axis has a dimension scale. Scales, and what `coordinates` or `bounds` of
//! a member names, are not counted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::{Result, quoted};
use crate::limits;
use crate::model::attribute_value::text;
use crate::model::{Link, LinkTarget, Node, NodeId};
use crate::view::cf::coordinates::names;
use crate::view::cf::variable::Variable;
use crate::view::elements::dimensions::{is_scale, listed};
use crate::view::table::group::{Group, refuse_large};
use crate::wire::to_u64;

/// A variable of a group.
pub(crate) struct Together {
    pub(crate) name: Vec<u8>,
    pub(crate) node: Arc<Node>,
    pub(super) variable: Variable,
}

/// The attributes that name other members which say where and when values are.
const NAMING: [&[u8]; 3] = [b"coordinates", b"bounds", b"climatology"];

/// Whether a group has a variable with axes. One with more links than a table may have has none.
///
/// # Errors
/// Fails if that cannot be found out now.
pub(crate) fn is_there(group: &Group<'_>) -> Result<bool> {
    let mut is_found = false;
    let all = each(group, &mut |link, node| {
        let is_variable = |node: Arc<Node>| {
            let path = || Ok(link.name.clone());
            Ok(has_axes(group, &node)? && Variable::of(group.container, &node, &path)?.is_some())
        };
        is_found = match node.and_then(is_variable) {
            Err(error) if error.is_passing() => return Err(error.of(named(&link))),
            found => found.unwrap_or(false),
        };
        Ok(!is_found)
    })?;
    Ok(all && is_found)
}

/// The variables of the group at `path` that stand side by side, in the order of their links;
/// none where there are no variables with axes.
///
/// # Errors
/// `Limit` for too many; fails if a member cannot be read.
pub(crate) fn variables(group: &Group<'_>, path: &[u8]) -> Result<Vec<Together>> {
    let mut all = Vec::new();
    let mut named_by_others = HashSet::new();
    let mut bytes = read_names(group, group.id, &mut named_by_others)?;
    let is_whole = each(group, &mut |link, node| {
        let is_group = |link: &Link| matches!(link.target, LinkTarget::Hard(node) if group.container.looks_like_group(node));
        let node = match node {
            Err(_) if is_group(&link) => return Ok(true),
            node => node.map_err(|error| error.of(named(&link)))?,
        };
        if node.array().is_none() {
            return Ok(true);
        }
        bytes += read_names(group, node.id, &mut named_by_others)?;
        if !has_axes(group, &node).map_err(|error| error.of(named(&link)))? {
            return Ok(true);
        }
        let path = || Ok([path, b"/", &link.name].concat());
        let found = Variable::of(group.container, &node, &path);
        let found = found.map_err(|error| error.of(named(&link)))?;
        if let Some(variable) = found {
            let array = variable.array.weight();
            bytes += to_u64(size_of::<Together>() + link.name.len()).saturating_add(array);
            let order = link.order;
            let name = link.name;
            all.push((
                order,
                Together {
                    name,
                    node,
                    variable,
                },
            ));
        }
        Ok(bytes <= limits::TABLE_BYTES)
    })?;
    refuse_large(bytes, is_whole)?;
    all.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
    let all = all.into_iter().map(|(_, found)| found);
    let is_named = |found: &Together| named_by_others.contains(&found.name);
    let (named, others): (Vec<_>, Vec<_>) = all.partition(is_named);
    Ok(over_most(if others.is_empty() { named } else { others }))
}

/// Those over the axes that most have.
fn over_most(mut all: Vec<Together>) -> Vec<Together> {
    let axes = |found: &Together| (found.variable.scales.clone(), found.variable.dims());
    let mut counts = HashMap::new();
    for found in &all {
        *counts.entry(axes(found)).or_insert(0_usize) += 1;
    }
    let rank = |found: &&Together| (counts[&axes(found)], found.variable.scales.len());
    // Of equals, `max_by_key` takes the last.
    let Some(most) = all.iter().rev().max_by_key(rank).map(axes) else {
        return all;
    };
    all.retain(|found| axes(found) == most);
    all
}

/// Hands the members on to `visit`, until it wants no more; gives whether the group has no more links
/// than a table may.
fn each(
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
        match group.followed(&link) {
            Ok(None) => {}
            Ok(Some(node)) => is_wanted = visit(link, Ok(node))?,
            Err(error) => is_wanted = visit(link, Err(error))?,
        }
    }
    Ok(false)
}

/// Whether each dimension of an array has a scale, and it is none itself.
fn has_axes(group: &Group<'_>, node: &Node) -> Result<bool> {
    let Some(array) = node.array() else {
        return Ok(false);
    };
    let rank = array.shape.dims().len();
    if rank == 0 || is_scale(group.container, node.id)? {
        return Ok(false);
    }
    let scales: Vec<Option<NodeId>> = listed(group.container, node.id)?;
    Ok(scales.len() == rank && scales.iter().all(Option::is_some))
}

/// Adds the names that an object's attributes have; gives how many bytes these are.
fn read_names(group: &Group<'_>, node: NodeId, found: &mut HashSet<Vec<u8>>) -> Result<u64> {
    let mut bytes = 0;
    for attribute in NAMING {
        let text = text(group.container, node, attribute)?.unwrap_or_default();
        if text.len() <= limits::COORDINATE_NAMES {
            found.extend(names(&text).map(<[u8]>::to_vec));
            bytes += to_u64(text.len());
        }
    }
    Ok(bytes)
}

fn named(link: &Link) -> String {
    format!("table: {}", quoted(&link.name))
}

//! The table of a group that names no convention: its arrays of one dimension that have the most
//! frequent length.
//!
//! Where arrays have dimension scales, as netCDF's variables do, those over one scale belong
//! together, and the scale itself, their coordinate, stands first. A netCDF dimension without
//! values is no column.
//!
//! A member that cannot be read may be a column: it is not passed over where there is a table.
//!
//! Columns stand in the order in which their links were made, and by name where the file does not
//! tell that order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::{Error, Result, quoted};
use crate::limits;
use crate::model::{Link, LinkTarget, Node, NodeId, NodeKind};
use crate::view::elements::dimensions::{has_no_values, is_scale, listed};
use crate::view::table::column::{GroupTable, Part};
use crate::view::table::group::{Group, refuse_large};
use crate::wire::to_u64;

/// What the columns of a table have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Rows {
    count: u64,
    scale: Option<NodeId>,
}

/// A member that can be a column.
struct Member {
    name: Vec<u8>,
    order: Option<u64>,
    node: Arc<Node>,
    rows: Rows,
}

impl Member {
    /// Its place among the others.
    fn place(&self) -> (Option<u64>, &[u8]) {
        (self.order, &self.name)
    }
}

/// Whether two members make a table. A group with more links than a table may have is none.
///
/// # Errors
/// Fails if that cannot be found out now.
pub(super) fn is_there(group: &Group<'_>) -> Result<bool> {
    let mut met = HashSet::new();
    let mut are_two = false;
    let all = each(group, Damaged::IsNone, &mut |member| {
        are_two = !met.insert(member.rows);
        !are_two
    })?;
    Ok(all && are_two)
}

/// The table of the members that have most in common; of several such sets the first.
///
/// # Errors
/// `Limit` for too many columns; fails if they cannot be found out now.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let mut members = Vec::new();
    let mut counts: HashMap<Rows, usize> = HashMap::new();
    let mut weight = 0;
    let all = each(group, Damaged::IsRefused, &mut |member| {
        *counts.entry(member.rows).or_default() += 1;
        let array = member.node.array().map_or(0, |array| array.weight());
        weight += to_u64(size_of::<Member>() + member.name.len()) + array;
        members.push(member);
        weight <= limits::TABLE_BYTES
    })?;
    refuse_large(weight, all)?;
    members.sort_by(|one, other| one.place().cmp(&other.place()));
    let count = |rows: Rows| counts.get(&rows).copied().unwrap_or(0);
    let most = members.iter().map(|member| count(member.rows)).max();
    let mut chosen = members.iter().map(|member| member.rows);
    let Some(rows) = chosen.find(|&rows| Some(count(rows)) == most) else {
        return Ok(GroupTable::default());
    };
    members.retain(|member| member.rows == rows);
    members.sort_by_key(|member| rows.scale != Some(member.node.id));
    let mut table = GroupTable::of_rows(rows.count);
    for member in &members {
        if let Some(values) = Part::of(&member.node)? {
            table.push_values(&member.name, &values, None)?;
        }
    }
    Ok(table)
}

/// What a member is that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damaged {
    /// None.
    IsNone,
    /// It may be a column.
    IsRefused,
}

/// Hands the members that can be columns to `visit`, until it wants no more; gives whether the
/// group has no more links than a table may.
fn each(
    group: &Group<'_>,
    damaged: Damaged,
    visit: &mut dyn FnMut(Member) -> bool,
) -> Result<bool> {
    let mut links = group.container.links(group.id)?;
    let mut is_wanted = true;
    for _ in 0..=limits::TABLE_MEMBERS {
        let Some(link) = links.next()? else {
            return Ok(true);
        };
        if is_wanted && let Some(member) = member(group, damaged, link)? {
            is_wanted = visit(member);
        }
    }
    Ok(false)
}

fn looks_like_group(group: &Group<'_>, link: &Link) -> bool {
    matches!(link.target, LinkTarget::Hard(node) if group.container.looks_like_group(node))
}

/// The column that a link leads to, if it leads to one.
fn member(group: &Group<'_>, damaged: Damaged, link: Link) -> Result<Option<Member>> {
    let named = |error: Error| error.of(format_args!("table: {}", quoted(&link.name)));
    let is_none = || damaged == Damaged::IsNone || looks_like_group(group, &link);
    let node = match group.followed(&link) {
        Ok(Some(node)) => node,
        Ok(None) => return Ok(None),
        Err(error) if !error.is_passing() && is_none() => return Ok(None),
        Err(error) => return Err(named(error)),
    };
    let rows = rows_of(group, &node).map_err(named)?;
    Ok(rows.map(|rows| Member {
        name: link.name,
        order: link.order,
        node,
        rows,
    }))
}

/// The rows of an array of one dimension that has values; `None` for all else.
fn rows_of(group: &Group<'_>, node: &Node) -> Result<Option<Rows>> {
    let NodeKind::Array(array) = &node.kind else {
        return Ok(None);
    };
    let &[count] = array.shape.dims() else {
        return Ok(None);
    };
    if count == 0 {
        return Ok(None);
    }
    let container = group.container;
    if is_scale(container, node.id)? {
        let has_values = !has_no_values(container, node.id)?;
        let scale = Some(node.id);
        return Ok(has_values.then_some(Rows { count, scale }));
    }
    let scales = listed(container, node.id)?;
    let scale = scales.first().copied().flatten();
    Ok(Some(Rows { count, scale }))
}

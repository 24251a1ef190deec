//! The table of a group without a convention: those of its one-dimensional arrays that have the
//! most frequent length. Two-dimensional arrays with as many rows, and with few values in each that
//! have no dimension scale, are several columns of this table: `U[0]`, `U[1]` …
//!
//! If arrays have dimension scales, as netCDF variables do, the arrays with the same scale form the
//! table. The scale itself, as their coordinate, is the first column. A netCDF dimension without
//! values is not a column.
//!
//! A member that cannot be read may be a column, so a table with such a member fails.
//!
//! Columns are in the creation order of their links, or sorted by name if the file does not store
//! that order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5fs_conventions::dimensions::{is_only_dimension, is_scale, scales_from_list};
use h5fs_reader::error::{Error, Result, quote};
use h5fs_reader::model::{Link, LinkTarget, Node, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;

use crate::limits;
use crate::table::column::{GroupTable, MAX_SPLIT_ELEMENTS, RowField};
use crate::table::group::{Group, check_table_size};

/// The property that all columns of a table share: a number of rows, or a dimension scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowDimension {
    count: u64,
    scale: Option<NodeId>,
}

/// A member of the group that can be a column of its table.
struct ColumnCandidate {
    name: Vec<u8>,
    order: Option<u64>,
    node: Arc<Node>,
    rows: RowDimension,
    /// Whether the array is two-dimensional. Such arrays do not decide which rows form the table.
    is_wide: bool,
}

impl ColumnCandidate {
    /// Returns the sort key of the column: creation order, then name.
    fn sort_key(&self) -> (Option<u64>, &[u8]) {
        (self.order, &self.name)
    }
}

/// Returns whether at least two members form a table. A group with more links than a table may have
/// is not a table.
///
/// # Errors
/// Fails if the links or members cannot be read.
pub(super) fn is_table(group: &Group<'_>) -> Result<bool> {
    let mut met = HashSet::new();
    let mut are_two = false;
    let all = visit_candidates(group, DamagePolicy::Skip, &mut |member| {
        are_two = !member.is_wide && !met.insert(member.rows);
        !are_two
    })?;
    Ok(all && are_two)
}

/// Returns the table of the largest set of columns with the same number of rows or the same
/// dimension scale. If several sets are equally large, the first is used.
///
/// # Errors
/// `Limit` for too many columns. Fails if the members cannot be read.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let mut members = Vec::new();
    let mut counts: HashMap<RowDimension, usize> = HashMap::new();
    let mut weight = 0;
    let all = visit_candidates(group, DamagePolicy::Fail, &mut |member| {
        if !member.is_wide {
            *counts.entry(member.rows).or_default() += 1;
        }
        let array = member.node.array().map_or(0, |array| array.weight());
        weight += to_u64(size_of::<ColumnCandidate>() + member.name.len()) + array;
        members.push(member);
        weight <= limits::TABLE_BYTES
    })?;
    check_table_size(weight, all)?;
    members.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
    let count = |rows: RowDimension| counts.get(&rows).copied().unwrap_or(0);
    let most = members.iter().map(|member| count(member.rows)).max();
    let narrow = members.iter().filter(|member| !member.is_wide);
    let mut chosen = narrow.map(|member| member.rows);
    let Some(rows) = chosen.find(|&rows| Some(count(rows)) == most) else {
        return Ok(GroupTable::default());
    };
    members.retain(|member| member.rows == rows);
    members.sort_by_key(|member| rows.scale != Some(member.node.id));
    let mut table = GroupTable::with_row_count(rows.count);
    for member in &members {
        if let Some(values) = RowField::from_node(&member.node)? {
            table.push_values(&member.name, &values, None)?;
        }
    }
    Ok(table)
}

/// The treatment of a member that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DamagePolicy {
    /// The member is skipped.
    Skip,
    /// The member is an error, because it may be a column.
    Fail,
}

/// Passes the members that can be columns to `visit` until `visit` returns false. Returns false if
/// the group has more links than [`limits::TABLE_MEMBERS`].
fn visit_candidates(
    group: &Group<'_>,
    damaged: DamagePolicy,
    visit: &mut dyn FnMut(ColumnCandidate) -> bool,
) -> Result<bool> {
    let mut links = group.container.links(group.id)?;
    let mut is_wanted = true;
    for _ in 0..=limits::TABLE_MEMBERS {
        let Some(link) = links.next()? else {
            return Ok(true);
        };
        if is_wanted && let Some(member) = column_candidate(group, damaged, link)? {
            is_wanted = visit(member);
        }
    }
    Ok(false)
}

fn looks_like_group(group: &Group<'_>, link: &Link) -> bool {
    matches!(link.target, LinkTarget::Hard(node) if group.container.is_likely_group(node))
}

/// Returns the member that a link leads to; `None` if it cannot be a column.
fn column_candidate(
    group: &Group<'_>,
    damaged: DamagePolicy,
    link: Link,
) -> Result<Option<ColumnCandidate>> {
    let named = |error: Error| error.with_context(format_args!("table: {}", quote(&link.name)));
    let is_none = || damaged == DamagePolicy::Skip || looks_like_group(group, &link);
    let node = match group.follow_link(&link) {
        Ok(Some(node)) => node,
        Ok(None) => return Ok(None),
        Err(error) if !error.is_transient() && is_none() => return Ok(None),
        Err(error) => return Err(named(error)),
    };
    let rows = row_shape(group, &node).map_err(named)?;
    Ok(rows.map(|(rows, is_wide)| ColumnCandidate {
        name: link.name,
        order: link.order,
        node,
        rows,
        is_wide,
    }))
}

/// Returns the row shape of an array with elements, and whether the array is two-dimensional.
/// Returns `None` for any other object, for a row of too many values, and for a netCDF dimension
/// without values.
fn row_shape(group: &Group<'_>, node: &Node) -> Result<Option<(RowDimension, bool)>> {
    let NodeKind::Array(array) = &node.kind else {
        return Ok(None);
    };
    let (count, is_wide) = match *array.shape.dims() {
        [count] => (count, false),
        [count, width] if (1..=MAX_SPLIT_ELEMENTS).contains(&width) => (count, true),
        _ => return Ok(None),
    };
    if count == 0 {
        return Ok(None);
    }
    let container = group.container;
    if is_scale(container, node.id)? {
        let is_column = !is_wide && !is_only_dimension(container, node.id)?;
        let scale = Some(node.id);
        return Ok(is_column.then_some((RowDimension { count, scale }, is_wide)));
    }
    let scales = scales_from_list(container, node.id)?;
    let scale = scales.first().copied().flatten();
    // The values of a row that have coordinates of their own are no columns.
    if scales.get(1).is_some_and(Option::is_some) {
        return Ok(None);
    }
    Ok(Some((RowDimension { count, scale }, is_wide)))
}

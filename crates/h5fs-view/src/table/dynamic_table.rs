//! HDMF dynamic tables, which NWB uses. The group's attribute `colnames` lists the columns, and the
//! member `id` has the row numbers.
//!
//! A column of lists has an index `NAME_index` with the end of each row's list. The index may
//! itself be indexed by `NAME_index_index`. A column of an enumeration has an attribute `elements`
//! that references its names.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::distinct::deduplicate_by_name;
use h5fs_reader::model::attribute_value::{attribute_exists, reference_targets};
use h5fs_reader::model::{NodeId, NodeKind};

use crate::limits;
use crate::table::column::{ColumnSource, GroupTable, RowField};
use crate::table::group::{Group, node_field};

/// The attribute of the group that lists the columns.
const COLUMNS: &[u8] = b"colnames";

/// Returns whether the group is an HDMF dynamic table.
///
/// # Errors
/// Fails if an attribute or a member cannot be read.
pub(super) fn is_table(group: &Group<'_>) -> Result<bool> {
    if !attribute_exists(group.container, group.id, COLUMNS)? {
        return Ok(false);
    }
    let id = group.find_member(b"id")?;
    Ok(id.is_some_and(|id| matches!(id.kind, NodeKind::Array(_))))
}

/// Returns the table: `id`, and the columns in their order.
///
/// # Errors
/// `Corrupt` if a column is malformed; `Limit` for lists that are nested too deeply.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let id = group.member_field(b"id")?;
    let mut table = GroupTable::with_row_count(id.rows());
    table.push_values(b"id", &id, None)?;
    let mut names = group.attribute_names(COLUMNS)?;
    deduplicate_by_name(&mut names, |name| name);
    for name in names.iter().filter(|name| *name != b"id") {
        let node = group.member(name)?;
        let values = node_field(&node, name)?;
        let ends = index_arrays(group, name, node.id)?;
        let elements = reference_targets(group.container, node.id, b"elements")?;
        match (ends.is_empty(), elements.first()) {
            (true, Some(&Some(elements))) => {
                let elements = group.container.node(elements)?;
                let source = ColumnSource::Categories {
                    codes: values,
                    names: Arc::new(ColumnSource::Values(node_field(&elements, b"elements")?)),
                };
                table.push(name.clone(), source)?;
            }
            (true, _) => table.push_values(name, &values, None)?,
            (false, _) => table.push(name.clone(), ColumnSource::Lists { ends, values })?,
        }
    }
    Ok(table)
}

/// Returns the index arrays of the column `name`, outermost first; empty for a column without
/// lists. `node` is the array with the values of the column.
fn index_arrays(group: &Group<'_>, name: &[u8], mut node: NodeId) -> Result<Vec<RowField>> {
    let mut ends = Vec::new();
    let mut name = name.to_vec();
    loop {
        name.extend_from_slice(b"_index");
        let Some(index) = group.find_member(&name)? else {
            break;
        };
        let target = reference_targets(group.container, index.id, b"target")?;
        if target.first() != Some(&Some(node)) {
            break;
        }
        Error::check_room(ends.len(), limits::TABLE_LISTS, "nested lists in a table")?;
        ends.push(node_field(&index, &name)?);
        node = index.id;
    }
    ends.reverse();
    Ok(ends)
}

//! AnnData dataframes: a group with `encoding-type` = `dataframe`, and a member for each column.
//!
//! `_index` names the member with the index, and `column-order` all other members. A column is an
//! array, or a group of two members: `codes` and `categories`, or `values` and `mask`. Categories
//! are an array, or a group of values and mask. In older files, the array of codes has an attribute
//! with a reference to the categories.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result, quote};
use h5fs_reader::memory::distinct::deduplicate_by_name;
use h5fs_reader::model::attribute_value::reference_targets;
use h5fs_reader::model::{Node, NodeKind};

use crate::table::column::{ColumnSource, GroupTable, MissingRule};
use crate::table::group::{ENCODING, Group, node_field};

/// A value of `encoding-type` for a column with values and a mask.
const NULLABLE_INTEGER: &[u8] = b"nullable-integer";
const NULLABLE_BOOLEAN: &[u8] = b"nullable-boolean";
const NULLABLE_TEXT: &[u8] = b"nullable-string-array";

/// Returns whether `encoding-type` says that the group is an AnnData dataframe.
///
/// # Errors
/// Fails if the attribute cannot be read.
pub(super) fn is_table(group: &Group<'_>) -> Result<bool> {
    Ok(group
        .attribute_text(ENCODING)?
        .is_some_and(|is| is == b"dataframe"))
}

/// Returns whether `encoding-type` says that the group is one AnnData value, such as a sparse
/// matrix or a categorical. The encodings `dict` and `anndata` are groups of separate members.
///
/// # Errors
/// Fails if the attribute cannot be read.
pub(super) fn is_single_value(group: &Group<'_>) -> Result<bool> {
    let encoding = group.attribute_text(ENCODING)?;
    Ok(encoding.is_some_and(|is| !matches!(&is[..], b"dict" | b"anndata")))
}

/// Returns the table of a dataframe: the index, and the columns in their order.
///
/// # Errors
/// `Corrupt` if a column is malformed; `Unsupported` for a column with an unsupported
/// `encoding-type`.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let index = group
        .attribute_text(b"_index")?
        .unwrap_or_else(|| b"_index".to_vec());
    let rows = column_rows(group, &index)?;
    let mut table = GroupTable::with_row_count(rows);
    let mut names = vec![index];
    names.extend(group.attribute_names(b"column-order")?);
    deduplicate_by_name(&mut names, |name| name);
    for name in names {
        let node = group.member(&name)?;
        match node.kind {
            NodeKind::Group => table.push(name.clone(), encoded_column(group, &node, &name)?)?,
            _ => add_array(group, &node, &name, &mut table)?,
        }
    }
    Ok(table)
}

/// Returns the number of rows of a column, which is an array or an encoded group. The index may be
/// a group, too: anndata 0.13 writes strings of pandas 3 as groups, because they may be missing.
fn column_rows(group: &Group<'_>, name: &[u8]) -> Result<u64> {
    let node = group.member(name)?;
    match node.kind {
        NodeKind::Group => Ok(encoded_column(group, &node, name)?.rows()),
        _ => Ok(node_field(&node, name)?.rows()),
    }
}

/// Returns the source of a column that is an encoded group.
fn encoded_column(group: &Group<'_>, node: &Node, name: &[u8]) -> Result<ColumnSource> {
    let column = group.group_at(node.id);
    let encoding = column.attribute_text(ENCODING)?.unwrap_or_default();
    match &encoding[..] {
        b"categorical" => Ok(ColumnSource::Categories {
            codes: column.member_field(b"codes")?,
            names: Arc::new(category_names(&column)?),
        }),
        NULLABLE_INTEGER | NULLABLE_BOOLEAN | NULLABLE_TEXT => masked_column(&column),
        _ => {
            let (name, encoding) = (quote(name), quote(&encoding));
            let what = format!("column {name} of a dataframe: encoding-type {encoding}");
            Err(Error::unsupported(what, None))
        }
    }
}

/// Returns the source of a column's category names. They are an array, or an encoded group for
/// strings of pandas 3.
fn category_names(column: &Group<'_>) -> Result<ColumnSource> {
    const CATEGORIES: &[u8] = b"categories";
    let node = column.member(CATEGORIES)?;
    match node.kind {
        NodeKind::Group => encoded_column(column, &node, CATEGORIES),
        _ => Ok(ColumnSource::Values(node_field(&node, CATEGORIES)?)),
    }
}

/// Returns the source of a column that is a group with the members `values` and `mask`.
fn masked_column(column: &Group<'_>) -> Result<ColumnSource> {
    let mask = column.member_field(b"mask")?;
    let values = column.member_field(b"values")?;
    if mask.rows() != values.rows() {
        let what = "table: the mask of a column has another length than the column";
        return Err(Error::corrupt(what, None));
    }
    Ok(ColumnSource::Masked {
        values,
        missing: MissingRule::MaskNotZero(mask),
    })
}

/// Adds a column that is an array to `table`.
fn add_array(group: &Group<'_>, node: &Node, name: &[u8], table: &mut GroupTable) -> Result<()> {
    let values = node_field(node, name)?;
    let categories = reference_targets(group.container, node.id, b"categories")?;
    match categories.first() {
        Some(&Some(categories)) => {
            let categories = group.container.node(categories)?;
            let source = ColumnSource::Categories {
                codes: values,
                names: Arc::new(ColumnSource::Values(node_field(
                    &categories,
                    b"categories",
                )?)),
            };
            table.push(name.to_vec(), source)
        }
        _ => table.push_values(name, &values, None),
    }
}

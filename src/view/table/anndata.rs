//! AnnData's dataframes: a group with `encoding-type` = `dataframe`, a member for each column.
//!
//! `_index` names the member that is the index, `column-order` all others. The index and a column
//! are an array or a group of two: `codes` and `categories`, or `values` and `mask`. Categories are
//! an array or a group of values and mask. Older files have a reference to the categories as an
//! attribute of the array of codes.

use std::sync::Arc;

use crate::error::{Error, Result, quoted};
use crate::memory::distinct::keep_first_of_each;
use crate::model::attribute_value::targets;
use crate::model::{Node, NodeKind};
use crate::view::table::column::{GroupTable, Missing, Source};
use crate::view::table::group::{ENCODING, Group, part_of};

/// The encodings of a column of values and their mask.
const NULLABLE_INTEGER: &[u8] = b"nullable-integer";
const NULLABLE_BOOLEAN: &[u8] = b"nullable-boolean";
const NULLABLE_TEXT: &[u8] = b"nullable-string-array";

/// Whether the group is such a dataframe.
///
/// # Errors
/// Fails if that cannot be found out now.
pub(super) fn is_named(group: &Group<'_>) -> Result<bool> {
    Ok(group.text(ENCODING)?.is_some_and(|is| is == b"dataframe"))
}

/// Whether the members of the group make something else together: a sparse matrix, a categorical.
///
/// # Errors
/// Fails if that cannot be found out now.
pub(super) fn is_of_another_kind(group: &Group<'_>) -> Result<bool> {
    let encoding = group.text(ENCODING)?;
    Ok(encoding.is_some_and(|is| !matches!(&is[..], b"dict" | b"anndata")))
}

/// The table of a dataframe: the index, and the columns in their order.
///
/// # Errors
/// `Corrupt` where a column is not as it must be, `Unsupported` for a column of another encoding.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let index = group.text(b"_index")?.unwrap_or_else(|| b"_index".to_vec());
    let rows = rows_of(group, &index)?;
    let mut table = GroupTable::of_rows(rows);
    let mut names = vec![index];
    names.extend(group.names_in(b"column-order")?);
    keep_first_of_each(&mut names, |name| name);
    for name in names {
        let node = group.member(&name)?;
        match node.kind {
            NodeKind::Group => table.push(name.clone(), encoded(group, &node, &name)?)?,
            _ => add_array(group, &node, &name, &mut table)?,
        }
    }
    Ok(table)
}

/// The number of rows of a column: of an array, or of a group that encodes one. pandas 3 has texts
/// that may be missing, so that anndata 0.13 writes the index, too, as a group.
fn rows_of(group: &Group<'_>, name: &[u8]) -> Result<u64> {
    let node = group.member(name)?;
    match node.kind {
        NodeKind::Group => Ok(encoded(group, &node, name)?.rows()),
        _ => Ok(part_of(&node, name)?.rows()),
    }
}

/// The values of a column that is a group.
fn encoded(group: &Group<'_>, node: &Node, name: &[u8]) -> Result<Source> {
    let column = group.at(node.id);
    let encoding = column.text(ENCODING)?.unwrap_or_default();
    match &encoding[..] {
        b"categorical" => Ok(Source::Categories {
            codes: column.part(b"codes")?,
            names: Arc::new(categories(&column)?),
        }),
        NULLABLE_INTEGER | NULLABLE_BOOLEAN | NULLABLE_TEXT => nullable(&column),
        _ => {
            let (name, encoding) = (quoted(name), quoted(&encoding));
            let what = format!("column {name} of a dataframe: encoding-type {encoding}");
            Err(Error::unsupported(what, None))
        }
    }
}

/// The names of the categories of a column: an array, or texts of pandas 3, a group.
fn categories(column: &Group<'_>) -> Result<Source> {
    const CATEGORIES: &[u8] = b"categories";
    let node = column.member(CATEGORIES)?;
    match node.kind {
        NodeKind::Group => encoded(column, &node, CATEGORIES),
        _ => Ok(Source::Values(part_of(&node, CATEGORIES)?)),
    }
}

/// The values of a group of values and their mask.
fn nullable(column: &Group<'_>) -> Result<Source> {
    let mask = column.part(b"mask")?;
    let values = column.part(b"values")?;
    if mask.rows() != values.rows() {
        let what = "table: the mask of a column has another length";
        return Err(Error::corrupt(what, None));
    }
    Ok(Source::Masked {
        values,
        missing: Missing::Where(mask),
    })
}

/// Adds a column that is an array.
fn add_array(group: &Group<'_>, node: &Node, name: &[u8], table: &mut GroupTable) -> Result<()> {
    let values = part_of(node, name)?;
    let categories = targets(group.container, node.id, b"categories")?;
    match categories.first() {
        Some(&Some(categories)) => {
            let categories = group.container.node(categories)?;
            let source = Source::Categories {
                codes: values,
                names: Arc::new(Source::Values(part_of(&categories, b"categories")?)),
            };
            table.push(name.to_vec(), source)
        }
        _ => table.push_values(name, &values, None),
    }
}

//! AnnData's dataframes: a group with `encoding-type` = `dataframe`, a member for each column.
//!
//! `_index` names the member that is the index, `column-order` all others. A column is an array or
//! a group of two: `codes` and `categories`, or `values` and `mask`. Older files have a reference
//! to the categories as an attribute of the array of codes.

use std::sync::Arc;

use crate::error::{Error, Result, quoted};
use crate::memory::distinct::keep_first_of_each;
use crate::model::attribute_value::targets;
use crate::model::{Node, NodeKind};
use crate::view::table::column::{GroupTable, Missing, Source};
use crate::view::table::group::{ENCODING, Group, part_of};

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
    let rows = group.part(&index)?.rows();
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

/// The values of a column that is a group.
fn encoded(group: &Group<'_>, node: &Node, name: &[u8]) -> Result<Source> {
    let column = group.at(node.id);
    let encoding = column.text(ENCODING)?.unwrap_or_default();
    match &encoding[..] {
        b"categorical" => Ok(Source::Categories {
            codes: column.part(b"codes")?,
            names: Arc::new(Source::Values(column.part(b"categories")?)),
        }),
        b"nullable-integer" | b"nullable-boolean" | b"nullable-string-array" => {
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
        _ => {
            let what = format!("column {} of a dataframe", quoted(name));
            Err(Error::unsupported(what, None))
        }
    }
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

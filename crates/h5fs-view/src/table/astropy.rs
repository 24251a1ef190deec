//! astropy tables in ASDF: a mapping with the tag `table/table`, or `core/table` in older files.
//! Its sequence `columns` has the columns. In newer files, `colnames` has their names.
//!
//! A column is a mapping with its elements in `data`, or a quantity or a time with its elements in
//! `value`. If a column has several arrays, as coordinates have, each array is a column:
//! `position.ra`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use h5fs_reader::error::Result;
use h5fs_reader::model::extras::Mask;
use h5fs_reader::model::{Node, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;

use crate::elements::missing::parse_mask_number;
use crate::limits;
use crate::table::column::{GroupTable, MissingRule, RowField};
use crate::table::group::{Group, malformed_member_error, node_field, unsupported_member_error};

/// Maximum depth of nested mappings within a column.
const MAX_COLUMN_DEPTH: usize = 4;

/// Returns whether the ASDF tag of the group is the tag of an astropy table.
///
/// # Errors
/// Fails if the group cannot be read.
pub(super) fn is_table(group: &Group<'_>) -> Result<bool> {
    let node = group.container.node(group.id)?;
    let is_table = |tag: &str| {
        let name = tag.rsplit_once('-').map_or(tag, |(name, _)| name);
        name.ends_with("/table/table") || name.ends_with("core/table")
    };
    Ok(node.tag.as_deref().is_some_and(is_table))
}

/// Returns the table with the columns in their order.
///
/// # Errors
/// `Corrupt` if the group has no `columns`, or if the lengths of columns differ; `Unsupported` for
/// a column without an array.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let mut columns = AstropyColumns::default();
    let list = group.group_at(group.member(b"columns")?.id);
    let names = scalar_texts(group, b"colnames")?;
    let mut links = list.container.links(list.id)?;
    let mut number = 0;
    while let Some(link) = links.next()? {
        let Some(node) = list.follow_link(&link)? else {
            return Err(malformed_member_error(&link.name, "has no target"));
        };
        let own = match node.kind {
            NodeKind::Group => scalar_text(&list.group_at(node.id), b"name")?,
            _ => None,
        };
        let name = names.get(number).cloned().or(own).unwrap_or(link.name);
        columns.add(&list, &node, &name, MAX_COLUMN_DEPTH)?;
        number += 1;
        if columns.list.len() > limits::CSV_COLUMNS {
            break;
        }
    }
    let rows = columns.list.first().map_or(0, |(_, part)| part.rows());
    let mut table = GroupTable::with_row_count(rows);
    // Several columns may be aliases of the same array.
    let mut known: HashMap<NodeId, Option<MissingRule>> = HashMap::new();
    for (name, values) in columns.list {
        let missing = match known.entry(values.node) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(missing_values(group, &values)?),
        };
        table.push_values(&name, &values, missing.as_ref())?;
    }
    Ok(table)
}

/// The columns of an astropy table, while they are collected.
#[derive(Default)]
struct AstropyColumns {
    list: Vec<(Vec<u8>, RowField)>,
}

impl AstropyColumns {
    /// Adds the arrays of a column.
    ///
    /// # Errors
    /// `Unsupported` for a column without an array.
    fn add(&mut self, group: &Group<'_>, node: &Node, name: &[u8], depth: usize) -> Result<()> {
        let before = self.list.len();
        self.add_nested_columns(group, node, name, depth)?;
        if self.list.len() > before {
            Ok(())
        } else {
            Err(unsupported_member_error(name, "a column without arrays"))
        }
    }

    /// Adds the arrays in a column, or in a part of a column, which may contain no array.
    fn add_nested_columns(
        &mut self,
        group: &Group<'_>,
        node: &Node,
        name: &[u8],
        depth: usize,
    ) -> Result<()> {
        group.budget.spend_on_name(name.len())?;
        if let NodeKind::Array(_) = node.kind {
            let part = RowField::from_node(node)?;
            self.list.extend(part.map(|part| (name.to_vec(), part)));
            return Ok(());
        }
        let NodeKind::Group = node.kind else {
            return Ok(());
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(());
        };
        let column = group.group_at(node.id);
        for inner in [&b"data"[..], b"value"] {
            if let Some(inner) = column.find_member(inner)? {
                return self.add_nested_columns(&column, &inner, name, depth);
            }
        }
        let mut links = column.container.links(column.id)?;
        while let Some(link) = links.next()? {
            if self.list.len() > limits::CSV_COLUMNS {
                break;
            }
            if let Some(node) = column.follow_link(&link)? {
                self.add_nested_columns(&column, &node, &[name, b".", &link.name].concat(), depth)?;
            }
        }
        Ok(())
    }
}

/// Returns the rule for missing values of an array; `None` if the array does not have a mask.
fn missing_values(group: &Group<'_>, values: &RowField) -> Result<Option<MissingRule>> {
    let Some(extras) = group.container.asdf_extras() else {
        return Ok(None);
    };
    let mask = match extras.mask(values.node)? {
        None => return Ok(None),
        Some(Mask::Number(text)) => return parse_number_mask(group, &text).map(Some),
        Some(Mask::Node(node)) => node_field(&*group.container.node(node)?, b"mask")?,
        Some(Mask::Array(array)) => RowField::from_array(values.node, &array)?
            .ok_or_else(|| unsupported_member_error(b"mask", "a mask without rows"))?,
    };
    if mask.rows() != values.rows() {
        return Err(malformed_member_error(b"mask", "has an unexpected length"));
    }
    Ok(Some(MissingRule::MaskNotZero(mask)))
}

/// Parses a mask that is a number. Elements equal to this number are missing.
fn parse_number_mask(group: &Group<'_>, text: &[u8]) -> Result<MissingRule> {
    group.budget.spend(to_u64(text.len()))?;
    Ok(MissingRule::Number(parse_mask_number(text)?))
}

/// Returns the text of the scalar `name` in the group; `None` if there is no such scalar. The text
/// is charged to the budget, because many aliases may refer to one text.
fn scalar_text(group: &Group<'_>, name: &[u8]) -> Result<Option<Vec<u8>>> {
    let node = group.find_member(name)?;
    let Some(NodeKind::Scalar(scalar)) = node.as_ref().map(|node| &node.kind) else {
        return Ok(None);
    };
    group.budget.spend_on_name(scalar.text.len())?;
    Ok(Some(scalar.text.clone().into_bytes()))
}

/// Returns the texts of the scalars in the sequence `name` of the group. The result is empty if
/// there is no such sequence. A member that is not a scalar has an empty text.
fn scalar_texts(group: &Group<'_>, name: &[u8]) -> Result<Vec<Vec<u8>>> {
    let Some(sequence) = group.find_member(name)? else {
        return Ok(Vec::new());
    };
    let NodeKind::Group = sequence.kind else {
        return Ok(Vec::new());
    };
    let sequence = group.group_at(sequence.id);
    let mut texts = Vec::new();
    let mut links = sequence.container.links(sequence.id)?;
    while let Some(link) = links.next()? {
        if texts.len() >= limits::CSV_COLUMNS {
            break;
        }
        texts.push(scalar_text(&sequence, &link.name)?.unwrap_or_default());
    }
    Ok(texts)
}

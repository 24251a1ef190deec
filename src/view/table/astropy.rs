//! astropy's tables in ASDF: a mapping tagged `table/table`, or `core/table` of older files, with a
//! sequence `columns` and, of newer files, the names of these in `colnames`.
//!
//! A column is a mapping with its elements in `data`, or a quantity or a time with its elements in
//! `value`; what has several of them, as coordinates have, is a column each: `position.ra`.

use crate::error::Result;
use crate::limits;
use crate::model::extras::Mask;
use crate::model::{Node, NodeKind};
use crate::view::table::column::{GroupTable, Missing, Part};
use crate::view::table::group::{Group, missing, part_of};

/// Mappings within mappings that a column may be.
const DEPTH: usize = 4;

/// Whether the group is tagged as a table.
///
/// # Errors
/// As that cannot be found out now.
pub(super) fn is_named(group: &Group<'_>) -> Result<bool> {
    let node = group.container.node(group.id)?;
    let is_table = |tag: &str| {
        let name = tag.rsplit_once('-').map_or(tag, |(name, _)| name);
        name.ends_with("/table/table") || name.ends_with("core/table")
    };
    Ok(node.tag.as_deref().is_some_and(is_table))
}

/// The table: the columns in their order.
///
/// # Errors
/// `Corrupt` where there are no columns, or they differ in length.
pub(super) fn table(group: &Group<'_>) -> Result<GroupTable> {
    let mut columns = Columns::default();
    let list = group.at(group.member(b"columns")?.id);
    let names = texts(group, b"colnames")?;
    let mut links = list.container.links(list.id)?;
    let mut number = 0;
    while let Some(link) = links.next()? {
        let Some(node) = list.followed(&link)? else {
            return Err(missing(&link.name, "leads nowhere"));
        };
        let own = match node.kind {
            NodeKind::Group => text(&list.at(node.id), b"name")?,
            _ => None,
        };
        let name = names.get(number).cloned().or(own).unwrap_or(link.name);
        columns.add(&list, &node, name, DEPTH)?;
        number += 1;
        if columns.list.len() > limits::CSV_COLUMNS {
            break;
        }
    }
    let rows = columns.list.first().map_or(0, |(_, part)| part.rows());
    let mut table = GroupTable::of_rows(rows);
    for (name, values) in columns.list {
        let missing = missing_values(group, &values)?;
        table.push_values(&name, &values, missing.as_ref())?;
    }
    Ok(table)
}

/// The arrays that are columns, with their names.
#[derive(Default)]
struct Columns {
    list: Vec<(Vec<u8>, Part)>,
}

impl Columns {
    /// Adds the arrays that a column is made of.
    fn add(&mut self, group: &Group<'_>, node: &Node, name: Vec<u8>, depth: usize) -> Result<()> {
        if let NodeKind::Array(_) = node.kind {
            self.list.extend(Part::of(node)?.map(|part| (name, part)));
            return Ok(());
        }
        let NodeKind::Group = node.kind else {
            return Ok(());
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(());
        };
        let column = group.at(node.id);
        for inner in [&b"data"[..], b"value"] {
            if let Some(inner) = column.find(inner)? {
                return self.add(&column, &inner, name, depth);
            }
        }
        let mut links = column.container.links(column.id)?;
        while let Some(link) = links.next()? {
            let inner = [&name[..], b".", &link.name].concat();
            if self.list.len() > limits::CSV_COLUMNS {
                break;
            }
            if let Some(node) = column.followed(&link)? {
                self.add(&column, &node, inner, depth)?;
            }
        }
        Ok(())
    }
}

/// How missing values are known; `None` where none is missing.
fn missing_values(group: &Group<'_>, values: &Part) -> Result<Option<Missing>> {
    let Some(extras) = group.container.extras() else {
        return Ok(None);
    };
    let mask = match extras.mask(values.node)? {
        None => return Ok(None),
        Some(Mask::Number(text)) => {
            let text = text.strip_suffix(b"\n").unwrap_or(&text);
            return Ok(Some(Missing::Number(text.to_vec())));
        }
        Some(Mask::Node(node)) => part_of(&*group.container.node(node)?, b"mask")?,
        Some(Mask::Array(array)) => Part::of_array(values.node, &array)?
            .ok_or_else(|| missing(b"mask", "is no array with rows"))?,
    };
    if mask.rows() != values.rows() {
        return Err(missing(b"mask", "has another length"));
    }
    Ok(Some(Missing::Where(mask)))
}

/// The text of a scalar of the group.
fn text(group: &Group<'_>, name: &[u8]) -> Result<Option<Vec<u8>>> {
    let node = group.find(name)?;
    Ok(node.and_then(|node| match &node.kind {
        NodeKind::Scalar(scalar) => Some(scalar.text.clone().into_bytes()),
        _ => None,
    }))
}

/// The texts of a sequence of scalars in the group.
fn texts(group: &Group<'_>, name: &[u8]) -> Result<Vec<Vec<u8>>> {
    let Some(sequence) = group.find(name)? else {
        return Ok(Vec::new());
    };
    let NodeKind::Group = sequence.kind else {
        return Ok(Vec::new());
    };
    let sequence = group.at(sequence.id);
    let mut texts = Vec::new();
    let mut links = sequence.container.links(sequence.id)?;
    while let Some(link) = links.next()? {
        if texts.len() >= limits::CSV_COLUMNS {
            break;
        }
        texts.push(text(&sequence, &link.name)?.unwrap_or_default());
    }
    Ok(texts)
}

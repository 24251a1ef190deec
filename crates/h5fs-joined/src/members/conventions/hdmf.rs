//! HDMF's dynamic tables, which NWB uses too: rows, lists (`VectorIndex`), references to rows
//! (`DynamicTableRegion`) and enumerations.

use h5fs_reader::error::Result;

use crate::members::convention::{ConventionRules, ElementRelation, MemberTable};
use crate::members::conventions::described::{MemberObjects, ancestors};
use crate::paths::{Path, child_path, split_path};

/// Returns HDMF's rules for an array of a dynamic table, or `None` for any other array.
///
/// # Errors
/// Fails if an attribute cannot be read now.
pub(super) fn convention(file: &MemberObjects<'_>, path: &Path) -> Result<Option<ConventionRules>> {
    let is_region = file.attribute_text(path, b"neurodata_type") == Some(b"DynamicTableRegion");
    let group = ancestors(path).next().unwrap_or_default();
    if !is_table(file, group) {
        let why = "references to rows outside a table are not joined";
        return Ok(is_region.then(|| ConventionRules::new_refused(why)));
    }
    let name = split_path(path).1;
    let columns = file.attribute_texts(group, b"colnames");
    let ids = child_path(group, b"id");
    if name == b"id" {
        return Ok(Some(ConventionRules::new_rows().with_table_rows(Some(ids))));
    }
    // Values of lists are not rows. The ends of lists within lists are not rows either.
    let is_of_rows = !file.has_object(&[&path[..], b"_index"].concat());
    let table = is_of_rows.then_some(ids);
    let column = column_name(file, path)?;
    let whole = child_path(group, &column);
    if !columns.contains(&column) {
        // The names of an enumeration, or an array that is not a column.
        let is_enumeration = name
            .strip_suffix(b"_elements")
            .is_some_and(|base| columns.iter().any(|own| own == base));
        return Ok(is_enumeration.then(|| ConventionRules::new_names(None)));
    }
    let is_list = file.has_object(&[&whole[..], b"_index"].concat());
    let own = if is_list {
        ConventionRules::new_rows().with_required_group(&whole)
    } else {
        ConventionRules::new_rows()
    };
    let own = own.with_table_rows(table);
    if name != column {
        // The name of an index contains the name of its array.
        let values = name.strip_suffix(b"_index").unwrap_or(name);
        let values = child_path(group, values);
        let own = own.with_reference(b"target", &values);
        return Ok(Some(own.with_relation(ElementRelation::ListEndsIn(values))));
    }
    if let Some(names) = file.attribute_target(path, b"elements")? {
        let own = own.with_reference(b"elements", names);
        let names = Path::clone(names);
        let is_ordered = false;
        return Ok(Some(
            own.with_relation(ElementRelation::Codes { names, is_ordered }),
        ));
    }
    if is_region {
        let table = file.attribute_target(path, b"table")?;
        let table = table.map(|table| (table, child_path(table, b"id")));
        let table = table.filter(|(_, ids)| file.array(ids).is_some());
        return Ok(Some(match table {
            Some((table, ids)) => own
                .with_reference(b"table", table)
                .with_relation(ElementRelation::RowsOf(ids)),
            None => ConventionRules::new_refused(
                "the file does not contain the table that it refers to",
            ),
        }));
    }
    Ok(Some(own))
}

fn is_table(file: &MemberObjects<'_>, group: &[u8]) -> bool {
    file.attribute(group, b"colnames").is_some() && file.array(&child_path(group, b"id")).is_some()
}

/// Returns the name of the column to which an array of values, or an index array, belongs.
fn column_name(file: &MemberObjects<'_>, path: &Path) -> Result<Vec<u8>> {
    let mut path = Path::clone(path);
    while let Some(base) = split_path(&path).1.strip_suffix(b"_index") {
        let above = child_path(split_path(&path).0, base);
        let target = file.attribute_target(&path, b"target")?;
        if !target.is_some_and(|target| file.is_same_object(target, &above)) {
            break;
        }
        path = above;
    }
    Ok(split_path(&path).1.to_vec())
}

/// Returns the table that a dynamic-table group represents, or `None` for any other group.
pub(super) fn table(file: &MemberObjects<'_>, group: &Path) -> Option<MemberTable> {
    is_table(file, group).then(|| MemberTable {
        group: Path::clone(group),
        rows: child_path(group, b"id"),
        columns: Some((
            b"colnames".to_vec(),
            file.attribute_texts(group, b"colnames"),
        )),
        has_files: true,
    })
}

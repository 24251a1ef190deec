//! The tables of pandas' `HDFStore`: rows of the formats `table` and `fixed`, and categories of
//! columns.

use std::collections::HashSet;

use h5fs_conventions::pandas_categories::members_with_ordered_categories;
use h5fs_reader::model::datatype::Class;

use crate::members::convention::{CodedField, ConventionRules, ElementRelation, MemberTable};
use crate::members::conventions::described::{MemberObjects, ancestors, names_between};
use crate::members::skeleton::NamedAttribute;
use crate::paths::{Path, child_path};

/// Attributes of a group that are necessary to interpret its rows.
const GROUP_ATTRIBUTES: [&[u8]; 6] = [
    b"info",
    b"non_index_axes",
    b"levels",
    b"nan_rep",
    b"data_col_nan_rep",
    b"encoding",
];

/// Suffixes of the attributes of `table` that are necessary to interpret a field.
const FIELD_SUFFIXES: [&[u8]; 4] = [b"_kind", b"_dtype", b"_meta", b"_nan_rep"];

/// Returns the rules of pandas for an array of a frame or a series, or `None` for any other array.
pub(super) fn convention(file: &MemberObjects<'_>, path: &Path) -> Option<ConventionRules> {
    let frame = enclosing_frame(file, path)?;
    let names = names_between(&frame, path);
    let is_table = file
        .attribute_text(&frame, b"pandas_type")?
        .ends_with(b"_table");
    Some(match names[..] {
        [b"table"] if is_table => rows_convention(file, &frame, path),
        [b"meta", _, b"meta", b"table"] if is_table => ConventionRules::new_names(None),
        [.., b"_i_table", _, _] => index_convention(path),
        [name] if !is_table => fixed_format_convention(file, &frame, name, path),
        _ => ConventionRules::default(),
    })
}

/// Returns the rules for an array of the index that PyTables uses to find rows of a table.
fn index_convention(path: &Path) -> ConventionRules {
    let whole = ancestors(path).nth(1).unwrap_or_default();
    let why = "an index of PyTables applies to one file and is not joined";
    ConventionRules::default()
        .with_required_group(&whole.into())
        .with_relation(ElementRelation::RefusedWithGroup(why.to_owned()))
}

/// Returns the group of the frame that contains an array. A table of categories belongs to the
/// frame of its column.
fn enclosing_frame(file: &MemberObjects<'_>, path: &[u8]) -> Option<Path> {
    let mut groups: Vec<&[u8]> = ancestors(path).collect();
    groups.reverse();
    let mut frame: Option<&[u8]> = None;
    for group in groups {
        let is_meta = frame
            .is_some_and(|frame| matches!(names_between(frame, group)[..], [b"meta", _, b"meta"]));
        if file.attribute_text(group, b"pandas_type").is_some() && !is_meta {
            frame = Some(group);
        }
    }
    frame.map(Into::into)
}

/// Returns the rules for an array of rows in the format `table`.
fn rows_convention(file: &MemberObjects<'_>, frame: &[u8], path: &Path) -> ConventionRules {
    let fields = coded_fields(file, frame, path);
    let of_group = file.attributes(frame).iter();
    let of_group = of_group.filter(|(name, _)| GROUP_ATTRIBUTES.contains(&&**name));
    let of_fields = file.attributes(path).iter();
    let of_fields = of_fields.filter(|own| is_field_attribute(own));
    let relation = if fields.is_empty() {
        ElementRelation::None
    } else {
        ElementRelation::Fields(fields)
    };
    ConventionRules {
        terms: of_group.chain(of_fields).cloned().collect(),
        ..ConventionRules::new_rows().with_relation(relation)
    }
}

/// Returns the fields of the rows that contain numbers of categories.
fn coded_fields(file: &MemberObjects<'_>, frame: &[u8], path: &Path) -> Vec<CodedField> {
    let ordered = file.attribute(frame, b"info").map(|info| {
        let is_text = matches!(info.datatype.class, Class::String { .. });
        let known = is_text.then(|| members_with_ordered_categories(&info.elements));
        known.flatten()
    });
    let meta = child_path(frame, b"meta");
    let named = file.attributes(path).iter().filter_map(|(name, _)| {
        let field = name.strip_suffix(b"_meta")?;
        let is_category = file.attribute_text(path, name) == Some(b"category");
        is_category.then(|| CodedField {
            name: field.to_vec(),
            names: child_path(&child_path(&meta, field), b"meta/table"),
            is_ordered: is_ordered(ordered.as_ref(), field),
        })
    });
    named.collect()
}

/// Returns whether the categories of a field are ordered, according to the attribute `info` of the
/// frame. If `info` cannot be decoded, the categories are assumed to be ordered, because ordered
/// categories are joined only if they are equal.
fn is_ordered(info: Option<&Option<HashSet<Vec<u8>>>>, field: &[u8]) -> bool {
    match info {
        None => false,
        Some(None) => true,
        Some(Some(ordered)) => ordered.contains(field),
    }
}

/// Returns whether an attribute is necessary to interpret a field. The text length in `_dtype` is
/// not, because it may differ between files.
fn is_field_attribute((name, content): &NamedAttribute) -> bool {
    let is_length = name.ends_with(b"_dtype") && content.elements.starts_with(b"bytes");
    FIELD_SUFFIXES.iter().any(|end| name.ends_with(end)) && !is_length
}

/// Returns the rules for an array `name` of a frame in the format `fixed`.
fn fixed_format_convention(
    file: &MemberObjects<'_>,
    frame: &[u8],
    name: &[u8],
    path: &Path,
) -> ConventionRules {
    let whole = Path::from(frame);
    let is_pickled = file
        .array(path)
        .is_some_and(|array| matches!(array.datatype.class, Class::VariableLength(_)));
    let is_transposed = file.attribute(path, b"transposed");
    let is_transposed = is_transposed.is_some_and(|own| own.elements.iter().any(|&byte| byte != 0));
    let own = match name {
        _ if is_pickled => ConventionRules::new_refused("Python objects are not joined"),
        b"axis0" => ConventionRules::default().with_first_dimension_equal(),
        b"axis1" | b"index" | b"values" => ConventionRules::new_rows(),
        _ if !name.starts_with(b"block") => {
            ConventionRules::new_refused("an index of several levels is not joined")
        }
        _ if name.ends_with(b"_items") => ConventionRules::default().with_first_dimension_equal(),
        _ if name.ends_with(b"_values") && is_transposed => ConventionRules::new_rows(),
        _ => {
            ConventionRules::new_refused("columns of this kind in the format fixed are not joined")
        }
    };
    let terms = file.attributes(path).iter();
    let terms = terms.filter(|(name, _)| {
        matches!(
            &name[..],
            b"kind" | b"value_type" | b"tz" | b"freq" | b"index_class" | b"name"
        )
    });
    let terms = terms.cloned().collect();
    ConventionRules {
        terms,
        ..own.with_required_group(&whole)
    }
}

/// Returns the table that the group of a frame or a series represents, or `None` for any other
/// group.
pub(super) fn table(file: &MemberObjects<'_>, group: &Path) -> Option<MemberTable> {
    file.attribute_text(group, b"pandas_type")?;
    let names = [&b"table"[..], b"axis1", b"index"].map(|name| child_path(group, name));
    let rows = names.into_iter().find(|path| file.array(path).is_some())?;
    let is_meta = enclosing_frame(file, &child_path(group, b"table"))? != *group;
    (!is_meta).then(|| MemberTable {
        group: Path::clone(group),
        rows,
        columns: None,
        has_files: true,
    })
}

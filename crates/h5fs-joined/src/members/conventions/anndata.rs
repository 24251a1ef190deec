//! AnnData and MuData: rows of `obs`, `X`, `layers` and `obsm`; categories; sparse matrices.
//!
//! The rules equal `anndata.concat` with the axis `obs`. Arrays in `var`, `varm`, `varp` and `uns`
//! are shown if they are equal in all files, and `obsp` is not joined.

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::decode_integers;
use h5fs_reader::model::datatype::Class;

use crate::members::convention::{
    CodedField, ConventionRules, ElementRelation, FirstDimensionMeaning, MemberTable,
};
use crate::members::conventions::described::{MemberObjects, ancestors, names_between};
use crate::paths::{Path, child_path};

/// Returns AnnData's rules for the array at `path`. Returns `None` if the array is neither in an
/// AnnData file nor in a group with an AnnData encoding.
///
/// # Errors
/// Fails if an attribute cannot be read now.
pub(super) fn convention(file: &MemberObjects<'_>, path: &Path) -> Result<Option<ConventionRules>> {
    if let Some(root) = ancestors(path).find(|above| is_anndata_object(file, above)) {
        let own = root_array_convention(file, root, path)?;
        let table = row_labels(file, &child_path(root, b"obs"));
        return Ok(Some(add_table_rows(file, own, path, table)));
    }
    let encoded =
        ancestors(path).filter(|above| encoding(file, above).is_some_and(is_known_encoding));
    if let Some(base) = encoded.last() {
        let own = value_convention(file, base, path, None)?;
        let table = row_labels(file, base);
        return Ok(Some(add_table_rows(file, own, path, table)));
    }
    let group = ancestors(path).next().unwrap_or_default();
    let is_matrix = [&b"data"[..], b"indices", b"indptr"]
        .iter()
        .all(|name| file.array(&child_path(group, name)).is_some());
    let name = names_between(group, path).pop().unwrap_or_default();
    let is_part = matches!(name, b"data" | b"indices" | b"indptr" | b"shape");
    Ok((is_matrix && is_part).then(|| {
        let why = "a sparse matrix without encoding-type is not supported here";
        ConventionRules::new_refused(why).with_required_group(&group.into())
    }))
}

/// Adds the array with the rows of the table to the rules of an array. The stored values of a
/// sparse matrix are not rows.
fn add_table_rows(
    file: &MemberObjects<'_>,
    own: ConventionRules,
    path: &[u8],
    table: Option<Path>,
) -> ConventionRules {
    let group = ancestors(path).next().unwrap_or_default();
    let is_entry = encoding(file, group).is_some_and(is_sparse);
    let has_rows = own.rows == FirstDimensionMeaning::TableRows && !is_entry;
    own.with_table_rows(table.filter(|_| has_rows))
}

fn encoding<'a>(file: &MemberObjects<'a>, group: &[u8]) -> Option<&'a [u8]> {
    let own = file.attribute_text(group, b"encoding-type");
    let own = own.filter(|_| file.is_group(group));
    own.or_else(|| file.attribute_text(group, b"h5sparse_format"))
}

fn is_known_encoding(encoding: &[u8]) -> bool {
    matches!(encoding, b"dataframe" | b"categorical" | b"awkward-array")
        || is_sparse(encoding)
        || encoding.starts_with(b"nullable-")
}

fn is_sparse(encoding: &[u8]) -> bool {
    matches!(encoding, b"csr_matrix" | b"csc_matrix" | b"csr" | b"csc")
}

/// Returns whether a group is an AnnData object. Versions before 0.8 do not write the attribute
/// that marks such a group.
fn is_anndata_object(file: &MemberObjects<'_>, group: &[u8]) -> bool {
    let is_named = encoding(file, group).is_some_and(|is| matches!(is, b"anndata" | b"MuData"));
    let is_there = |name: &[u8]| file.has_object(&child_path(group, name));
    is_named || group.is_empty() && [&b"X"[..], b"obs", b"var"].into_iter().all(is_there)
}

/// Returns the rules for an array in the AnnData object at `root`.
fn root_array_convention(
    file: &MemberObjects<'_>,
    root: &[u8],
    path: &Path,
) -> Result<ConventionRules> {
    let names = names_between(root, path);
    let first = names.first().copied().unwrap_or_default();
    let base = child_path(root, first);
    // The entry of a mapping that contains the array.
    let part = match names.get(1) {
        Some(second) => child_path(&base, second),
        None => Path::clone(&base),
    };
    match first {
        b"obs" => value_convention(file, &base, path, None),
        b"X" => value_convention(
            file,
            &base,
            path,
            row_labels(file, &child_path(root, b"var")),
        ),
        b"layers" => value_convention(
            file,
            &part,
            path,
            row_labels(file, &child_path(root, b"var")),
        ),
        b"obsm" => value_convention(file, &part, path, None),
        b"raw" if names.get(1) == Some(&&b"X"[..]) => value_convention(
            file,
            &part,
            path,
            row_labels(file, &child_path(&base, b"var")),
        ),
        b"raw.X" => value_convention(
            file,
            &base,
            path,
            row_labels(file, &child_path(root, b"raw.var")),
        ),
        b"obsp" => Ok(ConventionRules::new_refused(
            "pairs of rows refer to one file and are not joined",
        )),
        b"obsmap" => Ok(ConventionRules::new_refused(
            "row numbers refer to one file and are not joined",
        )),
        b"uns" if is_category_name_list(file, root, path) => Ok(ConventionRules::new_names(None)),
        _ => Ok(value_convention(file, &base, path, None)?.with_first_dimension_equal()),
    }
}

/// Returns whether an array of `uns` contains the category names of a record field (AnnData before
/// version 0.6).
fn is_category_name_list(file: &MemberObjects<'_>, root: &[u8], path: &[u8]) -> bool {
    let tables = [&b"obs"[..], b"var"].map(|name| child_path(root, name));
    let mut fields = tables
        .iter()
        .flat_map(|table| coded_fields(file, root, table));
    fields.any(|field| *field.names == *path)
}

/// Returns the fields of a record table whose category names are in `uns`. AnnData before version
/// 0.6 did not store an order of these names.
fn coded_fields(file: &MemberObjects<'_>, root: &[u8], table: &[u8]) -> Vec<CodedField> {
    let class = file.array(table).map(|array| &array.datatype.class);
    let Some(Class::Compound(members)) = class else {
        return Vec::new();
    };
    let uns = child_path(root, b"uns");
    let named = members.iter().map(|member| {
        let list = [&member.name[..], b"_categories"].concat();
        CodedField {
            name: member.name.clone(),
            names: child_path(&uns, &list),
            is_ordered: false,
        }
    });
    named
        .filter(|field| file.array(&field.names).is_some())
        .collect()
}

/// Returns the array with the row labels of a dataframe.
fn row_labels(file: &MemberObjects<'_>, table: &[u8]) -> Option<Path> {
    if file.array(table).is_some() {
        return Some(table.into());
    }
    let name = file.attribute_text(table, b"_index").unwrap_or(b"_index");
    let index = child_path(table, name);
    let values = child_path(&index, b"values");
    [index, values]
        .into_iter()
        .find(|path| file.array(path).is_some())
}

/// Returns the rules for the array at `path`, which is the value at `base` or part of it. `labels`
/// is the array with the column labels of the value.
fn value_convention(
    file: &MemberObjects<'_>,
    base: &[u8],
    path: &Path,
    labels: Option<Path>,
) -> Result<ConventionRules> {
    let (mut group, mut labels) = (base, labels);
    for child in names_between(base, path) {
        match encoding(file, group) {
            None | Some(b"dict" | b"dataframe" | b"raw" | b"anndata") => {
                if child == b"__categories" {
                    return Ok(ConventionRules::new_names(None));
                }
            }
            Some(encoding) => {
                return Ok(encoded_part_convention(
                    file,
                    (group, encoding),
                    child,
                    labels,
                ));
            }
        }
        // The labels are those of the value itself, not of what a mapping contains.
        labels = None;
        group = prefix_to_child(group, child, path);
    }
    plain_array_convention(file, path, labels)
}

/// Returns the path of `child`, which is a member of `group` and a parent of the object at `path`.
fn prefix_to_child<'p>(group: &[u8], child: &[u8], path: &'p [u8]) -> &'p [u8] {
    let slash = usize::from(!group.is_empty());
    let end = group.len() + slash + child.len();
    path.get(..end).unwrap_or(path)
}

/// Returns the rules for an array below `child` of a group with an encoding.
fn encoded_part_convention(
    file: &MemberObjects<'_>,
    (group, encoding): (&[u8], &[u8]),
    child: &[u8],
    labels: Option<Path>,
) -> ConventionRules {
    let whole = Path::from(group);
    match encoding {
        b"categorical" => categorical_convention(file, &whole, child),
        b"csr_matrix" | b"csr" => compressed_rows(file, &whole, child, labels),
        encoding if encoding.starts_with(b"nullable-") => {
            ConventionRules::new_rows().with_required_group(&whole)
        }
        encoding if is_sparse(encoding) => {
            let why = "a matrix compressed by columns (csc) is not joined along its rows";
            ConventionRules::new_refused(why).with_required_group(&whole)
        }
        encoding => {
            let encoding = encoding.escape_ascii();
            let why = format!("encoding-type {encoding} is not supported here");
            ConventionRules::new_refused(why).with_required_group(&whole)
        }
    }
}

/// Returns the rules for the codes or the categories of a categorical column.
fn categorical_convention(
    file: &MemberObjects<'_>,
    column: &Path,
    child: &[u8],
) -> ConventionRules {
    let names = child_path(column, b"categories");
    if file.is_group(&names) {
        // Categories with missing names are a group of values and mask.
        let why = "categories that are a group are not supported in joined files";
        return ConventionRules::new_refused(why).with_required_group(column);
    }
    if child == b"categories" {
        return ConventionRules::new_names(Some(Path::clone(column)));
    }
    let is_ordered = is_ordered(file, column);
    let codes = ElementRelation::Codes { names, is_ordered };
    ConventionRules::new_rows()
        .with_required_group(column)
        .with_relation(codes)
}

/// Returns whether the attribute `ordered` of a group or an array is true.
fn is_ordered(file: &MemberObjects<'_>, path: &[u8]) -> bool {
    let ordered = file.attribute(path, b"ordered");
    ordered.is_some_and(|own| own.elements.iter().any(|&byte| byte != 0))
}

/// Returns the rules for an array of a matrix that is compressed by rows (csr).
fn compressed_rows(
    file: &MemberObjects<'_>,
    matrix: &Path,
    child: &[u8],
    labels: Option<Path>,
) -> ConventionRules {
    let own = ConventionRules {
        labels,
        ..ConventionRules::new_rows().with_required_group(matrix)
    };
    if child != b"indptr" {
        return own;
    }
    ConventionRules {
        rows: FirstDimensionMeaning::RowEnds,
        relation: ElementRelation::SparseRowEnds {
            entries: child_path(matrix, b"data"),
            columns: sparse_column_count(file, matrix),
        },
        ..own
    }
}

/// Returns the number of columns of a sparse matrix.
fn sparse_column_count(file: &MemberObjects<'_>, group: &[u8]) -> Option<u64> {
    let shape = file.attribute(group, b"shape");
    let shape = shape.or_else(|| file.attribute(group, b"h5sparse_shape"))?;
    let numbers = decode_integers(&shape.datatype, &shape.elements)?;
    u64::try_from(*numbers.get(1)?).ok()
}

fn plain_array_convention(
    file: &MemberObjects<'_>,
    path: &Path,
    labels: Option<Path>,
) -> Result<ConventionRules> {
    let own = ConventionRules {
        labels,
        ..ConventionRules::new_rows()
    };
    // Before version 0.8, the codes of a column refer to their categories.
    if let Some(names) = file.attribute_target(path, b"categories")? {
        let is_ordered = is_ordered(file, names);
        let own = own.with_reference(b"categories", names);
        let names = Path::clone(names);
        return Ok(own.with_relation(ElementRelation::Codes { names, is_ordered }));
    }
    let root = ancestors(path).next().unwrap_or_default();
    let fields = coded_fields(file, root, path);
    Ok(if fields.is_empty() {
        own
    } else {
        own.with_relation(ElementRelation::Fields(fields))
    })
}

/// Returns the table that a dataframe group represents, or `None` for any other group.
pub(super) fn table(file: &MemberObjects<'_>, group: &Path) -> Option<MemberTable> {
    if encoding(file, group) != Some(b"dataframe") {
        return None;
    }
    let root = ancestors(group).find(|above| is_anndata_object(file, above));
    let first = root.map(|root| names_between(root, group).first().copied());
    Some(MemberTable {
        group: Path::clone(group),
        rows: row_labels(file, group)?,
        columns: Some((
            b"column-order".to_vec(),
            file.attribute_texts(group, b"column-order"),
        )),
        has_files: matches!(first, None | Some(Some(b"obs"))),
    })
}

//! Tables of the joined file: their columns, the column with the file of each row, and arrays that
//! are omitted because an array that they need is omitted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5fs_reader::model::array::Fill;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::ByteOrder;
use h5fs_reader::model::{Datatype, Shape};
use h5fs_reader::wire::Count;

use crate::files::FileNames;
use crate::joined_array::{ArrayContent, JoinedArray, OutputDimension};
use crate::limits;
use crate::members::content::{text_attribute, text_list_attribute};
use crate::members::convention::{ConventionRules, ElementRelation, MemberTable};
use crate::members::skeleton::NamedAttribute;
use crate::paths::{Omission, Path, child_path, split_path};
use crate::variable::comparison::MemberComparison;

/// The path of a group, and the group's attributes.
pub(super) type GroupAttributes = (Path, Vec<NamedAttribute>);

/// Omits the arrays that are meaningless because an array that they depend on is absent from the
/// joined file.
pub(super) fn omit_dependents(
    compared: &MemberComparison<'_>,
    arrays: &mut Vec<JoinedArray>,
    absent: &mut Vec<Path>,
    omissions: &mut Vec<Omission>,
) {
    let paths = compared.variables();
    let conventions = paths.iter().filter_map(|path| {
        let alike = compared.variable(path);
        let convention = &alike.skeleton_variables.first()?.variable.convention;
        (*convention != ConventionRules::default()).then_some((path, convention))
    });
    let conventions: HashMap<&Path, &ConventionRules> = conventions.collect();
    loop {
        let gone: HashSet<Path> = absent.iter().cloned().collect();
        let reasons = AbsentArrayIndex::new(&conventions, &gone);
        let before = absent.len();
        arrays.retain(|made| {
            let own = conventions.get(&made.path);
            let Some(other) = own.and_then(|own| reasons.absent_array(&made.path, own)) else {
                return true;
            };
            omissions.push(Omission {
                subject: format!("/{}", made.path.escape_ascii()),
                reason: format!("it needs /{}, which is absent", other.escape_ascii()),
            });
            absent.push(Path::clone(&made.path));
            false
        });
        if absent.len() == before {
            return;
        }
    }
}

/// Returns the path under which the absence of an array is reported. An array that is useless
/// without the other arrays of its group is reported as the group.
pub(super) fn reported_path(compared: &MemberComparison<'_>, path: Path) -> Path {
    let alike = compared.variable(&path);
    let convention = alike
        .skeleton_variables
        .first()
        .map(|own| &own.variable.convention);
    match convention {
        Some(own) if matches!(own.relation, ElementRelation::RefusedWithGroup(_)) => {
            own.whole.clone().unwrap_or(path)
        }
        _ => path,
    }
}

/// The arrays that are absent from the joined file, indexed by the groups and the arrays of names
/// through which other arrays depend on them.
struct AbsentArrayIndex<'a> {
    absent: &'a HashSet<Path>,
    /// For a group whose arrays are meaningful only together, one of its absent arrays.
    absent_in_group: HashMap<&'a Path, &'a Path>,
    /// For an array of names, an absent array that contains the numbers of these names.
    absent_by_names: HashMap<&'a Path, &'a Path>,
}

impl<'a> AbsentArrayIndex<'a> {
    fn new(
        conventions: &HashMap<&'a Path, &'a ConventionRules>,
        absent: &'a HashSet<Path>,
    ) -> Self {
        let mut reasons = AbsentArrayIndex {
            absent,
            absent_in_group: HashMap::new(),
            absent_by_names: HashMap::new(),
        };
        for path in absent {
            let Some(own) = conventions.get(path) else {
                continue;
            };
            reasons
                .absent_in_group
                .extend(own.whole.as_ref().map(|whole| (whole, path)));
            let targets = own.relation.target_arrays().into_iter();
            reasons
                .absent_by_names
                .extend(targets.map(|target| (target, path)));
        }
        reasons
    }

    /// Returns the absent array that makes the array at `path` meaningless, if there is one.
    fn absent_array(&self, path: &Path, own: &'a ConventionRules) -> Option<&'a Path> {
        let of_whole = own
            .whole
            .as_ref()
            .and_then(|whole| self.absent_in_group.get(whole));
        let targets = own.relation.target_arrays();
        let target = targets
            .into_iter()
            .find(|target| self.absent.contains(*target));
        let user = match own.relation {
            ElementRelation::Names => self.absent_by_names.get(path),
            _ => None,
        };
        target.or(of_whole.copied()).or(user.copied())
    }
}

/// Returns the tables that the joined file contains. Each table has the columns of all members, in
/// the order of their first occurrence.
fn merge_tables(compared: &MemberComparison<'_>) -> Vec<MemberTable> {
    let mut all: Vec<MemberTable> = Vec::new();
    let mut known: HashMap<Path, usize> = HashMap::new();
    for table in compared.tables() {
        let place = *known.entry(Path::clone(&table.group)).or_insert(all.len());
        let Some(first) = all.get_mut(place) else {
            all.push(table.clone());
            continue;
        };
        if let (Some((_, columns)), Some((_, more))) = (&mut first.columns, &table.columns) {
            let known: HashSet<&Vec<u8>> = columns.iter().collect();
            let new = more.iter().filter(|name| !known.contains(name));
            let left = limits::JOINED_OBJECTS.minus_or_zero(columns.len());
            let new: Vec<_> = new.take(left).cloned().collect();
            columns.extend(new);
        }
    }
    all
}

/// Adds to each table a column with the name of each row's file. Also updates the attributes of
/// groups that list the columns or contain the shape of a sparse matrix.
pub(super) fn complete_tables(
    compared: &MemberComparison<'_>,
    arrays: &mut Vec<JoinedArray>,
    groups: &mut [GroupAttributes],
) {
    for table in merge_tables(compared) {
        let files = file_name_column(compared, &table, arrays);
        let name = files.as_ref().map(|made| split_path(&made.path).1.to_vec());
        arrays.extend(files);
        let Some((attribute, columns)) = &table.columns else {
            continue;
        };
        let is_there = |name: &Vec<u8>| {
            let path = child_path(&table.group, name);
            let within = [&path[..], b"/"].concat();
            let mut all = arrays.iter().map(|made| &made.path);
            all.any(|own| *own == path || own.starts_with(&within))
        };
        let shown = columns.iter().filter(|name| is_there(name)).cloned();
        let shown: Vec<_> = shown.chain(name).collect();
        // If the list is equal in all files, the stored attribute is kept.
        let is_listed = has_attribute(groups, &table.group, attribute) && shown == *columns;
        if is_listed {
            continue;
        }
        set_attribute(groups, &table.group, attribute, text_list_attribute(&shown));
    }
    if compared.placed_members.members.len() < 2 {
        return;
    }
    for made in &*arrays {
        if let Some(shape) = matrix_shape(compared, made) {
            set_attribute(groups, split_path(&made.path).0, b"shape", shape);
        }
    }
}

fn has_attribute(groups: &[GroupAttributes], path: &[u8], name: &[u8]) -> bool {
    let mut all = groups.iter().filter(|(own, _)| **own == *path);
    all.any(|(_, attributes)| attributes.iter().any(|(own, _)| own == name))
}

fn set_attribute(
    groups: &mut [GroupAttributes],
    path: &[u8],
    name: &[u8],
    value: AttributeContent,
) {
    let mut all = groups.iter_mut();
    if let Some((_, attributes)) = all.find(|(own, _)| **own == *path) {
        attributes.retain(|(own, _)| own != name);
        attributes.push((name.to_vec(), value));
    }
}

/// Returns the column with the file names of a table, or `None` if the rows of the table are not
/// joined.
fn file_name_column(
    compared: &MemberComparison<'_>,
    table: &MemberTable,
    arrays: &[JoinedArray],
) -> Option<JoinedArray> {
    let rows = arrays.iter().find(|made| made.path == table.rows)?;
    let rows = rows.dims.first().filter(|_| table.has_files)?;
    let placement = &compared.placed_members.placement;
    let at = placement.find_dimension(&rows.key)?;
    placement.axes.get(at.0).filter(|axis| axis.has_tables)?;
    (compared.placed_members.members.len() > 1).then_some(())?;
    let files = FileNames {
        placed_members: Arc::clone(compared.placed_members),
        row_dimension: at,
    };
    let text = |name: &[u8], value: &[u8]| (name.to_vec(), text_attribute(value));
    let attributes = match &table.columns {
        Some((order, _)) if order == b"column-order" => vec![
            text(b"encoding-type", b"string-array"),
            text(b"encoding-version", b"0.2.0"),
        ],
        Some(_) => vec![
            text(b"description", b"the file that the row is from"),
            text(b"namespace", b"hdmf-common"),
            text(b"neurodata_type", b"VectorData"),
        ],
        None => Vec::new(),
    };
    Some(JoinedArray {
        path: unused_path(compared, table),
        datatype: files.datatype(compared.members),
        dims: vec![OutputDimension {
            key: Path::clone(&rows.key),
            has_name: rows.has_name,
            length: rows.length,
            is_joined: true,
        }],
        fill: Fill::Zero,
        chunk_shape: None,
        is_scale: false,
        is_scale_without_values: false,
        attributes,
        reference_attributes: Vec::new(),
        content: ArrayContent::FileNames(files),
    })
}

/// Returns the path of the column with the file names. The column is called `file`, with
/// underscores appended until no file has a column with this name.
fn unused_path(compared: &MemberComparison<'_>, table: &MemberTable) -> Path {
    let taken: HashSet<Path> = compared
        .variables()
        .into_iter()
        .chain(compared.groups())
        .collect();
    let mut name = b"file".to_vec();
    while taken.contains(&child_path(&table.group, &name)) {
        name.push(b'_');
    }
    child_path(&table.group, &name)
}

/// Returns the value of the attribute `shape` of a sparse matrix whose rows are joined, for its
/// array `indptr`. Returns `None` for any other array.
fn matrix_shape(compared: &MemberComparison<'_>, made: &JoinedArray) -> Option<AttributeContent> {
    let alike = compared.variable(&made.path);
    let convention = &alike.skeleton_variables.first()?.variable.convention;
    let ElementRelation::SparseRowEnds { columns, .. } = &convention.relation else {
        return None;
    };
    let placement = &compared.placed_members.placement;
    let dim = made.dims.first()?;
    let (axis, _) = placement.find_dimension(&dim.key)?;
    placement.axes.get(axis).filter(|axis| axis.has_tables)?;
    let rows = dim.length.minus_or_zero(1);
    let shape = [rows, (*columns)?];
    Some(AttributeContent {
        datatype: Datatype::integer(8, true, ByteOrder::Little),
        shape: Shape::fixed(vec![2]),
        elements: shape.iter().flat_map(|own| own.to_le_bytes()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.as_bytes().into()
    }

    /// Tests codes without categories, categories without codes, and a group that lacks an array.
    #[test]
    fn arrays_that_depend_on_an_omitted_array_are_omitted() {
        let whole = |relation| ConventionRules {
            whole: Some(path("ct")),
            relation,
            ..ConventionRules::default()
        };
        let names = path("ct/categories");
        let codes = whole(ElementRelation::Codes {
            names: Path::clone(&names),
            is_ordered: false,
        });
        let [own, mask, alone] = [
            whole(ElementRelation::Names),
            whole(ElementRelation::None),
            ConventionRules::default(),
        ];
        let codes_path = path("ct/codes");
        let conventions = HashMap::from([(&codes_path, &codes), (&names, &own)]);
        let absent = HashSet::from([Path::clone(&codes_path)]);
        let reasons = AbsentArrayIndex::new(&conventions, &absent);
        assert_eq!(reasons.absent_array(&names, &own), Some(&codes_path));
        assert_eq!(
            reasons.absent_array(&path("ct/mask"), &mask),
            Some(&codes_path)
        );
        assert_eq!(reasons.absent_array(&path("n"), &alone), None);
        let absent = HashSet::from([Path::clone(&names)]);
        let reasons = AbsentArrayIndex::new(&conventions, &absent);
        assert_eq!(reasons.absent_array(&codes_path, &codes), Some(&names));
    }
}

//! The tree of the fields of a table.

use std::collections::{HashMap, HashSet};

use crate::parquet::leaf::Leaf;
use crate::parquet::schema::{self, Repetition};
use crate::parquet::thrift::StructWriter;

/// A field of the Parquet schema: a column, or a group or list of fields.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) content: FieldContent,
}

/// The type of a field.
pub(super) enum FieldContent {
    Leaf(Box<Leaf>),
    /// The members of a compound.
    Group(Vec<Field>),
    /// A list of this length in each row.
    FixedLengthList(u32, Box<FieldContent>),
    /// A list in each row. The lengths of the lists vary.
    VariableLengthList(Box<Leaf>),
}

/// A column of the file: a leaf of the field tree, and its position in the tree.
pub(super) struct LeafColumn {
    pub(super) leaf: Leaf,
    /// The names of the fields from the root to the leaf.
    pub(super) path: Vec<String>,
    /// The lengths of the lists that contain the leaf, outermost first.
    pub(super) lists: Vec<u32>,
}

/// The field tree as flat lists: the schema elements after the root, and the leaf columns, in file
/// order.
#[derive(Default)]
pub(super) struct FlatFields {
    pub(super) elements: Vec<StructWriter>,
    pub(super) columns: Vec<LeafColumn>,
}

impl FlatFields {
    /// Converts the tree `fields` to flat lists: its schema elements, and its leaf columns.
    pub(super) fn flatten(fields: Vec<Field>) -> Self {
        let mut flat = FlatFields::default();
        flat.add_all(fields, &[], &[]);
        flat
    }

    fn add_all(&mut self, fields: Vec<Field>, path: &[String], lists: &[u32]) {
        let names = fields.iter().map(|field| field.name.as_str());
        let names = distinct_names(names);
        for (field, name) in fields.into_iter().zip(names) {
            self.add(&name, field.content, path, lists);
        }
    }

    fn add(&mut self, name: &str, content: FieldContent, path: &[String], lists: &[u32]) {
        let mut path = path.to_vec();
        path.push(name.to_owned());
        match content {
            FieldContent::Leaf(leaf) => {
                let repetition = if leaf.is_optional {
                    Repetition::Optional
                } else {
                    Repetition::Required
                };
                self.elements
                    .push(schema::leaf_element(name, leaf.kind, repetition));
                self.columns.push(LeafColumn {
                    leaf: *leaf,
                    path,
                    lists: lists.to_vec(),
                });
            }
            FieldContent::Group(fields) => {
                let group = schema::group_element(name, fields.len(), Repetition::Required);
                self.elements.push(group);
                self.add_all(fields, &path, lists);
            }
            FieldContent::VariableLengthList(leaf) => {
                self.elements.extend(schema::list_elements(name));
                path.push("list".to_owned());
                self.add("element", FieldContent::Leaf(leaf), &path, lists);
            }
            FieldContent::FixedLengthList(count, element) => {
                self.elements.extend(schema::list_elements(name));
                path.push("list".to_owned());
                let lists = [lists, &[count]].concat();
                self.add("element", *element, &path, &lists);
            }
        }
    }
}

impl LeafColumn {
    /// Returns whether the values are elements of lists.
    pub(super) fn is_in_lists(&self) -> bool {
        !self.lists.is_empty() || self.leaf.variable_lists.is_some()
    }

    /// Returns the number of values that one row has in this column, for lists of fixed length.
    pub(super) fn values_per_row(&self) -> u64 {
        let counts = self.lists.iter().map(|&count| u64::from(count));
        counts.fold(1, u64::saturating_mul)
    }
}

/// Makes names distinct and non-empty, because readers reject or rename other names.
fn distinct_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let mut taken: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    // The last number appended to each name.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut given = Vec::with_capacity(names.len());
    for name in names {
        let number = numbers.entry(name).or_insert(usize::from(name.is_empty()));
        *number += 1;
        if *number == 1 {
            given.push(name.to_owned());
            continue;
        }
        let base = if name.is_empty() { "_" } else { name };
        let mut own = format!("{base}_{number}");
        while !taken.insert(own.clone()) {
            *number += 1;
            own = format!("{base}_{number}");
        }
        given.push(own);
    }
    given
}

/// Converts a name from HDF5 or ASDF to UTF-8. Invalid bytes become U+FFFD.
pub(super) fn utf8_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_not_empty() {
        let given = distinct_names(["a", "", "a", "a_2", "", "A", "_"].into_iter());
        assert_eq!(given, ["a", "__2", "a_3", "a_2", "__3", "A", "_"]);
        let unique: HashSet<&String> = given.iter().collect();
        assert_eq!(unique.len(), given.len());
    }
}

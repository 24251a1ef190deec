//! Access to the objects of a member by path, for the code that finds the rules of conventions.

use std::collections::HashMap;
use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::attribute_value::reference_targets;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{Array, NodeId};

use crate::limits;
use crate::members::content;
use crate::members::links::{ObjectLocation, OpenFile};
use crate::members::skeleton::NamedAttribute;
use crate::members::walk::FoundArray;
use crate::paths::{Path, split_path};

/// The groups and arrays of a member, with their attributes.
pub(crate) struct MemberObjects<'a> {
    pub(super) arrays: &'a [FoundArray],
    pub(super) groups: &'a [(ObjectLocation, Path)],
    /// For the path of each group and array, its index in `attributes`.
    attribute_indices: HashMap<&'a [u8], usize>,
    /// The path of each object, by the number of its file and its node. A link may lead to an
    /// object in another file than the member.
    paths: HashMap<(usize, NodeId), &'a Path>,
    attributes: &'a [Arc<Vec<NamedAttribute>>],
}

impl<'a> MemberObjects<'a> {
    /// Creates the access to these objects. `attributes` contains the attributes of the groups,
    /// followed by those of the arrays.
    pub(crate) fn new(
        groups: &'a [(ObjectLocation, Path)],
        arrays: &'a [FoundArray],
        attributes: &'a [Arc<Vec<NamedAttribute>>],
    ) -> Self {
        let own = arrays
            .iter()
            .map(|found| (&found.file, found.node, &found.path));
        let all = groups
            .iter()
            .map(|((file, node), path)| (file, *node, path));
        let all = all.chain(own);
        let known = all.clone().enumerate();
        let mut paths = HashMap::new();
        for (file, node, path) in all {
            // If an object has several names, the first one is used.
            paths.entry((file_identity(file), node)).or_insert(path);
        }
        MemberObjects {
            arrays,
            groups,
            attribute_indices: known
                .map(|(place, (_, _, path))| (&**path, place))
                .collect(),
            paths,
            attributes,
        }
    }

    /// Returns the file and the node of the object whose attributes have the index `place`.
    fn node(&self, place: usize) -> Option<(&'a Arc<OpenFile>, NodeId)> {
        match place.checked_sub(self.groups.len()) {
            Some(number) => {
                let found = self.arrays.get(number)?;
                Some((&found.file, found.node))
            }
            None => {
                let ((file, node), _) = self.groups.get(place)?;
                Some((file, *node))
            }
        }
    }

    pub(super) fn array(&self, path: &[u8]) -> Option<&Arc<Array>> {
        let place = self.attribute_indices.get(path)?;
        let number = place.checked_sub(self.groups.len())?;
        self.arrays.get(number).map(|found| &found.array)
    }

    /// Returns whether a group or an array exists at a path.
    pub(super) fn has_object(&self, path: &[u8]) -> bool {
        self.attribute_indices.contains_key(path)
    }

    pub(super) fn is_group(&self, path: &[u8]) -> bool {
        let place = self.attribute_indices.get(path);
        place.is_some_and(|&place| place < self.groups.len())
    }

    pub(super) fn attributes(&self, path: &[u8]) -> &'a [NamedAttribute] {
        let place = self.attribute_indices.get(path).copied();
        let own = place.and_then(|place| self.attributes.get(place));
        own.map_or(&[][..], |own| &own[..])
    }

    pub(super) fn attribute(&self, path: &[u8], name: &[u8]) -> Option<&'a AttributeContent> {
        let mut all = self.attributes(path).iter();
        all.find(|(own, _)| own == name).map(|(_, content)| content)
    }

    pub(super) fn attribute_text(&self, path: &[u8], name: &[u8]) -> Option<&'a [u8]> {
        self.attribute(path, name).and_then(content::attribute_text)
    }

    /// Returns the texts of an attribute that is a list of texts. Returns no texts if the attribute
    /// is missing or has another type.
    pub(super) fn attribute_texts(&self, path: &[u8], name: &[u8]) -> Vec<Vec<u8>> {
        let content = self.attribute(path, name);
        let content = content.filter(|own| matches!(own.datatype.class, Class::String { .. }));
        content.map_or_else(Vec::new, |content| {
            let each = content
                .elements
                .chunks_exact(content.datatype.size as usize);
            // A file has at most this many columns.
            let each = each.take(limits::JOINED_OBJECTS);
            each.map(|text| content::trim_padding(text).to_vec())
                .collect()
        })
    }

    /// Returns whether two paths are names of one object.
    pub(super) fn is_same_object(&self, path: &[u8], other: &[u8]) -> bool {
        let object = |path: &[u8]| {
            let place = self.attribute_indices.get(path).copied();
            let (file, node) = self.node(place?)?;
            Some((file_identity(file), node))
        };
        object(path).is_some_and(|own| object(other) == Some(own))
    }

    /// Returns the path of the object that an attribute refers to.
    ///
    /// # Errors
    /// Fails if the attribute cannot be read now.
    pub(super) fn attribute_target(&self, path: &[u8], name: &[u8]) -> Result<Option<&'a Path>> {
        let place = self.attribute_indices.get(path).copied();
        let Some((file, node)) = place.and_then(|place| self.node(place)) else {
            return Ok(None);
        };
        let found = match reference_targets(&**file.container(), node, name) {
            Err(error) if !error.is_transient() => Vec::new(),
            found => found?,
        };
        let node = found.first().copied().flatten();
        Ok(node.and_then(|node| self.paths.get(&(file_identity(file), node)).copied()))
    }
}

/// Returns a number that identifies the open file among all open files.
fn file_identity(file: &Arc<OpenFile>) -> usize {
    Arc::as_ptr(file).addr()
}

/// Iterates over the paths of the groups that contain an object, from the innermost to the root.
pub(super) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = (!path.is_empty()).then_some(path);
    std::iter::from_fn(move || {
        let (above, _) = split_path(rest?);
        rest = (!above.is_empty()).then_some(above);
        Some(above)
    })
}

/// Returns the names in `path` after the group at `base`. Returns no names if `path` equals `base`.
pub(super) fn names_between<'p>(base: &[u8], path: &'p [u8]) -> Vec<&'p [u8]> {
    let rest = path.get(base.len()..).unwrap_or_default();
    let names = rest.split(|&byte| byte == b'/');
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_between_groups() {
        let above: Vec<&[u8]> = ancestors(b"a/b/c").collect();
        assert_eq!(above, [&b"a/b"[..], b"a", b""]);
        assert_eq!(ancestors(b"").count(), 0);
        assert_eq!(names_between(b"", b"a/b"), [b"a", b"b"]);
        assert_eq!(names_between(b"a", b"a/b"), [b"b"]);
        assert!(names_between(b"a/b", b"a/b").is_empty());
    }
}

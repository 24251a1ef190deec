//! Extended attributes: the built-in ones `user.h5fs.*`, followed by the object's own attributes in
//! the order of the file.
//!
//! The kernel rejects a list of names longer than 64 KiB, so names that do not fit are omitted.

use std::collections::HashSet;
use std::ops::ControlFlow;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::{Attribute, Node};
use h5fs_view::documents::attributes;
use nix::errno::Errno;

use crate::errno::refusal_error;
use crate::limits;
use crate::names::namespace::Namespace;
use crate::nodes::node::{ObjectDescription, TargetInode};

/// The prefix of the names of all extended attributes.
const PREFIX: &[u8] = b"user.";
/// The prefix of the names of built-in extended attributes, after `user.`. Attributes of the file
/// with such names are not shown.
const BUILTIN: &[u8] = b"h5fs.";
/// Name, without `user.`, of the extended attribute with an object's error.
const ERROR: &str = "h5fs.error";

/// Name, without `user.`, of the extended attribute with an object's path.
const PATH: &[u8] = b"h5fs.path";

/// An object for which extended attributes are generated.
pub(crate) struct DescribedObject<'a> {
    space: Namespace<'a>,
    /// The object's node, or `None` if the object itself cannot be read.
    node: Option<&'a Node>,
    /// The object's path, with names as in the file.
    path: Vec<u8>,
    /// Further built-in extended attributes: names without `user.`, and values.
    facts: &'a [(&'static str, Vec<u8>)],
    /// The message of the object's error, if the object has one.
    error: Option<String>,
    /// The temporary error because of which further built-in attributes are unknown.
    unread: Option<Error>,
}

/// Returns the object that `target` shows, with the information in `described`.
pub(crate) fn described_object<'a>(
    target: &TargetInode<'a>,
    described: &'a ObjectDescription,
) -> DescribedObject<'a> {
    let space = target.namespace();
    let node = described.node.as_deref();
    let fault = described.content_error.as_ref();
    let (facts, unread) = match &described.builtin_attributes {
        Ok(facts) => (&facts[..], None),
        Err(error) => (&[][..], Some(error.clone())),
    };
    let unreadable = fault.filter(|error| node.is_none() && error.is_transient());
    let count = node.map_or(1, |node| node.link_count);
    let path = space.file_path(target.inode, count);
    let unplaced = match &path {
        None if count > 1 => target.file.path_index().check_no_read_error().err(),
        _ => None,
    };
    let noted = target.mount.faults.text(target.ino);
    DescribedObject {
        space,
        node,
        unread: unread.or(unplaced).or(unreadable.cloned()),
        path: path.unwrap_or_default(),
        facts,
        error: fault.map(Error::to_string).or(noted),
    }
}

/// Removes the prefix `user.` from the name of an extended attribute.
///
/// # Errors
/// `EOPNOTSUPP` for a name without that prefix: with `ENODATA`, the kernel would request it
/// repeatedly.
pub(crate) fn strip_user_prefix(name: &[u8]) -> Result<&[u8]> {
    name.strip_prefix(PREFIX)
        .ok_or_else(|| refusal_error(Errno::EOPNOTSUPP, "extended attribute"))
}

/// Returns `ENODATA`, the error for an extended attribute that does not exist.
pub(crate) fn missing_attribute_error() -> Error {
    refusal_error(Errno::ENODATA, "extended attribute")
}

impl DescribedObject<'_> {
    /// Returns the names of all extended attributes of the object, each with `user.`.
    ///
    /// # Errors
    /// Fails if the object's list of attributes is damaged.
    pub(crate) fn list(&self) -> Result<Vec<Vec<u8>>> {
        let mut list = XattrNames::default();
        for (name, value) in self.builtin_attributes() {
            if list.add(name.as_bytes(), value.len()).is_break() {
                return Ok(list.names);
            }
        }
        let Some(node) = self.node else {
            return Ok(list.names);
        };
        let container = &*self.space.file.container;
        container.attributes(node.id, &mut |attribute| {
            if !is_shown(&attribute.name) || list.contains(&attribute.name) {
                return ControlFlow::Continue(());
            }
            match self.value_length(&attribute, &mut list.unread) {
                Some(length) => list.add(&attribute.name, length),
                None => ControlFlow::Continue(()),
            }
        })?;
        Ok(list.names)
    }

    /// Returns the value of the extended attribute `name`, given without `user.`.
    ///
    /// # Errors
    /// `ENODATA` if the attribute does not exist, `E2BIG` if its value is too long.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Vec<u8>> {
        if name.starts_with(BUILTIN) {
            let mut all = self.builtin_attributes().into_iter();
            let found = all.find(|(builtin, _)| builtin.as_bytes() == name);
            let is_known = found.is_some() && (name != PATH || !self.path.is_empty());
            return match &self.unread {
                Some(error) if !is_known && name != ERROR.as_bytes() => Err(error.clone()),
                _ => found
                    .map(|(_, value)| value)
                    .ok_or_else(missing_attribute_error),
            };
        }
        let unread = || self.unread.clone().unwrap_or_else(missing_attribute_error);
        let node = self.node.filter(|_| is_shown(name)).ok_or_else(unread)?;
        let found = self.space.file.container.attribute(node.id, name)?;
        let content = found.ok_or_else(missing_attribute_error)?.content?;
        match self.value_text(&content) {
            Err(Error::Limit { .. }) => Err(refusal_error(Errno::E2BIG, "extended attribute")),
            text => text,
        }
    }

    fn builtin_attributes(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut all = match self.node {
            Some(node) => attributes::builtin_attributes(node, &self.path),
            None => Vec::new(),
        };
        all.extend_from_slice(self.facts);
        if let Some(error) = &self.error {
            all.push((ERROR, error.as_bytes().to_vec()));
        }
        all.retain(|(_, value)| value.len() <= limits::XATTR_BYTES);
        all
    }

    /// Returns the length of the attribute's value as text, in bytes, or `None` if the value is too
    /// long for the kernel. Returns 0 for a value that cannot be read, and for all values once the
    /// generated texts exceed `unread` bytes. A request for the value itself reports the error or
    /// returns the value.
    fn value_length(&self, attribute: &Attribute, unread: &mut usize) -> Option<usize> {
        let Ok(content) = &attribute.content else {
            return Some(0);
        };
        if attributes::has_too_many_elements(content) {
            return None;
        }
        if *unread == 0 {
            return Some(0);
        }
        let text = self.value_text(content).map(|text| text.len());
        let written = text.as_ref().copied().unwrap_or(limits::XATTR_BYTES);
        *unread = unread.saturating_sub(written);
        match text {
            Err(Error::Limit { .. }) => None,
            text => Some(text.unwrap_or(0)),
        }
    }

    /// Returns the value of an attribute as text. Fails with `Limit` if the text is too long for
    /// the kernel.
    fn value_text(&self, content: &AttributeContent) -> Result<Vec<u8>> {
        let paths = |node| self.space.indexed_path(node);
        let container = &*self.space.file.container;
        attributes::xattr_text(container, &paths, content)
    }
}

struct XattrNames {
    names: Vec<Vec<u8>>,
    seen: HashSet<Vec<u8>>,
    bytes: usize,
    /// Number of bytes of text that may still be generated to determine the lengths of values.
    unread: usize,
}

impl Default for XattrNames {
    fn default() -> Self {
        XattrNames {
            names: Vec::new(),
            seen: HashSet::new(),
            bytes: 0,
            unread: limits::LISTED_TEXT,
        }
    }
}

impl XattrNames {
    fn contains(&self, name: &[u8]) -> bool {
        self.seen.contains(name)
    }

    /// Adds `name` to the list of names, unless the name, or its value of `length` bytes, is too
    /// long for the kernel. Returns `Break` if the list would become too long.
    fn add(&mut self, name: &[u8], length: usize) -> ControlFlow<()> {
        let full = [PREFIX, name].concat();
        if full.len() > limits::NAME_BYTES || length > limits::XATTR_BYTES {
            return ControlFlow::Continue(());
        }
        // Each name in the list ends with a NUL.
        let bytes = self.bytes + full.len() + 1;
        if bytes > limits::XATTR_BYTES {
            return ControlFlow::Break(());
        }
        self.bytes = bytes;
        self.names.push(full);
        self.seen.insert(name.to_vec());
        ControlFlow::Continue(())
    }
}

/// Returns whether the mount shows the object's attribute `name` as an extended attribute.
fn is_shown(name: &[u8]) -> bool {
    !name.is_empty() && !name.contains(&0) && !name.starts_with(BUILTIN)
}

//! A part of an array as a file: a dataset's name followed by a selector, as in `temp[0:10]`. In
//! the file's own tree, the content is the elements' bytes. `views/selection.rs` handles selections
//! in trees of views.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Node;
use h5fs_reader::model::selector::split::split_selector;
use h5fs_reader::model::selector::{self, Selector};
use h5fs_view::elements::part::ArrayPart;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::errno::is_fault;
use crate::name;
use crate::names::link_resolution::{LinkedObject, resolve_link};
use crate::nodes::label_selection::positional_selector;
use crate::nodes::node::TargetInode;
use crate::nodes::object::refuse_temporarily_unreadable;
use crate::stat::LookupEntry;
use crate::state::inode::{self, Inode, NodeType, TreeNumber};

/// The content of a selection, and the node of the array.
pub(crate) type SelectionView = (Box<dyn View>, Arc<Node>);

/// A directory whose names of arrays may be followed by selectors.
pub(crate) trait SelectionDirectory {
    /// Returns the inode of the directory.
    fn target(&self) -> &TargetInode<'_>;

    /// Returns the object to which the name `shown` in the directory leads.
    ///
    /// # Errors
    /// `ELOOP` for a cycle of links.
    fn linked_object(&self, shown: &[u8]) -> Result<Option<LinkedObject>>;

    /// Returns whether the directory shows arrays in the full length of their unlimited dimensions.
    fn shows_padded_variables(&self) -> bool;

    /// Opens the part of the object at `place` that `selector` names, which has no names of
    /// dimensions and no escapes.
    ///
    /// # Errors
    /// `NotFound` if the selector does not fit the object.
    fn open_part(&self, place: &LinkedObject, selector: &[u8]) -> Result<Box<dyn View>>;

    /// Returns the number that the directory's tree of views has for the file `file`, or `None` for
    /// the file's own tree.
    ///
    /// # Errors
    /// Fails if no number is free.
    fn view_tree(&self, file: &FileState) -> Result<Option<TreeNumber>>;

    /// Looks up `name`, an object's name followed by a selector, and increments the lookup count of
    /// the selection's inode. The name in the directory is `shown`: `name` and a suffix. A selector
    /// may also follow the name of a link to a dataset. The selection's inode then belongs to the
    /// group and file of the target.
    ///
    /// # Errors
    /// `NotFound` if `name` has another form, or the selector does not fit the object; `ELOOP` for
    /// a cycle of links.
    fn lookup(&self, name: &[u8], shown: &[u8]) -> Result<LookupEntry> {
        let suffix = &shown[name.len()..];
        for (object, selector) in split_selector(name) {
            let Some(place) = self.linked_object(object)? else {
                continue;
            };
            let length = match self.open_shown_part(&place, selector) {
                Err(Error::NotFound) => continue,
                Err(error) if !is_fault(&error) => return Err(error),
                // A part that cannot be read is a file whose attribute describes the error.
                view => view.map(|view| view.length()),
            };
            return self.add_lookup(&place, &[selector, suffix].concat(), length);
        }
        Err(Error::NotFound)
    }

    /// Returns why no selection has the name `name`, if it is an object's name followed by a
    /// bracket.
    ///
    /// # Errors
    /// Fails if the object before the bracket cannot be read.
    fn absence_reason(&self, name: &[u8]) -> Result<Option<String>> {
        let positions = name.iter().enumerate().rev();
        for (at, _) in positions.filter(|&(at, &byte)| byte == b'[' && at > 0) {
            let (before, selector) = name.split_at(at);
            if let Some(place) = self.linked_object(before)? {
                return self.invalid_selector_reason(&place, selector);
            }
        }
        Ok(None)
    }

    /// Opens a selection that an earlier lookup found. `name` is the name of its inode, without a
    /// suffix.
    ///
    /// # Errors
    /// `NotFound` if the selection no longer exists.
    fn reopen(&self, name: &[u8]) -> Result<SelectionView> {
        let mut parts = name.splitn(2, |&byte| byte == b'/');
        let (object, selector) = parts.next().zip(parts.next()).ok_or(Error::NotFound)?;
        let place = self.linked_object(object)?.ok_or(Error::NotFound)?;
        let view = self.open_shown_part(&place, selector)?;
        Ok((view, place.node))
    }

    /// Opens the part of the object at `place` that the shown `selector` names.
    ///
    /// # Errors
    /// `NotFound` if the selector does not fit the object. Fails if a coordinate cannot be read.
    fn open_shown_part(&self, place: &LinkedObject, selector: &[u8]) -> Result<Box<dyn View>> {
        // The names in selectors are escaped like other names.
        let selector = name::unescape(selector, false).ok_or(Error::NotFound)?;
        let is_padded = self.shows_padded_variables();
        let found = positional_selector(&place.file, &place.node, selector, is_padded)?;
        self.open_part(place, &found.map_err(|_| Error::NotFound)?)
    }

    /// Returns the reason why the shown `selector` is invalid for the object at `place`, or `None`
    /// if it is valid.
    ///
    /// # Errors
    /// Fails if a coordinate cannot be read.
    fn invalid_selector_reason(
        &self,
        place: &LinkedObject,
        selector: &[u8],
    ) -> Result<Option<String>> {
        let Some(array) = place.node.array() else {
            let reason = "a selector needs an array, and this object is not an array";
            return Ok(Some(reason.to_owned()));
        };
        let Some(selector) = name::unescape(selector, false) else {
            return Ok(None);
        };
        let is_padded = self.shows_padded_variables();
        Ok(
            match positional_selector(&place.file, &place.node, selector, is_padded)? {
                Ok(selector) => selector::fault::explain(&selector, &array.datatype, &array.shape),
                Err(reason) => Some(reason),
            },
        )
    }

    /// Increments the lookup count of the selection that `selector` names in the object at `place`,
    /// and returns its entry. `length` is the length of its content. The inode belongs to the file
    /// of the object.
    ///
    /// # Errors
    /// Fails if the object has no link, or its attributes cannot be determined now.
    fn add_lookup(
        &self,
        place: &LinkedObject,
        selector: &[u8],
        length: Result<u64>,
    ) -> Result<LookupEntry> {
        let (mount, file) = (self.target().mount, &place.file);
        let (group, name) = place.link.as_ref().ok_or(Error::NotFound)?;
        let view_tree = self.view_tree(file)?;
        let tree = view_tree.unwrap_or(file.tree);
        // The name of the root's own files does not exist in the data file.
        let shown = if *group == place.node.id {
            name.clone()
        } else {
            name::escape(name, *group == file.container.root())
        };
        let inode = Inode {
            node_type: NodeType::Selection,
            generation: file.generation,
            tree,
            node: *group,
            parent: match view_tree {
                Some(tree) => inode::node_number(file.generation, tree, *group),
                None => mount.namespace(file).ino(*group),
            },
            name: [&shown, &b"/"[..], selector].concat().into(),
        };
        let numbers = if tree == inode::SOURCE {
            inode::SELECTIONS
        } else {
            tree
        };
        let ino = inode::link_number(file.generation, numbers, *group, &inode.name);
        TargetInode::add_lookup(mount, file, ino, &inode, |target| {
            // Other files may appear and disappear.
            let is_kept = !place.is_across_files;
            Ok(target.entry_with_length(length)?.cacheable_if(is_kept))
        })
    }
}

/// A group's directory in the file's own tree. The content of its selections is the elements'
/// bytes.
pub(crate) struct GroupSelections<'a>(pub(crate) &'a TargetInode<'a>);

impl SelectionDirectory for GroupSelections<'_> {
    fn target(&self) -> &TargetInode<'_> {
        self.0
    }

    fn linked_object(&self, shown: &[u8]) -> Result<Option<LinkedObject>> {
        linked_object(self.0, shown)
    }

    fn shows_padded_variables(&self) -> bool {
        false
    }

    fn open_part(&self, place: &LinkedObject, selector: &[u8]) -> Result<Box<dyn View>> {
        let (file, node) = (&place.file, &*place.node);
        let part = selected_part(file, node, selector)?;
        let values = if part.has_variable_length() {
            Some(file.variable_length_part_content(node.id, selector, &part)?)
        } else {
            None
        };
        part.into_content(values, &file.budget.cancel_token())
    }

    fn view_tree(&self, _: &FileState) -> Result<Option<TreeNumber>> {
        Ok(None)
    }
}

/// Looks up the selection `shown` in the directory of a group.
///
/// # Errors
/// Fails as [`SelectionDirectory::lookup`] does.
pub(crate) fn lookup_selection(directory: &TargetInode<'_>, shown: &[u8]) -> Result<LookupEntry> {
    name::check_name_length(shown)?;
    if !directory.mount.options.views {
        return Err(Error::NotFound);
    }
    GroupSelections(directory).lookup(shown, shown)
}

/// Returns the object to which the name `shown` in the directory of a group leads, as the file's
/// own tree shows the name.
///
/// # Errors
/// `ELOOP` for a cycle of links.
pub(crate) fn linked_object(
    directory: &TargetInode<'_>,
    shown: &[u8],
) -> Result<Option<LinkedObject>> {
    let (file, group) = (directory.file, directory.inode.node);
    match file.name_in_file(group, shown)? {
        Some(name) => resolve_link(directory.mount, file, group, &name),
        None => Ok(None),
    }
}

/// Returns the part of an array that `selector` names.
///
/// # Errors
/// `NotFound` if the selector does not fit the array.
pub(crate) fn selected_part(file: &FileState, node: &Node, selector: &[u8]) -> Result<ArrayPart> {
    let selector = Selector::parse(selector).ok_or(Error::NotFound)?;
    let array = node.array().ok_or(Error::NotFound)?;
    refuse_temporarily_unreadable(array)?;
    // The selection is checked before any read, because a part that does not exist must not appear
    // damaged.
    selector.select(&array.datatype, &array.shape)?;
    ArrayPart::new(file.reader(node.id, array)?, &selector)
}

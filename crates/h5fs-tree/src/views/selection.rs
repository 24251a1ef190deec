//! Selections as files, as in `csv/temp[0:10].csv`, and the node of all selections.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Node;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::name;
use crate::names::link_resolution::LinkedObject;
use crate::nodes::node::{FsNode, ObjectDescription, TargetInode};
use crate::nodes::object;
use crate::nodes::selection::{
    self, GroupSelections, SelectionDirectory, SelectionView, selected_part,
};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::TreeNumber;
use crate::views::site::HtmlPageLocation;
use crate::views::trees;
use crate::views::trees::view_tree::{ViewForm, ViewSubject};
use crate::views::view_group::ViewGroup;

/// A selection, as a regular file of the file's own tree or of a tree of views.
pub(crate) struct SelectionFile;

impl FsNode for SelectionFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        stat(target, reopen(target))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        open(target, reopen(target)?)
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(ObjectDescription::from_opening(self, target))
    }
}

/// A group's directory in a tree of views, for names of one form.
struct ViewSelections<'a> {
    target: &'a TargetInode<'a>,
    form: &'static ViewForm,
}

impl SelectionDirectory for ViewSelections<'_> {
    fn target(&self) -> &TargetInode<'_> {
        self.target
    }

    /// In the directory of the root, also finds the root itself by the name of its own file.
    fn linked_object(&self, shown: &[u8]) -> Result<Option<LinkedObject>> {
        let (file, group) = (self.target.file, self.target.inode.node);
        let tree = trees::tree_with_number(number_in_source(self.target));
        let root_name = tree.and_then(|tree| tree.root_name);
        if group == file.container.root() && root_name == Some(shown) {
            return Ok(Some(LinkedObject {
                file: Arc::clone(file),
                node: file.container.node(group)?,
                link: Some((group, shown.to_vec())),
                is_across_files: false,
            }));
        }
        selection::linked_object(self.target, shown)
    }

    fn shows_padded_variables(&self) -> bool {
        self.form.shows_padded_variable
    }

    /// Opens elements of an array. In a tree with pages or tables, the selector may also select
    /// pages or rows of a group.
    fn open_part(&self, place: &LinkedObject, selector: &[u8]) -> Result<Box<dyn View>> {
        let (file, node, form) = (&place.file, &*place.node, self.form);
        let is_of_group = node.array().is_none();
        if form.has_parts && !is_of_group {
            return (form.open)(&ViewSubject::for_part(file, node, form, selector));
        }
        if form.has_pages || form.has_rows && is_of_group {
            let location = HtmlPageLocation::new(self.target.mount, file, node, None);
            return (form.open)(&ViewSubject {
                site: Some(&location),
                ..ViewSubject::for_part(file, node, form, selector)
            });
        }
        open_selected(file, node, selector, form)
    }

    fn view_tree(&self, file: &FileState) -> Result<Option<TreeNumber>> {
        let others = &self.target.mount.other_files;
        others
            .tree_number(file, number_in_source(self.target))
            .map(Some)
    }
}

/// Returns the number that the target's tree of views has for the source.
fn number_in_source(target: &TargetInode<'_>) -> TreeNumber {
    target
        .mount
        .other_files
        .tree_number_in_source(target.inode.tree)
}

/// Returns the attributes of the target, a selection that an earlier lookup found. `found` is the
/// result of opening the selection again.
///
/// # Errors
/// Fails if the attributes cannot be determined now.
pub(crate) fn stat(target: &TargetInode<'_>, found: Result<SelectionView>) -> Result<LookupEntry> {
    target.entry_with_length(found.map(|(view, _)| view.length()))
}

/// Returns the content `view` of a selection. If the option `verify` is set, first compares the
/// ASDF block that contains the array with its checksum.
///
/// # Errors
/// Fails if the checksum does not match, or the block cannot be read.
pub(crate) fn open(target: &TargetInode<'_>, (view, node): SelectionView) -> Result<Box<dyn View>> {
    object::verify_checksum(target.mount, target.file, node.id)?;
    Ok(view)
}

/// Looks up the selection `shown` in a directory of a tree of views.
///
/// # Errors
/// Fails as [`SelectionDirectory::lookup`] does.
pub(crate) fn lookup_selection(
    target: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    shown: &[u8],
) -> Result<LookupEntry> {
    name::check_name_length(shown)?;
    let (name, form) = split_form(group, shown)?;
    ViewSelections { target, form }.lookup(&name, shown)
}

/// Returns why no selection has the name `shown` in a directory of a tree of views.
///
/// # Errors
/// Fails as [`SelectionDirectory::absence_reason`] does.
pub(crate) fn absence_reason(
    target: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    shown: &[u8],
) -> Result<Option<String>> {
    let (name, form) = split_form(group, shown)?;
    ViewSelections { target, form }.absence_reason(&name)
}

/// Splits the name `shown` in the directory of `group` into the object's name, as the file's own
/// tree shows it, and the form of the file.
fn split_form(group: &ViewGroup<'_>, shown: &[u8]) -> Result<(Vec<u8>, &'static ViewForm)> {
    let can_be_selected = |form: &ViewForm| {
        form.open_elements.is_some() || form.has_pages || form.has_parts || form.has_rows
    };
    let mut names = group.object_names(shown);
    let found = names.find(|(form, _)| can_be_selected(form));
    found
        .map(|(form, name)| (name, form))
        .ok_or(Error::NotFound)
}

/// Opens a selection that an earlier lookup found. Returns its content and the node of the array.
fn reopen(target: &TargetInode<'_>) -> Result<SelectionView> {
    let inode = target.inode;
    match ViewGroup::new(target.mount, target.file, inode.tree, inode.node) {
        Ok(group) => {
            let (name, form) = split_form(&group, &inode.name)?;
            ViewSelections { target, form }.reopen(&name)
        }
        Err(Error::NotFound) => GroupSelections(target).reopen(&inode.name),
        Err(error) => Err(error),
    }
}

/// Opens the part of an array that `selector` names by positions, as a file of the form `form`.
///
/// # Errors
/// `NotFound` if the selector does not fit the array.
pub(crate) fn open_selected(
    file: &Arc<FileState>,
    node: &Node,
    selector: &[u8],
    form: &ViewForm,
) -> Result<Box<dyn View>> {
    let padded = if form.shows_padded_variable {
        Some(file.padded_variables().node(node.id)?)
    } else {
        None
    };
    let meant = form.intended_node(file, node)?;
    let node = padded.as_deref().or(meant.as_deref()).unwrap_or(node);
    let part = selected_part(file, node, selector)?;
    let values = match part.has_variable_length() {
        true if padded.is_some() => {
            let whole = part.variable_length_values(Arc::clone(&file.container))?;
            Some(Arc::new(whole))
        }
        true => Some(file.variable_length_part_content(node.id, selector, &part)?),
        false => None,
    };
    let subject = ViewSubject::for_part(file, node, form, selector);
    let view = form.open_elements.ok_or(Error::NotFound)?;
    view(&subject, part.into_elements(values)?)?.ok_or(Error::NotFound)
}

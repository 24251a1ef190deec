//! A part of an array as a file: a dataset's name followed by a selector, as in `temp[0:10]`.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Node;
use h5fs_reader::model::selector::{self, Selector, split_selector};
use h5fs_view::elements::part::ArrayPart;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::errno::is_fault;
use crate::name;
use crate::names::link_resolution::{LinkedObject, resolve_link};
use crate::nodes::node::{FsNode, ObjectDescription, TargetInode};
use crate::nodes::object;
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{self, Inode, NodeType, TreeNumber};
use crate::views::site::HtmlPageLocation;
use crate::views::trees;
use crate::views::trees::view_tree::{ViewForm, ViewSubject, refuse_temporarily_unreadable};
use crate::views::view_group::ViewGroup;

/// A part of an array, as a regular file.
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

/// The content of a selection, and the node of the array.
pub(crate) type SelectionView = (Box<dyn View>, Arc<Node>);

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

/// Looks up the selection `shown`, a dataset's name followed by a selector, in the directory of a
/// group. Increments the lookup count of its inode. A selector may also follow the name of a link
/// to a dataset. The selection's inode then belongs to the group and file of the target.
///
/// # Errors
/// `NotFound` if `shown` has another form, or the selector does not fit the dataset; `ELOOP` for a
/// cycle of links.
pub(crate) fn lookup_selection(directory: &TargetInode<'_>, shown: &[u8]) -> Result<LookupEntry> {
    name::check_name_length(shown)?;
    let (mount, tree) = (directory.mount, directory.inode.tree);
    if !mount.options.views {
        return Err(Error::NotFound);
    }
    let (name, form) = split_selection_name(directory, shown)?;
    for (dataset, selector) in split_selector(&name) {
        let Some(place) = linked_object(directory, dataset)? else {
            continue;
        };
        match open_part(mount, &place, selector, form) {
            Err(Error::NotFound) => {}
            Err(error) if !is_fault(&error) => return Err(error),
            // A part that cannot be read is a file whose attribute describes the error.
            view => {
                let suffix = &shown[name.len()..];
                let length = view.map(|view| view.length());
                return lookup_part(mount, tree, &place, &[selector, suffix].concat(), length);
            }
        }
    }
    Err(Error::NotFound)
}

/// Returns why no selection has the name `shown`, if the name is an object's name followed by a
/// bracket.
///
/// # Errors
/// Fails if the object before the bracket cannot be read.
pub(crate) fn absence_reason(directory: &TargetInode<'_>, shown: &[u8]) -> Result<Option<String>> {
    let (name, _) = split_selection_name(directory, shown)?;
    let places = name.iter().enumerate().rev();
    for (at, _) in places.filter(|&(at, &byte)| byte == b'[' && at > 0) {
        let (before, selector) = name.split_at(at);
        if let Some(place) = linked_object(directory, before)? {
            return Ok(invalid_selector_reason(&place.node, selector));
        }
    }
    Ok(None)
}

/// Returns the reason why the shown `selector` is invalid for the object `node`, or `None` if it is
/// valid.
fn invalid_selector_reason(node: &Node, selector: &[u8]) -> Option<String> {
    let Some(array) = node.array() else {
        return Some("a selector needs an array, and this object is not an array".to_owned());
    };
    let selector = name::unescape(selector, false)?;
    selector::fault::explain(&selector, &array.datatype, &array.shape)
}

/// Increments the lookup count of the selection that `selector` names in the array at `place`, and
/// returns its entry. `length` is the length of its content. The inode belongs to the tree of views
/// with the number `tree`, or to the file's own tree, in the file of the array.
fn lookup_part(
    mount: &Mount,
    tree: TreeNumber,
    place: &LinkedObject,
    selector: &[u8],
    length: Result<u64>,
) -> Result<LookupEntry> {
    let file = &place.file;
    let (group, name) = place.link.as_ref().ok_or(Error::NotFound)?;
    let in_source = mount.other_files.tree_number_in_source(tree);
    let is_of_views = trees::tree_with_number(in_source).is_some();
    let tree = if is_of_views {
        mount.other_files.tree_number(file, in_source)?
    } else {
        file.tree
    };
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
        parent: if is_of_views {
            inode::node_number(file.generation, tree, *group)
        } else {
            mount.namespace(file).ino(*group)
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

/// Splits the name `shown` in `directory` into the object's name, as the file's own tree shows it,
/// and the form of the file. The form is `None` outside trees of views.
fn split_selection_name(
    directory: &TargetInode<'_>,
    shown: &[u8],
) -> Result<(Vec<u8>, Option<&'static ViewForm>)> {
    let inode = directory.inode;
    let group = ViewGroup::new(directory.mount, directory.file, inode.tree, inode.node);
    match group {
        Ok(group) => {
            let mut names = group.object_names(shown);
            let found = names
                .find(|(form, _)| form.open_elements.is_some() || form.has_pages || form.has_rows);
            let (form, name) = found.ok_or(Error::NotFound)?;
            Ok((name, Some(form)))
        }
        Err(Error::NotFound) => Ok((shown.to_vec(), None)),
        Err(error) => Err(error),
    }
}

/// Returns the object to which the name `shown` in the directory of a group leads.
fn linked_object(directory: &TargetInode<'_>, shown: &[u8]) -> Result<Option<LinkedObject>> {
    let (file, group) = (directory.file, directory.inode.node);
    let tree = trees::tree_with_number(
        directory
            .mount
            .other_files
            .tree_number_in_source(directory.inode.tree),
    );
    let root_name = tree.and_then(|tree| tree.root_name);
    if group == file.container.root() && root_name == Some(shown) {
        return Ok(Some(LinkedObject {
            file: Arc::clone(file),
            node: file.container.node(group)?,
            link: Some((group, shown.to_vec())),
            is_across_files: false,
        }));
    }
    match file.name_in_file(group, shown)? {
        Some(name) => resolve_link(directory.mount, file, group, &name),
        None => Ok(None),
    }
}

/// Opens a selection that an earlier lookup found. Returns its content and the node of the array.
fn reopen(target: &TargetInode<'_>) -> Result<SelectionView> {
    let (name, form) = split_selection_name(target, &target.inode.name)?;
    let mut parts = name.splitn(2, |&byte| byte == b'/');
    let (dataset, selector) = parts.next().zip(parts.next()).ok_or(Error::NotFound)?;
    let place = linked_object(target, dataset)?.ok_or(Error::NotFound)?;
    let view = open_part(target.mount, &place, selector, form)?;
    Ok((view, place.node))
}

/// Opens the selection that the shown `selector` names. It selects elements of an array. In a tree
/// of views with pages or tables, it may also select pages or rows of a group.
///
/// # Errors
/// Fails as [`view`] does.
fn open_part(
    mount: &Mount,
    place: &LinkedObject,
    selector: &[u8],
    form: Option<&ViewForm>,
) -> Result<Box<dyn View>> {
    let (file, node) = (&place.file, &*place.node);
    let is_of_group = node.array().is_none();
    match form.filter(|form| form.has_pages || form.has_rows && is_of_group) {
        Some(form) => (form.open)(&ViewSubject {
            site: Some(&HtmlPageLocation::new(mount, file, node, None)),
            ..ViewSubject::for_part(file, node, form, selector)
        }),
        None => open_selected(file, node, selector, form),
    }
}

/// Opens the part of an array that the shown `selector` names. `form` is the form of the file in a
/// tree of views; without a form, the content is the elements' bytes.
///
/// # Errors
/// `NotFound` if the selector does not fit the array.
pub(crate) fn open_selected(
    file: &Arc<FileState>,
    node: &Node,
    selector: &[u8],
    form: Option<&ViewForm>,
) -> Result<Box<dyn View>> {
    let padded = if form.is_some_and(|form| form.shows_padded_variable) {
        Some(file.padded_variables().node(node.id)?)
    } else {
        None
    };
    let meant = form.map_or(Ok(None), |form| form.intended_node(file, node))?;
    let shown = padded.as_deref().or(meant.as_deref());
    let node = shown.unwrap_or(node);
    // The names of fields are escaped like other names.
    let selector = name::unescape(selector, false).ok_or(Error::NotFound)?;
    let part = selected_part(file, node, &selector)?;
    let array = match part.has_variable_length() {
        true if padded.is_some() => {
            let whole = part.variable_length_values(Arc::clone(&file.container))?;
            Some(Arc::new(whole))
        }
        true => Some(file.variable_length_part_content(node.id, &selector, &part)?),
        false => None,
    };
    let Some(form) = form else {
        return part.into_content(array, &file.effort.cancel_token());
    };
    let subject = ViewSubject::for_part(file, node, form, &selector);
    let view = form.open_elements.ok_or(Error::NotFound)?;
    view(&subject, part.into_elements(array)?)?.ok_or(Error::NotFound)
}

/// Returns the part of an array that `selector` names.
///
/// # Errors
/// `NotFound` if the selector does not fit the array.
fn selected_part(file: &FileState, node: &Node, selector: &[u8]) -> Result<ArrayPart> {
    let selector = Selector::parse(selector).ok_or(Error::NotFound)?;
    let array = node.array().ok_or(Error::NotFound)?;
    refuse_temporarily_unreadable(array)?;
    // The selection is checked before any read, because a part that does not exist must not appear
    // damaged.
    selector.select(&array.datatype, &array.shape)?;
    ArrayPart::new(file.reader(node.id, array)?, &selector)
}

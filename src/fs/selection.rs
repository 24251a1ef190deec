//! A part of an array as a file: a dataset's name with a selector behind it, `temp[0:10]`.

use std::sync::Arc;

use crate::error::{Error, Result, if_lasting};
use crate::fs::file_state::FileState;
use crate::fs::inode::{self, Inode, NodeType, Tree};
use crate::fs::name;
use crate::fs::node::{FsNode, Target};
use crate::fs::object;
use crate::fs::stat::{Entry, Kind};
use crate::fs::trees::view_tree::{Subject, ViewOfElements, refuse_unread};
use crate::fs::view_group::ViewGroup;
use crate::model::Node;
use crate::model::selector::{Selector, split};
use crate::view::View;
use crate::view::part::Part;

/// A part of an array, as a regular file.
pub(super) struct Selection;

impl FsNode for Selection {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        // Opening it will tell why it cannot be read. If it may be read then, no size is made up.
        let found = if_lasting(find(target, &target.inode.name))?;
        let length = found.as_ref().and_then(|(view, _)| view.length());
        Ok(target.sized(length.unwrap_or(0)).kept_if(found.is_some()))
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        let (view, node) = find(target, &target.inode.name)?;
        object::verify(target.mount, target.file, node.id)?;
        Ok(view)
    }
}

/// Counts a lookup of `name`, a dataset's with a selector behind it, in the directory of a group.
///
/// # Errors
/// `NotFound` where it is no such name, or the dataset has no such part.
pub(super) fn enter(directory: &Target<'_>, name: &[u8]) -> Result<Entry> {
    let (mount, file) = (directory.mount, directory.file);
    if !mount.options.views {
        return Err(Error::NotFound);
    }
    let (view, _) = find(directory, name)?;
    let (tree, group) = (directory.inode.tree, directory.inode.node);
    let numbers = match tree {
        inode::SOURCE => inode::SELECTIONS,
        other => other,
    };
    let parent = match tree {
        inode::SOURCE => directory.space().ino(group),
        other => inode::of_node(file.generation, other, group),
    };
    let inode = Inode {
        node_type: NodeType::Selection,
        generation: file.generation,
        tree,
        node: group,
        parent,
        name: name.into(),
    };
    let ino = inode::of_link(file.generation, numbers, group, name);
    Target::enter(mount, file, ino, &inode, |target| {
        Ok(target.sized(view.length().unwrap_or(0)))
    })
}

/// The part that `shown` names of a dataset in the group that `target` is, or is in; and the
/// dataset.
fn find(target: &Target<'_>, shown: &[u8]) -> Result<(Box<dyn View>, Arc<Node>)> {
    name::refuse_long(shown)?;
    let in_views = ViewGroup::new(target.space(), target.inode.tree, target.inode.node);
    let (named, form) = match &in_views {
        Some(group) => {
            let mut names = group.object_names(shown);
            let named =
                names.find_map(|(form, name)| Some((name, Some((form.number, form.view?)))));
            named.ok_or(Error::NotFound)?
        }
        None => (shown.to_vec(), None),
    };
    let directory = target.directory();
    for (dataset, selector) in split(&named) {
        // The names of fields are escaped as names are.
        let Some(selector) = name::unescape(selector, false) else {
            continue;
        };
        let found = match directory.find(dataset) {
            Err(Error::NotFound) => continue,
            found => found?,
        };
        let node = match found.object {
            Some(Ok(node)) => node,
            Some(Err(error)) if error.is_passing() => return Err(error),
            _ => continue,
        };
        let viewed = match select(target.file, &node, &selector) {
            Ok(part) => view(target.file, &node, &selector, part, form),
            Err(error) => Err(error),
        };
        match viewed {
            Err(Error::NotFound) => {}
            viewed => return Ok((viewed?, node)),
        }
    }
    Err(Error::NotFound)
}

/// The part that `selector` names of an array.
///
/// # Errors
/// `NotFound` where there is none.
fn select(file: &FileState, node: &Node, selector: &[u8]) -> Result<Part> {
    let selector = Selector::parse(selector).ok_or(Error::NotFound)?;
    let array = node.array().ok_or(Error::NotFound)?;
    refuse_unread(array)?;
    // Before anything is read: what is not there must not look damaged.
    selector.select(&array.datatype, &array.shape)?;
    Part::new(file.reader(node.id, array)?, &selector)
}

/// The file of a part: in a tree of views that of a form, else its bytes.
fn view(
    file: &Arc<FileState>,
    node: &Node,
    selector: &[u8],
    part: Part,
    form: Option<(Tree, ViewOfElements)>,
) -> Result<Box<dyn View>> {
    let array = match part.is_of_variable_length() {
        true => Some(file.variable_length_part(node.id, selector, &part)?),
        false => None,
    };
    let Some((form, view)) = form else {
        return part.content(array);
    };
    let subject = Subject {
        file,
        node,
        form,
        selected: selector,
        path: Vec::new(),
        verify: &|_| Ok(()),
    };
    view(&subject, part.elements(array)?)?.ok_or(Error::NotFound)
}

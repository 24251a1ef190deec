//! A picture of a stack as a file: the part of the array that its number selects.

use crate::error::{Error, Result};
use crate::fs::inode::{self, NodeType};
use crate::fs::listing::{DOTS, Listable, Listed, Visit};
use crate::fs::name;
use crate::fs::node::{FsNode, Target};
use crate::fs::selection::{self, Found};
use crate::fs::stat::{Entry, Kind};
use crate::fs::trees::view_tree::Form;
use crate::fs::view_group::ViewGroup;
use crate::model::Node;
use crate::view::View;
use crate::view::frames::Frames;

/// A picture of a stack, as a regular file.
pub(super) struct Frame;

impl FsNode for Frame {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        selection::stat(target, picture(target))
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        selection::open(target, picture(target)?)
    }
}

/// Counts a lookup of the picture `name` of the stack whose directory `group` is.
///
/// # Errors
/// `NotFound` where there is none; as it cannot be found out now.
pub(super) fn enter(directory: &Target<'_>, group: &ViewGroup<'_>, name: &[u8]) -> Result<Entry> {
    name::refuse_long(name)?;
    let (form, node) = (form(group)?, directory.file.container.node(group.object)?);
    let number = frames(&node, form)?.number(name).ok_or(Error::NotFound)?;
    let inode = group.inode(NodeType::Frame, group.object, name.to_vec());
    let ino = of_frame(group, form, number)?;
    Target::enter(directory.mount, directory.file, ino, &inode, |target| {
        Frame.stat(target)
    })
}

/// Hands the pictures to `visit`. How long one is, only its own `stat` tells.
pub(super) fn list(
    directory: &Target<'_>,
    group: &ViewGroup<'_>,
    first: u64,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let (form, node) = (form(group)?, directory.file.container.node(group.object)?);
    let frames = frames(&node, form)?;
    for number in first - DOTS..frames.count {
        let listed = Listed {
            name: &frames.name(number),
            ino: of_frame(group, form, number)?,
            kind: Kind::File,
            stat: &|| Listable::Unknown(Kind::File),
        };
        if visit(&listed, number + 1 + DOTS) {
            break;
        }
    }
    Ok(())
}

/// The picture that the target is, opened, and the stack.
fn picture(target: &Target<'_>) -> Result<Found> {
    let (file, inode) = (target.file, target.inode);
    let group = ViewGroup::new(target.mount, file, inode.tree, inode.node)?;
    let (form, node) = (form(&group)?, file.container.node(inode.node)?);
    let frames = frames(&node, form)?;
    let number = frames.number(&inode.name).ok_or(Error::NotFound)?;
    let view = selection::view(file, &node, &frames.selector(number), Some(form))?;
    Ok((view, node))
}

/// The form of the files of a tree of pictures.
fn form(group: &ViewGroup<'_>) -> Result<&'static Form> {
    group.tree.forms.first().ok_or(Error::NotFound)
}

/// The pictures of the stack `node`.
fn frames(node: &Node, form: &Form) -> Result<Frames> {
    let array = node.array().ok_or(Error::NotFound)?;
    Frames::of_array(array, form.suffix)?.ok_or(Error::NotFound)
}

fn of_frame(group: &ViewGroup<'_>, form: &Form, number: u64) -> Result<u64> {
    let tree = group.number_here(form.number)?;
    let generation = group.file.generation;
    Ok(inode::of_element(generation, tree, group.object, number))
}

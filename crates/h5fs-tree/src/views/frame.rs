//! A file for each picture of an image stack. The file's number selects the part of the array.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Node;
use h5fs_view::pictures::frames::PictureStack;
use h5fs_view::view::View;

use crate::name;
use crate::nodes::indexed::{self, PlainEntry};
use crate::nodes::node::{FsNode, ObjectDescription, TargetInode};
use crate::nodes::selection::SelectionView;
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::NodeType;
use crate::state::listing::ListingCallback;
use crate::views::selection;
use crate::views::trees::view_tree::ViewForm;
use crate::views::view_group::ViewGroup;

/// A regular file with one picture of an image stack.
pub(crate) struct FrameFile;

impl FsNode for FrameFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        selection::stat(target, open_picture(target))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        selection::open(target, open_picture(target)?)
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(ObjectDescription::from_opening(self, target))
    }
}

/// Looks up the picture `name` of a stack in the stack's directory `group`, and increments its
/// lookup count.
///
/// # Errors
/// `NotFound` if the picture does not exist; fails if that cannot be determined now.
pub(crate) fn lookup_frame(
    directory: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    name: &[u8],
) -> Result<LookupEntry> {
    name::check_name_length(name)?;
    let stack = FrameStack::from_group(group)?;
    let number = stack.frames.parse_name(name).ok_or(Error::NotFound)?;
    let inode = group.inode(NodeType::Frame, group.object, name.to_vec());
    directory.add_entry_lookup(stack.ino(group, number)?, &inode, &FrameFile)
}

/// Passes the entries of a stack's directory `group` to `visit`, one for each picture. A listing
/// does not include the lengths of the pictures, which only `stat` determines.
pub(crate) fn list(
    directory: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    first: u64,
    visit: &mut ListingCallback<'_>,
) -> Result<()> {
    let stack = FrameStack::from_group(group)?;
    indexed::list_all(directory, first, visit, stack.frames.count, |number| {
        Ok(PlainEntry {
            name: stack.frames.name(number),
            ino: stack.ino(group, number)?,
            kind: FileKind::File,
        })
    })
}

/// Opens the picture that the target shows. Returns its content and the node of the stack.
fn open_picture(target: &TargetInode<'_>) -> Result<SelectionView> {
    let (file, inode) = (target.file, target.inode);
    let group = ViewGroup::new(target.mount, file, inode.tree, inode.node)?;
    let stack = FrameStack::from_group(&group)?;
    let frames = &stack.frames;
    let number = frames.parse_name(&inode.name).ok_or(Error::NotFound)?;
    let selector = frames.selector(number);
    let view = selection::open_selected(file, &stack.node, &selector, stack.form)?;
    Ok((view, stack.node))
}

/// An image stack: an array of several pictures.
struct FrameStack {
    /// The form of the files in the tree that contains the stack's directory.
    form: &'static ViewForm,
    node: Arc<Node>,
    frames: PictureStack,
}

impl FrameStack {
    /// Returns the image stack whose directory is `group`.
    fn from_group(group: &ViewGroup<'_>) -> Result<Self> {
        let form = group.tree.forms.first().ok_or(Error::NotFound)?;
        let node = group.file.container.node(group.object)?;
        let frames = PictureStack::from_node(&*group.file.container, &node, form.suffix)?;
        let frames = frames.ok_or(Error::NotFound)?;
        Ok(FrameStack { form, node, frames })
    }

    fn ino(&self, group: &ViewGroup<'_>, number: u64) -> Result<u64> {
        group.element_number(self.form.number, number)
    }
}

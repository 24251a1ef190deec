//! An element of an array of references, as a symbolic link to the referenced object.
//!
//! Null references and references to attributes have no link. A region reference links to the array
//! that contains the region. The link of an object without a path leads nowhere and contains an
//! explanation.

use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::{NodeId, NodeKind, Reference};
use h5fs_view::elements::Elements;
use h5fs_view::elements::references::{ReferenceBlock, References, is_object};

use crate::data_files::file_state::FileState;
use crate::name;
use crate::names::namespace::Namespace;
use crate::names::symlink;
use crate::nodes::indexed::{self, PlainEntry};
use crate::nodes::node::{FsNode, TargetInode};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{self, Inode, NodeType};
use crate::state::listing::ListingCallback;
use crate::views::view_group::ViewGroup;

/// A symbolic link for an element of an array of references.
pub(crate) struct ReferenceLink;

impl FsNode for ReferenceLink {
    fn kind(&self) -> FileKind {
        FileKind::Symlink
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        // Reading the link will report why it leads nowhere.
        let text = ignore_permanent(self.readlink(target))?;
        let length = text.as_ref().map_or(0, Vec::len);
        Ok(target.link_entry(length).cacheable_if(text.is_some()))
    }

    fn readlink(&self, target: &TargetInode<'_>) -> Result<Vec<u8>> {
        let (file, inode) = (target.file, target.inode);
        let references = open_references(file, inode.node)?;
        let number = references
            .element_number(&inode.name)
            .ok_or(Error::NotFound)?;
        let reference =
            references.read_target(&*file.container, number, &file.budget.cancel_token())?;
        let text = match reference {
            Reference::Object(node) | Reference::Region(node) => text(target, node)?,
            Reference::Dangling(address) => Some(dangling_text(address, "no object")),
            Reference::External { file, address } => Some(symlink::text_of_hidden_file(
                &file,
                format!("@{address:#x}").as_bytes(),
            )),
            Reference::Null | Reference::Attribute { .. } => return Err(Error::NotFound),
        };
        symlink::check_length(text)
    }
}

/// Looks up the element `name` in the directory `group` of an array of references, and increments
/// its lookup count.
///
/// # Errors
/// `NotFound` if the element does not exist or does not reference an object.
pub(crate) fn lookup_element(
    directory: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    name: &[u8],
) -> Result<LookupEntry> {
    name::check_name_length(name)?;
    let file = directory.file;
    let references = open_references(file, group.object)?;
    let number = references.element_number(name).ok_or(Error::NotFound)?;
    match ignore_permanent(references.read_target(
        &*file.container,
        number,
        &file.budget.cancel_token(),
    ))? {
        Some(reference) if !is_object(&reference) => return Err(Error::NotFound),
        _ => {}
    }
    let inode = group.inode(NodeType::Reference, group.object, name.to_vec());
    directory.add_entry_lookup(element_inode_number(group, number)?, &inode, &ReferenceLink)
}

/// Passes the elements that reference an object to `visit`, as entries of the array's directory.
pub(crate) fn list(
    directory: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    first: u64,
    visit: &mut ListingCallback<'_>,
) -> Result<()> {
    let file = directory.file;
    let references = open_references(file, group.object)?;
    let mut block = ReferenceBlock::default();
    indexed::list(directory, first, visit, |at| {
        if block.next_element(at).is_none() {
            block = references
                .read_block(at, &file.budget.cancel_token())?
                .unwrap_or_default();
        }
        let Some((number, element)) = block.next_element(at) else {
            return Ok(None);
        };
        let mut links = Vec::new();
        if references.is_object_reference(&*file.container, element) {
            links.push(PlainEntry {
                name: references.element_name(number),
                ino: element_inode_number(group, number)?,
                kind: FileKind::Symlink,
            });
        }
        Ok(Some((links, number + 1)))
    })
}

fn element_inode_number(group: &ViewGroup<'_>, number: u64) -> Result<u64> {
    // The number after the tree's own is free, because this tree has no forms of files.
    group.element_number(group.tree.number + 1, number)
}

/// Opens the array of references `object` for reading.
fn open_references(file: &FileState, object: NodeId) -> Result<References> {
    let node = file.container.node(object)?;
    let array = node.array().ok_or(Error::NotFound)?;
    let elements = Elements::from_reader(file.reader(object, array)?)?;
    References::new(elements)?.ok_or(Error::NotFound)
}

/// Returns the text of the symbolic link for a reference to the object `node`. Returns `None` if
/// the path of the link's own directory is unknown.
fn text(target: &TargetInode<'_>, node: NodeId) -> Result<Option<Vec<u8>>> {
    let space = target.namespace();
    let found = ignore_permanent(target.file.container.node(node))?;
    let is_group = |kind: &NodeKind| matches!(kind, NodeKind::Group);
    let way = match &found {
        Some(found) if is_group(&found.kind) => space.path(node),
        _ => path_names(&space, node),
    };
    let index = target.file.path_index();
    let Some(way) = way else {
        index.check_no_read_error()?;
        let reason = match found {
            None => "no object",
            Some(_) if index.is_complete() => "an object without a path",
            Some(_) => "an object whose path is unknown",
        };
        return Ok(Some(dangling_text(node.number(), reason)));
    };
    let names = way.into_iter().map(Vec::from);
    let up = directory_depth(target).map(|depth| std::iter::repeat_n(b"..".to_vec(), depth));
    Ok(up.map(|up| symlink::join_path(up.chain(names))))
}

/// Returns the text of a symbolic link for a reference that leads nowhere. `address` is the address
/// in the reference. All other entries of the directory have an index as name, so the text cannot
/// match one.
fn dangling_text(address: u64, reason: &str) -> Vec<u8> {
    format!("@{address:#x}: {reason}").into_bytes()
}

/// Returns the shown names from the root to the object, which is not a group. Returns `None` if its
/// path is unknown.
fn path_names(space: &Namespace<'_>, object: NodeId) -> Option<Vec<Box<[u8]>>> {
    let (group, name) = space.indexed_parent_and_name(object)?;
    let mut way = space.path(group)?;
    way.push(name);
    Some(way)
}

/// Returns the number of directories between the root and the link: `.h5fs`, the tree, the groups,
/// and the array. Returns `None` if the path of the array's group is unknown.
fn directory_depth(target: &TargetInode<'_>) -> Option<usize> {
    const OUTER: usize = 3;
    let (space, inode) = (target.namespace(), target.inode);
    let directory: Option<Inode> = target.mount.inodes.get(inode.parent);
    let group = match directory {
        Some(known) => inode::node_with_number(known.generation, known.parent)?,
        None => space.indexed_parent_and_name(inode.node)?.0,
    };
    Some(space.path(group)?.len() + OUTER)
}

#[cfg(test)]
mod tests;

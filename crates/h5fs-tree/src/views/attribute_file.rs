//! An attribute as a file: its value as text, one line for each element.

use std::ops::ControlFlow;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::{Attribute, NodeId};
use h5fs_view::documents::attribute_file;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::name;
use crate::nodes::node::{FsNode, TargetInode};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::NodeType;
use crate::views::view_group::{ViewEntry, ViewGroup};

/// A regular file with the value of an attribute as text.
pub(crate) struct AttributeFile;

impl FsNode for AttributeFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        target.entry_with_length(text(target).map(|text| text.length()))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        Ok(Box::new(text(target)?))
    }
}

/// Looks up the attribute file `name` in the directory `group`, and increments its lookup count.
///
/// # Errors
/// `NotFound` if the attribute does not exist; fails if it cannot be read now.
pub(crate) fn lookup_attribute_file(
    directory: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    name: &[u8],
) -> Result<LookupEntry> {
    let (file, object) = (directory.file, group.object);
    let mut is_missing = false;
    let text = file.cached_text(object, name, || {
        let found = find_attribute(file, object, name);
        is_missing = found.is_err();
        render(file, found?)
    });
    if is_missing && let Err(error) = text {
        return Err(error);
    }
    let shown = attribute_entry(group, name);
    TargetInode::add_lookup(directory.mount, file, shown.ino, &shown.inode, |target| {
        target.entry_with_length(text.map(|text| text.length()))
    })
}

/// Returns the entry of the attribute file `name` in `group`.
pub(crate) fn attribute_entry(group: &ViewGroup<'_>, name: &[u8]) -> ViewEntry {
    ViewEntry {
        ino: group.link_number(name),
        inode: group.inode(NodeType::Attribute, group.object, name.to_vec()),
        link_text: None,
        is_cacheable: true,
    }
}

fn text(target: &TargetInode<'_>) -> Result<InMemoryContent> {
    let (file, inode) = (target.file, target.inode);
    file.cached_text(inode.node, &inode.name, || {
        render(file, find_attribute(file, inode.node, &inode.name)?)
    })
}

fn render(file: &FileState, attribute: Attribute) -> Result<InMemoryContent> {
    let paths = |node| file.path_index().checked_path(node);
    attribute_file::view(&*file.container, &paths, &attribute.content?)
}

/// Returns the attribute of `object` whose file has the name `shown`.
fn find_attribute(file: &FileState, object: NodeId, shown: &[u8]) -> Result<Attribute> {
    let container = &*file.container;
    if let Some(name) = name::unescape(shown, false) {
        let name = name.strip_prefix(b"@").ok_or(Error::NotFound)?;
        return container.attribute(object, name)?.ok_or(Error::NotFound);
    }
    let mut found = None;
    if name::is_shortened(shown) {
        container.attributes(object, &mut |attribute| {
            if ViewGroup::attribute_name(&attribute.name) != shown {
                return ControlFlow::Continue(());
            }
            found = Some(attribute);
            ControlFlow::Break(())
        })?;
    }
    found.ok_or(Error::NotFound)
}

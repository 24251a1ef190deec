//! The nodes of a file's own tree: groups as directories, other objects as regular files, and links
//! other than hard links as symbolic links.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::{LinkTarget, Node, NodeKind};
use h5fs_reader::wire::to_u64;
use h5fs_view::documents::attributes;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::errno::stale_error;
use crate::name;
use crate::names::namespace::{LinkEntry, ShownGroup};
use crate::nodes::indexed::{self, IndexedEntry};
use crate::nodes::missing_targets;
use crate::nodes::node::{
    BuiltinAttributes, Defect, DefectCallback, FsNode, ObjectDescription, TargetInode,
};
use crate::nodes::object::{self, StoredSize};
use crate::nodes::selection::{self, GroupSelections, SelectionDirectory};
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{self, Inode, NodeType};
use crate::state::listing::{ListedAttributes, ListingCallback, ListingEntry, ListingState};

/// A directory that shows the links of a group.
pub(crate) struct GroupDirectory;

/// An object other than a group, or an unreadable object, as a regular file.
pub(crate) struct ObjectFile;

/// A symbolic link. It shows a link other than a hard link, or a hard link to a group whose
/// directory is at another name.
pub(crate) struct ObjectLink;

/// A link that cannot be decoded, as a regular file whose reads report the error.
pub(crate) struct DamagedLink;

/// An object that cannot be read because of a temporary error. Listings contain its name, but
/// lookups fail.
pub(crate) struct UnreadableObject;

impl FsNode for GroupDirectory {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        stat_object(target)
    }

    fn lookup(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
        let mount = target.mount;
        let group = target.directory();
        if name == name::VIEWS && group.is_root() {
            return lookup_views(target);
        }
        match group.find(name) {
            Err(Error::NotFound) => selection::lookup_selection(target, name),
            found => lookup_link_entry(mount, &group, &found?, true),
        }
    }

    fn absence_reason(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<Option<String>> {
        GroupSelections(target).absence_reason(name)
    }

    fn list(
        &self,
        target: &TargetInode<'_>,
        listing: &mut ListingState,
        first: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        let (container, directory) = (&*target.file.container, target.directory());
        let listed = indexed::list(target, first, visit, |at| {
            let is_ordered = target.mount.options.ordered;
            let link = listing.link_at(container, target.inode.node, at, is_ordered)?;
            let Some((link, behind)) = link else {
                return Ok(None);
            };
            let found = directory.link_entry(link);
            if found.inode.node_type == NodeType::Unreadable {
                target.mount.mark_incomplete(target.ino, listing);
            }
            Ok(Some((vec![found], behind)))
        });
        listed.inspect_err(|error| target.record_error(error))
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(describe_target(target))
    }

    fn examine(&self, target: &TargetInode<'_>, find: &mut DefectCallback<'_>) -> Result<()> {
        examine_object(target, find)
    }
}

impl FsNode for ObjectFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        stat_object(target)
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let node = target.file.container.node(target.inode.node)?;
        object::verify_checksum(target.mount, target.file, node.id)?;
        object::open(target.file, &node)
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(describe_target(target))
    }

    fn examine(&self, target: &TargetInode<'_>, find: &mut DefectCallback<'_>) -> Result<()> {
        examine_object(target, find)
    }
}

impl FsNode for ObjectLink {
    fn kind(&self) -> FileKind {
        FileKind::Symlink
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        stat_link(target)
    }

    fn readlink(&self, target: &TargetInode<'_>) -> Result<Vec<u8>> {
        let directory = target.directory();
        let found = directory.find(&target.inode.name)?;
        missing_targets::record_dangling(target, &found.target)?;
        directory.link_text(&found.target)
    }

    fn dangling_reason(&self, target: &TargetInode<'_>, object: bool) -> Result<Option<String>> {
        missing_targets::dangling_reason(target, object)
    }

    fn examine(&self, target: &TargetInode<'_>, find: &mut DefectCallback<'_>) -> Result<()> {
        missing_targets::report_dangling_link(target, find)
    }
}

impl FsNode for DamagedLink {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        stat_link(target)
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        Err(damage_error(target))
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(ObjectDescription {
            node: None,
            content_error: Some(damage_error(target)),
            builtin_attributes: Ok(BuiltinAttributes::new()),
        })
    }

    fn examine(&self, target: &TargetInode<'_>, _: &mut DefectCallback<'_>) -> Result<()> {
        Err(damage_error(target))
    }
}

impl FsNode for UnreadableObject {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn stat(&self, _: &TargetInode<'_>) -> Result<LookupEntry> {
        Err(stale_error())
    }
}

impl IndexedEntry for LinkEntry {
    fn visit(&self, group: &TargetInode<'_>, next: u64, visit: &mut ListingCallback<'_>) -> bool {
        let listed = ListingEntry {
            name: &self.inode.name,
            ino: self.ino,
            kind: kind_of(self.inode.node_type),
            stat: &|| match lookup_link_entry(group.mount, &group.directory(), self, false) {
                Ok(entry) => ListedAttributes::Counted(entry),
                Err(_) => ListedAttributes::Unknown(FileKind::Directory),
            },
        };
        visit(&listed, next)
    }
}

fn kind_of(node_type: NodeType) -> FileKind {
    match node_type {
        NodeType::Group | NodeType::Unreadable => FileKind::Directory,
        NodeType::Link => FileKind::Symlink,
        _ => FileKind::File,
    }
}

/// Increments the lookup count of the entry `found` of `directory`, and returns its attributes.
/// Attributes that are expensive to determine are omitted unless `at_any_cost` is true.
///
/// # Errors
/// Fails if the entry cannot be read now, because a later attempt may succeed.
pub(crate) fn lookup_link_entry(
    mount: &Mount,
    directory: &ShownGroup<'_>,
    found: &LinkEntry,
    at_any_cost: bool,
) -> Result<LookupEntry> {
    refuse_temporarily_unreadable(mount, directory.namespace.file, found)?;
    let file = directory.namespace.file;
    TargetInode::add_lookup(mount, file, found.ino, &found.inode, |target| {
        describe(target, directory, found, at_any_cost)
    })
}

/// Returns the directory of views of the file with the root `root`. Increments its lookup count,
/// except for the source, whose directory of views always exists.
fn lookup_views(root: &TargetInode<'_>) -> Result<LookupEntry> {
    let (mount, file) = (root.mount, root.file);
    if file.tree == inode::SOURCE {
        let views = inode::number_in_generation(file.generation, inode::VIEWS);
        return Ok(mount.empty_entry(file, views, FileKind::Directory));
    }
    if !mount.options.views {
        return Err(Error::NotFound);
    }
    let views = Inode {
        node_type: NodeType::Views,
        parent: root.ino,
        name: name::VIEWS.into(),
        ..root.inode.clone()
    };
    let ino = inode::link_number(file.generation, file.tree, views.node, name::VIEWS);
    TargetInode::add_lookup(mount, file, ino, &views, |views| {
        Ok(views.empty_entry(FileKind::Directory))
    })
}

fn refuse_temporarily_unreadable(
    mount: &Mount,
    file: &Arc<FileState>,
    found: &LinkEntry,
) -> Result<()> {
    match &found.object {
        Some(Err(error)) if error.is_transient() => {
            mount.record_error(file, found.ino, &found.inode, error);
            Err(error.clone())
        }
        _ => Ok(()),
    }
}

fn describe(
    target: &TargetInode<'_>,
    directory: &ShownGroup<'_>,
    found: &LinkEntry,
    at_any_cost: bool,
) -> Result<LookupEntry> {
    match &found.object {
        Some(node) => describe_object(target, node, at_any_cost),
        None => Ok(describe_link(target, directory, &found.target)),
    }
}

/// Returns the directory entry, with attributes, of the object `node`. Attributes that are
/// expensive to determine are omitted unless `at_any_cost` is true.
fn describe_object(
    target: &TargetInode<'_>,
    node: &Result<Arc<Node>>,
    at_any_cost: bool,
) -> Result<LookupEntry> {
    let entry = target.empty_entry(kind_of(target.inode.node_type));
    let node = match node {
        Ok(node) => node,
        Err(error) => {
            target.record_error(error);
            return Ok(entry.cacheable_if(false));
        }
    };
    let mut entry = entry.with_modification_time_of(node);
    if target.inode.node_type != NodeType::Object {
        return Ok(entry);
    }
    let (size, stored) = object::measure(target.file, node, at_any_cost)?;
    let known = match stored {
        StoredSize::Known(stored) => stored,
        StoredSize::Unknown => Some(size),
    };
    entry.attributes.links = node.link_count.max(1);
    // If a part of the object cannot be read now, its length may change once that part is readable.
    let is_right = stored != StoredSize::Unknown && !node.has_transient_error();
    Ok(entry.with_size(size, known).cacheable_if(is_right))
}

/// Returns the directory entry of a link with the target `to`, shown as a symbolic link.
fn describe_link(
    target: &TargetInode<'_>,
    directory: &ShownGroup<'_>,
    to: &LinkTarget,
) -> LookupEntry {
    let mut entry = target.empty_entry(kind_of(target.inode.node_type));
    // Other files may appear and disappear, and an object that cannot be read now may be readable
    // later.
    let mut is_right = to.other_file_name().is_none();
    if target.inode.node_type == NodeType::Link {
        let text = directory.link_text(to);
        is_right &= !matches!(&text, Err(error) if error.is_transient());
        let length = text.map_or(0, |text| text.len());
        entry = entry.with_size(to_u64(length), None);
    } else if let LinkTarget::Damaged(error) = to {
        target.record_error(error);
    }
    entry.cacheable_if(is_right)
}

fn stat_object(target: &TargetInode<'_>) -> Result<LookupEntry> {
    match target.file.container.node(target.inode.node) {
        Err(error) if error.is_transient() => {
            target.record_error(&error);
            Err(error)
        }
        node => describe_object(target, &node, true),
    }
}

fn stat_link(target: &TargetInode<'_>) -> Result<LookupEntry> {
    let directory = target.directory();
    let found = directory.find(&target.inode.name)?;
    refuse_temporarily_unreadable(target.mount, target.file, &found)?;
    describe(target, &directory, &found, true)
}

/// Returns the error of decoding the damaged link `target`.
fn damage_error(target: &TargetInode<'_>) -> Error {
    let found = target.directory().find(&target.inode.name);
    match found.map(|found| found.target) {
        Ok(LinkTarget::Damaged(error)) | Err(error) => error,
        Ok(_) => Error::corrupt("link: its target does not exist", None),
    }
}

fn describe_target(target: &TargetInode<'_>) -> ObjectDescription {
    match target.file.container.node(target.inode.node) {
        Ok(node) => ObjectDescription {
            content_error: object::content_fault(target.file, &node),
            builtin_attributes: builtin_attributes(target.file, &node),
            node: Some(node),
        },
        Err(error) => ObjectDescription {
            node: None,
            content_error: Some(error),
            builtin_attributes: Ok(BuiltinAttributes::new()),
        },
    }
}

/// Returns the built-in extended attributes that only some objects have: the compression of the
/// ASDF block that contains the elements.
///
/// # Errors
/// Fails if the compression cannot be determined now.
fn builtin_attributes(file: &FileState, node: &Node) -> Result<BuiltinAttributes> {
    let extras = file.container.asdf_extras();
    let extras = extras.filter(|_| matches!(node.kind, NodeKind::Array(_)));
    let code = extras.map(|extras| ignore_permanent(extras.compression_of(node.id)));
    let code = code.transpose()?.flatten().flatten();
    let facts = code.map(|code| (object::COMPRESSION, code.into_bytes()));
    Ok(facts.into_iter().collect())
}

/// Reads every attribute of an object, including attributes that are not shown, and searches for
/// the files that contain its elements. Reports each defect to `find`.
fn examine_object(target: &TargetInode<'_>, find: &mut DefectCallback<'_>) -> Result<()> {
    let container = &*target.file.container;
    let node = container.node(target.inode.node)?;
    container.attributes(node.id, &mut |attribute| {
        // A reference is valid whatever its target, so the path of the target is not searched.
        let value = attribute
            .content
            .and_then(|content| attributes::value_lines(container, &|_| Ok(None), &content));
        if let Err(error) = value {
            find(Defect::Attribute(&attribute.name, error));
        }
        ControlFlow::Continue(())
    })?;
    if let NodeKind::Array(array) = &node.kind {
        missing_targets::report_missing_sources(array, find);
    }
    node.error.clone().map_or(Ok(()), Err)
}

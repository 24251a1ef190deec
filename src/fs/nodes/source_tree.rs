//! The nodes of a file's own tree: groups as directories, other objects as regular files, and links
//! other than hard links as symbolic links.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result, if_lasting};
use h5fs_reader::model::{LinkTarget, Node, NodeKind};
use h5fs_reader::wire::to_u64;

use crate::fs::errno::stale;
use crate::fs::forest::file_state::FileState;
use crate::fs::forest::mount::Mount;
use crate::fs::name;
use crate::fs::names::namespace::{Directory, LinkEntry};
use crate::fs::nodes::indexed::{self, Show};
use crate::fs::nodes::node::{Described, Facts, Find, Finding, FsNode, Target};
use crate::fs::nodes::object::{self, Stored};
use crate::fs::nodes::selection;
use crate::fs::stat::{Entry, Kind};
use crate::fs::state::inode::{self, Inode, NodeType};
use crate::fs::state::lacks;
use crate::fs::state::listing::{Listable, Listed, Listing, Visit};
use crate::view::View;
use crate::view::texts::attributes;

/// A group, as a directory.
pub(in crate::fs) struct Group;

/// An object other than a group, or an unreadable object, as a regular file.
pub(in crate::fs) struct Object;

/// A symbolic link: a link other than a hard link, or a hard link to a group whose directory is
/// elsewhere.
pub(in crate::fs) struct Link;

/// A link whose target is damaged, as a regular file.
pub(in crate::fs) struct DamagedLink;

/// An object that cannot be read now. The object is listed but cannot be looked up.
pub(in crate::fs) struct Unreadable;

impl FsNode for Group {
    fn kind(&self) -> Kind {
        Kind::Directory
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        stat_object(target)
    }

    fn lookup(&self, target: &Target<'_>, name: &[u8]) -> Result<Entry> {
        let mount = target.mount;
        let group = target.directory();
        if name == name::VIEWS && group.is_root() {
            return enter_views(target);
        }
        match group.find(name) {
            Err(Error::NotFound) => selection::enter(target, name),
            found => enter(mount, &group, &found?, true),
        }
    }

    fn why_absent(&self, target: &Target<'_>, name: &[u8]) -> Result<Option<String>> {
        selection::why_absent(target, name)
    }

    fn list(
        &self,
        target: &Target<'_>,
        listing: &mut Listing,
        first: u64,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let (container, directory) = (&*target.file.container, target.directory());
        let listed = indexed::list(target, first, visit, |at| {
            let is_ordered = target.mount.options.ordered;
            let link = listing.link(container, target.inode.node, at, is_ordered)?;
            let Some((link, behind)) = link else {
                return Ok(None);
            };
            let found = directory.show(link);
            if found.inode.node_type == NodeType::Unreadable {
                target.mount.mark_unsure(target.ino, listing);
            }
            Ok(Some((vec![found], behind)))
        });
        listed.inspect_err(|error| target.note(error))
    }

    fn xattr(&self, target: &Target<'_>) -> Option<Described> {
        Some(described(target))
    }

    fn examine(&self, target: &Target<'_>, find: &mut Find<'_>) -> Result<()> {
        examine_object(target, find)
    }
}

impl FsNode for Object {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        stat_object(target)
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        let node = target.file.container.node(target.inode.node)?;
        object::verify(target.mount, target.file, node.id)?;
        object::open(target.file, &node)
    }

    fn xattr(&self, target: &Target<'_>) -> Option<Described> {
        Some(described(target))
    }

    fn examine(&self, target: &Target<'_>, find: &mut Find<'_>) -> Result<()> {
        examine_object(target, find)
    }
}

impl FsNode for Link {
    fn kind(&self) -> Kind {
        Kind::Symlink
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        stat_link(target)
    }

    fn readlink(&self, target: &Target<'_>) -> Result<Vec<u8>> {
        let directory = target.directory();
        let found = directory.find(&target.inode.name)?;
        lacks::note_link(target, &found.target)?;
        directory.text(&found.target)
    }

    fn why_nowhere(&self, target: &Target<'_>, object: bool) -> Result<Option<String>> {
        lacks::why_nowhere(target, object)
    }

    fn examine(&self, target: &Target<'_>, find: &mut Find<'_>) -> Result<()> {
        lacks::examine_link(target, find)
    }
}

impl FsNode for DamagedLink {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        stat_link(target)
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        Err(damage(target))
    }

    fn xattr(&self, target: &Target<'_>) -> Option<Described> {
        Some(Described {
            node: None,
            fault: Some(damage(target)),
            facts: Ok(Facts::new()),
        })
    }

    fn examine(&self, target: &Target<'_>, _: &mut Find<'_>) -> Result<()> {
        Err(damage(target))
    }
}

impl FsNode for Unreadable {
    fn kind(&self) -> Kind {
        Kind::Directory
    }

    fn stat(&self, _: &Target<'_>) -> Result<Entry> {
        Err(stale())
    }
}

impl Show for LinkEntry {
    fn show(&self, group: &Target<'_>, next: u64, visit: &mut Visit<'_>) -> bool {
        let listed = Listed {
            name: &self.inode.name,
            ino: self.ino,
            kind: kind_of(self.inode.node_type),
            stat: &|| match enter(group.mount, &group.directory(), self, false) {
                Ok(entry) => Listable::Counted(entry),
                Err(_) => Listable::Unknown(Kind::Directory),
            },
        };
        visit(&listed, next)
    }
}

fn kind_of(node_type: NodeType) -> Kind {
    match node_type {
        NodeType::Group | NodeType::Unreadable => Kind::Directory,
        NodeType::Link => Kind::Symlink,
        _ => Kind::File,
    }
}

/// Counts a lookup of `found` in `directory`, and describes the entry. Expensive attributes are
/// omitted unless `at_any_cost` is set.
///
/// # Errors
/// Fails if the entry cannot be read now, because a later attempt may succeed.
pub(in crate::fs) fn enter(
    mount: &Mount,
    directory: &Directory<'_>,
    found: &LinkEntry,
    at_any_cost: bool,
) -> Result<Entry> {
    refuse_unread(mount, directory.space.file, found)?;
    let file = directory.space.file;
    Target::enter(mount, file, found.ino, &found.inode, |target| {
        describe(target, directory, found, at_any_cost)
    })
}

/// Returns the directory of views of the file with the root `root`. The lookup is counted, except
/// for the source.
fn enter_views(root: &Target<'_>) -> Result<Entry> {
    let (mount, file) = (root.mount, root.file);
    if file.tree == inode::SOURCE {
        let views = inode::of_generation(file.generation, inode::VIEWS);
        return Ok(mount.fixed(file, views, Kind::Directory));
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
    let ino = inode::of_link(file.generation, file.tree, views.node, name::VIEWS);
    Target::enter(mount, file, ino, &views, |views| {
        Ok(views.bare(Kind::Directory))
    })
}

fn refuse_unread(mount: &Mount, file: &Arc<FileState>, found: &LinkEntry) -> Result<()> {
    match &found.object {
        Some(Err(error)) if error.is_passing() => {
            mount.note(file, found.ino, &found.inode, error);
            Err(error.clone())
        }
        _ => Ok(()),
    }
}

fn describe(
    target: &Target<'_>,
    directory: &Directory<'_>,
    found: &LinkEntry,
    at_any_cost: bool,
) -> Result<Entry> {
    match &found.object {
        Some(node) => describe_object(target, node, at_any_cost),
        None => Ok(describe_link(target, directory, &found.target)),
    }
}

/// Returns the entry of an object.
fn describe_object(
    target: &Target<'_>,
    node: &Result<Arc<Node>>,
    at_any_cost: bool,
) -> Result<Entry> {
    let entry = target.bare(kind_of(target.inode.node_type));
    let node = match node {
        Ok(node) => node,
        Err(error) => {
            target.note(error);
            return Ok(entry.kept_if(false));
        }
    };
    let mut entry = entry.modified_as(node);
    if target.inode.node_type != NodeType::Object {
        return Ok(entry);
    }
    let (size, stored) = object::measure(target.file, node, at_any_cost)?;
    let known = match stored {
        Stored::Known(stored) => stored,
        Stored::Unknown => Some(size),
    };
    entry.attributes.links = node.link_count.max(1);
    // The block of a partial object may determine its length.
    let is_right = stored != Stored::Unknown && !node.is_partial();
    Ok(entry.sized(size, known).kept_if(is_right))
}

/// Returns the entry of a link with the target `to`.
fn describe_link(target: &Target<'_>, directory: &Directory<'_>, to: &LinkTarget) -> Entry {
    let mut entry = target.bare(kind_of(target.inode.node_type));
    // Other files may appear and disappear, and an object that cannot be read now may be readable
    // later.
    let mut is_right = to.other_file().is_none();
    if target.inode.node_type == NodeType::Link {
        let text = directory.text(to);
        is_right &= !matches!(&text, Err(error) if error.is_passing());
        let length = text.map_or(0, |text| text.len());
        entry = entry.sized(to_u64(length), None);
    } else if let LinkTarget::Damaged(error) = to {
        target.note(error);
    }
    entry.kept_if(is_right)
}

fn stat_object(target: &Target<'_>) -> Result<Entry> {
    match target.file.container.node(target.inode.node) {
        Err(error) if error.is_passing() => {
            target.note(&error);
            Err(error)
        }
        node => describe_object(target, &node, true),
    }
}

fn stat_link(target: &Target<'_>) -> Result<Entry> {
    let directory = target.directory();
    let found = directory.find(&target.inode.name)?;
    refuse_unread(target.mount, target.file, &found)?;
    describe(target, &directory, &found, true)
}

/// Returns the error of a damaged link.
fn damage(target: &Target<'_>) -> Error {
    let found = target.directory().find(&target.inode.name);
    match found.map(|found| found.target) {
        Ok(LinkTarget::Damaged(error)) | Err(error) => error,
        Ok(_) => Error::corrupt("link: its target does not exist", None),
    }
}

fn described(target: &Target<'_>) -> Described {
    match target.file.container.node(target.inode.node) {
        Ok(node) => Described {
            fault: object::fault(target.file, &node),
            facts: facts(target.file, &node),
            node: Some(node),
        },
        Err(error) => Described {
            node: None,
            fault: Some(error),
            facts: Ok(Facts::new()),
        },
    }
}

/// Returns the additional facts about an object: the compression of the block with its elements.
///
/// # Errors
/// Fails if the compression cannot be determined now.
fn facts(file: &FileState, node: &Node) -> Result<Facts> {
    let extras = file.container.extras();
    let extras = extras.filter(|_| matches!(node.kind, NodeKind::Array(_)));
    let code = extras.map(|extras| if_lasting(extras.compression_of(node.id)));
    let code = code.transpose()?.flatten().flatten();
    let facts = code.map(|code| (object::COMPRESSION, code.into_bytes()));
    Ok(facts.into_iter().collect())
}

/// Reads every attribute of an object, including hidden ones, and searches for the sources of its
/// elements.
fn examine_object(target: &Target<'_>, find: &mut Find<'_>) -> Result<()> {
    let container = &*target.file.container;
    let node = container.node(target.inode.node)?;
    container.attributes(node.id, &mut |attribute| {
        // A reference is valid whatever its target, so the path of the target is not searched.
        let value = attribute
            .content
            .and_then(|content| attributes::value_lines(container, &|_| Ok(None), &content));
        if let Err(error) = value {
            find(Finding::Attribute(&attribute.name, error));
        }
        ControlFlow::Continue(())
    })?;
    if let NodeKind::Array(array) = &node.kind {
        lacks::examine_sources(array, find);
    }
    node.error.clone().map_or(Ok(()), Err)
}

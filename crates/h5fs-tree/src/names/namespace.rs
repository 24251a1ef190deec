//! The directory tree of a file: the entries for the links of each group, and the one location
//! where each group is a directory.
//!
//! A group may have many hard links and may contain itself. But the kernel allows a directory in
//! only one place: a directory found under a second parent is moved, and one that is its own
//! ancestor is `ELOOP`. So a group is a directory at one of its names, and a symbolic link to that
//! directory at all others.
//!
//! The directory's name is chosen by these rules:
//!
//! - With a link count of 1, the name of the link by which a lookup finds the group.
//! - Otherwise the name in the object-to-path index.
//! - If the index has none, the first name looked up, for the life of the mount.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use h5fs_reader::error::{Error, Result, quote};
use h5fs_reader::model::{Link, LinkTarget, Node, NodeId, NodeKind};

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::data_files::other_files::{OtherFiles, ShownLocation};
use crate::errno::is_fault;
use crate::limits;
use crate::name;
use crate::names::symlink;
use crate::state::errors::ErrorKind;
use crate::state::inode::{self, Inode, NodeType};
use crate::state::inodes::Inodes;

/// The directory tree of one mounted file.
#[derive(Clone, Copy)]
pub(crate) struct Namespace<'a> {
    pub(crate) file: &'a Arc<FileState>,
    pub(crate) inodes: &'a Inodes,
    pub(crate) other_files: &'a OtherFiles,
}

/// The directory entry for a link of a group.
pub(crate) struct LinkEntry {
    /// Inode number, before hash collisions with other links are resolved.
    pub(crate) ino: u64,
    pub(crate) inode: Inode,
    /// The target object of a hard link, or the error of reading the object. `None` for other
    /// links.
    pub(crate) object: Option<Result<Arc<Node>>>,
    /// The target of the link, as stored in the file.
    pub(crate) target: LinkTarget,
}

/// A group, as the directory that shows its links.
pub(crate) struct ShownGroup<'a> {
    pub(crate) namespace: Namespace<'a>,
    pub(crate) group: NodeId,
    path: OnceCell<Option<Vec<Box<[u8]>>>>,
    /// The last group for which this directory contains an alias, with the text of the symbolic
    /// link. Cached because a group may contain many aliases of one group.
    last_alias: RefCell<Option<(NodeId, Result<Vec<u8>>)>>,
}

impl Mount {
    /// Returns the directory tree of `file`.
    pub(crate) fn namespace<'a>(&'a self, file: &'a Arc<FileState>) -> Namespace<'a> {
        Namespace {
            file,
            inodes: &self.inodes,
            other_files: &self.other_files,
        }
    }

    /// Records the error of the object `inode`, and logs it unless the same error was logged
    /// before.
    pub(crate) fn record_error(
        &self,
        file: &Arc<FileState>,
        ino: u64,
        inode: &Inode,
        error: &Error,
    ) {
        let is_lasting = is_fault(error) && !file.is_half_written();
        if !is_lasting || !self.faults.record(ino, error) {
            return;
        }
        let object = self.object_name(file, inode);
        self.report(ErrorKind::from_error(error), &object, &error.to_string());
    }

    /// Returns the path of an object for messages. For an object of an externally linked file, the
    /// name of the file precedes the path; for a view, the name of its tree does.
    pub(crate) fn object_name(&self, file: &Arc<FileState>, inode: &Inode) -> String {
        let path = self.namespace(file).file_path(inode, 1).unwrap_or_default();
        format!("{}{}", self.name_prefix(file, inode), quote(&path))
    }
}

impl<'a> Namespace<'a> {
    pub(crate) fn root(&self) -> NodeId {
        self.file.container.root()
    }

    /// Returns the inode number of the object `node`.
    pub(crate) fn ino(&self, node: NodeId) -> u64 {
        if self.file.is_mount_root(node) {
            inode::ROOT
        } else {
            inode::node_number(self.file.generation, self.file.tree, node)
        }
    }

    /// Returns the object with the inode number `ino`; the inverse of [`ino`](Self::ino).
    fn node(&self, ino: u64) -> Option<NodeId> {
        match ino {
            inode::ROOT => Some(self.root()),
            _ => inode::node_with_number(self.file.generation, ino),
        }
    }

    pub(crate) fn directory(self, group: NodeId) -> ShownGroup<'a> {
        ShownGroup {
            namespace: self,
            group,
            path: OnceCell::new(),
            last_alias: RefCell::default(),
        }
    }

    /// Returns the path of the directory of `group`, as shown names from the root. Returns `None`
    /// if the group has no directory yet, or if the path is too deep for a symbolic link.
    pub(crate) fn path(&self, group: NodeId) -> Option<Vec<Box<[u8]>>> {
        let steps = self.path_steps(group, limits::SYMLINK_BYTES / 2)?;
        Some(steps.into_iter().map(|(_, name)| name).collect())
    }

    /// Returns the path of the directory of `group`: each parent group, with the shown name in it.
    /// Returns `None` if the path is unknown or has more than `most` names.
    fn path_steps(&self, group: NodeId, most: usize) -> Option<Vec<(NodeId, Box<[u8]>)>> {
        let mut steps = Vec::new();
        let mut at = group;
        while at != self.root() {
            if steps.len() >= most {
                return None;
            }
            let step = self.parent_and_name(at)?;
            at = step.0;
            steps.push(step);
        }
        steps.reverse();
        Some(steps)
    }

    /// Returns the group that contains the directory of `group`, and the directory's shown name in
    /// it. Returns `None` if no directory is known.
    fn parent_and_name(&self, group: NodeId) -> Option<(NodeId, Box<[u8]>)> {
        if let Some((parent, name)) = self
            .inodes
            .parent_and_name(self.ino(group), self.file.generation)
        {
            return Some((self.node(parent)?, name));
        }
        self.indexed_parent_and_name(group)
    }

    /// Returns the parent group of the object `group`, and the object's shown name in the parent,
    /// according to the object-to-path index. Returns `None` if the index lacks the object.
    pub(crate) fn indexed_parent_and_name(&self, group: NodeId) -> Option<(NodeId, Box<[u8]>)> {
        self.known_parent_and_name(group).ok().flatten()
    }

    /// Finds the parent group and the shown name like
    /// [`indexed_parent_and_name`](Self::indexed_parent_and_name).
    ///
    /// # Errors
    /// Fails if a group that cannot be read may contain a name of the object that the index would
    /// prefer.
    fn known_parent_and_name(&self, group: NodeId) -> Result<Option<(NodeId, Box<[u8]>)>> {
        let index = self.file.path_index();
        let place = index.checked_parent_and_name(group)?;
        Ok(place.map(|(parent, name)| {
            let shown = name::escape(name, parent == self.root());
            (parent, shown.into())
        }))
    }

    /// Returns the path of an object, with names as in the file. For an object with several links,
    /// the path is the one in the object-to-path index. For any other object, the path is the one
    /// by which a lookup found the object. Returns `None` if no path is known or the path is too
    /// long.
    pub(crate) fn file_path(&self, inode: &Inode, link_count: u32) -> Option<Vec<u8>> {
        if inode.node_type == NodeType::Object && link_count > 1 {
            match self.file.path_index().checked_path(inode.node) {
                Ok(None) => {}
                canonical => return canonical.ok().flatten(),
            }
        }
        if inode.node == self.root() && inode.node_type == NodeType::Group {
            return Some(b"/".to_vec());
        }
        // The name of a selection is the array's name, a `/`, and the selector.
        let array = inode.name.split(|&byte| byte == b'/').next();
        self.entry_path(self.node(inode.parent)?, array.unwrap_or_default())
    }

    /// Returns the path of the object `node` from the object-to-path index, for texts that mention
    /// the object.
    pub(crate) fn indexed_path(&self, node: NodeId) -> Result<Option<Vec<u8>>> {
        self.file.path_index().checked_path(node)
    }

    /// Returns the path, with names as in the file, of the entry that the directory of `group`
    /// shows as `shown`.
    fn entry_path(&self, group: NodeId, shown: &[u8]) -> Option<Vec<u8>> {
        let mut steps = self.path_steps(group, limits::PATH_DEPTH)?;
        steps.push((group, shown.into()));
        let mut path = Vec::new();
        let mut left = limits::CUT_NAME_LINKS;
        for (parent, name) in steps {
            path.push(b'/');
            path.extend_from_slice(
                &self
                    .file
                    .name_in_file_within(parent, &name, &mut left)
                    .ok()??,
            );
        }
        Some(path)
    }
}

impl ShownGroup<'_> {
    /// Returns the shown names from the root to this directory.
    pub(crate) fn path(&self) -> Option<&[Box<[u8]>]> {
        self.path
            .get_or_init(|| self.namespace.path(self.group))
            .as_deref()
    }

    /// Returns whether this directory is the root of its file.
    pub(crate) fn is_root(&self) -> bool {
        self.group == self.namespace.root()
    }

    /// Returns the entry that this directory shows as `shown`.
    pub(crate) fn find(&self, shown: &[u8]) -> Result<LinkEntry> {
        name::check_name_length(shown)?;
        let file = self.namespace.file;
        let real = file
            .name_in_file(self.group, shown)?
            .ok_or(Error::NotFound)?;
        let link = file.container.link(self.group, &real)?;
        Ok(self.link_entry(link.ok_or(Error::NotFound)?))
    }

    /// Returns the name that this directory shows for the link `link`.
    pub(crate) fn shown_name(&self, link: &Link) -> Vec<u8> {
        name::escape(&link.name, self.is_root())
    }

    /// Creates the directory entry for the link `link` of this group.
    pub(crate) fn link_entry(&self, link: Link) -> LinkEntry {
        let shown = self.shown_name(&link);
        let tree = self.namespace.file.tree;
        let mut object = None;
        let (node_type, node) = match &link.target {
            LinkTarget::Hard(node) if *node == self.namespace.root() => {
                (NodeType::Link, self.group)
            }
            LinkTarget::Hard(node) if inode::is_node_in_range(tree, *node) => {
                let mut found = self.namespace.file.container.node(*node);
                let place = match &found {
                    Ok(found) if matches!(found.kind, NodeKind::Group) => {
                        self.group_type(*node, found.link_count, &shown)
                    }
                    Err(error) if error.is_transient() => Ok(NodeType::Unreadable),
                    Err(_) if self.leads_to_group(&link, *node) => {
                        self.group_type(*node, 1, &shown)
                    }
                    _ => Ok(NodeType::Object),
                };
                let node_type = place.unwrap_or_else(|error| {
                    found = Err(error);
                    NodeType::Unreadable
                });
                object = (node_type != NodeType::Link).then_some(found);
                match node_type {
                    NodeType::Link | NodeType::Unreadable => (node_type, self.group),
                    _ => (node_type, *node),
                }
            }
            LinkTarget::Hard(_) | LinkTarget::Damaged(_) => (NodeType::DamagedLink, self.group),
            _ => (NodeType::Link, self.group),
        };
        let ino = match node_type {
            NodeType::Link | NodeType::DamagedLink | NodeType::Unreadable => {
                self.link_number(&link.target, &shown)
            }
            _ => inode::node_number(self.namespace.file.generation, tree, node),
        };
        LinkEntry {
            ino,
            inode: self.inode(node_type, node, &shown),
            object,
            target: link.target,
        }
    }

    /// Returns whether the object `node`, which cannot be read, is known to be a group.
    fn leads_to_group(&self, link: &Link, node: NodeId) -> bool {
        link.is_to_group || self.namespace.file.container.is_likely_group(node)
    }

    /// Returns the inode number of a link other than a hard link. For a link into another file, the
    /// number depends on whether the mount shows that file, because the kernel caches the link's
    /// text by inode number.
    fn link_number(&self, target: &LinkTarget, shown: &[u8]) -> u64 {
        let (generation, tree) = (self.namespace.file.generation, self.namespace.file.tree);
        if let Some(file) = target.other_file_name()
            && let Some(place) = self
                .namespace
                .other_files
                .shown_location(self.namespace.file, file)
        {
            let place = match place {
                ShownLocation::Root => Vec::new(),
                ShownLocation::Other(file) => file,
                ShownLocation::Archive(names) => names.join(&b'/'),
            };
            let name = [shown, b"/", &place].concat();
            return inode::link_number(generation, tree, self.group, &name);
        }
        inode::link_number(generation, tree, self.group, shown)
    }

    fn inode(&self, node_type: NodeType, node: NodeId, shown: &[u8]) -> Inode {
        Inode {
            node_type,
            generation: self.namespace.file.generation,
            tree: self.namespace.file.tree,
            node,
            parent: self.namespace.ino(self.group),
            name: shown.into(),
        }
    }

    /// Returns whether the group `node` is a directory or a symbolic link at the entry `shown` of
    /// this directory.
    ///
    /// # Errors
    /// Fails if the group's own location is unknown because a part of the file cannot be read.
    fn group_type(&self, node: NodeId, link_count: u32, shown: &[u8]) -> Result<NodeType> {
        let space = self.namespace;
        let here = self.inode(NodeType::Group, node, shown);
        let ino = space.ino(node);
        let home = space.inodes.parent_and_name(ino, here.generation);
        let (parent, name) = match home {
            Some(home) => home,
            None => {
                let indexed = match link_count {
                    0 | 1 => None,
                    _ => space.known_parent_and_name(node)?,
                };
                let place = match indexed {
                    Some((parent, name)) => Inode {
                        parent: space.ino(parent),
                        name,
                        ..here.clone()
                    },
                    None => here.clone(),
                };
                space.inodes.directory_location(ino, place)
            }
        };
        if parent == here.parent && *name == *shown {
            Ok(NodeType::Group)
        } else {
            Ok(NodeType::Link)
        }
    }

    /// Returns the relative path from this directory to an object in another file. `place` is the
    /// location of that file, and `names` are the shown names from its root to the object.
    fn path_to_other(
        &self,
        place: &ShownLocation,
        names: impl Iterator<Item = Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let others = self.namespace.other_files;
        let mut from = others.file_location_path(self.namespace.file);
        from.extend_from_slice(self.path()?);
        let mut to = others.location_path(place);
        to.extend(names.map(Into::into));
        Some(symlink::relative_link_text(&from, &to))
    }

    /// Returns the object path that an external link contains, with names as in the file.
    ///
    /// # Errors
    /// Fails if the path cannot be read.
    pub(crate) fn external_object_path(&self, target: &LinkTarget) -> Result<Vec<u8>> {
        if let LinkTarget::External { path, .. } = target {
            return Ok(path.clone());
        }
        let names = self.namespace.file.container.alias_path(target)?;
        let steps = names.iter().flat_map(|name| [&b"/"[..], name]);
        Ok(steps.flatten().copied().collect())
    }

    /// Returns the text of the symbolic link in this directory that represents a link with the
    /// target `target`.
    pub(crate) fn link_text(&self, target: &LinkTarget) -> Result<Vec<u8>> {
        let LinkTarget::Alias(node) = target else {
            return self.build_link_text(target);
        };
        let mut last = self.last_alias.borrow_mut();
        match &*last {
            Some((known, text)) if known == node => text.clone(),
            _ => last.insert((*node, self.build_link_text(target))).1.clone(),
        }
    }

    fn build_link_text(&self, target: &LinkTarget) -> Result<Vec<u8>> {
        let text = match target {
            LinkTarget::Hard(node) => {
                let path = self.path().zip(self.namespace.path(*node));
                path.map(|(from, to)| symlink::relative_link_text(from, &to))
            }
            LinkTarget::Soft(path) if path.starts_with(b"/") => {
                let depth = self.path().map(<[_]>::len);
                depth.map(|depth| symlink::text_of_absolute_path(depth, path))
            }
            LinkTarget::Soft(path) => Some(symlink::text_of_relative_path(path, self.is_root())),
            LinkTarget::External { file, path } => {
                match self
                    .namespace
                    .other_files
                    .shown_location(self.namespace.file, file)
                {
                    Some(place) => {
                        let names = symlink::shown_names(path, true);
                        self.path_to_other(&place, names)
                    }
                    None => Some(symlink::text_of_hidden_file(file, path)),
                }
            }
            LinkTarget::Alias(_) | LinkTarget::Reference { file: None, .. } => {
                let names = self.namespace.file.container.alias_path(target)?;
                let to = symlink::escape_names(&names);
                let to: Vec<Box<[u8]>> = to.map(Into::into).collect();
                self.path()
                    .map(|from| symlink::relative_link_text(from, &to))
            }
            LinkTarget::Reference {
                file: Some(file), ..
            } => match self
                .namespace
                .other_files
                .shown_location(self.namespace.file, file)
            {
                Some(place) => {
                    let names = self.namespace.file.container.alias_path(target)?;
                    self.path_to_other(&place, symlink::escape_names(&names))
                }
                None => Some(symlink::text_of_hidden_file(
                    file,
                    &self.external_object_path(target)?,
                )),
            },
            LinkTarget::UserDefined(class) => {
                Some(format!("user-defined link, class {class}").into_bytes())
            }
            LinkTarget::Damaged(error) => return Err(error.clone()),
        };
        symlink::check_length(text)
    }
}

//! A file's tree: what a link of a group is in the mount, and where a group is a directory.
//!
//! A group may have many hard links and may hold itself, but the kernel knows a directory in one place
//! only: one that turns up under a second parent is moved, one that is its own ancestor is `ELOOP`. So a
//! group's directory stands at one of its names, and every other name is a symbolic link to it. With a
//! link count of 1 that name is the one it is met under; otherwise the object-to-path index says;
//! and where neither knows, the first name that is looked up keeps it for the life of the mount.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::fs::errno::refusal;
use crate::fs::external::{self, Others, Place};
use crate::fs::inode::{self, Entry, Inodes, SOURCE, What};
use crate::fs::live::Live;
use crate::fs::{name, symlink};
use crate::limits;
use crate::model::{Link, LinkTarget, Node, NodeId, NodeKind};

/// The tree of one mounted file.
#[derive(Clone, Copy)]
pub(super) struct Namespace<'a> {
    pub(super) live: &'a Live,
    pub(super) inodes: &'a Inodes,
    pub(super) others: &'a Others,
}

/// A name in a directory, and what stands there.
pub(super) struct Found {
    /// The number it has unless another link has the same hash.
    pub(super) ino: u64,
    pub(super) entry: Entry,
    /// The object, where it is one that was asked for.
    pub(super) object: Option<Result<Arc<Node>>>,
    /// Where the link leads.
    pub(super) target: LinkTarget,
}

/// A group whose links are shown.
pub(super) struct Directory<'a> {
    pub(super) space: Namespace<'a>,
    pub(super) group: NodeId,
    path: OnceCell<Option<Vec<Box<[u8]>>>>,
    /// The alias whose text was asked for last: a group may hold many of one node.
    last: RefCell<Option<(NodeId, Result<Vec<u8>>)>>,
}

impl<'a> Namespace<'a> {
    pub(super) fn root(&self) -> NodeId {
        self.live.container.root()
    }

    /// The number of an object.
    pub(super) fn ino(&self, node: NodeId) -> u64 {
        if self.live.is_mount_root(node) {
            inode::ROOT
        } else {
            inode::of_node(self.live.generation, self.live.tree, node)
        }
    }

    /// The object of a number; the reverse of `ino`.
    fn node(&self, ino: u64) -> NodeId {
        if ino == inode::ROOT {
            self.root()
        } else {
            inode::node_of(self.live.generation, ino)
        }
    }

    pub(super) fn directory(self, group: NodeId) -> Directory<'a> {
        Directory {
            space: self,
            group,
            path: OnceCell::new(),
            last: RefCell::default(),
        }
    }

    /// The names, as shown, that lead from the root to a group's directory. `None` where it has no
    /// place yet, or is too deep for the text of a symbolic link.
    pub(super) fn path(&self, group: NodeId) -> Option<Vec<Box<[u8]>>> {
        let steps = self.steps(group, limits::SYMLINK_BYTES / 2)?;
        Some(steps.into_iter().map(|(_, name)| name).collect())
    }

    /// The groups, and the names shown in them, that lead from the root to a group's directory.
    fn steps(&self, group: NodeId, most: usize) -> Option<Vec<(NodeId, Box<[u8]>)>> {
        let mut steps = Vec::new();
        let mut at = group;
        while at != self.root() {
            if steps.len() >= most {
                return None;
            }
            let step = self.home(at)?;
            at = step.0;
            steps.push(step);
        }
        steps.reverse();
        Some(steps)
    }

    /// The group and the shown name where a group's directory stands.
    fn home(&self, group: NodeId) -> Option<(NodeId, Box<[u8]>)> {
        if let Some((parent, name)) = self.inodes.home(self.ino(group), self.live.generation) {
            return Some((self.node(parent), name));
        }
        self.indexed_home(group)
    }

    /// The group and the name, as shown, that are an object's own in the index.
    pub(super) fn indexed_home(&self, group: NodeId) -> Option<(NodeId, Box<[u8]>)> {
        let index = self.live.index();
        let (parent, name) = index.place(group)?;
        let shown = name::escape(name, self.live.is_mount_root(parent));
        Some((parent, shown.into()))
    }

    /// The path of an object, names as in the file: the canonical one of an object with several names,
    /// else the one that it was met under. `None` where none is known, or it is over the limit.
    pub(super) fn file_path(&self, entry: &Entry, link_count: u32) -> Option<Vec<u8>> {
        if entry.what == What::Object && link_count > 1 {
            let canonical = self.live.index().path(entry.node);
            if canonical.is_some() {
                return canonical;
            }
        }
        if entry.node == self.root() && entry.what == What::Group {
            return Some(b"/".to_vec());
        }
        self.path_of_name(self.node(entry.parent), &entry.name)
    }

    /// The path of any object by its identity alone, for texts that name it.
    pub(super) fn path_of(&self, node: NodeId) -> Result<Option<Vec<u8>>> {
        self.live.index().known_path(node)
    }

    /// The path, names as in the file, of what `group` shows as `shown`.
    fn path_of_name(&self, group: NodeId, shown: &[u8]) -> Option<Vec<u8>> {
        let mut steps = self.steps(group, limits::PATH_DEPTH)?;
        steps.push((group, shown.into()));
        let mut path = Vec::new();
        let mut left = limits::CUT_NAME_LINKS;
        for (parent, name) in steps {
            path.push(b'/');
            path.extend_from_slice(
                &self
                    .live
                    .real_name_within(parent, &name, &mut left)
                    .ok()??,
            );
        }
        Some(path)
    }
}

impl Directory<'_> {
    /// The names, as shown, that lead to this directory.
    pub(super) fn path(&self) -> Option<&[Box<[u8]>]> {
        self.path
            .get_or_init(|| self.space.path(self.group))
            .as_deref()
    }

    /// Whether this is the root of the mount.
    pub(super) fn is_root(&self) -> bool {
        self.space.live.is_mount_root(self.group)
    }

    /// What stands under the shown name.
    pub(super) fn find(&self, shown: &[u8]) -> Result<Found> {
        if shown.len() > limits::NAME_BYTES {
            return Err(refusal(Errno::ENAMETOOLONG, "name"));
        }
        let live = self.space.live;
        let real = live.real_name(self.group, shown)?.ok_or(Error::NotFound)?;
        let link = live.container.link(self.group, &real)?;
        Ok(self.show(link.ok_or(Error::NotFound)?))
    }

    /// The name of a link as it is shown here.
    pub(super) fn shown(&self, link: &Link) -> Vec<u8> {
        name::escape(&link.name, self.is_root())
    }

    /// What a link of this group is in the mount.
    pub(super) fn show(&self, link: Link) -> Found {
        let shown = self.shown(&link);
        let tree = self.space.live.tree;
        let mut object = None;
        let (what, node) = match &link.target {
            LinkTarget::Hard(node) if *node == self.space.root() => (What::Link, self.group),
            LinkTarget::Hard(node) if inode::is_object(tree, *node) => {
                let found = self.space.live.container.node(*node);
                let what = match &found {
                    Ok(found) if matches!(found.kind, NodeKind::Group) => {
                        self.place(*node, found.link_count, &shown)
                    }
                    Err(error) if error.is_passing() => What::Unread,
                    _ => What::Object,
                };
                object = (what != What::Link).then_some(found);
                match what {
                    What::Link | What::Unread => (what, self.group),
                    _ => (what, *node),
                }
            }
            LinkTarget::Hard(_) | LinkTarget::Damaged(_) => (What::Damaged, self.group),
            _ => (What::Link, self.group),
        };
        let ino = match what {
            What::Link | What::Damaged | What::Unread => self.link_number(&link.target, &shown),
            _ => inode::of_node(self.space.live.generation, tree, node),
        };
        Found {
            ino,
            entry: self.entry(what, node, &shown),
            object,
            target: link.target,
        }
    }

    /// The number of a link. One into another file has a different one with and without that file: the
    /// kernel keeps the text of the one it knows.
    fn link_number(&self, target: &LinkTarget, shown: &[u8]) -> u64 {
        let (generation, tree) = (self.space.live.generation, self.space.live.tree);
        if let Some(file) = target.other_file()
            && let Some(place) = self.space.others.place(self.space.live, file)
        {
            let place = match &place {
                Place::Root => b"",
                Place::Other(file) => &file[..],
            };
            let name = [shown, b"/", place].concat();
            return inode::of_link(generation, tree, self.group, &name);
        }
        inode::of_link(generation, tree, self.group, shown)
    }

    fn entry(&self, what: What, node: NodeId, shown: &[u8]) -> Entry {
        Entry {
            what,
            generation: self.space.live.generation,
            tree: self.space.live.tree,
            node,
            parent: self.space.ino(self.group),
            name: shown.into(),
        }
    }

    /// Whether the group `node`, met here as `shown`, is a directory here or a symbolic link.
    fn place(&self, node: NodeId, link_count: u32, shown: &[u8]) -> What {
        let space = self.space;
        let here = self.entry(What::Group, node, shown);
        let ino = space.ino(node);
        let home = space.inodes.home(ino, here.generation);
        let (parent, name) = home.unwrap_or_else(|| {
            let indexed = (link_count > 1).then(|| space.indexed_home(node)).flatten();
            let place = match indexed {
                Some((parent, name)) => Entry {
                    parent: space.ino(parent),
                    name,
                    ..here.clone()
                },
                None => here.clone(),
            };
            space.inodes.settle(ino, place)
        });
        if parent == here.parent && *name == *shown {
            What::Group
        } else {
            What::Link
        }
    }

    /// The way from here to what `names`, as shown, lead to from the root of another file.
    fn outward(&self, place: &Place, names: impl Iterator<Item = Vec<u8>>) -> Option<Vec<u8>> {
        let mut from = way_to(&self.space.live.shown);
        from.extend_from_slice(self.path()?);
        let mut to = match place {
            Place::Root => Vec::new(),
            Place::Other(shown) => way_to(shown),
        };
        to.extend(names.map(Into::into));
        Some(symlink::relative(&from, &to))
    }

    /// The text of the symbolic link that stands for `target` here.
    pub(super) fn text(&self, target: &LinkTarget) -> Result<Vec<u8>> {
        let LinkTarget::Alias(node) = target else {
            return self.made_text(target);
        };
        let mut last = self.last.borrow_mut();
        match &*last {
            Some((known, text)) if known == node => text.clone(),
            _ => last.insert((*node, self.made_text(target))).1.clone(),
        }
    }

    fn made_text(&self, target: &LinkTarget) -> Result<Vec<u8>> {
        let text = match target {
            LinkTarget::Hard(node) => {
                let path = self.path().zip(self.space.path(*node));
                path.map(|(from, to)| symlink::relative(from, &to))
            }
            LinkTarget::Soft(path) if path.starts_with(b"/") => {
                let depth = self.path().map(<[_]>::len);
                let in_source = self.space.live.tree == SOURCE;
                depth.map(|depth| symlink::absolute(depth, path, in_source))
            }
            LinkTarget::Soft(path) => Some(symlink::beneath(path, self.is_root())),
            LinkTarget::External { file, path } => {
                match self.space.others.place(self.space.live, file) {
                    Some(place) => {
                        let names = symlink::components(path, place == Place::Root);
                        self.outward(&place, names)
                    }
                    None => Some(symlink::outside(file, path)),
                }
            }
            LinkTarget::Alias(_) | LinkTarget::Reference { file: None, .. } => {
                let names = self.space.live.container.names(target)?;
                let to = symlink::escaped(&names, self.space.live.tree == SOURCE);
                let to: Vec<Box<[u8]>> = to.map(Into::into).collect();
                self.path().map(|from| symlink::relative(from, &to))
            }
            LinkTarget::Reference {
                file: Some(file), ..
            } => {
                let names = self.space.live.container.names(target)?;
                match self.space.others.place(self.space.live, file) {
                    Some(place) => {
                        let names = symlink::escaped(&names, place == Place::Root);
                        self.outward(&place, names)
                    }
                    None => {
                        let steps = names.iter().flat_map(|name| [&b"/"[..], name]);
                        let path: Vec<u8> = steps.flatten().copied().collect();
                        Some(symlink::outside(file, &path))
                    }
                }
            }
            LinkTarget::UserDefined(class) => {
                Some(format!("user-defined link, class {class}").into_bytes())
            }
            LinkTarget::Damaged(error) => return Err(error.clone()),
        };
        text.filter(|text| text.len() <= limits::SYMLINK_BYTES)
            .ok_or_else(|| refusal(Errno::ENAMETOOLONG, "text of a symbolic link"))
    }
}

/// The names that lead from the mount's root to that of the file shown as `shown`, none for the source.
fn way_to(shown: &[u8]) -> Vec<Box<[u8]>> {
    match shown {
        b"" => Vec::new(),
        _ => vec![name::VIEWS.into(), external::NAME.into(), shown.into()],
    }
}

//! The index from objects to paths, which determines the canonical path of each object.
//!
//! An object may have any number of hard links, and a group may contain itself. The canonical path
//! is the first one that a breadth-first walk over hard links from the root finds, with names in
//! byte order.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::name_arena::{NameArena, NamePosition};
use crate::memory::positions::PositionMap;
use crate::memory::request_budget::RequestBudget;
use crate::model::{Container, LinkTarget, NodeId, NodeKind};
use crate::wire::{Count, to_u64};

/// Returns the object at `path` from the group `from`, or from the root if the path begins with
/// `/`. Follows links of every kind. Returns `None` if the object does not exist. `..` is an
/// ordinary name.
///
/// # Errors
/// `Unsupported` if the path leads into another file, `Limit` for cyclic or too many links.
pub fn resolve_path(
    container: &dyn Container,
    from: NodeId,
    path: &[u8],
) -> Result<Option<NodeId>> {
    let from = start_group(container, from, path);
    follow_links(
        container,
        from,
        split_path_reversed(path),
        limits::PATH_LINKS,
    )
}

/// Returns the object that an alias or a `$ref` leads to, like [`resolve_path`].
///
/// # Errors
/// Fails as [`resolve_path`] does.
pub fn resolve_alias(container: &dyn Container, target: &LinkTarget) -> Result<Option<NodeId>> {
    let mut names = container.alias_path(target)?;
    names.reverse();
    follow_links(container, container.root(), names, limits::TREE_LEVELS)
}

/// Returns the group at which the path of a soft link in the group `here` begins.
fn start_group(container: &dyn Container, here: NodeId, path: &[u8]) -> NodeId {
    match path {
        [b'/', ..] => container.root(),
        _ => here,
    }
}

/// Follows the links called `names`, the last name first, from the group `here`. Follows at most
/// `most` links. Returns `None` if a link does not exist.
fn follow_links(
    container: &dyn Container,
    mut here: NodeId,
    mut names: Vec<Vec<u8>>,
    most: usize,
) -> Result<Option<NodeId>> {
    let mut hops = 0..limits::SYMLINK_HOPS;
    for left in (0..=most).rev() {
        if names.len() > left {
            break;
        }
        let Some(name) = names.pop() else {
            return Ok(Some(here));
        };
        match container.link(here, &name)?.map(|link| link.target) {
            None => return Ok(None),
            Some(LinkTarget::Hard(id)) => here = id,
            Some(
                LinkTarget::Soft(_)
                | LinkTarget::Alias(_)
                | LinkTarget::Reference { file: None, .. },
            ) if hops.next().is_none() => {
                break;
            }
            Some(LinkTarget::Soft(target)) => {
                here = start_group(container, here, &target);
                names.extend(split_path_reversed(&target));
            }
            Some(target @ (LinkTarget::Alias(_) | LinkTarget::Reference { file: None, .. })) => {
                here = container.root();
                names.extend(container.alias_path(&target)?.into_iter().rev());
            }
            Some(LinkTarget::Damaged(error)) => return Err(error),
            Some(_) => {
                return Err(Error::unsupported(
                    "a path into another file",
                    here.number(),
                ));
            }
        }
    }
    Err(Error::limit("links of one path", to_u64(most)))
}

/// Returns the names in a path, except `.` and empty names, the last name first.
pub fn split_path_reversed(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/');
    names
        .filter(|name| !name.is_empty() && *name != b".")
        .rev()
        .map(<[u8]>::to_vec)
        .collect()
}

/// The canonical group and name of each object that the walk found. There may be a million objects,
/// so each takes 21 bytes and its name.
#[derive(Debug, Default)]
pub struct PathIndex {
    root: Option<NodeId>,
    /// The found objects, each with its canonical group and name, in the order of the walk.
    entries: Vec<PathEntry>,
    positions: PositionMap,
    names: NameArena,
    /// The names of other files that links lead into. They take `file_bytes` bytes of memory.
    files: BTreeSet<Box<[u8]>>,
    file_bytes: usize,
    complete: bool,
    /// The first read error that may not recur, and the number of objects found before it.
    first_read_error: Option<(usize, Error)>,
}

/// An object, and its name in a group.
#[derive(Debug, Clone, Copy)]
struct PathEntry {
    node: NodeId,
    /// The position of the group in the list of found objects, or `ROOT_POSITION` for the root
    /// group.
    group: u32,
    name: NamePosition,
}

/// Memory in bytes for one found object: its [`PathEntry`], and its position in a hash table that
/// has just doubled its size.
const ENTRY_BYTES: usize = size_of::<PathEntry>() + 10;

/// The value of a position that means the root group.
const ROOT_POSITION: u32 = u32::MAX;

impl PathIndex {
    /// Walks `container` until every object is found, [`limits::PATH_INDEX_LINKS`] links were seen,
    /// or the metadata budget of a request is spent. Calls `make_room` with the index's future size
    /// in bytes before the index grows.
    ///
    /// Skips objects that cannot be read: the error is reported to those who read the object
    /// itself.
    pub fn build(container: &Arc<dyn Container>, make_room: &dyn Fn(u64)) -> Self {
        let budget = RequestBudget::for_request();
        let container = &*Arc::clone(container).for_request(&budget);
        let root = container.root();
        let mut index = PathIndex {
            root: Some(root),
            ..PathIndex::default()
        };
        let mut left = WalkBudget {
            links: limits::PATH_INDEX_LINKS,
            bytes: limits::PATH_INDEX_NAMES,
            room: 0,
            make_room,
        };
        index.complete = index.add_links(container, root, ROOT_POSITION, &mut left);
        let mut next = 0;
        while index.complete
            && let Some(place) = index.entry_at(next)
        {
            match container.node(place.node) {
                Ok(node) if matches!(node.kind, NodeKind::Group) => {
                    index.complete = index.add_links(container, place.node, next, &mut left);
                }
                Ok(_) => {}
                Err(error) => index.record_error(index.entries.len(), &error),
            }
            index.complete &= !budget.is_exhausted();
            next = next.plus_one();
        }
        index
    }

    /// Adds the objects that `group` links to and that are not in the index yet. Adds none of them
    /// and returns false if the budget ends before the last link.
    fn add_links(
        &mut self,
        container: &dyn Container,
        group: NodeId,
        position: u32,
        left: &mut WalkBudget<'_>,
    ) -> bool {
        let first = self.entries.len();
        let added = self
            .collect_links(container, group, position, left)
            .is_some();
        if added {
            self.sort_and_deduplicate(first);
        } else {
            self.entries.truncate(first);
        }
        added
    }

    fn collect_links(
        &mut self,
        container: &dyn Container,
        group: NodeId,
        position: u32,
        left: &mut WalkBudget<'_>,
    ) -> Option<()> {
        let before = self.entries.len();
        let mut links = match container.links(group) {
            Ok(links) => links,
            Err(error) => {
                self.record_error(before, &error);
                return Some(());
            }
        };
        loop {
            let link = match links.next() {
                Ok(Some(link)) => link,
                Ok(None) => return Some(()),
                Err(error) => {
                    self.record_error(before, &error);
                    return Some(());
                }
            };
            left.links = left.links.checked_sub(link.cost())?;
            if let Some(file) = link.target.other_file_name() {
                self.record_other_file(file, left);
            }
            if let LinkTarget::Hard(node) = link.target {
                left.make_room(self.weight());
                let name = self.keep_name(&link.name, left)?;
                let group = position;
                self.entries.push(PathEntry { node, group, name });
            }
        }
    }

    /// Records an error that may not recur in another walk, and `before`, the number of objects
    /// found before it. Ignores other errors.
    fn record_error(&mut self, before: usize, error: &Error) {
        if self.first_read_error.is_none() && matches!(error, Error::Io { .. }) {
            self.first_read_error = Some((before, error.clone()));
        }
    }

    /// Records the name of another file that a link leads into. If there are too many names, only
    /// the first ones are recorded.
    fn record_other_file(&mut self, file: &[u8], left: &mut WalkBudget<'_>) {
        let bytes = self.file_bytes.plus(file_name_weight(file));
        if bytes <= limits::NAMED_FILES && !self.files.contains(file) {
            left.make_room(self.weight());
            self.files.insert(file.into());
            self.file_bytes = bytes;
        }
    }

    fn keep_name(&mut self, name: &[u8], left: &mut WalkBudget<'_>) -> Option<NamePosition> {
        left.bytes = left.bytes.checked_sub(name.len())?;
        self.names.put(name)
    }

    /// Sorts the entries from index `first` on by name. Then keeps one of them for each object that
    /// had no entry before `first`.
    fn sort_and_deduplicate(&mut self, first: usize) {
        let names = &self.names;
        if let Some(found) = self.entries.get_mut(first..) {
            found.sort_unstable_by_key(|place| (names.get(place.name), place.node));
        }
        let mut kept = first;
        for i in first..self.entries.len() {
            let Some(place) = self.entries.get(i).copied() else {
                break;
            };
            if Some(place.node) == self.root || self.position(place.node).is_some() {
                continue;
            }
            self.entries.swap(kept, i);
            let Ok(position) = u32::try_from(kept) else {
                break;
            };
            let key_at = |at| node_number_at(&self.entries, at);
            self.positions.insert(place.node.number(), position, key_at);
            kept = kept.plus_one();
        }
        self.entries.truncate(kept);
    }

    fn position(&self, node: NodeId) -> Option<u32> {
        self.positions
            .get(node.number(), |at| node_number_at(&self.entries, at))
    }

    fn entry_at(&self, position: u32) -> Option<PathEntry> {
        self.entries.get(usize::try_from(position).ok()?).copied()
    }

    /// Returns the maximum bytes of memory that the index takes.
    pub fn weight(&self) -> u64 {
        let places = self.entries.len().times(ENTRY_BYTES);
        let names = self.names.weight().plus(self.file_bytes);
        to_u64(places.plus(names))
    }

    /// Returns the names of other files that links lead into, bytes as in the file.
    pub fn other_files(&self) -> impl Iterator<Item = &[u8]> {
        self.files.iter().map(|file| &**file)
    }

    /// Checks that the walk skipped nothing because of a temporary read error. Damaged structures
    /// do not count.
    ///
    /// # Errors
    /// Fails if a read failed with an error that may not recur.
    pub fn check_no_read_error(&self) -> Result<()> {
        let error = self
            .first_read_error
            .as_ref()
            .map(|(_, error)| error.clone());
        error.map_or(Ok(()), Err)
    }

    /// Returns whether the walk ended before it reached a limit.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the group and the name (bytes as in the file) of the object's canonical path.
    /// Returns `None` for the root and for objects that were not found.
    pub fn parent_and_name(&self, node: NodeId) -> Option<(NodeId, &[u8])> {
        let place = self.entry_at(self.position(node)?)?;
        let group = match place.group {
            ROOT_POSITION => self.root?,
            position => self.entry_at(position)?.node,
        };
        Some((group, self.names.get(place.name)))
    }

    /// Returns the object's canonical path like [`path`](Self::path).
    ///
    /// # Errors
    /// Fails if a part that could not be read may contain the object's canonical name.
    pub fn checked_path(&self, node: NodeId) -> Result<Option<Vec<u8>>> {
        self.check_canonical_name(node)?;
        Ok(self.path(node))
    }

    /// Returns the object's canonical group and name like
    /// [`parent_and_name`](Self::parent_and_name).
    ///
    /// # Errors
    /// Fails as [`checked_path`](Self::checked_path) does.
    pub fn checked_parent_and_name(&self, node: NodeId) -> Result<Option<(NodeId, &[u8])>> {
        self.check_canonical_name(node)?;
        Ok(self.parent_and_name(node))
    }

    /// Fails if a name that could not be read might precede the object's canonical name.
    fn check_canonical_name(&self, node: NodeId) -> Result<()> {
        let is_before = |places: usize| {
            let position = self.position(node).map(usize::try_from);
            Some(node) == self.root || matches!(position, Some(Ok(at)) if at < places)
        };
        match &self.first_read_error {
            Some((places, error)) if !is_before(*places) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Returns the object's canonical path, with names as in the file, or `/` for the root. Returns
    /// `None` for an object that was not found.
    pub fn path(&self, node: NodeId) -> Option<Vec<u8>> {
        if Some(node) == self.root {
            return Some(b"/".to_vec());
        }
        let mut names = Vec::new();
        let mut position = self.position(node)?;
        while position != ROOT_POSITION {
            if names.len() >= limits::PATH_DEPTH {
                return None;
            }
            let place = self.entry_at(position)?;
            names.push(self.names.get(place.name));
            position = place.group;
        }
        names.reverse();
        Some(
            names
                .iter()
                .flat_map(|name| [b"/", *name].concat())
                .collect(),
        )
    }
}

/// Returns the memory in bytes that the name of a file takes in the set of names.
fn file_name_weight(name: &[u8]) -> usize {
    name.len().plus(64)
}

/// Returns the node number of the entry at `position`.
fn node_number_at(places: &[PathEntry], position: u32) -> u64 {
    let place = usize::try_from(position).ok().and_then(|at| places.get(at));
    place.map_or(u64::MAX, |place| place.node.number())
}

/// The remaining budget of the walk.
struct WalkBudget<'a> {
    links: usize,
    bytes: usize,
    /// Memory in bytes that the index may take, because `make_room` was called with this size.
    room: u64,
    make_room: &'a dyn Fn(u64),
}

impl WalkBudget<'_> {
    /// Memory in bytes by which each call of `make_room` exceeds the index's current size.
    const STEP: u64 = 1 << 20;

    /// Calls the function `make_room` if an index of `weight` bytes may soon exceed its room.
    fn make_room(&mut self, weight: u64) {
        if weight.plus(to_u64(NameArena::BLOCK_BYTES)) > self.room {
            self.room = weight.plus(Self::STEP);
            (self.make_room)(self.room);
        }
    }
}

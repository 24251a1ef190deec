//! Object to path: which of its names is an object's own.
//!
//! An object may have any number of hard links, and a group may hold itself. Its canonical path is the
//! first one that a breadth-first walk over hard links from the root finds, names in byte order.

use std::collections::{HashMap, VecDeque};

use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Container, LinkTarget, NodeId, NodeKind};
use crate::wire::to_u64;

/// The object at `path` from the group `from`, or from the root where it begins with `/`, over links of every
/// kind; `None` where there is none. `..` is an ordinary name.
///
/// # Errors
/// `Unsupported` where the path leads into another file; `Limit` for links without end.
pub fn resolve(container: &dyn Container, from: NodeId, path: &[u8]) -> Result<Option<NodeId>> {
    follow(container, start(container, from, path), names_of(path))
}

/// The object that `names` lead to from the root; as [`resolve`].
///
/// # Errors
/// As [`resolve`].
pub fn resolve_names(container: &dyn Container, names: &[Vec<u8>]) -> Result<Option<NodeId>> {
    let names = names.iter().rev().cloned().collect();
    follow(container, container.root(), names)
}

/// Where a soft link's path begins that stands in the group `here`.
fn start(container: &dyn Container, here: NodeId, path: &[u8]) -> NodeId {
    match path {
        [b'/', ..] => container.root(),
        _ => here,
    }
}

/// Goes `names`, the last one first, from `here`.
fn follow(
    container: &dyn Container,
    mut here: NodeId,
    mut names: Vec<Vec<u8>>,
) -> Result<Option<NodeId>> {
    for _ in 0..limits::PATH_LINKS {
        let Some(name) = names.pop() else {
            return Ok(Some(here));
        };
        match container.link(here, &name)?.map(|link| link.target) {
            None => return Ok(None),
            Some(LinkTarget::Hard(id)) => here = id,
            Some(LinkTarget::Soft(target)) => {
                here = start(container, here, &target);
                names.extend(names_of(&target));
            }
            Some(LinkTarget::Path {
                file: None,
                names: target,
            }) => {
                here = container.root();
                names.extend(target.into_iter().rev());
            }
            Some(LinkTarget::Damaged(error)) => return Err(error),
            Some(_) => return Err(Error::unsupported("a path into another file", here.0)),
        }
    }
    let most = to_u64(limits::PATH_LINKS);
    Err(Error::limit("links of one path", most))
}

/// The names in a path, the last one first.
fn names_of(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/');
    names
        .filter(|name| !name.is_empty() && *name != b".")
        .rev()
        .map(<[u8]>::to_vec)
        .collect()
}

/// The canonical place of every object that the walk found.
#[derive(Debug, Default)]
pub struct PathIndex {
    root: Option<NodeId>,
    places: HashMap<NodeId, Place>,
    names: Vec<u8>,
    complete: bool,
    partial: bool,
}

/// A name in a group; the name's bytes stand in `PathIndex::names`.
#[derive(Debug, Clone, Copy)]
struct Place {
    group: NodeId,
    start: u32,
    length: u32,
}

impl PathIndex {
    /// Walks `container` until every object is found, or `limits::PATH_INDEX_LINKS` links were seen.
    ///
    /// What cannot be read is passed over: its own readers are told.
    pub fn build(container: &dyn Container) -> Self {
        Self::bounded(
            container,
            limits::PATH_INDEX_LINKS,
            limits::PATH_INDEX_NAMES,
        )
    }

    fn bounded(container: &dyn Container, most_links: usize, most_bytes: usize) -> Self {
        let root = container.root();
        let mut index = PathIndex {
            root: Some(root),
            complete: true,
            ..PathIndex::default()
        };
        let mut left = Budget {
            links: most_links,
            bytes: most_bytes,
        };
        let mut queue = VecDeque::from([root]);
        while let Some(group) = queue.pop_front() {
            let Some(mut members) = index.members(container, group, &mut left) else {
                index.complete = false;
                break;
            };
            members.sort_unstable();
            for (name, node) in members {
                if node == root
                    || index.places.contains_key(&node)
                    || !index.keep(group, &name, node)
                {
                    continue;
                }
                match container.node(node) {
                    Ok(found) if matches!(found.kind, NodeKind::Group) => queue.push_back(node),
                    Ok(_) => {}
                    Err(error) => index.note(&error),
                }
            }
        }
        index
    }

    fn keep(&mut self, group: NodeId, name: &[u8], node: NodeId) -> bool {
        let (Ok(start), Ok(length)) = (u32::try_from(self.names.len()), u32::try_from(name.len()))
        else {
            self.complete = false;
            return false;
        };
        self.names.extend_from_slice(name);
        let place = Place {
            group,
            start,
            length,
        };
        self.places.insert(node, place);
        true
    }

    fn note(&mut self, error: &Error) {
        self.partial |= error.is_passing();
    }

    /// The hard links of `group`; `None` where the budget does not reach to its end.
    fn members(
        &mut self,
        container: &dyn Container,
        group: NodeId,
        left: &mut Budget,
    ) -> Option<Vec<(Vec<u8>, NodeId)>> {
        let mut members = Vec::new();
        let mut links = match container.links(group) {
            Ok(links) => links,
            Err(error) => {
                self.note(&error);
                return Some(members);
            }
        };
        loop {
            let link = match links.next() {
                Ok(Some(link)) => link,
                Ok(None) => return Some(members),
                Err(error) => {
                    self.note(&error);
                    return Some(members);
                }
            };
            left.links = left.links.checked_sub(1)?;
            if let LinkTarget::Hard(node) = link.target {
                left.bytes = left.bytes.checked_sub(link.name.len())?;
                members.push((link.name, node));
            }
        }
    }

    /// Whether something could not be read that may be there the next time.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Whether the walk came to its end.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The group and the name (bytes as in the file) that are the object's own; `None` for the root
    /// and for what was not found.
    pub fn place(&self, node: NodeId) -> Option<(NodeId, &[u8])> {
        let place = self.places.get(&node)?;
        let start = usize::try_from(place.start).ok()?;
        let length = usize::try_from(place.length).ok()?;
        let name = self.names.get(start..)?.get(..length)?;
        Some((place.group, name))
    }

    /// The canonical path, names as in the file, `/` for the root; `None` for what was not found.
    pub fn path(&self, node: NodeId) -> Option<Vec<u8>> {
        if Some(node) == self.root {
            return Some(b"/".to_vec());
        }
        let mut names = Vec::new();
        let mut at = node;
        while Some(at) != self.root {
            let (group, name) = self.place(at)?;
            if names.len() >= limits::PATH_DEPTH {
                return None;
            }
            names.push(name);
            at = group;
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

struct Budget {
    links: usize,
    bytes: usize,
}

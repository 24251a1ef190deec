//! Links of a member: to objects of the same file, and of other files that it names.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lru::LruCache;

use crate::error::{Error, Result};
use crate::joined::members::opener::{OpenMember, Opened};
use crate::limits;
use crate::memory::effort::Effort;
use crate::memory::lock::lock;
use crate::model::paths::names_of;
use crate::model::{Container, LinkTarget, NodeId};
use crate::wire::to_u64;

/// Other files that one file keeps open.
const OTHERS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// A member, or a file that its links lead into, with those that its own links lead into.
pub(in crate::joined) struct OpenFile {
    opened: Opened,
    /// The number of links between files that lead from the member to this file.
    depth: usize,
    others: Mutex<LruCache<Vec<u8>, Arc<OpenFile>>>,
}

/// An object, and the file that it is in.
pub(in crate::joined) type Place = (Arc<OpenFile>, NodeId);

impl OpenFile {
    pub(in crate::joined) fn new(opened: Opened) -> Arc<Self> {
        Self::at_depth(opened, 0)
    }

    fn at_depth(opened: Opened, depth: usize) -> Arc<Self> {
        Arc::new(OpenFile {
            opened,
            depth,
            others: Mutex::new(LruCache::new(OTHERS)),
        })
    }

    pub(in crate::joined) fn container(&self) -> &Arc<dyn Container> {
        &self.opened.container
    }

    /// The container for work that `effort` pays for.
    pub(super) fn for_request(&self, effort: &Effort) -> Arc<dyn Container> {
        Arc::clone(self.container()).for_request(effort)
    }

    /// Whether both are one file, which may be open twice.
    pub(super) fn is_same_file(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.opened.neighbours.are_of(&other.opened.neighbours)
    }

    /// Whether a file that it leads to was another one when it was opened again.
    pub(super) fn met_a_change(&self) -> bool {
        self.opened.neighbours.states().met_a_change()
    }

    /// Whether no other file was opened, or sought, for what it holds.
    pub(super) fn stands_alone(&self) -> bool {
        self.opened.neighbours.states().is_empty()
    }

    /// The file that this one calls `name`; `None` where there is none.
    fn other(&self, opener: &dyn OpenMember, name: &[u8]) -> Result<Option<Arc<Self>>> {
        if let Some(open) = lock(&self.others).get(name) {
            return Ok(Some(Arc::clone(open)));
        }
        if self.depth >= limits::JOINED_LINKED {
            let most = to_u64(limits::JOINED_LINKED);
            return Err(Error::limit("joined: files linked one after another", most));
        }
        let Some(opened) = opener.open_linked(&self.opened, name)? else {
            return Ok(None);
        };
        let other = Self::at_depth(opened, self.depth + 1);
        lock(&self.others).put(name.to_vec(), Arc::clone(&other));
        Ok(Some(other))
    }

    /// The object that `target`, a link of the group `here`, leads to, over further links of every
    /// kind; `None` where there is none.
    ///
    /// # Errors
    /// `Limit` for links without end; fails if a link cannot be read, or a file not be opened.
    pub(super) fn follow(
        self: &Arc<Self>,
        opener: &dyn OpenMember,
        here: NodeId,
        target: &LinkTarget,
    ) -> Result<Option<Place>> {
        let effort = Effort::default();
        let mut way = Way {
            opener,
            effort: &effort,
            file: Arc::clone(self),
            here,
            names: Vec::new(),
        };
        if way.turn(target)? {
            way.go()
        } else {
            Ok(None)
        }
    }

    /// The object at a path from the root, as [`follow`](Self::follow) finds it.
    ///
    /// # Errors
    /// Fails as that does.
    pub(super) fn at(
        self: &Arc<Self>,
        opener: &dyn OpenMember,
        path: &[u8],
        effort: &Effort,
    ) -> Result<Option<Place>> {
        let names = path.split(|&byte| byte == b'/');
        let names = names.filter(|name| !name.is_empty()).rev();
        let way = Way {
            opener,
            effort,
            file: Arc::clone(self),
            here: self.container().root(),
            names: names.map(<[u8]>::to_vec).collect(),
        };
        way.go()
    }
}

/// The way along links: the group that it has come to, and the names that are left, the last one first.
struct Way<'o> {
    opener: &'o dyn OpenMember,
    /// Pays for what is read of the files.
    effort: &'o Effort,
    file: Arc<OpenFile>,
    here: NodeId,
    names: Vec<Vec<u8>>,
}

impl Way<'_> {
    /// Goes to the end.
    fn go(mut self) -> Result<Option<Place>> {
        let mut hops = 0..limits::SYMLINK_HOPS;
        for left in (0..=limits::PATH_LINKS).rev() {
            if self.names.len() > left {
                break;
            }
            let Some(name) = self.names.pop() else {
                return Ok(Some((self.file, self.here)));
            };
            let link = self.file.for_request(self.effort).link(self.here, &name)?;
            match link.map(|link| link.target) {
                None => return Ok(None),
                Some(LinkTarget::Hard(node)) => self.here = node,
                Some(_) if hops.next().is_none() => break,
                Some(target) if self.turn(&target)? => {}
                Some(_) => return Ok(None),
            }
        }
        let most = to_u64(limits::PATH_LINKS);
        Err(Error::limit("joined: links of one path", most))
    }

    /// Turns off to where a link leads; whether there is such a file.
    fn turn(&mut self, target: &LinkTarget) -> Result<bool> {
        let names = match target {
            LinkTarget::Hard(node) => {
                self.here = *node;
                return Ok(true);
            }
            LinkTarget::Soft(path) | LinkTarget::External { path, .. } => names_of(path),
            LinkTarget::Alias(_) | LinkTarget::Reference { .. } => {
                let names = self.file.for_request(self.effort).names(target)?;
                names.into_iter().rev().collect()
            }
            LinkTarget::UserDefined(class) => {
                let what = format!("a user-defined link of class {class}");
                return Err(Error::unsupported(what, None));
            }
            LinkTarget::Damaged(error) => return Err(error.clone()),
        };
        if let Some(name) = target.other_file() {
            let Some(other) = self.file.other(self.opener, name)? else {
                return Ok(false);
            };
            self.file = other;
        }
        if !matches!(target, LinkTarget::Soft(path) if path.first() != Some(&b'/')) {
            self.here = self.file.container().root();
        }
        self.names.extend(names);
        Ok(true)
    }
}

//! Follows the links of a member to objects of the member itself and of other files.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::paths::split_path_reversed;
use h5fs_reader::model::{Container, LinkTarget, NodeId};
use h5fs_reader::wire::to_u64;
use lru::LruCache;

use crate::limits;
use crate::members::opener::{MemberFiles, OpenedMember};

/// Maximum number of link target files that one file keeps open.
const MAX_LINKED_FILES: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// A member, or the target file of a link, with a cache of the open target files of its own links.
pub(crate) struct OpenFile {
    opened: OpenedMember,
    /// Number of external links that lead from the member to this file.
    depth: usize,
    linked_files: Mutex<LruCache<Vec<u8>, Arc<OpenFile>>>,
}

/// An open file, and the node of an object in it.
pub(crate) type ObjectLocation = (Arc<OpenFile>, NodeId);

impl OpenFile {
    pub(crate) fn new(opened: OpenedMember) -> Arc<Self> {
        Self::at_depth(opened, 0)
    }

    fn at_depth(opened: OpenedMember, depth: usize) -> Arc<Self> {
        Arc::new(OpenFile {
            opened,
            depth,
            linked_files: Mutex::new(LruCache::new(MAX_LINKED_FILES)),
        })
    }

    pub(crate) fn container(&self) -> &Arc<dyn Container> {
        &self.opened.container
    }

    /// Returns the container of the file for a request whose work `budget` counts.
    pub(super) fn for_request(&self, budget: &RequestBudget) -> Arc<dyn Container> {
        Arc::clone(self.container()).for_request(budget)
    }

    /// Returns whether `self` and `other` are the same file, which may be open twice.
    pub(super) fn is_same_file(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other)
            || self
                .opened
                .neighbours
                .belong_to_same_file(&other.opened.neighbours)
    }

    /// Returns whether a check has found that a file to which this file refers has changed.
    pub(super) fn has_linked_file_changed(&self) -> bool {
        self.opened.neighbours.states().has_found_change()
    }

    /// Returns whether reading this file's content has needed no other file, not even a search for
    /// a missing one.
    pub(super) fn has_used_no_other_files(&self) -> bool {
        self.opened.neighbours.states().is_empty()
    }

    /// Opens the file `name`, which is the target of a link. Returns `None` if the file does not
    /// exist.
    fn open_external(
        &self,
        opener: &dyn MemberFiles,
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<Option<Arc<Self>>> {
        if let Some(open) = lock(&self.linked_files).get(name) {
            return Ok(Some(Arc::clone(open)));
        }
        Error::check_room(
            self.depth,
            limits::JOINED_LINKED,
            "joined: number of files in a chain of links",
        )?;
        let Some(opened) = opener.open_linked(&self.opened, name, cancel)? else {
            return Ok(None);
        };
        let other = Self::at_depth(opened, self.depth + 1);
        lock(&self.linked_files).put(name.to_vec(), Arc::clone(&other));
        Ok(Some(other))
    }

    /// Returns the object to which `target` leads. `target` is the target of a link in the group
    /// `here`. Follows further links of every kind. Returns `None` if the object does not exist.
    ///
    /// # Errors
    /// `Limit` for an endless chain of links. Fails if a link cannot be read, or a file cannot be
    /// opened.
    pub(super) fn follow(
        self: &Arc<Self>,
        opener: &dyn MemberFiles,
        here: NodeId,
        target: &LinkTarget,
    ) -> Result<Option<ObjectLocation>> {
        let budget = RequestBudget::default();
        let mut way = LinkWalk {
            opener,
            budget: &budget,
            file: Arc::clone(self),
            current_group: here,
            names: Vec::new(),
        };
        if way.follow_link(target)? {
            way.follow()
        } else {
            Ok(None)
        }
    }

    /// Returns the object at a path from the root. Follows links as [`follow`](Self::follow) does.
    ///
    /// # Errors
    /// Fails as `follow` does.
    pub(super) fn object_at(
        self: &Arc<Self>,
        opener: &dyn MemberFiles,
        path: &[u8],
        budget: &RequestBudget,
    ) -> Result<Option<ObjectLocation>> {
        let names = path.split(|&byte| byte == b'/');
        let names = names.filter(|name| !name.is_empty()).rev();
        let way = LinkWalk {
            opener,
            budget,
            file: Arc::clone(self),
            current_group: self.container().root(),
            names: names.map(<[u8]>::to_vec).collect(),
        };
        way.follow()
    }
}

/// The state of resolving a path: the current group, and the remaining names in reverse order.
struct LinkWalk<'o> {
    opener: &'o dyn MemberFiles,
    /// The budget of the request, which counts the work of all reads.
    budget: &'o RequestBudget,
    file: Arc<OpenFile>,
    current_group: NodeId,
    names: Vec<Vec<u8>>,
}

impl LinkWalk<'_> {
    /// Follows the remaining names of the path. Returns the object at its end.
    fn follow(mut self) -> Result<Option<ObjectLocation>> {
        let mut hops = 0..limits::SYMLINK_HOPS;
        for left in (0..=limits::PATH_LINKS).rev() {
            if self.names.len() > left {
                break;
            }
            let Some(name) = self.names.pop() else {
                return Ok(Some((self.file, self.current_group)));
            };
            let link = self
                .file
                .for_request(self.budget)
                .link(self.current_group, &name)?;
            match link.map(|link| link.target) {
                None => return Ok(None),
                Some(LinkTarget::Hard(node)) => self.current_group = node,
                Some(_) if hops.next().is_none() => break,
                Some(target) if self.follow_link(&target)? => {}
                Some(_) => return Ok(None),
            }
        }
        let most = to_u64(limits::PATH_LINKS);
        Err(Error::limit("joined: number of links in one path", most))
    }

    /// Continues at the target of a link. Returns whether the target's file exists.
    fn follow_link(&mut self, target: &LinkTarget) -> Result<bool> {
        let names = match target {
            LinkTarget::Hard(node) => {
                self.current_group = *node;
                return Ok(true);
            }
            LinkTarget::Soft(path) | LinkTarget::External { path, .. } => split_path_reversed(path),
            LinkTarget::Alias(_) | LinkTarget::Reference { .. } => {
                let names = self.file.for_request(self.budget).alias_path(target)?;
                names.into_iter().rev().collect()
            }
            LinkTarget::UserDefined(class) => {
                let what = format!("a user-defined link of class {class}");
                return Err(Error::unsupported(what, None));
            }
            LinkTarget::Damaged(error) => return Err(error.clone()),
        };
        if let Some(name) = target.other_file_name() {
            let cancel = self.budget.cancel_token();
            let Some(other) = self.file.open_external(self.opener, name, &cancel)? else {
                return Ok(false);
            };
            self.file = other;
        }
        if !matches!(target, LinkTarget::Soft(path) if path.first() != Some(&b'/')) {
            self.current_group = self.file.container().root();
        }
        self.names.extend(names);
        Ok(true)
    }
}

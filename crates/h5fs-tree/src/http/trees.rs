//! The trees of the sources that a server serves.

use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;

use crate::path_resolution::ResolvedEntry;
use crate::requests::{Ino, Requests};
use crate::served_tree::ServedTree;
use crate::stat::LookupEntry;
use crate::state::handle::{Handle, OpenedHandle};

/// The served trees: the tree of one source as the root, or the trees of several sources as
/// directories in the root.
pub struct ServedTrees {
    trees: Vec<(Vec<u8>, ServedTree)>,
    is_single: bool,
}

impl ServedTrees {
    /// Serves a single source.
    #[must_use]
    pub fn single(served: ServedTree) -> Self {
        ServedTrees {
            trees: vec![(Vec::new(), served)],
            is_single: true,
        }
    }

    /// Serves several sources with distinct names.
    #[must_use]
    pub fn several(trees: Vec<(Vec<u8>, ServedTree)>) -> Self {
        ServedTrees {
            trees,
            is_single: false,
        }
    }

    /// Returns the names of the sources, if there are several.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.trees.iter().map(|(name, _)| &name[..])
    }

    /// Determines the tree to which the path `names` leads.
    pub(super) fn find_tree<'n>(&self, names: &'n [Vec<u8>]) -> PathDestination<'n> {
        if self.is_single {
            return PathDestination::Tree(0, names);
        }
        let Some((first, rest)) = names.split_first() else {
            return PathDestination::Root;
        };
        let tree = self.trees.iter().position(|(name, _)| name == first);
        tree.map_or(PathDestination::Nowhere, |tree| {
            PathDestination::Tree(tree, rest)
        })
    }

    /// Returns whether the tree with the index `tree` is that of a single file.
    pub(super) fn is_file(&self, tree: usize) -> bool {
        matches!(self.trees.get(tree), Some((_, ServedTree::File(_))))
    }

    /// Returns the tree with the index `tree`.
    fn tree(&self, tree: usize) -> &dyn Requests {
        self.trees[tree].1.requests()
    }
}

/// The part of the server to which a path leads.
pub(super) enum PathDestination<'n> {
    /// The root directory of a server with several sources.
    Root,
    /// The index of a tree, and the path within the tree.
    Tree(usize, &'n [Vec<u8>]),
    /// Nothing: no source has the first name of the path.
    Nowhere,
}

/// A resolved path in a tree. Dropping the value forgets the inodes of the directories on the path.
pub(super) struct ResolvedPath {
    trees: Arc<ServedTrees>,
    tree: usize,
    found: ResolvedEntry,
}

impl ResolvedPath {
    /// Resolves the path `names` in the tree with the index `tree`. Symbolic links are followed,
    /// but never lead out of the tree.
    ///
    /// # Errors
    /// Fails as [`find`](Requests#method.find) does.
    pub(super) fn find(
        trees: &Arc<ServedTrees>,
        (tree, names): (usize, &[Vec<u8>]),
        cancel: &CancelToken,
    ) -> Result<Self> {
        let found = trees
            .tree(tree)
            .find_path_with_cancel(&names.join(&b'/'), true, cancel)?;
        Ok(ResolvedPath {
            trees: Arc::clone(trees),
            tree,
            found,
        })
    }

    /// Resolves `path`, which is relative to this path, in the same tree.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub(super) fn descendant(&self, path: &[u8], cancel: &CancelToken) -> Result<Self> {
        let path = path.split(|byte| *byte == b'/').map(<[u8]>::to_vec);
        let names: Vec<_> = self.names().iter().cloned().chain(path).collect();
        ResolvedPath::find(&self.trees, (self.tree, &names), cancel)
    }

    /// Resolves the path that consists of this path without its last `count` names.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub(super) fn ancestor(&self, count: usize, cancel: &CancelToken) -> Result<Self> {
        let names = self.names();
        let names = &names[..names.len().saturating_sub(count)];
        ResolvedPath::find(&self.trees, (self.tree, names), cancel)
    }

    pub(super) fn requests(&self) -> &dyn Requests {
        self.trees.tree(self.tree)
    }

    pub(super) fn entry(&self) -> &LookupEntry {
        &self.found.entry
    }

    pub(super) fn ino(&self) -> Ino {
        self.found.entry.ino
    }

    /// Returns the names of the path, after symbolic links were resolved.
    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.found.names
    }

    /// Returns a number that distinguishes this path's inode from the inodes of other resolved
    /// paths, also in other trees.
    pub(super) fn inode_key(&self) -> u64 {
        let tree = u64::try_from(self.tree).unwrap_or(0);
        self.ino() ^ tree.rotate_right(8)
    }

    /// Returns the names after the last directory of views (`.h5fs`) on the path, or `None` if the
    /// path has no such directory. A name `.h5fs` is a directory of views only in the root of a
    /// tree or of a data file.
    pub(super) fn names_in_views(&self) -> Option<&[Vec<u8>]> {
        let (names, inos) = (&self.found.names, &self.found.looked_up);
        let is_file = |ino: Ino| self.requests().data_file_number(ino) == Some(ino);
        let is_view = |at: &usize| match at.checked_sub(1) {
            None => true,
            Some(above) => {
                let (own, above) = (inos.get(*at), inos.get(above));
                above.is_some_and(|ino| is_file(*ino)) && own.is_some_and(|ino| !is_file(*ino))
            }
        };
        let mut named =
            (0..names.len()).filter(|at| names.get(*at).is_some_and(|name| name == VIEWS));
        let last = named.rfind(is_view)?;
        names.get(last + 1..)
    }
}

/// Name of the directory of views.
pub(super) const VIEWS: &[u8] = b".h5fs";

impl Drop for ResolvedPath {
    fn drop(&mut self) {
        for ino in &self.found.looked_up {
            self.requests().forget(*ino, 1);
        }
    }
}

/// An open file or directory, with its resolved path. Dropping the value closes it.
pub(super) struct OpenedEntry {
    pub(super) place: ResolvedPath,
    pub(super) opened: OpenedHandle,
}

impl OpenedEntry {
    /// Opens the regular file at the path `place`.
    ///
    /// # Errors
    /// Fails as [`open_file_with_cancel`](Requests::open_file_with_cancel) does.
    pub(super) fn open_file(place: ResolvedPath, cancel: &CancelToken) -> Result<Self> {
        let opened = place
            .requests()
            .open_file_with_cancel(place.ino(), cancel)?;
        Ok(OpenedEntry { place, opened })
    }

    /// Opens the directory at the path `place`.
    ///
    /// # Errors
    /// Fails as [`opendir_with_cancel`](Requests::opendir_with_cancel) does.
    pub(super) fn open_directory(place: ResolvedPath, cancel: &CancelToken) -> Result<Self> {
        let opened = place.requests().opendir_with_cancel(place.ino(), cancel)?;
        Ok(OpenedEntry { place, opened })
    }

    pub(super) fn handle(&self) -> Handle {
        self.opened.handle
    }

    pub(super) fn requests(&self) -> &dyn Requests {
        self.place.requests()
    }
}

impl Drop for OpenedEntry {
    fn drop(&mut self) {
        self.requests().release(self.handle());
    }
}

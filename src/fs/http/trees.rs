//! The trees that are served.

use std::sync::Arc;

use crate::array::CancelToken;
use crate::error::Result;
use crate::fs::forest::served::Served;
use crate::fs::names::walk::Found;
use crate::fs::requests::{Ino, Requests};
use crate::fs::stat::Entry;
use crate::fs::state::handle::{Handle, Opened};

/// One source as the root, or several as directories in it.
pub struct Trees {
    trees: Vec<(Vec<u8>, Served)>,
    is_alone: bool,
}

impl Trees {
    /// The tree of one source.
    #[must_use]
    pub fn one(served: Served) -> Self {
        Trees {
            trees: vec![(Vec::new(), served)],
            is_alone: true,
        }
    }

    /// The trees of several sources, each with a name that no other has.
    #[must_use]
    pub fn several(trees: Vec<(Vec<u8>, Served)>) -> Self {
        Trees {
            trees,
            is_alone: false,
        }
    }

    /// The names in the root of several.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.trees.iter().map(|(name, _)| &name[..])
    }

    /// Where a path leads to.
    pub(super) fn split<'n>(&self, names: &'n [Vec<u8>]) -> Way<'n> {
        if self.is_alone {
            return Way::Tree(0, names);
        }
        let Some((first, rest)) = names.split_first() else {
            return Way::Root;
        };
        let tree = self.trees.iter().position(|(name, _)| name == first);
        tree.map_or(Way::Nowhere, |tree| Way::Tree(tree, rest))
    }

    /// Any of the trees counts what all are asked for.
    fn tree(&self, tree: usize) -> &dyn Requests {
        self.trees[tree].1.requests()
    }
}

/// Where a path leads to.
pub(super) enum Way<'n> {
    /// To the root of several.
    Root,
    /// Into the tree of this number, by the rest of the path.
    Tree(usize, &'n [Vec<u8>]),
    /// There is no source of that name.
    Nowhere,
}

/// A place in a tree. What was counted on the way to it is given back when it is dropped.
pub(super) struct Place {
    trees: Arc<Trees>,
    tree: usize,
    found: Found,
}

impl Place {
    /// The place in a tree to which these names lead across links, which lead nowhere else than in
    /// the tree.
    ///
    /// # Errors
    /// Fails as [`find`](Requests#method.find) does.
    pub(super) fn find(
        trees: &Arc<Trees>,
        (tree, names): (usize, &[Vec<u8>]),
        cancel: &CancelToken,
    ) -> Result<Self> {
        let found = trees
            .tree(tree)
            .find_for(&names.join(&b'/'), true, cancel)?;
        Ok(Place {
            trees: Arc::clone(trees),
            tree,
            found,
        })
    }

    /// The place to which a path leads from here.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub(super) fn beneath(&self, path: &[u8], cancel: &CancelToken) -> Result<Self> {
        let path = path.split(|byte| *byte == b'/').map(<[u8]>::to_vec);
        let names: Vec<_> = self.names().iter().cloned().chain(path).collect();
        Place::find(&self.trees, (self.tree, &names), cancel)
    }

    /// The place so many names above this one.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub(super) fn above(&self, count: usize, cancel: &CancelToken) -> Result<Self> {
        let names = self.names();
        let names = &names[..names.len().saturating_sub(count)];
        Place::find(&self.trees, (self.tree, names), cancel)
    }

    pub(super) fn requests(&self) -> &dyn Requests {
        self.trees.tree(self.tree)
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.found.entry
    }

    pub(super) fn ino(&self) -> Ino {
        self.found.entry.ino
    }

    /// The names that lead here, without a link.
    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.found.names
    }

    /// A number that no other place has at the same time.
    pub(super) fn number(&self) -> u64 {
        let tree = u64::try_from(self.tree).unwrap_or(0);
        self.ino() ^ tree.rotate_right(8)
    }

    /// The names behind the last directory of views on the way. A directory of that name is one
    /// in the root of a tree, and in that of a data file: there, what stands above it is shown as the
    /// file of a directory, and it itself is not.
    pub(super) fn view(&self) -> Option<&[Vec<u8>]> {
        let (names, inos) = (&self.found.names, &self.found.counted);
        let is_file = |ino: Ino| self.requests().file_of(ino) == Some(ino);
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

/// The name of a directory of views.
pub(super) const VIEWS: &[u8] = b".h5fs";

impl Drop for Place {
    fn drop(&mut self) {
        for ino in &self.found.counted {
            self.requests().forget(*ino, 1);
        }
    }
}

/// What is open at a place, until it is dropped.
pub(super) struct OpenPlace {
    pub(super) place: Place,
    pub(super) opened: Opened,
}

impl OpenPlace {
    /// # Errors
    /// Fails as [`open_file_for`](Requests::open_file_for) does.
    pub(super) fn file(place: Place, cancel: &CancelToken) -> Result<Self> {
        let opened = place.requests().open_file_for(place.ino(), cancel)?;
        Ok(OpenPlace { place, opened })
    }

    /// # Errors
    /// Fails as [`opendir_for`](Requests::opendir_for) does.
    pub(super) fn directory(place: Place, cancel: &CancelToken) -> Result<Self> {
        let opened = place.requests().opendir_for(place.ino(), cancel)?;
        Ok(OpenPlace { place, opened })
    }

    pub(super) fn handle(&self) -> Handle {
        self.opened.handle
    }

    pub(super) fn requests(&self) -> &dyn Requests {
        self.place.requests()
    }
}

impl Drop for OpenPlace {
    fn drop(&mut self) {
        self.requests().release(self.handle());
    }
}

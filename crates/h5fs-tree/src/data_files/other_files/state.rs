//! The externally linked files that a mount knows, and their tree numbers.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::audience::Readers;
use h5fs_reader::source::local::descriptors::max_open_files;
use h5fs_reader::source::open::SharedState;
use lru::LruCache;

use crate::data_files::file_state::FileState;
use crate::errno::stale_error;
use crate::limits;
use crate::state::inode::{FIRST_FILE, TreeNumber};
use crate::state::inodes::Inodes;

pub(super) struct OtherFilesState {
    pub(super) generation: u32,
    /// Shown names of the files, in the order in which links to them were found.
    pub(super) found_names: Vec<Box<[u8]>>,
    pub(super) names: HashMap<Box<[u8]>, KnownLinkedFile>,
    /// The tree for each tree number from [`FIRST_FILE`] on.
    pub(super) numbers: Vec<TreeNumberUse>,
    /// Numbers of trees of views of externally linked files. The key is the tree number of the
    /// file's own tree, and the number of the same tree of views in the source.
    pub(super) views: HashMap<(TreeNumber, TreeNumber), TreeNumber>,
    pub(super) search: LinkSearch,
    /// Numbers of ended trees, which can be reused, in the order of their end.
    pub(super) ended: VecDeque<TreeNumber>,
    pub(super) open: LruCache<TreeNumber, Arc<FileState>>,
}

/// The progress of searching links that no request has read, for the names of further files.
pub(super) struct LinkSearch {
    /// Number of files whose links were searched so far: the source, followed by the known files.
    pub(super) searched_count: u64,
    /// Time when the last search ended.
    pub(super) ended: Option<Instant>,
}

/// A file to which an external link leads.
pub(super) struct KnownLinkedFile {
    /// The file's name as a link of the source would contain it.
    pub(super) name: Vec<u8>,
    /// Tree number of the file's own tree when the file was last open.
    pub(super) tree: Option<TreeNumber>,
    /// The error of the last failed attempt to open the file.
    pub(super) open_error: Option<String>,
}

/// The use of a tree number.
pub(super) enum TreeNumberUse {
    /// The tree has ended, because its file has changed.
    Ended,
    /// The file's own tree.
    File(Box<LastSeenFile>),
    /// A tree of views: the tree number of its file's own tree, and the number of the same tree of
    /// views in the source.
    Views(TreeNumber, TreeNumber),
}

/// A file that was opened, and the state in which it was last seen.
pub(super) struct LastSeenFile {
    pub(super) shown: Box<[u8]>,
    /// The last seen state. It is checked for changes even while the file is closed, because the
    /// kernel may cache bytes of the file.
    pub(super) state: SharedState,
    pub(super) readers: Readers,
}

impl OtherFilesState {
    pub(super) fn new(generation: u32) -> Self {
        let most = NonZeroUsize::new(limits::OPEN_MOUNTED_FILES).unwrap_or(NonZeroUsize::MIN);
        OtherFilesState {
            generation,
            found_names: Vec::new(),
            names: HashMap::new(),
            numbers: Vec::new(),
            views: HashMap::new(),
            ended: VecDeque::new(),
            search: LinkSearch {
                searched_count: 0,
                ended: None,
            },
            open: LruCache::sparse(max_open_files(most)),
        }
    }

    /// Returns the record of the file shown as `shown`, adding a record with `name` if necessary.
    /// Returns `None` if too many files are known.
    pub(super) fn find_or_add(
        &mut self,
        shown: &[u8],
        name: &[u8],
    ) -> Option<&mut KnownLinkedFile> {
        if !self.names.contains_key(shown) {
            if self.found_names.len() >= limits::MOUNTED_FILES {
                return None;
            }
            self.found_names.push(shown.into());
            let known = KnownLinkedFile {
                name: name.to_vec(),
                tree: None,
                open_error: None,
            };
            self.names.insert(shown.into(), known);
        }
        self.names.get_mut(shown)
    }

    /// Returns the shown name at `position` of the listing of `.h5fs/external`.
    pub(super) fn shown_name_at(&self, position: u64) -> Option<Box<[u8]>> {
        self.found_names
            .get(usize::try_from(position).ok()?)
            .cloned()
    }

    /// Adds an open file to the list of open files. Returns the files that must be closed because
    /// of the limit.
    pub(super) fn add_open(
        &mut self,
        tree: TreeNumber,
        live: Arc<FileState>,
    ) -> Vec<Arc<FileState>> {
        let pushed = self.open.push(tree, live);
        let mut gone: Vec<_> = pushed.into_iter().map(|(_, live)| live).collect();
        gone.extend(self.make_room(1));
        gone
    }

    /// Removes the least recently used open files until their memory is within the limit, or only
    /// `least` are left. Returns the removed files, which the caller drops.
    pub(super) fn make_room(&mut self, least: usize) -> Vec<Arc<FileState>> {
        let mut gone = Vec::new();
        while self.open.len() > least
            && self.weight() > limits::OPEN_MOUNTED_BYTES
            && let Some((_, live)) = self.open.pop_lru()
        {
            gone.push(live);
        }
        gone
    }

    pub(super) fn weight(&self) -> u64 {
        let files = self.open.iter();
        files.map(|(_, live)| live.container.weight()).sum()
    }

    pub(super) fn file(&mut self, tree: TreeNumber) -> Option<&mut LastSeenFile> {
        match self.numbered_tree(tree)? {
            TreeNumberUse::File(file) => Some(file),
            TreeNumberUse::Ended | TreeNumberUse::Views(..) => None,
        }
    }

    pub(super) fn numbered_tree(&mut self, tree: TreeNumber) -> Option<&mut TreeNumberUse> {
        let place = tree.checked_sub(FIRST_FILE)?;
        self.numbers.get_mut(usize::from(place))
    }

    /// If `tree` is a tree of views, returns the tree number of its file's own tree, and the number
    /// of the same tree of views in the source.
    pub(super) fn views_tree(&mut self, tree: TreeNumber) -> Option<(TreeNumber, TreeNumber)> {
        match self.numbered_tree(tree)? {
            TreeNumberUse::Views(of, in_source) => Some((*of, *in_source)),
            TreeNumberUse::Ended | TreeNumberUse::File(_) => None,
        }
    }

    /// Ends the file's own tree, with the number `tree`, and its trees of views, because the file
    /// has changed.
    pub(super) fn end_trees_of_file(&mut self, tree: TreeNumber, inodes: &Inodes) {
        self.open.pop(&tree);
        let place = self.numbered_tree(tree);
        let ended = place.map(|place| std::mem::replace(place, TreeNumberUse::Ended));
        let Some(TreeNumberUse::File(file)) = ended else {
            return;
        };
        if let Some(known) = self.names.get_mut(&file.shown) {
            known.tree = known.tree.filter(|its| *its != tree);
        }
        let views = self.views.extract_if(|(of, _), _| *of == tree);
        let views: Vec<TreeNumber> = views.map(|(_, number)| number).collect();
        for number in views.into_iter().chain([tree]) {
            if let Some(place) = self.numbered_tree(number) {
                *place = TreeNumberUse::Ended;
            }
            self.ended.push_back(number);
            inodes.end_tree(number);
        }
    }

    /// Returns the number of a tree of views in the file whose own tree is `of`, assigning a number
    /// if necessary. `in_source` is the number of the same tree of views in the source.
    pub(super) fn assign_views_number(
        &mut self,
        of: TreeNumber,
        in_source: TreeNumber,
        inodes: &Inodes,
    ) -> Result<TreeNumber> {
        if let Some(&known) = self.views.get(&(of, in_source)) {
            return Ok(known);
        }
        if self.file(of).is_none() {
            return Err(stale_error());
        }
        let tree = self
            .find_free_number(inodes)
            .ok_or_else(too_many_files_error)?;
        if let Some(place) = self.numbered_tree(tree) {
            *place = TreeNumberUse::Views(of, in_source);
        }
        self.views.insert((of, in_source), tree);
        Ok(tree)
    }

    /// Returns a free tree number, or `None` if all are in use.
    pub(super) fn find_free_number(&mut self, inodes: &Inodes) -> Option<TreeNumber> {
        let next = u16::try_from(self.numbers.len()).ok();
        if let Some(tree) = next.and_then(|place| FIRST_FILE.checked_add(place)) {
            self.numbers.push(TreeNumberUse::Ended);
            return Some(tree);
        }
        let used = inodes.tree_numbers();
        let place = self.ended.iter().position(|tree| !used.contains(tree))?;
        let tree = self.ended.remove(place)?;
        // A request may have been about to open the file that had this number.
        self.open.pop(&tree);
        Some(tree)
    }

    /// Returns the number of the file's own tree, assigning a number if necessary. The file keeps
    /// the number until it changes.
    pub(super) fn assign_file_number(
        &mut self,
        shown: &[u8],
        (state, readers): (&SharedState, Readers),
        inodes: &Inodes,
    ) -> Result<TreeNumber> {
        let known = self.names.get(shown).ok_or(Error::NotFound)?;
        let before = known.tree;
        if let Some(tree) = before
            && let Some(file) = self.file(tree)
        {
            let is_same = !file.state.has_ended()
                && file.state.identity() == state.identity()
                && file.readers == readers;
            if is_same {
                return Ok(tree);
            }
            self.end_trees_of_file(tree, inodes);
        }
        let tree = self
            .find_free_number(inodes)
            .ok_or_else(too_many_files_error)?;
        if let Some(place) = self.numbered_tree(tree) {
            let (shown, state) = (shown.into(), Arc::clone(state));
            *place = TreeNumberUse::File(Box::new(LastSeenFile {
                shown,
                state,
                readers,
            }));
        }
        if let Some(known) = self.names.get_mut(shown) {
            known.tree = Some(tree);
        }
        Ok(tree)
    }
}

fn too_many_files_error() -> Error {
    let most = h5fs_reader::wire::to_u64(limits::MOUNTED_FILES);
    Error::limit("number of mounted other files", most)
}

//! Files that external links lead to, shown as `.h5fs/external/FILE`.
//!
//! FILE is the file's path relative to the source's directory, or its absolute path if the file is
//! elsewhere, escaped to a single name. The path contains no symbolic links. So a file has exactly
//! one directory, however links spell its name, and cyclic links end. A link back to the source
//! leads to the root of the mount.
//!
//! There is one exception: a symbolic link in another directory may lead to the file. Such a file
//! is shown under the link's path, because the file's own references are resolved there.
//!
//! A file appears once a link of the source, or of such a file, has named it. If no request has
//! read that link yet, the links are searched, within limits: a program may have stored the path
//! from an earlier mount.
//!
//! A file is opened when a name in it is looked up, and some files stay open. A file that changes
//! gets a new tree, and the nodes of its old tree are stale. A file that only grows keeps its tree.
//! There are sixty-five thousand tree numbers. After that, the number of the tree that ended first
//! is reused, once the kernel has forgotten all nodes of that tree.

mod state;
#[cfg(test)]
mod tests;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::model::Container;
use h5fs_reader::source::SharedSource;
use h5fs_reader::source::local::audience::Readers;
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_reader::source::neighbours::policy::OpenRefusal;

use crate::data_files::file_state::{FileState, OpenedFile};
use crate::data_files::other_files::state::OtherFilesState;
use crate::data_files::watch::SourceWatch;
use crate::errno::stale_error;
use crate::limits;
use crate::name;
use crate::options::Options;
use crate::stat::SourceAttributes;
use crate::state::inode::{self, FIRST_FILE, TreeNumber};
use crate::state::inodes::Inodes;

/// Name of the directory in `.h5fs` that contains the externally linked files.
pub(crate) const DIRECTORY_NAME: &[u8] = b"external";

/// A function that detects the format of a file and parses it. Arguments include the token of the
/// request.
pub(crate) type ContainerOpener = Box<
    dyn Fn(SharedSource, Arc<Neighbours>, &CancelToken) -> Result<Arc<dyn Container>> + Send + Sync,
>;

/// The directory of a file to which an external link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShownLocation {
    /// The root of the mount, because the file is the mounted source.
    Root,
    /// A directory in `.h5fs/external`, with this shown name.
    Other(Vec<u8>),
    /// A data file in the mounted directory of files, by the shown names from the root of the
    /// mount.
    Archive(Vec<Box<[u8]>>),
}

impl ArchiveLocation {
    /// Creates the location of the data file at `path` in the mounted directory `root`. `all`
    /// resolves the names of other files that its data files reference.
    pub(crate) fn new(root: &Path, path: &Path, all: &Arc<Neighbours>) -> Self {
        ArchiveLocation {
            root: root.to_path_buf(),
            shown_names: names(path),
            archive_neighbours: Arc::clone(all),
        }
    }
}

fn names(path: &Path) -> Vec<Box<[u8]>> {
    path.iter().map(|name| name.as_bytes().into()).collect()
}

/// The result of a lookup in `.h5fs/external`.
pub(crate) enum OtherFileEntry {
    /// An externally linked file, in its current state.
    File(Arc<FileState>),
    /// A name that spells the path of a file differently from the shown name, with the file's
    /// location.
    Spelling(ShownLocation),
}

/// The reason why an externally linked file is not shown.
pub(crate) enum HiddenReason {
    /// The file does not exist.
    Missing,
    /// Opening the file is not permitted, by the options or by the operating system.
    Refused(Error),
}

/// The location of a data file in a mounted directory of files.
#[derive(Debug)]
pub(crate) struct ArchiveLocation {
    /// Path of the directory.
    root: PathBuf,
    /// Shown names from the root of the directory to the data file.
    shown_names: Vec<Box<[u8]>>,
    /// The resolver for names of other files that data files of the directory reference.
    archive_neighbours: Arc<Neighbours>,
}

/// The files to which external links of the source lead, directly or over further such files.
pub(crate) struct OtherFiles {
    /// Path of the source, without symbolic links.
    source: PathBuf,
    /// The source's location, if the source is a data file of a mounted directory.
    archive_location: Option<ArchiveLocation>,
    open: ContainerOpener,
    inodes: Arc<Inodes>,
    state: Mutex<OtherFilesState>,
}

impl OtherFiles {
    /// Creates an empty set of externally linked files for the source at `source`. `open` opens a
    /// file.
    pub(crate) fn new(source: &Path, open: ContainerOpener) -> Self {
        OtherFiles {
            source: source.to_path_buf(),
            archive_location: None,
            open,
            inodes: Arc::new(Inodes::new()),
            state: Mutex::new(OtherFilesState::new(0)),
        }
    }

    /// Adapts the set to a source that is a data file of a mounted directory. `beside` is the
    /// source's location in the directory, and `inodes` contains the inodes of the whole directory.
    pub(crate) fn for_member(self, inodes: Arc<Inodes>, beside: ArchiveLocation) -> Self {
        OtherFiles {
            inodes,
            archive_location: Some(beside),
            ..self
        }
    }

    /// Returns the resolver for names of other files that the source of `watch` references.
    /// `readers` are the users to whom the source is shown.
    pub(crate) fn neighbours(
        &self,
        watch: &SourceWatch,
        readers: Readers,
        options: &Options,
    ) -> Neighbours {
        let path = watch.path();
        let neighbours = match (&self.archive_location, watch.connection()) {
            // The mounted directory is the limit, not the directory of the file alone.
            (Some(beside), _) => beside.archive_neighbours.for_neighbour(path, path, readers),
            (None, Some(store)) => Neighbours::for_object(path, store, options.external, readers),
            (None, None) => Neighbours::new(path, options.external, options.guard.clone(), readers)
                .with_watcher(watch.changes().cloned())
                .with_opened_path(watch.given_path()),
        };
        neighbours.fail_on_absent(options.strict)
    }

    /// Returns the reason why the file that `live` references by the name `name` is not shown.
    /// Returns `None` if the file is shown.
    pub(crate) fn hidden_reason(&self, live: &FileState, name: &[u8]) -> Option<HiddenReason> {
        match live.neighbours.locate(name, &|| true) {
            Ok(None) => Some(HiddenReason::Missing),
            Err(OpenRefusal::Refused(error)) => Some(HiddenReason::Refused(error)),
            Ok(Some(_)) | Err(OpenRefusal::Failed(..)) => None,
        }
    }

    /// Returns the shown names from the root of the mount to the directory of the file at `place`.
    pub(crate) fn location_path(&self, place: &ShownLocation) -> Vec<Box<[u8]>> {
        let source = self
            .archive_location
            .as_ref()
            .map_or(&[][..], |beside| &beside.shown_names);
        match place {
            ShownLocation::Root => source.to_vec(),
            ShownLocation::Other(shown) => {
                let beneath = [name::VIEWS, DIRECTORY_NAME, shown].map(Into::into);
                source.iter().cloned().chain(beneath).collect()
            }
            ShownLocation::Archive(names) => names.clone(),
        }
    }

    /// Returns the shown names from the root of the mount to the directory of the open file `file`.
    pub(crate) fn file_location_path(&self, file: &FileState) -> Vec<Box<[u8]>> {
        self.location_path(&match &*file.shown_name {
            b"" => ShownLocation::Root,
            shown => ShownLocation::Other(shown.to_vec()),
        })
    }

    /// Returns the inodes of the mount.
    pub(crate) fn inodes(&self) -> &Arc<Inodes> {
        &self.inodes
    }

    /// Forgets all externally linked files, because a new generation of the source begins.
    pub(crate) fn reset(&self, generation: u32) {
        let before = std::mem::replace(&mut *lock(&self.state), OtherFilesState::new(generation));
        drop(before);
    }

    /// Detects the format of `source` and opens it as a container, for a request with the token
    /// `cancel`.
    pub(crate) fn open_container(
        &self,
        source: SharedSource,
        neighbours: &Arc<Neighbours>,
        cancel: &CancelToken,
    ) -> Result<Arc<dyn Container>> {
        (self.open)(source, Arc::clone(neighbours), cancel)
    }

    /// Returns the location of the file that `live` references by the name `name`. Returns `None`
    /// if the file does not exist or may not be opened.
    pub(crate) fn shown_location(&self, live: &FileState, name: &[u8]) -> Option<ShownLocation> {
        let Some(path) = self.locate(live, name)? else {
            return Some(ShownLocation::Root);
        };
        if let Some(beside) = &self.archive_location
            && let Ok(beneath) = path.strip_prefix(&beside.root)
        {
            return Some(ShownLocation::Archive(names(beneath)));
        }
        Some(ShownLocation::Other(self.shown_name(live, &path)))
    }

    /// Returns the path of the file that `live` references by the name `name`. The inner `None`
    /// means the source itself. The outer `None` means that the file does not exist or may not be
    /// opened.
    fn locate(&self, live: &FileState, name: &[u8]) -> Option<Option<PathBuf>> {
        match live.neighbours.locate(name, &|| true) {
            Ok(Some(located)) if located.real_path == self.source => Some(None),
            Ok(Some(located)) => Some(Some(located.path)),
            // The file's own entry will report why it cannot be opened.
            Err(OpenRefusal::Failed(path, _)) => Some(Some(path.canonicalize().unwrap_or(path))),
            Ok(None) | Err(OpenRefusal::Refused(_)) => None,
        }
    }

    /// Returns the shown name in `.h5fs/external` of the file at `path`, and adds the file to the
    /// known files.
    fn shown_name(&self, live: &FileState, path: &Path) -> Vec<u8> {
        let name = live.neighbours.name_relative_to_source(path);
        let shown = name::escape(&name, false);
        let mut state = lock(&self.state);
        if state.generation == live.generation {
            state.find_or_add(&shown, &name);
        }
        shown
    }

    /// Returns the entry, in `.h5fs/external` or in the mounted directory, of the file that `live`
    /// references by the name `name`. Returns `None` if the name leads to the source itself.
    ///
    /// # Errors
    /// `NotFound` if the file does not exist or may not be opened; otherwise the errors of
    /// [`find`](Self::find).
    pub(crate) fn entry(
        &self,
        source: &FileState,
        live: &FileState,
        name: &[u8],
    ) -> Result<Option<OtherFileEntry>> {
        let Some(path) = self.locate(live, name).ok_or(Error::NotFound)? else {
            return Ok(None);
        };
        let shown = self.shown_name(live, &path);
        self.find_known(source, &shown).map(Some)
    }

    /// Returns the shown name at `position` of the listing of `.h5fs/external`.
    pub(crate) fn shown_name_at(&self, position: u64) -> Option<Box<[u8]>> {
        lock(&self.state).shown_name_at(position)
    }

    /// Returns the entry of `.h5fs/external` called `shown`. `source` is the mounted file. If the
    /// name is unknown, searches links that no request has read.
    ///
    /// # Errors
    /// `NotFound` if no link leads to such a file; `EIO` if the file is damaged or its format is
    /// unknown.
    pub(crate) fn find(&self, source: &FileState, shown: &[u8]) -> Result<OtherFileEntry> {
        name::check_name_length(shown)?;
        match self.find_known(source, shown) {
            Err(Error::NotFound) => {
                self.search_links(source, &|| self.find_known(source, shown).is_ok())?;
                self.find_known(source, shown)
            }
            found => found,
        }
    }

    /// Returns the entry like [`find`](Self::find), but only for files that are already known.
    fn find_known(&self, source: &FileState, shown: &[u8]) -> Result<OtherFileEntry> {
        let known = lock(&self.state).names.get(shown).map(|k| k.name.clone());
        match known {
            Some(name) => self.known_entry(source, shown, &name),
            None => self
                .resolve_spelling(source, shown)
                .map(OtherFileEntry::Spelling),
        }
    }

    /// Returns the location of a known file for a name that spells its path differently. Fails with
    /// `NotFound` if no link has led to the file.
    fn resolve_spelling(&self, source: &FileState, shown: &[u8]) -> Result<ShownLocation> {
        let name = name::unescape(shown, false).ok_or(Error::NotFound)?;
        let Ok(Some(located)) = source.neighbours.locate_by_relative_name(&name, &|| true) else {
            return Err(Error::NotFound);
        };
        if located.real_path == self.source {
            return Ok(ShownLocation::Root);
        }
        let own = name::escape(
            &source.neighbours.name_relative_to_source(&located.path),
            false,
        );
        if own != shown && lock(&self.state).names.contains_key(&own[..]) {
            Ok(ShownLocation::Other(own))
        } else {
            Err(Error::NotFound)
        }
    }

    /// Searches links that no request has read, first in the source and then in the known files,
    /// until `is_found` returns true.
    ///
    /// # Errors
    /// Fails if a part cannot be read now, because the search is then inconclusive.
    fn search_links(&self, source: &FileState, is_found: &dyn Fn() -> bool) -> Result<()> {
        let started = Instant::now();
        loop {
            let mut state = lock(&self.state);
            let is_early = |ended: Instant| ended.elapsed() < limits::SEARCH_PAUSE;
            let is_over = started.elapsed() > limits::LISTING_TIME;
            if is_over || state.search.ended.is_some_and(is_early) {
                return Ok(());
            }
            state.search.ended = None;
            let searched = state.search.searched_count;
            let shown = searched
                .checked_sub(1)
                .map(|place| state.shown_name_at(place));
            if shown == Some(None) || searched > limits::SEARCHED_FILES {
                state.search.searched_count = 0;
                state.search.ended = Some(Instant::now());
                return Ok(());
            }
            drop(state);
            match shown.flatten() {
                None => self.search_in(source)?,
                Some(shown) => {
                    // A damaged file is skipped, because requests for the file itself report the
                    // error.
                    if let Ok(OtherFileEntry::File(live)) = self.find_known(source, &shown) {
                        self.search_in(&live)?;
                    }
                }
            }
            lock(&self.state).search.searched_count = searched.saturating_add(1);
            if is_found() {
                return Ok(());
            }
        }
    }

    fn search_in(&self, live: &FileState) -> Result<()> {
        let index = live.path_index();
        for name in index.other_files() {
            self.shown_location(live, name);
        }
        index.check_no_read_error()
    }

    /// Returns the entry `shown` of a known file. `name` is the file's name as a link of the source
    /// would contain it.
    fn known_entry(&self, source: &FileState, shown: &[u8], name: &[u8]) -> Result<OtherFileEntry> {
        let located = source.neighbours.locate_by_relative_name(name, &|| true);
        let located = located.map_err(OpenRefusal::error)?;
        let located = located.ok_or(Error::NotFound)?;
        if located.real_path == self.source {
            return Ok(OtherFileEntry::Spelling(ShownLocation::Root));
        }
        let name = source.neighbours.name_relative_to_source(&located.path);
        let own = name::escape(&name, false);
        if own != shown {
            // The path was named before it became a symbolic link, or while its target was unknown.
            lock(&self.state).find_or_add(&own, &name);
            return Ok(OtherFileEntry::Spelling(ShownLocation::Other(own)));
        }
        let watch = SourceWatch::from_file(&located.path, located.file);
        let readers = located.readers;
        let growing = self.growing_state(shown, &watch);
        let tree = match &growing {
            Some(live) if live.is_recently_opened() => {
                return Ok(OtherFileEntry::File(Arc::clone(live)));
            }
            Some(live) => live.tree,
            None => {
                let mut state = lock(&self.state);
                state.assign_file_number(shown, (&watch.opened_state(), readers), &self.inodes)?
            }
        };
        if growing.is_none()
            && let Some(live) = lock(&self.state).open.get(&tree)
        {
            return Ok(OtherFileEntry::File(Arc::clone(live)));
        }
        let (now, is_young) = (watch.opened_state(), watch.was_recently_changed());
        let gone = lock(&self.state).make_room(0);
        drop(gone);
        let neighbours = &source.neighbours;
        let neighbours = neighbours.for_neighbour(&located.path, &located.real_path, readers);
        let opened = self.open(source, tree, shown, neighbours, watch);
        let mut state = lock(&self.state);
        if let Err(error) = &opened
            && let Some(known) = state.names.get_mut(shown)
        {
            let text = error.to_string();
            if known.open_error.as_ref() != Some(&text) {
                log::warn!("{}: {text}", located.path.display());
                known.open_error = Some(text);
            }
        }
        let live =
            opened.map_err(|error| Error::from_cause(Cause::Unavailable, error.to_string()))?;
        if state.generation != source.generation {
            return Err(stale_error());
        }
        let Some(before) = growing else {
            if let Some(kept) = state.open.get(&tree) {
                return Ok(OtherFileEntry::File(Arc::clone(kept)));
            }
            let live = Arc::new(live);
            let gone = state.add_open(tree, Arc::clone(&live));
            drop(state);
            drop(gone);
            return Ok(OtherFileEntry::File(live));
        };
        if !live.is_growing() && is_young {
            // The writer has just closed the file or is about to.
            return Ok(OtherFileEntry::File(before));
        }
        let live = Arc::new(live);
        if let Some(file) = state.file(tree) {
            file.state = now;
        }
        let gone = state.add_open(tree, Arc::clone(&live));
        drop(state);
        drop(gone);
        before.clear_caches();
        Ok(OtherFileEntry::File(live))
    }

    /// Returns the last state of the file shown as `shown`, if a writer was appending to it when it
    /// was last opened, and `watch` watches the same file.
    fn growing_state(&self, shown: &[u8], watch: &SourceWatch) -> Option<Arc<FileState>> {
        let mut state = lock(&self.state);
        let tree = state.names.get(shown)?.tree?;
        let live = state.open.get(&tree)?;
        (live.is_growing() && live.is_same_file(watch)).then(|| Arc::clone(live))
    }

    fn open(
        &self,
        source: &FileState,
        tree: TreeNumber,
        shown: &[u8],
        neighbours: Neighbours,
        watch: SourceWatch,
    ) -> Result<FileState> {
        let neighbours = Arc::new(neighbours);
        let container = self.open_container(watch.file(), &neighbours, &CancelToken::default())?;
        if !inode::is_node_in_range(tree, container.root()) {
            return Err(Error::unsupported("a file of this size", None));
        }
        let origin = SourceAttributes::new(watch.path().to_path_buf(), watch.attributes()?);
        let opened = OpenedFile {
            container,
            origin: Arc::new(origin.restricted_to(neighbours.readers())),
            neighbours,
            state: Some(watch.opened_state()),
            watch: Some(watch),
            shown_name: shown.into(),
        };
        let engine = Arc::clone(&source.engine);
        let index = source.index_for_linked_file();
        Ok(FileState::new(
            source.generation,
            tree,
            opened,
            engine,
            index,
        ))
    }

    /// Returns the number, in `file`, of the tree of views whose number in the source is
    /// `in_source`. Each file has tree numbers of its own.
    ///
    /// # Errors
    /// `ESTALE` if the file has changed; `Limit` for too many trees.
    pub(crate) fn tree_number(
        &self,
        file: &FileState,
        in_source: TreeNumber,
    ) -> Result<TreeNumber> {
        match file.tree {
            inode::SOURCE => Ok(in_source),
            of => lock(&self.state).assign_views_number(of, in_source, &self.inodes),
        }
    }

    /// Returns the number, in the source, of the tree of views whose number in its own file is
    /// `tree`; the inverse of [`tree_number`](Self::tree_number). Returns `tree` itself if it is
    /// not a tree of views of an externally linked file.
    pub(crate) fn tree_number_in_source(&self, tree: TreeNumber) -> TreeNumber {
        if tree < FIRST_FILE {
            return tree;
        }
        let views = lock(&self.state).views_tree(tree);
        views.map_or(tree, |(_, in_source)| in_source)
    }

    /// Returns the file to which the tree number `tree` belongs, reopening the file if necessary.
    ///
    /// # Errors
    /// `ESTALE` if the file has changed or is gone.
    pub(crate) fn file_of_tree(
        &self,
        source: &FileState,
        tree: TreeNumber,
    ) -> Result<Arc<FileState>> {
        let views = lock(&self.state).views_tree(tree);
        let tree = views.map_or(tree, |(of, _)| of);
        let kept = lock(&self.state).open.get(&tree).cloned();
        if let Some(live) = kept {
            if live.is_growing() {
                return self.reopen(source, tree, &live.shown_name);
            }
            if !live.is_changed() {
                return Ok(live);
            }
            lock(&self.state).end_trees_of_file(tree, &self.inodes);
            return Err(stale_error());
        }
        let mut state = lock(&self.state);
        let shown = state.file(tree).ok_or_else(stale_error)?.shown.clone();
        drop(state);
        self.reopen(source, tree, &shown)
    }

    /// Returns the current state of the file to which the tree number `tree` belongs, if the file
    /// is open.
    pub(crate) fn last_shown_state(&self, tree: TreeNumber) -> Option<Arc<FileState>> {
        lock(&self.state).open.get(&tree).cloned()
    }

    fn reopen(&self, source: &FileState, tree: TreeNumber, shown: &[u8]) -> Result<Arc<FileState>> {
        match self.find(source, shown) {
            Ok(OtherFileEntry::File(live)) if live.tree == tree => Ok(live),
            Ok(_) | Err(Error::NotFound) => Err(stale_error()),
            Err(error) => Err(error),
        }
    }
}

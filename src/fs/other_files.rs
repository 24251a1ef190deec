//! Other files, that external links lead to: `.h5fs/external/FILE`.
//!
//! FILE is the file's path beneath the source's directory, absolute where it lies elsewhere, shown
//! as one name. That path has no symbolic links in it, so a file is mounted in one place however
//! its links are spelled, and links that lead round in circles end; a link back to the source leads
//! to the root of the mount. Only a file that a symbolic link in another directory leads to is
//! mounted under the link's path, as the files that it names are sought there. A file is there once
//! a link of the source, or of a file so reached, has named it. Where no request has looked at that
//! link yet, the links are searched, within limits: a program may have kept the path from an
//! earlier mount.
//!
//! A file is opened when something is looked up in it, and some stay open. One that changes gets a
//! tree of its own then: the nodes of the old one are stale. One that a writer appends to keeps
//! its tree. There are sixty-five thousand numbers of trees: then that of the tree that ended first
//! is taken again, once the kernel has forgotten all nodes of it.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use lru::LruCache;
use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::fs::errno::{refusal, stale};
use crate::fs::file_state::{FileState, OpenedFile};
use crate::fs::inode::{self, FIRST_FILE, Tree};
use crate::fs::inodes::Inodes;
use crate::fs::name;
use crate::fs::options::Options;
use crate::fs::stat::Origin;
use crate::fs::watch::Watch;
use crate::limits;
use crate::memory::lock::lock;
use crate::model::Container;
use crate::source::SharedSource;
use crate::source::audience::Audience;
use crate::source::descriptors::share_of;
use crate::source::file::OpenedState;
use crate::source::neighbours::Neighbours;
use crate::source::root::Unopened;

/// The name of their directory in the directory of views.
pub(super) const NAME: &[u8] = b"external";

/// Opens a file as what it is by its content.
pub(super) type Opener =
    Box<dyn Fn(SharedSource, Arc<Neighbours>) -> Result<Arc<dyn Container>> + Send + Sync>;

/// Where the file that a link names is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShownAt {
    /// It is the source.
    Root,
    /// Its own directory, by its shown name.
    Other(Vec<u8>),
    /// Its place in the directory of files that is mounted, as names from there.
    Beside(Vec<Box<[u8]>>),
}

impl Beside {
    /// The data file at `path` beneath the directory at `root`.
    pub(super) fn new(root: &Path, path: &Path) -> Self {
        Beside {
            root: root.to_path_buf(),
            own: names(path),
        }
    }
}

impl ShownAt {
    /// Whether the file has a directory `.h5fs` at its root.
    pub(super) fn is_source(&self) -> bool {
        !matches!(self, ShownAt::Other(_))
    }
}

fn names(path: &Path) -> Vec<Box<[u8]>> {
    path.iter().map(|name| name.as_bytes().into()).collect()
}

/// An entry of the directory of other files.
pub(super) enum OtherName {
    /// The file.
    File(Arc<FileState>),
    /// Another name of the file that is shown there.
    Spelling(ShownAt),
}

/// The place of a data file in a directory of files that is mounted.
#[derive(Debug)]
pub(super) struct Beside {
    /// The path of the directory.
    root: PathBuf,
    /// The names from there to the data file.
    own: Vec<Box<[u8]>>,
}

/// All other files of a mount.
pub(super) struct OtherFiles {
    /// The source's path, as a file's path is found.
    source: PathBuf,
    /// Where the source is one of the files of a directory that is mounted.
    beside: Option<Beside>,
    open: Opener,
    inodes: Arc<Inodes>,
    state: Mutex<State>,
}

struct State {
    generation: u32,
    /// Shown names, as they were met.
    met: Vec<Box<[u8]>>,
    names: HashMap<Box<[u8]>, NamedFile>,
    /// The files of the trees from [`FIRST_FILE`] on; `None` where a tree has ended.
    files: Vec<Option<Box<FileTree>>>,
    search: Search,
    /// The trees that have ended, the one that did first at the front.
    ended: VecDeque<Tree>,
    open: LruCache<Tree, Arc<FileState>>,
}

/// The search for names in links that no request has looked at.
struct Search {
    /// How many of the known files, the source before them, were searched.
    searched: u64,
    /// When it was over the last time.
    ended: Option<Instant>,
}

/// A file that a link led to.
struct NamedFile {
    /// Its name as the source would call it.
    name: Vec<u8>,
    /// The tree it was last seen as.
    tree: Option<Tree>,
    /// Why it could not be opened the last time.
    failed: Option<String>,
}

/// A file that has been open.
struct FileTree {
    shown: Box<[u8]>,
    /// Watched as long as the kernel may keep what was read of it, open or not.
    state: Arc<OpenedState>,
    audience: Option<Audience>,
}

impl State {
    fn new(generation: u32) -> Self {
        let most = NonZeroUsize::new(limits::OPEN_MOUNTED_FILES).unwrap_or(NonZeroUsize::MIN);
        State {
            generation,
            met: Vec::new(),
            names: HashMap::new(),
            files: Vec::new(),
            ended: VecDeque::new(),
            search: Search {
                searched: 0,
                ended: None,
            },
            open: LruCache::sparse(share_of(most)),
        }
    }

    /// The file shown as `shown`; `None` where too many are known.
    fn know(&mut self, shown: &[u8], name: &[u8]) -> Option<&mut NamedFile> {
        if !self.names.contains_key(shown) {
            if self.met.len() >= limits::MOUNTED_FILES {
                return None;
            }
            self.met.push(shown.into());
            let known = NamedFile {
                name: name.to_vec(),
                tree: None,
                failed: None,
            };
            self.names.insert(shown.into(), known);
        }
        self.names.get_mut(shown)
    }

    /// The shown name at `position` of the listing.
    fn listed(&self, position: u64) -> Option<Box<[u8]>> {
        self.met.get(usize::try_from(position).ok()?).cloned()
    }

    /// Keeps a file open, and of the others those that there is room for. Returns the files that
    /// are not kept any more.
    fn keep(&mut self, tree: Tree, live: Arc<FileState>) -> Vec<Arc<FileState>> {
        let pushed = self.open.push(tree, live);
        let mut gone: Vec<_> = pushed.into_iter().map(|(_, live)| live).collect();
        gone.extend(self.make_room(1));
        gone
    }

    /// Takes out files until the open ones are not too heavy, or so few are left.
    fn make_room(&mut self, least: usize) -> Vec<Arc<FileState>> {
        let mut gone = Vec::new();
        while self.open.len() > least
            && self.weight() > limits::OPEN_MOUNTED_BYTES
            && let Some((_, live)) = self.open.pop_lru()
        {
            gone.push(live);
        }
        gone
    }

    fn weight(&self) -> u64 {
        let files = self.open.iter();
        files.map(|(_, live)| live.container.weight()).sum()
    }

    fn file(&mut self, tree: Tree) -> Option<&mut FileTree> {
        self.place(tree)?.as_deref_mut()
    }

    fn place(&mut self, tree: Tree) -> Option<&mut Option<Box<FileTree>>> {
        let place = tree.checked_sub(FIRST_FILE)?;
        self.files.get_mut(usize::from(place))
    }

    /// Ends the tree of a file that has changed.
    fn end(&mut self, tree: Tree, inodes: &Inodes) {
        self.open.pop(&tree);
        let Some(file) = self.place(tree).and_then(Option::take) else {
            return;
        };
        if let Some(known) = self.names.get_mut(&file.shown) {
            known.tree = known.tree.filter(|its| *its != tree);
        }
        self.ended.push_back(tree);
        inodes.end(tree);
    }

    /// A tree that nothing stands in.
    fn unused(&mut self, inodes: &Inodes) -> Option<Tree> {
        let next = u16::try_from(self.files.len()).ok();
        if let Some(tree) = next.and_then(|place| FIRST_FILE.checked_add(place)) {
            self.files.push(None);
            return Some(tree);
        }
        let used = inodes.trees();
        let place = self.ended.iter().position(|tree| !used.contains(tree))?;
        let tree = self.ended.remove(place)?;
        // A request may have been about to open the file that stood there.
        self.open.pop(&tree);
        Some(tree)
    }

    /// The number of the file's tree: the one it had, unless it has changed since.
    fn number(
        &mut self,
        shown: &[u8],
        (state, audience): (&Arc<OpenedState>, Option<Audience>),
        inodes: &Inodes,
    ) -> Result<Tree> {
        let too_many = || {
            let most = crate::wire::to_u64(limits::MOUNTED_FILES);
            Error::limit("other files that are mounted", most)
        };
        let known = self.names.get(shown).ok_or(Error::NotFound)?;
        let before = known.tree;
        if let Some(tree) = before
            && let Some(file) = self.file(tree)
        {
            let is_same = !file.state.is_over()
                && file.state.fingerprint() == state.fingerprint()
                && file.audience == audience;
            if is_same {
                return Ok(tree);
            }
            self.end(tree, inodes);
        }
        let tree = self.unused(inodes).ok_or_else(too_many)?;
        if let Some(place) = self.place(tree) {
            let (shown, state) = (shown.into(), Arc::clone(state));
            *place = Some(Box::new(FileTree {
                shown,
                state,
                audience,
            }));
        }
        if let Some(known) = self.names.get_mut(shown) {
            known.tree = Some(tree);
        }
        Ok(tree)
    }
}

impl OtherFiles {
    /// The other files of the source at `source`, opened by `open`.
    pub(super) fn new(source: &Path, open: Opener) -> Self {
        OtherFiles {
            source: source.to_path_buf(),
            beside: None,
            open,
            inodes: Arc::new(Inodes::new()),
            state: Mutex::new(State::new(0)),
        }
    }

    /// The same for one of the files of a directory, which stands at `beside` and has `inodes`.
    pub(super) fn of_member(self, inodes: Arc<Inodes>, beside: Beside) -> Self {
        OtherFiles {
            inodes,
            beside: Some(beside),
            ..self
        }
    }

    /// The files beside the source that `watch` watches.
    pub(super) fn neighbours(&self, watch: &Watch, options: &Options) -> Neighbours {
        let path = watch.path();
        let of = |first: &Path| {
            let neighbours = Neighbours::of(first, options.external, options.guard.clone());
            neighbours.watched_by(watch.changes().cloned())
        };
        match &self.beside {
            // Within the directory that is mounted, not within that of the file alone. Which file
            // of that directory is said to come first is the same.
            Some(beside) => of(&beside.root.join("first")).of_neighbour(path, path, None),
            None => of(path).opened_by(watch.named()),
        }
    }

    /// The names, from the root of the mount, to the root of the source.
    pub(super) fn way_to_source(&self) -> &[Box<[u8]>] {
        self.beside.as_ref().map_or(&[], |beside| &beside.own)
    }

    /// The inodes of the mount.
    pub(super) fn inodes(&self) -> &Arc<Inodes> {
        &self.inodes
    }

    /// Begins anew for another state of the source.
    pub(super) fn reset(&self, generation: u32) {
        let before = std::mem::replace(&mut *lock(&self.state), State::new(generation));
        drop(before);
    }

    /// Opens what is to be mounted.
    pub(super) fn container(
        &self,
        source: SharedSource,
        neighbours: &Arc<Neighbours>,
    ) -> Result<Arc<dyn Container>> {
        (self.open)(source, Arc::clone(neighbours))
    }

    /// Where the file that `live` calls `name` is shown; `None` where there is none, or it may not
    /// be opened.
    pub(super) fn place(&self, live: &FileState, name: &[u8]) -> Option<ShownAt> {
        let path = match live.neighbours.locate(name) {
            Ok(Some(located)) if located.real == self.source => return Some(ShownAt::Root),
            Ok(Some(located)) => located.path,
            // Why it cannot be opened is told where it stands.
            Err(Unopened::Failed(path, _)) => path.canonicalize().unwrap_or(path),
            Ok(None) | Err(Unopened::Refused(_)) => return None,
        };
        if let Some(beside) = &self.beside
            && let Ok(beneath) = path.strip_prefix(&beside.root)
        {
            return Some(ShownAt::Beside(names(beneath)));
        }
        let name = live.neighbours.name_of(&path);
        let shown = name::escape(&name, false);
        let mut state = lock(&self.state);
        if state.generation == live.generation {
            state.know(&shown, &name);
        }
        Some(ShownAt::Other(shown))
    }

    /// The shown name at `position` of the listing.
    pub(super) fn listed(&self, position: u64) -> Option<Box<[u8]>> {
        lock(&self.state).listed(position)
    }

    /// The entry `shown`; `source` is the mounted file.
    ///
    /// # Errors
    /// `NotFound` where no link has named such a file; `EIO` where it is damaged, or of no known
    /// format.
    pub(super) fn find(&self, source: &FileState, shown: &[u8]) -> Result<OtherName> {
        name::refuse_long(shown)?;
        match self.find_named(source, shown) {
            Err(Error::NotFound) => {
                self.search(source, &|| self.find_named(source, shown).is_ok())?;
                self.find_named(source, shown)
            }
            found => found,
        }
    }

    /// The same, as far as links were looked at.
    fn find_named(&self, source: &FileState, shown: &[u8]) -> Result<OtherName> {
        let known = lock(&self.state).names.get(shown).map(|k| k.name.clone());
        match known {
            Some(name) => self.find_known(source, shown, &name),
            None => self.spelling(source, shown).map(OtherName::Spelling),
        }
    }

    /// The place of a file that is known under another name. A file that no link has named is not
    /// found.
    fn spelling(&self, source: &FileState, shown: &[u8]) -> Result<ShownAt> {
        let name = name::unescape(shown, false).ok_or(Error::NotFound)?;
        let Ok(Some(located)) = source.neighbours.locate_again(&name) else {
            return Err(Error::NotFound);
        };
        if located.real == self.source {
            return Ok(ShownAt::Root);
        }
        let own = name::escape(&source.neighbours.name_of(&located.path), false);
        match own != shown && lock(&self.state).names.contains_key(&own[..]) {
            true => Ok(ShownAt::Other(own)),
            false => Err(Error::NotFound),
        }
    }

    /// Looks at the links that no request has looked at, of the source and then of the files that
    /// are known, until `is_found`.
    ///
    /// # Errors
    /// As some cannot be read now, so that the search means nothing.
    fn search(&self, source: &FileState, is_found: &dyn Fn() -> bool) -> Result<()> {
        let started = Instant::now();
        loop {
            let mut state = lock(&self.state);
            let is_early = |ended: Instant| ended.elapsed() < limits::SEARCH_PAUSE;
            let is_over = started.elapsed() > limits::LISTING_TIME;
            if is_over || state.search.ended.is_some_and(is_early) {
                return Ok(());
            }
            state.search.ended = None;
            let searched = state.search.searched;
            let shown = searched.checked_sub(1).map(|place| state.listed(place));
            if shown == Some(None) || searched > limits::SEARCHED_FILES {
                state.search.searched = 0;
                state.search.ended = Some(Instant::now());
                return Ok(());
            }
            drop(state);
            match shown.flatten() {
                None => self.search_in(source)?,
                Some(shown) => {
                    // The readers of a damaged file are told of it.
                    if let Ok(OtherName::File(live)) = self.find_named(source, &shown) {
                        self.search_in(&live)?;
                    }
                }
            }
            lock(&self.state).search.searched = searched.saturating_add(1);
            if is_found() {
                return Ok(());
            }
        }
    }

    fn search_in(&self, live: &FileState) -> Result<()> {
        let index = live.index();
        for name in index.other_files() {
            self.place(live, name);
        }
        index.check()
    }

    /// The entry `shown`, the file that the source would call `name`.
    fn find_known(&self, source: &FileState, shown: &[u8], name: &[u8]) -> Result<OtherName> {
        let located = source.neighbours.locate_again(name);
        let located = located.map_err(Unopened::error)?;
        let located = located.ok_or(Error::NotFound)?;
        if located.real == self.source {
            return Ok(OtherName::Spelling(ShownAt::Root));
        }
        let name = source.neighbours.name_of(&located.path);
        let own = name::escape(&name, false);
        if own != shown {
            // It was named before it became a symbolic link, or while that could not be told.
            lock(&self.state).know(&own, &name);
            return Ok(OtherName::Spelling(ShownAt::Other(own)));
        }
        let watch = Watch::over(&located.path, located.file);
        let audience = located.audience;
        let growing = self.growing(shown, &watch);
        let tree = match &growing {
            Some(live) if live.is_recent() => return Ok(OtherName::File(Arc::clone(live))),
            Some(live) => live.tree,
            None => {
                let mut state = lock(&self.state);
                state.number(shown, (&watch.opened(), audience), &self.inodes)?
            }
        };
        if growing.is_none()
            && let Some(live) = lock(&self.state).open.get(&tree)
        {
            return Ok(OtherName::File(Arc::clone(live)));
        }
        let (now, is_young) = (watch.opened(), watch.is_young());
        let gone = lock(&self.state).make_room(0);
        drop(gone);
        let neighbours = &source.neighbours;
        let neighbours = neighbours.of_neighbour(&located.path, &located.real, audience);
        let opened = self.open(source, tree, shown, (neighbours, audience), watch);
        let mut state = lock(&self.state);
        if let Err(error) = &opened
            && let Some(known) = state.names.get_mut(shown)
        {
            let text = error.to_string();
            if known.failed.as_ref() != Some(&text) {
                log::warn!(
                    "{}: {text}",
                    located.path.display().to_string().escape_debug()
                );
                known.failed = Some(text);
            }
        }
        let live = opened.map_err(|_| refusal(Errno::EIO, "a file that a link leads to"))?;
        if state.generation != source.generation {
            return Err(stale());
        }
        let Some(before) = growing else {
            if let Some(kept) = state.open.get(&tree) {
                return Ok(OtherName::File(Arc::clone(kept)));
            }
            let live = Arc::new(live);
            let gone = state.keep(tree, Arc::clone(&live));
            drop(state);
            drop(gone);
            return Ok(OtherName::File(live));
        };
        if !live.is_growing() && is_young {
            // The writer has just closed it, or is about to.
            return Ok(OtherName::File(before));
        }
        let live = Arc::new(live);
        if let Some(file) = state.file(tree) {
            file.state = now;
        }
        let gone = state.keep(tree, Arc::clone(&live));
        drop(state);
        drop(gone);
        before.retire();
        Ok(OtherName::File(live))
    }

    /// The file shown as `shown`, if a writer was appending to it when it was opened last and it is
    /// the one that `watch` watches.
    fn growing(&self, shown: &[u8], watch: &Watch) -> Option<Arc<FileState>> {
        let mut state = lock(&self.state);
        let tree = state.names.get(shown)?.tree?;
        let live = state.open.get(&tree)?;
        (live.is_growing() && live.is_of_same_file(watch)).then(|| Arc::clone(live))
    }

    fn open(
        &self,
        source: &FileState,
        tree: Tree,
        shown: &[u8],
        (neighbours, audience): (Neighbours, Option<Audience>),
        watch: Watch,
    ) -> Result<FileState> {
        let neighbours = Arc::new(neighbours);
        let container = self.container(watch.file(), &neighbours)?;
        if !inode::is_object(tree, container.root()) {
            return Err(Error::unsupported("a file of this size", None));
        }
        let origin = Origin::new(watch.path().to_path_buf(), &watch.metadata()?);
        let opened = OpenedFile {
            container,
            origin: Arc::new(origin.for_audience(audience)),
            neighbours,
            state: Some(watch.opened()),
            watch: Some(watch),
            shown: shown.into(),
        };
        let engine = Arc::clone(&source.engine);
        let index = source.index_of_another();
        Ok(FileState::new(
            source.generation,
            tree,
            opened,
            engine,
            index,
        ))
    }

    /// The file whose tree has the number `tree`, opened again if need be.
    ///
    /// # Errors
    /// `ESTALE` once it has changed, or is gone.
    pub(super) fn get(&self, source: &FileState, tree: Tree) -> Result<Arc<FileState>> {
        let kept = lock(&self.state).open.get(&tree).cloned();
        if let Some(live) = kept {
            if live.is_growing() {
                return self.find_again(source, tree, &live.shown);
            }
            if !live.is_changed() {
                return Ok(live);
            }
            lock(&self.state).end(tree, &self.inodes);
            return Err(stale());
        }
        let mut state = lock(&self.state);
        let shown = state.file(tree).ok_or_else(stale)?.shown.clone();
        drop(state);
        self.find_again(source, tree, &shown)
    }

    fn find_again(&self, source: &FileState, tree: Tree, shown: &[u8]) -> Result<Arc<FileState>> {
        match self.find(source, shown) {
            Ok(OtherName::File(live)) if live.tree == tree => Ok(live),
            Ok(_) | Err(Error::NotFound) => Err(stale()),
            Err(error) => Err(error),
        }
    }
}

//! The mounted file in its current state, and the context that every node of the mount needs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use h5fs_reader::array::Engine;
use h5fs_reader::detect;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::model::{Container, NodeId};
use h5fs_reader::source::identity::Identity;
use h5fs_reader::source::local::changes::ChangeWatcher;
use h5fs_reader::source::remote::connection::Connection;
use nix::errno::Errno;

use crate::data_files::file_state::{FileState, OpenedFile};
use crate::data_files::indexes::{FilePathIndex, PathIndexes};
use crate::data_files::missing_source::{self, MissingSource};
use crate::data_files::open_inode::OpenInode;
use crate::data_files::opening::open_source;
use crate::data_files::other_files::OtherFiles;
use crate::data_files::pins::DocumentPins;
use crate::data_files::watch::SourceWatch;
use crate::errno::{refusal_error, stale_error};
use crate::options::Options;
use crate::stat::{FileKind, LookupEntry, SourceAttributes, Stat};
use crate::state::errors::{ErrorKind, RecentErrors};
use crate::state::faults::ObjectFaults;
use crate::state::handle::Handles;
use crate::state::inode::{self, Inode, TreeNumber};
use crate::state::inodes::Inodes;
use crate::state::listing::{ListedAttributes, ListingState};
use crate::state::status_texts::StatusTexts;
use crate::state::traffic::RequestCounters;

/// Maximum time for which opening a changed source waits until requests to its old state have
/// ended, so that the old and the new state are not in memory together.
const OLD_STATE_WAIT: Duration = Duration::from_millis(250);

/// Log target of warnings about referenced files that are missing. Commands print these warnings.
pub(crate) const MISSING_FILES_TARGET: &str = "h5fs::lacks";

/// A function that receives inode numbers, and makes the kernel drop what it caches about these
/// inodes. Requests wait for the function, so it must not block.
pub(crate) type InodeInvalidator = Box<dyn Fn(&[u64]) + Send + Sync>;

/// What a mount must know about the trees of views, whose modules are in a higher layer.
#[derive(Clone, Copy)]
pub(crate) struct ViewFacts {
    /// Returns the inodes that every mount has, such as the root and `.h5fs`. The arguments are the
    /// generation and the root object of the source.
    pub(crate) fixed_inodes: fn(generation: u32, root: NodeId) -> Vec<(u64, Inode)>,
    /// Returns the name of the tree of views whose number in the source is the argument.
    pub(crate) tree_name: fn(TreeNumber) -> Option<&'static [u8]>,
}

/// Resources shared by the files of one mount.
#[derive(Clone)]
pub(crate) struct SharedResources {
    pub(crate) engine: Arc<Engine>,
    pub(crate) indexes: Arc<PathIndexes>,
}

/// A mounted file, and everything that its nodes need to serve requests.
pub(crate) struct Mount {
    pub(crate) options: Options,
    origin: Mutex<Arc<SourceAttributes>>,
    /// The state of the source that is shown now. `None` if the source has changed and cannot be
    /// reopened.
    file: Mutex<Option<Arc<FileState>>>,
    /// Why and since when the source cannot be opened; `None` while it is open.
    missing: Mutex<Option<MissingSource>>,
    /// Generation of the source: the number of changes other than growth since the mount.
    generation: AtomicU32,
    watch: Option<SourceWatch>,
    /// The function that makes the kernel drop what it caches about inodes of an earlier state.
    invalidator: OnceLock<InodeInvalidator>,
    /// The latest generation for which the kernel has dropped its cached listings of the root from
    /// before that generation.
    relisted_generation: AtomicU32,
    last_reopening: Mutex<LastReopening>,
    pub(crate) inodes: Arc<Inodes>,
    view_facts: ViewFacts,
    indexes: Arc<PathIndexes>,
    /// The engine that reads arrays for all files of the mount. If `None`, each state of the source
    /// has its own.
    engine: Option<Arc<Engine>>,
    pub(crate) other_files: OtherFiles,
    pub(crate) pins: DocumentPins,
    pub(crate) status_texts: StatusTexts,
    pub(crate) handles: Handles<OpenInode>,
    pub(crate) faults: ObjectFaults,
    pub(crate) errors: RecentErrors,
    pub(crate) started_at: Instant,
    pub(crate) traffic: RequestCounters,
}

/// The last attempt to reopen the source, successful or not.
#[derive(Debug)]
struct LastReopening {
    /// Time of the attempt, or `None` if the attempt was cancelled.
    time: Option<Instant>,
    /// Number of reported changes of the source before the attempt.
    event_count: u64,
}

impl LastReopening {
    fn is_within(&self, time: Duration) -> bool {
        self.time.is_some_and(|when| when.elapsed() < time)
    }
}

/// The identity and the generation of a source when it was last seen.
#[derive(Debug, Clone)]
pub(crate) struct LastSeenState {
    state: Identity,
    generation: u32,
    is_growing: bool,
}

impl LastSeenState {
    /// Returns the generation of the source now that its identity is `now`. If the source has
    /// changed other than by appending, the generation increases.
    pub(crate) fn generation_for_identity(&self, now: &Identity) -> u32 {
        let has_grown = self.is_growing && self.state.is_of_same_file(now);
        if self.state == *now || has_grown {
            self.generation
        } else {
            self.generation.wrapping_add(1)
        }
    }
}

fn read_root_error(container: &dyn Container) -> Option<Error> {
    let root = container.node(container.root()).ok()?;
    root.error.clone()
}

impl Mount {
    pub(crate) fn new(
        opened: OpenedFile,
        options: &Options,
        others: OtherFiles,
        watch: Option<SourceWatch>,
        view_facts: ViewFacts,
        shared: Option<(SharedResources, u32, RecentErrors)>,
    ) -> Self {
        let (shared, generation, errors) = match shared {
            Some((shared, generation, errors)) => (Some(shared), generation, errors),
            None => (None, 0, RecentErrors::default()),
        };
        let (engine, indexes) = shared.map(|shared| (shared.engine, shared.indexes)).unzip();
        let mount = Mount {
            options: options.clone(),
            origin: Mutex::new(Arc::clone(&opened.origin)),
            file: Mutex::new(None),
            missing: Mutex::new(None),
            generation: AtomicU32::new(generation),
            watch,
            invalidator: OnceLock::new(),
            relisted_generation: AtomicU32::new(0),
            last_reopening: Mutex::new(LastReopening {
                time: Some(Instant::now()),
                event_count: 0,
            }),
            inodes: Arc::clone(others.inodes()),
            view_facts,
            indexes: indexes.unwrap_or_default(),
            engine,
            other_files: others,
            pins: DocumentPins::default(),
            status_texts: StatusTexts::default(),
            handles: Handles::default(),
            faults: ObjectFaults::default(),
            errors,
            started_at: Instant::now(),
            traffic: RequestCounters::default(),
        };
        mount.set_current(opened, generation);
        mount
    }

    /// Makes `opened` the state of the source that is shown from now on, with the generation
    /// `generation`.
    fn set_current(&self, opened: OpenedFile, generation: u32) {
        let (size, threads) = (self.options.cache_size, self.options.threads);
        let engine = self.engine.clone();
        let engine = engine.unwrap_or_else(|| Engine::new(size, threads));
        let node = opened.container.root();
        if let Some(error) = read_root_error(&*opened.container) {
            self.errors
                .add(ErrorKind::from_error(&error), "/", &error.to_string());
            log::warn!("{}: {error}", opened.origin.path.display());
        }
        for (ino, inode) in (self.view_facts.fixed_inodes)(generation, node) {
            self.inodes.insert_unreferenced(ino, &inode);
        }
        self.other_files.reset(generation);
        // After a process has seen a new name, it must not see an old one.
        if let Some(outdate) = self.invalidator.get() {
            outdate(&self.inodes_outdated_by(Some(generation)));
        }
        let index = Arc::new(FilePathIndex::new(&self.indexes));
        let file = FileState::new(generation, inode::SOURCE, opened, engine, index);
        *lock(&self.file) = Some(Arc::new(file));
        *lock(&self.missing) = None;
        self.inodes.set_generation(generation);
        self.faults.clear();
    }

    /// Returns the error because of which only a part of the file can be shown, according to its
    /// root object.
    pub(crate) fn root_error(&self) -> Option<Error> {
        read_root_error(&*self.current_if_open()?.container)
    }

    /// Returns the state in which the source was last seen, or `None` if the source is not watched
    /// for changes.
    pub(crate) fn last_seen(&self) -> Option<LastSeenState> {
        Some(LastSeenState {
            state: self.watch.as_ref()?.identity(),
            generation: self.generation.load(Ordering::Relaxed),
            is_growing: self.current_if_open().is_some_and(|file| file.is_growing()),
        })
    }

    /// Returns the approximate memory of the open file in bytes.
    pub(crate) fn weight(&self) -> u64 {
        self.current_if_open().map_or(0, |file| file.weight())
    }

    /// Returns the path, owner, mode and times copied from the source.
    pub(crate) fn origin(&self) -> Arc<SourceAttributes> {
        Arc::clone(&lock(&self.origin))
    }

    /// Returns the current state of the source. Fails if the source cannot be opened.
    pub(crate) fn current_file(&self) -> Result<Arc<FileState>> {
        self.file_for_request(&CancelToken::default())
    }

    /// Returns the state of the source for a request, after checking for changes. `cancel` is the
    /// token of the request.
    ///
    /// # Errors
    /// `ESTALE` if the source cannot be reopened; [`Error::cancelled`] if `cancel` ends the request
    /// first.
    pub(crate) fn file_for_request(&self, cancel: &CancelToken) -> Result<Arc<FileState>> {
        if let Some(watch) = &self.watch
            && self.must_reopen(watch)
        {
            self.reopen_if_due(watch, cancel)?;
        }
        self.current_if_open().ok_or_else(stale_error)
    }

    /// Checks the source for changes, unless a recent check exists, and reopens the source if it
    /// has changed. `cancel` cancels waiting.
    ///
    /// # Errors
    /// [`Error::cancelled`] if `cancel` ends the request first.
    pub(crate) fn refresh(&self, cancel: &CancelToken) -> Result<()> {
        let Some(watch) = &self.watch else {
            return Ok(());
        };
        watch.refresh(cancel)?;
        if self.must_reopen(watch) {
            self.reopen_if_due(watch, cancel)?;
        }
        Ok(())
    }

    /// Returns whether the source must be reopened: `watch` reports a change, a file that the
    /// source references has changed, or no state of the source is open.
    fn must_reopen(&self, watch: &SourceWatch) -> bool {
        match self.current_if_open() {
            Some(file) if file.is_growing() => watch.may_have_grown() || file.is_changed(),
            Some(file) => watch.is_changed() || file.is_changed(),
            None => true,
        }
    }

    /// Returns whether the source has changed other than by growing.
    pub(crate) fn is_changed_now(&self) -> bool {
        let is_growing = self.current_if_open().is_some_and(|file| file.is_growing());
        !is_growing && self.watch.as_ref().is_some_and(SourceWatch::is_changed_now)
    }

    /// Reads the pending change notifications of the operating system: completed writes and removed
    /// names.
    pub(crate) fn read_notifications(&self) {
        if let Some(changes) = self.change_watcher() {
            changes.read_pending();
        }
    }

    /// Returns the watcher that receives change notifications from the operating system.
    pub(crate) fn change_watcher(&self) -> Option<&Arc<ChangeWatcher>> {
        self.watch.as_ref()?.changes()
    }

    /// Returns the connection to the server of the source, or `None` if the source is a local file.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        self.watch.as_ref()?.connection()
    }

    /// Returns the generation of the source, counted from 0. Returns `None` if the source has
    /// changed and cannot be reopened.
    pub(crate) fn generation(&self) -> Option<u32> {
        self.current_file().ok().map(|file| file.generation)
    }

    /// Returns the numbers of all inodes that belong to an earlier state of the source, including
    /// inodes without lookups, and the number of the root.
    pub(crate) fn outdated_inodes(&self) -> Vec<u64> {
        self.inodes_outdated_by(self.current_if_open().map(|file| file.generation))
    }

    /// Returns the inode numbers like [`outdated_inodes`](Self::outdated_inodes), for the state
    /// with the generation `generation`.
    pub(crate) fn inodes_outdated_by(&self, generation: Option<u32>) -> Vec<u64> {
        let mut outdated = self.inodes.outdated_numbers(generation);
        outdated.push(inode::ROOT);
        outdated
    }

    /// Sets the function that makes the kernel drop what it caches. It is called with all inode
    /// numbers of a state before the next state is shown.
    pub(crate) fn set_invalidator(&self, outdate: InodeInvalidator) {
        let set = self.invalidator.set(outdate);
        debug_assert!(set.is_ok());
    }

    /// Returns whether the kernel has dropped all cached listings of the root from before the state
    /// with this generation.
    pub(crate) fn has_dropped_root_listings(&self, generation: u32) -> bool {
        self.relisted_generation.load(Ordering::Acquire) == generation
    }

    /// Records that the kernel has dropped all cached listings of the root from before the state
    /// with this generation.
    pub(crate) fn set_root_listings_dropped(&self, generation: u32) {
        self.relisted_generation
            .store(generation, Ordering::Release);
    }

    fn current_if_open(&self) -> Option<Arc<FileState>> {
        lock(&self.file).clone()
    }

    /// Reopens the source if that is necessary and the last attempt was not too recent.
    ///
    /// # Errors
    /// [`Error::cancelled`] if `cancel` ends the request first. The next request then starts again.
    fn reopen_if_due(&self, watch: &SourceWatch, cancel: &CancelToken) -> Result<()> {
        let mut renewed = cancel.lock(&self.last_reopening)?;
        let file = self.current_if_open();
        let told = self
            .change_watcher()
            .map_or(0, |changes| changes.event_count());
        let is_early = match &file {
            Some(file) => file.is_growing() && file.is_recently_opened(),
            // The system reports when a writer continues or finishes, so a retry is not needed
            // earlier.
            None => renewed.event_count == told && renewed.is_within(watch.retry_delay()),
        };
        if is_early || !self.must_reopen(watch) {
            return Ok(());
        }
        let root = file.as_ref().map(|file| file.container.root());
        let growing = file.filter(|file| file.is_growing());
        if growing.is_none() {
            // The old state is dropped first, so that both states are not in memory together.
            self.drop_current();
        }
        let mut reopened = self.reopen(watch, growing.as_ref(), cancel);
        if reopened == Err(stale_error()) {
            // The same writer may have changed the file once more, for example by closing it.
            reopened = self.reopen(watch, growing.as_ref(), cancel);
        }
        if let Err(error) = reopened {
            if error.is_cancelled() {
                renewed.time = None;
                return Err(error);
            }
            if root.is_some() {
                log::warn!("{}: has changed: {error}", watch.path().display());
            }
            self.drop_current();
            self.set_missing(root, error);
        }
        *renewed = LastReopening {
            time: Some(Instant::now()),
            event_count: told,
        };
        Ok(())
    }

    /// Records why the source cannot be opened. `root` is its last root object. A data file of a
    /// mounted directory needs no record, because the directory reports the error.
    fn set_missing(&self, root: Option<NodeId>, why: Error) {
        if self.engine.is_some() {
            return;
        }
        let mut gone = lock(&self.missing);
        match (&mut *gone, root) {
            (Some(gone), _) => gone.set_reason(why),
            (None, Some(root)) => {
                let generation = self.generation.load(Ordering::Relaxed);
                *gone = Some(MissingSource::new(generation, root, self.origin(), why));
            }
            (None, None) => {}
        }
    }

    /// Returns the line for `.h5fs/status` that says whether the source can be read.
    pub(crate) fn source_status(&self) -> String {
        if let Some(gone) = lock(&self.missing).as_ref() {
            return gone.status_line();
        }
        let unanswered = self.connection().and_then(|store| store.unanswered_since());
        unanswered.map_or_else(
            || "serving".to_owned(),
            missing_source::unanswered_status_line,
        )
    }

    /// Returns the stand-in file of a missing source and the inode with the number `ino`, if the
    /// inode is the root, `.h5fs` or a text about the mount. Returns `None` for all other inodes,
    /// or if the source is not missing.
    fn missing_source_inode(&self, ino: u64) -> Option<(Arc<FileState>, Inode)> {
        let file = lock(&self.missing)
            .as_ref()
            .map(|gone| Arc::clone(&gone.file))?;
        let inode = self.inode(&file, ino).ok()?;
        missing_source::is_mount_inode(ino, &inode).then_some((file, inode))
    }

    /// Stops showing the current state. Waits for at most [`OLD_STATE_WAIT`] until its requests
    /// have ended, so that no part of it stays in memory.
    fn drop_current(&self) {
        let before = lock(&self.file).take();
        if let Some(before) = &before {
            before.end();
        }
        // After the state has ended, no new handle can refer to it.
        self.handles.mark_all_stale();
        if let Some(before) = before {
            let rest = before.downgrade_shared();
            drop(before);
            let end = Instant::now() + OLD_STATE_WAIT;
            while rest.strong_count() > 0 && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Opens the source again and shows its new state. If a writer has only appended, the
    /// generation stays the same. Otherwise a new generation begins, and earlier handles and inodes
    /// return `ESTALE`.
    fn reopen(
        &self,
        watch: &SourceWatch,
        before: Option<&Arc<FileState>>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let guard = self.options.guard.as_ref();
        if guard.is_some_and(|guard| guard.is_crossed_by(watch.path())) {
            return Err(refusal_error(Errno::EDEADLK, "the mount hides it"));
        }
        let mut reopened = watch.reopen(cancel)?;
        let grows = |file: &FileState| file.is_growing() && !file.is_changed();
        let before = before.filter(|file| grows(file) && watch.is_same_file(&reopened));
        if before.is_none() && !self.options.force {
            detect::refuse_locked(&*reopened.file())?;
        }
        let opened = open_source(
            reopened.file(),
            watch,
            &self.other_files,
            &self.options,
            cancel,
        )?;
        let is_growing = opened.container.is_growing();
        if before.is_some()
            && !is_growing
            && (reopened.was_recently_changed() || reopened.is_changed_now())
        {
            // The writer has just closed the file or is about to. Until all is written, the last
            // seen state stays valid.
            return Ok(());
        }
        if !is_growing && reopened.is_changed_now() {
            return Err(stale_error());
        }
        watch.switch_to(reopened);
        *lock(&self.origin) = Arc::clone(&opened.origin);
        if let Some(before) = before {
            let file = Arc::new(before.after_growth(opened));
            *lock(&self.file) = Some(file);
            *lock(&self.missing) = None;
            before.clear_caches();
            return Ok(());
        }
        let generation = self.generation.fetch_add(1, Ordering::Relaxed);
        self.set_current(opened, generation.wrapping_add(1));
        log::warn!("{}: has changed; opened again", watch.path().display());
        Ok(())
    }

    /// Returns the inode with the number `ino`, and the state of the file that contains the inode.
    pub(crate) fn find_inode(&self, ino: u64) -> Result<(Arc<FileState>, Inode)> {
        self.read_notifications();
        let source = match self.current_file() {
            Err(error) => return self.missing_source_inode(ino).ok_or(error),
            Ok(source) => source,
        };
        let inode = self.inode(&source, ino)?;
        if inode.tree < inode::FIRST_FILE {
            return Ok((source, inode));
        }
        Ok((self.other_files.file_of_tree(&source, inode.tree)?, inode))
    }

    /// Returns the most recently shown state of the file of which `file` is a state, or `None` if
    /// that file is not open. Never reopens the file: reopening waits until the old state is
    /// dropped, and the caller may hold the old state.
    pub(crate) fn last_shown_state(&self, file: &FileState) -> Option<Arc<FileState>> {
        let source = self.current_if_open()?;
        match file.tree {
            inode::SOURCE => Some(source),
            tree => self.other_files.last_shown_state(tree),
        }
    }

    /// Returns the inode with the number `ino` in this file.
    pub(crate) fn inode(&self, file: &FileState, ino: u64) -> Result<Inode> {
        let inode = self.inodes.get(ino);
        inode
            .filter(|inode| inode.generation == file.generation)
            .ok_or_else(stale_error)
    }

    /// Returns the entry of an inode of `kind` that has no content, such as a directory. The kernel
    /// may cache the entry until the source changes.
    pub(crate) fn empty_entry(&self, file: &FileState, ino: u64, kind: FileKind) -> LookupEntry {
        LookupEntry {
            ino,
            generation: file.generation,
            attributes: self.empty_stat(file, ino, kind),
            is_cacheable: file.is_cacheable(),
            is_sized: true,
        }
    }

    /// Returns the attributes of `.` or `..` in a listing. The kernel does not count these entries
    /// as looked up.
    pub(crate) fn dot_attributes(&self, ino: u64) -> ListedAttributes {
        match self.find_inode(ino) {
            Ok((file, _)) => {
                let entry = self.empty_entry(&file, ino, FileKind::Directory);
                ListedAttributes::Uncounted(entry.cacheable_if(false))
            }
            Err(_) => ListedAttributes::Unknown(FileKind::Directory),
        }
    }

    /// Records that the open directory `ino` has an entry that cannot be read now, so that the
    /// kernel does not cache the listing.
    pub(crate) fn mark_incomplete(&self, ino: u64, listing: &mut ListingState) {
        listing.is_incomplete = true;
        self.inodes.set_incomplete(ino, true);
    }

    /// Returns the attributes of a file of `kind` without content, with the owner, mode and times
    /// of `file`.
    pub(crate) fn empty_stat(&self, file: &FileState, ino: u64, kind: FileKind) -> Stat {
        file.origin.stat(ino, kind, &self.options)
    }

    /// Logs the names of referenced files that reads of `file` have found to be missing.
    pub(crate) fn log_missing_files(&self, file: &FileState) {
        for lack in file.neighbours.states().take_new_absent_files() {
            let (object, reason) = (&lack.object, &lack.reason);
            self.errors.add(ErrorKind::Missing, object, reason);
            log::warn!(target: MISSING_FILES_TARGET, "{}: {reason}", self.errors.name(object));
        }
    }

    /// Returns the file and the tree of views that contain an inode, as the start of its name in
    /// messages. Returns an empty text for an inode in the source's own tree.
    pub(crate) fn name_prefix(&self, file: &FileState, inode: &Inode) -> String {
        let number = self.other_files.tree_number_in_source(inode.tree);
        let tree = (self.view_facts.tree_name)(number);
        let parts = [Some(&*file.shown_name), tree].into_iter().flatten();
        let parts = parts.filter(|part| !part.is_empty());
        parts
            .map(|part| format!("{}:", part.escape_ascii()))
            .collect()
    }

    /// Records and logs an error of the object called `object`.
    pub(crate) fn report(&self, kind: ErrorKind, object: &str, reason: &str) {
        self.errors.add(kind, object, reason);
        log::warn!("{}: {reason}", self.errors.name(object));
    }
}

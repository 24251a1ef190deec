//! The mounted file in its present state, and all else that every node of the mount has to know.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::array::Engine;
use crate::detect;
use crate::error::{Error, Result, quoted};
use crate::fs::errno::{is_fault, refusal, stale};
use crate::fs::forest::file_state::{FileState, OpenedFile};
use crate::fs::forest::gone::{self, Gone};
use crate::fs::forest::indexes::{FileIndex, Indexes};
use crate::fs::forest::opening::open_source;
use crate::fs::forest::other_files::OtherFiles;
use crate::fs::forest::watch::Watch;
use crate::fs::names::namespace::Namespace;
use crate::fs::options::Options;
use crate::fs::stat::{Entry, Kind, Origin, Stat};
use crate::fs::state::errors::{ErrorKind, Errors};
use crate::fs::state::faults::Faults;
use crate::fs::state::handle::{Handles, Open};
use crate::fs::state::inode::{self, Inode};
use crate::fs::state::inodes::Inodes;
use crate::fs::state::listing::{Listable, Listing};
use crate::fs::state::moments::Moments;
use crate::fs::state::pins::Pins;
use crate::fs::state::traffic::Traffic;
use crate::fs::views::trees;
use crate::memory::cancel::CancelToken;
use crate::memory::lock::lock;
use crate::model::{Container, NodeId};
use crate::source::identity::Identity;
use crate::source::local::changes::Changes;
use crate::source::remote::connection::Connection;

/// Time that opening a changed source waits for the requests of its last state to end, so that both
/// states are not in memory together.
const OLD_STATE: Duration = Duration::from_millis(250);

/// The part of the log that tells of what is missing, of which commands warn, too.
pub(in crate::fs) const LACKS: &str = "h5fs::lacks";

/// Makes the kernel ask anew for these inodes. Requests wait for it, so it must wait for none.
pub(in crate::fs) type Outdate = Box<dyn Fn(&[u64]) + Send + Sync>;

/// The inodes that stand in the mount whatever is in the file, in the state `generation` of the
/// source with the root object `root`.
pub(in crate::fs) type FixedInodes = fn(generation: u32, root: NodeId) -> Vec<(u64, Inode)>;

/// What the files of one mount share.
#[derive(Clone)]
pub(in crate::fs) struct Shared {
    pub(in crate::fs) engine: Arc<Engine>,
    pub(in crate::fs) indexes: Arc<Indexes>,
}

/// The mounted file.
pub(in crate::fs) struct Mount {
    pub(in crate::fs) options: Options,
    origin: Mutex<Arc<Origin>>,
    /// `None` once the source has changed and cannot be opened again.
    file: Mutex<Option<Arc<FileState>>>,
    /// Why that is so, and since when.
    gone: Mutex<Option<Gone>>,
    /// Counts the states of the source.
    generation: AtomicU32,
    watch: Option<Watch>,
    /// Makes the kernel ask anew for what it was told of these numbers.
    outdate: OnceLock<Outdate>,
    /// The last state of the source before which the kernel keeps no listing of the root.
    relisted: AtomicU32,
    renewed: Mutex<Renewed>,
    pub(in crate::fs) inodes: Arc<Inodes>,
    fixed: FixedInodes,
    indexes: Arc<Indexes>,
    /// The engine of all files of the mount; without it, each state of the source has its own.
    engine: Option<Arc<Engine>>,
    pub(in crate::fs) others: OtherFiles,
    pub(in crate::fs) pins: Pins,
    pub(in crate::fs) moments: Moments,
    pub(in crate::fs) handles: Handles<Open>,
    pub(in crate::fs) faults: Faults,
    pub(in crate::fs) errors: Errors,
    pub(in crate::fs) started: Instant,
    pub(in crate::fs) traffic: Traffic,
}

/// When a source was last opened anew, or that was tried.
#[derive(Debug)]
struct Renewed {
    /// `None` if it was tried by a request that was cancelled.
    when: Option<Instant>,
    /// What had been told of changes before.
    told: u64,
}

impl Renewed {
    fn is_within(&self, time: Duration) -> bool {
        self.when.is_some_and(|when| when.elapsed() < time)
    }
}

/// The state that a source was seen in.
#[derive(Debug, Clone)]
pub(in crate::fs) struct Seen {
    state: Identity,
    generation: u32,
    is_growing: bool,
}

impl Seen {
    /// The generation of the same source where it is found in the state `now`: a writer that
    /// appends makes no other.
    pub(in crate::fs) fn generation_in(&self, now: &Identity) -> u32 {
        let has_grown = self.is_growing && self.state.is_of_same_file(now);
        if self.state == *now || has_grown {
            self.generation
        } else {
            self.generation.wrapping_add(1)
        }
    }
}

fn fault_of_root(container: &dyn Container) -> Option<Error> {
    let root = container.node(container.root()).ok()?;
    root.error.clone()
}

impl Mount {
    pub(in crate::fs) fn new(
        opened: OpenedFile,
        options: &Options,
        others: OtherFiles,
        watch: Option<Watch>,
        fixed: FixedInodes,
        shared: Option<(Shared, u32, Errors)>,
    ) -> Self {
        let (shared, generation, errors) = match shared {
            Some((shared, generation, errors)) => (Some(shared), generation, errors),
            None => (None, 0, Errors::default()),
        };
        let (engine, indexes) = shared.map(|shared| (shared.engine, shared.indexes)).unzip();
        let mount = Mount {
            options: options.clone(),
            origin: Mutex::new(Arc::clone(&opened.origin)),
            file: Mutex::new(None),
            gone: Mutex::new(None),
            generation: AtomicU32::new(generation),
            watch,
            outdate: OnceLock::new(),
            relisted: AtomicU32::new(0),
            renewed: Mutex::new(Renewed {
                when: Some(Instant::now()),
                told: 0,
            }),
            inodes: Arc::clone(others.inodes()),
            fixed,
            indexes: indexes.unwrap_or_default(),
            engine,
            others,
            pins: Pins::default(),
            moments: Moments::default(),
            handles: Handles::default(),
            faults: Faults::default(),
            errors,
            started: Instant::now(),
            traffic: Traffic::default(),
        };
        mount.show(opened, generation);
        mount
    }

    /// Makes `opened` the source that is shown.
    fn show(&self, opened: OpenedFile, generation: u32) {
        let (size, threads) = (self.options.cache_size, self.options.threads);
        let engine = self.engine.clone();
        let engine = engine.unwrap_or_else(|| Engine::new(size, threads));
        let node = opened.container.root();
        if let Some(error) = fault_of_root(&*opened.container) {
            self.errors
                .add(ErrorKind::of(&error), "/", &error.to_string());
            log::warn!("{}: {error}", opened.origin.path.display());
        }
        for (ino, inode) in (self.fixed)(generation, node) {
            self.inodes.pin(ino, &inode);
        }
        self.others.reset(generation);
        // Once a process has seen a new name, it must meet no old one.
        if let Some(outdate) = self.outdate.get() {
            outdate(&self.outdated_by(Some(generation)));
        }
        let index = Arc::new(FileIndex::of(&self.indexes));
        let file = FileState::new(generation, inode::SOURCE, opened, engine, index);
        *lock(&self.file) = Some(Arc::new(file));
        *lock(&self.gone) = None;
        self.inodes.show(generation);
        self.faults.clear();
    }

    /// Why only a part of what is shown now can be.
    pub(in crate::fs) fn fault_of_root(&self) -> Option<Error> {
        fault_of_root(&*self.current()?.container)
    }

    /// The state that the source was last seen in.
    pub(in crate::fs) fn seen(&self) -> Option<Seen> {
        Some(Seen {
            state: self.watch.as_ref()?.identity(),
            generation: self.generation.load(Ordering::Relaxed),
            is_growing: self.current().is_some_and(|file| file.is_growing()),
        })
    }

    /// Bytes of memory, about, that what is shown takes as long as it is open.
    pub(in crate::fs) fn weight(&self) -> u64 {
        self.current().map_or(0, |file| file.weight())
    }

    /// The path, owner, mode and times that are taken over from the source.
    pub(in crate::fs) fn origin(&self) -> Arc<Origin> {
        Arc::clone(&lock(&self.origin))
    }

    /// The state of the source that is shown now.
    pub(in crate::fs) fn shown(&self) -> Result<Arc<FileState>> {
        self.shown_for(&CancelToken::default())
    }

    /// The same for a request with this token.
    ///
    /// # Errors
    /// `ESTALE` if the source cannot be opened anew; [`Error::unwanted`] if `cancel` ends the request
    /// before that is known.
    pub(in crate::fs) fn shown_for(&self, cancel: &CancelToken) -> Result<Arc<FileState>> {
        if let Some(watch) = &self.watch
            && self.is_due(watch)
        {
            self.renew(watch, cancel)?;
        }
        self.current().ok_or_else(stale)
    }

    /// Waits until it was looked a short while ago whether the source has changed, and opens it anew
    /// if it has.
    ///
    /// # Errors
    /// [`Error::unwanted`] if `cancel` ends the request before.
    pub(in crate::fs) fn refresh(&self, cancel: &CancelToken) -> Result<()> {
        let Some(watch) = &self.watch else {
            return Ok(());
        };
        watch.refresh(cancel)?;
        if self.is_due(watch) {
            self.renew(watch, cancel)?;
        }
        Ok(())
    }

    /// Whether the source is to be opened anew.
    fn is_due(&self, watch: &Watch) -> bool {
        match self.current() {
            Some(file) if file.is_growing() => watch.may_have_grown() || file.is_changed(),
            Some(file) => watch.is_changed() || file.is_changed(),
            None => true,
        }
    }

    /// Whether the source has changed, and has not only grown.
    pub(in crate::fs) fn is_changed_now(&self) -> bool {
        let is_growing = self.current().is_some_and(|file| file.is_growing());
        !is_growing && self.watch.as_ref().is_some_and(Watch::is_changed_now)
    }

    /// Takes note of what the system tells of changes: of writes that have ended, and of names that
    /// have gone.
    pub(in crate::fs) fn look(&self) {
        if let Some(changes) = self.changes() {
            changes.look();
        }
    }

    /// The source of news about changes.
    pub(in crate::fs) fn changes(&self) -> Option<&Arc<Changes>> {
        self.watch.as_ref()?.changes()
    }

    /// What has the source, unless it is a file.
    pub(in crate::fs) fn store(&self) -> Option<&Arc<Connection>> {
        self.watch.as_ref()?.store()
    }

    /// Which state of the source is shown, counted from 0; `None` once it has changed and cannot be
    /// opened again.
    pub(in crate::fs) fn generation(&self) -> Option<u32> {
        self.shown().ok().map(|file| file.generation)
    }

    /// The numbers, counted or not, that stood for another state of the source; the root is one of
    /// them.
    pub(in crate::fs) fn outdated(&self) -> Vec<u64> {
        self.outdated_by(self.current().map(|file| file.generation))
    }

    /// Like [`outdated`](Self::outdated), where the state `generation` of the source is shown.
    pub(in crate::fs) fn outdated_by(&self, generation: Option<u32>) -> Vec<u64> {
        let mut outdated = self.inodes.outdated(generation);
        outdated.push(inode::ROOT);
        outdated
    }

    /// Has `outdate` called for all numbers of a state of the source, before the next one is shown.
    pub(in crate::fs) fn call_when_outdated(&self, outdate: Outdate) {
        let set = self.outdate.set(outdate);
        debug_assert!(set.is_ok());
    }

    /// Whether the kernel keeps no listing of the root from before the state `generation` of the
    /// source.
    pub(in crate::fs) fn is_relisted(&self, generation: u32) -> bool {
        self.relisted.load(Ordering::Acquire) == generation
    }

    /// The kernel keeps no listing of the root from before the state `generation` of the source.
    pub(in crate::fs) fn set_relisted(&self, generation: u32) {
        self.relisted.store(generation, Ordering::Release);
    }

    fn current(&self) -> Option<Arc<FileState>> {
        lock(&self.file).clone()
    }

    /// Opens the changed source anew.
    ///
    /// # Errors
    /// [`Error::unwanted`] if `cancel` ends the request before; the next one begins again.
    fn renew(&self, watch: &Watch, cancel: &CancelToken) -> Result<()> {
        let mut renewed = cancel.lock(&self.renewed)?;
        let file = self.current();
        let told = self.changes().map_or(0, |changes| changes.told());
        let is_early = match &file {
            Some(file) => file.is_growing() && file.is_recent(),
            // A writer that goes on, or ends, is told of.
            None => renewed.told == told && renewed.is_within(watch.retry()),
        };
        if is_early || !self.is_due(watch) {
            return Ok(());
        }
        let root = file.as_ref().map(|file| file.container.root());
        let growing = file.filter(|file| file.is_growing());
        if growing.is_none() {
            // The old state and the new one are not in memory together.
            self.drop_shown();
        }
        let mut reopened = self.reopen(watch, growing.as_ref(), cancel);
        if reopened == Err(stale()) {
            // The same writer may have done one thing more, as closing it.
            reopened = self.reopen(watch, growing.as_ref(), cancel);
        }
        if let Err(error) = reopened {
            if error.is_unwanted() {
                renewed.when = None;
                return Err(error);
            }
            if root.is_some() {
                log::warn!("{}: has changed: {error}", watch.path().display());
            }
            self.drop_shown();
            self.miss(root, error);
        }
        *renewed = Renewed {
            when: Some(Instant::now()),
            told,
        };
        Ok(())
    }

    /// Keeps why the source, which had the root object `root`, cannot be opened. The directory of
    /// files that this is a member of tells of it otherwise.
    fn miss(&self, root: Option<NodeId>, why: Error) {
        if self.engine.is_some() {
            return;
        }
        let mut gone = lock(&self.gone);
        match (&mut *gone, root) {
            (Some(gone), _) => gone.set_reason(why),
            (None, Some(root)) => {
                let generation = self.generation.load(Ordering::Relaxed);
                *gone = Some(Gone::new(generation, root, self.origin(), why));
            }
            (None, None) => {}
        }
    }

    /// Whether the source is served, in the words of the status.
    pub(in crate::fs) fn state_text(&self) -> String {
        if let Some(gone) = lock(&self.gone).as_ref() {
            return gone.text();
        }
        let unanswered = self.store().and_then(|store| store.unanswered_since());
        unanswered.map_or_else(|| "serving".to_owned(), gone::unanswered_text)
    }

    /// What stands in the place of a source that is gone, for a request about the inode `ino` that
    /// needs no source.
    fn without_source(&self, ino: u64) -> Option<(Arc<FileState>, Inode)> {
        let file = lock(&self.gone)
            .as_ref()
            .map(|gone| Arc::clone(&gone.file))?;
        let inode = self.inode(&file, ino).ok()?;
        gone::is_of_mount(ino, &inode).then_some((file, inode))
    }

    /// Shows nothing. Of the state that was shown, nothing stays in memory once the requests for it
    /// have ended, which is waited for a moment.
    fn drop_shown(&self) {
        let before = lock(&self.file).take();
        if let Some(before) = &before {
            before.end();
        }
        // Once it has ended, no handle of it is made.
        self.handles.retire();
        if let Some(before) = before {
            let rest = before.rest();
            drop(before);
            let end = Instant::now() + OLD_STATE;
            while rest.strong_count() > 0 && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Shows the source as it is now: the same one, if a writer has only appended to it; else
    /// another, and what was opened before stays stale.
    fn reopen(
        &self,
        watch: &Watch,
        before: Option<&Arc<FileState>>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let guard = self.options.guard.as_ref();
        if guard.is_some_and(|guard| guard.is_on_the_way(watch.path())) {
            return Err(refusal(Errno::EDEADLK, "its own mount hides it"));
        }
        let mut reopened = watch.reopen(cancel)?;
        let grows = |file: &FileState| file.is_growing() && !file.is_changed();
        let before = before.filter(|file| grows(file) && watch.is_same_file(&reopened));
        if before.is_none() && !self.options.force {
            detect::refuse_locked(&*reopened.file())?;
        }
        let opened = open_source(reopened.file(), watch, &self.others, &self.options, cancel)?;
        let is_growing = opened.container.is_growing();
        if before.is_some() && !is_growing && (reopened.is_young() || reopened.is_changed_now()) {
            // The writer has just closed it, or is about to: until all is written, what was seen
            // last is right.
            return Ok(());
        }
        if !is_growing && reopened.is_changed_now() {
            return Err(stale());
        }
        watch.watch(reopened);
        *lock(&self.origin) = Arc::clone(&opened.origin);
        if let Some(before) = before {
            let file = Arc::new(before.grown(opened));
            *lock(&self.file) = Some(file);
            *lock(&self.gone) = None;
            before.retire();
            return Ok(());
        }
        let generation = self.generation.fetch_add(1, Ordering::Relaxed);
        self.show(opened, generation.wrapping_add(1));
        log::warn!("{}: has changed; opened anew", watch.path().display());
        Ok(())
    }

    pub(in crate::fs) fn space<'a>(&'a self, file: &'a Arc<FileState>) -> Namespace<'a> {
        Namespace {
            file,
            inodes: &self.inodes,
            others: &self.others,
        }
    }

    /// The inode of a number, and the file that it stands in.
    pub(in crate::fs) fn find_inode(&self, ino: u64) -> Result<(Arc<FileState>, Inode)> {
        self.look();
        let source = match self.shown() {
            Err(error) => return self.without_source(ino).ok_or(error),
            Ok(source) => source,
        };
        let inode = self.inode(&source, ino)?;
        if inode.tree < inode::FIRST_FILE {
            return Ok((source, inode));
        }
        Ok((self.others.get(&source, inode.tree)?, inode))
    }

    /// The file that `file` is a state of, as it was last shown. Nothing is opened anew: that waits
    /// until the old state is let go of, and the caller may have it.
    pub(in crate::fs) fn last_shown(&self, file: &FileState) -> Option<Arc<FileState>> {
        let source = self.current()?;
        match file.tree {
            inode::SOURCE => Some(source),
            tree => self.others.last_shown(tree),
        }
    }

    /// The inode of a number in this file.
    pub(in crate::fs) fn inode(&self, file: &FileState, ino: u64) -> Result<Inode> {
        let inode = self.inodes.get(ino);
        inode
            .filter(|inode| inode.generation == file.generation)
            .ok_or_else(stale)
    }

    /// The entry of a file without content that stays as long as the source is unchanged.
    pub(in crate::fs) fn fixed(&self, file: &FileState, ino: u64, kind: Kind) -> Entry {
        Entry {
            ino,
            generation: file.generation,
            attributes: self.bare(file, ino, kind),
            cacheable: file.is_settled(),
            is_sized: true,
        }
    }

    /// The listing of `.` or `..`, which is not counted.
    pub(in crate::fs) fn dot(&self, ino: u64) -> Listable {
        match self.find_inode(ino) {
            Ok((file, _)) => {
                let entry = self.fixed(&file, ino, Kind::Directory);
                Listable::Uncounted(entry.kept_if(false))
            }
            Err(_) => Listable::Unknown(Kind::Directory),
        }
    }

    /// Has the kernel not keep what an open directory lists: something of it cannot be read now.
    pub(in crate::fs) fn mark_unsure(&self, ino: u64, listing: &mut Listing) {
        listing.is_unsure = true;
        self.inodes.set_unsure(ino, true);
    }

    /// A file of `kind` without content, with the owner, the mode and the times of `file`.
    pub(in crate::fs) fn bare(&self, file: &FileState, ino: u64, kind: Kind) -> Stat {
        file.origin.stat(ino, kind, &self.options)
    }

    /// Remembers what is wrong with an object, and logs it once.
    pub(in crate::fs) fn note(
        &self,
        file: &Arc<FileState>,
        ino: u64,
        inode: &Inode,
        error: &Error,
    ) {
        let is_lasting = is_fault(error) && !file.is_half_written();
        if !is_lasting || !self.faults.note(ino, error) {
            return;
        }
        let object = self.object_name(file, inode);
        self.report(ErrorKind::of(error), &object, &error.to_string());
    }

    /// What an object is called in a message: its path, behind the file that it is in and the tree
    /// of views, if it is not one of the source itself.
    pub(in crate::fs) fn object_name(&self, file: &Arc<FileState>, inode: &Inode) -> String {
        let path = self.space(file).file_path(inode, 1).unwrap_or_default();
        let tree = trees::of_number(self.others.number_in_source(inode.tree));
        let place = match (&*file.shown, tree) {
            (b"", None) => String::new(),
            (b"", Some(tree)) => format!("{}:", tree.name.escape_ascii()),
            (shown, None) => format!("{}:", shown.escape_ascii()),
            (shown, Some(tree)) => {
                format!("{}:{}:", shown.escape_ascii(), tree.name.escape_ascii())
            }
        };
        format!("{place}{}", quoted(&path))
    }

    /// Tells of other files that were found to be missing.
    pub(in crate::fs) fn report_lacks(&self, file: &FileState) {
        for lack in file.neighbours.states().news_of_lacks() {
            let (object, reason) = (&lack.object, &lack.reason);
            self.errors.add(ErrorKind::Missing, object, reason);
            log::warn!(target: LACKS, "{}: {reason}", self.errors.name(object));
        }
    }

    fn report(&self, kind: ErrorKind, object: &str, reason: &str) {
        self.errors.add(kind, object, reason);
        log::warn!("{}: {reason}", self.errors.name(object));
    }
}

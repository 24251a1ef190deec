//! All data files of an archive as one, or some: which they are, and whether they have changed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use sha2::{Digest, Sha256};

use crate::detect;
use crate::error::{Cause, Error, Result};
use crate::fs::errno::{self, is_denied};
use crate::fs::forest::archive::entries::EntryKind;
use crate::fs::forest::archive::look::{Found as Looked, Look};
use crate::joined::choice::Choice;
use crate::joined::members::{Key, OpenMember, Opened};
use crate::limits;
use crate::memory::cancel::{CancelToken, IsWanted};
use crate::memory::lock::lock;
use crate::source::Source;
use crate::source::attributes::Attributes;
use crate::source::directory::Directory;
use crate::source::identity::{DirectoryIdentity, Identity};
use crate::source::local::audience::Readers;
use crate::source::neighbours::Neighbours;
use crate::source::open::{OpenSource, OpenedState, SharedOpen, SharedState};
use crate::wire::to_u64;

/// How long the files are taken to be those that were there at the last look.
const PATIENCE: Duration = Duration::from_secs(1);

/// The same of a far directory: a look is a request for each of its listings.
const FAR_PATIENCE: Duration = Duration::from_secs(30);

/// How long nobody may have written to a file for its times to tell the next change: a page in memory
/// that a program has mapped changes without another time until the system has written it to the disk,
/// which takes half a minute.
const CALM: Duration = Duration::from_secs(60);

/// Files that are left out as a writer has locked them, of which it is looked whether they still are.
const LOCKED: usize = 64;

/// Symbolic links that lead to one another.
const LINKS: usize = 8;

/// Directories within directories.
const DEPTH: usize = 32;

/// The files that are one.
pub(super) struct Files {
    pub(super) root: Arc<dyn Directory>,
    pub(super) look: Arc<Look>,
    pub(super) choice: Choice,
    /// Those that were there when they were opened last.
    opened: Mutex<Arc<Listing>>,
    /// Those that are left out as long as a writer has locked them.
    locked: Mutex<Vec<PathBuf>>,
    /// How often one of these was found to be free.
    freed: AtomicUsize,
    /// Of the request that waits for them, if one does.
    cancel: Mutex<CancelToken>,
    pub(super) progress: Arc<Progress>,
    /// Whether other users read them: all of these are shown what each file holds.
    allow_other: bool,
}

/// How many files are read before they can be shown as one.
#[derive(Debug, Default)]
pub(super) struct Progress {
    done: AtomicUsize,
    all: AtomicUsize,
    /// Since the mount: those that had to be opened.
    read: AtomicUsize,
}

impl Progress {
    /// In the words of the status; `None` where none is read.
    pub(super) fn text(&self) -> Option<String> {
        let all = self.all.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (all > 0).then(|| format!("{done} of {all} files"))
    }

    /// Files that have been read to be shown as one, since the mount.
    pub(super) fn read(&self) -> u64 {
        to_u64(self.read.load(Ordering::Relaxed))
    }

    fn begin(&self, all: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.begin(0);
    }
}

/// The data files of a directory at one time, in the order of their paths.
#[derive(Debug, Default)]
pub(super) struct Listing {
    names: Vec<Arc<[u8]>>,
    files: Vec<File>,
    /// Files and directories that are left out, and why.
    pub(super) left_out: Vec<(String, String)>,
    /// Tells them, and their states, from others.
    hash: u64,
}

/// Files while they are looked for.
#[derive(Default)]
struct Found {
    files: Vec<(Arc<[u8]>, File)>,
    left_out: Vec<(String, String)>,
    /// Symbolic links, which are followed at last.
    links: Vec<PathBuf>,
}

impl Found {
    /// Leaves out what will not be otherwise the next time.
    ///
    /// # Errors
    /// Fails with the error itself, where it may be over then.
    fn leave_out(&mut self, path: &Path, error: Error) -> Result<()> {
        if !is_lasting(&error) {
            return Err(error);
        }
        self.tell(path, &error.to_string())
    }

    /// # Errors
    /// `Limit` for too many.
    fn link(&mut self, path: PathBuf) -> Result<()> {
        if self.links.len() >= limits::JOINED_FILES {
            let most = to_u64(limits::JOINED_FILES);
            return Err(Error::limit("joined: links in a directory", most));
        }
        self.links.push(path);
        Ok(())
    }

    /// # Errors
    /// `Limit` for too many.
    fn tell(&mut self, path: &Path, reason: &str) -> Result<()> {
        if self.left_out.len() >= limits::JOINED_FILES {
            let most = to_u64(limits::JOINED_FILES);
            return Err(Error::limit("joined: files that are left out", most));
        }
        let name = path.display().to_string();
        self.left_out.push((name, reason.to_owned()));
        Ok(())
    }
}

#[derive(Debug)]
struct File {
    /// Where it is: elsewhere than its name says where that is a symbolic link.
    path: PathBuf,
    state: Identity,
}

impl Files {
    pub(super) fn new(
        (root, look): (&Arc<dyn Directory>, &Arc<Look>),
        choice: Choice,
        progress: &Arc<Progress>,
        allow_other: bool,
    ) -> Arc<Self> {
        Arc::new(Files {
            root: Arc::clone(root),
            look: Arc::clone(look),
            choice,
            opened: Mutex::default(),
            locked: Mutex::default(),
            freed: AtomicUsize::new(0),
            cancel: Mutex::default(),
            progress: Arc::clone(progress),
            allow_other,
        })
    }

    /// The files that are there now, as a source that tells when others are.
    ///
    /// # Errors
    /// Fails if the directory cannot be listed; `Limit` for too many files.
    pub(super) fn open(self: &Arc<Self>) -> Result<SharedOpen> {
        let listing = Arc::new(self.list()?);
        *lock(&self.opened) = Arc::clone(&listing);
        lock(&self.locked).clear();
        let identity = Identity::Directory(Arc::new(DirectoryIdentity {
            path: self.root.path().to_path_buf(),
            state: listing.hash,
        }));
        Ok(Arc::new(OpenFiles {
            files: Arc::clone(self),
            state: Arc::new(FilesState(identity)),
            hash: listing.hash,
            looked: Mutex::new((Instant::now(), false)),
        }))
    }

    /// Those that were there when they were opened last.
    pub(super) fn opened(&self) -> Arc<Listing> {
        Arc::clone(&lock(&self.opened))
    }

    /// Whoever waits for the files says with `cancel` that it does no more.
    pub(super) fn wait_with(&self, cancel: &CancelToken) {
        *lock(&self.cancel) = cancel.clone();
    }

    /// Whether a writer has locked a file.
    fn is_locked(&self, path: &Path) -> bool {
        let opened = self.root.open(path).and_then(|opened| {
            let absolute = self.root.absolute(path);
            opened.content.source(&absolute, None)
        });
        opened.is_ok_and(|source| detect::refuse_locked(&*source).is_err())
    }

    /// Whether one of the files that were locked is free by now: others are listed then.
    fn is_one_free(&self) -> bool {
        let mut locked = lock(&self.locked);
        let is_free = locked.iter().any(|path| !self.is_locked(path));
        if is_free {
            locked.clear();
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
        is_free
    }

    fn list(&self) -> Result<Listing> {
        let mut found = Found::default();
        self.list_beneath(Path::new(""), 0, &mut found)?;
        self.follow(&mut found)?;
        let Found {
            mut files,
            left_out,
            ..
        } = found;
        files.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut hasher = DefaultHasher::new();
        self.freed.load(Ordering::Relaxed).hash(&mut hasher);
        for (name, file) in &files {
            (name, &file.path, &file.state).hash(&mut hasher);
        }
        let (names, files) = files.into_iter().unzip();
        Ok(Listing {
            names,
            files,
            left_out,
            hash: hasher.finish(),
        })
    }

    fn list_beneath(&self, directory: &Path, depth: usize, found: &mut Found) -> Result<()> {
        if depth > DEPTH {
            return Err(Error::limit(
                "joined: directories within directories",
                to_u64(DEPTH),
            ));
        }
        let mut names = Vec::new();
        self.root.list(directory)?.visit(0, &mut |listed| {
            if !listed.name.starts_with(b".") {
                names.push((listed.name.to_vec(), listed.there.clone()));
            }
            names.len() > limits::JOINED_NAMES
        })?;
        if names.len() > limits::JOINED_NAMES {
            let most = to_u64(limits::JOINED_NAMES);
            return Err(Error::limit("joined: names in a directory", most));
        }
        for (name, there) in names {
            let path = directory.join(OsStr::from_bytes(&name));
            let listed = there.and_then(|there| self.look.listed(&path, false, &there));
            let looked = match listed {
                Some(found) => Ok(found),
                None => self.look.at(&path, false, None),
            };
            let looked = looked.and_then(|looked| match looked.unread {
                Some(error) if self.takes(&path) => Err(error),
                _ => Ok(looked),
            });
            let looked = match looked {
                Ok(looked) => looked,
                // What has gone meanwhile, or is no file; a server lists what it then does not have.
                Err(Error::NotFound) if !self.root.is_far() || !self.takes(&path) => continue,
                Err(error) => {
                    found.leave_out(&path, error)?;
                    continue;
                }
            };
            if self.is_private(&looked) {
                found.tell(&path, "not every user may read it")?;
                continue;
            }
            match looked.kind {
                EntryKind::Directory => match self.list_beneath(&path, depth + 1, found) {
                    Err(error @ Error::Limit { .. }) => return Err(error),
                    Err(error) => found.leave_out(&path, error)?,
                    Ok(()) => {}
                },
                EntryKind::DataFile => self.take(&path, path.clone(), looked.there.state, found)?,
                EntryKind::Symlink if self.takes(&path) => found.link(path)?,
                EntryKind::Symlink => {}
                EntryKind::File | EntryKind::Joined => {}
            }
        }
        Ok(())
    }

    /// Takes what links lead to, unless it was taken by its own name or by that of another link.
    fn follow(&self, found: &mut Found) -> Result<()> {
        let taken = found.files.iter().map(|(_, file)| file.path.clone());
        let mut taken: HashSet<PathBuf> = taken.collect();
        let mut links = std::mem::take(&mut found.links);
        links.sort();
        for link in links {
            match self.led_to(&link) {
                Ok(Some((target, state))) if taken.insert(target.clone()) => {
                    self.take(&link, target, state, found)?;
                }
                Ok(_) => {}
                Err(Error::NotFound) => found.tell(&link, "a link that leads nowhere")?,
                Err(Error::Usage(reason)) => found.tell(&link, &reason)?,
                Err(error) => found.leave_out(&link, error)?,
            }
        }
        Ok(())
    }

    /// Whether the file of this name is one of those that were chosen.
    fn takes(&self, name: &Path) -> bool {
        self.choice.takes(name.as_os_str().as_bytes())
    }

    /// Whether other users, who are shown the files as one, may not read this one alone.
    fn is_private(&self, looked: &Looked) -> bool {
        const ALL: u32 = 0o444;
        const ALL_SEARCH: u32 = 0o555;
        let wanted = match looked.kind {
            EntryKind::Directory => ALL_SEARCH,
            EntryKind::DataFile => ALL,
            // What it leads to is looked at by itself.
            _ => return false,
        };
        self.allow_other && looked.there.attributes.mode & wanted != wanted
    }

    /// Whether a directory above a file is private.
    fn is_hidden(&self, path: &Path) -> bool {
        self.allow_other
            && path.ancestors().skip(1).any(|above| {
                let looked = self.look.at(above, false, None);
                looked.is_ok_and(|looked| self.is_private(&looked))
            })
    }

    fn take(&self, name: &Path, path: PathBuf, state: Identity, found: &mut Found) -> Result<()> {
        if !self.takes(name) {
            return Ok(());
        }
        if found.files.len() >= limits::JOINED_FILES {
            let most = to_u64(limits::JOINED_FILES);
            return Err(Error::limit("joined: files of a directory", most));
        }
        let name = name.as_os_str().as_bytes().into();
        found.files.push((name, File { path, state }));
        Ok(())
    }

    /// The data file within the directory that a symbolic link leads to; `None` where that is none.
    ///
    /// # Errors
    /// `Usage` for a link that leads elsewhere; fails if what it leads to cannot be read.
    fn led_to(&self, link: &Path) -> Result<Option<(PathBuf, Identity)>> {
        let refused = |why: &str| Err(Error::Usage(why.to_owned()));
        let mut at = link.to_path_buf();
        for _ in 0..LINKS {
            let text = PathBuf::from(self.root.read_link(&at)?);
            let text = text
                .strip_prefix(self.root.path())
                .map(Path::to_path_buf)
                .unwrap_or_else(|_| at.parent().unwrap_or(Path::new("")).join(&text));
            match within(&text) {
                Some(within) => at = within,
                None => return refused("a link that leads out of the directory"),
            }
            let found = self.look.at(&at, false, None)?;
            match found.kind {
                EntryKind::DataFile if self.is_private(&found) || self.is_hidden(&at) => {
                    return refused("not every user may read it");
                }
                EntryKind::DataFile => return Ok(Some((at, found.there.state))),
                EntryKind::Symlink => {}
                _ => return found.unread.map_or(Ok(None), Err),
            }
        }
        refused("too many links, one behind another")
    }
}

/// Whether an error will be the same the next time.
fn is_lasting(error: &Error) -> bool {
    !error.is_passing() || is_denied(error) || is_own_mount(error)
}

fn is_own_mount(error: &Error) -> bool {
    errno::of(error) == Errno::EDEADLK as i32
}

/// A relative path without `..`; `None` of one that leads out of the directory.
fn within(path: &Path) -> Option<PathBuf> {
    let mut own = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => own.push(name),
            Component::ParentDir => own.pop().then_some(())?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(own)
}

/// The files as they were when they were opened. It has no bytes of its own.
struct OpenFiles {
    files: Arc<Files>,
    state: SharedState,
    hash: u64,
    /// When it was looked whether others are there, and whether that was so.
    looked: Mutex<(Instant, bool)>,
}

#[derive(Debug)]
struct FilesState(Identity);

impl OpenedState for FilesState {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn is_settled(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        false
    }
}

impl fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenFiles({:?})", self.files.root)
    }
}

impl Source for OpenFiles {
    fn length(&self) -> u64 {
        0
    }

    fn is_far(&self) -> bool {
        self.files.root.is_far()
    }

    fn read_wanted(&self, at: u64, _: &mut [u8], _: &IsWanted<'_>) -> Result<()> {
        Err(Error::corrupt(
            "joined: files as one have no bytes of their own",
            at,
        ))
    }
}

impl OpenSource for OpenFiles {
    fn state(&self) -> SharedState {
        Arc::clone(&self.state)
    }

    fn is_changed(&self) -> bool {
        let patience = if self.is_far() {
            FAR_PATIENCE
        } else {
            PATIENCE
        };
        let mut looked = lock(&self.looked);
        if !looked.1 && looked.0.elapsed() >= patience {
            // A directory that cannot be listed now has not changed for that.
            let now = self.files.list();
            let is_other = now.is_ok_and(|now| now.hash != self.hash);
            looked.1 = is_other || self.files.is_one_free();
            looked.0 = Instant::now();
        }
        looked.1
    }

    fn attributes(&self) -> Result<Attributes> {
        let own = self.files.root.look(Path::new(""), self.files.allow_other);
        Ok(own?.attributes)
    }
}

/// Opens the files of a listing.
pub(super) struct OpenListed {
    pub(super) files: Arc<Files>,
    pub(super) listing: Arc<Listing>,
    pub(super) neighbours: Arc<Neighbours>,
    pub(super) caches: detect::Caches,
    pub(super) force: bool,
    pub(super) verify: bool,
}

impl OpenMember for OpenListed {
    fn names(&self) -> &[Arc<[u8]>] {
        &self.listing.names
    }

    fn open(&self, number: usize) -> Result<Opened> {
        let file = self.listing.files.get(number).ok_or(Error::NotFound)?;
        let (root, absolute) = (&self.files.root, self.files.root.absolute(&file.path));
        let source = root.open(&file.path)?.content.source(&absolute, None)?;
        // Of an object, a listing may know less; that it stays what it was is watched below.
        if !root.is_far() && source.opened() != file.state {
            let name = file.path.display().to_string();
            return Err(Error::caused(Cause::Stale, name));
        }
        if !self.force {
            detect::refuse_locked(&*source).inspect_err(|_| {
                let mut locked = lock(&self.files.locked);
                if locked.len() < LOCKED && !locked.contains(&file.path) {
                    locked.push(file.path.clone());
                }
            })?;
        }
        // Whoever may read the files as one is shown what a member takes from other files.
        let readers = self.neighbours.readers();
        if !readers.may_read([], || source.audience())? {
            return Err(Error::caused(
                Cause::Forbidden,
                "not every user may read it",
            ));
        }
        let own = self.neighbours.of_neighbour(&absolute, &absolute, readers);
        let own = Arc::new(own.reporting_to(&self.neighbours, &file.path));
        let source = self.neighbours.take(&absolute, source)?;
        let container = detect::open(source, Arc::clone(&own), &self.caches, self.force)?;
        if container.is_growing() {
            let what = "a writer appends to it (its lock says so)";
            return Err(Error::Usage(what.to_owned()));
        }
        Ok(Opened {
            container,
            neighbours: own,
        })
    }

    fn open_linked(&self, from: &Opened, name: &[u8]) -> Result<Option<Opened>> {
        let Some((source, neighbours)) = from.neighbours.open_part(name)? else {
            return Ok(None);
        };
        let neighbours = Arc::new(neighbours);
        let own = Arc::clone(&neighbours);
        let container = detect::open(source, own, &self.caches, self.force)?;
        Ok(Some(Opened {
            container,
            neighbours,
        }))
    }

    fn key(&self, number: usize) -> Option<Key> {
        let file = self.listing.files.get(number)?;
        let shows_changes = match &file.state {
            // A date has seconds, in which it may have changed twice.
            Identity::Object(object) => !object.state.etag.is_empty(),
            state => state.is_calm_for(CALM),
        };
        let is_shared = self.neighbours.readers() != Readers::Owner;
        let how = (self.force, self.verify, is_shared);
        shows_changes.then(|| key_of((&file.path, &file.state), how))
    }

    fn is_far(&self) -> bool {
        self.files.root.is_far()
    }

    fn verifies(&self) -> bool {
        self.verify
    }

    fn begin(&self) {
        self.files.progress.begin(self.listing.files.len());
    }

    fn scanned(&self, was_known: bool) -> Result<()> {
        let progress = &self.files.progress;
        progress.done.fetch_add(1, Ordering::Relaxed);
        let read = usize::from(!was_known);
        progress.read.fetch_add(read, Ordering::Relaxed);
        lock(&self.files.cancel).go_on()
    }
}

/// The key of a file in one state, read with or without `force` and `verify`, for other users or not.
fn key_of(file: (&Path, &Identity), how: (bool, bool, bool)) -> Key {
    let mut hasher = KeyHasher::default();
    (file, how).hash(&mut hasher);
    hasher.0.finalize().into()
}

/// Puts facts together to a key that no others have.
#[derive(Default)]
struct KeyHasher(Sha256);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

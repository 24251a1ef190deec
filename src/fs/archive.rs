//! A directory of files, shown as one tree: each data file is a directory in its place.
//!
//! | file | content |
//! |---|---|
//! | `entries` | files and directories that the kernel knows, their numbers and paths |
//! | `look` | what stands at a path: a directory, a data file, another file, a link |
//! | `members`, `opening` | the data files that are open; how one is opened |
//! | `ordinary` | the files that are shown as they are |
//! | `status` | what the mount does, as a text |
//! | `inner` | the numbers of the inodes within data files |
//! | `listing` | what is in a directory |
//! | `top` | names at the top, where `.h5fs` is ours |
//!
//! Nothing is read before it is asked for. Names and attributes are valid for a second, and each
//! listing reads its directory, so a file that comes, goes or changes is seen without a watch. What
//! is inside of a data file is answered by a [`Filesystem`], as if that file were mounted alone.

mod entries;
mod heavy;
mod inner;
mod listing;
mod look;
mod members;
mod opening;
mod ordinary;
mod status;
mod top;

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lru::LruCache;
use nix::errno::Errno;

use crate::array::{Bytes, CancelToken, Engine, HeldMemory};
use crate::error::{Error, Result};
use crate::fs::archive::entries::{
    ERRORS, Entries, EntryKind, METRICS, ORIGINAL, Place, STATUS, VIEWS, is_entry,
};
use crate::fs::archive::inner::Inner;
use crate::fs::archive::look::{Found, LIFETIME, Look};
use crate::fs::archive::members::{Member, Members};
use crate::fs::archive::opening::Opener;
use crate::fs::archive::ordinary::{OrdinaryFile, OrdinaryFiles};
use crate::fs::errno::{self, is_fault, refusal, stale};
use crate::fs::errors::Errors;
use crate::fs::filesystem::Filesystem;
use crate::fs::handle::{Caching, Handle, Handles, Openable, Opened};
use crate::fs::inode::ROOT;
use crate::fs::name;
use crate::fs::options::Options;
use crate::fs::requests::{Detail, Ino, Requests, TakeWithAttributes, Whence};
use crate::fs::stat::{Entry, Kind};
use crate::fs::xattr;
use crate::limits;
use crate::memory::lock::lock;
use crate::source::changes::Changes;
use crate::source::directory::{Directory, Names};
use crate::source::identity::Identity;
use crate::view::View;
use crate::view::text::Text;

/// Paths whose last failure is remembered.
const LOGGED: NonZeroUsize = NonZeroUsize::new(limits::OBJECT_ERRORS).unwrap();

/// The name of the files' own bytes in `.h5fs`.
const ORIGINALS: &[u8] = b"original";

/// A file there that tells what the mount does.
struct Told {
    name: &'static [u8],
    ino: Ino,
    text: fn(&Archive) -> Vec<u8>,
}

/// All of them.
const TOLD: &[Told] = &[
    Told {
        name: b"status",
        ino: STATUS,
        text: Archive::status_text,
    },
    Told {
        name: b"metrics",
        ino: METRICS,
        text: Archive::metrics_text,
    },
    Told {
        name: b"errors",
        ino: ERRORS,
        text: |archive| archive.errors.text(),
    },
];

impl Told {
    /// How the directory lists it.
    const fn fixed(&self) -> Fixed {
        (self.name, self.ino, Kind::File)
    }
}

/// The names in `.h5fs`.
const VIEW_NAMES: &[Fixed] = &[
    (ORIGINALS, ORIGINAL, Kind::Directory),
    TOLD[0].fixed(),
    TOLD[1].fixed(),
    TOLD[2].fixed(),
];

/// The name under which a data file that cannot be read says why.
const ERROR: &[u8] = b"user.h5fs.error";

/// A directory of files.
pub struct Archive {
    options: Options,
    root: Arc<dyn Directory>,
    engine: Arc<Engine>,
    look: Look,
    entries: Entries,
    inner: Inner,
    members: Members,
    handles: Handles<Open>,
    /// The paths whose last failure is in the log.
    logged: Mutex<LruCache<PathBuf, String>>,
    /// Of all files.
    errors: Arc<Errors>,
    ordinary: OrdinaryFiles,
    started: Instant,
}

/// A name that stands always, its number and its kind.
type Fixed = (&'static [u8], Ino, Kind);

/// What an inode number stands for.
enum Target {
    /// `.h5fs` at the root.
    Views,
    /// A file there that tells of the mount.
    Told(&'static Told),
    /// An entry, and its path from the root.
    Entry(Place, PathBuf),
    /// An inode within a data file, by its number there.
    Inner(Arc<Member>, Ino),
}

/// An open file or directory.
struct Open {
    content: Content,
    _held: HeldMemory,
}

/// An open file or directory within a data file.
struct InnerOpen {
    member: Arc<Member>,
    /// Its number there.
    local: Ino,
    is_directory: bool,
    /// The state of a growing file in which it stays.
    state: Option<Identity>,
    is_given_up: bool,
}

impl Openable for Open {
    fn is_given_up(&self) -> bool {
        matches!(&self.content, Content::Inner(inner) if inner.is_given_up)
    }

    /// A member says so itself.
    fn is_over(&self) -> bool {
        false
    }
}

enum Content {
    Inner(InnerOpen),
    File(OrdinaryFile),
    Directory {
        ino: Ino,
        names: Mutex<Box<dyn Names>>,
    },
    Text(Text),
    /// `.h5fs`, or a data file that cannot be read.
    Fixed {
        ino: Ino,
        names: &'static [Fixed],
    },
}

impl Archive {
    /// The files beneath `root`; `changes` tells of changes of those that are open.
    pub fn new(root: Arc<dyn Directory>, changes: Option<Arc<Changes>>, options: &Options) -> Self {
        let engine = Engine::new(options.cache_size, options.threads);
        let errors = Arc::<Errors>::default();
        let opener = Opener::new(&root, (&engine, &errors), changes, options);
        Archive {
            options: options.clone(),
            look: Look::new(&root, options),
            members: Members::new(
                Box::new(move |opening| opener.open(opening)),
                options.open_files,
            ),
            root,
            engine,
            entries: Entries::default(),
            inner: Inner::default(),
            handles: Handles::default(),
            logged: Mutex::new(LruCache::sparse(LOGGED)),
            errors,
            ordinary: OrdinaryFiles::default(),
            started: Instant::now(),
        }
    }

    /// Logs, once, why the file `path` cannot be read.
    fn note(&self, path: &Path, error: &Error) {
        if matches!(error, Error::NotFound) || error.is_passing() && !is_denied(error) {
            return;
        }
        let text = error.to_string();
        let name = path.display().to_string();
        let reason = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text);
        let mut logged = lock(&self.logged);
        if logged.get(path).is_none_or(|known| known != reason) {
            log::warn!("{}: {reason}", name.escape_debug());
            self.errors.add(&name.escape_debug().to_string(), reason);
            logged.put(path.to_path_buf(), reason.to_owned());
        }
    }

    fn target(&self, ino: Ino) -> Result<Target> {
        if ino == VIEWS {
            return Ok(Target::Views);
        }
        if let Some(told) = TOLD.iter().find(|told| told.ino == ino) {
            return Ok(Target::Told(told));
        }
        if is_entry(ino) {
            let (place, path) = self.entries.get(ino).ok_or_else(stale)?;
            return Ok(Target::Entry(place, path));
        }
        let (member, local) = self.inner.get(ino).ok_or_else(stale)?;
        Ok(Target::Inner(member, local))
    }

    /// Looks at what stands at `path`, the entry that was last known as `known`.
    fn found(&self, path: &Path, is_original: bool, known: Option<Place>) -> Result<Found> {
        self.look.at(path, is_original, known)
    }

    /// Counts a lookup of `name` in the directory `parent` with the path `path`, and describes it.
    fn enter(&self, parent: Ino, of: (&Path, bool), name: &[u8]) -> Result<Entry> {
        let (path, is_original) = of;
        if parent == ROOT && name == name::VIEWS {
            return self.fixed(VIEWS);
        }
        let name = top::real_name(parent == ROOT, name);
        let path = path.join(OsStr::from_bytes(&name));
        let known = self.entries.known(parent, &name);
        let found = self.found(&path, is_original, known)?;
        Ok(self.enter_found((parent, is_original), &name, (&path, &found)))
    }

    /// Counts a lookup of `name` in the directory `parent`, where `found` was found, and describes
    /// it.
    fn enter_found(
        &self,
        (parent, is_original): (Ino, bool),
        name: &[u8],
        (path, found): (&Path, &Found),
    ) -> Entry {
        let place = found.place(parent, is_original);
        let ino = self.entries.enter(name, place);
        self.look.entry(ino, found, (path, is_original))
    }

    /// The entry of a directory that stands always.
    fn fixed(&self, ino: Ino) -> Result<Entry> {
        let path = Path::new("");
        let found = self.found(path, true, None)?;
        Ok(self.look.entry(ino, &found, (path, true)))
    }

    /// Has the filesystem of the data file with the entry `ino` answer. Outside, why it cannot be
    /// opened.
    fn ask_data_file<T>(
        &self,
        (ino, path): (Ino, &Path),
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<Result<T>> {
        let member = self.members.get(ino, path);
        let answered = self
            .members
            .ask(&member, cancel, |filesystem| Ok(answer(filesystem)));
        answered.map_err(|error| self.unopened(path, error))
    }

    /// Why the data file at `path` cannot be opened; `ESTALE` where it is none.
    fn unopened(&self, path: &Path, error: Error) -> Error {
        if own_fault(&error) && self.look.was_mistaken(path) {
            return stale();
        }
        self.note(path, &error);
        error
    }

    /// The number that `local` of `member` has in the mount; counted.
    fn enter_inner(&self, member: &Arc<Member>, local: Ino) -> Ino {
        let (ino, is_new) = self.inner.enter(member, local);
        if is_new {
            self.members.use_once_more(member);
        }
        ino
    }

    /// Opens the entry `ino`, a file that is shown as it is.
    fn open_ordinary(&self, ino: Ino, place: Place, path: &Path) -> Result<Opened> {
        let opened = self.root.open(path).map_err(gone);
        let opened = opened.inspect_err(|error| self.note(path, error))?;
        if opened.number != place.file {
            // The kernel has the length of another file, and looks the name up again.
            return Err(stale());
        }
        let (file, caching) = self.ordinary.open(ino, opened.content, path)?;
        self.insert(Content::File(file), caching)
    }

    fn insert(&self, content: Content, caching: Caching) -> Result<Opened> {
        self.insert_as(self.handles.unused(), content, caching)
    }

    fn insert_as(&self, handle: Handle, content: Content, caching: Caching) -> Result<Opened> {
        let _held = self.engine.hold(limits::OPEN_HANDLE)?;
        self.handles
            .insert(handle, Open { content, _held }, caching)
    }

    /// Opens `local` of `member`, which has the same handle for it.
    fn open_inner(
        &self,
        (member, local, is_directory): (&Arc<Member>, Ino, bool),
        cancel: &CancelToken,
    ) -> Result<Opened> {
        let handle = self.handles.unused();
        self.members.ask(member, cancel, |filesystem| {
            let own = filesystem.open_as(handle, (local, is_directory), cancel)?;
            let content = Content::Inner(InnerOpen {
                member: Arc::clone(member),
                local,
                is_directory,
                state: filesystem.stays_in(handle),
                is_given_up: own.is_given_up,
            });
            let caching = match own.caching {
                // What is listed inside may be of a state that is over, and nothing watches for
                // that.
                Caching::Lasting if is_directory => Caching::WhileOpen,
                caching => caching,
            };
            let inserted = self.insert_as(handle, content, caching);
            if inserted.is_ok() {
                self.members.use_once_more(member);
            } else {
                filesystem.release(handle);
            }
            inserted
        })
    }

    /// Has the filesystem of an open file's member answer, where `handle` is open again if the
    /// member was closed meanwhile.
    fn ask_open<T>(
        &self,
        handle: Handle,
        inner: &InnerOpen,
        cancel: &CancelToken,
        answer: impl FnOnce(&Filesystem) -> Result<T>,
    ) -> Result<T> {
        self.members.ask(&inner.member, cancel, |filesystem| {
            if !filesystem.has_open(handle) {
                filesystem.open_as(handle, (inner.local, inner.is_directory), cancel)?;
                if filesystem.stays_in(handle) != inner.state {
                    // Something was appended while the member was closed.
                    filesystem.release(handle);
                    return Err(stale());
                }
            }
            answer(filesystem)
        })
    }
}

/// Whether the system has denied it to the user that reads.
fn is_denied(error: &Error) -> bool {
    errno::of(error) == Errno::EACCES as i32
}

/// Why nothing inside of a data file can be had, where that is a fault of the file.
fn own_fault(error: &Error) -> bool {
    is_fault(error) || matches!(error, Error::Usage(_))
}

impl Requests for Archive {
    fn options(&self) -> &Options {
        &self.options
    }

    fn capacity(&self) -> (u64, u64) {
        self.root.capacity()
    }

    fn lifetime(&self) -> Duration {
        LIFETIME
    }

    fn file_of(&self, ino: Ino) -> Option<u64> {
        match is_entry(ino) {
            true => Some(ino),
            false => self.inner.get(ino).map(|(member, _)| member.entry),
        }
    }

    fn lookup_for(&self, parent: Ino, name: &[u8], cancel: &CancelToken) -> Result<Entry> {
        name::refuse_long(name)?;
        match self.target(parent)? {
            Target::Views if name == ORIGINALS => self.fixed(ORIGINAL),
            Target::Views => {
                let mut told = TOLD.iter();
                let told = told.find(|told| told.name == name);
                self.told(told.ok_or(Error::NotFound)?)
            }
            Target::Told(_) => Err(refusal(Errno::ENOTDIR, "lookup")),
            Target::Entry(place, path) => match place.kind {
                EntryKind::Directory => self.enter(parent, (&path, place.is_original), name),
                EntryKind::DataFile => {
                    let member = self.members.get(parent, &path);
                    match self.lookup_inside((&member, ROOT), name, cancel) {
                        Err(error) if own_fault(&error) => {
                            match self.look.was_mistaken(&path) {
                                true => Err(stale()),
                                // The data file itself says what is wrong with it.
                                false => Err(Error::NotFound),
                            }
                        }
                        found => found,
                    }
                }
                _ => Err(refusal(Errno::ENOTDIR, "lookup")),
            },
            Target::Inner(member, local) => self.lookup_inside((&member, local), name, cancel),
        }
    }

    fn forget(&self, ino: Ino, count: u64) {
        if is_entry(ino) {
            return self.entries.forget(ino, count);
        }
        if let Some((member, local, is_forgotten)) = self.inner.forget(ino, count) {
            member.inodes().forget(local, count);
            if is_forgotten {
                self.members.leave(member.entry);
            }
        }
    }

    fn getattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Entry> {
        match self.target(ino)? {
            Target::Views => self.fixed(VIEWS),
            Target::Told(told) => self.told(told),
            Target::Entry(place, path) => {
                let found = self.found(&path, place.is_original, Some(place));
                let found = found.map_err(gone)?;
                if found.kind != place.kind {
                    return Err(stale());
                }
                Ok(self.look.entry(ino, &found, (&path, place.is_original)))
            }
            Target::Inner(member, local) => {
                let entry = self
                    .members
                    .ask(&member, cancel, |file| file.getattr_for(local, cancel));
                Ok(numbered(entry.map_err(gone)?, ino))
            }
        }
    }

    fn readlink_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<u8>> {
        match self.target(ino)? {
            Target::Entry(place, path) if place.kind == EntryKind::Symlink => self
                .look
                .link_text((&path, place.is_original))
                .map_err(gone),
            Target::Entry(..) | Target::Views | Target::Told(_) => {
                Err(refusal(Errno::EINVAL, "readlink"))
            }
            Target::Inner(member, local) => self
                .members
                .ask(&member, cancel, |file| file.readlink_for(local, cancel)),
        }
    }

    fn listxattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        match self.target(ino)? {
            Target::Entry(place, path) if place.kind == EntryKind::DataFile => {
                let listed = self.ask_data_file((ino, &path), cancel, |root| {
                    root.listxattr_for(ROOT, cancel)
                });
                match listed {
                    Ok(listed) => listed,
                    Err(error) if own_fault(&error) => Ok(vec![ERROR.to_vec()]),
                    Err(error) => Err(error),
                }
            }
            Target::Entry(..) | Target::Views | Target::Told(_) => Ok(Vec::new()),
            Target::Inner(member, local) => self
                .members
                .ask(&member, cancel, |file| file.listxattr_for(local, cancel)),
        }
    }

    fn getxattr_for(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>> {
        xattr::user_name(name)?;
        match self.target(ino)? {
            Target::Entry(place, path) if place.kind == EntryKind::DataFile => {
                let value = self.ask_data_file((ino, &path), cancel, |root| {
                    root.getxattr_for(ROOT, name, cancel)
                });
                match value {
                    Ok(value) => value,
                    Err(error) if own_fault(&error) && name == ERROR => {
                        Ok(error.to_string().into_bytes())
                    }
                    Err(error) if own_fault(&error) => Err(xattr::absent()),
                    Err(error) => Err(error),
                }
            }
            Target::Entry(..) | Target::Views | Target::Told(_) => Err(xattr::absent()),
            Target::Inner(member, local) => self.members.ask(&member, cancel, |file| {
                file.getxattr_for(local, name, cancel)
            }),
        }
    }

    fn open_file_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Opened> {
        match self.target(ino)? {
            Target::Entry(place, path) => match place.kind {
                EntryKind::File => self.open_ordinary(ino, place, &path),
                EntryKind::Symlink => Err(refusal(Errno::ELOOP, "open")),
                _ => Err(refusal(Errno::EISDIR, "open")),
            },
            Target::Views => Err(refusal(Errno::EISDIR, "open")),
            Target::Told(told) => {
                let text = Text::streamed((told.text)(self));
                self.insert(Content::Text(text), Caching::Never)
            }
            Target::Inner(member, local) => self.open_inner((&member, local, false), cancel),
        }
    }

    fn opendir_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Opened> {
        match self.target(ino)? {
            Target::Views => {
                let names = VIEW_NAMES;
                self.insert(Content::Fixed { ino, names }, Caching::WhileOpen)
            }
            Target::Told(_) => Err(refusal(Errno::ENOTDIR, "opendir")),
            Target::Entry(place, path) => match place.kind {
                EntryKind::Directory => {
                    let names = self.root.list(&path).map_err(gone);
                    let names = names.inspect_err(|error| self.note(&path, error))?;
                    let names = Mutex::new(names);
                    self.insert(Content::Directory { ino, names }, Caching::WhileOpen)
                }
                EntryKind::DataFile => {
                    let member = self.members.get(ino, &path);
                    let opened = self.open_inner((&member, ROOT, true), cancel);
                    match opened.map_err(|error| self.unopened(&path, error)) {
                        Err(error) if own_fault(&error) => {
                            let names = &[];
                            self.insert(Content::Fixed { ino, names }, Caching::WhileOpen)
                        }
                        opened => opened,
                    }
                }
                _ => Err(refusal(Errno::ENOTDIR, "opendir")),
            },
            Target::Inner(member, local) => self.open_inner((&member, local, true), cancel),
        }
    }

    fn is_ordered(&self, directory: Ino) -> bool {
        let found = self.target(directory);
        !matches!(found, Ok(Target::Entry(place, _)) if place.kind == EntryKind::Directory)
    }

    fn list_for(
        &self,
        handle: Handle,
        cookie: u64,
        detail: Detail,
        take: &mut TakeWithAttributes<'_>,
        cancel: &CancelToken,
    ) -> Result<()> {
        self.list(handle, cookie, (detail, take), cancel)
    }

    fn read_for(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let open = self.handles.get(handle)?;
        match &open.content {
            Content::File(file) => file.read(offset, length),
            Content::Text(text) => text.read_at(offset, length),
            Content::Inner(inner) if !inner.is_directory => {
                self.ask_open(handle, inner, cancel, |filesystem| {
                    filesystem.read_for(handle, offset, length, cancel)
                })
            }
            _ => Err(refusal(Errno::EISDIR, "read")),
        }
    }

    fn read_now(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let open = self.handles.get(handle)?;
        let Content::Inner(inner) = &open.content else {
            return Ok(None);
        };
        match inner.member.open_already() {
            Some(opened) if !inner.is_directory && opened.filesystem.has_open(handle) => {
                opened.filesystem.read_now(handle, offset, length)
            }
            _ => Ok(None),
        }
    }

    fn lseek_for(
        &self,
        handle: Handle,
        offset: u64,
        whence: Whence,
        cancel: &CancelToken,
    ) -> Result<u64> {
        let open = self.handles.get(handle)?;
        match &open.content {
            Content::File(file) => file.seek(offset, whence),
            Content::Inner(inner) if !inner.is_directory => {
                self.ask_open(handle, inner, cancel, |filesystem| {
                    filesystem.lseek_for(handle, offset, whence, cancel)
                })
            }
            _ => Err(refusal(Errno::EISDIR, "seek")),
        }
    }

    fn release(&self, handle: Handle) {
        if let Some(open) = self.handles.remove(handle)
            && let Content::Inner(inner) = &open.content
        {
            inner.member.release(handle);
            self.members.leave(inner.member.entry);
        }
    }
}

impl Archive {
    fn lookup_inside(
        &self,
        (member, local): (&Arc<Member>, Ino),
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<Entry> {
        let entry = self
            .members
            .ask(member, cancel, |file| file.lookup_for(local, name, cancel))?;
        let ino = self.enter_inner(member, entry.ino);
        Ok(numbered(entry, ino))
    }
}

/// The entry with the number that it has in the mount.
fn numbered(mut entry: Entry, ino: Ino) -> Entry {
    entry.ino = ino;
    entry.attributes.ino = ino;
    entry
}

/// What was there, and is not any more, is stale.
fn gone(error: Error) -> Error {
    match error {
        Error::NotFound => stale(),
        other => other,
    }
}

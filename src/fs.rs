//! The mounted tree, without a mount: inodes, names, handles, stat. `fuse` alone knows the kernel's side.
//!
//! Every number that is handed out by [`Filesystem::lookup`] is counted and is to be given back with
//! [`Filesystem::forget`].

pub mod errno;
pub mod fuse;
pub mod handle;
pub mod name;
pub mod stat;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

mod describe;
mod examine;
mod inode;
mod live;
mod namespace;
mod object;
mod status;
mod symlink;
mod walk;
mod watch;
mod xattr;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use lru::LruCache;
use nix::errno::Errno;

use crate::array::{Bytes, Engine};
use crate::detect;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::{Container, Link, NodeId};
use crate::source::file::FileSource;
use crate::source::neighbours::Neighbours;
use crate::view::View;
use crate::view::text::Text;
use crate::wire::to_u64;
use errno::{refusal, stale};
use handle::{Cursor, Handles, Open};
use inode::{Inodes, What};
use live::Live;
use namespace::Found;
use watch::Watch;

/// Which other files the mounted one may lead to.
pub use crate::source::neighbours::Policy as External;
pub use handle::Handle;
pub use stat::{Kind, Origin, Stat};

/// An inode number.
pub type Ino = u64;

/// How a file is shown.
#[derive(Debug, Clone)]
pub struct Options {
    /// Owner of all files, else the source's.
    pub uid: Option<u32>,
    /// Group of all files, else the source's.
    pub gid: Option<u32>,
    /// Permission bits that are taken away.
    pub umask: Option<u32>,
    /// Whether reads go past the kernel's page cache.
    pub direct_io: bool,
    /// Bytes of decoded chunks that are kept.
    pub cache_bytes: u64,
    /// Threads that decode.
    pub threads: usize,
    /// Whether `.h5fs` is there.
    pub views: bool,
    /// Which other files the mounted one may lead to.
    pub external: External,
    /// Whether whole-block checksums are checked before the first byte is served.
    pub verify: bool,
    /// Whether a file that is marked as being written is shown, too.
    pub force: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            uid: None,
            gid: None,
            umask: None,
            direct_io: false,
            cache_bytes: *limits::CACHE_DEFAULT.start(),
            threads: std::thread::available_parallelism().map_or(2, NonZeroUsize::get),
            views: true,
            external: External::Within,
            verify: false,
            force: false,
        }
    }
}

/// What a lookup finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub ino: Ino,
    /// Tells objects of one number apart: it is another one once the source has changed.
    pub generation: u32,
    /// What `stat` tells of it.
    pub attributes: Stat,
    /// Whether this stays true as long as the source is unchanged.
    pub cacheable: bool,
}

/// A name in a directory.
#[derive(Debug)]
pub struct DirEntry<'a> {
    /// The name as shown.
    pub name: &'a [u8],
    /// Its number.
    pub ino: Ino,
    /// The kind of file.
    pub kind: Kind,
    /// Where the listing goes on after it.
    pub next: u64,
}

/// What [`Filesystem::lseek`] looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// The next byte that is stored, or not known to be zero.
    Data,
    /// The next byte of a range that reads as zeros and is stored nowhere.
    Hole,
}

/// One file's tree.
pub struct Filesystem {
    options: Options,
    origin: RwLock<Arc<Origin>>,
    /// `None` once the source has changed and cannot be opened again.
    live: RwLock<Option<Arc<Live>>>,
    /// Counts the states of the source.
    generation: AtomicU32,
    watch: Option<Watch>,
    /// When the source was last opened anew, or that was tried.
    renewed: Mutex<Instant>,
    inodes: Inodes,
    handles: Handles,
    /// What is wrong with which object.
    faults: Mutex<LruCache<Ino, String>>,
    started: Instant,
    served: AtomicU64,
}

impl Filesystem {
    /// The tree of the file at `source`.
    ///
    /// # Errors
    /// As the file cannot be opened, or is of no known format, or its root is damaged.
    pub fn open(source: &Path, options: &Options) -> Result<Self> {
        let path = source.canonicalize();
        let path = path.map_err(|error| Error::io(&error, source.display().to_string()))?;
        let watch = Watch::new(&path)?;
        let origin = Origin::new(path, &watch.metadata()?);
        let container = open_container(watch.file(), &origin.path, options)?;
        Ok(Self::build(container, origin, options, Some(watch)))
    }

    /// The tree of an open file that is not watched for changes.
    pub fn new(container: Arc<dyn Container>, origin: Origin, options: &Options) -> Self {
        Self::build(container, origin, options, None)
    }

    fn build(
        container: Arc<dyn Container>,
        origin: Origin,
        options: &Options,
        watch: Option<Watch>,
    ) -> Self {
        let filesystem = Filesystem {
            options: options.clone(),
            origin: RwLock::new(Arc::new(origin)),
            live: RwLock::new(None),
            generation: AtomicU32::new(0),
            watch,
            renewed: Mutex::new(Instant::now()),
            inodes: Inodes::new(),
            handles: Handles::default(),
            faults: Mutex::new(LruCache::new(live::at_least_one(limits::OBJECT_ERRORS))),
            started: Instant::now(),
            served: AtomicU64::new(0),
        };
        filesystem.enliven(container, 0);
        filesystem
    }

    /// Makes `container` the one that is shown.
    fn enliven(&self, container: Arc<dyn Container>, generation: u32) {
        let engine = Engine::new(self.options.cache_bytes, self.options.threads);
        let fixed = |what, node, parent, name: &[u8]| inode::Entry {
            what,
            generation,
            node,
            parent,
            name: name.into(),
        };
        let root = container.root();
        self.inodes
            .pin(inode::ROOT, fixed(What::Group, root, inode::ROOT, b""));
        let views = fixed(What::Views, root, inode::ROOT, name::VIEWS);
        self.inodes.pin(inode::VIEWS, views);
        let status = fixed(What::Status, root, inode::VIEWS, status::NAME);
        self.inodes.pin(inode::STATUS, status);
        let live = Live::new(generation, container, engine);
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(live));
    }

    /// How it is shown.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What it takes over from its source.
    pub fn origin(&self) -> Arc<Origin> {
        let origin = self.origin.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&origin)
    }

    /// The root's number.
    pub fn root(&self) -> Ino {
        inode::ROOT
    }

    /// What stands under `name` in the directory `parent`; counted.
    ///
    /// # Errors
    /// `NotFound`; `ENAMETOOLONG` over 255 bytes; as the group's index is damaged.
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Entry> {
        let live = self.live()?;
        let directory = self.entry(&live, parent)?;
        match directory.what {
            What::Group if parent == inode::ROOT && name == name::VIEWS && self.options.views => {
                self.fixed(&live, inode::VIEWS)
            }
            What::Group => {
                let directory = self.space(&live).directory(directory.node);
                let found = directory.find(name)?;
                Ok(self.enter(&directory, &found, true))
            }
            What::Views if name == status::NAME => self.fixed(&live, inode::STATUS),
            What::Views => Err(Error::NotFound),
            _ => Err(refusal(Errno::ENOTDIR, "lookup")),
        }
    }

    /// Gives back `count` lookups.
    pub fn forget(&self, ino: Ino, count: u64) {
        self.inodes.forget(ino, count);
    }

    /// What `stat` tells, whatever it costs.
    ///
    /// # Errors
    /// `ESTALE` where the number stands for nothing (any more).
    pub fn getattr(&self, ino: Ino) -> Result<Entry> {
        let live = self.live()?;
        let entry = self.entry(&live, ino)?;
        let directory = self.space(&live).directory(entry.node);
        let found = match entry.what {
            What::Object | What::Group => Found {
                ino,
                object: Some(live.container.node(entry.node)),
                target: crate::model::LinkTarget::Hard(entry.node),
                entry,
            },
            What::Link | What::Damaged => directory.find(&entry.name)?,
            What::Views | What::Status => return self.fixed(&live, ino),
        };
        Ok(self.describe(&directory, ino, &found, true))
    }

    /// The text of a symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG` over 4095 bytes, `EINVAL` for anything else than a symbolic link.
    pub fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        let live = self.live()?;
        let entry = self.entry(&live, ino)?;
        if entry.what != What::Link {
            return Err(refusal(Errno::EINVAL, "readlink"));
        }
        let directory = self.space(&live).directory(entry.node);
        let found = directory.find(&entry.name)?;
        directory.text(&found.target)
    }

    /// The directory that `ino`, a directory, is in.
    pub fn parent(&self, ino: Ino) -> Result<Ino> {
        let live = self.live()?;
        Ok(self.entry(&live, ino)?.parent)
    }

    /// Opens a directory.
    pub fn opendir(&self, ino: Ino) -> Result<Handle> {
        let live = self.live()?;
        match self.entry(&live, ino)?.what {
            What::Group | What::Views => {
                let what = handle::What::Directory(Mutex::new(None));
                Ok(self.handles.insert(Open {
                    ino,
                    generation: live.generation,
                    what,
                }))
            }
            _ => Err(refusal(Errno::ENOTDIR, "opendir")),
        }
    }

    /// Hands the entries of an open directory from `cookie` on (0: from the first) to `visit` until it
    /// says that it is full; that entry is not taken.
    ///
    /// # Errors
    /// As the index is damaged at `cookie`; where it is damaged further on, the next call says so.
    pub fn readdir(
        &self,
        handle: Handle,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.list(handle, cookie, &mut |listed, next| {
            let (name, ino, kind) = match listed {
                Listed::Fixed { name, ino } => (*name, *ino, Kind::Directory),
                Listed::Status => (status::NAME, inode::STATUS, Kind::File),
                Listed::Found(_, found) => {
                    (&*found.entry.name, found.ino, kind_of(found.entry.what))
                }
            };
            visit(DirEntry {
                name,
                ino,
                kind,
                next,
            })
        })
    }

    /// Like [`readdir`](Self::readdir), with what `stat` tells; each entry that is taken is counted,
    /// except `.` and `..`.
    pub fn readdir_plus(
        &self,
        handle: Handle,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>, &Entry) -> bool,
    ) -> Result<()> {
        let live = self.live()?;
        self.list(handle, cookie, &mut |listed, next| {
            let (name, entry) = match listed {
                Listed::Fixed { name, ino } => match self.directory_entry(&live, *ino) {
                    Ok(entry) => (*name, entry),
                    Err(_) => return false,
                },
                Listed::Status => match self.fixed(&live, inode::STATUS) {
                    Ok(entry) => (status::NAME, entry),
                    Err(_) => return false,
                },
                Listed::Found(directory, found) => {
                    (&*found.entry.name, self.enter(directory, found, false))
                }
            };
            let listed_entry = DirEntry {
                name,
                ino: entry.ino,
                kind: entry.attributes.kind,
                next,
            };
            let full = visit(listed_entry, &entry);
            if full && matches!(listed, Listed::Found(..)) {
                self.forget(entry.ino, 1);
            }
            full
        })
    }

    fn list(
        &self,
        handle: Handle,
        cookie: u64,
        visit: &mut dyn FnMut(&Listed<'_>, u64) -> bool,
    ) -> Result<()> {
        let (live, open) = self.opened(handle)?;
        let handle::What::Directory(cursor) = &open.what else {
            return Err(refusal(Errno::ENOTDIR, "readdir"));
        };
        let entry = self.entry(&live, open.ino)?;
        let dots = [(&b"."[..], open.ino), (&b".."[..], entry.parent)];
        for (next, (name, ino)) in (1_u64..).zip(dots) {
            if cookie < next && visit(&Listed::Fixed { name, ino }, next) {
                return Ok(());
            }
        }
        let first = cookie.max(DOTS);
        if entry.what == What::Views {
            if first == DOTS {
                visit(&Listed::Status, DOTS + 1);
            }
            return Ok(());
        }
        let directory = self.space(&live).directory(entry.node);
        let mut cursor = lock(cursor);
        let mut at = first;
        loop {
            match self.fetch(&live, entry.node, &mut cursor, at - DOTS) {
                Ok(Some((link, behind))) => {
                    let listed = Listed::Found(&directory, directory.show(link));
                    at = behind.saturating_add(DOTS);
                    if visit(&listed, at) {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                // What came before it is handed out first; the next call comes back here.
                Err(_) if at > first => return Ok(()),
                Err(error) => {
                    self.note(&self.space(&live), open.ino, &entry, &error);
                    return Err(error);
                }
            }
        }
    }

    fn fetch(
        &self,
        live: &Live,
        group: NodeId,
        cursor: &mut Option<Cursor>,
        position: u64,
    ) -> Result<Option<(Link, u64)>> {
        let cursor = match cursor {
            Some(cursor) => cursor,
            None => cursor.insert(Cursor::new(live.container.links(group)?)),
        };
        let found = cursor.at(position)?;
        Ok(found.map(|(link, behind)| (link.clone(), behind)))
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// As it is known before reading that its content cannot be served.
    pub fn open_file(&self, ino: Ino) -> Result<Handle> {
        let live = self.live()?;
        let entry = self.entry(&live, ino)?;
        let opened: Result<Box<dyn View>> = match entry.what {
            What::Object => live
                .container
                .node(entry.node)
                .and_then(|node| object::open(&live, &node)),
            What::Damaged => Err(self.damage(&live, &entry)),
            What::Status => Ok(Box::new(Text::streamed(self.status(&live)))),
            What::Group | What::Views => Err(refusal(Errno::EISDIR, "open")),
            What::Link => Err(refusal(Errno::ELOOP, "open")),
        };
        let view = opened.inspect_err(|error| self.note(&self.space(&live), ino, &entry, error))?;
        Ok(self.handles.insert(Open {
            ino,
            generation: live.generation,
            what: handle::What::File(view),
        }))
    }

    /// Whether an open file's content comes without a length, so that no page cache can hold it.
    pub fn is_streamed(&self, handle: Handle) -> Result<bool> {
        Ok(self.file(&*self.handles.get(handle)?)?.length().is_none())
    }

    /// What a handle stands for, which must be of the state of the source that is shown now.
    fn opened(&self, handle: Handle) -> Result<(Arc<Live>, Arc<Open>)> {
        let open = self.handles.get(handle)?;
        let live = self.live()?;
        if open.generation == live.generation {
            Ok((live, open))
        } else {
            Err(stale())
        }
    }

    fn file<'a>(&self, open: &'a Open) -> Result<&'a dyn View> {
        match &open.what {
            handle::What::File(view) => Ok(&**view),
            handle::What::Directory(_) => Err(refusal(Errno::EISDIR, "read")),
        }
    }

    /// At most `length` bytes of an open file from `offset` on; fewer at its end only.
    ///
    /// # Errors
    /// As a part that the range touches cannot be read; `ESTALE` once the source has changed.
    pub fn read(&self, handle: Handle, offset: u64, length: usize) -> Result<Bytes> {
        let (live, open) = self.opened(handle)?;
        let read = self.file(&open)?.read_at(offset, length);
        // Bytes of two states of the source must not mix, nor a torn structure pass for a damaged one.
        if self.watch.as_ref().is_some_and(Watch::is_changed_now) {
            return Err(stale());
        }
        match &read {
            Ok(bytes) => {
                self.served
                    .fetch_add(to_u64(bytes.len()), Ordering::Relaxed);
            }
            Err(error) => {
                let entry = self.entry(&live, open.ino)?;
                self.note(&self.space(&live), open.ino, &entry, error);
            }
        }
        read
    }

    /// The next data or hole of an open file at or after `offset`; its end counts as a hole.
    ///
    /// # Errors
    /// `ENXIO` where there is none.
    pub fn lseek(&self, handle: Handle, offset: u64, whence: Whence) -> Result<u64> {
        let (_, open) = self.opened(handle)?;
        let view = self.file(&open)?;
        let none = || refusal(Errno::ENXIO, "seek");
        if view.length().is_some_and(|length| offset >= length) {
            return Err(none());
        }
        match whence {
            Whence::Data => view.data_at(offset)?.ok_or_else(none),
            Whence::Hole => view.hole_at(offset),
        }
    }

    /// Closes a file or directory.
    pub fn release(&self, handle: Handle) {
        self.handles.remove(handle);
    }
}

/// Opens the file at `path`, which is open as `file`.
fn open_container(
    file: Arc<FileSource>,
    path: &Path,
    options: &Options,
) -> Result<Arc<dyn Container>> {
    let neighbours = Neighbours::of(path, options.external)?;
    detect::open(file, Arc::new(neighbours), options.force)
}

/// `.` and `..`, the first two entries of every directory.
const DOTS: u64 = 2;

/// An entry of a listing.
enum Listed<'a> {
    /// `.` and `..`.
    Fixed { name: &'static [u8], ino: Ino },
    /// The status file.
    Status,
    /// A link of a group.
    Found(&'a namespace::Directory<'a>, Found),
}

fn kind_of(what: What) -> Kind {
    match what {
        What::Group | What::Views => Kind::Directory,
        What::Object | What::Damaged | What::Status => Kind::File,
        What::Link => Kind::Symlink,
    }
}

/// Locks; a panic of another holder leaves nothing half-done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

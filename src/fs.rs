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
mod document;
mod examine;
mod external;
mod extras;
mod indexes;
mod inode;
mod listing;
mod live;
mod mirror;
mod namespace;
mod object;
mod status;
mod symlink;
mod trees;
mod unread;
mod views;
mod walk;
mod watch;
mod workers;
mod xattr;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use lru::LruCache;
use nix::errno::Errno;

use crate::array::{Bytes, CacheSize, Engine, Wish};
use crate::detect;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::Container;
use crate::source::file::FileSource;
use crate::source::neighbours::Neighbours;
use crate::view::View;
use crate::view::text::Text;
use crate::wire::to_u64;
use errno::{refusal, stale};
use external::{Opener, Others};
use handle::{Handles, Open};
use indexes::{FileIndex, Indexes};
use inode::{Inodes, What};
use live::{Live, OpenedFile};
use namespace::Found;
use watch::Watch;

/// Which other files the mounted one may lead to.
pub use crate::source::mount_guard::MountGuard;
pub use crate::source::root::Policy as External;
pub use handle::{Caching, Handle, Opened};
pub use stat::{Kind, Origin, Stat};
pub use unread::Unread;

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
    pub cache_size: CacheSize,
    /// Threads that decode.
    pub threads: usize,
    /// Whether `.h5fs` is there.
    pub views: bool,
    /// Which other files the mounted one may lead to.
    pub external: External,
    /// The mount itself: nothing is looked up there, for want of anybody else to answer.
    pub guard: Option<MountGuard>,
    /// Whether users other than the one who mounts are let in.
    pub allow_other: bool,
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
            cache_size: limits::CACHE_LEAST.into(),
            threads: std::thread::available_parallelism().map_or(2, NonZeroUsize::get),
            views: true,
            external: External::Within,
            guard: None,
            allow_other: false,
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

impl Entry {
    /// The same, cacheable only if that is right: what could not be read may be read next time.
    fn kept_if(self, is_right: bool) -> Self {
        Entry {
            cacheable: self.cacheable && is_right,
            ..self
        }
    }
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

/// What was found wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    text: String,
    /// It may be over the next time.
    is_passing: bool,
}

/// What makes the kernel ask anew. It is called with requests waiting for it, so it must wait for
/// none.
pub(super) type Outdate = Box<dyn Fn(&[Ino]) + Send + Sync>;

/// One file's tree.
pub struct Filesystem {
    options: Options,
    origin: RwLock<Arc<Origin>>,
    /// `None` once the source has changed and cannot be opened again.
    live: RwLock<Option<Arc<Live>>>,
    /// Counts the states of the source.
    generation: AtomicU32,
    watch: Option<Watch>,
    /// Makes the kernel ask anew for what it was told of these numbers.
    outdate: OnceLock<Outdate>,
    /// The last state of the source before which the kernel keeps no listing of the root.
    relisted: AtomicU32,
    /// When the source was last opened anew, or that was tried.
    renewed: Mutex<Instant>,
    inodes: Arc<Inodes>,
    handles: Handles,
    indexes: Arc<Indexes>,
    others: Others,
    /// What is wrong with which object.
    faults: Mutex<LruCache<Ino, Fault>>,
    started: Instant,
    served: AtomicU64,
}

impl Filesystem {
    /// The tree of the file at `source`.
    ///
    /// # Errors
    /// As the file cannot be opened, or is of no known format, or its root is damaged.
    pub fn open(source: &Path, options: &Options) -> Result<Self> {
        Self::of(Unread::open(source)?, options)
    }

    /// The tree of the file that is open.
    ///
    /// # Errors
    /// As it is of no known format, or its root is damaged.
    pub fn of(source: Unread, options: &Options) -> Result<Self> {
        let watch = source.watch;
        refuse_fine_list(&watch.file(), options)?;
        if !options.force {
            detect::refuse_locked(&watch.file())?;
        }
        let others = Others::new(watch.path(), opener(options));
        let opened = open_source(watch.file(), &watch, &others, options)?;
        Ok(Self::build(opened, options, others, Some(watch)))
    }

    /// The tree of an open file that is not watched for changes and leads to no other.
    pub fn new(container: Arc<dyn Container>, origin: Origin, options: &Options) -> Self {
        let others = Others::new(&origin.path, opener(options));
        let opened = OpenedFile {
            container,
            origin: Arc::new(origin),
            neighbours: Arc::new(Neighbours::none()),
            state: None,
            watch: None,
            shown: [].into(),
        };
        Self::build(opened, options, others, None)
    }

    fn build(opened: OpenedFile, options: &Options, others: Others, watch: Option<Watch>) -> Self {
        let filesystem = Filesystem {
            options: options.clone(),
            origin: RwLock::new(Arc::clone(&opened.origin)),
            live: RwLock::new(None),
            generation: AtomicU32::new(0),
            watch,
            outdate: OnceLock::new(),
            relisted: AtomicU32::new(0),
            renewed: Mutex::new(Instant::now()),
            inodes: Arc::clone(others.inodes()),
            handles: Handles::default(),
            indexes: Arc::default(),
            others,
            faults: Mutex::new(LruCache::sparse(live::at_least_one(limits::OBJECT_ERRORS))),
            started: Instant::now(),
            served: AtomicU64::new(0),
        };
        filesystem.enliven(opened, 0);
        filesystem
    }

    /// Makes `opened` the source that is shown.
    fn enliven(&self, opened: OpenedFile, generation: u32) {
        let engine = Engine::new(self.options.cache_size, self.options.threads);
        let node = opened.container.root();
        let root = opened.container.node(node);
        if let Some(error) = root.ok().and_then(|root| root.error.clone()) {
            log::warn!("{}: {error}", opened.origin.path.display());
        }
        let pin = |ino, what, parent, name: &[u8]| {
            let entry = inode::Entry {
                what,
                generation,
                tree: inode::SOURCE,
                node,
                parent,
                name: name.into(),
            };
            self.inodes.pin(ino, &entry);
        };
        let [views, status, external] = [inode::VIEWS, inode::STATUS, inode::EXTERNAL]
            .map(|number| inode::of_generation(generation, number));
        pin(inode::ROOT, What::Group, inode::ROOT, b"");
        pin(views, What::Views, inode::ROOT, name::VIEWS);
        pin(status, What::Status, views, status::NAME);
        pin(external, What::External, views, external::NAME);
        self.pin_views(generation, node);
        self.pin_extras(generation, node);
        self.others.reset(generation);
        // Whoever has seen a new name must meet no old one.
        if let Some(outdate) = self.outdate.get() {
            outdate(&self.outdated_by(Some(generation)));
        }
        let index = Arc::new(FileIndex::of(&self.indexes));
        let live = Live::new(generation, inode::SOURCE, opened, engine, index);
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(live));
        self.inodes.show(generation);
        lock(&self.faults).clear();
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
        let (live, directory, _granted) = self.requested(parent)?;
        match directory.what {
            What::Group if parent == inode::ROOT && name == name::VIEWS => {
                self.fixed(&live, inode::of_generation(live.generation, inode::VIEWS))
            }
            What::Group => {
                let group = self.space(&live).directory(directory.node);
                match group.find(name) {
                    Err(Error::NotFound) => {
                        self.enter_selection(&live, directory.tree, directory.node, name)
                    }
                    found => self.enter(&group, &found?, true),
                }
            }
            What::Views => {
                let mut views = self.views(&live).into_iter();
                let found = views.find(|(view, _)| *view == name);
                self.getattr(found.ok_or(Error::NotFound)?.1)
            }
            What::Mirror => self.enter_view(&live, &directory, name),
            What::External => self.enter_other(&live, name),
            What::Blocks => self.enter_block(&live, name),
            _ => Err(refusal(Errno::ENOTDIR, "lookup")),
        }
    }

    /// What stands in the directory of views.
    fn views(&self, live: &Live) -> Vec<(&'static [u8], Ino)> {
        let of_now = |ino| inode::of_generation(live.generation, ino);
        let mut views = vec![(external::NAME, of_now(inode::EXTERNAL))];
        if self.options.views {
            views.push((status::NAME, of_now(inode::STATUS)));
            views.extend(self.trees(live));
            views.extend(self.extras(live));
        }
        views
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
        let (live, entry, _granted) = self.requested(ino)?;
        let directory = self.space(&live).directory(entry.node);
        let found = match entry.what {
            What::Object | What::Group => Found {
                ino,
                object: Some(live.container.node(entry.node)),
                target: crate::model::LinkTarget::Hard(entry.node),
                entry,
            },
            What::Link | What::Damaged => directory.find(&entry.name)?,
            What::Unread => return Err(stale()),
            What::Views | What::Status | What::External => return self.fixed(&live, ino),
            What::TreeText | What::Blocks | What::Block => {
                return self.describe_extra(&live, ino, &entry);
            }
            What::Spelling => return self.spelling(ino, &self.spelled(&live, &entry.name)?),
            What::Mirror | What::MirrorLink | What::View | What::Attribute | What::Selection => {
                return self.describe_view(&live, ino, &entry);
            }
        };
        self.refuse_unread(&directory, &found)?;
        self.describe(&directory, ino, &found, true)
    }

    /// The text of a symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG` over 4095 bytes, `EINVAL` for anything else than a symbolic link.
    pub fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        let (live, entry, _granted) = self.requested(ino)?;
        match entry.what {
            What::Link => {}
            What::Spelling => return self.spelled(&live, &entry.name),
            What::MirrorLink => return self.mirror_text(&live, &entry),
            _ => return Err(refusal(Errno::EINVAL, "readlink")),
        }
        let directory = self.space(&live).directory(entry.node);
        let found = directory.find(&entry.name)?;
        directory.text(&found.target)
    }

    /// The directory that `ino`, a directory, is in.
    pub fn parent(&self, ino: Ino) -> Result<Ino> {
        Ok(self.standing(ino)?.1.parent)
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// As it is known before reading that its content cannot be served.
    pub fn open_file(&self, ino: Ino) -> Result<Opened> {
        let (live, entry) = self.standing(ino)?;
        let view = self.content(&live, ino, &entry)?;
        let caching = match view.length() {
            _ if live.is_growing() => Caching::Never,
            None => Caching::Never,
            Some(_) if live.is_settled() => Caching::Lasting,
            Some(_) => Caching::WhileOpen,
        };
        self.handles.insert(Open::file(ino, live, view)?, caching)
    }

    /// The content of a regular file.
    fn content(&self, live: &Arc<Live>, ino: Ino, entry: &inode::Entry) -> Result<Box<dyn View>> {
        let (live, _granted) = &live.for_request();
        let opened: Result<Box<dyn View>> = match entry.what {
            What::Object => live.container.node(entry.node).and_then(|node| {
                self.verify(live, node.id)?;
                object::open(live, &node)
            }),
            What::Damaged => Err(self.damage(live, entry)),
            What::Status => Ok(Box::new(Text::streamed(self.status(live)))),
            What::View | What::Attribute => self.open_view(live, entry),
            What::Selection => self.open_selection(live, entry),
            What::TreeText | What::Block => self.open_extra(live, ino, entry),
            What::Group
            | What::Views
            | What::External
            | What::Mirror
            | What::Blocks
            | What::Unread => Err(refusal(Errno::EISDIR, "open")),
            What::Link | What::Spelling | What::MirrorLink => Err(refusal(Errno::ELOOP, "open")),
        };
        opened.inspect_err(|error| self.note(&self.space(live), ino, entry, error))
    }

    /// What a handle stands for, which must be of the state of its file that is shown now.
    fn opened(&self, handle: Handle) -> Result<Arc<Open>> {
        let open = self.handles.get(handle)?;
        let source = self.live()?;
        if open.live.generation != source.generation {
            return Err(stale());
        }
        let now = match open.live.tree {
            inode::SOURCE => source,
            tree if open.live.is_growing() => self.others.get(&source, tree)?,
            _ if open.live.is_changed() => return Err(stale()),
            _ => return Ok(open),
        };
        match &open.what {
            handle::What::File(view)
                if !Arc::ptr_eq(&open.live, &now) && view.length().is_some() =>
            {
                self.follow(handle, &open, now)
            }
            _ => Ok(open),
        }
    }

    /// Makes a handle read its file as it has grown since. A stream goes on with what it began.
    fn follow(&self, handle: Handle, open: &Open, live: Arc<Live>) -> Result<Arc<Open>> {
        let ino = open.ino;
        let entry = self.entry(&live, ino)?;
        let view = self.content(&live, ino, &entry)?;
        Ok(self.handles.replace(handle, Open::file(ino, live, view)?))
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
    /// As a part that the range touches cannot be read; `ESTALE` once the source has changed;
    /// `ENOMEM` where what would be kept for the next read, with all else that is open, takes too
    /// much.
    pub fn read(&self, handle: Handle, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(handle, offset, length, &Wish::default())
    }

    /// As `read`, for somebody who may go away: work for nobody else is given up then.
    ///
    /// # Errors
    /// As `read`; [`Error::unwanted`] once the wish does not hold any more.
    pub fn read_for(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        wish: &Wish,
    ) -> Result<Bytes> {
        let open = self.opened(handle)?;
        let read = self.file(&open)?.read_for(offset, length, wish);
        self.served(&open, read)
    }

    /// The same bytes, if they are to be had without decoding or waiting.
    ///
    /// # Errors
    /// As `read`.
    pub fn read_now(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let open = self.opened(handle)?;
        match self.file(&open)?.read_now(offset, length).transpose() {
            Some(read) => self.served(&open, read).map(Some),
            None => Ok(None),
        }
    }

    /// What is answered, this having been read of an open file.
    fn served(&self, open: &Open, read: Result<Bytes>) -> Result<Bytes> {
        open.settle()?;
        // Bytes of two states of the source must not mix, nor a torn structure pass for a damaged one.
        if self.is_changed_now() || !open.live.is_growing() && open.live.is_changed_now() {
            return Err(stale());
        }
        match &read {
            Ok(bytes) => {
                self.served
                    .fetch_add(to_u64(bytes.len()), Ordering::Relaxed);
                self.forgive(open.ino);
            }
            Err(error) => {
                let entry = self.entry(&open.live, open.ino)?;
                self.note(&self.space(&open.live), open.ino, &entry, error);
            }
        }
        read
    }

    /// The next data or hole of an open file at or after `offset`; its end counts as a hole.
    ///
    /// # Errors
    /// `ENXIO` where there is none.
    pub fn lseek(&self, handle: Handle, offset: u64, whence: Whence) -> Result<u64> {
        let open = self.opened(handle)?;
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
        let Some(open) = self.handles.remove(handle) else {
            return;
        };
        if let handle::What::Directory(listing) = &open.what
            && lock(listing).is_unsure
        {
            // Whoever opened it meanwhile may have had the kernel keep what was listed here after that.
            self.inodes.set_unsure(open.ino, true);
        }
    }
}

/// Refuses to show a file to others whose access control list lets them in otherwise than permission bits can tell. One
/// that comes later only takes away what it denies.
fn refuse_fine_list(file: &FileSource, options: &Options) -> Result<()> {
    let umask = options.umask.unwrap_or(0);
    if options.allow_other && file.acl().is_some_and(|acl| acl.is_finer_than_bits(umask)) {
        return Err(Error::Usage(
            "allow_other: its access control list is finer than permission bits; \
             `setfacl -b` takes it away, umask=077 keeps others out"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Opens a mounted file as what it is.
fn opener(options: &Options) -> Opener {
    let (force, caches) = (options.force, detect::Caches::default());
    Box::new(move |source, neighbours| detect::open(source, neighbours, &caches, force))
}

/// Opens the source that `watch` watches, `file` being its state.
fn open_source(
    file: Arc<FileSource>,
    watch: &Watch,
    others: &Others,
    options: &Options,
) -> Result<OpenedFile> {
    let path = watch.path();
    let metadata = file.metadata()?;
    let state = Arc::clone(file.state());
    let neighbours = Neighbours::of(path, options.external, options.guard.clone());
    let neighbours = neighbours.watched_by(watch.changes().cloned());
    let mut neighbours = neighbours.opened_by(watch.named());
    let audience = match options.allow_other {
        true => Some(file.audience()?.without(options.umask.unwrap_or(0))),
        false => None,
    };
    if let Some(audience) = audience {
        neighbours = neighbours.for_all_readers(audience);
    }
    let neighbours = Arc::new(neighbours);
    Ok(OpenedFile {
        container: others.container(file, &neighbours)?,
        origin: Arc::new(Origin::new(path.to_path_buf(), &metadata).for_audience(audience)),
        neighbours,
        state: Some(state),
        watch: None,
        shown: [].into(),
    })
}

fn kind_of(what: What) -> Kind {
    match what {
        What::Group | What::Views | What::External | What::Mirror | What::Blocks | What::Unread => {
            Kind::Directory
        }
        What::Link | What::Spelling | What::MirrorLink => Kind::Symlink,
        What::Object
        | What::Damaged
        | What::Status
        | What::TreeText
        | What::Block
        | What::View
        | What::Attribute
        | What::Selection => Kind::File,
    }
}

/// Locks; a panic of another holder leaves nothing half-done that matters here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

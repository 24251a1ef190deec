//! The kernel's side: the only file that knows fuser. Unpack, call, reply.
//!
//! A handler that panics answers `EIO`: fuser sends that when a reply is dropped unsent.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BackgroundSession, BsdFileFlags, Config, Errno, FileHandle, Generation, INodeNo,
    InitFlags, IoctlFlags, KernelConfig, LockOwner, MountOption, Notifier, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, Session,
    SessionACL, TimeOrNow, WriteFlags,
};

use crate::error::{Error, Result};
use crate::fs::errno;
use crate::fs::filesystem::{Filesystem, Whence};
use crate::fs::fuse::readers::Readers;
use crate::fs::fuse::reply::{
    Listed, attributes, directory_flags, file_flags, file_type, number, reply_xattr, ttl,
};
use crate::fs::handle::Handle;
use crate::fs::mount::Outdate;
use crate::fs::stat::BLOCK_SIZE;
use crate::fs::workers::{Object, Workers};
use crate::limits;
use crate::source::changes::Changes;
use crate::source::device::Device;
use crate::source::mount_id::told_of;

mod readers;
mod reply;
#[cfg(test)]
mod tests;

/// Requests of readahead and direct I/O that may wait at a time.
const MAX_BACKGROUND: u16 = 64;

/// How often an idle mount looks whether its source has changed where nothing tells of that.
const WATCH: Duration = Duration::from_secs(1);

/// How long it leaves a writer to himself who writes on and on, unless somebody asks for the
/// source.
const PAUSE: Duration = Duration::from_millis(50);

/// How to mount.
#[derive(Debug, Clone, Default)]
pub struct MountOptions {
    /// Whether other users may enter; the kernel then checks permission bits.
    pub allow_other: bool,
    /// The source's name in the table of mounts.
    pub fsname: OsString,
    /// Options that go to the kernel as they are (`context=…`).
    pub kernel: Vec<String>,
    /// Requests that are answered at a time, at least one, unless they take long.
    pub threads: usize,
}

/// A mount that nobody serves yet: whoever looks into it waits. Dropping it unmounts.
pub struct Unserved {
    session: Session<Adapter>,
    filesystem: Arc<Late>,
}

/// A mounted filesystem; dropping it unmounts.
pub struct Mounted {
    session: BackgroundSession,
}

/// Mounts at `mountpoint` what is to be served later. No thread is started yet: the process may give up its
/// rights in between, and read the source without them.
///
/// # Errors
/// `Io` as the system refuses to mount, `Usage` as the helper does.
pub fn mount(mountpoint: &Path, options: &MountOptions) -> Result<Unserved> {
    let filesystem = Arc::new(Late::default());
    let adapter = Adapter {
        filesystem: Arc::clone(&filesystem),
        workers: Workers::new(options.threads),
        readers: Arc::default(),
    };
    let session = Session::new(adapter, mountpoint, &config(options)).map_err(|e| failed(&e))?;
    Ok(Unserved {
        session,
        filesystem,
    })
}

/// Without an errno the error is the text of the helper that mounts for users.
fn failed(error: &std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(_) => Error::io(error, "mounting"),
        None => Error::Usage(error.to_string()),
    }
}

impl Unserved {
    /// The number of this filesystem; `None` where the kernel does not tell it (before 6.17).
    pub fn device(&self) -> Option<Device> {
        let number = told_of(self.session.as_fd(), "fuse_connection").ok()?;
        format!("0:{number}").parse().ok()
    }

    /// Serves `filesystem`; the mount answers when this returns.
    ///
    /// # Errors
    /// `Io` where no thread can be started.
    pub fn serve(self, filesystem: Filesystem) -> Result<Mounted> {
        let served = self.filesystem.0.set(filesystem);
        debug_assert!(served.is_ok());
        let watched = Arc::downgrade(&self.filesystem);
        let changes = self.filesystem.changes().cloned();
        let filesystem = Arc::clone(&self.filesystem);
        drop(self.filesystem);
        let session = self.session.spawn().map_err(|error| failed(&error))?;
        let notifier = session.notifier();
        filesystem.call_when_outdated(attributes_outdated(notifier.clone()));
        drop(filesystem);
        thread::spawn(move || watch(&watched, changes.as_deref(), &notifier));
        Ok(Mounted { session })
    }
}

/// Makes the kernel ask anew for names and attributes. It keeps its pages: for those that are being
/// read it would wait.
fn attributes_outdated(notifier: Notifier) -> Outdate {
    Box::new(move |outdated| {
        for ino in outdated {
            // The kernel may have dropped it by itself, which does as well.
            let _ = notifier.inval_inode(INodeNo(*ino), -1, 0);
        }
    })
}

/// Takes from the kernel all that it was told of a source that has changed since, pages too. A
/// thread of its
/// own does this: a handler would wait for itself where the kernel holds a page that is being read.
fn watch(filesystem: &Weak<Late>, changes: Option<&Changes>, notifier: &Notifier) {
    let mut seen = Some(0);
    loop {
        match changes {
            Some(changes) => changes.wait(WATCH),
            None => thread::sleep(WATCH),
        }
        let Some(filesystem) = filesystem.upgrade() else {
            return;
        };
        filesystem.look();
        let now = filesystem.generation();
        if now != seen {
            seen = now;
            for ino in filesystem.outdated() {
                let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
            }
            if let Some(now) = now {
                filesystem.set_relisted(now);
            }
        }
        drop(filesystem);
        thread::sleep(PAUSE);
    }
}

impl Mounted {
    /// Blocks until somebody unmounts.
    ///
    /// # Errors
    /// `Io` where the connection to the kernel broke.
    pub fn wait(self) -> Result<()> {
        let session = self.session;
        let (sender, ended) = channel();
        // Dropped, fuser's session unmounts once more, by its place, where somebody may have mounted
        // something else by then. So what is left of it after its end is kept for good.
        thread::spawn(move || {
            let session = session;
            let _ = sender.send(session.guard.join());
            loop {
                thread::park();
            }
        });
        match ended.recv() {
            Ok(Ok(served)) => served.map_err(|error| Error::io(&error, "serving the mount")),
            _ => Err(Error::Usage("a thread that serves panicked".to_owned())),
        }
    }

    /// Unmounts, and waits until all requests are answered.
    ///
    /// # Errors
    /// `Io` as the system refuses, `EBUSY` while something in the mount is in use.
    pub fn unmount(self) -> Result<()> {
        let ended = self.session.umount_and_join();
        ended.map_err(|error| Error::io(&error, "unmounting"))
    }
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::RO,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::FSName(source_name(&options.fsname)),
        // Not `MountOption::Subtype`: fuser keeps that from the kernel where it mounts without a helper.
        MountOption::CUSTOM("subtype=h5fs".to_owned()),
    ];
    if options.allow_other {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    let kernel = options.kernel.iter().cloned().map(MountOption::CUSTOM);
    config.mount_options.extend(kernel);
    // One is left to take requests when the others answer.
    config.n_threads = Some(options.threads.max(1) + 1);
    config
}

/// The name that the table of mounts shows. The helper that mounts for users splits its options at commas.
fn source_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if nix::unistd::geteuid().is_root() {
        return name.into_owned();
    }
    name.replace('\\', "\\\\").replace(',', "\\,")
}

/// The filesystem, from [`Unserved::serve`] on; nothing asks for it before.
#[derive(Default)]
struct Late(OnceLock<Filesystem>);

impl Deref for Late {
    type Target = Filesystem;

    fn deref(&self) -> &Filesystem {
        self.0.get().expect("requests are taken once it is served")
    }
}

struct Adapter {
    filesystem: Arc<Late>,
    workers: Workers,
    readers: Arc<Readers>,
}

impl Adapter {
    /// Answers a request, here or in another thread, and so that others do not wait for it.
    fn answer(
        &self,
        call: &'static str,
        object: Object,
        handler: impl FnOnce(&Filesystem) + Send + 'static,
    ) {
        let filesystem = Arc::clone(&self.filesystem);
        let job = move || guarded(call, || handler(&filesystem));
        self.workers.answer(object, job);
    }
}

/// A name in a directory, as what requests are about.
fn of_name(parent: INodeNo, name: &OsStr) -> Object {
    let mut hasher = DefaultHasher::new();
    (parent.0, name).hash(&mut hasher);
    Object::Description(hasher.finish())
}

fn guarded(call: &str, handler: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(handler)).is_err() {
        log::error!("{call}: a defect of this program; the call answers with an I/O error");
    }
}

impl fuser::Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // A choice between two costs. Without `AUTO`, the kernel makes an inode of each name that is
        // listed: `ls -f` of a million names, made up in memory, took 3.7 to 4.5 s and 190 MiB here,
        // with it 0.5 s and 7 MiB. With it, `find -size` on 100 000 datasets of a real file looks up
        // each: 1.3 to 3.4 s instead of 0.4 to 1.2 s.
        //
        // Not `FUSE_CACHE_SYMLINKS`: the kernel would hand out an old text without asking, and only
        // whoever waits for its pages can take them from it.
        let wanted = InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_PARALLEL_DIROPS
            // Without it, `mmap` of a file that is opened for direct I/O fails: all while the source grows.
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        for flag in wanted.iter() {
            if config.add_capabilities(flag).is_err() {
                log::debug!("the kernel does not offer {flag:?}");
            }
        }
        let asked = config.set_max_background(MAX_BACKGROUND);
        debug_assert!(asked.is_ok());
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        self.answer(
            "lookup",
            of_name(parent, &name),
            move |filesystem| match filesystem.lookup(parent.0, name.as_bytes()) {
                Ok(entry) => reply.entry(
                    &ttl(&entry),
                    &attributes(&entry.attributes),
                    Generation(u64::from(entry.generation)),
                ),
                Err(error) => reply.error(number(&error)),
            },
        );
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        guarded("forget", || self.filesystem.forget(ino.0, lookups));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.answer(
            "getattr",
            Object::Description(ino.0),
            move |filesystem| match filesystem.getattr(ino.0) {
                Ok(entry) => reply.attr(&ttl(&entry), &attributes(&entry.attributes)),
                Err(error) => reply.error(number(&error)),
            },
        );
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        self.answer(
            "readlink",
            Object::Description(ino.0),
            move |filesystem| match filesystem.readlink(ino.0) {
                Ok(text) => reply.data(&text),
                Err(error) => reply.error(number(&error)),
            },
        );
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.answer(
            "open",
            Object::Description(ino.0),
            move |filesystem| match filesystem.open_file(ino.0) {
                Ok(opened) => {
                    let flags = file_flags(&opened, filesystem.options().direct_io);
                    reply.opened(FileHandle(opened.handle.0), flags);
                }
                Err(error) => reply.error(number(&error)),
            },
        );
    }

    fn read(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        let ready = || self.filesystem.read_now(Handle(handle.0), offset, length);
        match catch_unwind(AssertUnwindSafe(ready)) {
            Ok(Ok(Some(bytes))) => return reply.data(&bytes),
            Ok(Err(error)) => return reply.error(Errno::from_i32(errno::of_read(&error))),
            // What went wrong goes wrong once more, and is told of there.
            Ok(Ok(None)) | Err(_) => {}
        }
        let read = Readers::begin(&self.readers, handle.0, request.pid());
        self.answer(
            "read",
            Object::Content(ino.0),
            move |filesystem| match filesystem.read_for(
                Handle(handle.0),
                offset,
                length,
                &read.wish,
            ) {
                Ok(bytes) => reply.data(&bytes),
                Err(error) => reply.error(Errno::from_i32(errno::of_read(&error))),
            },
        );
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        self.answer("lseek", Object::Description(ino.0), move |filesystem| {
            let whence = match whence {
                nix::libc::SEEK_DATA => Whence::Data,
                nix::libc::SEEK_HOLE => Whence::Hole,
                _ => return reply.error(Errno::EINVAL),
            };
            let Ok(offset) = u64::try_from(offset) else {
                return reply.error(Errno::ENXIO);
            };
            match filesystem.lseek(Handle(handle.0), offset, whence) {
                Ok(place) => reply.offset(i64::try_from(place).unwrap_or(i64::MAX)),
                Err(error) => reply.error(Errno::from_i32(errno::of_read(&error))),
            }
        });
    }

    fn flush(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.readers.closed(handle.0, request.pid());
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        guarded("release", || {
            self.filesystem.release(Handle(handle.0));
            reply.ok();
        });
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.answer(
            "opendir",
            Object::Description(ino.0),
            move |filesystem| match filesystem.opendir(ino.0) {
                Ok(opened) => {
                    reply.opened(FileHandle(opened.handle.0), directory_flags(&opened));
                }
                Err(error) => reply.error(number(&error)),
            },
        );
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        cookie: u64,
        mut reply: ReplyDirectory,
    ) {
        self.answer("readdir", Object::Description(ino.0), move |filesystem| {
            let read = filesystem.readdir(Handle(handle.0), cookie, &mut |entry| {
                let name = OsStr::from_bytes(entry.name);
                reply.add(INodeNo(entry.ino), entry.next, file_type(entry.kind), name)
            });
            match read {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(number(&error)),
            }
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        cookie: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.answer(
            "readdirplus",
            Object::Description(ino.0),
            move |filesystem| {
                let read =
                    filesystem.readdir_plus(Handle(handle.0), cookie, &mut |listed, entry| {
                        let entry = Listed::new(&listed, entry);
                        reply.add(
                            entry.ino,
                            listed.next,
                            OsStr::from_bytes(listed.name),
                            &entry.ttl,
                            &entry.attributes,
                            entry.generation,
                        )
                    });
                match read {
                    Ok(()) => reply.ok(),
                    Err(error) => reply.error(number(&error)),
                }
            },
        );
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        guarded("releasedir", || {
            self.filesystem.release(Handle(handle.0));
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        const UNIT: u32 = 512;
        guarded("statfs", || {
            let blocks = self.filesystem.origin().size.div_ceil(u64::from(UNIT));
            let names = u32::try_from(limits::NAME_BYTES).unwrap_or(u32::MAX);
            reply.statfs(blocks, 0, 0, 0, 0, BLOCK_SIZE, names, UNIT);
        });
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        let name = name.to_owned();
        self.answer("getxattr", Object::Values, move |filesystem| {
            let value = filesystem.getxattr(ino.0, name.as_bytes());
            reply_xattr(reply, room, value);
        });
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, room: u32, reply: ReplyXattr) {
        self.answer("listxattr", Object::Values, move |filesystem| {
            let names = filesystem.listxattr(ino.0);
            let list = names.map(|names| {
                names
                    .iter()
                    .flat_map(|n| [n, &b"\0"[..]].concat())
                    .collect()
            });
            reply_xattr(reply, room, list);
        });
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        // Whoever opens a file may ask whether it is a terminal; fuser would log that.
        reply.error(Errno::ENOTTY);
    }

    fn access(&self, _: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        guarded("access", || {
            if mask.contains(AccessFlags::W_OK) {
                return reply.error(Errno::EROFS);
            }
            let permissions = match self.filesystem.getattr(ino.0) {
                Ok(entry) => entry.attributes.permissions,
                Err(error) => return reply.error(number(&error)),
            };
            let may = |flag, bits| !mask.contains(flag) || permissions & bits != 0;
            if may(AccessFlags::R_OK, 0o444) && may(AccessFlags::X_OK, 0o111) {
                reply.ok();
            } else {
                reply.error(Errno::EACCES);
            }
        });
    }

    // The kernel answers these itself for a mount that is read-only, unless it is remounted.

    fn setattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.error(Errno::EROFS);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::EROFS);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EROFS);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn setxattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }
}

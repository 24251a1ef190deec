//! The methods that fuser calls for the kernel's requests. Each decodes the request, calls the
//! method of [`Requests`](crate::Requests), and encodes the reply.
//!
//! A handler that panics returns `EIO`, because fuser sends that when a reply is dropped unsent.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Generation, INodeNo, InitFlags, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::wire::to_u64;

use crate::errno;
use crate::fuse::readers::ReadRegistry;
use crate::fuse::relay::Relay;
use crate::fuse::released_lookups::ReleasedLookups;
use crate::fuse::reply::{
    ABSENT_ENTRY, KernelEntry, ReadReply, attributes, directory_flags, file_flags, listed_type,
    reply_xattr, to_errno, ttl,
};
use crate::limits;
use crate::requests::{ListingDetail, Requests, SeekKind};
use crate::served_tree::ServedTree;
use crate::stat::{BLOCK_SIZE, DirEntry, LookupEntry};
use crate::state::handle::Handle;
use crate::state::traffic::RequestType;
use crate::workers::{Caller, RequestObject, Workers, run_catching_panics};

/// Maximum number of read-ahead and direct I/O requests that the kernel sends before it receives
/// replies. Further requests wait in the kernel, even if they are for other files and the sent ones
/// are slow.
const MAX_BACKGROUND: u16 = u16::MAX;

/// The tree that the mount serves, set when serving begins. No request is received before that.
#[derive(Default)]
pub(super) struct ServedTreeCell(pub(super) OnceLock<ServedTree>);

impl Deref for ServedTreeCell {
    type Target = dyn Requests;

    fn deref(&self) -> &Self::Target {
        let served = self.0.get().expect("requests are taken once it is served");
        served.requests()
    }
}

/// The implementation of fuser's trait `Filesystem`.
pub(super) struct Adapter {
    pub(super) filesystem: Arc<ServedTreeCell>,
    pub(super) workers: Workers,
    pub(super) readers: Arc<ReadRegistry>,
    /// Maximum bytes of a read to negotiate with the kernel; `None` for the kernel's own maximum.
    pub(super) max_read: Option<u32>,
    /// The relay, which sends the bytes of reads to the kernel, if the mount is interruptible.
    pub(super) relay: Option<Arc<Relay>>,
    /// Inodes that the kernel has forgotten but an NFS server may request, with the mount option
    /// `no_forget`.
    pub(super) released_lookups: Option<Arc<ReleasedLookups>>,
}

/// A request of the kernel, to be handled in the receiving thread or in a worker thread.
struct AdapterRequest<R> {
    call: RequestType,
    object: RequestObject,
    ino: INodeNo,
    caller: Caller,
    /// The token of the request. For a read, it is cancelled when the reading thread closes the
    /// file.
    cancel: CancelToken,
    reply: R,
}

impl<R: Send + 'static> AdapterRequest<R> {
    fn new(
        call: RequestType,
        request: &Request,
        object: RequestObject,
        ino: INodeNo,
        reply: R,
    ) -> Self {
        AdapterRequest {
            call,
            object,
            ino,
            caller: Caller {
                unique: request.unique().0,
                thread: request.pid(),
            },
            cancel: CancelToken::default(),
            reply,
        }
    }

    /// Creates a request about the inode `ino`.
    fn for_inode(call: RequestType, request: &Request, ino: INodeNo, reply: R) -> Self {
        AdapterRequest::new(call, request, RequestObject::Description(ino.0), ino, reply)
    }
}

impl Adapter {
    /// Schedules a request. `answer` handles it in the calling thread or in a worker thread. A
    /// request that takes long is postponed, and `answer` is then called a second time. `tell`
    /// sends the reply.
    fn schedule<R: Send + 'static, T>(
        &self,
        asked: AdapterRequest<R>,
        mut answer: impl FnMut(&dyn Requests, &mut R, &CancelToken) -> Result<T> + Send + 'static,
        tell: impl FnOnce(&dyn Requests, R, Result<T>) + Send + 'static,
    ) {
        let filesystem = Arc::clone(&self.filesystem);
        filesystem.traffic().count_request(asked.call);
        let of = (asked.object, filesystem.data_file_number(asked.ino.0));
        let telling = Arc::clone(&self.filesystem);
        self.workers.schedule_request(
            (asked.call.name(), of),
            asked.caller,
            (asked.cancel, Arc::default()),
            asked.reply,
            move |reply, cancel| answer(&**filesystem, reply, cancel),
            move |reply, answered| tell(&**telling, reply, answered),
        );
    }
}

/// Returns the key that identifies requests about `name` in the directory `parent`, so that
/// requests to one object are handled in order.
fn object_for_name(parent: INodeNo, name: &OsStr) -> RequestObject {
    let mut hasher = DefaultHasher::new();
    (parent.0, name).hash(&mut hasher);
    RequestObject::Description(hasher.finish())
}

/// Returns the result of listing a directory. If the listing was postponed or cancelled after some
/// entries, returns success, so that the reply contains these entries.
fn partial_listing_result(read: Result<()>, has_some: bool) -> Result<()> {
    match read {
        Err(error) if has_some && error.is_cancelled() => Ok(()),
        read => read,
    }
}

/// Defines methods that reject requests to change the filesystem with `EROFS`.
macro_rules! read_only {
    ($($call:ident($($argument:ty),* $(,)?) $reply:ty;)*) => {$(
        fn $call(&self, _: &Request, $(_: $argument,)* reply: $reply) {
            reply.error(Errno::EROFS);
        }
    )*};
}

impl fuser::Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // A trade-off between two costs.
        //
        // Without `AUTO`, the kernel creates an inode for each listed name: `ls -f` of a million
        // synthetic names took 3.7 to 4.5 s and 190 MiB here, with `AUTO` 0.5 s and 7 MiB.
        //
        // With `AUTO`, `find -size` on 100 000 datasets of a real file looks up each of them: 1.3
        // to 3.4 s instead of 0.4 to 1.2 s.
        //
        // `FUSE_CACHE_SYMLINKS` is not used. With that flag, the kernel would return an old text
        // without a request. It would drop the text only for a thread that waits for its pages.
        let mut wanted = InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_PARALLEL_DIROPS
            // Without this flag, `mmap` fails on a file opened for direct I/O, as every file of a
            // growing source is.
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        wanted.set(
            InitFlags::FUSE_EXPORT_SUPPORT,
            self.released_lookups.is_some(),
        );
        for flag in wanted.iter() {
            if config.add_capabilities(flag).is_err() {
                log::debug!("the kernel does not offer {flag:?}");
            }
        }
        let asked = config.set_max_background(MAX_BACKGROUND);
        debug_assert!(asked.is_ok());
        if let Some(longest) = self.max_read {
            // The kernel has a single limit for writes and reads.
            let asked = config.set_max_write(longest);
            debug_assert!(asked.is_ok());
        }
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_owned();
        let forgotten = self.released_lookups.clone();
        let object = object_for_name(parent, &name);
        self.schedule(
            AdapterRequest::new(RequestType::Lookup, request, object, parent, reply),
            move |filesystem, _, cancel| match (&forgotten, name.as_bytes()) {
                (Some(forgotten), name @ (b"." | b"..")) => {
                    forgotten.find(filesystem, parent.0, name)
                }
                (_, name) => filesystem.lookup_with_cancel(parent.0, name, cancel),
            },
            move |filesystem, reply, found| match found {
                Ok(entry) => reply.entry(
                    &ttl(&entry, filesystem.cache_lifetime()),
                    &attributes(&entry.attributes),
                    Generation(u64::from(entry.generation)),
                ),
                Err(Error::NotFound) if filesystem.is_absence_final(parent.0) => {
                    let (nothing, generation) = (attributes(&ABSENT_ENTRY), Generation(0));
                    reply.entry(&filesystem.cache_lifetime(), &nothing, generation);
                }
                Err(error) => reply.error(to_errno(&error)),
            },
        );
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        run_catching_panics("forget", || {
            let over = match &self.released_lookups {
                Some(forgotten) => forgotten.add_released(ino.0, lookups),
                None => Some((ino.0, lookups)),
            };
            if let Some((ino, lookups)) = over {
                self.filesystem.forget(ino, lookups);
            }
        });
    }

    fn getattr(&self, request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.schedule(
            AdapterRequest::for_inode(RequestType::Getattr, request, ino, reply),
            move |filesystem, _, cancel| filesystem.getattr_with_cancel(ino.0, cancel),
            |filesystem, reply, entry| match entry {
                Ok(entry) => {
                    let ttl = ttl(&entry, filesystem.cache_lifetime());
                    reply.attr(&ttl, &attributes(&entry.attributes));
                }
                Err(error) => reply.error(to_errno(&error)),
            },
        );
    }

    fn readlink(&self, request: &Request, ino: INodeNo, reply: ReplyData) {
        self.schedule(
            AdapterRequest::for_inode(RequestType::Readlink, request, ino, reply),
            move |filesystem, _, cancel| filesystem.readlink_with_cancel(ino.0, cancel),
            |_, reply, text| match text {
                Ok(text) => reply.data(&text),
                Err(error) => reply.error(to_errno(&error)),
            },
        );
    }

    fn open(&self, request: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.schedule(
            AdapterRequest::for_inode(RequestType::Open, request, ino, reply),
            move |filesystem, _, cancel| filesystem.open_file_with_cancel(ino.0, cancel),
            |filesystem, reply, opened| match opened {
                Ok(opened) => {
                    let flags = file_flags(&opened, filesystem.options().direct_io);
                    reply.opened(FileHandle(opened.handle.0), flags);
                }
                Err(error) => reply.error(to_errno(&error)),
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
        let reply = ReadReply {
            reply,
            relay: self.relay.clone(),
            unique: request.unique().0,
        };
        let ready = || self.filesystem.try_read(Handle(handle.0), offset, length);
        match catch_unwind(AssertUnwindSafe(ready)) {
            Ok(Ok(Some(bytes))) => {
                let traffic = self.filesystem.traffic();
                traffic.count_request(RequestType::Read);
                traffic.count_bytes_read(to_u64(bytes.len()));
                return reply.data(&bytes);
            }
            Ok(Err(error)) => return reply.error(&error),
            // A failure will occur again below and is reported there.
            Ok(Ok(None)) | Err(_) => {}
        }
        let read = ReadRegistry::begin_read(&self.readers, handle.0, request.pid());
        let asked = AdapterRequest::new(
            RequestType::Read,
            request,
            RequestObject::Content(ino.0),
            ino,
            reply,
        );
        self.schedule(
            AdapterRequest {
                cancel: read.cancel.clone(),
                ..asked
            },
            move |filesystem, _, cancel| {
                filesystem.read_with_cancel(Handle(handle.0), offset, length, cancel)
            },
            move |filesystem, reply: ReadReply, bytes| {
                match bytes {
                    Ok(bytes) => {
                        filesystem.traffic().count_bytes_read(to_u64(bytes.len()));
                        reply.data(&bytes);
                    }
                    Err(error) => reply.error(&error),
                }
                drop(read);
            },
        );
    }

    fn lseek(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let whence = match whence {
            nix::libc::SEEK_DATA => SeekKind::Data,
            nix::libc::SEEK_HOLE => SeekKind::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else {
            return reply.error(Errno::ENXIO);
        };
        self.schedule(
            AdapterRequest::for_inode(RequestType::Lseek, request, ino, reply),
            move |filesystem, _, cancel| {
                filesystem.lseek_with_cancel(Handle(handle.0), offset, whence, cancel)
            },
            |_, reply, place| match place {
                Ok(place) => reply.offset(i64::try_from(place).unwrap_or(i64::MAX)),
                Err(error) => reply.error(Errno::from_i32(errno::from_read_error(&error))),
            },
        );
    }

    fn flush(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.readers.cancel_closed(handle.0, request.pid());
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
        run_catching_panics("release", || {
            self.filesystem.release(Handle(handle.0));
            reply.ok();
        });
    }

    fn opendir(&self, request: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.schedule(
            AdapterRequest::for_inode(RequestType::Opendir, request, ino, reply),
            move |filesystem, _, cancel| filesystem.opendir_with_cancel(ino.0, cancel),
            |_, reply, opened| match opened {
                Ok(opened) => {
                    reply.opened(FileHandle(opened.handle.0), directory_flags(&opened));
                }
                Err(error) => reply.error(to_errno(&error)),
            },
        );
    }

    fn readdir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        cookie: u64,
        reply: ReplyDirectory,
    ) {
        self.schedule(
            AdapterRequest::for_inode(RequestType::Readdir, request, ino, reply),
            move |filesystem, reply: &mut ReplyDirectory, cancel| {
                let mut has_some = false;
                let take = &mut |entry: DirEntry<'_>, _: Option<&LookupEntry>| {
                    has_some = true;
                    let name = OsStr::from_bytes(entry.name);
                    reply.add(
                        INodeNo(entry.ino),
                        entry.next,
                        listed_type(entry.kind),
                        name,
                    )
                };
                let handle = Handle(handle.0);
                let read =
                    filesystem.list_with_cancel(handle, cookie, ListingDetail::Names, take, cancel);
                partial_listing_result(read, has_some)
            },
            |_, reply, read| match read {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(to_errno(&error)),
            },
        );
    }

    fn readdirplus(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        cookie: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.schedule(
            AdapterRequest::for_inode(RequestType::Readdirplus, request, ino, reply),
            move |filesystem, reply: &mut ReplyDirectoryPlus, cancel| {
                let mut has_some = false;
                let take = &mut |listed: DirEntry<'_>, entry: Option<&LookupEntry>| {
                    has_some = true;
                    let entry = KernelEntry::new(&listed, entry, filesystem.cache_lifetime());
                    reply.add(
                        entry.ino,
                        listed.next,
                        OsStr::from_bytes(listed.name),
                        &entry.ttl,
                        &entry.attributes,
                        entry.generation,
                    )
                };
                let (handle, detail) = (Handle(handle.0), ListingDetail::Attributes);
                let read = filesystem.list_with_cancel(handle, cookie, detail, take, cancel);
                partial_listing_result(read, has_some)
            },
            |_, reply, read| match read {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(to_errno(&error)),
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
        run_catching_panics("releasedir", || {
            self.filesystem.release(Handle(handle.0));
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        const UNIT: u32 = 512;
        run_catching_panics("statfs", || {
            let (all, free) = self.filesystem.total_and_free_bytes();
            let [blocks, free] = [all, free].map(|bytes| bytes.div_ceil(u64::from(UNIT)));
            let names = u32::try_from(limits::NAME_BYTES).unwrap_or(u32::MAX);
            reply.statfs(blocks, free, free, 0, 0, BLOCK_SIZE, names, UNIT);
        });
    }

    fn getxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        room: u32,
        reply: ReplyXattr,
    ) {
        let name = name.to_owned();
        self.schedule(
            AdapterRequest::new(
                RequestType::Getxattr,
                request,
                RequestObject::AttributeValues,
                ino,
                reply,
            ),
            move |filesystem, _, cancel| {
                filesystem.getxattr_with_cancel(ino.0, name.as_bytes(), cancel)
            },
            move |_, reply, value| reply_xattr(reply, room, value),
        );
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, room: u32, reply: ReplyXattr) {
        self.schedule(
            AdapterRequest::new(
                RequestType::Listxattr,
                request,
                RequestObject::AttributeValues,
                ino,
                reply,
            ),
            move |filesystem, _, cancel| filesystem.listxattr_with_cancel(ino.0, cancel),
            move |_, reply, names| {
                let list = names.map(|names| {
                    names
                        .iter()
                        .flat_map(|n| [n, &b"\0"[..]].concat())
                        .collect()
                });
                reply_xattr(reply, room, list);
            },
        );
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
        // A program may check whether a file is a terminal. Without this method, fuser would log
        // that.
        reply.error(Errno::ENOTTY);
    }

    fn access(&self, request: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        if mask.contains(AccessFlags::W_OK) {
            return reply.error(Errno::EROFS);
        }
        self.schedule(
            AdapterRequest::for_inode(RequestType::Access, request, ino, reply),
            move |filesystem, _, cancel| filesystem.getattr_with_cancel(ino.0, cancel),
            move |_, reply, entry| {
                let permissions = match entry {
                    Ok(entry) => entry.attributes.permissions,
                    Err(error) => return reply.error(to_errno(&error)),
                };
                let may = |flag, bits| !mask.contains(flag) || permissions & bits != 0;
                if may(AccessFlags::R_OK, 0o444) && may(AccessFlags::X_OK, 0o111) {
                    reply.ok();
                } else {
                    reply.error(Errno::EACCES);
                }
            },
        );
    }

    // The kernel rejects these requests itself for a read-only mount, unless it is remounted.

    read_only! {
        setattr(
            INodeNo, Option<u32>, Option<u32>, Option<u32>, Option<u64>, Option<TimeOrNow>,
            Option<TimeOrNow>, Option<SystemTime>, Option<FileHandle>, Option<SystemTime>,
            Option<SystemTime>, Option<SystemTime>, Option<BsdFileFlags>,
        ) ReplyAttr;
        mknod(INodeNo, &OsStr, u32, u32, u32) ReplyEntry;
        mkdir(INodeNo, &OsStr, u32, u32) ReplyEntry;
        unlink(INodeNo, &OsStr) ReplyEmpty;
        rmdir(INodeNo, &OsStr) ReplyEmpty;
        symlink(INodeNo, &OsStr, &Path) ReplyEntry;
        rename(INodeNo, &OsStr, INodeNo, &OsStr, RenameFlags) ReplyEmpty;
        link(INodeNo, INodeNo, &OsStr) ReplyEntry;
        write(INodeNo, FileHandle, u64, &[u8], WriteFlags, OpenFlags, Option<LockOwner>) ReplyWrite;
        create(INodeNo, &OsStr, u32, u32, i32) ReplyCreate;
        fallocate(INodeNo, FileHandle, u64, u64, i32) ReplyEmpty;
        setxattr(INodeNo, &OsStr, &[u8], i32, u32) ReplyEmpty;
        removexattr(INodeNo, &OsStr) ReplyEmpty;
    }
}

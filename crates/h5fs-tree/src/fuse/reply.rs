//! Converts results to replies of the FUSE protocol.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{Errno, FileAttr, FileType, FopenFlags, Generation, INodeNo, ReplyData, ReplyXattr};
use h5fs_reader::error::{Error, Result};

use crate::errno;
use crate::fuse::relay::Relay;
use crate::stat::{BLOCK_SIZE, DIRECTORY_BLOCK_SIZE, DirEntry, FileKind, LookupEntry, Stat};
use crate::state::handle::{Caching, OpenedHandle};

pub(super) fn to_errno(error: &Error) -> Errno {
    Errno::from_i32(errno::from_error(error))
}

/// Returns the time for which the kernel may cache `entry`: `lifetime` if the entry is cacheable,
/// otherwise zero.
pub(super) fn ttl(entry: &LookupEntry, lifetime: Duration) -> Duration {
    if entry.is_cacheable {
        lifetime
    } else {
        Duration::ZERO
    }
}

/// A reply to a lookup that makes the kernel cache that a name does not exist.
pub(super) const ABSENT_ENTRY: Stat = Stat {
    ino: 0,
    kind: FileKind::File,
    size: 0,
    blocks: 0,
    permissions: 0,
    links: 0,
    uid: 0,
    gid: 0,
    modified: (0, 0),
};

/// Returns the file type of a name in a listing. fuser has no value for an unknown type. A name of
/// unknown type gets the type of sockets, which this filesystem never uses. The relay replaces it
/// by `DT_UNKNOWN`.
pub(super) fn listed_type(kind: Option<FileKind>) -> FileType {
    kind.map_or(FileType::Socket, file_type)
}

pub(super) fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::Directory => FileType::Directory,
        FileKind::File => FileType::RegularFile,
        FileKind::Symlink => FileType::Symlink,
    }
}

pub(super) fn attributes(stat: &Stat) -> FileAttr {
    let (seconds, nanoseconds) = stat.modified;
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    let part = Duration::from_nanos(u64::from(nanoseconds));
    let time = time.and_then(|time| time.checked_add(part));
    let time = time.unwrap_or(SystemTime::UNIX_EPOCH);
    FileAttr {
        ino: INodeNo(stat.ino),
        size: stat.size,
        blocks: stat.blocks,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: file_type(stat.kind),
        perm: stat.permissions,
        nlink: stat.links,
        uid: stat.uid,
        gid: stat.gid,
        rdev: 0,
        blksize: match stat.kind {
            FileKind::Directory => DIRECTORY_BLOCK_SIZE,
            _ => BLOCK_SIZE,
        },
        flags: 0,
    }
}

/// A reply to a read, sent by the relay if there is one, else by fuser.
pub(super) struct ReadReply {
    pub(super) reply: ReplyData,
    pub(super) unique: u64,
    /// The relay between fuser and the kernel, if there is one.
    pub(super) relay: Option<Arc<Relay>>,
}

impl ReadReply {
    pub(super) fn data(self, bytes: &[u8]) {
        match self.relay {
            Some(relay) => {
                relay.answer_read(self.unique, bytes);
                // fuser requires a reply of its own, which the relay drops.
                self.reply.data(&[]);
            }
            None => self.reply.data(bytes),
        }
    }

    pub(super) fn error(self, error: &Error) {
        self.reply
            .error(Errno::from_i32(errno::from_read_error(error)));
    }
}

/// Returns the FUSE flags for an open file. If `is_direct` is true, every read bypasses the page
/// cache.
pub(super) fn file_flags(opened: &OpenedHandle, is_direct: bool) -> FopenFlags {
    let flags = match opened.caching {
        _ if is_direct => FopenFlags::FOPEN_DIRECT_IO,
        Caching::Never | Caching::SequentialOnly => FopenFlags::FOPEN_DIRECT_IO,
        Caching::WhileOpen => FopenFlags::empty(),
        Caching::UntilChanged => FopenFlags::FOPEN_KEEP_CACHE,
    };
    // `flush` reports that a thread has stopped reading, at the cost of a request.
    if opened.is_cancelled_on_close && flags != FopenFlags::FOPEN_DIRECT_IO {
        flags
    } else {
        flags | FopenFlags::FOPEN_NOFLUSH
    }
}

/// Returns the FUSE flags for an open directory.
pub(super) fn directory_flags(opened: &OpenedHandle) -> FopenFlags {
    match opened.caching {
        Caching::UntilChanged => FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE,
        Caching::Never | Caching::SequentialOnly | Caching::WhileOpen => FopenFlags::empty(),
    }
}

/// An entry of a directory listing, with the values that fuser needs.
pub(super) struct KernelEntry {
    pub(super) ino: INodeNo,
    pub(super) ttl: Duration,
    pub(super) attributes: FileAttr,
    pub(super) generation: Generation,
}

impl KernelEntry {
    /// Converts the listed name `listed` and its attributes `entry`. If `entry` is `None`, the
    /// attributes in the reply expire at once, so that the kernel looks the name up before use.
    pub(super) fn new(
        listed: &DirEntry<'_>,
        entry: Option<&LookupEntry>,
        lifetime: Duration,
    ) -> Self {
        let unknown = Stat {
            ino: listed.ino,
            kind: listed.kind.unwrap_or(FileKind::File),
            size: 0,
            blocks: 0,
            permissions: 0,
            links: 1,
            uid: 0,
            gid: 0,
            modified: (0, 0),
        };
        let mut attributes = attributes(entry.map_or(&unknown, |entry| &entry.attributes));
        if entry.is_none() {
            attributes.kind = listed_type(listed.kind);
        }
        KernelEntry {
            ino: INodeNo(entry.map_or(listed.ino, |entry| entry.ino)),
            ttl: entry.map_or(Duration::ZERO, |entry| ttl(entry, lifetime)),
            attributes,
            generation: Generation(entry.map_or(0, |entry| u64::from(entry.generation))),
        }
    }
}

/// Replies with `value`: an extended attribute, or a list of the names of extended attributes. If
/// `room`, the size of the caller's buffer, is 0, replies with the length of `value`.
pub(super) fn reply_xattr(reply: ReplyXattr, room: u32, value: Result<Vec<u8>>) {
    let value = match value {
        Ok(value) => value,
        Err(error) => return reply.error(to_errno(&error)),
    };
    match u32::try_from(value.len()) {
        Ok(length) if room == 0 => reply.size(length),
        Ok(length) if length <= room => reply.data(&value),
        _ => reply.error(Errno::ERANGE),
    }
}

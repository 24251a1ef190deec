//! The answers to `stat`, lookups and listings.

use std::path::PathBuf;

use crate::fs::options::Options;
use crate::model::Node;
use crate::source::attributes::Attributes;
use crate::source::local::audience::Readers;

/// `st_blksize`: what `cat` and `cp` ask for at a time, the most that the kernel asks for at once.
pub(super) const BLOCK_SIZE: u32 = 1 << 20;

/// `st_blksize` of a directory: what `readdir(3)` asks for at a time. If it were larger, a program
/// that seeks would be told thousands of names for each that it wants.
pub(super) const DIRECTORY_BLOCK_SIZE: u32 = 32 << 10;

/// The kinds of files in the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
}

/// The attributes of one inode, as `stat` tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The inode number.
    pub ino: u64,
    /// The kind of file.
    pub kind: Kind,
    /// Bytes of the content.
    pub size: u64,
    /// Stored bytes in units of 512.
    pub blocks: u64,
    /// Permission bits.
    pub permissions: u16,
    /// Names of the file.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Modification time, seconds since 1970 UTC and nanoseconds.
    pub modified: (i64, u32),
}

/// The parts of the source's attributes that the mount takes over.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Where it is; empty where it is no file.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits.
    pub mode: u32,
    /// Modification time, seconds since 1970 UTC and nanoseconds.
    pub modified: (i64, u32),
}

impl Origin {
    /// The source at `path` as the system describes it.
    pub fn new(path: PathBuf, attributes: impl Into<Attributes>) -> Self {
        let attributes = attributes.into();
        Origin {
            path,
            size: attributes.size,
            uid: attributes.uid,
            gid: attributes.gid,
            mode: attributes.mode,
            modified: attributes.modified,
        }
    }

    /// The same, readable by its `readers` alone.
    #[must_use]
    pub(super) fn for_readers(self, readers: Readers) -> Self {
        let mode = readers.audience().map_or(self.mode, |own| own.mode());
        Origin { mode, ..self }
    }

    /// A file of `kind` without content, with the source's owner, mode and times.
    pub(super) fn stat(&self, ino: u64, kind: Kind, options: &Options) -> Stat {
        let readable = self.mode & 0o444 & !options.umask.unwrap_or(0);
        let mode = match kind {
            Kind::File => readable,
            // A user that may read a directory may enter it, unless the umask says otherwise.
            Kind::Directory => readable | ((self.mode & 0o444) >> 2) & !options.umask.unwrap_or(0),
            Kind::Symlink => 0o777,
        };
        Stat {
            ino,
            kind,
            size: 0,
            blocks: 0,
            permissions: u16::try_from(mode).unwrap_or(0),
            links: 1,
            uid: options.uid.unwrap_or(self.uid),
            gid: options.gid.unwrap_or(self.gid),
            modified: self.modified,
        }
    }
}

/// The answer to a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub ino: u64,
    /// Tells objects of one number apart: it is another one once the source has changed.
    pub generation: u32,
    /// Its attributes.
    pub attributes: Stat,
    /// Whether this stays true as long as the source is unchanged.
    pub cacheable: bool,
    /// Whether it has the size of its content. Of a text that is too long to be counted it has not:
    /// the name is there, and `stat` fails.
    pub is_sized: bool,
}

impl Entry {
    /// The same with content: `stored` bytes, or `None` where every byte is known to be zero.
    pub(super) fn sized(mut self, size: u64, stored: Option<u64>) -> Self {
        self.attributes.size = size;
        self.attributes.blocks = match stored {
            Some(stored) if size > 0 => stored.div_ceil(512).max(1),
            _ => 0,
        };
        self
    }

    /// The same with the object's own time of modification, if it has one.
    pub(super) fn modified_as(mut self, node: &Node) -> Self {
        if let Some(seconds) = node.modified {
            self.attributes.modified = (seconds, 0);
        }
        self
    }

    /// The same of a content whose size is not to be had.
    pub(super) fn without_size(self) -> Self {
        Entry {
            is_sized: false,
            cacheable: false,
            ..self
        }
    }

    /// The same, cacheable only if that is right: what could not be read may be read next time.
    pub(super) fn kept_if(self, is_right: bool) -> Self {
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
    pub ino: u64,
    /// The kind of file; `None` where only a look tells, which a listing does not take.
    pub kind: Option<Kind>,
    /// Where the listing goes on after it.
    pub next: u64,
}

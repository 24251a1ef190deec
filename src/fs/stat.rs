//! Attributes and entries: the replies to `stat`, lookups and listings.

use std::path::PathBuf;

use h5fs_reader::model::Node;
use h5fs_reader::source::attributes::FileAttributes;
use h5fs_reader::source::local::audience::Readers;

use crate::fs::options::Options;

/// `st_blksize`: the size of reads by `cat` and `cp`, and the largest read of the kernel.
pub(super) const BLOCK_SIZE: u32 = 1 << 20;

/// `st_blksize` of a directory: the buffer size of `readdir(3)`. With a larger buffer, a program
/// that seeks would receive thousands of names for each one that it wants.
pub(super) const DIRECTORY_BLOCK_SIZE: u32 = 32 << 10;

/// The kinds of files in the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
}

/// The attributes of one inode, as `stat` returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The inode number.
    pub ino: u64,
    /// The kind of file.
    pub kind: FileKind,
    /// Size of the content in bytes.
    pub size: u64,
    /// Stored bytes in units of 512.
    pub blocks: u64,
    /// Permission bits.
    pub permissions: u16,
    /// Number of hard links.
    pub links: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Modification time: seconds since 1970 UTC, and nanoseconds.
    pub modified: (i64, u32),
}

/// The source's attributes that the mount copies.
#[derive(Debug, Clone)]
pub struct SourceAttributes {
    /// Path, or empty if the source is not a file.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// Permission bits.
    pub mode: u32,
    /// Modification time: seconds since 1970 UTC, and nanoseconds.
    pub modified: (i64, u32),
}

impl SourceAttributes {
    /// Creates the origin for the source at `path`, with the system's attributes.
    pub fn new(path: PathBuf, attributes: impl Into<FileAttributes>) -> Self {
        let attributes = attributes.into();
        SourceAttributes {
            path,
            size: attributes.size,
            uid: attributes.uid,
            gid: attributes.gid,
            mode: attributes.mode,
            modified: attributes.modified,
        }
    }

    /// Restricts the mode to the `readers`.
    #[must_use]
    pub(super) fn for_readers(self, readers: Readers) -> Self {
        let mode = readers.audience().map_or(self.mode, |own| own.mode());
        SourceAttributes { mode, ..self }
    }

    /// Returns the attributes of a file of `kind` without content, with the source's owner, mode
    /// and times.
    pub(super) fn stat(&self, ino: u64, kind: FileKind, options: &Options) -> Stat {
        let readable = self.mode & 0o444 & !options.umask.unwrap_or(0);
        let mode = match kind {
            FileKind::File => readable,
            // A user who may read a directory may enter it, unless the umask forbids that.
            FileKind::Directory => {
                readable | ((self.mode & 0o444) >> 2) & !options.umask.unwrap_or(0)
            }
            FileKind::Symlink => 0o777,
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

/// The reply to a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupEntry {
    /// Inode number.
    pub ino: u64,
    /// Generation, which distinguishes objects with the same number. The generation changes when
    /// the source changes.
    pub generation: u32,
    /// Attributes.
    pub attributes: Stat,
    /// Whether the entry stays valid until the source changes.
    pub cacheable: bool,
    /// Whether the entry has a size. A text that is too long to count has none: the name exists,
    /// but `stat` fails.
    pub is_sized: bool,
}

impl LookupEntry {
    /// Sets the size, and `stored` bytes; `None` if every byte is known to be zero.
    pub(super) fn with_size(mut self, size: u64, stored: Option<u64>) -> Self {
        self.attributes.size = size;
        self.attributes.blocks = match stored {
            Some(stored) if size > 0 => stored.div_ceil(512).max(1),
            _ => 0,
        };
        self
    }

    /// Sets the object's own modification time, if it has one.
    pub(super) fn modified_as(mut self, node: &Node) -> Self {
        if let Some(seconds) = node.modified {
            self.attributes.modified = (seconds, 0);
        }
        self
    }

    /// Marks the size as unknown.
    pub(super) fn without_size(self) -> Self {
        LookupEntry {
            is_sized: false,
            cacheable: false,
            ..self
        }
    }

    /// Clears `cacheable` unless `is_right`, because an object that could not be read may be
    /// readable later.
    pub(super) fn cacheable_if(self, is_right: bool) -> Self {
        LookupEntry {
            cacheable: self.cacheable && is_right,
            ..self
        }
    }
}

/// An entry of a directory listing.
#[derive(Debug)]
pub struct DirEntry<'a> {
    /// Name as shown.
    pub name: &'a [u8],
    /// Inode number.
    pub ino: u64,
    /// Kind of file, or `None` if only a lookup would reveal it.
    pub kind: Option<FileKind>,
    /// Position where the listing continues after this entry.
    pub next: u64,
}

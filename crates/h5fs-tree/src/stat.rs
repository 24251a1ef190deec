//! File attributes and directory entries, as in the replies to `stat`, lookups and listings.

use std::path::PathBuf;

use h5fs_reader::model::Node;
use h5fs_reader::source::attributes::FileAttributes;
use h5fs_reader::source::local::audience::Readers;

use crate::options::Options;

/// `st_blksize`: the size of reads by `cat` and `cp`, and the largest read of the kernel.
pub(super) const BLOCK_SIZE: u32 = 1 << 20;

/// `st_blksize` of a directory, which is the buffer size that readdir(3) uses. With a larger
/// buffer, a program that seeks would receive thousands of names for each one that it wants.
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
    /// Number of stored bytes, in units of 512 bytes (`st_blocks`).
    pub blocks: u64,
    /// Permission bits.
    pub permissions: u16,
    /// Number of hard links.
    pub links: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID of the file.
    pub gid: u32,
    /// Modification time: seconds since 1970 UTC, and nanoseconds.
    pub modified: (i64, u32),
}

/// The attributes of the source that the mount copies to the shown files.
#[derive(Debug, Clone)]
pub struct SourceAttributes {
    /// Path of the source, or empty if the source is not a file.
    pub path: PathBuf,
    /// Size of the source in bytes.
    pub size: u64,
    /// User ID of the owner.
    pub uid: u32,
    /// Group ID of the source.
    pub gid: u32,
    /// Permission bits of the source.
    pub mode: u32,
    /// Modification time: seconds since 1970 UTC, and nanoseconds.
    pub modified: (i64, u32),
}

impl SourceAttributes {
    /// Creates the attributes for the source at `path` from `attributes`, which the operating
    /// system or a server has reported.
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

    /// Removes permission bits, so that only `readers` may read the shown files.
    #[must_use]
    pub(super) fn restricted_to(self, readers: Readers) -> Self {
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
    /// Inode number of the entry.
    pub ino: u64,
    /// Generation of the source, which distinguishes objects that have the same inode number before
    /// and after a change of the source.
    pub generation: u32,
    /// Attributes of the inode.
    pub attributes: Stat,
    /// Whether the kernel may cache the entry until the source changes.
    pub is_cacheable: bool,
    /// Whether the entry has a size. A text that is too long for its bytes to be counted has no
    /// size: the name exists, but `stat` fails.
    pub is_sized: bool,
}

impl LookupEntry {
    /// Sets the size in bytes, and the number of stored bytes. If `stored` is `None`, every byte is
    /// known to be zero and none is stored.
    pub(super) fn with_size(mut self, size: u64, stored: Option<u64>) -> Self {
        self.attributes.size = size;
        self.attributes.blocks = match stored {
            Some(stored) if size > 0 => stored.div_ceil(512).max(1),
            _ => 0,
        };
        self
    }

    /// Sets the modification time to the one that the object `node` has in the file, if there is
    /// one.
    pub(super) fn with_modification_time_of(mut self, node: &Node) -> Self {
        if let Some(seconds) = node.modified {
            self.attributes.modified = (seconds, 0);
        }
        self
    }

    /// Marks the size of the entry as unknown, so that `stat` fails.
    pub(super) fn without_size(self) -> Self {
        LookupEntry {
            is_sized: false,
            is_cacheable: false,
            ..self
        }
    }

    /// Forbids the kernel to cache the entry if `is_right` is false. The entry may then describe an
    /// object that could not be read but may be readable later.
    pub(super) fn cacheable_if(self, is_right: bool) -> Self {
        LookupEntry {
            is_cacheable: self.is_cacheable && is_right,
            ..self
        }
    }
}

/// An entry of a directory listing.
#[derive(Debug)]
pub struct DirEntry<'a> {
    /// Name of the entry, as shown in the mount.
    pub name: &'a [u8],
    /// Inode number of the entry.
    pub ino: u64,
    /// Kind of file, or `None` if only a lookup would reveal it.
    pub kind: Option<FileKind>,
    /// Position where the listing continues after this entry.
    pub next: u64,
}

//! The requests of the kernel, as methods.

use std::time::Duration;

use crate::array::{Bytes, CancelToken};
use crate::error::Result;
use crate::fs::handle::{Handle, Opened};
use crate::fs::options::Options;
use crate::fs::stat::{DirEntry, Entry};

/// An inode number.
pub type Ino = u64;

/// The kind of range that a seek looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// The next byte that is stored, or not known to be zero.
    Data,
    /// The next byte of a range that reads as zeros and is stored nowhere.
    Hole,
}

/// Takes an entry of a listing; answers `true` and has not taken it once there is no room.
pub(crate) type Take<'t> = dyn FnMut(DirEntry<'_>) -> bool + 't;

/// As [`Take`], with the attributes of the entry where these are known.
pub(crate) type TakeWithAttributes<'t> = dyn FnMut(DirEntry<'_>, Option<&Entry>) -> bool + 't;

/// A tree that a mount shows: that of one file, or of a directory of files.
///
/// Every number that a lookup hands out is counted and is to be given back with `forget`. A request
/// that may take long has a token, and ends with [`Error::unwanted`](crate::error::Error::unwanted)
/// once that is cancelled.
pub(crate) trait Requests: Send + Sync {
    /// How it is shown.
    fn options(&self) -> &Options;

    /// Bytes of the filesystem, and how many of them are free.
    fn capacity(&self) -> (u64, u64);

    /// How long the kernel may keep what it is told of something that has not changed.
    fn lifetime(&self) -> Duration;

    /// The file or directory of a directory of files that the inode is in, by any number; `None` in
    /// the tree of one file.
    fn file_of(&self, _ino: Ino) -> Option<u64> {
        None
    }

    /// The entry `name` of the directory `parent`; counted.
    fn lookup_for(&self, parent: Ino, name: &[u8], cancel: &CancelToken) -> Result<Entry>;

    /// Whether a name that this directory lacks is not there as long as the source is unchanged.
    fn lacks_for_good(&self, _parent: Ino) -> bool {
        false
    }

    /// Gives back `count` lookups.
    fn forget(&self, ino: Ino, count: u64);

    /// The attributes of an inode, worked out at any cost.
    fn getattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Entry>;

    /// The text of a symbolic link.
    fn readlink(&self, ino: Ino) -> Result<Vec<u8>>;

    /// The names of the extended attributes.
    fn listxattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>>;

    /// The value of an extended attribute.
    fn getxattr_for(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>>;

    /// Opens a regular file.
    fn open_file_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Opened>;

    /// Opens a directory.
    fn opendir(&self, ino: Ino) -> Result<Opened>;

    /// Whether the names of the directory stand in an order of their own: that of a file's index.
    fn is_ordered(&self, directory: Ino) -> bool;

    /// Hands the entries of an open directory from `cookie` on (0: from the first) to `take`.
    fn readdir_for(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut Take<'_>,
        cancel: &CancelToken,
    ) -> Result<()>;

    /// As [`readdir_for`](Self::readdir_for), with attributes; each entry that is taken with some
    /// is counted.
    fn readdir_plus_for(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut TakeWithAttributes<'_>,
        cancel: &CancelToken,
    ) -> Result<()>;

    /// At most `length` bytes of an open file from `offset` on, fewer at its end only; or none once
    /// nobody waits for them.
    fn read_for(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes>;

    /// The same bytes, if they are to be had without decoding or waiting.
    fn read_now(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>>;

    /// The first offset from `offset` on of data, or of a hole.
    fn lseek(&self, handle: Handle, offset: u64, whence: Whence) -> Result<u64>;

    /// Closes what is open.
    fn release(&self, handle: Handle);
}

/// The requests of a caller that waits for each answer, however long it takes.
impl dyn Requests + '_ {
    pub(crate) fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Entry> {
        self.lookup_for(parent, name, &CancelToken::default())
    }

    pub(crate) fn getattr(&self, ino: Ino) -> Result<Entry> {
        self.getattr_for(ino, &CancelToken::default())
    }

    pub(crate) fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.getxattr_for(ino, name, &CancelToken::default())
    }

    pub(crate) fn open_file(&self, ino: Ino) -> Result<Opened> {
        self.open_file_for(ino, &CancelToken::default())
    }

    pub(crate) fn readdir(&self, handle: Handle, cookie: u64, take: &mut Take<'_>) -> Result<()> {
        self.readdir_for(handle, cookie, take, &CancelToken::default())
    }

    pub(crate) fn readdir_plus(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut TakeWithAttributes<'_>,
    ) -> Result<()> {
        self.readdir_plus_for(handle, cookie, take, &CancelToken::default())
    }
}

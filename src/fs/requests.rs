//! The requests of the kernel, as methods.

use std::time::Duration;

use crate::array::{Bytes, CancelToken};
use crate::error::Result;
use crate::fs::options::Options;
use crate::fs::stat::{DirEntry, Entry};
use crate::fs::state::handle::{Handle, Opened};
use crate::fs::state::traffic::Traffic;
use crate::source::identity::Identity;

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

/// The content of an open file, as one that keeps a copy has to know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// Bytes.
    pub length: u64,
    /// The state of the file that it is from; `None` where none is known, or it may change while it
    /// is shown.
    pub identity: Option<Identity>,
    /// How often the source was opened anew before.
    pub generation: u32,
}

/// Takes an entry of a listing; answers `true` and has not taken it once there is no room.
pub type Take<'t> = dyn FnMut(DirEntry<'_>) -> bool + 't;

/// Like [`Take`], with the attributes of the entry where these are known.
pub type TakeWithAttributes<'t> = dyn FnMut(DirEntry<'_>, Option<&Entry>) -> bool + 't;

/// What a listing tells of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Its name, number and kind.
    Names,
    /// Its attributes too, where no lookup is needed to find them.
    Attributes,
}

/// A tree that a mount shows: that of one file, or of a directory of files.
///
/// Every number that a lookup hands out is counted and is to be given back with `forget`. A request
/// that may take long has a token, and ends with [`Error::unwanted`](crate::error::Error::unwanted)
/// once that is cancelled; the method without one is for a caller that waits however long it takes.
pub trait Requests: Send + Sync {
    /// How it is shown.
    fn options(&self) -> &Options;

    /// Where the requests are counted that the kernel makes.
    fn traffic(&self) -> &Traffic;

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
    ///
    /// # Errors
    /// `NotFound`; `ENAMETOOLONG` over 255 bytes; fails if the group's index is damaged.
    fn lookup_for(&self, parent: Ino, name: &[u8], cancel: &CancelToken) -> Result<Entry>;

    /// Why the directory `parent` has no entry `name`, where there is more to say of it: a selector
    /// that picks nothing, a data file that cannot be opened.
    fn why_absent(&self, _parent: Ino, _name: &[u8]) -> Option<String> {
        None
    }

    /// Why a symbolic link leads nowhere, if it does and that is known: which other file is not shown
    /// or, where the `object` is asked for, too, that this is not there.
    fn why_nowhere(&self, _link: Ino, _object: bool) -> Option<String> {
        None
    }

    /// Whether a name that this directory lacks is not there as long as the source is unchanged.
    fn lacks_for_good(&self, _parent: Ino) -> bool {
        false
    }

    /// Gives back `count` lookups.
    fn forget(&self, ino: Ino, count: u64);

    /// The attributes of an inode, worked out at any cost.
    ///
    /// # Errors
    /// `ESTALE` where the number stands for nothing (any more).
    fn getattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Entry>;

    /// The text of a symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG` over 4095 bytes, `EINVAL` for anything else than a symbolic link.
    fn readlink_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<u8>>;

    /// The names of the extended attributes, each with `user.`.
    ///
    /// # Errors
    /// Fails if the object's list of attributes is damaged.
    fn listxattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>>;

    /// The value of an extended attribute; `name` with `user.`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a name without `user.`, `ENODATA` for one that is not there, `E2BIG` for a
    /// value that is too long.
    fn getxattr_for(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>>;

    /// Opens a regular file.
    ///
    /// # Errors
    /// Fails if it is known before reading that its content cannot be served.
    fn open_file_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Opened>;

    /// Opens a directory.
    ///
    /// # Errors
    /// `ENOTDIR` for anything else; fails if the directory cannot be read.
    fn opendir_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Opened>;

    /// Whether the names of the directory stand in an order of their own: that of a file's index.
    fn is_ordered(&self, directory: Ino) -> bool;

    /// Hands the entries of an open directory from `cookie` on (0: from the first) to `take` until
    /// it says that it is full. Each entry that is taken with attributes is counted, except `.` and
    /// `..`.
    ///
    /// # Errors
    /// Fails if the index is damaged at `cookie`; where it is damaged further on, the next call
    /// says so.
    fn list_for(
        &self,
        handle: Handle,
        cookie: u64,
        detail: Detail,
        take: &mut TakeWithAttributes<'_>,
        cancel: &CancelToken,
    ) -> Result<()>;

    /// At most `length` bytes of an open file from `offset` on, fewer at its end only; or none once
    /// nobody waits for them.
    ///
    /// # Errors
    /// Fails if a part that the range touches cannot be read; `ESTALE` once the source has changed;
    /// `ENOMEM` where what would be kept for the next read, with all else that is open, takes too
    /// much.
    fn read_for(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes>;

    /// Whether the names of an open directory are too many to be listed in the order that is asked
    /// for, and stand in that of the file's index.
    fn is_unordered(&self, _handle: Handle) -> bool {
        false
    }

    /// What an open file holds.
    ///
    /// # Errors
    /// Fails as [`read_for`](Self::read_for) does.
    fn version_of(&self, handle: Handle, cancel: &CancelToken) -> Result<Version>;

    /// The bytes of a read, if they are to be had without decoding or waiting.
    ///
    /// # Errors
    /// Fails as [`read_for`](Self::read_for) does.
    fn read_now(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>>;

    /// The first offset from `offset` on of data, or of a hole; the end counts as a hole.
    ///
    /// # Errors
    /// `ENXIO` where there is none.
    fn lseek_for(
        &self,
        handle: Handle,
        offset: u64,
        whence: Whence,
        cancel: &CancelToken,
    ) -> Result<u64>;

    /// Closes what is open.
    fn release(&self, handle: Handle);

    /// Like [`lookup_for`](Self::lookup_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Entry> {
        self.lookup_for(parent, name, &CancelToken::default())
    }

    /// Like [`getattr_for`](Self::getattr_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn getattr(&self, ino: Ino) -> Result<Entry> {
        self.getattr_for(ino, &CancelToken::default())
    }

    /// Like [`readlink_for`](Self::readlink_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.readlink_for(ino, &CancelToken::default())
    }

    /// Like [`listxattr_for`](Self::listxattr_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.listxattr_for(ino, &CancelToken::default())
    }

    /// Like [`getxattr_for`](Self::getxattr_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.getxattr_for(ino, name, &CancelToken::default())
    }

    /// Like [`open_file_for`](Self::open_file_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn open_file(&self, ino: Ino) -> Result<Opened> {
        self.open_file_for(ino, &CancelToken::default())
    }

    /// Like [`opendir_for`](Self::opendir_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn opendir(&self, ino: Ino) -> Result<Opened> {
        self.opendir_for(ino, &CancelToken::default())
    }

    /// Like [`list_for`](Self::list_for), of names alone.
    ///
    /// # Errors
    /// Fails as that does.
    fn readdir(&self, handle: Handle, cookie: u64, take: &mut Take<'_>) -> Result<()> {
        let take = &mut |entry: DirEntry<'_>, _: Option<&Entry>| take(entry);
        self.list_for(handle, cookie, Detail::Names, take, &CancelToken::default())
    }

    /// Like [`list_for`](Self::list_for), with attributes.
    ///
    /// # Errors
    /// Fails as that does.
    fn readdir_plus(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut TakeWithAttributes<'_>,
    ) -> Result<()> {
        let cancel = CancelToken::default();
        self.list_for(handle, cookie, Detail::Attributes, take, &cancel)
    }

    /// Like [`read_for`](Self::read_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn read(&self, handle: Handle, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(handle, offset, length, &CancelToken::default())
    }

    /// Like [`lseek_for`](Self::lseek_for).
    ///
    /// # Errors
    /// Fails as that does.
    fn lseek(&self, handle: Handle, offset: u64, whence: Whence) -> Result<u64> {
        self.lseek_for(handle, offset, whence, &CancelToken::default())
    }
}

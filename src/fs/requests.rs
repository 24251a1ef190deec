//! The requests of the kernel, as methods.

use std::time::Duration;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::Result;
use h5fs_reader::source::identity::Identity;

use crate::fs::options::Options;
use crate::fs::stat::{DirEntry, LookupEntry};
use crate::fs::state::handle::{Handle, OpenedHandle};
use crate::fs::state::traffic::Traffic;

/// An inode number.
pub type Ino = u64;

/// The kind of range that a seek searches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekKind {
    /// A byte that is stored, or not known to be zero.
    Data,
    /// A byte in a range that reads as zeros and is not stored.
    Hole,
}

/// The version of an open file's content, for clients that cache a copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// Length in bytes.
    pub length: u64,
    /// The state of the file; `None` if it is unknown or may change during the read.
    pub identity: Option<Identity>,
    /// Number of times that the source was reopened before.
    pub generation: u32,
}

/// A callback for an entry of a listing. It returns `true`, without taking the entry, if there is
/// no room.
pub type EntryCallback<'t> = dyn FnMut(DirEntry<'_>) -> bool + 't;

/// A callback like [`EntryCallback`], with the attributes of the entry if they are known.
pub type AttributesCallback<'t> = dyn FnMut(DirEntry<'_>, Option<&LookupEntry>) -> bool + 't;

/// The detail of each entry in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingDetail {
    /// Name, number and kind.
    Names,
    /// Also the attributes, if they are known without a lookup.
    Attributes,
}

/// A tree that a mount shows, of one file or of a directory of files.
///
/// Every inode number returned by a lookup is counted, and the caller must release it with
/// `forget`. A request that may take long has a token, and ends with
/// [`Error::unwanted`](h5fs_reader::error::Error::unwanted) when the token is cancelled. The method
/// without a token waits without a limit.
pub trait Requests: Send + Sync {
    /// Returns the options of the tree.
    fn options(&self) -> &Options;

    /// Returns the counters of the kernel's requests.
    fn traffic(&self) -> &Traffic;

    /// Returns the bytes of the filesystem, and how many of them are free.
    fn capacity(&self) -> (u64, u64);

    /// Returns how long the kernel may cache metadata of unchanged files.
    fn lifetime(&self) -> Duration;

    /// Returns a number for the file that contains the inode, in a directory of files. Returns
    /// `None` in the tree of one file.
    fn file_of(&self, _ino: Ino) -> Option<u64> {
        None
    }

    /// Returns the entry `name` of the directory `parent`, counted.
    ///
    /// # Errors
    /// `NotFound`; `ENAMETOOLONG` over 255 bytes; fails if the group's index is damaged.
    fn lookup_for(&self, parent: Ino, name: &[u8], cancel: &CancelToken) -> Result<LookupEntry>;

    /// Returns a detailed reason why the directory `parent` has no entry `name`. Examples are a
    /// selector that selects nothing, and a data file that cannot be opened.
    fn absence_reason(&self, _parent: Ino, _name: &[u8]) -> Option<String> {
        None
    }

    /// Returns why a symbolic link leads nowhere, if the reason is known. The reason is a file that
    /// is not shown or, if `object` is true, a missing object in that file.
    fn dangling_reason(&self, _link: Ino, _object: bool) -> Option<String> {
        None
    }

    /// Returns whether a missing name stays missing until the source changes.
    fn is_absence_final(&self, _parent: Ino) -> bool {
        false
    }

    /// Releases `count` lookups.
    fn forget(&self, ino: Ino, count: u64);

    /// Returns the attributes of an inode, even if they are expensive.
    ///
    /// # Errors
    /// `ESTALE` if the number does not belong to an inode, or no longer.
    fn getattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<LookupEntry>;

    /// Returns the text of a symbolic link.
    ///
    /// # Errors
    /// `ENAMETOOLONG` over 4095 bytes, `EINVAL` for any other type of file.
    fn readlink_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<u8>>;

    /// Returns the names of the extended attributes, each with `user.`.
    ///
    /// # Errors
    /// Fails if the object's list of attributes is damaged.
    fn listxattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>>;

    /// Returns the value of the extended attribute `name`, given with `user.`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a name without `user.`, `ENODATA` if the attribute does not exist, `E2BIG`
    /// if its value is too long.
    fn getxattr_for(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>>;

    /// Opens a regular file.
    ///
    /// # Errors
    /// Fails if it is known before reading that its content cannot be served.
    fn open_file_for(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle>;

    /// Opens a directory.
    ///
    /// # Errors
    /// `ENOTDIR` for anything else; fails if the directory cannot be read.
    fn opendir_for(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle>;

    /// Returns whether the names of the directory have an order of their own, as in a file's index.
    fn is_ordered(&self, directory: Ino) -> bool;

    /// Passes the entries of an open directory from `cookie` (0 is the first) to `take`, until
    /// `take` has no room. Each entry taken with attributes is counted, except `.` and `..`.
    ///
    /// # Errors
    /// Fails if the index is damaged at `cookie`. Damage at a later entry is reported by the next
    /// call.
    fn list_for(
        &self,
        handle: Handle,
        cookie: u64,
        detail: ListingDetail,
        take: &mut AttributesCallback<'_>,
        cancel: &CancelToken,
    ) -> Result<()>;

    /// Reads at most `length` bytes of an open file from `offset`. Fewer bytes are returned only at
    /// the end of the file, or if the request is cancelled.
    ///
    /// # Errors
    /// - Fails if a part that the range touches cannot be read.
    /// - `ESTALE` if the source has changed.
    /// - `ENOMEM` if the state for the next read does not fit into memory with all other open
    ///   files.
    fn read_for(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes>;

    /// Returns whether an open directory has too many names for the requested order, and lists them
    /// in the order of the file's index.
    fn is_unordered(&self, _handle: Handle) -> bool {
        false
    }

    /// Returns the version of an open file's content.
    ///
    /// # Errors
    /// Fails as [`read_for`](Self::read_for) does.
    fn version_of(&self, handle: Handle, cancel: &CancelToken) -> Result<Version>;

    /// Returns the bytes of a read, if they are available without decoding or waiting.
    ///
    /// # Errors
    /// Fails as [`read_for`](Self::read_for) does.
    fn try_read(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>>;

    /// Returns the first offset of data, or of a hole, at or after `offset`. The end of the file
    /// counts as a hole.
    ///
    /// # Errors
    /// `ENXIO` if there is no such offset.
    fn lseek_for(
        &self,
        handle: Handle,
        offset: u64,
        whence: SeekKind,
        cancel: &CancelToken,
    ) -> Result<u64>;

    /// Closes an open file or directory.
    fn release(&self, handle: Handle);

    /// Calls [`lookup_for`](Self::lookup_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `lookup_for` does.
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<LookupEntry> {
        self.lookup_for(parent, name, &CancelToken::default())
    }

    /// Calls [`getattr_for`](Self::getattr_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `getattr_for` does.
    fn getattr(&self, ino: Ino) -> Result<LookupEntry> {
        self.getattr_for(ino, &CancelToken::default())
    }

    /// Calls [`readlink_for`](Self::readlink_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `readlink_for` does.
    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.readlink_for(ino, &CancelToken::default())
    }

    /// Calls [`listxattr_for`](Self::listxattr_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `listxattr_for` does.
    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.listxattr_for(ino, &CancelToken::default())
    }

    /// Calls [`getxattr_for`](Self::getxattr_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `getxattr_for` does.
    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.getxattr_for(ino, name, &CancelToken::default())
    }

    /// Calls [`open_file_for`](Self::open_file_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `open_file_for` does.
    fn open_file(&self, ino: Ino) -> Result<OpenedHandle> {
        self.open_file_for(ino, &CancelToken::default())
    }

    /// Calls [`opendir_for`](Self::opendir_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `opendir_for` does.
    fn opendir(&self, ino: Ino) -> Result<OpenedHandle> {
        self.opendir_for(ino, &CancelToken::default())
    }

    /// Lists only names with [`list_for`](Self::list_for), without cancellation.
    ///
    /// # Errors
    /// Fails as `list_for` does.
    fn readdir(&self, handle: Handle, cookie: u64, take: &mut EntryCallback<'_>) -> Result<()> {
        let take = &mut |entry: DirEntry<'_>, _: Option<&LookupEntry>| take(entry);
        self.list_for(
            handle,
            cookie,
            ListingDetail::Names,
            take,
            &CancelToken::default(),
        )
    }

    /// Lists names and attributes with [`list_for`](Self::list_for), without cancellation.
    ///
    /// # Errors
    /// Fails as `list_for` does.
    fn readdir_plus(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut AttributesCallback<'_>,
    ) -> Result<()> {
        let cancel = CancelToken::default();
        self.list_for(handle, cookie, ListingDetail::Attributes, take, &cancel)
    }

    /// Calls [`read_for`](Self::read_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `read_for` does.
    fn read(&self, handle: Handle, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(handle, offset, length, &CancelToken::default())
    }

    /// Calls [`lseek_for`](Self::lseek_for) without cancellation.
    ///
    /// # Errors
    /// Fails as `lseek_for` does.
    fn lseek(&self, handle: Handle, offset: u64, whence: SeekKind) -> Result<u64> {
        self.lseek_for(handle, offset, whence, &CancelToken::default())
    }
}

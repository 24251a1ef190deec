//! The trait with a method for each request of the kernel.

use std::path::PathBuf;
use std::time::Duration;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::identity::Identity;
use h5fs_view::view::View;

use crate::options::Options;
use crate::stat::{DirEntry, LookupEntry};
use crate::state::handle::{Handle, OpenedHandle};
use crate::state::traffic::RequestCounters;

/// An inode number.
pub type Ino = u64;

/// The kind of position that a seek searches for, as in lseek(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekKind {
    /// The next byte that is stored, or not known to be zero.
    Data,
    /// The next byte in a range that reads as zeros and is not stored.
    Hole,
}

/// The version of an open file's content, so that clients can validate a cached copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// Length of the content in bytes.
    pub length: u64,
    /// The identity of the source's state. `None` if the state is unknown, or if the content may
    /// change while a client reads it.
    pub identity: Option<Identity>,
    /// Number of times that the source was reopened after a change.
    pub generation: u32,
    /// The tag of the source's state, as pages have it. The tag is also known while the content must
    /// not be cached. `None` if the source is not watched for changes.
    pub state_tag: Option<String>,
    /// The path or the URL of the directory whose file is the content, byte for byte. `identity`
    /// then determines the content in every run of this program. `None` if this program computes
    /// the content, or if the server of the file sends no strong entity tag.
    pub stored_in: Option<PathBuf>,
}

/// A question about an object of a data file, in the terms of the protocol h5grove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectQuery {
    /// The path of the object from the root of the data file, with names as in the file.
    pub path: Vec<u8>,
    /// The links that are followed at the end of the path.
    pub links: FollowedLinks,
    /// The question.
    pub question: ObjectQuestion,
}

/// The links to other paths and other files that a query follows at the end of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowedLinks {
    /// No link.
    None,
    /// Links whose target exists.
    Valid,
    /// All links. A link without a target is an error.
    All,
}

/// What a query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectQuestion {
    /// The values of the attributes with these names, or of all attributes.
    Attributes(Option<Vec<Vec<u8>>>),
    /// The description of the object, and of its members if it is a group.
    Metadata,
    /// The paths of the objects below a group.
    Paths,
    /// The elements of a dataset.
    Data {
        /// The selector of a part, with its brackets; empty for all elements.
        selector: Vec<u8>,
        /// The format of the elements.
        format: DataFormat,
        /// Whether the elements are in one dimension.
        is_flat: bool,
        /// Whether numbers are converted to types that JavaScript has.
        is_safe: bool,
    },
    /// The statistics of a dataset, or of the part that the selector names.
    Statistics(Vec<u8>),
}

/// A format of the elements of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// JSON.
    Json,
    /// The bytes of the elements.
    Binary,
    /// NumPy's format.
    Npy,
    /// Comma-separated values.
    Csv,
    /// A picture with unchanged values.
    Tiff,
}

/// The answer to an [`ObjectQuery`].
pub enum ObjectAnswer {
    /// The content of the answer.
    Content(Box<dyn View>),
    /// The object does not exist, for this reason.
    Missing(String),
    /// The query does not fit the object, for this reason.
    Refused(String),
}

/// A callback for an entry of a listing. The callback returns `true`, without taking the entry, if
/// the reply has no room for it.
pub type EntryCallback<'t> = dyn FnMut(DirEntry<'_>) -> bool + 't;

/// A callback like [`EntryCallback`], with the attributes of the entry if they are known.
pub type AttributesCallback<'t> = dyn FnMut(DirEntry<'_>, Option<&LookupEntry>) -> bool + 't;

/// The information about each entry that a listing returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingDetail {
    /// Name, inode number and kind.
    Names,
    /// Also the attributes, if they are known without a lookup.
    Attributes,
}

/// The tree that a mount shows: the tree of one file, or of a directory of files.
///
/// Every lookup increments the lookup count of the inode that it returns, and the caller must
/// release the lookup with `forget`. A request that may take long has a token, and ends with
/// [`Error::cancelled`](h5fs_reader::error::Error::cancelled) when the token is cancelled. Methods
/// without a token cannot be cancelled.
pub trait Requests: Send + Sync {
    /// Returns the options with which the tree was opened.
    fn options(&self) -> &Options;

    /// Returns the counters of the kernel's requests.
    fn traffic(&self) -> &RequestCounters;

    /// Returns the size and the free space of the filesystem, in bytes, for statfs(2).
    fn total_and_free_bytes(&self) -> (u64, u64);

    /// Returns how long the kernel may cache metadata of unchanged files.
    fn cache_lifetime(&self) -> Duration;

    /// Returns the number of the data file that contains the inode `ino`. Returns `None` if the
    /// tree shows only one file.
    fn data_file_number(&self, _ino: Ino) -> Option<u64> {
        None
    }

    /// Looks up `name` in the directory `parent`, increments the lookup count of its inode, and
    /// returns its entry.
    ///
    /// # Errors
    /// `NotFound` if the directory has no such entry; `ENAMETOOLONG` for a name over 255 bytes;
    /// fails if the group's index is damaged.
    fn lookup_with_cancel(
        &self,
        parent: Ino,
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<LookupEntry>;

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

    /// Returns whether the absence of a name in the directory `parent` lasts until the source
    /// changes, so that the kernel may cache it.
    fn is_absence_final(&self, _parent: Ino) -> bool {
        false
    }

    /// Subtracts `count` from the lookup count of the inode `ino`.
    fn forget(&self, ino: Ino, count: u64);

    /// Returns the attributes of the inode `ino`, even if determining them is expensive.
    ///
    /// # Errors
    /// `ESTALE` if no inode has the number `ino`, or the inode belongs to an earlier state of the
    /// source.
    fn getattr_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<LookupEntry>;

    /// Returns the text of the symbolic link `ino`.
    ///
    /// # Errors
    /// `ENAMETOOLONG` for a text over 4095 bytes, `EINVAL` if `ino` is not a symbolic link.
    fn readlink_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<u8>>;

    /// Returns the names of the object's extended attributes, each with the prefix `user.`.
    ///
    /// # Errors
    /// Fails if the object's list of attributes is damaged.
    fn listxattr_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>>;

    /// Returns the value of the extended attribute `name`, which includes the prefix `user.`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a name without `user.`, `ENODATA` if the attribute does not exist, `E2BIG`
    /// if its value is too long for the kernel.
    fn getxattr_with_cancel(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>>;

    /// Opens a regular file.
    ///
    /// # Errors
    /// Fails if it is known before reading that its content cannot be served.
    fn open_file_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle>;

    /// Opens a directory.
    ///
    /// # Errors
    /// `ENOTDIR` if `ino` is not a directory; fails if the directory cannot be read.
    fn opendir_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle>;

    /// Returns whether a listing of the directory is already in the order to display, such as the
    /// order of a group's index. Returns false for a directory on disk, whose entries a caller may
    /// sort.
    fn has_display_order(&self, directory: Ino) -> bool;

    /// Passes the entries of an open directory from `cookie` (0 is the first) to `take`, until
    /// `take` has no room. Increments the lookup count of each entry taken with attributes, except
    /// `.` and `..`.
    ///
    /// # Errors
    /// Fails if the index is damaged at `cookie`. Damage at a later entry is reported by the next
    /// call.
    fn list_with_cancel(
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
    /// - Fails if a chunk or another part that the range needs cannot be read.
    /// - `ESTALE` if the source has changed.
    /// - `ENOMEM` if the state for the next read does not fit into memory with all other open
    ///   files.
    fn read_with_cancel(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes>;

    /// Returns whether the listing of the open directory is in the order of the file's index,
    /// because the directory has too many names for the order that the options request.
    fn is_in_index_order(&self, _handle: Handle) -> bool {
        false
    }

    /// Returns the version of an open file's content.
    ///
    /// # Errors
    /// Fails as [`read_with_cancel`](Self::read_with_cancel) does.
    fn content_version(&self, handle: Handle, cancel: &CancelToken) -> Result<Version>;

    /// Reads like [`read_with_cancel`](Self::read_with_cancel), but only if the bytes are available
    /// without decoding or waiting. Otherwise returns `None`.
    ///
    /// # Errors
    /// Fails as [`read_with_cancel`](Self::read_with_cancel) does.
    fn try_read(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>>;

    /// Returns the first offset of data, or of a hole, at or after `offset`. The end of the file
    /// counts as a hole.
    ///
    /// # Errors
    /// `ENXIO` if there is no data, or no hole, at or after `offset`.
    fn lseek_with_cancel(
        &self,
        handle: Handle,
        offset: u64,
        whence: SeekKind,
        cancel: &CancelToken,
    ) -> Result<u64>;

    /// Answers a query about the data file whose root directory is `ino`.
    ///
    /// # Errors
    /// `NotFound` if `ino` is not the root directory of a data file. Fails if an object cannot be
    /// read.
    fn answer_query(
        &self,
        _ino: Ino,
        _query: &ObjectQuery,
        _cancel: &CancelToken,
    ) -> Result<ObjectAnswer> {
        Err(Error::NotFound)
    }

    /// Closes an open file or directory.
    fn release(&self, handle: Handle);

    /// Calls [`lookup_with_cancel`](Self::lookup_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`lookup_with_cancel`](Self::lookup_with_cancel) does.
    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<LookupEntry> {
        self.lookup_with_cancel(parent, name, &CancelToken::default())
    }

    /// Calls [`getattr_with_cancel`](Self::getattr_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`getattr_with_cancel`](Self::getattr_with_cancel) does.
    fn getattr(&self, ino: Ino) -> Result<LookupEntry> {
        self.getattr_with_cancel(ino, &CancelToken::default())
    }

    /// Calls [`readlink_with_cancel`](Self::readlink_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`readlink_with_cancel`](Self::readlink_with_cancel) does.
    fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        self.readlink_with_cancel(ino, &CancelToken::default())
    }

    /// Calls [`listxattr_with_cancel`](Self::listxattr_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`listxattr_with_cancel`](Self::listxattr_with_cancel) does.
    fn listxattr(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.listxattr_with_cancel(ino, &CancelToken::default())
    }

    /// Calls [`getxattr_with_cancel`](Self::getxattr_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`getxattr_with_cancel`](Self::getxattr_with_cancel) does.
    fn getxattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.getxattr_with_cancel(ino, name, &CancelToken::default())
    }

    /// Calls [`open_file_with_cancel`](Self::open_file_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`open_file_with_cancel`](Self::open_file_with_cancel) does.
    fn open_file(&self, ino: Ino) -> Result<OpenedHandle> {
        self.open_file_with_cancel(ino, &CancelToken::default())
    }

    /// Calls [`opendir_with_cancel`](Self::opendir_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`opendir_with_cancel`](Self::opendir_with_cancel) does.
    fn opendir(&self, ino: Ino) -> Result<OpenedHandle> {
        self.opendir_with_cancel(ino, &CancelToken::default())
    }

    /// Lists only names with [`list_with_cancel`](Self::list_with_cancel), without cancellation.
    ///
    /// # Errors
    /// Fails as [`list_with_cancel`](Self::list_with_cancel) does.
    fn readdir(&self, handle: Handle, cookie: u64, take: &mut EntryCallback<'_>) -> Result<()> {
        let take = &mut |entry: DirEntry<'_>, _: Option<&LookupEntry>| take(entry);
        self.list_with_cancel(
            handle,
            cookie,
            ListingDetail::Names,
            take,
            &CancelToken::default(),
        )
    }

    /// Lists names and attributes with [`list_with_cancel`](Self::list_with_cancel), without
    /// cancellation.
    ///
    /// # Errors
    /// Fails as [`list_with_cancel`](Self::list_with_cancel) does.
    fn readdir_plus(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut AttributesCallback<'_>,
    ) -> Result<()> {
        let cancel = CancelToken::default();
        self.list_with_cancel(handle, cookie, ListingDetail::Attributes, take, &cancel)
    }

    /// Calls [`read_with_cancel`](Self::read_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`read_with_cancel`](Self::read_with_cancel) does.
    fn read(&self, handle: Handle, offset: u64, length: usize) -> Result<Bytes> {
        self.read_with_cancel(handle, offset, length, &CancelToken::default())
    }

    /// Calls [`lseek_with_cancel`](Self::lseek_with_cancel) without cancellation.
    ///
    /// # Errors
    /// Fails as [`lseek_with_cancel`](Self::lseek_with_cancel) does.
    fn lseek(&self, handle: Handle, offset: u64, whence: SeekKind) -> Result<u64> {
        self.lseek_with_cancel(handle, offset, whence, &CancelToken::default())
    }
}

//! A directory tree of files, on this machine or in an object store.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::Result;
use crate::memory::cancel::WantedCheck;
use crate::source::attributes::FileAttributes;
use crate::source::identity::Identity;
use crate::source::local::audience::Readers;
use crate::source::local::changes::ChangeWatcher;
use crate::source::local::file::FileSource;
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::policy::OtherFilesPolicy;
use crate::source::open::SharedOpenSource;
use crate::source::remote::message::Counters;

/// A directory. Every path argument is relative to the directory, and cannot lead outside.
///
/// If no entry exists at a path, the error is [`NotFound`](crate::error::Error::NotFound).
pub trait Directory: Send + Sync + fmt::Debug {
    /// Returns the absolute path of the directory. For a prefix of a store, returns its URL without
    /// the last `/`.
    fn path(&self) -> &Path;

    /// Returns the absolute path of the entry at `path`.
    fn absolute_path(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() {
            self.path().to_path_buf()
        } else {
            self.path().join(path)
        }
    }

    /// Returns whether opening a file needs a request to a server. If so, the metadata of an entry
    /// comes from a listing or from a small request.
    fn is_remote(&self) -> bool {
        false
    }

    /// Checks that the directory still exists.
    ///
    /// # Errors
    /// `NotFound` if the directory was removed, or else the error of the system.
    fn check_exists(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the metadata of the entry at `path`, without following a symbolic link. With
    /// `for_others`, the permission bits are reduced to what the access control list grants.
    ///
    /// # Errors
    /// Fails with the error of the system or the server.
    fn path_info(&self, path: &Path, for_others: bool) -> Result<PathInfo>;

    /// Returns the metadata of an entry whose content will probably be read next. If both the
    /// metadata and the first bytes need a request, one request may return both.
    ///
    /// # Errors
    /// Fails as [`path_info`](Self::path_info) does.
    fn path_info_before_read(&self, path: &Path, for_others: bool) -> Result<PathInfo> {
        self.path_info(path, for_others)
    }

    /// Returns the target of the symbolic link at `path`.
    ///
    /// # Errors
    /// Fails as [`path_info`](Self::path_info) does.
    fn read_link(&self, path: &Path) -> Result<OsString>;

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// Fails as [`path_info`](Self::path_info) does, and with
    /// [`Error::cancelled`](crate::error::Error::cancelled) if `is_wanted` returns false while a
    /// server is waited for.
    fn open(&self, path: &Path, is_wanted: &WantedCheck<'_>) -> Result<OpenedSource>;

    /// Opens the directory at `path` for listing.
    ///
    /// # Errors
    /// Fails as [`path_info`](Self::path_info) does.
    fn list(&self, path: &Path) -> Result<Box<dyn DirectoryEntries>>;

    /// Discards cached listings, so that the next listing sends a request to the server.
    fn forget_listings(&self) {}

    /// Returns the access of a file in this directory to the other files that it references.
    /// `readers` are the users to whom that file is shown.
    fn neighbours(
        &self,
        policy: OtherFilesPolicy,
        guard: Option<MountGuard>,
        readers: Readers,
    ) -> Neighbours;

    /// Returns the total size and the free space, in bytes, of the filesystem that contains the
    /// directory. Returns zeros if they are unknown.
    fn total_and_free_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Returns the network counters, if the directory is remote.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Returns the time since which the server has not responded. Returns `None` if the server
    /// responds or the directory is local.
    fn unanswered_since(&self) -> Option<SystemTime> {
        None
    }
}

/// Metadata of the entry at a path.
#[derive(Debug, Clone)]
pub struct PathInfo {
    /// Type of the entry.
    pub kind: EntryType,
    /// Attributes of the entry.
    pub attributes: FileAttributes,
    /// Storage space of the entry in units of 512 bytes, as in `st_blocks`.
    pub blocks: u64,
    /// Identity of the current state, for comparison with other states.
    pub identity: Identity,
    /// Number that identifies the entry. A different entry at the same path has another number.
    pub entry_id: u64,
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryType {
    /// A directory.
    Directory,
    /// A regular file, or an object.
    File,
    /// A symbolic link.
    Symlink,
    /// A device, a FIFO or a socket, which cannot be read.
    Other,
}

/// An open file.
#[derive(Debug)]
pub struct OpenedSource {
    /// The content of the file.
    pub content: OpenContent,
    /// The number that identifies the file, as in [`PathInfo`].
    pub entry_id: u64,
}

/// The readable content of an open file.
#[derive(Debug)]
pub enum OpenContent {
    /// A file of this machine.
    File(File),
    /// An object in a store.
    Object(SharedOpenSource),
}

impl OpenContent {
    /// Converts the content to a source. `path` is the absolute path by which the file was opened;
    /// `changes` watches the file.
    ///
    /// # Errors
    /// `Io` if the file is not a regular file.
    pub fn into_source(
        self,
        path: &Path,
        changes: Option<&Arc<ChangeWatcher>>,
    ) -> Result<SharedOpenSource> {
        match self {
            OpenContent::File(file) => Ok(Arc::new(FileSource::from_file(file, path, changes)?)),
            OpenContent::Object(object) => Ok(object),
        }
    }

    /// Converts the content like [`into_source`](Self::into_source). The source counts as changed
    /// only when the file's size or times change, see `FileSource::ignoring_recent_writes`.
    ///
    /// # Errors
    /// Fails as [`into_source`](Self::into_source) does.
    pub fn into_source_ignoring_recent_writes(self, path: &Path) -> Result<SharedOpenSource> {
        match self {
            OpenContent::File(file) => {
                let source = FileSource::from_file(file, path, None)?;
                Ok(Arc::new(source.ignoring_recent_writes()))
            }
            OpenContent::Object(object) => Ok(object),
        }
    }
}

/// The entries of an open directory.
pub trait DirectoryEntries: Send {
    /// Calls `visit` with each name from `position` (0 is the first) until `visit` returns `true`.
    /// The name for which it returns `true` is not consumed. The names include `.` and `..`.
    ///
    /// # Errors
    /// Fails with the error of the system or the server.
    fn visit(&mut self, position: u64, visit: &mut EntryVisitor<'_>) -> Result<()>;
}

/// A function that receives each entry of a directory. It returns `true` to stop the listing.
pub type EntryVisitor<'a> = dyn FnMut(&ListedEntry<'_>) -> bool + 'a;

/// An entry of a directory listing.
#[derive(Debug, Clone)]
pub struct ListedEntry<'a> {
    /// The name of the entry.
    pub name: &'a [u8],
    /// Whether the listing identifies the entry as a directory.
    pub is_directory: bool,
    /// Metadata of the entry, if the listing contains it. If not, the caller must request it.
    pub info: Option<PathInfo>,
    /// The listing position after this entry.
    pub next: u64,
}

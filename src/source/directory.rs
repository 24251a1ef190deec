//! A directory of files and all that lies beneath it: of this machine, or of a store.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::Result;
use crate::source::attributes::Attributes;
use crate::source::identity::Identity;
use crate::source::local::audience::Readers;
use crate::source::local::changes::Changes;
use crate::source::local::file::FileSource;
use crate::source::mounts::mount_guard::MountGuard;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::policy::Policy;
use crate::source::open::SharedOpen;
use crate::source::remote::message::Counters;

/// A directory. Each path is relative to it, and nothing outside is reached by one.
///
/// A path at which nothing stands is [`NotFound`](crate::error::Error::NotFound).
pub trait Directory: Send + Sync + fmt::Debug {
    /// Its own path, absolute; of a prefix of a store, its URL without the last `/`.
    fn path(&self) -> &Path;

    /// The absolute path of what stands at `path`.
    fn absolute(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() {
            self.path().to_path_buf()
        } else {
            self.path().join(path)
        }
    }

    /// Whether opening a file takes a request to a server, while a look is answered from a listing, or
    /// by a small request.
    fn is_far(&self) -> bool {
        false
    }

    /// Looks whether it is still there.
    ///
    /// # Errors
    /// `NotFound` if it was removed; else fails with the error of the system.
    fn refuse_removed(&self) -> Result<()> {
        Ok(())
    }

    /// What stands at `path`; of a symbolic link, itself. Where it is shown to other users
    /// (`for_others`), its permission bits let in nobody that its access control list keeps out.
    ///
    /// # Errors
    /// Fails with the error of the system or the server.
    fn look(&self, path: &Path, for_others: bool) -> Result<There>;

    /// Like [`look`](Self::look), of what is likely to be read next: where both take a request, one
    /// for its first bytes may tell what stands there.
    ///
    /// # Errors
    /// Fails as [`look`](Self::look) does.
    fn look_before_reading(&self, path: &Path, for_others: bool) -> Result<There> {
        self.look(path, for_others)
    }

    /// The text of the symbolic link at `path`.
    ///
    /// # Errors
    /// Fails as [`look`](Self::look) does.
    fn read_link(&self, path: &Path) -> Result<OsString>;

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// Fails as [`look`](Self::look) does.
    fn open(&self, path: &Path) -> Result<Opened>;

    /// Opens the directory at `path` to be listed.
    ///
    /// # Errors
    /// Fails as [`look`](Self::look) does.
    fn list(&self, path: &Path) -> Result<Box<dyn Names>>;

    /// Forgets what earlier listings told, so that the next one asks the server.
    fn forget_listings(&self) {}

    /// The files of the directory, as neighbours of one of them, which is shown to these `readers`.
    fn neighbours(&self, policy: Policy, guard: Option<MountGuard>, readers: Readers)
    -> Neighbours;

    /// Bytes of the filesystem that it is on: all, and those that are free.
    fn capacity(&self) -> (u64, u64) {
        (0, 0)
    }

    /// What the network took, if there is one.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Since when the server has not answered, if there is one.
    fn unanswered_since(&self) -> Option<SystemTime> {
        None
    }
}

/// What stands at a path.
#[derive(Debug, Clone)]
pub struct There {
    /// Its kind.
    pub kind: Standing,
    /// Its attributes.
    pub attributes: Attributes,
    /// Stored bytes in units of 512.
    pub blocks: u64,
    /// Tells its state from others.
    pub state: Identity,
    /// Tells what is opened from something else that has taken its place.
    pub number: u64,
}

/// The kind of what stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A directory.
    Directory,
    /// A regular file, or an object.
    File,
    /// A symbolic link.
    Symlink,
    /// A device, a FIFO or a socket: nothing to be read.
    Other,
}

/// A file that is open.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub content: Content,
    /// The number, with the meaning that it has in [`There`].
    pub number: u64,
}

/// What can be read of an open file.
#[derive(Debug)]
pub enum Content {
    /// A file of this machine.
    File(File),
    /// An object of a store.
    Object(SharedOpen),
}

impl Content {
    /// The file as a source, which was opened by the absolute path `path`; `changes` watches it.
    ///
    /// # Errors
    /// `Io` for what is no regular file.
    pub fn source(self, path: &Path, changes: Option<&Arc<Changes>>) -> Result<SharedOpen> {
        match self {
            Content::File(file) => Ok(Arc::new(FileSource::from_file(file, path, changes)?)),
            Content::Object(object) => Ok(object),
        }
    }

    /// Like [`source`](Self::source), in a state that lasts as long as the file's times: see
    /// [`FileSource::by_times`].
    ///
    /// # Errors
    /// Fails as [`source`](Self::source) does.
    pub fn source_by_times(self, path: &Path) -> Result<SharedOpen> {
        match self {
            Content::File(file) => {
                let source = FileSource::from_file(file, path, None)?;
                Ok(Arc::new(source.by_times()))
            }
            Content::Object(object) => Ok(object),
        }
    }
}

/// The names of a directory that is open.
pub trait Names: Send {
    /// Hands the names from `position` on (0: from the first) to `visit` until it answers `true`;
    /// that name is not taken. `.` and `..` are among the names.
    ///
    /// # Errors
    /// Fails with the error of the system or the server.
    fn visit(&mut self, position: u64, visit: &mut Visit<'_>) -> Result<()>;
}

/// Is handed names, until it answers `true`.
pub type Visit<'a> = dyn FnMut(&Listed<'_>) -> bool + 'a;

/// A name in a directory.
#[derive(Debug, Clone)]
pub struct Listed<'a> {
    /// The name.
    pub name: &'a [u8],
    /// Whether a directory is known to stand there.
    pub is_directory: bool,
    /// What stands there, where the listing tells; where it does not, only a look does.
    pub there: Option<There>,
    /// The position of the listing behind it.
    pub next: u64,
}

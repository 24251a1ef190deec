//! A file on disk, read with `pread`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, Result};
use crate::source::growing::GrowingFile;
use crate::source::{SharedSource, Source};
use crate::wire::to_u64;

/// A regular file opened for reading; its length is the one it had then.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    opened: Fingerprint,
}

/// What tells one state of a file from another: device, inode, size, and both change times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Fingerprint {
    /// Of the file that has this `metadata`.
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        Fingerprint {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether both are states of one file.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// How long ago the content changed; `None` where that is in the future.
    pub fn age(&self) -> Option<Duration> {
        let (seconds, nanoseconds) = self.modified;
        let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
        let nanoseconds = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
        let modified = SystemTime::UNIX_EPOCH.checked_add(seconds.checked_add(nanoseconds)?)?;
        SystemTime::now().duration_since(modified).ok()
    }
}

impl FileSource {
    /// Opens the regular file at `path`.
    ///
    /// # Errors
    /// `Io` as the system says; `EISDIR` for a directory, `EINVAL` for anything else that is no regular file.
    pub fn open(path: &Path) -> Result<Self> {
        // A FIFO without a writer would make a plain open wait for ever.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
            .open(path)
            .map_err(|error| Error::io(&error, path.display().to_string()))?;
        Self::from_file(file, path)
    }

    /// The regular file that is open as `file`, opened as `path`.
    pub fn from_file(file: File, path: &Path) -> Result<Self> {
        Self::new(file).map_err(|error| Error::io(&error, path.display().to_string()))
    }

    fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(Errno::EISDIR.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::from(Errno::EINVAL));
        }
        Ok(FileSource {
            file,
            opened: Fingerprint::of(&metadata),
        })
    }

    /// Whether these bytes were in the file when it was opened.
    fn had(&self, at: u64, length: usize) -> bool {
        let end = at.checked_add(to_u64(length));
        end.is_some_and(|end| end <= self.length())
    }

    /// The open file's metadata as it is now.
    pub fn metadata(&self) -> Result<std::fs::Metadata> {
        self.file
            .metadata()
            .map_err(|error| Error::io(&error, "stat of the source"))
    }

    /// Whether somebody has the file locked for writing (flock(2)). The shared lock that this takes to find out is
    /// given back at once.
    ///
    /// # Errors
    /// As the system says where it has no locks.
    pub fn is_locked(&self) -> std::result::Result<bool, Errno> {
        let file = self.file.try_clone();
        let file = file.map_err(|error| Errno::try_from(error).unwrap_or(Errno::EIO))?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_lock) => Ok(false),
            Err((_, Errno::EWOULDBLOCK)) => Ok(true),
            Err((_, errno)) => Err(errno),
        }
    }

    /// The open file's state as it is now.
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        Ok(Fingerprint::of(&self.metadata()?))
    }

    /// The file's state when it was opened, which its length is of.
    pub fn opened(&self) -> Fingerprint {
        self.opened
    }
}

impl Source for FileSource {
    fn length(&self) -> u64 {
        self.opened.size
    }

    fn growing(self: Arc<Self>) -> Option<SharedSource> {
        Some(Arc::new(GrowingFile(self)))
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(buffer, at)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof if self.had(at, buffer.len()) => Error::io(
                    &Errno::EIO.into(),
                    format!("read of {} bytes at {at}: ended early", buffer.len()),
                ),
                io::ErrorKind::UnexpectedEof => Error::corrupt(
                    format!(
                        "{} bytes reach past the end of the file",
                        to_u64(buffer.len())
                    ),
                    at,
                ),
                _ => Error::io(&error, format!("read of {} bytes at {at}", buffer.len())),
            })
    }
}

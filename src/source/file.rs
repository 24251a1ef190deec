//! A file on disk, read with `pread`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::source::acl::Acl;
use crate::source::audience::Audience;
use crate::source::changes::{Changes, FileWatch};
use crate::source::{SharedSource, Source};
use crate::wire::to_u64;

/// How long after the last write nothing is half written any more: a file that only claims to have
/// a writer must not make each look at its damage take that long.
const SETTLED: Duration = Duration::from_secs(1);

/// A regular file opened for reading; its length is the one it had then.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    state: Arc<OpenedState>,
}

/// The state that a file was in when it was opened.
///
/// Its fingerprint alone does not tell it from the next one: a write stamps the file when it
/// begins, and puts its bytes there after that.
#[derive(Debug)]
pub struct OpenedState {
    fingerprint: Fingerprint,
    /// Set before the fingerprint was taken.
    watch: Option<FileWatch>,
    /// Nothing has been written for so long that no write was under way.
    was_calm: bool,
    /// A writer appends to the file, and lets others read.
    may_grow: AtomicBool,
}

impl OpenedState {
    /// The file's fingerprint then.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether a write that was under way will be seen when it ends, or none was.
    pub fn is_settled(&self) -> bool {
        self.was_calm || self.is_watched()
    }

    /// Whether this is over, or what was read of it may have been half written, without a trace in
    /// the file's times.
    pub fn is_over(&self) -> bool {
        let watch = self.watch.as_ref();
        if watch.is_some_and(FileWatch::is_changed) {
            return true;
        }
        // Only its last writer's leaving tells of what came through mapped memory.
        let is_left = || watch.is_some_and(FileWatch::is_closed);
        !self.was_calm && (is_left() || !self.is_watched() && self.fingerprint.is_calm())
    }

    /// From now on a writer may append: that is waited for, and is no change.
    pub(super) fn let_grow(&self) {
        self.may_grow.store(true, Ordering::Relaxed);
    }

    /// Whether a writer may append to the file.
    pub(super) fn may_grow(&self) -> bool {
        self.may_grow.load(Ordering::Relaxed)
    }

    fn is_watched(&self) -> bool {
        self.watch.as_ref().is_some_and(FileWatch::is_local)
    }
}

/// The facts that tell one state of a file from another: device, inode, size, and both change
/// times.
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
        Self::since(self.modified)
    }

    /// Whether the last write began so long ago that it has ended.
    fn is_calm(&self) -> bool {
        // A program that copies a file may have set the time of its content back.
        let age = Self::since(self.changed);
        age.is_some_and(|age| age >= limits::UNSEEN_WRITE)
    }

    fn since((seconds, nanoseconds): (i64, i64)) -> Option<Duration> {
        let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
        let nanoseconds = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
        let then = SystemTime::UNIX_EPOCH.checked_add(seconds.checked_add(nanoseconds)?)?;
        SystemTime::now().duration_since(then).ok()
    }
}

/// The lock that a writer takes on a file; flock(2).
#[derive(Debug)]
pub enum WriteLock {
    /// No writer has it.
    Free,
    /// A writer has it.
    Taken,
    /// The filesystem has no locks, and says so.
    Unsupported(io::Error),
}

impl WriteLock {
    /// The state that the refusal of the shared lock means.
    fn refused(errno: Errno) -> io::Result<Self> {
        match errno {
            Errno::EWOULDBLOCK => Ok(WriteLock::Taken),
            Errno::ENOLCK | Errno::ENOSYS | Errno::EOPNOTSUPP => {
                Ok(WriteLock::Unsupported(errno.into()))
            }
            _ => Err(errno.into()),
        }
    }
}

/// Opens the source for a process that may open no file itself.
pub type Opener = Box<dyn Fn() -> io::Result<File> + Send + Sync>;

/// Opens what stands at `path` for reading.
///
/// # Errors
/// As the system says.
pub fn open(path: &Path) -> io::Result<File> {
    // A FIFO without a writer would make a plain open wait for ever.
    OpenOptions::new()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
        .open(path)
}

impl FileSource {
    /// Opens the regular file at `path`, and has `changes` watch it.
    ///
    /// # Errors
    /// `Io` as the system says; `EISDIR` for a directory, `EINVAL` for anything else that is no
    /// regular file.
    pub fn open(path: &Path, changes: Option<&Arc<Changes>>) -> Result<Self> {
        let file = open(path).map_err(|error| Error::io(&error, path.display().to_string()))?;
        Self::from_file(file, path, changes)
    }

    /// The regular file that is open as `file`, opened as `path`; `changes` watches it.
    pub fn from_file(file: File, path: &Path, changes: Option<&Arc<Changes>>) -> Result<Self> {
        Self::new(file, changes).map_err(|error| Error::io(&error, path.display().to_string()))
    }

    fn new(file: File, changes: Option<&Arc<Changes>>) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(Errno::EISDIR.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::from(Errno::EINVAL));
        }
        // First of all, so that whatever is under way ends after it.
        let watch = changes.and_then(|changes| changes.watch(&file));
        let fingerprint = Fingerprint::of(&file.metadata()?);
        let state = Arc::new(OpenedState {
            fingerprint,
            watch,
            was_calm: fingerprint.is_calm(),
            may_grow: AtomicBool::new(false),
        });
        Ok(FileSource { file, state })
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

    /// The open file's access control list, if it has one.
    pub fn acl(&self) -> Option<Acl> {
        Acl::of_file(&self.file)
    }

    /// The users that may read the open file.
    ///
    /// # Errors
    /// `Io` as the system says.
    pub fn audience(&self) -> Result<Audience> {
        Ok(Audience::of(&self.metadata()?, self.acl()))
    }

    /// Whether a writer has the file locked. The shared lock that this takes to find out is given
    /// back at once.
    ///
    /// # Errors
    /// As the system says.
    pub fn write_lock(&self) -> io::Result<WriteLock> {
        let file = self.file.try_clone()?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_lock) => Ok(WriteLock::Free),
            Err((_, errno)) => WriteLock::refused(errno),
        }
    }

    /// The open file's state as it is now.
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        Ok(Fingerprint::of(&self.metadata()?))
    }

    /// The file's state when it was opened, which its length is of.
    pub fn opened(&self) -> Fingerprint {
        self.state.fingerprint
    }

    /// The file's state when it was opened, which is watched as long as this is kept.
    pub fn state(&self) -> &Arc<OpenedState> {
        &self.state
    }

    /// Whether the file is in another state than when it was opened, as far as can be told.
    pub fn is_changed(&self) -> bool {
        self.state.is_over() || self.fingerprint() != Ok(self.opened())
    }
}

impl Source for FileSource {
    fn length(&self) -> u64 {
        self.state.fingerprint.size
    }

    fn growing(self: Arc<Self>) -> Option<SharedSource> {
        Some(Arc::new(GrowingFile(self)))
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(buffer, at)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof if self.had(at, buffer.len()) => Error::caused(
                    Cause::Failed,
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

/// A file with the length that it has at the moment.
#[derive(Debug)]
pub struct GrowingFile(pub Arc<FileSource>);

impl Source for GrowingFile {
    fn length(&self) -> u64 {
        let now = self.0.metadata().map_or(0, |metadata| metadata.len());
        now.max(self.0.length())
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read_at(at, buffer)
    }

    fn is_growing(&self) -> bool {
        true
    }

    fn is_unsettled(&self) -> bool {
        let age = self.0.fingerprint().map(|now| now.age());
        age.is_ok_and(|age| age.is_none_or(|age| age < SETTLED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// The state of a file that was opened so long after its last change.
    fn opened(age: Duration, watch: Option<FileWatch>) -> OpenedState {
        let file = tempfile::NamedTempFile::new().unwrap();
        let then = SystemTime::now() - age;
        let then = then.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let seconds = i64::try_from(then.as_secs()).unwrap();
        let fingerprint = Fingerprint {
            changed: (seconds, i64::from(then.subsec_nanos())),
            ..Fingerprint::of(&file.as_file().metadata().unwrap())
        };
        OpenedState {
            fingerprint,
            watch,
            was_calm: fingerprint.is_calm(),
            may_grow: AtomicBool::new(false),
        }
    }

    #[test]
    fn a_filesystem_without_locks_is_told_from_one_that_fails() {
        for errno in [Errno::ENOLCK, Errno::ENOSYS, Errno::EOPNOTSUPP] {
            let lock = WriteLock::refused(errno).unwrap();
            assert!(matches!(lock, WriteLock::Unsupported(_)), "{errno}");
        }
        let taken = WriteLock::refused(Errno::EWOULDBLOCK).unwrap();
        assert!(matches!(taken, WriteLock::Taken));
        WriteLock::refused(Errno::EIO).unwrap_err();
    }

    const LONG: Duration = limits::UNSEEN_WRITE;

    #[test]
    fn what_nobody_watches_is_settled_after_its_time() {
        assert!(opened(LONG, None).is_settled() && !opened(LONG, None).is_over());
        let young = opened(LONG / 2, None);
        assert!(!young.is_settled() && !young.is_over());
        // It was young when it was opened, and what was read of it then is not kept.
        let grown_up = OpenedState {
            was_calm: false,
            ..opened(LONG, None)
        };
        assert!(grown_up.is_over());
    }

    #[test]
    fn what_is_watched_is_settled_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let changes = Changes::new().unwrap();
        let watch = || changes.watch(file.as_file());
        let [young, old] = [LONG / 2, LONG].map(|age| opened(age, watch()));
        assert!(young.is_settled() && old.is_settled());
        // A writer that leaves now may have written through mapped memory, but not long ago.
        let writer = File::options().write(true).open(file.path()).unwrap();
        drop(writer);
        changes.look();
        assert!(young.is_over() && !old.is_over());
        let writer = File::options().write(true).open(file.path()).unwrap();
        writer.write_all_at(b"new", 0).unwrap();
        changes.look();
        assert!(old.is_over());
    }
}

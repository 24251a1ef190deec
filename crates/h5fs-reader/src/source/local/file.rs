//! A local file, read with `pread`.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use rustix::fs::{Advice, fadvise};

use crate::error::{Cause, Error, Result};
use crate::limits;
use crate::memory::cancel::WantedCheck;
use crate::source::attributes::FileAttributes;
use crate::source::identity::{Fingerprint, Identity};
use crate::source::local::acl::Acl;
use crate::source::local::changes::{ChangeWatcher, FileWatch};
use crate::source::open::{OpenSource, OpenedState, SharedState, WriteLock};
use crate::source::{SharedSource, Source, Urgency};
use crate::wire::{merge_ranges, to_u64};

/// Time after the last write from which no bytes count as half written. Without this bound, a
/// damaged file that falsely claims to have a writer would delay every read by retries.
const WRITE_SETTLE_TIME: Duration = Duration::from_secs(1);

/// A regular file open for reading. Its length is the length when it was opened.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    state: Arc<FileState>,
}

/// The state of a file when it was opened.
///
/// The identity alone does not distinguish this state from the next: a write updates the times when
/// it starts, and stores its bytes afterwards.
#[derive(Debug)]
struct FileState {
    fingerprint: Fingerprint,
    identity: Identity,
    /// The watch, which was set before the fingerprint was taken.
    watch: Option<FileWatch>,
    /// Whether the last write was so long ago that no write was in progress when the file was
    /// opened.
    had_no_recent_write: bool,
    /// Whether a writer may append to the file while others read.
    may_grow: AtomicBool,
    /// Whether the file counts as changed only when its size or times change, even if the last
    /// write is recent.
    ignores_recent_write: bool,
}

impl OpenedState for FileState {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn has_no_pending_write(&self) -> bool {
        self.had_no_recent_write || self.is_watched()
    }

    fn has_ended(&self) -> bool {
        let watch = self.watch.as_ref();
        if watch.is_some_and(FileWatch::is_changed) {
            return true;
        }
        // Changes through mapped memory are visible only when the last writer closes the file.
        let is_left = || watch.is_some_and(FileWatch::has_writer_closed);
        !self.had_no_recent_write
            && !self.ignores_recent_write
            && (is_left() || !self.is_watched() && has_no_recent_write(&self.fingerprint))
    }

    fn may_grow(&self) -> bool {
        self.may_grow.load(Ordering::Relaxed)
    }
}

impl FileState {
    fn is_watched(&self) -> bool {
        self.watch
            .as_ref()
            .is_some_and(FileWatch::can_report_every_write)
    }
}

/// Returns whether the last write started so long ago that it has ended.
fn has_no_recent_write(fingerprint: &Fingerprint) -> bool {
    let rest = fingerprint.time_since_change();
    rest.is_some_and(|rest| rest >= limits::UNSEEN_WRITE)
}

/// A function that opens the source, for a process that is not allowed to open files.
pub type SourceOpener = Box<dyn Fn() -> io::Result<File> + Send + Sync>;

/// Opens the file at `path` for reading.
///
/// # Errors
/// Fails with the system's error.
pub fn open(path: &Path) -> io::Result<File> {
    // Without `O_NONBLOCK`, opening a FIFO waits for a writer, and opening a leased file waits for
    // the lease. Without `O_NOCTTY`, a terminal would become the controlling terminal.
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
}

/// Opens the regular file of the `O_PATH` descriptor `named` for reading. Opening a device or a
/// FIFO can have side effects, so the descriptor guarantees that no other file is opened.
///
/// # Errors
/// Fails with the system's error:
///
/// - `EISDIR` for a directory
/// - `ELOOP` for a symbolic link
/// - `EINVAL` for any other file that is not regular
/// - `EAGAIN` if another process holds a write lease
pub(crate) fn open_path_descriptor(named: &File) -> io::Result<File> {
    let kind = named.metadata()?.file_type();
    match kind {
        _ if kind.is_file() => reopen(named),
        _ if kind.is_dir() => Err(Errno::EISDIR.into()),
        _ if kind.is_symlink() => Err(Errno::ELOOP.into()),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn reopen(named: &File) -> io::Result<File> {
    let opened = open(Path::new(&format!("/proc/self/fd/{}", named.as_raw_fd())));
    // A deleted file can still be opened this way. `NotFound` means that /proc is not mounted.
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Errno::EIO.into(),
        _ => error,
    })
}

impl FileSource {
    /// Opens the regular file at `path`, watched by `changes`.
    ///
    /// # Errors
    /// `Io` with the system's error: `EISDIR` for a directory, `EINVAL` for any other file that is
    /// not regular.
    pub fn open(path: &Path, changes: Option<&Arc<ChangeWatcher>>) -> Result<Self> {
        let file =
            open(path).map_err(|error| Error::from_io(&error, path.display().to_string()))?;
        Self::from_file(file, path, changes)
    }

    /// Creates a source from the open regular `file`, which was opened as `path`. `changes` watches
    /// the file.
    pub fn from_file(
        file: File,
        path: &Path,
        changes: Option<&Arc<ChangeWatcher>>,
    ) -> Result<Self> {
        Self::new(file, changes).map_err(|error| Error::from_io(&error, path.display().to_string()))
    }

    fn new(file: File, changes: Option<&Arc<ChangeWatcher>>) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(Errno::EISDIR.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::from(Errno::EINVAL));
        }
        // The watch is set first, so that every write in progress ends after that.
        let watch = changes.and_then(|changes| changes.watch(&file));
        let fingerprint = Fingerprint::from_metadata(&file.metadata()?);
        let state = Arc::new(FileState {
            fingerprint,
            identity: Identity::File(fingerprint),
            watch,
            had_no_recent_write: has_no_recent_write(&fingerprint),
            may_grow: AtomicBool::new(false),
            ignores_recent_write: false,
        });
        Ok(FileSource { file, state })
    }

    /// Returns the same source, which counts as changed only when the file's size or times change,
    /// even if the last write is recent. Changes through mapped memory become visible when the
    /// system updates the times.
    #[must_use]
    pub(crate) fn ignoring_recent_writes(self) -> Self {
        let state = FileState {
            fingerprint: self.state.fingerprint,
            identity: self.state.identity.clone(),
            watch: None,
            had_no_recent_write: self.state.had_no_recent_write,
            may_grow: AtomicBool::new(false),
            ignores_recent_write: true,
        };
        FileSource {
            file: self.file,
            state: Arc::new(state),
        }
    }

    /// Returns whether the file had `length` bytes at offset `at` when it was opened.
    fn was_in_file_at_open(&self, at: u64, length: usize) -> bool {
        let end = at.checked_add(to_u64(length));
        end.is_some_and(|end| end <= self.length())
    }

    fn metadata(&self) -> Result<std::fs::Metadata> {
        self.file
            .metadata()
            .map_err(|error| Error::from_io(&error, "stat of the source"))
    }

    fn fingerprint(&self) -> Result<Fingerprint> {
        Ok(Fingerprint::from_metadata(&self.metadata()?))
    }
}

impl OpenSource for FileSource {
    fn opened_state(&self) -> SharedState {
        Arc::<FileState>::clone(&self.state)
    }

    fn is_changed(&self) -> bool {
        self.state.has_ended() || self.fingerprint() != Ok(self.state.fingerprint)
    }

    fn attributes(&self) -> Result<FileAttributes> {
        Ok(FileAttributes::from(&self.metadata()?))
    }

    fn acl(&self) -> Option<Acl> {
        Acl::from_file(&self.file)
    }

    /// Tests the lock of a writer by taking a shared lock, which is released at once.
    fn write_lock(&self) -> io::Result<WriteLock> {
        let file = self.file.try_clone()?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_lock) => Ok(WriteLock::Free),
            Err((_, errno)) => WriteLock::from_lock_error(errno),
        }
    }
}

impl Source for FileSource {
    fn length(&self) -> u64 {
        self.state.fingerprint.size
    }

    /// Records that a writer may append. From now on, growth does not count as a change of the
    /// file.
    fn growing_view(self: Arc<Self>) -> Option<SharedSource> {
        self.state.may_grow.store(true, Ordering::Relaxed);
        Some(Arc::new(GrowingFile(self)))
    }

    fn benefits_from_prefetch(&self) -> bool {
        true
    }

    /// Asks the kernel to read the ranges into its page cache.
    fn prefetch(&self, ranges: &[(u64, u64)], _urgency: Urgency) {
        for (at, length) in merge_ranges(ranges.iter().copied()) {
            // An error is harmless: a filesystem without read-ahead reads on demand.
            let _ = fadvise(&self.file, at, NonZeroU64::new(length), Advice::WillNeed);
        }
    }

    fn read_cancellable(&self, at: u64, buffer: &mut [u8], _: &WantedCheck<'_>) -> Result<()> {
        self.file
            .read_exact_at(buffer, at)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof if self.was_in_file_at_open(at, buffer.len()) => {
                    Error::from_cause(
                        Cause::Unavailable,
                        format!("read of {} bytes at {at}: ended early", buffer.len()),
                    )
                }
                io::ErrorKind::UnexpectedEof => Error::corrupt(
                    format!(
                        "{} bytes reach past the end of the file",
                        to_u64(buffer.len())
                    ),
                    at,
                ),
                _ => Error::from_io(&error, format!("read of {} bytes at {at}", buffer.len())),
            })
    }
}

/// An open file whose `length` is the current length, not the length when it was opened.
#[derive(Debug)]
pub struct GrowingFile(pub Arc<FileSource>);

impl Source for GrowingFile {
    fn length(&self) -> u64 {
        let now = self.0.metadata().map_or(0, |metadata| metadata.len());
        now.max(self.0.length())
    }

    fn read_cancellable(&self, at: u64, buffer: &mut [u8], _: &WantedCheck<'_>) -> Result<()> {
        self.0.read_at(at, buffer)
    }

    fn is_growing(&self) -> bool {
        true
    }

    fn is_recently_written(&self) -> bool {
        let age = self.0.fingerprint().map(|now| Identity::File(now).age());
        age.is_ok_and(|age| age.is_none_or(|age| age < WRITE_SETTLE_TIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::FileExt;
    use std::time::SystemTime;

    /// Returns the state of a file opened `age` after its last change.
    fn state_of_age(age: Duration, watch: Option<FileWatch>) -> FileState {
        let file = tempfile::NamedTempFile::new().unwrap();
        let then = SystemTime::now() - age;
        let then = then.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let seconds = i64::try_from(then.as_secs()).unwrap();
        let fingerprint = Fingerprint {
            changed: (seconds, i64::from(then.subsec_nanos())),
            ..Fingerprint::from_metadata(&file.as_file().metadata().unwrap())
        };
        FileState {
            fingerprint,
            identity: Identity::File(fingerprint),
            watch,
            had_no_recent_write: has_no_recent_write(&fingerprint),
            may_grow: AtomicBool::new(false),
            ignores_recent_write: false,
        }
    }

    const LONG: Duration = limits::UNSEEN_WRITE;

    /// Checks that the open does not wait: an open of a leased file can wait for
    /// `lease-break-time`.
    #[test]
    fn a_path_descriptor_is_opened_without_waiting() {
        use nix::fcntl::{FcntlArg, fcntl};
        use rustix::fs::{CWD, Mode, OFlags, openat};
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "bytes").unwrap();
        let named = openat(CWD, file.path(), OFlags::PATH, Mode::empty()).unwrap();
        let opened = open_path_descriptor(&File::from(named)).unwrap();
        let flags = OFlag::from_bits_retain(fcntl(&opened, FcntlArg::F_GETFL).unwrap());
        assert!(flags.contains(OFlag::O_NONBLOCK), "{flags:?}");
        assert_eq!(io::read_to_string(opened).unwrap(), "bytes");
    }

    #[test]
    fn an_unwatched_file_settles_after_a_time() {
        assert!(
            state_of_age(LONG, None).has_no_pending_write()
                && !state_of_age(LONG, None).has_ended()
        );
        let young = state_of_age(LONG / 2, None);
        assert!(!young.has_no_pending_write() && !young.has_ended());
        // The file was young when it was opened, so bytes read at that time must not be kept.
        let grown_up = FileState {
            had_no_recent_write: false,
            ..state_of_age(LONG, None)
        };
        assert!(grown_up.has_ended());
        let by_times = FileState {
            ignores_recent_write: true,
            ..grown_up
        };
        assert!(!by_times.has_ended() && !by_times.has_no_pending_write());
    }

    #[test]
    fn a_watched_file_settles_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let changes = ChangeWatcher::new().unwrap();
        let watch = || changes.watch(file.as_file());
        let [young, old] = [LONG / 2, LONG].map(|age| state_of_age(age, watch()));
        assert!(young.has_no_pending_write() && old.has_no_pending_write());
        // Closing the file reveals earlier writes through mapped memory. Only a state that was
        // not calm when the file was opened may have missed them.
        let writer = File::options().write(true).open(file.path()).unwrap();
        drop(writer);
        changes.read_pending();
        assert!(young.has_ended() && !old.has_ended());
        let writer = File::options().write(true).open(file.path()).unwrap();
        writer.write_all_at(b"new", 0).unwrap();
        changes.read_pending();
        assert!(old.has_ended());
    }
}

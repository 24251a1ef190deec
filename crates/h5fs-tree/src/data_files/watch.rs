//! Detects whether the source has changed since it was opened.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::attributes::FileAttributes;
use h5fs_reader::source::identity::Identity;
use h5fs_reader::source::local::changes::ChangeWatcher;
use h5fs_reader::source::local::file::{FileSource, SourceOpener};
use h5fs_reader::source::open::{SharedOpenSource, SharedState};
use h5fs_reader::source::remote::connection::Connection;
use h5fs_reader::source::remote::object::RemoteObject;
use nix::errno::Errno;

/// Time for which the result of a check for changes is valid, unless `OpenedState::has_ended`
/// reports the end of the opened state earlier.
const CHECK_VALIDITY: Duration = Duration::from_millis(100);

/// Time after a change during which another change may get the same time stamp, and the writer may
/// still be active.
const SETTLING: Duration = Duration::from_millis(500);

/// Pause after a failed attempt to reopen a file, because a writer may be in the middle of writing
/// it.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Pause after a failed attempt to reopen a remote object. It is longer than for files, because
/// each check is a request to the server.
const REMOTE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The state of the source when it was opened, with a watch for changes.
pub(crate) struct SourceWatch {
    path: PathBuf,
    /// The path by which the source was opened. Only its last component may be a symbolic link.
    given_path: PathBuf,
    /// The watcher that receives a notification when a process completes a write to the source.
    changes: Option<Arc<ChangeWatcher>>,
    /// The connection to the server of the source, or `None` if the source is a local file.
    store: Option<Arc<Connection>>,
    /// The function that opens the source again. `None` if this process opens the path itself.
    opener: Option<SourceReopener>,
    state: Mutex<WatchState>,
}

/// A function that receives the token of a request, and opens the source again for that request.
pub(crate) type SourceReopener =
    Box<dyn Fn(&CancelToken) -> Result<SharedOpenSource> + Send + Sync>;

struct WatchState {
    file: SharedOpenSource,
    opened: SharedState,
    opened_at: Instant,
    checked_at: Instant,
    is_changed: bool,
    /// Whether the source had changed recently when it was opened.
    was_recently_changed: bool,
}

/// A source that was opened again, before the watch switches to it.
pub(crate) struct ReopenedSource(WatchState);

impl SourceWatch {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let changes = ChangeWatcher::new();
        let file = FileSource::open(path, changes.as_ref())?;
        Ok(SourceWatch {
            changes,
            ..Self::from_file(path, Arc::new(file))
        })
    }

    /// Opens the remote object at the URL of `store`, and creates a watch for it.
    ///
    /// # Errors
    /// `ENOENT` if the object does not exist; otherwise the error of the server.
    pub(crate) fn open_remote(store: &Arc<Connection>) -> Result<Self> {
        let object = open_remote_object(store, &CancelToken::default())?;
        let again = Arc::clone(store);
        Ok(SourceWatch {
            store: Some(Arc::clone(store)),
            ..Self::from_file(store.url(), object).with_cancellable_reopener(Box::new(
                move |cancel| open_remote_object(&again, cancel),
            ))
        })
    }

    /// Creates a watch for the open file `file`, which was opened at `path`.
    pub(crate) fn from_file(path: &Path, file: SharedOpenSource) -> Self {
        SourceWatch {
            path: path.to_path_buf(),
            given_path: path.to_path_buf(),
            changes: None,
            store: None,
            opener: None,
            state: Mutex::new(WatchState::new(file)),
        }
    }

    /// Sets the path by which the source was opened to `named`. Only its last component may be a
    /// symbolic link.
    pub(crate) fn with_named_path(self, named: PathBuf) -> Self {
        SourceWatch {
            given_path: named,
            ..self
        }
    }

    /// Sets the watcher that receives notifications of writes to the source.
    pub(crate) fn with_changes(self, changes: Option<Arc<ChangeWatcher>>) -> Self {
        SourceWatch { changes, ..self }
    }

    /// Sets the function that opens the source again, for a request with a token.
    pub(crate) fn with_cancellable_reopener(self, opener: SourceReopener) -> Self {
        SourceWatch {
            opener: Some(opener),
            ..self
        }
    }

    /// Sets the function that opens the source again, without a token.
    pub(crate) fn with_reopener(self, opener: SourceOpener) -> Self {
        let (path, changes) = (self.path.clone(), self.changes.clone());
        let again = move |_: &CancelToken| -> Result<SharedOpenSource> {
            let failed = |error| Error::from_io(&error, path.display().to_string());
            let file = opener().map_err(failed)?;
            Ok(Arc::new(FileSource::from_file(
                file,
                &path,
                changes.as_ref(),
            )?))
        };
        self.with_cancellable_reopener(Box::new(again))
    }

    /// Returns the identity of the source when it was opened.
    pub(crate) fn identity(&self) -> Identity {
        lock(&self.state).opened.identity().clone()
    }

    /// Returns the connection to the server of the source, or `None` if the source is a local file.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        self.store.as_ref()
    }

    /// Returns the pause after a failed attempt to reopen the source. The pause gives a writer time
    /// to complete a file, and limits the requests to a server.
    pub(crate) fn retry_delay(&self) -> Duration {
        if self.file().is_remote() {
            REMOTE_RETRY_DELAY
        } else {
            RETRY_DELAY
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn given_path(&self) -> &Path {
        &self.given_path
    }

    /// Returns the open file.
    pub(crate) fn file(&self) -> SharedOpenSource {
        Arc::clone(&lock(&self.state).file)
    }

    /// Returns the watcher that receives notifications of writes to the source and to files that it
    /// references.
    pub(crate) fn changes(&self) -> Option<&Arc<ChangeWatcher>> {
        self.changes.as_ref()
    }

    /// Returns the state of the source when it was opened.
    pub(crate) fn opened_state(&self) -> SharedState {
        Arc::clone(&lock(&self.state).opened)
    }

    /// Returns the size, owner, mode and times of the open source.
    pub(crate) fn attributes(&self) -> Result<FileAttributes> {
        lock(&self.state).file.attributes()
    }

    /// Returns whether the source has changed since it was opened, according to recent checks.
    pub(crate) fn is_changed(&self) -> bool {
        let mut state = lock(&self.state);
        if state.checked_at.elapsed() >= CHECK_VALIDITY || state.opened.has_ended() {
            state.check();
        }
        state.is_changed
    }

    /// Checks the source for changes, unless a recent check exists. `cancel` cancels waiting for
    /// the result.
    ///
    /// # Errors
    /// Fails as
    /// [`OpenSource::await_change_check`](h5fs_reader::source::open::OpenSource::await_change_check)
    /// does.
    pub(crate) fn refresh(&self, cancel: &CancelToken) -> Result<()> {
        self.file().await_change_check(cancel)?;
        lock(&self.state).check();
        Ok(())
    }

    /// Checks now whether the source has changed since it was opened.
    pub(crate) fn is_changed_now(&self) -> bool {
        let mut state = lock(&self.state);
        state.check();
        state.is_changed
    }

    /// Returns whether the source [`is_changed`](Self::is_changed), or may have changed unnoticed
    /// right after it was opened.
    pub(crate) fn may_have_grown(&self) -> bool {
        self.is_changed() || {
            let state = lock(&self.state);
            state.was_recently_changed && state.opened_at.elapsed() >= SETTLING
        }
    }

    /// Returns whether the source had changed recently when it was opened.
    pub(crate) fn was_recently_changed(&self) -> bool {
        lock(&self.state).was_recently_changed
    }

    /// Opens the file that exists at the path now, for a request with the token `cancel`.
    pub(crate) fn reopen(&self, cancel: &CancelToken) -> Result<ReopenedSource> {
        let file = match &self.opener {
            Some(opener) => opener(cancel)?,
            None => Arc::new(FileSource::open(&self.path, self.changes.as_ref())?),
        };
        Ok(ReopenedSource(WatchState::new(file)))
    }

    /// Returns whether `reopened` is the watched file, changed or not, rather than another file
    /// with the same name.
    pub(crate) fn is_same_file(&self, reopened: &ReopenedSource) -> bool {
        self.identity()
            .is_of_same_file(reopened.0.opened.identity())
    }

    /// Watches the source `reopened` from now on, in place of the old one.
    pub(crate) fn switch_to(&self, reopened: ReopenedSource) {
        *lock(&self.state) = reopened.0;
    }
}

impl ReopenedSource {
    /// Returns the opened file.
    pub(crate) fn file(&self) -> SharedOpenSource {
        Arc::clone(&self.0.file)
    }

    /// Checks now whether the file has changed since it was opened.
    pub(crate) fn is_changed_now(&mut self) -> bool {
        self.0.check();
        self.0.is_changed
    }

    /// Returns whether the file had changed recently when it was opened.
    pub(crate) fn was_recently_changed(&self) -> bool {
        self.0.was_recently_changed
    }
}

impl WatchState {
    fn new(file: SharedOpenSource) -> Self {
        let opened = file.opened_state();
        let age = opened.identity().age();
        let now = Instant::now();
        WatchState {
            file,
            opened,
            opened_at: now,
            checked_at: now,
            is_changed: false,
            was_recently_changed: age.is_none_or(|age| age < SETTLING),
        }
    }

    fn check(&mut self) {
        self.checked_at = Instant::now();
        // A change is final. The file may return to its old state, but bytes read in between do
        // not.
        self.is_changed |= self.file.is_changed();
    }
}

/// Opens the remote object at the URL of `store`, for a request with the token `cancel`.
fn open_remote_object(store: &Arc<Connection>, cancel: &CancelToken) -> Result<SharedOpenSource> {
    let found = RemoteObject::find(store, b"", &|| !cancel.is_cancelled())?;
    let missing = || Error::from_io(&Errno::ENOENT.into(), store.url().display().to_string());
    Ok(Arc::new(found.ok_or_else(missing)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let watch = SourceWatch::new(&path).unwrap();
        assert!(!watch.is_changed_now());
        std::fs::write(&path, b"newer").unwrap();
        assert!(watch.is_changed_now() && watch.is_changed());
        let renewed = watch.reopen(&CancelToken::default()).unwrap();
        assert_eq!(renewed.file().length(), 5);
        assert!(watch.is_same_file(&renewed));
        watch.switch_to(renewed);
        assert!(!watch.is_changed_now());
        // After a replacement, the path no longer refers to the opened file.
        std::fs::write(directory.path().join("next"), b"newer").unwrap();
        std::fs::rename(directory.path().join("next"), &path).unwrap();
        assert!(watch.is_changed_now());
        assert!(!watch.is_same_file(&watch.reopen(&CancelToken::default()).unwrap()));
    }

    #[test]
    fn a_change_during_opening_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let watch = SourceWatch::new(&path).unwrap();
        let written = Instant::now();
        let mut renewed = watch.reopen(&CancelToken::default()).unwrap();
        assert!(!renewed.is_changed_now());
        assert!(renewed.was_recently_changed() || written.elapsed() >= SETTLING / 2);
        std::fs::write(&path, b"newer").unwrap();
        assert!(renewed.is_changed_now());
    }

    #[test]
    fn a_recently_modified_source_is_checked_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let begun = Instant::now();
        let watch = SourceWatch::new(&path).unwrap();
        assert!(!watch.may_have_grown() || begun.elapsed() >= SETTLING);
        std::thread::sleep(SETTLING);
        assert!(watch.may_have_grown() && !watch.is_changed_now());
        watch.switch_to(watch.reopen(&CancelToken::default()).unwrap());
        std::thread::sleep(SETTLING);
        assert!(!watch.may_have_grown());
    }
}

//! Watches whether the source is still the file that was opened.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::memory::cancel::CancelToken;
use crate::memory::lock::lock;
use crate::source::attributes::Attributes;
use crate::source::identity::Identity;
use crate::source::local::changes::Changes;
use crate::source::local::file::{FileSource, Opener};
use crate::source::open::{SharedOpen, SharedState};
use crate::source::remote::connection::Connection;
use crate::source::remote::object::RemoteObject;

/// How long what was seen of the source is taken for true where nothing is read from it.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long after a change the next one may get the same time stamp, and the writer may be about to
/// make more.
const SETTLING: Duration = Duration::from_millis(500);

/// How long a source that cannot be opened again is left alone: a writer may be in the middle of
/// it.
const RETRY: Duration = Duration::from_millis(100);

/// The same for an object: each look is a request.
const REMOTE_RETRY: Duration = Duration::from_secs(5);

/// Keeps the source's state as it was when it was opened.
pub(in crate::fs) struct Watch {
    path: PathBuf,
    /// The path by which it was opened, in which only the last name may be a symbolic link.
    named: PathBuf,
    /// Tells of writes when they end.
    changes: Option<Arc<Changes>>,
    /// What has the source, unless it is a file.
    store: Option<Arc<Connection>>,
    /// Opens it again; `None` where this process opens the path.
    opener: Option<Reopen>,
    state: Mutex<State>,
}

/// Opens the source anew, for a request with this token.
pub(in crate::fs) type Reopen = Box<dyn Fn(&CancelToken) -> Result<SharedOpen> + Send + Sync>;

struct State {
    file: SharedOpen,
    opened: SharedState,
    when: Instant,
    looked: Instant,
    changed: bool,
    /// It had only just been changed when it was opened.
    young: bool,
}

/// The source opened once more, to be watched in place of what was open before.
pub(in crate::fs) struct Reopened(State);

impl Watch {
    pub(in crate::fs) fn new(path: &Path) -> Result<Self> {
        let changes = Changes::new();
        let file = FileSource::open(path, changes.as_ref())?;
        Ok(Watch {
            changes,
            ..Self::over(path, Arc::new(file))
        })
    }

    /// Opens and watches the object of the URL that `store` was started for.
    ///
    /// # Errors
    /// `ENOENT` where there is none; else fails with the server's error.
    pub(in crate::fs) fn of_object(store: &Arc<Connection>) -> Result<Self> {
        let object = store_object(store)?;
        let again = Arc::clone(store);
        Ok(Watch {
            store: Some(Arc::clone(store)),
            ..Self::over(store.url(), object).reopened_by(Box::new(move |_| store_object(&again)))
        })
    }

    /// Watches the file that is open as `file`.
    pub(in crate::fs) fn over(path: &Path, file: SharedOpen) -> Self {
        Watch {
            path: path.to_path_buf(),
            named: path.to_path_buf(),
            changes: None,
            store: None,
            opener: None,
            state: Mutex::new(State::new(file)),
        }
    }

    /// The file was opened by the path `named`, in which only the last name may be a symbolic link.
    pub(in crate::fs) fn opened_by(self, named: PathBuf) -> Self {
        Watch { named, ..self }
    }

    /// `changes` tells of writes to it.
    pub(in crate::fs) fn told_by(self, changes: Option<Arc<Changes>>) -> Self {
        Watch { changes, ..self }
    }

    /// The source is opened again by `opener`.
    pub(in crate::fs) fn reopened_by(self, opener: Reopen) -> Self {
        Watch {
            opener: Some(opener),
            ..self
        }
    }

    /// The path is opened again by `opener`.
    pub(in crate::fs) fn opened_again_by(self, opener: Opener) -> Self {
        let (path, changes) = (self.path.clone(), self.changes.clone());
        let again = move |_: &CancelToken| -> Result<SharedOpen> {
            let failed = |error| Error::io(&error, path.display().to_string());
            let file = opener().map_err(failed)?;
            Ok(Arc::new(FileSource::from_file(
                file,
                &path,
                changes.as_ref(),
            )?))
        };
        self.reopened_by(Box::new(again))
    }

    /// What tells the source's state, when it was opened, from others.
    pub(in crate::fs) fn identity(&self) -> Identity {
        lock(&self.state).opened.identity().clone()
    }

    /// What has the source, unless it is a file.
    pub(in crate::fs) fn store(&self) -> Option<&Arc<Connection>> {
        self.store.as_ref()
    }

    /// How long the source is left alone after it could not be opened anew: a writer may be in the
    /// middle of a file, and each look at an object is a request.
    pub(in crate::fs) fn retry(&self) -> Duration {
        if self.file().is_far() {
            REMOTE_RETRY
        } else {
            RETRY
        }
    }

    pub(in crate::fs) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::fs) fn named(&self) -> &Path {
        &self.named
    }

    /// The open file.
    pub(in crate::fs) fn file(&self) -> SharedOpen {
        Arc::clone(&lock(&self.state).file)
    }

    /// The source of news about writes to it, and to its neighbours.
    pub(in crate::fs) fn changes(&self) -> Option<&Arc<Changes>> {
        self.changes.as_ref()
    }

    /// The state that it was in when it was opened.
    pub(in crate::fs) fn opened(&self) -> SharedState {
        Arc::clone(&lock(&self.state).opened)
    }

    /// The open source's attributes.
    pub(in crate::fs) fn attributes(&self) -> Result<Attributes> {
        lock(&self.state).file.attributes()
    }

    /// Whether the source has changed since it was opened, as far as was seen lately.
    pub(in crate::fs) fn is_changed(&self) -> bool {
        let mut state = lock(&self.state);
        if state.looked.elapsed() >= PATIENCE || state.opened.is_over() {
            state.look();
        }
        state.changed
    }

    /// Waits until it was looked a short while ago whether the source has changed.
    ///
    /// # Errors
    /// Fails as [`OpenSource::refresh`](crate::source::open::OpenSource::refresh) does.
    pub(in crate::fs) fn refresh(&self, cancel: &CancelToken) -> Result<()> {
        self.file().refresh(cancel)?;
        lock(&self.state).look();
        Ok(())
    }

    /// Whether the source has changed since it was opened, as it is now.
    pub(in crate::fs) fn is_changed_now(&self) -> bool {
        let mut state = lock(&self.state);
        state.look();
        state.changed
    }

    /// Whether it [`is_changed`](Self::is_changed), or may have changed without a trace right after
    /// it was opened.
    pub(in crate::fs) fn may_have_grown(&self) -> bool {
        self.is_changed() || {
            let state = lock(&self.state);
            state.young && state.when.elapsed() >= SETTLING
        }
    }

    /// Whether the source had only just been changed when it was opened.
    pub(in crate::fs) fn is_young(&self) -> bool {
        lock(&self.state).young
    }

    /// Opens the file that stands at the path now, for a request with this token.
    pub(in crate::fs) fn reopen(&self, cancel: &CancelToken) -> Result<Reopened> {
        let file = match &self.opener {
            Some(opener) => opener(cancel)?,
            None => Arc::new(FileSource::open(&self.path, self.changes.as_ref())?),
        };
        Ok(Reopened(State::new(file)))
    }

    /// Whether `reopened` is the file that is watched, changed or not, and not another one of its
    /// name.
    pub(in crate::fs) fn is_same_file(&self, reopened: &Reopened) -> bool {
        self.identity()
            .is_of_same_file(reopened.0.opened.identity())
    }

    /// Watches `reopened` from now on.
    pub(in crate::fs) fn watch(&self, reopened: Reopened) {
        *lock(&self.state) = reopened.0;
    }
}

impl Reopened {
    /// The open file.
    pub(in crate::fs) fn file(&self) -> SharedOpen {
        Arc::clone(&self.0.file)
    }

    /// Whether it has changed since it was opened, as it is now.
    pub(in crate::fs) fn is_changed_now(&mut self) -> bool {
        self.0.look();
        self.0.changed
    }

    /// Whether it had only just been changed when it was opened.
    pub(in crate::fs) fn is_young(&self) -> bool {
        self.0.young
    }
}

impl State {
    fn new(file: SharedOpen) -> Self {
        let opened = file.state();
        let age = opened.identity().age();
        let now = Instant::now();
        State {
            file,
            opened,
            when: now,
            looked: now,
            changed: false,
            young: age.is_none_or(|age| age < SETTLING),
        }
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        // A change is final: the file may look the same again, what was read in between does not.
        self.changed |= self.file.is_changed();
    }
}

/// The object of a store's URL, opened.
fn store_object(store: &Arc<Connection>) -> Result<SharedOpen> {
    let found = RemoteObject::find(store, b"")?;
    let missing = || Error::io(&Errno::ENOENT.into(), store.url().display().to_string());
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
        let watch = Watch::new(&path).unwrap();
        assert!(!watch.is_changed_now());
        std::fs::write(&path, b"newer").unwrap();
        assert!(watch.is_changed_now() && watch.is_changed());
        let renewed = watch.reopen(&CancelToken::default()).unwrap();
        assert_eq!(renewed.file().length(), 5);
        assert!(watch.is_same_file(&renewed));
        watch.watch(renewed);
        assert!(!watch.is_changed_now());
        // One that is replaced by another of its name is no longer the file that was opened.
        std::fs::write(directory.path().join("next"), b"newer").unwrap();
        std::fs::rename(directory.path().join("next"), &path).unwrap();
        assert!(watch.is_changed_now());
        assert!(!watch.is_same_file(&watch.reopen(&CancelToken::default()).unwrap()));
    }

    #[test]
    fn what_changes_while_it_is_opened_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let watch = Watch::new(&path).unwrap();
        let written = Instant::now();
        let mut renewed = watch.reopen(&CancelToken::default()).unwrap();
        assert!(!renewed.is_changed_now());
        assert!(renewed.is_young() || written.elapsed() >= SETTLING / 2);
        std::fs::write(&path, b"newer").unwrap();
        assert!(renewed.is_changed_now());
    }

    #[test]
    fn what_is_young_is_looked_at_once_more() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let begun = Instant::now();
        let watch = Watch::new(&path).unwrap();
        assert!(!watch.may_have_grown() || begun.elapsed() >= SETTLING);
        std::thread::sleep(SETTLING);
        assert!(watch.may_have_grown() && !watch.is_changed_now());
        watch.watch(watch.reopen(&CancelToken::default()).unwrap());
        std::thread::sleep(SETTLING);
        assert!(!watch.may_have_grown());
    }
}

//! Watches whether the source is still the file that was opened.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::memory::lock::lock;
use crate::source::changes::Changes;
use crate::source::file::{self, FileSource, Fingerprint, OpenedState, Opener};

/// How long what was seen of the source is taken for true where nothing is read from it.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long after a change the next one may get the same time stamp, and the writer may be about to
/// make more.
const SETTLING: Duration = Duration::from_millis(500);

/// Keeps the source's state as it was when it was opened.
pub(super) struct Watch {
    path: PathBuf,
    /// The path by which it was opened, in which only the last name may be a symbolic link.
    named: PathBuf,
    /// Tells of writes when they end.
    changes: Option<Arc<Changes>>,
    /// Opens the path again; `None` where this process does.
    opener: Option<Opener>,
    state: Mutex<State>,
}

struct State {
    file: Arc<FileSource>,
    opened: Fingerprint,
    when: Instant,
    looked: Instant,
    changed: bool,
    /// It had only just been changed when it was opened.
    young: bool,
}

/// The source opened once more, to be watched in place of what was open before.
pub(super) struct Reopened(State);

impl Watch {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let changes = Changes::new();
        let file = FileSource::open(path, changes.as_ref())?;
        Ok(Watch {
            changes,
            ..Self::over(path, file)
        })
    }

    /// Watches the file that is open as `file`.
    pub(super) fn over(path: &Path, file: FileSource) -> Self {
        Watch {
            path: path.to_path_buf(),
            named: path.to_path_buf(),
            changes: None,
            opener: None,
            state: Mutex::new(State::new(file)),
        }
    }

    /// The file was opened by the path `named`, in which only the last name may be a symbolic link.
    pub(super) fn opened_by(self, named: PathBuf) -> Self {
        Watch { named, ..self }
    }

    /// `changes` tells of writes to it.
    pub(super) fn told_by(self, changes: Option<Arc<Changes>>) -> Self {
        Watch { changes, ..self }
    }

    /// The path is opened again by `opener`.
    pub(super) fn opened_again_by(self, opener: Opener) -> Self {
        let opener = Some(opener);
        Watch { opener, ..self }
    }

    /// The state of the file when it was opened.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        lock(&self.state).opened
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn named(&self) -> &Path {
        &self.named
    }

    /// The open file.
    pub(super) fn file(&self) -> Arc<FileSource> {
        Arc::clone(&lock(&self.state).file)
    }

    /// The source of news about writes to it, and to its neighbours.
    pub(super) fn changes(&self) -> Option<&Arc<Changes>> {
        self.changes.as_ref()
    }

    /// The state that it was in when it was opened.
    pub(super) fn opened(&self) -> Arc<OpenedState> {
        Arc::clone(lock(&self.state).file.state())
    }

    /// The open file's metadata.
    pub(super) fn metadata(&self) -> Result<std::fs::Metadata> {
        lock(&self.state).file.metadata()
    }

    /// Whether the source has changed since it was opened, as far as was seen lately.
    pub(super) fn is_changed(&self) -> bool {
        let mut state = lock(&self.state);
        if state.looked.elapsed() >= PATIENCE || state.file.state().is_over() {
            state.look();
        }
        state.changed
    }

    /// Whether the source has changed since it was opened, as it is now.
    pub(super) fn is_changed_now(&self) -> bool {
        let mut state = lock(&self.state);
        state.look();
        state.changed
    }

    /// As [`is_changed`](Self::is_changed), or it may have changed without a trace right after it
    /// was opened.
    pub(super) fn may_have_grown(&self) -> bool {
        self.is_changed() || {
            let state = lock(&self.state);
            state.young && state.when.elapsed() >= SETTLING
        }
    }

    /// Whether the source had only just been changed when it was opened.
    pub(super) fn is_young(&self) -> bool {
        lock(&self.state).young
    }

    /// The file that stands at the path now.
    pub(super) fn reopen(&self) -> Result<Reopened> {
        let opened = match &self.opener {
            Some(opener) => opener(),
            None => file::open(&self.path),
        };
        let failed = |error| Error::io(&error, self.path.display().to_string());
        let file =
            FileSource::from_file(opened.map_err(failed)?, &self.path, self.changes.as_ref())?;
        Ok(Reopened(State::new(file)))
    }

    /// Whether `reopened` is the file that is watched, changed or not, and not another one of its
    /// name.
    pub(super) fn is_same_file(&self, reopened: &Reopened) -> bool {
        self.fingerprint().is_of_same_file(&reopened.0.opened)
    }

    /// Watches `reopened` from now on.
    pub(super) fn watch(&self, reopened: Reopened) {
        *lock(&self.state) = reopened.0;
    }
}

impl Reopened {
    /// The open file.
    pub(super) fn file(&self) -> Arc<FileSource> {
        Arc::clone(&self.0.file)
    }

    /// Whether it has changed since it was opened, as it is now.
    pub(super) fn is_changed_now(&mut self) -> bool {
        self.0.look();
        self.0.changed
    }

    /// Whether it had only just been changed when it was opened.
    pub(super) fn is_young(&self) -> bool {
        self.0.young
    }
}

impl State {
    fn new(file: FileSource) -> Self {
        let file = Arc::new(file);
        let opened = file.opened();
        let now = Instant::now();
        State {
            file,
            opened,
            when: now,
            looked: now,
            changed: false,
            young: opened.age().is_none_or(|age| age < SETTLING),
        }
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        // A change is final: the file may look the same again, what was read in between does not.
        self.changed |= self.file.is_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn a_change_is_seen_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let watch = Watch::new(&path).unwrap();
        assert!(!watch.is_changed_now());
        std::fs::write(&path, b"newer").unwrap();
        assert!(watch.is_changed_now() && watch.is_changed());
        let renewed = watch.reopen().unwrap();
        assert_eq!(renewed.file().length(), 5);
        assert!(watch.is_same_file(&renewed));
        watch.watch(renewed);
        assert!(!watch.is_changed_now());
        // One that is replaced by another of its name is no longer the file that was opened.
        std::fs::write(directory.path().join("next"), b"newer").unwrap();
        std::fs::rename(directory.path().join("next"), &path).unwrap();
        assert!(watch.is_changed_now());
        assert!(!watch.is_same_file(&watch.reopen().unwrap()));
    }

    #[test]
    fn what_changes_while_it_is_opened_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let watch = Watch::new(&path).unwrap();
        let mut renewed = watch.reopen().unwrap();
        assert!(!renewed.is_changed_now() && renewed.is_young());
        std::fs::write(&path, b"newer").unwrap();
        assert!(renewed.is_changed_now());
    }

    #[test]
    fn what_is_young_is_looked_at_once_more() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let watch = Watch::new(&path).unwrap();
        assert!(!watch.may_have_grown());
        std::thread::sleep(SETTLING);
        assert!(watch.may_have_grown() && !watch.is_changed_now());
        watch.watch(watch.reopen().unwrap());
        std::thread::sleep(SETTLING);
        assert!(!watch.may_have_grown());
    }
}

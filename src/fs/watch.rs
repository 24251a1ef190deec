//! Watches whether the source is still the file that was opened.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::fs::lock;
use crate::source::file::{FileSource, Fingerprint};

/// How long what was seen of the source is taken for true where nothing is read from it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Keeps the source's state as it was when it was opened.
pub(super) struct Watch {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: Arc<FileSource>,
    opened: Fingerprint,
    looked: Instant,
    changed: bool,
}

impl Watch {
    pub(super) fn new(path: &Path) -> Result<Self> {
        Self::over(path, FileSource::open(path)?)
    }

    /// Watches the file that is open as `file`.
    pub(super) fn over(path: &Path, file: FileSource) -> Result<Self> {
        Ok(Watch {
            path: path.to_path_buf(),
            state: Mutex::new(State::new(file)?),
        })
    }

    /// What the file looked like when it was opened.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        lock(&self.state).opened
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub(super) fn file(&self) -> Arc<FileSource> {
        Arc::clone(&lock(&self.state).file)
    }

    /// The open file's metadata.
    pub(super) fn metadata(&self) -> Result<std::fs::Metadata> {
        lock(&self.state).file.metadata()
    }

    /// Whether the source has changed since it was opened, as far as was seen lately.
    pub(super) fn is_changed(&self) -> bool {
        let mut state = lock(&self.state);
        if state.looked.elapsed() >= PATIENCE {
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

    /// Opens the source anew with `open` and watches that. It must not change meanwhile.
    pub(super) fn renew<T>(&self, open: impl FnOnce(Arc<FileSource>) -> Result<T>) -> Result<T> {
        let mut fresh = State::new(FileSource::open(&self.path)?)?;
        let opened = open(Arc::clone(&fresh.file))?;
        fresh.look();
        if fresh.changed {
            return Err(crate::fs::errno::stale());
        }
        *lock(&self.state) = fresh;
        Ok(opened)
    }
}

impl State {
    fn new(file: FileSource) -> Result<Self> {
        let file = Arc::new(file);
        let opened = file.fingerprint()?;
        Ok(State {
            file,
            opened,
            looked: Instant::now(),
            changed: false,
        })
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        // A change is final: the file may look the same again, what was read in between does not.
        self.changed |= self.file.fingerprint() != Ok(self.opened);
    }
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
        let renewed = watch.renew(|file| file.metadata()).unwrap();
        assert_eq!(renewed.len(), 5);
        assert!(!watch.is_changed_now());
        // One that is replaced by another of its name is no longer the file that was opened.
        std::fs::write(directory.path().join("next"), b"newer").unwrap();
        std::fs::rename(directory.path().join("next"), &path).unwrap();
        assert!(watch.is_changed_now());
    }

    #[test]
    fn what_changes_while_it_is_opened_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, b"old").unwrap();
        let watch = Watch::new(&path).unwrap();
        let renewed = watch.renew(|file| {
            std::fs::write(&path, b"newer").unwrap();
            Ok(file.metadata()?.len())
        });
        assert_eq!(renewed, Err(crate::fs::errno::stale()));
    }
}

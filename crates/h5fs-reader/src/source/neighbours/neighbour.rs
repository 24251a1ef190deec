//! A neighbour file, which can be read until it changes.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::error::line::escape_to_one_line;
use crate::error::{Cause, Error, Result};
use crate::memory::cancel::WantedCheck;
use crate::memory::lock::lock;
use crate::source::identity::Identity;
use crate::source::local::changes::ChangeWatcher;
use crate::source::neighbours::absent_files::{AbsentFile, AbsentFileLog};
use crate::source::open::{SharedOpenSource, SharedState};
use crate::source::{SharedSource, Source, Urgency};

/// Number of other files whose state each mounted file remembers, open or not. Each takes about 250
/// bytes.
const SEEN_NEIGHBOURS: NonZeroUsize = NonZeroUsize::new(1 << 14).unwrap();

/// Interval between checks of neighbours that no request reads.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// An open neighbour. Bytes of two of its states never mix: after a change, reads fail.
#[derive(Debug)]
pub struct Neighbour {
    file: SharedOpenSource,
    states: Arc<NeighbourStates>,
}

impl Neighbour {
    /// Returns the identity of the file when it was opened.
    pub fn opened_identity(&self) -> Identity {
        self.file.opened_identity()
    }

    /// Checks that the file has not changed since it was opened.
    ///
    /// # Errors
    /// `ESTALE` if the file has changed.
    pub fn check(&self) -> Result<()> {
        if self.file.opened_state().may_grow() || !self.file.is_changed() {
            Ok(())
        } else {
            Err(self.states.stale_error())
        }
    }
}

impl Source for Neighbour {
    fn length(&self) -> u64 {
        self.file.length()
    }

    fn growing_view(self: Arc<Self>) -> Option<SharedSource> {
        Arc::clone(&self.file).growing_view()
    }

    fn is_remote(&self) -> bool {
        self.file.is_remote()
    }

    fn benefits_from_prefetch(&self) -> bool {
        self.file.benefits_from_prefetch()
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        self.file.prefetch(ranges, urgency);
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        self.file.is_available(at, length)
    }

    fn set_metadata_pages(&self, base: u64, length: u64) {
        self.file.set_metadata_pages(base, length);
    }

    fn metadata_pages(&self) -> Option<(u64, u64)> {
        self.file.metadata_pages()
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let read = self.file.read_cancellable(at, buffer, is_wanted);
        self.check()?;
        read
    }
}

/// The states in which the neighbours of a file were opened. Each state of the file has its own
/// set.
///
/// The content shown is made of the file and its neighbours, so a change of a neighbour is a change
/// of the file. Files that were searched for but did not exist are recorded as well.
#[derive(Debug)]
pub struct NeighbourStates {
    hasher: RandomState,
    /// States by hashed path, `None` if the file was absent. A closed neighbour is still watched,
    /// because caches may contain its bytes.
    states_by_path: Mutex<LruCache<u64, Option<SharedState>>>,
    open: Mutex<OpenNeighbours>,
    changed: AtomicBool,
    changes: Option<Arc<ChangeWatcher>>,
    /// The event count of `changes` at the last check of all states.
    checked_event_count: AtomicU64,
    /// Whether a change of some neighbour may go unnoticed: the neighbour may have been half
    /// written when it was opened, or it did not exist and may appear.
    may_miss_changes: AtomicBool,
    absent: Arc<AbsentFileLog>,
    /// The name of the file, if its absent neighbours are reported together with the ones of other
    /// files.
    name: Option<Box<str>>,
}

#[derive(Debug)]
struct OpenNeighbours {
    neighbours: HashMap<Identity, Weak<Neighbour>>,
    last_check: Instant,
}

impl OpenNeighbours {
    fn forget_closed(&mut self) {
        self.neighbours.retain(|_, other| other.strong_count() > 0);
    }
}

impl Default for NeighbourStates {
    fn default() -> Self {
        NeighbourStates {
            hasher: RandomState::new(),
            states_by_path: Mutex::new(LruCache::sparse(SEEN_NEIGHBOURS)),
            open: Mutex::new(OpenNeighbours {
                neighbours: HashMap::new(),
                last_check: Instant::now(),
            }),
            changed: AtomicBool::new(false),
            changes: None,
            checked_event_count: AtomicU64::new(0),
            may_miss_changes: AtomicBool::new(false),
            absent: Arc::default(),
            name: None,
        }
    }
}

impl NeighbourStates {
    /// Creates an empty set of states. `changes` reports changes of the files.
    pub(in crate::source) fn with_watcher(changes: Option<Arc<ChangeWatcher>>) -> Arc<Self> {
        Arc::new(NeighbourStates {
            changes,
            ..NeighbourStates::default()
        })
    }

    /// Returns the neighbour that was opened by this absolute path. A neighbour that is already
    /// open, by any path, is reused.
    ///
    /// # Errors
    /// `ESTALE` if another file, another state of the file, or no file was found there before.
    pub fn open(self: &Arc<Self>, path: &Path, file: SharedOpenSource) -> Result<Arc<Neighbour>> {
        self.remember(path, Some(file.opened_state()))?;
        let mut open = lock(&self.open);
        let known = open.neighbours.get(&file.opened_identity());
        if let Some(neighbour) = known.and_then(Weak::upgrade) {
            return Ok(neighbour);
        }
        if open.neighbours.len() == open.neighbours.capacity() {
            open.forget_closed();
        }
        let opened = file.opened_identity();
        let neighbour = Arc::new(Neighbour {
            file,
            states: Arc::clone(self),
        });
        open.neighbours.insert(opened, Arc::downgrade(&neighbour));
        Ok(neighbour)
    }

    /// Records that no file exists at this absolute path.
    ///
    /// # Errors
    /// `ESTALE` if a file was found there before.
    pub(crate) fn record_absence(&self, path: &Path) -> Result<()> {
        self.remember(path, None)
    }

    /// Returns whether no neighbour was opened or searched for.
    pub fn is_empty(&self) -> bool {
        lock(&self.states_by_path).is_empty() && lock(&self.open).neighbours.is_empty()
    }

    /// Returns whether a neighbour has changed since it was opened, according to recent checks.
    pub fn is_changed(&self) -> bool {
        let due = self.due_for_check();
        let _all_right = due.iter().all(|other| other.check().is_ok());
        let told = self
            .changes
            .as_ref()
            .map_or(0, |changes| changes.event_count());
        if told != self.checked_event_count.load(Ordering::Acquire)
            || !due.is_empty() && !self.can_notice_every_change()
        {
            self.check_all();
            self.checked_event_count.store(told, Ordering::Release);
        }
        self.has_found_change()
    }

    /// Creates an empty set of states for a file whose absent neighbours `whole` reports under this
    /// name.
    pub(in crate::source) fn with_absence_reports_to(
        &self,
        whole: &Self,
        name: &Path,
    ) -> Arc<Self> {
        let name = escape_to_one_line(&name.display().to_string());
        Arc::new(NeighbourStates {
            changes: self.changes.clone(),
            absent: Arc::clone(&whole.absent),
            name: Some(name.into()),
            ..NeighbourStates::default()
        })
    }

    /// Records that `object` lacks another file, for this `reason`. Each object is reported once.
    pub fn record_absent_file(&self, object: &str, reason: &str) {
        match &self.name {
            Some(name) => self.absent.record(&format!("{name}: {object}"), reason),
            None => self.absent.record(object, reason),
        }
    }

    /// Returns the absent files recorded since the last call.
    pub fn take_new_absent_files(&self) -> Vec<AbsentFile> {
        self.absent.take_new()
    }

    /// Records that the content depends on a file whose changes are not reported.
    pub(in crate::source) fn mark_unwatched(&self) {
        self.may_miss_changes.store(true, Ordering::Relaxed);
    }

    /// Returns whether every change of a neighbour will be noticed. Returns false if a neighbour
    /// may have been half written when it was opened, because the end of that write does not change
    /// its times, or if an absent neighbour may appear.
    pub fn can_notice_every_change(&self) -> bool {
        !self.may_miss_changes.load(Ordering::Relaxed)
    }

    fn check_all(&self) {
        let seen = lock(&self.states_by_path);
        let mut states = seen.iter().filter_map(|(_, state)| state.as_ref());
        if states.any(|state| !state.may_grow() && state.has_ended()) {
            self.stale_error();
        }
    }

    /// Returns the open neighbours, if they are due for a check.
    fn due_for_check(&self) -> Vec<Arc<Neighbour>> {
        let mut open = lock(&self.open);
        if open.last_check.elapsed() < CHECK_INTERVAL {
            return Vec::new();
        }
        open.last_check = Instant::now();
        open.forget_closed();
        open.neighbours.values().filter_map(Weak::upgrade).collect()
    }

    /// Returns whether a check has found a changed neighbour.
    pub fn has_found_change(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    fn remember(&self, path: &Path, state: Option<SharedState>) -> Result<()> {
        let path = self.hasher.hash_one(path);
        let is_settled = state
            .as_ref()
            .is_none_or(|state| state.has_no_pending_write());
        self.may_miss_changes
            .fetch_or(!is_settled, Ordering::Relaxed);
        let mut seen = lock(&self.states_by_path);
        // If the file is opened again, the first watch is kept, because it has seen the most
        // events.
        let is_same = match (seen.get(&path), &state) {
            (None, _) => {
                seen.put(path, state);
                true
            }
            (Some(Some(before)), Some(state)) => {
                !before.has_ended() && before.identity() == state.identity()
            }
            (Some(before), state) => before.is_none() && state.is_none(),
        };
        if is_same {
            Ok(())
        } else {
            Err(self.stale_error())
        }
    }

    /// Records that a neighbour has changed.
    pub fn record_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    fn stale_error(&self) -> Error {
        self.record_change();
        Error::from_cause(Cause::Stale, "a file next to the source")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::local::file::FileSource;
    use std::fs;

    fn open(states: &Arc<NeighbourStates>, path: &Path) -> Result<Arc<Neighbour>> {
        states.open(path, Arc::new(FileSource::open(path, None)?))
    }

    #[test]
    fn a_file_is_read_in_one_state() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("raw");
        fs::write(&path, b"old").unwrap();
        let states = Arc::new(NeighbourStates::default());
        let neighbour = open(&states, &path).unwrap();
        let mut bytes = [0; 3];
        neighbour.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"old");
        assert!(!states.has_found_change());
        fs::write(&path, b"newer").unwrap();
        let stale = neighbour.read_at(0, &mut bytes).unwrap_err();
        assert!(stale.is_transient());
        assert!(states.has_found_change());
    }

    #[test]
    fn a_neighbour_with_several_names_is_opened_once() {
        let directory = tempfile::tempdir().unwrap();
        let [path, link, other] = ["raw", "link", "other"].map(|name| directory.path().join(name));
        fs::write(&path, b"one").unwrap();
        fs::write(&other, b"two").unwrap();
        fs::hard_link(&path, &link).unwrap();
        let states = Arc::new(NeighbourStates::default());
        let first = open(&states, &path).unwrap();
        let again = open(&states, &directory.path().join("./link")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let other = open(&states, &other).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        drop((first, again));
        open(&states, &link).unwrap();
    }

    #[test]
    fn an_unread_neighbour_is_checked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("raw");
        fs::write(&path, b"old").unwrap();
        let states = Arc::new(NeighbourStates::default());
        let _kept = open(&states, &path).unwrap();
        std::thread::sleep(CHECK_INTERVAL);
        assert!(!states.is_changed());
        // The neighbour is open, so losing its name is visible as a lower link count.
        fs::write(directory.path().join("next"), b"new").unwrap();
        fs::rename(directory.path().join("next"), &path).unwrap();
        std::thread::sleep(CHECK_INTERVAL);
        assert!(states.is_changed());
    }

    #[test]
    fn a_reopened_neighbour_must_be_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["raw", "./other"].map(|name| directory.path().join(name));
        fs::write(&path, b"old").unwrap();
        let states = Arc::new(NeighbourStates::default());
        drop(open(&states, &path).unwrap());
        open(&states, &directory.path().join("./raw")).unwrap();
        states.record_absence(&other).unwrap();
        states.record_absence(&other).unwrap();
        assert!(!states.is_changed());
        fs::write(&other, b"new").unwrap();
        open(&states, &other).unwrap_err();
        assert!(states.is_changed());

        let states = Arc::new(NeighbourStates::default());
        drop(open(&states, &path).unwrap());
        fs::remove_file(&path).unwrap();
        states.record_absence(&path).unwrap_err();
        assert!(states.is_changed());
    }

    /// Finishes a write after the file was opened and closed again. The file's time is the start of
    /// the write.
    #[test]
    fn a_closed_neighbour_is_still_watched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("raw");
        fs::write(&path, b"old").unwrap();
        let changes = ChangeWatcher::new().unwrap();
        let states = NeighbourStates::with_watcher(Some(Arc::clone(&changes)));
        let found = || states.open(&path, Arc::new(FileSource::open(&path, Some(&changes))?));
        drop((found().unwrap(), found().unwrap()));
        assert!(!states.is_changed());
        fs::write(&path, b"new").unwrap();
        changes.read_pending();
        assert!(states.is_changed());
        found().unwrap_err();
    }

    #[test]
    fn half_written_neighbours_may_miss_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("raw");
        fs::write(&path, b"new").unwrap();
        // The time lies in the future, so the file counts as recently written, even on a slow
        // machine.
        let later = std::time::SystemTime::now() + Duration::from_secs(3600);
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(later).unwrap();
        let states = Arc::new(NeighbourStates::default());
        assert!(states.can_notice_every_change());
        open(&states, &path).unwrap();
        assert!(!states.can_notice_every_change());
        // On a local filesystem, the kernel reports the end of a write.
        let changes = ChangeWatcher::new().unwrap();
        let states = NeighbourStates::with_watcher(Some(Arc::clone(&changes)));
        let file = FileSource::open(&path, Some(&changes)).unwrap();
        states.open(&path, Arc::new(file)).unwrap();
        assert!(states.can_notice_every_change());
    }

    /// Checks that growth by an expected writer is not a change.
    #[test]
    fn a_file_that_grows_may_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("swmr");
        fs::write(&path, b"old").unwrap();
        let states = Arc::new(NeighbourStates::default());
        let neighbour = open(&states, &path).unwrap();
        let growing = Arc::clone(&neighbour).growing_view().unwrap();
        fs::write(&path, b"older").unwrap();
        let mut bytes = [0; 5];
        growing.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"older");
        std::thread::sleep(CHECK_INTERVAL);
        assert!(!states.is_changed());
    }
}

//! Checks in the background whether a directory has changed.
//!
//! A check lists the whole directory, so no request performs it. A request that reads uses the
//! result of the last check, and starts the next one if the last is old. A request that opens or
//! looks up waits for the next check, and may be cancelled meanwhile. Without requests, the
//! directory is not listed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use h5fs_reader::error::Result;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;

/// Time for which a request in a quick slot waits for a check of the directory. After that, the
/// request continues in a heavy slot. Also the interval at which a waiting request checks whether
/// it is cancelled.
const QUICK: Duration = Duration::from_millis(10);

/// Checks a directory for changes in a background thread, and keeps the result of the last check.
pub(super) struct DirectoryWatcher {
    /// Time after a check for which its result is valid.
    valid: Duration,
    check_changes: Box<ChangeCheck>,
    /// Whether the directory has changed since the watcher was created. Never becomes false again.
    is_changed: AtomicBool,
    state: Mutex<WatcherState>,
    check_ended: Condvar,
}

/// A function that lists the directory, and returns whether it has changed since the watcher was
/// created.
type ChangeCheck = dyn Fn() -> bool + Send + Sync;

struct WatcherState {
    /// Time when the last check ended.
    checked_at: Instant,
    is_checking: bool,
}

impl DirectoryWatcher {
    /// Creates a watcher for a directory that has just been listed. A check calls `look`, and its
    /// result is valid for the time `valid`.
    pub(super) fn new(valid: Duration, look: Box<ChangeCheck>) -> Arc<Self> {
        Arc::new(DirectoryWatcher {
            valid,
            check_changes: look,
            is_changed: AtomicBool::new(false),
            state: Mutex::new(WatcherState {
                checked_at: Instant::now(),
                is_checking: false,
            }),
            check_ended: Condvar::new(),
        })
    }

    /// Returns the result of the last check without waiting. Starts another check if the result is
    /// no longer valid.
    pub(super) fn is_changed(self: &Arc<Self>) -> bool {
        let mut state = lock(&self.state);
        if self.is_due(&state) {
            self.start_check(&mut state);
        }
        self.is_changed.load(Ordering::Relaxed)
    }

    /// Waits until a check has ended whose result is still valid. Starts a check if necessary.
    ///
    /// # Errors
    /// [`Error::cancelled`](h5fs_reader::error::Error::cancelled) if `cancel` ends the request
    /// first.
    pub(super) fn refresh(self: &Arc<Self>, cancel: &CancelToken) -> Result<()> {
        let began = Instant::now();
        let mut state = lock(&self.state);
        while self.is_due(&state) {
            if !self.start_check(&mut state) {
                // The system cannot start another thread.
                drop(state);
                self.run();
                return Ok(());
            }
            let waited = self.check_ended.wait_timeout(state, QUICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if began.elapsed() < QUICK {
                cancel.check_cancelled()?;
            } else {
                cancel.require_heavy_slot()?;
            }
        }
        Ok(())
    }

    fn is_due(&self, state: &WatcherState) -> bool {
        !self.is_changed.load(Ordering::Relaxed) && state.checked_at.elapsed() >= self.valid
    }

    /// Starts a check unless one is in progress. Returns false if no check is in progress
    /// afterwards, because the system refused to start a thread.
    fn start_check(self: &Arc<Self>, state: &mut WatcherState) -> bool {
        if !state.is_checking {
            let own = Arc::clone(self);
            let thread = thread::Builder::new().name("look".to_owned());
            state.is_checking = thread.spawn(move || own.run()).is_ok();
        }
        state.is_checking
    }

    fn run(&self) {
        let _end = CheckGuard(self);
        if (self.check_changes)() {
            self.is_changed.store(true, Ordering::Relaxed);
        }
    }
}

/// A guard that records the end of a check, even after a panic.
struct CheckGuard<'a>(&'a DirectoryWatcher);

impl Drop for CheckGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.state) = WatcherState {
            checked_at: Instant::now(),
            is_checking: false,
        };
        self.0.check_ended.notify_all();
    }
}

impl fmt::Debug for DirectoryWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watcher({:?})", self.is_changed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use h5fs_reader::memory::cancel::Canceller;
    use h5fs_reader::testing::eventually;

    use super::*;

    /// The number of checks that were started, and a channel: each value sent ends one check with
    /// this result.
    struct PendingChecks {
        begun: Arc<AtomicUsize>,
        end: Sender<bool>,
    }

    fn watcher(valid: Duration) -> (Arc<DirectoryWatcher>, PendingChecks) {
        let begun = Arc::<AtomicUsize>::default();
        let (end, ends): (Sender<bool>, Receiver<bool>) = channel();
        let (own, ends) = (Arc::clone(&begun), Mutex::new(ends));
        let look = move || {
            own.fetch_add(1, Ordering::Relaxed);
            lock(&ends).recv().unwrap_or(false)
        };
        (
            DirectoryWatcher::new(valid, Box::new(look)),
            PendingChecks { begun, end },
        )
    }

    impl PendingChecks {
        fn count(&self) -> usize {
            self.begun.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_read_uses_the_last_result_during_a_check() {
        let (watcher, looks) = watcher(Duration::ZERO);
        assert!(!watcher.is_changed());
        eventually("a look begins", || looks.count() == 1);
        // The check continues as long as the directory needs, and no second check starts.
        assert!(!watcher.is_changed() && !watcher.is_changed());
        assert_eq!(looks.count(), 1);
        looks.end.send(true).unwrap();
        eventually("its result is taken", || watcher.is_changed());
        // A change is final, so no further check starts.
        assert!(watcher.is_changed() && looks.count() == 1);
    }

    #[test]
    fn checks_start_only_on_demand_after_the_result_expires() {
        let (watcher, looks) = watcher(Duration::from_secs(3600));
        assert!(!watcher.is_changed());
        watcher.refresh(&CancelToken::default()).unwrap();
        assert_eq!(looks.count(), 0);
        let (watcher, looks) = self::watcher(Duration::from_millis(1));
        thread::sleep(Duration::from_millis(20));
        assert_eq!(looks.count(), 0);
        drop(watcher);
    }

    #[test]
    fn a_lookup_waits_for_the_check_and_may_be_cancelled() {
        let (watcher, looks) = watcher(Duration::from_secs(1));
        lock(&watcher.state).checked_at = Instant::now() - Duration::from_secs(2);
        let canceller = Canceller::default();
        let token = canceller.token();
        thread::scope(|scope| {
            let waits = scope.spawn(|| watcher.refresh(&token));
            eventually("a look begins", || looks.count() == 1);
            canceller.cancel();
            assert!(
                waits
                    .join()
                    .unwrap()
                    .is_err_and(|error| error.is_cancelled())
            );
            let waits = scope.spawn(|| watcher.refresh(&CancelToken::default()));
            looks.end.send(true).unwrap();
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        assert!(watcher.is_changed() && looks.count() == 1);
    }
}

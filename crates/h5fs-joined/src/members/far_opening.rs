//! Remote members that are being opened.
//!
//! Opening a remote member waits for its server, possibly for a long time. A thread opens the
//! member. All requests that need the member wait for the thread's result, and stop waiting if they
//! are cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::{lock, wait_for};

/// Interval at which a waiting request checks whether it was cancelled.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The remote members that threads are opening, by file number.
pub(super) struct PendingMembers<T>(Mutex<HashMap<usize, Arc<PendingMember<T>>>>);

impl<T> Default for PendingMembers<T> {
    fn default() -> Self {
        PendingMembers(Mutex::default())
    }
}

/// A member that a thread is opening, and the result once it is known.
struct PendingMember<T> {
    outcome: Mutex<Option<Result<T>>>,
    outcome_ready: Condvar,
}

/// A guard of the thread that opens a member. If the guard is dropped before the thread has
/// provided a result, the waiting requests receive an error.
struct OpeningGuard<T, M: AsRef<PendingMembers<T>>> {
    members: Arc<M>,
    file: usize,
    opening: Arc<PendingMember<T>>,
}

impl<T: Clone + Send + 'static> PendingMembers<T> {
    /// Opens a member by calling `open` in a thread, unless a thread is already opening it. Waits
    /// for the result.
    ///
    /// # Errors
    /// Fails as `open` does. Returns [`Error::cancelled`] if the request is cancelled.
    pub(super) fn open<M: AsRef<Self> + Send + Sync + 'static>(
        members: &Arc<M>,
        file: usize,
        cancel: &CancelToken,
        open: fn(&M, usize) -> Result<T>,
    ) -> Result<T> {
        let own: &Self = members.as_ref().as_ref();
        let mut all = lock(&own.0);
        if let Some(opening) = all.get(&file) {
            let opening = Arc::clone(opening);
            drop(all);
            return opening.wait(cancel);
        }
        let opening = Arc::new(PendingMember {
            outcome: Mutex::new(None),
            outcome_ready: Condvar::new(),
        });
        all.insert(file, Arc::clone(&opening));
        drop(all);
        let duty = OpeningGuard {
            members: Arc::clone(members),
            file,
            opening: Arc::clone(&opening),
        };
        let thread = thread::Builder::new().name("open".to_owned());
        let spawned = thread.spawn(move || {
            let outcome = open(&duty.members, duty.file);
            *lock(&duty.opening.outcome) = Some(outcome);
        });
        match spawned {
            Ok(_) => opening.wait(cancel),
            // Without a thread, the request opens the member itself.
            Err(_) => open(members, file),
        }
    }
}

impl<T: Clone> PendingMember<T> {
    fn wait(&self, cancel: &CancelToken) -> Result<T> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            cancel.check_cancelled()?;
            outcome = wait_for(&self.outcome_ready, outcome, CANCEL_CHECK_INTERVAL);
        }
    }
}

impl<T, M: AsRef<PendingMembers<T>>> Drop for OpeningGuard<T, M> {
    fn drop(&mut self) {
        lock(&(*self.members).as_ref().0).remove(&self.file);
        let broke_off = || {
            Err(Error::from_cause(
                Cause::Unavailable,
                "opening a file failed",
            ))
        };
        lock(&self.opening.outcome).get_or_insert_with(broke_off);
        self.opening.outcome_ready.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use h5fs_reader::memory::cancel::Canceller;
    use h5fs_reader::testing::eventually;

    use super::*;

    /// A server that responds only after the flag `answers` is set.
    #[derive(Default)]
    struct Server {
        openings: PendingMembers<usize>,
        begun: AtomicUsize,
        answers: AtomicBool,
    }

    impl AsRef<PendingMembers<usize>> for Server {
        fn as_ref(&self) -> &PendingMembers<usize> {
            &self.openings
        }
    }

    fn open(server: &Server, file: usize) -> Result<usize> {
        server.begun.fetch_add(1, Ordering::SeqCst);
        eventually("the server answers", || {
            server.answers.load(Ordering::SeqCst)
        });
        Ok(10 * file)
    }

    #[test]
    fn a_cancelled_request_stops_waiting_for_a_server() {
        let server = Arc::new(Server::default());
        let canceller = Canceller::default();
        let token = canceller.token();
        thread::scope(|scope| {
            let gone = scope.spawn(|| PendingMembers::open(&server, 7, &token, open));
            eventually("it is being opened", || {
                server.begun.load(Ordering::SeqCst) == 1
            });
            canceller.cancel();
            let gone = gone.join().unwrap();
            assert!(gone.is_err_and(|error| error.is_cancelled()));
            // The next request waits for the same thread.
            let next =
                scope.spawn(|| PendingMembers::open(&server, 7, &CancelToken::default(), open));
            server.answers.store(true, Ordering::SeqCst);
            assert_eq!(next.join().unwrap(), Ok(70));
        });
        assert!(server.begun.load(Ordering::SeqCst) <= 2);
        eventually("nothing is left", || lock(&server.openings.0).is_empty());
    }
}

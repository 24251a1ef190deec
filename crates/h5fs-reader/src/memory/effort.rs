//! The budget of metadata bytes that one request may read.
//!
//! Each structure has its own bounds, but a hostile file can lead a request to thousands of the
//! largest structures. Examples are an index whose records point to one damaged block, and links to
//! headers of megabytes.
//!
//! Each request therefore has a budget, which is passed with the container. Each structure is
//! charged to the budget before it is read. Background work has an unlimited budget.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::lock::lock;
use crate::wire::Count;

/// The number of bytes left in an unlimited budget.
const UNBOUNDED: u64 = u64::MAX;

/// A budget of bytes that may still be read. Clones share one grant. The default is unlimited.
#[derive(Debug, Clone, Default)]
pub struct Effort(Option<Arc<Grant>>);

#[derive(Debug)]
struct Grant {
    left: AtomicU64,
    /// The budget that this one is a part of.
    whole: Effort,
    /// The size of this part if it was granted in full, else the `in_full` of the budget that
    /// contains it.
    in_full: Option<u64>,
    glance: Option<Glance>,
    /// The token of the request that currently uses the budget.
    cancel: Mutex<CancelToken>,
}

/// A function that blocks until an event.
pub type Wait = Box<dyn FnOnce() + Send>;

/// The wait that a non-blocking request skipped.
#[derive(Default)]
struct Glance(Mutex<Option<Wait>>);

impl fmt::Debug for Glance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Glance")
    }
}

/// A guard for the duration of a request. Dropping the guard lifts the bound, because views and
/// listings outlive the request that opened them.
#[derive(Debug)]
pub struct EffortGuard(Effort);

impl Effort {
    /// Creates a budget of at most `bytes`.
    pub fn new(bytes: u64) -> Self {
        Effort(Some(Arc::new(Grant {
            left: AtomicU64::new(bytes),
            whole: Effort::default(),
            in_full: None,
            glance: None,
            cancel: Mutex::default(),
        })))
    }

    /// Creates the budget of a request that must not wait for a remote source. Work that would have
    /// to wait requests the missing bytes and then fails.
    pub fn of_a_glance() -> Self {
        Effort(Some(Arc::new(Grant {
            left: AtomicU64::new(limits::REQUEST_METADATA),
            whole: Effort::default(),
            in_full: None,
            glance: Some(Glance::default()),
            cancel: Mutex::default(),
        })))
    }

    /// Returns an unlimited budget, whose work ends once `cancel` is cancelled. After the second
    /// value is dropped, `cancel` no longer affects the budget.
    pub fn cancelled_by(cancel: &CancelToken) -> (Self, EffortGuard) {
        let effort = Self::new(UNBOUNDED);
        effort.set_cancel(cancel.clone());
        (effort.clone(), EffortGuard(effort))
    }

    fn glance(&self) -> Option<&Glance> {
        let grant = self.0.as_ref()?;
        grant.glance.as_ref().or_else(|| grant.whole.glance())
    }

    /// Returns whether work with this budget must not wait.
    pub fn is_glance(&self) -> bool {
        self.glance().is_some()
    }

    /// Stores `wait` for the caller, exhausts the budget and returns the error for the work.
    pub fn put_off(&self, wait: Wait) -> Error {
        if let Some(Glance(put_off)) = self.glance() {
            *lock(put_off) = Some(wait);
        }
        self.exhaust();
        Error::Effort { max: 0 }
    }

    /// Removes and returns the wait that ended a non-blocking request.
    pub fn wait(&self) -> Option<Wait> {
        self.glance()
            .and_then(|Glance(put_off)| lock(put_off).take())
    }

    /// Exhausts this budget and every budget that contains it.
    fn exhaust(&self) {
        if let Some(grant) = &self.0 {
            grant.left.store(0, Ordering::Relaxed);
            grant.whole.exhaust();
        }
    }

    /// Creates the budget of one request.
    pub fn of_a_request() -> Self {
        Self::new(limits::REQUEST_METADATA)
    }

    /// Returns a part of at most `bytes` of this budget. Bytes spent from the part are also spent
    /// from the whole.
    pub fn part(&self, bytes: u64) -> Self {
        let left = self.remaining().min(bytes);
        let in_full = if left == bytes {
            Some(bytes)
        } else {
            self.0.as_ref().and_then(|grant| grant.in_full)
        };
        Effort(Some(Arc::new(Grant {
            left: AtomicU64::new(left),
            whole: self.clone(),
            in_full,
            glance: None,
            cancel: Mutex::new(self.cancel()),
        })))
    }

    /// Renews the budget for one request with the token `cancel`. The bound is lifted when the
    /// guard is dropped.
    pub fn granted(&self, cancel: &CancelToken) -> EffortGuard {
        self.renew();
        self.set_cancel(cancel.clone());
        EffortGuard(self.clone())
    }

    /// Returns the token of the request that currently uses the budget.
    pub fn cancel(&self) -> CancelToken {
        let grant = self.0.as_ref();
        grant.map_or_else(CancelToken::default, |grant| lock(&grant.cancel).clone())
    }

    fn set_cancel(&self, cancel: CancelToken) {
        if let Some(grant) = &self.0 {
            *lock(&grant.cancel) = cancel;
        }
    }

    /// Resets the budget to the size for one request.
    pub fn renew(&self) {
        self.set(limits::REQUEST_METADATA);
    }

    /// Lifts the bound until the next renewal, for work with bounds of its own.
    pub fn lift(&self) {
        self.set(UNBOUNDED);
    }

    /// Returns whether the budget is exhausted.
    pub fn is_spent(&self) -> bool {
        self.remaining() == 0
    }

    /// Spends `bytes`.
    ///
    /// # Errors
    /// - `Effort` if fewer than `bytes` are left.
    /// - `Limit` instead, if the budget is a [`part`](Self::part) that was granted in full: a retry
    ///   would fail too.
    /// - [`Error::unwanted`] if the request must end.
    pub fn spend(&self, bytes: u64) -> Result<()> {
        let Some(grant) = &self.0 else {
            return Ok(());
        };
        lock(&grant.cancel).go_on()?;
        let left = self.take(bytes);
        if bytes <= left {
            return Ok(());
        }
        let of_one = |all| Error::limit("metadata read for one object", all);
        Err(grant.in_full.map_or(Error::Effort { max: left }, of_one))
    }

    /// Spends `bytes`, or all that is left. Returns how many bytes were left before.
    fn take(&self, bytes: u64) -> u64 {
        let Some(grant) = &self.0 else {
            return UNBOUNDED;
        };
        let rest = |left| match left {
            UNBOUNDED => None,
            left => Some(left.left_after(bytes)),
        };
        let taken = grant
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        let left = taken.unwrap_or(UNBOUNDED);
        grant.whole.take(bytes.min(left));
        left
    }

    fn remaining(&self) -> u64 {
        let left = |grant: &Arc<Grant>| grant.left.load(Ordering::Relaxed);
        self.0.as_ref().map_or(UNBOUNDED, left)
    }

    fn set(&self, left: u64) {
        if let Some(grant) = &self.0 {
            grant.left.store(left, Ordering::Relaxed);
        }
    }
}

impl Drop for EffortGuard {
    fn drop(&mut self) {
        self.0.set(UNBOUNDED);
        self.0.set_cancel(CancelToken::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_lasts_until_it_is_spent() {
        const ALL: u64 = limits::REQUEST_METADATA;
        let none = Effort::default();
        none.spend(2 * ALL)
            .expect("without a request there is no bound");
        assert!(!none.is_spent());
        let request = Effort::of_a_request();
        let clone = request.clone();
        request.spend(ALL - 1).expect("within it");
        Effort::of_a_request()
            .spend(ALL)
            .expect("a grant of its own");
        clone.spend(1).expect("all of it");
        assert!(request.is_spent());
        let passing = request.spend(1).expect_err("more than that");
        assert!(passing.is_passing());
    }

    #[test]
    fn the_bound_of_a_request_ends_with_it() {
        const ALL: u64 = limits::REQUEST_METADATA;
        let effort = Effort::of_a_request();
        for _ in 0..2 {
            let _granted = effort.granted(&CancelToken::default());
            effort.spend(ALL).expect("all of it");
            effort.renew();
            effort.spend(ALL).expect("all of it once more");
            assert!(effort.is_spent());
            effort.lift();
            effort.spend(2 * ALL).expect("no bound");
        }
        assert!(!effort.is_spent());
        effort.spend(ALL + 1).expect("no bound again");
    }

    #[test]
    fn a_glance_is_over_where_it_would_wait() {
        let (glance, has_waited) = (Effort::of_a_glance(), Arc::new(AtomicU64::new(0)));
        let part = glance.part(100);
        assert!(part.is_glance() && !Effort::of_a_request().is_glance());
        let waited = Arc::clone(&has_waited);
        let wait = Box::new(move || waited.store(1, Ordering::Relaxed));
        assert!(part.put_off(wait).is_passing());
        assert!(glance.is_spent() && part.is_spent());
        assert_eq!(has_waited.load(Ordering::Relaxed), 0);
        glance.wait().expect("it was put off")();
        assert_eq!(has_waited.load(Ordering::Relaxed), 1);
        assert!(glance.wait().is_none());
    }

    #[test]
    fn a_part_is_taken_from_the_whole() {
        let lasting = Effort::default().part(10).spend(11);
        assert!(
            !lasting
                .expect_err("bounded without a whole, too")
                .is_passing()
        );
        let whole = Effort::new(15);
        {
            let part = whole.part(10);
            part.spend(9).expect("most of the part");
            let lasting = part.part(10).spend(2).expect_err("bounded by the part");
            assert!(!lasting.is_passing());
        }
        assert!(!whole.is_spent());
        let passing = whole.part(10).spend(6).expect_err("more than was left");
        assert!(passing.is_passing());
        assert!(whole.is_spent());
    }
}

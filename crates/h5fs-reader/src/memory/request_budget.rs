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

/// The number of metadata bytes that a request may still read. Clones share the remaining bytes.
/// The default is unlimited.
#[derive(Debug, Clone, Default)]
pub struct RequestBudget(Option<Arc<SharedBudget>>);

#[derive(Debug)]
struct SharedBudget {
    remaining_bytes: AtomicU64,
    /// The budget of which this one is a part. Unlimited if this one is not a part.
    parent: RequestBudget,
    /// The size in bytes of this part, if the whole budget had enough bytes left for the full size.
    /// Otherwise the `granted_bytes` of the budget that contains this part.
    granted_bytes: Option<u64>,
    skipped_wait: Option<SkippedWait>,
    /// The token of the request that currently uses the budget.
    cancel: Mutex<CancelToken>,
}

/// A function that blocks until the bytes that a request needs have arrived.
pub type BlockingWait = Box<dyn FnOnce() + Send>;

/// The wait that a non-blocking request skipped.
#[derive(Default)]
struct SkippedWait(Mutex<Option<BlockingWait>>);

impl fmt::Debug for SkippedWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SkippedWait")
    }
}

/// A guard for the duration of a request. Dropping the guard makes the budget unlimited, because
/// views and listings outlive the request that opened them.
#[derive(Debug)]
pub struct RequestBudgetGuard(RequestBudget);

impl RequestBudget {
    /// Creates a budget of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        RequestBudget(Some(Arc::new(SharedBudget {
            remaining_bytes: AtomicU64::new(bytes),
            parent: RequestBudget::default(),
            granted_bytes: None,
            skipped_wait: None,
            cancel: Mutex::default(),
        })))
    }

    /// Creates the budget of a request that must not wait for a remote source. Work that would have
    /// to wait requests the missing bytes and then fails.
    pub fn non_blocking() -> Self {
        RequestBudget(Some(Arc::new(SharedBudget {
            remaining_bytes: AtomicU64::new(limits::REQUEST_METADATA),
            parent: RequestBudget::default(),
            granted_bytes: None,
            skipped_wait: Some(SkippedWait::default()),
            cancel: Mutex::default(),
        })))
    }

    /// Returns an unlimited budget, whose work ends once `cancel` is cancelled. After the second
    /// value is dropped, `cancel` no longer affects the budget.
    pub fn unlimited_until_cancelled(cancel: &CancelToken) -> (Self, RequestBudgetGuard) {
        let budget = Self::new(UNBOUNDED);
        budget.set_cancel(cancel.clone());
        (budget.clone(), RequestBudgetGuard(budget))
    }

    fn skipped_wait(&self) -> Option<&SkippedWait> {
        let grant = self.0.as_ref()?;
        grant
            .skipped_wait
            .as_ref()
            .or_else(|| grant.parent.skipped_wait())
    }

    /// Returns whether work with this budget must fail instead of waiting for a remote source.
    pub fn is_non_blocking(&self) -> bool {
        self.skipped_wait().is_some()
    }

    /// Stores `wait` for [`take_wait`](Self::take_wait), exhausts the budget, and returns the error
    /// with which the work must fail.
    pub fn fail_with_wait(&self, wait: BlockingWait) -> Error {
        if let Some(SkippedWait(put_off)) = self.skipped_wait() {
            *lock(put_off) = Some(wait);
        }
        self.exhaust();
        Error::BudgetExceeded { max: 0 }
    }

    /// Removes and returns the wait that a non-blocking request skipped, or `None` if the request
    /// skipped none.
    pub fn take_wait(&self) -> Option<BlockingWait> {
        self.skipped_wait()
            .and_then(|SkippedWait(put_off)| lock(put_off).take())
    }

    /// Exhausts this budget and every budget that contains it.
    fn exhaust(&self) {
        if let Some(grant) = &self.0 {
            grant.remaining_bytes.store(0, Ordering::Relaxed);
            grant.parent.exhaust();
        }
    }

    /// Creates the budget of one request: [`limits::REQUEST_METADATA`] bytes.
    pub fn for_request() -> Self {
        Self::new(limits::REQUEST_METADATA)
    }

    /// Returns a part of at most `bytes` bytes of this budget. Bytes spent from the part are also
    /// spent from the whole.
    pub fn sub_budget(&self, bytes: u64) -> Self {
        let left = self.remaining().min(bytes);
        let in_full = if left == bytes {
            Some(bytes)
        } else {
            self.0.as_ref().and_then(|grant| grant.granted_bytes)
        };
        RequestBudget(Some(Arc::new(SharedBudget {
            remaining_bytes: AtomicU64::new(left),
            parent: self.clone(),
            granted_bytes: in_full,
            skipped_wait: None,
            cancel: Mutex::new(self.cancel_token()),
        })))
    }

    /// Renews the budget for one request with the token `cancel`. When the guard is dropped, the
    /// budget becomes unlimited.
    pub fn renew_for(&self, cancel: &CancelToken) -> RequestBudgetGuard {
        self.renew();
        self.set_cancel(cancel.clone());
        RequestBudgetGuard(self.clone())
    }

    /// Returns the token of the request that currently uses the budget.
    pub fn cancel_token(&self) -> CancelToken {
        let grant = self.0.as_ref();
        grant.map_or_else(CancelToken::default, |grant| lock(&grant.cancel).clone())
    }

    fn set_cancel(&self, cancel: CancelToken) {
        if let Some(grant) = &self.0 {
            *lock(&grant.cancel) = cancel;
        }
    }

    /// Resets the budget to the number of bytes for one request.
    pub fn renew(&self) {
        self.set_remaining(limits::REQUEST_METADATA);
    }

    /// Makes the budget unlimited until the next renewal, for work with bounds of its own.
    pub fn remove_limit(&self) {
        self.set_remaining(UNBOUNDED);
    }

    /// Returns whether the budget is exhausted.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.remaining() == 0
    }

    /// Charges `bytes` bytes to the budget.
    ///
    /// # Errors
    /// - `BudgetExceeded` if fewer than `bytes` are left.
    /// - `Limit` instead, if the budget is a [`sub_budget`](Self::sub_budget) that was granted in
    ///   full: a retry would fail too.
    /// - [`Error::cancelled`] if the request must end.
    pub fn spend(&self, bytes: u64) -> Result<()> {
        let Some(grant) = &self.0 else {
            return Ok(());
        };
        lock(&grant.cancel).check_cancelled()?;
        let left = self.deduct(bytes);
        if bytes <= left {
            return Ok(());
        }
        let of_one = |all| Error::limit("metadata read for one object", all);
        Err(grant
            .granted_bytes
            .map_or(Error::BudgetExceeded { max: left }, of_one))
    }

    /// Charges `bytes` bytes to the budget, or all that are left. Returns how many bytes were left
    /// before.
    fn deduct(&self, bytes: u64) -> u64 {
        let Some(grant) = &self.0 else {
            return UNBOUNDED;
        };
        let rest = |left| match left {
            UNBOUNDED => None,
            left => Some(left.minus_or_zero(bytes)),
        };
        let taken = grant
            .remaining_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        let left = taken.unwrap_or(UNBOUNDED);
        grant.parent.deduct(bytes.min(left));
        left
    }

    fn remaining(&self) -> u64 {
        let left = |grant: &Arc<SharedBudget>| grant.remaining_bytes.load(Ordering::Relaxed);
        self.0.as_ref().map_or(UNBOUNDED, left)
    }

    fn set_remaining(&self, left: u64) {
        if let Some(grant) = &self.0 {
            grant.remaining_bytes.store(left, Ordering::Relaxed);
        }
    }
}

impl Drop for RequestBudgetGuard {
    fn drop(&mut self) {
        self.0.set_remaining(UNBOUNDED);
        self.0.set_cancel(CancelToken::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_lasts_until_it_is_spent() {
        const ALL: u64 = limits::REQUEST_METADATA;
        let none = RequestBudget::default();
        none.spend(2 * ALL)
            .expect("without a request there is no bound");
        assert!(!none.is_exhausted());
        let request = RequestBudget::for_request();
        let clone = request.clone();
        request.spend(ALL - 1).expect("within it");
        RequestBudget::for_request()
            .spend(ALL)
            .expect("a grant of its own");
        clone.spend(1).expect("all of it");
        assert!(request.is_exhausted());
        let passing = request.spend(1).expect_err("more than that");
        assert!(passing.is_transient());
    }

    #[test]
    fn the_limit_of_a_request_ends_with_it() {
        const ALL: u64 = limits::REQUEST_METADATA;
        let budget = RequestBudget::for_request();
        for _ in 0..2 {
            let _granted = budget.renew_for(&CancelToken::default());
            budget.spend(ALL).expect("all of it");
            budget.renew();
            budget.spend(ALL).expect("all of it once more");
            assert!(budget.is_exhausted());
            budget.remove_limit();
            budget.spend(2 * ALL).expect("no bound");
        }
        assert!(!budget.is_exhausted());
        budget.spend(ALL + 1).expect("no bound again");
    }

    #[test]
    fn non_blocking_work_fails_instead_of_waiting() {
        let (glance, has_waited) = (RequestBudget::non_blocking(), Arc::new(AtomicU64::new(0)));
        let part = glance.sub_budget(100);
        assert!(part.is_non_blocking() && !RequestBudget::for_request().is_non_blocking());
        let waited = Arc::clone(&has_waited);
        let wait = Box::new(move || waited.store(1, Ordering::Relaxed));
        assert!(part.fail_with_wait(wait).is_transient());
        assert!(glance.is_exhausted() && part.is_exhausted());
        assert_eq!(has_waited.load(Ordering::Relaxed), 0);
        glance.take_wait().expect("it was put off")();
        assert_eq!(has_waited.load(Ordering::Relaxed), 1);
        assert!(glance.take_wait().is_none());
    }

    #[test]
    fn a_sub_budget_is_charged_to_its_parent() {
        let lasting = RequestBudget::default().sub_budget(10).spend(11);
        assert!(
            !lasting
                .expect_err("bounded without a whole, too")
                .is_transient()
        );
        let whole = RequestBudget::new(15);
        {
            let part = whole.sub_budget(10);
            part.spend(9).expect("most of the part");
            let lasting = part
                .sub_budget(10)
                .spend(2)
                .expect_err("bounded by the part");
            assert!(!lasting.is_transient());
        }
        assert!(!whole.is_exhausted());
        let passing = whole
            .sub_budget(10)
            .spend(6)
            .expect_err("more than was left");
        assert!(passing.is_transient());
        assert!(whole.is_exhausted());
    }
}

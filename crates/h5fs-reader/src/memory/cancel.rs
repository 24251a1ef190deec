//! Cancellation of unwanted work, and postponement of work that would block other requests.
//!
//! A request first runs in a slot for quick work. The attempt ends when it reaches work that may
//! take long, or when other requests need the slot. The request then starts again in a slot for
//! heavy work; there are few such slots.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

/// A token that shows whether its work must end. The default token is never cancelled.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    generation: Option<(Arc<AtomicU64>, u64)>,
    slot: Option<Arc<RequestSlot>>,
}

/// A source of tokens that can cancel all of them. Dropping the canceller cancels every token that
/// it made.
#[derive(Debug, Default)]
pub struct Canceller(Arc<AtomicU64>);

/// The slot of a request, and whether a client still waits for the reply.
#[derive(Debug, Default)]
pub struct RequestSlot {
    is_abandoned: AtomicBool,
    work_class: AtomicU8,
}

/// A function that returns whether a request still waits for the result of the work. If it returns
/// false, the work ends with [`Error::cancelled`].
pub type WantedCheck<'a> = dyn Fn() -> bool + Sync + 'a;

/// Checks whether a request still waits for the work.
///
/// # Errors
/// [`Error::cancelled`] if no request waits.
pub(crate) fn check_wanted(is_wanted: &WantedCheck<'_>) -> Result<()> {
    if is_wanted() {
        Ok(())
    } else {
        Err(Error::cancelled())
    }
}

/// Interval between two attempts to lock a mutex that another thread holds.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(5);

const QUICK: u8 = 0;
const POSTPONED: u8 = 1;
const HEAVY: u8 = 2;

impl Canceller {
    /// Returns a new token that the canceller can cancel.
    pub fn token(&self) -> CancelToken {
        let now = self.0.load(Ordering::Relaxed);
        CancelToken {
            generation: Some((Arc::clone(&self.0), now)),
            slot: None,
        }
    }

    /// Cancels all tokens that the canceller has made so far.
    pub fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Canceller {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl CancelToken {
    /// Adds the slot of a request to the token. If the slot is abandoned or postponed, the token is
    /// then cancelled as well.
    pub fn with_slot(self, ticket: &Arc<RequestSlot>) -> Self {
        CancelToken {
            slot: Some(Arc::clone(ticket)),
            ..self
        }
    }

    /// Lets `canceller` cancel the token, unless the token already belongs to a canceller.
    pub fn or_cancelled_by(mut self, canceller: &Canceller) -> Self {
        self.generation = self.generation.or_else(|| canceller.token().generation);
        self
    }

    /// Returns whether the work must end, because no request waits for the work or the request is
    /// postponed.
    pub fn is_cancelled(&self) -> bool {
        let ticket = self.slot.as_ref();
        self.is_abandoned() || ticket.is_some_and(|ticket| ticket.work_class() == POSTPONED)
    }

    /// Returns whether no request waits for the work.
    pub fn is_abandoned(&self) -> bool {
        let made = self.generation.as_ref();
        let ticket = self.slot.as_ref();
        made.is_some_and(|(current, made)| current.load(Ordering::Relaxed) != *made)
            || ticket.is_some_and(|ticket| ticket.is_abandoned())
    }

    /// Returns whether a request whose attempt ended with the result `ended` must be repeated in a
    /// slot for heavy work.
    pub fn is_postponed_by<T>(&self, ended: &Result<T>) -> bool {
        let is_over = ended.as_ref().is_err_and(Error::is_cancelled);
        // Even in a slot for heavy work, an attempt ends with this error if it meets the cancelled
        // token of another request.
        is_over && !self.is_abandoned() && self.slot.is_some()
    }

    /// Checks whether the work may continue.
    ///
    /// # Errors
    /// [`Error::cancelled`] if the work must end.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }

    /// Checks for cancellation after one batch of a loop over rows, elements or units. Returns
    /// `next`, the start of the next batch.
    ///
    /// # Errors
    /// [`Error::cancelled`] if the work must end. `Corrupt` if `next` is not greater than `at`, the
    /// start of this batch: the loop would never end.
    pub fn next_batch(&self, at: u64, next: u64) -> Result<u64> {
        self.check_cancelled()?;
        if next > at {
            Ok(next)
        } else {
            Err(Error::corrupt("view: a part without a unit", None))
        }
    }

    /// Checks that the request may start work that may take long. Postpones the request unless it
    /// has a slot for heavy work.
    ///
    /// # Errors
    /// [`Error::cancelled`] if the work must end or is postponed. A postponed request starts again
    /// in a slot for heavy work.
    pub fn require_heavy_slot(&self) -> Result<()> {
        if let Some(ticket) = &self.slot {
            ticket.postpone();
        }
        self.check_cancelled()
    }
}

impl CancelToken {
    /// Locks a mutex that other threads may hold during heavy work.
    ///
    /// # Errors
    /// [`Error::cancelled`] if the work must end or is postponed before the mutex is free.
    pub fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>> {
        loop {
            match mutex.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(held)) => return Ok(held.into_inner()),
                Err(TryLockError::WouldBlock) => self.require_heavy_slot()?,
            }
            thread::sleep(LOCK_RETRY_INTERVAL);
        }
    }
}

impl RequestSlot {
    /// Records that no client waits for the reply.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns whether no client waits for the reply.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Postpones the request: ends its work as soon as possible, unless its slot is for heavy work.
    pub fn postpone(&self) {
        let (before, after) = (Ordering::Relaxed, Ordering::Relaxed);
        // A slot that is postponed already, or is for heavy work, stays as it is.
        let _ = self
            .work_class
            .compare_exchange(QUICK, POSTPONED, before, after);
    }

    /// Returns whether the request is postponed.
    pub fn is_postponed(&self) -> bool {
        self.work_class() == POSTPONED
    }

    /// Moves the request to a slot for heavy work.
    pub fn move_to_heavy_slot(&self) {
        self.work_class.store(HEAVY, Ordering::Relaxed);
    }

    /// Returns whether the request has a slot for heavy work.
    pub fn has_heavy_slot(&self) -> bool {
        self.work_class() == HEAVY
    }

    fn work_class(&self) -> u8 {
        self.work_class.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_or_cancelled_loop_ends() {
        let canceller = Canceller::default();
        let token = canceller.token();
        assert_eq!(token.next_batch(3, 4), Ok(4));
        for next in [3, 2] {
            let ended = token.next_batch(3, next);
            assert!(matches!(ended, Err(Error::Corrupt { .. })), "{ended:?}");
        }
        canceller.cancel();
        let ended = token.next_batch(3, 4);
        assert!(ended.is_err_and(|error| error.is_cancelled()));
    }

    #[test]
    fn heavy_work_is_postponed_once() {
        let ticket = Arc::<RequestSlot>::default();
        let token = CancelToken::default().with_slot(&ticket);
        assert_eq!(token.check_cancelled(), Ok(()));
        assert!(
            token
                .require_heavy_slot()
                .is_err_and(|error| error.is_cancelled())
        );
        assert!(ticket.is_postponed() && !token.is_abandoned() && token.check_cancelled().is_err());
        ticket.move_to_heavy_slot();
        assert_eq!(
            (token.check_cancelled(), token.require_heavy_slot()),
            (Ok(()), Ok(()))
        );
        ticket.postpone();
        assert!(ticket.has_heavy_slot() && token.check_cancelled().is_ok());
        ticket.abandon();
        assert!(token.is_abandoned() && token.require_heavy_slot().is_err());
        assert_eq!(CancelToken::default().require_heavy_slot(), Ok(()));
    }

    #[test]
    fn a_held_mutex_is_awaited_only_in_a_heavy_slot() {
        let (held, ticket) = (Mutex::new(1), Arc::<RequestSlot>::default());
        let token = CancelToken::default().with_slot(&ticket);
        let guard = held.lock().unwrap();
        assert!(token.lock(&held).is_err_and(|error| error.is_cancelled()));
        assert!(ticket.is_postponed());
        ticket.move_to_heavy_slot();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| token.lock(&held).map(|held| *held));
            drop(guard);
            assert_eq!(waiting.join().unwrap(), Ok(1));
            let guard = held.lock().unwrap();
            let given_up = scope.spawn(|| token.lock(&held).map(|held| *held));
            ticket.abandon();
            assert!(
                given_up
                    .join()
                    .unwrap()
                    .is_err_and(|error| error.is_cancelled())
            );
            drop(guard);
        });
    }

    #[test]
    fn a_cancellation_of_other_work_is_retried() {
        let other = Canceller::default().token();
        let ended = other.check_cancelled();
        assert!(ended.is_err());
        let ticket = Arc::<RequestSlot>::default();
        let token = CancelToken::default().with_slot(&ticket);
        assert!(token.is_postponed_by(&ended));
        ticket.move_to_heavy_slot();
        assert!(token.is_postponed_by(&ended), "in a heavy place, too");
        assert!(!token.is_postponed_by(&Ok(())));
        assert!(!CancelToken::default().is_postponed_by(&ended));
        ticket.abandon();
        assert!(!token.is_postponed_by(&ended), "nobody waits");
    }
}

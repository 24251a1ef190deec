//! Cancellation of unwanted work, and postponement of work that would block other requests.
//!
//! A request first runs in a slot for quick work. The attempt ends when it reaches work that may
//! take long, or when the slot is needed by others. The request then starts again in a slot for
//! heavy work; there are few such slots.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

/// A token that shows whether its work must end. The default token is never cancelled.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    made: Option<(Arc<AtomicU64>, u64)>,
    ticket: Option<Arc<Ticket>>,
}

/// A source of tokens that can cancel all of them. Dropping the canceller cancels every token that
/// it made.
#[derive(Debug, Default)]
pub struct Canceller(Arc<AtomicU64>);

/// The slot of a request, and whether a client still waits for the reply.
#[derive(Debug, Default)]
pub struct Ticket {
    is_left: AtomicBool,
    place: AtomicU8,
}

/// A function that returns whether a request still waits for the work. If not, the work ends with
/// [`Error::unwanted`].
pub type IsWanted<'a> = dyn Fn() -> bool + Sync + 'a;

/// Checks whether a request still waits for the work.
///
/// # Errors
/// [`Error::unwanted`] if no request waits.
pub fn check_wanted(is_wanted: &IsWanted<'_>) -> Result<()> {
    if is_wanted() {
        Ok(())
    } else {
        Err(Error::unwanted())
    }
}

/// Interval between two attempts to lock a mutex that another thread holds.
const LOOK: Duration = Duration::from_millis(5);

const QUICK: u8 = 0;
const PUT_OFF: u8 = 1;
const HEAVY: u8 = 2;

impl Canceller {
    /// Returns a new token.
    pub fn token(&self) -> CancelToken {
        let now = self.0.load(Ordering::Relaxed);
        CancelToken {
            made: Some((Arc::clone(&self.0), now)),
            ticket: None,
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
    /// Adds the ticket of a request to the token. The ticket can end the work as well.
    pub fn with_ticket(self, ticket: &Arc<Ticket>) -> Self {
        CancelToken {
            ticket: Some(Arc::clone(ticket)),
            ..self
        }
    }

    /// Lets `canceller` cancel the token too, unless the token already belongs to a canceller.
    pub fn or_cancelled_by(mut self, canceller: &Canceller) -> Self {
        self.made = self.made.or_else(|| canceller.token().made);
        self
    }

    /// Returns whether the work must end, because no request waits for it or it is postponed.
    pub fn is_cancelled(&self) -> bool {
        let ticket = self.ticket.as_ref();
        self.is_unwanted() || ticket.is_some_and(|ticket| ticket.work_class() == PUT_OFF)
    }

    /// Returns whether no request waits for the work.
    pub fn is_unwanted(&self) -> bool {
        let made = self.made.as_ref();
        let ticket = self.ticket.as_ref();
        made.is_some_and(|(current, made)| current.load(Ordering::Relaxed) != *made)
            || ticket.is_some_and(|ticket| ticket.is_left())
    }

    /// Returns whether an attempt with the result `ended` must be repeated in a slot for heavy
    /// work.
    pub fn is_put_off_by<T>(&self, ended: &Result<T>) -> bool {
        let is_over = ended.as_ref().is_err_and(Error::is_unwanted);
        // In a slot for heavy work, an attempt ends like this if it meets the token of another
        // request.
        is_over && !self.is_unwanted() && self.ticket.is_some()
    }

    /// Checks whether the work may continue.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the work must end.
    pub fn go_on(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(Error::unwanted())
        } else {
            Ok(())
        }
    }

    /// Ends one batch of a loop over rows, elements or units. Returns `next`, the start of the next
    /// batch.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the work must end. `Corrupt` if `next` is not greater than `at`, the
    /// start of this batch: the loop would never end.
    pub fn advance(&self, at: u64, next: u64) -> Result<u64> {
        self.go_on()?;
        if next > at {
            Ok(next)
        } else {
            Err(Error::corrupt("view: a part without a unit", None))
        }
    }

    /// Starts work that may take long.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the work must end or is postponed. A postponed request starts again
    /// in a slot for heavy work.
    pub fn begin_heavy(&self) -> Result<()> {
        if let Some(ticket) = &self.ticket {
            ticket.put_off();
        }
        self.go_on()
    }
}

impl CancelToken {
    /// Locks a mutex that other threads may hold during heavy work.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the work must end or is postponed before the mutex is free.
    pub fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>> {
        loop {
            match mutex.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(held)) => return Ok(held.into_inner()),
                Err(TryLockError::WouldBlock) => self.begin_heavy()?,
            }
            thread::sleep(LOOK);
        }
    }
}

impl Ticket {
    /// Records that no client waits for the reply.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Returns whether no client waits for the reply.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Postpones the request: ends its work as soon as possible, unless its slot is for heavy work.
    pub fn put_off(&self) {
        let (before, after) = (Ordering::Relaxed, Ordering::Relaxed);
        // A ticket that is postponed already, or has a heavy slot, stays as it is.
        let _ = self.place.compare_exchange(QUICK, PUT_OFF, before, after);
    }

    /// Returns whether the request is postponed.
    pub fn is_put_off(&self) -> bool {
        self.work_class() == PUT_OFF
    }

    /// Moves the request to a slot for heavy work.
    pub fn begin_heavy(&self) {
        self.place.store(HEAVY, Ordering::Relaxed);
    }

    /// Returns whether the request has a slot for heavy work.
    pub fn is_heavy(&self) -> bool {
        self.work_class() == HEAVY
    }

    fn work_class(&self) -> u8 {
        self.place.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stands_still_or_is_cancelled_ends() {
        let canceller = Canceller::default();
        let token = canceller.token();
        assert_eq!(token.advance(3, 4), Ok(4));
        for next in [3, 2] {
            let ended = token.advance(3, next);
            assert!(matches!(ended, Err(Error::Corrupt { .. })), "{ended:?}");
        }
        canceller.cancel();
        let ended = token.advance(3, 4);
        assert!(ended.is_err_and(|error| error.is_unwanted()));
    }

    #[test]
    fn heavy_work_is_put_off_once() {
        let ticket = Arc::<Ticket>::default();
        let token = CancelToken::default().with_ticket(&ticket);
        assert_eq!(token.go_on(), Ok(()));
        assert!(token.begin_heavy().is_err_and(|error| error.is_unwanted()));
        assert!(ticket.is_put_off() && !token.is_unwanted() && token.go_on().is_err());
        ticket.begin_heavy();
        assert_eq!((token.go_on(), token.begin_heavy()), (Ok(()), Ok(())));
        ticket.put_off();
        assert!(ticket.is_heavy() && token.go_on().is_ok());
        ticket.leave();
        assert!(token.is_unwanted() && token.begin_heavy().is_err());
        assert_eq!(CancelToken::default().begin_heavy(), Ok(()));
    }

    #[test]
    fn what_another_holds_is_waited_for_in_a_heavy_place() {
        let (held, ticket) = (Mutex::new(1), Arc::<Ticket>::default());
        let token = CancelToken::default().with_ticket(&ticket);
        let guard = held.lock().unwrap();
        assert!(token.lock(&held).is_err_and(|error| error.is_unwanted()));
        assert!(ticket.is_put_off());
        ticket.begin_heavy();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| token.lock(&held).map(|held| *held));
            drop(guard);
            assert_eq!(waiting.join().unwrap(), Ok(1));
            let guard = held.lock().unwrap();
            let given_up = scope.spawn(|| token.lock(&held).map(|held| *held));
            ticket.leave();
            assert!(
                given_up
                    .join()
                    .unwrap()
                    .is_err_and(|error| error.is_unwanted())
            );
            drop(guard);
        });
    }

    #[test]
    fn who_meets_the_end_of_another_tries_again() {
        let other = Canceller::default().token();
        let ended = other.go_on();
        assert!(ended.is_err());
        let ticket = Arc::<Ticket>::default();
        let token = CancelToken::default().with_ticket(&ticket);
        assert!(token.is_put_off_by(&ended));
        ticket.begin_heavy();
        assert!(token.is_put_off_by(&ended), "in a heavy place, too");
        assert!(!token.is_put_off_by(&Ok(())));
        assert!(!CancelToken::default().is_put_off_by(&ended));
        ticket.leave();
        assert!(!token.is_put_off_by(&ended), "nobody waits");
    }
}

//! Giving up work that nobody waits for, and putting off work that others should not wait for.
//!
//! A request is tried in a place for quick ones first. Where it comes to work that may take long,
//! or is told that others wait for its place, it ends there and begins anew later, in a place for
//! heavy ones, of which there are few.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

/// Tells work whether it is to end; the default one never says so.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    made: Option<(Arc<AtomicU64>, u64)>,
    ticket: Option<Arc<Ticket>>,
}

/// Makes tokens and cancels them; those that it has made are cancelled when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Canceller(Arc<AtomicU64>);

/// The place in which a request is answered, and whether somebody still waits for the answer.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    is_left: AtomicBool,
    place: AtomicU8,
}

/// Returns whether a request still waits for the work. Where none does, the work ends with
/// [`Error::unwanted`].
pub type IsWanted<'a> = dyn Fn() -> bool + Sync + 'a;

/// Checks whether a request still waits for the work.
///
/// # Errors
/// [`Error::unwanted`] where none does.
pub fn still(is_wanted: &IsWanted<'_>) -> Result<()> {
    if is_wanted() {
        Ok(())
    } else {
        Err(Error::unwanted())
    }
}

/// How often what another holds is looked at.
const LOOK: Duration = Duration::from_millis(5);

const QUICK: u8 = 0;
const PUT_OFF: u8 = 1;
const HEAVY: u8 = 2;

impl Canceller {
    /// One more token.
    pub(crate) fn token(&self) -> CancelToken {
        let now = self.0.load(Ordering::Relaxed);
        CancelToken {
            made: Some((Arc::clone(&self.0), now)),
            ticket: None,
        }
    }

    /// Cancels all tokens that were made so far.
    pub(crate) fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Canceller {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl CancelToken {
    /// The same for a request with this ticket, which may end for its reasons, too.
    pub(crate) fn with(self, ticket: &Arc<Ticket>) -> Self {
        CancelToken {
            ticket: Some(Arc::clone(ticket)),
            ..self
        }
    }

    /// The same for work that also ends with what `canceller` cancels, unless another does that.
    pub(crate) fn or(mut self, canceller: &Canceller) -> Self {
        self.made = self.made.or_else(|| canceller.token().made);
        self
    }

    /// Whether the work is to end: nobody waits for it, or it is put off.
    pub(crate) fn is_cancelled(&self) -> bool {
        let ticket = self.ticket.as_ref();
        self.is_unwanted() || ticket.is_some_and(|ticket| ticket.place() == PUT_OFF)
    }

    /// Whether nobody waits for the work.
    pub(crate) fn is_unwanted(&self) -> bool {
        let made = self.made.as_ref();
        let ticket = self.ticket.as_ref();
        made.is_some_and(|(current, made)| current.load(Ordering::Relaxed) != *made)
            || ticket.is_some_and(|ticket| ticket.is_left())
    }

    /// Whether an attempt that ended so is to be repeated in a place for heavy work.
    pub(crate) fn is_put_off_by<T>(&self, ended: &Result<T>) -> bool {
        let is_over = ended.as_ref().is_err_and(Error::is_unwanted);
        // In such a place it ends so where it meets the token of another request.
        is_over && !self.is_unwanted() && self.ticket.is_some()
    }

    /// Goes on with the work.
    ///
    /// # Errors
    /// [`Error::unwanted`] if it is to end.
    pub(crate) fn go_on(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(Error::unwanted())
        } else {
            Ok(())
        }
    }

    /// Ends one batch of a loop over rows, elements or units: returns `next`, where the next batch
    /// begins.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the work is to end; `Corrupt` if the batch that began at `at` has made
    /// no progress, as the loop would never end.
    pub(crate) fn advance(&self, at: u64, next: u64) -> Result<u64> {
        self.go_on()?;
        if next > at {
            Ok(next)
        } else {
            Err(Error::corrupt("view: a part without a unit", None))
        }
    }

    /// Begins work that may take long.
    ///
    /// # Errors
    /// [`Error::unwanted`] if it is to end, or is put off: it is begun anew in a place for such
    /// work.
    pub(crate) fn begin_heavy(&self) -> Result<()> {
        if let Some(ticket) = &self.ticket {
            ticket.put_off();
        }
        self.go_on()
    }
}

impl CancelToken {
    /// Locks what another may hold for as long as heavy work takes.
    ///
    /// # Errors
    /// [`Error::unwanted`] if the work is to end before it is free, or is put off.
    pub(crate) fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>> {
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
    /// Nobody waits for the answer any more.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Ends the work as soon as may be, unless it is in a place for heavy work.
    pub(crate) fn put_off(&self) {
        let (before, after) = (Ordering::Relaxed, Ordering::Relaxed);
        // Where it is in another place already, it stays there.
        let _ = self.place.compare_exchange(QUICK, PUT_OFF, before, after);
    }

    /// Whether it was told to end.
    pub(crate) fn is_put_off(&self) -> bool {
        self.place() == PUT_OFF
    }

    /// Has a place for heavy work.
    pub(crate) fn begin_heavy(&self) {
        self.place.store(HEAVY, Ordering::Relaxed);
    }

    /// Whether it has such a place.
    pub(crate) fn is_heavy(&self) -> bool {
        self.place() == HEAVY
    }

    fn place(&self) -> u8 {
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
        let token = CancelToken::default().with(&ticket);
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
        let token = CancelToken::default().with(&ticket);
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
        let token = CancelToken::default().with(&ticket);
        assert!(token.is_put_off_by(&ended));
        ticket.begin_heavy();
        assert!(token.is_put_off_by(&ended), "in a heavy place, too");
        assert!(!token.is_put_off_by(&Ok(())));
        assert!(!CancelToken::default().is_put_off_by(&ended));
        ticket.leave();
        assert!(!token.is_put_off_by(&ended), "nobody waits");
    }
}

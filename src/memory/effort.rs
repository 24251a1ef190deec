//! How much metadata one request looks at.
//!
//! A structure has its own bounds, but a file can be made so that a request meets thousands of the
//! largest: an index whose records lead to one damaged block, links to headers of megabytes. A
//! request therefore has an effort: it is passed down with the container that the request asks, and
//! each structure is charged to it before it is read. Work that no request waits for has no bound.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::cancel::CancelToken;
use crate::memory::lock::lock;
use crate::wire::Count;

/// Stands for a grant without a bound.
const UNBOUNDED: u64 = u64::MAX;

/// Bytes that may still be looked at. Clones spend from one grant. The default has no bound.
#[derive(Debug, Clone, Default)]
pub struct Effort(Option<Arc<Grant>>);

#[derive(Debug)]
struct Grant {
    left: AtomicU64,
    /// The effort that this one is a part of.
    whole: Effort,
    /// The bytes of this part, or of the part that it is in, where they were granted in full.
    in_full: Option<u64>,
    glance: Option<Glance>,
    /// Of the request that it is granted to at present.
    cancel: Mutex<CancelToken>,
}

/// Waits for something.
pub type Wait = Box<dyn FnOnce() + Send>;

/// The wait that a glance has put off.
#[derive(Default)]
struct Glance(Mutex<Option<Wait>>);

impl fmt::Debug for Glance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Glance")
    }
}

/// The time of a request, at whose end the bound of its effort is lifted: a view or a listing that
/// the request opened outlives it.
#[derive(Debug)]
pub struct Granted(Effort);

impl Effort {
    /// At most `bytes`.
    pub fn of(bytes: u64) -> Self {
        Effort(Some(Arc::new(Grant {
            left: AtomicU64::new(bytes),
            whole: Effort::default(),
            in_full: None,
            glance: None,
            cancel: Mutex::default(),
        })))
    }

    /// The effort of a request, for work that waits for no far source: where it would have to wait,
    /// it is over, and has asked for what it lacks.
    pub fn of_a_glance() -> Self {
        Effort(Some(Arc::new(Grant {
            left: AtomicU64::new(limits::REQUEST_METADATA),
            whole: Effort::default(),
            in_full: None,
            glance: Some(Glance::default()),
            cancel: Mutex::default(),
        })))
    }

    /// Returns an effort without a bound, whose work ends once `cancel` says so; what outlives the
    /// work is no more cancelled once the second value is dropped.
    pub(crate) fn until(cancel: &CancelToken) -> (Self, Granted) {
        let effort = Self::of(UNBOUNDED);
        effort.set_cancel(cancel.clone());
        (effort.clone(), Granted(effort))
    }

    fn glance(&self) -> Option<&Glance> {
        let grant = self.0.as_ref()?;
        grant.glance.as_ref().or_else(|| grant.whole.glance())
    }

    /// Whether nothing is to be waited for.
    pub fn is_glance(&self) -> bool {
        self.glance().is_some()
    }

    /// Ends a glance that would have to `wait`.
    pub fn put_off(&self, wait: Wait) -> Error {
        if let Some(Glance(put_off)) = self.glance() {
            *lock(put_off) = Some(wait);
        }
        self.exhaust();
        Error::Effort { max: 0 }
    }

    /// The wait for which a glance is over.
    pub fn wait(&self) -> Option<Wait> {
        self.glance()
            .and_then(|Glance(put_off)| lock(put_off).take())
    }

    /// Leaves nothing, of the whole neither.
    fn exhaust(&self) {
        if let Some(grant) = &self.0 {
            grant.left.store(0, Ordering::Relaxed);
            grant.whole.exhaust();
        }
    }

    /// The metadata that one request may look at.
    pub fn of_a_request() -> Self {
        Self::of(limits::REQUEST_METADATA)
    }

    /// At most `bytes` of what is left, which are taken from the whole as they are spent.
    pub fn part(&self, bytes: u64) -> Self {
        let left = self.left().min(bytes);
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

    /// Grants what one request may look at once more, until the result is dropped or the request
    /// is to end.
    pub(crate) fn granted(&self, cancel: &CancelToken) -> Granted {
        self.renew();
        self.set_cancel(cancel.clone());
        Granted(self.clone())
    }

    /// Tells whether the request that it is granted to is to end.
    pub(crate) fn cancel(&self) -> CancelToken {
        let grant = self.0.as_ref();
        grant.map_or_else(CancelToken::default, |grant| lock(&grant.cancel).clone())
    }

    fn set_cancel(&self, cancel: CancelToken) {
        if let Some(grant) = &self.0 {
            *lock(&grant.cancel) = cancel;
        }
    }

    /// Grants what one request may look at once more.
    pub fn renew(&self) {
        self.set(limits::REQUEST_METADATA);
    }

    /// Lifts the bound until it is renewed: other bounds hold for the work.
    pub(crate) fn lift(&self) {
        self.set(UNBOUNDED);
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.left() == 0
    }

    /// Takes `bytes` of what is left.
    ///
    /// # Errors
    /// `Effort` where less is left; `Limit` where that is what was granted in full as a
    /// [`part`](Self::part), so that it is too little the next time as well;
    /// [`Error::unwanted`] once the request is to end.
    pub fn spend(&self, bytes: u64) -> Result<()> {
        let Some(grant) = &self.0 else {
            return Ok(());
        };
        lock(&grant.cancel).go_on()?;
        let left = self.take(bytes);
        if bytes <= left {
            return Ok(());
        }
        let of_one = |all| Error::limit("metadata that is looked at for one object", all);
        Err(grant.in_full.map_or(Error::Effort { max: left }, of_one))
    }

    /// Takes `bytes`, or all that is left; gives what was left before.
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

    fn left(&self) -> u64 {
        let left = |grant: &Arc<Grant>| grant.left.load(Ordering::Relaxed);
        self.0.as_ref().map_or(UNBOUNDED, left)
    }

    fn set(&self, left: u64) {
        if let Some(grant) = &self.0 {
            grant.left.store(left, Ordering::Relaxed);
        }
    }
}

impl Drop for Granted {
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
        let whole = Effort::of(15);
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

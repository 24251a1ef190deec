//! A memory budget for pages of listings. The larger pages are, the fewer of them are in memory at
//! a time.
//!
//! Each size class has a number of slots. While a page arrives, it reserves a slot in each size
//! class that it reaches, and keeps its slots until its names are sent. The parsed names take
//! several times the memory of the document. A page that waits for a slot holds no more bytes than
//! the smaller class permits. A page that has a slot in the largest class never waits.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use h5fs_reader::memory::gate::{AdmissionGate, AdmissionTicket};

use crate::limits;
use crate::retries::{AbortReason, AttemptLimit};

/// The size classes of pages. A page with more than the first number of bytes belongs to the class.
/// The second number is the number of slots for such pages.
const CLASSES: [(usize, usize); 2] = [
    (limits::SMALL_LISTING, limits::MEDIUM_LISTINGS),
    (limits::MEDIUM_LISTING, limits::LARGE_LISTINGS),
];

/// The slots in all size classes.
#[derive(Debug, Default)]
pub(crate) struct PageSlots(Arc<AdmissionGate<()>>);

/// The slots that one page occupies, or several pages of one directory that are combined.
#[derive(Debug)]
pub(crate) struct PageReservation<'a> {
    all: &'a PageSlots,
    bytes: Cell<usize>,
    taken: RefCell<Vec<AdmissionTicket<()>>>,
}

impl PageSlots {
    pub(crate) fn new_reservation(&self) -> PageReservation<'_> {
        PageReservation {
            all: self,
            bytes: Cell::new(0),
            taken: RefCell::default(),
        }
    }
}

impl PageReservation<'_> {
    /// Adds `more` bytes to the page, and reserves the slots that the larger page needs. Returns
    /// whether a slot was reserved.
    ///
    /// # Errors
    /// Fails if the time limit elapses before a slot is free, or if the request is cancelled.
    pub(crate) fn reserve(
        &self,
        more: usize,
        allowed: &AttemptLimit<'_>,
    ) -> Result<bool, AbortReason> {
        let bytes = self.bytes.get().saturating_add(more);
        self.bytes.set(bytes);
        let mut taken = self.taken.borrow_mut();
        let before = taken.len();
        while let Some((least, most)) = CLASSES.get(taken.len())
            && bytes > *least
        {
            let class = taken.len();
            taken.push(self.all.0.enter(
                (class, 0),
                |(), works| works.admitted_weights(class).count() < *most,
                || allowed.check(),
            )?);
        }
        Ok(taken.len() > before)
    }

    /// Releases the slots of the page.
    pub(crate) fn release(&self) {
        self.bytes.set(0);
        self.taken.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::retries::RetryBudget;

    const SECOND: Duration = Duration::from_secs(1);

    /// Holds more pages than there are slots, each in its own thread. Returns the maximum number of
    /// pages held at a time.
    fn most_at_once(bytes: usize) -> usize {
        const PAGES: usize = 64;
        let (places, is_cancelled) = (PageSlots::default(), AtomicBool::new(false));
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..PAGES {
                scope.spawn(|| {
                    let patience = RetryBudget::new(600 * SECOND, &is_cancelled);
                    let room = places.new_reservation();
                    room.reserve(bytes, &patience.attempt_limit(600 * SECOND))
                        .unwrap();
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        most.into_inner()
    }

    #[test]
    fn the_number_of_concurrent_large_pages_is_limited() {
        assert!(most_at_once(limits::SMALL_LISTING + 1) <= limits::MEDIUM_LISTINGS);
        assert!(most_at_once(limits::MEDIUM_LISTING + 1) <= limits::LARGE_LISTINGS);
        assert!(most_at_once(limits::LISTING_BYTES) <= limits::LARGE_LISTINGS);
    }

    #[test]
    fn small_pages_do_not_wait_and_slots_are_released() {
        let (places, is_cancelled) = (PageSlots::default(), AtomicBool::new(false));
        let patience = RetryBudget::new(600 * SECOND, &is_cancelled);
        let (long, none) = (
            patience.attempt_limit(600 * SECOND),
            patience.attempt_limit(Duration::ZERO),
        );
        let rooms: Vec<_> = (0..limits::LARGE_LISTINGS)
            .map(|_| places.new_reservation())
            .collect();
        for room in &rooms {
            assert_eq!(room.reserve(limits::SMALL_LISTING, &long), Ok(false));
            assert_eq!(room.reserve(limits::LISTING_BYTES, &long), Ok(true));
            assert_eq!(room.reserve(limits::LISTING_BYTES, &long), Ok(false));
        }
        let next = places.new_reservation();
        assert_eq!(next.reserve(limits::SMALL_LISTING, &none), Ok(false));
        assert_eq!(
            next.reserve(limits::LISTING_BYTES, &none),
            Err(AbortReason::TimedOut)
        );
        rooms[0].release();
        assert_eq!(next.reserve(1, &none), Ok(true));
        is_cancelled.store(true, Ordering::Relaxed);
        assert_eq!(
            rooms[0].reserve(limits::LISTING_BYTES, &long),
            Err(AbortReason::Cancelled)
        );
    }
}

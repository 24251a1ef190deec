//! The requests that are under way, and which may be begun beside them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fs::workers::queue::{File, Object, Of, Request};
use crate::limits;
use crate::memory::cancel::Ticket;

/// The places of requests.
#[derive(Default)]
pub(super) struct Places {
    /// How many there are of each kind: quick ones for contents and for all else, and heavy ones.
    pub(super) threads: usize,
    /// In the order of their beginning.
    under_way: Vec<Request>,
}

impl Places {
    /// For so many threads, one at least.
    pub(super) fn new(threads: usize) -> Self {
        Places {
            threads: threads.max(1),
            under_way: Vec::new(),
        }
    }

    /// The requests that are under way, which began at their `since`.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.under_way.iter()
    }

    /// Requests that may be under way in quick places at a time, whatever they are about.
    fn slow_or_not(&self) -> usize {
        self.threads.saturating_add(limits::SLOW_REQUESTS)
    }

    /// Those, and the places that are left to other files.
    fn most_quick(&self) -> usize {
        self.slow_or_not().saturating_add(limits::FILE_PLACES)
    }

    /// Requests that may be under way at a time.
    pub(super) fn most(&self) -> usize {
        self.most_quick().saturating_add(self.threads)
    }

    /// Begins a request.
    pub(super) fn begin(&mut self, request: &Request) {
        self.under_way.push(Request {
            since: Instant::now(),
            ..request.clone()
        });
    }

    /// Ends the request with this ticket.
    pub(super) fn end(&mut self, ticket: &Arc<Ticket>) {
        let is_other = |request: &Request| !Arc::ptr_eq(&request.ticket, ticket);
        self.under_way.retain(is_other);
    }

    /// The requests in heavy places, or in quick ones.
    fn placed(&self, is_heavy: bool) -> impl DoubleEndedIterator<Item = &Request> {
        let all = self.under_way.iter();
        all.filter(move |request| request.ticket.is_heavy() == is_heavy)
    }

    /// Whether a request of the object may be begun in a quick place now.
    pub(super) fn may_begin(&self, (object, file): Of, now: Instant) -> bool {
        self.is_object_free(object) && self.is_file_free(file) && self.has_place(object, now)
    }

    fn is_object_free(&self, object: Object) -> bool {
        let is_other = |request: &Request| request.of.0 != object;
        self.placed(false).count() < self.threads || self.placed(false).all(is_other)
    }

    fn is_file_free(&self, file: File) -> bool {
        let is_other = || self.placed(false).all(|other| other.of.1 != file);
        let count = self.placed(false).count();
        count < self.slow_or_not() || file.is_some() && count < self.most_quick() && is_other()
    }

    /// Whether few enough requests of this kind are under way and not slow yet.
    fn has_place(&self, object: Object, now: Instant) -> bool {
        let fast = self.placed(false).filter(|other| !is_slow(other, now));
        let alike = fast.filter(|other| other.of.0.is_content() == object.is_content());
        alike.count() < self.threads
    }

    /// Whether a heavy place is free.
    pub(super) fn has_heavy_place(&self) -> bool {
        self.placed(true).count() < self.threads
    }

    /// Whether no request of the same file has a heavy place.
    pub(super) fn is_first_of_file(&self, (_, file): Of) -> bool {
        file.is_some() && self.placed(true).all(|other| other.of.1 != file)
    }

    /// Whether no request of the same object has a heavy place.
    pub(super) fn is_first_of_object(&self, (object, _): Of) -> bool {
        self.placed(true).all(|other| other.of.0 != object)
    }

    /// Where all quick places are taken, tells the slow request that was begun last to go on in a
    /// heavy one. Gives the time until another request may become slow, or leave its place.
    pub(super) fn make_room(&self, now: Instant) -> Duration {
        if self.placed(false).count() < self.slow_or_not() {
            let fast = self.placed(false).filter(|other| !is_slow(other, now));
            let oldest = fast.map(|other| other.since).min();
            let slow = oldest.map(|since| since + limits::SLOW_REQUEST);
            return slow.map_or(limits::IDLE_WORKER, |slow| slow.duration_since(now));
        }
        let may_go = |other: &&Request| is_slow(other, now) && !other.ticket.is_put_off();
        if let Some(youngest) = self.placed(false).rfind(may_go) {
            youngest.ticket.put_off();
        }
        limits::SLOW_REQUEST
    }
}

fn is_slow(request: &Request, now: Instant) -> bool {
    now.duration_since(request.since) >= limits::SLOW_REQUEST
}

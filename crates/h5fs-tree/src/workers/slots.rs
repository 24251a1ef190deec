//! The running requests, and the rules for starting further ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use h5fs_reader::memory::cancel::RequestSlot;

use crate::limits;
use crate::workers::queue::{DataFileNumber, RequestObject, RequestSubject, WorkerRequest};

/// The slots for running requests, and the requests that occupy them.
#[derive(Default)]
pub(super) struct RequestSlots {
    /// Number of slots of each kind: quick ones for contents, quick ones for other requests, and
    /// heavy ones.
    pub(super) threads: usize,
    /// Running requests, in the order in which they started.
    running: Vec<WorkerRequest>,
}

impl RequestSlots {
    /// Creates empty slots, `threads` of each kind, but at least one.
    pub(super) fn new(threads: usize) -> Self {
        RequestSlots {
            threads: threads.max(1),
            running: Vec::new(),
        }
    }

    /// Iterates over the running requests. Their `started` is the time when they started.
    pub(super) fn requests(&self) -> impl Iterator<Item = &WorkerRequest> {
        self.running.iter()
    }

    /// Returns the maximum number of running requests in the quick slots that are open to all
    /// files.
    fn max_unreserved_quick(&self) -> usize {
        self.threads.saturating_add(limits::SLOW_REQUESTS)
    }

    /// Returns the maximum number of running requests in all quick slots, including the slots
    /// reserved for files without a running request.
    fn max_quick(&self) -> usize {
        self.max_unreserved_quick()
            .saturating_add(limits::FILE_PLACES)
    }

    /// Returns the maximum number of running requests in all slots.
    pub(super) fn max_running(&self) -> usize {
        self.max_quick().saturating_add(self.threads)
    }

    /// Marks a slot as occupied by `request`.
    pub(super) fn occupy(&mut self, request: &WorkerRequest) {
        self.running.push(WorkerRequest {
            started: Instant::now(),
            ..request.clone()
        });
    }

    /// Releases the slot of the request with the ticket `ticket`.
    pub(super) fn release(&mut self, ticket: &Arc<RequestSlot>) {
        let is_other = |request: &WorkerRequest| !Arc::ptr_eq(&request.ticket, ticket);
        self.running.retain(is_other);
    }

    /// Iterates over the requests in heavy slots if `is_heavy` is true, otherwise over the requests
    /// in quick slots.
    fn running_in(&self, is_heavy: bool) -> impl DoubleEndedIterator<Item = &WorkerRequest> {
        let all = self.running.iter();
        all.filter(move |request| request.ticket.has_heavy_slot() == is_heavy)
    }

    /// Returns whether a request to `object` of `file` may start in a quick slot at the time `now`.
    pub(super) fn can_start(&self, (object, file): RequestSubject, now: Instant) -> bool {
        self.is_object_free(object) && self.is_file_free(file) && self.has_quick_slot(object, now)
    }

    fn is_object_free(&self, object: RequestObject) -> bool {
        let is_other = |request: &WorkerRequest| request.subject.0 != object;
        self.running_in(false).count() < self.threads || self.running_in(false).all(is_other)
    }

    fn is_file_free(&self, file: DataFileNumber) -> bool {
        let is_other = || self.running_in(false).all(|other| other.subject.1 != file);
        let count = self.running_in(false).count();
        count < self.max_unreserved_quick()
            || file.is_some() && count < self.max_quick() && is_other()
    }

    /// Returns whether a quick slot for requests of this kind is free: contents and other requests
    /// have separate limits. Requests that are slow at the time `now` do not count.
    fn has_quick_slot(&self, object: RequestObject, now: Instant) -> bool {
        let fast = self.running_in(false).filter(|other| !is_slow(other, now));
        let alike = fast.filter(|other| other.subject.0.is_content() == object.is_content());
        alike.count() < self.threads
    }

    /// Returns whether a heavy slot is free.
    pub(super) fn has_heavy_slot(&self) -> bool {
        self.running_in(true).count() < self.threads
    }

    /// Returns whether no request to the data file `file` is in a heavy slot.
    pub(super) fn is_first_of_file(&self, (_, file): RequestSubject) -> bool {
        file.is_some() && self.running_in(true).all(|other| other.subject.1 != file)
    }

    /// Returns whether no request to the object `object` is in a heavy slot.
    pub(super) fn is_first_of_object(&self, (object, _): RequestSubject) -> bool {
        self.running_in(true).all(|other| other.subject.0 != object)
    }

    /// If all quick slots are taken, postpones the most recently started slow request. Returns the
    /// time until another request may become slow or leave its slot.
    pub(super) fn postpone_slow(&self, now: Instant) -> Duration {
        if self.running_in(false).count() < self.max_unreserved_quick() {
            let fast = self.running_in(false).filter(|other| !is_slow(other, now));
            let oldest = fast.map(|other| other.started).min();
            let slow = oldest.map(|since| since + limits::SLOW_REQUEST);
            return slow.map_or(limits::IDLE_WORKER, |slow| slow.duration_since(now));
        }
        let may_go = |other: &&WorkerRequest| is_slow(other, now) && !other.ticket.is_postponed();
        if let Some(youngest) = self.running_in(false).rfind(may_go) {
            youngest.ticket.postpone();
        }
        limits::SLOW_REQUEST
    }
}

fn is_slow(request: &WorkerRequest, now: Instant) -> bool {
    now.duration_since(request.started) >= limits::SLOW_REQUEST
}

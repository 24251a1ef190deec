//! The queue of waiting requests. Requests to one object stay in order of arrival, and objects take
//! turns.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use h5fs_reader::memory::cancel::RequestSlot;

/// The object that a request is about, for scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RequestObject {
    /// The content of the regular file with this inode number, which may have to be decoded.
    Content(u64),
    /// An inode or a name, identified by this number, for a request other than reading content.
    /// Such requests have slots of their own.
    Description(u64),
    /// The values of attributes, of all objects together. A value may need megabytes of memory, so
    /// only few such requests run at a time.
    AttributeValues,
}

impl RequestObject {
    pub(super) fn is_content(self) -> bool {
        matches!(self, RequestObject::Content(_))
    }
}

/// The number of the data file that contains an object, in a mounted directory. `None` if the mount
/// shows only one file.
pub(crate) type DataFileNumber = Option<u64>;

/// The object and the data file that a request is about.
pub(crate) type RequestSubject = (RequestObject, DataFileNumber);

/// The caller that waits for the reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Number of the request, which is unique among those in progress.
    pub(crate) unique: u64,
    /// Thread ID of the caller, or 0 if unknown.
    pub(crate) thread: u32,
}

/// A waiting or running request, as the scheduler sees it.
#[derive(Clone)]
pub(super) struct WorkerRequest {
    pub(super) subject: RequestSubject,
    pub(super) caller: Caller,
    pub(super) ticket: Arc<RequestSlot>,
    /// Time when the request arrived or, for a running request, when it started.
    pub(super) started: Instant,
}

/// The result of an attempt to handle a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    /// The request was answered.
    Answered,
    /// The request was postponed: it must be tried again in a heavy slot.
    Postponed,
}

/// A request that waits for a slot, with its job.
pub(super) struct QueuedRequest {
    pub(super) request: WorkerRequest,
    /// The function that handles the request. It is called again after a postponement.
    pub(super) job: Box<dyn FnMut() -> AttemptResult + Send>,
}

/// The queue of waiting requests.
#[derive(Default)]
pub(super) struct RequestQueue {
    turns: VecDeque<RequestSubject>,
    waiting: HashMap<RequestSubject, VecDeque<QueuedRequest>>,
}

impl RequestQueue {
    /// Returns whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Returns the number of waiting requests.
    pub(super) fn count(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Iterates over all waiting requests, in arbitrary order.
    pub(super) fn requests(&self) -> impl Iterator<Item = &WorkerRequest> {
        let waiting = self.waiting.values().flatten();
        waiting.map(|waiting| &waiting.request)
    }

    /// Appends a request to the queue of its object.
    pub(super) fn push(&mut self, waiting: QueuedRequest) {
        let of = waiting.request.subject;
        let requests = self.waiting.entry(of).or_default();
        requests.push_back(waiting);
        if requests.len() == 1 {
            self.turns.push_back(of);
        }
    }

    /// Removes and returns the oldest request of the next object for which `is_one` returns true.
    pub(super) fn remove_first(
        &mut self,
        is_one: impl Fn(RequestSubject) -> bool,
    ) -> Option<QueuedRequest> {
        let place = self.turns.iter().position(|&of| is_one(of))?;
        let of = self.turns.remove(place)?;
        let requests = self.waiting.get_mut(&of)?;
        let first = requests.pop_front();
        if requests.is_empty() {
            self.waiting.remove(&of);
        } else {
            self.turns.push_back(of);
        }
        first
    }

    /// Removes and returns the requests of callers for which `has_gone` returns true.
    pub(super) fn remove_ended(
        &mut self,
        has_gone: &impl Fn(Caller) -> bool,
    ) -> Vec<QueuedRequest> {
        let mut left = Vec::new();
        for requests in self.waiting.values_mut() {
            let gone = |waiting: &QueuedRequest| has_gone(waiting.request.caller);
            let (of_gone, others): (Vec<_>, _) = requests.drain(..).partition(gone);
            *requests = others.into();
            left.extend(of_gone);
        }
        self.waiting.retain(|_, requests| !requests.is_empty());
        self.turns.retain(|of| self.waiting.contains_key(of));
        left
    }
}

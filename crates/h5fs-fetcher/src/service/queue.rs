//! The queue of requests that wait for a thread.
//!
//! Requests that a program waits for are answered before prefetches. Within both groups, the order
//! is first in, first out.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use h5fs_reader::memory::lock::{lock, wait};
use h5fs_reader::source::remote::message::Request;

/// A request of the parsing process, and a flag that says whether the request was cancelled.
#[derive(Debug, Clone)]
pub(super) struct FetchJob {
    pub(super) id: u64,
    pub(super) request: Request,
    pub(super) is_cancelled: Arc<AtomicBool>,
}

impl FetchJob {
    /// Returns whether the request is a prefetch, for which no program waits yet.
    pub(super) fn is_prefetch(&self) -> bool {
        matches!(
            self.request,
            Request::Fetch {
                is_needed: false,
                ..
            }
        )
    }
}

#[derive(Debug, Default)]
pub(super) struct JobQueue {
    state: Mutex<JobQueueState>,
    job_available: Condvar,
}

#[derive(Debug, Default)]
struct JobQueueState {
    needed: VecDeque<FetchJob>,
    prefetches: VecDeque<FetchJob>,
    /// For the number of each queued or running request, its cancellation flag.
    known: HashMap<u64, Arc<AtomicBool>>,
    /// Number of threads that wait for a request to answer.
    idle: usize,
    threads: usize,
}

impl JobQueue {
    /// Adds a request to the queue. Returns whether the caller must start another thread. There are
    /// at most `most` threads.
    ///
    /// # Errors
    /// Fails if the queue is full, or if a request with this number exists.
    pub(super) fn push(&self, id: u64, request: Request, most: usize) -> Result<bool, QueueFull> {
        let mut state = lock(&self.state);
        if state.known.len() >= crate::limits::FETCHES || state.known.contains_key(&id) {
            return Err(QueueFull);
        }
        let is_cancelled = Arc::new(AtomicBool::new(false));
        state.known.insert(id, Arc::clone(&is_cancelled));
        let job = FetchJob {
            id,
            request,
            is_cancelled,
        };
        if job.is_prefetch() {
            state.prefetches.push_back(job);
        } else {
            state.needed.push_back(job);
        }
        let waiting = state.needed.len() + state.prefetches.len();
        let is_short = waiting > state.idle && state.threads < most;
        if is_short {
            state.threads += 1;
        }
        drop(state);
        self.job_available.notify_one();
        Ok(is_short)
    }

    /// Waits for the next request and removes it from the queue.
    pub(super) fn next(&self) -> FetchJob {
        let mut state = lock(&self.state);
        state.idle += 1;
        loop {
            let next = state.needed.pop_front();
            if let Some(job) = next.or_else(|| state.prefetches.pop_front()) {
                state.idle -= 1;
                return job;
            }
            state = wait(&self.job_available, state);
        }
    }

    /// Removes the number and the cancellation flag of a finished request from the queue.
    pub(super) fn finish(&self, id: u64) {
        lock(&self.state).known.remove(&id);
    }

    /// Cancels a request, because no program waits for it any longer.
    pub(super) fn cancel(&self, id: u64) {
        let mut state = lock(&self.state);
        if let Some(flag) = state.known.get(&id) {
            flag.store(true, Ordering::Relaxed);
        }
        let before = state.needed.len() + state.prefetches.len();
        state.needed.retain(|job| job.id != id);
        state.prefetches.retain(|job| job.id != id);
        if state.needed.len() + state.prefetches.len() < before {
            state.known.remove(&id);
        }
    }
}

/// The error that no further request can be queued.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(id: u64, is_needed: bool) -> Request {
        Request::Fetch {
            id,
            object: 0,
            offset: 0,
            length: 1,
            is_needed,
        }
    }

    #[test]
    fn needed_requests_precede_prefetches() {
        let queue = JobQueue::default();
        for (id, is_needed) in [(1, false), (2, true), (3, false), (4, true)] {
            queue.push(id, fetch(id, is_needed), 8).unwrap();
        }
        queue.cancel(1);
        let order = [(); 3].map(|()| queue.next().id);
        assert_eq!(order, [2, 4, 3]);
    }

    #[test]
    fn a_running_request_can_be_cancelled() {
        let queue = JobQueue::default();
        queue.push(1, fetch(1, true), 8).unwrap();
        let job = queue.next();
        queue.cancel(1);
        assert!(job.is_cancelled.load(Ordering::Relaxed));
        queue.finish(1);
        assert!(queue.push(1, fetch(1, true), 8).is_ok());
    }

    #[test]
    fn threads_are_started_on_demand() {
        let queue = JobQueue::default();
        let started = [1, 2, 3].map(|id| queue.push(id, fetch(id, true), 2).unwrap());
        assert_eq!(started, [true, true, false]);
    }

    #[test]
    fn the_queue_length_is_limited() {
        let queue = JobQueue::default();
        assert!(queue.push(0, fetch(0, true), 1).is_ok());
        assert_eq!(queue.push(0, fetch(0, true), 1), Err(QueueFull));
        for id in 1..u64::try_from(crate::limits::FETCHES).unwrap() {
            queue.push(id, fetch(id, false), 1).unwrap();
        }
        assert_eq!(
            queue.push(u64::MAX, fetch(u64::MAX, true), 1),
            Err(QueueFull)
        );
    }
}

//! The scheduler of requests: requests to one object never delay requests to others for long.
//!
//! The threads that receive requests also handle them, while at least one of them remains free to
//! receive the next. Other requests are queued, and worker threads are started when needed.
//! Requests to one object are handled in order of arrival, and objects take turns.
//!
//! A request is first tried in a *quick* slot. When it reaches work that may take long (counting a
//! text, decoding a large chunk), the attempt ends. The request then waits for a *heavy* slot.
//! There are `threads` heavy slots, however many such requests wait, so heavy requests do not delay
//! others.
//!
//! A request is *slow* if it has run for [`limits::SLOW_REQUEST`]. These rules limit the quick
//! slots:
//!
//! - At most `threads` requests for contents, and as many other requests, run without being slow.
//!   So an unexpectedly slow request delays others only by milliseconds.
//! - When `threads` requests run, slow or not, each object has only one of them.
//! - In a directory of files, [`limits::FILE_PLACES`] more slots serve files without a running
//!   request.
//! - If slow requests occupy all slots, they are moved to heavy slots one after another.
//!
//! When a caller has ended, its waiting requests are answered at once, and its running requests at
//! their next check for cancellation.

mod queue;
mod slots;

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use h5fs_reader::error::{Error, Result, io_error_message};
use h5fs_reader::memory::cancel::{CancelToken, RequestSlot};
use h5fs_reader::memory::lock::lock;

use crate::limits;
use crate::workers::queue::{QueuedRequest, RequestQueue, WorkerRequest};
use crate::workers::slots::RequestSlots;

pub(crate) use queue::{AttemptResult, Caller, RequestObject, RequestSubject};

/// The scheduler of a mount's requests, with its worker threads. Dropping the value ends the
/// threads.
pub(crate) struct Workers(Arc<WorkerPool>);

/// A weak handle to the callers that wait for replies.
#[derive(Clone)]
pub(crate) struct WaitingCallers(Weak<WorkerPool>);

struct WorkerPool {
    state: Mutex<PoolState>,
    ready: Condvar,
    /// Whether threads that receive requests also handle requests.
    handles_in_receiver: bool,
}

#[derive(Default)]
struct PoolState {
    slots: RequestSlots,
    /// Number of requests that the receiving threads are handling now.
    receiving_count: usize,
    /// Requests that wait for a quick slot.
    quick_queue: RequestQueue,
    /// Requests that were postponed and wait for a heavy slot.
    heavy_queue: RequestQueue,
    /// Waiting requests whose caller has ended, to be answered at once.
    abandoned: VecDeque<QueuedRequest>,
    worker_count: usize,
    /// Number of worker threads that wait for requests, or were just started.
    idle_count: usize,
    is_closed: bool,
}

/// The next step of a worker thread.
enum WorkerStep {
    Job(QueuedRequest),
    /// The worker waits for a request, at most for this time. After it, a running request may have
    /// become slow.
    Wait(Duration),
}

impl Workers {
    /// Creates a scheduler for `threads` concurrent requests. The caller must receive requests in
    /// `threads + 1` threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self::with_threads(threads, true)
    }

    /// Creates a scheduler for a caller that receives all requests in one thread, which handles
    /// none.
    pub(crate) fn with_receiving_thread(threads: usize) -> Self {
        Self::with_threads(threads, false)
    }

    fn with_threads(threads: usize, answers_in_place: bool) -> Self {
        let state = PoolState {
            slots: RequestSlots::new(threads),
            ..PoolState::default()
        };
        Workers(Arc::new(WorkerPool {
            state: Mutex::new(state),
            ready: Condvar::new(),
            handles_in_receiver: answers_in_place,
        }))
    }

    /// Schedules a request. `answer` handles it in the calling thread or in a worker thread, and is
    /// called again if the request was postponed. Afterwards, `tell` receives `held` and the
    /// result. If `answer` panics, neither function is called again, and `held` is dropped.
    pub(crate) fn schedule_request<R: Send + 'static, T>(
        &self,
        of: (&'static str, RequestSubject),
        caller: Caller,
        (cancel, ticket): (CancelToken, Arc<RequestSlot>),
        held: R,
        mut answer: impl FnMut(&mut R, &CancelToken) -> Result<T> + Send + 'static,
        tell: impl FnOnce(R, Result<T>) + Send + 'static,
    ) {
        let (call, of) = of;
        let cancel = cancel.with_slot(&ticket);
        let mut left = Some((held, tell));
        let job = move || {
            let mut attempt = AttemptResult::Answered;
            run_catching_panics(call, || {
                let Some((mut held, tell)) = left.take() else {
                    return;
                };
                // The caller ended before the request was started.
                let answered = if cancel.is_abandoned() {
                    Err(Error::cancelled())
                } else {
                    answer(&mut held, &cancel)
                };
                if cancel.is_postponed_by(&answered) {
                    left = Some((held, tell));
                    attempt = AttemptResult::Postponed;
                } else {
                    tell(held, answered);
                }
            });
            attempt
        };
        self.schedule_job(of, (caller, ticket), job);
    }

    /// Schedules `job`, which handles a request in the calling thread or in a worker thread. `job`
    /// is called until it returns [`AttemptResult::Answered`]. Through `ticket`, the scheduler can
    /// postpone or cancel the work.
    pub(crate) fn schedule_job(
        &self,
        of: RequestSubject,
        (caller, ticket): (Caller, Arc<RequestSlot>),
        job: impl FnMut() -> AttemptResult + Send + 'static,
    ) {
        let shared = &self.0;
        let now = Instant::now();
        let waiting = QueuedRequest {
            request: WorkerRequest {
                subject: of,
                caller,
                ticket,
                started: now,
            },
            job: Box::new(job),
        };
        let mut state = shared.state();
        if shared.handles_in_receiver
            && state.receiving_count < state.slots.threads
            && state.quick_queue.is_empty()
            && state.slots.can_start(of, now)
        {
            state.slots.occupy(&waiting.request);
            state.receiving_count += 1;
            drop(state);
            return WorkerPool::run_job(shared, true, waiting);
        }
        state.quick_queue.push(waiting);
        WorkerPool::wake_worker(shared, state);
    }

    /// Returns the number of requests that wait for a quick or a heavy slot.
    pub(crate) fn waiting_count(&self) -> usize {
        let state = self.0.state();
        state
            .quick_queue
            .count()
            .saturating_add(state.heavy_queue.count())
    }

    /// Returns a handle to the callers that wait for replies.
    pub(crate) fn waiting_callers(&self) -> WaitingCallers {
        WaitingCallers(Arc::downgrade(&self.0))
    }
}

/// Runs a handler of the request `call`. If the handler panics, logs the panic and returns.
pub(crate) fn run_catching_panics(call: &str, handler: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(handler)).is_err() {
        log::error!("{call}: a defect of this program; the call answers with an I/O error");
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.ready.notify_all();
    }
}

impl WaitingCallers {
    /// Returns the IDs of the threads whose requests have waited for a reply for at least `time`.
    /// Returns `None` after the scheduler has ended.
    pub(crate) fn threads_waiting_for(&self, time: Duration) -> Option<Vec<u32>> {
        let shared = self.0.upgrade()?;
        let state = shared.state();
        let queued = state
            .quick_queue
            .requests()
            .chain(state.heavy_queue.requests());
        let all = queued.chain(state.slots.requests());
        let known = all.filter(|request| request.caller.thread != 0);
        let threads = known.filter(|request| request.started.elapsed() >= time);
        let threads: BTreeSet<u32> = threads.map(|request| request.caller.thread).collect();
        Some(threads.into_iter().collect())
    }

    /// Cancels the requests of callers for which `has_gone` returns true.
    pub(crate) fn cancel_ended(&self, has_gone: impl Fn(Caller) -> bool) {
        let Some(shared) = self.0.upgrade() else {
            return;
        };
        let mut state = shared.state();
        let mut left = state.quick_queue.remove_ended(&has_gone);
        left.extend(state.heavy_queue.remove_ended(&has_gone));
        let under_way = state.slots.requests();
        let under_way = under_way.filter(|request| has_gone(request.caller));
        for request in left.iter().map(|left| &left.request).chain(under_way) {
            request.ticket.abandon();
        }
        state.abandoned.extend(left);
        WorkerPool::wake_worker(&shared, state);
    }
}

impl WorkerPool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        lock(&self.state)
    }

    /// Calls the job of a request that occupies a slot, and releases the slot afterwards.
    /// `in_place` says whether the calling thread is one that receives requests.
    fn run_job(shared: &Arc<Self>, in_place: bool, mut waiting: QueuedRequest) {
        // Dropping an unsent reply sends an error. The handler has logged the reason.
        let attempt = catch_unwind(AssertUnwindSafe(|| (waiting.job)()));
        let ticket = &waiting.request.ticket;
        let mut state = shared.state();
        state.receiving_count -= usize::from(in_place);
        state.slots.release(ticket);
        if let Ok(AttemptResult::Postponed) = attempt {
            state.heavy_queue.push(waiting);
        } else {
            // Code that still uses the request's token must not fail because the request was to be
            // postponed.
            ticket.move_to_heavy_slot();
        }
        WorkerPool::wake_worker(shared, state);
    }

    /// Wakes an idle worker, or starts one, to check whether a request can be started. While
    /// requests wait, there is a worker, unless the system refuses to start a thread.
    fn wake_worker(shared: &Arc<WorkerPool>, mut state: MutexGuard<'_, PoolState>) {
        if state.is_idle() {
            return;
        }
        if state.idle_count > 0 {
            drop(state);
            return shared.ready.notify_one();
        }
        // One worker more than the maximum of running requests watches for slow requests.
        if state.worker_count > state.slots.max_running() {
            return;
        }
        state.worker_count += 1;
        state.idle_count += 1;
        drop(state);
        let worker = Arc::clone(shared);
        let thread = thread::Builder::new().name("h5fs-worker".to_owned());
        if let Err(error) = thread.spawn(move || worker.run_worker()) {
            let mut state = shared.state();
            state.worker_count -= 1;
            state.idle_count -= 1;
            log::warn!(
                "no further thread to answer requests: {}",
                io_error_message(&error)
            );
        }
    }

    fn run_worker(self: &Arc<Self>) {
        let mut state = self.state();
        state.idle_count -= 1;
        loop {
            match state.next_step(Instant::now()) {
                WorkerStep::Job(waiting) => {
                    WorkerPool::wake_worker(self, state);
                    WorkerPool::run_job(self, false, waiting);
                    state = self.state();
                }
                WorkerStep::Wait(limit) => {
                    state.idle_count += 1;
                    let waited = self.ready.wait_timeout(state, limit);
                    let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    state.idle_count -= 1;
                    let is_over = timeout.timed_out() || state.is_closed;
                    if is_over && state.is_idle() {
                        state.worker_count -= 1;
                        return;
                    }
                }
            }
        }
    }
}

impl PoolState {
    /// Returns whether no request waits for a slot.
    fn is_idle(&self) -> bool {
        self.quick_queue.is_empty() && self.heavy_queue.is_empty() && self.abandoned.is_empty()
    }

    fn next_step(&mut self, now: Instant) -> WorkerStep {
        let next = self.abandoned.pop_front();
        let may_begin = |of| self.slots.can_start(of, now);
        let next = next.or_else(|| self.quick_queue.remove_first(may_begin));
        if let Some(waiting) = next.or_else(|| self.next_heavy()) {
            self.slots.occupy(&waiting.request);
            return WorkerStep::Job(waiting);
        }
        if self.quick_queue.is_empty() {
            return WorkerStep::Wait(limits::IDLE_WORKER);
        }
        WorkerStep::Wait(self.slots.postpone_slow(now))
    }

    /// Removes and returns the next request to start in a heavy slot. Requests to files without a
    /// request in a heavy slot come first, then requests to objects without one.
    fn next_heavy(&mut self) -> Option<QueuedRequest> {
        let (queue, places) = (&mut self.heavy_queue, &self.slots);
        if !places.has_heavy_slot() {
            return None;
        }
        let next = queue.remove_first(|of| places.is_first_of_file(of));
        let next = next.or_else(|| queue.remove_first(|of| places.is_first_of_object(of)));
        let next = next.or_else(|| queue.remove_first(|_| true))?;
        next.request.ticket.move_to_heavy_slot();
        Some(next)
    }
}

#[cfg(test)]
mod tests;

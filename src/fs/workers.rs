//! The order in which threads answer requests: no object keeps requests to others waiting for long.
//!
//! The threads that take requests answer them themselves as long as one of them is left to take the
//! next. Other requests wait here, as data, for worker threads that are started when needed: those
//! of each object in the order of their coming, and of the objects one after another.
//!
//! A request is tried in a place for *quick* ones. Where it comes to work that may take long (a
//! text is counted, a large chunk decoded), it ends at once, and waits for a place for *heavy* ones:
//! as many as there are `threads`, whatever the number of such requests. So these keep no other
//! waiting.
//!
//! No more requests than there are `threads` are begun in quick places, for contents and for all
//! else, before those under way are done, or are *slow*: under way for [`limits::SLOW_REQUEST`]. So
//! requests that take longer than was expected keep others waiting for milliseconds. While that many
//! are under way, slow or not, an object has only one of them. In a directory of files,
//! [`limits::FILE_PLACES`] more are for files about which no other request is under way. Where all
//! these places are taken by slow requests, one after another is told to go on in a heavy place.
//!
//! A request whose asker has gone is answered at once, and where it is under way, as soon as it
//! looks.

mod places;
mod queue;

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result, words_of};
use crate::fs::workers::places::Places;
use crate::fs::workers::queue::{Queue, Request, Waiting};
use crate::limits;
use crate::memory::cancel::{CancelToken, Ticket};
use crate::memory::lock::lock;

pub(in crate::fs) use queue::{Asker, Attempt, Object, Of};

/// The requests of a mount, and its worker threads, which end with it.
pub(in crate::fs) struct Workers(Arc<Shared>);

/// Who waits for the answers of these workers, as long as they are there.
#[derive(Clone)]
pub(in crate::fs) struct Askers(Weak<Shared>);

struct Shared {
    state: Mutex<State>,
    ready: Condvar,
    /// Whether the threads that take requests answer some of them.
    answers_in_place: bool,
}

#[derive(Default)]
struct State {
    places: Places,
    /// How many requests are answered by the threads that take them.
    in_place: usize,
    /// Requests that were not begun yet.
    quick: Queue,
    /// Those that were put off.
    heavy: Queue,
    /// Those whose asker has gone.
    left: VecDeque<Waiting>,
    workers: usize,
    /// Workers that wait for requests, or have just been started to.
    idle: usize,
    is_closed: bool,
}

/// The next step of a worker.
enum Next {
    Job(Waiting),
    /// Waits for one that becomes slow, or for a request.
    Wait(Duration),
}

impl Workers {
    /// For so many requests at a time. The caller takes requests in one thread more than that.
    pub(in crate::fs) fn new(threads: usize) -> Self {
        Self::with(threads, true)
    }

    /// For a caller that takes all requests in one thread, which answers none.
    pub(in crate::fs) fn apart(threads: usize) -> Self {
        Self::with(threads, false)
    }

    fn with(threads: usize, answers_in_place: bool) -> Self {
        let state = State {
            places: Places::new(threads),
            ..State::default()
        };
        Workers(Arc::new(Shared {
            state: Mutex::new(state),
            ready: Condvar::new(),
            answers_in_place,
        }))
    }

    /// Has `answer` answer a request, here or in a worker thread and perhaps once more, with what
    /// `held` is for it; `tell` is given that and the outcome. Neither is called where one of them
    /// has panicked, and what is held is dropped.
    pub(in crate::fs) fn request<R: Send + 'static, T>(
        &self,
        of: (&'static str, Of),
        asker: Asker,
        (cancel, ticket): (CancelToken, Arc<Ticket>),
        held: R,
        mut answer: impl FnMut(&mut R, &CancelToken) -> Result<T> + Send + 'static,
        tell: impl FnOnce(R, Result<T>) + Send + 'static,
    ) {
        let (call, of) = of;
        let cancel = cancel.with(&ticket);
        let mut left = Some((held, tell));
        let job = move || {
            let mut attempt = Attempt::Answered;
            guarded(call, || {
                let Some((mut held, tell)) = left.take() else {
                    return;
                };
                // Whoever asked has gone before it was begun.
                let answered = if cancel.is_unwanted() {
                    Err(Error::unwanted())
                } else {
                    answer(&mut held, &cancel)
                };
                if cancel.is_put_off_by(&answered) {
                    left = Some((held, tell));
                    attempt = Attempt::PutOff;
                } else {
                    tell(held, answered);
                }
            });
            attempt
        };
        self.answer(of, (asker, ticket), job);
    }

    /// Has `job` answer a request, here or in a worker thread, as often as it takes. The work ends
    /// early as the ticket says.
    pub(in crate::fs) fn answer(
        &self,
        of: Of,
        (asker, ticket): (Asker, Arc<Ticket>),
        job: impl FnMut() -> Attempt + Send + 'static,
    ) {
        let shared = &self.0;
        let now = Instant::now();
        let waiting = Waiting {
            request: Request {
                of,
                asker,
                ticket,
                since: now,
            },
            job: Box::new(job),
        };
        let mut state = shared.state();
        if shared.answers_in_place
            && state.in_place < state.places.threads
            && state.quick.is_empty()
            && state.places.may_begin(of, now)
        {
            state.places.begin(&waiting.request);
            state.in_place += 1;
            drop(state);
            return Shared::attempt(shared, true, waiting);
        }
        state.quick.push(waiting);
        Shared::look(shared, state);
    }

    /// How many requests wait for a place: to be begun, or to be gone on with.
    pub(in crate::fs) fn waiting(&self) -> usize {
        let state = self.0.state();
        state.quick.count().saturating_add(state.heavy.count())
    }

    /// Who waits for an answer.
    pub(in crate::fs) fn askers(&self) -> Askers {
        Askers(Arc::downgrade(&self.0))
    }
}

/// Has a handler do its work; a defect in it is told of.
pub(in crate::fs) fn guarded(call: &str, handler: impl FnOnce()) {
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

impl Askers {
    /// The threads that have waited for an answer for so long; `None` once nobody answers.
    pub(in crate::fs) fn waiting_for(&self, time: Duration) -> Option<Vec<u32>> {
        let shared = self.0.upgrade()?;
        let state = shared.state();
        let queued = state.quick.requests().chain(state.heavy.requests());
        let all = queued.chain(state.places.requests());
        let known = all.filter(|request| request.asker.thread != 0);
        let threads = known.filter(|request| request.since.elapsed() >= time);
        let threads: BTreeSet<u32> = threads.map(|request| request.asker.thread).collect();
        Some(threads.into_iter().collect())
    }

    /// Gives up the requests of those that have gone.
    pub(in crate::fs) fn leave(&self, has_gone: impl Fn(Asker) -> bool) {
        let Some(shared) = self.0.upgrade() else {
            return;
        };
        let mut state = shared.state();
        let mut left = state.quick.take_left(&has_gone);
        left.extend(state.heavy.take_left(&has_gone));
        let under_way = state.places.requests();
        let under_way = under_way.filter(|request| has_gone(request.asker));
        for request in left.iter().map(|left| &left.request).chain(under_way) {
            request.ticket.leave();
        }
        state.left.extend(left);
        Shared::look(&shared, state);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Tries to answer a request that was begun, by a thread that takes requests or not.
    fn attempt(shared: &Arc<Self>, in_place: bool, mut waiting: Waiting) {
        // A reply that is dropped unsent is an error; the handler has logged why.
        let attempt = catch_unwind(AssertUnwindSafe(|| (waiting.job)()));
        let ticket = &waiting.request.ticket;
        let mut state = shared.state();
        state.in_place -= usize::from(in_place);
        state.places.end(ticket);
        if let Ok(Attempt::PutOff) = attempt {
            state.heavy.push(waiting);
        } else {
            // What still has the token of the request is not to be put off by it.
            ticket.begin_heavy();
        }
        Shared::look(shared, state);
    }

    /// Has an idle worker look whether a request can be begun; there is always one, as long as
    /// requests wait.
    fn look(shared: &Arc<Shared>, mut state: MutexGuard<'_, State>) {
        if state.is_idle() {
            return;
        }
        if state.idle > 0 {
            drop(state);
            return shared.ready.notify_one();
        }
        // One more than may be under way watches for those that become slow.
        if state.workers > state.places.most() {
            return;
        }
        state.workers += 1;
        state.idle += 1;
        drop(state);
        let worker = Arc::clone(shared);
        let thread = thread::Builder::new().name("h5fs-worker".to_owned());
        if let Err(error) = thread.spawn(move || worker.work()) {
            let mut state = shared.state();
            state.workers -= 1;
            state.idle -= 1;
            log::warn!("no further thread to answer requests: {}", words_of(&error));
        }
    }

    fn work(self: &Arc<Self>) {
        let mut state = self.state();
        state.idle -= 1;
        loop {
            match state.next(Instant::now()) {
                Next::Job(waiting) => {
                    Shared::look(self, state);
                    Shared::attempt(self, false, waiting);
                    state = self.state();
                }
                Next::Wait(limit) => {
                    state.idle += 1;
                    let waited = self.ready.wait_timeout(state, limit);
                    let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    state.idle -= 1;
                    let is_over = timeout.timed_out() || state.is_closed;
                    if is_over && state.is_idle() {
                        state.workers -= 1;
                        return;
                    }
                }
            }
        }
    }
}

impl State {
    /// Whether no request waits.
    fn is_idle(&self) -> bool {
        self.quick.is_empty() && self.heavy.is_empty() && self.left.is_empty()
    }

    fn next(&mut self, now: Instant) -> Next {
        let next = self.left.pop_front();
        let may_begin = |of| self.places.may_begin(of, now);
        let next = next.or_else(|| self.quick.take(may_begin));
        if let Some(waiting) = next.or_else(|| self.next_heavy()) {
            self.places.begin(&waiting.request);
            return Next::Job(waiting);
        }
        if self.quick.is_empty() {
            return Next::Wait(limits::IDLE_WORKER);
        }
        Next::Wait(self.places.make_room(now))
    }

    /// The first request for a heavy place, if there is one: of a file that has none, if any is;
    /// else of an object that has none.
    fn next_heavy(&mut self) -> Option<Waiting> {
        let (queue, places) = (&mut self.heavy, &self.places);
        if !places.has_heavy_place() {
            return None;
        }
        let next = queue.take(|of| places.is_first_of_file(of));
        let next = next.or_else(|| queue.take(|of| places.is_first_of_object(of)));
        let next = next.or_else(|| queue.take(|_| true))?;
        next.request.ticket.begin_heavy();
        Some(next)
    }
}

#[cfg(test)]
mod tests;

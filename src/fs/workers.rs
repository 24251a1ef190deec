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

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::limits;
use crate::memory::cancel::Ticket;
use crate::memory::lock::lock;

/// The object of a request: requests of one object wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Object {
    /// The bytes of a file, which have to be decoded.
    Content(u64),
    /// Any other question about an inode, or a name. It has places of its own beside contents.
    Description(u64),
    /// The values of attributes, of all objects: they may take megabytes, so that few are to be in
    /// memory at a time.
    Values,
}

impl Object {
    fn is_content(self) -> bool {
        matches!(self, Object::Content(_))
    }
}

/// The file of a directory of files that an object is of, by any number; `None` in the tree of one
/// file.
pub(super) type File = Option<u64>;

/// What a request is about.
type Of = (Object, File);

/// Who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asker {
    /// The number of the request.
    pub(super) unique: u64,
    /// The thread that asks; 0 where it is not known.
    pub(super) thread: u32,
}

/// How an attempt to answer a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It has its answer.
    Answered,
    /// It is to be tried once more, in a heavy place.
    PutOff,
}

/// Tries to answer a request.
type Job = Box<dyn FnMut() -> Attempt + Send>;

/// A request that waits.
struct Waiting {
    asker: Asker,
    ticket: Arc<Ticket>,
    since: Instant,
    job: Job,
}

/// The requests of a mount, and its worker threads, which end with it.
pub(super) struct Workers(Arc<Shared>);

/// Who waits for the answers of these workers, as long as they are there.
#[derive(Clone)]
pub(super) struct Askers(Weak<Shared>);

struct Shared {
    threads: usize,
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    under_way: Vec<UnderWay>,
    next_number: u64,
    /// How many of those are answered by the threads that take requests.
    in_place: usize,
    /// Requests that were not begun yet.
    quick: Queue,
    /// Those that were put off.
    heavy: Queue,
    /// Those whose asker has gone.
    left: VecDeque<(Of, Waiting)>,
    workers: usize,
    /// Workers that wait for requests, or have just been started to.
    idle: usize,
    is_closed: bool,
}

/// Requests that wait: those of one object in the order of their coming, and objects in turn.
#[derive(Default)]
struct Queue {
    turns: VecDeque<Of>,
    waiting: HashMap<Of, VecDeque<Waiting>>,
}

/// A request that is being answered.
struct UnderWay {
    number: u64,
    of: Of,
    asker: Asker,
    ticket: Arc<Ticket>,
    since: Instant,
}

/// The next step of a worker.
enum Next {
    Job(u64, Of, Waiting),
    /// Waits for one that becomes slow, or for a request.
    Wait(Duration),
}

impl Workers {
    /// For so many requests at a time. The caller takes requests in one thread more than that.
    pub(super) fn new(threads: usize) -> Self {
        Workers(Arc::new(Shared {
            threads: threads.max(1),
            state: Mutex::default(),
            ready: Condvar::new(),
        }))
    }

    /// Has `job` answer a request, here or in a worker thread, as often as it takes. The work ends
    /// early as the ticket says.
    pub(super) fn answer(
        &self,
        of: Of,
        (asker, ticket): (Asker, Arc<Ticket>),
        job: impl FnMut() -> Attempt + Send + 'static,
    ) {
        let shared = &self.0;
        let now = Instant::now();
        let request = Waiting {
            asker,
            ticket,
            since: now,
            job: Box::new(job),
        };
        let mut state = shared.state();
        if state.in_place < shared.threads
            && state.quick.turns.is_empty()
            && state.may_begin(of, shared.threads, now)
        {
            let number = state.begin(of, &request);
            state.in_place += 1;
            drop(state);
            return Shared::attempt(shared, (number, true), of, request);
        }
        state.quick.push(of, request);
        Shared::look(shared, state);
    }

    /// Who waits for an answer.
    pub(super) fn askers(&self) -> Askers {
        Askers(Arc::downgrade(&self.0))
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
    pub(super) fn waiting_for(&self, time: Duration) -> Option<Vec<u32>> {
        let shared = self.0.upgrade()?;
        let state = shared.state();
        let queues = [&state.quick, &state.heavy].into_iter();
        let queued = queues.flat_map(|queue| queue.waiting.values().flatten());
        let queued = queued.map(|request| (request.since, request.asker.thread));
        let under_way = state.under_way.iter();
        let under_way = under_way.map(|request| (request.since, request.asker.thread));
        let all = queued.chain(under_way);
        let threads = all.filter(|(since, thread)| *thread != 0 && since.elapsed() >= time);
        let threads: BTreeSet<u32> = threads.map(|(_, thread)| thread).collect();
        Some(threads.into_iter().collect())
    }

    /// Gives up the requests of those that have gone.
    pub(super) fn leave(&self, has_gone: impl Fn(Asker) -> bool) {
        let Some(shared) = self.0.upgrade() else {
            return;
        };
        let mut state = shared.state();
        let under_way = state.under_way.iter();
        for request in under_way.filter(|request| has_gone(request.asker)) {
            request.ticket.leave();
        }
        let mut left = state.quick.take_left(&has_gone);
        left.extend(state.heavy.take_left(&has_gone));
        for (_, request) in &left {
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

    /// Tries to answer a request that was begun with this number, by a thread that takes requests
    /// or not.
    fn attempt(shared: &Arc<Self>, number: (u64, bool), of: Of, mut request: Waiting) {
        let end = End { shared, number };
        // A reply that is dropped unsent is an error; the handler has logged why.
        let attempt = catch_unwind(AssertUnwindSafe(|| (request.job)()));
        if let Ok(Attempt::PutOff) = attempt {
            shared.state().heavy.push(of, request);
        } else {
            // What still has the token of the request is not to be put off by it.
            request.ticket.begin_heavy();
        }
        drop(end);
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
        if state.workers > most(shared.threads).saturating_add(shared.threads) {
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
            log::warn!("no further thread to answer requests: {error}");
        }
    }

    fn work(self: &Arc<Self>) {
        let mut state = self.state();
        state.idle -= 1;
        loop {
            match state.next(self.threads, Instant::now()) {
                Next::Job(number, of, request) => {
                    Shared::look(self, state);
                    Shared::attempt(self, (number, false), of, request);
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

/// Requests that may be under way in quick places at a time, whatever they are about.
fn slow_or_not(threads: usize) -> usize {
    threads.saturating_add(limits::SLOW_REQUESTS)
}

/// Those, and the places that are left to other files.
fn most(threads: usize) -> usize {
    slow_or_not(threads).saturating_add(limits::FILE_PLACES)
}

impl Queue {
    fn push(&mut self, of: Of, request: Waiting) {
        let requests = self.waiting.entry(of).or_default();
        requests.push_back(request);
        if requests.len() == 1 {
            self.turns.push_back(of);
        }
    }

    /// The first request of the object whose turn is at `place`.
    fn take(&mut self, place: usize) -> Option<(Of, Waiting)> {
        let of = self.turns.remove(place)?;
        let requests = self.waiting.get_mut(&of)?;
        let request = requests.pop_front()?;
        if requests.is_empty() {
            self.waiting.remove(&of);
        } else {
            self.turns.push_back(of);
        }
        Some((of, request))
    }

    fn take_left(&mut self, has_gone: &impl Fn(Asker) -> bool) -> Vec<(Of, Waiting)> {
        let mut left = Vec::new();
        for (of, requests) in &mut self.waiting {
            let gone = |request: &Waiting| has_gone(request.asker);
            let (of_gone, others) = std::mem::take(requests).into_iter().partition(gone);
            let of_gone: VecDeque<Waiting> = of_gone;
            *requests = others;
            left.extend(of_gone.into_iter().map(|request| (*of, request)));
        }
        self.waiting.retain(|_, requests| !requests.is_empty());
        self.turns.retain(|of| self.waiting.contains_key(of));
        left
    }
}

impl State {
    /// Whether no request waits.
    fn is_idle(&self) -> bool {
        self.quick.turns.is_empty() && self.heavy.turns.is_empty() && self.left.is_empty()
    }

    /// The requests that are under way in heavy places, or in quick ones.
    fn placed(&self, is_heavy: bool) -> impl Iterator<Item = &UnderWay> {
        let all = self.under_way.iter();
        all.filter(move |request| request.ticket.is_heavy() == is_heavy)
    }

    /// Whether a request of the object may be begun now.
    fn may_begin(&self, of: Of, threads: usize, now: Instant) -> bool {
        let (object, file) = of;
        self.is_object_free(object, threads)
            && self.is_file_free(file, threads)
            && self.has_place(object, threads, now)
    }

    fn is_object_free(&self, object: Object, threads: usize) -> bool {
        let is_other = |request: &UnderWay| request.of.0 != object;
        self.placed(false).count() < threads || self.placed(false).all(is_other)
    }

    fn is_file_free(&self, file: File, threads: usize) -> bool {
        let is_other = || self.placed(false).all(|other| other.of.1 != file);
        match self.placed(false).count() {
            count if count < slow_or_not(threads) => true,
            count => file.is_some() && count < most(threads) && is_other(),
        }
    }

    /// Whether few enough requests of this kind are under way and not slow yet.
    fn has_place(&self, object: Object, threads: usize, now: Instant) -> bool {
        let fast = self.fast(now);
        let alike = fast.filter(|other| other.of.0.is_content() == object.is_content());
        alike.count() < threads
    }

    /// The requests that are not slow yet.
    fn fast(&self, now: Instant) -> impl Iterator<Item = &UnderWay> {
        let is_fast = move |since| now.duration_since(since) < limits::SLOW_REQUEST;
        let all = self.placed(false);
        all.filter(move |under_way| is_fast(under_way.since))
    }

    fn begin(&mut self, of: Of, request: &Waiting) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.under_way.push(UnderWay {
            number,
            of,
            asker: request.asker,
            ticket: Arc::clone(&request.ticket),
            since: Instant::now(),
        });
        number
    }

    fn next(&mut self, threads: usize, now: Instant) -> Next {
        let next = self.left.pop_front();
        let next = next.or_else(|| self.next_quick(threads, now));
        if let Some((of, request)) = next.or_else(|| self.next_heavy(threads)) {
            return Next::Job(self.begin(of, &request), of, request);
        }
        if self.quick.turns.is_empty() {
            return Next::Wait(limits::IDLE_WORKER);
        }
        if self.placed(false).count() >= slow_or_not(threads) {
            self.put_one_off(now);
            return Next::Wait(limits::SLOW_REQUEST);
        }
        let oldest = self.fast(now).map(|under_way| under_way.since).min();
        let slow = oldest.map(|since| since + limits::SLOW_REQUEST);
        Next::Wait(slow.map_or(limits::IDLE_WORKER, |slow| slow.duration_since(now)))
    }

    /// The first request that waits and may be begun in a quick place.
    fn next_quick(&mut self, threads: usize, now: Instant) -> Option<(Of, Waiting)> {
        let mut turns = self.quick.turns.iter();
        let place = turns.position(|&of| self.may_begin(of, threads, now))?;
        self.quick.take(place)
    }

    /// The first request for a heavy place, if there is one: of a file that has none, if any is;
    /// else of an object that has none.
    fn next_heavy(&mut self, threads: usize) -> Option<(Of, Waiting)> {
        if self.placed(true).count() >= threads {
            return None;
        }
        let has_none = |is_same: &dyn Fn(Of) -> bool| !self.placed(true).any(|at| is_same(at.of));
        let turns = &self.heavy.turns;
        let of_file = turns
            .iter()
            .position(|(_, file)| file.is_some() && has_none(&|other| other.1 == *file));
        let of_object = || {
            turns
                .iter()
                .position(|(object, _)| has_none(&|other| other.0 == *object))
        };
        let place = of_file.or_else(of_object).unwrap_or(0);
        let (of, request) = self.heavy.take(place)?;
        request.ticket.begin_heavy();
        Some((of, request))
    }

    /// Tells the slow request that was begun last to go on in a heavy place.
    fn put_one_off(&self, now: Instant) {
        let is_slow = |since| now.duration_since(since) >= limits::SLOW_REQUEST;
        let others = self.placed(false);
        let others = others.filter(|other| is_slow(other.since) && !other.ticket.is_put_off());
        if let Some(youngest) = others.last() {
            youngest.ticket.put_off();
        }
    }
}

/// The end of an attempt, however it ends.
struct End<'a> {
    shared: &'a Arc<Shared>,
    /// Of the request, and whether a thread that takes requests has tried it.
    number: (u64, bool),
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let (number, in_place) = self.number;
        state.in_place -= usize::from(in_place);
        state.under_way.retain(|other| other.number != number);
        Shared::look(self.shared, state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

    use super::*;
    use crate::memory::cancel::CancelToken;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Has a job answer that looks at nothing.
    fn answer(
        workers: &Workers,
        object: Object,
        file: File,
        mut job: impl FnMut() + Send + 'static,
    ) {
        ask(workers, (object, file), 0, move |_| {
            job();
            Attempt::Answered
        });
    }

    /// Has a job answer a thread, which is told what it has of its ticket.
    fn ask(
        workers: &Workers,
        of: Of,
        thread: u32,
        mut job: impl FnMut(&CancelToken) -> Attempt + Send + 'static,
    ) {
        let ticket = Arc::<Ticket>::default();
        let token = CancelToken::default().with(&ticket);
        let asker = Asker { unique: 0, thread };
        workers.answer(of, (asker, ticket), move || job(&token));
    }

    /// A request that goes on until its sender is dropped.
    fn endless(workers: &Workers, object: u64) -> (Sender<()>, Receiver<()>) {
        endless_of(workers, object, None)
    }

    fn endless_of(workers: &Workers, object: u64, file: File) -> (Sender<()>, Receiver<()>) {
        let ((end, until), (begun, is_begun)) = (channel::<()>(), channel());
        answer(workers, Object::Content(object), file, move || {
            begun.send(()).unwrap();
            let _ended = until.recv();
        });
        (end, is_begun)
    }

    /// Fills the places of the threads that take requests.
    fn taken(workers: &Arc<Workers>) -> Vec<Sender<()>> {
        let fill = |object| {
            let ((end, until), (begun, is_begun)) = (channel::<()>(), channel());
            let workers = Arc::clone(workers);
            thread::spawn(move || {
                answer(&workers, Object::Content(object), None, move || {
                    begun.send(()).unwrap();
                    let _ended = until.recv();
                });
            });
            is_begun.recv_timeout(LIMIT).unwrap();
            end
        };
        (0..workers.0.threads as u64).map(fill).collect()
    }

    #[test]
    fn others_are_answered_while_eight_are_slow() {
        let workers = Arc::new(Workers::new(2));
        let slow = taken(&workers);
        let more: Vec<_> = (2..8).map(|object| endless(&workers, object)).collect();
        for (_, is_begun) in &more {
            is_begun.recv_timeout(LIMIT).unwrap();
        }
        let (_, refused) = endless(&workers, 3);
        for object in 100..200 {
            let (sender, answered) = channel();
            answer(&workers, Object::Content(object), None, move || {
                sender.send(()).unwrap();
            });
            answered.recv_timeout(LIMIT).unwrap();
        }
        assert!(refused.try_recv().is_err(), "an object has its share");
        assert!(workers.0.state().workers <= 12);
        drop(more);
        refused.recv_timeout(LIMIT).unwrap();
        drop(slow);
    }

    /// Eight files with ten slow objects each leave places to the others.
    #[test]
    fn a_file_has_its_share_however_many_of_its_objects_are_slow() {
        let workers = Arc::new(Workers::new(2));
        let slow = taken(&workers);
        let of_files = (1000..1080).map(|object| endless_of(&workers, object, Some(object / 10)));
        let of_files: Vec<_> = of_files.collect();
        let begun = || {
            of_files
                .iter()
                .filter(|(_, begun)| begun.try_recv().is_ok())
        };
        let (mut all, end) = (slow.len(), Instant::now() + LIMIT);
        while all < slow_or_not(2) && Instant::now() < end {
            all += begun().count();
            thread::yield_now();
        }
        for object in 0..100 {
            let (sender, answered) = channel();
            answer(
                &workers,
                Object::Content(2000 + object),
                Some(object % 7),
                move || {
                    sender.send(()).unwrap();
                },
            );
            answered.recv_timeout(LIMIT).unwrap();
        }
        all += begun().count();
        // One of each file, at the most, is in a place that is left to other files.
        assert!((slow_or_not(2)..=slow_or_not(2) + 8).contains(&all));
        drop((slow, of_files));
    }

    #[test]
    fn slow_requests_and_their_threads_have_a_bound() {
        let workers = Arc::new(Workers::new(1));
        let slow = taken(&workers);
        let more: Vec<_> = (1..80).map(|object| endless(&workers, object)).collect();
        let begun = || {
            let begun = more.iter().filter(|(_, begun)| begun.try_recv().is_ok());
            begun.count()
        };
        let (mut all, end) = (1, Instant::now() + LIMIT);
        while all < slow_or_not(1) && Instant::now() < end {
            all += begun();
            thread::yield_now();
        }
        thread::sleep(5 * limits::SLOW_REQUEST);
        all += begun();
        assert_eq!(all, slow_or_not(1));
        assert!(workers.0.state().workers <= slow_or_not(1) + 1);
        drop((slow, more));
    }

    /// Requests that come to heavy work, each of an object of its own, and how many are at it.
    fn heavy(workers: &Workers, many: u64) -> (Vec<Sender<()>>, Arc<AtomicUsize>) {
        let at_work = Arc::<AtomicUsize>::default();
        let ask_one = |object| {
            let (end, until) = channel::<()>();
            let at_work = Arc::clone(&at_work);
            let of = (Object::Description(object), None);
            ask(workers, of, 1 + object as u32, move |cancel| {
                let begun = cancel.begin_heavy();
                if cancel.is_put_off_by(&begun) {
                    return Attempt::PutOff;
                }
                at_work.fetch_add(1, Ordering::Relaxed);
                while cancel.go_on().is_ok() && until.try_recv() == Err(TryRecvError::Empty) {
                    thread::sleep(Duration::from_millis(1));
                }
                at_work.fetch_sub(1, Ordering::Relaxed);
                Attempt::Answered
            });
            end
        };
        ((0..many).map(ask_one).collect(), at_work)
    }

    /// Waits until it is so.
    fn until(is_so: impl Fn() -> bool) {
        let end = Instant::now() + LIMIT;
        while !is_so() {
            assert!(Instant::now() < end, "it takes too long");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whatever the number of heavy requests, so many of them are at work as there are threads, and
    /// the others wait as data.
    #[test]
    fn heavy_requests_keep_no_other_waiting_however_many_they_are() {
        for many in [8, 24, 100, 1000] {
            let workers = Workers::new(2);
            let (ends, at_work) = heavy(&workers, many);
            until(|| at_work.load(Ordering::Relaxed) == 2);
            for object in 2000..2100 {
                let (sender, answered) = channel();
                answer(&workers, Object::Content(object), None, move || {
                    sender.send(()).unwrap();
                });
                answered.recv_timeout(LIMIT).unwrap();
            }
            assert_eq!(at_work.load(Ordering::Relaxed), 2, "{many}");
            assert!(workers.0.state().workers <= 6, "{many}");
            drop(ends);
            until(|| workers.0.state().under_way.is_empty() && workers.0.state().is_idle());
        }
    }

    /// Those that take long and did not say so before go on in heavy places when others wait.
    #[test]
    fn slow_requests_make_room_for_others() {
        let workers = Arc::new(Workers::new(1));
        let taken = taken(&workers);
        let (began, has_ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        for object in 0..100 {
            let (began, has_ended) = (Arc::clone(&began), Arc::clone(&has_ended));
            let of = (Object::Content(object), None);
            ask(&workers, of, 0, move |cancel| {
                began.fetch_add(1, Ordering::Relaxed);
                loop {
                    match cancel.go_on() {
                        _ if has_ended.load(Ordering::Relaxed) => return Attempt::Answered,
                        Ok(()) => thread::sleep(Duration::from_millis(1)),
                        Err(_) => return Attempt::PutOff,
                    }
                }
            });
        }
        let (sender, answered) = channel();
        answer(&workers, Object::Content(2000), None, move || {
            sender.send(()).unwrap();
        });
        answered.recv_timeout(LIMIT).unwrap();
        assert!(began.load(Ordering::Relaxed) > slow_or_not(1));
        has_ended.store(true, Ordering::Relaxed);
        drop(taken);
    }

    #[test]
    fn who_has_gone_is_waited_for_no_more() {
        let workers = Workers::new(2);
        let (ends, at_work) = heavy(&workers, 50);
        until(|| at_work.load(Ordering::Relaxed) == 2);
        let askers = workers.askers();
        assert_eq!(askers.waiting_for(Duration::ZERO).unwrap().len(), 50);
        assert!(askers.waiting_for(LIMIT).unwrap().is_empty());
        askers.leave(|asker| asker.thread != 7);
        until(|| askers.waiting_for(Duration::ZERO) == Some(vec![7]));
        until(|| at_work.load(Ordering::Relaxed) == 1);
        drop((ends, workers));
        until(|| askers.waiting_for(Duration::ZERO).is_none());
    }

    #[test]
    fn requests_of_one_object_keep_their_order_where_one_is_begun_at_a_time() {
        let workers = Arc::new(Workers::new(1));
        let slow = taken(&workers);
        let (sender, answered) = channel();
        for number in 0..50 {
            let sender = sender.clone();
            answer(&workers, Object::Content(7), None, move || {
                sender.send(number).unwrap();
            });
        }
        let order: Vec<_> = (0..50)
            .map(|_| answered.recv_timeout(LIMIT).unwrap())
            .collect();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
        drop(slow);
    }

    #[test]
    fn as_many_as_there_are_threads_are_under_way_and_a_panic_ends_none() {
        let workers = Workers::new(4);
        let workers = Arc::new(workers);
        let slow = taken(&workers);
        answer(&workers, Object::Values, None, || panic!("on purpose"));
        drop(slow);
        let barrier = Arc::new(Barrier::new(4));
        let meeting: Vec<_> = (0..4)
            .map(|_| {
                let (workers, barrier) = (Arc::clone(&workers), Arc::clone(&barrier));
                thread::spawn(move || {
                    answer(&workers, Object::Content(5), None, move || {
                        barrier.wait();
                    });
                })
            })
            .collect();
        for thread in meeting {
            thread.join().unwrap();
        }
    }
}

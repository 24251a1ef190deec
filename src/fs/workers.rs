//! The order in which threads answer requests: no object keeps requests to others waiting for long.
//!
//! The threads that take requests answer them themselves as long as one of them is left to take the
//! next. Other requests wait here, as data, for worker threads that are started when needed: those
//! of each object in the order of their coming, and of the objects one after another.
//!
//! No more requests than there are `threads` are begun, for contents and for all else, before those
//! under way are done, or are *slow*: under way for [`limits::SLOW_REQUEST`]. So requests that take
//! seconds keep others waiting for milliseconds. While that many are under way, slow or not, an
//! object has only one of them, so that a slow object leaves places to the others. In a directory
//! of files, [`limits::FILE_PLACES`] more are for files about which no other request is under way:
//! so a file with many slow objects leaves places to the other files.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::limits;
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

/// The rest of a request, its answer included.
type Job = Box<dyn FnOnce() + Send>;

/// The requests of a mount, and its worker threads, which end with it.
pub(super) struct Workers(Arc<Shared>);

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
    /// The objects with requests that wait, in turn.
    turns: VecDeque<(Object, File)>,
    waiting: HashMap<(Object, File), VecDeque<Job>>,
    workers: usize,
    /// Workers that wait for requests, or have just been started to.
    idle: usize,
    is_closed: bool,
}

/// A request that is being answered.
struct UnderWay {
    number: u64,
    object: Object,
    file: File,
    since: Instant,
}

/// The next step of a worker.
enum Next {
    Job(u64, Job),
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

    /// Runs the rest of a request, here or in a worker thread.
    pub(super) fn answer(&self, object: Object, file: File, job: impl FnOnce() + Send + 'static) {
        let shared = &self.0;
        let of = (object, file);
        let mut state = shared.state();
        if state.in_place < shared.threads
            && state.turns.is_empty()
            && state.may_begin(of, shared.threads, Instant::now())
        {
            let number = state.begin(of);
            state.in_place += 1;
            drop(state);
            let _end = End {
                shared,
                number,
                in_place: true,
            };
            return job();
        }
        let jobs = state.waiting.entry(of).or_default();
        jobs.push_back(Box::new(job));
        if jobs.len() == 1 {
            state.turns.push_back(of);
        }
        Shared::look(shared, state);
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.ready.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Has an idle worker look whether a request can be begun; there is always one, as long as
    /// requests wait.
    fn look(shared: &Arc<Shared>, mut state: MutexGuard<'_, State>) {
        if state.turns.is_empty() {
            return;
        }
        if state.idle > 0 {
            drop(state);
            return shared.ready.notify_one();
        }
        // One more than may be under way watches for those that become slow.
        if state.workers > most(shared.threads) {
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
                Next::Job(number, job) => {
                    Shared::look(self, state);
                    let end = End {
                        shared: self,
                        number,
                        in_place: false,
                    };
                    // Its reply, dropped unsent, is an error; the handler has logged why.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                    drop(end);
                    state = self.state();
                }
                Next::Wait(limit) => {
                    state.idle += 1;
                    let waited = self.ready.wait_timeout(state, limit);
                    let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    state.idle -= 1;
                    let is_over = timeout.timed_out() && state.turns.is_empty();
                    if state.is_closed && state.turns.is_empty() || is_over {
                        state.workers -= 1;
                        return;
                    }
                }
            }
        }
    }
}

/// Requests that may be under way at a time, whatever they are about.
fn slow_or_not(threads: usize) -> usize {
    threads.saturating_add(limits::SLOW_REQUESTS)
}

/// Those, and the places that are left to other files.
fn most(threads: usize) -> usize {
    slow_or_not(threads).saturating_add(limits::FILE_PLACES)
}

impl State {
    /// Whether a request of the object may be begun now.
    fn may_begin(&self, of: (Object, File), threads: usize, now: Instant) -> bool {
        let (object, file) = of;
        self.is_object_free(object, threads)
            && self.is_file_free(file, threads)
            && self.has_place(object, threads, now)
    }

    fn is_object_free(&self, object: Object, threads: usize) -> bool {
        self.under_way.len() < threads || self.under_way.iter().all(|other| other.object != object)
    }

    fn is_file_free(&self, file: File, threads: usize) -> bool {
        let is_other = || self.under_way.iter().all(|other| other.file != file);
        match self.under_way.len() {
            count if count < slow_or_not(threads) => true,
            count => file.is_some() && count < most(threads) && is_other(),
        }
    }

    /// Whether few enough requests of this kind are under way and not slow yet.
    fn has_place(&self, object: Object, threads: usize, now: Instant) -> bool {
        let fast = self.fast(now);
        let alike = fast.filter(|other| other.object.is_content() == object.is_content());
        alike.count() < threads
    }

    /// The requests that are not slow yet.
    fn fast(&self, now: Instant) -> impl Iterator<Item = &UnderWay> {
        let is_fast = move |since| now.duration_since(since) < limits::SLOW_REQUEST;
        let all = self.under_way.iter();
        all.filter(move |under_way| is_fast(under_way.since))
    }

    fn begin(&mut self, (object, file): (Object, File)) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.under_way.push(UnderWay {
            number,
            object,
            file,
            since: Instant::now(),
        });
        number
    }

    fn next(&mut self, threads: usize, now: Instant) -> Next {
        if self.turns.is_empty() || self.under_way.len() >= most(threads) {
            return Next::Wait(limits::IDLE_WORKER);
        }
        let mut turns = self.turns.iter();
        let free = turns.position(|&of| self.may_begin(of, threads, now));
        let Some(of) = free.and_then(|place| self.turns.remove(place)) else {
            let oldest = self.fast(now).map(|under_way| under_way.since).min();
            let slow = oldest.map(|since| since + limits::SLOW_REQUEST);
            let until = slow.map_or(limits::IDLE_WORKER, |slow| slow.duration_since(now));
            return Next::Wait(until);
        };
        let Some((job, is_last)) = self.take(of) else {
            return Next::Wait(Duration::ZERO);
        };
        if is_last {
            self.waiting.remove(&of);
        } else {
            self.turns.push_back(of);
        }
        Next::Job(self.begin(of), job)
    }

    /// The object's first request, and whether no other waits.
    fn take(&mut self, of: (Object, File)) -> Option<(Job, bool)> {
        let jobs = self.waiting.get_mut(&of)?;
        let job = jobs.pop_front()?;
        Some((job, jobs.is_empty()))
    }
}

/// The end of a request, however it ends.
struct End<'a> {
    shared: &'a Arc<Shared>,
    number: u64,
    in_place: bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.in_place -= usize::from(self.in_place);
        let number = self.number;
        state.under_way.retain(|other| other.number != number);
        Shared::look(self.shared, state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// A request that goes on until its sender is dropped.
    fn endless(workers: &Workers, object: u64) -> (Sender<()>, Receiver<()>) {
        endless_of(workers, object, None)
    }

    fn endless_of(workers: &Workers, object: u64, file: File) -> (Sender<()>, Receiver<()>) {
        let ((end, until), (begun, is_begun)) = (channel::<()>(), channel());
        workers.answer(Object::Content(object), file, move || {
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
                workers.answer(Object::Content(object), None, move || {
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
            workers.answer(Object::Content(object), None, move || {
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
            workers.answer(
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

    #[test]
    fn requests_of_one_object_keep_their_order_where_one_is_begun_at_a_time() {
        let workers = Arc::new(Workers::new(1));
        let slow = taken(&workers);
        let (sender, answered) = channel();
        for number in 0..50 {
            let sender = sender.clone();
            workers.answer(Object::Content(7), None, move || {
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
        workers.answer(Object::Values, None, || panic!("on purpose"));
        drop(slow);
        let barrier = Arc::new(Barrier::new(4));
        let meeting: Vec<_> = (0..4)
            .map(|_| {
                let (workers, barrier) = (Arc::clone(&workers), Arc::clone(&barrier));
                thread::spawn(move || {
                    workers.answer(Object::Content(5), None, move || {
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

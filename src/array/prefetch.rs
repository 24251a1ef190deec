//! Decoding ahead: the threads that do it, the queue before them, and what sequential readers put there.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::array::Reader;
use crate::array::cache::Key;
use crate::array::chunks::Chunks;
use crate::array::engine::Shared;
use crate::array::wish::{Wish, Wishes};
use crate::limits;

/// Chunks that wait for a decode thread.
pub(super) struct Queue {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Whether a thread is to look for something else to do.
    is_woken: bool,
    closed: bool,
}

/// One chunk to decode, as long as whoever asked for it wants it.
struct Job {
    chunks: Arc<Chunks>,
    number: u64,
    wish: Wish,
}

/// What a thread has to do.
enum Next {
    Job(Job),
    /// Nothing at present.
    Nothing,
    /// Nothing any more.
    End,
}

impl Job {
    fn key(&self) -> Key {
        self.chunks.key(self.number)
    }
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue {
            state: Mutex::default(),
            ready: Condvar::new(),
        }
    }

    /// Queues chunks of which a reader waits for the first: before all that is only expected.
    pub(super) fn push_urgent(&self, chunks: &Arc<Chunks>, numbers: &[u64], wishes: &Wishes) {
        let mut state = self.state();
        for &number in numbers.iter().rev() {
            state.jobs.push_front(job(chunks, number, wishes));
        }
        state.trim();
        drop(state);
        self.ready.notify_all();
    }

    /// Queues chunks that will be needed; as many of the first as there is room for are taken.
    fn push_expected(&self, chunks: &Arc<Chunks>, numbers: &[u64], wishes: &Wishes) -> usize {
        let mut state = self.state();
        state.jobs.retain(|job| job.wish.holds());
        let room = limits::PREFETCH_CHUNKS.saturating_sub(state.jobs.len());
        let taken = room.min(numbers.len());
        let jobs = numbers.iter().take(taken);
        state
            .jobs
            .extend(jobs.map(|&number| job(chunks, number, wishes)));
        drop(state);
        // Usually one chunk: to wake a thread that finds nothing costs a hundredth of a decode.
        for _ in 0..taken {
            self.ready.notify_one();
        }
        taken
    }

    /// Removes a chunk that a reader decodes itself.
    pub(super) fn take_over(&self, key: Key) {
        self.state().jobs.retain(|job| job.key() != key);
    }

    /// Ends the threads once they are done with what they are doing.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.jobs.clear();
        drop(state);
        self.ready.notify_all();
    }

    /// Has a thread look whether there is something else to do than decoding.
    pub(super) fn wake(&self) {
        self.state().is_woken = true;
        self.ready.notify_one();
    }

    /// The next chunk that is still wanted, as soon as there is one within `limit`.
    fn next(&self, limit: Option<Duration>) -> Next {
        let mut state = self.state();
        let mut has_waited = false;
        loop {
            if state.closed {
                return Next::End;
            }
            match state.jobs.pop_front() {
                Some(job) if job.wish.holds() => return Next::Job(job),
                Some(_) => {}
                None if has_waited || state.is_woken => {
                    state.is_woken = false;
                    return Next::Nothing;
                }
                None => {
                    state = self.wait(state, limit);
                    has_waited = true;
                }
            }
        }
    }

    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let Some(limit) = limit else {
            let waited = self.ready.wait(state);
            return waited.unwrap_or_else(PoisonError::into_inner);
        };
        let waited = self.ready.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn trim(&mut self) {
        self.jobs.retain(|job| job.wish.holds());
        self.jobs.truncate(limits::PREFETCH_CHUNKS);
    }
}

fn job(chunks: &Arc<Chunks>, number: u64, wishes: &Wishes) -> Job {
    Job {
        chunks: Arc::clone(chunks),
        number,
        wish: wishes.wish(),
    }
}

/// Starts the decode threads.
pub(super) fn spawn(shared: &Arc<Shared>, threads: usize) {
    for _ in 0..threads {
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("decode".to_owned());
        let work = move || {
            loop {
                match shared.queue.next(shared.forget_idle()) {
                    Next::Job(job) => shared.decode_ahead(&job.chunks, job.number, &job.wish),
                    Next::Nothing => {}
                    Next::End => return,
                }
            }
        };
        if let Err(error) = thread.spawn(work) {
            // Readers decode for themselves then.
            log::warn!("no thread to decode ahead: {error}");
        }
    }
}

/// Watches the reads of one open file, and has the chunks decoded that a sequential reader needs next.
///
/// The kernel sends the requests of one sequential reader in parallel, so they may arrive a little out of order.
#[derive(Default)]
pub struct Stream {
    progress: Mutex<Progress>,
    wishes: Wishes,
    room: OnceLock<Room>,
    /// The same for the way back.
    room_back: OnceLock<Room>,
}

#[derive(Default)]
struct Progress {
    /// The furthest end of a read so far.
    end: u64,
    /// Whether the next read, should it go on here, is the second of a run.
    sequential: bool,
    /// The first chunk that no read of this run has touched.
    untouched: u64,
    /// The first chunk that was not queued.
    unqueued: u64,
}

/// A part of the cache that is claimed for one reader.
struct Room {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Room {
    fn claim(shared: &Arc<Shared>, bytes: u64) -> Self {
        shared.cache.claim(bytes);
        Room {
            shared: Arc::clone(shared),
            bytes,
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shared.cache.release(self.bytes);
    }
}

/// A read this many times its own length away from the end of those before still belongs to them.
const DISORDER: u64 = 4;

impl Stream {
    /// A file that has just been opened.
    pub fn new() -> Self {
        Stream::default()
    }

    /// To be told before each read, always with the same reader: where the reads are sequential, the
    /// chunks behind this one are queued; a seek drops what is queued.
    pub fn advise(&self, reader: &Reader, offset: u64, length: usize) {
        let end = offset.saturating_add(length as u64).min(reader.length());
        if let Some((base, start)) = reader.packed() {
            return self.advise(base, start + offset, length);
        }
        let (Some(chunks), true) = (reader.chunks(), offset < end) else {
            return;
        };
        if !chunks.is_encoded() {
            return;
        }
        let shared = reader.shared();
        let mut progress = self.progress();
        if !progress.goes_on(offset, end) {
            if chunks.is_sequential() && offset < progress.end {
                // What is decoded on the way back here will be wanted again.
                let claim = || Room::claim(shared, shared.needed_backwards(chunks));
                self.room_back.get_or_init(claim);
            }
            self.wishes.forget();
            *progress = Progress::default();
        }
        progress.end = progress.end.max(end);
        let touched = chunks.grid.last_number(&chunks.grid.slabs(offset, end)) + 1;
        progress.untouched = progress.untouched.max(touched);
        let sequential = std::mem::replace(&mut progress.sequential, true);
        if sequential || chunks.grid.band() > 1 {
            let claim = || Room::claim(shared, shared.needed(chunks));
            self.room.get_or_init(claim);
        }
        if !sequential {
            return;
        }
        let depth = shared.depth(chunks);
        let from = progress.untouched.max(progress.unqueued);
        let to = (progress.untouched + depth).min(chunks.grid.chunks());
        if from < to {
            // What is still to be read must not go before what was read meanwhile.
            for number in progress.untouched..from {
                shared.cache.promote(chunks.key(number));
            }
            let numbers: Vec<u64> = (from..to).collect();
            let taken = shared.queue.push_expected(chunks, &numbers, &self.wishes);
            progress.unqueued = from + taken as u64;
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// Whether a read of `offset..end` belongs to the run of those before.
    fn goes_on(&self, offset: u64, end: u64) -> bool {
        let disorder = (end - offset).saturating_mul(DISORDER);
        self.end != 0 && offset.abs_diff(self.end) <= disorder
    }
}

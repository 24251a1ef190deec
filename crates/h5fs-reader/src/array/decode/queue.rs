//! The queue of chunks that wait for a decode thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::array::cache::ChunkKey;
use crate::array::chunks::ArrayChunks;
use crate::limits;
use crate::memory::cancel::{CancelToken, Canceller};
use crate::memory::lock::{lock, wait, wait_for};
use crate::wire::Count;

/// A queue of chunks that wait for a decode thread.
pub(in crate::array) struct DecodeQueue {
    state: Mutex<QueueState>,
    ready: Condvar,
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<DecodeJob>,
    /// Whether a decode thread must return from `next` to look for other work.
    is_woken: bool,
    is_closed: bool,
}

/// One chunk to decode, unless the decode is cancelled.
pub(in crate::array) struct DecodeJob {
    pub(in crate::array) chunks: Arc<ArrayChunks>,
    pub(in crate::array) number: u64,
    pub(in crate::array) token: CancelToken,
}

/// The answer of the queue to a decode thread that looks for its next chunk.
pub(in crate::array) enum NextJob {
    Job(DecodeJob),
    /// The queue is empty at present.
    Empty,
    /// The queue is closed.
    Closed,
}

impl DecodeJob {
    fn key(&self) -> ChunkKey {
        self.chunks.cache_key(self.number)
    }
}

impl DecodeQueue {
    pub(in crate::array) fn new() -> Self {
        DecodeQueue {
            state: Mutex::default(),
            ready: Condvar::new(),
        }
    }

    /// Queues chunks that a read needs now, in front of chunks that are only expected. `numbers`
    /// are the chunk numbers in the order in which the reader waits for them.
    pub(in crate::array) fn push_urgent(
        &self,
        chunks: &Arc<ArrayChunks>,
        numbers: &[u64],
        canceller: &Canceller,
    ) {
        let mut state = lock(&self.state);
        if chunks.is_remote() {
            // The same chunks may be queued again, if they could not be decoded the first time.
            let again = |job: &DecodeJob| {
                numbers
                    .iter()
                    .any(|&number| chunks.cache_key(number) == job.key())
            };
            state.jobs.retain(|job| !again(job));
        }
        for &number in numbers.iter().rev() {
            state.jobs.push_front(new_job(chunks, number, canceller));
        }
        state.trim();
        drop(state);
        self.ready.notify_all();
    }

    /// Queues chunks that later reads will probably need, until the queue is full. Returns the
    /// number of queued chunks.
    pub(in crate::array) fn push_expected(
        &self,
        chunks: &Arc<ArrayChunks>,
        numbers: &[u64],
        canceller: &Canceller,
    ) -> usize {
        let mut state = lock(&self.state);
        state.jobs.retain(|job| !job.token.is_cancelled());
        let room = limits::PREFETCH_CHUNKS.minus_or_zero(state.jobs.len());
        let taken = room.min(numbers.len());
        let jobs = numbers.iter().take(taken);
        state
            .jobs
            .extend(jobs.map(|&number| new_job(chunks, number, canceller)));
        drop(state);
        // Usually this is one chunk. Waking a thread that finds no work costs a hundredth of a
        // decode.
        for _ in 0..taken {
            self.ready.notify_one();
        }
        taken
    }

    /// Removes from the queue a chunk that a reader decodes itself.
    pub(in crate::array) fn remove(&self, key: ChunkKey) {
        lock(&self.state).jobs.retain(|job| job.key() != key);
    }

    /// Closes the queue. The decode threads end once they have finished their current work.
    pub(in crate::array) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.jobs.clear();
        drop(state);
        self.ready.notify_all();
    }

    /// Wakes a decode thread to look for work other than decoding.
    pub(in crate::array) fn wake(&self) {
        lock(&self.state).is_woken = true;
        self.ready.notify_one();
    }

    /// Returns the next chunk to decode that is still wanted. If the queue is empty, waits for a
    /// chunk for at most `limit`.
    pub(in crate::array) fn next(&self, limit: Option<Duration>) -> NextJob {
        let mut state = lock(&self.state);
        let mut has_waited = false;
        loop {
            if state.is_closed {
                return NextJob::Closed;
            }
            match state.jobs.pop_front() {
                Some(job) if !job.token.is_cancelled() => return NextJob::Job(job),
                Some(_) => {}
                None if has_waited || state.is_woken => {
                    state.is_woken = false;
                    return NextJob::Empty;
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
        state: MutexGuard<'a, QueueState>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, QueueState> {
        match limit {
            Some(limit) => wait_for(&self.ready, state, limit),
            None => wait(&self.ready, state),
        }
    }
}

impl QueueState {
    fn trim(&mut self) {
        self.jobs.retain(|job| !job.token.is_cancelled());
        self.jobs.truncate(limits::PREFETCH_CHUNKS);
    }
}

fn new_job(chunks: &Arc<ArrayChunks>, number: u64, canceller: &Canceller) -> DecodeJob {
    DecodeJob {
        chunks: Arc::clone(chunks),
        number,
        token: canceller.token(),
    }
}

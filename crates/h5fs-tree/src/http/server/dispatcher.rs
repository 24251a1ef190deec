//! Passes requests to the trees to worker threads.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::limits;
use crate::workers::{Caller, RequestSubject, WaitingCallers, Workers};

/// The dispatcher of requests from all connections to the worker threads.
pub(super) struct RequestDispatcher {
    workers: Workers,
    /// Number of requests so far, which gives each request a number.
    request_count: AtomicU64,
    /// Slots that limit the number of large pieces of responses in memory.
    large_piece_slots: Arc<Semaphore>,
}

impl RequestDispatcher {
    /// Creates a dispatcher that handles at most `threads` requests concurrently.
    pub(super) fn new(threads: usize) -> Self {
        RequestDispatcher {
            workers: Workers::with_receiving_thread(threads),
            request_count: AtomicU64::new(0),
            large_piece_slots: Arc::new(Semaphore::new(limits::HTTP_LARGE_PIECES)),
        }
    }

    /// Returns whether so many requests wait that the next one must be refused.
    pub(super) fn is_overloaded(&self) -> bool {
        self.workers.waiting_count() >= limits::HTTP_WAITING
    }

    /// Reserves a slot for a large piece of a response. Returns `None` if no slot is free.
    pub(super) fn reserve_large_piece(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.large_piece_slots).try_acquire_owned().ok()
    }

    /// Schedules `work`, which receives `held`. The returned future gives `held` back with the
    /// result, unless the worker panics. Dropping the future cancels the work.
    pub(super) fn dispatch<R: Send + 'static, T: Send + 'static>(
        &self,
        of: RequestSubject,
        held: R,
        work: impl FnMut(&mut R, &CancelToken) -> Result<T> + Send + 'static,
    ) -> DispatchFuture<R, T> {
        let (sender, answered) = oneshot::channel();
        let unique = self.request_count.fetch_add(1, Ordering::Relaxed);
        let caller = Caller { unique, thread: 0 };
        let left = CancelOnDrop(Some((self.workers.waiting_callers(), unique)));
        let whole = (CancelToken::default(), Arc::default());
        self.workers.schedule_request(
            ("http", of),
            caller,
            whole,
            held,
            work,
            move |held, done| {
                // The receiver is gone if the connection has ended.
                let _ = sender.send((held, done));
            },
        );
        Box::pin(async move {
            let answered = answered.await;
            left.disarm();
            match answered {
                Ok((held, done)) => (Some(held), done),
                Err(_) => (
                    None,
                    Err(Error::from_io(
                        &io::ErrorKind::Other.into(),
                        "a defect of h5fs",
                    )),
                ),
            }
        })
    }
}

/// A future with the value that was passed to the work, and the result of the work. The value is
/// `None` after a panic.
pub(super) type DispatchFuture<R, T> = Pin<Box<dyn Future<Output = (Option<R>, Result<T>)> + Send>>;

/// A guard that cancels the request with this number, unless the result becomes available first.
struct CancelOnDrop(Option<(WaitingCallers, u64)>);

impl CancelOnDrop {
    /// Consumes the guard without cancelling, because the result is available.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some((callers, unique)) = &self.0 {
            callers.cancel_ended(|caller| caller.unique == *unique);
        }
    }
}

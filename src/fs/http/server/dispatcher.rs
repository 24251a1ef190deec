//! Requests to the trees, which workers handle.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::fs::workers::{Caller, RequestSubject, WaitingCallers, Workers};
use crate::limits;

/// The requests of all connections.
pub(super) struct RequestDispatcher {
    workers: Workers,
    /// Number of requests so far.
    request_count: AtomicU64,
    /// Slots for large pieces of responses in memory.
    large: Arc<Semaphore>,
}

impl RequestDispatcher {
    /// Creates a scheduler for `threads` concurrent requests.
    pub(super) fn new(threads: usize) -> Self {
        RequestDispatcher {
            workers: Workers::with_receiving_thread(threads),
            request_count: AtomicU64::new(0),
            large: Arc::new(Semaphore::new(limits::HTTP_LARGE_PIECES)),
        }
    }

    /// Returns whether so many requests wait that another is refused.
    pub(super) fn are_too_many(&self) -> bool {
        self.workers.waiting() >= limits::HTTP_WAITING
    }

    /// Reserves a slot for a large piece of a response.
    pub(super) fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.large).try_acquire_owned().ok()
    }

    /// Schedules `work` with the value `held`, which is returned with the result unless the worker
    /// panics. If the caller drops the future, the work is cancelled.
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
        self.workers.request(
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
            left.forget();
            match answered {
                Ok((held, done)) => (Some(held), done),
                Err(_) => (
                    None,
                    Err(Error::io(&io::ErrorKind::Other.into(), "a defect of h5fs")),
                ),
            }
        })
    }
}

/// A future of the value held for a request, and the result.
pub(super) type DispatchFuture<R, T> = Pin<Box<dyn Future<Output = (Option<R>, Result<T>)> + Send>>;

/// Cancels the request with this number when dropped before the result is available.
struct CancelOnDrop(Option<(WaitingCallers, u64)>);

impl CancelOnDrop {
    /// Disables the cancellation, because the result is available.
    fn forget(mut self) {
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

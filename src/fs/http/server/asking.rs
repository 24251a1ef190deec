//! Requests to the trees, which workers handle.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::fs::workers::{Asker, Askers, Of, Workers};
use crate::limits;

/// The requests of all connections.
pub(super) struct Questions {
    workers: Workers,
    /// Number of requests so far.
    asked: AtomicU64,
    /// Slots for large pieces of responses in memory.
    large: Arc<Semaphore>,
}

impl Questions {
    /// Creates a scheduler for `threads` concurrent requests.
    pub(super) fn of(threads: usize) -> Self {
        Questions {
            workers: Workers::apart(threads),
            asked: AtomicU64::new(0),
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
    pub(super) fn ask<R: Send + 'static, T: Send + 'static>(
        &self,
        of: Of,
        held: R,
        work: impl FnMut(&mut R, &CancelToken) -> Result<T> + Send + 'static,
    ) -> Answered<R, T> {
        let (sender, answered) = oneshot::channel();
        let unique = self.asked.fetch_add(1, Ordering::Relaxed);
        let asker = Asker { unique, thread: 0 };
        let left = Left(Some((self.workers.askers(), unique)));
        let whole = (CancelToken::default(), Arc::default());
        self.workers
            .request(("http", of), asker, whole, held, work, move |held, done| {
                // The receiver is gone if the connection has ended.
                let _ = sender.send((held, done));
            });
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
pub(super) type Answered<R, T> = Pin<Box<dyn Future<Output = (Option<R>, Result<T>)> + Send>>;

/// Cancels the request with this number when dropped before the result is available.
struct Left(Option<(Askers, u64)>);

impl Left {
    /// Disables the cancellation, because the result is available.
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Some((askers, unique)) = &self.0 {
            askers.leave(|asker| asker.unique == *unique);
        }
    }
}

//! Questions to the trees, which workers answer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::array::CancelToken;
use crate::error::{Error, Result};
use crate::fs::workers::{Asker, Askers, Of, Workers};
use crate::limits;

/// Questions of all connections.
pub(super) struct Questions {
    workers: Workers,
    /// How many there have been.
    asked: AtomicU64,
    /// Large pieces of answers that may be in memory.
    large: Arc<Semaphore>,
}

impl Questions {
    /// So many are answered at a time.
    pub(super) fn of(threads: usize) -> Self {
        Questions {
            workers: Workers::apart(threads),
            asked: AtomicU64::new(0),
            large: Arc::new(Semaphore::new(limits::HTTP_LARGE_PIECES)),
        }
    }

    /// Whether so many wait that another one is not taken.
    pub(super) fn are_too_many(&self) -> bool {
        self.workers.waiting() >= limits::HTTP_WAITING
    }

    /// Room for a large piece of an answer.
    pub(super) fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.large).try_acquire_owned().ok()
    }

    /// Has a worker do what has to be done with what is `held`; it is given back, unless that
    /// panicked. Once nobody waits for the outcome, the work ends, or is not begun.
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
                // Nobody waits where the connection is gone.
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

/// What was held for a request, and its outcome, once they are there.
pub(super) type Answered<R, T> = Pin<Box<dyn Future<Output = (Option<R>, Result<T>)> + Send>>;

/// Gives up what was asked for by this number, when it is dropped before that is there.
struct Left(Option<(Askers, u64)>);

impl Left {
    /// It is there.
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

//! Cancelling work that nobody waits for any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells work whether it is cancelled; the default one never is.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelToken {
    made: Option<(Arc<AtomicU64>, u64)>,
}

/// Makes tokens and cancels them; those that it has made are cancelled when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Canceller(Arc<AtomicU64>);

impl Canceller {
    /// One more token.
    pub(crate) fn token(&self) -> CancelToken {
        let now = self.0.load(Ordering::Relaxed);
        CancelToken {
            made: Some((Arc::clone(&self.0), now)),
        }
    }

    /// Cancels all tokens that were made so far.
    pub(crate) fn cancel(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Canceller {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl CancelToken {
    /// Whether it was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        let made = self.made.as_ref();
        made.is_some_and(|(current, made)| current.load(Ordering::Relaxed) != *made)
    }
}

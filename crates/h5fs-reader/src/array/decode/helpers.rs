//! Helper threads for work that can be divided. Their number is bounded for a whole mount.

use crate::wire::Count;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of helper threads that the requests of a mount may still start.
#[derive(Debug)]
pub(in crate::array) struct FreeHelperThreads(AtomicUsize);

/// A number of helper threads that a request may start. Dropping the value lets other requests use
/// these threads.
#[derive(Debug)]
pub struct HelperThreads {
    free: Arc<FreeHelperThreads>,
    count: usize,
}

impl FreeHelperThreads {
    pub(in crate::array) fn new(count: usize) -> Arc<Self> {
        Arc::new(FreeHelperThreads(AtomicUsize::new(count)))
    }

    /// Takes at most `wanted` of the free helper threads. The result may be zero threads.
    pub(in crate::array) fn take(self: &Arc<Self>, wanted: usize) -> HelperThreads {
        let order = Ordering::Relaxed;
        let rest = |free: usize| Some(free.minus_or_zero(wanted));
        let free = self.0.fetch_update(order, order, rest).unwrap_or(0);
        HelperThreads {
            free: Arc::clone(self),
            count: free.min(wanted),
        }
    }
}

impl HelperThreads {
    /// Returns the number of helper threads that the request may start.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for HelperThreads {
    fn drop(&mut self) {
        self.free.0.fetch_add(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_helper_threads_are_reused() {
        let free = FreeHelperThreads::new(3);
        let two = free.take(2);
        let one = free.take(2);
        assert_eq!((two.count(), one.count(), free.take(1).count()), (2, 1, 0));
        drop(two);
        assert_eq!(free.take(5).count(), 2);
        assert_eq!(free.take(1).count(), 1);
    }
}

//! Whether somebody still wants what was asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Holds until whoever asked asks for something else or goes away; one that nobody can take back holds for ever.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    made: Option<(Arc<AtomicU64>, u64)>,
}

/// The asker's side of its wishes. They end with it.
#[derive(Debug, Default)]
pub(crate) struct Wishes(Arc<AtomicU64>);

impl Wishes {
    /// One more wish.
    pub(crate) fn wish(&self) -> Wish {
        let now = self.0.load(Ordering::Relaxed);
        Wish {
            made: Some((Arc::clone(&self.0), now)),
        }
    }

    /// Takes back all that were made.
    pub(crate) fn forget(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Wishes {
    fn drop(&mut self) {
        self.forget();
    }
}

impl Wish {
    /// Whether it was not taken back.
    pub fn holds(&self) -> bool {
        let made = self.made.as_ref();
        made.is_none_or(|(current, made)| current.load(Ordering::Relaxed) == *made)
    }
}

//! How many members have been scanned, as `.h5fs/status` shows it.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::wire::to_u64;

/// Members that have been scanned of those that are joined now.
#[derive(Debug, Default)]
pub(in crate::fs::forest::archive) struct Progress {
    done: AtomicUsize,
    all: AtomicUsize,
    /// Since the mount: members that had to be opened.
    read: AtomicUsize,
}

impl Progress {
    /// The line of the status; `None` while no member is scanned.
    pub(in crate::fs::forest::archive) fn text(&self) -> Option<String> {
        let all = self.all.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (all > 0).then(|| format!("{done} of {all} files"))
    }

    /// Members that were opened to be scanned, since the mount.
    pub(in crate::fs::forest::archive) fn read(&self) -> u64 {
        to_u64(self.read.load(Ordering::Relaxed))
    }

    pub(super) fn begin(&self, all: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    /// Counts one more member; `was_known` says that it was not opened.
    pub(super) fn scanned(&self, was_known: bool) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.read
            .fetch_add(usize::from(!was_known), Ordering::Relaxed);
    }

    pub(in crate::fs::forest::archive) fn end(&self) {
        self.begin(0);
    }
}

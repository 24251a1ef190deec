//! Counts the scanned members, for `.h5fs/status`.

use std::sync::atomic::{AtomicUsize, Ordering};

use h5fs_reader::wire::to_u64;

/// The progress of the current scan.
#[derive(Debug, Default)]
pub(in crate::fs::data_files::archive) struct ScanProgress {
    done: AtomicUsize,
    all: AtomicUsize,
    /// Number of members that were opened for scans since the mount.
    read: AtomicUsize,
}

impl ScanProgress {
    /// Returns the line of the status, or `None` if no scan is in progress.
    pub(in crate::fs::data_files::archive) fn text(&self) -> Option<String> {
        let all = self.all.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (all > 0).then(|| format!("{done} of {all} files"))
    }

    /// Returns the number of members that were opened for scans since the mount.
    pub(in crate::fs::data_files::archive) fn read(&self) -> u64 {
        to_u64(self.read.load(Ordering::Relaxed))
    }

    pub(super) fn begin(&self, all: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    /// Counts one more member. `was_known` means that its stored scan was used.
    pub(super) fn scanned(&self, was_known: bool) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.read
            .fetch_add(usize::from(!was_known), Ordering::Relaxed);
    }

    pub(in crate::fs::data_files::archive) fn end(&self) {
        self.begin(0);
    }
}

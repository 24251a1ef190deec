//! Counters of the scanned data files of a joined file, for `.h5fs/status`.

use std::sync::atomic::{AtomicUsize, Ordering};

use h5fs_reader::wire::to_u64;

/// The progress of scanning the data files of a joined file.
#[derive(Debug, Default)]
pub(in crate::archive) struct ScanProgress {
    scanned: AtomicUsize,
    total: AtomicUsize,
    /// Number of data files that were opened for scans since the directory was mounted.
    opened: AtomicUsize,
}

impl ScanProgress {
    /// Returns the progress as text for `.h5fs/status`, or `None` if no scan is in progress.
    pub(in crate::archive) fn text(&self) -> Option<String> {
        let all = self.total.load(Ordering::Relaxed);
        let done = self.scanned.load(Ordering::Relaxed);
        (all > 0).then(|| format!("{done} of {all} files"))
    }

    /// Returns the number of data files that were opened for scans since the directory was mounted.
    pub(in crate::archive) fn opened_count(&self) -> u64 {
        to_u64(self.opened.load(Ordering::Relaxed))
    }

    pub(super) fn begin(&self, all: usize) {
        self.scanned.store(0, Ordering::Relaxed);
        self.total.store(all, Ordering::Relaxed);
    }

    /// Counts a data file as scanned. `was_known` says that its scan result was stored by an
    /// earlier mount, so that the file was not opened.
    pub(super) fn count_scanned(&self, was_known: bool) {
        self.scanned.fetch_add(1, Ordering::Relaxed);
        self.opened
            .fetch_add(usize::from(!was_known), Ordering::Relaxed);
    }

    pub(in crate::archive) fn end(&self) {
        self.begin(0);
    }
}

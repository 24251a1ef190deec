//! Counters of the scanned data files of a joined file, for `.h5fs/status`.

use std::sync::atomic::{AtomicUsize, Ordering};

use h5fs_reader::wire::to_u64;

/// The progress of scanning the data files of a joined file.
#[derive(Debug, Default)]
pub(in crate::fs::data_files::archive) struct ScanProgress {
    done: AtomicUsize,
    all: AtomicUsize,
    /// Number of data files that were opened for scans since the directory was mounted.
    read: AtomicUsize,
}

impl ScanProgress {
    /// Returns the progress as text for `.h5fs/status`, or `None` if no scan is in progress.
    pub(in crate::fs::data_files::archive) fn text(&self) -> Option<String> {
        let all = self.all.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (all > 0).then(|| format!("{done} of {all} files"))
    }

    /// Returns the number of data files that were opened for scans since the directory was mounted.
    pub(in crate::fs::data_files::archive) fn read(&self) -> u64 {
        to_u64(self.read.load(Ordering::Relaxed))
    }

    pub(super) fn begin(&self, all: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    /// Counts a data file as scanned. `was_known` says that its scan result was stored by an
    /// earlier mount, so that the file was not opened.
    pub(super) fn scanned(&self, was_known: bool) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.read
            .fetch_add(usize::from(!was_known), Ordering::Relaxed);
    }

    pub(in crate::fs::data_files::archive) fn end(&self) {
        self.begin(0);
    }
}

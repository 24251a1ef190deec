//! `.h5fs/status`, `.h5fs/metrics` and `.h5fs/errors` of an archive: the current state and the
//! errors of the mount.

use std::os::unix::ffi::OsStrExt;
use std::time::SystemTime;

use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::to_u64;
use h5fs_view::view::View;

use crate::archive::{Archive, ArchiveStatusFile};
use crate::data_files::missing_source::{stale_status_line, unanswered_status_line};
use crate::metrics::{self, MountMetrics};
use crate::nodes::status;
use crate::stat::{FileKind, LookupEntry, Stat};

impl Archive {
    /// Returns the entry of `.h5fs/status`, `.h5fs/metrics` or `.h5fs/errors`. Its size is the
    /// length of the current text.
    pub(super) fn status_entry(&self, told: &ArchiveStatusFile) -> Result<LookupEntry> {
        let entry = self.fixed_entry(told.ino)?;
        let text = self
            .status_texts
            .text_for_stat(told.ino, || (told.text)(self));
        let size = text.length();
        let attributes = Stat {
            kind: FileKind::File,
            size,
            blocks: size.div_ceil(512),
            permissions: entry.attributes.permissions & 0o444,
            ..entry.attributes
        };
        Ok(LookupEntry {
            attributes,
            is_cacheable: false,
            is_sized: true,
            ..entry
        })
    }

    /// Returns the current text of `.h5fs/status`.
    pub(super) fn status_text(&self) -> Vec<u8> {
        // Special characters are escaped, so that a hostile name cannot forge lines.
        let source = self.root.path().as_os_str().as_bytes().escape_ascii();
        let mut facts = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("source", source.to_string()),
            ("state", self.state_text()),
        ];
        facts.extend(status::process_facts(&self.options));
        facts.extend(self.scan_progress.text().map(|text| ("joined", text)));
        facts.extend(self.metrics().status_values());
        status::fact_lines(&facts)
    }

    /// Returns the line of `.h5fs/status` that says whether the directory can still be read.
    fn state_text(&self) -> String {
        let mut gone = lock(&self.missing_since);
        match self.root.check_exists() {
            Ok(()) => {
                *gone = None;
                let unanswered = self.root.unanswered_since();
                unanswered.map_or_else(|| "serving".to_owned(), unanswered_status_line)
            }
            Err(why) => stale_status_line(&why, *gone.get_or_insert_with(SystemTime::now)),
        }
    }

    /// Returns the current text of `.h5fs/metrics`, for Prometheus.
    pub(super) fn metrics_text(&self) -> Vec<u8> {
        metrics::prometheus_text(&[self.metrics()]).into_bytes()
    }

    fn metrics(&self) -> MountMetrics {
        let is_up = self.state_text() == "serving";
        let mut figures = status::initial_metrics(self.root.path(), is_up, &self.options);
        let (open, bytes) = self.members.open_totals();
        figures.add("uptime_seconds", self.started_at.elapsed().as_secs());
        figures.add("files_open", to_u64(open));
        figures.add("files_open_at_most", to_u64(self.options.open_files));
        figures.add("open_files_bytes", bytes);
        figures.add("joined_files_read_total", self.scan_progress.opened_count());
        figures.add("handles_open", to_u64(self.handles.len()));
        status::add_engine_metrics(&mut figures, &self.engine.statistics());
        status::add_request_metrics(&mut figures, &self.traffic);
        status::add_error_metrics(&mut figures, &self.errors);
        if let Some(counters) = self.root.counters() {
            status::add_network_metrics(&mut figures, counters);
        }
        figures
    }
}

//! `.h5fs/status` of an archive: what the mount does, one fact a line.

use std::os::unix::ffi::OsStrExt;

use crate::error::Result;
use crate::fs::archive::Archive;
use crate::fs::archive::entries::STATUS;
use crate::fs::stat::{Entry, Kind, Stat};
use crate::fs::status;
use crate::memory::lock::lock;

impl Archive {
    /// The entry of the file that tells what the mount does: a stream, as its text changes.
    pub(super) fn status(&self) -> Result<Entry> {
        let entry = self.fixed(STATUS)?;
        let attributes = Stat {
            kind: Kind::File,
            permissions: entry.attributes.permissions & 0o444,
            ..entry.attributes
        };
        Ok(Entry {
            attributes,
            ..entry
        })
    }

    /// The text as it is now.
    pub(super) fn status_text(&self) -> Vec<u8> {
        let engine = self.engine.statistics();
        let (open, bytes) = self.members.open_now();
        // Hostile names must not forge lines.
        let source = self.root.path().as_os_str().as_bytes().escape_ascii();
        let mut facts = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("source", source.to_string()),
            (
                "uptime seconds",
                self.started.elapsed().as_secs().to_string(),
            ),
            ("files open", open.to_string()),
            ("files open at most", self.options.open_files.to_string()),
            ("bytes of open files", bytes.to_string()),
            ("handles open", lock(&self.handles).len().to_string()),
            ("cache bytes", engine.cache_bytes.to_string()),
            ("cache capacity", engine.cache_capacity.to_string()),
            ("cache hits", engine.hits.to_string()),
            ("cache misses", engine.misses.to_string()),
            ("cache evictions", engine.evictions.to_string()),
            ("chunks decoded", engine.chunks_decoded.to_string()),
        ];
        let counters = self.root.counters();
        let figures = counters.map_or_else(Vec::new, status::network_figures);
        facts.extend(
            figures
                .iter()
                .map(|figure| (figure.name, figure.value.to_string())),
        );
        status::lines(&facts)
    }
}

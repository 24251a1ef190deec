//! `.h5fs/status`: what the mount is and does, one fact a line.

use std::sync::atomic::Ordering;

use crate::fs::Filesystem;
use crate::fs::live::Live;

/// Its name in the directory of views.
pub(super) const NAME: &[u8] = b"status";

impl Filesystem {
    /// The text of the status file as it is now.
    pub(super) fn status(&self, live: &Live) -> Vec<u8> {
        let origin = self.origin();
        let engine = live.engine.statistics();
        let facts = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            // Hostile names must not forge lines.
            (
                "source",
                origin
                    .path
                    .as_os_str()
                    .as_encoded_bytes()
                    .escape_ascii()
                    .to_string(),
            ),
            ("source bytes", origin.size.to_string()),
            (
                "source opened",
                live.generation.saturating_add(1).to_string(),
            ),
            (
                "uptime seconds",
                self.started.elapsed().as_secs().to_string(),
            ),
            ("inodes known", self.inodes.len().to_string()),
            ("cache bytes", engine.cache_bytes.to_string()),
            ("cache capacity", engine.cache_capacity.to_string()),
            ("cache hits", engine.hits.to_string()),
            ("cache misses", engine.misses.to_string()),
            ("cache evictions", engine.evictions.to_string()),
            ("chunks decoded", engine.chunks_decoded.to_string()),
            (
                "bytes served",
                self.served.load(Ordering::Relaxed).to_string(),
            ),
        ];
        let lines = facts
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"));
        lines.collect::<String>().into_bytes()
    }
}

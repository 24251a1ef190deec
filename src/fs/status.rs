//! `.h5fs/status`: what the mount is and does, one fact a line.

use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::fs::node::{FsNode, Target};
use crate::fs::stat::Kind;
use crate::view::View;
use crate::view::text::Text;

/// The status, as a regular file.
pub(super) struct Status;

impl FsNode for Status {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        Ok(Box::new(Text::streamed(text(target))))
    }
}

/// The text as it is now.
fn text(target: &Target<'_>) -> Vec<u8> {
    let (mount, file) = (target.mount, target.file);
    let origin = mount.origin();
    let engine = file.engine.statistics();
    // Hostile names must not forge lines.
    let source = origin.path.as_os_str().as_encoded_bytes().escape_ascii();
    let uptime = mount.started.elapsed().as_secs();
    let served = mount.served.load(Ordering::Relaxed);
    let mut facts = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("source", source.to_string()),
        ("source bytes", origin.size.to_string()),
        (
            "source opened",
            file.generation.saturating_add(1).to_string(),
        ),
        ("uptime seconds", uptime.to_string()),
        ("inodes known", mount.inodes.len().to_string()),
        ("cache bytes", engine.cache_bytes.to_string()),
        ("cache capacity", engine.cache_capacity.to_string()),
        ("cache hits", engine.hits.to_string()),
        ("cache misses", engine.misses.to_string()),
        ("cache evictions", engine.evictions.to_string()),
        ("chunks decoded", engine.chunks_decoded.to_string()),
        ("bytes served", served.to_string()),
    ];
    facts.extend(network(target));
    lines(&facts)
}

/// A line for each fact.
pub(super) fn lines(facts: &[(&str, String)]) -> Vec<u8> {
    let lines = facts
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"));
    lines.collect::<String>().into_bytes()
}

/// What the network took, of a source that is read over one. What cannot be asked is left out.
fn network(target: &Target<'_>) -> Vec<(&'static str, String)> {
    let Some(Ok(counters)) = target.mount.store().map(|store| store.counters()) else {
        return Vec::new();
    };
    vec![
        ("network requests", counters.requests.to_string()),
        ("network bytes", counters.bytes.to_string()),
        ("network retries", counters.retries.to_string()),
        ("network milliseconds waited", counters.waited.to_string()),
        ("disk cache bytes", counters.disk_bytes.to_string()),
    ]
}

//! `.h5fs/status`, `.h5fs/metrics` and `.h5fs/errors`: what the mount is and does, and cannot do.

use std::sync::atomic::Ordering;

use crate::array::Statistics;
use crate::error::Result;
use crate::fs::nodes::node::{FsNode, Target};
use crate::fs::stat::{Entry, Kind};
use crate::source::remote::message::Counters;
use crate::view::View;
use crate::wire::to_u64;

/// A text that tells how the mount is now, as a regular file.
pub(in crate::fs) struct Told(fn(&Target<'_>) -> Vec<u8>);

/// The status, one fact a line.
pub(in crate::fs) const STATUS: Told = Told(status);

/// The figures of the status in the text format of Prometheus.
pub(in crate::fs) const METRICS: Told = Told(|target| metrics_of(&figures(target)));

/// What could not be read.
pub(in crate::fs) const ERRORS: Told = Told(|target| target.mount.errors.text());

impl FsNode for Told {
    fn kind(&self) -> Kind {
        Kind::File
    }

    fn stat(&self, target: &Target<'_>) -> Result<Entry> {
        let moments = &target.mount.moments;
        let text = moments.seen(target.ino, || (self.0)(target));
        Ok(target.sized(text.length()).kept_if(false))
    }

    fn open(&self, target: &Target<'_>) -> Result<Box<dyn View>> {
        let moments = &target.mount.moments;
        Ok(Box::new(moments.opened(target.ino, || (self.0)(target))))
    }
}

/// A figure of the mount.
pub(in crate::fs) struct Figure {
    pub(in crate::fs) name: &'static str,
    /// The same to Prometheus, whose names end in `_total` where the figure only grows.
    metric: &'static str,
    pub(in crate::fs) value: u64,
}

/// A figure called `name`, to Prometheus `metric`.
pub(in crate::fs) fn figure(name: &'static str, metric: &'static str, value: u64) -> Figure {
    Figure {
        name,
        metric,
        value,
    }
}

fn figures(target: &Target<'_>) -> Vec<Figure> {
    let (mount, file) = (target.mount, target.file);
    let engine = file.engine.statistics();
    let mut figures = vec![
        figure("source bytes", "source_bytes", mount.origin().size),
        figure(
            "source opened",
            "source_opened_total",
            u64::from(file.generation).saturating_add(1),
        ),
        figure(
            "uptime seconds",
            "uptime_seconds",
            mount.started.elapsed().as_secs(),
        ),
        figure("inodes known", "inodes", to_u64(mount.inodes.len())),
    ];
    figures.extend(engine_figures(&engine));
    let served = mount.served.load(Ordering::Relaxed);
    figures.push(figure("bytes served", "bytes_served_total", served));
    figures.push(figure("errors", "errors_total", mount.errors.count()));
    figures.extend(network(target));
    figures
}

/// What the cache of decoded chunks does.
pub(in crate::fs) fn engine_figures(engine: &Statistics) -> Vec<Figure> {
    let capacity = engine.cache_capacity;
    vec![
        figure("cache bytes", "cache_bytes", engine.cache_bytes),
        figure("cache capacity", "cache_capacity_bytes", capacity),
        figure("cache hits", "cache_hits_total", engine.hits),
        figure("cache misses", "cache_misses_total", engine.misses),
        figure("cache evictions", "cache_evictions_total", engine.evictions),
        figure(
            "chunks decoded",
            "chunks_decoded_total",
            engine.chunks_decoded,
        ),
    ]
}

/// The text as it is now.
fn status(target: &Target<'_>) -> Vec<u8> {
    // Hostile names must not forge lines.
    let origin = target.mount.origin();
    let source = origin.path.as_os_str().as_encoded_bytes().escape_ascii();
    let version = env!("CARGO_PKG_VERSION");
    let mut facts = vec![
        ("version", version.to_owned()),
        ("source", source.to_string()),
        ("state", target.mount.state_text()),
    ];
    let figures = figures(target).into_iter();
    facts.extend(figures.map(|figure| (figure.name, figure.value.to_string())));
    lines(&facts)
}

/// A line for each fact.
pub(in crate::fs) fn lines(facts: &[(&str, String)]) -> Vec<u8> {
    let lines = facts
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"));
    lines.collect::<String>().into_bytes()
}

/// The figures in the text format of Prometheus.
pub(in crate::fs) fn metrics_of(figures: &[Figure]) -> Vec<u8> {
    let lines = figures.iter();
    let lines = lines.map(|Figure { metric, value, .. }| {
        let kind = if metric.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        format!("# TYPE h5fs_{metric} {kind}\nh5fs_{metric} {value}\n")
    });
    lines.collect::<String>().into_bytes()
}

/// What the network took, of a source that is read over one. What cannot be asked is left out.
fn network(target: &Target<'_>) -> Vec<Figure> {
    let counters = target.mount.store().and_then(|store| store.counters().ok());
    counters.map_or_else(Vec::new, network_figures)
}

/// What the network took.
pub(in crate::fs) fn network_figures(counters: Counters) -> Vec<Figure> {
    let waited = "network_waited_milliseconds_total";
    vec![
        figure(
            "network requests",
            "network_requests_total",
            counters.requests,
        ),
        figure("network bytes", "network_bytes_total", counters.bytes),
        figure("network retries", "network_retries_total", counters.retries),
        figure("network milliseconds waited", waited, counters.waited),
        figure("disk cache bytes", "disk_cache_bytes", counters.disk_bytes),
    ]
}

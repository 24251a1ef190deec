//! `.h5fs/status`, `.h5fs/metrics` and `.h5fs/errors`: the current state and the errors of the
//! mount.

use std::path::Path;

use h5fs_reader::array::Statistics;
use h5fs_reader::error::Result;
use h5fs_reader::source::remote::message::Counters;
use h5fs_reader::wire::{Count, to_u64};
use h5fs_view::view::View;

use crate::metrics::{self, MountMetrics};
use crate::mount_process::MountProcess;
use crate::nodes::node::{FsNode, TargetInode};
use crate::options::Options;
use crate::stat::{FileKind, LookupEntry};
use crate::state::errors::RecentErrors;
use crate::state::traffic::RequestCounters;

/// A text file about the current state of the mount. The function returns its text.
pub(crate) struct StatusFile(fn(&TargetInode<'_>) -> Vec<u8>);

/// The file `status`, with one fact per line.
pub(crate) const STATUS: StatusFile = StatusFile(status_text);

/// The file `metrics`, with the metrics of the status for Prometheus.
pub(crate) const METRICS: StatusFile =
    StatusFile(|target| metrics::prometheus_text(&[mount_metrics(target)]).into_bytes());

/// The file `errors`, with the objects that could not be read.
pub(crate) const ERRORS: StatusFile = StatusFile(|target| target.mount.errors.text());

impl FsNode for StatusFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let status_texts = &target.mount.status_texts;
        let text = status_texts.text_for_stat(target.ino, || (self.0)(target));
        Ok(target.sized_entry(text.length()).cacheable_if(false))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let status_texts = &target.mount.status_texts;
        Ok(Box::new(
            status_texts.text_for_open(target.ino, || (self.0)(target)),
        ))
    }
}

fn mount_metrics(target: &TargetInode<'_>) -> MountMetrics {
    let (mount, file) = (target.mount, target.file);
    let source = &mount.origin().path;
    let mut figures = initial_metrics(source, mount.source_status() == "serving", &mount.options);
    figures.add("source_bytes", mount.origin().size);
    let opened = u64::from(file.generation).plus_one();
    figures.add("source_opened_total", opened);
    figures.add("uptime_seconds", mount.started_at.elapsed().as_secs());
    figures.add("inodes", to_u64(mount.inodes.len()));
    add_engine_metrics(&mut figures, &file.engine.statistics());
    add_request_metrics(&mut figures, &mount.traffic);
    add_error_metrics(&mut figures, &mount.errors);
    // Metrics that are unavailable are omitted.
    let counters = mount.connection().and_then(|store| store.counters().ok());
    if let Some(counters) = counters {
        add_network_metrics(&mut figures, counters);
    }
    figures
}

/// Returns the metrics that are known when `source` is mounted. `is_up` says whether the source can
/// be read.
pub(crate) fn initial_metrics(source: &Path, is_up: bool, options: &Options) -> MountMetrics {
    let mut figures = MountMetrics {
        source: source.display().to_string(),
        mount: options
            .guard
            .as_ref()
            .map(|guard| guard.mount_point.display().to_string()),
        samples: Vec::new(),
    };
    figures.add("up", u64::from(is_up));
    let process = options.process.as_ref();
    if let Some(bytes) = process.and_then(MountProcess::resident_bytes) {
        figures.add("resident_memory_bytes", bytes);
    }
    figures
}

/// Adds the metrics of the engine, such as those of the cache of decoded chunks.
pub(crate) fn add_engine_metrics(figures: &mut MountMetrics, engine: &Statistics) {
    figures.add("cache_bytes", engine.cache_bytes);
    figures.add("cache_capacity_bytes", engine.cache_capacity);
    figures.add("cache_hits_total", engine.hits);
    figures.add("cache_misses_total", engine.misses);
    figures.add("cache_evictions_total", engine.evictions);
    figures.add("chunks_decoded_total", engine.chunks_decoded);
}

/// Adds the number of requests of each type, and the bytes read.
pub(crate) fn add_request_metrics(figures: &mut MountMetrics, traffic: &RequestCounters) {
    figures.add("bytes_served_total", traffic.bytes_read());
    for (call, count) in traffic.requests() {
        figures.add_kind("requests_total", call.name(), count);
    }
}

/// Adds the number of errors of each kind.
pub(crate) fn add_error_metrics(figures: &mut MountMetrics, errors: &RecentErrors) {
    for (kind, count) in errors.counts() {
        figures.add_kind("errors_total", kind.name(), count);
    }
}

/// Adds the metrics of requests to the server of a remote source.
pub(crate) fn add_network_metrics(figures: &mut MountMetrics, counters: Counters) {
    figures.add("network_requests_total", counters.requests);
    figures.add("network_bytes_total", counters.bytes);
    figures.add("network_retries_total", counters.retries);
    figures.add("network_waited_milliseconds_total", counters.waited);
    figures.add("disk_cache_bytes", counters.disk_bytes);
}

/// Returns the current text of `.h5fs/status`.
fn status_text(target: &TargetInode<'_>) -> Vec<u8> {
    // Special characters are escaped, so that a hostile name cannot forge lines.
    let origin = target.mount.origin();
    let source = origin.path.as_os_str().as_encoded_bytes().escape_ascii();
    let version = env!("CARGO_PKG_VERSION");
    let mut facts = vec![
        ("version", version.to_owned()),
        ("source", source.to_string()),
        ("state", target.mount.source_status()),
    ];
    facts.extend(process_facts(&target.mount.options));
    facts.extend(mount_metrics(target).status_values());
    fact_lines(&facts)
}

/// Returns the facts about the process that serves the mount.
pub(crate) fn process_facts(
    options: &Options,
) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let facts = options.process.as_ref().map(MountProcess::facts);
    facts.into_iter().flatten()
}

/// Returns a text with one line for each fact: its name and its value.
pub(crate) fn fact_lines(facts: &[(&str, String)]) -> Vec<u8> {
    let lines = facts
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"));
    lines.collect::<String>().into_bytes()
}

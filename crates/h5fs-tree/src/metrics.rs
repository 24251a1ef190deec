//! The metrics of mounts in the text format of Prometheus ("Exposition formats", text-based format,
//! version 0.0.4), and a parser for this format.

use std::fmt::Write;

use h5fs_reader::wire::Count;

/// A Prometheus metric family: one value for each mount, or one for each mount and kind (for
/// example, kind of request).
#[derive(Debug)]
pub struct MetricFamily {
    /// Name of the metric without the program's prefix. The name of a counter ends in `_total`.
    pub name: &'static str,
    /// Name of the label that distinguishes the kinds, if the family has kinds.
    pub label: Option<&'static str>,
    /// Name of the same metric in `.h5fs/status`, which shows the sum over all kinds. `None` if the
    /// status omits the metric.
    pub(crate) status_name: Option<&'static str>,
    pub(crate) help: &'static str,
}

/// Creates a family without kinds that is also in `.h5fs/status`, under the name `fact`.
const fn status_family(name: &'static str, fact: &'static str, help: &'static str) -> MetricFamily {
    MetricFamily {
        name,
        label: None,
        status_name: Some(fact),
        help,
    }
}

/// All metric families, in the order of `.h5fs/status`.
pub(crate) static FAMILIES: &[MetricFamily] = &[
    MetricFamily {
        name: "up",
        label: None,
        status_name: None,
        help: "Whether the mount answers and has its source.",
    },
    status_family("source_bytes", "source bytes", "Size of the source."),
    status_family(
        "source_opened_total",
        "source opened",
        "Number of states of the source that were opened.",
    ),
    status_family(
        "uptime_seconds",
        "uptime seconds",
        "Seconds since the start of the mount.",
    ),
    MetricFamily {
        name: "resident_memory_bytes",
        label: None,
        status_name: Some("memory bytes"),
        help: "Resident memory of the process that serves the mount.",
    },
    status_family("inodes", "inodes known", "Inode numbers in use."),
    status_family(
        "files_open",
        "files open",
        "Open data files of the directory.",
    ),
    status_family(
        "files_open_at_most",
        "files open at most",
        "Maximum number of open data files.",
    ),
    status_family(
        "open_files_bytes",
        "bytes of open files",
        "Approximate memory of the open data files.",
    ),
    status_family(
        "joined_files_read_total",
        "joined files read",
        "Data files that were read for `joined`, not counting files that were already known.",
    ),
    status_family(
        "handles_open",
        "handles open",
        "Open files and directories of the mount.",
    ),
    status_family("cache_bytes", "cache bytes", "Decoded chunks in the cache."),
    status_family(
        "cache_capacity_bytes",
        "cache capacity",
        "Size of the cache.",
    ),
    status_family(
        "cache_hits_total",
        "cache hits",
        "Chunks that were found in the cache.",
    ),
    status_family(
        "cache_misses_total",
        "cache misses",
        "Chunks that were not found in the cache.",
    ),
    status_family(
        "cache_evictions_total",
        "cache evictions",
        "Chunks that were evicted from the cache.",
    ),
    status_family(
        "chunks_decoded_total",
        "chunks decoded",
        "Chunks that were decoded.",
    ),
    status_family(
        "bytes_served_total",
        "bytes served",
        "Bytes returned to reads; reads from the kernel's page cache are not counted.",
    ),
    MetricFamily {
        name: "requests_total",
        label: Some("request"),
        status_name: None,
        help: "Requests from the kernel.",
    },
    MetricFamily {
        name: "errors_total",
        label: Some("kind"),
        status_name: Some("errors"),
        help: "Lines written to .h5fs/errors: parts that could not be read.",
    },
    status_family(
        "network_requests_total",
        "network requests",
        "Requests to the server of the source.",
    ),
    status_family(
        "network_bytes_total",
        "network bytes",
        "Bytes of the responses from the server of the source.",
    ),
    status_family(
        "network_retries_total",
        "network retries",
        "Requests to the server of the source that were sent again.",
    ),
    status_family(
        "network_waited_milliseconds_total",
        "network milliseconds waited",
        "Total time of the requests to the server of the source.",
    ),
    status_family(
        "disk_cache_bytes",
        "disk cache bytes",
        "Bytes in the cache on disk.",
    ),
];

impl MetricFamily {
    fn find(name: &str) -> Option<&'static MetricFamily> {
        FAMILIES.iter().find(|family| family.name == name)
    }

    fn metric_type(&self) -> &'static str {
        if self.name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        }
    }
}

/// A value of a metric family, for one kind if the family has kinds.
#[derive(Debug, Clone)]
pub struct MetricSample {
    /// The metric family.
    pub family: &'static MetricFamily,
    /// The kind, or an empty text if the family has no kinds.
    pub kind: String,
    /// The value of the metric.
    pub value: u64,
}

/// The values of all metrics of one mount.
#[derive(Debug, Clone)]
pub struct MountMetrics {
    /// Name of the source, for the label `source`.
    pub source: String,
    /// Mount point, for the label `mount`; `None` if it is unknown.
    pub mount: Option<String>,
    /// The values, each with its metric family and kind.
    pub samples: Vec<MetricSample>,
}

impl MountMetrics {
    /// Adds a value to the metrics, for the family `name`, which has no kinds.
    pub fn add(&mut self, name: &str, value: u64) {
        self.add_kind(name, "", value);
    }

    /// Adds a value to the metrics, for the family `name` and the kind `kind`.
    pub(crate) fn add_kind(&mut self, name: &str, kind: &str, value: u64) {
        let family = MetricFamily::find(name);
        debug_assert!(family.is_some(), "{name}");
        self.samples.extend(family.map(|family| MetricSample {
            family,
            kind: kind.to_owned(),
            value,
        }));
    }

    /// Returns the names and values of the metrics that `.h5fs/status` shows. The value of a family
    /// with kinds is the sum over all kinds.
    pub(crate) fn status_values(&self) -> impl Iterator<Item = (&'static str, String)> {
        FAMILIES.iter().filter_map(|family| {
            let of_family = |sample: &&MetricSample| sample.family.name == family.name;
            let mut values = self.samples.iter().filter(of_family);
            let first = values.next()?.value;
            let sum = values.fold(first, |sum, sample| sum.plus(sample.value));
            Some((family.status_name?, sum.to_string()))
        })
    }
}

/// Returns the metrics of these mounts in the text format of Prometheus. Each family has its help
/// and type, followed by the values for each mount.
#[must_use]
pub fn prometheus_text(mounts: &[MountMetrics]) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        let of_family = |sample: &&MetricSample| sample.family.name == family.name;
        let all = mounts.iter().flat_map(|figures| {
            let samples = figures.samples.iter().filter(of_family);
            samples.map(move |sample| (figures, sample))
        });
        for (number, (figures, sample)) in all.enumerate() {
            let MetricFamily { name, help, .. } = family;
            if number == 0 {
                let kind = family.metric_type();
                let _ = write!(
                    text,
                    "# HELP h5fs_{name} {help}\n# TYPE h5fs_{name} {kind}\n"
                );
            }
            let labels = labels(figures, sample);
            let _ = writeln!(text, "h5fs_{name}{{{labels}}} {}", sample.value);
        }
    }
    text
}

fn labels(figures: &MountMetrics, sample: &MetricSample) -> String {
    let mount = figures.mount.as_ref().map(|mount| ("mount", mount));
    let kind = sample.family.label.map(|label| (label, &sample.kind));
    let all = [Some(("source", &figures.source)), mount, kind];
    let all = all.into_iter().flatten();
    let labels: Vec<_> = all
        .map(|(name, value)| format!("{name}=\"{}\"", escape_label(value)))
        .collect();
    labels.join(",")
}

/// Escapes a backslash, a quote and a line break in the value of a label.
fn escape_label(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

/// Parses the metrics of one mount from the text format of Prometheus. Invalid lines are ignored,
/// because the text may come from a program of another user. Only kinds in lowercase letters are
/// accepted; labels other than the kind are dropped.
#[must_use]
pub fn parse_samples(text: &str) -> Vec<MetricSample> {
    text.lines().filter_map(parse_sample).collect()
}

fn parse_sample(line: &str) -> Option<MetricSample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let family = MetricFamily::find(name.strip_prefix("h5fs_")?)?;
    let kind = family
        .label
        .map_or(Some(""), |label| label_value(labels, label))?;
    Some(MetricSample {
        family,
        kind: kind.to_owned(),
        value: value.parse().ok()?,
    })
}

/// Returns the value of the label called `label`, which must be the last label.
fn label_value<'l>(labels: &'l str, label: &str) -> Option<&'l str> {
    let value = labels.strip_suffix("\"}")?;
    let (labels, value) = value.split_at(value.rfind('"')?.plus_one());
    let is_word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_word && labels.ends_with(&format!("{label}=\""))).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(source: &str, mount: Option<&str>, samples: &[(&str, &str, u64)]) -> MountMetrics {
        let mut figures = MountMetrics {
            source: source.to_owned(),
            mount: mount.map(str::to_owned),
            samples: Vec::new(),
        };
        for &(name, kind, value) in samples {
            figures.add_kind(name, kind, value);
        }
        figures
    }

    #[test]
    fn a_family_is_written_once_for_all_mounts() {
        let first = figures(
            "a\"b\\\n",
            Some("/m"),
            &[("up", "", 1), ("handles_open", "", 7)],
        );
        let second = figures("c", None, &[("errors_total", "corrupt", 2), ("up", "", 0)]);
        let expected = "\
# HELP h5fs_up Whether the mount answers and has its source.
# TYPE h5fs_up gauge
h5fs_up{source=\"a\\\"b\\\\\\n\",mount=\"/m\"} 1
h5fs_up{source=\"c\"} 0
# HELP h5fs_handles_open Open files and directories of the mount.
# TYPE h5fs_handles_open gauge
h5fs_handles_open{source=\"a\\\"b\\\\\\n\",mount=\"/m\"} 7
# HELP h5fs_errors_total Lines written to .h5fs/errors: parts that could not be read.
# TYPE h5fs_errors_total counter
h5fs_errors_total{source=\"c\",kind=\"corrupt\"} 2
";
        assert_eq!(prometheus_text(&[first, second]), expected);
    }

    #[test]
    fn only_written_samples_are_parsed() {
        let written = [("up", "", 1), ("errors_total", "io", 3), ("inodes", "", 9)];
        let figures = figures("a\"} 5", Some("kind=\"x\""), &written);
        let read = parse_samples(&prometheus_text(&[figures]));
        let read: Vec<_> = read
            .iter()
            .map(|sample| (sample.family.name, &sample.kind[..], sample.value))
            .collect();
        assert_eq!(
            read,
            [("up", "", 1), ("inodes", "", 9), ("errors_total", "io", 3)]
        );
        for line in [
            "h5fs_nothing 1",
            "up 1",
            "h5fs_up x",
            "h5fs_up",
            "h5fs_errors_total 1",
            "h5fs_errors_total{kind=\"\"} 1",
            "h5fs_errors_total{kind=\"a b\"} 1",
            "h5fs_errors_total{other=\"x\"} 1",
            "# HELP h5fs_up 1",
        ] {
            assert!(parse_samples(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn families_have_unique_names() {
        for (number, family) in FAMILIES.iter().enumerate() {
            let is_same = |other: &MetricFamily| {
                other.name == family.name
                    || family.status_name.is_some() && other.status_name == family.status_name
            };
            assert!(!FAMILIES[..number].iter().any(is_same), "{}", family.name);
            assert!(family.help.ends_with('.') && !family.help.contains(['\\', '\n']));
        }
    }
}

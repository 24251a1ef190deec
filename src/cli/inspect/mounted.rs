//! `h5fs status`, `h5fs list` and `h5fs metrics`: reports on the mounts of this machine, including
//! dead ones.
//!
//! Each mount is queried in a thread of its own and with a time limit, because its program may
//! hang.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::text::JsonObject;
use h5fs_reader::source::mounts::device::Device;
use h5fs_reader::source::mounts::mount_table::{MountEntry, MountTable};
use h5fs_reader::wire::to_u64;
use h5fs_tree::MountProcess;
use h5fs_tree::metrics::{self, MountMetrics};
use nix::errno::Errno;

use crate::cli::args::MountCommand;
use crate::cli::inspect::command_source::{self, CommandResult};
use crate::cli::text::printable::printable_bytes;
use crate::limits;

/// Time limit for the answer of a mount.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Name of the file in `.h5fs` that describes the mount and its activity.
const STATUS: &str = "status";

/// Name of the file in `.h5fs` with the mount's metrics.
const METRICS: &str = "metrics";

/// Filesystem type of this program's mounts in the mount table.
const FILESYSTEM_TYPE: &str = "fuse.h5fs";

/// The state of a mount, according to its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MountState {
    /// The mount answers with the text of the requested file. The text is empty if the mount has no
    /// views.
    Serving(String),
    /// The source of the mount has disappeared, and the mount has no text about that.
    Stale,
    /// The mount answers with this error.
    Failing(String),
    /// The program that served the mount has ended.
    Dead,
    /// The mount has not answered in time.
    Hanging,
    /// The mount cannot be queried by this user, because only the user who mounted may access it.
    Inaccessible,
}

/// A query to a mount, which runs in its own thread.
struct PendingQuery {
    answer: Receiver<MountState>,
    until: Instant,
}

impl PendingQuery {
    /// Starts to read the file `name` in `.h5fs` of the mount at `point`.
    fn send(point: &Path, name: &'static str) -> Self {
        let (tell, answer) = channel();
        let path = point.to_owned();
        thread::spawn(move || {
            let _ = tell.send(MountState::query(&path, name));
        });
        let until = Instant::now() + QUERY_TIMEOUT;
        PendingQuery { answer, until }
    }

    fn state(self) -> MountState {
        let left = self.until.saturating_duration_since(Instant::now());
        self.answer
            .recv_timeout(left)
            .unwrap_or(MountState::Hanging)
    }
}

impl MountState {
    fn query(point: &Path, name: &str) -> Self {
        match point.metadata().and_then(|_| read_text(point, name)) {
            Ok(text) => MountState::Serving(text),
            // Without views, the mount has no such file. Listing the root needs the source.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let listed = fs::read_dir(point).and_then(|mut entries| entries.next().transpose());
                match listed {
                    Ok(_) => MountState::Serving(String::new()),
                    Err(error) => MountState::from_error(&error),
                }
            }
            Err(error) => MountState::from_error(&error),
        }
    }

    fn from_error(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOTCONN) => MountState::Dead,
            Some(Errno::ESTALE) => MountState::Stale,
            Some(Errno::EACCES | Errno::EPERM) => MountState::Inaccessible,
            Some(errno) => MountState::Failing(format!("failing: {}", errno.desc())),
            None => MountState::Failing(format!("failing: {error}")),
        }
    }

    /// Returns the name of the state for the user. If the mount's source has disappeared, the name
    /// contains the reason.
    fn name(&self) -> &str {
        match self {
            MountState::Serving(_) => self.fact("state").unwrap_or("serving"),
            MountState::Stale => "stale",
            MountState::Failing(name) => name,
            MountState::Dead => "dead",
            MountState::Hanging => "hanging",
            MountState::Inaccessible => "closed",
        }
    }

    /// Returns whether the mount answers and has not lost its source. A mount that this user may
    /// not access counts as healthy.
    fn is_healthy(&self) -> bool {
        match self {
            MountState::Serving(_) => !self.name().starts_with("stale"),
            MountState::Inaccessible => true,
            _ => false,
        }
    }

    /// Iterates over the lines of the status text: names and values. A mount without `.h5fs` has no
    /// status text.
    fn facts(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = match self {
            MountState::Serving(text) => text,
            _ => "",
        };
        text.lines().filter_map(|line| line.split_once(": "))
    }

    fn fact(&self, name: &str) -> Option<&str> {
        let mut facts = self.facts().filter(|(known, _)| *known == name);
        facts.next().map(|(_, value)| value)
    }
}

/// Reads the file `name` in `.h5fs` of the mount at `point`. The program of any user may have
/// written the text, so its size is limited.
fn read_text(point: &Path, name: &str) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(point.join(".h5fs").join(name))?;
    file.take(to_u64(limits::REPORT_BYTES))
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Prints the status of the mount at `point`. Returns whether the mount answers and has not lost
/// its source.
pub(in crate::cli) fn status(point: &Path, json: bool) -> CommandResult<bool> {
    let mount = mount_at(point, own_mounts()?)?;
    let state = PendingQuery::send(&mount.point, STATUS).state();
    let facts = facts(&mount, &state);
    let mut output = command_source::stdout_file()?;
    let text = if json {
        facts_json(&facts) + "\n"
    } else {
        facts.iter().map(MountFact::line).collect()
    };
    output.write_all(text.as_bytes())?;
    Ok(state.is_healthy())
}

/// Prints a line for each mount of this machine. Returns whether all of them answer and have not
/// lost their sources.
pub(in crate::cli) fn list(json: bool) -> CommandResult<bool> {
    let asked = own_mounts()?.into_iter().map(|mount| {
        let asked = PendingQuery::send(&mount.point, STATUS);
        (mount, asked)
    });
    // Starts all queries before waiting for the first answer.
    let asked: Vec<_> = asked.collect();
    let rows = asked
        .into_iter()
        .map(|(mount, asked)| (mount, asked.state()));
    let rows: Vec<_> = rows.collect();
    let all_are_well = rows.iter().all(|(_, state)| state.is_healthy());
    let text = if json {
        let objects = rows
            .iter()
            .map(|(mount, state)| facts_json(&facts(mount, state)));
        let objects: Vec<_> = objects.collect();
        format!("[{}]\n", objects.join(",\n "))
    } else {
        format_table(&rows)
    };
    command_source::stdout_file()?.write_all(text.as_bytes())?;
    Ok(all_are_well)
}

/// Prints the metrics of the mounts at these points as one Prometheus text. Without points, prints
/// the metrics of all mounts of this machine.
pub(in crate::cli) fn metrics(points: &[PathBuf]) -> CommandResult<()> {
    let all = own_mounts()?;
    let chosen = if points.is_empty() {
        topmost(all)
    } else {
        let chosen = points.iter().map(|point| mount_at(point, all.clone()));
        topmost(chosen.collect::<Result<_>>()?)
    };
    let asked = chosen.into_iter().map(|mount| {
        let asked = PendingQuery::send(&mount.point, METRICS);
        (mount, asked)
    });
    let asked: Vec<_> = asked.collect();
    let figures = asked
        .into_iter()
        .map(|(mount, asked)| mount_metrics(&mount, asked.state()));
    let figures: Vec<_> = figures.collect();
    command_source::stdout_file()?.write_all(metrics::prometheus_text(&figures).as_bytes())?;
    Ok(())
}

/// Handles a request to remount. The existing mount stays unchanged, because it is read-only in any
/// case.
///
/// # Errors
/// `Usage` if the request asks for write access, or if no mount exists.
pub(in crate::cli) fn remount(mount: &MountCommand) -> Result<()> {
    let point = &mount.mountpoint;
    mount_at(point, own_mounts()?)?;
    if mount.settings.asks_to_write {
        let text = format!("{}: -o remount,rw: the mount is read-only", point.display());
        return Err(Error::Usage(text));
    }
    Ok(())
}

/// Removes mounts that another mount at the same point covers, because only the topmost mount can
/// be queried.
fn topmost(mut mounts: Vec<MountEntry>) -> Vec<MountEntry> {
    let mut seen = HashSet::new();
    mounts.reverse();
    mounts.retain(|mount| seen.insert(mount.point.clone()));
    mounts.reverse();
    mounts
}

/// Returns the metrics of a mount. If the mount does not answer, the metrics only say that it is
/// not up.
fn mount_metrics(mount: &MountEntry, state: MountState) -> MountMetrics {
    let mut figures = MountMetrics {
        source: mount.source.to_string_lossy().into_owned(),
        mount: Some(mount.point.display().to_string()),
        samples: Vec::new(),
    };
    match state {
        MountState::Serving(text) => figures.samples = metrics::parse_samples(&text),
        // Only the mount's own user can find out whether it is up.
        MountState::Inaccessible => return figures,
        _ => figures.add("up", 0),
    }
    if figures.samples.is_empty() {
        // The mount answers, but without views.
        figures.add("up", 1);
    }
    figures
}

/// Returns the last mount in the list whose mount point is `point`.
fn mount_at(point: &Path, mounts: Vec<MountEntry>) -> Result<MountEntry> {
    // A dead mount point cannot be canonicalized, but the user may still name it.
    let real = point.canonicalize().or_else(|_| std::path::absolute(point));
    let real = real.map_err(|error| Error::from_io(&error, point.display().to_string()))?;
    let is_here = |mount: &MountEntry| mount.point == real;
    let none = || Error::Usage(format!("{}: not a mount of h5fs", point.display()));
    mounts.into_iter().rfind(is_here).ok_or_else(none)
}

fn own_mounts() -> Result<Vec<MountEntry>> {
    let entries = MountTable::open().and_then(|table| table.entries());
    let entries = entries.map_err(|error| Error::from_io(&error, MountTable::PATH))?;
    let own = entries
        .into_iter()
        .filter(|mount| mount.kind == FILESYSTEM_TYPE);
    Ok(own.collect())
}

/// The name and the value of one line of a mount's status.
struct MountFact {
    name: String,
    value: MountFactValue,
}

enum MountFactValue {
    Text(Vec<u8>),
    Number(u64),
}

impl MountFact {
    fn new(name: &str, text: &str) -> Self {
        let value = match text.parse() {
            Ok(number) => MountFactValue::Number(number),
            Err(_) => MountFactValue::Text(text.into()),
        };
        let name = name.to_owned();
        MountFact { name, value }
    }

    fn text(name: &str, text: &[u8]) -> Self {
        MountFact {
            name: name.to_owned(),
            value: MountFactValue::Text(text.to_owned()),
        }
    }

    fn line(&self) -> String {
        match &self.value {
            MountFactValue::Text(text) => format!("{}: {}\n", self.name, printable_bytes(text)),
            MountFactValue::Number(number) => format!("{}: {number}\n", self.name),
        }
    }
}

fn facts(mount: &MountEntry, state: &MountState) -> Vec<MountFact> {
    let mut facts = vec![
        MountFact::text("mount point", mount.point.as_os_str().as_bytes()),
        MountFact::text("source", mount.source.as_bytes()),
        MountFact::text("state", state.name().as_bytes()),
    ];
    if let Some(worker) = WorkerProcess::find_for_mount(mount, state) {
        facts.push(MountFact::new("pid", &worker.pid));
        let memory = worker.memory_bytes.map(|bytes| bytes.to_string());
        facts.extend(memory.map(|bytes| MountFact::new("memory bytes", &bytes)));
    }
    let shown = ["source", "state", "pid", "memory bytes"];
    let rest = state.facts().filter(|(name, _)| !shown.contains(name));
    facts.extend(rest.map(|(name, value)| MountFact::new(name, value)));
    facts
}

fn facts_json(facts: &[MountFact]) -> String {
    let mut object = JsonObject::default();
    for fact in facts {
        let name = fact.name.replace(' ', "_");
        match &fact.value {
            MountFactValue::Text(text) => object.add_text(&name, text),
            MountFactValue::Number(number) => object.add_json(&name, number),
        }
    }
    object.finish()
}

/// Formats the table of `h5fs list`: mount points, sources, states, process IDs, uptimes, memory
/// and errors.
fn format_table(rows: &[(MountEntry, MountState)]) -> String {
    const HEADINGS: [&str; 7] = [
        "MOUNT POINT",
        "SOURCE",
        "STATE",
        "PID",
        "SECONDS",
        "MEMORY",
        "ERRORS",
    ];
    let fact = |state: &MountState, name: &str| state.fact(name).unwrap_or("-").to_owned();
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(|(mount, state)| {
        let worker = WorkerProcess::find_for_mount(mount, state);
        let memory = worker.as_ref().and_then(|worker| worker.memory_bytes);
        let memory = memory.map(|bytes| format!("{} MiB", bytes >> 20));
        let unknown = || "-".to_owned();
        [
            printable_bytes(mount.point.as_os_str().as_bytes()),
            printable_bytes(mount.source.as_bytes()),
            state
                .name()
                .split(':')
                .next()
                .unwrap_or_default()
                .to_owned(),
            worker.map_or_else(unknown, |worker| worker.pid),
            fact(state, "uptime seconds"),
            memory.unwrap_or_else(unknown),
            fact(state, "errors"),
        ]
    }));
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let text = lines.iter().map(|line| {
        let cells = line.iter().zip(widths);
        let padded: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    });
    text.collect()
}

/// The process that serves a mount.
struct WorkerProcess {
    pid: String,
    /// The resident memory of the process, if it is known.
    memory_bytes: Option<u64>,
}

impl WorkerProcess {
    /// Returns the process that serves a mount: the process with the mount's connection if `/proc`
    /// shows it, otherwise the one that the mount itself states. A mount in another namespace
    /// states the process ID in that namespace. Returns `None` if neither is known.
    fn find_for_mount(mount: &MountEntry, state: &MountState) -> Option<Self> {
        find_worker(mount.device).or_else(|| {
            Some(WorkerProcess {
                pid: state.fact("pid")?.to_owned(),
                memory_bytes: state
                    .fact("memory bytes")
                    .and_then(|text| text.parse().ok()),
            })
        })
    }
}

/// Finds the process that serves the filesystem with this device number. Returns `None` if the
/// process cannot be found, for example because it belongs to another user.
fn find_worker(device: Device) -> Option<WorkerProcess> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let process = processes.map(|process| process.path()).find(|process| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        line.starts_with(b"h5fs: worker\0") && is_serving(process, device)
    })?;
    let status = fs::read_to_string(process.join("status")).ok();
    Some(WorkerProcess {
        pid: process.file_name()?.to_str()?.to_owned(),
        memory_bytes: status.and_then(|status| MountProcess::parse_resident_bytes(&status)),
    })
}

/// Returns whether the process has the FUSE connection of the filesystem open. Kernels before 6.17
/// do not show the connection in `/proc`; the result is then false.
fn is_serving(process: &Path, device: Device) -> bool {
    let Ok(open) = fs::read_dir(process.join("fdinfo")) else {
        return false;
    };
    open.flatten().any(|open| {
        let told = fs::read_to_string(open.path()).unwrap_or_default();
        let number = told
            .lines()
            .find_map(|line| line.strip_prefix("fuse_connection:"));
        number.is_some_and(|number| format!("0:{}", number.trim()) == device.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_formatted_as_lines_and_json() {
        let facts = [
            MountFact::text("source", b"/a \"b\"\n"),
            MountFact::new("errors", "12"),
            MountFact::new("version", "0.1.0"),
        ];
        let lines: String = facts.iter().map(MountFact::line).collect();
        assert_eq!(lines, "source: /a \"b\"\\n\nerrors: 12\nversion: 0.1.0\n");
        let json = r#"{"source": "/a \"b\"\n", "errors": 12, "version": "0.1.0"}"#;
        assert_eq!(facts_json(&facts), json);
    }

    #[test]
    fn an_empty_table_has_a_heading() {
        assert_eq!(
            format_table(&[]),
            "MOUNT POINT  SOURCE  STATE  PID  SECONDS  MEMORY  ERRORS\n"
        );
    }
}

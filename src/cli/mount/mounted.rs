//! `h5fs status` and `h5fs list`: what the mounts of this machine do, and which of them are dead.
//!
//! A mount is asked in a thread of its own, for at most so long: its program may hang.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;

use crate::cli::inspect::reading::{self, Outcome};
use crate::cli::words::printable::printable_bytes;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::text::Object;
use crate::source::mounts::device::Device;
use crate::source::mounts::mount_table::{MountEntry, MountTable};
use crate::wire::to_u64;

/// How long a mount may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The kind of our mounts in the table of mounts.
const KIND: &str = "fuse.h5fs";

/// Whether a mount answers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It does, and these are the lines of its status; none of a directory of files.
    Serving(Vec<(String, String)>),
    /// The program that served it is gone.
    Dead,
    /// It has not answered.
    Hanging,
    /// It cannot be asked: its user lets nobody else in.
    Closed,
}

impl State {
    fn of(point: &Path) -> Self {
        let (tell, answer) = channel();
        let path = point.to_owned();
        thread::spawn(move || {
            let _ = tell.send(State::asked(&path));
        });
        answer.recv_timeout(PATIENCE).unwrap_or(State::Hanging)
    }

    fn asked(point: &Path) -> Self {
        match point.metadata().and_then(|_| told(point)) {
            Ok(text) => {
                let fact = |line: &str| {
                    let (name, value) = line.split_once(": ")?;
                    Some((name.to_owned(), value.to_owned()))
                };
                State::Serving(text.lines().filter_map(fact).collect())
            }
            Err(error) if error.raw_os_error() == Some(Errno::ENOTCONN as i32) => State::Dead,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => State::Closed,
            Err(_) => State::Serving(Vec::new()),
        }
    }

    /// What it is called: of a mount whose source is gone, with the reason.
    fn name(&self) -> &str {
        match self {
            State::Serving(_) => self.fact("state").unwrap_or("serving"),
            State::Dead => "dead",
            State::Hanging => "hanging",
            State::Closed => "closed",
        }
    }

    /// Whether the mount answers, and has a source.
    fn is_well(&self) -> bool {
        match self {
            State::Serving(_) => !self.name().starts_with("stale"),
            State::Closed => true,
            State::Dead | State::Hanging => false,
        }
    }

    fn fact(&self, name: &str) -> Option<&str> {
        match self {
            State::Serving(facts) => {
                let mut facts = facts.iter().filter(|(known, _)| known == name);
                facts.next().map(|(_, value)| &value[..])
            }
            _ => None,
        }
    }
}

/// The text of the status, which any user's program may have made.
fn told(point: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(point.join(".h5fs/status"))?;
    file.take(to_u64(limits::REPORT_BYTES))
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Writes what the mount at `point` is and does; whether it answers, and has a source.
pub(in crate::cli) fn status(point: &Path, json: bool) -> Outcome<bool> {
    let failed = |error| Error::io(&error, point.display().to_string());
    // A dead mount point has no canonical path, but may be named by one.
    let real = point.canonicalize().or_else(|_| std::path::absolute(point));
    let real = real.map_err(failed)?;
    let is_here = |mount: &MountEntry| mount.point == real;
    let Some(mount) = mounts()?.into_iter().rfind(is_here) else {
        let text = format!("{}: no mount of h5fs", point.display());
        return Err(Error::Usage(text).into());
    };
    let state = State::of(&mount.point);
    let facts = facts(&mount, &state);
    let mut output = reading::output()?;
    let text = if json {
        object(&facts) + "\n"
    } else {
        facts.iter().map(Fact::line).collect()
    };
    output.write_all(text.as_bytes())?;
    Ok(state.is_well())
}

/// Writes a line for each mount of this machine; whether all answer, and have a source.
pub(in crate::cli) fn list(json: bool) -> Outcome<bool> {
    let mut rows = Vec::new();
    let mut all_are_well = true;
    for mount in mounts()? {
        let state = State::of(&mount.point);
        all_are_well &= state.is_well();
        rows.push((mount, state));
    }
    let text = if json {
        let objects = rows
            .iter()
            .map(|(mount, state)| object(&facts(mount, state)));
        let objects: Vec<_> = objects.collect();
        format!("[{}]\n", objects.join(",\n "))
    } else {
        table(&rows)
    };
    reading::output()?.write_all(text.as_bytes())?;
    Ok(all_are_well)
}

fn mounts() -> Result<Vec<MountEntry>> {
    let entries = MountTable::open().and_then(|table| table.entries());
    let entries = entries.map_err(|error| Error::io(&error, MountTable::PATH))?;
    let own = entries.into_iter().filter(|mount| mount.kind == KIND);
    Ok(own.collect())
}

/// Something that is known of a mount.
struct Fact {
    name: String,
    value: Value,
}

enum Value {
    Text(Vec<u8>),
    Number(u64),
}

impl Fact {
    fn new(name: &str, text: &str) -> Self {
        let value = match text.parse() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::Text(text.into()),
        };
        let name = name.to_owned();
        Fact { name, value }
    }

    fn text(name: &str, text: &[u8]) -> Self {
        Fact {
            name: name.to_owned(),
            value: Value::Text(text.to_owned()),
        }
    }

    fn line(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("{}: {}\n", self.name, printable_bytes(text)),
            Value::Number(number) => format!("{}: {number}\n", self.name),
        }
    }
}

fn facts(mount: &MountEntry, state: &State) -> Vec<Fact> {
    let mut facts = vec![
        Fact::text("mount point", mount.point.as_os_str().as_bytes()),
        Fact::text("source", mount.source.as_bytes()),
        Fact::text("state", state.name().as_bytes()),
    ];
    if let Some(worker) = worker(mount.device) {
        facts.push(Fact::new("pid", &worker.pid));
        facts.extend(
            worker
                .memory()
                .map(|bytes| Fact::new("memory bytes", &bytes.to_string())),
        );
    }
    if let State::Serving(told) = state {
        let rest = told
            .iter()
            .filter(|(name, _)| name != "source" && name != "state");
        facts.extend(rest.map(|(name, value)| Fact::new(name, value)));
    }
    facts
}

fn object(facts: &[Fact]) -> String {
    let mut object = Object::default();
    for fact in facts {
        let name = fact.name.replace(' ', "_");
        match &fact.value {
            Value::Text(text) => object.text(&name, text),
            Value::Number(number) => object.json(&name, number),
        }
    }
    object.finish()
}

/// Mount point, source, state, process, uptime, memory, errors.
fn table(rows: &[(MountEntry, State)]) -> String {
    const HEADINGS: [&str; 7] = [
        "MOUNT POINT",
        "SOURCE",
        "STATE",
        "PID",
        "SECONDS",
        "MEMORY",
        "ERRORS",
    ];
    let fact = |state: &State, name: &str| state.fact(name).unwrap_or("-").to_owned();
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(|(mount, state)| {
        let worker = worker(mount.device);
        let memory = worker.as_ref().and_then(Worker::memory);
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
struct Worker {
    /// Its directory in /proc.
    process: PathBuf,
    pid: String,
}

/// The process that serves a filesystem; `None` where it cannot be found, as that of another user.
fn worker(device: Device) -> Option<Worker> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let process = processes.map(|process| process.path()).find(|process| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        line.starts_with(b"h5fs: worker\0") && serves(process, device)
    })?;
    let pid = process.file_name()?.to_str()?.to_owned();
    Some(Worker { process, pid })
}

impl Worker {
    /// Bytes of memory that it takes.
    fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(self.process.join("status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        kibibytes.checked_mul(1024)
    }
}

/// Whether a process has the connection to the filesystem open; kernels before 6.17 do not tell.
fn serves(process: &Path, device: Device) -> bool {
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
    fn facts_as_lines_and_as_json() {
        let facts = [
            Fact::text("source", b"/a \"b\"\n"),
            Fact::new("errors", "12"),
            Fact::new("version", "0.1.0"),
        ];
        let lines: String = facts.iter().map(Fact::line).collect();
        assert_eq!(lines, "source: /a \"b\"\\n\nerrors: 12\nversion: 0.1.0\n");
        let json = r#"{"source": "/a \"b\"\n", "errors": 12, "version": "0.1.0"}"#;
        assert_eq!(object(&facts), json);
    }

    #[test]
    fn no_mount_is_a_line_of_headings() {
        assert_eq!(
            table(&[]),
            "MOUNT POINT  SOURCE  STATE  PID  SECONDS  MEMORY  ERRORS\n"
        );
    }
}

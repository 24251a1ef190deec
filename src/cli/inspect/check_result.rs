//! The results of a check: faults, sources that cannot be opened, and sums. The output formats are
//! text, JSON, and the records of a process that checks one of several files.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use h5fs_reader::model::text::JsonObject;

use crate::cli::text::printable::printable_bytes;
use crate::cli::text::progress::CompletedWork;

/// The overall result for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum Verdict {
    /// Everything exists and can be read.
    Sound,
    /// A part cannot be read, or is missing.
    Faulty,
    /// A source cannot be opened, or cannot be read to its end.
    Unread,
}

/// A part that cannot be read or is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Fault {
    pub(in crate::cli) kind: FaultKind,
    /// Path of the object, as a mount shows it.
    pub(in crate::cli) path: Vec<u8>,
    /// The part of the object and the reason, without control characters.
    pub(in crate::cli) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum FaultKind {
    Unreadable,
    Missing,
}

impl FaultKind {
    const ALL: [FaultKind; 2] = [FaultKind::Unreadable, FaultKind::Missing];

    fn name(self) -> &'static str {
        match self {
            FaultKind::Unreadable => "unreadable",
            FaultKind::Missing => "missing",
        }
    }
}

impl Fault {
    /// Formats the fault as a line of text.
    pub(in crate::cli) fn line(&self) -> String {
        format!("{}: {}", printable_bytes(&self.path), self.reason)
    }

    /// Formats the fault as a line of JSON.
    pub(in crate::cli) fn object(&self, source: &[u8]) -> String {
        let mut object = JsonObject::default();
        object.text("source", source);
        object.text("path", &self.path);
        object.text("kind", self.kind.name());
        object.text("reason", &self.reason);
        object.finish()
    }
}

/// Formats a line of JSON about a source that cannot be opened.
pub(in crate::cli) fn unopened(source: &[u8], reason: &str) -> String {
    let mut object = JsonObject::default();
    object.text("source", source);
    object.text("kind", "unopened");
    object.text("reason", reason);
    object.finish()
}

/// The amount of checked data, and the number of faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct CheckResult {
    pub(in crate::cli) done: CompletedWork,
    /// Number of parts that cannot be read.
    pub(in crate::cli) unreadable: u64,
    /// Number of other files, or objects in other files, that are missing.
    pub(in crate::cli) missing: u64,
}

impl CheckResult {
    pub(in crate::cli) fn add(&mut self, done: CompletedWork) {
        self.done.objects += done.objects;
        self.done.bytes += done.bytes;
    }

    pub(in crate::cli) fn count(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::Unreadable => self.unreadable += 1,
            FaultKind::Missing => self.missing += 1,
        }
    }

    pub(in crate::cli) fn verdict(self) -> Verdict {
        match (self.unreadable, self.missing) {
            (0, 0) => Verdict::Sound,
            _ => Verdict::Faulty,
        }
    }

    /// Formats the last line of text. `data` says whether the bytes were read.
    pub(in crate::cli) fn line(self, data: bool) -> String {
        let CompletedWork { objects, bytes } = self.done;
        let s = if objects == 1 { "" } else { "s" };
        let read = if data { "read" } else { "not read" };
        let unreadable = self.unreadable;
        let missing = counted(self.missing, "missing");
        format!("{objects} object{s}, {bytes} bytes {read}, {unreadable} unreadable{missing}")
    }
}

/// Formats a count, or returns an empty text for zero.
fn counted(count: u64, what: &str) -> String {
    match count {
        0 => String::new(),
        _ => format!(", {count} {what}"),
    }
}

/// The results of several files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct CheckSummary {
    pub(in crate::cli) files: u64,
    /// Number of files that could not be opened.
    pub(in crate::cli) unopened: u64,
    pub(in crate::cli) checked: CheckResult,
}

impl CheckSummary {
    /// Returns the results of one file.
    pub(in crate::cli) fn of_file(checked: CheckResult, is_opened: bool) -> Self {
        CheckSummary {
            files: 1,
            unopened: u64::from(!is_opened),
            checked,
        }
    }

    pub(in crate::cli) fn verdict(self) -> Verdict {
        match self.unopened {
            0 => self.checked.verdict(),
            _ => Verdict::Unread,
        }
    }

    /// Formats the last line of text. `data` says whether the bytes were read.
    pub(in crate::cli) fn line(self, data: bool) -> String {
        let files = self.files;
        let s = if files == 1 { "" } else { "s" };
        let unopened = counted(self.unopened, "not opened");
        format!("{files} file{s}, {}{unopened}", self.checked.line(data))
    }

    /// Formats the last line as JSON.
    pub(in crate::cli) fn object(self, data: bool) -> String {
        let CheckResult {
            done,
            unreadable,
            missing,
        } = self.checked;
        let mut object = JsonObject::default();
        object.text("kind", "sum");
        object.json("files", self.files);
        object.json("unopened", self.unopened);
        object.json("objects", done.objects);
        object.json("bytes", done.bytes);
        object.json("read", data);
        object.json("unreadable", unreadable);
        object.json("missing", missing);
        object.finish()
    }
}

/// A message from a process that checks one file to the process that checks several files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum CheckMessage {
    Fault(Fault),
    /// The last record: why the file could not be opened or read to its end.
    Unopened(String),
    /// The last record: the amount of checked data.
    Sum(CompletedWork),
}

impl CheckMessage {
    /// Formats the record as a line.
    pub(in crate::cli) fn line(&self) -> String {
        match self {
            CheckMessage::Fault(Fault { kind, path, reason }) => {
                let path = BASE64_STANDARD.encode(path);
                format!("{} {path} {reason}", kind.name())
            }
            CheckMessage::Unopened(reason) => format!("unopened {reason}"),
            CheckMessage::Sum(CompletedWork { objects, bytes }) => format!("sum {objects} {bytes}"),
        }
    }

    /// Parses a line as a record. Any other line becomes a fault of the file, because its process
    /// behaves incorrectly.
    pub(in crate::cli) fn from_line(line: &str) -> Self {
        Self::parse(line).unwrap_or_else(|| {
            CheckMessage::Fault(Fault {
                kind: FaultKind::Unreadable,
                path: b"/".to_vec(),
                reason: line.to_owned(),
            })
        })
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        if let Some(kind) = FaultKind::ALL.into_iter().find(|kind| kind.name() == word) {
            let (path, reason) = rest.split_once(' ')?;
            return Some(CheckMessage::Fault(Fault {
                kind,
                path: BASE64_STANDARD.decode(path).ok()?,
                reason: reason.to_owned(),
            }));
        }
        match word {
            "unopened" => Some(CheckMessage::Unopened(rest.to_owned())),
            "sum" => {
                let (objects, bytes) = rest.split_once(' ')?;
                let (objects, bytes) = (objects.parse().ok()?, bytes.parse().ok()?);
                Some(CheckMessage::Sum(CompletedWork { objects, bytes }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(objects: u64, bytes: u64, unreadable: u64, missing: u64) -> CheckResult {
        CheckResult {
            done: CompletedWork { objects, bytes },
            unreadable,
            missing,
        }
    }

    #[test]
    fn a_sum_reads_well() {
        for (checked, data, line) in [
            (
                checked(1, 0, 0, 0),
                true,
                "1 object, 0 bytes read, 0 unreadable",
            ),
            (
                checked(2, 80, 1, 0),
                false,
                "2 objects, 80 bytes not read, 1 unreadable",
            ),
            (
                checked(2, 80, 1, 3),
                true,
                "2 objects, 80 bytes read, 1 unreadable, 3 missing",
            ),
        ] {
            assert_eq!(checked.line(data), line);
        }
        let mut both = CheckSummary {
            files: 3,
            unopened: 1,
            checked: checked(5, 80, 1, 2),
        };
        both.checked.add(CompletedWork {
            objects: 5,
            bytes: 80,
        });
        both.checked.count(FaultKind::Unreadable);
        let wanted = "3 files, 10 objects, 160 bytes read, 2 unreadable, 2 missing, 1 not opened";
        assert_eq!(both.line(true), wanted);
    }

    #[test]
    fn the_worst_verdict_counts() {
        let sum = |unopened, unreadable, missing| CheckSummary {
            files: 2,
            unopened,
            checked: checked(1, 0, unreadable, missing),
        };
        assert_eq!(sum(0, 0, 0).verdict(), Verdict::Sound);
        assert_eq!(sum(0, 1, 0).verdict(), Verdict::Faulty);
        assert_eq!(sum(0, 0, 1).verdict(), Verdict::Faulty);
        assert_eq!(sum(1, 1, 1).verdict(), Verdict::Unread);
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let fault = |kind, path: &[u8], reason: &str| {
            CheckMessage::Fault(Fault {
                kind,
                path: path.to_vec(),
                reason: reason.to_owned(),
            })
        };
        for record in [
            fault(FaultKind::Unreadable, b"/a b\n\xff", "attribute x: sum 1 2"),
            fault(FaultKind::Missing, b"", ""),
            CheckMessage::Unopened("Permission denied".to_owned()),
            CheckMessage::Sum(checked(1, 2, 3, 4).done),
        ] {
            assert_eq!(CheckMessage::from_line(&record.line()), record);
        }
        for text in [
            "h5fs: a.h5: damaged",
            "sum 1",
            "sum 1 x",
            "missing *** x",
            "unreadable",
            "",
        ] {
            assert_eq!(
                CheckMessage::from_line(text),
                fault(FaultKind::Unreadable, b"/", text)
            );
        }
    }
}

//! The results of a check: faults, sources that cannot be opened, and totals. They are written as
//! text, as JSON, or as the messages of a process that checks one of several files.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use h5fs_reader::model::text::JsonObject;

use crate::cli::text::printable::printable_bytes;
use crate::cli::text::progress::CompletedWork;

/// The overall result of checking one or more sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum CheckVerdict {
    /// Every object exists and can be read.
    Sound,
    /// At least one fault was found: an object or a part of it cannot be read or is missing.
    Faulty,
    /// A source cannot be opened, or cannot be read to its end.
    Unread,
}

/// An object that cannot be read, or something that the object needs and that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct CheckFault {
    pub(in crate::cli) kind: FaultKind,
    /// Path of the object, as a mount shows it.
    pub(in crate::cli) path: Vec<u8>,
    /// What cannot be read or is missing, and why. The text contains no control characters.
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

impl CheckFault {
    /// Formats the fault as a line of text, without the name of the source.
    pub(in crate::cli) fn line(&self) -> String {
        format!("{}: {}", printable_bytes(&self.path), self.reason)
    }

    /// Formats the fault as a line of JSON, with the name of the source.
    pub(in crate::cli) fn json_line(&self, source: &[u8]) -> String {
        let mut object = JsonObject::default();
        object.add_text("source", source);
        object.add_text("path", &self.path);
        object.add_text("kind", self.kind.name());
        object.add_text("reason", &self.reason);
        object.finish()
    }
}

/// Formats a line of JSON about a source that cannot be opened.
pub(in crate::cli) fn unopened_json_line(source: &[u8], reason: &str) -> String {
    let mut object = JsonObject::default();
    object.add_text("source", source);
    object.add_text("kind", "unopened");
    object.add_text("reason", reason);
    object.finish()
}

/// The number of checked objects and bytes, and the number of faults in one source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct CheckResult {
    pub(in crate::cli) completed: CompletedWork,
    /// Number of faults whose object cannot be read.
    pub(in crate::cli) unreadable: u64,
    /// Number of missing files, and of missing objects in other files.
    pub(in crate::cli) missing: u64,
}

impl CheckResult {
    pub(in crate::cli) fn add(&mut self, done: CompletedWork) {
        self.completed.objects += done.objects;
        self.completed.bytes += done.bytes;
    }

    pub(in crate::cli) fn count(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::Unreadable => self.unreadable += 1,
            FaultKind::Missing => self.missing += 1,
        }
    }

    pub(in crate::cli) fn verdict(self) -> CheckVerdict {
        match (self.unreadable, self.missing) {
            (0, 0) => CheckVerdict::Sound,
            _ => CheckVerdict::Faulty,
        }
    }

    /// Formats the totals as the last line of text. `data` says whether every byte was read.
    pub(in crate::cli) fn line(self, data: bool) -> String {
        let CompletedWork { objects, bytes } = self.completed;
        let s = if objects == 1 { "" } else { "s" };
        let read = if data { "read" } else { "not read" };
        let unreadable = self.unreadable;
        let missing = format_count(self.missing, "missing");
        format!("{objects} object{s}, {bytes} bytes {read}, {unreadable} unreadable{missing}")
    }
}

/// Formats a count with its noun `what`. Returns an empty text for zero.
fn format_count(count: u64, what: &str) -> String {
    match count {
        0 => String::new(),
        _ => format!(", {count} {what}"),
    }
}

/// The totals of checking several files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct CheckSummary {
    pub(in crate::cli) files: u64,
    /// Number of files that could not be opened.
    pub(in crate::cli) unopened: u64,
    pub(in crate::cli) checked: CheckResult,
}

impl CheckSummary {
    /// Returns the totals for one file. `is_opened` says whether the file could be opened.
    pub(in crate::cli) fn for_file(checked: CheckResult, is_opened: bool) -> Self {
        CheckSummary {
            files: 1,
            unopened: u64::from(!is_opened),
            checked,
        }
    }

    pub(in crate::cli) fn verdict(self) -> CheckVerdict {
        match self.unopened {
            0 => self.checked.verdict(),
            _ => CheckVerdict::Unread,
        }
    }

    /// Formats the totals as the last line of text. `data` says whether every byte was read.
    pub(in crate::cli) fn line(self, data: bool) -> String {
        let files = self.files;
        let s = if files == 1 { "" } else { "s" };
        let unopened = format_count(self.unopened, "not opened");
        format!("{files} file{s}, {}{unopened}", self.checked.line(data))
    }

    /// Formats the totals as the last line of JSON. `data` says whether every byte was read.
    pub(in crate::cli) fn json_line(self, data: bool) -> String {
        let CheckResult {
            completed: done,
            unreadable,
            missing,
        } = self.checked;
        let mut object = JsonObject::default();
        object.add_text("kind", "sum");
        object.add_json("files", self.files);
        object.add_json("unopened", self.unopened);
        object.add_json("objects", done.objects);
        object.add_json("bytes", done.bytes);
        object.add_json("read", data);
        object.add_json("unreadable", unreadable);
        object.add_json("missing", missing);
        object.finish()
    }
}

/// A message from a process that checks one file to the process that checks several files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum CheckMessage {
    Fault(CheckFault),
    /// The last message of a process: why the file could not be opened or read to its end.
    Unopened(String),
    /// The last message of a process: the number of checked objects and bytes.
    Totals(CompletedWork),
}

impl CheckMessage {
    /// Formats the message as a line.
    pub(in crate::cli) fn line(&self) -> String {
        match self {
            CheckMessage::Fault(CheckFault { kind, path, reason }) => {
                let path = BASE64_STANDARD.encode(path);
                format!("{} {path} {reason}", kind.name())
            }
            CheckMessage::Unopened(reason) => format!("unopened {reason}"),
            CheckMessage::Totals(CompletedWork { objects, bytes }) => {
                format!("sum {objects} {bytes}")
            }
        }
    }

    /// Parses a line of a process's output as a message. A line that is not a message becomes a
    /// fault of the file, because its process behaves incorrectly.
    pub(in crate::cli) fn from_line(line: &str) -> Self {
        Self::parse(line).unwrap_or_else(|| {
            CheckMessage::Fault(CheckFault {
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
            return Some(CheckMessage::Fault(CheckFault {
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
                Some(CheckMessage::Totals(CompletedWork { objects, bytes }))
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
            completed: CompletedWork { objects, bytes },
            unreadable,
            missing,
        }
    }

    #[test]
    fn totals_are_formatted() {
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
        assert_eq!(sum(0, 0, 0).verdict(), CheckVerdict::Sound);
        assert_eq!(sum(0, 1, 0).verdict(), CheckVerdict::Faulty);
        assert_eq!(sum(0, 0, 1).verdict(), CheckVerdict::Faulty);
        assert_eq!(sum(1, 1, 1).verdict(), CheckVerdict::Unread);
    }

    #[test]
    fn messages_are_parsed_unchanged() {
        let fault = |kind, path: &[u8], reason: &str| {
            CheckMessage::Fault(CheckFault {
                kind,
                path: path.to_vec(),
                reason: reason.to_owned(),
            })
        };
        for record in [
            fault(FaultKind::Unreadable, b"/a b\n\xff", "attribute x: sum 1 2"),
            fault(FaultKind::Missing, b"", ""),
            CheckMessage::Unopened("Permission denied".to_owned()),
            CheckMessage::Totals(checked(1, 2, 3, 4).completed),
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

//! `h5fs check`: lists the parts of a file that cannot be read or are missing, and why.
//!
//! One thread walks the tree and looks at the directories, several others look at the files that
//! the walk finds, and the main thread writes: a line for each part that cannot be read or is
//! missing, in the order in which they are found, and a summary. Of the objects that were looked
//! at, only the numbers of those with several names are kept.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::errno::Errno;

use crate::cli::inspect::reading::{self, Outcome, PIECE, Source, Stop};
use crate::cli::inspect::walk::{Visited, walk};
use crate::cli::options;
use crate::cli::words::printable::{printable, printable_bytes};
use crate::cli::words::progress::{Done, Progress, TICK};
use crate::error::{Error, Result};
use crate::fs::{Filesystem, Finding, Handle, Ino, Kind, Requests, Whence, errno};
use crate::memory::lock::lock;
use crate::wire::to_u64;

/// Objects that wait to be looked at, and lines that wait to be written.
const WAITING: usize = 256;

/// How what was found is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Form {
    /// For people.
    Lines,
    /// For the process that checks several files: [`Record`]s.
    Records,
}

/// What a process that checks one file says to the one that checks several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Record {
    /// A line about a part that cannot be read or is missing.
    Part(String),
    /// The end: what was looked at.
    Sum(Checked),
}

impl Record {
    /// As a line.
    fn line(&self) -> String {
        match self {
            Record::Part(line) => format!("part {line}"),
            Record::Sum(Checked { done, faults }) => {
                let Done { objects, bytes } = done;
                let (unreadable, missing) = (faults.unreadable, faults.missing);
                format!("sum {objects} {bytes} {unreadable} {missing}")
            }
        }
    }

    /// The record that stands in a line. Any other line is about the file, too: a process that failed
    /// wrote it.
    pub(in crate::cli) fn of(line: &str) -> Self {
        let sum = line.strip_prefix("sum ").and_then(|numbers| {
            let mut numbers = numbers.split(' ').map(|number| number.parse().ok());
            let mut next = || numbers.next()?;
            let (objects, bytes) = (next()?, next()?);
            let (unreadable, missing) = (next()?, next()?);
            Some(Checked {
                done: Done { objects, bytes },
                faults: Faults {
                    unreadable,
                    missing,
                },
            })
        });
        let part = || line.strip_prefix("part ").unwrap_or(line).to_owned();
        sum.map_or_else(|| Record::Part(part()), Record::Sum)
    }
}

/// Looks at all of the file, with `data` at every byte of it; whether all is there and can be read.
pub(in crate::cli) fn check(source: Source<'_>, data: bool, form: Form) -> Outcome<bool> {
    // In the cage no terminal is told from a file, nor processors counted.
    let (mut progress, threads) = (Progress::new(), options::default_threads());
    let filesystem = reading::open(source, data)?;
    let generation = filesystem.generation();
    let check = Check {
        filesystem: &filesystem,
        data,
        form,
        threads,
        objects: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        over: AtomicBool::new(false),
    };
    let mut output = BufWriter::new(reading::output()?);
    let faults = check.run(&mut progress, &mut output)?;
    output.flush()?;
    if filesystem.generation() != generation || check.is_over() {
        let text = format!("{}: has changed meanwhile", source.file.name().display());
        return Err(Stop::Failed(Error::Usage(text)));
    }
    let done = check.done();
    let checked = Checked { done, faults };
    let last = match form {
        Form::Lines => summary(checked, data),
        Form::Records => Record::Sum(checked).line(),
    };
    writeln!(output, "{last}")?;
    output.flush()?;
    Ok(faults == Faults::default())
}

/// The last line: what was looked at.
pub(in crate::cli) fn summary(checked: Checked, data: bool) -> String {
    let Done { objects, bytes } = checked.done;
    let s = if objects == 1 { "" } else { "s" };
    let read = if data { "read" } else { "not read" };
    let Faults {
        unreadable,
        missing,
    } = checked.faults;
    let missing = match missing {
        0 => String::new(),
        _ => format!(", {missing} missing"),
    };
    format!("{objects} object{s}, {bytes} bytes {read}, {unreadable} unreadable{missing}")
}

/// How many parts cannot be read, and how many other files or objects in them are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct Faults {
    pub(in crate::cli) unreadable: u64,
    pub(in crate::cli) missing: u64,
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct Checked {
    pub(in crate::cli) done: Done,
    pub(in crate::cli) faults: Faults,
}

impl Checked {
    pub(in crate::cli) fn add(&mut self, other: Checked) {
        self.done.objects += other.done.objects;
        self.done.bytes += other.done.bytes;
        self.faults.unreadable += other.faults.unreadable;
        self.faults.missing += other.faults.missing;
    }
}

/// The state that the threads share.
struct Check<'a> {
    filesystem: &'a Filesystem,
    data: bool,
    form: Form,
    threads: usize,
    objects: AtomicU64,
    bytes: AtomicU64,
    /// Whether there is no sense in going on.
    over: AtomicBool,
}

/// Something that is to be looked at, and to be given back after that.
struct Object {
    path: Vec<u8>,
    ino: Ino,
    kind: Kind,
}

/// A line that is to be written.
enum Line {
    Unreadable(String),
    Missing(String),
}

impl Check<'_> {
    /// Writes what cannot be read or is missing; how many lines that were.
    fn run(&self, progress: &mut Progress, output: &mut impl Write) -> Outcome<Faults> {
        thread::scope(|scope| {
            let (found, lines) = sync_channel(WAITING);
            let (met, objects) = sync_channel(WAITING);
            let objects = Arc::new(Mutex::new(objects));
            for _ in 0..self.threads {
                let (found, objects) = (found.clone(), Arc::clone(&objects));
                scope.spawn(move || {
                    while let Some(object) = next(&objects) {
                        self.object(&object, &found);
                    }
                });
            }
            drop(objects);
            scope.spawn(move || self.walk(&met, &found));
            let written = self.write(&lines, progress, output);
            progress.clear();
            if written.is_err() {
                self.end();
            }
            written
        })
    }

    /// Writes lines until there are no more to come.
    fn write(
        &self,
        lines: &Receiver<Line>,
        progress: &mut Progress,
        output: &mut impl Write,
    ) -> Outcome<Faults> {
        let mut faults = Faults::default();
        loop {
            match lines.recv_timeout(TICK) {
                Ok(line) => {
                    progress.clear();
                    let (line, count) = match line {
                        Line::Unreadable(line) => (line, &mut faults.unreadable),
                        Line::Missing(line) => (line, &mut faults.missing),
                    };
                    *count += 1;
                    let line = match self.form {
                        Form::Lines => line,
                        Form::Records => Record::Part(line).line(),
                    };
                    writeln!(output, "{line}")?;
                }
                Err(RecvTimeoutError::Timeout) => output.flush()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(faults),
            }
            progress.show(self.done());
        }
    }

    /// Looks at the directories, and hands on the rest.
    fn walk(&self, met: &SyncSender<Object>, found: &SyncSender<Line>) {
        let mut seen = HashSet::new();
        let mut told = None;
        walk(self.filesystem, &mut |thing| {
            match thing {
                Visited::Directory(path, ino) => {
                    self.count_object();
                    told = self.described(path, ino, found);
                }
                // A group that cannot be read at all has been named.
                Visited::Broken(_, error) if told.as_ref() == Some(&error) => {}
                Visited::Broken(path, error) => self.report(path, &error, found),
                Visited::Entry(path, named) => {
                    let first = named.stat.links <= 1 || seen.insert(named.ino);
                    if named.stat.kind != Kind::Directory && first {
                        // The threads that would look at it are gone only if all is over.
                        let _ = met.send(Object {
                            path: path.to_vec(),
                            ino: named.ino,
                            kind: named.stat.kind,
                        });
                    } else {
                        self.filesystem.forget(named.ino, 1);
                    }
                }
            }
            !self.is_over()
        });
    }

    /// Looks at one regular file or symbolic link.
    fn object(&self, object: &Object, found: &SyncSender<Line>) {
        if !self.is_over() {
            let described = self.described(&object.path, object.ino, found);
            if object.kind == Kind::File {
                self.count_object();
                match self.content(object.ino) {
                    // An object that cannot be read at all has the same to say of its content.
                    Err(error) if described.as_ref() != Some(&error) => {
                        self.report(&object.path, &error, found);
                    }
                    _ => {}
                }
            }
        }
        self.filesystem.forget(object.ino, 1);
    }

    /// Looks at all but the content; what is wrong with the object itself or with the first of its
    /// parts that cannot be read, all of which is reported.
    fn described(&self, path: &[u8], ino: Ino, found: &SyncSender<Line>) -> Option<Error> {
        let mut first = None;
        let mut find = |finding: Finding<'_>| match finding {
            Finding::Attribute(name, error) => {
                let part = format!("attribute {}: ", printable_bytes(name));
                self.report_part(path, &part, &error, found);
            }
            Finding::Part(part, error) => {
                self.report_part(path, &format!("{}: ", printable(&part)), &error, found);
                first.get_or_insert(error);
            }
            Finding::Missing(text) => {
                let line = format!("{}: {}", printable_bytes(path), printable(&text));
                let _ = found.send(Line::Missing(line));
            }
        };
        let examined = self.filesystem.examine(ino, &mut find);
        let Err(error) = examined else {
            return first;
        };
        self.report(path, &error, found);
        Some(error)
    }

    /// Looks at the content: where it is and, if that is wanted, all of it.
    fn content(&self, ino: Ino) -> Result<()> {
        let handle = self.filesystem.open_file(ino)?.handle;
        let outcome = self.opened(ino, handle);
        self.filesystem.release(handle);
        outcome
    }

    fn opened(&self, ino: Ino, handle: Handle) -> Result<()> {
        let size = self.filesystem.getattr(ino)?.attributes.size;
        // To tell holes from data, an array's index must be walked.
        let mut next = self.data_at(handle, 0)?;
        if !self.data {
            self.count_bytes(size);
            return Ok(());
        }
        // An array that is stored nowhere may have more zeros than anybody has time for.
        while let Some(offset) = next
            && !self.is_over()
        {
            let piece = self.filesystem.read(handle, offset, PIECE)?;
            if piece.is_empty() {
                break;
            }
            let length = to_u64(piece.len());
            self.count_bytes(length);
            next = self.data_at(handle, offset.saturating_add(length))?;
        }
        Ok(())
    }

    /// The first byte at or after `offset` that is no hole.
    fn data_at(&self, handle: Handle, offset: u64) -> Result<Option<u64>> {
        match self.filesystem.lseek(handle, offset, Whence::Data) {
            Err(error) if errno::of(&error) == Errno::ENXIO as i32 => Ok(None),
            other => other.map(Some),
        }
    }

    fn report(&self, path: &[u8], error: &Error, found: &SyncSender<Line>) {
        self.report_part(path, "", error, found);
    }

    fn report_part(&self, path: &[u8], part: &str, error: &Error, found: &SyncSender<Line>) {
        if errno::of(error) == Errno::ESTALE as i32 {
            // No fault of the file's.
            return self.end();
        }
        let path = printable_bytes(path);
        let reason = printable(&error.to_string());
        // The thread that writes the lines ends early only if all is over.
        let _ = found.send(Line::Unreadable(format!("{path}: {part}{reason}")));
    }

    fn count_object(&self) {
        self.objects.fetch_add(1, Ordering::Relaxed);
    }

    fn count_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn done(&self) -> Done {
        Done {
            objects: self.objects.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The next object that is to be looked at; `None` when there are no more to come.
fn next(objects: &Mutex<Receiver<Object>>) -> Option<Object> {
    lock(objects).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_reads_well() {
        let checked = |objects, bytes, unreadable, missing| Checked {
            done: Done { objects, bytes },
            faults: Faults {
                unreadable,
                missing,
            },
        };
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
            assert_eq!(summary(checked, data), line);
            let record = Record::Sum(checked);
            assert_eq!(Record::of(&record.line()), record);
        }
    }

    #[test]
    fn what_is_no_sum_is_about_a_part() {
        let part = |line: &str| Record::Part(line.to_owned());
        for text in ["/x: sum 1 2 3 4", "sum 1 2 3 4"] {
            assert_eq!(Record::of(&part(text).line()), part(text));
        }
        for text in ["h5fs: a.h5: damaged", "sum 1 2", "sum 1 2 3 x"] {
            assert_eq!(Record::of(text), part(text));
        }
    }
}

//! `h5fs check`: lists the parts of a file that cannot be read or are missing, with the reasons.
//!
//! One thread walks the tree and examines the directories. Several other threads examine the files
//! that the walk finds. The main thread writes a line for each fault in the order of discovery, and
//! the sum at the end. Only the inode numbers of objects with several names are remembered.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::to_u64;
use nix::errno::Errno;

use crate::cli::inspect::checked::{self, Checked, Fault, Record, Sum, Verdict};
use crate::cli::inspect::reading::{self, Outcome, PIECE, Source, Stop};
use crate::cli::inspect::walk::{Visited, walk, walk_views};
use crate::cli::options::default_threads;
use crate::cli::words::complaint::reason_of;
use crate::cli::words::printable::{printable, printable_bytes};
use crate::cli::words::progress::{Done, Progress, Share, TICK};
use crate::fs::{Defect, FileKind, Filesystem, Handle, Ino, Requests, SeekKind, errno};

/// Capacity of the queue of objects to examine, and of the queue of lines to write.
const WAITING: usize = 256;

/// The view trees in which an object or a group is shown as a table.
const TABLES: [&[u8]; 4] = [b"csv", b"cf", b"parquet", b"fits"];

/// Output format of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Form {
    /// Text for people.
    Lines,
    /// One JSON object per line.
    Json,
    /// [`Record`]s for the process that checks several files.
    Records,
}

/// The scope and the output format of a check.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct CheckOptions {
    /// Whether every byte of the data is read.
    pub(in crate::cli) data: bool,
    /// Whether the tables of the views are checked as well.
    pub(in crate::cli) views: bool,
    /// Whether the joined files of a directory are checked instead of the files themselves.
    pub(in crate::cli) joined: bool,
    pub(in crate::cli) form: Form,
}

/// Checks a whole source.
pub(in crate::cli) fn check(source: Source<'_>, options: CheckOptions) -> Outcome<Verdict> {
    let mut checked = Checked::default();
    match look(source, options, &mut checked) {
        Err(Stop::Failed(error)) => return unopened(source, error, options, checked),
        looked => looked?,
    }
    let data = options.data;
    let last = match options.form {
        Form::Lines => checked.line(data),
        Form::Json => Sum::of_file(checked, true).object(data),
        Form::Records => Record::Sum(checked.done).line(),
    };
    writeln!(reading::output()?, "{last}")?;
    Ok(checked.verdict())
}

/// Checks a source, writes its faults, and stores the counts in `checked`.
fn look(source: Source<'_>, options: CheckOptions, checked: &mut Checked) -> Outcome<()> {
    // Must precede the sandbox, which hides whether an output is a terminal and how many processors
    // exist.
    let (mut progress, threads) = (Progress::new(), default_threads());
    let filesystem = if options.joined {
        reading::open_joined(source)?
    } else {
        reading::open(source, options.data)?
    };
    let generation = filesystem.generation();
    let name = source.file.name();
    let check = Check {
        filesystem: &filesystem,
        name: name.as_os_str().as_bytes(),
        options,
        threads,
        objects: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        ahead: Ahead::default(),
        over: AtomicBool::new(false),
    };
    let mut output = BufWriter::new(reading::output()?);
    *checked = check.run(&mut progress, &mut output)?;
    output.flush()?;
    if filesystem.generation() != generation || check.is_over() {
        let text = format!("{}: changed while it was read", name.display());
        return Err(Stop::Failed(Error::Usage(text)));
    }
    checked.done = check.done();
    Ok(())
}

/// Reports that the source cannot be opened or read to its end. A process that checks one of
/// several files sends a record instead.
fn unopened(
    source: Source<'_>,
    error: Error,
    options: CheckOptions,
    checked: Checked,
) -> Outcome<Verdict> {
    let mut output = reading::output()?;
    let name = source.file.name();
    let name = name.as_os_str().as_bytes();
    let reason = reason_of(name, &error);
    match options.form {
        Form::Lines => {}
        Form::Json => {
            let sum = Sum::of_file(checked, false);
            writeln!(output, "{}", checked::unopened(name, &reason))?;
            writeln!(output, "{}", sum.object(options.data))?;
        }
        Form::Records => {
            writeln!(output, "{}", Record::Unopened(reason).line())?;
            return Ok(Verdict::Unread);
        }
    }
    Err(Stop::Failed(error))
}

/// State that the threads share.
struct Check<'a> {
    filesystem: &'a Filesystem,
    /// Name of the source.
    name: &'a [u8],
    options: CheckOptions,
    threads: usize,
    objects: AtomicU64,
    bytes: AtomicU64,
    ahead: Ahead,
    /// Set when the check must stop early.
    over: AtomicBool,
}

/// Total size of the files that the walk has found, and progress through them.
#[derive(Default)]
struct Ahead {
    met: AtomicU64,
    /// Bytes that have been read or skipped as holes.
    passed: AtomicU64,
    /// Whether the walk has ended, so that the total size is final.
    is_whole: AtomicBool,
}

impl Ahead {
    fn share(&self) -> Option<Share> {
        self.is_whole.load(Ordering::Acquire).then(|| Share {
            passed: self.passed.load(Ordering::Relaxed),
            total: self.met.load(Ordering::Relaxed),
        })
    }
}

/// An object to examine. Its inode must be forgotten afterwards.
struct Object {
    path: Vec<u8>,
    ino: Ino,
    kind: FileKind,
    /// Size in bytes of a regular file, otherwise 0.
    size: u64,
}

/// The part of a file that has not been counted as passed. Dropping the value counts the rest.
struct Left<'a> {
    ahead: &'a Ahead,
    from: u64,
    end: u64,
}

impl Left<'_> {
    fn pass(&mut self, to: u64) {
        let passed = to.min(self.end).saturating_sub(self.from);
        self.ahead.passed.fetch_add(passed, Ordering::Relaxed);
        self.from = self.from.max(to);
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.pass(self.end);
    }
}

impl Check<'_> {
    /// Runs all threads and writes the faults. Returns the counts.
    fn run(&self, progress: &mut Progress, output: &mut impl Write) -> Outcome<Checked> {
        thread::scope(|scope| {
            let (found, faults) = sync_channel(WAITING);
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
            let written = self.write(&faults, progress, output);
            progress.clear();
            if written.is_err() {
                self.end();
            }
            written
        })
    }

    /// Writes faults until all other threads have ended.
    fn write(
        &self,
        faults: &Receiver<Fault>,
        progress: &mut Progress,
        output: &mut impl Write,
    ) -> Outcome<Checked> {
        let mut checked = Checked::default();
        loop {
            match faults.recv_timeout(TICK) {
                Ok(fault) => {
                    progress.clear();
                    checked.count(fault.kind);
                    writeln!(output, "{}", self.line(fault))?;
                }
                Err(RecvTimeoutError::Timeout) => output.flush()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(checked),
            }
            progress.show(
                self.done(),
                self.ahead.share().filter(|_| self.options.data),
            );
        }
    }

    fn line(&self, fault: Fault) -> String {
        match self.options.form {
            Form::Lines => fault.line(),
            Form::Json => fault.object(self.name),
            Form::Records => Record::Fault(fault).line(),
        }
    }

    /// Walks the tree, examines the directories, and queues all other objects.
    fn walk(&self, met: &SyncSender<Object>, found: &SyncSender<Fault>) {
        if self.options.joined {
            self.report_absent(found);
        }
        let mut seen = HashSet::new();
        let mut told = None;
        let mut visit = |thing: Visited<'_>| {
            match thing {
                Visited::Directory(path, ino) => {
                    self.count_object();
                    told = self.described(path, ino, found);
                }
                // The examination has already reported this error.
                Visited::Broken(_, error) if told.as_ref() == Some(&error) => {}
                Visited::Broken(path, error) => self.report(path, &error, found),
                Visited::Entry(path, named) => {
                    let first = named.stat.links <= 1 || seen.insert(named.ino);
                    if named.stat.kind != FileKind::Directory && first {
                        let (kind, size) = (named.stat.kind, named.stat.size);
                        let size = if kind == FileKind::File { size } else { 0 };
                        self.ahead.met.fetch_add(size, Ordering::Relaxed);
                        // Fails only if the check has ended early, because then the receiving
                        // threads have exited.
                        let _ = met.send(Object {
                            path: path.to_vec(),
                            ino: named.ino,
                            kind,
                            size,
                        });
                    } else {
                        self.filesystem.forget(named.ino, 1);
                    }
                }
            }
            !self.is_over()
        };
        walk(self.filesystem, &mut visit);
        if self.options.views {
            walk_views(self.filesystem, &TABLES, &mut visit);
        }
        self.ahead.is_whole.store(true, Ordering::Release);
    }

    /// Reports the files that could not be joined, as the `errors` file of the joined files lists
    /// them.
    fn report_absent(&self, found: &SyncSender<Fault>) {
        for line in errors(self.filesystem).lines() {
            // Each line starts with a timestamp.
            let told = line
                .split_once(' ')
                .and_then(|(_, rest)| rest.split_once(": "));
            let (path, reason) = told.unwrap_or(("/", line));
            let _ = found.send(Fault {
                kind: checked::Kind::Unreadable,
                path: path.as_bytes().to_vec(),
                reason: reason.to_owned(),
            });
        }
    }

    /// Examines one regular file or symbolic link.
    fn object(&self, object: &Object, found: &SyncSender<Fault>) {
        if !self.is_over() {
            let described = self.described(&object.path, object.ino, found);
            if object.kind == FileKind::File {
                self.count_object();
                match self.content(object) {
                    // An object that cannot be read at all fails with the same error for its
                    // content.
                    Err(error) if described.as_ref() != Some(&error) => {
                        self.report(&object.path, &error, found);
                    }
                    _ => {}
                }
            }
        }
        self.filesystem.forget(object.ino, 1);
    }

    /// Examines everything but the content, and reports all faults. Returns the error of the object
    /// itself, or of its first unreadable part.
    fn described(&self, path: &[u8], ino: Ino, found: &SyncSender<Fault>) -> Option<Error> {
        let mut first = None;
        let mut find = |finding: Defect<'_>| match finding {
            Defect::Attribute(name, error) => {
                let part = format!("attribute {}: ", printable_bytes(name));
                self.report_part(path, &part, &error, found);
            }
            Defect::Part(part, error) => {
                self.report_part(path, &format!("{}: ", printable(&part)), &error, found);
                first.get_or_insert(error);
            }
            Defect::Missing(text) => {
                let _ = found.send(Fault {
                    kind: checked::Kind::Missing,
                    path: path.to_vec(),
                    reason: printable(&text),
                });
            }
        };
        let examined = self.filesystem.examine(ino, &mut find);
        let Err(error) = examined else {
            return first;
        };
        self.report(path, &error, found);
        Some(error)
    }

    /// Examines the content: its location in the file and, with `data`, every byte.
    fn content(&self, object: &Object) -> Result<()> {
        let left = Left {
            ahead: &self.ahead,
            from: 0,
            end: object.size,
        };
        let handle = self.filesystem.open_file(object.ino)?.handle;
        let outcome = self.opened(object.ino, handle, left);
        self.filesystem.release(handle);
        outcome
    }

    fn opened(&self, ino: Ino, handle: Handle, mut left: Left<'_>) -> Result<()> {
        let size = self.filesystem.getattr(ino)?.attributes.size;
        // Finding the first data byte walks the array's index.
        let mut next = self.data_at(handle, 0)?;
        if !self.options.data {
            self.count_bytes(size);
            return Ok(());
        }
        // Holes are skipped, because an array without stored data may be too large to read as
        // zeros.
        while let Some(offset) = next
            && !self.is_over()
        {
            let piece = self.filesystem.read(handle, offset, PIECE)?;
            if piece.is_empty() {
                break;
            }
            let length = to_u64(piece.len());
            self.count_bytes(length);
            let end = offset.saturating_add(length);
            left.pass(end);
            next = self.data_at(handle, end)?;
        }
        Ok(())
    }

    /// Returns the offset of the first data byte at or after `offset`.
    fn data_at(&self, handle: Handle, offset: u64) -> Result<Option<u64>> {
        match self.filesystem.lseek(handle, offset, SeekKind::Data) {
            Err(error) if errno::from_error(&error) == Errno::ENXIO as i32 => Ok(None),
            other => other.map(Some),
        }
    }

    fn report(&self, path: &[u8], error: &Error, found: &SyncSender<Fault>) {
        self.report_part(path, "", error, found);
    }

    fn report_part(&self, path: &[u8], part: &str, error: &Error, found: &SyncSender<Fault>) {
        if errno::from_error(error) == Errno::ESTALE as i32 {
            // The file has changed during the check, which is not a fault.
            return self.end();
        }
        // Fails only if the check has ended early, because then the writing thread has exited.
        let _ = found.send(Fault {
            kind: checked::Kind::Unreadable,
            path: path.to_vec(),
            reason: format!("{part}{}", printable(&error.to_string())),
        });
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

/// Returns the lines of `.h5fs/errors`.
fn errors(filesystem: &Filesystem) -> String {
    let read = || -> Result<String> {
        let file = filesystem.resolve(b".h5fs/errors")?;
        let handle = filesystem.open_file(file.ino)?.handle;
        let text = filesystem.read(handle, 0, usize::MAX);
        filesystem.release(handle);
        Ok(String::from_utf8_lossy(&text?).into_owned())
    };
    read().unwrap_or_default()
}

/// Returns the next object to examine, or `None` at the end.
fn next(objects: &Mutex<Receiver<Object>>) -> Option<Object> {
    lock(objects).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_passed_once_however_its_reading_ends() {
        let ahead = Ahead::default();
        ahead.met.store(140, Ordering::Relaxed);
        let left = |end| Left {
            ahead: &ahead,
            from: 0,
            end,
        };
        let mut read = left(100);
        read.pass(40);
        assert_eq!(ahead.share(), None, "the walk goes on");
        ahead.is_whole.store(true, Ordering::Release);
        let share = |passed| Some(Share { passed, total: 140 });
        assert_eq!(ahead.share(), share(40));
        // The file has grown since the walk found it.
        read.pass(130);
        assert_eq!(ahead.share(), share(100));
        drop(read);
        drop(left(40));
        assert_eq!(ahead.share(), share(140));
    }
}

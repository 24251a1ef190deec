//! `h5fs check`: lists the objects of a file that cannot be read or are missing, with the reasons.
//!
//! One thread walks the tree and examines the directories. Several other threads examine the files
//! that the walk finds. The main thread writes a line for each fault in the order of discovery, and
//! the totals at the end. An object with several names is examined once: the walk remembers the
//! inode numbers of such objects, and of no others.

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
use h5fs_tree::{Defect, FileKind, Filesystem, Handle, Ino, Requests, SeekKind, errno};
use nix::errno::Errno;

use crate::cli::inspect::check_result::{
    self, CheckFault, CheckMessage, CheckResult, CheckSummary, CheckVerdict,
};
use crate::cli::inspect::command_source::{self, CommandResult, CommandSource, CommandStop, PIECE};
use crate::cli::inspect::walk::{VisitedItem, walk, walk_views};
use crate::cli::options::default_threads;
use crate::cli::text::error_message::reason_of;
use crate::cli::text::printable::{printable, printable_bytes};
use crate::cli::text::progress::{CompletedWork, ProgressLine, ProgressShare, TICK};

/// Maximum number of objects that wait to be examined, and of faults that wait to be written.
const QUEUE_LENGTH: usize = 256;

/// The view trees that show an object or a group as a table.
const TABLE_VIEWS: [&[u8]; 4] = [b"csv", b"cf", b"parquet", b"fits"];

/// Output format of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum ReportFormat {
    /// Text for people.
    Lines,
    /// One JSON object per line.
    Json,
    /// Messages ([`CheckMessage`]) for the process that checks several files.
    Records,
}

/// What a check reads, and how it writes its results.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct CheckOptions {
    /// Whether every stored byte of the data is read.
    pub(in crate::cli) data: bool,
    /// Whether the tables of the view trees are checked as well.
    pub(in crate::cli) views: bool,
    /// Whether the joined files of a directory are checked instead of the files themselves.
    pub(in crate::cli) joined: bool,
    pub(in crate::cli) form: ReportFormat,
}

/// Checks a source from its root. Returns the overall result.
pub(in crate::cli) fn check(
    source: CommandSource<'_>,
    options: CheckOptions,
) -> CommandResult<CheckVerdict> {
    let mut checked = CheckResult::default();
    match check_source(source, options, &mut checked) {
        Err(CommandStop::Failed(error)) => return report_unopened(source, error, options, checked),
        looked => looked?,
    }
    let data = options.data;
    let last = match options.form {
        ReportFormat::Lines => checked.line(data),
        ReportFormat::Json => CheckSummary::for_file(checked, true).json_line(data),
        ReportFormat::Records => CheckMessage::Totals(checked.completed).line(),
    };
    writeln!(command_source::stdout_file()?, "{last}")?;
    Ok(checked.verdict())
}

/// Checks a source and writes its faults. The counts so far are in `checked`, even after an error.
fn check_source(
    source: CommandSource<'_>,
    options: CheckOptions,
    checked: &mut CheckResult,
) -> CommandResult<()> {
    // Must precede the sandbox, which hides whether an output is a terminal and how many processors
    // exist.
    let (mut progress, threads) = (ProgressLine::new(), default_threads());
    let filesystem = if options.joined {
        command_source::open_joined(source)?
    } else {
        command_source::open(source, options.data)?
    };
    let generation = filesystem.generation();
    let name = source.file.name();
    let check = SourceCheck {
        filesystem: &filesystem,
        name: name.as_os_str().as_bytes(),
        options,
        threads,
        objects: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        progress: CheckProgress::default(),
        should_stop: AtomicBool::new(false),
    };
    let mut output = BufWriter::new(command_source::stdout_file()?);
    *checked = check.run(&mut progress, &mut output)?;
    output.flush()?;
    if filesystem.generation() != generation || check.is_stopped() {
        let text = format!("{}: changed while it was read", name.display());
        return Err(CommandStop::Failed(Error::Usage(text)));
    }
    checked.completed = check.completed();
    Ok(())
}

/// Reports that the source cannot be opened, or cannot be read to its end. A process that checks
/// one of several files sends the reason as a message to the calling process.
fn report_unopened(
    source: CommandSource<'_>,
    error: Error,
    options: CheckOptions,
    checked: CheckResult,
) -> CommandResult<CheckVerdict> {
    let mut output = command_source::stdout_file()?;
    let name = source.file.name();
    let name = name.as_os_str().as_bytes();
    let reason = reason_of(name, &error);
    match options.form {
        ReportFormat::Lines => {}
        ReportFormat::Json => {
            let sum = CheckSummary::for_file(checked, false);
            writeln!(
                output,
                "{}",
                check_result::unopened_json_line(name, &reason)
            )?;
            writeln!(output, "{}", sum.json_line(options.data))?;
        }
        ReportFormat::Records => {
            writeln!(output, "{}", CheckMessage::Unopened(reason).line())?;
            return Ok(CheckVerdict::Unread);
        }
    }
    Err(CommandStop::Failed(error))
}

/// The state that the threads of one check share.
struct SourceCheck<'a> {
    filesystem: &'a Filesystem,
    /// Name of the source.
    name: &'a [u8],
    options: CheckOptions,
    threads: usize,
    objects: AtomicU64,
    bytes: AtomicU64,
    progress: CheckProgress,
    /// Whether the check must stop early.
    should_stop: AtomicBool,
}

/// The total size of the files that the walk has found, and the number of their bytes that were
/// checked.
#[derive(Default)]
struct CheckProgress {
    total_bytes: AtomicU64,
    /// Number of bytes that were read, or skipped because they are holes.
    checked_bytes: AtomicU64,
    /// Whether the walk has ended, so that the total size is final.
    is_total_final: AtomicBool,
}

impl CheckProgress {
    fn progress_share(&self) -> Option<ProgressShare> {
        self.is_total_final
            .load(Ordering::Acquire)
            .then(|| ProgressShare {
                processed: self.checked_bytes.load(Ordering::Relaxed),
                total: self.total_bytes.load(Ordering::Relaxed),
            })
    }
}

/// An object that waits to be examined. After the examination, the lookup of its inode must be
/// released with `forget`.
struct PendingObject {
    path: Vec<u8>,
    ino: Ino,
    kind: FileKind,
    /// Size in bytes of a regular file, otherwise 0.
    size: u64,
}

/// The bytes of a file that have not been counted as checked. Dropping the value counts them.
struct UncountedPart<'a> {
    ahead: &'a CheckProgress,
    from: u64,
    end: u64,
}

impl UncountedPart<'_> {
    fn advance(&mut self, to: u64) {
        let passed = to.min(self.end).saturating_sub(self.from);
        self.ahead
            .checked_bytes
            .fetch_add(passed, Ordering::Relaxed);
        self.from = self.from.max(to);
    }
}

impl Drop for UncountedPart<'_> {
    fn drop(&mut self) {
        self.advance(self.end);
    }
}

impl SourceCheck<'_> {
    /// Runs the threads of the check and writes the faults. Returns the counts of the whole check.
    fn run(
        &self,
        progress: &mut ProgressLine,
        output: &mut impl Write,
    ) -> CommandResult<CheckResult> {
        thread::scope(|scope| {
            let (found, faults) = sync_channel(QUEUE_LENGTH);
            let (met, objects) = sync_channel(QUEUE_LENGTH);
            let objects = Arc::new(Mutex::new(objects));
            for _ in 0..self.threads {
                let (found, objects) = (found.clone(), Arc::clone(&objects));
                scope.spawn(move || {
                    while let Some(object) = next_object(&objects) {
                        self.examine_object(&object, &found);
                    }
                });
            }
            drop(objects);
            scope.spawn(move || self.walk(&met, &found));
            let written = self.write_faults(&faults, progress, output);
            progress.clear();
            if written.is_err() {
                self.stop();
            }
            written
        })
    }

    /// Writes faults until all other threads have ended.
    fn write_faults(
        &self,
        faults: &Receiver<CheckFault>,
        progress: &mut ProgressLine,
        output: &mut impl Write,
    ) -> CommandResult<CheckResult> {
        let mut checked = CheckResult::default();
        loop {
            match faults.recv_timeout(TICK) {
                Ok(fault) => {
                    progress.clear();
                    checked.count(fault.kind);
                    writeln!(output, "{}", self.format_fault(fault))?;
                }
                Err(RecvTimeoutError::Timeout) => output.flush()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(checked),
            }
            progress.update(
                self.completed(),
                self.progress.progress_share().filter(|_| self.options.data),
            );
        }
    }

    fn format_fault(&self, fault: CheckFault) -> String {
        match self.options.form {
            ReportFormat::Lines => fault.line(),
            ReportFormat::Json => fault.json_line(self.name),
            ReportFormat::Records => CheckMessage::Fault(fault).line(),
        }
    }

    /// Walks the tree, examines the directories, and queues all other objects.
    fn walk(&self, met: &SyncSender<PendingObject>, found: &SyncSender<CheckFault>) {
        if self.options.joined {
            self.report_unjoined_files(found);
        }
        let mut seen = HashSet::new();
        let mut told = None;
        let mut visit = |thing: VisitedItem<'_>| {
            match thing {
                VisitedItem::Directory(path, ino) => {
                    self.count_object();
                    told = self.examine_description(path, ino, found);
                }
                // The examination has already reported this error.
                VisitedItem::Unlistable(_, error) if told.as_ref() == Some(&error) => {}
                VisitedItem::Unlistable(path, error) => self.report(path, &error, found),
                VisitedItem::Entry(path, named) => {
                    let first = named.stat.links <= 1 || seen.insert(named.ino);
                    if named.stat.kind != FileKind::Directory && first {
                        let (kind, size) = (named.stat.kind, named.stat.size);
                        let size = if kind == FileKind::File { size } else { 0 };
                        self.progress.total_bytes.fetch_add(size, Ordering::Relaxed);
                        // Fails only if the check has ended early, because then the receiving
                        // threads have exited.
                        let _ = met.send(PendingObject {
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
            !self.is_stopped()
        };
        walk(self.filesystem, &mut visit);
        if self.options.views {
            walk_views(self.filesystem, &TABLE_VIEWS, &mut visit);
        }
        self.progress.is_total_final.store(true, Ordering::Release);
    }

    /// Reports each file that could not be joined. The file `.h5fs/errors` of the joined files
    /// lists them.
    fn report_unjoined_files(&self, found: &SyncSender<CheckFault>) {
        for line in read_errors(self.filesystem).lines() {
            // Each line starts with a timestamp.
            let told = line
                .split_once(' ')
                .and_then(|(_, rest)| rest.split_once(": "));
            let (path, reason) = told.unwrap_or(("/", line));
            let _ = found.send(CheckFault {
                kind: check_result::FaultKind::Unreadable,
                path: path.as_bytes().to_vec(),
                reason: reason.to_owned(),
            });
        }
    }

    /// Examines one regular file or symbolic link, and reports its faults.
    fn examine_object(&self, object: &PendingObject, found: &SyncSender<CheckFault>) {
        if !self.is_stopped() {
            let described = self.examine_description(&object.path, object.ino, found);
            if object.kind == FileKind::File {
                self.count_object();
                match self.examine_content(object) {
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

    /// Examines everything about an object except its content, and reports all faults. Returns the
    /// error of the object itself, or of its first part that cannot be read, or `None` if all can
    /// be read. An attribute does not count as a part.
    fn examine_description(
        &self,
        path: &[u8],
        ino: Ino,
        found: &SyncSender<CheckFault>,
    ) -> Option<Error> {
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
                let _ = found.send(CheckFault {
                    kind: check_result::FaultKind::Missing,
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

    /// Examines the content of a file: whether its bytes can be located and, with `--data`, whether
    /// every byte can be read.
    fn examine_content(&self, object: &PendingObject) -> Result<()> {
        let left = UncountedPart {
            ahead: &self.progress,
            from: 0,
            end: object.size,
        };
        let handle = self.filesystem.open_file(object.ino)?.handle;
        let outcome = self.check_open_file(object.ino, handle, left);
        self.filesystem.release(handle);
        outcome
    }

    fn check_open_file(&self, ino: Ino, handle: Handle, mut left: UncountedPart<'_>) -> Result<()> {
        let size = self.filesystem.getattr(ino)?.attributes.size;
        // Finding the first data byte walks the array's index.
        let mut next = self.next_data_offset(handle, 0)?;
        if !self.options.data {
            self.count_bytes(size);
            return Ok(());
        }
        // Holes are skipped, because an array without stored data may be too large to read as
        // zeros.
        while let Some(offset) = next
            && !self.is_stopped()
        {
            let piece = self.filesystem.read(handle, offset, PIECE)?;
            if piece.is_empty() {
                break;
            }
            let length = to_u64(piece.len());
            self.count_bytes(length);
            let end = offset.saturating_add(length);
            left.advance(end);
            next = self.next_data_offset(handle, end)?;
        }
        Ok(())
    }

    /// Returns the offset of the first byte at or after `offset` that is not in a hole. Returns
    /// `None` if only a hole follows.
    fn next_data_offset(&self, handle: Handle, offset: u64) -> Result<Option<u64>> {
        match self.filesystem.lseek(handle, offset, SeekKind::Data) {
            Err(error) if errno::from_error(&error) == Errno::ENXIO as i32 => Ok(None),
            other => other.map(Some),
        }
    }

    fn report(&self, path: &[u8], error: &Error, found: &SyncSender<CheckFault>) {
        self.report_part(path, "", error, found);
    }

    fn report_part(&self, path: &[u8], part: &str, error: &Error, found: &SyncSender<CheckFault>) {
        if errno::from_error(error) == Errno::ESTALE as i32 {
            // The file has changed during the check, which is not a fault.
            return self.stop();
        }
        // Fails only if the check has ended early, because then the writing thread has exited.
        let _ = found.send(CheckFault {
            kind: check_result::FaultKind::Unreadable,
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

    fn completed(&self) -> CompletedWork {
        CompletedWork {
            objects: self.objects.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn stop(&self) {
        self.should_stop.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.should_stop.load(Ordering::Relaxed)
    }
}

/// Returns the text of `.h5fs/errors`, or an empty text if this file cannot be read.
fn read_errors(filesystem: &Filesystem) -> String {
    let read = || -> Result<String> {
        let file = filesystem.resolve(b".h5fs/errors")?;
        let handle = filesystem.open_file(file.ino)?.handle;
        let text = filesystem.read(handle, 0, usize::MAX);
        filesystem.release(handle);
        Ok(String::from_utf8_lossy(&text?).into_owned())
    };
    read().unwrap_or_default()
}

/// Takes the next object to examine from the queue. Returns `None` after the last object.
fn next_object(objects: &Mutex<Receiver<PendingObject>>) -> Option<PendingObject> {
    lock(objects).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_counted_once_even_after_an_error() {
        let ahead = CheckProgress::default();
        ahead.total_bytes.store(140, Ordering::Relaxed);
        let left = |end| UncountedPart {
            ahead: &ahead,
            from: 0,
            end,
        };
        let mut read = left(100);
        read.advance(40);
        assert_eq!(ahead.progress_share(), None, "the walk goes on");
        ahead.is_total_final.store(true, Ordering::Release);
        let share = |passed| {
            Some(ProgressShare {
                processed: passed,
                total: 140,
            })
        };
        assert_eq!(ahead.progress_share(), share(40));
        // The file has grown since the walk found it.
        read.advance(130);
        assert_eq!(ahead.progress_share(), share(100));
        drop(read);
        drop(left(40));
        assert_eq!(ahead.progress_share(), share(140));
    }
}

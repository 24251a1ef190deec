//! Reads several sources, each in a separate process, some of them in parallel.
//!
//! A process enters its sandbox once, and can then read only one source. So the calling process
//! only reads the first bytes of each file, to recognise data files. It starts the program again
//! for each source. The outputs are written in the order of the sources. Output that arrives early
//! waits in a bounded buffer.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::location::Location;

use crate::cli::args::ReadingArguments;
use crate::cli::inspect::command_source::CommandResult;
use crate::cli::invocation::Program;
use crate::cli::invocation::{Invocation, Role};
use crate::cli::options;
use crate::cli::text::error_message::{message_about, print_error};
use crate::cli::text::printable::{printable, printable_untrusted};
use crate::cli::text::progress::TICK;
use crate::limits;

/// Maximum number of found sources that wait to be read. The search runs this far ahead of the
/// reading, so that the total number of sources is known early.
const MAX_FOUND: usize = 1 << 16;

/// Maximum number of sources whose processes run before their output is written.
const MAX_RUNNING_AHEAD: usize = 64;

/// Size in bytes of a block of a process's output.
const BLOCK_SIZE: usize = 64 << 10;

/// Maximum number of blocks of one process that wait to be written.
const MAX_WAITING_BLOCKS: usize = 8;

/// A message from the process of a source.
enum SourceMessage {
    Output(Vec<u8>),
    /// A line from standard error.
    Message(String),
    /// The process has ended. The flag says whether it succeeded.
    Ended(bool),
}

/// A source, and the channel from which the messages of its process are received.
type RunningSource = (Location, Receiver<SourceMessage>);

/// The recipient of the processes' output, one source after the other.
pub(in crate::cli) trait OutputFollower {
    /// Starts the output of the source with this `name`.
    fn begin(&mut self, name: &[u8]) -> CommandResult<()>;

    /// Handles bytes of the current source's output.
    fn output(&mut self, bytes: &[u8]) -> CommandResult<()>;

    /// Prepares the terminal for a line on standard error, for example by clearing the progress
    /// line.
    fn clear_progress(&mut self) -> CommandResult<()> {
        Ok(())
    }

    /// Handles the end of the process of the current source. `is_whole` says whether the process
    /// succeeded.
    fn end(&mut self, is_whole: bool) -> CommandResult<()>;

    /// Shows the progress. Called before each other method and at intervals. `ended` is the number
    /// of processes that have ended, and `all` the number of sources if it is known.
    fn show_progress(&mut self, _ended: u64, _all: Option<u64>) -> CommandResult<()> {
        Ok(())
    }
}

/// The arguments of the processes, before and after the name of the source.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct ChildArguments {
    pub(in crate::cli) flags: Vec<OsString>,
    /// Flags that apply only to a source by URL.
    remote: Vec<OsString>,
    pub(in crate::cli) paths: Vec<OsString>,
}

impl ChildArguments {
    /// Returns the arguments of processes that run the command `name`.
    pub(in crate::cli) fn for_command(name: &str, how: &ReadingArguments) -> Self {
        let sandbox = if how.sandbox { "on" } else { "off" };
        let mut arguments = ChildArguments {
            flags: [name, "--sandbox", sandbox].map(Into::into).into(),
            remote: how.remote.given.clone(),
            paths: Vec::new(),
        };
        let flags = [
            (how.force, "--force"),
            (how.strict, "--strict"),
            (how.partial, "--partial"),
            (how.quiet, "--quiet"),
        ];
        let given = flags.into_iter().filter(|flag| flag.0);
        given.for_each(|(_, flag)| arguments.flag(flag));
        arguments
    }

    pub(in crate::cli) fn flag(&mut self, flag: impl Into<OsString>) {
        self.flags.push(flag.into());
    }

    /// Returns the arguments with which this program reads `source`.
    pub(in crate::cli) fn invocation(&self, source: &Location) -> Invocation {
        let mut arguments = self.flags.clone();
        if source.url().is_some() {
            arguments.extend_from_slice(&self.remote);
        }
        arguments.extend(["--".into(), source.name().into()]);
        arguments.extend_from_slice(&self.paths);
        Invocation {
            program: Program::Command,
            role: Role::Launcher,
            arguments,
        }
    }

    /// Returns the command that starts this program to read `source`.
    ///
    /// # Errors
    /// Fails if the path of this executable is unknown.
    pub(in crate::cli) fn command(&self, source: &Location) -> Result<Command> {
        let command = self.invocation(source).restart_command(Role::Launcher);
        let mut command = command.map_err(|error| Error::from_io(&error, "starting `h5fs`"))?;
        command.stdin(Stdio::null());
        Ok(command)
    }
}

/// The number of sources found so far, and the number of sources read so far.
#[derive(Default)]
struct SourceCount {
    found: AtomicU64,
    ended: AtomicU64,
    /// Whether all sources have been found.
    is_found_final: AtomicBool,
}

impl SourceCount {
    /// Finds sources and sends them to the threads that read them, until no source is left or these
    /// threads have ended.
    fn send_sources(&self, sources: &mut SourceIterator<'_>, find: &SyncSender<Location>) {
        for source in sources {
            self.found.fetch_add(1, Ordering::Relaxed);
            if find.send(source).is_err() {
                return;
            }
        }
        self.is_found_final.store(true, Ordering::Release);
    }

    fn report(&self, follow: &mut dyn OutputFollower) -> CommandResult<()> {
        let is_whole = self.is_found_final.load(Ordering::Acquire);
        let all = is_whole.then(|| self.found.load(Ordering::Relaxed));
        follow.show_progress(self.ended.load(Ordering::Relaxed), all)
    }
}

/// An iterator over the sources to read, which other threads can advance.
pub(in crate::cli) type SourceIterator<'a> = dyn Iterator<Item = Location> + Send + 'a;

/// Reads each of `sources` in a separate process. Passes the output of the processes to `follow`,
/// in the order of the sources.
pub(in crate::cli) fn read_sources(
    sources: &mut SourceIterator<'_>,
    arguments: &ChildArguments,
    jobs: Option<usize>,
    follow: &mut dyn OutputFollower,
) -> CommandResult<()> {
    let jobs = jobs.unwrap_or_else(options::default_threads);
    let count = &SourceCount::default();
    thread::scope(|scope| {
        let (find, found) = sync_channel(MAX_FOUND);
        scope.spawn(move || count.send_sources(sources, &find));
        let found = Arc::new(Mutex::new(found));
        let (queue, turns) = sync_channel(MAX_RUNNING_AHEAD);
        for _ in 0..jobs {
            let (queue, found) = (queue.clone(), Arc::clone(&found));
            scope.spawn(move || {
                while let Some((source, tell)) = start_next_source(&found, &queue) {
                    let is_whole = run(&source, arguments, &tell).unwrap_or_else(|error| {
                        let _ = tell.send(SourceMessage::Message(printable(&error.to_string())));
                        false
                    });
                    count.ended.fetch_add(1, Ordering::Relaxed);
                    let _ = tell.send(SourceMessage::Ended(is_whole));
                }
            });
        }
        drop((queue, found));
        // Dropping the queue ends the remaining processes.
        deliver(&turns, count, follow)
    })
}

/// Takes the next source, and adds it to the queue of running sources. Returns the source, and the
/// channel for the messages of its process. Returns `None` if no source is left, or if the output
/// is closed.
fn start_next_source(
    found: &Mutex<Receiver<Location>>,
    queue: &SyncSender<RunningSource>,
) -> Option<(Location, SyncSender<SourceMessage>)> {
    let found = lock(found);
    let source = found.recv().ok()?;
    let (tell, news) = sync_channel(MAX_WAITING_BLOCKS);
    // Fails if the output is closed, because then the receiver has been dropped.
    queue.send((source.clone(), news)).ok()?;
    Some((source, tell))
}

/// Passes the messages of the processes to `follow`, in the order of their sources.
fn deliver(
    turns: &Receiver<RunningSource>,
    count: &SourceCount,
    follow: &mut dyn OutputFollower,
) -> CommandResult<()> {
    while let Some((source, news)) = receive(turns, count, follow)? {
        let source = source.name();
        let name = source.as_os_str().as_bytes();
        follow.begin(name)?;
        while let Some(said) = receive(&news, count, follow)? {
            match said {
                SourceMessage::Output(bytes) => follow.output(&bytes)?,
                SourceMessage::Message(line) => {
                    follow.clear_progress()?;
                    print_error(&prefix_with_source(name, &line));
                }
                SourceMessage::Ended(is_whole) => follow.end(is_whole)?,
            }
        }
    }
    Ok(())
}

/// Waits for the next message, and shows the progress meanwhile. Returns `None` after the last
/// message.
fn receive<T>(
    from: &Receiver<T>,
    count: &SourceCount,
    follow: &mut dyn OutputFollower,
) -> CommandResult<Option<T>> {
    loop {
        let came = from.recv_timeout(TICK);
        count.report(follow)?;
        match came {
            Ok(said) => return Ok(Some(said)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Adds the name of the source to a line that its process has written to standard error.
fn prefix_with_source(name: &[u8], line: &str) -> String {
    let line = printable_untrusted(line);
    message_about(name, line.strip_prefix("h5fs: ").unwrap_or(&line))
}

/// Runs the process of `source`, and sends its output as messages. Returns whether the process
/// succeeded.
fn run(
    source: &Location,
    arguments: &ChildArguments,
    tell: &SyncSender<SourceMessage>,
) -> Result<bool> {
    let failed = |error| Error::from_io(&error, "starting `h5fs`");
    let mut command = arguments.command(source)?;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if follow_child(&mut child, tell).is_none() {
        // The receiver has been dropped, so the rest is not needed.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    Ok(status.success())
}

fn follow_child(child: &mut Child, tell: &SyncSender<SourceMessage>) -> Option<()> {
    let (mut output, errors) = (child.stdout.take()?, child.stderr.take()?);
    thread::scope(|scope| {
        scope.spawn(|| {
            for line in split_lines(errors) {
                let _ = tell.send(SourceMessage::Message(line));
            }
        });
        let mut piece = vec![0; BLOCK_SIZE];
        loop {
            let read = output.read(&mut piece).unwrap_or(0);
            let bytes = piece.get(..read).filter(|bytes| !bytes.is_empty());
            let Some(bytes) = bytes else {
                return Some(());
            };
            if tell.send(SourceMessage::Output(bytes.to_vec())).is_err() {
                let _ = child.kill();
                return None;
            }
        }
    })
}

/// Splits the output of a process into lines. A line that exceeds the limit is split.
fn split_lines(from: impl Read) -> impl Iterator<Item = String> {
    let mut from = BufReader::new(from);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let limit = u64::try_from(limits::REPORT_BYTES).ok()?;
        let read = from.by_ref().take(limit).read_until(b'\n', &mut line);
        let is_over = read.unwrap_or(0) == 0;
        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        (!is_over).then_some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_source_once() {
        let source = b"a.h5";
        assert_eq!(prefix_with_source(source, "h5fs: x: no"), "a.h5: x: no");
        assert_eq!(prefix_with_source(source, "h5fs: a.h5: no"), "a.h5: no");
        assert_eq!(prefix_with_source(source, "a\x1b[2J"), "a.h5: a\\u{1b}[2J");
    }

    #[test]
    fn an_endless_line_is_split() {
        let long = "x".repeat(limits::REPORT_BYTES + 1);
        let read: Vec<_> = split_lines(long.as_bytes())
            .map(|line| line.len())
            .collect();
        assert_eq!(read, [limits::REPORT_BYTES, 1]);
    }
}

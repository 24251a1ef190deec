//! Several sources, each read by a process of its own, some at a time.
//!
//! A process enters its cage once, and sees one source from then on. So this process reads no more
//! of a file than tells whether it is a data file, and starts the program once more for each. Their
//! output comes in the order of the sources: it waits in memory, as far as a bound, until it is its
//! turn.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::cli::args::{Program, Reading};
use crate::cli::call::{Call, Role};
use crate::cli::inspect::reading::Outcome;
use crate::cli::options;
use crate::cli::words::complaint::{complain, of_text};
use crate::cli::words::printable::{harmless, printable};
use crate::cli::words::progress::TICK;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::lock::lock;
use crate::source::location::Location;

/// Sources that are found before it is their turn, so that it is known how many there are.
const FOUND: usize = 1 << 16;

/// Sources whose output may wait for its turn.
const AHEAD: usize = 64;

/// Bytes that are passed on at a time.
const PIECE: usize = 64 << 10;

/// Pieces of one source that wait.
const PIECES: usize = 8;

/// What the process of a source says.
enum News {
    Output(Vec<u8>),
    /// A line of standard error.
    Complaint(String),
    /// It has ended; whether with success.
    Ended(bool),
}

/// A source, and what is to come from its process.
type Turn = (Location, Receiver<News>);

/// Gets what the processes say, source by source.
pub(in crate::cli) trait Follow {
    /// What comes next is of the source with this `name`.
    fn begin(&mut self, name: &[u8]) -> Outcome<()>;

    /// Bytes of its output.
    fn output(&mut self, bytes: &[u8]) -> Outcome<()>;

    /// Makes room for a line on standard error.
    fn make_room(&mut self) -> Outcome<()> {
        Ok(())
    }

    /// It has ended; whether with success.
    fn end(&mut self, is_whole: bool) -> Outcome<()>;

    /// Is called before each of these, and every now and then; how many processes have ended, of
    /// `all` once that is known.
    fn tick(&mut self, _ended: u64, _all: Option<u64>) -> Outcome<()> {
        Ok(())
    }
}

/// Arguments of a process before and behind the name of its source.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Arguments {
    pub(in crate::cli) flags: Vec<OsString>,
    /// For a source by URL.
    remote: Vec<OsString>,
    pub(in crate::cli) paths: Vec<OsString>,
}

impl Arguments {
    /// Of the command `name`.
    pub(in crate::cli) fn of(name: &str, how: &Reading) -> Self {
        let sandbox = if how.sandbox { "on" } else { "off" };
        let mut arguments = Arguments {
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

    /// The call that reads `source`.
    pub(in crate::cli) fn call(&self, source: &Location) -> Call {
        let mut arguments = self.flags.clone();
        if source.url().is_some() {
            arguments.extend_from_slice(&self.remote);
        }
        arguments.extend(["--".into(), source.name().into()]);
        arguments.extend_from_slice(&self.paths);
        Call {
            program: Program::Command,
            role: Role::Launcher,
            arguments,
        }
    }

    /// The command that reads `source`.
    ///
    /// # Errors
    /// Fails if the system does not say where this program is.
    pub(in crate::cli) fn command(&self, source: &Location) -> Result<Command> {
        let command = self.call(source).again(Role::Launcher);
        let mut command = command.map_err(|error| Error::io(&error, "starting `h5fs`"))?;
        command.stdin(Stdio::null());
        Ok(command)
    }
}

/// How many sources there are, and how many of them have been read.
#[derive(Default)]
struct Count {
    found: AtomicU64,
    ended: AtomicU64,
    /// Whether all sources have been found.
    is_whole: AtomicBool,
}

impl Count {
    /// Finds the sources, until nobody wants them.
    fn find(&self, sources: &mut Sources<'_>, find: &SyncSender<Location>) {
        for source in sources {
            self.found.fetch_add(1, Ordering::Relaxed);
            if find.send(source).is_err() {
                return;
            }
        }
        self.is_whole.store(true, Ordering::Release);
    }

    fn tell(&self, follow: &mut dyn Follow) -> Outcome<()> {
        let is_whole = self.is_whole.load(Ordering::Acquire);
        let all = is_whole.then(|| self.found.load(Ordering::Relaxed));
        follow.tick(self.ended.load(Ordering::Relaxed), all)
    }
}

/// The sources that are to be read.
pub(in crate::cli) type Sources<'a> = dyn Iterator<Item = Location> + Send + 'a;

/// Has a process read each of `sources`, and `follow` get what they say.
pub(in crate::cli) fn read(
    sources: &mut Sources<'_>,
    arguments: &Arguments,
    jobs: Option<usize>,
    follow: &mut dyn Follow,
) -> Outcome<()> {
    let jobs = jobs.unwrap_or_else(options::default_threads);
    let count = &Count::default();
    thread::scope(|scope| {
        let (find, found) = sync_channel(FOUND);
        scope.spawn(move || count.find(sources, &find));
        let found = Arc::new(Mutex::new(found));
        let (queue, turns) = sync_channel(AHEAD);
        for _ in 0..jobs {
            let (queue, found) = (queue.clone(), Arc::clone(&found));
            scope.spawn(move || {
                while let Some((source, tell)) = next(&found, &queue) {
                    let is_whole = run(&source, arguments, &tell).unwrap_or_else(|error| {
                        let _ = tell.send(News::Complaint(printable(&error.to_string())));
                        false
                    });
                    count.ended.fetch_add(1, Ordering::Relaxed);
                    let _ = tell.send(News::Ended(is_whole));
                }
            });
        }
        drop((queue, found));
        // What is still in the queue afterwards goes with it, and the processes end.
        deliver(&turns, count, follow)
    })
}

/// The next source, which has its place in the queue from now on, and the way to tell of it.
fn next(
    found: &Mutex<Receiver<Location>>,
    queue: &SyncSender<Turn>,
) -> Option<(Location, SyncSender<News>)> {
    let found = lock(found);
    let source = found.recv().ok()?;
    let (tell, news) = sync_channel(PIECES);
    // Nobody waits for it if the output is closed.
    queue.send((source.clone(), news)).ok()?;
    Some((source, tell))
}

/// Hands on what the processes say, in the order of their sources.
fn deliver(turns: &Receiver<Turn>, count: &Count, follow: &mut dyn Follow) -> Outcome<()> {
    while let Some((source, news)) = waited(turns, count, follow)? {
        let source = source.name();
        let name = source.as_os_str().as_bytes();
        follow.begin(name)?;
        while let Some(said) = waited(&news, count, follow)? {
            match said {
                News::Output(bytes) => follow.output(&bytes)?,
                News::Complaint(line) => {
                    follow.make_room()?;
                    complain(&of_source(name, &line));
                }
                News::Ended(is_whole) => follow.end(is_whole)?,
            }
        }
    }
    Ok(())
}

/// The next thing that comes; `None` at the end.
fn waited<T>(from: &Receiver<T>, count: &Count, follow: &mut dyn Follow) -> Outcome<Option<T>> {
    loop {
        let came = from.recv_timeout(TICK);
        count.tell(follow)?;
        match came {
            Ok(said) => return Ok(Some(said)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// A line of the process that reads a source, which names the source now.
fn of_source(name: &[u8], line: &str) -> String {
    let line = harmless(line);
    of_text(name, line.strip_prefix("h5fs: ").unwrap_or(&line))
}

/// Starts the process of `source` and tells what it says; whether it ends with success.
fn run(source: &Location, arguments: &Arguments, tell: &SyncSender<News>) -> Result<bool> {
    let failed = |error| Error::io(&error, "starting `h5fs`");
    let mut command = arguments.command(source)?;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if follow_child(&mut child, tell).is_none() {
        // Nobody waits for the rest.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    Ok(status.success())
}

fn follow_child(child: &mut Child, tell: &SyncSender<News>) -> Option<()> {
    let (mut output, errors) = (child.stdout.take()?, child.stderr.take()?);
    thread::scope(|scope| {
        scope.spawn(|| {
            for line in lines(errors) {
                let _ = tell.send(News::Complaint(line));
            }
        });
        let mut piece = vec![0; PIECE];
        loop {
            let read = output.read(&mut piece).unwrap_or(0);
            let bytes = piece.get(..read).filter(|bytes| !bytes.is_empty());
            let Some(bytes) = bytes else {
                return Some(());
            };
            if tell.send(News::Output(bytes.to_vec())).is_err() {
                let _ = child.kill();
                return None;
            }
        }
    })
}

/// The lines of what `from` writes; a line that is too long comes in parts.
fn lines(from: impl Read) -> impl Iterator<Item = String> {
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
        assert_eq!(of_source(source, "h5fs: x: no"), "a.h5: x: no");
        assert_eq!(of_source(source, "h5fs: a.h5: no"), "a.h5: no");
        assert_eq!(of_source(source, "a\x1b[2J"), "a.h5: a\\u{1b}[2J");
    }

    #[test]
    fn a_line_without_an_end_comes_in_parts() {
        let long = "x".repeat(limits::REPORT_BYTES + 1);
        let read: Vec<_> = lines(long.as_bytes()).map(|line| line.len()).collect();
        assert_eq!(read, [limits::REPORT_BYTES, 1]);
    }
}

//! `h5fs check` of several files and directories: each file in a process of its own.
//!
//! A process enters its cage once, and sees one file from then on. So this process reads no more
//! of a file than tells whether it is a data file, and starts `h5fs check FILE` for each, some at a
//! time. Their lines are written behind the names of their files.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;

use crate::cli::args::Sources;
use crate::cli::call::{MOUNT_COMMAND, Role, executable};
use crate::cli::check::{Checked, summary};
use crate::cli::complaint::{complain, complain_of};
use crate::cli::options;
use crate::cli::printable::printable_bytes;
use crate::cli::progress::{Progress, TICK};
use crate::cli::reading::{self, Outcome};
use crate::detect;
use crate::error::{Error, Result};
use crate::memory::lock::lock;
use crate::source::file::FileSource;
use crate::source::location::Location;

/// Lines that wait to be written.
const WAITING: usize = 256;

/// Told of a file by one of the threads.
enum News {
    /// A part of it cannot be read.
    Line(String),
    /// It was looked at.
    Checked(Checked),
    /// It could not be looked at, as was said on standard error.
    Failed,
}

/// Looks at all files of `sources`, `jobs` at a time, with `data` at every byte of them; whether
/// all can be read.
pub(super) fn check(sources: &Sources, data: bool, jobs: usize) -> Outcome<bool> {
    let mut progress = Progress::new();
    let mut output = BufWriter::new(reading::output()?);
    let files = Mutex::new(DataFiles::of(&sources.files));
    let over = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let (tell, news) = sync_channel(WAITING);
        for _ in 0..jobs.max(1) {
            let (tell, files, over) = (tell.clone(), &files, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed)
                    && let Some(file) = lock(files).next()
                {
                    let checked = start(&file, sources, data)
                        .and_then(|child| follow(child, &file, &tell, over));
                    let told = checked.unwrap_or_else(|error| {
                        complain_of(file.name().as_os_str().as_bytes(), &error);
                        News::Failed
                    });
                    let _ = tell.send(told);
                }
            });
        }
        drop(tell);
        let written = write(&news, &mut progress, &mut output);
        over.store(true, Ordering::Relaxed);
        written
    });
    let (all, is_whole) = written?;
    writeln!(output, "{}", all.summary(data))?;
    output.flush()?;
    let has_failed = lock(&files).has_failed;
    Ok(is_whole && all.checked.unreadable == 0 && !has_failed)
}

/// The sum over all files.
#[derive(Debug, Default)]
struct Sum {
    files: u64,
    checked: Checked,
}

impl Sum {
    fn summary(&self, data: bool) -> String {
        let s = if self.files == 1 { "" } else { "s" };
        let Checked { done, unreadable } = self.checked;
        format!(
            "{} file{s}, {}",
            self.files,
            summary(done, unreadable, data)
        )
    }
}

/// Writes lines until there are no more to come; the sum, and whether every file was looked at.
fn write(
    news: &Receiver<News>,
    progress: &mut Progress,
    output: &mut impl Write,
) -> Outcome<(Sum, bool)> {
    let (mut sum, mut is_whole) = (Sum::default(), true);
    loop {
        match news.recv_timeout(TICK) {
            Ok(News::Line(line)) => {
                progress.clear();
                writeln!(output, "{line}")?;
            }
            Ok(News::Checked(checked)) => {
                sum.files += 1;
                sum.checked.add(checked);
            }
            Ok(News::Failed) => {
                sum.files += 1;
                is_whole = false;
            }
            Err(RecvTimeoutError::Timeout) => output.flush()?,
            Err(RecvTimeoutError::Disconnected) => return Ok((sum, is_whole)),
        }
        progress.show(sum.checked.done);
    }
}

/// Starts a process that looks at `file`.
fn start(file: &Location, sources: &Sources, data: bool) -> Result<Child> {
    let failed = |error| Error::io(&error, "starting `h5fs check`");
    let mut command = executable(MOUNT_COMMAND, Role::Launcher).map_err(failed)?;
    let sandbox = if sources.sandbox { "on" } else { "off" };
    command.args(["check", "--sandbox", sandbox]);
    if file.url().is_some() {
        command.args(options::remote_flags(&sources.remote.0));
    }
    if data {
        command.arg("--data");
    }
    command.arg("--").arg(file.name());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().map_err(failed)
}

/// Hands on what `child` says of `file`. What it says on standard error stands there already.
fn follow(
    mut child: Child,
    file: &Location,
    tell: &SyncSender<News>,
    over: &AtomicBool,
) -> Result<News> {
    let name = printable_bytes(file.name().as_os_str().as_bytes());
    let mut last: Option<String> = None;
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| BufReader::new(out).lines())
    {
        let line = line.map_err(|error| Error::io(&error, "reading from `h5fs check`"))?;
        let before = last.replace(line);
        let told = before.is_none_or(|before| {
            let line = News::Line(format!("{name}: {before}"));
            tell.send(line).is_ok() && !over.load(Ordering::Relaxed)
        });
        if !told {
            let _ = child.kill();
            break;
        }
    }
    child
        .wait()
        .map_err(|error| Error::io(&error, "waiting for `h5fs check`"))?;
    // The last line is its summary, unless it ended early.
    let checked = last.as_deref().and_then(Checked::of_summary);
    Ok(checked.map_or(News::Failed, News::Checked))
}

/// The files that are named, and the data files beneath the directories that are.
struct DataFiles {
    /// The last one comes next.
    ahead: Vec<Location>,
    /// How many of these are named, and not found in a directory.
    named: usize,
    has_failed: bool,
}

impl DataFiles {
    fn of(named: &[Location]) -> Self {
        DataFiles {
            ahead: named.iter().rev().cloned().collect(),
            named: named.len(),
            has_failed: false,
        }
    }

    /// Puts what is in `directory` ahead, in the order of the names.
    fn descend(&mut self, directory: &Path) {
        let listed = std::fs::read_dir(directory).and_then(|entries| {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<std::io::Result<Vec<_>>>()
        });
        match listed {
            Ok(mut paths) => {
                paths.sort_by(|a, b| b.cmp(a));
                self.ahead.extend(paths.into_iter().map(Location::Path));
            }
            Err(error) => {
                self.has_failed = true;
                complain(&format!(
                    "{}: {error}",
                    printable_bytes(directory.as_os_str().as_bytes())
                ));
            }
        }
    }
}

impl Iterator for DataFiles {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        while let Some(location) = self.ahead.pop() {
            let is_named = self.ahead.len() < self.named;
            if is_named {
                self.named = self.ahead.len();
            }
            let Some(path) = location.path() else {
                return Some(location);
            };
            let kind = match is_named {
                true => path.metadata(),
                false => path.symlink_metadata(),
            };
            match kind {
                Ok(there) if there.is_dir() => self.descend(path),
                Ok(there) if !is_named && (!there.is_file() || !is_data(path)) => {}
                // Why it cannot be opened, its own process says.
                _ => return Some(location),
            }
        }
        None
    }
}

fn is_data(path: &Path) -> bool {
    FileSource::open(path, None).is_ok_and(|source| detect::is_known(&source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::progress::Done;

    #[test]
    fn data_files_come_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        std::fs::create_dir(top.join("sub")).unwrap();
        for name in ["b.asdf", "sub/a.asdf", "z.asdf"] {
            std::fs::write(top.join(name), "#ASDF 1.0.0\n").unwrap();
        }
        std::fs::write(top.join("notes.txt"), "no data").unwrap();
        std::os::unix::fs::symlink("b.asdf", top.join("link.asdf")).unwrap();
        let named = [top.join("notes.txt"), top.to_path_buf(), top.join("none")];
        let named = named.map(Location::Path);
        let found: Vec<_> = DataFiles::of(&named).map(|file| file.name()).collect();
        let wanted = ["notes.txt", "b.asdf", "sub/a.asdf", "z.asdf", "none"];
        assert_eq!(found, wanted.map(|name| top.join(name)));
    }

    #[test]
    fn a_sum_reads_well() {
        let done = Done {
            objects: 5,
            bytes: 80,
        };
        let mut sum = Sum::default();
        for _ in 0..2 {
            sum.files += 1;
            let line = summary(done, 1, true);
            sum.checked.add(Checked::of_summary(&line).unwrap());
        }
        let wanted = "2 files, 10 objects, 160 bytes read, 2 unreadable";
        assert_eq!(sum.summary(true), wanted);
        assert!(Checked::of_summary("h5fs: something else").is_none());
    }
}

//! `h5fs ls` and `h5fs cat`: the tree of a mount, without one.
//!
//! What cannot be listed or read is said on standard error and remembered for the exit status; the rest is
//! listed. Names go to a terminal escaped, to a pipe as they are. A reader that went away is no error.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::args::Inspect;
use crate::cli::printable::{printable, printable_bytes};
use crate::cli::{complain, logging, options};
use crate::error::{Error, Result};
use crate::fs::{self, Filesystem, Handle, Ino, Kind, Options, Stat};

/// Names fetched from a directory at a time.
const BATCH: usize = 256;

/// Bytes fetched from a file at a time.
const PIECE: usize = 1 << 20;

/// Performs one of the commands.
pub(super) fn run(inspect: &Inspect) -> Result<ExitCode> {
    // Each failure is said by the command itself; the log is for who asks for it.
    if std::env::var_os("H5FS_LOG").is_some() {
        logging::start(&logging::Destination::Terminal)?;
    }
    let (source, outcome) = match inspect {
        Inspect::Ls {
            long,
            recursive,
            source,
            path,
        } => (source, list(source, path.as_deref(), *long, *recursive)),
        Inspect::Cat { source, path } => (source, copy(source, path)),
    };
    match outcome {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(Stop::ReaderGone) => Ok(ExitCode::SUCCESS),
        Err(Stop::Failed(error)) => {
            complain_of(source.as_os_str().as_bytes(), &error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Why a command ends early.
enum Stop {
    /// Whoever reads our output closed it.
    ReaderGone,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// Of standard output; nothing else here is an `io::Error`.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Stop::ReaderGone,
            _ => Stop::Failed(Error::io(&error, "standard output")),
        }
    }
}

type Outcome<T> = std::result::Result<T, Stop>;

fn open(source: &Path) -> Result<Filesystem> {
    let options = Options {
        cache_bytes: options::default_cache_size(),
        threads: options::default_threads(),
        ..Options::default()
    };
    Filesystem::open(source, &options)
}

/// Standard output without the line buffer of the standard library, which looks for newlines in data.
fn output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Says what is wrong with `file`, whose name the error may begin with already.
fn complain_of(file: &[u8], error: &Error) {
    let file = printable_bytes(file);
    let text = printable(&error.to_string());
    let reason = text.strip_prefix(&format!("{file}: ")).unwrap_or(&text);
    complain(&format!("{file}: {reason}"));
}

/// Writes the bytes of one file; whether all went well.
fn copy(source: &Path, path: &OsStr) -> Outcome<bool> {
    let filesystem = open(source)?;
    let mut output = output()?;
    match copy_file(&filesystem, path.as_bytes(), &mut output) {
        Err(Stop::Failed(error)) => {
            complain_of(path.as_bytes(), &error);
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

fn copy_file(filesystem: &Filesystem, path: &[u8], output: &mut File) -> Outcome<()> {
    let found = filesystem.resolve(path)?;
    let handle = filesystem.open_file(found.ino)?;
    let mut offset = 0;
    loop {
        let piece = filesystem.read(handle, offset, PIECE)?;
        if piece.is_empty() {
            return Ok(());
        }
        output.write_all(&piece)?;
        offset += crate::wire::to_u64(piece.len());
    }
}

/// Lists one path; whether all of it could be.
fn list(source: &Path, path: Option<&OsStr>, long: bool, recursive: bool) -> Outcome<bool> {
    let filesystem = open(source)?;
    let mut listing = Listing {
        filesystem: &filesystem,
        long,
        recursive,
        escape: io::stdout().is_terminal(),
        output: BufWriter::new(output()?),
        complete: true,
    };
    let path = path.map_or_else(|| OsString::from("/"), OsStr::to_owned);
    let outcome = listing.path(path.as_bytes());
    listing.output.flush()?;
    outcome.map(|()| listing.complete)
}

/// A name of a directory that was fetched.
struct Named {
    name: Vec<u8>,
    ino: Ino,
    stat: Stat,
}

impl Named {
    fn new(name: &[u8], entry: &fs::Entry) -> Self {
        Named {
            name: name.to_vec(),
            ino: entry.ino,
            stat: entry.attributes,
        }
    }
}

/// A directory that is still to be listed.
struct Pending {
    path: Vec<u8>,
    ino: Ino,
}

struct Listing<'a> {
    filesystem: &'a Filesystem,
    long: bool,
    recursive: bool,
    escape: bool,
    output: BufWriter<File>,
    complete: bool,
}

impl Listing<'_> {
    fn path(&mut self, path: &[u8]) -> Outcome<()> {
        match self.find(path) {
            Ok(found) if found.attributes.kind == Kind::Directory => self.tree(Pending {
                path: path.to_vec(),
                ino: found.ino,
            }),
            Ok(found) => self.line(
                path,
                &Named {
                    name: path.to_vec(),
                    ino: found.ino,
                    stat: found.attributes,
                },
            ),
            Err(error) => {
                self.fail(path, &error);
                Ok(())
            }
        }
    }

    /// As ls(1) does: a link to a directory stands for the directory, unless details are asked for.
    fn find(&self, path: &[u8]) -> Result<fs::Entry> {
        let itself = self.filesystem.resolve_link(path)?;
        let follow = !self.long || path.ends_with(b"/");
        if itself.attributes.kind == Kind::Symlink && follow {
            let target = self.filesystem.resolve(path);
            return Ok(target.unwrap_or(itself));
        }
        Ok(itself)
    }

    /// Lists a directory and, if that was asked for, all beneath it, each before what is in it.
    fn tree(&mut self, first: Pending) -> Outcome<()> {
        let mut pending = vec![first];
        let mut separate = false;
        while let Some(next) = pending.pop() {
            if self.recursive {
                let blank = if std::mem::replace(&mut separate, true) {
                    "\n"
                } else {
                    ""
                };
                self.output.write_all(blank.as_bytes())?;
                self.name(&next.path)?;
                self.output.write_all(b":\n")?;
            }
            let mut beneath = self.directory(&next)?;
            self.filesystem.forget(next.ino, 1);
            beneath.reverse();
            pending.append(&mut beneath);
        }
        Ok(())
    }

    /// Lists one directory; the directories in it, if they are to be listed too.
    fn directory(&mut self, directory: &Pending) -> Outcome<Vec<Pending>> {
        let mut beneath = Vec::new();
        let handle = match self.filesystem.opendir(directory.ino) {
            Ok(handle) => handle,
            Err(error) => {
                self.fail(&directory.path, &error);
                return Ok(beneath);
            }
        };
        let mut cookie = 0;
        loop {
            let batch = self.batch(directory, handle, &mut cookie);
            let batch = match batch {
                Ok(batch) if batch.is_empty() => break,
                Ok(batch) => batch,
                Err(error) => {
                    self.fail(&directory.path, &error);
                    break;
                }
            };
            for named in batch.iter().filter(|named| !is_dot(&named.name)) {
                let path = join(&directory.path, &named.name);
                self.line(&path, named)?;
                if self.recursive && named.stat.kind == Kind::Directory {
                    beneath.push(Pending {
                        path,
                        ino: named.ino,
                    });
                } else {
                    self.filesystem.forget(named.ino, 1);
                }
            }
        }
        self.filesystem.release(handle);
        Ok(beneath)
    }

    /// The next names of an open directory; none at its end.
    fn batch(
        &mut self,
        directory: &Pending,
        handle: Handle,
        cookie: &mut u64,
    ) -> Result<Vec<Named>> {
        let mut batch = Vec::new();
        let mut unknown = Vec::new();
        self.filesystem
            .readdir_plus(handle, *cookie, &mut |listed, entry| {
                if batch.len() == BATCH {
                    return true;
                }
                *cookie = listed.next;
                match entry {
                    Some(entry) => batch.push(Named::new(listed.name, entry)),
                    None => unknown.push(listed.name.to_vec()),
                }
                false
            })?;
        for name in unknown {
            match self.filesystem.lookup(directory.ino, &name) {
                Ok(entry) => batch.push(Named::new(&name, &entry)),
                Err(error) => self.fail(&join(&directory.path, &name), &error),
            }
        }
        Ok(batch)
    }

    /// One line of the listing.
    fn line(&mut self, path: &[u8], named: &Named) -> Outcome<()> {
        if self.long {
            let stat = match self.filesystem.getattr(named.ino) {
                Ok(entry) => entry.attributes,
                Err(error) => {
                    self.fail(path, &error);
                    named.stat
                }
            };
            write!(self.output, "{} {:>13} ", mode(&stat), stat.size)?;
        }
        self.name(&named.name)?;
        if self.long && named.stat.kind == Kind::Symlink {
            match self.filesystem.readlink(named.ino) {
                Ok(text) => {
                    self.output.write_all(b" -> ")?;
                    self.name(&text)?;
                }
                Err(error) => self.fail(path, &error),
            }
        }
        self.output.write_all(b"\n")?;
        self.check(path, named);
        Ok(())
    }

    /// Remembers, and says, that what bears this name cannot be read.
    fn check(&mut self, path: &[u8], named: &Named) {
        if named.stat.kind != Kind::File {
            return;
        }
        if let Ok(reason) = self.filesystem.getxattr(named.ino, b"user.h5fs.error") {
            let reason = String::from_utf8_lossy(&reason).trim_end().to_owned();
            self.fail(path, &Error::Usage(reason));
        }
    }

    fn name(&mut self, name: &[u8]) -> io::Result<()> {
        if self.escape {
            self.output.write_all(printable_bytes(name).as_bytes())
        } else {
            self.output.write_all(name)
        }
    }

    fn fail(&mut self, path: &[u8], error: &Error) {
        self.complete = false;
        // What was listed before comes first; if it cannot be written, the next line says so.
        let _ = self.output.flush();
        complain_of(path, error);
    }
}

fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    [directory, b"/", name].concat()
}

/// Kind and permissions as ls(1) writes them.
fn mode(stat: &Stat) -> String {
    let kind = match stat.kind {
        Kind::Directory => 'd',
        Kind::File => '-',
        Kind::Symlink => 'l',
    };
    let bits = (0..9).rev().zip("rwxrwxrwx".chars());
    let shown = bits.map(|(bit, letter)| {
        if stat.permissions >> bit & 1 == 1 {
            letter
        } else {
            '-'
        }
    });
    std::iter::once(kind).chain(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_as_ls_writes_them() {
        let stat = Stat {
            ino: 1,
            kind: Kind::Directory,
            size: 0,
            blocks: 0,
            permissions: 0o750,
            links: 1,
            uid: 0,
            gid: 0,
            modified: (0, 0),
        };
        assert_eq!(mode(&stat), "drwxr-x---");
    }

    #[test]
    fn paths_are_joined_with_one_slash() {
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b"x/y", b"a"), b"x/y/a");
    }
}

//! `h5fs ls`: the names of a mount, without one.
//!
//! Names go to a terminal escaped and in colour, to a pipe as they are. An entry that cannot be
//! listed or read is named on standard error, after the lines that precede it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use crate::cli::args::Source;
use crate::cli::columns::{self, Cells, Widths};
use crate::cli::complaint::complain_of;
use crate::cli::printable::printable_bytes;
use crate::cli::reading::{self, Outcome};
use crate::cli::style::{Paint, Style};
use crate::cli::walk::{Named, Names, join};
use crate::error::{Error, Result};
use crate::fs::{self, Filesystem, Ino, Kind};

/// Lines of a directory that are aligned with each other; those behind them are with these, as far
/// as they fit.
const ALIGNED: usize = 4096;

/// Lists one path; whether all of it could be.
pub(super) fn list(
    source: &Source,
    path: Option<&OsStr>,
    long: bool,
    recursive: bool,
) -> Outcome<bool> {
    // In the cage no terminal is told from a file.
    let (escape, paint) = (io::stdout().is_terminal(), Paint::of(&io::stdout()));
    let filesystem = reading::open(source, false)?;
    let mut listing = Listing {
        filesystem: &filesystem,
        long,
        recursive,
        escape,
        paint,
        output: BufWriter::new(reading::output()?),
        complete: true,
    };
    let path = path.map_or_else(|| OsString::from("/"), OsStr::to_owned);
    let outcome = listing.path(path.as_bytes());
    listing.output.flush()?;
    outcome.map(|()| listing.complete)
}

/// A directory that is still to be listed.
struct Pending {
    path: Vec<u8>,
    ino: Ino,
}

/// A line that is to be written.
struct Line {
    path: Vec<u8>,
    name: Vec<u8>,
    /// In a long listing.
    cells: Option<Cells>,
    /// The text of a symbolic link, in a long listing.
    target: Option<Vec<u8>>,
    style: Style,
    /// The faults of what bears the name.
    faults: Vec<Error>,
}

struct Listing<'a> {
    filesystem: &'a Filesystem,
    long: bool,
    recursive: bool,
    escape: bool,
    paint: Paint,
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
            Ok(found) => {
                let named = Named {
                    name: path.to_vec(),
                    ino: found.ino,
                    stat: found.attributes,
                };
                let line = self.line(path.to_vec(), &named);
                self.write(&mut vec![line], &mut Widths::default())
            }
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
                self.name(&next.path, Style::Plain)?;
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
        let mut lines = Vec::new();
        let mut widths = Widths::default();
        let torn = match Names::open(self.filesystem, directory.ino) {
            Err(error) => Some(error),
            Ok(mut names) => loop {
                let named = match names.next() {
                    Ok(Some(named)) => named,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                };
                let path = join(&directory.path, &named.name);
                lines.push(self.line(path.clone(), &named));
                if lines.len() == ALIGNED {
                    self.write(&mut lines, &mut widths)?;
                }
                let ino = named.ino;
                if self.recursive && named.stat.kind == Kind::Directory {
                    beneath.push(Pending { path, ino });
                } else {
                    self.filesystem.forget(ino, 1);
                }
            },
        };
        self.write(&mut lines, &mut widths)?;
        if let Some(error) = torn {
            self.fail(&directory.path, &error);
        }
        Ok(beneath)
    }

    /// The line to be written for a name.
    fn line(&self, path: Vec<u8>, named: &Named) -> Line {
        let mut line = Line {
            path,
            name: named.name.clone(),
            cells: None,
            target: None,
            style: Style::Plain,
            faults: Vec::new(),
        };
        if self.long {
            self.describe(named, &mut line);
        }
        if named.stat.kind == Kind::File
            && let Some(reason) = self.text(named.ino, b"user.h5fs.error")
        {
            line.faults.push(Error::Usage(reason));
        }
        line.style = self.style(named, &line);
        line
    }

    /// Adds the parts of a long listing.
    fn describe(&self, named: &Named, line: &mut Line) {
        let stat = match self.filesystem.getattr(named.ino) {
            Ok(entry) => entry.attributes,
            Err(error) => {
                line.faults.push(error);
                named.stat
            }
        };
        line.cells = Some(columns::cells(self.filesystem, named.ino, &stat));
        if named.stat.kind == Kind::Symlink {
            match self.filesystem.readlink(named.ino) {
                Ok(text) => line.target = Some(text),
                Err(error) => line.faults.push(error),
            }
        }
    }

    fn style(&self, named: &Named, line: &Line) -> Style {
        match named.stat.kind {
            _ if !self.paint.is_on() => Style::Plain,
            _ if !line.faults.is_empty() => Style::Fault,
            Kind::Directory => Style::Directory,
            Kind::Symlink => Style::Symlink,
            Kind::File if self.text(named.ino, b"user.h5fs.shape").is_some() => Style::Dataset,
            Kind::File => Style::Plain,
        }
    }

    fn text(&self, ino: Ino, name: &[u8]) -> Option<String> {
        let value = self.filesystem.getxattr(ino, name).ok()?;
        Some(String::from_utf8_lossy(&value).trim_end().to_owned())
    }

    /// Writes lines, and behind each what is wrong with it; none are left.
    fn write(&mut self, lines: &mut Vec<Line>, widths: &mut Widths) -> Outcome<()> {
        for cells in lines.iter().filter_map(|line| line.cells.as_ref()) {
            widths.fit(cells);
        }
        for line in lines.drain(..) {
            if let Some(cells) = &line.cells {
                self.output.write_all(widths.aligned(cells).as_bytes())?;
            }
            self.name(&line.name, line.style)?;
            if let Some(target) = &line.target {
                self.output.write_all(b" -> ")?;
                self.name(target, Style::Plain)?;
            }
            self.output.write_all(b"\n")?;
            for fault in &line.faults {
                self.fail(&line.path, fault);
            }
        }
        Ok(())
    }

    fn name(&mut self, name: &[u8], style: Style) -> io::Result<()> {
        let (before, after) = self.paint.around(style);
        self.output.write_all(before.as_bytes())?;
        if self.escape {
            self.output.write_all(printable_bytes(name).as_bytes())?;
        } else {
            self.output.write_all(name)?;
        }
        self.output.write_all(after.as_bytes())
    }

    fn fail(&mut self, path: &[u8], error: &Error) {
        self.complete = false;
        // The entries listed before come first; if they cannot be written, the next line says so.
        let _ = self.output.flush();
        complain_of(path, error);
    }
}

//! `h5fs ls`: the names of a mount, without one.
//!
//! Names of an ordinary directory are sorted; those of a group stand in the order in which they were
//! made, where the file tracks that, else by name, as h5py lists them. A group with too many to be
//! sorted has those of its index, and a line on standard error says so.
//! Names go to a terminal escaped and in colour, to a pipe as they are. An entry that cannot be
//! listed or read is named on standard error, after the lines that precede it. How far a recursive
//! listing has come is shown there, too.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use crate::cli::args::Format;
use crate::cli::inspect::columns::{self, Cells, Widths};
use crate::cli::inspect::glob::expand;
use crate::cli::inspect::listed_json::Listed;
use crate::cli::inspect::reading::{self, Outcome, Source};
use crate::cli::inspect::walk::{Named, Names, join};
use crate::cli::words::complaint::{complain, complain_of, of_text};
use crate::cli::words::printable::printable_bytes;
use crate::cli::words::progress::{Done, Progress};
use crate::cli::words::style::{Paint, Style};
use crate::error::{Error, Result};
use crate::fs::{self, Ino, Kind, Requests};

/// Lines of a directory that are aligned with each other; those behind them are with these, as far
/// as they fit.
const ALIGNED: usize = 4096;

/// Lists paths; whether all of them could be.
pub(in crate::cli) fn list(
    source: Source<'_>,
    paths: &[OsString],
    format: Format,
) -> Outcome<bool> {
    // In the cage no terminal is told from a file.
    let escape = format.terminal || io::stdout().is_terminal();
    let paint = Paint::of(escape);
    let progress = format.recursive.then(Progress::new);
    let tree = reading::open_tree(source, paths)?;
    reading::refuse_none(tree.requests(), paths)?;
    let mut listing = Listing {
        tree: tree.requests(),
        format,
        escape,
        paint,
        output: BufWriter::new(reading::output()?),
        progress,
        done: Done::default(),
        complete: true,
        is_first: true,
    };
    let outcome = listing.all(paths);
    listing.make_room();
    listing.output.flush()?;
    outcome.map(|()| listing.complete)
}

/// A directory that is still to be listed.
struct Pending {
    path: Vec<u8>,
    ino: Ino,
}

/// A step of a listing of directories.
enum Step {
    List(Pending),
    /// All beneath this directory has been listed.
    Leave(Ino),
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
    is_directory: bool,
    /// The faults of what bears the name.
    faults: Vec<Error>,
}

struct Listing<'a> {
    tree: &'a dyn Requests,
    format: Format,
    escape: bool,
    paint: Paint,
    output: BufWriter<File>,
    /// Of a recursive listing.
    progress: Option<Progress>,
    done: Done,
    complete: bool,
    /// Whether no directory has been written yet.
    is_first: bool,
}

impl Listing<'_> {
    fn all(&mut self, paths: &[OsString]) -> Outcome<()> {
        if self.format.json {
            self.output.write_all(b"[")?;
        }
        match &self.expanded(paths)[..] {
            [] if paths.is_empty() => self.path(b"/")?,
            [path] => self.path(path)?,
            paths => self.paths(paths)?,
        }
        if self.format.json {
            let end: &[u8] = if self.is_first { b"]\n" } else { b"\n]\n" };
            self.output.write_all(end)?;
        }
        Ok(())
    }

    /// The paths that the patterns among `paths` match; those that match nothing are told.
    fn expanded(&mut self, paths: &[OsString]) -> Vec<Vec<u8>> {
        let mut expanded = Vec::new();
        for path in paths {
            match expand(self.tree, path.as_bytes()) {
                Ok(found) => expanded.extend(found),
                Err(error) => self.fail(path.as_bytes(), &error),
            }
        }
        expanded
    }

    /// Lists files first, and then directories, each under its name, as ls(1) does.
    fn paths(&mut self, paths: &[Vec<u8>]) -> Outcome<()> {
        let mut directories = Vec::new();
        for path in paths {
            if let Some(directory) = self.entry(path)? {
                directories.push(directory);
            }
        }
        for directory in directories {
            self.directories(directory, true)?;
        }
        Ok(())
    }

    fn path(&mut self, path: &[u8]) -> Outcome<()> {
        match self.entry(path)? {
            Some(directory) => self.directories(directory, self.format.recursive),
            None => Ok(()),
        }
    }

    /// Writes the line of what stands at `path`; a directory that is to be listed comes back.
    fn entry(&mut self, path: &[u8]) -> Outcome<Option<Pending>> {
        let found = match self.find(path) {
            Ok(found) => found,
            Err(error) => {
                self.fail(path, &error);
                return Ok(None);
            }
        };
        let path = path.to_vec();
        if found.attributes.kind == Kind::Directory && !self.format.directory {
            let ino = found.ino;
            return Ok(Some(Pending { path, ino }));
        }
        if !self.format.json {
            self.is_first = false;
        }
        let named = Named {
            name: path.clone(),
            ino: found.ino,
            stat: found.attributes,
        };
        let line = self.line(path, &named);
        self.write(&mut vec![line], &mut Widths::default())?;
        Ok(None)
    }

    /// As ls(1) does: a link to a directory stands for the directory, unless details are asked for.
    fn find(&self, path: &[u8]) -> Result<fs::Entry> {
        let itself = self.tree.find(path, false)?;
        let is_itself = self.format.long || self.format.directory;
        let follow = !is_itself || path.ends_with(b"/");
        if itself.attributes.kind == Kind::Symlink && follow {
            return Ok(self.tree.find(path, true).unwrap_or_else(|_| {
                // That the link is read makes the log say why it leads nowhere.
                let _ = self.tree.readlink(itself.ino);
                itself
            }));
        }
        Ok(itself)
    }

    /// Lists a directory and, if that was asked for, all beneath it, each before what is in it.
    fn directories(&mut self, first: Pending, with_names: bool) -> Outcome<()> {
        let mut steps = vec![Step::List(first)];
        while let Some(step) = steps.pop() {
            let next = match step {
                Step::List(next) => next,
                Step::Leave(ino) => {
                    self.tree.forget(ino, 1);
                    continue;
                }
            };
            if with_names && !self.format.json {
                self.make_room();
                let blank = if std::mem::replace(&mut self.is_first, false) {
                    ""
                } else {
                    "\n"
                };
                self.output.write_all(blank.as_bytes())?;
                self.name(&next.path, Style::Plain)?;
                self.output.write_all(b":\n")?;
            }
            steps.push(Step::Leave(next.ino));
            let beneath = self.directory(&next)?;
            steps.extend(beneath.into_iter().rev().map(Step::List));
        }
        Ok(())
    }

    /// Lists one directory; the directories in it, if they are to be listed too.
    fn directory(&mut self, directory: &Pending) -> Outcome<Vec<Pending>> {
        let mut beneath = Vec::new();
        let mut lines = Vec::new();
        let mut widths = Widths::default();
        lines.extend(self.views(directory));
        let mut are_unordered = false;
        let torn = match Names::open(self.tree, directory.ino) {
            Err(error) => Some(error),
            Ok(mut names) => loop {
                let named = match names.next() {
                    Ok(Some(named)) => named,
                    Ok(None) => {
                        are_unordered = names.are_unordered();
                        break None;
                    }
                    Err(error) => break Some(error),
                };
                let path = join(&directory.path, &named.name);
                lines.push(self.line(path.clone(), &named));
                if lines.len() == ALIGNED {
                    self.write(&mut lines, &mut widths)?;
                }
                self.show_progress()?;
                let ino = named.ino;
                if self.format.recursive && named.stat.kind == Kind::Directory {
                    beneath.push(Pending { path, ino });
                } else {
                    self.tree.forget(ino, 1);
                }
            },
        };
        self.write(&mut lines, &mut widths)?;
        if are_unordered {
            self.make_room();
            let note = "too many names to be sorted: they are in the order of the file's index";
            complain(&of_text(&directory.path, note));
        }
        if let Some(error) = torn.or_else(|| self.fault(directory.ino)) {
            self.fail(&directory.path, &error);
        }
        Ok(beneath)
    }

    /// The line for `.h5fs`, which no directory lists.
    fn views(&self, directory: &Pending) -> Option<Line> {
        const NAME: &[u8] = b".h5fs";
        if !self.format.all {
            return None;
        }
        let found = self.tree.lookup(directory.ino, NAME).ok()?;
        let named = Named {
            name: NAME.to_vec(),
            ino: found.ino,
            stat: found.attributes,
        };
        let line = self.line(join(&directory.path, NAME), &named);
        self.tree.forget(named.ino, 1);
        Some(line)
    }

    /// The line to be written for a name.
    fn line(&self, path: Vec<u8>, named: &Named) -> Line {
        let mut line = Line {
            path,
            name: named.name.clone(),
            cells: None,
            target: None,
            style: Style::Plain,
            is_directory: named.stat.kind == Kind::Directory,
            faults: Vec::new(),
        };
        if self.format.long || self.format.json {
            self.describe(named, &mut line);
        }
        if named.stat.kind == Kind::File {
            line.faults.extend(self.fault(named.ino));
        }
        line.style = self.style(named, &line);
        line
    }

    /// Adds the parts of a long listing.
    fn describe(&self, named: &Named, line: &mut Line) {
        let stat = match self.tree.getattr(named.ino) {
            Ok(entry) => entry.attributes,
            Err(error) => {
                line.faults.push(error);
                named.stat
            }
        };
        let human = self.format.human_readable && !self.format.json;
        line.cells = Some(columns::cells(self.tree, named.ino, &stat, human));
        if named.stat.kind == Kind::Symlink {
            match self.tree.readlink(named.ino) {
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

    /// What the thing itself says that is wrong with it.
    fn fault(&self, ino: Ino) -> Option<Error> {
        self.text(ino, b"user.h5fs.error").map(Error::Usage)
    }

    fn text(&self, ino: Ino, name: &[u8]) -> Option<String> {
        let value = self.tree.getxattr(ino, name).ok()?;
        Some(String::from_utf8_lossy(&value).trim_end().to_owned())
    }

    /// Writes lines, and behind each what is wrong with it; none are left.
    fn write(&mut self, lines: &mut Vec<Line>, widths: &mut Widths) -> Outcome<()> {
        self.make_room();
        for cells in lines.iter().filter_map(|line| line.cells.as_ref()) {
            widths.fit(cells);
        }
        for line in lines.drain(..) {
            if self.format.json {
                self.write_json(&line)?;
                continue;
            }
            if let Some(cells) = &line.cells {
                self.output.write_all(widths.aligned(cells).as_bytes())?;
            }
            self.name(&line.name, line.style)?;
            if self.format.slash && line.is_directory {
                self.output.write_all(b"/")?;
            }
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

    fn write_json(&mut self, line: &Line) -> Outcome<()> {
        let Some(cells) = &line.cells else {
            return Ok(());
        };
        let faults: Vec<_> = line.faults.iter().map(Error::to_string).collect();
        let listed = Listed {
            path: &join(b"/", line.path.strip_prefix(b"/").unwrap_or(&line.path)),
            cells,
            target: line.target.as_deref(),
            faults: &faults,
        };
        let comma = if self.is_first { "\n" } else { ",\n" };
        self.is_first = false;
        self.complete &= faults.is_empty();
        Ok(write!(self.output, "{comma}{}", listed.object())?)
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

    /// One more name was listed.
    fn show_progress(&mut self) -> io::Result<()> {
        self.done.objects += 1;
        if let Some(progress) = self.progress.as_mut().filter(|progress| progress.is_due()) {
            // What is written until then stands before the line, which is on the same terminal.
            self.output.flush()?;
            progress.show(self.done, None);
        }
        Ok(())
    }

    /// Makes room for other lines.
    fn make_room(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
    }

    fn fail(&mut self, path: &[u8], error: &Error) {
        self.complete = false;
        self.make_room();
        // The entries listed before come first; if they cannot be written, the next line says so.
        let _ = self.output.flush();
        complain_of(path, error);
    }
}

//! `h5fs ls`: lists the names that a mount would show, without a mount.
//!
//! Names of an ordinary directory are sorted. Names of a group are in creation order if the file
//! tracks it, otherwise sorted by name, as h5py lists them. A group with too many names to sort is
//! listed in the order of its index, with a note on standard error.
//!
//! Names are escaped and coloured on a terminal, and unchanged in a pipe. An entry that cannot be
//! listed or read is reported on standard error, after the lines that precede it. A recursive
//! listing also shows its progress there.

mod tree;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use h5fs_reader::error::{Error, Result};
use h5fs_tree::{FileKind, Ino, Requests};

use crate::cli::args::ListFormat;
use crate::cli::inspect::columns::{self, Cells, ColumnWidths};
use crate::cli::inspect::command_source::{self, CommandResult, CommandSource};
use crate::cli::inspect::glob::expand_pattern;
use crate::cli::inspect::hints::suggest_path;
use crate::cli::inspect::listed_json::JsonEntry;
use crate::cli::inspect::walk::{DirectoryNames, NamedInode, join};
use crate::cli::text::error_message::{message_about, print_error, print_file_error};
use crate::cli::text::printable::printable_bytes;
use crate::cli::text::progress::{CompletedWork, ProgressLine};
use crate::cli::text::style::{Coloring, Style};

/// Number of lines that are aligned with each other in a long listing. Later lines of the directory
/// keep the column widths unless their texts are wider.
const ALIGNED_LINES: usize = 4096;

/// Lists paths. Returns whether all of them could be listed.
pub(in crate::cli) fn list(
    source: CommandSource<'_>,
    paths: &[OsString],
    format: ListFormat,
) -> CommandResult<bool> {
    // Must precede the sandbox, which hides whether an output is a terminal.
    let escape = format.terminal || io::stdout().is_terminal();
    let paint = Coloring::for_output(escape);
    let progress = format.recursive.then(ProgressLine::new);
    let tree = command_source::open_tree(source, paths)?;
    command_source::refuse_unmatched(tree.requests(), paths)?;
    let mut listing = ListWriter {
        tree: tree.requests(),
        format,
        escape,
        paint,
        output: BufWriter::new(command_source::stdout_file()?),
        progress,
        done: CompletedWork::default(),
        is_complete: true,
        is_first: true,
    };
    let outcome = listing.write_all(paths);
    listing.clear_progress();
    listing.output.flush()?;
    outcome.map(|()| listing.is_complete)
}

/// A directory whose content is still to be listed.
struct PendingDirectory {
    path: Vec<u8>,
    ino: Ino,
}

/// A step of a recursive listing: listing a directory, or leaving it.
enum ListStep {
    List(PendingDirectory),
    /// Releases the inode of a directory with `forget`, after everything in the directory has been
    /// listed.
    ReleaseDirectory(Ino),
}

/// The line of one entry in a listing.
struct ListingLine {
    path: Vec<u8>,
    name: Vec<u8>,
    /// The texts in the columns of a long listing.
    cells: Option<Cells>,
    /// The target of a symbolic link in a long listing.
    target: Option<Vec<u8>>,
    style: Style,
    is_directory: bool,
    /// The errors of the listed object.
    faults: Vec<Error>,
}

struct ListWriter<'a> {
    tree: &'a dyn Requests,
    format: ListFormat,
    escape: bool,
    paint: Coloring,
    output: BufWriter<File>,
    /// The progress of a recursive listing.
    progress: Option<ProgressLine>,
    done: CompletedWork,
    is_complete: bool,
    /// Whether nothing has been written yet: no heading and no JSON object.
    is_first: bool,
}

impl ListWriter<'_> {
    fn write_all(&mut self, paths: &[OsString]) -> CommandResult<()> {
        if self.format.json {
            self.output.write_all(b"[")?;
        }
        match &self.expand_patterns(paths)[..] {
            [] if paths.is_empty() => self.list_path(b"/")?,
            [path] => self.list_path(path)?,
            paths => self.list_paths(paths)?,
        }
        if self.format.json {
            let end: &[u8] = if self.is_first { b"]\n" } else { b"\n]\n" };
            self.output.write_all(end)?;
        }
        Ok(())
    }

    /// Expands the patterns among `paths`. Prints an error for each pattern without a match.
    fn expand_patterns(&mut self, paths: &[OsString]) -> Vec<Vec<u8>> {
        let mut expanded = Vec::new();
        for path in paths {
            match expand_pattern(self.tree, path.as_bytes()) {
                Ok(found) => expanded.extend(found),
                Err(error) => self.report_failure(path.as_bytes(), &error),
            }
        }
        expanded
    }

    /// Lists files first, and then each directory under its name, as ls(1) does.
    fn list_paths(&mut self, paths: &[Vec<u8>]) -> CommandResult<()> {
        let mut directories = Vec::new();
        for path in paths {
            if let Some(directory) = self.write_entry(path)? {
                directories.push(directory);
            }
        }
        for directory in directories {
            self.list_content(directory, true)?;
        }
        Ok(())
    }

    fn list_path(&mut self, path: &[u8]) -> CommandResult<()> {
        match self.write_entry(path)? {
            Some(directory) => self.list_content(directory, self.format.recursive),
            None => Ok(()),
        }
    }

    /// Lists the content of a directory, as a tree if the format says so.
    fn list_content(&mut self, directory: PendingDirectory, with_name: bool) -> CommandResult<()> {
        if self.format.tree {
            self.write_tree(directory)
        } else {
            self.list_directories(directory, with_name)
        }
    }

    /// Writes the line of the entry at `path`. If the entry is a directory to list, returns it
    /// instead.
    fn write_entry(&mut self, path: &[u8]) -> CommandResult<Option<PendingDirectory>> {
        let found = match self.find(path) {
            Ok(found) => found,
            Err(error) => {
                self.report_failure(path, &suggest_path(self.tree, path, error));
                return Ok(None);
            }
        };
        let path = path.to_vec();
        if found.attributes.kind == FileKind::Directory && !self.format.directory {
            let ino = found.ino;
            return Ok(Some(PendingDirectory { path, ino }));
        }
        if !self.format.json {
            self.is_first = false;
        }
        let named = NamedInode {
            name: path.clone(),
            ino: found.ino,
            stat: found.attributes,
        };
        let line = self.new_line(path, &named);
        self.write_lines(&mut vec![line], &mut ColumnWidths::default())?;
        Ok(None)
    }

    /// Finds the entry at a path. Follows a symbolic link as ls(1) does. In a long listing, or with
    /// `--directory`, follows it only if the path ends with `/`.
    fn find(&self, path: &[u8]) -> Result<h5fs_tree::LookupEntry> {
        let itself = self.tree.find_path(path, false)?;
        let is_itself = self.format.long || self.format.directory;
        let follow = !is_itself || path.ends_with(b"/");
        if itself.attributes.kind == FileKind::Symlink && follow {
            return Ok(self.tree.find_path(path, true).unwrap_or_else(|_| {
                // Reading the link makes the log explain why its target cannot be found.
                let _ = self.tree.readlink(itself.ino);
                itself
            }));
        }
        Ok(itself)
    }

    /// Lists a directory. In a recursive listing, lists all directories in it as well, each before
    /// its content.
    fn list_directories(&mut self, first: PendingDirectory, with_names: bool) -> CommandResult<()> {
        let mut steps = vec![ListStep::List(first)];
        while let Some(step) = steps.pop() {
            let next = match step {
                ListStep::List(next) => next,
                ListStep::ReleaseDirectory(ino) => {
                    self.tree.forget(ino, 1);
                    continue;
                }
            };
            if with_names && !self.format.json {
                self.clear_progress();
                let blank = if std::mem::replace(&mut self.is_first, false) {
                    ""
                } else {
                    "\n"
                };
                self.output.write_all(blank.as_bytes())?;
                self.write_name(&next.path, Style::Plain)?;
                self.output.write_all(b":\n")?;
            }
            steps.push(ListStep::ReleaseDirectory(next.ino));
            let beneath = self.list_directory(&next)?;
            steps.extend(beneath.into_iter().rev().map(ListStep::List));
        }
        Ok(())
    }

    /// Lists one directory. Returns its subdirectories if they must be listed as well.
    fn list_directory(
        &mut self,
        directory: &PendingDirectory,
    ) -> CommandResult<Vec<PendingDirectory>> {
        let mut beneath = Vec::new();
        let mut lines = Vec::new();
        let mut widths = ColumnWidths::default();
        lines.extend(self.views_line(directory));
        let mut are_unordered = false;
        let torn = match DirectoryNames::open(self.tree, directory.ino) {
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
                lines.push(self.new_line(path.clone(), &named));
                if lines.len() == ALIGNED_LINES {
                    self.write_lines(&mut lines, &mut widths)?;
                }
                self.show_progress()?;
                let ino = named.ino;
                if self.format.recursive && named.stat.kind == FileKind::Directory {
                    beneath.push(PendingDirectory { path, ino });
                } else {
                    self.tree.forget(ino, 1);
                }
            },
        };
        self.write_lines(&mut lines, &mut widths)?;
        if are_unordered {
            self.clear_progress();
            let note = "too many names to sort: they are in the order of the file's index";
            print_error(&message_about(&directory.path, note));
        }
        if let Some(error) = torn.or_else(|| self.object_error(directory.ino)) {
            self.report_failure(&directory.path, &error);
        }
        Ok(beneath)
    }

    /// Returns the line for `.h5fs`, which is not part of any directory's list of names.
    fn views_line(&self, directory: &PendingDirectory) -> Option<ListingLine> {
        const NAME: &[u8] = b".h5fs";
        if !self.format.all {
            return None;
        }
        let found = self.tree.lookup(directory.ino, NAME).ok()?;
        let named = NamedInode {
            name: NAME.to_vec(),
            ino: found.ino,
            stat: found.attributes,
        };
        let line = self.new_line(join(&directory.path, NAME), &named);
        self.tree.forget(named.ino, 1);
        Some(line)
    }

    /// Returns the line for an entry.
    fn new_line(&self, path: Vec<u8>, named: &NamedInode) -> ListingLine {
        let mut line = ListingLine {
            path,
            name: named.name.clone(),
            cells: None,
            target: None,
            style: Style::Plain,
            is_directory: named.stat.kind == FileKind::Directory,
            faults: Vec::new(),
        };
        if self.format.long || self.format.json {
            self.describe(named, &mut line);
        }
        if named.stat.kind == FileKind::File {
            line.faults.extend(self.object_error(named.ino));
        }
        line.style = self.style(named, &line);
        line
    }

    /// Adds the columns of a long listing to a line.
    fn describe(&self, named: &NamedInode, line: &mut ListingLine) {
        let stat = match self.tree.getattr(named.ino) {
            Ok(entry) => entry.attributes,
            Err(error) => {
                line.faults.push(error);
                named.stat
            }
        };
        let human = self.format.human_readable && !self.format.json;
        line.cells = Some(columns::cells_of_file(self.tree, named.ino, &stat, human));
        if named.stat.kind == FileKind::Symlink {
            match self.tree.readlink(named.ino) {
                Ok(text) => line.target = Some(text),
                Err(error) => line.faults.push(error),
            }
        }
    }

    fn style(&self, named: &NamedInode, line: &ListingLine) -> Style {
        match named.stat.kind {
            _ if !self.paint.is_on() => Style::Plain,
            _ if !line.faults.is_empty() => Style::Fault,
            FileKind::Directory => Style::Directory,
            FileKind::Symlink => Style::Symlink,
            FileKind::File if self.xattr_text(named.ino, b"user.h5fs.shape").is_some() => {
                Style::Dataset
            }
            FileKind::File => Style::Plain,
        }
    }

    /// Returns the error that the object with this inode reports, if there is one.
    fn object_error(&self, ino: Ino) -> Option<Error> {
        self.xattr_text(ino, b"user.h5fs.error").map(Error::Usage)
    }

    fn xattr_text(&self, ino: Ino, name: &[u8]) -> Option<String> {
        let value = self.tree.getxattr(ino, name).ok()?;
        Some(String::from_utf8_lossy(&value).trim_end().to_owned())
    }

    /// Writes all lines, each followed by its faults, and empties `lines`.
    fn write_lines(
        &mut self,
        lines: &mut Vec<ListingLine>,
        widths: &mut ColumnWidths,
    ) -> CommandResult<()> {
        self.clear_progress();
        for cells in lines.iter().filter_map(|line| line.cells.as_ref()) {
            widths.widen_to(cells);
        }
        for line in lines.drain(..) {
            if self.format.json {
                self.write_json(&line)?;
                continue;
            }
            if let Some(cells) = &line.cells {
                self.output.write_all(widths.align(cells).as_bytes())?;
            }
            self.write_name(&line.name, line.style)?;
            if self.format.slash && line.is_directory {
                self.output.write_all(b"/")?;
            }
            if let Some(target) = &line.target {
                self.output.write_all(b" -> ")?;
                self.write_name(target, Style::Plain)?;
            }
            self.output.write_all(b"\n")?;
            for fault in &line.faults {
                self.report_failure(&line.path, fault);
            }
        }
        Ok(())
    }

    fn write_json(&mut self, line: &ListingLine) -> CommandResult<()> {
        let Some(cells) = &line.cells else {
            return Ok(());
        };
        let faults: Vec<_> = line.faults.iter().map(Error::to_string).collect();
        let listed = JsonEntry {
            path: &join(b"/", line.path.strip_prefix(b"/").unwrap_or(&line.path)),
            cells,
            target: line.target.as_deref(),
            faults: &faults,
        };
        let comma = if self.is_first { "\n" } else { ",\n" };
        self.is_first = false;
        self.is_complete &= faults.is_empty();
        Ok(write!(self.output, "{comma}{}", listed.json_line())?)
    }

    fn write_name(&mut self, name: &[u8], style: Style) -> io::Result<()> {
        let (before, after) = self.paint.control_sequences(style);
        self.output.write_all(before.as_bytes())?;
        if self.escape {
            self.output.write_all(printable_bytes(name).as_bytes())?;
        } else {
            self.output.write_all(name)?;
        }
        self.output.write_all(after.as_bytes())
    }

    /// Counts a listed entry, and updates the progress line.
    fn show_progress(&mut self) -> io::Result<()> {
        self.done.objects += 1;
        if let Some(progress) = self.progress.as_mut().filter(|progress| progress.is_due()) {
            // Pending output must precede the progress line, because both may go to the same
            // terminal.
            self.output.flush()?;
            progress.update(self.done, None);
        }
        Ok(())
    }

    /// Clears the progress line before other lines are written.
    fn clear_progress(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
    }

    fn report_failure(&mut self, path: &[u8], error: &Error) {
        self.is_complete = false;
        self.clear_progress();
        // Earlier entries must precede this message. A write error is reported by the next write.
        let _ = self.output.flush();
        print_file_error(path, error);
    }
}

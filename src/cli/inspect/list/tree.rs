//! `h5fs ls --tree`: the groups and datasets below a path as a tree, with types and shapes.

use std::io::Write;

use h5fs_tree::{FileKind, Ino};

use crate::cli::inspect::columns;
use crate::cli::inspect::command_source::CommandResult;
use crate::cli::inspect::list::{ListWriter, PendingDirectory};
use crate::cli::inspect::walk::{DirectoryNames, NamedInode, join};
use crate::cli::text::printable::printable_bytes;
use crate::cli::text::style::Style;

/// Maximum characters of an attribute's value on its line.
const VALUE_WIDTH: usize = 100;

/// A directory whose entries are being written.
struct TreeLevel<'a> {
    directory: PendingDirectory,
    names: DirectoryNames<'a>,
    /// The next entry, which is known before the line of the previous one is written.
    next: Option<NamedInode>,
    /// The text before the branch of each entry.
    prefix: String,
}

impl<'a> ListWriter<'a> {
    /// Writes a directory and everything in it as a tree.
    pub(super) fn write_tree(&mut self, directory: PendingDirectory) -> CommandResult<()> {
        self.write_name(&directory.path, Style::Directory)?;
        self.output.write_all(b"\n")?;
        self.write_attributes(directory.ino, "")?;
        let mut levels = Vec::new();
        levels.extend(self.open_level(directory, String::new()));
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.next.take() else {
                let level = levels.pop();
                level
                    .iter()
                    .for_each(|level| self.tree.forget(level.directory.ino, 1));
                continue;
            };
            let (following, failure) = match level.names.next() {
                Ok(following) => (following, None),
                Err(error) => (None, Some(error)),
            };
            level.next = following;
            let (branch, indent) = match level.next {
                Some(_) => ("├─ ", "│  "),
                None => ("└─ ", "   "),
            };
            let path = join(&level.directory.path, &entry.name);
            let parent = level.directory.path.clone();
            let (line, below) = (level.prefix.clone() + branch, level.prefix.clone() + indent);
            self.write_tree_entry(&path, &entry, &line, &below)?;
            if let Some(error) = failure {
                self.report_failure(&parent, &error);
            }
            if entry.stat.kind == FileKind::Directory {
                let ino = entry.ino;
                levels.extend(self.open_level(PendingDirectory { path, ino }, below));
            } else {
                self.tree.forget(entry.ino, 1);
            }
        }
        Ok(())
    }

    /// Opens a directory of the tree. Reports an error if it cannot be listed.
    fn open_level(&mut self, directory: PendingDirectory, prefix: String) -> Option<TreeLevel<'a>> {
        let opened = DirectoryNames::open(self.tree, directory.ino).and_then(|mut names| {
            let next = names.next()?;
            Ok((names, next))
        });
        match opened {
            Ok((names, next)) => Some(TreeLevel {
                directory,
                names,
                next,
                prefix,
            }),
            Err(error) => {
                self.report_failure(&directory.path, &error);
                self.tree.forget(directory.ino, 1);
                None
            }
        }
    }

    /// Writes the line of an entry, and the lines of its attributes.
    fn write_tree_entry(
        &mut self,
        path: &[u8],
        entry: &NamedInode,
        line: &str,
        below: &str,
    ) -> CommandResult<()> {
        self.output.write_all(line.as_bytes())?;
        let shown = self.new_line(path.to_vec(), entry);
        self.write_name(&entry.name, shown.style)?;
        match entry.stat.kind {
            FileKind::Directory => self.output.write_all(b"/")?,
            FileKind::Symlink => {
                if let Ok(target) = self.tree.readlink(entry.ino) {
                    self.output.write_all(b" -> ")?;
                    self.write_name(&target, Style::Plain)?;
                }
            }
            FileKind::File => {
                let cells = columns::cells_of_file(self.tree, entry.ino, &entry.stat, false);
                let [_, datatype, shape, ..] = cells;
                write!(self.output, "  {datatype} {shape}")?;
            }
        }
        self.output.write_all(b"\n")?;
        for fault in &shown.faults {
            self.report_failure(path, fault);
        }
        if entry.stat.kind != FileKind::Symlink {
            self.write_attributes(entry.ino, below)?;
        }
        Ok(())
    }

    /// Writes a line for each attribute of an object, if the format includes attributes.
    fn write_attributes(&mut self, ino: Ino, prefix: &str) -> CommandResult<()> {
        if !self.format.attributes {
            return Ok(());
        }
        for name in self.tree.listxattr(ino).unwrap_or_default() {
            let Some(own) = name.strip_prefix(b"user.") else {
                continue;
            };
            if own.starts_with(b"h5fs.") {
                continue;
            }
            let value = match self.tree.getxattr(ino, &name) {
                Ok(value) => printable_bytes(value.trim_ascii_end()),
                Err(error) => format!("({error})"),
            };
            let mut shown: String = value.chars().take(VALUE_WIDTH).collect();
            if shown.len() < value.len() {
                shown.push('…');
            }
            let name = printable_bytes(own);
            writeln!(self.output, "{prefix}@{name} = {shown}")?;
        }
        Ok(())
    }
}

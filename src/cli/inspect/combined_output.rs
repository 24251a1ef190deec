//! `h5fs ls`, `cat` and `ndl` of several sources: combines the outputs of their processes.

use std::fs::File;
use std::io::{self, Write};

use h5fs_reader::model::ndl::Syntax;
use h5fs_reader::model::text::json_text;

use crate::cli::inspect::command_source::{self, CommandResult};
use crate::cli::inspect::parallel::{self, ChildArguments, OutputFollower, SourceIterator};
use crate::cli::text::error_message::print_error;
use crate::cli::text::printable::printable_bytes;

/// How the outputs of the processes are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum OutputLayout {
    /// All outputs, one after the other.
    Joined,
    /// Each output after a line with the name of its source, as in ls(1).
    Listed,
    /// Each output as a value of a mapping (YAML or JSON). The key is the name of the source.
    Mapped(Syntax),
}

/// Reads each of `sources` in a separate process, and combines the outputs as `form` says. Returns
/// whether all sources could be read.
pub(in crate::cli) fn write_combined(
    sources: &mut SourceIterator<'_>,
    arguments: &ChildArguments,
    jobs: Option<usize>,
    form: OutputLayout,
) -> CommandResult<bool> {
    let mut writer = CombinedWriter {
        form,
        output: command_source::stdout_file()?,
        sources: 0,
        faulty: 0,
        is_empty: true,
        is_at_start: true,
    };
    parallel::read_sources(sources, arguments, jobs, &mut writer)?;
    writer.finish()?;
    Ok(writer.faulty == 0)
}

struct CombinedWriter {
    form: OutputLayout,
    output: File,
    sources: u64,
    /// Number of sources whose process has failed.
    faulty: u64,
    /// Whether the output of the current source is still empty.
    is_empty: bool,
    /// Whether the next byte is the first byte of a line.
    is_at_start: bool,
}

impl CombinedWriter {
    /// Writes the end of the combined output, and the total on standard error.
    fn finish(&mut self) -> CommandResult<()> {
        match (self.form, self.sources) {
            (OutputLayout::Mapped(_), 0) => self.output.write_all(b"{}\n")?,
            (OutputLayout::Mapped(Syntax::Json), _) => self.output.write_all(b"\n}\n")?,
            _ => {}
        }
        if self.form != OutputLayout::Joined {
            print_error(&total_line(self.sources, self.faulty));
        }
        Ok(())
    }

    fn write_indented(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut indented = Vec::with_capacity(bytes.len().saturating_mul(2));
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.is_at_start && line != b"\n" {
                indented.extend_from_slice(b"  ");
            }
            indented.extend_from_slice(line);
            self.is_at_start = line.ends_with(b"\n");
        }
        self.output.write_all(&indented)
    }
}

impl OutputFollower for CombinedWriter {
    fn begin(&mut self, name: &[u8]) -> CommandResult<()> {
        let is_first = self.sources == 0;
        self.sources += 1;
        (self.is_empty, self.is_at_start) = (true, true);
        let before = match self.form {
            OutputLayout::Joined => return Ok(()),
            OutputLayout::Listed if is_first => format!("{}:\n", printable_bytes(name)),
            OutputLayout::Listed => format!("\n{}:\n", printable_bytes(name)),
            OutputLayout::Mapped(Syntax::Yaml) => format!("{}:\n", json_text(name)),
            OutputLayout::Mapped(Syntax::Json) if is_first => format!("{{\n{}: ", json_text(name)),
            OutputLayout::Mapped(Syntax::Json) => format!(",\n{}: ", json_text(name)),
        };
        Ok(self.output.write_all(before.as_bytes())?)
    }

    fn output(&mut self, bytes: &[u8]) -> CommandResult<()> {
        self.is_empty = false;
        match self.form {
            OutputLayout::Mapped(Syntax::Yaml) => self.write_indented(bytes)?,
            _ => self.output.write_all(bytes)?,
        }
        Ok(())
    }

    fn end(&mut self, is_whole: bool) -> CommandResult<()> {
        self.faulty += u64::from(!is_whole);
        if self.is_empty {
            match self.form {
                OutputLayout::Mapped(Syntax::Yaml) => self.output.write_all(b"  null\n")?,
                OutputLayout::Mapped(Syntax::Json) => self.output.write_all(b"null")?,
                OutputLayout::Joined | OutputLayout::Listed => {}
            }
        }
        Ok(())
    }
}

/// Formats the line with the total on standard error.
fn total_line(sources: u64, faulty: u64) -> String {
    let s = if sources == 1 { "" } else { "s" };
    format!("{sources} source{s}, {faulty} with errors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_formatted() {
        assert_eq!(total_line(1, 0), "1 source, 0 with errors");
        assert_eq!(total_line(3, 1), "3 sources, 1 with errors");
    }
}

//! `h5fs check` of several files and directories: each file in a process of its own.
//!
//! A process speaks in records: its lines are written behind the name of its file, its sum goes into
//! the sum of all.

use std::fs::File;
use std::io::{BufWriter, Write};

use crate::cli::args::Reading;
use crate::cli::inspect::check::{Checked, Faults, Record, summary};
use crate::cli::inspect::data_files::DataFiles;
use crate::cli::inspect::many::{self, Arguments, Follow};
use crate::cli::inspect::reading::{self, Outcome};
use crate::cli::words::printable::{harmless, printable_bytes};
use crate::cli::words::progress::Progress;
use crate::limits;
use crate::source::location::Location;

/// Looks at all files of `sources`, with `data` at every byte of them; whether all is there and can
/// be read.
pub(in crate::cli) fn check(sources: &[Location], data: bool, how: &Reading) -> Outcome<bool> {
    let mut arguments = Arguments::of("check", how);
    arguments.flag("--records");
    if data {
        arguments.flag("--data");
    }
    let mut files = DataFiles::of(sources, how);
    let mut report = Report {
        progress: Progress::new(),
        output: BufWriter::new(reading::output()?),
        name: String::new(),
        line: Vec::new(),
        files: 0,
        checked: Checked::default(),
        has_sum: false,
        is_whole: true,
    };
    many::read(&mut files, &arguments, how.jobs, &mut report)?;
    report.progress.clear();
    let last = sum(report.files, report.checked, data);
    writeln!(report.output, "{last}")?;
    report.output.flush()?;
    Ok(report.is_whole && report.checked.faults == Faults::default() && !files.has_failed)
}

/// The last line.
fn sum(files: u64, checked: Checked, data: bool) -> String {
    let s = if files == 1 { "" } else { "s" };
    format!("{files} file{s}, {}", summary(checked, data))
}

/// What is written.
struct Report {
    progress: Progress,
    output: BufWriter<File>,
    /// Of the file whose lines come.
    name: String,
    /// The line that has begun to come.
    line: Vec<u8>,
    /// Files whose processes have ended, and what these have looked at.
    files: u64,
    checked: Checked,
    /// Whether the sum of this file has come.
    has_sum: bool,
    /// Whether every file was looked at.
    is_whole: bool,
}

impl Report {
    /// Takes the line that has come.
    fn take_line(&mut self) -> Outcome<()> {
        let line = std::mem::take(&mut self.line);
        match Record::of(&String::from_utf8_lossy(line.trim_ascii_end())) {
            Record::Sum(checked) => {
                self.checked.add(checked);
                self.has_sum = true;
            }
            Record::Part(line) => {
                self.progress.clear();
                writeln!(self.output, "{}: {}", self.name, harmless(&line))?;
            }
        }
        Ok(())
    }
}

impl Follow for Report {
    fn begin(&mut self, name: &[u8]) -> Outcome<()> {
        self.name = printable_bytes(name);
        Ok(())
    }

    fn output(&mut self, bytes: &[u8]) -> Outcome<()> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > limits::REPORT_BYTES {
                self.take_line()?;
            }
        }
        Ok(())
    }

    fn make_room(&mut self) -> Outcome<()> {
        self.progress.clear();
        Ok(self.output.flush()?)
    }

    fn end(&mut self, _is_whole: bool) -> Outcome<()> {
        self.files += 1;
        if !self.line.is_empty() {
            self.take_line()?;
        }
        // A process that ended early has said none.
        self.is_whole &= std::mem::take(&mut self.has_sum);
        Ok(())
    }

    fn tick(&mut self, ended: u64) -> Outcome<()> {
        self.output.flush()?;
        self.progress.show_of(ended, self.checked.done);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::words::progress::Done;

    #[test]
    fn a_sum_reads_well() {
        let done = Done {
            objects: 5,
            bytes: 80,
        };
        let faults = Faults {
            unreadable: 1,
            missing: 2,
        };
        let mut checked = Checked::default();
        for _ in 0..2 {
            checked.add(Checked { done, faults });
        }
        let wanted = "2 files, 10 objects, 160 bytes read, 2 unreadable, 4 missing";
        assert_eq!(sum(2, checked, true), wanted);
    }
}

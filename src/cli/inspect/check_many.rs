//! `h5fs check` of several files and directories, with a separate process for each file.
//!
//! Each process writes messages about its file. The calling process prints each fault after the
//! name of the file, and adds the counts of all files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

use h5fs_reader::source::location::Location;

use crate::cli::args::ReadingArguments;
use crate::cli::inspect::check::{CheckOptions, ReportFormat};
use crate::cli::inspect::check_result::{
    self, CheckFault, CheckMessage, CheckSummary, CheckVerdict,
};
use crate::cli::inspect::command_source::{self, CommandResult};
use crate::cli::inspect::data_files::DataFiles;
use crate::cli::inspect::joined_names::JOINED_PATH;
use crate::cli::inspect::parallel::{self, ChildArguments, OutputFollower};
use crate::cli::text::error_message::{message_about, print_error, reason_of};
use crate::cli::text::printable::{printable_bytes, printable_untrusted};
use crate::cli::text::progress::ProgressLine;
use crate::limits;

/// Checks all files of `sources`.
pub(in crate::cli) fn check(
    sources: &[Location],
    options: CheckOptions,
    how: &ReadingArguments,
) -> CommandResult<CheckVerdict> {
    let (data, json) = (options.data, options.form == ReportFormat::Json);
    let mut arguments = ChildArguments::for_command("check", how);
    arguments.flag("--records");
    let flags = [(data, "--data"), (options.views, "--views")];
    let given = flags.into_iter().filter(|flag| flag.0);
    given.for_each(|(_, flag)| arguments.flag(flag));
    let mut files = DataFiles::new(sources, how);
    let mut report = CombinedReport {
        progress: ProgressLine::new(),
        output: BufWriter::new(command_source::stdout_file()?),
        json,
        name: Vec::new(),
        line: Vec::new(),
        sum: CheckSummary::default(),
        has_ended: false,
        is_joined: false,
    };
    parallel::read_sources(&mut files, &arguments, how.jobs, &mut report)?;
    let directories = || sources.iter().filter(|source| is_local_directory(source));
    if options.views && report.sum.files > 0 {
        arguments.flag("--joined");
        report.is_joined = true;
        parallel::read_sources(
            &mut directories().cloned(),
            &arguments,
            how.jobs,
            &mut report,
        )?;
    }
    for (directory, error) in files.failed {
        let name = directory.as_os_str().as_bytes();
        report.report_unopened(name, &reason_of(name, &error))?;
    }
    report.progress.clear();
    if !json && !options.views && !how.quiet {
        report.output.flush()?;
        directories().for_each(|source| warn_of_joining(source, how));
    }
    let sum = report.sum;
    let last = if json {
        sum.json_line(data)
    } else {
        sum.line(data)
    };
    writeln!(report.output, "{last}")?;
    report.output.flush()?;
    Ok(sum.verdict())
}

/// Returns whether a source is a directory on this machine.
fn is_local_directory(source: &Location) -> bool {
    source.path().is_some_and(Path::is_dir)
}

/// Starts a process that prints warnings about the files of a local directory that cannot be
/// joined.
fn warn_of_joining(source: &Location, how: &ReadingArguments) {
    let mut arguments = ChildArguments::for_command("ls", how);
    arguments.flag("--one");
    arguments.paths.push(JOINED_PATH.into());
    let listed = arguments.command(source);
    // If the process cannot be started, this was already reported for each file.
    let _ = listed.map(|mut command| command.stdout(Stdio::null()).status());
}

/// The combined results of the processes, while they are written.
struct CombinedReport {
    progress: ProgressLine,
    output: BufWriter<File>,
    /// Whether each line is a JSON object.
    json: bool,
    /// Name of the file whose process's output is being read.
    name: Vec<u8>,
    /// The bytes after the last complete line.
    line: Vec<u8>,
    /// The sum of the counts of all files whose processes have ended.
    sum: CheckSummary,
    /// Whether the last message of the current process has arrived.
    has_ended: bool,
    /// Whether each process checks the joined files of a directory.
    is_joined: bool,
}

impl CombinedReport {
    /// Handles a complete line of a process's output: one message.
    fn handle_line(&mut self) -> CommandResult<()> {
        let line = std::mem::take(&mut self.line);
        match CheckMessage::from_line(&String::from_utf8_lossy(line.trim_ascii_end())) {
            CheckMessage::Totals(done) => {
                self.sum.checked.add(done);
                self.has_ended = true;
            }
            CheckMessage::Unopened(reason) => {
                self.has_ended = true;
                let (name, reason) = (self.name.clone(), printable_untrusted(&reason));
                self.clear_progress()?;
                print_error(&message_about(&name, &reason));
                self.report_unopened(&name, &reason)?;
            }
            CheckMessage::Fault(fault) => self.report_fault(&CheckFault {
                reason: printable_untrusted(&fault.reason),
                ..fault
            })?,
        }
        Ok(())
    }

    fn report_fault(&mut self, fault: &CheckFault) -> CommandResult<()> {
        self.progress.clear();
        self.sum.checked.count(fault.kind);
        let line = if self.json {
            fault.json_line(&self.name)
        } else {
            format!("{}: {}", printable_bytes(&self.name), fault.line())
        };
        Ok(writeln!(self.output, "{line}")?)
    }

    /// Writes that a source cannot be opened, and counts it.
    fn report_unopened(&mut self, name: &[u8], reason: &str) -> CommandResult<()> {
        self.sum.unopened += 1;
        if self.json {
            writeln!(
                self.output,
                "{}",
                check_result::unopened_json_line(name, reason)
            )?;
        }
        Ok(())
    }
}

impl OutputFollower for CombinedReport {
    fn begin(&mut self, name: &[u8]) -> CommandResult<()> {
        self.name = name.to_vec();
        if self.is_joined {
            self.name.extend_from_slice(b"/");
            self.name.extend_from_slice(JOINED_PATH.as_bytes());
        }
        Ok(())
    }

    fn output(&mut self, bytes: &[u8]) -> CommandResult<()> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > limits::REPORT_BYTES {
                self.handle_line()?;
            }
        }
        Ok(())
    }

    fn clear_progress(&mut self) -> CommandResult<()> {
        self.progress.clear();
        Ok(self.output.flush()?)
    }

    fn end(&mut self, _is_whole: bool) -> CommandResult<()> {
        self.sum.files += u64::from(!self.is_joined);
        if !self.line.is_empty() {
            self.handle_line()?;
        }
        if std::mem::take(&mut self.has_ended) {
            return Ok(());
        }
        let (name, reason) = (
            self.name.clone(),
            "the process that reads this file ended early",
        );
        self.clear_progress()?;
        print_error(&message_about(&name, reason));
        self.report_unopened(&name, reason)
    }

    fn show_progress(&mut self, ended: u64, all: Option<u64>) -> CommandResult<()> {
        self.output.flush()?;
        self.progress
            .update_for_files(ended, all, self.sum.checked.completed);
        Ok(())
    }
}

//! Reports from a worker to its supervisor, and from a supervisor to its launcher, as lines on a
//! pipe.
//!
//! A hostile source may have taken over the worker. The lines are therefore parsed like a hostile
//! file: their length is bounded, and each report is accepted only once and in the valid order.
//! Facts that the kernel can confirm are not taken from a report.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use crate::cli::text::printable::{printable, printable_untrusted};
use crate::limits;

/// A line that a worker sends to its supervisor, or a supervisor to its launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Report {
    /// The worker has mounted, but may still fail.
    Mounted,
    /// A warning for the user who mounts: that only a part of the source can be shown, or a log
    /// line if there is no log yet.
    Warning(String),
    /// The mount is being served.
    Ready,
    /// The mount has failed. The text contains the name of the file and the reason.
    Failed(String),
}

impl Report {
    const MOUNTED: &str = "mounted";
    const READY: &str = "ready";
    const WARNING: &str = "warning ";
    const FAILED: &str = "failed ";

    pub(in crate::cli) fn failure(file: &Path, reason: &str) -> Self {
        Report::Failed(message_about_file(file, reason))
    }

    pub(in crate::cli) fn warning(file: &Path, reason: &str) -> Self {
        Report::Warning(format!("warning: {}", message_about_file(file, reason)))
    }

    fn parse(line: &str) -> Option<Self> {
        match line.strip_suffix('\n')? {
            Self::MOUNTED => Some(Report::Mounted),
            Self::READY => Some(Report::Ready),
            line => {
                let failed = line.strip_prefix(Self::FAILED);
                let warning = line.strip_prefix(Self::WARNING);
                let failed = failed.map(|text| Report::Failed(printable_untrusted(text)));
                failed.or_else(|| warning.map(|text| Report::Warning(printable_untrusted(text))))
            }
        }
    }

    /// Writes the report as a line to `output`.
    pub(in crate::cli) fn send(&self, output: &mut impl Write) -> io::Result<()> {
        let line = match self {
            Report::Mounted => format!("{}\n", Self::MOUNTED),
            Report::Ready => format!("{}\n", Self::READY),
            Report::Warning(text) => format!("{}{text}\n", Self::WARNING),
            Report::Failed(text) => format!("{}{text}\n", Self::FAILED),
        };
        output.write_all(line.as_bytes())?;
        output.flush()
    }
}

/// Formats the reason of a failure as one line, which starts with the name of `file`.
fn message_about_file(file: &Path, reason: &str) -> String {
    let file = file.display().to_string();
    // Messages of other programs end in a newline.
    let reason = reason.trim_end();
    let text = match reason.strip_prefix(&file) {
        Some(rest) if rest.starts_with(": ") => reason.to_owned(),
        _ => format!("{file}: {reason}"),
    };
    printable(&text)
}

/// The error for a line that is not a report, or that arrives out of order.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct InvalidReport;

/// A reader of the reports of one process. A report that arrives out of order is an error.
pub(in crate::cli) struct ReportReader<R> {
    input: BufReader<R>,
    may_report_mounted: bool,
    /// Number of warnings that are still accepted.
    warnings_left: usize,
    is_finished: bool,
}

impl<R: Read> ReportReader<R> {
    /// Reads the reports of a worker: `Mounted`, then any warnings, then one final report.
    pub(in crate::cli) fn from_worker(input: R) -> Self {
        ReportReader {
            input: BufReader::new(input),
            may_report_mounted: true,
            warnings_left: limits::EARLY_LINES + 1,
            is_finished: false,
        }
    }

    /// Reads the reports of a supervisor: any warnings, then one final report.
    pub(in crate::cli) fn from_supervisor(input: R) -> Self {
        ReportReader {
            may_report_mounted: false,
            ..Self::from_worker(input)
        }
    }

    /// Reads the next report. Returns `None` at the end of the pipe.
    ///
    /// # Errors
    /// [`InvalidReport`]. Later lines must not be read.
    pub(in crate::cli) fn next(&mut self) -> Result<Option<Report>, InvalidReport> {
        let mut line = Vec::new();
        let limit = u64::try_from(limits::REPORT_BYTES).map_err(|_| InvalidReport)?;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut line);
        // A pipe that cannot be read counts as ended.
        if read.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let report = str::from_utf8(&line).ok().and_then(Report::parse);
        let report = report.filter(|_| !self.is_finished).ok_or(InvalidReport)?;
        match report {
            Report::Mounted if !self.may_report_mounted => return Err(InvalidReport),
            Report::Mounted => self.may_report_mounted = false,
            Report::Warning(_) if self.may_report_mounted || self.warnings_left == 0 => {
                return Err(InvalidReport);
            }
            Report::Warning(_) => self.warnings_left -= 1,
            Report::Ready if self.may_report_mounted => return Err(InvalidReport),
            Report::Ready | Report::Failed(_) => self.is_finished = true,
        }
        Ok(Some(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[u8]) -> (Vec<Report>, bool) {
        let mut reports = ReportReader::from_worker(lines);
        let mut read = Vec::new();
        loop {
            match reports.next() {
                Ok(Some(report)) => read.push(report),
                Ok(None) => return (read, true),
                Err(InvalidReport) => return (read, false),
            }
        }
    }

    #[test]
    fn sent_reports_are_read() {
        let reports = [
            Report::Mounted,
            Report::warning(Path::new("a.h5"), "a.h5: cut off"),
            Report::failure(Path::new("a\nb.h5"), "a.h5: no \\ at all\n"),
        ];
        let mut lines = Vec::new();
        for report in &reports {
            report.send(&mut lines).unwrap();
        }
        assert_eq!(read(&lines), (reports.to_vec(), true));
        assert_eq!(
            read(b"mounted\nready\n").0,
            [Report::Mounted, Report::Ready]
        );
        let one = ReportReader::from_supervisor(&b"ready\n"[..]).next();
        assert_eq!(one, Ok(Some(Report::Ready)));
    }

    #[test]
    fn warnings_have_a_bound() {
        let most = limits::EARLY_LINES + 1;
        let lines = |count| [b"mounted\n".as_slice(), &b"warning x: y\n".repeat(count)].concat();
        assert_eq!(read(&lines(most)).0.len(), 1 + most);
        assert!(read(&lines(most)).1 && !read(&lines(most + 1)).1);
    }

    #[test]
    fn reports_are_accepted_once_and_in_order() {
        for (lines, good) in [
            (&b"ready\n"[..], 0),
            (b"mounted\nmounted\n", 1),
            (b"mounted\nready\nready\n", 2),
            (b"warning x: y\nmounted\n", 0),
            (b"mounted\nready\nwarning x: y\n", 2),
            (b"mounted\nready\nmounted\n", 2),
            (b"mounted\nready\nfailed x: y\n", 2),
            (b"failed x: y\nfailed x: y\n", 1),
            (b"mounted 0:44\n", 0),
            (b"mounted", 0),
            (b"\n", 0),
            (b"failed \xff\n", 0),
            (b"anything\n", 0),
        ] {
            let (reports, is_whole) = read(lines);
            assert_eq!((reports.len(), is_whole), (good, false), "{lines:?}");
        }
    }

    #[test]
    fn an_endless_line_is_read_up_to_a_limit() {
        let mut sent = 0_usize;
        let flood = std::iter::repeat_with(|| {
            sent += 1;
            b'x'
        });
        struct Endless<I>(I);
        impl<I: Iterator<Item = u8>> Read for Endless<I> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                buffer
                    .iter_mut()
                    .for_each(|byte| *byte = self.0.next().unwrap());
                Ok(buffer.len())
            }
        }
        assert_eq!(
            ReportReader::from_worker(Endless(flood)).next(),
            Err(InvalidReport)
        );
        assert!(sent <= limits::REPORT_BYTES * 2, "{sent}");
    }

    #[test]
    fn worker_text_cannot_control_a_terminal() {
        let report = read("failed a\x1b[2J\u{202e}\\n\n".as_bytes()).0;
        let shown = Report::Failed("a\\u{1b}[2J\\u{202e}\\n".to_owned());
        assert_eq!(report, [shown]);
    }
}

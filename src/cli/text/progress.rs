//! The progress of a long command, on one line of standard error if that is a terminal.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::cli::text::style;

/// Interval between two updates of the line.
pub(in crate::cli) const TICK: Duration = Duration::from_millis(100);

/// The number of objects and bytes that a command has processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct CompletedWork {
    pub(in crate::cli) objects: u64,
    pub(in crate::cli) bytes: u64,
}

/// The number of processed bytes, and the total number of bytes, once the total is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct ProgressShare {
    pub(in crate::cli) processed: u64,
    pub(in crate::cli) total: u64,
}

/// The progress line. Dropping the value clears the line.
pub(in crate::cli) struct ProgressLine {
    is_wanted: bool,
    is_shown: bool,
    started: Instant,
    written: Instant,
}

impl ProgressLine {
    pub(in crate::cli) fn new() -> Self {
        let now = Instant::now();
        ProgressLine {
            is_wanted: style::supports_control_sequences(&io::stderr()),
            is_shown: false,
            started: now,
            written: now,
        }
    }

    /// Returns whether the line is due for an update.
    pub(in crate::cli) fn is_due(&self) -> bool {
        self.is_wanted && self.written.elapsed() >= TICK
    }

    /// Updates the line if it is due. `bytes` is the processed share of all bytes, or `None` if
    /// their total number is unknown.
    pub(in crate::cli) fn update(&mut self, done: CompletedWork, bytes: Option<ProgressShare>) {
        self.write(|elapsed| {
            format_counts(done, elapsed) + &bytes.map(format_share).unwrap_or_default()
        });
    }

    /// Updates the line of a command for several files. `ended` files of `all` have been read.
    /// `all` is `None` until the number is known.
    pub(in crate::cli) fn update_for_files(
        &mut self,
        ended: u64,
        all: Option<u64>,
        done: CompletedWork,
    ) {
        self.write(|elapsed| {
            format!(
                "{}, {}",
                format_file_count(ended, all),
                format_counts(done, elapsed)
            )
        });
    }

    fn write(&mut self, line: impl FnOnce(Duration) -> String) {
        if self.is_due() {
            self.written = Instant::now();
            self.is_shown = true;
            let line = line(self.started.elapsed());
            // A line that cannot be written is not worth an error.
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
        }
    }

    /// Clears the line, so that other output can be written.
    pub(in crate::cli) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Formats the counts and the rate. The rate is in bytes, or in objects if no bytes were read.
fn format_counts(done: CompletedWork, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(f64::EPSILON);
    let CompletedWork { objects, bytes } = done;
    if bytes == 0 {
        format!("{objects} objects, {:.0}/s", objects as f64 / seconds)
    } else {
        let rate = format_bytes(bytes as f64 / seconds);
        format!(
            "{objects} objects, {}, {rate}/s",
            format_bytes(bytes as f64)
        )
    }
}

fn format_share(
    ProgressShare {
        processed: passed,
        total,
    }: ProgressShare,
) -> String {
    let percent = (passed as f64 / (total as f64).max(1.0) * 100.0).min(100.0);
    format!(", {percent:.0}% of {}", format_bytes(total as f64))
}

fn format_file_count(ended: u64, all: Option<u64>) -> String {
    match all {
        Some(all) => format!("{ended} of {all} files"),
        None => format!("{ended} files"),
    }
}

/// Formats a number of bytes with a binary unit.
pub(in crate::cli) fn format_bytes(bytes: f64) -> String {
    let mut amount = bytes;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if amount < 1024.0 {
            let digits = if unit == "B" || amount >= 100.0 { 0 } else { 1 };
            return format!("{amount:.digits$} {unit}");
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} PiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_is_formatted() {
        let second = Duration::from_secs(2);
        let done = |objects, bytes| CompletedWork { objects, bytes };
        assert_eq!(format_counts(done(600, 0), second), "600 objects, 300/s");
        assert_eq!(
            format_counts(done(7, 3 << 29), second),
            "7 objects, 1.5 GiB, 768 MiB/s"
        );
        assert_eq!(
            format_counts(done(1, 900), second),
            "1 objects, 900 B, 450 B/s"
        );
        let (processed, total) = (3 << 28, 3 << 29);
        assert_eq!(
            format_share(ProgressShare { processed, total }),
            ", 50% of 1.5 GiB"
        );
        let (processed, total) = (0, 0);
        assert_eq!(
            format_share(ProgressShare { processed, total }),
            ", 0% of 0 B"
        );
        assert_eq!(format_file_count(3, Some(12)), "3 of 12 files");
        assert_eq!(format_file_count(3, None), "3 files");
    }
}

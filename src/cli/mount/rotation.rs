//! Switches the log to a new file after the old one was renamed or removed, as logrotate(8) does.
//!
//! The supervisor checks the log file every second, and reopens the file in three cases:
//!
//! - another file has replaced it at its path
//! - no file has existed at its path for two seconds
//! - SIGUSR1 has arrived
//!
//! The supervisor sends the open file to the worker, whose sandbox permits no file for writing. The
//! fetcher sends its log lines to the supervisor.

use std::process::ChildStderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use h5fs_reader::error::{Error, Result};
use log::Level;
use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::SIGUSR1;

use crate::cli::mount::callers::SupervisionSocket;
use crate::cli::text::lines::each_line;
use crate::cli::text::log_file::{LogFile, LogPathState};

/// Interval at which the supervisor checks the log file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of successive checks that find no file at the path before a file is created. The program
/// that moved the old file may be about to create a new one.
const MISSING_CHECKS: u32 = 2;

/// Registers a handler for SIGUSR1, which requests that the log file is reopened. Returns the flag
/// that the handler sets.
///
/// # Errors
/// `Io` if the handler cannot be registered.
pub(in crate::cli) fn register_reopen_signal() -> Result<Arc<AtomicBool>> {
    let asked = Arc::default();
    signal_hook::flag::register(SIGUSR1, Arc::clone(&asked))
        .map_err(|error| Error::from_io(&error, "waiting for signals"))?;
    Ok(asked)
}

/// Blocks SIGUSR1 in a process that has a supervisor, because users may send the signal to all
/// processes of a mount. This function must be called before any other thread starts.
pub(in crate::cli) fn block_reopen_signal() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGUSR1);
    if let Err(errno) = signals.thread_block() {
        log::debug!("SIGUSR1 is not blocked: {errno}");
    }
}

/// Starts a thread that watches the log file. The thread sends each new file to the supervised
/// process over the supervision socket `leash`.
pub(in crate::cli) fn watch_log_file(
    file: LogFile,
    asked: Arc<AtomicBool>,
    leash: Arc<SupervisionSocket>,
) {
    thread::spawn(move || {
        let mut missing = 0;
        loop {
            thread::sleep(CHECK_INTERVAL);
            let place = file.path_state();
            missing = if place == LogPathState::Nothing {
                missing + 1
            } else {
                0
            };
            let is_asked = asked.swap(false, Ordering::Relaxed);
            if is_asked || place == LogPathState::Other || missing >= MISSING_CHECKS {
                // If no file can be created at the path, the next check tries again.
                let opened = file.open_again();
                let handed = opened.and_then(|opened| leash.send_log_file(&opened));
                missing = if handed.is_ok() { 0 } else { missing };
            }
        }
    });
}

/// Starts a thread that logs the lines that the fetcher writes to standard error.
pub(in crate::cli) fn log_fetcher_lines(errors: ChildStderr) {
    thread::spawn(move || {
        each_line(errors, |line| {
            let (level, text) = level_and_text(line);
            log::log!(level, "{text}");
        });
    });
}

/// Splits a line of the fetcher into the level and the text of the log line.
fn level_and_text(line: &str) -> (Level, &str) {
    let line = line.strip_prefix("h5fs: ").unwrap_or(line);
    let (word, text) = line.split_once(": ").unwrap_or(("", line));
    let level = match word {
        "error" => Level::Error,
        "info" => Level::Info,
        "debug" => Level::Debug,
        "trace" => Level::Trace,
        "warning" => Level::Warn,
        _ => return (Level::Warn, line),
    };
    (level, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_level() {
        for (line, expected) in [
            ("h5fs: error: x: y", (Level::Error, "x: y")),
            ("h5fs: warning: x", (Level::Warn, "x")),
            ("h5fs: debug: ", (Level::Debug, "")),
            ("thread panicked: x", (Level::Warn, "thread panicked: x")),
            ("", (Level::Warn, "")),
        ] {
            assert_eq!(level_and_text(line), expected);
        }
    }
}

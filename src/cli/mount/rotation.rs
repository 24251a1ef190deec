//! Has the log go to a new file once the old one was renamed or removed, as logrotate(8) does.
//!
//! The supervisor looks at the log file every second, and opens it anew once another file stands in
//! its place, or none has for two seconds, or SIGUSR1 has come. It hands the open file to the
//! worker, whose cage opens none for writing. The fetcher tells its lines to the supervisor.

use std::process::ChildStderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use log::Level;
use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::SIGUSR1;

use crate::cli::mount::askers::Leash;
use crate::cli::words::lines::each_line;
use crate::cli::words::log_file::{LogFile, Place};
use crate::error::{Error, Result};

/// Between two looks at the log file.
const LOOK: Duration = Duration::from_secs(1);

/// Looks in a row at which nothing stood in its place before a file is made there: whoever moved it
/// may be about to make one.
const PATIENCE: u32 = 2;

/// Whether SIGUSR1 has come, which does nothing else to this process.
///
/// # Errors
/// `Io` if the system does not tell of it.
pub(in crate::cli) fn asked() -> Result<Arc<AtomicBool>> {
    let asked = Arc::default();
    signal_hook::flag::register(SIGUSR1, Arc::clone(&asked))
        .map_err(|error| Error::io(&error, "waiting for signals"))?;
    Ok(asked)
}

/// In a process that has a supervisor: SIGUSR1, which may be sent to all processes of a mount, does
/// nothing. To be called before any other thread starts.
pub(in crate::cli) fn ignore() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGUSR1);
    if let Err(errno) = signals.thread_block() {
        log::debug!("SIGUSR1 is not blocked: {errno}");
    }
}

/// Watches the log file from a thread, and hands each new one to the process on the leash.
pub(in crate::cli) fn watch(file: LogFile, asked: Arc<AtomicBool>, leash: Arc<Leash>) {
    thread::spawn(move || {
        let mut missing = 0;
        loop {
            thread::sleep(LOOK);
            let place = file.place();
            missing = if place == Place::Nothing {
                missing + 1
            } else {
                0
            };
            let is_asked = asked.swap(false, Ordering::Relaxed);
            if is_asked || place == Place::Other || missing >= PATIENCE {
                // A place where nothing can be made is tried again.
                let opened = file.open_again();
                let handed = opened.and_then(|opened| leash.hand_log(&opened));
                missing = if handed.is_ok() { 0 } else { missing };
            }
        }
    });
}

/// Logs, from a thread, the lines that the fetcher writes to standard error.
pub(in crate::cli) fn log_lines(errors: ChildStderr) {
    thread::spawn(move || {
        each_line(errors, |line| {
            let (level, text) = level_and_text(line);
            log::log!(level, "{text}");
        });
    });
}

/// The level of a line, as the process wrote it, and the rest.
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

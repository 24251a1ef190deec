//! The events that a supervisor waits for, and the threads that send them.

use std::io::{self, Read};
use std::process::Child;
use std::sync::mpsc::Sender;
use std::thread;

use h5fs_reader::error::{Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::mount::heartbeat::ProbeStep;
use crate::cli::mount::report::{InvalidReport, Report, ReportReader};

/// An event that the supervisor waits for.
pub(in crate::cli::mount) enum MountEvent {
    /// A report line of the worker.
    Report(Report),
    /// The worker sent a line that is not a report.
    Invalid,
    /// The worker closed its standard output, because it has exited or is exiting.
    WorkerGone,
    /// The fetcher has exited.
    FetcherGone,
    /// A step of checking whether the mount answers.
    Probe(ProbeStep),
    /// The mount has not responded for too long.
    Hung,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal(i32),
    /// The launcher has exited, so no process waits for the mount.
    LauncherGone,
}

/// Sends an event for each report of the worker, and one when the worker closes its standard
/// output.
pub(in crate::cli::mount) fn watch_worker(worker: &mut Child, sender: &Sender<MountEvent>) {
    let Some(output) = worker.stdout.take() else {
        return;
    };
    let sender = sender.clone();
    thread::spawn(move || {
        let mut reports = ReportReader::from_worker(output);
        let last = loop {
            match reports.next() {
                Ok(Some(report)) => drop(sender.send(MountEvent::Report(report))),
                Ok(None) => break MountEvent::WorkerGone,
                Err(InvalidReport) => break MountEvent::Invalid,
            }
        };
        let _ = sender.send(last);
    });
}

/// Sends an event when the launcher exits. Its exit closes the pipe at this process's standard
/// input.
pub(in crate::cli::mount) fn watch_launcher(sender: &Sender<MountEvent>) {
    let sender = sender.clone();
    thread::spawn(move || {
        // The launcher writes no bytes, so this returns when the launcher exits.
        let _ = io::stdin().read(&mut [0]);
        let _ = sender.send(MountEvent::LauncherGone);
    });
}

/// Sends an event for each SIGINT and SIGTERM, and for each SIGHUP if `hangup_ends` is set.
///
/// # Errors
/// Fails if the signals cannot be caught.
pub(in crate::cli::mount) fn watch_signals(
    hangup_ends: bool,
    sender: &Sender<MountEvent>,
) -> Result<()> {
    let mut watched = vec![SIGINT, SIGTERM];
    if hangup_ends {
        watched.push(SIGHUP);
    }
    let mut signals =
        Signals::new(watched).map_err(|error| Error::from_io(&error, "waiting for signals"))?;
    let sender = sender.clone();
    thread::spawn(move || {
        for number in signals.forever() {
            if sender.send(MountEvent::Signal(number)).is_err() {
                break;
            }
        }
    });
    Ok(())
}

/// Returns whether this process was started with SIGHUP ignored: proc(5), /proc/PID/status,
/// `SigIgn`.
pub(in crate::cli) fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

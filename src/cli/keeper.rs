//! The keeper: the process that the user calls for a server or for a mount that another program has
//! made. The keeper starts the worker, passes a file descriptor and a message to it, and ends it at
//! a signal. The keeper parses no data file.

use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::rights;
use h5fs_reader::source::location::Location;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::invocation::{Invocation, Role};
use crate::cli::mount::children::{allocator_settings, describe_exit, forward_errors};
use crate::cli::mount::events::hangup_is_ignored;
use crate::cli::mount::handover;
use crate::cli::mount::report::{Report, ReportReader};
use crate::cli::mount::supervisor::{FETCHER_GONE, JOINT_EXIT_INTERVAL};
use crate::cli::sandbox;
use crate::cli::text::error_message::print_error;

/// Time in which the worker must exit after its supervision socket is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between two checks whether the worker has exited.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// An event that the keeper waits for.
enum KeeperEvent {
    Warning(String),
    Ready,
    Failed(String),
    /// The worker has exited or is about to exit.
    WorkerGone,
    FetcherGone,
    /// SIGINT, SIGTERM or SIGHUP arrived.
    Signal,
}

/// A started worker, and the events that concern it.
pub(in crate::cli) struct Keeper {
    worker: Child,
    events: Receiver<KeeperEvent>,
    /// The supervision socket. Closing it ends the worker.
    supervision_socket: UnixStream,
}

impl Keeper {
    /// Starts the worker, and for a source by URL its fetcher. The worker receives `message` and
    /// `file` over its supervision socket, never on a command line, which every user can read.
    ///
    /// # Errors
    /// Fails if a process cannot be started.
    pub(in crate::cli) fn start(
        call: &Invocation,
        first_source: Option<&Location>,
        (message, file): (&[u8], BorrowedFd<'_>),
    ) -> Result<Self> {
        let failed = |error| Error::from_io(&error, "starting the worker");
        let (sender, events) = channel();
        watch_signals(&sender)?;
        let ends = match first_source {
            Some(Location::Url(_)) => Some(start_fetcher(call, &sender)?),
            _ => None,
        };
        let started = call.restart_command(Role::Worker).and_then(|mut command| {
            let (leash, worn) = handover::supervision_socket(ends.as_ref())?;
            rights::send_with_files(leash.as_fd(), message, &[file])?;
            handover::remove_secret_variables(&mut command);
            let worker = command
                .envs(allocator_settings())
                .stdin(worn)
                .stdout(Stdio::piped())
                // Lines from the worker are sanitized before they reach the terminal.
                .stderr(Stdio::piped())
                // Ctrl-C must reach only the keeper.
                .process_group(0)
                .spawn()?;
            Ok((worker, leash))
        });
        let (mut worker, supervision_socket) = started.map_err(failed)?;
        sandbox::hide_memory();
        worker.stderr.take().map(forward_errors);
        if let Some(output) = worker.stdout.take() {
            watch_worker(output, sender);
        }
        Ok(Keeper {
            worker,
            events,
            supervision_socket,
        })
    }

    /// Waits until the worker must end or has ended. Calls `tell` once the worker answers.
    pub(in crate::cli) fn supervise(mut self, tell: impl FnOnce()) -> ExitCode {
        let mut tell = Some(tell);
        loop {
            match self.events.recv() {
                Ok(KeeperEvent::Warning(text)) => print_error(&text),
                Ok(KeeperEvent::Ready) => {
                    if let Some(tell) = tell.take() {
                        tell();
                    }
                }
                Ok(KeeperEvent::Failed(text)) => {
                    print_error(&text);
                    self.stop_worker();
                    return ExitCode::FAILURE;
                }
                // A worker exits successfully only if there is nothing left to serve.
                Ok(KeeperEvent::WorkerGone) | Err(_) => match self.worker.wait() {
                    Ok(status) if status.success() => return ExitCode::SUCCESS,
                    end => {
                        print_error(&describe_exit(end));
                        return ExitCode::FAILURE;
                    }
                },
                // A fetcher exits when its worker has exited.
                Ok(KeeperEvent::FetcherGone) if self.exits_within(JOINT_EXIT_INTERVAL) => {}
                Ok(KeeperEvent::FetcherGone) => {
                    print_error(FETCHER_GONE);
                    self.stop_worker();
                    return ExitCode::FAILURE;
                }
                Ok(KeeperEvent::Signal) => {
                    self.stop_worker();
                    return ExitCode::SUCCESS;
                }
            }
        }
    }

    /// Stops the worker, and waits until it has exited.
    fn stop_worker(mut self) {
        // The worker exits when it reads end of file.
        let _ = self.supervision_socket.shutdown(Shutdown::Both);
        if !self.exits_within(EXIT_TIMEOUT) {
            let _ = self.worker.kill();
            let _ = self.worker.wait();
        }
    }

    /// Waits for the exit of the worker, at most for the time `most`. Returns whether it has
    /// exited.
    fn exits_within(&mut self, most: Duration) -> bool {
        let until = Instant::now() + most;
        loop {
            match self.worker.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(EXIT_CHECK_INTERVAL),
                Ok(None) => return false,
                _ => return true,
            }
        }
    }
}

/// Starts the fetcher for a source by URL. The fetcher exits when the worker has exited.
fn start_fetcher(
    call: &Invocation,
    sender: &Sender<KeeperEvent>,
) -> Result<handover::FetcherConnection> {
    let started = handover::start_fetcher(call, Stdio::piped());
    let (mut process, ends) =
        started.map_err(|error| Error::from_io(&error, "starting the fetcher"))?;
    process.stderr.take().map(forward_errors);
    let sender = sender.clone();
    thread::spawn(move || {
        let _ = process.wait();
        let _ = sender.send(KeeperEvent::FetcherGone);
    });
    Ok(ends)
}

fn watch_worker(output: ChildStdout, sender: Sender<KeeperEvent>) {
    thread::spawn(move || {
        let mut reports = ReportReader::from_supervisor(output);
        loop {
            let event = match reports.next() {
                Ok(Some(Report::Warning(text))) => KeeperEvent::Warning(text),
                Ok(Some(Report::Ready)) => KeeperEvent::Ready,
                Ok(Some(Report::Failed(text))) => KeeperEvent::Failed(text),
                _ => KeeperEvent::WorkerGone,
            };
            let is_end = matches!(event, KeeperEvent::WorkerGone);
            if sender.send(event).is_err() || is_end {
                return;
            }
        }
    });
}

fn watch_signals(sender: &Sender<KeeperEvent>) -> Result<()> {
    let mut watched = vec![SIGINT, SIGTERM];
    if !hangup_is_ignored() {
        watched.push(SIGHUP);
    }
    let signals = Signals::new(watched);
    let mut signals = signals.map_err(|error| Error::from_io(&error, "waiting for signals"))?;
    let sender = sender.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            if sender.send(KeeperEvent::Signal).is_err() {
                return;
            }
        }
    });
    Ok(())
}

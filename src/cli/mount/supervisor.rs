//! The supervisor process of a mount, which removes the mount at its end.
//!
//! The supervisor starts the worker and waits. It unmounts if the worker ends for any reason, or at
//! SIGINT, SIGTERM or SIGHUP. It reads no bytes of the source, so no source can make it fail. It
//! recognizes its own mount by the kernel's mount number, and leaves mounts of other programs at
//! the same path alone. If another mount covers its mount, it unmounts as soon as the other one is
//! gone.
//!
//! Two connections lead to the worker:
//!
//! - The worker's standard output is a pipe. Its lines report the state of the mount, and its end
//!   means that the worker has exited.
//! - The worker's standard input is the supervision socket. Its end means that the supervisor has
//!   exited. The worker also uses it to ask whether processes that wait for a response were killed.
//!
//! The sandbox prevents the worker from unmounting, so only the supervisor unmounts. A malicious
//! source may have taken over the worker. Therefore the supervisor does not trust its reports (see
//! `report`), and ends a mount that no longer responds.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use h5fs_reader::error::Error;
use nix::fcntl::Flock;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::cli::args::MountCommand;
use crate::cli::browser;
use crate::cli::invocation::Invocation;
use crate::cli::mount::callers::SupervisionSocket;
use crate::cli::mount::children::{
    describe_exit, forward_errors, signal_name, start_fetcher, start_worker,
};
use crate::cli::mount::events::{
    MountEvent, hangup_is_ignored, watch_launcher, watch_signals, watch_worker,
};
use crate::cli::mount::heartbeat::{self, ProbeStep, UnansweredTime};
use crate::cli::mount::mount_point;
use crate::cli::mount::mounts::{self, FreeMountPoint, OwnMount, UnmountResult};
use crate::cli::mount::notify;
use crate::cli::mount::report::Report;
use crate::cli::mount::rotation;
use crate::cli::sandbox;
use crate::cli::scans;
use crate::cli::text::error_message::print_error;
use crate::cli::text::logging;
use crate::limits;

/// Time in which a worker must exit after its mount is gone.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time in which a worker must exit if the supervisor removes a mount that the worker still serves.
/// Requests of the worker may wait for a server that does not respond.
const SERVING_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum time between the exit of the fetcher and the exit of its worker if both end for the same
/// reason.
pub(in crate::cli) const JOINT_EXIT_INTERVAL: Duration = Duration::from_millis(500);

/// Interval at which the supervisor checks whether a process has exited.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The reason that is reported if a worker has sent an invalid report and cannot be trusted.
const INVALID_REPORTS: &str = "the worker's reports are invalid";

/// The reason that is reported if a mount has lost the connection to its server.
pub(in crate::cli) const FETCHER_GONE: &str = "the fetcher has ended";

/// Supervises one mount until it ends. The launcher is at the other end of the standard streams.
pub(in crate::cli) fn run_detached(call: &Invocation, mount: &MountCommand) -> ExitCode {
    close_inherited();
    // The call fails only for the leader of a process group, and a child of the launcher is not a
    // leader.
    let _ = nix::unistd::setsid();
    supervise(call, mount, ReportTarget::Pipe)
}

/// Supervises one mount until it ends, as the process that the user called.
pub(in crate::cli) fn run_in_foreground(call: &Invocation, mount: &MountCommand) -> ExitCode {
    supervise(call, mount, ReportTarget::User)
}

/// Supervises one mount in the foreground, and opens the browser as soon as the mount responds.
pub(in crate::cli) fn run_for_viewer(call: &Invocation, mount: &MountCommand) -> ExitCode {
    supervise(call, mount, ReportTarget::Viewer)
}

/// Closes all inherited file descriptors except the standard streams. Otherwise a caller that waits
/// for the end of a pipe, or holds a lock by a descriptor, would wait for the unmount. The
/// supervisor itself has not opened any file yet.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in open {
        // One of the descriptors belonged to the listing of the directory, and is already closed.
        let _ = nix::unistd::close(number);
    }
}

/// Who receives the reports about the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportTarget {
    /// The launcher process. It reads the supervisor's standard output and holds the other end of
    /// its standard input.
    Pipe,
    /// The user that called this process.
    User,
    /// The user that called this process to open a browser.
    Viewer,
}

impl ReportTarget {
    fn report(self, report: &Report) -> io::Result<()> {
        match (self, report) {
            (ReportTarget::Pipe, _) => report.send(&mut io::stdout()),
            (ReportTarget::User | ReportTarget::Viewer, Report::Failed(text)) => {
                print_error(text);
                Ok(())
            }
            // Warnings are in the log.
            (ReportTarget::User | ReportTarget::Viewer, Report::Warning(_)) => Ok(()),
            (ReportTarget::User, Report::Ready) => {
                notify::notify_ready();
                Ok(())
            }
            (ReportTarget::Viewer, Report::Ready)
            | (ReportTarget::User | ReportTarget::Viewer, Report::Mounted) => Ok(()),
        }
    }

    /// Returns the pipe that becomes the standard error of the worker.
    fn worker_errors(self) -> io::Result<Stdio> {
        match self {
            ReportTarget::Pipe => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
            // The output is filtered before it reaches the terminal.
            ReportTarget::User | ReportTarget::Viewer => Ok(Stdio::piped()),
        }
    }
}

fn supervise(call: &Invocation, mount: &MountCommand, launcher: ReportTarget) -> ExitCode {
    // Relative paths are valid only until the working directory changes.
    let scans = scans::mount_cache_path(&mount.source, &mount.settings);
    let code = match Supervisor::start(call, mount, launcher) {
        Ok(supervisor) => supervisor.run(),
        Err(report) => {
            let _ = launcher.report(&report);
            ExitCode::FAILURE
        }
    };
    scans
        .iter()
        .for_each(|place| scans::delete_if_unused(place));
    log::logger().flush();
    code
}

struct Supervisor {
    launcher: ReportTarget,
    events: Receiver<MountEvent>,
    sender: Sender<MountEvent>,
    worker: Child,
    /// The supervision socket. It stays open until the supervisor ends.
    _supervision_socket: Arc<SupervisionSocket>,
    point: PathBuf,
    /// The mount point as the user wrote it.
    point_name: PathBuf,
    free_mount_point: FreeMountPoint,
    /// The lock of the mount point. It is held until the mount exists and other processes can see
    /// it.
    lock: Option<Flock<File>>,
    /// The mount, once the worker has made it.
    own_mount: Option<OwnMount>,
    /// Whether the worker has reported that it serves the mount.
    is_served: bool,
    unanswered: UnansweredTime,
    /// The thread that prints the worker's standard error until it ends.
    error_printer: Option<JoinHandle<()>>,
}

impl Supervisor {
    fn start(
        call: &Invocation,
        mount: &MountCommand,
        launcher: ReportTarget,
    ) -> Result<Self, Report> {
        let failure = |file: &Path, error: &Error| Report::failure(file, &error.to_string());
        let point_name = mount.mountpoint.clone();
        let of_point = |error: Error| failure(&point_name, &error);
        let point = mount_point::resolve_mount_point(&point_name).map_err(of_point)?;
        let lock = mounts::lock_mount_point(&point);
        let place = FreeMountPoint::check(&point).map_err(of_point)?;
        let log = logging::start(&mount.log_destination())
            .map_err(|error| log_failure_report(mount, &error))?;
        let of_source = |error: Error| failure(&mount.source.name(), &error);
        let asked = rotation::register_reopen_signal().map_err(of_source)?;
        let (sender, events) = channel();
        // The user's own process must respect nohup(1).
        let hangup_ends = launcher == ReportTarget::Pipe || !hangup_is_ignored();
        watch_signals(hangup_ends, &sender).map_err(of_source)?;
        if launcher == ReportTarget::Pipe {
            watch_launcher(&sender);
        }
        let fetcher = sender.clone();
        let fetcher_ended = move || drop(fetcher.send(MountEvent::FetcherGone));
        let ends = start_fetcher(call, mount, fetcher_ended).map_err(of_source)?;
        let errors = launcher.worker_errors();
        let (mut worker, leash) = start_worker(call, errors, ends.as_ref()).map_err(of_source)?;
        if ends.is_some() {
            // The environment may contain keys.
            sandbox::hide_memory();
        }
        watch_worker(&mut worker, &sender);
        let leash = Arc::new(SupervisionSocket::new(leash));
        let answering = Arc::clone(&leash);
        thread::spawn(move || answering.answer_queries());
        if let Some(file) = log.file {
            rotation::watch_log_file(file, asked, Arc::clone(&leash));
        }
        let shown = worker.stderr.take().map(forward_errors);
        // The worker was started in the user's directory, because paths may be relative. From now
        // on, the supervisor must not block any directory.
        let _ = std::env::set_current_dir("/");
        Ok(Supervisor {
            launcher,
            events,
            sender,
            _supervision_socket: leash,
            worker,
            point,
            point_name,
            free_mount_point: place,
            lock,
            own_mount: None,
            is_served: false,
            unanswered: UnansweredTime::default(),
            error_printer: shown,
        })
    }

    fn run(mut self) -> ExitCode {
        let outcome = self.wait_until_ready().and_then(|()| {
            // If the launcher has exited, it was stopped, and no user knows of the mount.
            let told = self.launcher.report(&Report::Ready);
            told.map_err(|_| self.failure("the launcher has ended"))
        });
        match outcome {
            Ok(()) => {
                if self.launcher == ReportTarget::Viewer {
                    let point = self.point.clone();
                    // The browser reads the mount, which may not respond.
                    thread::spawn(move || browser::open_page(&point));
                }
                self.wait_until_end()
            }
            Err(report) => {
                self.stop();
                self.print_remaining_errors();
                let _ = self.launcher.report(&report);
                self.wait_until_uncovered();
                ExitCode::FAILURE
            }
        }
    }

    fn failure(&self, reason: &str) -> Report {
        Report::failure(&self.point_name, reason)
    }

    /// Waits until the mount responds.
    fn wait_until_ready(&mut self) -> Result<(), Report> {
        loop {
            match self.next_event() {
                MountEvent::Report(Report::Mounted) => {
                    self.own_mount = self.free_mount_point.find_own_mount(None).ok();
                    if self.own_mount.is_none() && self.launcher == ReportTarget::Pipe {
                        return Err(self.failure("the mount is gone"));
                    }
                    self.lock = None;
                }
                MountEvent::Report(warning @ Report::Warning(_)) => {
                    // If the launcher has exited, the next report to it fails.
                    let _ = self.launcher.report(&warning);
                }
                MountEvent::Report(Report::Ready) => {
                    self.is_served = true;
                    if self.own_mount.is_none() {
                        // The user has already unmounted.
                        if !self.was_unmounted_by_user() {
                            return Err(self.failure("the mount is gone"));
                        }
                        let _ = self.sender.send(MountEvent::WorkerGone);
                        return Ok(());
                    }
                    self.start_probing();
                }
                MountEvent::Report(failed) => return Err(failed),
                MountEvent::Probe(ProbeStep::Sent) => {}
                MountEvent::Probe(ProbeStep::Answered(Ok(()))) => return Ok(()),
                MountEvent::Probe(ProbeStep::Answered(Err(_)) | ProbeStep::Ended)
                | MountEvent::WorkerGone
                    if self.was_unmounted_by_user() =>
                {
                    let _ = self.sender.send(MountEvent::WorkerGone);
                    return Ok(());
                }
                MountEvent::Probe(ProbeStep::Answered(Err(errno))) => {
                    let error = Error::from_io(&errno.into(), "the mount does not answer");
                    return Err(self.failure(&error.to_string()));
                }
                MountEvent::Probe(ProbeStep::Ended) => {
                    return Err(self.failure("the mount is gone"));
                }
                MountEvent::Hung => return Err(self.failure("the mount does not answer")),
                MountEvent::Invalid => return Err(self.failure(INVALID_REPORTS)),
                // The worker's report of a failure, or the end of its reports, is one of the next
                // events.
                MountEvent::FetcherGone
                    if self.exits_before(Instant::now() + JOINT_EXIT_INTERVAL) => {}
                MountEvent::FetcherGone => return Err(self.failure(FETCHER_GONE)),
                MountEvent::WorkerGone => {
                    let end = describe_exit(self.wait_for_exit());
                    return Err(self.failure(&format!("the mount ended before it answered: {end}")));
                }
                MountEvent::Signal(number) => {
                    let reason = format!(
                        "stopped by {} before the mount answered",
                        signal_name(number)
                    );
                    return Err(self.failure(&reason));
                }
                MountEvent::LauncherGone => return Err(self.failure("the launcher has ended")),
            }
        }
    }

    /// Returns whether a mount in the foreground was served, and unmounted by its user before the
    /// first check.
    fn was_unmounted_by_user(&mut self) -> bool {
        self.is_served
            && self.launcher != ReportTarget::Pipe
            && self.exits_within(EXIT_TIMEOUT)
            && matches!(self.worker.wait(), Ok(status) if status.success())
    }

    /// Waits until the mount must end or has ended, and cleans up.
    fn wait_until_end(mut self) -> ExitCode {
        let reason = loop {
            match self.next_event() {
                MountEvent::Signal(number) => {
                    log::info!("{}: {}", self.point.display(), signal_name(number));
                    break None;
                }
                MountEvent::FetcherGone
                    if !self.exits_before(Instant::now() + JOINT_EXIT_INTERVAL) =>
                {
                    break Some(FETCHER_GONE.to_owned());
                }
                // A fetcher exits after its worker.
                MountEvent::WorkerGone | MountEvent::FetcherGone => break self.worker_failure(),
                // The worker exits by itself, unless a request delays it.
                MountEvent::Probe(ProbeStep::Ended)
                    if self.exits_within(limits::UNMOUNTED_WORKER) =>
                {
                    break self.worker_failure();
                }
                MountEvent::Probe(ProbeStep::Ended) => {
                    let point = self.point.display();
                    log::warn!("{point}: the worker did not end after the unmount and is killed");
                    break None;
                }
                MountEvent::Invalid => break Some(INVALID_REPORTS.to_owned()),
                MountEvent::Hung => break Some("it no longer answered".to_owned()),
                MountEvent::Report(_) | MountEvent::Probe(_) | MountEvent::LauncherGone => {}
            }
        };
        self.stop();
        self.print_remaining_errors();
        if let Some(reason) = &reason {
            log::error!("{}: unmounted: {reason}", self.point.display());
        }
        self.wait_until_uncovered();
        if reason.is_none() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn next_event(&mut self) -> MountEvent {
        const SECOND: Duration = Duration::from_secs(1);
        loop {
            let event = if self.unanswered.is_waiting() {
                self.events.recv_timeout(SECOND)
            } else {
                let event = self.events.recv();
                event.map_err(|_| RecvTimeoutError::Disconnected)
            };
            match event {
                Ok(MountEvent::Probe(ProbeStep::Sent)) => self.unanswered.start(),
                Ok(event) => {
                    if let MountEvent::Probe(_) = event {
                        self.unanswered.reset();
                    }
                    return event;
                }
                Err(RecvTimeoutError::Timeout) => {
                    let waits = || heartbeat::waits_for_disk(self.worker.id());
                    if self.unanswered.count_second(waits) {
                        return MountEvent::Hung;
                    }
                }
                // The supervisor keeps a sender, so the channel never closes.
                Err(RecvTimeoutError::Disconnected) => return MountEvent::WorkerGone,
            }
        }
    }

    /// Starts a thread that checks whether the mount answers, so that the main thread still
    /// receives signals.
    fn start_probing(&self) {
        if let Some(own) = self.own_mount.clone() {
            let sender = self.sender.clone();
            heartbeat::probe_at_intervals(own, move |look| {
                sender.send(MountEvent::Probe(look)).is_ok()
            });
        }
    }

    /// Ends the worker and removes the mount, whatever their state. A mount that another mount
    /// covers stays.
    fn stop(&mut self) {
        if matches!(self.worker.try_wait(), Ok(None)) {
            self.unmount();
            // A worker exits by itself after its mount is gone. A worker that does not serve yet
            // has no requests to finish.
            let is_gone = self.is_served && self.own_mount.is_none();
            if !is_gone || !self.exits_within(SERVING_EXIT_TIMEOUT) {
                self.kill();
            }
        }
        let _ = self.worker.wait();
        if self.own_mount.is_none() {
            // A killed worker leaves its mount, possibly before it reported the mount.
            self.own_mount = self
                .free_mount_point
                .find_own_mount(None)
                .ok()
                .filter(OwnMount::is_dead);
        }
        self.unmount();
    }

    /// Removes the mount. Clears `own_mount` if the mount no longer exists, or if it cannot be
    /// removed. Keeps it if another mount covers the mount.
    fn unmount(&mut self) {
        let removal = self.own_mount.as_ref().map(OwnMount::unmount);
        match removal {
            Some(Ok(UnmountResult::Deferred)) | None => {}
            Some(Ok(UnmountResult::Done)) => self.own_mount = None,
            Some(Err(error)) => {
                log::error!("cannot unmount: {error}");
                self.own_mount = None;
            }
        }
    }

    /// Waits until no other mount covers the mount, and then removes it.
    fn wait_until_uncovered(&mut self) {
        if let Some(own) = self.own_mount.take() {
            let point = self.point.display();
            log::warn!(
                "{point}: covered by another mount; h5fs's mount ends after that one is unmounted"
            );
            if let Err(error) = own.unmount_when_uncovered() {
                log::error!("cannot unmount: {error}");
            }
        }
    }

    fn kill(&self) {
        // The helper that mounts for a user is in the worker's process group.
        let group = Pid::from_raw(i32::try_from(self.worker.id()).unwrap_or(i32::MAX));
        let _ = killpg(group, Signal::SIGKILL);
    }

    /// Returns the exit status of a worker that has closed its standard output. Kills the worker if
    /// it does not exit.
    fn wait_for_exit(&mut self) -> io::Result<ExitStatus> {
        if !self.exits_before(Instant::now() + EXIT_TIMEOUT) {
            self.kill();
        }
        self.worker.wait()
    }

    /// Waits for the exit of the worker. Returns the reason if the worker has failed. Returns
    /// `None` if the mount has ended, because only then does a worker exit successfully.
    fn worker_failure(&mut self) -> Option<String> {
        match self.wait_for_exit() {
            Ok(status) if status.success() => None,
            end => Some(describe_exit(end)),
        }
    }

    /// Waits until everything that the worker has written to standard error is printed.
    fn print_remaining_errors(&mut self) {
        if let Some(shown) = self.error_printer.take() {
            let _ = shown.join();
        }
    }

    /// Waits for the exit of the worker, at most for the time `patience`. Returns whether it has
    /// exited.
    fn exits_within(&mut self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        loop {
            if matches!(self.worker.try_wait(), Ok(Some(_))) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(MountEvent::WorkerGone) => return self.exits_before(end),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Waits for the exit of the worker until `end`. Returns whether it has exited. Checks at short
    /// intervals, because a worker exits shortly after it closes its output.
    fn exits_before(&mut self, end: Instant) -> bool {
        while Instant::now() < end {
            if matches!(self.worker.try_wait(), Ok(Some(_))) {
                return true;
            }
            thread::sleep(EXIT_CHECK_INTERVAL);
        }
        false
    }
}

/// Returns the report of a failed mount whose log cannot be written.
fn log_failure_report(mount: &MountCommand, error: &Error) -> Report {
    let source = mount.source.name();
    let file = mount.settings.log_file.as_deref().unwrap_or(&source);
    Report::failure(file, &error.to_string())
}

/// Ends a failed mount for the launcher, if the supervisor has not done this. A supervisor that
/// waits because another mount covers its mount is left alone.
pub(in crate::cli) fn end_failed_mount(supervisor: &mut Child, place: Option<&FreeMountPoint>) {
    if let (Ok(None), Ok(id)) = (supervisor.try_wait(), i32::try_from(supervisor.id())) {
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    let end = Instant::now() + EXIT_TIMEOUT;
    while Instant::now() < end {
        match supervisor.try_wait() {
            Ok(None) => {}
            // The supervisor has cleaned up.
            Ok(Some(status)) if status.code().is_some() => return,
            // A killed supervisor leaves a worker, which leaves its mount.
            _ => match place.and_then(|place| place.find_own_mount(None).ok()) {
                Some(own) if own.is_dead() => drop(own.unmount()),
                Some(_) => {}
                None => return,
            },
        }
        thread::sleep(EXIT_CHECK_INTERVAL);
    }
}

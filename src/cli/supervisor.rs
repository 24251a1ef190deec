//! The process that sees to it that a mount ends well.
//!
//! It starts the worker, waits, and takes the mount away when the worker ends for any reason or at SIGINT,
//! SIGTERM or SIGHUP. It reads nothing of the source, so no source can make it fail. What somebody else
//! mounts at the same place is left alone: our mount is known by its device number as long as it is served,
//! and by not answering afterwards.
//!
//! The worker's standard output is a pipe to here: lines tell of the mount, and its end, that the worker is
//! gone. The worker's standard input is a leash: its end tells the worker that the supervisor is gone. The worker
//! can do nothing about its mount, since its cage lets nobody out, so unmounting is done here alone.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::args::Mount;
use crate::cli::mounts;
use crate::cli::{Call, Report, Role, complain, logging};
use crate::error::{Error, Result};
use crate::source::device::Device;

/// How long a worker may take to end once its mount is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Supervises one mount until it ends, with the launcher at the other end of the standard streams.
pub(super) fn run_detached(call: &Call, mount: &Mount) -> ExitCode {
    close_inherited();
    // It fails only for the leader of a process group, and a child of the launcher leads none.
    let _ = nix::unistd::setsid();
    supervise(call, mount, Launcher::Pipe)
}

/// Supervises one mount until it ends, as the process that the user called.
pub(super) fn run_in_foreground(call: &Call, mount: &Mount) -> ExitCode {
    supervise(call, mount, Launcher::User)
}

/// Closes what the launcher inherited beyond the three standard streams: a caller that waits for the end of
/// such a pipe, or holds a lock by it, must not wait for the unmount. Nothing of our own is open yet.
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
        // One of them was the directory's own and is closed already.
        let _ = nix::unistd::close(number);
    }
}

/// By what the worker's C library, where it is glibc, gives freed memory back (`mallopt(3)`): what has 4 MiB at once,
/// and at the end of a heap what is more than that. Left alone it learns from what is freed to keep up to 32 and 64 MiB,
/// and that in each of its heaps, of which there are as many as threads. Two do: with one, threads wait for each other.
const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "4194304"),
    ("MALLOC_TRIM_THRESHOLD_", "4194304"),
];

/// Who is told how the mount went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launcher {
    /// The launching process, through our standard output; its end shows at our standard input.
    Pipe,
    /// The user, who called this very process.
    User,
}

impl Launcher {
    fn tell(self, report: &Report) -> io::Result<()> {
        match (self, report) {
            (Launcher::Pipe, _) => report.send(),
            (Launcher::User, Report::Failed(text)) => {
                complain(text);
                Ok(())
            }
            (Launcher::User, _) => Ok(()),
        }
    }
}

/// What the supervisor waits for.
enum Event {
    /// A line of the worker's.
    Report(Report),
    /// The worker closed its standard output: it is gone or about to be.
    WorkerGone,
    /// The mount point was looked at, through the mount.
    Answered(io::Result<()>),
    /// SIGINT, SIGTERM or SIGHUP.
    Signal(i32),
    /// Nobody waits for the mount any more.
    LauncherGone,
}

fn supervise(call: &Call, mount: &Mount, launcher: Launcher) -> ExitCode {
    let code = match Supervisor::start(call, mount, launcher) {
        Ok(supervisor) => supervisor.run(),
        Err(report) => {
            let _ = launcher.tell(&report);
            ExitCode::FAILURE
        }
    };
    log::logger().flush();
    code
}

struct Supervisor {
    launcher: Launcher,
    events: Receiver<Event>,
    sender: Sender<Event>,
    worker: Child,
    /// Held until the end.
    _leash: Option<ChildStdin>,
    point: PathBuf,
    /// As the user wrote it.
    point_name: PathBuf,
    /// Known once the worker has mounted.
    device: Option<Device>,
    /// Whether the worker serves its mount.
    is_served: bool,
}

impl Supervisor {
    fn start(call: &Call, mount: &Mount, launcher: Launcher) -> std::result::Result<Self, Report> {
        let failure = |file: &Path, error: &Error| Report::failure(file, &error.to_string());
        let point_name = mount.mountpoint.clone();
        let point = free_directory(&point_name).map_err(|error| failure(&point_name, &error))?;
        logging::start(&mount.log_destination()).map_err(|error| failure(&mount.source, &error))?;
        let (sender, events) = channel();
        watch_signals(launcher, &sender).map_err(|error| failure(&mount.source, &error))?;
        if launcher == Launcher::Pipe {
            watch_launcher(&sender);
        }
        let mut worker =
            start_worker(call, launcher).map_err(|error| failure(&mount.source, &error))?;
        watch_worker(&mut worker, &sender);
        // The worker was started where the user stands, for the sake of relative paths; from here on no
        // directory is held.
        let _ = std::env::set_current_dir("/");
        Ok(Supervisor {
            launcher,
            events,
            sender,
            _leash: worker.stdin.take(),
            worker,
            point,
            point_name,
            device: None,
            is_served: false,
        })
    }

    fn run(mut self) -> ExitCode {
        let outcome = self.until_ready().and_then(|()| {
            // A launcher that is not there any more was stopped: nobody knows of the mount.
            let told = self.launcher.tell(&Report::Ready);
            told.map_err(|_| Report::failure(&self.point_name, "the launcher is gone"))
        });
        match outcome {
            Ok(()) => self.until_the_end(),
            Err(report) => {
                self.stop();
                let _ = self.launcher.tell(&report);
                ExitCode::FAILURE
            }
        }
    }

    /// Waits until the mount answers.
    fn until_ready(&mut self) -> std::result::Result<(), Report> {
        loop {
            match self.next() {
                Event::Report(Report::Mounted(device)) => self.device = device.parse().ok(),
                Event::Report(Report::Ready) => {
                    self.is_served = true;
                    self.ask();
                }
                Event::Report(failed) => return Err(failed),
                Event::Answered(Ok(())) => return Ok(()),
                Event::Answered(Err(error)) => {
                    let error = Error::io(&error, "the mount does not answer");
                    return Err(Report::failure(&self.point_name, &error.to_string()));
                }
                Event::WorkerGone => {
                    let end = describe(self.wait());
                    let reason = format!("the mount ended before it answered: {end}");
                    return Err(Report::failure(&self.point_name, &reason));
                }
                Event::Signal(number) => {
                    let reason = format!("stopped by {} before the mount answered", signal(number));
                    return Err(Report::failure(&self.point_name, &reason));
                }
                Event::LauncherGone => {
                    return Err(Report::failure(&self.point_name, "the launcher is gone"));
                }
            }
        }
    }

    /// Waits until the mount is to end, or has ended, and leaves nothing behind.
    fn until_the_end(mut self) -> ExitCode {
        loop {
            match self.next() {
                Event::Signal(number) => {
                    log::info!("{}: {}", self.point.display(), signal(number));
                    self.stop();
                    return ExitCode::SUCCESS;
                }
                Event::WorkerGone => {
                    let status = self.wait();
                    // Only the end of the mount ends the worker well.
                    if matches!(&status, Ok(status) if status.success()) {
                        return ExitCode::SUCCESS;
                    }
                    self.stop();
                    let end = describe(status);
                    log::error!("{}: unmounted: {end}", self.point.display());
                    return ExitCode::FAILURE;
                }
                Event::Report(_) | Event::Answered(_) | Event::LauncherGone => {}
            }
        }
    }

    fn next(&self) -> Event {
        // The supervisor holds a sender itself, so the channel has no end.
        self.events.recv().unwrap_or(Event::WorkerGone)
    }

    /// Looks at the mount point from a thread: who waits for a mount must still hear a signal.
    fn ask(&self) {
        let (point, sender) = (self.point.clone(), self.sender.clone());
        thread::spawn(move || {
            let answer = mounts::ask(&point).map_err(io::Error::from);
            let _ = sender.send(Event::Answered(answer));
        });
    }

    /// Ends the worker and the mount, whatever state they are in.
    fn stop(&mut self) {
        if let Some(device) = self.device
            && matches!(self.worker.try_wait(), Ok(None))
        {
            report_failure(mounts::unmount(device));
        }
        // A worker that does not serve yet has nothing to finish.
        if !self.is_served || !self.gone_within(PATIENCE) {
            // The helper that mounts for a user is in the worker's group.
            let group = Pid::from_raw(i32::try_from(self.worker.id()).unwrap_or(i32::MAX));
            let _ = killpg(group, Signal::SIGKILL);
        }
        let _ = self.wait();
        // Killed, the worker leaves its mount behind, perhaps without ever having told of it.
        report_failure(mounts::unmount_dead(self.device, &self.point));
    }

    /// Whether the worker ended within this time.
    fn gone_within(&mut self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        loop {
            if matches!(self.worker.try_wait(), Ok(Some(_))) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::WorkerGone) => return self.exits_soon(end),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Between the end of a worker's output and its own there is only a moment.
    fn exits_soon(&mut self, end: Instant) -> bool {
        while Instant::now() < end {
            if matches!(self.worker.try_wait(), Ok(Some(_))) {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        self.worker.wait()
    }
}

fn report_failure(unmounted: Result<()>) {
    if let Err(error) = unmounted {
        log::error!("cannot unmount: {error}");
    }
}

/// The directory's absolute path without links, if something can be mounted there.
fn free_directory(path: &Path) -> Result<PathBuf> {
    let io = |error: &io::Error| Error::io(error, path.display().to_string());
    let point = path.canonicalize().map_err(|error| io(&error))?;
    if mounts::is_mount_point(&point)? {
        return Err(Error::Usage("already a mount point".to_owned()));
    }
    if !point.metadata().map_err(|error| io(&error))?.is_dir() {
        return Err(io(&nix::errno::Errno::ENOTDIR.into()));
    }
    Ok(point)
}

fn start_worker(call: &Call, launcher: Launcher) -> Result<Child> {
    let started = call.again(Role::Worker).and_then(|mut command| {
        command
            .envs(allocator_settings())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match launcher {
                Launcher::Pipe => Stdio::null(),
                Launcher::User => Stdio::inherit(),
            })
            // Control-C is for the supervisor alone.
            .process_group(0)
            .spawn()
    });
    started.map_err(|error| Error::io(&error, "starting the worker"))
}

/// What of [`ALLOCATOR`] the user has not set otherwise.
fn allocator_settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_free = |(name, _): &(&str, &str)| std::env::var_os(name).is_none();
    ALLOCATOR.into_iter().filter(is_free)
}

fn watch_worker(worker: &mut Child, sender: &Sender<Event>) {
    let Some(output) = worker.stdout.take() else {
        return;
    };
    let sender = sender.clone();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        // What is not a report is as good as silence.
        while output
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            if let Some(report) = str::from_utf8(&line).ok().and_then(Report::parse) {
                let _ = sender.send(Event::Report(report));
            }
            line.clear();
        }
        let _ = sender.send(Event::WorkerGone);
    });
}

fn watch_launcher(sender: &Sender<Event>) {
    let sender = sender.clone();
    thread::spawn(move || {
        // It writes nothing: this returns when it ends.
        let _ = io::stdin().read(&mut [0]);
        let _ = sender.send(Event::LauncherGone);
    });
}

fn watch_signals(launcher: Launcher, sender: &Sender<Event>) -> Result<()> {
    let mut watched = vec![SIGINT, SIGTERM];
    // nohup(1) means what it says, as long as the user's own process is meant.
    if launcher == Launcher::Pipe || !hangup_is_ignored() {
        watched.push(SIGHUP);
    }
    let mut signals =
        Signals::new(watched).map_err(|error| Error::io(&error, "waiting for signals"))?;
    let sender = sender.clone();
    thread::spawn(move || {
        for number in signals.forever() {
            if sender.send(Event::Signal(number)).is_err() {
                break;
            }
        }
    });
    Ok(())
}

/// Whether we were started with SIGHUP ignored; proc(5), /proc/PID/status, `SigIgn`.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

fn signal(number: i32) -> &'static str {
    Signal::try_from(number).map_or("a signal", Signal::as_str)
}

fn describe(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("the worker ended with status {code}"),
            (None, number) => format!("the worker was ended by {}", signal(number.unwrap_or(0))),
        },
        Err(error) => format!("the worker is lost: {error}"),
    }
}

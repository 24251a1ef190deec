//! The process that sees to it that a mount ends well.
//!
//! It starts the worker, waits, and takes the mount away when the worker ends for any reason or at
//! SIGINT, SIGTERM or SIGHUP. It reads nothing of the source, so no source can make it fail. A
//! mount that another program made at the same place is left alone: our mount is known by the
//! number that the kernel gave it. Where another mount covers it, it is taken away as soon as that
//! is gone.
//!
//! The worker's standard output is a pipe to here: lines tell of the mount, and its end, that the
//! worker is gone. The worker's standard input is a leash: its end tells the worker that the
//! supervisor is gone. By it, the worker asks whether processes that wait for it were killed. The worker can do nothing about its mount, since its cage lets nobody out,
//! so unmounting is done here alone. The source may have taken the worker over: it is not believed
//! (see `report`), and a mount that does not answer any more is ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::fcntl::Flock;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::args::Mount;
use crate::cli::cage;
use crate::cli::call::{Call, Role};
use crate::cli::mount::askers::Leash;
use crate::cli::mount::browser;
use crate::cli::mount::handover::{self, Ends};
use crate::cli::mount::heartbeat::{self, Look, Unanswered};
use crate::cli::mount::mount_point;
use crate::cli::mount::mounts::{self, FreePlace, OwnMount, Removal};
use crate::cli::mount::notify;
use crate::cli::mount::report::{Garbled, Report, Reports};
use crate::cli::mount::rotation;
use crate::cli::scans;
use crate::cli::words::complaint::complain;
use crate::cli::words::lines::each_line;
use crate::cli::words::logging::{self, Destination};
use crate::error::{Error, Result, words_of};
use crate::limits;

/// How long a worker may take to end once its mount is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same of one that still serves when the mount is taken away: its requests may wait for a
/// server that does not answer.
const SERVING_PATIENCE: Duration = Duration::from_secs(1);

/// How long after its fetcher a worker that has ended may take to be gone.
pub(in crate::cli) const TOGETHER: Duration = Duration::from_millis(500);

/// Between two looks at what is about to end.
const MOMENT: Duration = Duration::from_millis(5);

/// Why a mount is ended whose worker cannot be trusted.
const GARBLED: &str = "the worker's reports are invalid";

/// Why a mount is ended to whose server there is no way any more.
pub(in crate::cli) const FETCHER_GONE: &str = "the fetcher has ended";

/// Supervises one mount until it ends, with the launcher at the other end of the standard streams.
pub(in crate::cli) fn run_detached(call: &Call, mount: &Mount) -> ExitCode {
    close_inherited();
    // It fails only for the leader of a process group, and a child of the launcher leads none.
    let _ = nix::unistd::setsid();
    supervise(call, mount, Launcher::Pipe)
}

/// Supervises one mount until it ends, as the process that the user called.
pub(in crate::cli) fn run_in_foreground(call: &Call, mount: &Mount) -> ExitCode {
    supervise(call, mount, Launcher::User)
}

/// The same, and opens what is to be looked at as soon as the mount answers.
pub(in crate::cli) fn run_for_viewer(call: &Call, mount: &Mount) -> ExitCode {
    supervise(call, mount, Launcher::Viewer)
}

/// Closes what the launcher inherited beyond the three standard streams: a caller that waits for
/// the end of such a pipe, or holds a lock by it, must not wait for the unmount. Nothing of our own
/// is open yet.
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

/// Settings by which the worker's C library, where it is glibc, keeps freed memory (`mallopt(3)`).
/// Up to 16 MiB at the end of the heap stay for the next chunks: fresh memory costs a page fault
/// every 4 KiB. Blocks of 16 MiB or more are given back at once. Without these settings glibc
/// learns from freed blocks to keep up to 32 and 64 MiB in each of its heaps, of which there are as
/// many as threads. There is one heap: memory that one thread has freed then serves all others, and
/// any thread may answer a request. The heap grows by a mebibyte at a time, so that threads seldom
/// wait for that.
const ALLOCATOR: [(&str, &str); 4] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "16777216"),
    ("MALLOC_TRIM_THRESHOLD_", "16777216"),
    ("MALLOC_TOP_PAD_", "1048576"),
];

/// The party that is told how the mount went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launcher {
    /// The launching process, through our standard output; its end shows at our standard input.
    Pipe,
    /// The user that called this very process.
    User,
    /// The same, to look at the mount.
    Viewer,
}

impl Launcher {
    fn tell(self, report: &Report) -> io::Result<()> {
        match (self, report) {
            (Launcher::Pipe, _) => report.send(&mut io::stdout()),
            (Launcher::User | Launcher::Viewer, Report::Failed(text)) => {
                complain(text);
                Ok(())
            }
            // The log says it.
            (Launcher::User | Launcher::Viewer, Report::Warning(_)) => Ok(()),
            (Launcher::User, Report::Ready) => {
                notify::ready();
                Ok(())
            }
            (Launcher::Viewer, Report::Ready)
            | (Launcher::User | Launcher::Viewer, Report::Mounted) => Ok(()),
        }
    }
}

/// An event that the supervisor waits for.
enum Event {
    /// A line of the worker's.
    Report(Report),
    /// The worker sent a line that is no report.
    Garbled,
    /// The worker closed its standard output: it is gone or about to be.
    WorkerGone,
    /// The fetcher is gone.
    FetcherGone,
    /// Somebody looked through the mount.
    Look(Look),
    /// The mount has not answered for too long.
    Hung,
    /// SIGINT, SIGTERM or SIGHUP.
    Signal(i32),
    /// Nobody waits for the mount any more.
    LauncherGone,
}

fn supervise(call: &Call, mount: &Mount, launcher: Launcher) -> ExitCode {
    // While relative paths still lead on.
    let scans = scans::place_of(&mount.source, &mount.settings);
    let code = match Supervisor::start(call, mount, launcher) {
        Ok(supervisor) => supervisor.run(),
        Err(report) => {
            let _ = launcher.tell(&report);
            ExitCode::FAILURE
        }
    };
    scans.iter().for_each(|place| scans::clear(place));
    log::logger().flush();
    code
}

struct Supervisor {
    launcher: Launcher,
    events: Receiver<Event>,
    sender: Sender<Event>,
    worker: Child,
    /// Held until the end.
    _leash: Arc<Leash>,
    point: PathBuf,
    /// As the user wrote it.
    point_name: PathBuf,
    place: FreePlace,
    /// Held until the mount is there, and others see it.
    lock: Option<Flock<File>>,
    /// Known once the worker has mounted.
    own: Option<OwnMount>,
    /// Whether the worker serves its mount.
    is_served: bool,
    unanswered: Unanswered,
    /// Shows what the worker writes to standard error, until it ends.
    shown: Option<JoinHandle<()>>,
}

impl Supervisor {
    fn start(call: &Call, mount: &Mount, launcher: Launcher) -> std::result::Result<Self, Report> {
        let failure = |file: &Path, error: &Error| Report::failure(file, &error.to_string());
        let point_name = mount.mountpoint.clone();
        let of_point = |error: Error| failure(&point_name, &error);
        let point = mount_point::directory(&point_name).map_err(of_point)?;
        let lock = mounts::lock(&point);
        let place = FreePlace::at(&point).map_err(of_point)?;
        let log = logging::start(&Destination::of(mount)).map_err(|error| of_log(mount, &error))?;
        let of_source = |error: Error| failure(&mount.source.name(), &error);
        let asked = rotation::asked().map_err(of_source)?;
        let (sender, events) = channel();
        watch_signals(launcher, &sender).map_err(of_source)?;
        if launcher == Launcher::Pipe {
            watch_launcher(&sender);
        }
        let ends = start_fetcher(call, mount, &sender).map_err(of_source)?;
        let (mut worker, leash) = start_worker(call, launcher, ends.as_ref()).map_err(of_source)?;
        if ends.is_some() {
            // The environment may hold keys.
            cage::hide_memory();
        }
        watch_worker(&mut worker, &sender);
        let leash = Arc::new(Leash::new(leash));
        let answering = Arc::clone(&leash);
        thread::spawn(move || answering.answer());
        if let Some(file) = log.file {
            rotation::watch(file, asked, Arc::clone(&leash));
        }
        let shown = worker.stderr.take().map(show);
        // The worker was started where the user stands, for the sake of relative paths; from here
        // on no directory is held.
        let _ = std::env::set_current_dir("/");
        Ok(Supervisor {
            launcher,
            events,
            sender,
            _leash: leash,
            worker,
            point,
            point_name,
            place,
            lock,
            own: None,
            is_served: false,
            unanswered: Unanswered::default(),
            shown,
        })
    }

    fn run(mut self) -> ExitCode {
        let outcome = self.until_ready().and_then(|()| {
            // A launcher that is not there any more was stopped: nobody knows of the mount.
            let told = self.launcher.tell(&Report::Ready);
            told.map_err(|_| self.failure("the launcher has ended"))
        });
        match outcome {
            Ok(()) => {
                if self.launcher == Launcher::Viewer {
                    let point = self.point.clone();
                    // It looks through the mount, which may not answer.
                    thread::spawn(move || browser::show(&point));
                }
                self.until_the_end()
            }
            Err(report) => {
                self.stop();
                self.show_rest();
                let _ = self.launcher.tell(&report);
                self.wait_until_uncovered();
                ExitCode::FAILURE
            }
        }
    }

    fn failure(&self, reason: &str) -> Report {
        Report::failure(&self.point_name, reason)
    }

    /// Waits until the mount answers.
    fn until_ready(&mut self) -> std::result::Result<(), Report> {
        loop {
            match self.next() {
                Event::Report(Report::Mounted) => {
                    self.own = self.place.mounted(None).ok();
                    if self.own.is_none() && self.launcher == Launcher::Pipe {
                        return Err(self.failure("the mount is gone"));
                    }
                    self.lock = None;
                }
                Event::Report(warning @ Report::Warning(_)) => {
                    // That the launcher has ended shows when it is told of the mount.
                    let _ = self.launcher.tell(&warning);
                }
                Event::Report(Report::Ready) => {
                    self.is_served = true;
                    if self.own.is_none() {
                        // Its user was faster than this process.
                        if !self.is_taken_away() {
                            return Err(self.failure("the mount is gone"));
                        }
                        let _ = self.sender.send(Event::WorkerGone);
                        return Ok(());
                    }
                    self.look();
                }
                Event::Report(failed) => return Err(failed),
                Event::Look(Look::Asked) => {}
                Event::Look(Look::Answered(Ok(()))) => return Ok(()),
                Event::Look(Look::Answered(Err(_)) | Look::Ended) | Event::WorkerGone
                    if self.is_taken_away() =>
                {
                    let _ = self.sender.send(Event::WorkerGone);
                    return Ok(());
                }
                Event::Look(Look::Answered(Err(errno))) => {
                    let error = Error::io(&errno.into(), "the mount does not answer");
                    return Err(self.failure(&error.to_string()));
                }
                Event::Look(Look::Ended) => return Err(self.failure("the mount is gone")),
                Event::Hung => return Err(self.failure("the mount does not answer")),
                Event::Garbled => return Err(self.failure(GARBLED)),
                // The worker has told why it ended, or the end of its reports tells.
                Event::FetcherGone if self.exits_soon(Instant::now() + TOGETHER) => {}
                Event::FetcherGone => return Err(self.failure(FETCHER_GONE)),
                Event::WorkerGone => {
                    let end = describe(self.ended());
                    return Err(self.failure(&format!("the mount ended before it answered: {end}")));
                }
                Event::Signal(number) => {
                    let reason = format!("stopped by {} before the mount answered", signal(number));
                    return Err(self.failure(&reason));
                }
                Event::LauncherGone => return Err(self.failure("the launcher has ended")),
            }
        }
    }

    /// Whether a mount in the foreground was served, and its user took it away before it was looked
    /// at.
    fn is_taken_away(&mut self) -> bool {
        self.is_served
            && self.launcher != Launcher::Pipe
            && self.gone_within(PATIENCE)
            && matches!(self.worker.wait(), Ok(status) if status.success())
    }

    /// Waits until the mount is to end, or has ended, and leaves nothing behind.
    fn until_the_end(mut self) -> ExitCode {
        let reason = loop {
            match self.next() {
                Event::Signal(number) => {
                    log::info!("{}: {}", self.point.display(), signal(number));
                    break None;
                }
                Event::FetcherGone if !self.exits_soon(Instant::now() + TOGETHER) => {
                    break Some(FETCHER_GONE.to_owned());
                }
                // A fetcher ends when its worker has.
                Event::WorkerGone | Event::FetcherGone => break self.worker_failure(),
                // The worker ends by itself, unless a request keeps it.
                Event::Look(Look::Ended) if self.gone_within(limits::UNMOUNTED_WORKER) => {
                    break self.worker_failure();
                }
                Event::Look(Look::Ended) => {
                    let point = self.point.display();
                    log::warn!("{point}: the worker did not end after the unmount and is killed");
                    break None;
                }
                Event::Garbled => break Some(GARBLED.to_owned()),
                Event::Hung => break Some("it no longer answered".to_owned()),
                Event::Report(_) | Event::Look(_) | Event::LauncherGone => {}
            }
        };
        self.stop();
        self.show_rest();
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

    fn next(&mut self) -> Event {
        const SECOND: Duration = Duration::from_secs(1);
        loop {
            let event = if self.unanswered.is_open() {
                self.events.recv_timeout(SECOND)
            } else {
                let event = self.events.recv();
                event.map_err(|_| RecvTimeoutError::Disconnected)
            };
            match event {
                Ok(Event::Look(Look::Asked)) => self.unanswered.asked(),
                Ok(event) => {
                    if let Event::Look(_) = event {
                        self.unanswered.answered();
                    }
                    return event;
                }
                Err(RecvTimeoutError::Timeout) => {
                    let waits = || heartbeat::waits_for_disk(self.worker.id());
                    if self.unanswered.second_passed(waits) {
                        return Event::Hung;
                    }
                }
                // The supervisor holds a sender itself, so the channel has no end.
                Err(RecvTimeoutError::Disconnected) => return Event::WorkerGone,
            }
        }
    }

    /// Looks through the mount from a thread: the thread that waits for the mount must still hear a
    /// signal.
    fn look(&self) {
        if let Some(own) = self.own.clone() {
            let sender = self.sender.clone();
            heartbeat::watch(own, move |look| sender.send(Event::Look(look)).is_ok());
        }
    }

    /// Ends the worker and the mount, whatever state they are in. A mount that is covered stays.
    fn stop(&mut self) {
        if matches!(self.worker.try_wait(), Ok(None)) {
            self.take_away();
            // A worker ends by itself once its mount is gone. One that does not serve yet has
            // nothing to finish.
            let is_gone = self.is_served && self.own.is_none();
            if !is_gone || !self.gone_within(SERVING_PATIENCE) {
                self.kill();
            }
        }
        let _ = self.worker.wait();
        if self.own.is_none() {
            // Killed, the worker leaves its mount behind, perhaps without ever having told of it.
            self.own = self.place.mounted(None).ok().filter(OwnMount::is_dead);
        }
        self.take_away();
    }

    /// Our mount is forgotten once it is gone, or cannot be taken away for good.
    fn take_away(&mut self) {
        let removal = self.own.as_ref().map(OwnMount::take_away);
        match removal {
            Some(Ok(Removal::Later)) | None => {}
            Some(Ok(Removal::Done)) => self.own = None,
            Some(Err(error)) => {
                log::error!("cannot unmount: {error}");
                self.own = None;
            }
        }
    }

    /// Takes away what is left of our mount as soon as it can be reached.
    fn wait_until_uncovered(&mut self) {
        if let Some(own) = self.own.take() {
            let point = self.point.display();
            log::warn!(
                "{point}: covered by another mount; h5fs's mount ends after that one is unmounted"
            );
            if let Err(error) = own.take_away_when_uncovered() {
                log::error!("cannot unmount: {error}");
            }
        }
    }

    fn kill(&self) {
        // The helper that mounts for a user is in the worker's group.
        let group = Pid::from_raw(i32::try_from(self.worker.id()).unwrap_or(i32::MAX));
        let _ = killpg(group, Signal::SIGKILL);
    }

    /// How a worker ended that has closed its standard output; it may have done no more than that.
    fn ended(&mut self) -> io::Result<ExitStatus> {
        if !self.exits_soon(Instant::now() + PATIENCE) {
            self.kill();
        }
        self.worker.wait()
    }

    /// Waits for the end of the worker. Returns why the worker failed, or `None` if its mount has ended:
    /// only the end of the mount ends the worker well.
    fn worker_failure(&mut self) -> Option<String> {
        match self.ended() {
            Ok(status) if status.success() => None,
            end => Some(describe(end)),
        }
    }

    /// Waits until all is shown that the worker wrote.
    fn show_rest(&mut self) {
        if let Some(shown) = self.shown.take() {
            let _ = shown.join();
        }
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
            thread::sleep(MOMENT);
        }
        false
    }
}

/// Why the log cannot be written.
fn of_log(mount: &Mount, error: &Error) -> Report {
    let source = mount.source.name();
    let file = mount.settings.log_file.as_deref().unwrap_or(&source);
    Report::failure(file, &error.to_string())
}

/// For the launcher: ends a mount that failed, as far as its supervisor has not done so already. A
/// supervisor that waits until the mount can be reached is left alone.
pub(in crate::cli) fn end(supervisor: &mut Child, place: Option<&FreePlace>) {
    if let (Ok(None), Ok(id)) = (supervisor.try_wait(), i32::try_from(supervisor.id())) {
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match supervisor.try_wait() {
            Ok(None) => {}
            // It has seen to all.
            Ok(Some(status)) if status.code().is_some() => return,
            // Killed, it leaves a worker, which leaves its mount.
            _ => match place.and_then(|place| place.mounted(None).ok()) {
                Some(own) if own.is_dead() => drop(own.take_away()),
                Some(_) => {}
                None => return,
            },
        }
        thread::sleep(MOMENT);
    }
}

/// Starts the worker, and gives its leash back.
fn start_worker(
    call: &Call,
    launcher: Launcher,
    ends: Option<&Ends>,
) -> Result<(Child, UnixStream)> {
    let started = call.again(Role::Worker).and_then(|mut command| {
        let (leash, worn) = handover::leash(ends)?;
        if ends.is_some() {
            handover::without_secrets(&mut command);
        }
        let worker = command
            .envs(allocator_settings())
            .stdin(worn)
            .stdout(Stdio::piped())
            .stderr(match launcher {
                Launcher::Pipe => io::stdout().as_fd().try_clone_to_owned()?.into(),
                // Nothing of it reaches the terminal as it is.
                Launcher::User | Launcher::Viewer => Stdio::piped(),
            })
            // Control-C is for the supervisor alone.
            .process_group(0)
            .spawn()?;
        Ok((worker, leash))
    });
    started.map_err(|error| Error::io(&error, "starting the worker"))
}

/// Starts the fetcher of a source by URL; what leads to it. It ends when nobody has that any more.
fn start_fetcher(call: &Call, mount: &Mount, sender: &Sender<Event>) -> Result<Option<Ends>> {
    if mount.source.path().is_some() {
        return Ok(None);
    }
    let failed = |error: io::Error| Error::io(&error, "starting the fetcher");
    // Nothing of it reaches the terminal as it is.
    let is_read = mount.foreground || mount.settings.log_file.is_some();
    let errors = if is_read {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    let (mut process, ends) = handover::start_fetcher(call, errors).map_err(failed)?;
    match process.stderr.take() {
        Some(errors) if mount.foreground => drop(show(errors)),
        Some(errors) => rotation::log_lines(errors),
        None => {}
    }
    let sender = sender.clone();
    thread::spawn(move || {
        let _ = process.wait();
        let _ = sender.send(Event::FetcherGone);
    });
    Ok(Some(ends))
}

/// The settings of [`ALLOCATOR`] that the user has not made otherwise.
pub(in crate::cli) fn allocator_settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_free = |(name, _): &(&str, &str)| std::env::var_os(name).is_none();
    ALLOCATOR.into_iter().filter(is_free)
}

fn watch_worker(worker: &mut Child, sender: &Sender<Event>) {
    let Some(output) = worker.stdout.take() else {
        return;
    };
    let sender = sender.clone();
    thread::spawn(move || {
        let mut reports = Reports::of_worker(output);
        let last = loop {
            match reports.next() {
                Ok(Some(report)) => drop(sender.send(Event::Report(report))),
                Ok(None) => break Event::WorkerGone,
                Err(Garbled) => break Event::Garbled,
            }
        };
        let _ = sender.send(last);
    });
}

/// Shows the lines of a worker in the foreground.
/// Passes on what a process writes, as far as it is text.
pub(in crate::cli) fn show(errors: ChildStderr) -> JoinHandle<()> {
    thread::spawn(move || {
        each_line(errors, |line| {
            let _ = writeln!(io::stderr(), "{line}");
        });
    })
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
pub(in crate::cli) fn hangup_is_ignored() -> bool {
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

/// How a worker ended.
pub(in crate::cli) fn describe(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("the worker ended with status {code}"),
            (None, number) => format!("the worker was killed by {}", signal(number.unwrap_or(0))),
        },
        Err(error) => format!("waiting for the worker failed: {}", words_of(&error)),
    }
}

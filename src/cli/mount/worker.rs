//! The worker: the process that opens the source, mounts it and serves it.
//!
//! The worker opens the source and mounts with the privileges of the user that called the program.
//! Then it enters its sandbox, and only there reads the first byte of the source: no file is ever
//! parsed outside the sandbox. The worker reports the result to its supervisor in lines on standard
//! output, and ends when the mount ends.
//!
//! The worker's standard input is the supervision socket. End of file means that the supervisor has
//! died. A sandboxed process cannot unmount, and a mount without a server hangs its readers. So the
//! worker continues to serve, and logs the command that ends the mount. The launcher may not have
//! received a report yet, so the worker reports to it again. The launcher's pipe is the worker's
//! standard error, unless the program runs in the foreground.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use h5fs_reader::error::{Error, Result, io_error_message};
use h5fs_reader::source::location::Location;
use h5fs_reader::source::mounts::foreign::ForeignFilesystems;
use h5fs_tree::MountGuard;
use h5fs_tree::fuse::{self, EndedThreadFinder, MountOptions, ServedMount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::cli::args::MountCommand;
use crate::cli::mount::callers;
use crate::cli::mount::mounts::{self, FreeMountPoint};
use crate::cli::mount::remote_source::{self, RemoteSource};
use crate::cli::mount::report::Report;
use crate::cli::mount::rotation;
use crate::cli::mount::source::{MountSource, filesystem_options};
use crate::cli::options;
use crate::cli::sandbox;
use crate::cli::scans;
use crate::cli::text::log_file::LogFile;
use crate::cli::text::logging::{self, EarlyLog};
use crate::cli::text::printable::printable;
use crate::limits;

/// Mounts and serves until the mount ends.
pub(in crate::cli) fn run(mount: &MountCommand) -> Result<ExitCode> {
    let launcher = LauncherPipe::take_pipe(mount);
    // Must precede the change of the working directory, to resolve relative paths.
    let point = std::path::absolute(&mount.mountpoint);
    let point = point.unwrap_or_else(|_| mount.mountpoint.clone());
    rotation::block_reopen_signal();
    let log = logging::start(&mount.log_destination())?;
    let (find_gone, answers) = callers::ended_thread_finder();
    match start(mount, &log.early, find_gone) {
        Ok(mounted) => {
            // An error means that the supervisor has died, which `watch_supervisor` handles.
            let _ = Report::Ready.send(&mut io::stdout());
            watch_supervisor(point, launcher, answers, log.file);
            let ended = mounted.wait();
            if let Err(error) = &ended {
                log::error!("{}: {error}", mount.mountpoint.display());
            }
            log::logger().flush();
            // The mount has ended. Dropping the session would unmount at the same path again, where
            // another filesystem may be mounted now. So the process exits without dropping
            // anything.
            exit(i32::from(ended.is_err()))
        }
        Err(report) => {
            let told = report.send(&mut io::stdout());
            if told.is_err() {
                launcher.report(&report);
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The pipe to the launcher. The worker reports over this pipe if the supervisor has died.
struct LauncherPipe(Option<File>);

impl LauncherPipe {
    /// Takes the launcher's pipe from standard error, and redirects standard error to `/dev/null`,
    /// so that no other code writes to the pipe. In the foreground the pipe does not exist.
    fn take_pipe(mount: &MountCommand) -> Self {
        let take = || -> io::Result<File> {
            let pipe = io::stderr().as_fd().try_clone_to_owned()?;
            nix::unistd::dup2_stderr(OpenOptions::new().write(true).open("/dev/null")?)?;
            Ok(pipe.into())
        };
        LauncherPipe(if mount.foreground { None } else { take().ok() })
    }

    fn report(self, report: &Report) {
        if let Some(mut pipe) = self.0 {
            // The launcher may already have its report and have ended.
            let _ = report.send(&mut pipe);
        }
    }
}

fn start(
    mount: &MountCommand,
    early: &EarlyLog,
    find_gone: EndedThreadFinder,
) -> std::result::Result<ServedMount, Report> {
    let of_source = |error: Error| failure(&mount.source.name(), &error);
    let of_point = |error: Error| failure(&mount.mountpoint, &error);
    let point = mount.mountpoint.canonicalize().map_err(|error| {
        of_point(Error::from_io(
            &error,
            mount.mountpoint.display().to_string(),
        ))
    })?;
    let (path, source) = open_source(mount)?;
    let of_content = |error: Error| open_error_report(mount, &path, &error);
    let scans = scans::mount_cache_path(&mount.source, &mount.settings);
    if source.is_hidden_by(&point) {
        let reason = "the mount would hide its own source";
        return Err(Report::failure(&mount.mountpoint, reason));
    }
    check_fuse().map_err(of_point)?;
    check_labels(&mount.settings.kernel).map_err(of_point)?;
    // From here on, the process must not keep a directory of the user busy.
    let _ = std::env::set_current_dir("/");
    let foreign = source.path().and_then(find_foreign_filesystems);
    let alone = || Report::failure(&mount.mountpoint, "the supervisor was killed");
    let place = FreeMountPoint::check(&point).map_err(of_point)?;
    if !is_supervised() {
        return Err(alone());
    }
    let unserved = fuse::mount(&point, &mount_options(mount, &path)).map_err(of_point)?;
    if mount.settings.no_symlinks {
        mounts::forbid_symlinks(&point, mount.settings.no_exec).map_err(of_point)?;
    }
    let device = place
        .find_own_mount(unserved.device())
        .map_err(of_point)?
        .device();
    // A session that is dropped before it serves unmounts itself. Later, only the supervisor can
    // unmount.
    let told = Report::Mounted.send(&mut io::stdout());
    told.map_err(|_| alone())?;
    mounts::raise_read_ahead(device);
    raise_open_file_limit();
    let guard = MountGuard {
        mount_point: point.clone(),
        device: Some(device),
        foreign,
    };
    let shown = filesystem_options(&mount.settings, Some(guard), scans::open(scans.as_deref()));
    let sandbox = !mount.settings.no_sandbox;
    let caged = source
        .sandbox_source(mount.settings.run_as)
        .map_err(of_source)?;
    sandbox::enter(caged, &source.sandbox_options(&shown), sandbox).map_err(of_source)?;
    let mut reasons = Vec::new();
    let served = source.open_tree(shown, &mut reasons).map_err(of_content)?;
    reasons.extend(served.partial_file_warning());
    let name = mount.source.name();
    // The log contains the same reasons, but names the source in another way.
    let is_told = |line: &String| reasons.iter().any(|it| line.ends_with(&printable(it)));
    let early = early.take().into_iter().filter(|line| !is_told(line));
    let reasons = reasons.iter().map(|reason| Report::warning(&name, reason));
    let mut warnings: Vec<_> = early.map(Report::Warning).chain(reasons).collect();
    warnings.truncate(limits::EARLY_LINES + 1);
    for warning in warnings {
        warning.send(&mut io::stdout()).map_err(|_| alone())?;
    }
    unserved.serve(served, Some(find_gone)).map_err(of_point)
}

/// Opens the source of a mount. Returns its absolute path or its URL, too.
pub(in crate::cli) fn open_source(
    mount: &MountCommand,
) -> std::result::Result<(PathBuf, MountSource), Report> {
    let of_source = |error: Error| failure(&mount.source.name(), &error);
    let path = match &mount.source {
        Location::Path(path) => absolute(path).map_err(of_source)?,
        Location::Url(url) => url.to_string().into(),
    };
    let source = match &mount.source {
        Location::Path(_) => MountSource::open(&path, &mount.settings),
        Location::Url(url) => RemoteSource::receive(url, &mount.settings.remote)
            .map(|source| MountSource::Object(source.for_mount())),
    };
    let source = source.map_err(|error| open_error_report(mount, &path, &error))?;
    Ok((path, source))
}

/// Raises the limit of open files of this process, because one source may refer to more files than
/// the default limit permits.
pub(in crate::cli) fn raise_open_file_limit() {
    const MANY: u64 = 1 << 16;
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let wanted = soft.max(hard.min(MANY));
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
    });
    if let Err(errno) = raised {
        let error = Error::from_io(&errno.into(), "raising the number of open files");
        log::warn!("{error}");
    }
}

/// Determines the filesystems on the path to the source, so that other FUSE filesystems, which may
/// block, can be recognised later. Must precede the mount, which may cover the path, and the
/// sandbox, in which the mount table cannot be opened. Returns `None` if the mount table cannot be
/// opened.
pub(in crate::cli) fn find_foreign_filesystems(source: &Path) -> Option<Arc<ForeignFilesystems>> {
    let found = ForeignFilesystems::find_on_path_to(source);
    let unknown = |error| {
        let reason = io_error_message(&error);
        log::warn!("other FUSE filesystems cannot be distinguished from disks: {reason}");
    };
    found.map_err(unknown).ok().map(Arc::new)
}

/// Returns the report of an error that occurred when the source was opened. The absolute path of
/// the source is replaced by the name that the user gave.
pub(in crate::cli) fn open_error_report(
    mount: &MountCommand,
    source: &Path,
    error: &Error,
) -> Report {
    let text = error.to_string();
    let absolute = format!("{}: ", source.display());
    Report::failure(
        &mount.source.name(),
        text.strip_prefix(&absolute).unwrap_or(&text),
    )
}

pub(in crate::cli) fn failure(file: &Path, error: &Error) -> Report {
    Report::failure(file, &error.to_string())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::from_io(&error, path.display().to_string()))
}

pub(in crate::cli) fn mount_options(mount: &MountCommand, source: &Path) -> MountOptions {
    let settings = &mount.settings;
    let name = || source.as_os_str().to_owned();
    let is_remote = mount.source.path().is_none();
    MountOptions {
        allow_other: settings.allow_other,
        fsname: settings.fsname.clone().map_or_else(name, Into::into),
        no_exec: settings.no_exec,
        kernel_options: settings.kernel.clone(),
        no_forget: settings.no_forget,
        threads: if is_remote {
            remote_source::thread_count(settings.threads)
        } else {
            settings.threads.unwrap_or_else(options::default_threads)
        },
        interruptible: is_remote,
    }
}

/// Checks each requirement of a FUSE mount, because the kernel reports the same error for all of
/// them.
fn check_fuse() -> Result<()> {
    const DEVICE: &str = "/dev/fuse";
    let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
    if let Err(error) = opened {
        let reason = match error.kind() {
            ErrorKind::PermissionDenied => "no permission to open /dev/fuse",
            _ => "no /dev/fuse (is the kernel module loaded? try `modprobe fuse`)",
        };
        let remedy = "`h5fs ls` and `h5fs cat` work without";
        return Err(Error::Usage(format!("{reason}; {remedy}")));
    }
    if !nix::unistd::geteuid().is_root() {
        mounts::find_fusermount()?;
    }
    Ok(())
}

/// Checks that the kernel supports the security labels (SELinux) that `context=` and similar
/// options set.
fn check_labels(options: &[String]) -> Result<()> {
    const FILESYSTEMS: &str = "/proc/filesystems";
    let Some(option) = options.first() else {
        return Ok(());
    };
    let name = option.split('=').next().unwrap_or_default();
    let known = std::fs::read_to_string(FILESYSTEMS);
    match known {
        Ok(known) if !known.contains("selinuxfs") => Err(Error::Usage(format!(
            "-o {name}=: this kernel has no SELinux"
        ))),
        _ => Ok(()),
    }
}

/// Returns whether the supervisor is alive.
fn is_supervised() -> bool {
    let input = io::stdin();
    let mut end = [PollFd::new(input.as_fd(), PollFlags::empty())];
    // `poll` reports a hang-up once the other end is closed.
    poll(&mut end, PollTimeout::ZERO) == Ok(0)
}

fn watch_supervisor(
    point: PathBuf,
    launcher: LauncherPipe,
    answers: Sender<Vec<u32>>,
    log: Option<LogFile>,
) {
    thread::spawn(move || {
        // Returns when the supervisor ends.
        callers::receive_answers(&answers, log.as_ref());
        launcher.report(&Report::Ready);
        let point = point.display();
        log::warn!(
            "{point}: the supervisor has ended; the mount remains until `fusermount3 -u {point}`"
        );
    });
}

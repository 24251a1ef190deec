//! The process that opens the source, mounts it and serves.
//!
//! It opens the source and mounts with the rights of the user that called the program. Then it
//! enters its cage, and only there reads the first byte of the source: no file, however hostile, is
//! parsed outside. It tells its supervisor how that went in lines on standard output, and ends when
//! the mount does.
//!
//! Its standard input is a leash: at its end the supervisor is gone. Nothing in the cage can
//! unmount, and a mount without a server hangs its readers, so the worker goes on and says how to
//! end the mount. The launcher may not have heard of the mount yet, so it is told once more: its
//! pipe is standard error, unless the user is there.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::cli::args::Mount;
use crate::cli::cage::{self, Reader};
use crate::cli::mount::askers;
use crate::cli::mount::mounts::{self, FreePlace};
use crate::cli::mount::opener;
use crate::cli::mount::remote_source::{self, RemoteSource};
use crate::cli::mount::report::Report;
use crate::cli::mount::rotation;
use crate::cli::options::{self, Settings};
use crate::cli::words::log_file::LogFile;
use crate::cli::words::logging::{self, Destination, Early};
use crate::cli::words::printable::printable;
use crate::error::{Error, Result, words_of};
use crate::fs::fuse::{self, FindGone, MountOptions, Mounted};
use crate::fs::{Archive, External, Filesystem, MountGuard, Options, Resident, Served, Unread};
use crate::limits;
use crate::source::directory::Directory;
use crate::source::local::beneath::Beneath;
use crate::source::local::changes::Changes;
use crate::source::location::Location;
use crate::source::mounts::foreign::ForeignFilesystems;

/// Mounts and serves until the mount ends.
pub(in crate::cli) fn run(mount: &Mount) -> Result<ExitCode> {
    let launcher = Launcher::of(mount);
    // While relative paths still lead on.
    let point = std::path::absolute(&mount.mountpoint);
    let point = point.unwrap_or_else(|_| mount.mountpoint.clone());
    rotation::ignore();
    let log = logging::start(&Destination::of(mount))?;
    let (find_gone, answers) = askers::ask();
    match start(mount, &log.early, find_gone) {
        Ok(mounted) => {
            // Without a supervisor there is nobody to tell, as the leash will say.
            let _ = Report::Ready.send(&mut io::stdout());
            watch_leash(point, launcher, answers, log.file);
            let ended = mounted.wait();
            if let Err(error) = &ended {
                log::error!("{}: {error}", mount.mountpoint.display());
            }
            log::logger().flush();
            // The mount is gone. The session, if it were dropped, would try to unmount once more at
            // the same path, where something else may be mounted by now: nothing is dropped.
            exit(i32::from(ended.is_err()))
        }
        Err(report) => {
            let told = report.send(&mut io::stdout());
            if told.is_err() {
                launcher.tell(&report);
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The process that waits for the supervisor's word, and gets it from here if that is gone.
struct Launcher(Option<File>);

impl Launcher {
    /// Its pipe is standard error, which no other code's words may reach from now on. In the
    /// foreground there is none.
    fn of(mount: &Mount) -> Self {
        let take = || -> io::Result<File> {
            let pipe = io::stderr().as_fd().try_clone_to_owned()?;
            nix::unistd::dup2_stderr(OpenOptions::new().write(true).open("/dev/null")?)?;
            Ok(pipe.into())
        };
        Launcher(if mount.foreground { None } else { take().ok() })
    }

    fn tell(self, report: &Report) {
        if let Some(mut pipe) = self.0 {
            // It may have been told already, and be gone.
            let _ = report.send(&mut pipe);
        }
    }
}

fn start(
    mount: &Mount,
    early: &Early,
    find_gone: FindGone,
) -> std::result::Result<Mounted, Report> {
    let of_source = |error: Error| failure(&mount.source.name(), &error);
    let of_point = |error: Error| failure(&mount.mountpoint, &error);
    let point = mount
        .mountpoint
        .canonicalize()
        .map_err(|error| of_point(Error::io(&error, mount.mountpoint.display().to_string())))?;
    let path = match &mount.source {
        Location::Path(path) => absolute(path).map_err(of_source)?,
        Location::Url(url) => url.to_string().into(),
    };
    let of_content = |error: Error| opened(mount, &path, &error);
    let source = match &mount.source {
        Location::Path(_) => Source::open(&path, &mount.settings),
        Location::Url(url) => RemoteSource::take(url, &mount.settings.remote)
            .map(|source| Source::Object(source.mounted())),
    };
    let source = source.map_err(of_content)?;
    if source.is_hidden_by(&point) {
        let reason = "the mount would hide the directory that it shows";
        return Err(Report::failure(&mount.mountpoint, reason));
    }
    check_fuse().map_err(of_point)?;
    check_labels(&mount.settings.kernel).map_err(of_point)?;
    // From here on no directory of the user's is held.
    let _ = std::env::set_current_dir("/");
    let foreign = source.path().and_then(foreign_filesystems);
    let alone = || Report::failure(&mount.mountpoint, "the supervisor was killed");
    let place = FreePlace::at(&point).map_err(of_point)?;
    if !is_on_leash() {
        return Err(alone());
    }
    let unserved = fuse::mount(&point, &mount_options(mount, &path)).map_err(of_point)?;
    let device = place.mounted(unserved.device()).map_err(of_point)?.device();
    // A session that is dropped before it serves is unmounted; later only the supervisor can
    // unmount.
    let told = Report::Mounted.send(&mut io::stdout());
    told.map_err(|_| alone())?;
    mounts::raise_read_ahead(device);
    open_many_files();
    let shown = filesystem_options(
        mount,
        MountGuard {
            point: point.clone(),
            device: Some(device),
            foreign,
        },
    );
    let sandbox = !mount.settings.no_sandbox;
    let caged = source.shown(mount.settings.run_as).map_err(of_source)?;
    cage::enter(caged, &source.caged(&shown), sandbox).map_err(of_source)?;
    let mut reasons = Vec::new();
    let served = source.served(shown, &mut reasons).map_err(of_content)?;
    reasons.extend(served.warning());
    let name = mount.source.name();
    // The log says the same, and names the source in another way.
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

/// What is to be mounted, open, and of which nothing has been read.
enum Source {
    File(Unread),
    /// With what tells of changes of its files, which the cage lets nobody ask for later.
    Directory(Beneath, Option<Arc<Changes>>),
    Object(RemoteSource),
}

impl Source {
    /// Opens the file or the directory at `path`.
    fn open(path: &Path, settings: &Settings) -> Result<Self> {
        let failed = |error| Error::io(&error, path.display().to_string());
        if path.is_dir() {
            let path = path.canonicalize().map_err(failed)?;
            let directory = Beneath::open(&path).map_err(failed)?;
            return Ok(Source::Directory(directory, Changes::new()));
        }
        Ok(Source::File(opened_again(Unread::open(path)?, settings)?))
    }

    /// Where it is on this machine.
    fn path(&self) -> Option<&Path> {
        match self {
            Source::File(file) => Some(file.path()),
            Source::Directory(directory, _) => Some(directory.path()),
            Source::Object(_) => None,
        }
    }

    /// Whether a mount at `point` leaves no way to the files of the source.
    fn is_hidden_by(&self, point: &Path) -> bool {
        matches!(self, Source::Directory(directory, _) if directory.path().starts_with(point))
    }

    /// The source as its cage has to know it.
    fn shown(&self, run_as: Option<u32>) -> Result<cage::Shown<'_>> {
        let (path, owner, is_directory) = match self {
            Source::File(file) => (file.path(), file.owner()?, false),
            Source::Directory(directory, _) => {
                let there = directory.look(Path::new(""), false)?;
                (directory.path(), there.attributes.uid, true)
            }
            Source::Object(object) => return Ok(object.shown(run_as)),
        };
        Ok(cage::Shown {
            path,
            reader: run_as.map_or(Reader::Owner(owner), Reader::Chosen),
            is_directory,
        })
    }

    /// The options with which the process enters its cage.
    fn caged(&self, options: &Options) -> Options {
        match self {
            Source::Object(_) => RemoteSource::caged(options),
            Source::File(_) | Source::Directory(..) => options.clone(),
        }
    }

    /// Serves it; what whoever mounts has to know is added to the `warnings`.
    fn served(self, mut options: Options, warnings: &mut Vec<String>) -> Result<Served> {
        let file = match self {
            Source::File(file) => file,
            Source::Object(object) => {
                let (served, connection) = object.served(&mut options)?;
                warnings.extend(connection.warnings());
                return Ok(served);
            }
            Source::Directory(directory, changes) => {
                let archive = Archive::new(Arc::new(directory), changes, &options);
                return Ok(Served::Archive(Box::new(archive)));
            }
        };
        let filesystem = Filesystem::of(file, &options)?;
        Ok(Served::File(Box::new(filesystem)))
    }
}

/// A cage in which no file is opened at all takes another process to open the source again. It is
/// started before there is a mount, so that it has nothing of that open.
fn opened_again(source: Unread, settings: &Settings) -> Result<Unread> {
    if !settings.no_sandbox && settings.external == External::None {
        let reader = settings.run_as.map_or_else(|| source.owner(), Ok)?;
        let opener = opener::start(source.path(), reader);
        let failed = |error| Error::io(&error, "starting the process that opens the source again");
        return Ok(source.opened_again_by(opener.map_err(failed)?));
    }
    Ok(source)
}

/// One source may take its elements from more files than a process may have open by default.
fn open_many_files() {
    const MANY: u64 = 1 << 16;
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let wanted = soft.max(hard.min(MANY));
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
    });
    if let Err(errno) = raised {
        let error = Error::io(&errno.into(), "raising the number of open files");
        log::warn!("{error}");
    }
}

/// To be asked for before anything else is mounted, or files outside of the source's directory
/// cannot be opened any more.
fn foreign_filesystems(source: &Path) -> Option<Arc<ForeignFilesystems>> {
    let found = ForeignFilesystems::of(source);
    let unknown = |error| {
        let reason = words_of(&error);
        log::warn!("other FUSE filesystems are not told from disks: {reason}");
    };
    found.map_err(unknown).ok().map(Arc::new)
}

/// Names the source as the user did, where the error names it by its absolute path.
fn opened(mount: &Mount, source: &Path, error: &Error) -> Report {
    let text = error.to_string();
    let absolute = format!("{}: ", source.display());
    Report::failure(
        &mount.source.name(),
        text.strip_prefix(&absolute).unwrap_or(&text),
    )
}

fn failure(file: &Path, error: &Error) -> Report {
    Report::failure(file, &error.to_string())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::io(&error, path.display().to_string()))
}

fn filesystem_options(mount: &Mount, guard: MountGuard) -> Options {
    let settings = &mount.settings;
    Options {
        open_files: settings.open_files.unwrap_or(limits::OPEN_MEMBERS),
        uid: settings.uid,
        gid: settings.gid,
        umask: settings.umask,
        direct_io: settings.direct_io,
        cache_size: settings
            .cache_size
            .map_or_else(options::default_cache_size, Into::into),
        threads: settings.threads.unwrap_or_else(options::default_threads),
        views: !settings.no_views,
        external: settings.external,
        guard: Some(guard),
        allow_other: settings.allow_other,
        verify: settings.verify,
        force: settings.force,
        strict: settings.strict,
        ordered: false,
        resident: Resident::open(),
    }
}

fn mount_options(mount: &Mount, source: &Path) -> MountOptions {
    let settings = &mount.settings;
    let name = || source.as_os_str().to_owned();
    let is_far = mount.source.path().is_none();
    MountOptions {
        allow_other: settings.allow_other,
        fsname: settings.fsname.clone().map_or_else(name, Into::into),
        kernel: settings.kernel.clone(),
        no_forget: settings.no_forget,
        threads: if is_far {
            remote_source::threads(settings.threads)
        } else {
            settings.threads.unwrap_or_else(options::default_threads)
        },
        interruptible: is_far,
    }
}

/// Checks each thing that a mount needs, since the kernel has one error for all of them.
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

/// Checks that the kernel has the labels that `context=` and its like set.
fn check_labels(options: &[String]) -> Result<()> {
    const FILESYSTEMS: &str = "/proc/filesystems";
    let Some(option) = options.first() else {
        return Ok(());
    };
    let name = option.split('=').next().unwrap_or_default();
    let known = std::fs::read_to_string(FILESYSTEMS);
    match known {
        Ok(known) if !known.contains("selinuxfs") => Err(Error::Usage(format!(
            "-o {name}=: this kernel has no SELinux, whose labels it sets"
        ))),
        _ => Ok(()),
    }
}

/// Whether there is a supervisor.
fn is_on_leash() -> bool {
    let input = io::stdin();
    let mut end = [PollFd::new(input.as_fd(), PollFlags::empty())];
    // A pipe that nobody can write to any more is hung up.
    poll(&mut end, PollTimeout::ZERO) == Ok(0)
}

fn watch_leash(
    point: PathBuf,
    launcher: Launcher,
    answers: Sender<Vec<u32>>,
    log: Option<LogFile>,
) {
    thread::spawn(move || {
        // This returns when the supervisor ends.
        askers::take_answers(&answers, log.as_ref());
        launcher.tell(&Report::Ready);
        let point = point.display();
        log::warn!(
            "{point}: the supervisor is gone; the mount stays until `fusermount3 -u {point}`"
        );
    });
}

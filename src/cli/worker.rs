//! The process that opens the source, mounts it and serves.
//!
//! It opens the source and mounts with the rights of whoever called the program. Then it enters its cage,
//! and only there reads the first byte of the source: no file, however hostile, is parsed outside. It tells its
//! supervisor how that went in lines on standard output, and ends when the mount does.
//!
//! Its standard input is a leash: at its end the supervisor is gone. Nothing in the cage can unmount, and a mount
//! that nobody serves is worse than one that somebody does, so the worker goes on and says how to end it.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::thread;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::cli::args::Mount;
use crate::cli::mounts;
use crate::cli::{Report, cage, logging, options};
use crate::error::{Error, Result};
use crate::fs::fuse::{self, MountOptions, Mounted};
use crate::fs::{Filesystem, Options, Own, Unread};
use crate::source::strangers::Strangers;

/// Mounts and serves until the mount ends.
pub(super) fn run(mount: &Mount) -> Result<ExitCode> {
    logging::start(&mount.log_destination())?;
    match start(mount) {
        Ok(mounted) => {
            // Without a supervisor there is nobody to tell, as the leash will say.
            let _ = Report::Ready.send();
            let ended = mounted.wait();
            if let Err(error) = &ended {
                log::error!("{}: {error}", mount.mountpoint.display());
            }
            log::logger().flush();
            // The mount is gone. What is left of the session would try to take it away once more, by its
            // place, where something else may be mounted by now: nothing is dropped.
            exit(i32::from(ended.is_err()))
        }
        Err(report) => {
            let _ = report.send();
            Ok(ExitCode::FAILURE)
        }
    }
}

fn start(mount: &Mount) -> std::result::Result<Mounted, Report> {
    let of_source = |error: Error| failure(&mount.source, &error);
    let of_point = |error: Error| failure(&mount.mountpoint, &error);
    let point = mount
        .mountpoint
        .canonicalize()
        .map_err(|error| of_point(Error::io(&error, mount.mountpoint.display().to_string())))?;
    let path = absolute(&mount.source).map_err(of_source)?;
    let of_content = |error: Error| opened(mount, &path, &error);
    let source = Unread::open(&path).map_err(of_content)?;
    check_fuse().map_err(of_point)?;
    // From here on no directory of the user's is held.
    let _ = std::env::set_current_dir("/");
    let strangers = strangers(source.path());
    let unserved = fuse::mount(&point, &mount_options(mount, &path)).map_err(of_point)?;
    let device = mounts::fuse_device(&point).map_err(of_point)?;
    // Dropped, what is not served yet is unmounted; later only the supervisor can.
    let told = Report::Mounted(device.to_string()).send();
    told.map_err(|_| Report::failure(&mount.mountpoint, "the supervisor is gone"))?;
    mounts::raise_read_ahead(device);
    open_many_files();
    let shown = filesystem_options(
        mount,
        Own {
            point: point.clone(),
            device: Some(device),
            strangers,
        },
    );
    cage::enter(&source, &point, &mount.settings).map_err(of_source)?;
    watch_leash(point);
    let filesystem = Filesystem::of(source, &shown).map_err(of_content)?;
    unserved.serve(filesystem).map_err(of_point)
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

/// To be asked for before anything else is mounted, or files outside of the source's directory cannot be opened any more.
fn strangers(source: &Path) -> Option<Arc<Strangers>> {
    let found = Strangers::of(source);
    let unknown = |error| log::warn!("other FUSE filesystems are not told from disks: {error}");
    found.map_err(unknown).ok().map(Arc::new)
}

/// Names the source as the user did, where the error names it by its absolute path.
fn opened(mount: &Mount, source: &Path, error: &Error) -> Report {
    let text = error.to_string();
    let absolute = format!("{}: ", source.display());
    Report::failure(&mount.source, text.strip_prefix(&absolute).unwrap_or(&text))
}

fn failure(file: &Path, error: &Error) -> Report {
    Report::failure(file, &error.to_string())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::io(&error, path.display().to_string()))
}

fn filesystem_options(mount: &Mount, own: Own) -> Options {
    let settings = &mount.settings;
    Options {
        uid: settings.uid,
        gid: settings.gid,
        umask: settings.umask,
        direct_io: settings.direct_io,
        cache_size: settings
            .cache_size
            .map_or_else(options::default_cache_size, Into::into),
        threads: settings.threads.unwrap_or_else(options::default_threads),
        views: settings.views,
        external: settings.external,
        own: Some(own),
        allow_other: settings.allow_other,
        verify: settings.verify,
        force: settings.force,
    }
}

fn mount_options(mount: &Mount, source: &Path) -> MountOptions {
    let settings = &mount.settings;
    let name = || source.as_os_str().to_owned();
    MountOptions {
        allow_other: settings.allow_other,
        fsname: settings.fsname.clone().map_or_else(name, Into::into),
        kernel: settings.kernel.clone(),
        threads: settings.threads.unwrap_or_else(options::default_threads),
    }
}

/// What a mount cannot do without, told apart before the kernel's one word for all of it.
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

fn watch_leash(point: PathBuf) {
    thread::spawn(move || {
        // The supervisor writes nothing: this returns when it ends.
        let _ = io::stdin().read(&mut [0]);
        let point = point.display();
        log::warn!(
            "{point}: the supervisor is gone; the mount stays until `fusermount3 -u {point}`"
        );
    });
}

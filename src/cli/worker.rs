//! The process that opens the source, mounts it and serves.
//!
//! It tells its supervisor how the mount went in one line on standard output, and ends when the mount does.
//! Its standard input is a leash: at its end the supervisor is gone, so the worker takes its mount away.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, exit};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::cli::args::Mount;
use crate::cli::mounts::{self, Device};
use crate::cli::supervisor::PATIENCE;
use crate::cli::{Report, logging, options};
use crate::error::{Error, Result};
use crate::fs::fuse::{self, MountOptions, Mounted};
use crate::fs::{Filesystem, Options};

/// How far the worker has come; the leash acts by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing needs to be undone.
    Opening,
    /// The mount is being made, and cannot be undone in the middle.
    Mounting,
    /// The supervisor went away in the middle of that.
    Unwanted,
    /// The mount stands.
    Serving(Device),
}

type SharedStage = Arc<Mutex<Stage>>;

/// Mounts and serves until the mount ends.
pub(super) fn run(mount: &Mount) -> Result<ExitCode> {
    logging::start(&mount.log_destination())?;
    let stage = SharedStage::new(Mutex::new(Stage::Opening));
    watch_leash(&stage);
    match start(mount, &stage) {
        Ok((mounted, device)) => {
            // Without a supervisor there is nobody to tell, and the leash ends us.
            let _ = Report::Ready(device.to_string()).send();
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

fn start(mount: &Mount, stage: &SharedStage) -> std::result::Result<(Mounted, Device), Report> {
    let of_source = |error: Error| failure(&mount.source, &error);
    let of_point = |error: Error| failure(&mount.mountpoint, &error);
    let point = mount
        .mountpoint
        .canonicalize()
        .map_err(|error| of_point(Error::io(&error, mount.mountpoint.display().to_string())))?;
    let source = absolute(&mount.source).map_err(of_source)?;
    let filesystem = Filesystem::open(&source, &filesystem_options(mount))
        .map_err(|error| opened(mount, &source, &error))?;
    check_fuse().map_err(of_point)?;
    // From here on no directory of the user's is held.
    let _ = std::env::set_current_dir("/");
    set(stage, Stage::Mounting);
    let mounted =
        fuse::mount(filesystem, &point, &mount_options(mount, &source)).map_err(of_point)?;
    let device = mounts::fuse_device(&point).map_err(of_point)?;
    if set(stage, Stage::Serving(device)) == Stage::Unwanted {
        leave(device);
    }
    Ok((mounted, device))
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

fn filesystem_options(mount: &Mount) -> Options {
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

/// Sets the stage and returns the one before; [`Stage::Unwanted`] stays.
fn set(stage: &SharedStage, next: Stage) -> Stage {
    let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    let before = *stage;
    if before != Stage::Unwanted {
        *stage = next;
    }
    before
}

fn watch_leash(stage: &SharedStage) {
    let stage = stage.clone();
    thread::spawn(move || {
        // The supervisor writes nothing: this returns when it lets go.
        let _ = io::stdin().read(&mut [0]);
        let before = {
            let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
            let before = *stage;
            if before == Stage::Mounting {
                *stage = Stage::Unwanted;
            }
            before
        };
        match before {
            Stage::Opening => exit(1),
            Stage::Mounting | Stage::Unwanted => {}
            Stage::Serving(device) => leave(device),
        }
    });
}

/// Ends the mount and, when whoever has a file open has had a moment, the process.
fn leave(device: Device) -> ! {
    if let Err(error) = mounts::unmount(device) {
        log::error!("cannot unmount: {error}");
    }
    thread::sleep(PATIENCE);
    exit(1)
}

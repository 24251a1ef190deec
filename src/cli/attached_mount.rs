//! `h5fs SOURCE /dev/fd/N`: serves a mount that another program has made.
//!
//! A process needs privileges to mount, but not to serve a mount. So a privileged launcher opens
//! `/dev/fuse`, mounts, and starts the program with the open device as file descriptor N. libfuse
//! defines this name of a mount point. The program needs neither `/dev/fuse` nor `fusermount3`, and
//! any user can run it, also in a container without privileges.
//!
//! The process that the user calls is the [`Keeper`] of a worker, which receives the device. The
//! program ends when the launcher unmounts. At a signal the program ends as well, and readers of the
//! mount receive ENOTCONN until the launcher unmounts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ExitCode, exit};
use std::thread;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::rights;
use h5fs_tree::MountGuard;
use h5fs_tree::fuse::{self, ServedMount};
use rustix::fs::{fstat, major, minor};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::cli::args::MountCommand;
use crate::cli::invocation::Invocation;
use crate::cli::keeper::Keeper;
use crate::cli::mount::notify;
use crate::cli::mount::report::Report;
use crate::cli::mount::rotation;
use crate::cli::mount::source::filesystem_options;
use crate::cli::mount::worker::{self, failure, open_error_report, raise_open_file_limit};
use crate::cli::sandbox;
use crate::cli::scans;
use crate::cli::text::logging::{self, LogDestination};

/// The device number of `/dev/fuse` (Linux, Documentation/admin-guide/devices.txt).
const FUSE_DEVICE: (u32, u32) = (10, 229);

/// Serves the mount behind file descriptor `number` until it is unmounted or a signal arrives.
///
/// # Errors
/// `Usage` if the descriptor is not an open `/dev/fuse`, or if an option concerns the mount itself.
pub(in crate::cli) fn run(
    call: &Invocation,
    mount: &MountCommand,
    number: i32,
) -> Result<ExitCode> {
    refuse_mount_options(mount)?;
    let device = open_device(mount, number)?;
    // From here on, only the worker holds the device, so that its end is the end of the connection.
    let _ = nix::unistd::close(number);
    let keeper = Keeper::start(call, Some(&mount.source), (b"m", device.as_fd()))?;
    drop(device);
    let scans = scans::mount_cache_path(&mount.source, &mount.settings);
    let code = keeper.supervise(notify::notify_ready);
    scans.as_deref().map(scans::delete_if_unused);
    Ok(code)
}

/// Refuses options that only the program that mounts can set.
fn refuse_mount_options(mount: &MountCommand) -> Result<()> {
    let settings = &mount.settings;
    let kernel = settings.kernel.first().map(String::as_str);
    let refused = [
        (settings.remount, "remount"),
        (settings.no_exec, "noexec"),
        (settings.no_symlinks, "nosymfollow"),
        (kernel.is_some(), kernel.unwrap_or_default()),
    ];
    match refused.iter().find(|(is_set, _)| *is_set) {
        Some((_, name)) => Err(Error::Usage(format!(
            "-o {name}: the program that makes the mount behind {} sets this option",
            mount.mountpoint.display()
        ))),
        None => Ok(()),
    }
}

/// Returns a copy of the open `/dev/fuse`, which no further process inherits.
fn open_device(mount: &MountCommand, number: i32) -> Result<OwnedFd> {
    let point = mount.mountpoint.display();
    let failed = |error: rustix::io::Errno| Error::from_io(&error.into(), point.to_string());
    let own_process = pidfd_open(getpid(), PidfdFlags::empty()).map_err(failed)?;
    let device = pidfd_getfd(own_process, number, PidfdGetfdFlags::empty());
    let device = device.map_err(failed)?;
    let found = fstat(&device).map_err(failed)?.st_rdev;
    if (major(found), minor(found)) == FUSE_DEVICE {
        Ok(device)
    } else {
        Err(Error::Usage(format!(
            "{point}: it is not an open /dev/fuse"
        )))
    }
}

/// Serves the mount in the worker, until it is unmounted or the keeper ends.
///
/// # Errors
/// `Usage` if the log cannot be written.
pub(in crate::cli) fn serve(mount: &MountCommand) -> Result<ExitCode> {
    rotation::block_reopen_signal();
    logging::start(&LogDestination::Terminal)?;
    match start(mount) {
        Ok(served) => {
            let _ = Report::Ready.send(&mut io::stdout());
            thread::spawn(|| {
                // Returns when the keeper has ended for any reason.
                let _ = rustix::io::read(io::stdin(), &mut [0]);
                log::logger().flush();
                exit(0)
            });
            let ended = served.wait();
            if let Err(error) = &ended {
                log::error!("{}: {error}", mount.mountpoint.display());
            }
            log::logger().flush();
            exit(i32::from(ended.is_err()))
        }
        Err(report) => {
            let _ = report.send(&mut io::stdout());
            Ok(ExitCode::FAILURE)
        }
    }
}

fn start(mount: &MountCommand) -> std::result::Result<ServedMount, Report> {
    let of_source = |error: Error| failure(&mount.source.name(), &error);
    let of_point = |error: Error| failure(&mount.mountpoint, &error);
    let (path, source) = worker::open_source(mount)?;
    let of_content = |error: Error| open_error_report(mount, &path, &error);
    let scans = scans::mount_cache_path(&mount.source, &mount.settings);
    let device = receive_device().map_err(of_point)?;
    let _ = std::env::set_current_dir("/");
    let foreign = source.path().and_then(worker::find_foreign_filesystems);
    let options = worker::mount_options(mount, &path);
    let unserved = fuse::attach(device, &options).map_err(of_point)?;
    raise_open_file_limit();
    let guard = unserved.device().map(|device| MountGuard {
        mount_point: mount.mountpoint.clone(),
        device: Some(device),
        foreign,
    });
    let shown = filesystem_options(&mount.settings, guard, scans::open(scans.as_deref()));
    let caged = source
        .sandbox_source(mount.settings.run_as)
        .map_err(of_source)?;
    let sandbox = !mount.settings.no_sandbox;
    sandbox::enter(caged, &source.sandbox_options(&shown), sandbox).map_err(of_source)?;
    let mut reasons = Vec::new();
    let served = source.open_tree(shown, &mut reasons).map_err(of_content)?;
    reasons.extend(served.partial_file_warning());
    for reason in reasons {
        let _ = Report::warning(&mount.source.name(), &reason).send(&mut io::stdout());
    }
    unserved.serve(served, None).map_err(of_point)
}

/// Receives the open `/dev/fuse` from the keeper.
fn receive_device() -> Result<OwnedFd> {
    let nothing = || Error::Usage("no device to serve".to_owned());
    let received = rights::receive_with_files(io::stdin().as_fd(), &mut [0]);
    let (_, files) = received.map_err(|_| nothing())?;
    files.into_iter().next().ok_or_else(nothing)
}

//! `h5fs view`: mounts in a new directory and opens a browser, or starts a server if the machine
//! lacks a display.

use std::path::PathBuf;
use std::process::ExitCode;

use h5fs_reader::error::{Error, Result, io_error_message};
use nix::unistd::mkdtemp;

use crate::cli::advice;
use crate::cli::args::MountCommand;
use crate::cli::args::serve_arguments::ServeCommand;
use crate::cli::invocation::Invocation;
use crate::cli::mount::supervisor;
use crate::cli::serve::server;
use crate::cli::text::error_message::print_error;

/// Mounts until the user interrupts the program or the mount ends. Removes the mount and its
/// directory at the end.
///
/// # Errors
/// `Usage` for a source that is certainly a mistake. Fails if the directory for the mount cannot be
/// created.
pub(in crate::cli) fn run(call: &Invocation, mount: MountCommand) -> Result<ExitCode> {
    advice::refuse_mistakes(call.program, &mount)?;
    if !has_display() {
        return serve(call, mount);
    }
    let place = create_directory()?;
    let mount = MountCommand {
        mountpoint: place.clone(),
        ..mount
    };
    for text in advice::mount_warnings(call.program, &mount) {
        print_error(&text);
    }
    // Adds the directory to the arguments of the processes that are started.
    let mut arguments = call.arguments.clone();
    arguments.splice(1..1, ["--at".into(), place.clone().into_os_string()]);
    let call = Invocation {
        program: call.program,
        role: call.role,
        arguments,
    };
    let code = supervisor::run_for_viewer(&call, &mount);
    // If another mount covers this mount, the directory still exists and is in use.
    if let Err(error) = std::fs::remove_dir(&place) {
        print_error(&format!(
            "{}: {}",
            place.display(),
            io_error_message(&error)
        ));
    }
    Ok(code)
}

/// Returns whether a browser that this process opens would be visible to the user.
fn has_display() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|text| !text.is_empty());
    (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && !is_set("SSH_CONNECTION")
}

/// Runs `h5fs serve` for a browser on another machine.
fn serve(call: &Invocation, mount: MountCommand) -> Result<ExitCode> {
    let mut arguments = call.arguments.clone();
    arguments.splice(..1, ["serve".into()]);
    let call = Invocation {
        program: call.program,
        role: call.role,
        arguments,
    };
    server::run_for_tunnel(
        &call,
        &ServeCommand::for_source(mount.source, mount.settings)?,
    )
}

/// Creates the temporary directory for the mount. Only this user may enter it.
fn create_directory() -> Result<PathBuf> {
    let directory = std::env::var_os("TMPDIR").filter(|text| !text.is_empty());
    let directory = directory.map_or_else(|| "/tmp".into(), PathBuf::from);
    // The working directory changes before the directory is removed, so the path must be absolute.
    let template = std::path::absolute(directory.join("h5fs-XXXXXX"));
    let template =
        template.map_err(|error| Error::from_io(&error, directory.display().to_string()))?;
    mkdtemp(&template)
        .map_err(|error| Error::from_io(&error.into(), template.display().to_string()))
}

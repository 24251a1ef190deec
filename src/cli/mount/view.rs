//! `h5fs view`: a mount in a directory of its own, to be looked at in a browser; without a display, a
//! server.

use std::path::PathBuf;
use std::process::ExitCode;

use nix::unistd::mkdtemp;

use crate::cli::args::Mount;
use crate::cli::call::Call;
use crate::cli::mount::supervisor;
use crate::cli::serve::arguments::Serve;
use crate::cli::serve::server;
use crate::cli::words::advice;
use crate::cli::words::complaint::complain;
use crate::error::{Error, Result, words_of};

/// Mounts until the user interrupts it, or the mount ends, and leaves nothing behind.
///
/// # Errors
/// `Usage` where the source cannot be meant; fails if there is no place for the mount.
pub(in crate::cli) fn run(call: &Call, mount: Mount) -> Result<ExitCode> {
    advice::refuse(call.program, &mount)?;
    if !has_display() {
        return serve(call, mount);
    }
    let place = place()?;
    let mount = Mount {
        mountpoint: place.clone(),
        ..mount
    };
    for text in advice::of(call.program, &mount) {
        complain(&text);
    }
    // The processes that are started are told where it is.
    let mut arguments = call.arguments.clone();
    arguments.splice(1..1, ["--at".into(), place.clone().into_os_string()]);
    let call = Call {
        program: call.program,
        role: call.role,
        arguments,
    };
    let code = supervisor::run_for_viewer(&call, &mount);
    // A mount that is covered by another one is still there.
    if let Err(error) = std::fs::remove_dir(&place) {
        complain(&format!("{}: {}", place.display(), words_of(&error)));
    }
    Ok(code)
}

/// Whether a browser here would be seen by whoever called the program.
fn has_display() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|text| !text.is_empty());
    (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && !is_set("SSH_CONNECTION")
}

/// Serves it, for a browser at another machine.
fn serve(call: &Call, mount: Mount) -> Result<ExitCode> {
    let mut arguments = call.arguments.clone();
    arguments.splice(..1, ["serve".into()]);
    let call = Call {
        program: call.program,
        role: call.role,
        arguments,
    };
    server::run_for_tunnel(&call, &Serve::one(mount.source, mount.settings)?)
}

/// A new directory that only this user may enter.
fn place() -> Result<PathBuf> {
    let directory = std::env::var_os("TMPDIR").filter(|text| !text.is_empty());
    let directory = directory.map_or_else(|| "/tmp".into(), PathBuf::from);
    // The directory is left before the end.
    let template = std::path::absolute(directory.join("h5fs-XXXXXX"));
    let template = template.map_err(|error| Error::io(&error, directory.display().to_string()))?;
    mkdtemp(&template).map_err(|error| Error::io(&error.into(), template.display().to_string()))
}

//! The command line: argument parsing, the processes of a mount, and the commands without a mount.
//!
//! A mount takes three processes, which all run this one executable:
//!
//! - The *launcher* is the process that the user called. The launcher starts the supervisor and
//!   returns when the mount answers.
//! - The *supervisor* starts the worker, parses no data file, and unmounts when the worker ends for
//!   any reason.
//! - The *worker* opens the source, mounts, enters its sandbox, and then reads and serves the
//!   source.
//!
//! In the foreground, and for `h5fs view`, the launcher is also the supervisor. `h5fs serve` and a
//! mount that another program has made have a worker that mounts nothing, and a *keeper* in place of
//! the supervisor: see `serve`, `attached_mount` and `keeper`.
//!
//! Two more processes exist in some cases:
//!
//! - With `external=none`, the worker starts an *opener*, which opens the source again on request.
//! - For a source by URL, the supervisor starts a *fetcher*, which has the network access and the
//!   credentials. A command without a mount starts a fetcher as well.
//!
//! Each process is started by executing the program again with the user's arguments. No process is
//! forked without `exec`.

mod advice;
mod args;
mod attached_mount;
mod browser;
mod fetcher;
mod inspect;
mod invocation;
mod keeper;
mod listen;
mod machine;
mod mount;
mod options;
mod sandbox;
mod scans;
mod serve;
mod text;
mod view_command;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::Location;

use args::{MountCommand, Task};
use invocation::Program;
use invocation::{Invocation, Role};
use text::error_message::print_error;
use text::printable::printable;

use crate::cli::inspect::mounted;
use crate::cli::mount::{handover, launcher, mounts, opener, supervisor, worker};
use crate::cli::text::{completions, secrets};

/// Exit status for a wrong command line. Every other failure exits with 1.
const USAGE_STATUS: u8 = 2;

/// Exit status of a failed helper of mount(8). mount(8) passes the status on.
const MOUNT_FAILURE_STATUS: u8 = 32;

/// Runs the command with these arguments. The first argument is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let call = Invocation::new(arguments);
    let code = perform_and_report(&call);
    let is_helper = call.program == Program::MountHelper && call.role == Role::Launcher;
    if is_helper && code != ExitCode::SUCCESS {
        return ExitCode::from(MOUNT_FAILURE_STATUS);
    }
    code
}

/// Performs the call and prints its error, if any. Returns the exit status.
fn perform_and_report(call: &Invocation) -> ExitCode {
    match perform(call) {
        Ok(code) => code,
        Err(Error::Usage(text)) => {
            print_error(&text);
            ExitCode::from(USAGE_STATUS)
        }
        Err(error) => {
            print_error(&printable(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn perform(call: &Invocation) -> Result<ExitCode> {
    if call.role == Role::Opener {
        return opener::run(&call.arguments);
    }
    let task = args::parse(call.program, &call.arguments)?;
    if call.role == Role::Fetcher {
        return fetcher::run(&task);
    }
    if call.role == Role::Launcher
        && let Some(error) = secrets::restart_without_secrets(call)
    {
        return Err(Error::from_io(
            &error,
            "starting the command without its secrets",
        ));
    }
    match task {
        Task::Print(text) => print(&text),
        Task::PrintUsage(help) => {
            let _ = io::stderr().write_all(help.as_bytes());
            Ok(ExitCode::from(USAGE_STATUS))
        }
        Task::Complete(words) => completions::complete(args::definition(), &words),
        Task::Example(path) => text::example::write(&path).map(|()| ExitCode::SUCCESS),
        Task::CheckOnly => Ok(ExitCode::SUCCESS),
        Task::Inspect(inspect) => match fetcher::inspected_source(&inspect) {
            Some((Location::Url(_), _)) if call.role == Role::Launcher => {
                Err(handover::restart_with_fetcher(call))
            }
            _ => inspect::run(&inspect),
        },
        Task::View(mount) => view_command::run(call, mount),
        Task::Serve(serve) => match call.role {
            Role::Worker => serve::worker::run(&serve),
            _ => serve::server::run(call, &serve),
        },
        Task::Mount(mount) => match (call.role, mount.fuse_descriptor()) {
            (Role::Worker, Some(_)) => attached_mount::serve(&mount),
            (_, Some(number)) => attached_mount::run(call, &mount, number),
            (Role::Worker, None) => worker::run(&mount),
            (Role::Supervisor, None) => Ok(supervisor::run_detached(call, &mount)),
            (Role::Launcher | Role::Opener | Role::Fetcher, None) => start(call, &mount),
        },
    }
}

/// Runs the command that mounts, in the launcher. Prints warnings about surprising behaviour.
fn start(call: &Invocation, mount: &MountCommand) -> Result<ExitCode> {
    if mount.settings.remount {
        return mounted::remount(mount).map(|()| ExitCode::SUCCESS);
    }
    mounts::clear_dead_mount(&mount.mountpoint)?;
    advice::refuse_mistakes(call.program, mount)?;
    let advice = advice::mount_warnings(call.program, mount);
    if mount.foreground {
        advice.iter().for_each(|text| print_error(text));
        return Ok(supervisor::run_in_foreground(call, mount));
    }
    let code = launcher::run(call, mount)?;
    if code == ExitCode::SUCCESS {
        advice.iter().for_each(|text| print_error(text));
    }
    Ok(code)
}

fn print(text: &[u8]) -> Result<ExitCode> {
    match io::stdout()
        .write_all(text)
        .and_then(|()| io::stdout().flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::from_io(&error, "standard output"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

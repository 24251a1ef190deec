//! The command: what stands between the user's shell and the filesystem.
//!
//! A mount takes three processes, all of this one binary. The *launcher* is what the user called: it starts
//! the supervisor and returns when the mount answers. The supervisor starts the worker, which opens
//! the source, mounts, enters its cage, and then reads and serves; the supervisor parses nothing and unmounts
//! when the worker ends, however it ends. In the foreground the launcher is the supervisor itself. Each process is started anew from the
//! executable, never forked, with the user's own arguments; the program's name tells it its role, and shows
//! the role in `ps`. With `external=none` the worker starts a fourth, the *opener*, which opens the source again for it.

mod args;
mod cage;
mod check;
mod columns;
mod heartbeat;
mod inspect;
mod list;
mod logging;
mod mounts;
mod opener;
mod options;
mod printable;
mod progress;
mod report;
mod style;
mod supervisor;
mod walk;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use args::{Mount, Program, Task};
use logging::Destination;
use mounts::FreePlace;
use printable::printable;
use report::{Report, Reports};

use crate::error::{Error, Result};

/// The exit status of a wrong command line; that of everything else that fails is 1.
const USAGE: u8 = 2;

/// Runs the command whose arguments, the program's name first, these are.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let call = Call::new(arguments);
    match call.perform() {
        Ok(code) => code,
        Err(Error::Usage(text)) => {
            complain(&text);
            ExitCode::from(USAGE)
        }
        Err(error) => {
            complain(&printable(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// One start of the program: by which name, in which role, with which arguments.
struct Call {
    program: Program,
    role: Role,
    arguments: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Launcher,
    Supervisor,
    Worker,
    Opener,
}

impl Role {
    /// What the role adds to the program's name. No file that a user links has such a name by chance.
    fn suffix(self) -> &'static str {
        match self {
            Role::Launcher => "",
            Role::Supervisor => ": supervisor",
            Role::Worker => ": worker",
            Role::Opener => ": opener",
        }
    }
}

const MOUNT_HELPER: &str = "mount.h5fs";
const MOUNT_COMMAND: &str = "h5fs";

impl Call {
    fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut arguments = arguments.into_iter();
        let path = arguments.next().unwrap_or_default();
        let name = Path::new(&path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let role = [Role::Supervisor, Role::Worker, Role::Opener]
            .into_iter()
            .find(|role| name.ends_with(role.suffix()))
            .unwrap_or(Role::Launcher);
        let program = match name.strip_suffix(role.suffix()) {
            Some(MOUNT_HELPER) => Program::MountHelper,
            _ => Program::Command,
        };
        Call {
            program,
            role,
            arguments: arguments.collect(),
        }
    }

    fn perform(&self) -> Result<ExitCode> {
        if self.role == Role::Opener {
            return opener::run(&self.arguments);
        }
        match args::parse(self.program, &self.arguments)? {
            Task::Print(text) => print(&text),
            Task::Remind(help) => {
                let _ = io::stderr().write_all(help.as_bytes());
                Ok(ExitCode::from(USAGE))
            }
            Task::Fake => Ok(ExitCode::SUCCESS),
            Task::Inspect(inspect) => inspect::run(&inspect),
            Task::Mount(mount) => match self.role {
                Role::Worker => worker::run(&mount),
                Role::Supervisor => Ok(supervisor::run_detached(self, &mount)),
                Role::Launcher if mount.foreground => {
                    Ok(supervisor::run_in_foreground(self, &mount))
                }
                Role::Launcher | Role::Opener => self.launch(&mount),
            },
        }
    }

    /// The command that starts this executable again, in another role and with the same arguments.
    fn again(&self, role: Role) -> io::Result<Command> {
        let name = match self.program {
            Program::Command => MOUNT_COMMAND,
            Program::MountHelper => MOUNT_HELPER,
        };
        let mut command = executable(name, role)?;
        command.args(&self.arguments);
        Ok(command)
    }

    /// Starts the supervisor and waits for its word. The supervisor gets none of our own three streams: who
    /// reads them to their end must not wait for the unmount. It sees at its standard input when we die.
    ///
    /// The worker has the pipe as well: its end means that both are gone. A supervisor that is
    /// killed before it could say how the mount went leaves that to the worker, so that a mount
    /// that is served is never said to have failed.
    fn launch(&self, mount: &Mount) -> Result<ExitCode> {
        let place = mount.mountpoint.canonicalize().ok();
        let place = place.and_then(|point| FreePlace::at(&point).ok());
        let started = self.again(Role::Supervisor).and_then(|mut command| {
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
        });
        let mut supervisor =
            started.map_err(|error| Error::io(&error, "starting the supervisor"))?;
        let output = supervisor.stdout.take();
        let report = output.map(|output| Reports::of_supervisor(output).next());
        match report {
            Some(Ok(Some(Report::Ready))) => return Ok(ExitCode::SUCCESS),
            Some(Ok(Some(Report::Failed(text)))) => complain(&text),
            _ => {
                let reason = "the supervisor was killed";
                if let Report::Failed(text) = Report::failure(&mount.mountpoint, reason) {
                    complain(&text);
                }
            }
        }
        supervisor::end(&mut supervisor, place.as_ref());
        Ok(ExitCode::FAILURE)
    }
}

/// The command that starts this executable again, by this name in this role.
fn executable(name: &str, role: Role) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0(format!("{name}{}", role.suffix()));
    Ok(command)
}

impl Mount {
    /// Where this mount's log lines go.
    fn log_destination(&self) -> Destination {
        match &self.settings.log_file {
            _ if self.foreground => Destination::Terminal,
            Some(path) => Destination::File(path.clone()),
            None => Destination::System,
        }
    }
}

/// Says what went wrong; a closed standard error is no reason to fail once more.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "h5fs: {text}");
}

fn print(text: &[u8]) -> Result<ExitCode> {
    match io::stdout()
        .write_all(text)
        .and_then(|()| io::stdout().flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io(&error, "standard output"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

//! The command: what stands between the user's shell and the filesystem.
//!
//! A mount takes three processes, all of this one binary. The *launcher* is what the user called: it starts
//! the supervisor and returns when the mount answers. The supervisor starts the worker, which opens
//! the source, mounts, enters its cage, and then reads and serves; the supervisor parses nothing and unmounts
//! when the worker ends, however it ends. In the foreground the launcher is the supervisor itself. Each process is started anew from the
//! executable, never forked, with the user's own arguments; the program's name tells it its role, and shows
//! the role in `ps`.

mod args;
mod cage;
mod check;
mod columns;
mod inspect;
mod list;
mod logging;
mod mounts;
mod options;
mod printable;
mod progress;
mod style;
mod supervisor;
mod walk;
mod worker;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use args::{Mount, Program, Task};
use logging::Destination;
use printable::printable;

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
}

impl Role {
    /// What the role adds to the program's name. No file that a user links has such a name by chance.
    fn suffix(self) -> &'static str {
        match self {
            Role::Launcher => "",
            Role::Supervisor => ": supervisor",
            Role::Worker => ": worker",
        }
    }
}

const MOUNT_HELPER: &str = "mount.h5fs";

impl Call {
    fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut arguments = arguments.into_iter();
        let path = arguments.next().unwrap_or_default();
        let name = Path::new(&path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let role = [Role::Supervisor, Role::Worker]
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
                Role::Launcher => self.launch(&mount),
            },
        }
    }

    /// The command that starts this executable again, in another role and with the same arguments.
    fn again(&self, role: Role) -> io::Result<Command> {
        let name = match self.program {
            Program::Command => "h5fs",
            Program::MountHelper => MOUNT_HELPER,
        };
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg0(format!("{name}{}", role.suffix()))
            .args(&self.arguments);
        Ok(command)
    }

    /// Starts the supervisor and waits for its word. The supervisor gets none of our own three streams: who
    /// reads them to their end must not wait for the unmount. It sees at its standard input when we die.
    fn launch(&self, mount: &Mount) -> Result<ExitCode> {
        let started = self.again(Role::Supervisor).and_then(|mut command| {
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
        });
        let mut supervisor =
            started.map_err(|error| Error::io(&error, "starting the supervisor"))?;
        let mut line = String::new();
        if let Some(output) = supervisor.stdout.take() {
            // A line that cannot be read is an empty one.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let report = Report::parse(&line)
            .unwrap_or_else(|| Report::failure(&mount.mountpoint, "the supervisor was killed"));
        match report {
            Report::Failed(text) => {
                complain(&text);
                // It has said why; its end is awaited so that nothing is left when we return.
                let _ = supervisor.wait();
                Ok(ExitCode::FAILURE)
            }
            Report::Mounted(_) | Report::Ready => Ok(ExitCode::SUCCESS),
        }
    }
}

/// A line that a worker tells its supervisor, and a supervisor its launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Report {
    /// The worker has mounted, and may fail yet; the mount's device.
    Mounted(String),
    /// The mount is served.
    Ready,
    /// Why there is no mount, naming the file.
    Failed(String),
}

impl Report {
    const MOUNTED: &str = "mounted ";
    const READY: &str = "ready";
    const FAILED: &str = "failed ";

    fn failure(file: &Path, reason: &str) -> Self {
        let file = file.display().to_string();
        // Other programs' words end in a newline.
        let reason = reason.trim_end();
        let text = match reason.strip_prefix(&file) {
            Some(rest) if rest.starts_with(": ") => reason.to_owned(),
            _ => format!("{file}: {reason}"),
        };
        Report::Failed(printable(&text))
    }

    /// Understands one line; a broken one says nothing.
    fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\n')?;
        if line == Self::READY {
            return Some(Report::Ready);
        }
        let mounted = line.strip_prefix(Self::MOUNTED);
        let failed = line.strip_prefix(Self::FAILED);
        let mounted = mounted.map(|device| Report::Mounted(device.to_owned()));
        mounted.or_else(|| failed.map(|text| Report::Failed(text.to_owned())))
    }

    /// Sends the line to standard output.
    fn send(&self) -> io::Result<()> {
        let line = match self {
            Report::Mounted(device) => format!("{}{device}\n", Self::MOUNTED),
            Report::Ready => format!("{}\n", Self::READY),
            Report::Failed(text) => format!("{}{text}\n", Self::FAILED),
        };
        let mut output = io::stdout();
        output.write_all(line.as_bytes())?;
        output.flush()
    }
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

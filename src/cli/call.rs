//! One start of the program, and how it starts itself again in another role.
//!
//! The program's name tells it its role, and shows the role in `ps`.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::cli::args::Program;

/// One start of the program: by which name, in which role, with which arguments.
pub(super) struct Call {
    pub(super) program: Program,
    pub(super) role: Role,
    pub(super) arguments: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Launcher,
    Supervisor,
    Worker,
    Opener,
    Fetcher,
}

impl Role {
    /// The roles that the program starts itself in.
    const OWN: [Role; 4] = [Role::Supervisor, Role::Worker, Role::Opener, Role::Fetcher];

    /// The suffix that the role adds to the program's name. No file that a user links has such a
    /// name by chance.
    fn suffix(self) -> &'static str {
        match self {
            Role::Launcher => "",
            Role::Supervisor => ": supervisor",
            Role::Worker => ": worker",
            Role::Opener => ": opener",
            Role::Fetcher => ": fetcher",
        }
    }
}

const MOUNT_HELPER: &str = "mount.h5fs";
pub(super) const MOUNT_COMMAND: &str = "h5fs";

impl Call {
    /// The call whose arguments, the program's name first, these are.
    pub(super) fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut arguments = arguments.into_iter();
        let path = arguments.next().unwrap_or_default();
        let name = Path::new(&path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let role = Role::OWN
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

    /// The command that starts this executable again, in another role and with the same arguments.
    pub(super) fn again(&self, role: Role) -> io::Result<Command> {
        let name = match self.program {
            Program::Command => MOUNT_COMMAND,
            Program::MountHelper => MOUNT_HELPER,
        };
        let mut command = executable(name, role)?;
        command.args(&self.arguments);
        Ok(command)
    }
}

/// The command that starts this executable again, by this name in this role.
pub(super) fn executable(name: &str, role: Role) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0(format!("{name}{}", role.suffix()));
    Ok(command)
}

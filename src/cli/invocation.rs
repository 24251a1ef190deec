//! One run of the program, and how the program starts itself again in another role.
//!
//! The program name (`argv[0]`) encodes the role, and shows the role in `ps`.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The arguments of one run of the program, with the program's name and its role.
pub(super) struct Invocation {
    pub(super) program: Program,
    pub(super) role: Role,
    pub(super) arguments: Vec<OsString>,
}

/// The name under which the program was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `h5fs`.
    Command,
    /// `mount.h5fs`, called by mount(8).
    MountHelper,
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
    /// The roles in which the program starts itself.
    const CHILD_ROLES: [Role; 4] = [Role::Supervisor, Role::Worker, Role::Opener, Role::Fetcher];

    /// Returns the suffix that marks the role in the program's name. A link that a user makes does
    /// not have such a name by chance.
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

impl Invocation {
    /// Parses the arguments of a run. The first argument is the program's name.
    pub(super) fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut arguments = arguments.into_iter();
        let path = arguments.next().unwrap_or_default();
        let name = Path::new(&path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let role = Role::CHILD_ROLES
            .into_iter()
            .find(|role| name.ends_with(role.suffix()))
            .unwrap_or(Role::Launcher);
        let program = match name.strip_suffix(role.suffix()) {
            Some(MOUNT_HELPER) => Program::MountHelper,
            _ => Program::Command,
        };
        Invocation {
            program,
            role,
            arguments: arguments.collect(),
        }
    }

    /// Returns the command that starts this program again in the role `role`, with the same
    /// arguments.
    pub(super) fn restart_command(&self, role: Role) -> io::Result<Command> {
        let name = match self.program {
            Program::Command => MOUNT_COMMAND,
            Program::MountHelper => MOUNT_HELPER,
        };
        let mut command = self_command(name, role)?;
        command.args(&self.arguments);
        Ok(command)
    }
}

/// Returns the command that starts this program again with the name `name` and in the role `role`.
pub(super) fn self_command(name: &str, role: Role) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0(format!("{name}{}", role.suffix()));
    Ok(command)
}

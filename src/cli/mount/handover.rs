//! Starts the fetcher, and connects the parsing process to the fetcher.
//!
//! The starting process creates a pair of sockets and the stage, a file in memory. The fetcher has
//! its socket as standard input, and the stage as standard output. The parsing process has the
//! supervision socket as standard input. Over this socket it receives the other socket of the pair
//! and a read-only descriptor of the stage. The supervision socket closes when the starting process
//! ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::rights;
use h5fs_reader::source::packets;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::cli::invocation::{Invocation, Role};

/// The file descriptors through which a process reaches the fetcher.
#[derive(Debug)]
pub(in crate::cli) struct FetcherConnection {
    /// Socket for requests and replies.
    pub(in crate::cli) socket: OwnedFd,
    /// The stage, which the process can only read.
    pub(in crate::cli) stage: File,
}

/// Starts the fetcher for the source of the command line `call`. `errors` becomes its standard
/// error.
///
/// # Errors
/// Fails if the system cannot start it.
pub(in crate::cli) fn start_fetcher(
    call: &Invocation,
    errors: Stdio,
) -> io::Result<(Child, FetcherConnection)> {
    let (own, other) = packets::socket_pair()?;
    let stage = memfd_create("h5fs stage", MemfdFlags::CLOEXEC)?;
    let read_only = File::open(proc_fd_path(&stage))?;
    let fetcher = call
        .restart_command(Role::Fetcher)?
        .stdin(Stdio::from(other))
        .stdout(Stdio::from(stage))
        .stderr(errors)
        .process_group(0)
        .spawn()?;
    let ends = FetcherConnection {
        socket: own,
        stage: read_only,
    };
    Ok((fetcher, ends))
}

/// Returns the path of an open file of this process in `/proc`.
fn proc_fd_path(file: &OwnedFd) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Creates a supervision socket. If `ends` is set, sends the connection to the fetcher over the
/// socket. Returns the end of the starting process, and the end that becomes the standard input of
/// the supervised process.
///
/// # Errors
/// Fails with the system's error.
pub(in crate::cli) fn supervision_socket(
    ends: Option<&FetcherConnection>,
) -> io::Result<(UnixStream, Stdio)> {
    let (held, worn) = UnixStream::pair()?;
    if let Some(ends) = ends {
        rights::send_with_files(
            held.as_fd(),
            b"f",
            &[ends.socket.as_fd(), ends.stage.as_fd()],
        )?;
    }
    Ok((held, Stdio::from(OwnedFd::from(worn))))
}

/// Receives the connection to the fetcher from the supervision socket. This function must be called
/// before any other read from the socket.
///
/// # Errors
/// `Usage` if the socket holds no connection: the process was not started by this program.
pub(in crate::cli) fn receive_connection() -> Result<FetcherConnection> {
    let nothing = || Error::Usage("the fetcher does not exist".to_owned());
    let received = rights::receive_with_files(io::stdin().as_fd(), &mut [0]);
    let (_, files) = received.map_err(|_| nothing())?;
    match <[OwnedFd; rights::FILES]>::try_from(files) {
        Ok([socket, stage]) => Ok(FetcherConnection {
            socket,
            stage: stage.into(),
        }),
        Err(_) => Err(nothing()),
    }
}

/// Environment variables that the parsing process needs, in addition to variables with one of the
/// prefixes in [`remove_secret_variables`]. All other variables may be secrets.
const KEPT_VARIABLES: &[&str] = &[
    "H5FS_LOG",
    "PATH",
    "HOME",
    "TZ",
    "TERM",
    "RUST_BACKTRACE",
    "TMPDIR",
    "XDG_CACHE_HOME",
];

/// Removes all environment variables that may contain secrets from the environment of a command.
pub(in crate::cli) fn remove_secret_variables(command: &mut Command) {
    let is_kept = |name: &str| {
        KEPT_VARIABLES.contains(&name)
            || ["LC_", "LANG", "MALLOC_", "LLVM_PROFILE", "NO_COLOR"]
                .iter()
                .any(|start| name.starts_with(start))
    };
    for (name, _) in std::env::vars_os() {
        if !name.to_str().is_some_and(is_kept) {
            command.env_remove(name);
        }
    }
}

/// Starts the fetcher for a command without a mount. Then replaces this process by the same command
/// in the role of the parsing process. Returns only if one of these steps fails.
pub(in crate::cli) fn restart_with_fetcher(call: &Invocation) -> Error {
    let attempt = || -> io::Result<std::convert::Infallible> {
        let errors = io::stderr().as_fd().try_clone_to_owned()?;
        let (_, ends) = start_fetcher(call, errors.into())?;
        let (held, worn) = supervision_socket(Some(&ends))?;
        let mut command = call.restart_command(Role::Worker)?;
        remove_secret_variables(&mut command);
        let error = command.stdin(worn).exec();
        drop(held);
        Err(error)
    };
    match attempt() {
        Ok(never) => match never {},
        Err(error) => Error::from_io(&error, "starting the fetcher"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_fetcher_connection_is_sent_over_the_supervision_socket() {
        let (mut other, socket) = UnixStream::pair().unwrap();
        let ends = FetcherConnection {
            socket: socket.into(),
            stage: File::open("/dev/null").unwrap(),
        };
        let (held, worn) = UnixStream::pair().unwrap();
        rights::send_with_files(
            held.as_fd(),
            b"f",
            &[ends.socket.as_fd(), ends.stage.as_fd()],
        )
        .unwrap();
        drop(ends);
        let (length, files) = rights::receive_with_files(worn.as_fd(), &mut [0]).unwrap();
        assert_eq!((length, files.len()), (1, rights::FILES));
        rustix::io::write(&files[0], b"through").unwrap();
        let mut seen = [0; 7];
        other.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, b"through");
    }

    #[test]
    fn no_secret_variable_is_passed_on() {
        let mut command = Command::new("true");
        remove_secret_variables(&mut command);
        let removed: Vec<_> = command
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .collect();
        let kept = |name: &str| !removed.iter().any(|(own, _)| *own == name);
        // Cargo sets the first variable, and every system sets the second.
        assert!(!kept("CARGO_MANIFEST_DIR") && kept("PATH"));
    }
}

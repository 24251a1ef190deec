//! The opener: a process that opens one path for another process whose sandbox forbids opening it.
//!
//! With `external=none`, the source is the only file that the worker needs, and the worker already
//! has it open. But another file may replace the source at its path, and Landlock cannot permit one
//! path without its neighbours. A credentials file for the fetcher has the same problem. So a
//! process that parses no data opens this one path on each request, as the user of the requesting
//! process.
//!
//! The opener's standard input is a socket. A request is one byte, its number. The answer is the
//! same byte, an error number, and the open file unless the request failed. The opener ends when
//! the socket is closed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::local::file::{self, SourceOpener};
use h5fs_reader::source::local::rights;
use h5fs_reader::source::packets;
use nix::errno::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::cli::invocation::{MOUNT_COMMAND, Role, self_command};
use crate::cli::mount::handover;
use crate::cli::mount::rotation;
use crate::cli::sandbox;

/// Time limit for an answer of the opener. The file may be on a disk that responds late or never.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Length in bytes of an answer: one byte with the number of the request, and four bytes with an
/// error number or 0.
const ANSWER_LENGTH: usize = 5;

/// Starts the process that opens `path`, an absolute path, as the user `owner`. Returns the
/// function that requests the open file from the process.
///
/// # Errors
/// Fails if the system cannot start the process.
pub(in crate::cli) fn start(path: &Path, owner: u32) -> io::Result<SourceOpener> {
    let (own, other) = packets::socket_pair()?;
    set_socket_timeout(&own, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
    let mut command = self_command(MOUNT_COMMAND, Role::Opener)?;
    handover::remove_secret_variables(&mut command);
    let process = command
        .arg(path)
        .arg(owner.to_string())
        .current_dir("/")
        .stdin(Stdio::from(other))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let client = Mutex::new(OpenerClient {
        socket: own,
        number: 0,
        _process: process,
    });
    Ok(Box::new(move || lock(&client).request_file()))
}

/// The connection to an opener, in the process that sends requests.
struct OpenerClient {
    socket: OwnedFd,
    /// Number of the last request. An answer with another number is late and is dropped.
    number: u8,
    /// The opener's process. It ends when the connection is closed.
    _process: Child,
}

impl OpenerClient {
    fn request_file(&mut self) -> io::Result<File> {
        self.number = self.number.wrapping_add(1);
        rustix::io::write(&self.socket, &[self.number])?;
        loop {
            let (number, answer) = receive(self.socket.as_fd())?;
            if number == self.number {
                return answer;
            }
        }
    }
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<(u8, io::Result<File>)> {
    let mut bytes = [0; ANSWER_LENGTH];
    let (length, files) = rights::receive_with_files(socket, &mut bytes)?;
    if length != ANSWER_LENGTH {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let file = files.into_iter().next().map(File::from);
    let [number, errno @ ..] = bytes;
    let refused = || io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
    Ok((number, file.ok_or_else(refused)))
}

/// Runs the opener: answers requests until the connection is closed. The `arguments` are the path
/// and the user ID.
///
/// # Errors
/// `Usage` for other arguments. `Io` if root cannot change to the user.
pub(in crate::cli) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let owner = |text: &OsString| text.to_str()?.parse().ok();
    let (path, owner) = match arguments {
        [path, number] => (Path::new(path), owner(number)),
        _ => (Path::new(""), None),
    };
    let owner = owner.ok_or_else(|| Error::Usage("a path and a user are required".to_owned()))?;
    rotation::block_reopen_signal();
    sandbox::enter_opener(path, owner)?;
    let socket = io::stdin();
    let mut question = [0];
    while rustix::io::read(&socket, &mut question).is_ok_and(|length| length > 0) {
        let [number] = question;
        if send(socket.as_fd(), number, &file::open(path)).is_err() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn send(socket: BorrowedFd<'_>, number: u8, opened: &io::Result<File>) -> io::Result<()> {
    let unknown = Errno::EIO as i32;
    let errno = match opened {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(unknown),
    };
    let [a, b, c, d] = errno.to_ne_bytes();
    let bytes = [number, a, b, c, d];
    let files: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
    rights::send_with_files(socket, &bytes, &files)
}

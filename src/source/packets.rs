//! A pair of sockets over which two ends send each other packets; unix(7), `SOCK_SEQPACKET`.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// The two ends, which no program that is started inherits by accident.
///
/// # Errors
/// Fails if the system has no sockets left.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (domain, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    Ok(socketpair(domain, kind, SocketFlags::CLOEXEC, None)?)
}

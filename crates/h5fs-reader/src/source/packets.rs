//! A pair of connected sockets for packets; unix(7), `SOCK_SEQPACKET`.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Creates a pair of connected `SOCK_SEQPACKET` sockets. Child processes do not inherit them.
///
/// # Errors
/// Fails if the system cannot create more sockets.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (domain, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    Ok(socketpair(domain, kind, SocketFlags::CLOEXEC, None)?)
}

//! Notifies systemd that a service is ready; see sd_notify(3).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use h5fs_reader::error::io_error_message;

/// Tells the service manager that the mount answers. Does nothing if no service manager has started
/// this process.
pub(in crate::cli) fn notify_ready() {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(socket.as_bytes(), b"READY=1\n")
    {
        log::warn!("NOTIFY_SOCKET: {}", io_error_message(&error));
    }
}

/// Sends a datagram to the Unix socket at the path `name`. A name that starts with `@` is the name
/// of an abstract socket.
fn send(name: &[u8], text: &[u8]) -> io::Result<()> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(text, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_socket_types_are_notified() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let name = format!("@h5fs-test-{}", std::process::id());
        let named = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_abstract_name(&name.as_bytes()[1..]).unwrap();
        let unnamed = UnixDatagram::bind_addr(&address).unwrap();
        send(path.as_os_str().as_bytes(), b"READY=1\n").unwrap();
        send(name.as_bytes(), b"READY=1\n").unwrap();
        for socket in [named, unnamed] {
            let mut heard = [0; 16];
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1\n");
        }
        assert!(send(b"/no/such/socket", b"READY=1\n").is_err());
    }
}

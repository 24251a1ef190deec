//! The listening socket of `h5fs serve`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use h5fs_reader::error::{Error, Result};
use h5fs_tree::http::is_usual_loopback;
use nix::sys::stat::{Mode, umask};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// The address at which the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum ListenAddress {
    Network(SocketAddr),
    Unix(PathBuf),
}

impl Default for ListenAddress {
    fn default() -> Self {
        ListenAddress::Network((Ipv4Addr::LOCALHOST, 0).into())
    }
}

/// Parses `ADDRESS:PORT`, `localhost:PORT`, `:PORT` and `unix:PATH`.
///
/// # Errors
/// Returns one line of text.
pub(in crate::cli) fn parse_listen_address(
    text: OsString,
) -> std::result::Result<ListenAddress, String> {
    if let Some(path) = text.as_bytes().strip_prefix(b"unix:") {
        if path.is_empty() {
            return Err("unix: must be followed by a path".to_owned());
        }
        return Ok(ListenAddress::Unix(
            OsString::from_vec(path.to_vec()).into(),
        ));
    }
    let wrong =
        || "an address and a port are required, as in 127.0.0.1:8080, or unix:PATH".to_owned();
    let text = text.into_string().map_err(|_| wrong())?;
    let port = text
        .strip_prefix("localhost:")
        .or_else(|| text.strip_prefix(':'));
    match port {
        Some(port) => {
            let port: u16 = port.parse().map_err(|_| wrong())?;
            Ok(ListenAddress::Network((Ipv4Addr::LOCALHOST, port).into()))
        }
        None => text
            .parse()
            .map(ListenAddress::Network)
            .map_err(|_| wrong()),
    }
}

/// A listening socket. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub(in crate::cli) struct BoundSocket {
    pub(in crate::cli) socket: OwnedFd,
    pub(in crate::cli) address: BoundAddress,
    /// A socket that occupies the same port at the other loopback address; see
    /// [`reserve_other_loopback`].
    pub(in crate::cli) reserved_socket: Option<OwnedFd>,
}

/// The address of a listening socket.
#[derive(Debug)]
pub(in crate::cli) enum BoundAddress {
    Network(SocketAddr),
    Unix(SocketFile),
}

/// The file of a Unix socket. Dropping the value removes the file.
#[derive(Debug)]
pub(in crate::cli) struct SocketFile {
    pub(in crate::cli) path: PathBuf,
    /// Device and inode of the file. Another program may later create a file at the same path.
    identity: (u64, u64),
}

impl ListenAddress {
    /// Opens the socket. Only this user can connect to a Unix socket.
    ///
    /// # Errors
    /// Fails with the system's error if the port or the path is in use or not permitted.
    pub(in crate::cli) fn bind(&self) -> Result<BoundSocket> {
        match self {
            ListenAddress::Network(address) => bind_network(*address)
                .map_err(|error| Error::from_io(&error, format!("listening on {address}"))),
            ListenAddress::Unix(path) => bind_path(path).map_err(|error| {
                Error::from_io(&error, format!("listening on {}", path.display()))
            }),
        }
    }

    /// Returns whether other machines can connect to the address.
    pub(in crate::cli) fn is_open_to_others(&self) -> bool {
        matches!(self, ListenAddress::Network(address) if !address.ip().is_loopback())
    }
}

fn bind_network(address: SocketAddr) -> io::Result<BoundSocket> {
    /// Maximum number of ports that are tried until one is free at both loopback addresses.
    const TRIES: u32 = 16;
    let mut left = if address.port() == 0 { TRIES } else { 1 };
    loop {
        left = left.saturating_sub(1);
        let listener = TcpListener::bind(address)?;
        let own = listener.local_addr()?;
        match reserve_other_loopback(own) {
            Ok(held) => {
                return Ok(BoundSocket {
                    socket: listener.into(),
                    address: BoundAddress::Network(own),
                    reserved_socket: held,
                });
            }
            Err(error) if left == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

/// Binds a socket to the port of `own` at the loopback address of the other IP version. The socket
/// does not listen. Browsers resolve names below `localhost` to both addresses: another user who
/// listened there would receive the token. Returns `None` if this machine lacks that address, or if
/// `own` is neither the IPv4 nor the IPv6 loopback address nor `0.0.0.0`.
///
/// # Errors
/// Fails if the port is in use there.
fn reserve_other_loopback(own: SocketAddr) -> io::Result<Option<OwnedFd>> {
    let (family, other): (_, IpAddr) = match own.ip() {
        IpAddr::V4(ip) if ip == Ipv4Addr::LOCALHOST || ip.is_unspecified() => {
            (AddressFamily::INET6, Ipv6Addr::LOCALHOST.into())
        }
        IpAddr::V6(ip) if ip == Ipv6Addr::LOCALHOST => {
            (AddressFamily::INET, Ipv4Addr::LOCALHOST.into())
        }
        _ => return Ok(None),
    };
    // std would set SO_REUSEADDR, with which others may bind the port too.
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let Ok(socket) = socket else {
        return Ok(None);
    };
    match bind(&socket, &SocketAddr::new(other, own.port())) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::ADDRINUSE) => Err(Errno::ADDRINUSE.into()),
        // This machine lacks the other loopback address.
        Err(_) => Ok(None),
    }
}

fn bind_path(path: &Path) -> io::Result<BoundSocket> {
    // The working directory may change before the file is removed.
    let path = std::path::absolute(path)?;
    remove_stale_socket(&path)?;
    // The umask applies to the whole process, but no other thread exists yet.
    let before = umask(Mode::S_IRWXG | Mode::S_IRWXO | Mode::S_IXUSR);
    let listener = UnixListener::bind(&path);
    umask(before);
    let listener = listener?;
    let there = fs::symlink_metadata(&path)?;
    Ok(BoundSocket {
        socket: listener.into(),
        address: BoundAddress::Unix(SocketFile {
            identity: (there.dev(), there.ino()),
            path,
        }),
        reserved_socket: None,
    })
}

/// Removes a socket file that a killed server has left, if no process listens on it.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket());
    if is_socket
        && let Err(error) = UnixStream::connect(path)
        && error.kind() == io::ErrorKind::ConnectionRefused
    {
        fs::remove_file(path)?;
    }
    Ok(())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let there = fs::symlink_metadata(&self.path);
        if there.is_ok_and(|there| (there.dev(), there.ino()) == self.identity) {
            // If removal is not permitted, the file remains without a listener.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl BoundAddress {
    /// Returns the host and the port of the URL with which programs on this machine connect.
    pub(in crate::cli) fn authority(&self) -> String {
        match self {
            BoundAddress::Network(address) => {
                SocketAddr::new(connect_address(*address), address.port()).to_string()
            }
            BoundAddress::Unix(_) => "localhost".to_owned(),
        }
    }

    /// Returns the host and port of a URL for a browser on this machine. `name` is below
    /// `localhost`, and replaces a standard loopback address. Returns `None` for any other address.
    pub(in crate::cli) fn browser_authority(&self, name: &str) -> Option<String> {
        match self {
            BoundAddress::Network(address) if is_usual_loopback(connect_address(*address)) => {
                Some(format!("{name}:{}", address.port()))
            }
            _ => None,
        }
    }
}

/// Returns the address by which this machine connects to a listening address.
fn connect_address(address: SocketAddr) -> IpAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::fs::PermissionsExt;

    use h5fs_reader::testing::skip;

    #[test]
    fn addresses_are_read() {
        let read = |text: &str| parse_listen_address(text.into());
        let local = |port: u16| Ok(ListenAddress::Network((Ipv4Addr::LOCALHOST, port).into()));
        assert_eq!(read("127.0.0.1:0"), local(0));
        assert_eq!(read("localhost:80"), local(80));
        assert_eq!(read(":80"), local(80));
        assert_eq!(read("unix:a b"), Ok(ListenAddress::Unix("a b".into())));
        assert!(read("0.0.0.0:80").unwrap().is_open_to_others());
        assert!(read("[::]:80").unwrap().is_open_to_others());
        assert!(!read("[::1]:80").unwrap().is_open_to_others());
        for wrong in ["", "80", "127.0.0.1", "host:80", "unix:", "127.0.0.1:70000"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_below_localhost_replace_only_standard_loopback_addresses() {
        let at = |text: &str| BoundAddress::Network(text.parse().unwrap());
        for (listening, program, browser) in [
            ("127.0.0.1:80", "127.0.0.1:80", Some("n.localhost:80")),
            ("0.0.0.0:80", "127.0.0.1:80", Some("n.localhost:80")),
            ("[::]:80", "[::1]:80", Some("n.localhost:80")),
            ("[::1]:80", "[::1]:80", Some("n.localhost:80")),
            ("127.0.0.2:80", "127.0.0.2:80", None),
            ("10.0.0.5:80", "10.0.0.5:80", None),
        ] {
            assert_eq!(at(listening).authority(), program);
            let shown = at(listening).browser_authority("n.localhost");
            assert_eq!(shown.as_deref(), browser, "{listening}");
        }
    }

    #[test]
    fn only_the_owner_can_use_the_socket_which_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listen = ListenAddress::Unix(path.clone());
        let bound = listen.bind().unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(listen.bind().unwrap_err().to_string().contains("Address"));
        drop(bound);
        assert!(!path.exists());
        // The server replaces a socket that a dead server has left, but no other file.
        drop(UnixListener::bind(&path).unwrap());
        let bound = listen.bind().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(bound);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
        assert!(listen.bind().is_err() && path.exists());
    }

    #[test]
    fn a_port_is_taken_once() {
        let bound = ListenAddress::default().bind().unwrap();
        let BoundAddress::Network(address) = bound.address else {
            panic!("no address")
        };
        let again = ListenAddress::Network(address)
            .bind()
            .unwrap_err()
            .to_string();
        assert!(again.contains("Address already in use"), "{again}");
    }

    #[test]
    fn the_port_is_held_at_the_other_loopback_address() {
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        if TcpListener::bind((v6, 0)).is_err() {
            return skip("there is no ::1");
        }
        let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
        for (own, other) in [(v4, v6), (v6, v4)] {
            let bound = ListenAddress::Network((own, 0).into()).bind().unwrap();
            let BoundAddress::Network(address) = bound.address else {
                panic!("no address")
            };
            let other = SocketAddr::new(other, address.port());
            let error = TcpListener::bind(other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            // No process listens there, so clients fall back to the served address.
            let error = TcpStream::connect(other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            drop((bound.socket, bound.reserved_socket));
            // The server does not start if the other loopback address is in use.
            let taken = TcpListener::bind(other).unwrap();
            let error = ListenAddress::Network(address)
                .bind()
                .unwrap_err()
                .to_string();
            assert!(error.contains("Address already in use"), "{error}");
            drop(taken);
            assert!(ListenAddress::Network(address).bind().is_ok());
        }
    }
}

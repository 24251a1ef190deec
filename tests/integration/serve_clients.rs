//! Clients of `h5fs serve` that disconnect, that come in large numbers, or that do not support
//! chunked responses.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::harness::{SOON, eventually, fixture, wait};
use crate::objects::server::Server;
use crate::remote::array_file;
use crate::served::{Answer, Served, archive, send};

/// Raises the limit of open files for the connections of a test.
fn allow_sockets() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("a limit");
}

/// Makes the stream reset the connection when it is dropped.
fn abrupt(stream: TcpStream) -> TcpStream {
    let abrupt = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    abrupt.expect("an option");
    stream
}

/// The origin server does not answer, so no request for its bytes ever finishes.
#[test]
fn requests_that_wait_are_bounded_and_end_with_their_clients() {
    allow_sockets();
    let server = Server::start();
    server.put("/data/a.asdf", array_file(b'x', 12 << 20));
    let served = Served::new(&[], &[Path::new(&server.url("/data/a.asdf"))]);
    assert_eq!(served.get("/.h5fs/status").status, 200);
    server.faults(|to| to.hang = u32::MAX);
    let token = format!("Authorization: Bearer {}", served.token());
    let begun = |_| {
        let mut stream = abrupt(served.connect());
        send(&mut stream, "GET", "/data", &["Host: localhost", &token]);
        stream
    };
    // The requests that may wait, and more than can be in progress.
    let waiting: Vec<_> = (0..512 + 200).map(begun).collect();
    let mut refused = served.get("/.h5fs/status");
    eventually(SOON, "no more are taken", || {
        refused = served.get("/.h5fs/status");
        refused.status == 503
    });
    assert_eq!(refused.field("retry-after"), "1");
    drop(waiting);
    eventually(SOON, "they wait no longer", || {
        served.get("/.h5fs/status").status == 200
    });
}

#[test]
fn who_shows_no_token_holds_no_place() {
    allow_sockets();
    let file = fixture("tiny.latest.h5");
    let served = Served::new(&[], &[&file]);
    let token = format!("Authorization: Bearer {}", served.token());
    let own = ["Host: localhost", &token];
    let mut owner = served.connect();
    let ask = |stream: &mut TcpStream| {
        send(stream, "HEAD", "/contiguous", &own);
        let mut begun = [0; 12];
        stream.read_exact(&mut begun).expect("an answer");
        assert_eq!(&begun, b"HTTP/1.1 200");
        while !begun.ends_with(b"\r\n\r\n") {
            begun.rotate_left(1);
            stream.read_exact(&mut begun[11..]).expect("the rest");
        }
    };
    ask(&mut owner);
    let refused = |fields: &[&str]| {
        let mut stream = served.connect();
        send(&mut stream, "GET", "/contiguous", fields);
        // Reads to the end of the connection, although the request did not ask to close it.
        let answer = Answer::read(stream, "GET");
        assert_eq!(answer.field("connection"), "close");
        answer.status
    };
    assert_eq!(refused(&["Host: localhost"]), 401);
    assert_eq!(refused(&["Host: evil.example", &token]), 421);
    assert_eq!(refused(&[&token]), 400);
    // As many silent connections as there are places.
    let crowd: Vec<_> = (0..1024).map(|_| abrupt(served.connect())).collect();
    ask(&mut served.connect());
    ask(&mut owner);
    let mut first = &crowd[0];
    assert_eq!(first.read(&mut [0]).expect("its end"), 0);
    drop(crowd);
    assert_eq!(served.get("/contiguous").status, 200);
}

#[test]
fn who_closes_one_way_gets_its_answer() {
    let bytes: Vec<u8> = (0..8_u32 << 20).map(|n| n.to_le_bytes()[1]).collect();
    let (kept, top) = archive(&bytes);
    let served = Served::new(&[], &[&top]);
    let token = format!("Authorization: Bearer {}", served.token());
    for fields in [
        &["Host: localhost", &token][..],
        &["Host: localhost", &token, "Connection: close"],
    ] {
        let mut stream = served.connect();
        send(&mut stream, "GET", "/bytes", fields);
        stream.shutdown(Shutdown::Write).expect("an end");
        assert_eq!(Answer::read(stream, "GET").ok(), bytes);
        let mut stream = served.connect();
        send(&mut stream, "GET", "/a.h5/?list", fields);
        stream.shutdown(Shutdown::Write).expect("an end");
        let list = Answer::read(stream, "GET").ok();
        assert!(list.ends_with(b"</html>\n"));
    }
    let socket = kept.path().join("socket");
    let listen = format!("unix:{}", socket.display());
    let served = Served::new(&["--listen", &listen, "--no-token"], &[&top]);
    let mut stream = UnixStream::connect(&socket).expect("a connection");
    send(&mut stream, "GET", "/bytes", &["Host: localhost"]);
    stream.shutdown(Shutdown::Write).expect("an end");
    assert_eq!(Answer::read(stream, "GET").ok(), bytes);
    drop(served);
}

/// Returns an ASDF file with so many names that its listing exceeds every socket buffer.
fn names(word: &str) -> String {
    let pairs = (0..40_000).map(|n| format!("{word}{n:0200}: 1\n"));
    let pairs: String = pairs.collect();
    format!("#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n---\n{pairs}...\n")
}

/// In HTTP/1.0, the end of the connection marks the end of a response without a length.
#[test]
fn an_old_client_takes_no_part_for_all() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("a.asdf");
    let other = directory.path().join("other");
    fs::write(&file, names("a")).expect("write");
    let served = Served::new(&[], &[&file]);
    let begin = || {
        let mut stream = served.connect();
        let token = served.token();
        write!(stream, "GET /?list&token={token} HTTP/1.0\r\n\r\n").expect("a request");
        let mut begun = [0; 12];
        stream.read_exact(&mut begun).expect("a beginning");
        assert_eq!(&begun, b"HTTP/1.0 200");
        stream
    };
    let mut text = String::new();
    begin().read_to_string(&mut text).expect("all of it");
    assert!(!text.contains("transfer-encoding") && text.ends_with("</html>\n"));
    assert_eq!(text.matches("<li><a href=\"./a0").count(), 40_000);
    let mut stream = begin();
    fs::write(&other, names("b")).expect("write");
    fs::rename(&other, &file).expect("rename");
    let new = format!("/b{:0200}", 7);
    eventually(SOON, "the new file", || served.get(&new).status == 200);
    let mut part = Vec::new();
    let cut = stream.read_to_end(&mut part).expect_err("no clean end");
    assert_eq!(cut.kind(), io::ErrorKind::ConnectionReset);
    assert!(!part.ends_with(b"</html>\n"));
    // A Unix socket cannot reset a connection.
    let socket = directory.path().join("socket");
    let listen = format!("unix:{}", socket.display());
    let served = Served::new(&["--listen", &listen, "--no-token"], &[&file]);
    let ask = |target: &str| {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        write!(stream, "GET {target} HTTP/1.0\r\n\r\n").expect("a request");
        Answer::read(stream, "GET")
    };
    assert_eq!((ask("/?list").status, ask(&new).status), (505, 200));
    drop(served);
}

#[test]
fn a_server_ends_with_each_of_its_processes() {
    let server = Server::start();
    for (role, reason) in [
        ("fetcher", "the fetcher has ended"),
        ("worker", "the worker was killed by SIGKILL"),
    ] {
        let path = format!("/data/{role}.h5");
        server.put(&path, fs::read(fixture("tiny.latest.h5")).expect("read"));
        let url = server.url(&path);
        let mut served = Served::new(&[], &[Path::new(&url)]);
        let all = crate::harness::processes_of(Path::new(&url));
        let one = all.into_iter().find(|process| process.is_called(role));
        one.expect("a process")
            .signal(nix::sys::signal::Signal::SIGKILL);
        let ended = wait(&mut served.child, SOON).expect("an end");
        assert_eq!(ended.code(), Some(1), "{role}");
        let mut told = String::new();
        let errors = served.child.stderr.as_mut().expect("a pipe");
        errors.read_to_string(&mut told).expect("text");
        // The first line says how programs reach the server.
        let (hints, rest): (Vec<&str>, Vec<&str>) = told
            .lines()
            .partition(|line| line.contains("programs that cannot resolve this name"));
        assert!(
            hints.len() <= 1 && rest.len() == 1 && rest[0].contains(reason),
            "{role}: {told}"
        );
    }
}

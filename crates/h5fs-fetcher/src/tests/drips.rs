//! Servers that send bytes slowly or without end.

use super::*;

/// A response without an end does not block a connection: later requests succeed over the same
/// connection.
#[test]
fn slow_responses_do_not_block_a_connection() {
    let bytes = content(MIB);
    let other = Server::start();
    other.put_tagged("/b/d/a.h5", bytes.clone(), "\"1\"");
    let range = format!("bytes 524288-786431/{MIB}");
    let part = format!("HTTP/1.1 206 -\r\netag: \"1\"\r\ncontent-range: {range}\r\n");
    let whole = |body: &[u8], end: &str| [b"40000\r\n", body, end.as_bytes()].concat();
    let chunked = whole(&bytes[MIB / 2..][..0x40000], "\r\n0\r\n");
    let to = other.url("/b/d/a.h5");
    let moment = Duration::from_millis(50);
    let of = |head: &str, body: &[u8], piece: &[u8], pause| {
        let bytes = [head.as_bytes(), b"\r\n", body].concat();
        (bytes, Then::Forever(piece.to_vec(), pause))
    };
    let chunks = format!("{part}transfer-encoding: chunked\r\n");
    let long = "content-length: 99999\r\n";
    let cases = [
        (
            "an error",
            of(&format!("HTTP/1.1 503 -\r\n{long}"), b"", b"x", moment),
        ),
        (
            "a redirect",
            of(
                &format!("HTTP/1.1 307 -\r\nlocation: {to}\r\n{long}"),
                b"",
                b"x",
                moment,
            ),
        ),
        (
            "hints",
            of("HTTP/1.1 103 -\r\n", b"", b"HTTP/1.1 103 -\r\n\r\n", moment),
        ),
        ("a header", of("HTTP/1.1 206 -", b"", b"x: y\r\n", moment)),
        ("a length", of(&chunks, b"", b"0", moment)),
        ("a trailer", of(&chunks, &chunked, b"x: y\r\n", moment)),
        (
            "much of a trailer",
            of(
                &chunks,
                &chunked,
                &b"x: y\r\n".repeat(10_000),
                Duration::ZERO,
            ),
        ),
        (
            "bytes",
            of(
                &format!("{part}content-length: 262144\r\n"),
                b"",
                b"x",
                moment,
            ),
        ),
        (
            "an error of no length",
            of("HTTP/1.1 500 -\r\n", b"", b"x", moment),
        ),
    ];
    std::thread::scope(|scope| {
        for (name, (head, then)) in cases {
            let (bytes, other) = (&bytes, &other);
            scope.spawn(move || check_slow_response(name, (bytes, other), head, then));
        }
    });
}

/// One request receives this response, and all later requests succeed.
fn check_slow_response(name: &str, (bytes, other): (&[u8], &Server), head: Vec<u8>, then: Then) {
    let server = Server::start();
    server.put_tagged("/b/d/a.h5", bytes.to_vec(), "\"1\"");
    let settings = RemoteSettings {
        connections: Some(1),
        timeout: Some(Duration::from_secs(16)),
        ..leading_to(&[other])
    };
    let connection = fetcher(&server.url("/b/d/a.h5"), &settings);
    let object = open(&connection, "").unwrap();
    server.faults(|to| {
        to.raw = Some(Raw {
            left: 1,
            of: "",
            bytes: head,
            then,
        });
    });
    let seen = read(&object, MIB / 2, 100).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    // The slow bytes of the range are right.
    assert!(name == "bytes" || seen == bytes[MIB / 2..][..100], "{name}");
    assert_eq!(read(&object, 0, 10).unwrap(), bytes[..10], "{name}");
    let sent = server.endless();
    assert!(sent < 8 * MIB, "{name}: {sent} bytes of what nobody needs");
}

/// A slow TLS handshake is given up.
#[test]
fn a_slow_handshake_is_abandoned() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("https://{}/a.h5", listener.local_addr().unwrap());
    let came = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&came);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::thread::spawn(move || {
                let mut sent = io::Write::write_all(&mut stream, b"\x16\x03\x03\x3f\xff");
                while sent.is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                    sent = io::Write::write_all(&mut stream, b"x");
                }
            });
        }
    });
    let connection = fetcher(&source, &quick());
    assert_eq!(cause(open(&connection, "")), Some(Cause::Unavailable));
    assert!(came.load(std::sync::atomic::Ordering::Relaxed) > 1);
}

#[test]
fn a_slow_listing_is_requested_again() {
    let server = Server::start();
    server.put("/b/d/a.h5", vec![1]);
    let Ok(Location::Url(endpoint)) = Location::parse(server.url("").into()) else {
        panic!("no URL");
    };
    let settings = RemoteSettings {
        endpoint: Some(endpoint),
        timeout: Some(Duration::from_secs(16)),
        connections: Some(1),
        ..quick()
    };
    let head = "HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n";
    let all = "3b\r\n<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>\r\n0\r\n";
    for (body, piece) in [("10000\r\n", " "), (all, "x: y\r\n")] {
        let connection = fetcher("s3://b/d/", &settings);
        server.faults(|to| {
            to.raw = Some(Raw {
                left: 2,
                of: "list-type=2",
                bytes: format!("{head}{body}").into_bytes(),
                then: Then::Forever(piece.as_bytes().to_vec(), Duration::from_millis(50)),
            });
        });
        let (names, _) = connection.list(b"", b"", &|| true).unwrap();
        assert_eq!(names.len(), 1);
    }
}

/// A page that arrives for longer than one step, but without a pause, is accepted.
#[test]
fn a_steady_listing_may_exceed_one_step() {
    const PIECE: usize = 20 << 10;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let came = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&came);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let whole = " ".repeat(8 * PIECE) + "<ListBucketResult/>";
            let head = format!("HTTP/1.1 200 -\r\ncontent-length: {}\r\n\r\n", whole.len());
            let mut sent = io::Read::read(&mut stream, &mut [0; 4096]).map(|_| ());
            sent = sent.and_then(|()| io::Write::write_all(&mut stream, head.as_bytes()));
            for piece in whole.as_bytes().chunks(PIECE) {
                sent = sent.and_then(|()| io::Write::write_all(&mut stream, piece));
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    });
    let Ok(Location::Url(endpoint)) = Location::parse(endpoint.into()) else {
        panic!("no URL");
    };
    let settings = RemoteSettings {
        endpoint: Some(endpoint),
        timeout: Some(Duration::from_secs(24)),
        ..quick()
    };
    let connection = fetcher("s3://b/d/", &settings);
    assert_eq!(
        connection.list(b"", b"", &|| true),
        Ok((Vec::new(), Vec::new()))
    );
    assert_eq!(came.load(std::sync::atomic::Ordering::Relaxed), 1);
}

//! Tests the limit of requests per second.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Starts a server with this number of small objects, which all differ.
fn server_of(objects: usize) -> Server {
    let server = Server::start();
    for number in 0..objects {
        server.put(&format!("/d/{number}"), bytes_of(number));
    }
    server
}

fn bytes_of(number: usize) -> Vec<u8> {
    format!("object {number} ").repeat(20).into_bytes()
}

/// Opens all objects with this number of threads, and compares their bytes.
fn read_all(connection: &Arc<Connection>, objects: usize, threads: usize) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= objects {
                        return;
                    }
                    let object = open(connection, &number.to_string()).unwrap();
                    let bytes = bytes_of(number);
                    assert!(read(&object, 0, bytes.len()).unwrap() == bytes, "{number}");
                }
            });
        }
    });
}

#[test]
fn the_rate_adapts_to_refusals() {
    const OBJECTS: usize = 2000;
    let server = server_of(OBJECTS);
    server.faults(|to| to.per_second = 100);
    let settings = RemoteSettings {
        timeout: Some(Duration::from_secs(60)),
        connections: Some(64),
        ..quick()
    };
    let connection = fetcher(&server.url("/d/"), &settings);
    read_all(&connection, OBJECTS, 64);
    let seen = server.seen();
    let refused = seen.iter().filter(|one| one.status == 503).count();
    assert_eq!(seen.len() - refused, OBJECTS);
    assert!(refused * 20 <= seen.len(), "{refused} of {}", seen.len());
}

#[test]
fn no_more_requests_are_sent_than_the_user_allows() {
    const OBJECTS: usize = 60;
    let server = server_of(OBJECTS);
    // A few delayed requests may arrive together.
    server.faults(|to| to.per_second = 25);
    let settings = RemoteSettings {
        max_requests: Some(20),
        ..quick()
    };
    let connection = fetcher(&server.url("/d/"), &settings);
    let begun = Instant::now();
    read_all(&connection, OBJECTS, 16);
    assert!(begun.elapsed() >= Duration::from_millis(2900), "{begun:?}");
    assert_eq!(server.seen().len(), OBJECTS, "none was refused");
}

/// One connection receives `Retry-After`, and all connections wait.
#[test]
fn retry_after_pauses_all_connections() {
    let server = server_of(20);
    let connection = fetcher(&server.url("/d/"), &quick());
    open(&connection, "0").unwrap();
    server.faults(|to| {
        to.raw = Some(Raw {
            left: 1,
            of: "/d/1",
            bytes: b"HTTP/1.1 429 -\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n".to_vec(),
            then: Then::Next,
        });
    });
    server.seen();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| open(&connection, "1").unwrap());
        eventually("the request", || !server.seen().is_empty());
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        read_all(&connection, 20, 8);
        // A part of the two seconds has already elapsed.
        assert!(begun.elapsed() >= Duration::from_millis(1200), "{begun:?}");
        first.join().unwrap();
    });
    let seen = server.seen();
    assert_eq!(seen.len(), 1 + 20, "{seen:?}");
}

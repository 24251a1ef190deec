//! Tests the fetcher and its client in the parsing process, with an object server that is slow and
//! faulty.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::source::Source;
use h5fs_reader::source::location::{Location, Url};
use h5fs_reader::source::packets;
use h5fs_reader::source::remote::connection::{Connection, ConnectionSettings};
use h5fs_reader::source::remote::message::{ListedType, OPEN_STAGED_BYTES};
use h5fs_reader::source::remote::object::RemoteObject;
use h5fs_reader::testing::eventually;
use nix::libc;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::disk_cache::DiskCache;
use crate::fetcher::Fetcher;
use crate::limits;
use crate::settings::RemoteSettings;
use objects::server::{Raw, Server, Then};
use objects::sigv4::{self, Keys};

mod certificates;
mod clouds;
mod drips;
mod federation;
mod logins;
#[path = "../../../tests/objects/mod.rs"]
mod objects;
mod pace;
mod states;
mod web;

const MIB: usize = 1 << 20;

/// Size of an object that is fetched in several parts, so that it can change while parts are
/// missing.
const LARGE: usize = 12 * MIB;

/// Returns bytes that do not repeat within a short distance.
fn content(length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

/// Returns settings for short tests.
fn quick() -> RemoteSettings {
    RemoteSettings {
        timeout: Some(Duration::from_secs(20)),
        anonymous: true,
        ..RemoteSettings::default()
    }
}

/// Returns the settings of [`quick`], with the ports of these servers as permitted destinations of
/// redirects.
fn leading_to(servers: &[&Server]) -> RemoteSettings {
    RemoteSettings {
        redirect_ports: servers.iter().map(|server| server.port()).collect(),
        ..quick()
    }
}

/// Prepares a fetcher of all objects of the server, without a sandbox.
fn prepare(url: &Url, settings: &RemoteSettings) -> Result<Fetcher> {
    Fetcher::new(url, settings, true, None)
}

/// Starts a fetcher of `source`, and returns the connection to it.
fn fetcher(source: &str, settings: &RemoteSettings) -> Arc<Connection> {
    fetcher_for(source, settings, Duration::from_secs(60))
}

/// Does the same as [`fetcher`]. The state of an object is trusted for the time `valid`.
fn fetcher_for(source: &str, settings: &RemoteSettings, valid: Duration) -> Arc<Connection> {
    let Ok(Location::Url(url)) = Location::parse(source.into()) else {
        panic!("{source} is no URL");
    };
    let (own, other) = packets::socket_pair().unwrap();
    let stage = File::from(memfd_create("stage", MemfdFlags::CLOEXEC).unwrap());
    let terms = ConnectionSettings {
        url: url.to_string().into(),
        max_staged_bytes: 64 << 20,
        reply_timeout: settings.deadline() + Duration::from_secs(2),
        validity: valid,
        owner: (0, 0),
        is_mounted: false,
    };
    let connection = Connection::start(own, stage.try_clone().unwrap(), terms).unwrap();
    let fetcher = prepare(&url, settings).unwrap();
    let cache = DiskCache::from_settings(settings);
    std::thread::spawn(move || fetcher.serve(other, stage, cache));
    connection
}

fn open(connection: &Arc<Connection>, name: &str) -> Result<RemoteObject> {
    let found = RemoteObject::find(connection, name.as_bytes(), &|| true)?;
    Ok(found.unwrap_or_else(|| panic!("there is no object {name}")))
}

fn read(object: &RemoteObject, at: usize, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    object.read_at(at as u64, &mut bytes)?;
    Ok(bytes)
}

fn cause<T>(result: Result<T>) -> Option<Cause> {
    match result {
        Err(Error::Io { cause, .. }) => Some(cause),
        Err(error) => panic!("{error:?}"),
        Ok(_) => None,
    }
}

#[test]
fn the_hashes_of_the_test_server_are_correct() {
    // The examples of FIPS 180-4, and the first one of RFC 4231.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sigv4::hex(&sigv4::sha256(b"abc")), abc);
    for length in [0, 55, 56, 64, 1000] {
        use sha2::Digest;
        let bytes = content(length);
        assert_eq!(sigv4::sha256(&bytes)[..], sha2::Sha256::digest(&bytes)[..]);
    }
}

#[test]
fn only_the_needed_ranges_are_requested() {
    let server = Server::start();
    let bytes = content(3 * MIB);
    server.put("/d/a.h5", bytes.clone());
    let connection = fetcher(&server.url("/d/a.h5"), &quick());
    let object = open(&connection, "").unwrap();
    assert_eq!(object.length(), bytes.len() as u64);
    assert_eq!(
        read(&object, 2 * MIB, 100).unwrap(),
        bytes[2 * MIB..][..100]
    );
    assert_eq!(read(&object, 0, 3 * MIB).unwrap(), bytes);
    let seen = server.seen();
    assert!(
        seen.iter()
            .all(|one| one.method == "GET" && one.status == 206),
        "{seen:?}"
    );
    assert_eq!(seen[0].header("range"), Some("bytes=0-262143"));
    assert_eq!(seen[0].header("if-match"), None);
    assert!(seen[1..].iter().all(|one| one.header("if-match").is_some()));
    assert!(seen.iter().all(|one| one.header("authorization").is_none()));
    let sent: usize = seen.iter().map(|one| one.sent).sum();
    assert!(sent <= bytes.len() + 256 * 1024, "{sent} bytes");
    let counters = connection.counters().unwrap();
    assert_eq!(counters.requests, seen.len() as u64);
    assert_eq!(counters.bytes, sent as u64);
}

/// Temporary faults are retried, and the bytes are right.
#[test]
fn temporary_faults_are_retried() {
    type Change = fn(&mut objects::server::Faults);
    let faults: [(&str, Change); 9] = [
        ("a burst of 503", |to| to.fail = 6),
        ("bodies that are cut", |to| to.cut = 5),
        ("lengths that are wrong", |to| to.short = 3),
        ("hangs", |to| to.hang = 2),
        ("a 200 for a range", |to| to.ok_for_range = true),
        ("no look at conditions", |to| to.no_conditions = true),
        ("latency", |to| to.latency = Duration::from_millis(30)),
        ("one failure in three", |to| to.fail_one_in = 3),
        ("one cut in three", |to| to.cut_one_in = 3),
    ];
    let bytes = content(2 * MIB + 77);
    for (name, change) in faults {
        let server = Server::start();
        server.put("/a.h5", bytes.clone());
        let connection = fetcher(&server.url("/a.h5"), &quick());
        let object = open(&connection, "").unwrap();
        server.faults(change);
        assert_eq!(read(&object, 0, bytes.len()).unwrap(), bytes, "{name}");
    }
}

/// Permanent faults are errors within the time limit, and never return wrong bytes.
#[test]
fn permanent_faults_are_errors_within_the_time_limit() {
    type Change = fn(&mut objects::server::Faults);
    let eacces = Cause::System(libc::EACCES);
    let faults: [(&str, Change, Cause); 6] = [
        ("500", |to| to.status = Some(500), Cause::Unavailable),
        ("403", |to| to.status = Some(403), eacces),
        ("404", |to| to.status = Some(404), Cause::Stale),
        ("hangs", |to| to.hang = 1000, Cause::Unavailable),
        (
            "a slow drip",
            |to| to.drip = Some(Duration::from_millis(5)),
            Cause::Unavailable,
        ),
        (
            "an endless header",
            |to| to.endless_header = true,
            Cause::Unavailable,
        ),
    ];
    let bytes = content(MIB);
    for (name, change, wanted) in faults {
        let server = Server::start();
        server.put("/a.h5", bytes.clone());
        let settings = RemoteSettings {
            timeout: Some(Duration::from_secs(2)),
            ..quick()
        };
        let connection = fetcher(&server.url("/a.h5"), &settings);
        let object = open(&connection, "").unwrap();
        server.faults(change);
        let began = Instant::now();
        assert_eq!(cause(read(&object, MIB / 2, 1000)), Some(wanted), "{name}");
        let took = began.elapsed();
        assert!(took < Duration::from_secs(30), "{name}: {took:?}");
    }
}

#[test]
fn states_of_a_changed_object_are_never_mixed() {
    for no_conditions in [false, true] {
        let server = Server::start();
        let (old, new) = (content(LARGE), vec![0; LARGE]);
        server.put("/a.h5", old.clone());
        let connection = fetcher(&server.url("/a.h5"), &quick());
        let object = open(&connection, "").unwrap();
        assert_eq!(read(&object, 0, MIB).unwrap(), old[..MIB]);
        server.faults(|to| to.no_conditions = no_conditions);
        server.put("/a.h5", new.clone());
        assert_eq!(cause(read(&object, LARGE - MIB, 100)), Some(Cause::Stale));
        let again = open(&connection, "").unwrap();
        assert_eq!(read(&again, LARGE - MIB, 100).unwrap(), new[..100]);
    }
}

#[test]
fn a_server_without_ranges_is_refused() {
    let server = Server::start();
    server.put("/a.h5", content(MIB));
    server.faults(|to| to.no_ranges = true);
    let connection = fetcher(&server.url("/a.h5"), &quick());
    let refused = open(&connection, "").unwrap_err();
    assert!(
        matches!(&refused, Error::Usage(text) if text.contains("no ranges")),
        "{refused:?}"
    );
}

/// An unreachable server counts as a wrong name, which is reported at once.
#[test]
fn an_unreachable_server_is_reported_at_once() {
    let port = Server::start().port();
    let began = Instant::now();
    for source in [
        &format!("http://127.0.0.1:{port}/a.h5")[..],
        "http://no-such-host.invalid/a.h5",
    ] {
        let connection = fetcher(source, &quick());
        assert_eq!(
            cause(open(&connection, "")),
            Some(Cause::Unavailable),
            "{source}"
        );
    }
    assert!(began.elapsed() < quick().deadline());
}

fn keys() -> Keys {
    Keys {
        id: "AKIDEXAMPLE".to_owned(),
        secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        token: "a/session+token==".to_owned(),
        region: "eu-west-1".to_owned(),
    }
}

/// Returns the settings of a source whose requests are signed with `keys`.
fn signing(server: &Server, directory: &Path, keys: &Keys) -> RemoteSettings {
    let file = directory.join("credentials");
    let text = format!(
        "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\naws_session_token = {}\n",
        keys.id, keys.secret, keys.token
    );
    std::fs::write(&file, text).unwrap();
    let Ok(Location::Url(endpoint)) = Location::parse(server.url("").into()) else {
        panic!("no URL");
    };
    RemoteSettings {
        endpoint: Some(endpoint),
        region: Some(keys.region.clone()),
        anonymous: false,
        credentials: Some(file),
        ..quick()
    }
}

#[test]
fn requests_to_s3_are_signed() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let bytes = content(MIB);
    server.put("/bucket/d/a b+c=ü.h5", bytes.clone());
    server.put("/bucket/d/b.h5", bytes.clone());
    server.faults(|to| to.keys = Some(keys()));
    let settings = signing(&server, directory.path(), &keys());
    let connection = fetcher("s3://bucket/d/a b+c=ü.h5", &settings);
    let object = open(&connection, "").unwrap();
    assert_eq!(read(&object, 0, MIB).unwrap(), bytes);
    // Another object, and a listing.
    assert_eq!(
        read(&open(&connection, "b.h5").unwrap(), 0, MIB).unwrap(),
        bytes
    );
    let (names, next) = connection.list(b"", b"", &|| true).unwrap();
    let names: Vec<_> = names.iter().map(|name| &name.name[..]).collect();
    assert_eq!(names, ["a b+c=ü.h5".as_bytes(), b"b.h5"]);
    assert!(next.is_empty());
    // After a refusal, the credentials are looked up once more.
    server.faults(|to| to.refuse = 1);
    assert!(open(&connection, "b.h5").is_ok());
    server.faults(|to| to.refuse = 1000);
    assert_eq!(
        cause(open(&connection, "b.h5")),
        Some(Cause::System(libc::EACCES))
    );
    let wrong = Keys {
        secret: "wrong".to_owned(),
        ..keys()
    };
    server.faults(|to| to.refuse = 0);
    let settings = signing(&server, directory.path(), &wrong);
    let connection = fetcher("s3://bucket/d/b.h5", &settings);
    assert_eq!(
        cause(open(&connection, "")),
        Some(Cause::System(libc::EACCES))
    );
}

#[test]
fn expired_keys_are_renewed() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let bytes = content(MIB);
    server.put("/bucket/b.h5", bytes.clone());
    server.faults(|to| to.keys = Some(keys()));
    let settings = signing(&server, directory.path(), &keys());
    let connection = fetcher("s3://bucket/b.h5", &settings);
    let object = open(&connection, "").unwrap();
    let next = Keys {
        id: "AKIDNEXT".to_owned(),
        token: "another+token==".to_owned(),
        ..keys()
    };
    server.faults(|to| to.keys = Some(next.clone()));
    let refused = read(&object, MIB / 2, 10);
    assert_eq!(cause(refused), Some(Cause::System(libc::EACCES)));
    // Writes new credentials to the file.
    signing(&server, directory.path(), &next);
    assert_eq!(read(&object, MIB / 2, 10).unwrap(), bytes[MIB / 2..][..10]);
}

#[test]
fn a_listing_has_pages_and_bounds() {
    let server = Server::start();
    for n in 0..25 {
        server.put(&format!("/bucket/d/{n:02}.h5"), vec![1; n]);
    }
    server.put("/bucket/d/sub/deep.h5", vec![1]);
    server.faults(|to| to.page = 10);
    let Ok(Location::Url(endpoint)) = Location::parse(server.url("").into()) else {
        panic!("no URL");
    };
    let settings = RemoteSettings {
        endpoint: Some(endpoint),
        ..quick()
    };
    let connection = fetcher("s3://bucket/d/", &settings);
    let (mut names, mut after) = (Vec::new(), Vec::new());
    loop {
        let (page, next) = connection.list(b"", &after, &|| true).unwrap();
        names.extend(page);
        after = next;
        if after.is_empty() {
            break;
        }
    }
    assert_eq!(names.len(), 26);
    assert!(names[25].name == b"sub" && names[25].entry_type == ListedType::Prefix);
    assert!(matches!(&names[7].entry_type, ListedType::Object(state) if state.length == 7));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|one| one.path.contains("list-type=2")));
    server.faults(|to| to.endless_list = true);
    assert_eq!(
        cause(connection.list(b"", b"", &|| true)),
        Some(Cause::Unavailable)
    );
}

#[test]
fn a_redirect_is_followed_by_the_rules() {
    let (server, other) = (Server::start(), Server::start());
    let bytes = content(MIB);
    other.put("/a.h5", bytes.clone());
    let lead = |to: &str| {
        let to = to.to_owned();
        server.faults(move |faults| faults.redirect = Some(to));
    };
    lead(&other.url("{path}"));
    let source = server.url("/a.h5").replace("http://", "http://joe:secret@");
    let connection = fetcher(&source, &leading_to(&[&other]));
    let object = open(&connection, "").unwrap();
    assert_eq!(read(&object, 0, MIB).unwrap(), bytes);
    let basic = Some("Basic am9lOnNlY3JldA==");
    let (own, led) = (server.seen(), other.seen());
    assert!(!own.is_empty() && own.iter().all(|one| one.header("authorization") == basic));
    assert!(led.iter().all(|one| one.header("authorization").is_none()) && !led.is_empty());
    // The redirect is followed only once.
    assert_eq!(own.len(), 1);
    let circle = server.url("/a.h5");
    for refused in [
        &circle[..],
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://0.0.0.0/",
        "ftp://127.0.0.1/a.h5",
        "http://joe@127.0.0.1/a.h5",
    ] {
        lead(refused);
        let connection = fetcher(&server.url("/a.h5"), &quick());
        assert_eq!(
            cause(open(&connection, "")),
            Some(Cause::Unavailable),
            "{refused}"
        );
        let asked = server.seen().len();
        let most = if refused == circle {
            limits::REDIRECTS + 1
        } else {
            1
        };
        assert_eq!(asked, most, "{refused}");
    }
}

#[test]
fn cached_bytes_are_not_requested_again() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let bytes = content(3 * MIB + 5);
    server.put("/d/a.h5", bytes.clone());
    let settings = RemoteSettings {
        disk_cache: Some(directory.path().join("cache")),
        ..quick()
    };
    let source = format!("{}?token=secret", server.url("/d/a.h5"));
    let first = open(&fetcher(&source, &settings), "").unwrap();
    assert_eq!(read(&first, 0, bytes.len()).unwrap(), bytes);
    server.seen();
    let connection = fetcher(&source, &settings);
    let second = open(&connection, "").unwrap();
    assert_eq!(read(&second, 0, bytes.len()).unwrap(), bytes);
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "one revalidation: {seen:?}");
    assert_eq!((seen[0].status, seen[0].sent), (206, 1));
    // The bytes are counted after they are sent, so a reader may see the count too early.
    let counted = || connection.counters().unwrap().disk_bytes;
    eventually("all is counted", || counted() == bytes.len() as u64);
    // Pages with flipped bits are fetched again, even while the file is in use.
    for file in std::fs::read_dir(directory.path().join("cache/h5fs-1")).unwrap() {
        let path = file.unwrap().path();
        let mut content = std::fs::read(&path).unwrap();
        content
            .iter_mut()
            .step_by(5000)
            .for_each(|byte| *byte ^= 16);
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains("secret"));
        // The name for `h5fs cache list` is the URL without its query.
        let is_name = path.extension().is_some_and(|end| end == "name");
        assert_eq!(text.contains("127.0.0.1"), is_name, "{path:?}");
        std::fs::write(&path, &content).unwrap();
    }
    assert_eq!(read(&second, 0, bytes.len()).unwrap(), bytes);
    let third = open(&fetcher(&source, &settings), "").unwrap();
    assert_eq!(read(&third, 0, bytes.len()).unwrap(), bytes);
    // Another state has another key.
    let new = vec![9; 3 * MIB];
    server.put("/d/a.h5", new.clone());
    let fourth = open(&fetcher(&source, &settings), "").unwrap();
    assert_eq!(read(&fourth, 0, new.len()).unwrap(), new);
}

#[test]
fn a_partly_cached_range_uses_cache_and_server() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let bytes = content(9 * MIB + 5);
    server.put("/a.h5", bytes.clone());
    let settings = RemoteSettings {
        disk_cache: Some(directory.path().join("cache")),
        ..quick()
    };
    let source = server.url("/a.h5");
    let first = open(&fetcher(&source, &settings), "").unwrap();
    for (at, length) in [(MIB, 2 * MIB), (4 * MIB + 100, 50), (6 * MIB, 3 * MIB + 5)] {
        assert_eq!(read(&first, at, length).unwrap(), bytes[at..][..length]);
    }
    server.seen();
    let second = open(&fetcher(&source, &settings), "").unwrap();
    assert_eq!(read(&second, 0, bytes.len()).unwrap(), bytes);
    let seen = server.seen();
    let sent: usize = seen.iter().map(|one| one.sent).sum();
    // The server sends everything but the first 256 KiB, the bytes that were read, and the 256 KiB
    // around the small piece. One more byte shows the state.
    assert_eq!(sent, 4 * MIB - MIB / 2 + 1, "{seen:?}");
    // Reading continues after the cache is deleted: open files remain readable, and missing bytes
    // come from the server.
    std::fs::remove_dir_all(directory.path()).unwrap();
    assert_eq!(read(&second, 0, bytes.len()).unwrap(), bytes);
    let third = open(&fetcher(&source, &quick()), "").unwrap();
    assert_eq!(read(&third, 0, bytes.len()).unwrap(), bytes);
}

#[test]
fn a_cancelled_request_ends() {
    let server = Server::start();
    server.put("/a.h5", content(LARGE));
    let settings = RemoteSettings {
        connections: Some(1),
        timeout: Some(Duration::from_secs(120)),
        ..quick()
    };
    let connection = fetcher(&server.url("/a.h5"), &settings);
    let object = open(&connection, "").unwrap();
    server.faults(|to| to.hang = 1);
    let began = Instant::now();
    let gone = object.read_cancellable((4 * MIB) as u64, &mut [0; 100], &|| {
        began.elapsed() < Duration::from_millis(300)
    });
    assert_eq!(cause(gone), Some(Cause::Cancelled));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(
        read(&object, 6 * MIB, 10).unwrap(),
        content(LARGE)[6 * MIB..][..10]
    );
}

#[test]
fn informational_responses_are_skipped() {
    let server = Server::start();
    let bytes = content(MIB);
    server.put("/a.h5", bytes.clone());
    for hint in [
        "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 -\r\ncontent-length: 5\r\n\r\n",
    ] {
        server.faults(|to| {
            to.raw = Some(Raw {
                left: u32::MAX,
                of: "",
                bytes: hint.as_bytes().to_vec(),
                then: Then::Answer,
            });
        });
        let connection = fetcher(&server.url("/a.h5"), &quick());
        let object = open(&connection, "").unwrap_or_else(|error| panic!("{hint}: {error:?}"));
        assert_eq!(read(&object, 0, MIB).unwrap(), bytes, "{hint}");
    }
}

#[test]
fn redirects_may_be_relative_or_unencoded() {
    let server = Server::start();
    let bytes = content(MIB);
    server.put("/d/a b/\u{fc}.h5", bytes.clone());
    for place in [
        "/d/a b/\u{fc}.h5",
        "../d/x/../a b/%C3%BC.h5",
        "/d/./a%20b/\u{fc}.h5",
    ] {
        let raw = format!("HTTP/1.1 302 -\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
        server.faults(|to| {
            to.raw = Some(Raw {
                left: u32::MAX,
                of: "/e/run.h5",
                bytes: raw.into_bytes(),
                then: Then::Next,
            });
        });
        let connection = fetcher(&server.url("/e/run.h5"), &quick());
        let object = open(&connection, "").unwrap_or_else(|error| panic!("{place}: {error:?}"));
        assert_eq!(read(&object, 0, MIB).unwrap(), bytes, "{place}");
    }
}

/// The server reports the object's length, and refuses a range within this length.
#[test]
fn a_wrongly_refused_range_is_retried_after_a_pause() {
    let server = Server::start();
    let bytes = content(MIB);
    server.put_tagged("/a.h5", bytes.clone(), "\"1\"");
    let raw = "HTTP/1.1 416 -\r\netag: \"1\"\r\ncontent-range: bytes */1048576\r\n\
               content-length: 0\r\n\r\n";
    let refuse = || {
        server.faults(|to| {
            to.raw = Some(Raw {
                left: 3,
                of: "",
                bytes: raw.as_bytes().to_vec(),
                then: Then::Next,
            });
        });
    };
    refuse();
    let connection = fetcher(&server.url("/a.h5"), &quick());
    let object = open(&connection, "").unwrap();
    assert_eq!(connection.counters().unwrap().retries, 3);
    refuse();
    assert_eq!(read(&object, MIB / 2, 10).unwrap(), bytes[MIB / 2..][..10]);
    assert_eq!(connection.counters().unwrap().retries, 6);
}

#[test]
fn an_encoded_response_is_rejected_at_once() {
    let server = Server::start();
    server.put("/a.h5", content(MIB));
    let raw = "HTTP/1.1 206 -\r\netag: \"1\"\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\
               content-range: bytes 0-262143/1048576\r\n\r\ngzip";
    server.faults(|to| {
        to.raw = Some(Raw {
            left: u32::MAX,
            of: "",
            bytes: raw.as_bytes().to_vec(),
            then: Then::Next,
        });
    });
    let connection = fetcher(&server.url("/a.h5"), &quick());
    assert_eq!(cause(open(&connection, "")), Some(Cause::Unavailable));
    assert_eq!(server.seen().len(), 1);
}

/// If the destination of a redirect fails, the original server is asked for a new one.
#[test]
fn a_failed_redirect_is_requested_again_from_the_origin() {
    let no_range = b"HTTP/1.1 200 -\r\ncontent-length: 2\r\n\r\nno".to_vec();
    let cut = b"HTTP/1.1 206 -\r\ncontent-length: 262144\r\n\r\nno".to_vec();
    let raw = |bytes: Vec<u8>, then| {
        move |to: &mut objects::server::Faults| {
            to.raw = Some(Raw {
                left: u32::MAX,
                of: "",
                bytes,
                then,
            });
        }
    };
    type ServerFault = Box<dyn FnOnce(&mut objects::server::Faults)>;
    let ways: [(&str, ServerFault); 8] = [
        ("404", Box::new(|to| to.status = Some(404))),
        ("403", Box::new(|to| to.status = Some(403))),
        ("410", Box::new(|to| to.status = Some(410))),
        ("500", Box::new(|to| to.status = Some(500))),
        ("hangs", Box::new(|to| to.hang = u32::MAX)),
        (
            "circle",
            Box::new(|to| to.redirect = Some("{path}".to_owned())),
        ),
        ("no ranges", Box::new(raw(no_range, Then::Next))),
        ("cuts", Box::new(raw(cut, Then::End))),
    ];
    let bytes = content(4 * MIB);
    for (name, dies) in ways {
        let (server, old, new) = (Server::start(), Server::start(), Server::start());
        for place in [&old, &new] {
            place.put_tagged("/a.h5", bytes.clone(), "\"1\"");
        }
        let lead = |to: &Server| {
            let to = to.url("/a.h5");
            server.faults(|faults| faults.redirect = Some(to));
        };
        lead(&old);
        let connection = fetcher(&server.url("/a.h5"), &leading_to(&[&old, &new]));
        let object = open(&connection, "").unwrap();
        assert_eq!(server.seen().len(), 1);
        lead(&new);
        old.faults(dies);
        assert_eq!(
            read(&object, 3 * MIB, 10).unwrap(),
            bytes[3 * MIB..][..10],
            "{name}"
        );
        assert_eq!(
            read(&object, MIB, 10).unwrap(),
            bytes[MIB..][..10],
            "{name}"
        );
        assert_eq!(
            server.seen().len(),
            1,
            "{name}: the new way is asked for once"
        );
        drop(old);
    }
    // The old destination has stopped.
    let (server, old, new) = (Server::start(), Server::start(), Server::start());
    for place in [&old, &new] {
        place.put_tagged("/a.h5", bytes.clone(), "\"1\"");
    }
    let to = old.url("/a.h5");
    server.faults(|faults| faults.redirect = Some(to));
    let connection = fetcher(&server.url("/a.h5"), &leading_to(&[&old, &new]));
    let object = open(&connection, "").unwrap();
    let to = new.url("/a.h5");
    server.faults(|faults| faults.redirect = Some(to));
    drop(old);
    assert_eq!(read(&object, MIB, 10).unwrap(), bytes[MIB..][..10]);
}

//! Tests of remote objects: ASDF files that a fetcher thread serves from memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use h5fs_reader::error::Error;
use h5fs_reader::source::remote::fake::{
    FakeConnection, FakeFetcher, LONG, connect_fake_fetcher, fetcher_with_checks, normal_fetcher,
};
use h5fs_reader::source::remote::message::{FailureKind, Request};
use nix::errno::Errno;

use super::{content, errno_of, names};
use crate::{Filesystem, Options, Requests, UnreadSource};

/// Returns a file with one ndarray `data` that starts with the bytes `first`, followed by zeros.
fn file(first: &[u8], length: usize) -> Vec<u8> {
    let mut data = first.to_vec();
    data.resize(length, 0);
    let tree = format!(
        "#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- \
         !core/asdf-1.1.0\ndata: !core/ndarray-1.0.0 {{source: 0, datatype: uint8, \
         byteorder: little, shape: [{length}]}}\n...\n"
    );
    let size = (length as u64).to_be_bytes();
    let header = [&[0_u8; 8][..], &size, &size, &size, &[0; 16]].concat();
    [tree.as_bytes(), b"\xd3BLK\0\x30", &header, &data].concat()
}

/// Returns a file whose ndarray `data` is the first block of the file `other`.
fn leading_to(other: &str) -> Vec<u8> {
    let tree = format!(
        "#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- \
         !core/asdf-1.1.0\ndata: !core/ndarray-1.0.0 {{source: {other}, datatype: uint8, \
         byteorder: little, shape: [4]}}\n...\n"
    );
    tree.into_bytes()
}

fn mount_object(pair: &FakeConnection) -> Result<Filesystem, Error> {
    Filesystem::from_source(
        UnreadSource::open_remote(&pair.connection)?,
        &Options::default(),
    )
}

fn opened_names(pair: &FakeConnection) -> Vec<String> {
    let open = pair.fetcher.open.lock().unwrap();
    let names = open
        .iter()
        .map(|(name, _)| String::from_utf8_lossy(name).into_owned());
    names.collect()
}

#[test]
fn an_object_is_a_tree_like_any_other() {
    let pair = normal_fetcher();
    pair.put_bytes("", &file(b"elements", 1000), "\"1\"");
    let fs = mount_object(&pair).unwrap();
    assert_eq!(names(&fs, "/"), ["data"]);
    assert_eq!(&content(&fs, "data").unwrap()[..9], b"elements\0");
    let stat = fs.resolve(b"data").unwrap().attributes;
    assert_eq!((stat.size, stat.permissions), (1000, 0o444));
    assert_eq!(
        (stat.uid, stat.gid, stat.modified),
        (1000, 1000, (1_700_000_000, 0))
    );
    assert_eq!(fs.resolve(b"/").unwrap().attributes.permissions, 0o555);
    assert_eq!(fs.origin().path.to_str(), Some("s3://bucket/run.h5"));
    let status = String::from_utf8(content(&fs, ".h5fs/status").unwrap()).unwrap();
    assert!(
        status.contains("\nsource: s3://bucket/run.h5\n"),
        "{status}"
    );
    assert!(status.contains("\nnetwork requests: "), "{status}");
    assert_eq!(pair.fetched().len(), 1, "it is small");
}

/// Handles of the old state return `ESTALE` or bytes of that state; later opens see the new state.
#[test]
fn an_object_that_is_replaced_is_not_mixed_with_the_next() {
    let pair = fetcher_with_checks();
    pair.put_bytes("", &file(b"old", 1 << 20), "\"1\"");
    let fs = mount_object(&pair).unwrap();
    let handle = fs
        .open_file(fs.resolve(b"data").unwrap().ino)
        .unwrap()
        .handle;
    assert_eq!(&*fs.read(handle, 0, 3).unwrap(), b"old");
    pair.put_bytes("", &file(b"new", 1 << 20), "\"2\"");
    assert_eq!(
        &*fs.read(handle, 0, 3).unwrap(),
        b"old",
        "nobody has looked"
    );
    let end = Instant::now() + LONG;
    while fs.read(handle, 0, 3).is_ok_and(|bytes| &*bytes == b"old") {
        assert!(Instant::now() < end);
        sleep(Duration::from_millis(5));
    }
    assert_eq!(errno_of(fs.read(handle, 0, 3)), Errno::ESTALE);
    assert_eq!(&content(&fs, "data").unwrap()[..3], b"new");
    assert_eq!(errno_of(fs.read(handle, 900_000, 3)), Errno::ESTALE);
}

#[test]
fn a_deleted_object_is_stale() {
    let gone = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::clone(&gone);
    let pair = connect_fake_fetcher(
        64 << 20,
        LONG,
        Box::new(move |fetcher, request| match request {
            Request::Fetch { id, .. } | Request::Open { id, .. }
                if is_gone.load(Ordering::Relaxed) =>
            {
                fetcher.fail(*id, FailureKind::NotFound);
            }
            _ => fetcher.serve(request),
        }),
    );
    // A smaller object would have been fetched completely.
    pair.put_bytes("", &file(b"old", 12 << 20), "\"1\"");
    let fs = mount_object(&pair).unwrap();
    let handle = fs
        .open_file(fs.resolve(b"data").unwrap().ino)
        .unwrap()
        .handle;
    gone.store(true, Ordering::Relaxed);
    assert_eq!(errno_of(fs.read(handle, 11 << 20, 3)), Errno::ESTALE);
    assert_eq!(errno_of(fs.read(handle, 0, 3)), Errno::ESTALE);
    assert_eq!(errno_of(fs.resolve(b"data")), Errno::ESTALE);
}

#[test]
fn an_unreadable_object_has_its_errno() {
    let failures = [
        (FailureKind::NotFound, Errno::ENOENT),
        (FailureKind::Denied, Errno::EACCES),
        (FailureKind::TimedOut, Errno::EIO),
        (FailureKind::NoRanges, Errno::EINVAL),
    ];
    for (failure, errno) in failures {
        let behaviour = move |fetcher: &FakeFetcher, request: &Request| match request {
            Request::Open { id, .. } => fetcher.fail(*id, failure),
            _ => fetcher.serve(request),
        };
        let pair = connect_fake_fetcher(64 << 20, LONG, Box::new(behaviour));
        assert_eq!(errno_of(mount_object(&pair).map(drop)), errno);
    }
}

/// Checks that only names below the prefix are requested.
#[test]
fn only_objects_under_the_prefix_are_read() {
    let cases = [
        ("sub/other.asdf", Some("sub/other.asdf")),
        ("./sub/../other.asdf", Some("other.asdf")),
        ("../other.asdf", None),
        ("sub/../../other.asdf", None),
        ("https://other.example/other.asdf", None),
    ];
    for (uri, name) in cases {
        let pair = normal_fetcher();
        pair.put_bytes("", &leading_to(uri), "\"1\"");
        for other in ["sub/other.asdf", "other.asdf"] {
            pair.put_bytes(other, &file(b"data", 4), "\"o\"");
        }
        let fs = mount_object(&pair).unwrap();
        let read = content(&fs, "data");
        match name {
            Some(name) => {
                assert_eq!(read.unwrap(), b"data");
                assert_eq!(opened_names(&pair), ["", name]);
            }
            None => {
                assert_eq!(errno_of(read), Errno::EIO, "{uri}");
                assert_eq!(opened_names(&pair), [""]);
            }
        }
    }
}

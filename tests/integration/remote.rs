//! Mounted objects, over HTTP, with the server of `tests/objects`.

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::{LONG, Mount, SOON, eventually, fixture, h5fs, run, script, tree};
use crate::inspect::on_a_terminal;
use crate::objects::server::Server;

/// Serves a fixture at `/data/NAME`. Returns its URL.
fn served(server: &Server, name: &str) -> String {
    let bytes = fs::read(fixture(name)).expect("the fixture");
    server.put(&format!("/data/{name}"), bytes);
    server.url(&format!("/data/{name}"))
}

/// Returns the number of requests that transferred bytes. Other requests only check the state of an
/// object.
fn brought(server: &Server) -> usize {
    let seen = server.seen();
    seen.iter().filter(|seen| seen.sent > 1).count()
}

/// Returns the content of a file, or the error.
fn content(path: &Path) -> Result<Vec<u8>, ErrorKind> {
    fs::read(path).map_err(|error| error.kind())
}

#[test]
fn an_object_is_the_tree_that_the_file_is() {
    let server = Server::start();
    for name in ["tiny.latest.h5", "groups.latest.h5", "layouts.latest.h5"] {
        let url = served(&server, name);
        let (near, far) = (Mount::new(&fixture(name)), Mount::new(Path::new(&url)));
        let below = |mount: &Mount| -> Vec<_> {
            let paths = tree(&mount.path);
            let paths = paths.iter().map(|path| path.strip_prefix(&mount.path));
            paths
                .map(|path| path.expect("beneath").to_path_buf())
                .collect()
        };
        assert_eq!(below(&near), below(&far), "{name}");
        for path in below(&near) {
            let (near, far) = (near.path.join(&path), far.path.join(&path));
            let (one, other) = (near.symlink_metadata(), far.symlink_metadata());
            let (one, other) = (one.expect("stat"), other.expect("stat"));
            assert_eq!(one.len(), other.len(), "{}", path.display());
            if one.is_file() {
                assert!(content(&near) == content(&far), "{}", path.display());
            } else {
                assert_eq!(fs::read_link(near).ok(), fs::read_link(far).ok());
            }
        }
    }
}

#[test]
fn a_small_object_takes_one_request() {
    let server = Server::start();
    let url = served(&server, "tiny.latest.h5");
    let mount = Mount::new(Path::new(&url));
    for path in tree(&mount.path) {
        let _ = content(&path);
    }
    assert_eq!(brought(&server), 1, "the first bytes come as it is opened");
    assert!(mount.status("network requests") >= 1);
    let line = crate::harness::mount_line(&mount.path);
    assert!(line.contains(&url), "{line}");
}

#[test]
fn commands_read_an_object_without_a_mount() {
    let server = Server::start();
    let url = served(&server, "tiny.latest.h5");
    let near = fixture("tiny.latest.h5");
    for command in [&["ls", "-lR"][..], &["ndl"], &["check", "--data"]] {
        let of = |source: &Path| run(h5fs(command).arg(source), LONG).success().text();
        let (near, far) = (of(&near), of(Path::new(&url)));
        let named = |text: &str, name: &str| text.replace(name, "SOURCE");
        let near = named(&near, &fixture("tiny.latest.h5").display().to_string());
        let owner = |text: &str| -> Vec<String> {
            // The owner and the time differ between the file and the object.
            let words = text.lines().map(|line| line.split_whitespace().last());
            words
                .map(|word| word.unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(owner(&near), owner(&named(&far, &url)), "{command:?}");
    }
}

#[test]
fn an_object_that_cannot_be_had_is_refused_in_one_line() {
    let server = Server::start();
    let absent = server.url("/data/none.h5");
    let (mount, finished) = Mount::attempt(Path::new(&absent), &[]);
    assert!(!finished.status.success() && !mount.is_up());
    assert!(
        finished.one_line().contains("/data/none.h5"),
        "{finished:?}"
    );
    server.put("/data/text", b"neither of them".to_vec());
    let (_mount, finished) = Mount::attempt(Path::new(&server.url("/data/text")), &[]);
    assert!(
        finished
            .one_line()
            .contains("neither an HDF5 nor an ASDF file"),
        "{finished:?}"
    );
}

/// Returns an ASDF file with the array `data` of `length` equal bytes.
pub(crate) fn array_file(byte: u8, length: usize) -> Vec<u8> {
    let tree = format!(
        "#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- \
         !core/asdf-1.1.0\ndata: !core/ndarray-1.0.0 {{source: 0, datatype: uint8, \
         byteorder: little, shape: [{length}]}}\n...\n"
    );
    let size = (length as u64).to_be_bytes();
    let header = [&[0_u8; 8][..], &size, &size, &size, &[0; 16]].concat();
    [
        tree.as_bytes(),
        b"\xd3BLK\0\x30",
        &header,
        &vec![byte; length],
    ]
    .concat()
}

/// A read returns old bytes or `ESTALE`, and later new bytes, but never a mixture.
#[test]
fn an_object_that_is_replaced_is_not_mixed() {
    const LENGTH: usize = 8 << 20;
    let server = Server::start();
    server.put("/data/run.asdf", array_file(b'o', LENGTH));
    let mount = Mount::with(Path::new(&server.url("/data/run.asdf")), &["--direct-io"]);
    let path = mount.at("data");
    let mut opened = fs::File::open(&path).expect("the old one");
    let mut first = [0; 4];
    opened.read_exact(&mut first).expect("read");
    assert_eq!(&first, b"oooo");
    server.put("/data/run.asdf", array_file(b'n', LENGTH));
    std::thread::scope(|scope| {
        for reader in 0..64_u64 {
            let path = &path;
            scope.spawn(move || {
                let Ok(mut file) = fs::File::open(path) else {
                    return;
                };
                let mut bytes = vec![0; 100_000];
                let seek = file.seek(SeekFrom::Start(reader * 100_000 % (LENGTH as u64 / 2)));
                if seek.and_then(|_| file.read_exact(&mut bytes)).is_ok() {
                    let one = bytes[0];
                    assert!(b"on".contains(&one) && bytes.iter().all(|byte| *byte == one));
                }
            });
        }
    });
    eventually(SOON, "the new state", || {
        fs::read(&path).is_ok_and(|bytes| bytes.len() == LENGTH && bytes.iter().all(|b| *b == b'n'))
    });
    opened
        .seek(SeekFrom::Start(LENGTH as u64 - 10))
        .expect("seek");
    let stale = opened
        .read(&mut first)
        .expect_err("it is of the state before");
    assert_eq!(stale.raw_os_error(), Some(nix::libc::ESTALE));
}

/// Returns the number of requests of a task on a new mount, without the opening, and the number of
/// their bytes.
pub(crate) fn taken(server: &Server, name: &str, task: impl FnOnce(&Mount)) -> (usize, usize) {
    let mount = Mount::new(Path::new(&server.url(&format!("/data/{name}"))));
    server.seen();
    task(&mount);
    let seen = server.seen();
    (seen.len(), seen.iter().map(|seen| seen.sent).sum())
}

/// Serves the files of `remote.py` on a server with a latency of 30 ms.
fn far_away(directory: &Path) -> Server {
    run(script("remote.py").arg(directory), LONG).success();
    let server = Server::start();
    for name in ["default.h5", "paged.h5"] {
        let bytes = fs::read(directory.join(name)).expect("a file");
        server.put(&format!("/data/{name}"), bytes);
    }
    server.faults(|faults| faults.latency = Duration::from_millis(30));
    server
}

#[test]
fn few_requests_bring_what_is_asked_for() {
    const MIB: usize = 1 << 20;
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = far_away(directory.path());
    let walk = |mount: &Mount| assert!(tree(&mount.path).len() >= 200 * 6);
    let (requests, _) = taken(&server, "default.h5", walk);
    assert!(requests <= 300, "the list took {requests}");
    let (requests, _) = taken(&server, "paged.h5", walk);
    assert!(
        requests <= 3 + 1,
        "the list of a paged file took {requests}"
    );
    // The first page of a paged file is transferred in any case.
    for (name, more) in [("default.h5", 0), ("paged.h5", 4 * MIB)] {
        let small = |mount: &Mount| {
            let bytes = fs::read(mount.at("group150/d3")).expect("a dataset");
            assert_eq!(bytes.len(), 4 * 7424 * 4);
        };
        let (requests, bytes) = taken(&server, name, small);
        assert!(
            requests <= 8 && bytes <= 2 * MIB + more,
            "{name}: {requests}, {bytes} bytes"
        );
    }
    let big = |mount: &Mount| {
        let bytes = fs::read(mount.at("big")).expect("a dataset");
        assert_eq!(bytes.len(), 64 * MIB);
    };
    let (requests, bytes) = taken(&server, "default.h5", big);
    assert!(
        requests <= 45 && bytes <= 64 * MIB / 20 * 21,
        "{requests}, {bytes} bytes"
    );
}

/// Counts the requests for the mount, the listing and every dataset.
#[test]
fn a_small_object_of_many_datasets_takes_three_requests() {
    let directory = tempfile::tempdir().expect("temporary directory");
    run(script("remote.py").arg(directory.path()), LONG).success();
    let server = Server::start();
    let bytes = fs::read(directory.path().join("small.h5")).expect("the file");
    assert!(bytes.len() > 3_980_000, "it has 3.8 MiB: {}", bytes.len());
    server.put("/data/small.h5", bytes);
    server.faults(|faults| faults.latency = Duration::from_millis(30));
    let mount = Mount::new(Path::new(&server.url("/data/small.h5")));
    let written = directory.path().join("small");
    let names = |path: &Path| fs::read_dir(path).expect("a directory").count();
    assert_eq!((names(&mount.path), names(&written)), (50, 50));
    for path in tree(&written) {
        let name = path.file_name().expect("a name");
        let seen = fs::read(mount.path.join(name)).expect("a dataset");
        assert!(seen == fs::read(&path).expect("its bytes"), "{name:?}");
    }
    let seen = server.seen();
    assert!(seen.len() <= 3, "{} requests: {seen:?}", seen.len());
}

/// A request that the server does not answer fails within the time limit. Known names stay
/// available.
#[test]
fn a_server_that_hangs_is_an_error_within_the_timeout() {
    let server = Server::start();
    let url = served(&server, "layouts.latest.h5");
    let mount = Mount::with(Path::new(&url), &["-o", "timeout=2"]);
    let known = tree(&mount.path).len();
    assert!(known > 0);
    server.faults(|faults| faults.status = Some(503));
    let begun = Instant::now();
    let _ = run(
        h5fs(["cat"])
            .args([&url, "nothing"])
            .args(["--timeout", "2"]),
        SOON,
    );
    assert!(begun.elapsed() < Duration::from_secs(40));
    assert_eq!(tree(&mount.path).len(), known);
}

/// The kernel reads ahead, and repeats a failed request. The repetition must not wait again.
#[test]
fn a_reader_waits_no_longer_than_the_timeout() {
    const LENGTH: usize = 8 << 20;
    let server = Server::start();
    server.put("/data/run.asdf", array_file(b'o', LENGTH));
    let url = server.url("/data/run.asdf");
    let mount = Mount::with(Path::new(&url), &["-o", "timeout=12"]);
    let mut file = fs::File::open(mount.at("data")).expect("the array");
    file.seek(SeekFrom::Start(LENGTH as u64 / 2)).expect("seek");
    server.faults(|faults| faults.status = Some(503));
    let begun = Instant::now();
    let failed = file.read(&mut [0; 10]).expect_err("no bytes");
    assert_eq!(failed.raw_os_error(), Some(nix::libc::EIO));
    assert!(begun.elapsed() < Duration::from_secs(2 * 12), "{begun:?}");
}

/// The status shows when a server stops answering, and when it answers again.
#[test]
fn a_server_that_does_not_answer_shows_in_the_status() {
    let server = Server::start();
    // Too large to be transferred completely with the first bytes.
    const LENGTH: usize = 12 << 20;
    for name in ["/data/a.asdf", "/data/b.asdf"] {
        server.put(name, array_file(b'o', LENGTH));
    }
    let endpoint = server.url("");
    let options = ["--timeout", "1", "--anonymous", "--endpoint", &endpoint];
    let mounts = ["s3://data/a.asdf", "s3://data/"].map(Path::new);
    let mounts = mounts.map(|source| Mount::with(source, &options));
    let state = |mount: &Mount| {
        let told = run(h5fs(["status"]).arg(&mount.path), SOON);
        let text = told.text();
        let state = text.lines().find_map(|line| line.strip_prefix("state: "));
        (told.status.code(), state.expect("a state").to_owned())
    };
    let read = |mount: &Mount, path: &str, at: u64| {
        let mut file = fs::File::open(mount.at(path))?;
        file.seek(SeekFrom::Start(at))?;
        file.read(&mut [0; 10])
    };
    for (mount, path) in mounts.iter().zip(["data", "b.asdf/data"]) {
        read(mount, path, 0).expect("bytes");
        assert_eq!(state(mount), (Some(0), "serving".to_owned()));
        server.faults(|faults| faults.status = Some(503));
        read(mount, path, LENGTH as u64 / 2).expect_err("no bytes");
        let (code, text) = state(mount);
        assert_eq!(code, Some(1));
        assert!(
            text.starts_with("stale: the server does not answer (since 20"),
            "{text}"
        );
        server.faults(|faults| faults.status = None);
        eventually(SOON, "it serves again", || {
            let _ = read(mount, path, LENGTH as u64 / 2);
            state(mount).0 == Some(0)
        });
    }
}

/// The progress is on one line, which is cleared at the end. Output to a file contains no progress.
#[test]
fn a_terminal_shows_how_far_a_long_command_has_come() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let server = far_away(directory.path());
    let url = server.url("/data/default.h5");
    for command in ["ls -R", "check"] {
        let shown = on_a_terminal(command, Path::new(&url), &[]);
        let line = shown.find(" objects, ").expect("the line");
        let start = shown[..line].rfind('\r').expect("it begins anew");
        let number = &shown[start + 1..line];
        assert!(
            number.parse::<u64>().is_ok_and(|objects| objects > 0),
            "{number}"
        );
        assert!(shown[line..].contains("\r\x1b[K"), "{command}: {shown:?}");
        let (name, flag) = command.split_once(' ').unwrap_or((command, "--"));
        let piped = run(h5fs([name, flag]).arg(&url), LONG).success();
        assert_eq!(piped.stderr, "", "{command}");
        assert!(!piped.text().contains(['\r', '\x1b']), "{command}");
    }
}

/// The server sends neither an entity tag nor a date. The mount warns about this, and a file that
/// is opened after a change has the new content.
#[test]
fn a_server_that_tells_no_states_apart_is_warned_of() {
    const LENGTH: usize = 2 << 20;
    let server = Server::start();
    server.put_dated("/data/run.asdf", array_file(b'o', LENGTH), "\"\"", "");
    let url = server.url("/data/run.asdf");
    let (mount, finished) = Mount::attempt(Path::new(&url), &["--direct-io"]);
    assert!(finished.status.success(), "{finished:?}");
    assert!(
        finished.stderr.lines().count() == 1
            && finished.stderr.contains("neither an entity tag nor a date"),
        "{finished:?}"
    );
    let path = mount.at("data");
    let first = fs::read(&path).expect("the array");
    assert!(first == vec![b'o'; LENGTH]);
    server.put_dated("/data/run.asdf", array_file(b'n', LENGTH), "\"\"", "");
    eventually(SOON, "the new state", || {
        let seen = fs::read(&path).unwrap_or_default();
        let is_one = seen.iter().all(|byte| Some(byte) == seen.first());
        assert!(is_one, "two states in one file");
        seen == vec![b'n'; LENGTH]
    });
}

//! Mounted prefixes of an object store, with the server of `tests/objects`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::harness::{LONG, Mount, SOON, eventually, fixture, h5fs, run, script, tree};
use crate::objects::server::{Raw, Server, Then};

/// Mounts `s3://data/PREFIX`.
fn mounted(server: &Server, prefix: &str) -> Mount {
    let endpoint = server.url("");
    let options = ["--endpoint", &endpoint, "--anonymous"];
    Mount::with(Path::new(&format!("s3://data/{prefix}")), &options)
}

/// Returns the numbers of listings and of other requests since the last call.
fn requests(server: &Server) -> (usize, usize) {
    let seen = server.seen();
    let is_list = |path: &str| path.contains("list-type=2");
    let lists = seen.iter().filter(|seen| is_list(&seen.path)).count();
    (lists, seen.len() - lists)
}

/// Programs do not expect these calls to fail with `EINTR`, and on other filesystems they do not.
#[test]
fn a_signal_with_a_handler_interrupts_no_call() {
    let server = Server::start();
    let tiny = fs::read(fixture("tiny.latest.h5")).expect("a file");
    for name in ["a.h5", "b.h5"] {
        server.put(&format!("/data/run/{name}"), tiny.clone());
    }
    let mount = mounted(&server, "run/");
    server.faults(|to| to.latency = Duration::from_millis(1500));
    run(script("signalled.py").arg(&mount.path), LONG).success();
}

/// Uploads all files of a directory to `/data/PREFIX`.
pub(crate) fn put_all(server: &Server, directory: &Path, prefix: &str) {
    for path in tree(directory).iter().filter(|path| path.is_file()) {
        let name = path.strip_prefix(directory).expect("beneath");
        let key = format!("/data/{prefix}{}", name.display());
        server.put(&key, fs::read(path).expect("a file"));
    }
}

pub(crate) fn names(path: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(path).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let names = entries.map(|entry| name(entry).to_string_lossy().into_owned());
    names.collect()
}

pub(crate) fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    let error = result.expect_err("an error");
    Errno::from_raw(error.raw_os_error().expect("an errno"))
}

/// Checks that each name in a tree is listed with the type that `stat` returns, or without a type.
fn has_listed_types(top: &Path) {
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        let open = fs::File::open(&directory).expect("a directory");
        for entry in rustix::fs::Dir::new(open).expect("its names") {
            let entry = entry.expect("a name");
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b".." | b".h5fs") {
                continue;
            }
            let path = directory.join(std::ffi::OsStr::from_bytes(name));
            let told = fs::symlink_metadata(&path).expect("stat");
            let listed = entry.file_type();
            let found = rustix::fs::FileType::from_raw_mode(told.mode());
            assert!(
                listed == found || listed == rustix::fs::FileType::Unknown,
                "{}: listed as {listed:?}, found {found:?}",
                path.display()
            );
            if told.is_dir() {
                directories.push(path);
            }
        }
    }
}

/// Returns the paths in a mount and the content of each file, without views.
pub(crate) fn content(mount: &Mount) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    has_listed_types(&mount.path);
    let all = tree(&mount.path).into_iter();
    let all = all.filter(|path| !path.components().any(|part| part.as_os_str() == ".h5fs"));
    let read = |path: PathBuf| {
        let is_file = path.symlink_metadata().expect("stat").is_file();
        let bytes = is_file.then(|| fs::read(&path).expect("a file"));
        let name = path.strip_prefix(&mount.path).expect("beneath");
        (name.to_path_buf(), bytes)
    };
    all.map(read).collect()
}

/// Creates a directory tree with data files and other files. Some names need percent-encoding.
pub(crate) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path();
    fs::create_dir_all(top.join("2026/a b+c")).expect("directories");
    for (name, copy) in [
        ("sequences.latest.h5", "run 1.h5"),
        ("tiny.latest.h5", "2026/tiny.h5"),
        ("layouts.latest.h5", "2026/a b+c/ü%2F&.dat"),
    ] {
        fs::copy(fixture(name), top.join(copy)).expect("a copy");
    }
    fs::write(top.join("notes.txt"), "some words\n").expect("a file");
    fs::write(top.join("2026/empty"), "").expect("a file");
    fs::write(top.join("2026/large.bin"), vec![7; 3_000_000]).expect("a file");
    directory
}

#[test]
fn a_prefix_is_the_tree_that_the_directory_is() {
    let (server, directory) = (Server::start(), directory());
    put_all(&server, directory.path(), "archive/");
    let (near, far) = (Mount::new(directory.path()), mounted(&server, "archive/"));
    // The name does not show that this is a data file. A lookup determines it, and later listings
    // show it.
    assert!(far.at("2026/a b+c/ü%2F&.dat").is_dir());
    let (near, far) = (content(&near), content(&far));
    for (one, other) in near.iter().zip(&far) {
        assert_eq!(one.0, other.0);
        assert!(one.1 == other.1, "{}", one.0.display());
    }
    assert_eq!(near.len(), far.len());
    assert!(near.len() > 30, "{}", near.len());
}

#[test]
fn a_listing_takes_its_pages_and_nothing_else() {
    const COUNT: usize = 10_000;
    let server = Server::start();
    let bytes = fs::read(fixture("tiny.latest.h5")).expect("the fixture");
    for number in 0..COUNT {
        server.put(&format!("/data/runs/run_{number:05}.h5"), bytes.clone());
    }
    let mount = mounted(&server, "runs/");
    let listed = names(&mount.path);
    assert_eq!(listed.len(), COUNT);
    assert_eq!(requests(&server), (COUNT / 1000, 0));
    // The attributes of each file are requested, and the directory is listed again.
    let all = run(
        std::process::Command::new("ls").arg("-l").arg(&mount.path),
        LONG,
    );
    assert_eq!(all.success().text().lines().count(), COUNT + 1);
    assert_eq!(requests(&server), (0, 0));
    let one = mount.at("run_04711.h5");
    assert!(one.join("grid").exists());
    assert_eq!(requests(&server), (0, 1));
    assert_eq!(errno(fs::metadata(mount.at("run_x.h5"))), Errno::ENOENT);
    assert_eq!(requests(&server), (0, 0));
}

/// For a directory with many pages of names, only the requested names are listed.
#[test]
fn a_name_of_a_large_directory_is_asked_for_alone() {
    let server = Server::start();
    server.faults(|faults| faults.page = 50);
    for number in 0..1000 {
        server.put(&format!("/data/runs/{number:04}.txt"), vec![b'x'; number]);
    }
    server.put("/data/runs/sub/0001.txt", b"deep".to_vec());
    let mount = mounted(&server, "runs/");
    assert_eq!(requests(&server), (1, 0));
    let size = |name: &str| fs::metadata(mount.at(name)).map(|there| there.len());
    assert_eq!(size("0777.txt").ok(), Some(777));
    assert_eq!(
        requests(&server),
        (1, 0),
        "its name tells that it is no data file"
    );
    assert_eq!(errno(size("0777")), Errno::ENOENT);
    assert_eq!(errno(size("none")), Errno::ENOENT);
    assert_eq!(requests(&server), (2, 0));
    assert_eq!(fs::read(mount.at("sub/0001.txt")).expect("a file"), b"deep");
    assert_eq!(requests(&server), (2, 1), "`sub`, and what is in it");
}

/// Starts a server with this number of small data files below `runs/`.
fn runs(count: usize) -> Server {
    let server = Server::start();
    let bytes = fs::read(fixture("tiny.latest.h5")).expect("the fixture");
    for number in 0..count {
        server.put(&format!("/data/runs/run_{number:05}.h5"), bytes.clone());
    }
    server
}

/// The mount keeps five of a hundred files open at a time, and the kernel caches none of their
/// bytes.
#[test]
fn files_that_are_read_again_ask_for_nothing() {
    const COUNT: usize = 100;
    let server = runs(COUNT);
    let near = Mount::new(&fixture("tiny.latest.h5"));
    let content = fs::read(near.at("grid")).expect("a dataset");
    let endpoint = server.url("");
    let options = [
        "-o",
        "direct_io,open_files=5,anonymous",
        "--endpoint",
        &endpoint,
    ];
    let mount = Mount::with(Path::new("s3://data/runs/"), &options);
    let read_all = || {
        for number in 0..COUNT {
            let path = mount.at(&format!("run_{number:05}.h5/grid"));
            assert!(fs::read(path).expect("a dataset") == content);
        }
    };
    let begun = Instant::now();
    assert_eq!(requests(&server), (1, 0));
    read_all();
    assert_eq!(requests(&server), (0, COUNT));
    read_all();
    let again = requests(&server);
    // A state that is older than half a minute is checked again.
    let is_over = begun.elapsed() > Duration::from_secs(29);
    assert!(again == (0, 0) || is_over, "{again:?}");
}

/// In a directory with many pages of names, reading a file by its name takes one request.
#[test]
fn no_listing_goes_before_a_file_that_is_read() {
    const COUNT: usize = 30;
    let server = runs(10 * COUNT);
    server.faults(|faults| faults.page = 50);
    let mount = mounted(&server, "runs/");
    assert_eq!(requests(&server), (1, 0));
    let begun = Instant::now();
    for number in 0..COUNT {
        let path = mount.at(&format!("run_{:05}.h5/grid", number * 10));
        assert!(!fs::read(path).expect("a dataset").is_empty());
    }
    let (lists, others) = requests(&server);
    let is_over = begun.elapsed() > Duration::from_secs(29);
    assert!(
        is_over || (lists, others) == (0, COUNT),
        "{lists}, {others}"
    );
    // A missing name also causes a listing, because it may be a prefix.
    assert_eq!(errno(fs::metadata(mount.at("run_x.h5"))), Errno::ENOENT);
    server.put("/data/runs/store.h5/0", b"deep".to_vec());
    assert_eq!(fs::read(mount.at("store.h5/0")).expect("a file"), b"deep");
}

/// If files are only looked up, the number of files that are opened without being read is bounded.
#[test]
fn who_looks_at_many_files_brings_the_bytes_of_few() {
    const COUNT: usize = 200;
    let server = runs(10 * COUNT + 1);
    server.faults(|faults| faults.page = 50);
    let mount = mounted(&server, "runs/");
    let path = |number: usize| mount.at(&format!("run_{:05}.h5", number * 10));
    server.seen();
    for number in 0..COUNT {
        assert!(fs::metadata(path(number)).expect("its attributes").is_dir());
    }
    let (lists, others) = requests(&server);
    assert_eq!(lists + others, COUNT);
    assert!((1..=64).contains(&others), "{others} of them were opened");
    // Files that have been read make room for other files.
    for number in 0..others {
        fs::read(path(number).join("grid")).expect("a dataset");
    }
    server.seen();
    fs::metadata(path(COUNT)).expect("its attributes");
    assert_eq!(requests(&server), (0, 1));
}

#[test]
fn names_that_are_no_names_of_files_are_left_out() {
    let server = Server::start();
    let long = "l".repeat(256);
    for key in [
        "a", "a/x", "a-b", "b//c", "d/.", "d/..", "d/e", "d/f/", "/g", ".h5fs", &long,
    ] {
        server.put(&format!("/data/p/{key}"), key.as_bytes().to_vec());
    }
    server.put("/data/p/", Vec::new());
    let mount = mounted(&server, "p/");
    let own = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    assert_eq!(names(&mount.path), own(&["%2Eh5fs", "a", "a-b", "b", "d"]));
    // The object `a` is hidden by the prefix of the same name.
    assert_eq!(names(&mount.at("a")), own(&["x"]));
    assert_eq!(names(&mount.at("b")), own(&[]));
    assert_eq!(names(&mount.at("d")), own(&["e", "f"]));
    assert_eq!(fs::read(mount.at("%2Eh5fs")).expect("a file"), b".h5fs");
    assert_eq!(
        fs::read(mount.at(".h5fs/original/a-b")).expect("a file"),
        b"a-b"
    );
    assert_eq!(errno(fs::metadata(mount.at(&long))), Errno::ENAMETOOLONG);
    assert_eq!(errno(fs::metadata(mount.at("a-b/x"))), Errno::ENOTDIR);
}

/// The content decides whether an object is a data file, whatever its name suggests.
#[test]
fn a_name_that_promises_too_much_is_corrected() {
    let server = Server::start();
    server.put("/data/p/text.h5", b"no data at all".to_vec());
    let damaged = [b"\x89HDF\r\n\x1a\n", &[9_u8; 600][..]].concat();
    server.put("/data/p/damaged.h5", damaged.clone());
    let mount = mounted(&server, "p/");
    assert_eq!(
        fs::read(mount.at("text.h5")).expect("a file"),
        b"no data at all"
    );
    assert!(fs::metadata(mount.at("text.h5")).expect("stat").is_file());
    assert!(names(&mount.at("damaged.h5")).is_empty());
    let why = xattr_text(&mount.at("damaged.h5"));
    assert!(why.contains("superblock"), "{why}");
    assert_eq!(
        fs::read(mount.at(".h5fs/original/damaged.h5")).expect("bytes"),
        damaged
    );
}

fn xattr_text(path: &Path) -> String {
    let mut command = std::process::Command::new("getfattr");
    command
        .args(["--only-values", "-n", "user.h5fs.error"])
        .arg(path);
    run(&mut command, LONG).success().text()
}

#[test]
fn links_between_objects_are_links_inside_the_mount() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("temporary directory");
    run(script("linked_runs.py").arg(directory.path()), LONG).success();
    put_all(&server, directory.path(), "archive/");
    let (near, far) = (Mount::new(directory.path()), mounted(&server, "archive/"));
    let mut links = 0;
    for path in tree(&near.path) {
        let name = path.strip_prefix(&near.path).expect("beneath");
        if let Ok(text) = fs::read_link(&path) {
            assert_eq!(
                fs::read_link(far.path.join(name)).ok(),
                Some(text),
                "{}",
                name.display()
            );
            links += 1;
        }
    }
    assert!(links > 0);
    assert!(content(&near) == content(&far));
}

#[test]
fn an_object_that_is_replaced_is_not_mixed() {
    let server = Server::start();
    server.put("/data/p/a.txt", vec![b'o'; 1_000_000]);
    let mount = mounted(&server, "p/");
    let path = mount.at("a.txt");
    let mut opened = fs::File::open(&path).expect("the old one");
    let mut bytes = [0; 10];
    opened.read_exact(&mut bytes).expect("read");
    server.put("/data/p/a.txt", vec![b'n'; 2_000_000]);
    let mut rest = Vec::new();
    match opened.read_to_end(&mut rest) {
        Ok(_) => assert_eq!(rest, vec![b'o'; 1_000_000 - 10]),
        Err(error) => assert_eq!(error.raw_os_error(), Some(Errno::ESTALE as i32)),
    }
    eventually(SOON, "the new state", || {
        fs::read(&path).is_ok_and(|bytes| bytes == vec![b'n'; 2_000_000])
    });
    server.remove("/data/p/a.txt");
    eventually(SOON, "its end", || fs::metadata(&path).is_err());
}

#[test]
fn a_prefix_without_objects_is_refused_in_one_line() {
    let server = Server::start();
    server.put("/data/p/a.txt", b"a".to_vec());
    let endpoint = server.url("");
    let options = ["--endpoint", &endpoint, "--anonymous"];
    let (mount, finished) = Mount::attempt(Path::new("s3://data/none/"), &options);
    assert!(!mount.is_up());
    assert_eq!(
        finished.one_line(),
        "h5fs: s3://data/none/: No such file or directory"
    );
}

#[test]
fn commands_read_a_prefix_without_a_mount() {
    let (server, directory) = (Server::start(), directory());
    put_all(&server, directory.path(), "archive/");
    let endpoint = server.url("");
    let far = |command: &[&str], path: &str| {
        let mut command = h5fs(command);
        command.args([
            "--endpoint",
            &endpoint,
            "--anonymous",
            "s3://data/archive/",
            path,
        ]);
        run(&mut command, LONG).success()
    };
    let near = |command: &[&str], path: &str| {
        run(h5fs(command).arg(directory.path()).arg(path), LONG).success()
    };
    for path in ["", "run 1.h5", "2026/a b+c"] {
        assert_eq!(
            far(&["ls"], path).text(),
            near(&["ls"], path).text(),
            "{path}"
        );
    }
    for path in ["notes.txt", "2026/tiny.h5/grid"] {
        assert_eq!(
            far(&["cat"], path).stdout,
            near(&["cat"], path).stdout,
            "{path}"
        );
    }
}

/// The outputs are those for the local directory, except for the names of the files.
#[test]
fn each_file_of_a_prefix_is_described_and_checked() {
    let (server, directory) = (Server::start(), directory());
    let top = directory.path();
    fs::copy(fixture("tiny.latest.h5"), top.join("without-an-ending")).expect("copy");
    let whole = fs::read(fixture("tiny.latest.h5")).expect("read");
    fs::write(top.join("torn.h5"), &whole[..600]).expect("write");
    put_all(&server, top, "archive/");
    let endpoint = server.url("");
    let far = |command: &[&str], paths: &[&str]| {
        let mut command = h5fs(command);
        command.args(["--endpoint", &endpoint, "--anonymous", "s3://data/archive/"]);
        run(command.args(paths), LONG)
    };
    let near = |command: &[&str], paths: &[&str]| run(h5fs(command).arg(top).args(paths), LONG);
    let renamed = |text: &str, of: &str| text.replace(of, "TOP");
    let near_name = top.display().to_string();
    let cases: [(&[&str], &[&str], bool); 6] = [
        (&["check"], &[], false),
        (&["check", "--data"], &[], false),
        (&["ndl"], &[], false),
        (&["ndl", "--json"], &["grid"], false),
        (&["ndl"], &["2026/tiny.h5/grid"], true),
        (&["ndl"], &["without-an-ending"], true),
    ];
    for (command, paths, is_whole) in cases {
        let (far, near) = (far(command, paths), near(command, paths));
        assert_eq!(far.status.success(), is_whole, "{command:?} {far:?}");
        assert_eq!(near.status.success(), is_whole, "{command:?} {near:?}");
        assert!(!near.text().is_empty(), "{command:?}");
        let (far, near) = (far.text(), near.text());
        let (far, near) = (
            renamed(&far, "s3://data/archive"),
            renamed(&near, &near_name),
        );
        assert_eq!(far, near, "{command:?} {paths:?}");
    }
    let mut absent = h5fs(["check", "--endpoint", &endpoint, "--anonymous"]);
    let absent = run(absent.arg("s3://data/none/"), LONG);
    assert!(!absent.status.success());
    assert!(absent.stderr.contains("s3://data/none/"), "{absent:?}");
}

/// Answers this number of listings with the status 200 and this body.
fn listed_as(server: &Server, left: u32, body: &str) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let raw = Raw {
        left,
        of: "list-type=2",
        bytes: (head + body).into_bytes(),
        then: Then::Next,
    };
    server.faults(|faults| faults.raw = Some(raw));
}

/// A proxy's own page, an empty body or a truncated listing does not count as a listing.
#[test]
fn what_is_no_whole_listing_hides_no_name() {
    const WRONG: [&str; 4] = [
        "",
        "<!DOCTYPE html><html><head><title>Busy</title></head><body>Busy</body></html>",
        "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>",
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/sub/a.txt</Key>\
         <Size>1</Size></Contents><Contents><Key>p/sub/b",
    ];
    let server = Server::start();
    let endpoint = server.url("");
    let options = ["--anonymous", "--endpoint", &endpoint, "--timeout", "2"];
    for name in ["sub/a.txt", "sub/b.txt", "sub/c.txt", "z.txt"] {
        server.put(&format!("/data/p/{name}"), b"x".to_vec());
    }
    for wrong in WRONG {
        // The failure is temporary, at mounting and later, without a lasting effect.
        listed_as(&server, 2, wrong);
        let mount = Mount::with(Path::new("s3://data/p/"), &options);
        listed_as(&server, 2, wrong);
        assert_eq!(names(&mount.at("sub")).len(), 3, "{wrong}");
        mount.unmount();
        mount.must_be_gone(SOON);
        // The failure is permanent.
        let mount = Mount::with(Path::new("s3://data/p/"), &options);
        server.seen();
        listed_as(&server, u32::MAX, wrong);
        let first = fs::read_dir(mount.at("sub")).and_then(|mut names| names.next().transpose());
        assert_eq!(errno(first), Errno::EIO, "{wrong}");
        let (lists, _) = requests(&server);
        assert!(lists > 1, "{lists} attempts");
        assert_eq!(
            errno(fs::metadata(mount.at("sub/a.txt"))),
            Errno::EIO,
            "{wrong}"
        );
        server.faults(|faults| faults.raw = None);
        assert_eq!(names(&mount.at("sub")).len(), 3, "{wrong}");
    }
}

/// A server that repeats the same marker would otherwise be asked without end.
#[test]
fn a_listing_that_comes_back_to_a_place_ends_at_once() {
    let server = Server::start();
    for number in 0..30 {
        server.put(&format!("/data/p/{number:02}.txt"), vec![b'x'; number]);
    }
    server.faults(|faults| faults.page = 10);
    let mount = mounted(&server, "p/");
    let page = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>p/09.txt\
                </NextContinuationToken><Contents><Key>p/x</Key><Size>1</Size></Contents>\
                </ListBucketResult>";
    server.seen();
    listed_as(&server, 40, page);
    let last = fs::read_dir(&mount.path).expect("a directory").last();
    assert_eq!(errno(last.expect("an entry")), Errno::EIO);
    let (lists, _) = requests(&server);
    assert!(lists <= 3, "{lists} pages");
    server.faults(|faults| faults.raw = None);
    assert_eq!(names(&mount.path).len(), 30);
}

/// The new object has the same entity tag, but another date.
#[test]
fn an_object_with_the_tag_of_another_is_not_mixed() {
    let server = Server::start();
    let put = |byte: u8, day: &str| {
        let date = format!("{day} Nov 1994 08:49:37 GMT");
        server.put_dated("/data/p/a.txt", vec![byte; 1_000_000], "\"1\"", &date);
    };
    put(b'o', "Sun, 06");
    let mount = mounted(&server, "p/");
    let path = mount.at("a.txt");
    let mut opened = fs::File::open(&path).expect("the old one");
    let mut bytes = [0; 10];
    opened.read_exact(&mut bytes).expect("read");
    put(b'n', "Mon, 07");
    let mut rest = Vec::new();
    match opened.read_to_end(&mut rest) {
        Ok(_) => assert_eq!(rest, vec![b'o'; 1_000_000 - 10]),
        Err(error) => assert_eq!(error.raw_os_error(), Some(Errno::ESTALE as i32)),
    }
    eventually(SOON, "the new state", || {
        fs::read(&path).is_ok_and(|bytes| bytes == vec![b'n'; 1_000_000])
    });
}

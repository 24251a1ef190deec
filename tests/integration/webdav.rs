//! WebDAV of `h5fs serve`: the properties of every file and directory are those of a mount, and
//! programs that mount by WebDAV read the same bytes.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::harness::{LONG, Mount, fixture, run, script};
use crate::served::{Answer, Served, send};

/// Runs a command of the script with a server and a mount of the same source.
#[track_caller]
fn compare(source: &Path, directory: &str) {
    let mount = Mount::new(source);
    let served = Served::new(&[], &[source]);
    let mut check = script("webdav.py");
    check.arg(served.address()).arg(served.token());
    run(check.arg(mount.at(directory)).arg(directory), LONG).success();
}

#[test]
fn a_tree_has_the_names_sizes_and_dates_of_a_mount() {
    compare(&fixture("tiny.latest.h5"), "");
}

/// The size of a dataset of sequences must be counted, which a listing does not do.
#[test]
fn a_size_that_must_be_counted_is_not_listed_as_zero() {
    compare(&fixture("sequences.latest.h5"), "");
}

#[test]
fn views_are_listed_below_their_directory() {
    compare(&fixture("tiny.latest.h5"), ".h5fs/npy");
}

#[test]
fn a_directory_of_files_is_one_tree() {
    let directory = tempfile::tempdir().expect("temporary directory");
    for name in ["a b.h5", "ä&<.h5"] {
        fs::copy(fixture("tiny.latest.h5"), directory.path().join(name)).expect("copy");
    }
    fs::write(directory.path().join("notes.txt"), "text").expect("a file");
    compare(directory.path(), "");
}

#[test]
fn the_methods_are_told_and_a_whole_tree_is_refused() {
    let mut served = Served::new(&[], &[&fixture("tiny.latest.h5")]);
    let options = served.ask("OPTIONS", "/", &[]);
    assert_eq!(options.status, 200);
    assert_eq!(
        (options.field("dav"), options.field("ms-author-via")),
        ("1", "DAV")
    );
    assert!(options.field("allow").contains("PROPFIND"));
    let ask = |depth: &[&str]| served.ask("PROPFIND", "/", depth).status;
    assert_eq!(ask(&["Depth: 0"]), 207);
    assert_eq!(ask(&["Depth: infinity"]), 403);
    assert_eq!(ask(&[]), 403);
    let mut stream = served.connect();
    let fields = ["Host: localhost", "Depth: 0", "Connection: close"];
    send(&mut stream, "PROPFIND", "/", &fields);
    assert_eq!(Answer::read(stream, "PROPFIND").status, 401);
    for method in [
        "PUT",
        "MKCOL",
        "DELETE",
        "MOVE",
        "COPY",
        "LOCK",
        "PROPPATCH",
    ] {
        assert_eq!(served.ask(method, "/x", &[]).status, 405, "{method}");
    }
    served.end(Signal::SIGTERM);
}

//! The routes of h5grove in `h5fs serve`, compared with the answers of the library h5grove.

use nix::sys::signal::Signal;

use crate::harness::{LONG, fixture, run, script, skip};
use crate::served::Served;

/// Fixtures with all types, links, attributes and filters.
const FIXTURES: &[&str] = &[
    "attribute-values.latest.h5",
    "datatypes.latest.h5",
    "links.latest.h5",
    "groups.latest.h5",
    "tiny.latest.h5",
];

#[test]
fn the_answers_are_those_of_h5grove() {
    let directory = tempfile::tempdir().expect("temporary directory");
    for (name, command, file) in [
        ("zarr_arrays.py", "write", "arrays.h5"),
        ("zarr_stores.py", "stored-write", "stored.h5"),
    ] {
        let file = directory.path().join(file);
        run(script(name).arg(command).arg(file), LONG).success();
    }
    for name in FIXTURES {
        let source = fixture(name);
        std::fs::copy(source, directory.path().join(name)).expect("a copy");
    }
    let mut served = Served::new(&[], &[directory.path()]);
    let mut check = script("grove.py");
    check.arg(format!("http://{}", served.address()));
    let output = run(check.arg(served.token()).arg(directory.path()), LONG).success();
    if output.text().contains("absent") {
        skip("the Python environment does not have h5grove");
    }
    served.end(Signal::SIGTERM);
}

#[test]
fn requests_need_the_token_and_stay_in_the_tree() {
    let mut served = Served::new(&[], &[&fixture("tiny.latest.h5")]);
    let status = |path: &str| served.ask("GET", path, &[]).status;
    assert_eq!(status("/.h5grove/"), 200);
    assert_eq!(status("/.h5grove/meta/?path=/"), 200);
    assert_eq!(status("/.h5grove/meta"), 200);
    // The server has one file, so the name does not count.
    assert_eq!(status("/.h5grove/meta/?file=any.h5"), 200);
    assert_eq!(status("/.h5grove/meta/?file=../any.h5"), 422);
    assert_eq!(status("/.h5grove/meta/?path=/missing"), 404);
    assert_eq!(status("/.h5grove/other/"), 404);
    assert_eq!(status("/.h5grove/meta/x"), 404);
    assert_eq!(served.ask("POST", "/.h5grove/meta/", &[]).status, 405);
    assert_eq!(
        served.ask("PROPFIND", "/.h5grove/", &["Depth: 0"]).status,
        404
    );
    let mut stream = served.connect();
    let fields = ["Host: localhost", "Connection: close"];
    crate::served::send(&mut stream, "GET", "/.h5grove/meta/", &fields);
    assert_eq!(crate::served::Answer::read(stream, "GET").status, 401);
    served.end(Signal::SIGTERM);
}

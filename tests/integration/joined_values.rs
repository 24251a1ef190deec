//! Joined files in which a value depends on another variable, a link, or another file. The values
//! are compared with what the reference library reads from each file alone.

use std::path::Path;

use crate::harness::{LONG, MOUNT_LIMIT, Mount, h5fs, run, script};

#[track_caller]
fn values(command: &str, paths: &[&Path]) {
    let mut python = script("joined_values.py");
    run(python.arg(command).args(paths), LONG).success();
}

#[test]
fn a_joined_value_is_that_of_its_own_file() {
    let directory = tempfile::tempdir().expect("temporary directory");
    values("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    values("check", &[directory.path(), &mount.path]);
}

#[test]
fn sources_that_are_missing_are_named() {
    let directory = tempfile::tempdir().expect("temporary directory");
    values("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    values("sources", &[directory.path(), &mount.path]);
    let strict = Mount::with(directory.path(), &["-o", "strict"]);
    values("strict", &[directory.path(), &strict.path]);
}

#[test]
fn a_check_of_the_directory_names_all_that_is_absent() {
    let directory = tempfile::tempdir().expect("temporary directory");
    values("write", &[directory.path()]);
    for (name, lines) in [
        (
            "links",
            &["/gone: a dangling link", "/never: a dangling link"][..],
        ),
        ("sources", &["0.nc: .parts/0.h5"]),
        (
            "tiles",
            &["/orog: it differs between files of the same place"],
        ),
        ("calendars", &["calendars differ"]),
    ] {
        let mut command = h5fs(["check"]);
        command.arg(directory.path().join(name));
        command.env("XDG_CACHE_HOME", "/dev/null");
        let done = run(&mut command, MOUNT_LIMIT);
        let said = format!("{}{}", done.text(), done.stderr);
        for line in lines {
            assert!(said.contains(line), "{name}: {said}");
        }
    }
}

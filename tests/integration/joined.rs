//! Many files as one, compared with the numbers that were written into them. What xarray makes of
//! such files is compared by `tests/readers`.

use std::path::Path;

use crate::harness::{LONG, Mount, run, script};

#[track_caller]
fn joined(command: &str, paths: &[&Path]) {
    run(script("joined.py").arg(command).args(paths), LONG).success();
}

#[test]
fn files_are_one_by_their_coordinates() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    joined("check", &[directory.path(), &mount.path]);
}

#[test]
fn what_is_read_is_of_one_state() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mount = Mount::with(directory.path(), &[]);
    joined("changes", &[directory.path(), &mount.path]);
}

#[test]
fn files_in_which_nothing_is_right() {
    let directory = tempfile::tempdir().expect("temporary directory");
    joined("hostile", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    joined("inert", &[directory.path(), &mount.path]);
}

//! Joined files of conventions in which arrays depend on one another: AnnData, pandas, HDMF.
//! `tests/readers` compares such files with anndata, pandas and pynwb.

use std::path::Path;

use crate::harness::{LONG, Mount, h5fs, run, script};

#[track_caller]
fn conventions(command: &str, paths: &[&Path]) {
    let mut python = script("joined_conventions.py");
    run(python.arg(command).args(paths), LONG).success();
}

#[test]
fn arrays_that_depend_on_others_are_joined_with_them() {
    let directory = tempfile::tempdir().expect("temporary directory");
    conventions("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    conventions("check", &[directory.path(), &mount.path]);
}

#[test]
fn check_tells_what_conventions_keep_from_being_joined() {
    let directory = tempfile::tempdir().expect("temporary directory");
    conventions("write", &[directory.path()]);
    let done = run(h5fs(["check"]).arg(directory.path().join("ordered")), LONG);
    for line in ["/obs/grade/codes: ", "/obs/grade/categories: "] {
        assert!(done.stderr.contains(line), "{}", done.stderr);
    }
}

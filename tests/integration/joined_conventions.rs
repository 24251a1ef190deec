//! Joined files of conventions in which arrays depend on one another: AnnData, pandas, HDMF.
//! `tests/readers` compares such files with anndata, pandas and pynwb.

use std::collections::HashMap;
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
    let mut python = script("joined_conventions.py");
    let refusals = run(python.arg("refusals").arg(directory.path()), LONG).success();
    let refusals = refusals.text();
    assert!(refusals.lines().count() > 15, "{refusals}");
    let mut said: HashMap<&str, String> = HashMap::new();
    for line in refusals.lines() {
        let (files, refusal) = line.split_once('\t').expect("a set and what is said");
        let check = || run(h5fs(["check"]).arg(files), LONG).stderr;
        let stderr = said.entry(files).or_insert_with(check);
        assert!(stderr.contains(refusal), "{refusal}: {stderr}");
    }
}

//! Variables by netCDF's conventions. The expected values apply these conventions to the numbers
//! that h5py reads.

use std::path::Path;

use crate::harness::{LONG, Mount, run, script};

/// Runs one of the script's commands, which fails with a traceback on any difference.
#[track_caller]
fn cf(command: &str, paths: &[&Path]) {
    run(script("cf.py").arg(command).args(paths), LONG).success();
}

/// Writes a file with the script, mounts it, and compares the mount.
#[track_caller]
fn compare(write: &str, check: &str) {
    let directory = tempfile::tempdir().expect("temporary directory");
    cf(write, &[directory.path()]);
    let mount = Mount::new(&directory.path().join("main.h5"));
    cf(check, &[directory.path(), &mount.path]);
}

#[test]
fn variables_are_what_the_conventions_make_of_them() {
    compare("write", "check");
}

#[test]
fn attributes_that_make_no_sense_harm_one_variable_at_most() {
    compare("hostile", "check-hostile");
}

/// Bounds, characters, compound fields and coordinates depend on other variables of the group.
#[test]
fn variables_are_what_their_group_says() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let rules = |command: &str, paths: &[&Path]| {
        run(script("cf_rules.py").arg(command).args(paths), LONG).success();
    };
    rules("write", &[directory.path()]);
    let mount = Mount::new(&directory.path().join("main.h5"));
    rules("check", &[directory.path(), &mount.at("")]);
}

/// netCDF's library pads each variable to the length of its unlimited dimension.
#[test]
fn variables_shorter_than_their_dimension_are_padded() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("short.nc");
    let padded = |command: &str, paths: &[&Path]| {
        run(script("padded.py").arg(command).args(paths), LONG).success();
    };
    padded("write", &[&file]);
    let mount = Mount::new(&file);
    padded("check", &[&file, &mount.at("")]);
}

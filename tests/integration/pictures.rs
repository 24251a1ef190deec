//! Arrays as pictures, compared with what h5py reads from the same file.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{LONG, Mount, run, script};

/// Runs one of the script's commands, which ends with a traceback where something differs.
#[track_caller]
fn pictures(command: &str, paths: &[&Path]) {
    run(script("pictures.py").arg(command).args(paths), LONG).success();
}

fn written() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("pictures.h5");
    pictures("write", &[&file]);
    (directory, file)
}

#[test]
fn pictures_show_what_h5py_reads() {
    let (_directory, file) = written();
    let mount = Mount::new(&file);
    pictures("check", &[&file, &mount.path]);
}

/// With a cache that keeps nothing, and reads of any size at any offset.
#[test]
fn pictures_are_the_same_when_they_are_encoded_again() {
    let (_directory, file) = written();
    let mount = Mount::with(&file, &["--direct-io", "--cache-size=0"]);
    pictures("check", &[&file, &mount.path]);
}

#[test]
fn a_listing_of_a_stack_decodes_nothing() {
    let (_directory, file) = written();
    let mount = Mount::new(&file);
    let stack = mount.at(".h5fs/png/stack/>i2");
    let names = fs::read_dir(&stack).expect("a stack").count();
    assert_eq!((names, mount.status("chunks decoded")), (5, 0));
    fs::metadata(stack.join("000004.png")).expect("a picture");
    assert!(mount.status("chunks decoded") > 0);
}

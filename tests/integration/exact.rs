//! Values that a text format may lose, compared with what h5py and asdf read.

use std::path::Path;

use crate::harness::{LONG, Mount, run, script};

#[track_caller]
fn exact(command: &str, paths: &[&Path]) {
    run(script("exact.py").arg(command).args(paths), LONG).success();
}

/// Long doubles, short floats in long elements, null references, unwritten strings, and NumPy's
/// timestamps.
#[test]
fn no_text_loses_a_value() {
    let directory = tempfile::tempdir().expect("temporary directory");
    exact("write", &[directory.path()]);
    let mount = Mount::new(&directory.path().join("main.h5"));
    exact("check", &[directory.path(), &mount.path]);
}

/// Infinities and complex numbers in an ASDF tree.
#[test]
fn no_number_of_a_tree_is_lost() {
    let directory = tempfile::tempdir().expect("temporary directory");
    exact("write", &[directory.path()]);
    let mount = Mount::new(&directory.path().join("tree.asdf"));
    exact("check-tree", &[directory.path(), &mount.path]);
}

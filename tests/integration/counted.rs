//! The CSV and JSON of tables of every type. The texts are parsed strictly and compared with what
//! h5py and asdf read.

use std::path::Path;

use crate::harness::{LONG, Mount, run, script};

/// Runs one of the script's commands, which fails with a traceback on any difference.
#[track_caller]
fn counted(command: &str, paths: &[&Path]) {
    run(script("counted.py").arg(command).args(paths), LONG).success();
}

#[test]
fn tables_are_parsed_strictly_and_have_the_values_of_h5py() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("tables.h5");
    counted("write", &[&file]);
    let mount = Mount::new(&file);
    counted("check", &[&file, &mount.path]);
}

#[test]
fn masked_elements_have_no_value() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("masked.asdf");
    counted("masked", &[&file]);
    let mount = Mount::new(&file);
    counted("missing", &[&file, &mount.path]);
}

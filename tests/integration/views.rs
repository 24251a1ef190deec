//! What stands beneath `.h5fs`, and parts of datasets by selector, compared with what h5py and
//! NumPy make of the same file.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{LONG, Mount, run, script};

/// Runs one of the script's commands, which ends with a traceback where something differs.
#[track_caller]
fn views(command: &str, paths: &[&Path]) {
    run(script("views.py").arg(command).args(paths), LONG).success();
}

fn written() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("views.h5");
    views("write", &[&file]);
    (directory, file)
}

#[test]
fn views_show_what_h5py_and_numpy_read() {
    let (_directory, file) = written();
    let mount = Mount::new(&file);
    views("check", &[&file, &mount.path]);
}

/// Raw files keep these bytes.
#[test]
fn what_stands_behind_texts_and_booleans_is_not_in_views() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("rests.h5");
    views("write_rests", &[&file]);
    let mount = Mount::new(&file);
    views("check_rests", &[&file, &mount.path]);
}

/// Without the page cache, every read arrives with the offset and length it was made with.
#[test]
fn views_answer_direct_reads_at_any_offset() {
    let (_directory, file) = written();
    let mount = Mount::with(&file, &["--direct-io"]);
    views("check", &[&file, &mount.path]);
}

#[test]
fn noviews_leaves_the_data_alone() {
    let (_directory, file) = written();
    let mount = Mount::with(&file, &["-o", "noviews"]);
    views("absent", &[&file, &mount.path]);
}

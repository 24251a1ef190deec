//! Parquet files whose every byte is computed, read by pyarrow and compared with what h5py and asdf
//! read. The tables of conventions, and other readers, are tried by `tests/readers`.

use std::path::Path;

use crate::harness::{LONG, Mount, run, script};

#[track_caller]
fn parquet(command: &str, paths: &[&Path]) {
    run(script("parquet.py").arg(command).args(paths), LONG).success();
}

/// Has the script write files, and look at their mount.
#[track_caller]
fn compare(command: &str, options: &[&str]) {
    let directory = tempfile::tempdir().expect("temporary directory");
    parquet("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), options);
    parquet(command, &[directory.path(), &mount.path]);
}

#[test]
fn every_type_has_the_values_of_h5py() {
    compare("check", &[]);
}

/// Without the page cache, every read arrives with the offset and length it was made with.
#[test]
fn any_range_is_that_of_the_whole() {
    compare("check", &["--direct-io"]);
}

#[test]
fn a_damaged_chunk_is_an_error_of_its_column_alone() {
    compare("damaged", &[]);
}

#[test]
fn what_no_file_can_hold_is_refused() {
    compare("hostile", &[]);
}

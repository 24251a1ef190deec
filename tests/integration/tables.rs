//! Tables of groups with and without a convention (AnnData, HDMF, astropy, pandas), compared with
//! the values from which the files were written.
//!
//! `tests/readers` tests files that the libraries themselves write, including pandas.

use std::path::Path;

use tempfile::TempDir;

use crate::harness::{LONG, Mount, run, script};

#[track_caller]
fn tables(command: &str, paths: &[&Path]) {
    run(script("tables.py").arg(command).args(paths), LONG).success();
}

fn written() -> TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    tables("write", &[directory.path()]);
    directory
}

#[track_caller]
fn check(directory: &TempDir, file: &str, options: &[&str]) {
    let mount = Mount::with(&directory.path().join(file), options);
    tables("check", &[directory.path(), Path::new(file), &mount.path]);
}

#[test]
fn groups_are_the_tables_that_their_conventions_say() {
    let directory = written();
    for file in [
        "anndata.h5",
        "dynamic.h5",
        "plain.h5",
        "astropy.asdf",
        "pandas.h5",
        "wide.h5",
        "pytables.h5",
        "bits.h5",
        "records.h5",
    ] {
        check(&directory, file, &[]);
    }
}

/// Without the page cache, every read arrives with its original offset and length.
#[test]
fn tables_answer_direct_reads() {
    let directory = written();
    check(&directory, "dynamic.h5", &["--direct-io"]);
}

/// Writes the files of the script, and compares a part of them with a mount of the directory.
#[track_caller]
fn compare(part: &str) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut write = script("frames.py");
    run(write.arg("write").arg(directory.path()), LONG).success();
    let mount = Mount::with(directory.path(), &[]);
    let mut check = script("frames.py");
    run(check.arg(part).arg(directory.path()).arg(&mount.path), LONG).success();
}

/// Tests all views. A reader of such a Parquet file once waited for ever.
#[test]
fn texts_of_no_bytes_are_texts() {
    compare("empty");
}

/// anndata 0.13 and pandas 3 write each index of strings as a group of values and a mask.
#[test]
fn frames_have_the_index_and_the_nulls_of_their_libraries() {
    compare("frames");
}

#[test]
fn variables_have_coordinates_of_a_byte_and_no_nan() {
    compare("variables");
}

#[test]
fn a_damaged_index_of_a_sparse_matrix_is_refused_in_all_views() {
    compare("sparse");
}

#[test]
fn a_store_of_many_data_columns_has_a_parquet_file() {
    compare("store");
}

#[test]
fn arrays_of_matlab_without_elements_have_none() {
    compare("matlab");
}

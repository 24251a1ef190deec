//! The tables of groups, by the conventions of AnnData, HDMF, astropy and pandas, and without one, compared
//! with the values that the files were written from.
//!
//! Files of the libraries themselves, pandas among them, are tried by `tests/readers`.

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

/// Without the page cache, every read arrives with the offset and length it was made with.
#[test]
fn tables_answer_direct_reads() {
    let directory = written();
    check(&directory, "dynamic.h5", &["--direct-io"]);
}

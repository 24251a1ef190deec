//! netCDF classic files whose bytes are computed on demand, read by a reader of the format's
//! grammar and by netCDF's libraries, and compared with what h5py reads.

use std::path::Path;

use crate::harness::{Finished, LONG, Mount, run, script, skip};

#[track_caller]
fn netcdf(command: &str, paths: &[&Path]) -> Finished {
    run(script("netcdf.py").arg(command).args(paths), LONG).success()
}

/// Writes files with the script, and checks a mount of their directory.
#[track_caller]
fn compare(command: &str, options: &[&str]) -> Finished {
    let directory = tempfile::tempdir().expect("temporary directory");
    netcdf("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), options);
    netcdf(command, &[directory.path(), &mount.path])
}

#[test]
fn every_variable_has_the_values_of_h5py() {
    compare("check", &[]);
}

/// Without the page cache, every read arrives with its original offset and length.
#[test]
fn any_range_is_that_of_the_whole() {
    compare("check", &["--direct-io"]);
}

#[test]
fn libraries_read_the_same_values() {
    if compare("libraries", &[]).text().is_empty() {
        skip("neither scipy nor netCDF4");
    }
}

#[test]
fn a_damaged_chunk_is_an_error_of_its_bytes_alone() {
    compare("damaged", &["--direct-io"]);
}

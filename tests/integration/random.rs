//! Files that h5py writes at random. Each file is mounted and compared with h5py byte by byte.
//!
//! Every run uses the same files, so that a failure always means that the program has changed.
//! `H5FS_RANDOM_SEED` and `H5FS_RANDOM_COUNT` select other files, as `scripts/random` does.

use crate::harness::{H5FS, LONG, Mount, run, script};

const SEED: &str = "1";

#[test]
fn a_hundred_files_are_served_as_h5py_reads_them() {
    are_served_as_h5py_reads_them(100);
}

/// Checks this number of files, unless the environment sets another number.
pub(crate) fn are_served_as_h5py_reads_them(count: u32) {
    let chosen = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let seed = chosen("H5FS_RANDOM_SEED", SEED);
    let count = chosen("H5FS_RANDOM_COUNT", &count.to_string());
    let files = tempfile::tempdir().expect("temporary directory");
    let mount = Mount::prepare();
    let mut check = script("random_check.py");
    check.args([H5FS, &seed, &count]).arg(files.path());
    let said = run(check.arg(&mount.path), LONG).success();
    println!("{}", said.text());
}

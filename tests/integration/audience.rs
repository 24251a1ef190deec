//! With `allow_other`, no view of joined files shows what a public file takes from a private one.
//!
//! The private file is written twice, with different bytes. An outcome that is the same both times
//! reveals no private bytes. The owner's own mount shows that the views do depend on these bytes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::harness::{LONG, Mount, is_root, run, script, skip};

/// The outcome for each file path: a hash of its bytes, or the error number.
type Outcomes = BTreeMap<String, String>;

fn outcomes(directory: &Path, way: &str, byte: &str, options: &[&str]) -> Outcomes {
    let mut write = script("audience.py");
    run(write.arg("write").arg(directory).args([way, byte]), LONG).success();
    let mount = Mount::with(directory, options);
    let read = run(script("audience.py").arg("read").arg(&mount.path), LONG).success();
    let lines = String::from_utf8(read.stdout).expect("lines of JSON");
    let parts = lines.lines().filter_map(|line| {
        let (path, outcome) = line.strip_prefix("[\"")?.split_once("\", ")?;
        Some((path.to_owned(), outcome.to_owned()))
    });
    parts.collect()
}

/// Returns the paths whose outcome depends on the private bytes, and the outcomes of the first
/// time.
fn telling(directory: &Path, way: &str, options: &[&str]) -> (Vec<String>, Outcomes) {
    let first = outcomes(directory, way, "65", options);
    let second = outcomes(directory, way, "66", options);
    let paths = first.keys().chain(second.keys());
    let differs = |path: &&String| first.get(*path) != second.get(*path);
    (paths.filter(differs).cloned().collect(), first)
}

#[track_caller]
fn check(way: &str, least: usize) -> Outcomes {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (own, _) = telling(directory.path(), way, &[]);
    assert!(own.len() >= least, "the owner sees {} of them", own.len());
    let (all, shown) = telling(directory.path(), way, &["-o", "allow_other"]);
    assert!(all.is_empty(), "{way}: private bytes in {all:?}");
    shown
}

/// Tests elements in the three kinds of external storage.
#[test]
fn elements_of_private_files_are_errors_in_every_view_of_joined() {
    if !is_root() {
        return skip("only root may mount for all users everywhere");
    }
    for way in ["virtual", "raw", "exploded"] {
        let shown = check(way, 100);
        if way == "exploded" {
            // The block is opened when the file is described, so the whole file is left out.
            assert!(!shown.contains_key(".h5fs/joined/v"), "{shown:?}");
            let hash = shown.get(".h5fs/joined/good").expect("what is public");
            assert!(hash.len() > 60, "{way}: {hash}");
            continue;
        }
        let eio = [
            ".h5fs/joined/v",
            ".h5fs/joined/s",
            ".h5fs/joined/t",
            ".h5fs/joined[day_*]/v",
            ".h5fs/joined[day_*,join=file]/v",
            ".h5fs/joined/.h5fs/npy/v.npy",
            ".h5fs/joined.zarr/v/c/0/0/0",
            ".h5fs/joined/.h5fs/file.zarr/v/c/0/0/0",
            ".h5fs/joined/.h5fs/stored.zarr/v/c/0/0/0",
        ];
        for path in eio {
            let outcome = shown.get(path).map_or("absent", String::as_str);
            assert_eq!(outcome, "5]", "{way}: {path}");
        }
        let hash = shown.get(".h5fs/joined/good").expect("what is public");
        assert!(hash.len() > 60, "{way}: {hash}");
    }
}

/// Coordinate values are read when the files are joined.
#[test]
fn files_whose_coordinates_are_private_are_left_out_of_joined() {
    if !is_root() {
        return skip("only root may mount for all users everywhere");
    }
    let shown = check("coordinate", 60);
    assert!(!shown.contains_key(".h5fs/joined/x"), "{shown:?}");
    assert!(!shown.contains_key(".h5fs/joined/good"), "{shown:?}");
}

/// Some or all members contain a link into a private file.
#[test]
fn objects_of_private_files_are_not_in_joined() {
    if !is_root() {
        return skip("only root may mount for all users everywhere");
    }
    let shown = check("link", 1);
    let outcome = shown.get(".h5fs/joined/v").map(String::as_str);
    assert!(matches!(outcome, None | Some("5]")), "{outcome:?}");
}

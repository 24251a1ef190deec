//! A small file cut at every 512 bytes: it mounts or is refused with one line, a walk of it ends,
//! and what can be read is what the whole file holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Mount, fixture, tree};

const STEP: usize = 512;

/// What every regular file holds; nothing for those that cannot be read.
fn contents(mount: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = tree(mount)
        .into_iter()
        .filter(|p| p.symlink_metadata().is_ok_and(|m| m.is_file()));
    files
        .filter_map(|path| {
            let bytes = fs::read(&path).ok()?;
            Some((
                path.strip_prefix(mount)
                    .expect("below the mount")
                    .to_owned(),
                bytes,
            ))
        })
        .collect()
}

#[track_caller]
fn cut_everywhere(name: &str) {
    let whole = fs::read(fixture(name)).expect("fixture");
    let reference = {
        let mount = Mount::new(&fixture(name));
        contents(&mount.path)
    };
    assert!(
        reference.len() > 20,
        "the whole file has {} datasets",
        reference.len()
    );
    let directory = tempfile::tempdir().expect("temporary directory");
    let cut = directory.path().join("cut.h5");
    let log = directory.path().join("log");
    for length in (0..whole.len()).step_by(STEP) {
        fs::write(&cut, &whole[..length]).expect("write");
        let log_option = format!("--log-file={}", log.display());
        let (mount, finished) = Mount::attempt(&cut, &[&log_option]);
        if finished.status.success() {
            for (path, bytes) in contents(&mount.path) {
                assert!(
                    reference.get(&path) == Some(&bytes),
                    "cut at {length}: wrong bytes without an error in {}",
                    path.display()
                );
            }
            fs::metadata(&mount.path).expect("the mount answers after the walk");
            let logged = fs::read(&log).unwrap_or_default();
            let logged = String::from_utf8_lossy(&logged).into_owned();
            assert!(!logged.contains("panicked"), "cut at {length}: {logged}");
        } else {
            finished.one_line();
            assert!(!mount.is_up(), "refused, but mounted");
        }
    }
}

#[test]
fn old_file() {
    cut_everywhere("tiny.earliest.h5");
}

#[test]
fn new_file() {
    cut_everywhere("tiny.latest.h5");
}

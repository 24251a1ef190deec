//! Parts of datasets by selector, compared with what h5py and NumPy make of the same indices.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{LONG, Mount, SOON, h5fs, run, script};

/// Runs one of the script's commands, which ends with a traceback where something differs.
#[track_caller]
fn selectors(command: &str, paths: &[&Path]) {
    run(script("parts.py").arg(command).args(paths), LONG).success();
}

fn written() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    selectors("write", &[directory.path()]);
    let main = directory.path().join("main.h5");
    (directory, main)
}

#[test]
fn parts_are_what_numpy_picks() {
    let (directory, main) = written();
    let mount = Mount::new(&main);
    selectors("check", &[directory.path(), &mount.path]);
}

#[test]
fn cat_takes_selectors_and_refuses_long_ones() {
    let (_directory, main) = written();
    let cat = |path: &str| {
        let mut command = h5fs(["cat"]);
        run(command.arg(&main).arg(path), SOON)
    };
    assert_eq!(cat("names[[0,2]]").success().text(), "one\ndrei – ☃\n");
    assert_eq!(cat("grid/names[0,0]").success().text(), "one");
    let mut long = String::from("plane[[0");
    for place in 0..30_000 {
        write!(long, ",{}", place % 30).expect("a string takes all");
    }
    for end in ["]]", "],:]", "]"] {
        let refused = cat(&format!("{long}{end}"));
        assert!(!refused.status.success());
        assert!(
            refused.one_line().contains("name too long"),
            "{}",
            refused.one_line()
        );
    }
}

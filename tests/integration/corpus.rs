//! Tests real files from a corpus, if there is one: `$H5FS_CORPUS`, by default `../shared/corpus`
//! next to this crate. The conformance script is in `../tools` of that directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{H5FS, LONG, python, run};

/// Known differences: part of the file's path, part of the kind of row, and the reason. The list
/// should be empty.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("h5copy_extlinks_src.h5:/group_ext/", REACHABLE, EXTERNAL),
    ("h5diff_ext2softlink_src.h5:/ext_link_", REACHABLE, EXTERNAL),
    ("h5diff_extlink_src.h5:/ext_link_", REACHABLE, EXTERNAL),
    (
        "test_file.hdf5:/links_group/external_link",
        REACHABLE,
        EXTERNAL,
    ),
    (
        "test_file2.hdf5:/links_group/external_link",
        REACHABLE,
        EXTERNAL,
    ),
    (
        "fcidecomp.h5:",
        REACHABLE,
        "the filter FCIDECOMP is not undone",
    ),
    ("sperr.h5:", REACHABLE, "the filter SPERR is not undone"),
    (
        "sz3.h5:",
        REACHABLE,
        "the filters SZ and SZ3 are not undone",
    ),
];

const REACHABLE: &str = "dataset reachable";
const EXTERNAL: &str = "what an external link leads to is not mounted";

/// Returns the directory of the files. Skips the test if it does not exist.
#[track_caller]
pub(crate) fn directory() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let named = std::env::var_os("H5FS_CORPUS").map(PathBuf::from);
    let asked_for = named.is_some();
    let corpus = named.unwrap_or(beside);
    if corpus.join("hdf5").is_dir() {
        return Some(corpus);
    }
    let shown = corpus.display();
    assert!(!asked_for, "$H5FS_CORPUS leads to no corpus: {shown}");
    crate::harness::skip(&format!("no corpus at {shown}"));
    None
}

pub(crate) fn hdf5_files_conform() {
    let Some(corpus) = directory() else {
        return;
    };
    let conform = corpus.join("../tools/conform.py");
    if !conform.is_file() {
        crate::harness::skip(&format!("no script {}", conform.display()));
        return;
    }
    let mut command = Command::new(python());
    command
        .arg(&conform)
        .arg(H5FS)
        .arg(corpus.join("hdf5"))
        .arg(corpus.join("oracle/hdf5"));
    command
        .args(["--show", "100000"])
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let said = run(&mut command, LONG);
    let text = said.text();
    assert!(
        text.contains("\ntotal: "),
        "no total: {text}{}",
        said.stderr
    );
    let wrong: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("WRONG "))
        .filter(|line| {
            !EXCEPTIONS
                .iter()
                .any(|(file, kind, _)| line.contains(file) && line.contains(kind))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{}\n{}",
        wrong.join("\n"),
        text.lines().last().unwrap_or_default()
    );
}

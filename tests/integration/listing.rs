//! `h5fs ls` and `h5fs cat` behave like ls(1) and cat(1): flags, several paths, patterns, JSON.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Finished, LONG, h5fs, run, script};

fn made() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("source.h5");
    run(script("listing.py").arg("write").arg(&source), LONG).success();
    (directory, source)
}

fn ls(flags: &[&str], source: &Path, paths: &[&str]) -> Finished {
    run(h5fs(["ls"]).args(flags).arg(source).args(paths), LONG)
}

#[test]
fn flags_are_those_of_ls() {
    let (_directory, source) = made();
    let text = |flags: &[&str], paths: &[&str]| ls(flags, &source, paths).success().text();
    let names = "empty\nlink\nother\nrun_1\nrun_2\n";
    assert_eq!(text(&[], &[]), names);
    assert_eq!(text(&["-1"], &[]), names);
    assert_eq!(text(&["-a"], &[]), format!(".h5fs\n{names}"));
    assert_eq!(text(&["-a"], &["run_2"]), "data\ntitle\n");
    assert_eq!(text(&["-d"], &["run_2"]), "run_2\n");
    assert!(!text(&["-aR"], &[]).contains("/.h5fs:"));
    // 30 * 40 elements of 4 bytes are 4.6875 KiB.
    assert!(text(&["-lh"], &["run_1/data"]).ends_with(" 4.7K run_1/data\n"));
    assert!(text(&["-l"], &["run_1/data"]).ends_with(" 4800 run_1/data\n"));
    assert!(text(&["--help"], &[]).contains("human-readable"));
}

#[test]
fn paths_may_be_several_and_patterns() {
    let (_directory, source) = made();
    let listed = ls(&[], &source, &["run_*/title", "other/t*"]).success();
    assert_eq!(listed.text(), "run_1/title\nrun_2/title\nother/title\n");
    let listed = ls(&[], &source, &["run_[2-9]", "/run_1/d?ta"]).success();
    assert_eq!(listed.text(), "/run_1/data\n\nrun_2:\ndata\ntitle\n");
    let none = ls(&[], &source, &["no*"]);
    assert_eq!(none.one_line(), "h5fs: no*: no name matches this pattern");

    let cat = |paths: &[&str]| run(h5fs(["cat"]).arg(&source).args(paths), LONG);
    assert_eq!(
        cat(&["other/title", "run_*/title"]).success().text(),
        "other\nrun_1\nrun_2\n"
    );
    // A selector is a valid name.
    assert_eq!(cat(&["run_1/data[0]"]).success().stdout.len(), 160);
    assert_eq!(
        cat(&["no*"]).one_line(),
        "h5fs: no*: no name matches this pattern"
    );
}

#[test]
fn a_listing_in_json_says_what_h5py_reads() {
    let (directory, source) = made();
    let listing = directory.path().join("listing.json");
    let text = ls(&["-Rh", "--json"], &source, &[]).success().text();
    fs::write(&listing, &text).expect("write");
    run(
        script("listing.py").arg("check").args([&source, &listing]),
        LONG,
    )
    .success();
    assert_eq!(ls(&["--json"], &source, &["none"]).text(), "[]\n");
    // The same output is part of the output for several sources.
    let of_several = run(h5fs(["ls", "-R", "--json"]).args([&source, &source]), LONG).text();
    let name = source.display();
    let wanted = format!("{{\n\"{name}\": {text},\n\"{name}\": {text}\n}}\n");
    assert_eq!(of_several, wanted);
}

//! `h5fs ls`, `cat`, `ndl` and `check` of several sources and of directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Finished, H5FS, LONG, Mount, fixture, h5fs, python, run, script, tree};
use crate::inspect::{damaged, on_a_terminal};

/// Creates `a.h5`, `sub/b.h5`, `notes.txt`, and `torn.h5`, which cannot be read.
fn archive() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let top = directory.path().canonicalize().expect("path");
    fs::create_dir(top.join("sub")).expect("mkdir");
    fs::copy(fixture("tiny.latest.h5"), top.join("a.h5")).expect("copy");
    fs::copy(fixture("groups.latest.h5"), top.join("sub/b.h5")).expect("copy");
    fs::write(top.join("notes.txt"), "some words\n").expect("write");
    let whole = fs::read(top.join("a.h5")).expect("read");
    fs::write(top.join("torn.h5"), &whole[..60]).expect("write");
    (directory, top)
}

fn command(words: &[&str], top: &Path) -> Finished {
    run(h5fs(words).current_dir(top), LONG)
}

/// Returns the output of a command that must succeed.
#[track_caller]
fn said(words: &[&str], top: &Path) -> String {
    command(words, top).success().text()
}

#[test]
fn a_directory_is_listed_as_it_is_mounted() {
    let (_kept, top) = archive();
    fs::remove_file(top.join("torn.h5")).unwrap();
    assert_eq!(said(&["ls", "."], &top), "a.h5\nnotes.txt\nsub\n");
    assert_eq!(
        said(&["ls", ".", "sub/b.h5/"], &top),
        said(&["ls", "sub/b.h5"], &top)
    );
    let text = said(&["cat", ".", "notes.txt", "a.h5/text"], &top);
    assert_eq!(
        text,
        format!("some words\n{}", said(&["cat", "a.h5", "text"], &top))
    );

    // Every directory in the mount has a heading.
    let mount = Mount::new(&top);
    let is_directory = |path: &PathBuf| path.symlink_metadata().unwrap().is_dir();
    let directories = tree(&mount.path).into_iter().filter(is_directory);
    let mut found = vec!["/:".to_owned()];
    found.extend(
        directories.map(|path| format!("/{}:", path.strip_prefix(&mount.path).unwrap().display())),
    );
    let listed = said(&["ls", "-R", "."], &top);
    let mut headings: Vec<_> = listed.lines().filter(|line| line.ends_with(':')).collect();
    found.sort();
    headings.sort_unstable();
    assert_eq!(headings, found);
}

#[test]
fn several_sources_are_listed_in_their_order() {
    let (_kept, top) = archive();
    let listed = command(
        &["ls", "-l", "-j3", "sub/b.h5", "a.h5", "torn.h5", "."],
        &top,
    );
    let own = |source| said(&["ls", "-l", source], &top);
    let wanted = format!(
        "sub/b.h5:\n{}\na.h5:\n{}\ntorn.h5:\n\n.:\n{}",
        own("sub/b.h5"),
        own("a.h5"),
        own(".")
    );
    assert_eq!(listed.text(), wanted);
    assert_eq!(listed.status.code(), Some(1));
    let alone = command(&["ls", "torn.h5"], &top);
    let sum = "h5fs: 4 sources, 1 with errors";
    assert_eq!(listed.stderr, format!("{}\n{sum}\n", alone.one_line()));
}

/// A word that names a path in the first source is a path, even if a file of this name exists.
#[test]
fn paths_come_before_sources_of_the_same_name() {
    let (_kept, top) = archive();
    let group = said(&["ls", "--one", "a.h5", "group"], &top);
    fs::create_dir(top.join("group")).unwrap();
    assert_eq!(said(&["ls", "a.h5", "group"], &top), group);
    let both = said(&["ls", "a.h5", "sub"], &top);
    assert!(both.contains("\nsub:\nb.h5\n"), "{both}");
    let one = command(&["ls", "--one", "a.h5", "sub"], &top);
    assert_eq!(one.one_line(), "h5fs: sub: no such name");
    let text = said(&["cat", "a.h5", "text"], &top);
    fs::copy(top.join("a.h5"), top.join("c.h5")).unwrap();
    assert_eq!(said(&["cat", "a.h5", "c.h5", "text"], &top), text.repeat(2));
    let none = command(&["cat", "a.h5"], &top);
    assert_eq!(none.one_line(), "h5fs: cat: PATH is missing");
    assert_eq!(none.status.code(), Some(2));
}

/// The document of several files maps the name of each file to its own document.
#[test]
fn a_directory_is_described_file_by_file() {
    let (_kept, top) = archive();
    let (_damaged, bad) = damaged(b"OHDR", 1, 30);
    fs::copy(bad, top.join("damaged.h5")).unwrap();
    let mut compare = script("descriptions.py");
    run(compare.args(["--several", H5FS]).arg(&top), LONG).success();
    let sub = said(&["ndl", "a.h5", "group"], &top);
    assert_eq!(said(&["ndl", ".", "a.h5/group"], &top), sub);
}

/// Names that are not UTF-8 remain distinct in JSON. Python's `os.fsencode` of the parsed JSON text
/// must return the original names.
#[test]
fn names_that_are_no_text_are_keys_of_their_own() {
    let (_kept, top) = archive();
    fs::remove_file(top.join("torn.h5")).unwrap();
    for name in [b"sub/a\xe8.h5", b"sub/a\xe9.h5"] {
        fs::copy(top.join("a.h5"), top.join(OsStr::from_bytes(name))).unwrap();
    }
    let names = |json: &str, code: &str| {
        let mut read = Command::new(python());
        read.args(["-c", &format!("import json, os, sys; told = json.loads(sys.argv[1]); print(sorted(os.fsencode(name) for name in {code}))"), json]);
        run(&mut read, LONG).success().text()
    };
    let mapped = said(&["ndl", "--json", "sub"], &top);
    assert_eq!(
        names(&mapped, "told"),
        "[b'sub/a\\xe8.h5', b'sub/a\\xe9.h5', b'sub/b.h5']\n"
    );
    let listed = said(&["ls", "--json", "sub"], &top);
    let paths = "(entry['path'] for entry in told)";
    assert_eq!(
        names(&listed, paths),
        "[b'/a\\xe8.h5', b'/a\\xe9.h5', b'/b.h5']\n"
    );
}

/// The lines are in the order of the files, whatever time each file takes.
#[test]
fn a_check_keeps_the_order_of_the_files() {
    let (_first, bad) = damaged(b"OHDR", 1, 30);
    let (_kept, top) = archive();
    fs::copy(fixture("links-100k.latest.h5"), top.join("0.h5")).unwrap();
    for name in ["1.h5", "sub/0.h5"] {
        fs::copy(&bad, top.join(name)).unwrap();
    }
    let checked = command(&["check", "-j4", "."], &top);
    let text = checked.text();
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    let mut files: Vec<_> = names.iter().map(|(name, _)| *name).collect();
    files.dedup();
    assert_eq!(files, ["./1.h5", "./sub/0.h5"]);
    assert!(
        text.lines().last().unwrap().starts_with("6 files, "),
        "{text}"
    );
    let alone = command(&["check", "torn.h5"], &top);
    let (joining, faults): (Vec<_>, Vec<_>) = checked
        .stderr
        .lines()
        .partition(|line| line.starts_with("h5fs: .: warning: "));
    assert_eq!(faults, [alone.one_line().replace("torn", "./torn")]);
    // The reasons that keep these files from being joined are reported as well.
    let left_out = ["0.h5", "1.h5", "sub/0.h5", "torn.h5"];
    assert_eq!(joining.len(), left_out.len());
    for (line, name) in joining.iter().zip(left_out) {
        let begin = format!("h5fs: .: warning: .h5fs/joined:{name}: left out: ");
        assert!(line.starts_with(&begin), "{line}");
    }
}

#[test]
fn a_check_of_a_directory_shows_how_far_it_is() {
    let (_kept, top) = archive();
    for copy in 0..40 {
        fs::copy(fixture("tiny.latest.h5"), top.join(format!("{copy}.h5"))).unwrap();
    }
    let shown = on_a_terminal("check -j1", &top, &[]);
    assert!(
        shown.contains(" of 43 files, ") && shown.contains("/s\x1b[K"),
        "{shown:?}"
    );
    // The sum starts at the beginning of a line, where the progress was before.
    let sum = shown.trim_end().rsplit(['\n', '\r']).next().unwrap();
    assert!(
        sum.trim_start_matches("\x1b[K").starts_with("43 files, "),
        "{shown:?}"
    );
    assert!(!on_a_terminal("check", &top, &[("TERM", "dumb")]).contains('\x1b'));
    let coloured = on_a_terminal(
        &format!("ls '{}'", fixture("tiny.latest.h5").display()),
        &top,
        &[],
    );
    assert!(coloured.contains("\x1b[1;34mgroup\x1b[0m"), "{coloured:?}");
}

/// Closing the output pipe ends all processes.
#[test]
fn a_closed_pipe_is_no_error() {
    let (_kept, top) = archive();
    let mut piped = Command::new("sh");
    piped.args(["-c", "\"$0\" ls -lR . . . . a.h5 | head -n 1", H5FS]);
    let finished = run(piped.current_dir(&top), LONG).success();
    assert_eq!(
        (finished.text(), finished.stderr),
        (".:\n".to_owned(), String::new())
    );
}

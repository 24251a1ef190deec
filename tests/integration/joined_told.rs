//! Joined files: every omission is reported wherever the joined files are shown.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Stdio;

use crate::harness::{
    Finished, LONG, MOUNT_LIMIT, Mount, SOON, eventually, h5fs, is_root, run, script,
};

#[track_caller]
fn told(command: &str, paths: &[&Path]) {
    let mut python = script("joined_told.py");
    run(python.arg(command).args(paths), LONG).success();
}

/// Runs a command on the joined files of a directory, without a cache.
fn said(words: &[&str], source: &Path, path: &str) -> Finished {
    let mut command = h5fs(words);
    command.arg(source);
    if !path.is_empty() {
        command.arg(path);
    }
    command.env("XDG_CACHE_HOME", "/dev/null");
    run(&mut command, MOUNT_LIMIT)
}

#[test]
fn nothing_is_left_out_untold() {
    let directory = tempfile::tempdir().expect("temporary directory");
    told("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    told("check", &[directory.path(), &mount.path]);
    let at = |name: &str| directory.path().join(name);
    let rows = |days: &[u8]| -> String {
        let days = days.iter().map(|day| format!("{day}.0\n"));
        days.collect()
    };
    for (name, warning, days) in [
        ("cut", "f1.nc: left out: ", &[0, 1, 2, 6, 7, 8][..]),
        (
            "linked",
            "out.nc: left out: a link",
            &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        ),
    ] {
        for words in [&["ls"][..], &["ndl"]] {
            let done = said(words, &at(name), ".h5fs/joined").success();
            assert!(done.stderr.contains(warning), "{name}: {}", done.stderr);
        }
        let done = said(&["cat"], &at(name), ".h5fs/joined/.h5fs/csv/v.csv").success();
        assert!(done.stderr.contains(warning), "{name}: {}", done.stderr);
        assert_eq!(done.text(), rows(days), "{name}");
        let done = said(&["ls", "-q"], &at(name), ".h5fs/joined").success();
        assert_eq!(done.stderr, "");
    }
    // A file in which the block of another one was is missing.
    let done = said(&["check"], &at("exploded"), "");
    let line = "/pixels: other ASDF file e00000.asdf: missing (e0.asdf)";
    assert!(done.stderr.contains(line), "{}", done.stderr);
    // If `external=` forbids one array of a file, the other arrays of this file remain.
    let policy = at("policy");
    let rest = said(&["cat"], &policy, ".h5fs/joined/.h5fs/csv/v.csv").success();
    assert_eq!(rest.text(), rows(&[0, 1, 2, 3, 4, 5, 6, 7, 8]));
    let forbidden = said(&["cat"], &policy, ".h5fs/joined/more");
    assert_eq!(forbidden.status.code(), Some(1), "{forbidden:?}");
    assert!(
        forbidden.stderr.contains("outside the source's directory"),
        "{forbidden:?}"
    );
}

#[test]
fn texts_and_scalars_are_those_of_each_file() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let texts = |command: &str, paths: &[&Path]| {
        let mut python = script("joined_texts.py");
        run(python.arg(command).args(paths), LONG).success();
    };
    texts("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &[]);
    texts("check", &[directory.path(), &mount.path]);
}

#[test]
fn blocks_with_another_checksum_are_not_shown() {
    let directory = tempfile::tempdir().expect("temporary directory");
    told("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), &["-o", "verify=on"]);
    told("verified", &[directory.path(), &mount.path]);
}

#[test]
fn what_may_not_be_read_is_told() {
    let directory = tempfile::tempdir().expect("temporary directory");
    told("write", &[directory.path()]);
    let top = directory.path().join("links/of");
    // Root reads as the directory's owner.
    let owner = is_root().then_some(1000);
    let own = |path: &Path| chown(path, owner, owner).expect("its owner");
    let closed = fs::Permissions::from_mode(0o000);
    fs::create_dir(top.join("sub")).expect("a directory");
    for path in [&top.join("f1.nc"), &top.join("sub")] {
        own(path);
        fs::set_permissions(path, closed.clone()).expect("its mode");
    }
    let mut above = directory.path().to_path_buf();
    for name in ["", "links", "of"] {
        above = above.join(name);
        own(&above);
    }
    let done = said(&["ls"], &top, ".h5fs/joined").success();
    for name in ["f1.nc", "sub"] {
        let line = format!("{name}: left out: {name}: Permission denied");
        assert!(done.stderr.contains(&line), "{}", done.stderr);
    }
    let done = said(&["check"], &top, "");
    assert!(done.stderr.contains("f1.nc"), "{}", done.stderr);
    // With a pattern that does not match this file, the file is not mentioned.
    let chosen = format!("{}[f2*]", top.display());
    let done = said(&["ls"], Path::new(&chosen), "").success();
    assert!(!done.stderr.contains("f1.nc"), "{}", done.stderr);
}

#[test]
fn a_file_that_was_locked_comes_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    run(script("joined.py").arg("days").arg(directory.path()), LONG).success();
    let mut python = script("joined_told.py");
    python.arg("lock").arg(directory.path().join("day_3.nc"));
    python.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut writer = python.spawn().expect("Python");
    let mut line = String::new();
    let output = writer.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let mount = Mount::with(directory.path(), &[]);
    let files = || fs::read(mount.at(".h5fs/joined/a")).map_or(0, |shown| shown.len() / 16);
    assert_eq!(files(), 19);
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("the errors");
    assert!(errors.contains("day_3.nc: left out"), "{errors}");
    drop(writer.stdin.take());
    assert!(writer.wait().expect("its end").success());
    // Neither the bytes nor the timestamp of the file have changed.
    eventually(SOON, "the file is there again", || files() == 20);
}

#[test]
fn patterns_on_a_command_line() {
    let home = tempfile::tempdir().expect("temporary directory");
    let top = home.path().join("b[1]");
    fs::create_dir(&top).expect("a directory");
    run(script("joined.py").arg("days").arg(&top), LONG).success();
    // A neighbour with a similar name is a separate directory.
    fs::create_dir(home.path().join("b")).expect("a directory");
    let word = |pattern: &str| format!("{}[{pattern}]", top.display());
    let done = said(&["ls"], Path::new(&word("day_1*.nc")), "").success();
    assert_eq!(done.text(), "a\ntime\nx\n");
    for command in ["ls", "ndl"] {
        let done = said(&[command], Path::new(&word("none*")), "");
        assert_eq!(done.status.code(), Some(1), "{command}");
        assert!(
            done.stderr.contains("no file can be joined"),
            "{}",
            done.stderr
        );
        let done = said(&[command], Path::new(&word("day_1*")), "../../day_0.nc");
        assert!(
            !done.status.success() && done.stdout.is_empty(),
            "{command}"
        );
    }
    let done = said(&["check"], Path::new(&word("day_1?.nc")), "").success();
    assert!(done.text().contains("10 files"), "{}", done.text());
    let done = said(&["ndl"], &top, ".h5fs/joined.zarr/a");
    assert!(
        !done.stderr.contains("joined.zarr/.h5fs"),
        "{}",
        done.stderr
    );
}

#[test]
fn nothing_of_the_users_is_deleted() {
    let directory = tempfile::tempdir().expect("temporary directory");
    run(script("joined.py").arg("days").arg(directory.path()), LONG).success();
    let data = tempfile::tempdir().expect("temporary directory");
    let beneath = data.path().join("joined");
    fs::create_dir(&beneath).expect("a directory");
    let results = ["results-2024.nc", "0123456789abcdef0123456789abcdef"];
    for name in results {
        // A sparse file, without blocks on the disk.
        let file = File::create(beneath.join(name)).expect("a file");
        file.set_len(300 << 20).expect("its length");
    }
    let cache = format!("disk_cache={}", data.path().display());
    let mount = Mount::with(directory.path(), &["-o", &cache]);
    assert_eq!(fs::read(mount.at(".h5fs/joined/a")).expect("it").len(), 320);
    mount.unmount();
    mount.must_be_gone(MOUNT_LIMIT);
    for name in results {
        let there = beneath.join(name).metadata().expect("the file");
        assert_eq!(there.len(), 300 << 20);
    }
}

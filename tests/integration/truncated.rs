//! A small file that is cut at every 512 bytes. The cut file is mounted, or refused with one line.
//! A walk through it ends, and everything that can be read equals the whole file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::archive::xattr;
use crate::harness::{LONG, MOUNT_LIMIT, Mount, eventually, fixture, h5fs, run, script, tree};

const STEP: usize = 512;

const ERROR: &str = "user.h5fs.error";

/// Returns the content of every regular file that can be read.
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
    let (mut compared, mut has_log) = (0, false);
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
                compared += 1;
            }
            fs::metadata(&mount.path).expect("the mount answers after the walk");
            let logged = fs::read(&log).unwrap_or_default();
            has_log |= !logged.is_empty();
            let logged = String::from_utf8_lossy(&logged).into_owned();
            assert!(!logged.contains("panicked"), "cut at {length}: {logged}");
        } else {
            finished.one_line();
            assert!(!mount.is_up(), "refused, but mounted");
        }
    }
    assert!(
        compared > 20 && has_log,
        "{compared} datasets, a log: {has_log}"
    );
}

#[test]
fn old_file() {
    cut_everywhere("tiny.earliest.h5");
}

#[test]
fn new_file() {
    cut_everywhere("tiny.latest.h5");
}

/// A file that is cut in the middle is mounted with one warning, and shows the remaining data.
#[test]
fn a_file_that_is_cut_off_says_so() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let [whole, cut] = ["whole.h5", "cut.h5"].map(|name| directory.path().join(name));
    let written = run(script("cut_off.py").arg("write").arg(&whole), LONG).success();
    let groups = written.text();
    let content = fs::read(&whole).expect("read");
    let left = content.len() / 4 * 3;
    fs::write(&cut, &content[..left]).expect("write");
    run(script("cut_off.py").arg("check").arg(&cut), LONG).success();

    let reason = format!(
        "the file is truncated: it has {left} of the {} bytes that its superblock specifies \
         (corrupt)",
        content.len()
    );
    let warning = format!("warning: {}: {reason}", cut.display());
    let (mount, finished) = Mount::attempt(&cut, &[]);
    assert_eq!(finished.success().stderr, format!("h5fs: {warning}\n"));
    let error = |path: &Path| xattr(path, ERROR).expect("user.h5fs.error");
    assert_eq!(error(&mount.path), reason);
    let errors = fs::read_to_string(mount.at(".h5fs/errors")).expect("errors");
    assert!(errors.contains(&format!(" /: {reason}\n")), "{errors}");

    let mut unreadable = 0;
    let shown = groups.lines().map(|group| mount.at(group));
    for group in shown.filter(|group| group.exists()) {
        assert!(group.is_dir(), "{}", group.display());
        if let Some(reason) = xattr(&group, ERROR) {
            assert!(reason.contains("past the end of the file"), "{reason}");
            let listed = fs::read_dir(&group).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let code = listed.expect_err("a listing").raw_os_error();
            assert_eq!(code, Some(Errno::EIO as i32));
            unreadable += 1;
        }
    }
    assert!(unreadable > 0);
    let reference = Mount::new(&whole);
    let (all, found) = (contents(&reference.path), contents(&mount.path));
    assert!(
        found.len() > 20
            && found
                .iter()
                .all(|(path, bytes)| all.get(path) == Some(bytes))
    );

    let checked = run(h5fs(["check"]).arg(&cut), LONG);
    assert_eq!(checked.status.code(), Some(1));
    let text = checked.text();
    assert!(text.starts_with(&format!("/: {reason}\n")), "{text}");
    let faults = text.lines().count() - 1;
    assert_eq!(faults, unreadable + 1, "{text}");
}

/// In the foreground the log goes to standard error, with one warning.
#[test]
fn commands_warn_of_a_file_that_is_cut_off() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cut = directory.path().join("cut.h5");
    let content = fs::read(fixture("tiny.latest.h5")).expect("fixture");
    fs::write(&cut, &content[..content.len() - 1]).expect("write");
    for words in [&["ls"][..], &["cat", "contiguous"], &["ndl"]] {
        let said = run(h5fs(&words[..1]).arg(&cut).args(&words[1..]), LONG);
        let times = said.stderr.matches("the file is truncated").count();
        assert_eq!(times, 1, "{said:?}");
    }
}

#[test]
fn a_file_that_is_cut_off_says_so_in_the_foreground() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let cut = directory.path().join("cut.h5");
    let content = fs::read(fixture("tiny.latest.h5")).expect("fixture");
    fs::write(&cut, &content[..content.len() - 1]).expect("write");
    let mount = Mount::prepare();
    let mut command = h5fs(["-f"]);
    command.arg(&cut).arg(&mount.path);
    command.stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("start");
    eventually(MOUNT_LIMIT, "it is served", || {
        mount.at("contiguous").is_file()
    });
    mount.unmount_when_free();
    let said = child.wait_with_output().expect("end").stderr;
    let said = String::from_utf8(said).expect("text");
    assert_eq!(said.matches("the file is truncated").count(), 1, "{said}");
}

//! Strings and characters as lines of text, compared with what h5py, asdf and NumPy read.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use tempfile::TempDir;

use crate::harness::{LONG, Mount, SOON, run, script};

#[track_caller]
fn strings(command: &str, paths: &[&Path]) {
    run(script("strings.py").arg(command).args(paths), LONG).success();
}

fn written() -> TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    strings("write", &[directory.path()]);
    directory
}

#[test]
fn each_string_is_a_line() {
    let directory = written();
    for name in ["strings.h5", "strings.asdf"] {
        let file = directory.path().join(name);
        let mount = Mount::new(&file);
        strings("check", &[&file, &mount.path]);
    }
}

#[test]
fn lines_are_as_many_as_strings() {
    let directory = written();
    let mount = Mount::new(&directory.path().join("strings.h5"));
    for name in ["fixed", "variable"] {
        let path = mount.at(&format!(".h5fs/text/{name}.txt"));
        let counted = run(Command::new("wc").arg("-l").arg(path), SOON).success();
        assert!(counted.text().starts_with("3000 "), "{}", counted.text());
    }
    let [fixed, variable] = ["fixed", "variable"]
        .map(|name| fs::read(mount.at(&format!(".h5fs/text/{name}.txt"))).expect("text"));
    assert_eq!(fixed, variable);
    assert_eq!(variable, fs::read(mount.at("variable")).expect("strings"));
}

/// A billion strings, and strings of a gibibyte, all without stored data.
#[test]
fn huge_strings_cost_nothing() {
    let directory = written();
    let mount = Mount::new(&directory.path().join("strings.h5"));
    let (worker, _) = mount.worker_and_supervisor(&directory.path().join("strings.h5"));
    let head = fs::read(mount.at(".h5fs/text/many[:100000].txt")).expect("a part");
    assert_eq!(head, vec![b'\n'; 100_000]);
    for name in ["many", "long"] {
        let path = mount.at(&format!(".h5fs/text/{name}.txt"));
        let refused = fs::read(path).expect_err("too long");
        assert_eq!(refused.raw_os_error(), Some(Errno::EIO as i32), "{name}");
    }
    let spent = worker.processor_time();
    assert!(spent < Duration::from_secs(10), "{spent:?}");
}

//! ASDF files that the asdf library writes at test time, mounted and compared with what it reads.

use std::process::Command;
use std::time::Duration;

use crate::harness::{H5FS, run, script};

/// Files per run; a seed and a count of one's own: `tests/fixtures/asdf_roundtrip.py`.
const FILES: &str = "120";

#[test]
fn what_the_library_writes_is_what_the_mount_serves() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut command: Command = script("asdf_roundtrip.py");
    command
        .args([H5FS, "20261121", FILES])
        .arg(directory.path());
    let finished = run(&mut command, Duration::from_secs(240));
    println!("{}", finished.text());
    assert!(
        finished.status.success(),
        "{}{}",
        finished.text(),
        finished.stderr
    );
}

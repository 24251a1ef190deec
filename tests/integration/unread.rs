//! Parts that a convention requires and that cannot be read. The views that need such a part report
//! this, and show no value that would depend on it.

use crate::harness::{LONG, Mount, run, script};

#[test]
fn what_cannot_be_read_is_not_absent() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let written = directory.path();
    run(script("unread.py").arg("write").arg(written), LONG).success();
    let mount = Mount::new(written);
    let mut check = script("unread.py");
    run(check.arg("check").args([written, &mount.path]), LONG).success();
}

//! As the helper of mount(8): by its name, and by way of mount(8) itself where the test may touch
//! `/sbin` and the PATH.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::harness::{H5FS, MOUNT_LIMIT, Mount, SOON, fixture, is_root, mount_line, run};

/// A link that exists for one test. Never takes the place of what is installed already.
struct Link {
    path: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Link {
    fn new(path: &str) -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = PathBuf::from(path);
        if !is_root() {
            crate::harness::skip(&format!("only root can make {}", path.display()));
            return None;
        }
        // one that a killed run left behind points to this very program
        if fs::read_link(&path).is_ok_and(|to| to == Path::new(H5FS)) {
            fs::remove_file(&path).expect("remove a stale link");
        }
        match symlink(H5FS, &path) {
            Ok(()) => Some(Self {
                path,
                _alone: alone,
            }),
            Err(error) => {
                crate::harness::skip(&format!("{}: {error}", path.display()));
                None
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// `mount.h5fs` in a directory of its own.
fn helper(directory: &TempDir) -> Command {
    let path = directory.path().join("mount.h5fs");
    if !path.exists() {
        symlink(H5FS, &path).expect("symlink");
    }
    Command::new(path)
}

#[test]
fn mounts_under_its_helper_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mount = Mount::prepare();
    let mut command = helper(&directory);
    command.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    command.args([
        "-n",
        "-s",
        "-v",
        "-r",
        "-w",
        "-t",
        "h5fs",
        "-o",
        "rw,noauto,user,x-foo=bar",
    ]);
    run(&mut command, MOUNT_LIMIT).success();
    assert!(mount.at("contiguous").is_file());
    mount.unmount();
    mount.must_be_gone(SOON);
}

#[test]
fn fake_mounts_nothing_but_checks_the_arguments() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mount = Mount::prepare();
    let source = fixture("tiny.latest.h5");
    run(
        helper(&directory).arg(&source).arg(&mount.path).arg("-f"),
        MOUNT_LIMIT,
    )
    .success();
    assert!(!mount.is_up());
    assert!(mount.processes().is_empty());
    let wrong = ["-f", "-o", "colour=red"];
    run(
        helper(&directory).arg(&source).arg(&mount.path).args(wrong),
        MOUNT_LIMIT,
    )
    .one_line();
}

#[test]
fn has_no_subcommands_as_a_helper() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let finished = run(
        helper(&directory).arg("ls").arg(fixture("tiny.latest.h5")),
        MOUNT_LIMIT,
    );
    assert!(
        !finished.status.success(),
        "read as a source named ls: {finished:?}"
    );
    assert!(finished.stdout.is_empty());
}

#[test]
fn mount_type_h5fs() {
    let Some(_link) = Link::new("/sbin/mount.h5fs") else {
        return;
    };
    let mount = Mount::prepare();
    let mut command = Command::new("mount");
    command.args(["-t", "h5fs", "-o", "ro,noatime,uid=12"]);
    run(
        command.arg(fixture("tiny.latest.h5")).arg(&mount.path),
        MOUNT_LIMIT,
    )
    .success();
    assert!(mount.at("contiguous").is_file());
    let done = run(Command::new("umount").arg(&mount.path), MOUNT_LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    mount.must_be_gone(SOON);
}

#[test]
fn mount_type_h5fs_says_why_not() {
    let Some(_link) = Link::new("/sbin/mount.h5fs") else {
        return;
    };
    let mount = Mount::prepare();
    let text = mount.path.with_file_name("text.h5");
    fs::write(&text, b"no arrays here").expect("write");
    let mut command = Command::new("mount");
    let finished = run(
        command.args(["-t", "h5fs"]).arg(&text).arg(&mount.path),
        MOUNT_LIMIT,
    );
    assert!(
        !finished.status.success() && finished.stderr.contains("text.h5"),
        "{finished:?}"
    );
    assert!(!mount.is_up());
}

#[test]
fn fstab_line() {
    let Some(_link) = Link::new("/sbin/mount.h5fs") else {
        return;
    };
    let mount = Mount::prepare();
    let table = mount.path.with_file_name("fstab");
    let source = fixture("tiny.latest.h5");
    let line = format!(
        "{} {} h5fs ro,nofail,noauto,_netdev,x-systemd.automount,allow_other,cache_size=32M 0 0\n",
        source.display(),
        mount.path.display()
    );
    fs::write(&table, line).expect("write");
    run(
        Command::new("mount").arg("-T").arg(&table).arg(&mount.path),
        MOUNT_LIMIT,
    )
    .success();
    assert!(mount.at("contiguous").is_file());
    assert!(mount_line(&mount.path).contains("allow_other"));
    run(Command::new("umount").arg(&mount.path), MOUNT_LIMIT).success();
    mount.must_be_gone(SOON);
}

#[test]
fn mount_type_fuse_h5fs() {
    let Some(_link) = Link::new("/usr/local/bin/h5fs") else {
        return;
    };
    let mount = Mount::prepare();
    let mut command = Command::new("mount");
    command.args(["-t", "fuse.h5fs", "-o", "ro"]);
    command.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    run(&mut command, MOUNT_LIMIT).success();
    assert!(mount.at("contiguous").is_file());
    mount.unmount();
    mount.must_be_gone(SOON);
}

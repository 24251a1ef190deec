//! The program as a helper of mount(8): called by its name, and by mount(8) itself if the test may
//! write to `/sbin` and the PATH.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::harness::{H5FS, MOUNT_LIMIT, Mount, SOON, fixture, is_root, mount_line, run};

/// Symbolic links that exist during one test, and that never replace an installed program.
struct Links {
    made: Vec<PathBuf>,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Links {
    fn new(paths: &[&str]) -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_root() {
            crate::harness::skip(&format!("only root can make {paths:?}"));
            return None;
        }
        let mut links = Links {
            made: Vec::new(),
            _alone: alone,
        };
        for path in paths.iter().map(PathBuf::from) {
            // a link from a killed run leads to this same program
            if fs::read_link(&path).is_ok_and(|to| to == Path::new(H5FS)) {
                fs::remove_file(&path).expect("remove a stale link");
            }
            if let Err(error) = symlink(H5FS, &path) {
                crate::harness::skip(&format!("{}: {error}", path.display()));
                return None;
            }
            links.made.push(path);
        }
        Some(links)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for path in &self.made {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns `mount.h5fs` in a separate directory.
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
    let refused = run(
        helper(&directory).arg(&source).arg(&mount.path).args(wrong),
        MOUNT_LIMIT,
    );
    refused.one_line();
    assert_eq!(refused.status.code(), Some(32));
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
    let Some(_links) = Links::new(&["/sbin/mount.h5fs"]) else {
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
    let Some(_links) = Links::new(&["/sbin/mount.h5fs"]) else {
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
    assert!(finished.stderr.contains("text.h5"), "{finished:?}");
    assert_eq!(finished.status.code(), Some(32), "{finished:?}");
    assert!(!mount.is_up());
}

/// No harmless word in fstab stops a boot.
#[test]
fn every_word_of_mount_is_harmless() {
    let Some(_links) = Links::new(&["/sbin/mount.h5fs", "/usr/local/bin/h5fs"]) else {
        return;
    };
    let mount = Mount::prepare();
    let attempt = |words: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "h5fs", "-o", words]);
        command.arg(fixture("tiny.latest.h5")).arg(&mount.path);
        run(&mut command, MOUNT_LIMIT)
    };
    let words = "defaults,auto,user,nofail,_netdev,async,sync,dirsync,atime,noatime,diratime,\
                 nodiratime,relatime,norelatime,strictatime,nostrictatime,lazytime,nolazytime,\
                 exec,noexec,suid,nosuid,dev,nodev,mand,nomand,silent,loud,iversion,noiversion,\
                 nosymfollow,X-mount.mkdir,x-systemd.automount,comment=a,ro";
    attempt(words).success();
    assert!(mount.at("contiguous").is_file());
    // For an existing mount, mount(8) only knows the kernel's filesystem type, and calls `h5fs`.
    let remount = |words: &str| {
        let mut command = Command::new("mount");
        command.args(["-o", words]).arg(&mount.path);
        run(&mut command, MOUNT_LIMIT)
    };
    remount("remount,ro").success();
    assert!(mount.at("contiguous").is_file());
    let mut rewritten = Command::new("/sbin/mount.h5fs");
    rewritten.arg(fixture("tiny.latest.h5")).arg(&mount.path);
    let refused = run(rewritten.args(["-o", "remount,rw"]), MOUNT_LIMIT);
    let line = refused.one_line();
    assert!(
        line.ends_with("-o remount,rw: the mount is read-only"),
        "{line}"
    );
    assert_eq!(refused.status.code(), Some(32));
    run(Command::new("umount").arg(&mount.path), MOUNT_LIMIT).success();
    mount.must_be_gone(SOON);
    let wrong = attempt("ro,colour=red");
    assert_eq!(wrong.status.code(), Some(32), "{wrong:?}");
    assert!(
        wrong.stderr.contains("`colour=red`: no such option"),
        "{wrong:?}"
    );
}

#[test]
fn fstab_line() {
    let Some(_links) = Links::new(&["/sbin/mount.h5fs"]) else {
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
    let Some(_links) = Links::new(&["/usr/local/bin/h5fs"]) else {
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

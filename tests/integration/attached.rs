//! Mounts that another program makes, and that h5fs serves through a file descriptor.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{
    H5FS, LONG, Mount, Process, SOON, eventually, fixture, h5fs, is_root, mount_line, processes_of,
    python, run, tree, wait,
};

const LAUNCHER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/packaging/kubernetes/launcher.py"
);

/// An ordinary user.
const NOBODY: u32 = 65534;

/// A launcher that has mounted, and h5fs, which serves the mount as the user nobody.
struct AttachedMount {
    mount: Mount,
    launcher: Child,
    served: Child,
}

impl AttachedMount {
    /// Starts both. Returns when the mount answers.
    #[track_caller]
    fn new(source: &Path, options: &[&str]) -> Self {
        let mount = Mount::prepare();
        let socket = source.with_file_name("socket");
        let launcher = launcher().arg(&socket).arg(&mount.path).spawn();
        let launcher = launcher.expect("the launcher");
        eventually(SOON, "the launcher mounts", || {
            socket.exists() && !mount_line(&mount.path).is_empty()
        });
        let served = AttachedMount::serve(&mount, source, options);
        AttachedMount {
            mount,
            launcher,
            served,
        }
    }

    /// Starts h5fs. Returns when the mount answers.
    #[track_caller]
    fn serve(mount: &Mount, source: &Path, options: &[&str]) -> Child {
        // The build directory may not be accessible to others, so they use copies.
        let (program, script) = (
            source.with_file_name("h5fs"),
            source.with_file_name("launcher"),
        );
        fs::copy(H5FS, &program).expect("a copy");
        fs::copy(LAUNCHER, &script).expect("a copy");
        let mut served = Command::new("/usr/bin/python3");
        served.arg(script).arg("--receive");
        served.args([&source.with_file_name("socket"), &program]);
        served.args(options).arg(source).arg("{}");
        let mut served = served.uid(NOBODY).gid(NOBODY).spawn().expect("h5fs");
        eventually(LONG, "the mount answers", || {
            let ended = served.try_wait().expect("a process");
            assert!(ended.is_none(), "h5fs has ended: {ended:?}");
            mount.at(".h5fs/status").exists()
        });
        served
    }

    #[track_caller]
    fn must_end_with_success(mut self) {
        let ended = wait(&mut self.served, SOON).expect("h5fs ends");
        assert!(ended.success(), "{ended:?}");
    }
}

impl Drop for AttachedMount {
    fn drop(&mut self) {
        for child in [&mut self.served, &mut self.launcher] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the command of the launcher that the documents show.
fn launcher() -> Command {
    let mut command = Command::new(python());
    command.arg(LAUNCHER);
    command
}

/// Returns whether the launcher can run. Otherwise skips the test.
#[track_caller]
fn can_launch() -> bool {
    let can = is_root() && Path::new("/usr/bin/python3").exists();
    if !can {
        crate::harness::skip("only root can mount without a helper, and others need a Python");
    }
    can
}

/// Returns the worker that serves the source.
fn worker(source: &Path) -> Process {
    let processes = processes_of(source);
    let worker = processes
        .into_iter()
        .find(|process| process.is_called("worker"));
    worker.expect("a worker")
}

/// Returns the paths of all views.
fn views(mount: &Mount) -> Vec<PathBuf> {
    let below = tree(&mount.at(".h5fs")).into_iter();
    let relative = below.map(|path| {
        path.strip_prefix(&mount.path)
            .expect("a path below")
            .to_path_buf()
    });
    relative.collect()
}

/// Copies a fixture to a directory that every user can enter.
fn public_copy(directory: &Path, name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;

    let copy = directory.join(name);
    fs::copy(fixture(name), &copy).expect("a copy");
    for (path, mode) in [(directory, 0o755), (&copy, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    }
    copy
}

#[test]
fn a_user_without_privileges_serves_a_mount_that_a_launcher_has_made() {
    if !can_launch() {
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = public_copy(directory.path(), "tiny.latest.h5");
    let attached = AttachedMount::new(&source, &["-o", "cache_size=1M"]);
    let worker = worker(&source);
    let status = fs::read_to_string(format!("/proc/{}/status", worker.pid)).expect("status");
    let users = status.lines().find(|line| line.starts_with("Uid:"));
    assert_eq!(users, Some("Uid:\t65534\t65534\t65534\t65534"));

    let ordinary = Mount::new(&source);
    let mut same = Command::new("diff");
    same.args(["-r", "-x", ".h5fs"])
        .args([&ordinary.path, &attached.mount.path]);
    run(&mut same, LONG).success();
    assert_eq!(views(&ordinary), views(&attached.mount));

    // The end of the mount is the end of the program.
    run(Command::new("umount").arg(&attached.mount.path), SOON).success();
    attached.must_end_with_success();
    worker.must_end(SOON);
}

#[test]
fn a_signal_ends_the_program_and_the_launcher_mounts_anew() {
    if !can_launch() {
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = public_copy(directory.path(), "tiny.latest.h5");
    let mut attached = AttachedMount::new(&source, &[]);
    let worker = worker(&source);
    let first = Pid::from_raw(i32::try_from(attached.served.id()).expect("a PID"));
    kill(first, Signal::SIGTERM).expect("kill");
    worker.must_end(SOON);
    let ended = wait(&mut attached.served, SOON).expect("h5fs ends");
    assert!(ended.success(), "{ended:?}");
    attached.served = AttachedMount::serve(&attached.mount, &source, &[]);
    run(Command::new("umount").arg(&attached.mount.path), SOON).success();
    attached.must_end_with_success();
}

#[test]
fn a_descriptor_that_is_no_mount_is_refused_with_one_line() {
    let source = fixture("tiny.latest.h5");
    let mut closed = h5fs([source.as_os_str(), "/dev/fd/99".as_ref()]);
    let said = run(&mut closed, SOON);
    assert_eq!(said.status.code(), Some(1));
    assert_eq!(said.one_line(), "h5fs: /dev/fd/99: Bad file descriptor");

    let mut file = h5fs([source.as_os_str(), "/dev/fd/0".as_ref()]);
    let said = run(file.stdin(std::process::Stdio::null()), SOON);
    assert_eq!(said.status.code(), Some(2));
    assert_eq!(
        said.one_line(),
        "h5fs: /dev/fd/0: it is not an open /dev/fuse"
    );

    for word in ["noexec", "nosymfollow", "remount"] {
        let mut refused = h5fs(["-o", word]);
        let said = run(refused.arg(&source).arg("/dev/fd/99"), SOON);
        assert_eq!(said.status.code(), Some(2), "{word}");
        let line = format!(
            "h5fs: -o {word}: the program that makes the mount behind /dev/fd/99 sets this option"
        );
        assert_eq!(said.one_line(), line);
    }
}

/// A device that is open, but was never mounted, belongs to no filesystem.
#[test]
fn an_open_device_without_a_mount_is_refused() {
    if !Path::new("/dev/fuse").exists() {
        return;
    }
    let source = fixture("tiny.latest.h5");
    let script = "import os, subprocess, sys; d = os.open('/dev/fuse', os.O_RDWR); \
                  sys.exit(subprocess.call([*sys.argv[1:], f'/dev/fd/{d}'], pass_fds=[d]))";
    let mut unmounted = Command::new(python());
    unmounted.args(["-c", script, H5FS]).arg(&source);
    let said = run(&mut unmounted, SOON);
    assert_eq!(said.status.code(), Some(1), "{}", said.stderr);
    assert!(
        said.one_line().ends_with("Operation not permitted"),
        "{}",
        said.stderr
    );
}

//! Ownership of mounts: one mount at each path, which only its own supervisor ends, and which other
//! users can neither stop nor end.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::harness::{
    MOUNT_LIMIT, Mount, Process, SOON, eventually, fixture, h5fs, is_mounted, is_root,
    processes_of, run, wait,
};

/// An ordinary user.
const SOMEBODY: u32 = 1000;

fn numbers(name: &str, default: u32) -> u32 {
    let chosen = std::env::var(name).ok();
    chosen.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn only_root() -> bool {
    let is_root = is_root();
    if !is_root {
        crate::harness::skip("only root can mount a tmpfs, or become somebody else");
    }
    is_root
}

/// Returns the number of mounts at `path`.
fn mounts_at(path: &Path) -> usize {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    points.filter(|point| Path::new(point) == path).count()
}

/// A tmpfs with a file. Dropping the value unmounts it.
struct Cover(PathBuf);

impl Cover {
    #[track_caller]
    fn on(path: &Path) -> Self {
        let mut command = Command::new("mount");
        run(command.args(["-t", "tmpfs", "none"]).arg(path), SOON).success();
        fs::write(path.join("other"), "theirs").expect("write");
        Cover(path.to_owned())
    }

    fn is_there(&self) -> bool {
        fs::read(self.0.join("other")).is_ok_and(|text| text == b"theirs")
    }

    #[track_caller]
    fn remove(self) {
        run(Command::new("umount").arg(&self.0), SOON).success();
        std::mem::forget(self);
    }
}

impl Drop for Cover {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn of_two_mounts_at_one_place_one_succeeds() {
    let source = fixture("tiny.latest.h5");
    for _ in 0..numbers("H5FS_PAIRS", 5) {
        let mount = Mount::prepare();
        let attempts = std::thread::scope(|scope| {
            let attempt = || run(&mut h5fs([&source, &mount.path]), MOUNT_LIMIT);
            let both = [scope.spawn(attempt), scope.spawn(attempt)];
            both.map(|one| one.join().expect("ran"))
        });
        let (good, bad): (Vec<_>, Vec<_>) = attempts.iter().partition(|one| one.status.success());
        assert_eq!((good.len(), bad.len()), (1, 1), "{attempts:?}");
        let line = bad[0].one_line();
        assert!(line.contains("already a mount point"), "{line}");
        assert_eq!(mounts_at(&mount.path), 1);
        assert_eq!(fs::read(mount.at("contiguous")).expect("served").len(), 400);
        let (_, supervisor) = mount.worker_and_supervisor(&source);
        supervisor.signal(Signal::SIGTERM);
        mount.must_be_gone(SOON);
    }
}

#[test]
fn a_covered_mount_goes_as_soon_as_it_is_uncovered() {
    if !only_root() {
        return;
    }
    let source = fixture("tiny.latest.h5");
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mount = Mount::new(&source);
        let (worker, supervisor) = mount.worker_and_supervisor(&source);
        let cover = Cover::on(&mount.path);
        match signal {
            Signal::SIGKILL => worker.signal(signal),
            _ => supervisor.signal(signal),
        }
        worker.must_end(SOON);
        assert!(cover.is_there() && supervisor.is_alive());
        assert_eq!(mounts_at(&mount.path), 2);
        cover.remove();
        mount.must_be_gone(SOON);
        assert_eq!(fs::read_dir(&mount.path).expect("empty").count(), 0);
    }
}

/// A path whose mount is removed when the value is dropped.
struct LeftAt(PathBuf);

impl Drop for LeftAt {
    fn drop(&mut self) {
        if is_mounted(&self.0) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
}

/// The mount may also be covered at a directory on its path.
#[test]
fn a_mount_whose_place_is_renamed_or_hidden_is_taken_away_where_it_is() {
    if !only_root() {
        return;
    }
    let source = fixture("tiny.latest.h5");
    let mount = Mount::prepare();
    let top = mount.path.with_file_name("top");
    let renamed = mount.path.with_file_name("renamed");
    fs::create_dir_all(top.join("mnt")).expect("mount point");
    run(&mut h5fs([&source, &top.join("mnt")]), MOUNT_LIMIT).success();
    fs::rename(&top, &renamed).expect("rename");
    fs::create_dir_all(top.join("mnt")).expect("another directory");
    let others = Cover::on(&top.join("mnt"));
    let hiding = Cover::on(&renamed);
    let point = LeftAt(renamed.join("mnt"));
    // the processes of the mount have the old name in their arguments
    let known = || processes_of(&top.join("mnt"));
    let supervisor = known().into_iter().find(|one| one.is_called("supervisor"));
    supervisor.expect("a supervisor").signal(Signal::SIGTERM);
    eventually(SOON, "the worker's end", || known().len() == 1);
    assert!(others.is_there() && hiding.is_there() && is_mounted(&point.0));
    hiding.remove();
    eventually(SOON, "unmounted", || !is_mounted(&point.0));
    eventually(SOON, "no process left", || known().is_empty());
    assert!(others.is_there());
}

/// A lazily unmounted mount is still served, and its path is free.
#[test]
fn another_mount_that_has_taken_the_place_stays() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let (worker, supervisor) = mount.worker_and_supervisor(&source);
    let open = File::open(mount.at("contiguous")).expect("open");
    let mut unmount = Command::new("fusermount3");
    run(unmount.arg("-uz").arg(&mount.path), SOON).success();
    run(&mut h5fs([&source, &mount.path]), MOUNT_LIMIT).success();
    supervisor.signal(Signal::SIGTERM);
    supervisor.must_end(SOON);
    worker.must_end(SOON);
    drop(open);
    assert_eq!(fs::read(mount.at("contiguous")).expect("served").len(), 400);
    assert_eq!(mount.processes().len(), 2);
}

#[test]
fn the_sources_owner_has_no_power_over_roots_worker() {
    if !only_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    let source = directory.path().join("own.h5");
    fs::copy(fixture("tiny.latest.h5"), &source).expect("copy");
    chown(&source, Some(SOMEBODY), Some(SOMEBODY)).expect("chown");
    for switch in ["sandbox=on", "sandbox=off"] {
        let mount = Mount::with(&source, &["-o", switch]);
        let (worker, _) = mount.worker_and_supervisor(&source);
        let pid = worker.pid.to_string();
        for attempt in [
            &["kill", "-STOP", &pid][..],
            &["kill", "-KILL", &pid],
            &["kill", "-0", &pid],
            &["renice", "19", &pid],
            &["prlimit", "--nofile=10", "--pid", &pid],
            &["taskset", "-p", "1", &pid],
            &["ionice", "-c", "3", "-p", &pid],
            &["cat", &format!("/proc/{pid}/environ")],
            &["ls", &format!("/proc/{pid}/fd/")],
        ] {
            let mut command = Command::new(attempt[0]);
            let command = command.args(&attempt[1..]);
            let done = run(command.uid(SOMEBODY).gid(SOMEBODY), SOON);
            assert!(!done.status.success(), "{switch}: {attempt:?}");
        }
        assert!(worker.is_alive());
        assert_eq!(fs::read(mount.at("contiguous")).expect("served").len(), 400);
    }
}

/// Opens the pipe that is the descriptor `number` of a process.
#[track_caller]
fn pipe_of(process: &Process, number: u32) -> File {
    let path = format!("/proc/{}/fd/{number}", process.pid);
    let opened = OpenOptions::new().write(true).open(path);
    opened.expect("the worker's pipe")
}

/// The reports of a worker that a hostile source has taken over. The worker has already reported
/// that the mount is served.
#[test]
fn a_worker_that_says_what_it_cannot_mean_loses_its_mount() {
    if !only_root() {
        return;
    }
    let source = fixture("tiny.latest.h5");
    let other = Mount::new(&source);
    let line = crate::harness::mount_line(&other.path);
    let number = line.split(' ').nth(2).expect("a device");
    let flood = vec![b'x'; 64 << 20];
    for said in [
        format!("mounted {number}\n").as_bytes(),
        b"mounted\n",
        b"ready\n",
        b"failed \x1b[2J\n",
        &flood,
    ] {
        let mount = Mount::new(&source);
        let (worker, supervisor) = mount.worker_and_supervisor(&source);
        let mut pipe = pipe_of(&worker, 1);
        let peak = supervisor.peak();
        // the write fails once the supervisor has read enough
        let written = pipe.write_all(said);
        assert_eq!(written.is_err(), said.len() == flood.len());
        if let Some(after) = supervisor.peak_if_running() {
            assert!(after < peak + (8 << 20), "{after}");
        }
        drop(pipe);
        mount.must_be_gone(SOON);
    }
    assert_eq!(fs::read(other.at("contiguous")).expect("served").len(), 400);
}

/// In the foreground, the supervisor passes a worker's output on to the user's terminal.
#[test]
fn a_workers_lines_reach_the_terminal_without_power_over_it() {
    if !only_root() {
        return;
    }
    let source = fixture("tiny.latest.h5");
    let mount = Mount::prepare();
    let shown = tempfile::NamedTempFile::new().expect("temporary file");
    let mut command = h5fs(["-f".as_ref(), source.as_os_str(), mount.path.as_os_str()]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(shown.reopen().expect("a second descriptor"));
    let mut child = command.spawn().expect("start");
    eventually(MOUNT_LIMIT, "served", || mount.at("contiguous").is_file());
    let (worker, _) = mount.worker_and_supervisor(&source);
    let written = pipe_of(&worker, 2).write_all(b"\x1b[2Jcleared\n");
    written.expect("write");
    eventually(SOON, "shown", || {
        fs::read(shown.path()).is_ok_and(|shown| shown == b"\\u{1b}[2Jcleared\n")
    });
    mount.unmount_when_free();
    let status = wait(&mut child, SOON).expect("ended");
    let shown = fs::read_to_string(shown.path()).expect("text");
    assert!(status.success(), "{status}: {shown}");
}

/// At any moment of the start, the exit status shows whether the mount exists.
#[test]
fn a_supervisor_that_is_killed_while_it_starts_leaves_what_is_said() {
    let source = fixture("tiny.latest.h5");
    let rounds = numbers("H5FS_STARTS", 10);
    for round in 0..rounds {
        let mount = Mount::prepare();
        let errors = tempfile::tempfile().expect("temporary file");
        let mut command = h5fs([&source, &mount.path]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut launcher = command.stderr(errors).spawn().expect("start");
        let supervisor = || {
            mount
                .processes()
                .into_iter()
                .find(|one| one.is_called("supervisor"))
        };
        eventually(SOON, "a supervisor, or the end", || {
            supervisor().is_some() || launcher.try_wait().expect("wait").is_some()
        });
        std::thread::sleep(std::time::Duration::from_millis(u64::from(
            round * 120 / rounds,
        )));
        if let Some(supervisor) = supervisor() {
            supervisor.signal(Signal::SIGKILL);
        }
        let status = wait(&mut launcher, MOUNT_LIMIT).expect("it returns");
        if status.success() {
            assert_eq!(fs::read(mount.at("contiguous")).expect("served").len(), 400);
            mount.unmount_when_free();
        }
        mount.must_be_gone(SOON);
    }
}

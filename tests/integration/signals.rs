//! However the program ends, no dead mount and no process remain.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{Mount, SOON, eventually, fixture, run};

#[test]
fn signals_to_the_supervisor_unmount() {
    let source = fixture("tiny.latest.h5");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mount = Mount::new(&source);
        let (_, supervisor) = mount.worker_and_supervisor(&source);
        supervisor.signal(signal);
        mount.must_be_gone(SOON);
        assert!(
            fs::read_dir(&mount.path)
                .expect("the empty mount point")
                .next()
                .is_none()
        );
    }
}

#[test]
fn signals_unmount_although_a_file_is_open() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let open = fs::File::open(mount.at("contiguous")).expect("open");
    let (_, supervisor) = mount.worker_and_supervisor(&source);
    supervisor.signal(Signal::SIGTERM);
    mount.must_be_gone(SOON);
    drop(open);
}

#[test]
fn killing_the_worker_unmounts() {
    let source = fixture("tiny.latest.h5");
    for signal in [Signal::SIGKILL, Signal::SIGABRT] {
        let mount = Mount::new(&source);
        let (worker, supervisor) = mount.worker_and_supervisor(&source);
        worker.signal(signal);
        mount.must_be_gone(SOON);
        worker.must_end(SOON);
        supervisor.must_end(SOON);
    }
}

/// A stopped worker simulates a worker that is busy with an endless request.
#[test]
fn a_worker_that_outlives_its_unmount_is_killed() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let (worker, supervisor) = mount.worker_and_supervisor(&source);
    worker.signal(Signal::SIGSTOP);
    mount.unmount();
    mount.must_be_gone(SOON);
    worker.must_end(SOON);
    supervisor.must_end(SOON);
}

/// After a lazy unmount, processes with an open file can still use the mount.
#[test]
fn a_worker_serves_open_files_after_a_lazy_unmount() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let (worker, supervisor) = mount.worker_and_supervisor(&source);
    let open = fs::File::open(mount.at("contiguous")).expect("open");
    let mut unmount = Command::new("fusermount3");
    run(unmount.args(["-u", "-z"]).arg(&mount.path), SOON).success();
    // Longer than the time for which the supervisor waits for the worker of an ended mount.
    thread::sleep(Duration::from_secs(5));
    assert!(worker.is_alive() && supervisor.is_alive());
    let mut byte = [0];
    open.read_exact_at(&mut byte, 0).expect("its bytes");
    drop(open);
    mount.must_be_gone(SOON);
}

/// The sandboxed worker cannot unmount. A mount that is served is better than a mount that returns
/// ENOTCONN.
#[test]
fn without_its_supervisor_the_worker_serves_until_the_unmount() {
    let source = fixture("tiny.latest.h5");
    for switch in ["sandbox=on", "sandbox=off"] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let log = directory.path().join("log");
        let log_file = format!("log_file={}", log.display());
        let mount = Mount::with(&source, &["-o", switch, "-o", &log_file]);
        let (worker, supervisor) = mount.worker_and_supervisor(&source);
        supervisor.signal(Signal::SIGKILL);
        eventually(SOON, "the worker's word", || {
            fs::read_to_string(&log).is_ok_and(|log| log.contains("fusermount3 -u"))
        });
        let lines = fs::read_to_string(&log).expect("log");
        assert_eq!(lines.lines().count(), 1, "{lines}");
        assert_eq!(fs::read(mount.at("contiguous")).expect("served").len(), 400);
        mount.unmount();
        mount.must_be_gone(SOON);
        worker.must_end(SOON);
    }
}

#[test]
fn lazy_unmount_ends_the_processes_when_the_last_file_is_closed() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let open = fs::File::open(mount.at("contiguous")).expect("open");
    let done = Command::new("fusermount3")
        .arg("-uz")
        .arg(&mount.path)
        .status();
    assert!(done.expect("fusermount3").success());
    drop(open);
    mount.must_be_gone(SOON);
}

//! However it ends, nothing is left behind: no mount that answers ENOTCONN, no process.

use std::fs;

use nix::sys::signal::Signal;

use crate::harness::{Mount, SOON, eventually, fixture};

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
        assert!(!worker.is_alive() && !supervisor.is_alive());
    }
}

/// The cage lets nobody unmount, and a mount that is served is better than one that answers
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
        assert!(!worker.is_alive());
    }
}

#[test]
fn lazy_unmount_ends_the_processes_when_the_last_file_is_closed() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let open = fs::File::open(mount.at("contiguous")).expect("open");
    let done = std::process::Command::new("fusermount3")
        .arg("-uz")
        .arg(&mount.path)
        .status();
    assert!(done.expect("fusermount3").success());
    drop(open);
    mount.must_be_gone(SOON);
}

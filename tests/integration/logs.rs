//! Logs that are rotated while the mount is up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::harness::{MOUNT_LIMIT, Mount, SOON, eventually, h5fs, run, skip, tree};
use crate::inspect::damaged;

/// A mount of a file with a damaged object, and its log.
struct Logged {
    mount: Mount,
    log: PathBuf,
    source: PathBuf,
    _kept: (TempDir, TempDir),
}

impl Logged {
    fn new(options: &[&str]) -> Self {
        let (source_kept, source) = damaged(b"OHDR", 1, 30);
        let kept = tempfile::tempdir().expect("temporary directory");
        let log = kept.path().join("run.log");
        let mount = Mount::prepare();
        let mut command = h5fs(options);
        command
            .arg("--log-file")
            .arg("run.log")
            .current_dir(kept.path());
        command.arg(&source).arg(&mount.path);
        run(&mut command, MOUNT_LIMIT).success();
        Logged {
            mount,
            log,
            source,
            _kept: (source_kept, kept),
        }
    }

    /// Makes the worker log a line.
    fn provoke(&self) {
        // In a new state of the file, every fault is logged again.
        let bytes = fs::read(&self.source).expect("the source");
        let other = self.source.with_extension("new");
        fs::write(&other, bytes).expect("a copy");
        fs::rename(&other, &self.source).expect("rename");
        let is_damaged = |path: PathBuf| {
            let error = fs::File::open(path).err();
            error.is_some_and(|error| error.raw_os_error() == Some(Errno::EIO as i32))
        };
        eventually(SOON, "the new state is seen", || {
            tree(&self.mount.path).into_iter().any(is_damaged)
        });
    }

    /// Waits until the file at `path` contains lines of the worker, and returns their number.
    fn lines(&self, path: &Path) -> usize {
        let of_worker = || {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.lines()
                .filter(|line| line.contains("object header"))
                .count()
        };
        eventually(SOON, "a line in the log", || {
            self.provoke();
            of_worker() > 0
        });
        of_worker()
    }
}

#[test]
fn a_log_that_was_renamed_is_begun_anew() {
    for options in [
        &["-o", "sandbox=on"][..],
        &["-o", "external=none"],
        &["-o", "sandbox=off"],
    ] {
        let logged = Logged::new(options);
        logged.lines(&logged.log);
        let old = logged.log.with_extension("log.1");
        fs::rename(&logged.log, &old).expect("rename");
        eventually(SOON, "a new log", || logged.log.exists());
        logged.lines(&logged.log);
        let before = fs::read(&old).expect("the old log");
        logged.lines(&logged.log);
        assert_eq!(fs::read(&old).expect("the old log"), before);
        // A file that another program has created there is used.
        fs::remove_file(&logged.log).expect("removal");
        fs::write(&logged.log, "made by hand\n").expect("a file");
        logged.lines(&logged.log);
        let text = fs::read_to_string(&logged.log).expect("the log");
        assert!(text.starts_with("made by hand\n"), "{text}");
        logged.mount.unmount();
        logged.mount.must_be_gone(SOON);
    }
}

#[test]
fn at_sigusr1_the_log_is_opened_anew_and_nothing_ends() {
    let logged = Logged::new(&[]);
    for process in logged.mount.processes() {
        process.signal(Signal::SIGUSR1);
    }
    fs::rename(&logged.log, logged.log.with_extension("old")).expect("rename");
    for process in logged.mount.processes() {
        process.signal(Signal::SIGUSR1);
    }
    logged.lines(&logged.log);
    assert!(logged.mount.is_up());
}

/// Uses the sample of the package, with the paths of this test.
#[test]
fn logrotate_rotates_the_log() {
    let mut version = Command::new("sh");
    version.args(["-c", "PATH=$PATH:/usr/sbin command -v logrotate"]);
    if !version.output().is_ok_and(|found| found.status.success()) {
        skip("there is no logrotate");
        return;
    }
    let logged = Logged::new(&[]);
    logged.lines(&logged.log);
    let directory = logged.log.parent().expect("a directory");
    let sample = fs::read_to_string("packaging/logrotate/h5fs").expect("the sample");
    let sample = sample.replace("/var/log/h5fs", &directory.display().to_string());
    let configuration = directory.join("logrotate.conf");
    fs::write(&configuration, sample).expect("the configuration");
    let mut rotate = Command::new("sh");
    rotate.args([
        "-c",
        "PATH=$PATH:/usr/sbin logrotate --force --state state logrotate.conf",
    ]);
    run(rotate.current_dir(directory), SOON).success();
    assert!(directory.join("run.log.1").exists());
    logged.lines(&logged.log);
}

//! Tests the sandbox from outside: what the kernel reports about the serving process, and when the
//! process enters its sandbox.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use crate::harness::{
    MOUNT_LIMIT, Mount, SOON, eventually, fixture, h5fs, is_mounted, is_root, run,
};

/// An ordinary user (number 65534) and its group.
const NOBODY: u32 = 65_534;

/// Creates a directory that every user can enter.
fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    directory
}

/// Copies a fixture and makes `owner` its owner.
fn owned_by(owner: u32, directory: &Path) -> PathBuf {
    let path = directory.join("own.h5");
    fs::copy(fixture("tiny.latest.h5"), &path).expect("copy");
    if is_root() {
        chown(&path, Some(owner), Some(owner)).expect("chown");
    }
    path
}

/// Returns the status fields in /proc of every thread of a process.
fn threads(pid: i32) -> Vec<BTreeMap<String, String>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let status = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    status
        .map(|status| {
            let lines = status.lines().filter_map(|line| line.split_once(':'));
            lines
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .collect()
        })
        .collect()
}

/// Checks the status fields of every thread of the process that serves `source`.
#[track_caller]
fn expect_status(mount: &Mount, source: &Path, expected: &[(&str, &str)]) {
    fs::read(mount.at("contiguous")).expect("served");
    let (worker, _) = mount.worker_and_supervisor(source);
    let threads = threads(worker.pid);
    assert!(threads.len() > 1, "{threads:?}");
    for status in threads {
        for (name, value) in expected {
            assert_eq!(status[*name], *value, "{name}: {status:?}");
        }
    }
}

/// Checks that core files are disabled, and that memory and threads are limited.
#[track_caller]
fn expect_limits(pid: i32) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let limit = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        let mut words = line.expect("a limit").split_whitespace();
        let both = [words.next(), words.next()].map(|word| word.expect("soft and hard").parse());
        assert_eq!(both[0], both[1], "{name}");
        both[0].clone().unwrap_or(u64::MAX)
    };
    assert_eq!(limit("Max core file size"), 0);
    // three times the largest chunk, and all other memory budgets
    assert!((4 << 30..64 << 30).contains(&limit("Max data size")));
    assert!(limit("Max address space") < 1 << 40);
    assert!(limit("Max processes") < 1 << 18, "{limits}");
}

const NO_CAPABILITIES: [(&str, &str); 4] = [
    ("CapInh", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapEff", "0000000000000000"),
    ("CapAmb", "0000000000000000"),
];

const CAGED: [(&str, &str); 2] = [("NoNewPrivs", "1"), ("Seccomp", "2")];

#[test]
fn every_thread_is_in_it() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    expect_status(&mount, &source, &[&NO_CAPABILITIES[..], &CAGED].concat());
    let (worker, supervisor) = mount.worker_and_supervisor(&source);
    expect_limits(worker.pid);
    // the supervisor reads no byte of the source, and must be able to unmount
    assert_eq!(threads(supervisor.pid)[0]["Seccomp"], "0");
}

#[test]
fn it_can_be_left_off() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::with(&source, &["-o", "sandbox=off"]);
    expect_status(&mount, &source, &[("NoNewPrivs", "0"), ("Seccomp", "0")]);
    expect_status(&mount, &source, &NO_CAPABILITIES);
}

#[test]
fn roots_worker_becomes_the_sources_owner() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let directory = open_directory();
    let source = owned_by(NOBODY, directory.path());
    let group = format!("{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}");
    for switch in ["sandbox=on", "sandbox=off"] {
        let mount = Mount::with(&source, &["-o", switch]);
        let (worker, _) = mount.worker_and_supervisor(&source);
        // only its user ID for files is the owner; its other user IDs are a number without a user
        let own = 0xf000_0000_u32 + worker.pid.unsigned_abs();
        let users = format!("{own}\t{own}\t{own}\t{NOBODY}");
        let expected = [("Uid", &*users), ("Gid", &*group)];
        expect_status(&mount, &source, &[&NO_CAPABILITIES[..], &expected].concat());
        for groups in threads(mount.worker_and_supervisor(&source).0.pid) {
            let groups = groups["Groups"]
                .split(' ')
                .filter(|group| *group != "65534");
            assert_eq!(groups.count(), 0);
        }
        mount.unmount();
        mount.must_be_gone(SOON);
    }
}

#[test]
fn a_source_that_its_owner_cannot_reach_is_served() {
    if !is_root() {
        crate::harness::skip("only root can become somebody else");
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory"); // only root may enter it
    let source = owned_by(NOBODY, directory.path());
    for policy in ["none", "within"] {
        fs::copy(fixture("tiny.latest.h5"), &source).expect("copy");
        fs::set_permissions(&source, fs::Permissions::from_mode(0o000)).expect("chmod");
        let log = directory.path().join(policy);
        let options = [
            "--external",
            policy,
            "--log-file",
            log.to_str().expect("text"),
        ];
        let mount = Mount::with(&source, &options);
        assert_eq!(fs::read(mount.at("contiguous")).expect("served").len(), 400);
        let said = || fs::read_to_string(&log).expect("log");
        assert_eq!(said(), "");
        // once the file has changed, its owner would have to open it again
        let other = fs::read(fixture("groups.latest.h5")).expect("fixture");
        fs::write(&source, other).expect("change");
        eventually(SOON, "a line in the log", || {
            said().contains("Permission denied")
        });
        assert!(said().contains("has changed"), "{}", said());
    }
}

/// The worker opens no file. The opener sends it the file at the source's path.
#[test]
fn a_source_without_neighbours_is_opened_again_by_somebody_else() {
    let directory = open_directory();
    let source = owned_by(NOBODY, directory.path());
    let mount = Mount::with(&source, &["--external", "none"]);
    let opener = process_called("h5fs: opener", &source);
    let of_owner = if is_root() {
        NOBODY
    } else {
        nix::unistd::getuid().as_raw()
    };
    let owner = of_owner.to_string();
    for status in threads(opener) {
        for (name, value) in NO_CAPABILITIES.iter().chain(&CAGED[..1]) {
            assert_eq!(status[*name], *value, "{name}");
        }
        assert!(
            status["Uid"].split('\t').any(|uid| uid == owner),
            "{status:?}"
        );
    }
    let replace = |by: &str| {
        let next = directory.path().join("next");
        fs::copy(fixture(by), &next).expect("copy");
        fs::rename(&next, &source).expect("rename");
    };
    for _ in 0..2 {
        replace("groups.latest.h5");
        eventually(SOON, "the new tree", || mount.at("a/b").is_dir());
        replace("tiny.latest.h5");
        eventually(SOON, "the old tree", || mount.at("contiguous").is_file());
    }
    fs::remove_file(&source).expect("remove");
    eventually(SOON, "nothing", || fs::read_dir(&mount.path).is_err());
    fs::copy(fixture("groups.latest.h5"), &source).expect("copy");
    eventually(SOON, "another tree", || mount.at("a/b").is_dir());
    mount.unmount();
    let is_there = || Path::new(&format!("/proc/{opener}")).exists();
    eventually(SOON, "the opener's end", || !is_there());
}

/// A command that writes more than a pipe holds, so that it waits for its reader.
struct Writing(std::process::Child);

impl Writing {
    #[track_caller]
    fn new(arguments: &[&str], source: &Path) -> Self {
        let mut command = h5fs([arguments[0]]);
        command.arg(source).args(&arguments[1..]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("start");
        let mut first = [0];
        let output = child.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut first).expect("output");
        Writing(child)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The commands are sandboxed for every user, because their source may be hostile.
#[test]
fn commands_without_a_mount_are_in_it_too() {
    let directory = open_directory();
    let source = directory.path().join("own.h5");
    for (name, arguments) in [
        ("links-100k.latest.h5", &["ls", "many"][..]),
        ("links-100k.latest.h5", &["ndl"]),
        ("layouts.latest.h5", &["cat", "contiguous_large"]),
    ] {
        fs::copy(fixture(name), &source).expect("copy");
        if is_root() {
            chown(&source, Some(NOBODY), Some(NOBODY)).expect("chown");
        }
        let command = Writing::new(arguments, &source);
        let pid = command.0.id() as i32;
        for status in threads(pid) {
            for (name, value) in NO_CAPABILITIES.iter().chain(&CAGED) {
                assert_eq!(status[*name], *value, "{arguments:?}: {name}");
            }
            if is_root() {
                // the user ID for file access
                let user = status["Uid"].split('\t').nth(3);
                assert_eq!(user, Some(&*NOBODY.to_string()), "{arguments:?}");
            }
        }
        expect_limits(pid);
        let mut arguments = arguments.to_vec();
        arguments.push("--sandbox=off");
        let command = Writing::new(&arguments, &source);
        for status in threads(command.0.id() as i32) {
            assert_eq!(status["Seccomp"], "0");
            assert_eq!(status["CapEff"], NO_CAPABILITIES[2].1);
        }
    }
}

#[test]
fn a_replaced_source_is_opened_again() {
    let directory = open_directory();
    let source = owned_by(NOBODY, directory.path());
    for policy in ["none", "within", "any"] {
        fs::copy(fixture("tiny.latest.h5"), &source).expect("copy");
        let mount = Mount::with(&source, &["--external", policy]);
        assert!(mount.at("contiguous").is_file());
        let next = directory.path().join("next");
        fs::copy(fixture("groups.latest.h5"), &next).expect("copy");
        fs::rename(&next, &source).expect("rename");
        eventually(SOON, "the new tree", || mount.at("a/b").is_dir());
    }
}

/// The mount ends with its worker, also for an ordinary user. Other tests do the same as root.
#[test]
fn an_ordinary_users_mount_goes_with_its_worker() {
    if !is_root() {
        crate::harness::skip("the other tests run as an ordinary user already");
        return;
    }
    let device = fs::metadata("/dev/fuse").expect("/dev/fuse");
    if device.permissions().mode() & 0o006 != 0o006 {
        crate::harness::skip("/dev/fuse is root's alone here");
        return;
    }
    let directory = open_directory();
    let source = owned_by(NOBODY, directory.path());
    let mount = Mount::prepare();
    let parent = mount.path.parent().expect("a parent");
    fs::set_permissions(parent, fs::Permissions::from_mode(0o755)).expect("chmod");
    chown(&mount.path, Some(NOBODY), Some(NOBODY)).expect("chown");
    // the build directory may not be accessible to others, so they use a copy of the program
    let program = directory.path().join("h5fs");
    fs::copy(crate::harness::H5FS, &program).expect("copy");
    let mut command = Command::new(program);
    command
        .arg(&source)
        .arg(&mount.path)
        .uid(NOBODY)
        .gid(NOBODY);
    run(&mut command, MOUNT_LIMIT).success();
    let worker = process_called("h5fs: worker", &mount.path);
    for status in threads(worker) {
        for (name, value) in NO_CAPABILITIES.iter().chain(&CAGED) {
            assert_eq!(status[*name], *value, "{name}");
        }
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).expect("kill");
    eventually(SOON, "unmounted", || !is_mounted(&mount.path));
}

/// Finds the process with this name and with `path` among its arguments.
#[track_caller]
fn process_called(name: &str, path: &Path) -> i32 {
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = pids.find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next() == Some(name.as_bytes())
            && words.any(|word| word == path.as_os_str().as_encoded_bytes())
    });
    found.unwrap_or_else(|| panic!("no {name} for {}", path.display()))
}

/// Runs `act` in a thread with a seccomp filter that simulates a kernel without these calls.
fn without_calls(calls: &[nix::libc::c_long], act: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let rules = calls.iter().map(|call| (*call, vec![])).collect();
            let refused = SeccompAction::Errno(Errno::ENOSYS as u32);
            let machine = std::env::consts::ARCH.try_into().expect("a known machine");
            let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine);
            let program: BpfProgram = filter.and_then(TryInto::try_into).expect("a filter");
            apply_filter(&program).expect("applied");
            act();
        });
    });
}

#[test]
fn a_directory_on_a_kernel_without_openat2_is_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mount = Mount::prepare();
    let end = format!(
        "{}: this kernel or container has no openat2(2), which Linux has since version 5.6",
        directory.path().display()
    );
    without_calls(&[nix::libc::SYS_openat2], || {
        for words in [
            [Path::new("ls"), directory.path()],
            [directory.path(), &mount.path],
        ] {
            let refused = run(&mut h5fs(words), MOUNT_LIMIT);
            assert_eq!(refused.one_line(), format!("h5fs: {end}"), "{words:?}");
        }
    });
}

#[test]
fn a_kernel_without_it_is_said_in_one_line() {
    use nix::libc;
    if !is_root() {
        crate::harness::skip("under a filter, only root can mount");
        return;
    }
    let calls = [
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_restrict_self,
        libc::SYS_seccomp,
    ];
    let directory = tempfile::tempdir().expect("temporary directory");
    let log = directory.path().join("log");
    let source = fixture("tiny.latest.h5");
    let mount = Mount::prepare();
    without_calls(&calls, || {
        let mut command = h5fs([source.as_os_str(), mount.path.as_os_str()]);
        run(command.arg("--log-file").arg(&log), MOUNT_LIMIT).success();
    });
    assert_eq!(fs::read(mount.at("contiguous")).expect("served").len(), 400);
    let said = fs::read_to_string(&log).expect("log");
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in ["sandbox", "no Landlock", "no seccomp"] {
        assert!(said.contains(word), "{said}");
    }
}

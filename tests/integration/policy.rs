//! Checks with strace(1) which files the program opens, for all kinds of references in a file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

use nix::errno::Errno;

use crate::circles::in_raw_file;
use crate::harness::{
    Finished, H5FS, LONG, MOUNT_LIMIT, Mount, eventually, h5fs, is_root, mount_line, run, script,
    tree, wait,
};
use crate::hostile::superblocks;

/// System files that the program opens before it knows the source.
const SYSTEM: &[&str] = &[
    "/dev/fuse",
    "/dev/null",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/lib/",
    "/lib64/",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/sys/kernel/ngroups_max",
    "/sys/",
    "/usr/lib/",
    "/usr/lib64/",
];

/// Files in /proc that the program reads about its own processes.
const OWN: &[&str] = &["cgroup", "fd", "fdinfo", "maps", "mountinfo", "status"];

/// Creates the files that `policies.py` writes.
pub(crate) fn made() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    let top = directory.path().canonicalize().expect("path");
    run(script("policies.py").arg(&top), LONG).success();
    (directory, top)
}

pub(crate) fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .status();
    let can = traced.is_ok_and(|status| status.success());
    if !can {
        crate::harness::skip("strace is not there, or may not trace");
    }
    can
}

/// Mounts under strace with these options, reads the whole mount, and returns strace's output.
pub(crate) fn trace(source: &Path, options: &[&str], look: impl FnOnce(&Mount)) -> String {
    let mount = Mount::prepare();
    let log = mount.path.with_file_name("strace");
    let calls = "trace=open,openat,openat2,creat,read,readv,pread64,preadv,mmap,seccomp";
    let mut command = Command::new("strace");
    command
        .args(["-f", "-y", "-qq", "-s", "0", "-e", calls, "-o"])
        .arg(&log)
        .arg(H5FS);
    command.args(options).arg(source).arg(&mount.path);
    command.env("XDG_CACHE_HOME", "/dev/null");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("start");
    let mut ended = false;
    eventually(MOUNT_LIMIT, "served, or refused", || {
        ended = child.try_wait().expect("wait").is_some();
        ended
            || mount.is_up()
                && mount
                    .at("")
                    .read_dir()
                    .is_ok_and(|mut dir| dir.next().is_some())
    });
    if !ended {
        for path in tree(&mount.path) {
            let _ = fs::read(path);
        }
        look(&mount);
        mount.unmount_when_free();
        wait(&mut child, MOUNT_LIMIT).expect("ends when unmounted");
    }
    let log = fs::read_to_string(log).expect("what strace wrote");
    // the mount point itself must be opened
    log.replace(&format!("<{}>", mount.path.display()), "</>")
}

/// Returns the real paths of all opened files, except system files and files that were only named
/// with `O_PATH`.
pub(crate) fn opened(log: &str) -> BTreeSet<PathBuf> {
    let mut naming = BTreeSet::new();
    let opened = log.lines().filter_map(|line| {
        let process = line.split(' ').next()?;
        let is_naming = if line.contains(" resumed>") {
            naming.remove(process)
        } else {
            line.contains("O_PATH")
        };
        if is_naming && line.ends_with("<unfinished ...>") {
            naming.insert(process);
        }
        let (call, result) = line.rsplit_once(" = ")?;
        let is_open = [
            "open(",
            "openat(",
            "openat2(",
            "creat(",
            "open resumed",
            "openat resumed",
            "openat2 resumed",
        ];
        is_open
            .iter()
            .any(|name| call.contains(name) && !is_naming)
            .then_some(())?;
        let (_, path) = result.split_once('<')?;
        Some(path.trim_end_matches('>').to_owned())
    });
    let is_own = |path: &str| {
        let mut parts = path.strip_prefix("/proc/").unwrap_or_default().split('/');
        let is_number = parts.next().is_some_and(|pid| pid.parse::<u32>().is_ok());
        is_number && parts.next().is_some_and(|name| OWN.contains(&name))
    };
    // After the unmount, another test's mount may have the same number. The supervisor opens the
    // root of that mount with `O_PATH` to see that it is another mount.
    let is_mount_point = |path: &str| path.contains("/h5fs-test-") && path.ends_with("/mnt");
    opened
        .filter(|path| !SYSTEM.iter().any(|system| path.starts_with(system)))
        .filter(|path| !is_own(path) && *path != "/" && path != H5FS)
        .filter(|path| !is_mount_point(path))
        .map(PathBuf::from)
        .collect()
}

fn all(top: &Path, names: &[&str]) -> BTreeSet<PathBuf> {
    let kinds = ["h5", "raw", "asdf"];
    let files = names
        .iter()
        .flat_map(|name| kinds.map(|kind| top.join(format!("{name}.{kind}"))));
    files.collect()
}

/// Returns the files other than directories that a policy permits.
pub(crate) fn allowed(top: &Path, policy: &str) -> BTreeSet<PathBuf> {
    let mut names = vec![];
    if policy != "none" {
        names.extend(["inside/near", "inside/below/deep", "inside/secret"]);
    }
    if policy == "any" {
        names.push("outside");
    }
    let mut allowed = all(top, &names);
    if policy == "any" {
        allowed.extend(["/etc/hosts".into(), top.join("member.h5")]);
        allowed.extend([2, 3, 4].map(|n| top.join(format!("inside/family-{n}.h5"))));
    }
    allowed
}

/// Returns the paths in `opened` that are not permitted and are not the source, a log or a
/// directory. The file `mem` in /proc is a regular file of length 0 to the system.
fn surplus(
    opened: &BTreeSet<PathBuf>,
    allowed: &BTreeSet<PathBuf>,
    source: &Path,
    policy: &str,
) -> Vec<PathBuf> {
    let is_memory = |path: &Path| path.starts_with("/proc") && path.ends_with("mem");
    let surplus = opened.difference(allowed).filter(|path| *path != source);
    surplus
        .filter(|path| !(policy == "any" && is_memory(path)))
        .filter(|path| *path != source.parent().expect("a directory"))
        .cloned()
        .collect()
}

#[test]
fn nothing_is_opened_that_the_policy_does_not_allow() {
    if !can_trace() {
        return;
    }
    let (_directory, top) = made();
    for policy in ["none", "within", "any"] {
        let allowed = allowed(&top, policy);
        let mut all_opened = BTreeSet::new();
        for name in ["all.h5", "all.asdf", "family-0.h5"] {
            let source = top.join("inside").join(name);
            let log = trace(&source, &["--external", policy], |_| {});
            let opened = opened(&log);
            assert!(opened.contains(&source), "{policy}: {opened:?}");
            let surplus = surplus(&opened, &allowed, &source, policy);
            assert!(surplus.is_empty(), "{name}, external={policy}: {surplus:?}");
            all_opened.extend(opened);
        }
        // checks that every permitted file was opened, so the test detects what it should detect
        for path in allowed.iter().filter(|path| path.exists()) {
            assert!(
                all_opened.contains(path),
                "{policy}: {} was not opened",
                path.display()
            );
        }
    }
}

/// The members that driver information names are opened as the policy permits: only files of the
/// directory with `within`.
#[test]
fn members_of_a_file_are_opened_as_the_policy_allows() {
    if !can_trace() {
        return;
    }
    let (_directory, top) = made();
    let outside = top.join("outside.h5");
    let near = top.join("inside/near.h5");
    let names: [(&[u8], &Path, &[&str]); 3] = [
        (b"near.h5", &near, &["within", "any"]),
        (b"../outside.h5", &outside, &["any"]),
        (b"/etc/hosts", Path::new("/etc/hosts"), &["any"]),
    ];
    for (name, path, policies) in names {
        for old in [true, false] {
            let source = top.join("inside/many.h5");
            let bytes = superblocks::in_many_files(&superblocks::multi_driver(name), old);
            fs::write(&source, bytes).expect("write");
            for policy in ["none", "within", "any"] {
                let log = trace(&source, &["--external", policy], |_| {});
                let opened = opened(&log);
                assert!(opened.contains(&source), "{policy}: {opened:?}");
                let is_opened = opened.contains(path);
                let name = name.escape_ascii();
                assert_eq!(is_opened, policies.contains(&policy), "{name}, {policy}");
            }
        }
    }
}

/// Runs a command without a mount under strace. Returns strace's output and the result of the
/// command.
fn trace_command(arguments: &[&str], source: &Path) -> (String, Finished) {
    let log = tempfile::NamedTempFile::new().expect("temporary file");
    let mut command = Command::new("strace");
    let calls = "trace=open,openat,openat2,creat,read,readv,pread64,preadv,mmap,seccomp";
    command.args(["-f", "-y", "-qq", "-s", "0", "-e", calls, "-o"]);
    command.arg(log.path()).arg(H5FS).arg(arguments[0]);
    command.arg(source).args(&arguments[1..]);
    let finished = run(&mut command, MOUNT_LIMIT);
    let log = fs::read_to_string(log.path()).expect("what strace wrote");
    (log, finished)
}

#[test]
fn the_source_is_read_in_the_cage_alone() {
    if !can_trace() {
        return;
    }
    let (_directory, top) = made();
    let source = top.join("inside/all.h5");
    expect_caged(&trace(&source, &[], |_| {}), &source);
    for arguments in COMMANDS {
        let (log, _) = trace_command(arguments, &source);
        expect_caged(&log, &source);
    }
}

/// Commands without a mount that read the whole file.
const COMMANDS: [&[&str]; 5] = [
    &["ls", "-lR"],
    &["cat", "virtual_near"],
    &["ndl"],
    &["check"],
    &["check", "--data"],
];

#[track_caller]
fn expect_caged(log: &str, source: &Path) {
    let lines: Vec<&str> = log.lines().collect();
    let caged = lines
        .iter()
        .rposition(|line| line.contains("seccomp(SECCOMP_SET_MODE_FILTER"));
    let named = format!("<{}>", source.display());
    let is_read = |line: &&str| {
        let read = ["read(", "readv(", "pread64(", "preadv(", "mmap("];
        line.contains(&named) && read.iter().any(|call| line.contains(call))
    };
    let read = lines.iter().position(is_read).expect("it is read");
    assert!(caged.expect("a filter") < read, "{}", lines[read]);
}

/// The process that serves a mount must not open files in it, because no other process would
/// answer.
#[test]
fn a_file_that_leads_into_its_own_mount_is_refused_at_once() {
    // the source is next to its mount point, or hidden by it
    for (place, threads) in [("own.h5", "1"), ("own.h5", "2"), ("mnt/own.h5", "1")] {
        let mount = Mount::prepare();
        let source = mount.path.with_file_name("").join(place);
        run(script("policies.py").arg("--own").arg(&source), LONG).success();
        let mut command = h5fs(["--external", "any", "--threads", threads]);
        run(command.arg(&source).arg(&mount.path), MOUNT_LIMIT).success();
        for name in [
            "virtual_mnt",
            "virtual_link",
            "virtual_absolute",
            "external_mnt",
        ] {
            let mut command = Command::new("cat");
            let read = run(command.arg(mount.at(name)), MOUNT_LIMIT);
            assert!(read.one_line().contains("Input/output error"), "{name}");
        }
        let values = fs::read(mount.at("values")).expect("its own");
        assert_eq!(values.len(), 80);
        mount.unmount();
        mount.must_be_gone(MOUNT_LIMIT);
    }
}

/// The same references through other paths: the mount and one of its groups are bound to other
/// places.
#[test]
fn a_file_that_leads_into_its_own_mount_bound_elsewhere_is_refused_at_once() {
    let mount = Mount::prepare();
    let top = mount.path.with_file_name("");
    let source = top.join("main.h5");
    run(script("policies.py").arg("--bound").arg(&source), LONG).success();
    let mut command = h5fs(["--external", "any", "--threads", "1"]);
    run(command.arg(&source).arg(&mount.path), MOUNT_LIMIT).success();
    if !is_root() {
        crate::harness::skip("only root can bind mounts");
        return;
    }
    let _cut = AbortsLater::on(&mount.path);
    let whole = Bound::new(&mount.path, top.join("whole"));
    let _part = Bound::new(&mount.at("group"), top.join("part"));
    for name in ["virtual_whole", "virtual_part", "virtual_link"] {
        let mut command = Command::new("cat");
        let read = run(command.arg(mount.at(name)), MOUNT_LIMIT);
        assert!(read.one_line().contains("Input/output error"), "{name}");
    }
    for name in ["link_whole", "link_part"] {
        let mut command = Command::new("readlink");
        let text = run(command.arg(mount.at(name)), MOUNT_LIMIT)
            .success()
            .text();
        assert!(text.contains(".h5:"), "{name} dangles: {text}");
    }
    let inside = whole.0.join("group/values");
    assert_eq!(fs::read(inside).expect("its own").len(), 80);
}

/// A path on which mount(8) has mounted a filesystem. Dropping the value unmounts it.
pub(crate) struct Bound(PathBuf);

impl Bound {
    /// Binds a directory to this path.
    #[track_caller]
    pub(crate) fn new(directory: &Path, place: PathBuf) -> Self {
        Self::mounted(&["--bind".as_ref(), directory.as_os_str()], place)
    }

    /// Mounts a filesystem in memory.
    #[track_caller]
    pub(crate) fn memory(place: PathBuf) -> Self {
        Self::mounted(&["-t", "tmpfs", "none"].map(OsStr::new), place)
    }

    #[track_caller]
    fn mounted(arguments: &[&OsStr], place: PathBuf) -> Self {
        fs::create_dir(&place).expect("a place");
        let mut command = Command::new("mount");
        run(command.args(arguments).arg(&place), MOUNT_LIMIT).success();
        Bound(place)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A filesystem that is stacked on the mount also waits for the mount.
#[test]
fn a_way_over_an_overlay_on_the_mount_is_refused_at_once() {
    if !is_root() {
        crate::harness::skip("only root can mount an overlay");
        return;
    }
    for (policy, over_all) in [("within", false), ("any", false), ("within", true)] {
        let mount = Mount::prepare();
        let top = mount.path.parent().expect("a directory").to_owned();
        let source = top.join("source.h5");
        // The lower directory of the overlay is the mount itself, or a directory above it, which
        // shows the mount at `mnt`.
        let named = if over_all {
            "over/mnt/good"
        } else {
            "over/good"
        };
        fs::write(&source, in_raw_file(named)).expect("a source");
        let mut command = h5fs(["--external", policy, "--threads", "1"]);
        run(command.arg(&source).arg(&mount.path), MOUNT_LIMIT).success();
        let _cut = AbortsLater::on(&mount.path);
        let lower = if over_all { &top } else { &mount.path };
        let Some(_over) = Overlay::new(lower, top.join("over")) else {
            return;
        };
        let read = run(Command::new("cat").arg(mount.at("x")), MOUNT_LIMIT);
        assert!(read.one_line().contains("Input/output error"), "{policy}");
        assert_eq!(fs::read(mount.at("good")).expect("its own"), b"goodness");
    }
}

/// The source itself may be on an overlay, like every file of a container.
#[test]
fn a_source_on_an_overlay_has_neighbours_there() {
    if !is_root() {
        crate::harness::skip("only root can mount an overlay");
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let lower = directory.path().join("lower");
    fs::create_dir(&lower).expect("a directory");
    fs::write(lower.join("source.h5"), in_raw_file("raw")).expect("a source");
    fs::write(lower.join("raw"), [7; 64]).expect("a raw file");
    let Some(over) = Overlay::new(&lower, directory.path().join("over")) else {
        return;
    };
    let mount = Mount::new(&over.0.join("source.h5"));
    assert_eq!(fs::read(mount.at("x")).expect("x"), [7; 64]);
    mount.unmount();
    mount.must_be_gone(MOUNT_LIMIT);
}

/// An overlay filesystem. Dropping the value unmounts it.
struct Overlay(
    PathBuf,
    #[expect(dead_code, reason = "it is there")] tempfile::TempDir,
);

impl Overlay {
    /// Mounts an overlay. Returns `None` if the kernel does not support overlays.
    fn new(lower: &Path, place: PathBuf) -> Option<Self> {
        let written = tempfile::tempdir().expect("temporary directory");
        let [upper, work] = ["upper", "work"].map(|name| written.path().join(name));
        for directory in [&upper, &work, &place] {
            fs::create_dir(directory).expect("a directory");
        }
        let [lower, upper, work] = [lower, &upper, &work].map(|path| path.display());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let mut command = Command::new("mount");
        command.args(["-t", "overlay", "overlay", "-o", &options]);
        let done = run(command.arg(&place), MOUNT_LIMIT);
        if !done.status.success() {
            crate::harness::skip(done.stderr.trim_end());
            return None;
        }
        Some(Overlay(place, written))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Aborts a FUSE connection if the test hangs, because a process that waits for it cannot even be
/// killed.
struct AbortsLater(#[expect(dead_code, reason = "its end is the signal")] Sender<()>);

impl AbortsLater {
    fn on(mount: &Path) -> Self {
        let line = mount_line(mount);
        let device = line.split(' ').nth(2).expect("a device");
        let number = device.strip_prefix("0:").expect("no disk");
        let switch = format!("/sys/fs/fuse/connections/{number}/abort");
        let (over, life) = channel();
        std::thread::spawn(move || {
            if life.recv_timeout(MOUNT_LIMIT / 2) == Err(RecvTimeoutError::Timeout) {
                eprintln!("cut off: {switch}: {:?}", fs::write(&switch, "1"));
            }
        });
        AbortsLater(over)
    }
}

#[test]
fn root_reads_nothing_that_the_sources_owner_may_not() {
    const OWNER: u32 = 65_534;
    if !is_root() || !can_trace() {
        crate::harness::skip("only root can give files away");
        return;
    }
    let (_directory, top) = made();
    for path in tree(&top).iter().chain([&top]) {
        lchown(path, Some(OWNER), Some(OWNER)).expect("chown");
    }
    for secret in all(&top, &["inside/secret"]) {
        lchown(&secret, Some(1), Some(1)).expect("chown");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("chmod");
    }
    for policy in ["within", "any"] {
        for (name, refused) in [
            ("all.h5", &["virtual_secret", "external_secret"][..]),
            ("all.asdf", &["array_secret"]),
        ] {
            let source = top.join("inside").join(name);
            let log = trace(&source, &["--external", policy], |mount| {
                for dataset in refused {
                    let code = fs::read(mount.at(dataset))
                        .expect_err(dataset)
                        .raw_os_error();
                    assert_eq!(code, Some(Errno::EIO as i32), "{dataset}");
                }
                let near = fs::read(mount.at(&refused[0].replace("secret", "near")));
                assert_eq!(near.expect("a neighbour of its own").len(), 80);
            });
            expect_no_secret(&log, &top, &source);
            for dataset in refused {
                let (log, finished) = trace_command(&["cat", dataset], &source);
                let said = finished.one_line();
                assert!(said.contains("Permission denied"), "{dataset}: {said}");
                expect_no_secret(&log, &top, &source);
            }
            for arguments in COMMANDS {
                let (log, _) = trace_command(arguments, &source);
                expect_no_secret(&log, &top, &source);
            }
        }
    }
}

#[track_caller]
fn expect_no_secret(log: &str, top: &Path, source: &Path) {
    let opened = opened(log);
    assert!(opened.contains(source));
    for secret in all(top, &["inside/secret"]) {
        assert!(!opened.contains(&secret), "{}", secret.display());
    }
}

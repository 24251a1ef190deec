//! Mounts that end with their test, commands with a time limit, and the fixtures.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// The program under test.
pub(crate) const H5FS: &str = env!("CARGO_BIN_EXE_h5fs");

// Time limits only stop tests that hang, because the machine may be busy. A test that distinguishes
// fast from slow work measures processor time or counts.

/// Time limit for a mount to answer or to be refused.
pub(crate) const MOUNT_LIMIT: Duration = Duration::from_secs(60);

/// Time limit for an event that should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Time limit for a script that writes or compares many files.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// Time after which a mount of a test is unmounted by force.
const MOUNT_LIFE: Duration = Duration::from_secs(1800);

// ------------------------------------------------------------------ commands

/// A finished command.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the output of a command that must succeed.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert!(
            self.status.success(),
            "{}: {}{}",
            self.status,
            self.text(),
            self.stderr
        );
        self
    }

    /// Returns the single line on standard error of a command that must fail.
    #[track_caller]
    pub(crate) fn one_line(&self) -> &str {
        assert!(!self.status.success(), "succeeded: {self:?}");
        assert!(self.status.signal().is_none(), "died of a signal: {self:?}");
        let line = self.stderr.strip_suffix('\n').unwrap_or(&self.stderr);
        assert!(
            !line.is_empty() && !line.contains('\n'),
            "not one line: {:?}",
            self.stderr
        );
        assert!(!line.contains("panicked"), "{line}");
        line
    }
}

/// Runs a command to its end. Its output goes to files rather than pipes, so that the test does not
/// wait for a daemon that inherits a pipe.
#[track_caller]
pub(crate) fn run(command: &mut Command, limit: Duration) -> Finished {
    let mut output = tempfile::tempfile().expect("temporary file");
    let mut errors = tempfile::tempfile().expect("temporary file");
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("a second descriptor"))
        .stderr(errors.try_clone().expect("a second descriptor"));
    let status = wait(&mut start(command), limit);
    let text = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind().expect("rewind");
        file.read_to_end(&mut bytes).expect("read back");
        bytes
    };
    let (stdout, stderr) = (text(&mut output), text(&mut errors));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    let Some(status) = status else {
        panic!(
            "{command:?} did not end in {limit:?}: {}{stderr}",
            String::from_utf8_lossy(&stdout)
        );
    };
    Finished {
        status,
        stdout,
        stderr,
    }
}

/// Starts a command. A program that a test has just written may be busy, because a forked child of
/// another thread still holds its descriptor. So starting a busy program is retried.
#[track_caller]
fn start(command: &mut Command) -> Child {
    let end = Instant::now() + SOON;
    loop {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            started => return started.unwrap_or_else(|error| panic!("{command:?}: {error}")),
        }
    }
}

/// Waits for a child. Kills it and returns `None` if the time limit elapses.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return Some(status);
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a condition becomes true.
#[track_caller]
pub(crate) fn eventually(limit: Duration, what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is() {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the program with arguments. No scan results are cached between tests.
pub(crate) fn h5fs<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(arguments: I) -> Command {
    let mut command = Command::new(H5FS);
    command.args(arguments).env("XDG_CACHE_HOME", "/dev/null");
    command
}

/// Returns a command that runs one of the scripts in `tests/fixtures` with Python.
pub(crate) fn script(name: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name),
    );
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

pub(crate) fn python() -> PathBuf {
    std::env::var_os("H5FS_PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// Returns whether the test runs as root, so that it can call mount(8) and change its user.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Reports that the calling test is skipped, with the reason. `eprintln!` would be captured and not
/// shown for a test that passes. Panics if `$H5FS_MAY_SKIP` is set and does not name the test.
#[track_caller]
pub(crate) fn skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
    if let Ok(names) = std::env::var("H5FS_MAY_SKIP") {
        let may_skip = names.split_whitespace().any(|name| name == test);
        assert!(may_skip, "{test} must not be skipped here: {why}");
    }
}

// ------------------------------------------------------------------ fixtures

/// Returns the directory of the fixtures, which are written by the first call of each run.
#[track_caller]
pub(crate) fn fixtures() -> &'static Path {
    static DIRECTORY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = DIRECTORY.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixtures");
        let _ = fs::remove_dir_all(&directory);
        let made = run(script("make.py").arg(&directory).arg("--large"), LONG);
        if made.status.success() {
            Ok(directory)
        } else {
            Err(made.stderr)
        }
    });
    match made {
        Ok(directory) => directory,
        Err(why) => panic!("the fixtures cannot be written (use scripts/test): {why}"),
    }
}

/// Returns the path of one fixture.
#[track_caller]
pub(crate) fn fixture(name: &str) -> PathBuf {
    let path = fixtures().join(name);
    assert!(path.is_file(), "no fixture {name}");
    path
}

// ------------------------------------------------------------------ mounts

/// A mount in a temporary directory. Dropping it unmounts it and ends its processes.
pub(crate) struct Mount {
    /// Path at which the file is mounted.
    pub(crate) path: PathBuf,
    _directory: TempDir,
    _over: Sender<()>,
}

impl Mount {
    /// Mounts a file. Panics if that fails.
    #[track_caller]
    pub(crate) fn new(source: &Path) -> Self {
        Self::with(source, &[])
    }

    /// Mounts a file with options. Panics if that fails.
    #[track_caller]
    pub(crate) fn with(source: &Path, options: &[&str]) -> Self {
        let (mount, finished) = Self::attempt(source, options);
        assert!(
            finished.status.success(),
            "{}: {}",
            source.display(),
            finished.stderr
        );
        assert!(
            mount.is_up(),
            "exit status 0, but {} is not mounted",
            source.display()
        );
        mount
    }

    /// Tries to mount a file. The caller checks the result.
    #[track_caller]
    pub(crate) fn attempt(source: &Path, options: &[&str]) -> (Self, Finished) {
        let mount = Self::prepare();
        let finished = run(h5fs(options).arg(source).arg(&mount.path), MOUNT_LIMIT);
        (mount, finished)
    }

    /// Creates a mount point on which the caller mounts. Dropping it still unmounts.
    pub(crate) fn prepare() -> Self {
        Self::prepare_in(&std::env::temp_dir())
    }

    /// Does the same as [`Mount::prepare`], in a directory below `parent`.
    pub(crate) fn prepare_in(parent: &Path) -> Self {
        let directory = TempDir::with_prefix_in("h5fs-test-", parent);
        let directory = directory.expect("temporary directory");
        let path = directory.path().join("mnt");
        fs::create_dir(&path).expect("mount point");
        let (over, life) = channel();
        let watched = path.clone();
        std::thread::spawn(move || {
            if life.recv_timeout(MOUNT_LIFE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{}: cut off after {MOUNT_LIFE:?}", watched.display());
                clear(&watched);
            }
        });
        Self {
            path,
            _directory: directory,
            _over: over,
        }
    }

    /// Returns a path in the mount.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// Returns whether a file is mounted here according to the mount table. A `stat` would wait for
    /// a hung daemon.
    pub(crate) fn is_up(&self) -> bool {
        is_mounted(&self.path)
    }

    /// Returns a number from the mount's status.
    #[track_caller]
    pub(crate) fn status(&self, name: &str) -> u64 {
        let text = fs::read_to_string(self.at(".h5fs/status")).expect("status");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let figure = line.and_then(|line| line.strip_prefix(": "));
        figure.expect("a figure").parse().expect("a number")
    }

    /// Returns the processes that serve this mount.
    pub(crate) fn processes(&self) -> Vec<Process> {
        processes_of(&self.path)
    }

    /// Returns the process that has the source open, and the process that has not. Only root can
    /// list the open files of the first one.
    #[track_caller]
    pub(crate) fn worker_and_supervisor(&self, source: &Path) -> (Process, Process) {
        let all = self.processes();
        assert_eq!(all.len(), 2, "a worker and a supervisor, not {all:?}");
        let source = fs::metadata(source).expect("source");
        let (mut workers, supervisors): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| {
            let Ok(open) = fs::read_dir(format!("/proc/{}/fd", p.pid)) else {
                return p.is_called("worker");
            };
            open.flatten().any(|fd| {
                // only ordinary files: a stat through a descriptor of the mount itself could wait
                // for the mount
                fs::read_link(fd.path()).is_ok_and(|to| to.starts_with("/"))
                    && fs::metadata(fd.path())
                        .is_ok_and(|m| (m.dev(), m.ino()) == (source.dev(), source.ino()))
            })
        });
        assert_eq!(workers.len(), 1, "one process that has the source open");
        let mut supervisors = supervisors.into_iter();
        (
            workers.remove(0),
            supervisors.next().expect("a process without the source"),
        )
    }

    /// Unmounts as a user would. A mount may stay busy for a moment, because a forked child of
    /// another thread still holds a file of the mount.
    #[track_caller]
    pub(crate) fn unmount(&self) {
        eventually(MOUNT_LIMIT, "not busy any more", || {
            let done = self.try_unmount();
            let is_busy = done.stderr.contains("busy");
            assert!(
                done.status.success() || is_busy,
                "fusermount3 -u: {}",
                done.stderr
            );
            !is_busy
        });
    }

    /// Unmounts a mount that may not be ready yet, so that its supervisor may still be probing it.
    #[track_caller]
    pub(crate) fn unmount_when_free(&self) {
        let unmounted = || self.try_unmount().status.success();
        eventually(MOUNT_LIMIT, "unmounted", unmounted);
    }

    fn try_unmount(&self) -> Finished {
        let mut unmount = Command::new("fusermount3");
        run(unmount.arg("-u").arg(&self.path), MOUNT_LIMIT)
    }

    /// Waits until the mount and all its processes are gone.
    #[track_caller]
    pub(crate) fn must_be_gone(&self, limit: Duration) {
        eventually(limit, "unmounted", || !self.is_up());
        eventually(limit, "no process left", || self.processes().is_empty());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        clear(&self.path);
    }
}

fn clear(path: &Path) {
    let quietly = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(path).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.is_ok_and(|mut c| wait(&mut c, Duration::from_secs(5)).is_some_and(|s| s.success()))
    };
    // several: a failed test may have mounted twice
    for _ in 0..4 {
        if !is_mounted(path) {
            break;
        }
        let _ = quietly("fusermount3", &["-u"])
            || quietly("umount", &[])
            || quietly("fusermount3", &["-u", "-z"])
            || quietly("umount", &["-l"]);
    }
    let end = Instant::now() + Duration::from_secs(2);
    while !processes_of(path).is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    for process in processes_of(path) {
        process.signal(Signal::SIGKILL);
    }
}

/// Returns whether the mount table lists this path.
pub(crate) fn is_mounted(path: &Path) -> bool {
    find_mount(path).is_some()
}

/// Returns the mount's line in the mount table.
#[track_caller]
pub(crate) fn mount_line(path: &Path) -> String {
    find_mount(path).unwrap_or_else(|| panic!("{} is not mounted", path.display()))
}

/// Finds the mount's line in the mount table. Tries several times: the table is read in pieces, and
/// a line can be missed while other tests mount and unmount.
fn find_mount(path: &Path) -> Option<String> {
    let path = path.to_str().expect("test paths are text");
    (0..4).find_map(|_| {
        let mounts = fs::read("/proc/self/mountinfo").expect("mountinfo");
        let mounts = String::from_utf8_lossy(&mounts).into_owned();
        mounts
            .lines()
            .find(|line| line.split(' ').nth(4) == Some(path))
            .map(str::to_owned)
    })
}

// ------------------------------------------------------------------ processes

/// A process, identified by its number and its start time, because numbers are reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    start: String,
    parent: i32,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let alive = *fields.first()? != "Z" && *fields.first()? != "X";
        let (parent, start) = (fields.get(1)?.parse().ok()?, (*fields.get(19)?).to_owned());
        alive.then_some(Self { pid, start, parent })
    }

    /// Returns whether the process has this role, according to its name.
    pub(crate) fn is_called(&self, role: &str) -> bool {
        name_of(self.pid).is_some_and(|name| name.ends_with(&format!(": {role}")))
    }

    /// Returns whether this process still runs.
    pub(crate) fn is_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.start == self.start)
    }

    /// Waits until this process has ended. A process that is ending has lost its program and its
    /// arguments, so that [`processes_of`] finds it no longer.
    #[track_caller]
    pub(crate) fn must_end(&self, limit: Duration) {
        eventually(limit, "the process's end", || !self.is_alive());
    }

    /// Returns the number of the process's threads.
    pub(crate) fn threads(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid));
        tasks.map_or(0, Iterator::count)
    }

    /// Returns the processor time of all threads of the process, to a hundredth of a second.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).expect("stat");
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        let times = fields.split(' ').skip(11).take(2);
        let ticks: u64 = times
            .map(|ticks| ticks.parse::<u64>().expect("ticks"))
            .sum();
        Duration::from_millis(ticks * 10)
    }

    /// Returns the peak memory of the process in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak_if_running().expect("a process that runs")
    }

    /// Returns the peak memory of the process in bytes, unless the process is ending or has ended.
    pub(crate) fn peak_if_running(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let mut lines = status.lines();
        let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes = peak.split_whitespace().next().expect("a figure");
        Some(kilobytes.parse::<u64>().expect("a number") << 10)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_alive() {
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// Returns the processes of this program that have the mount point in their arguments or
/// environment, and the children of these processes.
pub(crate) fn processes_of(mountpoint: &Path) -> Vec<Process> {
    let wanted = mountpoint.as_os_str().as_encoded_bytes();
    let names_it = |pid: i32| {
        ["cmdline", "environ"].iter().any(|what| {
            fs::read(format!("/proc/{pid}/{what}"))
                .is_ok_and(|text| text.windows(wanted.len()).any(|w| w == wanted))
        })
    };
    let all: Vec<Process> = fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| match fs::read_link(format!("/proc/{pid}/exe")) {
            // A test may run a copy of the program.
            Ok(exe) => exe.file_name() == Path::new(H5FS).file_name(),
            // a sandboxed worker or fetcher shows only its name
            Err(_) => name_of(pid)
                .is_some_and(|name| name.ends_with(": worker") || name.ends_with(": fetcher")),
        })
        .filter_map(Process::read)
        .collect();
    let direct: Vec<i32> = all
        .iter()
        .map(|p| p.pid)
        .filter(|&pid| names_it(pid))
        .collect();
    all.into_iter()
        .filter(|p| direct.contains(&p.pid) || direct.contains(&p.parent))
        .collect()
}

/// Returns the first word of a process's command line.
fn name_of(pid: i32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let name = line.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

// ------------------------------------------------------------------ trees

/// Returns every entry of a tree without following symbolic links, sorted. Skips directories that
/// cannot be listed.
pub(crate) fn tree(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut stack = vec![top.to_owned()];
    while let Some(directory) = stack.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                stack.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

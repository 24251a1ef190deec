//! A file that h5py appends to while it is mounted: single writer, multiple readers (SWMR).

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{LONG, Mount, SOON, eventually, fixture, run, script};

/// Returns the number of seconds for which a writer is observed. `H5FS_SWMR_SECONDS` sets another
/// number.
fn seconds() -> u64 {
    let wanted = std::env::var("H5FS_SWMR_SECONDS").ok();
    wanted.map_or(6, |text| text.parse().expect("a number of seconds"))
}

/// Maximum number of seconds from a flush until its data is visible, on a busy machine.
const LAG: &str = "50";

/// A writer that is killed if the test ends first.
struct Writer {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Writer {
    /// Starts the writer of `swmr.py`. Returns once readers may start.
    fn start(file: &Path, seconds: u64) -> Self {
        Self::of("swmr.py", file, seconds)
    }

    /// Starts the writer in the script with this name.
    fn of(name: &str, file: &Path, seconds: u64) -> Self {
        let mut command = script(name);
        command.arg("write").arg(file).arg(seconds.to_string());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a writer");
        let mut said = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        said.read_line(&mut line).expect("its first line");
        assert_eq!(line, "ready\n");
        Writer { child, said }
    }

    fn close(mut self) {
        let pid = Pid::from_raw(self.child.id().try_into().expect("a number"));
        kill(pid, Signal::SIGTERM).expect("a signal");
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).expect("its last line");
        assert!(self.child.wait().expect("its end").success());
        print!("{rest}");
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_is_appended_is_seen() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("growing.h5");
    let seconds = seconds();
    let writer = Writer::start(&file, seconds + LONG.as_secs());
    let mount = Mount::new(&file);
    let mut check = script("swmr.py");
    check.arg("check").arg(&mount.path).arg(&file);
    let checked = run(
        check.args([seconds.to_string(), LAG.to_owned()]),
        Duration::from_secs(seconds) + LONG,
    );
    print!("{}", checked.text());
    assert!(checked.status.success(), "{}", checked.stderr);
    let linking = Mount::new(&file.with_extension("h5.link"));
    let there = fs::File::open(linking.at("there/array")).expect("open");
    let first = there.metadata().expect("stat").len();
    eventually(SOON, "growth of a file that a link leads to", || {
        there.metadata().expect("stat").len() > first
    });
    let mut appended_there = vec![0; 40];
    there
        .read_exact_at(&mut appended_there, first)
        .expect("read");
    run(
        script("zarr_stores.py")
            .arg("growing-check")
            .arg(mount.at(".h5fs/file.zarr")),
        LONG,
    )
    .success();
    // A reader that was open all the time also sees the end: `tail` requests the size each second.
    let mut tail = Command::new("tail")
        .args(["-c", "+1", "-f"])
        .arg(mount.at("array"))
        .stdout(fs::File::create(directory.path().join("followed")).expect("create"))
        .spawn()
        .expect("tail");
    writer.close();
    let mut here = vec![0; 40];
    let array = fs::File::open(mount.at("array")).expect("open");
    array.read_exact_at(&mut here, first).expect("read");
    assert_eq!(here, appended_there);
    let whole = |name: &str| fs::read(mount.at(name)).expect("read");
    let appended = appends(&file);
    eventually(SOON, "all that was appended", || {
        whole("array").len() == appended * 5 * 8 && whole("tree").len() == appended * 24 * 8
    });
    eventually(SOON, "`tail -f` has it", || {
        fs::metadata(directory.path().join("followed"))
            .is_ok_and(|m| m.len() as usize == appended * 5 * 8)
    });
    let _ = tail.kill();
    let _ = tail.wait();
    assert!(fs::read(directory.path().join("followed")).expect("read") == whole("array"));
    assert_eq!(mount.processes().len(), 2, "a worker and a supervisor");
}

/// An open document shows one state, whatever its kind and however the file grows.
#[test]
fn an_open_document_is_of_one_state() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("growing.h5");
    let rounds = seconds() / 2;
    let writer = Writer::start(&file, LONG.as_secs());
    let mount = Mount::new(&file);
    let mut check = script("swmr.py");
    check.arg("documents").arg(&mount.path);
    let checked = run(check.arg(rounds.to_string()), LONG);
    print!("{}", checked.text());
    assert!(checked.status.success(), "{}", checked.stderr);
    writer.close();
}

/// In each document, a variable is as long as its dimension. No record that the file had when the
/// document was opened is shown as missing.
#[test]
fn variables_of_a_growing_file_are_of_one_state() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("growing.nc");
    let writer = Writer::of("swmr_variables.py", &file, LONG.as_secs());
    let mount = Mount::new(&file);
    let mut check = script("swmr_variables.py");
    check.arg("check").arg(&mount.path);
    let reads = seconds() * 10;
    let checked = run(check.arg(reads.to_string()), LONG);
    print!("{}", checked.text());
    assert!(checked.status.success(), "{}", checked.stderr);
    writer.close();
}

/// A data file of a directory is closed to make room for another, even if documents in it are open.
/// If the file has grown when it is reopened, a document would otherwise start in one state and end
/// in another.
#[test]
fn a_document_whose_file_was_closed_and_has_grown_is_stale() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("growing.h5");
    fs::copy(fixture("corruptible.h5"), directory.path().join("other.h5")).expect("copy");
    let writer = Writer::start(&file, LONG.as_secs());
    let mount = Mount::with(directory.path(), &["-o", "open_files=1"]);
    let path = mount.at("growing.h5/.h5fs/npy/array.npy");
    let document = fs::File::open(&path).expect("open");
    let length = document.metadata().expect("stat").len();
    let last = || document.read_exact_at(&mut [0; 8], length - 8);
    last().expect("its last number");
    eventually(SOON, "growth", || {
        fs::metadata(&path).expect("stat").len() > length
    });
    last().expect("the file is open");
    fs::read_dir(mount.at("other.h5")).expect("the other file");
    let stale = Some(nix::libc::ESTALE);
    assert_eq!(last().expect_err("another state").raw_os_error(), stale);
    writer.close();
}

/// Returns the number of appends in the writer's log.
fn appends(file: &Path) -> usize {
    let log = fs::read_to_string(file.with_extension("h5.log")).expect("the writer's log");
    log.lines().count()
}

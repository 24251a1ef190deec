//! Readers of remote files that are interrupted while the server does not respond. Each reader exits
//! at once, and its request ends too. Otherwise the requests would occupy all slots of the mount. The
//! text of a near dataset is counted in the only heavy slot.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{LONG, MOUNT_LIMIT, Mount, SOON, run, script, wait};
use crate::objects::server::Server;

/// Number of readers, each of another dataset. A mount with one thread has fewer slots for requests.
const READERS: usize = 24;

/// The mount option that sets a timeout in seconds. The timeout exceeds the time limit of a test.
const TIMEOUT: &str = "timeout=600";

/// Puts two files on the server and returns the URL of the first file. The datasets `far0`,
/// `far1` … and `texts0`, `texts1` … of the first file are virtual, and their elements are in the
/// second file. The elements of the datasets `near0` to `near4` are in the first file.
fn virtual_file(server: &Server) -> String {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut writer = script("interrupted.py");
    writer.arg(directory.path()).arg(READERS.to_string());
    run(&mut writer, LONG).success();
    for name in ["main.h5", "part.h5"] {
        let bytes = fs::read(directory.path().join(name)).expect("a file");
        server.put(&format!("/data/{name}"), bytes);
    }
    server.url("/data/main.h5")
}

/// Interrupts readers that wait for the server: one of each file whose path is `path` with the
/// number of the dataset in place of `#`. Checks that `near` can then be read.
#[track_caller]
fn are_interrupted(mount: &Mount, path: &str, near: &str) {
    let read = |number: usize| {
        let path = path.replace('#', &number.to_string());
        let mut reader = Command::new("cat");
        let reader = reader.arg(mount.at(&path)).stdout(Stdio::null());
        reader.spawn().expect("a reader")
    };
    let mut readers: Vec<Child> = (0..READERS).map(read).collect();
    thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    for reader in &mut readers {
        assert!(reader.try_wait().expect("a reader").is_none(), "{path}");
        let process = Pid::from_raw(reader.id().try_into().expect("a number"));
        kill(process, Signal::SIGINT).expect("a signal");
    }
    for reader in &mut readers {
        let ended = wait(reader, SOON).expect("it ends");
        assert_eq!(ended.signal(), Some(Signal::SIGINT as i32), "{path}");
    }
    let answered = run(Command::new("cat").arg(mount.at(near)), MOUNT_LIMIT).success();
    assert!(answered.stdout.starts_with(b"0"), "{answered:?}");
    // Ten times the usual time, and a twentieth of the timeout.
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{path}: {:?}",
        began.elapsed()
    );
}

#[test]
fn readers_of_far_virtual_arrays_leave_their_places() {
    let server = Server::start();
    let url = virtual_file(&server);
    let mount = Mount::with(Path::new(&url), &["-o", TIMEOUT, "-o", "threads=1"]);
    // The metadata of the first file and its near elements are cached.
    for number in 0..5 {
        let near = fs::read(mount.at(&format!("near{number}"))).expect("a dataset");
        assert_eq!(near.len(), 200_000);
    }
    server.faults(|to| to.hang = u32::MAX);
    for (number, path) in ["far#", ".h5fs/csv/far#.csv", ".h5fs/json/far#.json"]
        .iter()
        .enumerate()
    {
        are_interrupted(&mount, path, &format!(".h5fs/csv/near{number}.csv"));
    }
    are_interrupted(&mount, ".h5fs/png/far#.png", ".h5fs/csv/near3.csv");
    are_interrupted(&mount, ".h5fs/text/texts#.txt", ".h5fs/csv/near4.csv");
}

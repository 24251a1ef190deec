//! Objects that take seconds to decode, and their effect on other readers.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{LONG, Mount, Process, SOON, eventually, run, script, wait};

const HOSTILE: usize = 8;

/// Returns the directory of the files that `stalls.py` writes.
fn made() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stalls");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("directory");
        run(script("stalls.py").arg(&directory), LONG).success();
        directory
    })
}

/// Starts a reader of an object that is slow to decode.
fn cat(mount: &Mount, object: usize) -> Child {
    let mut cat = Command::new("cat");
    cat.arg(mount.at(&format!("hostile{object}")));
    cat.stdout(Stdio::null()).spawn().expect("cat")
}

/// Waits until the worker no longer decodes.
#[track_caller]
fn becomes_quiet(worker: &Process) {
    eventually(SOON, "the work ends", || {
        let before = worker.processor_time();
        std::thread::sleep(Duration::from_millis(300));
        worker.processor_time() - before < Duration::from_millis(60)
    });
}

/// Readers that are killed at the end of the test.
struct Readers(Vec<Child>);

impl Readers {
    fn of(mount: &Mount) -> Self {
        Readers((0..HOSTILE).map(|i| cat(mount, i)).collect())
    }

    /// Returns the number of readers that still wait.
    fn waiting(&mut self) -> usize {
        let mut children = self.0.iter_mut();
        let ended = |child: &mut Child| child.try_wait().expect("wait").is_some();
        children
            .by_ref()
            .filter_map(|child| (!ended(child)).then_some(()))
            .count()
    }

    fn kill(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Looks up names, lists a directory, and reads bytes that the kernel has not cached.
fn look_around(mount: &Mount, round: u64) {
    fs::metadata(mount.at(&format!("names/{round}"))).expect("stat");
    assert!(fs::metadata(mount.at(&format!("names/no{round}"))).is_err());
    assert_eq!(
        fs::read_dir(mount.at("names")).expect("listing").count(),
        200
    );
    for name in ["contiguous", "deflate"] {
        let file = File::open(mount.at(name)).expect("open");
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("advice");
        file.read_exact_at(&mut [0; 4096], round * 77_777)
            .expect("read");
    }
}

/// Checks that other requests are served while eight objects are decoded. Each object takes longer
/// than the whole test.
fn others_are_served(name: &str) {
    let source = made().join(name);
    let mount = Mount::with(&source, &["-o", "threads=2,cache_size=16M"]);
    let (worker, _) = mount.worker_and_supervisor(&source);
    let mut readers = Readers::of(&mount);
    let begun = || worker.threads() > 8;
    eventually(SOON, "all are read", begun);
    for round in 0..40 {
        look_around(&mount, round);
    }
    assert_eq!(readers.waiting(), HOSTILE);
    // Decoding stops if no reader waits for it. The complete decoding would take half a minute.
    readers.kill();
    let at_most = worker.processor_time() + Duration::from_secs(10);
    becomes_quiet(&worker);
    assert!(worker.processor_time() < at_most);
}

#[test]
fn others_are_served_while_eight_chunks_are_decoded() {
    others_are_served("stalls.h5");
}

#[test]
fn others_are_served_while_eight_streams_are_decoded() {
    others_are_served("stalls.asdf");
}

/// The first reader of a slow chunk can be interrupted, although it reads through the page cache.
#[test]
fn a_reader_of_a_slow_chunk_is_interrupted_at_once() {
    let source = made().join("stalls.h5");
    let mount = Mount::with(&source, &["-o", "threads=1,cache_size=1M"]);
    let (worker, _) = mount.worker_and_supervisor(&source);
    for object in 0..3 {
        let before = worker.processor_time();
        // Not dd, which waits for the end of the read and then prints the number of copied bytes.
        let mut reader = cat(&mount, object);
        let begun = || worker.processor_time() > before + Duration::from_millis(100);
        eventually(SOON, "the chunk is being decoded", begun);
        kill(Pid::from_raw(reader.id() as i32), Signal::SIGTERM).expect("kill");
        wait(&mut reader, SOON).expect("the reader ends");
        assert_eq!(mount.status("chunks decoded"), 0, "the reader waited");
        becomes_quiet(&worker);
    }
}

/// A chunk of 8 MiB, read in pieces of 64 KiB, with a cache of one mebibyte.
#[test]
fn a_chunk_is_decoded_once_whatever_the_cache() {
    let source = made().join("stalls.h5");
    for options in [
        "threads=1,cache_size=1M",
        "threads=2,cache_size=1M,direct_io",
    ] {
        let mount = Mount::with(&source, &["-o", options]);
        let (single, same) = (mount.at("single"), mount.at("contiguous"));
        let file = File::open(single).expect("open");
        let mut bytes = vec![0; 8 << 20];
        for (part, at) in bytes.chunks_mut(64 << 10).zip((0..).step_by(64 << 10)) {
            file.read_exact_at(part, at).expect("read");
        }
        assert_eq!(mount.status("chunks decoded"), 1, "{options}");
        assert!(bytes == fs::read(same).expect("the same"));
        let csv = fs::read(mount.at(".h5fs/npy/single.npy")).expect("a view");
        assert!(csv.ends_with(&bytes));
        assert_eq!(mount.status("chunks decoded"), 1, "{options}");
    }
}

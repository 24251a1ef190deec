//! A source that changes while it is mounted. Every read returns the old file, the new file or an
//! error, never a mixture, and the mount continues. While a file is written in place, an
//! intermediate state also counts as a state.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::harness::{MOUNT_LIMIT, Mount, SOON, eventually, fixture, h5fs, run, script};
use crate::hostile::asdf;
use crate::hostile::hdf5::*;

const ELEMENTS: usize = 300_000;
const NAMES: [&str; 3] = ["plain", "chunks", "packed"];

/// Number of changes of the source.
const CHANGES: usize = 5;

/// Number of reads of each file between two changes.
const CALM_READS: usize = 10;

/// Stops the readers, even if the thread that changes the source panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A function that changes the source's content to `content`.
type Change = fn(source: &Path, content: &[u8]);

fn replaced(source: &Path, content: &[u8]) {
    let next = source.with_extension("next");
    fs::write(&next, content).expect("write");
    fs::rename(&next, source).expect("rename");
}

fn truncated(source: &Path, content: &[u8]) {
    let file = fs::File::options().write(true).open(source).expect("open");
    file.set_len(content.len() as u64 / 2).expect("truncate");
    drop(file);
    std::thread::sleep(Duration::from_millis(30));
    fs::write(source, content).expect("write");
}

fn rewritten(source: &Path, content: &[u8]) {
    let mut file = fs::File::options().write(true).open(source).expect("open");
    for piece in content.chunks(100_000) {
        file.write_all(piece).expect("write");
        std::thread::sleep(Duration::from_millis(5));
    }
    file.set_len(content.len() as u64).expect("truncate");
}

/// Reads all files repeatedly while the source changes.
#[track_caller]
fn never_mixed(extension: &str, change: Change, is_atomic: bool) {
    never_mixed_in(&format!("source.{extension}"), extension, change, is_atomic);
}

/// Reads all files of `mounted` repeatedly while the source that contains its elements changes.
#[track_caller]
fn never_mixed_in(mounted: &str, extension: &str, change: Change, is_atomic: bool) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let made = run(
        script("changing.py")
            .arg(directory.path())
            .arg(ELEMENTS.to_string()),
        MOUNT_LIMIT,
    );
    assert!(made.status.success(), "{}", made.stderr);
    let content =
        |name: &str| fs::read(directory.path().join(name).with_extension(extension)).expect("made");
    let states = [content("old"), content("new")];
    let source = directory.path().join("source").with_extension(extension);
    fs::write(&source, &states[0]).expect("write");
    let mount = Mount::new(&directory.path().join(mounted));
    let (over, calm) = (AtomicBool::new(false), [0; 3].map(AtomicUsize::new));
    // Reading must also work while the source is unchanged.
    let turn = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (name, calm) in NAMES.into_iter().zip(&calm) {
            let (mount, over, turn) = (&mount, &over, &turn);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let before = turn.load(Ordering::SeqCst);
                    let read = fs::read(mount.at(name));
                    let is_calm = before % 2 == 0 && before == turn.load(Ordering::SeqCst);
                    match read {
                        Ok(bytes) => {
                            assert_eq!(bytes.len(), ELEMENTS, "{name}");
                            assert!(bytes.iter().all(|byte| [1, 2].contains(byte)), "{name}");
                            let first = bytes[0];
                            let is_one = bytes.iter().all(|&byte| byte == first);
                            assert!(is_one || !is_calm && !is_atomic, "{name}: mixed");
                            calm.fetch_add(usize::from(is_calm), Ordering::Relaxed);
                        }
                        Err(error) => {
                            let number = error.raw_os_error().map(Errno::from_raw);
                            let is_right =
                                matches!(number, Some(Errno::EIO | Errno::ESTALE | Errno::ENOENT));
                            assert!(is_right, "{name}: {error}");
                        }
                    }
                }
            });
        }
        let _over = Over(&over);
        for change_number in 1..=CHANGES {
            turn.fetch_add(1, Ordering::SeqCst);
            change(&source, &states[change_number % 2]);
            let new = vec![1 + u8::from(change_number % 2 == 1); ELEMENTS];
            let is_new = |name: &str| fs::read(mount.at(name)).is_ok_and(|bytes| bytes == new);
            eventually(SOON, "the new state", || NAMES.into_iter().all(is_new));
            turn.fetch_add(1, Ordering::SeqCst);
            let reads = || calm.iter().map(|calm| calm.load(Ordering::Relaxed));
            let before: Vec<usize> = reads().collect();
            eventually(SOON, "calm reads of each file", || {
                reads()
                    .zip(&before)
                    .all(|(now, before)| now >= before + CALM_READS)
            });
        }
    });
    assert_eq!(mount.processes().len(), 2, "a worker and a supervisor");
}

#[test]
fn replaced_hdf5() {
    never_mixed("h5", replaced, true);
}

#[test]
fn replaced_asdf() {
    never_mixed("asdf", replaced, true);
}

#[test]
fn truncated_hdf5() {
    never_mixed("h5", truncated, false);
}

#[test]
fn truncated_asdf() {
    never_mixed("asdf", truncated, false);
}

#[test]
fn rewritten_asdf() {
    never_mixed("asdf", rewritten, false);
}

#[test]
fn rewritten_hdf5() {
    never_mixed("h5", rewritten, false);
}

#[test]
fn virtual_sources() {
    never_mixed_in("over.h5", "h5", replaced, true);
    never_mixed_in("over.h5", "h5", rewritten, false);
}

#[test]
fn raw_files() {
    never_mixed_in("over-raw.h5", "raw", replaced, true);
    never_mixed_in("over-raw.h5", "raw", rewritten, false);
}

#[test]
fn exploded_asdf() {
    never_mixed_in("over.asdf", "asdf", replaced, true);
    never_mixed_in("over.asdf", "asdf", rewritten, false);
}

/// A source that cannot be opened during a write is opened once it is complete.
#[test]
fn the_first_read_after_a_change_is_of_what_is_there_now() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("source.h5");
    fs::write(&source, with_bytes(&[0; 100])).expect("write");
    let (file, all) = (Mount::new(&source), Mount::new(directory.path()));
    let files = [file.at("x"), all.at("source.h5/x")];
    for (number, change) in (1_u8..=12).zip([replaced, truncated, rewritten].iter().cycle()) {
        for file in &files {
            assert_eq!(fs::read(file).expect("old bytes"), [number - 1; 100]);
        }
        // During the write, the file is briefly invalid.
        fs::OpenOptions::new()
            .write(true)
            .open(&source)
            .and_then(|file| file.set_len(4))
            .expect("truncate");
        std::thread::sleep(Duration::from_millis(20));
        change(&source, &with_bytes(&[number; 100]));
        for file in &files {
            assert_eq!(fs::read(file).expect("new bytes"), [number; 100]);
        }
    }
}

/// During a copy, half of the file exists.
#[test]
fn a_damaged_neighbour_that_is_whole_again() {
    const CONTENT: [u8; 100] = [7; 100];
    let directory = tempfile::tempdir().expect("temporary directory");
    let other = directory.path().join("other.asdf");
    fs::write(&other, "#AS").expect("write");
    let source = directory.path().join("source.asdf");
    let array = "!core/ndarray-1.0.0 {source: other.asdf, datatype: uint8, byteorder: little, shape: [100]}";
    fs::write(&source, asdf::file(format!("x: {array}"), &[])).expect("write");
    let mount = Mount::new(&source);
    assert_eq!(errno(fs::read(mount.at("x"))), Errno::EIO);
    replaced(&other, &asdf::exploded(&CONTENT));
    eventually(SOON, "the whole file", || {
        fs::read(mount.at("x")).is_ok_and(|bytes| bytes == CONTENT)
    });
}

/// Returns a file whose dataset `x` has these bytes.
fn with_bytes(content: &[u8]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let x = file.put_bytes(content);
    let root = file.put_group(&[(b"x", x)]);
    file.rooted(root)
}

/// Returns the errno of a result that must be an error.
#[track_caller]
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    let error = result.expect_err("an error");
    Errno::from_raw(error.raw_os_error().expect("an errno"))
}

/// A new time or mode counts as a change, because only reading all bytes could show that they are
/// the same.
#[test]
fn a_file_whose_times_change_is_another_one() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("source.h5");
    fs::write(&source, with_bytes(&[1; 100])).expect("write");
    let touched = |source: &Path| {
        let file = fs::File::options().write(true).open(source).expect("open");
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        file.set_modified(time).expect("touch");
    };
    let with_another_mode = |source: &Path| {
        fs::set_permissions(source, fs::Permissions::from_mode(0o640)).expect("chmod");
    };
    let mount = Mount::with(&source, &["-o", "direct_io"]);
    let changes: [&dyn Fn(&Path); 2] = [&touched, &with_another_mode];
    for change in changes {
        let open = fs::File::open(mount.at("x")).expect("open");
        let mut bytes = [0; 10];
        open.read_exact_at(&mut bytes, 0).expect("read");
        assert_eq!(bytes, [1; 10]);
        change(&source);
        assert_eq!(errno(open.read_at(&mut bytes, 0)), Errno::ESTALE);
        eventually(SOON, "the file once more", || {
            fs::read(mount.at("x")).is_ok_and(|bytes| bytes == [1; 100])
        });
        assert_eq!(errno(open.read_at(&mut bytes, 0)), Errno::ESTALE);
    }
}

/// Replaces a linked file and the raw file of one of its datasets, one after the other.
#[test]
fn a_raw_file_is_that_of_the_file_that_is_shown() {
    const LENGTH: u64 = 100;
    let directory = tempfile::tempdir().expect("temporary directory");
    let put = |byte: u8| {
        let mut file = Hdf5::new();
        let x = file.put_in_raw_file("s.raw", LENGTH);
        let k = file.put_bytes(&[byte; LENGTH as usize]);
        let root = file.put_group(&[(b"k", k), (b"x", x)]);
        let raw = directory.path().join("s.raw");
        replaced(&raw, &[byte; LENGTH as usize]);
        replaced(&raw.with_extension("h5"), &file.rooted(root));
    };
    let mut main = Hdf5::new();
    let root = main.put(&group(&[external_link(b"l", b"s.h5", b"/")]));
    let source = directory.path().join("m.h5");
    fs::write(&source, main.rooted(root)).expect("write");
    for options in [&[][..], &["-o", "direct_io"]] {
        put(1);
        let mount = Mount::with(&source, options);
        let read = |name| fs::read(mount.at(name)).unwrap_or_default();
        let all = |byte| [byte; LENGTH as usize].to_vec();
        assert_eq!((read("l/x"), read("l/k")), (all(1), all(1)));
        put(2);
        eventually(SOON, "the new file", || read("l/k") == all(2));
        assert_eq!((read("l/x"), read("l/k")), (all(2), all(2)));
    }
}

/// Reads a number from the environment.
fn scale(variable: &str, by_default: u64) -> u64 {
    let wanted = std::env::var(variable).ok();
    wanted.map_or(by_default, |text| text.parse().expect("a number"))
}

/// Rewrites three kinds of files with one large and slow `write` each, without a lock, while all of
/// each file is read. `H5FS_IN_PLACE_MIB` and `H5FS_IN_PLACE_ROUNDS` set the size and the number of
/// rounds.
#[test]
fn no_old_byte_stays_once_a_write_has_ended() {
    let mib = scale("H5FS_IN_PLACE_MIB", 4);
    let rounds = scale("H5FS_IN_PLACE_ROUNDS", 2);
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut make = script("in_place.py");
    make.arg("make").arg(directory.path()).arg(mib.to_string());
    run(&mut make, MOUNT_LIMIT * 10).success();
    let mounts = ["slow.asdf", "own.h5", "over.h5", "own.asdf"];
    let mounts = mounts.map(|name| Mount::new(&directory.path().join(name)));
    let mut check = script("in_place.py");
    check.arg("check").arg(directory.path());
    check.arg(&mounts[0].path).arg(rounds.to_string());
    check.args(mounts[1..].iter().map(|mount| &mount.path));
    let checked = run(
        &mut check,
        MOUNT_LIMIT * u32::try_from(rounds).expect("few") * 10,
    );
    print!("{}", checked.text());
    checked.success();
}

/// Between two writes of a program that writes in place, a half-written chunk is not reported as
/// damage.
#[test]
fn a_compressed_chunk_that_was_just_written_is_stale_rather_than_damaged() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("run.h5");
    run(script("views.py").arg("write").arg(&file), MOUNT_LIMIT).success();
    for (mounted, inside) in [(&*file, ""), (directory.path(), "run.h5/")] {
        let mount = Mount::new(mounted);
        let at = |name: &str| mount.at(&format!("{inside}{name}"));
        let views = ["grid/plane", ".h5fs/npy/grid/plane.npy"];
        let good = views.map(|name| fs::read(at(name)).expect("the dataset"));
        let index = fs::read_to_string(at(".h5fs/chunks/grid/plane.tsv")).expect("the index");
        let words = index.lines().nth(1).expect("a chunk").split('\t');
        let words: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let [place, length, ..] = words[..] else {
            panic!("{index}");
        };
        let mut options = fs::File::options();
        let writer = options
            .read(true)
            .write(true)
            .open(&file)
            .expect("the file");
        let mut stored = vec![0; length.try_into().expect("a chunk")];
        writer.read_exact_at(&mut stored, place).expect("a chunk");
        for (name, good) in views.iter().zip(&good) {
            let half_written = || {
                writer
                    .write_all_at(&vec![0x55; stored.len()], place)
                    .expect("a write");
                errno(fs::read(at(name))) == Errno::ESTALE
            };
            // Fails only if this test was suspended for a second.
            assert!((0..20).any(|_| half_written()), "{name}");
            // The writer does not continue.
            eventually(SOON, "damage", || errno(fs::read(at(name))) == Errno::EIO);
            writer.write_all_at(&stored, place).expect("a write");
            assert_eq!(&fs::read(at(name)).expect("the dataset"), good);
        }
    }
}

/// The kernel could cache the root's listing and the targets of links, and does cache names and
/// sizes.
#[test]
fn old_names_go_with_the_file() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let state = |number: u8| {
        let mut file = Hdf5::new();
        let x = file.put_bytes(&vec![number; 100 + usize::from(number)]);
        let own = format!("own{number}");
        let root = file.put(&group(&[
            hard_link(b"x", x),
            hard_link(own.as_bytes(), x),
            soft_link(b"link", own.as_bytes()),
        ]));
        file.rooted(root)
    };
    let source = directory.path().join("source.h5");
    fs::write(&source, state(0)).expect("write");
    let mount = Mount::new(&source);
    for number in 0..40 {
        let own = |number: u8| format!("own{number}");
        let listed = || {
            let entries = fs::read_dir(&mount.path).expect("a listing");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("an entry").file_name())
                .collect();
            names.sort();
            names
        };
        let link = || fs::read_link(mount.at("link")).expect("a text");
        let size = |name: &str| fs::metadata(mount.at(name)).map(|found| found.len());
        let length = 100 + u64::from(number);
        // Twice, so that the kernel caches everything that it ever caches.
        for _ in 0..2 {
            assert_eq!(link().to_str(), Some(&*own(number)));
            assert_eq!(listed(), ["link", &*own(number), "x"]);
            assert_eq!(
                (size("x").ok(), size(&own(number)).ok()),
                (Some(length), Some(length))
            );
        }
        replaced(&source, &state(number + 1));
        // The first result is new, and so are all later ones.
        if number % 2 == 0 {
            assert_eq!(link().to_str(), Some(&*own(number + 1)));
            assert_eq!(listed(), ["link", &*own(number + 1), "x"]);
        } else {
            assert_eq!(listed(), ["link", &*own(number + 1), "x"]);
            assert_eq!(link().to_str(), Some(&*own(number + 1)));
        }
        assert_eq!(size("x").ok(), Some(length + 1));
        assert_eq!(errno(size(&own(number))), Errno::ENOENT);
    }
}

/// Files, views and directories are open while the source is replaced repeatedly.
#[test]
fn handles_of_earlier_states_stay_stale() {
    const STATES: u8 = 5;
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("source.h5");
    fs::write(&source, with_bytes(&[0; 100])).expect("write");
    let mount = Mount::with(&source, &["-o", "direct_io"]);
    let names = ["x", ".h5fs/npy/x.npy", ".h5fs/ndl.yaml", "x[1:]"];
    let mut open = Vec::new();
    for number in 1..=STATES {
        open.extend(names.map(|name| fs::File::open(mount.at(name)).expect("open")));
        replaced(&source, &with_bytes(&[number; 100]));
        for _ in 0..2 {
            assert_eq!(fs::read(mount.at("x")).expect("read"), [number; 100]);
            for name in names {
                fs::read(mount.at(name)).expect("read");
            }
            for file in &open {
                assert_eq!(errno(file.read_at(&mut [0; 10], 0)), Errno::ESTALE);
                assert_eq!(errno(file.metadata()), Errno::ESTALE);
            }
        }
    }
}

// ------------------------------------------------------------------ marks and locks of writers

/// The whole mount is stale while a writer holds its lock. Then the new file is shown.
#[test]
fn a_file_that_is_changed_under_a_lock_is_stale_until_it_is_unlocked() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("source.h5");
    fs::write(&source, with_bytes(&[1; 100])).expect("write");
    let mount = Mount::new(&source);
    assert_eq!(fs::read(mount.at("x")).expect("read"), [1; 100]);
    let file = fs::File::options().write(true).open(&source).expect("open");
    let writer = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| e);
    let writer = writer.expect("a mount holds no lock");
    // A lock alone is not a change.
    assert_eq!(fs::read(mount.at("x")).expect("read"), [1; 100]);
    writer
        .write_all_at(&with_bytes(&[2; 100]), 0)
        .expect("write");
    let is_stale = |result: std::io::Result<()>| {
        result.is_err_and(|error| error.raw_os_error() == Some(Errno::ESTALE as i32))
    };
    let all_is_stale = || {
        is_stale(fs::read(mount.at("x")).map(drop))
            && is_stale(fs::metadata(mount.at("x")).map(drop))
            && is_stale(fs::read_dir(&mount.path).map(drop))
    };
    eventually(SOON, "stale", all_is_stale);
    // The mount tries to open the source every second, and stays stale.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(all_is_stale());
    drop(writer);
    eventually(SOON, "the new file", || {
        fs::read(mount.at("x")).is_ok_and(|bytes| bytes == [2; 100])
    });
}

/// Copies a file with other consistency flags in its superblock.
fn marked(directory: &Path, flags: u8) -> std::path::PathBuf {
    const SUPERBLOCK: usize = 48;
    let mut content = fs::read(fixture("tiny.latest.h5")).expect("fixture");
    assert_eq!((content[8], content[11]), (3, 0), "version 3, closed");
    content[11] = flags;
    let sum = h5fs_reader::wire::checksum::lookup3(&content[..SUPERBLOCK - 4]);
    content[SUPERBLOCK - 4..SUPERBLOCK].copy_from_slice(&sum.to_le_bytes());
    let path = directory.join("marked.h5");
    fs::write(&path, content).expect("write");
    path
}

#[test]
fn a_file_that_is_marked_as_open_is_refused_unless_forced() {
    let directory = tempfile::tempdir().expect("temporary directory");
    for flags in [1, 4] {
        let source = marked(directory.path(), flags);
        let (_mount, refused) = Mount::attempt(&source, &[]);
        let line = refused.one_line();
        assert!(line.contains("h5clear") && line.contains("force"), "{line}");
        let mount = Mount::with(&source, &["-o", "force"]);
        assert!(fs::read(mount.at("contiguous")).is_ok());
        for words in [&["ls"][..], &["cat", "contiguous"], &["ndl"], &["check"]] {
            let mut command = h5fs(&words[..1]);
            let refused = run(command.arg(&source).args(&words[1..]), SOON);
            assert!(
                refused.stderr.contains("'--force' reads the file anyway"),
                "{refused:?}"
            );
            run(command.arg("--force"), SOON).success();
        }
    }
}

#[test]
fn a_file_that_lets_others_read_is_mounted_whether_its_writer_lives_or_not() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let whole = Mount::new(&fixture("tiny.latest.h5"));
    let mount = Mount::new(&marked(directory.path(), 5));
    for name in ["contiguous", "group"] {
        let (here, there) = (mount.at(name), whole.at(name));
        if here.is_file() {
            assert_eq!(
                fs::read(here).expect("read"),
                fs::read(there).expect("read")
            );
        }
    }
}

#[test]
fn a_locked_file_is_refused_unless_locks_are_not_to_be_used() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("locked.h5");
    fs::copy(fixture("tiny.earliest.h5"), &source).expect("copy");
    let lock = |how| Flock::lock(fs::File::open(&source).expect("open"), how).map_err(|(_, e)| e);
    let writer = lock(FlockArg::LockExclusiveNonblock).expect("lock");
    let (_mount, refused) = Mount::attempt(&source, &[]);
    assert!(refused.one_line().contains("holds a lock"), "{refused:?}");
    let mount = |value: &str| {
        let mount = Mount::prepare();
        let mut command = h5fs([&source, &mount.path]);
        command.env("HDF5_USE_FILE_LOCKING", value);
        (run(&mut command, MOUNT_LIMIT), mount)
    };
    assert!(mount("FALSE").0.status.success());
    assert!(!mount("BEST_EFFORT").0.status.success());
    assert!(!mount("TRUE").0.status.success());
    let forced = Mount::with(&source, &["-o", "force"]);
    drop(forced);
    drop(writer);
    // A mount does not lock out a writer, and a reader does not lock out the mount.
    let reader = lock(FlockArg::LockSharedNonblock).expect("lock");
    let mount = Mount::new(&source);
    drop(reader);
    let writer = lock(FlockArg::LockExclusiveNonblock).expect("a mount holds no lock");
    assert!(fs::read(mount.at("contiguous")).is_ok());
    drop(writer);
}

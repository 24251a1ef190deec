//! Many open texts of unknown length: the resources that they need, and the release of these.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::hdf5::*;
use super::memory::{PROMISED, keeps_its_promise, mounted};
use super::requests::old_group_of;
use crate::harness::{MOUNT_LIMIT, Mount, Process, eventually};
use h5fs::limits;

/// Returns the number of files to open. `H5FS_STREAMS` overrides it.
fn many() -> usize {
    let wanted = std::env::var("H5FS_STREAMS").ok();
    let many = wanted.map_or(2000, |text| text.parse().expect("a number of files"));
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("as many files as may be");
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    // Other tests have open files too.
    many.min(most / 2)
}

fn source_of(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("source.h5");
    fs::write(&source, bytes).expect("source.h5");
    (directory, source)
}

/// Returns a file with large arrays, contiguous and in one unfiltered chunk.
fn arrays() -> Vec<u8> {
    const BYTES: u32 = 4 << 20;
    let mut file = Hdf5::new();
    let data = file.put(&vec![7; BYTES as usize]);
    let set = dataset(
        &[BYTES.into()],
        &byte_type(),
        contiguous(data, BYTES.into()),
        &[],
    );
    let set = file.put(&set);
    let index = chunked_4(0, &[BYTES, 1], &[1], data);
    let chunk = file.put(&dataset(&[BYTES.into()], &byte_type(), index, &[]));
    let root = file.put_group(&[(b"set", set), (b"chunk", chunk)]);
    file.rooted(root)
}

/// Opens texts of each kind, and directories. No open file may own a thread or a buffer.
#[test]
fn what_is_open_takes_no_threads_and_little_memory() {
    const SLACK: u64 = 16 << 20;
    let (_directory, source) = source_of(&arrays());
    let mount = mounted(&source);
    let worker = mount.worker_and_supervisor(&source).0;
    let names = [
        ".h5fs/json/set.json",
        ".h5fs/json/chunk.json",
        ".h5fs/chunks/chunk.tsv",
        ".h5fs/ndl.yaml",
        ".h5fs/ndl/set.yaml",
        ".h5fs/csv/set.csv",
        ".h5fs/status",
        "set",
    ];
    let open = |i: usize| {
        let file = File::open(mount.at(names[i % names.len()])).expect("a text");
        file.read_at(&mut [0; 16], 0).expect("its beginning");
        file
    };
    // Start the permanent threads first.
    (0..names.len()).for_each(|i| drop(open(i)));
    let (threads, resident) = (worker.threads(), worker.resident());
    let mut opened: Vec<File> = (0..many()).map(open).collect();
    // Threads for slow requests start and end, independently of open files.
    let most = threads + limits::SLOW_REQUESTS + 8;
    assert!(worker.threads() <= most, "{} threads", worker.threads());
    keeps_its_promise(&mount, &source);
    for (i, file) in opened.iter().enumerate().step_by(names.len()).take(20) {
        let mut text = vec![0; 100_000 + i];
        file.read_exact_at(&mut text, 16).expect("more of it");
        // "[7, 7, …": every third byte is a digit.
        assert!(text.iter().step_by(3).all(|&byte| byte == b'7'), "{i}");
    }
    let directories = 0..many() / 4;
    let directory = |_| {
        let mut names = fs::read_dir(mount.at(".h5fs/json")).expect("a directory");
        names.next().expect("a name").expect("a name");
        names
    };
    let directories: Vec<_> = directories.map(directory).collect();
    keeps_its_promise(&mount, &source);
    drop(directories);
    opened.clear();
    let came_back = || worker.resident() <= resident + SLACK;
    eventually(MOUNT_LIMIT, "memory comes back", came_back);
}

/// 64 readers of texts, each of a dataset with a chunk of one mebibyte.
#[test]
fn readers_of_many_texts_at_once() {
    const READERS: usize = 64;
    const CHUNK: usize = 1 << 20;
    // The limits of the README: the cache, 64 MiB, and for each thread a stored chunk and two
    // decoded ones.
    let promised = PROMISED - (1 << 20) + (64 << 20) + 4 * 3 * CHUNK as u64;
    let mut file = Hdf5::new();
    let mut links = Vec::new();
    for i in 0..READERS {
        let bytes: Vec<u8> = (0..CHUNK).map(|at| (at + i) as u8).collect();
        let stored = miniz_oxide::deflate::compress_to_vec_zlib(&bytes, 0);
        let deflate = filters(&[(1, &[0])]);
        let set = one_chunk(&mut file, deflate, CHUNK as u32, &stored);
        links.push((format!("d{i}"), set));
    }
    let links: Vec<_> = links
        .iter()
        .map(|(name, at)| (name.as_bytes(), *at))
        .collect();
    let root = file.put_group(&links);
    let (_directory, source) = source_of(&file.rooted(root));
    let mount = Mount::with(&source, &["-o", "cache_size=64M,threads=4"]);
    std::thread::scope(|scope| {
        for i in 0..READERS {
            let path = mount.at(&format!(".h5fs/json/d{i}.json"));
            let description = mount.at(".h5fs/ndl.yaml");
            scope.spawn(move || {
                let file = File::open(path).expect("a text");
                let mut text = vec![0; 200_000];
                file.read_exact_at(&mut text, 0).expect("its beginning");
                let expected = format!("[{}, {}, ", i, i + 1);
                assert!(text.starts_with(expected.as_bytes()));
                assert!(!fs::read(description).expect("a description").is_empty());
            });
        }
    });
    let (worker, _) = mount.worker_and_supervisor(&source);
    assert!(worker.peak() <= promised, "{} bytes", worker.peak());
}

/// Descriptions that each need 15 MB for names, more than the limit permits. Further descriptions
/// are refused until others are closed.
#[test]
fn more_descriptions_under_way_than_there_is_room_for() {
    const NAME: usize = 60_000;
    const OBJECTS: usize = 250;
    const DESCRIPTIONS: usize = 24;
    let mut file = Hdf5::new();
    let child = file.put_bytes(b"child");
    let names = [&[0; 8][..], &[b'n'; NAME], &[0; 8]].concat();
    // Each name is a suffix of the next one.
    let root = old_group_of(&mut file, &names, OBJECTS, |i| {
        (8 + OBJECTS as u64 - i, child, 0)
    });
    let (_directory, source) = source_of(&file.rooted(root));
    let mount = mounted(&source);
    let begin = |file: &File| {
        let read = file.read_at(&mut [0; 16], 0);
        read.map(|length| assert_eq!(length, 16))
    };
    let open = || File::open(mount.at(".h5fs/ndl.yaml")).expect("a description");
    let opened: Vec<File> = (0..DESCRIPTIONS).map(|_| open()).collect();
    let begun: Vec<_> = opened.iter().map(begin).collect();
    let refused: Vec<_> = begun
        .iter()
        .filter_map(|begun| begun.as_ref().err())
        .collect();
    assert!(
        !refused.is_empty() && refused.len() < DESCRIPTIONS / 2,
        "{refused:?}"
    );
    for error in refused {
        assert_eq!(error.raw_os_error(), Some(Errno::ENOMEM as i32));
    }
    let (worker, _) = mount.worker_and_supervisor(&source);
    // The memory of small allocations is only estimated.
    let most = PROMISED + limits::OPEN_BYTES / 4 * 5;
    assert!(worker.peak() <= most, "{} bytes", worker.peak());
    let (last, others) = (opened.last().expect("the last"), DESCRIPTIONS - 1);
    begin(last).expect_err("still no room");
    let mut opened = opened;
    let last = opened.split_off(others).pop().expect("the last");
    drop(opened);
    eventually(MOUNT_LIMIT, "it can be read", || begin(&last).is_ok());
    let mut rest = last;
    let bytes = std::io::copy(&mut rest, &mut std::io::sink()).expect("all of it");
    assert!(bytes > ((NAME - OBJECTS) * OBJECTS) as u64);
}

impl Process {
    fn status(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("status");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.expect(field).parse().expect("a number")
    }

    /// Returns the current memory of the process in bytes.
    fn resident(&self) -> u64 {
        self.status("VmRSS:") << 10
    }
}

//! Chunks of every codec that decode to much more than the file's size, and their cost for the
//! mounted program. Also files that mix pages of two states.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::tree::*;
use super::visit::{Bounds, walk};
use crate::harness::{LONG, MOUNT_LIMIT, Mount, h5fs, run, script};

/// Returns the directory of the files that `bombs.py` writes.
fn made() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bombs");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("directory");
        run(script("bombs.py").arg(&directory), LONG).success();
        directory
    })
}

fn is_eio<T>(read: std::io::Result<T>) -> bool {
    read.err().and_then(|error| error.raw_os_error()) == Some(nix::errno::Errno::EIO as i32)
}

/// Seventeen chunks with a declared size of 4 KiB and a content of 16 MiB. A program that fully
/// decoded four at a time would need 64 MiB.
#[test]
fn chunks_that_hold_more_than_they_say() {
    let source = made().join("bombs.h5");
    let mount = Mount::with(&source, &["-o", "cache_size=1M,threads=2"]);
    let (worker, _) = mount.worker_and_supervisor(&source);
    let before = worker.peak();
    let names: Vec<PathBuf> = fs::read_dir(&mount.path)
        .expect("listing")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.ends_with("good"))
        .collect();
    assert_eq!(names.len(), 17);
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(move || {
                let read = fs::read(name);
                if name.ends_with("zfp") {
                    // This stream does not declare its length, so the decoder stops at the chunk's
                    // end.
                    assert_eq!(read.expect("a chunk").len(), 4096);
                } else {
                    assert!(is_eio(read), "{}", name.display());
                }
            });
        }
    });
    let cost = worker.peak() - before;
    assert!(cost < 12 << 20, "{cost} bytes");
    assert_eq!(fs::read(mount.at("good")).expect("good").len(), 400);
}

/// If the memory limit does not suffice for a chunk, the read fails and the program continues to
/// serve.
#[test]
fn a_chunk_for_which_there_is_no_memory() {
    let source = made().join("large-chunk.h5");
    let mount = Mount::prepare();
    let program = h5fs([] as [&str; 0]).get_program().to_owned();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -d 200000 && exec \"$@\"", "sh"]);
    command.arg(program).args(["-o", "cache_size=8M,threads=1"]);
    run(command.arg(&source).arg(&mount.path), MOUNT_LIMIT).success();
    let (worker, _) = mount.worker_and_supervisor(&source);
    for _ in 0..3 {
        let read = fs::read(mount.at("deflated"));
        let errno = read.err().and_then(|error| error.raw_os_error());
        assert_eq!(errno, Some(nix::errno::Errno::ENOMEM as i32));
    }
    let shown = fs::read_to_string(mount.at(".h5fs/status")).expect("status");
    assert!(shown.contains("version: ") && worker.is_alive());
}

/// A file of 260 KB with a chunk of 256 MiB. The chunk is served within the documented memory.
#[test]
fn a_chunk_of_256_mebibytes_in_a_file_of_260_kilobytes() {
    const CHUNK: u64 = 256 << 20;
    let source = made().join("large-chunk.h5");
    let mount = Mount::with(&source, &["-o", "cache_size=8M,threads=1"]);
    let (worker, _) = mount.worker_and_supervisor(&source);
    let file = File::open(mount.at("deflated")).expect("open");
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let file = &file;
            scope.spawn(move || {
                let mut piece = vec![7; 100_000];
                let at = reader * (CHUNK - 100_000) / 3;
                file.read_exact_at(&mut piece, at).expect("zeros");
                assert!(piece.iter().all(|&byte| byte == 0));
            });
        }
    });
    let stored = source.metadata().expect("file").len();
    let promised = ((8 + 64) << 20) + stored + 2 * CHUNK;
    assert!(worker.peak() <= promised, "{} bytes", worker.peak());
    // The cache is smaller than the chunk, so no part of it is cached.
    assert_eq!(fs::read(mount.at("good")).expect("good").len(), 400);
}

/// Returns the content of every readable file of a tree.
fn contents(tree: &Tree, names: &[Vec<u8>]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let files = names.iter().filter_map(|name| {
        let text = String::from_utf8_lossy(name).into_owned();
        Some((name.clone(), tree.content(&text).ok()?))
    });
    files.collect()
}

/// A file with one page of another state, at every position. Each checksummed object equals one of
/// the two states or fails, and a walk ends.
#[test]
fn one_page_of_another_state() {
    const PAGE: usize = 4096;
    let states =
        ["torn-old.h5", "torn-new.h5"].map(|name| fs::read(made().join(name)).expect("a file"));
    let trees = [0, 1].map(|i| Tree::new(states[i].clone()));
    let names = trees[0].names("/").expect("names");
    let whole = trees.map(|tree| contents(&tree, &names));
    assert!(whole[0].len() >= 24 && whole[0].values().ne(whole[1].values()));
    let (mut torn, mut errors) = (0, 0);
    for (state, other) in [(0, 1), (1, 0)] {
        for page in (0..states[state].len()).step_by(PAGE) {
            let mut mixed = states[state].clone();
            let end = (page + PAGE).min(mixed.len()).min(states[other].len());
            if page >= end || mixed[page..end] == states[other][page..end] {
                continue;
            }
            mixed[page..end].copy_from_slice(&states[other][page..end]);
            torn += 1;
            let Ok(filesystem) = soon(|| super::visit::filesystem(mixed)) else {
                assert!(page == 0, "only what the superblock is in may refuse it");
                continue;
            };
            let tree = Tree(filesystem);
            let read = contents(&tree, &names);
            errors += names.len() - read.len();
            for (name, bytes) in &read {
                assert!(
                    of_either(bytes, &whole, name),
                    "page {page}: {}",
                    name.escape_ascii()
                );
            }
            soon(|| walk(&tree.0, Bounds::SMALL));
        }
    }
    assert!(torn > 10, "{torn} pages differ");
    println!("{torn} pages, {errors} errors");
}

/// Returns whether each chunk of the bytes equals one of the states. Chunks have 400 or 1200 bytes.
fn of_either(bytes: &[u8], whole: &[BTreeMap<Vec<u8>, Vec<u8>>; 2], name: &[u8]) -> bool {
    (0..bytes.len()).step_by(400).all(|at| {
        let end = (at + 400).min(bytes.len());
        let mut states = whole
            .iter()
            .filter_map(|state| state.get(name)?.get(at..end));
        states.any(|state| *state == bytes[at..end])
    })
}

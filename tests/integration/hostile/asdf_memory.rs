//! The memory and time that blocks of ASDF files cost the mounted program.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::asdf::{Block, file, ndarray};
use super::memory::{PROMISED, keeps_its_promise, mounted};
use crate::harness::Mount;

const GIB: u64 = 1 << 30;

/// A chunk of an `lz4` block: one uncompressed byte.
const CHUNK: &[u8] = b"\0\0\0\x06\x01\0\0\0\x10x";

/// Writes a file of these bytes, followed by a hole of this length, into a new directory. Returns
/// the directory and the file's path.
fn written(bytes: &[u8], hole: u64) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("blocks.asdf");
    let file = File::create(&source).expect("a file");
    file.write_all_at(bytes, 0).expect("its bytes");
    file.set_len(bytes.len() as u64 + hole).expect("its hole");
    (directory, source)
}

/// Writes `good` and `bad`, which has eight bytes in a block of `used` bytes. The block starts with
/// `stored` and then is a hole.
fn mostly_a_hole(compression: [u8; 4], stored: &[u8], used: u64) -> (tempfile::TempDir, PathBuf) {
    let (good, bad) = (ndarray("0", "[8]", ""), ndarray("1", "[8]", ""));
    let block = Block {
        compression,
        data_size: 8,
        checksum: [9; 16],
        ..Block::plain(used)
    };
    let blocks = [Block::plain(8).bytes(b"goodness"), block.bytes(stored)];
    let bytes = file(format!("bad: {bad}\ngood: {good}"), &blocks);
    written(&bytes, used - stored.len() as u64)
}

/// Returns a zlib stream of eight bytes.
fn goodness() -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(b"goodness", 1)
}

#[track_caller]
fn is_lost_alone(mount: &Mount, source: &Path) {
    let read = fs::read(mount.at("bad")).expect_err("what cannot be");
    assert_eq!(read.raw_os_error(), Some(5));
    assert_eq!(fs::read(mount.at("good")).expect("good"), b"goodness");
    keeps_its_promise(mount, source);
}

#[test]
fn blocks_of_gigabytes_that_hold_eight_bytes() {
    // The second block is larger than the memory.
    for used in [3 * GIB, 299 * GIB] {
        let (_directory, source) = mostly_a_hole(*b"zlib", &goodness(), used);
        is_lost_alone(&mounted(&source), &source);
    }
}

#[test]
fn a_chunk_of_gigabytes_that_holds_eight_bytes() {
    const STORED: u32 = u32::MAX - 4;
    for (compression, lengths) in [
        (*b"lz4\0", &b"\x08\0\0\0\x80goodness"[..]),
        (
            *b"blsc",
            &b"\x02\x01\0\x01\x08\0\0\0\x08\0\0\0\xfb\xff\xff\xff"[..],
        ),
    ] {
        let stored = [&STORED.to_be_bytes(), lengths].concat();
        let (_directory, source) = mostly_a_hole(compression, &stored, u64::from(STORED) + 4);
        is_lost_alone(&mounted(&source), &source);
    }
}

/// Verification decodes within the same limits as reads.
#[test]
fn long_blocks_of_eight_bytes_are_verified() {
    for used in [60 << 20, 100 << 20] {
        let (_directory, source) = mostly_a_hole(*b"zlib", &goodness(), used);
        let verify = Mount::with(&source, &["-o", "cache_size=1M,threads=1,verify=on"]);
        is_lost_alone(&verify, &source);
    }
}

/// Four hundred blocks in an index, which all overlap the same half a million chunks.
#[test]
fn blocks_over_the_same_chunks() {
    const BLOCKS: u16 = 400;
    const CHUNKS: u64 = 500_000;
    let used = CHUNK.len() as u64 * CHUNKS;
    let mut bytes = file("a: 1", &[]);
    let mut index = b"#ASDF BLOCK INDEX\n%YAML 1.1\n---\n".to_vec();
    for place in 0..BLOCKS {
        writeln!(index, "- {}", bytes.len()).expect("memory");
        let block = Block {
            header_size: 54 * (BLOCKS - place) - 6,
            compression: *b"lz4\0",
            // The length of the first block leads past the end of the file.
            allocated: if place == 0 { 1 << 40 } else { used },
            used,
            data_size: CHUNKS,
            ..Block::plain(0)
        };
        bytes.extend(block.bytes(b""));
    }
    for _ in 0..CHUNKS {
        bytes.extend(CHUNK);
    }
    bytes.extend(index);
    let (_directory, source) = written(&bytes, 0);
    let mount = mounted(&source);
    let (worker, _) = mount.worker_and_supervisor(&source);
    let before = worker.processor_time();
    for block in fs::read_dir(mount.at(".h5fs/blocks")).expect("blocks") {
        let block = block.expect("a block").metadata().expect("its header");
        assert_eq!(block.len(), CHUNKS);
    }
    let spent = worker.processor_time() - before;
    assert!(
        spent < Duration::from_secs(5),
        "no chunk was needed: {spent:?}"
    );
    for place in (0..BLOCKS).step_by(20) {
        let block = File::open(mount.at(&format!(".h5fs/blocks/{place}"))).expect("a block");
        let mut byte = [0];
        block
            .read_exact_at(&mut byte, CHUNKS - 1)
            .expect("its last byte");
        assert_eq!(byte, *b"x");
    }
    keeps_its_promise(&mount, &source);
}

/// One block of a bzip2 stream of zeros decodes to 46 MB.
#[test]
fn long_blocks_of_a_bzip2_stream() {
    const LENGTH: usize = 120_000_000;
    const THREADS: u64 = 4;
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(&vec![0; LENGTH]).expect("memory");
    let stored = encoder.finish().expect("memory");
    let block = Block {
        compression: *b"bzp2",
        data_size: LENGTH as u64,
        ..Block::plain(stored.len() as u64)
    };
    let blocks = vec![block.bytes(&stored); 2];
    let array = |source| ndarray(source, &format!("[{LENGTH}]"), "");
    let bytes = file(format!("x: {}\ny: {}", array("0"), array("1")), &blocks);
    let (_directory, source) = written(&bytes, 0);
    let mount = Mount::with(
        &source,
        &["-o", &format!("cache_size=1M,threads={THREADS}")],
    );
    for name in ["x", "y"] {
        let content = fs::read(mount.at(name)).expect("zeros");
        assert!(content.len() == LENGTH && content.iter().all(|&byte| byte == 0));
    }
    let (worker, _) = mount.worker_and_supervisor(&source);
    // A decoder needs 4 MiB and splits one block into two pieces. The cached state of a stream
    // needs at most 16 MiB.
    let most = PROMISED + (16 << 20) + THREADS * (6 << 20);
    assert!(worker.peak() <= most, "{} bytes", worker.peak());
}

/// The maximum number of blocks in a file, all of them empty.
#[test]
fn a_million_blocks() {
    const BLOCKS: usize = 1 << 20;
    let empty = Block::plain(0).bytes(b"");
    let bytes = file("a: 1", &[empty.repeat(BLOCKS)]);
    let (_directory, source) = written(&bytes, 0);
    let mount = mounted(&source);
    assert_eq!(fs::read(mount.at("a")).expect("a text"), b"1\n");
    let last = mount.at(&format!(".h5fs/blocks/{}", BLOCKS - 1));
    assert_eq!(fs::metadata(last).expect("the last one").size(), 0);
    keeps_its_promise(&mount, &source);
}

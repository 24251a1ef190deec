//! ASDF files that the asdf library writes during the test. The mounted files are compared with
//! what the library reads.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::harness::{H5FS, LONG, Mount, run, script};

/// Number of files per run. To choose another seed and number, call
/// `tests/fixtures/asdf_roundtrip.py`.
const FILES: &str = "120";

/// Runs a script that mounts its own files in a directory. Unmounts at the end, also after a
/// timeout.
fn run_mounting(script_name: &str, arguments: &[&str]) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let _unmounted = Unmounted(directory.path().join("mountpoint"));
    let mut command: Command = script(script_name);
    command.arg(H5FS).args(arguments).arg(directory.path());
    let finished = run(&mut command, LONG);
    println!("{}", finished.text());
    finished.success();
}

struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let mut unmount = Command::new("fusermount3");
        unmount.args(["-q", "-u", "-z"]).arg(&self.0);
        let _ = unmount.status();
    }
}

#[test]
fn what_the_library_writes_is_what_the_mount_serves() {
    run_mounting("asdf_roundtrip.py", &["20261121", FILES]);
}

#[test]
fn chunked_ndarrays_are_assembled() {
    run_mounting("asdf_chunked.py", &["20261121", "40"]);
}

#[test]
fn files_of_every_feature_are_shown_as_they_were_written() {
    run_mounting("asdf_cases.py", &[]);
}

#[test]
fn trees_as_json_are_what_the_library_reads() {
    run_mounting("asdf_json.py", &[]);
}

#[test]
fn long_streams_are_read_from_anywhere() {
    run_mounting("asdf_streams.py", &[]);
}

/// Returns a block header: flags, then the sizes.
fn block(flags: u32, size: u64) -> Vec<u8> {
    let mut header = b"\xd3BLK\x00\x30".to_vec();
    header.extend(flags.to_be_bytes());
    header.extend([0; 4]);
    for size in [size; 3] {
        header.extend(size.to_be_bytes());
    }
    header.extend([0; 16]);
    header
}

/// Writes a file with one ndarray over a block of a terabyte. Only the last bytes of the block are
/// on the disk.
fn huge(path: &Path, shape: &str, header: &[u8]) {
    let tree = format!(
        "#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\n\
         x: !core/ndarray-1.0.0 {{source: -1, datatype: uint8, byteorder: big, shape: [{shape}]}}\n...\n"
    );
    let head = [tree.as_bytes(), header].concat();
    let file = File::create(path).expect("file");
    file.write_all_at(&head, 0).expect("head");
    let data = u64::try_from(head.len()).expect("length");
    file.write_all_at(b"the end!", data + HUGE - 8)
        .expect("end");
}

const HUGE: u64 = 1 << 40;

#[test]
fn the_end_of_a_huge_block_is_read_at_once() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let plain = directory.path().join("plain.asdf");
    huge(&plain, &HUGE.to_string(), &block(0, HUGE));
    let streamed = directory.path().join("streamed.asdf");
    huge(&streamed, "'*'", &block(1, 0));
    for source in [plain, streamed] {
        let mount = Mount::new(&source);
        let (worker, _) = mount.worker_and_supervisor(&source);
        for name in ["x", ".h5fs/blocks/0"] {
            let path = mount.at(name);
            assert_eq!(fs::metadata(&path).expect(name).len(), HUGE);
            let mut dd = Command::new("dd");
            let input = format!("if={}", path.display());
            let skip = format!("skip={}", HUGE / 4096 - 1);
            dd.args([input.as_str(), "bs=4096", &skip, "status=none"]);
            let finished = run(&mut dd, LONG).success();
            let end = [vec![0; 4088], b"the end!".to_vec()].concat();
            assert!(finished.stdout == end, "{name}");
        }
        // Reading the whole block would take minutes.
        let spent = worker.processor_time();
        assert!(spent < Duration::from_secs(10), "took {spent:?}");
    }
}

/// Returns a file with two arrays in separate blocks, and a chunked array made of both. A fourth
/// array uses the second one as its mask. The checksum of the second block is wrong.
fn unsound() -> Vec<u8> {
    const WHOLE: &str = "datatype: uint8, byteorder: little, shape: [8]";
    let array = |source: usize| format!("!core/ndarray-1.0.0 {{source: {source}, {WHOLE}}}");
    let chunk = |start: usize, name: &str| {
        format!("!core/ndarray-chunk-1.0.0 {{start: [{start}], ndarray: *{name}}}")
    };
    let lines = [
        "#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0".to_owned(),
        format!("good: &good {}\nbad: &bad {}", array(0), array(1)),
        format!("masked: !core/ndarray-1.0.0 {{source: 0, {WHOLE}, mask: *bad}}"),
        "both: !core/chunked-ndarray-1.0.0\n  shape: [16]\n  datatype: uint8".to_owned(),
        format!("  chunks: [{}, {}]", chunk(0, "good"), chunk(8, "bad")),
        "...\n".to_owned(),
    ];
    let mut file = lines.join("\n").into_bytes();
    for is_sound in [true, false] {
        let mut header = block(0, 8);
        if !is_sound {
            header.truncate(header.len() - 16);
            header.extend([1; 16]);
        }
        file.extend(header);
        file.extend(*b"elements");
    }
    file
}

#[test]
fn views_of_a_block_with_another_checksum_are_refused_as_well() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("unsound.asdf");
    fs::write(&source, unsound()).expect("write");
    let unsound = [
        "bad",
        "bad[2:4]",
        ".h5fs/npy/bad.npy",
        ".h5fs/npy/bad[2:4].npy",
        ".h5fs/csv/bad.csv",
        ".h5fs/json/bad.json",
        ".h5fs/mask/masked",
        ".h5fs/json/masked.json",
        ".h5fs/csv/masked.csv",
        ".h5fs/assembled/both",
        ".h5fs/npy/both.npy",
        ".h5fs/blocks/1",
    ];
    let sound = [
        "good",
        "good[2:4]",
        ".h5fs/npy/good.npy",
        "masked",
        ".h5fs/ndl/bad.yaml",
        ".h5fs/blocks/0",
    ];
    let read = |mount: &Mount, name: &str| fs::read(mount.at(name));
    let trusting = Mount::new(&source);
    let verifying = Mount::with(&source, &["-o", "verify=on"]);
    for name in unsound {
        read(&trusting, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let error = read(&verifying, name).expect_err(name);
        assert_eq!(error.raw_os_error(), Some(5), "{name}: {error}");
    }
    for name in sound {
        let found = read(&verifying, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found, read(&trusting, name).expect(name), "{name}");
    }
}

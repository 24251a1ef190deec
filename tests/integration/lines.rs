//! Large variable-length content: sizes are exact, any offset is reached at once, and memory stays
//! bounded for all elements.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::harness::{LONG, Mount, run, script};

fn read_at(file: &Path, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let read = File::open(file).and_then(|f| f.read_exact_at(&mut bytes, offset));
    read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    bytes
}

/// Returns the peak memory of a process in kB.
fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|text| text.parse().ok()).expect("VmHWM")
}

#[test]
fn a_million_strings_and_one_string_a_million_times() {
    let directory = tempfile::tempdir().expect("temporary directory");
    run(script("lines.py").arg(directory.path()), LONG).success();
    let text = fs::read(directory.path().join("lines.txt")).expect("lines");
    let mount = Mount::new(&directory.path().join("lines.h5"));
    for name in ["contiguous", "chunked"] {
        let file = mount.at(name);
        assert_eq!(fs::metadata(&file).expect(name).size(), text.len() as u64);
        for offset in [0, 1, 13_000_000, 27_000_001] {
            let part = read_at(&file, offset as u64, 5000);
            assert!(part == text[offset..offset + 5000], "{name} at {offset}");
        }
        let mut tail = Command::new("tail");
        let last = run(tail.args(["-n", "3"]).arg(&file), LONG);
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        assert_eq!(last.success().stdout, lines[lines.len() - 3..].concat());
    }
    assert!(fs::read(mount.at("chunked")).expect("chunked") == text);

    let source = directory.path().join("shared.h5");
    let mount = Mount::with(&source, &["-o", "cache_size=16M"]);
    let file = mount.at("shared");
    let (worker, _) = mount.worker_and_supervisor(&source);
    let size = fs::metadata(&file).expect("shared").size();
    assert_eq!(size, 1_000_000 * ((1 << 20) + 1));
    assert_eq!(read_at(&file, 0, 100), [b'A'; 100]);
    let middle = 500_000 * ((1 << 20) + 1) - 3;
    assert_eq!(read_at(&file, middle, 5), *b"AA\nAA");
    let spent = worker.processor_time();
    assert!(spent < Duration::from_secs(20), "took {spent:?}");
    read_at(&file, 7 << 30, 64 << 20);
    let most = peak(worker.pid);
    assert!(most < (16 + 64 + 64) << 10, "{most} kB");
}

//! Tests of the mount with a small graph, through the kernel. Skipped if the machine does not
//! support FUSE.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use h5fs_reader::error::Error;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::model::LinkTarget;
use h5fs_reader::testing::{eventually, skip};
use nix::errno::Errno;
use rustix::fs::RawDir;
use tempfile::TempDir;

use super::{MountOptions, ServedMount, mount};
use crate::fake::{FakeContainer, ROOT};
use crate::served_tree::ServedTree;

struct Mount {
    mounted: Option<ServedMount>,
    directory: TempDir,
}

impl Mount {
    fn new(fake: FakeContainer, interruptible: bool) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = MountOptions {
            fsname: "a,b".into(),
            threads: 2,
            interruptible,
            ..MountOptions::default()
        };
        let unserved = match mount(directory.path(), &options) {
            Ok(unserved) => unserved,
            Err(error) => {
                skip(&error.to_string());
                return None;
            }
        };
        let served = ServedTree::File(Box::new(fake.into_filesystem()));
        Some(Mount {
            mounted: Some(
                unserved
                    .serve(served, Some(Box::new(killed_threads)))
                    .unwrap(),
            ),
            directory,
        })
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.path().join(path)
    }
}

/// Returns those of the threads for which a `SIGKILL` is pending.
fn killed_threads(threads: &[u32]) -> Vec<u32> {
    const SIGKILL: u64 = 1 << 8;
    let is_killed = |thread: &u32| {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let pending = |line: &str| {
            let signals = line
                .strip_prefix("SigPnd:")
                .or(line.strip_prefix("ShdPnd:"))?;
            u64::from_str_radix(signals.trim(), 16).ok()
        };
        let mut pending = status.lines().filter_map(pending);
        pending.any(|signals| signals & SIGKILL != 0)
    };
    threads.iter().copied().filter(is_killed).collect()
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A lazy unmount, because a failed test may have left a file open.
        let _ = nix::mount::umount2(self.directory.path(), nix::mount::MntFlags::MNT_DETACH);
    }
}

fn errno<T>(result: std::io::Result<T>) -> Errno {
    Errno::from_raw(result.err().and_then(|error| error.raw_os_error()).unwrap())
}

/// Collects every path below `directory`, without following symbolic links.
fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), found);
        }
    }
}

#[test]
fn the_kernel_sees_a_tree() {
    for interruptible in [false, true] {
        a_tree_is_seen(interruptible);
    }
}

fn a_tree_is_seen(interruptible: bool) {
    let long = [b'n'; 300];
    let mut fake = FakeContainer::new();
    fake.add_group(800, 2);
    fake.add_group(1600, 1);
    fake.add_bytes(2400, 2, b"elements");
    fake.add_broken(3200);
    fake.add_hard_link(ROOT, "ring", 800);
    fake.add_hard_link(800, "inner", 1600);
    fake.add_hard_link(1600, "outer", 800);
    fake.add_hard_link(1600, "top", ROOT);
    fake.add_hard_link(1600, "data", 2400);
    fake.add_hard_link(ROOT, "data", 2400);
    fake.add_hard_link(ROOT, "a/b", 2400);
    fake.add_hard_link(ROOT, long, 2400);
    fake.add_hard_link(ROOT, "broken", 3200);
    fake.add_soft_link(1600, "soft", "/ring/inner/data");
    let damaged = LinkTarget::Damaged(Error::corrupt("link message", 7));
    fake.add_link(ROOT, "damaged", damaged);
    let Some(mount) = Mount::new(fake, interruptible) else {
        return;
    };

    // Twice, because the second listing comes from the kernel's cache.
    for _ in 0..2 {
        let mut found = Vec::new();
        walk(&mount.path(""), &mut found);
        assert_eq!(found.len(), 11);
        assert!(found.iter().all(|path| path.symlink_metadata().is_ok()));
    }
    let inner = mount.path("ring/inner");
    assert_eq!(fs::read(inner.join("soft")).unwrap(), b"elements");
    assert_eq!(
        fs::read(inner.join("outer/inner/top/a%2Fb")).unwrap(),
        b"elements"
    );
    let data = fs::metadata(mount.path("data")).unwrap();
    assert_eq!((data.ino(), data.nlink(), data.len()), (2400, 2, 8));
    assert_eq!(data.blksize(), 1 << 20);
    assert_eq!(errno(fs::read(mount.path("broken"))), Errno::EIO);
    assert_eq!(errno(fs::read(mount.path("damaged"))), Errno::EIO);
    assert_eq!(
        errno(fs::metadata(mount.path(OsStr::from_bytes(&long)))),
        Errno::ENAMETOOLONG
    );
    assert_eq!(errno(fs::create_dir(mount.path("new"))), Errno::EROFS);
    assert_eq!(errno(fs::write(mount.path("data"), b"")), Errno::EROFS);
    assert_eq!(errno(fs::remove_file(mount.path("data"))), Errno::EROFS);

    let status = fs::read_to_string(mount.path(".h5fs/status")).unwrap();
    assert!(status.contains("bytes served: "), "{status}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let point = mount.directory.path().to_str().unwrap();
    let line = mounts.lines().find(|line| line.contains(point)).unwrap();
    assert!(line.contains(" fuse.h5fs ro,nosuid,nodev,"), "{line}");
    let point = CString::new(point).unwrap();
    let statvfs = nix::sys::statvfs::statvfs(point.as_c_str()).unwrap();
    assert_eq!((statvfs.blocks(), statvfs.fragment_size()), (8, 512));
    assert_eq!(statvfs.name_max(), 255);
}

/// A program with a buffer of its own can read a long listing and a long file completely.
#[test]
fn listings_and_reads_may_be_long() {
    const NAMES: u64 = 3000;
    let content: Vec<u8> = (0..3 << 20).map(|n: u32| (n % 251) as u8).collect();
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_hard_link(ROOT, "group", 800);
    fake.add_bytes(1600, 1, &content);
    fake.add_hard_link(ROOT, "long", 1600);
    fake.add_bytes(2400, 1, b"");
    for number in 0..NAMES {
        fake.add_hard_link(800, format!("{number:0200}"), 2400);
    }
    for interruptible in [false, true] {
        let Some(mount) = Mount::new(fake.clone(), interruptible) else {
            return;
        };
        let directory = fs::File::open(mount.path("group")).unwrap();
        let mut buffer = Vec::with_capacity(1 << 20);
        let mut listing = RawDir::new(&directory, buffer.spare_capacity_mut());
        let mut names = 0;
        while let Some(entry) = listing.next() {
            names += u64::from(entry.unwrap().file_name().to_bytes().len() == 200);
        }
        assert_eq!(names, NAMES);
        let mut seen = vec![0; content.len()];
        let mut file = fs::File::open(mount.path("long")).unwrap();
        assert_eq!(file.read(&mut seen).unwrap(), content.len());
        assert!(seen == content);
    }
}

/// A program that is stopped while it waits for a reply ends before the reply arrives, and the late
/// reply is harmless.
#[test]
fn a_process_that_waits_can_be_stopped() {
    let mut fake = FakeContainer::new();
    fake.add_bytes(800, 1, b"elements");
    fake.block_reads(800);
    fake.add_hard_link(ROOT, "data", 800);
    let is_slow = Arc::clone(&fake.is_failing);
    let looks = Arc::clone(&fake.looks);
    let Some(mut mount) = Mount::new(fake, true) else {
        return;
    };
    is_slow.store(true, Ordering::SeqCst);
    let before = looks.load(Ordering::SeqCst);
    let mut reader = Command::new("cat").arg(mount.path("data")).spawn().unwrap();
    eventually("its request", || looks.load(Ordering::SeqCst) > before);
    assert!(reader.try_wait().unwrap().is_none());
    reader.kill().unwrap();
    let reader = Mutex::new(reader);
    eventually("its end", || lock(&reader).try_wait().unwrap().is_some());
    assert!(is_slow.load(Ordering::SeqCst));

    is_slow.store(false, Ordering::SeqCst);
    assert_eq!(fs::read(mount.path("data")).unwrap(), b"elements");
    nix::mount::umount(mount.directory.path()).unwrap();
    assert_eq!(mount.mounted.take().unwrap().wait(), Ok(()));
}

//! Mounts whose sources refer to files in each other. No request may wait for ever.

use std::fs;
use std::process::Command;

use crate::harness::{MOUNT_LIMIT, Mount, SOON, h5fs, run};
use crate::hostile::hdf5::*;

/// Returns a file with `good`, and with a dataset `x` whose 64 bytes are in this raw file.
pub(crate) fn in_raw_file(raw: &str) -> Vec<u8> {
    let mut file = Hdf5::new();
    let names = file.put(&[&[0; 8], raw.as_bytes(), &[0; 8]].concat());
    let heap = file.put(&local_heap(16 + raw.len() as u64, names));
    let list = [vec![1, 0, 0, 0, 1, 0, 1, 0], words(&[heap, 8, 0, 64])].concat();
    let list = Message(kind::EXTERNAL_FILES, 0, list);
    let layout = contiguous(UNDEFINED, 64);
    let set = file.put(&dataset(&[64], &byte_type(), layout, &[list]));
    let good = file.put_bytes(b"goodness");
    let root = file.put_group(&[(b"good", good), (b"x", set)]);
    file.rooted(root)
}

/// Each source is in the directory of the other source's mount, and refers to the same dataset
/// there.
#[test]
fn two_mounts_that_name_files_in_each_other() {
    for policy in ["external=within", "external=any"] {
        let (one, other) = (Mount::prepare(), Mount::prepare());
        for (mount, beside) in [(&one, &other), (&other, &one)] {
            let source = beside.path.parent().expect("a directory").join("source.h5");
            fs::write(&source, in_raw_file("mnt/x")).expect("a source");
            let mut command = h5fs(["-o", policy]);
            run(command.arg(&source).arg(&mount.path), MOUNT_LIMIT).success();
        }
        for mount in [&one, &other] {
            let read = run(Command::new("cat").arg(mount.at("x")), SOON);
            let reason = read.one_line();
            assert!(reason.contains("Input/output error"), "{reason}");
            let good = run(Command::new("cat").arg(mount.at("good")), SOON).success();
            assert_eq!(good.stdout, b"goodness");
        }
        for mount in [&one, &other] {
            mount.unmount();
            mount.must_be_gone(SOON);
        }
    }
}

/// Neighbours on another mount can be read if the source is on that mount itself.
#[test]
fn a_source_on_a_mount_has_neighbours_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut file = Hdf5::new();
    let inner = file.put_bytes(&in_raw_file("raw"));
    let raw = file.put_bytes(&[7; 64]);
    let root = file.put_group(&[(b"inner", inner), (b"raw", raw)]);
    let source = directory.path().join("outer.h5");
    fs::write(&source, file.rooted(root)).expect("a source");
    let outer = Mount::new(&source);
    let inner = Mount::new(&outer.at("inner"));
    assert_eq!(fs::read(inner.at("x")).expect("x"), [7; 64]);
    inner.unmount();
    inner.must_be_gone(SOON);
}

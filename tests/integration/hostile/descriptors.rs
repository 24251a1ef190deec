//! How many files the mounted program has open, whatever the source names.

use std::fs;
use std::path::Path;

use super::hdf5::*;
use super::values::{all, put_list, regular};
use crate::harness::Mount;

/// As many as are kept open of each kind, and a few.
const FEW: usize = 600;

/// Puts a virtual dataset of so many parts of `length` bytes, each the whole of the dataset `path` in the file that `name` calls so.
fn put_parts(
    file: &mut Hdf5,
    parts: u64,
    length: u64,
    path: &str,
    name: impl Fn(u64) -> String,
) -> u64 {
    let mut list = [vec![0], words(&[parts])].concat();
    for i in 0..parts {
        let target = regular(i * length, 1, 1, length);
        let names = format!("{}\0{path}\0", name(i)).into_bytes();
        list.extend([names, all(), target].concat());
    }
    let layout = put_list(file, list);
    file.put(&dataset(&[parts * length], &byte_type(), layout, &[]))
}

fn open_files(mount: &Mount, source: &Path) -> usize {
    let (worker, _) = mount.worker_and_supervisor(source);
    let open = fs::read_dir(format!("/proc/{}/fd", worker.pid)).expect("descriptors");
    open.count()
}

/// Virtual datasets of parts that are virtual datasets in turn, each part in a file that has many names.
#[test]
fn virtual_sources_within_virtual_sources() {
    const PARTS: u64 = 50;
    let directory = tempfile::tempdir().expect("temporary directory");
    let spelling = |i: u64| format!("{}next.h5", "./".repeat(usize::try_from(i).expect("few")));
    for (kind, name) in [
        (
            "link",
            &(|i| format!("next-{i}.h5")) as &dyn Fn(u64) -> String,
        ),
        ("spelling", &spelling),
    ] {
        let mut file = Hdf5::new();
        let byte = file.put_bytes(&[7]);
        let deep = put_parts(&mut file, PARTS, 1, "byte", name);
        let root = file.put_group(&[(b"byte", byte), (b"deep", deep)]);
        let next = directory.path().join("next.h5");
        fs::write(&next, file.rooted(root)).expect("next.h5");
        if kind == "link" {
            for i in 0..PARTS {
                fs::hard_link(&next, directory.path().join(name(i))).expect("hard link");
            }
        }
        let mut file = Hdf5::new();
        let deepest = put_parts(&mut file, PARTS, PARTS, "deep", name);
        let other = put_parts(&mut file, 1, 1, "byte", |_| "other.h5".to_owned());
        let root = file.put_group(&[(b"deepest", deepest), (b"other", other)]);
        let source = directory.path().join("main.h5");
        fs::write(&source, file.rooted(root)).expect("main.h5");
        let mut file = Hdf5::new();
        let byte = file.put_bytes(&[5]);
        let root = file.put_group(&[(b"byte", byte)]);
        fs::write(directory.path().join("other.h5"), file.rooted(root)).expect("other.h5");
        let mount = Mount::new(&source);
        for _ in 0..2 {
            let bytes = fs::read(mount.at("deepest")).expect("a dataset");
            let elements = usize::try_from(PARTS * PARTS).expect("few");
            assert_eq!(bytes, vec![7; elements], "{kind}");
        }
        assert_eq!(fs::read(mount.at("other")).expect("a dataset"), [5]);
        let open = open_files(&mount, &source);
        assert!(open < FEW, "{kind}: {open} are open");
    }
}

//! The number of files that the mounted program keeps open, for any references in the source.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::hdf5::*;
use super::values::{all, put_list, regular};
use crate::harness::{H5FS, MOUNT_LIMIT, Mount, run};

/// The sum of the limits for open files of each kind, and a few more.
const FEW: usize = 600;

/// Puts a virtual dataset with `parts` mappings of `length` bytes. Each maps the whole dataset
/// `path` in the file with the name that `name` returns.
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

/// Virtual datasets whose sources are virtual datasets, each in a file with many names.
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

/// Raw files and sources of a virtual dataset, more than the user's limit of open files.
#[test]
fn more_files_than_the_user_may_have_open() {
    const FILES: u64 = 100;
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut file = Hdf5::new();
    let parts = put_parts(&mut file, FILES, 1, "byte", |i| format!("source-{i}.h5"));
    let mut links = vec![(b"parts".to_vec(), parts)];
    for i in 0..FILES {
        let number = u8::try_from(i).expect("few");
        let mut source = Hdf5::new();
        let byte = source.put_bytes(&[number]);
        let root = source.put_group(&[(b"byte", byte)]);
        let path = |name: String| directory.path().join(name);
        fs::write(path(format!("source-{i}.h5")), source.rooted(root)).expect("a source");
        fs::write(path(format!("raw-{i}")), [number]).expect("a raw file");
        let raw = file.put_in_raw_file(&format!("raw-{i}"), 1);
        links.push((format!("raw-{i}").into_bytes(), raw));
    }
    let links: Vec<_> = links.iter().map(|(name, at)| (&name[..], *at)).collect();
    let root = file.put_group(&links);
    let source = directory.path().join("main.h5");
    fs::write(&source, file.rooted(root)).expect("main.h5");

    let mount = Mount::prepare();
    let few = "ulimit -n 64; exec \"$0\" \"$@\"";
    let mut command = Command::new("bash");
    command
        .args(["-c", few, H5FS])
        .arg(&source)
        .arg(&mount.path);
    run(&mut command, MOUNT_LIMIT).success();
    let numbers: Vec<u8> = (0..FILES).map(|i| u8::try_from(i).expect("few")).collect();
    assert_eq!(fs::read(mount.at("parts")).expect("parts"), numbers);
    let raw = |i| fs::read(mount.at(&format!("raw-{i}"))).expect("a raw file");
    let read: Vec<u8> = (0..FILES).flat_map(raw).collect();
    assert_eq!(read, numbers);
    assert_eq!(fs::read(mount.at("parts")).expect("parts"), numbers);
}

//! Tests of references in a small graph.

use std::collections::HashSet;

use h5fs_reader::model::Datatype;
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::datatype::{Class, ReferenceKind};
use h5fs_reader::testing::processor_time;
use nix::errno::Errno;

use crate::fake::{FakeContainer, ROOT};
use crate::limits;
use crate::tests::{content, errno_of, list, names, text};
use crate::{FileKind, Filesystem, Requests};

/// Creates `/run` with an array of references to objects of the graph and to itself.
fn graph() -> FakeContainer {
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_group(1600, 2);
    fake.add_bytes(2400, 2, b"data");
    fake.add_references(3200, 1, &[2400, 0, 800, ROOT, 3200, 1600, 4000, 4800]);
    // An object without a name.
    fake.add_bytes(4000, 1, b"lost");
    fake.add_hard_link(ROOT, "run", 800);
    fake.add_hard_link(800, "deep", 1600);
    fake.add_hard_link(1600, "again", 1600);
    fake.add_hard_link(1600, "temp", 2400);
    fake.add_hard_link(800, "temp", 2400);
    fake.add_hard_link(800, "links", 3200);
    fake
}

fn mount_references() -> Filesystem {
    graph().into_filesystem()
}

#[test]
fn a_reference_is_a_link_to_its_object() {
    let fs = mount_references();
    assert_eq!(names(&fs, ".h5fs/refs"), ["run"]);
    assert_eq!(names(&fs, ".h5fs/refs/run"), ["deep", "links"]);
    let links = ".h5fs/refs/run/links";
    assert_eq!(names(&fs, links), ["0", "2", "3", "4", "5", "6", "7"]);
    let of = |name| text(&fs, &format!("{links}/{name}"));
    assert_eq!(of("0"), "../../../../run/temp");
    assert_eq!(of("2"), "../../../../run");
    assert_eq!(of("3"), "../../../..");
    assert_eq!(of("4"), "../../../../run/links");
    assert_eq!(of("5"), "../../../../run/deep");
    assert_eq!(of("6"), "@0xfa0: an object without a path");
    assert_eq!(of("7"), "@0x12c0: no object");
    assert_eq!(content(&fs, &format!("{links}/0")).unwrap(), b"data");
    assert_eq!(fs.resolve(format!("{links}/3").as_bytes()).unwrap().ino, 1);
}

#[test]
fn only_references_to_objects_are_listed() {
    let fs = mount_references();
    for name in ["1", "8", "00", "0,0", "x", "links", "@0"] {
        let path = format!(".h5fs/refs/run/links/{name}");
        assert_eq!(
            errno_of(fs.resolve_link(path.as_bytes())),
            Errno::ENOENT,
            "{name}"
        );
    }
    assert_eq!(errno_of(fs.resolve(b".h5fs/refs/run/temp")), Errno::ENOENT);
    assert_eq!(
        errno_of(fs.resolve(b".h5fs/refs/run/links/6")),
        Errno::ENOENT
    );
}

#[test]
fn links_have_separate_inode_numbers() {
    let mut fake = graph();
    fake.add_references(5600, 1, &[800; 5000]);
    fake.add_hard_link(ROOT, "more", 5600);
    let fs = fake.into_filesystem();
    let mut numbers = HashSet::new();
    for path in [".h5fs/refs/run/links", ".h5fs/refs/more"] {
        let directory = fs.resolve(path.as_bytes()).unwrap().ino;
        for (name, ino, kind) in list(&fs, directory).into_iter().skip(2) {
            assert_eq!(kind, FileKind::Symlink);
            assert!(numbers.insert(ino), "{path}/{name}");
            let found = fs.lookup(directory, name.as_bytes()).unwrap();
            assert_eq!(found.ino, ino, "{path}/{name}");
            fs.forget(found.ino, 1);
        }
    }
    assert_eq!(numbers.len(), 7 + 5000);
}

#[test]
fn a_listing_continues_at_any_element() {
    let mut fake = FakeContainer::new();
    let targets: Vec<u64> = (0..3000).map(|number| (number % 3) * ROOT).collect();
    fake.add_references(800, 1, &targets);
    fake.add_hard_link(ROOT, "links", 800);
    let fs = fake.into_filesystem();
    let directory = fs.resolve(b".h5fs/refs/links").unwrap().ino;
    let handle = fs.opendir(directory).unwrap().handle;
    for (number, next) in [(0, 1), (1, 1), (2, 2), (3, 4), (1500, 1501), (2999, 2999)] {
        let mut found = None;
        let read = fs.readdir(handle, number + 2, &mut |entry| {
            found.get_or_insert(String::from_utf8(entry.name.to_vec()).unwrap());
            true
        });
        read.unwrap();
        assert_eq!(found, Some(next.to_string()), "from element {number}");
    }
}

/// No element of the first array is stored; all elements of the second are stored as null.
#[test]
fn a_listing_of_null_references_ends() {
    let datatype = || Datatype {
        size: 8,
        class: Class::Reference(ReferenceKind::Object),
    };
    let mut fake = FakeContainer::new();
    fake.add_array(800, 1, datatype(), 1 << 59, Ok(Storage::Fill));
    fake.add_references(1600, 1, &vec![0; 1 << 20]);
    fake.add_hard_link(ROOT, "unstored", 800);
    fake.add_hard_link(ROOT, "stored", 1600);
    let fs = fake.into_filesystem();
    let before = processor_time();
    assert!(names(&fs, ".h5fs/refs/unstored").is_empty());
    assert!(processor_time() - before < 40 * limits::LISTING_TIME);
    assert!(names(&fs, ".h5fs/refs/stored").is_empty());
    let last = format!(".h5fs/refs/unstored/{}", (1_u64 << 59) - 1);
    assert_eq!(errno_of(fs.resolve(last.as_bytes())), Errno::ENOENT);
}

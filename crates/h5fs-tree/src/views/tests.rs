//! Tests of the trees of views of a small graph.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use h5fs_reader::testing::eventually;
use nix::errno::Errno;

use crate::fake::{FakeContainer, ROOT};
use crate::tests::{content, errno_of, list, names, text};
use crate::{FileKind, Filesystem, Options, Requests};

fn graph() -> FakeContainer {
    let mut fake = FakeContainer::new();
    fake.add_group(800, 1);
    fake.add_group(1600, 2);
    fake.add_bytes(2400, 1, b"01234567");
    fake.add_bytes(3200, 2, b"two names");
    fake.add_attribute(ROOT, b"title", b"file");
    fake.add_attribute(800, b"a/b", b"slash");
    fake.add_attribute(800, &[b'n'; 300], b"long");
    fake.add_attribute(2400, b"big", &vec![b'v'; 100_000]);
    fake.add_hard_link(ROOT, "g", 800);
    fake.add_hard_link(800, "@at", 2400);
    fake.add_hard_link(800, "%40at", 3200);
    fake.add_hard_link(800, "x.npy", 1600);
    fake.add_hard_link(ROOT, "y", 1600);
    fake.add_hard_link(ROOT, "z", 3200);
    fake.add_soft_link(1600, "up", "/g/@at");
    fake.add_soft_link(1600, "group", "/g/x.npy");
    fake.add_soft_link(1600, "nowhere", "/none");
    fake.add_external_link(1600, "other", "other", "/");
    fake
}

fn mount_example() -> Filesystem {
    graph().into_filesystem()
}

#[test]
fn attributes_are_files() {
    let fs = mount_example();
    let root = ["@title", "g", "y", "z"];
    assert_eq!(names(&fs, ".h5fs/attrs"), root);
    let group = names(&fs, ".h5fs/attrs/g");
    assert_eq!(group[0], "@a%2Fb");
    assert!(group[1].starts_with("@nnn") && group[1].len() == 255);
    assert_eq!(group[2..], ["%40at", "%2540at", "x.npy"]);
    assert_eq!(content(&fs, ".h5fs/attrs/@title").unwrap(), b"file\n");
    assert_eq!(content(&fs, ".h5fs/attrs/g/@a%2Fb").unwrap(), b"slash\n");
    let long = format!(".h5fs/attrs/g/{}", group[1]);
    assert_eq!(content(&fs, &long).unwrap(), b"long\n");
    // The value is too long for an extended attribute.
    let big = fs.resolve(b".h5fs/attrs/g/%40at/@big").unwrap();
    assert_eq!(
        (big.attributes.kind, big.attributes.size),
        (FileKind::File, 100_001)
    );
    let absent = fs.resolve(b".h5fs/attrs/g/@absent");
    assert_eq!(errno_of(absent), Errno::ENOENT);
}

#[test]
fn an_attribute_is_rendered_once_for_each_state_of_the_source() {
    let directory = tempfile::tempdir().unwrap();
    let with_title = |title: &[u8]| {
        let mut fake = FakeContainer::new();
        fake.add_attribute(ROOT, b"title", title);
        fake
    };
    let (old, new) = (with_title(b"old"), with_title(b"newer"));
    let reads = [&old, &new].map(|fake| Arc::clone(&fake.attribute_reads));
    let read = |fake: usize| reads[fake].load(Ordering::SeqCst);
    let fs = FakeContainer::mounted_among(directory.path(), vec![("old", old), ("new", new)]);
    let path = ".h5fs/attrs/@title";
    for _ in 0..2 {
        let found = fs.resolve(path.as_bytes()).unwrap();
        assert_eq!(found.attributes.size, 4);
        assert_eq!(fs.getattr(found.ino).unwrap().attributes.size, 4);
        assert_eq!(content(&fs, path).unwrap(), b"old\n");
    }
    assert_eq!(read(0), 1);
    std::fs::rename(directory.path().join("new"), directory.path().join("old")).unwrap();
    eventually("the change is seen", || fs.generation() == Some(1));
    assert_eq!(fs.resolve(path.as_bytes()).unwrap().attributes.size, 6);
    assert_eq!(content(&fs, path).unwrap(), b"newer\n");
    assert_eq!((read(0), read(1)), (1, 1));
}

#[test]
fn each_directory_has_one_path() {
    let fs = mount_example();
    // In the source's tree, /y is the group's own place, and /z is where a walk finds the dataset
    // first.
    assert_eq!(text(&fs, "g/x.npy"), "../y");
    assert_eq!(text(&fs, ".h5fs/attrs/g/x.npy"), "../y");
    assert_eq!(text(&fs, ".h5fs/attrs/g/%2540at"), "../z");
    assert_eq!(text(&fs, ".h5fs/npy/g/x%2Enpy"), "../y");
    let [here, there] = ["z.npy", "g/%2540at.npy"].map(|name| {
        let path = format!(".h5fs/npy/{name}");
        fs.resolve_link(path.as_bytes()).unwrap()
    });
    assert_eq!(
        (here.attributes.kind, here.ino),
        (FileKind::File, there.ino)
    );
    let views = fs.resolve(b".h5fs").unwrap();
    let tree = fs.resolve(b".h5fs/npy").unwrap();
    assert_eq!(fs.mount.find_inode(tree.ino).unwrap().1.parent, views.ino);
    let group = fs.resolve(b".h5fs/npy/g").unwrap();
    assert_eq!(list(&fs, group.ino)[1].1, tree.ino);
}

#[test]
fn soft_links_stay_within_their_tree() {
    let fs = mount_example();
    assert_eq!(names(&fs, ".h5fs/npy/y"), ["up.npy", "group"]);
    assert_eq!(text(&fs, ".h5fs/npy/y/up.npy"), "../g/@at.npy");
    assert_eq!(text(&fs, ".h5fs/npy/y/group"), "../g/x%2Enpy");
    assert_eq!(
        names(&fs, ".h5fs/ndl/y"),
        ["up.yaml", "up.json", "group", "group.yaml", "group.json"]
    );
    assert_eq!(text(&fs, ".h5fs/ndl/y/up.json"), "../g/@at.json");
    assert_eq!(text(&fs, ".h5fs/attrs/y/up"), "../g/%40at");
    let npy = content(&fs, ".h5fs/npy/y/group/up.npy").unwrap();
    assert!(npy.starts_with(b"\x93NUMPY") && npy.ends_with(b"01234567"));
}

#[test]
fn long_names_are_cut_with_their_suffix() {
    let mut fake = FakeContainer::new();
    for (number, length) in [(800, 251), (1600, 252), (2400, 300)] {
        fake.add_bytes(number, 1, number.to_string().as_bytes());
        fake.add_hard_link(ROOT, vec![b'n'; length], number);
    }
    let fs = fake.into_filesystem();
    let listed = names(&fs, ".h5fs/npy");
    assert_eq!(listed[0], format!("{}.npy", "n".repeat(251)));
    assert!(listed.iter().all(|name| name.len() == 255));
    for (name, wanted) in listed.iter().zip(["800", "1600", "2400"]) {
        let npy = content(&fs, &format!(".h5fs/npy/{name}")).unwrap();
        assert!(npy.ends_with(wanted.as_bytes()), "{name}");
    }
}

#[test]
fn listings_continue_between_the_views_of_one_link() {
    let fs = mount_example();
    let directory = fs.resolve(b".h5fs/ndl").unwrap().ino;
    let handle = fs.opendir(directory).unwrap().handle;
    let (mut cookie, mut found) = (0, Vec::new());
    loop {
        let before = found.len();
        fs.readdir_plus(handle, cookie, &mut |listed, _| {
            if found.len() > before {
                return true;
            }
            found.push(String::from_utf8_lossy(listed.name).into_owned());
            cookie = listed.next;
            false
        })
        .unwrap();
        if found.len() == before {
            break;
        }
    }
    let forms = [
        "g", "g.yaml", "g.json", "y", "y.yaml", "y.json", "z.yaml", "z.json",
    ];
    assert_eq!(found[2..], forms);
}

#[test]
fn parts_of_arrays_are_found_by_name() {
    let mut fake = graph();
    fake.add_bytes(4000, 1, b"real");
    fake.add_hard_link(ROOT, "z[0]", 4000);
    let fs = fake.into_filesystem();
    assert_eq!(content(&fs, "g/@at[1::3]").unwrap(), b"147");
    assert_eq!(content(&fs, "z[-1]").unwrap(), b"s");
    // A link with the literal name takes precedence; otherwise, the text after the name is a
    // selector.
    assert_eq!(content(&fs, "z[0]").unwrap(), b"real");
    assert_eq!(content(&fs, "z[0][0]").unwrap(), b"r");
    let npy = content(&fs, ".h5fs/npy/g/@at[1::3].npy").unwrap();
    assert!(npy.ends_with(b"\n147"));
    let json = content(&fs, ".h5fs/json/g/@at[1::3].json").unwrap();
    assert_eq!(json, b"[49, 52, 55]\n");
    let part = fs.resolve(b"g/@at[1::3]").unwrap();
    assert_eq!((part.attributes.size, part.attributes.links), (3, 1));
    assert!(part.ino > 1 << 62 && part.ino < 1 << 63);
    for path in [
        "z[9]",
        "z[",
        "g[0]",
        "none[0]",
        ".h5fs/csv/z[9].csv",
        ".h5fs/chunks/z[0].tsv",
        "z[name]",
    ] {
        assert_eq!(
            errno_of(fs.resolve(path.as_bytes())),
            Errno::ENOENT,
            "{path}"
        );
    }
}

#[test]
fn without_views_only_other_files_are_there() {
    let fs = graph().mounted_with(&Options {
        views: false,
        ..Options::default()
    });
    assert_eq!(names(&fs, ".h5fs"), ["external"]);
    for path in [".h5fs/attrs", ".h5fs/status", "z[0]"] {
        assert_eq!(
            errno_of(fs.resolve(path.as_bytes())),
            Errno::ENOENT,
            "{path}"
        );
    }
}

//! Links: their names and targets.

use std::fs;

use h5fs_tree::{FileKind, Filesystem, Options, Requests};
use nix::errno::Errno;

use super::hdf5::*;
use super::tree::*;

/// Returns a file whose root has these links and `good`.
fn root_of(links: &[Message]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let mut all = links.to_vec();
    all.push(hard_link(b"good", good));
    let root = file.put(&group(&all));
    file.rooted(root)
}

#[test]
fn names_that_no_filesystem_has() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let long = [b'l'; 60_000];
    let names: [&[u8]; 15] = [
        b"good",
        b"a/b",
        b".",
        b"..",
        b"\0",
        b"n\0ul",
        b"new\nline",
        b"\xff\xfe",
        b"%2F",
        b"%",
        b"GOOD",
        b"Good",
        &long,
        "caf\u{e9}".as_bytes(),
        "cafe\u{301}".as_bytes(),
    ];
    let links: Vec<(&[u8], u64)> = names.iter().map(|name| (*name, good)).collect();
    let root = file.put_group(&links);
    let tree = good_is_good(file.rooted(root));
    let shown = tree.names("/").expect("a listing");
    assert_eq!(shown.len(), names.len());
    let root = tree.0.root();
    for (i, name) in shown.iter().enumerate() {
        assert!(name.len() <= 255 && !name.contains(&b'/') && !name.contains(&0));
        assert!(!matches!(&name[..], b"" | b"." | b".."));
        assert!(!shown[..i].contains(name), "twice {}", name.escape_ascii());
        tree.0
            .lookup(root, name)
            .expect("lookup takes what readdir gives");
    }
}

/// An empty name is an error. If two names are equal, the first one is used.
#[test]
fn names_that_the_format_forbids_are_alone_in_it() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let evil = file.put_bytes(b"evil");
    let twice: [(&[u8], u64); 4] = [(b"a", evil), (b"good", good), (b"good", evil), (b"z", evil)];
    let root = file.put_group(&twice);
    let tree = good_is_good(file.clone().rooted(root));
    let names = [&b"a"[..], b"good", b"z"].map(<[u8]>::to_vec);
    assert_eq!(tree.names("/"), Ok(names.to_vec()));

    let root = file.put_group(&[(b"good", good), (b"", evil)]);
    let tree = good_is_good(file.rooted(root));
    assert_eq!(tree.listing("/").0, [b"good"]);
    assert_eq!(errno_of(tree.names("/")), Errno::EIO);
}

#[test]
fn link_messages_that_lie() {
    let whole = link_body(b"x", 0, &[0; 8]);
    let mut version = whole.clone();
    version[0] = 9;
    let mut long = whole.clone();
    long[3..7].fill(0xff);
    for body in [version, long, Vec::new(), vec![1], whole[..9].to_vec()] {
        let tree = Tree::new(root_of(&[Message(kind::LINK, 0, body)]));
        assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
    }
    // An unknown link type leads nowhere.
    for link_type in [2, 63, 66, 255] {
        let body = link_body(b"odd", link_type, b"\x02\0xx");
        let tree = good_is_good(root_of(&[Message(kind::LINK, 0, body)]));
        tree.content("odd").expect_err("nothing to read");
    }
    // An external link with an unknown version or flag.
    let body = link_body(b"odd", 64, b"\x05\0\x01a\0b\0");
    let tree = good_is_good(root_of(&[Message(kind::LINK, 0, body)]));
    assert_eq!(tree.kind("odd"), Ok(FileKind::File));
    // The target of the link is not an object.
    for at in [0, 8, 1 << 60, UNDEFINED - 1] {
        let tree = good_is_good(root_of(&[hard_link(b"odd", at)]));
        tree.content("odd").expect_err("nothing to read");
        assert_eq!(tree.kind("odd"), Ok(FileKind::File));
    }
}

#[test]
fn soft_links_in_circles_and_out() {
    let long = b"x/".repeat(30_000);
    let tree = good_is_good(root_of(&[
        soft_link(b"self", b"self"),
        soft_link(b"a", b"b"),
        soft_link(b"b", b"a"),
        soft_link(b"dots", b"../../../../etc/passwd"),
        soft_link(b"root", b"/good"),
        soft_link(b"long", &long),
        soft_link(b"empty", b""),
    ]));
    for name in ["self", "a", "b"] {
        assert_eq!(errno_of(tree.content(name)), Errno::ELOOP);
    }
    assert_eq!(tree.content("root"), Ok(b"goodness".to_vec()));
    // HDF5 treats `..` as an ordinary name, so the text of the link stays inside the mount.
    let dots = tree.link("dots").expect("a text");
    assert!(!dots.contains("../") && !dots.starts_with('/'), "{dots}");
    assert_eq!(errno_of(tree.link("long")), Errno::ENAMETOOLONG);
    tree.content("empty").expect_err("no target");
}

/// The link names an outside file. The file is never opened, and its existence is not revealed.
#[test]
fn external_links_out_of_the_directory() {
    let tree = good_is_good(root_of(&[
        external_link(b"up", b"../../etc/x.h5", b"/"),
        external_link(b"absolute", b"/etc/passwd", b"/"),
        external_link(b"nul", b"", b""),
    ]));
    for name in ["up", "absolute"] {
        assert_eq!(tree.kind(name), Ok(FileKind::Symlink));
        tree.content(name).expect_err("nothing is followed");
    }
}

/// Links of two files that alternate: each leads to the next link in the other file, and the last
/// to the first. No request follows all of them.
#[test]
fn external_links_without_end() {
    const LINKS: usize = 1000;
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("a.h5");
    for (name, other) in [("a.h5", &b"b.h5"[..]), ("b.h5", b"a.h5")] {
        let link = |i: usize| {
            let next = format!("/{}", (i + 1) % LINKS);
            external_link(i.to_string().as_bytes(), other, next.as_bytes())
        };
        let links: Vec<Message> = (0..LINKS).map(link).collect();
        fs::write(directory.path().join(name), root_of(&links)).expect("write");
    }
    let filesystem = soon(|| Filesystem::open(&path, &Options::default())).expect("a mount");
    let tree = Tree(filesystem);
    assert_eq!(tree.kind("0"), Ok(FileKind::Symlink));
    assert_eq!(tree.link("0"), Ok(".h5fs/external/b.h5/1".to_owned()));
    for name in ["0", "500", ".h5fs/external/b.h5/1"] {
        assert_eq!(errno_of(soon(|| tree.content(name))), Errno::ELOOP);
    }
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
}

/// Groups may contain each other. Each appears as a directory only once.
#[test]
fn groups_that_hold_themselves() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let inner = file.next();
    let refcount = Message(0x16, 0, vec![0, 9, 0, 0, 0]);
    let shape = group(&[hard_link(b"self", 0), hard_link(b"up", 0), refcount.clone()]);
    let root = inner + (shape.len() as u64).next_multiple_of(8);
    file.put(&group(&[
        hard_link(b"self", inner),
        hard_link(b"up", root),
        refcount.clone(),
    ]));
    let at = file.put(&group(&[
        hard_link(b"good", good),
        hard_link(b"in", inner),
        refcount,
    ]));
    assert_eq!(at, root);
    let tree = good_is_good(file.rooted(root));
    assert_eq!(tree.kind("in"), Ok(FileKind::Directory));
    assert_eq!(tree.link("in/self"), Ok(".".to_owned()));
    assert_eq!(tree.link("in/up"), Ok("..".to_owned()));
}

/// Each of 60 groups contains the next one twice: 2^60 paths, but 60 directories.
#[test]
fn two_names_on_each_of_sixty_levels() {
    let mut file = Hdf5::new();
    let good = file.put_bytes(b"goodness");
    let twice = Message(0x16, 0, vec![0, 2, 0, 0, 0]);
    let mut below = file.put_bytes(b"bottom");
    for _ in 0..60 {
        let links = [
            hard_link(b"a", below),
            hard_link(b"b", below),
            twice.clone(),
        ];
        below = file.put(&group(&links));
    }
    let root = file.put_group(&[(b"good", good), (b"top", below)]);
    let tree = Tree::new(file.rooted(root));
    let seen = soon(|| super::visit::walk(&tree.0, super::visit::Bounds::OWN));
    assert_eq!(seen.errors, 0);
    assert_eq!(seen.objects, 2 + 2 * 60);
}

/// Reference counts are shown within the range of `stat`.
#[test]
fn link_counts_that_lie() {
    for count in [0, u32::MAX] {
        let count_message = Message(0x16, 0, [&[0][..], &count.to_le_bytes()].concat());
        let mut file = Hdf5::new();
        let data = file.put(b"readable");
        let bad = file.put(&dataset(
            &[8],
            &byte_type(),
            contiguous(data, 8),
            &[count_message],
        ));
        let tree = good_is_good(file.beside_good(bad));
        assert!(tree.0.resolve(b"bad").unwrap().attributes.links >= 1);
        assert_eq!(tree.content("bad"), Ok(b"readable".to_vec()));
    }
}

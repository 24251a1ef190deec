use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::fake::{FakeContainer, ROOT};
use crate::limits;
use crate::requests::Requests;
use crate::tests::{content, list, names};
use crate::{FileKind, Filesystem};

const STORE: &str = "/.h5fs/file.zarr";

fn at(path: &str) -> String {
    format!("{STORE}{path}")
}

/// Creates a group with an array and links of all types.
fn sample() -> FakeContainer {
    let mut fake = FakeContainer::new();
    fake.add_group(200, 2);
    fake.add_bytes(300, 2, b"abcd");
    fake.add_broken(400);
    fake.add_hard_link(ROOT, "group", 200);
    fake.add_hard_link(200, "array", 300);
    fake.add_hard_link(200, "other", 300);
    fake.add_hard_link(200, "again", 200);
    fake.add_hard_link(200, "broken", 400);
    fake.add_soft_link(200, "soft", "array");
    fake.add_soft_link(200, "circle", "/group");
    fake.add_soft_link(200, "itself", "itself");
    fake.add_soft_link(200, "nowhere", "/missing");
    fake.add_hard_link(200, "zarr.json", 300);
    fake
}

#[test]
fn groups_and_arrays_are_directories() {
    let fs = sample().into_filesystem();
    assert_eq!(names(&fs, STORE), ["zarr.json", "group"]);
    let group = names(&fs, &at("/group"));
    assert_eq!(
        group,
        ["zarr.json", "array", "other", "soft", "zarr%2Ejson"]
    );
    assert_eq!(names(&fs, &at("/group/array")), ["zarr.json", "c"]);
    assert_eq!(content(&fs, &at("/group/array/c/0")).unwrap(), b"abcd");
    assert!(content(&fs, &at("/group/array/c/1")).is_err());
    let directory = fs.resolve(at("/group").as_bytes()).unwrap().ino;
    let kinds = list(&fs, directory).into_iter();
    let links = kinds.filter(|(.., kind)| *kind == FileKind::Symlink);
    let links: Vec<String> = links.map(|(name, ..)| name).collect();
    assert_eq!(links, ["other", "soft", "zarr%2Ejson"]);
}

#[test]
fn a_document_names_what_is_absent() {
    let fs = sample().into_filesystem();
    let document = String::from_utf8(content(&fs, &at("/group/zarr.json")).unwrap()).unwrap();
    assert!(
        document.contains(r#""_h5fs_absent": ["broken"]"#),
        "{document}"
    );
}

#[test]
fn the_number_of_checked_links_is_limited() {
    let mut fake = FakeContainer::new();
    fake.add_bytes(300, 1, b"abcd");
    fake.add_broken(400);
    for number in 1..limits::ZARR_LINKS {
        fake.add_hard_link(ROOT, number.to_string(), 300);
    }
    fake.add_hard_link(ROOT, "seen", 400);
    fake.add_hard_link(ROOT, "behind", 400);
    let document = content(&fake.into_filesystem(), &at("/zarr.json")).unwrap();
    let document = String::from_utf8(document).unwrap();
    assert!(
        document.contains(r#""_h5fs_absent": ["seen"]"#),
        "{document}"
    );
}

/// Readers request names of other versions of Zarr in every directory.
#[test]
fn the_kernel_caches_absent_names() {
    let fs = sample().into_filesystem();
    for (path, is_kept) in [
        (at("/group"), true),
        (at("/group/array"), true),
        ("/group".into(), false),
    ] {
        let directory = fs.resolve(path.as_bytes()).unwrap().ino;
        assert_eq!(fs.is_absence_final(directory), is_kept, "{path}");
    }
}

const CONSOLIDATED: &str =
    r#""consolidated_metadata": {"kind": "inline", "must_understand": false"#;

/// Returns the beginning of the document of the group at `path`.
#[track_caller]
fn document(fs: &Filesystem, path: &str) -> String {
    let document = content(fs, &at(&format!("{path}/zarr.json"))).unwrap();
    String::from_utf8(document).unwrap()
}

/// An array with several names has a document under each name. A group in a cycle occurs once.
#[test]
fn the_document_of_a_group_contains_those_below_it() {
    let fs = sample().into_filesystem();
    let (root, group) = (document(&fs, ""), document(&fs, "/group"));
    for name in ["array", "other", "soft", "zarr%2Ejson"] {
        let own = document(&fs, &format!("/group/{name}"));
        let own = own.trim_end();
        assert!(
            root.contains(&format!(r#""group/{name}": {own}"#)),
            "{root}"
        );
        assert!(group.contains(&format!(r#""{name}": {own}"#)), "{group}");
    }
    assert_eq!(root.matches("node_type").count(), 6);
    assert_eq!(root.matches(r#""_h5fs_absent": ["broken"]"#).count(), 1);
    assert!(root.contains(CONSOLIDATED));
}

#[test]
fn the_number_of_consolidated_links_is_limited() {
    for (count, is_there) in [
        (limits::ZARR_CONSOLIDATED_LINKS, true),
        (limits::ZARR_CONSOLIDATED_LINKS + 1, false),
    ] {
        let mut fake = FakeContainer::new();
        fake.add_bytes(300, 1, b"abcd");
        fake.add_group(200, 1);
        fake.add_hard_link(ROOT, "group", 200);
        for number in 1..count {
            fake.add_hard_link(200, number.to_string(), 300);
        }
        let fs = fake.into_filesystem();
        assert_eq!(
            document(&fs, "").contains(CONSOLIDATED),
            is_there,
            "{count}"
        );
        assert!(document(&fs, "/group").contains(CONSOLIDATED));
    }
}

#[test]
fn the_depth_of_consolidated_groups_is_limited() {
    for (depth, is_there) in [
        (limits::ZARR_CONSOLIDATED_DEPTH as u64, true),
        (limits::ZARR_CONSOLIDATED_DEPTH as u64 + 1, false),
    ] {
        let mut fake = FakeContainer::new();
        let mut above = ROOT;
        for group in 1000..1000 + depth - 1 {
            fake.add_group(group, 1);
            fake.add_hard_link(above, "g", group);
            above = group;
        }
        let fs = fake.into_filesystem();
        assert_eq!(
            document(&fs, "").contains(CONSOLIDATED),
            is_there,
            "{depth}"
        );
        assert!(document(&fs, "/g").contains(CONSOLIDATED));
    }
}

/// A list without the unreadable member would make readers believe that the member does not exist.
#[test]
fn a_group_with_an_unreadable_member_is_not_consolidated() {
    let mut torn = sample();
    torn.damage_index(200, 1);
    let fs = torn.into_filesystem();
    assert!(!document(&fs, "").contains(CONSOLIDATED));

    let mut fake = sample();
    fake.add_group(500, 1);
    fake.add_bytes(600, 1, b"abcd");
    fake.add_hard_link(200, "below", 500);
    fake.add_hard_link(500, "array", 600);
    fake.fail_reads(600);
    let is_failing = Arc::clone(&fake.is_failing);
    let fs = fake.into_filesystem();
    is_failing.store(true, Ordering::SeqCst);
    assert!(!document(&fs, "").contains(CONSOLIDATED));
    is_failing.store(false, Ordering::SeqCst);
    assert!(document(&fs, "").contains(CONSOLIDATED));
}

/// Looking up one array must not read the others, and neither must listing a group.
#[test]
fn only_group_documents_read_all_objects_below() {
    let costs = [1, 100].map(|others| {
        let mut fake = FakeContainer::new();
        fake.add_group(200, 1);
        fake.add_hard_link(ROOT, "group", 200);
        fake.add_bytes(300, 1, b"abcd");
        fake.add_hard_link(ROOT, "array", 300);
        for number in 1000..1000 + others {
            fake.add_bytes(number, 1, b"abcd");
            fake.add_hard_link(200, number.to_string(), number);
        }
        let looks = Arc::clone(&fake.looks);
        let fs = fake.into_filesystem();
        let cost = |of: &dyn Fn()| {
            let before = looks.load(Ordering::SeqCst);
            of();
            looks.load(Ordering::SeqCst) - before
        };
        let one = cost(&|| drop(document(&fs, "/array")));
        let listing = cost(&|| {
            let handle = fs
                .opendir(fs.resolve(STORE.as_bytes()).unwrap().ino)
                .unwrap();
            let handle = handle.handle;
            let mut listed = Vec::new();
            let taken = fs.readdir_plus(handle, 0, &mut |entry, _| {
                listed.push(entry.name.to_vec());
                false
            });
            taken.unwrap();
            assert!(listed.contains(&b"zarr.json".to_vec()));
            fs.release(handle);
        });
        let all = cost(&|| drop(document(&fs, "")));
        let again = cost(&|| drop(document(&fs, "")));
        assert!(all > others as usize && again < 20, "{all}, {again}");
        (one, listing)
    });
    assert_eq!(costs[0], costs[1]);
}

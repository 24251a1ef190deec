use crate::fs::Kind;
use crate::fs::fake::{Fake, ROOT};
use crate::fs::requests::Requests;
use crate::fs::tests::{content, list, names};
use crate::limits;

const STORE: &str = "/.h5fs/file.zarr";

fn at(path: &str) -> String {
    format!("{STORE}{path}")
}

/// A group with an array and links of all kinds.
fn sample() -> Fake {
    let mut fake = Fake::new();
    fake.group(200, 2);
    fake.bytes(300, 2, b"abcd");
    fake.broken(400);
    fake.hard(ROOT, "group", 200);
    fake.hard(200, "array", 300);
    fake.hard(200, "other", 300);
    fake.hard(200, "again", 200);
    fake.hard(200, "broken", 400);
    fake.soft(200, "soft", "array");
    fake.soft(200, "circle", "/group");
    fake.soft(200, "itself", "itself");
    fake.soft(200, "nowhere", "/missing");
    fake.hard(200, "zarr.json", 300);
    fake
}

#[test]
fn groups_and_arrays_are_directories() {
    let fs = sample().mounted();
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
    let links = kinds.filter(|(.., kind)| *kind == Kind::Symlink);
    let links: Vec<String> = links.map(|(name, ..)| name).collect();
    assert_eq!(links, ["other", "soft", "zarr%2Ejson"]);
}

#[test]
fn a_document_names_what_is_absent() {
    let fs = sample().mounted();
    let document = String::from_utf8(content(&fs, &at("/group/zarr.json")).unwrap()).unwrap();
    assert!(
        document.contains(r#""_h5fs_absent": ["broken"]"#),
        "{document}"
    );
}

#[test]
fn a_document_looks_at_so_many_links() {
    let mut fake = Fake::new();
    fake.bytes(300, 1, b"abcd");
    fake.broken(400);
    for number in 1..limits::ZARR_LINKS {
        fake.hard(ROOT, number.to_string(), 300);
    }
    fake.hard(ROOT, "seen", 400);
    fake.hard(ROOT, "behind", 400);
    let document = content(&fake.mounted(), &at("/zarr.json")).unwrap();
    let document = String::from_utf8(document).unwrap();
    assert!(
        document.contains(r#""_h5fs_absent": ["seen"]"#),
        "{document}"
    );
}

/// Readers ask for names of other versions of Zarr in every directory.
#[test]
fn the_kernel_keeps_that_a_name_is_absent() {
    let fs = sample().mounted();
    for (path, is_kept) in [
        (at("/group"), true),
        (at("/group/array"), true),
        ("/group".into(), false),
    ] {
        let directory = fs.resolve(path.as_bytes()).unwrap().ino;
        assert_eq!(fs.lacks_for_good(directory), is_kept, "{path}");
    }
}

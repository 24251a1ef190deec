//! References as links, compared with the objects that h5py finds by them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{LONG, Mount, SOON, fixture, run, script};

#[track_caller]
fn references(command: &str, paths: &[&Path]) {
    run(script("references.py").arg(command).args(paths), LONG).success();
}

fn written() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("references.mat");
    references("write", &[&file]);
    (directory, file)
}

#[test]
fn references_lead_to_the_objects_that_h5py_finds() {
    let (_directory, file) = written();
    let mount = Mount::new(&file);
    references("check", &[&file, &mount.path]);
}

/// Some arrays refer to themselves, or to groups that contain them.
#[test]
fn walks_and_copies_of_references_end() {
    let (directory, file) = written();
    let mount = Mount::new(&file);
    let copy = directory.path().join("copy");
    let archive = directory.path().join("refs.tar");
    run(
        Command::new("cp")
            .arg("-a")
            .arg(mount.at(".h5fs/refs"))
            .arg(&copy),
        SOON,
    )
    .success();
    let links = |top: &Path| {
        let mut find = Command::new("find");
        let found = run(
            find.arg(top).args(["-type", "l", "-printf", "%P -> %l\n"]),
            SOON,
        );
        let mut lines: Vec<String> = found.success().text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let shown = links(&mount.at(".h5fs/refs"));
    assert!(shown.contains(&"run/links/1,2 -> ../../../../run/links".to_owned()));
    assert_eq!(links(&copy), shown);
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(mount.at(".h5fs"))
        .arg("-cf")
        .arg(&archive)
        .arg("refs");
    run(&mut tar, SOON).success();
    let listed = run(Command::new("tar").arg("-tf").arg(&archive), SOON).success();
    assert!(
        listed
            .text()
            .lines()
            .any(|line| line == "refs/large/999999999")
    );
}

/// References of HDF5 1.12, which each state their own kind: an object, the root, a region, an
/// attribute, an object of another file, null.
#[test]
fn references_of_the_new_form_are_links_too() {
    let mount = Mount::new(&fixture("standard-references.latest.h5"));
    let directory = mount.at(".h5fs/refs/references");
    let mut names: Vec<_> = std::fs::read_dir(&directory).expect("directory").collect();
    names.sort_by_key(|entry| entry.as_ref().expect("entry").file_name());
    let shown: Vec<(String, String)> = names
        .into_iter()
        .map(|entry| {
            let path = entry.expect("entry").path();
            let name = path
                .file_name()
                .expect("name")
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_link(&path).expect("link");
            (name, text.to_string_lossy().into_owned())
        })
        .collect();
    let expected = [
        ("0", "../../../target"),
        ("1", "../../.."),
        ("2", "../../../target"),
    ];
    for (number, (name, text)) in expected.iter().enumerate() {
        assert_eq!((&*shown[number].0, &*shown[number].1), (*name, *text));
    }
    assert_eq!(shown[3].0, "4");
    assert!(shown[3].1.starts_with("other.h5:@0x"), "{}", shown[3].1);
    assert_eq!(shown.len(), 4);
}

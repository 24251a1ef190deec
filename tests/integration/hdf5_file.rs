//! The computed HDF5 file, as h5py reads it, has what its source has.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{LONG, Mount, fixture, fixtures, run, script};

/// Copies a file of the mount and compares the copy with its source.
#[track_caller]
fn compare(source: &Path, computed: &Path) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let copy = directory.path().join("copy.h5");
    fs::copy(computed, &copy).expect("a computed file");
    let size = fs::metadata(computed).expect("its size").len();
    assert_eq!(fs::metadata(&copy).expect("the copy").len(), size);
    let said = run(script("hdf5_file.py").arg(source).arg(&copy), LONG);
    let name = source.display();
    assert!(
        said.status.success(),
        "{name}: {}{}",
        said.text(),
        said.stderr
    );
}

/// Returns the HDF5 fixtures whose names start with `beginning`.
fn fixtures_named(beginning: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures()).expect("fixtures");
    let paths = entries.map(|entry| entry.expect("entry").path());
    let is_of_theme = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(beginning) && name.ends_with(".h5")
    };
    let mut found: Vec<PathBuf> = paths.filter(is_of_theme).collect();
    found.sort();
    assert!(!found.is_empty(), "no fixture {beginning}");
    found
}

#[track_caller]
fn compare_all(beginnings: &[&str]) {
    for source in beginnings.iter().flat_map(|name| fixtures_named(name)) {
        let mount = Mount::new(&source);
        compare(&source, &mount.at(".h5fs/file.h5"));
    }
}

#[test]
fn types_and_shapes_are_the_same() {
    compare_all(&[
        "datatypes",
        "dataspaces",
        "complex",
        "fill-values",
        "resized",
    ]);
}

#[test]
fn filters_and_layouts_are_gone_and_values_stay() {
    compare_all(&["layouts", "codecs", "chunk-indices", "virtual"]);
}

#[test]
fn attributes_are_the_same() {
    compare_all(&["attribute-"]);
}

#[test]
fn links_and_references_lead_to_the_same_objects() {
    compare_all(&[
        "tiny",
        "links.",
        "names",
        "committed",
        "external-links",
        "user-defined-links",
        "records-with-references",
        "standard-references",
    ]);
}

#[test]
fn values_of_variable_length_are_the_same() {
    compare_all(&["sequences", "text-values"]);
}

#[test]
fn a_group_and_a_dataset_are_files_of_their_own() {
    let source = fixture("tiny.latest.h5");
    let mount = Mount::new(&source);
    let whole = fs::read(mount.at(".h5fs/file.h5")).expect("the whole file");
    assert_eq!(
        fs::read(mount.at(".h5fs/hdf5/%.h5")).expect("the root"),
        whole
    );
    let dataset = fs::read(mount.at(".h5fs/hdf5/contiguous.h5")).expect("a dataset");
    assert_eq!(dataset[..8], *b"\x89HDF\r\n\x1a\n");
    let elements = fs::read(mount.at("contiguous")).expect("its elements");
    let found = dataset.windows(elements.len()).any(|part| part == elements);
    assert!(found && dataset.len() < whole.len());
}

/// Writes an array with dimension scales, and checks a mount of it.
#[track_caller]
fn check_parts(command: &str) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("scales.h5");
    run(script("hdf5_parts.py").arg("write").arg(&source), LONG).success();
    let mount = Mount::new(&source);
    compare(&source, &mount.at(".h5fs/file.h5"));
    let mut check = script("hdf5_parts.py");
    run(check.arg(command).arg(&source).arg(&mount.path), LONG).success();
}

#[test]
fn a_part_of_an_array_is_a_file_with_parts_of_its_scales() {
    check_parts("check");
}

#[test]
fn a_part_of_a_variable_is_a_classic_file() {
    check_parts("classic");
}

#[test]
fn chunks_that_were_never_written_are_holes() {
    check_parts("holes");
}

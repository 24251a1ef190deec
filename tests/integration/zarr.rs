//! `.h5fs/file.zarr` and `.h5fs/stored.zarr`, compared with what h5py and asdf read from the same
//! file.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{LONG, Mount, fixtures, run, script};

const STORE: &str = ".h5fs/file.zarr";

/// Runs one of a script's commands, which fails with a traceback on any difference.
#[track_caller]
fn call(name: &str, command: &str, paths: &[&Path]) {
    run(script(name).arg(command).args(paths), LONG).success();
}

/// Writes a file with a command of a script.
fn written(name: &str, command: &str, file: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join(file);
    call(name, command, &[&file]);
    (directory, file)
}

fn arrays() -> (TempDir, PathBuf) {
    written("zarr_arrays.py", "write", "arrays.h5")
}

#[test]
fn a_store_has_the_arrays_of_the_file() {
    let (_directory, file) = arrays();
    let mount = Mount::new(&file);
    call("zarr_arrays.py", "check", &[&file, &mount.at(STORE)]);
}

#[test]
fn a_store_answers_direct_reads() {
    let (_directory, file) = arrays();
    let mount = Mount::with(&file, &["--direct-io"]);
    call("zarr_arrays.py", "check", &[&file, &mount.at(STORE)]);
}

#[test]
fn a_copy_of_a_store_is_a_store() {
    let (directory, file) = arrays();
    let mount = Mount::new(&file);
    let copy = directory.path().join("copy.zarr");
    let mut copying = Command::new("cp");
    run(copying.arg("-r").arg(mount.at(STORE)).arg(&copy), LONG).success();
    mount.unmount();
    call("zarr_arrays.py", "check", &[&file, &copy]);
}

#[test]
fn a_store_of_stored_chunks() {
    let (_directory, file) = written("zarr_stores.py", "stored-write", "stored.h5");
    let mount = Mount::new(&file);
    let store = mount.at(".h5fs/stored.zarr");
    call("zarr_stores.py", "stored-check", &[&file, &store]);
}

/// Some readers use the consolidated document of a group, and others read each document separately.
/// Both must agree.
#[test]
fn the_document_of_a_group_says_what_those_below_it_say() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let files = [
        ("zarr_arrays.py", "write", "arrays.h5"),
        ("zarr_stores.py", "stored-write", "stored.h5"),
        ("zarr_stores.py", "damaged-write", "damaged.h5"),
        ("zarr_stores.py", "extreme-write", "extreme.h5"),
        ("zarr_stores.py", "asdf-write", "tree.asdf"),
        ("zarr_stores.py", "asdf-damaged-write", "damaged.asdf"),
    ];
    for (name, command, file) in files {
        call(name, command, &[&directory.path().join(file)]);
    }
    let mount = Mount::new(directory.path());
    for (_, _, file) in files {
        for store in [STORE, ".h5fs/stored.zarr"] {
            let store = mount.at(file).join(store);
            call("zarr_stores.py", "consolidated-check", &[&store]);
        }
    }
}

#[test]
fn the_documents_of_groups_of_all_fixtures() {
    let mount = Mount::new(fixtures());
    call("zarr_stores.py", "all-check", &[&mount.at("")]);
}

/// Each element's expected value is computed from its position.
#[test]
fn chunks_of_arrays_of_random_shapes() {
    for seed in ["1", "2"] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let file = directory.path().join("random.h5");
        call("zarr_random.py", "write", &[&file, Path::new(seed)]);
        let mount = Mount::new(&file);
        call("zarr_random.py", "check", &[&file, &mount.at(STORE)]);
    }
}

/// A reader would replace a missing chunk by the fill value.
#[test]
fn a_damaged_chunk_is_there_and_cannot_be_read() {
    let (_directory, file) = written("zarr_stores.py", "damaged-write", "damaged.h5");
    let mount = Mount::new(&file);
    call("zarr_stores.py", "damaged-check", &[&mount.at(STORE)]);
}

/// More chunks than are looked up one by one, and one truncated chunk.
#[test]
fn arrays_of_very_many_and_of_very_large_chunks() {
    let (_directory, file) = written("zarr_stores.py", "extreme-write", "extreme.h5");
    let mount = Mount::new(&file);
    call("zarr_stores.py", "extreme-check", &[&mount.at(STORE)]);
}

#[test]
fn a_store_of_an_asdf_tree() {
    let (_directory, file) = written("zarr_stores.py", "asdf-write", "tree.asdf");
    let mount = Mount::new(&file);
    call("zarr_stores.py", "asdf-check", &[&mount.at(STORE)]);
}

/// An empty array would look like an array without elements.
#[test]
fn an_ndarray_that_cannot_be_described_is_absent() {
    let (_directory, file) = written("zarr_stores.py", "asdf-damaged-write", "damaged.asdf");
    let mount = Mount::new(&file);
    call("zarr_stores.py", "asdf-damaged-check", &[&mount.at(STORE)]);
}

#[test]
fn each_file_of_a_directory_has_a_store() {
    let (directory, file) = arrays();
    let name = file.file_name().expect("a name").to_owned();
    let mount = Mount::new(directory.path());
    let store = mount.at("").join(name).join(STORE);
    call("zarr_arrays.py", "check", &[&file, &store]);
}

/// Returns the references of a mounted file, copied to a file.
fn references(mount: &Mount, name: &str, directory: &Path) -> PathBuf {
    let copy = directory.join(name.replace('/', "-") + ".references.json");
    let from = mount.at(name).join(".h5fs/kerchunk.json");
    std::fs::copy(from, &copy).expect("references");
    copy
}

/// The script reads the chunks from the bytes of the file, and not from the mount.
#[test]
fn references_locate_the_chunks_of_the_file() {
    let directory = tempfile::tempdir().expect("temporary directory");
    for (name, count) in [("zarr_arrays.py", "74"), ("zarr_stores.py", "5")] {
        let file = directory.path().join(format!("{name}.h5"));
        let command = if count == "5" {
            "stored-write"
        } else {
            "write"
        };
        call(name, command, &[&file]);
        let mount = Mount::new(&file);
        let found = references(&mount, "", directory.path());
        run(script("kerchunk.py").arg(&file).arg(found).arg(count), LONG).success();
    }
}

#[test]
fn references_of_fixtures() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mount = Mount::new(fixtures());
    let names = [
        "cache-image.h5",
        "chunk-indices.earliest.h5",
        "filter-masks.latest.h5",
        "filters.latest.h5",
        "partial-edges.latest.h5",
        "resized.latest.h5",
        "sparse.latest.h5",
        "tiny.latest.h5",
        "user-block-1024.latest.h5",
    ];
    for name in names {
        let found = references(&mount, name, directory.path());
        let mut check = script("kerchunk.py");
        run(check.arg(fixtures().join(name)).arg(found), LONG).success();
    }
}

/// The script reads the chunks from the bytes of the members. Chunks that form no common grid have
/// no references.
#[test]
fn references_of_a_joined_file_locate_the_chunks_of_its_members() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let files = directory.path().join("files");
    call("kerchunk_joined.py", "write", &[&files]);
    let mount = Mount::new(&files);
    let found = references(&mount, ".h5fs/joined", directory.path());
    call("kerchunk_joined.py", "check", &[&files, &found]);
}

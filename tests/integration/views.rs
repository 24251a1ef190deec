//! The files in `.h5fs`, and parts of datasets by selector, compared with what h5py and NumPy read
//! from the same file.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{LONG, Mount, fixture, run, script, tree};

/// Runs one of the script's commands, which fails with a traceback on any difference.
#[track_caller]
fn views(command: &str, paths: &[&Path]) {
    run(script("views.py").arg(command).args(paths), LONG).success();
}

fn written() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("views.h5");
    views("write", &[&file]);
    (directory, file)
}

#[test]
fn views_show_what_h5py_and_numpy_read() {
    let (_directory, file) = written();
    let mount = Mount::new(&file);
    views("check", &[&file, &mount.path]);
}

/// Raw files contain these bytes.
#[test]
fn what_stands_behind_texts_and_booleans_is_not_in_views() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("rests.h5");
    views("write_rests", &[&file]);
    let mount = Mount::new(&file);
    views("check_rests", &[&file, &mount.path]);
}

/// Without the page cache, every read arrives with its original offset and length.
#[test]
fn views_answer_direct_reads_at_any_offset() {
    let (_directory, file) = written();
    let mount = Mount::with(&file, &["--direct-io"]);
    views("check", &[&file, &mount.path]);
}

#[test]
fn noviews_leaves_the_data_alone() {
    let (_directory, file) = written();
    let mount = Mount::with(&file, &["-o", "noviews"]);
    views("absent", &[&file, &mount.path]);
}

/// A file always has the length that `stat` returns. `rsync`, `tar`, `http.server` and DuckDB rely
/// on this.
#[test]
fn every_file_is_as_long_as_stat_says() {
    for name in [
        "filters.latest.h5",
        "text-values.latest.h5",
        "virtual.latest.h5",
    ] {
        let mount = Mount::new(&fixture(name));
        let files = tree(&mount.at(".h5fs"))
            .into_iter()
            .filter(|path| path.is_file());
        let mut documents = 0;
        for path in files {
            let told = fs::metadata(&path).expect("a size").len();
            // A file that cannot be read has length 0, except a file of several arrays.
            let has_parts =
                |suffix: &OsStr| ["parquet", "nc", "h5"].iter().any(|own| suffix == *own);
            let content = match fs::read(&path) {
                Err(_) if path.extension().is_some_and(has_parts) => continue,
                content => content.unwrap_or_default(),
            };
            assert_eq!(told, content.len() as u64, "{}", path.display());
            documents += u32::from(path.extension().is_some_and(|suffix| suffix == "yaml"));
        }
        assert!(documents > 1, "{name}");
        for name in ["ndl.yaml", "tree.json", "status", "metrics"] {
            let path = mount.at(".h5fs").join(name);
            let mut open = fs::File::open(&path).expect("a document");
            let told = open.metadata().expect("its size").len();
            let mut content = Vec::new();
            open.read_to_end(&mut content).expect("its text");
            assert!(told > 0 && told == content.len() as u64, "{name}");
        }
    }
}

//! Groups that are tables whose descriptions repeat one name very often, and their memory cost for
//! the mounted program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::memory::{keeps_its_promise, mounted};
use crate::harness::{LONG, run, script};

/// The tables that are refused, because they exceed a limit or are invalid. All other tables are as
/// small as their files.
const REFUSED: [&str; 9] = [
    "colnames",
    "column-order",
    "columns",
    "globals",
    "labels",
    "letters",
    "levels",
    "marks",
    "order",
];

/// Limits of processor time for the first `stat` of a file, and for the next one. A debug build is
/// several times slower than a release build.
const FIRST: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(500);

/// A pickle that repeats texts, columns that share a long name, type or text for missing values,
/// and very many short names.
#[test]
fn what_a_file_names_often_is_charged_as_often() {
    let directory = tempfile::tempdir().expect("temporary directory");
    run(script("table_bombs.py").arg(directory.path()), LONG).success();
    let mut refused = BTreeSet::new();
    for source in fs::read_dir(directory.path()).expect("bombs") {
        let source = source.expect("a bomb").path();
        let name = source.file_stem().expect("a name").to_str().expect("text");
        let mount = mounted(&source);
        if first_bytes(&mount.at(&format!(".h5fs/csv/{name}.csv"))).is_err() {
            refused.insert(name.to_owned());
            assert!(first_bytes(&mount.at(&format!(".h5fs/fits/{name}.fits"))).is_err());
        }
        keeps_its_promise(&mount, &source);
    }
    assert_eq!(refused, REFUSED.map(str::to_owned).into());
}

/// Reads the first million bytes of a file.
fn first_bytes(path: &Path) -> std::io::Result<usize> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(1 << 20).read_to_end(&mut bytes)
}

/// Views of texts and sequences that point to one object, and of unwritten texts.
const SHARED: [&str; 13] = [
    "csv/texts.csv",
    "csv/sequences.csv",
    "csv/group_texts.csv",
    "csv/group_sequences.csv",
    "json/texts.json",
    "json/sequences.json",
    "json/unwritten.json",
    "text/texts.txt",
    "parquet/texts.parquet",
    "parquet/group_texts.parquet",
    "parquet/group_sequences.parquet",
    "parquet/sequences.parquet",
    "fits/group_texts.fits",
];

/// A refused view fails at once, and without work the next time.
#[test]
fn an_object_that_many_elements_share_costs_little_in_all_views() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("shared.h5");
    run(script("shared.py").arg(&source), LONG).success();
    let mount = mounted(&source);
    let (worker, _) = mount.worker_and_supervisor(&source);
    let spent = |path: &str| {
        let before = worker.processor_time();
        let size = fs::metadata(mount.at(&format!(".h5fs/{path}"))).map(|found| found.len());
        (size, worker.processor_time() - before)
    };
    for path in SHARED {
        let (size, first) = spent(path);
        let (again, second) = spent(path);
        let what = format!("{path}: {size:?} after {first:?}, {again:?} after {second:?}");
        assert_eq!(size.is_ok(), again.is_ok(), "{what}");
        assert!(first < FIRST && second < AGAIN, "{what}");
    }
    let (size, first) = spent("csv/unwritten.csv");
    // Two quotes and a line break for each text.
    assert_eq!(size.ok(), Some(3 * 100_000));
    assert!(first < AGAIN, "{first:?}");
    let text = fs::read(mount.at(".h5fs/csv/unwritten.csv")).expect("texts");
    assert_eq!(text, b"\"\"\n".repeat(100_000));
    keeps_its_promise(&mount, &source);
}

//! Groups that are tables whose descriptions name one thing very often: what they cost the mounted
//! program in memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::memory::{keeps_its_promise, mounted};
use crate::harness::{LONG, run, script};

/// The tables that are refused, for what they ask for is over a limit, or is not understood. All others are as small as
/// their files.
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

/// Processor time of the first `stat` of a file, and of the next: a debug build takes some times what a
/// release build does.
const FIRST: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(500);

/// Texts that one pickle names again and again, columns that share a long name, a long type or a
/// long text for what is missing, and very many short names.
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

/// Reads a file's first million bytes.
fn first_bytes(path: &Path) -> std::io::Result<usize> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(1 << 20).read_to_end(&mut bytes)
}

/// The views of texts and sequences that lead to one object, and of texts that were never written.
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

/// What is refused is refused at once, and again without work.
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
    // `""` and a line break each.
    assert_eq!(size.ok(), Some(3 * 100_000));
    assert!(first < AGAIN, "{first:?}");
    let text = fs::read(mount.at(".h5fs/csv/unwritten.csv")).expect("texts");
    assert_eq!(text, b"\"\"\n".repeat(100_000));
    keeps_its_promise(&mount, &source);
}

//! Groups that are tables whose descriptions name one thing very often: what they cost the mounted
//! program in memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

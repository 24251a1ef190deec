//! Parquet files whose bytes are computed on demand, read by pyarrow and compared with what h5py
//! and asdf read. `tests/readers` tests the tables of conventions and other readers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{LONG, Mount, run, script};
use crate::hostile::memory::{PROMISED, keeps_its_promise, mounted};
use crate::objects::server::Server;
use crate::remote::taken;

#[track_caller]
fn parquet(command: &str, paths: &[&Path]) {
    run(script("parquet.py").arg(command).args(paths), LONG).success();
}

/// Writes files with the script, and checks a mount of them.
#[track_caller]
fn compare(command: &str, options: &[&str]) {
    let directory = tempfile::tempdir().expect("temporary directory");
    parquet("write", &[directory.path()]);
    let mount = Mount::with(directory.path(), options);
    parquet(command, &[directory.path(), &mount.path]);
}

#[test]
fn every_type_has_the_values_of_h5py() {
    compare("check", &[]);
}

/// Without the page cache, every read arrives with its original offset and length.
#[test]
fn any_range_is_that_of_the_whole() {
    compare("check", &["--direct-io"]);
}

#[test]
fn a_damaged_chunk_is_an_error_of_its_column_alone() {
    compare("damaged", &[]);
}

/// The strings that a few pointers lead to are many times larger than the file, so only a few are
/// read at a time.
#[test]
fn what_no_file_can_hold_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    parquet("write", &[directory.path()]);
    let source = directory.path().join("hostile.h5");
    let mount = mounted(&source);
    parquet("hostile", &[directory.path(), &mount.path]);
    keeps_its_promise(&mount, &source);
}

/// A file of `columns.py`: eight columns of four chunks of 131 072 numbers.
struct Columns {
    directory: tempfile::TempDir,
}

const TABLE: &str = ".h5fs/parquet/table.parquet";

#[track_caller]
fn columns(command: &str, path: &Path) {
    run(script("columns.py").arg(command).arg(path), LONG).success();
}

impl Columns {
    fn write() -> Self {
        let directory = tempfile::tempdir().expect("temporary directory");
        columns("write", &directory.path().join("columns.h5"));
        Columns { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("columns.h5")
    }
}

/// Reading the footer transfers the same bytes as `ls`. Reading two of eight columns transfers a
/// quarter of the file.
#[test]
fn of_a_far_file_comes_what_a_query_names() {
    let file = Columns::write();
    let bytes = fs::read(file.path()).expect("the file");
    let whole = bytes.len();
    let server = Server::start();
    server.put("/data/columns.h5", bytes);
    let (_, listed) = taken(&server, "columns.h5", |mount| {
        assert_eq!(fs::read_dir(mount.at("table")).expect("a group").count(), 8);
    });
    let (_, footer) = taken(&server, "columns.h5", |mount| {
        columns("footer", &mount.at(TABLE));
    });
    let (_, two) = taken(&server, "columns.h5", |mount| {
        columns("two", &mount.at(TABLE));
    });
    let what = format!("{listed}, {footer} and {two} bytes of {whole}");
    assert!(footer <= listed + (64 << 10), "{what}");
    assert!(two <= footer + whole / 4 + whole / 32, "{what}");
}

/// Each column has a chunk in each row group. The first column shows which group contains a time.
#[test]
fn a_range_decodes_the_chunks_of_its_groups() {
    let file = Columns::write();
    let mount = Mount::new(&file.path());
    let decoded = |command: &str| {
        let before = mount.status("chunks decoded");
        columns(command, &mount.at(TABLE));
        mount.status("chunks decoded") - before
    };
    // The ascending columns up to the first value that does not ascend, and the first chunk of each
    // other column.
    let footer = decoded("footer");
    assert!(footer <= 3 * 4 + 5, "{footer} chunks");
    assert_eq!(decoded("bounds"), 0);
    // One chunk of each requested column, and another chunk by read-ahead.
    let rows = decoded("between");
    assert!(rows <= 2 * 2, "{rows} chunks");
}

#[test]
fn two_columns_decode_no_others() {
    let file = Columns::write();
    let mount = Mount::new(&file.path());
    columns("footer", &mount.at(TABLE));
    let before = mount.status("chunks decoded");
    columns("two", &mount.at(TABLE));
    let decoded = mount.status("chunks decoded") - before;
    assert!(decoded <= 2 * 4, "{decoded} chunks");
}

/// Neither the kernel nor the mount caches decoded chunks.
#[test]
fn many_readers_take_as_much_memory_as_is_promised() {
    const THREADS: u64 = 2;
    const CHUNK: u64 = 1 << 20;
    let file = Columns::write();
    let options = format!("cache_size=1M,direct_io,threads={THREADS}");
    let mount = Mount::with(&file.path(), &["-o", &options]);
    let mut many = script("columns.py");
    run(many.arg("many").arg(mount.at(TABLE)).arg("16"), LONG).success();
    let (worker, _) = mount.worker_and_supervisor(&file.path());
    let (peak, promised) = (worker.peak(), PROMISED + THREADS * 3 * CHUNK);
    assert!(peak <= promised, "{peak} bytes, not {promised}");
}

//! Parquet files whose every byte is computed, read by pyarrow and compared with what h5py and asdf
//! read. The tables of conventions, and other readers, are tried by `tests/readers`.

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

/// Has the script write files, and look at their mount.
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

/// Without the page cache, every read arrives with the offset and length it was made with.
#[test]
fn any_range_is_that_of_the_whole() {
    compare("check", &["--direct-io"]);
}

#[test]
fn a_damaged_chunk_is_an_error_of_its_column_alone() {
    compare("damaged", &[]);
}

/// The texts that a few pointers lead to are many times as long as the file: they are read a few at a
/// time.
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

/// The footer takes what `ls` takes; two columns of eight a quarter of the file.
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

/// Each has a chunk in each group of rows; the first tells in which a time is.
#[test]
fn a_range_decodes_the_chunks_of_its_groups() {
    let file = Columns::write();
    let mount = Mount::new(&file.path());
    let decoded = |command: &str| {
        let before = mount.status("chunks decoded");
        columns(command, &mount.at(TABLE));
        mount.status("chunks decoded") - before
    };
    // The columns that ascend, up to where one does not; of the others, a look at the first chunk.
    let footer = decoded("footer");
    assert!(footer <= 3 * 4 + 5, "{footer} chunks");
    assert_eq!(decoded("bounds"), 0);
    // Of each column that is named a chunk, and another that is decoded ahead.
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

/// Neither the kernel nor the mount keeps what was decoded.
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

//! Files that are read as if they were far away. The source counts the round trips of a reader
//! without any delay, and reads only the requested ranges, in blocks of 512 bytes.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use h5fs_reader::detect::{self, Caches};
use h5fs_reader::source::local::audience::Readers;
use h5fs_reader::source::local::file::FileSource;
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_reader::source::neighbours::policy::OtherFilesPolicy;
use h5fs_reader::source::recording::RoundTripRecorder;
use h5fs_tree::{FileKind, Filesystem, Options, Requests};

use crate::harness::{LONG, eventually, run, script};

const BLOCK: u64 = 512;

/// The files of `far.py`.
struct Files {
    directory: tempfile::TempDir,
    /// Crawls can only be recognised by the name of their thread, so the tests run one at a time.
    _alone: MutexGuard<'static, ()>,
}

impl Files {
    fn write() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().expect("temporary directory");
        run(script("far.py").arg(directory.path()), LONG).success();
        Files {
            directory,
            _alone: alone,
        }
    }

    fn open(&self, name: &str) -> Far {
        Far::open(&self.directory.path().join(name))
    }
}

/// A file and its tree.
struct Far {
    source: Arc<RoundTripRecorder>,
    tree: Filesystem,
}

impl Far {
    fn open(path: &Path) -> Self {
        let file = FileSource::open(path, None).expect("fixture");
        let metadata = fs::metadata(path).expect("fixture");
        let source = RoundTripRecorder::with_block_size(Arc::new(file), BLOCK);
        let neighbours = Arc::new(Neighbours::new(
            path,
            OtherFilesPolicy::WithinDirectory,
            None,
            Readers::Owner,
        ));
        let shared = Arc::clone(&source);
        let container = detect::open(shared, neighbours, &Caches::default(), false);
        let origin = h5fs_tree::SourceAttributes::new(path.to_path_buf(), &metadata);
        let tree = Filesystem::new(container.expect("fixture"), origin, &Options::default());
        Far { source, tree }
    }

    /// Returns the number of round trips of `act`.
    fn trips<T>(&self, act: impl FnOnce(&Filesystem) -> T) -> (T, usize) {
        let before = self.source.round_trips();
        let done = act(&self.tree);
        (done, self.source.round_trips() - before)
    }

    /// Reads the file at `path` in pieces of `length` bytes. Returns its bytes and the number of
    /// round trips.
    fn read(&self, path: &str, length: usize) -> (Vec<u8>, usize) {
        self.trips(|tree| {
            let entry = tree.resolve(path.as_bytes()).expect("there");
            let file = tree.open_file(entry.ino).expect("a file").handle;
            let mut bytes = Vec::new();
            loop {
                let piece = tree.read(file, bytes.len() as u64, length).expect("bytes");
                if piece.is_empty() {
                    return bytes;
                }
                bytes.extend_from_slice(&piece);
            }
        })
    }
}

/// Reads all names and attributes in a directory. Returns the number of entries.
fn walk(tree: &Filesystem, directory: u64) -> usize {
    let handle = tree.opendir(directory).expect("a directory").handle;
    let mut names = Vec::new();
    let mut next = 0;
    loop {
        let before = names.len();
        let listed = tree.readdir(handle, next, &mut |entry| {
            if entry.name != b"." && entry.name != b".." {
                names.push(entry.name.to_vec());
            }
            next = entry.next;
            false
        });
        listed.expect("a listing");
        if names.len() == before {
            break;
        }
    }
    tree.release(handle);
    let mut count = names.len();
    for name in names.iter().filter(|name| *name != b".h5fs") {
        let entry = tree.lookup(directory, name).expect("an entry");
        tree.getattr(entry.ino).expect("its attributes");
        if entry.attributes.kind == FileKind::Directory {
            count += walk(tree, entry.ino);
        }
    }
    count
}

/// Waits for the crawl that follows the opening of a directory. `before` is the number of round
/// trips before it.
fn until_no_thread_crawls(far: &Far, before: usize) {
    // A thread has its name only once it runs, and then it reads something.
    eventually(LONG, "a crawl", || far.source.round_trips() > before);
    eventually(LONG, "the crawl ends", || {
        let threads = fs::read_dir("/proc/self/task").expect("threads");
        let mut names = threads
            .flatten()
            .map(|task| fs::read_to_string(task.path().join("comm")));
        !names.any(|name| name.is_ok_and(|name| name == "crawl\n"))
    });
}

/// Reads 30 groups of six datasets: their headers, links and chunk indices.
#[test]
fn a_tree_is_found_as_deep_as_it_is() {
    let files = Files::write();
    for name in ["tree-old.h5", "tree-new.h5"] {
        let far = files.open(name);
        let opened = far.source.round_trips();
        assert!(opened <= 4, "{name}: {opened} round trips to open");
        let root = far.tree.root();
        let (_, trips) = far.trips(|tree| {
            let handle = tree.opendir(root).expect("the root").handle;
            until_no_thread_crawls(&far, opened);
            tree.release(handle);
        });
        assert!(trips <= 12, "{name}: {trips} round trips to crawl");
        let (count, trips) = far.trips(|tree| walk(tree, root));
        assert_eq!((count, trips), (30 * 7, 0), "{name}");
        // The 64 KiB of data before each group were not read.
        assert!(
            far.source.bytes() < 30 * (32 << 10),
            "{name}: {}",
            far.source.bytes()
        );
    }
}

/// `stat` counts the stored chunks of an array. For up to 4096 chunks below a directory, the crawl
/// reads them in advance.
#[test]
fn the_chunks_that_stat_counts_are_looked_into_within_the_limit() {
    let files = Files::write();
    for name in ["arrays-old.h5", "arrays-new.h5"] {
        let far = files.open(name);
        let (root, opened) = (far.tree.root(), far.source.round_trips());
        let handle = far.tree.opendir(root).expect("the root").handle;
        until_no_thread_crawls(&far, opened);
        far.tree.release(handle);
        for (array, is_found) in [("d0", true), ("d3", true), ("d4", false)] {
            let (blocks, trips) = far.trips(|tree| {
                let entry = tree.lookup(root, array.as_bytes()).expect("an array");
                let entry = tree.getattr(entry.ino).expect("its attributes");
                entry.attributes.blocks
            });
            assert_eq!(blocks, (1000 * 4_u64).div_ceil(512), "{name} {array}");
            assert_eq!(trips == 0, is_found, "{name} {array}: {trips}");
        }
    }
}

#[test]
fn the_chunks_of_an_index_are_found_as_deep_as_it_is() {
    let files = Files::write();
    let expected = |i: i32| i.to_le_bytes();
    let expected: Vec<u8> = (0..24_000).flat_map(expected).collect();
    for name in ["indices-old.h5", "indices-new.h5"] {
        for path in ["/fixed", "/growing", "/both"] {
            // The path to the index, its levels, and the 6000 chunks. A B-tree of version 1 has
            // about a hundred nodes.
            let (bytes, trips) = files.open(name).read(path, 1 << 20);
            assert!(bytes == expected, "{name}{path}");
            assert!(trips <= 26, "{name}{path}: {trips} round trips in one read");
            // The first step, the next step, and everything else by read-ahead.
            let (bytes, trips) = files.open(name).read(path, 4096);
            assert!(bytes == expected, "{name}{path}");
            assert!(trips <= 28, "{name}{path}: {trips} round trips in steps");
        }
    }
}

#[test]
fn a_large_directory_is_listed_as_deep_as_its_index() {
    let files = Files::write();
    for name in ["links-old.h5", "links-new.h5"] {
        let far = files.open(name);
        let (count, trips) = far.trips(|tree| {
            let group = tree.resolve(b"/group").expect("a group");
            let found = far.source.round_trips();
            let handle = tree.opendir(group.ino).expect("a directory").handle;
            let (mut count, mut next, mut before) = (0, 0, None);
            // The listing may come in parts on a busy machine.
            while before != Some(next) {
                before = Some(next);
                let listed = tree.readdir(handle, next, &mut |entry| {
                    (count, next) = (count + 1, entry.next);
                    false
                });
                listed.expect("a listing");
            }
            until_no_thread_crawls(&far, found);
            count
        });
        assert_eq!(count, 3002, "{name}");
        assert!(trips <= 14, "{name}: {trips} round trips");
    }
}

#[test]
fn attributes_on_a_heap_come_together() {
    let files = Files::write();
    let far = files.open("attributes.h5");
    let (names, trips) = far.trips(|tree| tree.listxattr(tree.root()).expect("attributes"));
    assert!(names.len() >= 600);
    // The attributes take 100 KiB in a heap, and the index has about forty nodes.
    assert!(trips <= 16, "{trips} round trips");
}

#[test]
fn the_strings_of_a_read_come_together() {
    let files = Files::write();
    let expected = |i: i32| format!("{i:04}").repeat(100) + "\n";
    let expected: String = (0..2000).map(expected).collect();
    for name in ["strings-old.h5", "strings-new.h5"] {
        let (bytes, trips) = files.open(name).read("/strings", 1 << 20);
        assert!(bytes == expected.as_bytes(), "{name}");
        // Nine strings fill a collection of the global heap, so there are 223 collections.
        assert!(trips <= 48, "{name}: {trips} round trips");
    }
}

#[test]
fn a_source_is_told_of_its_pages() {
    let files = Files::write();
    assert_eq!(files.open("paged.h5").source.pages(), Some((0, 8192)));
    assert_eq!(files.open("tree-new.h5").source.pages(), None);
}

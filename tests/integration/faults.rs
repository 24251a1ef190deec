//! A disk that fails temporarily. Every read during the failure is right or an error. Once the disk
//! works again, everything can be read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5fs_reader::detect::{self, Caches};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_reader::source::{SharedSource, Source, WantedCheck};
use h5fs_tree::{
    Caching, FileKind, Filesystem, Ino, LookupEntry, OpenedHandle, Options, Requests,
    SourceAttributes,
};

use crate::harness::{LONG, fixture, run, script};
use crate::hostile::hdf5::Hdf5;
use crate::hostile::requests::old_group_in_nodes;

/// Number of successive reads that fail, as when a cable is unplugged for a moment.
const OUTAGE: u64 = 3;

/// Number of positions at which the disk of one file fails.
const FAULTS: u64 = 20;

/// A file in memory on a disk that fails at some reads.
#[derive(Debug)]
struct Disk {
    content: Vec<u8>,
    reads: AtomicU64,
    first_failure: AtomicU64,
    /// Interval of additional failures, in reads.
    every: AtomicU64,
    outage: u64,
}

const NEVER: u64 = u64::MAX;

impl Disk {
    fn with(path: &Path, outage: u64) -> Arc<Self> {
        Arc::new(Disk {
            content: fs::read(path).expect("fixture"),
            reads: AtomicU64::new(0),
            first_failure: AtomicU64::new(NEVER),
            every: AtomicU64::new(NEVER),
            outage,
        })
    }

    fn fail_at(&self, read: u64) {
        self.every.store(NEVER, Ordering::SeqCst);
        self.reads.store(0, Ordering::SeqCst);
        self.first_failure.store(read, Ordering::SeqCst);
    }

    /// Makes the read with number `first` fail, and then each `every`th read.
    fn fail_every(&self, every: u64, first: u64) {
        self.first_failure.store(NEVER, Ordering::SeqCst);
        self.reads.store(every - 1 - first, Ordering::SeqCst);
        self.every.store(every, Ordering::SeqCst);
    }
}

impl Source for Disk {
    fn length(&self) -> u64 {
        self.content.len() as u64
    }

    fn read_cancellable(&self, at: u64, buffer: &mut [u8], _: &WantedCheck<'_>) -> Result<()> {
        let read = self.reads.fetch_add(1, Ordering::SeqCst);
        let first = self.first_failure.load(Ordering::SeqCst);
        let every = self.every.load(Ordering::SeqCst);
        if read % every == every - 1 || read >= first && read - first < self.outage {
            // Fills the buffer with bytes that are not in the file.
            buffer.fill(0xee);
            return Err(Error::from_io(
                &std::io::Error::from_raw_os_error(5),
                "a bad disk",
            ));
        }
        let from = usize::try_from(at)
            .ok()
            .and_then(|at| self.content.get(at..));
        match from.and_then(|from| from.get(..buffer.len())) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return Err(Error::corrupt("past the end", at)),
        }
        Ok(())
    }
}

fn mounted(disk: &Arc<Disk>, path: &Path) -> Result<Filesystem> {
    let source: SharedSource = Arc::<Disk>::clone(disk);
    let neighbours = Arc::new(Neighbours::unavailable());
    let container = detect::open(source, neighbours, &Caches::default(), false)?;
    let origin = SourceAttributes::new(path.to_owned(), &fs::metadata(path).expect("stat"));
    let options = Options {
        threads: 1,
        ..Options::default()
    };
    Ok(Filesystem::new(container, origin, &options))
}

/// The content at each path, or the error. A directory is empty.
type Contents = BTreeMap<Vec<u8>, Result<Vec<u8>>>;

/// The view trees that are walked for each fault.
const VIEWS: [&str; 7] = ["npy", "attrs", "json", "csv", "blocks", "mask", "ndl"];

/// Additional view trees that are read if the disk fails at regular intervals.
const MORE_VIEWS: [&str; 8] = [
    "offsets",
    "chunks",
    "assembled",
    "refs",
    "text",
    "tiff",
    "png",
    "fits",
];

/// Reads everything that a mount shows, including views. Some of it is read twice, by different
/// routes.
fn walk(tree: &Filesystem) -> Contents {
    walk_views(tree, &VIEWS)
}

fn walk_views(tree: &Filesystem, views: &[&str]) -> Contents {
    let mut found = Contents::new();
    visit(tree, tree.root(), b"", &mut found);
    for view in views {
        let top = tree.lookup(tree.root(), b".h5fs");
        let top = top.and_then(|top| tree.lookup(top.ino, view.as_bytes()));
        match top {
            // HDF5 files lack blocks.
            Err(Error::NotFound) => {}
            Ok(top) => visit(tree, top.ino, view.as_bytes(), &mut found),
            Err(error) => drop(found.insert(view.as_bytes().to_vec(), Err(error))),
        }
    }
    found
}

fn visit(tree: &Filesystem, directory: Ino, path: &[u8], found: &mut Contents) {
    let listed = match list(tree, directory) {
        Ok(listed) => listed,
        Err(error) => {
            found.insert(path.to_vec(), Err(error));
            return;
        }
    };
    found.insert(path.to_vec(), Ok(listed.text));
    for name in listed.names {
        let path = [path, b"/", &name].concat();
        let entry = match tree.lookup(directory, &name) {
            Ok(entry) => entry,
            Err(error) => {
                found.insert(path, Err(error));
                continue;
            }
        };
        match entry.attributes.kind {
            FileKind::Directory => visit(tree, entry.ino, &path, found),
            FileKind::Symlink => drop(found.insert(path, tree.readlink(entry.ino))),
            FileKind::File => drop(found.insert(path, content(tree, entry))),
        }
    }
}

struct Listed {
    names: Vec<Vec<u8>>,
    /// The whole text of a listing that the kernel may cache.
    text: Vec<u8>,
}

fn list(tree: &Filesystem, directory: Ino) -> Result<Listed> {
    let handle = tree.opendir(directory)?.handle;
    let mut names = Vec::new();
    let mut text = Vec::new();
    let mut position = 0;
    loop {
        let before = position;
        tree.readdir(handle, position, &mut |entry| {
            position = entry.next;
            if !matches!(entry.name, b"." | b"..") {
                names.push(entry.name.to_vec());
                text.extend(format!("{:?} {:?}\n", entry.kind, names.last()).into_bytes());
            }
            false
        })?;
        if position == before {
            break;
        }
    }
    tree.release(handle);
    let next = tree.opendir(directory)?;
    tree.release(next.handle);
    if next.caching == Caching::UntilChanged {
        Ok(Listed { names, text })
    } else {
        Err(Error::NotFound)
    }
}

fn content(tree: &Filesystem, found: LookupEntry) -> Result<Vec<u8>> {
    const PIECE: usize = 64 << 10;
    let ino = found.ino;
    // If the kernel may not cache the attributes, it requests them again.
    let told = if found.is_cacheable {
        found
    } else {
        tree.getattr(ino)?
    };
    let OpenedHandle {
        handle, caching, ..
    } = tree.open_file(ino)?;
    let is_of_the_moment = caching == Caching::Never;
    let mut content = Vec::new();
    loop {
        let piece = tree.read(handle, content.len() as u64, PIECE)?;
        content.extend_from_slice(&piece);
        if piece.len() < PIECE {
            break;
        }
    }
    tree.release(handle);
    // The kernel shows no more than the size that it was given.
    let size = told.attributes.size;
    assert!(is_of_the_moment || !told.is_cacheable || size == content.len() as u64);
    if !is_of_the_moment {
        content.truncate(usize::try_from(size).expect("a size"));
    }
    Ok(content)
}

/// Every file that can be read while the disk fails is right, and afterwards every file is.
fn fails_anywhere(path: &Path) {
    fails_at(path, FAULTS, OUTAGE);
}

/// Does the same as [`fails_anywhere`], with this number of positions and failing reads.
fn fails_at(path: &Path, faults: u64, outage: u64) {
    let disk = Disk::with(path, outage);
    let tree = mounted(&disk, path).expect("a healthy disk");
    let whole = walk(&tree);
    let reads = disk.reads.load(Ordering::SeqCst);
    let readable = whole.values().filter(|content| content.is_ok()).count();
    assert!(readable > 5, "{}: {readable} files", path.display());
    let mut met = 0;
    for failure in (0..reads).step_by((reads / faults).max(1) as usize) {
        disk.fail_at(failure);
        let Ok(tree) = mounted(&disk, path) else {
            met += 1;
            continue;
        };
        for (name, content) in walk(&tree) {
            match content {
                Ok(_) => assert!(
                    whole.get(&name) == Some(&content),
                    "{}: read {failure} failed: {} is wrong",
                    path.display(),
                    name.escape_ascii()
                ),
                Err(_) => met += 1,
            }
        }
        disk.fail_at(NEVER);
        for (name, content) in walk(&tree) {
            assert!(
                whole.get(&name) == Some(&content),
                "{}: after read {failure} failed once, {} stays {:?}",
                path.display(),
                name.escape_ascii(),
                content.map(|content| content.len())
            );
        }
    }
    assert!(
        met > faults.min(reads) / 2,
        "{}: {met} faults were seen",
        path.display()
    );
}

/// Reads each file of the mount separately, on a disk that fails at regular intervals. Each read
/// returns the whole content or an error.
fn fails_now_and_then(path: &Path) {
    let disk = Disk::with(path, 1);
    let views = [&VIEWS[..], &MORE_VIEWS].concat();
    let whole = walk_views(&mounted(&disk, path).expect("a healthy disk"), &views);
    let described = extended(&mounted(&disk, path).expect("a healthy disk"), &whole);
    let (mut right, mut refused) = (0, 0);
    for (every, first) in [
        (2, 0),
        (3, 1),
        (5, 0),
        (5, 2),
        (5, 4),
        (7, 3),
        (11, 5),
        (23, 7),
    ] {
        disk.fail_at(NEVER);
        let tree = mounted(&disk, path).expect("a healthy disk");
        disk.fail_every(every, first);
        for ((name, attribute), value) in &described {
            let found = tree.resolve_link(name);
            match found.and_then(|found| tree.getxattr(found.ino, attribute)) {
                Ok(found) => assert_eq!(found, *value, "{}", attribute.escape_ascii()),
                Err(error @ Error::Io { .. }) => {
                    let number = h5fs_tree::errno::from_error(&error);
                    assert_eq!(number, 5, "{}", attribute.escape_ascii());
                }
                Err(error) => panic!("{}: {error}", attribute.escape_ascii()),
            }
        }
        for (name, content) in &whole {
            let Ok(content) = content else { continue };
            let name_in_views = [b".h5fs/", &name[..]].concat();
            let name = match name.first() {
                None | Some(b'/') => &name[..],
                Some(_) => &name_in_views,
            };
            match alone(&tree, name) {
                Err(_) => refused += 1,
                Ok(None) => {}
                Ok(Some(found)) => {
                    right += 1;
                    assert!(
                        found == *content,
                        "{}: every {every} from {first}: {}: {} of {} bytes, without an error",
                        path.display(),
                        name.escape_ascii(),
                        found.len(),
                        content.len()
                    );
                }
            }
        }
    }
    assert!(
        right > 20 && refused > 20,
        "{right} right, {refused} refused"
    );
}

/// Returns the extended attributes of all objects in the main tree, by path and name.
fn extended(tree: &Filesystem, whole: &Contents) -> BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>> {
    let mut found = BTreeMap::new();
    let names = whole
        .keys()
        .filter(|name| matches!(name.first(), None | Some(b'/')));
    for name in names {
        let ino = tree.resolve_link(name).expect("a healthy disk").ino;
        for attribute in tree.listxattr(ino).expect("a healthy disk") {
            let value = tree.getxattr(ino, &attribute).expect("a healthy disk");
            found.insert((name.clone(), attribute), value);
        }
    }
    found
}

/// Returns what `cat` prints for a file. `cat` opens the file and then requests its length. Returns
/// `None` for anything but a file.
fn alone(tree: &Filesystem, name: &[u8]) -> Result<Option<Vec<u8>>> {
    let found = tree.resolve_link(name)?;
    match found.attributes.kind {
        FileKind::File => content(tree, found).map(Some),
        FileKind::Symlink => tree.readlink(found.ino).map(Some),
        FileKind::Directory => Ok(None),
    }
}

#[test]
fn of_every_so_many_reads() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let blocks = directory.path().join("blocks.asdf");
    fs::write(&blocks, of_blocks()).expect("write");
    fails_now_and_then(&blocks);
    for name in ["tiny.earliest.h5", "sequences.latest.h5"] {
        fails_now_and_then(&fixture(name));
    }
}

#[test]
fn of_hdf5() {
    for name in ["tiny.earliest.h5", "tiny.latest.h5", "sequences.latest.h5"] {
        fails_anywhere(&fixture(name));
    }
}

#[test]
fn of_asdf_and_of_chunks() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let made = run(
        script("changing.py").arg(directory.path()).arg("3000"),
        LONG,
    );
    assert!(made.status.success(), "{}", made.stderr);
    for name in ["old.asdf", "old.h5"] {
        fails_anywhere(&directory.path().join(name));
    }
}

/// Returns an ASDF file of separate blocks and of arrays over them. The last block extends to the
/// end of the file.
fn of_blocks() -> Vec<u8> {
    const BYTES: u64 = 70_000;
    let mut file =
        b"#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\n".to_vec();
    let array = |name: &str, source: u64, rest: &str| {
        let array = "!core/ndarray-1.0.0 {datatype: int8, byteorder: big";
        format!("{name}: {array}, source: {source}, {rest}}}\n").into_bytes()
    };
    file.extend(array("whole", 0, "shape: [70000]"));
    file.extend(array("apart", 1, "shape: [7], strides: [10000], mask: 3"));
    file.extend(array("open", 2, "shape: ['*', 1000]"));
    file.extend(b"...\n");
    for number in 0..3_u8 {
        file.extend(b"\xd3BLK\0\x30\0\0\0");
        file.push(u8::from(number == 2));
        file.extend([0; 4]);
        file.extend([BYTES.to_be_bytes(); 3].concat());
        file.extend([0; 16]);
        file.extend((0..BYTES).map(|byte| (byte / 1000) as u8 + number));
    }
    file
}

#[test]
fn of_asdf_blocks() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("blocks.asdf");
    fs::write(&path, of_blocks()).expect("write");
    // A block's header is read repeatedly: by the listing and the lookup, and twice by each of
    // them.
    fails_at(&path, 3 * FAULTS, 2 * OUTAGE);
}

/// An old group whose names are in nodes that are not read in file order. Skipped names are
/// reported at the end.
#[test]
fn of_the_nodes_of_an_old_group() {
    const NAMES: u64 = 16;
    let mut file = Hdf5::new();
    let names: Vec<u8> = (0..=NAMES)
        .flat_map(|i| format!("{i:07}\0").into_bytes())
        .collect();
    // Each name has its own object, so no object can be found under another name.
    let entries: Vec<_> = (1..=NAMES)
        .map(|i| (8 * i, file.put_bytes(b"elements"), 0))
        .collect();
    let root = old_group_in_nodes(&mut file, &names, &entries, 4);
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("group.h5");
    fs::write(&path, file.rooted(root)).expect("write");
    for outage in [1, OUTAGE] {
        fails_at(&path, 60, outage);
    }
}

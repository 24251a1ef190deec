//! The memory that small requests for large metadata cost the mounted program.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::asdf::file;
use super::hdf5::*;
use super::requests::old_group_of;
use super::values::{
    all, attribute_record, put_list, regular, same_parts, virtual_layout, with_dense_attributes,
};
use crate::harness::{MOUNT_LIMIT, Mount, eventually, run};
use h5fs::limits;

/// The documented memory of the program with a cache of one mebibyte, while no chunk is decoded.
/// The code of an unoptimized build needs 9 MB more.
pub(crate) const PROMISED: u64 = (1 + 64 + if cfg!(debug_assertions) { 9 } else { 0 }) << 20;

pub(crate) fn mounted(source: &Path) -> Mount {
    Mount::with(source, &["-o", "cache_size=1M,threads=1"])
}

#[track_caller]
pub(crate) fn keeps_its_promise(mount: &Mount, source: &Path) {
    let (worker, _) = mount.worker_and_supervisor(source);
    let peak = worker.peak();
    assert!(peak <= PROMISED, "{peak} bytes");
}

/// Returns a file whose root is an old-style group with `count` datasets. Each name has `length`
/// bytes, and names are `apart` bytes from each other in the heap.
fn spread_names(count: u64, length: usize, apart: u64) -> Vec<u8> {
    let mut file = Hdf5::new();
    let two_links = Message(kind::REFERENCE_COUNT, 0, vec![0, 2, 0, 0, 0]);
    let layout = contiguous(UNDEFINED, 1);
    let mut child = dataset(&[1], &byte_type(), layout, &[two_links]);
    child.resize(child.len().next_multiple_of(8), 0);
    let children = file.put(&child.repeat(usize::try_from(count).expect("memory")));
    let mut names = vec![0; usize::try_from(count * apart).expect("memory")];
    let mut entries = Vec::new();
    for i in 0..count {
        let at = i * apart + 8;
        let name = format!("{i:0length$}");
        let place = usize::try_from(at).expect("memory");
        names[place..place + name.len()].copy_from_slice(name.as_bytes());
        entries.push((at, children + i * child.len() as u64, 0));
    }
    let last = entries.last().expect("a name").0;
    let data = file.put(&names);
    let heap = file.put(&local_heap(count * apart, data));
    let node = file.put(&symbols(u16::try_from(count).expect("few"), &entries));
    let btree = file.put(&group_node(0, 1, &[0, node, last]));
    let root = file.put(&old_group(btree, heap));
    file.rooted(root)
}

/// Writes a file with links to `count` files like `neighbour`, named `0`, `1`, …, and then to the
/// files `rest`.
fn with_neighbours(directory: &Path, neighbour: &[u8], count: usize, rest: &[&str]) -> PathBuf {
    let one = directory.join("one.h5");
    fs::write(&one, neighbour).expect("one.h5");
    let mut names = Vec::new();
    for i in 0..count {
        // Hard links with different names count as different files.
        let name = format!("one-{i}.h5");
        fs::hard_link(&one, directory.join(&name)).expect(&name);
        names.push(name);
    }
    names.extend(rest.iter().copied().map(str::to_owned));
    let link = |(i, name): (usize, &String)| {
        external_link(i.to_string().as_bytes(), name.as_bytes(), b"/")
    };
    let links: Vec<Message> = names.iter().enumerate().map(link).collect();
    let mut file = Hdf5::new();
    let root = file.put(&group(&links));
    let source = directory.join("main.h5");
    fs::write(&source, file.rooted(root)).expect("main.h5");
    source
}

/// Returns a file with a dataset `bytes` of `count` sequences of one byte. Each sequence is in its
/// own collection with 2000 objects.
fn many_collections(count: u64) -> Vec<u8> {
    const OBJECTS: u16 = 2000;
    let mut file = Hdf5::new();
    let objects: Vec<_> = (1..=OBJECTS).map(|index| (index, 1, &b"b"[..])).collect();
    let collection = collection(16 + 24 * u64::from(OBJECTS), &objects);
    let elements: Vec<u8> = (0..count)
        .flat_map(|_| pointer(1, file.put(&collection), OBJECTS.into()))
        .collect();
    let data = file.put(&elements);
    let layout = contiguous(data, elements.len() as u64);
    let bytes = file.put(&dataset(&[count], &sequence_type(), layout, &[]));
    let root = file.put_group(&[(b"bytes", bytes)]);
    file.rooted(root)
}

/// Five groups whose listings need 20 MB of metadata each, with all their files open.
#[test]
fn the_metadata_of_all_neighbours_together_is_bounded() {
    const FILES: usize = 5;
    const NAMES: u64 = 5000;
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = with_neighbours(directory.path(), &spread_names(NAMES, 5, 4096), FILES, &[]);
    let mount = mounted(&source);
    for i in 0..FILES {
        let names = fs::read_dir(mount.at(&i.to_string())).expect("a group");
        assert_eq!(names.count() as u64, NAMES, "{i}");
    }
    keeps_its_promise(&mount, &source);
}

/// Ten files with 6 MB of names each, in which the path of an object with several names is
/// searched. Also a file with 10 MB of collection directories, and more objects than the cache
/// keeps.
#[test]
fn what_is_kept_of_all_neighbours_together_is_bounded() {
    const FILES: usize = 10;
    const COLLECTIONS: u64 = 200;
    const NAMES: u64 = 25_000;
    const OBJECTS: usize = 10_000;
    let directory = tempfile::tempdir().expect("temporary directory");
    let heaps = directory.path().join("heaps.h5");
    fs::write(heaps, many_collections(COLLECTIONS)).expect("heaps.h5");
    let neighbour = spread_names(NAMES, 240, 256);
    let source = with_neighbours(directory.path(), &neighbour, FILES, &["heaps.h5"]);
    let mount = mounted(&source);
    let bytes = fs::read(mount.at(&format!("{FILES}/bytes"))).expect("sequences");
    assert_eq!(bytes, b"b".repeat(COLLECTIONS as usize));
    for name in fs::read_dir(mount.at("0")).expect("a group").take(OBJECTS) {
        let object = name.expect("a name").metadata().expect("a dataset");
        assert_eq!(object.len(), 1);
    }
    for i in 0..FILES {
        let mut path = Command::new("getfattr");
        path.args(["--only-values", "-n", "user.h5fs.path"]);
        let last = format!("{:0240}", NAMES - 1);
        path.arg(mount.at(&format!("{i}/{last}")));
        let path = run(&mut path, MOUNT_LIMIT).success().text();
        assert_eq!(path, format!("/{last}"), "{i}");
    }
    keeps_its_promise(&mount, &source);
}

/// Headers of 8 MiB: one with two million empty messages, which exceed the limit, and one with
/// links.
#[test]
fn headers_of_many_messages() {
    const BYTES: usize = 8 << 20;
    const LINKS: usize = 60_000;
    let mut file = Hdf5::new();
    let (child, empty) = (file.put_bytes(b"child"), Message(0, 0, Vec::new()));
    let mut far = |messages: &[Message]| {
        let block = continuation_2(messages);
        let at = file.put(&block);
        file.put(&group(&[continuation(at, block.len() as u64)]))
    };
    let bad = far(&vec![empty; BYTES / 4]);
    let name = |i: usize| format!("{i:06}{}", "x".repeat(BYTES / LINKS - 32));
    let links: Vec<Message> = (0..LINKS)
        .map(|i| hard_link(name(i).as_bytes(), child))
        .collect();
    let many = far(&links);
    let root = file.put_group(&[(b"bad", bad), (b"many", many)]);
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("headers.h5");
    fs::write(&source, file.rooted(root)).expect("headers.h5");
    let mount = mounted(&source);
    let mut listing = fs::read_dir(mount.at("bad")).expect("a directory");
    assert!(listing.next().expect("an answer").is_err());
    assert_eq!(
        fs::read_dir(mount.at("many")).expect("links").count(),
        LINKS
    );
    keeps_its_promise(&mount, &source);
}

/// Datasets whose lists of raw files repeat very long names.
#[test]
fn lists_of_long_names() {
    const NAME: usize = 60_000;
    let mut file = Hdf5::new();
    let names = file.put(&[&[0; 8][..], &[b'n'; NAME], &[0; 8]].concat());
    let heap = file.put(&local_heap(16 + NAME as u64, names));
    let mut listing = |slots: u16| {
        let count = slots.to_le_bytes();
        let head = [&[1, 0, 0, 0][..], &count, &count, &words(&[heap])].concat();
        let slots = [8, 0, 1].repeat(slots.into());
        let list = Message(kind::EXTERNAL_FILES, 0, [head, words(&slots)].concat());
        let layout = contiguous(UNDEFINED, 1);
        file.put(&dataset(
            &[slots.len() as u64 / 3],
            &byte_type(),
            layout,
            &[list],
        ))
    };
    let mut links: Vec<Message> = (0..200)
        .map(|i| hard_link(format!("{i:03}").as_bytes(), listing(15)))
        .collect();
    links.push(hard_link(b"too many", listing(2600)));
    let root = file.put(&group(&links));
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("lists.h5");
    fs::write(&source, file.rooted(root)).expect("lists.h5");
    let mount = mounted(&source);
    for name in fs::read_dir(mount.at("")).expect("the root") {
        let path = name.expect("a name").path();
        assert_eq!(
            fs::read(&path).map_err(|error| error.raw_os_error()),
            Err(Some(5)),
            "{path:?}"
        );
    }
    keeps_its_promise(&mount, &source);
}

/// Mounts a file with the dataset `set` of this layout. Returns its directory, its path and the
/// mount.
fn mounted_set(
    mut file: Hdf5,
    dims: &[u64],
    datatype: &[u8],
    layout: Message,
) -> (Mount, tempfile::TempDir, PathBuf) {
    let set = file.put(&dataset(dims, datatype, layout, &[]));
    let part = file.put(&dataset(
        dims,
        datatype,
        contiguous(UNDEFINED, UNDEFINED),
        &[],
    ));
    let root = file.put_group(&[(b"part", part), (b"set", set)]);
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("set.h5");
    fs::write(&source, file.rooted(root)).expect("set.h5");
    (mounted(&source), directory, source)
}

/// ASDF: one field with a long name, repeated up to the length limit of a list. Also a chunk at the
/// end of a reference of two million names.
#[test]
fn names_that_aliases_repeat() {
    let field = format!("&f {{name: {}, datatype: int8}}", "n".repeat(100_000));
    let fields = field + &", *f".repeat(10_000);
    let fields = format!("source: 0, byteorder: little, shape: [1], datatype: [{fields}]");
    let fields = format!("!core/ndarray-1.1.0 {{{fields}}}");
    let reference = format!("{{$ref: '#{}'}}", "/a".repeat(2_000_000));
    let chunks = format!(
        "!core/chunked-ndarray-1.0.0 {{shape: [1], datatype: int8, chunks: [{{start: [0], ndarray: {reference}}}]}}"
    );
    for array in [fields, chunks] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let source = directory.path().join("names.asdf");
        fs::write(&source, file(format!("bad: {array}"), &[])).expect("names.asdf");
        let mount = mounted(&source);
        fs::metadata(mount.at("bad")).expect("its kind");
        assert!(fs::read(mount.at(".h5fs/assembled/bad")).is_err());
        keeps_its_promise(&mount, &source);
    }
}

/// A read of an element of four gigabytes needs only the memory of the returned bytes.
#[test]
fn a_virtual_element_of_four_gigabytes() {
    let giant = class_type(0x15, 0, u32::MAX, &[]);
    for parts in [0, 1] {
        let mut file = Hdf5::new();
        let layout = put_list(&mut file, same_parts(b"/part", &all(), &all(), parts));
        let (mount, _directory, source) = mounted_set(file, &[1], &giant, layout);
        let set = File::open(mount.at("set")).expect("a dataset");
        for offset in [4096, u64::from(u32::MAX) - (128 << 10)] {
            let mut bytes = vec![1; 128 << 10];
            set.read_exact_at(&mut bytes, offset).expect("zeros");
            assert!(bytes.iter().all(|&byte| byte == 0), "{parts} {offset}");
        }
        keeps_its_promise(&mount, &source);
    }
}

/// Returns a version 1 hyperslab of two-dimensional blocks, given by their corners.
fn blocks(corners: &[[u32; 4]]) -> Vec<u8> {
    let head = [2, 1, 0, 0, 2, u32::try_from(corners.len()).expect("few")];
    let numbers = head.into_iter().chain(corners.iter().flatten().copied());
    numbers.flat_map(u32::to_le_bytes).collect()
}

/// Selections of two columns. Each row has a run of one element, so a mapping has a million runs.
#[test]
fn virtual_parts_of_a_million_runs() {
    const ROWS: u32 = 1 << 19;
    let columns = blocks(&[[0, 0, ROWS - 1, 0], [0, 2, ROWS - 1, 2]]);
    let list = same_parts(b"/part", &columns, &columns, 20);
    let mut file = Hdf5::new();
    let layout = put_list(&mut file, list);
    let dims = [ROWS.into(), 4];
    let (mount, _directory, source) = mounted_set(file, &dims, &byte_type(), layout);
    assert!(fs::read(mount.at("set")).is_err());
    keeps_its_promise(&mount, &source);
}

/// A single column is one pattern of any length.
#[test]
fn virtual_parts_of_one_block() {
    const ROWS: u32 = 1 << 21;
    let column = |at| blocks(&[[0, at, ROWS - 1, at]]);
    let mut list = [vec![0], words(&[4])].concat();
    for at in 0..4 {
        list.extend([&b".\0/part\0"[..], &column(at), &column(3 - at)].concat());
    }
    let mut file = Hdf5::new();
    let layout = put_list(&mut file, list);
    let dims = [ROWS.into(), 4];
    let (mount, _directory, source) = mounted_set(file, &dims, &byte_type(), layout);
    assert_eq!(fs::read(mount.at("set")).expect("zeros"), vec![0; 4 << 21]);
    keeps_its_promise(&mount, &source);
}

/// All 65 536 mappings of a virtual dataset share the name of the first one, which has a megabyte.
#[test]
fn a_long_name_that_all_parts_share() {
    const PARTS: u64 = 65_536;
    let first = [&[0][..], &vec![b'n'; 1 << 20], b"\0x\0", &all(), &all()].concat();
    let other = [vec![3], words(&[0, 0]), all(), all()].concat();
    let list = [
        &[1][..],
        &words(&[PARTS]),
        &first,
        &other.repeat(PARTS as usize - 1),
    ]
    .concat();
    let mut file = Hdf5::new();
    let layout = put_list(&mut file, list);
    let (mount, _directory, source) = mounted_set(file, &[64], &byte_type(), layout);
    assert!(fs::read(mount.at("set")).is_err());
    keeps_its_promise(&mount, &source);
}

/// The maximum number of mappings: each with its own name, and all with the same name.
#[test]
fn as_many_virtual_parts_as_there_may_be() {
    const PARTS: u32 = 65_536;
    let one = same_parts(b"/part", &all(), &all(), PARTS as usize);
    let mut many = [vec![0], words(&[PARTS.into()])].concat();
    for i in 0..PARTS {
        many.extend([format!("{i}\0/part\0").as_bytes(), &all(), &all()].concat());
    }
    for list in [one, many] {
        let mut file = Hdf5::new();
        let layout = put_list(&mut file, list);
        let (mount, _directory, source) = mounted_set(file, &[1], &byte_type(), layout);
        assert_eq!(fs::metadata(mount.at("set")).expect("a dataset").len(), 1);
        keeps_its_promise(&mount, &source);
    }
}

/// Writes a file with virtual datasets `a`, `b`, … that have the maximum number of mappings.
fn large_sets(count: u8) -> (tempfile::TempDir, PathBuf) {
    const PARTS: usize = 65_536;
    let mut file = Hdf5::new();
    let one = regular(0, 1, 1, 1);
    let names: Vec<[u8; 1]> = (0..count).map(|i| [b'a' + i]).collect();
    let sets: Vec<u64> = (0..count)
        .map(|_| {
            let layout = put_list(&mut file, same_parts(b"/part", &one, &one, PARTS));
            file.put(&dataset(&[1], &byte_type(), layout, &[]))
        })
        .collect();
    let links: Vec<_> = names.iter().map(|name| &name[..]).zip(sets).collect();
    let root = file.put_group(&links);
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("sets.h5");
    fs::write(&source, file.rooted(root)).expect("sets.h5");
    (directory, source)
}

/// Virtual datasets that need 25 MiB each while they are described, each in its own thread.
#[test]
fn large_virtual_datasets_that_are_described_at_the_same_time() {
    const SETS: u8 = 8;
    let (_directory, source) = large_sets(SETS);
    let mount = Mount::with(&source, &["-o", "cache_size=1M,threads=8"]);
    std::thread::scope(|scope| {
        for name in b'a'..b'a' + SETS {
            let path = mount.at(std::str::from_utf8(&[name]).expect("a letter"));
            scope.spawn(move || assert_eq!(fs::metadata(path).expect("a dataset").len(), 1));
        }
    });
    keeps_its_promise(&mount, &source);
}

/// Virtual datasets that need 16 MiB each while they are open, more than the limit permits. The
/// datasets that were opened are readable. After one is closed, another can be opened.
pub(crate) fn many_large_virtual_datasets_that_are_open_at_once() {
    let (_directory, source) = large_sets(20);
    let names: Vec<[u8; 1]> = (b'a'..=b't').map(|name| [name]).collect();
    let mount = mounted(&source);
    let open = |name: &[u8]| File::open(mount.at(std::str::from_utf8(name).expect("a letter")));
    let opened: Vec<_> = names.iter().map(|name| open(name)).collect();
    let refused: Vec<_> = opened
        .iter()
        .filter_map(|open| open.as_ref().err())
        .collect();
    assert!(
        !refused.is_empty() && refused.len() < opened.len(),
        "{refused:?}"
    );
    for error in refused {
        assert_eq!(error.raw_os_error(), Some(nix::errno::Errno::ENOMEM as i32));
    }
    for open in opened.iter().flatten() {
        open.read_exact_at(&mut [0], 0).expect("zeros");
    }
    let (worker, _) = mount.worker_and_supervisor(&source);
    // The memory of small allocations is only estimated.
    let most = PROMISED + limits::OPEN_BYTES / 4 * 5;
    assert!(worker.peak() <= most, "{} bytes", worker.peak());
    drop(opened);
    for name in names {
        let open = || {
            open(&name)
                .and_then(|open| open.read_exact_at(&mut [0], 0))
                .is_ok()
        };
        eventually(MOUNT_LIMIT, "one can be opened", open);
    }
}

/// A list of mappings in an object of half a gigabyte, whose first bytes are one mapping.
#[test]
fn a_list_of_virtual_parts_without_end() {
    const BYTES: u64 = 512 << 20;
    let list = same_parts(b"/part", &all(), &all(), 1);
    let mut file = Hdf5::new();
    let heap = file.next();
    let layout = virtual_layout(heap + (1 << 20));
    let (mount, _directory, source) = {
        let set = file.put(&dataset(&[64], &byte_type(), layout, &[]));
        let root = file.put_group(&[(b"set", set)]);
        let directory = tempfile::tempdir().expect("temporary directory");
        let source = directory.path().join("set.h5");
        fs::write(&source, file.rooted(root)).expect("set.h5");
        let open = File::options().write(true).open(&source).expect("set.h5");
        open.write_all_at(
            &collection(32 + BYTES, &[(1, BYTES, &list)]),
            heap + (1 << 20),
        )
        .expect("a heap");
        open.set_len(heap + (1 << 20) + 32 + BYTES)
            .expect("a long file");
        (mounted(&source), directory, source)
    };
    assert!(fs::read(mount.at("set")).is_err());
    keeps_its_promise(&mount, &source);
}

/// Attributes of 7 and 200 MiB in a heap, and a string of 200 MiB to which one of them points.
#[test]
fn attributes_of_many_megabytes() {
    const LONG: u64 = 7 << 20;
    const TOO_LONG: u64 = 200 << 20;
    let text = |length: u64| class_type(0x13, 0, length as u32, &[]);
    let mut file = Hdf5::new();
    let string = class_type(0x19, 1, 16, &byte_type());
    // The file has a hole after the written part.
    let (hole, after) = (1 << 30, 2 << 30);
    let bodies = [
        attribute(b"long", &text(LONG), &[1], &vec![b'x'; LONG as usize]),
        attribute(
            b"pointer",
            &string,
            &[1],
            &pointer(TOO_LONG as u32, hole, 1),
        ),
        attribute(b"too long", &text(TOO_LONG), &[1], b""),
    ];
    let lengths = [
        bodies[0].len() as u64,
        bodies[1].len() as u64,
        TOO_LONG + 60,
    ];
    let places = [file.put(&bodies[0]), file.put(&bodies[1]), after];
    let huge: Vec<u8> = (0..3)
        .flat_map(|i| words(&[places[i], lengths[i], i as u64]))
        .collect();
    let mut tree = Btree2 {
        record_type: 1,
        node_size: 512,
        record_size: 24,
        depth: 0,
        root: 0,
        used: 3,
        total: 3,
    };
    tree.root = file.put(&tree.leaf(&huge));
    let tree = file.put(&tree.header());
    let heap = FractalHeap {
        huge: tree,
        ..FractalHeap::small(512, UNDEFINED)
    };
    let heap = file.put(&heap.header());
    let names: [&[u8]; 3] = [b"long", b"pointer", b"too long"];
    let records = (0..).zip(names).map(|(i, name)| {
        let id = [0x10, i, 0, 0, 0, 0, 0, 0];
        attribute_record(&id, i.into(), h5fs_reader::wire::checksum::lookup3(name))
    });
    let bytes = with_dense_attributes(file, heap, records.collect());
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("attributes.h5");
    fs::write(&source, bytes).expect("attributes.h5");
    let open = File::options()
        .write(true)
        .open(&source)
        .expect("attributes.h5");
    let pointed = collection(32 + TOO_LONG, &[(1, TOO_LONG, b"")]);
    open.write_all_at(&pointed, hole).expect("a heap");
    open.write_all_at(&bodies[2], after).expect("an attribute");
    open.set_len(after + lengths[2]).expect("a long file");
    let mount = mounted(&source);
    let mut all = Command::new("getfattr");
    run(all.arg("-d").arg(mount.at("bad")), MOUNT_LIMIT).success();
    let shown = mount.at(".h5fs/attrs/bad");
    let names = fs::read_dir(&shown)
        .expect("attributes")
        .map(|name| name.expect("a name"));
    let mut names: Vec<_> = names.map(|name| name.file_name()).collect();
    names.sort();
    assert_eq!(names, ["@long", "@pointer", "@too long"]);
    let long = fs::read(shown.join("@long")).expect("the text");
    assert_eq!(long.len() as u64, LONG + 1);
    for name in ["@pointer", "@too long"] {
        fs::read(shown.join(name)).expect_err("more than is shown");
    }
    keeps_its_promise(&mount, &source);
}

/// A region reference of 200 MiB, mostly a hole of the file.
#[test]
fn a_region_of_many_megabytes() {
    const BYTES: u64 = 200 << 20;
    let mut file = Hdf5::new();
    let hole = 1 << 30;
    let data = file.put(b"readable");
    let reference = attribute(
        b"region",
        &class_type(0x17, 1, 12, &[]),
        &[1],
        &pointer(0, hole, 1)[4..],
    );
    let reference = Message(kind::ATTRIBUTE, 0, reference);
    let set = file.put(&dataset(
        &[8],
        &byte_type(),
        contiguous(data, 8),
        &[reference],
    ));
    let root = file.put_group(&[(b"set", set)]);
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("region.h5");
    fs::write(&source, file.rooted(root)).expect("region.h5");
    let open = File::options()
        .write(true)
        .open(&source)
        .expect("region.h5");
    let region = [words(&[set]), all()].concat();
    open.write_all_at(&collection(32 + BYTES, &[(1, BYTES, &region)]), hole)
        .expect("a heap");
    open.set_len(hole + 32 + BYTES).expect("a long file");
    let mount = mounted(&source);
    let document = fs::read_to_string(mount.at(".h5fs/ndl.yaml")).expect("a document");
    assert!(document.contains("region"), "{document}");
    keeps_its_promise(&mount, &source);
}

/// Returns an ndarray in the first block of another file.
fn array_of(source: &str) -> String {
    format!(
        "!core/ndarray-1.1.0 {{source: '{source}', byteorder: little, datatype: uint8, shape: [0]}}"
    )
}

/// A file of 400 000 blocks. Arrays use its first block, each by another path to the same file.
/// Also chunks of an array that must be opened to determine their extent.
#[test]
fn one_neighbour_of_many_names() {
    const BLOCKS: usize = 400_000;
    const NAMES: usize = 20;
    let directory = tempfile::tempdir().expect("temporary directory");
    let block = [&b"\xd3BLK\0\x30\0\0\0\0"[..], &[0; 44]].concat();
    let blocks = file("a: 1", &[block.repeat(BLOCKS)]);
    fs::write(directory.path().join("blocks.asdf"), blocks).expect("blocks.asdf");
    let arrays = (0..NAMES).map(|i| array_of(&format!("{}blocks.asdf", "./".repeat(i))));
    let arrays: Vec<String> = arrays.collect();
    let entry = |(i, array): (usize, &String)| format!("e{i}: {array}\n");
    let entries: String = arrays.iter().enumerate().map(entry).collect();
    let chunk = |array: &String| {
        let array = array.replace("[0]", "['*']");
        format!("{{start: [0], ndarray: {array}}}")
    };
    let chunks: Vec<String> = arrays.iter().map(chunk).collect();
    let tree = format!(
        "{entries}all: !core/chunked-ndarray-1.0.0 {{shape: [1], datatype: uint8, chunks: [{}]}}",
        chunks.join(", ")
    );
    let source = directory.path().join("main.asdf");
    fs::write(&source, file(tree, &[])).expect("main.asdf");
    let mount = mounted(&source);
    for i in 0..NAMES {
        assert_eq!(fs::read(mount.at(&format!("e{i}"))).expect("nothing"), b"");
    }
    let _ = fs::metadata(mount.at(".h5fs/assembled/all"));
    keeps_its_promise(&mount, &source);
}

/// References to one file under sixteen names, each of which has its own tree.
#[test]
fn trees_of_many_neighbours() {
    const FILES: usize = 16;
    const NODES: usize = 100_000;
    let directory = tempfile::tempdir().expect("temporary directory");
    let one = directory.path().join("one.asdf");
    let nodes = format!("n: [{}end]", "xyz, ".repeat(NODES));
    fs::write(&one, file(nodes, &[])).expect("one.asdf");
    let mut references = String::new();
    for i in 0..FILES {
        let name = format!("one-{i}.asdf");
        fs::hard_link(&one, directory.path().join(&name)).expect(&name);
        references += &format!("r{i}: {{$ref: '{name}#/n'}}\n");
    }
    let source = directory.path().join("main.asdf");
    fs::write(&source, file(references, &[])).expect("main.asdf");
    let mount = mounted(&source);
    for i in 0..FILES {
        let value = fs::read(mount.at(&format!("r{i}/{NODES}"))).expect("the last");
        assert_eq!(value, b"end\n");
    }
    keeps_its_promise(&mount, &source);
}

/// Many groups in a group with a long name, and many objects with long names in one group.
#[test]
fn a_description_of_long_names() {
    const NAME: usize = 60_000;
    const OBJECTS: usize = 1500;
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("tree.asdf");
    let groups: String = (0..OBJECTS).map(|i| format!("  g{i}: {{}}\n")).collect();
    let tree = format!("? {}\n:\n{groups}", "n".repeat(NAME));
    fs::write(&source, file(tree, &[])).expect("tree.asdf");
    let mount = mounted(&source);
    let mut document = File::open(mount.at(".h5fs/ndl.yaml")).expect("a document");
    let bytes = std::io::copy(&mut document, &mut std::io::sink()).expect("all of it");
    assert!(bytes > (NAME * OBJECTS) as u64);
    keeps_its_promise(&mount, &source);

    let mut file = Hdf5::new();
    let child = file.put_bytes(b"child");
    let names = [&[0; 8][..], &[b'n'; NAME], &[0; 8]].concat();
    // Each name is a suffix of the next one.
    let root = old_group_of(&mut file, &names, OBJECTS, |i| {
        (8 + OBJECTS as u64 - i, child, 0)
    });
    let source = directory.path().join("group.h5");
    fs::write(&source, file.rooted(root)).expect("group.h5");
    let mount = mounted(&source);
    let document = fs::read(mount.at(".h5fs/ndl.yaml"));
    let bytes = document.map(|document| document.len());
    bytes.expect_err("too much to remember");
    keeps_its_promise(&mount, &source);
}

/// Arrays that share one list of elements in the tree. Each description needs its own copy.
#[test]
fn descriptions_of_one_list() {
    const ARRAYS: usize = 1500;
    const ELEMENTS: usize = 8100;
    let list = "1.5, ".repeat(ELEMENTS - 1);
    let array = |i| format!("x{i}: !core/ndarray-1.1.0 {{data: *d, datatype: float64}}\n");
    let arrays: String = (0..ARRAYS).map(array).collect();
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = directory.path().join("lists.asdf");
    fs::write(&source, file(format!("d: &d [{list}1.5]\n{arrays}"), &[])).expect("lists.asdf");
    let mount = mounted(&source);
    for i in 0..ARRAYS {
        let array = fs::metadata(mount.at(&format!("x{i}"))).expect("an array");
        assert_eq!(array.len(), 8 * ELEMENTS as u64);
    }
    keeps_its_promise(&mount, &source);
}

/// Returns a list of `count` items with an anchor each.
fn many_anchors(count: usize) -> String {
    (0..count).map(|i| format!("- &a{i} 1\n")).collect()
}

/// Names of trees with the maximum number of nodes or the longest text.
pub(crate) const LARGEST_TREES: [&str; 6] =
    ["lists", "mappings", "keys", "anchors", "literal", "quoted"];

fn largest_tree(name: &str) -> String {
    let nodes = limits::TREE_NODES - 64;
    let bytes = usize::try_from(limits::TREE_BYTES).expect("memory") - 256;
    let keys = || (0..nodes / 2).map(|i| format!("k{i}: 1, "));
    match name {
        "lists" => format!("[{}end]", "[x], ".repeat(nodes / 2)),
        "mappings" => format!("[{}end]", "{k: 1}, ".repeat(nodes / 3)),
        "keys" => format!("{{{}end: 1}}", keys().collect::<String>()),
        "anchors" => many_anchors(limits::TREE_ANCHORS),
        "literal" => format!("a: |\n{}", "  x\n".repeat(bytes / 4)),
        "quoted" => format!("a: '{}'", "x".repeat(bytes)),
        _ => panic!("no tree {name}"),
    }
}

#[test]
fn a_tree_of_the_most_keys_and_one_of_the_longest_text() {
    largest_trees(&["keys", "quoted"], 1);
}

/// Reads trees again after each change of the file.
pub(crate) fn largest_trees(names: &[&str], changes: u64) {
    for name in names {
        let directory = tempfile::tempdir().expect("temporary directory");
        let source = directory.path().join(name);
        fs::write(&source, file(largest_tree(name), &[])).expect("write");
        let mount = mounted(&source);
        for change in 0..=changes {
            let day = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * change);
            let changed = File::options().append(true).open(&source).expect("open");
            changed.set_modified(day).expect("set the time");
            drop(changed);
            let root = || fs::metadata(mount.at("")).and_then(|root| root.modified());
            eventually(MOUNT_LIMIT, name, || root().is_ok_and(|time| time == day));
            let first = fs::read_dir(mount.at("")).expect("listing").next();
            assert!(first.is_some_and(|first| first.is_ok()), "{name}");
        }
        keeps_its_promise(&mount, &source);
    }
}

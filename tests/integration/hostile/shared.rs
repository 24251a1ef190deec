//! Shared messages in the file's heaps, and one datatype that many datasets share.

use std::fs;

use super::hdf5::*;
use super::tree::*;
use super::values::{put_list, regular, same_parts};
use crate::harness::{MOUNT_LIMIT, Mount, run};

/// Returns the header of a shared message table with one index for these message types. Its heap is
/// at `heap`.
fn table(types: u16, heap: u64) -> Vec<u8> {
    let mut block = b"SMTB\0\0".to_vec();
    block.extend(types.to_le_bytes());
    block.extend([50, 0, 0, 0]); // minimum message size
    block.extend([50, 0, 40, 0, 1, 0]); // cutoffs, number of messages
    block.extend(words(&[UNDEFINED, heap]));
    sealed(block)
}

/// Returns a file whose heap of shared messages contains `content`. The datatype of the dataset
/// `bad` is the message `id` in this heap.
fn with_heap(types: u16, content: &[u8], id: &[u8]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let room = file.put(&[0; 512]);
    let heap = file.put(&FractalHeap::small(512, room).header());
    file.put_at(room, &direct_block(heap, 512, content));
    let table = file.put(&table(types, heap));
    let bad = file.put(&header_2(&[
        dataspace(&[8]),
        Message(kind::DATATYPE, 2, [&[3, 1], id].concat()),
        contiguous(96, 8),
    ]));
    finish(file, table, bad)
}

/// Returns the file with a superblock extension that refers to the table.
fn finish(mut file: Hdf5, table: u64, bad: u64) -> Vec<u8> {
    let good = file.put_bytes(b"goodness");
    let root = file.put_group(&[(b"bad", bad), (b"good", good)]);
    let leads = [vec![0], words(&[table]), vec![1]].concat();
    let extension = file.put(&header_2(&[Message(0x0f, 0, leads)]));
    let end = file.0.len() as u64;
    file.put_at(0, &superblock_2(2, 0, extension, end, root));
    file.0
}

const DATATYPES: u16 = 1 << kind::DATATYPE;

/// Returns the ID of the first message in the heap.
fn first(length: usize) -> Vec<u8> {
    heap_id(DIRECT_PREFIX, length as u64)
}

#[test]
fn a_heap_as_it_should_be() {
    let datatype = byte_type();
    let tree = good_is_good(with_heap(DATATYPES, &datatype, &first(datatype.len())));
    assert_eq!(tree.size("bad"), Ok(8));
    assert_eq!(tree.attribute("bad", "user.h5fs.dtype"), Ok("|u1".into()));
}

/// The shared message has another type than expected, so its bytes are invalid.
#[test]
fn messages_of_another_type() {
    let extent = extent(&[4]);
    bad_alone_is_bad(with_heap(DATATYPES, &extent, &first(extent.len())));
    // Another reference to a shared message, in place of a message.
    let record = [vec![3, 1], first(12)].concat();
    bad_alone_is_bad(with_heap(DATATYPES, &record, &first(record.len())));
    let datatype = byte_type();
    let spaces = 1 << kind::DATASPACE;
    bad_alone_is_bad(with_heap(spaces, &datatype, &first(datatype.len())));
    bad_alone_is_bad(with_heap(0, &datatype, &first(datatype.len())));
}

#[test]
fn ids_that_lie() {
    let datatype = byte_type();
    for id in [
        heap_id(1 << 31, 12),
        heap_id(DIRECT_PREFIX, 0),
        heap_id(DIRECT_PREFIX, 3),
        heap_id(DIRECT_PREFIX, 1 << 23),
        vec![0xff; 8],
        vec![0x10; 8],
    ] {
        bad_alone_is_bad(with_heap(DATATYPES, &datatype, &id));
    }
}

/// The heap's address is that of the table, of the dataset's header, or past the end of the file.
#[test]
fn heaps_that_are_none() {
    for heap in [0, 96, 1 << 60, UNDEFINED] {
        let mut file = Hdf5::new();
        let table = file.put(&table(DATATYPES, heap));
        let bad = file.put(&header_2(&[
            dataspace(&[8]),
            Message(kind::DATATYPE, 2, [vec![3, 1], first(12)].concat()),
            contiguous(96, 8),
        ]));
        bad_alone_is_bad(finish(file, table, bad));
    }
}

/// One committed datatype with 32 000 names in 64 KB, and two hundred datasets of this type. Each
/// parsed copy would need megabytes, but not all are cached.
#[test]
fn two_hundred_datasets_of_one_large_datatype() {
    const NAMES: u32 = 32_000;
    let names = vec![0; NAMES as usize]; // all names are empty
    let values = vec![7; NAMES as usize];
    let body = class_type(0x38, NAMES, 1, &[byte_type(), names, values].concat());
    let mut file = Hdf5::new();
    let large = file.put(&header_2(&[Message(kind::DATATYPE, 0, body)]));
    let leads = [vec![3, 2], words(&[large])].concat();
    let header = header_2(&[
        dataspace(&[8]),
        Message(kind::DATATYPE, 2, leads),
        contiguous(96, 8),
    ]);
    let links: Vec<Message> = (0..200)
        .map(|i| hard_link(format!("{i:04}").as_bytes(), file.put(&header)))
        .collect();
    let root = file.put(&group(&links));
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("types.h5");
    fs::write(&path, file.rooted(root)).expect("write");
    let mount = Mount::with(&path, &["-o", "cache_size=8M"]);
    let listed = std::process::Command::new("ls")
        .arg("-l")
        .arg(&mount.path)
        .stdout(std::process::Stdio::null())
        .status();
    assert!(listed.expect("ls").success());
    let content = run(
        std::process::Command::new("cat").arg(mount.at("0199")),
        MOUNT_LIMIT,
    );
    assert_eq!(content.success().stdout.len(), 8);
    let (worker, _) = mount.worker_and_supervisor(&path);
    assert!(worker.peak() <= (8 + 64) << 20, "{} bytes", worker.peak());
}

/// A virtual dataset that is its own growing source, and that is not cached because of its large
/// datatype. The datatype is an enumeration with this many names, which is shared because it
/// exceeds a header. Each mapping would parse it again.
#[test]
fn a_virtual_dataset_of_a_long_datatype_that_grows_with_itself() {
    const MEMBERS: u32 = 60_000;
    const HEAP: u64 = 1 << 20;
    let mut datatype = class_type(0x38, MEMBERS, 4, &class_type(0x10, 0, 4, &[0, 0, 32, 0]));
    datatype.extend((0..MEMBERS).flat_map(|i| format!("{i:05}\0").into_bytes()));
    datatype.extend((0..MEMBERS).flat_map(u32::to_le_bytes));
    let mut file = Hdf5::new();
    let room = file.put(&vec![0; HEAP as usize]);
    let mut header = FractalHeap::small(HEAP, room).header();
    header[10..14].copy_from_slice(&(HEAP as u32).to_le_bytes()); // length limit of objects
    header.truncate(header.len() - 4);
    let heap = file.put(&sealed(header));
    file.put_at(room, &direct_block(heap, HEAP, &datatype));
    let table = file.put(&table(DATATYPES, heap));
    let without_end = regular(0, 1, UNDEFINED, 1);
    let layout = put_list(
        &mut file,
        same_parts(b"/bad", &without_end, &without_end, 3),
    );
    let bad = file.put(&header_2(&[
        dataspace(&[8]),
        Message(
            kind::DATATYPE,
            2,
            [&[3, 1], &first(datatype.len())[..]].concat(),
        ),
        layout,
    ]));
    let tree = Tree::new(finish(file, table, bad));
    let error = soon(|| tree.content("bad")).expect_err("its own source");
    assert!(error.to_string().contains("virtual"), "{error}");
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
}

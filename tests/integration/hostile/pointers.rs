//! The cost of a request if elements point to one object, to many collections, or to other
//! datasets.

use h5fs_tree::{FileKind, OpenedHandle, Requests};

use super::answers::GOOD;
use super::hdf5::*;
use super::requests::{Timed, costs_little, many};
use super::tree::*;
use super::values::{all, put_list, regular, same_parts};

/// Returns a file with an attribute and a dataset whose elements all point to one long object.
fn pointers_to_one(datatype: &[u8], size: usize, object: &[u8], length: u32) -> Vec<u8> {
    let elements = many(60_000);
    let mut file = Hdf5::new();
    let all = 32 + object.len().next_multiple_of(8) as u64;
    let heap = file.put(&collection(all, &[(1, object.len() as u64, object)]));
    let pointer = pointer(length, heap, 1);
    let pointer = &pointer[pointer.len() - size..];
    let pointers = pointer.repeat(elements);
    let data = file.put(&pointers);
    let layout = contiguous(data, pointers.len() as u64);
    let in_header = elements / 300;
    let own = attribute(
        b"own",
        datatype,
        &[in_header as u64],
        &pointers[..in_header * size],
    );
    let own = Message(kind::ATTRIBUTE, 0, own);
    let bad = file.put(&dataset(&[elements as u64], datatype, layout, &[own]));
    file.beside_good(bad)
}

#[test]
fn sequences_that_share_their_bytes() {
    let megabyte = vec![b'v'; 1 << 20];
    let timed = costs_little(pointers_to_one(&sequence_type(), 16, &megabyte, 1 << 20));
    let size = many(60_000) << 20;
    let shared = format!("file of {size} bytes: [118, 118, 118, …]");
    timed.tree.answers(&[("bad", &shared), GOOD]);
}

/// Strings that share one object of 16 MiB without a NUL. The object is searched once.
#[test]
fn strings_that_share_their_bytes() {
    const LENGTH: u32 = 16 << 20;
    let elements = many(60_000);
    let mut file = Hdf5::new();
    let text = vec![b't'; LENGTH as usize];
    let object = (1, u64::from(LENGTH), &text[..]);
    let heap = file.put(&collection(32 + u64::from(LENGTH), &[object]));
    let pointers = pointer(LENGTH, heap, 1).repeat(elements);
    let size = elements * (LENGTH as usize + 1);
    let lines = format!("file of {size} bytes: [116, 116, 116, …]");
    let tree = is_read_for_little(of_pointers(file, &string_type(), &pointers), &lines);
    let end = tree.part("bad", size as u64 - 2, 10);
    assert_eq!(end, Ok(b"t\n".to_vec()));
}

/// Strings that point to one object. All their lengths differ from the length of the object.
#[test]
fn strings_that_share_an_object_of_another_length() {
    const LENGTH: u32 = 16 << 20;
    let mut file = Hdf5::new();
    let text = vec![b't'; LENGTH as usize];
    let object = (1, u64::from(LENGTH), &text[..]);
    let heap = file.put(&collection(32 + u64::from(LENGTH), &[object]));
    let pointers: Vec<u8> = (1..many(60_000) as u32)
        .flat_map(|i| pointer(LENGTH - i, heap, 1))
        .collect();
    // No string has the length of its object.
    let refused = "file of 0 bytes: [error: global heap object: its length differs from its \
                   element*";
    is_read_for_little(of_pointers(file, &string_type(), &pointers), refused);
}

/// Returns a file with a dataset of these elements.
fn of_pointers(mut file: Hdf5, datatype: &[u8], pointers: &[u8]) -> Vec<u8> {
    let data = file.put(pointers);
    let layout = contiguous(data, pointers.len() as u64);
    let elements = pointers.len() as u64 / 16;
    let bad = file.put(&dataset(&[elements], datatype, layout, &[]));
    file.beside_good(bad)
}

/// Checks that all requests and a read of `bad` cost little, and that `bad` has this response.
#[track_caller]
fn is_read_for_little(bytes: Vec<u8>, answer: &str) -> Tree {
    let mut timed = costs_little(bytes);
    timed.tree.answers(&[("bad", answer), GOOD]);
    let bad = timed.tree.0.resolve(b"bad").expect("bad").ino;
    if let Some(OpenedHandle { handle, .. }) = timed.time("open", "bad", |fs| fs.open_file(bad)) {
        for offset in [0, 20_000] {
            timed.time("read", "bad", |fs| fs.read(handle, offset, 128 << 10));
        }
        timed.tree.0.release(handle);
    }
    timed.tree
}

/// Elements that point to collections with the maximum number of objects. Each element points to
/// another collection than the element before.
#[test]
fn large_collections_by_turns() {
    const OBJECTS: u16 = u16::MAX;
    let mut file = Hdf5::new();
    let objects: Vec<_> = (1..=OBJECTS).map(|index| (index, 1, &b"b"[..])).collect();
    let collection = collection(16 + 24 * u64::from(OBJECTS), &objects);
    let collections: Vec<u64> = (0..5).map(|_| file.put(&collection)).collect();
    let pointers: Vec<u8> = (0..many(60_000))
        .flat_map(|i| pointer(1, collections[i % collections.len()], OBJECTS.into()))
        .collect();
    let elements = many(60_000);
    let sequences = format!("file of {elements} bytes: [98, 98, 98, …]");
    let lines = format!("file of {} bytes: [98, 10, 98, …]", 2 * elements);
    for (datatype, answer) in [(sequence_type(), sequences), (string_type(), lines)] {
        is_read_for_little(of_pointers(file.clone(), &datatype, &pointers), &answer);
    }
}

/// Returns a file whose elements each point to their own collection. Each collection starts inside
/// an object of the previous one and contains all later ones.
fn nested_collections(collections: u16) -> Vec<u8> {
    let size = 32 * u64::from(collections) + 32;
    let mut file = Hdf5::new();
    let mut nested = Vec::new();
    for number in 0..collections {
        let rest = size - nested.len() as u64;
        nested.extend(collection(rest, &[(number + 1, 16, b"")]));
    }
    nested.resize(size as usize, 0);
    let first = file.put(&nested);
    let pointers: Vec<u8> = (0..collections)
        .flat_map(|number| pointer(16, first + 32 * u64::from(number), u32::from(number) + 1))
        .collect();
    of_pointers(file, &string_type(), &pointers)
}

/// The search for the objects of all collections reads at most 16 KiB for each element, and 16 KiB
/// for each of 4096 more.
#[test]
fn collections_within_each_other() {
    // Each object begins with the header of the next collection, up to a NUL. The last is empty.
    let lines = [b"GCOL\x01\n".repeat(999), b"\n".to_vec()].concat();
    let few = is_read_for_little(
        nested_collections(1000),
        "file of 5995 bytes: [71, 67, 79, …]",
    );
    assert_eq!(few.content("bad"), Ok(lines));
    let many = costs_little(nested_collections(10_000));
    // 16 KiB × (10 000 + 4096)
    let refused = "error: metadata read for one object is over the limit of 230948864";
    let answer = format!("file of 0 bytes: [{refused}]");
    many.tree.answers(&[("bad", &answer), GOOD]);
}

/// The maximum number of elements, none of which is stored.
#[test]
fn pointers_that_are_not_stored() {
    let lines = "file of 268435456 bytes: [10, 10, 10, …]";
    for (datatype, answer) in [
        (sequence_type(), "file of 0 bytes: []"),
        (string_type(), lines),
    ] {
        for layout in [chunked(UNDEFINED, &[4096, 16]), contiguous(UNDEFINED, 0)] {
            let mut file = Hdf5::new();
            let bad = file.put(&dataset(&[1 << 28], &datatype, layout, &[]));
            is_read_for_little(file.beside_good(bad), answer);
        }
    }
}

/// References to a region with so many blocks that a single read takes a while.
#[test]
fn references_that_share_their_region() {
    let blocks = many(1_000_000) as u32;
    let mut region = words(&[96]);
    for word in [2, 1, 0, 8 + 8 * blocks, 1, blocks] {
        region.extend(word.to_le_bytes());
    }
    region.extend(
        (0..blocks)
            .flat_map(|i| [2 * i, 2 * i].map(u32::to_le_bytes))
            .flatten(),
    );
    let datatype = class_type(0x17, 1, 12, &[]);
    let timed = costs_little(pointers_to_one(&datatype, 12, &region, 0));
    let stored = format!("file of {} bytes: [96, 0, 0, …]", 12 * many(60_000));
    timed.tree.answers(&[("bad", &stored), GOOD]);
    assert_eq!(timed.tree.attributes_line("bad"), "user.own");
    // The references point to addresses without an object.
    let paths = vec![r#""@0x60""#; many(60_000) / 300].join(", ");
    let value = timed.tree.attribute("bad", "user.own");
    assert_eq!(value, Ok(format!("[{paths}]")));
}

/// Puts a virtual dataset whose mappings each grow with one of these sources.
fn growing_with(file: &mut Hdf5, sources: &[String]) -> u64 {
    let without_end = regular(0, 1, UNDEFINED, 1);
    let mut list = [vec![0], words(&[sources.len() as u64])].concat();
    for source in sources {
        list.extend([b".\0", source.as_bytes(), &[0], &without_end, &without_end].concat());
    }
    let layout = put_list(file, list);
    file.put(&dataset(&[1], &byte_type(), layout, &[]))
}

/// Mappings that grow with a virtual dataset that is too large for the cache: under one name, and
/// under many names.
#[test]
fn virtual_parts_that_grow_with_thousands() {
    let slashes = |i: usize| format!("{}large", "/".repeat(1 + i));
    for sources in [vec![slashes(0); 2000], (0..200).map(slashes).collect()] {
        let mut file = Hdf5::new();
        let layout = put_list(&mut file, same_parts(b"/good", &all(), &all(), 25_000));
        let large = file.put(&dataset(&[8], &byte_type(), layout, &[]));
        let grows = growing_with(&mut file, &sources);
        let good = file.put_bytes(b"goodness");
        let root = file.put_group(&[(b"grows", grows), (b"good", good), (b"large", large)]);
        let timed = costs_little(file.rooted(root));
        let over = "file of 8 bytes: [error: overlapping parts of a virtual dataset*";
        timed
            .tree
            .answers(&[("grows", over), ("large", over), GOOD]);
    }
}

/// Measures requests for a virtual dataset whose parts grow with this number of missing sources. The
/// search for them uses a group with so many links that it is not cached.
fn growing_with_nothing(sources: usize) -> Timed {
    let mut file = Hdf5::new();
    let link = |i: usize| hard_link(format!("{i:060}").as_bytes(), UNDEFINED);
    let links: Vec<Message> = (0..30_000).map(link).collect();
    let block = continuation_2(&links);
    let links = file.put(&block);
    let crowd = file.put(&group(&[continuation(links, block.len() as u64)]));
    let absent: Vec<String> = (0..sources).map(|i| format!("/crowd/absent {i}")).collect();
    let grows = growing_with(&mut file, &absent);
    let root = file.put_group(&[(b"crowd", crowd), (b"grows", grows)]);
    let mut timed = Timed {
        tree: Tree::new(file.rooted(root)),
    };
    let root = timed.tree.0.root();
    let found = timed.time("lookup", "grows", |fs| fs.lookup(root, b"grows"));
    timed.object(found.expect("a dataset").ino, FileKind::File, "grows");
    timed
}

/// Each search parses the group. All searches of one dataset share a limit of parsed bytes.
#[test]
fn virtual_parts_that_grow_with_nothing() {
    let most = h5fs_reader::limits::VIRTUAL_WORK;
    let refused = format!(
        "file of 1 bytes: [error: bytes of large objects parsed for one virtual dataset is over the \
         limit of {most}]"
    );
    let many = growing_with_nothing(2000).tree;
    many.answers(&[("grows", &refused)]);
}

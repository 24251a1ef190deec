//! Attributes, global heaps, variable-length elements, virtual datasets.

use std::time::Duration;

use h5fs_tree::Requests;
use nix::errno::Errno;

use super::hdf5::*;
use super::processor::within;
use super::requests::old_group_in_nodes;
use super::tree::*;

/// Returns a file with a dataset whose only element is this sequence of bytes. The collection is at
/// 96.
fn one_sequence(collection: &[u8], element: &[u8]) -> Vec<u8> {
    let mut file = Hdf5::new();
    assert_eq!(file.put(collection), 96);
    let data = file.put(element);
    let bad = file.put(&dataset(&[1], &sequence_type(), contiguous(data, 16), &[]));
    file.beside_good(bad)
}

fn sound_collection() -> Vec<u8> {
    collection(16 + 16 + 8, &[(1, 5, b"bytes")])
}

#[test]
fn sequences_as_they_should_be() {
    let tree = good_is_good(one_sequence(&sound_collection(), &pointer(5, 96, 1)));
    assert_eq!(tree.content("bad"), Ok(b"bytes".to_vec()));
}

#[test]
fn elements_that_point_nowhere() {
    let bad = |element: &[u8]| bad_alone_is_bad(one_sequence(&sound_collection(), element));
    bad(&pointer(u32::MAX, 96, 1));
    bad(&pointer(6, 96, 1));
    bad(&pointer(5, 96, 2));
    bad(&pointer(5, 96, u32::MAX));
    bad(&pointer(5, 1 << 60, 1));
    bad(&pointer(5, UNDEFINED - 1, 1));
    bad(&pointer(5, 8, 1)); // not a collection
}

/// An element and its object contain the same length. If they differ, either may be damaged.
#[test]
fn elements_of_other_lengths_than_their_objects() {
    for (length, size) in [(1, 5), (4, 5), (5, 4), (5, 6), (5, 8)] {
        let collection = collection(16 + 16 + 8, &[(1, size, b"bytes")]);
        bad_alone_is_bad(one_sequence(&collection, &pointer(length, 96, 1)));
    }
}

/// Two objects have the same number, so neither is used.
#[test]
fn two_objects_of_one_number() {
    let objects: [(u16, u64, &[u8]); 3] = [(1, 5, b"bytes"), (2, 5, b"other"), (1, 5, b"third")];
    let heap = collection(16 + 3 * 24, &objects);
    let mut file = Hdf5::new();
    let at = file.put(&heap);
    let data = file.put(&[pointer(5, at, 1), pointer(5, at, 2)].concat());
    let layout = contiguous(data, 32);
    let bad = file.put(&dataset(&[2], &sequence_type(), layout, &[]));
    let tree = good_is_good(file.beside_good(bad));
    assert_eq!(errno_of(tree.part("bad", 0, 5)), Errno::EIO);
    assert_eq!(tree.part("bad", 5, 5), Ok(b"other".to_vec()));
}

#[test]
fn collections_that_lie() {
    let bad = |collection: Vec<u8>| bad_alone_is_bad(one_sequence(&collection, &pointer(5, 96, 1)));
    bad(collection(u64::MAX, &[(1, 5, b"bytes")]));
    bad(collection(0, &[(1, 5, b"bytes")]));
    bad(collection(20, &[(1, 5, b"bytes")]));
    bad(collection(40, &[(1, u64::MAX, b"bytes")]));
    bad(collection(40, &[(1, 1 << 32, b"bytes")]));
    // Empty objects up to the end, but not the one that is searched.
    bad(collection(16 + 16 * 4000, &[(7, 0, &b""[..]); 4000]));
    let mut version = sound_collection();
    version[4] = 9;
    bad(version);
}

/// A hundred thousand elements point to the same megabyte, so a file of 3 MB has 100 GB of content.
/// Its size is known at once, and the cost of a read depends only on its length.
#[test]
fn a_hundred_thousand_elements_to_one_object() {
    const ELEMENTS: u64 = 100_000;
    let megabyte = vec![b'v'; 1 << 20];
    let mut file = Hdf5::new();
    let heap = file.put(&collection(16 + 16 + (1 << 20), &[(1, 1 << 20, &megabyte)]));
    let data = file.put(&pointer(1 << 20, heap, 1).repeat(ELEMENTS as usize));
    let size = 16 * ELEMENTS;
    let bad = file.put(&dataset(
        &[ELEMENTS],
        &sequence_type(),
        contiguous(data, size),
        &[],
    ));
    let tree = Tree::new(file.beside_good(bad));
    assert_eq!(soon(|| tree.size("bad")), Ok(ELEMENTS << 20));
    let part = soon(|| tree.part("bad", (ELEMENTS / 2) << 20, 3 << 20));
    assert_eq!(part.map(|bytes| bytes.len()), Ok(3 << 20));
    // The views cost little too, because their texts are counted only up to a limit.
    let most = Duration::from_secs(300);
    within(most, || {
        super::visit::walk(&tree.0, super::visit::Bounds::SMALL)
    });
}

/// Returns a file with a dataset that has these attributes in its header.
fn attributes(attributes: Vec<Vec<u8>>) -> Vec<u8> {
    let messages = attributes
        .into_iter()
        .map(|body| Message(kind::ATTRIBUTE, 0, body));
    with_bad_dataset(messages.collect())
}

#[test]
fn attributes_that_lie_are_alone_in_it() {
    let sound = attribute(b"sound", &byte_type(), &[2], b"\x01\x02");
    let mut huge = attribute(b"huge", &byte_type(), &[1 << 60], b"x");
    let lying = [
        attribute(b"short", &byte_type(), &[100], b"x"),
        attribute(
            b"over",
            &class_type(0x10, 0, 8, &[0, 0, 64, 0]),
            &[1 << 61],
            b"x",
        ),
        attribute(b"type", &[], &[1], b"x"),
        attribute(b"", &byte_type(), &[1], b"x"),
        attribute(b"sound", &byte_type(), &[1], b"x"),
        attribute(b"n\xff\xfe", &byte_type(), &[1], b"x"),
        attribute(b"slash/..", &byte_type(), &[1], b"x"),
        attribute(b"n\0ul", &byte_type(), &[1], b"x"),
        attribute(b"\0", &byte_type(), &[1], b"x"),
        attribute(&[b'l'; 60_000], &byte_type(), &[1], b"x"),
        attribute(b"h5fs.path", &byte_type(), &[1], b"x"),
        vec![3],
        vec![9; 40],
        std::mem::take(&mut huge),
    ];
    for lie in lying {
        let tree = good_is_good(attributes(vec![sound.clone(), lie]));
        assert_eq!(tree.content("bad"), Ok(vec![7; 64]));
        let value = tree.attribute("bad", "user.sound");
        assert_eq!(value, Ok("[1, 2]".to_owned()));
        let path = tree.attribute("bad", "user.h5fs.path");
        assert_eq!(path, Ok("/bad".to_owned()));
        let are_names = |names: &[Vec<u8>], sound: &[u8]| {
            let mut different = names.iter().enumerate();
            names.contains(&sound.to_vec())
                && different.all(|(i, name)| !name.contains(&0) && !names[..i].contains(name))
        };
        let (files, _) = tree.listing(".h5fs/attrs/bad");
        assert!(are_names(&files, b"@sound"), "{files:?}");
        // An unreadable attribute may end the list with an error.
        match tree.0.listxattr(tree.0.resolve(b"bad").unwrap().ino) {
            Ok(names) => assert!(are_names(&names, b"user.sound"), "{names:?}"),
            Err(error) => assert!(error.to_string().starts_with("attribute"), "{error}"),
        }
    }
}

/// Puts a heap with these objects, whose lengths have two bytes in heap IDs. Returns its address.
pub(super) fn heap_of(file: &mut Hdf5, objects: &[u8]) -> u64 {
    put_heap(file, objects, FractalHeap::small(0, 0).longest)
}

/// Puts a heap with these objects, whose lengths have three bytes in heap IDs. Returns its address.
pub(super) fn heap_of_long_objects(file: &mut Hdf5, objects: &[u8]) -> u64 {
    assert!(objects.len() > 1 << 17, "a small block has short lengths");
    put_heap(file, objects, 1 << 20)
}

fn put_heap(file: &mut Hdf5, objects: &[u8], longest: u32) -> u64 {
    let size = (objects.len() as u64 + DIRECT_PREFIX).next_power_of_two();
    let heap = file.next();
    let header = |root| {
        let heap = FractalHeap::small(size, root);
        FractalHeap { longest, ..heap }.header()
    };
    let block = (heap + header(0).len() as u64).next_multiple_of(8);
    file.put(&header(block));
    assert_eq!(file.put(&direct_block(heap, size, objects)), block);
    heap
}

/// Returns the file with a dataset `bad` that contains `readable` and has attributes in this heap.
/// The records are sorted by hash.
pub(super) fn with_dense_attributes(
    mut file: Hdf5,
    heap: u64,
    mut records: Vec<(u32, Vec<u8>)>,
) -> Vec<u8> {
    records.sort_by_key(|(hash, _)| *hash);
    let mut tree = Btree2 {
        record_type: 8,
        node_size: 2 << 20,
        record_size: 17,
        depth: 0,
        root: 0,
        used: u16::try_from(records.len()).expect("so many"),
        total: records.len() as u64,
    };
    let records: Vec<u8> = records.into_iter().flat_map(|(_, record)| record).collect();
    tree.root = file.put(&tree.leaf(&records));
    let tree = file.put(&tree.header());
    let info = Message(
        kind::ATTRIBUTE_INFO,
        0,
        [vec![0, 0], words(&[heap, tree])].concat(),
    );
    let data = file.put(b"readable");
    let bad = file.put(&dataset(&[8], &byte_type(), contiguous(data, 8), &[info]));
    file.beside_good(bad)
}

/// Returns the record of an attribute: heap ID, creation order, hash of the name.
pub(super) fn attribute_record(id: &[u8], order: u32, hash: u32) -> (u32, Vec<u8>) {
    (
        hash,
        [id, &[0], &order.to_le_bytes(), &hash.to_le_bytes()].concat(),
    )
}

/// The maximum number of attributes of a node, in a heap. The kernel's limit applies to their list.
#[test]
fn sixty_five_thousand_attributes() {
    let mut objects = Vec::new();
    let mut records = Vec::new();
    for i in 0..65_535_u32 {
        let name = format!("a{i:05}");
        let body = attribute(name.as_bytes(), &byte_type(), &[], &i.to_le_bytes()[..1]);
        let id = heap_id(DIRECT_PREFIX + objects.len() as u64, body.len() as u64);
        let hash = h5fs_reader::wire::checksum::lookup3(name.as_bytes());
        records.push(attribute_record(&id, i, hash));
        objects.extend(body);
    }
    let mut file = Hdf5::new();
    let heap = heap_of(&mut file, &objects);
    let tree = Tree::new(with_dense_attributes(file, heap, records));
    let ino = tree.0.resolve(b"bad").unwrap().ino;
    let listed = soon(|| tree.0.listxattr(ino)).expect("a list");
    let bytes: usize = listed.iter().map(|name| name.len() + 1).sum();
    assert!(
        bytes <= 65_536 && listed.len() > 4000,
        "{} names of {bytes} bytes",
        listed.len()
    );
    assert_eq!(
        soon(|| tree.attribute("bad", "user.a65000")),
        Ok("232".to_owned())
    );
    assert_eq!(tree.content("bad"), Ok(b"readable".to_vec()));
}

/// An attribute whose index record has a wrong hash is an error. It must not be listed if it cannot
/// be found.
#[test]
fn an_attribute_under_a_wrong_hash() {
    let hash = h5fs_reader::wire::checksum::lookup3(b"one");
    for (hash, found) in [(hash, true), (hash + 1, false)] {
        let body = attribute(b"one", &byte_type(), &[], &[1]);
        let mut file = Hdf5::new();
        let heap = heap_of(&mut file, &body);
        let id = heap_id(DIRECT_PREFIX, body.len() as u64);
        let records = vec![attribute_record(&id, 0, hash)];
        let tree = good_is_good(with_dense_attributes(file, heap, records));
        let listed = tree.0.listxattr(tree.0.resolve(b"bad").unwrap().ino);
        if found {
            assert!(listed.expect("a list").contains(&b"user.one".to_vec()));
        } else {
            assert_eq!(errno_of(listed), Errno::EIO);
        }
        assert_eq!(tree.attribute("bad", "user.one").is_ok(), found);
    }
}

/// Many records of one attribute of four megabytes. A list that copied each would need a quarter of
/// a terabyte.
#[test]
fn sixty_five_thousand_times_one_attribute() {
    let body = attribute(b"one", &byte_type(), &[4 << 20], &vec![1; 4 << 20]);
    let mut file = Hdf5::new();
    let heap = heap_of_long_objects(&mut file, &body);
    let id = heap_id(DIRECT_PREFIX, body.len() as u64);
    let hash = h5fs_reader::wire::checksum::lookup3(b"one");
    let records = (0..65_535)
        .map(|i| attribute_record(&id, i, hash))
        .collect();
    let tree = Tree::new(with_dense_attributes(file, heap, records));
    let overlap = "fractal heap: its objects overlap";
    let attributes = soon(|| tree.attributes_line("bad"));
    assert!(
        attributes.starts_with(&format!("error: {overlap}")),
        "{attributes}"
    );
    let (names, outcome) = soon(|| tree.listing(".h5fs/attrs/bad"));
    assert_eq!(names, [b"@one"]);
    assert!(outcome.is_err_and(|error| error.to_string().starts_with(overlap)));
    assert_eq!(tree.content("bad"), Ok(b"readable".to_vec()));
}

/// The same with unreadable links, so that no response is ever full.
#[test]
fn sixty_five_thousand_times_no_link() {
    let mut file = Hdf5::new();
    let heap = heap_of(&mut file, &vec![0xff; 60_000]);
    let id = heap_id(DIRECT_PREFIX, 60_000);
    let records: Vec<u8> = (0..65_535_u32)
        .flat_map(|i| [&i.to_le_bytes()[..], &id[..7]].concat())
        .collect();
    let mut tree = Btree2 {
        record_type: 5,
        node_size: 2 << 20,
        record_size: 11,
        depth: 0,
        root: 0,
        used: 65_535,
        total: 65_535,
    };
    tree.root = file.put(&tree.leaf(&records));
    let tree = file.put(&tree.header());
    let bad = file.put(&dense_group(heap, tree));
    let tree = Tree::new(file.beside_good(bad));
    let (names, outcome) = soon(|| tree.listing("bad"));
    assert_eq!(names, Vec::<Vec<u8>>::new());
    let overlap = "fractal heap: its objects overlap";
    assert!(outcome.is_err_and(|error| error.to_string().starts_with(overlap)));
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
}

/// If it is unknown whether there are attributes in a heap, the others must not be listed as if
/// they were complete.
#[test]
fn heaps_of_attributes_without_an_index_of_names() {
    for (flags, heap, index) in [
        (0, SOME, UNDEFINED),
        (0, UNDEFINED, SOME),
        (4, UNDEFINED, UNDEFINED),
    ] {
        let info = [vec![0, flags], words(&[heap, index])].concat();
        let info = Message(kind::ATTRIBUTE_INFO, 0, info);
        let tree = good_is_good(with_bad_dataset(vec![info]));
        assert_eq!(tree.content("bad"), Ok(vec![7; 64]));
        let (_, end) = tree.listing(".h5fs/attrs/bad");
        end.expect_err("attributes that cannot be listed");
    }
}

/// A name ends with its last byte. An earlier NUL means that the length of the name is damaged.
#[test]
fn names_of_attributes_of_other_lengths() {
    let named = |size: u16| {
        let mut body = attribute(b"name", &byte_type(), &[1], b"x");
        body[2..4].copy_from_slice(&size.to_le_bytes());
        body
    };
    let names = |body: Vec<u8>| good_is_good(attributes(vec![body])).listing(".h5fs/attrs/bad");
    assert_eq!(names(named(5)), (vec![b"@name".to_vec()], Ok(())));
    assert_eq!(names(named(4)).0, [b"@nam"]);
    let (none, end) = names(named(6));
    assert!(none.is_empty() && end.is_err());
}

#[test]
fn dense_attributes_that_lie() {
    for (heap, tree) in [(1 << 60, 96), (96, 1 << 60), (96, 96), (8, UNDEFINED - 1)] {
        let info = Message(
            kind::ATTRIBUTE_INFO,
            0,
            [vec![0, 0], words(&[heap, tree])].concat(),
        );
        let tree = good_is_good(with_bad_dataset(vec![info]));
        assert_eq!(tree.content("bad"), Ok(vec![7; 64]));
    }
    let info = Message(kind::ATTRIBUTE_INFO, 0, vec![9]);
    let tree = good_is_good(with_bad_dataset(vec![info]));
    assert_eq!(tree.content("bad"), Ok(vec![7; 64]));
}

/// The index of the creation order belongs to another object, is missing, or lacks the names of the
/// name index. Only the name index counts.
#[test]
fn creation_orders_that_lie() {
    const CREATION_ORDER_INDEXED: u8 = 2;
    let names = [b"one", b"two"];
    let mut file = Hdf5::new();
    let bodies = names.map(|name| attribute(name, &byte_type(), &[], b"\x07"));
    let heap = heap_of(&mut file, &bodies.concat());
    let mut at = DIRECT_PREFIX;
    let mut records: Vec<(u32, Vec<u8>)> = Vec::new();
    for (name, body) in names.iter().zip(&bodies) {
        let hash = h5fs_reader::wire::checksum::lookup3(*name);
        // Both records have creation order 0.
        records.push(attribute_record(&heap_id(at, body.len() as u64), 0, hash));
        at += body.len() as u64;
    }
    records.sort_by_key(|(hash, _)| *hash);
    let index = |record_type, record_size, records: &[Vec<u8>], file: &mut Hdf5| {
        let mut tree = Btree2 {
            record_type,
            node_size: 512,
            record_size,
            depth: 0,
            root: UNDEFINED,
            used: records.len() as u16,
            total: records.len() as u64,
        };
        if !records.is_empty() {
            tree.root = file.put(&tree.leaf(&records.concat()));
        }
        file.put(&tree.header())
    };
    let records: Vec<Vec<u8>> = records.into_iter().map(|(_, record)| record).collect();
    let by_name = index(8, 17, &records, &mut file);
    let empty = index(9, 13, &[], &mut file);
    for by_order in [by_name, empty, heap, 0, 1 << 60, UNDEFINED] {
        let mut file = file.clone();
        let info = [
            vec![0, CREATION_ORDER_INDEXED],
            words(&[heap, by_name, by_order]),
        ];
        let data = file.put(b"readable");
        let info = Message(kind::ATTRIBUTE_INFO, 0, info.concat());
        let bad = file.put(&dataset(&[8], &byte_type(), contiguous(data, 8), &[info]));
        let tree = good_is_good(file.beside_good(bad));
        for name in ["user.one", "user.two"] {
            assert_eq!(tree.attribute("bad", name), Ok("7".to_owned()));
        }
        let listed = tree.0.listxattr(tree.0.resolve(b"bad").unwrap().ino);
        let listed = listed.expect("a list");
        for name in [b"user.one", b"user.two"] {
            assert_eq!(listed.iter().filter(|own| &own[..] == name).count(), 1);
        }
    }
}

/// Returns a selection of everything.
pub(super) fn all() -> Vec<u8> {
    [3_u32, 1, 0, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

pub(super) fn regular(start: u64, stride: u64, count: u64, block: u64) -> Vec<u8> {
    let mut body: Vec<u8> = [2_u32, 2]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    body.push(1); // flag: regular
    body.extend(40_u32.to_le_bytes());
    body.extend(1_u32.to_le_bytes());
    body.extend(words(&[start, stride, count, block]));
    body
}

/// A mapping of a virtual dataset: file, dataset, source, target.
type Part<'a> = (&'a [u8], &'a [u8], Vec<u8>, Vec<u8>);

/// Returns a file with a virtual dataset of 64 bytes. `parts` are its mappings, and `count` is the
/// field with their number.
fn virtual_of(parts: &[Part<'_>], count: u64) -> Vec<u8> {
    let mut list = [vec![0], words(&[count])].concat();
    for (file, dataset, source, target) in parts {
        list.extend([*file, &[0], dataset, &[0], source, target].concat());
    }
    let mut file = Hdf5::new();
    let layout = put_list(&mut file, list);
    let bad = file.put(&dataset(&[64], &byte_type(), layout, &[]));
    file.beside_good(bad)
}

/// Puts the list of a virtual dataset's mappings in a heap and adds its checksum. Returns the
/// layout that refers to it.
pub(super) fn put_list(file: &mut Hdf5, list: Vec<u8>) -> Message {
    let list = sealed(list);
    let size = 16 + 16 + list.len().next_multiple_of(8) as u64;
    let heap = file.put(&collection(size, &[(1, list.len() as u64, &list)]));
    virtual_layout(heap)
}

/// Returns the layout of a virtual dataset whose list is the first object of a collection.
pub(super) fn virtual_layout(collection: u64) -> Message {
    let layout = [vec![4, 3], words(&[collection]), vec![1, 0, 0, 0]].concat();
    Message(kind::LAYOUT, 0, layout)
}

/// Returns a list that repeats one mapping `count` times, without its checksum.
pub(super) fn same_parts(path: &[u8], source: &[u8], target: &[u8], count: usize) -> Vec<u8> {
    let part = [b".\0", path, &[0], source, target].concat();
    [vec![0], words(&[count as u64]), part.repeat(count)].concat()
}

#[test]
fn virtual_datasets_that_are_their_own_source() {
    bad_alone_is_bad(virtual_of(&[(b".", b"/bad", all(), all())], 1));
}

#[test]
fn virtual_datasets_of_good_parts() {
    let part = (&b"."[..], &b"/good"[..], all(), regular(0, 8, 1, 8));
    let tree = good_is_good(virtual_of(&[part], 1));
    assert_eq!(tree.part("bad", 0, 8), Ok(b"goodness".to_vec()));
    assert_eq!(tree.part("bad", 8, 56), Ok(vec![0; 56]));
}

#[test]
fn virtual_datasets_that_lie() {
    let part = |source: Vec<u8>, target: Vec<u8>| vec![(&b"."[..], &b"/good"[..], source, target)];
    let bad = |parts: &[Part<'_>], count| {
        let tree = Tree::new(virtual_of(parts, count));
        assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
        soon(|| tree.content("bad")).expect_err("parts that do not fit");
        soon(|| super::visit::walk(&tree.0, super::visit::Bounds::SMALL));
    };
    bad(&part(all(), all()), u64::MAX);
    bad(&part(all(), all()), 1 << 40);
    bad(&part(all(), all()), 2);
    bad(&part(all(), regular(0, 1, u64::MAX - 1, 1)), 1);
    bad(&part(all(), regular(0, u64::MAX, 3, u64::MAX)), 1);
    bad(&part(regular(0, 0, 8, 1), regular(0, 8, 1, 8)), 1);
    bad(&part(regular(u64::MAX, 1, 8, 1), regular(0, 8, 1, 8)), 1);
    bad(&part(vec![9; 40], all()), 1);
    bad(&part(all(), regular(0, 8, 1, 8)), 0); // more than the number of mappings
    // The number of elements must also match if the source is missing.
    let missing = |source, target| vec![(&b"."[..], &b"/none"[..], source, target)];
    bad(&missing(regular(0, 8, 1, 8), regular(0, 8, 2, 8)), 1);
    bad(&missing(regular(0, 8, 1, 8), regular(0, 9, 1, 9)), 1);
}

/// Sources with numbered names, without an end. All are missing, and the search for them ends soon.
#[test]
fn virtual_sources_by_number() {
    let blocks = regular(0, 1, UNDEFINED, 1);
    let part = (&b"part-%b.h5"[..], &b"/x"[..], all(), blocks);
    let tree = Tree::new(virtual_of(&[part], 1));
    assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
    soon(|| super::visit::walk(&tree.0, super::visit::Bounds::SMALL));
}

/// The source exists, but is not a dataset.
#[test]
fn virtual_sources_that_are_groups() {
    let part = (&b"."[..], &b"/"[..], all(), all());
    bad_alone_is_bad(virtual_of(&[part], 1));
}

/// Points, unknown versions and integer sizes, rank 0, and a rank that is too high.
#[test]
fn virtual_parts_of_unknown_selections() {
    let selection = |kind: u32, version: u32, rest: &[u8]| {
        [&kind.to_le_bytes(), &version.to_le_bytes(), rest, &[0; 64]].concat()
    };
    for unknown in [
        selection(1, 1, &[]),
        selection(2, 9, &[]),
        selection(2, 3, &[1, 3, 1, 0, 0, 0]),
        selection(2, 3, &[1, 8, 0, 0, 0, 0]),
        selection(2, 3, &[1, 8, 33, 0, 0, 0]),
        selection(7, 1, &[]),
        selection(0, 2, &[]),
        selection(3, 2, &[]),
    ] {
        let part = (&b"."[..], &b"/good"[..], unknown, all());
        bad_alone_is_bad(virtual_of(&[part], 1));
    }
}

/// Sources outside the directory are refused. They must not read as the fill value.
#[test]
fn virtual_sources_anywhere() {
    for file in [&b"/etc/passwd"[..], b"../../x.h5", b"/proc/self/mem"] {
        let tree = Tree::new(virtual_of(&[(file, b"/x", all(), all())], 1));
        soon(|| tree.content("bad")).expect_err("not opened");
        assert_eq!(tree.content("good"), Ok(b"goodness".to_vec()));
    }
}

/// A source whose elements have so many bits that a 32-bit count overflows.
#[test]
fn virtual_sources_of_giant_elements() {
    let giant = class_type(0x10, 0, 1 << 29, &[0, 0, 8, 0]);
    let list = [
        vec![0],
        words(&[1]),
        b".\0/giant\0".to_vec(),
        all(),
        regular(0, 1, 1, 1),
    ];
    let mut file = Hdf5::new();
    let giant = file.put(&dataset(&[1], &giant, contiguous(UNDEFINED, 1 << 29), &[]));
    let layout = put_list(&mut file, list.concat());
    let virtual_set = file.put(&dataset(&[64], &byte_type(), layout, &[]));
    let root = file.put_group(&[(b"giant", giant), (b"virtual", virtual_set)]);
    let tree = Tree::new(file.rooted(root));
    soon(|| tree.content("virtual")).expect_err("types that do not convert");
}

/// Puts an old-style group of these names for one object. The names are sorted and end with NUL.
fn put_old_group(file: &mut Hdf5, names: &[String], object: u64) -> u64 {
    let text = [&[0; 8], names.concat().as_bytes()].concat();
    let mut entries = Vec::new();
    let mut at = 8;
    for name in names {
        entries.push((at, object, 0));
        at += name.len() as u64;
    }
    old_group_in_nodes(file, &text, &entries, 256)
}

/// A mapping for each member of a group that has one member more than the limit of mappings.
#[test]
fn virtual_sources_by_number_without_end() {
    const MOST: usize = 65_536;
    let of_numbered = |count: usize| {
        let mut file = Hdf5::new();
        let byte = file.put_bytes(b"b");
        let mut names: Vec<String> = (0..count).map(|i| format!("{i}\0")).collect();
        names.sort();
        let list = same_parts(b"/g/%b", &all(), &regular(0, 1, UNDEFINED, 1), 1);
        let layout = put_list(&mut file, list);
        let bad = file.put(&dataset(&[1], &byte_type(), layout, &[]));
        let numbered = put_old_group(&mut file, &names, byte);
        let root = file.put_group(&[(b"bad", bad), (b"g", numbered)]);
        Tree::new(file.rooted(root))
    };
    let few = of_numbered(1000);
    assert_eq!(few.size("bad"), Ok(1000));
    assert_eq!(few.part("bad", 996, 8), Ok(b"bbbb".to_vec()));
    let more = of_numbered(MOST + 1);
    more.content("bad").expect_err("too many parts");
    let told = more.attribute("bad", "user.h5fs.error").expect("an error");
    assert!(told.contains("65536"), "{told}");
}

/// Two virtual datasets that grow with each other, and one whose blocks grow beyond all numbers.
#[test]
fn virtual_parts_that_grow_for_ever() {
    let without_end = regular(0, 1, UNDEFINED, 1);
    let part = |path, source: &[u8], target: &[u8]| {
        let part: Part<'_> = (&b"."[..], path, source.to_vec(), target.to_vec());
        virtual_of(&[part], 1)
    };
    bad_alone_is_bad(part(b"/bad", &without_end, &without_end));
    let far = regular(UNDEFINED - 1, 1 << 40, UNDEFINED, 1 << 40);
    let tree = good_is_good(part(b"/good", &without_end, &far));
    soon(|| tree.content("bad")).expect_err("more elements than can be counted");
    let tree = good_is_good(part(b"/good", &regular(4, 1, UNDEFINED, 1), &without_end));
    assert_eq!(tree.content("bad"), Ok(b"ness".to_vec()));
}

//! The cost of the attributes of one object, with the maximum number, length and depth of attributes.

use nix::errno::Errno;

use super::answers::GOOD;
use super::hdf5::*;
use super::requests::{costs_little, many};
use super::tree::*;
use super::values::{attribute_record, heap_of, heap_of_long_objects, with_dense_attributes};

/// The response for a dataset with the bytes `readable`.
const READABLE: &str = "file of 8 bytes: [114, 101, 97, …]";

/// Measures a dataset with `count` index records that lead to one attribute, with the hash of `name`.
/// `put_heap` puts the heap with the attribute.
fn one_attribute_many_times(
    name: &[u8],
    body: &[u8],
    count: usize,
    put_heap: fn(&mut Hdf5, &[u8]) -> u64,
) -> Tree {
    let mut file = Hdf5::new();
    let heap = put_heap(&mut file, body);
    let id = heap_id(DIRECT_PREFIX, body.len() as u64);
    let hash = h5fs_reader::wire::checksum::lookup3(name);
    let records = (0..count as u32).map(|i| attribute_record(&id, i, hash));
    let timed = costs_little(with_dense_attributes(file, heap, records.collect()));
    timed.tree.answers(&[("bad", READABLE), GOOD]);
    timed.tree
}

/// One attribute many times. Its text is too long for an extended attribute, so the list formats the
/// text until a limit, and a file shows the text once.
#[test]
fn attributes_on_a_heap() {
    const VALUES: usize = 21_000;
    let body = attribute(b"bytes", &byte_type(), &[VALUES as u64], &[111; VALUES]);
    let tree = one_attribute_many_times(b"bytes", &body, many(8000), heap_of);
    assert_eq!(tree.attributes_line("bad"), "user.bytes");
    let too_long = errno_of(tree.attribute("bad", "user.bytes"));
    assert_eq!(too_long, Errno::E2BIG);
    assert_eq!(tree.names(".h5fs/attrs/bad"), Ok(vec![b"@bytes".to_vec()]));
    let lines = tree.content(".h5fs/attrs/bad/@bytes");
    assert_eq!(lines, Ok(b"111\n".repeat(VALUES)));
}

/// One attribute of null sequences many times, with more elements than any text can contain.
#[test]
fn attributes_of_many_null_sequences() {
    const VALUES: usize = 65_537;
    let none = vec![0; VALUES * 16];
    let body = attribute(b"empty", &sequence_type(), &[VALUES as u64], &none);
    // The bytes of all records are within the limit of one list.
    let tree = one_attribute_many_times(b"empty", &body, 200, heap_of_long_objects);
    assert_eq!(tree.attributes_line("bad"), "");
    let too_long = errno_of(tree.attribute("bad", "user.empty"));
    assert_eq!(too_long, Errno::E2BIG);
    let lines = tree.content(".h5fs/attrs/bad/@empty");
    assert_eq!(lines, Ok(b"[]\n".repeat(VALUES)));
}

/// Many index records, none of which leads to an attribute.
#[test]
fn attributes_that_are_none() {
    let tree = one_attribute_many_times(b"none", &[0xff; 60], many(65_530), heap_of);
    let unknown = "error: attribute message: version 255 is not supported";
    let attributes = tree.attributes_line("bad");
    assert!(attributes.starts_with(unknown), "{attributes}");
    assert_eq!(errno_of(tree.names(".h5fs/attrs/bad")), Errno::EOPNOTSUPP);
}

/// An attribute with the names of enumeration members, a value for each, and many elements.
#[test]
fn attributes_of_many_members() {
    // A datatype in an attribute has at most 64 KiB, and needs four bytes for each member.
    const MEMBERS: u16 = 16_000;
    // A text has at most 64 KiB, and needs five bytes for each element.
    const VALUES: usize = 13_000;
    let base = class_type(0x10, 0, 2, &[0, 0, 16, 0]);
    let mut enumeration = class_type(0x38, MEMBERS.into(), 2, &base);
    enumeration.extend([b'm', 0].repeat(MEMBERS.into()));
    let values: Vec<u8> = (0..MEMBERS).rev().flat_map(u16::to_le_bytes).collect();
    enumeration.extend(&values);
    let mut file = Hdf5::new();
    let body = attribute(
        b"own",
        &enumeration,
        &[VALUES as u64],
        &values[..2 * VALUES],
    );
    // The object is longer than 64 KiB.
    let body = [body, vec![0; 1 << 17]].concat();
    let heap = heap_of_long_objects(&mut file, &body);
    let id = heap_id(DIRECT_PREFIX, body.len() as u64);
    let records = vec![attribute_record(
        &id,
        0,
        h5fs_reader::wire::checksum::lookup3(b"own"),
    )];
    let timed = costs_little(with_dense_attributes(file, heap, records));
    timed.tree.answers(&[("bad", READABLE), GOOD]);
    assert_eq!(timed.tree.attributes_line("bad"), "user.own");
    let names = vec![r#""m""#; VALUES].join(", ");
    let value = timed.tree.attribute("bad", "user.own");
    assert_eq!(value, Ok(format!("[{names}]")));
}

/// A header of the maximum length: with the maximum number of attribute messages, or with long
/// attributes.
#[test]
fn headers_of_fifteen_mebibytes() {
    let small = |i: usize| attribute(format!("a{i:06}").as_bytes(), &byte_type(), &[], &[1]);
    let long = [1; 60_000];
    let large = |i: usize| attribute(format!("a{i}").as_bytes(), &byte_type(), &[60_000], &long);
    let headers: [(Vec<Vec<u8>>, &str); 2] = [
        (
            (0..many(130_000)).map(small).collect(),
            "user.a000000, user.a000001, user.a000002, …",
        ),
        // Their texts are too long for extended attributes.
        ((0..many(250)).map(large).collect(), ""),
    ];
    for (attributes, listed) in headers {
        let messages: Vec<Message> = attributes
            .into_iter()
            .map(|body| Message(kind::ATTRIBUTE, 0, body))
            .collect();
        let mut file = Hdf5::new();
        let mut parts = Vec::new();
        for part in messages.chunks(messages.len().div_ceil(8)) {
            let block = continuation_2(part);
            parts.push(continuation(file.put(&block), block.len() as u64));
        }
        // Many objects continue in the same block.
        let data = file.put(b"readable");
        let layout = contiguous(data, 8);
        let mut links = Vec::new();
        for i in 0..100 {
            let object = file.put(&dataset(&[8], &byte_type(), layout.clone(), &parts));
            links.push(hard_link(format!("{i:03}").as_bytes(), object));
        }
        let bad = file.put(&group(&links));
        let timed = costs_little(file.beside_good(bad));
        timed
            .tree
            .answers(&[("bad/000", READABLE), ("bad/099", READABLE), GOOD]);
        assert_eq!(timed.tree.attributes_line("bad/099"), listed);
    }
}

//! A small complete file, which is encoded in two passes and read through the interface of this
//! crate. h5py, h5dump, h5ls and h5diff were seen to read the same bytes.

use std::sync::Arc;

use crate::error::Result;
use crate::file::{Dataset, File};
use crate::hdf5::encode::attribute::{self, AttributeMessage};
use crate::hdf5::encode::btree_v1::node_length;
use crate::hdf5::encode::fill_value::{self, FillValue};
use crate::hdf5::encode::link::LinkInformation::{self, Hard, Soft};
use crate::hdf5::encode::link::{self, LinkMessage};
use crate::hdf5::encode::object_header::ObjectHeader;
use crate::hdf5::encode::superblock::{self, Superblock};
use crate::hdf5::encode::tests::chunk_tree::ChunkTree;
use crate::hdf5::encode::{
    Message, data_layout, dataspace, datatype, global_heap, reference_count,
};
use crate::model::array::Fill;
use crate::model::datatype::{ByteOrder, Charset, Class, StringPadding};
use crate::model::{Datatype, Link, Shape};
use crate::source::memory::MemorySource;

/// The addresses of all structures of the file.
#[derive(Default)]
struct Places {
    root: u64,
    group: u64,
    datatype: u64,
    numbers: u64,
    rows: u64,
    texts: u64,
    empty: u64,
    heap: u64,
    numbers_data: u64,
    rows_data: u64,
    rows_index: u64,
    texts_data: u64,
    end_of_file: u64,
}

/// The extent of the dataset `rows`, whose 101 chunks need a tree of two levels.
const ROWS: [u64; 2] = [201, 3];
const CHUNK: [u64; 2] = [2, 3];
const CHUNK_COUNT: u64 = 101;
const CHUNK_BYTES: u64 = 2 * 3 * 2;

/// The objects of the heap: the value of an attribute, then the texts of a dataset.
const HEAP: [&[u8]; 4] = ["é".as_bytes(), b"one", b"drei", b"quatre"];

/// Returns the bytes of the file. The first pass measures the headers, the second encodes them.
fn complete_file() -> Vec<u8> {
    let lengths = headers(&Places::default()).map(|header| header.length());
    let places = place_structures(lengths);
    let second = headers(&places);
    assert_eq!(second.each_ref().map(ObjectHeader::length), lengths);
    let superblock = Superblock {
        root: places.root,
        end_of_file: places.end_of_file,
    };
    let mut blocks = vec![(0, superblock.encode())];
    blocks.extend(
        header_places(&places)
            .into_iter()
            .zip(second.map(|header| header.encode())),
    );
    blocks.extend(content(&places));
    let mut file = vec![0; places.end_of_file as usize];
    for (start, block) in blocks {
        file[start as usize..][..block.len()].copy_from_slice(&block);
    }
    file
}

/// Returns the addresses of the structures for headers of these `lengths`.
fn place_structures(lengths: [u64; 7]) -> Places {
    let mut end = superblock::LENGTH;
    let mut place = |length: u64| {
        let start = end;
        end = (start + length).next_multiple_of(8);
        start
    };
    let [root, group, datatype, numbers, rows, texts, empty] = lengths.map(&mut place);
    let heap = global_heap::collection_length(HEAP.map(|object| object.len() as u64));
    Places {
        root,
        group,
        datatype,
        numbers,
        rows,
        texts,
        empty,
        heap: place(heap.unwrap()),
        numbers_data: place(24),
        rows_data: place(CHUNK_COUNT * CHUNK_BYTES),
        rows_index: place(3 * node_length(2)),
        texts_data: place(64),
        end_of_file: place(0),
    }
}

fn header_places(places: &Places) -> [u64; 7] {
    let &Places {
        root,
        group,
        datatype,
        numbers,
        rows,
        texts,
        empty,
        ..
    } = places;
    [root, group, datatype, numbers, rows, texts, empty]
}

/// Returns the headers in the order of [`header_places`].
fn headers(places: &Places) -> [ObjectHeader; 7] {
    let committed = [int_message(4)];
    [
        root(places),
        inner_group(places),
        header(&committed),
        numbers(places),
        rows(places),
        texts(places),
        empty(),
    ]
}

fn header(messages: &[Message]) -> ObjectHeader {
    let mut header = ObjectHeader::new();
    for message in messages {
        header.add(message).unwrap();
    }
    header
}

fn root(places: &Places) -> ObjectHeader {
    let links = [
        ("zeta", Hard(places.group)),
        ("numbers", Hard(places.numbers)),
        ("Größe", Hard(places.datatype)),
        ("alias", Soft(b"/zeta/rows")),
    ];
    let title = global_heap::encode_element(2, places.heap, 1);
    let attributes = [
        attribute::encode_info(2),
        scalar_attribute("title", &text_message(), &title),
        scalar_attribute("answer", &int_message(4), &42_i32.to_le_bytes()),
        reference_count::encode(2),
    ];
    header(&[group_messages(&links), attributes.to_vec()].concat())
}

fn inner_group(places: &Places) -> ObjectHeader {
    let links = [
        ("rows", Hard(places.rows)),
        ("texts", Hard(places.texts)),
        ("empty", Hard(places.empty)),
        ("parent", Hard(places.root)),
        ("again", Hard(places.numbers)),
    ];
    header(&group_messages(&links))
}

/// Returns the messages of a group with these links in creation order.
fn group_messages(links: &[(&str, LinkInformation<'_>)]) -> Vec<Message> {
    let info = link::encode_info(links.len() as u64);
    let mut messages = vec![info, link::encode_group_info()];
    for ((name, target), creation_order) in links.iter().zip(0..) {
        let is_ascii = name.is_ascii();
        let link = LinkMessage {
            name: name.as_bytes(),
            charset: if is_ascii {
                Charset::Ascii
            } else {
                Charset::Utf8
            },
            creation_order,
            target: *target,
        };
        messages.push(link::encode(&link).unwrap());
    }
    messages
}

/// A contiguous dataset. It has two names and a fill value.
fn numbers(places: &Places) -> ObjectHeader {
    let int32 = int_message(4);
    let unit = scalar_attribute("unit", &int32, &(-1_i32).to_le_bytes());
    header(&[
        space(&Shape::fixed(vec![2, 3])),
        int32,
        fill_value::encode(FillValue::Value(&7_i32.to_le_bytes())).unwrap(),
        data_layout::encode_contiguous(Some(places.numbers_data), 24),
        reference_count::encode(2),
        attribute::encode_info(1),
        unit,
    ])
}

/// A chunked dataset that can grow.
fn rows(places: &Places) -> ObjectHeader {
    let extent = Shape::Simple {
        dims: ROWS.to_vec(),
        max: vec![None, Some(3)],
    };
    header(&[
        space(&extent),
        int_message(2),
        fill_value::encode(FillValue::Default).unwrap(),
        data_layout::encode_chunked(Some(places.rows_index), &CHUNK, 2).unwrap(),
    ])
}

/// A contiguous dataset of variable-length strings, with a modification time.
fn texts(places: &Places) -> ObjectHeader {
    let messages = [
        space(&Shape::fixed(vec![4])),
        text_message(),
        fill_value::encode(FillValue::Default).unwrap(),
        data_layout::encode_contiguous(Some(places.texts_data), 64),
    ];
    header(&messages).with_modification_time(1_000_000_000)
}

fn empty() -> ObjectHeader {
    header(&[
        space(&Shape::Null),
        int_message(4),
        fill_value::encode(FillValue::Undefined).unwrap(),
        data_layout::encode_contiguous(None, 0),
    ])
}

fn space(shape: &Shape) -> Message {
    dataspace::encode(shape).unwrap()
}

fn int_message(size: u16) -> Message {
    datatype::encode(&Datatype::integer(size, true, ByteOrder::Little)).unwrap()
}

fn text_message() -> Message {
    let class = Class::VariableString {
        padding: StringPadding::NullTerminated,
        charset: Charset::Utf8,
    };
    datatype::encode(&Datatype { size: 16, class }).unwrap()
}

fn scalar_attribute(name: &str, datatype: &Message, elements: &[u8]) -> Message {
    let attribute = AttributeMessage {
        name: name.as_bytes(),
        charset: Charset::Ascii,
        datatype,
        dataspace: &space(&Shape::fixed(vec![])),
        elements,
    };
    attribute::encode(&attribute).unwrap()
}

/// Returns the blocks of the heap and of the elements, with their addresses.
fn content(places: &Places) -> Vec<(u64, Vec<u8>)> {
    let numbers = (1..=6_i32).flat_map(i32::to_le_bytes).collect();
    let rows = (0..CHUNK_COUNT * CHUNK_BYTES / 2).map(row_element);
    let tree = ChunkTree {
        counts: vec![CHUNK_COUNT, 1],
        chunk_shape: CHUNK.to_vec(),
        first_chunk: places.rows_data,
        chunk_bytes: CHUNK_BYTES,
        root: places.rows_index,
    };
    let text = |length, index| global_heap::encode_element(length, places.heap, index);
    let texts = [
        text(3, 2),
        global_heap::NULL_ELEMENT,
        text(4, 3),
        text(6, 4),
    ];
    vec![
        (places.heap, global_heap::encode_collection(&HEAP).unwrap()),
        (places.numbers_data, numbers),
        (places.rows_data, rows.flat_map(i16::to_le_bytes).collect()),
        (places.rows_index, tree.encode()),
        (places.texts_data, texts.concat()),
    ]
}

/// Returns an element of the dataset `rows`.
fn row_element(number: u64) -> i16 {
    number as i16 * 3 - 500
}

fn open_complete_file() -> File {
    let source = Arc::new(MemorySource::new(complete_file()));
    File::options().open_source(source).unwrap()
}

fn dataset(file: &File, path: &str) -> Dataset {
    file.get(path).unwrap().into_dataset().unwrap()
}

#[test]
fn links_keep_their_order() {
    let file = open_complete_file();
    let names = |path: &str| -> Vec<String> {
        let group = file.get(path).unwrap().into_group().unwrap();
        let name = |link: Result<Link>| String::from_utf8(link.unwrap().name);
        let links = group.links().unwrap();
        links.map(|link| name(link).unwrap()).collect()
    };
    assert_eq!(names("/"), ["zeta", "numbers", "Größe", "alias"]);
    let inner = ["rows", "texts", "empty", "parent", "again"];
    assert_eq!(names("/zeta/parent/zeta"), inner);
}

#[test]
fn attributes_keep_their_order() {
    let attributes = open_complete_file().root().unwrap().attributes().unwrap();
    let [(title, text), (answer, number)] = &attributes[..] else {
        panic!("two attributes");
    };
    assert_eq!((&title[..], &answer[..]), (&b"title"[..], &b"answer"[..]));
    assert_eq!(text.as_ref().unwrap().texts().unwrap(), ["é"]);
    assert_eq!(number.as_ref().unwrap().numbers().unwrap(), [42.0]);
}

#[test]
fn contiguous_elements_are_read() {
    let file = open_complete_file();
    let numbers = dataset(&file, "/numbers");
    let read = numbers.read().unwrap().numbers().unwrap();
    assert_eq!(read, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let fill = Fill::Value(7_i32.to_le_bytes()[..].into());
    assert_eq!(numbers.array().fill, fill);
    assert_eq!(numbers.shape(), [2, 3]);
    assert_eq!(numbers.node().link_count, 2);
    let unit = numbers.attribute("unit").unwrap().unwrap();
    assert_eq!(unit.numbers().unwrap(), [-1.0]);
    let texts = dataset(&file, "/zeta/texts");
    let read = texts.read().unwrap().texts().unwrap();
    assert_eq!(read, ["one", "", "drei", "quatre"]);
    assert_eq!(texts.node().modified, Some(1_000_000_000));
    assert_eq!(dataset(&file, "/zeta/empty").array().shape, Shape::Null);
}

#[test]
fn chunks_of_two_levels_are_read() {
    let rows = dataset(&open_complete_file(), "/alias");
    assert_eq!(rows.array().shape.max(), [None, Some(3)]);
    let count = ROWS.iter().product();
    let expected = (0..count).map(|number| f64::from(row_element(number)));
    let read = rows.read().unwrap().numbers().unwrap();
    assert_eq!(read, expected.collect::<Vec<_>>());
    let last = rows.select("[200, 2]").unwrap().numbers().unwrap();
    assert_eq!(last, [f64::from(row_element(602))]);
}

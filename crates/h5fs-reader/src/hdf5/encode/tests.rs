//! Random structures that the parsers of this crate read back, and a complete file.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::Union;

use super::*;
use crate::file::{Dataset, File};
use crate::hdf5::encode::attribute::AttributeMessage;
use crate::hdf5::encode::btree_v1::{ChunkNode, ChunkNodeChild, MAX_CHILDREN, node_length};
use crate::hdf5::encode::fill_value::FillValue;
use crate::hdf5::encode::link::{LinkInformation, LinkMessage};
use crate::hdf5::encode::object_header::ObjectHeader;
use crate::hdf5::encode::superblock::Superblock;
use crate::hdf5::file::caches::Caches;
use crate::hdf5::file::number_form::Width;
use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::index::ChunkGeometry;
use crate::hdf5::index::btree_v1::BtreeV1Index;
use crate::hdf5::message::data_layout::{ChunkIndexKind, ChunkedLayout, DataLayout};
use crate::hdf5::message::{kind, modification_time as parsed_time};
use crate::hdf5::shared::SharedMessages;
use crate::hdf5::testing::{at, file, walked};
use crate::hdf5::{file as parsed_file, message as parsed, object_header as parsed_header};
use crate::model::array::Fill;
use crate::model::datatype::{
    BitRange, ByteOrder, Class, FloatFormat, Member, Normalization, ReferenceKind, StringPadding,
};
use crate::model::storage::ChunkIndex;
use crate::model::{Datatype, LinkTarget, NodeId, Shape};
use crate::source::memory::MemorySource;
use crate::wire::Cursor;

fn cursor(message: &Message) -> Cursor<'_> {
    Cursor::new(message.data(), 0, "test")
}

fn parse_datatype(message: &Message) -> Result<Datatype> {
    let width = Width::new(8).unwrap();
    parsed::datatype::read(&mut cursor(message), width)
}

/// Bytes without a NUL.
fn text(lengths: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1..=u8::MAX, lengths)
}

fn charset() -> impl Strategy<Value = Charset> {
    prop::sample::select(vec![Charset::Ascii, Charset::Utf8])
}

fn byte_order() -> impl Strategy<Value = ByteOrder> {
    prop::sample::select(vec![ByteOrder::Little, ByteOrder::Big])
}

/// The size of an element, and a range of bits in it.
fn bit_range() -> impl Strategy<Value = (u32, BitRange)> {
    let offset = (1..=8_u16).prop_flat_map(|size| (Just(size), 0..size * 8));
    let range =
        offset.prop_flat_map(|(size, offset)| (Just((size, offset)), 1..=size * 8 - offset));
    range.prop_map(|((size, offset), precision)| (u32::from(size), BitRange { offset, precision }))
}

fn integer() -> impl Strategy<Value = Datatype> {
    (bit_range(), byte_order(), any::<bool>()).prop_map(|((size, bits), order, signed)| Datatype {
        size,
        class: Class::Integer {
            order,
            signed,
            bits,
        },
    })
}

fn float() -> impl Strategy<Value = Datatype> {
    let orders = vec![ByteOrder::Little, ByteOrder::Big, ByteOrder::Vax];
    let normalizations = vec![
        Normalization::None,
        Normalization::Stored,
        Normalization::Implied,
    ];
    let sizes = prop::sample::select(vec![2, 4, 8]);
    let selected = (
        sizes,
        prop::sample::select(orders),
        prop::sample::select(normalizations),
    );
    (selected, any::<u32>()).prop_map(|((size, order, normalization), bias)| {
        let Class::Float(format) = Datatype::ieee(size, order).class else {
            panic!("a float");
        };
        let class = Class::Float(FloatFormat {
            bias,
            normalization,
            ..format
        });
        let size = size.into();
        Datatype { size, class }
    })
}

fn string() -> impl Strategy<Value = Datatype> {
    let paddings = vec![
        StringPadding::NullTerminated,
        StringPadding::NullPadded,
        StringPadding::SpacePadded,
    ];
    let padding = prop::sample::select(paddings);
    (1..400_u32, padding, charset(), any::<bool>()).prop_map(|(length, padding, charset, fixed)| {
        if fixed {
            let class = Class::String { padding, charset };
            return Datatype {
                size: length,
                class,
            };
        }
        let class = Class::VariableString { padding, charset };
        Datatype { size: 16, class }
    })
}

fn enumeration() -> impl Strategy<Value = Datatype> {
    let members = |base: Datatype| {
        let value = prop::collection::vec(any::<u8>(), base.size as usize);
        let members = prop::collection::vec((text(0..20), value), 0..5);
        (Just(base), members)
    };
    integer()
        .prop_flat_map(members)
        .prop_map(|(base, members)| {
            let size = base.size;
            let base = Box::new(base);
            let class = Class::Enumeration { base, members };
            Datatype { size, class }
        })
}

/// A datatype without parts that HDF5 1.8 has.
fn plain_datatype() -> impl Strategy<Value = Datatype> {
    let typed = |size, class| Datatype { size, class };
    let time = (1..=8_u16, byte_order()).prop_flat_map(|(size, order)| {
        (0..=size * 8).prop_map(move |precision| {
            let bits = BitRange {
                offset: 0,
                precision,
            };
            let size = size.into();
            let class = Class::Time { order, bits };
            Datatype { size, class }
        })
    });
    let bit_field = (bit_range(), byte_order())
        .prop_map(move |((size, bits), order)| typed(size, Class::Bitfield { order, bits }));
    let opaque =
        (1..400_u32, text(0..249)).prop_map(move |(size, tag)| typed(size, Class::Opaque { tag }));
    prop_oneof![
        integer(),
        float(),
        string(),
        enumeration(),
        time,
        bit_field,
        opaque,
        Just(typed(8, Class::Reference(ReferenceKind::Object))),
        Just(typed(12, Class::Reference(ReferenceKind::Region))),
    ]
}

/// A datatype of a class that HDF5 1.8 does not have.
fn converted_datatype() -> impl Strategy<Value = Datatype> {
    let boolean = Datatype {
        size: 1,
        class: Class::Bool,
    };
    let complex = float().prop_map(|part| Datatype {
        size: 2 * part.size,
        class: Class::Complex(Box::new(part)),
    });
    prop_oneof![Just(boolean), complex]
}

/// A compound of `parts` in order, each after a gap, with a gap at its end.
fn compound(parts: Vec<(Vec<u8>, u32, Datatype)>, gap_at_end: u32) -> Datatype {
    let mut end = 0;
    let members = parts.into_iter().map(|(name, gap, datatype)| {
        let offset = end + gap;
        end = offset + datatype.size;
        Member {
            name,
            offset,
            datatype,
        }
    });
    let class = Class::Compound(members.collect());
    let size = end + gap_at_end;
    Datatype { size, class }
}

/// Nested datatypes that end in `leaf`.
fn datatype_tree(
    leaf: impl Strategy<Value = Datatype> + 'static,
) -> impl Strategy<Value = Datatype> {
    leaf.prop_recursive(3, 20, 4, |inner| {
        let parts = prop::collection::vec((text(0..20), 0..9_u32, inner.clone()), 1..4);
        let dims = prop::collection::vec(1..4_u32, 0..4);
        let array = (inner.clone(), dims).prop_map(|(base, dims)| Datatype {
            size: base.size * dims.iter().product::<u32>(),
            class: Class::Array {
                base: Box::new(base),
                dims,
            },
        });
        let sequence = inner.prop_map(|base| Datatype {
            size: 16,
            class: Class::VariableLength(Box::new(base)),
        });
        prop_oneof![
            (parts, 0..9_u32).prop_map(|(parts, gap)| compound(parts, gap)),
            array,
            sequence,
        ]
    })
}

/// An extent whose number of elements fits 63 bits if `most` is small.
fn shape(most: u64, rank: usize) -> impl Strategy<Value = Shape> {
    let growth = prop_oneof![Just(Some(0)), (1..1000_u64).prop_map(Some), Just(None)];
    let dims = prop::collection::vec((0..=most, growth), 0..=rank);
    let simple = dims.prop_map(|dims| {
        let max = dims
            .iter()
            .map(|(dim, growth)| growth.map(|more| dim + more));
        Shape::Simple {
            max: max.collect(),
            dims: dims.iter().map(|(dim, _)| *dim).collect(),
        }
    });
    Union::new_weighted(vec![(9, simple.boxed()), (1, Just(Shape::Null).boxed())])
}

proptest! {
    #[test]
    fn datatypes_are_read_back(datatype in datatype_tree(plain_datatype())) {
        let message = datatype::encode(&datatype).unwrap();
        prop_assert_eq!(parse_datatype(&message).unwrap(), datatype);
    }

    #[test]
    fn converted_datatypes_are_read_back(datatype in datatype_tree(converted_datatype())) {
        let message = datatype::encode(&datatype).unwrap();
        let converted = datatype::hdf5_datatype(&datatype).unwrap();
        prop_assert_eq!(converted.size, datatype.size);
        prop_assert_eq!(parse_datatype(&message).unwrap(), converted);
    }

    #[test]
    fn dataspaces_are_read_back(shape in shape(u64::MAX - 1000, 32)) {
        let message = dataspace::encode(&shape).unwrap();
        let parsed = parsed::dataspace::read(&file([]), &mut cursor(&message)).unwrap();
        prop_assert_eq!(parsed, shape);
    }

    #[test]
    fn fill_values_are_read_back(element in prop::collection::vec(any::<u8>(), 1..100)) {
        let size = u32::try_from(element.len()).unwrap();
        for (fill, stored) in [
            (FillValue::Undefined, Fill::Zero),
            (FillValue::from(&Fill::Zero), Fill::Zero),
            (FillValue::Value(&element), Fill::Value(element[..].into())),
        ] {
            let message = fill_value::encode(fill).unwrap();
            let parsed = parsed::fill_value::read(kind::FILL_VALUE, size, &mut cursor(&message));
            prop_assert_eq!(parsed.unwrap(), stored);
        }
    }

    #[test]
    fn layouts_are_read_back(
        address in prop::option::of(0..u64::MAX),
        size in any::<u64>(),
        shape in prop::collection::vec(1..5_u64, 1..14),
        element_size in 1..=4_u32,
    ) {
        let parse = |message: &Message| parsed::data_layout::read(&file([]), &mut cursor(message));
        let contiguous = data_layout::encode_contiguous(address, size);
        let expected = DataLayout::Contiguous {
            address: address.map(at),
            size: Some(size),
        };
        prop_assert_eq!(parse(&contiguous).unwrap(), expected);
        let chunked = data_layout::encode_chunked(address, &shape, element_size).unwrap();
        let expected = DataLayout::Chunked(ChunkedLayout {
            shape,
            element_size: element_size.into(),
            index: ChunkIndexKind::BtreeV1,
            address: address.map(at),
            has_unfiltered_edge_chunks: false,
        });
        prop_assert_eq!(parse(&chunked).unwrap(), expected);
    }

    #[test]
    fn links_are_read_back(
        name in text(1..600),
        path in text(1..600),
        charset in charset(),
        order in any::<u64>(),
        object in 2..NodeId::END,
        is_soft in any::<bool>(),
    ) {
        let (target, expected) = if is_soft {
            (LinkInformation::Soft(&path), LinkTarget::Soft(path.clone()))
        } else {
            (LinkInformation::Hard(object), LinkTarget::Hard(NodeId::for_test(object)))
        };
        let link = LinkMessage { name: &name, charset, creation_order: order, target };
        let message = link::encode(&link).unwrap();
        let parsed = parsed::link::read(&file([]), &mut cursor(&message)).unwrap();
        prop_assert_eq!((parsed.name, parsed.target, parsed.order), (name, expected, Some(order)));
    }

    #[test]
    fn attributes_are_read_back(
        name in text(0..50),
        charset in charset(),
        datatype in datatype_tree(plain_datatype()).prop_filter("small", |one| one.size < 2000),
        shape in shape(3, 2),
        is_committed in any::<bool>(),
        byte in any::<u8>(),
    ) {
        let own = datatype::encode(&datatype).unwrap();
        let mut committed = ObjectHeader::new();
        committed.add(&own).unwrap();
        let metadata = file([(64, committed.encode())]);
        let pointer = datatype::encode_shared(64);
        let elements = vec![byte; datatype.size as usize * shape.elements().unwrap() as usize];
        let message = attribute::encode(&AttributeMessage {
            name: &name,
            charset,
            datatype: if is_committed { &pointer } else { &own },
            dataspace: &dataspace::encode(&shape).unwrap(),
            elements: &elements,
        });
        let message = message.unwrap();
        let shared = SharedMessages::without_table(Arc::clone(&metadata));
        let parsed = parsed::attribute::read(&metadata, &shared, &mut cursor(&message)).unwrap();
        let content = parsed.content.unwrap();
        prop_assert_eq!((parsed.name, content.datatype, content.shape), (name, datatype, shape));
        prop_assert_eq!(&content.elements[..], &elements);
    }

    #[test]
    fn headers_are_read_back(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
        modified in prop::option::of(any::<u32>()),
    ) {
        let mut header = ObjectHeader::new();
        if let Some(seconds) = modified {
            header = header.with_modification_time(seconds);
        }
        for data in &messages {
            let message = Message::new(kind::OBJECT_COMMENT, 0, data.clone(), "test").unwrap();
            header.add(&message).unwrap();
        }
        header.add(&reference_count::encode(7)).unwrap();
        let block = header.encode();
        prop_assert_eq!(block.len() as u64, header.length());
        let parsed = parsed_header::ObjectHeader::read(&file([(8, block)]), at(8)).unwrap();
        let parsed_messages: Vec<_> = parsed.messages().map(|one| one.data.to_vec()).collect();
        prop_assert_eq!(&parsed_messages[..messages.len()], messages);
        prop_assert_eq!((parsed.reference_count, parsed.modification_time), (7, modified));
    }

    #[test]
    fn superblocks_are_read_back(root in 0..u64::MAX, end_of_file in 0..u64::MAX) {
        let source = MemorySource::new(Superblock { root, end_of_file }.encode());
        let parsed = parsed_file::superblock::Superblock::read(&source, 0).unwrap();
        let read = (parsed.version, parsed.root.offset(), parsed.end_of_file);
        prop_assert_eq!(read, (2, root, end_of_file));
        prop_assert_eq!((parsed.address_encoding.base, parsed.extension), (0, None));
    }

    #[test]
    fn trees_of_chunks_are_read_back(
        chunks in prop::collection::vec(1..7_u64, 1..4),
        chunk_shape in prop::collection::vec(1..9_u64, 3),
    ) {
        let rank = chunks.len();
        let chunk_shape = chunk_shape[..rank].to_vec();
        let dims: Vec<_> = chunks.iter().zip(&chunk_shape).map(|(count, size)| count * size).collect();
        let chunk_bytes: u64 = chunk_shape.iter().product();
        let max = vec![None; rank];
        let tree = chunk_tree(&dims, &chunk_shape, 1 << 32, chunk_bytes, 64);
        let geometry = ChunkGeometry::new(dims, max, chunk_shape, chunk_bytes, 0).unwrap();
        let index = BtreeV1Index::new(file([(64, tree)]), at(64), geometry, false);
        let found = walked(&index).unwrap();
        prop_assert_eq!(found.len() as u64, chunks.iter().product::<u64>());
        for ((place, address), number) in found.iter().zip(0..) {
            prop_assert_eq!(place, &coordinates(number, &chunks));
            prop_assert_eq!(*address, (1 << 32) + number * chunk_bytes);
            let chunk = index.find(place).unwrap().unwrap();
            prop_assert_eq!(chunk.offset, *address);
        }
    }

    #[test]
    fn heap_objects_are_read_back(
        objects in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40),
    ) {
        let objects: Vec<_> = objects.iter().map(Vec::as_slice).collect();
        let collection = global_heap::encode_collection(&objects).unwrap();
        let lengths = objects.iter().map(|object| object.len() as u64);
        prop_assert_eq!(collection.len() as u64, global_heap::collection_length(lengths).unwrap());
        prop_assert_eq!(&joined_parts(&objects), &collection);
        let metadata = file([(4096, collection)]);
        let heap = GlobalHeap::new(metadata, Caches::default().new_heap_directory_cache());
        for (object, index) in objects.iter().zip(1..) {
            let read = heap.read_whole_object(at(4096), index, 1000).unwrap();
            prop_assert_eq!(read, *object);
        }
        prop_assert!(heap.object_length(at(4096), objects.len() as u32 + 1).is_err());
    }
}

/// Returns a collection that is put together from its parts.
fn joined_parts(objects: &[&[u8]]) -> Vec<u8> {
    let lengths = objects.iter().map(|object| object.len() as u64);
    let length = global_heap::collection_length(lengths).unwrap();
    let mut joined = global_heap::encode_collection_header(length).to_vec();
    for (object, index) in objects.iter().zip(1..) {
        let data = object.len() as u64;
        let end = joined.len() as u64 + global_heap::object_length(data).unwrap();
        joined.extend(global_heap::encode_object_header(index, data));
        joined.extend(*object);
        joined.resize(end as usize, 0);
    }
    let free = length - joined.len() as u64;
    joined.extend(global_heap::encode_free_space(free).unwrap());
    joined
}

/// Returns the coordinates of an item in a grid of `counts` items, in row-major order.
fn coordinates(mut number: u64, counts: &[u64]) -> Vec<u64> {
    let mut place: Vec<_> = counts
        .iter()
        .rev()
        .map(|count| {
            let along = number % count;
            number /= count;
            along
        })
        .collect();
    place.reverse();
    place
}

/// Returns a tree whose root is at `root`, over chunks that are stored in order from `first` on.
/// The nodes of one level are consecutive, and the higher levels precede the lower ones.
fn chunk_tree(
    dims: &[u64],
    chunk_shape: &[u64],
    first: u64,
    chunk_bytes: u64,
    root: u64,
) -> Vec<u8> {
    let counts: Vec<_> = dims
        .iter()
        .zip(chunk_shape)
        .map(|(dim, size)| dim.div_ceil(*size))
        .collect();
    let total: u64 = counts.iter().product();
    let offset = |number: u64| -> Vec<u64> {
        if number >= total {
            let mut end = vec![0; dims.len()];
            end[0] = counts[0] * chunk_shape[0];
            return end;
        }
        let place = coordinates(number, &counts);
        place
            .iter()
            .zip(chunk_shape)
            .map(|(along, size)| along * size)
            .collect()
    };
    // The numbers of nodes of each level, from the leaves to the root.
    let fan = MAX_CHILDREN as u64;
    let mut nodes = vec![total.div_ceil(fan)];
    while *nodes.last().unwrap() > 1 {
        nodes.push(nodes.last().unwrap().div_ceil(fan));
    }
    let length = node_length(dims.len());
    let mut tree = Vec::new();
    let mut level_start = root;
    for level in (0..nodes.len()).rev() {
        let next_level = level_start + nodes[level] * length;
        let (below, unit) = match level {
            0 => (total, 1),
            _ => (nodes[level - 1], fan.pow(level as u32)),
        };
        for node in 0..nodes[level] {
            let numbers = node * fan..((node + 1) * fan).min(below);
            let children: Vec<_> = numbers
                .clone()
                .map(|number| ChunkNodeChild {
                    chunk_bytes: chunk_bytes as u32,
                    filter_mask: 0,
                    offset: offset(number * unit),
                    address: match level {
                        0 => first + number * chunk_bytes,
                        _ => next_level + number * length,
                    },
                })
                .collect();
            let sibling = |node: u64| level_start + node * length;
            let node = ChunkNode {
                level: level as u8,
                left: node.checked_sub(1).map(sibling),
                right: (node + 1 < nodes[level]).then(|| sibling(node + 1)),
                children: &children,
                end: &offset(numbers.end * unit),
            };
            tree.extend(node.encode().unwrap());
        }
        level_start = next_level;
    }
    tree
}

#[test]
fn times_and_infos_are_read_back() {
    let time = modification_time::encode(1_700_000_000);
    assert_eq!(parsed_time::read(&mut cursor(&time)), Ok(1_700_000_000));
    let compact = |message: &Message, order_bytes| {
        let mut cursor = cursor(message);
        parsed::on_heap::DenseStorageInfo::read(&file([]), order_bytes, &mut cursor)
    };
    assert_eq!(compact(&link::encode_info(3), 8), Ok(None));
    assert_eq!(compact(&attribute::encode_info(3), 2), Ok(None));
}

// -- a complete file

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

const ROW_COUNT: u64 = 201;
const ROWS_PER_CHUNK: u64 = 2;
const TEXTS: [&str; 4] = ["one", "", "drei", "quatre"];
/// The objects of the heap: the value of an attribute, then the texts that are not empty.
const HEAP: [&[u8]; 4] = ["é".as_bytes(), b"one", b"drei", b"quatre"];

fn link<'a>(name: &'a str, order: u64, target: LinkInformation<'a>) -> Message {
    let link = LinkMessage {
        name: name.as_bytes(),
        charset: if name.is_ascii() {
            Charset::Ascii
        } else {
            Charset::Utf8
        },
        creation_order: order,
        target,
    };
    link::encode(&link).unwrap()
}

fn group(links: &[(&str, LinkInformation<'_>)], others: Vec<Message>) -> ObjectHeader {
    let mut messages = vec![
        link::encode_info(links.len() as u64),
        link::encode_group_info(),
    ];
    messages.extend(
        (0..)
            .zip(links)
            .map(|(order, (name, target))| link(name, order, *target)),
    );
    messages.extend(others);
    header(messages)
}

fn header(messages: Vec<Message>) -> ObjectHeader {
    let mut header = ObjectHeader::new();
    messages
        .iter()
        .for_each(|message| header.add(message).unwrap());
    header
}

fn scalar_attribute(name: &str, datatype: &Message, elements: &[u8]) -> Message {
    let attribute = AttributeMessage {
        name: name.as_bytes(),
        charset: Charset::Utf8,
        datatype,
        dataspace: &dataspace::encode(&Shape::fixed(vec![])).unwrap(),
        elements,
    };
    attribute::encode(&attribute).unwrap()
}

fn int(size: u16) -> Datatype {
    Datatype::integer(size, true, ByteOrder::Little)
}

fn text_type() -> Datatype {
    let (padding, charset) = (StringPadding::NullTerminated, Charset::Utf8);
    let class = Class::VariableString { padding, charset };
    Datatype { size: 16, class }
}

/// Returns the headers of the file, in the order of their addresses in `places`.
fn headers(places: &Places) -> [ObjectHeader; 7] {
    use LinkInformation::{Hard, Soft};
    let int32 = datatype::encode(&int(4)).unwrap();
    let texts = datatype::encode(&text_type()).unwrap();
    let e_acute = global_heap::encode_element(2, places.heap, 1);
    let root = group(
        &[
            ("zeta", Hard(places.group)),
            ("numbers", Hard(places.numbers)),
            ("Größe", Hard(places.datatype)),
            ("alias", Soft(b"/zeta/rows")),
        ],
        vec![
            attribute::encode_info(2),
            scalar_attribute("title", &texts, &e_acute),
            scalar_attribute("answer", &int32, &42_i32.to_le_bytes()),
        ],
    );
    let inner = group(
        &[
            ("rows", Hard(places.rows)),
            ("texts", Hard(places.texts)),
            ("empty", Hard(places.empty)),
            ("parent", Hard(places.root)),
            ("again", Hard(places.numbers)),
        ],
        vec![],
    );
    let pointer = datatype::encode_shared(places.datatype);
    let fill = |fill: FillValue<'_>| fill_value::encode(fill).unwrap();
    let space = |shape: &Shape| dataspace::encode(shape).unwrap();
    let numbers = vec![
        space(&Shape::fixed(vec![2, 3])),
        pointer.clone(),
        fill(FillValue::Value(&7_i32.to_le_bytes())),
        data_layout::encode_contiguous(Some(places.numbers_data), 24),
        reference_count::encode(2),
        attribute::encode_info(1),
        scalar_attribute("unit", &pointer, &(-1_i32).to_le_bytes()),
    ];
    let growing = Shape::Simple {
        dims: vec![ROW_COUNT, 3],
        max: vec![None, Some(3)],
    };
    let chunk = [ROWS_PER_CHUNK, 3];
    let rows = vec![
        space(&growing),
        datatype::encode(&int(2)).unwrap(),
        fill(FillValue::Default),
        data_layout::encode_chunked(Some(places.rows_index), &chunk, 2).unwrap(),
    ];
    let strings = vec![
        space(&Shape::fixed(vec![4])),
        texts,
        fill(FillValue::Default),
        data_layout::encode_contiguous(Some(places.texts_data), 64),
    ];
    let empty = vec![
        space(&Shape::Null),
        int32.clone(),
        fill(FillValue::Undefined),
        data_layout::encode_contiguous(None, 0),
    ];
    [
        group_with_count(root, 2),
        inner,
        header(vec![int32, reference_count::encode(3)]),
        header(numbers),
        header(rows),
        header(strings).with_modification_time(1_000_000_000),
        header(empty),
    ]
}

fn group_with_count(mut header: ObjectHeader, count: u32) -> ObjectHeader {
    header.add(&reference_count::encode(count)).unwrap();
    header
}

fn row_element(number: u64) -> i16 {
    number as i16 * 3 - 500
}

/// Returns the bytes of the file. The first pass places the structures, the second writes them.
fn complete_file() -> Vec<u8> {
    let mut places = Places::default();
    let lengths = headers(&places).map(|header| header.length());
    let heap = global_heap::encode_collection(&HEAP).unwrap();
    let chunks = ROW_COUNT.div_ceil(ROWS_PER_CHUNK);
    let chunk_bytes = ROWS_PER_CHUNK * 3 * 2;
    let tree_length = 3 * node_length(2);
    let mut end = superblock::LENGTH;
    let mut place = |length: u64| {
        let start = end;
        end = (start + length).next_multiple_of(8);
        start
    };
    let [root, group, datatype, numbers, rows, texts, empty] = lengths.map(&mut place);
    places = Places {
        root,
        group,
        datatype,
        numbers,
        rows,
        texts,
        empty,
        heap: place(heap.len() as u64),
        numbers_data: place(24),
        rows_data: place(chunks * chunk_bytes),
        rows_index: place(tree_length),
        texts_data: place(64),
        end_of_file: place(0),
    };
    let second = headers(&places);
    assert_eq!(second.each_ref().map(ObjectHeader::length), lengths);
    let starts = [root, group, datatype, numbers, rows, texts, empty];
    let mut blocks: Vec<_> = starts
        .into_iter()
        .zip(second.map(|header| header.encode()))
        .collect();
    blocks.push((0, superblock_of(&places)));
    blocks.push((places.heap, heap));
    let numbers: Vec<_> = (1..=6_i32).flat_map(i32::to_le_bytes).collect();
    blocks.push((places.numbers_data, numbers));
    let rows =
        (0..chunks * ROWS_PER_CHUNK * 3).flat_map(|number| row_element(number).to_le_bytes());
    blocks.push((places.rows_data, rows.collect()));
    let (dims, chunk) = ([ROW_COUNT, 3], [ROWS_PER_CHUNK, 3]);
    let tree = chunk_tree(
        &dims,
        &chunk,
        places.rows_data,
        chunk_bytes,
        places.rows_index,
    );
    assert_eq!(tree.len() as u64, tree_length);
    blocks.push((places.rows_index, tree));
    let element = |count, index| global_heap::encode_element(count, places.heap, index);
    let null = global_heap::NULL_ELEMENT;
    let texts = [element(3, 2), null, element(4, 3), element(6, 4)].concat();
    blocks.push((places.texts_data, texts));
    let mut file = vec![0; places.end_of_file as usize];
    for (start, block) in blocks {
        file[start as usize..][..block.len()].copy_from_slice(&block);
    }
    file
}

fn superblock_of(places: &Places) -> Vec<u8> {
    let superblock = Superblock {
        root: places.root,
        end_of_file: places.end_of_file,
    };
    superblock.encode()
}

fn opened() -> File {
    let source = Arc::new(MemorySource::new(complete_file()));
    File::options().open_source(source).unwrap()
}

fn dataset(file: &File, path: &str) -> Dataset {
    file.get(path).unwrap().into_dataset().unwrap()
}

#[test]
fn a_complete_file_is_read() {
    let file = opened();
    let names = |path: &str| -> Vec<String> {
        let group = file.get(path).unwrap().into_group().unwrap();
        let links = group.links().unwrap();
        let name = |link: Result<crate::model::Link>| String::from_utf8(link.unwrap().name);
        links.map(|link| name(link).unwrap()).collect()
    };
    assert_eq!(names("/"), ["zeta", "numbers", "Größe", "alias"]);
    assert_eq!(
        names("/zeta/parent/zeta"),
        ["rows", "texts", "empty", "parent", "again"]
    );
    let root = file.root().unwrap();
    let attributes = root.attributes().unwrap();
    let attributes: Vec<_> = attributes
        .into_iter()
        .map(|(name, value)| (name, value.unwrap()))
        .collect();
    let [(title, title_value), (answer, answer_value)] = &attributes[..] else {
        panic!("two attributes");
    };
    assert_eq!((&title[..], &answer[..]), (&b"title"[..], &b"answer"[..]));
    assert_eq!(title_value.texts().unwrap(), ["é"]);
    assert_eq!(answer_value.numbers().unwrap(), [42.0]);
    let numbers = dataset(&file, "/numbers");
    assert_eq!(
        numbers.read().unwrap().numbers().unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(
        numbers.array().fill,
        Fill::Value(7_i32.to_le_bytes()[..].into())
    );
    assert_eq!(
        (numbers.shape(), numbers.node().link_count),
        (vec![2, 3], 2)
    );
    let unit = numbers.attribute("unit").unwrap().unwrap();
    assert_eq!(unit.numbers().unwrap(), [-1.0]);
    let texts = dataset(&file, "/zeta/texts");
    assert_eq!(texts.read().unwrap().texts().unwrap(), TEXTS);
    assert_eq!(texts.node().modified, Some(1_000_000_000));
    assert_eq!(dataset(&file, "/zeta/empty").array().shape, Shape::Null);
}

#[test]
fn a_tree_of_two_levels_is_read() {
    let file = opened();
    let rows = dataset(&file, "/alias");
    assert_eq!(rows.array().shape.max(), [None, Some(3)]);
    let expected = (0..ROW_COUNT * 3).map(|number| f64::from(row_element(number)));
    let read = rows.read().unwrap().numbers().unwrap();
    assert_eq!(read, expected.collect::<Vec<_>>());
    let last = rows.select("[200, 2]").unwrap().numbers().unwrap();
    assert_eq!(last, [f64::from(row_element(602))]);
}

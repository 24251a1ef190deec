//! Random structures that the parsers of this crate read back, and a complete file.

mod chunk_tree;
mod complete_file;
mod strategies;

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::hdf5::encode::attribute::AttributeMessage;
use crate::hdf5::encode::fill_value::FillValue;
use crate::hdf5::encode::link::{LinkInformation, LinkMessage};
use crate::hdf5::encode::object_header::ObjectHeader;
use crate::hdf5::encode::superblock::Superblock;
use crate::hdf5::encode::tests::strategies::{
    charset, converted_datatype, datatype_tree, plain_datatype, shape, text,
};
use crate::hdf5::file::caches::Caches;
use crate::hdf5::file::number_form::Width;
use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::message::data_layout::{ChunkIndexKind, ChunkedLayout, DataLayout};
use crate::hdf5::message::kind;
use crate::hdf5::shared::SharedMessages;
use crate::hdf5::testing::{at, file};
use crate::hdf5::{file as parsed_file, message as parsed, object_header as parsed_header};
use crate::model::array::Fill;
use crate::model::{Datatype, LinkTarget, NodeId};
use crate::source::memory::MemorySource;
use crate::wire::Cursor;

fn cursor(message: &Message) -> Cursor<'_> {
    Cursor::new(message.data(), 0, "test")
}

fn parse_datatype(message: &Message) -> Result<Datatype> {
    let width = Width::new(8).unwrap();
    parsed::datatype::read(&mut cursor(message), width)
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
        name in text(1..50),
        charset in charset(),
        datatype in datatype_tree(plain_datatype()).prop_filter("small", |one| one.size < 2000),
        shape in shape(3, 2),
        byte in any::<u8>(),
    ) {
        let own = datatype::encode(&datatype).unwrap();
        let metadata = file([]);
        let elements = vec![byte; datatype.size as usize * shape.elements().unwrap() as usize];
        let message = attribute::encode(&AttributeMessage {
            name: &name,
            charset,
            datatype: &own,
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

#[test]
fn infos_are_read_back() {
    let compact = |message: &Message, order_bytes| {
        let mut cursor = cursor(message);
        parsed::on_heap::DenseStorageInfo::read(&file([]), order_bytes, &mut cursor)
    };
    assert_eq!(compact(&link::encode_info(3), 8), Ok(None));
    assert_eq!(compact(&attribute::encode_info(3), 2), Ok(None));
}

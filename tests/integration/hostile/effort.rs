//! Structures of megabytes, each within its limits, that a naive request would read thousands of
//! times.

use super::answers::GOOD;
use super::hdf5::*;
use super::requests::{costs_little, many, old_group_of};
use super::values::{attribute_record, with_dense_attributes};

/// The response for a dataset with the bytes `readable`.
const READABLE: &str = "file of 8 bytes: [114, 101, 97, …]";

/// The maximum size of a heap block.
const BLOCK: u64 = 16 << 20;

/// Yields the IDs of an object of sixty bytes in each of these blocks, which are identified by
/// their numbers in the heap.
fn ids(blocks: &[u64], within: impl Fn(u64) -> u64) -> impl Iterator<Item = Vec<u8>> {
    let ids: Vec<Vec<u8>> = blocks
        .iter()
        .map(|number| heap_id(number * BLOCK + within(*number), 60))
        .collect();
    ids.into_iter().cycle().take(many(60_000))
}

/// Returns a group `bad` whose links have these hashes, and these IDs in the heap.
fn with_dense_links(
    mut file: Hdf5,
    heap: u64,
    links: impl Iterator<Item = (u32, Vec<u8>)>,
) -> Vec<u8> {
    let records: Vec<Vec<u8>> = links
        .map(|(hash, id)| [&hash.to_le_bytes(), &id[..7]].concat())
        .collect();
    let mut tree = Btree2 {
        record_type: 5,
        node_size: 1 << 20,
        record_size: 11,
        depth: 0,
        root: 0,
        used: records.len() as u16,
        total: records.len() as u64,
    };
    tree.root = file.put(&tree.leaf(&records.concat()));
    let tree = file.put(&tree.header());
    let bad = file.put(&dense_group(heap, tree));
    file.beside_good(bad)
}

/// Links and attributes in one damaged block, which must be read completely to detect the damage.
#[test]
fn a_damaged_block_of_sixteen_mebibytes() {
    let spoilt = || {
        let mut file = Hdf5::new();
        let block = file.put(&vec![7; BLOCK as usize]);
        let heap = file.put(&FractalHeap::small(BLOCK, block).header());
        (file, heap, ids(&[0], |_| 4096))
    };
    let (file, heap, ids) = spoilt();
    let timed = costs_little(with_dense_links(file, heap, (0..).zip(ids)));
    let damaged = "error: fractal heap direct block: wrong signature";
    let listed = format!("directory: ; {damaged}*");
    timed.tree.answers(&[("bad", &listed), GOOD]);
    let (file, heap, ids) = spoilt();
    let records = (0..).zip(ids);
    let records = records.map(|(i, id)| attribute_record(&id, i, i)).collect();
    let timed = costs_little(with_dense_attributes(file, heap, records));
    let attributes = timed.tree.attributes_line("bad");
    assert!(attributes.starts_with(damaged), "{attributes}");
    timed.tree.answers(&[GOOD]);
}

/// More valid blocks than the cache can keep. The objects alternate between them, so each object
/// would read its block again. The blocks overlap in the file.
#[test]
fn four_blocks_of_sixteen_mebibytes_in_turn() {
    const APART: u64 = 64;
    const OBJECT: u64 = 4096;
    let sound = |object: &[u8]| {
        let mut file = Hdf5::new();
        file.put_bytes(b"readable");
        let heap = file.next();
        let shape = |root| FractalHeap {
            rows: 1,
            most_direct: BLOCK,
            ..FractalHeap::small(BLOCK, root)
        };
        file.put(&shape(0).header());
        let mut blocks = vec![0; (BLOCK + 4 * APART) as usize];
        for number in 0..4 {
            let begin = (number * APART) as usize;
            let mut prefix = direct_block(heap, DIRECT_PREFIX, &[]);
            // A block contains its own offset in the heap.
            let place = ((number * BLOCK) as u32).to_le_bytes();
            prefix[DIRECT_PREFIX as usize - 4..].copy_from_slice(&place);
            blocks[begin..begin + prefix.len()].copy_from_slice(&prefix);
        }
        let at = OBJECT as usize;
        blocks[at..at + object.len()].copy_from_slice(object);
        let first = file.put(&blocks);
        let children: Vec<u64> = (0..4).map(|number| first + number * APART).collect();
        let prefix = [&b"FHIB\0"[..], &heap.to_le_bytes(), &[0; 4]].concat();
        let root = file.put(&sealed([prefix, words(&children)].concat()));
        file.put_at(heap, &shape(root).header());
        let ids = ids(&[0, 1, 2, 3], |number| OBJECT - number * APART);
        (file, heap, ids)
    };
    // The target of the link is before the heap.
    let target = Hdf5::new().put_bytes(b"readable");
    let mut link = link_body(b"name", 0, &target.to_le_bytes());
    link.resize(60, 0);
    let hash = h5fs_reader::wire::checksum::lookup3(b"name");
    let (file, heap, ids) = sound(&link);
    let timed = costs_little(with_dense_links(file, heap, ids.map(|id| (hash, id))));
    timed
        .tree
        .answers(&[("bad", "directory: name*"), ("bad/name", READABLE)]);
    timed.tree.answers(&[GOOD]);
    let mut body = attribute(b"name", &byte_type(), &[], b"v");
    body.resize(60, 0);
    let (file, heap, ids) = sound(&body);
    let records = (0..).zip(ids);
    let records = records.map(|(i, id)| attribute_record(&id, i, hash));
    let timed = costs_little(with_dense_attributes(file, heap, records.collect()));
    let value = timed.tree.attribute("bad", "user.name");
    assert_eq!(value, Ok("118".to_owned()), "v");
    timed.tree.answers(&[GOOD]);
}

/// Objects with a reference count of two, so that their paths are searched. All headers continue in
/// the same block of fifteen mebibytes.
#[test]
fn sixty_thousand_headers_of_fifteen_mebibytes() {
    let count = 60_000;
    let mut file = Hdf5::new();
    let block = messages_1(&vec![Message(0, 0, vec![0; 60_000]); 260]);
    let more = continuation(file.put(&block), block.len() as u64);
    let datatype = Message(kind::DATATYPE, 0, byte_type());
    let mut object = header_1(&[dataspace(&[1]), datatype, contiguous(UNDEFINED, 1), more]);
    object[4] = 2; // reference count
    let apart = object.len() as u64;
    let first = file.put(&object.repeat(count));
    let names: Vec<u8> = (0..count)
        .flat_map(|i| format!("{i:07}\0").into_bytes())
        .collect();
    let names = [&[0; 8], &names[..]].concat();
    let bad = old_group_of(&mut file, &names, count, |i| {
        (8 + 8 * i, first + i * apart, 0)
    });
    let timed = costs_little(file.beside_good(bad));
    let names = "directory: 0000000, 0000001, 0000002, …";
    timed.tree.answers(&[("bad", names), GOOD]);
}

//! Writes HDF5 files structure by structure, with any sizes, counts and addresses.
//!
//! Addresses and lengths have eight bytes. A block is a sequence of bytes. [`Hdf5`] appends blocks
//! and returns their addresses. Checksums are correct unless a test changes them.

use h5fs_reader::wire::checksum::lookup3;

/// The undefined address.
pub(crate) const UNDEFINED: u64 = u64::MAX;

/// Message types.
pub(crate) mod kind {
    pub(crate) const DATASPACE: u8 = 1;
    pub(crate) const LINK_INFO: u8 = 2;
    pub(crate) const DATATYPE: u8 = 3;
    pub(crate) const FILL_VALUE: u8 = 5;
    pub(crate) const LINK: u8 = 6;
    pub(crate) const EXTERNAL_FILES: u8 = 7;
    pub(crate) const LAYOUT: u8 = 8;
    pub(crate) const GROUP_INFO: u8 = 10;
    pub(crate) const FILTERS: u8 = 11;
    pub(crate) const ATTRIBUTE: u8 = 12;
    pub(crate) const CONTINUATION: u8 = 16;
    pub(crate) const SYMBOL_TABLE: u8 = 17;
    pub(crate) const DRIVER_INFO: u8 = 20;
    pub(crate) const ATTRIBUTE_INFO: u8 = 21;
    pub(crate) const REFERENCE_COUNT: u8 = 22;
    pub(crate) const CACHE_IMAGE: u8 = 24;
}

/// A header message: type, flags, body.
#[derive(Debug, Clone)]
pub(crate) struct Message(pub(crate) u8, pub(crate) u8, pub(crate) Vec<u8>);

/// A file to which blocks are appended.
#[derive(Debug, Clone)]
pub(crate) struct Hdf5(pub(crate) Vec<u8>);

/// Address of the bytes `some` in each file with a version 2 superblock, for datasets that need no
/// other data.
pub(crate) const SOME: u64 = 88;

impl Hdf5 {
    /// Creates a file with space for a superblock.
    pub(crate) fn new() -> Self {
        Hdf5([&[0; SOME as usize][..], b"some", &[0; 4]].concat())
    }

    /// Returns the address of the next block.
    pub(crate) fn next(&self) -> u64 {
        self.0.len().next_multiple_of(8) as u64
    }

    /// Appends a block. Returns its address.
    pub(crate) fn put(&mut self, block: &[u8]) -> u64 {
        let at = self.next();
        self.0.resize(at as usize, 0);
        self.0.extend_from_slice(block);
        at
    }

    /// Writes a block into reserved space.
    pub(crate) fn put_at(&mut self, at: u64, block: &[u8]) {
        let at = at as usize;
        self.0[at..at + block.len()].copy_from_slice(block);
    }

    /// Returns the file with a version 2 superblock and the root group at `root`.
    pub(crate) fn rooted(mut self, root: u64) -> Vec<u8> {
        let end = self.0.len() as u64;
        self.put_at(0, &superblock_2(2, 0, UNDEFINED, end, root));
        self.0
    }

    /// Returns the file with a version 0 superblock.
    pub(crate) fn rooted_old(mut self, root: u64) -> Vec<u8> {
        let end = self.0.len() as u64;
        self.put_at(0, &superblock_0(end, UNDEFINED, root));
        self.0
    }

    /// Puts a new-style group with its links in its header.
    pub(crate) fn put_group(&mut self, links: &[(&[u8], u64)]) -> u64 {
        let messages: Vec<Message> = links
            .iter()
            .map(|(name, at)| hard_link(name, *at))
            .collect();
        self.put(&group(&messages))
    }

    /// Puts a dataset of bytes with contiguous storage.
    pub(crate) fn put_bytes(&mut self, content: &[u8]) -> u64 {
        let data = self.put(content);
        let count = content.len() as u64;
        self.put(&dataset(
            &[count],
            &byte_type(),
            contiguous(data, count),
            &[],
        ))
    }

    /// Puts a dataset of `count` bytes in the raw file `name`.
    pub(crate) fn put_in_raw_file(&mut self, name: &str, count: u64) -> u64 {
        let names = self.put(&[&[0; 8], name.as_bytes(), &[0; 8]].concat());
        let heap = self.put(&local_heap(16 + name.len() as u64, names));
        let head = [vec![1, 0, 0, 0, 1, 0, 1, 0], words(&[heap, 8, 0, count])].concat();
        let list = Message(kind::EXTERNAL_FILES, 0, head);
        let layout = contiguous(UNDEFINED, count);
        self.put(&dataset(&[count], &byte_type(), layout, &[list]))
    }

    /// Returns the file. Its root contains the dataset `good`, with the bytes `goodness`, and the
    /// object at address `bad` with the name `bad`.
    pub(crate) fn beside_good(mut self, bad: u64) -> Vec<u8> {
        let good = self.put_bytes(b"goodness");
        let root = self.put_group(&[(b"bad", bad), (b"good", good)]);
        self.rooted(root)
    }
}

/// Returns a file with this header, or other bytes, as the object `bad`.
pub(crate) fn with_bad(header: &[u8]) -> Vec<u8> {
    let mut file = Hdf5::new();
    let bad = file.put(header);
    file.beside_good(bad)
}

/// Returns a file with a dataset `bad` of these messages. If dataspace, datatype or layout are not
/// among them, adds valid ones.
pub(crate) fn with_bad_dataset(messages: Vec<Message>) -> Vec<u8> {
    let mut file = Hdf5::new();
    let data = file.put(&[7; 64]);
    let sound = [
        dataspace(&[64]),
        Message(kind::DATATYPE, 0, byte_type()),
        contiguous(data, 64),
    ];
    let mut all = messages;
    for message in sound {
        if all.iter().all(|own| own.0 != message.0) {
            all.push(message);
        }
    }
    let bad = file.put(&header_2(&all));
    file.beside_good(bad)
}

pub(crate) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Appends the checksum to a block.
pub(crate) fn sealed(mut block: Vec<u8>) -> Vec<u8> {
    block.extend(lookup3(&block).to_le_bytes());
    block
}

fn short(number: usize) -> [u8; 2] {
    u16::try_from(number).expect("sixteen bits").to_le_bytes()
}

fn long(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("32 bits").to_le_bytes()
}

// ------------------------------------------------------------------ superblocks and headers

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Returns a superblock of version 2 or 3.
pub(crate) fn superblock_2(version: u8, flags: u8, extension: u64, end: u64, root: u64) -> Vec<u8> {
    let sizes = [version, 8, 8, flags];
    sealed([&SIGNATURE[..], &sizes, &words(&[0, extension, end, root])].concat())
}

/// Returns a superblock of version 0.
pub(crate) fn superblock_0(end: u64, driver: u64, root: u64) -> Vec<u8> {
    let sizes = [0, 0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0];
    let addresses = words(&[0, UNDEFINED, end, driver, 0, root, 0, 0, 0]);
    [&SIGNATURE[..], &sizes, &addresses].concat()
}

/// Returns an object header of version 2.
pub(crate) fn header_2(messages: &[Message]) -> Vec<u8> {
    let body = messages_2(messages);
    sealed([&b"OHDR\x02\x02"[..], &long(body.len()), &body].concat())
}

/// Returns a continuation block of a version 2 header.
pub(crate) fn continuation_2(messages: &[Message]) -> Vec<u8> {
    sealed([&b"OCHK"[..], &messages_2(messages)].concat())
}

fn messages_2(messages: &[Message]) -> Vec<u8> {
    let mut body = Vec::new();
    for Message(kind, flags, data) in messages {
        body.push(*kind);
        body.extend(short(data.len()));
        body.push(*flags);
        body.extend(data);
    }
    body
}

/// Returns an object header of version 1.
pub(crate) fn header_1(messages: &[Message]) -> Vec<u8> {
    let body = messages_1(messages);
    let prefix = [
        &[1, 0][..],
        &short(messages.len()),
        &long(1),
        &long(body.len()),
    ]
    .concat();
    [prefix, vec![0; 4], body].concat()
}

/// Returns the messages of a version 1 header, or of its continuation.
pub(crate) fn messages_1(messages: &[Message]) -> Vec<u8> {
    let mut body = Vec::new();
    for Message(kind, flags, data) in messages {
        let padded = data.len().next_multiple_of(8);
        body.extend([*kind, 0]);
        body.extend(short(padded));
        body.extend([*flags, 0, 0, 0]);
        body.extend(data);
        body.resize(body.len() + padded - data.len(), 0);
    }
    body
}

pub(crate) fn continuation(at: u64, length: u64) -> Message {
    Message(kind::CONTINUATION, 0, words(&[at, length]))
}

// ------------------------------------------------------------------ groups

/// Returns the header of a new-style group.
pub(crate) fn group(links: &[Message]) -> Vec<u8> {
    let mut messages = vec![
        Message(
            kind::LINK_INFO,
            0,
            [vec![0, 0], words(&[UNDEFINED, UNDEFINED])].concat(),
        ),
        Message(kind::GROUP_INFO, 0, vec![0, 0]),
    ];
    messages.extend_from_slice(links);
    header_2(&messages)
}

/// Returns the header of a group whose links are in the heap.
pub(crate) fn dense_group(heap: u64, index: u64) -> Vec<u8> {
    let info = [vec![0, 0], words(&[heap, index])].concat();
    header_2(&[Message(kind::LINK_INFO, 0, info)])
}

pub(crate) fn link_body(name: &[u8], link_type: u8, value: &[u8]) -> Vec<u8> {
    let name_length = u32::try_from(name.len()).expect("32 bits").to_le_bytes();
    // Flags: the link type is present, and the name's length has four bytes.
    [&[1, 0x0a, link_type][..], &name_length, name, value].concat()
}

pub(crate) fn hard_link(name: &[u8], at: u64) -> Message {
    Message(kind::LINK, 0, link_body(name, 0, &at.to_le_bytes()))
}

pub(crate) fn soft_link(name: &[u8], text: &[u8]) -> Message {
    let value = [&short(text.len())[..], text].concat();
    Message(kind::LINK, 0, link_body(name, 1, &value))
}

pub(crate) fn external_link(name: &[u8], file: &[u8], path: &[u8]) -> Message {
    let value = [&[0][..], file, &[0], path, &[0]].concat();
    let value = [&short(value.len())[..], &value].concat();
    Message(kind::LINK, 0, link_body(name, 64, &value))
}

/// Returns the header of an old-style group.
pub(crate) fn old_group(btree: u64, heap: u64) -> Vec<u8> {
    header_1(&[Message(kind::SYMBOL_TABLE, 0, words(&[btree, heap]))])
}

/// Returns a node of a group's B-tree. `used` is its field for the number of entries.
pub(crate) fn group_node(level: u8, used: u16, keys_and_children: &[u64]) -> Vec<u8> {
    let prefix = [&b"TREE\0"[..], &[level], &used.to_le_bytes()].concat();
    [
        prefix,
        words(&[UNDEFINED, UNDEFINED]),
        words(keys_and_children),
    ]
    .concat()
}

/// Returns a node of a chunked dataset's B-tree. The keys are stored size, mask, and offsets.
pub(crate) fn chunk_node(level: u8, used: u16, keys_and_children: &[u64]) -> Vec<u8> {
    let mut node = group_node(level, used, keys_and_children);
    node[4] = 1;
    node
}

/// Returns a symbol table node. `symbols` is its field for the number of entries. Each entry is the
/// offset of the name, the address of the object, and the cache type.
pub(crate) fn symbols(symbols: u16, entries: &[(u64, u64, u32)]) -> Vec<u8> {
    let mut node = [&b"SNOD\x01\0"[..], &symbols.to_le_bytes()].concat();
    for (name, object, cached) in entries {
        node.extend(words(&[*name, *object]));
        node.extend(cached.to_le_bytes());
        node.extend([0; 20]);
    }
    node
}

/// Returns the header of a local heap with `size` bytes at `data`.
pub(crate) fn local_heap(size: u64, data: u64) -> Vec<u8> {
    [b"HEAP\0\0\0\0".to_vec(), words(&[size, UNDEFINED, data])].concat()
}

/// The fields of a version 2 B-tree header.
pub(crate) struct Btree2 {
    pub(crate) record_type: u8,
    pub(crate) node_size: u32,
    pub(crate) record_size: u16,
    pub(crate) depth: u16,
    pub(crate) root: u64,
    pub(crate) used: u16,
    pub(crate) total: u64,
}

impl Btree2 {
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut block = [&b"BTHD\0"[..], &[self.record_type]].concat();
        block.extend(self.node_size.to_le_bytes());
        block.extend(self.record_size.to_le_bytes());
        block.extend(self.depth.to_le_bytes());
        block.extend([100, 40]);
        block.extend(self.root.to_le_bytes());
        block.extend(self.used.to_le_bytes());
        block.extend(self.total.to_le_bytes());
        sealed(block)
    }

    pub(crate) fn leaf(&self, records: &[u8]) -> Vec<u8> {
        sealed([&b"BTLF\0"[..], &[self.record_type], records].concat())
    }
}

/// A fractal heap whose root is its only block.
pub(crate) struct FractalHeap {
    pub(crate) width: u16,
    pub(crate) block_size: u64,
    pub(crate) most_direct: u64,
    pub(crate) bits: u16,
    pub(crate) id_length: u16,
    pub(crate) huge: u64,
    pub(crate) root: u64,
    pub(crate) rows: u16,
    /// Length of the longest object. The field of an object's length in a heap ID has the minimum
    /// number of bytes for this length.
    pub(crate) longest: u32,
}

impl FractalHeap {
    /// Creates a heap with one block of `block_size` bytes at `root`.
    pub(crate) fn small(block_size: u64, root: u64) -> Self {
        FractalHeap {
            width: 4,
            block_size,
            most_direct: block_size.max(65536),
            bits: 32,
            id_length: 8,
            huge: UNDEFINED,
            root,
            rows: 0,
            longest: 4096,
        }
    }

    pub(crate) fn header(&self) -> Vec<u8> {
        let mut block = b"FRHP\0".to_vec();
        block.extend(self.id_length.to_le_bytes());
        block.extend([0, 0, 0]); // no filters, no flags
        block.extend(self.longest.to_le_bytes());
        block.extend(words(&[0, self.huge, 0, UNDEFINED]));
        block.extend(words(&[0; 8]));
        block.extend(self.width.to_le_bytes());
        block.extend(words(&[self.block_size, self.most_direct]));
        block.extend(self.bits.to_le_bytes());
        block.extend(1_u16.to_le_bytes());
        block.extend(self.root.to_le_bytes());
        block.extend(self.rows.to_le_bytes());
        sealed(block)
    }
}

/// Length of a direct block before its objects, if heap offsets have four bytes.
pub(crate) const DIRECT_PREFIX: u64 = 4 + 1 + 8 + 4;

/// Returns the direct block of the heap at `heap`, at offset 0, padded to `size` bytes.
pub(crate) fn direct_block(heap: u64, size: u64, objects: &[u8]) -> Vec<u8> {
    let mut block = [&b"FHDB\0"[..], &heap.to_le_bytes(), &[0; 4], objects].concat();
    block.resize(size as usize, 0);
    block
}

/// Returns the eight-byte ID of an object of `length` bytes at heap offset `offset`.
pub(crate) fn heap_id(offset: u64, length: u64) -> Vec<u8> {
    [
        &[0][..],
        &offset.to_le_bytes()[..4],
        &length.to_le_bytes()[..3],
    ]
    .concat()
}

// ------------------------------------------------------------------ datasets

/// Returns the header of a dataset.
pub(crate) fn dataset(dims: &[u64], datatype: &[u8], layout: Message, more: &[Message]) -> Vec<u8> {
    let mut messages = vec![
        dataspace(dims),
        Message(kind::DATATYPE, 0, datatype.to_vec()),
        layout,
    ];
    messages.extend_from_slice(more);
    header_2(&messages)
}

pub(crate) fn dataspace(dims: &[u64]) -> Message {
    Message(kind::DATASPACE, 0, extent(dims))
}

/// Returns the body of a dataspace message.
pub(crate) fn extent(dims: &[u64]) -> Vec<u8> {
    let rank = u8::try_from(dims.len()).expect("a rank");
    [vec![2, rank, 0, u8::from(rank > 0)], words(dims)].concat()
}

/// Returns the type of unsigned bytes.
pub(crate) fn byte_type() -> Vec<u8> {
    class_type(0x10, 0, 1, &[0, 0, 8, 0])
}

/// Returns a datatype: version and class, bit field, size, properties.
pub(crate) fn class_type(class: u8, bits: u32, size: u32, properties: &[u8]) -> Vec<u8> {
    [
        &[class][..],
        &bits.to_le_bytes()[..3],
        &size.to_le_bytes(),
        properties,
    ]
    .concat()
}

/// Returns the type of variable-length sequences of bytes.
pub(crate) fn sequence_type() -> Vec<u8> {
    class_type(0x19, 0, 16, &byte_type())
}

/// Returns the type of variable-length strings, which end at the first NUL.
pub(crate) fn string_type() -> Vec<u8> {
    class_type(0x19, 1, 16, &byte_type())
}

pub(crate) fn contiguous(at: u64, size: u64) -> Message {
    Message(kind::LAYOUT, 0, [vec![3, 1], words(&[at, size])].concat())
}

/// Returns a layout with a version 1 B-tree of chunks. `dims` ends with the element size.
pub(crate) fn chunked(btree: u64, dims: &[u32]) -> Message {
    let rank = u8::try_from(dims.len()).expect("a rank");
    let mut body = [vec![3, 2, rank], words(&[btree])].concat();
    body.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    Message(kind::LAYOUT, 0, body)
}

/// Returns a version 4 layout of chunks. `dims` has four bytes per dimension and ends with the
/// element size. `index` is the index type with its parameters.
pub(crate) fn chunked_4(flags: u8, dims: &[u32], index: &[u8], at: u64) -> Message {
    let rank = u8::try_from(dims.len()).expect("a rank");
    let mut body = vec![4, 2, flags, rank, 4];
    body.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    body.extend(index);
    body.extend(at.to_le_bytes());
    Message(kind::LAYOUT, 0, body)
}

/// Returns a filter pipeline of pairs (number, parameters).
pub(crate) fn filters(filters: &[(u16, &[u32])]) -> Message {
    let count = u8::try_from(filters.len()).expect("a count");
    let mut body = vec![2, count];
    for (id, parameters) in filters {
        body.extend(id.to_le_bytes());
        if *id >= 256 {
            body.extend([0, 0]); // no name
        }
        body.extend([0, 0]);
        body.extend(short(parameters.len()));
        body.extend(parameters.iter().flat_map(|number| number.to_le_bytes()));
    }
    Message(kind::FILTERS, 0, body)
}

/// Puts a one-dimensional dataset with one filtered chunk of `decoded` bytes, stored as `stored`.
/// Returns the address of its header.
pub(crate) fn one_chunk(file: &mut Hdf5, pipeline: Message, decoded: u32, stored: &[u8]) -> u64 {
    let data = file.put(stored);
    let index = [&[1][..], &words(&[stored.len() as u64]), &[0; 4]].concat();
    let layout = chunked_4(2, &[decoded, 1], &index, data);
    file.put(&dataset(
        &[u64::from(decoded)],
        &byte_type(),
        layout,
        &[pipeline],
    ))
}

/// Returns the body of an attribute message.
pub(crate) fn attribute(name: &[u8], datatype: &[u8], dims: &[u64], value: &[u8]) -> Vec<u8> {
    let extent = extent(dims);
    let sizes = [name.len() + 1, datatype.len(), extent.len()];
    let mut body = vec![3, 0];
    body.extend(sizes.iter().flat_map(|&size| short(size)));
    body.push(0);
    [&body, name, &[0], datatype, &extent, value].concat()
}

/// Returns a global heap collection with `size` in its size field. Each object has its index.
pub(crate) fn collection(size: u64, objects: &[(u16, u64, &[u8])]) -> Vec<u8> {
    let mut block = [b"GCOL\x01\0\0\0".to_vec(), words(&[size])].concat();
    for (index, length, content) in objects {
        block.extend(index.to_le_bytes());
        block.extend([0; 6]);
        block.extend(length.to_le_bytes());
        block.extend_from_slice(content);
        block.resize(block.len().next_multiple_of(8), 0);
    }
    block
}

/// Returns an element that points to object `index` of a collection.
pub(crate) fn pointer(length: u32, collection: u64, index: u32) -> Vec<u8> {
    [
        &length.to_le_bytes()[..],
        &collection.to_le_bytes(),
        &index.to_le_bytes(),
    ]
    .concat()
}

use std::sync::Arc;

use super::*;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::memory::cancel::CancelToken;
use crate::model::array::{Mapping, Storage};
use crate::model::extras::Mask;
use crate::model::link::LinkTarget;
use crate::model::region::RegionRuns;
use crate::model::{Array, AsdfExtras, Container, NodeId, NodeKind, Shape};
use crate::source::local::audience::Readers;
use crate::source::memory::MemorySource;
use crate::source::neighbours::Neighbours;
use crate::source::neighbours::policy::OtherFilesPolicy;
use crate::wire::to_u64;

/// Returns a block with the given compression, stored bytes, decoded length and checksum.
fn block(compression: &[u8; 4], stored: &[u8], decoded: usize, checksum: [u8; 16]) -> Vec<u8> {
    let mut bytes = b"\xd3BLK\x00\x30\0\0\0\0".to_vec();
    bytes.extend(compression);
    for size in [stored.len(), stored.len(), decoded] {
        bytes.extend(u64::try_from(size).unwrap().to_be_bytes());
    }
    bytes.extend(checksum);
    bytes.extend(stored);
    bytes
}

fn plain(content: &[u8]) -> Vec<u8> {
    block(&[0; 4], content, content.len(), [0; 16])
}

/// Returns the bytes of a file with this tree.
fn bytes(tree: &str, blocks: &[Vec<u8>]) -> Vec<u8> {
    let header = "#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n";
    let head = format!("{header}--- !core/asdf-1.1.0\n{tree}\n...\n");
    [head.into_bytes(), blocks.concat()].concat()
}

fn open(tree: &str, blocks: &[Vec<u8>]) -> File {
    let source = Arc::new(MemorySource::new(bytes(tree, blocks)));
    File::open(
        source,
        Arc::new(Neighbours::unavailable()),
        &Caches::default(),
    )
    .unwrap()
}

fn id(file: &File, name: &str) -> NodeId {
    let link = file.link(file.root(), name.as_bytes()).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else {
        panic!("{name} is a link");
    };
    id
}

fn array(file: &File, name: &str) -> Arc<Array> {
    match &file.node(id(file, name)).unwrap().kind {
        NodeKind::Array(array) => Arc::clone(array),
        other => panic!("{name} is {other:?}"),
    }
}

/// Returns the elements, gathered one by one.
fn read(array: &Array) -> Result<Vec<u8>> {
    let length = usize::try_from(array.byte_length()?).unwrap();
    match array.storage.as_ref().map_err(Clone::clone)? {
        Storage::Extents(extents) => {
            let mut bytes = vec![0; length];
            extents[0]
                .source
                .read_at(extents[0].extent.start(), &mut bytes)?;
            Ok(bytes)
        }
        Storage::Encoded(pieces) => {
            let count = pieces.byte_length().div_ceil(pieces.piece_bytes()?);
            let piece = |number| pieces.decode_alone(number).map(Buffer::into_vec);
            let pieces: Result<Vec<_>> = (0..count).map(piece).collect();
            Ok(pieces?.concat())
        }
        Storage::Strided(strided) => {
            let base = read(&strided.base)?;
            let mut starts = vec![i64::try_from(strided.offset).unwrap()];
            for (&dim, &stride) in array.shape.dims().iter().zip(&strided.strides) {
                let steps = |start| (0..dim).map(move |step| start + stride * step.cast_signed());
                starts = starts.into_iter().flat_map(steps).collect();
            }
            let size = usize::try_from(array.datatype.size).unwrap();
            let element = |start| {
                let start = usize::try_from(start).unwrap();
                base[start..start + size].to_vec()
            };
            Ok(starts.into_iter().flat_map(element).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn read_all(array: &Arc<Array>, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    read(array).map(|bytes| visit(&bytes))
}

fn elements(file: &File, name: &str) -> Result<Vec<u8>> {
    read(&array(file, name))
}

#[test]
fn ndarrays_select_bytes_of_blocks() {
    let nd = "!core/ndarray-1.1.0 {byteorder: big, datatype:";
    let tree = format!(
        "a: {nd} uint16, source: 0, shape: [2, 2]}}\n\
         t: {nd} int8, source: 0, shape: [2, 3], strides: [1, 2]}}\n\
         r: {nd} uint16, source: 0, shape: [2], offset: 6, strides: [-3]}}\n\
         s: {nd} int16, source: -1, shape: ['*', 3]}}\n\
         out: {nd} uint16, source: 0, shape: [2, 2], offset: 2}}\n\
         none: {nd} uint16, source: 2, shape: [1]}}\n"
    );
    let file = open(&tree, &[plain(b"abcdefgh"), plain(b"0123456789abcdef")]);
    assert_eq!(elements(&file, "a"), Ok(b"abcdefgh".to_vec()));
    assert_eq!(elements(&file, "t"), Ok(b"acebdf".to_vec()));
    assert_eq!(elements(&file, "r"), Ok(b"ghde".to_vec()));
    let open_ended = array(&file, "s");
    let (dims, max) = (vec![2, 3], vec![None, Some(3)]);
    assert_eq!(open_ended.shape, Shape::Simple { dims, max });
    assert_eq!(read(&open_ended), Ok(b"0123456789ab".to_vec()));
    assert!(matches!(elements(&file, "out"), Err(Error::Corrupt { .. })));
    assert!(matches!(
        elements(&file, "none"),
        Err(Error::Corrupt { .. })
    ));
}

/// Two chunks, each u32 big-endian length, u32 little-endian decoded length, LZ4 block of literals.
const LZ4: &[u8] = b"\0\0\0\x09\x04\0\0\0\x40abcd\0\0\0\x07\x02\0\0\0\x20ef";

#[test]
fn compressed_blocks_are_decoded_for_ndarrays() {
    let nd = "!core/ndarray-1.0.0 {byteorder: little, datatype: uint8,";
    let tree = format!(
        "whole: {nd} source: 0, shape: [6]}}\n\
         back: {nd} source: 0, shape: [3], offset: 5, strides: [-2]}}\n\
         unknown: {nd} source: 1, shape: [1]}}\n"
    );
    let lz4 = block(b"lz4\0", LZ4, 6, [0; 16]);
    let file = open(&tree, &[lz4, block(b"none", b"?", 1, [0; 16])]);
    assert_eq!(elements(&file, "whole"), Ok(b"abcdef".to_vec()));
    assert_eq!(elements(&file, "back"), Ok(b"fdb".to_vec()));
    assert!(matches!(
        elements(&file, "unknown"),
        Err(Error::Unsupported { .. })
    ));
    assert_eq!(
        read(&file.block_content(0).unwrap()),
        Ok(b"abcdef".to_vec())
    );
    assert_eq!(file.block_header(1).unwrap().compression, "none");
}

/// Expected MD5 checksums are from Python's hashlib.
#[test]
fn checksums_may_cover_stored_or_decoded_bytes() {
    let stored = [
        145, 182, 40, 8, 29, 113, 248, 71, 153, 31, 104, 73, 144, 138, 75, 130,
    ];
    let decoded = [
        232, 11, 80, 23, 9, 137, 80, 252, 88, 170, 216, 60, 140, 20, 151, 142,
    ];
    let file = open(
        "{}",
        &[
            block(b"lz4\0", LZ4, 6, stored),
            block(b"lz4\0", LZ4, 6, decoded),
            block(b"lz4\0", LZ4, 6, [7; 16]),
            block(b"lz4\0", LZ4, 6, [0; 16]),
        ],
    );
    let verified = |number| file.verify_block(number, &read_all);
    assert_eq!((verified(0), verified(1)), (Ok(()), Ok(())));
    assert!(matches!(verified(2), Err(Error::Corrupt { .. })));
    assert_eq!((verified(3), verified(4)), (Ok(()), Err(Error::NotFound)));
}

#[test]
fn scalar_files_contain_their_text() {
    let file = open("{i: 0x1F, s: 'it''s', n: ~, e: '', t: !x/y 1}", &[]);
    let text = |name: &str| {
        let link = file.link(file.root(), name.as_bytes()).unwrap().unwrap();
        let LinkTarget::Hard(id) = link.target else {
            panic!("{name} is a link");
        };
        let node = file.node(id).unwrap();
        match &node.kind {
            NodeKind::Scalar(scalar) => (
                String::from_utf8(scalar.file_text()).unwrap(),
                node.tag.clone(),
            ),
            other => panic!("{name} is {other:?}"),
        }
    };
    assert_eq!(text("i").0, "0x1F\n");
    assert_eq!(text("s").0, "it's\n");
    assert_eq!((text("n").0, text("e").0), (String::new(), "\n".to_owned()));
    assert_eq!(text("t").1.as_deref(), Some("tag:stsci.edu:asdf/x/y"));
}

#[test]
fn links_have_names_and_targets() {
    let tree =
        "{'a/b': &x {'': 1}, alias: *x, ref: {$ref: '#/a~1b/'}, other: {$ref: 'o%20p.asdf#/q'}}";
    let file = open(tree, &[]);
    let mut links = file.links(file.root()).unwrap();
    let mut paths = Vec::new();
    while let Some(link) = links.next().unwrap() {
        if !matches!(link.target, LinkTarget::Hard(_)) {
            let names = file.alias_path(&link.target).unwrap();
            paths.push((link.target.other_file_name().map(<[u8]>::to_vec), names));
        }
    }
    assert_eq!(links.position(), 4);
    let expected = [
        (None, vec![b"a/b".to_vec()]),
        (None, vec![b"a/b".to_vec(), Vec::new()]),
        (Some(b"o p.asdf".to_vec()), vec![b"q".to_vec()]),
    ];
    assert_eq!(paths, expected);
}

#[test]
fn blocks_are_shown_without_a_readable_tree() {
    let file = open("a: [1, 2", &[plain(b"content")]);
    let root = file.node(file.root()).unwrap();
    assert!(matches!(root.kind, NodeKind::Group));
    assert!(
        root.error
            .as_ref()
            .unwrap()
            .to_string()
            .contains("tree: line")
    );
    assert!(file.links(file.root()).unwrap().next().unwrap().is_none());
    assert_eq!(
        read(&file.block_content(0).unwrap()),
        Ok(b"content".to_vec())
    );
    assert!(file.tree_text().is_some());
}

#[test]
fn a_text_root_is_an_error_and_an_empty_root_is_not() {
    for (tree, is_tree) in [("words", false), ("7", false), ("~", true), ("", true)] {
        let file = open(tree, &[plain(b"content")]);
        let root = file.node(file.root()).unwrap();
        assert!(matches!(root.kind, NodeKind::Group), "{tree}");
        assert_eq!(root.error.is_none(), is_tree, "{tree}");
    }
}

#[test]
fn masks_are_numbers_or_ndarrays() {
    let nd = "!core/ndarray-1.1.0 {datatype: uint8, data: [1]";
    let tree = [
        format!("{{n: {nd}, mask: -9}}, a: {nd}, mask: {nd}}}}}, "),
        format!("r: {nd}, mask: {{$ref: '#/plain'}}}}, plain: {nd}}}}}"),
    ]
    .concat();
    let file = open(&tree, &[]);
    let mask = |name: &str| {
        let link = file.link(file.root(), name.as_bytes()).unwrap().unwrap();
        let LinkTarget::Hard(id) = link.target else {
            panic!("{name} is a link");
        };
        (file.mask(id).unwrap(), id)
    };
    assert!(matches!(mask("n").0, Some(Mask::Number(text)) if text == b"-9\n"));
    let Some(Mask::Node(inner)) = mask("a").0 else {
        panic!("an ndarray");
    };
    assert!(matches!(file.node(inner).unwrap().kind, NodeKind::Array(_)));
    assert!(matches!(mask("r").0, Some(Mask::Node(node)) if node == mask("plain").1));
    assert!(mask("plain").0.is_none());
}

/// Expected: NumPy's mask of what the asdf library reads, `[[False, True], [True, False]]`.
#[test]
fn inline_nulls_form_a_mask() {
    let nd = "!core/ndarray-1.1.0";
    let tree = format!(
        "{{n: {nd} {{datatype: int8, data: [[1, null], [~, 4]]}}, l: {nd} [1, null],
          z: {nd} {{datatype: int8, data: [1, ~], mask: ~}}}}"
    );
    let file = open(&tree, &[]);
    let mask = |name: &str| match file.mask(id(&file, name)).unwrap() {
        Some(Mask::Array(mask)) => match &mask.storage {
            Ok(Storage::Inline(bytes)) => (mask.shape.dims().to_vec(), bytes.to_vec()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(mask("n"), (vec![2, 2], vec![0, 1, 1, 0]));
    assert_eq!(mask("l"), (vec![2], vec![0, 1]));
    assert_eq!(mask("z"), (vec![2], vec![0, 1]));
    let array = array(&file, "n");
    assert!(matches!(&array.storage, Ok(Storage::Inline(bytes)) if **bytes == [1, 0, 0, 4]));
}

/// Returns a tree with a chunked ndarray of 2 × 3 numbers, whose chunks begin at `start` and are
/// `ndarray`.
fn chunked(chunks: &[(&str, &str)]) -> String {
    let chunk = |(start, ndarray): &(&str, &str)| {
        format!("!core/ndarray-chunk-1.0.0 {{start: {start}, ndarray: {ndarray}}}")
    };
    let chunks: Vec<String> = chunks.iter().map(chunk).collect();
    let chunks = chunks.join(", ");
    let shape = "shape: [2, 3], datatype: uint8";
    format!("{{c: !core/chunked-ndarray-1.0.0 {{{shape}, chunks: [{chunks}]}}}}")
}

#[test]
fn chunks_are_placed_at_their_start() {
    let row = "{source: 0, datatype: uint8, byteorder: big, shape: [1, 3]}";
    let open_ended = "{source: 0, datatype: uint8, byteorder: big, shape: ['*', 3]}";
    let tree = chunked(&[("[1, 0]", row), ("[0, 2]", "[[5]]"), ("[0, 0]", open_ended)]);
    let file = open(&tree, &[plain(b"abc")]);
    let node = file.node(id(&file, "c")).unwrap();
    let array = node.assembled_array.as_ref().unwrap();
    let Ok(Storage::Virtual(mappings)) = &array.storage else {
        panic!("{:?}", array.storage);
    };
    let runs = |mapping: Mapping| {
        let runs = RegionRuns::new(&mapping.region, array.shape.dims()).unwrap();
        (runs.run_at(0).unwrap().element, runs.selected_count())
    };
    let runs: Vec<_> = mappings.iter().map(runs).collect();
    assert_eq!(runs, [(3, 3), (2, 1), (0, 3)]);
    let source = mappings
        .get(0)
        .unwrap()
        .source
        .open(&CancelToken::default())
        .unwrap()
        .unwrap();
    assert_eq!(read(&source.array), Ok(b"abc".to_vec()));
}

#[test]
fn invalid_chunks_are_an_error_of_their_group() {
    let one = "{datatype: uint8, data: [[1]], shape: [1, 1]}";
    let cases = [
        (("[0, 3]", one), "is not inside its array"),
        (
            ("[18446744073709551615, 0]", one),
            "is not inside its array",
        ),
        (("[-1, 0]", one), "not a list of numbers"),
        (("[0]", one), "is not inside its array"),
        (("7", one), "not a list of numbers"),
        (("[0, 0]", "[7]"), "is not inside its array"),
        (("[0, 0]", "{$ref: '#/nowhere'}"), "without an ndarray"),
        (("[0, 0]", "{$ref: 'other.asdf#/x'}"), "without an ndarray"),
        (
            (
                "[0, 0]",
                "{source: 9, datatype: uint8, byteorder: big, shape: ['*', 3]}",
            ),
            "block 9",
        ),
    ];
    for (chunk, expected) in cases {
        let file = open(&chunked(&[("[0, 0]", one), chunk]), &[]);
        let node = file.node(id(&file, "c")).unwrap();
        assert!(node.assembled_array.is_none(), "{chunk:?}");
        let error = node.error.as_ref().expect(expected).to_string();
        assert!(error.contains(expected), "{chunk:?}: {error}");
        assert!(matches!(node.kind, NodeKind::Group));
    }
}

#[test]
fn a_repeated_long_chunk_is_rejected() {
    let numbers = vec!["1"; 20_000].join(", ");
    let chunks = format!(
        "&c {{start: [0], ndarray: [{numbers}]}}{}",
        ", *c".repeat(1000)
    );
    let tree = format!(
        "{{c: !core/chunked-ndarray-1.0.0 {{shape: [20000], datatype: int8, chunks: [{chunks}]}}}}"
    );
    let file = open(&tree, &[]);
    let node = file.node(id(&file, "c")).unwrap();
    let error = node.error.as_ref().unwrap();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

#[test]
fn a_large_inline_array_is_made_once() {
    let numbers = vec!["1"; 70_000].join(", ");
    let tree = format!("{{n: !core/ndarray-1.1.0 {{datatype: int8, data: [{numbers}]}}}}");
    let file = open(&tree, &[]);
    let id = id(&file, "n");
    assert!(Arc::ptr_eq(
        &file.node(id).unwrap(),
        &file.node(id).unwrap()
    ));
}

#[test]
fn an_invalid_ndarray_is_an_error_of_its_node() {
    let file = open(
        "{bad: !core/ndarray-1.1.0 {source: 0}, good: 1}",
        &[plain(b"x")],
    );
    let link = file.link(file.root(), b"bad").unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else {
        panic!("a link");
    };
    let node = file.node(id).unwrap();
    assert!(node.error.is_some() && node.tag.is_some());
    assert!(elements(&file, "bad").is_err());
}

#[test]
fn a_row_of_more_bytes_than_fit_64_bits_is_an_error() {
    let tree = "x: !core/ndarray-1.0.0\n  source: 0\n  datatype: int64\n  byteorder: little\n";
    let tree = format!("{tree}  shape: ['*', 4611686018427387904]\n");
    let file = open(&tree, &[plain(b"abcdefgh")]);
    let error = array(&file, "x").storage.as_ref().unwrap_err().clone();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

/// Returns the limit in the error of the entry `x`.
fn bound_of_x(tree: &str) -> u64 {
    let file = open(tree, &[plain(b"abcdefgh")]);
    let error = file.node(id(&file, "x")).unwrap().error.clone();
    match error {
        Some(Error::Limit { max, .. }) => max,
        other => panic!("{other:?}"),
    }
}

fn list(item: &str, count: usize) -> String {
    format!("[{}]", vec![item; count].join(", "))
}

#[test]
fn arrays_of_a_tree_are_bounded() {
    let array = |shape: &str, datatype: &str| {
        let stored = "source: 0, byteorder: little";
        let tree = format!("{{{stored}, shape: {shape}, datatype: {datatype}}}");
        bound_of_x(&format!("{{x: !core/ndarray-1.0.0 {tree}}}"))
    };
    let (rank, members) = (limits::RANK + 1, limits::DATATYPE_MEMBERS + 1);
    assert_eq!(array(&list("1", rank), "int8"), to_u64(limits::RANK));
    let most = to_u64(limits::DATATYPE_MEMBERS);
    assert_eq!(array("[1]", &list("int8", members)), most);
    let inline = format!("[ucs4, {}]", limits::INLINE_BYTES / 4 + 1);
    let inline = format!("{{data: [text], datatype: {inline}}}");
    let inline = format!("{{x: !core/ndarray-1.0.0 {inline}}}");
    assert_eq!(bound_of_x(&inline), limits::INLINE_BYTES);
}

#[test]
fn chunks_of_a_tree_are_bounded() {
    let chunked = |rank: usize, chunks: usize| {
        let shape = list("1", rank);
        let chunks = format!("[&c {{}}{}]", ", *c".repeat(chunks - 1));
        let fields = format!("{{shape: {shape}, datatype: int8, chunks: {chunks}}}");
        bound_of_x(&format!("{{x: !core/chunked-ndarray-1.0.0 {fields}}}"))
    };
    let most = to_u64(limits::VIRTUAL_MAPPINGS);
    assert_eq!(chunked(1, limits::VIRTUAL_MAPPINGS + 1), most);
    let chunks = limits::CHUNK_AXES / limits::RANK + 1;
    assert_eq!(chunked(limits::RANK, chunks), to_u64(limits::CHUNK_AXES));
}

#[test]
fn merged_entries_and_references_are_bounded() {
    let wide: String = (0..1025).map(|key| format!("{key}: 0, ")).collect();
    let merged = list("{<<: *wide}", 1024);
    let file = open(&format!("{{wide: &wide {{{wide}}}, x: {merged}}}"), &[]);
    let x = id(&file, "x");
    let error = |name: &str| {
        let link = file.link(x, name.as_bytes()).unwrap().unwrap();
        let LinkTarget::Hard(id) = link.target else {
            panic!("{name} is a link");
        };
        file.node(id).unwrap().error.clone()
    };
    let most = to_u64(limits::TREE_MERGED);
    assert_eq!(error("0"), None);
    assert!(matches!(error("1023"), Some(Error::Limit { max, .. }) if max == most));
    let long = "a".repeat(limits::TREE_PATH);
    let file = open(&format!("{{x: {{$ref: '#{long}'}}}}"), &[]);
    let link = file.link(file.root(), b"x").unwrap().unwrap();
    let most = to_u64(limits::TREE_PATH);
    assert!(matches!(link.target, LinkTarget::Damaged(Error::Limit { max, .. }) if max == most));
}

#[test]
fn other_files_are_opened_next_to_the_source() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("o p.asdf"),
        bytes("{}", &[plain(b"far")]),
    )
    .unwrap();
    let nd = "!core/ndarray-1.1.0 {byteorder: big, datatype: uint8, shape: [3], source:";
    let tree = format!("{{far: {nd} 'o%20p.asdf#'}}, up: {nd} '../o.asdf'}}, own: {nd} '#'}}}}");
    let source = MemorySource::new(bytes(&tree, &[plain(b"own")]));
    let path = directory.path().canonicalize().unwrap().join("source.asdf");
    let neighbours = Neighbours::new(
        &path,
        OtherFilesPolicy::WithinDirectory,
        None,
        Readers::Owner,
    );
    let file = File::open(Arc::new(source), Arc::new(neighbours), &Caches::default()).unwrap();
    assert_eq!(elements(&file, "far"), Ok(b"far".to_vec()));
    assert_eq!(elements(&file, "own"), Ok(b"own".to_vec()));
    assert!(matches!(elements(&file, "up"), Err(Error::Io { .. })));
    let verified = |name| file.verify_array(id(&file, name), &read_all);
    assert_eq!((verified("far"), verified("own")), (Ok(()), Ok(())));
    let compression = |name| file.compression_of(id(&file, name));
    assert_eq!(compression("far"), Ok(Some("none".to_owned())));
}

#[test]
fn a_block_of_another_file_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let damaged = block(b"lz4\0", LZ4, 6, [7; 16]);
    std::fs::write(directory.path().join("o.asdf"), bytes("{}", &[damaged])).unwrap();
    let nd = "!core/ndarray-1.1.0 {byteorder: big, datatype: uint8, shape: [6], source: o.asdf}";
    let source = MemorySource::new(bytes(&format!("far: {nd}"), &[]));
    let path = directory.path().canonicalize().unwrap().join("source.asdf");
    let neighbours = Neighbours::new(
        &path,
        OtherFilesPolicy::WithinDirectory,
        None,
        Readers::Owner,
    );
    let file = File::open(Arc::new(source), Arc::new(neighbours), &Caches::default()).unwrap();
    assert_eq!(elements(&file, "far"), Ok(b"abcdef".to_vec()));
    let far = id(&file, "far");
    assert!(matches!(
        file.verify_array(far, &read_all),
        Err(Error::Corrupt { .. })
    ));
    assert_eq!(file.compression_of(far), Ok(Some("lz4".to_owned())));
}

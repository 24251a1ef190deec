//! ASDF files that no library would write.

use h5fs_tree::{FileKind, Requests};

use super::tree::*;
use super::visit::{Bounds, filesystem, walk};

/// The fields of a block header.
pub(super) struct Block {
    pub(super) header_size: u16,
    pub(super) flags: u32,
    pub(super) compression: [u8; 4],
    pub(super) allocated: u64,
    pub(super) used: u64,
    pub(super) data_size: u64,
    pub(super) checksum: [u8; 16],
}

impl Block {
    /// Returns the header of an uncompressed block of `length` bytes.
    pub(super) fn plain(length: u64) -> Self {
        Block {
            header_size: 48,
            flags: 0,
            compression: [0; 4],
            allocated: length,
            used: length,
            data_size: length,
            checksum: [0; 16],
        }
    }

    pub(super) fn bytes(&self, stored: &[u8]) -> Vec<u8> {
        let mut bytes = b"\xd3BLK".to_vec();
        bytes.extend(self.header_size.to_be_bytes());
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend(self.compression);
        for size in [self.allocated, self.used, self.data_size] {
            bytes.extend(size.to_be_bytes());
        }
        bytes.extend(self.checksum);
        bytes.extend(stored);
        bytes
    }
}

const HEAD: &str = "#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n";

/// Returns a file with this tree and these blocks.
pub(crate) fn file(tree: impl AsRef<[u8]>, blocks: &[Vec<u8>]) -> Vec<u8> {
    let head = [HEAD.as_bytes(), b"--- !core/asdf-1.1.0\n"].concat();
    [&head, tree.as_ref(), b"\n...\n", &blocks.concat()].concat()
}

/// Returns a file with one block.
pub(crate) fn exploded(content: &[u8]) -> Vec<u8> {
    file("{}", &[Block::plain(content.len() as u64).bytes(content)])
}

/// Returns an ndarray of bytes in block `source`.
pub(super) fn ndarray(source: &str, shape: &str, more: &str) -> String {
    format!(
        "!core/ndarray-1.1.0 {{source: {source}, datatype: uint8, byteorder: little, shape: {shape}{more}}}"
    )
}

/// Returns a file with `good` in the first block, which contains `goodness`, and `bad`, with
/// further blocks.
fn beside(bad: &str, blocks: &[Vec<u8>]) -> Vec<u8> {
    let tree = format!("bad: {bad}\ngood: {}", ndarray("0", "[8]", ""));
    let mut all = vec![Block::plain(8).bytes(b"goodness")];
    all.extend_from_slice(blocks);
    file(tree, &all)
}

/// Checks that a file whose tree cannot be read still mounts, and that its root reports the reason.
#[track_caller]
fn only_blocks(bytes: Vec<u8>) {
    let tree = Tree::new(bytes);
    assert_eq!(tree.names("/"), Ok(Vec::new()));
    let why = tree.attribute("/", "user.h5fs.error");
    assert!(why.is_ok_and(|why| !why.is_empty()));
    soon(|| walk(&tree.0, Bounds::SMALL));
}

#[test]
fn a_file_as_it_should_be() {
    let tree = good_is_good(beside(
        &ndarray("1", "[3]", ""),
        &[Block::plain(3).bytes(b"abc")],
    ));
    assert_eq!(tree.content("bad"), Ok(b"abc".to_vec()));
}

/// Nine levels of nine aliases each would be 10^9 nodes if they were copied. Each alias is a
/// symbolic link instead.
#[test]
fn alias_bombs() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let tree = Tree::new(file(&text, &[]));
    assert_eq!(tree.kind("a9/0"), Ok(FileKind::Symlink));
    assert_eq!(tree.content("a9/0/0/0/0/0/0/0/0/0/0"), Ok(b"x\n".to_vec()));
    let seen = soon(|| walk(&tree.0, Bounds::OWN));
    assert_eq!((seen.objects, seen.errors), (10 + 10 * 9, 0));
    // The same with merge keys, which include all keys of their targets.
    let mut text = "m0: &m0 {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9}\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*m{}", level - 1); 9].join(", ");
        text += &format!("m{level}: &m{level} {{<<: [{aliases}], x{level}: 0}}\n");
    }
    let tree = Tree::new(file(&text, &[]));
    soon(|| walk(&tree.0, Bounds::SMALL));
}

#[test]
fn aliases_of_themselves() {
    let tree = Tree::new(file("x: &x {y: *x, z: 1}\ns: &s [*s, [*s]]", &[]));
    assert_eq!(tree.kind("x/y"), Ok(FileKind::Symlink));
    assert_eq!(tree.content("x/y/y/y/z"), Ok(b"1\n".to_vec()));
    assert_eq!(tree.kind("s/1/0"), Ok(FileKind::Symlink));
    let seen = soon(|| walk(&tree.0, Bounds::OWN));
    assert_eq!(seen.objects, 7);
    let tree = Tree::new(file("x: &x {<<: *x, z: 1}", &[]));
    soon(|| walk(&tree.0, Bounds::SMALL));
}

#[test]
fn trees_too_deep() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let deep = format!("x: {}1{}", open.repeat(20_000), close.repeat(20_000));
        only_blocks(file(deep, &[]));
    }
    only_blocks(file("- ".repeat(20_000), &[]));
    only_blocks(file(format!("x: {}", "[".repeat(100_000)), &[]));
    only_blocks(file("? ".repeat(20_000), &[]));
    let tree = Tree::new(file(
        format!("x: {}1{}", "[".repeat(500), "]".repeat(500)),
        &[],
    ));
    soon(|| walk(&tree.0, Bounds::SMALL));
}

#[test]
fn tags_are_words() {
    let text = "a: !!python/object/apply:os.system ['true']\nb: !<tag:evil.example,2020:x> {c: 1}\nd: !core/ndarray-9.9.9 7";
    let tree = Tree::new(file(text, &[]));
    assert_eq!(tree.content("a/0"), Ok(b"true\n".to_vec()));
    assert_eq!(tree.content("b/c"), Ok(b"1\n".to_vec()));
    let tag = tree.attribute("a", "user.h5fs.tag");
    assert!(tag.is_ok_and(|tag| tag.contains("python/object/apply")));
    soon(|| walk(&tree.0, Bounds::SMALL));
}

#[test]
fn keys_that_no_filesystem_has() {
    let long = "l".repeat(3000);
    let text = format!(
        "good: 1\n'': 2\n'.': 3\n'..': 4\na/b: 5\n\"n\\0ul\": 6\n? {long}\n: 7\n7: 8\n'7': 9\ntrue: 10\n? [1, 2]\n: 11\n? {{a: b}}\n: 12\n.h5fs: 13\ngood: 14"
    );
    let tree = Tree::new(file(text, &[]));
    let names = tree.names("/").expect("a listing");
    for (i, name) in names.iter().enumerate() {
        assert!(name.len() <= 255 && !name.contains(&b'/') && !name.contains(&0));
        assert!(!matches!(&name[..], b"" | b"." | b".." | b".h5fs"));
        assert!(!names[..i].contains(name), "twice {}", name.escape_ascii());
        tree.0
            .lookup(tree.0.root(), name)
            .expect("lookup takes what readdir gives");
    }
    assert_eq!(tree.content("good"), Ok(b"14\n".to_vec()));
    soon(|| walk(&tree.0, Bounds::SMALL));
}

#[test]
fn texts_that_are_no_yaml() {
    let good = Block::plain(8).bytes(b"goodness");
    only_blocks(file(b"a: \xff\xfe\x00", std::slice::from_ref(&good)));
    only_blocks(file("a: [1, 2", std::slice::from_ref(&good)));
    only_blocks(file("a: *nothing", &[]));
    only_blocks(file("a: b: c: d", &[]));
    let utf16: Vec<u8> = "a: 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    only_blocks(file([b"\xff\xfe".to_vec(), utf16].concat(), &[]));
    // Without an end, with carriage returns, with a byte order mark.
    let unended = [HEAD.as_bytes(), b"--- !core/asdf-1.1.0\na: 1\n"].concat();
    soon(|| walk(&filesystem(unended).expect("a mount"), Bounds::SMALL));
    let returns = file("a: 1", &[])
        .split(|&byte| byte == b'\n')
        .collect::<Vec<_>>()
        .join(&b"\r\n"[..]);
    assert_eq!(Tree::new(returns).content("a"), Ok(b"1\n".to_vec()));
    let marked = [
        b"#ASDF 1.0.0\n\xef\xbb\xbf%YAML 1.1\n---\n".to_vec(),
        b"a: 1\n...\n".to_vec(),
    ]
    .concat();
    soon(|| walk(&filesystem(marked).expect("a mount"), Bounds::SMALL));
}

/// Text after the root, which is a null or a mapping, is ignored, and this is reported.
#[test]
fn texts_that_go_on_behind_the_root() {
    for (text, names) in [
        ("---\nfloat: 3.14", &[][..]),
        ("{a: 1}\nb: 2", &[b"a".to_vec()]),
        ("a: 1\n---\nb: 2", &[b"a".to_vec()]),
    ] {
        let tree = Tree::new(file(text, &[]));
        let shown = tree.names("/").expect(text);
        assert_eq!(shown, names, "{text}");
        assert!(tree.attribute("/", "user.h5fs.error").is_ok(), "{text}");
    }
}

/// The reference library reads this as a null key.
#[test]
fn an_anchor_before_a_colon() {
    let tree = Tree::new(file("&a: !core/software-1.0.0 {name: n}\nfloat: 3.14", &[]));
    assert_eq!(tree.names("/"), Ok(vec![b"~".to_vec(), b"float".to_vec()]));
    assert_eq!(tree.content("~/name"), Ok(b"n\n".to_vec()));
}

/// A tree with more text than the limit. The blocks after it must still be found.
#[test]
fn a_tree_of_seventy_megabytes() {
    let long = format!("a: '{}'", "x".repeat(70 << 20));
    let bytes = file(long, &[]);
    let filesystem = filesystem(bytes).expect("a mount");
    let tree = Tree(filesystem);
    assert_eq!(tree.names("/"), Ok(Vec::new()));
    assert!(tree.attribute("/", "user.h5fs.error").is_ok());
}

#[test]
fn references_anywhere() {
    let texts = [
        "../../../../etc/passwd#/x",
        "file:///etc/passwd",
        "http://example.com/x.asdf#/y",
        "/etc/passwd",
        "/proc/self/mem",
        "#/bad",
        "#/bad/bad/bad",
        "#/%2e%2e/x",
        "",
    ];
    for text in texts {
        let tree = good_is_good(beside(&format!("{{$ref: '{text}'}}"), &[]));
        assert_eq!(tree.kind("bad"), Ok(FileKind::Symlink), "{text}");
        tree.content("bad").expect_err("nothing is followed");
        let link = tree.link("bad").expect("a text");
        let path = link.split_once(':').map_or(&*link, |(_, path)| path);
        assert!(path.split('/').all(|name| name != ".."), "{link}");
    }
}

#[test]
fn sources_anywhere() {
    for source in [
        "'../../../../etc/passwd'",
        "/etc/passwd",
        "'file:///etc/passwd'",
        "'http://x/y'",
        "/dev/zero",
    ] {
        bad_alone_is_bad(beside(&ndarray(source, "[4]", ""), &[]));
    }
    for source in ["1", "-5", "99999999999999999999", "1.5", "[1]", "true"] {
        bad_alone_is_bad(beside(&ndarray(source, "[4]", ""), &[]));
    }
}

#[test]
fn blocks_larger_than_their_file() {
    for size in [1 << 40, 1 << 63, u64::MAX] {
        let block = Block {
            allocated: size,
            used: size,
            data_size: size,
            ..Block::plain(0)
        };
        let bytes = beside(&ndarray("1", "[100000]", ""), &[block.bytes(b"short")]);
        bad_alone_is_bad(bytes);
    }
}

#[test]
fn block_headers_that_lie() {
    let lies = [
        Block {
            header_size: 0,
            ..Block::plain(4)
        },
        Block {
            header_size: 47,
            ..Block::plain(4)
        },
        Block {
            header_size: 65_535,
            ..Block::plain(4)
        },
        Block {
            allocated: 2,
            ..Block::plain(4)
        },
        Block {
            compression: *b"none",
            ..Block::plain(4)
        },
        Block {
            compression: *b"zlib",
            ..Block::plain(4)
        },
        Block {
            compression: *b"bzp2",
            ..Block::plain(4)
        },
        Block {
            compression: *b"lz4\0",
            ..Block::plain(4)
        },
        Block {
            compression: *b"zstd",
            ..Block::plain(4)
        },
        Block {
            compression: *b"blsc",
            ..Block::plain(4)
        },
        Block {
            compression: *b"\xff\n\0/",
            ..Block::plain(4)
        },
        Block {
            compression: *b"zlib",
            flags: 1,
            ..Block::plain(4)
        },
    ];
    for lie in lies {
        bad_alone_is_bad(beside(&ndarray("1", "[4]", ""), &[lie.bytes(b"abcd")]));
    }
    // Garbage between two blocks. The blocks before it stay readable.
    bad_alone_is_bad(beside(&ndarray("1", "[4]", ""), &[b"garbage".to_vec()]));
}

/// A chain of empty blocks, as long as the file permits, and an index with wrong offsets.
#[test]
fn a_chain_of_empty_blocks() {
    let empty = Block::plain(0).bytes(b"");
    let mut blocks = vec![empty.repeat(50_000)];
    let bytes = beside(&ndarray("1", "[0]", ""), &blocks);
    soon(|| Tree::new(bytes));
    for index in [
        "[0, 1, 2]",
        "[99999999999999999999, -5]",
        "[&a [*a, *a], {}]",
        "[[[[[[",
        "7",
        "",
    ] {
        blocks[0] = [
            b"#ASDF BLOCK INDEX\n%YAML 1.1\n---\n",
            index.as_bytes(),
            b"\n...\n",
        ]
        .concat();
        good_is_good(beside("1", &blocks));
    }
}

#[test]
fn streamed_blocks() {
    let streamed = Block {
        flags: 1,
        ..Block::plain(0)
    };
    let tree = good_is_good(beside(
        &ndarray("1", "['*']", ""),
        &[streamed.bytes(b"to the end")],
    ));
    assert_eq!(tree.content("bad"), Ok(b"to the end".to_vec()));
    // All bytes after a streamed block belong to the block.
    let tree = good_is_good(beside(
        &ndarray("2", "[3]", ""),
        &[streamed.bytes(b"x"), Block::plain(3).bytes(b"abc")],
    ));
    tree.content("bad").expect_err("no third block");
}

/// Compressed blocks whose header contains a size that is too small or too large.
#[test]
fn compressed_blocks_that_lie() {
    let bomb = super::bounded::zeros_deflated(64 << 20);
    let zlib = |data_size: u64| Block {
        compression: *b"zlib",
        data_size,
        ..Block::plain(bomb.len() as u64)
    };
    for data_size in [0, 8, 1 << 20, 1 << 40, u64::MAX] {
        let tree = good_is_good(beside(
            &ndarray("1", "[65]", ""),
            &[zlib(data_size).bytes(&bomb)],
        ));
        // The size is less than the shape, less than the stream, or more than the stream can
        // contain.
        soon(|| tree.content("bad")).expect_err("another size");
    }
    let huge = ndarray("1", "[1099511627776]", "");
    let tree = good_is_good(beside(&huge, &[zlib(1 << 40).bytes(&bomb)]));
    soon(|| tree.part("bad", (1 << 40) - 5, 5)).expect_err("the stream ends before that");
}

#[test]
fn checksums_count_where_they_are_asked_for() {
    let wrong = Block {
        checksum: [9; 16],
        ..Block::plain(4)
    };
    let bytes = beside(&ndarray("1", "[4]", ""), &[wrong.bytes(b"abcd")]);
    assert_eq!(
        good_is_good(bytes.clone()).content("bad"),
        Ok(b"abcd".to_vec())
    );
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("sums.asdf");
    std::fs::write(&path, bytes).expect("write");
    let mount = crate::harness::Mount::with(&path, &["-o", "verify=on"]);
    let read = std::fs::read(mount.at("bad")).expect_err("a wrong sum");
    assert_eq!(read.raw_os_error(), Some(nix::errno::Errno::EIO as i32));
    assert_eq!(std::fs::read(mount.at("good")).expect("good"), b"goodness");
    let checked = crate::harness::run(
        crate::harness::h5fs(["check", "--data"]).arg(&path),
        crate::harness::MOUNT_LIMIT,
    );
    assert_eq!(checked.status.code(), Some(1));
    assert!(checked.text().contains("bad"), "{}", checked.text());
}

/// A chunked ndarray of 12 bytes: the first block, a block with a wrong checksum, and a missing
/// block.
#[test]
fn a_damaged_chunk_is_lost_alone() {
    let chunk = |place: u64| {
        let ndarray = ndarray(&place.to_string(), "[4]", "");
        format!("{{start: [{}], ndarray: {ndarray}}}", 4 * place)
    };
    let chunks = [0, 1, 2].map(chunk).join(", ");
    let bad =
        format!("!core/chunked-ndarray-1.0.0 {{shape: [12], datatype: uint8, chunks: [{chunks}]}}");
    let wrong = Block {
        checksum: [9; 16],
        ..Block::plain(4)
    };
    let bytes = beside(&bad, &[wrong.bytes(b"abcd")]);
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("chunks.asdf");
    std::fs::write(&path, bytes).expect("write");
    let assembled = |options: &[&str], range: std::ops::Range<usize>| {
        let mount = crate::harness::Mount::with(&path, options);
        let file = std::fs::File::open(mount.at(".h5fs/assembled/bad"))?;
        let mut bytes = vec![0; range.len()];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, range.start as u64)?;
        std::io::Result::Ok(bytes)
    };
    assert_eq!(
        assembled(&["-o", "direct_io"], 0..8).expect("chunks"),
        b"goodabcd"
    );
    for (options, range) in [("direct_io", 8..12), ("verify=on", 4..8)] {
        let read = assembled(&["-o", options], range).expect_err(options);
        assert_eq!(read.raw_os_error(), Some(nix::errno::Errno::EIO as i32));
    }
}

/// A few bytes name one chunk as often as the length limit of a list permits. The chunk covers
/// every other element, has inline elements, or is the target of a long reference.
#[test]
fn one_chunk_again_and_again() {
    let column = ndarray("1", "[500, 1]", "");
    let numbers = vec!["1"; 20_000].join(", ");
    let numbers =
        format!("!core/ndarray-1.1.0 {{data: [{numbers}], datatype: uint8, shape: [20000]}}");
    let long = format!("{{$ref: '#{}good'}}", "/".repeat(60_000));
    let flat = format!("[{}]", ["1"; 32].join(", "));
    let corner = format!("[{}]", ["0"; 32].join(", "));
    let point = ndarray("1", &flat, "");
    let cases = [
        (&*flat, &*corner, point, "dimensions of all chunks"),
        ("[500, 2]", "[0, 0]", column, "overlapping parts"),
        ("[20000]", "[0]", numbers, "elements of chunks"),
        ("[8]", "[0]", long, "entries of an array's chunks"),
    ];
    for (shape, start, ndarray, expected) in cases {
        let chunk = format!("&c {{start: {start}, ndarray: {ndarray}}}");
        let chunks = chunk + &", *c".repeat(65_535);
        let bad = format!(
            "!core/chunked-ndarray-1.0.0 {{shape: {shape}, datatype: uint8, chunks: [{chunks}]}}"
        );
        let tree = good_is_good(beside(&bad, &[Block::plain(500).bytes(&[7; 500])]));
        let error = soon(|| tree.content(".h5fs/assembled/bad")).expect_err(expected);
        let why = tree.attribute("bad", "user.h5fs.error");
        let why = why.unwrap_or(error.to_string());
        assert!(why.contains(expected), "{why}");
    }
}

/// A chunk without a length may be longer than the limit of inline elements.
#[test]
fn a_long_chunk_of_open_length() {
    let length = (1 << 20) + 1;
    let bad = format!(
        "!core/chunked-ndarray-1.0.0 {{shape: [{length}], datatype: uint8, chunks: [{{start: [0], ndarray: {}}}]}}",
        ndarray("1", "['*']", "")
    );
    let tree = Tree::new(beside(
        &bad,
        &[Block::plain(length as u64).bytes(&vec![7; length])],
    ));
    let last = tree.part(".h5fs/assembled/bad", length as u64 - 4, 8);
    assert_eq!(last, Ok(vec![7; 4]));
}

#[test]
fn a_check_looks_at_blocks_that_no_array_uses() {
    let wrong = Block {
        checksum: [1; 16],
        ..Block::plain(4)
    };
    let unused = [Block::plain(4).bytes(b"used"), wrong.bytes(b"none")];
    let tree = ndarray("0", "[4]", "").replacen("!core", "a: !core", 1);
    let bytes = file(tree, &unused);
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("unused.asdf");
    let check = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("write");
        let checked = crate::harness::run(
            crate::harness::h5fs(["check", "--data"]).arg(&path),
            crate::harness::MOUNT_LIMIT,
        );
        (checked.status.code(), checked.text())
    };
    let (code, text) = check(&bytes);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with("/.h5fs/blocks/1: block: wrong checksum"),
        "{text}"
    );
    // The last byte is missing, and with it the end of the chain.
    let (code, text) = check(&bytes[..bytes.len() - 1]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("/.h5fs/blocks: "), "{text}");
}

#[test]
fn shapes_strides_and_offsets_that_do_not_fit() {
    let block = [Block::plain(16).bytes(&[7; 16])];
    let bad = |shape: &str, more: &str| {
        bad_alone_is_bad(beside(&ndarray("1", shape, more), &block));
    };
    bad("[17]", "");
    bad("[4294967296, 4294967296, 4294967296]", "");
    bad("[9223372036854775807]", "");
    bad("[-1]", "");
    bad("[x]", "");
    bad("'*'", "");
    bad("[[1]]", "");
    bad("[1.5]", "");
    bad("[4]", ", offset: 13");
    bad("[4]", ", offset: 18446744073709551615");
    bad("[4]", ", offset: -1");
    bad("[4]", ", strides: [5, 5]");
    bad("[4]", ", strides: [6]");
    bad("[4]", ", strides: [-1]");
    bad("[4]", ", strides: [9223372036854775807]");
    bad("[4]", ", strides: [-9223372036854775808]");
    bad("[2, 2]", ", strides: [1]");
    bad("[99999999999999999999999999]", "");
}

/// Strides of zero repeat one element. The size is exact, and the cost of a read depends only on
/// its length.
#[test]
fn a_petabyte_of_one_element() {
    let petabyte = 1_u64 << 50;
    let array = ndarray("1", "[1125899906842624]", ", strides: [0]");
    let tree = good_is_good(beside(&array, &[Block::plain(1).bytes(b"p")]));
    match tree.size("bad") {
        Ok(size) if size == petabyte => {
            assert_eq!(
                soon(|| tree.part("bad", petabyte / 2, 4096)),
                Ok(vec![b'p'; 4096])
            );
        }
        _ => _ = tree.content("bad").expect_err("refused"),
    }
}

/// Invalid datatypes, in every place that needs a datatype.
#[test]
fn datatypes_that_cannot_be() {
    let bad = |datatype: &str| {
        let array = format!(
            "!core/ndarray-1.1.0 {{source: 1, datatype: {datatype}, byteorder: little, shape: [1]}}"
        );
        bad_alone_is_bad(beside(&array, &[Block::plain(16).bytes(&[7; 16])]));
    };
    bad("float128");
    bad("[ascii, -1]");
    bad("[ascii, 99999999999999]");
    bad("[ucs4, 4611686018427387904]");
    bad("{}");
    bad("[{name: a, datatype: uint8, shape: [4294967296, 4294967296, 4294967296]}]");
    let deep = format!("{}uint8{}", "[{datatype: ".repeat(300), "}]".repeat(300));
    bad(&deep);
    let array = "!core/ndarray-1.1.0 {source: 1, datatype: &d [{name: a, datatype: *d}], byteorder: little, shape: [1]}";
    bad_alone_is_bad(beside(array, &[Block::plain(16).bytes(&[7; 16])]));
}

/// An array in a block needs a byteorder and a shape. The reference library has a default only for
/// the datatype.
#[test]
fn arrays_that_do_not_say_what_they_are() {
    let words = ["byteorder: little", "shape: [2]", "datatype: uint8"];
    for lost in 0..2 {
        let mut words = words.map(str::to_owned);
        words[lost].insert(1, 'x');
        let array = format!("!core/ndarray-1.1.0 {{source: 1, {}}}", words.join(", "));
        bad_alone_is_bad(beside(&array, &[Block::plain(16).bytes(&[7; 16])]));
    }
}

#[test]
fn inline_arrays_and_masks() {
    let wide = format!("!core/ndarray-1.1.0 [{}]", vec!["1"; 20_000].join(", "));
    let tree = good_is_good(beside(&wide, &[]));
    assert_eq!(tree.size("bad"), Ok(8 * 20_000));
    // Two alternatives on each of twenty levels: a few lines define 2^20 elements.
    let mut text = "a0: &a0 [1, 2]\n".to_owned();
    for level in 1..60 {
        text += &format!("a{level}: &a{level} [*a{}, *a{}]\n", level - 1, level - 1);
    }
    text += "bad: !core/ndarray-1.1.0 {data: *a59, datatype: int8, byteorder: little}\n";
    let tree = Tree::new(file(text, &[]));
    soon(|| tree.content("bad")).expect_err("more than any inline array holds");
    bad_alone_is_bad(beside("!core/ndarray-1.1.0 [[1, 2], [3]]", &[]));
    bad_alone_is_bad(beside(
        "!core/ndarray-1.1.0 {data: &d [*d], datatype: int8, shape: [1]}",
        &[],
    ));
    for mask in [
        "{$ref: '#/bad'}",
        "&m !core/ndarray-1.1.0 {source: 1, datatype: bool8, shape: [4], mask: *m}",
        "[[[[",
    ] {
        let array = ndarray("1", "[4]", &format!(", mask: {mask}"));
        let tree = Tree::new(beside(&array, &[Block::plain(4).bytes(b"abcd")]));
        soon(|| walk(&tree.0, Bounds::SMALL));
    }
}

/// Only an invalid header line may refuse the mount.
#[test]
fn files_that_only_begin_like_asdf() {
    refused(b"#ASDF ".to_vec());
    refused(b"#ASDF 7.0.0\n".to_vec());
    refused(b"#ASDF x\n".to_vec());
    for text in [
        "#ASDF 1.0.0",
        "#ASDF 1.0.0\n",
        "#ASDF 1.0.0\n%YAML",
        "#ASDF 1.0.0\n\0\0\0\0",
        "#ASDF 1.0.0\n\u{7f}ELF",
    ] {
        if let Ok(filesystem) = soon(|| filesystem(text.as_bytes().to_vec())) {
            soon(|| walk(&filesystem, Bounds::SMALL));
        }
    }
}

#[test]
fn cut_at_every_byte() {
    const HEADER_LINE: &[u8] = b"#ASDF 1.0.0\n";
    let last = Block::plain(3).bytes(b"abc");
    let whole = beside(&ndarray("1", "[3]", ""), std::slice::from_ref(&last));
    let end_of_good = whole.len() - last.len();
    for length in 6..whole.len() {
        let Ok(filesystem) = soon(|| filesystem(whole[..length].to_vec())) else {
            assert!(length < HEADER_LINE.len(), "refused at {length}");
            continue;
        };
        let tree = Tree(filesystem);
        tree.content("bad").expect_err("its block is cut");
        if length < end_of_good {
            tree.content("good").expect_err("its block is cut");
        } else {
            let good = tree.content("good");
            assert_eq!(good, Ok(b"goodness".to_vec()), "cut at {length}");
        }
    }
}

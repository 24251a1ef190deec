//! ASDF ndarrays that aliases make larger than their text. Their descriptions are limited, even if
//! a node is used many times.

use super::asdf::file;
use super::requests::{costs_little, many};
use super::tree::*;
use super::visit::{Bounds, walk};

/// Returns a block of 16 bytes.
fn block() -> Vec<u8> {
    let size = 16_u64.to_be_bytes();
    let sizes = [size; 3].concat();
    [
        b"\xd3BLK\0\x30\0\0\0\0\0\0\0\0",
        &sizes[..],
        &[0; 16],
        &[7; 16],
    ]
    .concat()
}

fn stored(more: &str) -> String {
    format!("!core/ndarray-1.1.0 {{source: 0, byteorder: little, {more}}}")
}

fn inline(more: &str) -> String {
    format!("!core/ndarray-1.1.0 {{{more}}}")
}

/// Checks an array `bad` that cannot be described, for the reason `why`. Each request may take a
/// second.
#[track_caller]
fn too_much(anchors: &str, bad: &str, why: &str) {
    let tree = format!("{anchors}bad: {bad}\n");
    let timed = costs_little(file(tree, &[block()]));
    let told = timed.tree.attribute("bad", "user.h5fs.error");
    assert!(
        told.as_ref().is_ok_and(|told| told.contains(why)),
        "{told:?}"
    );
}

const LOOKS: &str = "metadata read";

/// Elements without bytes. Each list still costs a step.
#[test]
fn lists_of_nothing() {
    let mut lists = "l0: &l0 []\n".to_owned();
    for level in 1..10 {
        let below = vec![format!("*l{}", level - 1); 10].join(", ");
        lists += &format!("l{level}: &l{level} [{below}]\n");
    }
    let shape = ["10"; 9].join(", ");
    let field = format!("{{name: a, datatype: [ascii, 0], shape: [{shape}, 0]}}");
    let bad = inline(&format!("datatype: [{field}], data: [[*l9], [*l9]]"));
    too_much(&lists, &bad, LOOKS);
    let fields = vec!["[ascii, 0]"; 30_000].join(", ");
    let record = vec!["q"; 30_000].join(", ");
    let records = ", *r".repeat(many(200_000));
    let bad = inline(&format!(
        "datatype: [{fields}], data: [&r [{record}]{records}]"
    ));
    too_much("", &bad, LOOKS);
    let shape = ["1000000"; 4].join(", ");
    let field = format!("{{name: a, datatype: [ascii, 0], shape: [{shape}]}}");
    let bad = inline(&format!("datatype: [{field}], data: [[[[[[]]]]]]"));
    too_much("", &bad, "lists of different lengths");
}

/// The extent of a chunk without a shape is determined without decoding its elements.
#[test]
fn large_chunks_without_a_shape() {
    let array = inline("datatype: [ascii, 67108864], data: [x]");
    let chunks = format!("&c {{start: [0], ndarray: {array}}}{}", ", *c".repeat(200));
    let bad = format!(
        "!core/chunked-ndarray-1.0.0 {{shape: [1], datatype: [ascii, 67108864], chunks: [{chunks}]}}"
    );
    too_much("", &bad, "bytes of chunks in the tree");
}

/// Valid chunks without a shape, whose shape follows from their elements.
#[test]
fn chunks_without_a_shape() {
    let records = inline("datatype: [[ascii, 2], uint8], data: [[ab, 1], [cd, 2]]");
    let open = stored("datatype: [[ascii, 2], uint8], shape: ['*']");
    let chunks = format!("{{start: [0], ndarray: {records}}}, {{start: [2], ndarray: {open}}}");
    let array = format!(
        "!core/chunked-ndarray-1.0.0 {{shape: [7], datatype: [[ascii, 2], uint8], chunks: [{chunks}]}}"
    );
    let tree = Tree::new(file(format!("x: {array}"), &[block()]));
    let bytes = [b"ab\x01cd\x02", &[7; 15][..]].concat();
    assert_eq!(tree.content(".h5fs/assembled/x"), Ok(bytes));
}

/// Scalars of megabytes in places of numbers or short texts.
#[test]
fn long_scalars_again_and_again() {
    let again = |text: &str, count: usize| format!("[&a {text}{}]", ", *a".repeat(count));
    let long = "1".repeat(many(1_000_000));
    let bad = inline(&format!("data: {}", again(&long, 20_000)));
    too_much("", &bad, LOOKS);
    let typed = again("1_1".repeat(1300).as_str(), many(390_000));
    let bad = inline(&format!("datatype: int64, data: {typed}"));
    too_much("", &bad, "not a number");
    let zeros = ["0", "0_", "0."].map(|start| start.to_owned() + &"0".repeat(4000));
    let sixtieths = format!("1{}.0", ":1".repeat(2000));
    let size = 8 * (many(50_000) + 1);
    let numbers = format!("file of {size} bytes: [0, 0, 0, …]");
    let unknown = "file of 0 bytes: [error: ndarray: inline data: neither text nor a number*";
    let zeros = zeros.map(|number| (number, &*numbers));
    for (number, answer) in zeros.into_iter().chain([(sixtieths, unknown)]) {
        let data = again(&number, many(50_000));
        let text = format!("x: {}", inline(&format!("data: {data}")));
        let timed = costs_little(file(text, &[]));
        timed.tree.answers(&[("x", answer)]);
    }
    let text = "q".repeat(many(6_000_000));
    let data = again(&text, many(200_000));
    let bad = inline(&format!("datatype: [ascii, 1], data: {data}"));
    too_much("", &bad, LOOKS);
    let zeros = format!("zeros: &z {}\n", "0".repeat(many(10_000_000)));
    let shape = ["*z"; 32].join(", ");
    let bad = stored(&format!("datatype: int8, shape: [{shape}]"));
    too_much(&zeros, &bad, "shape");
    let zeros = format!("zeros: &z {}\n", "0".repeat(4000));
    let array = stored("datatype: int8, shape: [1]");
    let chunks = format!(
        "&c {{start: [*z], ndarray: {array}}}{}",
        ", *c".repeat(65_000)
    );
    let bad =
        format!("!core/chunked-ndarray-1.0.0 {{shape: [1], datatype: int8, chunks: [{chunks}]}}");
    too_much(&zeros, &bad, LOOKS);
}

/// Numbers as text, up to the node limit of a tree.
#[test]
fn as_many_numbers_as_there_may_be() {
    let count = many(390_000);
    for number in ["-1.2345678901234567e-10", "12345678901"] {
        let data = format!("[&a {number}{}]", ", *a".repeat(count - 1));
        let timed = costs_little(file(
            format!("x: {}", inline(&format!("data: {data}"))),
            &[],
        ));
        assert_eq!(timed.tree.size("x"), Ok(8 * count as u64));
    }
}

/// One repeated field, with many entries or a long name.
#[test]
fn one_field_again_and_again() {
    let entries: String = (0..20_000).map(|i| format!(", k{i}: 1")).collect();
    let again = |field: &str| format!("[&f {{{field}}}{}]", ", *f".repeat(many(10_000)));
    let fields = again(&format!("name: a, datatype: int8{entries}"));
    let bad = stored(&format!("shape: [1], datatype: {fields}"));
    too_much("", &bad, LOOKS);
    let merged = format!("wide: &w {{k: 1{entries}}}\n");
    let fields = again("name: a, datatype: int8, <<: *w");
    let bad = stored(&format!("shape: [1], datatype: {fields}"));
    too_much(&merged, &bad, LOOKS);
    let name = "n".repeat(100_000);
    let fields = again(&format!("name: {name}, datatype: int8"));
    let bad = stored(&format!("shape: [1], datatype: {fields}"));
    too_much("", &bad, "names of fields");
    let key = format!("key: &k {}\n", "k".repeat(1_000_000));
    let keys = "*k : 1, ".repeat(many(20_000));
    too_much(&key, &stored(&format!("{keys} shape: [1]")), LOOKS);
}

#[test]
fn masks_of_each_other() {
    let array = |name: &str, mask: &str| {
        let array = stored(&format!("datatype: bool8, shape: [16], mask: {mask}"));
        format!("{name}: &{name} {array}\n")
    };
    let mut nested = array("a", "MASK");
    nested = nested.replace("MASK", &stored("datatype: bool8, shape: [16], mask: *a"));
    let named = array("a", "{$ref: '#/b'}") + &array("b", "{$ref: '#/a'}");
    let own = array("a", "{$ref: '#/a/mask'}");
    for text in [nested, named, own] {
        let tree = costs_little(file(&text, &[block()])).tree;
        assert_eq!(tree.content("a"), Ok(vec![7; 16]), "{text}");
        soon(|| walk(&tree.0, Bounds::SMALL));
    }
}

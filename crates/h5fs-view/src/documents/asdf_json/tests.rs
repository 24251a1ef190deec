//! Tests of JSON of small ASDF trees.

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::detect;
use h5fs_reader::source::memory::MemorySource;
use h5fs_reader::source::neighbours::Neighbours;

use super::*;
use crate::text_files::streamed::StreamedText;
use crate::view::View;

/// Returns the JSON of the root of `tree`.
fn json_of(tree: &str) -> AsdfJson {
    let header = "#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n";
    let text = format!("{header}--- !core/asdf-1.1.0\n{tree}\n...\n");
    let source = Arc::new(MemorySource::new(text.into_bytes()));
    let neighbours = Arc::new(Neighbours::unavailable());
    let container = detect::open(source, neighbours, &detect::Caches::default(), false).unwrap();
    let root = container.root();
    AsdfJson::new(container, root)
}

fn json(tree: &str) -> String {
    let text =
        String::from_utf8(json_of(tree).whole_text(&CancelToken::default()).unwrap()).unwrap();
    // Reading single bytes stops the writer after each part.
    let view = StreamedText::from_parts(json_of(tree));
    let read = |at: usize| -> Bytes { view.read_at(to_u64(at), 1).unwrap() };
    let bytes: Vec<u8> = (0..=text.len()).flat_map(|at| read(at).to_vec()).collect();
    assert_eq!(bytes, text.as_bytes());
    text
}

#[test]
fn an_entry_of_a_mapping_has_a_line() {
    let tree = "{a: [1, -2.5, [x, {}], []], m: {k: ~, 'no': yes}, d: 2001-12-14, n: .nan}";
    let expected = r#"{
  "a": [1, -2.5, ["x", {}], []],
  "m": {
    "k": null,
    "no": true
  },
  "d": "2001-12-14",
  "n": null
}
"#;
    assert_eq!(json(tree), expected);
    assert_eq!(json("[]"), "[]\n");
    assert_eq!(json(""), "{}\n");
}

#[test]
fn names_and_texts_stay_in_their_quotes() {
    let tree = r#"{"a\"b\n": "\\ \x01 \u2028", 7: x, '7': y, "": "]}"}"#;
    let expected = "{\n  \"a\\\"b\\n\": \"\\\\ \\u0001 \u{2028}\",\n  \"7\": \"x\",\n  \"7%~2\": \"y\",\n  \"\": \"]}\"\n}\n";
    assert_eq!(json(tree), expected);
}

#[test]
fn the_last_of_equal_keys_is_kept() {
    assert_eq!(
        json("{a: 1, b: 2, a: 3}"),
        "{\n  \"b\": 2,\n  \"a\": 3\n}\n"
    );
}

#[test]
fn aliases_and_references_become_ref_objects() {
    let tree = "{m: &m {k: &s short}, 'a/b %': &l [1], x: [*m, *l, *s], r: {$ref: '#/m/k'}, \
                o: {$ref: 'other.asdf#/q'}, c: &c {self: *c}, d: {<<: *m, own: 2}}";
    let expected = r##"{
  "m": {
    "k": "short"
  },
  "a/b %": [1],
  "x": [{"$ref": "#/m"}, {"$ref": "#/a~1b%20%25"}, "short"],
  "r": {"$ref": "#/m/k"},
  "o": {"$ref": "other.asdf#/q"},
  "c": {
    "self": {"$ref": "#/c"}
  },
  "d": {
    "k": "short",
    "own": 2
  }
}
"##;
    assert_eq!(json(tree), expected);
    let long = "y".repeat(limits::REPEATED_SCALAR + 1);
    let expected = format!("[\"{long}\", {{\"$ref\": \"#/0\"}}]\n");
    assert_eq!(json(&format!("[&s {long}, *s]")), expected);
}

#[test]
fn ndarrays_are_described() {
    let tree = "{a: !core/ndarray-1.1.0 {data: [[1, 2]], datatype: int16}, \
                s: !core/ndarray-1.1.0 {source: 9, datatype: int16, shape: [3], byteorder: big}}";
    let text = json(tree);
    let known = "{\n  \"a\": {\"path\": \"/a\", \"shape\": [1, 2], \"datatype\": \"int16\"},\n";
    assert!(text.starts_with(known), "{text}");
    let missing = "  \"s\": {\"path\": \"/s\", \"error\": \"";
    assert!(text[known.len()..].starts_with(missing), "{text}");
}

#[test]
fn an_unreadable_part_is_an_error_of_the_whole() {
    let damaged = json_of("{a: 1, m: {<<: text, k: 1}, z: 2}");
    assert!(matches!(
        damaged.whole_text(&CancelToken::default()),
        Err(Error::Corrupt { .. })
    ));
    let view = StreamedText::new(damaged, 100);
    for offset in [0, 10] {
        assert!(matches!(
            view.read_at(offset, 100),
            Err(Error::Corrupt { .. })
        ));
    }
    assert!(
        json_of("{a: [1}")
            .whole_text(&CancelToken::default())
            .is_err()
    );
}

/// A key of a megabyte is repeated by thousands of aliases.
#[test]
fn a_text_is_bounded() {
    let key = "q".repeat(1 << 20);
    let aliases = "*a : 1}, {".repeat(300);
    let json = json_of(&format!("[&a {key}, {{{aliases}z: 1}}]"));
    assert!(matches!(
        json.whole_text(&CancelToken::default()),
        Err(Error::Limit { .. })
    ));
    let view = StreamedText::new(json, u64::MAX);
    let mut at = 0;
    let error = loop {
        match view.read_at(at, 4 << 20) {
            Ok(part) => at += to_u64(part.len()),
            Err(error) => break error,
        }
    };
    assert!(matches!(
        error,
        Error::Limit {
            max: limits::ASDF_JSON,
            ..
        }
    ));
    assert!(at > limits::ASDF_JSON - (8 << 20) && at <= limits::ASDF_JSON);
}

/// At the maximum depth of a tree, the indentation is bounded.
#[test]
fn the_indentation_of_a_deep_tree_is_limited() {
    let depth = limits::TREE_LEVELS - 10;
    let tree = "{a: ".repeat(depth) + "1" + &"}".repeat(depth);
    let text = json_of(&tree).whole_text(&CancelToken::default()).unwrap();
    assert!(text.len() < depth * 2 * 70, "{}", text.len());
    assert_eq!(text.iter().filter(|&&byte| byte == b'}').count(), depth);
}

/// Expected: `numpy_dtype_to_asdf_datatype` of the asdf library, without byte orders.
#[test]
fn datatypes_as_in_the_tree() {
    let tree = "{t: !core/ndarray-1.1.0 {data: [[1, [a, b]]], datatype: \
                [{name: x, datatype: complex64}, {name: y, datatype: [ucs4, 5], shape: [2]}]}}";
    let expected = r#"[{"name": "x", "datatype": "complex64"}, {"name": "y", "datatype": ["ucs4", 5], "shape": [2]}]"#;
    let text = json(tree);
    assert!(text.contains(expected), "{text}");
}

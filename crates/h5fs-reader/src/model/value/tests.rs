//! Tests of the text of elements of each class.

use super::*;
use crate::error::Error;
use crate::limits;
use crate::model::NodeId;
use crate::model::datatype::{BitRange, ByteOrder, Charset, ReferenceKind, StringPadding};
use crate::testing::{Heap, int, member, type_of};

fn float32() -> Datatype {
    Datatype::ieee(4, ByteOrder::Little)
}

fn string(size: u32, padding: StringPadding) -> Datatype {
    let charset = Charset::Ascii;
    type_of(size, Class::String { padding, charset })
}

fn vlen_string() -> Datatype {
    let class = Class::VariableString {
        padding: StringPadding::NullTerminated,
        charset: Charset::Utf8,
    };
    type_of(1, class)
}

/// Text and JSON of one element; node 1 has the path `/a b`.
fn text_and_json(datatype: &Datatype, element: &[u8]) -> (String, String) {
    let heap = Heap(vec![b"zero\0x".to_vec(), vec![1, 0, 2, 0], vec![]]);
    let paths = |node| Ok((node == NodeId::for_test(1)).then(|| b"/a b".to_vec()));
    let context = TextContext::new(&heap, &paths, 1000);
    let writer = ValueWriter::new(datatype).unwrap();
    let (mut text, mut json) = (Vec::new(), Vec::new());
    writer.write_text(element, &context, &mut text).unwrap();
    writer.write_json(element, &context, &mut json).unwrap();
    (
        String::from_utf8(text).unwrap(),
        String::from_utf8(json).unwrap(),
    )
}

fn owned_pair(text: &str, json: &str) -> (String, String) {
    (text.to_owned(), json.to_owned())
}

#[test]
fn strings_lose_their_padding() {
    let text = |padding, bytes: &[u8]| text_and_json(&string(6, padding), bytes).0;
    assert_eq!(text(StringPadding::NullTerminated, b"ab\0cd\0"), "ab");
    assert_eq!(text(StringPadding::NullTerminated, b"abcdef"), "abcdef");
    assert_eq!(text(StringPadding::NullPadded, b"ab\0c\0\0"), "ab\0c");
    assert_eq!(text(StringPadding::SpacePadded, b" ab   "), " ab");
    assert_eq!(
        text_and_json(&vlen_string(), &[0]),
        owned_pair("zero", "\"zero\"")
    );
    assert_eq!(
        text_and_json(&vlen_string(), &[255]),
        owned_pair("", "null")
    );
    let ucs4 = type_of(12, Class::Ucs4(ByteOrder::Big));
    let bytes = [0, 0, 0, 0xE9, 0, 1, 0xF6, 0, 0, 0, 0, 0];
    assert_eq!(text_and_json(&ucs4, &bytes), owned_pair("é😀", "\"é😀\""));
}

/// Expected text: `str(numpy.complex64(x))` without its parentheses.
#[test]
fn complex_numbers_are_formatted_as_in_numpy() {
    let complex = type_of(8, Class::Complex(Box::new(float32())));
    let element = |r: f32, i: f32| [r.to_le_bytes(), i.to_le_bytes()].concat();
    let expected = owned_pair("1+2j", r#"{"r": 1.0, "i": 2.0}"#);
    assert_eq!(text_and_json(&complex, &element(1.0, 2.0)), expected);
    assert_eq!(text_and_json(&complex, &element(-0.0, -0.5)).0, "-0-0.5j");
    let expected = owned_pair("nan+infj", r#"{"r": null, "i": "inf"}"#);
    assert_eq!(
        text_and_json(&complex, &element(f32::NAN, f32::INFINITY)),
        expected
    );
}

#[test]
fn enumerations_by_name() {
    let members = vec![
        (b"NO \"".to_vec(), vec![1]),
        (b"MINUS".to_vec(), vec![0xFF]),
        (b"NEVER".to_vec(), vec![1]),
    ];
    let base = Box::new(int(1));
    let datatype = type_of(1, Class::Enumeration { base, members });
    assert_eq!(
        text_and_json(&datatype, &[1]),
        owned_pair("NO \"", r#""NO \"""#)
    );
    assert_eq!(text_and_json(&datatype, &[0xFF]).0, "MINUS");
    assert_eq!(text_and_json(&datatype, &[0xFE]), owned_pair("-2", "-2"));
}

#[test]
fn bits_and_bytes_in_hexadecimal() {
    let bits = BitRange {
        offset: 4,
        precision: 9,
    };
    let order = ByteOrder::Big;
    let datatype = type_of(2, Class::Bitfield { order, bits });
    assert_eq!(
        text_and_json(&datatype, &[0xF2, 0x3F]),
        owned_pair("0x0123", "\"0x0123\"")
    );
    let datatype = type_of(3, Class::Opaque { tag: vec![] });
    assert_eq!(text_and_json(&datatype, &[1, 0, 0xFF]).0, "0x0100ff");
    assert_eq!(
        text_and_json(&int(17), &[7; 17]).0,
        format!("0x{}", "07".repeat(17))
    );
}

#[test]
fn references_as_paths() {
    let object = type_of(1, Class::Reference(ReferenceKind::Object));
    assert_eq!(text_and_json(&object, &[1]), owned_pair("/a b", "\"/a b\""));
    assert_eq!(text_and_json(&object, &[0x1F]).0, "@0x1f");
    assert_eq!(text_and_json(&object, &[0xFF]).0, "@0xfffffffffffffffe");
    assert_eq!(text_and_json(&object, &[0]), owned_pair("null", "null"));
    let standard = type_of(1, Class::Reference(ReferenceKind::Standard));
    assert_eq!(text_and_json(&standard, &[1]).0, "/a b/@units");
    assert_eq!(text_and_json(&standard, &[2]).0, "other.h5:@0x60");
}

#[test]
fn nested_values_are_json_on_one_line() {
    let base = Box::new(int(1));
    let dims = vec![2, 3];
    let matrix = type_of(6, Class::Array { base, dims });
    let expected = "[[1, 2, 3], [4, 5, 6]]";
    assert_eq!(
        text_and_json(&matrix, &[1, 2, 3, 4, 5, 6]),
        owned_pair(expected, expected)
    );

    let sequence = type_of(1, Class::VariableLength(Box::new(int(2))));
    assert_eq!(text_and_json(&sequence, &[1]).0, "[1, 2]");
    assert_eq!(text_and_json(&sequence, &[255]).0, "[]");

    let members = vec![
        member("v\n", 0, sequence),
        member("s", 1, vlen_string()),
        member("m", 2, matrix),
    ];
    let record = type_of(9, Class::Compound(members));
    let element = [1, 0, 1, 2, 3, 4, 5, 6, 99];
    let expected = r#"{"v\n": [1, 2], "s": "zero", "m": [[1, 2, 3], [4, 5, 6]]}"#;
    assert_eq!(
        text_and_json(&record, &element),
        owned_pair(expected, expected)
    );
}

#[test]
fn hostile_types_and_values_are_rejected() {
    let mut deep = int(1);
    for _ in 0..limits::DATATYPE_DEPTH {
        deep = type_of(1, Class::VariableLength(Box::new(deep)));
    }
    assert!(matches!(ValueWriter::new(&deep), Err(Error::Limit { .. })));

    // 2^32 empty strings in no bytes.
    let base = Box::new(string(0, StringPadding::NullPadded));
    let dims = vec![1 << 16, 1 << 16];
    let writer = ValueWriter::new(&type_of(0, Class::Array { base, dims })).unwrap();
    let context = TextContext::without_pointers(1000);
    let ended = writer.write_text(&[], &context, &mut Vec::new());
    assert!(matches!(ended, Err(Error::Limit { .. })));

    // Long padding without text, over and over.
    let heap = Heap(vec![vec![0; 10_000]]);
    let context = TextContext::new(&heap, &|_| Ok(None), 1000);
    let writer = ValueWriter::new(&vlen_string()).unwrap();
    let ended = (0..3).try_for_each(|_| writer.write_text(&[0], &context, &mut Vec::new()));
    assert!(matches!(ended, Err(Error::Limit { .. })));

    // A member that stands outside its record.
    let outside = type_of(1, Class::Compound(vec![member("a", 1, int(1))]));
    let writer = ValueWriter::new(&outside).unwrap();
    let ended = writer.write_text(&[0], &TextContext::without_pointers(1000), &mut Vec::new());
    assert!(matches!(ended, Err(Error::Corrupt { .. })));
}

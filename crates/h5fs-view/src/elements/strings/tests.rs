//! Tests of the strings of each kind. Expected values were worked out by hand; the strings of
//! MATLAB chars are as `a(i,:)` shows them in MATLAB.

use h5fs_reader::model::datatype::{ByteOrder, Charset};
use h5fs_reader::testing::{Heap, type_of};

use super::*;
use crate::elements::strings::matlab::{CodeUnit, MatlabElements};
use crate::text_files::counted_text::{CountedFile, TextLengthIndex};
use crate::text_files::text::InMemoryContent;
use crate::view::View;

fn elements(datatype: Datatype, dims: Option<&[u64]>, bytes: &[u8]) -> Elements {
    Elements {
        datatype,
        dims: dims.map(<[u64]>::to_vec),
        content: Box::new(InMemoryContent::new(bytes.to_vec())),
    }
}

fn strings_of(elements: Elements, kind: StringStorage) -> Result<Strings> {
    let heap = Heap(vec![b"one".to_vec(), b"a\0b".to_vec(), vec![b'x'; 300_000]]);
    Strings::new(
        elements,
        kind,
        Engine::new(1 << 20, 2),
        Arc::new(heap),
        &CancelToken::default(),
    )
}

/// Returns the text of all strings, read in parts of three bytes. Checks that its length is the
/// view's length.
#[track_caller]
fn text(elements: Elements, kind: StringStorage) -> String {
    let strings = strings_of(elements, kind).unwrap();
    let view = CountedFile::from_units(strings);
    let mut whole = Vec::new();
    loop {
        let part = view.read_at(whole.len() as u64, 3).unwrap();
        if part.is_empty() {
            break;
        }
        whole.extend_from_slice(&part);
    }
    assert_eq!(view.length(), whole.len() as u64);
    String::from_utf8(whole).unwrap()
}

fn string(size: u32, padding: StringPadding) -> Datatype {
    let charset = Charset::Utf8;
    type_of(size, Class::String { padding, charset })
}

fn unsigned(size: u16, order: ByteOrder) -> Datatype {
    Datatype::integer(size, false, order)
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

const CHARS: MatlabElements = MatlabElements::Chars(CodeUnit::new(ByteOrder::Little, 2));

fn chars(dims: &[u64], stored: &str) -> String {
    let datatype = unsigned(2, ByteOrder::Little);
    let elements = elements(datatype, Some(dims), &utf16(stored));
    text(elements, StringStorage::Matlab(CHARS))
}

#[test]
fn strings_of_fixed_length_end_before_their_padding() {
    let of = |padding, bytes: &[u8]| {
        text(
            elements(string(4, padding), Some(&[2]), bytes),
            StringStorage::Strings,
        )
    };
    assert_eq!(
        of(StringPadding::NullTerminated, b"a\0b\0four"),
        "a\nfour\n"
    );
    assert_eq!(of(StringPadding::NullPadded, b"a\0b\0 \0\0\0"), "a\0b\n \n");
    assert_eq!(of(StringPadding::SpacePadded, b"a b \n   "), "a b\n\n\n");
    let scalar = elements(
        string(3, StringPadding::NullPadded),
        Some(&[]),
        "ü\0".as_bytes(),
    );
    assert_eq!(text(scalar, StringStorage::Strings), "ü\n");
    let null = elements(string(3, StringPadding::NullPadded), None, b"");
    assert_eq!(text(null, StringStorage::Strings), "");
    let none = elements(string(3, StringPadding::NullPadded), Some(&[4, 0]), b"");
    assert_eq!(text(none, StringStorage::Strings), "");
}

#[test]
fn ucs4_is_shown_as_utf8() {
    let stored: Vec<u8> = ['ß', '𝄞', '\0', 'a', '\0', '\0']
        .iter()
        .flat_map(|&character| u32::from(character).to_be_bytes())
        .collect();
    let ucs4 = type_of(12, Class::Ucs4(ByteOrder::Big));
    assert_eq!(
        text(elements(ucs4, Some(&[2]), &stored), StringStorage::Strings),
        "ß𝄞\na\n"
    );
}

#[test]
fn strings_of_variable_length_are_as_in_the_source() {
    let of = |padding, ids: &[u8]| {
        let class = Class::VariableString {
            padding,
            charset: Charset::Utf8,
        };
        let elements = elements(type_of(1, class), Some(&[ids.len() as u64]), ids);
        text(elements, StringStorage::Strings)
    };
    assert_eq!(of(StringPadding::NullTerminated, &[0, 1, 9]), "one\na\n\n");
    assert_eq!(of(StringPadding::NullPadded, &[1, 9, 0]), "a\0b\n\none\n");
    assert_eq!(of(StringPadding::NullTerminated, &[2]).len(), 300_001);
}

#[test]
fn characters_are_joined_along_the_last_axis() {
    let of = |dims: &[u64], bytes: &[u8]| {
        let datatype = string(1, StringPadding::NullTerminated);
        text(
            elements(datatype, Some(dims), bytes),
            StringStorage::Characters,
        )
    };
    assert_eq!(of(&[3, 4], b"ab\0\0a\0b cd  "), "ab\na\0b \ncd  \n");
    assert_eq!(of(&[1, 2, 2], b"abcd"), "ab\ncd\n");
    assert_eq!(of(&[5], b"one\0\0"), "one\n");
    assert_eq!(of(&[], b"x"), "x\n");
    assert_eq!(
        (of(&[2, 0], b""), of(&[0, 2], b"")),
        ("\n\n".into(), String::new())
    );
}

#[test]
fn the_rows_of_a_matrix_of_chars_are_strings() {
    assert_eq!(chars(&[5, 1], "Grüße"), "Grüße\n");
    // The matrix ['ab'; 'cd'; 'ef'], 3 by 2.
    assert_eq!(chars(&[2, 3], "acebdf"), "ab\ncd\nef\n");
    // The same matrix, followed by ['gh'; 'ij'; 'kl'] as a(:,:,2).
    assert_eq!(
        chars(&[2, 2, 3], "acebdfgikhjl"),
        "ab\ncd\nef\ngh\nij\nkl\n"
    );
    assert_eq!(chars(&[3], "abc"), "abc\n");
    assert_eq!(chars(&[], "a"), "a\n");
    assert_eq!(chars(&[4, 1], "a\0b "), "a\0b \n");
    assert_eq!(
        (chars(&[0, 2], ""), chars(&[2, 0], "")),
        ("\n\n".into(), String::new())
    );
}

/// A surrogate pair within one row is one character. If its halves are in two rows, both are
/// invalid.
#[test]
fn code_units_become_characters() {
    assert_eq!(chars(&[2, 1], "𝄞"), "𝄞\n");
    assert_eq!(chars(&[1, 2], "𝄞"), "\u{fffd}\n\u{fffd}\n");
    let of = |size: u16, order, stored: &[u8]| {
        let unit = CodeUnit::new(order, usize::from(size));
        let count = stored.len() as u64 / u64::from(size);
        let elements = elements(unsigned(size, order), Some(&[count, 1]), stored);
        text(elements, StringStorage::Matlab(MatlabElements::Chars(unit)))
    };
    assert_eq!(of(1, ByteOrder::Little, "ß".as_bytes()), "ß\n");
    assert_eq!(of(2, ByteOrder::Big, &[0x20, 0xac]), "€\n");
    assert_eq!(
        of(4, ByteOrder::Little, &[0x1e, 0xd1, 1, 0, 0, 0, 0x11, 0]),
        "𝄞\u{fffd}\n"
    );
}

/// Some of the matrices are read in parts of columns. Others are read as a whole, several at a
/// time.
#[test]
fn rows_of_any_matrix_are_found() {
    for (matrices, columns, rows) in [(1, 7, 5000), (3, 2, 2500), (700, 3, 40), (2, 5000, 3)] {
        let letter = |matrix: u64, column: u64, row: u64| {
            char::from(b'a' + ((matrix * 31 + column * 7 + row) % 26) as u8)
        };
        let mut stored = String::new();
        let mut expected = String::new();
        for matrix in 0..matrices {
            for column in 0..columns {
                stored.extend((0..rows).map(|row| letter(matrix, column, row)));
            }
            for row in 0..rows {
                expected.extend((0..columns).map(|column| letter(matrix, column, row)));
                expected.push('\n');
            }
        }
        assert_eq!(
            chars(&[matrices, columns, rows], &stored),
            expected,
            "{matrices}"
        );
    }
}

#[test]
fn an_empty_array_of_chars_has_as_many_strings_as_rows() {
    let of = |dims: &[u64]| {
        let stored: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
        let dims = [dims.len() as u64];
        let elements = elements(unsigned(8, ByteOrder::Little), Some(&dims), &stored);
        strings_of(elements, StringStorage::Matlab(MatlabElements::Dimensions))
            .map(|strings| strings.count)
    };
    assert_eq!(
        (of(&[0, 0]), of(&[0, 3]), of(&[3, 0])),
        (Ok(1), Ok(0), Ok(3))
    );
    assert_eq!(of(&[2, 0, 4]), Ok(8));
    assert!(matches!(of(&[2, 2]), Err(Error::Corrupt { .. })));
    assert!(matches!(of(&[]), Err(Error::Corrupt { .. })));
    assert!(matches!(of(&[0; 33]), Err(Error::Limit { .. })));
    assert!(matches!(of(&[u64::MAX, 0, 2]), Err(Error::Limit { .. })));
}

#[test]
fn strings_that_are_too_long_are_refused() {
    let long = limits::TEXT_ELEMENT_BYTES + 1;
    let refused = |datatype, dims: &[u64], kind| {
        let found = strings_of(elements(datatype, Some(dims), b""), kind);
        assert!(matches!(found, Err(Error::Limit { .. })), "{dims:?}");
    };
    let text = u32::try_from(long).unwrap();
    refused(
        string(text, StringPadding::NullPadded),
        &[1],
        StringStorage::Strings,
    );
    refused(
        string(1, StringPadding::NullTerminated),
        &[long],
        StringStorage::Characters,
    );
    let chars = || unsigned(2, ByteOrder::Little);
    refused(chars(), &[long / 2 + 1, 1], StringStorage::Matlab(CHARS));
    // One row would need too many separate reads.
    refused(chars(), &[1 << 20, 1 << 20], StringStorage::Matlab(CHARS));
    let most = long - 1;
    let allowed = strings_of(
        elements(chars(), Some(&[most / 2, 1]), b""),
        StringStorage::Matlab(CHARS),
    );
    assert!(allowed.is_ok());
}

#[test]
fn too_many_strings_are_not_counted() {
    // One case has too many strings, the other too many bytes although little of it may be text.
    let bytes = u32::try_from(limits::TEXT_ELEMENT_BYTES).unwrap();
    let in_bytes = limits::COUNTED_BYTES / limits::TEXT_ELEMENT_BYTES;
    for (size, most) in [(1, limits::COUNTED_VALUES), (bytes, in_bytes)] {
        let datatype = string(size, StringPadding::NullPadded);
        let many = elements(datatype, Some(&[most + 1]), b"");
        let strings = strings_of(many, StringStorage::Strings).unwrap();
        let count = TextLengthIndex::measure(&strings, &strings.engine, &Default::default());
        assert!(count.unwrap().is_none(), "of {size} bytes");
    }
}

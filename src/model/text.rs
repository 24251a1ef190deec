//! Text as stored, and as JSON.

use std::fmt::Display;

use crate::model::datatype::StringPadding;
use crate::model::number::append;

/// The text within a string's bytes.
pub fn without_padding(bytes: &[u8], padding: StringPadding) -> &[u8] {
    let pad = match padding {
        StringPadding::NullTerminated => {
            let end = bytes.iter().position(|&byte| byte == 0);
            return end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
        }
        StringPadding::NullPadded => 0,
        StringPadding::SpacePadded => b' ',
    };
    let text = bytes.iter().rposition(|&byte| byte != pad);
    let length = text.map_or(0, |last| last.saturating_add(1));
    bytes.get(..length).unwrap_or(bytes)
}

/// Whether it is a mark of the bidirectional algorithm, with which a name can be made to read as
/// another.
pub fn turns_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Appends text as a JSON string, quotes included; bytes that are not UTF-8 become `\udcXX`.
pub fn write_json_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    escape_json(text, out);
    out.push(b'"');
}

/// A JSON string, quotes included; bytes that are not UTF-8 become `\udcXX`.
pub fn json_text(text: &[u8]) -> String {
    let mut out = Vec::new();
    write_json_text(text, &mut out);
    // What was no UTF-8 is escaped.
    String::from_utf8_lossy(&out).into_owned()
}

/// A JSON object on one line.
#[derive(Debug, Default)]
pub struct Object(String);

impl Object {
    /// Appends a member whose value is a text.
    pub fn text(&mut self, name: &str, text: &[u8]) {
        self.json(name, json_text(text));
    }

    /// Appends a member whose value is JSON as it stands.
    pub fn json(&mut self, name: &str, value: impl Display) {
        let comma = if self.0.is_empty() { "" } else { ", " };
        self.0 += &format!("{comma}{}: {value}", json_text(name.as_bytes()));
    }

    /// The whole object.
    pub fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }
}

/// Appends the inside of a JSON string.
pub(super) fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            match byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                0..0x20 | 0x7F => append(out, format_args!("\\u{byte:04x}")),
                _ => out.push(byte),
            }
        }
        for byte in chunk.invalid() {
            append(out, format_args!("\\udc{byte:02x}"));
        }
    }
}

/// Bytes that a text has as a JSON string.
pub fn json_length(text: &[u8]) -> usize {
    let mut length = 2_usize; // the quotes
    for chunk in text.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            let escaped = match byte {
                b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
                0..0x20 | 0x7F => ESCAPE,
                _ => 1,
            };
            length = length.saturating_add(escaped);
        }
        let escaped = chunk.invalid().len().saturating_mul(ESCAPE);
        length = length.saturating_add(escaped);
    }
    length
}

/// Bytes of the longest form of one byte in a JSON string.
pub const ESCAPE: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: Python's `json.dumps(bytes.decode('utf-8', 'surrogateescape'),
    /// ensure_ascii=False)`.
    #[test]
    fn json_text_is_escaped_reversibly() {
        let mut out = Vec::new();
        write_json_text(b"caf\xe9 \xc3\xa9\"\n\\\x01", &mut out);
        let expected = r#""caf\udce9 é\"\n\\\u0001""#;
        assert_eq!(json_length(b"caf\xe9 \xc3\xa9\"\n\\\x01"), out.len());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn an_object_of_json() {
        assert_eq!(Object::default().finish(), "{}");
        let mut object = Object::default();
        object.text("a \"b\"", b"caf\xe9");
        object.json("n", 12);
        assert_eq!(object.finish(), r#"{"a \"b\"": "caf\udce9", "n": 12}"#);
    }
}

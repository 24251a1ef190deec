//! Conversion of stored strings to text without padding, and to JSON.

use std::fmt::Display;

use crate::model::datatype::{ByteOrder, StringPadding};
use crate::model::number::append_formatted;
use crate::wire::Count;

/// Returns a string's bytes without padding. A space-padded string that was never written contains
/// NULs, which are removed too, because HDF5's library also returns them as null padding.
pub fn without_padding(bytes: &[u8], padding: StringPadding) -> &[u8] {
    match padding {
        StringPadding::NullTerminated => {
            let end = bytes.iter().position(|&byte| byte == 0);
            end.and_then(|end| bytes.get(..end)).unwrap_or(bytes)
        }
        StringPadding::NullPadded => without_trailing(bytes, 0),
        StringPadding::SpacePadded => without_trailing(without_trailing(bytes, b' '), 0),
    }
}

/// Returns the bytes up to and including the last one that is not `pad`.
fn without_trailing(bytes: &[u8], pad: u8) -> &[u8] {
    let text = bytes.iter().rposition(|&byte| byte != pad);
    let length = text.map_or(0, Count::plus_one);
    bytes.get(..length).unwrap_or(bytes)
}

/// Converts UCS-4 characters of four bytes each to UTF-8, without padding NULs. An invalid
/// character becomes U+FFFD.
pub fn ucs4_to_utf8(stored: &[u8], order: ByteOrder) -> Vec<u8> {
    let units = stored
        .chunks_exact(4)
        .map(|unit| match (order, <[u8; 4]>::try_from(unit)) {
            (ByteOrder::Big, Ok(unit)) => u32::from_be_bytes(unit),
            (_, Ok(unit)) => u32::from_le_bytes(unit),
            (_, Err(_)) => 0,
        });
    let characters = units.map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
    let text: String = characters.collect();
    text.trim_end_matches('\0').as_bytes().to_vec()
}

/// Appends text as a JSON string, quotes included; bytes that are not UTF-8 become `\udcXX`.
pub fn write_json_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text, |part| out.extend_from_slice(part));
    out.push(b'"');
}

/// Returns `text` as a JSON string, as [`write_json_text`] writes it.
pub fn json_text(text: &[u8]) -> String {
    let mut out = Vec::new();
    write_json_text(text, &mut out);
    // The output is valid UTF-8, because other bytes were escaped.
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the length in bytes of a text as a JSON string.
pub(crate) fn json_length(text: &[u8]) -> usize {
    let mut length = 2_usize; // the quotes
    write_escaped(text, |part| length = length.plus(part.len()));
    length
}

/// Escapes `text` for JSON and passes the result, without quotes, to `write` in parts.
fn write_escaped(text: &[u8], mut write: impl FnMut(&[u8])) {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7F);
    for chunk in text.utf8_chunks() {
        for run in chunk.valid().as_bytes().split_inclusive(is_special) {
            let Some((special, plain)) = run.split_last().filter(|(last, _)| is_special(last))
            else {
                write(run);
                continue;
            };
            write(plain);
            match special {
                b'"' => write(b"\\\""),
                b'\\' => write(b"\\\\"),
                b'\n' => write(b"\\n"),
                b'\r' => write(b"\\r"),
                b'\t' => write(b"\\t"),
                &other => write(&unicode_escape(0, other)),
            }
        }
        for &byte in chunk.invalid() {
            write(&unicode_escape(0xDC, byte));
        }
    }
}

/// Returns the JSON escape sequence (`\uXXXX`) of a UTF-16 code unit, given by its two bytes.
fn unicode_escape(high: u8, low: u8) -> [u8; MAX_ESCAPE_BYTES] {
    let digit = |half: u8| {
        let digit = char::from_digit(half.into(), 16);
        digit
            .and_then(|digit| u8::try_from(digit).ok())
            .unwrap_or(b'0')
    };
    let [first, second] = [high, low].map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    [b'\\', b'u', first[0], first[1], second[0], second[1]]
}

/// Appends a JSON array on one line. `write` writes each of `items`.
pub fn write_json_list<T>(
    items: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        write(item, out);
    }
    out.push(b']');
}

/// A writer of a JSON object, on one line or with a line for each member.
#[derive(Debug, Default)]
pub struct JsonObject {
    members: Vec<u8>,
    has_line_per_member: bool,
}

impl JsonObject {
    /// Creates an object with a line for each member.
    pub fn with_line_per_member() -> Self {
        JsonObject {
            members: Vec::new(),
            has_line_per_member: true,
        }
    }

    /// Appends the key `name`. Returns the output buffer, to which the caller must append the value
    /// as JSON.
    pub fn add_key(&mut self, name: impl AsRef<[u8]>) -> &mut Vec<u8> {
        let out = &mut self.members;
        if !out.is_empty() {
            out.push(b',');
        }
        match (self.has_line_per_member, out.is_empty()) {
            (true, _) => out.extend_from_slice(b"\n  "),
            (false, false) => out.push(b' '),
            (false, true) => {}
        }
        write_json_text(name.as_ref(), out);
        out.extend_from_slice(b": ");
        out
    }

    /// Appends a member with the key `name` whose value is `text`, as a JSON string.
    pub fn add_text(&mut self, name: impl AsRef<[u8]>, text: impl AsRef<[u8]>) {
        write_json_text(text.as_ref(), self.add_key(name));
    }

    /// Appends a member with the key `name` whose value is already JSON.
    pub fn add_json(&mut self, name: impl AsRef<[u8]>, value: impl Display) {
        append_formatted(self.add_key(name), format_args!("{value}"));
    }

    /// Returns the length in bytes of the members written so far.
    pub fn length(&self) -> usize {
        self.members.len()
    }

    /// Returns the text of the whole JSON object.
    pub fn finish(self) -> String {
        let end = if self.has_line_per_member { "\n" } else { "" };
        format!("{{{}{end}}}", String::from_utf8_lossy(&self.members))
    }
}

/// Length in bytes of the longest escape sequence of one byte in a JSON string.
pub(crate) const MAX_ESCAPE_BYTES: usize = 6;

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
    fn json_objects_are_formatted() {
        assert_eq!(JsonObject::default().finish(), "{}");
        let mut object = JsonObject::default();
        object.add_text("a \"b\"", b"caf\xe9");
        object.add_json("n", 12);
        assert_eq!(object.finish(), r#"{"a \"b\"": "caf\udce9", "n": 12}"#);
        let mut lines = JsonObject::with_line_per_member();
        lines.add_text("a", "b");
        write_json_list([1, 2], lines.add_key("l"), |one, out| {
            append_formatted(out, format_args!("{one}"));
        });
        assert_eq!(lines.finish(), "{\n  \"a\": \"b\",\n  \"l\": [1, 2]\n}");
    }
}

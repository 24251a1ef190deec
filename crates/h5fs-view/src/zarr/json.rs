//! Values as JSON that every Zarr reader accepts: UTF-8 text, and finite numbers.

use std::borrow::Cow;

use h5fs_reader::model::number::FloatValue;
use h5fs_reader::model::text::{JsonObject, write_json_text};

/// Converts a text to UTF-8. Invalid bytes become `U+FFFD`. With the escape `\udcXX` in their
/// place, some parsers would reject the whole document.
pub(super) fn to_utf8(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// Appends a text as a JSON string, after converting it with [`to_utf8`].
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    write_json_text(to_utf8(text).as_bytes(), out);
}

/// Returns the JSON object with the members `name` and `configuration`, which describes a codec, a
/// chunk grid or a data type.
pub(super) fn named_configuration(name: &str, configuration: JsonObject) -> String {
    let mut object = JsonObject::default();
    object.add_text("name", name);
    object.add_json("configuration", configuration.finish());
    object.finish()
}

/// Appends a number in JSON. NaN and infinities are written as strings.
pub(super) fn write_number(value: f64, out: &mut Vec<u8>) {
    match value {
        _ if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        f64::INFINITY => out.extend_from_slice(b"\"Infinity\""),
        f64::NEG_INFINITY => out.extend_from_slice(b"\"-Infinity\""),
        _ => FloatValue::Double(value).write_text(out),
    }
}

/// Appends bytes as a JSON string in base64.
pub(super) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    append_base64(bytes, out);
    out.push(b'"');
}

/// Appends bytes in base64 (RFC 4648, section 4).
pub(super) fn append_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(padded);
        for place in 0..4_usize {
            let digit = (word >> (18 - 6 * place)) & 63;
            out.push(if place <= group.len() {
                DIGITS[digit as usize]
            } else {
                b'='
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: the test vectors of RFC 4648, section 10.
    #[test]
    fn base64_of_the_rfc() {
        let encoded = |bytes: &[u8]| {
            let mut out = Vec::new();
            write_base64(bytes, &mut out);
            String::from_utf8(out).unwrap()
        };
        for (text, expected) in [
            ("", "\"\""),
            ("f", "\"Zg==\""),
            ("fo", "\"Zm8=\""),
            ("foo", "\"Zm9v\""),
            ("foobar", "\"Zm9vYmFy\""),
        ] {
            assert_eq!(encoded(text.as_bytes()), expected);
        }
    }
}

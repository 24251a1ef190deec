//! The percent encoding of URLs; RFC 3986, section 2.1.

/// Bytes, in addition to letters and digits, that stay unencoded in a name. The name is not encoded
/// yet.
pub const IN_NAME: &[u8] = b"-._~/";

/// Bytes that are never encoded: the unreserved characters (section 2.3) that are not letters or
/// digits.
pub const UNRESERVED: &[u8] = b"-._~";

/// Bytes that stay unchanged in a path or query that is already encoded.
pub const IN_PATH: &[u8] = b"-._~/%:@!$&'()*+,;=?[]";

/// Bytes that stay unchanged in a reference that is already encoded, including the `#` before its
/// fragment.
pub const IN_REFERENCE: &[u8] = b"-._~/%:@!$&'()*+,;=?[]#";

/// Returns the text with all bytes encoded except letters, digits and `kept`.
pub fn percent_encode(text: impl AsRef<[u8]>, kept: &[u8]) -> String {
    let mut out = String::new();
    for byte in text.as_ref() {
        if byte.is_ascii_alphanumeric() || kept.contains(byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Returns the decoded text. Invalid escapes stay unchanged.
pub fn percent_decode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escape = (first == b'%').then(|| escaped_byte(after)).flatten();
        let (byte, after) = escape.unwrap_or((first, after));
        out.push(byte);
        rest = after;
    }
    out
}

/// Returns the decoded text. Returns `None` if an escape is invalid.
pub fn percent_decode_strictly(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => escaped_byte(after)?,
            _ => (first, after),
        };
        out.push(byte);
        rest = after;
    }
    Some(out)
}

/// Parses the two hexadecimal digits at the start of `text`, which follow a `%`. Returns their
/// value and the text after them. Returns `None` if two digits are missing.
fn escaped_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = text.split_at_checked(2)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok()?;
    Some((u8::from_str_radix(digits, 16).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_decoding_refuses_invalid_escapes() {
        let all: Vec<u8> = (0..=255).collect();
        let encoded = percent_encode(&all, UNRESERVED);
        assert_eq!(percent_decode_strictly(&encoded), Some(all));
        for invalid in ["%", "a%2", "%zz", "%+1"] {
            assert_eq!(percent_decode_strictly(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn percent_encoding_is_decoded() {
        assert_eq!(percent_decode("a%20b%2Fc%"), b"a b/c%");
        assert_eq!(percent_decode("%zz%+1%C3%BC"), "%zz%+1ü".as_bytes());
        assert_eq!(percent_encode("a b/ü%", IN_NAME), "a%20b/%C3%BC%25");
    }
}

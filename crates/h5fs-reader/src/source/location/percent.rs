//! The percent encoding of URLs; RFC 3986, section 2.1.

/// Bytes, in addition to letters and digits, that stay unencoded in a name. The name is not encoded
/// yet.
pub const IN_NAME: &[u8] = b"-._~/";

/// Bytes that stay unencoded in the value of a query.
pub const IN_QUERY: &[u8] = b"-._~";

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
    while let [first, more @ ..] = rest {
        let digits = more.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let is_number = |digits: &&str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let digits = digits.filter(is_number);
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = match (first, byte) {
            (b'%', Some(byte)) => {
                out.push(byte);
                more.get(2..).unwrap_or_default()
            }
            _ => {
                out.push(*first);
                more
            }
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(percent_decode("a%20b%2Fc%"), b"a b/c%");
        assert_eq!(percent_decode("%zz%+1%C3%BC"), "%zz%+1ü".as_bytes());
        assert_eq!(percent_encode("a b/ü%", IN_NAME), "a%20b/%C3%BC%25");
    }
}

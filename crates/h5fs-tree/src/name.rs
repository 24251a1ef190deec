//! Converts names in the file to names shown in the mount, and back.
//!
//! Bytes are preserved, whether valid UTF-8 or not. Names that POSIX does not allow are escaped.
//! Each shown name belongs to exactly one name in the file:
//!
//! | in the file | shown |
//! |---|---|
//! | `/` | `%2F` |
//! | NUL | `%00` |
//! | the names `.`, `..` | `%2E`, `%2E%2E` |
//! | the empty name | `%` |
//! | `.h5fs` at the root | `%2Eh5fs` |
//! | `%` before two hex digits, or as the whole name | `%25` |
//! | over 255 bytes when shown | the first 246, `~`, 8 hex digits of the name's hash |
//!
//! A name of 255 bytes with the suffix of a shortened name is shortened too, so that the two cannot
//! be confused.

use h5fs_reader::error::Result;
use h5fs_reader::wire::checksum::lookup3;
use nix::errno::Errno;

use crate::errno::refusal_error;
use crate::limits;

/// Name of the directory of views in the mount's root.
pub(super) const VIEWS: &[u8] = b".h5fs";

/// Length in bytes of the suffix of a shortened name: `~` and 8 hex digits.
const SHORTENED_SUFFIX_LENGTH: usize = 9;

/// Checks that `shown` is short enough for a name in a directory.
///
/// # Errors
/// `ENAMETOOLONG` if the name is too long.
pub(super) fn check_name_length(shown: &[u8]) -> Result<()> {
    if shown.len() <= limits::NAME_BYTES {
        Ok(())
    } else {
        Err(refusal_error(Errno::ENAMETOOLONG, "name"))
    }
}

/// Returns the shown name for the name `name` in the file. `at_root` says whether the name is in
/// the root group of its file.
pub fn escape(name: &[u8], at_root: bool) -> Vec<u8> {
    let shown = escape_whole(name, at_root);
    if shown.len() > limits::NAME_BYTES || is_shortened(&shown) {
        truncate_with_suffix(&shown, name)
    } else {
        shown
    }
}

/// Returns the name in the file for the name `shown` in the mount. Returns `None` if [`escape`]
/// never returns `shown`, or if `shown` is a shortened name.
pub fn unescape(shown: &[u8], at_root: bool) -> Option<Vec<u8>> {
    if is_shortened(shown) {
        return None;
    }
    let name = decode(shown);
    (escape(&name, at_root) == shown).then_some(name)
}

/// Shortens a shown name that is too long, for example because a suffix was added to it. Returns a
/// name of valid length unchanged.
pub(super) fn shorten(shown: Vec<u8>) -> Vec<u8> {
    if shown.len() <= limits::NAME_BYTES {
        return shown;
    }
    truncate_with_suffix(&shown, &shown)
}

/// Returns whether `shown` is the shortened form of a long name.
pub fn is_shortened(shown: &[u8]) -> bool {
    let Some((_, suffix)) = shown.split_at_checked(limits::NAME_BYTES - SHORTENED_SUFFIX_LENGTH)
    else {
        return false;
    };
    let [b'~', digits @ ..] = suffix else {
        return false;
    };
    let hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == SHORTENED_SUFFIX_LENGTH - 1 && digits.iter().all(hex)
}

fn escape_whole(name: &[u8], at_root: bool) -> Vec<u8> {
    match name {
        b"" => return b"%".to_vec(),
        b"%" => return b"%25".to_vec(),
        b"." => return b"%2E".to_vec(),
        b".." => return b"%2E%2E".to_vec(),
        VIEWS if at_root => return b"%2Eh5fs".to_vec(),
        _ => {}
    }
    let mut shown = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [byte, after @ ..] = rest {
        match byte {
            b'/' => shown.extend_from_slice(b"%2F"),
            0 => shown.extend_from_slice(b"%00"),
            b'%' if hex_byte(after).is_some() => shown.extend_from_slice(b"%25"),
            _ => shown.push(*byte),
        }
        rest = after;
    }
    shown
}

/// Returns a copy of the start of `shown`, followed by the suffix of a shortened name. Truncating
/// `shown` in place would leave gaps in memory that are too small for the next long name.
fn truncate_with_suffix(shown: &[u8], name: &[u8]) -> Vec<u8> {
    let left = shown
        .iter()
        .take(limits::NAME_BYTES - SHORTENED_SUFFIX_LENGTH)
        .copied();
    let suffix = format!("~{:08x}", lookup3(name));
    left.chain(suffix.into_bytes()).collect()
}

fn decode(shown: &[u8]) -> Vec<u8> {
    if shown == b"%" {
        return Vec::new();
    }
    let mut name = Vec::with_capacity(shown.len());
    let mut rest = shown;
    while let [byte, after @ ..] = rest {
        match hex_byte(after) {
            Some(decoded) if *byte == b'%' => {
                name.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                name.push(*byte);
                rest = after;
            }
        }
    }
    name
}

/// Decodes the first two bytes as a hexadecimal number. Returns `None` if they are not hexadecimal
/// digits.
fn hex_byte(bytes: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let [high, low, ..] = bytes else { return None };
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_forbidden_by_posix_are_escaped() {
        let shown = |name: &[u8]| String::from_utf8(escape(name, false)).unwrap();
        assert_eq!(shown(b"a/b"), "a%2Fb");
        assert_eq!(shown(b"a\0"), "a%00");
        assert_eq!(shown(b"."), "%2E");
        assert_eq!(shown(b".."), "%2E%2E");
        assert_eq!(shown(b"..."), "...");
        assert_eq!(shown(b""), "%");
        assert_eq!(shown(b"%"), "%25");
        assert_eq!(shown(b"100%"), "100%");
        assert_eq!(shown(b"%2F"), "%252F");
        assert_eq!(shown(b"%zz"), "%zz");
        assert_eq!(shown(b".h5fs"), ".h5fs");
        assert_eq!(escape(b".h5fs", true), b"%2Eh5fs");
        assert_eq!(unescape(b"%2Eh5fs", true).unwrap(), b".h5fs");
        assert_eq!(unescape(b".h5fs", true), None);
        assert_eq!(unescape(b"%2Eh5fs", false), None);
        assert_eq!(unescape(b"%2fx", false), None);
    }

    #[test]
    fn cuts_long_names() {
        let shown = escape(&[b'n'; 256], false);
        assert_eq!(shown.len(), 255);
        assert!(escape(&[b'n'; 50_000], false).capacity() < 300);
        assert!(is_shortened(&shown) && unescape(&shown, false).is_none());
        assert_ne!(shown, escape(&[b'n'; 257], false));
        // A real name that looks shortened is shortened as well.
        assert_ne!(escape(&shown, false), shown);
        assert_eq!(escape(&[b'n'; 255], false), [b'n'; 255]);
    }

    fn names() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            Just(b'%'),
            Just(b'/'),
            Just(0),
            Just(b'.'),
            Just(b'2'),
            Just(b'F'),
            any::<u8>()
        ];
        prop_oneof![
            prop::collection::vec(byte.clone(), 0..12),
            prop::collection::vec(byte, 80..300)
        ]
    }

    proptest! {
        #[test]
        fn shown_names_can_be_reversed(name in names(), at_root: bool) {
            let shown = escape(&name, at_root);
            prop_assert!(!shown.is_empty() && shown.len() <= 255);
            prop_assert!(!shown.contains(&b'/') && !shown.contains(&0));
            prop_assert!(shown != b"." && shown != b"..");
            if !is_shortened(&shown) {
                prop_assert_eq!(unescape(&shown, at_root), Some(name));
            }
        }

        #[test]
        fn a_lookup_accepts_only_what_is_shown(shown in names(), at_root: bool) {
            if let Some(name) = unescape(&shown, at_root) {
                prop_assert_eq!(escape(&name, at_root), shown);
            }
        }
    }
}

//! Names of netCDF: which bytes they may have, and how other names are changed.
//!
//! | name in the source | name in the file |
//! |---|---|
//! | `/`, a control character, a byte that is not UTF-8, a space at the end | `%` and two hexadecimal digits for each such byte |
//! | another first character than a letter, a digit, `_` or one beyond ASCII | `_` before the name |
//! | the same name as another dimension, variable or attribute of its owner | `_1`, `_2` … after the name |

use std::collections::HashSet;

use crate::limits;
use crate::netcdf::absent::{Converted, Omission};

/// The names of all dimensions, of all variables, or of all attributes of one owner.
#[derive(Default)]
pub(super) struct NameSpace(HashSet<Vec<u8>>);

impl NameSpace {
    /// Returns the name in the file for the name `name` of the source. No later name is equal to
    /// it.
    ///
    /// # Errors
    /// `Absent` for a name that is longer than netCDF allows.
    pub(super) fn add(&mut self, name: &[u8]) -> Converted<Vec<u8>> {
        let plain = escape(name);
        let numbered = |number: usize| [&*plain, format!("_{number}").as_bytes()].concat();
        let mut names = std::iter::once(plain.clone()).chain((1..).map(numbered));
        let free = names.find(|name| !self.0.contains(name));
        let free = free.unwrap_or_default();
        if free.len() > limits::NETCDF_NAME {
            let most = limits::NETCDF_NAME;
            return Err(Omission::absent(format!(
                "a name of more than {most} bytes"
            )));
        }
        self.0.insert(free.clone());
        Ok(free)
    }
}

/// Returns `name` without the bytes that netCDF forbids in a name.
fn escape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let first = name.first().copied().unwrap_or(b'/');
    if !(first.is_ascii_alphanumeric() || first == b'_' || !first.is_ascii()) {
        out.push(b'_');
    }
    let last = name.iter().rposition(|&byte| byte != b' ');
    let (text, spaces) = name.split_at(last.map_or(0, |last| last + 1));
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '/' | '\0'..='\x1f' | '\x7f' => escape_bytes(&[character as u8], &mut out),
                _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        escape_bytes(chunk.invalid(), &mut out);
    }
    escape_bytes(spaces, &mut out);
    out
}

fn escape_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend_from_slice(format!("%{byte:02X}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: the rules of `NC_check_name` in netCDF's library.
    #[test]
    fn forbidden_bytes_are_escaped() {
        for (name, expected) in [
            (&b"air temperature"[..], "air temperature"),
            (b"a/b", "a%2Fb"),
            (b"a\tb\x7f", "a%09b%7F"),
            (b"end  ", "end%20%20"),
            (b"a \n ", "a %0A%20"),
            (b"-x", "_-x"),
            (b"%x", "_%x"),
            (b"", "_"),
            (b"4d", "4d"),
            ("\u{e9}t\u{e9}".as_bytes(), "\u{e9}t\u{e9}"),
            (b"b\xff", "b%FF"),
        ] {
            assert_eq!(escape(name), expected.as_bytes(), "{name:?}");
        }
    }

    #[test]
    fn each_name_exists_once() {
        let mut names = NameSpace::default();
        let mut add = |name: &str| String::from_utf8(names.add(name.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            ["x", "x", "x_1", "x"].map(&mut add),
            ["x", "x_1", "x_1_1", "x_2"]
        );
    }

    #[test]
    fn a_name_has_as_many_bytes_as_netcdf_allows() {
        let mut names = NameSpace::default();
        let longest = "x".repeat(limits::NETCDF_NAME);
        assert!(names.add(longest.as_bytes()).is_ok());
        // The number makes the second name too long.
        assert!(matches!(
            names.add(longest.as_bytes()),
            Err(Omission::Absent(_))
        ));
    }
}

//! The target of a `$ref`: a URI whose fragment is a JSON Pointer (RFC 6901).

use crate::source::location::percent::percent_decode;

/// A parsed `$ref`: a file, and the path of a node in its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The other file. A relative path is percent-decoded, and a URI with a scheme or host is
    /// unchanged. `None` for this file.
    pub(crate) file: Option<Vec<u8>>,
    /// Keys and item numbers from the root, unescaped.
    pub(crate) names: Vec<Vec<u8>>,
}

/// Parses a reference. Every text is valid.
///
/// The fragment is percent-decoded before it is split, and all its leading slashes are removed, as
/// in the reference library. `#a/b` is equal to `#/a/b`, and `#/` is the whole document.
pub(crate) fn parse(uri: &str) -> Reference {
    let (file, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    Reference {
        file: (!file.is_empty()).then(|| file_name(file)),
        names: names(fragment),
    }
}

/// Returns the name of the file to which a URI without a fragment refers. A relative path is
/// percent-decoded. A URI with a scheme or a host is unchanged.
pub(crate) fn file_name(uri: &str) -> Vec<u8> {
    if has_scheme(uri) || uri.starts_with("//") {
        return uri.as_bytes().to_vec();
    }
    percent_decode(uri)
}

/// Returns whether a URI begins with a scheme, such as `http:` or `fits:`.
pub(crate) fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(word)
    })
}

fn names(fragment: &str) -> Vec<Vec<u8>> {
    let pointer = percent_decode(fragment.trim_start_matches('/'));
    if pointer.is_empty() {
        return Vec::new();
    }
    pointer
        .split(|&byte| byte == b'/')
        .map(|token| replace_bytes(&replace_bytes(token, b"~1", b'/'), b"~0", b'~'))
        .collect()
}

fn replace_bytes(text: &[u8], from: &[u8], to: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = match rest.strip_prefix(from) {
            Some(after) => {
                out.push(to);
                after
            }
            None => {
                out.push(first);
                after
            }
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_reference(uri: &str) -> (Option<String>, Vec<String>) {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let reference = parse(uri);
        let names = reference.names.into_iter().map(text).collect();
        (reference.file.map(text), names)
    }

    #[test]
    fn pointers_are_unescaped() {
        let names = |uri| parse_reference(uri).1;
        assert_eq!(names("#/later/a~1b~0c/1"), ["later", "a/b~c", "1"]);
        assert_eq!(names("#/sp%20ace/%2541"), ["sp ace", "%41"]);
        assert_eq!(names("#noslash/x"), ["noslash", "x"]);
        assert!(names("#").is_empty() && names("").is_empty());
        // RFC 6901, section 4: ~01 is ~1, not /.
        assert_eq!(names("#/~01"), ["~1"]);
    }

    #[test]
    fn files_are_named_before_the_fragment() {
        let file = |uri| parse_reference(uri).0;
        assert_eq!(file("#/a"), None);
        assert_eq!(file("with%20blank.asdf#/a").unwrap(), "with blank.asdf");
        assert_eq!(file("http://h/a%20b.asdf").unwrap(), "http://h/a%20b.asdf");
    }
}

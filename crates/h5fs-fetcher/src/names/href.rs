//! Resolves the URI references (links) in the page of a directory; RFC 3986, section 5.
//!
//! A name is a single path component. A reference that leads out of the directory, has a query, or
//! contains an encoded `/` is not a name.

use h5fs_reader::source::location::percent::percent_decode;
use http::Uri;

use crate::hosts;

/// The directory whose names a page lists.
#[derive(Debug)]
pub(super) struct BaseDirectory {
    uri: Uri,
    /// The decoded components of the directory's path.
    parts: Vec<Vec<u8>>,
}

/// The destination of a link in a directory's page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HrefTarget {
    /// A name in the directory.
    Child {
        name: Vec<u8>,
        /// Whether the link ends with `/`.
        is_directory: bool,
    },
    /// The directory itself.
    Itself,
    /// The parent directory.
    Parent,
    /// Any other target.
    Elsewhere,
}

impl BaseDirectory {
    /// Returns the directory whose page has the URI `uri`.
    pub(super) fn from_uri(uri: &Uri) -> Self {
        let directory = uri.path().rsplit_once('/').map_or("", |(before, _)| before);
        let parts = directory.split('/').filter(|part| !part.is_empty());
        BaseDirectory {
            uri: uri.clone(),
            parts: parts.map(percent_decode).collect(),
        }
    }

    /// Returns the decoded path of the directory, with a `/` before each component.
    pub(super) fn path(&self) -> Vec<u8> {
        let parts = self.parts.iter().flat_map(|part| [&b"/"[..], part]);
        parts.collect::<Vec<_>>().concat()
    }

    /// Resolves a link relative to the directory.
    pub(super) fn resolve(&self, reference: &str) -> HrefTarget {
        let reference = reference.trim();
        if reference.contains(['?', '#']) || reference.is_empty() {
            return HrefTarget::Elsewhere;
        }
        match self.absolute_path(reference) {
            Some(path) => self.resolve_path(path),
            None if has_scheme(reference) => HrefTarget::Elsewhere,
            None => resolve_relative(reference),
        }
    }

    /// Returns the path of an absolute link, or `None` if the link is relative. The path is empty
    /// if the link leads to another server.
    fn absolute_path<'a>(&self, reference: &'a str) -> Option<&'a str> {
        let of_server = match reference.split_once("://") {
            Some((scheme, rest)) if is_word(scheme) => {
                let own = self.uri.scheme_str().unwrap_or_default();
                Some((scheme.eq_ignore_ascii_case(own), rest))
            }
            _ => reference.strip_prefix("//").map(|rest| (true, rest)),
        };
        let Some((is_own, rest)) = of_server else {
            return reference.starts_with('/').then_some(reference);
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_own = is_own && self.is_own(authority);
        Some(if is_own { path } else { "" })
    }

    fn is_own(&self, authority: &str) -> bool {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let uri = format!("{scheme}://{authority}/").parse::<Uri>();
        let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
        uri.is_ok_and(|uri| {
            host(&uri) == host(&self.uri)
                && hosts::port(&uri) == hosts::port(&self.uri)
                && !authority.contains('@')
        })
    }

    /// Resolves the absolute path of a link.
    fn resolve_path(&self, path: &str) -> HrefTarget {
        let Some(path) = path.strip_prefix('/') else {
            return HrefTarget::Elsewhere;
        };
        let (path, is_directory) = match path.strip_suffix('/') {
            Some(path) => (path, true),
            None => (path, path.is_empty()),
        };
        let parts: Vec<_> = match path {
            "" => Vec::new(),
            path => path.split('/').map(percent_decode).collect(),
        };
        let own = &self.parts;
        match parts.strip_prefix(&own[..]) {
            Some([]) => HrefTarget::Itself,
            Some([name]) if is_name(name) => HrefTarget::Child {
                name: name.clone(),
                is_directory,
            },
            None if own.split_last().is_some_and(|(_, above)| parts == above) => HrefTarget::Parent,
            _ => HrefTarget::Elsewhere,
        }
    }
}

/// Resolves a link that does not start with `/`.
fn resolve_relative(reference: &str) -> HrefTarget {
    let reference = reference.strip_prefix("./").unwrap_or(reference);
    match reference {
        "" | "." => return HrefTarget::Itself,
        ".." | "../" => return HrefTarget::Parent,
        _ => {}
    }
    let (name, is_directory) = match reference.strip_suffix('/') {
        Some(name) => (name, true),
        None => (reference, false),
    };
    let decoded = percent_decode(name);
    if name.contains('/') || !is_name(&decoded) {
        return HrefTarget::Elsewhere;
    }
    HrefTarget::Child {
        name: decoded,
        is_directory,
    }
}

/// Returns whether a decoded path component is a valid name.
fn is_name(part: &[u8]) -> bool {
    let is_text = std::str::from_utf8(part).is_ok_and(|text| !text.contains('\u{fffd}'));
    is_text && !matches!(part, b"" | b"." | b"..") && !part.contains(&b'/') && !part.contains(&0)
}

/// Returns whether a link starts with a scheme: whether a `:` occurs before the first `/`.
fn has_scheme(reference: &str) -> bool {
    let first = reference.split('/').next().unwrap_or_default();
    first.contains(':')
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve_href(base: &str, reference: &str) -> String {
        match BaseDirectory::from_uri(&base.parse().unwrap()).resolve(reference) {
            HrefTarget::Child { name, is_directory } => {
                let end = if is_directory { "/" } else { "" };
                format!("{}{end}", String::from_utf8_lossy(&name))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_one_part_beneath_the_directory() {
        let base = "https://host:443/d%20a/sub/index.html";
        for (reference, wanted) in [
            ("a.h5", "a.h5"),
            (" ./a.h5 ", "a.h5"),
            ("a%20b%26.h5", "a b&.h5"),
            ("sub/", "sub/"),
            ("50%.h5", "50%.h5"),
            ("/d%20a/sub/a.h5", "a.h5"),
            ("/d a/sub/b/", "b/"),
            ("https://HOST/d%20a/sub/a.h5", "a.h5"),
            ("//host/d%20a/sub/a.h5", "a.h5"),
            ("./a:b.h5", "a:b.h5"),
            ("...", "..."),
        ] {
            assert_eq!(resolve_href(base, reference), wanted, "{reference}");
        }
        assert_eq!(resolve_href("http://h/", "/a.h5"), "a.h5");
        assert_eq!(resolve_href("http://h", "a/"), "a/");
    }

    #[test]
    fn links_out_of_the_directory_are_not_names() {
        let base = "https://host/d/sub/";
        for reference in [
            "",
            "?C=N;O=D",
            "a.h5?x=1",
            "a.h5#b",
            "#top",
            "../x.h5",
            "../sub/../../x",
            "sub/a.h5",
            "a//",
            "//",
            "%2e%2e",
            "%2E%2e/",
            "%2e",
            "..%2fx",
            "a%2Fb.h5",
            "a%00.h5",
            "%ff",
            "%EF%BF%BD",
            "/d/subx/a.h5",
            "/d/sub/a/b.h5",
            "/d/sub/%2e%2e",
            "/d%2Fsub/a.h5",
            "/d/sub//a.h5",
            "/x.h5",
            "https://other/d/sub/a.h5",
            "http://host/d/sub/a.h5",
            "https://host:8443/d/sub/a.h5",
            "https://joe@host/d/sub/a.h5",
            "//other/d/sub/a.h5",
            "https://host",
            "mailto:joe",
            "javascript:alert(1)",
            "data:x",
            "a:b.h5",
        ] {
            assert_eq!(resolve_href(base, reference), "Elsewhere", "{reference}");
        }
    }

    #[test]
    fn links_to_the_parent_directory_are_recognized() {
        let base = "https://host/d/sub/";
        for reference in ["..", "../", "/d", "/d/", "./../", "https://host/d/"] {
            assert_eq!(resolve_href(base, reference), "Parent", "{reference}");
        }
        for reference in [".", "./", "/d/sub", "/d/sub/"] {
            assert_eq!(resolve_href(base, reference), "Itself", "{reference}");
        }
        assert_eq!(resolve_href("http://h/", "/"), "Itself");
        assert_eq!(
            BaseDirectory::from_uri(&"http://h/a%20b/c/d".parse().unwrap()).path(),
            b"/a b/c"
        );
    }
}

//! Parses the target of a request (path and query); RFC 9112, section 3.2, and RFC 3986.

use h5fs_reader::source::location::percent::{UNRESERVED, percent_decode_strictly, percent_encode};
use http::Uri;

use crate::http::fault::RequestFault;
use crate::limits;

/// The parsed path and query of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RequestTarget {
    /// Names in the path, from the root, percent-decoded.
    pub(super) names: Vec<Vec<u8>>,
    /// Whether the path ends in a slash, as the path of a directory does.
    pub(super) is_directory: bool,
    /// Access token in the query, if there is one.
    pub(super) token: Option<String>,
    /// Whether the query requests a directory listing where the default is the page about a data
    /// file.
    pub(super) wants_list: bool,
    /// Whether the query requests the page about a data file where the default is a directory
    /// listing. Listings use this for their links.
    pub(super) wants_page: bool,
    /// Whether the target is the script of pages.
    pub(super) wants_script: bool,
    /// Text to search for in a data file. The path is then the data file's directory `.h5fs/html`.
    pub(super) search_text: Option<Vec<u8>>,
    /// The query of the URL, encoded.
    pub(super) query: String,
}

impl RequestTarget {
    /// Parses a URI.
    ///
    /// # Errors
    /// 400 for an invalid encoding, or for a name that no file can have: `.`, `..`, a name with a
    /// slash or a NUL, or an empty name.
    pub(super) fn parse(uri: &Uri) -> Result<Self, RequestFault> {
        let path = uri.path().strip_prefix('/');
        let path =
            path.ok_or_else(|| RequestFault::bad_request("the request target is not a path"))?;
        let mut target = RequestTarget {
            is_directory: path.is_empty() || path.ends_with('/'),
            query: uri.query().unwrap_or_default().to_owned(),
            ..RequestTarget::default()
        };
        if !path.is_empty() {
            let names = path.strip_suffix('/').unwrap_or(path);
            target.names = names
                .split('/')
                .map(decode_name)
                .collect::<Result<_, _>>()?;
        }
        for word in uri.query().unwrap_or_default().split('&') {
            match word.split_once('=') {
                Some(("token", token)) => target.token = Some(token.to_owned()),
                Some(("script", _)) => target.wants_script = true,
                Some(("search", text)) => {
                    target.search_text = Some(parse_search_text(text)?);
                }
                None if word == "list" => target.wants_list = true,
                None if word == "page" => target.wants_page = true,
                _ => {}
            }
        }
        Ok(target)
    }

    /// Returns the path of the target, as names separated by slashes.
    pub(super) fn path(&self) -> Vec<u8> {
        self.names.join(&b'/')
    }

    /// Returns a relative URL of the target itself, without the token in the query.
    pub(super) fn relative_url(&self) -> String {
        let query = match (self.wants_list, self.wants_page) {
            (true, _) => "?list",
            (false, true) => "?page",
            (false, false) => "",
        };
        match self.names.last() {
            Some(last) if self.is_directory => format!("../{}/{query}", encode_name(last)),
            Some(last) => format!("./{}{query}", encode_name(last)),
            None => format!("./{query}"),
        }
    }
}

/// Parses the percent-encoded text to search for.
fn parse_search_text(text: &str) -> Result<Vec<u8>, RequestFault> {
    let text = percent_decode_strictly(text)
        .ok_or_else(|| RequestFault::bad_request("`%` without two hexadecimal digits"))?;
    if (1..=limits::HTTP_WANTED).contains(&text.len()) {
        Ok(text)
    } else {
        Err(RequestFault::bad_request(
            "the search text is empty or too long",
        ))
    }
}

/// Percent-encodes a name for a relative URL. All but unreserved characters are encoded, so that a
/// name is never parsed as a scheme, a query or a fragment.
pub(super) fn encode_name(name: &[u8]) -> String {
    percent_encode(name, UNRESERVED)
}

/// Returns whether a decoded name is one that a file can have, and does not lead elsewhere.
pub(super) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Parses one percent-encoded name of the path.
fn decode_name(text: &str) -> Result<Vec<u8>, RequestFault> {
    let name = percent_decode_strictly(text)
        .ok_or_else(|| RequestFault::bad_request("`%` without two hexadecimal digits"))?;
    match &name[..] {
        b"" => Err(RequestFault::bad_request("an empty name")),
        b"." | b".." => Err(RequestFault::bad_request("a name of dots")),
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => {
            Err(RequestFault::bad_request("a name with a slash or a NUL"))
        }
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(uri: &str) -> Result<RequestTarget, RequestFault> {
        RequestTarget::parse(&uri.parse().unwrap())
    }

    #[test]
    fn a_target_is_names() {
        let names = |uri: &str| target(uri).map(|target| target.names).unwrap();
        assert_eq!(names("/"), Vec::<Vec<u8>>::new());
        assert_eq!(names("/run/temp"), [&b"run"[..], b"temp"]);
        assert_eq!(names("/run/temp/"), [&b"run"[..], b"temp"]);
        assert_eq!(names("/%ff%20%25"), [b"\xff %"]);
        // The tree shows a slash in a name as `%2F`.
        assert_eq!(names("/a%252Fb"), [b"a%2Fb"]);
        assert_eq!(names("/t%5B0%2C%3A%5D"), [b"t[0,:]"]);
        assert_eq!(names("http://other/x?y"), [b"x"]);
        assert!(target("/a/").unwrap().is_directory && !target("/a").unwrap().is_directory);
    }

    #[test]
    fn no_name_leads_elsewhere() {
        for uri in [
            "/..",
            "/a/../b",
            "/%2e%2e/x",
            "/.%2E",
            "/.",
            "/a/./b",
            "//",
            "//a",
            "/a//b",
            "/a//",
            "/%00",
            "/a%00b",
            "/a%2fb",
            "/%2F",
            "/%",
            "/%4",
            "/%zz",
            "/a%2",
        ] {
            assert!(target(uri).is_err(), "{uri}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_path_is_refused_or_names_of_one_directory_each(path in "/(\\PC|%[0-9a-fA-F]{2}|[./%]){0,40}") {
            if let Ok(uri) = path.parse::<Uri>()
                && let Ok(target) = RequestTarget::parse(&uri)
            {
                let is_safe = |name: &Vec<u8>| {
                    let is_dots = [&b"."[..], b".."].contains(&&name[..]);
                    !name.is_empty() && !is_dots && !name.iter().any(|byte| [b'/', 0].contains(byte))
                };
                proptest::prop_assert!(target.names.iter().all(is_safe), "{:?}", target.names);
            }
        }
    }

    #[test]
    fn a_query_is_looked_at() {
        let with = target("/a?list&token=abc&x=1").unwrap();
        assert_eq!(with.token.as_deref(), Some("abc"));
        assert!(with.wants_list);
        assert_eq!(with.relative_url(), "./a?list");
        assert_eq!(
            target("/a%3Ab/?token=1").unwrap().relative_url(),
            "../a%3Ab/"
        );
        assert_eq!(target("/?token=1").unwrap().relative_url(), "./");
    }

    #[test]
    fn a_name_is_encoded_as_bytes() {
        assert_eq!(encode_name(b"a b:c?\xff/~"), "a%20b%3Ac%3F%FF%2F~");
    }
}

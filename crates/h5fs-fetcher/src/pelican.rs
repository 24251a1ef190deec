//! The Pelican platform: a federation of caches. OSDF is one such federation.
//!
//! `https://FEDERATION/.well-known/pelican-configuration` names the director. The director
//! redirects a request for an object (307) to a nearby cache, and names alternative caches in
//! `Link:` headers (RFC 8288), the best first: `<URL>; rel="duplicate"; pri=1`.

use h5fs_reader::source::location::{Location, Url};
use http::{HeaderMap, Uri};

use crate::fetch_error::FetchError;
use crate::links::{WebLink, parse_links};

/// Ports of Pelican caches, in addition to 80 and 443.
pub(super) const PORTS: [u16; 2] = [8443, 8444];

/// Path of a federation's configuration.
pub(super) const CONFIGURATION: &str = ".well-known/pelican-configuration";

/// Maximum number of alternative caches from one response.
const MAX_DUPLICATES: usize = 16;

/// Parses the URL of the director from a federation's configuration: `{"director_endpoint":
/// "https://…", …}`.
///
/// # Errors
/// `Other` if the text does not name a server.
pub(super) fn parse_director(configuration: &[u8]) -> Result<Url, FetchError> {
    let parsed = serde_json::from_slice::<serde_json::Value>(configuration).ok();
    let endpoint = parsed
        .as_ref()
        .and_then(|parsed| parsed.get("director_endpoint"));
    let location = endpoint
        .and_then(serde_json::Value::as_str)
        .and_then(|text| Location::parse(text.into()).ok());
    match location {
        Some(Location::Url(url)) if url.is_server() => Ok(url),
        _ => Err(FetchError::permanent(
            "the federation's configuration names no director",
        )),
    }
}

/// Returns the locations of an object that a response names in addition to `Location`. The best
/// location is the first one.
pub(super) fn parse_duplicates(headers: &HeaderMap) -> Vec<Uri> {
    let duplicate = |link: WebLink<'_>| {
        let uri = link
            .has_relation("duplicate")
            .then(|| link.uri.parse().ok())??;
        Some((link.priority.unwrap_or(u32::MAX), uri))
    };
    let mut found: Vec<_> = parse_links(headers)
        .filter_map(duplicate)
        .take(MAX_DUPLICATES)
        .collect();
    found.sort_by_key(|(priority, _)| *priority);
    found.into_iter().map(|(_, uri)| uri).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_configuration_names_its_director() {
        let text = br#"{"director_endpoint": "https://osdf-director.osg-htc.org", "jwks_uri": "https://a/b"}"#;
        let found = parse_director(text).map(|url| url.to_string());
        assert_eq!(found.as_deref(), Ok("https://osdf-director.osg-htc.org/"));
        for wrong in [
            &b""[..],
            b"<html>",
            b"{}",
            br#"{"director_endpoint": 1}"#,
            br#"{"director_endpoint": "s3://bucket"}"#,
            br#"{"director_endpoint": "https://joe:sesame@host"}"#,
        ] {
            assert!(parse_director(wrong).is_err());
        }
    }

    #[test]
    fn caches_are_sorted_by_priority() {
        let mut headers = HeaderMap::new();
        let first = r#"<https://c.org:8443/a,b>; rel="duplicate"; pri=3; depth=2, <https://a.org:8443/a,b>; rel="duplicate"; pri=1; depth=2"#;
        let second =
            r#"<https://b.org/a,b>;rel=duplicate;pri=2,<https://d.org/x>; rel="next"; pri=1"#;
        for value in [first, second, "<no uri>; rel=duplicate", "<"] {
            headers.append("link", HeaderValue::from_static(value));
        }
        let found: Vec<_> = parse_duplicates(&headers)
            .iter()
            .map(ToString::to_string)
            .collect();
        let wanted = [
            "https://a.org:8443/a,b",
            "https://b.org/a,b",
            "https://c.org:8443/a,b",
        ];
        assert_eq!(found, wanted);
        for number in 0..100 {
            let value = format!("<https://h.org/{number}>; rel=duplicate");
            headers.append("link", value.parse().unwrap());
        }
        assert_eq!(parse_duplicates(&headers).len(), MAX_DUPLICATES);
    }
}

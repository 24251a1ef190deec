//! The Pelican platform: a federation of caches, of which OSDF is one.
//!
//! `https://FEDERATION/.well-known/pelican-configuration` names the director. The director leads a
//! request for an object (307) to a cache near by, and names others in `Link:` headers (RFC 8288),
//! the best first: `<URL>; rel="duplicate"; pri=1`.

use http::{HeaderMap, Uri};

use crate::cli::fetcher::trouble::Trouble;
use crate::source::location::{Location, Url};

/// Ports of caches, beside 80 and 443.
pub(super) const PORTS: [u16; 2] = [8443, 8444];

/// Where a federation says what its director is.
pub(super) const CONFIGURATION: &str = ".well-known/pelican-configuration";

/// Caches of one answer; further ones are left out.
const CACHES: usize = 16;

/// The director that a configuration names: `{"director_endpoint": "https://…", …}`.
///
/// # Errors
/// `Other` for a text that names no server.
pub(super) fn director(configuration: &[u8]) -> Result<Url, Trouble> {
    let parsed = serde_json::from_slice::<serde_json::Value>(configuration).ok();
    let endpoint = parsed
        .as_ref()
        .and_then(|parsed| parsed.get("director_endpoint"));
    let location = endpoint
        .and_then(serde_json::Value::as_str)
        .and_then(|text| Location::parse(text.into()).ok());
    match location {
        Some(Location::Url(url)) if url.is_server() => Ok(url),
        _ => Err(Trouble::other(
            "the federation's configuration names no director",
        )),
    }
}

/// The places that an answer names beside `Location`, the best first.
pub(super) fn duplicates(headers: &HeaderMap) -> Vec<Uri> {
    let texts = headers
        .get_all("link")
        .iter()
        .filter_map(|value| value.to_str().ok());
    // A `,` may stand in a URL, but not before the `<` of the next one.
    let links = texts.flat_map(|text| text.split(",<").flat_map(|part| part.split(", <")));
    let mut found: Vec<_> = links.filter_map(duplicate).take(CACHES).collect();
    found.sort_by_key(|(priority, _)| *priority);
    found.into_iter().map(|(_, uri)| uri).collect()
}

fn duplicate(link: &str) -> Option<(u32, Uri)> {
    let (uri, parameters) = link.trim().trim_start_matches('<').split_once('>')?;
    let parameters = parameters
        .split(';')
        .filter_map(|one| one.trim().split_once('='));
    let value = |name: &str| {
        let (_, value) = parameters
            .clone()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(value.trim_matches('"'))
    };
    let priority = value("pri").and_then(|text| text.parse().ok());
    let is_duplicate = value("rel").is_some_and(|rel| rel.eq_ignore_ascii_case("duplicate"));
    is_duplicate.then_some(())?;
    Some((priority.unwrap_or(u32::MAX), uri.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_configuration_names_its_director() {
        let text = br#"{"director_endpoint": "https://osdf-director.osg-htc.org", "jwks_uri": "https://a/b"}"#;
        let found = director(text).map(|url| url.to_string());
        assert_eq!(found.as_deref(), Ok("https://osdf-director.osg-htc.org/"));
        for wrong in [
            &b""[..],
            b"<html>",
            b"{}",
            br#"{"director_endpoint": 1}"#,
            br#"{"director_endpoint": "s3://bucket"}"#,
            br#"{"director_endpoint": "https://joe:sesame@host"}"#,
        ] {
            assert!(director(wrong).is_err());
        }
    }

    #[test]
    fn caches_come_by_their_priority() {
        let mut headers = HeaderMap::new();
        let first = r#"<https://c.org:8443/a,b>; rel="duplicate"; pri=3; depth=2, <https://a.org:8443/a,b>; rel="duplicate"; pri=1; depth=2"#;
        let second =
            r#"<https://b.org/a,b>;rel=duplicate;pri=2,<https://d.org/x>; rel="next"; pri=1"#;
        for value in [first, second, "<no uri>; rel=duplicate", "<"] {
            headers.append("link", HeaderValue::from_static(value));
        }
        let found: Vec<_> = duplicates(&headers)
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
        assert_eq!(duplicates(&headers).len(), CACHES);
    }
}

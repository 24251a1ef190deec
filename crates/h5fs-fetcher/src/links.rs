//! The `Link` header: other URIs and their relation to the requested URI; RFC 8288.

use http::HeaderMap;

/// A link: `<URI>; rel="…"; pri=1`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WebLink<'a> {
    pub(super) uri: &'a str,
    pub(super) rel: &'a str,
    /// Priority of a Pelican cache. The cache with the smallest number is the best one.
    pub(super) priority: Option<u32>,
}

/// Returns the links of a response in their order.
pub(super) fn parse_links(headers: &HeaderMap) -> impl Iterator<Item = WebLink<'_>> {
    let all = headers.get_all("link").iter();
    let texts = all.filter_map(|value| value.to_str().ok());
    // A URL may contain a `,`, but not before the `<` of the next link.
    let links = texts.flat_map(|text| text.split(",<").flat_map(|part| part.split(", <")));
    links.filter_map(WebLink::parse)
}

impl<'a> WebLink<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (uri, parameters) = text.trim().trim_start_matches('<').split_once('>')?;
        let pairs = parameters.split(';');
        let pairs = pairs.filter_map(|one| one.trim().split_once('='));
        let value = |name: &str| {
            let mut pairs = pairs.clone();
            let (_, value) = pairs.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
            Some(value.trim_matches('"'))
        };
        Some(WebLink {
            uri,
            rel: value("rel").unwrap_or_default(),
            priority: value("pri").and_then(|text| text.parse().ok()),
        })
    }

    pub(super) fn has_relation(&self, rel: &str) -> bool {
        self.rel.eq_ignore_ascii_case(rel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_relations() {
        let mut headers = HeaderMap::new();
        let text = "<https://h/a?b=1,2>; rel=\"next\", <c>;REL=prev;pri=7,<d>, no link";
        headers.append("link", text.parse().unwrap());
        let found: Vec<_> = parse_links(&headers)
            .map(|one| (one.uri, one.rel, one.priority))
            .collect();
        let wanted = [
            ("https://h/a?b=1,2", "next", None),
            ("c", "prev", Some(7)),
            ("d", "", None),
        ];
        assert_eq!(found, wanted);
        assert!(parse_links(&headers).next().unwrap().has_relation("Next"));
    }
}

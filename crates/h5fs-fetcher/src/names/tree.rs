//! The file tree of a Hugging Face dataset: the Hub's API, "List repository tree".
//!
//! The files of `datasets/OWNER/NAME/resolve/REVISION/PATH` are listed at
//! `api/datasets/OWNER/NAME/tree/REVISION/PATH`, a thousand per page. A page is a list of `{"type":
//! "file", "path": "PATH/a.h5", "size": 4, …}` and `{"type": "directory", …}`. The `Link` header
//! names the next page.

use h5fs_reader::source::location::percent::percent_decode;
use http::{HeaderMap, Uri};

use crate::fetch_error::FetchError;
use crate::limits;
use crate::links::parse_links;
use crate::names::json;
use crate::names::page::{NameSet, invalid_page};

/// Returns the decoded path of a directory within its dataset. The path does not end with `/`.
pub(super) fn path_in_dataset(directory: &str) -> Vec<u8> {
    let path = directory.strip_suffix('/').unwrap_or(directory);
    let mut parts = path.splitn(6, '/');
    parts.nth(5).map(percent_decode).unwrap_or_default()
}

/// Parses one page of a directory's listing, and adds its names to `names`. `within` is the path of
/// the directory in its dataset.
///
/// # Errors
/// Fails for an incomplete or invalid page, for names in another directory, and for too many names.
pub(super) fn add_page_names(
    body: &[u8],
    within: &[u8],
    names: &mut NameSet,
) -> Result<(), FetchError> {
    let text = std::str::from_utf8(body).map_err(|_| invalid_page())?;
    for entry in json::parse_entries(text)? {
        let entry = entry?;
        let text = |name: &str| entry.get(name).and_then(serde_json::Value::as_str);
        let (Some(path), Some(kind)) = (text("path"), text("type")) else {
            return Err(invalid_page());
        };
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if directory.as_bytes() != within {
            return Err(invalid_page());
        }
        if !matches!(name, "." | "..") {
            names.add(name.as_bytes().to_vec(), kind == "directory")?;
        }
    }
    Ok(())
}

/// Returns the query of the next page's URL. Returns `None` on the last page.
///
/// # Errors
/// Fails if the link to the next page is invalid.
pub(super) fn next_page_query(headers: &HeaderMap) -> Result<Option<String>, FetchError> {
    let Some(link) = parse_links(headers).find(|link| link.has_relation("next")) else {
        return Ok(None);
    };
    let uri: Option<Uri> = link.uri.parse().ok();
    let query = uri.as_ref().and_then(Uri::query);
    let query = query.filter(|query| (1..=limits::KEY_BYTES).contains(&query.len()));
    query
        .map(|query| Some(query.to_owned()))
        .ok_or_else(invalid_page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_a_query() {
        let headers =
            |text: &str| HeaderMap::from_iter([(http::header::LINK, text.parse().unwrap())]);
        let next_of = |text: &str| next_page_query(&headers(text));
        assert_eq!(next_page_query(&HeaderMap::new()), Ok(None));
        assert_eq!(next_of("<https://h/a?limit=5>; rel=prev"), Ok(None));
        let found = next_of("<https://h/api/x?cursor=ab%3D&limit=5>; rel=\"next\"");
        assert_eq!(found, Ok(Some("cursor=ab%3D&limit=5".to_owned())));
        assert!(next_of("<https://h/a>; rel=next").is_err());
        let long = format!(
            "<https://h/a?{}>; rel=next",
            "x".repeat(limits::KEY_BYTES + 1)
        );
        assert!(next_of(&long).is_err());
    }

    #[test]
    fn an_incomplete_tree_page_is_rejected() {
        let mut names = NameSet::default();
        let page = br#"[{"type": "directory", "oid": "1", "size": 0, "path": "a/sub"},
                        {"type": "file", "oid": "2", "size": 5, "path": "a/b c.h5", "lfs": {"size": 5}}]"#;
        add_page_names(page, b"a", &mut names).unwrap();
        let page = names.into_page();
        let found: Vec<_> = page.names.iter().map(|one| &one.name[..]).collect();
        assert_eq!(found, [&b"b c.h5"[..], b"sub"]);
        for text in [
            &b""[..],
            b"{}",
            b"[{\"type\": \"file\"}]",
            b"[{\"type\": \"file\", \"path\": \"a\"}",
            b"<html>",
        ] {
            assert!(add_page_names(text, b"a", &mut NameSet::default()).is_err());
        }
        // Names in other directories are rejected.
        for path in [
            "b.h5",
            "b/c.h5",
            "a/b/c.h5",
            "../a/c.h5",
            "aa/c.h5",
            "/a/c.h5",
        ] {
            let page = format!(r#"[{{"type": "file", "path": "{path}"}}]"#);
            assert!(
                add_page_names(page.as_bytes(), b"a", &mut NameSet::default()).is_err(),
                "{path}"
            );
        }
        assert_eq!(
            path_in_dataset("datasets/o/n/resolve/main/a%20b/c/"),
            b"a b/c"
        );
        assert_eq!(path_in_dataset("datasets/o/n/resolve/main/"), b"");
    }
}

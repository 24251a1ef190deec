//! Index pages in JSON: of Caddy, of nginx's `autoindex_format json` and of `h5fs serve`. Also the
//! file lists of InvenioRDM records, for example on Zenodo.
//!
//! | server | an entry |
//! |---|---|
//! | Caddy | `{"name": "sub/", "is_dir": true, …}` |
//! | nginx | `{"name": "sub", "type": "directory", …}` |
//! | `h5fs serve` | `{"name": "sub", "kind": "directory", …}` |
//! | InvenioRDM | `{"key": "a.h5", …}` in the list `entries` |

use serde_json::Value;

use crate::fetch_error::FetchError;
use crate::limits;
use crate::names::page::{NameSet, NamesPage, invalid_page};

/// Parses an index page in JSON. Returns `None` if the text is not a list of names.
///
/// # Errors
/// Fails for an incomplete text, or for a list with too many names.
pub(super) fn parse_page(text: &str) -> Result<Option<NamesPage>, FetchError> {
    let list = if text.starts_with('{') {
        let members = split_elements(text, ('{', '}'))?.into_iter();
        let mut pairs = members.filter_map(|member| member.split_once(':'));
        let entries = pairs.find(|(name, _)| name.trim() == "\"entries\"");
        entries.map_or("", |(_, list)| list.trim())
    } else {
        text
    };
    if !list.starts_with('[') {
        return Ok(None);
    }
    let mut names = NameSet::default();
    for entry in parse_entries(list)? {
        let entry = entry?;
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let Some(name) = text("name").or_else(|| text("key")) else {
            return Ok(None);
        };
        let is_directory = entry.get("is_dir").and_then(Value::as_bool) == Some(true)
            || text("type").or_else(|| text("kind")) == Some("directory")
            || name.ends_with('/');
        let name = name.strip_suffix('/').unwrap_or(name);
        if !matches!(name, "." | "..") {
            names.add(name.as_bytes().to_vec(), is_directory)?;
        }
    }
    Ok(Some(names.into_page()))
}

/// Iterates over the items of a JSON list. Only one item is decoded at a time.
///
/// # Errors
/// Fails for an incomplete list, or for a list with too many entries.
pub(super) fn parse_entries(
    list: &str,
) -> Result<impl Iterator<Item = Result<Value, FetchError>> + '_, FetchError> {
    let parts = split_elements(list, ('[', ']'))?.into_iter();
    Ok(parts.map(|entry| serde_json::from_str(entry).map_err(|_| invalid_page())))
}

/// Splits the text of a JSON list or object at its commas. The caller decodes one piece at a time,
/// so that only one decoded value is in memory.
fn split_elements(text: &str, (open, close): (char, char)) -> Result<Vec<&str>, FetchError> {
    let inner = text.trim().strip_prefix(open);
    let inner = inner
        .and_then(|inner| inner.strip_suffix(close))
        .ok_or_else(invalid_page)?;
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1).ok_or_else(invalid_page)?,
            b',' if depth == 0 => {
                parts.push(inner.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
        if parts.len() > limits::LISTING_NAMES {
            return Err(FetchError::permanent("the server's listing is too long"));
        }
    }
    if is_quoted || depth > 0 {
        return Err(invalid_page());
    }
    let last = inner.get(start..).unwrap_or_default();
    if !parts.is_empty() || !last.trim().is_empty() {
        parts.push(last);
    }
    if parts.iter().any(|part| part.len() > limits::ERROR_BODY) && open == '[' {
        return Err(FetchError::permanent(
            "an entry of the server's listing is too long",
        ));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::source::remote::message::ListedType;

    /// An index page of Caddy. This page and the next ones are written from the documentation and
    /// source of Caddy and the documentation of nginx.
    const CADDY: &str = r#"[{"name":"run 1.h5","size":4,"url":"./run%201.h5","mod_time":"2026-11-26T10:00:00Z","mode":420,"is_dir":false,"is_symlink":false},
        {"name":"sub/","size":4096,"url":"./sub/","mod_time":"2026-11-26T10:00:00Z","mode":2147484141,"is_dir":true,"is_symlink":false}]"#;
    const NGINX: &str = r#"[
        { "name":"sub", "type":"directory", "mtime":"Thu, 26 Nov 2026 10:00:00 GMT" },
        { "name":"run 1.h5", "type":"file", "mtime":"Thu, 26 Nov 2026 10:00:00 GMT", "size":4 }]"#;

    fn names(text: &str) -> Vec<(Vec<u8>, ListedType)> {
        let page = parse_page(text).unwrap().unwrap();
        let names = page.names.into_iter();
        names.map(|name| (name.name, name.entry_type)).collect()
    }

    #[test]
    fn entries_have_names_and_kinds() {
        let both = [
            (b"run 1.h5".to_vec(), ListedType::ObjectWithoutMetadata),
            (b"sub".to_vec(), ListedType::Prefix),
        ];
        assert_eq!(names(CADDY), both);
        assert_eq!(names(NGINX), both);
        let served =
            r#"[{"name":"run 1.h5","kind":"file","size":4},{"name":"sub","kind":"directory"}]"#;
        assert_eq!(names(served), both);
        let slashed = r#"[{"name":"run 1.h5"},{"name":"sub/"}]"#;
        assert_eq!(names(slashed), both);
        let record = r#"{"enabled": true, "entries": [{"key": "run 1.h5", "size": 4}]}"#;
        assert_eq!(names(record), both[..1]);
        assert_eq!(names("[]"), []);
    }

    #[test]
    fn invalid_names_are_skipped_and_invalid_lists_rejected() {
        let hostile = r#"[{"name":"../x"},{"name":".."},{"name":"."},{"name":""},{"name":"a/b"},
            {"name":"a\u0000"},{"name":"/"},{"name":"b.h5"}]"#;
        assert_eq!(
            names(hostile),
            [(b"b.h5".to_vec(), ListedType::ObjectWithoutMetadata)]
        );
        for other in [
            "{}",
            r#"{"error": "login"}"#,
            r#"["a"]"#,
            r#"[{"size": 1}]"#,
        ] {
            assert_eq!(parse_page(other), Ok(None), "{other}");
        }
        for cut in 1..CADDY.len() {
            assert!(parse_page(&CADDY[..cut]).is_err(), "{cut}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse_page(&deep).is_err());
        let many = |count: usize| {
            let entries: Vec<_> = (0..count)
                .map(|n| format!("{{\"name\":\"{n}\"}}"))
                .collect();
            parse_page(&format!("[{}]", entries.join(",")))
        };
        let all = many(limits::LISTING_NAMES).unwrap().unwrap();
        assert_eq!(all.names.len(), limits::LISTING_NAMES);
        assert!(many(limits::LISTING_NAMES + 1).is_err());
        let wide = format!("[[{}0]]", "0,".repeat(limits::ERROR_BODY));
        assert!(parse_page(&wide).is_err());
        let odd = r#"[{"name":"a,]}\\\"b","x":["},{"]}, {"name":"c"}]"#;
        let wanted = [
            (b"a,]}\\\"b".to_vec(), ListedType::ObjectWithoutMetadata),
            (b"c".to_vec(), ListedType::ObjectWithoutMetadata),
        ];
        assert_eq!(names(odd), wanted);
    }
}

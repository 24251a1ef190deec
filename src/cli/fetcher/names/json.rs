//! Index pages in JSON: those of Caddy and of nginx's `autoindex_format json`, and the files of a
//! record of InvenioRDM, as Zenodo has them.
//!
//! | server | an entry |
//! |---|---|
//! | Caddy | `{"name": "sub/", "is_dir": true, …}` |
//! | nginx | `{"name": "sub", "type": "directory", …}` |
//! | InvenioRDM | `{"key": "a.h5", …}` in the list `entries` |

use serde_json::Value;

use crate::cli::fetcher::names::{Page, index::Names, wrong};
use crate::cli::fetcher::trouble::Trouble;

/// Reads a list of names; `None` for anything else.
///
/// # Errors
/// Fails for a text that is not whole, and for one with too many names.
pub(super) fn page(text: &str) -> Result<Option<Page>, Trouble> {
    let parsed: Value = serde_json::from_str(text).map_err(|_| wrong())?;
    let entries = match &parsed {
        Value::Array(entries) => entries,
        Value::Object(record) => match record.get("entries") {
            Some(Value::Array(entries)) => entries,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let mut names = Names::default();
    for entry in entries {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let Some(name) = text("name").or_else(|| text("key")) else {
            return Ok(None);
        };
        let is_directory = entry.get("is_dir").and_then(Value::as_bool) == Some(true)
            || text("type") == Some("directory");
        let name = name.strip_suffix('/').unwrap_or(name);
        if !matches!(name, "." | "..") {
            names.add(name.as_bytes().to_vec(), is_directory)?;
        }
    }
    Ok(Some(names.page()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::remote::message::Named;

    /// As Caddy's documentation and source have it, and nginx's documentation.
    const CADDY: &str = r#"[{"name":"run 1.h5","size":4,"url":"./run%201.h5","mod_time":"2026-11-26T10:00:00Z","mode":420,"is_dir":false,"is_symlink":false},
        {"name":"sub/","size":4096,"url":"./sub/","mod_time":"2026-11-26T10:00:00Z","mode":2147484141,"is_dir":true,"is_symlink":false}]"#;
    const NGINX: &str = r#"[
        { "name":"sub", "type":"directory", "mtime":"Thu, 26 Nov 2026 10:00:00 GMT" },
        { "name":"run 1.h5", "type":"file", "mtime":"Thu, 26 Nov 2026 10:00:00 GMT", "size":4 }]"#;

    fn names(text: &str) -> Vec<(Vec<u8>, Named)> {
        let page = page(text).unwrap().unwrap();
        let names = page.names.into_iter();
        names.map(|name| (name.name, name.named)).collect()
    }

    #[test]
    fn entries_have_names_and_kinds() {
        let both = [
            (b"run 1.h5".to_vec(), Named::Unseen),
            (b"sub".to_vec(), Named::Prefix),
        ];
        assert_eq!(names(CADDY), both);
        assert_eq!(names(NGINX), both);
        let record = r#"{"enabled": true, "entries": [{"key": "run 1.h5", "size": 4}]}"#;
        assert_eq!(names(record), both[..1]);
        assert_eq!(names("[]"), []);
    }

    #[test]
    fn what_is_no_name_is_left_out_and_what_is_no_list_refused() {
        let hostile = r#"[{"name":"../x"},{"name":".."},{"name":"."},{"name":""},{"name":"a/b"},
            {"name":"a\u0000"},{"name":"/"},{"name":"b.h5"}]"#;
        assert_eq!(names(hostile), [(b"b.h5".to_vec(), Named::Unseen)]);
        for other in [
            "{}",
            r#"{"error": "login"}"#,
            r#"["a"]"#,
            r#"[{"size": 1}]"#,
        ] {
            assert_eq!(page(other), Ok(None), "{other}");
        }
        for cut in 0..CADDY.len() {
            assert!(page(&CADDY[..cut]).is_err(), "{cut}");
        }
        let deep = "[".repeat(100_000);
        assert!(page(&deep).is_err());
    }
}

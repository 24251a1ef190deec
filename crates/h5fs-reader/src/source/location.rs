//! The location of a source, as the user writes it: a path or a URL.
//!
//! A URL has one of these forms; any other text is a path:
//!
//! - `s3://BUCKET/KEY`
//! - `s3://arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME/KEY`
//! - `gs://BUCKET/KEY`
//! - `az://ACCOUNT/CONTAINER/KEY`
//! - `abfs[s]://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY`
//! - `http://…` or `https://…`
//! - `hf://datasets/OWNER/NAME/PATH`
//! - `pelican://FEDERATION/PATH` or `osdf:///PATH`
//!
//! The key of an object in a store is used literally, as the store's own tools do. The path of any
//! other URL is already percent-encoded (RFC 3986), as a browser shows it.
//!
//! The user information and the query of a URL are secrets: the query of a presigned URL contains
//! its signature. Secrets are never displayed.

mod dataset;
pub mod percent;
pub mod signature;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::limits;

/// The location of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A local file or directory, as the user wrote it.
    Path(PathBuf),
    /// An object, or all objects with a prefix.
    Url(Url),
}

/// The protocol that serves a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// The protocol of Amazon's object storage.
    S3,
    /// The XML protocol of Google's cloud storage.
    Google,
    /// The protocol of Azure Blob Storage.
    Azure,
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    Https,
    /// HTTP over TLS, spoken by the caches of a Pelican federation.
    Pelican,
}

/// The URL schemes of Azure Data Lake, which shows the same storage as a filesystem.
const DATA_LAKE_PREFIXES: [&str; 2] = ["abfs://", "abfss://"];

/// Host suffixes of Azure storage accounts, after the account's name.
const AZURE_HOST_SUFFIXES: [&str; 2] = [".dfs.core.windows.net", ".blob.core.windows.net"];

/// The URL scheme of Hugging Face datasets, whose files are web pages.
const HUGGING_FACE_PREFIX: &str = "hf://";

/// The federation of `osdf://` URLs.
const OSDF_FEDERATION: &str = "osg-htc.org";

/// The URL of an object, or of all objects with a prefix.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    /// The bucket, `ACCOUNT/CONTAINER`, or a host with an optional port.
    authority: String,
    /// The key without a leading `/`. For HTTP, the encoded path without the leading `/`.
    path: String,
    /// `USER:PASSWORD` of an HTTP URL.
    user_info: Option<String>,
    /// The text after the `?` of an HTTP URL.
    query: Option<String>,
}

/// An access point of S3: an alias of a bucket, in a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessPoint<'a> {
    /// The region of the access point.
    pub region: &'a str,
    /// The number of the account that owns the access point.
    pub account: &'a str,
    /// The name of the access point.
    pub name: &'a str,
}

impl<'a> AccessPoint<'a> {
    /// Parses `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`. A multi-region access point, without a
    /// region, is refused because it needs another kind of signature.
    fn parse(resource: &'a str) -> Option<Self> {
        let (start, name) = resource.split_once('/')?;
        let mut parts = start.split(':');
        let mut next = || parts.next().unwrap_or_default();
        let (arn, partition, service) = (next(), next(), next());
        let (region, account, kind) = (next(), next(), next());
        let is_name = |text: &str| {
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !text.is_empty() && text.bytes().all(is_of_name)
        };
        let is_right = arn == "arn" && service == "s3" && kind == "accesspoint";
        let is_whole = [partition, region, account, name].into_iter().all(is_name);
        (is_right && is_whole && parts.next().is_none()).then_some(AccessPoint {
            region,
            account,
            name,
        })
    }
}

/// Refuses a key that is followed by a signed query: keys are displayed, but a signature is a
/// secret.
fn refuse_signature(key: &str, advice: &str) -> std::result::Result<(), String> {
    match key.split_once('?') {
        Some((_, query)) if signature::is_signed(query) => Err(advice.to_owned()),
        _ => Ok(()),
    }
}

impl Location {
    /// Parses the location that a user wrote.
    ///
    /// # Errors
    /// `Usage` if the text begins like a URL but is invalid.
    pub fn parse(text: OsString) -> Result<Self> {
        match text.to_str().map(Url::parse) {
            Some(Some(url)) => Ok(Location::Url(url?)),
            _ if Scheme::begins_with_scheme(text.as_encoded_bytes()) => {
                Err(Error::Usage("a URL must be UTF-8".to_owned()))
            }
            _ => Ok(Location::Path(text.into())),
        }
    }

    /// Returns the location without secrets, for messages.
    pub fn name(&self) -> PathBuf {
        match self {
            Location::Path(path) => path.clone(),
            Location::Url(url) => url.to_string().into(),
        }
    }

    /// Returns the URL, or `None` for a local path.
    pub fn url(&self) -> Option<&Url> {
        match self {
            Location::Path(_) => None,
            Location::Url(url) => Some(url),
        }
    }

    /// Returns the local path, or `None` for a URL.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Location::Path(path) => Some(path),
            Location::Url(_) => None,
        }
    }
}

impl Scheme {
    const ALL: [(Scheme, &str); 10] = [
        (Scheme::S3, "s3://"),
        (Scheme::Google, "gs://"),
        (Scheme::Azure, "az://"),
        (Scheme::Azure, DATA_LAKE_PREFIXES[0]),
        (Scheme::Azure, DATA_LAKE_PREFIXES[1]),
        (Scheme::Http, "http://"),
        (Scheme::Https, "https://"),
        (Scheme::Https, HUGGING_FACE_PREFIX),
        (Scheme::Pelican, "pelican://"),
        (Scheme::Pelican, "osdf://"),
    ];

    /// Returns whether objects have keys, which the store can list.
    pub fn has_keys(self) -> bool {
        matches!(self, Scheme::S3 | Scheme::Google | Scheme::Azure)
    }

    /// Returns the scheme followed by `://`.
    pub fn prefix(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(scheme, _)| *scheme == self)
            .map_or("", |(_, prefix)| prefix)
    }

    /// Returns whether the text begins with a URL scheme.
    fn begins_with_scheme(text: &[u8]) -> bool {
        let starts = |(_, prefix): &(Scheme, &str)| {
            let prefix = prefix.as_bytes();
            let start = text.get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        Self::ALL.iter().any(starts)
    }
}

impl Url {
    /// Parses the URL. Returns `None` if the text does not begin with a URL scheme.
    fn parse(text: &str) -> Option<Result<Self>> {
        let starts = |(scheme, prefix): &(Scheme, &'static str)| {
            let (start, rest) = text.split_at_checked(prefix.len())?;
            start
                .eq_ignore_ascii_case(prefix)
                .then_some((*scheme, *prefix, rest))
        };
        let (scheme, prefix, rest) = Scheme::ALL.iter().find_map(starts)?;
        let parsed = match rest.len() > limits::URL_BYTES {
            true => Err(format!(
                "a URL may have at most {} bytes",
                limits::URL_BYTES
            )),
            false if DATA_LAKE_PREFIXES.contains(&prefix) => Self::parse_data_lake(rest),
            false if scheme == Scheme::Azure => Self::parse_blob(rest),
            false if prefix == HUGGING_FACE_PREFIX => {
                dataset::web_page_url(rest).and_then(|page| Self::parse_web_page(scheme, &page))
            }
            false if scheme.has_keys() => Self::parse_object(scheme, rest),
            false if prefix == "osdf://" => Self::parse_web_page(
                scheme,
                &format!("{OSDF_FEDERATION}/{}", rest.trim_start_matches('/')),
            ),
            false => Self::parse_web_page(scheme, rest),
        };
        Some(parsed.map_err(Error::Usage))
    }

    /// Parses `BUCKET/KEY`.
    fn parse_object(scheme: Scheme, rest: &str) -> std::result::Result<Self, String> {
        if scheme == Scheme::S3 && rest.starts_with("arn:") {
            return Self::parse_access_point(rest);
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        refuse_signature(key, "write a presigned URL as https://…")?;
        let is_of_bucket = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        match bucket {
            "" => Err("the bucket is missing".to_owned()),
            _ if bucket.contains(['@', ':']) => Err("a bucket takes no user".to_owned()),
            _ if !bucket.bytes().all(is_of_bucket) => {
                Err(format!("`{bucket}` is not a bucket name"))
            }
            _ => Ok(Url {
                scheme,
                authority: bucket.to_owned(),
                path: key.to_owned(),
                user_info: None,
                query: None,
            }),
        }
    }

    /// Parses `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME/KEY`.
    fn parse_access_point(rest: &str) -> std::result::Result<Self, String> {
        let (resource, behind) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, key) = behind.split_once('/').unwrap_or((behind, ""));
        let authority = format!("{resource}/{name}");
        let wrong = "write an access point as s3://arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME/";
        AccessPoint::parse(&authority).ok_or(wrong)?;
        Ok(Url {
            scheme: Scheme::S3,
            authority,
            path: key.to_owned(),
            user_info: None,
            query: None,
        })
    }

    /// Parses `ACCOUNT/CONTAINER/KEY`.
    fn parse_blob(rest: &str) -> std::result::Result<Self, String> {
        let (account, behind) = rest.split_once('/').unwrap_or((rest, ""));
        refuse_signature(
            behind,
            "give a shared access signature in AZURE_STORAGE_SAS_TOKEN or `credentials`, or write \
             the URL as https://…",
        )?;
        let (container, key) = behind.split_once('/').unwrap_or((behind, ""));
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-$".contains(&byte);
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_of_name);
        if !is_name(account) || !is_name(container) {
            return Err(
                "an account and a container are required: az://ACCOUNT/CONTAINER/".to_owned(),
            );
        }
        Ok(Url {
            scheme: Scheme::Azure,
            authority: format!("{account}/{container}"),
            path: key.to_owned(),
            user_info: None,
            query: None,
        })
    }

    /// Parses `CONTAINER@ACCOUNT.dfs.core.windows.net/KEY`.
    fn parse_data_lake(rest: &str) -> std::result::Result<Self, String> {
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        let account = |host: &str| {
            let mut ends = AZURE_HOST_SUFFIXES.iter();
            ends.find_map(|end| host.strip_suffix(end).map(str::to_owned))
        };
        let (container, host) = authority.split_once('@').unwrap_or_default();
        let needed = "a container and an account are required: \
                      abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/";
        let account = account(host).ok_or(needed)?;
        Self::parse_blob(&format!("{account}/{container}/{key}")).map_err(|_| needed.to_owned())
    }

    /// Parses `HOST/PATH`; RFC 3986, section 3.
    fn parse_web_page(scheme: Scheme, rest: &str) -> std::result::Result<Self, String> {
        let is_wrong = |c: char| c.is_ascii_control() || c.is_whitespace();
        if rest.contains(is_wrong) {
            return Err("a URL contains no spaces; write them as %20".to_owned());
        }
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query.to_owned())),
            None => (rest, None),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user_info, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        match host {
            "" => Err("the host is missing".to_owned()),
            _ if !has_valid_port(host)
                || user_info.is_none() && is_password_cut_at_hash(authority, fragment) =>
            {
                Err(
                    "the text after the host is not a port from 1 to 65535; encode a `/`, `?` or \
                     `#` in a password as %2F, %3F or %23"
                        .to_owned(),
                )
            }
            // The message does not quote the host, which may be a user and a password.
            _ if !host.bytes().all(is_of_host) => Err("the host name is not valid".to_owned()),
            _ => Ok(Url {
                scheme,
                authority: host.to_owned(),
                path: path.to_owned(),
                user_info,
                query,
            }),
        }
    }

    /// Returns the S3 access point used in place of a bucket, if there is one.
    pub fn access_point(&self) -> Option<AccessPoint<'_>> {
        let authority = Some(&*self.authority).filter(|_| self.scheme == Scheme::S3);
        authority.and_then(AccessPoint::parse)
    }

    /// Returns the protocol that serves the URL.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the bucket, `ACCOUNT/CONTAINER`, or the host with an optional port.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the key or the encoded path, without the leading `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns `USER:PASSWORD`, a secret.
    pub fn user_info(&self) -> Option<&str> {
        self.user_info.as_deref()
    }

    /// Returns the query, a secret.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Returns whether the URL has a part that is never displayed.
    pub fn has_secrets(&self) -> bool {
        self.user_info.is_some() || self.query.is_some()
    }

    /// Returns whether the URL names an HTTP server, with an optional path, and contains no secret.
    pub fn is_server(&self) -> bool {
        matches!(self.scheme, Scheme::Http | Scheme::Https) && !self.has_secrets()
    }

    /// Returns whether the URL names a group of objects: every object whose key starts with the
    /// URL's, or a directory of the web. An HTTP URL with a query names a single page.
    pub fn is_prefix(&self) -> bool {
        let is_open = self.path.is_empty() || self.path.ends_with('/');
        match self.scheme {
            Scheme::S3 | Scheme::Google | Scheme::Azure => is_open,
            Scheme::Http | Scheme::Https => is_open && self.query.is_none(),
            Scheme::Pelican => false,
        }
    }

    /// Returns whether the URL is of a web server. Its path is then percent-encoded, and only such
    /// servers redirect.
    pub fn is_web_page(&self) -> bool {
        matches!(self.scheme, Scheme::Http | Scheme::Https)
    }

    /// Returns the URL with the user information of `directory`. Returns `None` if the URL is not
    /// beneath `directory`.
    pub fn with_user_info_from(&self, directory: &Url) -> Option<Self> {
        let is_beneath = self.to_string().starts_with(&directory.to_string());
        (directory.is_prefix() && is_beneath).then(|| Url {
            user_info: directory.user_info.clone(),
            ..self.clone()
        })
    }

    /// Returns the path up to its last `/`, which is common to all neighbours.
    pub fn directory(&self) -> &str {
        self.path
            .rfind('/')
            .map_or("", |slash| self.path.get(..=slash).unwrap_or_default())
    }

    /// Returns the URL, without secrets, of the file with the relative path `path` beneath this
    /// URL's [`directory`](Self::directory).
    pub fn file_beneath(&self, path: &str) -> Self {
        let name = if self.is_web_page() {
            percent::percent_encode(path, percent::IN_NAME)
        } else {
            path.to_owned()
        };
        Url {
            scheme: self.scheme,
            authority: self.authority.clone(),
            path: format!("{}{name}", self.directory()),
            user_info: None,
            query: None,
        }
    }

    /// Returns the last component of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Returns whether the host has no port or a valid one. An unencoded `/`, `?` or `#` in a password
/// ends the authority early, and the password then looks like a port.
fn has_valid_port(host: &str) -> bool {
    let is_port = |port: &str| {
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        is_number && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    let behind_address = host.rsplit_once(']').map_or(host, |(_, port)| port);
    let port = behind_address.rsplit_once(':');
    port.is_none_or(|(_, port)| is_port(port))
}

/// Returns whether a number before a `#` is probably part of a password and not a port. An `@` in a
/// fragment is a strong sign, because fragments are never sent to a server. After a port, a path
/// may contain an `@`.
fn is_password_cut_at_hash(authority: &str, fragment: &str) -> bool {
    authority.contains(':') && !authority.ends_with(']') && fragment.contains('@')
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}/{}",
            self.scheme.prefix(),
            self.authority,
            self.path
        )
    }
}

/// Writes the same text as [`Display`](fmt::Display), so that debug output cannot leak a secret.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        match Location::parse(text.into()) {
            Ok(Location::Url(url)) => url,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn other_texts_are_paths() {
        for text in [
            "run.h5",
            "./s3:/a",
            "s3:/a",
            "/http://",
            "ftp://host/a",
            "s3",
            "",
        ] {
            let parsed = Location::parse(text.into()).unwrap();
            assert_eq!(parsed, Location::Path(text.into()));
            assert_eq!(parsed.name(), Path::new(text));
        }
    }

    #[test]
    fn an_s3_key_is_used_literally() {
        let object = url("S3://bucket/a b/c%20d?e#f.h5");
        assert_eq!(object.scheme(), Scheme::S3);
        assert_eq!(object.authority(), "bucket");
        assert_eq!(object.path(), "a b/c%20d?e#f.h5");
        assert_eq!(
            (object.directory(), object.file_name()),
            ("a b/", "c%20d?e#f.h5")
        );
        assert_eq!(object.to_string(), "s3://bucket/a b/c%20d?e#f.h5");
        assert!(!object.is_prefix());
        for prefix in ["s3://bucket", "s3://bucket/", "s3://bucket/2026/"] {
            assert!(url(prefix).is_prefix(), "{prefix}");
        }
    }

    #[test]
    fn an_access_point_replaces_a_bucket() {
        let text = "s3://arn:aws:s3:us-west-2:123456789012:accesspoint/lab/a b/c.h5";
        let object = url(text);
        assert_eq!(object.to_string(), text);
        assert_eq!(object.path(), "a b/c.h5");
        let point = AccessPoint {
            region: "us-west-2",
            account: "123456789012",
            name: "lab",
        };
        assert_eq!(object.access_point(), Some(point));
        assert!(url("s3://arn:aws:s3:us-west-2:1:accesspoint/lab").is_prefix());
        assert_eq!(url("s3://bucket/a").access_point(), None);
        for wrong in [
            "s3://arn:aws:s3:us-west-2:123456789012:accesspoint",
            "s3://arn:aws:s3::123456789012:accesspoint/m.mrap/a",
            "s3://arn:aws:s3:us-west-2:123456789012:bucket/lab/a",
            "s3://arn:aws:ec2:us-west-2:1:accesspoint/lab/a",
            "s3://arn:aws:s3:evil.org/x:1:accesspoint/lab/a",
            "s3://arn:aws:s3:us-west-2:1:accesspoint/lab@evil.org/a",
            "s3://arn:aws:s3:us-west-2:1:accesspoint:x/lab/a",
        ] {
            assert!(Location::parse(wrong.into()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_container_is_in_an_account() {
        for (text, shown) in [
            ("az://acct/data/a b/c%20d.h5", "az://acct/data/a b/c%20d.h5"),
            ("AZ://acct/data", "az://acct/data/"),
            ("az://acct/$root/", "az://acct/$root/"),
            (
                "abfs://data@acct.dfs.core.windows.net/a/b.h5",
                "az://acct/data/a/b.h5",
            ),
            ("abfss://data@acct.dfs.core.windows.net", "az://acct/data/"),
            (
                "abfss://data@acct.blob.core.windows.net/d/",
                "az://acct/data/d/",
            ),
            ("gs://a.b_c/d e.h5", "gs://a.b_c/d e.h5"),
            ("gs://bucket", "gs://bucket/"),
        ] {
            let object = url(text);
            assert_eq!(object.to_string(), shown, "{text}");
            assert_eq!(object.is_prefix(), shown.ends_with('/'), "{text}");
            assert!(object.scheme().has_keys() && !object.is_web_page());
            assert_eq!(url(shown), object);
        }
        for wrong in [
            "az://",
            "az://acct",
            "az:///data/a",
            "az://joe:sesame@acct/data/a",
            "abfs://data/a",
            "abfss://data@acct.example.org/a",
            "abfss://@acct.dfs.core.windows.net/a",
            "abfss://sesame:x@acct.dfs.core.windows.net.evil.org/a",
            "gs://",
            "gs://joe:sesame@b/a",
        ] {
            match Location::parse(wrong.into()) {
                Err(Error::Usage(text)) => assert!(!text.contains("sesame"), "{text}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_dataset_is_a_page_of_its_host() {
        let object = url("hf://datasets/owner/name@v1/a.h5");
        assert_eq!(object.scheme(), Scheme::Https);
        let page = "https://huggingface.co/datasets/owner/name/resolve/v1/a.h5";
        assert_eq!(object.to_string(), page);
        assert!(url("HF://datasets/owner/name/").is_prefix());
        assert!(matches!(
            Location::parse("hf://owner/name".into()),
            Err(Error::Usage(_))
        ));
    }

    #[test]
    fn osdf_is_a_federation_of_pelican() {
        for text in [
            "osdf:///a/b.h5",
            "osdf://a/b.h5",
            "pelican://osg-htc.org/a/b.h5",
        ] {
            let object = url(text);
            assert_eq!(object.scheme(), Scheme::Pelican);
            assert_eq!(object.to_string(), "pelican://osg-htc.org/a/b.h5", "{text}");
            assert!(!object.is_server() && !object.is_prefix());
        }
    }

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let text = "https://joe:secret@host:8443/data/run.h5?X-Amz-Signature=secret#top";
        let page = url(text);
        assert_eq!(page.authority(), "host:8443");
        assert_eq!(page.path(), "data/run.h5");
        assert_eq!(page.user_info(), Some("joe:secret"));
        assert_eq!(page.query(), Some("X-Amz-Signature=secret"));
        assert_eq!(page.to_string(), "https://host:8443/data/run.h5");
        let shown = format!("{:?}", Location::Url(page.clone()));
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!(
            Location::Url(page).name(),
            Path::new("https://host:8443/data/run.h5")
        );
    }

    #[test]
    fn a_path_may_contain_an_at_sign() {
        for (text, authority, path) in [
            ("http://h:8080/a@b/c.h5", "h:8080", "a@b/c.h5"),
            ("http://h/a@b", "h", "a@b"),
            ("http://joe:12@h:65535/a@b", "h:65535", "a@b"),
            ("http://[::1]:1/a@b", "[::1]:1", "a@b"),
            ("http://[::1]/a#b@c", "[::1]", "a"),
            ("s3://bucket/a@b", "bucket", "a@b"),
        ] {
            let page = url(text);
            assert_eq!((page.authority(), page.path()), (authority, path));
        }
    }

    #[test]
    fn an_invalid_url_is_an_error() {
        let long = format!("http://host/{}", "a".repeat(limits::URL_BYTES));
        for wrong in [
            "s3://",
            "s3:///key",
            "s3://a@b/c",
            "http://",
            "https:///a",
            "http://h/a b",
            "http://joe:sesame/word@h/a",
            "http://joe:sesame?word@h/a",
            "http://joe:sesame#word@h/a",
            "s3://joe:sesame/word@b/a",
            "http://joe%3Asesame/word@h/a",
            "http://joe:/sesame@h/a",
            "http://joe:/sesame@h",
            "http://joe:#sesame@h",
            "http://joe:?sesame@h",
            "http://joe:12#sesame@h",
            "http://joe:123456/sesame@h",
            "http://h:/a",
            "http://[::1]:/a",
            "http://h:0/a",
            "http://h:65536/a",
            "s3://joe:sesameword@b/a",
            &long,
        ] {
            let refused = Location::parse(wrong.into());
            match refused {
                Err(Error::Usage(text)) => assert!(!text.contains("sesame"), "{text}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
    }
}

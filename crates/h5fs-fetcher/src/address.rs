//! Converts a source's URL, and the name of an object with its prefix, to the URI of a request.
//!
//! | source | URI |
//! |---|---|
//! | `s3://`, without an endpoint | `https://BUCKET.s3.REGION.amazonaws.com/KEY` |
//! | the same, with `AWS_USE_DUALSTACK_ENDPOINT` | `https://BUCKET.s3.dualstack.REGION.amazonaws.com/KEY` |
//! | the same, an access point | `https://NAME-ACCOUNT.s3-accesspoint.REGION.amazonaws.com/KEY` |
//! | the same, where the bucket's name has a dot | `https://s3.REGION.amazonaws.com/BUCKET/KEY` |
//! | `s3://`, an endpoint | `ENDPOINT/BUCKET/KEY` |
//! | `s3://`, an endpoint whose host begins with `BUCKET.` | `ENDPOINT/KEY` |
//! | `gs://` | `https://storage.googleapis.com/BUCKET/KEY`, or `ENDPOINT/BUCKET/KEY` |
//! | `az://` | `https://ACCOUNT.blob.core.windows.net/CONTAINER/KEY`, or `ENDPOINT/CONTAINER/KEY` |
//! | `az://`, an endpoint without a path whose host does not begin with `ACCOUNT.` | `ENDPOINT/ACCOUNT/CONTAINER/KEY` |
//! | `http://`, `https://` | the URL itself |
//! | `pelican://FEDERATION/PATH` | `DIRECTOR/PATH` |
//!
//! A name is relative to the prefix of the URL, which is everything up to the last `/`. A name
//! never leads out of the prefix.

pub(super) mod listing;
pub(super) mod paths;

use std::sync::OnceLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use h5fs_reader::source::location::percent::{IN_NAME, IN_PATH};
use h5fs_reader::source::location::signature::without_signature;
use h5fs_reader::source::location::{Scheme, Url};
use h5fs_reader::source::remote::message::FailureKind;
use http::{HeaderName, HeaderValue, Method, Uri};

use crate::client::RequestHeader;
use crate::fetch_error::FetchError;
use crate::hosts;
use crate::pelican;
pub(super) use h5fs_reader::source::location::percent::{
    IN_REFERENCE, percent_decode, percent_encode,
};

/// The location of a source on its server.
#[derive(Debug)]
pub(super) struct SourceAddress {
    url: Url,
    /// The server of the store, if it is not the store's default server.
    endpoint: Option<Url>,
    /// Whether requests use Amazon's dual-stack hosts, which also have IPv6 addresses.
    is_dual_stack: bool,
    /// The shared access signature, which authorizes each request as a part of its query. It is a
    /// secret.
    signature: Option<String>,
    /// The director of a Pelican federation, once the federation has named it.
    director: OnceLock<Url>,
    /// Whether objects other than the URL's own object may be requested.
    has_neighbours: bool,
}

/// The destination of a request, with the headers that only this request has.
#[derive(Clone)]
pub(super) struct FetchTarget {
    /// The URI of the request. Its query may contain a secret.
    pub(super) uri: Uri,
    pub(super) method: Method,
    /// Headers in addition to the headers of every request.
    pub(super) headers: Vec<RequestHeader>,
    /// Whether the request is signed for an object store.
    pub(super) is_signed: bool,
    /// Whether the user named the server. False for the director of a federation, which the
    /// federation names.
    pub(super) is_named: bool,
    /// The `Authorization` header from the user and the password of the URL.
    pub(super) authorization: Option<HeaderValue>,
    /// The object's URL without secrets, for error messages.
    pub(super) shown_url: String,
    /// The object's location without signatures. It is the key of the object's pages in the disk
    /// cache.
    pub(super) location: String,
}

impl SourceAddress {
    pub(super) fn new(url: Url, endpoint: Option<Url>, has_neighbours: bool) -> Self {
        SourceAddress {
            url,
            endpoint,
            is_dual_stack: false,
            signature: None,
            director: OnceLock::new(),
            has_neighbours,
        }
    }

    /// Sets the shared access signature that is added to the query of each request.
    pub(super) fn with_signature(self, signature: Option<String>) -> Self {
        SourceAddress { signature, ..self }
    }

    /// Sets whether Amazon's dual-stack hosts, which also have IPv6 addresses, are used.
    pub(super) fn with_dual_stack(self, is_dual: bool) -> Self {
        SourceAddress {
            is_dual_stack: is_dual,
            ..self
        }
    }

    /// Returns the target of a request for the configuration of the source's Pelican federation,
    /// which names the director. Returns `None` if the director is known, or if the source is not
    /// in a federation.
    pub(super) fn federation_configuration_target(
        &self,
    ) -> Option<Result<FetchTarget, FetchError>> {
        let is_wanted = self.url.scheme() == Scheme::Pelican && self.director.get().is_none();
        is_wanted.then(|| self.target(pelican::CONFIGURATION, None, ""))
    }

    /// Returns whether the director of the federation is known.
    pub(super) fn has_director(&self) -> bool {
        self.director.get().is_some()
    }

    /// Sets the director for all later requests.
    pub(super) fn set_director(&self, director: Url) {
        // Another thread may have set the director of the same federation.
        let _ = self.director.set(director);
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns whether the source has an `s3://` URL.
    pub(super) fn is_s3(&self) -> bool {
        self.url.scheme() == Scheme::S3
    }

    /// Returns whether a director redirects to the objects.
    pub(super) fn is_pelican(&self) -> bool {
        self.url.scheme() == Scheme::Pelican
    }

    /// Returns the target of a request for the object `name`. An empty name means the object at the
    /// URL itself.
    ///
    /// # Errors
    /// `NotFound` if no object with the prefix can have this name.
    pub(super) fn object_target(
        &self,
        name: &[u8],
        region: &str,
    ) -> Result<FetchTarget, FetchError> {
        let absent = || FetchError::new(FailureKind::NotFound, "no such object");
        if name.is_empty() {
            let own = format!("{}{}", self.base_url(), self.url.file_name());
            return self.target(&own, None, region);
        }
        let name = std::str::from_utf8(name).map_err(|_| absent())?;
        let leads_out = |part: &str| matches!(part, "" | "." | "..");
        if !self.has_neighbours || name.split('/').any(leads_out) || name.contains('\0') {
            return Err(absent());
        }
        let name = if self.url.scheme().has_keys() {
            name.to_owned()
        } else {
            percent_encode(name, IN_NAME)
        };
        self.target(&format!("{}{name}", self.base_url()), None, region)
    }

    /// Returns the URL of the directory that contains the objects: the directory of the source's
    /// URL, or the file directory of a THREDDS catalog.
    fn base_url(&self) -> String {
        let directory = self.url.directory();
        let of_catalog = paths::thredds_files(directory).filter(|_| self.url.is_web_page());
        of_catalog.unwrap_or_else(|| directory.to_owned())
    }

    /// Returns the target of a HEAD request for the object `name` on a web server.
    ///
    /// # Errors
    /// Fails as [`object_target`](Self::object_target) does.
    pub(super) fn head_target(&self, name: &[u8]) -> Result<FetchTarget, FetchError> {
        let object = self.object_target(name, "")?;
        Ok(FetchTarget {
            method: Method::HEAD,
            ..object
        })
    }

    fn target(
        &self,
        path: &str,
        query: Option<&str>,
        region: &str,
    ) -> Result<FetchTarget, FetchError> {
        let scheme = self.url.scheme();
        let shown = match scheme {
            Scheme::Http | Scheme::Https => format!("{}{path}", self.server()),
            _ => format!("{}{}/{path}", scheme.prefix(), self.url.authority()),
        };
        let text = match scheme {
            Scheme::S3 => self.uri_of_key(path, region),
            Scheme::Google | Scheme::Azure if path.is_empty() => self.container_uri(),
            Scheme::Google | Scheme::Azure => {
                format!("{}/{}", self.container_uri(), percent_encode(path, IN_NAME))
            }
            Scheme::Http | Scheme::Https | Scheme::Pelican => {
                format!("{}{}", self.server(), percent_encode(path, IN_PATH))
            }
        };
        let place = match self.url.query() {
            // The key of the cache must not depend on the director.
            _ if self.url.scheme() == Scheme::Pelican => shown.clone(),
            Some(query) => format!("{text}?{}", without_signature(query)),
            None => text.clone(),
        };
        let is_named = self.is_named();
        let own = self.url.query();
        let own = own.map(|query| {
            if is_named {
                query.to_owned()
            } else {
                pelican_flags(query)
            }
        });
        let own = own.as_deref().filter(|query| !query.is_empty());
        let query = query.or(own).into_iter();
        let query: Vec<&str> = query.chain(self.signature.as_deref()).collect();
        let text = match &query[..] {
            [] => text,
            parts => format!("{text}?{}", percent_encode(parts.join("&"), IN_PATH)),
        };
        let no_uri = |_| FetchError::permanent("this name cannot be part of a URI");
        Ok(FetchTarget {
            uri: text.parse().map_err(no_uri)?,
            method: Method::GET,
            headers: match scheme {
                Scheme::Azure => vec![azure_version_header()],
                _ => Vec::new(),
            },
            is_signed: scheme.has_keys(),
            is_named,
            authorization: self.url.user_info().and_then(url_authorization),
            shown_url: shown,
            location: place,
        })
    }

    /// Returns whether requests go to the server that the user named, rather than to another server
    /// that the federation names as its director.
    fn is_named(&self) -> bool {
        let director = self.director.get().map(ToString::to_string);
        let director = director.map(|director| director.parse());
        let named = self.named_server().parse();
        match (director, named) {
            (None, _) => true,
            (Some(Ok(director)), Ok(named)) => hosts::has_same_origin(&director, &named),
            (Some(_), _) => false,
        }
    }

    /// Returns the scheme and the host of a web server, with a `/` at the end.
    fn server(&self) -> String {
        match self.director.get() {
            Some(director) => format!("{}/", director.to_string().trim_end_matches('/')),
            None => self.named_server(),
        }
    }

    /// Returns the scheme and the host that the user named, with a `/` at the end.
    fn named_server(&self) -> String {
        let scheme = match self.url.scheme() {
            Scheme::Pelican if is_this_machine(self.url.authority()) => "http",
            Scheme::Https | Scheme::Pelican => "https",
            _ => "http",
        };
        format!("{scheme}://{}/", self.url.authority())
    }

    /// Returns the URI of the bucket or container in an object store of Google or Azure.
    fn container_uri(&self) -> String {
        let authority = self.url.authority();
        let (account, container) = authority.split_once('/').unwrap_or(("", authority));
        let endpoint = self.endpoint.as_ref();
        let base = endpoint.map(|server| server.to_string().trim_end_matches('/').to_owned());
        let is_of_account = |server: &Url| {
            server.authority().starts_with(&format!("{account}.")) || !server.path().is_empty()
        };
        match (base, account) {
            (None, "") => format!("https://storage.googleapis.com/{container}"),
            (None, _) => format!("https://{account}.blob.core.windows.net/{container}"),
            (Some(base), "") => format!("{base}/{container}"),
            (Some(base), _) if endpoint.is_some_and(is_of_account) => {
                format!("{base}/{container}")
            }
            (Some(base), _) => format!("{base}/{account}/{container}"),
        }
    }

    fn uri_of_key(&self, key: &str, region: &str) -> String {
        let (bucket, key) = (self.url.authority(), percent_encode(key, IN_NAME));
        match &self.endpoint {
            Some(server) => {
                let own = format!("{bucket}.");
                let base = server.to_string();
                let base = base.trim_end_matches('/');
                if server.authority().starts_with(&own) {
                    format!("{base}/{key}")
                } else {
                    format!("{base}/{bucket}/{key}")
                }
            }
            None => {
                let stack = if self.is_dual_stack { "dualstack." } else { "" };
                if let Some(point) = self.url.access_point() {
                    let (name, account) = (point.name, point.account);
                    let host = format!("s3-accesspoint.{stack}{region}.{}", amazon_domain(region));
                    return format!("https://{name}-{account}.{host}/{key}");
                }
                let host = format!("s3.{stack}{region}.{}", amazon_domain(region));
                // A wildcard certificate matches one label only.
                if bucket.contains('.') {
                    format!("https://{host}/{bucket}/{key}")
                } else {
                    format!("https://{bucket}.{host}/{key}")
                }
            }
        }
    }
}

/// Returns only the parts of a query that are Pelican's flags. The other parts may be secret, so a
/// director on another host does not receive them.
fn pelican_flags(query: &str) -> String {
    const FLAGS: [&str; 3] = ["directread", "prefercached", "skipstat"];
    let parts = query.split('&').filter(|part| FLAGS.contains(part));
    parts.collect::<Vec<_>>().join("&")
}

/// Returns the header with the version of Azure's storage API that this program expects.
fn azure_version_header() -> RequestHeader {
    let value = HeaderValue::from_static("2021-12-02");
    (HeaderName::from_static("x-ms-version"), value)
}

/// Returns whether a host, with an optional port, is this machine: `localhost`, a name below
/// `localhost`, or a loopback address. Only on this machine, a Pelican federation is reached over
/// http, because the tests run a federation here.
fn is_this_machine(authority: &str) -> bool {
    let uri = format!("http://{authority}/").parse();
    uri.is_ok_and(|uri| hosts::is_this_machine(&uri))
}

/// Returns Amazon's domain for a region.
fn amazon_domain(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    }
}

fn url_authorization(user_info: &str) -> Option<HeaderValue> {
    basic_authorization(percent_decode(user_info))
}

/// Returns the value of an `Authorization` header with `Basic` credentials; RFC 7617. `plain` is a
/// name, a `:` and a password.
pub(super) fn basic_authorization(plain: impl AsRef<[u8]>) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(plain)));
    if let Ok(value) = &mut value {
        value.set_sensitive(true);
    }
    value.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::source::location::Location;

    fn url(text: &str) -> Url {
        match Location::parse(text.into()) {
            Ok(Location::Url(url)) => url,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn uri(source: &str, endpoint: Option<&str>, name: &str) -> String {
        let address = SourceAddress::new(url(source), endpoint.map(url), true);
        address
            .object_target(name.as_bytes(), "eu-west-1")
            .unwrap()
            .uri
            .to_string()
    }

    #[test]
    fn a_bucket_is_in_the_host_or_in_the_path() {
        let amazon = "https://b.s3.eu-west-1.amazonaws.com/d/run%201.h5";
        assert_eq!(uri("s3://b/d/run 1.h5", None, ""), amazon);
        let dotted = "https://s3.eu-west-1.amazonaws.com/b.org/d/a.h5";
        assert_eq!(uri("s3://b.org/d/a.h5", None, ""), dotted);
        let own = Some("http://127.0.0.1:9000");
        assert_eq!(
            uri("s3://b/d/a.h5", own, ""),
            "http://127.0.0.1:9000/b/d/a.h5"
        );
        let base = Some("https://host/minio/");
        assert_eq!(uri("s3://b/a.h5", base, ""), "https://host/minio/b/a.h5");
        let of_bucket = Some("https://b.host");
        assert_eq!(uri("s3://b/a.h5", of_bucket, ""), "https://b.host/a.h5");
        assert_eq!(
            uri("s3://b/50%/ü", own, ""),
            "http://127.0.0.1:9000/b/50%25/%C3%BC"
        );
    }

    #[test]
    fn amazon_has_other_hosts() {
        let dual = |source: &str| {
            let address = SourceAddress::new(url(source), None, true).with_dual_stack(true);
            let object = address.object_target(b"", "eu-west-1");
            object
                .map(|target| target.uri.to_string())
                .unwrap_or_default()
        };
        let point = "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/lab/d/a.h5";
        let host = "https://lab-123456789012.s3-accesspoint";
        assert_eq!(
            uri(point, None, ""),
            format!("{host}.eu-west-1.amazonaws.com/d/a.h5")
        );
        assert_eq!(
            dual(point),
            format!("{host}.dualstack.eu-west-1.amazonaws.com/d/a.h5")
        );
        assert_eq!(
            dual("s3://b/a.h5"),
            "https://b.s3.dualstack.eu-west-1.amazonaws.com/a.h5"
        );
        let dotted = "https://s3.dualstack.eu-west-1.amazonaws.com/b.org/a.h5";
        assert_eq!(dual("s3://b.org/a.h5"), dotted);
    }

    #[test]
    fn a_container_is_in_the_host_or_in_the_path() {
        let own = Some::<&str>;
        for (source, endpoint, wanted) in [
            (
                "gs://b/d/a 1.h5",
                None,
                "https://storage.googleapis.com/b/d/a%201.h5",
            ),
            (
                "gs://b/a.h5",
                own("http://127.0.0.1:1"),
                "http://127.0.0.1:1/b/a.h5",
            ),
            ("gs://b", None, "https://storage.googleapis.com/b"),
            (
                "az://a/c/d/x.h5",
                None,
                "https://a.blob.core.windows.net/c/d/x.h5",
            ),
            ("az://a/c", None, "https://a.blob.core.windows.net/c"),
            (
                "az://a/c/x",
                own("http://127.0.0.1:1"),
                "http://127.0.0.1:1/a/c/x",
            ),
            (
                "az://a/c/x",
                own("http://127.0.0.1:1/a"),
                "http://127.0.0.1:1/a/c/x",
            ),
            (
                "az://a/c/x",
                own("https://a.blob.core.chinacloudapi.cn"),
                "https://a.blob.core.chinacloudapi.cn/c/x",
            ),
        ] {
            assert_eq!(uri(source, endpoint, ""), wanted, "{source}");
        }
        let address = SourceAddress::new(url("az://a/c/d/"), None, true);
        let address = address.with_signature(Some("sv=1&sig=s%2B".to_owned()));
        let page = address
            .listing_target(b"sub/", "2!1", "")
            .unwrap_or_else(|_| panic!("no page"));
        let wanted = "https://a.blob.core.windows.net/c?comp=list&delimiter=%2F&marker=2%211\
                      &prefix=d%2Fsub%2F&restype=container&sv=1&sig=s%2B";
        assert_eq!(page.uri.to_string(), wanted);
        let object = address
            .object_target(b"x.h5", "")
            .unwrap_or_else(|_| panic!("no object"));
        assert!(object.uri.query() == Some("sv=1&sig=s%2B"));
        assert!(!object.location.contains("sig") && !object.shown_url.contains("sig"));
        assert_eq!(object.headers[0].0, "x-ms-version");
    }

    #[test]
    fn a_web_url_is_requested_as_written() {
        let page = "https://host:8443/a%20b/run.h5?token=x%2Fy";
        assert_eq!(uri(page, None, ""), page);
        assert_eq!(uri("http://host/ü.h5", None, ""), "http://host/%C3%BC.h5");
        let target =
            SourceAddress::new(url("http://joe:p%40ss@host/a"), None, true).object_target(b"", "");
        let target = target.unwrap_or_else(|trouble| panic!("{trouble:?}"));
        assert_eq!(target.authorization.unwrap(), "Basic am9lOnBAc3M=");
        assert_eq!(target.shown_url, "http://host/a");
    }

    #[test]
    fn presigned_urls_of_one_object_have_one_location() {
        let place = |query: &str| {
            let address = SourceAddress::new(url(&format!("http://h/a?{query}")), None, true);
            address
                .object_target(b"", "")
                .map(|target| target.location)
                .unwrap_or_default()
        };
        assert_eq!(
            place("v=1&X-Amz-Date=2&X-Amz-Signature=3"),
            place("v=1&X-Amz-Date=4")
        );
        assert_ne!(place("v=1"), place("v=2"));
        assert_eq!(
            place("v=1&X-Goog-Date=2&X-Goog-Signature=3"),
            place("v=1&GoogleAccessId=a&Expires=4&Signature=5")
        );
        let sas = "sv=2024-11-04&se=2026-11-27T00%3A00%3A00Z&sr=b&sp=r&sig=";
        assert_eq!(place(&format!("v=1&{sas}a")), place(&format!("v=1&{sas}b")));
        assert_ne!(place("v=1&sv=1&sp=2"), place("v=1&sv=1&sp=3"));
    }

    #[test]
    fn a_neighbour_is_beneath_the_prefix() {
        assert_eq!(
            uri("http://host/d/a.h5", None, "b 2.h5"),
            "http://host/d/b%202.h5"
        );
        assert_eq!(
            uri("http://host/d/a.h5", None, "%2e%2e/b"),
            "http://host/d/%252e%252e/b"
        );
        let own = Some("http://h");
        assert_eq!(uri("s3://b/d/", own, "sub/b.h5"), "http://h/b/d/sub/b.h5");
        let address = |has| SourceAddress::new(url("http://host/d/a.h5"), None, has);
        for out in ["../b.h5", "/b.h5", "sub//b", "./b", "sub/..", "b\0"] {
            let refused = address(true).object_target(out.as_bytes(), "");
            assert!(
                refused.is_err_and(|trouble| trouble.failure == FailureKind::NotFound),
                "{out}"
            );
        }
        assert!(address(false).object_target(b"b.h5", "").is_err());
    }
}

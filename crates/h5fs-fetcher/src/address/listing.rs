//! The targets of requests that list names: directories of web servers, and prefixes of object
//! stores.

use h5fs_reader::source::location::Scheme;
use h5fs_reader::source::location::percent::{IN_NAME, UNRESERVED, percent_encode};
use h5fs_reader::source::remote::message::FailureKind;
use http::{HeaderName, HeaderValue, Method, header};

use crate::address::{FetchTarget, SourceAddress, paths};
use crate::fetch_error::FetchError;

/// The protocol that a web server uses to list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListingProtocol {
    /// HTML index pages with a link for each name.
    Index,
    /// Catalogs of a THREDDS server.
    Catalog,
    /// Properties of WebDAV; RFC 4918.
    WebDav,
    /// The file tree of a Hugging Face dataset.
    DatasetTree,
}

/// The `Accept` header of an index page. JSON is preferred, if the server supports it.
const INDEX_ACCEPT: &str = "application/json, text/html;q=0.9, */*;q=0.1";

/// Returns the method of a WebDAV request that lists names.
fn propfind() -> Method {
    Method::from_bytes(b"PROPFIND").unwrap_or(Method::GET)
}

impl SourceAddress {
    /// Returns the target of a request that lists a directory on a web server. `prefix` is the
    /// directory's path relative to the URL's prefix.
    ///
    /// # Errors
    /// `NotFound` if no directory with the prefix can have this name.
    pub(crate) fn directory_target(
        &self,
        prefix: &[u8],
        protocol: ListingProtocol,
    ) -> Result<FetchTarget, FetchError> {
        self.directory_page_target(prefix, protocol, None)
    }

    /// Returns the target of a request for one page of a directory's listing. `query` selects the
    /// page.
    ///
    /// # Errors
    /// Fails as [`directory_target`](Self::directory_target) does.
    pub(crate) fn directory_page_target(
        &self,
        prefix: &[u8],
        protocol: ListingProtocol,
        query: Option<&str>,
    ) -> Result<FetchTarget, FetchError> {
        let name = prefix.strip_suffix(b"/").unwrap_or(prefix);
        // Names of directories follow the same rules as names of objects.
        self.object_target(name, "")?;
        let path = format!(
            "{}{}",
            self.url.directory(),
            percent_encode(prefix, IN_NAME)
        );
        let header = |name, value| (name, HeaderValue::from_static(value));
        let depth = HeaderName::from_static("depth");
        let of_record = paths::record_listing(&path).filter(|_| protocol == ListingProtocol::Index);
        let path = of_record.unwrap_or(path);
        let (path, method, header) = match protocol {
            ListingProtocol::Index => (path, Method::GET, header(header::ACCEPT, INDEX_ACCEPT)),
            ListingProtocol::Catalog => (
                path + paths::THREDDS_CATALOG,
                Method::GET,
                header(header::ACCEPT, "application/xml"),
            ),
            // RFC 4918, section 9.1: a request without a body asks for all properties.
            ListingProtocol::WebDav if prefix.is_empty() || prefix.ends_with(b"/") => {
                (path, propfind(), header(depth, "1"))
            }
            ListingProtocol::WebDav => (path, propfind(), header(depth, "0")),
            ListingProtocol::DatasetTree => {
                let tree = paths::dataset_listing(&path)
                    .ok_or_else(|| FetchError::permanent("no dataset"))?;
                (
                    tree,
                    Method::GET,
                    header(header::ACCEPT, "application/json"),
                )
            }
        };
        let target = self.target(&path, query, "")?;
        Ok(FetchTarget {
            method,
            headers: vec![header],
            ..target
        })
    }

    /// Returns the target of a request for one page of the names that start with `prefix`. `prefix`
    /// is relative to the URL's prefix, and `token` selects the page.
    ///
    /// # Errors
    /// `Other` if the source is not in an object store. `NotFound` if `prefix` is not UTF-8.
    pub(crate) fn listing_target(
        &self,
        prefix: &[u8],
        token: &str,
        region: &str,
    ) -> Result<FetchTarget, FetchError> {
        if !self.url.scheme().has_keys() {
            return Err(FetchError::permanent(
                "only the prefix of a store can be listed",
            ));
        }
        let prefix = std::str::from_utf8(prefix);
        let prefix =
            prefix.map_err(|_| FetchError::new(FailureKind::NotFound, "no such prefix"))?;
        let prefix = format!("{}{prefix}", self.url.directory());
        if self.url.scheme() == Scheme::Azure {
            let mut query = "comp=list&delimiter=%2F".to_owned();
            if !token.is_empty() {
                query += &format!("&marker={}", percent_encode(token, UNRESERVED));
            }
            query += &format!(
                "&prefix={}&restype=container",
                percent_encode(&prefix, UNRESERVED)
            );
            return self.target("", Some(&query), region);
        }
        // Parameters are in alphabetical order, as the signature requires.
        let mut query = String::new();
        if !token.is_empty() {
            query = format!("continuation-token={}&", percent_encode(token, UNRESERVED));
        }
        query += "delimiter=%2F&encoding-type=url&list-type=2&prefix=";
        query += &percent_encode(&prefix, UNRESERVED);
        self.target("", Some(&query), region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::source::location::{Location, Url};

    fn url(text: &str) -> Url {
        match Location::parse(text.into()) {
            Ok(Location::Url(url)) => url,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn uri(source: &str, name: &str) -> String {
        let address = SourceAddress::new(url(source), None, true);
        let target = address.object_target(name.as_bytes(), "").unwrap();
        target.uri.to_string()
    }

    #[test]
    fn catalogs_and_files_of_thredds_are_in_two_places() {
        let source = "https://h/thredds/catalog/runs/";
        assert_eq!(
            uri(source, "a b.nc"),
            "https://h/thredds/fileServer/runs/a%20b.nc"
        );
        let address = SourceAddress::new(url(source), None, true);
        let page = address.directory_target(b"sub/", ListingProtocol::Catalog);
        let page = page.map(|target| target.uri.to_string());
        let wanted = "https://h/thredds/catalog/runs/sub/catalog.xml";
        assert_eq!(page.as_deref().unwrap_or_default(), wanted);
        let record = SourceAddress::new(url("https://zenodo.org/records/1/files/"), None, true);
        let page = record
            .directory_target(b"", ListingProtocol::Index)
            .map(|target| target.uri.to_string());
        assert_eq!(
            page.as_deref().unwrap_or_default(),
            "https://zenodo.org/api/records/1/files"
        );
        let own = "https://h/thredds/catalog/runs/a.nc";
        assert_eq!(uri(own, ""), "https://h/thredds/fileServer/runs/a.nc");
    }

    #[test]
    fn a_prefix_is_listed() {
        let address = SourceAddress::new(url("s3://b/d/"), Some(url("http://h")), true);
        let page = address
            .listing_target(b"sub/", "a+b=", "r")
            .map(|target| target.uri.to_string());
        let wanted = "http://h/b/?continuation-token=a%2Bb%3D&delimiter=%2F&encoding-type=url\
                      &list-type=2&prefix=d%2Fsub%2F";
        assert_eq!(page.as_deref().unwrap_or_default(), wanted);
        assert!(
            SourceAddress::new(url("http://h/d/"), None, true)
                .listing_target(b"", "", "")
                .is_err()
        );
    }
}

//! Parses WebDAV properties: the response to `PROPFIND`, a `multistatus` document; RFC 4918,
//! sections 9.1 and 13.

use h5fs_reader::source::remote::message::{ListedName, ListedType};
use h5fs_reader::source::remote::state::ObjectState;

use crate::fetch_error::FetchError;
use crate::limits;
use crate::names::href::{BaseDirectory, HrefTarget};
use crate::names::page::{NamesPage, invalid_page, listed_name};
use crate::names::xml::{self, ElementVisitor};
use crate::transfer::parse_date;

/// The part of a `multistatus` response that has been parsed so far.
struct WebDavListing<'a> {
    base: &'a BaseDirectory,
    names: Vec<ListedName>,
    /// Number of `response` elements.
    count: usize,
    /// URI reference of the current `response` element.
    href: String,
    /// Properties of the current `response` element, from its `propstat` elements with status 200.
    found: Properties,
    /// Properties of the current `propstat` element.
    pending: Properties,
    is_status_ok: bool,
}

/// The WebDAV properties of one file or collection.
#[derive(Default)]
struct Properties {
    is_collection: bool,
    length: Option<u64>,
    etag: Vec<u8>,
    modified: i64,
}

impl Properties {
    /// Adds the properties of `other`. If both have a length or an entity tag, the value of `other`
    /// is used.
    fn add(&mut self, other: Properties) {
        self.is_collection |= other.is_collection;
        self.length = other.length.or(self.length);
        if !other.etag.is_empty() {
            self.etag = other.etag;
        }
        self.modified = self.modified.max(other.modified);
    }

    /// Converts the properties to the type of a listed name. The type includes the state of the
    /// object only if length and entity tag are known, because the response to a GET request, with
    /// which the state is compared, has both.
    fn into_listed_type(self) -> ListedType {
        match self.length {
            _ if self.is_collection => ListedType::Prefix,
            Some(length) if !self.etag.is_empty() => ListedType::Object(ObjectState {
                length,
                etag: self.etag,
                modified: self.modified,
            }),
            _ => ListedType::ObjectWithoutMetadata,
        }
    }
}

/// Parses the names in the collection `base`, or the single requested name in it.
///
/// # Errors
/// Fails for an incomplete or invalid `multistatus`, which a proxy may have truncated.
pub(super) fn parse_page(body: &[u8], base: &BaseDirectory) -> Result<NamesPage, FetchError> {
    let mut answer = WebDavListing {
        base,
        names: Vec::new(),
        count: 0,
        href: String::new(),
        found: Properties::default(),
        pending: Properties::default(),
        is_status_ok: false,
    };
    xml::parse_document(body, "multistatus", &mut answer)?;
    if answer.count == 0 {
        // A valid response describes at least the requested resource.
        return Err(invalid_page());
    }
    Ok(NamesPage::sorted(answer.names, String::new()))
}

impl ElementVisitor for WebDavListing<'_> {
    fn end(&mut self, path: &[&str], text: &str) -> Result<(), FetchError> {
        let text = text.trim();
        match path {
            ["response", "href"] => text.clone_into(&mut self.href),
            ["response", "propstat", "prop", property] => self.set_property(property, text)?,
            ["response", "propstat", "prop", "resourcetype", "collection"] => {
                self.pending.is_collection = true;
            }
            // `HTTP/1.1 200 OK`
            ["response", "propstat", "status"] => {
                self.is_status_ok = text.split(' ').nth(1) == Some("200");
            }
            ["response", "propstat"] => {
                let told = std::mem::take(&mut self.pending);
                if std::mem::take(&mut self.is_status_ok) {
                    self.found.add(told);
                }
            }
            ["response"] => self.add()?,
            _ => {}
        }
        Ok(())
    }
}

impl WebDavListing<'_> {
    fn set_property(&mut self, property: &str, text: &str) -> Result<(), FetchError> {
        match property {
            "getcontentlength" => self.pending.length = text.parse().ok(),
            "getetag" if text.len() > limits::ETAG_BYTES => {
                return Err(FetchError::permanent("the entity tag is too long"));
            }
            "getetag" => self.pending.etag = ObjectState::parse_entity_tag(text.as_bytes()),
            "getlastmodified" => self.pending.modified = parse_date(text).unwrap_or(0),
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self) -> Result<(), FetchError> {
        self.count += 1;
        if self.count > limits::LISTING_NAMES {
            return Err(FetchError::permanent("the server's listing is too long"));
        }
        let named = std::mem::take(&mut self.found).into_listed_type();
        let href = std::mem::take(&mut self.href);
        if let HrefTarget::Child { name, .. } = self.base.resolve(&href) {
            self.names.extend(listed_name(&name, named));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `multistatus` response, written from the examples of RFC 4918, section 9.1.
    const ANSWER: &str = r#"<?xml version="1.0" encoding="utf-8" ?>
<D:multistatus xmlns:D="DAV:">
  <D:response><D:href>/dav/runs/</D:href><D:propstat><D:prop>
    <D:resourcetype><D:collection/></D:resourcetype></D:prop>
    <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
  <D:response><D:href>http://host/dav/runs/2026/</D:href><D:propstat><D:prop>
    <D:getlastmodified>Mon, 12 Jan 1998 09:25:56 GMT</D:getlastmodified>
    <D:resourcetype><D:collection/></D:resourcetype></D:prop>
    <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
  <D:response><D:href>/dav/runs/run%201.h5</D:href><D:propstat><D:prop>
    <D:getcontentlength>4525</D:getcontentlength><D:getetag>"zzyzx"</D:getetag>
    <D:getlastmodified>Mon, 12 Jan 1998 09:25:56 GMT</D:getlastmodified>
    <D:resourcetype/></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>
    <D:propstat><D:prop><D:getcontentlength>7</D:getcontentlength></D:prop>
    <D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>
  <D:response><D:href>/dav/runs/untagged.h5</D:href><D:propstat><D:prop>
    <D:getcontentlength>1</D:getcontentlength></D:prop>
    <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
  <D:response><D:href>/dav/x.h5</D:href></D:response>
  <D:response><D:href>/dav/runs/2026/deep.h5</D:href></D:response>
  <D:response><D:href>http://other/dav/runs/y.h5</D:href></D:response>
</D:multistatus>"#;

    fn read(text: &str) -> Result<Vec<ListedName>, FetchError> {
        let base = BaseDirectory::from_uri(&"http://host/dav/runs/".parse().unwrap());
        parse_page(text.as_bytes(), &base).map(|page| page.names)
    }

    #[test]
    fn names_have_their_listed_states() {
        let name = |name: &[u8], named| ListedName {
            name: name.to_vec(),
            entry_type: named,
        };
        let object = ObjectState {
            length: 4525,
            etag: b"\"zzyzx\"".to_vec(),
            // Output of `date -u -d "1998-01-12 09:25:56" +%s`.
            modified: 884_597_156,
        };
        let wanted = [
            name(b"2026", ListedType::Prefix),
            name(b"run 1.h5", ListedType::Object(object)),
            name(b"untagged.h5", ListedType::ObjectWithoutMetadata),
        ];
        assert_eq!(read(ANSWER).unwrap(), wanted);
    }

    #[test]
    fn truncated_or_empty_multistatus_is_rejected() {
        for end in 0..ANSWER.len() {
            assert!(read(&ANSWER[..end]).is_err(), "{end}");
        }
        assert!(read("<D:multistatus xmlns:D=\"DAV:\"/>").is_err());
        assert!(read("<html></html>").is_err());
    }
}

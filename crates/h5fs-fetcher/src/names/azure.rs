//! Parses a page of an Azure container's listing: the response of `List Blobs`.

use h5fs_reader::source::location::percent::percent_decode;
use h5fs_reader::source::remote::state::ObjectState;

use crate::fetch_error::FetchError;
use crate::limits;
use crate::names::keys::ListedKeys;
use crate::names::page::{NamesPage, invalid_page};
use crate::names::xml::{self, ElementVisitor, XmlAttributes};
use crate::transfer::parse_date;

/// The part of a `List Blobs` response that has been parsed so far.
#[derive(Default)]
struct AzureListing {
    keys: ListedKeys,
    /// The prefix that the response repeats, or an empty text.
    prefix: String,
    /// Name of the current blob or common prefix.
    name: Vec<u8>,
    /// Whether the current name is percent-encoded, because XML cannot represent it.
    is_encoded: bool,
    state: ObjectState,
    has_length: bool,
    /// Whether the response contains the element with the marker of the next page. The marker is
    /// empty on the last page.
    has_next: bool,
    next: String,
}

/// Parses one page of the blobs whose names start with `prefix`.
///
/// # Errors
/// Fails as [`parse_store_page`](crate::names::parse_store_page) does.
pub(super) fn parse_page(body: &[u8], prefix: &[u8]) -> Result<NamesPage, FetchError> {
    let mut document = AzureListing::default();
    xml::parse_document(body, "EnumerationResults", &mut document)?;
    let said = document.prefix.as_bytes();
    // Without a marker element, a truncated page would look like the last page.
    if !document.has_next || !said.is_empty() && said != prefix {
        return Err(invalid_page());
    }
    let plain = |text: &str| text.as_bytes().to_vec();
    document.keys.into_page(prefix, plain, document.next)
}

impl ElementVisitor for AzureListing {
    fn begin(&mut self, path: &[&str], attributes: &XmlAttributes) -> Result<(), FetchError> {
        if let ["Blobs", _, "Name"] = path {
            self.is_encoded = attributes.get("Encoded") == Some("true");
        }
        Ok(())
    }

    fn end(&mut self, path: &[&str], whole: &str) -> Result<(), FetchError> {
        let text = whole.trim();
        match path {
            ["Prefix"] => whole.clone_into(&mut self.prefix),
            ["NextMarker"] if text.len() > limits::KEY_BYTES => {
                return Err(FetchError::permanent(
                    "the continuation marker of the server's listing is too long",
                ));
            }
            ["NextMarker"] => {
                self.has_next = true;
                text.clone_into(&mut self.next);
            }
            // Spaces are part of a name.
            ["Blobs", "Blob" | "BlobPrefix", "Name"] => {
                self.name = if self.is_encoded {
                    percent_decode(whole)
                } else {
                    whole.as_bytes().to_vec()
                };
            }
            ["Blobs", "Blob", "Properties", property] => self.set_property(property, text)?,
            ["Blobs", "Blob"] => {
                if !std::mem::take(&mut self.has_length) {
                    return Err(invalid_page());
                }
                let state = std::mem::take(&mut self.state);
                self.add(Some(state))?;
            }
            ["Blobs", "BlobPrefix"] => self.add(None)?,
            _ => {}
        }
        Ok(())
    }
}

impl AzureListing {
    fn set_property(&mut self, property: &str, text: &str) -> Result<(), FetchError> {
        match property {
            "Content-Length" => {
                self.state.length = text.parse().map_err(|_| invalid_page())?;
                self.has_length = true;
            }
            "Etag" => self.state.etag = ObjectState::parse_entity_tag(text.as_bytes()),
            "Last-Modified" => self.state.modified = parse_date(text).unwrap_or(0),
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, state: Option<ObjectState>) -> Result<(), FetchError> {
        // A name that is not UTF-8 cannot be a file name either.
        match String::from_utf8(std::mem::take(&mut self.name)) {
            Ok(name) => self.keys.add(name, state),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::source::remote::message::{ListedName, ListedType};

    /// A page of a listing, written from the reference of `List Blobs`.
    const PAGE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://acct.blob.core.windows.net/" ContainerName="data">
  <Prefix>runs/</Prefix><MaxResults>5000</MaxResults><Delimiter>/</Delimiter>
  <Blobs>
    <Blob><Name>runs/a b&amp;c.h5</Name><Properties>
      <Last-Modified>Mon, 12 Jan 1998 09:25:56 GMT</Last-Modified><Etag>0x8CBFF45D8A29A19</Etag>
      <Content-Length>434234</Content-Length><Content-Type>text/html</Content-Type>
      <BlobType>BlockBlob</BlobType></Properties><OrMetadata /></Blob>
    <BlobPrefix><Name>runs/2026/</Name></BlobPrefix>
    <Blob><Name Encoded="true">runs/odd%EF%BF%BF.h5</Name><Properties>
      <Etag>0x1</Etag><Content-Length>1</Content-Length></Properties></Blob>
  </Blobs>
  <NextMarker>2!92!MDAwMDE2</NextMarker>
</EnumerationResults>"#;

    #[test]
    fn a_page_has_blobs_and_prefixes() {
        let page = parse_page(PAGE.as_bytes(), b"runs/").unwrap();
        let object = |length, etag: &[u8], modified| {
            ListedType::Object(ObjectState {
                length,
                etag: etag.to_vec(),
                modified,
            })
        };
        let name = |name: &str, named| ListedName {
            name: name.as_bytes().to_vec(),
            entry_type: named,
        };
        // Output of `date -u -d "1998-01-12 09:25:56" +%s`.
        let first = object(434_234, b"0x8CBFF45D8A29A19", 884_597_156);
        let names = vec![
            name("2026", ListedType::Prefix),
            name("a b&c.h5", first),
            name("odd\u{ffff}.h5", object(1, b"0x1", 0)),
        ];
        let next = "2!92!MDAwMDE2".to_owned();
        assert_eq!(page, NamesPage { names, next });
    }

    #[test]
    fn truncated_pages_and_unrelated_names_are_rejected() {
        for end in 0..PAGE.len() {
            assert!(
                parse_page(&PAGE.as_bytes()[..end], b"runs/").is_err(),
                "{end}"
            );
        }
        assert!(parse_page(PAGE.as_bytes(), b"other/").is_err());
        let list = |text: &str| format!("<EnumerationResults>{text}</EnumerationResults>");
        let next = "<NextMarker/>";
        let blob = "<Blobs><Blob><Name>k</Name><Properties><Content-Length>1</Content-Length>\
                    </Properties></Blob></Blobs>";
        assert!(parse_page(list(&format!("{blob}{next}")).as_bytes(), b"").is_ok());
        for wrong in [
            blob.to_owned(),
            format!("{}{next}", blob.replace("Content-Length", "Length")),
            format!("{}{next}", blob.replace("<Name>k</Name>", "")),
            format!(
                "{blob}<NextMarker>{}</NextMarker>",
                "x".repeat(limits::KEY_BYTES + 1)
            ),
        ] {
            assert!(parse_page(list(&wrong).as_bytes(), b"").is_err(), "{wrong}");
        }
        let many = blob.replace("<Blobs>", "").replace("</Blobs>", "");
        let many = format!(
            "<Blobs>{}</Blobs>{next}",
            many.repeat(limits::LISTING_NAMES + 1)
        );
        assert!(parse_page(list(&many).as_bytes(), b"").is_err());
    }
}

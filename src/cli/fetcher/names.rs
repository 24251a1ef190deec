//! Names beneath a prefix, or in a directory of the web, as servers list them.
//!
//! | file | what is read |
//! |---|---|
//! | `s3` | the answer of `ListObjectsV2`, of Google's servers, too |
//! | `azure` | the answer of `List Blobs` |
//! | `index`, `json` | index pages of web servers, in HTML or JSON |
//! | `thredds` | catalogs of THREDDS |
//! | `webdav` | properties of WebDAV |
//! | `web` | which of these a server of the web speaks, and names that are looked up |
//! | `keys`, `href` | keys of stores; references of pages |
//! | `xml` | documents of XML, bounded and whole |

mod azure;
mod href;
mod index;
mod json;
mod keys;
mod s3;
pub(super) mod thredds;
pub(super) mod web;
mod webdav;
mod xml;

use crate::cli::fetcher::trouble::Trouble;
use crate::limits;
use crate::source::location::Scheme;
use crate::source::remote::message::{ListedName, Named, PACKET};

/// Names that fit in a packet with the place of the next page, however long they and their tags
/// are.
const NAMES: usize =
    (PACKET - 2 * limits::KEY_BYTES) / (limits::KEY_BYTES + limits::ETAG_BYTES + 32);

/// In which way a server of the web lists names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Pages for people, with a link for each name.
    Index,
    /// A catalog of THREDDS.
    Catalog,
    /// RFC 4918.
    WebDav,
}

/// The names directly beneath a prefix, as far as a page goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Sorted by their bytes.
    pub(super) names: Vec<ListedName>,
    /// Asks for the next page; empty at the end.
    pub(super) next: String,
}

impl Page {
    /// Reads the page of the keys that begin with `prefix`. Their names are what follows its last
    /// `/`; a key that ends there has none.
    ///
    /// # Errors
    /// Fails if it has more than its bounds. What is no whole page, or one of other keys, may be
    /// right the next time: a proxy may have cut it off, or have sent a page of its own in its
    /// place.
    pub(super) fn parse(scheme: Scheme, body: &[u8], prefix: &[u8]) -> Result<Self, Trouble> {
        match scheme {
            Scheme::Azure => azure::page(body, prefix),
            _ => s3::page(body, prefix),
        }
    }

    /// The page of these names.
    fn sorted(mut names: Vec<ListedName>, next: String) -> Self {
        names.sort_by(|a, b| a.name.cmp(&b.name));
        Page { names, next }
    }

    /// Takes the first names, as many as fit in a packet, where more follow them.
    pub(super) fn part(&mut self) -> Option<Vec<ListedName>> {
        (self.names.len() > NAMES).then(|| self.names.drain(..NAMES).collect())
    }
}

/// A name as it is listed; `None` where no file has such a name.
fn listed(name: &[u8], named: Named) -> Option<ListedName> {
    let has_room = (1..=limits::KEY_BYTES).contains(&name.len());
    let is_plain = has_room && !name.contains(&b'/') && !name.contains(&0);
    is_plain.then(|| ListedName {
        name: name.to_vec(),
        named,
    })
}

/// An answer that is no whole page of names.
fn wrong() -> Trouble {
    Trouble::passing("the server's listing cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::remote::message::Reply;
    use crate::source::remote::state::ObjectState;

    #[test]
    fn a_page_comes_in_packets() {
        let names = (0..1000).map(|number| ListedName {
            name: format!("{number:01024}").into_bytes(),
            named: Named::Object(ObjectState {
                etag: vec![b'x'; limits::ETAG_BYTES],
                ..ObjectState::default()
            }),
        });
        let names: Vec<_> = names.collect();
        let mut page = Page {
            names: names.clone(),
            next: String::new(),
        };
        let mut come = Vec::new();
        while let Some(entries) = page.part() {
            come.extend(entries.clone());
            let reply = Reply::Listed {
                id: 1,
                is_last: true,
                entries,
                next: vec![b'x'; limits::KEY_BYTES],
            };
            assert!(reply.encode().len() <= PACKET);
        }
        assert!((1..=NAMES).contains(&page.names.len()));
        come.extend(page.names);
        assert_eq!(come, names);
    }
}

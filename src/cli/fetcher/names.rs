//! Names beneath a prefix, or in a directory of the web, as servers list them.
//!
//! | file | what is read |
//! |---|---|
//! | `s3` | the answer of `ListObjectsV2` |
//! | `xml` | documents of XML, bounded and whole |

mod s3;
mod xml;

use crate::cli::fetcher::trouble::Trouble;
use crate::limits;
use crate::source::remote::message::{ListedName, PACKET};

/// Names that fit in a packet with the place of the next page, however long they and their tags
/// are.
const NAMES: usize =
    (PACKET - 2 * limits::KEY_BYTES) / (limits::KEY_BYTES + limits::ETAG_BYTES + 32);

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
    pub(super) fn parse(body: &[u8], prefix: &[u8]) -> Result<Self, Trouble> {
        s3::page(body, prefix)
    }

    /// Takes the first names, as many as fit in a packet, where more follow them.
    pub(super) fn part(&mut self) -> Option<Vec<ListedName>> {
        (self.names.len() > NAMES).then(|| self.names.drain(..NAMES).collect())
    }
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
            state: Some(ObjectState {
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

//! A page of names, whatever it was read from.

use std::collections::BTreeMap;

use crate::cli::fetcher::trouble::Trouble;
use crate::limits;
use crate::source::remote::message::{ListedName, Named, PACKET};

/// Names that fit in a packet with the place of the next page, however long they and their tags
/// are.
const NAMES: usize =
    (PACKET - 2 * limits::KEY_BYTES) / (limits::KEY_BYTES + limits::ETAG_BYTES + 32);

/// The names directly beneath a prefix, as far as a page goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::cli::fetcher) struct Page {
    /// Sorted by their bytes.
    pub(in crate::cli::fetcher) names: Vec<ListedName>,
    /// Asks for the next page; empty at the end.
    pub(in crate::cli::fetcher) next: String,
}

impl Page {
    /// The page of these names.
    pub(super) fn sorted(mut names: Vec<ListedName>, next: String) -> Self {
        names.sort_by(|a, b| a.name.cmp(&b.name));
        Page { names, next }
    }

    /// Takes the first names, as many as fit in a packet, where more follow them.
    pub(in crate::cli::fetcher) fn part(&mut self) -> Option<Vec<ListedName>> {
        (self.names.len() > NAMES).then(|| self.names.drain(..NAMES).collect())
    }
}

/// Names, and whether they are of directories.
#[derive(Default)]
pub(super) struct Names(BTreeMap<Vec<u8>, bool>);

impl Names {
    /// Adds a name; one that is listed twice may be a directory.
    ///
    /// # Errors
    /// `Other` for too many.
    pub(super) fn add(&mut self, name: Vec<u8>, is_directory: bool) -> Result<(), Trouble> {
        *self.0.entry(name).or_default() |= is_directory;
        if self.0.len() > limits::LISTING_NAMES {
            return Err(Trouble::other("the server's listing is too long"));
        }
        Ok(())
    }

    pub(super) fn page(self) -> Page {
        let named = |(name, is_directory): (Vec<u8>, bool)| {
            let named = if is_directory {
                Named::Prefix
            } else {
                Named::Unseen
            };
            listed(&name, named)
        };
        Page::sorted(
            self.0.into_iter().filter_map(named).collect(),
            String::new(),
        )
    }
}

/// A name as it is listed; `None` where no file has such a name.
pub(super) fn listed(name: &[u8], named: Named) -> Option<ListedName> {
    let has_room = (1..=limits::KEY_BYTES).contains(&name.len());
    let is_plain = has_room && !name.contains(&b'/') && !name.contains(&0);
    is_plain.then(|| ListedName {
        name: name.to_vec(),
        named,
    })
}

/// An answer that is no whole page of names.
pub(super) fn wrong() -> Trouble {
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

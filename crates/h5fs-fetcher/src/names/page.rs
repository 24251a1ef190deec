//! One page of a listing, from any kind of server.

use std::collections::BTreeMap;

use h5fs_reader::source::remote::message::{ListedName, ListedType, PACKET};

use crate::fetch_error::FetchError;
use crate::limits;

/// Number of names that fit in one packet to the parsing process, together with the marker of the
/// next page. Names and entity tags count with their maximum length.
const NAMES_PER_PACKET: usize =
    (PACKET - 2 * limits::KEY_BYTES) / (limits::KEY_BYTES + limits::ETAG_BYTES + 32);

/// One page of the names directly below a prefix or in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamesPage {
    /// The names of the page, sorted by their bytes.
    pub(crate) names: Vec<ListedName>,
    /// Marker that requests the next page. Empty on the last page.
    pub(crate) next: String,
}

impl NamesPage {
    /// Creates a page of these names, in sorted order.
    pub(super) fn sorted(mut names: Vec<ListedName>, next: String) -> Self {
        names.sort_by(|a, b| a.name.cmp(&b.name));
        NamesPage { names, next }
    }

    /// Removes and returns the first names of the page, as many as fit in one packet. Returns
    /// `None` if all remaining names fit in one packet.
    pub(crate) fn take_packet(&mut self) -> Option<Vec<ListedName>> {
        (self.names.len() > NAMES_PER_PACKET)
            .then(|| self.names.drain(..NAMES_PER_PACKET).collect())
    }
}

/// The names in a directory, each with a flag that says whether it is a directory.
#[derive(Default)]
pub(super) struct NameSet(BTreeMap<Vec<u8>, bool>);

impl NameSet {
    /// Adds a name. If a name is listed twice, it is a directory if either entry is one.
    ///
    /// # Errors
    /// `Other` if there are too many names.
    pub(super) fn add(&mut self, name: Vec<u8>, is_directory: bool) -> Result<(), FetchError> {
        *self.0.entry(name).or_default() |= is_directory;
        if self.0.len() > limits::LISTING_NAMES {
            return Err(FetchError::permanent("the server's listing is too long"));
        }
        Ok(())
    }

    pub(super) fn into_page(self) -> NamesPage {
        let named = |(name, is_directory): (Vec<u8>, bool)| {
            let named = if is_directory {
                ListedType::Prefix
            } else {
                ListedType::ObjectWithoutMetadata
            };
            listed_name(&name, named)
        };
        NamesPage::sorted(
            self.0.into_iter().filter_map(named).collect(),
            String::new(),
        )
    }
}

/// Returns the entry of a page for an object or directory called `name`, of the type `named`.
/// Returns `None` if no file can have this name.
pub(super) fn listed_name(name: &[u8], named: ListedType) -> Option<ListedName> {
    let has_room = (1..=limits::KEY_BYTES).contains(&name.len());
    let is_plain = has_room && !name.contains(&b'/') && !name.contains(&0);
    is_plain.then(|| ListedName {
        name: name.to_vec(),
        entry_type: named,
    })
}

/// Returns the failure for a page of names that is incomplete or invalid.
pub(super) fn invalid_page() -> FetchError {
    FetchError::temporary("the server's listing cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::source::remote::message::Reply;
    use h5fs_reader::source::remote::state::ObjectState;

    #[test]
    fn a_page_is_divided_into_packets() {
        let names = (0..1000).map(|number| ListedName {
            name: format!("{number:01024}").into_bytes(),
            entry_type: ListedType::Object(ObjectState {
                etag: vec![b'x'; limits::ETAG_BYTES],
                ..ObjectState::default()
            }),
        });
        let names: Vec<_> = names.collect();
        let mut page = NamesPage {
            names: names.clone(),
            next: String::new(),
        };
        let mut come = Vec::new();
        while let Some(entries) = page.take_packet() {
            come.extend(entries.clone());
            let reply = Reply::Listed {
                id: 1,
                is_last: true,
                entries,
                next: vec![b'x'; limits::KEY_BYTES],
            };
            assert!(reply.encode().len() <= PACKET);
        }
        assert!((1..=NAMES_PER_PACKET).contains(&page.names.len()));
        come.extend(page.names);
        assert_eq!(come, names);
    }
}

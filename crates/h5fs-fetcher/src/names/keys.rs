//! The keys and common prefixes in one page of an object store's listing.

use h5fs_reader::source::remote::message::ListedType;
use h5fs_reader::source::remote::state::ObjectState;

use crate::fetch_error::FetchError;
use crate::limits;
use crate::names::page::{NamesPage, invalid_page, listed_name};

/// The keys and common prefixes that have been parsed.
#[derive(Default)]
pub(super) struct ListedKeys(Vec<ListedKey>);

/// A key with the state of its object, or a common prefix. The text is encoded as in the response.
struct ListedKey {
    key: String,
    state: Option<ObjectState>,
}

impl ListedKeys {
    /// Adds a key with its state, or a common prefix.
    ///
    /// # Errors
    /// `Other` if there are too many keys, or if an entity tag is too long. A temporary failure if
    /// the key is empty.
    pub(super) fn add(
        &mut self,
        key: String,
        state: Option<ObjectState>,
    ) -> Result<(), FetchError> {
        let is_long = state
            .as_ref()
            .is_some_and(|state| state.etag.len() > limits::ETAG_BYTES);
        if is_long || self.0.len() >= limits::LISTING_NAMES {
            return Err(FetchError::permanent("the server's listing is too long"));
        }
        if key.is_empty() {
            return Err(invalid_page());
        }
        self.0.push(ListedKey { key, state });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Converts the keys to a page of names. All keys must start with `prefix`. `plain` decodes a
    /// key, and `next` is the marker of the next page.
    ///
    /// # Errors
    /// Fails if a key does not start with `prefix`.
    pub(super) fn into_page(
        self,
        prefix: &[u8],
        plain: impl Fn(&str) -> Vec<u8>,
        next: String,
    ) -> Result<NamesPage, FetchError> {
        let directory = prefix.iter().rposition(|byte| *byte == b'/');
        let directory = directory.map_or(0, |slash| slash + 1);
        let mut names = Vec::new();
        for entry in self.0 {
            let key = plain(&entry.key);
            if !key.starts_with(prefix) {
                return Err(invalid_page());
            }
            let name = &key[directory..];
            names.extend(match entry.state {
                Some(state) => listed_name(name, ListedType::Object(state)),
                None => name
                    .strip_suffix(b"/")
                    .and_then(|name| listed_name(name, ListedType::Prefix)),
            });
        }
        Ok(NamesPage::sorted(names, next))
    }
}

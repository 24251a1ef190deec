//! Keys and common prefixes, as the listings of stores have them.

use crate::cli::fetcher::names::page::{Page, listed, wrong};
use crate::cli::fetcher::trouble::Trouble;
use crate::limits;
use crate::source::remote::message::Named;
use crate::source::remote::state::ObjectState;

/// The keys of a page, as far as they are read.
#[derive(Default)]
pub(super) struct Keys(Vec<Entry>);

/// A key or a common prefix as it stands in the document, and the state of an object.
struct Entry {
    key: String,
    state: Option<ObjectState>,
}

impl Keys {
    /// Adds a key with its state, or a common prefix.
    ///
    /// # Errors
    /// `Other` for too many, and for a tag that is too long.
    pub(super) fn add(&mut self, key: String, state: Option<ObjectState>) -> Result<(), Trouble> {
        let is_long = state
            .as_ref()
            .is_some_and(|state| state.etag.len() > limits::ETAG_BYTES);
        if is_long || self.0.len() >= limits::LISTING_NAMES {
            return Err(Trouble::other("the server's listing is too long"));
        }
        if key.is_empty() {
            return Err(wrong());
        }
        self.0.push(Entry { key, state });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The page of those keys, which begin with `prefix`; `plain` undoes their encoding.
    ///
    /// # Errors
    /// Fails if one begins with something else.
    pub(super) fn page(
        self,
        prefix: &[u8],
        plain: impl Fn(&str) -> Vec<u8>,
        next: String,
    ) -> Result<Page, Trouble> {
        let directory = prefix.iter().rposition(|byte| *byte == b'/');
        let directory = directory.map_or(0, |slash| slash + 1);
        let mut names = Vec::new();
        for entry in self.0 {
            let key = plain(&entry.key);
            if !key.starts_with(prefix) {
                return Err(wrong());
            }
            let name = &key[directory..];
            names.extend(match entry.state {
                Some(state) => listed(name, Named::Object(state)),
                None => name
                    .strip_suffix(b"/")
                    .and_then(|name| listed(name, Named::Prefix)),
            });
        }
        Ok(Page::sorted(names, next))
    }
}

//! The state of a listing, and its entries.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory;
use h5fs_reader::model::link_order;
use h5fs_reader::model::{Container, Link, LinkStream, NodeId};

use crate::fs::stat::{FileKind, LookupEntry};
use crate::fs::views::store_chunks::IndexWalk;

/// The first two entries of every directory, `.` and `..`.
pub(in crate::fs) const DOTS: u64 = 2;

/// An entry of a listing.
pub(in crate::fs) struct ListingEntry<'a> {
    /// The name as shown.
    pub(in crate::fs) name: &'a [u8],
    pub(in crate::fs) ino: u64,
    pub(in crate::fs) kind: FileKind,
    /// Determines the attributes, for a listing with attributes.
    pub(in crate::fs) stat: &'a dyn Fn() -> ListedAttributes,
}

impl<'a> ListingEntry<'a> {
    /// Creates the entry `.` or `..`, with the attributes from `stat`.
    pub(in crate::fs) fn dot(
        name: &'a [u8],
        ino: u64,
        stat: &'a dyn Fn() -> ListedAttributes,
    ) -> Self {
        let kind = FileKind::Directory;
        ListingEntry {
            name,
            ino,
            kind,
            stat,
        }
    }
}

/// The attributes of an entry in a listing.
pub(in crate::fs) enum ListedAttributes {
    /// Attributes of an entry that is counted as looked up.
    Counted(LookupEntry),
    /// Attributes of an entry that is not counted.
    Uncounted(LookupEntry),
    /// Unknown until a lookup. Until then, the entry appears as this kind of file.
    Unknown(FileKind),
}

/// A callback for an entry of a listing and the position after it. It returns `true`, without
/// taking the entry, if there is no room.
pub(in crate::fs) type ListingCallback<'v> = dyn FnMut(&ListingEntry<'_>, u64) -> bool + 'v;

/// The state of an open directory's listing.
#[derive(Default)]
pub(in crate::fs) struct ListingState {
    cursor: Option<Cursor>,
    attributes: Option<Arc<AttributeNames>>,
    /// The position in the index of chunks, for the listing of a Zarr store.
    pub(in crate::fs) walk: Option<Box<IndexWalk>>,
    /// Whether an entry could not be read.
    pub(in crate::fs) is_unsure: bool,
    /// Whether there are too many links for the requested order.
    pub(in crate::fs) is_unordered: bool,
}

impl ListingState {
    pub(in crate::fs) fn own_bytes(&self) -> u64 {
        let cursor = self.cursor.as_ref().map_or(0, Cursor::own_bytes);
        let attributes = self.attributes.as_ref();
        let attributes = attributes.map_or(0, |known| known.own_bytes());
        let walk = self.walk.as_ref().map_or(0, |walk| walk.own_bytes());
        cursor.saturating_add(attributes).saturating_add(walk)
    }

    pub(in crate::fs) fn forget(&mut self) {
        self.cursor = None;
        self.attributes = None;
        self.walk = None;
    }

    /// Returns the first link of `group` at or after `position`, and the position after it. With
    /// `is_ordered`, links are in display order, else in index order.
    pub(in crate::fs) fn link(
        &mut self,
        container: &dyn Container,
        group: NodeId,
        position: u64,
        is_ordered: bool,
    ) -> Result<Option<(Link, u64)>> {
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            None => {
                let links = if is_ordered {
                    let ordered = link_order::links(container, group, &mut { u64::MAX })?;
                    self.is_unordered = !ordered.is_ordered;
                    ordered.links
                } else {
                    container.links(group)?
                };
                self.cursor.insert(Cursor::new(links))
            }
        };
        let found = cursor.link_at(position)?;
        Ok(found.map(|(link, behind)| (link.clone(), behind)))
    }

    /// Returns the directory's attributes, which are read once. If some could not be read, each
    /// listing from the first entry reads them again.
    pub(in crate::fs) fn attributes(
        &mut self,
        is_first: bool,
        find: impl FnOnce() -> AttributeNames,
    ) -> Arc<AttributeNames> {
        self.attributes
            .take_if(|known| is_first && known.is_passing());
        if let Some(known) = &self.attributes {
            return Arc::clone(known);
        }
        let found = Arc::new(find());
        // After a cancellation, the repeated request reads all names.
        if !found.damaged.as_ref().is_some_and(Error::is_unwanted) {
            self.attributes = Some(Arc::clone(&found));
        }
        found
    }
}

/// The position of a listing in a group's links.
struct Cursor {
    links: Box<dyn LinkStream>,
    /// A fetched link that was not consumed, with the position where it was requested.
    next: Option<(u64, Link)>,
    /// Position and error where the listing ended early.
    failed: Option<(u64, Error)>,
}

impl Cursor {
    fn new(links: Box<dyn LinkStream>) -> Self {
        Cursor {
            links,
            next: None,
            failed: None,
        }
    }

    fn own_bytes(&self) -> u64 {
        let next = self.next.as_slice().iter();
        let next = next.map(|(_, link)| link.weight());
        self.links.weight().saturating_add(next.sum())
    }

    /// Returns the first link at or after `position`, and the position after it. Unreadable links
    /// in between are skipped. Returns `None` after the last link.
    fn link_at(&mut self, position: u64) -> Result<Option<(&Link, u64)>> {
        if let Some((at, error)) = &self.failed
            && *at == position
        {
            return Err(error.clone());
        }
        if self.next.as_ref().is_none_or(|(at, _)| *at != position) {
            self.next = None;
            let fetched = self.fetch(position);
            let fetched = fetched.inspect_err(|error| {
                let lasting = Some(error.clone()).filter(|error| !error.is_passing());
                self.failed = lasting.map(|error| (position, error));
            });
            self.next = fetched?.map(|link| (position, link));
        }
        let behind = self.links.position();
        Ok(self.next.as_ref().map(|(_, link)| (link, behind)))
    }

    fn fetch(&mut self, position: u64) -> Result<Option<Link>> {
        if self.links.position() != position {
            self.links.seek(position)?;
        }
        self.links.next()
    }
}

/// The names of a directory's attributes, as far as they are known.
#[derive(Debug, Default)]
pub(in crate::fs) struct AttributeNames {
    /// The names of the attribute files.
    pub(in crate::fs) names: Vec<Vec<u8>>,
    bytes: u64,
    /// The error because of which there may be more names.
    pub(in crate::fs) damaged: Option<Error>,
}

impl AttributeNames {
    /// Returns the bytes of memory of the names.
    pub(in crate::fs) fn own_bytes(&self) -> u64 {
        self.bytes
    }

    pub(in crate::fs) fn measured(self) -> Self {
        let list = memory::allocation_size(size_of_val(&*self.names));
        let names = self.names.iter();
        let names = names.map(|name| memory::allocation_size(name.capacity()));
        let bytes = names.fold(list, u64::saturating_add);
        AttributeNames { bytes, ..self }
    }

    /// Returns whether a later attempt may find more names.
    pub(in crate::fs) fn is_passing(&self) -> bool {
        self.damaged.as_ref().is_some_and(Error::is_passing)
    }
}

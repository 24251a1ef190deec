//! The state of listing an open directory, and the entries of a listing.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory;
use h5fs_reader::model::link_order;
use h5fs_reader::model::{Container, Link, LinkStream, NodeId};

use crate::stat::{FileKind, LookupEntry};
use crate::state::index_walk::IndexWalk;

/// Number of the entries `.` and `..`, with which every listing starts.
pub(crate) const DOT_ENTRIES: u64 = 2;

/// An entry of a listing.
pub(crate) struct ListingEntry<'a> {
    /// The name as the mount shows it.
    pub(crate) name: &'a [u8],
    pub(crate) ino: u64,
    pub(crate) kind: FileKind,
    /// A function that determines the attributes of the entry, called if the listing includes
    /// attributes.
    pub(crate) stat: &'a dyn Fn() -> ListedAttributes,
}

impl<'a> ListingEntry<'a> {
    /// Creates the entry `.` or `..`, whose attributes `stat` determines.
    pub(crate) fn dot_entry(
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
pub(crate) enum ListedAttributes {
    /// Attributes from a lookup of the entry. The lookup count of its inode was incremented.
    Counted(LookupEntry),
    /// Attributes without a lookup: the lookup count of the inode is unchanged.
    Uncounted(LookupEntry),
    /// The attributes are unknown until the kernel looks the entry up. The listing shows this kind
    /// of file.
    Unknown(FileKind),
}

/// A callback for an entry of a listing and the position after it. The callback returns `true`,
/// without taking the entry, if the reply has no room for it.
pub(crate) type ListingCallback<'v> = dyn FnMut(&ListingEntry<'_>, u64) -> bool + 'v;

/// The state of an open directory's listing.
#[derive(Default)]
pub(crate) struct ListingState {
    cursor: Option<LinkCursor>,
    attributes: Option<Arc<AttributeNames>>,
    /// The progress in the chunk index, for listing a directory of chunks in a Zarr store.
    pub(crate) index_walk: Option<Box<IndexWalk>>,
    /// Whether the listing lacks an entry that could not be read.
    pub(crate) is_incomplete: bool,
    /// Whether the listing is in index order, because the group has too many links for the order
    /// that the options request.
    pub(crate) is_in_index_order: bool,
}

impl ListingState {
    pub(crate) fn own_bytes(&self) -> u64 {
        let cursor = self.cursor.as_ref().map_or(0, LinkCursor::own_bytes);
        let attributes = self.attributes.as_ref();
        let attributes = attributes.map_or(0, |known| known.own_bytes());
        let walk = self
            .index_walk
            .as_ref()
            .map_or(0, |walk| walk.memory_bytes());
        cursor.saturating_add(attributes).saturating_add(walk)
    }

    pub(crate) fn free_memory(&mut self) {
        self.cursor = None;
        self.attributes = None;
        self.index_walk = None;
    }

    /// Returns the first link of `group` at or after `position`, and the position after it. If
    /// `is_ordered` is true, links are in display order, otherwise in the order of the file's
    /// index.
    pub(crate) fn link_at(
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
                    let ordered =
                        link_order::links_in_display_order(container, group, &mut { u64::MAX })?;
                    self.is_in_index_order = !ordered.is_ordered;
                    ordered.links
                } else {
                    container.links(group)?
                };
                self.cursor.insert(LinkCursor::new(links))
            }
        };
        let found = cursor.link_at(position)?;
        Ok(found.map(|(link, behind)| (link.clone(), behind)))
    }

    /// Returns the names of the directory's attributes, from the cache or from `find`. If some
    /// attributes could not be read, each listing that starts at the first entry calls `find`
    /// again.
    pub(crate) fn attribute_names(
        &mut self,
        is_first: bool,
        find: impl FnOnce() -> AttributeNames,
    ) -> Arc<AttributeNames> {
        self.attributes
            .take_if(|known| is_first && known.is_temporary_error());
        if let Some(known) = &self.attributes {
            return Arc::clone(known);
        }
        let found = Arc::new(find());
        // After a cancellation, the repeated request reads all names.
        if !found.error.as_ref().is_some_and(Error::is_cancelled) {
            self.attributes = Some(Arc::clone(&found));
        }
        found
    }
}

/// The progress of listing the links of a group.
struct LinkCursor {
    links: Box<dyn LinkStream>,
    /// A link that was read but not passed on, with the position from which it was requested.
    next: Option<(u64, Link)>,
    /// The position where reading links failed, and the error.
    failure: Option<(u64, Error)>,
}

impl LinkCursor {
    fn new(links: Box<dyn LinkStream>) -> Self {
        LinkCursor {
            links,
            next: None,
            failure: None,
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
        if let Some((at, error)) = &self.failure
            && *at == position
        {
            return Err(error.clone());
        }
        if self.next.as_ref().is_none_or(|(at, _)| *at != position) {
            self.next = None;
            let fetched = self.fetch(position);
            let fetched = fetched.inspect_err(|error| {
                let lasting = Some(error.clone()).filter(|error| !error.is_transient());
                self.failure = lasting.map(|error| (position, error));
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

/// The names of a directory's attributes that could be read.
#[derive(Debug, Default)]
pub(crate) struct AttributeNames {
    /// The names of the attribute files.
    pub(crate) names: Vec<Vec<u8>>,
    bytes: u64,
    /// The error because of which names may be missing. `None` if all attributes were read.
    pub(crate) error: Option<Error>,
}

impl AttributeNames {
    /// Returns the memory of the names in bytes.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn with_measured_memory(self) -> Self {
        let list = memory::allocation_size(size_of_val(&*self.names));
        let names = self.names.iter();
        let names = names.map(|name| memory::allocation_size(name.capacity()));
        let bytes = names.fold(list, u64::saturating_add);
        AttributeNames { bytes, ..self }
    }

    /// Returns whether the error is temporary, so that a later attempt may find more names.
    pub(crate) fn is_temporary_error(&self) -> bool {
        self.error.as_ref().is_some_and(Error::is_transient)
    }
}

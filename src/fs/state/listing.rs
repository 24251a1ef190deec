//! The state of a listing, and the entries that it hands out.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::stat::{Entry, Kind};
use crate::fs::views::store_chunks::Walk;
use crate::memory;
use crate::model::link_order;
use crate::model::{Container, Link, LinkStream, NodeId};

/// `.` and `..`, the first two entries of every directory.
pub(in crate::fs) const DOTS: u64 = 2;

/// An entry of a listing.
pub(in crate::fs) struct Listed<'a> {
    /// The name as shown.
    pub(in crate::fs) name: &'a [u8],
    pub(in crate::fs) ino: u64,
    pub(in crate::fs) kind: Kind,
    /// Its attributes, for a listing that tells them with each name.
    pub(in crate::fs) stat: &'a dyn Fn() -> Listable,
}

impl<'a> Listed<'a> {
    /// `.` or `..`, of which `stat` tells.
    pub(in crate::fs) fn dot(name: &'a [u8], ino: u64, stat: &'a dyn Fn() -> Listable) -> Self {
        let kind = Kind::Directory;
        Listed {
            name,
            ino,
            kind,
            stat,
        }
    }
}

/// The attributes of an entry in a listing.
pub(in crate::fs) enum Listable {
    /// This; the entry is counted as looked up.
    Counted(Entry),
    /// This; the entry is not counted.
    Uncounted(Entry),
    /// Nothing: only a lookup tells, and until then the entry passes for this kind of file.
    Unknown(Kind),
}

/// Takes an entry of a listing, and the position behind it. Once there is no room, it answers
/// `true` and has not taken the entry.
pub(in crate::fs) type Visit<'v> = dyn FnMut(&Listed<'_>, u64) -> bool + 'v;

/// The state that an open directory keeps of its listing.
#[derive(Default)]
pub(in crate::fs) struct Listing {
    cursor: Option<Cursor>,
    attributes: Option<Arc<AttributeNames>>,
    /// The place in the index of the chunks that a Zarr store lists.
    pub(in crate::fs) walk: Option<Box<Walk>>,
    /// Whether something could not be read this time.
    pub(in crate::fs) is_unsure: bool,
    /// Whether there are too many links to be shown in the order that is asked for.
    pub(in crate::fs) is_unordered: bool,
}

impl Listing {
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

    /// The first link of `group` at or after `position`, and the position behind it: in index
    /// order, or in that in which people are shown them.
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
        let found = cursor.at(position)?;
        Ok(found.map(|(link, behind)| (link.clone(), behind)))
    }

    /// The directory's attributes, found once; where not all could be read, once for each listing
    /// from the first on.
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
        // The request that begins anew finds them all.
        if !found.damaged.as_ref().is_some_and(Error::is_unwanted) {
            self.attributes = Some(Arc::clone(&found));
        }
        found
    }
}

/// The place in a group's links where a listing has come to.
struct Cursor {
    links: Box<dyn LinkStream>,
    /// A link that was fetched and not yet taken, with the position where it was asked for.
    next: Option<(u64, Link)>,
    /// Where and why the listing ended early.
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

    /// The first link at or after `position`, and the position behind it, which is further on where
    /// links that cannot be read were passed over; `None` past the last.
    fn at(&mut self, position: u64) -> Result<Option<(&Link, u64)>> {
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
    /// The names of their files.
    pub(in crate::fs) names: Vec<Vec<u8>>,
    bytes: u64,
    /// Why there may be more.
    pub(in crate::fs) damaged: Option<Error>,
}

impl AttributeNames {
    /// Bytes of memory that they take.
    pub(in crate::fs) fn own_bytes(&self) -> u64 {
        self.bytes
    }

    pub(in crate::fs) fn measured(self) -> Self {
        let list = memory::piece(size_of_val(&*self.names));
        let names = self.names.iter();
        let names = names.map(|name| memory::piece(name.capacity()));
        let bytes = names.fold(list, u64::saturating_add);
        AttributeNames { bytes, ..self }
    }

    /// Whether more of them may be found the next time.
    pub(in crate::fs) fn is_passing(&self) -> bool {
        self.damaged.as_ref().is_some_and(Error::is_passing)
    }
}

//! Open files and directories.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;

use crate::array::Held;
use crate::error::{Error, Result};
use crate::fs::errno::refusal;
use crate::fs::live::Live;
use crate::fs::lock;
use crate::fs::views::Attributes;
use crate::limits;
use crate::model::{Link, LinkStream};
use crate::view::View;

/// An open file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// How the kernel may cache what is open, worked out when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Not at all: the content has no length that is known before, or it grows.
    Never,
    /// Until it is closed.
    WhileOpen,
    /// As long as the source is unchanged.
    Lasting,
}

/// An open file or directory, and what the kernel is to be told with it.
///
/// All of it is known when the handle is made: nobody has to ask the handle for it, which the source may have left
/// behind by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// To be given back with [`Filesystem::release`](crate::fs::Filesystem::release).
    pub handle: Handle,
    /// How the kernel may cache it.
    pub caching: Caching,
    /// Whether the work for a reader of it that goes away is given up.
    pub is_given_up: bool,
}

/// What a handle stands for.
pub(super) struct Open {
    /// The inode it was opened on.
    pub(super) ino: u64,
    /// The file that it reads, in one state of it.
    pub(super) live: Arc<Live>,
    pub(super) what: What,
    held: Held,
}

impl Open {
    /// # Errors
    /// `Io` (`ENOMEM`) where all that is open takes too much memory.
    pub(super) fn file(ino: u64, live: Arc<Live>, view: Box<dyn View>) -> Result<Self> {
        Self::new(ino, live, What::File(view))
    }

    /// # Errors
    /// As [`file`](Self::file).
    pub(super) fn directory(ino: u64, live: Arc<Live>) -> Result<Self> {
        Self::new(ino, live, What::Directory(Mutex::default()))
    }

    fn new(ino: u64, live: Arc<Live>, what: What) -> Result<Self> {
        let held = live.engine.hold(limits::OPEN_HANDLE + what.own_bytes())?;
        Ok(Open {
            ino,
            live,
            what,
            held,
        })
    }

    /// Counts what the last call has left here. Where that is more than there is room for, it is
    /// let go of: who reads or lists on begins anew.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) where it was let go of.
    pub(super) fn settle(&self) -> Result<()> {
        let counted = self.count();
        if counted.is_err() {
            self.what.forget();
            // It takes no more than at the beginning now.
            let _ = self.count();
        }
        counted
    }

    fn count(&self) -> Result<()> {
        let bytes = self.what.own_bytes();
        self.held.resize(limits::OPEN_HANDLE.saturating_add(bytes))
    }
}

pub(super) enum What {
    File(Box<dyn View>),
    Directory(Mutex<Listing>),
}

impl What {
    /// Bytes of memory that this handle takes for itself.
    fn own_bytes(&self) -> u64 {
        match self {
            What::File(view) => view.own_bytes(),
            What::Directory(listing) => lock(listing).own_bytes(),
        }
    }

    /// Lets go of what can be found again.
    fn forget(&self) {
        match self {
            What::File(view) => view.forget(),
            What::Directory(listing) => lock(listing).forget(),
        }
    }
}

/// What an open directory keeps of its listing.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) cursor: Option<Cursor>,
    attributes: Option<Arc<Attributes>>,
    /// Whether something could not be read this time.
    pub(super) is_unsure: bool,
}

impl Listing {
    fn own_bytes(&self) -> u64 {
        let cursor = self.cursor.as_ref().map_or(0, Cursor::own_bytes);
        let attributes = self.attributes.as_ref();
        let attributes = attributes.map_or(0, |known| known.own_bytes());
        cursor.saturating_add(attributes)
    }

    fn forget(&mut self) {
        self.cursor = None;
        self.attributes = None;
    }

    /// The directory's attributes, found once; where not all could be read, once for each listing from the first on.
    pub(super) fn attributes(
        &mut self,
        is_first: bool,
        find: impl FnOnce() -> Attributes,
    ) -> Arc<Attributes> {
        self.attributes
            .take_if(|known| is_first && known.is_passing());
        Arc::clone(self.attributes.get_or_insert_with(|| Arc::new(find())))
    }
}

/// The place in a group's links where a listing has come to.
pub(super) struct Cursor {
    links: Box<dyn LinkStream>,
    /// A link that was fetched and not yet taken, with the position where it was asked for.
    next: Option<(u64, Link)>,
    /// Where and why the listing ended early.
    failed: Option<(u64, Error)>,
}

impl Cursor {
    pub(super) fn new(links: Box<dyn LinkStream>) -> Self {
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

    /// The first link at or after `position`, and the position behind it, which is further on where links
    /// that cannot be read were passed over; `None` past the last.
    pub(super) fn at(&mut self, position: u64) -> Result<Option<(&Link, u64)>> {
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

/// All open files and directories.
#[derive(Default)]
pub(super) struct Handles {
    open: Mutex<HashMap<u64, Arc<Open>>>,
    last: AtomicU64,
}

impl Handles {
    /// # Errors
    /// `Io` (`EMFILE`) where too many are open.
    pub(super) fn insert(&self, open: Open, caching: Caching) -> Result<Opened> {
        let is_given_up = match &open.what {
            What::File(view) => view.is_given_up(),
            What::Directory(_) => false,
        };
        let mut others = lock(&self.open);
        if others.len() >= limits::OPEN_HANDLES {
            return Err(refusal(Errno::EMFILE, "files that are open at a time"));
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        others.insert(number, Arc::new(open));
        Ok(Opened {
            handle: Handle(number),
            caching,
            is_given_up,
        })
    }

    /// Makes an open handle stand for something else.
    pub(super) fn replace(&self, handle: Handle, open: Open) -> Arc<Open> {
        let open = Arc::new(open);
        let before = match lock(&self.open).get_mut(&handle.0) {
            Some(place) => Some(std::mem::replace(place, Arc::clone(&open))),
            None => None,
        };
        drop(before);
        open
    }

    pub(super) fn get(&self, handle: Handle) -> Result<Arc<Open>> {
        let open = lock(&self.open).get(&handle.0).cloned();
        open.ok_or_else(|| refusal(Errno::EBADF, "no such handle"))
    }

    /// Takes out a handle. What it holds may take time to drop, for which others need not wait.
    pub(super) fn remove(&self, handle: Handle) -> Option<Arc<Open>> {
        let mut open = lock(&self.open);
        let removed = open.remove(&handle.0);
        if open.len() < open.capacity() / 8 {
            open.shrink_to_fit();
        }
        removed
    }
}

#[cfg(test)]
mod tests;

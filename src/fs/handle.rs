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
use crate::model::{Link, LinkStream};
use crate::view::View;

/// An open file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// What a handle stands for.
pub(super) struct Open {
    /// The inode it was opened on.
    pub(super) ino: u64,
    /// The file that it reads, in one state of it.
    pub(super) live: Arc<Live>,
    pub(super) what: What,
    _held: Option<Held>,
}

impl Open {
    /// # Errors
    /// `Io` (`ENOMEM`) where all that is open takes too much memory.
    pub(super) fn file(ino: u64, live: Arc<Live>, view: Box<dyn View>) -> Result<Self> {
        let held = live.engine.hold(view.own_bytes())?;
        Ok(Open {
            ino,
            live,
            what: What::File(view),
            _held: Some(held),
        })
    }

    pub(super) fn directory(ino: u64, live: Arc<Live>, listing: Listing) -> Self {
        Open {
            ino,
            live,
            what: What::Directory(Mutex::new(listing)),
            _held: None,
        }
    }
}

pub(super) enum What {
    File(Box<dyn View>),
    Directory(Mutex<Listing>),
}

/// What an open directory keeps of its listing.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) cursor: Option<Cursor>,
    attributes: Option<Arc<Attributes>>,
    /// Whether the kernel is to keep none of it: something could not be read the last time.
    is_anew: bool,
    /// Whether something could not be read this time.
    pub(super) is_unsure: bool,
}

impl Listing {
    pub(super) fn new(is_anew: bool) -> Self {
        Listing {
            is_anew,
            ..Listing::default()
        }
    }

    pub(super) fn is_anew(&self) -> bool {
        self.is_anew
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
    pub(super) fn insert(&self, open: Open) -> Handle {
        let number = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        lock(&self.open).insert(number, Arc::new(open));
        Handle(number)
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
        lock(&self.open).remove(&handle.0)
    }
}

//! Open files and directories.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;

use crate::array::HeldMemory;
use crate::error::Result;
use crate::fs::errno::{refusal, stale};
use crate::fs::forest::file_state::FileState;
use crate::fs::state::listing::Listing;
use crate::fs::state::pins::{Document, Pin};
use crate::limits;
use crate::memory::lock::lock;

/// An open file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// How the kernel may cache what is open, worked out when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Not at all: the content has no length that is known before, or it grows.
    Never,
    /// Not at all: the content is the same as long as the source is unchanged, but it is only made
    /// from front to back.
    InOrder,
    /// Until it is closed.
    WhileOpen,
    /// As long as the source is unchanged.
    Lasting,
}

/// An open file or directory, and what the kernel is to be told with it.
///
/// All of it is known when the handle is made. A later question could fail, as the source may have
/// changed by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// To be given back with [`Requests::release`](crate::fs::Requests::release).
    pub handle: Handle,
    /// How the kernel may cache it.
    pub caching: Caching,
    /// Whether the work for a reader of it that goes away is given up.
    pub is_given_up: bool,
}

/// The file or directory of a handle.
pub(in crate::fs) struct Open {
    /// The inode it was opened on.
    pub(in crate::fs) ino: u64,
    /// The file that it is in, in the state that it was opened in.
    pub(in crate::fs) file: Arc<FileState>,
    pub(in crate::fs) content: Content,
    held: HeldMemory,
    _pin: Option<Pin>,
}

impl Open {
    /// # Errors
    /// `Io` (`ENOMEM`) where all that is open takes too much memory.
    pub(in crate::fs) fn file(ino: u64, (document, pin): (Document, Option<Pin>)) -> Result<Self> {
        let file = Arc::clone(&document.file);
        Self::new(ino, file, Content::File(document), pin)
    }

    /// # Errors
    /// Fails as [`file`](Self::file) does.
    pub(in crate::fs) fn directory(ino: u64, file: Arc<FileState>) -> Result<Self> {
        Self::new(ino, file, Content::Directory(Mutex::default()), None)
    }

    fn new(ino: u64, file: Arc<FileState>, content: Content, pin: Option<Pin>) -> Result<Self> {
        let held = file
            .engine
            .hold(limits::OPEN_HANDLE + content.own_bytes())?;
        Ok(Open {
            ino,
            file,
            content,
            held,
            _pin: pin,
        })
    }

    /// Counts the memory that the last call has left here. Where there is no room for it, it is let
    /// go of: the next read or listing begins anew.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) where it was let go of.
    pub(in crate::fs) fn settle(&self) -> Result<()> {
        let counted = self.count();
        if counted.is_err() {
            self.content.forget();
            // It takes no more than at the beginning now.
            let _ = self.count();
        }
        counted
    }

    fn count(&self) -> Result<()> {
        let bytes = self.content.own_bytes();
        self.held.resize(limits::OPEN_HANDLE.saturating_add(bytes))
    }
}

pub(in crate::fs) enum Content {
    File(Document),
    Directory(Mutex<Listing>),
}

impl Content {
    /// Bytes of memory that this handle takes for itself.
    fn own_bytes(&self) -> u64 {
        match self {
            Content::File(document) => document.view.own_bytes(),
            Content::Directory(listing) => lock(listing).own_bytes(),
        }
    }

    /// Lets go of what can be found again.
    fn forget(&self) {
        match self {
            Content::File(document) => document.view.forget(),
            Content::Directory(listing) => lock(listing).forget(),
        }
    }
}

/// What a handle can stand for.
pub(in crate::fs) trait Openable {
    /// Whether the work for a reader of it that goes away is given up.
    fn is_given_up(&self) -> bool;

    /// Whether the state that it is of is over.
    fn is_over(&self) -> bool;
}

impl Openable for Open {
    fn is_given_up(&self) -> bool {
        match &self.content {
            Content::File(document) => document.view.is_given_up(),
            Content::Directory(_) => false,
        }
    }

    fn is_over(&self) -> bool {
        self.file.is_over()
    }
}

/// All open files and directories of a file, or of a directory of files.
pub(in crate::fs) struct Handles<O> {
    /// `None` where what was open is of a state of the source that is over.
    open: Mutex<HashMap<u64, Option<Arc<O>>>>,
    last: AtomicU64,
}

impl<O> Default for Handles<O> {
    fn default() -> Self {
        Handles {
            open: Mutex::default(),
            last: AtomicU64::new(0),
        }
    }
}

impl<O: Openable> Handles<O> {
    /// A handle that nothing stands for yet.
    pub(in crate::fs) fn unused(&self) -> Handle {
        Handle(self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    /// Has `handle` stand for `open`, unless it stands for something already.
    ///
    /// # Errors
    /// `Io` (`EMFILE`) where too many are open; `ESTALE` where the state that it is of is over.
    pub(in crate::fs) fn insert(
        &self,
        handle: Handle,
        open: O,
        caching: Caching,
    ) -> Result<Opened> {
        let is_given_up = open.is_given_up();
        let mut others = lock(&self.open);
        refuse_over(&open)?;
        if others.len() >= limits::OPEN_HANDLES {
            return Err(refusal(Errno::EMFILE, "files that are open at a time"));
        }
        let place = others.entry(handle.0);
        place.or_insert_with(|| Some(Arc::new(open)));
        Ok(Opened {
            handle,
            caching,
            is_given_up,
        })
    }

    /// Whether the handle stands for something, or did until its state was over.
    pub(in crate::fs) fn has(&self, handle: Handle) -> bool {
        lock(&self.open).contains_key(&handle.0)
    }

    /// How many there are.
    pub(in crate::fs) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Makes an open handle stand for something else.
    ///
    /// # Errors
    /// `ESTALE` where the state that it is of is over.
    pub(in crate::fs) fn replace(&self, handle: Handle, open: O) -> Result<Arc<O>> {
        let open = Arc::new(open);
        let mut others = lock(&self.open);
        refuse_over(&*open)?;
        let before = match others.get_mut(&handle.0) {
            Some(place) => place.replace(Arc::clone(&open)),
            None => None,
        };
        drop(others);
        drop(before);
        Ok(open)
    }

    /// # Errors
    /// `ESTALE` where what was open is of a state that is over.
    pub(in crate::fs) fn get(&self, handle: Handle) -> Result<Arc<O>> {
        let open = lock(&self.open).get(&handle.0).cloned();
        let open = open.ok_or_else(|| refusal(Errno::EBADF, "no such handle"))?;
        open.ok_or_else(stale)
    }

    /// Lets go of all that is open: the state that it is of is over. The handles stay.
    pub(in crate::fs) fn retire(&self) {
        let mut open = lock(&self.open);
        let gone: Vec<_> = open.values_mut().filter_map(Option::take).collect();
        drop(open);
        drop(gone);
    }

    /// Takes out a handle. What it holds may take time to drop, for which others need not wait.
    pub(in crate::fs) fn remove(&self, handle: Handle) -> Option<Arc<O>> {
        let mut open = lock(&self.open);
        let removed = open.remove(&handle.0);
        if open.len() < open.capacity() / 8 {
            open.shrink_to_fit();
        }
        removed.flatten()
    }
}

fn refuse_over(open: &impl Openable) -> Result<()> {
    if open.is_over() {
        return Err(stale());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! Open files and directories.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use h5fs_reader::array::MemoryReservation;
use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use nix::errno::Errno;

use crate::data_files::file_state::FileState;
use crate::errno::{refusal_error, stale_error};
use crate::limits;
use crate::state::listing::ListingState;
use crate::state::pins::{DocumentPin, OpenDocument};

/// The handle of an open file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// How the kernel may cache the content of an open file. This is decided when the file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// No caching: the length of the content is unknown in advance, or the content grows.
    Never,
    /// No caching: the content stays the same until the source changes, but it can only be
    /// generated sequentially.
    SequentialOnly,
    /// Caching until the file is closed.
    WhileOpen,
    /// Caching until the source changes.
    UntilChanged,
}

/// The result of opening a file or directory: its handle, and how the kernel should treat it.
///
/// All facts are determined when the handle is created. A later call could fail because the source
/// has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedHandle {
    /// The handle, to be released with [`Requests::release`](crate::Requests::release).
    pub handle: Handle,
    /// How the kernel may cache the content.
    pub caching: Caching,
    /// Whether the server cancels reads of this file when the thread that reads has closed the file
    /// or ended.
    pub is_cancelled_on_close: bool,
}

/// The open file or directory to which a handle refers.
pub(crate) struct OpenInode {
    /// Inode number of the opened file or directory.
    pub(crate) ino: u64,
    /// The state, when the handle was opened, of the file that contains the inode.
    pub(crate) file: Arc<FileState>,
    pub(crate) content: HandleContent,
    reserved_memory: MemoryReservation,
    _pin: Option<DocumentPin>,
}

impl OpenInode {
    /// Creates an open file that shows a document. `pin` binds its inode to the document.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if all open files together need too much memory.
    pub(crate) fn file(
        ino: u64,
        (document, pin): (OpenDocument, Option<DocumentPin>),
    ) -> Result<Self> {
        let file = Arc::clone(&document.file);
        Self::new(ino, file, HandleContent::File(document), pin)
    }

    /// Creates an open directory of the state `file`.
    ///
    /// # Errors
    /// Fails as [`file`](Self::file) does.
    pub(crate) fn directory(ino: u64, file: Arc<FileState>) -> Result<Self> {
        Self::new(ino, file, HandleContent::Directory(Mutex::default()), None)
    }

    fn new(
        ino: u64,
        file: Arc<FileState>,
        content: HandleContent,
        pin: Option<DocumentPin>,
    ) -> Result<Self> {
        let held = file
            .engine
            .reserve_memory(limits::OPEN_HANDLE + content.own_bytes())?;
        Ok(OpenInode {
            ino,
            file,
            content,
            reserved_memory: held,
            _pin: pin,
        })
    }

    /// Accounts for the memory that the last read or listing has left in the handle. If all open
    /// files together exceed the limit, frees this memory, and the next read or listing starts from
    /// the beginning.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if the memory was freed.
    pub(crate) fn account_memory(&self) -> Result<()> {
        let counted = self.resize_held_memory();
        if counted.is_err() {
            self.content.free_memory();
            // The handle now needs only its initial memory.
            let _ = self.resize_held_memory();
        }
        counted
    }

    fn resize_held_memory(&self) -> Result<()> {
        let bytes = self.content.own_bytes();
        self.reserved_memory
            .resize(limits::OPEN_HANDLE.saturating_add(bytes))
    }
}

pub(crate) enum HandleContent {
    File(OpenDocument),
    Directory(Mutex<ListingState>),
}

impl HandleContent {
    /// Returns the memory that belongs to this handle alone, in bytes.
    fn own_bytes(&self) -> u64 {
        match self {
            HandleContent::File(document) => document.view.own_bytes(),
            HandleContent::Directory(listing) => lock(listing).own_bytes(),
        }
    }

    /// Frees the memory of state that a later read or listing can restore.
    fn free_memory(&self) {
        match self {
            HandleContent::File(document) => document.view.forget(),
            HandleContent::Directory(listing) => lock(listing).free_memory(),
        }
    }
}

/// An open file or directory, as an entry of [`Handles`].
pub(crate) trait HandleTarget {
    /// Returns whether reads of this file are cancelled when the thread that reads has closed the
    /// file or ended.
    fn is_cancelled_on_close(&self) -> bool;

    /// Returns whether the data file has changed since this file or directory was opened, so that
    /// requests return `ESTALE`.
    fn has_ended(&self) -> bool;
}

impl HandleTarget for OpenInode {
    fn is_cancelled_on_close(&self) -> bool {
        match &self.content {
            HandleContent::File(document) => document.view.stops_on_cancel(),
            HandleContent::Directory(_) => false,
        }
    }

    fn has_ended(&self) -> bool {
        self.file.has_ended()
    }
}

/// The open handles of the tree of one file, or of a directory of files.
pub(crate) struct Handles<O> {
    /// Open files and directories by handle. `None` if the data file has changed since the handle
    /// was opened.
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

impl<O: HandleTarget> Handles<O> {
    /// Returns a handle that was never used before.
    pub(crate) fn new_handle(&self) -> Handle {
        Handle(self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    /// Binds `handle` to `open`, unless the handle is already bound.
    ///
    /// # Errors
    /// `Io` (`EMFILE`) if too many handles are open; `ESTALE` if the file of `open` has changed.
    pub(crate) fn insert(&self, handle: Handle, open: O, caching: Caching) -> Result<OpenedHandle> {
        let is_given_up = open.is_cancelled_on_close();
        let mut others = lock(&self.open);
        refuse_ended(&open)?;
        if others.len() >= limits::OPEN_HANDLES {
            return Err(refusal_error(Errno::EMFILE, "number of open files"));
        }
        let place = others.entry(handle.0);
        place.or_insert_with(|| Some(Arc::new(open)));
        Ok(OpenedHandle {
            handle,
            caching,
            is_cancelled_on_close: is_given_up,
        })
    }

    /// Returns whether the handle is open, even if its file has changed since.
    pub(crate) fn contains(&self, handle: Handle) -> bool {
        lock(&self.open).contains_key(&handle.0)
    }

    /// Returns the number of open handles.
    pub(crate) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Binds the open handle `handle` to the file or directory `open`, in place of the previous
    /// one.
    ///
    /// # Errors
    /// `ESTALE` if the state of `open` has ended.
    pub(crate) fn replace(&self, handle: Handle, open: O) -> Result<Arc<O>> {
        let open = Arc::new(open);
        let mut others = lock(&self.open);
        refuse_ended(&*open)?;
        let before = match others.get_mut(&handle.0) {
            Some(place) => place.replace(Arc::clone(&open)),
            None => None,
        };
        drop(others);
        drop(before);
        Ok(open)
    }

    /// Returns the open file or directory to which `handle` refers.
    ///
    /// # Errors
    /// `ESTALE` if its state has ended.
    pub(crate) fn get(&self, handle: Handle) -> Result<Arc<O>> {
        let open = lock(&self.open).get(&handle.0).cloned();
        let open = open.ok_or_else(|| refusal_error(Errno::EBADF, "no such handle"))?;
        open.ok_or_else(stale_error)
    }

    /// Drops the open files and directories of a file that has changed. Their handles stay open,
    /// and requests with them return `ESTALE`.
    pub(crate) fn mark_all_stale(&self) {
        let mut open = lock(&self.open);
        let gone: Vec<_> = open.values_mut().filter_map(Option::take).collect();
        drop(open);
        drop(gone);
    }

    /// Closes `handle` and returns its file or directory. The caller drops this value without the
    /// lock, because that may take time.
    pub(crate) fn remove(&self, handle: Handle) -> Option<Arc<O>> {
        let mut open = lock(&self.open);
        let removed = open.remove(&handle.0);
        if open.len() < open.capacity() / 8 {
            open.shrink_to_fit();
        }
        removed.flatten()
    }
}

fn refuse_ended(open: &impl HandleTarget) -> Result<()> {
    if open.has_ended() {
        return Err(stale_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

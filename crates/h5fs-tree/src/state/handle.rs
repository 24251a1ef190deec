//! Open files and directories.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use nix::errno::Errno;

use crate::errno::{refusal_error, stale_error};
use crate::limits;

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

/// An open file or directory, as an entry of [`Handles`].
pub(crate) trait HandleTarget {
    /// Returns whether reads of this file are cancelled when the thread that reads has closed the
    /// file or ended.
    fn is_cancelled_on_close(&self) -> bool;

    /// Returns whether the data file has changed since this file or directory was opened, so that
    /// requests return `ESTALE`.
    fn has_ended(&self) -> bool;
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

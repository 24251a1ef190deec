//! The open files and directories of one data file, to which handles refer.

use std::sync::{Arc, Mutex};

use h5fs_reader::array::MemoryReservation;
use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;

use crate::data_files::file_state::FileState;
use crate::data_files::pins::{DocumentPin, OpenDocument};
use crate::limits;
use crate::state::handle::HandleTarget;
use crate::state::listing::ListingState;

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

#[cfg(test)]
mod tests;

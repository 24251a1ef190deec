//! The data files of a directory as the source of a joined file. This source has no bytes of its
//! own; it only reports changes of the files.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::cancel::{CancelToken, WantedCheck};
use h5fs_reader::source::Source;
use h5fs_reader::source::attributes::FileAttributes;
use h5fs_reader::source::directory::Directory;
use h5fs_reader::source::identity::Identity;
use h5fs_reader::source::open::{OpenSource, OpenedState, SharedState};

use crate::archive::joined::watcher::DirectoryWatcher;

/// The files of one listing, as the open source of a joined file.
pub(super) struct OpenJoinedSource {
    pub(super) root: Arc<dyn Directory>,
    pub(super) state: Arc<JoinedSourceState>,
    pub(super) watcher: Arc<DirectoryWatcher>,
    pub(super) allow_other: bool,
}

/// A state of a joined file's source: one hash for the states of all its data files.
#[derive(Debug)]
pub(super) struct JoinedSourceState(pub(super) Identity);

impl OpenedState for JoinedSourceState {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn has_no_pending_write(&self) -> bool {
        true
    }

    fn has_ended(&self) -> bool {
        false
    }
}

impl fmt::Debug for OpenJoinedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenFiles({:?})", self.root)
    }
}

impl Source for OpenJoinedSource {
    fn length(&self) -> u64 {
        0
    }

    fn is_remote(&self) -> bool {
        self.root.is_remote()
    }

    fn read_cancellable(&self, at: u64, _: &mut [u8], _: &WantedCheck<'_>) -> Result<()> {
        Err(Error::corrupt(
            "joined: a joined file has no bytes of its own",
            at,
        ))
    }
}

impl OpenSource for OpenJoinedSource {
    fn opened_state(&self) -> SharedState {
        Arc::<JoinedSourceState>::clone(&self.state)
    }

    fn is_changed(&self) -> bool {
        self.watcher.is_changed()
    }

    fn await_change_check(&self, cancel: &CancelToken) -> Result<()> {
        self.watcher.refresh(cancel)
    }

    fn attributes(&self) -> Result<FileAttributes> {
        let own = self.root.path_info(Path::new(""), self.allow_other);
        Ok(own?.attributes)
    }
}

//! What reading any object of a file needs beside its header.

use std::sync::Arc;

use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::metadata::Metadata;
use crate::hdf5::other_files::OtherFiles;
use crate::hdf5::reference::Pointers;
use crate::hdf5::shared::SharedMessages;

/// One file, as its objects see it.
#[derive(Debug)]
pub struct Context {
    /// The way to its metadata.
    pub metadata: Arc<Metadata>,
    /// Where shared messages are.
    pub shared: SharedMessages,
    /// Where variable-length data are.
    pub heap: GlobalHeap,
    /// The files that its datasets name.
    pub other_files: Arc<OtherFiles>,
}

impl Context {
    /// Follows the pointers in elements.
    pub fn pointers(&self) -> Pointers<'_> {
        Pointers {
            metadata: &self.metadata,
            heap: &self.heap,
        }
    }
}

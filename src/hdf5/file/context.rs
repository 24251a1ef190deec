//! The parts of a file that every object needs to be read, beside its header.

use std::sync::Arc;

use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::opening::Opening;
use crate::hdf5::file::other_files::OtherFiles;
use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::reference::Pointers;
use crate::hdf5::shared::SharedMessages;
use crate::memory::effort::Effort;

/// One file, as its objects see it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) metadata: Arc<Metadata>,
    /// The heaps with shared messages.
    pub(crate) shared: SharedMessages,
    /// The heap with variable-length data.
    pub(crate) heap: GlobalHeap,
    /// The files that its datasets name.
    pub(crate) other_files: Arc<OtherFiles>,
    /// The virtual datasets for whose sake it is read.
    pub(crate) opening: Opening,
}

impl Context {
    /// The same file for a request with this `effort`, for the sake of what is `opening`.
    pub(crate) fn within(&self, effort: &Effort, opening: Opening) -> Self {
        self.of(self.metadata.within(effort), opening)
    }

    /// The same file as it is from now on, for no request.
    pub(crate) fn refreshed(&self) -> Self {
        self.of(self.metadata.refreshed(), self.opening.clone())
    }

    fn of(&self, metadata: Arc<Metadata>, opening: Opening) -> Self {
        Context {
            shared: self.shared.within(&metadata),
            heap: self.heap.within(&metadata),
            metadata,
            other_files: Arc::clone(&self.other_files),
            opening,
        }
    }

    /// Follows the pointers in elements.
    pub(crate) fn pointers(&self) -> Pointers<'_> {
        Pointers {
            metadata: &self.metadata,
            heap: &self.heap,
        }
    }
}

//! The parts of a file that every object needs in addition to its header.

use std::sync::Arc;

use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::opening::OpeningBudget;
use crate::hdf5::file::other_files::OtherFiles;
use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::reference::ElementPointers;
use crate::hdf5::shared::SharedMessages;
use crate::memory::effort::RequestBudget;

/// The context for reading the objects of one file.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) metadata: Arc<Metadata>,
    /// The heaps of shared messages.
    pub(crate) shared: SharedMessages,
    /// The heap of variable-length data.
    pub(crate) heap: GlobalHeap,
    /// The files that this file's datasets reference.
    pub(crate) other_files: Arc<OtherFiles>,
    /// The budget of the virtual datasets for which the file is read.
    pub(crate) opening: OpeningBudget,
}

impl Context {
    /// Returns the same file for a request with this `effort`. `opening` is the budget of the
    /// virtual datasets for which the file is read.
    pub(crate) fn with_effort(&self, effort: &RequestBudget, opening: OpeningBudget) -> Self {
        self.with_metadata(self.metadata.with_effort(effort), opening)
    }

    /// Returns a view of the same file that uses no older cached blocks and belongs to no request.
    pub(crate) fn fresh_view(&self) -> Self {
        self.with_metadata(self.metadata.fresh_view(), self.opening.clone())
    }

    fn with_metadata(&self, metadata: Arc<Metadata>, opening: OpeningBudget) -> Self {
        Context {
            shared: self.shared.with_metadata(&metadata),
            heap: self.heap.with_metadata(&metadata),
            metadata,
            other_files: Arc::clone(&self.other_files),
            opening,
        }
    }

    /// Returns the resolver of pointers in elements.
    pub(crate) fn pointers(&self) -> ElementPointers<'_> {
        ElementPointers {
            metadata: &self.metadata,
            heap: &self.heap,
        }
    }
}

//! The parts of a file that every object needs in addition to its header.

use std::sync::Arc;

use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::opening::OpeningBudget;
use crate::hdf5::file::other_files::OtherFiles;
use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::reference::ElementPointers;
use crate::hdf5::shared::SharedMessages;
use crate::memory::request_budget::RequestBudget;

/// The context for reading the objects of one file.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) metadata: Arc<Metadata>,
    /// The resolver of shared messages.
    pub(crate) shared: SharedMessages,
    /// The global heap, which stores variable-length data.
    pub(crate) heap: GlobalHeap,
    /// The files that this file's datasets reference.
    pub(crate) other_files: Arc<OtherFiles>,
    /// The budget for reading the metadata of virtual datasets.
    pub(crate) opening: OpeningBudget,
}

impl Context {
    /// Returns a view of the same file for a request whose metadata reads are charged to `budget`.
    /// `opening` is the budget for reading the metadata of virtual datasets.
    pub(crate) fn with_budget(&self, budget: &RequestBudget, opening: OpeningBudget) -> Self {
        self.with_metadata(self.metadata.with_budget(budget), opening)
    }

    /// Returns a view of the same file that belongs to no request. If the file is growing, blocks
    /// that were cached before this call are not used.
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

    /// Returns the resolver of the pointers in stored elements: references and variable-length
    /// data.
    pub(crate) fn pointers(&self) -> ElementPointers<'_> {
        ElementPointers {
            metadata: &self.metadata,
            heap: &self.heap,
        }
    }
}

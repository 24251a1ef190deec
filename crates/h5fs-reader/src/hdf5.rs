//! HDF5 files. Each module implements one structure of the specification, under the specification's
//! name.
//!
//! Section numbers refer to the "HDF5 File Format Specification Version 3.0". Reading starts with
//! `superblock` → `object_header` → `message` → `group`, `dataset`, `attributes`. These use `heap`,
//! `btree_v1`, `btree_v2` and `index`. [`encode`] writes structures for computed files.
//!
//! # Arithmetic
//!
//! Operations on numbers from the file are checked, and an overflow is an error. The saturating
//! operations of [`Count`] are used only where the clamped result is also correct:
//!
//! - lengths of structures, because `file::metadata` rejects every length over its limit, with an
//!   error that names the structure
//! - counts that are compared with a limit
//! - positions in bytes or lists in memory, because a position after the end finds no entry
//! - differences of numbers whose order was checked
//! - weights, which are estimates

mod attributes;
mod btree_v1;
mod btree_v2;
mod dataset;
pub mod encode;
pub(crate) mod file;
mod group;
mod heap;
mod index;
mod message;
mod object;
mod object_header;
mod reference;
mod selection;
mod shared;
#[cfg(test)]
mod testing;
mod virtual_layout;

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Weak};

use crate::error::{Error, Result};
use crate::hdf5::attributes::Attributes;
use crate::hdf5::file::caches::Caches;
use crate::hdf5::file::context::Context;
use crate::hdf5::file::driver_info::AssembledFile;
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::{Address, AddressEncoding};
use crate::hdf5::file::opening::OpeningBudget;
use crate::hdf5::file::other_files::{OtherFileOpener, OtherFiles, VirtualSourceFile};
use crate::hdf5::file::superblock::{Superblock, WriterState};
use crate::hdf5::file::{cache_image, driver_info, superblock};
use crate::hdf5::heap::global::GlobalHeap;
use crate::hdf5::message::{file_space_info, kind};
use crate::hdf5::object::Object;
use crate::hdf5::object_header::{FIRST_READ_BYTES, ObjectHeader};
use crate::hdf5::shared::SharedMessages;
use crate::limits;
use crate::memory::request_budget::RequestBudget;
use crate::memory::shared_lru::FileLru;
use crate::model::datatype::ReferenceKind;
use crate::model::region::Region;
use crate::model::{Attribute, Container, Link, LinkStream, Node, NodeId, NodeKind, Reference};
use crate::source::neighbours::Neighbours;
use crate::source::{SharedSource, Source, Urgency};
use crate::wire::{Count, Cursor};

/// An open HDF5 file.
#[derive(Debug)]
pub(crate) struct File {
    context: Context,
    root: NodeId,
    /// The error that is stored in the root group's node if the file is shorter than its superblock
    /// claims.
    truncation_error: Option<Error>,
    objects: Arc<FileLru<NodeId, Arc<Object>>>,
}

impl File {
    /// Opens the HDF5 file in `source`. Other files that it references are looked up in
    /// `neighbours`, and the `caches` are shared with other files. `force` also opens a file that a
    /// writer has not closed. A file that a writer appends to may grow while it is open, but parsed
    /// structures do not change. To see later structures, open the file again.
    ///
    /// # Errors
    /// Fails if the superblock, its extension or the root group is damaged or unsupported.
    pub(crate) fn open(
        source: SharedSource,
        neighbours: Arc<Neighbours>,
        caches: &Caches,
        force: bool,
    ) -> Result<Arc<Self>> {
        let opening = OpeningBudget::full_budget(&caches.description_lock);
        Self::open_with_budget(
            source,
            neighbours,
            caches,
            force,
            &RequestBudget::default(),
            &opening,
        )
    }

    /// Opens a file like [`open`](Self::open), for a request whose metadata reads are charged to
    /// `budget`. `opening` is the budget for reading the metadata of virtual datasets.
    fn open_with_budget(
        source: SharedSource,
        neighbours: Arc<Neighbours>,
        caches: &Caches,
        force: bool,
        budget: &RequestBudget,
        opening: &OpeningBudget,
    ) -> Result<Arc<Self>> {
        let at = superblock::find_signature(&*source)
            .ok_or_else(|| Error::corrupt("superblock: no HDF5 signature", None))?;
        // Reads again after a failure, because a writer may be changing the superblock at this
        // moment.
        let superblock =
            Superblock::read(&*source, at).or_else(|_| Superblock::read(&*source, at))?;
        let writer = superblock.writer();
        if writer == WriterState::NotSwmr && !force {
            return Err(open_for_writing_error());
        }
        let appended = match writer {
            WriterState::Swmr => Arc::clone(&source).growing_view(),
            _ => None,
        };
        let AssembledFile {
            source,
            original_header_start: far_headers,
        } = match appended {
            Some(source) => source.into(),
            None => assemble_file(source, &superblock, &neighbours, caches, budget)?,
        };
        let form = AddressEncoding {
            original_header_start: far_headers,
            ..superblock.address_encoding
        };
        let metadata = Arc::new(Metadata::new(source, form, caches.new_block_cache()));
        let shared = read_shared_messages(&metadata.with_budget(budget), &superblock)?;
        let cut_off = check_truncated(&superblock, &**metadata.source());
        let opener = FileOpener {
            caches: caches.clone(),
            force,
        };
        let root_header = form.relocate(superblock.root);
        metadata.prefetch([(root_header, FIRST_READ_BYTES)]);
        let root = root_header.try_into()?;
        let file = Arc::new_cyclic(|own: &Weak<File>| File {
            context: Context {
                heap: GlobalHeap::new(Arc::clone(&metadata), caches.new_heap_directory_cache()),
                shared: shared.with_metadata(&metadata),
                metadata,
                other_files: Arc::new(OtherFiles::new(
                    own.clone(),
                    neighbours,
                    Box::new(opener),
                    caches.new_other_file_cache(),
                    OpeningBudget::full_budget(&caches.description_lock),
                )),
                opening: OpeningBudget::full_budget(&caches.description_lock),
            },
            root,
            truncation_error: cut_off,
            objects: Arc::new(caches.new_object_cache()),
        });
        let root = file.with_budget(budget, opening).read_object(root)?;
        match root.node.kind {
            NodeKind::Group => Ok(file),
            _ => Err(Error::corrupt(
                "root group: it is not a group",
                superblock.root,
            )),
        }
    }

    /// Returns a view of the same file for a request whose metadata reads are charged to `budget`.
    /// `opening` is the budget for reading the metadata of virtual datasets.
    fn with_budget(&self, budget: &RequestBudget, opening: &OpeningBudget) -> Arc<Self> {
        Arc::new(File {
            context: self.context.with_budget(budget, opening.clone()),
            root: self.root,
            truncation_error: self.truncation_error.clone(),
            objects: Arc::clone(&self.objects),
        })
    }

    fn read_object(&self, id: NodeId) -> Result<Arc<Object>> {
        if let Some(object) = self.objects.get(id) {
            return Ok(object);
        }
        let cut_off = self.truncation_error.clone().filter(|_| id == self.root);
        let object = Arc::new(Object::read(&self.context, id.into(), cut_off)?);
        let weight = object.weight();
        let Context {
            metadata, opening, ..
        } = &self.context;
        opening.charge_work(weight)?;
        // An object that is incomplete because the request's budget was spent is not cached.
        if !object.node.has_transient_error() && !metadata.budget().is_exhausted() {
            self.objects.put(id, Arc::clone(&object), weight);
        }
        Ok(object)
    }

    /// Calls `then` with the links of the group whose object header is at `id`.
    fn with_group<T>(
        &self,
        id: NodeId,
        then: impl FnOnce(&group::GroupLinks) -> Result<T>,
    ) -> Result<T> {
        let object = self.read_object(id)?;
        match &object.group {
            Some(group) => then(group),
            None => Err(Error::corrupt("object header: not a group", id.number())),
        }
    }

    fn with_attributes<T>(
        &self,
        id: NodeId,
        then: impl FnOnce(Attributes<'_>) -> Result<T>,
    ) -> Result<T> {
        let Context {
            metadata, shared, ..
        } = &self.context;
        let header = ObjectHeader::read(metadata, id.into())?;
        then(Attributes::open(metadata, shared, &header)?)
    }
}

/// An opener for the other files that one file references. It uses the caches and options of that
/// file.
#[derive(Debug)]
struct FileOpener {
    caches: Caches,
    force: bool,
}

impl OtherFileOpener for FileOpener {
    fn open(
        &self,
        source: SharedSource,
        neighbours: Arc<Neighbours>,
        budget: &RequestBudget,
        opening: &OpeningBudget,
    ) -> Result<Arc<dyn VirtualSourceFile>> {
        let (caches, force) = (&self.caches, self.force);
        Ok(File::open_with_budget(
            source, neighbours, caches, force, budget, opening,
        )?)
    }
}

impl VirtualSourceFile for File {
    fn container_for_request(
        &self,
        budget: &RequestBudget,
        opening: &OpeningBudget,
    ) -> Arc<dyn Container> {
        self.with_budget(budget, opening)
    }
}

impl Container for File {
    fn for_request(self: Arc<Self>, budget: &RequestBudget) -> Arc<dyn Container> {
        self.with_budget(budget, &self.context.opening)
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn is_remote(&self) -> bool {
        self.context.metadata.is_remote()
    }

    fn prefetch_nodes(&self, nodes: &[NodeId]) {
        let headers = nodes.iter().map(|&node| (node.into(), FIRST_READ_BYTES));
        self.context.metadata.prefetch(headers);
    }

    /// Asks a remote source for the metadata page that contains the header of `group`. If the file
    /// stores metadata in pages, most structures below the group are in the same page.
    fn prefetch_subtree(&self, group: NodeId) {
        let source = self.context.metadata.source();
        let at = Address::from(group).offset();
        let Some((base, length)) = source.metadata_pages().filter(|(base, _)| *base <= at) else {
            return;
        };
        let past = at.minus_or_zero(base).checked_rem(length).unwrap_or(0);
        let page = (at.minus_or_zero(past), length.min(limits::HINTED_METADATA));
        source.prefetch(&[page], Urgency::Expected);
    }

    fn prefetch_variable_length(&self, elements: &[u8], size: usize) {
        if self.is_remote() {
            let pointers = self.context.pointers();
            pointers.prefetch_collections(elements.chunks_exact(size.max(1)));
        }
    }

    fn drop_caches(&self) {
        self.objects.clear();
        self.context.metadata.clear_cache();
        self.context.heap.clear_text_ends();
    }

    fn is_growing(&self) -> bool {
        self.context.metadata.source().is_growing()
    }

    fn fresh_view(self: Arc<Self>) -> Option<Arc<dyn Container>> {
        self.is_growing().then(|| {
            let file: Arc<dyn Container> = Arc::new(File {
                context: self.context.fresh_view(),
                root: self.root,
                truncation_error: self.truncation_error.clone(),
                objects: Arc::new(self.objects.for_another_file()),
            });
            file
        })
    }

    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.read_object(id).map(|object| Arc::clone(&object.node))
    }

    fn is_likely_group(&self, id: NodeId) -> bool {
        let kinds = object_header::first_message_types(&self.context.metadata, id.into());
        kinds
            .iter()
            .any(|kind| group::GROUP_MESSAGE_TYPES.contains(kind))
    }

    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        self.with_group(group, |group| group.link(&self.context.metadata, name))
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        self.with_group(group, |group| group.links(&self.context.metadata))
    }

    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        self.attributes_from(id, &mut 0, visit)
    }

    fn attributes_from(
        &self,
        id: NodeId,
        next: &mut u64,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        self.with_attributes(id, |attributes| attributes.visit(next, visit))
    }

    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        self.with_attributes(id, |attributes| attributes.find(name))
    }

    fn variable_length_bytes(&self, element: &[u8], base_size: u64) -> Result<Option<u64>> {
        self.context
            .pointers()
            .variable_length_bytes(element, base_size)
    }

    fn read_variable_length(
        &self,
        element: &[u8],
        base_size: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        self.context
            .pointers()
            .read_variable_length(element, base_size, part)
    }

    fn variable_length_offset(&self, element: &[u8]) -> u64 {
        self.context.pointers().variable_length_offset(element)
    }

    fn text_length(&self, element: &[u8]) -> Result<u64> {
        self.context.pointers().text_length(element)
    }

    fn reference(&self, kind: ReferenceKind, element: &[u8]) -> Result<Reference> {
        self.context.pointers().reference(kind, element)
    }

    fn region(&self, element: &[u8]) -> Result<Option<Region>> {
        self.context.pointers().region(element)
    }

    fn encoded_region(&self, element: &[u8]) -> Result<Option<(NodeId, Vec<u8>)>> {
        self.context.pointers().encoded_region(element)
    }
}

/// Returns the error for a file that is open for writing. Its structures may contradict each other.
fn open_for_writing_error() -> Error {
    Error::Usage(
        "the file is marked as open for writing; if no program writes it, 'h5clear -s FILE' clears \
         the mark; '--force' reads the file anyway"
            .to_owned(),
    )
}

/// Returns the complete file that starts with `first`: all members of a file of the family or multi
/// driver, or `first` with its metadata cache image applied. A file with neither is returned
/// unchanged.
fn assemble_file(
    first: SharedSource,
    superblock: &Superblock,
    neighbours: &Neighbours,
    caches: &Caches,
    budget: &RequestBudget,
) -> Result<AssembledFile> {
    let metadata = Metadata::new(
        Arc::clone(&first),
        superblock.address_encoding,
        caches.new_block_cache(),
    );
    let metadata = metadata.with_budget(budget);
    if let Some(at) = superblock.driver_information {
        return driver_info::open_members_from_block(&metadata, at, neighbours);
    }
    let Some(at) = superblock.extension else {
        return find_unmarked_family(first, superblock, neighbours, budget)
            .map(AssembledFile::from);
    };
    if at.offset() >= first.length() {
        let what = "superblock: its extension is past the end of the file, or in another file of \
                    the multi driver";
        return Err(Error::corrupt(what, at));
    }
    let header = ObjectHeader::read(&metadata, at)?;
    announce_pages(&metadata, &header);
    if let Some(message) = header.find(kind::DRIVER_INFO) {
        return driver_info::open_members_from_message(&metadata, &message, neighbours);
    }
    match header.find(kind::CACHE_IMAGE) {
        Some(message) => {
            cache_image::apply_cache_image(&metadata, &message, &caches.image_structures)
                .map(AssembledFile::from)
        }
        None => Ok(first.into()),
    }
}

/// Informs the source about the metadata pages that the superblock extension declares.
fn announce_pages(metadata: &Metadata, extension: &ObjectHeader) {
    if let Some(message) = extension.find(kind::FILE_SPACE_INFO) {
        let mut cursor = Cursor::new(message.data, message.at, "file space info message");
        if let Ok(Some(length)) = file_space_info::page_length(metadata, &mut cursor) {
            metadata
                .source()
                .set_metadata_pages(metadata.base(), length);
        }
    }
}

/// Returns an error if the file is shorter than its superblock claims, unless the superblock marks
/// the file as open for writing.
fn check_truncated(superblock: &Superblock, source: &dyn Source) -> Option<Error> {
    let (length, end) = (source.length(), superblock.end_of_file);
    let is_short = length < end && superblock.writer() == WriterState::None;
    let what = || {
        format!(
            "the file is truncated: it has {length} of the {end} bytes that its superblock \
             specifies"
        )
    };
    is_short.then(|| Error::corrupt(what(), None))
}

/// Returns the file family whose first member is `first`, for a `first` that is shorter than its
/// superblock claims. Returns `first` itself if it is not too short, or if no such family exists.
///
/// # Errors
/// [`Error::cancelled`] once the request of `budget` is cancelled.
fn find_unmarked_family(
    first: SharedSource,
    superblock: &Superblock,
    neighbours: &Neighbours,
    budget: &RequestBudget,
) -> Result<SharedSource> {
    let end = superblock.end_of_file;
    if first.length() >= end {
        return Ok(first);
    }
    let cancel = budget.cancel_token();
    let is_wanted = || !cancel.is_cancelled();
    match driver_info::open_unmarked_family(&first, end, neighbours, &is_wanted) {
        Ok(Some(family)) => Ok(family),
        Err(error) if error.is_cancelled() => Err(error),
        Ok(None) | Err(_) => Ok(first),
    }
}

/// Returns the resolver of shared messages, with the shared message table of the superblock
/// extension if there is one.
fn read_shared_messages(
    metadata: &Arc<Metadata>,
    superblock: &Superblock,
) -> Result<SharedMessages> {
    let none = || SharedMessages::without_table(Arc::clone(metadata));
    let Some(at) = superblock.extension else {
        return Ok(none());
    };
    let header = ObjectHeader::read(metadata, at)?;
    match header.find(kind::SHARED_MESSAGE_TABLE) {
        Some(message) => SharedMessages::with_table(Arc::clone(metadata), &message),
        None => Ok(none()),
    }
}

//! Collects what `kerchunk.json` contains: the documents of a Zarr store of version 2, and where its
//! chunks are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::array::{Fill, Storage};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::{Array, Container, Node, NodeId};
use h5fs_reader::source::SharedSource;
use h5fs_reader::wire::{to_u64, to_usize};
use h5fs_view::text_files::counted_text::TextUnits;
use h5fs_view::view::View;
use h5fs_view::zarr::array::{StoreNode, ZarrArray};
use h5fs_view::zarr::attributes::{ZarrAttributes, ZarrVersion};
use h5fs_view::zarr::chunk::{ChunkElements, ChunkFile, TextChunkFile};
use h5fs_view::zarr::chunk_locations::ChunkLocations;
use h5fs_view::zarr::grid::ChunkGridKind;
use h5fs_view::zarr::references::{ReferencePlan, child_path};
use h5fs_view::zarr::store_entry::shown_field_names;
use h5fs_view::zarr::{member_chunks, v2_document};

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::limits;
use crate::name;
use crate::nodes::node::TargetInode;
use crate::nodes::object;
use crate::state::inode::TreeNumber;
use crate::views::kerchunk::urls::{member_url, source_url};
use crate::views::store_object::{
    array_attributes, dimension_names, group_attributes, store_name, with_fill_context,
};
use crate::views::trees;
use crate::views::view_group::ViewGroup;

/// Name of the Zarr store with the same names and objects.
const STORE: &[u8] = b"stored.zarr";

/// Collects the documents of the store and the locations of its chunks.
pub(super) struct ReferenceCollector<'a> {
    mount: &'a Mount,
    file: &'a Arc<FileState>,
    tree: TreeNumber,
    variables: Arc<dyn Container>,
    own: &'a dyn Fn(&SharedSource) -> bool,
    plan: ReferencePlan,
    /// The number of each member's file in the plan.
    members: HashMap<Vec<u8>, usize>,
    /// Number of links and record fields that may still be read before the limit is exceeded.
    remaining_reads: usize,
}

/// The documents of an object, each with its name.
type Documents = Vec<(&'static [u8], Vec<u8>)>;

/// The documents of an array, and where its chunks are.
type LocatedArray = (Documents, ChunkLocations);

/// The documents of an array and of its fields, each with its path, and the content of their
/// chunks.
type ArrayParts = Vec<(Vec<u8>, Documents, Option<(usize, Vec<u8>)>)>;

impl ReferenceCollector<'_> {
    /// Collects all objects of the file.
    ///
    /// # Errors
    /// `Limit` if the file has too many objects. Fails if an object cannot be read now.
    pub(super) fn collect(target: &TargetInode<'_>) -> Result<ReferencePlan> {
        let file = target.file;
        let tree = trees::tree_named(STORE).ok_or(Error::NotFound)?;
        let own = |source: &SharedSource| file.container.is_own_source(source);
        let mut collector = ReferenceCollector {
            mount: target.mount,
            file,
            tree: target.mount.other_files.tree_number(file, tree.number)?,
            variables: file.padded_variables(),
            own: &own,
            plan: ReferencePlan::default(),
            members: HashMap::new(),
            remaining_reads: limits::KERCHUNK_OBJECTS,
        };
        if file.container.members_csv().is_none() {
            collector.plan.add_file(&source_url(file)?)?;
        }
        collector.add_group(file.container.root(), b"", limits::KERCHUNK_DEPTH)?;
        Ok(collector.plan)
    }

    /// Adds the group at `path` and the objects below it.
    fn add_group(&mut self, group: NodeId, path: &[u8], depth: usize) -> Result<()> {
        let most = to_u64(limits::KERCHUNK_DEPTH);
        let too_deep = || Error::limit("depth of nested groups in kerchunk.json", most);
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        let node = self.variables.node(group)?;
        let mut absent = HashSet::new();
        let directory = ViewGroup::new(self.mount, self.file, self.tree, group)?;
        let mut links = ignore_permanent(self.file.container.links(group))?;
        while let Some(links) = &mut links
            && let Some(link) = ignore_permanent(links.next())?.flatten()
        {
            self.count_read()?;
            let own_name = link.name.clone();
            let found = ignore_permanent(directory.link_entry_in_store(link))?.flatten();
            let Some((entry, object)) = found else {
                continue;
            };
            let path = child_path(path, &entry.inode.name);
            let is_text = str::from_utf8(&path).is_ok();
            let object = ignore_permanent(self.variables.node(object.id))?;
            let is_added = match object.filter(|_| is_text) {
                Some(array) if array.array().is_some() => self.add_array(&array, &path)?,
                Some(group) => {
                    self.add_group(group.id, &path, depth)?;
                    true
                }
                None => false,
            };
            if !is_added {
                absent.insert(own_name);
            }
        }
        let is_absent = |name: &[u8]| absent.contains(name);
        let version = ZarrVersion::V2 {
            is_fill_value: false,
        };
        let attributes = group_attributes(self.file, &node, &|_, _| {}, &is_absent, version)?;
        self.add_documents(path, group_documents(attributes))
    }

    fn add_documents(&mut self, path: &[u8], documents: Documents) -> Result<()> {
        for (name, document) in documents {
            self.plan.add_document(path, name, document)?;
        }
        Ok(())
    }

    /// Adds the array `node` at `path`. Returns false if neither references nor elements in the
    /// document can represent the array.
    fn add_array(&mut self, node: &Node, path: &[u8]) -> Result<bool> {
        let array = node.array().ok_or(Error::NotFound)?;
        if let Err(error) = &array.storage {
            return ignore_permanent(Err(error.clone())).map(|_: Option<()>| false);
        }
        let is_small = array.byte_length()? <= limits::KERCHUNK_INLINE;
        let located = match &array.storage {
            // Readers would read a small part from each member.
            Ok(Storage::Virtual(_)) if is_small => Ok(None),
            Ok(Storage::Virtual(_)) => self.located_in_members(node, array),
            _ => self.located(node, array),
        };
        if let Some((documents, chunks)) = ignore_permanent(located)?.flatten() {
            self.add_documents(path, documents)?;
            self.plan.add_chunks(path, chunks);
            return Ok(true);
        }
        let is_empty =
            matches!(array.storage, Ok(Storage::Empty | Storage::Fill)) || has_no_elements(array);
        if !is_empty && !is_small {
            return Ok(false);
        }
        // One chunk with a whole array that is not stored could be too large for a reader.
        let grid = if is_small && !has_no_elements(array) {
            ChunkGridKind::Whole
        } else {
            ChunkGridKind::Decoded
        };
        let Some(shown) = StoreNode::from_array(array, grid) else {
            return Ok(false);
        };
        let mut parts = ArrayParts::new();
        let read = self.collect_parts(node, shown, (path, true), &mut parts);
        if ignore_permanent(read)?.is_none() {
            return Ok(false);
        }
        for (path, documents, content) in parts {
            self.add_documents(&path, documents)?;
            if let Some((rank, content)) = content {
                self.plan.add_chunk(&path, rank, &content)?;
            }
        }
        Ok(true)
    }

    /// Returns the document of `array` and where its chunks are, if references can locate them.
    fn located(&self, node: &Node, array: &Arc<Array>) -> Result<Option<LocatedArray>> {
        let shown = StoreNode::from_array(array, ChunkGridKind::Referenced);
        let Some(StoreNode::Array(shown)) = shown.filter(|_| !has_no_elements(array)) else {
            return Ok(None);
        };
        let most = self.plan.max_further_chunks();
        let chunks = ChunkLocations::find(&shown, self.own, most, &self.file.budget)?;
        self.with_documents(node, chunks.map(|chunks| (shown, chunks)))
    }

    /// Returns the document of the joined array `array` and where its chunks are in the files of
    /// the members, if references can locate them.
    fn located_in_members(
        &mut self,
        node: &Node,
        array: &Arc<Array>,
    ) -> Result<Option<LocatedArray>> {
        let (file, members) = (self.file, &mut self.members);
        let most = self.plan.max_further_member_chunks();
        let plan = &mut self.plan;
        let mut number = |path: &[u8]| {
            if let Some(number) = members.get(path) {
                return Ok(Some(*number));
            }
            let Some(url) = member_url(file, path)? else {
                return Ok(None);
            };
            let number = plan.add_file(&url)?;
            members.insert(path.to_vec(), number);
            Ok(Some(number))
        };
        let found = member_chunks::find(array, &mut number, most, &file.budget)?;
        self.with_documents(node, found)
    }

    /// Adds the documents of an array to its chunks. Returns `None` if readers would take elements
    /// for missing that are not.
    fn with_documents(
        &self,
        node: &Node,
        found: Option<(ZarrArray, ChunkLocations)>,
    ) -> Result<Option<LocatedArray>> {
        let Some((shown, chunks)) = found else {
            return Ok(None);
        };
        let missing = self.missing_value(node, &shown.array)?;
        if !chunks.is_complete(&shown) && !is_fill_value(missing.as_deref(), &shown.array) {
            return Ok(None);
        }
        let shown = StoreNode::Array(shown);
        let documents = self.documents(node, &shown, true, missing.as_deref())?;
        Ok(Some((documents, chunks)))
    }

    /// Returns the attribute `_FillValue` of an array, if it has the type of an element. xarray
    /// takes elements with this value for missing.
    fn missing_value(&self, node: &Node, array: &Array) -> Result<Option<Arc<[u8]>>> {
        let attribute = self.file.container.attribute(node.id, b"_FillValue")?;
        let content = attribute.and_then(|attribute| attribute.content.ok());
        let size = to_usize(array.datatype.size.into())?;
        let is_element = |content: &AttributeContent| {
            content.datatype == array.datatype && content.elements.len() == size
        };
        Ok(content.filter(is_element).map(|content| content.elements))
    }

    /// Returns the documents of an array, or of a field of an array. `is_whole` is false for a
    /// field. `missing` is the value of missing elements.
    fn documents(
        &self,
        node: &Node,
        shown: &StoreNode,
        is_whole: bool,
        missing: Option<&[u8]>,
    ) -> Result<Documents> {
        let file = self.file;
        let version = ZarrVersion::V2 {
            is_fill_value: missing.is_some(),
        };
        let mut attributes = array_attributes(file, node, shown, is_whole, version)?;
        let StoreNode::Array(shown) = shown else {
            return Ok(group_documents(attributes));
        };
        let names = dimension_names(file, node, shown)?;
        let names = v2_document::dimensions_attribute(&names);
        attributes.add_attribute(v2_document::DIMENSIONS_ATTRIBUTE, &names);
        let document = with_fill_context(file, |context| {
            v2_document::array_document(shown, missing, context)
        })?;
        Ok(vec![
            (v2_document::ARRAY_DOCUMENT, document),
            (v2_document::ATTRIBUTES_DOCUMENT, attributes.finish()),
        ])
    }

    /// Collects the documents and the elements of `shown`, and of its fields if it has a compound
    /// type. `is_whole` is false for a field.
    fn collect_parts(
        &mut self,
        node: &Node,
        shown: StoreNode,
        (path, is_whole): (&[u8], bool),
        parts: &mut ArrayParts,
    ) -> Result<()> {
        let missing = match &shown {
            StoreNode::Array(shown) if is_whole => self.missing_value(node, &shown.array)?,
            _ => None,
        };
        let documents = self.documents(node, &shown, is_whole, missing.as_deref())?;
        match shown {
            StoreNode::Array(shown) => {
                if is_without_chunks(&shown) && !is_fill_value(missing.as_deref(), &shown.array) {
                    return Err(Error::unsupported("a fill value that is not missing", None));
                }
                let content = match shown.grid {
                    ChunkGridKind::Whole => {
                        Some((shown.dims.len(), self.read_elements(node, shown)?))
                    }
                    _ => None,
                };
                parts.push((path.to_vec(), documents, content));
            }
            StoreNode::Fields(record) => {
                parts.push((path.to_vec(), documents, None));
                for name in shown_field_names(&record) {
                    self.count_read()?;
                    let path = child_path(path, &store_name(&name::escape(name, false)));
                    let field = record.field(name).ok_or(Error::NotFound)?;
                    self.collect_parts(node, field, (&path, false), parts)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the elements of an array with a single chunk.
    ///
    /// # Errors
    /// `Limit` if the texts of the elements are too long. Fails if an element cannot be read.
    fn read_elements(&self, node: &Node, shown: ZarrArray) -> Result<Vec<u8>> {
        let file = self.file;
        object::verify_checksum(self.mount, file, node.id)?;
        let first = vec![0; shown.dims.len()];
        let stored = ChunkElements::new(&shown, &first, || file.reader(node.id, &shown.array))?;
        let cancel = file.budget.cancel_token();
        if let Some(length) = shown.chunk_bytes() {
            Error::check_limit(length, limits::KERCHUNK_INLINE, "bytes of elements")?;
            let chunk = ChunkFile::new(shown, stored).ok_or(Error::NotFound)?;
            return Ok(chunk.read_for(0, to_usize(length)?, &cancel)?.to_vec());
        }
        read_texts(
            &TextChunkFile::new(shown, stored, Arc::clone(&file.container))?,
            &cancel,
        )
    }

    /// Counts a link or a record field that is read. Fails if the limit is exceeded.
    fn count_read(&mut self) -> Result<()> {
        let most = to_u64(limits::KERCHUNK_OBJECTS);
        let too_many = || Error::limit("number of objects in kerchunk.json", most);
        self.remaining_reads = self.remaining_reads.checked_sub(1).ok_or_else(too_many)?;
        Ok(())
    }
}

/// Returns whether readers use the fill value for all elements of `shown`.
fn is_without_chunks(shown: &ZarrArray) -> bool {
    shown.grid != ChunkGridKind::Whole && !has_no_elements(&shown.array)
}

/// Returns whether the value of missing elements is the fill value of the array.
fn is_fill_value(missing: Option<&[u8]>, array: &Array) -> bool {
    missing.is_some_and(|missing| match &array.fill {
        Fill::Value(fill) => **fill == *missing,
        Fill::Zero => missing.iter().all(|&byte| byte == 0),
    })
}

/// Returns the documents of a group.
fn group_documents(attributes: ZarrAttributes) -> Documents {
    vec![
        (v2_document::GROUP_DOCUMENT, v2_document::group_document()),
        (v2_document::ATTRIBUTES_DOCUMENT, attributes.finish()),
    ]
}

/// Reads a chunk of texts.
fn read_texts(texts: &TextChunkFile, cancel: &CancelToken) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let most = to_usize(limits::KERCHUNK_INLINE)?;
    let mut next = 0;
    while next < texts.count() {
        next = texts.write(next..texts.count(), most, cancel, &mut out)?;
        Error::check_limit(to_u64(out.len()), limits::KERCHUNK_INLINE, "bytes of texts")?;
    }
    Ok(out)
}

fn has_no_elements(array: &Array) -> bool {
    array.shape.dims().contains(&0)
}

//! `.h5fs/kerchunk.json`: the file as a Zarr store, whose chunks are references into the source.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::{Array, AsdfExtras, Container, Node, NodeId};
use h5fs_reader::source::SharedSource;
use h5fs_reader::source::location::Location;
use h5fs_reader::wire::{to_u64, to_usize};
use h5fs_view::text_files::counted_text::TextUnits;
use h5fs_view::view::View;
use h5fs_view::zarr::array::{StoreNode, ZarrArray};
use h5fs_view::zarr::chunk::{ChunkElements, ChunkFile, TextChunkFile};
use h5fs_view::zarr::grid::ChunkGridKind;
use h5fs_view::zarr::references::{ChunkLocations, ReferencePlan, ReferencesText, child_path};
use h5fs_view::zarr::store_entry::shown_field_names;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::limits;
use crate::name;
use crate::nodes::node::{FsNode, ObjectDescription, TargetInode};
use crate::nodes::object;
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{REFERENCES, TreeNumber};
use crate::views::store_object::{array_document, group_document_without, store_name};
use crate::views::trees;
use crate::views::trees::view_tree::ViewSubject;
use crate::views::view_group::ViewGroup;

/// Name of the file in `.h5fs`.
pub(crate) const NAME: &[u8] = b"kerchunk.json";

/// Name of the Zarr store with the same names and objects.
const STORE: &[u8] = b"stored.zarr";

/// The file `.h5fs/kerchunk.json`.
pub(crate) struct KerchunkFile;

impl FsNode for KerchunkFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        target.entry_with_length(self.open(target).map(|view| view.length()))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let file = target.file;
        let url = source_url(file)?;
        let root = file.container.root();
        let plan = file.derived(root, NAME, ReferencePlan::weight, || {
            file.budget.cancel_token().require_heavy_slot()?;
            ReferenceCollector::collect(target)
        })?;
        let node = file.container.node(root)?;
        let subject = ViewSubject {
            file,
            node: &node,
            form_number: REFERENCES,
            selector: b"",
            path: b"/".to_vec(),
            verify: &|_| Ok(()),
            site: None,
        };
        subject.open_sequential_text(ReferencesText::new(plan, &url)?, "")
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(ObjectDescription::from_opening(self, target))
    }
}

/// Returns the URL of the source without secrets, or the name of a local source, which readers find
/// in their working directory.
fn source_url(file: &FileState) -> Result<String> {
    let path = &file.origin.path;
    let unnamed = || Error::unsupported("references to a source without a name in UTF-8", None);
    let location = Location::parse(OsString::from(path))?;
    let url = match location.path() {
        Some(path) => path.file_name().and_then(|name| name.to_str()),
        None => path.to_str(),
    };
    url.map(str::to_owned).ok_or_else(unnamed)
}

/// Collects the documents of the store and the locations of its chunks.
struct ReferenceCollector<'a> {
    mount: &'a Mount,
    file: &'a Arc<FileState>,
    tree: TreeNumber,
    variables: Arc<dyn Container>,
    own: &'a dyn Fn(&SharedSource) -> bool,
    plan: ReferencePlan,
    /// Number of links and record fields that may still be read before the limit is exceeded.
    remaining_reads: usize,
}

/// The documents of an array and of its fields, each with its path, and the content of their
/// chunks.
type ArrayParts = Vec<(Vec<u8>, Vec<u8>, Option<(usize, Vec<u8>)>)>;

impl ReferenceCollector<'_> {
    /// Collects all objects of the file.
    ///
    /// # Errors
    /// `Limit` if the file has too many objects. Fails if an object cannot be read now.
    fn collect(target: &TargetInode<'_>) -> Result<ReferencePlan> {
        let file = target.file;
        let tree = trees::tree_named(STORE).ok_or(Error::NotFound)?;
        // An ASDF file may have blocks in other files.
        let blocks = file.container.asdf_extras();
        let tree_text = blocks.and_then(AsdfExtras::tree_text);
        let own = |source: &SharedSource| {
            let is_of_tree = tree_text
                .as_ref()
                .is_some_and(|text| Arc::ptr_eq(&text.source, source));
            !source.is_composite() && (blocks.is_none() || is_of_tree)
        };
        let mut collector = ReferenceCollector {
            mount: target.mount,
            file,
            tree: target.mount.other_files.tree_number(file, tree.number)?,
            variables: file.padded_variables(),
            own: &own,
            plan: ReferencePlan::default(),
            remaining_reads: limits::KERCHUNK_OBJECTS,
        };
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
        let document = group_document_without(self.file, &node, &is_absent)?;
        self.plan.add_document(path, &document)
    }

    /// Adds the array `node` at `path`. Returns false if neither references nor elements in the
    /// document can represent the array.
    fn add_array(&mut self, node: &Node, path: &[u8]) -> Result<bool> {
        let array = node.array().ok_or(Error::NotFound)?;
        if let Err(error) = &array.storage {
            return ignore_permanent(Err(error.clone())).map(|_: Option<()>| false);
        }
        if let Some(StoreNode::Array(shown)) =
            StoreNode::from_array(array, ChunkGridKind::Referenced)
            && let Some((document, chunks)) = ignore_permanent(self.located(node, shown))?.flatten()
        {
            self.plan.add_document(path, &document)?;
            self.plan.add_chunks(path, chunks);
            return Ok(true);
        }
        let is_empty =
            matches!(array.storage, Ok(Storage::Empty | Storage::Fill)) || has_no_elements(array);
        let is_small = array.byte_length()? <= limits::KERCHUNK_INLINE;
        if !is_empty && !is_small {
            return Ok(false);
        }
        // One chunk with a whole array that is not stored could be too large for a reader.
        let grid = if is_empty {
            ChunkGridKind::Decoded
        } else {
            ChunkGridKind::Whole
        };
        let Some(shown) = StoreNode::from_array(array, grid) else {
            return Ok(false);
        };
        let mut parts = ArrayParts::new();
        let read = self.collect_parts(node, shown, (path, true), &mut parts);
        if ignore_permanent(read)?.is_none() {
            return Ok(false);
        }
        for (path, document, content) in parts {
            self.plan.add_document(&path, &document)?;
            if let Some((rank, content)) = content {
                self.plan.add_chunk(&path, rank, &content)?;
            }
        }
        Ok(true)
    }

    /// Returns the document of `shown` and where its chunks are, if references can locate them.
    fn located(&self, node: &Node, shown: ZarrArray) -> Result<Option<(Vec<u8>, ChunkLocations)>> {
        if has_no_elements(&shown.array) {
            return Ok(None);
        }
        let most = self.plan.max_further_chunks();
        let Some(chunks) = ChunkLocations::find(&shown, self.own, most, &self.file.budget)? else {
            return Ok(None);
        };
        let document = array_document(self.file, node, &StoreNode::Array(shown), true, None)?;
        Ok(Some((document, chunks)))
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
        let document = array_document(self.file, node, &shown, is_whole, None)?;
        match shown {
            StoreNode::Array(shown) => {
                let content = match shown.grid {
                    ChunkGridKind::Whole => {
                        Some((shown.dims.len(), self.read_elements(node, shown)?))
                    }
                    _ => None,
                };
                parts.push((path.to_vec(), document, content));
            }
            StoreNode::Fields(record) => {
                parts.push((path.to_vec(), document, None));
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

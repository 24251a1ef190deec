//! The metadata documents (`zarr.json`) of a Zarr store. A group's document also contains the
//! documents of all objects below it, so that a reader needs one file in place of many.

use std::collections::HashSet;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::text::JsonObject;
use h5fs_reader::model::{Container, Link, Node, NodeId};
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::zarr::array::StoreNode;
use h5fs_view::zarr::store_entry::{DOCUMENT, StoreEntry, shown_field_names};

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::limits;
use crate::name;
use crate::nodes::node::TargetInode;
use crate::state::inode::TreeNumber;
use crate::views::store_object::{
    StoreChunks, array_document, chunk_grid, find, group_document, store_name,
};
use crate::views::view_group::ViewGroup;

/// Number of bytes of a request's metadata budget for the documents of subgroups. The rest is
/// reserved for the group's own document.
const SUBGROUP_BUDGET: u64 = limits::REQUEST_METADATA / 4 * 3;

/// Returns the metadata document at `path` below the directory of `node`, a group or an array.
///
/// # Errors
/// `NotFound` if no document exists there; fails if an object for the document cannot be read now.
pub(crate) fn document(
    target: &TargetInode<'_>,
    node: &Node,
    path: &[u8],
    store: StoreChunks,
) -> Result<InMemoryContent> {
    let kind: &[u8] = match store {
        StoreChunks::Decoded => b"file.zarr:",
        StoreChunks::Stored => b"stored.zarr:",
    };
    let key = [kind, path].concat();
    let mut unkept = None;
    let kept = target.file.cached_text(node.id, &key, || {
        let (text, is_partial) = write_document(target, node, path, store)?;
        if is_partial {
            unkept = Some(InMemoryContent::new_of_current_state(text));
            // A document with a temporary error is not cached.
            return Err(Error::cancelled());
        }
        Ok(InMemoryContent::new(text))
    });
    unkept.map_or(kept, |text| text.open_copy(&target.file.engine))
}

/// Writes a metadata document. Returns its text, and whether it lacks objects that could not be
/// read because of a temporary error.
fn write_document(
    target: &TargetInode<'_>,
    node: &Node,
    path: &[u8],
    store: StoreChunks,
) -> Result<(Vec<u8>, bool)> {
    let file = target.file;
    let Some(array) = node.array() else {
        if path != DOCUMENT {
            return Err(Error::NotFound);
        }
        let members = ObjectDocuments::collect_documents(target, store, |members| {
            members.add_group(node.id, b"", limits::ZARR_CONSOLIDATED_DEPTH)
        })?;
        let tell = |link: &Link, error: &Error| {
            let found = target.directory().link_entry(link.clone());
            target
                .mount
                .record_error(file, found.ino, &found.inode, error);
        };
        let (members, is_partial) = members;
        return Ok((group_document(file, node, &tell, members)?, is_partial));
    };
    let StoreEntry::Document(shown) = find(file, (node, array), path, store)? else {
        return Err(Error::NotFound);
    };
    let (members, is_partial) = ObjectDocuments::collect_documents(target, store, |members| {
        members.add_field_documents(node, &shown, b"")
    })?;
    let text = array_document(file, node, &shown, path == DOCUMENT, members)?;
    Ok((text, is_partial))
}

/// The metadata documents of the objects below a group, by path. They become the consolidated
/// metadata in the document of the group.
struct ObjectDocuments<'a> {
    mount: &'a Mount,
    file: &'a Arc<FileState>,
    tree: TreeNumber,
    store: StoreChunks,
    variables: Arc<dyn Container>,
    documents: JsonObject,
    paths: HashSet<Vec<u8>>,
    /// Number of links and record fields that may still be read before the limit is exceeded.
    remaining_reads: usize,
}

impl ObjectDocuments<'_> {
    /// Returns the documents that `add` adds. Returns `None` if `add` fails, because Zarr readers
    /// would take an incomplete list for a complete one. Also returns whether the failure is
    /// temporary.
    ///
    /// # Errors
    /// Fails if the request is cancelled.
    fn collect_documents(
        target: &TargetInode<'_>,
        store: StoreChunks,
        add: impl FnOnce(&mut ObjectDocuments<'_>) -> Result<()>,
    ) -> Result<(Option<JsonObject>, bool)> {
        let file = target.file.with_partial_budget(SUBGROUP_BUDGET);
        let mut members = ObjectDocuments {
            mount: target.mount,
            tree: target.inode.tree,
            store,
            variables: file.padded_variables(),
            file: &file,
            documents: JsonObject::default(),
            paths: HashSet::new(),
            remaining_reads: limits::ZARR_CONSOLIDATED_LINKS,
        };
        match add(&mut members) {
            Ok(()) => Ok((Some(members.documents), false)),
            Err(error) if error.is_cancelled() => Err(error),
            Err(error) => Ok((None, error.is_transient())),
        }
    }

    /// Adds the documents of the objects below the group at `path`.
    ///
    /// # Errors
    /// `Limit` if the group contains too many objects, or groups nested more than `depth` levels
    /// deep; fails if an object cannot be read.
    fn add_group(&mut self, group: NodeId, path: &[u8], depth: usize) -> Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(too_many_objects_error)?;
        let directory = ViewGroup::new(self.mount, self.file, self.tree, group)?;
        let mut links = self.file.container.links(group)?;
        while let Some(link) = links.next()? {
            self.count_read()?;
            let Some((entry, node)) = directory.link_entry_in_store(link)? else {
                continue;
            };
            let path = child_path(path, &entry.inode.name);
            match self.variables.node(node.id)? {
                array if array.array().is_some() => self.add_array(&array, &path)?,
                group => {
                    let empty = Some(JsonObject::default());
                    let document = group_document(self.file, &group, &|_, _| {}, empty)?;
                    self.add(&path, &document)?;
                    self.add_group(group.id, &path, depth)?;
                }
            }
        }
        Ok(())
    }

    fn add_array(&mut self, node: &Node, path: &[u8]) -> Result<()> {
        let array = node.array().ok_or(Error::NotFound)?;
        let grid = chunk_grid(self.file, node, array, self.store)?;
        let shown = StoreNode::from_array(array, grid).ok_or(Error::NotFound)?;
        let document = array_document(self.file, node, &shown, true, Some(JsonObject::default()))?;
        self.add(path, &document)?;
        self.add_field_documents(node, &shown, path)
    }

    /// Adds the documents of the fields of the array `node` at `path`, which has a compound type.
    /// Fields of fields are added too.
    fn add_field_documents(&mut self, node: &Node, shown: &StoreNode, path: &[u8]) -> Result<()> {
        let StoreNode::Fields(record) = shown else {
            return Ok(());
        };
        if record.field_names().count() > self.remaining_reads {
            return Err(too_many_objects_error());
        }
        for name in shown_field_names(record) {
            self.count_read()?;
            let path = child_path(path, &store_name(&name::escape(name, false)));
            let field = record.field(name).ok_or(Error::NotFound)?;
            let document =
                array_document(self.file, node, &field, false, Some(JsonObject::default()))?;
            self.add(&path, &document)?;
            self.add_field_documents(node, &field, &path)?;
        }
        Ok(())
    }

    /// Counts a link or a record field that is read. Fails if the limit is exceeded.
    fn count_read(&mut self) -> Result<()> {
        self.remaining_reads = self
            .remaining_reads
            .checked_sub(1)
            .ok_or_else(too_many_objects_error)?;
        Ok(())
    }

    /// Adds the document `document` of the object at `path`.
    fn add(&mut self, path: &[u8], document: &[u8]) -> Result<()> {
        let Ok(key) = std::str::from_utf8(path) else {
            return Err(Error::unsupported(
                "a name that is not UTF-8 in a document",
                None,
            ));
        };
        let length = self.documents.length() + path.len() + document.len();
        if length > limits::ZARR_CONSOLIDATED_BYTES {
            return Err(too_many_objects_error());
        }
        if !self.paths.insert(path.to_vec()) {
            return Err(Error::corrupt("group: two links with the same name", None));
        }
        let member = self.documents.add_key(key);
        member.extend_from_slice(document.trim_ascii_end());
        Ok(())
    }
}

fn too_many_objects_error() -> Error {
    Error::limit(
        "number of documents below a group",
        limits::ZARR_CONSOLIDATED_LINKS as u64,
    )
}

/// Returns the path of the entry `name` in the group at `path`.
fn child_path(path: &[u8], name: &[u8]) -> Vec<u8> {
    match path {
        b"" => name.to_vec(),
        path => [path, b"/", name].concat(),
    }
}

//! The nodes of a Zarr store below the directory of an object: its document, its chunks, and the
//! arrays of its fields. The path of a node relative to the object's directory is the name of its
//! inode.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::Node;
use h5fs_reader::wire::to_usize;
use h5fs_view::text_files::counted_text::CountedFile;
use h5fs_view::view::View;
use h5fs_view::zarr::array::{StoreNode, ZarrArray};
use h5fs_view::zarr::chunk::{ChunkElements, ChunkFile, TextChunkFile, UnreadableChunk};
use h5fs_view::zarr::grid::ChunkGridKind;
use h5fs_view::zarr::store_entry::{DOCUMENT, EntryName, StoreEntry};

use crate::limits;
use crate::name;
use crate::nodes::indexed::{self, PlainEntry};
use crate::nodes::node::{FsNode, ObjectDescription, TargetInode};
use crate::nodes::object;
use crate::stat::{FileKind, LookupEntry};
use crate::state::counts::{CountKey, count_units};
use crate::state::inode::{self, Inode, NodeType};
use crate::state::listing::{ListingCallback, ListingState};
use crate::views::store_chunks::ChunkDirectorySearch;
use crate::views::store_document::document;
use crate::views::store_object::{StoreChunks, find, store_name};
use crate::views::trees;
use crate::views::trees::view_tree::ViewTree;

/// A directory in the Zarr store, below the directory of an object.
pub(crate) struct StoreDirectory;

/// A metadata document or a chunk of a Zarr store, as a regular file.
pub(crate) struct StoreFile;

/// Size in bytes that a chunk of unknown length shows. The size is not 0, so that a Zarr reader
/// requests the bytes and gets the error.
const UNKNOWN_CHUNK_LENGTH: u64 = 4;

impl FsNode for StoreDirectory {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let node = target.file.padded_variables().node(target.inode.node)?;
        Ok(target
            .empty_entry(FileKind::Directory)
            .with_modification_time_of(&node))
    }

    fn lookup(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
        lookup_store_entry(target, name)
    }

    fn is_absence_final(&self, _: &TargetInode<'_>) -> bool {
        true
    }

    fn list(
        &self,
        target: &TargetInode<'_>,
        listing: &mut ListingState,
        first: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        list(target, listing, first, visit).inspect_err(|error| target.record_error(error))
    }
}

impl FsNode for StoreFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let node = target.file.padded_variables().node(target.inode.node)?;
        let path = &*target.inode.name;
        let length = match array_store_entry(target, &node, path)? {
            Some(StoreEntry::Chunk(array, place)) => chunk_length(&array, &place)?,
            _ => None,
        };
        let mut is_known = true;
        let length = length.map_or_else(
            || {
                let view = self.open(target)?;
                is_known = !view.is_uncached();
                Ok(view.length())
            },
            Ok,
        );
        let entry = target
            .entry_with_length(length)?
            .with_modification_time_of(&node);
        Ok(entry.cacheable_if(is_known && !node.has_transient_error()))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let node = target.file.padded_variables().node(target.inode.node)?;
        let path = &*target.inode.name;
        match array_store_entry(target, &node, path)? {
            Some(StoreEntry::Chunk(array, place)) => open_chunk(target, &node, array, &place),
            _ => Ok(Box::new(document(
                target,
                &node,
                path,
                store_kind(target)?,
            )?)),
        }
    }

    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(ObjectDescription::from_opening(self, target))
    }
}

/// Returns the store's entry at `path` below the directory of the array `node`. Returns `None` if
/// `node` is a group.
fn array_store_entry(
    target: &TargetInode<'_>,
    node: &Node,
    path: &[u8],
) -> Result<Option<StoreEntry>> {
    let store = store_kind(target)?;
    let found = node.array();
    let found = found.map(|array| find(target.file, (node, array), path, store));
    found.transpose()
}

/// Returns which kind of chunks the target's store has: decoded or as stored.
fn store_kind(target: &TargetInode<'_>) -> Result<StoreChunks> {
    let number = target
        .mount
        .other_files
        .tree_number_in_source(target.inode.tree);
    let tree = trees::tree_with_number(number);
    tree.and_then(ViewTree::store).ok_or(Error::NotFound)
}

/// Returns the length in bytes of the chunk with the indices `place`. Returns `None` if the chunk
/// consists of texts, whose bytes must be counted to find the length.
fn chunk_length(array: &ZarrArray, place: &[u64]) -> Result<Option<u64>> {
    if array.grid == ChunkGridKind::Decoded {
        return Ok(array.chunk_bytes());
    }
    let chunk = ignore_permanent(array.stored_chunk_extent(place))?;
    Ok(Some(chunk.map_or(UNKNOWN_CHUNK_LENGTH, |chunk| {
        chunk.extent.length()
    })))
}

/// Returns the path of the entry `name` of the directory `directory`, relative to the directory of
/// the object.
fn path_below(directory: &Inode, name: &[u8]) -> Vec<u8> {
    match path(directory) {
        b"" => name.to_vec(),
        path => [path, b"/", name].concat(),
    }
}

/// Returns the path of `directory` relative to the directory of the object.
fn path(directory: &Inode) -> &[u8] {
    match directory.node_type {
        NodeType::StoreDirectory => &directory.name,
        _ => b"",
    }
}

/// Looks up `name` in or below the directory of an array, or the document of a group. Increments
/// its lookup count.
///
/// # Errors
/// `NotFound` if the entry does not exist; fails if that cannot be determined now.
pub(crate) fn lookup_store_entry(directory: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
    name::check_name_length(name)?;
    let file = directory.file;
    let node = file.padded_variables().node(directory.inode.node)?;
    let path = path_below(directory.inode, name);
    let node_type = match node.array() {
        Some(array) => match find(file, (&node, array), &path, store_kind(directory)?)? {
            StoreEntry::Chunk(array, place) if !chunk_exists(&array, &place)? => {
                return Err(Error::NotFound);
            }
            place if place.is_directory() => NodeType::StoreDirectory,
            _ => NodeType::StoreFile,
        },
        None if path == DOCUMENT => NodeType::StoreFile,
        None => return Err(Error::NotFound),
    };
    let ino = entry_inode_number(directory, &path)?;
    let inode = Inode {
        node_type,
        generation: file.generation,
        tree: directory.inode.tree,
        node: directory.inode.node,
        parent: directory.ino,
        name: path.into(),
    };
    match node_type {
        NodeType::StoreFile => directory.add_entry_lookup(ino, &inode, &StoreFile),
        _ => directory.add_entry_lookup(ino, &inode, &StoreDirectory),
    }
}

/// Returns whether the store has a file for the chunk with the indices `place`. If that cannot be
/// determined because of damage, returns true, so that a read reports the error.
fn chunk_exists(array: &ZarrArray, place: &[u64]) -> Result<bool> {
    Ok(ignore_permanent(array.has_chunk_file(place))?.unwrap_or(true))
}

/// Returns the inode number of the entry at `path` below the directory of the object.
fn entry_inode_number(directory: &TargetInode<'_>, path: &[u8]) -> Result<u64> {
    let (file, others) = (directory.file, &directory.mount.other_files);
    // The number after the tree's own is free, because this tree has no forms of files.
    let in_source = others.tree_number_in_source(directory.inode.tree) + 1;
    let tree = others.tree_number(file, in_source)?;
    Ok(inode::link_number(
        file.generation,
        tree,
        directory.inode.node,
        path,
    ))
}

/// Opens the chunk with the indices `place`, even if the chunk cannot be read: a Zarr reader could
/// mistake a failed open for a chunk that is not stored.
fn open_chunk(
    target: &TargetInode<'_>,
    node: &Node,
    array: ZarrArray,
    place: &[u64],
) -> Result<Box<dyn View>> {
    let file = target.file;
    if array.grid == ChunkGridKind::Stored {
        let opened = array
            .stored_chunk_extent(place)
            .and_then(|chunk| file.open_extent(chunk));
        return open_or_error(opened, UNKNOWN_CHUNK_LENGTH);
    }
    let length = array.chunk_bytes();
    let opened = open_stored_chunk(target, node, &array, place).and_then(|stored| match length {
        Some(_) => Ok(ChunkFile::new(array, stored).map(|chunk| Box::new(chunk) as Box<dyn View>)),
        None => {
            let texts = TextChunkFile::new(array, stored, Arc::clone(&file.container))?;
            open_text_chunk(target, texts).map(Some)
        }
    });
    open_or_error(
        opened.and_then(|view| view.ok_or(Error::NotFound)),
        length.unwrap_or(UNKNOWN_CHUNK_LENGTH),
    )
}

/// Returns the opened content or, if opening failed permanently, a content of `length` bytes whose
/// reads report the error.
fn open_or_error(opened: Result<Box<dyn View>>, length: u64) -> Result<Box<dyn View>> {
    match opened {
        Err(error) if !error.is_transient() => Ok(Box::new(UnreadableChunk { length, error })),
        opened => opened,
    }
}

fn open_stored_chunk(
    target: &TargetInode<'_>,
    node: &Node,
    array: &ZarrArray,
    place: &[u64],
) -> Result<ChunkElements> {
    let file = target.file;
    if let Err(error) = &array.array.storage {
        return Err(error.clone());
    }
    object::verify_checksum(target.mount, file, node.id)?;
    ChunkElements::new(array, place, || file.reader(node.id, &array.array))
}

/// Opens a chunk of texts. Counts the bytes of the chunk, unless the count is cached.
fn open_text_chunk(target: &TargetInode<'_>, texts: TextChunkFile) -> Result<Box<dyn View>> {
    let text = CountKey {
        form_number: target.inode.tree,
        node: target.inode.node,
        selector: target.inode.name.clone(),
    };
    let file = target.file;
    let count = file.count_text(text, || count_units(&texts, &file.engine, &file.budget))?;
    match count {
        Some(count) => Ok(Box::new(CountedFile::from_count(texts, count))),
        None => Err(Error::limit(
            "values of texts in a chunk",
            limits::COUNTED_VALUES,
        )),
    }
}

/// Passes the entries of the directory of an array, or of a directory below it, to `visit`.
///
/// # Errors
/// Fails if the chunk index cannot be read at `first`.
pub(crate) fn list(
    directory: &TargetInode<'_>,
    listing: &mut ListingState,
    first: u64,
    visit: &mut ListingCallback<'_>,
) -> Result<()> {
    let node = directory
        .file
        .padded_variables()
        .node(directory.inode.node)?;
    let array = node.array().ok_or(Error::NotFound)?;
    let (file, store) = (directory.file, store_kind(directory)?);
    let place = find(file, (&node, array), path(directory.inode), store)?;
    if let StoreEntry::Chunks(array, above) = &place {
        return list_chunks(directory, listing, (array, above), first, visit);
    }
    let names = place.names();
    indexed::list(directory, first, visit, |at| {
        let Some(name) = names.get(to_usize(at)?) else {
            return Ok(None);
        };
        let kind = match (name, &place) {
            // The store has no file for the only chunk of a scalar array if the chunk is not
            // stored.
            (EntryName::Chunks(true), StoreEntry::Directory(StoreNode::Array(array)))
                if !chunk_exists(array, &[])? =>
            {
                return Ok(Some((Vec::new(), at + 1)));
            }
            (EntryName::Chunks(false) | EntryName::Field(_), _) => FileKind::Directory,
            _ => FileKind::File,
        };
        let shown = match name {
            EntryName::Field(_) => store_name(&name::escape(name.as_bytes(), false)),
            _ => name.as_bytes().to_vec(),
        };
        Ok(Some((vec![entry(directory, shown, kind)?], at + 1)))
    })
}

fn entry(directory: &TargetInode<'_>, name: Vec<u8>, kind: FileKind) -> Result<PlainEntry> {
    let ino = entry_inode_number(directory, &path_below(directory.inode, &name))?;
    Ok(PlainEntry { name, ino, kind })
}

/// Passes the entries of a directory of chunks to `visit`: the chunks whose first indices are
/// `above`, or directories that contain such chunks. Directories may be empty. The name of an entry
/// is the chunk index that follows `above`, and also the position of the entry in the listing.
fn list_chunks(
    directory: &TargetInode<'_>,
    listing: &mut ListingState,
    (array, above): (&ZarrArray, &[u64]),
    first: u64,
    visit: &mut ListingCallback<'_>,
) -> Result<()> {
    let names = ChunkDirectorySearch::new(array, above);
    let kind = if names.has_chunk_entries() {
        FileKind::File
    } else {
        FileKind::Directory
    };
    let walk = listing.index_walk.get_or_insert_default();
    indexed::list(directory, first, visit, |at| {
        let Some((chunk, next)) = names.find(walk, at, &directory.file.budget)? else {
            return Ok(None);
        };
        let shown = chunk.map(|chunk| entry(directory, chunk.to_string().into_bytes(), kind));
        Ok(Some((shown.into_iter().collect::<Result<_>>()?, next)))
    })
}

#[cfg(test)]
mod tests;

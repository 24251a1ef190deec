//! Decides which objects of a file are in its Zarr store, and writes their documents.

use std::sync::Arc;

use h5fs_conventions::dimension_names;
use h5fs_conventions::dimensions::{is_only_dimension, is_scale};
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::text::JsonObject;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::model::{Array, Container, Link, LinkTarget, Node, NodeId, NodeKind};
use h5fs_reader::wire::to_usize;
use h5fs_view::documents::asdf_json::AsdfJson;
use h5fs_view::zarr::array::{RecordArray, StoreNode, ZarrArray};
use h5fs_view::zarr::attributes::{self, ZarrAttributes, ZarrVersion};
use h5fs_view::zarr::grid::ChunkGridKind;
use h5fs_view::zarr::store_entry::{DOCUMENT, StoreEntry};
use h5fs_view::zarr::{codecs, document};

use crate::data_files::file_state::FileState;
use crate::limits;
use crate::name;

/// The kind of chunks that a Zarr store contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreChunks {
    /// Decoded chunks.
    Decoded,
    /// Chunks as stored in the file, for each array whose filters Zarr readers can decode. Other
    /// arrays have decoded chunks.
    Stored,
}

/// Whether and how a Zarr store shows an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorePresence {
    Group,
    Array,
    /// The object is not in the store, because Zarr readers do not support it. Its group's document
    /// names it in `_h5fs_absent`.
    Unsupported,
    /// The object is not in the store, because documents of other objects contain its information.
    /// Example: a scalar is an attribute of its group.
    Implied,
}

/// Returns whether and how a Zarr store shows the object `node`.
///
/// # Errors
/// Fails if this cannot be determined, or if the names of the array's dimensions cannot be
/// determined. Callers then omit the object from the store.
pub(crate) fn store_presence(file: &FileState, node: &Node) -> Result<StorePresence> {
    let container = &*file.container;
    let intended = file.intended_node(node)?;
    let node = intended.as_deref().unwrap_or(node);
    let Some(array) = node.array() else {
        let is_group = matches!(node.kind, NodeKind::Group);
        // A mapping or a sequence without arrays is an attribute.
        let is_value = || match container.asdf_extras() {
            Some(_) => Ok(!group_has_arrays(file, node.id)?),
            None => Ok(false),
        };
        return Ok(
            if is_group && (node.id == container.root() || !is_value()?) {
                StorePresence::Group
            } else {
                StorePresence::Implied
            },
        );
    };
    if attributes::are_dimensions_named(container, node.id)? {
        if is_scale(container, node.id)? && is_only_dimension(container, node.id)? {
            return Ok(StorePresence::Implied);
        }
        let paths = |node| file.path_index().checked_path(node);
        dimension_names::dimension_scales_and_labels(
            container,
            node.id,
            array.shape.dims().len(),
            &paths,
        )?;
    }
    let is_shown = match &array.storage {
        // Without chunks, a reader would not get the error.
        Err(error) if array.shape.dims().contains(&0) => {
            if error.is_transient() {
                return Err(error.clone());
            } else {
                false
            }
        }
        _ => StoreNode::from_array(array, ChunkGridKind::Decoded).is_some(),
    };
    Ok(if is_shown {
        StorePresence::Array
    } else {
        StorePresence::Unsupported
    })
}

/// Returns whether the group contains an array, at any depth. The result is kept with the file.
pub(crate) fn group_has_arrays(file: &FileState, group: NodeId) -> Result<bool> {
    let find = || has_arrays(&*file.container, group);
    file.derived(group, b"has arrays", |_| 0, find)
        .map(|found| *found)
}

/// Returns whether the group contains an array, at any depth.
fn has_arrays(container: &dyn Container, group: NodeId) -> Result<bool> {
    let mut open = vec![container.links(group)?];
    while let Some(links) = open.last_mut() {
        let Some(link) = links.next()? else {
            open.pop();
            continue;
        };
        if let LinkTarget::Hard(node) = link.target {
            let node = container.node(node)?;
            match node.kind {
                _ if node.array().is_some() => return Ok(true),
                NodeKind::Group => open.push(container.links(node.id)?),
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Returns the name in a Zarr store for the name `shown` in the file's own tree. Names with a
/// special meaning for Zarr readers are escaped. [`source_tree_name`] is the inverse.
pub(crate) fn store_name(shown: &[u8]) -> Vec<u8> {
    if shown == DOCUMENT {
        return b"zarr%2Ejson".to_vec();
    }
    let mut name = Vec::with_capacity(shown.len());
    for &byte in shown {
        match byte {
            b'\\' => name.extend_from_slice(b"%5C"),
            _ => name.push(byte),
        }
    }
    name::shorten(name)
}

/// Returns the name in the file's own tree for the name `name` in a Zarr store; the inverse of
/// [`store_name`].
pub(crate) fn source_tree_name(name: &[u8]) -> Vec<u8> {
    if name == b"zarr%2Ejson" {
        return DOCUMENT.to_vec();
    }
    let mut shown = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [byte, after @ ..] = rest {
        match rest.strip_prefix(b"%5C") {
            Some(after) => {
                shown.push(b'\\');
                rest = after;
            }
            None => {
                shown.push(*byte);
                rest = after;
            }
        }
    }
    shown
}

/// Returns the entry at `path` below the directory of an array in a Zarr store.
///
/// # Errors
/// `NotFound` if the entry does not exist; fails if the array's chunks cannot be determined now.
pub(crate) fn find(
    file: &FileState,
    (node, array): (&Node, &Arc<Array>),
    path: &[u8],
    store: StoreChunks,
) -> Result<StoreEntry> {
    let grid = chunk_grid(file, node, array, store)?;
    StoreEntry::find(array, grid, path, field_name).ok_or(Error::NotFound)
}

/// Returns the name, as in the file, of the field of `record` that a Zarr store shows as `name`.
fn field_name(record: &RecordArray, name: &[u8]) -> Option<Vec<u8>> {
    if !name::is_shortened(name) {
        return name::unescape(&source_tree_name(name), false);
    }
    let is_shown_so = |own: &&[u8]| store_name(&name::escape(own, false)) == name;
    record.field_names().find(is_shown_so).map(<[u8]>::to_vec)
}

/// A callback that receives each link whose object is not in the store, and the reason.
pub(crate) type OmissionCallback<'a> = dyn Fn(&Link, &Error) + 'a;

/// Returns the metadata document of a group. `members` are the documents of the objects below the
/// group, for the consolidated metadata. `tell` receives the links of the group whose objects
/// cannot be read.
///
/// # Errors
/// Fails if a part cannot be read now.
pub(crate) fn group_document(
    file: &FileState,
    node: &Node,
    tell: &OmissionCallback<'_>,
    members: Option<JsonObject>,
) -> Result<Vec<u8>> {
    let attributes = group_attributes(file, node, tell, &|_| false, ZarrVersion::V3)?;
    Ok(document::group_document(&attributes.finish(), members))
}

/// Returns the attributes of a group in its document. `tell` receives the links whose objects
/// cannot be read. The store also lacks the objects of the links whose names `is_absent` accepts.
///
/// # Errors
/// Fails if a part cannot be read now.
pub(crate) fn group_attributes(
    file: &FileState,
    node: &Node,
    tell: &OmissionCallback<'_>,
    is_absent: &dyn Fn(&[u8]) -> bool,
    version: ZarrVersion,
) -> Result<ZarrAttributes> {
    let container = &*file.container;
    let paths = |node| file.path_index().checked_path(node);
    let mut attributes = ZarrAttributes::read(container, &paths, node.id, None, version)?;
    let at_root = node.id == container.root();
    let Some(mut links) = ignore_permanent(container.links(node.id))? else {
        return Ok(attributes);
    };
    for _ in 0..limits::ZARR_LINKS {
        let Some(link) = ignore_permanent(links.next())?.flatten() else {
            break;
        };
        let is_known = match &link.target {
            _ if is_absent(&link.name) => Ok(false),
            LinkTarget::Hard(object) | LinkTarget::Alias(object) => container
                .node(*object)
                .and_then(|object| add_scalar_attributes(file, &link, &object, &mut attributes)),
            LinkTarget::Damaged(error) => Err(error.clone()),
            _ => Ok(true),
        };
        match is_known {
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => tell(&link, &error),
            Ok(true) => continue,
            Ok(false) => {}
        }
        attributes.record_omission(name::escape(&link.name, at_root));
    }
    Ok(attributes)
}

/// Adds the object `object` to `attributes`, if it is an ASDF scalar or a group of scalars. Returns
/// false if the store contains the object neither as an attribute nor as an entry.
fn add_scalar_attributes(
    file: &FileState,
    link: &Link,
    object: &Node,
    attributes: &mut ZarrAttributes,
) -> Result<bool> {
    match store_presence(file, object)? {
        StorePresence::Unsupported => Ok(false),
        StorePresence::Implied if file.container.asdf_extras().is_some() => {
            let json = AsdfJson::new(Arc::clone(&file.container), object.id);
            let value = json.whole_text(&file.budget.cancel_token())?;
            Ok(attributes.add_attribute(&link.name, value.trim_ascii_end()))
        }
        _ => Ok(true),
    }
}

/// Returns the metadata document of an array, or of a field of an array. `is_whole` is false for a
/// field, which has no attributes. The document of a group of fields contains the documents of its
/// `members`.
///
/// # Errors
/// Fails if a part cannot be read.
pub(crate) fn array_document(
    file: &FileState,
    node: &Node,
    shown: &StoreNode,
    is_whole: bool,
    members: Option<JsonObject>,
) -> Result<Vec<u8>> {
    let attributes = array_attributes(file, node, shown, is_whole, ZarrVersion::V3)?.finish();
    match shown {
        StoreNode::Fields(_) => Ok(document::group_document(&attributes, members)),
        StoreNode::Array(shown) => {
            let names = dimension_names(file, node, shown)?;
            with_fill_context(file, |context| {
                document::array_document(shown, &attributes, &names, context)
            })
        }
    }
}

/// Returns the attributes of an array, or of a field of an array, in its document. `is_whole` is
/// false for a field, which has no attributes.
///
/// # Errors
/// Fails if an attribute that readers need cannot be read.
pub(crate) fn array_attributes(
    file: &FileState,
    node: &Node,
    shown: &StoreNode,
    is_whole: bool,
    version: ZarrVersion,
) -> Result<ZarrAttributes> {
    let paths = |node| file.path_index().checked_path(node);
    let data_type = match shown {
        StoreNode::Array(array) => Some(&array.data_type),
        StoreNode::Fields(_) => None,
    };
    let mut attributes = if is_whole {
        ZarrAttributes::read(&*file.container, &paths, node.id, data_type, version)?
    } else {
        ZarrAttributes::default()
    };
    if let StoreNode::Fields(record) = shown {
        add_absent_fields(record, &mut attributes);
    }
    Ok(attributes)
}

/// Calls `write` with the context in which a document's fill value follows its pointer.
pub(crate) fn with_fill_context<T>(
    file: &FileState,
    write: impl FnOnce(&TextContext<'_>) -> Result<T>,
) -> Result<T> {
    let paths = |node| file.path_index().checked_path(node);
    let most = to_usize(limits::TEXT_ELEMENT_BYTES)?;
    write(&TextContext::new(&*file.container, &paths, most))
}

/// Returns the chunk grid of an array in a Zarr store: the grid of decoded chunks, or the grid of
/// the chunks in the file.
///
/// # Errors
/// Fails if the grid cannot be determined now.
pub(crate) fn chunk_grid(
    file: &FileState,
    node: &Node,
    array: &Arc<Array>,
    store: StoreChunks,
) -> Result<ChunkGridKind> {
    if store == StoreChunks::Decoded {
        return Ok(ChunkGridKind::Decoded);
    }
    let Some(StoreNode::Array(array)) = StoreNode::from_array(array, ChunkGridKind::Stored) else {
        return Ok(ChunkGridKind::Decoded);
    };
    if !codecs::has_known_codecs(&array) {
        return Ok(ChunkGridKind::Decoded);
    }
    // Later chunks of a growing file may skip a filter.
    if file.is_growing() {
        return Ok(ChunkGridKind::Decoded);
    }
    let found = file.derived(
        node.id,
        b"is fully filtered",
        |_| 0,
        || codecs::has_all_filtered_chunks(&array, &file.budget),
    );
    Ok(if ignore_permanent(found)?.is_some_and(|all| *all) {
        ChunkGridKind::Stored
    } else {
        ChunkGridKind::Decoded
    })
}

fn add_absent_fields(record: &RecordArray, attributes: &mut ZarrAttributes) {
    for name in record.field_names() {
        if record.field(name).is_none() {
            attributes.record_omission(name::escape(name, false));
        }
    }
}

/// Returns the names of the dimensions of an array of the store.
///
/// # Errors
/// Fails if an attribute that names them cannot be read now.
pub(crate) fn dimension_names(
    file: &FileState,
    node: &Node,
    shown: &ZarrArray,
) -> Result<Vec<Vec<u8>>> {
    let paths = |node| file.path_index().checked_path(node);
    let rank = shown.array.shape.dims().len();
    dimension_names::store_dimension_names(&*file.container, node.id, rank, &shown.dims, &paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_names_can_be_reversed() {
        for name in [
            "zarr.json",
            "zarr%252Ejson",
            "a\\b",
            "%255C",
            "c",
            "zarr.json~",
        ] {
            let shown = store_name(name.as_bytes());
            assert!(!shown.contains(&b'\\') && shown != b"zarr.json");
            assert_eq!(source_tree_name(&shown), name.as_bytes());
        }
    }
}

//! Datasets and other objects of the file as regular files: size, number of stored bytes, and
//! content.

use std::sync::Arc;

use h5fs_reader::array::Reader;
use h5fs_reader::array::kinds::vlen::VariableLengthContent;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::{Array, Node, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;
use h5fs_view::documents::attributes::committed_text;
use h5fs_view::elements::raw::RawElements;
use h5fs_view::elements::variable_length::VariableLengthFile;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;

/// Name, without `user.`, of the extended attribute with the compression of an ASDF block, or of
/// the block that contains an ndarray's elements.
pub(crate) const COMPRESSION: &str = "h5fs.compression";

/// How many bytes of a regular file's content are stored in the source, for `st_blocks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredSize {
    /// The number of stored bytes. `None` if every byte of the content is known to be zero.
    Known(Option<u64>),
    /// Unknown, because the chunk index is too large to read or damaged.
    Unknown,
}

/// Fails if the array cannot be read because of a temporary error. The length of the array may
/// depend on the part that cannot be read.
pub(crate) fn refuse_temporarily_unreadable(array: &Array) -> Result<()> {
    match &array.storage {
        Err(error) if error.is_transient() => Err(error.clone()),
        _ => Ok(()),
    }
}

/// Returns the size of the object's content in bytes. Returns 0 if the content cannot be served or
/// its size is expensive to determine.
fn content_size(node: &Node) -> u64 {
    match &node.kind {
        NodeKind::Group => 0,
        NodeKind::Array(array) if VariableLengthContent::is_variable_length_array(array) => 0,
        NodeKind::Array(array) => array.byte_length().unwrap_or(0),
        NodeKind::CommittedDatatype(datatype) => to_u64(committed_text(datatype).len()),
        NodeKind::Scalar(scalar) => to_u64(scalar.file_text().len()),
    }
}

/// Returns the size of the object's content in bytes, and how many bytes are stored. Values that
/// are expensive to determine are determined only if `at_any_cost` is true.
///
/// # Errors
/// Fails if the size cannot be determined now.
pub(crate) fn measure(
    file: &FileState,
    node: &Node,
    at_any_cost: bool,
) -> Result<(u64, StoredSize)> {
    Ok(match &node.kind {
        NodeKind::Array(array) if VariableLengthContent::is_variable_length_array(array) => {
            if at_any_cost {
                let content = file.variable_length_content(node.id, array);
                // Opening the object will report why the object cannot be read.
                match ignore_permanent(
                    content.and_then(|content| content.length(&file.budget.cancel_token())),
                )? {
                    Some(size) => (size, StoredSize::Known(Some(size))),
                    None => (0, StoredSize::Unknown),
                }
            } else {
                (0, StoredSize::Unknown)
            }
        }
        NodeKind::Array(array) => (
            content_size(node),
            stored_size(file, node, array, at_any_cost),
        ),
        _ => (
            content_size(node),
            StoredSize::Known(Some(content_size(node))),
        ),
    })
}

fn stored_size(file: &FileState, node: &Node, array: &Arc<Array>, at_any_cost: bool) -> StoredSize {
    let size = content_size(node);
    match &array.storage {
        Ok(Storage::Empty) => StoredSize::Known(None),
        Ok(Storage::Fill) if array.fill.is_zero() => StoredSize::Known(None),
        Ok(Storage::Fill) => StoredSize::Known(Some(0)),
        // In a growing file, the result of a walk would be outdated at once.
        Ok(Storage::Chunked(_))
            if at_any_cost && !file.is_growing() || array.has_listed_chunks() =>
        {
            stored_chunks(file, node, array)
        }
        Ok(Storage::Chunked(_)) => StoredSize::Unknown,
        Ok(Storage::Encoded(pieces)) => StoredSize::Known(Some(pieces.stored_bytes())),
        Ok(Storage::Strided(strided)) => StoredSize::Known(Some(match &strided.base.storage {
            Ok(Storage::Encoded(pieces)) => pieces.stored_bytes().min(size),
            _ => size,
        })),
        _ => StoredSize::Known(Some(size)),
    }
}

fn stored_chunks(file: &FileState, node: &Node, array: &Arc<Array>) -> StoredSize {
    let allocation = file
        .reader(node.id, array)
        .and_then(|reader| reader.allocation());
    match allocation {
        Ok(allocation) if allocation.is_hole() => StoredSize::Known(None),
        Ok(allocation) => StoredSize::Known(Some(allocation.stored_bytes)),
        // The bytes are not known to be zeros. Opening the object will report why it cannot be
        // read.
        Err(_) => StoredSize::Unknown,
    }
}

/// Opens the content of the object `node`.
///
/// # Errors
/// Fails if it is known before reading that the content cannot be served.
pub(crate) fn open(file: &FileState, node: &Node) -> Result<Box<dyn View>> {
    if let NodeKind::Array(array) = &node.kind
        && let Err(error) = &array.storage
    {
        // Without a readable storage, the array's size may be unknown too. The file must not appear
        // empty.
        return Err(error.clone());
    }
    match &node.kind {
        NodeKind::Group => Err(Error::NotFound),
        NodeKind::Array(array) if array.byte_length()? == 0 => {
            Ok(Box::new(InMemoryContent::new(Vec::new())))
        }
        NodeKind::Array(array) if VariableLengthContent::is_variable_length_array(array) => {
            let content = file.variable_length_content(node.id, array)?;
            Ok(Box::new(VariableLengthFile::new(
                content,
                &file.budget.cancel_token(),
            )?))
        }
        NodeKind::Array(array) => Ok(Box::new(RawElements::new(file.reader(node.id, array)?))),
        NodeKind::CommittedDatatype(datatype) => {
            Ok(Box::new(InMemoryContent::new(committed_text(datatype))))
        }
        NodeKind::Scalar(scalar) => Ok(Box::new(InMemoryContent::new(scalar.file_text()))),
    }
}

/// Returns the reason why the content of `node` cannot be served, if it is known before reading.
pub(crate) fn content_fault(file: &FileState, node: &Node) -> Option<Error> {
    match &node.kind {
        NodeKind::Array(_) => open(file, node).err(),
        _ => node.error.clone(),
    }
}

/// If the option `verify` is set, compares the ASDF block that contains the object's elements with
/// the block's checksum.
pub(crate) fn verify_checksum(mount: &Mount, file: &FileState, object: NodeId) -> Result<()> {
    let Some(extras) = file
        .container
        .asdf_extras()
        .filter(|_| mount.options.verify)
    else {
        return Ok(());
    };
    extras.verify_array(object, &|array, visit| read_all(file, array, visit))
}

/// Passes all bytes of an array to `visit`, in order.
pub(crate) fn read_all(
    file: &FileState,
    array: &Arc<Array>,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    Reader::new(&file.engine, Arc::clone(array))?.read_all(visit)
}

//! The source of a computed HDF5 file.

use std::sync::Arc;

use h5fs_reader::array::Reader;
use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::ReferenceKind;
use h5fs_reader::model::{Array, Container, NodeId, Reference};

/// A function that opens the array of a node for reading.
pub type ArrayOpener = Arc<dyn Fn(NodeId, &Arc<Array>) -> Result<Arc<Reader>> + Send + Sync>;

/// The source of a computed HDF5 file.
#[derive(Clone)]
pub struct Hdf5Source {
    /// The file whose objects are shown.
    pub container: Arc<dyn Container>,
    /// Opens the arrays of the file.
    pub open_array: ArrayOpener,
}

/// Returns the node to which a stored object reference points, or `None` if it points to none.
///
/// # Errors
/// Fails if the reference cannot be read now.
pub(super) fn referenced_node(
    container: &dyn Container,
    reference: &[u8],
) -> Result<Option<NodeId>> {
    match container.reference(ReferenceKind::Object, reference) {
        Ok(Reference::Object(node)) => Ok(Some(node)),
        Err(error) if error.is_transient() => Err(error),
        _ => Ok(None),
    }
}

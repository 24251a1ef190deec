//! The part of an array that a file in a tree of views shows, as a container of its own.

use std::sync::Arc;

use h5fs_conventions::dimensions;
use h5fs_conventions::selected_part::SelectedPart;
use h5fs_reader::array::Reader;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Array, Container, Node, NodeId};

use crate::data_files::file_state::FileState;
use crate::views::trees::view_tree::ViewSubject;

/// The part of an array, and the dimension scales of the whole array.
pub(super) struct ShownPart {
    pub(super) container: Arc<SelectedPart>,
    pub(super) scales: Vec<NodeId>,
}

impl ShownPart {
    /// Selects the part of the subject's array from `container`. Returns `None` if the subject is a
    /// whole object.
    ///
    /// # Errors
    /// `NotFound` if the array does not have the part. Fails as [`SelectedPart::new`] does.
    pub(super) fn new(
        subject: &ViewSubject<'_>,
        container: &Arc<dyn Container>,
    ) -> Result<Option<Self>> {
        if subject.selector.is_empty() {
            return Ok(None);
        }
        let selector = Selector::parse(subject.selector).ok_or(Error::NotFound)?;
        let node = container.node(subject.node.id)?;
        let scales = scales(subject, &node)?;
        let container = SelectedPart::new(Arc::clone(container), &node, &selector, &scales)?;
        Ok(Some(ShownPart {
            container: Arc::new(container),
            scales: scales.into_iter().flatten().collect(),
        }))
    }

    /// Opens the array of a node of the part. The file's readers know only whole arrays.
    ///
    /// # Errors
    /// Fails if the array cannot be read.
    pub(super) fn reader(
        part: Option<&SelectedPart>,
        file: &FileState,
        node: NodeId,
        array: &Arc<Array>,
    ) -> Result<Arc<Reader>> {
        match part {
            Some(part) if part.is_selected(node) => {
                Ok(Arc::new(Reader::new(&file.engine, Arc::clone(array))?))
            }
            _ => file.reader(node, array),
        }
    }
}

/// Returns the dimension scale of each dimension of the array of `node`.
pub(super) fn scales(subject: &ViewSubject<'_>, node: &Node) -> Result<Vec<Option<NodeId>>> {
    let array = node.array().ok_or(Error::NotFound)?;
    let container = &*subject.file.container;
    let rank = array.shape.dims().len();
    let is_scale = dimensions::is_scale(container, node.id)?;
    let path = || subject.known_path();
    dimensions::scales(container, node.id, rank, &path, is_scale)
}

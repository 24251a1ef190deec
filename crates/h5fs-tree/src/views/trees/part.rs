//! The part of an array that a file in a tree of views shows, as a container of its own.

use std::collections::HashSet;
use std::sync::Arc;

use h5fs_conventions::dimensions;
use h5fs_conventions::selected_part::SelectedPart;
use h5fs_reader::array::Reader;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Array, Container, LinkTarget, Node, NodeId};

use crate::data_files::file_state::FileState;
use crate::limits;
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
        let named = named_variables(subject, &node, &scales)?;
        let along = named.iter();
        let along = along.filter_map(|variable| Some((variable.node, variable.dimension?)));
        let others: Vec<(NodeId, usize)> = along.collect();
        let inner = Arc::clone(container);
        let container = SelectedPart::new(inner, &node, &selector, &scales, &others)?;
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

/// A variable that an attribute names: the bounds of a dimension scale, or a coordinate.
pub(super) struct NamedVariable {
    pub(super) node: NodeId,
    /// The number of the array's dimension that is the first dimension of the variable. `None` if
    /// the variable is shown as a whole.
    pub(super) dimension: Option<usize>,
}

/// Returns the variables that describe the array of `node` and that attributes name (CF
/// conventions, sections 5 and 7.1): the bounds of its dimension scales, and its coordinates. For a
/// part of an array, returns only coordinates without a dimension or along one dimension. A damaged
/// attribute names nothing.
pub(super) fn named_variables(
    subject: &ViewSubject<'_>,
    node: &Node,
    scales: &[Option<NodeId>],
) -> Result<Vec<NamedVariable>> {
    let container = &*subject.file.container;
    let dims = node.array().map_or(&[][..], |array| array.shape.dims());
    let mut found: Vec<NamedVariable> = Vec::new();
    for (dimension, scale) in scales.iter().enumerate() {
        let Some(scale) = *scale else { continue };
        let bounds = attribute_text(container, scale, b"bounds");
        let Some(name) = ignore_permanent(bounds)?.flatten() else {
            continue;
        };
        let path = subject.file.path_index().checked_path(scale)?;
        let bounds = sibling(container, &path.unwrap_or_default(), &name)?;
        let is_along = |bounds: &Arc<Node>| {
            let own = bounds.array().and_then(|array| array.shape.dims().first());
            own.is_some() && own == dims.get(dimension)
        };
        found.extend(bounds.filter(is_along).map(|bounds| NamedVariable {
            node: bounds.id,
            dimension: Some(dimension),
        }));
    }
    let names = attribute_text(container, node.id, b"coordinates");
    let names = ignore_permanent(names)?.flatten().unwrap_or_default();
    let names = names.split(u8::is_ascii_whitespace);
    for name in names
        .filter(|name| !name.is_empty())
        .take(limits::COORDINATES)
    {
        let coordinate = sibling(container, &subject.known_path()?, name)?;
        let Some(coordinate) = coordinate.filter(|found| found.array().is_some()) else {
            continue;
        };
        let rank = coordinate
            .array()
            .map_or(0, |array| array.shape.dims().len());
        let dimension = if rank == 1 {
            let own = dimensions::scale_from_list(container, coordinate.id, 0);
            let own = ignore_permanent(own)?.flatten();
            own.and_then(|own| scales.iter().position(|scale| *scale == Some(own)))
        } else {
            None
        };
        if dimension.is_some() || rank == 0 || subject.selector.is_empty() {
            found.push(NamedVariable {
                node: coordinate.id,
                dimension,
            });
        }
    }
    // A variable that is named twice follows the dimension that names it first.
    let mut named = HashSet::from([node.id]);
    named.extend(scales.iter().flatten());
    found.retain(|variable| named.insert(variable.node));
    Ok(found)
}

/// Returns the object `name` in the group of the variable at `path`.
fn sibling(container: &dyn Container, path: &[u8], name: &[u8]) -> Result<Option<Arc<Node>>> {
    let groups = dimensions::ancestor_groups(container, dimensions::parent_path(path))?;
    let Some(&group) = groups.last() else {
        return Ok(None);
    };
    let link = ignore_permanent(container.link(group, name))?.flatten();
    match link.map(|link| link.target) {
        Some(LinkTarget::Hard(node)) => ignore_permanent(container.node(node)),
        _ => Ok(None),
    }
}

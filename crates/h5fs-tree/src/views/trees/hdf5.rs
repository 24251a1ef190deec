//! `.h5fs/hdf5`: groups and datasets as computed HDF5 files, which every HDF5 tool reads.

use std::sync::Arc;

use h5fs_conventions::dimensions::{self, last_name};
use h5fs_conventions::selected_part::SelectedPart;
use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::{Array, Container, Node, NodeId, NodeKind};
use h5fs_view::hdf5_file::{ArrayOpener, Hdf5File, Hdf5Plan, Hdf5Source, RootGroup};
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::views::trees::part::{self, ShownPart};
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"hdf5",
    number: 48,
    root_name: Some(b"%"),
    forms: &[ViewForm {
        number: 49,
        suffix: b".h5",
        size,
        open,
        has_parts: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

/// Returns [`FileSize::Counted`], because the file begins with the metadata of all its objects,
/// which a listing does not read.
fn size(_: &FileState, node: &Node) -> Result<Option<FileSize>> {
    let is_shown = matches!(node.kind, NodeKind::Array(_) | NodeKind::Group);
    Ok(is_shown.then_some(FileSize::Counted))
}

fn open(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let file = subject.file;
    let part = ShownPart::new(subject, &file.container)?;
    let part = part.map(|part| part.container);
    let source = Hdf5Source {
        container: match &part {
            Some(part) => Arc::clone(part) as Arc<dyn Container>,
            None => Arc::clone(&file.container),
        },
        open_array: array_opener(file, part),
    };
    let plan = || {
        Hdf5Plan::new(
            &source,
            &root_group(subject, &*source.container)?,
            &file.budget,
        )
    };
    let name = [b"computed HDF5 file", subject.selector].concat();
    let plan = file.derived(subject.node.id, &name, Hdf5Plan::weight, plan)?;
    Ok(Box::new(Hdf5File::new(plan, source)))
}

fn array_opener(file: &Arc<FileState>, part: Option<Arc<SelectedPart>>) -> ArrayOpener {
    let file = Arc::clone(file);
    Arc::new(move |node, array| ShownPart::reader(part.as_deref(), &file, node, array))
}

/// Returns the root of the computed file: the group itself, or a group with the dataset and the
/// objects that it needs.
fn root_group(subject: &ViewSubject<'_>, container: &dyn Container) -> Result<RootGroup> {
    let node = subject.node;
    if !matches!(node.kind, NodeKind::Array(_)) {
        return Ok(RootGroup::Group(node.id));
    }
    let mut objects = vec![(name_of(&subject.known_path()?), node.id)];
    for needed in needed_objects(subject, node)? {
        if is_without_meaning(container, needed)? {
            continue;
        }
        let path = subject.file.path_index().checked_path(needed)?;
        let name = name_of(&path.unwrap_or_default());
        if objects
            .iter()
            .all(|(other, node)| *other != name && *node != needed)
        {
            objects.push((name, needed));
        }
    }
    Ok(RootGroup::Named(objects))
}

/// Returns the dimension scales of the array of `node`, the variables that its attributes name, and
/// the dimension scales of these variables.
fn needed_objects(subject: &ViewSubject<'_>, node: &Node) -> Result<Vec<NodeId>> {
    let scales = part::scales(subject, node)?;
    let named = part::named_variables(subject, node, &scales)?;
    let mut needed: Vec<NodeId> = scales.into_iter().flatten().collect();
    for variable in named {
        needed.push(variable.node);
        let own = dimensions::scales_from_list(&*subject.file.container, variable.node);
        let own = ignore_permanent(own)?.unwrap_or_default();
        needed.extend(own.into_iter().flatten());
    }
    Ok(needed)
}

/// Returns whether a scale is only a dimension, of which one position was selected.
fn is_without_meaning(container: &dyn Container, scale: NodeId) -> Result<bool> {
    let node = container.node(scale)?;
    let is_single = |array: &Arc<Array>| array.shape.dims().is_empty();
    Ok(node.array().is_some_and(is_single) && dimensions::is_only_dimension(container, scale)?)
}

/// Returns the name of the object at `path`; `data` for an object without a name.
fn name_of(path: &[u8]) -> Vec<u8> {
    match last_name(path) {
        b"" => b"data".to_vec(),
        name => name.to_vec(),
    }
}

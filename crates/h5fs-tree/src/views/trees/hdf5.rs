//! `.h5fs/hdf5`: groups and datasets as computed HDF5 files, which every HDF5 tool reads.

use std::sync::Arc;

use h5fs_conventions::dimensions::{self, last_name};
use h5fs_reader::error::Result;
use h5fs_reader::model::{Node, NodeKind};
use h5fs_view::hdf5_file::{ArrayOpener, Hdf5File, Hdf5Plan, Hdf5Source, RootGroup};
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
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
    let source = Hdf5Source {
        container: Arc::clone(&file.container),
        open_array: array_opener(file),
    };
    let plan = || Hdf5Plan::new(&source, &root_group(subject)?, &file.effort);
    let name = b"computed HDF5 file";
    let plan = file.derived(subject.node.id, name, Hdf5Plan::weight, plan)?;
    Ok(Box::new(Hdf5File::new(plan, source)))
}

fn array_opener(file: &Arc<FileState>) -> ArrayOpener {
    let file = Arc::clone(file);
    Arc::new(move |node, array| file.reader(node, array))
}

/// Returns the root of the computed file: the group itself, or a group with the dataset and the
/// dimension scales to which it refers.
fn root_group(subject: &ViewSubject<'_>) -> Result<RootGroup> {
    let (container, node) = (&*subject.file.container, subject.node);
    let NodeKind::Array(array) = &node.kind else {
        return Ok(RootGroup::Group(node.id));
    };
    let path = subject.known_path()?;
    let rank = array.shape.dims().len();
    let is_scale = dimensions::is_scale(container, node.id)?;
    let known_path = || Ok(path.clone());
    let scales = dimensions::scales(container, node.id, rank, &known_path, is_scale)?;
    let mut objects = vec![(name_of(&path), node.id)];
    for scale in scales.into_iter().flatten() {
        let path = subject.file.path_index().checked_path(scale)?;
        let name = name_of(&path.unwrap_or_default());
        if objects
            .iter()
            .all(|(other, node)| *other != name && *node != scale)
        {
            objects.push((name, scale));
        }
    }
    Ok(RootGroup::Named(objects))
}

/// Returns the name of the object at `path`; `data` for an object without a name.
fn name_of(path: &[u8]) -> Vec<u8> {
    match last_name(path) {
        b"" => b"data".to_vec(),
        name => name.to_vec(),
    }
}

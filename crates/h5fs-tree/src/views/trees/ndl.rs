//! `.h5fs/ndl`: documents in the Ndarray Data Language, which describe objects.

use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::model::ndl::Syntax;
use h5fs_reader::model::{Node, NodeKind};
use h5fs_view::documents::ndl::{NdlDescription, NdlOptions, NdlSource};
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"ndl",
    number: 14,
    forms: &[
        ViewForm {
            number: 15,
            suffix: b".yaml",
            size,
            open: |subject| open(subject, Syntax::Yaml),
            ..EMPTY_FORM
        },
        ViewForm {
            number: 29,
            suffix: b".json",
            size,
            open: |subject| open(subject, Syntax::Json),
            ..EMPTY_FORM
        },
    ],
    ..EMPTY_TREE
};

fn size(_: &FileState, node: &Node) -> Result<Option<FileSize>> {
    let is_described = matches!(node.kind, NodeKind::Array(_) | NodeKind::Group);
    Ok(is_described.then_some(FileSize::Counted))
}

fn open(subject: &ViewSubject<'_>, syntax: Syntax) -> Result<Box<dyn View>> {
    let source = NdlSource {
        container: Arc::clone(&subject.file.container),
        engine: Arc::clone(&subject.file.engine),
        paths: subject.path_finder(),
    };
    let description = NdlDescription {
        source,
        node: subject.node.id,
        path: subject.path.clone(),
        options: NdlOptions {
            syntax,
            ..NdlOptions::default()
        },
    };
    subject.open_sequential_text(description, " (`h5fs ndl` writes one of any length)")
}

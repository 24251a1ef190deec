//! `.h5fs/cf`: variables by netCDF's conventions, as NumPy files and as long tables.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::forest::file_state::FileState;
use crate::fs::views::trees::view_tree::{
    Form, OF_NOTHING, Size, Subject, ViewTree, WITHOUT_FILES, viewed,
};
use crate::model::selector::Selector;
use crate::model::{Array, Node, NodeId};
use crate::view::View;
use crate::view::cf::decoded::{npy, npy_length};
use crate::view::cf::table::{Surroundings, table};
use crate::view::cf::variable::Variable;
use crate::view::elements::Elements;
use crate::view::pictures::framed::Framed;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"cf",
    number: 24,
    forms: &[
        Form {
            number: 25,
            suffix: b".npy",
            size: |file, node| match variable(file, node)? {
                Some(variable) => Ok(npy_length(&variable)?.map(Size::Exact)),
                None => Ok(None),
            },
            view: Some(|subject, elements| Ok(viewed(open_npy(subject, elements)?))),
            is_padded: true,
            ..OF_NOTHING
        },
        Form {
            number: 27,
            suffix: b".csv",
            size: |file, node| Ok(variable(file, node)?.map(|_| Size::Counted)),
            view: Some(|subject, elements| open_csv(subject, elements).map(Some)),
            is_padded: true,
            ..OF_NOTHING
        },
    ],
    ..WITHOUT_FILES
};

/// The variable that an object is, if it is one.
fn variable(file: &FileState, node: &Node) -> Result<Option<Variable>> {
    let path = || Ok(file.index().known_path(node.id)?.unwrap_or_default());
    Variable::of(&*file.container, node, &path)
}

/// The selector of the part that is shown, if it is one.
fn selector(subject: &Subject<'_>) -> Result<Option<Selector>> {
    match subject.selected {
        [] => Ok(None),
        text => Selector::parse(text).map(Some).ok_or(Error::NotFound),
    }
}

fn open_npy(subject: &Subject<'_>, elements: Elements) -> Result<Option<Framed>> {
    let variable = variable(subject.file, subject.node)?.ok_or(Error::NotFound)?;
    variable.check(selector(subject)?.as_ref())?;
    npy(variable, elements)
}

fn open_csv(subject: &Subject<'_>, elements: Elements) -> Result<Box<dyn View>> {
    let file = subject.file;
    let variable = variable(file, subject.node)?.ok_or(Error::NotFound)?;
    let open = |node: NodeId, array: &Arc<Array>| {
        (subject.verify)(node)?;
        Elements::whole(file.reader(node, array)?)
    };
    let around = Surroundings {
        container: file.variables(),
        engine: Arc::clone(&file.engine),
        paths: subject.paths(),
        open: &open,
    };
    let selector = selector(subject)?;
    subject.counted(table(
        variable,
        &subject.known_path()?,
        elements,
        selector.as_ref(),
        &around,
    )?)
}

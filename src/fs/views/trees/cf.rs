//! `.h5fs/cf`: variables by netCDF's conventions, as NumPy files, and as long tables.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::forest::file_state::FileState;
use crate::fs::views::trees::parquet;
use crate::fs::views::trees::view_tree::{
    Form, OF_NOTHING, Size, Subject, ViewTree, WITHOUT_FILES, viewed,
};
use crate::model::selector::Selector;
use crate::model::{Array, Node, NodeId};
use crate::view::View;
use crate::view::cf::decoded::{npy, npy_length};
use crate::view::cf::table::{LongTable, Surroundings, columns, table};
use crate::view::cf::variable::Variable;
use crate::view::elements::Elements;
use crate::view::parquet::long_table as long_parquet;
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
        Form {
            number: 45,
            suffix: b".parquet",
            size: |file, node| Ok(variable(file, node)?.map(|_| Size::Counted)),
            view: Some(|subject, elements| open_parquet(subject, elements).map(Some)),
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
    let long = long_table(subject, elements)?;
    subject.counted(table(long, Arc::clone(&subject.file.engine))?)
}

fn open_parquet(subject: &Subject<'_>, elements: Elements) -> Result<Box<dyn View>> {
    let long = long_table(subject, elements)?;
    let description = parquet::description(subject, &subject.known_path()?)?;
    // A chunk holds whole rows of the other dimensions, about.
    let dims = subject
        .node
        .array()
        .map_or(&[][..], |array| array.shape.dims());
    let inner = dims
        .iter()
        .skip(1)
        .fold(1, |all: u64, &dim| all.saturating_mul(dim));
    let unit = parquet::rows_of_a_chunk(subject).saturating_mul(inner.max(1));
    let pointers = parquet::pointers(subject);
    parquet::file(subject, long_parquet(long, unit, pointers, description)?)
}

/// The table of a variable and its coordinates: a row for each value.
fn long_table(subject: &Subject<'_>, elements: Elements) -> Result<LongTable> {
    let file = subject.file;
    let variable = variable(file, subject.node)?.ok_or(Error::NotFound)?;
    let open = |node: NodeId, array: &Arc<Array>| {
        (subject.verify)(node)?;
        Elements::whole(file.reader(node, array)?)
    };
    let around = Surroundings {
        container: file.variables(),
        paths: subject.paths(),
        open: &open,
    };
    let selector = selector(subject)?;
    columns(
        variable,
        &subject.known_path()?,
        elements,
        selector.as_ref(),
        &around,
    )
}

//! `.h5fs/cf`: variables by netCDF's conventions, as NumPy files and as long tables. Variables of a
//! group with the same axes share a table.

use std::sync::Arc;

use h5fs_conventions::table_budget::TableBudget;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Array, Node, NodeId};
use h5fs_reader::wire::to_u64;
use h5fs_view::cf::decoded::{npy_file, npy_length};
use h5fs_view::cf::group_variables::{self, GroupVariable};
use h5fs_view::cf::table::{
    LongTable, VariableContext, create_csv_table, group_columns, variable_columns,
};
use h5fs_view::cf::variable::Variable;
use h5fs_view::elements::Elements;
use h5fs_view::framed::FramedFile;
use h5fs_view::parquet::{KeyValueMetadata, long_table as long_parquet};
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::limits;
use crate::views::trees::csv::{is_plain_group, table_group};
use crate::views::trees::parquet;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree, boxed_if_some,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"cf",
    number: 24,
    root_name: Some(b"%"),
    forms: &[
        ViewForm {
            number: 25,
            suffix: b".npy",
            size: |file, node| match netcdf_variable(file, node)? {
                Some(variable) => Ok(npy_length(&variable)?.map(FileSize::Exact)),
                None => Ok(None),
            },
            open_elements: Some(|subject, elements| {
                Ok(boxed_if_some(open_npy(subject, elements)?))
            }),
            shows_padded_variable: true,
            ..EMPTY_FORM
        },
        ViewForm {
            number: 27,
            suffix: b".csv",
            size: table_size,
            open_elements: Some(|subject, elements| open_csv(subject, elements).map(Some)),
            open: group_csv,
            has_rows: true,
            shows_padded_variable: true,
            ..EMPTY_FORM
        },
        ViewForm {
            number: 45,
            suffix: b".parquet",
            size: table_size,
            open_elements: Some(|subject, elements| open_parquet(subject, elements).map(Some)),
            open: group_parquet,
            has_rows: true,
            shows_padded_variable: true,
            ..EMPTY_FORM
        },
    ],
    ..EMPTY_TREE
};

/// Returns the size of the file of a table: always [`FileSize::Counted`], because the bytes of the
/// table's lines must be counted. Returns `None` if the object is not a table.
fn table_size(file: &FileState, node: &Node) -> Result<Option<FileSize>> {
    let is_there = if is_plain_group(node) {
        *file.derived(
            node.id,
            b"has variables",
            |_| 0,
            || {
                let (variables, budget) = (file.padded_variables(), TableBudget::default());
                group_variables::has_variables(&table_group(file, &*variables, node, &budget))
            },
        )?
    } else {
        netcdf_variable(file, node)?.is_some()
    };
    Ok(is_there.then_some(FileSize::Counted))
}

/// Returns the object `node` as a netCDF variable, if it is one.
fn netcdf_variable(file: &FileState, node: &Node) -> Result<Option<Variable>> {
    let path = || Ok(file.path_index().checked_path(node.id)?.unwrap_or_default());
    Variable::from_node(&*file.container, node, &path)
}

/// Returns the selector of the part of the variable that the file shows, if the file shows a part.
fn selector(subject: &ViewSubject<'_>) -> Result<Option<Selector>> {
    match subject.selector {
        [] => Ok(None),
        text => Selector::parse(text).map(Some).ok_or(Error::NotFound),
    }
}

fn open_npy(subject: &ViewSubject<'_>, elements: Elements) -> Result<Option<FramedFile>> {
    let variable = netcdf_variable(subject.file, subject.node)?.ok_or(Error::NotFound)?;
    variable.check_selection(selector(subject)?.as_ref())?;
    npy_file(variable, elements)
}

fn open_csv(subject: &ViewSubject<'_>, elements: Elements) -> Result<Box<dyn View>> {
    let long = long_table(subject, elements)?;
    let rows = 0..long.rows;
    subject.open_units(create_csv_table(
        long,
        rows,
        Arc::clone(&subject.file.engine),
    )?)
}

fn group_csv(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let long = group_table(subject)?;
    let rows = subject.selected_rows(long.rows)?;
    subject.open_units(create_csv_table(
        long,
        rows,
        Arc::clone(&subject.file.engine),
    )?)
}

fn open_parquet(subject: &ViewSubject<'_>, elements: Elements) -> Result<Box<dyn View>> {
    let long = long_table(subject, elements)?;
    let description = parquet::key_value_metadata(subject, &subject.known_path()?)?;
    let unit = match subject.selector {
        [] => rows_per_chunk(subject.node),
        _ => 1,
    };
    let pointers = parquet::pointer_context(subject);
    parquet::open_table_file(subject, long_parquet(long, unit, pointers, description)?)
}

fn group_parquet(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let (members, path) = shared_table_variables(subject)?;
    let container = subject.file.padded_variables();
    let mut description = KeyValueMetadata::new(&subject.known_path()?);
    for member in &members {
        description.add_attributes(&*container, &member.name, member.node.id)?;
    }
    let units = members.iter().map(|member| rows_per_chunk(&member.node));
    let unit = units.min().unwrap_or(1);
    let long = group_columns(
        members,
        &path,
        &variable_context(subject, &elements_opener(subject)),
    )?;
    Error::check_limit(
        to_u64(long.columns.len()),
        limits::PARQUET_COLUMNS,
        "columns of a Parquet file",
    )?;
    let rows = subject.selected_rows(long.rows)?;
    let table = long_parquet(long, unit, parquet::pointer_context(subject), description)?;
    parquet::open_table_file(subject, table.with_rows(rows))
}

/// Returns the approximate number of rows of a long table whose values are in one chunk of the
/// array. For the estimate, a chunk extends over the whole length of all dimensions but the first.
fn rows_per_chunk(node: &Node) -> u64 {
    let Some(array) = node.array() else {
        return 1;
    };
    let inner = array.shape.dims().iter().skip(1);
    let inner = inner.fold(1, |all: u64, &dim| all.saturating_mul(dim));
    let first = array.chunk_shape.as_deref().and_then(<[u64]>::first);
    first.copied().unwrap_or(1).saturating_mul(inner.max(1))
}

/// Returns the netCDF variables of a group that share a table, and the path of the group without a
/// slash at the end.
fn shared_table_variables(subject: &ViewSubject<'_>) -> Result<(Vec<GroupVariable>, Vec<u8>)> {
    let (file, budget) = (subject.file, TableBudget::default());
    let path = subject.known_path()?;
    let path = path.strip_suffix(b"/").unwrap_or(&path).to_vec();
    let variables = file.padded_variables();
    let group = table_group(file, &*variables, subject.node, &budget);
    Ok((
        group_variables::shared_table_variables(&group, &path)?,
        path,
    ))
}

/// Returns the table that the variables of a group share.
fn group_table(subject: &ViewSubject<'_>) -> Result<LongTable> {
    let (members, path) = shared_table_variables(subject)?;
    group_columns(
        members,
        &path,
        &variable_context(subject, &elements_opener(subject)),
    )
}

/// Returns the long table of a variable and its coordinates, with one row for each value of the
/// variable.
fn long_table(subject: &ViewSubject<'_>, elements: Elements) -> Result<LongTable> {
    let variable = netcdf_variable(subject.file, subject.node)?.ok_or(Error::NotFound)?;
    variable_columns(
        variable,
        &subject.known_path()?,
        elements,
        selector(subject)?.as_ref(),
        &variable_context(subject, &elements_opener(subject)),
    )
}

fn variable_context<'a>(
    subject: &ViewSubject<'_>,
    open: &'a OpenElements<'a>,
) -> VariableContext<'a> {
    VariableContext {
        container: subject.file.padded_variables(),
        paths: subject.path_finder(),
        open,
    }
}

/// A function that opens all elements of an array.
type OpenElements<'a> = dyn Fn(NodeId, &Arc<Array>) -> Result<Elements> + 'a;

fn elements_opener(subject: &ViewSubject<'_>) -> impl Fn(NodeId, &Arc<Array>) -> Result<Elements> {
    |node, array| {
        (subject.verify)(node)?;
        Elements::from_reader(subject.file.reader(node, array)?)
    }
}

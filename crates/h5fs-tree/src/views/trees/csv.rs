//! `.h5fs/csv`: arrays, and groups that are tables, as comma-separated values.

use std::sync::Arc;

use h5fs_conventions::table_budget::TableBudget;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::{Array, Container, Node, NodeKind};
use h5fs_view::csv::CsvTable;
use h5fs_view::csv::array;
use h5fs_view::csv::fields::{ColumnReader, ColumnsFromRow};
use h5fs_view::elements::formatting_cost;
use h5fs_view::table::TableConvention;
use h5fs_view::table::column::{ColumnSource, GroupTable};
use h5fs_view::table::group::Group;
use h5fs_view::table::rows::{TableContext, TableRows};
use h5fs_view::table::runs;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::views::trees::mask;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree, boxed_view,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"csv",
    number: 8,
    root_name: Some(b"%"),
    forms: &[ViewForm {
        number: 9,
        suffix: b".csv",
        size: |file, node| {
            if is_plain_group(node) {
                return Ok(convention(file, node)?.map(|_| FileSize::Counted));
            }
            let has_columns = |array: &&Arc<Array>| formatting_cost(&array.datatype) > 0;
            Ok(node.array().filter(has_columns).map(|_| FileSize::Counted))
        },
        open_elements: Some(|subject, elements| {
            let engine = Arc::clone(&subject.file.engine);
            let container = Arc::clone(&subject.file.container);
            let elements = subject.intended_elements(elements)?;
            let missing = mask::masked_elements(subject, &elements)?;
            let paths = subject.path_finder();
            let table = array::table(elements, missing, engine, container, paths)?;
            table.map(|table| subject.open_units(table)).transpose()
        }),
        open: |subject| {
            if is_plain_group(subject.node) {
                group_table(subject)
            } else {
                Err(Error::NotFound)
            }
        },
        has_rows: true,
        shows_intended_array: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

/// Returns whether the node is a group, other than a group whose members together form a single
/// array.
pub(super) fn is_plain_group(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Group) && node.assembled_array.is_none()
}

/// Returns the convention by which a group is a table, or `None` if the group is not a table.
pub(super) fn convention(file: &FileState, node: &Node) -> Result<Option<TableConvention>> {
    let found = file.derived(
        node.id,
        b"table convention",
        |_| 0,
        || {
            let (variables, budget) = (file.padded_variables(), TableBudget::default());
            TableConvention::detect(&table_group(file, &*variables, node, &budget))
        },
    );
    found.map(|found| *found)
}

pub(super) fn table_group<'a>(
    file: &'a FileState,
    container: &'a dyn Container,
    node: &Node,
    budget: &'a TableBudget,
) -> Group<'a> {
    Group {
        container,
        engine: &file.engine,
        budget,
        id: node.id,
    }
}

/// Returns the table of a group. Checks the indexes of columns whose values have varying length.
///
/// # Errors
/// `NotFound` if the group is not a table; fails if a column is missing or an index is damaged.
pub(super) fn group_columns(subject: &ViewSubject<'_>) -> Result<GroupTable> {
    let (file, node) = (subject.file, subject.node);
    let convention = convention(file, node)?.ok_or(Error::NotFound)?;
    let variables = file.padded_variables();
    let table = convention.table(&table_group(
        file,
        &*variables,
        node,
        &TableBudget::default(),
    ))?;
    for column in &table.columns {
        if let ColumnSource::Runs { ends, rows } = &column.source {
            let check =
                || runs::check_run_ends(ends, *rows, &file.engine, &file.budget.cancel_token());
            let checked = || check().map(|()| InMemoryContent::new(Vec::new()));
            file.cached_text(node.id, b".runs", checked)?;
        }
    }
    Ok(table)
}

/// Opens the rows of a group's table.
///
/// # Errors
/// Fails if a column cannot be opened.
pub(super) fn open_group_rows(subject: &ViewSubject<'_>, table: GroupTable) -> Result<TableRows> {
    let file = subject.file;
    let surroundings = TableContext {
        engine: Arc::clone(&file.engine),
        container: file.padded_variables(),
        paths: subject.path_finder(),
    };
    TableRows::open(table, surroundings, subject.verify)
}

/// Opens the CSV file of a group's table.
fn group_table(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let columns = group_columns(subject)?;
    let shown_rows = subject.selected_rows(columns.rows)?;
    let rows = open_group_rows(subject, columns)?;
    if rows.names().is_empty() {
        return boxed_view(Some(InMemoryContent::new(Vec::new())));
    }
    let engine = Arc::clone(&subject.file.engine);
    let count = shown_rows.end - shown_rows.start;
    let fields = ColumnsFromRow {
        fields: rows,
        first: shown_rows.start,
    };
    let table = CsvTable::with_header(vec![Box::new(fields)], count, engine)?;
    subject.open_units(table.pad_if_long())
}

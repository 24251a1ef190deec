//! `.h5fs/parquet`: arrays, and groups that are tables, as Parquet files.

use std::sync::Arc;

use h5fs_conventions::dimensions::last_name;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Node;
use h5fs_view::elements::{Elements, element_type};
use h5fs_view::parquet::{
    BoundsCache, FilePlan, KeyValueMetadata, ParquetTable, PointerContext, TableSource,
    array_table, group_table, has_columns,
};
use h5fs_view::text_files::bounds::TextLengthLimits;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::limits;
use crate::views::trees::csv::{convention, group_columns, is_plain_group};
use crate::views::trees::mask;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree, boxed_if_some,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"parquet",
    number: 42,
    root_name: Some(b"%"),
    forms: &[ViewForm {
        number: 43,
        suffix: b".parquet",
        size,
        open_elements: Some(open_array),
        open: |subject| {
            if is_plain_group(subject.node) {
                open_group(subject)
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

/// Returns the size of the Parquet file of the object `node`, or `None` if the object has none. The
/// size is [`FileSize::Counted`], because the footer contains attributes, which a listing does not
/// read.
fn size(file: &FileState, node: &Node) -> Result<Option<FileSize>> {
    let has_file = match node.array() {
        _ if is_plain_group(node) => convention(file, node)?.is_some(),
        Some(array) => {
            let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
            has_columns(&datatype, dims.as_deref())
        }
        None => false,
    };
    Ok(has_file.then_some(FileSize::Counted))
}

fn open_array(subject: &ViewSubject<'_>, elements: Elements) -> Result<Option<Box<dyn View>>> {
    let elements = subject.intended_elements(elements)?;
    let missing = mask::masked_elements(subject, &elements)?;
    let path = subject.known_path()?;
    let name = last_name(&path);
    let table = array_table(
        elements,
        missing,
        name,
        rows_per_chunk(subject),
        pointer_context(subject),
        key_value_metadata(subject, &path)?,
    )?;
    table
        .map(|table| open_table_file(subject, table))
        .transpose()
}

fn open_group(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let around = TableSource {
        engine: Arc::clone(&subject.file.engine),
        container: subject.file.padded_variables(),
        paths: subject.path_finder(),
        verify: subject.verify,
        cancel: subject.file.budget.cancel_token(),
    };
    let columns = group_columns(subject)?;
    let mut description = KeyValueMetadata::new(&subject.known_path()?);
    for column in &columns.columns {
        if let Some(node) = column.source.node() {
            description.add_attributes(&*around.container, &column.name, node)?;
        }
    }
    let rows = subject.selected_rows(columns.rows)?;
    let table = group_table(&columns, &around, description)?;
    open_table_file(subject, table.with_rows(rows))
}

/// Opens the Parquet file of a table. If the lengths of its pages are known only after their values
/// are encoded, these lengths are cached.
///
/// # Errors
/// Fails if the lengths of the pages cannot be determined, or if the table exceeds a limit of the
/// Parquet format.
pub(super) fn open_table_file(
    subject: &ViewSubject<'_>,
    table: ParquetTable,
) -> Result<Box<dyn View>> {
    let plan = FilePlan::new(table)?;
    let file = if plan.needs_counting() {
        // Texts stored once for each element are not longer than the file.
        let most = limits::COUNTED_BYTES.max(subject.file.origin.size);
        let of_count = TextLengthLimits::new(subject.file.budget.cancel_token(), most);
        let counted = || plan.count_columns(&of_count).map(InMemoryContent::new);
        let shown = cache_name(subject, b".parquet ");
        let counted = subject.file.cached_text(subject.node.id, &shown, counted)?;
        plan.file(counted.bytes(), bounds_cache(subject))?
    } else {
        plan.file(&[], bounds_cache(subject))?
    };
    boxed_if_some(Some(file)).ok_or(Error::NotFound)
}

/// Returns the name under which a value of the object, called `what`, is cached. The name contains
/// the number of the file's form and the selector, because each form and each part has a value of
/// its own.
fn cache_name(subject: &ViewSubject<'_>, what: &[u8]) -> Vec<u8> {
    let form = subject.form_number.to_string();
    [what, form.as_bytes(), subject.selector].concat()
}

/// Returns a function that caches the bounds (minimum and maximum) of the table's columns.
fn bounds_cache(subject: &ViewSubject<'_>) -> BoundsCache {
    let (file, node) = (Arc::clone(subject.file), subject.node.id);
    let shown = cache_name(subject, b".parquet bounds ");
    Box::new(move |find| file.cached_text(node, &shown, find))
}

pub(super) fn pointer_context(subject: &ViewSubject<'_>) -> PointerContext {
    PointerContext {
        container: subject.file.padded_variables(),
        paths: subject.path_finder(),
    }
}

/// Returns the number of rows (indices of the first dimension) in one chunk. These rows are decoded
/// together. Returns 1 for a selection.
fn rows_per_chunk(subject: &ViewSubject<'_>) -> u64 {
    let Some(array) = subject.node.array().filter(|_| subject.selector.is_empty()) else {
        return 1;
    };
    let Some((first, _)) = array.chunk_shape.as_deref().and_then(<[u64]>::split_first) else {
        return 1;
    };
    *first
}

/// Returns the description of the object at `path` that the footer of its Parquet file contains.
///
/// # Errors
/// Fails if an attribute cannot be read now.
pub(super) fn key_value_metadata(
    subject: &ViewSubject<'_>,
    path: &[u8],
) -> Result<KeyValueMetadata> {
    let mut description = KeyValueMetadata::new(path);
    let container = &*subject.file.container;
    description.add_attributes(container, last_name(path), subject.node.id)?;
    Ok(description)
}

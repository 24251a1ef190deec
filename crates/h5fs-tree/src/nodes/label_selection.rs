//! Selectors that name dimensions, converted to selectors of positions before any view uses them.

use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::selector::labels::LabelSelector;
use h5fs_reader::model::{Container, Node};
use h5fs_reader::wire::to_u64;
use h5fs_view::cf::labels;
use h5fs_view::cf::table::VariableContext;
use h5fs_view::elements::Elements;

use crate::data_files::file_state::FileState;

/// The result of a conversion: a selector of positions, or the reason why there is none.
type PositionalSelector = std::result::Result<Vec<u8>, String>;

/// Converts `selector`, for the array of `node`, to a selector without names of dimensions. Returns
/// any other selector unchanged. If `is_padded` is true, the array and its coordinates have the
/// full length of their unlimited dimensions.
///
/// # Errors
/// Fails if a coordinate cannot be read.
pub(super) fn positional_selector(
    file: &Arc<FileState>,
    node: &Node,
    selector: Vec<u8>,
    is_padded: bool,
) -> Result<PositionalSelector> {
    let selects = |selector: &Selector| {
        let array = node.array();
        array.is_some_and(|array| selector.select(&array.datatype, &array.shape).is_ok())
    };
    // The name of a field may look like the name of a dimension with a value.
    if Selector::parse(&selector).is_some_and(|parsed| selects(&parsed)) {
        return Ok(Ok(selector));
    }
    let parsed = match LabelSelector::parse(&selector) {
        Ok(Some(parsed)) if node.array().is_some() => parsed,
        Ok(_) => return Ok(Ok(selector)),
        Err(reason) => return Ok(Err(reason)),
    };
    let container = if is_padded {
        file.padded_variables()
    } else {
        Arc::clone(&file.container)
    };
    let convert = || convert(file, container, node, &parsed);
    let weight =
        |found: &PositionalSelector| to_u64(found.as_ref().map_or_else(String::len, Vec::len));
    let name = [&b"labels "[..], &[is_padded.into()], &selector].concat();
    let found = file.derived(node.id, &name, weight, convert)?;
    Ok(PositionalSelector::clone(&found))
}

fn convert(
    file: &Arc<FileState>,
    container: Arc<dyn Container>,
    node: &Node,
    selector: &LabelSelector<'_>,
) -> Result<PositionalSelector> {
    let index = Arc::clone(file);
    let around = VariableContext {
        paths: Arc::new(move |node| index.path_index().checked_path(node)),
        open: &|node, array| Elements::from_reader(file.reader(node, array)?),
        container,
    };
    let node = around.container.node(node.id)?;
    let path = (around.paths)(node.id)?.unwrap_or_default();
    let cancel = file.budget.cancel_token();
    labels::positional_selector(selector, &node, &path, &around, &cancel)
}

//! `.h5fs/netcdf` and `.h5fs/file.nc`: groups, and arrays with their coordinate variables, as netCDF
//! classic files.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::{Array, Container, Node, NodeId};
use h5fs_view::elements::Elements;
use h5fs_view::netcdf::group_file::{array_file, group_file, is_variable};
use h5fs_view::netcdf::source::{MeasureTexts, NetcdfSource};
use h5fs_view::text_files::bounds::TextLengthLimits;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::data_files::file_state::FileState;
use crate::limits;
use crate::views::store_object::group_has_arrays;
use crate::views::trees::csv::is_plain_group;
use crate::views::trees::part::{self, ShownPart};
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"netcdf",
    number: 50,
    forms: &[ViewForm {
        number: 51,
        suffix: b".nc",
        size,
        open,
        has_parts: true,
        shows_padded_variable: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

/// Returns the size of the netCDF file of the object `node`, or `None` if the object has none. The
/// size is [`FileSize::Counted`], because the header contains attributes, which a listing does not
/// read.
fn size(file: &FileState, node: &Node) -> Result<Option<FileSize>> {
    let has_file = match node.array() {
        Some(array) => is_variable(&*file.container, node.id, array)?,
        None => is_plain_group(node) && is_group_of_variables(file, node.id)?,
    };
    Ok(has_file.then_some(FileSize::Counted))
}

/// Returns whether a group has a file. A mapping or a sequence of ASDF has none if no array is in
/// it, unless it is the root.
fn is_group_of_variables(file: &FileState, group: NodeId) -> Result<bool> {
    let container = &*file.container;
    if container.asdf_extras().is_none() || group == container.root() {
        return Ok(true);
    }
    group_has_arrays(file, group)
}

fn open(subject: &ViewSubject<'_>) -> Result<Box<dyn View>> {
    let file = subject.file;
    let part = ShownPart::new(subject, &file.padded_variables())?;
    let scales = part.as_ref().map(|part| part.scales.clone());
    let part = part.map(|part| part.container);
    let open = |node: NodeId, array: &Arc<Array>| {
        (subject.verify)(node)?;
        Elements::from_reader(ShownPart::reader(part.as_deref(), file, node, array)?)
    };
    let paths = |node| file.path_index().checked_path(node);
    let container = match &part {
        Some(part) => Arc::clone(part) as Arc<dyn Container>,
        None => file.padded_variables(),
    };
    let stored = stored_part(subject)?.unwrap_or_else(|| match &part {
        Some(_) => Arc::clone(&container),
        None => Arc::clone(&file.container),
    });
    let source = NetcdfSource {
        container: Arc::clone(&container),
        stored: &*stored,
        engine: &file.engine,
        paths: &paths,
        open: &open,
        text_width: &|node, measure| text_width(subject, node, measure),
    };
    let opened = match subject.node.array() {
        Some(_) => {
            let node = container.node(subject.node.id)?;
            let path = subject.known_path()?;
            let own = part::scales(subject, subject.node)?;
            let named = part::named_variables(subject, subject.node, &own)?;
            let named: Vec<NodeId> = named.iter().map(|variable| variable.node).collect();
            array_file(&source, &node, &path, &scales.unwrap_or_default(), &named)?
        }
        None if is_plain_group(subject.node) => group_file(&source, subject.node.id)?,
        None => return Err(Error::NotFound),
    };
    Ok(Box::new(opened))
}

/// Returns the selected part of the stored array, which says which dimensions are unlimited.
/// Returns `None` if the stored array, which can be shorter than the shown one, does not have it.
fn stored_part(subject: &ViewSubject<'_>) -> Result<Option<Arc<dyn Container>>> {
    match ShownPart::new(subject, &subject.file.container) {
        Ok(part) => Ok(part.map(|part| part.container as Arc<dyn Container>)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the length of the longest text of an array, from the cache or from `measure`. All files
/// with this array need the length, and permanent errors are cached too.
fn text_width(subject: &ViewSubject<'_>, node: NodeId, measure: &MeasureTexts<'_>) -> Result<u64> {
    let file = subject.file;
    let bounds = TextLengthLimits::new(file.budget.cancel_token(), limits::COUNTED_BYTES);
    let measured = || {
        let width: u64 = measure(&bounds)?;
        Ok(InMemoryContent::new(width.to_le_bytes().to_vec()))
    };
    let name = [b".nc width", subject.selector].concat();
    let measured = file.cached_text(node, &name, measured)?;
    let width = measured.bytes().first_chunk().copied();
    Ok(u64::from_le_bytes(width.unwrap_or_default()))
}

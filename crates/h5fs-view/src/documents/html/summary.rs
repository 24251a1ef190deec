//! The short description of an object in a list of members: its kind, and its value if it has only
//! one element.

use std::sync::Arc;

use h5fs_reader::array::Reader;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::storage::{Filter, Pipeline};
use h5fs_reader::model::{Array, Node, NodeKind, Shape};
use h5fs_reader::wire::to_usize;

use crate::csv::array::ArrayColumns;
use crate::csv::fields::ColumnReader;
use crate::documents::attributes::pipeline_text;
use crate::documents::html::object::PageObject;
use crate::elements::Elements;
use crate::limits;

/// Attributes by which conventions name the kind of an object: NeXus, NWB, AnnData, BioSimulations,
/// PyTables.
const KIND_ATTRIBUTES: [&[u8]; 5] = [
    b"NX_class",
    b"neurodata_type",
    b"encoding-type",
    b"_type",
    b"TITLE",
];

/// Returns the kind of `node` from the attributes in `KIND_ATTRIBUTES`, or the long name and unit
/// of an array. Returns `None` if no such attribute exists. In a remote source, only groups are
/// examined, because each attribute may need a request.
///
/// # Errors
/// Fails if an attribute cannot be read.
pub(super) fn kind_label(object: &PageObject<'_>, node: &Node) -> Result<Option<Vec<u8>>> {
    let container = &**object.container;
    let known = |name: &[u8]| -> Result<Option<Vec<u8>>> {
        let text = attribute_text(container, node.id, name)?;
        Ok(text.filter(|text| !text.is_empty()))
    };
    let is_group = matches!(node.kind, NodeKind::Group);
    if container.asdf_extras().is_some() || container.is_remote() && !is_group {
        return Ok(None);
    }
    if node.array().is_some() {
        let (name, unit) = (known(b"long_name")?, known(b"units")?);
        // The long name may already contain the unit.
        let is_told = name.as_ref().is_some_and(|name| name.ends_with(b"]"));
        let unit = unit.filter(|_| !is_told);
        let unit = unit.map(|unit| [b"[", &unit[..], b"]"].concat());
        if name.is_some() || unit.is_some() {
            let parts: Vec<Vec<u8>> = name.into_iter().chain(unit).collect();
            return Ok(Some(parts.join(&b' ')));
        }
    }
    for name in KIND_ATTRIBUTES {
        if let Some(kind) = known(name)? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// Returns the text of the only element of an array. Returns `None` if there are more elements, or
/// if reading the element is costly.
///
/// # Errors
/// Fails if the element cannot be read.
pub(super) fn single_value(object: &PageObject<'_>, array: &Arc<Array>) -> Result<Option<Vec<u8>>> {
    let decoded = array.filtered_chunk().map_or(0, |(_, bytes)| bytes);
    let is_one = array.shape != Shape::Null && array.shape.elements() == Ok(1);
    let is_cheap = u64::from(array.datatype.size) <= limits::HTML_GLANCE
        && decoded <= limits::HTML_GLANCE
        && !object.container.is_remote();
    // Encoded streams and virtual arrays may take long to read.
    let is_near = matches!(
        array.storage,
        Ok(Storage::Fill | Storage::Inline(_) | Storage::Extents(_) | Storage::Chunked(_))
    );
    if !is_one || !is_cheap || !is_near {
        return Ok(None);
    }
    let reader = Reader::new(object.engine, Arc::clone(array))?;
    let elements = Elements::from_reader(Arc::new(reader))?;
    let container = Arc::clone(object.container);
    let fields = ArrayColumns::new(elements, b"", container, Arc::clone(&object.paths))?;
    let Some(fields) = fields.filter(|fields| fields.names().len() == 1) else {
        return Ok(None);
    };
    let mut text = Vec::new();
    let most = to_usize(limits::HTML_GLANCE)?;
    match fields
        .read(0..1, &object.cancel)?
        .write(0, 0, most, &mut text)
    {
        Ok(_) => Ok(Some(text)),
        Err(Error::Limit { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Describes in words the filters of an array, compression first.
pub(super) fn describe_filters(pipeline: &Pipeline) -> String {
    let mut words: Vec<(u8, String)> = pipeline.0.iter().map(filter_words).collect();
    words.sort_by_key(|(place, _)| *place);
    let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
    words.join(", ")
}

fn filter_words(filter: &Filter) -> (u8, String) {
    let (place, word) = match (filter.id, filter.parameters.first()) {
        (1, Some(level)) => return (0, format!("gzip level {level}")),
        (1, None) => (0, "gzip"),
        (2, _) => (1, "shuffled"),
        (3, _) => (2, "with checksums"),
        (5, _) => (0, "packed bits"),
        (6, _) => (0, "scaled to fewer bits"),
        (32_008, _) => (1, "bits shuffled"),
        _ => return (0, pipeline_text(&Pipeline(vec![filter.clone()]))),
    };
    (place, word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_in_words() {
        let filter = |id, parameters: &[u32]| Filter {
            id,
            name: None,
            parameters: parameters.to_vec(),
        };
        let words = |filters_: &[Filter]| describe_filters(&Pipeline(filters_.to_vec()));
        let usual = [filter(2, &[4]), filter(1, &[4]), filter(3, &[])];
        assert_eq!(words(&usual), "gzip level 4, shuffled, with checksums");
        assert_eq!(words(&[]), "");
        assert_eq!(words(&[filter(4, &[])]), "szip");
    }
}

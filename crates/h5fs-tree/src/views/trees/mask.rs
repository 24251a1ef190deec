//! `.h5fs/mask`: the mask of an ASDF ndarray, which marks its missing elements.

use std::sync::Arc;

use h5fs_reader::array::Reader;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::extras::Mask;
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::{Array, Node};
use h5fs_reader::wire::to_u64;
use h5fs_view::elements::Elements;
use h5fs_view::elements::missing::MissingValues;
use h5fs_view::elements::part::ArrayPart;
use h5fs_view::text_files::text::InMemoryContent;

use crate::data_files::file_state::FileState;
use crate::nodes::object::refuse_temporarily_unreadable;
use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewSubject, ViewTree, boxed_view,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"mask",
    number: 12,
    forms: &[ViewForm {
        number: 13,
        size: |file, node| {
            Ok(match mask_of(file, node)? {
                Some(MaskSource::Number(text)) => Some(FileSize::Exact(to_u64(text.len()))),
                Some(MaskSource::Array(array)) => {
                    refuse_temporarily_unreadable(&array)?;
                    Some(FileSize::Exact(array.byte_length()?))
                }
                None => None,
            })
        },
        open: |subject| match checked_mask(subject)? {
            Some(MaskSource::Number(text)) => boxed_view(Some(InMemoryContent::new(text))),
            Some(MaskSource::Array(array)) => subject.file.open_bytes(array),
            None => Err(Error::NotFound),
        },
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

/// The content of the mask file of an ndarray.
enum MaskSource {
    /// The text of a number. The elements equal to this number are missing.
    Number(Vec<u8>),
    /// An array with the shape of the ndarray. Elements are missing where it is nonzero.
    Array(Arc<Array>),
}

fn mask_of(file: &FileState, node: &Node) -> Result<Option<MaskSource>> {
    let Some(extras) = file.container.asdf_extras() else {
        return Ok(None);
    };
    Ok(match extras.mask(node.id)? {
        Some(Mask::Number(text)) => Some(MaskSource::Number(text)),
        Some(Mask::Node(mask)) => {
            let mask = file.container.node(mask)?;
            let array = mask.array().map(Arc::clone);
            let no_array = || Error::corrupt("ndarray: its mask is not an ndarray", None);
            Some(MaskSource::Array(array.ok_or_else(no_array)?))
        }
        Some(Mask::Array(mask)) => Some(MaskSource::Array(mask)),
        None => None,
    })
}

fn checked_mask(subject: &ViewSubject<'_>) -> Result<Option<MaskSource>> {
    let extras = subject.file.container.asdf_extras();
    let mask = extras.map(|extras| extras.mask(subject.node.id));
    if let Some(Some(Mask::Node(mask))) = mask.transpose()? {
        (subject.verify)(mask)?;
    }
    mask_of(subject.file, subject.node)
}

/// Returns which of `elements` are missing according to the ndarray's mask. Returns `None` if the
/// ndarray has no mask.
///
/// # Errors
/// Fails if the mask cannot be read, or its shape does not match.
pub(super) fn masked_elements(
    subject: &ViewSubject<'_>,
    elements: &Elements,
) -> Result<Option<MissingValues>> {
    let array = match checked_mask(subject)? {
        Some(MaskSource::Number(text)) => return MissingValues::from_number_text(&text).map(Some),
        Some(MaskSource::Array(array)) => array,
        None => return Ok(None),
    };
    array.storage.as_ref().map_err(Clone::clone)?;
    let reader = Arc::new(Reader::new(&subject.file.engine, array)?);
    let mask = match subject.selector {
        b"" => Elements::from_reader(reader)?,
        selected => {
            let selector = Selector::parse(selected).ok_or(Error::NotFound)?;
            ArrayPart::new(reader, &selector)?.into_elements(None)?
        }
    };
    MissingValues::from_mask(mask, elements.dims.as_deref().unwrap_or_default()).map(Some)
}

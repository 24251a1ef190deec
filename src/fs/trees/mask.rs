//! `.h5fs/mask`: the mask of an ASDF ndarray, which marks its missing elements.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::file_state::FileState;
use crate::fs::trees::view_tree::{
    Form, OF_NOTHING, Size, Subject, ViewTree, WITHOUT_FILES, refuse_unread, shown,
};
use crate::model::extras::Mask;
use crate::model::{Array, Node};
use crate::view::text::Text;
use crate::wire::to_u64;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"mask",
    number: 12,
    forms: &[Form {
        number: 13,
        size: |file, node| {
            Ok(match mask_of(file, node)? {
                Some(Masked::Number(text)) => Some(Size::Exact(to_u64(text.len()))),
                Some(Masked::Array(array)) => {
                    refuse_unread(&array)?;
                    Some(Size::Exact(array.bytes()?))
                }
                None => None,
            })
        },
        open: |subject| match checked_mask(subject)? {
            Some(Masked::Number(text)) => shown(Some(Text::new(text))),
            Some(Masked::Array(array)) => subject.file.open_bytes(array),
            None => Err(Error::NotFound),
        },
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};

/// The mask of an ndarray, as a file shows it.
enum Masked {
    /// The text of the number that they are equal to.
    Number(Vec<u8>),
    /// An array that is not zero where they are.
    Array(Arc<Array>),
}

fn mask_of(file: &FileState, node: &Node) -> Result<Option<Masked>> {
    let Some(extras) = file.container.extras() else {
        return Ok(None);
    };
    Ok(match extras.mask(node.id)? {
        Some(Mask::Number(text)) => Some(Masked::Number(text)),
        Some(Mask::Node(mask)) => file
            .container
            .node(mask)?
            .array()
            .map(|array| Masked::Array(Arc::clone(array))),
        Some(Mask::Array(mask)) => Some(Masked::Array(mask)),
        None => None,
    })
}

fn checked_mask(subject: &Subject<'_>) -> Result<Option<Masked>> {
    let extras = subject.file.container.extras();
    let mask = extras.map(|extras| extras.mask(subject.node.id));
    if let Some(Some(Mask::Node(mask))) = mask.transpose()? {
        (subject.verify)(mask)?;
    }
    mask_of(subject.file, subject.node)
}

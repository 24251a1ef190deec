//! `.h5fs/assembled`: the single array that the chunks of an ASDF `chunked-ndarray` form.

use crate::fs::views::trees::view_tree::{Form, OF_NOTHING, Size, ViewTree, WITHOUT_FILES, shown};
use crate::view::elements::raw::Raw;
use crate::view::texts::text::Text;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"assembled",
    number: 2,
    forms: &[Form {
        number: 3,
        size: |_, node| match &node.assembled {
            Some(array) => array.bytes().map(|bytes| Some(Size::Exact(bytes))),
            None => node.passing().cloned().map_or(Ok(None), Err),
        },
        open: |subject| {
            let array = subject.array()?;
            match array.bytes()? {
                0 => shown(Some(Text::new(Vec::new()))),
                _ => shown(Some(Raw::new(
                    subject.file.reader(subject.node.id, &array)?,
                ))),
            }
        },
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};

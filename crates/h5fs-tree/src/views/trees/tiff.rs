//! `.h5fs/tiff`: arrays of numbers, and parts of them, as TIFF files.

use h5fs_view::pictures::picture_style::{PictureStyle, read_image};
use h5fs_view::pictures::tiff;

use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, ViewForm, ViewTree, boxed_if_some,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"tiff",
    number: 34,
    forms: &[ViewForm {
        number: 35,
        suffix: b".tif",
        size: |file, node| {
            let image = read_image(&*file.container, node)?;
            Ok(tiff::length(image)?.map(FileSize::Exact))
        },
        open_elements: Some(|subject, elements| {
            let file = subject.file;
            let look = PictureStyle::read(
                &*file.container,
                &file.engine,
                subject.node,
                subject.selector,
                &file.budget.cancel_token(),
            )?;
            Ok(boxed_if_some(tiff::file(elements, look)?))
        }),
        shows_intended_array: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

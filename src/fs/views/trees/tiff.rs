//! `.h5fs/tiff`: arrays of numbers, and parts of them, as TIFF files.

use crate::fs::views::trees::view_tree::{
    FileSize, OF_NOTHING, ViewForm, ViewTree, WITHOUT_FILES, viewed,
};
use crate::view::pictures::picture_style::{PictureStyle, image_of};
use crate::view::pictures::tiff;

pub(super) const TREE: ViewTree = ViewTree {
    name: b"tiff",
    number: 34,
    forms: &[ViewForm {
        number: 35,
        suffix: b".tif",
        size: |file, node| {
            let image = image_of(&*file.container, node)?;
            Ok(tiff::length(image)?.map(FileSize::Exact))
        },
        view: Some(|subject, elements| {
            let file = subject.file;
            let look = PictureStyle::read(
                &*file.container,
                &file.engine,
                subject.node,
                subject.selected,
                &file.effort.cancel(),
            )?;
            Ok(viewed(tiff::file(elements, look)?))
        }),
        is_meant: true,
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};

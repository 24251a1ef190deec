//! `.h5fs/tiff`: arrays of numbers, and parts of them, as TIFF files.

use h5fs_view::pictures::georeference::GeoReference;
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
            let size = tiff::length(image)?.map(FileSize::Exact);
            // A listing does not read coordinates.
            let may_be_grid = size.is_some() && GeoReference::may_exist(&*file.container, node)?;
            Ok(size.map(|size| if may_be_grid { FileSize::Counted } else { size }))
        },
        open_elements: Some(|subject, elements| {
            let file = subject.file;
            let cancel = &file.budget.cancel_token();
            let mut look = PictureStyle::read(
                &*file.container,
                &file.engine,
                subject.node,
                subject.selector,
                cancel,
            )?;
            look.georeference = GeoReference::read(
                (&*file.container, &file.engine),
                subject.node,
                &subject.path,
                subject.selector,
                cancel,
            )?;
            Ok(boxed_if_some(tiff::file(elements, look)?))
        }),
        shows_intended_array: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

//! `.h5fs/tiff`: arrays of numbers, and parts of them, as TIFF files.

use h5fs_reader::error::ignore_permanent;
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
            let may_exist = ignore_permanent(GeoReference::may_exist(&*file.container, node))?;
            let may_be_grid = may_exist.unwrap_or(false);
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
            // A picture whose coordinates are damaged is a picture without a grid.
            let grid = GeoReference::read(
                (&*file.container, &file.engine),
                subject.node,
                &subject.known_path()?,
                subject.selector,
                cancel,
            );
            look.georeference = ignore_permanent(grid)?.flatten();
            Ok(boxed_if_some(tiff::file(elements, look)?))
        }),
        shows_intended_array: true,
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

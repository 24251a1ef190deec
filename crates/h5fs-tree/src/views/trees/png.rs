//! `.h5fs/png`: arrays of numbers, parts of them, and each picture of a stack, as PNG files.

use h5fs_reader::error::Result;
use h5fs_view::elements::Elements;
use h5fs_view::pictures::picture_style::{PictureStyle, read_image};
use h5fs_view::pictures::png::{self, PngFile};
use h5fs_view::view::View;

use crate::views::trees::view_tree::{
    EMPTY_FORM, EMPTY_TREE, FileSize, TreeShape, ViewForm, ViewSubject, ViewTree,
};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"png",
    number: 36,
    shape: TreeShape::Frames,
    forms: &[ViewForm {
        number: 37,
        suffix: b".png",
        size: |file, node| {
            let picture = read_image(&*file.container, node)?.filter(png::is_picture);
            Ok(picture.map(|_| FileSize::Counted))
        },
        open_elements: Some(open_picture),
        ..EMPTY_FORM
    }],
    ..EMPTY_TREE
};

fn open_picture(subject: &ViewSubject<'_>, elements: Elements) -> Result<Option<Box<dyn View>>> {
    let (file, object) = (subject.file, subject.node.id);
    let look = PictureStyle::read(
        &*file.container,
        &file.engine,
        subject.node,
        subject.selector,
        &file.budget.cancel_token(),
    )?;
    let picture = match PngFile::from_elements(elements, look) {
        None => return Ok(None),
        Some(PngFile::Stored(stored)) => return Ok(Some(Box::new(stored))),
        Some(PngFile::Compressed(picture)) => picture,
    };
    let name = [b".png", subject.selector].concat();
    let text = file.cached_text(object, &name, || {
        let cancel = file.budget.cancel_token();
        cancel.require_heavy_slot()?;
        picture.encode(&file.engine.reserve_memory(0)?, &cancel)
    })?;
    Ok(Some(Box::new(text)))
}

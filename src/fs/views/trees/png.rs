//! `.h5fs/png`: arrays of numbers, parts of them, and each picture of a stack, as PNG files.

use crate::error::Result;
use crate::fs::views::trees::view_tree::{
    Form, OF_NOTHING, Shape, Size, Subject, ViewTree, WITHOUT_FILES,
};
use crate::view::View;
use crate::view::elements::{Elements, opened};
use crate::view::pictures::image::Image;
use crate::view::pictures::png::{self, File};

pub(super) const TREE: ViewTree = ViewTree {
    name: b"png",
    number: 36,
    shape: Shape::Frames,
    forms: &[Form {
        number: 37,
        suffix: b".png",
        size: |_, node| {
            let Some(array) = node.array() else {
                return Ok(None);
            };
            let (datatype, dims) = opened(&array.datatype, &array.shape)?;
            let image = Image::of(&datatype, &dims.unwrap_or_default());
            let picture = image.filter(png::is_picture);
            Ok(picture.map(|_| Size::Counted))
        },
        view: Some(picture),
        ..OF_NOTHING
    }],
    ..WITHOUT_FILES
};

fn picture(subject: &Subject<'_>, elements: Elements) -> Result<Option<Box<dyn View>>> {
    let (file, object) = (subject.file, subject.node.id);
    let picture = match File::of(elements) {
        None => return Ok(None),
        Some(File::Stored(stored)) => return Ok(Some(Box::new(stored))),
        Some(File::Compressed(picture)) => picture,
    };
    let name = [b".png", subject.selected].concat();
    let text = file.kept_text(object, &name, || {
        let cancel = file.effort.cancel();
        cancel.begin_heavy()?;
        picture.encode(&file.engine.hold(0)?, &cancel)
    })?;
    Ok(Some(Box::new(text)))
}

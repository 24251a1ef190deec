//! A PNG file of one picture: integers of 8 and 16 bits and booleans as they are, other numbers
//! scaled to 16 bits.
//!
//! Portable Network Graphics, Third Edition. A text chunk (11.3.3.2) says how the values are found
//! again:
//!
//! | keyword | the chunk's number |
//! |---|---|
//! | `Offset` | what is to be added to the pixels: the minimum of signed integers, if it is negative |
//! | `Minimum`, `Maximum` | the finite values that the pixels 0 and 65535 stand for |
//! | `Step` | one pixel of so many in each direction is shown |
//! | `Inverted` | 1: each pixel is what is left of the highest one, as 0 is white |
//!
//! Bytes that stand for colours are a picture of these colours, with the same bytes (11.2.2).
//!
//! NaN is 0, and so is what all pixels are that have one value; the infinities are 0 and 65535.
//!
//! A small picture is compressed: its file is made whole, as its size is not known before, with a
//! few rows in memory beside it. That takes a second at most, and so a larger one is stored
//! ([`stored`]): its size follows from the shape and the type.

mod levels;
pub(in crate::view::pictures) mod output;
pub(in crate::view::pictures) mod picture;
pub(crate) mod stored;

use crate::limits;
use crate::view::elements::Elements;
use crate::view::pictures::image::Image;
use crate::view::pictures::look::Look;
use crate::view::pictures::png::picture::Picture;
use crate::view::pictures::png::stored::Stored;

/// Whether an array of these pictures is one picture with rows and columns.
pub(crate) fn is_picture(image: &Image) -> bool {
    image.leading().is_empty() && image.dims.len() > 1
}

/// A picture in one of two forms of its file.
pub(crate) enum File {
    /// A small one, which is to be compressed.
    Compressed(Picture),
    Stored(Stored),
}

impl File {
    /// That of `elements`, which are to look like this; `None` where they are no picture.
    pub(crate) fn of(elements: Elements, look: Look) -> Option<Self> {
        let dims = elements.dims.as_deref().unwrap_or_default();
        let image = Image::of(&elements.datatype, dims, look.appearance).filter(is_picture)?;
        let is_small = is_small(&image);
        let picture = Picture::new(image, elements, look.palette);
        Some(if is_small {
            File::Compressed(picture)
        } else {
            File::Stored(Stored::new(picture))
        })
    }
}

/// Whether the file of a picture is compressed.
fn is_small(image: &Image) -> bool {
    let numbers = image.numbers();
    numbers.is_some_and(|numbers| numbers <= limits::PICTURE_COMPRESSED)
}

#[cfg(test)]
mod tests;

//! PNG files of one picture. Integers of 8 and 16 bits and booleans are unchanged, and other
//! numbers are scaled to 16 bits.
//!
//! The files follow Portable Network Graphics, Third Edition. Text chunks (11.3.3.2) have the
//! information for restoring the values:
//!
//! | keyword | value |
//! |---|---|
//! | `Offset` | the number to add to the pixels: the minimum of signed integers, if it is negative |
//! | `Minimum`, `Maximum` | the finite values of the pixels 0 and 65535 |
//! | `Step` | n, if only one of n pixels in each direction is shown |
//! | `Inverted` | 1 if each pixel is subtracted from the highest level, because the array has 0 for white |
//!
//! Palette indices become an indexed picture with the same bytes (11.2.2).
//!
//! NaN becomes 0, and the infinities become 0 and 65535. If all values are equal, all pixels are 0.
//!
//! A small picture is compressed. Its length is unknown in advance, so the whole file is created in
//! memory, with a few rows at a time. This takes at most about a second. A larger picture is stored
//! without compression ([`stored`]), so that its length follows from the shape and the number type.

mod levels;
pub(in crate::pictures) mod output;
pub(in crate::pictures) mod picture;
pub mod stored;

use crate::elements::Elements;
use crate::limits;
use crate::pictures::image::Image;
use crate::pictures::picture_style::PictureStyle;
use crate::pictures::png::picture::Picture;
use crate::pictures::png::stored::UncompressedPng;

/// Returns whether an array consists of a single picture with rows and columns.
pub fn is_picture(image: &Image) -> bool {
    image.stack_dims().is_empty() && image.dims.len() > 1
}

/// The PNG file of a picture, with or without compression.
pub enum PngFile {
    /// A small picture, which will be compressed.
    Compressed(Picture),
    /// A larger picture, whose file is not compressed.
    Stored(UncompressedPng),
}

impl PngFile {
    /// Creates the PNG file of `elements` with the appearance `look`; `None` if they are not a
    /// single picture.
    pub fn from_elements(elements: Elements, look: PictureStyle) -> Option<Self> {
        let dims = elements.dims.as_deref().unwrap_or_default();
        let image =
            Image::from_datatype(&elements.datatype, dims, look.appearance).filter(is_picture)?;
        let is_small = is_small(&image);
        let picture = Picture::new(image, elements, look.palette);
        Some(if is_small {
            PngFile::Compressed(picture)
        } else {
            PngFile::Stored(UncompressedPng::new(picture))
        })
    }
}

/// Returns whether a picture is so small that its file is compressed.
fn is_small(image: &Image) -> bool {
    let numbers = image.numbers_per_picture();
    numbers.is_some_and(|numbers| numbers <= limits::PICTURE_COMPRESSED)
}

#[cfg(test)]
mod tests;

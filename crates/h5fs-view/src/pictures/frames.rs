//! The pictures of a stack: their names, and the selectors that pick them from the array. There is
//! one picture for each index of the axes before rows and columns.
//!
//! Pictures are numbered in C order. A name has six digits, or the number of digits of the last
//! number, so that sorting by name keeps that order: `000017.png`.

use h5fs_reader::error::Result;
use h5fs_reader::model::{Container, Node};

use crate::pictures::image::Image;
use crate::pictures::picture_style::read_image;

/// Minimum number of digits in the name of a picture.
const DIGITS: usize = 6;

/// The pictures of a stack, which is an array with more dimensions than one picture.
pub struct PictureStack {
    /// The dimensions of the stack, which precede rows and columns, slowest first; none of them is
    /// 0.
    dims: Vec<u64>,
    /// The suffix of each picture's name, such as `.png`.
    suffix: &'static [u8],
    /// The number of pictures.
    pub count: u64,
}

impl PictureStack {
    /// Returns the pictures of the array `node`; `None` if the array is not a stack.
    ///
    /// # Errors
    /// Fails if the attributes of the array cannot be read.
    pub fn from_node(
        container: &dyn Container,
        node: &Node,
        suffix: &'static [u8],
    ) -> Result<Option<Self>> {
        let image = read_image(container, node)?;
        Ok(image.and_then(|image| Self::from_image(&image, suffix)))
    }

    /// Returns whether the array `node` has several pictures. If its attributes cannot be read,
    /// returns true for more than two dimensions, and listing the directory of the pictures reports
    /// the error.
    pub fn has_frames(container: &dyn Container, node: &Node) -> bool {
        let may_have = || {
            let array = node.array();
            array.is_some_and(|array| array.shape.dims().len() > 2)
        };
        let found = Self::from_node(container, node, b"");
        found.map_or_else(|_| may_have(), |frames| frames.is_some())
    }

    /// Returns the pictures of `image`; `None` if it has a single picture.
    fn from_image(image: &Image, suffix: &'static [u8]) -> Option<Self> {
        let dims = image.stack_dims().to_vec();
        let count = image.picture_count().filter(|_| !dims.is_empty())?;
        Some(PictureStack {
            dims,
            suffix,
            count,
        })
    }

    /// Returns the name of picture `number`.
    pub fn name(&self, number: u64) -> Vec<u8> {
        let last = self.count.saturating_sub(1).to_string();
        let digits = last.len().max(DIGITS);
        let mut name = format!("{number:0digits$}").into_bytes();
        name.extend_from_slice(self.suffix);
        name
    }

    /// Returns the number of the picture called `name`; `None` if no picture has this name.
    pub fn parse_name(&self, name: &[u8]) -> Option<u64> {
        let digits = name.strip_suffix(self.suffix)?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        (number < self.count && self.name(number) == name).then_some(number)
    }

    /// Returns the selector that picks picture `number` from the array, such as `[0,17]`.
    pub fn selector(&self, number: u64) -> Vec<u8> {
        let mut rest = number;
        let mut indices: Vec<String> = Vec::with_capacity(self.dims.len());
        for &dim in self.dims.iter().rev() {
            indices.push((rest % dim).to_string());
            rest /= dim;
        }
        indices.reverse();
        format!("[{}]", indices.join(",")).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::appearance::{Appearance, Interlace};
    use h5fs_reader::testing::int;

    fn frames(dims: &[u64], interlace: Option<Interlace>) -> Option<PictureStack> {
        let appearance = Appearance {
            interlace,
            ..Appearance::default()
        };
        PictureStack::from_image(&Image::from_datatype(&int(2), dims, appearance)?, b".png")
    }

    #[test]
    fn names_identify_pictures() {
        let stack = frames(&[3, 10_000, 4, 5], None).unwrap();
        assert_eq!(stack.count, 30_000);
        assert_eq!(stack.name(17), b"000017.png");
        assert_eq!(stack.parse_name(b"029999.png"), Some(29_999));
        for name in [
            "030000.png",
            "17.png",
            "0000017.png",
            "+00017.png",
            "000017",
        ] {
            assert_eq!(stack.parse_name(name.as_bytes()), None, "{name}");
        }
        let long = frames(&[12_000_000, 4, 5], None).unwrap();
        assert_eq!(long.name(17), b"00000017.png");
        assert_eq!(long.parse_name(b"11999999.png"), Some(11_999_999));
    }

    /// Expected: `numpy.unravel_index(number, shape)`.
    #[test]
    fn a_picture_is_a_part_of_the_array() {
        let stack = frames(&[3, 10, 4, 5, 3], Some(Interlace::Pixel)).unwrap();
        assert_eq!(stack.selector(0), b"[0,0]");
        assert_eq!(stack.selector(17), b"[1,7]");
        assert_eq!(stack.selector(29), b"[2,9]");
    }

    #[test]
    fn a_single_picture_is_no_stack() {
        assert!(frames(&[4, 5], None).is_none());
        assert!(frames(&[4, 5, 3], Some(Interlace::Pixel)).is_none());
        assert_eq!(frames(&[1, 4, 5], None).unwrap().count, 1);
    }
}

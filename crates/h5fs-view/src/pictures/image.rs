//! An array of numbers as pictures. The last two axes are rows and columns, and each index of the
//! axes before them is a page.
//!
//! An axis of length 3 or 4 has red, green, blue and opacity if the array's attributes or datatype
//! say so ([`appearance`](crate::pictures::appearance)). An array with one axis is a picture
//! of one row.

use h5fs_reader::model::Datatype;
use h5fs_reader::model::numpy::numpy_descr;
use h5fs_reader::model::shape::product;

use crate::elements::numpy_datatype;
use crate::pictures::appearance::{Appearance, Interlace};

/// The pictures in an array: their dimensions, appearance and number type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The number type of a sample.
    pub pixel: PixelType,
    /// All dimensions of the array, slowest first.
    pub dims: Vec<u64>,
    /// The number of dimensions before the dimensions of one picture.
    leading_dims: usize,
    /// The number of rows of one picture.
    pub height: u64,
    /// The number of columns of one picture.
    pub width: u64,
    /// Number of samples in a pixel: 1, 3 or 4.
    pub samples: u64,
    /// The meaning of the samples, and the corner of the first pixel.
    pub appearance: Appearance,
}

/// The type of a pixel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelType {
    /// The kind of number.
    pub kind: PixelKind,
    /// Size of a number in bytes: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether the bytes of a number are in big-endian order.
    pub is_big_endian: bool,
}

/// The kind of number that a sample of a pixel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelKind {
    /// A boolean: one byte, 0 or 1.
    Boolean,
    /// An unsigned integer.
    Unsigned,
    /// A signed integer.
    Signed,
    /// An IEEE 754 number.
    Float,
}

impl Image {
    /// Returns the pictures of an array with this datatype, dimensions and appearance. Returns
    /// `None` if the array does not have numbers, has no elements, or has too few dimensions.
    pub fn from_datatype(
        datatype: &Datatype,
        dims: &[u64],
        appearance: Appearance,
    ) -> Option<Self> {
        let pixel = PixelType::from_datatype(datatype)?;
        let (leading, height, width, samples) = match (appearance.interlace, dims) {
            (Some(Interlace::Pixel), [leading @ .., height, width, samples])
            | (Some(Interlace::Line), [leading @ .., height, samples, width])
            | (Some(Interlace::Plane), [leading @ .., samples, height, width]) => {
                (leading, *height, *width, *samples)
            }
            (Some(_), _) => return None,
            (None, [leading @ .., height, width]) => (leading, *height, *width, 1),
            (None, [width]) => (&[][..], 1, *width, 1),
            (None, []) => return None,
        };
        // A selection from the axis of samples is not a colour.
        if appearance.interlace.is_some() && !matches!(samples, 3 | 4) {
            let interlace = None;
            return Self::from_datatype(
                datatype,
                dims,
                Appearance {
                    interlace,
                    ..appearance
                },
            );
        }
        if dims.contains(&0) {
            return None;
        }
        Some(Image {
            pixel,
            leading_dims: leading.len(),
            dims: dims.to_vec(),
            height,
            width,
            samples,
            appearance,
        })
    }

    /// Returns the dimensions of the stack, which precede rows and columns, slowest first.
    pub(crate) fn stack_dims(&self) -> &[u64] {
        &self.dims[..self.leading_dims]
    }

    /// Returns the number of pictures; `None` if it does not fit in 63 bits.
    pub(crate) fn picture_count(&self) -> Option<u64> {
        product(self.stack_dims()).ok()
    }

    /// Returns the number of numbers in one picture: its pixels times their samples. Returns `None`
    /// if it does not fit in 63 bits.
    pub(crate) fn numbers_per_picture(&self) -> Option<u64> {
        product(&[self.height, self.width, self.samples]).ok()
    }
}

impl PixelType {
    /// Returns the number type for a datatype; `None` if numbers of this datatype cannot be drawn.
    pub fn from_datatype(datatype: &Datatype) -> Option<Self> {
        let descr = numpy_descr(&numpy_datatype(datatype))?;
        let [order, kind, bytes @ (b'1' | b'2' | b'4' | b'8')] = *descr.as_bytes() else {
            return None;
        };
        let kind = match kind {
            b'b' => PixelKind::Boolean,
            b'u' => PixelKind::Unsigned,
            b'i' => PixelKind::Signed,
            b'f' => PixelKind::Float,
            _ => return None,
        };
        Some(PixelType {
            kind,
            bytes: bytes - b'0',
            is_big_endian: order == b'>',
        })
    }

    /// Returns the greatest number of this type, which must be unsigned or boolean.
    pub fn max_value(self) -> f64 {
        match self.kind {
            PixelKind::Boolean => 1.0,
            _ => (f64::from(self.bytes) * 8.0).exp2() - 1.0,
        }
    }

    /// Decodes an integer or a boolean from its stored bytes.
    pub fn decode_integer(self, bytes: &[u8]) -> i128 {
        let word = self.word(bytes);
        match self.kind {
            PixelKind::Signed => {
                let unused = u64::BITS - 8 * u32::from(self.bytes);
                ((word << unused).cast_signed() >> unused).into()
            }
            _ => word.into(),
        }
    }

    /// Decodes a floating-point number from its stored bytes.
    pub(crate) fn decode_float(self, bytes: &[u8]) -> f64 {
        let word = self.word(bytes);
        match self.bytes {
            2 => f32::from_bits(half_to_single(word as u16)).into(),
            4 => f32::from_bits(word as u32).into(),
            _ => f64::from_bits(word),
        }
    }

    fn word(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        if self.is_big_endian {
            word[8 - bytes.len()..].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        } else {
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }
    }
}

/// Converts the bits of a half float to those of a single float (IEEE 754, 3.6), so that a NaN
/// keeps its payload.
pub(crate) fn half_to_single(half: u16) -> u32 {
    let half = u32::from(half);
    let (sign, exponent, mantissa) = ((half & 0x8000) << 16, half >> 10 & 31, half & 0x3ff);
    let magnitude = match (exponent, mantissa) {
        (0, 0) => 0,
        (0, _) => {
            // For a subnormal number, the highest set bit becomes the implicit one.
            let shift = mantissa.leading_zeros() - 21;
            (113 - shift) << 23 | (mantissa << shift & 0x3ff) << 13
        }
        (31, _) => 0xff << 23 | mantissa << 13,
        _ => (exponent + 112) << 23 | mantissa << 13,
    };
    sign | magnitude
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::model::datatype::Class;
    use h5fs_reader::testing::{int, member, type_of};

    fn shape(interlace: Option<Interlace>, dims: &[u64]) -> Option<(Vec<u64>, u64, u64, u64)> {
        let appearance = Appearance {
            interlace,
            ..Appearance::default()
        };
        let image = Image::from_datatype(&int(2), dims, appearance)?;
        Some((
            image.stack_dims().to_vec(),
            image.height,
            image.width,
            image.samples,
        ))
    }

    #[test]
    fn the_last_axes_are_the_picture() {
        let grey = |dims: &[u64]| shape(None, dims);
        assert_eq!(grey(&[5]), Some((vec![], 1, 5, 1)));
        assert_eq!(grey(&[4, 5]), Some((vec![], 4, 5, 1)));
        assert_eq!(grey(&[4, 3]), Some((vec![], 4, 3, 1)));
        assert_eq!(grey(&[2, 4, 5]), Some((vec![2], 4, 5, 1)));
        assert_eq!(grey(&[4, 5, 3]), Some((vec![4], 5, 3, 1)));
        assert_eq!(grey(&[]), None);
        assert_eq!(grey(&[4, 0]), None);
        assert_eq!(grey(&[0, 4, 5]), None);
    }

    #[test]
    fn the_colour_axis_may_have_any_position() {
        let pixel = |dims: &[u64]| shape(Some(Interlace::Pixel), dims);
        assert_eq!(pixel(&[4, 5, 3]), Some((vec![], 4, 5, 3)));
        assert_eq!(pixel(&[2, 6, 4, 5, 4]), Some((vec![2, 6], 4, 5, 4)));
        assert_eq!(pixel(&[4, 5, 2]), Some((vec![4], 5, 2, 1)));
        assert_eq!(pixel(&[4, 3]), None);
        let line = shape(Some(Interlace::Line), &[2, 4, 3, 5]);
        assert_eq!(line, Some((vec![2], 4, 5, 3)));
        let plane = shape(Some(Interlace::Plane), &[2, 3, 4, 5]);
        assert_eq!(plane, Some((vec![2], 4, 5, 3)));
    }

    #[test]
    fn the_types_of_pixels() {
        let pixel = |datatype: &Datatype| {
            let pixel = PixelType::from_datatype(datatype)?;
            Some((pixel.kind, pixel.bytes, pixel.is_big_endian))
        };
        assert_eq!(pixel(&int(2)), Some((PixelKind::Signed, 2, false)));
        let unsigned = Datatype::integer(8, false, ByteOrder::Big);
        assert_eq!(pixel(&unsigned), Some((PixelKind::Unsigned, 8, true)));
        let half = Datatype::ieee(2, ByteOrder::Little);
        assert_eq!(pixel(&half), Some((PixelKind::Float, 2, false)));
        assert_eq!(
            pixel(&type_of(1, Class::Bool)),
            Some((PixelKind::Boolean, 1, false))
        );
        assert_eq!(pixel(&int(3)), None);
        let record = Class::Compound(vec![member("a", 0, int(2))]);
        assert_eq!(pixel(&type_of(2, record)), None);
    }
}

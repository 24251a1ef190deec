//! An array of numbers as pictures: the last two axes are rows and columns, each index of the axes
//! before them is a page.
//!
//! A last axis of 3 or 4 behind two others is red, green, blue, and opacity. An array of one axis
//! is a picture of one row.

use crate::model::Datatype;
use crate::model::numpy::numpy_descr;
use crate::model::shape::product;
use crate::view::elements::as_numpy_has_it;

/// The shape and the type of an array's pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) pixel: Pixel,
    /// All dimensions of the array, slowest first.
    pub(crate) dims: Vec<u64>,
    /// How many of them stand before rows and columns.
    leading: usize,
    pub(crate) height: u64,
    pub(crate) width: u64,
    /// Numbers in a pixel: 1, 3 or 4.
    pub(crate) samples: u64,
}

/// The type of one number of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pixel {
    pub(crate) kind: Kind,
    /// 1, 2, 4 or 8.
    pub(crate) bytes: u8,
    pub(crate) is_big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One byte, 0 or 1.
    Boolean,
    Unsigned,
    Signed,
    /// IEEE 754.
    Float,
}

impl Image {
    /// The pictures of an array of this type and these dimensions; `None` where it has no numbers,
    /// or no pixels.
    pub(crate) fn of(datatype: &Datatype, dims: &[u64]) -> Option<Self> {
        let pixel = Pixel::of(datatype)?;
        let (leading, height, width, samples) = match dims {
            [leading @ .., height, width, samples @ (3 | 4)] => {
                (leading, *height, *width, *samples)
            }
            [leading @ .., height, width] => (leading, *height, *width, 1),
            [width] => (&[][..], 1, *width, 1),
            [] => return None,
        };
        if dims.contains(&0) {
            return None;
        }
        Some(Image {
            pixel,
            leading: leading.len(),
            dims: dims.to_vec(),
            height,
            width,
            samples,
        })
    }

    /// The dimensions before rows and columns, slowest first.
    pub(crate) fn leading(&self) -> &[u64] {
        &self.dims[..self.leading]
    }

    /// How many pictures there are; `None` where they do not fit 63 bits.
    pub(crate) fn pages(&self) -> Option<u64> {
        product(self.leading()).ok()
    }

    /// Numbers of one picture; `None` where they do not fit 63 bits.
    pub(crate) fn numbers(&self) -> Option<u64> {
        product(&[self.height, self.width, self.samples]).ok()
    }
}

impl Pixel {
    /// The numbers that an array of this type holds; `None` where it holds none of these.
    pub(crate) fn of(datatype: &Datatype) -> Option<Self> {
        let descr = numpy_descr(&as_numpy_has_it(datatype))?;
        let [order, kind, bytes @ (b'1' | b'2' | b'4' | b'8')] = *descr.as_bytes() else {
            return None;
        };
        let kind = match kind {
            b'b' => Kind::Boolean,
            b'u' => Kind::Unsigned,
            b'i' => Kind::Signed,
            b'f' => Kind::Float,
            _ => return None,
        };
        Some(Pixel {
            kind,
            bytes: bytes - b'0',
            is_big_endian: order == b'>',
        })
    }

    /// The integer, or the boolean, in these bytes.
    pub(crate) fn integer(self, bytes: &[u8]) -> i128 {
        let word = self.word(bytes);
        match self.kind {
            Kind::Signed => {
                let unused = u64::BITS - 8 * u32::from(self.bytes);
                ((word << unused).cast_signed() >> unused).into()
            }
            _ => word.into(),
        }
    }

    /// The floating-point number in these bytes.
    pub(crate) fn float(self, bytes: &[u8]) -> f64 {
        let word = self.word(bytes);
        match self.bytes {
            2 => f32::from_bits(single(word as u16)).into(),
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

/// The single float of a half one (IEEE 754, 3.6), bit by bit, so that a NaN keeps its payload.
pub(crate) fn single(half: u16) -> u32 {
    let half = u32::from(half);
    let (sign, exponent, mantissa) = ((half & 0x8000) << 16, half >> 10 & 31, half & 0x3ff);
    let magnitude = match (exponent, mantissa) {
        (0, 0) => 0,
        (0, _) => {
            // Subnormal: the highest set bit becomes the implicit one.
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
    use crate::model::datatype::ByteOrder;
    use crate::model::datatype::Class;
    use crate::model::value::tests::{int, member, type_of};

    fn shape(dims: &[u64]) -> Option<(Vec<u64>, u64, u64, u64)> {
        let image = Image::of(&int(2), dims)?;
        Some((
            image.leading().to_vec(),
            image.height,
            image.width,
            image.samples,
        ))
    }

    #[test]
    fn the_last_axes_are_the_picture() {
        assert_eq!(shape(&[5]), Some((vec![], 1, 5, 1)));
        assert_eq!(shape(&[4, 5]), Some((vec![], 4, 5, 1)));
        assert_eq!(shape(&[4, 3]), Some((vec![], 4, 3, 1)));
        assert_eq!(shape(&[2, 4, 5]), Some((vec![2], 4, 5, 1)));
        assert_eq!(shape(&[4, 5, 3]), Some((vec![], 4, 5, 3)));
        assert_eq!(shape(&[2, 6, 4, 5, 4]), Some((vec![2, 6], 4, 5, 4)));
        assert_eq!(shape(&[]), None);
        assert_eq!(shape(&[4, 0]), None);
        assert_eq!(shape(&[0, 4, 5]), None);
    }

    #[test]
    fn the_types_of_pixels() {
        let pixel = |datatype: &Datatype| {
            let pixel = Pixel::of(datatype)?;
            Some((pixel.kind, pixel.bytes, pixel.is_big_endian))
        };
        assert_eq!(pixel(&int(2)), Some((Kind::Signed, 2, false)));
        let unsigned = Datatype::integer(8, false, ByteOrder::Big);
        assert_eq!(pixel(&unsigned), Some((Kind::Unsigned, 8, true)));
        let half = Datatype::ieee(2, ByteOrder::Little);
        assert_eq!(pixel(&half), Some((Kind::Float, 2, false)));
        assert_eq!(
            pixel(&type_of(1, Class::Bool)),
            Some((Kind::Boolean, 1, false))
        );
        assert_eq!(pixel(&int(3)), None);
        let record = Class::Compound(vec![member("a", 0, int(2))]);
        assert_eq!(pixel(&type_of(2, record)), None);
    }
}

//! Conversion of numbers from one stored type to another. A virtual dataset may have another type
//! than its sources.
//!
//! The rules follow the HDF5 library. Integers are clamped to the range of the new type, fractions
//! are truncated, and floating-point numbers are rounded to the nearest. Integers of equal size and
//! opposite byte order are only byte-swapped, whatever their signs and precisions. Floating-point
//! numbers that differ only in byte order are also only byte-swapped, so that no bit of a NaN is
//! lost.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::Datatype;
use crate::model::array::ElementRecoder;
use crate::model::datatype::{ByteOrder, Class, FloatFormat};
use crate::model::number::{Integer, decode_integer, float_value, ieee_bytes};

/// Maximum size in bytes of a number that is byte-swapped.
const MAX_SWAPPED_BYTES: u32 = 1 << 10;

/// The conversion of elements of one type to elements of another.
#[derive(Debug)]
pub(in crate::array) enum Conversion {
    /// The types are equal.
    Copy,
    /// The types differ only in byte order. Elements have `size` bytes.
    Swap { size: usize },
    /// Both types are numbers.
    Numbers { from: Datatype, to: Datatype },
    /// Each element of `from` bytes is converted by `recoder` to an element of `to` bytes.
    Recoded {
        recoder: Arc<dyn ElementRecoder>,
        from: usize,
        to: usize,
    },
}

/// The value of a number between decoding from its stored type and encoding in the new type.
#[derive(Debug, Clone, Copy)]
enum ConvertedNumber {
    Integer(Integer),
    Real(f64),
}

impl Conversion {
    /// Returns the conversion between two types.
    ///
    /// # Errors
    /// `Unsupported` if the types differ and one of them is not a plain number.
    pub(in crate::array) fn new(from: &Datatype, to: &Datatype) -> Result<Self> {
        if from == to {
            return Ok(Conversion::Copy);
        }
        if are_only_swapped(from, to) {
            let size = from.size as usize;
            return Ok(Conversion::Swap { size });
        }
        if is_plain_number(from) && is_plain_number(to) {
            return Ok(Conversion::Numbers {
                from: from.clone(),
                to: to.clone(),
            });
        }
        Err(Error::unsupported(
            "a virtual dataset with another type than its source",
            None,
        ))
    }

    /// Returns a conversion that recodes each element of type `from` to an element of type `to`
    /// with `by`.
    pub(in crate::array) fn recoded(
        by: Arc<dyn ElementRecoder>,
        from: &Datatype,
        to: &Datatype,
    ) -> Self {
        let (from, to) = (from.size.max(1) as usize, to.size.max(1) as usize);
        Conversion::Recoded {
            recoder: by,
            from,
            to,
        }
    }

    /// Returns whether the conversion leaves all bytes unchanged.
    pub(in crate::array) fn is_identity(&self) -> bool {
        matches!(self, Conversion::Copy)
    }

    /// Converts the elements in `from` and writes them to `to`, until either ends.
    pub(in crate::array) fn apply(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        match self {
            Conversion::Copy => to.copy_from_slice(from),
            Conversion::Swap { size } => {
                to.copy_from_slice(from);
                to.chunks_exact_mut(*size).for_each(<[u8]>::reverse);
            }
            Conversion::Recoded {
                recoder: by,
                from: size,
                to: own,
            } => {
                let elements = from.chunks_exact(*size);
                for (stored, element) in elements.zip(to.chunks_exact_mut(*own)) {
                    by.recode(stored, element)?;
                }
            }
            Conversion::Numbers {
                from: from_type,
                to: to_type,
            } => {
                let elements = from.chunks_exact(from_type.size as usize);
                for (from, to) in elements.zip(to.chunks_exact_mut(to_type.size as usize)) {
                    encode_number(decode_number(from, from_type)?, to_type, to);
                }
            }
        }
        Ok(())
    }
}

/// Converts the elements in `stored` from type `from` to type `to` and writes them to `out`, until
/// `stored` or `out` ends.
///
/// # Errors
/// `Unsupported` if the types differ and one of them is not a plain number.
pub fn convert(from: &Datatype, to: &Datatype, stored: &[u8], out: &mut [u8]) -> Result<()> {
    Conversion::new(from, to)?.apply(stored, out)
}

/// Returns whether two types of numbers differ only in byte order. Integers must not have padding
/// bits below the value, and floating-point numbers must have the same format.
fn are_only_swapped(from: &Datatype, to: &Datatype) -> bool {
    let (from_order, to_order) = match (&from.class, &to.class) {
        (
            Class::Integer { order, bits, .. },
            Class::Integer {
                order: to_order,
                bits: to_bits,
                ..
            },
        ) if bits.offset == 0 && to_bits.offset == 0 => (*order, *to_order),
        (Class::Float(from), Class::Float(to)) => {
            let order = to.order;
            if *to != (FloatFormat { order, ..*from }) {
                return false;
            }
            (from.order, order)
        }
        _ => return false,
    };
    let opposite = matches!(
        (from_order, to_order),
        (ByteOrder::Little, ByteOrder::Big) | (ByteOrder::Big, ByteOrder::Little)
    );
    from.size == to.size && from.size <= MAX_SWAPPED_BYTES && opposite
}

/// Returns whether the type is an integer of up to 16 bytes or an IEEE 754 number of 2, 4 or 8
/// bytes.
fn is_plain_number(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Integer { order, .. } => *order != ByteOrder::Vax && datatype.size <= 16,
        Class::Float(format) => ieee_bytes(datatype.size, format).is_some(),
        _ => false,
    }
}

fn decode_number(element: &[u8], datatype: &Datatype) -> Result<ConvertedNumber> {
    let number = match &datatype.class {
        Class::Integer {
            order,
            signed,
            bits,
        } => decode_integer(element, *order, *signed, *bits).map(ConvertedNumber::Integer),
        Class::Float(format) => {
            let number = float_value(element, format).and_then(|real| real.as_f64());
            number.map(ConvertedNumber::Real)
        }
        _ => None,
    };
    number.ok_or_else(|| Error::unsupported("a number of this type", None))
}

fn encode_number(number: ConvertedNumber, datatype: &Datatype, element: &mut [u8]) {
    let (bits, order) = match &datatype.class {
        Class::Integer {
            order,
            signed,
            bits,
        } => {
            let field = clamped_bits(number, *signed, bits.precision.into());
            let placed = field.checked_shl(bits.offset.into());
            (placed.unwrap_or(0), *order)
        }
        Class::Float(format) => {
            let bits = match datatype.size {
                2 => to_f16_bits(to_f64(number)).into(),
                4 => to_f32(number).to_bits().into(),
                _ => to_f64(number).to_bits().into(),
            };
            (bits, format.order)
        }
        _ => return,
    };
    element.copy_from_slice(&bits.to_le_bytes()[..element.len()]);
    if order == ByteOrder::Big {
        element.reverse();
    }
}

/// Returns the low `precision` bits of the number, clamped to the range of an integer with that
/// many bits.
fn clamped_bits(number: ConvertedNumber, signed: bool, precision: u32) -> u128 {
    let ones = u128::MAX >> (128 - precision.clamp(1, 128));
    if !signed {
        let number = match number {
            ConvertedNumber::Integer(Integer::Unsigned(number)) => number,
            ConvertedNumber::Integer(Integer::Signed(number)) => {
                u128::try_from(number).unwrap_or(0)
            }
            ConvertedNumber::Real(number) => number as u128,
        };
        return number.min(ones);
    }
    let most = (ones >> 1).cast_signed();
    let number = match number {
        ConvertedNumber::Integer(Integer::Signed(number)) => number,
        ConvertedNumber::Integer(Integer::Unsigned(number)) => {
            i128::try_from(number).unwrap_or(i128::MAX)
        }
        ConvertedNumber::Real(number) => number as i128,
    };
    number.clamp(-most - 1, most).cast_unsigned() & ones
}

/// Returns the bits of the 16-bit float nearest to a number. Ties are rounded to the even float.
fn to_f16_bits(number: f64) -> u16 {
    /// Numbers of at least this magnitude become infinite.
    const LIMIT: f64 = 65520.0;
    /// The distance between subnormal numbers: 2^-24.
    const STEP: f64 = 1.0 / 16_777_216.0;
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let size = number.abs();
    let bits = if size.is_nan() {
        // a quiet NaN with the leading payload bits that fit
        0x7E00 | (size.to_bits() >> 42) as u16 & 0x1FF
    } else if size >= LIMIT {
        0x7C00
    } else if size < STEP * 1024.0 {
        (size / STEP).round_ties_even() as u16
    } else {
        let exponent = (size.to_bits() >> 52) as i32 - 1023;
        let mantissa = (size * 2_f64.powi(10 - exponent)).round_ties_even() as u16;
        // a mantissa that was rounded up to the next power of two carries into the exponent
        ((exponent + 14) as u16) * 1024 + mantissa
    };
    sign | bits
}

/// Converts the number to `f32` with one rounding, even if an integer has more bits than a double.
fn to_f32(number: ConvertedNumber) -> f32 {
    match number {
        ConvertedNumber::Integer(Integer::Signed(number)) => number as f32,
        ConvertedNumber::Integer(Integer::Unsigned(number)) => number as f32,
        ConvertedNumber::Real(number) => number as f32,
    }
}

fn to_f64(number: ConvertedNumber) -> f64 {
    match number {
        ConvertedNumber::Integer(Integer::Signed(number)) => number as f64,
        ConvertedNumber::Integer(Integer::Unsigned(number)) => number as f64,
        ConvertedNumber::Real(number) => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(from: &Datatype, to: &Datatype, element: &[u8]) -> Vec<u8> {
        let mut converted = vec![0; to.size as usize];
        Conversion::new(from, to)
            .unwrap()
            .apply(element, &mut converted)
            .unwrap();
        converted
    }

    #[test]
    fn integers_are_clamped_and_swapped() {
        let wide = Datatype::integer(4, true, ByteOrder::Little);
        let narrow = Datatype::integer(2, false, ByteOrder::Big);
        assert_eq!(convert(&wide, &narrow, &(-5_i32).to_le_bytes()), [0, 0]);
        assert_eq!(convert(&wide, &narrow, &258_i32.to_le_bytes()), [1, 2]);
        assert_eq!(
            convert(&wide, &narrow, &70_000_i32.to_le_bytes()),
            [0xff, 0xff]
        );
    }

    #[test]
    fn integers_of_one_size_and_opposite_orders_are_swapped() {
        // h5py reads a virtual '>i8' whose source is a '<u8' of 2**64 - 12 as -12
        let from = Datatype::integer(8, false, ByteOrder::Little);
        let to = Datatype::integer(8, true, ByteOrder::Big);
        let number = (u64::MAX - 11).to_le_bytes();
        assert_eq!(convert(&from, &to, &number), (-12_i64).to_be_bytes());
    }

    #[test]
    fn nan_keeps_its_bits() {
        let from = Datatype::ieee(2, ByteOrder::Big);
        let to = Datatype::ieee(2, ByteOrder::Little);
        assert_eq!(convert(&from, &to, &[0x7c, 0x04]), [0x04, 0x7c]);
    }

    #[test]
    fn integers_within_their_elements() {
        let mut odd = Datatype::integer(2, true, ByteOrder::Little);
        if let Class::Integer { bits, .. } = &mut odd.class {
            (bits.offset, bits.precision) = (3, 5);
        }
        let byte = Datatype::integer(1, true, ByteOrder::Little);
        assert_eq!(convert(&byte, &odd, &[100]), (15_u16 << 3).to_le_bytes());
        assert_eq!(convert(&byte, &odd, &[0xff]), (31_u16 << 3).to_le_bytes());
        assert_eq!(convert(&odd, &byte, &(0x10_u16 << 3).to_le_bytes()), [0xf0]);
    }

    #[test]
    fn halves_are_rounded_to_the_even() {
        // numpy.float16(x).view('u2')
        for (number, bits) in [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.5, 0xc100),
            (2049.0, 0x6800),
            (2051.0, 0x6802),
            (65504.0, 0x7bff),
            (65519.9, 0x7bff),
            (65520.0, 0x7c00),
            (5.960464477539063e-8, 0x0001),
            (2.98e-8, 0x0000),
            (6.1035e-5, 0x0400),
            (2047.9, 0x6800),
            (f64::NEG_INFINITY, 0xfc00),
        ] {
            assert_eq!(to_f16_bits(number), bits, "{number}");
        }
        assert!(to_f16_bits(f64::NAN) & 0x7fff > 0x7c00);
    }

    #[test]
    fn fractions_are_truncated() {
        let real = Datatype::ieee(8, ByteOrder::Little);
        let byte = Datatype::integer(1, true, ByteOrder::Little);
        assert_eq!(convert(&real, &byte, &(-3.9_f64).to_le_bytes()), [0xfd]);
        assert_eq!(convert(&real, &byte, &1e9_f64.to_le_bytes()), [127]);
        let single = Datatype::ieee(4, ByteOrder::Big);
        assert_eq!(convert(&byte, &single, &[0xff]), (-1_f32).to_be_bytes());
    }
}

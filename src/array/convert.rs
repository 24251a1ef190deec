//! Numbers of one stored type as numbers of another: a virtual dataset may differ from its sources.
//!
//! As the HDF5 library converts: integers are clamped to the range of their new type, fractions are cut
//! off, floating-point numbers are rounded to the nearest.

use crate::error::{Error, Result};
use crate::model::Datatype;
use crate::model::datatype::{Bits, ByteOrder, Class};
use crate::model::number::{Integer, Real, ieee_bytes, integer, real};

/// How elements of one type become elements of another.
#[derive(Debug)]
pub(super) enum Conversion {
    /// They are the same.
    Copy,
    /// They are numbers.
    Numbers { from: Datatype, to: Datatype },
}

/// A number between its two types.
#[derive(Debug, Clone, Copy)]
enum Number {
    Integer(Integer),
    Real(f64),
}

impl Conversion {
    /// # Errors
    /// `Unsupported` where the types differ and one of them is not a plain number.
    pub(super) fn new(from: &Datatype, to: &Datatype) -> Result<Self> {
        if from == to {
            return Ok(Conversion::Copy);
        }
        if is_plain_number(from) && is_plain_number(to) {
            return Ok(Conversion::Numbers {
                from: from.clone(),
                to: to.clone(),
            });
        }
        Err(Error::unsupported(
            "a virtual dataset of another type than its source",
            0,
        ))
    }

    /// Converts as many elements as there are in both.
    pub(super) fn apply(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        match self {
            Conversion::Copy => to.copy_from_slice(from),
            Conversion::Numbers {
                from: from_type,
                to: to_type,
            } => {
                let elements = from.chunks_exact(from_type.size as usize);
                for (from, to) in elements.zip(to.chunks_exact_mut(to_type.size as usize)) {
                    store(load(from, from_type)?, to_type, to);
                }
            }
        }
        Ok(())
    }
}

/// An integer that fills up to eight bytes, or an IEEE number of four or eight.
fn is_plain_number(datatype: &Datatype) -> bool {
    let is_whole = |bits: &Bits| bits.offset == 0 && u32::from(bits.precision) == datatype.size * 8;
    match &datatype.class {
        Class::Integer { order, bits, .. } => {
            *order != ByteOrder::Vax && is_whole(bits) && datatype.size <= 8
        }
        Class::Float(format) => {
            format.order != ByteOrder::Vax
                && matches!(ieee_bytes(datatype.size, format), Some(4 | 8))
        }
        _ => false,
    }
}

fn load(element: &[u8], datatype: &Datatype) -> Result<Number> {
    let number = match &datatype.class {
        Class::Integer {
            order,
            signed,
            bits,
        } => integer(element, *order, *signed, *bits).map(Number::Integer),
        Class::Float(format) => real(element, format).and_then(|real| match real {
            Real::Single(number) => Some(Number::Real(f64::from(number))),
            Real::Double(number) => Some(Number::Real(number)),
            _ => None,
        }),
        _ => None,
    };
    number.ok_or_else(|| Error::unsupported("a number of this type", 0))
}

fn store(number: Number, datatype: &Datatype, element: &mut [u8]) {
    let (bytes, order) = match &datatype.class {
        Class::Integer { order, signed, .. } => (
            clamped(number, *signed, datatype.size).to_le_bytes(),
            *order,
        ),
        Class::Float(format) if datatype.size == 4 => {
            let bits = u64::from(rounded(number).to_bits());
            (bits.to_le_bytes(), format.order)
        }
        Class::Float(format) => (as_double(number).to_bits().to_le_bytes(), format.order),
        _ => return,
    };
    element.copy_from_slice(&bytes[..element.len()]);
    if order == ByteOrder::Big {
        element.reverse();
    }
}

/// The low bytes of the number, after it was clamped to the range of an integer of `size` bytes.
fn clamped(number: Number, signed: bool, size: u32) -> u64 {
    let bits = size * 8;
    let (least, most) = match signed {
        true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        false => (0, (1_i128 << bits) - 1),
    };
    let number = match number {
        Number::Integer(Integer::Signed(number)) => number,
        Number::Integer(Integer::Unsigned(number)) => i128::try_from(number).unwrap_or(i128::MAX),
        Number::Real(number) => number as i128,
    };
    number.clamp(least, most) as u64
}

/// Rounded once, also where the integer has more bits than a double.
fn rounded(number: Number) -> f32 {
    match number {
        Number::Integer(Integer::Signed(number)) => number as f32,
        Number::Integer(Integer::Unsigned(number)) => number as f32,
        Number::Real(number) => number as f32,
    }
}

fn as_double(number: Number) -> f64 {
    match number {
        Number::Integer(Integer::Signed(number)) => number as f64,
        Number::Integer(Integer::Unsigned(number)) => number as f64,
        Number::Real(number) => number,
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
    fn fractions_are_cut_off() {
        let real = Datatype::ieee(8, ByteOrder::Little);
        let byte = Datatype::integer(1, true, ByteOrder::Little);
        assert_eq!(convert(&real, &byte, &(-3.9_f64).to_le_bytes()), [0xfd]);
        assert_eq!(convert(&real, &byte, &1e9_f64.to_le_bytes()), [127]);
        let single = Datatype::ieee(4, ByteOrder::Big);
        assert_eq!(convert(&byte, &single, &[0xff]), (-1_f32).to_be_bytes());
    }
}

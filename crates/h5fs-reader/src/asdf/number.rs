//! Numbers in the tree, and their encoding in an ndarray's datatype.

use crate::asdf::yaml::resolve::{self, CoreTag};
use crate::asdf::yaml::{Document, NodeIndex};
use crate::limits;
use crate::model::datatype::{ByteOrder, Class, Datatype};

/// The value of a scalar that is a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// Any other real number.
    Float(f64),
    /// `core/complex`: real and imaginary part.
    Complex(f64, f64),
}

/// Returns the number that a scalar represents according to its YAML type. Returns `None` if the
/// type is not a number, or if the text is not valid for the type.
pub(crate) fn scalar_number(document: &Document, node: NodeIndex) -> Option<Number> {
    let text = document.text(node)?;
    match document.core_tag(node) {
        Some(CoreTag::Bool) => resolve::boolean(text).map(Number::Bool),
        Some(CoreTag::Int) => resolve::integer(text).map(Number::Int),
        Some(CoreTag::Float) => resolve::float(text).map(Number::Float),
        Some(_) => None,
        None if document
            .tag(node)
            .is_some_and(|tag| tag.contains("core/complex-")) =>
        {
            complex(text)
        }
        None => None,
    }
}

/// Returns the number in a scalar of YAML type text, such as `1e5`. Returns `None` if the text is
/// not a number or is too long for one.
pub(crate) fn number_in_text(document: &Document, node: NodeIndex) -> Option<Number> {
    let text = document.text(node)?;
    if text.len() > limits::NUMBER_TEXT {
        return None;
    }
    let text = text.trim();
    let int = text.parse().ok().map(Number::Int);
    int.or_else(|| text.parse().ok().map(Number::Float))
        .or_else(|| complex(text))
}

/// Parses a complex number as in `core/complex`: `1+2j`, `(1 + 2J)`, `-3i`, `nan+infj`. Returns
/// `None` if the text is not a complex number or is too long for one.
fn complex(text: &str) -> Option<Number> {
    if text.len() > limits::NUMBER_TEXT {
        return None;
    }
    let text: String = text.to_ascii_lowercase().replace(' ', "");
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let text = inner.unwrap_or(&text);
    let Some(parts) = text.strip_suffix(['i', 'j']) else {
        return text.parse().ok().map(|real| Number::Complex(real, 0.0));
    };
    let sign = parts.char_indices().rev().find(|&(place, character)| {
        let before = parts.get(..place).unwrap_or_default();
        matches!(character, '+' | '-') && !before.ends_with('e')
    });
    let (real, imaginary) = match sign {
        Some((place, _)) if place > 0 => parts.split_at_checked(place)?,
        _ => ("0", parts),
    };
    let imaginary = match imaginary {
        "" | "+" => 1.0,
        "-" => -1.0,
        number => number.parse().ok()?,
    };
    Some(Number::Complex(real.parse().ok()?, imaginary))
}

/// Encodes a number in `datatype`. Returns `None` if the datatype cannot represent the number or is
/// not numeric.
pub(crate) fn encode_number(number: Number, datatype: &Datatype) -> Option<Vec<u8>> {
    match &datatype.class {
        Class::Bool => Some(vec![u8::from(match number {
            Number::Bool(value) => value,
            Number::Int(value) => value != 0,
            Number::Float(value) => value != 0.0,
            Number::Complex(real, imaginary) => real != 0.0 || imaginary != 0.0,
        })]),
        Class::Integer { order, signed, .. } => {
            encode_integer(to_integer(number)?, datatype.size, *signed, *order)
        }
        Class::Float(format) => Some(encode_float(to_float(number)?, datatype.size, format.order)),
        Class::Complex(base) => {
            let (real, imaginary) = match number {
                Number::Complex(real, imaginary) => (real, imaginary),
                other => (to_float(other)?, 0.0),
            };
            let order = match &base.class {
                Class::Float(format) => format.order,
                _ => return None,
            };
            let mut bytes = encode_float(real, base.size, order);
            bytes.extend(encode_float(imaginary, base.size, order));
            Some(bytes)
        }
        _ => None,
    }
}

fn to_integer(number: Number) -> Option<i128> {
    match number {
        Number::Bool(value) => Some(i128::from(value)),
        Number::Int(value) => Some(value),
        // The decimal text of a float without a fraction is exact.
        Number::Float(value) if value.is_finite() => format!("{:.0}", value.trunc()).parse().ok(),
        _ => None,
    }
}

fn to_float(number: Number) -> Option<f64> {
    match number {
        Number::Bool(value) => Some(f64::from(u8::from(value))),
        // Parsing decimal digits rounds to nearest, like a conversion.
        Number::Int(value) => value.to_string().parse().ok(),
        Number::Float(value) => Some(value),
        Number::Complex(..) => None,
    }
}

fn encode_integer(value: i128, size: u32, signed: bool, order: ByteOrder) -> Option<Vec<u8>> {
    let bytes = match (size, signed) {
        (1, true) => i8::try_from(value).ok()?.to_be_bytes().to_vec(),
        (1, false) => u8::try_from(value).ok()?.to_be_bytes().to_vec(),
        (2, true) => i16::try_from(value).ok()?.to_be_bytes().to_vec(),
        (2, false) => u16::try_from(value).ok()?.to_be_bytes().to_vec(),
        (4, true) => i32::try_from(value).ok()?.to_be_bytes().to_vec(),
        (4, false) => u32::try_from(value).ok()?.to_be_bytes().to_vec(),
        (_, true) => i64::try_from(value).ok()?.to_be_bytes().to_vec(),
        (_, false) => u64::try_from(value).ok()?.to_be_bytes().to_vec(),
    };
    Some(from_big_endian(bytes, order))
}

fn encode_float(value: f64, size: u32, order: ByteOrder) -> Vec<u8> {
    let bits = value.to_bits();
    let bytes = match size {
        2 => narrow_float_bits(bits, 5, 10)
            .to_be_bytes()
            .get(6..)
            .map(<[u8]>::to_vec),
        4 => narrow_float_bits(bits, 8, 23)
            .to_be_bytes()
            .get(4..)
            .map(<[u8]>::to_vec),
        _ => Some(bits.to_be_bytes().to_vec()),
    };
    from_big_endian(bytes.unwrap_or_default(), order)
}

fn from_big_endian(mut big: Vec<u8>, order: ByteOrder) -> Vec<u8> {
    if order != ByteOrder::Big {
        big.reverse();
    }
    big
}

/// Converts the bits of a binary64 number to a smaller IEEE 754 format, rounded to nearest, ties to
/// even.
#[expect(
    clippy::disallowed_methods,
    reason = "the numbers are parts of one of 64 bits, and no sum comes to the largest"
)]
fn narrow_float_bits(bits: u64, exponent_bits: u32, mantissa_bits: u32) -> u64 {
    let sign = bits.wrapping_shr(63);
    let exponent = i64::try_from(bits.wrapping_shr(52) & 0x7ff).unwrap_or(0);
    let mantissa = bits & 0x000f_ffff_ffff_ffff;
    let width = exponent_bits.saturating_add(mantissa_bits);
    let signed = |magnitude: u64| sign.wrapping_shl(width) | magnitude;
    let infinity = 1_u64
        .wrapping_shl(exponent_bits)
        .saturating_sub(1)
        .wrapping_shl(mantissa_bits);
    let dropped = 52_u32.saturating_sub(mantissa_bits);
    if exponent == 0x7ff {
        let quiet = 1_u64.wrapping_shl(mantissa_bits.saturating_sub(1));
        let payload = mantissa.wrapping_shr(dropped);
        return signed(infinity | if mantissa == 0 { 0 } else { payload | quiet });
    }
    let half_range = 1_i64
        .wrapping_shl(exponent_bits.saturating_sub(1))
        .saturating_sub(1);
    let biased = exponent.saturating_sub(1023).saturating_add(half_range);
    // The mantissa with its leading one bit, which subnormal numbers lack.
    let full = mantissa
        | if exponent == 0 {
            0
        } else {
            1_u64.wrapping_shl(52)
        };
    let (base, shift) = if biased > 0 {
        let base = u64::try_from(biased.saturating_sub(1)).unwrap_or(0);
        (
            base.saturating_mul(1_u64.wrapping_shl(mantissa_bits)),
            dropped,
        )
    } else {
        let below = u32::try_from(biased.saturating_neg().saturating_add(1)).unwrap_or(64);
        (0, dropped.saturating_add(below))
    };
    let kept = full.checked_shr(shift).unwrap_or(0);
    let rest = full.saturating_sub(kept.checked_shl(shift).unwrap_or(0));
    let half = 1_u64
        .checked_shl(shift.saturating_sub(1))
        .unwrap_or(u64::MAX);
    let is_up = rest > half || (rest == half && kept & 1 == 1);
    let magnitude = base.saturating_add(kept).saturating_add(u64::from(is_up));
    signed(magnitude.min(infinity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complex_numbers_are_read_in_every_spelling() {
        let cases = [
            ("1+2j", (1.0, 2.0)),
            ("(1 - 2.5I)", (1.0, -2.5)),
            ("-3i", (0.0, -3.0)),
            ("1e-3+2E+4J", (1e-3, 2e4)),
            ("4", (4.0, 0.0)),
            ("-inf+INFj", (f64::NEG_INFINITY, f64::INFINITY)),
        ];
        for (text, (real, imaginary)) in cases {
            assert_eq!(
                complex(text),
                Some(Number::Complex(real, imaginary)),
                "{text}"
            );
        }
        assert!(complex("").is_none() && complex("1+2").is_none());
    }

    /// Compares with Rust's own conversion to 32 bits.
    #[test]
    fn narrowing_to_32_bits_rounds_as_the_hardware_does() {
        let mut bits: u64 = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            let near_one =
                (bits & 0x801f_ffff_ffff_ffff) | (bits.rotate_left(8) & 0xff | 0x300) << 52;
            for bits in [bits, near_one] {
                let value = f64::from_bits(bits);
                if !value.is_nan() {
                    let expected = (value as f32).to_bits();
                    assert_eq!(
                        narrow_float_bits(bits, 8, 23),
                        u64::from(expected),
                        "{value:e}"
                    );
                }
            }
        }
    }

    /// Checks values from IEEE 754-2008, table 3.5, and midpoints between neighbours.
    #[test]
    fn narrowing_to_16_bits() {
        let half = |value: f64| narrow_float_bits(value.to_bits(), 5, 10);
        assert_eq!(half(1.0), 0x3c00);
        assert_eq!(half(65504.0), 0x7bff);
        assert_eq!(half(65520.0), 0x7c00);
        assert_eq!(half(-f64::INFINITY), 0xfc00);
        assert_eq!(half(2f64.powi(-24)), 1);
        assert_eq!(half(2f64.powi(-25)), 0);
        assert_eq!(half(1.0 + 2f64.powi(-11)), 0x3c00);
        assert_eq!(half(1.0 + 3.0 * 2f64.powi(-11)), 0x3c02);
    }
}

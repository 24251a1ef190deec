//! The length in bytes of a number's text. The length is computed without writing the text if that
//! is faster, because counting a large array examines millions of numbers.

use crate::model::Datatype;
use crate::model::datatype::{BitRange, ByteOrder, Class};
use crate::model::number::{FloatValue, ieee_bytes, length_without_exponent};
use crate::wire::Count;

/// A calculator of text lengths for numbers of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLengthCalculator {
    kind: NumberKind,
    /// Number of bytes of an element: 1, 2, 4 or 8.
    bytes: u32,
    is_big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    /// A boolean, whose text is `true` or `false`.
    Boolean,
    Unsigned,
    Signed,
    /// A floating-point number in the IEEE 754 format of four or eight bytes.
    Float,
}

impl TextLengthCalculator {
    /// Creates a calculator for elements of `datatype`. Returns `None` unless they are ASDF
    /// booleans, integers of 1, 2, 4 or 8 bytes without padding bits, or IEEE 754 numbers of 4 or 8
    /// bytes.
    pub fn from_datatype(datatype: &Datatype) -> Option<Self> {
        let bytes = datatype.size;
        let (kind, order) = match &datatype.class {
            Class::Bool => (NumberKind::Boolean, ByteOrder::Little),
            &Class::Integer {
                order,
                signed,
                bits:
                    BitRange {
                        offset: 0,
                        precision,
                    },
            } if u32::from(precision) == bytes.times(8) => {
                if signed {
                    (NumberKind::Signed, order)
                } else {
                    (NumberKind::Unsigned, order)
                }
            }
            Class::Float(format) if matches!(ieee_bytes(bytes, format), Some(4 | 8)) => {
                (NumberKind::Float, format.order)
            }
            _ => return None,
        };
        let is_big_endian = match order {
            ByteOrder::Little => false,
            ByteOrder::Big => true,
            ByteOrder::Vax => return None,
        };
        matches!(bytes, 1 | 2 | 4 | 8).then_some(TextLengthCalculator {
            kind,
            bytes,
            is_big_endian,
        })
    }

    /// Returns the length in bytes of the text of the number in `element`. With `as_json`, returns
    /// the length of the number as JSON. Returns `None` for an element that is too short.
    /// Overwrites `scratch`.
    pub fn length(&self, element: &[u8], as_json: bool, scratch: &mut Vec<u8>) -> Option<usize> {
        let word = self.element_word(element)?;
        let length = match (self.kind, self.bytes) {
            (NumberKind::Boolean, _) if word == 0 => 5,
            (NumberKind::Boolean, _) => 4,
            (NumberKind::Unsigned, _) => digit_count(word),
            (NumberKind::Signed, bytes) => {
                let unused = u64::BITS.minus_or_zero(bytes.times(8));
                let number = word
                    .checked_shl(unused)?
                    .cast_signed()
                    .checked_shr(unused)?;
                digit_count(number.unsigned_abs()).plus(usize::from(number < 0))
            }
            (NumberKind::Float, 4) => {
                let number = f32::from_bits(u32::try_from(word).ok()?);
                let length = length_without_exponent(number, number.into(), 1e6);
                length
                    .unwrap_or_else(|| written_length(FloatValue::Single(number), as_json, scratch))
            }
            (NumberKind::Float, _) => {
                let number = f64::from_bits(word);
                let length = length_without_exponent(number, number, 1e16);
                length
                    .unwrap_or_else(|| written_length(FloatValue::Double(number), as_json, scratch))
            }
        };
        Some(length)
    }

    fn element_word(&self, element: &[u8]) -> Option<u64> {
        Some(match (self.bytes, self.is_big_endian) {
            (1, _) => u64::from(*element.first()?),
            (2, false) => u64::from(u16::from_le_bytes(*element.first_chunk()?)),
            (2, true) => u64::from(u16::from_be_bytes(*element.first_chunk()?)),
            (4, false) => u64::from(u32::from_le_bytes(*element.first_chunk()?)),
            (4, true) => u64::from(u32::from_be_bytes(*element.first_chunk()?)),
            (_, false) => u64::from_le_bytes(*element.first_chunk()?),
            (_, true) => u64::from_be_bytes(*element.first_chunk()?),
        })
    }
}

/// Returns how many decimal digits `number` has.
fn digit_count(number: u64) -> usize {
    let log = number.checked_ilog10().unwrap_or(0);
    usize::try_from(log).unwrap_or(0).plus_one()
}

/// Writes a number to `scratch` and returns the length in bytes of its text.
fn written_length(real: FloatValue, as_json: bool, scratch: &mut Vec<u8>) -> usize {
    scratch.clear();
    real.write_text(scratch);
    match as_json {
        true if real.is_nan() => "null".len(),
        // The two quotes.
        true if !real.is_json_number() => scratch.len().plus(2),
        _ => scratch.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::{TextContext, ValueWriter};
    use crate::testing::{int, type_of};

    /// Compares the length with the length of the written text.
    fn check(datatype: &Datatype, elements: &[u8]) {
        let length = TextLengthCalculator::from_datatype(datatype).unwrap();
        let writer = ValueWriter::new(datatype).unwrap();
        let context = TextContext::without_pointers(usize::MAX);
        let mut scratch = Vec::new();
        for element in elements.chunks(writer.size()) {
            let (mut text, mut json) = (Vec::new(), Vec::new());
            writer.write_text(element, &context, &mut text).unwrap();
            writer.write_json(element, &context, &mut json).unwrap();
            let found = [false, true].map(|json| length.length(element, json, &mut scratch));
            assert_eq!(found, [Some(text.len()), Some(json.len())], "{element:?}");
        }
    }

    /// Returns numbers near each power of ten and of two, of either sign.
    fn numbers() -> Vec<i128> {
        let tens = (0..20).map(|power| 10_i128.pow(power));
        let twos = (0..64).map(|power| 1 << power);
        let near = |number: i128| [number - 1, number, number + 1, -number, 1 - number];
        tens.chain(twos).flat_map(near).collect()
    }

    #[test]
    fn integers_of_all_sizes() {
        for bytes in [1_u16, 2, 4, 8] {
            for signed in [true, false] {
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let of = |number: i128| match order {
                        ByteOrder::Big => number.to_be_bytes()[16 - usize::from(bytes)..].to_vec(),
                        _ => number.to_le_bytes()[..usize::from(bytes)].to_vec(),
                    };
                    let elements: Vec<u8> = numbers().into_iter().flat_map(of).collect();
                    check(&Datatype::integer(bytes, signed, order), &elements);
                }
            }
        }
        check(&type_of(1, Class::Bool), &[0, 1, 2, 255]);
    }

    #[test]
    fn floats_of_all_kinds() {
        let mut bits = 1_u64;
        let mut doubles = vec![
            0.0,
            -0.0,
            f64::NAN,
            -f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        doubles.extend(numbers().into_iter().map(|number| number as f64));
        doubles.extend([
            1e-4,
            9.999e-5,
            1e16,
            9_999_999_999_999_998.0,
            f64::MAX,
            5e-324,
            0.1,
        ]);
        doubles.extend((0..20_000).map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            f64::from_bits(bits)
        }));
        let double: Vec<u8> = doubles
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect();
        check(&Datatype::ieee(8, ByteOrder::Big), &double);
        let halves = double.chunks(4).flatten().copied();
        let singles = doubles.iter().map(|&number| number as f32);
        let single: Vec<u8> = singles.flat_map(f32::to_le_bytes).chain(halves).collect();
        check(&Datatype::ieee(4, ByteOrder::Little), &single);
    }

    #[test]
    fn other_types_have_no_calculator() {
        assert_eq!(TextLengthCalculator::from_datatype(&int(3)), None);
        assert_eq!(
            TextLengthCalculator::from_datatype(&Datatype::ieee(2, ByteOrder::Little)),
            None
        );
        let partial = Class::Integer {
            order: ByteOrder::Little,
            signed: false,
            bits: BitRange {
                offset: 0,
                precision: 12,
            },
        };
        assert_eq!(
            TextLengthCalculator::from_datatype(&type_of(2, partial)),
            None
        );
    }
}

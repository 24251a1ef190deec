//! Number types of stored elements, and exact computations with their numbers.

use std::cmp::Ordering;

use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{BitRange, ByteOrder, Class, FloatFormat};
use h5fs_reader::model::number::{self, FloatValue, Integer, append_formatted};
use serde::{Deserialize, Serialize};

/// A number without rounding: an integer or a floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum ExactNumber {
    /// An integer of any stored type.
    Integer(i128),
    /// A floating-point number.
    Real(f64),
}

/// A type of stored numbers: integers of up to eight bytes, or IEEE 754 numbers of two, four or
/// eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredType {
    size: u8,
    kind: StoredKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StoredKind {
    Integer {
        order: ByteOrder,
        signed: bool,
        bits: BitRange,
    },
    Real(FloatFormat),
}

impl ExactNumber {
    /// Returns the nearest 64-bit float.
    pub fn as_f64(self) -> f64 {
        match self {
            ExactNumber::Integer(number) => number as f64,
            ExactNumber::Real(number) => number,
        }
    }

    /// Returns the number if it is an integer; `None` for a floating-point number.
    pub fn as_integer(self) -> Option<i128> {
        match self {
            ExactNumber::Integer(number) => Some(number),
            ExactNumber::Real(_) => None,
        }
    }

    /// Returns the nearest 32-bit float.
    pub(crate) fn as_f32(self) -> f32 {
        match self {
            ExactNumber::Integer(number) => number as f32,
            ExactNumber::Real(number) => number as f32,
        }
    }

    /// Returns whether the value is NaN. Always false for an integer.
    pub fn is_nan(self) -> bool {
        matches!(self, ExactNumber::Real(number) if number.is_nan())
    }

    /// Compares two numbers by value, whatever their kind; `None` if one is NaN.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (ExactNumber::Integer(a), ExactNumber::Integer(b)) => Some(a.cmp(&b)),
            (ExactNumber::Real(a), ExactNumber::Real(b)) => a.partial_cmp(&b),
            (ExactNumber::Integer(a), ExactNumber::Real(b)) => compare_exactly(a, b),
            (ExactNumber::Real(a), ExactNumber::Integer(b)) => {
                compare_exactly(b, a).map(Ordering::reverse)
            }
        }
    }

    /// Returns whether both numbers have the same value, whatever their types.
    pub fn equals(self, other: Self) -> bool {
        self.compare(other) == Some(Ordering::Equal)
    }
}

/// Compares an integer with a floating-point number without rounding.
fn compare_exactly(integer: i128, real: f64) -> Option<Ordering> {
    /// 2 to the power of 127.
    const BOUND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if !(-BOUND..BOUND).contains(&real) {
        return 0.0_f64.partial_cmp(&real);
    }
    let fraction = 0.0_f64.partial_cmp(&(real - real.floor()));
    let whole = integer.cmp(&(real.floor() as i128));
    fraction.map(|fraction| whole.then(fraction))
}

impl StoredType {
    /// Returns the number type of `datatype`, or of the integers of an enumeration; `None` for
    /// unsupported datatypes.
    pub fn new(datatype: &Datatype) -> Option<Self> {
        let size = u8::try_from(datatype.size).ok().filter(|&size| size <= 8)?;
        let kind = match &datatype.class {
            Class::Enumeration { base, .. } => return Self::new(base),
            &Class::Integer {
                order,
                signed,
                bits,
            } => StoredKind::Integer {
                order,
                signed,
                bits,
            },
            Class::Float(format) => {
                number::ieee_bytes(datatype.size, format)?;
                StoredKind::Real(*format)
            }
            _ => return None,
        };
        Some(StoredType { size, kind })
    }

    /// Returns the size of one number in bytes.
    pub fn size(&self) -> u8 {
        self.size
    }

    /// Returns whether the integers of this type are signed; `None` for a floating-point type.
    pub fn is_signed(&self) -> Option<bool> {
        match self.kind {
            StoredKind::Integer { signed, .. } => Some(signed),
            StoredKind::Real(_) => None,
        }
    }

    /// Returns the type with the same number of bits and the given signedness. A floating-point
    /// type is unchanged.
    pub(crate) fn with_signedness(self, has_sign: bool) -> Self {
        let kind = match self.kind {
            StoredKind::Integer { order, bits, .. } => StoredKind::Integer {
                order,
                signed: has_sign,
                bits,
            },
            real => real,
        };
        StoredType { kind, ..self }
    }

    /// Returns the same type in another byte order.
    pub(crate) fn with_byte_order(self, order: ByteOrder) -> Self {
        let kind = match self.kind {
            StoredKind::Integer { signed, bits, .. } => StoredKind::Integer {
                order,
                signed,
                bits,
            },
            real => real,
        };
        StoredType { kind, ..self }
    }

    /// Returns the HDF5 datatype of this number type.
    pub fn datatype(&self) -> Datatype {
        let class = match self.kind {
            StoredKind::Integer {
                order,
                signed,
                bits,
            } => Class::Integer {
                order,
                signed,
                bits,
            },
            StoredKind::Real(format) => Class::Float(format),
        };
        let size = self.size.into();
        Datatype { size, class }
    }

    /// Reads the number in an element; NaN if the element is too short.
    pub fn read_number(&self, element: &[u8]) -> ExactNumber {
        match self.kind {
            StoredKind::Integer {
                order,
                signed,
                bits,
            } => match number::decode_integer(element, order, signed, bits) {
                Some(Integer::Signed(number)) => ExactNumber::Integer(number),
                Some(Integer::Unsigned(number)) => ExactNumber::Integer(number.cast_signed()),
                None => ExactNumber::Real(f64::NAN),
            },
            StoredKind::Real(format) => {
                let number = number::float_value(element, &format).and_then(|real| real.as_f64());
                ExactNumber::Real(number.unwrap_or(f64::NAN))
            }
        }
    }

    /// Appends the text of the number in an element.
    pub fn write_number(&self, element: &[u8], out: &mut Vec<u8>) {
        let real = match self.kind {
            StoredKind::Real(format) => number::float_value(element, &format),
            StoredKind::Integer { .. } => None,
        };
        match (real, self.read_number(element)) {
            (Some(real), _) => real.write_text(out),
            (None, ExactNumber::Integer(number)) => append_formatted(out, format_args!("{number}")),
            (None, ExactNumber::Real(number)) => FloatValue::Double(number).write_text(out),
        }
    }

    /// Converts an integer of the opposite signedness to the integer of this type with the same
    /// bits. Any other number is unchanged.
    pub(crate) fn reinterpret_sign(&self, number: ExactNumber) -> ExactNumber {
        match (self.integer_range(), number) {
            (Some((low, high)), ExactNumber::Integer(number)) => {
                let count = high - low;
                ExactNumber::Integer(match number {
                    _ if number < low && number >= low - count / 2 => number + count,
                    _ if number >= high && number < high + count / 2 => number - count,
                    _ => number,
                })
            }
            _ => number,
        }
    }

    /// Returns whether this type can represent `number`, which may be NaN, without rounding.
    pub(crate) fn can_hold(&self, number: ExactNumber) -> bool {
        match (self.integer_range(), self.size) {
            (Some((low, high)), _) => {
                let is_whole = number.as_f64().fract() == 0.0;
                let from_low = number.compare(ExactNumber::Integer(low));
                let from_high = number.compare(ExactNumber::Integer(high));
                is_whole
                    && from_low.is_some_and(Ordering::is_ge)
                    && from_high == Some(Ordering::Less)
            }
            (None, _) if number.is_nan() => true,
            (None, 8) => number.equals(ExactNumber::Real(number.as_f64())),
            (None, _) => number.equals(ExactNumber::Real(number.as_f32().into())),
        }
    }

    /// Returns the lowest integer of the type, and one more than the highest; `None` for a
    /// floating-point type.
    fn integer_range(&self) -> Option<(i128, i128)> {
        let StoredKind::Integer { signed, bits, .. } = self.kind else {
            return None;
        };
        let count = 1_i128 << bits.precision.min(64);
        Some(if signed {
            (-count / 2, count / 2)
        } else {
            (0, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::testing::{int, type_of};

    #[test]
    fn numbers_are_compared_exactly() {
        let order = |a, b| ExactNumber::Integer(a).compare(ExactNumber::Real(b));
        assert_eq!(order(1, 1.0), Some(Ordering::Equal));
        assert_eq!(
            order((1 << 53) + 1, 9_007_199_254_740_992.0),
            Some(Ordering::Greater)
        );
        assert_eq!(order(-2, -1.5), Some(Ordering::Less));
        assert_eq!(order(-1, -1.5), Some(Ordering::Greater));
        assert_eq!(order(i128::MAX, 1e300), Some(Ordering::Less));
        assert_eq!(order(0, f64::NEG_INFINITY), Some(Ordering::Greater));
        assert_eq!(order(0, f64::NAN), None);
        assert!(ExactNumber::Real(2.0).equals(ExactNumber::Integer(2)));
    }

    #[test]
    fn the_same_bits_with_another_sign() {
        let byte = StoredType::new(&int(1)).unwrap();
        let unsigned = byte.with_signedness(false);
        assert_eq!(unsigned.read_number(&[0xFF]), ExactNumber::Integer(255));
        assert_eq!(
            unsigned.reinterpret_sign(ExactNumber::Integer(-1)),
            ExactNumber::Integer(255)
        );
        assert_eq!(
            unsigned.reinterpret_sign(ExactNumber::Integer(7)),
            ExactNumber::Integer(7)
        );
        assert_eq!(
            unsigned.reinterpret_sign(ExactNumber::Integer(-129)),
            ExactNumber::Integer(-129)
        );
        assert_eq!(
            byte.reinterpret_sign(ExactNumber::Integer(200)),
            ExactNumber::Integer(-56)
        );
    }

    #[test]
    fn can_hold_checks_exact_representation() {
        let byte = StoredType::new(&int(1)).unwrap();
        assert!(
            byte.can_hold(ExactNumber::Integer(-128)) && byte.can_hold(ExactNumber::Real(127.0))
        );
        for number in [
            ExactNumber::Integer(128),
            ExactNumber::Real(0.5),
            ExactNumber::Real(f64::NAN),
        ] {
            assert!(!byte.can_hold(number));
        }
        let single = StoredType::new(&Datatype::ieee(4, ByteOrder::Big)).unwrap();
        assert!(
            single.can_hold(ExactNumber::Real(0.5)) && single.can_hold(ExactNumber::Real(f64::NAN))
        );
        assert!(
            !single.can_hold(ExactNumber::Real(0.1))
                && !single.can_hold(ExactNumber::Integer((1 << 24) + 1))
        );
    }

    #[test]
    fn unsupported_types_are_rejected() {
        assert!(StoredType::new(&int(16)).is_none());
        assert!(StoredType::new(&type_of(1, Class::Bool)).is_none());
        let base = Box::new(int(2));
        let members = vec![(b"a".to_vec(), vec![1, 0])];
        let named = type_of(2, Class::Enumeration { base, members });
        assert_eq!(StoredType::new(&named), StoredType::new(&int(2)));
    }
}

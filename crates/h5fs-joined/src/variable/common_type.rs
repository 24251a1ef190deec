//! Finds a datatype that represents the elements of several members exactly.

use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{ByteOrder, Charset, Class, StringPadding};
use h5fs_reader::model::number::ieee_bytes;

/// Returns the smallest datatype that represents the elements of all these datatypes. Returns
/// `None` if there is none.
pub(crate) fn common_datatype(types: &[&Datatype]) -> Option<Datatype> {
    let (first, others) = types.split_first()?;
    if others.iter().all(|other| other == first) {
        return Some((*first).clone());
    }
    if types
        .iter()
        .all(|own| matches!(own.class, Class::String { .. }))
    {
        let are_filled_alike = others.iter().all(|other| other.class == first.class);
        let longest = types.iter().max_by_key(|own| own.size)?;
        return are_filled_alike.then(|| (*longest).clone());
    }
    if let Class::VariableString { padding, .. } = first.class {
        return common_text_type(types, padding);
    }
    let all = types.iter().map(|own| NumberType::from_datatype(own));
    let mut all = all.collect::<Option<Vec<_>>>()?.into_iter();
    let first = all.next()?;
    all.try_fold(first, NumberType::common_type)
        .map(NumberType::datatype)
}

/// Returns the common datatype of variable-length texts. Its character set is UTF-8, which includes
/// ASCII.
fn common_text_type(types: &[&Datatype], padding: StringPadding) -> Option<Datatype> {
    let first = types.first()?;
    let is_alike = |own: &Datatype| {
        let is_padded_alike =
            matches!(own.class, Class::VariableString { padding: other, .. } if other == padding);
        is_padded_alike && own.size == first.size
    };
    let utf8 = Datatype {
        size: first.size,
        class: Class::VariableString {
            padding,
            charset: Charset::Utf8,
        },
    };
    types.iter().all(|own| is_alike(own)).then_some(utf8)
}

/// A numeric type without padding bits, with its size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberType {
    Signed(u16),
    Unsigned(u16),
    Real(u16),
}

impl NumberType {
    fn from_datatype(datatype: &Datatype) -> Option<Self> {
        let size = u16::try_from(datatype.size).ok()?;
        match &datatype.class {
            Class::Integer { signed, bits, .. } => {
                let is_whole =
                    bits.offset == 0 && bits.precision == size.checked_mul(8)? && size <= 8;
                is_whole.then_some(if *signed {
                    NumberType::Signed(size)
                } else {
                    NumberType::Unsigned(size)
                })
            }
            Class::Float(format) => {
                ieee_bytes(datatype.size, format)?;
                Some(NumberType::Real(size))
            }
            _ => None,
        }
    }

    /// Returns the smallest type that represents the numbers of `self` and of `other`.
    fn common_type(self, other: Self) -> Option<Self> {
        match (self, other) {
            (NumberType::Signed(a), NumberType::Signed(b)) => Some(NumberType::Signed(a.max(b))),
            (NumberType::Unsigned(a), NumberType::Unsigned(b)) => {
                Some(NumberType::Unsigned(a.max(b)))
            }
            (NumberType::Real(a), NumberType::Real(b)) => Some(NumberType::Real(a.max(b))),
            (NumberType::Signed(signed), NumberType::Unsigned(unsigned))
            | (NumberType::Unsigned(unsigned), NumberType::Signed(signed)) => {
                let size = signed.max(unsigned.checked_mul(2)?);
                (size <= 8).then_some(NumberType::Signed(size))
            }
            (NumberType::Real(real), NumberType::Signed(whole) | NumberType::Unsigned(whole))
            | (NumberType::Signed(whole) | NumberType::Unsigned(whole), NumberType::Real(real)) => {
                // The significands of these floats have 11, 24 and 53 bits.
                let least = match whole {
                    1 => 2,
                    2 => 4,
                    4 => 8,
                    _ => return None,
                };
                Some(NumberType::Real(real.max(least)))
            }
        }
    }

    fn datatype(self) -> Datatype {
        match self {
            NumberType::Signed(size) => Datatype::integer(size, true, ByteOrder::Little),
            NumberType::Unsigned(size) => Datatype::integer(size, false, ByteOrder::Little),
            NumberType::Real(size) => {
                Datatype::ieee(u8::try_from(size).unwrap_or(8), ByteOrder::Little)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_several_members() {
        use StringPadding::{NullPadded, NullTerminated, SpacePadded};
        let fixed = |size, padding| Datatype {
            size,
            class: Class::String {
                padding,
                charset: Charset::Ascii,
            },
        };
        let long = fixed(7, SpacePadded);
        assert_eq!(
            common_datatype(&[&fixed(2, SpacePadded), &long]),
            Some(long.clone())
        );
        assert_eq!(common_datatype(&[&fixed(7, NullPadded), &long]), None);
        let any = |size, padding, charset| Datatype {
            size,
            class: Class::VariableString { padding, charset },
        };
        let ascii = any(16, NullTerminated, Charset::Ascii);
        let utf8 = any(16, NullTerminated, Charset::Utf8);
        assert_eq!(common_datatype(&[&ascii, &utf8]), Some(utf8.clone()));
        assert_eq!(common_datatype(&[&utf8, &ascii]), Some(utf8.clone()));
        assert_eq!(common_datatype(&[&ascii, &ascii]), Some(ascii.clone()));
        for other in [
            any(12, NullTerminated, Charset::Utf8),
            any(16, SpacePadded, Charset::Utf8),
            long,
        ] {
            assert_eq!(common_datatype(&[&ascii, &other]), None);
        }
    }

    /// The expected types are the results of `numpy.result_type`, if this type represents all
    /// numbers.
    #[test]
    fn types_of_several_members() {
        let int = |size, signed| Datatype::integer(size, signed, ByteOrder::Big);
        let real = |size| Datatype::ieee(size, ByteOrder::Little);
        let of = |a: &Datatype, b: &Datatype| {
            common_datatype(&[a, b]).and_then(|own| NumberType::from_datatype(&own))
        };
        assert_eq!(
            of(&int(2, true), &int(4, true)),
            Some(NumberType::Signed(4))
        );
        assert_eq!(
            of(&int(1, false), &int(1, true)),
            Some(NumberType::Signed(2))
        );
        assert_eq!(
            of(&int(4, false), &int(1, true)),
            Some(NumberType::Signed(8))
        );
        assert_eq!(of(&int(8, false), &int(8, true)), None);
        assert_eq!(of(&real(4), &real(8)), Some(NumberType::Real(8)));
        assert_eq!(of(&int(4, true), &real(4)), Some(NumberType::Real(8)));
        assert_eq!(of(&int(2, true), &real(4)), Some(NumberType::Real(4)));
        assert_eq!(of(&int(8, true), &real(8)), None);
        assert_eq!(
            common_datatype(&[&int(2, true), &int(2, true)]),
            Some(int(2, true))
        );
    }
}

//! The data types of a Zarr store, and the conversion of the file's elements to them.
//!
//! A number has the little-endian core data type that represents all its values. The store does not
//! show a datatype if no core type represents its values exactly, or if only some readers support
//! the type.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{ByteOrder, Class, FloatFormat, StringPadding};
use h5fs_reader::model::number::{self, Integer, ieee_bytes, is_decodable};
use h5fs_reader::model::text::without_padding;
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::model::{Datatype, datatype::BitRange};
use h5fs_reader::wire::{to_u64, to_usize};

/// The data type of an array in the store, and the conversion of elements to it.
#[derive(Debug)]
pub struct DataType {
    pub(crate) kind: DataTypeKind,
    conversion: Conversion,
    /// Size in bytes of an element in the file.
    stored: usize,
}

/// A Zarr data type, and the size of its elements in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataTypeKind {
    Bool,
    Integer { size: usize, signed: bool },
    Float { size: usize },
    Complex { size: usize },
    NullTerminatedBytes { size: usize },
    RawBytes { size: usize },
    Utf32 { size: usize },
    Text,
}

/// The conversion of an element from the file's datatype to the store's data type.
#[derive(Debug)]
enum Conversion {
    /// The bytes are unchanged.
    Copy,
    /// A boolean: false if the stored integer is 0, and otherwise true.
    ToBool,
    /// The bytes of each number, which has this size, are reversed.
    ReverseBytes(usize),
    /// An integer that has fewer bits than the store's type, or another byte order.
    Widen {
        order: ByteOrder,
        signed: bool,
        bits: BitRange,
    },
    /// A floating-point number in another format than the store's type.
    ConvertFloat(FloatFormat),
    /// A string. Its padding is replaced with NULs.
    ReplacePadding(StringPadding),
    /// A text that the stored pointer leads to.
    FollowPointer(ValueWriter),
}

impl DataType {
    /// Returns the store's data type for elements of `datatype`, which must not be an array.
    /// Returns `None` if Zarr does not have such a type.
    pub fn from_datatype(datatype: &Datatype) -> Option<Self> {
        let stored = to_usize(datatype.size.into())
            .ok()
            .filter(|&size| size > 0)?;
        let (kind, conversion) = match &datatype.class {
            _ if datatype.is_boolean() => (DataTypeKind::Bool, Conversion::ToBool),
            Class::Bool => (DataTypeKind::Bool, Conversion::ToBool),
            &Class::Integer {
                order,
                signed,
                bits,
            } => integer(stored, order, signed, bits)?,
            &Class::Bitfield { order, bits } => integer(stored, order, false, bits)?,
            Class::Enumeration { base, .. } => return Self::from_datatype(base),
            Class::Float(format) => float(datatype.size, format)?,
            Class::String { padding, .. } => (
                DataTypeKind::NullTerminatedBytes { size: stored },
                match padding {
                    StringPadding::NullPadded => Conversion::Copy,
                    _ => Conversion::ReplacePadding(*padding),
                },
            ),
            Class::Ucs4(order) => (
                DataTypeKind::Utf32 { size: stored },
                order_conversion(*order, 4)?,
            ),
            Class::Opaque { .. } => (DataTypeKind::RawBytes { size: stored }, Conversion::Copy),
            Class::VariableString { .. } => {
                let writer = ValueWriter::new(datatype).ok()?;
                (DataTypeKind::Text, Conversion::FollowPointer(writer))
            }
            _ => complex(stored, datatype.complex_part()?)?,
        };
        Some(DataType {
            kind,
            conversion,
            stored,
        })
    }

    /// Returns the size in bytes of an element in the store; `None` for texts, whose lengths vary.
    pub fn size(&self) -> Option<usize> {
        match self.kind {
            DataTypeKind::Bool => Some(1),
            DataTypeKind::Integer { size, .. }
            | DataTypeKind::Float { size }
            | DataTypeKind::Complex { size }
            | DataTypeKind::NullTerminatedBytes { size }
            | DataTypeKind::RawBytes { size }
            | DataTypeKind::Utf32 { size } => Some(size),
            DataTypeKind::Text => None,
        }
    }

    /// Returns the size in bytes of an element in the file.
    pub fn stored_size(&self) -> usize {
        self.stored
    }

    /// Returns whether elements have the same bytes in the store as in the file.
    pub(crate) fn has_same_bytes(&self) -> bool {
        matches!(self.conversion, Conversion::Copy)
    }

    /// Returns whether the numbers in the file are big-endian. Returns `None` if converting them
    /// takes more than a change of byte order.
    pub(crate) fn is_big_endian(&self) -> Option<bool> {
        match (&self.conversion, self.kind) {
            (Conversion::Copy, _) => Some(false),
            (Conversion::ReverseBytes(_), DataTypeKind::Utf32 { .. }) => None,
            (Conversion::ReverseBytes(_), _) => Some(true),
            _ => None,
        }
    }

    /// Returns whether the integers have so many bits that readers that convert numbers to doubles
    /// may round them.
    pub(super) fn is_long_integer(&self) -> bool {
        matches!(self.kind, DataTypeKind::Integer { size: 8, .. })
    }

    /// Converts stored elements to the data type of the store, and appends them.
    ///
    /// # Errors
    /// Fails if a text or a number cannot be read.
    pub fn convert(
        &self,
        elements: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match &self.conversion {
            Conversion::Copy => out.extend_from_slice(elements),
            Conversion::ToBool => out.extend(elements.iter().map(|&byte| u8::from(byte != 0))),
            Conversion::ReverseBytes(size) => {
                let start = out.len();
                out.extend_from_slice(elements);
                out[start..]
                    .chunks_exact_mut(*size)
                    .for_each(<[u8]>::reverse);
            }
            Conversion::Widen {
                order,
                signed,
                bits,
            } => {
                for element in elements.chunks_exact(self.stored) {
                    let number = number::decode_integer(element, *order, *signed, *bits);
                    let number = match number.ok_or_else(not_a_number_error)? {
                        Integer::Signed(number) => number.cast_unsigned(),
                        Integer::Unsigned(number) => number,
                    };
                    let size = self.size().unwrap_or_default();
                    out.extend_from_slice(&number.to_le_bytes()[..size]);
                }
            }
            Conversion::ConvertFloat(format) => {
                for element in elements.chunks_exact(self.stored) {
                    let number =
                        number::float_value(element, format).and_then(|real| real.as_f64());
                    let number = number.ok_or_else(not_a_number_error)?;
                    match self.size() {
                        Some(4) => out.extend_from_slice(&(number as f32).to_le_bytes()),
                        _ => out.extend_from_slice(&number.to_le_bytes()),
                    }
                }
            }
            Conversion::ReplacePadding(padding) => {
                for element in elements.chunks_exact(self.stored) {
                    let end = out.len() + self.stored;
                    out.extend_from_slice(without_padding(element, *padding));
                    out.resize(end, 0);
                }
            }
            Conversion::FollowPointer(writer) => {
                for element in elements.chunks_exact(self.stored) {
                    let start = out.len();
                    out.extend_from_slice(&[0; 4]);
                    writer.write_text(element, context, out)?;
                    let length = u32::try_from(out.len() - start - 4);
                    let length =
                        length.map_err(|_| Error::limit("text", to_u64(u32::MAX as usize)))?;
                    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
                }
            }
        }
        Ok(())
    }
}

fn not_a_number_error() -> Error {
    Error::unsupported("a number of this type", None)
}

/// Returns the conversion from numbers of `size` bytes in this byte order to little-endian numbers.
fn order_conversion(order: ByteOrder, size: usize) -> Option<Conversion> {
    match order {
        ByteOrder::Little => Some(Conversion::Copy),
        ByteOrder::Big => Some(Conversion::ReverseBytes(size)),
        ByteOrder::Vax => None,
    }
}

fn integer(
    stored: usize,
    order: ByteOrder,
    signed: bool,
    bits: BitRange,
) -> Option<(DataTypeKind, Conversion)> {
    let size = stored.next_power_of_two();
    if size > 8 {
        return None;
    }
    let is_whole = bits.offset == 0 && usize::from(bits.precision) == size * 8;
    let conversion = match order_conversion(order, size).filter(|_| is_whole && size == stored) {
        Some(_) if size == 1 => Conversion::Copy,
        Some(conversion) => conversion,
        None => Conversion::Widen {
            order,
            signed,
            bits,
        },
    };
    Some((DataTypeKind::Integer { size, signed }, conversion))
}

fn float(stored: u32, format: &FloatFormat) -> Option<(DataTypeKind, Conversion)> {
    if let Some(size) = ieee_bytes(stored, format).map(usize::from) {
        return Some((
            DataTypeKind::Float { size },
            order_conversion(format.order, size)?,
        ));
    }
    /// Size in bytes of the longest number that the conversion supports.
    const LONGEST: u32 = 16;
    let size = match () {
        () if !is_decodable(format) || stored > LONGEST => return None,
        () if can_represent(format, 24, 127) => 4,
        () if can_represent(format, 53, 1023) => 8,
        () => return None,
    };
    Some((
        DataTypeKind::Float { size },
        Conversion::ConvertFloat(*format),
    ))
}

/// Returns whether the IEEE 754 format with exponent bias `bias` and a significand of `significant`
/// bits (including the implicit bit) represents all numbers of `format`.
fn can_represent(format: &FloatFormat, significant: i64, bias: i64) -> bool {
    let mantissa = i64::from(format.mantissa_bits);
    let own_bias = i64::from(format.bias);
    let highest = (1_i64 << format.exponent_bits.min(62)) - 1 - own_bias;
    let lowest = 1 - own_bias - mantissa;
    // The highest exponent is used for infinities.
    mantissa < significant && highest <= bias + 1 && lowest >= 2 - bias - significant
}

fn complex(stored: usize, part: &Datatype) -> Option<(DataTypeKind, Conversion)> {
    let Class::Float(format) = &part.class else {
        return None;
    };
    let size = ieee_bytes(part.size, format).filter(|&size| size > 2)?;
    let conversion = order_conversion(format.order, size.into())?;
    Some((DataTypeKind::Complex { size: stored }, conversion))
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::testing::{int, type_of};

    /// Converts `elements` of `datatype`, and returns the kind of the store's data type with the
    /// converted bytes. Returns `None` if the datatype does not have a data type in the store.
    fn converted(datatype: &Datatype, elements: &[u8]) -> Option<(DataTypeKind, Vec<u8>)> {
        let data_type = DataType::from_datatype(datatype)?;
        let mut out = Vec::new();
        let context = TextContext::without_pointers(0);
        data_type.convert(elements, &context, &mut out).unwrap();
        Some((data_type.kind, out))
    }

    fn float(size: u32, exponent: u8, exponent_bits: u8, bias: u32) -> Datatype {
        let precision = u16::from(exponent + exponent_bits + 1);
        let class = Class::Float(FloatFormat {
            order: ByteOrder::Little,
            bits: BitRange {
                offset: 0,
                precision,
            },
            sign: exponent + exponent_bits,
            exponent,
            exponent_bits,
            mantissa: 0,
            mantissa_bits: exponent,
            bias,
            normalization: h5fs_reader::model::datatype::Normalization::Implied,
        });
        type_of(size, class)
    }

    #[test]
    fn integers_of_other_orders_and_sizes() {
        let big = Datatype::integer(4, true, ByteOrder::Big);
        let kind = |size, signed| DataTypeKind::Integer { size, signed };
        let expected = (kind(4, true), vec![4, 3, 2, 1]);
        assert_eq!(converted(&big, &[1, 2, 3, 4]), Some(expected));
        let three = Datatype::integer(3, true, ByteOrder::Big);
        let expected = (kind(4, true), vec![0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(converted(&three, &[0xff, 0xff, 0xfe]), Some(expected));
        assert!(
            DataType::from_datatype(&int(2)).is_some_and(|data_type| data_type.has_same_bytes())
        );
        assert_eq!(
            converted(&Datatype::integer(16, false, ByteOrder::Little), &[]),
            None
        );
    }

    #[test]
    fn floats_of_other_formats_are_exact() {
        // bfloat16 is the upper half of a 32-bit float.
        let expected = (
            DataTypeKind::Float { size: 4 },
            1.5_f32.to_le_bytes().to_vec(),
        );
        assert_eq!(
            converted(&float(2, 7, 8, 127), &[0xc0, 0x3f]),
            Some(expected)
        );
        // An exponent of eleven bits requires a double.
        let wide = converted(&float(4, 20, 11, 1023), &0x3ff8_0000_u32.to_le_bytes());
        let expected = (
            DataTypeKind::Float { size: 8 },
            1.5_f64.to_le_bytes().to_vec(),
        );
        assert_eq!(wide, Some(expected));
        // The types are x86's long double, and a float with a damaged size.
        assert_eq!(converted(&float(10, 63, 15, 16383), &[]), None);
        assert_eq!(converted(&float(65_525, 7, 8, 127), &[]), None);
    }

    #[test]
    fn texts_lose_their_padding() {
        let text = |padding| {
            let charset = h5fs_reader::model::datatype::Charset::Ascii;
            type_of(4, Class::String { padding, charset })
        };
        let bytes = |padding, element| converted(&text(padding), element).unwrap().1;
        assert_eq!(bytes(StringPadding::SpacePadded, b"a b "), b"a b\0");
        assert_eq!(bytes(StringPadding::NullTerminated, b"ab\0c"), b"ab\0\0");
        assert_eq!(bytes(StringPadding::NullPadded, b"a\0b\0"), b"a\0b\0");
    }
}

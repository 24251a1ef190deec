//! The Parquet type of each datatype, and the encoding of its values.
//!
//! | datatype | field |
//! |---|---|
//! | integer of 8 bits | `INTEGER(8)`, as indices in a dictionary of all 256 values |
//! | integer of 16, 32, 64 bits | `INTEGER(bits)`; signed ones of 32 and 64 bits without annotation |
//! | integer of another number of bits, up to 64 | as the next wider integer |
//! | half float, and other formats that fit | `FLOAT` |
//! | float of 64 bits, and other formats that fit | `DOUBLE` |
//! | boolean, enumeration of FALSE and TRUE | `BOOLEAN` |
//! | enumeration of one byte | `STRING`, as indices in a dictionary of the names |
//! | other enumeration | `STRING`: the name, or the number of a value without a name |
//! | string of fixed length | `STRING` |
//! | NumPy's `datetime64` | `TIMESTAMP`; for months, years and fractions of a nanosecond `STRING` |
//! | other opaque, bit field, time | `FIXED_LEN_BYTE_ARRAY` |
//! | string of variable length | `STRING`, counted |
//! | reference | `STRING`, counted; a null reference is missing, and an error in a list |
//!
//! "Counted" means that the values are read once to add up their lengths before the file is
//! created. Other datatypes, such as wider numbers, do not have a field.

use h5fs_conventions::stored_type as numbers;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{ByteOrder, Class, FloatFormat, ReferenceKind, StringPadding};
use h5fs_reader::model::datetime64::Datetime64;
use h5fs_reader::model::number::{self, Integer};
use h5fs_reader::model::text::without_padding;
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::model::{Datatype, Reference};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;
use crate::parquet::leaf::{Dictionary, PageLayout};
use crate::parquet::schema::{ColumnType, PhysicalType, TimestampUnit};

/// The conversion of a stored value to a value of a Parquet column.
#[derive(Debug)]
pub(super) enum ValueConversion {
    /// The bytes are copied.
    Copy,
    /// The order of the bytes is reversed.
    ReverseBytes,
    /// An integer of the type `class` becomes a little-endian integer of `size` bytes: 4 or 8.
    Integer { class: Class, size: usize },
    /// A floating-point number in `format` becomes an IEEE 754 number of `size` bytes: 4 or 8.
    Real { format: FloatFormat, size: usize },
    /// A boolean becomes a byte: 0 or 1.
    Boolean,
    /// A string of fixed length becomes a text without its padding.
    Text(StringPadding),
    /// An integer that is multiplied by this factor, to change the unit of a time.
    Ticks(numbers::StoredType, i128),
    /// An index of a dictionary entry, or of a row or column of a matrix. The second value is the
    /// size of an index in bytes. The third is the number that all indices must be less than.
    Index(numbers::StoredType, u64, u64),
    /// The path of a referenced object. A null reference is an error.
    Path(ReferenceKind, ValueWriter),
    /// Any other text, computed from the stored bytes or from the value that a pointer in them
    /// leads to.
    ComputedText(ValueWriter),
}

/// The Parquet type for a datatype, the layout of its values in a page, and the conversion of each
/// value.
#[derive(Debug)]
pub(super) struct ValueEncoding {
    pub(super) kind: ColumnType,
    pub(super) body: PageLayout,
    pub(super) encoding: ValueConversion,
}

/// Size in bytes of the length that precedes the bytes of a BYTE_ARRAY.
const LENGTH_BYTES: u64 = 4;

impl ValueEncoding {
    /// Returns the encoding of a datatype that is neither a compound nor an array. Returns the
    /// reason if Parquet does not have such values.
    ///
    /// # Errors
    /// `Limit` for a datatype that is nested too deeply.
    pub(super) fn from_datatype(
        datatype: &Datatype,
    ) -> Result<std::result::Result<Self, &'static str>> {
        let size = datatype.size;
        Ok(Ok(match &datatype.class {
            _ if datatype.is_boolean() => boolean_encoding(),
            Class::Bool => boolean_encoding(),
            Class::Integer { .. } => {
                match byte_dictionary_encoding(datatype).or_else(|| integer_encoding(datatype)) {
                    Some(integer) => integer,
                    None => return Ok(Err("integers of more than 64 bits")),
                }
            }
            Class::Float(format) => match float_encoding(size, format) {
                Some(real) => real,
                None => return Ok(Err("floating-point numbers of more than 64 bits")),
            },
            Class::Enumeration { base, members } if size == 1 => ValueEncoding {
                kind: ColumnType::STRING,
                body: PageLayout::Indices(dictionary(&enumeration_texts(base, members)?)),
                encoding: ValueConversion::Copy,
            },
            Class::Enumeration { base, members } => {
                let longest = members.iter().map(|(name, _)| name.len()).max();
                /// Maximum number of characters in the text of a 64-bit integer, including a sign.
                const DIGITS: usize = 20;
                if base.size > 8 {
                    return Ok(Err("an enumeration of integers of more than 64 bits"));
                }
                let width = to_u64(longest.unwrap_or(0).max(DIGITS));
                slotted_text_encoding(
                    width,
                    ValueConversion::ComputedText(ValueWriter::new(datatype)?),
                )
            }
            Class::String { padding, .. } => {
                slotted_text_encoding(size.into(), ValueConversion::Text(*padding))
            }
            Class::Ucs4(_) => slotted_text_encoding(
                size.into(),
                ValueConversion::ComputedText(ValueWriter::new(datatype)?),
            ),
            Class::Opaque { .. } if Datetime64::from_datatype(datatype).is_some() => {
                instant_encoding(datatype)?
            }
            Class::Opaque { .. } | Class::Bitfield { .. } | Class::Time { .. } if size > 0 => {
                byte_array_encoding(datatype)
            }
            Class::VariableString { .. } => {
                counted_text_encoding(ValueConversion::ComputedText(ValueWriter::new(datatype)?))
            }
            Class::Reference(kind) => {
                counted_text_encoding(ValueConversion::Path(*kind, ValueWriter::new(datatype)?))
            }
            _ => return Ok(Err("a type that Parquet does not have")),
        }))
    }
}

impl ValueEncoding {
    /// Returns whether Parquet can represent a datatype that is neither a compound nor an array.
    pub(super) fn can_represent(datatype: &Datatype) -> bool {
        match &datatype.class {
            Class::Integer { .. } | Class::Float(_) => Self::from_number_type(datatype).is_some(),
            Class::Enumeration { base, .. } => base.size <= 8,
            Class::Opaque { .. } | Class::Bitfield { .. } | Class::Time { .. } => datatype.size > 0,
            Class::Bool
            | Class::String { .. }
            | Class::Ucs4(_)
            | Class::VariableString { .. }
            | Class::Reference(_) => true,
            _ => false,
        }
    }

    /// Returns the encoding of the items of variable-length lists. The items must be numbers or
    /// texts; texts are in PLAIN encoding. Returns `None` for other items.
    ///
    /// # Errors
    /// `Limit` for a datatype that is nested too deeply.
    pub(super) fn from_item_type(datatype: &Datatype) -> Result<Option<Self>> {
        if !Self::can_represent_item(datatype) {
            return Ok(None);
        }
        let encoding = match &datatype.class {
            Class::Integer { .. } | Class::Float(_) => return Ok(Self::from_number_type(datatype)),
            Class::String { padding, .. } => ValueConversion::Text(*padding),
            Class::Reference(kind) => ValueConversion::Path(*kind, ValueWriter::new(datatype)?),
            _ => ValueConversion::ComputedText(ValueWriter::new(datatype)?),
        };
        Ok(Some(counted_text_encoding(encoding)))
    }

    /// Returns whether [`from_item_type`](Self::from_item_type) has an encoding for items of this
    /// datatype.
    pub(super) fn can_represent_item(datatype: &Datatype) -> bool {
        match &datatype.class {
            Class::Integer { .. } | Class::Float(_) => Self::from_number_type(datatype).is_some(),
            Class::Enumeration { base, .. } => base.size <= 8 && !datatype.is_boolean(),
            Class::String { .. }
            | Class::Ucs4(_)
            | Class::VariableString { .. }
            | Class::Reference(_) => true,
            _ => false,
        }
    }

    /// Returns the encoding of integers or floating-point numbers; `None` for other datatypes, and
    /// for numbers that do not fit in 64 bits.
    pub(super) fn from_number_type(datatype: &Datatype) -> Option<Self> {
        match &datatype.class {
            Class::Integer { .. } => integer_encoding(datatype),
            Class::Float(format) => float_encoding(datatype.size, format),
            _ => None,
        }
    }
}

fn boolean_encoding() -> ValueEncoding {
    ValueEncoding {
        kind: ColumnType::plain(PhysicalType::Boolean),
        body: PageLayout::Bits,
        encoding: ValueConversion::Boolean,
    }
}

fn slotted_text_encoding(width: u64, encoding: ValueConversion) -> ValueEncoding {
    ValueEncoding {
        kind: ColumnType::STRING,
        body: PageLayout::Slots(width.saturating_add(LENGTH_BYTES)),
        encoding,
    }
}

/// Returns the encoding of instants as Parquet timestamps, or as texts if Parquet does not have the
/// unit.
fn instant_encoding(datatype: &Datatype) -> Result<ValueEncoding> {
    let instants = Datetime64::from_datatype(datatype);
    let stored =
        instants.and_then(|instants| numbers::StoredType::new(&instants.integer_datatype()));
    let ticks = instants.and_then(|instants| instants.step_length());
    let Some((ticks, stored)) = ticks.zip(stored) else {
        return Ok(counted_text_encoding(ValueConversion::ComputedText(
            ValueWriter::new(datatype)?,
        )));
    };
    let unit = if ticks.is_nanosecond {
        TimestampUnit::Nanosecond
    } else {
        TimestampUnit::Microsecond
    };
    Ok(ValueEncoding {
        kind: ColumnType::timestamp(unit, false),
        body: PageLayout::Plain(8),
        encoding: ValueConversion::Ticks(stored, ticks.ticks_per_step.into()),
    })
}

/// Returns the encoding of texts whose total length must be counted before the file is created.
fn counted_text_encoding(encoding: ValueConversion) -> ValueEncoding {
    ValueEncoding {
        kind: ColumnType::STRING,
        body: PageLayout::Counted,
        encoding,
    }
}

fn byte_array_encoding(datatype: &Datatype) -> ValueEncoding {
    ValueEncoding {
        kind: ColumnType {
            length: i32::try_from(datatype.size).ok(),
            ..ColumnType::plain(PhysicalType::FixedLenByteArray)
        },
        body: PageLayout::Plain(datatype.size.into()),
        encoding: ValueConversion::Copy,
    }
}

/// Returns the encoding of one-byte integers as indices in a dictionary of all 256 values: each
/// stored byte is an index. Returns `None` for other datatypes.
fn byte_dictionary_encoding(datatype: &Datatype) -> Option<ValueEncoding> {
    let Class::Integer { signed, bits, .. } = datatype.class else {
        return None;
    };
    let is_whole = datatype.size == 1 && (bits.offset, bits.precision) == (0, 8);
    is_whole.then(|| ValueEncoding {
        kind: ColumnType::integer(8, signed),
        body: PageLayout::Indices(dictionary(&all_bytes(signed))),
        encoding: ValueConversion::Copy,
    })
}

/// Returns the encoding of integers of up to 64 bits; `None` for other datatypes.
fn integer_encoding(datatype: &Datatype) -> Option<ValueEncoding> {
    let Class::Integer {
        order,
        signed,
        bits,
    } = datatype.class
    else {
        return None;
    };
    let size = to_usize(datatype.size.into()).ok()?;
    let wide = match bits.precision {
        0..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        33..=64 => 64,
        _ => return None,
    };
    let kind = ColumnType::integer(wide, signed);
    let is_whole = bits.offset == 0 && usize::from(bits.precision) == 8 * size;
    let width: usize = if wide == 64 { 8 } else { 4 };
    let encoding = match order {
        ByteOrder::Little if is_whole && size == width => ValueConversion::Copy,
        ByteOrder::Big if is_whole && size == width => ValueConversion::ReverseBytes,
        _ => ValueConversion::Integer {
            class: datatype.class.clone(),
            size: width,
        },
    };
    Some(ValueEncoding {
        kind,
        body: PageLayout::Plain(to_u64(width)),
        encoding,
    })
}

/// Returns the encoding of floating-point numbers that a 32-bit or 64-bit float represents exactly;
/// `None` for other formats.
fn float_encoding(size: u32, format: &FloatFormat) -> Option<ValueEncoding> {
    let is_within = |exponent: u8, mantissa: u8| {
        format.exponent_bits <= exponent && format.mantissa_bits <= mantissa
    };
    let ieee = number::ieee_bytes(size, format);
    let width: usize = match ieee {
        Some(2 | 4) => 4,
        Some(_) => 8,
        // One exponent bit less is allowed, because most subnormal numbers of the other format
        // would not fit.
        None if is_within(7, 22) => 4,
        None if is_within(11, 51) && number::is_decodable(format) => 8,
        None => return None,
    };
    let encoding = match (ieee, format.order) {
        (Some(4 | 8), ByteOrder::Little) => ValueConversion::Copy,
        (Some(4 | 8), ByteOrder::Big) => ValueConversion::ReverseBytes,
        _ => ValueConversion::Real {
            format: *format,
            size: width,
        },
    };
    Some(ValueEncoding {
        kind: ColumnType::plain(if width == 4 {
            PhysicalType::Float
        } else {
            PhysicalType::Double
        }),
        body: PageLayout::Plain(to_u64(width)),
        encoding,
    })
}

/// Creates a dictionary with these values, each in PLAIN encoding.
pub(super) fn dictionary(values: &[Vec<u8>]) -> Dictionary {
    let count = to_u64(values.len());
    Dictionary {
        values: values.concat().into(),
        count,
        index_bytes: if count > 256 { 2 } else { 1 },
    }
}

/// Returns the 256 numbers of one byte in PLAIN encoding, in the order of their bytes.
fn all_bytes(is_signed: bool) -> Vec<Vec<u8>> {
    let numbers = (0..=u8::MAX).map(|byte| {
        if is_signed {
            i32::from(byte.cast_signed())
        } else {
            i32::from(byte)
        }
    });
    numbers
        .map(|number| number.to_le_bytes().to_vec())
        .collect()
}

/// Returns the text of each of the 256 possible values of a one-byte enumeration.
fn enumeration_texts(base: &Datatype, members: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<Vec<u8>>> {
    let datatype = Datatype {
        size: base.size,
        class: Class::Enumeration {
            base: Box::new(base.clone()),
            members: members.to_vec(),
        },
    };
    let writer = ValueWriter::new(&datatype)?;
    let context = TextContext::without_pointers(limits::PARQUET_TEXT);
    let texts = (0..=u8::MAX).map(|byte| {
        let mut text = Vec::new();
        writer.write_text(&[byte], &context, &mut text)?;
        let mut value = Vec::with_capacity(text.len() + 4);
        push_text(&text, &mut value)?;
        Ok(value)
    });
    texts.collect()
}

/// Appends a text as a BYTE_ARRAY: its length, then its bytes.
///
/// # Errors
/// `Unsupported` for a text that is not UTF-8, because readers reject a whole file with such a
/// text.
pub(super) fn push_text(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if str::from_utf8(text).is_err() {
        let what = "a text that is not UTF-8 in a Parquet file (the npy view has its bytes)";
        return Err(Error::unsupported(what, None));
    }
    let length = u32::try_from(text.len());
    let length = length.map_err(|_| Error::limit("bytes of a text", u32::MAX.into()))?;
    out.extend(length.to_le_bytes());
    out.extend_from_slice(text);
    Ok(())
}

impl ValueConversion {
    /// Converts a stored value, and appends the result. `context` follows the pointers of
    /// [`Path`](Self::Path) and [`ComputedText`](Self::ComputedText).
    ///
    /// # Errors
    /// Fails if the value cannot be represented, or if a pointer is invalid.
    pub(super) fn push_value(
        &self,
        value: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            ValueConversion::Copy => out.extend_from_slice(value),
            ValueConversion::ReverseBytes => out.extend(value.iter().rev()),
            ValueConversion::Integer { class, size } => {
                let number = decode_integer(value, class)?;
                out.extend_from_slice(&number.to_le_bytes()[..*size]);
            }
            ValueConversion::Real { format, size } => {
                let number = decode_real(value, format)?;
                if *size == 4 {
                    out.extend((number as f32).to_le_bytes());
                } else {
                    out.extend(number.to_le_bytes());
                }
            }
            ValueConversion::Boolean => out.push(value.iter().any(|&byte| byte != 0).into()),
            ValueConversion::Ticks(stored, each) => {
                // The lowest number is `NaT`, not a time.
                let ticks = stored.read_number(value).as_integer();
                let ticks = ticks.filter(|ticks| *ticks != i64::MIN.into());
                let ticks = ticks.and_then(|ticks| ticks.checked_mul(*each));
                let ticks = ticks.and_then(|ticks| i64::try_from(ticks).ok());
                let what = "a time beyond 64 bits in a Parquet file";
                let ticks = ticks.ok_or_else(|| Error::unsupported(what, None))?;
                out.extend(ticks.to_le_bytes());
            }
            ValueConversion::Index(stored, size, count) => {
                let index = stored.read_number(value).as_integer();
                let index = index.and_then(|index| u64::try_from(index).ok());
                let index = index.filter(|index| index < count);
                let what = "table: a category or a position that does not exist";
                let index = index.ok_or_else(|| Error::corrupt(what, None))?;
                out.extend_from_slice(&index.to_le_bytes()[..to_usize(*size)?]);
            }
            ValueConversion::Text(padding) => push_text(without_padding(value, *padding), out)?,
            ValueConversion::Path(kind, _) if is_null(*kind, value, context)? => {
                let what = "a null reference in a list of a Parquet file (the json view has it)";
                return Err(Error::unsupported(what, None));
            }
            ValueConversion::Path(_, writer) | ValueConversion::ComputedText(writer) => {
                let mut text = Vec::new();
                writer.write_text(value, context, &mut text)?;
                push_text(&text, out)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a stored reference is null, or cannot be followed because `context` does not
/// have a container.
fn is_null(kind: ReferenceKind, value: &[u8], context: &TextContext<'_>) -> Result<bool> {
    let container = context.container;
    let target = container.map(|container| container.reference(kind, value));
    Ok(matches!(target.transpose()?, None | Some(Reference::Null)))
}

/// Returns a stored integer of type `class`.
pub(super) fn decode_integer(value: &[u8], class: &Class) -> Result<i128> {
    let Class::Integer {
        order,
        signed,
        bits,
    } = *class
    else {
        return Err(Error::unsupported(
            "table: codes or positions that are not integers",
            None,
        ));
    };
    match number::decode_integer(value, order, signed, bits) {
        Some(Integer::Signed(number)) => Ok(number),
        Some(Integer::Unsigned(number)) => Ok(number.cast_signed()),
        None => Err(Error::unsupported(
            "table: an integer of more than 128 bits",
            None,
        )),
    }
}

/// Returns a stored floating-point number as a 64-bit float, which represents the number exactly.
fn decode_real(value: &[u8], format: &FloatFormat) -> Result<f64> {
    let number = number::float_value(value, format).and_then(|real| real.as_f64());
    number.ok_or_else(|| {
        let what = "a floating-point number beyond 64 bits in a Parquet file";
        Error::unsupported(what, None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::datatype::ReferenceKind;
    use h5fs_reader::testing::{int, type_of};

    /// `can_represent`, which the directory listing uses, must agree with `from_datatype`, which
    /// the file uses.
    #[test]
    fn can_represent_agrees_with_from_datatype() {
        let enumeration = |size| {
            type_of(
                u32::from(size),
                Class::Enumeration {
                    base: Box::new(int(size)),
                    members: vec![(b"A".to_vec(), vec![1; size.into()])],
                },
            )
        };
        let types = [
            int(1),
            int(3),
            int(8),
            int(16),
            Datatype::ieee(2, ByteOrder::Big),
            Datatype::ieee(8, ByteOrder::Little),
            enumeration(1),
            enumeration(4),
            enumeration(16),
            type_of(1, Class::Bool),
            type_of(3, Class::Opaque { tag: Vec::new() }),
            type_of(0, Class::Opaque { tag: Vec::new() }),
            type_of(8, Class::Reference(ReferenceKind::Object)),
            type_of(4, Class::Compound(Vec::new())),
        ];
        let said = types.each_ref().map(ValueEncoding::can_represent);
        let made = types
            .each_ref()
            .map(|own| ValueEncoding::from_datatype(own).unwrap().is_ok());
        assert_eq!(said, made);
        assert_eq!(said.iter().filter(|is| !**is).count(), 4);
    }

    fn encode_value(datatype: &Datatype, value: &[u8]) -> (ColumnType, Vec<u8>) {
        let encoded = ValueEncoding::from_datatype(datatype).unwrap().unwrap();
        let mut out = Vec::new();
        let context = TextContext::without_pointers(usize::MAX);
        encoded
            .encoding
            .push_value(value, &context, &mut out)
            .unwrap();
        (encoded.kind, out)
    }

    #[test]
    fn numbers_equal_those_of_the_file() {
        let (kind, bytes) = encode_value(&int(2), &(-2_i16).to_le_bytes());
        assert_eq!(
            (kind, bytes),
            (
                ColumnType::integer(16, true),
                (-2_i32).to_le_bytes().to_vec()
            )
        );
        let big = Datatype::integer(8, false, ByteOrder::Big);
        let (kind, bytes) = encode_value(&big, &u64::MAX.wrapping_sub(1).to_be_bytes());
        assert_eq!(kind, ColumnType::integer(64, false));
        assert_eq!(bytes, (u64::MAX - 1).to_le_bytes());
        // 0x3E00 is 1.5.
        let (kind, bytes) = encode_value(&Datatype::ieee(2, ByteOrder::Little), &[0, 0x3E]);
        assert_eq!(kind, ColumnType::plain(PhysicalType::Float));
        assert_eq!(bytes, 1.5_f32.to_le_bytes());
        let (_, bytes) = encode_value(
            &Datatype::ieee(8, ByteOrder::Big),
            &(-0.0_f64).to_be_bytes(),
        );
        assert_eq!(bytes, (-0.0_f64).to_le_bytes());
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_refused() {
        let mut out = Vec::new();
        push_text("é".as_bytes(), &mut out).unwrap();
        assert_eq!(out, [2, 0, 0, 0, 0xC3, 0xA9]);
        assert!(push_text(b"\xB0C", &mut out).is_err());
    }
}

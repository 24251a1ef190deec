//! The datatype message, versions 1 to 5 (HDF5 3.0, IV.A.2.d; version 5 and the complex class are
//! from HDF5 2.0). Every nested type has its own version.

use crate::error::{Error, Result};
use crate::hdf5::file::number_form::Width;
use crate::limits;
use crate::model::datatype::{
    BitRange, ByteOrder, Charset, Class, Datatype, FloatFormat, Member, Normalization,
    ReferenceKind, StringPadding,
};
use crate::wire::{Count, Cursor, to_u64};

/// Reads a datatype message's body, in a file whose addresses have `size_of_offsets` bytes.
///
/// # Errors
/// `Corrupt` if a part of the type does not fit into its parent. `Limit` for types that are nested
/// too deeply or have too many parts. `Unsupported` for an unknown version or class.
pub(crate) fn read(cursor: &mut Cursor<'_>, size_of_offsets: Width) -> Result<Datatype> {
    let mut parts = 0;
    DatatypeReader {
        size_of_offsets,
        parts: &mut parts,
        depth: 0,
    }
    .datatype(cursor)
}

/// A reader of one datatype, which may be nested in another one. It counts the levels of nesting
/// and the parts of the outermost type.
struct DatatypeReader<'a> {
    size_of_offsets: Width,
    parts: &'a mut usize,
    depth: usize,
}

/// The class bit field of a datatype: 24 bits whose meaning depends on the class.
#[derive(Clone, Copy)]
struct ClassBits(u32);

impl ClassBits {
    fn is_set(self, bit: u32) -> bool {
        self.0.checked_shr(bit).unwrap_or(0) & 1 != 0
    }

    fn field(self, lowest: u32, bits: u32) -> u32 {
        let mask = 1_u32.checked_shl(bits).unwrap_or(0).wrapping_sub(1);
        self.0.checked_shr(lowest).unwrap_or(0) & mask
    }

    fn order(self) -> ByteOrder {
        if !self.is_set(0) {
            ByteOrder::Little
        } else {
            ByteOrder::Big
        }
    }
}

impl DatatypeReader<'_> {
    fn nested_reader(&mut self) -> Result<DatatypeReader<'_>> {
        let depth = self.depth.plus_one();
        Error::check_limit(depth, limits::DATATYPE_DEPTH, "depth of a datatype")?;
        Ok(DatatypeReader {
            size_of_offsets: self.size_of_offsets,
            parts: self.parts,
            depth,
        })
    }

    fn count_part(&mut self) -> Result<()> {
        *self.parts = self.parts.plus_one();
        if *self.parts > limits::DATATYPE_MEMBERS {
            Err(Error::limit(
                "parts of a datatype",
                to_u64(limits::DATATYPE_MEMBERS),
            ))
        } else {
            Ok(())
        }
    }

    fn datatype(&mut self, cursor: &mut Cursor<'_>) -> Result<Datatype> {
        self.count_part()?;
        let class_and_version = cursor.u8()?;
        let (class, version) = (class_and_version & 0x0f, class_and_version >> 4);
        if !(1..=5).contains(&version) {
            return Err(cursor.unsupported(&format!("datatype version {version}")));
        }
        let [low, middle, high] = cursor.read_array()?;
        let bits = ClassBits(u32::from_le_bytes([low, middle, high, 0]));
        let size = cursor.u32()?;
        if size == 0 {
            return Err(cursor.corrupt("elements with size 0"));
        }
        let class = match class {
            0 => integer(bits, size, cursor)?,
            1 => float(bits, size, cursor)?,
            2 => time(bits, size, cursor)?,
            3 => string(bits, cursor)?,
            4 => Class::Bitfield {
                order: bits.order(),
                bits: read_bits(size, cursor)?,
            },
            5 => opaque(bits, cursor)?,
            6 => self
                .nested_reader()?
                .compound(version, bits, size, cursor)?,
            7 => self.reference(bits, size, cursor)?,
            8 => self
                .nested_reader()?
                .enumeration(version, bits, size, cursor)?,
            9 => self.nested_reader()?.variable_length(bits, size, cursor)?,
            10 => self.nested_reader()?.array(version, size, cursor)?,
            11 => self.nested_reader()?.complex(size, cursor)?,
            class => return Err(cursor.unsupported(&format!("datatype class {class}"))),
        };
        Ok(Datatype { size, class })
    }

    fn compound(
        &mut self,
        version: u8,
        bits: ClassBits,
        size: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<Class> {
        let members = (0..bits.field(0, 16))
            .map(|_| self.member(version, size, cursor))
            .collect::<Result<Vec<_>>>()?;
        Ok(Class::Compound(members))
    }

    fn member(&mut self, version: u8, size: u32, cursor: &mut Cursor<'_>) -> Result<Member> {
        let name = padded_text(version, cursor)?;
        let offset = match version {
            1 | 2 => cursor.u32()?,
            // The offset has as many bytes as the compound's size needs, so it fits 32 bits.
            _ => u32::try_from(cursor.uint(offset_width(size))?).unwrap_or(u32::MAX),
        };
        let dims = if version == 1 {
            read_old_member_dims(cursor)?
        } else {
            Vec::new()
        };
        let element = self.datatype(cursor)?;
        let datatype = if dims.is_empty() {
            element
        } else {
            array_of(element, dims, cursor)?
        };
        match offset.checked_add(datatype.size) {
            Some(end) if end <= size => Ok(Member {
                name,
                offset,
                datatype,
            }),
            _ => Err(cursor.corrupt("a compound's member reaches past its end")),
        }
    }

    fn enumeration(
        &mut self,
        version: u8,
        bits: ClassBits,
        size: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<Class> {
        let base = self.datatype(cursor)?;
        if base.size != size || !matches!(base.class, Class::Integer { .. }) {
            return Err(
                cursor.corrupt("an enumeration whose base type is not an integer of its size")
            );
        }
        let count = bits.field(0, 16);
        let names = (0..count)
            .map(|_| {
                self.count_part()?;
                padded_text(version, cursor)
            })
            .collect::<Result<Vec<_>>>()?;
        let width = crate::wire::to_usize(u64::from(size))?;
        let values = (0..count)
            .map(|_| cursor.read_bytes(width).map(<[u8]>::to_vec))
            .collect::<Result<Vec<_>>>()?;
        let members = names.into_iter().zip(values).collect();
        Ok(Class::Enumeration {
            base: Box::new(base),
            members,
        })
    }

    /// Reads a reference datatype of `size` bytes. Up to HDF5 1.8, writers store references with
    /// addresses of 8 bytes, whatever the size of addresses in the file.
    fn reference(&self, bits: ClassBits, size: u32, cursor: &Cursor<'_>) -> Result<Class> {
        let (kind, behind_address) = match bits.field(0, 4) {
            0 => (ReferenceKind::Object, 0),
            1 => (ReferenceKind::Region, 4),
            2..=4 => return Ok(Class::Reference(ReferenceKind::Standard)),
            kind => return Err(cursor.unsupported(&format!("reference type {kind}"))),
        };
        let widths = [to_u64(self.size_of_offsets.bytes()), 8];
        let address = u64::from(size).checked_sub(behind_address);
        if address.is_some_and(|address| widths.contains(&address)) {
            Ok(Class::Reference(kind))
        } else {
            Err(cursor.corrupt(&format!("references of {size} bytes")))
        }
    }

    fn variable_length(
        &mut self,
        bits: ClassBits,
        size: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<Class> {
        let base = self.datatype(cursor)?;
        // The element is a length, an address and an index. The library reads exactly these fields,
        // whatever size the message states.
        let in_elements = to_u64(self.size_of_offsets.bytes()).plus(4 + 4);
        if in_elements != u64::from(size) {
            return Err(cursor.corrupt(&format!("variable-length elements of {size} bytes")));
        }
        match bits.field(0, 4) {
            0 => Ok(Class::VariableLength(Box::new(base))),
            1 if base.size != 1 => Err(cursor.corrupt("a string whose base type is not bytes")),
            1 => Ok(Class::VariableString {
                padding: padding(bits.field(4, 4), cursor)?,
                charset: charset(bits.field(8, 4), cursor)?,
            }),
            kind => Err(cursor.unsupported(&format!("variable-length type {kind}"))),
        }
    }

    fn array(&mut self, version: u8, size: u32, cursor: &mut Cursor<'_>) -> Result<Class> {
        let rank = usize::from(cursor.u8()?);
        if rank > limits::RANK {
            return Err(cursor.corrupt(&format!("an array datatype of rank {rank}")));
        }
        if version < 3 {
            cursor.skip(3)?;
        }
        let dims = (0..rank)
            .map(|_| cursor.u32())
            .collect::<Result<Vec<_>>>()?;
        if version < 3 {
            cursor.skip(rank.times(4))?; // permutation of the dimensions, never used
        }
        let datatype = array_of(self.datatype(cursor)?, dims, cursor)?;
        if datatype.size == size {
            Ok(datatype.class)
        } else {
            Err(cursor.corrupt("the size of an array datatype differs from its elements"))
        }
    }

    fn complex(&mut self, size: u32, cursor: &mut Cursor<'_>) -> Result<Class> {
        let base = self.datatype(cursor)?;
        if base.size.checked_mul(2) == Some(size) {
            Ok(Class::Complex(Box::new(base)))
        } else {
            Err(cursor.corrupt("a complex number does not consist of two numbers"))
        }
    }
}

fn array_of(base: Datatype, dims: Vec<u32>, cursor: &Cursor<'_>) -> Result<Datatype> {
    let size = dims
        .iter()
        .try_fold(base.size, |size, &dim| size.checked_mul(dim));
    let size = size.ok_or_else(|| cursor.corrupt("an array datatype of more than 4 GiB"))?;
    Ok(Datatype {
        size,
        class: Class::Array {
            base: Box::new(base),
            dims,
        },
    })
}

/// Reads the dimensions of a member of a compound datatype of version 1: the rank, then space for
/// four dimensions.
fn read_old_member_dims(cursor: &mut Cursor<'_>) -> Result<Vec<u32>> {
    let rank = usize::from(cursor.u8()?);
    cursor.skip(3 + 4 + 4)?; // reserved, permutation, reserved
    let dims = [cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?];
    let dims = dims.get(..rank).map(<[u32]>::to_vec);
    dims.ok_or_else(|| cursor.corrupt(&format!("a compound's member of rank {rank}")))
}

/// Reads a NUL-terminated text. In datatype messages before version 3, text and NUL are padded to a
/// multiple of 8 bytes.
fn padded_text(version: u8, cursor: &mut Cursor<'_>) -> Result<Vec<u8>> {
    let text = cursor.read_text()?.to_vec();
    if version < 3 {
        let length = text.len().plus_one();
        cursor.skip(length.next_multiple_of(8).minus_or_zero(length))?;
    }
    Ok(text)
}

/// Returns the number of bytes that the format uses for a number from 0 to `most`.
pub(crate) fn offset_width(most: u32) -> usize {
    match most {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

/// Reads the bit offset and precision of a number, which must lie within an element of `size`
/// bytes.
fn read_bits(size: u32, cursor: &mut Cursor<'_>) -> Result<BitRange> {
    let offset = cursor.u16()?;
    let precision = cursor.u16()?;
    let end = u32::from(offset).plus(u32::from(precision));
    if precision == 0 || end > size.times(8) {
        return Err(cursor.corrupt(&format!("{precision} bits at {offset} in {size} bytes")));
    }
    Ok(BitRange { offset, precision })
}

fn integer(bits: ClassBits, size: u32, cursor: &mut Cursor<'_>) -> Result<Class> {
    let number = read_bits(size, cursor)?;
    Ok(Class::Integer {
        order: bits.order(),
        signed: bits.is_set(3),
        bits: number,
    })
}

fn float(bits: ClassBits, size: u32, cursor: &mut Cursor<'_>) -> Result<Class> {
    let order = match (bits.is_set(0), bits.is_set(6)) {
        (false, false) => ByteOrder::Little,
        (true, false) => ByteOrder::Big,
        (true, true) => ByteOrder::Vax,
        (false, true) => return Err(cursor.unsupported("floating-point byte order 2")),
    };
    let normalization = match bits.field(4, 2) {
        0 => Normalization::None,
        1 => Normalization::Stored,
        2 => Normalization::Implied,
        other => return Err(cursor.unsupported(&format!("mantissa normalization {other}"))),
    };
    let number = read_bits(size, cursor)?;
    let [exponent, exponent_bits, mantissa, mantissa_bits] = cursor.read_array()?;
    let bias = cursor.u32()?;
    let end = size.times(8);
    let fits = |place: u8, count: u8| u32::from(place).plus(u32::from(count)) <= end;
    let [sign, ..] = bits.field(8, 8).to_le_bytes();
    if !fits(exponent, exponent_bits) || !fits(mantissa, mantissa_bits) || !fits(sign, 1) {
        return Err(cursor.corrupt("a floating-point number's fields reach past its end"));
    }
    Ok(Class::Float(FloatFormat {
        order,
        bits: number,
        sign,
        exponent,
        exponent_bits,
        mantissa,
        mantissa_bits,
        bias,
        normalization,
    }))
}

fn time(bits: ClassBits, size: u32, cursor: &mut Cursor<'_>) -> Result<Class> {
    let precision = cursor.u16()?;
    if u32::from(precision) <= size.times(8) {
        Ok(Class::Time {
            order: bits.order(),
            bits: BitRange {
                offset: 0,
                precision,
            },
        })
    } else {
        Err(cursor.corrupt(&format!("{precision} bits in {size} bytes")))
    }
}

fn string(bits: ClassBits, cursor: &Cursor<'_>) -> Result<Class> {
    let padding = padding(bits.field(0, 4), cursor)?;
    Ok(Class::String {
        padding,
        charset: charset(bits.field(4, 4), cursor)?,
    })
}

fn padding(number: u32, cursor: &Cursor<'_>) -> Result<StringPadding> {
    match number {
        0 => Ok(StringPadding::NullTerminated),
        1 => Ok(StringPadding::NullPadded),
        2 => Ok(StringPadding::SpacePadded),
        _ => Err(cursor.unsupported(&format!("string padding {number}"))),
    }
}

fn charset(number: u32, cursor: &Cursor<'_>) -> Result<Charset> {
    match number {
        0 => Ok(Charset::Ascii),
        1 => Ok(Charset::Utf8),
        _ => Err(cursor.unsupported(&format!("character set {number}"))),
    }
}

/// Reads an opaque datatype. The stored length of its tag is a multiple of 8. A tag of exactly that
/// length is stored without a NUL.
fn opaque(bits: ClassBits, cursor: &mut Cursor<'_>) -> Result<Class> {
    let length = usize::try_from(bits.field(0, 8)).unwrap_or(usize::MAX);
    let tag = cursor.read_bytes(length)?.split(|&byte| byte == 0).next();
    Ok(Class::Opaque {
        tag: tag.unwrap_or_default().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Datatype> {
        read(
            &mut Cursor::new(bytes, 0, "datatype message"),
            Width::new(8).unwrap(),
        )
    }

    /// A version 1 little-endian signed integer of four bytes, as defined in the specification.
    const INT32: [u8; 12] = [0x10, 0x08, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0];

    /// Returns a compound of `size` bytes whose members are all `member`, called "a", at offset 0.
    fn compound(version: u8, size: u32, member: &[u8]) -> Vec<u8> {
        let mut bytes = vec![version << 4 | 6, 1, 0, 0];
        bytes.extend(size.to_le_bytes());
        bytes.extend(b"a\0");
        bytes.push(0);
        bytes.extend(member);
        bytes
    }

    #[test]
    fn an_integer_is_read_field_by_field() {
        assert_eq!(
            parse(&INT32),
            Ok(Datatype::integer(4, true, ByteOrder::Little))
        );
    }

    /// `H5T_VAX_F32`: byte order bits 0 and 6, implied normalization, sign at bit 31. Then bit
    /// offset and precision, exponent and mantissa (position and length each), and bias.
    const VAX_F: [u8; 20] = [
        0x11, 0x61, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 129, 0, 0, 0,
    ];

    #[test]
    fn floats_of_the_vax() {
        let Ok(Class::Float(format)) = parse(&VAX_F).map(|datatype| datatype.class) else {
            panic!("a float");
        };
        assert_eq!(format.order, ByteOrder::Vax);
        assert_eq!((format.sign, format.bias), (31, 129));
        assert_eq!((format.exponent, format.exponent_bits), (23, 8));
        assert_eq!((format.mantissa, format.mantissa_bits), (0, 23));
    }

    #[test]
    fn floats_of_unknown_order_or_normalization_are_not_guessed() {
        for bits in [0x60, 0x31] {
            let mut unknown = VAX_F;
            unknown[1] = bits;
            assert!(
                matches!(parse(&unknown), Err(Error::Unsupported { .. })),
                "{bits:#x}"
            );
        }
        let mut outside = VAX_F;
        outside[2] = 32;
        assert!(matches!(parse(&outside), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn pointers_have_the_size_of_their_kind() {
        let is_right = |kind, size, size_of_offsets| {
            let message = [0x17, kind, 0, 0, size, 0, 0, 0];
            let mut cursor = Cursor::new(&message, 0, "datatype message");
            read(&mut cursor, Width::new(size_of_offsets).unwrap()).is_ok()
        };
        let (object, region) = (0, 1);
        assert!(is_right(object, 8, 8) && !is_right(object, 12, 8) && !is_right(object, 4, 8));
        assert!(is_right(region, 12, 8) && !is_right(region, 8, 8) && !is_right(region, 3, 8));
        assert!(is_right(object, 4, 4) && is_right(object, 8, 4) && !is_right(object, 12, 4));
        assert!(is_right(region, 8, 4) && is_right(region, 12, 4) && !is_right(region, 16, 4));
        for (unit, is_right) in [(1, true), (2, false)] {
            let text = [0x19, 1, 0, 0, 16, 0, 0, 0];
            let base = [0x10, 0, 0, 0, unit, 0, 0, 0, 0, 0, 8, 0];
            assert_eq!(parse(&[&text[..], &base].concat()).is_ok(), is_right);
        }
    }

    #[test]
    fn text_of_unknown_padding_or_characters_is_not_guessed() {
        let string = |bits: u8| parse(&[0x13, bits, 0, 0, 4, 0, 0, 0]);
        assert!(string(0x12).is_ok());
        assert!(matches!(string(0x03), Err(Error::Unsupported { .. })));
        assert!(matches!(string(0x20), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn bits_stay_within_their_element() {
        let mut wide = INT32;
        wide[10] = 33;
        assert!(matches!(parse(&wide), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn members_stay_within_their_compound() {
        assert!(parse(&compound(3, 4, &INT32)).is_ok());
        assert!(matches!(
            parse(&compound(3, 3, &INT32)),
            Err(Error::Corrupt { .. })
        ));
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let nested = (0..1000).fold(INT32.to_vec(), |inner, _| compound(3, 4, &inner));
        assert!(matches!(parse(&nested), Err(Error::Limit { .. })));
    }

    #[test]
    fn old_names_are_padded_to_eight() {
        let mut bytes = vec![0x16, 1, 0, 0, 4, 0, 0, 0];
        bytes.extend(b"exactly8\0\0\0\0\0\0\0\0");
        bytes.extend([0; 4]); // offset
        bytes.extend([0; 12]); // rank 0, reserved, permutation, reserved
        bytes.extend([0; 16]); // space for four dimensions
        bytes.extend(INT32);
        let Ok(Datatype {
            class: Class::Compound(members),
            ..
        }) = parse(&bytes)
        else {
            panic!("a compound");
        };
        assert_eq!(members[0].name, b"exactly8");
    }
}

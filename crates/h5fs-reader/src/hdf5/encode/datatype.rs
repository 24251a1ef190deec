//! The datatype message, versions 1 to 3 (HDF5 3.0, IV.A.2.d).

use crate::error::{Error, Result};
use crate::hdf5::encode::{CONSTANT, Message, charset_number, check_name};
use crate::hdf5::message::datatype::offset_width;
use crate::hdf5::message::kind;
use crate::limits;
use crate::model::datatype::{
    BitRange, ByteOrder, Charset, Class, Datatype, FloatFormat, Member, Normalization,
    ReferenceKind, StringPadding,
};
use crate::wire::{Count, to_usize};

const WHAT: &str = "datatype message";

/// The numbers of the datatype classes.
mod class {
    pub(super) const FIXED_POINT: u8 = 0;
    pub(super) const FLOATING_POINT: u8 = 1;
    pub(super) const TIME: u8 = 2;
    pub(super) const STRING: u8 = 3;
    pub(super) const BIT_FIELD: u8 = 4;
    pub(super) const OPAQUE: u8 = 5;
    pub(super) const COMPOUND: u8 = 6;
    pub(super) const REFERENCE: u8 = 7;
    pub(super) const ENUMERATION: u8 = 8;
    pub(super) const VARIABLE_LENGTH: u8 = 9;
    pub(super) const ARRAY: u8 = 10;
}

/// Number of bytes of a stored object reference: an address.
const OBJECT_REFERENCE: u32 = 8;
/// Number of bytes of a stored region reference: a global heap ID.
const REGION_REFERENCE: u32 = 12;
/// Number of bytes of a stored variable-length element: a length and a global heap ID.
const VARIABLE_LENGTH_ELEMENT: u32 = 16;

/// Encodes `datatype`, with `Bool` and `Complex` in the forms that h5py uses. The datatype and all its parts have the lowest
/// version that can express them, so that HDF5 1.8 reads it:
///
/// | version | condition |
/// |---|---|
/// | 3 | a part is a floating-point number in VAX order |
/// | 2 | a part is an array |
/// | 1 | otherwise |
///
/// # Errors
/// `Unsupported` for
///
/// - UCS-4 text and the references of HDF5 1.12
/// - a pointer whose size is not the size for addresses of 8 bytes: 8 for an object reference, 12
///   for a region reference, 16 for a variable-length element
/// - an empty name, a name or a tag with a NUL, a compound or an enumeration without members, or
///   elements of 0 bytes
/// - an integer in VAX order
///
/// `Limit` for too many levels, members or dimensions, and for a message of 64 KiB or more.
/// `Corrupt` for a member that reaches past the end of its compound.
pub fn encode(datatype: &Datatype) -> Result<Message> {
    let datatype = hdf5_datatype(datatype)?;
    let mut encoder = DatatypeEncoder {
        version: required_version(&datatype),
        data: Vec::new(),
    };
    encoder.add(&datatype)?;
    Message::new(kind::DATATYPE, CONSTANT, encoder.data, WHAT)
}

/// Returns a datatype of HDF5 1.8 for the same stored bytes, in the forms that h5py uses:
///
/// | class | result |
/// |---|---|
/// | `Bool` | enumeration of `FALSE` and `TRUE` in one byte |
/// | `Complex` | compound of the members `r` and `i` |
/// | other | unchanged, except for nested datatypes |
///
/// # Errors
/// `Unsupported` for UCS-4 text and for the references of HDF5 1.12. `Limit` for datatypes that are
/// nested too deeply.
pub(super) fn hdf5_datatype(datatype: &Datatype) -> Result<Datatype> {
    convert(datatype, 0)
}

/// Converts a datatype that is nested in `depth` others.
fn convert(datatype: &Datatype, depth: usize) -> Result<Datatype> {
    Error::check_limit(depth, limits::DATATYPE_DEPTH, "depth of a datatype")?;
    let inner = |base: &Datatype| convert(base, depth.plus_one());
    let class = match &datatype.class {
        Class::Bool => boolean(),
        Class::Complex(base) => complex(&inner(base)?),
        Class::Ucs4(_) => return Err(unsupported("UCS-4 text")),
        Class::Reference(ReferenceKind::Standard) => {
            return Err(unsupported("a reference of HDF5 1.12"));
        }
        Class::Compound(members) => {
            let convert_member = |member: &Member| {
                Ok(Member {
                    name: member.name.clone(),
                    offset: member.offset,
                    datatype: inner(&member.datatype)?,
                })
            };
            Class::Compound(members.iter().map(convert_member).collect::<Result<_>>()?)
        }
        Class::VariableLength(base) => Class::VariableLength(Box::new(inner(base)?)),
        Class::Array { base, dims } => Class::Array {
            base: Box::new(inner(base)?),
            dims: dims.clone(),
        },
        class => class.clone(),
    };
    let size = datatype.size;
    Ok(Datatype { size, class })
}

fn boolean() -> Class {
    let member = |name: &[u8], value| (name.to_vec(), vec![value]);
    Class::Enumeration {
        base: Box::new(Datatype::integer(1, true, ByteOrder::Little)),
        members: vec![member(b"FALSE", 0), member(b"TRUE", 1)],
    }
}

fn complex(part: &Datatype) -> Class {
    let member = |name: &[u8], offset| Member {
        name: name.to_vec(),
        offset,
        datatype: part.clone(),
    };
    Class::Compound(vec![member(b"r", 0), member(b"i", part.size)])
}

/// Returns the lowest version of the message that can express `datatype`.
fn required_version(datatype: &Datatype) -> u8 {
    match &datatype.class {
        Class::Float(format) if format.order == ByteOrder::Vax => 3,
        Class::Array { base, .. } => required_version(base).max(2),
        Class::VariableLength(base) => required_version(base),
        Class::Compound(members) => {
            let versions = members
                .iter()
                .map(|member| required_version(&member.datatype));
            versions.max().unwrap_or(1)
        }
        _ => 1,
    }
}

/// The encoder of a datatype and its parts, which all have the same version.
struct DatatypeEncoder {
    version: u8,
    data: Vec<u8>,
}

impl DatatypeEncoder {
    fn add(&mut self, datatype: &Datatype) -> Result<()> {
        let size = datatype.size;
        if size == 0 {
            return Err(unsupported("elements of 0 bytes"));
        }
        match &datatype.class {
            Class::Integer {
                order,
                signed,
                bits,
            } => {
                let sign = if *signed { 1 << 3 } else { 0 };
                self.add_prefix(class::FIXED_POINT, order_bit(*order)? | sign, size);
                self.add_bit_range(*bits);
            }
            Class::Float(format) => self.add_float(format, size),
            Class::Time { order, bits } => {
                self.add_prefix(class::TIME, order_bit(*order)?, size);
                self.data.extend(bits.precision.to_le_bytes());
            }
            Class::String { padding, charset } => {
                let bits = text_bits(*padding, *charset);
                self.add_prefix(class::STRING, bits, size);
            }
            Class::Bitfield { order, bits } => {
                self.add_prefix(class::BIT_FIELD, order_bit(*order)?, size);
                self.add_bit_range(*bits);
            }
            Class::Opaque { tag } => self.add_opaque(tag, size)?,
            Class::Compound(members) => self.add_compound(members, size)?,
            Class::Reference(reference) => self.add_reference(*reference, size)?,
            Class::Enumeration { base, members } => self.add_enumeration(base, members, size)?,
            Class::VariableLength(base) => {
                check_pointer(size, VARIABLE_LENGTH_ELEMENT)?;
                self.add_prefix(class::VARIABLE_LENGTH, 0, size);
                self.add(base)?;
            }
            Class::VariableString { padding, charset } => {
                const STRING: u32 = 1;
                check_pointer(size, VARIABLE_LENGTH_ELEMENT)?;
                let bits = STRING | text_bits(*padding, *charset) << 4;
                self.add_prefix(class::VARIABLE_LENGTH, bits, size);
                self.add(&Datatype::integer(1, false, ByteOrder::Little))?;
            }
            Class::Array { base, dims } => self.add_array(base, dims, size)?,
            Class::Ucs4(_) | Class::Bool | Class::Complex(_) => {
                return Err(unsupported("a class that HDF5 1.8 does not have"));
            }
        }
        Ok(())
    }

    /// Adds the class and version, the 24 bits whose meaning depends on the class, and the size of
    /// an element in bytes.
    fn add_prefix(&mut self, class: u8, bits: u32, size: u32) {
        let [low, middle, high, _] = bits.to_le_bytes();
        self.data
            .extend([self.version << 4 | class, low, middle, high]);
        self.data.extend(size.to_le_bytes());
    }

    fn add_bit_range(&mut self, bits: BitRange) {
        self.data.extend(bits.offset.to_le_bytes());
        self.data.extend(bits.precision.to_le_bytes());
    }

    fn add_float(&mut self, format: &FloatFormat, size: u32) {
        let order = match format.order {
            ByteOrder::Little => 0,
            ByteOrder::Big => 1,
            ByteOrder::Vax => 1 | 1 << 6,
        };
        let normalization = match format.normalization {
            Normalization::None => 0,
            Normalization::Stored => 1,
            Normalization::Implied => 2,
        };
        let bits = order | normalization << 4 | u32::from(format.sign) << 8;
        self.add_prefix(class::FLOATING_POINT, bits, size);
        self.add_bit_range(format.bits);
        self.data.extend([
            format.exponent,
            format.exponent_bits,
            format.mantissa,
            format.mantissa_bits,
        ]);
        self.data.extend(format.bias.to_le_bytes());
    }

    /// Adds an opaque datatype. Its tag is padded with NULs to a multiple of 8 bytes.
    fn add_opaque(&mut self, tag: &[u8], size: u32) -> Result<()> {
        const MOST: u8 = 248;
        if tag.contains(&0) {
            return Err(unsupported("a tag that contains a NUL"));
        }
        let padded = tag.len().next_multiple_of(8);
        let length = u8::try_from(padded).ok().filter(|length| *length <= MOST);
        let what = "tag of an opaque datatype";
        let length = length.ok_or_else(|| Error::limit(what, MOST.into()))?;
        self.add_prefix(class::OPAQUE, length.into(), size);
        self.add_padded(tag, padded);
        Ok(())
    }

    fn add_compound(&mut self, members: &[Member], size: u32) -> Result<()> {
        self.add_prefix(class::COMPOUND, count_bits(members.len())?, size);
        members
            .iter()
            .try_for_each(|member| self.add_member(member, size))
    }

    /// Adds a member of a compound of `size` bytes.
    fn add_member(&mut self, member: &Member, size: u32) -> Result<()> {
        let end = member.offset.checked_add(member.datatype.size);
        if end.is_none_or(|end| end > size) {
            let what = format!("{WHAT}: a compound's member reaches past its end");
            return Err(Error::corrupt(what, None));
        }
        self.add_name(&member.name)?;
        let width = if self.version < 3 {
            4
        } else {
            offset_width(size)
        };
        self.data
            .extend(member.offset.to_le_bytes().iter().take(width));
        if self.version == 1 {
            // Version 1 describes array members by a rank, a permutation and dimensions. All are 0,
            // because a compound with arrays has version 2.
            self.data.extend([0; 1 + 3 + 4 + 4 + 4 * 4]);
        }
        self.add(&member.datatype)
    }

    fn add_reference(&mut self, reference: ReferenceKind, size: u32) -> Result<()> {
        const OBJECT: u32 = 0;
        const REGION: u32 = 1;
        let (bits, expected) = match reference {
            ReferenceKind::Object => (OBJECT, OBJECT_REFERENCE),
            ReferenceKind::Region => (REGION, REGION_REFERENCE),
            ReferenceKind::Standard => return Err(unsupported("a reference of HDF5 1.12")),
        };
        check_pointer(size, expected)?;
        self.add_prefix(class::REFERENCE, bits, size);
        Ok(())
    }

    fn add_enumeration(
        &mut self,
        base: &Datatype,
        members: &[(Vec<u8>, Vec<u8>)],
        size: u32,
    ) -> Result<()> {
        let width = to_usize(base.size.into())?;
        if members.iter().any(|(_, value)| value.len() != width) {
            let what = format!("{WHAT}: an enumeration's value has another size than its type");
            return Err(Error::corrupt(what, None));
        }
        self.add_prefix(class::ENUMERATION, count_bits(members.len())?, size);
        self.add(base)?;
        members
            .iter()
            .try_for_each(|(name, _)| self.add_name(name))?;
        self.data
            .extend(members.iter().flat_map(|(_, value)| value));
        Ok(())
    }

    fn add_array(&mut self, base: &Datatype, dims: &[u32], size: u32) -> Result<()> {
        Error::check_limit(dims.len(), limits::RANK, "rank of an array datatype")?;
        self.add_prefix(class::ARRAY, 0, size);
        let [rank, ..] = dims.len().to_le_bytes();
        self.data.push(rank);
        if self.version < 3 {
            self.data.extend([0; 3]);
        }
        self.data
            .extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        if self.version < 3 {
            // The permutation of the dimensions, which is always the identity.
            let axes = (0_u32..).zip(dims);
            self.data
                .extend(axes.flat_map(|(axis, _)| axis.to_le_bytes()));
        }
        self.add(base)
    }

    /// Adds a name with its NUL. Before version 3, name and NUL are padded to a multiple of 8
    /// bytes.
    fn add_name(&mut self, name: &[u8]) -> Result<()> {
        check_name(name, WHAT)?;
        let length = name.len().plus_one();
        let padded = match self.version {
            ..3 => length.next_multiple_of(8),
            _ => length,
        };
        self.add_padded(name, padded);
        Ok(())
    }

    /// Adds a text, and NULs up to `length` bytes.
    fn add_padded(&mut self, text: &[u8], length: usize) {
        let end = self.data.len().plus(length);
        self.data.extend(text);
        self.data.resize(end, 0);
    }
}

/// Returns the bit of a byte order.
fn order_bit(order: ByteOrder) -> Result<u32> {
    match order {
        ByteOrder::Little => Ok(0),
        ByteOrder::Big => Ok(1),
        ByteOrder::Vax => Err(unsupported("an integer in VAX order")),
    }
}

/// Returns the bits of a string: its padding in the lowest four, then its character set.
fn text_bits(padding: StringPadding, charset: Charset) -> u32 {
    let padding = match padding {
        StringPadding::NullTerminated => 0,
        StringPadding::NullPadded => 1,
        StringPadding::SpacePadded => 2,
    };
    padding | u32::from(charset_number(charset)) << 4
}

/// Returns the bits of a number of members, which are 16. HDF5 1.10 refuses a datatype without
/// members.
fn count_bits(count: usize) -> Result<u32> {
    if count == 0 {
        return Err(unsupported("a datatype without members"));
    }
    let bits = u16::try_from(count);
    let what = "members of a datatype";
    Ok(bits
        .map_err(|_| Error::limit(what, u16::MAX.into()))?
        .into())
}

/// Checks the number of bytes of a stored pointer.
fn check_pointer(size: u32, expected: u32) -> Result<()> {
    if size == expected {
        Ok(())
    } else {
        Err(unsupported(&format!("a pointer of {size} bytes")))
    }
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("{WHAT}: {what}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(datatype: &Datatype) -> Vec<u8> {
        encode(datatype).unwrap().data().to_vec()
    }

    fn typed(size: u32, class: Class) -> Datatype {
        Datatype { size, class }
    }

    fn member(name: &[u8], offset: u32, datatype: Datatype) -> Member {
        Member {
            name: name.to_vec(),
            offset,
            datatype,
        }
    }

    fn integer(size: u16) -> Datatype {
        Datatype::integer(size, true, ByteOrder::Little)
    }

    fn array(base: Datatype, dims: &[u32]) -> Datatype {
        let size = base.size * dims.iter().product::<u32>();
        let class = Class::Array {
            base: Box::new(base),
            dims: dims.to_vec(),
        };
        typed(size, class)
    }

    // The expected bytes of this module are from h5py's `TypeID.encode()`, if no comment names
    // another source.

    const INT16: [u8; 12] = [0x10, 8, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0];
    const INT32: [u8; 12] = [0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0];
    const FLOAT64: [u8; 20] = [
        0x11, 0x20, 0x3f, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0,
    ];

    /// `STD_I32LE`, `STD_U16BE`, `IEEE_F64LE`, `IEEE_F16BE`, `UNIX_D32LE` and `STD_B16BE`.
    #[test]
    fn number_types_equal_the_library() {
        assert_eq!(data(&integer(4)), INT32);
        let unsigned = Datatype::integer(2, false, ByteOrder::Big);
        assert_eq!(data(&unsigned), [0x10, 1, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0]);
        assert_eq!(data(&Datatype::ieee(8, ByteOrder::Little)), FLOAT64);
        let half = [
            0x11, 0x21, 0x0f, 0, 2, 0, 0, 0, 0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0,
        ];
        assert_eq!(data(&Datatype::ieee(2, ByteOrder::Big)), half);
        let bits = |precision| BitRange {
            offset: 0,
            precision,
        };
        let (order, bits32) = (ByteOrder::Little, bits(32));
        let time = Class::Time {
            order,
            bits: bits32,
        };
        assert_eq!(data(&typed(4, time)), [0x12, 0, 0, 0, 4, 0, 0, 0, 32, 0]);
        let (order, bits) = (ByteOrder::Big, bits(16));
        let field = data(&typed(2, Class::Bitfield { order, bits }));
        assert_eq!(field, [0x14, 1, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0]);
    }

    /// Fixed strings from h5py, and the variable-length string of an attribute in a file that h5py
    /// wrote.
    #[test]
    fn text_types_equal_the_library() {
        let (padding, charset) = (StringPadding::NullPadded, Charset::Ascii);
        let text = data(&typed(5, Class::String { padding, charset }));
        assert_eq!(text, [0x13, 0x01, 0, 0, 5, 0, 0, 0]);
        let (padding, charset) = (StringPadding::SpacePadded, Charset::Utf8);
        let text = data(&typed(3, Class::String { padding, charset }));
        assert_eq!(text, [0x13, 0x12, 0, 0, 3, 0, 0, 0]);
        let padding = StringPadding::NullTerminated;
        let text = data(&typed(16, Class::VariableString { padding, charset }));
        let mut expected = vec![0x19, 1, 1, 0, 16, 0, 0, 0];
        expected.extend([0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
        assert_eq!(text, expected);
    }

    #[test]
    fn tags_are_padded_to_eight() {
        let opaque = |tag: &[u8]| data(&typed(5, Class::Opaque { tag: tag.to_vec() }));
        assert_eq!(opaque(b"abc"), b"\x15\x08\0\0\x05\0\0\0abc\0\0\0\0\0");
        assert_eq!(opaque(b"12345678"), b"\x15\x08\0\0\x05\0\0\x0012345678");
        assert_eq!(opaque(b""), b"\x15\0\0\0\x05\0\0\0");
    }

    #[test]
    fn a_compound_without_arrays_has_version_1() {
        let members = vec![
            member(b"a", 0, integer(4)),
            member(b"longname", 8, Datatype::ieee(8, ByteOrder::Little)),
        ];
        let mut expected = vec![0x16, 2, 0, 0, 16, 0, 0, 0];
        expected.extend(b"a\0\0\0\0\0\0\0");
        expected.extend([0; 4 + 28]);
        expected.extend(INT32);
        expected.extend(b"longname\0\0\0\0\0\0\0\0");
        expected.extend([8, 0, 0, 0]);
        expected.extend([0; 28]);
        expected.extend(FLOAT64);
        assert_eq!(data(&typed(16, Class::Compound(members))), expected);
    }

    #[test]
    fn arrays_and_their_compounds_have_version_2() {
        let array = array(integer(2), &[2, 3]);
        let mut expected = vec![0x2a, 0, 0, 0, 12, 0, 0, 0];
        expected.extend([2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        expected.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        // The library leaves version 1 in a base that does not need a later one.
        let base = [&[0x20], &INT16[1..]].concat();
        expected.extend(&base);
        assert_eq!(data(&array), expected);
        let compound = typed(16, Class::Compound(vec![member(b"a", 0, array)]));
        let mut whole = vec![0x26, 1, 0, 0, 16, 0, 0, 0];
        whole.extend(b"a\0\0\0\0\0\0\0");
        whole.extend([0; 4]);
        whole.extend(expected);
        assert_eq!(data(&compound), whole);
    }

    /// Written from the specification: version 3 packs names, and an offset has as many bytes as
    /// the size of the compound needs.
    #[test]
    fn vax_order_needs_version_3() {
        let Class::Float(ieee) = Datatype::ieee(4, ByteOrder::Vax).class else {
            panic!("a float");
        };
        let vax = typed(4, Class::Float(FloatFormat { bias: 129, ..ieee }));
        let number = [
            0x31, 0x61, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 129, 0, 0, 0,
        ];
        assert_eq!(data(&vax), number);
        let in_two_bytes = typed(256, Class::Compound(vec![member(b"a", 0x0a, vax.clone())]));
        let expected = [b"\x36\x01\0\0\0\x01\0\0a\0\x0a\0", &number[..]].concat();
        assert_eq!(data(&in_two_bytes), expected);
        let array = array(vax, &[2]);
        let expected = [b"\x3a\0\0\0\x08\0\0\0\x01\x02\0\0\0", &number[..]].concat();
        assert_eq!(data(&array), expected);
    }

    #[test]
    fn an_enumeration_lists_names_before_values() {
        let members = vec![(b"A".to_vec(), vec![1]), (b"BB".to_vec(), vec![2])];
        let base = Box::new(Datatype::integer(1, false, ByteOrder::Little));
        let mut expected = vec![0x18, 2, 0, 0, 1, 0, 0, 0];
        expected.extend([0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
        expected.extend(b"A\0\0\0\0\0\0\0BB\0\0\0\0\0\0\x01\x02");
        let enumeration = Class::Enumeration { base, members };
        assert_eq!(data(&typed(1, enumeration)), expected);
    }

    #[test]
    fn pointer_types_equal_the_library() {
        let reference = |kind, size| data(&typed(size, Class::Reference(kind)));
        let object = reference(ReferenceKind::Object, 8);
        assert_eq!(object, [0x17, 0, 0, 0, 8, 0, 0, 0]);
        let region = reference(ReferenceKind::Region, 12);
        assert_eq!(region, [0x17, 1, 0, 0, 12, 0, 0, 0]);
        let sequence = typed(16, Class::VariableLength(Box::new(integer(2))));
        let expected = [&[0x19, 0, 0, 0, 16, 0, 0, 0], &INT16[..]].concat();
        assert_eq!(data(&sequence), expected);
    }

    /// h5py's types for `bool` and `complex128`.
    #[test]
    fn newer_classes_become_the_types_of_h5py() {
        let mut expected = vec![0x18, 2, 0, 0, 1, 0, 0, 0];
        expected.extend([0x10, 8, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]);
        expected.extend(b"FALSE\0\0\0TRUE\0\0\0\0\x00\x01");
        assert_eq!(data(&typed(1, Class::Bool)), expected);
        let part = Datatype::ieee(8, ByteOrder::Little);
        let mut expected = vec![0x16, 2, 0, 0, 16, 0, 0, 0];
        for (name, offset) in [(b'r', 0), (b'i', 8)] {
            expected.extend([name, 0, 0, 0, 0, 0, 0, 0, offset, 0, 0, 0]);
            expected.extend([0; 28]);
            expected.extend(FLOAT64);
        }
        assert_eq!(data(&typed(16, Class::Complex(Box::new(part)))), expected);
    }

    #[test]
    fn types_that_hdf5_1_8_cannot_express_are_rejected() {
        let compound = |members| Class::Compound(members);
        let opaque = |tag: &[u8]| Class::Opaque { tag: tag.to_vec() };
        let enumeration = |members| Class::Enumeration {
            base: Box::new(integer(4)),
            members,
        };
        let vax = Datatype::integer(4, true, ByteOrder::Vax).class;
        let unsupported = [
            (4, Class::Ucs4(ByteOrder::Little)),
            (16, Class::Reference(ReferenceKind::Standard)),
            (4, Class::Reference(ReferenceKind::Object)),
            (12, Class::VariableLength(Box::new(integer(2)))),
            (0, opaque(b"")),
            (4, opaque(b"a\0b")),
            (4, vax),
            (4, compound(vec![])),
            (4, enumeration(vec![])),
            (4, enumeration(vec![(b"".to_vec(), vec![0; 4])])),
            (4, compound(vec![member(b"a\0b", 0, integer(4))])),
            (4, compound(vec![member(b"", 0, integer(4))])),
        ];
        for (size, class) in unsupported {
            let failure = encode(&typed(size, class)).unwrap_err();
            assert!(matches!(failure, Error::Unsupported { .. }), "{failure}");
        }
        let past = typed(4, compound(vec![member(b"a", 1, integer(4))]));
        let long = typed(4, enumeration(vec![(b"a".to_vec(), vec![0; 5])]));
        for inconsistent in [past, long] {
            assert!(matches!(encode(&inconsistent), Err(Error::Corrupt { .. })));
        }
    }

    #[test]
    fn sizes_are_limited() {
        let nested = |levels| {
            (0..levels).fold(integer(2), |base, _| {
                typed(16, Class::VariableLength(Box::new(base)))
            })
        };
        assert!(encode(&nested(limits::DATATYPE_DEPTH)).is_ok());
        let many = vec![member(b"a", 0, integer(4)); 1500];
        let deep = nested(limits::DATATYPE_DEPTH + 1);
        let tag = Class::Opaque { tag: vec![1; 249] };
        let flat = array(integer(1), &[1; limits::RANK + 1]);
        for datatype in [deep, typed(4, Class::Compound(many)), typed(4, tag), flat] {
            let failure = encode(&datatype).unwrap_err();
            assert!(matches!(failure, Error::Limit { .. }), "{failure}");
        }
    }
}

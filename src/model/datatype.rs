//! The type of one stored element: class, size and layout of its bits.
//!
//! The classes are those of the HDF5 specification (3.0, IV.A.2.d); ASDF's datatypes are a subset,
//! with two more (`Ucs4`, `Bool`).

use serde::{Deserialize, Serialize};

use crate::memory::piece;
use crate::wire::{Count, to_u64};

/// The type of one stored element.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Datatype {
    /// Bytes of one stored element. HDF5 variable-length types: of the stored reference.
    pub size: u32,
    /// The meaning of the bytes.
    pub class: Class,
}

/// The meaning of an element's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Fixed-point number.
    Integer {
        /// Order of the bytes.
        order: ByteOrder,
        /// Two's complement, or unsigned.
        signed: bool,
        /// Where the number's bits stand.
        bits: Bits,
    },
    /// Floating-point number.
    Float(Float),
    /// HDF5 time: stored bytes without a defined meaning.
    Time {
        /// Order of the bytes.
        order: ByteOrder,
        /// Where the number's bits stand.
        bits: Bits,
    },
    /// Text of fixed length, `size` bytes.
    String {
        /// The bytes that follow the text within its size.
        padding: StringPadding,
        /// How its characters are encoded.
        charset: Charset,
    },
    /// ASDF: text of fixed length, four bytes a character, NUL-padded.
    Ucs4(ByteOrder),
    /// ASDF `bool8`: zero is false.
    Bool,
    /// An unsigned number that stands for its bits.
    Bitfield {
        /// Order of the bytes.
        order: ByteOrder,
        /// Where the bits stand.
        bits: Bits,
    },
    /// Bytes that only their tag explains.
    Opaque {
        /// The tag, without its padding, bytes as in the file.
        tag: Vec<u8>,
    },
    /// A record.
    Compound(Vec<Member>),
    /// A pointer to an object, a region or an attribute.
    Reference(ReferenceKind),
    /// Named numbers.
    Enumeration {
        /// The integer type of the values.
        base: Box<Datatype>,
        /// Names (bytes as in the file) with their values as stored, `base.size` bytes each, in
        /// file order.
        members: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// A sequence of any length.
    VariableLength(Box<Datatype>),
    /// A string of any length.
    VariableString {
        /// The end of the text.
        padding: StringPadding,
        /// How its characters are encoded.
        charset: Charset,
    },
    /// An array of fixed shape within each element, C order.
    Array {
        /// The type of its elements.
        base: Box<Datatype>,
        /// Its dimensions, slowest first.
        dims: Vec<u32>,
    },
    /// Two numbers of the base type, the real part first.
    Complex(Box<Datatype>),
}

/// One field of a compound.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Bytes as in the file.
    pub name: Vec<u8>,
    /// Bytes from the record's start.
    pub offset: u32,
    /// The field's type.
    pub datatype: Datatype,
}

/// The order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ByteOrder {
    /// Least significant first.
    Little,
    /// Most significant first.
    Big,
    /// 16-bit little-endian words, the most significant first.
    Vax,
}

/// The part of an element that a number fills; the rest is padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bits {
    /// The lowest bit.
    pub offset: u16,
    /// The number of bits.
    pub precision: u16,
}

/// A floating-point format, by the places of its fields, counted in bits from the element's lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Float {
    /// Order of the bytes.
    pub order: ByteOrder,
    /// Where the number's bits stand.
    pub bits: Bits,
    /// Place of the sign bit.
    pub sign: u8,
    /// Place of the exponent's lowest bit.
    pub exponent: u8,
    /// Bits of the exponent.
    pub exponent_bits: u8,
    /// Place of the mantissa's lowest bit.
    pub mantissa: u8,
    /// Bits of the mantissa.
    pub mantissa_bits: u8,
    /// The number that is added to the exponent before it is stored.
    pub bias: u32,
    /// Where the mantissa's leading one is.
    pub normalization: Normalization,
}

/// Where the mantissa's leading one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Normalization {
    /// Nowhere in particular: the mantissa is taken as it stands.
    None,
    /// It is always set and stored.
    Stored,
    /// It is implied and not stored (IEEE 754).
    Implied,
}

/// The bytes that follow a string within its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StringPadding {
    /// The text ends at the first NUL.
    NullTerminated,
    /// Trailing NULs are no text.
    NullPadded,
    /// Trailing blanks are no text.
    SpacePadded,
}

/// How a string's characters are encoded, as the file claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Charset {
    /// ASCII; real files hold UTF-8 and Latin-1 too.
    Ascii,
    /// UTF-8.
    Utf8,
}

/// The content of a reference element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReferenceKind {
    /// An object's address.
    Object,
    /// An object and a selection of its elements, on the global heap.
    Region,
    /// HDF5 1.12's `H5T_STD_REF`: each element says which kind it is.
    Standard,
}

impl Datatype {
    /// An IEEE 754 number of 2, 4 or 8 bytes.
    pub fn ieee(size: u8, order: ByteOrder) -> Self {
        let (exponent_bits, mantissa_bits) = match size {
            2 => (5, 10),
            4 => (8, 23),
            _ => (11, 52),
        };
        let precision = u16::from(size).times(8);
        let class = Class::Float(Float {
            order,
            bits: Bits {
                offset: 0,
                precision,
            },
            sign: size.times(8).left_after(1),
            exponent: mantissa_bits,
            exponent_bits,
            mantissa: 0,
            mantissa_bits,
            bias: match size {
                2 => 15,
                4 => 127,
                _ => 1023,
            },
            normalization: Normalization::Implied,
        });
        Datatype {
            size: u32::from(size),
            class,
        }
    }

    /// A whole-element integer of `size` bytes.
    pub fn integer(size: u16, signed: bool, order: ByteOrder) -> Self {
        let bits = Bits {
            offset: 0,
            precision: size.times(8),
        };
        Datatype {
            size: u32::from(size),
            class: Class::Integer {
                order,
                signed,
                bits,
            },
        }
    }

    /// Whether an element holds a pointer to bytes elsewhere: a variable-length part or a
    /// reference.
    pub fn has_pointers(&self) -> bool {
        match &self.class {
            Class::VariableLength(_) | Class::VariableString { .. } | Class::Reference(_) => true,
            Class::Compound(members) => members.iter().any(|member| member.datatype.has_pointers()),
            Class::Array { base, .. } => base.has_pointers(),
            _ => false,
        }
    }

    /// Whether it is the enumeration of FALSE and TRUE in one byte that h5py writes booleans as.
    pub fn is_boolean(&self) -> bool {
        let Class::Enumeration { members, .. } = &self.class else {
            return false;
        };
        let has = |name: &[u8], value: u8| {
            let mut pairs = members.iter();
            pairs.any(|(key, bytes)| key == name && bytes[..] == [value])
        };
        self.size == 1 && members.len() == 2 && has(b"FALSE", 0) && has(b"TRUE", 1)
    }

    /// The type of either part of a complex number: of one by type, or of a compound of two
    /// floating-point numbers `r` and `i`, which is what h5py and others write.
    pub fn complex_part(&self) -> Option<&Datatype> {
        match &self.class {
            Class::Complex(base) => Some(base),
            Class::Compound(members) => {
                let [real, imaginary] = members.as_slice() else {
                    return None;
                };
                let part = &real.datatype;
                let as_pair = (real.name.as_slice(), imaginary.name.as_slice()) == (b"r", b"i")
                    && (real.offset, imaginary.offset) == (0, part.size)
                    && *part == imaginary.datatype
                    && Some(self.size) == part.size.checked_mul(2);
                (as_pair && matches!(part.class, Class::Float(_))).then_some(part)
            }
            _ => None,
        }
    }

    /// Bytes of memory that it and all datatypes in it take, about.
    pub fn weight(&self) -> u64 {
        let parts = match &self.class {
            Class::Compound(members) => u64::together(members.iter().map(Member::weight)),
            Class::Enumeration { base, members } => {
                let pieces = |(name, value): &(Vec<u8>, Vec<u8>)| {
                    u64::together([name.len(), value.len()].map(piece))
                };
                let own = to_u64(size_of_val(&**members));
                let all = members.iter().map(pieces).chain([own, base.weight()]);
                u64::together(all)
            }
            Class::VariableLength(base) | Class::Complex(base) => base.weight(),
            Class::Array { base, dims } => piece(dims.len()).with_more(base.weight()),
            Class::Opaque { tag } => piece(tag.len()),
            _ => 0,
        };
        to_u64(size_of::<Datatype>()).with_more(parts)
    }
}

impl Member {
    fn weight(&self) -> u64 {
        let name = to_u64(self.name.len());
        u64::together([piece(size_of::<Member>()), name, self.datatype.weight()])
    }
}

//! The type of one stored element: class, size and bit layout.
//!
//! The classes follow the HDF5 specification (3.0, IV.A.2.d). ASDF's datatypes are a subset, plus
//! two more classes (`Ucs4`, `Bool`).

use serde::{Deserialize, Serialize};

use crate::memory::allocation_size;
use crate::wire::{Count, to_u64};

/// The type of one stored element.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Datatype {
    /// Number of bytes of one stored element. For HDF5 variable-length types, bytes of the stored
    /// pointer.
    pub size: u32,
    /// The interpretation of the bytes.
    pub class: Class,
}

/// The interpretation of an element's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Fixed-point number.
    Integer {
        /// Order of the bytes.
        order: ByteOrder,
        /// Whether the number is signed (two's complement).
        signed: bool,
        /// The bits of the element that belong to the number.
        bits: BitRange,
    },
    /// Floating-point number.
    Float(FloatFormat),
    /// HDF5 time: stored bytes without a defined meaning.
    Time {
        /// Order of the bytes.
        order: ByteOrder,
        /// The bits of the element that belong to the number.
        bits: BitRange,
    },
    /// Text of fixed length, `size` bytes.
    String {
        /// The kind of padding after the text, up to the element's size.
        padding: StringPadding,
        /// The encoding of the characters.
        charset: Charset,
    },
    /// ASDF: text of fixed length, four bytes per character, NUL-padded.
    Ucs4(ByteOrder),
    /// ASDF `bool8`: zero is false.
    Bool,
    /// A bit field, which is shown as an unsigned number.
    Bitfield {
        /// Order of the bytes.
        order: ByteOrder,
        /// The bits of the element that belong to the bit field.
        bits: BitRange,
    },
    /// Uninterpreted bytes with a tag that describes them.
    Opaque {
        /// The tag's bytes as in the file, without padding.
        tag: Vec<u8>,
    },
    /// A record of named members.
    Compound(Vec<Member>),
    /// A pointer to an object, a region or an attribute.
    Reference(ReferenceKind),
    /// An enumeration: names for numbers.
    Enumeration {
        /// The integer type of the values.
        base: Box<Datatype>,
        /// Names (bytes as in the file) with their values as stored, `base.size` bytes each, in
        /// file order.
        members: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// A variable-length sequence.
    VariableLength(Box<Datatype>),
    /// A variable-length string.
    VariableString {
        /// The rule that determines the end of the text.
        padding: StringPadding,
        /// The encoding of the characters.
        charset: Charset,
    },
    /// An array of fixed shape within each element, in C order.
    Array {
        /// The type of the inner array's elements.
        base: Box<Datatype>,
        /// The dimensions of the inner array, slowest first.
        dims: Vec<u32>,
    },
    /// A complex number: two numbers of the base type, the real part first.
    Complex(Box<Datatype>),
}

/// One member of a compound.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The member's name, bytes as in the file.
    pub name: Vec<u8>,
    /// The member's offset from the start of the record, in bytes.
    pub offset: u32,
    /// The member's type.
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

/// The bits of an element that a number uses. The other bits are padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BitRange {
    /// The position of the lowest bit, counted from the lowest bit of the element.
    pub offset: u16,
    /// The number of bits.
    pub precision: u16,
}

/// A floating-point format, given by the positions of its fields. Positions are counted in bits
/// from the element's lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FloatFormat {
    /// Order of the bytes.
    pub order: ByteOrder,
    /// The bits of the element that belong to the number.
    pub bits: BitRange,
    /// Position of the sign bit.
    pub sign: u8,
    /// Position of the exponent's lowest bit.
    pub exponent: u8,
    /// Number of exponent bits.
    pub exponent_bits: u8,
    /// Position of the mantissa's lowest bit.
    pub mantissa: u8,
    /// Number of mantissa bits.
    pub mantissa_bits: u8,
    /// The number that is added to the exponent before it is stored.
    pub bias: u32,
    /// The treatment of the mantissa's leading one.
    pub normalization: Normalization,
}

/// The treatment of a mantissa's leading one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Normalization {
    /// The mantissa is not normalized and is used as stored.
    None,
    /// The leading one is always set and stored.
    Stored,
    /// The leading one is implied and not stored (IEEE 754).
    Implied,
}

/// The kind of padding after a string, up to the element's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StringPadding {
    /// The text ends at the first NUL.
    NullTerminated,
    /// Trailing NULs are padding.
    NullPadded,
    /// Trailing spaces are padding.
    SpacePadded,
}

/// The encoding of a string's characters, as declared in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Charset {
    /// ASCII. Real files also store UTF-8 and Latin-1 under this declaration.
    Ascii,
    /// UTF-8.
    Utf8,
}

/// The content of a reference element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReferenceKind {
    /// An object's address.
    Object,
    /// A dataset and a selection of its elements, stored on the global heap.
    Region,
    /// HDF5 1.12's `H5T_STD_REF`: each element stores its own kind.
    Standard,
}

impl Datatype {
    /// Returns the type of an IEEE 754 number of `size` bytes: 2, 4 or 8.
    pub fn ieee(size: u8, order: ByteOrder) -> Self {
        let (exponent_bits, mantissa_bits) = match size {
            2 => (5, 10),
            4 => (8, 23),
            _ => (11, 52),
        };
        let precision = u16::from(size).times(8);
        let class = Class::Float(FloatFormat {
            order,
            bits: BitRange {
                offset: 0,
                precision,
            },
            sign: size.times(8).minus_or_zero(1),
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

    /// Returns the type of an integer that uses all bits of its `size` bytes.
    pub fn integer(size: u16, signed: bool, order: ByteOrder) -> Self {
        let bits = BitRange {
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

    /// Returns whether an element contains a pointer to other bytes: a variable-length part or a
    /// reference.
    pub fn has_pointers(&self) -> bool {
        match &self.class {
            Class::VariableLength(_) | Class::VariableString { .. } | Class::Reference(_) => true,
            Class::Compound(members) => members.iter().any(|member| member.datatype.has_pointers()),
            Class::Array { base, .. } => base.has_pointers(),
            _ => false,
        }
    }

    /// Returns whether the type is h5py's boolean, a one-byte enumeration of FALSE and TRUE.
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

    /// Returns the type of the real and the imaginary part of a complex number. A complex number
    /// has a complex type, or is a compound of two floating-point members `r` and `i`, as h5py
    /// writes it. Returns `None` for any other type.
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

    /// Returns the approximate memory in bytes that the datatype and all nested datatypes take.
    pub fn weight(&self) -> u64 {
        let parts = match &self.class {
            Class::Compound(members) => u64::sum(members.iter().map(Member::weight)),
            Class::Enumeration { base, members } => {
                let pieces = |(name, value): &(Vec<u8>, Vec<u8>)| {
                    u64::sum([name.len(), value.len()].map(allocation_size))
                };
                let own = to_u64(size_of_val(&**members));
                let all = members.iter().map(pieces).chain([own, base.weight()]);
                u64::sum(all)
            }
            Class::VariableLength(base) | Class::Complex(base) => base.weight(),
            Class::Array { base, dims } => allocation_size(dims.len()).plus(base.weight()),
            Class::Opaque { tag } => allocation_size(tag.len()),
            _ => 0,
        };
        to_u64(size_of::<Datatype>()).plus(parts)
    }
}

impl Member {
    fn weight(&self) -> u64 {
        let name = to_u64(self.name.len());
        u64::sum([
            allocation_size(size_of::<Member>()),
            name,
            self.datatype.weight(),
        ])
    }
}

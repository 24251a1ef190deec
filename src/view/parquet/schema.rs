//! The Parquet types of columns (`SchemaElement` of parquet.thrift; "LogicalTypes" of
//! parquet-format).

use crate::view::parquet::thrift::Struct;

/// The physical type of a leaf's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean = 0,
    Int32 = 1,
    Int64 = 2,
    Float = 4,
    Double = 5,
    ByteArray = 6,
    FixedLenByteArray = 7,
}

impl Physical {
    /// Returns the size in bytes of a number of this type.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Physical::Int32 | Physical::Float => 4,
            _ => 8,
        }
    }
}

/// The logical type of a leaf's values, if it differs from the physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    None,
    String,
    Integer { bits: i8, is_signed: bool },
    Timestamp { unit: Unit, is_utc: bool },
}

/// The unit of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Nanosecond,
}

/// The type of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) physical: Physical,
    /// Size in bytes of a value of `FIXED_LEN_BYTE_ARRAY`.
    pub(super) length: Option<i32>,
    pub(super) logical: Logical,
}

/// How often a field occurs in its parent: once, at most once, or any number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    Required = 0,
    Optional = 1,
    Repeated = 2,
}

impl Type {
    pub(super) const fn plain(physical: Physical) -> Self {
        Type {
            physical,
            length: None,
            logical: Logical::None,
        }
    }

    pub(super) const STRING: Type = Type {
        logical: Logical::String,
        ..Type::plain(Physical::ByteArray)
    };

    /// Returns the type of integers of `bits` bits, in the narrowest physical type.
    pub(super) fn integer(bits: i8, is_signed: bool) -> Self {
        let physical = if bits > 32 {
            Physical::Int64
        } else {
            Physical::Int32
        };
        let logical = match (bits, is_signed) {
            (32 | 64, true) => Logical::None,
            _ => Logical::Integer { bits, is_signed },
        };
        Type {
            logical,
            ..Type::plain(physical)
        }
    }

    /// Returns whether the values are floating-point numbers.
    pub(super) fn is_real(self) -> bool {
        matches!(self.physical, Physical::Float | Physical::Double)
    }

    /// Returns whether `value`, in PLAIN encoding, is NaN.
    pub(super) fn is_nan(self, value: &[u8]) -> bool {
        match self.physical {
            Physical::Float => value
                .first_chunk()
                .is_some_and(|&value| f32::from_le_bytes(value).is_nan()),
            Physical::Double => value
                .first_chunk()
                .is_some_and(|&value| f64::from_le_bytes(value).is_nan()),
            _ => false,
        }
    }

    pub(super) const fn timestamp(unit: Unit, is_utc: bool) -> Self {
        Type {
            logical: Logical::Timestamp { unit, is_utc },
            ..Type::plain(Physical::Int64)
        }
    }
}

impl Logical {
    /// Returns the deprecated `ConvertedType` with the same meaning, which is the only annotation
    /// that some readers support; `None` if there is none.
    fn converted(self) -> Option<i32> {
        match self {
            Logical::None => None,
            Logical::String => Some(0),
            Logical::Integer { bits, is_signed } => {
                let width = match bits {
                    8 => 0,
                    16 => 1,
                    32 => 2,
                    _ => 3,
                };
                Some(if is_signed { 15 } else { 11 } + width)
            }
            // The older annotation is for instants in UTC. Local times do not have one.
            Logical::Timestamp {
                unit: Unit::Microsecond,
                is_utc: true,
            } => Some(10),
            Logical::Timestamp { .. } => None,
        }
    }

    fn to_struct(self) -> Option<Struct> {
        let union = Struct::default();
        match self {
            Logical::None => None,
            Logical::String => Some(union.struct_field(1, Struct::default())),
            Logical::Timestamp { unit, is_utc } => {
                let number = match unit {
                    Unit::Microsecond => 2,
                    Unit::Nanosecond => 3,
                };
                let unit = Struct::default().struct_field(number, Struct::default());
                let timestamp = Struct::default().boolean(1, is_utc).struct_field(2, unit);
                Some(union.struct_field(8, timestamp))
            }
            Logical::Integer { bits, is_signed } => {
                let integer = Struct::default().i8(1, bits).boolean(2, is_signed);
                Some(union.struct_field(10, integer))
            }
        }
    }
}

/// Returns the schema element of a leaf.
pub(super) fn leaf(name: &str, kind: Type, repetition: Repetition) -> Struct {
    let mut element = Struct::default().i32(1, kind.physical as i32);
    if let Some(length) = kind.length {
        element = element.i32(2, length);
    }
    element = element.i32(3, repetition as i32).binary(4, name.as_bytes());
    if let Some(converted) = kind.logical.converted() {
        element = element.i32(6, converted);
    }
    match kind.logical.to_struct() {
        Some(logical) => element.struct_field(10, logical),
        None => element,
    }
}

/// Returns the schema element of a group that has `fields` fields.
pub(super) fn group(name: &str, fields: usize, repetition: Repetition) -> Struct {
    Struct::default()
        .i32(3, repetition as i32)
        .binary(4, name.as_bytes())
        .i32(5, fields.try_into().unwrap_or(i32::MAX))
}

/// Returns the two schema elements (the list and its repeated group) that enclose the element of a
/// list.
pub(super) fn list(name: &str) -> [Struct; 2] {
    const LIST: i32 = 3;
    let kind = Struct::default().struct_field(LIST as i16, Struct::default());
    let outer = group(name, 1, Repetition::Required)
        .i32(6, LIST)
        .struct_field(10, kind);
    [outer, group("list", 1, Repetition::Repeated)]
}

/// Returns the schema element of the root.
pub(super) fn root(fields: usize) -> Struct {
    Struct::default()
        .binary(4, b"schema")
        .i32(5, fields.try_into().unwrap_or(i32::MAX))
}

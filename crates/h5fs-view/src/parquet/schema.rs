//! The Parquet types of columns (`SchemaElement` of parquet.thrift; "LogicalTypes" of
//! parquet-format).

use crate::parquet::thrift::StructWriter;

/// The physical type of a leaf's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhysicalType {
    Boolean = 0,
    Int32 = 1,
    Int64 = 2,
    Float = 4,
    Double = 5,
    ByteArray = 6,
    FixedLenByteArray = 7,
}

impl PhysicalType {
    /// Returns the size in bytes of a number of this type.
    pub(super) fn bytes(self) -> u64 {
        match self {
            PhysicalType::Int32 | PhysicalType::Float => 4,
            _ => 8,
        }
    }
}

/// The logical type of a leaf's values, if it differs from the physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogicalType {
    None,
    String,
    Integer { bits: i8, is_signed: bool },
    Timestamp { unit: TimestampUnit, is_utc: bool },
}

/// The unit of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimestampUnit {
    Microsecond,
    Nanosecond,
}

/// The type of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnType {
    pub(super) physical: PhysicalType,
    /// Size in bytes of a value of `FIXED_LEN_BYTE_ARRAY`.
    pub(super) length: Option<i32>,
    pub(super) logical: LogicalType,
}

/// How often a field occurs in its parent: once, at most once, or any number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    Required = 0,
    Optional = 1,
    Repeated = 2,
}

impl ColumnType {
    pub(super) const fn plain(physical: PhysicalType) -> Self {
        ColumnType {
            physical,
            length: None,
            logical: LogicalType::None,
        }
    }

    pub(super) const STRING: ColumnType = ColumnType {
        logical: LogicalType::String,
        ..ColumnType::plain(PhysicalType::ByteArray)
    };

    /// Returns the type of integers of `bits` bits, in the narrowest physical type.
    pub(super) fn integer(bits: i8, is_signed: bool) -> Self {
        let physical = if bits > 32 {
            PhysicalType::Int64
        } else {
            PhysicalType::Int32
        };
        let logical = match (bits, is_signed) {
            (32 | 64, true) => LogicalType::None,
            _ => LogicalType::Integer { bits, is_signed },
        };
        ColumnType {
            logical,
            ..ColumnType::plain(physical)
        }
    }

    /// Returns whether the values are floating-point numbers.
    pub(super) fn is_real(self) -> bool {
        matches!(self.physical, PhysicalType::Float | PhysicalType::Double)
    }

    /// Returns whether `value`, in PLAIN encoding, is NaN.
    pub(super) fn is_nan(self, value: &[u8]) -> bool {
        match self.physical {
            PhysicalType::Float => value
                .first_chunk()
                .is_some_and(|&value| f32::from_le_bytes(value).is_nan()),
            PhysicalType::Double => value
                .first_chunk()
                .is_some_and(|&value| f64::from_le_bytes(value).is_nan()),
            _ => false,
        }
    }

    pub(super) const fn timestamp(unit: TimestampUnit, is_utc: bool) -> Self {
        ColumnType {
            logical: LogicalType::Timestamp { unit, is_utc },
            ..ColumnType::plain(PhysicalType::Int64)
        }
    }
}

impl LogicalType {
    /// Returns the deprecated `ConvertedType` with the same meaning, which is the only annotation
    /// that some readers support; `None` if there is none.
    fn converted_type(self) -> Option<i32> {
        match self {
            LogicalType::None => None,
            LogicalType::String => Some(0),
            LogicalType::Integer { bits, is_signed } => {
                let width = match bits {
                    8 => 0,
                    16 => 1,
                    32 => 2,
                    _ => 3,
                };
                Some(if is_signed { 15 } else { 11 } + width)
            }
            // The older annotation is for instants in UTC. Local times do not have one.
            LogicalType::Timestamp {
                unit: TimestampUnit::Microsecond,
                is_utc: true,
            } => Some(10),
            LogicalType::Timestamp { .. } => None,
        }
    }

    fn to_struct(self) -> Option<StructWriter> {
        let union = StructWriter::default();
        match self {
            LogicalType::None => None,
            LogicalType::String => Some(union.struct_field(1, StructWriter::default())),
            LogicalType::Timestamp { unit, is_utc } => {
                let number = match unit {
                    TimestampUnit::Microsecond => 2,
                    TimestampUnit::Nanosecond => 3,
                };
                let unit = StructWriter::default().struct_field(number, StructWriter::default());
                let timestamp = StructWriter::default()
                    .boolean(1, is_utc)
                    .struct_field(2, unit);
                Some(union.struct_field(8, timestamp))
            }
            LogicalType::Integer { bits, is_signed } => {
                let integer = StructWriter::default().i8(1, bits).boolean(2, is_signed);
                Some(union.struct_field(10, integer))
            }
        }
    }
}

/// Returns the schema element of a leaf.
pub(super) fn leaf_element(name: &str, kind: ColumnType, repetition: Repetition) -> StructWriter {
    let mut element = StructWriter::default().i32(1, kind.physical as i32);
    if let Some(length) = kind.length {
        element = element.i32(2, length);
    }
    element = element.i32(3, repetition as i32).binary(4, name.as_bytes());
    if let Some(converted) = kind.logical.converted_type() {
        element = element.i32(6, converted);
    }
    match kind.logical.to_struct() {
        Some(logical) => element.struct_field(10, logical),
        None => element,
    }
}

/// Returns the schema element of a group that has `fields` fields.
pub(super) fn group_element(name: &str, fields: usize, repetition: Repetition) -> StructWriter {
    StructWriter::default()
        .i32(3, repetition as i32)
        .binary(4, name.as_bytes())
        .i32(5, fields.try_into().unwrap_or(i32::MAX))
}

/// Returns the two schema elements (the list and its repeated group) that enclose the element of a
/// list.
pub(super) fn list_elements(name: &str) -> [StructWriter; 2] {
    const LIST: i32 = 3;
    let kind = StructWriter::default().struct_field(LIST as i16, StructWriter::default());
    let outer = group_element(name, 1, Repetition::Required)
        .i32(6, LIST)
        .struct_field(10, kind);
    [outer, group_element("list", 1, Repetition::Repeated)]
}

/// Returns the schema element of the root.
pub(super) fn root_element(fields: usize) -> StructWriter {
    StructWriter::default()
        .binary(4, b"schema")
        .i32(5, fields.try_into().unwrap_or(i32::MAX))
}

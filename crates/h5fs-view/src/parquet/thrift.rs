//! The part of Thrift's compact protocol that Parquet's structs need ("Thrift Compact protocol
//! encoding", Apache Thrift).

/// The type of a field or of a list's elements, with the type's number in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldType {
    True = 1,
    False = 2,
    I8 = 3,
    I16 = 4,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct while its fields are written. Fields must be written in ascending order of their
/// numbers.
#[derive(Debug, Default)]
pub(super) struct StructWriter {
    bytes: Vec<u8>,
    last: i16,
}

impl StructWriter {
    fn begin_field(&mut self, number: i16, kind: FieldType) {
        let delta = number - self.last;
        self.last = number;
        match u8::try_from(delta) {
            Ok(delta @ 1..=15) => self.bytes.push(delta << 4 | kind as u8),
            _ => {
                self.bytes.push(kind as u8);
                append_zigzag(number.into(), &mut self.bytes);
            }
        }
    }

    pub(super) fn boolean(mut self, number: i16, value: bool) -> Self {
        self.begin_field(
            number,
            if value {
                FieldType::True
            } else {
                FieldType::False
            },
        );
        self
    }

    pub(super) fn i8(mut self, number: i16, value: i8) -> Self {
        self.begin_field(number, FieldType::I8);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    pub(super) fn i16(mut self, number: i16, value: i16) -> Self {
        self.begin_field(number, FieldType::I16);
        append_zigzag(value.into(), &mut self.bytes);
        self
    }

    pub(super) fn i32(mut self, number: i16, value: i32) -> Self {
        self.begin_field(number, FieldType::I32);
        append_zigzag(value.into(), &mut self.bytes);
        self
    }

    pub(super) fn i64(mut self, number: i16, value: i64) -> Self {
        self.begin_field(number, FieldType::I64);
        append_zigzag(value, &mut self.bytes);
        self
    }

    pub(super) fn binary(mut self, number: i16, value: &[u8]) -> Self {
        self.begin_field(number, FieldType::Binary);
        binary(value, &mut self.bytes);
        self
    }

    pub(super) fn struct_field(mut self, number: i16, value: StructWriter) -> Self {
        self.begin_field(number, FieldType::Struct);
        self.bytes.extend(value.finish());
        self
    }

    pub(super) fn structs(
        mut self,
        number: i16,
        values: impl ExactSizeIterator<Item = StructWriter>,
    ) -> Self {
        self.begin_list(number, FieldType::Struct, values.len());
        values.for_each(|value| self.bytes.extend(value.finish()));
        self
    }

    pub(super) fn i32s(mut self, number: i16, values: &[i32]) -> Self {
        self.begin_list(number, FieldType::I32, values.len());
        for &value in values {
            append_zigzag(value.into(), &mut self.bytes);
        }
        self
    }

    pub(super) fn binaries(mut self, number: i16, values: &[impl AsRef<[u8]>]) -> Self {
        self.begin_list(number, FieldType::Binary, values.len());
        for value in values {
            binary(value.as_ref(), &mut self.bytes);
        }
        self
    }

    /// Writes the header of a list of `count` elements. The caller then writes the elements.
    pub(super) fn begin_list(&mut self, number: i16, kind: FieldType, count: usize) {
        self.begin_field(number, FieldType::List);
        match u8::try_from(count) {
            Ok(count @ 0..=14) => self.bytes.push(count << 4 | kind as u8),
            _ => {
                self.bytes.push(0xF0 | kind as u8);
                append_varint(count as u64, &mut self.bytes);
            }
        }
    }

    /// Returns the encoded fields without the end of the struct, so that more fields can follow.
    pub(super) fn unfinished_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Creates a struct for the fields after field `number`. The fields up to `number` were encoded
    /// by another `StructWriter`.
    pub(super) fn after_field(number: i16) -> Self {
        StructWriter {
            bytes: Vec::new(),
            last: number,
        }
    }

    /// Returns the encoded fields, followed by the end of the struct.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// Appends a number as a varint: seven bits in each byte, lowest bits first.
pub(super) fn append_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn append_zigzag(number: i64, out: &mut Vec<u8>) {
    append_varint((number << 1 ^ number >> 63).cast_unsigned(), out);
}

fn binary(value: &[u8], out: &mut Vec<u8>) {
    append_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: bytes that were calculated by hand from the description of the protocol.
    #[test]
    fn fields_follow_the_thrift_protocol() {
        let inner = StructWriter::default().boolean(1, true).boolean(2, false);
        let written = StructWriter::default()
            .i32(1, -1)
            .i64(2, 300)
            .binary(20, b"ab")
            .struct_field(21, inner);
        let expected = [
            0x15, 0x01, // field 1, i32: zigzag of -1
            0x16, 0xD8, 0x04, // field 2, i64: 600 in seven bits a byte
            0x08, 0x28, 0x02, b'a', b'b', // field 20: its number follows the type
            0x1C, 0x11, 0x12, 0x00, // field 21: a struct
            0x00,
        ];
        assert_eq!(written.finish(), expected);
    }

    #[test]
    fn a_long_list_has_its_length_after_its_type() {
        let short = StructWriter::default().i32s(1, &[0; 14]).finish();
        assert_eq!(short[..2], [0x19, 0xE5]);
        let long = StructWriter::default().i32s(1, &[0; 15]).finish();
        assert_eq!(long[..3], [0x19, 0xF5, 15]);
        assert_eq!((short.len(), long.len()), (2 + 14 + 1, 3 + 15 + 1));
    }
}

//! The fields of a TIFF directory, and numbers in the byte order of the file ("TIFF 6.0", section
//! 2).

use h5fs_reader::wire::to_u64;

/// A field (entry) of an image file directory.
pub(super) struct TiffField {
    pub(super) tag: u16,
    pub(super) value: FieldValue,
}

pub(super) enum FieldValue {
    Ascii(Vec<u8>),
    Shorts(Vec<u16>),
    Long(u64),
    Doubles(Vec<f64>),
    /// Offsets and lengths, with four bytes each, or eight bytes in BigTIFF.
    Offsets(Vec<u64>),
}

impl TiffField {
    pub(super) fn ascii(tag: u16, text: &[u8]) -> Self {
        let value = FieldValue::Ascii([text, b"\0"].concat());
        TiffField { tag, value }
    }

    pub(super) fn short(tag: u16, number: u16) -> Self {
        Self::shorts(tag, vec![number])
    }

    pub(super) fn shorts(tag: u16, numbers: Vec<u16>) -> Self {
        let value = FieldValue::Shorts(numbers);
        TiffField { tag, value }
    }

    pub(super) fn long(tag: u16, number: u64) -> Self {
        let value = FieldValue::Long(number);
        TiffField { tag, value }
    }

    pub(super) fn offsets(tag: u16, numbers: Vec<u64>) -> Self {
        let value = FieldValue::Offsets(numbers);
        TiffField { tag, value }
    }
}

impl FieldValue {
    /// Returns the number of the field's type ("TIFF 6.0", section 2; 16 is BigTIFF's LONG8).
    pub(super) fn type_number(&self, is_big: bool) -> u16 {
        match self {
            FieldValue::Ascii(_) => 2,
            FieldValue::Shorts(_) => 3,
            FieldValue::Doubles(_) => 12,
            FieldValue::Offsets(_) if is_big => 16,
            FieldValue::Long(_) | FieldValue::Offsets(_) => 4,
        }
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            FieldValue::Ascii(text) => to_u64(text.len()),
            FieldValue::Shorts(numbers) => to_u64(numbers.len()),
            FieldValue::Doubles(numbers) => to_u64(numbers.len()),
            FieldValue::Offsets(numbers) => to_u64(numbers.len()),
            FieldValue::Long(_) => 1,
        }
    }

    pub(super) fn write(&self, out: &mut NumberBuffer) {
        match self {
            FieldValue::Ascii(text) => out.bytes.extend_from_slice(text),
            FieldValue::Shorts(numbers) => numbers.iter().for_each(|&number| out.short(number)),
            FieldValue::Long(number) => out.long(*number),
            FieldValue::Doubles(numbers) => {
                numbers
                    .iter()
                    .for_each(|number| out.long8(number.to_bits()));
            }
            FieldValue::Offsets(numbers) => numbers.iter().for_each(|&number| out.offset(number)),
        }
    }
}

/// A buffer of numbers in the byte order of a file.
pub(super) struct NumberBuffer {
    pub(super) bytes: Vec<u8>,
    is_big_endian: bool,
    /// Whether offsets have eight bytes, as in BigTIFF.
    is_big: bool,
}

impl NumberBuffer {
    pub(super) fn new(is_big_endian: bool, is_big: bool) -> Self {
        NumberBuffer {
            bytes: Vec::new(),
            is_big_endian,
            is_big,
        }
    }

    pub(super) fn number(&mut self, number: u64, bytes: usize) {
        if self.is_big_endian {
            self.bytes
                .extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
        } else {
            self.bytes.extend_from_slice(&number.to_le_bytes()[..bytes]);
        }
    }

    pub(super) fn short(&mut self, number: u16) {
        self.number(number.into(), 2);
    }

    pub(super) fn long(&mut self, number: u64) {
        self.number(number, 4);
    }

    pub(super) fn long8(&mut self, number: u64) {
        self.number(number, 8);
    }

    pub(super) fn offset(&mut self, number: u64) {
        self.number(number, if self.is_big { 8 } else { 4 });
    }
}

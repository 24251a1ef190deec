//! Conversion of stored numbers to FITS numbers, which are big-endian.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_u64;

use crate::elements::converted::Conversion;
use crate::pictures::image::{PixelKind, PixelType, half_to_single};

/// A type of numbers that FITS can represent.
#[derive(Debug, Clone, Copy)]
pub(super) struct FitsNumberType(PixelType);

impl FitsNumberType {
    pub(super) fn from_pixel(pixel: PixelType) -> Self {
        FitsNumberType(pixel)
    }

    /// Returns the size in bytes of a number in the FITS file.
    pub(super) fn size(self) -> u64 {
        match self.0 {
            pixel if is_half(pixel) => 4,
            pixel => pixel.bytes.into(),
        }
    }

    /// Returns the value of `BITPIX` for numbers of this type (4.4.1.1).
    pub(super) fn bitpix(self) -> i128 {
        let bits = 8 * i128::from(self.size());
        match self.0.kind {
            PixelKind::Float => -bits,
            _ => bits,
        }
    }

    /// Returns the value of `BZERO` or `TZEROn`, which a program adds to each number that it reads
    /// from the file; `None` if the value is 0. FITS has only unsigned bytes, and only signed
    /// integers of other sizes.
    pub(super) fn zero_offset(self) -> Option<i128> {
        match (self.0.kind, self.0.bytes) {
            (PixelKind::Signed, 1) => Some(-128),
            (PixelKind::Unsigned, bytes @ 2..) => Some(1 << (8 * bytes - 1)),
            _ => None,
        }
    }

    /// Returns whether stored numbers have the same bytes in the FITS file.
    pub(super) fn is_unchanged(self) -> bool {
        let is_in_order = self.0.bytes == 1 || self.0.is_big_endian;
        is_in_order && self.zero_offset().is_none() && !is_half(self.0)
    }

    /// Converts stored numbers to FITS numbers, and appends them.
    pub(super) fn write(self, stored: &[u8], out: &mut Vec<u8>) {
        let pixel = self.0;
        if is_half(pixel) {
            for half in stored.chunks_exact(2) {
                // `half_to_single` expects a number, so the bytes are first put in order.
                let half = u16::from_be_bytes(to_big_endian(half, pixel.is_big_endian));
                out.extend_from_slice(&half_to_single(half).to_be_bytes());
            }
            return;
        }
        let start = out.len();
        out.extend_from_slice(stored);
        let has_zero = self.zero_offset().is_some();
        for number in out[start..].chunks_exact_mut(pixel.bytes.into()) {
            if !pixel.is_big_endian {
                number.reverse();
            }
            if has_zero {
                number[0] ^= 0x80;
            }
        }
    }
}

fn is_half(pixel: PixelType) -> bool {
    (pixel.kind, pixel.bytes) == (PixelKind::Float, 2)
}

fn to_big_endian(half: &[u8], is_big_endian: bool) -> [u8; 2] {
    let mut bytes = half.first_chunk().copied().unwrap_or_default();
    if !is_big_endian {
        bytes.reverse();
    }
    bytes
}

/// The location of a column's values in a stored record, and their conversion.
#[derive(Debug, Clone)]
pub(super) struct ValueSlot {
    /// The offset of the values in the record, in bytes.
    pub(super) offset: usize,
    /// Length of the values in the record, in bytes.
    pub(super) length: usize,
    pub(super) form: FitsValueConversion,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum FitsValueConversion {
    Numbers(FitsNumberType),
    /// Booleans, which become the letters `T` and `F`.
    Logicals,
    /// Strings of `width` bytes each. With `ends_at_nul`, a string ends at its first NUL.
    Text {
        ends_at_nul: bool,
        width: usize,
    },
    /// Strings of `width` bytes each, with four bytes for each character. They are converted to
    /// UTF-8.
    Ucs4 {
        is_big_endian: bool,
        width: usize,
    },
    /// Bytes, copied unchanged.
    Bytes,
}

impl ValueSlot {
    /// Returns the length in bytes of the values in a row of the FITS table.
    pub(super) fn size(&self) -> usize {
        match self.form {
            FitsValueConversion::Numbers(number) if is_half(number.0) => 2 * self.length,
            _ => self.length,
        }
    }

    /// Converts the values of a record, and appends them.
    ///
    /// # Errors
    /// `Corrupt` if the record is too short.
    pub(super) fn write(&self, record: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let stored = record.get(self.offset..);
        let stored = stored.and_then(|stored| stored.get(..self.length));
        let stored = stored.ok_or_else(|| Error::corrupt("record: a field after its end", None))?;
        match self.form {
            FitsValueConversion::Numbers(number) => number.write(stored, out),
            FitsValueConversion::Logicals => {
                out.extend(stored.iter().map(|&byte| fits_logical(byte)));
            }
            FitsValueConversion::Text { ends_at_nul, width } => {
                for text in stored.chunks_exact(width.max(1)) {
                    let end = text.iter().position(|&byte| byte == 0 && ends_at_nul);
                    let end = end.unwrap_or(text.len());
                    out.extend_from_slice(&text[..end]);
                    out.resize(out.len() + text.len() - end, 0);
                }
            }
            FitsValueConversion::Ucs4 {
                is_big_endian,
                width,
            } => {
                for text in stored.chunks_exact(width.max(1)) {
                    let end = out.len() + text.len();
                    for character in text.chunks_exact(4) {
                        write_character(character, is_big_endian, out);
                    }
                    out.resize(end, 0);
                }
            }
            FitsValueConversion::Bytes => out.extend_from_slice(stored),
        }
        Ok(())
    }
}

fn fits_logical(byte: u8) -> u8 {
    if byte == 0 { b'F' } else { b'T' }
}

/// Appends a four-byte character as UTF-8. A NUL, which pads the text, is skipped.
fn write_character(bytes: &[u8], is_big_endian: bool, out: &mut Vec<u8>) {
    let bytes = bytes.first_chunk().copied().unwrap_or_default();
    let code = if is_big_endian {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    };
    if code != 0 {
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// The conversion of a stored record to a row of the FITS table.
#[derive(Debug, Clone)]
pub(super) struct RecordConversion {
    values: Vec<ValueSlot>,
    stored_size: usize,
}

impl RecordConversion {
    /// Creates the conversion of a record of `stored_size` bytes.
    pub(super) fn new(values: Vec<ValueSlot>, stored_size: usize) -> Self {
        RecordConversion {
            values,
            stored_size,
        }
    }

    /// Creates the conversion of a single number.
    pub(super) fn from_number(number: FitsNumberType) -> Self {
        let length = usize::from(number.0.bytes);
        let values = ValueSlot {
            offset: 0,
            length,
            form: FitsValueConversion::Numbers(number),
        };
        Self::new(vec![values], length)
    }

    pub(super) fn stored_size(&self) -> u64 {
        to_u64(self.stored_size)
    }

    pub(super) fn size(&self) -> u64 {
        to_u64(self.values.iter().map(ValueSlot::size).sum())
    }
}

impl Conversion for RecordConversion {
    fn convert(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut values = self.values.iter();
        values.try_for_each(|values| values.write(element, out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_number(kind: PixelKind, bytes: u8, is_big_endian: bool, stored: &[u8]) -> Vec<u8> {
        let pixel = PixelType {
            kind,
            bytes,
            is_big_endian,
        };
        let mut out = Vec::new();
        FitsNumberType::from_pixel(pixel).write(stored, &mut out);
        out
    }

    /// By FITS 4.0, Table 11, `BZERO` is 2 to the power of the number of bits minus 1.
    #[test]
    fn numbers_are_big_endian_and_signed() {
        assert_eq!(
            write_number(PixelKind::Signed, 2, false, &[1, 2, 3, 4]),
            [2, 1, 4, 3]
        );
        assert_eq!(write_number(PixelKind::Signed, 2, true, &[1, 2]), [1, 2]);
        // 1 and 40000 become -32767 and 7232.
        let unsigned = [1_u16, 40_000].map(u16::to_le_bytes).concat();
        let expected = [-32_767_i16, 7232].map(i16::to_be_bytes).concat();
        assert_eq!(
            write_number(PixelKind::Unsigned, 2, false, &unsigned),
            expected
        );
        let expected = (u64::MAX / 2).to_be_bytes();
        assert_eq!(
            write_number(PixelKind::Unsigned, 8, true, &u64::MAX.to_be_bytes()),
            expected
        );
        // -128 and 5 become 0 and 133.
        assert_eq!(
            write_number(PixelKind::Signed, 1, false, &[128, 5]),
            [0, 133]
        );
        assert_eq!(
            write_number(PixelKind::Unsigned, 1, false, &[128, 5]),
            [128, 5]
        );
        // The stored number is -2 as a half float.
        assert_eq!(
            write_number(PixelKind::Float, 2, false, &[0, 0xc0]),
            (-2_f32).to_be_bytes()
        );
        assert_eq!(
            write_number(PixelKind::Float, 2, true, &[0xc0, 0]),
            (-2_f32).to_be_bytes()
        );
    }

    #[test]
    fn texts_end_where_their_padding_begins() {
        let write = |form, stored: &[u8]| {
            let values = ValueSlot {
                offset: 1,
                length: stored.len(),
                form,
            };
            let mut out = Vec::new();
            values.write(&[b"x", stored].concat(), &mut out).unwrap();
            assert_eq!(out.len(), values.size());
            out
        };
        let text = |ends_at_nul| FitsValueConversion::Text {
            ends_at_nul,
            width: 4,
        };
        assert_eq!(write(text(true), b"a\0bcd\0\0\0"), b"a\0\0\0d\0\0\0");
        assert_eq!(write(text(false), b"a\0bc"), b"a\0bc");
        assert_eq!(write(FitsValueConversion::Logicals, &[0, 1, 2]), b"FTT");
        let wide = FitsValueConversion::Ucs4 {
            is_big_endian: true,
            width: 8,
        };
        assert_eq!(write(wide, b"\0\0\0a\0\0\0\xe9"), "aé\0\0\0\0\0".as_bytes());
    }
}

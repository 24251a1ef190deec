//! The conversion of a picture's values to PNG sample values, called levels.

use h5fs_reader::error::Result;
use h5fs_reader::model::number::FloatValue;
use png::BitDepth;

use crate::pictures::image::{PixelKind, PixelType};

/// Number of characters reserved for a number in a text chunk, padded with spaces.
pub(super) const NUMBER_WIDTH: usize = 24;

/// The properties of a PNG file's pixels that follow from the number type alone.
pub(super) struct PixelFormat {
    pub(super) depth: BitDepth,
    /// The keywords of the PNG text chunks from which a program can restore the values.
    pub(super) keywords: &'static [&'static str],
}

impl PixelFormat {
    /// Returns the form of pixels with `samples` numbers of the type `pixel`.
    pub(super) fn from_pixel(pixel: PixelType, samples: u64) -> Self {
        let (depth, keywords): (_, &[_]) = match (pixel.kind, pixel.bytes) {
            (PixelKind::Boolean, _) if samples == 1 => (BitDepth::One, &[]),
            (PixelKind::Boolean, _) | (PixelKind::Unsigned, 1) => (BitDepth::Eight, &[]),
            (PixelKind::Unsigned, 2) => (BitDepth::Sixteen, &[]),
            (PixelKind::Signed, 1) => (BitDepth::Eight, &["Offset"]),
            (PixelKind::Signed, 2) => (BitDepth::Sixteen, &["Offset"]),
            _ => (BitDepth::Sixteen, &["Minimum", "Maximum"]),
        };
        PixelFormat { depth, keywords }
    }
}

/// The conversion of a picture's values to levels.
#[derive(Clone)]
pub(super) struct LevelConversion {
    pixel: PixelType,
    scale: Scale,
    /// Whether each level is subtracted from the highest level, because the array has 0 for white.
    is_inverted: bool,
}

#[derive(Clone)]
enum Scale {
    /// Booleans of a grey picture: levels of one bit.
    Bits,
    /// Booleans of a colour picture: the levels 0 and 255.
    Bytes,
    /// Unsigned integers, which are the levels.
    Unchanged,
    /// Signed integers. The level is the integer minus this number, which is the minimum of all
    /// integers, or 0 if no integer is negative.
    MinusOffset(i128),
    /// Integers, scaled linearly between this minimum and this maximum.
    Integers(i128, i128),
    /// Floating-point numbers, scaled linearly between this finite minimum and maximum. Both are
    /// NaN if no number is finite.
    Floats(f64, f64),
}

/// A range of values (minimum and maximum), to which the rows of a picture are added one after
/// another.
pub(super) trait ValueRange {
    /// Extends the range to include the stored numbers of a row.
    fn include(&mut self, row: &[u8]);
}

/// The minimum and maximum of the numbers seen so far.
struct Extremes<T> {
    pixel: PixelType,
    /// A function that decodes a number from its stored bytes. Returns `None` for a number that is
    /// not included in the range, such as NaN.
    decode_number: fn(PixelType, &[u8]) -> Option<T>,
    range_so_far: Option<(T, T)>,
}

impl<T: PartialOrd + Copy> ValueRange for Extremes<T> {
    fn include(&mut self, row: &[u8]) {
        for bytes in row.chunks_exact(self.pixel.bytes.into()) {
            let Some(number) = (self.decode_number)(self.pixel, bytes) else {
                continue;
            };
            self.range_so_far = Some(match self.range_so_far {
                Some((least, most)) if number < least => (number, most),
                Some((least, most)) if number > most => (least, number),
                Some(found) => found,
                None => (number, number),
            });
        }
    }
}

impl LevelConversion {
    /// Returns the conversion for a picture whose pixels have `samples` numbers of type `pixel`. If
    /// the conversion depends on the values, calls `look` with an empty range, to which `look` must
    /// add every row of the picture.
    ///
    /// # Errors
    /// Fails with the errors of `look`.
    pub(super) fn from_pixel(
        pixel: PixelType,
        samples: u64,
        look: &mut dyn FnMut(&mut dyn ValueRange) -> Result<()>,
    ) -> Result<Self> {
        let scale = match (pixel.kind, pixel.bytes) {
            (PixelKind::Boolean, _) if samples == 1 => Scale::Bits,
            (PixelKind::Boolean, _) => Scale::Bytes,
            (PixelKind::Unsigned, 1 | 2) => Scale::Unchanged,
            (PixelKind::Float, _) => {
                let mut range = Extremes {
                    pixel,
                    decode_number: |pixel, bytes| {
                        Some(pixel.decode_float(bytes)).filter(|x| x.is_finite())
                    },
                    range_so_far: None,
                };
                look(&mut range)?;
                let (least, most) = range.range_so_far.unwrap_or((f64::NAN, f64::NAN));
                Scale::Floats(least, most)
            }
            (PixelKind::Signed | PixelKind::Unsigned, bytes) => {
                let mut range = Extremes {
                    pixel,
                    decode_number: |pixel, bytes| Some(pixel.decode_integer(bytes)),
                    range_so_far: None,
                };
                look(&mut range)?;
                let (least, most) = range.range_so_far.unwrap_or((0, 0));
                match bytes {
                    1 | 2 => Scale::MinusOffset(least.min(0)),
                    _ => Scale::Integers(least, most),
                }
            }
        };
        Ok(LevelConversion {
            pixel,
            scale,
            is_inverted: false,
        })
    }

    /// Returns the conversion with black and white exchanged.
    pub(super) fn invert(self) -> Self {
        LevelConversion {
            is_inverted: true,
            ..self
        }
    }

    /// Returns the keywords and texts of the PNG text chunks from which a program can restore the
    /// values.
    pub(super) fn text_chunks(&self) -> Vec<(&'static str, String)> {
        let float = |value: f64| {
            let mut text = Vec::new();
            match self.pixel.bytes {
                // The value has this precision.
                4 => FloatValue::Single(value as f32).write_text(&mut text),
                _ => FloatValue::Double(value).write_text(&mut text),
            }
            String::from_utf8(text).unwrap_or_default()
        };
        match self.scale {
            Scale::Bits | Scale::Bytes | Scale::Unchanged | Scale::MinusOffset(0) => Vec::new(),
            Scale::MinusOffset(least) => vec![("Offset", least.to_string())],
            Scale::Integers(least, most) => vec![
                ("Minimum", least.to_string()),
                ("Maximum", most.to_string()),
            ],
            Scale::Floats(least, most) => {
                vec![("Minimum", float(least)), ("Maximum", float(most))]
            }
        }
    }

    /// Converts a row of stored numbers to levels, and appends the levels.
    pub(super) fn write(&self, row: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        self.write_plain(row, out);
        if self.is_inverted {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    fn write_plain(&self, row: &[u8], out: &mut Vec<u8>) {
        let pixel = self.pixel;
        let numbers = row.chunks_exact(pixel.bytes.into());
        match self.scale {
            Scale::Bits => {
                for eight in row.chunks(8) {
                    let bits = eight.iter().enumerate();
                    let bits = bits.filter(|&(_, &bit)| bit != 0);
                    out.push(bits.fold(0, |byte, (place, _)| byte | 0x80 >> place));
                }
            }
            Scale::Bytes => out.extend(row.iter().map(|&byte| if byte == 0 { 0 } else { 255 })),
            Scale::Unchanged if pixel.bytes == 1 || pixel.is_big_endian => {
                out.extend_from_slice(row);
            }
            Scale::Unchanged => numbers.for_each(|bytes| out.extend(bytes.iter().rev())),
            Scale::MinusOffset(least) => numbers.for_each(|bytes| {
                let above = (pixel.decode_integer(bytes) - least) as u16;
                let start = 2 - usize::from(pixel.bytes);
                out.extend_from_slice(&above.to_be_bytes()[start..]);
            }),
            Scale::Integers(least, most) => numbers.for_each(|bytes| {
                let above = (pixel.decode_integer(bytes) - least) as u64;
                let level = integer_level(above, (most - least) as u64);
                out.extend_from_slice(&level.to_be_bytes());
            }),
            Scale::Floats(least, most) => numbers.for_each(|bytes| {
                let level = float_level(pixel.decode_float(bytes), least, most);
                out.extend_from_slice(&level.to_be_bytes());
            }),
        }
    }
}

/// Returns the level of an integer that is `above` more than the minimum, in a range of length
/// `range`.
fn integer_level(above: u64, range: u64) -> u16 {
    let rounded = |above: u128, range: u128| (above * u128::from(u16::MAX) + range / 2) / range;
    let level = match (range, above.checked_mul(u16::MAX.into())) {
        (0, _) => 0,
        // A 64-bit division is several times faster.
        (_, Some(product)) if product < u64::MAX - range / 2 => (product + range / 2) / range,
        _ => rounded(above.into(), range.into()) as u64,
    };
    u16::try_from(level).unwrap_or(u16::MAX)
}

/// Returns the level of `value` in the range from `least` to `most`. NaN becomes 0. A value outside
/// of the range gets the level of the nearer end.
fn float_level(value: f64, least: f64, most: f64) -> u16 {
    let range = most - least;
    let share = match value - least {
        _ if value == f64::INFINITY => 1.0,
        _ if range == 0.0 => 0.0,
        // Half of the range is finite.
        _ if range.is_infinite() => (value / 2.0 - least / 2.0) / (most / 2.0 - least / 2.0),
        above => above / range,
    };
    // A conversion from float to integer saturates, and converts NaN to 0.
    (share * f64::from(u16::MAX) + 0.5) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixel(kind: PixelKind, bytes: u8) -> PixelType {
        PixelType {
            kind,
            bytes,
            is_big_endian: false,
        }
    }

    /// Returns the converted row, and the text chunks.
    fn levels(
        pixel: PixelType,
        samples: u64,
        row: &[u8],
    ) -> (Vec<u8>, Vec<(&'static str, String)>) {
        let mut look = |range: &mut dyn ValueRange| {
            range.include(row);
            Ok(())
        };
        let levels = LevelConversion::from_pixel(pixel, samples, &mut look).unwrap();
        let mut out = Vec::new();
        levels.write(row, &mut out);
        (out, levels.text_chunks())
    }

    fn levels_of_16_bits(out: &[u8]) -> Vec<u16> {
        let pairs = out.chunks_exact(2);
        pairs
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect()
    }

    fn floats(values: &[f64]) -> (Vec<u16>, Vec<(&'static str, String)>) {
        let row: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let (out, texts) = levels(pixel(PixelKind::Float, 8), 1, &row);
        (levels_of_16_bits(&out), texts)
    }

    fn bounds(least: &str, most: &str) -> Vec<(&'static str, String)> {
        vec![("Minimum", least.to_owned()), ("Maximum", most.to_owned())]
    }

    #[test]
    fn small_integers_are_as_they_are() {
        let plain = pixel(PixelKind::Unsigned, 2);
        assert_eq!(
            levels(plain, 1, &[1, 2, 255, 255]),
            (vec![2, 1, 255, 255], vec![])
        );
        let big = PixelType {
            is_big_endian: true,
            ..plain
        };
        assert_eq!(levels(big, 1, &[1, 2]), (vec![1, 2], vec![]));
        assert_eq!(
            levels(pixel(PixelKind::Unsigned, 1), 3, &[1, 2, 3]),
            (vec![1, 2, 3], vec![])
        );
    }

    #[test]
    fn negative_integers_have_an_offset() {
        let row = [-32768_i16, -1, 0, 32767].map(i16::to_le_bytes).concat();
        let (out, texts) = levels(pixel(PixelKind::Signed, 2), 1, &row);
        assert_eq!(levels_of_16_bits(&out), [0, 32767, 32768, 65535]);
        assert_eq!(texts, [("Offset", "-32768".to_owned())]);
        let (out, texts) = levels(pixel(PixelKind::Signed, 1), 1, &[253, 0, 100]);
        assert_eq!(
            (out, texts),
            (vec![0, 3, 103], vec![("Offset", "-3".to_owned())])
        );
        let (out, texts) = levels(pixel(PixelKind::Signed, 1), 1, &[2, 0, 100]);
        assert_eq!((out, texts), (vec![2, 0, 100], vec![]));
    }

    #[test]
    fn booleans_are_bits_and_in_colours_bytes() {
        let boolean = pixel(PixelKind::Boolean, 1);
        let row = [1, 0, 0, 1, 0, 0, 0, 1, 1];
        assert_eq!(
            levels(boolean, 1, &row),
            (vec![0b1001_0001, 0b1000_0000], vec![])
        );
        assert_eq!(levels(boolean, 3, &[0, 1, 0]), (vec![0, 255, 0], vec![]));
    }

    /// Expected: `numpy.floor((a - a.min()) / (a.max() - a.min()) * 65535 + 0.5)`.
    #[test]
    fn other_numbers_are_scaled() {
        let row = [-7_i32, 0, 3, 93].map(i32::to_le_bytes).concat();
        let (out, texts) = levels(pixel(PixelKind::Signed, 4), 1, &row);
        assert_eq!(levels_of_16_bits(&out), [0, 4587, 6554, 65535]);
        assert_eq!(texts, bounds("-7", "93"));
        let row = [0, u64::MAX / 2, u64::MAX].map(u64::to_le_bytes).concat();
        let (out, texts) = levels(pixel(PixelKind::Unsigned, 8), 1, &row);
        assert_eq!(levels_of_16_bits(&out), [0, 32767, 65535]);
        assert_eq!(texts, bounds("0", "18446744073709551615"));
        let row = [i64::MIN, i64::MAX].map(i64::to_le_bytes).concat();
        assert_eq!(
            levels_of_16_bits(&levels(pixel(PixelKind::Signed, 8), 1, &row).0),
            [0, 65535]
        );
        assert_eq!(
            floats(&[1.0, 1.5, 3.0]),
            (vec![0, 16384, 65535], bounds("1.0", "3.0"))
        );
    }

    #[test]
    fn only_finite_floats_make_the_range() {
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        let (out, texts) = floats(&[nan, -infinity, 2.0, infinity, 4.0]);
        assert_eq!(
            (out, texts),
            (vec![0, 0, 0, 65535, 65535], bounds("2.0", "4.0"))
        );
        assert_eq!(
            floats(&[nan, infinity]),
            (vec![0, 65535], bounds("nan", "nan"))
        );
        assert_eq!(floats(&[5.0, 5.0]), (vec![0, 0], bounds("5.0", "5.0")));
        let wide = floats(&[f64::MIN, 0.0, f64::MAX]).0;
        assert_eq!(wide, [0, 32768, 65535]);
    }

    #[test]
    fn single_and_half_floats_are_read_in_either_order() {
        let single = PixelType {
            is_big_endian: true,
            ..pixel(PixelKind::Float, 4)
        };
        let row = [0.1_f32, 0.3].map(f32::to_be_bytes).concat();
        let (out, texts) = levels(single, 1, &row);
        assert_eq!(
            (levels_of_16_bits(&out), texts),
            (vec![0, 65535], bounds("0.1", "0.3"))
        );
        // The numbers are 1, -2 and NaN.
        let (out, texts) = levels(pixel(PixelKind::Float, 2), 1, &[0, 0x3c, 0, 0xc0, 0, 0x7e]);
        assert_eq!(
            (levels_of_16_bits(&out), texts),
            (vec![65535, 0, 0], bounds("-2.0", "1.0"))
        );
    }
}

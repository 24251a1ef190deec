//! Padding of numbers and times to cells of one length, with characters that do not change their
//! values.
//!
//! | cell | padding |
//! |---|---|
//! | integer | zeros before its first digit |
//! | floating-point number | zeros after its fraction |
//! | time | zeros after its seconds |
//! | `NaN`, `inf` | spaces before it |

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{BitRange, Class, FloatFormat};
use h5fs_reader::model::number;
use h5fs_reader::wire::{to_u64, to_usize};

/// The rule that pads the cells of a column to the length of the longest cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Padding {
    kind: PaddingKind,
    width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaddingKind {
    Integer,
    Float,
    Time,
}

impl Padding {
    /// Returns the padding of numbers of type `datatype`; `None` for datatypes other than integers
    /// and floating-point numbers.
    pub(crate) fn for_numbers(datatype: &Datatype) -> Option<Self> {
        let (kind, width) = match &datatype.class {
            Class::Integer { signed, bits, .. } => {
                (PaddingKind::Integer, max_integer_length(*signed, *bits))
            }
            Class::Float(format) => (PaddingKind::Float, max_float_length(datatype.size, format)),
            _ => return None,
        };
        let width = to_usize(width).ok()?;
        Some(Padding { kind, width })
    }

    /// Returns the padding of integers from 0 to `most`.
    pub(crate) fn for_integers_to(most: u64) -> Self {
        Padding {
            kind: PaddingKind::Integer,
            width: most.to_string().len(),
        }
    }

    /// Returns the padding of times. `width` is their maximum length, including a fraction.
    pub(crate) fn for_times(width: usize) -> Self {
        let kind = PaddingKind::Time;
        Padding { kind, width }
    }

    /// Returns the length of each padded cell in bytes.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Pads the cell that occupies `out` from `start` on to the length of all cells of its column.
    ///
    /// # Errors
    /// `Limit` for a longer cell.
    pub(crate) fn pad(&self, start: usize, out: &mut Vec<u8>) -> Result<()> {
        let text = out.get(start..).unwrap_or_default();
        let Some(missing) = self.width.checked_sub(text.len()) else {
            // A cell is never cut, because the width is that of the longest text.
            let most = to_u64(self.width);
            return Err(Error::limit("width of a csv cell", most));
        };
        let is_decimal = text.iter().all(|byte| b"+-.e0123456789T:".contains(byte));
        let has_point = text.contains(&b'.');
        let (place, padding) = match self.kind {
            _ if !is_decimal => (0, b' '),
            PaddingKind::Integer => (usize::from(text.starts_with(b"-")), b'0'),
            _ => {
                let exponent = text.iter().position(|&byte| byte == b'e');
                (exponent.unwrap_or(text.len()), b'0')
            }
        };
        let place = start + place;
        out.splice(place..place, std::iter::repeat_n(padding, missing));
        if self.kind != PaddingKind::Integer && is_decimal && !has_point && missing > 0 {
            out[place] = b'.';
        }
        Ok(())
    }
}

/// Returns the length in bytes of the longest decimal text of an integer of this signedness and
/// precision.
fn max_integer_length(signed: bool, bits: BitRange) -> u64 {
    let magnitude_bits = u32::from(bits.precision)
        .min(128)
        .saturating_sub(u32::from(signed));
    let text = match (signed, 1_u128.checked_shl(magnitude_bits)) {
        (true, Some(most)) => format!("-{most}"),
        (true, None) => i128::MIN.to_string(),
        (false, Some(beyond)) => (beyond - 1).to_string(),
        (false, None) => u128::MAX.to_string(),
    };
    to_u64(text.len())
}

/// Returns the maximum length of the texts of floating-point numbers in this format. The text of a
/// number is the shortest that restores the number.
fn max_float_length(size: u32, format: &FloatFormat) -> u64 {
    const DOUBLE: u64 = 24;
    match number::ieee_bytes(size, format) {
        Some(2 | 4) => 15,
        Some(_) => DOUBLE,
        None => {
            let bits = u64::from(format.mantissa_bits) + 1;
            // This is the maximum number of digits that restore a number of so many bits, plus
            // `-0.000` or an exponent.
            let wide = (bits.max(64) * 31).div_ceil(100) + 9;
            // Numbers beyond 64 bits have `-0x1.`, one digit for four bits, `p`, a sign and an
            // exponent.
            let hexadecimal = u64::from(format.mantissa_bits).div_ceil(4) + 18;
            DOUBLE.max(wide).max(hexadecimal)
        }
    }
}

//! Cells of one length: numbers and times with characters that do not change them.
//!
//! | cell | characters |
//! |---|---|
//! | integer | zeros before its first digit |
//! | floating-point number | zeros behind its fraction |
//! | time | zeros behind its seconds |
//! | `NaN`, `inf` | blanks before it |

use crate::error::{Error, Result};
use crate::model::Datatype;
use crate::model::datatype::{Bits, Class, Float};
use crate::model::number;
use crate::wire::{to_u64, to_usize};

/// Makes the cells of a column as long as its longest.
#[derive(Debug, Clone, Copy)]
pub(in crate::view) struct Padding {
    kind: Kind,
    width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Float,
    Time,
}

impl Padding {
    /// That of numbers of a type, which are computable; `None` where it has none.
    pub(in crate::view) fn of_numbers(datatype: &Datatype) -> Option<Self> {
        let (kind, width) = match &datatype.class {
            Class::Integer { signed, bits, .. } => (Kind::Integer, digits(*signed, *bits)),
            Class::Float(format) => (Kind::Float, float_width(datatype.size, format)),
            _ => return None,
        };
        let width = to_usize(width).ok()?;
        Some(Padding { kind, width })
    }

    /// That of integers from 0 up to `most`.
    pub(in crate::view) fn of_numbers_to(most: u64) -> Self {
        Padding {
            kind: Kind::Integer,
            width: most.to_string().len(),
        }
    }

    /// That of times of so many bytes, a fraction included.
    pub(in crate::view) fn of_times(width: usize) -> Self {
        let kind = Kind::Time;
        Padding { kind, width }
    }

    /// Bytes of each cell.
    pub(in crate::view) fn width(&self) -> usize {
        self.width
    }

    /// Makes the cell from `start` on as long as all in its column.
    ///
    /// # Errors
    /// `Limit` for one that is longer.
    pub(in crate::view) fn pad(&self, start: usize, out: &mut Vec<u8>) -> Result<()> {
        let text = out.get(start..).unwrap_or_default();
        let Some(missing) = self.width.checked_sub(text.len()) else {
            // Never cut: the widths are those of the longest texts.
            let most = to_u64(self.width);
            return Err(Error::limit("width of a csv cell", most));
        };
        let is_decimal = text.iter().all(|byte| b"+-.e0123456789T:".contains(byte));
        let has_point = text.contains(&b'.');
        let (place, padding) = match self.kind {
            _ if !is_decimal => (0, b' '),
            Kind::Integer => (usize::from(text.starts_with(b"-")), b'0'),
            _ => {
                let exponent = text.iter().position(|&byte| byte == b'e');
                (exponent.unwrap_or(text.len()), b'0')
            }
        };
        let place = start + place;
        out.splice(place..place, std::iter::repeat_n(padding, missing));
        if self.kind != Kind::Integer && is_decimal && !has_point && missing > 0 {
            out[place] = b'.';
        }
        Ok(())
    }
}

/// Characters of the longest integer of that many bits.
fn digits(signed: bool, bits: Bits) -> u64 {
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

/// Characters of the longest shortest text of a floating-point number.
fn float_width(size: u32, format: &Float) -> u64 {
    const DOUBLE: u64 = 24;
    match number::ieee_bytes(size, format) {
        Some(2 | 4) => 15,
        Some(_) => DOUBLE,
        None => {
            let bits = u64::from(format.mantissa_bits) + 1;
            // No more digits than give a number of so many bits back, `-0.000` or an exponent.
            let wide = (bits.max(64) * 31).div_ceil(100) + 9;
            // What 64 bits cannot hold is `-0x1.`, four bits a digit, `p`, sign and exponent.
            let hexadecimal = u64::from(format.mantissa_bits).div_ceil(4) + 18;
            DOUBLE.max(wide).max(hexadecimal)
        }
    }
}

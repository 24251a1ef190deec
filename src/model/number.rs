//! Stored numbers: the fields of their bits, and their text.
//!
//! HDF5 3.0, IV.A.2.d: an integer is some bits of its element (class 0), a floating-point number
//! has a sign, an exponent and a mantissa anywhere in it (class 1). ASDF's numbers are the plain
//! cases.
//!
//! Text is what Python and NumPy (2.4) print: the fewest digits that give the stored number back
//! when read in its own format, `1.0`, `1e+300`, `nan`, `-inf`; exponents below 1e-4 and from 1e16
//! (64 bits), 1e6 (32 bits), 1e3 (16 bits). Where two such texts are equally near, the last digit
//! may be the other one. A number with more than 53 significant bits is rounded to them; one that a
//! 64-bit float cannot hold at all is written in C's exact notation, `0x1.8p+16000`.

use std::fmt;
use std::io::{self, Write};

use crate::model::Datatype;
use crate::model::datatype::{Bits, ByteOrder, Class, Float, Normalization};
use crate::wire::Count;

/// An integer of up to 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// Of an unsigned type.
    Unsigned(u128),
    /// Of a signed type.
    Signed(i128),
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Printing 128 bits costs several divisions more, and few numbers need them.
        match *self {
            Integer::Unsigned(number) => match u64::try_from(number) {
                Ok(number) => number.fmt(f),
                Err(_) => number.fmt(f),
            },
            Integer::Signed(number) => match i64::try_from(number) {
                Ok(number) => number.fmt(f),
                Err(_) => number.fmt(f),
            },
        }
    }
}

impl Integer {
    /// Appends its text.
    pub fn write(self, out: &mut Vec<u8>) {
        let (is_negative, magnitude) = match self {
            Integer::Unsigned(number) => (false, number),
            Integer::Signed(number) => (number < 0, number.unsigned_abs()),
        };
        let Ok(mut number) = u64::try_from(magnitude) else {
            return append(out, format_args!("{self}"));
        };
        if is_negative {
            out.push(b'-');
        }
        let mut digits = [0; 20];
        let mut start = 0;
        for (place, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' | u8::try_from(number % 10).unwrap_or(0);
            start = place;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        out.extend_from_slice(digits.get(start..).unwrap_or_default());
    }
}

/// A floating-point number, held so that its text can be the shortest of the format in which readers
/// hold it in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Real {
    /// IEEE 754, 32 bits.
    Single(f32),
    /// IEEE 754, 64 bits, or rounded to it.
    Double(f64),
    /// Exact, of a format in memory with fewer significant bits than a 64-bit float.
    Narrow {
        /// The number.
        value: f64,
        /// Numbers nearer than this towards zero are read as this one.
        below: f64,
        /// Numbers nearer than this away from zero are read as this one.
        above: f64,
        /// Significant bits of the format.
        bits: u32,
    },
    /// Finite, but outside the range of 64-bit floats: `mantissa * 2^exponent`.
    Beyond {
        /// Below zero.
        negative: bool,
        /// Not zero.
        mantissa: u128,
        /// Power of two.
        exponent: i32,
    },
}

/// The element's bits as one number, `None` where it has more than 16 bytes.
fn word(element: &[u8], order: ByteOrder) -> Option<u128> {
    let mut bytes = [0; 16];
    if element.len() > bytes.len() {
        return None;
    }
    let slots = bytes.iter_mut();
    match order {
        ByteOrder::Little => slots.zip(element).for_each(|(to, from)| *to = *from),
        ByteOrder::Big => slots
            .zip(element.iter().rev())
            .for_each(|(to, from)| *to = *from),
        ByteOrder::Vax => slots
            .zip(element.rchunks(2).flatten())
            .for_each(|(to, from)| *to = *from),
    }
    Some(u128::from_le_bytes(bytes))
}

/// `count` bits of `word` from bit `place` on.
fn slice(word: u128, place: u32, count: u32) -> u128 {
    word.checked_shr(place).unwrap_or(0) & ones(count)
}

/// A number whose lowest `count` bits are set.
fn ones(count: u32) -> u128 {
    u128::MAX
        .checked_shr(128_u32.left_after(count))
        .unwrap_or(0)
}

/// The bits that a bit field or an unsigned integer fills, `None` where the element has more than
/// 16 bytes.
pub fn bits(element: &[u8], order: ByteOrder, bits: Bits) -> Option<u128> {
    let word = word(element, order)?;
    Some(slice(word, bits.offset.into(), bits.precision.into()))
}

/// The integer in an element, `None` where the element has more than 16 bytes.
pub fn integer(element: &[u8], order: ByteOrder, signed: bool, field: Bits) -> Option<Integer> {
    let number = bits(element, order, field)?;
    if !signed {
        return Some(Integer::Unsigned(number));
    }
    let precision = u32::from(field.precision);
    let negative = slice(number, precision.left_after(1), 1) == 1;
    let extension = if negative { !ones(precision) } else { 0 };
    Some(Integer::Signed((number | extension).cast_signed()))
}

/// Bytes of the IEEE 754 format that this is, whatever the byte order; `None` if it is another
/// format.
pub fn ieee_bytes(size: u32, format: &Float) -> Option<u8> {
    let size = u8::try_from(size).ok()?;
    if !matches!(size, 2 | 4 | 8) || (format.order == ByteOrder::Vax) {
        return None;
    }
    match Datatype::ieee(size, format.order).class {
        Class::Float(ieee) if ieee == *format => Some(size),
        _ => None,
    }
}

/// Whether numbers of this format can be computed with. No format of a machine has more bits; of
/// one that has, the bytes are shown.
pub fn is_computable(format: &Float) -> bool {
    // So that a power of two fits 32 bits with a sign, and a mantissa 128 with its leading one.
    format.exponent_bits <= 30 && format.bias < 1 << 30 && format.mantissa_bits < 128
}

/// The floating-point number in an element, `None` where the element has more than 16 bytes or
/// [`is_computable`] denies it.
pub fn real(element: &[u8], format: &Float) -> Option<Real> {
    if !is_computable(format) {
        return None;
    }
    let word = word(element, format.order)?;
    let size = u32::try_from(element.len()).ok()?;
    match ieee_bytes(size, format) {
        Some(4) => Some(Real::Single(f32::from_bits(u32::try_from(word).ok()?))),
        Some(8) => Some(Real::Double(f64::from_bits(u64::try_from(word).ok()?))),
        _ => general(word, format),
    }
}

/// A number by the places of its fields.
fn general(word: u128, format: &Float) -> Option<Real> {
    let negative = slice(word, format.sign.into(), 1) == 1;
    let exponent_bits = u32::from(format.exponent_bits);
    let mantissa_bits = u32::from(format.mantissa_bits);
    let exponent = slice(word, format.exponent.into(), exponent_bits);
    let mantissa = slice(word, format.mantissa.into(), mantissa_bits);
    let implied = format.normalization == Normalization::Implied;
    let vax = format.order == ByteOrder::Vax;
    if exponent == ones(exponent_bits) && !vax {
        let number = special(negative, mantissa, mantissa_bits, implied);
        return Some(Real::Double(number));
    }
    if exponent == 0 && vax {
        // VAX: no subnormal numbers; with the sign set it is a reserved operand, which is no
        // number.
        return Some(Real::Double(if negative { f64::NAN } else { 0.0 }));
    }
    let implied_one = match exponent {
        0 => 0,
        _ if implied => ones(mantissa_bits).checked_add(1)?,
        _ => 0,
    };
    let significant_bits = mantissa_bits.with_more(u32::from(implied));
    let fraction_bits = significant_bits.left_after(1);
    let exponent = i32::try_from(exponent.max(1)).ok()?;
    let power = exponent
        .checked_sub_unsigned(format.bias)?
        .checked_sub_unsigned(fraction_bits)?;
    let mantissa = mantissa | implied_one;
    let value = nearest(mantissa, power).filter(|_| mantissa != 0);
    let value = value.map(|value| value.copysign(if negative { -1.0 } else { 1.0 }));
    match (memory_bytes(format), value) {
        (Some(2), _) => return Some(half(negative, mantissa, power)),
        (Some(4), Some(value)) => return Some(Real::Single(single(value))),
        (Some(8), Some(value)) => return Some(Real::Double(value)),
        _ => {}
    }
    let spacing_halves_below = implied && mantissa == implied_one && exponent > 1;
    Some(scaled(
        negative,
        mantissa,
        power,
        significant_bits,
        spacing_halves_below,
    ))
}

/// Bytes of the IEEE 754 format in which readers hold numbers of this format in memory, the smallest
/// that has them all, as in h5py; `None` where none has, and for VAX.
fn memory_bytes(format: &Float) -> Option<u8> {
    let fits = |&(_, mantissa_bits, least, most): &(u8, u8, i64, i64)| {
        let bias = i64::from(format.bias);
        let largest = 1_i64.checked_shl(format.exponent_bits.into());
        let largest = largest.and_then(|largest| largest.checked_sub(bias.checked_add(1)?));
        format.mantissa_bits <= mantissa_bits
            && largest.is_some_and(|largest| largest <= most)
            && 1_i64
                .checked_sub(bias)
                .is_some_and(|smallest| smallest >= least)
    };
    let formats = [(2, 10, -14, 16), (4, 23, -126, 128), (8, 52, -1022, 1024)];
    let found = formats.iter().find(|format| fits(format));
    let found = found.filter(|_| format.order != ByteOrder::Vax);
    found.map(|&(bytes, ..)| bytes)
}

/// `mantissa * 2^power`, which is a 16-bit float.
fn half(negative: bool, mantissa: u128, power: i32) -> Real {
    const SIGNIFICANT_BITS: u32 = 11;
    const LEAST_POWER: i32 = -24;
    let length = 128_u32.left_after(mantissa.leading_zeros());
    let room = power.max(LEAST_POWER).abs_diff(LEAST_POWER);
    let shift = SIGNIFICANT_BITS.left_after(length).min(room);
    let mantissa = mantissa.checked_shl(shift).unwrap_or(mantissa);
    let power = power.saturating_sub_unsigned(shift);
    let is_power_of_two = mantissa.checked_sub(1) == Some(ones(SIGNIFICANT_BITS.left_after(1)));
    let spacing_halves_below = is_power_of_two && power > LEAST_POWER;
    scaled(
        negative,
        mantissa,
        power,
        SIGNIFICANT_BITS,
        spacing_halves_below,
    )
}

/// A number that a 32-bit float has.
#[expect(clippy::as_conversions, reason = "nothing is lost")]
fn single(value: f64) -> f32 {
    value as f32
}

/// The meaning of an exponent of all ones: infinity or no number.
fn special(negative: bool, mantissa: u128, mantissa_bits: u32, implied: bool) -> f64 {
    // A stored leading one says nothing here.
    let fraction_bits = mantissa_bits.left_after(u32::from(!implied));
    match slice(mantissa, 0, fraction_bits) {
        0 if negative => f64::NEG_INFINITY,
        0 => f64::INFINITY,
        _ => f64::NAN,
    }
}

/// `mantissa * 2^power`, of a format with `significant_bits`.
fn scaled(
    negative: bool,
    mantissa: u128,
    power: i32,
    significant_bits: u32,
    spacing_halves_below: bool,
) -> Real {
    let sign = if negative { -1.0 } else { 1.0 };
    if mantissa == 0 {
        return Real::Double(0.0_f64.copysign(sign));
    }
    let Some(value) = nearest(mantissa, power) else {
        return Real::Beyond {
            negative,
            mantissa,
            exponent: power,
        };
    };
    let value = value.copysign(sign);
    let Some(quarter) = power.checked_sub(2).and_then(power_of_two) else {
        return Real::Double(value);
    };
    if significant_bits >= f64::MANTISSA_DIGITS {
        return Real::Double(value);
    }
    let half = quarter * 2.0;
    let below = if spacing_halves_below { quarter } else { half };
    // A number in the middle between two others is read as the even one.
    let even = slice(mantissa, 0, 1) == 0;
    let bound = |distance: f64| if even { distance.next_up() } else { distance };
    Real::Narrow {
        value,
        below: bound(below),
        above: bound(half),
        bits: significant_bits,
    }
}

/// `mantissa * 2^power` rounded half to even, `None` outside the normal range of 64-bit floats.
fn nearest(mantissa: u128, power: i32) -> Option<f64> {
    let length = 128_u32.left_after(mantissa.leading_zeros());
    let excess = length.left_after(f64::MANTISSA_DIGITS);
    let kept = mantissa.checked_shr(excess)?;
    let lost = slice(mantissa, 0, excess);
    let half = ones(excess).checked_add(1)?.checked_shr(1)?;
    let up = excess > 0 && (lost > half || (lost == half && slice(kept, 0, 1) == 1));
    let kept = kept.checked_add(u128::from(up))?;
    let power = power.checked_add_unsigned(excess)?;
    let length = 128_u32.left_after(kept.leading_zeros());
    let top = power.checked_add_unsigned(length.checked_sub(1)?)?;
    if !(-1022..=1023).contains(&top) {
        return None;
    }
    let low = u32::try_from(kept & 0xFFFF_FFFF).ok()?;
    let high = u32::try_from(kept.checked_shr(32)?).ok()?;
    let whole = f64::from(high) * 4_294_967_296.0 + f64::from(low);
    // In two steps, for 2^power alone may be out of range where the product is not.
    let first = power.checked_div(2)?;
    let second = power.checked_sub(first)?;
    Some(whole * power_of_two(first)? * power_of_two(second)?)
}

/// 2 to the `power`, in the normal range of 64-bit floats.
fn power_of_two(power: i32) -> Option<f64> {
    if !(-1022..=1023).contains(&power) {
        return None;
    }
    let biased = u64::try_from(power.checked_add(1023)?).ok()?;
    Some(f64::from_bits(biased.checked_shl(52)?))
}

impl Real {
    /// Whether it is no number.
    pub fn is_nan(&self) -> bool {
        match self {
            Real::Single(value) => value.is_nan(),
            Real::Double(value) => value.is_nan(),
            Real::Narrow { .. } | Real::Beyond { .. } => false,
        }
    }

    /// Whether its text is a number in JSON too.
    pub fn is_json_number(&self) -> bool {
        match self {
            Real::Single(value) => value.is_finite(),
            Real::Double(value) => value.is_finite(),
            Real::Narrow { .. } => true,
            Real::Beyond { .. } => false,
        }
    }

    /// Appends its text.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Real::Single(value) => write_shortest(out, value, value.into(), 1e6),
            Real::Double(value) => write_shortest(out, value, value, 1e16),
            Real::Narrow {
                value,
                below,
                above,
                bits,
            } => {
                let exponent_from = match bits {
                    0..=11 => 1e3,
                    12..=24 => 1e6,
                    _ => 1e16,
                };
                let value = fewest_digits(value, below, above);
                write_shortest(out, value, value, exponent_from);
            }
            Real::Beyond {
                negative,
                mantissa,
                exponent,
            } => write_hexadecimal(out, negative, mantissa, exponent),
        }
    }
}

/// The number with the fewest decimal digits that lies nearer to `value` than to its neighbours.
fn fewest_digits(value: f64, below: f64, above: f64) -> f64 {
    for digits in 0..usize::try_from(f64::DIGITS).unwrap_or(0) {
        let mut buffer = [0; 32];
        let text = print(&mut buffer, format_args!("{value:.digits$e}"));
        let Some(candidate) = text.parse::<f64>().ok() else {
            break;
        };
        let off = candidate.abs() - value.abs();
        if -below < off && off < above {
            return candidate;
        }
    }
    value
}

/// Whether a number of this absolute value has no exponent.
fn is_plain(size: f64, exponent_from: f64) -> bool {
    size == 0.0 || (1e-4..exponent_from).contains(&size)
}

/// The length of the text of a number that is finite and has no exponent; else `None`.
pub(super) fn plain_length(
    number: impl zmij::Float,
    value: f64,
    exponent_from: f64,
) -> Option<usize> {
    let is_plain = is_plain(value.abs(), exponent_from);
    is_plain.then(|| zmij::Buffer::new().format_finite(number).len())
}

/// Appends a number in its shortest digits, in Python's notation.
fn write_shortest<T>(out: &mut Vec<u8>, number: T, value: f64, exponent_from: f64)
where
    T: zmij::Float + fmt::LowerExp + Copy,
{
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
    }
    let size = value.abs();
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(number);
    if is_plain(size, exponent_from) {
        return out.extend_from_slice(text.as_bytes());
    }
    match text.split_once('e') {
        Some((digits, exponent)) => write_with_exponent(out, digits, exponent),
        None => {
            let mut buffer = [0; 32];
            let text = print(&mut buffer, format_args!("{number:e}"));
            let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
            write_with_exponent(out, digits, exponent);
        }
    }
}

/// Appends a number as Python does with an exponent: a sign and two digits at least.
fn write_with_exponent(out: &mut Vec<u8>, digits: &str, exponent: &str) {
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    append(out, format_args!("{digits}e{sign}{exponent:0>2}"));
}

/// Appends `mantissa * 2^exponent` in C's notation, as `printf("%a")` does.
fn write_hexadecimal(out: &mut Vec<u8>, negative: bool, mantissa: u128, exponent: i32) {
    let zeros = mantissa.leading_zeros();
    let sign = if negative { "-" } else { "" };
    append(out, format_args!("{sign}0x1"));
    let mut fraction = mantissa.checked_shl(zeros.one_more()).unwrap_or(0);
    if fraction != 0 {
        out.push(b'.');
    }
    while fraction != 0 {
        append(out, format_args!("{:x}", slice(fraction, 124, 4)));
        fraction = fraction.checked_shl(4).unwrap_or(0);
    }
    // The sum of two numbers of 32 bits has 64.
    let power = i64::from(exponent).wrapping_add_unsigned(127_u32.left_after(zeros).into());
    append(out, format_args!("p{power:+}"));
}

/// Appends formatted text; memory does not refuse a write.
pub fn append(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    let _infallible: io::Result<()> = out.write_fmt(text);
}

/// Formatted ASCII text in a buffer on the stack.
fn print<'a>(buffer: &'a mut [u8; 32], text: fmt::Arguments<'_>) -> &'a str {
    let mut cursor = io::Cursor::new(buffer.as_mut_slice());
    let fits = cursor.write_fmt(text).is_ok();
    let length = usize::try_from(cursor.position()).unwrap_or(0);
    let written = buffer.get(..length).filter(|_| fits).unwrap_or_default();
    std::str::from_utf8(written).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ByteOrder::{Big, Little, Vax};

    fn whole(size: u16) -> Bits {
        Bits {
            offset: 0,
            precision: size * 8,
        }
    }

    fn text(element: &[u8], format: &Float) -> String {
        let mut out = Vec::new();
        real(element, format).unwrap().write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn ieee(size: u8, order: ByteOrder) -> Float {
        match Datatype::ieee(size, order).class {
            Class::Float(format) => format,
            _ => unreachable!(),
        }
    }

    /// A format without padding: sign on top, then exponent, then mantissa.
    pub(crate) fn format(
        order: ByteOrder,
        exponent_bits: u8,
        mantissa_bits: u8,
        bias: u32,
    ) -> Float {
        let sign = exponent_bits + mantissa_bits;
        Float {
            order,
            bits: Bits {
                offset: 0,
                precision: u16::from(sign) + 1,
            },
            sign,
            exponent: mantissa_bits,
            exponent_bits,
            mantissa: 0,
            mantissa_bits,
            bias,
            normalization: Normalization::Implied,
        }
    }

    #[test]
    fn integers_of_every_size_and_order() {
        let text = |element: &[u8], order, signed, bits| {
            integer(element, order, signed, bits).unwrap().to_string()
        };
        assert_eq!(text(&[0xFE], Little, true, whole(1)), "-2");
        assert_eq!(text(&[0x01, 0x02], Big, false, whole(2)), "258");
        assert_eq!(
            text(&[0x01, 0x00, 0x80], Little, true, whole(3)),
            "-8388607"
        );
        // VAX: the more significant word comes first, each word little-endian.
        assert_eq!(
            text(&[2, 1, 4, 3], Vax, false, whole(4)),
            0x0102_0304.to_string()
        );
        let least = i128::MIN.to_be_bytes();
        let digits = "-170141183460469231731687303715884105728";
        assert_eq!(text(&least, Big, true, whole(16)), digits);
        assert_eq!(integer(&[0; 17], Little, true, whole(17)), None);
    }

    #[test]
    fn integers_within_padding() {
        let field = Bits {
            offset: 3,
            precision: 5,
        };
        // Bits 3..8 of 0b_1010_0111 0b_1111_1010 are 11111: bits 3-7 of the low byte.
        let element = [0b1111_1010, 0b1010_0111];
        assert_eq!(
            integer(&element, Little, false, field),
            Some(Integer::Unsigned(31))
        );
        assert_eq!(
            integer(&element, Little, true, field),
            Some(Integer::Signed(-1))
        );
    }

    /// Expected: `repr(x)` of Python 3 for the double, whose bytes are `struct.pack('<d', x)`.
    #[test]
    fn doubles_print_as_in_python() {
        let print = |value: f64| text(&value.to_le_bytes(), &ieee(8, Little));
        assert_eq!(print(1.0), "1.0");
        assert_eq!(print(0.1), "0.1");
        assert_eq!(print(-0.0), "-0.0");
        assert_eq!(print(1e300), "1e+300");
        assert_eq!(print(1e16), "1e+16");
        assert_eq!(print(1e15), "1000000000000000.0");
        assert_eq!(print(123_456_789_012_345_680.0), "1.2345678901234568e+17");
        assert_eq!(print(0.0001), "0.0001");
        assert_eq!(print(1e-5), "1e-05");
        assert_eq!(print(5e-324), "5e-324");
        assert_eq!(print(f64::NAN), "nan");
        assert_eq!(print(f64::NEG_INFINITY), "-inf");
    }

    /// Expected: `str(numpy.float32(x))` of NumPy 2.4.
    #[test]
    fn singles_print_as_in_numpy() {
        let print = |value: f32| text(&value.to_be_bytes(), &ieee(4, Big));
        assert_eq!(print(0.1), "0.1");
        assert_eq!(print(999_999.0), "999999.0");
        assert_eq!(print(1e6), "1e+06");
        assert_eq!(print(16_777_216.0), "1.6777216e+07");
        assert_eq!(print(3.402_823_5e38), "3.4028235e+38");
        assert_eq!(print(1e-4), "1e-04");
        assert_eq!(print(1e-45), "1e-45");
        assert_eq!(print(0.000_123_456_78), "0.00012345678");
    }

    /// Expected: `str(numpy.float16(x))` of NumPy 2.4.
    #[test]
    fn halves_print_as_in_numpy() {
        let half = ieee(2, Little);
        assert_eq!(text(&0x2E66_u16.to_le_bytes(), &half), "0.1");
        assert_eq!(text(&0x7BFF_u16.to_le_bytes(), &half), "6.55e+04");
        assert_eq!(text(&0x0001_u16.to_le_bytes(), &half), "6e-08");
        assert_eq!(text(&0x502B_u16.to_le_bytes(), &half), "33.34");
        assert_eq!(text(&0xFC00_u16.to_le_bytes(), &half), "-inf");
        assert_eq!(text(&0x7E00_u16.to_le_bytes(), &half), "nan");
        assert_eq!(text(&0x8000_u16.to_le_bytes(), &half), "-0.0");
    }

    /// Values by hand from the formats' definitions, texts as NumPy has them of the type that h5py
    /// reads.
    #[test]
    fn other_formats_by_their_fields() {
        // bfloat16 is the upper half of an IEEE single: 0x4049 is 3.140625.
        assert_eq!(text(&[0x49, 0x40], &format(Little, 8, 7, 127)), "3.140625");
        // FP8 E5M2: 0b0_01111_01 is 1.25; E4M3: 0b1_1000_100 is -3, 0x01 is 2^-9. Both are halves.
        assert_eq!(text(&[0x3D], &format(Little, 5, 2, 15)), "1.25");
        assert_eq!(text(&[0xC4], &format(Little, 4, 3, 7)), "-3.0");
        assert_eq!(text(&[0x01], &format(Little, 4, 3, 7)), "0.001953");
        // Of 20 bits, the number below 0.1 is one of 32; with more exponents than those, of 64.
        let tenth = 0.1_f32.to_bits() >> 12;
        let twenty = format(Little, 8, 11, 127);
        assert_eq!(text(&tenth.to_le_bytes(), &twenty), "0.099975586");
        let tenth = 0.1_f64.to_bits() >> 40;
        let wide = format(Little, 11, 12, 1023);
        assert_eq!(text(&tenth.to_le_bytes(), &wide), "0.0999908447265625");
        // VAX F: 1.0 is 0.5 * 2^1, exponent 129: bytes 80 40 00 00. D and G: 80 40, 10 40 first.
        assert_eq!(text(&[0x80, 0x40, 0, 0], &format(Vax, 8, 23, 129)), "1.0");
        assert_eq!(
            text(&[0x80, 0xC0, 0, 0, 0, 0, 0, 0], &format(Vax, 8, 55, 129)),
            "-1.0"
        );
        assert_eq!(
            text(&[0x10, 0x40, 0, 0, 0, 0, 0, 0], &format(Vax, 11, 52, 1025)),
            "1.0"
        );
        // The VAX has no infinity: the highest exponent is a number as any other, 2^126 here.
        assert_eq!(
            text(&[0x80, 0x7F, 0, 0], &format(Vax, 8, 23, 129)),
            "8.507059e+37"
        );
        assert_eq!(text(&[0x00, 0x80, 0, 0], &format(Vax, 8, 23, 129)), "nan");
    }

    /// x87 extended: the leading one is stored. 0.1 from `numpy.longdouble('0.1').tobytes()`.
    #[test]
    fn extended_precision() {
        let mut x87 = format(Little, 15, 64, 16383);
        x87.normalization = Normalization::None;
        let tenth = [0xCD, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xFB, 0x3F];
        assert_eq!(text(&[&tenth[..], &[0; 6]].concat(), &x87), "0.1");
        let infinity = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xFF, 0x7F, 0, 0];
        assert_eq!(text(&infinity, &x87), "inf");
        // Exponent field 0x7FFE, mantissa 1.5: 1.5 * 2^16383.
        let huge = [0, 0, 0, 0, 0, 0, 0, 0xC0, 0xFE, 0xFF, 0, 0];
        assert_eq!(text(&huge, &x87), "-0x1.8p+16383");
    }

    #[test]
    fn formats_beyond_all_arithmetic_have_no_value() {
        let quad = format(Little, 15, 112, 16_383);
        assert!(real(&[0xaa; 16], &quad).is_some());
        let strange = [
            Float {
                mantissa_bits: 128,
                ..quad
            },
            Float {
                exponent_bits: 31,
                ..quad
            },
            Float {
                bias: 1 << 30,
                ..quad
            },
        ];
        for format in strange {
            assert!(real(&[0xaa; 16], &format).is_none());
        }
    }
}

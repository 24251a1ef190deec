//! Stored numbers: their bit fields, and their text.
//!
//! HDF5 3.0, IV.A.2.d: an integer uses some bits of its element (class 0). A floating-point number
//! has a sign, an exponent and a mantissa at any positions (class 1). ASDF's numbers are the plain
//! cases.
//!
//! The text follows Python and NumPy (2.4): the fewest digits that parse back to the stored number
//! in its own format. Examples are `1.0`, `1e+300`, `nan` and `-inf`. Exponents are used below 1e-4
//! and from 1e16 (64 bits), 1e6 (32 bits) or 1e3 (16 bits). If two such texts are equally near, the
//! last digit may differ from NumPy's.
//!
//! A number with more than 53 significant bits, or in an element of more than 8 bytes, has the
//! digits of NumPy's `longdouble`. A number outside the range of 64-bit floats is written in C's
//! exact notation, `0x1.8p+16000`.

mod shortest;

use std::fmt;
use std::io::{self, Write};
use std::iter;

use crate::model::Datatype;
use crate::model::datatype::{BitRange, ByteOrder, Class, FloatFormat, Normalization};
use crate::wire::Count;

/// An integer of up to 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// A value of an unsigned type.
    Unsigned(u128),
    /// A value of a signed type.
    Signed(i128),
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Formatting 128 bits costs several additional divisions, and few numbers need them.
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
    /// Appends the number's text.
    pub fn write(self, out: &mut Vec<u8>) {
        let (is_negative, magnitude) = match self {
            Integer::Unsigned(number) => (false, number),
            Integer::Signed(number) => (number < 0, number.unsigned_abs()),
        };
        let Ok(mut number) = u64::try_from(magnitude) else {
            return append_formatted(out, format_args!("{self}"));
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

/// A floating-point number with the information that is needed for its shortest text. The text is
/// the shortest one for the IEEE format in which programs such as h5py keep the number in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FloatValue {
    /// IEEE 754, 32 bits.
    Single(f32),
    /// IEEE 754, 64 bits.
    Double(f64),
    /// An exact number whose format in memory has fewer significant bits than a 64-bit float.
    FewerBitsThanDouble {
        /// The number.
        value: f64,
        /// A decimal number that is nearer to zero than `value`, by a distance less than this
        /// tolerance, is parsed as `value` in this format.
        tolerance_towards_zero: f64,
        /// A decimal number that is farther from zero than `value`, by a distance less than this
        /// tolerance, is parsed as `value` in this format.
        tolerance_from_zero: f64,
        /// Number of mantissa bits, including the leading one (11 for a 16-bit float).
        bits: u32,
    },
    /// A number within the range of 64-bit floats whose format in memory has more significant bits
    /// than a 64-bit float. The value is `mantissa * 2^exponent`, and the mantissa has all
    /// significant bits.
    MoreBitsThanDouble {
        /// The nearest 64-bit float, with the sign.
        value: f64,
        /// The mantissa, not zero.
        mantissa: u128,
        /// The exponent of the factor `2^exponent`.
        exponent: i32,
    },
    /// A finite number outside the range of 64-bit floats: `mantissa * 2^exponent`.
    OutOfDoubleRange {
        /// Whether the number is below zero.
        negative: bool,
        /// The mantissa, not zero.
        mantissa: u128,
        /// The exponent of the factor `2^exponent`.
        exponent: i32,
    },
}

/// Returns all bits of the element as one number, or `None` if the element has more than 16 bytes.
fn element_word(element: &[u8], order: ByteOrder) -> Option<u128> {
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

/// Returns `count` bits of `word` from bit `place` on.
fn bit_range(word: u128, place: u32, count: u32) -> u128 {
    word.checked_shr(place).unwrap_or(0) & low_bits_mask(count)
}

/// Returns a number whose lowest `count` bits are set.
fn low_bits_mask(count: u32) -> u128 {
    u128::MAX
        .checked_shr(128_u32.minus_or_zero(count))
        .unwrap_or(0)
}

/// Returns the value of a bit field or an unsigned integer without its padding bits, or `None` if
/// the element has more than 16 bytes.
pub fn bit_field(element: &[u8], order: ByteOrder, bits: BitRange) -> Option<u128> {
    let word = element_word(element, order)?;
    Some(bit_range(word, bits.offset.into(), bits.precision.into()))
}

/// Returns the integer in an element, or `None` if the element has more than 16 bytes.
pub fn decode_integer(
    element: &[u8],
    order: ByteOrder,
    signed: bool,
    field: BitRange,
) -> Option<Integer> {
    let number = bit_field(element, order, field)?;
    if !signed {
        return Some(Integer::Unsigned(number));
    }
    let precision = u32::from(field.precision);
    let negative = bit_range(number, precision.minus_or_zero(1), 1) == 1;
    let extension = if negative {
        !low_bits_mask(precision)
    } else {
        0
    };
    Some(Integer::Signed((number | extension).cast_signed()))
}

/// Returns the size in bytes if the format is an IEEE 754 format, in either byte order. Returns
/// `None` for another format.
pub fn ieee_bytes(size: u32, format: &FloatFormat) -> Option<u8> {
    let size = u8::try_from(size).ok()?;
    if !matches!(size, 2 | 4 | 8) || (format.order == ByteOrder::Vax) {
        return None;
    }
    match Datatype::ieee(size, format.order).class {
        Class::Float(ieee) if ieee == *format => Some(size),
        _ => None,
    }
}

/// Returns whether numbers of this format can be decoded: up to 30 exponent bits and fewer than 128
/// mantissa bits. No machine has a larger format. A number of a larger format is shown as its
/// bytes.
pub fn is_decodable(format: &FloatFormat) -> bool {
    // A power of two then fits 32 bits with a sign, and a mantissa with its leading one fits 128
    // bits.
    format.exponent_bits <= 30 && format.bias < 1 << 30 && format.mantissa_bits < 128
}

/// Returns the floating-point number in an element. Returns `None` if the element has more than 16
/// bytes, or if [`is_decodable`] is false.
pub fn float_value(element: &[u8], format: &FloatFormat) -> Option<FloatValue> {
    if !is_decodable(format) {
        return None;
    }
    let word = element_word(element, format.order)?;
    let size = u32::try_from(element.len()).ok()?;
    match ieee_bytes(size, format) {
        Some(4) => Some(FloatValue::Single(f32::from_bits(
            u32::try_from(word).ok()?,
        ))),
        Some(8) => Some(FloatValue::Double(f64::from_bits(
            u64::try_from(word).ok()?,
        ))),
        _ => decode_fields(word, format, size),
    }
}

/// Decodes a number of any format from the sign, exponent and mantissa fields in `word`. Returns
/// `None` if an exponent is out of range.
fn decode_fields(word: u128, format: &FloatFormat, size: u32) -> Option<FloatValue> {
    let negative = bit_range(word, format.sign.into(), 1) == 1;
    let exponent_bits = u32::from(format.exponent_bits);
    let mantissa_bits = u32::from(format.mantissa_bits);
    let exponent = bit_range(word, format.exponent.into(), exponent_bits);
    let mantissa = bit_range(word, format.mantissa.into(), mantissa_bits);
    let implied = format.normalization == Normalization::Implied;
    let vax = format.order == ByteOrder::Vax;
    if exponent == low_bits_mask(exponent_bits) && !vax {
        let number = infinity_or_nan(negative, mantissa, mantissa_bits, implied);
        return Some(FloatValue::Double(number));
    }
    if exponent == 0 && vax {
        // VAX lacks subnormal numbers. With the sign set, a zero exponent is a reserved operand,
        // which is shown as NaN.
        return Some(FloatValue::Double(if negative { f64::NAN } else { 0.0 }));
    }
    let implied_one = match exponent {
        0 => 0,
        _ if implied => low_bits_mask(mantissa_bits).checked_add(1)?,
        _ => 0,
    };
    let significant_bits = mantissa_bits.plus(u32::from(implied));
    let fraction_bits = significant_bits.minus_or_zero(1);
    let exponent = i32::try_from(exponent.max(1)).ok()?;
    let power = exponent
        .checked_sub_unsigned(format.bias)?
        .checked_sub_unsigned(fraction_bits)?;
    let mantissa = mantissa | implied_one;
    let value = nearest_double(mantissa, power).filter(|_| mantissa != 0);
    let value = value.map(|value| value.copysign(if negative { -1.0 } else { 1.0 }));
    match (memory_format_bytes(format, size), value) {
        (Some(2), _) => return Some(half_float(negative, mantissa, power)),
        (Some(4), Some(value)) => return Some(FloatValue::Single(to_f32(value))),
        (Some(8), Some(value)) => return Some(FloatValue::Double(value)),
        _ => {}
    }
    let is_long = size > 8 && !vax;
    let bits = if is_long {
        significant_bits.max(EXTENDED_BITS)
    } else {
        significant_bits
    };
    let spacing_halves_below = implied && mantissa == implied_one && exponent > 1;
    Some(scaled_float(
        negative,
        mantissa,
        power,
        bits,
        spacing_halves_below,
    ))
}

/// Number of mantissa bits, including the leading one, of the extended format that programs such as
/// h5py use in memory for numbers from elements of more than 8 bytes.
const EXTENDED_BITS: u32 = 64;

/// Returns the size in bytes of the IEEE 754 format that programs such as h5py use in memory for
/// numbers of this format. That format is the smallest one that represents all numbers and is at
/// least `size` bytes long. Returns `None` if there is none, and for VAX.
fn memory_format_bytes(format: &FloatFormat, size: u32) -> Option<u8> {
    let fits = |&(bytes, mantissa_bits, least, most): &(u8, u8, i64, i64)| {
        let bias = i64::from(format.bias);
        let largest = 1_i64.checked_shl(format.exponent_bits.into());
        let largest = largest.and_then(|largest| largest.checked_sub(bias.checked_add(1)?));
        size <= u32::from(bytes)
            && format.mantissa_bits <= mantissa_bits
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

/// Returns `mantissa * 2^power`, which a 16-bit float represents exactly, as a number of that
/// format.
fn half_float(negative: bool, mantissa: u128, power: i32) -> FloatValue {
    const SIGNIFICANT_BITS: u32 = 11;
    const LEAST_POWER: i32 = -24;
    let length = 128_u32.minus_or_zero(mantissa.leading_zeros());
    let room = power.max(LEAST_POWER).abs_diff(LEAST_POWER);
    let shift = SIGNIFICANT_BITS.minus_or_zero(length).min(room);
    let mantissa = mantissa.checked_shl(shift).unwrap_or(mantissa);
    let power = power.saturating_sub_unsigned(shift);
    let is_power_of_two =
        mantissa.checked_sub(1) == Some(low_bits_mask(SIGNIFICANT_BITS.minus_or_zero(1)));
    let spacing_halves_below = is_power_of_two && power > LEAST_POWER;
    scaled_float(
        negative,
        mantissa,
        power,
        SIGNIFICANT_BITS,
        spacing_halves_below,
    )
}

/// Converts `value`, which a 32-bit float represents exactly, to that float.
#[expect(clippy::as_conversions, reason = "nothing is lost")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

/// Returns the value of a number whose exponent bits are all ones: infinity or NaN.
fn infinity_or_nan(negative: bool, mantissa: u128, mantissa_bits: u32, implied: bool) -> f64 {
    // A stored leading one is meaningless here.
    let fraction_bits = mantissa_bits.minus_or_zero(u32::from(!implied));
    match bit_range(mantissa, 0, fraction_bits) {
        0 if negative => f64::NEG_INFINITY,
        0 => f64::INFINITY,
        _ => f64::NAN,
    }
}

/// Returns `mantissa * 2^power` in a format with `significant_bits`. If `spacing_halves_below` is
/// true, the next number towards zero is only half as far away as the next number from zero.
fn scaled_float(
    negative: bool,
    mantissa: u128,
    power: i32,
    significant_bits: u32,
    spacing_halves_below: bool,
) -> FloatValue {
    let sign = if negative { -1.0 } else { 1.0 };
    if mantissa == 0 {
        return FloatValue::Double(0.0_f64.copysign(sign));
    }
    let Some(value) = nearest_double(mantissa, power) else {
        return FloatValue::OutOfDoubleRange {
            negative,
            mantissa,
            exponent: power,
        };
    };
    let value = value.copysign(sign);
    if significant_bits > f64::MANTISSA_DIGITS {
        let length = 128_u32.minus_or_zero(mantissa.leading_zeros());
        let shift = significant_bits.minus_or_zero(length);
        return FloatValue::MoreBitsThanDouble {
            value,
            mantissa: mantissa.checked_shl(shift).unwrap_or(mantissa),
            exponent: power.saturating_sub_unsigned(shift),
        };
    }
    let Some(quarter) = power.checked_sub(2).and_then(power_of_two) else {
        return FloatValue::Double(value);
    };
    if significant_bits >= f64::MANTISSA_DIGITS {
        return FloatValue::Double(value);
    }
    let half = quarter * 2.0;
    let below = if spacing_halves_below { quarter } else { half };
    // A number halfway between two numbers is parsed as the even one.
    let even = bit_range(mantissa, 0, 1) == 0;
    let bound = |distance: f64| if even { distance.next_up() } else { distance };
    FloatValue::FewerBitsThanDouble {
        value,
        tolerance_towards_zero: bound(below),
        tolerance_from_zero: bound(half),
        bits: significant_bits,
    }
}

/// Returns `mantissa * 2^power` rounded half to even, or `None` outside the normal range of 64-bit
/// floats.
fn nearest_double(mantissa: u128, power: i32) -> Option<f64> {
    let length = 128_u32.minus_or_zero(mantissa.leading_zeros());
    let excess = length.minus_or_zero(f64::MANTISSA_DIGITS);
    let kept = mantissa.checked_shr(excess)?;
    let lost = bit_range(mantissa, 0, excess);
    let half = low_bits_mask(excess).checked_add(1)?.checked_shr(1)?;
    let up = excess > 0 && (lost > half || (lost == half && bit_range(kept, 0, 1) == 1));
    let kept = kept.checked_add(u128::from(up))?;
    let power = power.checked_add_unsigned(excess)?;
    let length = 128_u32.minus_or_zero(kept.leading_zeros());
    let top = power.checked_add_unsigned(length.checked_sub(1)?)?;
    if !(-1022..=1023).contains(&top) {
        return None;
    }
    let low = u32::try_from(kept & 0xFFFF_FFFF).ok()?;
    let high = u32::try_from(kept.checked_shr(32)?).ok()?;
    let whole = f64::from(high) * 4_294_967_296.0 + f64::from(low);
    // Two steps are needed because 2^power alone may be out of range although the product is in
    // range.
    let first = power.checked_div(2)?;
    let second = power.checked_sub(first)?;
    Some(whole * power_of_two(first)? * power_of_two(second)?)
}

/// Returns 2 to the power `power`, or `None` outside the normal range of 64-bit floats.
fn power_of_two(power: i32) -> Option<f64> {
    if !(-1022..=1023).contains(&power) {
        return None;
    }
    let biased = u64::try_from(power.checked_add(1023)?).ok()?;
    Some(f64::from_bits(biased.checked_shl(52)?))
}

impl FloatValue {
    /// Returns whether the number is NaN.
    pub fn is_nan(&self) -> bool {
        match self {
            FloatValue::Single(value) => value.is_nan(),
            FloatValue::Double(value) => value.is_nan(),
            FloatValue::FewerBitsThanDouble { .. }
            | FloatValue::MoreBitsThanDouble { .. }
            | FloatValue::OutOfDoubleRange { .. } => false,
        }
    }

    /// Returns the nearest 64-bit float, or `None` if the number is outside the range of 64-bit
    /// floats.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            FloatValue::Single(value) => Some(value.into()),
            FloatValue::Double(value)
            | FloatValue::FewerBitsThanDouble { value, .. }
            | FloatValue::MoreBitsThanDouble { value, .. } => Some(value),
            FloatValue::OutOfDoubleRange { .. } => None,
        }
    }

    /// Returns whether the number's text is also a number in JSON.
    pub(crate) fn is_json_number(&self) -> bool {
        match self {
            FloatValue::Single(value) => value.is_finite(),
            FloatValue::Double(value) => value.is_finite(),
            FloatValue::FewerBitsThanDouble { .. } | FloatValue::MoreBitsThanDouble { .. } => true,
            FloatValue::OutOfDoubleRange { .. } => false,
        }
    }

    /// Appends the number's text.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match *self {
            FloatValue::Single(value) => write_shortest(out, value, value.into(), 1e6),
            FloatValue::Double(value) => write_shortest(out, value, value, 1e16),
            FloatValue::FewerBitsThanDouble {
                value,
                tolerance_towards_zero: below,
                tolerance_from_zero: above,
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
            FloatValue::MoreBitsThanDouble {
                value,
                mantissa,
                exponent,
            } => write_extended_precision(out, value, mantissa, exponent),
            FloatValue::OutOfDoubleRange {
                negative,
                mantissa,
                exponent,
            } => write_hexadecimal(out, negative, mantissa, exponent),
        }
    }
}

/// Returns the number with the fewest decimal digits that is parsed as `value`: nearer to zero by
/// less than `below`, or farther from zero by less than `above`.
fn fewest_digits(value: f64, below: f64, above: f64) -> f64 {
    for digits in 0..usize::try_from(f64::DIGITS).unwrap_or(0) {
        let mut buffer = [0; 32];
        let text = format_ascii(&mut buffer, format_args!("{value:.digits$e}"));
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

/// Returns whether a number with the absolute value `size` is written without an exponent. Numbers
/// from `exponent_from` on are written with one.
fn is_written_without_exponent(size: f64, exponent_from: f64) -> bool {
    size == 0.0 || (1e-4..exponent_from).contains(&size)
}

/// Returns the text length of a finite number without an exponent. Returns `None` for other
/// numbers.
pub(super) fn length_without_exponent(
    number: impl zmij::Float,
    value: f64,
    exponent_from: f64,
) -> Option<usize> {
    let is_plain = is_written_without_exponent(value.abs(), exponent_from);
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
    if is_written_without_exponent(size, exponent_from) {
        return out.extend_from_slice(text.as_bytes());
    }
    match text.split_once('e') {
        Some((digits, exponent)) => write_with_exponent(out, digits, exponent),
        None => {
            let mut buffer = [0; 32];
            let text = format_ascii(&mut buffer, format_args!("{number:e}"));
            let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
            write_with_exponent(out, digits, exponent);
        }
    }
}

/// Appends `mantissa * 2^exponent`, whose nearest double is `value`, in its shortest digits.
fn write_extended_precision(out: &mut Vec<u8>, value: f64, mantissa: u128, exponent: i32) {
    const EXPONENT_FROM: i32 = 16;
    let mut buffer = [0; 32];
    let guess = format_ascii(&mut buffer, format_args!("{value:e}"));
    let guess = guess
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok());
    let (digits, power) = shortest::shortest_digits(mantissa, exponent, guess.unwrap_or(0));
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let (first, others) = digits.split_at(1);
    match usize::try_from(power) {
        Ok(whole) if power < EXPONENT_FROM => {
            let (before, after) = others.split_at(whole.min(others.len()));
            out.extend_from_slice(first);
            out.extend_from_slice(before);
            out.extend(iter::repeat_n(b'0', whole.minus_or_zero(before.len())));
            out.push(b'.');
            out.extend_from_slice(if after.is_empty() { b"0" } else { after });
        }
        Err(_) if power >= -4 => {
            let zeros = power.unsigned_abs().minus_or_zero(1);
            out.extend_from_slice(b"0.");
            out.extend(iter::repeat_n(b'0', usize::try_from(zeros).unwrap_or(0)));
            out.extend_from_slice(&digits);
        }
        _ => {
            out.extend_from_slice(first);
            if !others.is_empty() {
                out.push(b'.');
                out.extend_from_slice(others);
            }
            let sign = if power < 0 { '-' } else { '+' };
            append_formatted(out, format_args!("e{sign}{:02}", power.unsigned_abs()));
        }
    }
}

/// Appends a number with an exponent in Python's notation: a sign and at least two digits.
fn write_with_exponent(out: &mut Vec<u8>, digits: &str, exponent: &str) {
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    append_formatted(out, format_args!("{digits}e{sign}{exponent:0>2}"));
}

/// Appends `mantissa * 2^exponent` in C's notation, as `printf("%a")` does.
fn write_hexadecimal(out: &mut Vec<u8>, negative: bool, mantissa: u128, exponent: i32) {
    let zeros = mantissa.leading_zeros();
    let sign = if negative { "-" } else { "" };
    append_formatted(out, format_args!("{sign}0x1"));
    let mut fraction = mantissa.checked_shl(zeros.plus_one()).unwrap_or(0);
    if fraction != 0 {
        out.push(b'.');
    }
    while fraction != 0 {
        append_formatted(out, format_args!("{:x}", bit_range(fraction, 124, 4)));
        fraction = fraction.checked_shl(4).unwrap_or(0);
    }
    // The sum of two 32-bit numbers fits in 64 bits.
    let power = i64::from(exponent).wrapping_add_unsigned(127_u32.minus_or_zero(zeros).into());
    append_formatted(out, format_args!("p{power:+}"));
}

/// Appends formatted text. Writing to memory cannot fail.
pub fn append_formatted(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    let _infallible: io::Result<()> = out.write_fmt(text);
}

/// Formats ASCII text into `buffer`, which is on the stack, and returns the text.
fn format_ascii<'a>(buffer: &'a mut [u8; 32], text: fmt::Arguments<'_>) -> &'a str {
    let mut cursor = io::Cursor::new(buffer.as_mut_slice());
    let fits = cursor.write_fmt(text).is_ok();
    let length = usize::try_from(cursor.position()).unwrap_or(0);
    let written = buffer.get(..length).filter(|_| fits).unwrap_or_default();
    std::str::from_utf8(written).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests;

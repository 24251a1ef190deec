//! The types of plain scalars, by the rules of YAML 1.1 as implemented in PyYAML. The reference
//! library uses PyYAML, so its deviations are common practice: `-.5` is text, and an exponent needs
//! a sign.

use std::borrow::Cow;

use crate::asdf::yaml::decimal::Decimal;
use crate::limits;

/// The types that YAML defines for scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CoreTag {
    /// The null value.
    Null,
    /// A boolean.
    Bool,
    /// An integer in base 2, 8, 10, 16 or 60.
    Int,
    /// A number with a decimal point.
    Float,
    /// A date, or a date and a time.
    Timestamp,
    /// `<<`, a merge key.
    Merge,
    /// `=`, the key of the default value of a mapping.
    Value,
    /// Bytes in Base64.
    Binary,
    /// Text.
    Str,
}

impl CoreTag {
    /// Returns the type that a resolved tag denotes, or `None` for a custom tag.
    pub(crate) fn from_tag(tag: &str) -> Option<Self> {
        Some(match tag.strip_prefix("tag:yaml.org,2002:")? {
            "null" => CoreTag::Null,
            "bool" => CoreTag::Bool,
            "int" => CoreTag::Int,
            "float" => CoreTag::Float,
            "timestamp" => CoreTag::Timestamp,
            "merge" => CoreTag::Merge,
            "value" => CoreTag::Value,
            "binary" => CoreTag::Binary,
            "str" => CoreTag::Str,
            _ => return None,
        })
    }
}

/// Returns the type of a scalar without quotes and tag. A scalar that is too long for a number or a
/// date is text.
pub(crate) fn plain_scalar_tag(text: &str) -> CoreTag {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => CoreTag::Null,
        "<<" => CoreTag::Merge,
        "=" => CoreTag::Value,
        _ if text.len() > limits::NUMBER_TEXT => CoreTag::Str,
        _ if boolean(text).is_some() => CoreTag::Bool,
        _ if is_int(text) => CoreTag::Int,
        _ if is_float(text) => CoreTag::Float,
        _ if is_timestamp(text) => CoreTag::Timestamp,
        _ => CoreTag::Str,
    }
}

/// The NaN of the reference library for `.nan`. It is the result of dividing infinity by infinity
/// on most machines, with the sign set.
const NAN: f64 = f64::from_bits(0xfff8_0000_0000_0000);

/// Returns the value of a scalar of type `Bool`, or `None` if the text is not a boolean.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Returns the value of a scalar of type `Int`. Returns `None` if the text is not an integer or is
/// too long, or if the value exceeds 128 bits.
pub(crate) fn integer(text: &str) -> Option<i128> {
    let plain = without_underscores(text)?;
    let (negative, digits) = split_sign(&plain);
    let value = if digits == "0" {
        0
    } else if let Some(binary) = digits.strip_prefix("0b") {
        i128::from_str_radix(binary, 2).ok()?
    } else if let Some(hexadecimal) = digits.strip_prefix("0x") {
        i128::from_str_radix(hexadecimal, 16).ok()?
    } else if let Some(octal) = digits.strip_prefix('0') {
        i128::from_str_radix(octal, 8).ok()?
    } else {
        digits.split(':').try_fold(0_i128, |value, part| {
            value.checked_mul(60)?.checked_add(part.parse().ok()?)
        })?
    };
    if negative {
        value.checked_neg()
    } else {
        Some(value)
    }
}

/// Returns the value of a scalar of type `Int`, of any size, in decimal digits. Returns `None` if
/// the text is not an integer, or if the text or its value is too long.
pub(crate) fn integer_as_decimal(text: &str) -> Option<String> {
    if let Some(value) = integer(text) {
        return Some(value.to_string());
    }
    let plain = without_underscores(text)?;
    let (negative, digits) = split_sign(&plain);
    let number = if let Some(binary) = digits.strip_prefix("0b") {
        Decimal::from_digits(binary, 2)?
    } else if let Some(hexadecimal) = digits.strip_prefix("0x") {
        Decimal::from_digits(hexadecimal, 16)?
    } else if let Some(octal) = digits.strip_prefix('0') {
        Decimal::from_digits(octal, 8)?
    } else {
        let (first, sixtieths) = digits.split_once(':').unwrap_or((digits, ""));
        let mut number = Decimal::from_digits(first, 10)?;
        for part in sixtieths.split(':').filter(|_| !sixtieths.is_empty()) {
            number.multiply_and_add(60, part.parse().ok()?);
        }
        number
    };
    let sign = if negative { "-" } else { "" };
    let text = format!("{sign}{}", number.text());
    (text.len() <= limits::NUMBER_TEXT).then_some(text)
}

/// Returns the value of a scalar of type `Float`, or `None` if the text is not a number or is too
/// long.
pub(crate) fn float(text: &str) -> Option<f64> {
    let plain = without_underscores(text)?.to_ascii_lowercase();
    let (negative, digits) = split_sign(&plain);
    let value = match digits {
        ".inf" => f64::INFINITY,
        ".nan" => NAN,
        _ => parse_sexagesimal(digits)?,
    };
    Some(if negative { -value } else { value })
}

/// Parses a number in base 10 or 60. The base-60 parts are added from the last to the first, as in
/// the reference library.
fn parse_sexagesimal(digits: &str) -> Option<f64> {
    let mut parts = digits.rsplit(':');
    let sum = parts.try_fold((0.0, 1.0_f64), |(value, base), part| {
        let short = part.parse::<u8>().map(f64::from);
        let part: f64 = short.or_else(|_| part.parse()).ok()?;
        let is_known = base.is_finite();
        is_known.then_some((value + part * base, base * 60.0))
    });
    sum.map(|(value, _)| value)
}

/// Returns the text of a number without underscores, or `None` if it is too long.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    (text.len() <= limits::NUMBER_TEXT).then(|| {
        if text.contains('_') {
            Cow::Owned(text.chars().filter(|&character| character != '_').collect())
        } else {
            Cow::Borrowed(text)
        }
    })
}

/// Returns whether `text` begins with a minus, and the text after the sign.
fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Returns whether the text is not empty and `allowed` accepts all its bytes.
fn has_only(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

fn is_digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

/// Returns whether the text matches `[0-9][0-9_]*`.
fn is_decimal(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && has_only(text, is_digit_or_underscore)
}

/// Returns whether the text, which follows a colon, matches `[0-5]?[0-9](:[0-5]?[0-9])*`.
fn is_sexagesimal(text: &str) -> bool {
    text.split(':').all(|part| match part.as_bytes() {
        [unit] => unit.is_ascii_digit(),
        [ten, unit] => (b'0'..=b'5').contains(ten) && unit.is_ascii_digit(),
        _ => false,
    })
}

fn is_int(text: &str) -> bool {
    let (_, digits) = split_sign(text);
    if let Some(binary) = digits.strip_prefix("0b") {
        return has_only(binary, |byte| matches!(byte, b'0' | b'1' | b'_'));
    }
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        return has_only(hexadecimal, |byte| byte.is_ascii_hexdigit() || byte == b'_');
    }
    if let Some(octal) = digits.strip_prefix('0') {
        return octal.is_empty() || has_only(octal, |byte| matches!(byte, b'0'..=b'7' | b'_'));
    }
    match digits.split_once(':') {
        Some((first, rest)) => is_decimal(first) && is_sexagesimal(rest),
        None => is_decimal(digits),
    }
}

fn is_float(text: &str) -> bool {
    let (_, digits) = split_sign(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let Some((whole, rest)) = digits.split_once('.') else {
        return false;
    };
    if let Some((first, sixtieths)) = whole.split_once(':') {
        let fraction = rest.bytes().all(is_digit_or_underscore);
        return is_decimal(first) && is_sexagesimal(sixtieths) && fraction;
    }
    let (fraction, exponent) = match rest.find(['e', 'E']) {
        Some(place) => rest.split_at(place),
        None => (rest, ""),
    };
    let exponent = exponent.is_empty()
        || exponent
            .get(1..)
            .and_then(|signed| signed.strip_prefix(['-', '+']))
            .is_some_and(|digits| has_only(digits, |byte| byte.is_ascii_digit()));
    let number = if whole.is_empty() {
        text.starts_with('.') && is_decimal(fraction)
    } else {
        is_decimal(whole) && fraction.bytes().all(is_digit_or_underscore)
    };
    number && exponent
}

/// Skips at most `most` digits at the start of `text` and returns the rest. Returns `None` if
/// `text` starts with fewer than `least` digits.
fn skip_digits(text: &str, least: usize, most: usize) -> Option<&str> {
    let count = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    (count >= least).then(|| text.get(count..)).flatten()
}

fn is_timestamp(text: &str) -> bool {
    skip_date(text, 2) == Some("") || skip_date_and_time(text).is_some_and(is_zone)
}

/// Skips a date `YYYY-MM-DD` at the start of `text`, with at least `least` digits for month and
/// day. Returns the text after the date, or `None` if `text` does not start with one.
fn skip_date(text: &str, least: usize) -> Option<&str> {
    let month = skip_digits(text, 4, 4)?.strip_prefix('-')?;
    let day = skip_digits(month, least, 2)?.strip_prefix('-')?;
    skip_digits(day, least, 2)
}

/// Skips a date, `T` or blanks, a time of day and its fraction at the start of `text`. Returns the
/// text after them, or `None` if `text` does not start with them.
fn skip_date_and_time(text: &str) -> Option<&str> {
    let rest = skip_date(text, 1)?;
    let time = match rest.strip_prefix(['T', 't']) {
        Some(time) => time,
        None => {
            let time = rest.trim_start_matches([' ', '\t']);
            (time.len() < rest.len()).then_some(time)?
        }
    };
    let minutes = skip_digits(time, 1, 2)?.strip_prefix(':')?;
    let seconds = skip_digits(minutes, 2, 2)?.strip_prefix(':')?;
    let rest = skip_digits(seconds, 2, 2)?;
    match rest.strip_prefix('.') {
        Some(fraction) => skip_digits(fraction, 0, usize::MAX),
        None => Some(rest),
    }
}

/// Returns whether the text is a time zone: empty, or `Z`, `+H`, `+HH` or `+HH:MM` with any sign,
/// after optional blanks.
fn is_zone(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let zone = text.trim_start_matches([' ', '\t']);
    if zone == "Z" {
        return true;
    }
    let rest = zone
        .strip_prefix(['-', '+'])
        .and_then(|hours| skip_digits(hours, 1, 2));
    match rest {
        Some("") => true,
        Some(rest) => rest.strip_prefix(':').and_then(|m| skip_digits(m, 2, 2)) == Some(""),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: the types of PyYAML 6.
    #[test]
    fn plain_scalars_have_the_types_of_yaml_1_1() {
        let cases = [
            ("yes", CoreTag::Bool),
            ("y", CoreTag::Str),
            ("OFF", CoreTag::Bool),
            ("~", CoreTag::Null),
            ("0b101", CoreTag::Int),
            ("017", CoreTag::Int),
            ("0o17", CoreTag::Str),
            ("08", CoreTag::Str),
            ("0x1F", CoreTag::Int),
            ("1_000", CoreTag::Int),
            ("190:20:30", CoreTag::Int),
            ("1:60", CoreTag::Str),
            ("190:20:30.15", CoreTag::Float),
            ("1e5", CoreTag::Str),
            ("1.0e5", CoreTag::Str),
            ("1.0e+5", CoreTag::Float),
            (".5", CoreTag::Float),
            ("-.5", CoreTag::Str),
            ("-.INF", CoreTag::Float),
            ("nan", CoreTag::Str),
            ("1.", CoreTag::Float),
            (".", CoreTag::Str),
            ("2001-12-14", CoreTag::Timestamp),
            ("2001-1-1", CoreTag::Str),
            ("2001-12-14t21:59:43.10-05:00", CoreTag::Timestamp),
            ("2001-12-14 21:59:43 Z", CoreTag::Timestamp),
            ("2001-12-14 21:59:43 ", CoreTag::Str),
        ];
        for (text, tag) in cases {
            assert_eq!(plain_scalar_tag(text), tag, "{text}");
        }
    }

    #[test]
    fn numbers_have_the_values_of_yaml_1_1() {
        assert_eq!(integer("190:20:30"), Some(685_230));
        assert_eq!(integer("-017"), Some(-15));
        assert_eq!(integer("+0x1_F"), Some(31));
        assert_eq!(float("190:20:30.15"), Some(685_230.15));
        assert_eq!(float("-317:52:12.1789995"), Some(-1_144_332.178_999_499_9));
        assert_eq!(float("-.INF"), Some(f64::NEG_INFINITY));
        assert_eq!(float("1_0.5e-1"), Some(1.05));
    }

    /// Expected: Python's values of `2**200`, `10**60` and 60 to the power of 30.
    #[test]
    fn integers_of_any_size_are_converted() {
        let of = |text: &str| integer_as_decimal(text).unwrap();
        assert_eq!(of("-0x1_F"), "-31");
        let power = "1606938044258990275541962092341162602522202993782792835301376";
        assert_eq!(of(&format!("0x1{}", "0".repeat(50))), power);
        assert_eq!(of(&format!("-0b1{}", "0".repeat(200))), format!("-{power}"));
        assert_eq!(of(&format!("04{}", "0".repeat(66))), power);
        assert_eq!(
            of(&format!("+1{}", "0_".repeat(60))),
            format!("1{}", "0".repeat(60))
        );
        let power = "221073919720733357899776000000000000000000000000000000";
        assert_eq!(of(&format!("1{}", ":0".repeat(30))), power);
        assert_eq!(integer_as_decimal("1x"), None);
        let most = format!("0x{}", "f".repeat(limits::NUMBER_TEXT - 2));
        assert_eq!(integer_as_decimal(&most), None);
    }

    #[test]
    fn too_long_text_is_not_a_number() {
        let digits = |count| "0".repeat(count);
        let (most, more) = (digits(limits::NUMBER_TEXT), digits(limits::NUMBER_TEXT + 1));
        assert_eq!(
            (plain_scalar_tag(&most), integer(&most)),
            (CoreTag::Int, Some(0))
        );
        assert_eq!(
            (plain_scalar_tag(&more), integer(&more)),
            (CoreTag::Str, None)
        );
        assert_eq!(float(&more), None);
    }
}

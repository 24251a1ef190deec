//! The two syntaxes of an NDL description, on one line: YAML in flow style, and JSON.
//!
//! Both contain the same values, except for numbers that JSON cannot express: NaN and the
//! infinities are `null` in JSON.

use std::fmt::Write;

use crate::model::text::json_text;

/// The syntax of an NDL description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// YAML that parsers of versions 1.1 and 1.2 read in the same way.
    #[default]
    Yaml,
    /// JSON.
    Json,
}

/// A writer of one value in YAML's flow style or in JSON. Brackets, braces, commas and whole
/// numbers are the same in both syntaxes.
#[derive(Debug, Default)]
pub struct FlowWriter {
    syntax: Syntax,
    text: String,
}

impl FlowWriter {
    /// Creates a writer that has not written anything yet.
    pub fn new(syntax: Syntax) -> Self {
        let text = String::new();
        FlowWriter { syntax, text }
    }

    /// Returns the syntax in which the writer writes.
    pub fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// Returns the number of bytes written so far.
    pub fn length(&self) -> usize {
        self.text.len()
    }

    /// Returns the written text.
    pub fn finish(self) -> String {
        self.text
    }

    /// Appends text that is the same in both syntaxes.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends formatted text like [`push`](Self::push).
    pub fn append(&mut self, text: std::fmt::Arguments<'_>) {
        append(&mut self.text, text);
    }

    /// Appends `text` as a string. JSON always quotes it, and YAML only if a parser might read
    /// another type. Bytes that are not UTF-8 become `\udcXX`, as in Python's `surrogateescape`.
    pub fn write_text(&mut self, text: &[u8]) {
        match self.syntax {
            Syntax::Yaml => write_yaml_text(text, &mut self.text),
            Syntax::Json => self.text.push_str(&json_text(text)),
        }
    }

    /// Appends a key of a map and its colon.
    pub fn write_key(&mut self, key: &[u8]) {
        if self.syntax == Syntax::Yaml && is_long_key(key) {
            self.text.push_str("? ");
            self.write_text(key);
            self.text.push(' ');
        } else {
            self.write_text(key);
        }
        self.text.push_str(": ");
    }

    /// Appends a map with the key `key`. `value` appends the value of the key, and may append
    /// further keys with [`next_key`](Self::next_key).
    pub fn write_map(&mut self, key: &[u8], value: impl FnOnce(&mut Self)) {
        self.text.push('{');
        self.write_key(key);
        value(self);
        self.text.push('}');
    }

    /// Appends a further key of the current map, after a comma.
    pub fn next_key(&mut self, key: &[u8]) {
        self.text.push_str(", ");
        self.write_key(key);
    }

    /// Appends a list. `item` appends each of `items`.
    pub fn write_list<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        mut item: impl FnMut(T, &mut Self),
    ) {
        self.text.push('[');
        for (index, one) in items.enumerate() {
            self.text.push_str(if index > 0 { ", " } else { "" });
            item(one, self);
        }
        self.text.push(']');
    }

    /// Appends a number in Python's or C's notation. Text that is not a decimal number is appended
    /// as text.
    pub fn write_number(&mut self, number: &[u8]) {
        let plain = std::str::from_utf8(number).unwrap_or_default();
        match (self.syntax, plain) {
            (Syntax::Json, "nan" | "inf" | "-inf") => self.push("null"),
            (Syntax::Yaml, "nan") => self.push(".nan"),
            (Syntax::Yaml, "inf") => self.push(".inf"),
            (Syntax::Yaml, "-inf") => self.push("-.inf"),
            _ if !is_decimal(plain) => self.write_text(number),
            (Syntax::Json, _) => self.push(plain),
            (Syntax::Yaml, _) => self.push(&yaml_number(plain)),
        }
    }
}

/// Returns `text` as a string in `syntax`, quoted if necessary.
pub fn quoted_text(syntax: Syntax, text: &[u8]) -> String {
    let mut flow = FlowWriter::new(syntax);
    flow.write_text(text);
    flow.finish()
}

/// Returns whether YAML requires the explicit key marker `?`. An implicit key has at most 1024
/// characters (YAML 1.2, 7.4.2), and an escape takes up to six.
pub fn is_long_key(key: &[u8]) -> bool {
    const IMPLICIT: usize = 1024 / 6;
    key.len() > IMPLICIT
}

/// Returns a decimal number in the form that every YAML parser recognizes as a number: with a point
/// before an exponent and a sign after the `e`.
fn yaml_number(number: &str) -> String {
    let Some((digits, exponent)) = number.split_once(['e', 'E']) else {
        return number.to_owned();
    };
    let point = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) {
        ""
    } else {
        "+"
    };
    format!("{digits}{point}e{sign}{exponent}")
}

/// Returns whether the text is a decimal number without leading zeros, whose meaning differs
/// between parsers.
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && digits(fraction)
        && digits(exponent)
        && (whole == "0" || !whole.starts_with('0'))
}

/// Appends text as a YAML scalar on one line that parsers of YAML 1.1 and 1.2 read as this text.
/// The scalar is plain if no parser can read a number, boolean, null, date or syntax in it.
/// Otherwise it is in double quotes.
fn write_yaml_text(text: &[u8], out: &mut String) {
    match std::str::from_utf8(text) {
        Ok(text) if is_plain(text) => out.push_str(text),
        _ => write_quoted(text, out),
    }
}

/// Returns whether every YAML parser reads `text` as text if it is a plain scalar, without quotes.
/// Conservative: returns false for many texts that would be safe.
fn is_plain(text: &str) -> bool {
    const MEANINGFUL: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    const LONGEST: usize = 128;
    let ordinary = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '-' | ' ');
    text.len() <= LONGEST
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/'))
        && text.chars().all(ordinary)
        && !text.ends_with(' ')
        && !MEANINGFUL
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word))
}

fn write_quoted(text: &[u8], out: &mut String) {
    for c in json_text(text).chars() {
        match c {
            // A YAML stream may not contain control characters or these characters, and some of
            // them are line breaks.
            '\u{80}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                append(out, format_args!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
}

/// Appends formatted text. Writing to memory cannot fail.
fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible: std::fmt::Result = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &[u8]) -> String {
        quoted_text(Syntax::Yaml, text)
    }

    #[test]
    fn yaml_reads_text_as_text() {
        assert_eq!(yaml(b"/run 1/temp.x"), "/run 1/temp.x");
        for text in [
            "",
            "1",
            "No",
            "~",
            "NULL",
            "<<",
            "a, b",
            "x ",
            "2008-12-31",
            "é",
        ] {
            assert_eq!(yaml(text.as_bytes()), format!("\"{text}\""));
        }
        assert_eq!(yaml(b"a\"\\\n\x07\xe9"), r#""a\"\\\n\u0007\udce9""#);
        // line breaks in YAML 1.1, or characters that a stream may not contain
        assert_eq!(yaml("\r\u{2028}\u{feff}".as_bytes()), r#""\r\u2028\ufeff""#);
    }

    /// Expected: the same number when PyYAML reads it.
    #[test]
    fn numbers_are_numbers_to_every_reader() {
        let number = |number: &[u8]| {
            [Syntax::Yaml, Syntax::Json].map(|syntax| {
                let mut flow = FlowWriter::new(syntax);
                flow.write_number(number);
                flow.finish()
            })
        };
        assert_eq!(number(b"1e+300"), ["1.0e+300", "1e+300"]);
        assert_eq!(number(b"-1.5e-07"), ["-1.5e-07"; 2]);
        assert_eq!(number(b"2E5"), ["2.0e+5", "2E5"]);
        assert_eq!(number(b"-inf"), ["-.inf", "null"]);
        assert_eq!(number(b"-12"), ["-12"; 2]);
        assert_eq!(number(b"0x1f"), ["\"0x1f\""; 2]);
        assert_eq!(number(b"010"), ["\"010\""; 2]);
    }

    #[test]
    fn a_long_key_is_marked_in_yaml() {
        let key = |length| {
            [Syntax::Yaml, Syntax::Json].map(|syntax| {
                let mut flow = FlowWriter::new(syntax);
                flow.write_key(&vec![b'x'; length]);
                flow.finish().replace(&"x".repeat(length), "x")
            })
        };
        assert_eq!(key(9), ["x: ", "\"x\": "]);
        assert_eq!(key(200), ["? \"x\" : ", "\"x\": "]);
    }
}

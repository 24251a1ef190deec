//! Lines of a YAML document in block form.

use crate::model::ndl::write_yaml_text;

/// Appends lines, indented.
pub(super) struct Lines<'a> {
    out: &'a mut Vec<u8>,
    line: String,
    depth: usize,
}

impl<'a> Lines<'a> {
    /// Goes on behind `out`, below so many keys.
    pub(super) fn new(out: &'a mut Vec<u8>, depth: usize) -> Self {
        Lines {
            out,
            line: String::new(),
            depth,
        }
    }

    /// How many keys the next line stands below.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Bytes that there are, with those that were there before.
    pub(super) fn length(&self) -> usize {
        self.out.len()
    }

    /// A line of its own.
    pub(super) fn line(&mut self, text: &str) {
        self.indent();
        self.line.push_str(text);
        self.end();
    }

    /// A comment; `text` stands on one line.
    pub(super) fn comment(&mut self, text: &str) {
        self.line(&format!("# {text}"));
    }

    /// A key and its value, which is YAML in flow form.
    pub(super) fn pair(&mut self, key: &[u8], value: &str) {
        self.key(key);
        self.line.push(' ');
        self.line.push_str(value);
        self.end();
    }

    /// A key; what `inside` writes stands below it.
    pub(super) fn map(&mut self, key: &[u8], inside: impl FnOnce(&mut Self)) {
        self.open(key);
        inside(self);
        self.close();
    }

    /// A key; what follows until [`Lines::close`] stands below it.
    pub(super) fn open(&mut self, key: &[u8]) {
        self.key(key);
        self.end();
        self.depth += 1;
    }

    /// Ends what stands below the last key.
    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn key(&mut self, key: &[u8]) {
        self.indent();
        // YAML 1.2, 7.4.2: an implicit key has at most 1024 characters; an escape has up to six.
        const IMPLICIT: usize = 1024 / 6;
        if key.len() > IMPLICIT {
            self.line.push_str("? ");
            write_yaml_text(key, &mut self.line);
            self.end();
            self.indent();
        } else {
            write_yaml_text(key, &mut self.line);
        }
        self.line.push(':');
    }

    fn indent(&mut self) {
        let blanks = std::iter::repeat_n(' ', self.depth * 2);
        self.line.extend(blanks);
    }

    fn end(&mut self) {
        self.line.push('\n');
        self.out.extend_from_slice(self.line.as_bytes());
        self.line.clear();
    }
}

/// Text as YAML in flow form.
pub(super) fn text(text: &[u8]) -> String {
    let mut out = String::new();
    write_yaml_text(text, &mut out);
    out
}

/// A number's text, as Python and C write it, as every reader of YAML reads it: with a point before
/// an exponent, `.nan`, `.inf`. What is no decimal number becomes text.
pub(super) fn number(number: &[u8]) -> String {
    let Ok(plain) = std::str::from_utf8(number) else {
        return text(number);
    };
    match plain {
        "nan" => return ".nan".to_owned(),
        "inf" => return ".inf".to_owned(),
        "-inf" => return "-.inf".to_owned(),
        _ => {}
    }
    if !is_decimal(plain) {
        return text(number);
    }
    match plain.split_once(['e', 'E']) {
        Some((digits, exponent)) => {
            let point = if digits.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with(['+', '-']) {
                ""
            } else {
                "+"
            };
            format!("{digits}{point}e{sign}{exponent}")
        }
        None => plain.to_owned(),
    }
}

/// Whether the text is a number without leading zeros, which mean other things to other readers.
pub(super) fn is_decimal(text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: what PyYAML reads as the same number.
    #[test]
    fn numbers_are_numbers_to_every_reader() {
        assert_eq!(number(b"1e+300"), "1.0e+300");
        assert_eq!(number(b"-1.5e-07"), "-1.5e-07");
        assert_eq!(number(b"2E5"), "2.0e+5");
        assert_eq!(number(b"-inf"), "-.inf");
        assert_eq!(number(b"-12"), "-12");
        assert_eq!(number(b"0x1f"), "\"0x1f\"");
        assert_eq!(number(b"010"), "\"010\"");
    }

    #[test]
    fn a_long_key_is_said_to_be_one() {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out, 0);
        lines.map(b"/a b", |lines| lines.pair(&[b'x'; 200], "[1]"));
        let expected = format!("/a b:\n  ? \"{0}\"\n  : [1]\n", "x".repeat(200));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

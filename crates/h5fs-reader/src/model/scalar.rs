//! Scalars of an ASDF tree: their text, and the value of that text in YAML.

use serde::{Deserialize, Serialize};

use crate::model::number::{FloatValue, append_formatted};
use crate::model::text::write_json_text;

/// A scalar of an ASDF tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    /// The text after unquoting.
    pub text: String,
    /// The value that the text has in YAML.
    pub value: ScalarValue,
}

/// The value of a scalar, by the rules of YAML 1.1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ScalarValue {
    /// The null value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of any size in decimal digits, with a leading minus if negative.
    Int(String),
    /// Any other real number.
    Float(f64),
    /// The real and the imaginary part of a complex number.
    Complex(f64, f64),
    /// A date, or a date and a time, given by the text.
    Timestamp,
    /// Bytes. The text is their base64 encoding.
    Binary,
    /// Text, and any scalar with a custom tag.
    String,
}

impl Scalar {
    /// Returns the content of the scalar's file: the text and a line feed. The file is empty for
    /// null.
    pub fn file_text(&self) -> Vec<u8> {
        match self.value {
            ScalarValue::Null => Vec::new(),
            _ => [self.text.as_bytes(), b"\n"].concat(),
        }
    }

    /// Appends the value as JSON, with numbers as in an array. NaN is `null`, infinities are
    /// `"inf"` and `"-inf"`, and a complex number is `{"r": 1.0, "i": 2.0}`. A date is its text.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.value {
            ScalarValue::Bool(value) => append_formatted(out, format_args!("{value}")),
            ScalarValue::Int(digits) => out.extend_from_slice(digits.as_bytes()),
            ScalarValue::Float(value) => write_real(*value, out),
            ScalarValue::Complex(real, imaginary) => {
                out.extend_from_slice(b"{\"r\": ");
                write_real(*real, out);
                out.extend_from_slice(b", \"i\": ");
                write_real(*imaginary, out);
                out.push(b'}');
            }
            ScalarValue::Null => out.extend_from_slice(b"null"),
            ScalarValue::Timestamp | ScalarValue::Binary | ScalarValue::String => {
                write_json_text(self.text.as_bytes(), out);
            }
        }
    }
}

/// Appends a number as JSON.
fn write_real(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"null");
    }
    let quote: &[u8] = if value.is_finite() { b"" } else { b"\"" };
    out.extend_from_slice(quote);
    FloatValue::Double(value).write_text(out);
    out.extend_from_slice(quote);
}

impl ScalarValue {
    /// Returns the name of the value's type in YAML, `string` for text.
    pub fn type_name(&self) -> &'static str {
        match self {
            ScalarValue::Null => "null",
            ScalarValue::Bool(_) => "bool",
            ScalarValue::Int(_) => "int",
            ScalarValue::Float(_) => "float",
            ScalarValue::Complex(..) => "complex",
            ScalarValue::Timestamp => "timestamp",
            ScalarValue::Binary => "binary",
            ScalarValue::String => "string",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: Python's `json.dumps` of what PyYAML reads, except for NaN and infinities.
    #[test]
    fn values_as_json() {
        let json = |text: &str, value| {
            let mut out = Vec::new();
            let text = text.to_owned();
            Scalar { text, value }.write_json(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(json("~", ScalarValue::Null), "null");
        assert_eq!(json("yes", ScalarValue::Bool(true)), "true");
        assert_eq!(json("0x10", ScalarValue::Int("16".to_owned())), "16");
        assert_eq!(json("1.0e+300", ScalarValue::Float(1e300)), "1e+300");
        let infinite = f64::NEG_INFINITY;
        assert_eq!(json("-.inf", ScalarValue::Float(infinite)), r#""-inf""#);
        assert_eq!(json(".nan", ScalarValue::Float(f64::NAN)), "null");
        let complex = json("1-infj", ScalarValue::Complex(1.0, infinite));
        assert_eq!(complex, r#"{"r": 1.0, "i": "-inf"}"#);
        assert_eq!(
            json("2001-12-14", ScalarValue::Timestamp),
            r#""2001-12-14""#
        );
        assert_eq!(json("say \"x\"\t", ScalarValue::String), r#""say \"x\"\t""#);
    }

    #[test]
    fn null_and_the_empty_string_have_different_files() {
        let file = |value| {
            let text = String::new();
            Scalar { text, value }.file_text()
        };
        assert_eq!(file(ScalarValue::Null), b"");
        assert_eq!(file(ScalarValue::String), b"\n");
    }
}

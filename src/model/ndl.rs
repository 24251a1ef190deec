//! A datatype in the Ndarray Data Language (0.6.1, "Datatype"), as YAML in flow form.
//!
//! The language has `string`, `int8` to `uint64`, `float32`, `float64`, `objref`, `regref`,
//! `opaque`, `enum`, `compound`, `vlen` and `array`. It describes values, so byte order, padding
//! and a string's length are not part of it. Types without a word of their own are written so:
//!
//! | datatype | NDL |
//! |---|---|
//! | complex | compound of `r` and `i` |
//! | ASDF boolean | enum of int8 with FALSE and TRUE, as h5py writes booleans |
//! | bit field of 1, 2, 4 or 8 bytes | unsigned integer of that size |
//! | integer of 1, 2, 4 or 8 bytes with padding bits | integer of that size, which holds them |
//! | enumeration over an integer of another size | enum without a base |
//! | region reference | regref of blocks: the selection's kind is each element's own |
//! | reference of HDF5 1.12 | objref: the kind of its target is each element's own |
//! | float16, bfloat16, VAX and extended floats | opaque of that size, tagged with the name |
//! | integers of other sizes, time | the same |
//! | compounds and enumerations without members | the same |

use std::fmt::Write;

use crate::model::Datatype;
use crate::model::datatype::{Bits, ByteOrder, Class, Float, Member, ReferenceKind};
use crate::model::number;

/// The value of NDL's `type` key, on one line.
pub fn ndl_type(datatype: &Datatype) -> String {
    let mut out = String::new();
    write_type(datatype, &mut out);
    out
}

fn write_type(datatype: &Datatype, out: &mut String) {
    let size = datatype.size;
    match &datatype.class {
        Class::Integer { signed, bits, .. } => match keyword(size, *signed) {
            Some(keyword) => out.push_str(keyword),
            None => write_opaque(size, &integer_name(*signed, *bits), out),
        },
        Class::Bitfield { bits, .. } => match keyword(size, false) {
            Some(keyword) => out.push_str(keyword),
            None => write_opaque(size, &format!("bitfield{}", bits.precision), out),
        },
        Class::Float(format) => match number::ieee_bytes(size, format) {
            Some(4) => out.push_str("float32"),
            Some(8) => out.push_str("float64"),
            _ => write_opaque(size, &float_name(size, format), out),
        },
        Class::Time { bits, .. } => write_opaque(size, &format!("time{}", bits.precision), out),
        Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_) => {
            out.push_str("string");
        }
        Class::Bool => out.push_str("{enum: {base: int8, members: {\"FALSE\": 0, \"TRUE\": 1}}}"),
        Class::Opaque { tag } => write_opaque_bytes(size, tag, out),
        Class::Reference(ReferenceKind::Object | ReferenceKind::Standard) => out.push_str("objref"),
        Class::Reference(ReferenceKind::Region) => out.push_str("{regref: {selection: block}}"),
        Class::Compound(members) => write_compound(size, members, out),
        Class::Enumeration { base, members } => write_enumeration(size, base, members, out),
        Class::Complex(base) => {
            let base = ndl_type(base);
            append(
                out,
                format_args!("{{compound: [{{r: {base}}}, {{i: {base}}}]}}"),
            );
        }
        Class::VariableLength(base) => {
            out.push_str("{vlen: {base: ");
            write_type(base, out);
            out.push_str("}}");
        }
        Class::Array { base, dims } => {
            out.push_str("{array: {base: ");
            write_type(base, out);
            append(out, format_args!(", shape: {dims:?}}}}}"));
        }
    }
}

/// The language's integers.
fn keyword(size: u32, signed: bool) -> Option<&'static str> {
    match (size, signed) {
        (1, true) => Some("int8"),
        (2, true) => Some("int16"),
        (4, true) => Some("int32"),
        (8, true) => Some("int64"),
        (1, false) => Some("uint8"),
        (2, false) => Some("uint16"),
        (4, false) => Some("uint32"),
        (8, false) => Some("uint64"),
        _ => None,
    }
}

fn integer_name(signed: bool, bits: Bits) -> String {
    let prefix = if signed { "" } else { "u" };
    format!("{prefix}int{}", bits.precision)
}

/// The name of a format that the language has no word for.
fn float_name(size: u32, format: &Float) -> String {
    let precision = format.bits.precision;
    let fields = (format.exponent_bits, format.mantissa_bits);
    let known = match (format.order == ByteOrder::Vax, fields, format.bias) {
        (true, (8, 23), 129) => "vax_f",
        (true, (8, 55), 129) => "vax_d",
        (true, (11, 52), 1025) => "vax_g",
        (false, (8, 7), 127) => "bfloat16",
        (false, (15, 64), 16383) => "float80",
        (false, (15, 112), 16383) => "float128",
        (false, (4, 3), 7) => "float8_e4m3",
        (false, (5, 2), 15) => "float8_e5m2",
        (false, ..) if number::ieee_bytes(size, format) == Some(2) => "float16",
        (_, (exponent, mantissa), _) => return format!("float{precision}_e{exponent}m{mantissa}"),
    };
    known.to_owned()
}

fn write_opaque(size: u32, tag: &str, out: &mut String) {
    write_opaque_bytes(size, tag.as_bytes(), out);
}

fn write_opaque_bytes(size: u32, tag: &[u8], out: &mut String) {
    append(out, format_args!("{{opaque: {{size: {size}"));
    if !tag.is_empty() {
        out.push_str(", tag: ");
        write_yaml_text(tag, out);
    }
    out.push_str("}}");
}

fn write_compound(size: u32, members: &[Member], out: &mut String) {
    if members.is_empty() {
        return write_opaque(size, "compound", out);
    }
    out.push_str("{compound: [");
    for (index, member) in members.iter().enumerate() {
        out.push_str(if index > 0 { ", {" } else { "{" });
        write_yaml_key(&member.name, out);
        out.push_str(": ");
        write_type(&member.datatype, out);
        out.push('}');
    }
    out.push_str("]}");
}

fn write_enumeration(size: u32, base: &Datatype, members: &[(Vec<u8>, Vec<u8>)], out: &mut String) {
    let Class::Integer {
        order,
        signed,
        bits,
    } = base.class
    else {
        return write_opaque(size, "enum", out);
    };
    let numbers = members
        .iter()
        .map(|(name, value)| Some((name, number::integer(value, order, signed, bits)?)))
        .collect::<Option<Vec<_>>>()
        .filter(|numbers| !numbers.is_empty());
    let Some(numbers) = numbers else {
        return write_opaque(size, "enum", out);
    };
    out.push_str("{enum: {");
    if let Some(keyword) = keyword(base.size, signed) {
        append(out, format_args!("base: {keyword}, "));
    }
    out.push_str("members: {");
    for (index, (name, number)) in numbers.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        write_yaml_key(name, out);
        append(out, format_args!(": {number}"));
    }
    out.push_str("}}}");
}

/// Appends text as a YAML key in flow form.
pub fn write_yaml_key(text: &[u8], out: &mut String) {
    // YAML 1.2, 7.4.2: an implicit key has at most 1024 characters; an escape has up to six.
    const IMPLICIT: usize = 1024 / 6;
    if text.len() > IMPLICIT {
        out.push_str("? ");
        write_yaml_text(text, out);
        out.push(' ');
    } else {
        write_yaml_text(text, out);
    }
}

/// Appends text as a YAML scalar on one line that readers of YAML 1.1 and 1.2 take for this text:
/// plain where no reader can see a number, boolean, null, date or syntax in it, otherwise in double
/// quotes. Bytes that are not UTF-8 become `\udcXX`, as Python's `surrogateescape` has it.
pub fn write_yaml_text(text: &[u8], out: &mut String) {
    match std::str::from_utf8(text) {
        Ok(text) if is_plain(text) => out.push_str(text),
        _ => write_quoted(text, out),
    }
}

/// Whether no reader sees anything but text. Says no to much that would do.
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
    out.push('"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                // No YAML stream holds control characters or these; some are line breaks in it.
                '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                    append(out, format_args!("\\u{:04x}", u32::from(c)));
                }
                c if c.is_control() => append(out, format_args!("\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            append(out, format_args!("\\udc{byte:02x}"));
        }
    }
    out.push('"');
}

/// Appends formatted text; memory does not refuse a write.
fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _infallible: std::fmt::Result = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::number::tests::format;
    use crate::model::value::tests::{int, member, type_of};

    #[test]
    fn types_of_the_language() {
        assert_eq!(ndl_type(&int(4)), "int32");
        let single = Datatype::ieee(4, ByteOrder::Big);
        assert_eq!(ndl_type(&single), "float32");
        let record = Class::Compound(vec![member("x", 0, single), member("no", 4, int(4))]);
        let record = type_of(8, record);
        let expected = "{compound: [{x: float32}, {\"no\": int32}]}";
        assert_eq!(ndl_type(&record), expected);
        let base = Box::new(record);
        let dims = vec![2, 3];
        let array = type_of(48, Class::Array { base, dims });
        let expected = format!("{{array: {{base: {expected}, shape: [2, 3]}}}}");
        assert_eq!(ndl_type(&array), expected);
        let members = vec![(b"FALSE".to_vec(), vec![0]), (b"a: b".to_vec(), vec![0xFF])];
        let base = Box::new(int(1));
        let boolean = type_of(1, Class::Enumeration { base, members });
        let expected = "{enum: {base: int8, members: {\"FALSE\": 0, \"a: b\": -1}}}";
        assert_eq!(ndl_type(&boolean), expected);
    }

    #[test]
    fn types_without_a_word() {
        let half = Datatype::ieee(2, ByteOrder::Little);
        assert_eq!(ndl_type(&half), "{opaque: {size: 2, tag: float16}}");
        let complex = type_of(4, Class::Complex(Box::new(half)));
        let part = "{opaque: {size: 2, tag: float16}}";
        let expected = format!("{{compound: [{{r: {part}}}, {{i: {part}}}]}}");
        assert_eq!(ndl_type(&complex), expected);
        assert_eq!(ndl_type(&int(3)), "{opaque: {size: 3, tag: int24}}");
        for (order, exponent_bits, mantissa_bits, bias, name) in [
            (ByteOrder::Vax, 8, 23, 129, "vax_f"),
            (ByteOrder::Vax, 8, 55, 129, "vax_d"),
            (ByteOrder::Vax, 11, 52, 1025, "vax_g"),
            (ByteOrder::Big, 15, 112, 16383, "float128"),
            (ByteOrder::Big, 7, 16, 63, "float24_e7m16"),
        ] {
            let float = format(order, exponent_bits, mantissa_bits, bias);
            let size = u32::from(float.bits.precision / 8);
            let expected = format!("{{opaque: {{size: {size}, tag: {name}}}}}");
            assert_eq!(ndl_type(&type_of(size, Class::Float(float))), expected);
        }
        let tag = b"15".to_vec();
        let expected = "{opaque: {size: 7, tag: \"15\"}}";
        assert_eq!(ndl_type(&type_of(7, Class::Opaque { tag })), expected);
    }

    #[test]
    fn yaml_sees_text_in_text() {
        let yaml = |text: &[u8]| {
            let mut out = String::new();
            write_yaml_text(text, &mut out);
            out
        };
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
        // line breaks in YAML 1.1, or nothing that a stream may hold
        assert_eq!(yaml("\r\u{2028}\u{feff}".as_bytes()), r#""\r\u2028\ufeff""#);
    }
}

//! Datatypes in the Ndarray Data Language (0.6.1, "Datatype"), on one line.
//!
//! The language has `string`, `int8` to `uint64`, `float32`, `float64`, `objref`, `regref`,
//! `opaque`, `enum`, `compound`, `vlen` and `array`. It describes values, so byte order, padding
//! and a string's length are not included. Types without a keyword are written as follows:
//!
//! | datatype | NDL |
//! |---|---|
//! | complex | compound of `r` and `i` |
//! | ASDF boolean | enum of int8 with FALSE and TRUE, as h5py writes booleans |
//! | bit field of 1, 2, 4 or 8 bytes | unsigned integer of that size |
//! | integer of 1, 2, 4 or 8 bytes with padding bits | integer of that size without padding |
//! | enumeration over an integer of another size | enum without a base |
//! | region reference | regref of blocks, whatever the kind of each element's selection |
//! | reference of HDF5 1.12 | objref, whatever the kind of each element's target |
//! | float16, bfloat16, VAX and extended floats | opaque of that size, tagged with the name |
//! | integers of other sizes, time | opaque of that size, tagged with the name |
//! | compounds and enumerations without members | opaque of that size, tagged with the name |

mod syntax;

use std::fmt::Display;

use crate::model::Datatype;
use crate::model::datatype::{BitRange, ByteOrder, Class, FloatFormat, Member, ReferenceKind};
use crate::model::number;

pub use syntax::{FlowWriter, Syntax, is_long_key, quoted_text};

/// Returns the value of NDL's `type` key for `datatype`, in YAML.
pub fn ndl_type(datatype: &Datatype) -> String {
    ndl_type_in(Syntax::Yaml, datatype)
}

/// Returns the value of NDL's `type` key for `datatype`, in `syntax`.
pub fn ndl_type_in(syntax: Syntax, datatype: &Datatype) -> String {
    let mut out = FlowWriter::new(syntax);
    write_type(datatype, &mut out);
    out.finish()
}

fn write_type(datatype: &Datatype, out: &mut FlowWriter) {
    let size = datatype.size;
    match &datatype.class {
        Class::Integer { signed, bits, .. } => match integer_keyword(size, *signed) {
            Some(keyword) => out.write_text(keyword),
            None => write_opaque(size, &integer_name(*signed, *bits), out),
        },
        Class::Bitfield { bits, .. } => match integer_keyword(size, false) {
            Some(keyword) => out.write_text(keyword),
            None => write_opaque(size, &format!("bitfield{}", bits.precision), out),
        },
        Class::Float(format) => match number::ieee_bytes(size, format) {
            Some(4) => out.write_text(b"float32"),
            Some(8) => out.write_text(b"float64"),
            _ => write_opaque(size, &float_name(size, format), out),
        },
        Class::Time { bits, .. } => write_opaque(size, &format!("time{}", bits.precision), out),
        Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_) => {
            out.write_text(b"string");
        }
        Class::Bool => {
            let members = [(&b"FALSE"[..], "0"), (b"TRUE", "1")];
            write_members(b"int8", members.into_iter(), out);
        }
        Class::Opaque { tag } => write_opaque_bytes(size, tag, out),
        Class::Reference(ReferenceKind::Object | ReferenceKind::Standard) => {
            out.write_text(b"objref");
        }
        Class::Reference(ReferenceKind::Region) => out.write_map(b"regref", |out| {
            out.write_map(b"selection", |out| out.write_text(b"block"));
        }),
        Class::Compound(members) => write_compound(size, members, out),
        Class::Enumeration { base, members } => write_enumeration(size, base, members, out),
        Class::Complex(base) => out.write_map(b"compound", |out| {
            out.write_list([b"r", b"i"].iter(), |part, out| {
                out.write_map(*part, |out| write_type(base, out));
            });
        }),
        Class::VariableLength(base) => out.write_map(b"vlen", |out| {
            out.write_map(b"base", |out| write_type(base, out));
        }),
        Class::Array { base, dims } => out.write_map(b"array", |out| {
            out.write_map(b"base", |out| {
                write_type(base, out);
                out.next_key(b"shape");
                out.append(format_args!("{dims:?}"));
            });
        }),
    }
}

/// Returns NDL's keyword for an integer type of `size` bytes, or `None` if NDL has none.
fn integer_keyword(size: u32, signed: bool) -> Option<&'static [u8]> {
    match (size, signed) {
        (1, true) => Some(b"int8"),
        (2, true) => Some(b"int16"),
        (4, true) => Some(b"int32"),
        (8, true) => Some(b"int64"),
        (1, false) => Some(b"uint8"),
        (2, false) => Some(b"uint16"),
        (4, false) => Some(b"uint32"),
        (8, false) => Some(b"uint64"),
        _ => None,
    }
}

fn integer_name(signed: bool, bits: BitRange) -> String {
    let prefix = if signed { "" } else { "u" };
    format!("{prefix}int{}", bits.precision)
}

/// Returns a name for a floating-point format without a keyword in NDL.
fn float_name(size: u32, format: &FloatFormat) -> String {
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

fn write_opaque(size: u32, tag: &str, out: &mut FlowWriter) {
    write_opaque_bytes(size, tag.as_bytes(), out);
}

fn write_opaque_bytes(size: u32, tag: &[u8], out: &mut FlowWriter) {
    out.write_map(b"opaque", |out| {
        out.write_map(b"size", |out| {
            out.append(format_args!("{size}"));
            if !tag.is_empty() {
                out.next_key(b"tag");
                out.write_text(tag);
            }
        });
    });
}

fn write_compound(size: u32, members: &[Member], out: &mut FlowWriter) {
    if members.is_empty() {
        return write_opaque(size, "compound", out);
    }
    out.write_map(b"compound", |out| {
        out.write_list(members.iter(), |member, out| {
            out.write_map(&member.name, |out| write_type(&member.datatype, out));
        });
    });
}

fn write_enumeration(
    size: u32,
    base: &Datatype,
    members: &[(Vec<u8>, Vec<u8>)],
    out: &mut FlowWriter,
) {
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
        .map(|(name, value)| {
            Some((
                &name[..],
                number::decode_integer(value, order, signed, bits)?,
            ))
        })
        .collect::<Option<Vec<_>>>()
        .filter(|numbers| !numbers.is_empty());
    let Some(numbers) = numbers else {
        return write_opaque(size, "enum", out);
    };
    let base = integer_keyword(base.size, signed).unwrap_or_default();
    write_members(base, numbers.into_iter(), out);
}

/// Writes an enumeration with the base type `base` and the names and numbers `members`. An empty
/// `base` is omitted.
fn write_members<'a>(
    base: &[u8],
    members: impl Iterator<Item = (&'a [u8], impl Display)>,
    out: &mut FlowWriter,
) {
    out.write_map(b"enum", |out| {
        out.push("{");
        if !base.is_empty() {
            out.write_key(b"base");
            out.write_text(base);
            out.push(", ");
        }
        out.write_key(b"members");
        out.push("{");
        for (index, (name, number)) in members.enumerate() {
            out.push(if index > 0 { ", " } else { "" });
            out.write_key(name);
            out.append(format_args!("{number}"));
        }
        out.push("}}");
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::number::tests::format;
    use crate::testing::{int, member, type_of};

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
    fn types_as_json() {
        let json = |datatype: &Datatype| ndl_type_in(Syntax::Json, datatype);
        assert_eq!(json(&int(4)), r#""int32""#);
        let members = vec![(b"no".to_vec(), vec![0]), (b"a\"".to_vec(), vec![0xFF])];
        let base = Box::new(int(1));
        let choice = type_of(1, Class::Enumeration { base, members });
        let expected = r#"{"enum": {"base": "int8", "members": {"no": 0, "a\"": -1}}}"#;
        assert_eq!(json(&choice), expected);
        let sequence = type_of(16, Class::VariableLength(Box::new(choice)));
        let tag = b"image/png".to_vec();
        let picture = type_of(9, Class::Opaque { tag });
        let members = vec![member("v", 0, sequence), member("p", 16, picture)];
        let record = type_of(25, Class::Compound(members));
        let picture = r#"{"opaque": {"size": 9, "tag": "image/png"}}"#;
        assert_eq!(
            json(&record),
            format!(
                r#"{{"compound": [{{"v": {{"vlen": {{"base": {expected}}}}}}}, {{"p": {picture}}}]}}"#
            )
        );
    }

    #[test]
    fn types_without_a_keyword_are_opaque() {
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
}

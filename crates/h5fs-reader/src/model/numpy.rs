//! Datatypes in NumPy's notation for an .npy header: the Python literal of
//! `numpy.dtype.element_literal`.
//!
//! The literal describes the stored bytes. Padding becomes unnamed `|V` fields, strings are `|S`
//! with their padding, and enumerations are their integers. The shape of a field's array is the
//! field's third item. An element that is an array is a tuple, `('<f4', (2, 3))`, as in
//! `numpy.lib.format.dtype_to_descr`.

use crate::model::Datatype;
use crate::model::datatype::{BitRange, ByteOrder, Class, Member};
use crate::model::datetime64::Datetime64;
use crate::model::number;

/// Returns an argument for `numpy.dtype`: [`numpy_literal`], with a simple type unquoted (`<f4`).
pub fn numpy_descr(datatype: &Datatype) -> Option<String> {
    let literal = numpy_literal(datatype)?;
    Some(match literal.strip_prefix('\'') {
        Some(simple) => simple.trim_end_matches('\'').to_owned(),
        None => literal,
    })
}

/// Returns the literal for an .npy header, with a simple type in quotes (`'<f4'`).
///
/// Returns `None` if NumPy cannot describe the bytes:
/// - pointers and times
/// - numbers with padding bits or in VAX order
/// - floating-point formats other than IEEE 754's 2, 4 and 8 bytes
/// - compounds whose members overlap or share a name
pub fn numpy_literal(datatype: &Datatype) -> Option<String> {
    let (base, dims) = innermost_type_and_dims(datatype);
    let base = element_literal(base)?;
    Some(match dims.as_slice() {
        [] => base,
        dims => format!("({base}, {})", python_tuple(dims)),
    })
}

/// Returns the innermost element type of nested arrays and all their dimensions, because NumPy does
/// not support arrays of arrays.
fn innermost_type_and_dims(mut datatype: &Datatype) -> (&Datatype, Vec<u32>) {
    let mut all = Vec::new();
    while let Class::Array { base, dims } = &datatype.class {
        all.extend_from_slice(dims);
        datatype = base;
    }
    (datatype, all)
}

/// Returns the dimensions as a Python tuple.
fn python_tuple(dims: &[u32]) -> String {
    match dims {
        [one] => format!("({one},)"),
        dims => {
            let dims: Vec<_> = dims.iter().map(u32::to_string).collect();
            format!("({})", dims.join(", "))
        }
    }
}

/// Returns the literal of a type that is not an array, or `None` if NumPy cannot describe the type.
fn element_literal(datatype: &Datatype) -> Option<String> {
    let size = datatype.size;
    match &datatype.class {
        Class::Integer {
            order,
            signed,
            bits,
        } => integer_literal(size, *order, *bits, if *signed { 'i' } else { 'u' }),
        Class::Bitfield { order, bits } => integer_literal(size, *order, *bits, 'u'),
        Class::Float(format) => {
            number::ieee_bytes(size, format)?;
            quoted_type(byte_order_sign(format.order)?, 'f', size)
        }
        Class::String { .. } => quoted_type('|', 'S', size),
        Class::Ucs4(order) => {
            let characters = size.checked_div(4).filter(|_| size.is_multiple_of(4))?;
            quoted_type(byte_order_sign(*order)?, 'U', characters)
        }
        Class::Bool => quoted_type('|', 'b', size).filter(|_| size == 1),
        Class::Opaque { .. } => match Datetime64::numpy_type(datatype) {
            Some(descr) => Some(format!("'{descr}'")),
            None => quoted_type('|', 'V', size),
        },
        Class::Enumeration { base, .. } => element_literal(base),
        Class::Complex(base) => match &base.class {
            Class::Float(format) if number::ieee_bytes(base.size, format)? > 2 => {
                quoted_type(byte_order_sign(format.order)?, 'c', size)
            }
            _ => None,
        },
        Class::Compound(members) => compound_literal(size, members),
        Class::Time { .. }
        | Class::Reference(_)
        | Class::VariableLength(_)
        | Class::VariableString { .. }
        | Class::Array { .. } => None,
    }
}

fn integer_literal(size: u32, order: ByteOrder, bits: BitRange, kind: char) -> Option<String> {
    let whole = bits.offset == 0 && u32::from(bits.precision) == size.checked_mul(8)?;
    match size {
        1 if whole => quoted_type('|', kind, size),
        2 | 4 | 8 if whole => quoted_type(byte_order_sign(order)?, kind, size),
        _ => None,
    }
}

fn byte_order_sign(order: ByteOrder) -> Option<char> {
    match order {
        ByteOrder::Little => Some('<'),
        ByteOrder::Big => Some('>'),
        ByteOrder::Vax => None,
    }
}

fn quoted_type(sign: char, kind: char, size: u32) -> Option<String> {
    Some(format!("'{sign}{kind}{size}'"))
}

/// Returns the literal of a compound: a list of fields in the order of their offsets, because the
/// literal cannot state another order.
fn compound_literal(size: u32, members: &[Member]) -> Option<String> {
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by_key(|member| member.offset);
    if sorted.is_empty() || has_repeated_names(members) {
        return None;
    }
    let mut fields = Vec::new();
    let mut end = 0_u32;
    for member in sorted {
        fields.extend(padding_field(member.offset.checked_sub(end)?));
        fields.push(field_literal(member)?);
        end = member.offset.checked_add(member.datatype.size)?;
    }
    fields.extend(padding_field(size.checked_sub(end)?));
    Some(format!("[{}]", fields.join(", ")))
}

fn has_repeated_names(members: &[Member]) -> bool {
    let mut names: Vec<_> = members.iter().map(|member| &member.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    names.len() != count
}

/// Returns an unnamed field for `bytes` padding bytes between other fields, or `None` for 0 bytes.
fn padding_field(bytes: u32) -> Option<String> {
    (bytes > 0).then(|| format!("('', '|V{bytes}')"))
}

fn field_literal(member: &Member) -> Option<String> {
    let (base, dims) = innermost_type_and_dims(&member.datatype);
    // NumPy would read the field as padding.
    if member.name.is_empty() && matches!(base.class, Class::Opaque { .. }) {
        return None;
    }
    let name = python_text(&member.name);
    let base = element_literal(base)?;
    Some(match dims.as_slice() {
        [] => format!("({name}, {base})"),
        dims => format!("({name}, {base}, {})", python_tuple(dims)),
    })
}

/// Returns text as Python's `repr` writes it. Bytes that are not UTF-8 become `\udcXX`, as in
/// `surrogateescape`.
fn python_text(text: &[u8]) -> String {
    let quote = if text.contains(&b'\'') && !text.contains(&b'"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c == quote => out.extend(['\\', c]),
                c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => out.push(c),
            }
        }
        let escaped = chunk
            .invalid()
            .iter()
            .map(|byte| format!("\\udc{byte:02x}"));
        out.extend(escaped);
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::datatype::{Charset, ReferenceKind, StringPadding};
    use crate::testing::{int, member, type_of};

    fn descr_of(datatype: &Datatype) -> String {
        numpy_descr(datatype).unwrap()
    }

    fn string(size: u32) -> Datatype {
        let class = Class::String {
            padding: StringPadding::SpacePadded,
            charset: Charset::Utf8,
        };
        type_of(size, class)
    }

    /// Expected: `numpy.dtype(…).str`.
    #[test]
    fn simple_types() {
        let single = Datatype::ieee(4, ByteOrder::Little);
        assert_eq!(descr_of(&single), "<f4");
        assert_eq!(numpy_literal(&single).unwrap(), "'<f4'");
        assert_eq!(descr_of(&Datatype::ieee(2, ByteOrder::Big)), ">f2");
        assert_eq!(
            descr_of(&Datatype::integer(1, false, ByteOrder::Big)),
            "|u1"
        );
        assert_eq!(descr_of(&string(10)), "|S10");
        assert_eq!(descr_of(&type_of(20, Class::Ucs4(ByteOrder::Big))), ">U5");
        assert_eq!(
            descr_of(&type_of(16, Class::Opaque { tag: vec![] })),
            "|V16"
        );
        assert_eq!(
            descr_of(&type_of(8, Class::Complex(Box::new(single)))),
            "<c8"
        );
    }

    /// Expected: `numpy.lib.format.dtype_to_descr` of three types, whatever the members' order in
    /// the file:
    /// - `{'names': ['a', 'x'], 'formats': ['u1', '<f8'], 'offsets': [0, 8], 'itemsize': 24}`
    /// - `[('k', '<f4', (3, 3)), ("it's", 'S4')]`
    /// - `('<f4', (3,))` as a field's type
    #[test]
    fn records_and_arrays() {
        let double = Datatype::ieee(8, ByteOrder::Little);
        let byte = Datatype::integer(1, false, ByteOrder::Little);
        let members = vec![member("x", 8, double), member("a", 0, byte)];
        let record = type_of(24, Class::Compound(members));
        let expected = "[('a', '|u1'), ('', '|V7'), ('x', '<f8'), ('', '|V8')]";
        assert_eq!(descr_of(&record), expected);

        let array = |dims: Vec<u32>, base: Datatype| {
            let size = base.size * dims.iter().product::<u32>();
            let base = Box::new(base);
            type_of(size, Class::Array { base, dims })
        };
        let rows = array(
            vec![3],
            array(vec![3], Datatype::ieee(4, ByteOrder::Little)),
        );
        let members = vec![member("k", 0, rows), member("it's", 36, string(4))];
        let record = type_of(40, Class::Compound(members));
        let expected = "[('k', '<f4', (3, 3)), (\"it's\", '|S4')]";
        assert_eq!(descr_of(&record), expected);
        assert_eq!(descr_of(&array(vec![3], int(2))), "('<i2', (3,))");
    }

    #[test]
    fn types_without_a_numpy_equivalent() {
        assert_eq!(numpy_descr(&int(3)), None);
        assert_eq!(
            numpy_descr(&Datatype::integer(4, true, ByteOrder::Vax)),
            None
        );
        let reference = type_of(8, Class::Reference(ReferenceKind::Object));
        assert_eq!(numpy_descr(&reference), None);
        let overlap = vec![member("a", 0, int(4)), member("b", 2, int(4))];
        assert_eq!(numpy_descr(&type_of(8, Class::Compound(overlap))), None);
        let twins = vec![member("a", 0, int(4)), member("a", 4, int(4))];
        assert_eq!(numpy_descr(&type_of(8, Class::Compound(twins))), None);
    }
}

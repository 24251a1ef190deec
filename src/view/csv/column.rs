//! The columns that a datatype has, and what their cells hold.
//!
//! | class | width | text |
//! |---|---|---|
//! | integer | of the longest value that its bits can hold | decimal |
//! | float32 | 15 | the shortest that gives the number back |
//! | float64, other floats | 24, more for those of a wider range | the same |
//! | string of N bytes | 2N + 2 | in double quotes, those within doubled (RFC 4180, 2) |
//! | UCS-4 string of N bytes | N + 2 | the same |
//! | enumeration | of the longest name or number | the name, in quotes where it needs them |
//! | boolean | 5 | `true`, `false` |
//! | complex | two columns | as its parts |
//! | bit field, opaque, time | two a byte, and 2 | hexadecimal |
//!
//! Compounds and arrays have the columns of their parts. Pointers (variable-length data,
//! references) have none: their text can have any length.

use crate::error::{Error, Result};
use crate::limits;
use crate::model::Datatype;
use crate::model::datatype::{Bits, Class, Float};
use crate::model::number;
use crate::model::value::{Context, ValueWriter};
use crate::view::elements::complex_part;
use crate::wire::{to_u64, to_usize};

/// Bytes of one element, and of its text, that are handled.
const ELEMENT: u64 = limits::TEXT_ELEMENT_BYTES;

/// One column.
#[derive(Debug)]
pub(crate) struct Column {
    name: Vec<u8>,
    /// Where its cell begins in the text of an element.
    pub start: u64,
    /// Bytes of its cell, without what follows.
    width: usize,
    quoting: Quoting,
    /// Where its bytes are in the element.
    offset: usize,
    writer: ValueWriter,
}

/// Whether a cell stands in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Always,
    /// Where the text could be taken for something else without.
    Needed,
}

/// The columns of one element, at least one.
#[derive(Debug)]
pub(crate) struct Columns {
    list: Vec<Column>,
    width: u64,
    /// Bytes of all names.
    names: u64,
}

impl Columns {
    /// The columns of `datatype`; `None` where its text can have any length, or a part of it has
    /// none.
    ///
    /// # Errors
    /// `Limit` for too many columns, or an element that is too long.
    pub(crate) fn of(datatype: &Datatype) -> Result<Option<Self>> {
        let mut columns = Columns {
            list: Vec::new(),
            width: 0,
            names: 0,
        };
        if u64::from(datatype.size) > ELEMENT {
            return Err(Error::limit("size of an element as csv", ELEMENT));
        }
        let all = columns.add(datatype, Vec::new(), 0)?;
        Ok((all && !columns.list.is_empty()).then_some(columns))
    }

    /// Bytes of an element's text, separators included.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// The columns from the one on that holds byte `place` of an element's text.
    pub(crate) fn from(&self, place: u64) -> &[Column] {
        let before = |column: &Column| column.start + to_u64(column.width) < place;
        &self.list[self.list.partition_point(before)..]
    }

    /// The line of names, each as far right as its column, if it fits there.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for column in &self.list {
            let mut name = Vec::new();
            write_text(&column.name, Quoting::Needed, &mut name);
            let blanks = column.width.saturating_sub(name.len());
            out.extend(std::iter::repeat_n(b' ', blanks));
            out.append(&mut name);
            out.push(b',');
        }
        out.pop();
        out.push(b'\n');
        out
    }

    /// Adds the columns of what stands at `offset` under `name`; says whether all of it has
    /// columns.
    fn add(&mut self, datatype: &Datatype, name: Vec<u8>, offset: u64) -> Result<bool> {
        if let Some(part) = complex_part(datatype) {
            let second = offset.saturating_add(part.size.into());
            return Ok(self.add(part, joined(&name, b"r"), offset)?
                && self.add(part, joined(&name, b"i"), second)?);
        }
        match &datatype.class {
            Class::Compound(members) => {
                if members.is_empty() {
                    return Ok(false);
                }
                for member in members {
                    let place = offset.saturating_add(member.offset.into());
                    if !self.add(&member.datatype, joined(&name, &member.name), place)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Class::Array { base, dims } => self.add_array(base, dims, &name, offset),
            _ => {
                let Some((width, quoting)) = leaf(datatype) else {
                    return Ok(false);
                };
                self.push(datatype, name, offset, width, quoting)?;
                Ok(true)
            }
        }
    }

    fn add_array(
        &mut self,
        base: &Datatype,
        dims: &[u32],
        name: &[u8],
        offset: u64,
    ) -> Result<bool> {
        let Some((&dim, inner)) = dims.split_first() else {
            return self.add(base, name.to_vec(), offset);
        };
        if dim == 0 {
            return Ok(false);
        }
        let below = inner.iter().map(|&dim| u64::from(dim));
        let stride = below.fold(u64::from(base.size), u64::saturating_mul);
        for index in 0..u64::from(dim) {
            let name = [name, format!("[{index}]").as_bytes()].concat();
            let place = offset.saturating_add(index.saturating_mul(stride));
            if !self.add_array(base, inner, &name, place)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn push(
        &mut self,
        datatype: &Datatype,
        name: Vec<u8>,
        offset: u64,
        width: u64,
        quoting: Quoting,
    ) -> Result<()> {
        if self.list.len() >= limits::CSV_COLUMNS {
            let most = to_u64(limits::CSV_COLUMNS);
            return Err(Error::limit("columns of a csv", most));
        }
        let start = self.width;
        self.width = start.saturating_add(width).saturating_add(1);
        self.names = self.names.saturating_add(to_u64(name.len()));
        if self.width > ELEMENT || self.names > ELEMENT {
            return Err(Error::limit("an element's text as csv", ELEMENT));
        }
        self.list.push(Column {
            name,
            start,
            width: to_usize(width)?,
            quoting,
            offset: to_usize(offset)?,
            writer: ValueWriter::new(datatype)?,
        });
        Ok(())
    }
}

impl Column {
    /// Appends the cell that `element` has in this column, without what follows.
    ///
    /// # Errors
    /// `Corrupt` for an element that is shorter than its datatype.
    pub(crate) fn write(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let bytes = element.get(self.offset..).unwrap_or_default();
        let start = out.len();
        let context = Context::without_pointers(usize::MAX);
        self.writer.text(bytes, &context, out)?;
        if self.quoting == Quoting::Always || needs_quotes(&out[start..]) {
            let text = out.split_off(start);
            write_text(&text, Quoting::Always, out);
        }
        let length = out.len() - start;
        let Some(blanks) = self.width.checked_sub(length) else {
            // Never cut: the widths are those of the longest texts.
            return Err(Error::limit("width of a csv cell", to_u64(self.width)));
        };
        out.resize(out.len() + blanks, b' ');
        out[start..].rotate_right(blanks);
        Ok(())
    }
}

/// `a.b`, or the second alone.
fn joined(name: &[u8], part: &[u8]) -> Vec<u8> {
    match name {
        [] => part.to_vec(),
        name => [name, part].join(&b'.'),
    }
}

/// The width of a type that has one column; `None` where none would do.
fn leaf(datatype: &Datatype) -> Option<(u64, Quoting)> {
    let size = u64::from(datatype.size);
    let in_hexadecimal = size.saturating_mul(2).saturating_add(2);
    let width = match &datatype.class {
        // Such numbers are written as their bytes.
        _ if size > 16 && is_number(datatype) => in_hexadecimal,
        Class::Float(format) if !number::is_computable(format) => in_hexadecimal,
        Class::Integer { signed, bits, .. } => digits(*signed, *bits),
        Class::Float(format) => float_width(datatype.size, format),
        Class::Time { bits, .. } | Class::Bitfield { bits, .. } => {
            u64::from(bits.precision.div_ceil(8).max(1)) * 2 + 2
        }
        Class::Bool => 5,
        Class::Opaque { .. } => in_hexadecimal,
        Class::String { .. } => return Some((in_hexadecimal, Quoting::Always)),
        // A character has four bytes there and at most four in UTF-8; a quote, doubled, two.
        Class::Ucs4(_) => return Some((size.saturating_add(2), Quoting::Always)),
        Class::Enumeration { base, members } => {
            let names = members.iter().map(|(name, _)| {
                let mut text = Vec::new();
                write_text(name, Quoting::Needed, &mut text);
                to_u64(text.len())
            });
            names.max().unwrap_or(0).max(leaf(base)?.0)
        }
        Class::Compound(_)
        | Class::Array { .. }
        | Class::Complex(_)
        | Class::Reference(_)
        | Class::VariableLength(_)
        | Class::VariableString { .. } => return None,
    };
    Some((width, Quoting::Needed))
}

fn is_number(datatype: &Datatype) -> bool {
    matches!(
        datatype.class,
        Class::Integer { .. } | Class::Float(_) | Class::Time { .. } | Class::Bitfield { .. }
    )
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
        // What 64 bits cannot hold is `-0x1.`, four bits a digit, `p`, sign and exponent.
        None => DOUBLE.max(u64::from(format.mantissa_bits).div_ceil(4) + 18),
    }
}

/// Whether a reader could take the text, or a part of it, for something else.
fn needs_quotes(text: &[u8]) -> bool {
    let has_syntax = text.iter().any(|byte| b",\"\r\n".contains(byte));
    has_syntax || text.is_empty() || text.trim_ascii().len() < text.len()
}

/// Appends text, in double quotes where that is asked for (RFC 4180, 2).
fn write_text(text: &[u8], quoting: Quoting, out: &mut Vec<u8>) {
    if quoting == Quoting::Needed && !needs_quotes(text) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::datatype::{ByteOrder, Charset, StringPadding};
    use crate::model::value::tests::{int, member, type_of};

    fn cell(datatype: &Datatype, element: &[u8]) -> String {
        let columns = Columns::of(datatype).unwrap().unwrap();
        let mut out = Vec::new();
        columns.list[0].write(element, &mut out).unwrap();
        assert_eq!(out.len(), columns.list[0].width);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_longest_values_fill_their_cells() {
        assert_eq!(cell(&int(1), &[0x80]), "-128");
        let long = cell(&int(8), &i64::MIN.to_le_bytes());
        assert_eq!(long, "-9223372036854775808");
        let byte = Datatype::integer(1, false, ByteOrder::Little);
        assert_eq!(cell(&byte, &[7]), "  7");
        let single = Datatype::ieee(4, ByteOrder::Little);
        assert_eq!(
            cell(&single, &(-f32::MIN_POSITIVE).to_le_bytes()).trim(),
            "-1.1754944e-38"
        );
        let double = Datatype::ieee(8, ByteOrder::Little);
        let longest = -2.225_073_858_507_201_4e-308_f64;
        assert_eq!(
            cell(&double, &longest.to_le_bytes()),
            "-2.2250738585072014e-308"
        );
        assert_eq!(
            cell(&int(16), &i128::MIN.to_le_bytes()),
            i128::MIN.to_string()
        );
    }

    #[test]
    fn text_is_quoted_and_names_where_they_must_be() {
        let class = Class::String {
            padding: StringPadding::NullPadded,
            charset: Charset::Ascii,
        };
        let string = type_of(3, class);
        assert_eq!(cell(&string, b"\"\"\""), "\"\"\"\"\"\"\"\"");
        assert_eq!(cell(&string, b" a\0"), "    \" a\"");
        let members = vec![(b"ON".to_vec(), vec![1]), (b"a,b".to_vec(), vec![2])];
        let base = Box::new(int(1));
        let named = type_of(1, Class::Enumeration { base, members });
        assert_eq!(cell(&named, &[1]), "   ON");
        assert_eq!(cell(&named, &[2]), "\"a,b\"");
        assert_eq!(cell(&named, &[0x80]), " -128");
    }

    #[test]
    fn columns_of_parts() {
        let base = Box::new(int(1));
        let dims = vec![2, 2];
        let matrix = type_of(4, Class::Array { base, dims });
        let inner = type_of(5, Class::Compound(vec![member("f", 1, matrix)]));
        let record = vec![member("x, y", 0, int(2)), member("in", 2, inner)];
        let columns = Columns::of(&type_of(7, Class::Compound(record)))
            .unwrap()
            .unwrap();
        let header = b"\"x, y\",in.f[0][0],in.f[0][1],in.f[1][0],in.f[1][1]\n";
        assert_eq!(columns.header(), header);
        let starts: Vec<u64> = columns.list.iter().map(|column| column.start).collect();
        assert_eq!(starts, [0, 7, 12, 17, 22]);
        assert_eq!(columns.width(), 27);
        assert_eq!(columns.from(6)[0].start, 0);
        assert_eq!(columns.from(7)[0].start, 7);
    }

    #[test]
    fn hostile_types_end() {
        let base = Box::new(int(1));
        let dims = vec![1 << 16, 1 << 16];
        let many = type_of(8, Class::Array { base, dims });
        assert!(matches!(Columns::of(&many), Err(Error::Limit { .. })));
        let base = Box::new(type_of(0, Class::Compound(vec![])));
        let dims = vec![u32::MAX];
        let empty = type_of(0, Class::Array { base, dims });
        assert!(Columns::of(&empty).unwrap().is_none());
        let long = type_of(u32::MAX, Class::Opaque { tag: vec![] });
        assert!(matches!(Columns::of(&long), Err(Error::Limit { .. })));
    }
}

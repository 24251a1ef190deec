//! The text of one stored element.
//!
//! A [`ValueWriter`] is made once for a datatype and appends the text of any number of elements,
//! each without an allocation (only pointers to bytes elsewhere cost one). It knows two forms:
//!
//! | class | text | JSON |
//! |---|---|---|
//! | integer, float | decimal, see [`number`] | the same; NaN is `null`, `"inf"` and `"-inf"` quoted |
//! | string of any kind | its bytes without padding | quoted; a null one is `null` |
//! | enumeration | the name, the number where none fits | quoted name, number |
//! | ASDF boolean | `true`, `false` | the same |
//! | enumeration of FALSE and TRUE | the name | `true`, `false` |
//! | complex | `1+2j` | `{"r": 1.0, "i": 2.0}` |
//! | bit field, time | `0x` and the number in hexadecimal | quoted |
//! | opaque, numbers over 128 bits | `0x` and the bytes in hexadecimal, in stored order | quoted |
//! | reference to an object with a path | the path; `null` for none | quoted, `null` |
//! | reference to an object without | `@0xADDR`; `FILE:@0xADDR` in another file | quoted |
//! | reference to an attribute | `PATH/@NAME` | quoted |
//! | compound | as in JSON | `{"a": 1, "b": [1, 2]}` |
//! | array, variable-length sequence | as in JSON | `[1, 2]`, nested by dimension |
//!
//! JSON stands on one line. Text there is UTF-8; a byte that is not UTF-8 is `\udcXX`, as Python's
//! `surrogateescape` writes it, so that `.encode("utf-8", "surrogateescape")` gives it back.

use std::cell::Cell;
use std::iter;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::datatype::{Bits, ByteOrder, Class, Float, Member, ReferenceKind, StringPadding};
use crate::model::number::{self, append};
use crate::model::text::{ESCAPE, escape_json, json_length, without_padding, write_json_text};
use crate::model::{Container, Datatype, NodeId, Reference};
use crate::wire::{to_u64, to_usize};

/// Finds a node's path, bytes as in the file, `None` where it has none; fails where that cannot be
/// found out now.
pub type Paths<'a> = dyn Fn(NodeId) -> Result<Option<Vec<u8>>> + 'a;

/// The surroundings that an element's text needs, and its greatest length.
pub struct Context<'a> {
    /// Follows pointers. `None`: every pointer reads as null, as those of a zero fill value do.
    pub container: Option<&'a dyn Container>,
    /// Turns a reference's target into text.
    pub paths: &'a Paths<'a>,
    /// The most bytes that the output may hold.
    pub limit: usize,
    fetched: Cell<u64>,
}

impl<'a> Context<'a> {
    /// Text of at most `limit` bytes; the bytes that pointers lead to are bounded in proportion.
    pub fn new(container: &'a dyn Container, paths: &'a Paths<'a>, limit: usize) -> Self {
        Context {
            container: Some(container),
            paths,
            limit,
            fetched: Cell::new(0),
        }
    }

    /// Text of at most `limit` bytes of elements whose pointers are all null.
    pub fn without_pointers(limit: usize) -> Self {
        Context {
            container: None,
            paths: &|_| Ok(None),
            limit,
            fetched: Cell::new(0),
        }
    }

    /// The bytes that a variable-length element points to.
    fn fetch(&self, element: &[u8], base_size: usize) -> Result<Option<Vec<u8>>> {
        // Bytes may be text of no length (padding), so the text's own bound is not enough.
        const BYTES_PER_BYTE_OF_TEXT: u64 = 16;
        let Some(container) = self.container else {
            return Ok(None);
        };
        let most = to_u64(self.limit).saturating_mul(BYTES_PER_BYTE_OF_TEXT);
        let base_size = to_u64(base_size);
        let length = container
            .variable_length_bytes(element, base_size)?
            .unwrap_or(0);
        if length > limits::TEXT_ELEMENT_BYTES {
            let most = limits::TEXT_ELEMENT_BYTES;
            return Err(Error::limit("a variable-length element of a value", most));
        }
        let fetched = self.fetched.get().saturating_add(length);
        self.fetched.set(fetched);
        if fetched > most {
            return Err(Error::limit("variable-length bytes of a value", most));
        }
        container.variable_length(element, base_size, 0..length)
    }

    /// Refuses `out` with `more` bytes to come once it is too long.
    fn check(&self, out: &[u8], more: usize) -> Result<()> {
        if out.len().saturating_add(more) > self.limit {
            return Err(Error::limit("text of a value", to_u64(self.limit)));
        }
        Ok(())
    }
}

/// Appends the text of elements of one datatype.
#[derive(Debug)]
pub struct ValueWriter {
    size: usize,
    kind: Kind,
}

/// A datatype, prepared for writing.
#[derive(Debug)]
enum Kind {
    Integer {
        order: ByteOrder,
        signed: bool,
        bits: Bits,
    },
    Float(Float),
    /// Bit field, time.
    Pattern {
        order: ByteOrder,
        bits: Bits,
    },
    Opaque,
    Bool,
    String(StringPadding),
    VariableString(StringPadding),
    Ucs4(ByteOrder),
    Reference(ReferenceKind),
    Enumeration {
        base: Box<ValueWriter>,
        /// Stored value and name, sorted by value, none twice.
        names: Vec<(Vec<u8>, Vec<u8>)>,
        is_boolean: bool,
    },
    Complex(Box<ValueWriter>),
    Compound(Vec<Field>),
    Array {
        base: Box<ValueWriter>,
        /// Elements in a run of the last dimension, of the last two …, of all.
        runs: Vec<usize>,
    },
    Sequence(Box<ValueWriter>),
}

/// A compound's member.
#[derive(Debug)]
struct Field {
    /// The name in JSON, quoted, and the colon.
    key: Vec<u8>,
    offset: usize,
    value: ValueWriter,
}

/// Which form nested text takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl ValueWriter {
    /// Prepares for elements of `datatype`.
    ///
    /// # Errors
    /// `Limit` for a datatype that is nested too deeply.
    pub fn new(datatype: &Datatype) -> Result<Self> {
        Self::nested(datatype, limits::DATATYPE_DEPTH)
    }

    fn nested(datatype: &Datatype, depth: usize) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            let most = to_u64(limits::DATATYPE_DEPTH);
            return Err(Error::limit("depth of a datatype", most));
        };
        let inner = |base: &Datatype| Self::nested(base, depth).map(Box::new);
        let kind = match &datatype.class {
            &Class::Integer {
                order,
                signed,
                bits,
            } => Kind::Integer {
                order,
                signed,
                bits,
            },
            Class::Float(format) => Kind::Float(*format),
            &Class::Time { order, bits } | &Class::Bitfield { order, bits } => {
                Kind::Pattern { order, bits }
            }
            Class::String { padding, .. } => Kind::String(*padding),
            Class::VariableString { padding, .. } => Kind::VariableString(*padding),
            Class::Ucs4(order) => Kind::Ucs4(*order),
            Class::Bool => Kind::Bool,
            Class::Opaque { .. } => Kind::Opaque,
            Class::Reference(kind) => Kind::Reference(*kind),
            Class::Enumeration { base, members } => Kind::Enumeration {
                base: inner(base)?,
                names: names_by_value(members),
                is_boolean: datatype.is_boolean(),
            },
            Class::Complex(base) => Kind::Complex(inner(base)?),
            Class::VariableLength(base) => Kind::Sequence(inner(base)?),
            Class::Array { base, dims } => Kind::Array {
                base: inner(base)?,
                runs: runs(dims)?,
            },
            Class::Compound(members) => Kind::Compound(
                members
                    .iter()
                    .map(|member| Field::new(member, depth))
                    .collect::<Result<_>>()?,
            ),
        };
        let size = to_usize(datatype.size.into())?;
        Ok(ValueWriter { size, kind })
    }

    /// Bytes of one stored element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Appends an element's text: a string's bytes as they are, nested values as JSON.
    ///
    /// # Errors
    /// `Limit` once `out` is over the limit of `context`; `Corrupt` for an element that is too
    /// short; as the container where a pointer leads nowhere. The text appended until then stays.
    pub fn text(&self, element: &[u8], context: &Context<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.write(element, context, Form::Text, out)
    }

    /// Appends an element as JSON on one line.
    ///
    /// # Errors
    /// Fails as [`ValueWriter::text`] does.
    pub fn json(&self, element: &[u8], context: &Context<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.write(element, context, Form::Json, out)
    }

    /// Appends elements in C order as JSON on one line, in brackets as `dims` are.
    ///
    /// # Errors
    /// Fails as [`ValueWriter::text`] does; `Limit` for too many dimensions.
    pub fn json_array(
        &self,
        elements: &[u8],
        dims: &[u64],
        context: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.write_array(elements, &runs(dims)?, context, out)?;
        context.check(out, 0)
    }

    fn write(
        &self,
        element: &[u8],
        context: &Context<'_>,
        form: Form,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let element = part(element, 0, self.size)?;
        match &self.kind {
            Kind::Integer {
                order,
                signed,
                bits,
            } => match number::integer(element, *order, *signed, *bits) {
                Some(integer) => integer.write(out),
                None => write_bytes(element, context, form, out)?,
            },
            Kind::Float(format) => match number::real(element, format) {
                Some(real) if form == Form::Json && real.is_nan() => {
                    out.extend_from_slice(b"null");
                }
                Some(real) => {
                    let quoted = form == Form::Json && !real.is_json_number();
                    within_quotes(quoted, out, |out| real.write(out));
                }
                None => write_bytes(element, context, form, out)?,
            },
            Kind::Pattern { order, bits } => match number::bits(element, *order, *bits) {
                Some(pattern) => {
                    let digits = usize::from(bits.precision.div_ceil(8)).saturating_mul(2);
                    within_quotes(form == Form::Json, out, |out| {
                        append(out, format_args!("0x{pattern:0digits$x}"));
                    });
                }
                None => write_bytes(element, context, form, out)?,
            },
            Kind::Opaque => write_bytes(element, context, form, out)?,
            Kind::Bool => {
                let set = element.iter().any(|&byte| byte != 0);
                append(out, format_args!("{set}"));
            }
            Kind::String(padding) => {
                write_text(without_padding(element, *padding), context, form, out)?;
            }
            Kind::VariableString(padding) => match context.fetch(element, 1)? {
                Some(text) => write_text(without_padding(&text, *padding), context, form, out)?,
                None if form == Form::Json => out.extend_from_slice(b"null"),
                None => {}
            },
            Kind::Ucs4(order) => write_ucs4(element, *order, context, form, out)?,
            Kind::Reference(kind) => write_reference(*kind, element, context, form, out)?,
            Kind::Enumeration {
                base,
                names,
                is_boolean,
            } => {
                let found = names.binary_search_by(|(value, _)| value.as_slice().cmp(element));
                match found.ok().and_then(|index| names.get(index)) {
                    Some((_, name)) if *is_boolean && form == Form::Json => {
                        out.extend(name.iter().map(u8::to_ascii_lowercase));
                    }
                    Some((_, name)) => write_text(name, context, form, out)?,
                    // As for NumPy, which has no third one.
                    None if *is_boolean && form == Form::Json => out.extend_from_slice(b"true"),
                    None => base.write(element, context, form, out)?,
                }
            }
            Kind::Complex(base) => base.write_complex(element, context, form, out)?,
            Kind::Compound(fields) => write_compound(fields, element, context, out)?,
            Kind::Array { base, runs } => base.write_array(element, runs, context, out)?,
            Kind::Sequence(base) => {
                let elements = context.fetch(element, base.size)?.unwrap_or_default();
                let count = elements.len().checked_div(base.size).unwrap_or(0);
                base.write_array(&elements, &[count], context, out)?;
            }
        }
        context.check(out, 0)
    }

    /// Appends elements of this type as nested JSON arrays, one bracket for each run.
    fn write_array(
        &self,
        elements: &[u8],
        runs: &[usize],
        context: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let count = runs.last().copied().unwrap_or(1);
        let brackets = |index: usize| {
            let starts = |run: &&usize| index.checked_rem(**run) == Some(0);
            runs.iter().filter(starts).count()
        };
        if count == 0 {
            out.extend_from_slice(b"[]");
        }
        for index in 0..count {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend(iter::repeat_n(b'[', brackets(index)));
            let element = part(elements, index.saturating_mul(self.size), self.size)?;
            self.write(element, context, Form::Json, out)?;
            out.extend(iter::repeat_n(b']', brackets(index.saturating_add(1))));
        }
        Ok(())
    }

    /// Appends a pair of this type as a complex number.
    fn write_complex(
        &self,
        element: &[u8],
        context: &Context<'_>,
        form: Form,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let real = part(element, 0, self.size)?;
        let imaginary = part(element, self.size, self.size)?;
        if form == Form::Json {
            out.extend_from_slice(b"{\"r\": ");
            self.write(real, context, form, out)?;
            out.extend_from_slice(b", \"i\": ");
            self.write(imaginary, context, form, out)?;
            out.push(b'}');
            return Ok(());
        }
        self.write(real, context, form, out)?;
        drop_point_zero(out);
        let middle = out.len();
        self.write(imaginary, context, form, out)?;
        drop_point_zero(out);
        if out.get(middle) != Some(&b'-') {
            out.insert(middle, b'+');
        }
        out.push(b'j');
        Ok(())
    }
}

impl Field {
    fn new(member: &Member, depth: usize) -> Result<Self> {
        let mut key = Vec::new();
        write_json_text(&member.name, &mut key);
        key.extend_from_slice(b": ");
        Ok(Field {
            key,
            offset: to_usize(member.offset.into())?,
            value: ValueWriter::nested(&member.datatype, depth)?,
        })
    }
}

/// Elements in a run of the last dimension, of the last two …, of all.
fn runs<N: Copy + Into<u64>>(dims: &[N]) -> Result<Vec<usize>> {
    if dims.len() > limits::RANK {
        return Err(Error::limit(
            "rank of an array datatype",
            to_u64(limits::RANK),
        ));
    }
    let mut run = 1_usize;
    dims.iter()
        .rev()
        .map(|&dim| {
            let dim = to_usize(dim.into())?;
            let product = run.checked_mul(dim);
            run = product.ok_or_else(|| Error::limit("elements of an array datatype", u64::MAX))?;
            Ok(run)
        })
        .collect()
}

/// Sorted by value; of equal values the first name in file order stands.
fn names_by_value(members: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = members
        .iter()
        .map(|(name, value)| (value.clone(), name.clone()));
    let mut names: Vec<_> = pairs.collect();
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    names.dedup_by(|(later, _), (first, _)| later == first);
    names
}

/// `size` bytes from `offset` on.
fn part(bytes: &[u8], offset: usize, size: usize) -> Result<&[u8]> {
    let end = offset.checked_add(size);
    end.and_then(|end| bytes.get(offset..end))
        .ok_or_else(|| Error::corrupt("element: shorter than its datatype", None))
}

fn write_compound(
    fields: &[Field],
    element: &[u8],
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(&field.key);
        let element = part(element, field.offset, field.value.size)?;
        field.value.write(element, context, Form::Json, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_reference(
    kind: ReferenceKind,
    element: &[u8],
    context: &Context<'_>,
    form: Form,
    out: &mut Vec<u8>,
) -> Result<()> {
    let reference = match context.container {
        Some(container) => container.reference(kind, element)?,
        None => Reference::Null,
    };
    let path = |node: NodeId| {
        let path = (context.paths)(node)?;
        Ok(path.unwrap_or_else(|| address(node.number())))
    };
    let text = match reference {
        Reference::Null => {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        Reference::Dangling(place) => address(place),
        Reference::Object(node) | Reference::Region(node) => path(node)?,
        Reference::Attribute { node, name } => {
            let mut text = path(node)?;
            let slash: &[u8] = if text.ends_with(b"/") { b"@" } else { b"/@" };
            text.extend_from_slice(slash);
            text.extend_from_slice(&name);
            text
        }
        Reference::External {
            file,
            address: place,
        } => [file, address(place)].join(&b':'),
    };
    write_text(&text, context, form, out)
}

/// The text of an object that has no path.
fn address(address: u64) -> Vec<u8> {
    format!("@{address:#x}").into_bytes()
}

fn write_text(text: &[u8], context: &Context<'_>, form: Form, out: &mut Vec<u8>) -> Result<()> {
    context.check(out, text.len())?;
    match form {
        Form::Text => out.extend_from_slice(text),
        Form::Json => {
            // Before it is written: its escapes may be much longer than it.
            if text.len() > context.limit.saturating_sub(out.len()) / ESCAPE {
                context.check(out, json_length(text))?;
            }
            write_json_text(text, out);
        }
    }
    Ok(())
}

/// Four bytes a character, without the padding NULs; what is no character is U+FFFD.
fn write_ucs4(
    element: &[u8],
    order: ByteOrder,
    context: &Context<'_>,
    form: Form,
    out: &mut Vec<u8>,
) -> Result<()> {
    let unit = |bytes: &[u8]| match (order, <[u8; 4]>::try_from(bytes)) {
        (ByteOrder::Big, Ok(bytes)) => u32::from_be_bytes(bytes),
        (_, Ok(bytes)) => u32::from_le_bytes(bytes),
        (_, Err(_)) => 0,
    };
    let zeros = element
        .rchunks_exact(4)
        .take_while(|bytes| unit(bytes) == 0);
    let length = element
        .len()
        .saturating_sub(zeros.count().saturating_mul(4));
    let units = element.chunks_exact(4).take(length.div_ceil(4));
    context.check(out, units.len())?;
    within_quotes(form == Form::Json, out, |out| {
        for bytes in units {
            let character = char::from_u32(unit(bytes)).unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut utf8 = [0; 4];
            let utf8 = character.encode_utf8(&mut utf8).as_bytes();
            match form {
                Form::Text => out.extend_from_slice(utf8),
                Form::Json => escape_json(utf8, out),
            }
        }
    });
    Ok(())
}

/// `0x` and two digits a byte.
fn write_bytes(bytes: &[u8], context: &Context<'_>, form: Form, out: &mut Vec<u8>) -> Result<()> {
    context.check(out, bytes.len().saturating_mul(2))?;
    within_quotes(form == Form::Json, out, |out| {
        out.extend_from_slice(b"0x");
        for byte in bytes {
            append(out, format_args!("{byte:02x}"));
        }
    });
    Ok(())
}

fn within_quotes(quoted: bool, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    if quoted {
        out.push(b'"');
    }
    write(out);
    if quoted {
        out.push(b'"');
    }
}

/// A complex number's parts are written without the `.0` of a whole number.
fn drop_point_zero(out: &mut Vec<u8>) {
    if out.ends_with(b".0") {
        out.truncate(out.len().saturating_sub(2));
    }
}

#[cfg(test)]
pub(crate) mod tests;

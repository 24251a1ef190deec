//! The text of one stored element.
//!
//! A [`ValueWriter`] is created once for a datatype and appends the text of any number of elements.
//! Writing an element does not allocate, except for pointers to other bytes and for UCS-4. There
//! are two forms of text:
//!
//! | class | text | JSON |
//! |---|---|---|
//! | integer, float | decimal, see [`number`](crate::model::number) | the same; NaN is `null`, `"inf"` and `"-inf"` quoted |
//! | string of any kind | its bytes without padding | quoted; a null one is `null` |
//! | enumeration | the name, the number where none fits | quoted name, number |
//! | ASDF boolean | `true`, `false` | the same |
//! | enumeration of FALSE and TRUE | the name | `true`, `false` |
//! | complex | `1+2j` | `{"r": 1.0, "i": 2.0}` |
//! | bit field, time | `0x` and the number in hexadecimal | quoted |
//! | opaque with a tag of NumPy's `datetime64` | as ISO 8601; empty for `NaT` | quoted, `null` |
//! | other opaque, numbers over 128 bits | `0x` and the bytes in hexadecimal, in stored order | quoted |
//! | reference to an object with a path | the path; `null` for none | quoted, `null` |
//! | reference to an object without a path | `@0xADDR`; `FILE:@0xADDR` in another file | quoted |
//! | reference to an attribute | `PATH/@NAME` | quoted |
//! | compound | as in JSON | `{"a": 1, "b": [1, 2]}` |
//! | array, variable-length sequence | as in JSON | `[1, 2]`, nested by dimension |
//!
//! JSON is on one line and in UTF-8. A byte that is not UTF-8 is written as `\udcXX`, as in
//! Python's `surrogateescape`, so that `.encode("utf-8", "surrogateescape")` restores the byte.

use crate::error::Result;
use crate::model::datatype::Class;
use crate::model::number::append_formatted;
use crate::model::text::{MAX_ESCAPE_BYTES, json_length, json_text, write_json_text};
use crate::model::walk::{ElementWalker, Value, ValueSink, address_text};
use crate::model::{Datatype, Reference};
use crate::wire::Count;

pub use crate::model::walk::{NodePathResolver, TextContext};

/// A writer of the text of elements of one datatype.
#[derive(Debug)]
pub struct ValueWriter {
    walk: ElementWalker,
    /// Whether the text of an element is JSON: for compounds, arrays and variable-length sequences.
    is_nested: bool,
    /// The writer of each part of a complex number. `None` for elements of another type.
    complex_part: Option<Box<ValueWriter>>,
}

impl ValueWriter {
    /// Creates a writer for elements of `datatype`.
    ///
    /// # Errors
    /// `Limit` for a datatype that is nested too deeply.
    pub fn new(datatype: &Datatype) -> Result<Self> {
        let walk = ElementWalker::new(datatype, &|name| json_text(name) + ": ")?;
        let is_nested = matches!(
            datatype.class,
            Class::Compound(_) | Class::Array { .. } | Class::VariableLength(_)
        );
        let part = match &datatype.class {
            Class::Complex(base) => Some(Box::new(ValueWriter::new(base)?)),
            _ => None,
        };
        Ok(ValueWriter {
            walk,
            is_nested,
            complex_part: part,
        })
    }

    /// Returns the number of bytes of one stored element.
    pub fn size(&self) -> usize {
        self.walk.size()
    }

    /// Appends an element's text: a string's bytes unchanged, nested values as JSON.
    ///
    /// # Errors
    /// `Limit` once `out` exceeds the limit of `context`, `Corrupt` for an element that is too
    /// short. The container's error for an invalid pointer. The text that was already appended
    /// stays in `out`.
    pub fn write_text(
        &self,
        element: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(part) = &self.complex_part {
            return part.write_complex(element, context, out);
        }
        let is_json = self.is_nested;
        let mut text = TextSink {
            is_json,
            context,
            out,
        };
        self.walk.walk_element(element, &mut text)
    }

    /// Appends an element as JSON on one line.
    ///
    /// # Errors
    /// Fails as [`ValueWriter::write_text`] does.
    pub fn write_json(
        &self,
        element: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.write_json_array(element, &[], context, out)
    }

    /// Appends elements in C order as JSON on one line, in brackets nested like `dims`.
    ///
    /// # Errors
    /// Fails as [`ValueWriter::write_text`] does. `Limit` for more elements than can be counted.
    pub fn write_json_array(
        &self,
        elements: &[u8],
        dims: &[u64],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let is_json = true;
        let mut text = TextSink {
            is_json,
            context,
            out,
        };
        self.walk.walk_list(elements, dims, &mut text)
    }

    /// Appends two consecutive elements of the writer's type as a complex number, such as `1+2j`.
    fn write_complex(
        &self,
        element: &[u8],
        context: &TextContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (real, imaginary) = element.split_at(self.size().min(element.len()));
        self.write_text(real, context, out)?;
        drop_point_zero(out);
        let middle = out.len();
        self.write_text(imaginary, context, out)?;
        drop_point_zero(out);
        if out.get(middle) != Some(&b'-') {
            out.insert(middle, b'+');
        }
        out.push(b'j');
        context.check_length(out.len())
    }
}

/// Returns the text of a value that has no parts. The result is empty for any other value.
///
/// # Errors
/// Fails as [`ValueWriter::write_text`] does.
pub fn plain_text(value: Value<'_>, stored: &[u8], context: &TextContext<'_>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut text = TextSink {
        is_json: false,
        context,
        out: &mut out,
    };
    text.write_value(value, stored)?;
    Ok(out)
}

/// A sink that writes values as text.
struct TextSink<'a> {
    is_json: bool,
    context: &'a TextContext<'a>,
    out: &'a mut Vec<u8>,
}

impl ValueSink for TextSink<'_> {
    fn context(&self) -> &TextContext<'_> {
        self.context
    }

    fn length(&self) -> usize {
        self.out.len()
    }

    fn push_text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn write_value(&mut self, value: Value<'_>, stored: &[u8]) -> Result<bool> {
        let is_json = self.is_json;
        match value {
            Value::Integer(integer) => integer.write(self.out),
            Value::Real(real) if is_json && real.is_nan() => self.push_text("null"),
            Value::Real(real) => {
                let is_quoted = is_json && !real.is_json_number();
                within_quotes(is_quoted, self.out, |out| real.write_text(out));
            }
            Value::Bits(pattern, precision) | Value::Time(pattern, precision) => {
                let digits = usize::from(precision.div_ceil(8)).times(2);
                within_quotes(is_json, self.out, |out| {
                    append_formatted(out, format_args!("0x{pattern:0digits$x}"));
                });
            }
            Value::Bool(set) => append_formatted(self.out, format_args!("{set}")),
            Value::Text(text) | Value::DateTime(text) => self.write_text(text)?,
            Value::Null if is_json => self.push_text("null"),
            Value::Null => {}
            Value::Reference(_, target) => self.append_reference(target)?,
            Value::Bytes => self.append_hexadecimal(stored)?,
            // A byte without a name is true, as in NumPy.
            Value::EnumMember {
                name,
                is_boolean: true,
            } if is_json => append_formatted(self.out, format_args!("{}", name != Some(b"FALSE"))),
            Value::EnumMember {
                name: Some(name), ..
            } => self.write_text(name)?,
            Value::EnumMember { name: None, .. } | Value::ByteStrings(_) | Value::Complex(_) => {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl TextSink<'_> {
    fn write_text(&mut self, text: &[u8]) -> Result<()> {
        self.check_length(text.len())?;
        if !self.is_json {
            self.out.extend_from_slice(text);
            return Ok(());
        }
        // Checked before writing, because the escaped text may be much longer than the text.
        if text.len() > self.context.limit.minus_or_zero(self.out.len()) / MAX_ESCAPE_BYTES {
            self.check_length(json_length(text))?;
        }
        write_json_text(text, self.out);
        Ok(())
    }

    fn append_reference(&mut self, target: Reference) -> Result<()> {
        let text = match target {
            Reference::Null => {
                self.push_text("null");
                return Ok(());
            }
            Reference::Dangling(place) => address_text(place),
            Reference::Object(node) | Reference::Region(node) => self.context.node_path(node)?,
            Reference::Attribute { node, name } => {
                let path = self.context.node_path(node)?;
                let slash: &[u8] = if path.ends_with(b"/") { b"@" } else { b"/@" };
                [&path, slash, &name].concat()
            }
            Reference::External {
                file,
                address: place,
            } => [file, address_text(place)].join(&b':'),
        };
        self.write_text(&text)
    }

    /// Appends `bytes` in hexadecimal: `0x` and two digits for each byte.
    fn append_hexadecimal(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_length(bytes.len().times(2))?;
        within_quotes(self.is_json, self.out, |out| {
            out.extend_from_slice(b"0x");
            for byte in bytes {
                append_formatted(out, format_args!("{byte:02x}"));
            }
        });
        Ok(())
    }
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

/// Removes the `.0` of a whole number at the end of `out`, because the parts of a complex number
/// are written without it.
fn drop_point_zero(out: &mut Vec<u8>) {
    if out.ends_with(b".0") {
        out.truncate(out.len().minus_or_zero(2));
    }
}

#[cfg(test)]
pub(crate) mod tests;

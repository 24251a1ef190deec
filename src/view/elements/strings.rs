//! The strings of an array, each with a line feed behind it.
//!
//! | elements | strings |
//! |---|---|
//! | strings of fixed length | each up to its padding; ASDF's UCS-4 as UTF-8 |
//! | strings of variable length | each as the source's tree shows it |
//! | characters of netCDF | joined along the last axis, without the NULs at the end |
//! | MATLAB's chars | the rows of each matrix, UTF-16 as UTF-8 |
//!
//! Bytes that are no UTF-8 stay as they are, and so does a line feed within a string.

pub(crate) mod matlab;

use std::ops::Range;
use std::sync::Arc;

use crate::array::{Engine, HeldMemory};
use crate::error::{Error, Result};
use crate::limits;
use crate::model::datatype::{Class, StringPadding};
use crate::model::shape::product;
use crate::model::value::{Context, ValueWriter};
use crate::model::{Container, Datatype, Node, attribute_value};
use crate::view::elements::{Elements, values_of};
use crate::view::texts::attributes::innermost;
use crate::view::texts::counted::Units;
use crate::wire::{to_u64, to_usize};

/// What the elements of an array are to its strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Strings.
    Strings,
    /// Characters in one byte each, of which the last axis makes strings.
    Characters,
    /// MATLAB's chars.
    Matlab(matlab::Stored),
}

impl Kind {
    /// The kind of the elements of `node`, if it is an array that makes strings.
    ///
    /// # Errors
    /// Fails if that cannot be found out now.
    pub(crate) fn of_node(container: &dyn Container, node: &Node) -> Result<Option<Self>> {
        let Some(array) = node.array() else {
            return Ok(None);
        };
        let datatype = innermost(&array.datatype);
        match &datatype.class {
            Class::String { padding, .. } if datatype.size == 1 => {
                // A terminated string of one byte would have no room for text. Other writers of
                // netCDF have padded ones, as dimensions tell.
                let is_character = *padding == StringPadding::NullTerminated
                    || attribute_value::is_there(container, node.id, b"DIMENSION_LIST")?;
                Ok(Some(if is_character {
                    Kind::Characters
                } else {
                    Kind::Strings
                }))
            }
            Class::Integer { .. } => {
                let stored = matlab::stored(container, node.id, datatype)?;
                Ok(stored.map(Kind::Matlab))
            }
            _ => Ok(Self::of_field(datatype)),
        }
    }

    /// The kind of elements of `datatype` that are a field of others.
    pub(crate) fn of_field(datatype: &Datatype) -> Option<Self> {
        let is_string = matches!(
            datatype.class,
            Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_)
        );
        is_string.then_some(Kind::Strings)
    }
}

/// The strings of an array.
pub(crate) struct Strings {
    elements: Elements,
    engine: Arc<Engine>,
    container: Arc<dyn Container>,
    form: Form,
    count: u64,
}

/// How elements become strings.
enum Form {
    /// Each is one, of a fixed length.
    Fixed(ValueWriter),
    /// Each leads to one.
    Variable { ends_at_nul: bool },
    /// So many make one.
    Characters { length: u64 },
    /// Matrices of them have one in each row.
    Rows(matlab::Rows),
}

impl Strings {
    /// The strings of `elements`, whose pointers `container` follows.
    ///
    /// # Errors
    /// `Limit` for strings that are too long or too many; `Corrupt` for dimensions that contradict
    /// themselves.
    pub(crate) fn new(
        elements: Elements,
        kind: Kind,
        engine: Arc<Engine>,
        container: Arc<dyn Container>,
    ) -> Result<Self> {
        let dims = elements.dims.as_deref();
        let (form, count) = match kind {
            Kind::Strings => (
                Form::of_strings(&elements.datatype)?,
                dims.map_or(Ok(0), product)?,
            ),
            Kind::Characters => match dims {
                Some([outer @ .., length]) => {
                    refuse_long(*length)?;
                    (Form::Characters { length: *length }, product(outer)?)
                }
                Some([]) => (Form::Characters { length: 1 }, 1),
                None => (Form::Characters { length: 0 }, 0),
            },
            Kind::Matlab(stored) => {
                let rows = match stored {
                    matlab::Stored::Chars(unit) => matlab::Rows::new(dims, unit)?,
                    matlab::Stored::Dimensions => matlab::Rows::none(&elements)?,
                };
                refuse_long(rows.bytes())?;
                let count = rows.count()?;
                (Form::Rows(rows), count)
            }
        };
        Ok(Strings {
            elements,
            engine,
            container,
            form,
            count,
        })
    }

    /// Appends strings of elements of a fixed length.
    fn write_fixed(
        &self,
        writer: &ValueWriter,
        strings: &Range<u64>,
        enough: usize,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let _room = self.room(u64::from(self.elements.datatype.size))?;
        let context = Context::without_pointers(usize::MAX);
        self.each(strings, 1, enough, out, |element, out| {
            writer.text(element, &context, out)
        })
    }

    /// Appends strings that elements lead to.
    fn write_variable(
        &self,
        ends_at_nul: bool,
        strings: &Range<u64>,
        enough: usize,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        self.each(strings, 1, enough, out, |element, out| {
            let length = self.variable_length(element, ends_at_nul)?;
            let _room = self.room(length)?;
            let text = match length {
                0 => None,
                _ => self.container.variable_length(element, 1, 0..length)?,
            };
            out.extend_from_slice(&text.unwrap_or_default());
            Ok(())
        })
    }

    fn variable_length(&self, element: &[u8], ends_at_nul: bool) -> Result<u64> {
        let length = if ends_at_nul {
            self.container.text_bytes(element)?
        } else {
            let bytes = self.container.variable_length_bytes(element, 1)?;
            bytes.unwrap_or(0)
        };
        refuse_long(length).map(|()| length)
    }

    /// Appends strings of `length` characters.
    fn write_characters(
        &self,
        length: u64,
        strings: &Range<u64>,
        enough: usize,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let _room = self.room(length)?;
        self.each(strings, length, enough, out, |characters, out| {
            let padding = characters.iter().rev().take_while(|&&byte| byte == 0);
            let text = characters.len() - padding.count();
            out.extend_from_slice(&characters[..text]);
            Ok(())
        })
    }

    /// Hands `strings`, of so many elements each, to `write`, as many as are read at a time, until
    /// `out` has `enough` bytes; gives the one that comes next.
    fn each(
        &self,
        strings: &Range<u64>,
        elements: u64,
        enough: usize,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<u64> {
        let batch = (self.elements.batch() / elements.max(1)).max(1);
        let count = batch.min(strings.end - strings.start);
        let first = strings.start * elements;
        let bytes = self.elements.read(first, count * elements)?;
        let size = bytes.len() / to_usize(count)?;
        for number in 0..count {
            if number > 0 && out.len() >= enough {
                return Ok(strings.start + number);
            }
            let start = to_usize(number)? * size;
            write(&bytes[start..start + size], out)?;
            out.push(b'\n');
        }
        Ok(strings.start + count)
    }

    /// Room for what is read of a string of so many bytes, for its text, and for a part of the
    /// view's text that holds it; none for a short one.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) where, with all that is open, too many are written at a time.
    fn room(&self, bytes: u64) -> Result<Option<HeldMemory>> {
        let is_long = bytes > to_u64(limits::UNCOUNTED_ELEMENT);
        is_long
            .then(|| self.engine.hold(bytes.saturating_mul(3)))
            .transpose()
    }
}

impl Form {
    fn of_strings(datatype: &Datatype) -> Result<Self> {
        if let Class::VariableString { padding, .. } = datatype.class {
            let ends_at_nul = padding == StringPadding::NullTerminated;
            return Ok(Form::Variable { ends_at_nul });
        }
        refuse_long(datatype.size.into())?;
        ValueWriter::new(datatype).map(Form::Fixed)
    }
}

fn refuse_long(bytes: u64) -> Result<()> {
    let most = limits::TEXT_ELEMENT_BYTES;
    if bytes <= most {
        Ok(())
    } else {
        Err(Error::limit("bytes of a string as text", most))
    }
}

impl Units for Strings {
    fn count(&self) -> u64 {
        self.count
    }

    fn values(&self) -> u64 {
        // Strings may be much shorter than what is read of them.
        const BYTES: u64 = limits::COUNTED_BYTES / limits::COUNTED_VALUES;
        let size = u64::from(self.elements.datatype.size);
        let of_each = match &self.form {
            Form::Fixed(_) => size / BYTES,
            Form::Variable { .. } => values_of(&self.elements.datatype),
            Form::Characters { length } => length / BYTES,
            Form::Rows(rows) => rows.columns(),
        };
        let values = self.count.saturating_mul(of_each.max(1));
        values.saturating_add(self.elements.content.chunk_values())
    }

    fn write(&self, units: Range<u64>, enough: usize, out: &mut Vec<u8>) -> Result<u64> {
        match &self.form {
            Form::Fixed(writer) => self.write_fixed(writer, &units, enough, out),
            Form::Variable { ends_at_nul } => {
                self.write_variable(*ends_at_nul, &units, enough, out)
            }
            Form::Characters { length } => self.write_characters(*length, &units, enough, out),
            Form::Rows(rows) => {
                let _room = self.room(rows.bytes_at_a_time())?;
                rows.write(&self.elements, &units, enough, out)
            }
        }
    }

    fn own_bytes(&self) -> u64 {
        self.elements.own_bytes_with(1)
    }
}

#[cfg(test)]
mod tests;

//! The strings of an array, each followed by a line feed.
//!
//! | elements | strings |
//! |---|---|
//! | strings of fixed length | each without its padding; ASDF's UCS-4 as UTF-8 |
//! | strings of variable length | each as stored; up to its first NUL if it is null-terminated |
//! | netCDF characters | joined on the last axis, without trailing NULs |
//! | MATLAB chars | the rows of each matrix, UTF-16 as UTF-8 |
//!
//! Bytes that are not valid UTF-8 are unchanged, and so are line feeds within strings.

pub mod matlab;

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::{CancelToken, Engine, MemoryReservation};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{Class, StringPadding};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::model::{Container, Datatype, Node, attribute_value};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::innermost_type;
use crate::elements::{Elements, formatting_cost};
use crate::limits;
use crate::text_files::counted_text::TextUnits;

/// How the elements of an array store strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringStorage {
    /// Each element is a string.
    Strings,
    /// Each element is a character of one byte. The characters on the last axis form a string.
    Characters,
    /// The elements are MATLAB chars.
    Matlab(matlab::MatlabElements),
}

impl StringStorage {
    /// Returns how the elements of `node` store strings; `None` if `node` is not an array of
    /// strings.
    ///
    /// # Errors
    /// Fails if an attribute of the array cannot be read.
    pub fn from_node(container: &dyn Container, node: &Node) -> Result<Option<Self>> {
        let Some(array) = node.array() else {
            return Ok(None);
        };
        let datatype = innermost_type(&array.datatype);
        match &datatype.class {
            Class::String { padding, .. } if datatype.size == 1 => {
                // A null-terminated string of one byte cannot hold text, so it is a character.
                // Some writers of netCDF pad the characters instead; their arrays have dimension
                // scales.
                let is_character = *padding == StringPadding::NullTerminated
                    || attribute_value::attribute_exists(container, node.id, b"DIMENSION_LIST")?;
                Ok(Some(if is_character {
                    StringStorage::Characters
                } else {
                    StringStorage::Strings
                }))
            }
            Class::Integer { .. } => {
                let stored = matlab::matlab_elements(container, node.id, datatype)?;
                Ok(stored.map(StringStorage::Matlab))
            }
            _ => Ok(Self::from_field_type(datatype)),
        }
    }

    /// Returns how a record's field of type `datatype` stores a string; `None` for other fields.
    pub fn from_field_type(datatype: &Datatype) -> Option<Self> {
        let is_string = matches!(
            datatype.class,
            Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_)
        );
        is_string.then_some(StringStorage::Strings)
    }
}

/// The strings of an array, as a text with one line for each string.
pub struct Strings {
    elements: Elements,
    engine: Arc<Engine>,
    container: Arc<dyn Container>,
    conversion: StringConversion,
    count: u64,
}

/// The rule that converts elements to strings.
enum StringConversion {
    /// Each element is a string of a fixed length.
    Fixed(ValueWriter),
    /// Each element points to a string, which ends at its first NUL if `ends_at_nul`.
    Variable { ends_at_nul: bool },
    /// Each string has this many elements, which are characters.
    Characters { length: u64 },
    /// Each row of a matrix of characters forms a string.
    Rows(matlab::MatlabRows),
}

impl Strings {
    /// Creates the strings of `elements`. `container` follows the pointers of variable-length
    /// elements.
    ///
    /// # Errors
    /// `Limit` for strings that are too long or too many; `Corrupt` for contradictory dimensions.
    pub fn new(
        elements: Elements,
        kind: StringStorage,
        engine: Arc<Engine>,
        container: Arc<dyn Container>,
        cancel: &CancelToken,
    ) -> Result<Self> {
        let dims = elements.dims.as_deref();
        let (form, count) = match kind {
            StringStorage::Strings => (
                StringConversion::from_datatype(&elements.datatype)?,
                dims.map_or(Ok(0), product)?,
            ),
            StringStorage::Characters => match dims {
                Some([outer @ .., length]) => {
                    check_length(*length)?;
                    (
                        StringConversion::Characters { length: *length },
                        product(outer)?,
                    )
                }
                Some([]) => (StringConversion::Characters { length: 1 }, 1),
                None => (StringConversion::Characters { length: 0 }, 0),
            },
            StringStorage::Matlab(stored) => {
                let rows = match stored {
                    matlab::MatlabElements::Chars(unit) => matlab::MatlabRows::new(dims, unit)?,
                    matlab::MatlabElements::Dimensions => {
                        matlab::MatlabRows::from_empty_array(&elements, cancel)?
                    }
                };
                check_length(rows.row_bytes())?;
                let count = rows.count()?;
                (StringConversion::Rows(rows), count)
            }
        };
        Ok(Strings {
            elements,
            engine,
            container,
            conversion: form,
            count,
        })
    }

    /// Writes `strings` from elements of a fixed length, as [`write_batch`](Self::write_batch)
    /// does.
    fn write_fixed(
        &self,
        writer: &ValueWriter,
        strings: &Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let _room = self.reserve_memory(u64::from(self.elements.datatype.size))?;
        let context = TextContext::without_pointers(usize::MAX);
        self.write_batch(strings, 1, (enough, cancel), out, |element, out| {
            writer.write_text(element, &context, out)
        })
    }

    /// Writes `strings` that variable-length elements point to, as
    /// [`write_batch`](Self::write_batch) does.
    fn write_variable(
        &self,
        ends_at_nul: bool,
        strings: &Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        self.write_batch(strings, 1, (enough, cancel), out, |element, out| {
            let length = self.pointed_string_length(element, ends_at_nul)?;
            let _room = self.reserve_memory(length)?;
            let text = match length {
                0 => None,
                _ => self.container.read_variable_length(element, 1, 0..length)?,
            };
            out.extend_from_slice(&text.unwrap_or_default());
            Ok(())
        })
    }

    fn pointed_string_length(&self, element: &[u8], ends_at_nul: bool) -> Result<u64> {
        let length = if ends_at_nul {
            self.container.text_length(element)?
        } else {
            let bytes = self.container.variable_length_bytes(element, 1)?;
            bytes.unwrap_or(0)
        };
        check_length(length).map(|()| length)
    }

    /// Writes `strings` of `length` characters each, as [`write_batch`](Self::write_batch) does.
    fn write_characters(
        &self,
        length: u64,
        strings: &Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let _room = self.reserve_memory(length)?;
        self.write_batch(strings, length, (enough, cancel), out, |characters, out| {
            let padding = characters.iter().rev().take_while(|&&byte| byte == 0);
            let text = characters.len() - padding.count();
            out.extend_from_slice(&characters[..text]);
            Ok(())
        })
    }

    /// Reads a batch of `strings`, each of which has `elements` elements. Writes the strings with
    /// `write` until `out` holds at least `enough` bytes. Returns the number of the first string
    /// that was not written.
    fn write_batch(
        &self,
        strings: &Range<u64>,
        elements: u64,
        (enough, cancel): (usize, &CancelToken),
        out: &mut Vec<u8>,
        mut write: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<u64> {
        let batch = (self.elements.batch_elements() / elements.max(1)).max(1);
        let count = batch.min(strings.end - strings.start);
        let first = strings.start * elements;
        let bytes = self.elements.read(first, count * elements, cancel)?;
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

    /// Reserves memory for a long string of `bytes` bytes: for the string's bytes, for its text,
    /// and for the chunk of output that contains the text. A short string reserves no memory.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if the memory budget of the mount has too little left.
    fn reserve_memory(&self, bytes: u64) -> Result<Option<MemoryReservation>> {
        let is_long = bytes > to_u64(limits::UNCOUNTED_ELEMENT);
        is_long
            .then(|| self.engine.reserve_memory(bytes.saturating_mul(3)))
            .transpose()
    }
}

impl StringConversion {
    fn from_datatype(datatype: &Datatype) -> Result<Self> {
        if let Class::VariableString { padding, .. } = datatype.class {
            let ends_at_nul = padding == StringPadding::NullTerminated;
            return Ok(StringConversion::Variable { ends_at_nul });
        }
        check_length(datatype.size.into())?;
        ValueWriter::new(datatype).map(StringConversion::Fixed)
    }
}

fn check_length(bytes: u64) -> Result<()> {
    let most = limits::TEXT_ELEMENT_BYTES;
    if bytes <= most {
        Ok(())
    } else {
        Err(Error::limit("bytes of a string as text", most))
    }
}

impl TextUnits for Strings {
    fn count(&self) -> u64 {
        self.count
    }

    fn value_count(&self) -> u64 {
        // The text of a string may be much shorter than the bytes that are read for it.
        const BYTES: u64 = limits::COUNTED_BYTES / limits::COUNTED_VALUES;
        let size = u64::from(self.elements.datatype.size);
        let of_each = match &self.conversion {
            StringConversion::Fixed(_) => size / BYTES,
            StringConversion::Variable { .. } => formatting_cost(&self.elements.datatype),
            StringConversion::Characters { length } => length / BYTES,
            StringConversion::Rows(rows) => rows.columns(),
        };
        let values = self.count.saturating_mul(of_each.max(1));
        values.saturating_add(self.elements.content.chunk_values())
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        match &self.conversion {
            StringConversion::Fixed(writer) => {
                self.write_fixed(writer, &units, enough, cancel, out)
            }
            StringConversion::Variable { ends_at_nul } => {
                self.write_variable(*ends_at_nul, &units, enough, cancel, out)
            }
            StringConversion::Characters { length } => {
                self.write_characters(*length, &units, enough, cancel, out)
            }
            StringConversion::Rows(rows) => {
                let _room = self.reserve_memory(rows.whole_matrix_bytes())?;
                rows.write(&self.elements, &units, enough, cancel, out)
            }
        }
    }

    fn own_bytes(&self) -> u64 {
        self.elements.estimate_memory(1)
    }
}

#[cfg(test)]
mod tests;

//! The walk over a stored element, guided by its datatype.
//!
//! An [`ElementWalker`] is created once for a datatype and visits any number of elements. It finds
//! the parts of an element, follows its pointers, and passes each value to a [`ValueSink`], which
//! writes the value as text. Lists and maps look the same in all texts, except for the keys: `[1,
//! 2]`, `{KEY1, KEY2}`.

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::datatype::{Class, ReferenceKind};
use crate::model::datetime64::Datetime64;
use crate::model::number::{self, FloatValue, Integer};
use crate::model::shape::product;
use crate::model::text::{ucs4_to_utf8, without_padding};
use crate::model::{Container, Datatype, NodeId, Reference};
use crate::wire::{Count, to_u64, to_usize};

/// A function that returns a node's path, with names in the encoding of the file, or `None` if the
/// node does not have a path. Fails if the path cannot be determined now.
pub type NodePathResolver<'a> = dyn Fn(NodeId) -> Result<Option<Vec<u8>>> + 'a;

/// The environment of an element's text: pointers, paths and the maximum length.
pub struct TextContext<'a> {
    /// The container that pointers are followed in. Without a container, every pointer reads as
    /// null, like the pointers of a zero fill value.
    pub container: Option<&'a dyn Container>,
    /// The function that returns the path of a reference's target.
    pub paths: &'a NodePathResolver<'a>,
    /// The maximum length of the output in bytes.
    pub limit: usize,
    fetched_bytes: Cell<u64>,
    /// The number of elements in all variable-length sequences that were followed so far.
    followed_count: Cell<u64>,
}

impl<'a> TextContext<'a> {
    /// Creates a context for text of at most `limit` bytes. The number of bytes that are read
    /// through pointers is limited in proportion to `limit`.
    pub fn new(
        container: &'a dyn Container,
        paths: &'a NodePathResolver<'a>,
        limit: usize,
    ) -> Self {
        TextContext {
            container: Some(container),
            paths,
            limit,
            fetched_bytes: Cell::new(0),
            followed_count: Cell::new(0),
        }
    }

    /// Creates a context for text of at most `limit` bytes in which every pointer reads as null.
    pub fn without_pointers(limit: usize) -> Self {
        TextContext {
            container: None,
            paths: &|_| Ok(None),
            limit,
            fetched_bytes: Cell::new(0),
            followed_count: Cell::new(0),
        }
    }

    /// Returns the number of elements in all variable-length sequences that were followed so far.
    pub fn followed_elements(&self) -> u64 {
        self.followed_count.get()
    }

    /// Returns the bytes that a variable-length element points to, or `None` for a null element.
    fn fetch_content(&self, element: &[u8], base_size: usize) -> Result<Option<Vec<u8>>> {
        // Bytes may be padding without text, so the limit of the text alone does not bound them.
        const BYTES_PER_BYTE_OF_TEXT: u64 = 16;
        let Some(container) = self.container else {
            return Ok(None);
        };
        let most = to_u64(self.limit).times(BYTES_PER_BYTE_OF_TEXT);
        let base_size = to_u64(base_size);
        let length = container
            .variable_length_bytes(element, base_size)?
            .unwrap_or(0);
        Error::check_limit(
            length,
            limits::TEXT_ELEMENT_BYTES,
            "a variable-length element of a value",
        )?;
        let fetched = self.fetched_bytes.get().plus(length);
        self.fetched_bytes.set(fetched);
        Error::check_limit(fetched, most, "variable-length bytes of a value")?;
        container.read_variable_length(element, base_size, 0..length)
    }

    fn reference_target(&self, kind: ReferenceKind, element: &[u8]) -> Result<Reference> {
        match self.container {
            Some(container) => container.reference(kind, element),
            None => Ok(Reference::Null),
        }
    }

    /// Returns the path of a node, or its address if the node does not have a path.
    ///
    /// # Errors
    /// Fails if the path cannot be determined now.
    pub fn node_path(&self, node: NodeId) -> Result<Vec<u8>> {
        let path = (self.paths)(node)?;
        Ok(path.unwrap_or_else(|| address_text(node.number())))
    }

    /// Checks that a text of `length` bytes does not exceed the maximum length `limit`.
    ///
    /// # Errors
    /// `Limit` if the text is too long.
    pub fn check_length(&self, length: usize) -> Result<()> {
        Error::check_limit(length, self.limit, "text of a value")?;
        Ok(())
    }
}

/// Returns the text for an address in the file, `@0x…`, for an object without a path.
pub(super) fn address_text(address: u64) -> Vec<u8> {
    format!("@{address:#x}").into_bytes()
}

/// A value that a walk passes to its sink: an element or a part of one.
#[derive(Debug)]
pub enum Value<'a> {
    /// A fixed-point number of at most 128 bits.
    Integer(Integer),
    /// A floating-point number of at most 128 bits.
    Real(FloatValue),
    /// A bit field of at most 128 bits, and its precision in bits.
    Bits(u128, u16),
    /// The bits of a time, and the number of these bits.
    Time(u128, u16),
    /// An ASDF boolean.
    Bool(bool),
    /// A text without its padding.
    Text(&'a [u8]),
    /// The text of a date or time.
    DateTime(&'a [u8]),
    /// A null pointer where a text is expected, or a missing date (`NaT`).
    Null,
    /// The target of a reference.
    Reference(ReferenceKind, Reference),
    /// Uninterpreted bytes: opaque, or a number of more than 128 bits.
    Bytes,
    /// A value of an enumeration. A sink that refuses this value receives the number instead.
    EnumMember {
        /// The name, if the value has one.
        name: Option<&'a [u8]>,
        /// Whether the enumeration is a boolean with the names FALSE and TRUE.
        is_boolean: bool,
    },
    /// A sequence of strings of one byte. A sink that refuses this value receives a list instead.
    ByteStrings(&'a [u8]),
    /// A complex number, with the walker for each of its two parts. A sink that refuses this value
    /// receives a map of `r` and `i` instead.
    Complex(&'a ElementWalker),
}

/// A sink that receives values and writes them as text.
pub trait ValueSink {
    /// Returns the context for following pointers and for the maximum length.
    fn context(&self) -> &TextContext<'_>;

    /// Returns the length of the text so far.
    fn length(&self) -> usize;

    /// Appends brackets, commas, and the keys of maps.
    fn push_text(&mut self, text: &str);

    /// Appends a value whose stored bytes are `stored`. Returns `false` to receive the value's
    /// parts instead.
    ///
    /// # Errors
    /// Fails if the value cannot be written as text, or if its text is too long.
    fn write_value(&mut self, value: Value<'_>, stored: &[u8]) -> Result<bool>;

    /// Checks that the text so far and `more` further bytes together do not exceed the maximum
    /// length.
    ///
    /// # Errors
    /// `Limit` if the text is too long.
    fn check_length(&self, more: usize) -> Result<()> {
        self.context().check_length(self.length().plus(more))
    }
}

/// A walker over the elements of one datatype.
#[derive(Debug)]
pub struct ElementWalker {
    size: usize,
    kind: WalkKind,
}

#[derive(Debug)]
enum WalkKind {
    /// A class without parts.
    Plain(Class),
    Datetime(Datetime64),
    Enumeration {
        base: Box<ElementWalker>,
        /// Stored values with their names, sorted by value without duplicates.
        names: Vec<(Vec<u8>, Vec<u8>)>,
        is_boolean: bool,
    },
    Map {
        fields: Vec<WalkField>,
        is_complex: bool,
    },
    Array {
        base: Box<ElementWalker>,
        dims: Vec<u64>,
    },
    Sequence {
        base: Box<ElementWalker>,
        are_byte_strings: bool,
    },
}

/// A member of a compound, or a part of a complex number.
#[derive(Debug)]
struct WalkField {
    key: String,
    offset: usize,
    walk: ElementWalker,
}

/// A function that formats the name of a compound member as the key of a map, with a colon.
pub type KeyFormatter<'k> = dyn Fn(&[u8]) -> String + 'k;

impl ElementWalker {
    /// Creates a walker for elements of `datatype`. `key` returns the text of the key of each
    /// member.
    ///
    /// # Errors
    /// `Limit` for a datatype that is nested too deeply.
    pub fn new(datatype: &Datatype, key: &KeyFormatter<'_>) -> Result<Self> {
        Self::new_nested(datatype, key, limits::DATATYPE_DEPTH)
    }

    fn new_nested(datatype: &Datatype, key: &KeyFormatter<'_>, depth: usize) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            let most = to_u64(limits::DATATYPE_DEPTH);
            return Err(Error::limit("depth of a datatype", most));
        };
        let inner = |base: &Datatype| Self::new_nested(base, key, depth).map(Box::new);
        let field = |name: &[u8], offset: u32, datatype: &Datatype| {
            Ok(WalkField {
                key: key(name),
                offset: to_usize(offset.into())?,
                walk: Self::new_nested(datatype, key, depth)?,
            })
        };
        let kind = match &datatype.class {
            Class::Enumeration { base, members } => WalkKind::Enumeration {
                base: inner(base)?,
                names: names_by_value(members),
                is_boolean: datatype.is_boolean(),
            },
            Class::Complex(base) => WalkKind::Map {
                fields: vec![field(b"r", 0, base)?, field(b"i", base.size, base)?],
                is_complex: true,
            },
            Class::Compound(members) => WalkKind::Map {
                fields: members
                    .iter()
                    .map(|member| field(&member.name, member.offset, &member.datatype))
                    .collect::<Result<_>>()?,
                is_complex: datatype.complex_part().is_some(),
            },
            Class::Array { base, dims } => WalkKind::Array {
                base: inner(base)?,
                dims: list_dims(dims),
            },
            Class::VariableLength(base) => WalkKind::Sequence {
                base: inner(base)?,
                are_byte_strings: base.size == 1 && matches!(base.class, Class::String { .. }),
            },
            class => match Datetime64::from_datatype(datatype) {
                Some(instant) => WalkKind::Datetime(instant),
                None => WalkKind::Plain(class.clone()),
            },
        };
        let size = to_usize(datatype.size.into())?;
        Ok(ElementWalker { size, kind })
    }

    /// Returns the number of bytes of one stored element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Passes the values of an element to `sink`.
    ///
    /// # Errors
    /// Fails as `sink` does. `Corrupt` for an element that is too short, the container's error for
    /// an invalid pointer. Values that were already passed stay in the sink.
    pub(crate) fn walk_element(&self, element: &[u8], sink: &mut impl ValueSink) -> Result<()> {
        let stored = element_part(element, 0, self.size)?;
        match &self.kind {
            WalkKind::Plain(class) => walk_plain(class, stored, sink)?,
            WalkKind::Datetime(instant) => {
                let mut text = Vec::new();
                let is_there = instant.write_text(stored, &mut text);
                let value = if is_there {
                    Value::DateTime(&text)
                } else {
                    Value::Null
                };
                sink.write_value(value, stored)?;
            }
            WalkKind::Enumeration {
                base,
                names,
                is_boolean,
            } => {
                let found = names.binary_search_by(|(value, _)| value.as_slice().cmp(stored));
                let found = found.ok().and_then(|index| names.get(index));
                let named = Value::EnumMember {
                    name: found.map(|(_, name)| name.as_slice()),
                    is_boolean: *is_boolean,
                };
                if !sink.write_value(named, stored)? {
                    base.walk_element(stored, sink)?;
                }
            }
            WalkKind::Map { fields, is_complex } => walk_map(fields, *is_complex, stored, sink)?,
            WalkKind::Array { base, dims } => base.walk_list(stored, dims, sink)?,
            WalkKind::Sequence {
                base,
                are_byte_strings: are_letters,
            } => {
                let elements = sink
                    .context()
                    .fetch_content(stored, base.size)?
                    .unwrap_or_default();
                if !*are_letters || !sink.write_value(Value::ByteStrings(&elements), stored)? {
                    let count = to_u64(elements.len().checked_div(base.size).unwrap_or(0));
                    let followed = &sink.context().followed_count;
                    followed.set(followed.get().plus(count));
                    base.walk_list(&elements, &[count], sink)?;
                }
            }
        }
        sink.check_length(0)
    }

    /// Passes the values of `elements` in C order to `sink`, in lists nested like the dimensions
    /// `dims`.
    ///
    /// # Errors
    /// Fails as `walk_element` does. `Limit` for more elements than can be
    /// counted.
    pub fn walk_list(
        &self,
        elements: &[u8],
        dims: &[u64],
        sink: &mut impl ValueSink,
    ) -> Result<()> {
        let Some((&count, inner)) = dims.split_first() else {
            return self.walk_element(elements, sink);
        };
        let size = to_usize(product(inner)?)?.times(self.size);
        sink.push_text("[");
        for index in 0..to_usize(count)? {
            if index > 0 {
                sink.push_text(", ");
            }
            let start = index.times(size);
            self.walk_list(element_part(elements, start, size)?, inner, sink)?;
        }
        sink.push_text("]");
        sink.check_length(0)
    }
}

/// Passes an element of a class without parts to `sink`.
fn walk_plain(class: &Class, stored: &[u8], sink: &mut impl ValueSink) -> Result<()> {
    let text;
    let value = match class {
        &Class::Integer {
            order,
            signed,
            bits,
        } => number::decode_integer(stored, order, signed, bits).map(Value::Integer),
        Class::Float(format) => number::float_value(stored, format).map(Value::Real),
        &Class::Bitfield { order, bits } => number::bit_field(stored, order, bits)
            .map(|pattern| Value::Bits(pattern, bits.precision)),
        &Class::Time { order, bits } => number::bit_field(stored, order, bits)
            .map(|pattern| Value::Time(pattern, bits.precision)),
        Class::Bool => Some(Value::Bool(stored.iter().any(|&byte| byte != 0))),
        Class::String { padding, .. } => Some(Value::Text(without_padding(stored, *padding))),
        Class::VariableString { padding, .. } => {
            text = sink.context().fetch_content(stored, 1)?;
            let text = text.as_deref();
            Some(text.map_or(Value::Null, |text| {
                Value::Text(without_padding(text, *padding))
            }))
        }
        Class::Ucs4(order) => {
            text = Some(ucs4_to_utf8(stored, *order));
            text.as_deref().map(Value::Text)
        }
        Class::Reference(kind) => {
            let target = sink.context().reference_target(*kind, stored)?;
            Some(Value::Reference(*kind, target))
        }
        _ => None,
    };
    sink.write_value(value.unwrap_or(Value::Bytes), stored)
        .map(drop)
}

fn walk_map(
    fields: &[WalkField],
    is_complex: bool,
    stored: &[u8],
    sink: &mut impl ValueSink,
) -> Result<()> {
    if is_complex
        && let Some(first) = fields.first()
        && sink.write_value(Value::Complex(&first.walk), stored)?
    {
        return Ok(());
    }
    sink.push_text("{");
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            sink.push_text(", ");
        }
        sink.push_text(&field.key);
        let element = element_part(stored, field.offset, field.walk.size)?;
        field.walk.walk_element(element, sink)?;
    }
    sink.push_text("}");
    Ok(())
}

/// Returns the dimensions of the nested lists for an element that is an array. Returns a single
/// dimension of length 0 if the array has no elements.
fn list_dims(dims: &[u32]) -> Vec<u64> {
    if dims.contains(&0) {
        vec![0]
    } else {
        dims.iter().copied().map(u64::from).collect()
    }
}

/// Returns an enumeration's values with their names, sorted by value. Of several names with the
/// same value, the first in file order is kept.
fn names_by_value(members: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = members
        .iter()
        .map(|(name, value)| (value.clone(), name.clone()));
    let mut names: Vec<_> = pairs.collect();
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    names.dedup_by(|(later, _), (first, _)| later == first);
    names
}

/// Returns `size` bytes of `bytes` from `offset` on.
fn element_part(bytes: &[u8], offset: usize, size: usize) -> Result<&[u8]> {
    let end = offset.checked_add(size);
    end.and_then(|end| bytes.get(offset..end))
        .ok_or_else(|| Error::corrupt("element: it is shorter than its datatype", None))
}

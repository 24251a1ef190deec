//! Writing the attributes, dimension coordinates and ndarrays of a group.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_conventions::dimensions::is_only_dimension;
use h5fs_reader::array::Reader;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::array::Fill;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::ndl::{FlowWriter, Syntax, ndl_type_in, quoted_text};
use h5fs_reader::model::number::FloatValue;
use h5fs_reader::model::storage::Filter;
use h5fs_reader::model::{
    Array, Attribute, Datatype, NodeId, NodeKind, Scalar, ScalarValue, Shape,
};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::documents::attributes::{byte_order, charset_name, filter_name};
use crate::documents::ndl::dimensions::{self, NdlCoordinate};
use crate::documents::ndl::document::{NdlDocument, join_path, split_path};
use crate::documents::ndl::lines::{MapWriter, comment_text};
use crate::documents::ndl::progress::{
    ArraySection, AttributeQueue, MemberNames, SectionKind, WriteStep,
};
use crate::documents::ndl::source::NdlSource;
use crate::documents::ndl::value::format_value;
use crate::elements::innermost_type;
use crate::limits;

/// The key and the value of a storage directive of NDL.
type Directive = (&'static [u8], String);

impl NdlDocument<'_> {
    /// Writes attributes until the output is full, and schedules a step for the remaining ones.
    pub(super) fn write_attributes(&mut self, mut left: AttributeQueue) {
        if let Some(next) = &mut left.next {
            let (source, lines, enough) = (self.source, &mut self.lines, self.pause_bytes);
            let (object, damaged) = (&self.progress.object, &mut *self.on_damaged);
            let mut is_full = false;
            let visited =
                source
                    .container
                    .attributes_from(left.node, next, &mut |attribute: Attribute| {
                        open_attributes_once(lines, &mut left.is_open);
                        let (name, content) = (&attribute.name, attribute.content);
                        let path = || join_path(object, &[b"@", &name[..]].concat());
                        write_attribute(source, lines, name, content, &mut |error| {
                            damaged(&path(), error);
                        });
                        is_full = lines.length() >= enough;
                        if is_full {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    });
            if let Err(error) = visited {
                left.failure.get_or_insert(error);
            }
            if !is_full {
                left.next = None;
            }
        }
        while !self.is_full() {
            let Some((name, node)) = left.texts.get(left.next_text) else {
                return self.end_attributes(&left);
            };
            open_attributes_once(&mut self.lines, &mut left.is_open);
            match self.source.container.node(node) {
                Ok(found) => {
                    if let NodeKind::Scalar(scalar) = &found.kind {
                        let value = format_scalar(self.lines.flow_writer(), scalar);
                        self.lines.write_pair(name, &value);
                    }
                }
                Err(error) => self.report_unreadable(name, &error),
            }
            left.next_text += 1;
        }
        self.push_step(WriteStep::Attributes(left));
    }

    fn end_attributes(&mut self, written: &AttributeQueue) {
        if written.is_open {
            self.lines.close_map();
            self.progress.is_empty = false;
        }
        if let Some(error) = &written.failure {
            self.report_unreadable_part(b"attributes", error);
        }
    }

    /// Writes the next array of a section of the current group.
    pub(super) fn write_next_array(&mut self, mut section: ArraySection) -> Result<()> {
        let Some((name, node)) = section.members.get(section.next) else {
            if section.is_open {
                self.lines.close_map();
            }
            return Ok(());
        };
        if !std::mem::replace(&mut section.is_open, true) {
            self.progress.is_empty = false;
            self.lines.open_map(match section.kind {
                SectionKind::Coordinates => b"dimcoords",
                SectionKind::Arrays => b"ndarrays",
            });
        }
        let found = match self.source.container.node(node) {
            Ok(found) => found,
            // The node was read before, so an error here means that memory is short or the file has
            // changed.
            Err(error) => {
                self.push_step(WriteStep::Arrays(section));
                return Err(error);
            }
        };
        section.next += 1;
        if let NodeKind::Array(array) = &found.kind {
            self.progress.object = join_path(&self.progress.path, name);
            self.lines.open_map(name);
            let kind = section.kind;
            self.push_step(WriteStep::Arrays(section));
            self.push_step(WriteStep::Close);
            self.push_step(WriteStep::Attributes(AttributeQueue::new(
                node,
                MemberNames::default(),
            )));
            if let Err(error) = &array.storage {
                self.report_unreadable_part(b"elements", error);
            }
            match kind {
                SectionKind::Coordinates => self.write_coordinate(node, array),
                SectionKind::Arrays => self.write_array(node, array),
            }
            if self.has_too_many_needed() {
                let most = to_u64(limits::NDL_NAMES);
                return Err(Error::limit("names of a document's coordinates", most));
            }
        } else {
            self.push_step(WriteStep::Arrays(section));
        }
        Ok(())
    }

    /// Writes a dimension coordinate.
    fn write_coordinate(&mut self, node: NodeId, array: &Arc<Array>) {
        let size = array.shape.dims().first().copied().unwrap_or(0);
        let is_unlimited = dimensions::is_unlimited(array);
        let shown = if is_unlimited {
            "null".to_owned()
        } else {
            size.to_string()
        };
        self.lines.write_pair(b"size", &shown);
        self.write_datatype(&array.datatype);
        let is_bare = is_only_dimension(&*self.source.container, node);
        if !self.value_or_report(b"value", is_bare) {
            self.write_value(array, limits::NDL_VALUES);
        }
        let present = is_unlimited.then(|| (&b"size"[..], size.to_string()));
        self.write_storage(array, present);
    }

    /// Writes an array of the current group that is not a coordinate.
    fn write_array(&mut self, node: NodeId, array: &Arc<Array>) {
        let coordinates = dimensions::coordinates(self.source, node, array, &self.progress.path);
        let mut coordinates = self.value_or_report(b"shape", coordinates);
        coordinates.resize(array.shape.dims().len(), None);
        let present = self.write_shape(array, &coordinates);
        self.write_datatype(&array.datatype);
        if self.options.values > 0 {
            self.write_value(array, self.options.values);
        }
        self.write_storage(array, present);
    }

    fn write_datatype(&mut self, datatype: &Datatype) {
        let datatype = ndl_type_in(self.options.syntax, datatype);
        self.lines.write_pair(b"type", &datatype);
    }

    /// Writes the shape of an array. If the shape has an unlimited dimension, returns the storage
    /// directive with the current extent.
    fn write_shape(
        &mut self,
        array: &Array,
        coordinates: &[Option<NdlCoordinate>],
    ) -> Option<Directive> {
        let Shape::Simple { dims, max } = &array.shape else {
            self.lines.write_comment("null dataspace");
            self.lines.write_pair(b"shape", "[0]");
            return None;
        };
        let mut shown = self.lines.flow_writer();
        let mut is_open = false;
        let dimensions = dims.iter().zip(max).zip(coordinates);
        shown.write_list(dimensions, |((dim, max), coordinate), shown| {
            match coordinate {
                Some(coordinate) => {
                    is_open |= coordinate.is_unlimited;
                    self.record_needed_coordinate(coordinate);
                    let (parent, name) = split_path(&coordinate.path);
                    shown.write_text(if parent == self.progress.path {
                        name
                    } else {
                        &coordinate.path
                    });
                }
                None if max.is_none() => {
                    is_open = true;
                    shown.push("null");
                }
                None => shown.append(format_args!("{dim}")),
            };
        });
        self.lines.write_pair(b"shape", &shown.finish());
        let bounded = |(dim, max): (&u64, &Option<u64>)| max.is_some_and(|max| max > *dim);
        if dims.iter().zip(max).any(bounded) {
            let bounds: Vec<_> = max
                .iter()
                .map(|max| max.map_or("null".to_owned(), |max| max.to_string()))
                .collect();
            let comment = format!("may grow to [{}]", bounds.join(", "));
            self.lines.write_comment(&comment);
        }
        is_open.then(|| (&b"shape"[..], format!("{dims:?}")))
    }

    /// Writes the value of an array; a comment if the array has more than `most` elements.
    fn write_value(&mut self, array: &Arc<Array>, most: u64) {
        match read_value(self.source, self.options.syntax, array, most) {
            Ok(value) => self.lines.write_pair(b"value", &value),
            Err(Error::Limit { .. }) => self.lines.write_comment("value: too long to show"),
            Err(error) => self.report_unreadable_part(b"value", &error),
        }
    }

    /// Writes the storage directives of an array. `present` is the directive with the current
    /// extent.
    fn write_storage(&mut self, array: &Array, present: Option<Directive>) {
        let mut directives: Vec<Directive> = present.into_iter().collect();
        // In a damaged file, the chunks may have a different rank than the array.
        let has_rank = |chunk: &&Vec<u64>| chunk.len() == array.shape.dims().len();
        if let Some(chunk_shape) = array.chunk_shape.as_ref().filter(has_rank) {
            directives.push((b"chunk", format!("{chunk_shape:?}")));
        }
        if !array.pipeline.0.is_empty() {
            let mut filters = self.lines.flow_writer();
            filters.write_list(array.pipeline.0.iter(), write_filter);
            directives.push((b"filter", filters.finish()));
        }
        let encoding = encoding_directives(&array.datatype);
        directives.extend(encoding.map(|(key, word)| (key, self.quote_word(word))));
        if let Fill::Value(element) = &array.fill
            && !array.datatype.has_pointers()
            && let Ok(fill) = format_value(
                self.source,
                self.options.syntax,
                &array.datatype,
                &[],
                element,
            )
        {
            directives.push((b"fillvalue", fill));
        }
        if directives.is_empty() {
            return;
        }
        self.lines.write_map(b"storage", |lines| {
            for (key, value) in &directives {
                lines.write_pair(key, value);
            }
        });
    }

    fn quote_word(&self, word: &str) -> String {
        quoted_text(self.options.syntax, word.as_bytes())
    }
}

/// Writes the key `attributes`, unless `is_open` says that it is already written.
fn open_attributes_once(lines: &mut MapWriter<'_>, is_open: &mut bool) {
    if !std::mem::replace(is_open, true) {
        lines.open_map(b"attributes");
    }
}

/// Writes an attribute. A single string is written in NDL's short form, as a name and a text, which
/// cannot be confused with another datatype. Other values are written in the full form, with shape,
/// type and value.
fn write_attribute(
    source: &NdlSource,
    lines: &mut MapWriter<'_>,
    name: &[u8],
    content: Result<AttributeContent>,
    damaged: &mut dyn FnMut(&Error),
) {
    let content = match content {
        Ok(content) => content,
        Err(error) => {
            damaged(&error);
            return write_damaged(lines, name, &error);
        }
    };
    let value = match content.shape {
        Shape::Null => Ok("[]".to_owned()),
        Shape::Simple { ref dims, .. } => format_value(
            source,
            lines.syntax(),
            &content.datatype,
            dims,
            &content.elements,
        ),
    };
    let is_string = matches!(
        content.datatype.class,
        Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_)
    );
    let is_scalar = matches!(&content.shape, Shape::Simple { dims, .. } if dims.is_empty());
    if let Ok(value) = &value
        && is_string
        && is_scalar
        && value != "null"
    {
        return lines.write_pair(name, value);
    }
    lines.write_map(name, |lines| {
        match &content.shape {
            Shape::Null => {
                lines.write_comment("null dataspace");
                lines.write_pair(b"shape", "[0]");
            }
            Shape::Simple { dims, .. } => lines.write_pair(b"shape", &format!("{dims:?}")),
        }
        lines.write_pair(b"type", &ndl_type_in(lines.syntax(), &content.datatype));
        match value {
            Ok(value) => lines.write_pair(b"value", &value),
            Err(error) => {
                if !matches!(error, Error::Limit { .. }) {
                    damaged(&error);
                }
                lines.write_comment(&comment_text(error.to_string().as_bytes()));
                lines.write_pair(b"value", "null");
            }
        }
        let mut directives = lines.flow_writer();
        for (key, word) in encoding_directives(&content.datatype) {
            directives.push(if directives.length() > 0 { ", " } else { "{" });
            directives.write_key(key);
            directives.write_text(word.as_bytes());
        }
        if directives.length() > 0 {
            directives.push("}");
            lines.write_pair(b"storage", &directives.finish());
        }
    });
}

/// Writes an attribute whose value cannot be read: its name with a null value, and a comment with
/// the reason.
fn write_damaged(lines: &mut MapWriter<'_>, name: &[u8], error: &Error) {
    lines.write_comment(&comment_text(error.to_string().as_bytes()));
    lines.write_pair(name, "null");
}

/// Reads all elements of an array, and formats them as a value.
fn read_value(source: &NdlSource, syntax: Syntax, array: &Arc<Array>, most: u64) -> Result<String> {
    let count = array.shape.elements()?;
    Error::check_limit(count, most, "elements of a value")?;
    let length = array.byte_length()?;
    if length > to_u64(limits::NDL_VALUE_BYTES) {
        return Err(Error::limit("bytes of a value", length));
    }
    let reader = Reader::new(&source.engine, Arc::clone(array))?;
    let elements = reader.read(0, to_usize(length)?)?;
    match array.shape {
        Shape::Null => Ok("[]".to_owned()),
        Shape::Simple { ref dims, .. } => {
            format_value(source, syntax, &array.datatype, dims, &elements)
        }
    }
}

/// Returns the storage directives with the byte order of numbers and the character set of strings.
fn encoding_directives(datatype: &Datatype) -> impl Iterator<Item = (&'static [u8], &'static str)> {
    let order = byte_order(datatype);
    let endian = matches!(order, "little" | "big").then_some((&b"endian"[..], order));
    let charset = match &innermost_type(datatype).class {
        Class::String { charset, .. } | Class::VariableString { charset, .. } => {
            Some(charset_name(*charset))
        }
        Class::Ucs4(_) => Some("ucs4"),
        _ => None,
    };
    let charset = charset.map(|charset| (&b"charset"[..], charset));
    endian.into_iter().chain(charset)
}

/// Writes a filter: its name, and its parameters if it has any.
fn write_filter(filter: &Filter, out: &mut FlowWriter) {
    const DEFLATE: u16 = 1;
    const LAST_OF_HDF5: u16 = 6;
    let name = filter_name(filter);
    let name = name.as_bytes();
    let parameters = &filter.parameters;
    match (filter.id, parameters.first()) {
        (DEFLATE, Some(level)) => out.write_map(name, |out| {
            out.write_map(b"level", |out| out.append(format_args!("{level}")));
        }),
        (..=LAST_OF_HDF5, None) | (2 | 3, _) => out.write_text(name),
        (..=LAST_OF_HDF5, _) => out.write_map(name, |out| {
            out.write_map(b"parameters", |out| {
                out.append(format_args!("{parameters:?}"));
            });
        }),
        (id, _) => out.write_map(name, |out| {
            out.write_map(b"id", |out| {
                out.append(format_args!("{id}"));
                if !parameters.is_empty() {
                    out.next_key(b"parameters");
                    out.append(format_args!("{parameters:?}"));
                }
            });
        }),
    }
}

/// Formats the value of an ASDF scalar in NDL: a number, a boolean, null or text.
fn format_scalar(mut out: FlowWriter, scalar: &Scalar) -> String {
    match &scalar.value {
        ScalarValue::Null => out.push("null"),
        ScalarValue::Bool(value) => out.append(format_args!("{value}")),
        ScalarValue::Int(digits) => out.push(digits),
        ScalarValue::Float(value) => {
            let mut number = Vec::new();
            FloatValue::Double(*value).write_text(&mut number);
            out.write_number(&number);
        }
        ScalarValue::Complex(..)
        | ScalarValue::Timestamp
        | ScalarValue::Binary
        | ScalarValue::String => {
            out.write_text(scalar.text.as_bytes());
        }
    }
    out.finish()
}

//! A scalar, a mapping or a sequence of an ASDF tree as JSON. The JSON has plain values, without
//! tags.
//!
//! | in the tree | in JSON |
//! |---|---|
//! | mapping | an object with the names of the mount |
//! | sequence | a list |
//! | null, boolean, integer of any size, float | the same; `null` for NaN, `"inf"` and `"-inf"` for infinities |
//! | complex number | `{"r": 1.0, "i": 2.0}` |
//! | text, date, base64, or a node with a tag of its own | a string |
//! | ndarray | `{"path": "/a/b", "shape": [2, 3], "datatype": "float64"}`; `error` if it cannot be read |
//! | alias of a short scalar, also one inserted by a merge key | the scalar |
//! | any other alias | `{"$ref": "#/a/b"}`, with the path of the node itself |
//! | `$ref` | `{"$ref": "#/a/b"}`, `{"$ref": "FILE#/a/b"}` |
//!
//! Pointers are relative to the root of the tree, even if the JSON contains only a part of the
//! tree. The datatype has the same notation as in an ASDF file. Each entry of a mapping has its own
//! line, and the items of a list are on one line.

use std::sync::Arc;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::ndl::{Syntax, ndl_type_in};
use h5fs_reader::model::number::append_formatted;
use h5fs_reader::model::text::{JsonObject, write_json_list, write_json_text};
use h5fs_reader::model::{
    Array, Container, Datatype, LinkStream, LinkTarget, NodeId, NodeKind, Scalar,
};
use h5fs_reader::wire::to_u64;

use crate::documents::attributes::shape_text;
use crate::limits;
use crate::text_files::streamed::ResumableText;

/// The JSON text of a node of an ASDF tree.
pub struct AsdfJson {
    container: Arc<dyn Container>,
    node: NodeId,
}

/// A position in the JSON text of an ASDF node, from which writing can resume.
#[derive(Default)]
pub struct JsonPosition {
    has_begun: bool,
    /// The mappings and sequences whose entries are being written, innermost last.
    open_levels: Vec<OpenLevel>,
    /// Number of bytes of the text before this position.
    written: u64,
}

/// A mapping or sequence whose entries are being written.
struct OpenLevel {
    links: Box<dyn LinkStream>,
    is_sequence: bool,
}

impl AsdfJson {
    /// Creates the JSON text of `node`.
    pub fn new(container: Arc<dyn Container>, node: NodeId) -> Self {
        AsdfJson { container, node }
    }

    /// Returns the whole JSON text.
    ///
    /// # Errors
    /// `Limit` if the text is longer than [`limits::ASDF_JSON_SIZED`] bytes. Fails if a node in it
    /// cannot be read.
    pub fn whole_text(&self, cancel: &CancelToken) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let is_more = self.write_from(
            &mut self.begin(),
            limits::ASDF_JSON_SIZED,
            cancel,
            &mut text,
        )?;
        if is_more || text.len() > limits::ASDF_JSON_SIZED {
            Err(Error::limit(
                "text as JSON",
                to_u64(limits::ASDF_JSON_SIZED),
            ))
        } else {
            Ok(text)
        }
    }

    /// Writes the next part of the text: the beginning, the next entry of the innermost mapping or
    /// sequence, or its end. Returns whether there may be more parts.
    fn write_part(&self, place: &mut JsonPosition, out: &mut Vec<u8>) -> Result<bool> {
        if !place.has_begun {
            let opened = self.write_node(self.node, out)?;
            place.has_begun = true;
            place.open_levels.extend(opened);
        } else {
            let depth = place.open_levels.len();
            let Some(level) = place.open_levels.last_mut() else {
                return Ok(false);
            };
            match self.write_entry(level, depth, out)? {
                Some(opened) => place.open_levels.extend(opened),
                None => {
                    place.open_levels.pop();
                }
            }
        }
        let is_more = !place.open_levels.is_empty();
        if !is_more {
            out.push(b'\n');
        }
        Ok(is_more)
    }

    /// Writes the next entry of a mapping or sequence, or the closing bracket after the last entry.
    /// Returns `None` after the last entry. If the entry is itself a mapping or sequence, returns
    /// its level, because its entries follow.
    fn write_entry(
        &self,
        level: &mut OpenLevel,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<Option<OpenLevel>>> {
        let is_first = level.links.position() == 0;
        let Some(link) = level.links.next()? else {
            if level.is_sequence {
                out.push(b']');
            } else {
                if !is_first {
                    break_line(depth - 1, out);
                }
                out.push(b'}');
            }
            return Ok(None);
        };
        if level.is_sequence {
            out.extend_from_slice(if is_first { b"" } else { b", " });
        } else {
            out.extend_from_slice(if is_first { b"" } else { b"," });
            break_line(depth, out);
            write_json_text(&link.name, out);
            out.extend_from_slice(b": ");
        }
        match &link.target {
            LinkTarget::Hard(node) => self.write_node(*node, out).map(Some),
            other => self.write_link(other, out).map(|()| Some(None)),
        }
    }

    /// Writes a scalar, an ndarray, or the opening bracket of a mapping or sequence. Returns the
    /// level of a mapping or sequence, because its entries follow; `None` for any other node.
    fn write_node(&self, id: NodeId, out: &mut Vec<u8>) -> Result<Option<OpenLevel>> {
        let container = &*self.container;
        let node = container.node(id)?;
        if let Some(array) = node.array() {
            let names = container.alias_path(&LinkTarget::Alias(id))?;
            write_array(array, &names, out)?;
            return Ok(None);
        }
        match &node.kind {
            NodeKind::Scalar(scalar) => {
                scalar.write_json(out);
                Ok(None)
            }
            NodeKind::Group => {
                // Some entries of the group are unknown.
                if let Some(error) = &node.error {
                    return Err(error.clone());
                }
                let extras = container.asdf_extras();
                let is_sequence = extras.is_some_and(|extras| extras.is_sequence(id));
                let links = container.links(id)?;
                out.push(if is_sequence { b'[' } else { b'{' });
                Ok(Some(OpenLevel { links, is_sequence }))
            }
            NodeKind::Array(_) | NodeKind::CommittedDatatype(_) => Err(Error::NotFound),
        }
    }

    /// Writes an alias or reference: the value of a short scalar, or a JSON pointer to any other
    /// node.
    fn write_link(&self, target: &LinkTarget, out: &mut Vec<u8>) -> Result<()> {
        match target {
            LinkTarget::Alias(node) => {
                if let NodeKind::Scalar(scalar) = &self.container.node(*node)?.kind
                    && is_short_scalar(scalar)
                {
                    scalar.write_json(out);
                    return Ok(());
                }
            }
            LinkTarget::Damaged(error) => return Err(error.clone()),
            _ => {}
        }
        let names = self.container.alias_path(target)?;
        let file = target.other_file_name().unwrap_or_default();
        let mut object = JsonObject::default();
        object.add_text("$ref", json_pointer(file, &names));
        out.extend_from_slice(object.finish().as_bytes());
        Ok(())
    }
}

impl ResumableText for AsdfJson {
    type ResumePoint = JsonPosition;

    fn begin(&self) -> JsonPosition {
        JsonPosition::default()
    }

    /// # Errors
    /// `Limit` if the text is longer than [`limits::ASDF_JSON`] bytes. Fails if a node in it cannot
    /// be read.
    fn write_from(
        &self,
        place: &mut JsonPosition,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        loop {
            cancel.check_cancelled()?;
            Error::check_limit(place.written, limits::ASDF_JSON, "text as JSON")?;
            let before = out.len();
            let is_more = self.write_part(place, out)?;
            place.written = place.written.saturating_add(to_u64(out.len() - before));
            if !is_more || out.len() >= enough {
                return Ok(is_more);
            }
        }
    }

    fn progress_bytes(&self, place: &JsonPosition) -> u64 {
        let level = |level: &OpenLevel| to_u64(size_of::<OpenLevel>()) + level.links.weight();
        place.open_levels.iter().map(level).sum()
    }
}

/// Returns whether an alias to `scalar` is written as the scalar's value, because a JSON pointer
/// would hardly be shorter.
fn is_short_scalar(scalar: &Scalar) -> bool {
    scalar.text.len() <= limits::REPEATED_SCALAR
}

fn break_line(depth: usize, out: &mut Vec<u8>) {
    // Without this bound, the text of a deep tree would be mostly indentation.
    const DEEPEST: usize = 32;
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * depth.min(DEEPEST)));
}

/// Formats a reference to a node: a JSON pointer as the fragment of a URI. `names` is the path of
/// the node in the file `file`; an empty `file` means the same file.
fn json_pointer(file: &[u8], names: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    percent_encode(file, &mut out);
    out.push(b'#');
    for name in names {
        out.push(b'/');
        for &byte in name {
            match byte {
                b'~' => out.extend_from_slice(b"~0"),
                b'/' => out.extend_from_slice(b"~1"),
                byte => percent_encode(&[byte], &mut out),
            }
        }
    }
    out
}

/// Appends a part of a URI with percent encoding. Characters outside ASCII are not encoded.
fn percent_encode(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'%'
            | b'#'
            | b'"'
            | b'<'
            | b'>'
            | b'\\'
            | b'^'
            | b'`'
            | b'{'
            | b'|'
            | b'}'
            | 0..=b' '
            | 0x7F => append_formatted(out, format_args!("%{byte:02X}")),
            byte => out.push(byte),
        }
    }
}

/// Writes an ndarray as an object with its path, shape and datatype.
fn write_array(array: &Array, names: &[Vec<u8>], out: &mut Vec<u8>) -> Result<()> {
    let path = names.iter().flat_map(|name| [b"/", &name[..]].concat());
    let mut object = JsonObject::default();
    object.add_text("path", path.collect::<Vec<u8>>());
    match &array.storage {
        Err(error) if error.is_transient() => return Err(error.clone()),
        Err(error) => object.add_text("error", error.to_string()),
        Ok(_) => {
            object.add_json("shape", shape_text(&array.shape));
            write_datatype(&array.datatype, object.add_key("datatype"));
        }
    }
    out.extend_from_slice(object.finish().as_bytes());
    Ok(())
}

/// Writes a datatype in the notation of `core/ndarray`, without the byte order.
fn write_datatype(datatype: &Datatype, out: &mut Vec<u8>) {
    let size = datatype.size;
    let bits = size.saturating_mul(8);
    match &datatype.class {
        Class::Bool => out.extend_from_slice(b"\"bool8\""),
        Class::Integer { signed, .. } => {
            let sign = if *signed { "" } else { "u" };
            append_formatted(out, format_args!("\"{sign}int{bits}\""));
        }
        Class::Float(_) => append_formatted(out, format_args!("\"float{bits}\"")),
        Class::Complex(_) => append_formatted(out, format_args!("\"complex{bits}\"")),
        Class::String { .. } => append_formatted(out, format_args!("[\"ascii\", {size}]")),
        Class::Ucs4(_) => append_formatted(out, format_args!("[\"ucs4\", {}]", size / 4)),
        Class::Array { base, .. } => write_datatype(base, out),
        Class::Compound(members) => write_json_list(members, out, |member, out| {
            let mut object = JsonObject::default();
            object.add_text("name", &member.name);
            write_datatype(&member.datatype, object.add_key("datatype"));
            if let Class::Array { dims, .. } = &member.datatype.class {
                object.add_json("shape", format_args!("{dims:?}"));
            }
            out.extend_from_slice(object.finish().as_bytes());
        }),
        // ndarrays have only the datatypes above.
        _ => out.extend_from_slice(ndl_type_in(Syntax::Json, datatype).as_bytes()),
    }
}

#[cfg(test)]
mod tests;

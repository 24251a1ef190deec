//! The properties of an object on its page: links to related files, attributes, datatype and
//! storage.

use std::ops::ControlFlow;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::ndl::ndl_type;
use h5fs_reader::model::{Array, NodeKind, Shape};

use crate::documents::attributes::{builtin_attributes, xattr_text};
use crate::documents::html::markup::Html;
use crate::documents::html::object::PageObject;
use crate::documents::html::page_draft::{PageDraft, format_size};
use crate::documents::html::{axes, recipes, references, summary};
use crate::limits;

/// Writes the attributes of the object.
pub(super) fn write_attributes(object: &PageObject<'_>, draft: &mut PageDraft) {
    let (mut count, mut bytes) = (0, 0);
    let visited = object
        .container
        .attributes(object.node.id, &mut |attribute| {
            if count == 0 {
                draft.write_heading("Attributes");
                draft.body.markup("<dl>\n");
            }
            if count == limits::HTML_ATTRIBUTES || bytes >= limits::HTML_ATTRIBUTE_TEXT {
                draft.body.markup("<dt>…</dt><dd></dd>\n");
                return ControlFlow::Break(());
            }
            if count == limits::HTML_UNFOLDED {
                draft
                    .body
                    .markup("</dl>\n<details><summary>More attributes</summary><dl>\n");
            }
            count += 1;
            draft.body.markup("<dt>");
            match object.site.attribute_url(&attribute.name) {
                Some(url) => draft.body.link(&url, &attribute.name),
                None => draft.body.text(&attribute.name),
            };
            draft.body.markup("</dt><dd>");
            match attribute
                .content
                .and_then(|content| shown_value(object, &content))
            {
                Ok(ShownValue::Text(value)) => {
                    bytes += value.len();
                    write_value(&value, draft);
                }
                Ok(ShownValue::Links(links, length)) => {
                    bytes += length;
                    draft.body.append_html(&links);
                }
                Err(error) => draft.write_error(&error),
            }
            draft.body.markup("</dd>\n");
            ControlFlow::Continue(())
        });
    if count > 0 {
        draft.body.markup("</dl>\n");
    }
    if count > limits::HTML_UNFOLDED {
        draft.body.markup("</details>\n");
    }
    if let Err(error) = visited {
        draft.write_error(&error);
    }
}

/// Writes the text of an attribute's value. Only the beginning of a long text is visible until the
/// user expands it.
fn write_value(value: &[u8], draft: &mut PageDraft) {
    if value.len() <= limits::HTML_TEXT {
        draft.body.text(value);
        return;
    }
    draft.body.markup("<details><summary>").text(value);
    draft.body.markup("</summary>").long_text(value);
    draft.body.markup("</details>");
}

/// The text or the links that a page shows for the value of an attribute.
enum ShownValue {
    Text(Vec<u8>),
    /// References to objects, as links, and the length of the links' texts in bytes.
    Links(Html, usize),
}

/// Returns the text or the links that a page shows for an attribute's value. For a value that is
/// too long, the text is the number of its elements.
fn shown_value(object: &PageObject<'_>, content: &AttributeContent) -> Result<ShownValue> {
    let text = match xattr_text(&**object.container, &*object.paths, content) {
        Err(Error::Limit { .. }) => {
            let count = content.shape.elements()?;
            format!("{count} elements").into_bytes()
        }
        Ok(text) if text.len() <= limits::HTML_TEXT => {
            let links = references::attribute_links(object, content)?;
            return Ok(match links {
                Some(links) => ShownValue::Links(links, text.len()),
                None => ShownValue::Text(text),
            });
        }
        text => text?,
    };
    Ok(ShownValue::Text(text))
}

/// Writes the properties of the object: datatype, shape, storage and so on.
pub(super) fn write_properties(object: &PageObject<'_>, draft: &mut PageDraft) {
    draft.write_heading("Properties");
    draft.body.markup("<dl>\n");
    let stored = object.site.stored_bytes(object.node);
    let stored = stored.filter(|_| object.node.array().is_some());
    let stored = stored.map(|bytes| ("h5fs.stored", format_size(bytes).into_bytes()));
    for (name, value) in builtin_attributes(object.node, object.path)
        .into_iter()
        .chain(stored)
    {
        let name = name.strip_prefix("h5fs.").unwrap_or(name);
        draft.body.markup("<dt>").text(name).markup("</dt><dd>");
        draft.body.text(value).markup("</dd>\n");
    }
    draft.body.markup("</dl>\n");
}

/// Writes links to the files of the mount that show the same object. With `are_many`, the group has
/// so many members that it is not examined whether it is a table, and links to table files are
/// omitted.
pub(super) fn write_files(object: &PageObject<'_>, are_many: bool, draft: &mut PageDraft) {
    let files = match object.site.sibling_files(!are_many) {
        Ok(files) => files,
        Err(error) => return draft.write_error(&error),
    };
    if files.is_empty() {
        return;
    }
    let own: &[u8] = match object.node.kind {
        NodeKind::Group => b"directory",
        _ => b"raw",
    };
    let head = &mut draft.head;
    head.markup("<details class=\"download\"><summary>Download</summary>\n<p class=\"files\">\n");
    for file in &files {
        let label = match file.tree {
            b"" => own.to_vec(),
            tree => match file.suffix.strip_prefix(b".") {
                Some(suffix) if suffix != tree => [tree, b" (", suffix, b")"].concat(),
                _ => tree.to_vec(),
            },
        };
        head.markup("<span>").link(&file.url, label);
        if let Some(bytes) = file.bytes {
            head.markup(" <small>")
                .text(format_size(bytes))
                .markup("</small>");
        }
        head.markup("</span>\n");
    }
    head.markup("</p>\n");
    recipes::write(object, &files, head);
    head.markup("</details>\n");
}

/// Writes the long name, the unit, the datatype, the dimensions and the size of the object, next to
/// its name.
pub(super) fn write_facts(object: &PageObject<'_>, draft: &mut PageDraft) {
    let mut parts = Vec::new();
    match summary::kind_label(object, object.node) {
        Ok(label) => parts.extend(label),
        Err(error) => draft.is_partial |= error.is_transient(),
    }
    if let Some(array) = object.node.array() {
        let kind = ndl_type(&array.datatype);
        let dims = dimensions_text(object, array, draft);
        parts.push([kind.as_bytes(), b" ", &dims].concat());
        let stored = object.site.stored_bytes(object.node);
        parts.extend(stored.map(|bytes| format_size(bytes).into_bytes()));
    }
    if !parts.is_empty() {
        draft.head.markup("<p class=\"facts\">");
        draft
            .head
            .text(parts.join(&b" \xc2\xb7 "[..]))
            .markup("</p>\n");
    }
}

/// Returns the lengths of an array's dimensions, with their names where they are known:
/// `[time 36, lat 90]`.
fn dimensions_text(object: &PageObject<'_>, array: &Array, draft: &mut PageDraft) -> Vec<u8> {
    let dims = array.shape.dims();
    if array.shape == Shape::Null {
        return b"null".to_vec();
    }
    let axes = axes::dimension_axes(object, dims).unwrap_or_else(|error| {
        draft.is_partial |= error.is_transient();
        Vec::new()
    });
    let each = dims.iter().enumerate().map(|(number, length)| {
        let name = axes.get(number).map_or(&b""[..], |axis| &axis.name);
        let length = length.to_string();
        match name {
            b"" => length.into_bytes(),
            name => [name, b" ", length.as_bytes()].concat(),
        }
    });
    let each: Vec<_> = each.collect();
    [b"[", &each.join(&b", "[..])[..], b"]"].concat()
}

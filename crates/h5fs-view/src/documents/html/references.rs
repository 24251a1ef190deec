//! References to objects, as links to their pages.

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{Class, Datatype, ReferenceKind};
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::model::{NodeId, Reference};
use h5fs_reader::wire::to_usize;

use crate::documents::html::markup::{Html, Url};
use crate::documents::html::object::PageObject;
use crate::limits;

/// Formats an attribute whose elements are references or lists of references, as links. Returns
/// `None` for any other attribute.
///
/// # Errors
/// Fails if a reference cannot be read.
pub(super) fn attribute_links(
    object: &PageObject<'_>,
    content: &AttributeContent,
) -> Result<Option<Html>> {
    let datatype = &content.datatype;
    let (base, is_list) = match &datatype.class {
        Class::VariableLength(base) => (&**base, true),
        _ => (datatype, false),
    };
    if !matches!(base.class, Class::Reference(_)) {
        return Ok(None);
    }
    let mut html = Html::default();
    let size = to_usize(datatype.size.into())?.max(1);
    for (number, element) in content.elements.chunks_exact(size).enumerate() {
        if number > 0 {
            html.markup(", ");
        }
        if is_list {
            write_list(object, base, element, &mut html)?;
        } else {
            write(object, base, element, &mut html)?;
        }
    }
    Ok(Some(html))
}

/// Writes the references of one variable-length list, as links.
fn write_list(
    object: &PageObject<'_>,
    base: &Datatype,
    element: &[u8],
    html: &mut Html,
) -> Result<()> {
    let size = u64::from(base.size).max(1);
    let most = size.saturating_mul(limits::HTML_ROWS);
    let list = object
        .container
        .read_variable_length(element, size, 0..most)?;
    let list = list.unwrap_or_default();
    let references = list.chunks_exact(to_usize(size)?);
    html.markup("[");
    for (number, reference) in references.enumerate() {
        if number > 0 {
            html.markup(", ");
        }
        write(object, base, reference, html)?;
    }
    html.markup("]");
    Ok(())
}

/// Writes one reference as a link.
fn write(
    object: &PageObject<'_>,
    datatype: &Datatype,
    element: &[u8],
    html: &mut Html,
) -> Result<()> {
    let writer = ValueWriter::new(datatype)?;
    let context = TextContext::new(&**object.container, &*object.paths, limits::XATTR_BYTES);
    let mut text = Vec::new();
    writer.write_text(element, &context, &mut text)?;
    match target_page(object, datatype, element)? {
        Some(page) => html.link(&page, text),
        None => html.text(text),
    };
    Ok(())
}

/// Returns the URL of the page of the object that an element references, or of the array whose
/// region it references. Returns `None` if the element is not a reference, or if there is no such
/// page.
///
/// # Errors
/// Fails if the reference cannot be read.
pub(super) fn target_page(
    object: &PageObject<'_>,
    datatype: &Datatype,
    element: &[u8],
) -> Result<Option<Url>> {
    let Class::Reference(kind) = datatype.class else {
        return Ok(None);
    };
    let node = target_node(object, kind, element)?;
    Ok(node.and_then(|node| object.site.object_page_url(node)))
}

fn target_node(
    object: &PageObject<'_>,
    kind: ReferenceKind,
    element: &[u8],
) -> Result<Option<NodeId>> {
    Ok(match object.container.reference(kind, element)? {
        Reference::Object(node) | Reference::Region(node) => Some(node),
        Reference::Null
        | Reference::Dangling(_)
        | Reference::Attribute { .. }
        | Reference::External { .. } => None,
    })
}

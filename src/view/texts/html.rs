//! Pages about the objects of a file, for a browser: nothing from the network, nothing of the file
//! that is more than text, and no script but that of a server.
//!
//! | file | content |
//! |---|---|
//! | [`markup`] | what a page is written in: markup, text that is escaped, references |
//! | [`site`] | where the files are that a page leads to |
//! | [`object`] | the object that a page is about |
//! | [`draft`] | a page that is being written |
//! | [`page`] | the frame: head, policy, style, the way from the root |
//! | [`members`] | what is in a group, and in the groups in it |
//! | [`glance`] | what is said of a member beside its name |
//! | [`group_table`] | the first rows of the table that a group is |
//! | [`nexus`] | what a group has plotted by default |
//! | [`recipes`] | lines to copy |
//! | [`references`] | references to objects, as links |
//! | [`table`], [`cell`] | the first rows of an array; a cell of a table |
//! | [`plot`] | an array of numbers along one dimension, as a line |
//! | [`axes`] | what stands at an axis: name, unit, values |
//! | [`picture`], [`legend`] | pictures of an array, which are files of their own, and what is said of them |
//! | [`script`] | the script that a server gives, and what a page tells it |
//! | [`facts`] | files beside the page; attributes; type, shape, storage |

mod axes;
mod cell;
mod draft;
mod facts;
mod glance;
mod group_table;
mod legend;
pub(crate) mod markup;
mod members;
mod nexus;
pub(crate) mod object;
mod page;
mod picture;
mod plot;
mod recipes;
mod references;
pub(crate) mod script;
pub(crate) mod site;
mod table;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::NodeKind;
use crate::view::texts::html::draft::Draft;
use crate::view::texts::html::members::Members;
use crate::view::texts::html::object::Object;

/// A page.
pub(crate) struct Rendered {
    pub(crate) text: Vec<u8>,
    /// Whether something could not be read that may be there the next time.
    pub(crate) is_partial: bool,
}

/// The page about `object`. What of it cannot be read is told in its place.
pub(crate) fn render(object: &Object<'_>) -> Rendered {
    let mut draft = Draft::default();
    let members = Members::of(object);
    facts::write_files(object, members.are_many(object), &mut draft);
    if let Some(error) = &object.node.error {
        draft.fail(error);
    }
    // Of an object that cannot be read at all, nothing else is known.
    let is_known = object.node.error.is_none() || !matches!(object.node.kind, NodeKind::Scalar(_));
    if is_known {
        write_content(object, &members, &mut draft);
        facts::write_attributes(object, &mut draft);
        facts::write_properties(object, &mut draft);
    }
    Rendered {
        text: page::framed(object, &draft.body),
        is_partial: draft.is_partial,
    }
}

/// Writes what is in the object: members, elements, a text.
fn write_content(object: &Object<'_>, members: &Members, draft: &mut Draft) {
    match &object.node.kind {
        NodeKind::Scalar(scalar) => {
            draft.body.markup("<pre>").long_text(&scalar.text);
            draft.body.markup("</pre>\n");
        }
        NodeKind::Group => {
            nexus::write(object, draft);
            members.write(object, draft);
            if !members.are_many(object) {
                group_table::write(object, draft);
            }
        }
        NodeKind::Array(_) | NodeKind::CommittedDatatype(_) => {}
    }
    if object.node.array().is_some() {
        picture::write(object, draft);
        plot::write(object, draft);
        table::write(object, draft);
    }
}

/// The number of the first member on a further page of a group, of its selector `[500:1000]`.
///
/// # Errors
/// `NotFound` where it is that of no page.
pub(crate) fn first_of(selector: &[u8]) -> Result<u64> {
    let text = str::from_utf8(selector).map_err(|_| Error::NotFound)?;
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let (first, end) = inner
        .and_then(|text| text.split_once(':'))
        .ok_or(Error::NotFound)?;
    let number = |text: &str| {
        let number = text.parse::<u64>().ok()?;
        (number.to_string() == text).then_some(number)
    };
    match (number(first), number(end)) {
        (Some(first @ 1..), Some(end))
            if first.is_multiple_of(limits::HTML_ROWS)
                && first.checked_add(limits::HTML_ROWS) == Some(end) =>
        {
            Ok(first)
        }
        _ => Err(Error::NotFound),
    }
}

//! HTML pages about the objects of a file. A page loads nothing from the network, contains data of
//! the file only as text, and has a script only if a server provides it.
//!
//! | file | content |
//! |---|---|
//! | [`markup`] | the writer of HTML: markup, escaped text, URLs |
//! | [`page_site`] | the locations of the files that a page links to |
//! | [`object`] | the object of a page |
//! | `page_draft` | a page in progress |
//! | `page` | the frame: head, content security policy, style, breadcrumb trail |
//! | `members` | the members of a group and of its subgroups |
//! | `summary` | the short description of a member in a list |
//! | `group_table` | the first rows of a group that is a table |
//! | `nexus` | the default plot of a NeXus group |
//! | `recipes` | commands to copy |
//! | `references` | references to objects, as links |
//! | `table`, `cell` | the first rows of an array; a cell of a table |
//! | `plot` | a line plot of an array of numbers with one dimension |
//! | `axes` | the labels of axes: name, unit, values |
//! | `picture`, `legend` | the pictures of an array, which are separate files, and their legends |
//! | [`script`] | the script that a server provides, and the data that a page passes to it |
//! | `facts` | related files; attributes; datatype, shape and storage |

mod axes;
mod cell;
mod facts;
mod group_table;
mod legend;
pub mod markup;
mod members;
mod nexus;
pub mod object;
mod page;
mod page_draft;
pub mod page_site;
mod picture;
mod plot;
mod recipes;
mod references;
pub mod script;
mod summary;
mod table;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::NodeKind;

use crate::documents::html::members::PageMembers;
use crate::documents::html::object::PageObject;
use crate::documents::html::page_draft::PageDraft;
use crate::limits;

/// An HTML page that is completely rendered.
pub struct RenderedPage {
    /// The page in HTML.
    pub text: Vec<u8>,
    /// Whether a section of the page could not be read because of a temporary error.
    pub is_partial: bool,
}

/// Renders the page of `object`. An error message replaces each section whose data cannot be read.
pub fn render(object: &PageObject<'_>) -> RenderedPage {
    let mut draft = PageDraft::default();
    let members = PageMembers::collect(object);
    facts::write_facts(object, &mut draft);
    facts::write_files(object, members.has_more_pages(object), &mut draft);
    if let Some(error) = &object.node.error {
        draft.write_error(error);
    }
    // For an object that cannot be read, only its error is known.
    let is_known = object.node.error.is_none() || !matches!(object.node.kind, NodeKind::Scalar(_));
    if is_known {
        write_content(object, &members, &mut draft);
        facts::write_attributes(object, &mut draft);
        facts::write_properties(object, &mut draft);
    }
    RenderedPage {
        text: page::complete_page(object, &draft),
        is_partial: draft.is_partial,
    }
}

/// Writes the content of the object: the members of a group, or the elements of an array.
fn write_content(object: &PageObject<'_>, members: &PageMembers, draft: &mut PageDraft) {
    match &object.node.kind {
        NodeKind::Scalar(scalar) => {
            draft.body.markup("<pre>").long_text(&scalar.text);
            draft.body.markup("</pre>\n");
        }
        NodeKind::Group => {
            nexus::write(object, draft);
            members.write(object, draft);
            if !members.has_more_pages(object) {
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

/// Parses a selector such as `[500:1000]`, which picks a further page of the members of a group.
/// Returns the number of the first member on that page.
///
/// # Errors
/// `NotFound` if the selector does not name a page.
pub fn parse_first_member(selector: &[u8]) -> Result<u64> {
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

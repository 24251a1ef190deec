//! Directory listings as HTML pages or JSON.

use std::fmt::Write;
use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::Result;
use h5fs_reader::model::text;
use h5fs_reader::wire::Count;
use h5fs_view::documents::html::markup::escape_name;

use crate::http::content::StreamedContent;
use crate::http::dav::{self, DavEntry, PropertyRequest};
use crate::http::target::encode_name;
use crate::http::trees::{OpenedEntry, VIEWS};
use crate::requests::{Ino, ListingDetail};
use crate::stat::{DirEntry, FileKind, LookupEntry};
use crate::state::traffic::RequestType;
use crate::workers::{RequestObject, RequestSubject};

/// Name of the directory with all data files of a directory as one file.
const JOINED: &[u8] = b"joined";

/// The format of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListingFormat {
    Page,
    /// A JSON array with an object for each entry.
    Json,
    /// The properties of the directory and of its entries, as WebDAV has them.
    Properties(Arc<ListedProperties>),
}

/// The properties that a listing for WebDAV has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedProperties {
    /// The path of the directory as in URLs.
    pub(super) href: String,
    pub(super) request: PropertyRequest,
    pub(super) own: ListedDirectory,
}

/// The directory that is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedDirectory {
    pub(super) name: Vec<u8>,
    /// Time of the last modification in seconds since 1970.
    pub(super) modified: Option<i64>,
}

impl ListingFormat {
    pub(super) fn media_type(&self) -> &'static str {
        match self {
            ListingFormat::Page => "text/html; charset=utf-8",
            ListingFormat::Json => "application/json",
            ListingFormat::Properties(_) => "application/xml; charset=utf-8",
        }
    }

    /// Returns whether links are shown as their targets.
    fn shows_targets(&self) -> bool {
        matches!(self, ListingFormat::Properties(_))
    }

    /// Returns whether the listing has the entries of the directory, and not only the directory.
    fn has_entries(&self) -> bool {
        match self {
            ListingFormat::Properties(listed) => listed.request.has_entries,
            _ => true,
        }
    }
}

/// Approximate number of bytes that a listing needs for an entry, in addition to its name.
const ROW: usize = 64;

/// An entry to write to a listing.
struct ListingRow<'a> {
    name: &'a [u8],
    facts: EntryFacts,
}

/// What a listing says about an entry besides its name.
#[derive(Clone, Copy)]
struct EntryFacts {
    kind: FileKind,
    size: Option<u64>,
    /// Time of the last modification in seconds since 1970.
    modified: Option<i64>,
}

impl EntryFacts {
    fn new(kind: FileKind, entry: Option<&LookupEntry>) -> Self {
        EntryFacts {
            kind,
            size: entry.and_then(size),
            modified: entry.map(|entry| entry.attributes.modified.0),
        }
    }
}

/// The listing's text written so far, in one of the formats.
struct ListingText {
    form: ListingFormat,
    text: String,
    has_rows: bool,
}

impl ListingText {
    fn new(form: ListingFormat, has_rows: bool) -> Self {
        ListingText {
            form,
            text: String::new(),
            has_rows,
        }
    }

    /// Writes the text that precedes the entries of the directory at `path`. If `is_below` is true,
    /// adds a link to the parent directory. `views` are linked, too.
    fn write_beginning(&mut self, path: &[u8], is_below: bool, views: LinkedViews) {
        match &self.form {
            ListingFormat::Json => return self.text.push('['),
            ListingFormat::Properties(listed) => {
                self.text.push_str(dav::BEGINNING);
                let own = DavEntry {
                    href: &listed.href,
                    name: &listed.own.name,
                    kind: FileKind::Directory,
                    size: None,
                    modified: listed.own.modified,
                };
                return dav::write_properties(&own, &listed.request.properties, &mut self.text);
            }
            ListingFormat::Page => {}
        }
        let title = format!("/{}", escape_name(path));
        // Writing to a String cannot fail.
        let _ = write!(
            self.text,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
             </head>\n<body>\n<h1>{title}</h1>\n<ul>\n"
        );
        if is_below {
            self.text.push_str("<li><a href=\"../\">../</a></li>\n");
        }
        if views == LinkedViews::Joined {
            self.text.push_str(
                "<li><a href=\".h5fs/joined/?page\">all files as one</a> — .h5fs/joined/</li>\n",
            );
        }
        if views != LinkedViews::None {
            self.text
                .push_str("<li><a href=\".h5fs/\">.h5fs/</a></li>\n");
        }
    }

    fn write_row(&mut self, row: &ListingRow<'_>) {
        match &self.form {
            ListingFormat::Json => {
                self.text.push_str(if self.has_rows { ",\n" } else { "\n" });
                self.text.push_str(&row_json(row));
            }
            ListingFormat::Page => self.text.push_str(&row_html(row)),
            ListingFormat::Properties(listed) => {
                let EntryFacts {
                    kind,
                    size,
                    modified,
                } = row.facts;
                let slash = if kind == FileKind::Directory { "/" } else { "" };
                let href = format!("{}{}{slash}", listed.href, encode_name(row.name));
                let entry = DavEntry {
                    href: &href,
                    name: row.name,
                    kind,
                    size,
                    modified,
                };
                dav::write_properties(&entry, &listed.request.properties, &mut self.text);
            }
        }
        self.has_rows = true;
    }

    fn write_end(&mut self) {
        self.text.push_str(match &self.form {
            ListingFormat::Properties(_) => dav::END,
            ListingFormat::Page => "</ul>\n</body>\n</html>\n",
            ListingFormat::Json => "\n]\n",
        });
    }
}

fn row_html(row: &ListingRow<'_>) -> String {
    let (name, href) = (escape_name(row.name), encode_name(row.name));
    let (slash, query) = match row.facts.kind {
        FileKind::Directory => ("/", "?page"),
        FileKind::File | FileKind::Symlink => ("", ""),
    };
    let size = row.facts.size.map(|size| format!(" — {size} bytes"));
    let size = size.unwrap_or_default();
    format!("<li><a href=\"./{href}{slash}{query}\">{name}{slash}</a>{size}</li>\n")
}

fn row_json(row: &ListingRow<'_>) -> String {
    let mut object = text::JsonObject::default();
    object.add_text("name", row.name);
    object.add_text(
        "kind",
        match row.facts.kind {
            FileKind::Directory => "directory",
            FileKind::File => "file",
            FileKind::Symlink => "symlink",
        },
    );
    if let Some(size) = row.facts.size {
        object.add_json("size", size);
    }
    object.finish()
}

/// Returns the listing of the root directory of a server with several sources.
pub(super) fn sources_listing<'n>(
    names: impl Iterator<Item = &'n [u8]>,
    form: &ListingFormat,
) -> Vec<u8> {
    let mut text = ListingText::new(form.clone(), false);
    text.write_beginning(b"", false, LinkedViews::None);
    for name in names.filter(|_| form.has_entries()) {
        let facts = EntryFacts::new(FileKind::Directory, None);
        text.write_row(&ListingRow { name, facts });
    }
    text.write_end();
    text.text.into_bytes()
}

/// The listing of a directory, generated while it is sent.
pub(super) struct StreamedListing {
    open: OpenedEntry,
    form: ListingFormat,
    /// The directory's path, for the title of the HTML page.
    path: Vec<u8>,
    views: LinkedViews,
    step: ListingStep,
}

/// The views of a directory to which its listing links, although they are not entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkedViews {
    None,
    /// The directory `.h5fs`.
    Views,
    /// The directory `.h5fs`, and the page about all data files of the directory as one file.
    Joined,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListingStep {
    Begin,
    /// Position of the next entry, and whether an entry was already written, so that a separator is
    /// needed.
    Entries(u64, bool),
    Over,
}

impl StreamedListing {
    /// Creates the listing of an open directory with the title `path`, with links to `views`.
    pub(super) fn new(
        open: OpenedEntry,
        form: ListingFormat,
        path: Vec<u8>,
        views: LinkedViews,
    ) -> Self {
        StreamedListing {
            open,
            form,
            path,
            views,
            step: ListingStep::Begin,
        }
    }

    /// Returns the text of the entries from the position `from`, about `most` bytes, and the
    /// position of the next entry. The returned position is `None` after the last entry.
    fn entries_text(
        &self,
        (from, has_rows): (u64, bool),
        most: usize,
        cancel: &CancelToken,
    ) -> Result<(String, Option<u64>)> {
        let tree = self.open.requests();
        tree.traffic().count_request(RequestType::Readdirplus);
        let (mut found, mut bytes, mut next) = (Vec::new(), 0_usize, None);
        let mut counted: Vec<Ino> = Vec::new();
        let mut take = |listed: DirEntry<'_>, entry: Option<&LookupEntry>| {
            let is_dot = matches!(listed.name, b"." | b"..");
            if bytes > 0 && bytes >= most {
                return true;
            }
            next = Some(listed.next);
            if !is_dot {
                counted.extend(entry.map(|entry| entry.ino));
                let known = listed.kind.map(|kind| EntryFacts::new(kind, entry));
                bytes = bytes.plus(listed.name.len()).plus(ROW);
                found.push((listed.name.to_vec(), known));
            }
            false
        };
        let (handle, detail) = (self.open.handle(), ListingDetail::Attributes);
        let listed = tree.list_with_cancel(handle, from, detail, &mut take, cancel);
        counted.iter().for_each(|ino| tree.forget(*ino, 1));
        match listed {
            // The remaining entries will be requested again.
            Err(error) if !(next.is_some() && error.is_cancelled()) => return Err(error),
            _ => {}
        }
        let mut text = ListingText::new(self.form.clone(), has_rows);
        for (name, known) in found {
            let facts = match known {
                // WebDAV has no links, so the entry is shown as its target.
                Some(known) if known.kind == FileKind::Symlink && self.form.shows_targets() => {
                    self.target_facts(&name, cancel)?
                }
                Some(known) => known,
                None => self.look_up_facts(&name, cancel)?,
            };
            text.write_row(&ListingRow { name: &name, facts });
        }
        Ok((text.text, next))
    }

    /// Returns what the listing says about the target of the link `name`. A link without a target
    /// is a file without a size.
    fn target_facts(&self, name: &[u8], cancel: &CancelToken) -> Result<EntryFacts> {
        match self.open.place.descendant(name, cancel) {
            Ok(target) => {
                let entry = target.entry();
                Ok(EntryFacts::new(entry.attributes.kind, Some(entry)))
            }
            Err(error) if error.is_cancelled() => Err(error),
            Err(_) => Ok(EntryFacts::new(FileKind::File, None)),
        }
    }

    /// Looks up `name` in the directory, for a name whose listing entry has no attributes.
    fn look_up_facts(&self, name: &[u8], cancel: &CancelToken) -> Result<EntryFacts> {
        let tree = self.open.requests();
        let found = tree.lookup_with_cancel(self.open.place.ino(), name, cancel);
        match found {
            Ok(entry) => {
                tree.forget(entry.ino, 1);
                Ok(EntryFacts::new(entry.attributes.kind, Some(&entry)))
            }
            Err(error) if error.is_cancelled() => Err(error),
            // Opening the entry reports the error.
            Err(_) => Ok(EntryFacts::new(FileKind::File, None)),
        }
    }
}

/// Returns the size of the regular file `entry` in bytes, if the size is known. A listing leaves out
/// sizes that must be counted first, and its entry is then not cacheable and has size 0.
fn size(entry: &LookupEntry) -> Option<u64> {
    let stat = entry.is_sized.then_some(entry.attributes)?;
    let is_known = stat.size > 0 || entry.is_cacheable;
    (stat.kind == FileKind::File && is_known).then_some(stat.size)
}

impl StreamedContent for StreamedListing {
    fn request_subject(&self) -> RequestSubject {
        let place = &self.open.place;
        let file = place.requests().data_file_number(place.ino());
        (RequestObject::Description(place.inode_key()), file)
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    fn next_piece(&mut self, most: usize, cancel: &CancelToken) -> Result<Option<Bytes>> {
        let (text, step) = match self.step {
            ListingStep::Over => return Ok(None),
            ListingStep::Begin => {
                let mut text = ListingText::new(self.form.clone(), false);
                text.write_beginning(&self.path, !self.path.is_empty(), self.views);
                if self.form.has_entries() {
                    (text.text, ListingStep::Entries(0, false))
                } else {
                    text.write_end();
                    (text.text, ListingStep::Over)
                }
            }
            ListingStep::Entries(mut from, has_rows) => loop {
                let (text, next) = self.entries_text((from, has_rows), most, cancel)?;
                match next {
                    // Only `.` and `..` were read.
                    Some(next) if text.is_empty() => from = next,
                    Some(next) => break (text, ListingStep::Entries(next, true)),
                    None => {
                        let mut text = ListingText::new(self.form.clone(), has_rows);
                        text.write_end();
                        break (text.text, ListingStep::Over);
                    }
                }
            },
        };
        self.step = step;
        Ok(Some(text.into_bytes().into()))
    }
}

/// Returns the views of the open directory, which listings omit.
pub(super) fn linked_views(open: &OpenedEntry, cancel: &CancelToken) -> LinkedViews {
    let tree = open.requests();
    let Ok(views) = tree.lookup_with_cancel(open.place.ino(), VIEWS, cancel) else {
        return LinkedViews::None;
    };
    let joined = tree.lookup_with_cancel(views.ino, JOINED, cancel);
    let joined = joined.inspect(|entry| tree.forget(entry.ino, 1));
    tree.forget(views.ino, 1);
    if joined.is_ok() {
        LinkedViews::Joined
    } else {
        LinkedViews::Views
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_both_forms() {
        let names = || [&b"a<b>&\"'"[..], b"run 1.h5", b"\xff:x"].into_iter();
        let page = sources_listing(names(), &ListingFormat::Page);
        let page = str::from_utf8(&page).unwrap();
        for part in [
            "<a href=\"./a%3Cb%3E%26%22%27/?page\">a&lt;b&gt;&amp;&quot;&#39;/</a>",
            "<a href=\"./run%201.h5/?page\">run 1.h5/</a>",
            "<a href=\"./%FF%3Ax/?page\">\\xff:x/</a>",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        let json = sources_listing(names(), &ListingFormat::Json);
        let json = str::from_utf8(&json).unwrap();
        let value: serde_json::Value = serde_json::from_str(&json.replace("\\udcff", "?")).unwrap();
        assert_eq!(value[0]["name"], "a<b>&\"'");
        assert_eq!(value[2]["name"], "?:x");
        assert_eq!(
            sources_listing([].into_iter(), &ListingFormat::Json),
            b"[\n]\n"
        );
    }
}

//! A search for a text in names and attributes of a data file. The results are lines of JSON.
//!
//! | line | meaning |
//! |---|---|
//! | `{"path": …, "page": …}` | the name of this object contains the text; its page, relative to the tree of pages |
//! | `{"path": …, "page": …, "attribute": …, "value": …}` | the name or the value of this attribute contains the text |
//! | `{"path": …, "error": …}` | the object cannot be read |
//! | `{"objects": …}` | the number of objects searched so far |
//! | `{"objects": …, "is_whole": …}` | the end of the results; `is_whole` is false if the search ended early at the limit of results |

use std::collections::VecDeque;
use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::text;
use h5fs_reader::wire::to_u64;

use crate::http::content::StreamedContent;
use crate::http::target::encode_name;
use crate::http::trees::{ResolvedPath, VIEWS};
use crate::limits;
use crate::requests::{Ino, ListingDetail, Requests};
use crate::stat::{DirEntry, FileKind, LookupEntry};
use crate::state::handle::OpenedHandle;
use crate::state::traffic::RequestType;
use crate::views::trees::tree_named;
use crate::views::trees::view_tree::ViewTree;
use crate::workers::{RequestObject, RequestSubject};

/// Name of the tree of views with a page for each object, `.h5fs/html`.
const PAGES: &[u8] = b"html";

/// The prefix of the names of extended attributes.
const ATTRIBUTE: &[u8] = b"user.";

/// The prefix of the names of built-in extended attributes. They are not attributes of the object
/// and are not searched.
const BUILTIN: &[u8] = b"user.h5fs.";

/// Maximum number of characters of an attribute's value in a result.
const MAX_VALUE_CHARACTERS: usize = 200;

/// Number of objects that are examined before the next piece of the response is sent.
const OBJECTS_PER_PIECE: usize = 64;

/// A search in progress, whose results are sent while it runs.
pub(super) struct ObjectSearch {
    /// Root directory of the data file to search.
    root: Arc<ResolvedPath>,
    /// Text to find, in lowercase.
    search_text: String,
    tree: &'static ViewTree,
    /// Names from the root to the last directory in `levels`.
    names: Vec<Vec<u8>>,
    levels: Vec<SearchLevel>,
    object_count: u64,
    line_count: u64,
    has_ended: bool,
}

/// A directory that the search has entered but not completely searched.
struct SearchLevel {
    root: Arc<ResolvedPath>,
    opened: OpenedHandle,
    /// The directory's inode, to be forgotten after the search of the directory; `None` for the
    /// root.
    directory: Option<Ino>,
    /// Position of the next entry to examine, or `None` after the last one.
    next: Option<u64>,
    /// Directories among the examined entries that are still to be searched. Each must be forgotten
    /// afterwards.
    pending: VecDeque<SearchEntry>,
}

/// An entry of a directory, to be examined. Its inode must be forgotten afterwards.
struct SearchEntry {
    name: Vec<u8>,
    ino: Ino,
    kind: FileKind,
}

impl SearchLevel {
    /// Opens the directory with the inode number `ino`. Dropping the value forgets the inode
    /// `counted`.
    fn new(
        root: &Arc<ResolvedPath>,
        (ino, counted): (Ino, Option<Ino>),
        cancel: &CancelToken,
    ) -> Result<Self> {
        Ok(SearchLevel {
            opened: root.requests().opendir_with_cancel(ino, cancel)?,
            root: Arc::clone(root),
            directory: counted,
            next: Some(0),
            pending: VecDeque::new(),
        })
    }
}

impl Drop for SearchLevel {
    fn drop(&mut self) {
        let requests = self.root.requests();
        requests.release(self.opened.handle);
        let pending = self.pending.iter().map(|entry| entry.ino);
        let counted = pending.chain(self.directory);
        counted.for_each(|ino| requests.forget(ino, 1));
    }
}

impl ObjectSearch {
    /// Creates a search for the text `wanted` in the data file whose directory `.h5fs/html` is at
    /// `pages`.
    ///
    /// # Errors
    /// `NotFound` if `pages` is not a tree of pages; fails if the root cannot be listed.
    pub(super) fn new(pages: &ResolvedPath, wanted: &[u8], cancel: &CancelToken) -> Result<Self> {
        let is_tree = pages
            .names_in_views()
            .is_some_and(|view| *view == [PAGES.to_vec()]);
        let tree = tree_named(PAGES)
            .filter(|_| is_tree)
            .ok_or(Error::NotFound)?;
        let root = Arc::new(pages.ancestor(2, cancel)?);
        let level = SearchLevel::new(&root, (root.ino(), None), cancel)?;
        Ok(ObjectSearch {
            root,
            search_text: String::from_utf8_lossy(wanted).to_lowercase(),
            tree,
            names: Vec::new(),
            levels: vec![level],
            object_count: 0,
            line_count: 0,
            has_ended: false,
        })
    }

    fn requests(&self) -> &dyn Requests {
        self.root.requests()
    }

    /// Examines the next entries, and appends lines with results to `out`. After an error, the next
    /// call examines the same entries again.
    fn examine_some(&mut self, out: &mut Vec<u8>, cancel: &CancelToken) -> Result<()> {
        let Some(level) = self.levels.last() else {
            return Ok(());
        };
        if level.pending.front().is_some() {
            return self.descend(out, cancel);
        }
        let Some(first) = level.next else {
            self.leave_directory();
            return Ok(());
        };
        let (found, next) = read_entries(level, first, cancel)?;
        let looked = found
            .iter()
            .try_for_each(|entry| self.examine_entry(entry, out, cancel));
        let is_kept = |entry: &SearchEntry| looked.is_ok() && entry.kind == FileKind::Directory;
        let (kept, passed): (Vec<_>, Vec<_>) = found.into_iter().partition(is_kept);
        let requests = self.requests();
        passed
            .iter()
            .for_each(|entry| requests.forget(entry.ino, 1));
        looked?;
        if let Some(level) = self.levels.last_mut() {
            level.next = next;
            level.pending = kept.into();
        }
        Ok(())
    }

    fn leave_directory(&mut self) {
        self.levels.pop();
        self.names.pop();
    }

    /// Enters the next pending directory. If it cannot be read, appends a line with the error to
    /// `out`.
    fn descend(&mut self, out: &mut Vec<u8>, cancel: &CancelToken) -> Result<()> {
        let depth = self.levels.len();
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        let Some(entry) = level.pending.front() else {
            return Ok(());
        };
        let (ino, name) = (entry.ino, entry.name.clone());
        let opened = if depth < limits::HTTP_SEARCH_DEPTH {
            SearchLevel::new(&self.root, (ino, Some(ino)), cancel)
        } else {
            let most = to_u64(limits::HTTP_SEARCH_DEPTH);
            Err(Error::limit("depth of the searched groups", most))
        };
        if opened.as_ref().is_err_and(Error::is_cancelled) {
            return opened.map(drop);
        }
        level.pending.pop_front();
        let names = self.path_names(&name);
        match opened {
            Ok(level) => {
                self.names = names;
                self.levels.push(level);
                Ok(())
            }
            Err(error) => {
                self.requests().forget(ino, 1);
                self.report_unreadable(&names, error, out)
            }
        }
    }

    fn path_names(&self, name: &[u8]) -> Vec<Vec<u8>> {
        let own = [name.to_vec()];
        self.names.iter().cloned().chain(own).collect()
    }

    fn examine_entry(
        &mut self,
        entry: &SearchEntry,
        out: &mut Vec<u8>,
        cancel: &CancelToken,
    ) -> Result<()> {
        self.object_count += 1;
        let names = self.path_names(&entry.name);
        if self.is_match(&entry.name) {
            let mut line = self.begin_line(&names);
            self.add_page(&names, entry.kind, &mut line, cancel)?;
            self.append_result(line, out);
        }
        // The target of a link is examined in the directory that contains it.
        if entry.kind == FileKind::Symlink {
            return Ok(());
        }
        match self.matching_attributes(entry.ino, cancel) {
            Ok(attributes) => {
                for (name, value) in attributes {
                    let mut line = self.begin_line(&names);
                    self.add_page(&names, entry.kind, &mut line, cancel)?;
                    line.add_text("attribute", name);
                    line.add_text("value", value);
                    self.append_result(line, out);
                }
                Ok(())
            }
            Err(error) => self.report_unreadable(&names, error, out),
        }
    }

    /// Returns the names and values of those attributes of the object `ino` whose name or value
    /// contains the searched text. Long values are shortened.
    fn matching_attributes(
        &self,
        ino: Ino,
        cancel: &CancelToken,
    ) -> Result<Vec<(Vec<u8>, String)>> {
        let requests = self.requests();
        let mut found = Vec::new();
        for name in requests.listxattr_with_cancel(ino, cancel)? {
            if name.starts_with(BUILTIN) {
                continue;
            }
            let value = requests.getxattr_with_cancel(ino, &name, cancel)?;
            let name = name.strip_prefix(ATTRIBUTE).unwrap_or(&name);
            if self.is_match(name) || self.is_match(&value) {
                // Values may be long and numerous.
                found.push((
                    name.to_vec(),
                    truncate_value(&String::from_utf8_lossy(&value)),
                ));
            }
        }
        Ok(found)
    }

    fn is_match(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        text.to_lowercase().contains(&self.search_text)
    }

    fn begin_line(&self, names: &[Vec<u8>]) -> text::JsonObject {
        let mut line = text::JsonObject::default();
        line.add_text("path", names.join(&b'/'));
        line
    }

    /// Adds the reference to the page of the object at `names` to the result line, if the object
    /// has a page.
    fn add_page(
        &self,
        names: &[Vec<u8>],
        kind: FileKind,
        line: &mut text::JsonObject,
        cancel: &CancelToken,
    ) -> Result<()> {
        let form = self.tree.forms.first();
        let Some(mut page) = self.tree.shown_path(names, form, true) else {
            return Ok(());
        };
        if kind == FileKind::Symlink {
            // References in a page are relative to the object's own path, not to the path of a
            // link.
            let path = [vec![VIEWS.to_vec(), PAGES.to_vec()], page].concat();
            let place = match self.root.descendant(&path.join(&b'/'), cancel) {
                Ok(place) => place,
                Err(error) if error.is_cancelled() => return Err(error),
                Err(_) => return Ok(()),
            };
            let above = self.root.names().len() + 2;
            let views = place.names().get(above - 2..above);
            if views.is_none_or(|views| *views != path[..2]) {
                return Ok(());
            }
            page = place.names()[above..].to_vec();
        }
        let page: Vec<_> = page.iter().map(|name| encode_name(name)).collect();
        line.add_text("page", page.join("/"));
        Ok(())
    }

    /// Appends a line that says that the object at `names` cannot be read, with the error.
    fn report_unreadable(
        &mut self,
        names: &[Vec<u8>],
        error: Error,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if error.is_cancelled() {
            return Err(error);
        }
        let mut line = self.begin_line(names);
        line.add_text("error", error.to_string());
        self.append_result(line, out);
        Ok(())
    }

    /// Appends a result line to `out`, unless the limit of results is reached.
    fn append_result(&mut self, line: text::JsonObject, out: &mut Vec<u8>) {
        if self.line_count < limits::HTTP_FOUND {
            append_line(line, out);
        }
        self.line_count = self.line_count.saturating_add(1);
    }

    /// Appends a line with the number of searched objects to `out`. At the end of the search, the
    /// line also says whether the search is complete.
    fn write_count(&self, out: &mut Vec<u8>) {
        let mut line = text::JsonObject::default();
        line.add_json("objects", self.object_count);
        if self.has_ended {
            line.add_json("is_whole", self.line_count <= limits::HTTP_FOUND);
        }
        append_line(line, out);
    }
}

impl StreamedContent for ObjectSearch {
    fn request_subject(&self) -> RequestSubject {
        let file = self.requests().data_file_number(self.root.ino());
        (RequestObject::Description(self.root.inode_key()), file)
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    fn next_piece(&mut self, _: usize, cancel: &CancelToken) -> Result<Option<Bytes>> {
        if self.has_ended {
            return Ok(None);
        }
        let mut out = Vec::new();
        let end = self.object_count.saturating_add(to_u64(OBJECTS_PER_PIECE));
        while self.object_count < end
            && !self.levels.is_empty()
            && self.line_count <= limits::HTTP_FOUND
        {
            let before = (self.object_count, self.line_count, out.len());
            let went_on = cancel
                .check_cancelled()
                .and_then(|()| self.examine_some(&mut out, cancel));
            match went_on {
                Ok(()) => {}
                Err(error) if error.is_cancelled() => {
                    (self.object_count, self.line_count) = (before.0, before.1);
                    out.truncate(before.2);
                    if out.is_empty() {
                        return Err(error);
                    }
                    break;
                }
                Err(error) => {
                    // The entries after an unreadable position are unknown.
                    self.report_unreadable(&self.names.clone(), error, &mut out)?;
                    self.leave_directory();
                }
            }
        }
        self.has_ended = self.levels.is_empty() || self.line_count > limits::HTTP_FOUND;
        self.write_count(&mut out);
        Ok(Some(out.into()))
    }
}

/// Returns entries of the directory `level` from the position `first` on, up to the limit for one
/// piece of the response, and the position after them. The position is `None` at the end of the
/// directory. The caller must forget the inode of each entry.
fn read_entries(
    level: &SearchLevel,
    first: u64,
    cancel: &CancelToken,
) -> Result<(Vec<SearchEntry>, Option<u64>)> {
    let requests = level.root.requests();
    requests.traffic().count_request(RequestType::Readdirplus);
    let (mut found, mut next) = (Vec::<SearchEntry>::new(), None);
    let mut take = |listed: DirEntry<'_>, entry: Option<&LookupEntry>| {
        if found.len() >= OBJECTS_PER_PIECE {
            return true;
        }
        next = Some(listed.next);
        if !matches!(listed.name, b"." | b"..") {
            found.extend(entry.map(|entry| SearchEntry {
                name: listed.name.to_vec(),
                ino: entry.ino,
                kind: entry.attributes.kind,
            }));
        }
        false
    };
    let (handle, detail) = (level.opened.handle, ListingDetail::Attributes);
    let listed = requests.list_with_cancel(handle, first, detail, &mut take, cancel);
    match listed {
        Err(error) if next.is_none() || !error.is_cancelled() => {
            found.iter().for_each(|entry| requests.forget(entry.ino, 1));
            Err(error)
        }
        _ => Ok((found, next)),
    }
}

fn append_line(line: text::JsonObject, out: &mut Vec<u8>) {
    out.extend_from_slice(line.finish().as_bytes());
    out.push(b'\n');
}

/// Returns the first characters of an attribute's value.
fn truncate_value(value: &str) -> String {
    let mut short: String = value.chars().take(MAX_VALUE_CHARACTERS).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}

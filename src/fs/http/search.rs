//! Names and attributes of a data file that a text is part of, as lines of JSON.
//!
//! | a line | what it says |
//! |---|---|
//! | `{"path": …, "page": …}` | the name of this object has the text; its page, from the tree of pages on |
//! | `{"path": …, "page": …, "attribute": …, "value": …}` | so has the name or the value of this attribute |
//! | `{"path": …, "error": …}` | what is there cannot be read |
//! | `{"objects": …}` | so many objects have been looked at up to now |
//! | `{"objects": …, "is_whole": …}` | the end: of all objects, or of those before there was no room for more |

use std::collections::VecDeque;
use std::sync::Arc;

use crate::array::{Bytes, CancelToken};
use crate::error::{Error, Result};
use crate::fs::http::content::Pieces;
use crate::fs::http::target::encoded;
use crate::fs::http::trees::{Place, VIEWS};
use crate::fs::requests::{Detail, Ino, Requests};
use crate::fs::stat::{DirEntry, Entry, Kind};
use crate::fs::state::handle::Opened;
use crate::fs::state::traffic::Call;
use crate::fs::views::trees::named;
use crate::fs::views::trees::view_tree::ViewTree;
use crate::fs::workers::{Object, Of};
use crate::limits;
use crate::model::text;
use crate::wire::to_u64;

/// The tree of pages.
const PAGES: &[u8] = b"html";

/// What stands before the name of an attribute.
const ATTRIBUTE: &[u8] = b"user.";

/// What stands before the name of what is no attribute of the object.
const BUILTIN: &[u8] = b"user.h5fs.";

/// Characters of a value that are shown.
const SHOWN: usize = 200;

/// Objects that are looked at for one piece of the answer.
const LOOKS: usize = 64;

/// A search that goes on while its answer is sent.
pub(super) struct Search {
    /// The root of the data file.
    root: Arc<Place>,
    /// What is sought, in small letters.
    wanted: String,
    tree: &'static ViewTree,
    /// The names that lead from the root to the last of `levels`.
    names: Vec<Vec<u8>>,
    levels: Vec<Level>,
    objects: u64,
    lines: u64,
    is_over: bool,
}

/// A directory that is looked through.
struct Level {
    root: Arc<Place>,
    opened: Opened,
    /// Counted, but for the root.
    directory: Option<Ino>,
    /// The place of the next entry; `None` at the end.
    next: Option<u64>,
    /// Directories among the entries before, which are still to be looked through; counted.
    pending: VecDeque<Found>,
}

/// An entry that is looked at.
struct Found {
    name: Vec<u8>,
    ino: Ino,
    kind: Kind,
}

impl Level {
    /// The directory of this number, of which `counted` is to be given back.
    fn new(
        root: &Arc<Place>,
        (ino, counted): (Ino, Option<Ino>),
        cancel: &CancelToken,
    ) -> Result<Self> {
        Ok(Level {
            opened: root.requests().opendir_for(ino, cancel)?,
            root: Arc::clone(root),
            directory: counted,
            next: Some(0),
            pending: VecDeque::new(),
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        let requests = self.root.requests();
        requests.release(self.opened.handle);
        let pending = self.pending.iter().map(|entry| entry.ino);
        let counted = pending.chain(self.directory);
        counted.for_each(|ino| requests.forget(ino, 1));
    }
}

impl Search {
    /// A search for `wanted` in the data file whose tree of pages is at `pages`.
    ///
    /// # Errors
    /// `NotFound` where that is no tree of pages; fails if the root cannot be listed.
    pub(super) fn new(pages: &Place, wanted: &[u8], cancel: &CancelToken) -> Result<Self> {
        let is_tree = pages.view().is_some_and(|view| *view == [PAGES.to_vec()]);
        let tree = named(PAGES).filter(|_| is_tree).ok_or(Error::NotFound)?;
        let root = Arc::new(pages.above(2, cancel)?);
        let level = Level::new(&root, (root.ino(), None), cancel)?;
        Ok(Search {
            root,
            wanted: String::from_utf8_lossy(wanted).to_lowercase(),
            tree,
            names: Vec::new(),
            levels: vec![level],
            objects: 0,
            lines: 0,
            is_over: false,
        })
    }

    fn requests(&self) -> &dyn Requests {
        self.root.requests()
    }

    /// Looks at some entries more. Lines are appended to `out`. Where it fails, it has not moved on.
    fn go_on(&mut self, out: &mut Vec<u8>, cancel: &CancelToken) -> Result<()> {
        let Some(level) = self.levels.last() else {
            return Ok(());
        };
        if level.pending.front().is_some() {
            return self.descend(out, cancel);
        }
        let Some(first) = level.next else {
            self.leave();
            return Ok(());
        };
        let (found, next) = entries(level, first, cancel)?;
        let looked = found
            .iter()
            .try_for_each(|entry| self.look_at(entry, out, cancel));
        let is_kept = |entry: &Found| looked.is_ok() && entry.kind == Kind::Directory;
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

    fn leave(&mut self) {
        self.levels.pop();
        self.names.pop();
    }

    /// Goes into the next directory, or tells that it cannot be read.
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
            Level::new(&self.root, (ino, Some(ino)), cancel)
        } else {
            let most = to_u64(limits::HTTP_SEARCH_DEPTH);
            Err(Error::limit("groups within groups that are searched", most))
        };
        if opened.as_ref().is_err_and(Error::is_unwanted) {
            return opened.map(drop);
        }
        level.pending.pop_front();
        let names = self.names_of(&name);
        match opened {
            Ok(level) => {
                self.names = names;
                self.levels.push(level);
                Ok(())
            }
            Err(error) => {
                self.requests().forget(ino, 1);
                self.tell(&names, error, out)
            }
        }
    }

    fn names_of(&self, name: &[u8]) -> Vec<Vec<u8>> {
        let own = [name.to_vec()];
        self.names.iter().cloned().chain(own).collect()
    }

    fn look_at(&mut self, entry: &Found, out: &mut Vec<u8>, cancel: &CancelToken) -> Result<()> {
        self.objects += 1;
        let names = self.names_of(&entry.name);
        if self.has(&entry.name) {
            let mut line = self.line(&names);
            self.add_page(&names, entry.kind, &mut line, cancel)?;
            self.write(line, out);
        }
        // What a link leads to is looked at in its own place.
        if entry.kind == Kind::Symlink {
            return Ok(());
        }
        match self.attributes(entry.ino, cancel) {
            Ok(attributes) => {
                for (name, value) in attributes {
                    let mut line = self.line(&names);
                    self.add_page(&names, entry.kind, &mut line, cancel)?;
                    line.text("attribute", name);
                    line.text("value", value);
                    self.write(line, out);
                }
                Ok(())
            }
            Err(error) => self.tell(&names, error, out),
        }
    }

    /// The attributes of an object that have the text in their names or values; of these the beginning.
    fn attributes(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<(Vec<u8>, String)>> {
        let requests = self.requests();
        let mut found = Vec::new();
        for name in requests.listxattr_for(ino, cancel)? {
            if name.starts_with(BUILTIN) {
                continue;
            }
            let value = requests.getxattr_for(ino, &name, cancel)?;
            let name = name.strip_prefix(ATTRIBUTE).unwrap_or(&name);
            if self.has(name) || self.has(&value) {
                // A value may be long, and there may be many.
                found.push((name.to_vec(), short(&String::from_utf8_lossy(&value))));
            }
        }
        Ok(found)
    }

    fn has(&self, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        text.to_lowercase().contains(&self.wanted)
    }

    fn line(&self, names: &[Vec<u8>]) -> text::Object {
        let mut line = text::Object::default();
        line.text("path", names.join(&b'/'));
        line
    }

    /// Adds the reference to the page of what stands at `names`, where it has one.
    fn add_page(
        &self,
        names: &[Vec<u8>],
        kind: Kind,
        line: &mut text::Object,
        cancel: &CancelToken,
    ) -> Result<()> {
        let form = self.tree.forms.first();
        let Some(mut page) = self.tree.shown(names, form, true) else {
            return Ok(());
        };
        if kind == Kind::Symlink {
            // References of a page are from the one place of its object.
            let path = [vec![VIEWS.to_vec(), PAGES.to_vec()], page].concat();
            let place = match self.root.beneath(&path.join(&b'/'), cancel) {
                Ok(place) => place,
                Err(error) if error.is_unwanted() => return Err(error),
                Err(_) => return Ok(()),
            };
            let above = self.root.names().len() + 2;
            let views = place.names().get(above - 2..above);
            if views.is_none_or(|views| *views != path[..2]) {
                return Ok(());
            }
            page = place.names()[above..].to_vec();
        }
        let page: Vec<_> = page.iter().map(|name| encoded(name)).collect();
        line.text("page", page.join("/"));
        Ok(())
    }

    /// Tells that what stands at `names` cannot be read.
    fn tell(&mut self, names: &[Vec<u8>], error: Error, out: &mut Vec<u8>) -> Result<()> {
        if error.is_unwanted() {
            return Err(error);
        }
        let mut line = self.line(names);
        line.text("error", error.to_string());
        self.write(line, out);
        Ok(())
    }

    /// Writes a line, if there is room for it.
    fn write(&mut self, line: text::Object, out: &mut Vec<u8>) {
        if self.lines < limits::HTTP_FOUND {
            append(line, out);
        }
        self.lines = self.lines.saturating_add(1);
    }

    /// The last line, or how far it has come.
    fn write_count(&self, out: &mut Vec<u8>) {
        let mut line = text::Object::default();
        line.json("objects", self.objects);
        if self.is_over {
            line.json("is_whole", self.lines <= limits::HTTP_FOUND);
        }
        append(line, out);
    }
}

impl Pieces for Search {
    fn of(&self) -> Of {
        let file = self.requests().file_of(self.root.ino());
        (Object::Description(self.root.number()), file)
    }

    fn left(&self) -> Option<u64> {
        None
    }

    fn next(&mut self, _: usize, cancel: &CancelToken) -> Result<Option<Bytes>> {
        if self.is_over {
            return Ok(None);
        }
        let mut out = Vec::new();
        let end = self.objects.saturating_add(to_u64(LOOKS));
        while self.objects < end && !self.levels.is_empty() && self.lines <= limits::HTTP_FOUND {
            let before = (self.objects, self.lines, out.len());
            let went_on = cancel.go_on().and_then(|()| self.go_on(&mut out, cancel));
            match went_on {
                Ok(()) => {}
                Err(error) if error.is_unwanted() => {
                    (self.objects, self.lines) = (before.0, before.1);
                    out.truncate(before.2);
                    if out.is_empty() {
                        return Err(error);
                    }
                    break;
                }
                Err(error) => {
                    // What comes behind a place that cannot be read is not known.
                    self.tell(&self.names.clone(), error, &mut out)?;
                    self.leave();
                }
            }
        }
        self.is_over = self.levels.is_empty() || self.lines > limits::HTTP_FOUND;
        self.write_count(&mut out);
        Ok(Some(out.into()))
    }
}

/// The entries from `first` on, as many as are looked at; and where those behind stand, `None` at the
/// end. Each is counted.
fn entries(level: &Level, first: u64, cancel: &CancelToken) -> Result<(Vec<Found>, Option<u64>)> {
    let requests = level.root.requests();
    requests.traffic().asked(Call::Readdirplus);
    let (mut found, mut next) = (Vec::<Found>::new(), None);
    let mut take = |listed: DirEntry<'_>, entry: Option<&Entry>| {
        if found.len() >= LOOKS {
            return true;
        }
        next = Some(listed.next);
        if !matches!(listed.name, b"." | b"..") {
            found.extend(entry.map(|entry| Found {
                name: listed.name.to_vec(),
                ino: entry.ino,
                kind: entry.attributes.kind,
            }));
        }
        false
    };
    let (handle, detail) = (level.opened.handle, Detail::Attributes);
    let listed = requests.list_for(handle, first, detail, &mut take, cancel);
    match listed {
        Err(error) if next.is_none() || !error.is_unwanted() => {
            found.iter().for_each(|entry| requests.forget(entry.ino, 1));
            Err(error)
        }
        _ => Ok((found, next)),
    }
}

fn append(line: text::Object, out: &mut Vec<u8>) {
    out.extend_from_slice(line.finish().as_bytes());
    out.push(b'\n');
}

/// The beginning of a value.
fn short(value: &str) -> String {
    let mut short: String = value.chars().take(SHOWN).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}

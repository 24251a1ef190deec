//! A file, or one of its objects, in the Ndarray Data Language 0.6.1: a YAML document of groups, flat
//! by path, each with its attributes, dimension coordinates and ndarrays.
//!
//! Values are given of attributes and of dimension coordinates, of other arrays on request, all within
//! limits. What the language cannot express is treated so:
//!
//! | in the file | in the document |
//! |---|---|
//! | datatypes without a word | [`ndl`](crate::model::ndl) says |
//! | null dataspace | shape `[0]`, and a comment |
//! | a finite bound over the present extent | the extent is the shape, the bound a comment |
//! | an unlimited dimension | `null`; the extent is `storage: shape` or `size`, as the language asks |
//! | an object with several hard links | once, at its canonical path; a comment at the others |
//! | soft, external and user-defined links, committed datatypes, ASDF aliases and references | comments |
//! | what cannot be read | a comment with the reason; `value: null`; where it may be read the next time, an error at the end |
//! | a value over the limits | none; of an attribute, which must have one, `null`; a comment |
//! | ASDF scalar | attribute of its group; a plain number is one, the rest is text |
//! | ASDF sequence | group with members `0`, `1`, … |
//! | a scale with no elements, or with several dimensions | ndarray |
//! | compression | `filter`: a name, or name and parameters, `{deflate: {level: 4}}` |
//!
//! A document of one object holds its group's path and, so that it stands for itself, the dimension
//! coordinates that its shapes name; that of a group, all below it.

mod dimensions;
mod object;
mod place;
mod value;
mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::array::Engine;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::ndl::ndl_type;
use crate::model::{Array, Container, Link, LinkStream, LinkTarget, Node, NodeId, NodeKind};
use crate::view::json::SharedPaths;
use crate::view::ndl::object::{Attributes, Section};
pub use crate::view::ndl::place::Place;
use crate::view::ndl::place::{Members, Sorted, Step};
use crate::view::ndl::yaml::{Lines, text};
use crate::view::streamed::ResumableText;
use crate::wire::to_u64;

/// What a document is made from.
pub struct Source {
    /// The file.
    pub container: Arc<dyn Container>,
    /// Reads the values of arrays.
    pub engine: Arc<Engine>,
    /// Canonical paths.
    pub paths: SharedPaths,
}

/// How much a document holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Arrays of at most this many elements, besides dimension coordinates, have their values in it.
    pub values: u64,
}

/// The document of the object `node` at `path` (names as in the file); the root group and `/` for
/// that of the whole file.
pub struct Description {
    /// What it is made from.
    pub source: Source,
    /// The object.
    pub node: NodeId,
    /// Its path.
    pub path: Vec<u8>,
    /// How much the document holds.
    pub options: Options,
}

impl ResumableText for Description {
    type Place = Place;

    fn begin(&self) -> Place {
        Place {
            steps: vec![Step::Begin],
            ..Place::default()
        }
    }

    /// # Errors
    /// `NotFound` for what the language has no entity for (a committed datatype, a scalar of ASDF);
    /// `Limit` for too many objects; as the object cannot be read.
    fn write_on(&self, place: &mut Place, enough: usize, out: &mut Vec<u8>) -> Result<bool> {
        let mut unread = place.unread.take();
        let mut damaged = |_: &[u8], error: &Error| {
            if error.is_passing() {
                unread.get_or_insert_with(|| error.clone());
            }
        };
        let written = self.write_part(place, enough, out, &mut damaged);
        place.unread.clone_from(&unread);
        match (written, unread) {
            (Ok(false), Some(error)) => Err(error),
            (written, _) => written,
        }
    }

    fn own_bytes(&self) -> u64 {
        to_u64(self.path.capacity())
    }

    fn place_bytes(&self, place: &Place) -> u64 {
        place.weight()
    }
}

impl Description {
    /// As [`write_on`](ResumableText::write_on). `damaged` is told what of which object (its path, names
    /// as in the file) cannot be read, which a comment in the document says, too.
    ///
    /// # Errors
    /// As `write_on`.
    pub fn write_part(
        &self,
        place: &mut Place,
        enough: usize,
        out: &mut Vec<u8>,
        damaged: &mut dyn FnMut(&[u8], &Error),
    ) -> Result<bool> {
        let mut document = Document {
            source: &self.source,
            options: self.options,
            damaged,
            top: &self.path,
            lines: Lines::new(out, place.depth),
            enough,
            place,
        };
        let written = document.write_on(self.node);
        document.place.depth = document.lines.depth();
        written
    }
}

struct Document<'a> {
    source: &'a Source,
    options: Options,
    /// Is told what cannot be read.
    damaged: &'a mut dyn FnMut(&[u8], &Error),
    /// The path of the object that the document is of.
    top: &'a [u8],
    lines: Lines<'a>,
    /// Bytes of lines after which the writing is left.
    enough: usize,
    place: &'a mut Place,
}

impl Document<'_> {
    /// Takes step after step until enough is written; says whether there may be more.
    fn write_on(&mut self, top: NodeId) -> Result<bool> {
        while !self.is_full() {
            let Some(step) = self.place.steps.pop() else {
                return Ok(false);
            };
            self.take(step, top)?;
        }
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.lines.length() >= self.enough
    }

    fn then(&mut self, step: Step) {
        self.place.steps.push(step);
    }

    /// Notes that there is no more.
    fn fail<T>(&mut self, error: Error) -> Result<T> {
        self.then(Step::Failed(error.clone()));
        Err(error)
    }

    /// Takes a step. One that fails is there again afterwards.
    fn take(&mut self, step: Step, top: NodeId) -> Result<()> {
        match step {
            Step::Begin => return self.take_first(top),
            Step::Groups { above, list, next } => self.next_group(above, list, next),
            Step::Links {
                group,
                links,
                found,
            } => return self.sort_links(group, links, found),
            Step::Attributes(attributes) => self.write_attributes(attributes),
            Step::Arrays(section) => return self.next_array(section),
            Step::Beside => {
                let beside = self.place.elsewhere.remove(&self.place.path);
                let beside = beside.into_iter().flatten().collect();
                self.then(Step::Arrays(Section::coordinates(beside)));
            }
            Step::Close => self.lines.close(),
            Step::GroupEnd(names) => {
                if self.place.is_empty {
                    self.lines.line("{}");
                }
                self.lines.close();
                self.place.names -= names;
            }
            Step::Elsewhere => {
                if let Some((group, coordinates)) = self.place.elsewhere.pop_first() {
                    self.lines.open(&group);
                    self.place.path = group;
                    self.then(Step::Elsewhere);
                    self.then(Step::Close);
                    let members = coordinates.into_iter().collect();
                    self.then(Step::Arrays(Section::coordinates(members)));
                }
            }
            Step::Failed(error) => return self.fail(error),
        }
        Ok(())
    }

    fn take_first(&mut self, node: NodeId) -> Result<()> {
        let found = self.source.container.node(node);
        let found = found.inspect_err(|_| self.place.steps.push(Step::Begin))?;
        self.then(Step::Elsewhere);
        match &found.kind {
            NodeKind::Group => {
                self.place.visited.insert(node);
                self.place.path = self.top.to_vec();
                self.group(node);
                Ok(())
            }
            NodeKind::Array(array) => {
                self.one_array(node, array);
                Ok(())
            }
            NodeKind::CommittedDatatype(_) | NodeKind::Text(_) => self.fail(Error::NotFound),
        }
    }

    /// An array in its group.
    fn one_array(&mut self, node: NodeId, array: &Array) {
        let (group, name) = split(self.top);
        self.lines.open(group);
        self.place.path = group.to_vec();
        let member = Members::from_iter([(name.to_vec(), node)]);
        self.then(Step::Close);
        let is_coordinate = dimensions::is_coordinate(&*self.source.container, node, array);
        if self.told(name, is_coordinate) {
            self.then(Step::Arrays(Section::coordinates(member)));
        } else {
            self.then(Step::Beside);
            self.then(Step::Arrays(Section::arrays(member)));
        }
    }

    /// The next group of a list that is not in the document yet.
    fn next_group(&mut self, above: usize, list: Members, next: usize) {
        let Some((name, node)) = list.get(next) else {
            return;
        };
        self.place.names -= name.len();
        let is_new = self.place.visited.insert(node);
        if is_new {
            self.place.path.truncate(above);
            self.place.path = join(&self.place.path, name);
        }
        self.then(Step::Groups {
            above,
            list,
            next: next + 1,
        });
        if is_new {
            self.group(node);
        }
    }

    /// The group at the present path; the groups in it come after it.
    fn group(&mut self, group: NodeId) {
        self.lines.open(&self.place.path);
        self.place.is_empty = true;
        self.place.object.clone_from(&self.place.path);
        match self.source.container.links(group) {
            Ok(links) => self.then(Step::Links {
                group,
                links,
                found: Sorted::default(),
            }),
            Err(error) => {
                self.unreadable_part(b".", &error);
                self.write_members(group, Sorted::default());
            }
        }
    }

    /// Sorts the members of a group; writes comments on those that the language has no entity for.
    fn sort_links(
        &mut self,
        group: NodeId,
        mut links: Box<dyn LinkStream>,
        mut found: Sorted,
    ) -> Result<()> {
        while !self.is_full() {
            match links.next() {
                Ok(Some(link)) => {
                    if let Err(error) = self.member(link, &mut found) {
                        return self.fail(error);
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => self.unreadable_part(b".", &error),
            }
            self.write_members(group, found);
            return Ok(());
        }
        self.then(Step::Links {
            group,
            links,
            found,
        });
        Ok(())
    }

    /// Has the members of the present group written.
    fn write_members(&mut self, group: NodeId, found: Sorted) {
        let gone = [&found.texts, &found.coordinates, &found.arrays];
        let gone = gone.into_iter().map(|list| list.names.len()).sum();
        self.then(Step::Groups {
            above: self.place.path.len(),
            list: found.groups.finished(),
            next: 0,
        });
        self.then(Step::GroupEnd(gone));
        self.then(Step::Arrays(Section::arrays(found.arrays.finished())));
        let coordinates = found.coordinates.finished();
        self.then(Step::Arrays(Section::coordinates(coordinates)));
        let texts = found.texts.finished();
        self.then(Step::Attributes(Attributes::of(group, texts)));
    }

    fn member(&mut self, link: Link, found: &mut Sorted) -> Result<()> {
        let name = link.name;
        let node = match link.target {
            LinkTarget::Hard(node) => node,
            other => {
                self.comment_on_link(&name, &other);
                return Ok(());
            }
        };
        let path = join(&self.place.path, &name);
        let object = match self.source.container.node(node) {
            Ok(object) => object,
            Err(error) => {
                self.unreadable(&name, &error);
                return Ok(());
            }
        };
        let elsewhere = self.other_place(&object, &path);
        if let Some(elsewhere) = self.told(&name, elsewhere) {
            let comment = format!("{}: also {}", text(&name), text(&elsewhere));
            self.lines.comment(&comment);
            return Ok(());
        }
        self.place.entries += 1;
        if self.place.entries > limits::NDL_LINKS || path.len() > limits::NDL_PATH_BYTES {
            let most = to_u64(limits::NDL_LINKS);
            return Err(Error::limit("objects of a document", most));
        }
        let list = match &object.kind {
            NodeKind::Group => &mut found.groups,
            NodeKind::Text(_) => &mut found.texts,
            NodeKind::Array(array) => {
                let is_coordinate = dimensions::is_coordinate(&*self.source.container, node, array);
                match self.told(&name, is_coordinate) {
                    true => &mut found.coordinates,
                    false => &mut found.arrays,
                }
            }
            NodeKind::CommittedDatatype(datatype) => {
                let comment = format!("{}: datatype {}", text(&name), ndl_type(datatype));
                self.lines.comment(&comment);
                return Ok(());
            }
        };
        self.place.names += name.len();
        if self.place.names > limits::NDL_NAMES {
            let most = to_u64(limits::NDL_NAMES);
            return Err(Error::limit("names of a document's objects", most));
        }
        list.push(&name, node);
        Ok(())
    }

    /// Where the object stands in the document, if not at `path`.
    fn other_place(&mut self, node: &Node, path: &[u8]) -> Result<Option<Vec<u8>>> {
        let visited = &mut self.place.visited;
        if node.link_count <= 1 && !visited.contains(&node.id) {
            return Ok(None);
        }
        Ok(match (self.source.paths)(node.id)? {
            Some(own) if own == path => None,
            Some(own) => Some(own),
            None if matches!(node.kind, NodeKind::Group) => {
                let known = visited.contains(&node.id);
                known.then(|| b"above".to_vec())
            }
            None => (!visited.insert(node.id)).then(|| b"above".to_vec()),
        })
    }

    fn comment_on_link(&mut self, name: &[u8], target: &LinkTarget) {
        let leads = match target {
            LinkTarget::Hard(_) => return,
            LinkTarget::Soft(path) => format!("soft link to {}", text(path)),
            LinkTarget::External { file, path } => {
                format!("external link to {} in {}", text(path), text(file))
            }
            LinkTarget::Alias(_) | LinkTarget::Reference { .. } => {
                let names = match self.source.container.names(target) {
                    Ok(names) => names,
                    Err(error) => return self.unreadable(name, &error),
                };
                let path = names
                    .iter()
                    .flat_map(|name| [b"/", name.as_slice()].concat());
                let path = text(&path.collect::<Vec<u8>>());
                match target.other_file() {
                    Some(file) => format!("reference to {path} in {}", text(file)),
                    None => format!("the same as {path}"),
                }
            }
            LinkTarget::UserDefined(class) => format!("user-defined link of class {class}"),
            LinkTarget::Damaged(error) => return self.unreadable(name, error),
        };
        self.lines.comment(&format!("{}: {leads}", text(name)));
    }

    /// What was found out of a part, or a member; nothing where it cannot be, which a comment says.
    fn told<T: Default>(&mut self, name: &[u8], found: Result<T>) -> T {
        found.unwrap_or_else(|error| {
            self.unreadable_part(name, &error);
            T::default()
        })
    }

    /// Notes that a member of the present group cannot be read.
    fn unreadable(&mut self, name: &[u8], error: &Error) {
        (self.damaged)(&join(&self.place.path, name), error);
        self.comment_on_damage(name, error);
    }

    /// The same of a part of the object that is written.
    fn unreadable_part(&mut self, part: &[u8], error: &Error) {
        (self.damaged)(&self.place.object, error);
        self.comment_on_damage(part, error);
    }

    fn comment_on_damage(&mut self, name: &[u8], error: &Error) {
        let reason = text(error.to_string().as_bytes());
        let comment = format!("{}: cannot be read: {reason}", text(name));
        self.lines.comment(&comment);
    }

    /// Notes that the document has to hold a coordinate.
    fn need(&mut self, coordinate: &dimensions::Coordinate) {
        // Of an entry of a map: its two pieces of memory, and its share of a node.
        const ENTRY: usize = 128;
        let path = &coordinate.path;
        let below = match self.top {
            b"/" => true,
            top => path
                .strip_prefix(top)
                .is_some_and(|rest| rest.starts_with(b"/")),
        };
        if !below {
            let (group, name) = split(path);
            let bytes = &mut self.place.elsewhere_names;
            let beside = self.place.elsewhere.entry(group.to_vec());
            let beside = beside.or_insert_with(|| {
                *bytes += group.len() + ENTRY;
                BTreeMap::new()
            });
            if beside.insert(name.to_vec(), coordinate.node).is_none() {
                *bytes += name.len() + ENTRY;
            }
        }
    }

    /// Whether the coordinates that stand outside are too many to be remembered.
    fn needs_too_much(&self) -> bool {
        self.place.elsewhere_names > limits::NDL_NAMES
    }
}

/// A member's path.
fn join(group: &[u8], name: &[u8]) -> Vec<u8> {
    match group {
        b"/" => [b"/", name].concat(),
        group => [group, name].join(&b'/'),
    }
}

/// The path of the group and the name in it.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    let (group, name) = path.split_at(slash);
    let group = if group.is_empty() { b"/" } else { group };
    (group, name.strip_prefix(b"/").unwrap_or(name))
}

#[cfg(test)]
mod tests;

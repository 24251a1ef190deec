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
//! | what cannot be read | a comment with the reason; `value: null` |
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
mod value;
mod yaml;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::array::Engine;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::ndl::ndl_type;
use crate::model::{Array, Container, Link, LinkTarget, Node, NodeId, NodeKind};
use crate::view::json::SharedPaths;
use crate::view::ndl::yaml::{Lines, text};
use crate::view::piped::{Piped, Sink};
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

/// The document of the object `node` at `path` (names as in the file), written while it is read; the root
/// group and `/` for that of the whole file.
pub fn view(source: Source, node: NodeId, path: Vec<u8>, options: Options) -> Piped {
    Piped::new(move |sink: &mut dyn Sink| write(&source, node, &path, options, sink))
}

/// Writes that document.
///
/// # Errors
/// `NotFound` for what the language has no entity for (a committed datatype, a scalar of ASDF); `Limit` for
/// too many objects; as `sink` takes no more, or the object cannot be read.
pub fn write(
    source: &Source,
    node: NodeId,
    path: &[u8],
    options: Options,
    sink: &mut dyn Sink,
) -> Result<()> {
    let found = source.container.node(node)?;
    let mut document = Document {
        source,
        options,
        lines: Lines::new(sink),
        top: path,
        visited: HashSet::new(),
        entries: 0,
        names: 0,
        elsewhere: BTreeMap::new(),
    };
    match &found.kind {
        NodeKind::Group => document.tree(node, path)?,
        NodeKind::Array(array) => document.one_array(node, array, path)?,
        NodeKind::CommittedDatatype(_) | NodeKind::Text(_) => return Err(Error::NotFound),
    }
    document.rest()
}

/// Dimension coordinates by name, and by the path of their group.
type Coordinates = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, NodeId>>;

struct Document<'a> {
    source: &'a Source,
    options: Options,
    lines: Lines<'a>,
    /// The path of the object that the document is of.
    top: &'a [u8],
    /// Groups, and objects without a canonical path, that are in the document.
    visited: HashSet<NodeId>,
    entries: usize,
    /// Bytes of the names that are held for later.
    names: usize,
    /// Coordinates that are needed but stand outside.
    elsewhere: Coordinates,
}

/// A group's members, by what they are in the language.
#[derive(Default)]
struct Members {
    groups: Vec<(Vec<u8>, NodeId)>,
    coordinates: Vec<(Vec<u8>, NodeId)>,
    arrays: Vec<(Vec<u8>, NodeId)>,
    texts: Vec<(Vec<u8>, NodeId)>,
}

impl Document<'_> {
    /// A group and all below it.
    fn tree(&mut self, node: NodeId, path: &[u8]) -> Result<()> {
        let mut path = path.to_vec();
        self.visited.insert(node);
        // Each with the length of its group's path, which is where the walk is when its turn comes.
        let mut pending = vec![];
        let above = |path: &[u8], groups: Vec<(Vec<u8>, NodeId)>| {
            let length = path.len();
            let groups = groups.into_iter().rev();
            groups.map(move |(name, node)| (length, name, node))
        };
        pending.extend(above(&path, self.group(node, &path)?));
        while let Some((length, name, node)) = pending.pop() {
            self.names -= name.len();
            if self.visited.insert(node) {
                path.truncate(length);
                path = join(&path, &name);
                pending.extend(above(&path, self.group(node, &path)?));
            }
        }
        Ok(())
    }

    /// An array in its group.
    fn one_array(&mut self, node: NodeId, array: &Arc<Array>, path: &[u8]) -> Result<()> {
        let (group, name) = split(path);
        self.lines.open(group)?;
        let member = [(name.to_vec(), node)];
        if dimensions::is_coordinate(&*self.source.container, node, array) {
            self.coordinates(&member)?;
        } else {
            self.arrays(&member, group)?;
            let beside: Vec<_> = self.elsewhere.remove(group).into_iter().flatten().collect();
            self.coordinates(&beside)?;
        }
        self.lines.close();
        Ok(())
    }

    /// The coordinates that are needed but were not met.
    fn rest(&mut self) -> Result<()> {
        for (group, coordinates) in std::mem::take(&mut self.elsewhere) {
            self.lines.open(&group)?;
            let members: Vec<_> = coordinates.into_iter().collect();
            self.coordinates(&members)?;
            self.lines.close();
        }
        Ok(())
    }

    /// One group; returns the groups in it.
    fn group(&mut self, node: NodeId, path: &[u8]) -> Result<Vec<(Vec<u8>, NodeId)>> {
        self.lines.open(path)?;
        let members = self.members(node, path)?;
        let mut any = self.attributes(node, &members.texts)?;
        any |= self.coordinates(&members.coordinates)?;
        any |= self.arrays(&members.arrays, path)?;
        if !any {
            self.lines.line("{}")?;
        }
        self.lines.close();
        let gone = [&members.texts, &members.coordinates, &members.arrays];
        let gone = gone.into_iter().flatten();
        self.names -= gone.map(|(name, _)| name.len()).sum::<usize>();
        Ok(members.groups)
    }

    /// The members of a group; writes comments on those that the language has no entity for.
    fn members(&mut self, group: NodeId, path: &[u8]) -> Result<Members> {
        let mut members = Members::default();
        let mut links = match self.source.container.links(group) {
            Ok(links) => links,
            Err(error) => {
                self.unreadable(b".", &error)?;
                return Ok(members);
            }
        };
        loop {
            match links.next() {
                Ok(Some(link)) => self.member(link, path, &mut members)?,
                Ok(None) => return Ok(members),
                Err(error) => {
                    self.unreadable(b".", &error)?;
                    return Ok(members);
                }
            }
        }
    }

    fn member(&mut self, link: Link, group: &[u8], members: &mut Members) -> Result<()> {
        let name = link.name;
        let node = match link.target {
            LinkTarget::Hard(node) => node,
            other => return self.comment_on_link(&name, &other),
        };
        let path = join(group, &name);
        let found = match self.source.container.node(node) {
            Ok(found) => found,
            Err(error) => return self.unreadable(&name, &error),
        };
        if let Some(elsewhere) = self.other_place(&found, &path) {
            let comment = format!("{}: also {}", text(&name), text(&elsewhere));
            return self.lines.comment(&comment);
        }
        self.entries += 1;
        if self.entries > limits::NDL_LINKS || path.len() > limits::NDL_PATH_BYTES {
            let most = to_u64(limits::NDL_LINKS);
            return Err(Error::limit("objects of a document", most));
        }
        let list = match &found.kind {
            NodeKind::Group => &mut members.groups,
            NodeKind::Text(_) => &mut members.texts,
            NodeKind::Array(array) => {
                match dimensions::is_coordinate(&*self.source.container, node, array) {
                    true => &mut members.coordinates,
                    false => &mut members.arrays,
                }
            }
            NodeKind::CommittedDatatype(datatype) => {
                let comment = format!("{}: datatype {}", text(&name), ndl_type(datatype));
                return self.lines.comment(&comment);
            }
        };
        self.names += name.len();
        if self.names > limits::NDL_NAMES {
            let most = to_u64(limits::NDL_NAMES);
            return Err(Error::limit("names of a document's objects", most));
        }
        list.push((name, node));
        Ok(())
    }

    /// Where the object stands in the document, if not at `path`.
    fn other_place(&mut self, node: &Node, path: &[u8]) -> Option<Vec<u8>> {
        if node.link_count <= 1 && !self.visited.contains(&node.id) {
            return None;
        }
        match (self.source.paths)(node.id) {
            Some(own) if own == path => None,
            Some(own) => Some(own),
            None if matches!(node.kind, NodeKind::Group) => {
                let known = self.visited.contains(&node.id);
                known.then(|| b"above".to_vec())
            }
            None => (!self.visited.insert(node.id)).then(|| b"above".to_vec()),
        }
    }

    fn comment_on_link(&mut self, name: &[u8], target: &LinkTarget) -> Result<()> {
        let leads = match target {
            LinkTarget::Hard(_) => return Ok(()),
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
        self.lines.comment(&format!("{}: {leads}", text(name)))
    }

    fn unreadable(&mut self, name: &[u8], error: &Error) -> Result<()> {
        let reason = text(error.to_string().as_bytes());
        let comment = format!("{}: cannot be read: {reason}", text(name));
        self.lines.comment(&comment)
    }

    /// Notes that the document has to hold a coordinate.
    fn need(&mut self, coordinate: &dimensions::Coordinate) {
        let path = &coordinate.path;
        let below = match self.top {
            b"/" => true,
            top => path
                .strip_prefix(top)
                .is_some_and(|rest| rest.starts_with(b"/")),
        };
        if !below {
            let (group, name) = split(path);
            let beside = self.elsewhere.entry(group.to_vec()).or_default();
            beside.insert(name.to_vec(), coordinate.node);
        }
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

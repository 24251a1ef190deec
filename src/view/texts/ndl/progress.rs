//! How far a document has come: what is still to be written, and what has to be remembered for it.

use std::collections::{BTreeMap, HashSet};

use crate::error::Error;
use crate::model::{LinkStream, NodeId};
use crate::view::texts::ndl::lines::Place;
use crate::wire::to_u64;

/// Dimension coordinates by name, and by the path of their group.
pub(super) type Coordinates = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, NodeId>>;

/// How far a document has come.
#[derive(Default)]
pub(crate) struct Progress {
    /// The steps that are still to be taken, the next one last.
    pub(super) steps: Vec<Step>,
    /// Where the next line stands.
    pub(super) place: Place,
    /// The path of the group that is written.
    pub(super) path: Vec<u8>,
    /// The path of the object that is written: the group, or an array in it.
    pub(super) object: Vec<u8>,
    /// Whether that group has nothing yet.
    pub(super) is_empty: bool,
    /// Groups, and objects without a canonical path, that are in the document.
    pub(super) visited: HashSet<NodeId>,
    pub(super) entries: usize,
    /// Bytes of the names that are held for later.
    pub(super) names: usize,
    /// Coordinates that are needed but stand outside.
    pub(super) elsewhere: Coordinates,
    /// Bytes of their names, and of the paths of their groups.
    pub(super) elsewhere_names: usize,
}

/// A part of what is to be written.
pub(super) enum Step {
    Begin,
    /// The groups of a list from number `next` on, in the group whose path has `above` bytes, and
    /// all below them.
    Groups {
        above: usize,
        list: Members,
        next: usize,
    },
    /// Comments on links that the language has no entity for; the others are sorted.
    Links {
        group: NodeId,
        links: Box<dyn LinkStream>,
        found: SortedMembers,
    },
    Attributes(Attributes),
    Arrays(Section),
    /// The coordinates of the present group that are needed but were not met.
    Beside,
    /// Ends what stands below a key.
    Close,
    /// Ends a group, and lets go of so many bytes of names.
    GroupEnd(usize),
    /// The coordinates that are needed but were not met.
    Elsewhere,
    /// Ends the document.
    End,
}

/// Attributes of a node that are to be written and, as further ones, the scalars of a group.
pub(super) struct Attributes {
    pub(super) node: NodeId,
    /// The number of the next attribute; `None` behind the last.
    pub(super) next: Option<u64>,
    pub(super) texts: Members,
    pub(super) next_text: usize,
    /// Whether their key is written.
    pub(super) is_open: bool,
    /// Why there are more that cannot be read.
    pub(super) failure: Option<Error>,
}

/// Arrays that are to be written under one key, each with its attributes.
pub(super) struct Section {
    pub(super) kind: SectionKind,
    pub(super) members: Members,
    pub(super) next: usize,
    /// Whether its key is written.
    pub(super) is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    Coordinates,
    Arrays,
}

impl Attributes {
    /// The items of `node`, and `texts`.
    pub(super) fn of(node: NodeId, texts: Members) -> Self {
        Attributes {
            node,
            next: Some(0),
            texts,
            next_text: 0,
            is_open: false,
            failure: None,
        }
    }

    fn weight(&self) -> u64 {
        self.texts.weight()
    }
}

impl Section {
    pub(super) fn coordinates(members: Members) -> Self {
        Self::new(SectionKind::Coordinates, members)
    }

    pub(super) fn arrays(members: Members) -> Self {
        Self::new(SectionKind::Arrays, members)
    }

    fn new(kind: SectionKind, members: Members) -> Self {
        Section {
            kind,
            members,
            next: 0,
            is_open: false,
        }
    }

    fn weight(&self) -> u64 {
        self.members.weight()
    }
}

/// Names and what they lead to.
#[derive(Default)]
pub(super) struct Members {
    pub(super) names: Vec<u8>,
    /// Where each name ends, and its object.
    pub(super) ends: Vec<(usize, NodeId)>,
}

/// A group's members, by what they are in the language.
#[derive(Default)]
pub(super) struct SortedMembers {
    pub(super) groups: Members,
    pub(super) coordinates: Members,
    pub(super) arrays: Members,
    pub(super) texts: Members,
}

impl Members {
    pub(super) fn push(&mut self, name: &[u8], node: NodeId) {
        self.names.extend_from_slice(name);
        self.ends.push((self.names.len(), node));
    }

    pub(super) fn get(&self, number: usize) -> Option<(&[u8], NodeId)> {
        let &(end, node) = self.ends.get(number)?;
        let before = number
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        let start = before.map_or(0, |&(end, _)| end);
        Some((&self.names[start..end], node))
    }

    fn weight(&self) -> u64 {
        let ends = self.ends.capacity() * size_of::<(usize, NodeId)>();
        to_u64(self.names.capacity() + ends)
    }

    /// Lets go of room for more.
    pub(super) fn finished(mut self) -> Self {
        self.names.shrink_to_fit();
        self.ends.shrink_to_fit();
        self
    }
}

impl FromIterator<(Vec<u8>, NodeId)> for Members {
    fn from_iter<T: IntoIterator<Item = (Vec<u8>, NodeId)>>(members: T) -> Self {
        let mut list = Members::default();
        for (name, node) in members {
            list.push(&name, node);
        }
        list
    }
}

impl SortedMembers {
    fn weight(&self) -> u64 {
        let lists = [&self.groups, &self.coordinates, &self.arrays, &self.texts];
        lists.into_iter().map(Members::weight).sum()
    }
}

impl Step {
    fn weight(&self) -> u64 {
        let own = to_u64(size_of::<Step>());
        own + match self {
            Step::Groups { list, .. } => list.weight(),
            Step::Links { links, found, .. } => links.weight().saturating_add(found.weight()),
            Step::Attributes(attributes) => attributes.weight(),
            Step::Arrays(section) => section.weight(),
            _ => 0,
        }
    }
}

impl Progress {
    /// Bytes of memory that it takes, about.
    pub(super) fn weight(&self) -> u64 {
        // Of a set or map also what makes it sparse.
        const VISITED: usize = 2 * size_of::<NodeId>();
        let steps: u64 = self.steps.iter().map(Step::weight).sum();
        let visited = self.visited.capacity() * VISITED;
        let own = size_of::<Progress>() + self.path.capacity() + self.object.capacity();
        to_u64(own + visited + self.elsewhere_names) + steps
    }
}

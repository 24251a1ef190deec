//! The state of an NDL document while it is written: the remaining steps, and the data that they
//! need.

use std::collections::{BTreeMap, HashSet};

use h5fs_reader::error::Error;
use h5fs_reader::model::{LinkStream, NodeId};
use h5fs_reader::wire::to_u64;

use crate::documents::ndl::lines::KeyPosition;

/// Nodes of dimension coordinates, by the path of their group and then by name.
pub(super) type CoordinatesByPath = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, NodeId>>;

/// The state of an NDL document between two calls that write parts of it.
#[derive(Default)]
pub struct DocumentState {
    /// The remaining steps. The next one is the last in the list.
    pub(super) steps: Vec<WriteStep>,
    /// The position of the next line in the nested maps.
    pub(super) place: KeyPosition,
    /// The path of the current group.
    pub(super) path: Vec<u8>,
    /// The path of the current object: the group itself, or an array in the group.
    pub(super) object: Vec<u8>,
    /// Whether nothing was written for the current group yet.
    pub(super) is_empty: bool,
    /// The nodes of groups, and of objects without a canonical path, that the document already
    /// contains.
    pub(super) visited: HashSet<NodeId>,
    pub(super) entries: usize,
    /// Total length in bytes of the names that are stored for later steps.
    pub(super) names: usize,
    /// Dimension coordinates that the shapes in the document name, but that are not below the
    /// described object.
    pub(super) needed_coordinates: CoordinatesByPath,
    /// Total length in bytes of the names and group paths in `needed_coordinates`.
    pub(super) needed_names_bytes: usize,
}

/// A step of writing the document.
pub(super) enum WriteStep {
    Begin,
    /// Writes the groups in `list` from index `next` on, and all groups below them. `above` is the
    /// length of their parent's path in bytes.
    Groups {
        above: usize,
        list: MemberNames,
        next: usize,
    },
    /// Sorts the links of a group, and writes comments for links that NDL cannot express.
    Links {
        group: NodeId,
        links: Box<dyn LinkStream>,
        found: SortedMembers,
    },
    Attributes(AttributeQueue),
    Arrays(ArraySection),
    /// Writes the coordinates in `DocumentState::needed_coordinates` that are in the current group.
    NeededInGroup,
    /// Closes the innermost open map.
    Close,
    /// Ends a group, and subtracts this many bytes, the names of its written members, from
    /// `DocumentState::names`.
    GroupEnd(usize),
    /// Writes the coordinates in `DocumentState::needed_coordinates` that are in other groups.
    NeededElsewhere,
    /// Ends the document.
    End,
}

/// The attributes of a node that are not written yet. For an ASDF group, its scalars follow as
/// further attributes.
pub(super) struct AttributeQueue {
    pub(super) node: NodeId,
    /// The number of the next attribute in the file; `None` after the last one was written.
    pub(super) next: Option<u64>,
    pub(super) texts: MemberNames,
    pub(super) next_text: usize,
    /// Whether the key `attributes` is already written.
    pub(super) is_open: bool,
    /// The error that prevented reading further attributes of the node.
    pub(super) failure: Option<Error>,
}

/// The arrays of a group that are written under one key, `dimcoords` or `ndarrays`.
pub(super) struct ArraySection {
    pub(super) kind: SectionKind,
    pub(super) members: MemberNames,
    pub(super) next: usize,
    /// Whether the key `dimcoords` or `ndarrays` is already written.
    pub(super) is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionKind {
    Coordinates,
    Arrays,
}

impl AttributeQueue {
    /// Creates the queue of the attributes of `node`, followed by the scalars `texts`.
    pub(super) fn new(node: NodeId, texts: MemberNames) -> Self {
        AttributeQueue {
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

impl ArraySection {
    pub(super) fn coordinates(members: MemberNames) -> Self {
        Self::new(SectionKind::Coordinates, members)
    }

    pub(super) fn arrays(members: MemberNames) -> Self {
        Self::new(SectionKind::Arrays, members)
    }

    fn new(kind: SectionKind, members: MemberNames) -> Self {
        ArraySection {
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

/// A list of members: their names one after another, and their nodes.
#[derive(Default)]
pub(super) struct MemberNames {
    pub(super) names: Vec<u8>,
    /// For each member, the offset in `names` where its name ends, and its node.
    pub(super) ends: Vec<(usize, NodeId)>,
}

/// The members of a group, sorted by their kind in NDL.
#[derive(Default)]
pub(super) struct SortedMembers {
    pub(super) groups: MemberNames,
    pub(super) coordinates: MemberNames,
    pub(super) arrays: MemberNames,
    pub(super) texts: MemberNames,
}

impl MemberNames {
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

    /// Frees the unused capacity of the list.
    pub(super) fn shrink_capacity(mut self) -> Self {
        self.names.shrink_to_fit();
        self.ends.shrink_to_fit();
        self
    }
}

impl FromIterator<(Vec<u8>, NodeId)> for MemberNames {
    fn from_iter<T: IntoIterator<Item = (Vec<u8>, NodeId)>>(members: T) -> Self {
        let mut list = MemberNames::default();
        for (name, node) in members {
            list.push(&name, node);
        }
        list
    }
}

impl SortedMembers {
    fn weight(&self) -> u64 {
        let lists = [&self.groups, &self.coordinates, &self.arrays, &self.texts];
        lists.into_iter().map(MemberNames::weight).sum()
    }
}

impl WriteStep {
    fn weight(&self) -> u64 {
        let own = to_u64(size_of::<WriteStep>());
        own + match self {
            WriteStep::Groups { list, .. } => list.weight(),
            WriteStep::Links { links, found, .. } => links.weight().saturating_add(found.weight()),
            WriteStep::Attributes(attributes) => attributes.weight(),
            WriteStep::Arrays(section) => section.weight(),
            _ => 0,
        }
    }
}

impl DocumentState {
    /// Returns the approximate memory of the state in bytes.
    pub(super) fn weight(&self) -> u64 {
        // A hash set keeps about half of its slots free.
        const VISITED: usize = 2 * size_of::<NodeId>();
        let steps: u64 = self.steps.iter().map(WriteStep::weight).sum();
        let visited = self.visited.capacity() * VISITED;
        let own = size_of::<DocumentState>() + self.path.capacity() + self.object.capacity();
        to_u64(own + visited + self.needed_names_bytes) + steps
    }
}

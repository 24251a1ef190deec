//! The joined file as a `Container`.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::memory::weighted_lru::WeightedLru;
use h5fs_reader::model::datatype::ReferenceKind;
use h5fs_reader::model::region::Region;
use h5fs_reader::model::{
    Attribute, Container, Link, LinkStream, LinkTarget, Node, NodeId, NodeKind, Reference,
};
use h5fs_reader::wire::{Count, to_u64, to_usize};

use crate::element_recoding::split_pointer;
#[cfg(test)]
use crate::joined_array::JoinedArray;
use crate::limits;
use crate::members::Members;
use crate::scales::joined_file_sequence;
use crate::tree::{Tree, TreeEntry, TreeNode};

/// Divisor that gives the memory limit of the cache of array descriptions: the limit for the
/// sources of virtual datasets, divided by this number.
const NODE_CACHE_DIVISOR: u64 = 4;

/// A pointer as a member's file stores it (a variable-length element or a reference), and the
/// container of this file, which resolves the pointer.
type StoredPointer<'e> = (Arc<dyn Container>, &'e [u8]);

/// The members of a directory, shown as the container of one joined file.
pub struct JoinedContainer {
    members: Arc<Members>,
    tree: Arc<Tree>,
    /// Cache of recently used array descriptions. A description may contain a mapping for each
    /// member, so that descriptions of all arrays would take too much memory.
    nodes: Mutex<WeightedLru<NodeId, Arc<Node>>>,
}

impl JoinedContainer {
    pub(super) fn new(members: Members, tree: Tree) -> Self {
        JoinedContainer {
            members: Arc::new(members),
            tree: Arc::new(tree),
            nodes: Mutex::new(WeightedLru::new(limits::VIRTUAL_BYTES / NODE_CACHE_DIVISOR)),
        }
    }

    fn node(&self, id: NodeId) -> Result<&TreeNode> {
        let node = to_usize(id.index())
            .ok()
            .and_then(|index| self.tree.nodes.get(index));
        node.ok_or_else(|| Error::corrupt("joined: no object has that number", None))
    }

    /// Returns the joined array at a node, for tests.
    #[cfg(test)]
    pub(super) fn joined_array(&self, id: NodeId) -> Option<&JoinedArray> {
        match &self.node(id).ok()?.kind {
            TreeEntry::Array(made) => Some(made),
            _ => None,
        }
    }

    fn describe(&self, id: NodeId, kind: NodeKind) -> Arc<Node> {
        Arc::new(Node {
            id,
            kind,
            assembled_array: None,
            link_count: 1,
            modified: None,
            comment: None,
            tag: None,
            error: None,
        })
    }

    /// Splits a pointer of the joined file into the member's file that contains the target, and the
    /// pointer as this file stores it. Returns `None` for a null pointer, and if the target is only
    /// in the joined file.
    fn resolve_pointer<'e>(&self, element: &'e [u8]) -> Result<Option<StoredPointer<'e>>> {
        match split_pointer(element) {
            Some((file, own)) => {
                let open = self.members.open(file)?;
                Ok(Some((Arc::clone(open.container()), own)))
            }
            None => Ok(None),
        }
    }
}

impl fmt::Debug for JoinedContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Joined")
    }
}

impl Container for JoinedContainer {
    fn for_request(self: Arc<Self>, _budget: &RequestBudget) -> Arc<dyn Container> {
        self
    }

    fn root(&self) -> NodeId {
        NodeId::from_index(0)
    }

    fn weight(&self) -> u64 {
        let own = self.members.weight().plus(self.tree.weight());
        own.plus(lock(&self.nodes).weight())
    }

    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        let made = match &self.node(id)?.kind {
            TreeEntry::Group => return Ok(self.describe(id, NodeKind::Group)),
            TreeEntry::Scalar(scalar) => {
                return Ok(self.describe(id, NodeKind::Scalar(scalar.clone())));
            }
            TreeEntry::Array(made) => made,
        };
        if let Some(node) = lock(&self.nodes).get(&id) {
            return Ok(Arc::clone(node));
        }
        let array = made.array(&self.members);
        let weight = array.weight();
        let node = self.describe(id, NodeKind::Array(Arc::new(array)));
        let gone = lock(&self.nodes).put(id, Arc::clone(&node), weight);
        drop(gone);
        Ok(node)
    }

    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        let children = &self.node(group)?.children;
        let found = children.get(name);
        Ok(found.map(|&number| link(name, number)))
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        self.node(group)?;
        Ok(Box::new(JoinedLinkStream {
            tree: Arc::clone(&self.tree),
            group,
            position: 0,
            last: None,
        }))
    }

    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        for (name, content) in &self.node(id)?.attributes {
            let attribute = Attribute {
                name: name.clone(),
                content: Ok(content.clone()),
            };
            if visit(attribute).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        let mut attributes = self.node(id)?.attributes.iter();
        let found = attributes.find(|(own, _)| own == name);
        Ok(found.map(|(name, content)| Attribute {
            name: name.clone(),
            content: Ok(content.clone()),
        }))
    }

    fn variable_length_bytes(&self, element: &[u8], base_size: u64) -> Result<Option<u64>> {
        if let Some(own) = joined_file_sequence(element) {
            return Ok(Some(to_u64(own.len())));
        }
        match self.resolve_pointer(element)? {
            Some((container, own)) => container.variable_length_bytes(own, base_size),
            None => Ok(None),
        }
    }

    fn read_variable_length(
        &self,
        element: &[u8],
        base_size: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        if let Some(own) = joined_file_sequence(element) {
            let end = to_usize(part.end)?.min(own.len());
            let start = to_usize(part.start)?.min(end);
            return Ok(own.get(start..end).map(<[u8]>::to_vec));
        }
        match self.resolve_pointer(element)? {
            Some((container, own)) => container.read_variable_length(own, base_size, part),
            None => Ok(None),
        }
    }

    /// Returns the number of the file that a pointer points into. The caller sorts pointers by this
    /// number, so that the pointers into one file are read together.
    fn variable_length_offset(&self, element: &[u8]) -> u64 {
        split_pointer(element).map_or(0, |(file, _)| to_u64(file))
    }

    fn text_length(&self, element: &[u8]) -> Result<u64> {
        match self.resolve_pointer(element)? {
            Some((container, own)) => container.text_length(own),
            None => Ok(0),
        }
    }

    fn reference(&self, _kind: ReferenceKind, element: &[u8]) -> Result<Reference> {
        let number = element
            .first_chunk()
            .map_or(0, |own| u64::from_le_bytes(*own));
        let node = NodeId::new(number).filter(|&node| self.node(node).is_ok());
        Ok(match node {
            Some(node) => Reference::Object(node),
            None if number == 0 => Reference::Null,
            None => Reference::Dangling(number),
        })
    }

    fn members_csv(&self) -> Option<&[u8]> {
        Some(&self.tree.file_list)
    }

    fn region(&self, _element: &[u8]) -> Result<Option<Region>> {
        Ok(None)
    }
}

fn link(name: &[u8], number: u32) -> Link {
    Link {
        name: name.to_vec(),
        target: LinkTarget::Hard(NodeId::from_index(number)),
        order: None,
        is_to_group: false,
    }
}

/// A stream of the links of one group of the joined file, sorted by name.
struct JoinedLinkStream {
    tree: Arc<Tree>,
    group: NodeId,
    position: u64,
    /// The name of the last returned link. `None` after a seek, when the next link is found by its
    /// position instead.
    last: Option<Box<[u8]>>,
}

impl LinkStream for JoinedLinkStream {
    fn position(&self) -> u64 {
        self.position
    }

    fn is_in_order(&self) -> bool {
        true
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        if position != self.position {
            self.last = None;
        }
        self.position = position;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Link>> {
        use std::ops::Bound;
        let index = to_usize(self.group.index())?;
        let Some(node) = self.tree.nodes.get(index) else {
            return Ok(None);
        };
        let found = match &self.last {
            Some(last) => {
                let behind = (Bound::Excluded(&**last), Bound::Unbounded);
                node.children.range::<[u8], _>(behind).next()
            }
            None => node.children.iter().nth(to_usize(self.position)?),
        };
        let Some((name, &number)) = found else {
            return Ok(None);
        };
        self.last = Some(name.clone());
        self.position = self.position.plus_one();
        Ok(Some(link(name, number)))
    }
}

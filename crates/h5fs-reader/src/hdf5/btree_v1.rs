//! Version 1 B-trees, which index the names of old groups and the chunks of old datasets.
//!
//! HDF5 3.0, III.A.1. Writers allocate nodes for 2K children. K is a constant of the file that a
//! reader does not need: each node stores how many entries it uses, and only those are valid.
//! Sibling addresses may be outdated, so every walk goes through the parents.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::limits;
use crate::memory::request_budget::RequestBudget;
use crate::wire::{Count, Cursor, to_u64};

const NODE: &str = "B-tree node (version 1)";
/// Assumed length in bytes of a B-tree node or a symbol table node that was not read yet. Most
/// nodes are shorter.
pub(crate) const ASSUMED_NODE_BYTES: u64 = 1024;

const GROUP: u8 = 0;
const CHUNK: u8 = 1;

/// A version 1 B-tree: the address of its root, and the type and size of its keys.
#[derive(Debug, Clone)]
pub(crate) struct BtreeV1 {
    meta: Arc<Metadata>,
    root: Address,
    node_type: u8,
    key_size: usize,
}

/// A node in memory, with N children between N + 1 keys. A node of level 0 is a leaf.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    block: Arc<[u8]>,
    at: Address,
    level: u8,
    used: usize,
    prefix: usize,
    key_size: usize,
    entry_size: usize,
    /// Number of bytes of this node and all its ancestors together.
    path_bytes: u64,
}

impl BtreeV1 {
    /// Returns the tree of a group (node type 0), whose root is at absolute offset `root`. A key is
    /// the offset of a name in the group's local heap.
    pub(crate) fn for_group(meta: Arc<Metadata>, root: Address) -> Self {
        let key_size = meta.structure_size(0, 1, 0);
        BtreeV1 {
            meta,
            root,
            node_type: GROUP,
            key_size,
        }
    }

    /// Returns the tree of a chunked dataset (node type 1) of `rank` dimensions, whose root is at
    /// absolute offset `root`. A key consists of the chunk's size, its filter mask, and its offset
    /// in elements. The offset has an additional dimension for the element's bytes.
    pub(crate) fn for_chunks(meta: Arc<Metadata>, root: Address, rank: usize) -> Self {
        let key_size = rank.plus(2).times(8);
        BtreeV1 {
            meta,
            root,
            node_type: CHUNK,
            key_size,
        }
    }

    /// Reads the root node. Its level may be any value of one byte: with small nodes, writers can
    /// create a tree of some hundred chunks that has one level per chunk.
    ///
    /// # Errors
    /// Fails if the node cannot be read. `Corrupt` if the node is not of the tree's node type.
    pub(crate) fn read_root(&self) -> Result<Node> {
        self.node(self.root, 0)
    }

    /// Returns the address of child `i` of `node`, or `None` for the undefined address. The child
    /// of a leaf is the indexed structure: a symbol table node or a chunk.
    pub(crate) fn child(&self, node: &Node, i: usize) -> Result<Option<Address>> {
        let mut cursor = node.entry(i, node.used)?;
        cursor.skip(node.key_size)?;
        self.meta.read_address(&mut cursor)
    }

    /// Returns the address of a child like [`child`](Self::child). Fails with `Corrupt` for the
    /// undefined address.
    pub(crate) fn defined_child(&self, node: &Node, i: usize) -> Result<Address> {
        let child = self.child(node, i)?;
        child.ok_or_else(|| Error::corrupt(format!("{NODE}: a child is undefined"), node.at))
    }

    /// Reads the node that is child `i` of `node`. The child's level must be lower than the level
    /// of `node`, so that no descent is cyclic.
    ///
    /// # Errors
    /// Fails if the child cannot be read. `Corrupt` if its level is not lower. `Limit` if all nodes
    /// on the path together have more than [`limits::TREE_BRANCH`] bytes.
    pub(crate) fn descend(&self, node: &Node, i: usize) -> Result<Node> {
        let child = self.node(self.defined_child(node, i)?, node.path_bytes)?;
        if child.level < node.level {
            Ok(child)
        } else {
            Err(Error::corrupt(
                format!("{NODE}: its level does not decrease"),
                child.at,
            ))
        }
    }

    /// Reads a child like [`descend`](Self::descend). Also asks a remote source for the children
    /// after it, which are needed next.
    pub(crate) fn descend_first(&self, node: &Node, i: usize) -> Result<Node> {
        self.prefetch_children(node, i)?;
        self.descend(node, i)
    }

    /// Asks a remote source for child `i` of `node` and the children after it, unless child `i` is
    /// already available. The length of `node` serves as the length of each child, because all
    /// nodes of a tree have the same capacity.
    fn prefetch_children(&self, node: &Node, i: usize) -> Result<()> {
        if !self.meta.is_remote() {
            return Ok(());
        }
        let length = to_u64(node.block.len()).max(ASSUMED_NODE_BYTES);
        let children = self.children(node, i.plus_one());
        let first = self.defined_child(node, i)?;
        self.meta
            .prefetch_with_siblings(first, length, || children.map(|at| (at, length)));
        Ok(())
    }

    /// Returns the defined addresses of the children of `node`, from child number `first` on.
    fn children(&self, node: &Node, first: usize) -> impl Iterator<Item = Address> {
        (first..node.used).filter_map(|i| self.child(node, i).ok()?)
    }

    /// Returns a view of the same tree whose reads are charged to `budget`.
    pub(crate) fn with_budget(&self, budget: &RequestBudget) -> Self {
        BtreeV1 {
            meta: self.meta.with_budget(budget),
            ..self.clone()
        }
    }

    /// Returns an iterator over the entries of all leaves, in key order.
    pub(crate) fn entries(&self) -> Result<LeafEntries> {
        let root = self.read_root()?;
        Ok(LeafEntries {
            budget: self.meta.source().length(),
            path: vec![(root, 0)],
            tree: self.clone(),
        })
    }

    /// Returns key `i` of a group's `node`: the offset of a name in the group's local heap.
    fn name_offset(&self, node: &Node, i: usize) -> Result<u64> {
        self.meta.read_length(&mut node.key(i)?)
    }

    fn node(&self, at: Address, above: u64) -> Result<Node> {
        let prefix = self.meta.structure_size(2, 0, 8);
        let block = self.meta.unverified_block(at, to_u64(prefix), NODE)?;
        let mut cursor = Cursor::new(&block, at, NODE);
        cursor.expect_signature(b"TREE")?;
        if cursor.u8()? != self.node_type {
            return Err(cursor.corrupt("is of another type"));
        }
        let level = cursor.u8()?;
        let used = usize::from(cursor.u16()?);
        let entry_size = self.meta.structure_size(1, 0, self.key_size);
        let entries = used.times(entry_size);
        let length = prefix.plus(entries).plus(self.key_size);
        let branch = above.plus(to_u64(length));
        Error::check_limit(branch, limits::TREE_BRANCH, NODE)?;
        Ok(Node {
            block: self.meta.unverified_block(at, to_u64(length), NODE)?,
            at,
            level,
            used,
            prefix,
            key_size: self.key_size,
            entry_size,
            path_bytes: branch,
        })
    }
}

impl Node {
    /// Returns the node's level in the tree, 0 for a leaf.
    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    /// Returns the number of children of the node.
    pub(crate) fn child_count(&self) -> usize {
        self.used
    }

    /// Returns a cursor at key `i`, from 0 to [`child_count`](Self::child_count) inclusive.
    pub(crate) fn key(&self, i: usize) -> Result<Cursor<'_>> {
        self.entry(i, self.used.plus_one())
    }

    fn entry(&self, i: usize, count: usize) -> Result<Cursor<'_>> {
        let mut cursor = Cursor::new(&self.block, self.at, NODE);
        if i >= count {
            return Err(cursor.corrupt("has no such entry"));
        }
        let entry = i.times(self.entry_size);
        cursor.skip(self.prefix.plus(entry))?;
        Ok(cursor)
    }

    /// Returns the index of the first key in `from..=child_count` for which `is_past` returns true,
    /// or `None` if there is none. `is_past` must also return true for all keys after that one.
    pub(crate) fn find_first_key(
        &self,
        from: usize,
        mut is_past: impl FnMut(Cursor<'_>) -> Result<bool>,
    ) -> Result<Option<usize>> {
        let (mut low, mut high) = (from, self.used.plus_one());
        while low < high {
            let middle = low.midpoint(high);
            if is_past(self.key(middle)?)? {
                high = middle;
            } else {
                low = middle.plus_one();
            }
        }
        Ok((low <= self.used).then_some(low))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafEntry<'t> {
    tree: &'t BtreeV1,
    node: &'t Node,
    i: usize,
}

impl LeafEntry<'_> {
    /// Returns a cursor at the entry's key, which precedes its child.
    pub(crate) fn key(&self) -> Result<Cursor<'_>> {
        self.node.key(self.i)
    }

    /// Returns the address of the indexed structure, or `None` for the undefined address.
    pub(crate) fn child(&self) -> Result<Option<Address>> {
        self.tree.child(self.node, self.i)
    }
}

/// A position among the entries of a tree's leaves.
#[derive(Debug)]
pub(crate) struct EntryPosition {
    /// The number of consumed children of each node on the path, from the root down.
    taken: Box<[u16]>,
    budget: u64,
}

impl EntryPosition {
    /// Returns the position as a list of numbers, from which [`from_numbers`](Self::from_numbers)
    /// restores it.
    pub(crate) fn to_numbers(&self) -> Vec<u64> {
        let taken = self.taken.iter().copied().map(u64::from);
        std::iter::once(self.budget).chain(taken).collect()
    }

    /// Restores the position from the result of [`to_numbers`](Self::to_numbers).
    pub(crate) fn from_numbers(numbers: &[u64]) -> Self {
        let (budget, taken) = numbers.split_first().unwrap_or((&0, &[]));
        let taken = taken.iter();
        EntryPosition {
            taken: taken
                .map(|&taken| taken.try_into().unwrap_or(u16::MAX))
                .collect(),
            budget: *budget,
        }
    }
}

/// An iterator over the entries of a tree's leaves. One node of each level is in memory.
#[derive(Debug)]
pub(crate) struct LeafEntries {
    tree: BtreeV1,
    /// The nodes from the root down, each with the number of its consumed children.
    path: Vec<(Node, usize)>,
    /// Number of bytes of nodes that may still be read. Nodes do not overlap, so together they are
    /// not longer than the file. A tree that reaches one node many times exceeds the budget.
    budget: u64,
}

impl LeafEntries {
    /// Returns the next entry.
    ///
    /// # Errors
    /// Fails if a node on the path is damaged. The iterator is then at its end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<LeafEntry<'_>>> {
        match self.advance() {
            Ok(true) => Ok(self.path.last().map(|(node, taken)| LeafEntry {
                tree: &self.tree,
                node,
                i: taken.minus_or_zero(1),
            })),
            Ok(false) => Ok(None),
            Err(error) => {
                self.path.clear();
                Err(error)
            }
        }
    }

    /// Returns the number of bytes of the nodes that the iterator has in memory.
    pub(crate) fn weight(&self) -> u64 {
        self.path.last().map_or(0, |(node, _)| node.path_bytes)
    }

    /// Returns the position before the next entry.
    pub(crate) fn position(&self) -> EntryPosition {
        let taken = self.path.iter().map(|(_, taken)| *taken);
        EntryPosition {
            taken: taken
                .map(|taken| taken.try_into().unwrap_or(u16::MAX))
                .collect(), // `used` is a `u16`
            budget: self.budget,
        }
    }

    /// Moves the iterator to `place`, a position in the same tree, by one descent.
    ///
    /// # Errors
    /// Fails if a node on the path is damaged. The iterator is then at its end.
    pub(crate) fn seek(&mut self, place: &EntryPosition) -> Result<()> {
        self.path.clear();
        let mut path: Vec<(Node, usize)> = Vec::new();
        for taken in place.taken.iter().copied().map(usize::from) {
            let node = match path.last() {
                Some((above, taken)) => self.tree.descend(above, taken.minus_or_zero(1))?,
                None => self.tree.read_root()?,
            };
            path.push((node, taken));
        }
        self.path = path;
        self.budget = place.budget;
        Ok(())
    }

    /// Returns the addresses of the structures that come next: the remaining children of the
    /// current leaf, then the children of the following leaves that can be read without waiting.
    fn following_children(&self) -> impl Iterator<Item = Address> {
        let tree = &self.tree;
        let mut path = self.path.iter().rev();
        let (leaf, above) = (path.next(), path.next());
        let own = leaf
            .into_iter()
            .flat_map(|(leaf, taken)| tree.children(leaf, *taken));
        let leaves = above.into_iter().flat_map(|(above, taken)| {
            let leaves = tree.children(above, *taken);
            let leaves = leaves.take_while(|at| tree.meta.is_available(*at, ASSUMED_NODE_BYTES));
            leaves.filter_map(|at| tree.node(at, above.path_bytes).ok())
        });
        own.chain(leaves.flat_map(|leaf| tree.children(&leaf, 0).collect::<Vec<_>>()))
    }

    /// Moves to the next entry. The leaf that contains the entry is then the last node of `path`.
    /// Returns `false` after the last entry.
    fn advance(&mut self) -> Result<bool> {
        let mut descents: usize = 0;
        while let Some((node, taken)) = self.path.last_mut() {
            let i = *taken;
            if i >= node.used {
                self.path.pop();
                continue;
            }
            *taken = i.plus_one();
            if node.level == 0 {
                return Ok(true);
            }
            descents = descents.plus_one();
            if descents > limits::EMPTY_NODES {
                let what = format!("{NODE}: too many nodes without entries");
                return Err(Error::corrupt(what, node.at));
            }
            let child = self.tree.descend_first(node, i)?;
            let left = self.budget.checked_sub(to_u64(child.block.len()));
            self.budget = left.ok_or_else(|| {
                Error::corrupt(format!("{NODE}: it occurs more than once"), child.at)
            })?;
            self.path.push((child, 0));
        }
        Ok(false)
    }
}

/// Two keys of a group's tree, as offsets in the group's local heap. The names between them are
/// greater than the first key (`None`: no lower bound) and not greater than the second.
pub(crate) type KeyPair = (Option<u64>, u64);

/// An iterator over the symbol table nodes of a group, in the order of the names.
#[derive(Debug)]
pub(crate) struct SymbolTableNodes(LeafEntries);

impl SymbolTableNodes {
    /// Returns the number of bytes of the B-tree nodes that the iterator has in memory.
    pub(crate) fn weight(&self) -> u64 {
        self.0.weight()
    }

    /// Creates the iterator. `root` is the absolute offset of the group's B-tree.
    pub(crate) fn new(meta: Arc<Metadata>, root: Address) -> Result<Self> {
        BtreeV1::for_group(meta, root)
            .entries()
            .map(SymbolTableNodes)
    }

    /// Returns the absolute offset of the next symbol table node, or `None` after the last.
    ///
    /// # Errors
    /// Fails if a node on the path is damaged. The iterator is then at its end.
    pub(crate) fn next_leaf(&mut self) -> Result<Option<Address>> {
        let entry = self.0.next_entry()?;
        let leaf = entry.map(|entry| entry.tree.defined_child(entry.node, entry.i));
        let Some(leaf) = leaf.transpose()? else {
            return Ok(None);
        };
        let later = || {
            self.0
                .following_children()
                .map(|at| (at, ASSUMED_NODE_BYTES))
        };
        self.0
            .tree
            .meta
            .prefetch_with_siblings(leaf, ASSUMED_NODE_BYTES, later);
        Ok(Some(leaf))
    }

    /// Returns, for each node on the path to the last returned symbol table node, the keys before
    /// and after the child on the path, from the root down. The first key of a node is replaced by
    /// `None`, because a search does not use it.
    pub(crate) fn path_keys(&self) -> Result<Vec<KeyPair>> {
        let tree = &self.0.tree;
        let keys = self.0.path.iter().map(|(node, taken)| {
            let before = taken.checked_sub(1).filter(|&i| i > 0);
            let after = before.map(|i| tree.name_offset(node, i)).transpose()?;
            Ok((after, tree.name_offset(node, *taken)?))
        });
        keys.collect()
    }

    /// Returns the position before the next symbol table node.
    pub(crate) fn position(&self) -> EntryPosition {
        self.0.position()
    }

    /// Moves the iterator to `place`, a position in the tree of the same group, backwards or
    /// forwards.
    ///
    /// # Errors
    /// Fails if a node on the path is damaged. The iterator is then at its end.
    pub(crate) fn seek(&mut self, place: &EntryPosition) -> Result<()> {
        self.0.seek(place)
    }
}

/// The path in a group's tree to the symbol table node that can contain a name.
#[derive(Debug)]
pub(crate) struct GroupTreePath {
    tree: BtreeV1,
    /// The B-tree nodes on the path, from the root down.
    nodes: Vec<Node>,
    /// The absolute offset of the only symbol table node that can contain the name, or `None` if no
    /// node can.
    pub(crate) leaf: Option<Address>,
}

impl GroupTreePath {
    /// Descends the tree at absolute offset `root`. `compare` receives an offset in the group's
    /// local heap, and compares the searched name with the name at that offset.
    ///
    /// # Errors
    /// Fails if a node on the path is damaged, or if `compare` fails.
    pub(crate) fn descend(
        meta: Arc<Metadata>,
        root: Address,
        mut compare: impl FnMut(u64) -> Result<Ordering>,
    ) -> Result<Self> {
        let tree = BtreeV1::for_group(meta, root);
        let mut nodes = Vec::new();
        let mut leaf = None;
        let mut next = Some(tree.read_root()?);
        while let Some(node) = next.take() {
            // Child i contains the names after key i, up to and including key i + 1.
            let key = node.find_first_key(1, |mut key| {
                let name = tree.meta.read_length(&mut key)?;
                Ok(compare(name)? != Ordering::Greater)
            })?;
            match key.map(|key| key.minus_or_zero(1)) {
                Some(i) if node.level == 0 => leaf = Some(tree.defined_child(&node, i)?),
                Some(i) => next = Some(tree.descend(&node, i)?),
                None => {}
            }
            nodes.push(node);
        }
        Ok(GroupTreePath { tree, nodes, leaf })
    }

    /// Checks that the keys of all nodes on the path are in order, which a search requires. `text`
    /// reads the name at an offset in the group's local heap.
    ///
    /// # Errors
    /// `Corrupt` if the keys of a node are not in order. The name may then be in another symbol
    /// table node.
    pub(crate) fn check_order(&self, text: impl Fn(u64) -> Result<Vec<u8>>) -> Result<()> {
        for node in &self.nodes {
            let mut before = Vec::new();
            for i in 1..=node.used {
                let key = text(self.tree.name_offset(node, i)?)?;
                if key < before {
                    let what = format!("{NODE}: its keys are not sorted");
                    return Err(Error::corrupt(what, node.at));
                }
                before = key;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing;
    use crate::hdf5::testing::at;

    /// Returns a group's node with alternating keys and children, beginning and ending with a key.
    fn node(level: u8, keys_and_children: &[u64]) -> Vec<u8> {
        let used = u16::try_from(keys_and_children.len() / 2).unwrap();
        let mut block = vec![b'T', b'R', b'E', b'E', GROUP, level];
        block.extend(used.to_le_bytes());
        block.extend([0xff; 16]);
        block.extend(keys_and_children.iter().flat_map(|word| word.to_le_bytes()));
        block
    }

    /// Returns a file with nodes at 0, 100, 200 ….
    fn file(nodes: &[Vec<u8>]) -> Arc<Metadata> {
        testing::file((0..).step_by(100).zip(nodes.iter().cloned()))
    }

    fn small_tree() -> Arc<Metadata> {
        file(&[
            node(1, &[0, 100, 20, 200, 40]),
            node(0, &[0, 1111, 10, 2222, 20]),
            node(0, &[20, 3333, 40]),
        ])
    }

    fn leaves(meta: Arc<Metadata>) -> Result<Vec<u64>> {
        let mut leaves = SymbolTableNodes::new(meta, at(0))?;
        let mut found = Vec::new();
        while let Some(leaf) = leaves.next_leaf()? {
            found.push(leaf.offset());
        }
        Ok(found)
    }

    #[test]
    fn leaves_are_visited_in_order() {
        assert_eq!(leaves(small_tree()), Ok(vec![1111, 2222, 3333]));
        assert_eq!(leaves(file(&[node(0, &[0])])), Ok(vec![]));
    }

    #[test]
    fn a_position_can_be_restored() {
        let mut leaves = SymbolTableNodes::new(small_tree(), at(0)).unwrap();
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(leaves.position());
            leaves.next_leaf().unwrap();
        }
        for i in [2, 0, 3, 1, 1] {
            leaves.seek(&places[i]).unwrap();
            let expected = [Some(at(1111)), Some(at(2222)), Some(at(3333)), None][i];
            assert_eq!(leaves.next_leaf(), Ok(expected));
        }
    }

    /// Checks that a search for a name reaches only one leaf. A key is the greatest name in the
    /// child before it. In this test, a name's offset in the heap is used as the name.
    #[test]
    fn a_name_has_one_leaf() {
        let find = |name: u64| {
            let branch = GroupTreePath::descend(small_tree(), at(0), |key| Ok(name.cmp(&key)));
            branch.unwrap().leaf
        };
        assert_eq!(find(10), Some(at(1111)));
        assert_eq!(find(11), Some(at(2222)));
        assert_eq!(find(20), Some(at(2222)));
        assert_eq!(find(21), Some(at(3333)));
        assert_eq!(find(41), None);
    }

    /// Checks that a tree may have 256 levels. With K = 1 and chunks added in descending order, the
    /// HDF5 library writes a tree with one child per node.
    #[test]
    fn trees_may_have_256_levels() {
        let inner = (1..=255_u8).rev().map(|level| {
            let child = (256 - u64::from(level)) * 100;
            node(level, &[0, child, 9])
        });
        let nodes: Vec<_> = inner.chain([node(0, &[0, 1111, 9])]).collect();
        assert_eq!(leaves(file(&nodes)), Ok(vec![1111]));
    }

    /// Checks that a path of large nodes is rejected. The nodes overlap, and each one has the
    /// maximum number of entries.
    #[test]
    fn the_nodes_of_a_branch_are_not_too_large_together() {
        let wide = |level: u8, child: u64| {
            let mut block = node(level, &[0, child, 9]);
            block[6..8].copy_from_slice(&u16::MAX.to_le_bytes());
            block
        };
        let levels = (1..=64_u8).rev();
        let nodes: Vec<_> = levels.map(|i| wide(i, (65 - u64::from(i)) * 100)).collect();
        let room = (6400 + 8000, vec![0; 2 << 20]);
        let places = (0..).step_by(100).zip(nodes);
        let meta = testing::file(places.chain([room]));
        let tree = BtreeV1::for_group(meta, at(0));
        let mut found = tree.read_root().unwrap();
        let error = loop {
            match tree.descend(&found, 0) {
                Ok(child) => found = child,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Limit { .. }), "{error}");
    }

    #[test]
    fn levels_must_decrease() {
        let own_child = file(&[node(1, &[0, 0, 9])]);
        assert!(leaves(Arc::clone(&own_child)).is_err());
        assert!(GroupTreePath::descend(own_child, at(0), |_| Ok(Ordering::Less)).is_err());
        let same_level = file(&[node(1, &[0, 100, 9]), node(1, &[0, 200, 9])]);
        assert!(leaves(same_level).is_err());
    }

    /// Checks that a walk fails if many children are the same node. With ten equal children per
    /// node, nine levels would have a billion paths.
    #[test]
    fn repeated_children_are_rejected() {
        let children = [0, 200].repeat(10);
        let root = node(1, &[children, vec![0]].concat());
        let meta = file(&[root, node(0, &[0, 1111, 9])]);
        assert!(leaves(meta).is_err());
    }

    #[test]
    fn nodes_of_another_type_are_rejected() {
        let meta = small_tree();
        assert!(
            BtreeV1::for_chunks(Arc::clone(&meta), at(0), 1)
                .read_root()
                .is_err()
        );
        assert!(BtreeV1::for_group(meta, at(4)).read_root().is_err());
    }
}

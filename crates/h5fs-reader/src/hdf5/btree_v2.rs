//! Version 2 B-trees: sorted records of one size in nodes of one size. They index links,
//! attributes, chunks and heap objects. The caller that opens a tree interprets its records.
//!
//! HDF5 3.0, III.A.2. A node stores neither its level nor its number of records. Both follow from
//! the descent.

mod levels;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::btree_v2::levels::{CHECKSUM, ChildPointer, NODE_PREFIX, NodeCapacities};
use crate::hdf5::file::metadata::{Metadata, verify_checksum};
use crate::hdf5::file::number_form::Address;
use crate::memory::request_budget::RequestBudget;
use crate::wire::{Count, Cursor, to_u64};

const HEADER: &str = "B-tree header (version 2)";
const INTERNAL: &str = "B-tree internal node (version 2)";
const LEAF: &str = "B-tree leaf node (version 2)";

/// A version 2 B-tree, given by its header. Clones share the file's metadata.
#[derive(Debug, Clone)]
pub(crate) struct BtreeV2 {
    meta: Arc<Metadata>,
    record_type: u8,
    record_size: usize,
    records: u64,
    levels: NodeCapacities,
    root: Option<ChildPointer>,
    order: Option<RecordOrder>,
}

/// The sort key of the records of a tree.
#[derive(Debug, Clone, Copy)]
enum RecordOrder {
    /// The key is all eight-byte words from this byte offset to the end of the record. No two
    /// records have the same key.
    Words(usize),
    /// The key is the four-byte hash at this byte offset of the record. Several records may have
    /// the same hash.
    Hash(usize),
}

impl RecordOrder {
    /// Returns the sort key of `record` as a sequence of numbers.
    fn key(self, record: &[u8]) -> impl Iterator<Item = u64> {
        let (words, hash) = match self {
            RecordOrder::Words(at) => (record.get(at..).unwrap_or_default(), None),
            RecordOrder::Hash(at) => (&[][..], record.get(at..).and_then(<[u8]>::first_chunk)),
        };
        let hash = hash.map(|&hash| u64::from(u32::from_le_bytes(hash)));
        let (words, _) = words.as_chunks();
        let words = words.iter().map(|&word| u64::from_le_bytes(word));
        words.chain(hash)
    }

    /// Returns whether `next` may follow `record` in a tree that is sorted by this key.
    fn may_follow(self, record: &[u8], next: &[u8]) -> bool {
        match self {
            RecordOrder::Words(_) => self.key(record).lt(self.key(next)),
            RecordOrder::Hash(_) => self.key(record).le(self.key(next)),
        }
    }
}

/// A node of a version 2 B-tree in memory.
#[derive(Debug)]
struct Node {
    block: Arc<[u8]>,
    at: Address,
    level: usize,
    used: usize,
}

impl BtreeV2 {
    /// Opens the tree whose header is at absolute offset `at`, and whose records must be of
    /// `record_type`.
    ///
    /// # Errors
    /// `Corrupt` for another record type or invalid sizes, `Limit` for a tree that is too deep.
    pub(crate) fn open(meta: Arc<Metadata>, at: Address, record_type: u8) -> Result<Self> {
        let length = to_u64(meta.structure_size(1, 1, 22));
        let verify = |block: &[u8]| verify_checksum(block, at, HEADER);
        let block = meta.verified_block(at, length, HEADER, verify)?;
        let mut cursor = Cursor::new(&block, at, HEADER);
        cursor.expect_signature(b"BTHD")?;
        cursor.read_version(0..=0)?;
        if cursor.u8()? != record_type {
            return Err(cursor.corrupt("holds records of another type"));
        }
        let node_size = u64::from(cursor.u32()?);
        let record_size = usize::from(cursor.u16()?);
        let depth = usize::from(cursor.u16()?);
        cursor.skip(2)?; // split and merge percent
        let root = meta.read_address(&mut cursor)?;
        let used = u64::from(cursor.u16()?);
        let records = meta.read_length(&mut cursor)?;

        let Some(levels) =
            NodeCapacities::new(node_size, record_size, meta.size_of_offsets(), depth)?
        else {
            return Err(cursor.corrupt("nodes cannot hold a record"));
        };
        // Each record has its own bytes in the file, so their number is bounded. This bounds every
        // walk.
        let bytes = records.checked_mul(to_u64(record_size));
        if bytes.is_none_or(|bytes| bytes > meta.source().length()) {
            return Err(cursor.corrupt("more records than the file can hold"));
        }
        let root = match (root, used, records) {
            (_, 0, 0) => None,
            (_, _, 0) => return Err(cursor.corrupt("counts of records contradict each other")),
            (None, ..) => return Err(cursor.corrupt("records without a root node")),
            (Some(at), used, total) => Some(ChildPointer {
                at,
                record_count: used,
                total_count: total,
            }),
        };
        if let Some(root) = root {
            levels.check_counts(root, depth, &cursor)?;
        }
        Ok(BtreeV2 {
            meta,
            record_type,
            record_size,
            records,
            levels,
            root,
            order: None,
        })
    }

    pub(crate) fn record_count(&self) -> u64 {
        self.records
    }

    pub(crate) fn record_size(&self) -> usize {
        self.record_size
    }

    /// Returns the number of levels below the root, 0 if the root is a leaf.
    pub(crate) fn depth(&self) -> usize {
        self.levels.depth()
    }

    /// Returns a view of the same tree whose reads are charged to `budget`.
    pub(crate) fn with_budget(&self, budget: &RequestBudget) -> Self {
        BtreeV2 {
            meta: self.meta.with_budget(budget),
            ..self.clone()
        }
    }

    /// Declares that the records are sorted by their eight-byte words from byte offset `at` on, and
    /// that no two records have the same words. Nodes in another order are then rejected as
    /// damaged.
    pub(crate) fn ordered_by_words(self, at: usize) -> Self {
        let order = Some(RecordOrder::Words(at));
        BtreeV2 { order, ..self }
    }

    /// Declares that the records are sorted by the four-byte hash at byte offset `at`. Nodes in
    /// another order are then rejected as damaged.
    pub(crate) fn ordered_by_hash(self, at: usize) -> Self {
        let order = Some(RecordOrder::Hash(at));
        BtreeV2 { order, ..self }
    }

    /// Returns the first record, in the tree's order, for which `compare` returns `Equal`, or
    /// `None` if there is none. `compare` compares the searched key with a record.
    ///
    /// # Errors
    /// Fails if a node on the path is damaged, or if `compare` fails. `Corrupt` if a node's records
    /// are not between the parent's records, because other records may then be elsewhere.
    pub(crate) fn find(
        &self,
        compare: &mut dyn FnMut(&[u8]) -> Result<Ordering>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(mut child) = self.root else {
            return Ok(None);
        };
        let (mut lower, mut upper) = (None, None);
        let mut found = None;
        let mut level = self.depth();
        loop {
            let node = self.read_node(child, level)?;
            self.check_between(&node, lower.as_deref(), upper.as_deref())?;
            let (i, equal) = self.lower_bound(&node, compare)?;
            if equal {
                found = Some(self.record(&node, i)?.to_vec());
            }
            // Equal records may also precede this one, in child i.
            let is_only = equal && matches!(self.order, Some(RecordOrder::Words(_)));
            let Some(below) = level.checked_sub(1).filter(|_| !is_only) else {
                return Ok(found);
            };
            if let Some(before) = i.checked_sub(1) {
                lower = Some(self.record(&node, before)?.to_vec());
            }
            if i < node.used {
                upper = Some(self.record(&node, i)?.to_vec());
            }
            if matches!(self.order, Some(RecordOrder::Words(_))) {
                // Chunks next to this one are needed soon, but links with other hashes are not.
                self.prefetch_children(&node, i)?;
            }
            child = self.read_child(&node, i)?;
            level = below;
        }
    }

    /// Returns the record whose sort key is the words `sought`, or `None` if there is none. The
    /// tree must be ordered by words.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub(crate) fn find_words(&self, sought: &[u64]) -> Result<Option<Vec<u8>>> {
        let order = self.order;
        self.find(&mut |record| {
            let key = order.into_iter().flat_map(|order| order.key(record));
            Ok(sought.iter().copied().cmp(key))
        })
    }

    /// Checks that the records of `node` are between the records `lower` and `upper` of its
    /// ancestors. `None` means no bound. Does nothing if the tree's order is not known.
    fn check_between(&self, node: &Node, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<()> {
        let (Some(order), Some(last)) = (self.order, node.used.checked_sub(1)) else {
            return Ok(());
        };
        let (first, last) = (self.record(node, 0)?, self.record(node, last)?);
        let is_above = lower.is_none_or(|lower| order.may_follow(lower, first));
        let is_below = upper.is_none_or(|upper| order.may_follow(last, upper));
        if is_above && is_below {
            Ok(())
        } else {
            Err(node.corrupt("not between the records above it"))
        }
    }

    /// Checks that the `used` records of `node` are sorted. Does nothing if the tree's order is not
    /// known.
    fn check_order(&self, node: &[u8], used: usize, at: Address, what: &'static str) -> Result<()> {
        let records = node.get(NODE_PREFIX..).unwrap_or_default();
        let records = records.chunks_exact(self.record_size).take(used);
        let in_order =
            |order: RecordOrder| records.is_sorted_by(|one, next| order.may_follow(one, next));
        if self.order.is_none_or(in_order) {
            Ok(())
        } else {
            Err(Error::corrupt(
                format!("{what}: its records are not sorted"),
                at,
            ))
        }
    }

    /// Returns a cursor whose next record is record number `position` in the tree's order. Does not
    /// read records yet.
    pub(crate) fn cursor(&self, position: u64) -> RecordCursor {
        RecordCursor {
            tree: self.clone(),
            path: Vec::new(),
            position,
        }
    }

    /// Returns the index of the first record of `node` that is not before the searched key, and
    /// whether that record is equal to the key. If all records are before the key, the index is the
    /// number of records.
    fn lower_bound(
        &self,
        node: &Node,
        compare: &mut dyn FnMut(&[u8]) -> Result<Ordering>,
    ) -> Result<(usize, bool)> {
        let (mut low, mut high, mut equal) = (0_usize, node.used, false);
        while low < high {
            let middle = low.midpoint(high);
            match compare(self.record(node, middle)?)? {
                Ordering::Greater => low = middle.plus_one(),
                order => {
                    high = middle;
                    equal = order == Ordering::Equal;
                }
            }
        }
        Ok((low, equal))
    }

    /// Returns the number of records of the node `child`, and the node's length in bytes.
    fn size_of_node(&self, child: ChildPointer, level: usize) -> (usize, u64) {
        // A u16 count is from the header. A wider count was checked against the node's size.
        let used = usize::try_from(child.record_count).unwrap_or(usize::MAX);
        let children = match level {
            0 => 0,
            _ => used.plus_one(),
        };
        let records = used.times(self.record_size);
        let pointers = children.times(self.levels.pointer_size(level));
        let length = Count::sum([NODE_PREFIX, records, pointers, CHECKSUM]);
        (used, to_u64(length))
    }

    /// Asks a remote source for child `i` of `node` and the children after it, unless child `i` is
    /// already available.
    fn prefetch_children(&self, node: &Node, i: usize) -> Result<()> {
        if !self.meta.is_remote() {
            return Ok(());
        }
        let below = node.level.minus_or_zero(1);
        let place = |child: ChildPointer| (child.at, self.size_of_node(child, below).1);
        let children = i.plus_one()..=node.used;
        let children = children.filter_map(|i| self.read_child(node, i).ok().map(place));
        let (first, length) = place(self.read_child(node, i)?);
        self.meta.prefetch_with_siblings(first, length, || children);
        Ok(())
    }

    fn read_node(&self, child: ChildPointer, level: usize) -> Result<Node> {
        let (signature, what): (&[u8], _) = match level {
            0 => (b"BTLF", LEAF),
            _ => (b"BTIN", INTERNAL),
        };
        let (used, length) = self.size_of_node(child, level);
        let verify = |block: &[u8]| {
            verify_checksum(block, child.at, what)?;
            self.check_order(block, used, child.at, what)
        };
        let block = self.meta.verified_block(child.at, length, what, verify)?;
        let mut cursor = Cursor::new(&block, child.at, what);
        cursor.expect_signature(signature)?;
        match (cursor.u8()?, cursor.u8()?) {
            (0, record_type) if record_type == self.record_type => {}
            (0, _) => return Err(cursor.corrupt("holds records of another type")),
            (version, _) => return Err(cursor.unsupported(&format!("version {version}"))),
        }
        Ok(Node {
            block,
            at: child.at,
            level,
            used,
        })
    }

    /// Reads the node `child`, and checks that it and the nodes below have as many records as its
    /// parent states. Otherwise, a walk that counts records would skip some.
    fn node_with_checked_total(&self, child: ChildPointer, level: usize) -> Result<Node> {
        let node = self.read_node(child, level)?;
        if level > 0 {
            let mut left = child.total_count.checked_sub(child.record_count);
            for i in 0..=node.used {
                let below = self.read_child(&node, i)?.total_count;
                left = left.and_then(|left| left.checked_sub(below));
            }
            if left != Some(0) {
                return Err(node.corrupt("the number of records differs from the count"));
            }
        }
        Ok(node)
    }

    fn record<'n>(&self, node: &'n Node, i: usize) -> Result<&'n [u8]> {
        let mut cursor = Cursor::new(&node.block, node.at, LEAF);
        let before = i.times(self.record_size);
        cursor.skip(NODE_PREFIX.plus(before))?;
        cursor.read_bytes(self.record_size)
    }

    /// Returns child `i` of an internal node, which has one more child than records.
    fn read_child(&self, node: &Node, i: usize) -> Result<ChildPointer> {
        let mut cursor = Cursor::new(&node.block, node.at, INTERNAL);
        let records = node.used.times(self.record_size);
        let before = i.times(self.levels.pointer_size(node.level));
        cursor.skip(Count::sum([NODE_PREFIX, records, before]))?;
        let at = self.meta.read_defined_address(&mut cursor)?;
        let used = cursor.uint(self.levels.record_count_width())?;
        let total = match self.levels.total_count_width(node.level) {
            0 => used,
            width => cursor.uint(width)?,
        };
        let child = ChildPointer {
            at,
            record_count: used,
            total_count: total,
        };
        self.levels
            .check_counts(child, node.level.minus_or_zero(1), &cursor)?;
        Ok(child)
    }
}

impl Node {
    fn corrupt(&self, why: &str) -> Error {
        let what = match self.level {
            0 => LEAF,
            _ => INTERNAL,
        };
        Error::corrupt(format!("{what}: {why}"), self.at)
    }
}

/// A cursor over the records of a tree. It has the nodes from the root to the next record in
/// memory.
#[derive(Debug)]
pub(crate) struct RecordCursor {
    tree: BtreeV2,
    /// The nodes from the root down. Empty until a record is read after a seek.
    path: Vec<PathNode>,
    position: u64,
}

/// A node on the path of a cursor, with the number of its next step. Step 2i of an internal node is
/// child i, and step 2i + 1 is record i. Step i of a leaf is record i.
#[derive(Debug)]
struct PathNode {
    node: Node,
    step: usize,
}

enum BtreeStep {
    Record(usize),
    Child(usize),
    End,
}

impl PathNode {
    fn take_step(&mut self) -> BtreeStep {
        let step = self.step;
        self.step = step.plus_one();
        let used = self.node.used;
        match (self.node.level, step / 2, step % 2) {
            (0, _, _) if step < used => BtreeStep::Record(step),
            (1.., i, 0) if i <= used => BtreeStep::Child(i),
            (1.., i, 1) if i < used => BtreeStep::Record(i),
            _ => BtreeStep::End,
        }
    }
}

impl RecordCursor {
    /// Returns the number of records before the next one.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of bytes of the nodes that the cursor has in memory.
    pub(crate) fn weight(&self) -> u64 {
        let nodes = self.path.iter().map(|frame| to_u64(frame.node.block.len()));
        Count::sum(nodes)
    }

    /// Moves the cursor, so that the record at `position` is the next one. Does not read the record
    /// yet.
    pub(crate) fn seek(&mut self, position: u64) {
        self.position = position;
        self.path.clear();
    }

    /// Returns the next record, or `None` after the last.
    ///
    /// # Errors
    /// Fails if a node on the path is damaged. The cursor is then at its end.
    pub(crate) fn next_record(&mut self) -> Result<Option<Vec<u8>>> {
        let record = self.advance();
        match record {
            Ok(Some(_)) => self.position = self.position.plus_one(),
            Ok(None) => {}
            Err(_) => self.seek(self.tree.records),
        }
        record
    }

    fn advance(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(root) = self.tree.root else {
            return Ok(None);
        };
        if self.position >= self.tree.records {
            return Ok(None);
        }
        if self.path.is_empty() {
            self.descend(root)?;
        }
        while let Some(frame) = self.path.last_mut() {
            match frame.take_step() {
                BtreeStep::Record(i) => {
                    return Ok(Some(self.tree.record(&frame.node, i)?.to_vec()));
                }
                BtreeStep::Child(i) => {
                    self.tree.prefetch_children(&frame.node, i)?;
                    let child = self.tree.read_child(&frame.node, i)?;
                    let level = frame.node.level.minus_or_zero(1);
                    let node = self.tree.node_with_checked_total(child, level)?;
                    self.path.push(PathNode { node, step: 0 });
                }
                BtreeStep::End => {
                    self.path.pop();
                }
            }
        }
        Err(too_few_records_error(root.at))
    }

    /// Builds the path from `root` to the record with the number `position`, by the total number of
    /// records that is stored for each child.
    fn descend(&mut self, root: ChildPointer) -> Result<()> {
        let mut child = root;
        let mut level = self.tree.depth();
        let mut before = self.position;
        loop {
            let node = self.tree.node_with_checked_total(child, level)?;
            let Some(below) = level.checked_sub(1) else {
                let step = usize::try_from(before).unwrap_or(usize::MAX);
                self.path.push(PathNode { node, step });
                return Ok(());
            };
            let (i, way) = self.find_step(&node, before)?;
            if way.is_some() {
                self.tree.prefetch_children(&node, i)?;
            }
            let step = i.times(2).plus_one();
            self.path.push(PathNode { node, step });
            let Some((next, rest)) = way else {
                return Ok(());
            };
            (child, before, level) = (next, rest, below);
        }
    }

    /// Finds the record of the subtree of `node` that has `before` records before it. If child i
    /// contains the record, returns i, the child, and the number of records before it in that
    /// child. If the record is record i of `node` itself, returns i and `None`.
    fn find_step(&self, node: &Node, before: u64) -> Result<(usize, Option<(ChildPointer, u64)>)> {
        let mut before = before;
        for i in 0..=node.used {
            let child = self.tree.read_child(node, i)?;
            before = match before.checked_sub(child.total_count) {
                None => return Ok((i, Some((child, before)))),
                Some(0) if i < node.used => return Ok((i, None)),
                Some(rest) => rest.minus_or_zero(1),
            };
        }
        Err(too_few_records_error(node.at))
    }
}

fn too_few_records_error(at: Address) -> Error {
    Error::corrupt(format!("{INTERNAL}: fewer records than counted"), at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{at, file, with_checksum};

    const TYPE: u8 = 5;
    const NODE_SIZE: u32 = 64;

    fn header(depth: u16, root: u64, used: u16, total: u64) -> Vec<u8> {
        let mut block = b"BTHD\0\x05".to_vec();
        block.extend(NODE_SIZE.to_le_bytes());
        block.extend(4_u16.to_le_bytes()); // record size
        block.extend(depth.to_le_bytes());
        block.extend([100, 40]);
        block.extend(root.to_le_bytes());
        block.extend(used.to_le_bytes());
        block.extend(total.to_le_bytes());
        with_checksum(block)
    }

    /// Returns a node with records of a key byte, two zeros, and a byte that distinguishes equal
    /// keys.
    fn node(signature: &[u8], records: &[[u8; 2]], children: &[(u64, u8)]) -> Vec<u8> {
        let mut block = [signature, b"\0\x05"].concat();
        block.extend(records.iter().flat_map(|&[key, mark]| [key, 0, 0, mark]));
        for (at, used) in children {
            block.extend(at.to_le_bytes());
            block.push(*used);
        }
        with_checksum(block)
    }

    /// Opens a tree whose blocks are at 0, 64, 128 ….
    fn open(blocks: &[Vec<u8>]) -> Result<BtreeV2> {
        let places = (0..).step_by(64).zip(blocks.iter().cloned());
        BtreeV2::open(file(places), at(0), TYPE)
    }

    /// Returns a tree with two internal records over three leaves: keys 1 2 2 2 2 3 5 7.
    fn small_tree() -> [Vec<u8>; 5] {
        [
            header(1, 64, 2, 8),
            node(
                b"BTIN",
                &[[2, b'c'], [3, b'f']],
                &[(128, 2), (192, 2), (256, 2)],
            ),
            node(b"BTLF", &[[1, b'a'], [2, b'b']], &[]),
            node(b"BTLF", &[[2, b'd'], [2, b'e']], &[]),
            node(b"BTLF", &[[5, b'g'], [7, b'h']], &[]),
        ]
    }

    fn find(tree: &BtreeV2, key: u8) -> Option<Vec<u8>> {
        tree.find(&mut |record| Ok(key.cmp(&record[0]))).unwrap()
    }

    #[test]
    fn finds_the_first_of_equal_records() {
        let tree = open(&small_tree()).unwrap();
        assert_eq!(find(&tree, 2), Some(vec![2, 0, 0, b'b']));
        assert_eq!(find(&tree, 3), Some(vec![3, 0, 0, b'f']));
        assert_eq!(find(&tree, 7), Some(vec![7, 0, 0, b'h']));
        assert_eq!(find(&tree, 4), None);
    }

    #[test]
    fn a_cursor_starts_anywhere() {
        let tree = open(&small_tree()).unwrap();
        let mut cursor = tree.cursor(0);
        for from in 0..=8 {
            cursor.seek(from);
            let mut marks = Vec::new();
            while let Some(record) = cursor.next_record().unwrap() {
                marks.push(record[3]);
            }
            assert_eq!(marks, b"abcdefgh"[usize::try_from(from).unwrap()..]);
            assert_eq!(cursor.position(), 8);
        }
        assert_eq!(tree.cursor(4).next_record(), Ok(Some(vec![2, 0, 0, b'e'])));
        assert_eq!(tree.cursor(8).next_record(), Ok(None));
    }

    #[test]
    fn a_damaged_leaf_fails_only_searches_that_reach_it() {
        let mut blocks = small_tree();
        blocks[3][8] ^= 1;
        let tree = open(&blocks).unwrap();
        assert!(tree.cursor(3).next_record().is_err());
        assert_eq!(find(&tree, 7), Some(vec![7, 0, 0, b'h']));
        let mut cursor = tree.cursor(2);
        assert!(cursor.next_record().unwrap().is_some());
        assert!(cursor.next_record().is_err());
        assert_eq!(cursor.next_record(), Ok(None));
    }

    #[test]
    fn counts_must_fit_nodes_and_file() {
        // A leaf of 64 bytes contains (64 - 10) / 4 = 13 records. The root contains (64 - 10 - 9) /
        // (4 + 9) = 3.
        let [_, _, leaf, ..] = small_tree();
        assert!(open(&[header(0, 64, 14, 14), leaf.clone()]).is_err());
        assert!(open(&[header(0, 64, 2, 3), leaf.clone()]).is_err());
        assert!(open(&[header(1, 64, 3, 50), leaf.clone()]).is_err());
        let over = node(b"BTIN", &[[9, 0]], &[(128, 14), (128, 1)]);
        let tree = open(&[header(1, 64, 1, 16), over, leaf]).unwrap();
        assert!(tree.cursor(0).next_record().is_err());
        assert!(open(&[header(65, 64, 1, 1)]).is_err());
    }

    #[test]
    fn record_counts_must_match() {
        let [_, root, a, b, c] = small_tree();
        for total in [7, 9] {
            let blocks = [
                header(1, 64, 2, total),
                root.clone(),
                a.clone(),
                b.clone(),
                c.clone(),
            ];
            assert!(open(&blocks).unwrap().cursor(0).next_record().is_err());
        }
        assert!(open(&[header(0, 64, 2, 0), a]).is_err());
    }

    #[test]
    fn nodes_of_ordered_records_are_in_order() {
        let find = |keys: &[u64], sought: u64| {
            let used = u16::try_from(keys.len()).unwrap();
            let mut header = header(0, 64, used, used.into());
            header[10] = 9; // a byte before the word
            header.truncate(header.len() - 4);
            let records = keys
                .iter()
                .flat_map(|key| [&[7], &key.to_le_bytes()[..]].concat());
            let leaf = [b"BTLF\0\x05", &records.collect::<Vec<_>>()[..]].concat();
            let tree = open(&[with_checksum(header), with_checksum(leaf)]).unwrap();
            tree.ordered_by_words(1).find_words(&[sought])
        };
        let found = find(&[1, 3, 1 << 40], 1 << 40).unwrap().unwrap();
        assert_eq!(found, [&[7], &(1_u64 << 40).to_le_bytes()[..]].concat());
        assert_eq!(find(&[1, 3, 5], 4), Ok(None));
        assert!(find(&[5, 3, 1], 1).is_err());
        assert!(find(&[1, 3, 3], 1).is_err());
    }

    /// Checks that a node that is its own child is read as a leaf one level lower, and refused.
    #[test]
    fn a_cyclic_node_is_rejected() {
        let own_child = node(b"BTIN", &[[9, 0]], &[(64, 1), (64, 1)]);
        let tree = open(&[header(1, 64, 1, 3), own_child]).unwrap();
        assert!(tree.cursor(0).next_record().is_err());
    }
}

//! Old-style groups: a version 1 B-tree whose leaves point to symbol table nodes, with the names on
//! a local heap (HDF5 3.0, III.B and III.C).

use std::cell::Cell;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hdf5::btree_v1::{ASSUMED_NODE_BYTES, EntryPosition, GroupTreePath, SymbolTableNodes};
use crate::hdf5::file::metadata::Metadata;
use crate::hdf5::file::number_form::Address;
use crate::hdf5::group::bounds::LeafBounds;
use crate::hdf5::heap::local::LocalHeap;
use crate::hdf5::message::symbol_table::SymbolTable;
use crate::limits;
use crate::memory::marks::CheckpointList;
use crate::model::{Link, LinkStream, LinkTarget};
use crate::wire::{Count, Cursor, to_u64, to_usize};

/// Maximum number of checkpoints that an open directory of an old-style group keeps of a long
/// listing. Each takes about 80 bytes.
const LISTING_CHECKPOINTS: usize = 2048;

/// Minimum number of links between two checkpoints of a listing.
const MIN_CHECKPOINT_DISTANCE: u64 = 128;

const WHAT: &str = "symbol table node";

/// The links of an old-style group.
#[derive(Debug, Clone)]
pub(crate) struct SymbolTableLinks {
    metadata: Arc<Metadata>,
    table: SymbolTable,
}

/// One symbol table entry.
struct SymbolTableEntry {
    name_offset: u64,
    at: u64,
    target: SymbolTarget,
    is_to_group: bool,
}

enum SymbolTarget {
    Object(Address),
    SoftLink { value_offset: u64 },
    Undefined,
}

impl SymbolTableLinks {
    /// Returns the links of the group whose symbol table message is `table`.
    pub(crate) fn new(metadata: &Arc<Metadata>, table: &SymbolTable) -> Self {
        SymbolTableLinks {
            metadata: Arc::clone(metadata),
            table: *table,
        }
    }

    /// Finds the link called `name`, with one descent of the B-tree and a search in one symbol
    /// table node.
    ///
    /// # Errors
    /// `Corrupt` if the link is not found and the tree is not in order, because the link may then
    /// be in another node.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Option<Link>> {
        let heap = self.heap()?;
        let branch = self.descend_to(&heap, name)?;
        let entry = self.find_entry(&branch, &heap, name)?;
        entry.map(|entry| entry.link(&heap)).transpose()
    }

    /// Returns the path to the symbol table node that a search for `name` reaches.
    fn descend_to(&self, heap: &LocalHeap, name: &[u8]) -> Result<GroupTreePath> {
        let metadata = Arc::clone(&self.metadata);
        GroupTreePath::descend(metadata, self.table.btree, |offset| {
            Ok(name.cmp(heap.read_text(offset)?.as_slice()))
        })
    }

    /// Returns the first entry called `name` in the symbol table node at the end of `branch`.
    fn find_entry(
        &self,
        branch: &GroupTreePath,
        heap: &LocalHeap,
        name: &[u8],
    ) -> Result<Option<SymbolTableEntry>> {
        if let Some(leaf) = branch.leaf {
            let mut budget = self.metadata.source().length();
            for entry in read_node(&self.metadata, leaf, &mut budget)? {
                if heap.text_equals(entry.name_offset, name)? {
                    return Ok(Some(entry));
                }
            }
        }
        branch.check_order(|offset| {
            let key = heap.read_text(offset)?;
            self.metadata.budget().spend(to_u64(key.len()))?;
            Ok(key)
        })?;
        Ok(None)
    }

    fn heap(&self) -> Result<LocalHeap> {
        let SymbolTable { btree, heap } = self.table;
        self.metadata
            .prefetch([(heap, ASSUMED_NODE_BYTES), (btree, ASSUMED_NODE_BYTES)]);
        LocalHeap::open(&self.metadata, self.table.heap)
    }
}

impl SymbolTableEntry {
    fn link(&self, heap: &LocalHeap) -> Result<Link> {
        let name = heap.read_text(self.name_offset)?;
        let target = match self.target {
            SymbolTarget::Object(address) => address
                .try_into()
                .map_or_else(LinkTarget::Damaged, LinkTarget::Hard),
            SymbolTarget::SoftLink { value_offset } => heap
                .read_text(value_offset)
                .map_or_else(LinkTarget::Damaged, LinkTarget::Soft),
            SymbolTarget::Undefined => {
                let what = "symbol table entry: it has no target";
                LinkTarget::Damaged(Error::corrupt(what, self.at))
            }
        };
        Ok(Link {
            name,
            target,
            order: None,
            is_to_group: self.is_to_group,
        })
    }
}

/// Returns the entries of the symbol table node at absolute offset `at`. Subtracts the node's
/// length in bytes from `budget`, and fails if the budget is too small.
fn read_node(metadata: &Metadata, at: Address, budget: &mut u64) -> Result<Vec<SymbolTableEntry>> {
    const PREFIX: usize = 8;
    const SCRATCH: usize = 16;
    let prefix = metadata.read_uncached(at.offset(), to_u64(PREFIX), WHAT)?;
    let mut cursor = Cursor::new(&prefix, at, WHAT);
    cursor.expect_signature(b"SNOD")?;
    cursor.read_version(1..=1)?;
    cursor.skip(1)?;
    let symbols = usize::from(cursor.u16()?);
    // All implementations store the name offset with the width of a length, although the
    // specification differs.
    let entry = metadata.structure_size(1, 1, 4 + 4 + SCRATCH);
    let length = to_u64(entry.times(symbols).plus(PREFIX));
    *budget = budget
        .checked_sub(length)
        .ok_or_else(|| cursor.corrupt("it occurs more than once"))?;
    let block = metadata.unverified_block(at, length, WHAT)?;
    let mut cursor = Cursor::new(&block, at, WHAT);
    cursor.skip(PREFIX)?;
    (0..symbols)
        .map(|_| read_entry(metadata, &mut cursor))
        .collect()
}

fn read_entry(metadata: &Metadata, cursor: &mut Cursor<'_>) -> Result<SymbolTableEntry> {
    const GROUP: u32 = 1;
    const SOFT_LINK: u32 = 2;
    let at = cursor.offset();
    let name_offset = metadata.read_length(cursor)?;
    let object = metadata.read_address(cursor)?;
    let cache_type = cursor.u32()?;
    cursor.skip(4)?;
    let value_offset = u64::from(cursor.u32()?);
    cursor.skip(12)?;
    let target = match (cache_type, object) {
        (SOFT_LINK, _) => SymbolTarget::SoftLink { value_offset },
        (_, Some(address)) => SymbolTarget::Object(address),
        (_, None) => SymbolTarget::Undefined,
    };
    Ok(SymbolTableEntry {
        name_offset,
        at,
        target,
        is_to_group: cache_type == GROUP,
    })
}

/// A stream of the links of an old-style group in the order of their names.
pub(crate) struct SymbolTableLinkStream {
    links: SymbolTableLinks,
    heap: LocalHeap,
    leaves: SymbolTableNodes,
    entries: VecDeque<SymbolTableEntry>,
    position: u64,
    /// Number of bytes of symbol table nodes that may still be read. Nodes do not overlap, so
    /// together they are not longer than the file.
    budget: u64,
    /// The error of the first skipped link. Each call at the end of the stream returns this error.
    failure: Option<Error>,
    /// The number of nodes that were skipped since the last seek. Other expensive work counts like
    /// several skipped nodes.
    skipped_nodes: usize,
    /// The greatest name that was returned. A name that is not greater may have been returned
    /// before.
    last_name: Option<Vec<u8>>,
    /// The symbol table node that the current `entries` are from. `listed_names` contains the names
    /// of this node that the stream has passed.
    leaf: Option<Address>,
    listed_names: ListedNameHashes,
    checkpoints: CheckpointList<NodeCheckpoint>,
    bounds: LeafBounds,
    /// Whether `bounds` are the bounds of the node that the current `entries` are from.
    has_current_bounds: bool,
}

/// The names of one symbol table node that a listing has passed: for each hash, the heap offset of
/// the first name with that hash. A node has at most 65,535 names.
#[derive(Default)]
struct ListedNameHashes {
    hasher: RandomState,
    offsets: HashMap<u64, u64>,
}

impl ListedNameHashes {
    /// Adds the name at `offset` in the local heap. If an earlier name has the same hash, returns
    /// the offset of that name instead.
    fn add(&mut self, name: &[u8], offset: u64) -> Option<u64> {
        match self.offsets.entry(self.hasher.hash_one(name)) {
            Occupied(before) => Some(*before.get()),
            Vacant(place) => {
                place.insert(offset);
                None
            }
        }
    }
}

/// A checkpoint of a listing: the position before a symbol table node, and the byte budget that was
/// left there.
struct NodeCheckpoint {
    place: EntryPosition,
    budget: u64,
}

impl SymbolTableLinkStream {
    /// Creates a stream of all links from the first.
    pub(crate) fn new(links: SymbolTableLinks) -> Result<Self> {
        let heap = links.heap()?;
        let leaves = SymbolTableNodes::new(Arc::clone(&links.metadata), links.table.btree)?;
        let entries = VecDeque::new();
        Ok(SymbolTableLinkStream {
            budget: links.metadata.source().length(),
            links,
            heap,
            leaves,
            entries,
            position: 0,
            failure: None,
            skipped_nodes: 0,
            last_name: None,
            leaf: None,
            listed_names: ListedNameHashes::default(),
            checkpoints: CheckpointList::new(LISTING_CHECKPOINTS, MIN_CHECKPOINT_DISTANCE),
            bounds: LeafBounds::default(),
            has_current_bounds: false,
        })
    }

    /// Reads the entries of the next symbol table node if `entries` is empty. Returns false after
    /// the last node.
    fn read_next_node(&mut self) -> Result<bool> {
        while self.entries.is_empty() {
            self.checkpoints.record(self.position, || NodeCheckpoint {
                place: self.leaves.position(),
                budget: self.budget,
            });
            let Some(leaf) = self.leaves.next_leaf()? else {
                return Ok(false);
            };
            match read_node(&self.links.metadata, leaf, &mut self.budget) {
                Ok(entries) => {
                    self.count_skipped(usize::from(entries.is_empty()))?;
                    self.entries = entries.into();
                    self.leaf = Some(leaf);
                    self.listed_names.offsets.clear();
                    self.has_current_bounds = false;
                }
                Err(error) => {
                    _ = self.failure.get_or_insert(error);
                    self.count_skipped(limits::UNREAD_NODES)?;
                }
            }
        }
        Ok(true)
    }

    /// Adds `nodes` to the number of skipped nodes.
    ///
    /// # Errors
    /// `Limit` if more than [`limits::PASSED_NODES`] nodes were skipped since the last seek.
    fn count_skipped(&mut self, nodes: usize) -> Result<()> {
        self.skipped_nodes = self.skipped_nodes.plus(nodes);
        if self.skipped_nodes <= limits::PASSED_NODES {
            return Ok(());
        }
        let most = to_u64(limits::PASSED_NODES);
        Err(Error::limit("skipped nodes of a group", most))
    }

    /// Returns the link of `entry`, an entry of the current node. Returns `None` if a search for
    /// its name finds an earlier entry.
    ///
    /// # Errors
    /// `Corrupt` if a search for the name would reach another node.
    fn read_link(&mut self, entry: &SymbolTableEntry) -> Result<Option<Link>> {
        let link = entry.link(&self.heap)?;
        if self.last_name.as_ref() == Some(&link.name) {
            return Ok(None);
        }
        if !self.has_current_bounds {
            self.read_bounds()?;
            self.has_current_bounds = true;
        }
        if !self.bounds.may_contain(&link.name) {
            let what = format!("{WHAT}: a name is not at its sorted position");
            return Err(Error::corrupt(what, entry.at));
        }
        if let Some(before) = self.listed_names.add(&link.name, entry.name_offset)
            && self.heap.text_equals(before, &link.name)?
        {
            return Ok(None);
        }
        if self.last_name.as_ref().is_none_or(|last| *last < link.name) {
            self.last_name = Some(link.name.clone());
            return Ok(Some(link));
        }
        let is_sought = self.is_found_by_name(entry, &link.name)?;
        Ok(is_sought.then_some(link))
    }

    /// Returns whether a search for `name` finds `entry`. If names are out of order, the search may
    /// reach another node.
    fn is_found_by_name(&mut self, entry: &SymbolTableEntry, name: &[u8]) -> Result<bool> {
        /// The cost of searching another symbol table node, counted in skipped nodes. When a seek
        /// skips a node of maximum size, the node counts the same.
        const OTHER_NODE_COST: usize = 1024;
        self.count_skipped(1)?;
        let branch = self.links.descend_to(&self.heap, name)?;
        if branch.leaf == self.leaf {
            return Ok(true);
        }
        self.count_skipped(OTHER_NODE_COST)?;
        let found = self.links.find_entry(&branch, &self.heap, name)?;
        Ok(found.is_some_and(|found| found.at == entry.at))
    }

    /// Records that the listing has passed `entries`. Returns the greatest of their names. Long
    /// names count like skipped nodes.
    fn record_passed(&mut self, entries: Vec<SymbolTableEntry>) -> Result<Option<Vec<u8>>> {
        const LONG: usize = 512;
        let mut greatest = None;
        for entry in entries {
            let Ok(name) = self.heap.read_text(entry.name_offset) else {
                continue;
            };
            self.count_skipped(name.len() / LONG)?;
            self.listed_names.add(&name, entry.name_offset);
            greatest = greatest.max(Some(name));
        }
        Ok(greatest)
    }

    /// Reads the bounds of the names in the current node. Long keys count like skipped nodes.
    fn read_bounds(&mut self) -> Result<()> {
        const LONG: usize = 4096;
        let passed = Cell::new(0_usize);
        let keys = self.leaves.path_keys()?;
        self.bounds.move_to(&keys, |offset| {
            let key = self.heap.read_text(offset)?;
            passed.set(passed.get().plus(key.len() / LONG));
            Ok(key)
        })?;
        self.count_skipped(passed.get())
    }

    /// Moves to the last checkpoint at or before `position`, unless walking forward from the
    /// current position is shorter.
    fn seek_to_checkpoint(&mut self, position: u64) -> Result<()> {
        if let Some((at, mark)) = self.checkpoints.last_at_or_before(position)
            && (position < self.position || self.position < at)
        {
            self.entries.clear();
            self.leaves.seek(&mark.place)?;
            self.budget = mark.budget;
            self.position = at;
        }
        Ok(())
    }
}

impl LinkStream for SymbolTableLinkStream {
    fn position(&self) -> u64 {
        self.position
    }

    /// Returns true, because the tree is sorted by name.
    fn is_in_order(&self) -> bool {
        true
    }

    /// The tree does not count its links, so a seek starts at the last checkpoint before
    /// `position`.
    fn seek(&mut self, position: u64) -> Result<()> {
        self.skipped_nodes = 0;
        self.failure.take_if(|_| position == 0);
        let mut last: Option<Vec<u8>> = None;
        self.seek_to_checkpoint(position)?;
        while self.position < position && self.read_next_node()? {
            let skipped = position.minus_or_zero(self.position);
            let skipped = skipped.min(to_u64(self.entries.len()));
            let skipped_entries = to_usize(skipped)?;
            self.count_skipped((skipped_entries / 64).plus_one())?;
            let is_last = self.position.plus(skipped) == position;
            let skipped_entries: Vec<SymbolTableEntry> =
                self.entries.drain(..skipped_entries).collect();
            if is_last {
                last = self.record_passed(skipped_entries)?;
            }
            self.position = self.position.plus(skipped);
        }
        self.last_name = last;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Link>> {
        while self.read_next_node()? {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            self.position = self.position.plus_one();
            match self.read_link(&entry) {
                Ok(Some(link)) => return Ok(Some(link)),
                Ok(None) => {}
                Err(error) => _ = self.failure.get_or_insert(error),
            }
            self.count_skipped(limits::UNREAD_NODES)?;
        }
        self.failure.clone().map_or(Ok(None), Err)
    }

    fn weight(&self) -> u64 {
        let entries = self.entries.capacity().times(size_of::<SymbolTableEntry>());
        let name = self.last_name.as_ref().map_or(0, Vec::len);
        // The last name and the two bounds have about the same length.
        let names = name.times(3);
        let met = self.listed_names.offsets.capacity();
        let met = met.times(size_of::<(u64, u64)>());
        let own = Count::sum([size_of::<Self>(), entries, names, met]);
        let kept = self.leaves.weight().plus(self.checkpoints.weight());
        to_u64(own).plus(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdf5::testing::{at, file, words};
    use crate::testing::processor_time;

    /// Returns the links of a group with one node, which contains `names` in the given order.
    fn links(names: &[impl AsRef<[u8]>]) -> SymbolTableLinkStream {
        const NODE: usize = 4096;
        let mut heap = vec![0];
        let mut node = [&b"SNOD\x01\0"[..], &(names.len() as u16).to_le_bytes()].concat();
        let mut last = (&[][..], 0);
        for (number, name) in names.iter().enumerate() {
            let name = name.as_ref();
            // The greatest name is stored only once.
            let offset = if name == last.0 {
                last.1
            } else {
                heap.len() as u64
            };
            if name != last.0 {
                heap.extend([name, &[0]].concat());
            }
            last = last.max((name, offset));
            node.extend(words(&[offset, 0x1000 + number as u64]));
            node.extend([0; 24]);
        }
        let data = NODE + node.len();
        let tree = [
            &b"TREE\0\0\x01\0"[..],
            &[0xff; 16],
            &words(&[0, NODE as u64, last.1]),
        ];
        let head = [
            b"HEAP\0\0\0\0".to_vec(),
            words(&[heap.len() as u64, 0, data as u64]),
        ];
        let blocks = [
            (0, head.concat()),
            (64, tree.concat()),
            (NODE, node),
            (data, heap),
        ];
        let metadata = file(blocks);
        let table = SymbolTable {
            btree: at(64),
            heap: at(0),
        };
        SymbolTableLinkStream::new(SymbolTableLinks::new(&metadata, &table)).unwrap()
    }

    /// Returns the name of each link in `stream`, with the number of its entry in the node.
    fn names_and_entries(stream: &mut SymbolTableLinkStream) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut all = Vec::new();
        while let Some(link) = stream.next()? {
            let LinkTarget::Hard(node) = link.target else {
                panic!("no hard link");
            };
            all.push((link.name, node.number() - 0x1000));
        }
        Ok(all)
    }

    #[test]
    fn the_first_of_equal_names_out_of_order_is_listed() {
        let names = [b"c", b"b", b"c", b"a", b"b"].map(|name| name.to_vec());
        let mut stream = links(&names);
        let all = [("c", 0), ("b", 1), ("a", 3)].map(|(name, at)| (name.into(), at));
        assert_eq!(names_and_entries(&mut stream).unwrap(), all);
        for first in 1..=2 {
            stream.seek(first).unwrap();
            assert_eq!(
                names_and_entries(&mut stream).unwrap(),
                all[first as usize..]
            );
        }
        assert!(stream.links.find(b"b").unwrap().is_some());
    }

    /// Checks that the node is not read again for each name, which would take minutes.
    #[test]
    fn a_large_node_in_descending_order_is_listed() {
        const COUNT: usize = 30_000;
        let names = (0..COUNT).rev();
        let names: Vec<_> = names.map(|n| format!("{n:05}").into_bytes()).collect();
        let before = processor_time();
        assert_eq!(names_and_entries(&mut links(&names)).unwrap().len(), COUNT);
        assert!((processor_time() - before).as_secs() < 60);
    }

    #[test]
    fn a_seek_over_long_names_is_limited() {
        let name = vec![b'x'; 60_000];
        let names = vec![&name[..]; usize::from(u16::MAX)];
        let sought = links(&names).seek(names.len() as u64);
        assert!(matches!(sought, Err(Error::Limit { .. })));
    }
}

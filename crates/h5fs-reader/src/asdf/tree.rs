//! The tree as the mount shows it: the location and the name of each node.
//!
//! A document is a graph, so the same node may be reachable by several paths. Its location is the
//! first of these paths in a depth-first walk in the order of the text. Every other occurrence is
//! shown as a link to that location. Nodes within an ndarray or a `$ref` do not have a location.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::asdf::ndarray;
use crate::asdf::yaml::merge::{self, MergeBudget};
use crate::asdf::yaml::pointer::{self, Reference};
use crate::asdf::yaml::{Document, NodeIndex};
use crate::error::Error;
use crate::limits;
use crate::wire::{Count, to_u64, to_usize};

/// Approximate bytes of memory of a node, in addition to its text.
const NODE_WEIGHT: u64 = 128;

const OMAP: &str = "tag:yaml.org,2002:omap";

/// The kind of entry that shows a node in the mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsdfNodeKind {
    /// A mapping or a sequence.
    Group,
    /// An ndarray, readable or not.
    Ndarray,
    /// A scalar.
    Text,
    /// A `$ref`.
    Reference,
}

/// A document with the locations of its nodes.
#[derive(Debug)]
pub(crate) struct Tree {
    document: Document,
    groups: HashMap<NodeIndex, TreeGroup>,
    /// The entries of all mappings, one mapping after another.
    entries: Vec<MappingEntry>,
    /// For each mapping, at the same indices as its `entries`: the slots of the entries, sorted by
    /// the text of the key and then by [`MappingEntry::number`].
    sorted: Vec<u32>,
    /// The details of the mappings that have any, by node. Most mappings have none.
    details: HashMap<NodeIndex, MappingDetails>,
    /// The separator between a key's text and its number, in the names of different keys with equal
    /// text. No key of the document ends in the separator and a number.
    separator: String,
    /// The location of each node, by node number. `None` for the root and for nodes without a
    /// location.
    locations: Vec<Option<NodeLocation>>,
}

/// The location of a node: the entry with the index `slot` of the group `parent`.
#[derive(Debug, Clone, Copy)]
struct NodeLocation {
    parent: NodeIndex,
    slot: u32,
    /// Total length in bytes of the names from the root to the node.
    path: u32,
}

/// A mapping or sequence that is shown as a group.
#[derive(Debug)]
enum TreeGroup {
    /// The items of the node, in order, named by their numbers.
    Sequence,
    Mapping(Mapping),
}

/// The entries of a mapping: `count` entries from index `first` of `Tree::entries` on.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    first: u32,
    count: u32,
}

#[derive(Debug, Default)]
struct MappingDetails {
    /// Maps the slot of a key that is not text to the slot of the text key with the same text, if
    /// the text key comes later.
    texts: HashMap<usize, usize>,
    error: Option<Error>,
}

/// An entry of a mapping. Its name is the key's text, and the separator and `number` if `number` is
/// not 0.
#[derive(Debug, Clone, Copy)]
struct MappingEntry {
    key: NodeIndex,
    /// 0 for the first key with its text. 2, 3 and so on for the following different keys with
    /// equal text.
    number: u32,
    node: NodeIndex,
}

/// The target of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryTarget {
    /// A node whose location is this entry.
    Canonical(NodeIndex),
    /// A node whose location is another entry.
    Alias(NodeIndex),
    /// The target of a `$ref`. The location of the `$ref` itself is this entry.
    Reference {
        /// The node of the `$ref`.
        node: NodeIndex,
        /// The other file that contains the target, as in [`Reference`]. `None` for this file.
        file: Option<Vec<u8>>,
    },
    /// A node without a location, or one whose path is too long.
    Unreachable(NodeIndex),
    /// The target of a `$ref` whose URI is too long to be followed.
    TooLong,
}

impl Tree {
    /// Creates the tree and determines the locations of the document's nodes.
    pub(crate) fn new(document: Document) -> Self {
        let mut tree = Tree {
            groups: HashMap::new(),
            entries: Vec::new(),
            sorted: Vec::new(),
            details: HashMap::new(),
            separator: choose_separator(&document),
            locations: vec![None; document.count()],
            document,
        };
        tree.assign_locations();
        tree.groups.shrink_to_fit();
        tree.entries.shrink_to_fit();
        tree.sorted.shrink_to_fit();
        tree
    }

    /// Returns the approximate memory in bytes that the tree takes, in addition to its text.
    pub(crate) fn weight(&self) -> u64 {
        to_u64(self.document.count()).times(NODE_WEIGHT)
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// Returns the kind of entry that shows the node in the mount.
    pub(crate) fn kind(&self, node: NodeIndex) -> AsdfNodeKind {
        if self.groups.contains_key(&node) {
            return AsdfNodeKind::Group;
        }
        self.classify(node)
    }

    fn classify(&self, node: NodeIndex) -> AsdfNodeKind {
        let document = &self.document;
        let is_root = node == NodeIndex::ROOT;
        if document.text(node).is_some() {
            AsdfNodeKind::Text
        } else if !is_root
            && document
                .tag(node)
                .is_some_and(|tag| ndarray::is_ndarray_tag(tag))
        {
            AsdfNodeKind::Ndarray
        } else if !is_root && self.uri(node).is_some() {
            AsdfNodeKind::Reference
        } else {
            AsdfNodeKind::Group
        }
    }

    /// Returns the URI of a `$ref`, or `None` if the node is not a `$ref`.
    fn uri(&self, node: NodeIndex) -> Option<&str> {
        let value = self.document.value(node, "$ref")?;
        self.document
            .is_text(value)
            .then(|| self.document.text(value))
            .flatten()
    }

    /// Returns whether the node is shown as a group of numbered items.
    pub(crate) fn is_sequence(&self, node: NodeIndex) -> bool {
        matches!(self.groups.get(&node), Some(TreeGroup::Sequence))
    }

    fn mapping(&self, group: NodeIndex) -> Option<Mapping> {
        match self.groups.get(&group)? {
            TreeGroup::Mapping(mapping) => Some(*mapping),
            TreeGroup::Sequence => None,
        }
    }

    fn entries(&self, mapping: Mapping) -> &[MappingEntry] {
        self.entries.get(mapping.range()).unwrap_or_default()
    }

    /// Returns the error that explains why a group is shown only in part, or `None` if it is shown
    /// completely.
    pub(crate) fn error(&self, group: NodeIndex) -> Option<&Error> {
        self.details.get(&group)?.error.as_ref()
    }

    /// Returns the number of a group's entries.
    pub(crate) fn count(&self, group: NodeIndex) -> usize {
        match self.groups.get(&group) {
            None => 0,
            Some(TreeGroup::Sequence) => self.document.items(group).map_or(0, <[_]>::len),
            Some(TreeGroup::Mapping(mapping)) => self.entries(*mapping).len(),
        }
    }

    /// Returns the name and the target of the entry with the index `slot` of a group.
    pub(crate) fn entry(&self, group: NodeIndex, slot: usize) -> Option<(Vec<u8>, EntryTarget)> {
        let (name, node) = self.named_entry(group, slot)?;
        Some((name.into_owned(), self.target(group, slot, node)))
    }

    /// Returns the name and the node of the entry with the index `slot` of a group.
    fn named_entry(&self, group: NodeIndex, slot: usize) -> Option<(Cow<'_, [u8]>, NodeIndex)> {
        match self.groups.get(&group)? {
            TreeGroup::Sequence => {
                let node = *self.document.items(group)?.get(slot)?;
                Some((slot.to_string().into_bytes().into(), node))
            }
            TreeGroup::Mapping(mapping) => {
                let entry = self.entries(*mapping).get(slot)?;
                Some((self.name(entry), entry.node))
            }
        }
    }

    /// Returns the index (slot) of the entry called `name` in a group, or `None` if the group lacks
    /// that entry.
    pub(crate) fn slot(&self, group: NodeIndex, name: &[u8]) -> Option<usize> {
        let Some(mapping) = self.mapping(group) else {
            let slot: usize = std::str::from_utf8(name).ok()?.parse().ok()?;
            let same = slot.to_string().as_bytes() == name && slot < self.count(group);
            return same.then_some(slot);
        };
        let numbered = || self.slot_of_key(mapping, self.split_numbered_name(name)?);
        self.slot_of_key(mapping, (name, 0)).or_else(numbered)
    }

    /// Splits the name of an entry into the key's text and the key's number among different keys
    /// with equal text. Returns `None` for a name without such a number.
    fn split_numbered_name<'a>(&self, name: &'a [u8]) -> Option<(&'a [u8], u32)> {
        let name = std::str::from_utf8(name).ok()?;
        let (text, number) = name.rsplit_once(&self.separator)?;
        let value: u32 = number.parse().ok().filter(|&value| value > 1)?;
        (value.to_string() == number).then_some((text.as_bytes(), value))
    }

    /// Returns the slot of a key, given by its text and by its number among the different keys with
    /// equal text.
    fn slot_of_key(&self, mapping: Mapping, key: (&[u8], u32)) -> Option<usize> {
        let here =
            |entry: &MappingEntry| (self.document.key_text(entry.key).as_bytes(), entry.number);
        let entries = self.entries(mapping);
        let sorted = self.sorted.get(mapping.range())?;
        let found = sorted.binary_search_by(|&slot| {
            let entry = entry_at(entries, slot);
            entry.map_or(Ordering::Greater, |entry| here(entry).cmp(&key))
        });
        let slot = sorted.get(found.ok()?)?;
        to_usize(u64::from(*slot)).ok()
    }

    fn node_location(&self, node: NodeIndex) -> Option<NodeLocation> {
        let number = to_usize(u64::from(node.number())).ok()?;
        self.locations.get(number).copied().flatten()
    }

    /// Returns the names from the root to the node's location. Returns `None` if the node does not
    /// have a location, or if the names are too long.
    pub(crate) fn path(&self, node: NodeIndex) -> Option<Vec<Vec<u8>>> {
        if !self.has_path(node) {
            return None;
        }
        let mut names = Vec::new();
        let mut here = node;
        while here != NodeIndex::ROOT {
            let place = self.node_location(here)?;
            let (name, _) =
                self.named_entry(place.parent, to_usize(u64::from(place.slot)).ok()?)?;
            names.push(name.into_owned());
            here = place.parent;
        }
        names.reverse();
        Some(names)
    }

    fn has_path(&self, node: NodeIndex) -> bool {
        let bytes = self.node_location(node).map(|place| u64::from(place.path));
        node == NodeIndex::ROOT || bytes.is_some_and(|bytes| bytes <= to_u64(limits::TREE_PATH))
    }

    /// Returns the names in the path of the `$ref` at `node`. Names of entries in this tree are
    /// returned as the mount shows them. All other names, and all names in another file, are
    /// returned as the `$ref` states them. Returns `None` if the node is not a `$ref`, or if the
    /// `$ref` is too long.
    pub(crate) fn reference_names(&self, node: NodeIndex) -> Option<Vec<Vec<u8>>> {
        let uri = self.uri(node)?;
        if uri.len() > limits::TREE_PATH {
            return None;
        }
        let reference = pointer::parse(uri);
        Some(match reference.file {
            None => self.shown_names(reference),
            Some(_) => reference.names,
        })
    }

    fn shown_names(&self, reference: Reference) -> Vec<Vec<u8>> {
        let mut here = Some(NodeIndex::ROOT);
        let shown = reference.names.into_iter().map(|name| {
            let slot = here.and_then(|group| self.referenced_slot(group, &name));
            let entry = here
                .zip(slot)
                .and_then(|(group, slot)| self.named_entry(group, slot));
            here = entry.as_ref().map(|(_, node)| *node);
            entry.map_or(name, |(shown, _)| shown.into_owned())
        });
        shown.collect()
    }

    /// Returns the node of this tree to which a reference within this file points, even within an
    /// ndarray. Does not follow references on the path. Subtracts the number of entries that it
    /// reads from `left`. Returns `None` if the node does not exist, or if `left` is too small.
    fn resolve_local_reference(
        &self,
        reference: &Reference,
        left: &mut usize,
    ) -> Option<NodeIndex> {
        let document = &self.document;
        let step = |here: NodeIndex, name: &Vec<u8>| {
            let name = std::str::from_utf8(name).ok()?;
            spend(left, document.pairs(here).map_or(1, <[_]>::len))?;
            match document.items(here) {
                Some(items) => items.get(name.parse::<usize>().ok()?).copied(),
                None => document.value(here, name),
            }
        };
        reference.names.iter().try_fold(NodeIndex::ROOT, step)
    }

    /// Returns `node`, or its target if it is a `$ref` within this file. Subtracts the number of
    /// mapping entries and bytes of text that it reads from `left`. Returns `None` if `left` is too
    /// small, or if the `$ref` is too long, refers to another file or has no target.
    pub(crate) fn resolve_reference(&self, node: NodeIndex, left: &mut usize) -> Option<NodeIndex> {
        spend(left, self.document.pairs(node).map_or(1, <[_]>::len))?;
        let Some(uri) = self.uri(node) else {
            return Some(node);
        };
        if uri.len() > limits::TREE_PATH {
            return None;
        }
        spend(left, uri.len())?;
        let reference = pointer::parse(uri);
        match reference.file {
            None => self.resolve_local_reference(&reference, left),
            Some(_) => None,
        }
    }

    /// Returns the slot of the entry to which one step of a JSON Pointer refers. If several keys
    /// have this text, the text key is used.
    fn referenced_slot(&self, group: NodeIndex, name: &[u8]) -> Option<usize> {
        let first = self.slot(group, name)?;
        let details = self.details.get(&group);
        let text = details.and_then(|details| details.texts.get(&first));
        Some(text.copied().unwrap_or(first))
    }

    fn name(&self, entry: &MappingEntry) -> Cow<'_, [u8]> {
        let text = self.document.key_text(entry.key);
        match entry.number {
            0 => text.as_bytes().into(),
            number => format!("{text}{}{number}", self.separator)
                .into_bytes()
                .into(),
        }
    }

    fn target(&self, group: NodeIndex, slot: usize, node: NodeIndex) -> EntryTarget {
        let place = self
            .node_location(node)
            .filter(|place| place.parent == group);
        if place.is_none_or(|place| to_usize(u64::from(place.slot)) != Ok(slot)) {
            return if self.has_path(node) {
                EntryTarget::Alias(node)
            } else {
                EntryTarget::Unreachable(node)
            };
        }
        match self.uri(node) {
            Some(uri) if self.kind(node) == AsdfNodeKind::Reference => match uri.len() {
                0..=limits::TREE_PATH => {
                    let file = uri.split('#').next().unwrap_or_default();
                    let file = pointer::parse(file).file;
                    EntryTarget::Reference { node, file }
                }
                _ => EntryTarget::TooLong,
            },
            _ => EntryTarget::Canonical(node),
        }
    }

    /// Walks the document depth first, in the order of the text, and determines the locations.
    fn assign_locations(&mut self) {
        let mut budget = MergeBudget::default();
        if self.classify(NodeIndex::ROOT) != AsdfNodeKind::Group {
            return;
        }
        self.add_group(NodeIndex::ROOT, &mut budget);
        let mut open = vec![(NodeIndex::ROOT, 0_usize)];
        while let Some((group, slot)) = open.last_mut() {
            let (parent, here) = (*group, *slot);
            *slot = here.plus_one();
            let entry = self.named_entry(parent, here);
            let Some((length, node)) = entry.map(|(name, node)| (name.len(), node)) else {
                open.pop();
                continue;
            };
            if node == NodeIndex::ROOT || self.node_location(node).is_some() {
                continue;
            }
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let above = self.node_location(parent).map_or(0, |place| place.path);
            let place = NodeLocation {
                parent,
                slot: u32::try_from(here).unwrap_or(u32::MAX),
                path: above.plus(length),
            };
            let number = to_usize(u64::from(node.number())).unwrap_or(usize::MAX);
            if let Some(none) = self.locations.get_mut(number) {
                *none = Some(place);
            }
            if self.classify(node) == AsdfNodeKind::Group {
                self.add_group(node, &mut budget);
                open.push((node, 0));
            }
        }
    }

    fn add_group(&mut self, node: NodeIndex, budget: &mut MergeBudget) {
        let found = match self.document.items(node) {
            Some(items) => self.ordered_pairs(node, items).map(|pairs| (pairs, None)),
            None => {
                let found = merge::entries(&self.document, node, budget);
                Some((found.pairs, found.error))
            }
        };
        let group = match found {
            None => TreeGroup::Sequence,
            Some((pairs, error)) => {
                if error.is_some() {
                    self.details.entry(node).or_default().error = error;
                }
                TreeGroup::Mapping(self.add_mapping(node, &pairs))
            }
        };
        self.groups.insert(node, group);
    }

    /// Returns the pairs of an `!!omap`, which is a sequence of mappings with one entry each.
    /// Returns `None` for any other sequence.
    fn ordered_pairs(
        &self,
        node: NodeIndex,
        items: &[NodeIndex],
    ) -> Option<Vec<(NodeIndex, NodeIndex)>> {
        if self.document.tag(node).is_none_or(|tag| &**tag != OMAP) {
            return None;
        }
        let pair = |&item: &NodeIndex| match self.document.pairs(item)? {
            [pair] => Some(*pair),
            _ => None,
        };
        items.iter().map(pair).collect()
    }

    fn add_mapping(&mut self, node: NodeIndex, pairs: &[(NodeIndex, NodeIndex)]) -> Mapping {
        let mut uses: HashMap<u32, (u32, usize)> = HashMap::new();
        let mut texts = HashMap::new();
        let mut entry = |(slot, &(key, node)): (usize, &(NodeIndex, NodeIndex))| {
            let (uses, first) = uses
                .entry(self.document.name_number(key))
                .or_insert((0, slot));
            *uses = uses.plus_one();
            let number = if *uses > 1 { *uses } else { 0 };
            if number > 0 && self.document.is_text(key) {
                texts.insert(*first, slot);
            }
            MappingEntry { key, number, node }
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mapping = Mapping {
            first: number(self.entries.len()),
            count: number(pairs.len()),
        };
        let entries: Vec<MappingEntry> = pairs.iter().enumerate().map(&mut entry).collect();
        let mut sorted: Vec<u32> = (0..mapping.count).collect();
        sorted.sort_unstable_by_key(|&slot| {
            let entry = entry_at(&entries, slot);
            entry.map(|entry| (self.document.name_number(entry.key), entry.number))
        });
        self.entries.extend(entries);
        self.sorted.extend(sorted);
        if !texts.is_empty() {
            self.details.entry(node).or_default().texts = texts;
        }
        mapping
    }
}

impl Mapping {
    fn range(self) -> Range<usize> {
        let place = |number: u32| to_usize(u64::from(number)).unwrap_or(usize::MAX);
        place(self.first)..place(self.first).plus(place(self.count))
    }
}

fn entry_at(entries: &[MappingEntry], slot: u32) -> Option<&MappingEntry> {
    entries.get(to_usize(u64::from(slot)).ok()?)
}

/// Chooses [`Tree::separator`]: a `%` and the smallest number of tildes for which no key of the
/// document ends in the separator and a number. A long run of tildes in one key thus does not make
/// other names long.
fn choose_separator(document: &Document) -> String {
    let tildes = document.keys().filter_map(|key| {
        let text = key.trim_end_matches(|c: char| c.is_ascii_digit());
        let before = text.trim_end_matches('~');
        let is_marked = text.len() < key.len() && before.ends_with('%');
        is_marked.then(|| text.len().minus_or_zero(before.len()))
    });
    let taken: HashSet<usize> = tildes.collect();
    let free = (1..).find(|count| !taken.contains(count));
    format!("%{}", "~".repeat(free.unwrap_or(1)))
}

fn spend(left: &mut usize, cost: usize) -> Option<()> {
    let after = left.checked_sub(cost);
    *left = after.unwrap_or(0);
    after.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asdf::yaml::compose::compose;
    use crate::testing::processor_time;

    fn tree(text: &str) -> Tree {
        Tree::new(compose(text.as_bytes(), 0).unwrap())
    }

    /// Returns the sorted paths of all entries, with `/` after a group, and with ` -> ` and the
    /// target after a link.
    fn listing(text: &str) -> Vec<String> {
        let tree = tree(text);
        let mut lines = Vec::new();
        let mut open = vec![NodeIndex::ROOT];
        while let Some(group) = open.pop() {
            for slot in 0..tree.count(group) {
                let (name, target) = tree.entry(group, slot).unwrap();
                assert_eq!(tree.slot(group, &name), Some(slot));
                let mut path = tree.path(group).unwrap();
                path.push(name);
                let path = join_path(&path);
                lines.push(match target {
                    EntryTarget::Canonical(node) if tree.kind(node) == AsdfNodeKind::Group => {
                        open.push(node);
                        format!("{path}/")
                    }
                    EntryTarget::Canonical(_) => path,
                    EntryTarget::Alias(node) => {
                        format!("{path} -> {}", join_path(&tree.path(node).unwrap()))
                    }
                    EntryTarget::Reference { node, .. } => {
                        format!(
                            "{path} -> {}",
                            join_path(&tree.reference_names(node).unwrap())
                        )
                    }
                    EntryTarget::Unreachable(_) | EntryTarget::TooLong => format!("{path} -> ?"),
                });
            }
        }
        lines.sort();
        lines
    }

    fn join_path(path: &[Vec<u8>]) -> String {
        let names = path
            .iter()
            .map(|name| String::from_utf8(name.clone()).unwrap());
        names.map(|name| format!("/{name}")).collect()
    }

    /// Checks that names of a megabyte are not resolved, hashed and sorted at each use.
    #[test]
    fn long_keys_cost_their_length_once() {
        let key = "q".repeat(1 << 20);
        let before = processor_time();
        let aliases = "*a : 1, ".repeat(5000);
        let once = tree(&format!("[&a {key}, {{{aliases}z: 1}}]"));
        assert_eq!(
            once.count(once.document.items(NodeIndex::ROOT).unwrap()[1]),
            2
        );
        let merges = "{<<: *a}, ".repeat(5000);
        let merged = tree(&format!(
            "[&a {{? {key}\n : 1, ? {key}z\n : 2}}, {merges} z]"
        ));
        for &item in &merged.document.items(NodeIndex::ROOT).unwrap()[..5001] {
            assert_eq!(merged.count(item), 2);
        }
        assert!(processor_time() - before < std::time::Duration::from_secs(20));
    }

    #[test]
    fn aliases_and_cycles_are_links() {
        let lines = listing("{m: &m {k: 1}, n: *m, c: &c {self: *c}}");
        assert_eq!(lines, ["/c/", "/c/self -> /c", "/m/", "/m/k", "/n -> /m"]);
    }

    #[test]
    fn merged_entries_are_links_to_their_origin() {
        let lines = listing("{b: &b {k: 1}, d: {<<: *b, own: 2}, i: {<<: {only: 3}}}");
        assert_eq!(
            lines,
            [
                "/b/",
                "/b/k",
                "/d/",
                "/d/k -> /b/k",
                "/d/own",
                "/i/",
                "/i/only"
            ]
        );
    }

    #[test]
    fn references_use_the_shown_names() {
        let lines = listing("{r: {$ref: '#/x/7'}, x: {7: a, '7': b}, s: {$ref: ''}, n: {$ref: 5}}");
        let expected = [
            "/n/",
            "/n/$ref",
            "/r -> /x/7%~2",
            "/s -> ",
            "/x/",
            "/x/7",
            "/x/7%~2",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn names_are_unique() {
        let lines = listing("{'7%~2': c, 7: a, '7': b, 7.: d, x: {8: a, '8': b}}");
        let names = ["/7", "/7%~2", "/7%~~2", "/7.", "/x/", "/x/8", "/x/8%~~2"];
        assert_eq!(lines, names);
        assert_eq!(
            listing("{7: a, '7': b, '%~x7': c}"),
            ["/%~x7", "/7", "/7%~2"]
        );
        let long = format!("%{}1", "~".repeat(100_000));
        let lines = listing(&format!("{{7: a, '7': b, '7%~2': c, ? '{long}' : d}}"));
        assert_eq!(lines[1..], ["/7", "/7%~2", "/7%~~2"]);
        let tree = tree("{7: a, '7': b}");
        for other in [&b"7%~1"[..], b"7%~3", b"7%~02", b"7%~+2", b"7%~~2"] {
            assert_eq!(tree.slot(NodeIndex::ROOT, other), None);
        }
    }

    #[test]
    fn collection_keys_are_named_by_their_text() {
        let lines = listing("{a: &s [1], *s : x, '*s': y, ? [2, 3] : z}");
        assert_eq!(lines, ["/*s", "/*s%~2", "/[2, 3]", "/a/", "/a/0"]);
        let lines = listing("[&a {*a : 1}, {? &b {*b : 2} : 3, *a : 4}]");
        let expected = ["/0/", "/0/*a", "/1/", "/1/*a", "/1/*b"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn ordered_mappings_are_mappings() {
        assert_eq!(listing("{o: !!omap [a: 1, b: 2]}"), ["/o/", "/o/a", "/o/b"]);
        assert_eq!(listing("{o: !!omap [1]}"), ["/o/", "/o/0"]);
    }

    #[test]
    fn an_alias_bomb_does_not_multiply_entries() {
        let mut text = String::from("- &l0 [x]\n");
        for level in 1..30 {
            let below = format!("*l{}, ", level - 1).repeat(9);
            text += &format!("- &l{level} [{below}]\n");
        }
        assert_eq!(listing(&text).len(), 30 + 1 + 29 * 9);
    }
}

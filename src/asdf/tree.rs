//! The tree as it is shown: which node stands where, under which name.
//!
//! A document is a graph, and the same node may be reached in many ways. Its place is the first one
//! that a walk in the order of the text meets; every other is a link to that place. What stands
//! within an ndarray or a `$ref` has no place.

use std::collections::HashMap;

use crate::asdf::ndarray;
use crate::asdf::yaml::merge::{self, Budget};
use crate::asdf::yaml::pointer::{self, Reference};
use crate::asdf::yaml::{Document, Index};
use crate::error::Error;
use crate::limits;
use crate::wire::to_usize;

const OMAP: &str = "tag:yaml.org,2002:omap";

/// What a node is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Mapping or sequence.
    Group,
    /// An ndarray, readable or not.
    Ndarray,
    /// A scalar.
    Text,
    /// A `$ref`.
    Reference,
}

/// A document with places.
#[derive(Debug)]
pub struct Tree {
    document: Document,
    groups: HashMap<Index, Group>,
    places: HashMap<Index, Place>,
}

/// Where a node stands: the entry `slot` of the group `parent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    parent: Index,
    slot: usize,
}

/// A mapping or sequence that is shown.
#[derive(Debug, Default)]
struct Group {
    entries: Vec<Entry>,
    /// The slots in the order of their keys' bytes; empty for a sequence.
    sorted: Vec<u32>,
    /// By the slot of a key that is no text, that of the key that is its text.
    texts: HashMap<usize, usize>,
    error: Option<Error>,
}

/// An entry of a group.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: Name,
    node: Index,
}

/// An entry's name; its bytes are made when they are asked for.
#[derive(Debug, Clone, Copy)]
enum Name {
    Key(Index),
    /// The n-th different key of one text.
    Numbered(Index, u32),
    Item,
}

impl Name {
    /// The key, and the how manieth of its text.
    fn key(self) -> Option<(Index, u32)> {
        match self {
            Name::Key(key) => Some((key, 1)),
            Name::Numbered(key, number) => Some((key, number)),
            Name::Item => None,
        }
    }
}

/// The text and the number that make such a name.
fn numbered(name: &[u8]) -> Option<(&[u8], u32)> {
    let (text, number) = std::str::from_utf8(name).ok()?.rsplit_once("%~")?;
    let value: u32 = number.parse().ok().filter(|&value| value > 1)?;
    (value.to_string() == number).then_some((text.as_bytes(), value))
}

/// Where an entry leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To the node, which has its place here.
    Here(Index),
    /// To a node that has its place elsewhere.
    Alias(Index),
    /// To what a `$ref` that has its place here names.
    Reference(Reference),
    /// To what a `$ref` says that is too long to be followed.
    TooLong,
}

impl Tree {
    /// Gives the nodes of a document their places.
    pub fn new(document: Document) -> Self {
        let mut tree = Tree {
            document,
            groups: HashMap::new(),
            places: HashMap::new(),
        };
        tree.place_all();
        tree
    }

    /// The document.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// What the node is shown as.
    pub fn kind(&self, node: Index) -> Kind {
        if self.groups.contains_key(&node) {
            return Kind::Group;
        }
        self.classified(node)
    }

    fn classified(&self, node: Index) -> Kind {
        let document = &self.document;
        let is_root = node == Index::ROOT;
        if document.text(node).is_some() {
            Kind::Text
        } else if !is_root && document.tag(node).is_some_and(|tag| ndarray::is_tag(tag)) {
            Kind::Ndarray
        } else if !is_root && self.uri(node).is_some() {
            Kind::Reference
        } else {
            Kind::Group
        }
    }

    /// The URI of a `$ref`.
    fn uri(&self, node: Index) -> Option<&str> {
        let value = self.document.value(node, "$ref")?;
        self.document
            .is_text(value)
            .then(|| self.document.text(value))
            .flatten()
    }

    /// Why a group does not show all that the text means it to hold.
    pub fn error(&self, group: Index) -> Option<&Error> {
        self.groups.get(&group)?.error.as_ref()
    }

    /// The number of a group's entries.
    pub fn count(&self, group: Index) -> usize {
        self.groups
            .get(&group)
            .map_or(0, |group| group.entries.len())
    }

    /// An entry by its place in the group.
    pub fn entry(&self, group: Index, slot: usize) -> Option<(Vec<u8>, Target)> {
        let entry = self.groups.get(&group)?.entries.get(slot)?;
        let target = self.target(
            Place {
                parent: group,
                slot,
            },
            entry.node,
        );
        Some((self.name(*entry, slot), target))
    }

    /// The place in the group of the entry called `name`.
    pub fn slot(&self, group: Index, name: &[u8]) -> Option<usize> {
        let group = self.groups.get(&group)?;
        if group.sorted.is_empty() {
            let slot: usize = std::str::from_utf8(name).ok()?.parse().ok()?;
            let same = slot.to_string().as_bytes() == name && slot < group.entries.len();
            return same.then_some(slot);
        }
        let key = (name, 1);
        let numbered = || self.keyed(group, numbered(name)?);
        self.keyed(group, key).or_else(numbered)
    }

    /// The slot of the n-th different key of one text.
    fn keyed(&self, group: &Group, key: (&[u8], u32)) -> Option<usize> {
        let found = group.sorted.binary_search_by(|&slot| {
            let slot = to_usize(u64::from(slot)).unwrap_or(usize::MAX);
            let here = group.entries.get(slot).and_then(|entry| entry.name.key());
            let here = here.map(|(here, number)| (self.document.key_text(here), number));
            let (text, number) = here.unwrap_or_default();
            (text.as_bytes(), number).cmp(&key)
        });
        let slot = group.sorted.get(found.ok()?)?;
        to_usize(u64::from(*slot)).ok()
    }

    /// The names from the root to the node's place; none where it has no place, or they are too long.
    pub fn path(&self, node: Index) -> Option<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        let mut left = limits::TREE_PATH;
        let mut here = node;
        while here != Index::ROOT {
            let place = self.places.get(&here)?;
            let entry = self.groups.get(&place.parent)?.entries.get(place.slot)?;
            let name = self.name(*entry, place.slot);
            left = left.checked_sub(name.len())?;
            names.push(name);
            here = place.parent;
        }
        names.reverse();
        Some(names)
    }

    /// The names, as they are shown, of what a reference within this file names. From where the
    /// tree does not lead on, the reference's own.
    pub fn followed(&self, reference: &Reference) -> Vec<Vec<u8>> {
        let mut here = Some(Index::ROOT);
        let mut shown = Vec::with_capacity(reference.names.len());
        for name in &reference.names {
            let slot = here.and_then(|group| self.referenced_slot(group, name));
            let entry = here.zip(slot).and_then(|(group, slot)| {
                let entry = *self.groups.get(&group)?.entries.get(slot)?;
                Some((entry, slot))
            });
            shown.push(match entry {
                Some((entry, slot)) => self.name(entry, slot),
                None => name.clone(),
            });
            here = entry.map(|(entry, _)| entry.node);
        }
        shown
    }

    /// The node that a reference within this file names, wherever it stands: what is within an
    /// ndarray too. References on the way are not followed. No more entries are looked at than are `left`.
    fn referenced(&self, reference: &Reference, left: &mut usize) -> Option<Index> {
        let document = &self.document;
        let step = |here: Index, name: &Vec<u8>| {
            let name = std::str::from_utf8(name).ok()?;
            spend(left, document.pairs(here).map_or(1, <[_]>::len))?;
            match document.items(here) {
                Some(items) => items.get(name.parse::<usize>().ok()?).copied(),
                None => document.value(here, name),
            }
        };
        reference.names.iter().try_fold(Index::ROOT, step)
    }

    /// The node itself; of a `$ref` what it names in this file. No more entries of mappings and bytes of text are
    /// looked at than are `left`; where that is too few, none is.
    pub fn meant(&self, node: Index, left: &mut usize) -> Option<Index> {
        spend(left, self.document.pairs(node).map_or(1, <[_]>::len))?;
        let Some(uri) = self.uri(node) else {
            return Some(node);
        };
        spend(left, uri.len())?;
        let reference = pointer::parse(uri);
        match reference.file {
            None => self.referenced(&reference, left),
            Some(_) => None,
        }
    }

    /// The entry that one step of a pointer means: a key that is text before any other.
    fn referenced_slot(&self, group: Index, name: &[u8]) -> Option<usize> {
        let first = self.slot(group, name)?;
        let text = self.groups.get(&group)?.texts.get(&first);
        Some(text.copied().unwrap_or(first))
    }

    fn name(&self, entry: Entry, slot: usize) -> Vec<u8> {
        match entry.name {
            Name::Key(key) => self.document.key_text(key).as_bytes().to_vec(),
            Name::Numbered(key, number) => {
                format!("{}%~{number}", self.document.key_text(key)).into_bytes()
            }
            Name::Item => slot.to_string().into_bytes(),
        }
    }

    fn target(&self, place: Place, node: Index) -> Target {
        if self.places.get(&node) != Some(&place) {
            return Target::Alias(node);
        }
        match self.uri(node) {
            Some(uri) if self.kind(node) == Kind::Reference => match uri.len() {
                0..=limits::TREE_PATH => Target::Reference(pointer::parse(uri)),
                _ => Target::TooLong,
            },
            _ => Target::Here(node),
        }
    }

    /// The walk that gives places: depth first, in the order of the text.
    fn place_all(&mut self) {
        let mut budget = Budget::default();
        if self.classified(Index::ROOT) != Kind::Group {
            return;
        }
        self.add_group(Index::ROOT, &mut budget);
        let mut open = vec![Place {
            parent: Index::ROOT,
            slot: 0,
        }];
        while let Some(place) = open.last_mut() {
            let here = *place;
            place.slot = place.slot.saturating_add(1);
            let entries = self.groups.get(&here.parent).map(|group| &group.entries);
            let Some(&entry) = entries.and_then(|entries| entries.get(here.slot)) else {
                open.pop();
                continue;
            };
            if entry.node == Index::ROOT || self.places.contains_key(&entry.node) {
                continue;
            }
            self.places.insert(entry.node, here);
            if self.classified(entry.node) == Kind::Group {
                self.add_group(entry.node, &mut budget);
                open.push(Place {
                    parent: entry.node,
                    slot: 0,
                });
            }
        }
    }

    fn add_group(&mut self, node: Index, budget: &mut Budget) {
        let group = match self.document.items(node) {
            Some(items) => self.ordered_mapping(node, items).unwrap_or_else(|| Group {
                entries: items.iter().copied().map(item).collect(),
                ..Group::default()
            }),
            None => {
                let found = merge::entries(&self.document, node, budget);
                let mut group = self.mapping(&found.pairs);
                group.error = found.error;
                group
            }
        };
        self.groups.insert(node, group);
    }

    /// `!!omap`: a sequence of mappings of one entry each.
    fn ordered_mapping(&self, node: Index, items: &[Index]) -> Option<Group> {
        if self.document.tag(node).is_none_or(|tag| &**tag != OMAP) {
            return None;
        }
        let pair = |&item: &Index| match self.document.pairs(item)? {
            [pair] => Some(*pair),
            _ => None,
        };
        let pairs: Option<Vec<_>> = items.iter().map(pair).collect();
        Some(self.mapping(&pairs?))
    }

    fn mapping(&self, pairs: &[(Index, Index)]) -> Group {
        let mut uses: HashMap<u32, (u32, usize)> = HashMap::new();
        let mut texts = HashMap::new();
        let mut named = |(slot, &(key, node)): (usize, &(Index, Index))| {
            let (uses, first) = uses.entry(self.document.name(key)).or_insert((0, slot));
            *uses = uses.saturating_add(1);
            let name = match *uses {
                1 => Name::Key(key),
                number => Name::Numbered(key, number),
            };
            if *uses > 1 && self.document.is_text(key) {
                texts.insert(*first, slot);
            }
            Entry { name, node }
        };
        let entries: Vec<_> = pairs.iter().enumerate().map(&mut named).collect();
        let mut sorted: Vec<u32> = (0..).take(entries.len()).collect();
        sorted.sort_unstable_by_key(|&slot| {
            let slot = to_usize(u64::from(slot)).unwrap_or(usize::MAX);
            let key = entries.get(slot).and_then(|entry| entry.name.key());
            key.map(|(key, number)| (self.document.name(key), number))
        });
        Group {
            entries,
            sorted,
            texts,
            error: None,
        }
    }
}

fn item(node: Index) -> Entry {
    Entry {
        name: Name::Item,
        node,
    }
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

    fn tree(text: &str) -> Tree {
        Tree::new(compose(text.as_bytes(), 0).unwrap())
    }

    /// The tree as lines `path kind`, links with the path they lead to.
    fn listing(text: &str) -> Vec<String> {
        let tree = tree(text);
        let mut lines = Vec::new();
        let mut open = vec![Index::ROOT];
        while let Some(group) = open.pop() {
            for slot in 0..tree.count(group) {
                let (name, target) = tree.entry(group, slot).unwrap();
                assert_eq!(tree.slot(group, &name), Some(slot));
                let mut path = tree.path(group).unwrap();
                path.push(name);
                let path = joined(&path);
                lines.push(match target {
                    Target::Here(node) if tree.kind(node) == Kind::Group => {
                        open.push(node);
                        format!("{path}/")
                    }
                    Target::Here(_) => path,
                    Target::Alias(node) => {
                        format!("{path} -> {}", joined(&tree.path(node).unwrap()))
                    }
                    Target::Reference(reference) => {
                        format!("{path} -> {}", joined(&tree.followed(&reference)))
                    }
                    Target::TooLong => format!("{path} -> ?"),
                });
            }
        }
        lines.sort();
        lines
    }

    fn joined(path: &[Vec<u8>]) -> String {
        let names = path
            .iter()
            .map(|name| String::from_utf8(name.clone()).unwrap());
        names.map(|name| format!("/{name}")).collect()
    }

    /// Names of a megabyte were resolved, hashed and sorted at each use.
    #[test]
    fn long_keys_cost_their_length_once() {
        let key = "q".repeat(1 << 20);
        let before = std::time::Instant::now();
        let aliases = "*a : 1, ".repeat(5000);
        let once = tree(&format!("[&a {key}, {{{aliases}z: 1}}]"));
        assert_eq!(once.count(once.document.items(Index::ROOT).unwrap()[1]), 2);
        let merges = "{<<: *a}, ".repeat(5000);
        let merged = tree(&format!(
            "[&a {{? {key}\n : 1, ? {key}z\n : 2}}, {merges} z]"
        ));
        for &item in &merged.document.items(Index::ROOT).unwrap()[..5001] {
            assert_eq!(merged.count(item), 2);
        }
        assert!(before.elapsed() < std::time::Duration::from_secs(20));
    }

    #[test]
    fn aliases_and_cycles_are_links() {
        let lines = listing("{m: &m {k: 1}, n: *m, c: &c {self: *c}}");
        assert_eq!(lines, ["/c/", "/c/self -> /c", "/m/", "/m/k", "/n -> /m"]);
    }

    #[test]
    fn merged_entries_are_links_to_where_they_come_from() {
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
    fn references_lead_to_names_as_shown() {
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
    fn ordered_mappings_are_mappings() {
        assert_eq!(listing("{o: !!omap [a: 1, b: 2]}"), ["/o/", "/o/a", "/o/b"]);
        assert_eq!(listing("{o: !!omap [1]}"), ["/o/", "/o/0"]);
    }

    #[test]
    fn an_alias_bomb_has_as_many_entries_as_its_text() {
        let mut text = String::from("- &l0 [x]\n");
        for level in 1..30 {
            let below = format!("*l{}, ", level - 1).repeat(9);
            text += &format!("- &l{level} [{below}]\n");
        }
        assert_eq!(listing(&text).len(), 30 + 1 + 29 * 9);
    }
}

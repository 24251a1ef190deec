//! YAML 1.1 as used in ASDF trees: a document composed into an arena of nodes.
//!
//! An alias refers to the same node and never copies it. The size of the arena is therefore bounded
//! by the text, whatever the aliases are. A walk over the nodes must keep a set of visited nodes.

mod anchors;
pub(crate) mod compose;
mod decimal;
mod keys;
pub(crate) mod merge;
pub(crate) mod pointer;
pub(crate) mod resolve;
mod separators;
mod tags;

use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::wire::{Extent, to_u64, to_usize};
use resolve::CoreTag;

/// A node's number in its document. The numbers are in the order in which the nodes start in the
/// text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeIndex(u32);

impl NodeIndex {
    /// The document's outermost node.
    pub(crate) const ROOT: NodeIndex = NodeIndex(0);

    /// Returns the number of the node in its document.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Returns the index of the node with this number. The node need not exist.
    pub(crate) fn new(number: u32) -> Self {
        NodeIndex(number)
    }

    fn slot(self) -> usize {
        to_usize(u64::from(self.0)).unwrap_or(usize::MAX)
    }
}

/// One YAML document: small nodes, whose contents are in a few long lists.
#[derive(Debug, Default)]
pub(crate) struct Document {
    nodes: Vec<YamlNode>,
    /// The texts of the scalars, and of the keys that are not scalars.
    texts: String,
    /// The items of all sequences.
    items: Vec<NodeIndex>,
    /// The pairs of all mappings.
    pairs: Vec<(NodeIndex, NodeIndex)>,
    tags: Vec<Arc<str>>,
    /// The keys that are sequences or mappings, ascending, with the spans of their texts in
    /// `texts`. The text of such a key is copied from its first use as a key, which may be an
    /// alias.
    collection_keys: Vec<(NodeIndex, Span)>,
    /// The file offset of the text of the document.
    start: u64,
    /// The error that explains why some text after the document was not parsed.
    trailing_error: Option<Error>,
}

/// One node of a document.
#[derive(Debug, Clone, Copy)]
struct YamlNode {
    kind: YamlKind,
    /// The range of the content of the node in `texts`, `items` or `pairs`.
    span: Span,
    /// The number of the node's tag among the tags of the tree, counted from 1. `None` for a node
    /// without a tag.
    tag: Option<NonZero<u16>>,
    /// If the node is a key, the rank of its text among the different texts of all keys, in byte
    /// order. Otherwise `NO_NAME`.
    name_number: u32,
    /// The offset of the node from the start of the document's text, in bytes.
    at: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum YamlKind {
    /// A scalar of this YAML type. `None` for a scalar with a custom tag.
    Scalar(Option<CoreTag>),
    Sequence,
    Mapping,
}

/// A range of one of the document's lists.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Returns the span of `range`, or `None` if an index exceeds 32 bits.
    fn new(range: Range<usize>) -> Option<Self> {
        Some(Span {
            start: u32::try_from(range.start).ok()?,
            end: u32::try_from(range.end).ok()?,
        })
    }

    fn range(self) -> Range<usize> {
        let place = |place: u32| to_usize(u64::from(place)).unwrap_or(usize::MAX);
        place(self.start)..place(self.end)
    }
}

/// The content of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeContent<'a> {
    /// The text of a scalar after unquoting.
    Scalar(&'a str),
    /// The items of a sequence, in order.
    Sequence(&'a [NodeIndex]),
    /// The keys of a mapping with their values, in order, including duplicates and merge keys.
    Mapping(&'a [(NodeIndex, NodeIndex)]),
}

/// The identity of a key: its type and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyIdentity {
    kind: IdentityKind,
    name_number: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IdentityKind {
    Core(CoreTag),
    Tagged(Option<NonZero<u16>>),
    Collection(NodeIndex),
}

impl Document {
    /// Returns a document that contains one empty mapping.
    pub(crate) fn empty() -> Self {
        let mut document = Document::default();
        document.push(YamlKind::Mapping, Span::default(), None, 0);
        document
    }

    /// Returns the error that explains why some text after the document was not parsed. Returns
    /// `None` if the text ends with the document.
    pub(crate) fn end_error(&self) -> Option<&Error> {
        self.trailing_error.as_ref()
    }

    /// Returns the number of nodes of the document.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the document has a node with this index.
    pub(crate) fn contains(&self, node: NodeIndex) -> bool {
        node.slot() < self.nodes.len()
    }

    /// Returns the content of the node. Returns an empty scalar for a node that does not exist.
    pub(crate) fn content(&self, node: NodeIndex) -> NodeContent<'_> {
        let Some(node) = self.nodes.get(node.slot()) else {
            return NodeContent::Scalar("");
        };
        let range = node.span.range();
        match node.kind {
            YamlKind::Scalar(_) => NodeContent::Scalar(self.texts.get(range).unwrap_or_default()),
            YamlKind::Sequence => NodeContent::Sequence(self.items.get(range).unwrap_or_default()),
            YamlKind::Mapping => NodeContent::Mapping(self.pairs.get(range).unwrap_or_default()),
        }
    }

    /// Returns the node's absolute offset in the file, in bytes.
    pub(crate) fn file_offset(&self, node: NodeIndex) -> u64 {
        let node = self.nodes.get(node.slot());
        let at = node.map_or(0, |node| u64::from(node.at));
        Extent::saturating(self.start, at).end()
    }

    /// Returns the node's explicit tag with its handle resolved. Returns `None` if the tag is
    /// absent or only `!`.
    pub(crate) fn tag(&self, node: NodeIndex) -> Option<&Arc<str>> {
        let number = self.nodes.get(node.slot())?.tag?;
        self.tags.get(usize::from(number.get()).checked_sub(1)?)
    }

    /// Returns the text of a scalar, or `None` for a collection.
    pub(crate) fn text(&self, node: NodeIndex) -> Option<&str> {
        match self.content(node) {
            NodeContent::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items of a sequence, or `None` for any other node.
    pub(crate) fn items(&self, node: NodeIndex) -> Option<&[NodeIndex]> {
        match self.content(node) {
            NodeContent::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the pairs of a mapping, including duplicates and merge keys, or `None` for any other
    /// node.
    pub(crate) fn pairs(&self, node: NodeIndex) -> Option<&[(NodeIndex, NodeIndex)]> {
        match self.content(node) {
            NodeContent::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// Returns the scalar's YAML type, from its tag or else from its text. Returns `None` for a
    /// collection or a scalar with a custom tag.
    pub(crate) fn core_tag(&self, node: NodeIndex) -> Option<CoreTag> {
        match self.nodes.get(node.slot())?.kind {
            YamlKind::Scalar(core) => core,
            _ => None,
        }
    }

    pub(crate) fn identity(&self, key: NodeIndex) -> KeyIdentity {
        let name = self.name_number(key);
        let kind = match self.nodes.get(key.slot()) {
            None => IdentityKind::Collection(key),
            Some(node) => match node.kind {
                YamlKind::Scalar(Some(core)) => IdentityKind::Core(core),
                YamlKind::Scalar(None) => IdentityKind::Tagged(node.tag),
                YamlKind::Sequence | YamlKind::Mapping => IdentityKind::Collection(key),
            },
        };
        KeyIdentity {
            kind,
            name_number: name,
        }
    }

    /// Returns the rank of a key's text among the different texts of all keys, in byte order.
    /// Returns `NO_NAME` if the node is not a key.
    pub(crate) fn name_number(&self, key: NodeIndex) -> u32 {
        let node = self.nodes.get(key.slot());
        node.map_or(NO_NAME, |node| node.name_number)
    }

    /// Returns the texts of all keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let numbered = (0..).map(NodeIndex).zip(&self.nodes);
        let keys = numbered.filter(|(_, node)| node.name_number != NO_NAME);
        keys.map(|(key, _)| self.key_text(key))
    }

    /// Returns the text of a key. For a key that is a collection, this is the text that stands for
    /// it in the file.
    pub(crate) fn key_text(&self, key: NodeIndex) -> &str {
        if let Some(text) = self.text(key) {
            return text;
        }
        let keys = &self.collection_keys;
        let found = keys.binary_search_by_key(&key, |&(key, _)| key).ok();
        found
            .and_then(|found| keys.get(found))
            .and_then(|(_, span)| self.texts.get(span.range()))
            .unwrap_or_default()
    }

    /// Returns whether the node is a scalar of type text.
    pub(crate) fn is_text(&self, node: NodeIndex) -> bool {
        self.core_tag(node) == Some(CoreTag::Str)
    }

    /// Returns whether the key is a scalar of type text with the text `name`.
    pub(crate) fn is_key(&self, key: NodeIndex, name: &str) -> bool {
        self.text(key) == Some(name) && self.is_text(key)
    }

    /// Returns the value of the text key `name` of a mapping, or `None` if the mapping lacks this
    /// key. Of duplicate keys, the last one is used. Entries from merge keys are ignored.
    pub(crate) fn value(&self, mapping: NodeIndex, name: &str) -> Option<NodeIndex> {
        let mut pairs = self.pairs(mapping)?.iter().rev();
        pairs
            .find(|&&(key, _)| self.is_key(key, name))
            .map(|&(_, value)| value)
    }

    /// Adds a node and returns its index, or `None` if there are too many nodes.
    fn push(
        &mut self,
        kind: YamlKind,
        span: Span,
        tag: Option<NonZero<u16>>,
        at: u32,
    ) -> Option<NodeIndex> {
        let number = u32::try_from(to_u64(self.nodes.len())).ok()?;
        self.nodes.push(YamlNode {
            kind,
            span,
            tag,
            name_number: NO_NAME,
            at,
        });
        Some(NodeIndex(number))
    }

    /// Releases unused allocated memory.
    fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.texts.shrink_to_fit();
        self.items.shrink_to_fit();
        self.pairs.shrink_to_fit();
        self.collection_keys.shrink_to_fit();
    }
}

/// The value of `YamlNode::name_number` for a node that is not a key.
const NO_NAME: u32 = u32::MAX;

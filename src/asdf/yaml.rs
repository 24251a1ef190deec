//! YAML 1.1 as ASDF trees use it: a document composed into an arena of nodes.
//!
//! A node that an alias names is the same node reached twice, never a copy, so that the size of the
//! arena is bounded by the text whatever the aliases do; a walk must keep a visited set.

pub mod compose;
pub mod merge;
pub mod pointer;
pub mod resolve;

use std::collections::HashMap;
use std::sync::Arc;

use crate::wire::{to_u64, to_usize};
use resolve::CoreTag;

/// A node's number in its document, in the order in which the text begins the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index(u32);

impl Index {
    /// The document's outermost node.
    pub const ROOT: Index = Index(0);

    /// The node's number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The node with that number; it need not exist.
    pub fn new(number: u32) -> Self {
        Index(number)
    }

    fn slot(self) -> usize {
        to_usize(u64::from(self.0)).unwrap_or(usize::MAX)
    }
}

/// One YAML document.
#[derive(Debug)]
pub struct Document {
    nodes: Vec<Node>,
    tags: Vec<Arc<str>>,
    /// What stands in the text for keys that are no scalars.
    key_texts: HashMap<Index, Box<str>>,
    /// Where the text stands in the file.
    start: u64,
}

/// One node of a document.
#[derive(Debug)]
struct Node {
    content: Content,
    tag: Option<u32>,
    /// Bytes from the start of the document's text.
    at: u32,
}

/// What a node holds.
#[derive(Debug)]
pub enum Content {
    /// Text after unquoting.
    Scalar {
        /// The text itself.
        text: Box<str>,
        /// Without quotes, so that the text decides the type.
        plain: bool,
    },
    /// Items in order.
    Sequence(Box<[Index]>),
    /// Keys with their values, in order, duplicates and merge keys as they stand.
    Mapping(Box<[(Index, Index)]>),
}

/// What makes two keys the same: their type and their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity<'a> {
    kind: IdentityKind,
    text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IdentityKind {
    Core(CoreTag),
    Tagged(u32),
    Collection(Index),
}

impl Document {
    /// A document that holds one empty mapping.
    pub fn empty() -> Self {
        Document {
            nodes: vec![Node {
                content: Content::Mapping(Box::default()),
                tag: None,
                at: 0,
            }],
            tags: Vec::new(),
            key_texts: HashMap::new(),
            start: 0,
        }
    }

    /// The number of nodes.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is such a node.
    pub fn contains(&self, node: Index) -> bool {
        node.slot() < self.nodes.len()
    }

    /// What the node holds; an empty scalar for a node that does not exist.
    pub fn content(&self, node: Index) -> &Content {
        static NOTHING: std::sync::OnceLock<Content> = std::sync::OnceLock::new();
        match self.nodes.get(node.slot()) {
            Some(node) => &node.content,
            None => NOTHING.get_or_init(|| Content::Scalar {
                text: Box::default(),
                plain: true,
            }),
        }
    }

    /// The node's absolute offset in the file, in bytes.
    pub fn file_offset(&self, node: Index) -> u64 {
        let node = self.nodes.get(node.slot());
        let at = node.map_or(0, |node| u64::from(node.at));
        self.start.saturating_add(at)
    }

    /// The node's explicit tag, its handle resolved; none where the text gives none or `!`.
    pub fn tag(&self, node: Index) -> Option<&Arc<str>> {
        let number = self.nodes.get(node.slot())?.tag?;
        self.tags.get(to_usize(u64::from(number)).ok()?)
    }

    /// The node's text, where it is a scalar.
    pub fn text(&self, node: Index) -> Option<&str> {
        match self.content(node) {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The node's items, where it is a sequence.
    pub fn items(&self, node: Index) -> Option<&[Index]> {
        match self.content(node) {
            Content::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The node's pairs, where it is a mapping.
    pub fn pairs(&self, node: Index) -> Option<&[(Index, Index)]> {
        match self.content(node) {
            Content::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The scalar's YAML type, from its tag or else its text; none for a collection or a scalar
    /// with a tag of its own.
    pub fn core_tag(&self, node: Index) -> Option<CoreTag> {
        let Content::Scalar { text, plain } = self.content(node) else {
            return None;
        };
        match self.tag(node) {
            Some(tag) => CoreTag::named(tag),
            None if *plain => Some(resolve::implicit(text)),
            None => Some(CoreTag::Str),
        }
    }

    /// What tells a key from another.
    pub fn identity(&self, key: Index) -> Identity<'_> {
        let text = self.text(key);
        let kind = match (text, self.core_tag(key)) {
            (None, _) => IdentityKind::Collection(key),
            (Some(_), Some(core)) => IdentityKind::Core(core),
            (Some(_), None) => {
                let tag = self.nodes.get(key.slot()).and_then(|node| node.tag);
                IdentityKind::Tagged(tag.unwrap_or(u32::MAX))
            }
        };
        Identity {
            kind,
            text: text.unwrap_or_default(),
        }
    }

    /// A key as a name: its text, or what stands in the document for a key that is a collection.
    pub fn key_text(&self, key: Index) -> &str {
        match self.text(key) {
            Some(text) => text,
            None => self.key_texts.get(&key).map_or("", |text| text),
        }
    }

    /// Whether the node is a scalar of type text.
    pub fn is_text(&self, node: Index) -> bool {
        self.core_tag(node) == Some(CoreTag::Str)
    }

    /// Whether the key is the text `name`.
    pub fn is_key(&self, key: Index, name: &str) -> bool {
        self.text(key) == Some(name) && self.is_text(key)
    }

    /// The value of a mapping's own key `name`, the last one.
    pub fn value(&self, mapping: Index, name: &str) -> Option<Index> {
        let mut pairs = self.pairs(mapping)?.iter().rev();
        pairs
            .find(|&&(key, _)| self.is_key(key, name))
            .map(|&(_, value)| value)
    }

    /// Adds a node and returns its number, `None` where there are too many.
    fn push(&mut self, content: Content, tag: Option<u32>, at: u32) -> Option<Index> {
        let number = u32::try_from(to_u64(self.nodes.len())).ok()?;
        self.nodes.push(Node { content, tag, at });
        Some(Index(number))
    }
}

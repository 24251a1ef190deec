//! The keys of a mapping that describes an object, such as an ndarray or a field of its datatype.

use std::ops::Deref;

use crate::asdf::yaml::merge::{self, MergeBudget};
use crate::asdf::yaml::resolve::{self, CoreTag};
use crate::asdf::yaml::{Document, NodeIndex};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::request_budget::RequestBudget;
use crate::wire::{Count, to_u64};

/// Number of bytes that are charged for reading a node, in addition to its text.
const NODE_COST: u64 = 16;

/// Number of bytes that are charged for reading an entry of a mapping, in addition to its key.
const ENTRY_COST: u64 = 256;

/// A tree's document, and the budget that is charged for reading its nodes.
#[derive(Clone, Copy)]
pub(crate) struct MeteredDocument<'a> {
    document: &'a Document,
    budget: &'a RequestBudget,
}

impl<'a> MeteredDocument<'a> {
    /// Creates a view of `document` whose reads are charged to `budget`.
    pub(crate) fn new(document: &'a Document, budget: &'a RequestBudget) -> Self {
        MeteredDocument { document, budget }
    }

    pub(crate) fn document(&self) -> &'a Document {
        self.document
    }

    /// Returns the budget that is charged for reads.
    pub(crate) fn budget(&self) -> &'a RequestBudget {
        self.budget
    }
}

impl Deref for MeteredDocument<'_> {
    type Target = Document;

    fn deref(&self) -> &Document {
        self.document
    }
}

/// The entries of a mapping, including the entries from its merge keys.
pub(crate) struct Fields<'a> {
    document: MeteredDocument<'a>,
    node: NodeIndex,
    pairs: Vec<(NodeIndex, NodeIndex)>,
}

impl<'a> Fields<'a> {
    /// Returns the entries of the mapping `node`.
    ///
    /// # Errors
    /// Fails if its merge keys cannot be followed. `Limit` if reading the entries takes too much
    /// work.
    pub(crate) fn new(document: MeteredDocument<'a>, node: NodeIndex) -> Result<Self> {
        for &(key, _) in document.pairs(node).unwrap_or_default() {
            charge_node(document, key)?;
            document.budget.spend(ENTRY_COST)?;
        }
        let mut budget = MergeBudget::default();
        let entries = merge::entries(document.document, node, &mut budget);
        let merged = to_u64(budget.spent()).times(ENTRY_COST);
        document.budget.spend(merged)?;
        match entries.error {
            Some(error) => Err(error),
            None => Ok(Fields {
                document,
                node,
                pairs: entries.pairs,
            }),
        }
    }

    /// Returns the value of the key `name`, or `None` if the key does not exist.
    pub(crate) fn get(&self, name: &str) -> Option<NodeIndex> {
        let mut pairs = self.pairs.iter();
        let pair = pairs.find(|&&(key, _)| self.document.is_key(key, name));
        pair.map(|&(_, value)| value)
    }

    /// Returns the value of a required key.
    ///
    /// # Errors
    /// `Corrupt` if the key is missing.
    pub(crate) fn required(&self, name: &str) -> Result<NodeIndex> {
        self.get(name)
            .ok_or_else(|| corrupt(self.document, self.node, &format!("no {name}")))
    }
}

/// Returns the part of `budget` that may be spent on describing one array.
pub(crate) fn description_budget(budget: &RequestBudget) -> RequestBudget {
    budget.sub_budget(limits::DESCRIPTION)
}

/// Charges a read of `node` to the budget of the document, with the length of the text if the node
/// is a scalar.
///
/// # Errors
/// `Limit` if the budget is exhausted.
pub(crate) fn charge_node(document: MeteredDocument<'_>, node: NodeIndex) -> Result<()> {
    let text = document.text(node).map_or(0, str::len);
    document.budget.spend(NODE_COST.plus(to_u64(text)))
}

/// Returns the value of a scalar of type int, or `None` for any other node.
///
/// # Errors
/// Fails as [`charge_node`] does.
pub(crate) fn integer(document: MeteredDocument<'_>, node: NodeIndex) -> Result<Option<i128>> {
    charge_node(document, node)?;
    match (document.core_tag(node), document.text(node)) {
        (Some(CoreTag::Int), Some(text)) => Ok(resolve::integer(text)),
        _ => Ok(None),
    }
}

/// Returns the error that `node` is not a valid ndarray because of `what`.
pub(crate) fn corrupt(document: MeteredDocument<'_>, node: NodeIndex, what: &str) -> Error {
    Error::corrupt(format!("ndarray: {what}"), document.file_offset(node))
}

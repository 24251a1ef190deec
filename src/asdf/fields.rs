//! The keys of a mapping that describes something, as an ndarray or a field of its datatype does.

use crate::asdf::yaml::merge::{self, Budget};
use crate::asdf::yaml::resolve::{self, CoreTag};
use crate::asdf::yaml::{Document, Index};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::effort::{self, Effort};
use crate::wire::to_u64;

/// Bytes that a node counts as when it is looked at.
const NODE: u64 = 16;

/// Bytes that an entry of a mapping counts as, beside its key.
const ENTRY: u64 = 256;

/// The entries of a mapping, merged ones included.
pub struct Fields<'a> {
    document: &'a Document,
    node: Index,
    pairs: Vec<(Index, Index)>,
}

impl<'a> Fields<'a> {
    /// The entries of the mapping `node`.
    ///
    /// # Errors
    /// As its merge keys cannot be followed, `Limit` where it takes too much to look at them.
    pub fn new(document: &'a Document, node: Index) -> Result<Self> {
        for &(key, _) in document.pairs(node).unwrap_or_default() {
            look(document, key)?;
            effort::spend(ENTRY)?;
        }
        let mut budget = Budget::default();
        let entries = merge::entries(document, node, &mut budget);
        effort::spend(to_u64(budget.spent()).saturating_mul(ENTRY))?;
        match entries.error {
            Some(error) => Err(error),
            None => Ok(Fields {
                document,
                node,
                pairs: entries.pairs,
            }),
        }
    }

    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<Index> {
        let mut pairs = self.pairs.iter();
        let pair = pairs.find(|&&(key, _)| self.document.is_key(key, name));
        pair.map(|&(_, value)| value)
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// `Corrupt` where it is not.
    pub fn need(&self, name: &str) -> Result<Index> {
        self.get(name)
            .ok_or_else(|| corrupt(self.document, self.node, &format!("no {name}")))
    }
}

/// What this thread may look at while it describes one array.
pub fn description() -> Effort {
    Effort::within(limits::DESCRIPTION)
}

/// Counts a look at `node`, and at its text if it is a scalar.
///
/// # Errors
/// `Limit` where that is too much.
pub fn look(document: &Document, node: Index) -> Result<()> {
    let text = document.text(node).map_or(0, str::len);
    effort::spend(NODE.saturating_add(to_u64(text)))
}

/// The value of a scalar of type int; none for anything else.
///
/// # Errors
/// As [`look`].
pub fn integer(document: &Document, node: Index) -> Result<Option<i128>> {
    look(document, node)?;
    match (document.core_tag(node), document.text(node)) {
        (Some(CoreTag::Int), Some(text)) => Ok(resolve::integer(text)),
        _ => Ok(None),
    }
}

/// What `node` describes is no ndarray, for the reason `what`.
pub fn corrupt(document: &Document, node: Index, what: &str) -> Error {
    Error::corrupt(format!("ndarray: {what}"), document.file_offset(node))
}

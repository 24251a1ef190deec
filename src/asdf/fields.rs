//! The keys of a mapping that describes something, as an ndarray or a field of its datatype does.

use crate::asdf::yaml::merge::{self, Budget};
use crate::asdf::yaml::resolve::{self, CoreTag};
use crate::asdf::yaml::{Document, Index};
use crate::error::{Error, Result};

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
    /// As its merge keys cannot be followed.
    pub fn new(document: &'a Document, node: Index) -> Result<Self> {
        let entries = merge::entries(document, node, &mut Budget::default());
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

/// The value of a scalar of type int; none for anything else.
pub fn integer(document: &Document, node: Index) -> Option<i128> {
    match document.core_tag(node)? {
        CoreTag::Int => resolve::integer(document.text(node)?),
        _ => None,
    }
}

/// What `node` describes is no ndarray, for the reason `what`.
pub fn corrupt(document: &Document, node: Index, what: &str) -> Error {
    Error::corrupt(format!("ndarray: {what}"), document.file_offset(node))
}

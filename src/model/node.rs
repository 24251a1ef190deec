//! An object of the file, whatever the number of its names.

use std::sync::Arc;

use crate::error::Error;
use crate::model::{Array, Datatype, Scalar, ScalarValue};
use crate::wire::Count;

/// A node's identity within its container; unique, stable from open to open of an unchanged file.
///
/// HDF5: the address of the object header. ASDF: the node's number in the tree, counted from 2.
/// It can serve as an inode number: 0 and 1 are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u64);

impl NodeId {
    /// The end of the numbers.
    pub const END: u64 = 1 << 62;

    /// 1 is the inode number of the mount's root.
    const FIRST: u64 = 2;

    /// The identity with this number, which must be from 2 up to [`END`](Self::END).
    pub fn new(number: u64) -> Option<Self> {
        let is_one = (Self::FIRST..Self::END).contains(&number);
        is_one.then_some(NodeId(number))
    }

    /// The identity of the node with this index, where a format counts its nodes.
    pub fn at(index: u32) -> Self {
        NodeId(u64::from(index).with_more(Self::FIRST))
    }

    /// Its index, where a format counts its nodes.
    pub fn index(self) -> u64 {
        self.0.left_after(Self::FIRST)
    }

    /// An identity for tests, which may be none of a file.
    #[cfg(test)]
    pub(crate) const fn of(number: u64) -> Self {
        NodeId(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A parsed object.
#[derive(Debug)]
pub struct Node {
    /// Its identity.
    pub id: NodeId,
    /// Its kind.
    pub kind: NodeKind,
    /// ASDF: the array that the members of a group make together, which is not shown among them.
    pub assembled: Option<Arc<Array>>,
    /// The number of hard links that the file says lead here. ASDF: 1.
    pub link_count: u32,
    /// Modification time in seconds since 1970 UTC, where the file stores one.
    pub modified: Option<i64>,
    /// The comment, where there is one, bytes as in the file.
    pub comment: Option<Vec<u8>>,
    /// ASDF: the tag that the tree gives it, resolved. HDF5: none.
    pub tag: Option<Arc<str>>,
    /// The damage of an object that can be shown in part.
    pub error: Option<Error>,
}

impl Node {
    /// The same node with another array.
    #[must_use]
    pub fn with_array(&self, array: Arc<Array>) -> Self {
        Node {
            id: self.id,
            kind: NodeKind::Array(array),
            assembled: self.assembled.clone(),
            link_count: self.link_count,
            modified: self.modified,
            comment: self.comment.clone(),
            tag: self.tag.clone(),
            error: self.error.clone(),
        }
    }

    /// What stands for a node that cannot be read where something is to be said of it: a value of
    /// nothing, with the error.
    pub fn damaged(id: NodeId, error: Error) -> Self {
        Node {
            id,
            kind: NodeKind::Scalar(Scalar {
                text: String::new(),
                value: ScalarValue::Null,
            }),
            assembled: None,
            link_count: 1,
            modified: None,
            comment: None,
            tag: None,
            error: Some(error),
        }
    }

    /// The array that it is, or that its members make.
    pub fn array(&self) -> Option<&Arc<Array>> {
        match &self.kind {
            NodeKind::Array(array) => Some(array),
            _ => self.assembled.as_ref(),
        }
    }

    /// Whether something of it could not be read that may be there the next time: it is not worth
    /// keeping then.
    pub fn is_partial(&self) -> bool {
        self.passing().is_some()
    }

    /// Why something of it could not be read that may be there the next time.
    pub fn passing(&self) -> Option<&Error> {
        let storage = self.array().and_then(|array| array.storage.as_ref().err());
        let mut errors = storage.into_iter().chain(&self.error);
        errors.find(|error| error.is_passing())
    }
}

/// The kind of a node.
#[derive(Debug)]
pub enum NodeKind {
    /// HDF5: group. ASDF: mapping or sequence.
    Group,
    /// HDF5: dataset. ASDF: ndarray.
    Array(Arc<Array>),
    /// HDF5: committed datatype. ASDF: none.
    CommittedDatatype(Datatype),
    /// HDF5: none. ASDF: a scalar.
    Scalar(Scalar),
}

//! Nodes: the objects of a file, each with any number of names.

use std::sync::Arc;

use crate::error::Error;
use crate::model::{Array, Datatype, Scalar, ScalarValue};
use crate::wire::Count;

/// A node's identity within its container. It is unique, and stable between opens of an unchanged
/// file.
///
/// HDF5: the address of the object header. ASDF: the node's number in the tree, counted from 2. An
/// identity can serve as an inode number, because 0 and 1 are never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u64);

impl NodeId {
    /// The exclusive upper bound of node numbers.
    pub const END: u64 = 1 << 62;

    /// The lowest node number. 1 is the inode number of the mount's root.
    const FIRST: u64 = 2;

    /// Returns the identity with this number, or `None` unless the number is at least 2 and less
    /// than [`END`](Self::END).
    pub fn new(number: u64) -> Option<Self> {
        let is_one = (Self::FIRST..Self::END).contains(&number);
        is_one.then_some(NodeId(number))
    }

    /// Returns the identity of the node with this index, for a format that counts its nodes.
    pub fn from_index(index: u32) -> Self {
        NodeId(u64::from(index).plus(Self::FIRST))
    }

    /// Returns the node's index, for a format that counts its nodes.
    pub fn index(self) -> u64 {
        self.0.minus_or_zero(Self::FIRST)
    }

    /// Returns an identity for tests, which may be invalid in a file.
    #[cfg(any(test, feature = "testing"))]
    pub const fn for_test(number: u64) -> Self {
        NodeId(number)
    }

    /// Returns the node's number, which can serve as an inode number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A parsed object of a file. The links of a group are not part of the node.
#[derive(Debug)]
pub struct Node {
    /// The node's identity.
    pub id: NodeId,
    /// The node's kind.
    pub kind: NodeKind,
    /// ASDF: the array that the members of a group form together. The array is not listed among the
    /// members.
    pub assembled_array: Option<Arc<Array>>,
    /// The number of hard links to the node, as stored in the file. ASDF: 1.
    pub link_count: u32,
    /// Modification time in seconds since 1970 UTC, if the file stores one.
    pub modified: Option<i64>,
    /// The object's comment, if the file stores one, bytes as in the file. ASDF: `None`.
    pub comment: Option<Vec<u8>>,
    /// ASDF: the node's tag in the tree, resolved. HDF5: `None`.
    pub tag: Option<Arc<str>>,
    /// The error that was found in an object of which only a part can be shown. `None` if the
    /// object is complete.
    pub error: Option<Error>,
}

impl Node {
    /// Returns a copy of the node with another array.
    #[must_use]
    pub fn with_array(&self, array: Arc<Array>) -> Self {
        Node {
            id: self.id,
            kind: NodeKind::Array(array),
            assembled_array: self.assembled_array.clone(),
            link_count: self.link_count,
            modified: self.modified,
            comment: self.comment.clone(),
            tag: self.tag.clone(),
            error: self.error.clone(),
        }
    }

    /// Returns a substitute for a node that cannot be read: a null scalar with the error.
    pub fn damaged(id: NodeId, error: Error) -> Self {
        Node {
            id,
            kind: NodeKind::Scalar(Scalar {
                text: String::new(),
                value: ScalarValue::Null,
            }),
            assembled_array: None,
            link_count: 1,
            modified: None,
            comment: None,
            tag: None,
            error: Some(error),
        }
    }

    /// Returns the array of the node, or the array that the node's members form together. Returns
    /// `None` if the node has neither.
    pub fn array(&self) -> Option<&Arc<Array>> {
        match &self.kind {
            NodeKind::Array(array) => Some(array),
            _ => self.assembled_array.as_ref(),
        }
    }

    /// Returns whether reading a part of the node failed with an error that may not recur. Such a
    /// node should not be cached.
    pub fn has_transient_error(&self) -> bool {
        self.transient_error().is_some()
    }

    /// Returns the first error of the node that may not recur in a later read, or `None`.
    pub fn transient_error(&self) -> Option<&Error> {
        let storage = self.array().and_then(|array| array.storage.as_ref().err());
        let mut errors = storage.into_iter().chain(&self.error);
        errors.find(|error| error.is_transient())
    }
}

/// The kind of a node.
#[derive(Debug)]
pub enum NodeKind {
    /// HDF5: group. ASDF: mapping or sequence.
    Group,
    /// HDF5: dataset. ASDF: ndarray.
    Array(Arc<Array>),
    /// HDF5: committed datatype. ASDF: not used.
    CommittedDatatype(Datatype),
    /// HDF5: not used. ASDF: a scalar.
    Scalar(Scalar),
}

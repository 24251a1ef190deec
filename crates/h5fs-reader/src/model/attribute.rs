//! Attributes, and the targets of stored references.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{Datatype, NodeId, Shape};

/// A small named value on a node.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// The name's bytes as in the file. They may be any bytes, empty, contain `/`, and have any
    /// length.
    pub name: Vec<u8>,
    /// The type, extent and elements, or the error of reading them.
    pub content: Result<AttributeContent>,
}

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttributeContent {
    /// The type of one stored element.
    pub datatype: Datatype,
    /// The extent: the length of each dimension.
    pub shape: Shape,
    /// The elements as stored, in C order.
    pub elements: Arc<[u8]>,
}

/// The target of a stored reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A null reference.
    Null,
    /// An address in this file at which no node can exist.
    Dangling(u64),
    /// A node of this file.
    Object(NodeId),
    /// Some elements of an array in this file, which
    /// [`Container::region`](crate::model::Container::region) returns.
    Region(NodeId),
    /// An attribute of a node of this file.
    Attribute {
        /// The node.
        node: NodeId,
        /// The attribute's name, bytes as in the file.
        name: Vec<u8>,
    },
    /// An object in another file.
    External {
        /// The file's name, bytes as in the file.
        file: Vec<u8>,
        /// The object's address in that file.
        address: u64,
    },
}

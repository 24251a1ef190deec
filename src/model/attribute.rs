//! Attributes, and what a stored reference points to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::{Datatype, NodeId, Shape};

/// A small named value on a node.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Bytes as in the file: any bytes, empty, with `/`, of any length.
    pub name: Vec<u8>,
    /// Its type, extent and elements, or why they cannot be read.
    pub content: Result<AttributeContent>,
}

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttributeContent {
    /// The type of one stored element.
    pub datatype: Datatype,
    /// The extent.
    pub shape: Shape,
    /// The elements as stored, C order.
    pub elements: Arc<[u8]>,
}

/// The target of a stored reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// Nothing.
    Null,
    /// An address of this file where no node can be.
    Dangling(u64),
    /// A node of this file.
    Object(NodeId),
    /// Some elements of this array of this file;
    /// [`Container::region`](crate::model::Container::region) tells which.
    Region(NodeId),
    /// An attribute of a node of this file.
    Attribute {
        /// The node.
        node: NodeId,
        /// The attribute's name, bytes as in the file.
        name: Vec<u8>,
    },
    /// Something in another file.
    External {
        /// The file's name, bytes as in the file.
        file: Vec<u8>,
        /// The object's address there.
        address: u64,
    },
}

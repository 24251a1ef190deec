//! The table of nodes: the node that answers for each type of inode.

use crate::fs::attribute_file::AttributeFile;
use crate::fs::blocks::Block;
use crate::fs::frame::Frame;
use crate::fs::inode::{Inode, NodeType};
use crate::fs::node::FsNode;
use crate::fs::other_nodes::Spelling;
use crate::fs::reference_link::ReferenceLink;
use crate::fs::selection::Selection;
use crate::fs::source_tree::{DamagedLink, Group, Link, Object, Unreadable};
use crate::fs::store::{StoreDirectory, StoreFile};
use crate::fs::view_nodes::{ViewDirectory, ViewFile, ViewLink};
use crate::fs::views::{self, Views};

/// The node that answers for `inode`.
pub(super) fn of(inode: &Inode) -> &'static dyn FsNode {
    match inode.node_type {
        NodeType::Group => &Group,
        NodeType::Object => &Object,
        NodeType::Link => &Link,
        NodeType::DamagedLink => &DamagedLink,
        NodeType::Unreadable => &Unreadable,
        NodeType::Views => &Views,
        NodeType::Single => views::single(&inode.name).unwrap_or(&Unreadable),
        NodeType::Block => &Block,
        NodeType::Spelling => &Spelling,
        NodeType::ViewDirectory => &ViewDirectory,
        NodeType::ViewLink => &ViewLink,
        NodeType::View => &ViewFile,
        NodeType::StoreDirectory => &StoreDirectory,
        NodeType::StoreFile => &StoreFile,
        NodeType::Attribute => &AttributeFile,
        NodeType::Reference => &ReferenceLink,
        NodeType::Frame => &Frame,
        NodeType::Selection => &Selection,
    }
}

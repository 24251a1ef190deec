//! The table of node types: for each type of inode, the node that implements requests about it.

use crate::nodes::blocks::BlockFile;
use crate::nodes::node::FsNode;
use crate::nodes::other_nodes::SpellingLink;
use crate::nodes::source_tree::{
    DamagedLink, GroupDirectory, ObjectFile, ObjectLink, UnreadableObject,
};
use crate::state::inode::{Inode, NodeType};
use crate::views::attribute_file::AttributeFile;
use crate::views::frame::FrameFile;
use crate::views::reference_link::ReferenceLink;
use crate::views::selection::SelectionFile;
use crate::views::store::{StoreDirectory, StoreFile};
use crate::views::view_nodes::{ViewDirectory, ViewFile, ViewLink};
use crate::views::{self, ViewsRootDirectory};

/// Returns the node that implements requests about `inode`.
pub(super) fn node_for(inode: &Inode) -> &'static dyn FsNode {
    match inode.node_type {
        NodeType::Group => &GroupDirectory,
        NodeType::Object => &ObjectFile,
        NodeType::Link => &ObjectLink,
        NodeType::DamagedLink => &DamagedLink,
        NodeType::Unreadable => &UnreadableObject,
        NodeType::Views => &ViewsRootDirectory,
        NodeType::ViewsEntry => views::non_tree_node(&inode.name).unwrap_or(&UnreadableObject),
        NodeType::Block => &BlockFile,
        NodeType::Spelling => &SpellingLink,
        NodeType::ViewDirectory => &ViewDirectory,
        NodeType::ViewLink => &ViewLink,
        NodeType::View => &ViewFile,
        NodeType::StoreDirectory => &StoreDirectory,
        NodeType::StoreFile => &StoreFile,
        NodeType::Attribute => &AttributeFile,
        NodeType::Reference => &ReferenceLink,
        NodeType::Frame => &FrameFile,
        NodeType::Selection => &SelectionFile,
    }
}

//! The nodes of the mount: for each type of inode, the object that implements the requests about
//! such inodes.
//!
//! | file | content |
//! |---|---|
//! | `node` | the methods of every node: stat, open, list, lookup |
//! | `source_tree`, `object`, `selection` | groups, links, datasets and parts of them |
//! | `blocks`, `tree_text`, `members_list`, `status`, `other_nodes` | the single nodes in `.h5fs` |
//! | `xattr`, `indexed` | extended attributes; directories whose entries have numbers |

pub(super) mod blocks;
pub(super) mod indexed;
pub(super) mod members_list;
pub(super) mod node;
pub(super) mod object;
pub(super) mod other_nodes;
pub(super) mod selection;
pub(super) mod source_tree;
pub(super) mod status;
pub(super) mod tree_text;
pub(super) mod xattr;

use crate::nodes::blocks::BlockFile;
use crate::nodes::node::FsNode;
use crate::nodes::other_nodes::SpellingLink;
use crate::nodes::selection::SelectionFile;
use crate::nodes::source_tree::{
    DamagedLink, GroupDirectory, ObjectFile, ObjectLink, UnreadableObject,
};
use crate::state::inode::{Inode, NodeType};
use crate::views::attribute_file::AttributeFile;
use crate::views::frame::FrameFile;
use crate::views::reference_link::ReferenceLink;
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

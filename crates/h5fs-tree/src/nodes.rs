//! The nodes of the file's own tree, and what the nodes of all trees share. For each type of inode,
//! a node implements the requests about such inodes; `node_table.rs` lists them all.
//!
//! | file | content |
//! |---|---|
//! | `node` | the methods of every node: stat, open, list, lookup |
//! | `source_tree`, `object`, `selection` | groups, links, datasets and parts of them |
//! | `label_selection` | selectors by the names and coordinates of dimensions |
//! | `missing_targets` | reports of referenced files and objects that do not exist |
//! | `blocks`, `tree_text`, `members_list`, `status`, `other_nodes` | the single nodes in `.h5fs` |
//! | `xattr`, `indexed` | extended attributes; directories whose entries have numbers |

pub(super) mod blocks;
pub(super) mod indexed;
mod label_selection;
pub(super) mod members_list;
pub(super) mod missing_targets;
pub(super) mod node;
pub(super) mod object;
pub(super) mod other_nodes;
pub(super) mod selection;
pub(super) mod source_tree;
pub(super) mod status;
pub(super) mod tree_text;
pub(super) mod xattr;

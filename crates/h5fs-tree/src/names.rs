//! Names: the directory entries for the links of a group, and the targets of links.

pub(super) mod link_resolution;
pub(super) mod namespace;
pub(super) mod symlink;

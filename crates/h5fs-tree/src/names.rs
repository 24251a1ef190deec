//! Names and paths: the directory entries for the links of a group, the targets of links, and path
//! resolution.

pub(super) mod link_resolution;
pub(super) mod namespace;
pub(super) mod path_resolution;
pub(super) mod symlink;

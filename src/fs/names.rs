//! Names and paths: links of a group as entries of the mount, the targets of links, and path
//! resolution.

pub(super) mod link_resolution;
pub(super) mod namespace;
pub(super) mod path_resolution;
pub(super) mod symlink;

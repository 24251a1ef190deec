//! Names and paths: links of a group as entries of the mount, the targets of links, and path
//! resolution.

pub(super) mod follow;
pub(super) mod namespace;
pub(super) mod symlink;
pub(super) mod walk;

//! Names and paths: what a link of a group is in the mount, where it leads, and how a path is
//! walked.

pub(super) mod follow;
pub(super) mod namespace;
pub(super) mod symlink;
pub(super) mod walk;

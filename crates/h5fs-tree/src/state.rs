//! What a mounted file and a mounted directory keep between requests: inodes, handles, listings,
//! counted texts, texts about the mount, errors, and request counters.

pub(super) mod counts;
pub(super) mod errors;
pub(super) mod faults;
pub(super) mod handle;
pub(super) mod index_walk;
pub(super) mod inode;
pub(super) mod inodes;
pub(super) mod listing;
pub(super) mod status_texts;
pub(super) mod traffic;
